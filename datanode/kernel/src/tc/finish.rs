//! TC, second half: commit, roll back, and what becomes of late answers.

use super::{AbortReply, CommitReply, Op, OpState, Tc, TransState};
use crate::Now;
use crate::outbox::Outbox;
use signals::ids::Epoch;
use signals::keyop::{
    AbortReq, AbortedConf, CommitReq, CommittedConf, CompleteOrd, NO_OPERATION, ROLLBACK_ALL, TcCommitConf,
    TcKeyConf, TcRollbackConf, TcRollbackReq,
};
use signals::planted::Fault;
use signals::{BlockRef, ErrorCode, TransId};

fn abort_request(me: BlockRef, tc_op: u32, op: &Op) -> AbortReq {
    AbortReq {
        trans: op.trans,
        tc: me,
        tc_op,
        replicas: op.replicas,
        ops: op.ops,
        position: 0,
        count: op.count,
        spare: [0; 6],
    }
}

impl Tc {
    pub(super) fn on_tccommitreq(&mut self, now: Now, client: BlockRef, trans: TransId, out: &mut Outbox) {
        let Some(index) = self.find(trans).filter(|_| trans.client() == client) else {
            self.tell_rolled_back(client, trans, ErrorCode::TRANSACTION_ALREADY_ABORTED, NO_OPERATION, out);
            return;
        };
        let transaction = &mut self.transactions[index];
        if transaction.state == TransState::Active && transaction.commit.is_none() {
            transaction.active_at = now;
            transaction.commit = Some(CommitReply::CommitConf);
            self.after_answer(index, out);
        }
    }

    /// Commits a transaction with nothing outstanding.
    pub(super) fn commit(&mut self, index: u32, reply: CommitReply, out: &mut Outbox) {
        let epoch = self.epoch;
        let ops = std::mem::take(&mut self.transactions[index].ops);
        let mut awaiting = 0;
        for &tc_op in ops.iter().filter(|o| **o != NO_OPERATION) {
            let op = &mut self.operations[tc_op];
            debug_assert_eq!(op.state, OpState::Prepared);
            op.state = OpState::Committing;
            awaiting += 1;
            let last = op.count - 1;
            let body = CommitReq {
                trans: op.trans,
                epoch,
                tc: self.me,
                tc_op,
                replicas: op.replicas,
                ops: op.ops,
                position: last,
                count: op.count,
                self_commit: 0,
                spare: [0; 5],
            };
            out.send(self.me, op.replicas[last as usize], &body, &[], &[]);
        }
        if self.planted.has(Fault::CommitAckedEarly) {
            self.tell_committed(index, reply, epoch, ops.len(), out);
        }
        let transaction = &mut self.transactions[index];
        transaction.ops = ops;
        transaction.state = TransState::Committing { awaiting, reply, epoch };
        if awaiting == 0 {
            self.committed(index, reply, epoch, out);
        }
    }

    pub(super) fn on_committed(&mut self, conf: &CommittedConf, out: &mut Outbox) {
        let Some(op) = self.operation_of(conf.tc_op, conf.trans) else { return };
        if op.state != OpState::Committing {
            return;
        }
        op.state = OpState::Committed;
        let index = op.trans_index;
        if let TransState::Committing { awaiting, reply, epoch } = &mut self.transactions[index].state {
            *awaiting -= 1;
            if *awaiting == 0 {
                let (reply, epoch) = (*reply, *epoch);
                self.committed(index, reply, epoch, out);
            }
        }
    }

    /// Every replica shows the transaction: tell the client, then let the replicas forget it.
    fn committed(&mut self, index: u32, reply: CommitReply, epoch: Epoch, out: &mut Outbox) {
        let transaction = &self.transactions[index];
        let (trans, operations) = (transaction.id, transaction.ops.len());
        if !self.planted.has(Fault::CommitAckedEarly) {
            self.tell_committed(index, reply, epoch, operations, out);
        }
        for place in 0..self.transactions[index].ops.len() {
            let tc_op = self.transactions[index].ops[place];
            if tc_op == NO_OPERATION {
                continue;
            }
            let op = &self.operations[tc_op];
            if op.is_write {
                for (replica, lqh_op) in op.replicas.iter().zip(op.ops).take(op.count as usize) {
                    out.send(self.me, *replica, &CompleteOrd { trans, op: lqh_op, spare: 0 }, &[], &[]);
                }
            }
            self.release_op(tc_op, out);
        }
        self.release_transaction(index);
    }

    fn tell_committed(
        &self,
        index: u32,
        reply: CommitReply,
        epoch: Epoch,
        operations: usize,
        out: &mut Outbox,
    ) {
        let transaction = &self.transactions[index];
        let (trans, client) = (transaction.id, transaction.client);
        match reply {
            CommitReply::KeyConf => {
                let operations = operations as u32;
                out.send(self.me, client, &TcKeyConf { trans, epoch, operations, committed: 1 }, &[], &[]);
            }
            CommitReply::CommitConf => out.send(self.me, client, &TcCommitConf { trans, epoch }, &[], &[]),
        }
    }

    pub(super) fn on_tcrollbackreq(
        &mut self,
        now: Now,
        client: BlockRef,
        req: &TcRollbackReq,
        out: &mut Outbox,
    ) {
        let Some(index) = self.find(req.trans).filter(|_| req.trans.client() == client) else {
            // Already rolled back, by TC's own decision: what the client wants is so.
            out.send(
                self.me,
                client,
                &TcRollbackConf { trans: req.trans, keep: req.keep, spare: 0 },
                &[],
                &[],
            );
            return;
        };
        let transaction = &mut self.transactions[index];
        transaction.active_at = now;
        match &mut transaction.state {
            TransState::Active if req.keep == ROLLBACK_ALL => self.abort(index, AbortReply::Asked, out),
            TransState::Active if transaction.outstanding > 0 => {
                // A client that does not wait for its operations cannot know what it keeps.
                let reply = AbortReply::Decided { code: ErrorCode::STATUS_ERROR, api_op: NO_OPERATION };
                self.abort(index, reply, out);
            }
            TransState::Active => self.rollback_to(index, req.keep, out),
            TransState::Aborting { reply, .. } if req.keep == ROLLBACK_ALL => *reply = AbortReply::Asked,
            TransState::SelfCommitting { .. }
            | TransState::Committing { .. }
            | TransState::Aborting { .. }
            | TransState::RollingBack { .. }
            | TransState::Free => {}
        }
    }

    /// Undoes the operations from place `keep` on, newest first.
    fn rollback_to(&mut self, index: u32, keep: u32, out: &mut Outbox) {
        let awaiting = self.send_aborts(index, self.kept(keep), out);
        self.transactions[index].state = TransState::RollingBack { awaiting, keep };
        if awaiting == 0 {
            self.rolled_back_to(index, keep, out);
        }
    }

    /// How many operations stay when a client wants to keep `keep`: as many.
    fn kept(&self, keep: u32) -> usize {
        keep as usize + usize::from(self.planted.has(Fault::SavepointKeepsOne))
    }

    fn rolled_back_to(&mut self, index: u32, keep: u32, out: &mut Outbox) {
        let kept = self.kept(keep);
        let transaction = &mut self.transactions[index];
        transaction.ops.truncate(kept);
        transaction.state = TransState::Active;
        if transaction.client.is_none() {
            self.abort(index, AbortReply::Nobody, out);
            return;
        }
        let body = TcRollbackConf { trans: transaction.id, keep, spare: 0 };
        out.send(self.me, transaction.client, &body, &[], &[]);
    }

    /// Rolls a transaction back, or tries to if its one operation decides for itself.
    pub(super) fn abort(&mut self, index: u32, reply: AbortReply, out: &mut Outbox) {
        if self.transactions[index].state == (TransState::SelfCommitting { abort: None }) {
            let tc_op = self.transactions[index].ops[0];
            let op = &self.operations[tc_op];
            out.send(self.me, op.replicas[0], &abort_request(self.me, tc_op, op), &[], &[]);
            self.transactions[index].state = TransState::SelfCommitting { abort: Some(reply) };
            return;
        }
        let awaiting = self.send_aborts(index, 0, out);
        self.transactions[index].state = TransState::Aborting { awaiting, reply };
        if awaiting == 0 {
            self.aborted(index, reply, out);
        }
    }

    /// Sends the aborts of all operations from place `from` on, newest first; returns how many answers will
    /// come.
    fn send_aborts(&mut self, index: u32, from: usize, out: &mut Outbox) -> u32 {
        let ops = std::mem::take(&mut self.transactions[index].ops);
        let mut awaiting = 0;
        for &tc_op in ops.get(from..).unwrap_or_default().iter().rev().filter(|o| **o != NO_OPERATION) {
            let op = &mut self.operations[tc_op];
            awaiting += 1;
            out.send(self.me, op.replicas[0], &abort_request(self.me, tc_op, op), &[], &[]);
            op.state = OpState::Aborting;
        }
        let transaction = &mut self.transactions[index];
        transaction.ops = ops;
        transaction.outstanding = 0;
        awaiting
    }

    pub(super) fn on_aborted(&mut self, conf: &AbortedConf, out: &mut Outbox) {
        if let Some(op) = self.operation_of(conf.tc_op, conf.trans) {
            let (index, state) = (op.trans_index, op.state);
            if let TransState::SelfCommitting { abort } = self.transactions[index].state {
                self.self_commit_abort_answered(conf, index, abort, out);
                return;
            }
            if state != OpState::Aborting {
                return;
            }
            self.release_op(conf.tc_op, out);
            self.one_abort_less(index, out);
        } else if let Some(index) = self.find(conf.trans) {
            // The abort of a self-committing operation that was refused meanwhile.
            self.one_abort_less(index, out);
        }
    }

    fn self_commit_abort_answered(
        &mut self,
        conf: &AbortedConf,
        index: u32,
        abort: Option<AbortReply>,
        out: &mut Outbox,
    ) {
        if conf.too_late != 0 {
            // Its own answer is on the way and decides. Asking again later does no harm.
            self.transactions[index].state = TransState::SelfCommitting { abort: None };
            return;
        }
        self.release_op(conf.tc_op, out);
        self.aborted(index, abort.unwrap_or(AbortReply::Nobody), out);
    }

    fn one_abort_less(&mut self, index: u32, out: &mut Outbox) {
        match &mut self.transactions[index].state {
            TransState::Aborting { awaiting, reply } => {
                *awaiting -= 1;
                if *awaiting == 0 {
                    let reply = *reply;
                    self.aborted(index, reply, out);
                }
            }
            TransState::RollingBack { awaiting, keep } => {
                *awaiting -= 1;
                if *awaiting == 0 {
                    let keep = *keep;
                    self.rolled_back_to(index, keep, out);
                }
            }
            TransState::Free
            | TransState::Active
            | TransState::SelfCommitting { .. }
            | TransState::Committing { .. } => {}
        }
    }

    /// Nothing of the transaction is left anywhere.
    fn aborted(&mut self, index: u32, reply: AbortReply, out: &mut Outbox) {
        let transaction = &self.transactions[index];
        let (trans, client) = (transaction.id, transaction.client);
        match reply {
            AbortReply::Asked => {
                out.send(self.me, client, &TcRollbackConf { trans, keep: ROLLBACK_ALL, spare: 0 }, &[], &[]);
            }
            AbortReply::Decided { code, api_op } => self.tell_rolled_back(client, trans, code, api_op, out),
            AbortReply::Nobody => {}
        }
        self.release_transaction(index);
    }
}
