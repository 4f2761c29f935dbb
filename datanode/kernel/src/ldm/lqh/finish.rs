//! LQH, second half: commit, forget, abort.

use super::Ldm;
use super::op::{Change, NONE, OpState};
use super::queue;
use crate::outbox::Outbox;
use signals::ErrorCode;
use signals::TransId;
use signals::ids::Epoch;
use signals::keyop::{
    AbortReq, AbortedConf, CommitReq, CommittedConf, CompleteOrd, LqhKeyConf, LqhKeyRef, NO_OPERATION,
};
use signals::planted::Fault;

impl Ldm {
    /// The live operation record an index from outside means.
    #[inline]
    fn operation_at(&self, index: u32, trans: TransId) -> Option<u32> {
        let op = self.ops.get(index)?;
        (op.trans == trans && op.state != OpState::Free).then_some(index)
    }

    pub(super) fn on_commitreq(&mut self, req: &CommitReq, out: &mut Outbox) {
        let position = req.position as usize;
        let Some(index) = self.operation_at(req.ops[position], req.trans) else {
            debug_assert!(false, "commit of an unknown operation: {req:?}");
            return;
        };
        let self_commit = req.self_commit != 0;
        if self.planted.has(Fault::BackupCommitsLate) && position > 0 && !self_commit {
            let body = CommitReq { position: req.position - 1, ..*req };
            out.send(self.me, req.replicas[position - 1], &body, &[], &[]);
            return;
        }
        match (self.ops[index].state, self.ops[index].is_write) {
            (OpState::Prepared, true) => self.commit_row(index, req.epoch, out),
            (OpState::Prepared, false) => self.end_read(index),
            _ => {}
        }
        let op = &self.ops[index];
        if self_commit || !op.is_write {
            self.forget(index, out);
        }
        if position > 0 {
            let body = CommitReq { position: req.position - 1, ..*req };
            out.send(self.me, req.replicas[position - 1], &body, &[], &[]);
        } else if self_commit {
            let body = LqhKeyConf {
                trans: req.trans,
                epoch: req.epoch,
                tc_op: req.tc_op,
                committed: 1,
                ops: req.ops,
            };
            out.send(self.me, req.tc, &body, &[], &[]);
        } else {
            out.send(
                self.me,
                req.tc,
                &CommittedConf { trans: req.trans, tc_op: req.tc_op, spare: 0 },
                &[],
                &[],
            );
        }
    }

    /// The last replica has prepared an operation that is its whole transaction: it is decided.
    pub(super) fn self_commit(&mut self, index: u32, out: &mut Outbox) {
        let epoch = self.epoch;
        let op = &self.ops[index];
        let (trans, tc, tc_op) = (op.trans, op.tc, op.tc_op);
        let (replicas, ops, position, count) = (op.replicas, op.ops, op.position, op.count);
        self.commit_row(index, epoch, out);
        self.forget(index, out);
        if position == 0 {
            out.send(self.me, tc, &LqhKeyConf { trans, epoch, tc_op, committed: 1, ops }, &[], &[]);
        } else {
            let body = CommitReq {
                trans,
                epoch,
                tc,
                tc_op,
                replicas,
                ops,
                position: position - 1,
                count,
                self_commit: 1,
                spare: [0; 5],
            };
            out.send(self.me, replicas[position as usize - 1], &body, &[], &[]);
        }
    }

    /// A read's lock goes. It commits nothing: if its transaction has changed the row as well, the change
    /// is committed by its own COMMITREQ, which comes through the backups first. A read is known to its
    /// primary alone, so its COMMITREQ may get here before; would it let the row go, the next owner's
    /// change could reach a backup that has not heard of the commit yet.
    fn end_read(&mut self, index: u32) {
        let op = &self.ops[index];
        let (table, fragment_id, row) = (op.table, op.fragment, op.row);
        let Some(fragment) = self.tables.fragment(table, fragment_id) else { return };
        queue::leave(&mut self.ops, fragment, row, index);
        self.ops[index].state = OpState::Committed;
        let head = fragment.tup.op_head(row);
        self.note_released(table, fragment_id, row, head);
    }

    /// Makes the row show the newest change of `index`'s transaction, and takes all its operations out of the
    /// queue.
    fn commit_row(&mut self, index: u32, epoch: Epoch, out: &mut Outbox) {
        let op = &self.ops[index];
        let (trans, table, fragment_id, row, hash) = (op.trans, op.table, op.fragment, op.row, op.hash);
        let Some(fragment) = self.tables.fragment(table, fragment_id) else { return };
        let head = fragment.tup.op_head(row);
        let newest = queue::newest_change(&self.ops, head, trans);
        let gone = newest.is_some_and(|n| self.ops[n].change == Change::Delete);
        let inserted = fragment.tup.is_uncommitted(row);
        if let Some(n) = newest
            && !gone
        {
            if inserted {
                fragment.tup.commit_insert(row, epoch.0);
            }
            if self.ops[n].change == Change::Copy {
                fragment.tup.commit_update(row, &mut self.ops[n].copy, epoch.0);
            }
        }
        // Out of the queue go all operations of the transaction on this row; images it overwrote itself are
        // let go.
        let mut member = head;
        while member != NONE && self.ops[member].state == OpState::Prepared {
            let next = self.ops[member].next;
            if self.ops[member].trans == trans {
                queue::leave(&mut self.ops, fragment, row, member);
                let op = &mut self.ops[member];
                op.state = OpState::Committed;
                if op.change == Change::Copy && (gone || Some(member) != newest) {
                    fragment.tup.abort_update(&mut op.copy);
                }
            }
            member = next;
        }
        let head = fragment.tup.op_head(row);
        if gone {
            fragment.tup.set_op_head(row, NONE);
            if inserted {
                fragment.abort_insert(hash, row);
            } else if self.planted.has(Fault::BackupKeepsDeleted) && self.ops[index].position > 0 {
                // The row stays.
            } else {
                fragment.commit_delete(hash, row);
            }
            self.evict_waiters(head, out);
        } else {
            self.note_released(table, fragment_id, row, head);
        }
    }

    /// Releases a committed operation's record.
    fn forget(&mut self, index: u32, out: &mut Outbox) {
        let op = &mut self.ops[index];
        op.state = OpState::Free;
        let table = op.table;
        self.ops.release(index);
        self.tables.operation_over(self.me, table, out);
    }

    pub(super) fn on_completeord(&mut self, order: &CompleteOrd, out: &mut Outbox) {
        if self.planted.has(Fault::BackupCommitsLate)
            && let Some(index) = self.operation_at(order.op, order.trans)
            && self.ops[index].state == OpState::Prepared
        {
            self.commit_row(index, self.epoch, out);
        }
        if let Some(index) = self.operation_at(order.op, order.trans)
            && self.ops[index].state == OpState::Committed
        {
            self.forget(index, out);
        }
    }

    pub(super) fn on_abortreq(&mut self, req: &AbortReq, out: &mut Outbox) {
        let position = req.position as usize;
        let known = self.operation_at(req.ops[position], req.trans);
        let index = match known.filter(|index| self.ops[*index].tc_op == req.tc_op) {
            Some(index) => Some(index),
            // Of an operation that waited, TC knows the record it waited in; it has another since it got its
            // turn.
            None if position == 0 || req.ops[position] == NO_OPERATION => self.search_operation(req),
            None => None,
        };
        let aborted = AbortedConf { trans: req.trans, tc_op: req.tc_op, too_late: 0 };
        if let Some(index) = index {
            let op = &self.ops[index];
            if op.state == OpState::Committed || (op.self_commit && op.forwarded) {
                out.send(self.me, req.tc, &AbortedConf { too_late: 1, ..aborted }, &[], &[]);
                return;
            }
            if op.state == OpState::Waiting {
                // It has gone nowhere else.
                self.cancel_waiting(index, out);
                out.send(self.me, req.tc, &aborted, &[], &[]);
                return;
            }
            if self.planted.has(Fault::LockLeftOnAbort) && self.ops[index].change == Change::None {
                out.send(self.me, req.tc, &aborted, &[], &[]);
                return;
            }
            self.undo(index, out);
        }
        if self.planted.has(Fault::AbortSkipsBackups) {
            out.send(self.me, req.tc, &aborted, &[], &[]);
            return;
        }
        if position + 1 < req.count as usize {
            let body = AbortReq { position: req.position + 1, ..*req };
            out.send(self.me, req.replicas[position + 1], &body, &[], &[]);
        } else {
            out.send(self.me, req.tc, &aborted, &[], &[]);
        }
    }

    /// Finds an operation whose record number TC has not learned yet: it waits, or its confirmation is on
    /// the way. Rare, so a walk over the records is cheaper than an index kept for every operation.
    #[cold]
    fn search_operation(&self, req: &AbortReq) -> Option<u32> {
        let of_request = |op: &super::op::Op| {
            op.state != OpState::Free && op.trans == req.trans && op.tc_op == req.tc_op && op.tc == req.tc
        };
        self.ops.iter().find(|(_, op)| of_request(op)).map(|(index, _)| index)
    }

    /// Takes a waiting operation out of its queue for good.
    fn cancel_waiting(&mut self, index: u32, out: &mut Outbox) {
        let op = &self.ops[index];
        let (table, fragment_id, row) = (op.table, op.fragment, op.row);
        if let Some(fragment) = self.tables.fragment(table, fragment_id) {
            queue::leave(&mut self.ops, fragment, row, index);
            let head = fragment.tup.op_head(row);
            // It may have stood in the way of others behind it.
            self.note_released(table, fragment_id, row, head);
        }
        drop(self.take_waiting(index, out));
    }

    /// Undoes a prepared operation, the newest of its transaction on its row.
    fn undo(&mut self, index: u32, out: &mut Outbox) {
        let op = &self.ops[index];
        let (table, fragment_id, row, hash, change) = (op.table, op.fragment, op.row, op.hash, op.change);
        if let Some(fragment) = self.tables.fragment(table, fragment_id) {
            queue::leave(&mut self.ops, fragment, row, index);
            let head = fragment.tup.op_head(row);
            match change {
                Change::Insert => {
                    fragment.tup.set_op_head(row, NONE);
                    fragment.abort_insert(hash, row);
                    self.evict_waiters(head, out);
                }
                Change::Copy if self.planted.has(Fault::AbortKeepsUpdate) => {
                    fragment.tup.commit_update(row, &mut self.ops[index].copy, 0);
                    self.note_released(table, fragment_id, row, head);
                }
                Change::Copy => {
                    fragment.tup.abort_update(&mut self.ops[index].copy);
                    self.note_released(table, fragment_id, row, head);
                }
                Change::Delete | Change::None => self.note_released(table, fragment_id, row, head),
            }
        }
        self.forget(index, out);
    }

    /// The next replica refused an operation that is prepared here.
    pub(super) fn on_lqhkeyref(&mut self, refusal: &LqhKeyRef, out: &mut Outbox) {
        let Some(index) = self.operation_at(refusal.op, refusal.trans) else { return };
        let op = &self.ops[index];
        if op.state != OpState::Prepared {
            return;
        }
        let (position, tc, replicas, ops) = (op.position as usize, op.tc, op.replicas, op.ops);
        self.undo(index, out);
        if position == 0 {
            out.send(self.me, tc, &LqhKeyRef { op: NO_OPERATION, ..*refusal }, &[], &[]);
        } else {
            let body = LqhKeyRef { op: ops[position - 1], ..*refusal };
            out.send(self.me, replicas[position - 1], &body, &[], &[]);
        }
        debug_assert_ne!(ErrorCode(refusal.code as u16), ErrorCode::NONE);
    }
}
