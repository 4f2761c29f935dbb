//! Stories about deadlocks: circles of every kind end at once by one victim, and nothing else is taken for
//! one.
//!
//! No story lets time pass while it waits for a deadlock to end (there is no tick in them), so the lock
//! time-out has no part in any.

use crate::testing::*;
use signals::ErrorCode;
use signals::ids::TransId;
use signals::keyop::{Operation, ROLLBACK_ALL, tc_flags};
use std::collections::BTreeMap;

const START: u8 = tc_flags::START;
const EXECUTE: u8 = tc_flags::EXECUTE;

/// Delivery orders per story and shape.
const ORDERS: u64 = 50;

/// The story on one node, on a node group of two, and on two node groups, each in many delivery orders.
fn everywhere(story: impl Fn(&mut Cluster, &[u8])) {
    let groups: [Vec<Vec<u8>>; 3] = [vec![vec![1]], vec![vec![1, 2]], vec![vec![1, 2], vec![3, 4]]];
    for groups in groups {
        let nodes: Vec<u8> = groups.iter().flatten().copied().collect();
        for seed in 0..ORDERS {
            let shape = Shape { groups: groups.clone(), ..Shape::of(1) };
            let mut c = Cluster::new(&shape, seed);
            story(&mut c, &nodes);
            c.run();
            c.assert_nothing_leaked();
        }
    }
}

/// `count` rows of one LDM if `together`, else of as many LDMs as there are; they exist, with n = 0.
fn rows(c: &mut Cluster, count: usize, together: bool) -> Vec<u32> {
    let mut places: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for id in 1..200 {
        places.entry(c.primary(id)).or_default().push(id);
    }
    let ids: Vec<u32> = if together {
        places.into_values().next().unwrap().into_iter().take(count).collect()
    } else {
        let lists: Vec<_> = places.into_values().collect();
        (0..count).map(|i| lists[i % lists.len()][i / lists.len()]).collect()
    };
    assert_eq!(ids.len(), count);
    insert(c, &ids);
    ids
}

fn insert(c: &mut Cluster, ids: &[u32]) {
    for id in ids {
        let heard = c.alone(Operation::Insert, *id, &row(*id, 0, "x"));
        assert!(matches!(heard[..], [Heard::KeyConf { committed: true, .. }]), "{heard:?}");
    }
}

fn n_of(c: &mut Cluster, id: u32) -> u32 {
    let columns = c.read(id).expect("the row exists");
    u32::from_le_bytes(columns[1].1.clone().unwrap().try_into().unwrap())
}

/// Begins a transaction at a TC with an update of one row, and lets it get it.
fn holder(c: &mut Cluster, node: u8, id: u32) -> TransId {
    let trans = c.begin_at(node);
    c.op(trans, Operation::Update, id, &set_n(1), START | EXECUTE, 1);
    c.run();
    assert_eq!(std::mem::take(&mut c.heard), [Heard::KeyConf { trans, operations: 1, committed: false }]);
    trans
}

/// Sends one more update.
fn ask(c: &mut Cluster, trans: TransId, id: u32) {
    c.op(trans, Operation::Update, id, &set_n(2), EXECUTE, 2);
}

/// What was heard since: transactions aborted as victims; nothing else may have been.
fn victims(c: &mut Cluster) -> Vec<TransId> {
    let aborted = c.heard.iter().filter_map(|h| match h {
        Heard::Aborted(trans, code) => {
            assert_eq!(*code, ErrorCode::DEADLOCK);
            Some(*trans)
        }
        _ => None,
    });
    aborted.collect()
}

/// Commits transactions one after the other; each must be able to by then.
fn commit_all(c: &mut Cluster, all: &[TransId]) {
    for trans in all {
        c.heard.clear();
        c.commit(*trans);
        c.run();
        assert!(c.heard.contains(&Heard::Committed(*trans)), "{trans:?}: {:?}", c.heard);
    }
}

/// A ring of transactions, each asking for what the next one holds, has one victim: the youngest.
fn ring(c: &mut Cluster, nodes: &[u8], length: usize, together: bool) {
    let ids = rows(c, length, together);
    let all: Vec<TransId> = (0..length).map(|i| holder(c, nodes[i % nodes.len()], ids[i])).collect();
    for i in 0..length {
        ask(c, all[i], ids[(i + 1) % length]);
    }
    let before = c.now;
    c.run();
    assert_eq!(victims(c), [all[length - 1]], "the one that began last");
    assert_eq!(c.now, before);
    // The one that asked for the victim's row has it, and they end in turn.
    let order: Vec<TransId> = (0..length - 1).rev().map(|i| all[i]).collect();
    commit_all(c, &order);
    assert_eq!(n_of(c, ids[0]), 1, "asked for by the victim alone");
    for id in &ids[1..] {
        assert_eq!(n_of(c, *id), 2);
    }
}

#[test]
fn two_transactions_that_wait_for_each_other_have_one_victim() {
    everywhere(|c, nodes| ring(c, nodes, 2, true));
    everywhere(|c, nodes| ring(c, nodes, 2, false));
}

#[test]
fn three_transactions_in_a_ring_have_one_victim() {
    everywhere(|c, nodes| ring(c, nodes, 3, true));
    everywhere(|c, nodes| ring(c, nodes, 3, false));
}

#[test]
fn long_rings_have_one_victim() {
    everywhere(|c, nodes| ring(c, nodes, 40, false));
}

#[test]
fn the_victim_is_the_youngest_whatever_its_name() {
    for youngest in 0..3 {
        everywhere(|c, nodes| {
            let ids = rows(c, 3, false);
            let all: Vec<TransId> = (0..3).map(|i| c.begin_at(nodes[i % nodes.len()])).collect();
            for i in (0..3).filter(|i| *i != youngest).chain([youngest]) {
                c.op(all[i], Operation::Update, ids[i], &set_n(1), START | EXECUTE, 1);
                c.wait_ms(20);
            }
            c.heard.clear();
            for i in 0..3 {
                ask(c, all[i], ids[(i + 1) % 3]);
            }
            c.run();
            assert_eq!(victims(c), [all[youngest]]);
            commit_all(c, &[all[(youngest + 2) % 3], all[(youngest + 1) % 3]]);
        });
    }
}

#[test]
fn of_three_who_want_their_shared_row_alone_one_gets_it() {
    everywhere(|c, nodes| {
        let id = rows(c, 1, true)[0];
        let all: Vec<TransId> = (0..3).map(|i| c.begin_at(nodes[i % nodes.len()])).collect();
        for trans in &all {
            c.op(*trans, Operation::ReadShared, id, &ALL, START | EXECUTE, 1);
        }
        c.run();
        c.heard.clear();
        for trans in &all {
            ask(c, *trans, id);
        }
        c.run();
        let mut ended = victims(c);
        ended.sort();
        assert_eq!(ended, all[1..], "the eldest stays");
        commit_all(c, &all[..1]);
        assert_eq!(n_of(c, id), 2);
    });
}

#[test]
fn a_transaction_does_not_wait_for_itself() {
    everywhere(|c, nodes| {
        let id = rows(c, 1, true)[0];
        let (sharer, twice, behind) = (c.begin_at(nodes[0]), c.begin(), c.begin());
        c.op(sharer, Operation::ReadShared, id, &ALL, START | EXECUTE, 1);
        c.op(twice, Operation::ReadShared, id, &ALL, START | EXECUTE, 1);
        c.run();
        // Two changes in one batch, to a row it shares: the second must follow the first.
        c.op(twice, Operation::Update, id, &set_n(5), 0, 2);
        c.op(behind, Operation::Update, id, &set_n(9), START, 1);
        c.op(twice, Operation::Update, id, &set_n(6), EXECUTE, 3);
        c.op(behind, Operation::Update, id, &set_n(10), EXECUTE, 2);
        c.run();
        assert_eq!(victims(c), []);
        commit_all(c, &[sharer, twice]);
        assert_eq!(n_of(c, id), 6);
        commit_all(c, &[behind]);
        assert_eq!(n_of(c, id), 10);
    });
}

#[test]
fn batches_that_wait_for_one_row_twice_get_it_in_turn() {
    everywhere(|c, nodes| {
        let id = rows(c, 1, true)[0];
        let first = holder(c, nodes[0], id);
        let (a, b) = (c.begin(), c.begin());
        c.op(a, Operation::Update, id, &set_n(3), START, 1);
        c.op(b, Operation::Update, id, &set_n(5), START, 1);
        c.op(a, Operation::Update, id, &set_n(4), EXECUTE, 2);
        c.op(b, Operation::Update, id, &set_n(6), EXECUTE, 2);
        c.run();
        assert_eq!(victims(c), []);
        commit_all(c, &[first, a]);
        assert_eq!(n_of(c, id), 4);
        commit_all(c, &[b]);
        assert_eq!(n_of(c, id), 6);
    });
}

#[test]
fn a_circle_may_lead_through_one_who_waits_in_the_same_queue() {
    everywhere(|c, nodes| {
        let ids = rows(c, 2, false);
        let at = |i: usize| nodes[i % nodes.len()];
        let bystander = holder(c, at(0), ids[0]);
        let second = holder(c, at(1), ids[1]);
        // Waits for both rows at a time, so the second stands behind it for the first row.
        let both = c.begin_at(at(2));
        c.op(both, Operation::Update, ids[0], &set_n(7), START, 1);
        c.op(both, Operation::Update, ids[1], &set_n(7), EXECUTE, 2);
        c.run();
        assert_eq!(c.heard, [], "nothing to find yet");
        ask(c, second, ids[0]);
        c.run();
        assert_eq!(victims(c), [both]);
        commit_all(c, &[bystander, second]);
        assert_eq!((n_of(c, ids[0]), n_of(c, ids[1])), (2, 1));
    });
}

#[test]
fn a_circle_through_a_queue_is_found_in_whatever_order_it_forms() {
    let mut found = [0, 0];
    for seed in 0..400 {
        let mut c = Cluster::new(&Shape { groups: vec![vec![1, 2], vec![3, 4]], ..Shape::of(1) }, seed);
        let ids = rows(&mut c, 2, false);
        let bystander = holder(&mut c, 1, ids[0]);
        let second = holder(&mut c, 2, ids[1]);
        let both = c.begin_at(3);
        c.op(both, Operation::Update, ids[0], &set_n(7), START, 1);
        c.op(both, Operation::Update, ids[1], &set_n(7), EXECUTE, 2);
        ask(&mut c, second, ids[0]);
        c.run();
        let ended = victims(&mut c);
        found[ended.len()] += 1;
        // If `second` came first to the first row's queue there is no circle.
        assert!(ended.is_empty() || ended == [both], "{ended:?}");
        commit_all(&mut c, &[bystander, second]);
        if ended.is_empty() {
            commit_all(&mut c, &[both]);
        }
        c.assert_nothing_leaked();
    }
    assert!(found[0] > 20 && found[1] > 20, "{found:?}");
}

#[test]
fn those_who_will_share_a_row_do_not_wait_for_each_other() {
    everywhere(|c, nodes| {
        let ids = rows(c, 2, false);
        let bystander = holder(c, nodes[0], ids[0]);
        let second = holder(c, nodes[0], ids[1]);
        let both = c.begin();
        c.op(both, Operation::ReadShared, ids[0], &ALL, START, 1);
        c.op(both, Operation::Update, ids[1], &set_n(7), EXECUTE, 2);
        c.run();
        // Behind `both` in the queue of the first row, but let in together with it.
        c.op(second, Operation::ReadShared, ids[0], &ALL, EXECUTE, 2);
        c.run();
        assert_eq!(victims(c), []);
        commit_all(c, &[bystander, second, both]);
        assert_eq!((n_of(c, ids[0]), n_of(c, ids[1])), (1, 7));
    });
}

#[test]
fn a_circle_that_a_grant_closes_is_found() {
    everywhere(|c, nodes| {
        let ids = rows(c, 3, false);
        let at = |i: usize| nodes[i % nodes.len()];
        let first = holder(c, at(0), ids[0]);
        let (a, b) = (holder(c, at(1), ids[1]), holder(c, at(2), ids[2]));
        ask(c, a, ids[0]);
        c.run();
        ask(c, b, ids[0]);
        c.run();
        commit_all(c, &[first]);
        assert_eq!(victims(c), []);
        // `a` has the row that `b` waits for, which it did not when `b` began to wait.
        ask(c, a, ids[2]);
        c.run();
        assert_eq!(victims(c), [b]);
        commit_all(c, &[a]);
        assert_eq!([n_of(c, ids[0]), n_of(c, ids[1]), n_of(c, ids[2])], [2, 1, 2]);
    });
}

#[test]
fn a_waiter_may_leave_from_the_middle_of_a_queue() {
    everywhere(|c, nodes| {
        let ids = rows(c, 3, false);
        let at = |i: usize| nodes[i % nodes.len()];
        let first = holder(c, at(0), ids[0]);
        let (leaves, stays) = (holder(c, at(1), ids[1]), holder(c, at(2), ids[2]));
        ask(c, leaves, ids[0]);
        c.run();
        ask(c, stays, ids[0]);
        c.run();
        c.rollback(leaves, ROLLBACK_ALL);
        c.run();
        assert_eq!(std::mem::take(&mut c.heard), [Heard::RolledBack(leaves, ROLLBACK_ALL)]);
        ask(c, first, ids[2]);
        c.run();
        assert_eq!(victims(c), [stays]);
        commit_all(c, &[first]);
        assert_eq!([n_of(c, ids[0]), n_of(c, ids[1]), n_of(c, ids[2])], [1, 0, 2]);
    });
}

#[test]
fn two_rings_through_one_wait_end_both() {
    everywhere(|c, nodes| {
        // `hub` waits for two who share a row, and each of them waits for `far`, which waits for `hub`.
        let ids = rows(c, 3, false);
        let at = |i: usize| nodes[i % nodes.len()];
        let hub = holder(c, at(0), ids[0]);
        let far = holder(c, at(1), ids[1]);
        let sharers = [c.begin_at(at(2)), c.begin_at(at(3))];
        for trans in sharers {
            c.op(trans, Operation::ReadShared, ids[2], &ALL, START | EXECUTE, 1);
        }
        c.run();
        c.heard.clear();
        for trans in sharers {
            c.op(trans, Operation::ReadShared, ids[1], &ALL, EXECUTE, 2);
        }
        c.run();
        ask(c, far, ids[0]);
        ask(c, hub, ids[2]);
        c.run();
        let mut ended = victims(c);
        ended.sort();
        assert_eq!(ended, sharers, "each the youngest of its ring");
        commit_all(c, &[hub, far]);
    });
}

#[test]
fn a_hot_row_costs_few_probes() {
    let mut c = Cluster::new(&Shape { operations_max: 3000, ..Shape::of(2) }, 7);
    let ids: Vec<u32> = (1..=201).collect();
    insert(&mut c, &ids);
    let hot = ids[200];
    let first = holder(&mut c, 1, hot);
    let lone: Vec<TransId> = (0..200).map(|i| c.begin_at(1 + i % 2)).collect();
    for trans in &lone {
        c.op(*trans, Operation::Update, hot, &set_n(3), START | EXECUTE, 1);
    }
    c.run();
    assert_eq!((c.probes, victims(&mut c)), (0, vec![]), "nobody can wait for who has nothing else");
    for trans in &lone {
        c.rollback(*trans, ROLLBACK_ALL);
    }
    c.run();
    c.heard.clear();
    // The same with a row of its own for each: one probe to the hot row, one from there to its holder.
    let owners: Vec<TransId> = (0..200).map(|i| holder(&mut c, 1 + i % 2, ids[usize::from(i)])).collect();
    for trans in &owners {
        ask(&mut c, *trans, hot);
    }
    c.run();
    assert_eq!(victims(&mut c), []);
    assert_eq!(c.probes, 2 * owners.len());
    commit_all(&mut c, &[first]);
    // They get it in some order of arrival; each that has it commits.
    let mut left = owners;
    while !left.is_empty() {
        let heard = std::mem::take(&mut c.heard);
        let has =
            |t: &TransId| heard.contains(&Heard::KeyConf { trans: *t, operations: 2, committed: false });
        let at = left.iter().position(has).expect("somebody's turn");
        let trans = left.swap_remove(at);
        c.commit(trans);
        c.run();
        assert!(c.heard.contains(&Heard::Committed(trans)));
    }
    c.assert_nothing_leaked();
}

/// One client of a workload: batches of operations on rows, sent when the one before is through, then a
/// commit.
struct Script {
    batches: Vec<Vec<(Operation, u32)>>,
    node: u8,
    trans: TransId,
    next: usize,
    over: bool,
}

impl Script {
    fn send(&mut self, c: &mut Cluster) {
        let Some(batch) = self.batches.get(self.next) else {
            c.commit(self.trans);
            return;
        };
        if self.next == 0 {
            self.trans = c.begin_at(self.node);
        }
        for (i, (operation, id)) in batch.iter().enumerate() {
            let start = if self.next == 0 && i == 0 { START } else { 0 };
            let execute = if i + 1 == batch.len() { EXECUTE } else { 0 };
            let attr = match operation {
                Operation::ReadShared | Operation::ReadExclusive => ALL.to_vec(),
                Operation::Delete => vec![],
                _ => row(*id, 1, "y"),
            };
            c.op(self.trans, *operation, *id, &attr, start | execute, i as u32);
        }
        self.next += 1;
    }
}

/// Plays scripts until all have committed; victims begin anew. Returns how many there were.
fn play(c: &mut Cluster, scripts: &mut [Script]) -> usize {
    let before = c.now;
    let mut ended = 0;
    for script in &mut *scripts {
        script.send(c);
    }
    loop {
        let moved = c.step();
        for heard in std::mem::take(&mut c.heard) {
            let trans = match &heard {
                Heard::Row(..) => continue,
                // The last of a batch came when its transaction was over already.
                Heard::Aborted(_, ErrorCode::TRANSACTION_ALREADY_ABORTED) => continue,
                Heard::KeyConf { trans, .. } | Heard::Committed(trans) | Heard::Aborted(trans, _) => *trans,
                other => panic!("{other:?}"),
            };
            let script = scripts.iter_mut().find(|s| s.trans == trans).expect("a script's transaction");
            match heard {
                Heard::Committed(_) => script.over = true,
                Heard::Aborted(_, ErrorCode::TUPLE_NOT_FOUND) => script.over = true,
                Heard::Aborted(_, code) => {
                    assert_eq!(code, ErrorCode::DEADLOCK);
                    ended += 1;
                    script.next = 0;
                    script.send(c);
                }
                _ => script.send(c),
            }
        }
        if !moved {
            break;
        }
    }
    let stuck = scripts.iter().filter(|s| !s.over).count();
    assert_eq!(stuck, 0, "a deadlock was not found");
    assert_eq!(c.now, before);
    c.assert_nothing_leaked();
    ended
}

/// Reproducible choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32 % below
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u32) as usize]
    }
}

fn workload(seed: u64, make: impl Fn(&mut Dice) -> Vec<Vec<(Operation, u32)>>) -> (usize, usize) {
    let mut c = Cluster::new(&Shape { groups: vec![vec![1, 2], vec![3, 4]], ..Shape::of(1) }, seed);
    insert(&mut c, &(0..8).collect::<Vec<u32>>());
    let mut dice = Dice(seed);
    let mut scripts: Vec<Script> = (0..16)
        .map(|i| Script {
            batches: make(&mut dice),
            node: 1 + i % 4,
            trans: TransId::NONE,
            next: 0,
            over: false,
        })
        .collect();
    let ended = play(&mut c, &mut scripts);
    (ended, c.probes)
}

#[test]
fn who_locks_rows_in_one_order_is_never_a_victim() {
    let mut probes = 0;
    for seed in 0..150 {
        let (ended, sent) = workload(seed, |dice| {
            let mut steps = Vec::new();
            for id in 0..8 {
                if dice.roll(2) == 0 {
                    let kinds = [Operation::ReadShared, Operation::ReadExclusive, Operation::Write];
                    steps.push(vec![(dice.pick(&kinds), id)]);
                }
            }
            if steps.is_empty() { vec![vec![(Operation::Write, 0)]] } else { steps }
        });
        assert_eq!(ended, 0, "seed {seed}");
        probes += sent;
    }
    assert!(probes > 1000, "{probes}");
}

#[test]
fn a_workload_without_any_order_needs_no_time_out() {
    let mut ended = 0;
    for seed in 0..600 {
        let (victims, _) = workload(seed, |dice| {
            let kinds =
                [Operation::ReadShared, Operation::ReadExclusive, Operation::Write, Operation::Delete];
            let rows = 2 + dice.roll(7);
            (0..1 + dice.roll(4))
                .map(|_| (0..1 + dice.roll(3)).map(|_| (dice.pick(&kinds), dice.roll(rows))).collect())
                .collect()
        });
        ended += victims;
    }
    assert!(ended > 3000, "{ended}");
}
