//! DBDICT, the dictionary: databases, tables and where their rows live, the same on every node.
//!
//! Every node's dict answers questions from its own [`catalog`], and takes changes from clients, which it
//! forwards to the master: the president's dict. The master runs one schema transaction at a time, so that
//! a name or an id can never be given twice, however many nodes ask at once:
//!
//! ```text
//!   API ──SchemaReq──► D ──SchemaForwardReq──► M     queued; when its turn comes, M checks it against its catalog
//!                                              M     and works out ids, versions and map                   [master]
//!   M ──SchemaPrepareReq──► N                        N has its TCs and LDMs take the new table,
//!                             N ─AddTableReq─► w      or refuse new operations on the old one and
//!                             N ◄──TableConf── w      answer when the last has ended                  [participant]
//!   M ◄──SchemaPrepareConf── N
//!   M ──SchemaCommitReq────► N                       visible in N's catalog; DropTableReq for what goes
//!   M ◄──SchemaCommitConf─── N
//!   API ◄──DictConf── D ◄──SchemaForwardConf── M     every node has it: usable through any of them at once
//! ```
//!
//! A refusal anywhere, or a drop that waits too long for operations in progress, makes M send
//! SchemaAbortReq; every node undoes what it prepared and confirms, and only then is the client told. A
//! client that is gone loses its answer, not the transaction: half a schema change must not stay. If its
//! change had not begun it is dropped.
//!
//! N is every member, M and D among them; they get the same signals. The participants rely on the master
//! for order and hold at most one schema transaction.
//!
//! Dict keeps nothing on disk yet: every start is a first start. It never sees rows.

pub(super) mod catalog;
mod master;
mod participant;
mod plan;
mod query;
mod system;

use super::Ctx;
use crate::outbox::Severity;
use crate::setup::NodeSetup;
use catalog::Catalog;
use master::{Master, Origin};
use participant::Participant;
use signals::control::{ControlSignal, DictAnswer, DictQuery, Refusal, SchemaChange};
use signals::ids::SchemaVersion;
use signals::peer::{CntrSignal, DictSignal, PeerSignal};
use signals::{BlockNumber, BlockRef, ErrorCode, NodeId, TableId};
use std::collections::BTreeMap;

/// See the module.
pub(super) struct Dbdict {
    catalog: Catalog,
    participant: Participant,
    /// The round this dict is ready for.
    round: Option<RoundInfo>,
    /// Present on the master.
    master: Option<Master>,
    permission: Permission,
    /// This node's clients' changes, by key.
    forwarded: BTreeMap<u64, Forwarded>,
    last_key: u64,
    last_trans: u64,
}

struct RoundInfo {
    number: u64,
    master: NodeId,
    members: Vec<NodeId>,
}

/// Whether clients are served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permission {
    NotStarted,
    Started,
    Stopping,
}

struct Forwarded {
    client: BlockRef,
    request: u32,
}

impl Dbdict {
    pub(super) fn new(setup: &NodeSetup) -> Self {
        Self {
            catalog: Catalog::default(),
            participant: Participant::new(setup),
            round: None,
            master: None,
            permission: Permission::NotStarted,
            forwarded: BTreeMap::new(),
            last_key: 0,
            last_trans: 0,
        }
    }

    /// The catalog, for checks that compare nodes.
    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether no schema transaction is under way here, for tests.
    #[cfg(test)]
    pub(super) fn is_quiet(&self) -> bool {
        self.participant.is_idle()
            && self.forwarded.is_empty()
            && self.master.as_ref().is_none_or(Master::is_idle)
    }

    pub(super) fn on_start_perm_ord(&mut self, started: bool) {
        self.permission = if started { Permission::Started } else { Permission::Stopping };
    }

    /// Why clients are not served, if they are not.
    fn refusal(&self) -> Option<Refusal> {
        match self.permission {
            Permission::Started => None,
            Permission::NotStarted => Some(Refusal::new(
                ErrorCode::NODE_NOT_STARTED,
                "the dictionary is not ready; try again shortly",
            )),
            Permission::Stopping => {
                Some(Refusal::new(ErrorCode::CLUSTER_SHUTDOWN, "the cluster is being stopped"))
            }
        }
    }

    /// A client's question.
    pub(super) fn on_query(&self, ctx: &mut Ctx<'_>, client: BlockRef, request: u32, query: &DictQuery) {
        let answer = match self.refusal() {
            Some(refusal) => Err(refusal),
            None => query::answer(&self.catalog, query),
        };
        answer_client(ctx, client, request, answer);
    }

    /// A client's change: on to the master.
    pub(super) fn on_schema_req(
        &mut self,
        ctx: &mut Ctx<'_>,
        client: BlockRef,
        request: u32,
        change: SchemaChange,
    ) {
        let refusal = self.refusal().or_else(|| plan::oversized(&change)).or_else(|| {
            let most = ctx.setup.tunables.schema_forwarded_max as usize;
            (self.forwarded.len() >= most).then(|| {
                let text = format!("{most} schema changes of this node's clients wait already");
                Refusal::new(ErrorCode::DICT_BUSY, text)
            })
        });
        let (Some(round), None) = (&self.round, &refusal) else {
            let refusal = refusal.unwrap_or_else(|| {
                Refusal::new(ErrorCode::NODE_NOT_STARTED, "the dictionary is not ready; try again shortly")
            });
            answer_client(ctx, client, request, Err(refusal));
            return;
        };
        self.last_key += 1;
        let key = self.last_key;
        self.forwarded.insert(key, Forwarded { client, request });
        let signal = DictSignal::SchemaForwardReq { round: round.number, key, change };
        send(ctx, round.master, signal);
    }

    /// A client is gone: it gets no answers any more, and what has not begun is not begun.
    pub(super) fn on_api_fail_req(&mut self, ctx: &mut Ctx<'_>, client: BlockRef) {
        let keys: Vec<u64> =
            self.forwarded.iter().filter(|(_, f)| f.client == client).map(|(k, _)| *k).collect();
        for key in keys {
            self.forwarded.remove(&key);
            if let Some(round) = &self.round {
                send(ctx, round.master, DictSignal::SchemaCancelOrd { key });
            }
        }
    }

    fn on_forward_answer(
        &mut self,
        ctx: &mut Ctx<'_>,
        key: u64,
        answer: Result<Option<(TableId, SchemaVersion)>, Refusal>,
    ) {
        if let Some(Forwarded { client, request }) = self.forwarded.remove(&key) {
            answer_client(ctx, client, request, answer.map(DictAnswer::Changed));
        }
    }

    /// A signal from a dict, this one or another, or from this node's ndbcntr.
    pub(super) fn handle_peer(&mut self, ctx: &mut Ctx<'_>, source: NodeId, signal: DictSignal) {
        let local = source == ctx.setup.node;
        match signal {
            DictSignal::DictStartReq { round, master, members } if local => {
                self.on_dict_start_req(ctx, RoundInfo { number: round, master, members });
            }
            DictSignal::DictSystemReq { round } if local => self.on_dict_system_req(ctx, round),
            DictSignal::DictStartReq { .. } | DictSignal::DictSystemReq { .. } => {
                ctx.event(Severity::Warning, format!("node {source} sent a signal local to dict; dropped"));
            }
            DictSignal::SchemaForwardReq { round, key, change } => {
                self.on_schema_forward_req(ctx, source, round, key, change);
            }
            DictSignal::SchemaCancelOrd { key } => {
                if let Some(master) = &mut self.master {
                    master.cancel(Origin::Node { node: source, key });
                }
            }
            DictSignal::SchemaForwardConf { key, table } => self.on_forward_answer(ctx, key, Ok(table)),
            DictSignal::SchemaForwardRef { key, refusal } => self.on_forward_answer(ctx, key, Err(refusal)),
            DictSignal::SchemaPrepareReq { round, trans, op } => {
                if self.round.as_ref().is_some_and(|r| r.number == round && r.master == source) {
                    self.participant.prepare(ctx, source, trans, op);
                }
            }
            DictSignal::SchemaCommitReq { trans } => {
                self.participant.commit(ctx, source, trans, &mut self.catalog);
            }
            DictSignal::SchemaAbortReq { trans } => self.participant.abort(ctx, source, trans),
            DictSignal::SchemaPrepareConf { trans } => self.on_prepare_answer(ctx, source, trans, None),
            DictSignal::SchemaPrepareRef { trans, refusal } => {
                self.on_prepare_answer(ctx, source, trans, Some(refusal));
            }
            DictSignal::SchemaCommitConf { trans } | DictSignal::SchemaAbortConf { trans } => {
                self.on_end_conf(ctx, source, trans);
            }
        }
    }

    /// A TC or LDM of this node has answered a step.
    pub(super) fn on_table_answer(
        &mut self,
        ctx: &mut Ctx<'_>,
        worker: BlockRef,
        table: TableId,
        refusal: Option<Refusal>,
    ) {
        self.participant.on_table_answer(ctx, worker, table, refusal);
        self.forget_if_asked(ctx);
    }

    /// A new attempt to start: whatever an earlier one made is forgotten first, here and in the workers.
    fn on_dict_start_req(&mut self, ctx: &mut Ctx<'_>, round: RoundInfo) {
        self.master = None;
        self.round = Some(round);
        self.participant.forget(ctx, self.catalog.table_ids());
        self.forget_if_asked(ctx);
    }

    /// Once the workers have forgotten an earlier attempt's tables: ready.
    fn forget_if_asked(&mut self, ctx: &mut Ctx<'_>) {
        let Some(round) = &self.round else { return };
        if !self.participant.take_forgotten() {
            return;
        }
        self.catalog = Catalog::default();
        let signal = PeerSignal::Cntr(CntrSignal::DictStartConf { round: round.number });
        if round.master == ctx.setup.node {
            self.master = Some(Master::new(round.number, round.members.clone()));
        }
        ctx.send_local(BlockNumber::Dbdict, BlockNumber::Ndbcntr, signal);
    }

    /// The master: a drop that waits too long is given up.
    pub(super) fn tick(&mut self, ctx: &mut Ctx<'_>) {
        self.abort_overdue(ctx);
    }
}

fn send(ctx: &mut Ctx<'_>, node: NodeId, signal: DictSignal) {
    ctx.send_peer(BlockNumber::Dbdict, node, PeerSignal::Dict(signal));
}

fn answer_client(ctx: &mut Ctx<'_>, client: BlockRef, request: u32, answer: Result<DictAnswer, Refusal>) {
    let source = ctx.own(BlockNumber::Dbdict);
    let signal = match answer {
        Ok(answer) => ControlSignal::DictConf { request, answer },
        Err(refusal) => ControlSignal::DictRef { request, refusal },
    };
    ctx.out.control(source, client, &signal);
}
