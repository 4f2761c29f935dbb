//! Deadlock detection, the LDM's side: who stands in the way of an operation that waits for its row.
//!
//! When an operation begins to wait its TC is told (WAITFORREP), and when a probe of a TC comes by it is sent
//! on to the TCs of the transactions that stand before the operation. What they are is read from the row's
//! queue at that moment, so nothing about it is kept or can grow stale. The protocol is in
//! `signals::deadlock`, what TC makes of it in `tc::deadlock`.
//!
//! Who stands in the way:
//! * Everybody else who holds the row. The first operation that waits is held up by all holders (they hold
//!   the row shared and it wants it alone, or one has it alone), and the others wait behind the first.
//! * Of those that wait before the operation, only those whose transactions wait for other rows as well. A
//!   transaction that waits in this queue alone is held up by nobody but those before it, and they stand in
//!   the way of those behind it just as well: leaving it out loses no circle, and it makes a hot row with
//!   hundreds in its queue cost a probe or two for each instead of hundreds. TC says so when a transaction
//!   waits for several rows. When it first does, the LDM answers: a probe of somebody else may have been
//!   here before it knew.
//! * Not those that wait to share the row with an operation that would share it too, if nobody between
//!   wants it alone: they are served together and do not wait for each other.
//!
//! So each of them stays in the way until its transaction ends, or until the operation itself is refused. (A
//! rollback to a savepoint cannot free it: clients may ask for one only when nothing of the transaction
//! waits.)
//!
//! A lone operation that commits itself (`self_commit`) is in nobody's way but here, holds nothing else, and
//! never waits once it holds the row: it is neither reported nor probed.
//!
//! At most [`BLOCKERS_MAX`] transactions are followed; a circle that leads through another one, among more
//! readers of one row, is left to the lock time-out.
//!
//! This module never decides that there is a deadlock, and changes no queue.

use super::Ldm;
use super::op::{Lock, NONE, Op, OpState};
use crate::outbox::Outbox;
use crate::pool::Pool;
use signals::deadlock::{DeadlockProbe, WaitForRep};
use signals::keyop::NO_OPERATION;
use signals::{BlockRef, TransId};

/// Most transactions before one operation that are followed.
const BLOCKERS_MAX: usize = 16;

/// A transaction in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Blocker {
    trans: TransId,
    tc: BlockRef,
    /// TC's record of its operation that waits in this queue too; [`NO_OPERATION`] if it holds the row.
    tc_op: u32,
}

/// A list of them, each once.
struct Blockers {
    list: [Blocker; BLOCKERS_MAX],
    len: usize,
}

impl Blockers {
    fn add(&mut self, op: &Op, tc_op: u32) {
        let known = &self.list[..self.len];
        if self.len < BLOCKERS_MAX && !known.iter().any(|b| b.trans == op.trans) {
            self.list[self.len] = Blocker { trans: op.trans, tc: op.tc, tc_op };
            self.len += 1;
        }
    }

    /// Those in the way of `waiting` in the queue that begins at `head`.
    fn of(ops: &Pool<Op>, head: u32, waiting: u32) -> Self {
        let nobody = Blocker { trans: TransId::NONE, tc: BlockRef::NONE, tc_op: NO_OPERATION };
        let mut found = Self { list: [nobody; BLOCKERS_MAX], len: 0 };
        let waiter = &ops[waiting];
        // How many of those found are in the way even of one who would share the row.
        let mut of_sharers = 0;
        let mut index = head;
        while index != NONE && index != waiting {
            let op = &ops[index];
            index = op.next;
            if op.trans == waiter.trans || op.self_commit {
                if op.lock == Lock::Exclusive {
                    of_sharers = found.len;
                }
                continue;
            }
            match op.state {
                OpState::Prepared => found.add(op, NO_OPERATION),
                _ if op.waits_elsewhere => found.add(op, op.tc_op),
                _ => {}
            }
            if op.state == OpState::Prepared || op.lock == Lock::Exclusive {
                of_sharers = found.len;
            }
        }
        if waiter.lock == Lock::Shared {
            found.len = of_sharers;
        }
        found
    }
}

impl Ldm {
    /// Tells TC that an operation waits.
    #[cold]
    pub(super) fn report_wait(&self, index: u32, out: &mut Outbox) {
        let op = &self.ops[index];
        if !op.self_commit {
            let body = WaitForRep { trans: op.trans, tc_op: op.tc_op, op: index };
            out.send(self.me, op.tc, &body, &[], &[]);
        }
    }

    /// Sends a probe on to those who stand before the operation it is about, if that still waits.
    pub(super) fn on_deadlockprobe(&mut self, probe: &DeadlockProbe, out: &mut Outbox) {
        let Some(op) = self.ops.get(probe.op) else { return };
        if op.state != OpState::Waiting || op.trans != probe.target || op.tc_op != probe.tc_op {
            return;
        }
        let Some(fragment) = self.tables.fragment(op.table, op.fragment) else { return };
        let head = fragment.tup.op_head(op.row);
        let found = Blockers::of(&self.ops, head, probe.op);
        let (allowed, budget) = probe.shares(found.len);
        for blocker in &found.list[..allowed] {
            let body = DeadlockProbe {
                target: blocker.trans,
                op: NO_OPERATION,
                tc_op: blocker.tc_op,
                budget,
                elsewhere: 0,
                ..*probe
            };
            out.send(self.me, blocker.tc, &body, &[], &[]);
        }
        if probe.elsewhere != 0 && !self.ops[probe.op].waits_elsewhere {
            self.ops[probe.op].waits_elsewhere = true;
            self.report_wait(probe.op, out);
        }
    }
}
