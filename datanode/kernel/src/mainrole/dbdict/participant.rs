//! Participant: this node's part in a schema transaction, and its talk with the TCs and LDMs of the node.
//!
//! A transaction is a list of steps for the workers, one after another; a step goes to all of them and is
//! over when all have answered. States of the transaction held, of which there is at most one:
//!
//! * `Preparing` - steps of the prepare are running; the master has heard nothing yet.
//! * `Prepared` - the master was told Conf or Ref; it decides. A refused step's undoing waits for the abort.
//! * `Committing` - visible in the catalog; what was dropped is being freed.
//! * `Aborting` - what was prepared is being undone.
//!
//! | change         | prepare                     | commit      | abort                        |
//! |----------------|-----------------------------|-------------|------------------------------|
//! | create table   | Add(new)                    |             | Drop(new)                    |
//! | drop table     | PrepDrop(old)               | Drop(old)   | CancelDrop(old)              |
//! | truncate table | Add(new), PrepDrop(old)     | Drop(old)   | CancelDrop(old), Drop(new)   |
//!
//! An abort may come in the middle of a step. Cancelling makes the workers answer an open PrepDropTableReq
//! at once, so every step ends with all its answers, and no answer is ever taken for another step's.
//!
//! Forgetting (a new attempt to start) ends the transaction held in the same way and drops every table.

use super::catalog::Catalog;
use super::send;
use crate::mainrole::{Ctx, workers};
use crate::outbox::Severity;
use crate::setup::NodeSetup;
use signals::control::{ControlSignal, Refusal, TableInfo};
use signals::peer::{DictSignal, SchemaOp};
use signals::planted::Fault;
use signals::{BlockNumber, BlockRef, ErrorCode, NodeId, TableId};
use std::collections::{BTreeSet, VecDeque};

/// See the module.
pub(super) struct Participant {
    workers: Vec<BlockRef>,
    trans: Option<Trans>,
    todo: VecDeque<Step>,
    running: Option<Running>,
    forgetting: Forgetting,
}

struct Trans {
    number: u64,
    master: NodeId,
    op: SchemaOp,
    state: TransState,
    /// The workers were asked to take this table.
    added: Option<TableId>,
    /// The workers were asked to let this table's operations end.
    prep_dropped: Option<TableId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransState {
    Preparing,
    Prepared,
    Committing,
    Aborting,
}

enum Step {
    Add(Box<TableInfo>),
    PrepDrop(TableId),
    Drop(TableId),
}

struct Running {
    table: TableId,
    awaiting: BTreeSet<BlockRef>,
    refusal: Option<Refusal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Forgetting {
    No,
    UnderWay,
    Done,
}

impl Participant {
    pub(super) fn new(setup: &NodeSetup) -> Self {
        Self {
            workers: workers(setup).collect(),
            trans: None,
            todo: VecDeque::new(),
            running: None,
            forgetting: Forgetting::No,
        }
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.trans.is_none() && self.running.is_none() && self.todo.is_empty()
    }

    pub(super) fn prepare(&mut self, ctx: &mut Ctx<'_>, master: NodeId, number: u64, op: SchemaOp) {
        if self.trans.is_some() || self.forgetting == Forgetting::UnderWay {
            let refusal =
                Refusal::new(ErrorCode::DICT_BUSY, "an earlier schema transaction has not ended here");
            send(ctx, master, DictSignal::SchemaPrepareRef { trans: number, refusal });
            return;
        }
        match &op {
            SchemaOp::CreateDatabase(_) | SchemaOp::DropDatabase { .. } => {}
            SchemaOp::CreateTable(info) => self.todo.push_back(Step::Add(info.clone())),
            SchemaOp::DropTable { table } => self.todo.push_back(Step::PrepDrop(*table)),
            SchemaOp::TruncateTable { old, new } => {
                self.todo.push_back(Step::Add(new.clone()));
                self.todo.push_back(Step::PrepDrop(*old));
            }
        }
        let state = TransState::Preparing;
        self.trans = Some(Trans { number, master, op, state, added: None, prep_dropped: None });
        self.advance(ctx);
    }

    pub(super) fn commit(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64, catalog: &mut Catalog) {
        let Some(trans) = self.trans.as_mut().filter(|t| t.number == number && t.master == source) else {
            return;
        };
        if trans.state != TransState::Prepared {
            ctx.event(
                Severity::Error,
                format!("schema transaction {number} committed before prepared; dropped"),
            );
            return;
        }
        let is_last = ctx.setup.data_nodes().last() == Some(&ctx.setup.node);
        if !(ctx.setup.planted.has(Fault::SchemaChangeForgotten) && is_last) {
            catalog.apply(&trans.op);
        }
        trans.state = TransState::Committing;
        match &trans.op {
            SchemaOp::DropTable { table: old } | SchemaOp::TruncateTable { old, .. } => {
                self.todo.push_back(Step::Drop(*old));
            }
            SchemaOp::CreateDatabase(_) | SchemaOp::DropDatabase { .. } | SchemaOp::CreateTable(_) => {}
        }
        self.advance(ctx);
    }

    pub(super) fn abort(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64) {
        let Some(trans) = self.trans.as_mut().filter(|t| t.number == number && t.master == source) else {
            return;
        };
        match trans.state {
            TransState::Preparing | TransState::Prepared => {}
            TransState::Committing | TransState::Aborting => return,
        }
        trans.state = TransState::Aborting;
        let (added, prep_dropped) = (trans.added, trans.prep_dropped);
        self.todo.clear();
        cancel_drop(ctx, prep_dropped);
        self.todo.extend(added.map(Step::Drop));
        self.advance(ctx);
    }

    /// Ends what is under way and drops `tables` and whatever else the workers may have.
    pub(super) fn forget(&mut self, ctx: &mut Ctx<'_>, tables: impl Iterator<Item = TableId>) {
        if self.forgetting != Forgetting::UnderWay {
            self.forgetting = Forgetting::UnderWay;
            self.todo.clear();
            let mut drops: BTreeSet<TableId> = tables.collect();
            if let Some(trans) = self.trans.take() {
                if trans.state != TransState::Aborting {
                    cancel_drop(ctx, trans.prep_dropped);
                }
                drops.extend(trans.added);
                drops.extend(trans.prep_dropped);
            }
            self.todo.extend(drops.into_iter().map(Step::Drop));
        }
        self.advance(ctx);
    }

    /// Whether everything asked for was forgotten since the last call.
    pub(super) fn take_forgotten(&mut self) -> bool {
        let done = self.forgetting == Forgetting::Done;
        if done {
            self.forgetting = Forgetting::No;
        }
        done
    }

    pub(super) fn on_table_answer(
        &mut self,
        ctx: &mut Ctx<'_>,
        worker: BlockRef,
        table: TableId,
        refusal: Option<Refusal>,
    ) {
        let awaited = self.running.as_mut().filter(|r| r.table == table && r.awaiting.contains(&worker));
        let Some(running) = awaited else {
            ctx.event(Severity::Warning, format!("{worker:?} answered for table {table}, unasked; dropped"));
            return;
        };
        running.awaiting.remove(&worker);
        if running.refusal.is_none() {
            running.refusal = refusal;
        }
        self.advance(ctx);
    }

    /// Ends the running step if all have answered, begins the next, and reports when none is left.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            if let Some(running) = &self.running {
                if !running.awaiting.is_empty() {
                    return;
                }
                let refusal = self.running.take().and_then(|r| r.refusal);
                if let Some(refusal) = refusal {
                    self.on_step_refused(ctx, refusal);
                }
            }
            match self.todo.pop_front() {
                Some(step) => self.begin(ctx, step),
                None => break,
            }
        }
        self.report(ctx);
    }

    fn begin(&mut self, ctx: &mut Ctx<'_>, step: Step) {
        let table = match &step {
            Step::Add(info) => info.def.id,
            Step::PrepDrop(table) | Step::Drop(table) => *table,
        };
        let signal = match step {
            Step::Add(info) => {
                if let Some(trans) = &mut self.trans {
                    trans.added = Some(table);
                }
                ControlSignal::AddTableReq(info)
            }
            Step::PrepDrop(table) => {
                if let Some(trans) = &mut self.trans {
                    trans.prep_dropped = Some(table);
                }
                ControlSignal::PrepDropTableReq { table }
            }
            Step::Drop(table) => ControlSignal::DropTableReq { table },
        };
        ctx.send_workers(BlockNumber::Dbdict, &signal);
        self.running =
            Some(Running { table, awaiting: self.workers.iter().copied().collect(), refusal: None });
    }

    fn on_step_refused(&mut self, ctx: &mut Ctx<'_>, refusal: Refusal) {
        match &mut self.trans {
            Some(trans) if trans.state == TransState::Preparing => {
                trans.state = TransState::Prepared;
                self.todo.clear();
                send(ctx, trans.master, DictSignal::SchemaPrepareRef { trans: trans.number, refusal });
            }
            // A cancelled PrepDropTableReq is answered by a refusal; anything else must not be refused any
            // more.
            Some(_) | None if refusal.code == ErrorCode::SCHEMA_TRANS_ABORTED => {}
            Some(_) | None => {
                let text = format!("a worker could not drop a table: {}; {}", refusal.code, refusal.detail);
                ctx.event(Severity::Error, text);
            }
        }
    }

    /// No step is left: tells the master how far the transaction is.
    fn report(&mut self, ctx: &mut Ctx<'_>) {
        if self.forgetting == Forgetting::UnderWay {
            self.forgetting = Forgetting::Done;
            return;
        }
        let Some(trans) = &mut self.trans else { return };
        let (master, number) = (trans.master, trans.number);
        match trans.state {
            TransState::Preparing => {
                trans.state = TransState::Prepared;
                send(ctx, master, DictSignal::SchemaPrepareConf { trans: number });
            }
            TransState::Prepared => {}
            TransState::Committing => {
                self.trans = None;
                send(ctx, master, DictSignal::SchemaCommitConf { trans: number });
            }
            TransState::Aborting => {
                self.trans = None;
                send(ctx, master, DictSignal::SchemaAbortConf { trans: number });
            }
        }
    }
}

fn cancel_drop(ctx: &mut Ctx<'_>, table: Option<TableId>) {
    if let Some(table) = table {
        ctx.send_workers(BlockNumber::Dbdict, &ControlSignal::CancelDropTableOrd { table });
    }
}
