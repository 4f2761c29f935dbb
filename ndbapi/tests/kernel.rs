//! The client core with the real kernel, on one thread and from one seed.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

mod simulator;

use ndbapi::core::CommitMode::{Commit, NoCommit};
use ndbapi::core::{Executed, TransRef};
use ndbapi::{Batch, NdbError, OpId, ScanSpec};
use signals::ErrorCode;
use signals::keyop::Operation::{
    self, Delete, Insert, ReadCommitted, ReadExclusive, ReadShared, Update, Write,
};
use simulator::Sim;
use std::collections::BTreeMap;

/// A transfer under way: its transaction, the tag of what it waits for, its accounts, whether it reads them
/// still.
type Transfer = (TransRef, u64, [u32; 2], bool);

const OP: OpId = OpId(0);

/// A batch of operations that set `n` to their number.
fn batch(sim: &Sim, ops: &[(Operation, u32, i64)]) -> Batch {
    let mut batch = Batch::new();
    for (operation, id, n) in ops {
        add(sim, &mut batch, *operation, *id, *n, false);
    }
    batch
}

fn add(sim: &Sim, batch: &mut Batch, operation: Operation, id: u32, n: i64, ignore: bool) -> OpId {
    let op = batch.op(&sim.table, operation).key(&[id.into()]);
    let op = match operation {
        Insert | Write | Update => op.set("n", n).set("s", &format!("row {id}")),
        ReadCommitted | ReadShared | ReadExclusive | Delete => op,
    };
    let op = if ignore { op.ignore_error(true) } else { op };
    op.finish().unwrap()
}

fn alone(sim: &mut Sim, client: usize, operation: Operation, id: u32, n: i64) -> Result<Executed, NdbError> {
    let batch = batch(sim, &[(operation, id, n)]);
    sim.execute(client, None, batch, Commit).1
}

fn n_of(sim: &mut Sim, client: usize, trans: Option<TransRef>, operation: Operation, id: u32) -> Option<i64> {
    let batch = batch(sim, &[(operation, id, 0)]);
    let (batch, result) = sim.execute(client, trans, batch, if trans.is_some() { NoCommit } else { Commit });
    result.unwrap();
    batch.row(OP).unwrap().map(|row| {
        assert_eq!(row.get_u32("id"), Ok(Some(id)));
        assert_eq!(row.get_str("s"), Ok(Some(&*format!("row {id}"))));
        row.get_i64("n").unwrap().unwrap()
    })
}

/// Every replica in turn shows the same.
fn committed(sim: &mut Sim, id: u32) -> Option<i64> {
    let seen: Vec<_> = (0..4).map(|_| n_of(sim, 0, None, ReadCommitted, id)).collect();
    assert!(seen.windows(2).all(|w| w[0] == w[1]), "{seen:?}");
    seen[0]
}

#[test]
fn rows_live_through_lone_operations_on_all_replicas() {
    for replicas in [1, 2] {
        for seed in 0..20 {
            let mut sim = Sim::new(replicas, 1, seed);
            assert!(alone(&mut sim, 0, Insert, 1, 10).unwrap().committed.is_some());
            assert_eq!(committed(&mut sim, 1), Some(10));
            assert_eq!(alone(&mut sim, 0, Insert, 1, 11), Err(ErrorCode::TUPLE_EXISTS.into()));
            assert_eq!(alone(&mut sim, 0, Update, 2, 1), Err(ErrorCode::TUPLE_NOT_FOUND.into()));
            alone(&mut sim, 0, Update, 1, 12).unwrap();
            assert_eq!(committed(&mut sim, 1), Some(12));
            alone(&mut sim, 0, Write, 1, 13).unwrap();
            alone(&mut sim, 0, Write, 2, 20).unwrap();
            assert_eq!((committed(&mut sim, 1), committed(&mut sim, 2)), (Some(13), Some(20)));
            alone(&mut sim, 0, Delete, 1, 0).unwrap();
            assert_eq!(committed(&mut sim, 1), None);
            assert_eq!(alone(&mut sim, 0, Delete, 1, 0), Err(ErrorCode::TUPLE_NOT_FOUND.into()));
            sim.assert_nothing_leaked();
        }
    }
}

#[test]
fn a_transaction_is_seen_by_itself_then_by_all_or_by_none() {
    for seed in 0..20 {
        let mut sim = Sim::new(2, 2, seed);
        alone(&mut sim, 0, Insert, 1, 10).unwrap();
        for commit in [false, true] {
            let trans = sim.begin(0);
            let ops = batch(&sim, &[(Update, 1, 11), (Insert, 2, 20), (Insert, 3, 30), (Delete, 3, 0)]);
            sim.execute(0, Some(trans), ops, NoCommit).1.unwrap();
            assert_eq!(n_of(&mut sim, 0, Some(trans), ReadCommitted, 1), Some(11));
            assert_eq!(n_of(&mut sim, 0, Some(trans), ReadShared, 2), Some(20));
            assert_eq!(n_of(&mut sim, 0, Some(trans), ReadCommitted, 3), None);
            let own = sim.scan(0, Some(trans), ScanSpec::new(&sim.table.clone()).batch(1, 1000));
            assert_eq!(own.iter().map(|(id, v)| (*id, v.0.unwrap())).collect::<Vec<_>>(), [(1, 11), (2, 20)]);
            assert_eq!(n_of(&mut sim, 1, None, ReadCommitted, 1), Some(10));
            assert_eq!(n_of(&mut sim, 1, None, ReadCommitted, 2), None);
            if commit {
                sim.execute(0, Some(trans), Batch::new(), Commit).1.unwrap();
            } else {
                sim.rollback(0, trans, None).unwrap();
            }
            sim.release(0, trans);
            let (one, two) = if commit { (Some(11), Some(20)) } else { (Some(10), None) };
            assert_eq!((committed(&mut sim, 1), committed(&mut sim, 2)), (one, two));
        }
        sim.assert_nothing_leaked();
    }
}

#[test]
fn failures_that_may_happen_leave_the_transaction_alive() {
    for seed in 0..20 {
        let mut sim = Sim::new(2, 1, seed);
        alone(&mut sim, 0, Insert, 1, 10).unwrap();
        let trans = sim.begin(0);
        let mut ops = Batch::new();
        let bad = add(&sim, &mut ops, Insert, 1, 99, true);
        let good = add(&sim, &mut ops, Insert, 2, 20, true);
        let read = add(&sim, &mut ops, ReadExclusive, 7, 0, true);
        let (ops, result) = sim.execute(0, Some(trans), ops, NoCommit);
        result.unwrap();
        assert_eq!(ops.result(bad), Err(ErrorCode::TUPLE_EXISTS.into()));
        assert_eq!(ops.result(good), Ok(()));
        assert!(ops.row(read).unwrap().is_none());
        let more = batch(&sim, &[(Update, 2, 21)]);
        sim.execute(0, Some(trans), more, Commit).1.unwrap();
        sim.release(0, trans);
        assert_eq!((committed(&mut sim, 1), committed(&mut sim, 2)), (Some(10), Some(21)));
        // One that may not ends it.
        let trans = sim.begin(0);
        let ops = batch(&sim, &[(Update, 2, 22), (Insert, 1, 1), (Update, 1, 1)]);
        let (ops, result) = sim.execute(0, Some(trans), ops, NoCommit);
        assert_eq!(result, Err(ErrorCode::TUPLE_EXISTS.into()));
        assert_eq!(ops.first_failure(), Some((OpId(1), ErrorCode::TUPLE_EXISTS)));
        assert_eq!(committed(&mut sim, 2), Some(21));
        sim.release(0, trans);
        sim.run();
    }
}

#[test]
fn savepoints_undo_what_came_after() {
    for seed in 0..20 {
        let mut sim = Sim::new(2, 1, seed);
        alone(&mut sim, 0, Insert, 1, 10).unwrap();
        let trans = sim.begin(0);
        let ops = batch(&sim, &[(Update, 1, 11)]);
        sim.execute(0, Some(trans), ops, NoCommit).1.unwrap();
        let keep = sim.clients[0].operations_of(trans);
        let ops = batch(&sim, &[(Update, 1, 12), (Insert, 2, 20), (Update, 1, 13), (Delete, 1, 0)]);
        sim.execute(0, Some(trans), ops, NoCommit).1.unwrap();
        assert_eq!(n_of(&mut sim, 0, Some(trans), ReadCommitted, 1), None);
        sim.rollback(0, trans, Some(keep)).unwrap();
        assert_eq!(n_of(&mut sim, 0, Some(trans), ReadCommitted, 1), Some(11));
        let ops = batch(&sim, &[(Insert, 2, 21)]);
        sim.execute(0, Some(trans), ops, Commit).1.unwrap();
        sim.release(0, trans);
        assert_eq!((committed(&mut sim, 1), committed(&mut sim, 2)), (Some(11), Some(21)));
        sim.assert_nothing_leaked();
    }
}

#[test]
fn locks_hold_others_up_and_deadlocks_end() {
    for seed in 0..20 {
        let mut sim = Sim::new(2, 2, seed);
        for id in [1, 2] {
            alone(&mut sim, 0, Insert, id, 0).unwrap();
        }
        let (a, b) = (sim.begin(0), sim.begin(1));
        assert_eq!(n_of(&mut sim, 0, Some(a), ReadExclusive, 1), Some(0));
        assert_eq!(n_of(&mut sim, 1, Some(b), ReadExclusive, 2), Some(0));
        let ops = batch(&sim, &[(Update, 2, 5)]);
        let first = sim.put(0, Some(a), ops, NoCommit);
        sim.run();
        assert!(sim.ended(first).is_none(), "b has the row");
        let mut nowait = Batch::new();
        nowait.op(&sim.table, ReadShared).key(&[1u32.into()]).nowait().finish().unwrap();
        let (nowait, result) = sim.execute(1, None, nowait, Commit);
        result.unwrap();
        assert_eq!(nowait.row(OP).unwrap_err().code(), ErrorCode::LOCK_NOT_AVAILABLE);
        let ops = batch(&sim, &[(Update, 1, 6)]);
        let second = sim.put(1, Some(b), ops, NoCommit);
        // No time passes: a deadlock does not wait for the time-out.
        sim.run();
        let (first, second) = (sim.ended(first).unwrap().1, sim.ended(second).unwrap().1);
        let lost: Vec<_> = [&first, &second].into_iter().filter_map(|r| r.as_ref().err()).collect();
        assert_eq!(lost.len(), 1, "{first:?} {second:?}");
        assert!(lost[0].code() == ErrorCode::DEADLOCK && lost[0].retryable());
        for (client, trans, result) in [(0, a, &first), (1, b, &second)] {
            if result.is_ok() {
                sim.execute(client, Some(trans), Batch::new(), Commit).1.unwrap();
            }
            sim.release(client, trans);
        }
        alone(&mut sim, 0, Update, 1, 7).unwrap();
        alone(&mut sim, 1, Update, 2, 8).unwrap();
        sim.assert_nothing_leaked();
    }
}

#[test]
fn the_locks_of_a_client_that_dies_are_gone_at_once() {
    for seed in 0..20 {
        let mut sim = Sim::new(2, 2, seed);
        alone(&mut sim, 1, Insert, 1, 10).unwrap();
        let trans = sim.begin(0);
        let ops = batch(&sim, &[(Update, 1, 11), (Insert, 2, 20)]);
        let tag = sim.put(0, Some(trans), ops, NoCommit);
        // At any moment.
        for _ in 0..seed {
            sim.step();
        }
        sim.reconnect(0);
        if let Some((_, result)) = sim.ended(tag) {
            assert!(result.is_ok() || result.is_err_and(|e| e.retryable()));
        }
        alone(&mut sim, 1, Update, 1, 12).unwrap();
        alone(&mut sim, 1, Insert, 2, 21).unwrap();
        assert_eq!((committed(&mut sim, 1), committed(&mut sim, 2)), (Some(12), Some(21)));
    }
}

#[test]
fn scans_give_every_row_once_in_batches() {
    let mut sim = Sim::new(2, 1, 5);
    let mut ops = Batch::new();
    for id in 0..500 {
        add(&sim, &mut ops, Insert, id, i64::from(id), false);
    }
    sim.execute(0, None, ops, Commit).1.unwrap();
    let want: BTreeMap<_, _> =
        (0..500u32).map(|id| (id, (Some(i64::from(id)), Some(format!("row {id}"))))).collect();
    for rows in [1, 7, 992] {
        let spec = ScanSpec::new(&sim.table.clone()).batch(rows, 10_000);
        assert_eq!(sim.scan(0, None, spec), want);
    }
    sim.assert_nothing_leaked();
}

/// Accounts and transfers: whatever is aborted, retried or refused, the sum stays.
#[test]
fn money_is_neither_made_nor_lost() {
    const ACCOUNTS: u32 = 8;
    for seed in 0..30 {
        let mut sim = Sim::new(2, 3, seed);
        for id in 0..ACCOUNTS {
            alone(&mut sim, 0, Insert, id, 100).unwrap();
        }
        let mut open: [Option<Transfer>; 3] = [None; 3];
        let (mut started, mut committed) = (0, 0);
        while started < 60 || open.iter().any(Option::is_some) {
            for (client, slot) in open.iter_mut().enumerate() {
                let Some((trans, tag, [from, to], reading)) = *slot else {
                    if started < 60 {
                        started += 1;
                        let from = sim.random(ACCOUNTS as usize) as u32;
                        let to = (from + 1 + sim.random(ACCOUNTS as usize - 1) as u32) % ACCOUNTS;
                        let trans = sim.begin(client);
                        let reads = batch(&sim, &[(ReadExclusive, from, 0), (ReadExclusive, to, 0)]);
                        *slot =
                            Some((trans, sim.put(client, Some(trans), reads, NoCommit), [from, to], true));
                    }
                    continue;
                };
                let Some((done, result)) = sim.ended(tag) else { continue };
                match result {
                    Ok(_) if reading => {
                        let n = |i| done.row(OpId(i)).unwrap().unwrap().get_i64("n").unwrap().unwrap();
                        let writes = batch(&sim, &[(Update, from, n(0) - 7), (Update, to, n(1) + 7)]);
                        *slot =
                            Some((trans, sim.put(client, Some(trans), writes, Commit), [from, to], false));
                    }
                    other => {
                        committed += u32::from(other.is_ok());
                        assert!(other.is_ok() || other.is_err_and(|e| e.retryable()));
                        let now = ndbapi::core::Now(0);
                        sim.clients[client].release(now, trans);
                        *slot = None;
                    }
                }
            }
            if !sim.step() {
                sim.wait_ms(50);
            }
        }
        sim.run();
        assert!(committed > 10, "{committed}");
        let spec = ScanSpec::new(&sim.table.clone());
        let sum: i64 = sim.scan(1, None, spec).values().map(|v| v.0.unwrap()).sum();
        assert_eq!(sum, i64::from(ACCOUNTS) * 100, "seed {seed}");
    }
}
