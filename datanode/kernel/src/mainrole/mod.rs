//! The main role: the blocks a node has one of - cmvmi, qmgr, ndbcntr, dbdict, dbdih.
//!
//! * **cmvmi** is the door for the management server's orders.
//! * **qmgr** knows who is a member: links, heartbeats, the president, client sessions, the planned stop.
//! * **ndbcntr** takes the node through its start phases.
//! * **dbdict** keeps the schema; the president's is the master that decides changes.
//! * **dbdih** knows the placement of fragments and makes the epochs; again the president's is the master.
//!
//! They talk by signals, also within the node, so that each can be read alone and moved apart. How a
//! cluster starts, with P the president, N any node (P included), RT the runtime:
//!
//! ```text
//!   RT ──ConnectRep──► N.qmgr          links come up in any order                              1 connecting
//!   N.qmgr ◄─CmNodeInfoReq/Conf/Rep─► N.qmgr   "I am complete"
//!   P.qmgr ──CmMembersReq──► N.qmgr    all are complete: shall this be the membership?         2 joining
//!   P.qmgr ◄─CmMembersConf── N.qmgr
//!   P.qmgr ──CmMembershipOrd─► N.qmgr
//!   N.qmgr ──MembershipRep──► N.cntr ──DictStartReq──► N.dict   forget an earlier attempt      3 dictionary
//!   N.cntr ◄─DictStartConf── N.dict
//!   P.cntr ◄─DictionaryRep── N.cntr    when all have:
//!   P.cntr ──DictSystemReq──► P.dict   make the system tables, on all nodes
//!   P.cntr ◄─DictSystemConf── P.dict
//!   P.cntr ──StartOrd──► N.cntr ──StartPermOrd──► N.dict, TCs, LDMs                            4 started
//! ```
//!
//! A link lost before phase 4 sets everybody back to 1 (CmCancelOrd); one lost afterwards stops the node,
//! because a node that lost a peer must not serve alone. Node failure handling, arbitration and rejoining a
//! running cluster take that place in qmgr and ndbcntr.
//!
//! The main role never touches rows or transactions, and it trusts no signal about membership, schema or
//! stops that does not come from where it must come from (see [`MainRole::handle`]).

mod cmvmi;
mod dbdict;
mod dbdih;
mod ndbcntr;
mod qmgr;
pub mod status;
#[cfg(test)]
mod tests;

use crate::Now;
use crate::outbox::{Outbox, Severity};
use crate::setup::NodeSetup;
use signals::control::ControlSignal;
use signals::peer::PeerSignal;
use signals::{BlockNumber, BlockRef, FrameHeader, NodeId};
pub use status::{NodeStatus, StartPhase};

/// What a handler is given besides its signal: the configuration, the time, and where to put what it wants.
struct Ctx<'a> {
    setup: &'a NodeSetup,
    now: Now,
    out: &'a mut Outbox,
}

impl Ctx<'_> {
    /// The address of a main-role block of this node.
    fn own(&self, block: BlockNumber) -> BlockRef {
        BlockRef::new(self.setup.node, block, 0)
    }

    /// Sends to the block of the same name on `node`, which may be this one.
    fn send_peer(&mut self, block: BlockNumber, node: NodeId, signal: PeerSignal) {
        let source = self.own(block);
        self.out.control(source, BlockRef::new(node, block, 0), &ControlSignal::Peer(signal));
    }

    /// Sends to another main-role block of this node.
    fn send_local(&mut self, source: BlockNumber, target: BlockNumber, signal: PeerSignal) {
        let (source, target) = (self.own(source), self.own(target));
        self.out.control(source, target, &ControlSignal::Peer(signal));
    }

    /// Sends to every TC and LDM instance of this node.
    fn send_workers(&mut self, source: BlockNumber, signal: &ControlSignal) {
        let source = self.own(source);
        for target in workers(self.setup) {
            self.out.control(source, target, signal);
        }
    }

    fn event(&mut self, severity: Severity, text: impl Into<String>) {
        self.out.event(severity, text);
    }
}

/// Every TC and LDM instance of the node.
fn workers(setup: &NodeSetup) -> impl Iterator<Item = BlockRef> + use<> {
    let (node, tcs, ldms) = (setup.node, setup.tcs, setup.ldms);
    let tcs = (0..tcs).map(move |i| BlockRef::new(node, BlockNumber::Dbtc, i));
    tcs.chain((0..ldms).map(move |i| BlockRef::new(node, BlockNumber::Dblqh, i)))
}

/// The blocks of the main role.
pub struct MainRole {
    setup: NodeSetup,
    qmgr: qmgr::Qmgr,
    cntr: ndbcntr::Ndbcntr,
    dict: dbdict::Dbdict,
    dih: dbdih::Dbdih,
    status: NodeStatus,
    refused: u64,
}

impl MainRole {
    /// Its blocks, for route tables.
    pub const BLOCKS: [BlockNumber; 5] = [
        BlockNumber::Cmvmi,
        BlockNumber::Qmgr,
        BlockNumber::Ndbcntr,
        BlockNumber::Dbdict,
        BlockNumber::Dbdih,
    ];

    /// The blocks at birth.
    #[must_use]
    pub fn new(setup: &NodeSetup) -> Self {
        let qmgr = qmgr::Qmgr::new(setup);
        Self {
            status: qmgr.status(),
            qmgr,
            cntr: ndbcntr::Ndbcntr::new(),
            dict: dbdict::Dbdict::new(setup),
            dih: dbdih::Dbdih::new(),
            setup: setup.clone(),
            refused: 0,
        }
    }

    /// Hands a control signal to the block it is for.
    ///
    /// Who may send what: signals between main-role blocks come from data nodes of the configuration;
    /// answers of TCs and LDMs, and news of the runtime, from this node (or from [`BlockRef::NONE`]); stops
    /// from this node or a management server; dictionary requests and registrations from API sessions.
    /// Anything else is counted, logged and dropped. That a frame's source is the node at the other end of
    /// its link is the receiver thread's to see to.
    pub fn handle(&mut self, now: Now, header: FrameHeader, signal: ControlSignal, out: &mut Outbox) {
        let ctx = &mut Ctx { setup: &self.setup, now, out };
        let source = header.source;
        let local = source.node() == self.setup.node || source.is_none();
        let client = source.block() == Some(BlockNumber::Api);
        match signal {
            ControlSignal::Peer(signal) if !client && self.qmgr.is_data_node(source.node()) => match signal {
                PeerSignal::Qmgr(signal) => self.qmgr.handle_peer(ctx, source.node(), signal),
                PeerSignal::Cntr(signal) => self.cntr.handle(ctx, source.node(), signal),
                PeerSignal::Dict(signal) => self.dict.handle_peer(ctx, source.node(), signal),
                PeerSignal::Dih(signal) => self.dih.handle(ctx, signal),
            },
            ControlSignal::DictQueryReq { request, query } if client => {
                self.dict.on_query(ctx, source, request, &query);
            }
            ControlSignal::SchemaReq { request, change } if client => {
                self.dict.on_schema_req(ctx, source, request, change);
            }
            ControlSignal::ApiRegReq { version: _ } if client => self.qmgr.on_api_reg_req(ctx, source),
            ControlSignal::TableConf { table } if local => {
                self.dict.on_table_answer(ctx, source, table, None);
            }
            ControlSignal::TableRef { table, refusal } if local => {
                self.dict.on_table_answer(ctx, source, table, Some(refusal));
            }
            ControlSignal::ConnectRep { node, incarnation } if local => {
                self.qmgr.on_connect_rep(ctx, node, incarnation);
            }
            ControlSignal::DisconnectRep { node, reason } if local => {
                self.qmgr.on_disconnect_rep(ctx, node, &reason);
            }
            ControlSignal::ApiFailReq { client } if local => match header.target.block() {
                Some(BlockNumber::Dbdict) => self.dict.on_api_fail_req(ctx, client),
                _ => self.qmgr.on_api_fail_req(ctx, client),
            },
            ControlSignal::StartPermOrd { started } if local => self.dict.on_start_perm_ord(started),
            ControlSignal::StopReq { request, scope, force }
                if local || source.block() == Some(BlockNumber::Mgm) =>
            {
                cmvmi::on_stop_req(ctx, source, request, scope, force);
            }
            // Answers and orders for others, and what came from where it may not come from.
            ControlSignal::Peer(_)
            | ControlSignal::DictQueryReq { .. }
            | ControlSignal::SchemaReq { .. }
            | ControlSignal::DictConf { .. }
            | ControlSignal::DictRef { .. }
            | ControlSignal::ApiRegReq { .. }
            | ControlSignal::ApiRegConf(_)
            | ControlSignal::AddTableReq(_)
            | ControlSignal::PrepDropTableReq { .. }
            | ControlSignal::CancelDropTableOrd { .. }
            | ControlSignal::DropTableReq { .. }
            | ControlSignal::TableConf { .. }
            | ControlSignal::TableRef { .. }
            | ControlSignal::ConnectRep { .. }
            | ControlSignal::DisconnectRep { .. }
            | ControlSignal::ApiFailReq { .. }
            | ControlSignal::StartPermOrd { .. }
            | ControlSignal::EpochOrd { .. }
            | ControlSignal::StopReq { .. }
            | ControlSignal::StopConf { .. }
            | ControlSignal::StopRef { .. } => self.refused(header, out),
        }
        self.note_status(now, out);
    }

    /// Lets the blocks look at the time.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        let ctx = &mut Ctx { setup: &self.setup, now, out };
        self.qmgr.tick(ctx);
        self.dict.tick(ctx);
        self.dih.tick(ctx);
        self.note_status(now, out);
    }

    /// What the node says about itself.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.status.clone()
    }

    /// Reports a changed status to the runtime, and a changed phase to the log and to the client sessions.
    fn note_status(&mut self, now: Now, out: &mut Outbox) {
        if !self.qmgr.take_changed() {
            return;
        }
        let mut status = self.qmgr.status();
        status.generation = self.status.generation;
        if status == self.status {
            return;
        }
        status.generation += 1;
        let phase_changed = status.phase != self.status.phase;
        self.status = status;
        out.effect(crate::outbox::Effect::StateChanged);
        if phase_changed {
            out.event(Severity::Info, format!("node {}: {}", self.setup.node, self.status.text));
            self.qmgr.tell_sessions(&mut Ctx { setup: &self.setup, now, out });
        }
    }

    #[cold]
    fn refused(&mut self, header: FrameHeader, out: &mut Outbox) {
        self.refused += 1;
        if self.refused.is_power_of_two() {
            let (source, target, count) = (header.source, header.target, self.refused);
            let text =
                format!("control signal from {source:?} to {target:?} not allowed there ({count} so far)");
            out.event(Severity::Warning, text);
        }
    }

    /// Everything this node's dictionary knows, as text, for checks that compare nodes.
    #[must_use]
    pub fn catalogue(&self) -> String {
        format!("{:?}", self.dict.catalog())
    }

    /// The tables of this node's dictionary, for tests that compare nodes.
    #[cfg(test)]
    fn dict(&self) -> &dbdict::Dbdict {
        &self.dict
    }
}
