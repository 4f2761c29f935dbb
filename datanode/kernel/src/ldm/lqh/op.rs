//! Operation records: one per prepared, waiting or not yet forgotten operation of an LDM.

use crate::ldm::row_ref::RowRef;
use crate::ldm::tup::CopyTuple;
use signals::frame::View;
use signals::ids::MAX_REPLICAS;
use signals::key::KeyHash;
use signals::keyop::{LqhKeyReq, NO_OPERATION, Operation, lqh_flags};
use signals::{BlockRef, FragmentId, TableId, TransId};

/// See the module chart of lqh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum OpState {
    /// The record is free.
    #[default]
    Free,
    Waiting,
    Prepared,
    Committed,
}

/// What a prepared operation will do to its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Change {
    /// Nothing: it holds a lock.
    #[default]
    None,
    /// The row is new and stands in place, unseen.
    Insert,
    /// The after-image is in the record's copy tuple: an update, or an insert over the transaction's own
    /// delete.
    Copy,
    /// The row goes.
    Delete,
}

/// How much of a row an operation claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Lock {
    #[default]
    Shared,
    Exclusive,
}

impl Lock {
    pub(super) fn of(operation: Operation) -> Self {
        if operation == Operation::ReadShared { Self::Shared } else { Self::Exclusive }
    }
}

#[derive(Default)]
pub(super) struct Op {
    pub(super) state: OpState,
    pub(super) lock: Lock,
    pub(super) change: Change,
    pub(super) is_write: bool,
    pub(super) self_commit: bool,
    /// Sent on to the next replica.
    pub(super) forwarded: bool,
    /// It waits, and its transaction waits for other rows as well.
    pub(super) waits_elsewhere: bool,
    pub(super) position: u8,
    pub(super) count: u8,
    pub(super) fragment: FragmentId,
    pub(super) trans: TransId,
    pub(super) table: TableId,
    pub(super) row: RowRef,
    pub(super) tc: BlockRef,
    pub(super) tc_op: u32,
    pub(super) replicas: [BlockRef; MAX_REPLICAS],
    pub(super) ops: [u32; MAX_REPLICAS],
    /// The next operation in the row's queue.
    pub(super) next: u32,
    /// In the queue's first record: the last one.
    pub(super) tail: u32,
    /// Hash of the key, to take the row out of the index.
    pub(super) hash: KeyHash,
    /// The after-image, if `change` is [`Change::Copy`].
    pub(super) copy: CopyTuple,
    /// The request, while waiting.
    pub(super) request: Option<Request>,
}

/// No operation: the end of a queue, an empty queue.
pub(super) const NONE: u32 = NO_OPERATION;

/// A kept request: the signal's body and sections.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) body: LqhKeyReq,
    bytes: Vec<u8>,
}

impl Request {
    /// Keeps `req` in `bytes`, an empty buffer.
    pub(super) fn keep(req: &View<'_, LqhKeyReq>, mut bytes: Vec<u8>) -> Self {
        bytes.extend_from_slice(req.first);
        bytes.extend_from_slice(req.second);
        Self { body: req.body, bytes }
    }

    pub(super) fn view(&self) -> View<'_, LqhKeyReq> {
        let (first, second) = self.bytes.split_at(self.body.key_len as usize);
        View { body: self.body, first, second }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The buffer, emptied.
    pub(super) fn into_buffer(mut self) -> Vec<u8> {
        self.bytes.clear();
        self.bytes
    }
}

impl Op {
    /// Fills a fresh record from its request. Buffers of the record's former life stay.
    #[inline]
    pub(super) fn start(&mut self, req: &LqhKeyReq, row: RowRef, hash: KeyHash) {
        let operation = req.op();
        self.lock = Lock::of(operation);
        self.change = Change::None;
        self.is_write = operation.is_write();
        self.self_commit = req.has(lqh_flags::SELF_COMMIT);
        self.forwarded = false;
        self.waits_elsewhere = false;
        self.position = req.position;
        self.count = req.count;
        self.fragment = req.fragment;
        self.trans = req.trans;
        self.table = req.table;
        self.row = row;
        self.tc = req.tc;
        self.tc_op = req.tc_op;
        self.replicas = req.replicas;
        self.ops = req.ops;
        self.next = NONE;
        self.tail = NONE;
        self.hash = hash;
    }
}
