//! Transactions of a session: their records, how they begin, roll back and are let go.
//!
//! A record is named by the transaction id it goes under, which holds its place (16 bits) and a counter, so
//! that a late signal about an ended transaction finds nothing.

use super::{Completion, Core, NOBODY, Now};
use crate::NdbError;
use crate::table::Table;
use signals::key::KeyHash;
use signals::keyop::{ROLLBACK_ALL, TcRollbackReq};
use signals::{BlockRef, ErrorCode, TransId, frame};

/// A transaction of a [`Core`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransRef(pub(super) TransId);

impl TransRef {
    /// The id it goes under in the cluster.
    #[must_use]
    pub fn id(self) -> TransId {
        self.0
    }
}

/// See the chart in the parent module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransState {
    /// The record is free.
    Free,
    /// No coordinator knows it yet.
    Fresh,
    /// Its coordinator waits for more.
    Open,
    /// A flight is under way; `commit` once its commit was asked for.
    Executing { flight: u32, commit: bool },
    /// A rollback was asked for.
    RollingBack { keep: u32, tag: u64, deadline: Now },
    /// Over: committed ([`ErrorCode::NONE`]) or rolled back because of the code.
    Ended(ErrorCode),
}

pub(super) struct Trans {
    pub(super) id: TransId,
    pub(super) state: TransState,
    /// Its coordinator; nobody while it has none.
    pub(super) tc: BlockRef,
    /// Index of the coordinator's node.
    pub(super) tc_node: u8,
    /// Where the coordinator should be, if the application said so.
    pub(super) hint: Option<(u8, u16)>,
    /// It has asked for changes, which its own reads must see.
    pub(super) has_writes: bool,
    /// Operations its coordinator was sent, those that failed included.
    pub(super) ops_sent: u32,
    /// Nobody holds it any more: the record is freed when it ends.
    pub(super) released: bool,
}

impl Core {
    /// Begins a transaction. Nothing is sent before its first execute.
    ///
    /// # Errors
    /// 4006: too many transactions.
    pub fn begin(&mut self) -> Result<TransRef, NdbError> {
        let index = match self.free_transactions.pop() {
            Some(index) => index,
            None if (self.transactions.len() as u32) < self.options.transactions_max.min(u16::MAX.into()) => {
                self.transactions.push(Trans {
                    id: TransId::NONE,
                    state: TransState::Free,
                    tc: BlockRef::NONE,
                    tc_node: 0,
                    hint: None,
                    has_writes: false,
                    ops_sent: 0,
                    released: false,
                });
                (self.transactions.len() - 1) as u16
            }
            None => return Err(ErrorCode::OUT_OF_TRANSACTION_OBJECTS.into()),
        };
        self.next_transaction = self.next_transaction.wrapping_add(1);
        let counter = self.next_transaction << 16 | u64::from(index);
        let id = TransId::new(self.options.node, self.options.link, counter);
        let record = &mut self.transactions[index as usize];
        *record = Trans {
            id,
            state: TransState::Fresh,
            tc: BlockRef::NONE,
            tc_node: 0,
            hint: None,
            has_writes: false,
            ops_sent: 0,
            released: false,
        };
        Ok(TransRef(id))
    }

    /// Puts a fresh transaction's coordinator near the rows with distribution hash `hash` in `table`.
    pub fn hint(&mut self, trans: TransRef, table: &Table, hash: KeyHash) {
        if let Some((node, tc)) = self.coordinator_for(table, hash)
            && let Some(record) = self.trans_mut(trans.0)
        {
            record.hint = Some((node, tc));
        }
    }

    /// Node and TC instance near the rows with this hash: at their primary, or where one is alive.
    #[inline]
    pub(super) fn coordinator_for(&mut self, table: &Table, hash: KeyHash) -> Option<(u8, u16)> {
        let placement = table.placement(table.partition_of(hash));
        let near = placement
            .replicas()
            .filter_map(|(node, _)| self.index_of(node))
            .find(|index| self.nodes[*index].is_started());
        let index = match near {
            Some(index) => index,
            None => self.any_started()?,
        };
        Some((index as u8, (hash.0 as u32 % u32::from(self.nodes[index].tcs)) as u16))
    }

    #[inline]
    pub(super) fn trans_index(id: TransId) -> usize {
        (id.0 & 0xffff) as usize
    }

    /// The record of a transaction that is alive.
    #[inline]
    pub(super) fn trans_mut(&mut self, id: TransId) -> Option<&mut Trans> {
        self.transactions.get_mut(Self::trans_index(id)).filter(|t| t.id == id && t.state != TransState::Free)
    }

    /// Why a transaction cannot take a call now; `None` if it can.
    pub(super) fn refusal(&mut self, trans: TransRef) -> Option<NdbError> {
        let Some(record) = self.trans_mut(trans.0) else {
            return Some(ErrorCode::TRANSACTION_HAS_FAILED.into());
        };
        match record.state {
            TransState::Fresh | TransState::Open => None,
            TransState::Executing { .. } | TransState::RollingBack { .. } => {
                Some(NdbError::with(ErrorCode::STATUS_ERROR, "the transaction is still executing"))
            }
            TransState::Ended(ErrorCode::NONE) => {
                Some(NdbError::with(ErrorCode::TRANSACTION_HAS_FAILED, "it was committed"))
            }
            TransState::Ended(code) if code.is_temporary() => {
                Some(NdbError::with(code, "the transaction was rolled back"))
            }
            TransState::Ended(code) => {
                Some(NdbError::with(ErrorCode::TRANSACTION_ALREADY_ABORTED, format!("because of {code}")))
            }
            TransState::Free => Some(ErrorCode::TRANSACTION_HAS_FAILED.into()),
        }
    }

    /// Operations its coordinator has seen: what [`Self::rollback`] keeps when told so.
    pub fn operations_of(&mut self, trans: TransRef) -> u32 {
        self.trans_mut(trans.0).map_or(0, |t| t.ops_sent)
    }

    /// Whether the transaction is over.
    pub fn has_ended(&mut self, trans: TransRef) -> bool {
        self.trans_mut(trans.0).is_none_or(|t| matches!(t.state, TransState::Ended(_)))
    }

    /// Rolls back: all of it, or to a savepoint, keeping the first `keep` operations. Answered by
    /// [`Completion::RolledBack`].
    pub fn rollback(&mut self, now: Now, trans: TransRef, keep: Option<u32>, tag: u64) {
        let deadline = now.after_ms(self.options.request_timeout_ms);
        let Some(record) = self.trans_mut(trans.0) else {
            self.rolled_back(tag, Err(ErrorCode::TRANSACTION_HAS_FAILED.into()));
            return;
        };
        match (record.state, keep) {
            (TransState::Fresh, None) => {
                record.state = TransState::Ended(ErrorCode::TRANSACTION_ALREADY_ABORTED);
                self.rolled_back(tag, Ok(()));
            }
            (TransState::Fresh, Some(_)) => self.rolled_back(tag, Ok(())),
            (TransState::Ended(code), None) if code != ErrorCode::NONE => self.rolled_back(tag, Ok(())),
            (TransState::Open, Some(keep)) if keep > record.ops_sent => {
                let text = "the savepoint lies ahead of the transaction";
                self.rolled_back(tag, Err(NdbError::with(ErrorCode::STATUS_ERROR, text)));
            }
            (TransState::Open, _) => {
                let keep = keep.unwrap_or(ROLLBACK_ALL);
                record.state = TransState::RollingBack { keep, tag, deadline };
                self.send_rollback(trans.0, keep);
            }
            _ => {
                let error = self.refusal(trans).unwrap_or(ErrorCode::STATUS_ERROR.into());
                self.rolled_back(tag, Err(error));
            }
        }
    }

    pub(super) fn rolled_back(&mut self, tag: u64, result: Result<(), NdbError>) {
        if tag != NOBODY {
            self.complete_with(Completion::RolledBack { tag, result });
        }
    }

    pub(super) fn send_rollback(&mut self, id: TransId, keep: u32) {
        let me = self.me;
        let Some(record) = self.trans_mut(id) else { return };
        let (tc, node) = (record.tc, record.tc_node as usize);
        if !tc.is_none() {
            frame::push_signal(
                self.out(node),
                me,
                tc,
                &TcRollbackReq { trans: id, keep, spare: 0 },
                &[],
                &[],
            );
        }
    }

    /// The holder lets a transaction go: what is not committed is rolled back, and the record is freed in the
    /// end.
    pub fn release(&mut self, now: Now, trans: TransRef) {
        let deadline = now.after_ms(self.options.request_timeout_ms);
        let Some(record) = self.trans_mut(trans.0) else { return };
        record.released = true;
        match record.state {
            TransState::Fresh | TransState::Ended(_) => self.free_trans(trans.0),
            TransState::Open => {
                record.state = TransState::RollingBack { keep: ROLLBACK_ALL, tag: NOBODY, deadline };
                self.send_rollback(trans.0, ROLLBACK_ALL);
            }
            TransState::RollingBack { .. } | TransState::Executing { .. } | TransState::Free => {}
        }
    }

    /// A transaction is over. Its record is freed if nobody holds it.
    pub(super) fn end_trans(&mut self, id: TransId, code: ErrorCode) {
        let Some(record) = self.trans_mut(id) else { return };
        record.state = TransState::Ended(code);
        if record.released {
            self.free_trans(id);
        }
    }

    /// A flight is through and its transaction lives on.
    pub(super) fn reopen_trans(&mut self, now: Now, id: TransId) {
        let deadline = now.after_ms(self.options.request_timeout_ms);
        let Some(record) = self.trans_mut(id) else { return };
        record.state = if record.tc.is_none() { TransState::Fresh } else { TransState::Open };
        if !record.released {
            return;
        }
        if record.state == TransState::Fresh {
            self.free_trans(id);
        } else {
            record.state = TransState::RollingBack { keep: ROLLBACK_ALL, tag: NOBODY, deadline };
            self.send_rollback(id, ROLLBACK_ALL);
        }
    }

    fn free_trans(&mut self, id: TransId) {
        let index = Self::trans_index(id);
        self.transactions[index].state = TransState::Free;
        self.free_transactions.push(index as u16);
    }
}
