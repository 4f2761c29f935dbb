//! Stories about TC and LDMs together: commits, locks, savepoints, time-outs, full memory, at one and two
//! replicas.

use crate::testing::*;
use signals::ErrorCode;
use signals::control::ControlSignal;
use signals::ids::TransId;
use signals::keyop::{Operation, ROLLBACK_ALL, tc_flags};

const START: u8 = tc_flags::START;
const EXECUTE: u8 = tc_flags::EXECUTE;
const IGNORE: u8 = tc_flags::IGNORE_ERROR;

fn committed(heard: &[Heard]) -> bool {
    matches!(heard, [Heard::KeyConf { committed: true, .. }])
}

fn aborted(heard: &[Heard]) -> Option<ErrorCode> {
    match heard {
        [Heard::Aborted(_, code)] => Some(*code),
        _ => None,
    }
}

/// Every story at one, two and three replicas and several orders of delivery.
fn everywhere(story: impl Fn(&mut Cluster)) {
    for replicas in 1..=3 {
        for seed in 0..40 {
            let mut c = Cluster::new(&Shape::of(replicas), seed);
            story(&mut c);
            c.run();
            c.assert_nothing_leaked();
        }
    }
}

#[test]
fn lone_writes_commit_themselves_on_every_replica() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 10, "one"))));
        assert_eq!(c.read(1), Some(values(1, 10, "one")));
        assert_eq!(aborted(&c.alone(Operation::Insert, 1, &row(1, 11, "x"))), Some(ErrorCode::TUPLE_EXISTS));
        assert!(committed(&c.alone(Operation::Update, 1, &set_n(12))));
        assert_eq!(c.read(1), Some(values(1, 12, "one")));
        assert!(committed(&c.alone(Operation::Write, 1, &row(1, 13, "a longer text than before"))));
        assert!(committed(&c.alone(Operation::Write, 2, &row(2, 20, "two"))));
        assert_eq!(c.read(1), Some(values(1, 13, "a longer text than before")));
        assert_eq!(c.read(2), Some(values(2, 20, "two")));
        assert!(committed(&c.alone(Operation::Delete, 1, &[])));
        assert_eq!(c.read(1), None);
        assert_eq!(aborted(&c.alone(Operation::Delete, 1, &[])), Some(ErrorCode::TUPLE_NOT_FOUND));
        assert_eq!(aborted(&c.alone(Operation::Update, 1, &set_n(1))), Some(ErrorCode::TUPLE_NOT_FOUND));
    });
}

#[test]
fn a_transaction_is_unseen_until_it_commits_and_gone_when_it_rolls_back() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 1, "old"))));
        for commits in [false, true] {
            let t = c.begin();
            c.op(t, Operation::Update, 1, &set_n(5), START, 1);
            c.op(t, Operation::Insert, 2, &row(2, 2, "new"), 0, 2);
            c.op(t, Operation::ReadExclusive, 1, &ALL, EXECUTE, 3);
            c.run();
            let heard = std::mem::take(&mut c.heard);
            assert!(heard.contains(&Heard::Row(3, values(1, 5, "old"))), "it sees its own change: {heard:?}");
            assert!(heard.contains(&Heard::KeyConf { trans: t, operations: 3, committed: false }));
            assert_eq!(c.read(1), Some(values(1, 1, "old")));
            assert_eq!(c.read(2), None);
            assert_eq!(c.scan(t, 10).len(), 2, "its own scan sees both rows");
            assert_eq!(c.scan(TransId::NONE, 10).len(), 1);
            if commits {
                c.commit(t);
            } else {
                c.rollback(t, ROLLBACK_ALL);
            }
            c.run();
            let answer = if commits { Heard::Committed(t) } else { Heard::RolledBack(t, ROLLBACK_ALL) };
            assert_eq!(std::mem::take(&mut c.heard), [answer]);
        }
        assert_eq!(c.read(1), Some(values(1, 5, "old")));
        assert_eq!(c.read(2), Some(values(2, 2, "new")));
    });
}

#[test]
fn a_row_changed_often_in_one_transaction_shows_its_last_state() {
    everywhere(|c| {
        let t = c.begin();
        c.op(t, Operation::Insert, 1, &row(1, 1, "a"), START, 1);
        c.op(t, Operation::Update, 1, &set_n(2), 0, 2);
        c.op(t, Operation::Delete, 1, &[], 0, 3);
        c.op(t, Operation::Insert, 1, &row(1, 3, "b"), 0, 4);
        c.op(t, Operation::Update, 1, &set_n(4), 0, 5);
        c.op(t, Operation::Insert, 2, &row(2, 1, "c"), 0, 6);
        c.op(t, Operation::Delete, 2, &[], EXECUTE | tc_flags::COMMIT, 7);
        c.run();
        assert!(committed(&std::mem::take(&mut c.heard)));
        assert_eq!(c.read(1), Some(values(1, 4, "b")));
        assert_eq!(c.read(2), None);
    });
}

#[test]
fn a_failed_operation_that_may_fail_leaves_the_transaction_alive() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 1, "old"))));
        let t = c.begin();
        c.op(t, Operation::Insert, 7, &row(7, 7, "x"), START | IGNORE, 1);
        c.op(t, Operation::Insert, 1, &row(1, 9, "x"), EXECUTE | IGNORE, 2);
        c.run();
        let heard = std::mem::take(&mut c.heard);
        assert!(heard.contains(&Heard::KeyRef(2, ErrorCode::TUPLE_EXISTS)), "{heard:?}");
        c.commit(t);
        c.run();
        assert_eq!(std::mem::take(&mut c.heard), [Heard::Committed(t)]);
        assert_eq!((c.read(1), c.read(7)), (Some(values(1, 1, "old")), Some(values(7, 7, "x"))));
    });
}

#[test]
fn a_rollback_to_a_savepoint_undoes_what_came_after_it() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 1, "old"))));
        let t = c.begin();
        c.op(t, Operation::Update, 1, &set_n(2), START | EXECUTE, 1);
        c.run();
        c.op(t, Operation::Update, 1, &set_n(3), 0, 2);
        c.op(t, Operation::Delete, 1, &[], 0, 3);
        c.op(t, Operation::Insert, 2, &row(2, 2, "gone"), EXECUTE, 4);
        c.run();
        c.heard.clear();
        c.rollback(t, 1);
        c.run();
        assert_eq!(std::mem::take(&mut c.heard), [Heard::RolledBack(t, 1)]);
        c.op(t, Operation::Insert, 3, &row(3, 3, "kept"), EXECUTE | tc_flags::COMMIT, 5);
        c.run();
        assert!(committed(&std::mem::take(&mut c.heard)));
        assert_eq!(
            (c.read(1), c.read(2), c.read(3)),
            (Some(values(1, 2, "old")), None, Some(values(3, 3, "kept")))
        );
    });
}

#[test]
fn waiting_operations_get_their_turn_in_order() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 0, "x"))));
        let holder = c.begin();
        c.op(holder, Operation::ReadExclusive, 1, &ALL, START | EXECUTE, 1);
        c.run();
        let waiters: Vec<_> = (0..5).map(|_| c.begin()).collect();
        for (n, t) in waiters.iter().enumerate() {
            let flags = START | EXECUTE | tc_flags::COMMIT;
            c.op(*t, Operation::Update, 1, &set_n(n as u32 + 1), flags, 1);
            c.run();
        }
        c.heard.clear();
        c.commit(holder);
        c.run();
        let order: Vec<_> = c
            .heard
            .iter()
            .filter_map(|h| match h {
                Heard::KeyConf { trans, committed: true, .. } => Some(*trans),
                _ => None,
            })
            .collect();
        assert_eq!(order, waiters);
        assert_eq!(c.read(1), Some(values(1, 5, "x")));
    });
}

#[test]
fn those_who_wait_for_a_deleted_row_look_again() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 0, "x"))));
        let holder = c.begin();
        c.op(holder, Operation::Delete, 1, &[], START | EXECUTE, 1);
        c.run();
        let (update, insert, again) = (c.begin(), c.begin(), c.begin());
        let flags = START | EXECUTE | tc_flags::COMMIT;
        for (t, operation, attr) in [
            (update, Operation::Update, set_n(1)),
            (insert, Operation::Insert, row(1, 2, "y")),
            (again, Operation::Insert, row(1, 3, "z")),
        ] {
            c.op(t, operation, 1, &attr, flags, 1);
            c.run();
        }
        c.heard.clear();
        c.commit(holder);
        c.run();
        let heard = std::mem::take(&mut c.heard);
        assert!(heard.contains(&Heard::Aborted(update, ErrorCode::TUPLE_NOT_FOUND)), "{heard:?}");
        assert!(
            heard.contains(&Heard::KeyConf { trans: insert, operations: 1, committed: true }),
            "{heard:?}"
        );
        assert!(heard.contains(&Heard::Aborted(again, ErrorCode::TUPLE_EXISTS)), "{heard:?}");
        assert_eq!(c.read(1), Some(values(1, 2, "y")));
    });
}

#[test]
fn shared_locks_share_and_of_two_upgrades_one_is_a_deadlocks_victim_at_once() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 0, "x"))));
        let (a, b) = (c.begin(), c.begin());
        c.op(a, Operation::ReadShared, 1, &ALL, START | EXECUTE, 1);
        c.op(b, Operation::ReadShared, 1, &ALL, START | EXECUTE, 1);
        c.run();
        assert_eq!(c.heard.iter().filter(|h| matches!(h, Heard::Row(..))).count(), 2);
        c.op(a, Operation::Update, 1, &set_n(1), EXECUTE, 2);
        c.run();
        c.heard.clear();
        c.op(b, Operation::Update, 1, &set_n(2), EXECUTE, 2);
        c.run();
        let heard = std::mem::take(&mut c.heard);
        assert!(heard.contains(&Heard::Aborted(b, ErrorCode::DEADLOCK)), "{heard:?}");
        c.commit(a);
        c.run();
        assert_eq!(c.read(1), Some(values(1, 1, "x")));
    });
}

#[test]
fn a_wait_ends_by_time_out_and_nowait_does_not_wait() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 0, "x"))));
        let (holder, waiter, hasty) = (c.begin(), c.begin(), c.begin());
        c.op(holder, Operation::ReadExclusive, 1, &ALL, START | EXECUTE, 1);
        c.run();
        c.op(hasty, Operation::ReadExclusive, 1, &ALL, START | EXECUTE | tc_flags::NOWAIT, 1);
        c.op(waiter, Operation::Update, 1, &set_n(1), START | EXECUTE, 1);
        c.run();
        assert!(c.heard.contains(&Heard::Aborted(hasty, ErrorCode::LOCK_NOT_AVAILABLE)));
        c.heard.clear();
        c.wait_ms(1000);
        assert_eq!(c.heard, []);
        c.wait_ms(400);
        assert_eq!(std::mem::take(&mut c.heard), [Heard::Aborted(waiter, ErrorCode::LOCK_WAIT_TIMEOUT)]);
        c.rollback(holder, ROLLBACK_ALL);
        c.run();
        assert_eq!(c.read(1), Some(values(1, 0, "x")));
    });
}

#[test]
fn locks_of_a_dead_client_go_at_once() {
    everywhere(|c| {
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 0, "x"))));
        let (holder, waiter) = (c.begin(), c.begin());
        c.op(holder, Operation::Update, 1, &set_n(1), START | EXECUTE, 1);
        c.run();
        c.op(waiter, Operation::Update, 1, &set_n(2), START | EXECUTE, 1);
        c.client_dies();
        c.assert_nothing_leaked();
        assert_eq!(c.read(1), Some(values(1, 0, "x")));
        assert!(committed(&c.alone(Operation::Update, 1, &set_n(3))));
    });
}

#[test]
fn a_client_may_die_at_any_moment() {
    for seed in 0..300 {
        let mut c = Cluster::new(&Shape::of(2), seed);
        for id in 0..4 {
            assert!(committed(&c.alone(Operation::Insert, id, &row(id, 0, "x"))));
        }
        let (a, b) = (c.begin(), c.begin());
        for id in 0..4 {
            let first = if id == 0 { START } else { 0 };
            c.op(a, Operation::Update, id, &set_n(1), first, id);
            c.op(b, Operation::Delete, 3 - id, &[], first, id);
        }
        c.op(a, Operation::Insert, 9, &row(9, 9, "y"), EXECUTE | tc_flags::COMMIT, 9);
        for _ in 0..seed % 60 {
            c.step();
        }
        c.client_dies();
        c.heard.clear();
        c.assert_nothing_leaked();
        let mut changed: Vec<bool> = (0..4).map(|id| c.read(id) == Some(values(id, 1, "x"))).collect();
        changed.push(c.read(9).is_some());
        assert!(changed.iter().all(|x| *x == changed[0]), "half a transaction: {changed:?}, seed {seed}");
    }
}

#[test]
fn full_memory_refuses_the_one_operation_and_deletes_make_room() {
    for replicas in 1..=2 {
        let shape = Shape { memory_pages: 12, ldms: 1, ..Shape::of(replicas) };
        let mut c = Cluster::new(&shape, 7);
        let text = "t".repeat(10_000);
        let mut stored = 0;
        let code = loop {
            let heard = c.alone(Operation::Insert, stored, &row(stored, stored, &text));
            match aborted(&heard) {
                Some(code) => break code,
                None => stored += 1,
            }
        };
        assert_eq!(code, ErrorCode::DATA_MEMORY_FULL);
        c.assert_nothing_leaked();
        assert!(stored > 5, "{stored} rows");
        for id in 0..stored {
            assert_eq!(c.read(id), Some(values(id, id, &text)));
        }
        for id in 0..stored {
            assert!(committed(&c.alone(Operation::Delete, id, &[])));
        }
        assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 1, &text))));
    }
}

#[test]
fn a_table_in_use_is_not_dropped_under_its_users() {
    let mut c = Cluster::new(&Shape::of(2), 3);
    let t = c.begin();
    c.op(t, Operation::Insert, 1, &row(1, 1, "x"), START | EXECUTE, 1);
    c.run();
    let table = c.table.def.id;
    let before = c.dict_answers();
    let asked = c.order(&ControlSignal::PrepDropTableReq { table });
    c.run();
    assert!(c.dict_answers() < before + asked, "somebody still has an operation on it");
    let heard = c.alone(Operation::Insert, 2, &row(2, 2, "y"));
    assert_eq!(aborted(&heard), Some(ErrorCode::TABLE_BEING_DROPPED));
    c.commit(t);
    c.run();
    assert_eq!(c.dict_answers(), before + asked);
    c.order(&ControlSignal::DropTableReq { table });
    c.wait_ms(50);
    assert!(c.pages_used().iter().all(|p| *p == 0), "{:?}", c.pages_used());
    let heard = c.alone(Operation::Insert, 2, &row(2, 2, "y"));
    assert_eq!(aborted(&heard), Some(ErrorCode::TABLE_NOT_DEFINED));
}

#[test]
fn scans_return_every_row_once_in_batches() {
    let mut c = Cluster::new(&Shape::of(2), 11);
    for id in 0..700 {
        assert!(committed(&c.alone(Operation::Insert, id, &row(id, id * 2, "text"))));
    }
    c.epoch(2 << 32);
    for batch in [1, 7, 992] {
        let rows = c.scan(TransId::NONE, batch);
        assert_eq!(rows.len(), 700);
        assert!(rows.iter().all(|(id, r)| *r == values(*id, id * 2, "text")));
    }
    c.assert_nothing_leaked();
}

#[test]
fn rows_at_the_limit_change_commit_and_roll_back_like_others() {
    use signals::table::MAX_ROW_BYTES;
    let fill = |c: char, more: usize| c.to_string().repeat(MAX_ROW_BYTES - 8 + more);
    let set_text = |text: &str| {
        let mut out = Vec::new();
        signals::attr::push(&mut out, 2, Some(text.as_bytes()));
        out
    };
    for replicas in 1..=2 {
        for seed in 0..4 {
            let mut c = Cluster::new(&Shape::of(replicas), seed);
            assert!(committed(&c.alone(Operation::Insert, 1, &row(1, 1, &fill('a', 0)))));
            assert!(committed(&c.alone(Operation::Insert, 2, &row(2, 2, "short"))));
            // Longer than a row may be: refused on every way, nothing of it stays.
            let long = fill('z', 1);
            for (operation, id, attr) in [
                (Operation::Insert, 3, row(3, 3, &long)),
                (Operation::Write, 2, row(2, 2, &long)),
                (Operation::Update, 2, set_text(&long)),
            ] {
                let heard = c.alone(operation, id, &attr);
                assert_eq!(aborted(&heard), Some(ErrorCode::RECORD_TOO_BIG), "{operation:?}");
            }
            assert_eq!((c.read(2), c.read(3)), (Some(values(2, 2, "short")), None));
            // Before and after image are both at the limit, twice over in one transaction.
            for commits in [false, true] {
                let t = c.begin();
                c.op(t, Operation::Update, 1, &set_text(&fill('b', 0)), START, 1);
                c.op(t, Operation::Update, 1, &set_text(&fill('c', 0)), 0, 2);
                c.op(t, Operation::Update, 2, &set_text(&fill('d', 0)), 0, 3);
                c.op(t, Operation::Update, 2, &set_text(&long), IGNORE, 4);
                c.op(t, Operation::ReadExclusive, 1, &ALL, EXECUTE, 5);
                c.run();
                let heard = std::mem::take(&mut c.heard);
                assert!(heard.contains(&Heard::KeyRef(4, ErrorCode::RECORD_TOO_BIG)));
                assert!(heard.contains(&Heard::Row(5, values(1, 1, &fill('c', 0)))));
                assert_eq!(c.read(1), Some(values(1, 1, &fill('a', 0))));
                if commits {
                    c.commit(t);
                } else {
                    c.rollback(t, ROLLBACK_ALL);
                }
                c.run();
                c.heard.clear();
                c.assert_nothing_leaked();
            }
            let rows = c.scan(TransId::NONE, 10);
            assert_eq!(rows[&1], values(1, 1, &fill('c', 0)));
            assert_eq!(rows[&2], values(2, 2, &fill('d', 0)));
        }
    }
}

#[test]
fn a_row_for_a_client_s_earlier_process_is_not_sent_to_the_next_one() {
    let mut c = Cluster::new(&Shape::of(2), 1);
    let ids = 1..=32;
    for id in ids.clone() {
        assert!(committed(&c.alone(Operation::Insert, id, &row(id, id, "x"))));
    }
    let rows_of_locked_reads = |c: &mut Cluster| {
        let trans = c.begin();
        for id in ids.clone() {
            let flags = if id == 1 { START } else { 0 } | if id == 32 { EXECUTE } else { 0 };
            c.op(trans, Operation::ReadShared, id, &ALL, flags, id);
        }
        c.run();
        let heard = std::mem::take(&mut c.heard);
        c.rollback(trans, ROLLBACK_ALL);
        c.run();
        c.heard.clear();
        heard.iter().filter(|h| matches!(h, Heard::Row(..))).count()
    };
    assert_eq!(rows_of_locked_reads(&mut c), 32);
    // The second node is connected to the client's next process already, the coordinator's is not.
    c.set_session(1, 1_800_000_000_000_000_000);
    let rows = rows_of_locked_reads(&mut c);
    assert!(rows > 0 && rows < 32, "{rows} rows: those of the coordinator's own node");
    c.set_session(0, 1_800_000_000_000_000_000);
    assert_eq!(rows_of_locked_reads(&mut c), 32);
    c.assert_nothing_leaked();
}
