//! LQH: the local query handler, which drives acc and tup for the fragments of one LDM instance.
//!
//! It takes prepares, commits and aborts along replica chains (the charts are in `signals::keyop`), answers
//! committed reads and scans of clients, and keeps row locks.
//!
//! ```text
//!                 lock free                 COMMITREQ                    COMPLETEORD
//!   LQHKEYREQ ──┬──────────► Prepared ──────────────────► Committed ─────────────────► (none)
//!               │ lock taken     │  ▲                  (reads, self-committed: forgotten at once)
//!               └──► Waiting ────│──┘ granted
//!                       │        └── ABORTREQ, or LQHKEYREF from the next replica ──► (none)
//!                       └─────────── ABORTREQ ──► (none)
//! ```
//!
//! Facts that hold in each state:
//! * **Waiting** (primaries only): the operation stands in its row's queue behind others and has changed
//!   nothing. Its request is kept whole; when its turn comes it is executed as if it had just arrived.
//! * **Prepared**: the operation stands in the granted front of its row's queue. A write has all memory its
//!   commit needs. Readers without locks do not see it; its own transaction does. If it was sent on to the
//!   next replica, only that replica's answer, TC's decision or a failure moves it.
//! * **Committed**: the row shows the change, the operation stands in no queue, and is kept for TC's
//!   take-over alone.
//!
//! Every row's queue: granted operations first (all of one transaction, or shared reads of several), then
//! waiting ones in arrival order (`queue` tells the exceptions). A transaction that changes a row several
//! times has a chain of after-images there, newest last, each complete; the first COMMITREQ that reaches the
//! row commits the newest for all of them, so nobody sees the ones between.
//!
//! Backups never wait: a primary sends them operations on a row in the order it granted them, and commits a
//! row only after its backups have.
//!
//! This module never decides about transactions, never waits, and never talks to another LDM but along a
//! chain.

mod deadlock;
mod finish;
mod op;
mod prepare;
mod queue;
mod read;
mod scan;
mod table;
#[cfg(test)]
mod tests;

use crate::Now;
use crate::ldm::digest::FragmentDigest;
use crate::ldm::page::DataMemory;
use crate::outbox::Outbox;
use crate::pool::Pool;
use crate::setup::NodeSetup;
use crate::tunables::{Rare, Tunables};
use op::{Op, Request};
use queue::Released;
use scan::Scan;
use signals::control::ControlSignal;
use signals::ids::Epoch;
use signals::planted::{Fault, Planted};
use signals::{BlockNumber, BlockRef, ErrorCode, Signal};
use std::collections::VecDeque;
use table::Tables;

/// One LDM instance.
pub struct Ldm {
    me: BlockRef,
    /// Why clients are refused, if they are.
    refusing: Option<ErrorCode>,
    epoch: Epoch,
    memory: DataMemory,
    tables: Tables,
    ops: Pool<Op>,
    scans: Pool<Scan>,
    /// Rows whose queue lost an operation in this signal; their waiters are looked at before the signal ends.
    released: VecDeque<Released>,
    /// Requests whose row went away under them, to be executed anew, in order.
    retry: VecDeque<Request>,
    /// Bytes of requests kept for waiting operations.
    saved_bytes: usize,
    /// Emptied request buffers, to use again.
    spare: Vec<Vec<u8>>,
    /// For projections that do not lie aligned in their frame.
    projection: Vec<u16>,
    tunables: Tunables,
    rare: Rare,
    planted: Planted,
}

impl Ldm {
    /// The instance at birth: no tables, refusing clients until told that the node is started.
    #[must_use]
    pub fn new(setup: &NodeSetup, instance: u16) -> Self {
        Self {
            me: BlockRef::new(setup.node, BlockNumber::Dblqh, instance),
            refusing: Some(ErrorCode::NODE_NOT_STARTED),
            epoch: Epoch(1 << 32),
            memory: setup.data_memory.clone(),
            tables: Tables::default(),
            ops: Pool::new(setup.operations_max),
            scans: Pool::new(setup.scans_max),
            released: VecDeque::new(),
            retry: VecDeque::new(),
            saved_bytes: 0,
            spare: Vec::new(),
            projection: Vec::new(),
            tunables: setup.tunables,
            rare: setup.rare.split(u64::from(instance) + 1),
            planted: setup.planted,
        }
    }

    /// Handles one signal, and everything that follows from it inside this LDM.
    #[inline]
    pub fn handle(&mut self, now: Now, source: BlockRef, signal: &Signal<'_>, out: &mut Outbox) {
        match signal {
            Signal::ReadRowReq(req) => self.on_readrowreq(source, req, out),
            Signal::LqhKeyReq(req) => self.on_lqhkeyreq(req, out),
            Signal::LqhKeyRef(refusal) => self.on_lqhkeyref(&refusal.body, out),
            Signal::CommitReq(req) => self.on_commitreq(&req.body, out),
            Signal::CompleteOrd(order) => self.on_completeord(&order.body, out),
            Signal::AbortReq(req) => self.on_abortreq(&req.body, out),
            Signal::DeadlockProbe(probe) => self.on_deadlockprobe(&probe.body, out),
            Signal::ScanFragReq(req) => self.on_scanfragreq(source, req, out),
            Signal::ScanNextReq(req) => self.on_scannextreq(source, &req.body, out),
            Signal::ScanContinueOrd(order) => self.on_scancontinueord(&order.body, out),
            Signal::Control(control) => self.on_control(source, control, out),
            Signal::TcKeyReq(_)
            | Signal::TcKeyConf(_)
            | Signal::TcKeyRef(_)
            | Signal::TcCommitReq(_)
            | Signal::TcCommitConf(_)
            | Signal::TcRollbackReq(_)
            | Signal::TcRollbackConf(_)
            | Signal::TcRollbackRep(_)
            | Signal::TransIdAi(_)
            | Signal::LqhKeyConf(_)
            | Signal::CommittedConf(_)
            | Signal::AbortedConf(_)
            | Signal::WaitForRep(_)
            | Signal::DeadlockReq(_)
            | Signal::DeadlockConf(_)
            | Signal::ReadRowRef(_)
            | Signal::ScanFragConf(_)
            | Signal::ScanFragRef(_) => debug_assert!(false, "not for LQH at {now:?}: {signal:?}"),
        }
        self.wake_waiters(out);
    }

    fn on_control(&mut self, source: BlockRef, control: &ControlSignal, out: &mut Outbox) {
        match control {
            ControlSignal::StartPermOrd { started: true } => self.refusing = None,
            ControlSignal::StartPermOrd { started: false } => {
                self.refusing = Some(ErrorCode::CLUSTER_SHUTDOWN);
            }
            ControlSignal::EpochOrd { epoch } => self.epoch = *epoch,
            ControlSignal::ApiFailReq { client } => self.close_scans_of(*client),
            ControlSignal::AddTableReq(info) => self.tables.add(self.me, &self.memory, source, info, out),
            ControlSignal::PrepDropTableReq { table } => {
                self.tables.prepare_drop(self.me, source, *table, out);
            }
            ControlSignal::CancelDropTableOrd { table } => self.tables.cancel_drop(self.me, *table, out),
            ControlSignal::DropTableReq { table } => self.tables.drop(self.me, source, *table, out),
            _ => debug_assert!(false, "not for LQH: {control:?}"),
        }
    }

    /// Gives the memory of dropped tables back, a slice at a time.
    pub fn tick(&mut self, _now: Now, _out: &mut Outbox) {
        self.tables.bury(self.tunables.bury_pages as usize, self.planted.has(Fault::DroppedMemoryLost));
    }

    /// What every fragment here holds, for comparing replicas; reads every row.
    #[must_use]
    pub fn digests(&self) -> Vec<FragmentDigest> {
        self.tables.digests().collect()
    }

    /// Whether dropped tables still hold memory; it is given back a slice per tick.
    #[must_use]
    pub fn is_burying(&self) -> bool {
        self.tables.is_burying()
    }

    /// Operations and scans in use: both are 0 when the cluster is quiet.
    #[must_use]
    pub fn in_use(&self) -> (usize, usize) {
        (self.ops.used(), self.scans.used())
    }
}
