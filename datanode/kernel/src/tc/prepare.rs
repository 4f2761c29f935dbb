//! TC, first half: operations come in, go to their primaries, and come back prepared or refused.

use super::{AbortReply, CommitReply, Op, OpState, Tc, TransState, Transaction, hash};
use crate::Now;
use crate::outbox::Outbox;
use signals::frame::View;
use signals::ids::MAX_REPLICAS;
use signals::keyop::{
    LqhKeyConf, LqhKeyRef, LqhKeyReq, NO_OPERATION, TcKeyConf, TcKeyRef, TcKeyReq, lqh_flags, tc_flags,
};
use signals::{BlockRef, ErrorCode, TransId};

impl Tc {
    #[inline]
    pub(super) fn on_tckeyreq(
        &mut self,
        now: Now,
        client: BlockRef,
        req: &View<'_, TcKeyReq>,
        out: &mut Outbox,
    ) {
        let body = &req.body;
        let Some(index) = self.transaction_for(now, client, body, out) else { return };
        let transaction = &mut self.transactions[index];
        if transaction.state != TransState::Active || transaction.commit.is_some() {
            // It is ending; the client is being told.
            return;
        }
        transaction.active_at = now;
        let place = transaction.ops.len() as u32;
        transaction.ops.push(NO_OPERATION);
        if body.has(tc_flags::EXECUTE) {
            transaction.execute = true;
            transaction.commit = body.has(tc_flags::COMMIT).then_some(CommitReply::KeyConf);
        }
        match self.start_operation(index, place, req, out) {
            Ok(()) => {}
            Err(code) => {
                self.operation_failed(index, body.api_op, body.has(tc_flags::IGNORE_ERROR), code, out);
            }
        }
    }

    /// The transaction an operation belongs to, started if the operation says so.
    #[inline]
    fn transaction_for(
        &mut self,
        now: Now,
        client: BlockRef,
        body: &TcKeyReq,
        out: &mut Outbox,
    ) -> Option<u32> {
        if body.trans.client() != client {
            // Somebody else's transaction: the links layer lets no client sign as another, so this one is
            // confused.
            self.tell_rolled_back(client, body.trans, ErrorCode::PARAMETER_ERROR, body.api_op, out);
            return None;
        }
        if let Some(index) = self.find(body.trans) {
            return Some(index);
        }
        let refusal = if !body.has(tc_flags::START) {
            // The rest of a batch whose transaction is already rolled back; the answer to the batch is
            // enough.
            if !body.has(tc_flags::EXECUTE) {
                return None;
            }
            ErrorCode::TRANSACTION_ALREADY_ABORTED
        } else if let Some(code) = self.refusing {
            code
        } else if let Some(index) = self.transactions.seize() {
            self.begin(index, body.trans, client, now);
            return Some(index);
        } else {
            ErrorCode::OUT_OF_TRANSACTION_OBJECTS
        };
        self.tell_rolled_back(client, body.trans, refusal, body.api_op, out);
        None
    }

    #[inline]
    fn begin(&mut self, index: u32, id: TransId, client: BlockRef, now: Now) {
        let transaction = &mut self.transactions[index];
        let (ops, probed) = (std::mem::take(&mut transaction.ops), std::mem::take(&mut transaction.probed));
        *transaction = Transaction {
            id,
            state: TransState::Active,
            client,
            ops,
            probed,
            active_at: now,
            started: now,
            ..Default::default()
        };
        let transactions = &self.transactions;
        self.by_id.insert_unique(hash(id), index, |i| hash(transactions[*i].id));
    }

    #[inline]
    fn start_operation(
        &mut self,
        trans_index: u32,
        place: u32,
        req: &View<'_, TcKeyReq>,
        out: &mut Outbox,
    ) -> Result<(), ErrorCode> {
        let body = &req.body;
        let where_to = self.tables.enter(body.table, body.version, req.first)?;
        let seized = if self.rare.happens() { None } else { self.operations.seize() };
        let Some(op_index) = seized else {
            self.tables.operation_over(self.me, body.table, out);
            return Err(ErrorCode::OUT_OF_OPERATION_RECORDS);
        };
        let operation = body.op();
        let is_write = operation.is_write();
        let lone = tc_flags::START | tc_flags::EXECUTE | tc_flags::COMMIT;
        let self_commit = is_write && body.has(lone) && place == 0;
        let count = if is_write { where_to.count } else { 1 };
        let mut replicas = where_to.replicas;
        replicas[count as usize..].fill(BlockRef::NONE);

        self.operations[op_index] = Op {
            state: OpState::Preparing,
            trans: body.trans,
            trans_index,
            place,
            api_op: body.api_op,
            table: body.table,
            ignore_error: body.has(tc_flags::IGNORE_ERROR),
            is_write,
            lockless: operation == signals::keyop::Operation::ReadCommitted,
            count,
            replicas,
            ops: [NO_OPERATION; MAX_REPLICAS],
        };
        let transaction = &mut self.transactions[trans_index];
        transaction.ops[place as usize] = op_index;
        let mut flags = if self_commit { lqh_flags::SELF_COMMIT } else { 0 };
        if transaction.outstanding > 0 {
            flags |= lqh_flags::BATCHED;
        }
        transaction.outstanding += 1;
        if self_commit {
            transaction.state = TransState::SelfCommitting { abort: None };
        }
        if body.has(tc_flags::NOWAIT) {
            flags |= lqh_flags::NOWAIT;
        }
        let lqhkeyreq = LqhKeyReq {
            trans: body.trans,
            table: body.table,
            version: body.version,
            tc: self.me,
            tc_op: op_index,
            api: transaction.client,
            api_op: body.api_op,
            replicas,
            ops: [NO_OPERATION; MAX_REPLICAS],
            attr_len: body.attr_len,
            key_len: body.key_len,
            fragment: where_to.fragment,
            operation: body.operation,
            flags,
            position: 0,
            count,
            session: out.session(transaction.client),
        };
        out.send(self.me, replicas[0], &lqhkeyreq, req.first, req.second);
        Ok(())
    }

    /// The live record an answer is for.
    #[inline]
    pub(super) fn operation_of(&mut self, tc_op: u32, trans: TransId) -> Option<&mut Op> {
        self.operations.get_mut(tc_op).filter(|op| op.trans == trans && op.state != OpState::Free)
    }

    #[inline]
    pub(super) fn on_lqhkeyconf(&mut self, now: Now, conf: &LqhKeyConf, out: &mut Outbox) {
        let Some(op) = self.operation_of(conf.tc_op, conf.trans) else { return };
        if op.state != OpState::Preparing {
            // An abort is out; it comes back behind this answer.
            return;
        }
        op.state = OpState::Prepared;
        let waited = op.ops[0] != NO_OPERATION;
        op.ops = conf.ops;
        let (index, lockless) = (op.trans_index, op.lockless);
        let transaction = &mut self.transactions[index];
        transaction.outstanding -= 1;
        transaction.active_at = now;
        if conf.committed != 0 {
            self.self_committed(index, conf, out);
            return;
        }
        if lockless {
            self.release_op(conf.tc_op, out);
        }
        if waited && self.transactions[index].outstanding > 0 {
            self.begin_probe(now, index, NO_OPERATION, out);
        }
        self.after_answer(index, out);
    }

    fn self_committed(&mut self, index: u32, conf: &LqhKeyConf, out: &mut Outbox) {
        self.release_op(conf.tc_op, out);
        let transaction = &self.transactions[index];
        let reply = TcKeyConf {
            trans: transaction.id,
            epoch: conf.epoch,
            operations: transaction.ops.len() as u32,
            committed: 1,
        };
        out.send(self.me, transaction.client, &reply, &[], &[]);
        self.release_transaction(index);
    }

    pub(super) fn on_lqhkeyref(&mut self, now: Now, refusal: &LqhKeyRef, out: &mut Outbox) {
        let Some(op) = self.operation_of(refusal.tc_op, refusal.trans) else { return };
        if op.state != OpState::Preparing {
            // An abort is out; it comes back behind this answer.
            return;
        }
        let index = op.trans_index;
        self.transactions[index].active_at = now;
        self.operation_refused(refusal.tc_op, ErrorCode(refusal.code as u16), out);
    }

    /// An operation is prepared nowhere: take it off its transaction, and see what that means.
    fn operation_refused(&mut self, op_index: u32, code: ErrorCode, out: &mut Outbox) {
        let op = &self.operations[op_index];
        let (index, api_op, ignore) = (op.trans_index, op.api_op, op.ignore_error);
        self.transactions[index].outstanding -= 1;
        self.release_op(op_index, out);
        if let TransState::SelfCommitting { abort } = self.transactions[index].state {
            if abort.is_some() {
                // The abort on its way finds nothing; its answer ends the transaction.
                let reply = abort.unwrap_or(AbortReply::Nobody);
                self.transactions[index].state = TransState::Aborting { awaiting: 1, reply };
                return;
            }
            self.transactions[index].state = TransState::Active;
        }
        self.operation_failed(index, api_op, ignore, code, out);
    }

    /// An operation failed and holds nothing: the client is told, and the transaction goes on or is rolled
    /// back.
    fn operation_failed(&mut self, index: u32, api_op: u32, ignore: bool, code: ErrorCode, out: &mut Outbox) {
        if !ignore {
            self.abort(index, AbortReply::Decided { code, api_op }, out);
            return;
        }
        let transaction = &self.transactions[index];
        let body = TcKeyRef { trans: transaction.id, api_op, code: u32::from(code.0) };
        out.send(self.me, transaction.client, &body, &[], &[]);
        self.after_answer(index, out);
    }

    /// If nothing is outstanding any more, do what the client waits for.
    #[inline]
    pub(super) fn after_answer(&mut self, index: u32, out: &mut Outbox) {
        let transaction = &mut self.transactions[index];
        if transaction.outstanding > 0 || transaction.state != TransState::Active {
            return;
        }
        if let Some(reply) = transaction.commit {
            self.commit(index, reply, out);
        } else if transaction.execute {
            transaction.execute = false;
            let reply = TcKeyConf {
                trans: transaction.id,
                epoch: signals::ids::Epoch(0),
                operations: transaction.ops.len() as u32,
                committed: 0,
            };
            out.send(self.me, transaction.client, &reply, &[], &[]);
        }
    }
}
