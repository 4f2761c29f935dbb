//! LQH, first half: an operation arrives, gets its row's lock or waits, and is prepared.

use super::Ldm;
use super::op::{Change, Lock, NONE, Op, OpState, Request};
use super::queue::{self, Claim};
use crate::ldm::row_ref::RowRef;
use crate::ldm::tup::{Before, TupError};
use crate::outbox::Outbox;
use crate::pool::Pool;
use signals::frame::View;
use signals::key::KeyHash;
use signals::keyop::{
    LqhKeyConf, LqhKeyRef, LqhKeyReq, NO_OPERATION, Operation, TransIdAi, lqh_flags, projection,
};
use signals::planted::Fault;
use signals::{BlockRef, ErrorCode};

impl From<TupError> for ErrorCode {
    fn from(error: TupError) -> Self {
        error.code()
    }
}

/// What became of an operation.
enum Outcome {
    /// It is prepared, as this record.
    Prepared(u32),
    /// It was a committed read and is answered.
    Read,
    /// It waits in its row's queue.
    Waits,
}

impl Ldm {
    #[inline]
    pub(super) fn on_lqhkeyreq(&mut self, req: &View<'_, LqhKeyReq>, out: &mut Outbox) {
        self.execute(req, false, out);
    }

    /// Executes an operation and answers, sends on, or leaves it waiting. `first_in_line`: it waited its
    /// turn.
    pub(super) fn execute(&mut self, req: &View<'_, LqhKeyReq>, first_in_line: bool, out: &mut Outbox) {
        match self.prepare(req, first_in_line, out) {
            Ok(Outcome::Prepared(index)) => self.prepared(index, req, out),
            Ok(Outcome::Read) => {
                let none = [NO_OPERATION; signals::ids::MAX_REPLICAS];
                self.confirm(req.body.tc, &req.body, none, out);
            }
            Ok(Outcome::Waits) => {}
            Err(code) => self.refuse(&req.body, code, out),
        }
    }

    /// Tells the replica before this one, or TC.
    fn refuse(&mut self, body: &LqhKeyReq, code: ErrorCode, out: &mut Outbox) {
        let refusal = LqhKeyRef {
            trans: body.trans,
            tc_op: body.tc_op,
            code: u32::from(code.0),
            op: NO_OPERATION,
            spare: 0,
        };
        if body.position == 0 {
            out.send(self.me, body.tc, &refusal, &[], &[]);
        } else {
            let before = body.position as usize - 1;
            let refusal = LqhKeyRef { op: body.ops[before], ..refusal };
            out.send(self.me, body.replicas[before], &refusal, &[], &[]);
        }
    }

    fn confirm(
        &self,
        tc: BlockRef,
        body: &LqhKeyReq,
        ops: [u32; signals::ids::MAX_REPLICAS],
        out: &mut Outbox,
    ) {
        let epoch = signals::ids::Epoch(0);
        let conf = LqhKeyConf { trans: body.trans, epoch, tc_op: body.tc_op, committed: 0, ops };
        out.send(self.me, tc, &conf, &[], &[]);
    }

    #[inline]
    fn prepare(
        &mut self,
        req: &View<'_, LqhKeyReq>,
        first_in_line: bool,
        out: &mut Outbox,
    ) -> Result<Outcome, ErrorCode> {
        let body = &req.body;
        let operation = body.op();
        let table = self.tables.get(body.table)?;
        if body.position == 0 {
            // Backups and woken waiters finish what was begun before a drop; dict waits for them.
            match table.check_version(body.version) {
                Err(ErrorCode::TABLE_DROPPING) if first_in_line => {}
                other => other?,
            }
        }
        let (fragment, hash) = table.place(body.fragment, req.first)?;
        let Some(row) = fragment.find(hash, req.first) else {
            return match operation {
                Operation::Insert | Operation::Write => self.insert_new(req, hash),
                _ => Err(ErrorCode::TUPLE_NOT_FOUND),
            };
        };
        let head = fragment.tup.op_head(row);
        let lockless = operation == Operation::ReadExclusive && self.planted.has(Fault::ReadLocksNothing);
        if operation == Operation::ReadCommitted || lockless {
            self.read_visible(req, row, out)?;
            return Ok(Outcome::Read);
        }
        match queue::claim(&self.ops, head, body.trans, Lock::of(operation), first_in_line) {
            Claim::Free => {}
            Claim::Wait if body.position > 0 => {
                debug_assert!(false, "a backup has to wait for row {row:?}: {body:?}");
                return Err(ErrorCode::ROWID_ALLOCATED);
            }
            Claim::Wait if body.has(lqh_flags::NOWAIT) => return Err(ErrorCode::LOCK_NOT_AVAILABLE),
            Claim::Wait => return self.wait(req, row, hash, out),
        }
        self.prepare_on(req, row, head, hash, out)
    }

    /// Seizes and fills an operation record.
    #[inline]
    fn seize(&mut self, body: &LqhKeyReq, row: RowRef, hash: KeyHash) -> Result<u32, ErrorCode> {
        if self.rare.happens() {
            return Err(ErrorCode::OUT_OF_LOCAL_OPERATION_RECORDS);
        }
        let index = self.ops.seize().ok_or(ErrorCode::OUT_OF_LOCAL_OPERATION_RECORDS)?;
        self.ops[index].start(body, row, hash);
        self.tables.operation_begins(body.table);
        Ok(index)
    }

    /// Gives back a record that has not joined a queue.
    fn unseize(&mut self, index: u32, out: &mut Outbox) {
        let op = &mut self.ops[index];
        op.state = OpState::Free;
        let table = op.table;
        self.ops.release(index);
        self.tables.operation_over(self.me, table, out);
    }

    #[inline]
    fn insert_new(&mut self, req: &View<'_, LqhKeyReq>, hash: KeyHash) -> Result<Outcome, ErrorCode> {
        let body = &req.body;
        let fragment =
            self.tables.fragment(body.table, body.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        let row = fragment.insert(hash, req.first, req.second)?;
        let index = match self.seize(body, row, hash) {
            Ok(index) => index,
            Err(code) => {
                if let Some(fragment) = self.tables.fragment(body.table, body.fragment) {
                    fragment.abort_insert(hash, row);
                }
                return Err(code);
            }
        };
        self.ops[index].change = Change::Insert;
        if let Some(fragment) = self.tables.fragment(body.table, body.fragment) {
            queue::join_granted(&mut self.ops, fragment, row, index);
        }
        Ok(Outcome::Prepared(index))
    }

    /// Prepares an operation on a row that is its to have.
    fn prepare_on(
        &mut self,
        req: &View<'_, LqhKeyReq>,
        row: RowRef,
        head: u32,
        hash: KeyHash,
        out: &mut Outbox,
    ) -> Result<Outcome, ErrorCode> {
        let body = &req.body;
        let index = self.seize(body, row, hash)?;
        let newest = queue::newest_change(&self.ops, head, body.trans);
        let exists = newest.is_none_or(|n| self.ops[n].change != Change::Delete);
        let prepared = match (body.op(), exists) {
            (Operation::Insert, true) if self.planted.has(Fault::InsertOverwrites) => {
                self.make_copy(req, index, Base::of(newest, &self.ops))
            }
            (Operation::Insert, true) => Err(ErrorCode::TUPLE_EXISTS),
            (Operation::Insert | Operation::Write, false) => self.make_copy(req, index, Base::Empty),
            (Operation::Write | Operation::Update, true) => {
                self.make_copy(req, index, Base::of(newest, &self.ops))
            }
            (Operation::Delete, true) => {
                self.ops[index].change = Change::Delete;
                Ok(())
            }
            (Operation::ReadShared | Operation::ReadExclusive, true) => self.read_visible(req, row, out),
            (Operation::ReadCommitted, true) => Err(ErrorCode::STATUS_ERROR),
            (
                Operation::Update
                | Operation::Delete
                | Operation::ReadShared
                | Operation::ReadExclusive
                | Operation::ReadCommitted,
                false,
            ) => Err(ErrorCode::TUPLE_NOT_FOUND),
        };
        if let Err(code) = prepared {
            self.unseize(index, out);
            return Err(code);
        }
        let fragment =
            self.tables.fragment(body.table, body.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        queue::join_granted(&mut self.ops, fragment, row, index);
        Ok(Outcome::Prepared(index))
    }

    /// Builds the after-image of an update, or of an insert over an own delete, in `index`'s copy tuple.
    fn make_copy(&mut self, req: &View<'_, LqhKeyReq>, index: u32, base: Base) -> Result<(), ErrorCode> {
        let body = &req.body;
        let fragment =
            self.tables.fragment(body.table, body.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        let row = self.ops[index].row;
        let mut copy = std::mem::take(&mut self.ops[index].copy);
        let before = match base {
            Base::Empty => Before::Deleted,
            Base::Row => Before::Row,
            Base::Copy(before) => Before::Copy(&self.ops[before].copy),
        };
        let made = fragment.tup.prepare_update(row, before, req.second, &mut copy);
        let op = &mut self.ops[index];
        op.copy = copy;
        made?;
        op.change = Change::Copy;
        Ok(())
    }

    /// Sends the row as the operation's transaction sees it to the client.
    pub(super) fn read_visible(
        &mut self,
        req: &View<'_, LqhKeyReq>,
        row: RowRef,
        out: &mut Outbox,
    ) -> Result<(), ErrorCode> {
        let body = &req.body;
        let fragment =
            self.tables.fragment(body.table, body.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        let head = fragment.tup.op_head(row);
        let newest = queue::newest_change(&self.ops, head, body.trans);
        let change = newest.map_or(Change::None, |n| self.ops[n].change);
        let hidden = change == Change::Delete || (newest.is_none() && fragment.tup.is_uncommitted(row));
        if hidden {
            return Err(ErrorCode::TUPLE_NOT_FOUND);
        }
        if out.session(body.api) != body.session {
            return Ok(());
        }
        let (ops, scratch) = (&self.ops, &mut self.projection);
        out.send_with(self.me, body.api, |buffer| -> Result<TransIdAi, TupError> {
            let start = buffer.len();
            let columns = projection(req.second, scratch);
            match newest {
                Some(n) if change == Change::Copy => fragment.tup.read_copy(&ops[n].copy, columns, buffer)?,
                _ => fragment.tup.read(row, columns, buffer)?,
            }
            Ok(TransIdAi { api_op: body.api_op, length: (buffer.len() - start) as u32 })
        })?;
        Ok(())
    }

    /// Leaves an operation in its row's queue with its request.
    fn wait(
        &mut self,
        req: &View<'_, LqhKeyReq>,
        row: RowRef,
        hash: KeyHash,
        out: &mut Outbox,
    ) -> Result<Outcome, ErrorCode> {
        let bytes = req.first.len() + req.second.len();
        if (self.saved_bytes + bytes) as u64 > self.tunables.waiting_bytes_max {
            return Err(ErrorCode::OUT_OF_LONG_MESSAGE_BUFFER);
        }
        let index = self.seize(&req.body, row, hash)?;
        self.saved_bytes += bytes;
        let buffer = self.spare.pop().unwrap_or_default();
        self.ops[index].request = Some(Request::keep(req, buffer));
        if let Some(fragment) = self.tables.fragment(req.body.table, req.body.fragment) {
            let batched = req.body.has(lqh_flags::BATCHED);
            queue::join_waiting(&mut self.ops, fragment, row, index, batched);
        }
        self.report_wait(index, out);
        Ok(Outcome::Waits)
    }

    /// An operation is prepared here: on to the next replica, or the answer.
    #[inline]
    fn prepared(&mut self, index: u32, req: &View<'_, LqhKeyReq>, out: &mut Outbox) {
        let mut body = req.body;
        let position = body.position as usize;
        body.ops[position] = index;
        let op = &mut self.ops[index];
        op.ops[position] = index;
        if position + 1 < body.count as usize {
            op.forwarded = true;
            body.position += 1;
            if self.planted.has(Fault::LoneWriteAckedEarly) && position == 0 && op.self_commit {
                let (trans, tc_op, ops) = (body.trans, body.tc_op, body.ops);
                let conf = LqhKeyConf { trans, epoch: self.epoch, tc_op, committed: 1, ops };
                out.send(self.me, body.tc, &conf, &[], &[]);
            }
            out.send(self.me, body.replicas[position + 1], &body, req.first, req.second);
        } else if op.self_commit {
            self.self_commit(index, out);
        } else {
            let (tc, ops) = (op.tc, op.ops);
            self.confirm(tc, &body, ops, out);
        }
    }
}

/// What an after-image starts from.
#[derive(Clone, Copy)]
enum Base {
    /// Nothing: all columns at their defaults.
    Empty,
    /// The committed row, or the transaction's insert in place.
    Row,
    /// The transaction's own newest image, in this operation record.
    Copy(u32),
}

impl Base {
    fn of(newest: Option<u32>, ops: &Pool<Op>) -> Self {
        match newest {
            Some(n) if ops[n].change == Change::Copy => Self::Copy(n),
            _ => Self::Row,
        }
    }
}

const _: () = assert!(NONE == NO_OPERATION);
