//! Master: the one dict that decides schema changes, one at a time.
//!
//! ```text
//!   queue ──plan──► Preparing ──all Conf──► Committing ──all Conf──► answered, next
//!                       │ any Ref, or a drop waits too long
//!                       └──► Aborting ──────all Conf──► refused, next
//! ```
//!
//! While aborting, late answers to the prepare are ignored: SchemaAbortConf is each node's last word. A
//! participant that is gone is no matter of this file: the cluster falls back to its start, or stops.

use super::plan::plan;
use super::{Dbdict, send, system};
use crate::Now;
use crate::mainrole::Ctx;
use crate::outbox::Severity;
use signals::control::{Refusal, SchemaChange};
use signals::ids::SchemaVersion;
use signals::peer::{CntrSignal, DictSignal, PeerSignal, SchemaOp};
use signals::{BlockNumber, ErrorCode, NodeId, TableId};
use std::collections::{BTreeSet, VecDeque};

/// See the module.
pub(super) struct Master {
    round: u64,
    members: Vec<NodeId>,
    queue: VecDeque<Request>,
    current: Option<SchemaTrans>,
}

struct Request {
    origin: Origin,
    change: SchemaChange,
}

/// Who asked for a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// A node's dict, for a client.
    Node {
        node: NodeId,
        /// Its number of the request.
        key: u64,
    },
    /// The start of the cluster; `last` when it is the last of the system changes.
    System { last: bool },
}

struct SchemaTrans {
    number: u64,
    origin: Origin,
    /// What the client is told.
    table: Option<(TableId, SchemaVersion)>,
    state: TransState,
    awaiting: BTreeSet<NodeId>,
}

enum TransState {
    /// A drop is given up at the deadline.
    Preparing {
        deadline: Option<Now>,
    },
    Committing,
    Aborting(Refusal),
}

impl Master {
    pub(super) fn new(round: u64, members: Vec<NodeId>) -> Self {
        Self { round, members, queue: VecDeque::new(), current: None }
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.current.is_none()
    }

    /// The asker is gone; its change is dropped unless it has begun.
    pub(super) fn cancel(&mut self, origin: Origin) {
        self.queue.retain(|r| r.origin != origin);
    }

    fn broadcast(&self, ctx: &mut Ctx<'_>, signal: &DictSignal) {
        for node in &self.members {
            send(ctx, *node, signal.clone());
        }
    }
}

impl Dbdict {
    pub(super) fn on_schema_forward_req(
        &mut self,
        ctx: &mut Ctx<'_>,
        source: NodeId,
        round: u64,
        key: u64,
        change: SchemaChange,
    ) {
        let origin = Origin::Node { node: source, key };
        let refusal = match &mut self.master {
            Some(master)
                if master.round == round
                    && master.queue.len() < ctx.setup.tunables.schema_queue_max as usize =>
            {
                master.queue.push_back(Request { origin, change });
                self.begin_next(ctx);
                return;
            }
            Some(master) if master.round == round => {
                Refusal::new(ErrorCode::DICT_BUSY, "too many schema changes wait already")
            }
            Some(_) | None => {
                Refusal::new(ErrorCode::NODE_NOT_STARTED, "no master for this round of the start")
            }
        };
        answer(ctx, round, origin, Err(refusal));
    }

    /// The cluster starts: make the system tables.
    pub(super) fn on_dict_system_req(&mut self, ctx: &mut Ctx<'_>, round: u64) {
        let Some(master) = self.master.as_mut().filter(|m| m.round == round) else { return };
        let changes = system::changes();
        let count = changes.len();
        for (i, change) in changes.into_iter().enumerate() {
            let origin = Origin::System { last: i + 1 == count };
            master.queue.push_back(Request { origin, change });
        }
        self.begin_next(ctx);
    }

    /// Begins the next change that can be made, refusing those that cannot, unless one is under way.
    fn begin_next(&mut self, ctx: &mut Ctx<'_>) {
        let Some(master) = &mut self.master else { return };
        while master.current.is_none() {
            let Some(Request { origin, change }) = master.queue.pop_front() else { return };
            let op = match plan(&self.catalog, ctx.setup, change) {
                Ok(op) => op,
                Err(refusal) => {
                    answer(ctx, master.round, origin, Err(refusal));
                    continue;
                }
            };
            self.last_trans += 1;
            let (table, waits) = match &op {
                SchemaOp::CreateDatabase(_) | SchemaOp::DropDatabase { .. } => (None, false),
                SchemaOp::CreateTable(info) => (Some((info.def.id, info.def.version)), false),
                SchemaOp::DropTable { .. } => (None, true),
                SchemaOp::TruncateTable { new, .. } => (Some((new.def.id, new.def.version)), true),
            };
            let deadline = waits.then(|| ctx.now.after_ms(2 * ctx.setup.deadlock_timeout_ms));
            let number = self.last_trans;
            master.current = Some(SchemaTrans {
                number,
                origin,
                table,
                state: TransState::Preparing { deadline },
                awaiting: master.members.iter().copied().collect(),
            });
            let round = master.round;
            master.broadcast(ctx, &DictSignal::SchemaPrepareReq { round, trans: number, op });
        }
    }

    /// A participant is prepared, or cannot be.
    pub(super) fn on_prepare_answer(
        &mut self,
        ctx: &mut Ctx<'_>,
        source: NodeId,
        number: u64,
        refusal: Option<Refusal>,
    ) {
        let Some(master) = &mut self.master else { return };
        let Some(trans) = master.current.as_mut().filter(|t| t.number == number) else { return };
        let TransState::Preparing { .. } = trans.state else { return };
        if let Some(mut refusal) = refusal {
            refusal.detail = format!("node {source}: {}", refusal.detail);
            master.abort(ctx, refusal);
            return;
        }
        trans.awaiting.remove(&source);
        if trans.awaiting.is_empty() {
            trans.state = TransState::Committing;
            trans.awaiting = master.members.iter().copied().collect();
            master.broadcast(ctx, &DictSignal::SchemaCommitReq { trans: number });
        }
    }

    /// Gives a drop up that waits too long for operations in progress.
    pub(super) fn abort_overdue(&mut self, ctx: &mut Ctx<'_>) {
        let Some(master) = &mut self.master else { return };
        let Some(SchemaTrans { state: TransState::Preparing { deadline: Some(deadline) }, awaiting, .. }) =
            &master.current
        else {
            return;
        };
        if ctx.now < *deadline {
            return;
        }
        let nodes = crate::mainrole::status::node_list(awaiting.iter().copied());
        let text = format!("active transactions use the table on {nodes}; end them or try again");
        master.abort(ctx, Refusal::new(ErrorCode::LOCK_WAIT_TIMEOUT, text));
    }

    /// A participant has committed or undone.
    pub(super) fn on_end_conf(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64) {
        let Some(master) = &mut self.master else { return };
        let Some(trans) = master.current.as_mut().filter(|t| t.number == number) else { return };
        match trans.state {
            TransState::Preparing { .. } => return,
            TransState::Committing | TransState::Aborting(_) => {}
        }
        trans.awaiting.remove(&source);
        if !trans.awaiting.is_empty() {
            return;
        }
        let round = master.round;
        if let Some(trans) = master.current.take() {
            let result = match trans.state {
                TransState::Aborting(refusal) => Err(refusal),
                TransState::Committing | TransState::Preparing { .. } => Ok(trans.table),
            };
            answer(ctx, round, trans.origin, result);
        }
        self.begin_next(ctx);
    }
}

impl Master {
    fn abort(&mut self, ctx: &mut Ctx<'_>, refusal: Refusal) {
        let Some(trans) = &mut self.current else { return };
        ctx.event(
            Severity::Info,
            format!("schema transaction {} given up: {}; {}", trans.number, refusal.code, refusal.detail),
        );
        let number = trans.number;
        trans.state = TransState::Aborting(refusal);
        trans.awaiting = self.members.iter().copied().collect();
        self.broadcast(ctx, &DictSignal::SchemaAbortReq { trans: number });
    }
}

/// Tells the asker.
fn answer(
    ctx: &mut Ctx<'_>,
    round: u64,
    origin: Origin,
    result: Result<Option<(TableId, SchemaVersion)>, Refusal>,
) {
    match (origin, result) {
        (Origin::Node { node, key }, Ok(table)) => {
            send(ctx, node, DictSignal::SchemaForwardConf { key, table });
        }
        (Origin::Node { node, key }, Err(refusal)) => {
            send(ctx, node, DictSignal::SchemaForwardRef { key, refusal });
        }
        (Origin::System { last: false }, Ok(_)) => {}
        (Origin::System { last: true }, Ok(_)) => {
            let signal = PeerSignal::Cntr(CntrSignal::DictSystemConf { round });
            ctx.send_local(BlockNumber::Dbdict, BlockNumber::Ndbcntr, signal);
        }
        (Origin::System { .. }, Err(refusal)) => {
            let signal = PeerSignal::Cntr(CntrSignal::DictSystemRef { round, refusal });
            ctx.send_local(BlockNumber::Dbdict, BlockNumber::Ndbcntr, signal);
        }
    }
}
