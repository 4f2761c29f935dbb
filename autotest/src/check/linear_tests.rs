//! Histories of registers written by hand, and great ones made by a model.

use super::*;
use Action::{Delete, FreeRead, Insert, Present, Read, Set, Swap};

/// `(called, answered, action)`; answered 0: unknown, 1: failed.
fn judge(history: &[(Time, Time, Action)]) -> Result<(), String> {
    let ops: Vec<Op> = history
        .iter()
        .enumerate()
        .map(|(client, (called, answered, action))| {
            let outcome = match answered {
                0 => Outcome::Unknown,
                1 => Outcome::Failed,
                at => Outcome::Ok(*at),
            };
            Op { row: 7, client: client as u64, called: *called, outcome, action: *action }
        })
        .collect();
    check(&ops)
}

#[track_caller]
fn good(history: &[(Time, Time, Action)]) {
    assert_eq!(judge(history), Ok(()));
}

#[track_caller]
fn bad(history: &[(Time, Time, Action)], what: &str) {
    let verdict = judge(history).unwrap_err();
    assert!(verdict.starts_with("row 7: ") && verdict.contains(what), "{verdict}");
}

#[test]
fn operations_one_after_the_other() {
    good(&[
        (10, 11, Read(None)),
        (20, 21, Insert(1)),
        (30, 31, Present),
        (40, 41, Swap { from: 1, to: 2 }),
        (50, 51, Read(Some(2))),
        (60, 61, Delete),
        (70, 71, Read(None)),
        (80, 81, Insert(3)),
        (90, 91, Set(4)),
        (95, 96, FreeRead(Some(4))),
    ]);
    bad(&[(20, 21, Insert(1)), (30, 31, Set(2)), (50, 51, Read(Some(1)))], "not linearizable");
    bad(&[(20, 21, Insert(1)), (30, 31, Insert(2))], "not linearizable");
    bad(&[(20, 21, Set(1))], "not linearizable");
    bad(&[(20, 21, Insert(1)), (30, 31, Read(None))], "not linearizable");
    bad(&[(20, 21, Delete)], "not linearizable");
}

#[test]
fn an_update_lost_under_locks() {
    let (first, second) = (Swap { from: 1, to: 2 }, Swap { from: 1, to: 3 });
    bad(&[(10, 11, Insert(1)), (20, 30, first), (21, 31, second)], "not linearizable");
    good(&[(10, 11, Insert(1)), (20, 30, first), (21, 31, Swap { from: 2, to: 3 })]);
}

#[test]
fn concurrent_operations_in_either_order() {
    for seen in [2, 3] {
        good(&[(10, 11, Insert(1)), (20, 30, Set(2)), (21, 31, Set(3)), (40, 41, Read(Some(seen)))]);
    }
    // Seen in between, so the order is fixed.
    let seen = (25, 26, Read(Some(3)));
    good(&[(10, 11, Insert(1)), (20, 30, Set(2)), (21, 31, Set(3)), seen, (40, 41, Read(Some(2)))]);
    bad(
        &[
            (10, 11, Insert(1)),
            (20, 24, Set(2)),
            (21, 31, Set(3)),
            (25, 26, Read(Some(3))),
            (40, 41, Read(Some(2))),
        ],
        "not linearizable",
    );
}

#[test]
fn unknown_outcomes_take_effect_late_or_never() {
    good(&[(10, 11, Insert(1)), (20, 0, Set(2)), (30, 31, Read(Some(1))), (40, 41, Read(Some(2)))]);
    good(&[(10, 11, Insert(1)), (20, 0, Set(2)), (30, 31, Read(Some(1))), (40, 41, Read(Some(1)))]);
    good(&[(10, 11, Insert(1)), (20, 0, Delete), (30, 31, Read(Some(1))), (40, 41, Insert(3))]);
    good(&[(10, 0, Insert(1)), (20, 21, Set(2))]);
    good(&[(10, 0, Insert(1)), (20, 21, Present)]);
    // Not twice, and not before the call.
    bad(
        &[(10, 11, Insert(1)), (20, 0, Delete), (40, 41, Insert(3)), (50, 51, Insert(4))],
        "not linearizable",
    );
    bad(&[(10, 11, Insert(1)), (40, 0, Delete), (20, 21, Insert(3))], "not linearizable");
    // Back from the dead.
    bad(
        &[
            (10, 11, Insert(1)),
            (20, 0, Set(2)),
            (30, 31, Read(Some(2))),
            (40, 41, Set(3)),
            (50, 51, Read(Some(2))),
        ],
        "not linearizable",
    );
    // A locked change can only come from what it has seen.
    bad(
        &[
            (10, 11, Insert(1)),
            (20, 0, Swap { from: 1, to: 2 }),
            (30, 31, Set(3)),
            (32, 33, Read(Some(3))),
            (40, 41, Read(Some(2))),
        ],
        "not linearizable",
    );
}

#[test]
fn dirty_reads_and_reads_of_the_future() {
    bad(&[(10, 11, Insert(1)), (20, 1, Set(2)), (30, 31, Read(Some(2)))], "dirty read");
    bad(&[(10, 11, Insert(1)), (20, 1, Set(2)), (30, 31, FreeRead(Some(2)))], "dirty read");
    bad(&[(10, 11, Insert(1)), (30, 31, FreeRead(Some(2)))], "nobody wrote");
    bad(&[(10, 11, Insert(1)), (30, 31, FreeRead(Some(2))), (40, 41, Set(2))], "before it was written");
    good(&[(10, 11, Insert(1)), (20, 1, Set(2)), (30, 31, FreeRead(Some(1)))]);
}

#[test]
fn lock_free_reads_may_differ_only_while_a_write_is_not_acknowledged() {
    let (made, write) = ((10, 11, Insert(1)), (20, 30, Set(2)));
    // New, then old, of different replicas.
    good(&[made, write, (21, 22, FreeRead(Some(2))), (23, 24, FreeRead(Some(1)))]);
    // Not any more once it is acknowledged.
    bad(&[made, write, (31, 32, FreeRead(Some(1)))], "stale lock-free read");
    good(&[made, write, (29, 32, FreeRead(Some(1)))]);
    // Under a lock, not even before.
    bad(&[made, write, (21, 22, FreeRead(Some(2))), (23, 24, Read(Some(1)))], "not linearizable");
    good(&[made, write, (21, 24, FreeRead(Some(2))), (23, 24, Read(Some(1)))]);
    // An unknown write that was seen is replaced by what was called later.
    let unknown = (20, 0, Set(2));
    good(&[made, unknown, (21, 22, FreeRead(Some(2))), (50, 51, FreeRead(Some(1)))]);
    bad(
        &[made, unknown, (21, 22, FreeRead(Some(2))), (30, 31, Set(3)), (50, 51, FreeRead(Some(2)))],
        "stale lock-free read",
    );
    // Two writes at once: either may be the last.
    good(&[made, write, (21, 31, Set(3)), (40, 41, FreeRead(Some(2))), (42, 43, FreeRead(Some(3)))]);
    bad(&[made, (20, 30, Swap { from: 1, to: 2 }), (40, 41, FreeRead(Some(1)))], "stale lock-free read");
}

#[test]
fn lock_free_reads_of_rows_that_come_and_go() {
    let made = (10, 11, Insert(1));
    good(&[(5, 11, FreeRead(None)), made, (9, 12, FreeRead(None))]);
    bad(&[made, (12, 13, FreeRead(None))], "nobody removed it");
    bad(&[(8, 9, Read(None)), (7, 0, Insert(1)), (10, 11, Present), (12, 13, FreeRead(None))], "removed");
    good(&[made, (12, 15, Delete), (12, 13, FreeRead(None)), (13, 14, FreeRead(Some(1)))]);
    bad(&[made, (12, 15, Delete), (16, 17, FreeRead(Some(1)))], "stale lock-free read");
    good(&[made, (12, 0, Delete), (100, 101, FreeRead(None))]);
    bad(&[made, (12, 1, Delete), (100, 101, FreeRead(None))], "nobody removed it");
    bad(&[made, (12, 13, Delete), (14, 15, Insert(2)), (16, 17, FreeRead(None))], "nobody removed it");
}

/// A register with clients that overlap: every operation takes effect somewhere in its time.
fn model(count: u64, clients: u64, unknown_every: u64) -> Vec<Op> {
    let mut random = 12_345u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut state = None;
    let mut ops = Vec::new();
    for i in 0..count {
        let at = i * 100 + 1000;
        let action = match (state, next(8)) {
            (None, 0..4) => Insert(i + 1),
            (None, _) => Read(None),
            (Some(_), 0) => Delete,
            (Some(_), 1) => Present,
            (Some(from), 2..5) => Swap { from, to: i + 1 },
            (Some(_), 5) => Set(i + 1),
            (Some(tag), _) => Read(Some(tag)),
        };
        state = action.apply(state).unwrap();
        let spread = clients * 50;
        let unknown = unknown_every > 0 && i % unknown_every == 0 && !action.is_read();
        let outcome = if unknown { Outcome::Unknown } else { Outcome::Ok(at + 1 + next(spread)) };
        ops.push(Op { row: 1, client: i % clients, called: at - next(spread), outcome, action });
    }
    ops
}

#[test]
fn thousands_of_operations_are_judged_quickly() {
    let begun = std::time::Instant::now();
    for clients in [1, 4, 8] {
        assert_eq!(check(&model(5000, clients, 0)), Ok(()), "{clients} clients");
        assert_eq!(check(&model(5000, clients, 150)), Ok(()), "{clients} clients, unknown outcomes");
    }
    // One that is wrong late.
    let mut wrong = model(5000, 8, 150);
    let end = wrong.iter().map(|op| op.called).max().unwrap() + 1_000_000;
    wrong.push(Op {
        row: 1,
        client: 0,
        called: end,
        outcome: Outcome::Ok(end + 1),
        action: Read(Some(wrong.iter().find_map(|op| op.action.writes()).unwrap())),
    });
    let verdict = check(&wrong).unwrap_err();
    assert!(verdict.contains("not linearizable"), "{verdict}");
    // Generous: the machine may be busy. It takes some hundredths of a second.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

/// One slow operation while hundreds of others come and go: the window of bits is more than a word wide.
#[test]
fn a_slow_operation_does_not_hinder() {
    let mut ops = model(1000, 2, 0);
    let last = ops.iter().map(|op| op.called).max().unwrap() + 1000;
    ops.push(Op { row: 1, client: 9, called: 0, outcome: Outcome::Ok(last), action: Read(None) });
    assert_eq!(check(&ops), Ok(()));
    ops.push(Op { row: 1, client: 9, called: 0, outcome: Outcome::Ok(last), action: Read(Some(77_777)) });
    assert!(check(&ops).unwrap_err().contains("nobody wrote"));
}
