//! Receive: frames of the data nodes, checked against what was asked, and what they do to flights and
//! transactions.
//!
//! Two kinds of surprise are told apart. An answer to something that is given up (timed out, rolled back,
//! its link lost) is normal: it is counted and dropped. An answer that was never asked for, or does not fit
//! what was, means that the node is broken: an error, and the driver closes the link.

use super::{Core, Now};
use crate::NdbError;
use crate::batch::OpState;
use crate::core::trans::TransState;
use crate::row;
use signals::control::ControlSignal;
use signals::frame::{Invalid, Signal};
use signals::ids::Epoch;
use signals::keyop::{
    NO_OPERATION, ROLLBACK_ALL, ReadRowRef, TcKeyConf, TcKeyRef, TcRollbackConf, TcRollbackRep,
};
use signals::{BlockRef, ErrorClass, ErrorCode, NodeId, TransId};

impl Core {
    /// Takes one whole frame that came over the link to `node`.
    ///
    /// # Errors
    /// The frame makes no sense: close the link and call [`Self::disconnected`].
    #[inline]
    pub fn receive(&mut self, now: Now, node: NodeId, bytes: &[u8]) -> Result<(), Invalid> {
        let (header, signal) = Signal::parse(bytes)?;
        let Some(index) = self.index_of(node) else { return Err(Invalid("frame of an unknown node")) };
        if header.target != self.me || header.source.node() != node {
            return Err(Invalid("frame of or for somebody else"));
        }
        self.nodes[index].heard(now);
        match signal {
            Signal::TransIdAi(row) => self.on_row(now, row.body.api_op, row.first),
            Signal::TcKeyConf(conf) => self.on_tckeyconf(now, header.source, &conf.body),
            Signal::ReadRowRef(refusal) => self.on_readrowref(now, &refusal.body),
            Signal::TcKeyRef(refusal) => self.on_tckeyref(now, header.source, &refusal.body),
            Signal::TcCommitConf(conf) => {
                self.on_tccommitconf(now, header.source, conf.body.trans, conf.body.epoch)
            }
            Signal::TcRollbackConf(conf) => self.on_tcrollbackconf(now, header.source, &conf.body),
            Signal::TcRollbackRep(rep) => self.on_tcrollbackrep(now, header.source, &rep.body),
            Signal::ScanFragConf(conf) => self.on_scanfragconf(now, header.source, &conf.body, conf.first),
            Signal::ScanFragRef(refusal) => self.on_scanfragref(now, &refusal.body),
            Signal::Control(control) => self.on_control(now, index, *control),
            Signal::TcKeyReq(_)
            | Signal::TcCommitReq(_)
            | Signal::TcRollbackReq(_)
            | Signal::LqhKeyReq(_)
            | Signal::LqhKeyConf(_)
            | Signal::LqhKeyRef(_)
            | Signal::CommitReq(_)
            | Signal::CommittedConf(_)
            | Signal::CompleteOrd(_)
            | Signal::AbortReq(_)
            | Signal::AbortedConf(_)
            | Signal::ReadRowReq(_)
            | Signal::ScanFragReq(_)
            | Signal::ScanNextReq(_)
            | Signal::ScanContinueOrd(_)
            | Signal::WaitForRep(_)
            | Signal::DeadlockProbe(_)
            | Signal::DeadlockReq(_)
            | Signal::DeadlockConf(_) => Err(Invalid("a signal no client gets")),
        }
    }

    fn on_control(&mut self, now: Now, node: usize, control: ControlSignal) -> Result<(), Invalid> {
        match control {
            ControlSignal::ApiRegConf(conf) => self.on_api_reg_conf(node, conf),
            ControlSignal::DictConf { request, answer } => self.on_dict_conf(now, request, answer),
            ControlSignal::DictRef { request, refusal } => {
                self.on_dict_ref(now, request, refusal);
                Ok(())
            }
            _ => Err(Invalid("a control signal no client gets")),
        }
    }

    #[cold]
    fn stale(&mut self) -> Result<(), Invalid> {
        self.stale += 1;
        Ok(())
    }

    /// TRANSID_AI: the row of a read.
    #[inline]
    fn on_row(&mut self, now: Now, api_op: u32, attr_info: &[u8]) -> Result<(), Invalid> {
        let Some((index, place)) = self.ops.get_mut(api_op).copied() else { return self.stale() };
        let flight = &mut self.flights[index as usize];
        let Some(batch) = flight.batch.as_deref_mut() else { return self.stale() };
        let op = batch.ops[place as usize];
        if !op.operation.is_read() {
            return Err(Invalid("a row for an operation that is no read"));
        }
        if !row::fits(batch.table_of(&op), batch.attr_of(&op), attr_info) {
            return Err(Invalid("a row that does not fit what was asked"));
        }
        let row_at = batch.rows.len() as u32;
        batch.rows.extend_from_slice(attr_info);
        let op = &mut batch.ops[place as usize];
        (op.row_at, op.row_len, op.state) = (row_at, attr_info.len() as u32, OpState::Done);
        flight.outstanding -= 1;
        self.ops.remove(api_op);
        self.settle(now, index);
        Ok(())
    }

    /// READROWREF: a committed read found nothing, or must look elsewhere.
    fn on_readrowref(&mut self, now: Now, refusal: &ReadRowRef) -> Result<(), Invalid> {
        let Some((index, place)) = self.ops.get_mut(refusal.api_op).copied() else { return self.stale() };
        let code = error_code(refusal.code)?;
        let flight = &mut self.flights[index as usize];
        let Some(mut batch) = flight.batch.take() else { return self.stale() };
        let op = &mut batch.ops[place as usize];
        if op.tried == 0 {
            flight.batch = Some(batch);
            return Err(Invalid("READROWREF for an operation sent to a coordinator"));
        }
        self.ops.remove(refusal.api_op);
        let parked = is_stale_placement(code) && !op.refreshed && self.has_room_to_park();
        let waits = if parked {
            op.refreshed = true;
            op.state = OpState::Parked;
            let (table, serial) = (batch.tables[op.table as usize].id(), self.flights[index as usize].serial);
            self.park(now, table, index, serial, place);
            true
        } else if matches!(code.class(), ErrorClass::NodeRecovery | ErrorClass::NodeShutdown) {
            // The node cannot serve it now; another replica can. The code is kept if there is none.
            let again = self.send_read(index, &mut batch, place as usize);
            if !again {
                batch.ops[place as usize].state = OpState::Failed(code);
            }
            again
        } else {
            if is_stale_schema(code) {
                self.forget_table(batch.tables[op.table as usize].id());
            }
            op.state = OpState::Failed(code);
            false
        };
        let flight = &mut self.flights[index as usize];
        flight.batch = Some(batch);
        if !waits {
            flight.outstanding -= 1;
        }
        self.settle(now, index);
        Ok(())
    }

    /// The transaction a coordinator speaks of, if it is alive and his.
    fn spoken_of(&mut self, tc: BlockRef, id: TransId) -> Result<Option<TransState>, Invalid> {
        if id.client() != self.me {
            return Err(Invalid("a transaction of somebody else"));
        }
        match self.trans_mut(id) {
            Some(record) if record.tc == tc => Ok(Some(record.state)),
            Some(record) if !record.tc.is_none() => Err(Invalid("another coordinator's transaction")),
            _ => Ok(None),
        }
    }

    /// TCKEYCONF: all operations so far are through.
    #[inline]
    fn on_tckeyconf(&mut self, now: Now, tc: BlockRef, conf: &TcKeyConf) -> Result<(), Invalid> {
        let Some(TransState::Executing { flight: index, commit }) = self.spoken_of(tc, conf.trans)? else {
            return self.stale();
        };
        if conf.operations != self.transactions[Self::trans_index(conf.trans)].ops_sent {
            return Err(Invalid("TCKEYCONF for another number of operations"));
        }
        if (conf.committed == 1) != commit {
            return Err(Invalid("TCKEYCONF commits what it was not told to, or does not what it was"));
        }
        let flight = &mut self.flights[index as usize];
        if !flight.awaiting_tc {
            return Err(Invalid("TCKEYCONF twice"));
        }
        flight.awaiting_tc = false;
        flight.committed = commit.then_some(conf.epoch);
        let mut lost = false;
        if let Some(batch) = flight.batch.as_deref_mut() {
            for op in batch.ops.iter_mut().filter(|op| op.state == OpState::Sent) {
                if op.operation.is_read() {
                    lost |= op.lost;
                } else {
                    op.state = OpState::Done;
                    self.ops.remove(op.api_op);
                }
            }
        }
        if lost {
            self.rows_lost(now, conf.trans, index);
        } else {
            self.settle(now, index);
        }
        Ok(())
    }

    /// TCKEYREF: one operation failed, the transaction lives.
    fn on_tckeyref(&mut self, now: Now, tc: BlockRef, refusal: &TcKeyRef) -> Result<(), Invalid> {
        let Some(TransState::Executing { flight: index, .. }) = self.spoken_of(tc, refusal.trans)? else {
            return self.stale();
        };
        let code = error_code(refusal.code)?;
        match self.ops.get_mut(refusal.api_op).copied() {
            Some((flight, place)) if flight == index => self.operation_failed(index, place, code),
            Some(_) => return Err(Invalid("TCKEYREF for an operation of another transaction")),
            None => return self.stale(),
        }
        self.settle(now, index);
        Ok(())
    }

    /// An operation at a coordinator failed; its number is given back, its row no longer awaited.
    fn operation_failed(&mut self, index: u32, place: u32, code: ErrorCode) {
        let flight = &mut self.flights[index as usize];
        let Some(batch) = flight.batch.as_deref_mut() else { return };
        let op = &mut batch.ops[place as usize];
        op.state = OpState::Failed(code);
        let (api_op, table) = (op.api_op, batch.tables[op.table as usize].id());
        if op.operation.is_read() {
            flight.outstanding -= 1;
        }
        self.ops.remove(api_op);
        if is_stale_schema(code) {
            self.forget_table(table);
        }
    }

    fn on_tccommitconf(&mut self, now: Now, tc: BlockRef, id: TransId, epoch: Epoch) -> Result<(), Invalid> {
        let Some(TransState::Executing { flight: index, commit }) = self.spoken_of(tc, id)? else {
            return self.stale();
        };
        let flight = &mut self.flights[index as usize];
        if !commit || !flight.awaiting_tc {
            return Err(Invalid("TCCOMMITCONF without a question"));
        }
        flight.awaiting_tc = false;
        flight.committed = Some(epoch);
        self.settle(now, index);
        Ok(())
    }

    fn on_tcrollbackconf(&mut self, now: Now, tc: BlockRef, conf: &TcRollbackConf) -> Result<(), Invalid> {
        let Some(TransState::RollingBack { keep, tag, .. }) = self.spoken_of(tc, conf.trans)? else {
            return self.stale();
        };
        if keep != conf.keep {
            return Err(Invalid("TCROLLBACKCONF for another savepoint"));
        }
        if keep == ROLLBACK_ALL {
            self.end_trans(conf.trans, ErrorCode::TRANSACTION_ALREADY_ABORTED);
        } else {
            if let Some(record) = self.trans_mut(conf.trans) {
                record.ops_sent = keep;
            }
            self.reopen_trans(now, conf.trans);
        }
        self.rolled_back(tag, Ok(()));
        Ok(())
    }

    /// TCROLLBACKREP: the coordinator has rolled the transaction back by its own decision.
    fn on_tcrollbackrep(&mut self, now: Now, tc: BlockRef, rep: &TcRollbackRep) -> Result<(), Invalid> {
        let code = error_code(rep.code)?;
        match self.spoken_of(tc, rep.trans)? {
            Some(TransState::Executing { flight: index, .. }) => {
                match self.ops.get_mut(rep.api_op).copied() {
                    Some((flight, place)) if flight == index => self.operation_failed(index, place, code),
                    _ if rep.api_op == NO_OPERATION => {}
                    // Its row had come before the coordinator changed its mind.
                    _ => self.stale += 1,
                }
                self.fail_flight(now, index, NdbError::new(code));
            }
            Some(TransState::Open) => self.end_trans(rep.trans, code),
            Some(TransState::RollingBack { keep, tag, .. }) => {
                self.end_trans(rep.trans, code);
                let result = if keep == ROLLBACK_ALL { Ok(()) } else { Err(NdbError::new(code)) };
                self.rolled_back(tag, result);
            }
            Some(TransState::Ended(_) | TransState::Fresh | TransState::Free) | None => return self.stale(),
        }
        Ok(())
    }
}

/// A code from the wire; 0 and what does not fit 16 bits is none.
#[inline]
pub(super) fn error_code(code: u32) -> Result<ErrorCode, Invalid> {
    match u16::try_from(code) {
        Ok(code) if code != 0 => Ok(ErrorCode(code)),
        _ => Err(Invalid("an impossible error code")),
    }
}

/// The table's placement, or all of it, may have changed: worth asking for it anew.
fn is_stale_placement(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::DISTRIBUTION_CHANGED | ErrorCode::INVALID_SCHEMA_VERSION)
}

/// The cached table is not what the cluster has.
pub(super) fn is_stale_schema(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DISTRIBUTION_CHANGED
            | ErrorCode::INVALID_SCHEMA_VERSION
            | ErrorCode::TABLE_BEING_DROPPED
            | ErrorCode::TABLE_NOT_DEFINED
            | ErrorCode::NO_SUCH_TABLE
            | ErrorCode::TABLE_NOT_FOUND
            | ErrorCode::TABLE_DROPPING
    )
}
