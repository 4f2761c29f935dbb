//! TC, the transaction coordinator: drives transactions of API clients over the replicas of the rows they
//! touch.
//!
//! One instance keeps the transactions that clients started with it. The protocol is in `signals::keyop`;
//! this is TC's side of it.
//!
//! ```text
//!            TCKEYREQ                    EXECUTE|COMMIT or TCCOMMITREQ,
//!   (none) ──────────► Active ──────────────────────────────────────────► Committing ──► (none)
//!                        │  ▲            and nothing outstanding             (all COMMITTEDCONF)
//!                        │  └──────── RollingBack (to a savepoint) ◄── TCROLLBACKREQ keep
//!                        ├── failed operation, deadlock, time-out,
//!                        │   client gone, TCROLLBACKREQ ──► Aborting ──► (none)
//!                        └── a lone write with START|EXECUTE|COMMIT ──► SelfCommitting ──► (none)
//! ```
//!
//! Facts that hold in each state:
//! * **Active**: every operation is Preparing (its LQHKEYREQ is out), Prepared (locks held on all its
//!   replicas), or gone (failed, or a committed read). `outstanding` counts those Preparing.
//! * **Committing**: the decision is made. Every lock-holding operation's COMMITREQ is out or answered.
//!   Nothing a client or a time-out does changes the outcome.
//! * **SelfCommitting**: the one operation decides for itself; an abort may be on its way and may come too
//!   late.
//! * **Aborting**, **RollingBack**: aborts are out for the operations concerned, in reverse order of their
//!   arrival, so that every row's newest version goes first.
//!
//! A lock wait ends by grant, by the abort of the youngest transaction of a deadlock as soon as there is one
//! (`deadlock`), or by the time-out: the last resort.
//!
//! An operation's record is released when its last answer is in, never earlier, so a late answer cannot
//! find somebody else's record: answers carry the transaction id and are matched against it.
//!
//! TC never looks into rows, never knows collations (keys arrive in normal form) and computes placement
//! itself: what a client believes about placement is never trusted.

mod deadlock;
mod finish;
mod prepare;
mod tables;

use crate::Now;
use crate::outbox::Outbox;
use crate::pool::Pool;
use crate::setup::NodeSetup;
use crate::tunables::{Rare, Tunables};
use hashbrown::HashTable;
use signals::control::ControlSignal;
use signals::ids::{Epoch, MAX_REPLICAS};
use signals::keyop::{NO_OPERATION, TcRollbackRep};
use signals::planted::{Fault, Planted};
use signals::{BlockNumber, BlockRef, ErrorCode, Signal, TableId, TransId};
use tables::Tables;

/// One TC instance.
pub struct Tc {
    me: BlockRef,
    /// Why clients are refused, if they are.
    refusing: Option<ErrorCode>,
    epoch: Epoch,
    tables: Tables,
    transactions: Pool<Transaction>,
    operations: Pool<Op>,
    by_id: HashTable<u32>,
    deadlock_timeout_ms: u64,
    inactive_timeout_ms: u64,
    next_check: Now,
    /// Deadlock probes begun here.
    probes: u32,
    tunables: Tunables,
    rare: Rare,
    planted: Planted,
}

/// What TC owes the client when a commit is through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommitReply {
    /// TCKEYCONF: the commit came with the last operation.
    KeyConf,
    /// TCCOMMITCONF: the commit was asked for by itself.
    CommitConf,
}

/// What TC owes the client when an abort is through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AbortReply {
    /// The client asked: TCROLLBACKCONF.
    Asked,
    /// TC decided: TCROLLBACKREP.
    Decided { code: ErrorCode, api_op: u32 },
    /// The client is gone.
    Nobody,
}

/// See the module's chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum TransState {
    /// The record is free.
    #[default]
    Free,
    Active,
    SelfCommitting {
        /// An abort was sent after the operation, because of this.
        abort: Option<AbortReply>,
    },
    Committing {
        awaiting: u32,
        reply: CommitReply,
        epoch: Epoch,
    },
    Aborting {
        awaiting: u32,
        reply: AbortReply,
    },
    RollingBack {
        awaiting: u32,
        keep: u32,
    },
}

#[derive(Default)]
struct Transaction {
    id: TransId,
    state: TransState,
    client: BlockRef,
    /// Operation records in arrival order; [`NO_OPERATION`] for those that are gone.
    ops: Vec<u32>,
    /// Operations whose answer is awaited.
    outstanding: u32,
    /// The client waits for a TCKEYCONF.
    execute: bool,
    /// The client wants a commit once nothing is outstanding.
    commit: Option<CommitReply>,
    /// When something last happened to it.
    active_at: Now,
    /// When it began: of a deadlock's transactions the youngest is aborted.
    started: Now,
    /// The deadlock probes it passed on of late.
    probed: Vec<deadlock::Probed>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum OpState {
    /// The record is free.
    #[default]
    Free,
    /// LQHKEYREQ is out.
    Preparing,
    /// Locks are held on all replicas.
    Prepared,
    /// COMMITREQ is out.
    Committing,
    /// Committed everywhere.
    Committed,
    /// AbortReq is out, for the transaction or a savepoint.
    Aborting,
}

#[derive(Default)]
struct Op {
    state: OpState,
    trans: TransId,
    trans_index: u32,
    /// Place in [`Transaction::ops`].
    place: u32,
    api_op: u32,
    table: TableId,
    ignore_error: bool,
    is_write: bool,
    /// A committed read: holds nothing once answered.
    lockless: bool,
    count: u8,
    replicas: [BlockRef; MAX_REPLICAS],
    /// The replicas' records, known when it is Prepared. While it is Preparing: the primary's, if it waits
    /// there.
    ops: [u32; MAX_REPLICAS],
}

impl Tc {
    /// The instance at birth: no tables, refusing clients until told that the node is started.
    #[must_use]
    pub fn new(setup: &NodeSetup, instance: u16) -> Self {
        Self {
            me: BlockRef::new(setup.node, BlockNumber::Dbtc, instance),
            refusing: Some(ErrorCode::NODE_NOT_STARTED),
            epoch: Epoch(1 << 32),
            tables: Tables::default(),
            transactions: Pool::new(setup.transactions_max),
            operations: Pool::new(setup.operations_max),
            by_id: HashTable::new(),
            deadlock_timeout_ms: setup.deadlock_timeout_ms,
            inactive_timeout_ms: setup.inactive_timeout_ms,
            next_check: Now::default(),
            probes: 0,
            tunables: setup.tunables,
            rare: setup.rare.split(u64::from(instance) + 1001),
            planted: setup.planted,
        }
    }

    /// Handles one signal.
    #[inline]
    pub fn handle(&mut self, now: Now, source: BlockRef, signal: &Signal<'_>, out: &mut Outbox) {
        match signal {
            Signal::TcKeyReq(req) => self.on_tckeyreq(now, source, req, out),
            Signal::LqhKeyConf(conf) => self.on_lqhkeyconf(now, &conf.body, out),
            Signal::LqhKeyRef(refusal) => self.on_lqhkeyref(now, &refusal.body, out),
            Signal::CommittedConf(conf) => self.on_committed(&conf.body, out),
            Signal::AbortedConf(conf) => self.on_aborted(&conf.body, out),
            Signal::WaitForRep(rep) => self.on_waitforrep(now, &rep.body, out),
            Signal::DeadlockProbe(probe) => self.on_deadlockprobe(now, &probe.body, out),
            Signal::DeadlockReq(req) => self.on_deadlockreq(source, &req.body, out),
            Signal::DeadlockConf(conf) => self.on_deadlockconf(now, &conf.body, out),
            Signal::TcCommitReq(req) => self.on_tccommitreq(now, source, req.body.trans, out),
            Signal::TcRollbackReq(req) => self.on_tcrollbackreq(now, source, &req.body, out),
            Signal::Control(control) => self.on_control(source, control, out),
            Signal::TcKeyConf(_)
            | Signal::TcKeyRef(_)
            | Signal::TcCommitConf(_)
            | Signal::TcRollbackConf(_)
            | Signal::TcRollbackRep(_)
            | Signal::TransIdAi(_)
            | Signal::LqhKeyReq(_)
            | Signal::CommitReq(_)
            | Signal::CompleteOrd(_)
            | Signal::AbortReq(_)
            | Signal::ReadRowReq(_)
            | Signal::ReadRowRef(_)
            | Signal::ScanFragReq(_)
            | Signal::ScanFragConf(_)
            | Signal::ScanFragRef(_)
            | Signal::ScanNextReq(_)
            | Signal::ScanContinueOrd(_) => debug_assert!(false, "not for TC: {signal:?}"),
        }
    }

    fn on_control(&mut self, source: BlockRef, control: &ControlSignal, out: &mut Outbox) {
        match control {
            ControlSignal::StartPermOrd { started: true } => self.refusing = None,
            ControlSignal::StartPermOrd { started: false } => {
                self.refusing = Some(ErrorCode::CLUSTER_SHUTDOWN);
            }
            ControlSignal::EpochOrd { epoch } => self.epoch = *epoch,
            ControlSignal::ApiFailReq { client } => self.on_api_failed(*client, out),
            ControlSignal::AddTableReq(info) => self.tables.add(self.me, source, info, out),
            ControlSignal::PrepDropTableReq { table } => {
                self.tables.prepare_drop(self.me, source, *table, out);
            }
            ControlSignal::CancelDropTableOrd { table } => self.tables.cancel_drop(self.me, *table, out),
            ControlSignal::DropTableReq { table } => self.tables.drop(self.me, source, *table, out),
            _ => debug_assert!(false, "not for TC: {control:?}"),
        }
    }

    /// Looks for transactions that waited or idled too long.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        if now < self.next_check {
            return;
        }
        self.next_check = now.after_ms(self.tunables.timeout_check_ms);
        let due: Vec<(u32, ErrorCode)> = self
            .transactions
            .iter()
            .filter_map(|(index, t)| {
                let idle = now.millis_since(t.active_at);
                let waiting = t.outstanding > 0 && idle >= self.deadlock_timeout_ms;
                let idling = t.outstanding == 0 && idle >= self.inactive_timeout_ms;
                match t.state {
                    TransState::Active | TransState::SelfCommitting { abort: None } if waiting => {
                        Some((index, ErrorCode::LOCK_WAIT_TIMEOUT))
                    }
                    TransState::Active if idling => Some((index, ErrorCode::INACTIVE_TIMEOUT)),
                    _ => None,
                }
            })
            .collect();
        if self.planted.has(Fault::SlowCommitReportedAborted) {
            self.misreport_slow_commits(now, out);
        }
        for (index, code) in due {
            self.abort(index, AbortReply::Decided { code, api_op: NO_OPERATION }, out);
        }
    }

    /// [`Fault::SlowCommitReportedAborted`].
    #[cold]
    fn misreport_slow_commits(&self, now: Now, out: &mut Outbox) {
        for (_, t) in self.transactions.iter() {
            if matches!(t.state, TransState::Committing { .. }) && now.millis_since(t.active_at) >= 50 {
                self.tell_rolled_back(t.client, t.id, ErrorCode::LOCK_WAIT_TIMEOUT, NO_OPERATION, out);
            }
        }
    }

    fn on_api_failed(&mut self, client: BlockRef, out: &mut Outbox) {
        if self.planted.has(Fault::DeadClientStays) {
            return;
        }
        let theirs: Vec<u32> = self
            .transactions
            .iter()
            .filter(|(_, t)| t.client == client && t.state != TransState::Free)
            .map(|(index, _)| index)
            .collect();
        for index in theirs {
            match &mut self.transactions[index].state {
                TransState::Active | TransState::SelfCommitting { abort: None } => {
                    self.abort(index, AbortReply::Nobody, out);
                }
                TransState::RollingBack { .. } => {
                    // Its aborts come back first; then on_aborted sees that nobody waits.
                    self.transactions[index].client = BlockRef::NONE;
                }
                TransState::Aborting { reply, .. } => *reply = AbortReply::Nobody,
                TransState::Free | TransState::Committing { .. } | TransState::SelfCommitting { .. } => {}
            }
        }
    }

    #[inline]
    fn find(&self, id: TransId) -> Option<u32> {
        let transactions = &self.transactions;
        self.by_id.find(hash(id), |index| transactions[*index].id == id).copied()
    }

    /// Takes an operation off its transaction and releases its record.
    #[inline]
    fn release_op(&mut self, index: u32, out: &mut Outbox) {
        let op = &mut self.operations[index];
        op.state = OpState::Free;
        self.transactions[op.trans_index].ops[op.place as usize] = NO_OPERATION;
        self.tables.operation_over(self.me, op.table, out);
        self.operations.release(index);
    }

    /// Forgets a transaction whose operations are all released.
    #[inline]
    fn release_transaction(&mut self, index: u32) {
        let transaction = &mut self.transactions[index];
        debug_assert!(transaction.ops.iter().all(|o| *o == NO_OPERATION));
        let id = transaction.id;
        transaction.state = TransState::Free;
        transaction.ops.clear();
        transaction.probed.clear();
        if let Ok(entry) = self.by_id.find_entry(hash(id), |i| *i == index) {
            entry.remove();
        }
        self.transactions.release(index);
    }

    fn tell_rolled_back(
        &self,
        client: BlockRef,
        trans: TransId,
        code: ErrorCode,
        api_op: u32,
        out: &mut Outbox,
    ) {
        let body = TcRollbackRep { trans, code: u32::from(code.0), api_op };
        out.send(self.me, client, &body, &[], &[]);
    }

    /// Transactions and operations in use: both are 0 when the cluster is quiet.
    #[must_use]
    pub fn in_use(&self) -> (usize, usize) {
        (self.transactions.used(), self.operations.used())
    }
}

/// Spreads transaction ids, which are dense counters, over the table.
#[inline]
fn hash(id: TransId) -> u64 {
    (id.0 ^ id.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
