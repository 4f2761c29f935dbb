//! Histories of lists written by hand, one good and one bad per anomaly, and a great one made by a model.

use super::*;

fn read(row: u64, list: &[Element], called: Time, answered: Time) -> Op {
    Op::Read { row, list: list.to_vec(), called, answered }
}

fn append(row: u64, element: Element) -> Op {
    Op::Append { row, element }
}

fn txn(begun: Time, outcome: Outcome, ops: Vec<Op>) -> Txn {
    Txn { client: begun, begun, outcome, locks: true, ops }
}

/// Appends and is acknowledged.
fn adds(begun: Time, end: Time, appends: &[(u64, Element)]) -> Txn {
    txn(begun, Outcome::Ok(end), appends.iter().map(|(row, element)| append(*row, *element)).collect())
}

/// Reads under locks all the time from `begun` to `end`.
fn looks(begun: Time, end: Time, lists: &[(u64, &[Element])]) -> Txn {
    let ops = lists.iter().map(|(row, list)| read(*row, list, begun, end)).collect();
    txn(begun, Outcome::Ok(end), ops)
}

/// Reads without locks.
fn peeks(begun: Time, end: Time, lists: &[(u64, &[Element])]) -> Txn {
    Txn { locks: false, ..looks(begun, end, lists) }
}

#[track_caller]
fn bad(history: &[Txn], what: &str) {
    let verdict = check(history).unwrap_err();
    assert!(verdict.contains(what), "{verdict}");
}

#[track_caller]
fn good(history: &[Txn]) {
    assert_eq!(check(history), Ok(()));
}

#[test]
fn one_after_the_other() {
    good(&[
        looks(1, 2, &[(1, &[]), (2, &[])]),
        adds(10, 11, &[(1, 1), (2, 2)]),
        adds(12, 13, &[(1, 3)]),
        looks(14, 15, &[(1, &[1, 3]), (2, &[2])]),
        peeks(14, 15, &[(1, &[1, 3]), (2, &[2])]),
    ]);
    // Its own appends are seen before they are committed.
    good(&[
        txn(10, Outcome::Ok(15), vec![append(1, 1), read(1, &[1], 12, 13), append(1, 2)]),
        looks(20, 21, &[(1, &[1, 2])]),
    ]);
    bad(&[txn(10, Outcome::Ok(15), vec![append(1, 1), read(1, &[], 12, 13)])], "its own appends");
}

#[test]
fn lost_appends() {
    let write = adds(10, 11, &[(1, 1)]);
    bad(&[write.clone(), looks(20, 21, &[(1, &[])])], "lost append");
    bad(&[write.clone(), peeks(20, 21, &[(1, &[])])], "lost append");
    bad(&[write.clone(), adds(12, 13, &[(1, 2)]), looks(20, 21, &[(1, &[2])])], "lost append");
    good(&[write.clone(), peeks(10, 21, &[(1, &[])])]);
    good(&[txn(10, Outcome::Unknown, vec![append(1, 1)]), looks(20, 21, &[(1, &[])])]);
    // Nobody looked again: nothing is known.
    good(&[write]);
}

#[test]
fn dirty_reads_and_elements_from_nowhere() {
    let failed = txn(10, Outcome::Failed, vec![append(1, 1)]);
    bad(&[failed.clone(), looks(20, 21, &[(1, &[1])])], "dirty read");
    bad(&[failed.clone(), peeks(12, 21, &[(1, &[1])])], "dirty read");
    bad(
        &[failed.clone(), adds(11, 12, &[(1, 2)]), peeks(13, 14, &[(1, &[1])]), looks(20, 21, &[(1, &[2])])],
        "dirty read",
    );
    good(&[failed, looks(20, 21, &[(1, &[])])]);
    bad(&[looks(20, 21, &[(1, &[9])])], "nobody appended 9");
    bad(&[adds(10, 11, &[(2, 9)]), looks(20, 21, &[(1, &[9])])], "appended to row 2");
    bad(&[adds(30, 31, &[(1, 9)]), looks(20, 21, &[(1, &[9])])], "had not begun");
}

#[test]
fn duplicates_and_lists_that_do_not_agree() {
    bad(&[adds(10, 11, &[(1, 1)]), looks(20, 21, &[(1, &[1, 1])])], "duplicate append");
    let (one, two) = (adds(10, 19, &[(1, 1)]), adds(10, 19, &[(1, 2)]));
    bad(
        &[one.clone(), two.clone(), looks(20, 21, &[(1, &[1, 2])]), peeks(20, 21, &[(1, &[2, 1])])],
        "no prefixes",
    );
    bad(
        &[one.clone(), two.clone(), peeks(11, 12, &[(1, &[2])]), looks(20, 21, &[(1, &[1, 2])])],
        "no prefixes",
    );
    good(&[one, two, peeks(11, 12, &[(1, &[1])]), looks(20, 21, &[(1, &[1, 2])])]);
}

#[test]
fn stale_reads() {
    let (one, two) = (adds(10, 11, &[(1, 1)]), adds(12, 20, &[(1, 2)]));
    let last = looks(50, 51, &[(1, &[1, 2])]);
    bad(&[one.clone(), two.clone(), peeks(21, 22, &[(1, &[1])]), last.clone()], "stale read");
    bad(&[one.clone(), two.clone(), looks(21, 22, &[(1, &[1])]), last.clone()], "stale read");
    // New, then old, while the commit is not acknowledged: without locks only.
    let new = peeks(13, 14, &[(1, &[1, 2])]);
    good(&[one.clone(), two.clone(), new.clone(), peeks(15, 16, &[(1, &[1])]), last.clone()]);
    bad(&[one.clone(), two.clone(), new, looks(15, 16, &[(1, &[1])]), last.clone()], "stale locked read");
    // Seen under a lock of a transaction that did not come through: seen all the same.
    let aborted = txn(13, Outcome::Failed, vec![read(1, &[1, 2], 13, 14)]);
    bad(&[one, two, aborted, looks(15, 16, &[(1, &[1])]), last], "stale locked read");
}

#[test]
fn fractured_transactions() {
    let write = adds(10, 20, &[(1, 1), (2, 2)]);
    // Without locks, half of it may be seen only before it is acknowledged.
    good(&[write.clone(), peeks(12, 13, &[(1, &[1]), (2, &[])]), looks(30, 31, &[(2, &[2])])]);
    bad(&[write.clone(), peeks(21, 22, &[(1, &[1]), (2, &[])])], "lost append");
    bad(&[write.clone(), peeks(21, 22, &[(1, &[1]), (2, &[])]), looks(30, 31, &[(2, &[2])])], "stale read");
    // Under locks, never.
    bad(&[write, looks(12, 13, &[(1, &[1]), (2, &[])]), looks(30, 31, &[(2, &[2])])], "G-single");
    // Of an unknown one that somebody saw, all must be there.
    let unknown = txn(10, Outcome::Unknown, vec![append(1, 1), append(2, 2)]);
    bad(
        &[unknown.clone(), looks(30, 31, &[(1, &[1])]), looks(32, 33, &[(2, &[])])],
        "G-single, with real time",
    );
    good(&[unknown.clone(), looks(30, 31, &[(1, &[1])]), looks(32, 33, &[(2, &[2])])]);
    good(&[unknown, looks(30, 31, &[(1, &[])]), looks(32, 33, &[(2, &[])])]);
    // In the middle of what one transaction appends to one list.
    let write = adds(10, 20, &[(1, 1), (1, 2)]);
    bad(&[write.clone(), peeks(12, 13, &[(1, &[1])]), looks(30, 31, &[(1, &[1, 2])])], "fractured read");
    good(&[write, peeks(12, 13, &[(1, &[])]), looks(30, 31, &[(1, &[1, 2])])]);
}

#[test]
fn circles() {
    // G0: two transactions append in different orders.
    let (one, two) = (adds(10, 20, &[(1, 1), (2, 2)]), adds(10, 20, &[(1, 3), (2, 4)]));
    let last = |first: &[Element], second: &[Element]| looks(30, 31, &[(1, first), (2, second)]);
    bad(&[one.clone(), two.clone(), last(&[1, 3], &[4, 2])], "G0");
    good(&[one, two, last(&[1, 3], &[2, 4])]);
    // G1c: each sees the other's append.
    let both = |first: &[Element], second: &[Element]| {
        [
            txn(10, Outcome::Ok(20), vec![append(1, 1), read(2, second, 12, 18)]),
            txn(10, Outcome::Ok(20), vec![append(2, 2), read(1, first, 12, 18)]),
            looks(30, 31, &[(1, &[1]), (2, &[2])]),
        ]
    };
    bad(&both(&[1], &[2]), "G1c");
    // G2: write skew, neither sees the other's.
    bad(&both(&[], &[]), "G2");
    good(&both(&[1], &[]));
    // The same, one of them never seen by anybody.
    let skew = both(&[], &[]);
    bad(&skew[..2], "G2");
}

/// A database that is serial: each transaction happens at a moment within its time.
fn model(count: u64, rows: u64, clients: u64) -> Vec<Txn> {
    let mut random = 99u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut lists: BTreeMap<u64, Vec<Element>> = BTreeMap::new();
    let mut txns = Vec::new();
    let mut element = 0;
    for i in 0..count {
        let at = 10_000 + i * 100;
        let (begun, end) = (at - next(clients * 50), at + 1 + next(clients * 50));
        let locks = next(10) > 0;
        let mut ops = Vec::new();
        for _ in 0..=next(4) {
            let row = next(rows);
            let list = lists.entry(row).or_default();
            if locks && next(3) > 0 && list.len() < 600 {
                ops.push(read(row, list, begun, end));
                element += 1;
                list.push(element);
                ops.push(append(row, element));
            } else {
                ops.push(read(row, list, begun, end));
            }
        }
        let unknown = next(50) == 0;
        let outcome = if unknown { Outcome::Unknown } else { Outcome::Ok(end) };
        txns.push(Txn { client: i % clients, begun, outcome, locks, ops });
    }
    txns
}

#[test]
fn thousands_of_transactions_are_judged_quickly() {
    let mut history = model(4000, 12, 8);
    let begun = std::time::Instant::now();
    assert_eq!(check(&history), Ok(()));
    // One that misses what was acknowledged long before.
    let row = history.iter().flat_map(Txn::appends).next().unwrap().0;
    let end = 10_000_000;
    history.push(looks(end, end + 1, &[(row, &[])]));
    let verdict = check(&history).unwrap_err();
    assert!(verdict.contains("stale read") || verdict.contains("lost append"), "{verdict}");
    // Generous: the machine may be busy. It takes some hundredths of a second.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}
