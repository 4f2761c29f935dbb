//! Execute: a batch is sent on its way and becomes a flight, which ends when its last answer is in.
//!
//! A flight owns its batch. `outstanding` counts the rows still to come (a committed read's refusal counts
//! as one), `awaiting_tc` says that the coordinator has not confirmed yet. When neither is left the flight
//! is through.

use super::{Completion, Core, Executed, NOBODY, Now, REST_MS, TransRef};
use crate::NdbError;
use crate::batch::{Batch, Op, OpState};
use crate::core::trans::TransState;
use crate::table::Table;
use signals::ids::{Epoch, FragmentId};
use signals::keyop::{Operation, ReadRowReq, TcCommitReq, TcKeyReq, tc_flags};
use signals::{BlockNumber, BlockRef, ErrorCode, TransId, frame};

/// Bytes a request takes beside its key and AttrInfo, at most.
const REQUEST_OVERHEAD: usize = 64;

/// Whether an execute ends its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitMode {
    /// The transaction goes on.
    NoCommit,
    /// Commit if every operation succeeded or may fail.
    Commit,
}

/// See the module.
#[derive(Default)]
pub(super) struct Flight {
    /// `None` while the record is free.
    pub(super) batch: Option<Box<Batch>>,
    pub(super) tag: u64,
    /// [`TransId::NONE`] for committed reads outside any transaction.
    pub(super) trans: TransId,
    pub(super) outstanding: u32,
    pub(super) awaiting_tc: bool,
    pub(super) commit: bool,
    pub(super) committed: Option<Epoch>,
    pub(super) deadline: Now,
    /// Tells the flights that use one record apart.
    pub(super) serial: u64,
}

impl Core {
    /// Executes a batch, in a transaction or as one of its own (which is then committed). Answered by
    /// [`Completion::Executed`], also if it is refused at once.
    pub fn execute(
        &mut self,
        now: Now,
        trans: Option<TransRef>,
        mut batch: Box<Batch>,
        mode: CommitMode,
        tag: u64,
    ) {
        let commit = mode == CommitMode::Commit || trans.is_none();
        if let Some(trans) = trans
            && let Some(error) = self.refusal(trans)
        {
            self.complete_with(Completion::Executed { tag, batch, result: Err(error) });
            return;
        }
        if batch.ops.first().is_some_and(|op| op.state != OpState::Staged) {
            batch.rewind();
        }
        if self.ops.available() < batch.ops.len() as u32 {
            let text = format!("an operation limit of {} in flight", self.options.operations_max);
            let error = NdbError::with(ErrorCode::OUT_OF_OPERATION_RECORDS, text);
            self.refuse(trans, tag, batch, error);
            return;
        }
        let has_writes = trans.and_then(|t| self.trans_mut(t.0)).is_some_and(|t| t.has_writes);
        // An empty batch that commits nothing asks nothing of anybody; to a coordinator it would look like a
        // commit.
        let nothing = batch.is_empty() && !commit;
        let all_reads = batch.ops.iter().all(|op| op.operation == Operation::ReadCommitted);
        if nothing || !has_writes && all_reads {
            self.execute_direct(now, trans, batch, commit, tag);
        } else {
            self.execute_at_tc(now, trans, batch, commit, tag);
        }
    }

    /// A batch cannot be sent: its transaction, if it has one, is over.
    #[cold]
    fn refuse(&mut self, trans: Option<TransRef>, tag: u64, batch: Box<Batch>, error: NdbError) {
        if let Some(trans) = trans {
            self.send_rollback(trans.0, signals::keyop::ROLLBACK_ALL);
            self.end_trans(trans.0, error.code());
        }
        self.complete_with(Completion::Executed { tag, batch, result: Err(error) });
    }

    fn new_flight(&mut self, now: Now, trans: TransId, commit: bool, tag: u64) -> u32 {
        let index = match self.free_flights.pop() {
            Some(index) => index,
            None => {
                self.flights.push(Flight::default());
                (self.flights.len() - 1) as u32
            }
        };
        let deadline = now.after_ms(self.options.request_timeout_ms);
        let flight = &mut self.flights[index as usize];
        let serial = flight.serial + 1;
        *flight = Flight { tag, trans, commit, deadline, serial, ..Flight::default() };
        if let Some(record) = self.trans_mut(trans) {
            record.state = TransState::Executing { flight: index, commit };
        }
        index
    }

    /// Committed reads go straight to LDMs. A commit that comes along goes to the coordinator, if there is
    /// one.
    fn execute_direct(
        &mut self,
        now: Now,
        trans: Option<TransRef>,
        mut batch: Box<Batch>,
        commit: bool,
        tag: u64,
    ) {
        let id = trans.map_or(TransId::NONE, |t| t.0);
        let index = self.new_flight(now, id, commit, tag);
        let mut outstanding = 0;
        for op in 0..batch.ops.len() {
            if self.send_read(index, &mut batch, op) {
                outstanding += 1;
            }
        }
        let tc = self.trans_mut(id).map(|t| (t.tc, t.tc_node as usize)).filter(|t| !t.0.is_none());
        let flight = &mut self.flights[index as usize];
        flight.outstanding = outstanding;
        flight.batch = Some(batch);
        if let (true, Some((tc, node))) = (commit, tc) {
            flight.awaiting_tc = true;
            let me = self.me;
            frame::push_signal(self.out(node), me, tc, &TcCommitReq { trans: id }, &[], &[]);
        } else if commit {
            flight.committed = Some(Epoch(0));
        }
        self.settle(now, index);
    }

    /// Sends one committed read to a replica not asked yet; whether it is on its way. If not, it has failed.
    #[inline]
    pub(super) fn send_read(&mut self, flight: u32, batch: &mut Batch, place: usize) -> bool {
        let op = batch.ops[place];
        let table = &batch.tables[op.table as usize];
        let partition = table.partition_of(op.hash);
        let failed = match self.choose_replica(table, partition, &op) {
            Some((bit, node, ldm)) => {
                let waiting = self.nodes[node].out.len();
                if waiting > 0 && waiting + op.attr_len as usize > self.options.send_buffer_bytes {
                    ErrorCode::SEND_BUFFER_OVERLOAD
                } else if let Some(api_op) = self.ops.insert((flight, place as u32)) {
                    let body = ReadRowReq {
                        table: table.id(),
                        version: table.version(),
                        api_op,
                        fragment: FragmentId(partition),
                        key_len: op.key_len,
                        attr_len: op.attr_len,
                        spare: 0,
                    };
                    let target = BlockRef::new(self.nodes[node].id, BlockNumber::Dblqh, ldm);
                    let me = self.me;
                    frame::push_signal(
                        self.out(node),
                        me,
                        target,
                        &body,
                        batch.key_of(&op),
                        batch.attr_of(&op),
                    );
                    let op = &mut batch.ops[place];
                    op.state = OpState::Sent;
                    op.api_op = api_op;
                    op.node = node as u8;
                    op.tried |= 1 << bit;
                    return true;
                } else {
                    ErrorCode::OUT_OF_OPERATION_RECORDS
                }
            }
            None => ErrorCode::CLUSTER_UNAVAILABLE,
        };
        batch.ops[place].state = OpState::Failed(failed);
        false
    }

    /// A replica for a committed read: place in the chain, node index, LDM. With READ_BACKUP any will do,
    /// near ones first, in turn; else the primary alone, which is the first one alive.
    #[inline]
    fn choose_replica(&mut self, table: &Table, partition: u16, op: &Op) -> Option<(usize, usize, u16)> {
        let read_backup = table.def().read_backup;
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn as usize;
        let mut near: [(usize, usize, u16); 4] = [(0, 0, 0); 4];
        let mut far = near;
        let (mut nears, mut fars) = (0, 0);
        for (bit, (node, ldm)) in table.placement(partition).replicas().enumerate() {
            let index = self.by_id[node.0 as usize] as usize;
            let Some(state) = self.nodes.get(index).filter(|n| n.is_started()) else { continue };
            let tried = op.tried & 1 << bit != 0;
            if !read_backup {
                return (!tried).then_some((bit, index, ldm));
            }
            if tried {
                continue;
            }
            if state.near {
                near[nears] = (bit, index, ldm);
                nears += 1;
            } else {
                far[fars] = (bit, index, ldm);
                fars += 1;
            }
        }
        match (nears, fars) {
            (0, 0) => None,
            (0, n) => Some(far[turn % n]),
            (1, _) => Some(near[0]),
            (n, _) => Some(near[turn % n]),
        }
    }

    /// Everything that is not committed reads alone goes to one coordinator.
    fn execute_at_tc(
        &mut self,
        now: Now,
        trans: Option<TransRef>,
        mut batch: Box<Batch>,
        commit: bool,
        tag: u64,
    ) {
        let begun = match trans {
            Some(trans) => Ok(trans.0),
            None => self.begin().map(|t| t.0),
        };
        let id = match begun {
            Ok(id) => id,
            Err(error) => return self.refuse(trans, tag, batch, error),
        };
        if trans.is_none()
            && let Some(record) = self.trans_mut(id)
        {
            record.released = true;
        }
        let Some(start) = self.choose_coordinator(id, &batch) else {
            let error = self.unavailable();
            return self.refuse(Some(TransRef(id)), tag, batch, error);
        };
        let record = &self.transactions[Self::trans_index(id)];
        let (tc, node) = (record.tc, record.tc_node as usize);
        let waiting = self.nodes[node].out.len();
        let size = batch.request.len() + batch.ops.len() * REQUEST_OVERHEAD;
        if waiting > 0 && waiting + size > self.options.send_buffer_bytes {
            let text = format!("{waiting} bytes wait for node {}", self.nodes[node].id);
            let error = NdbError::with(ErrorCode::SEND_BUFFER_OVERLOAD, text);
            if start {
                // The coordinator never heard of it.
                self.transactions[Self::trans_index(id)].tc = BlockRef::NONE;
            }
            return self.refuse(Some(TransRef(id)), tag, batch, error);
        }
        let index = self.new_flight(now, id, commit, tag);
        let mut outstanding = 0;
        if batch.ops.is_empty() {
            let me = self.me;
            frame::push_signal(self.out(node), me, tc, &TcCommitReq { trans: id }, &[], &[]);
        }
        let last = batch.ops.len().wrapping_sub(1);
        let mut has_writes = false;
        for place in 0..batch.ops.len() {
            let op = batch.ops[place];
            let mut flags = 0;
            if start && place == 0 {
                flags |= tc_flags::START;
            }
            if place == last {
                flags |= if commit { tc_flags::EXECUTE | tc_flags::COMMIT } else { tc_flags::EXECUTE };
            }
            outstanding += u32::from(op.operation.is_read());
            has_writes |= op.operation.is_write();
            self.send_to_tc(index, id, tc, node, &mut batch, place, flags);
        }
        let record = &mut self.transactions[Self::trans_index(id)];
        record.ops_sent += batch.ops.len() as u32;
        record.has_writes |= has_writes;
        let flight = &mut self.flights[index as usize];
        flight.outstanding = outstanding;
        flight.awaiting_tc = true;
        flight.batch = Some(batch);
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn send_to_tc(
        &mut self,
        flight: u32,
        trans: TransId,
        tc: BlockRef,
        node: usize,
        batch: &mut Batch,
        place: usize,
        mut flags: u8,
    ) {
        let op = batch.ops[place];
        if op.ignore_error {
            flags |= tc_flags::IGNORE_ERROR;
        }
        if op.nowait {
            flags |= tc_flags::NOWAIT;
        }
        // `execute` saw to it that there are enough.
        let api_op = self.ops.insert((flight, place as u32)).unwrap_or(signals::keyop::NO_OPERATION);
        let table = batch.table_of(&op);
        let body = TcKeyReq {
            trans,
            table: table.id(),
            version: table.version(),
            api_op,
            attr_len: op.attr_len,
            key_len: op.key_len,
            operation: op.operation as u8,
            flags,
            spare: 0,
        };
        let me = self.me;
        frame::push_signal(self.out(node), me, tc, &body, batch.key_of(&op), batch.attr_of(&op));
        let op = &mut batch.ops[place];
        op.api_op = api_op;
        op.state = OpState::Sent;
    }

    /// Gives a transaction its coordinator if it has none; whether this is new to the coordinator, or
    /// `None` if no data node is there.
    fn choose_coordinator(&mut self, id: TransId, batch: &Batch) -> Option<bool> {
        let record = self.trans_mut(id)?;
        if !record.tc.is_none() {
            return Some(false);
        }
        let hint = record.hint.filter(|(node, _)| self.nodes[*node as usize].is_started());
        let (node, instance) = match (hint, batch.ops.first()) {
            (Some(hint), _) => hint,
            (None, Some(op)) => self.coordinator_for(batch.table_of(op), op.hash)?,
            (None, None) => return None,
        };
        let tc = BlockRef::new(self.nodes[node as usize].id, BlockNumber::Dbtc, instance);
        let record = self.trans_mut(id)?;
        record.tc = tc;
        record.tc_node = node;
        Some(true)
    }

    /// Ends a flight if its last answer is in.
    #[inline]
    pub(super) fn settle(&mut self, now: Now, index: u32) {
        let flight = &mut self.flights[index as usize];
        if flight.outstanding > 0 || flight.awaiting_tc {
            return;
        }
        let Some(batch) = flight.batch.take() else { return };
        let (trans, tag, committed, commit) = (flight.trans, flight.tag, flight.committed, flight.commit);
        self.free_flights.push(index);
        if trans != TransId::NONE {
            if commit {
                self.end_trans(trans, ErrorCode::NONE);
            } else {
                self.reopen_trans(now, trans);
            }
        }
        if tag != NOBODY {
            self.complete_with(Completion::Executed { tag, batch, result: Ok(Executed { committed }) });
        }
    }

    /// Ends a flight before its last answer: what may still come finds nothing.
    #[cold]
    pub(super) fn fail_flight(&mut self, now: Now, index: u32, error: NdbError) {
        let until = now.after_ms(REST_MS).0;
        let Some(flight) = self.flights.get_mut(index as usize) else { return };
        let Some(batch) = flight.batch.take() else { return };
        let (trans, tag) = (flight.trans, flight.tag);
        self.free_flights.push(index);
        for op in batch.ops.iter().filter(|op| op.state == OpState::Sent) {
            self.ops.retire(op.api_op, until);
        }
        if trans != TransId::NONE {
            self.end_trans(trans, error.code());
        }
        if tag != NOBODY {
            self.complete_with(Completion::Executed { tag, batch, result: Err(error) });
        }
    }
}
