//! QMGR, the keeper of membership: which data nodes are here, who is president, which clients are connected.
//!
//! States, the facts that hold in each, and who moves on:
//!
//! * `Connecting` - some link is missing, or some peer has not said yet that all of its links are up.
//!   Leaves when the president proposes a membership and this node sees the same ([`membership`]).
//! * `Joining` - this node agreed to a round's membership; the president waits for all to agree.
//! * `Member` - all agreed. Until ndbcntr reports the start done, a lost link leads back to `Connecting`;
//!   afterwards it ends the node, because a node that lost a peer must not go on serving alone.
//! * `Stopping` - a planned stop is under way ([`stop`]); closing links are expected.
//! * `Stopped` - the process was told to end; nothing is answered any more.
//!
//! Every data node has a link to every other. Each HeartbeatIntervalDbDb a heartbeat goes out on all; a
//! peer silent for [`HEARTBEATS_MISSED_MAX`] of them has its link closed, which is then a lost link like
//! any other. A node that finds that it was stalled itself does not blame its peers for the time it did not
//! listen.
//!
//! Client sessions register here and are told the node's state ([`sessions`]).
//!
//! It never looks at schema or rows.

mod membership;
mod sessions;
mod stop;

use super::Ctx;
use super::status::{NodeStatus, StartPhase, node_list};
use crate::Now;
use crate::outbox::{Effect, Severity};
use crate::setup::NodeSetup;
use membership::Round;
use sessions::Sessions;
use signals::codec;
use signals::peer::{CntrSignal, NodeInfo, PeerSignal, QmgrSignal};
use signals::planted::Fault;
use signals::{BlockNumber, BlockRef, NodeId};
use std::collections::BTreeMap;
use stop::Stop;

/// Heartbeats a peer may miss.
pub(super) const HEARTBEATS_MISSED_MAX: u64 = 4;
/// How often a starting node logs what it waits for.
const WAITING_LOG_MS: u64 = 10_000;

/// See the module.
pub(super) struct Qmgr {
    node: NodeId,
    layout: u64,
    group: Option<u16>,
    peers: BTreeMap<NodeId, Peer>,
    state: State,
    sessions: Sessions,
    /// The number of the last round this node proposed.
    last_round: u64,
    /// The last link lost, for the reason of a stop.
    last_loss: String,
    ticked: Now,
    heartbeat_sent: Now,
    asked: Now,
    waiting_logged: Now,
    changed: bool,
}

/// A data node of the configuration other than this one.
struct Peer {
    link: Option<Link>,
    /// Why the last link was lost, or that there was none.
    reason: String,
    /// It announced that it stops alone.
    leaving: bool,
}

struct Link {
    incarnation: u64,
    heard: Now,
    info: Option<NodeInfo>,
}

enum State {
    Connecting,
    Joining(Round),
    Member { round: Round, progress: String, started: bool },
    Stopping(Stop),
    Stopped,
}

impl Qmgr {
    pub(super) fn new(setup: &NodeSetup) -> Self {
        let peer = || Peer { link: None, reason: "not connected".into(), leaving: false };
        let group = setup.groups.iter().position(|g| g.contains(&setup.node));
        Self {
            node: setup.node,
            layout: layout(setup),
            group: group.and_then(|g| u16::try_from(g).ok()),
            peers: setup.data_nodes().into_iter().filter(|n| *n != setup.node).map(|n| (n, peer())).collect(),
            state: State::Connecting,
            sessions: Sessions::default(),
            last_round: setup.incarnation,
            last_loss: String::new(),
            ticked: Now(0),
            heartbeat_sent: Now(0),
            asked: Now(0),
            waiting_logged: Now(0),
            changed: true,
        }
    }

    /// Whether `node` is a data node of the configuration.
    pub(super) fn is_data_node(&self, node: NodeId) -> bool {
        node == self.node || self.peers.contains_key(&node)
    }

    /// Whether something changed since the last call that the status may show.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A link is up: exchange who we are.
    pub(super) fn on_connect_rep(&mut self, ctx: &mut Ctx<'_>, node: NodeId, incarnation: u64) {
        if self.peers.get(&node).is_some_and(|p| p.link.is_some()) {
            self.on_disconnect_rep(ctx, node, "the link was replaced by a new one");
        }
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.link = Some(Link { incarnation, heard: ctx.now, info: None });
        peer.leaving = false;
        self.changed = true;
        let info = self.own_info(ctx);
        send(ctx, node, QmgrSignal::CmNodeInfoReq(info));
        self.tell_peers(ctx);
        self.tidy(ctx);
    }

    /// A link is gone.
    pub(super) fn on_disconnect_rep(&mut self, ctx: &mut Ctx<'_>, node: NodeId, reason: &str) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.reason = format!("not connected ({reason})");
        self.changed = true;
        if peer.link.take().is_none() {
            return;
        }
        self.last_loss = if peer.leaving {
            format!("data node {node} was stopped by order")
        } else {
            format!("lost data node {node} ({reason})")
        };
        match &mut self.state {
            State::Connecting => self.tell_peers(ctx),
            State::Joining(_) | State::Member { started: false, .. } => {
                let reason = self.last_loss.clone();
                self.fall_back(ctx, &reason);
            }
            State::Member { started: true, .. } if ctx.setup.planted.has(Fault::ServesAlone) => {}
            State::Member { started: true, .. } => self.shut_down_alone(ctx),
            State::Stopping(_) => self.stop_without(ctx, node),
            State::Stopped => {}
        }
    }

    /// Ends the node because a started node lost a peer.
    fn shut_down_alone(&mut self, ctx: &mut Ctx<'_>) {
        let reason = format!(
            "{}; this node stops too, because it must not serve without a configured data node",
            self.last_loss
        );
        ctx.event(Severity::Alert, format!("node {}: {reason}", self.node));
        let signal = PeerSignal::Cntr(CntrSignal::StoppingOrd);
        ctx.send_local(BlockNumber::Qmgr, BlockNumber::Ndbcntr, signal);
        self.end(ctx, reason, true);
    }

    /// Tells the runtime to end the process.
    fn end(&mut self, ctx: &mut Ctx<'_>, reason: String, error: bool) {
        self.state = State::Stopped;
        self.changed = true;
        ctx.out.effect(Effect::Shutdown { reason, error });
    }

    /// A signal for qmgr from a data node, or from a block of this one.
    pub(super) fn handle_peer(&mut self, ctx: &mut Ctx<'_>, source: NodeId, signal: QmgrSignal) {
        if let State::Stopped = self.state {
            return;
        }
        let local = source == self.node;
        if let Some(link) = self.peers.get_mut(&source).and_then(|p| p.link.as_mut()) {
            link.heard = ctx.now;
        }
        match signal {
            QmgrSignal::Heartbeat => {}
            QmgrSignal::CmNodeInfoReq(info) => {
                let own = self.own_info(ctx);
                send(ctx, source, QmgrSignal::CmNodeInfoConf(own));
                self.on_node_info(ctx, source, info);
            }
            QmgrSignal::CmNodeInfoConf(info) | QmgrSignal::CmNodeInfoRep(info) => {
                self.on_node_info(ctx, source, info);
            }
            QmgrSignal::CmMembersReq { round, members } => self.on_members_req(ctx, source, round, &members),
            QmgrSignal::CmMembersConf { round } => self.on_members_conf(ctx, source, round),
            QmgrSignal::CmMembersRef { round, reason } => self.on_members_ref(ctx, source, round, &reason),
            QmgrSignal::CmMembershipOrd { round } => self.on_membership_ord(ctx, source, round),
            QmgrSignal::CmCancelOrd { round, reason } => self.on_cancel_ord(ctx, source, round, &reason),
            QmgrSignal::StopAnnounceReq => self.on_stop_announce_req(ctx, source),
            QmgrSignal::StopAnnounceConf => self.stop_without(ctx, source),
            QmgrSignal::StopOrd => self.on_stop_ord(ctx, source),
            QmgrSignal::LeaveRep => {
                if let Some(peer) = self.peers.get_mut(&source) {
                    peer.leaving = true;
                }
            }
            QmgrSignal::StartProgressRep { started, text } if local => {
                self.on_start_progress_rep(ctx, started, text);
            }
            QmgrSignal::StopReq { asker, request, scope, force } if local => {
                self.on_stop_req(ctx, asker, request, scope, force);
            }
            QmgrSignal::StartProgressRep { .. } | QmgrSignal::StopReq { .. } => {
                ctx.event(Severity::Warning, format!("node {source} sent a signal local to qmgr; dropped"));
            }
        }
        self.tidy(ctx);
    }

    /// After every signal: whatever the new facts allow.
    fn tidy(&mut self, ctx: &mut Ctx<'_>) {
        self.propose_membership(ctx);
    }

    /// Heartbeats out, silent peers and clients off, questions again.
    pub(super) fn tick(&mut self, ctx: &mut Ctx<'_>) {
        if let State::Stopped = self.state {
            return;
        }
        self.forgive_own_stall(ctx);
        self.heartbeat(ctx);
        self.sessions.check(ctx);
        self.stop_overdue(ctx);
        if self.starting() && ctx.now.millis_since(self.asked) >= ctx.setup.tunables.ask_again_ms {
            self.asked = ctx.now;
            self.ask_incomplete(ctx);
        }
        if self.starting() && ctx.now.millis_since(self.waiting_logged) >= WAITING_LOG_MS {
            self.waiting_logged = ctx.now;
            ctx.event(Severity::Info, format!("node {}: {}", self.node, self.progress()));
        }
        self.tidy(ctx);
    }

    /// Time in which this node did not even tick is nobody else's silence.
    fn forgive_own_stall(&mut self, ctx: &mut Ctx<'_>) {
        let gap = ctx.now.millis_since(self.ticked);
        if gap >= ctx.setup.heartbeat_db_ms.min(ctx.setup.heartbeat_api_ms) {
            ctx.event(Severity::Warning, format!("node {} was stalled for {gap} ms", self.node));
            for link in self.peers.values_mut().filter_map(|p| p.link.as_mut()) {
                link.heard = link.heard.after_ms(gap).min(ctx.now);
            }
            self.sessions.forgive(ctx.now, gap);
        }
        self.ticked = ctx.now;
    }

    fn heartbeat(&mut self, ctx: &mut Ctx<'_>) {
        let interval = ctx.setup.heartbeat_db_ms;
        let due = ctx.now.millis_since(self.heartbeat_sent) >= interval;
        if due {
            self.heartbeat_sent = ctx.now;
        }
        for (node, peer) in &mut self.peers {
            let Some(link) = &mut peer.link else { continue };
            if due {
                send(ctx, *node, QmgrSignal::Heartbeat);
            }
            // Half an interval more, so that the last one is not counted as missed for being a little late.
            if ctx.setup.planted.has(Fault::HeartbeatsNeverExpire) {
                continue;
            }
            if ctx.now.millis_since(link.heard) > interval * HEARTBEATS_MISSED_MAX + interval / 2 {
                let silent = ctx.now.millis_since(link.heard);
                let reason = format!("no heartbeat for {silent} ms");
                ctx.event(Severity::Alert, format!("data node {node}: {reason}, closing its link"));
                // The runtime answers with DisconnectRep; until then this is not repeated.
                link.heard = ctx.now;
                ctx.out.effect(Effect::Disconnect { node: *node, reason });
            }
        }
    }

    fn on_start_progress_rep(&mut self, ctx: &mut Ctx<'_>, now_started: bool, text: String) {
        match &mut self.state {
            State::Member { progress, started, .. } => {
                *progress = text;
                *started |= now_started;
                self.changed = true;
            }
            // Ndbcntr gave the permission to serve while the link went: it is the loss of a started node.
            State::Connecting | State::Joining(_) if now_started => self.shut_down_alone(ctx),
            State::Connecting | State::Joining(_) | State::Stopping(_) | State::Stopped => {}
        }
    }

    /// Whether the start is not over yet.
    fn starting(&self) -> bool {
        match self.state {
            State::Connecting | State::Joining(_) | State::Member { started: false, .. } => true,
            State::Member { started: true, .. } | State::Stopping(_) | State::Stopped => false,
        }
    }

    fn started(&self) -> bool {
        matches!(self.state, State::Member { started: true, .. })
    }

    /// The data nodes whose links are up.
    fn linked(&self) -> Vec<NodeId> {
        self.peers.iter().filter(|(_, p)| p.link.is_some()).map(|(n, _)| *n).collect()
    }

    pub(super) fn on_api_reg_req(&mut self, ctx: &mut Ctx<'_>, client: BlockRef) {
        if self.sessions.register(ctx, client) {
            let conf = self.api_reg_conf(ctx.setup);
            sessions::send_conf(ctx, client, conf);
        }
    }

    pub(super) fn on_api_fail_req(&mut self, ctx: &mut Ctx<'_>, client: BlockRef) {
        self.sessions.fail(ctx, client);
    }

    /// Tells every session the node's state, so that clients need not wait for their next heartbeat.
    pub(super) fn tell_sessions(&self, ctx: &mut Ctx<'_>) {
        let conf = self.api_reg_conf(ctx.setup);
        for client in self.sessions.iter() {
            sessions::send_conf(ctx, client, conf.clone());
        }
    }

    fn api_reg_conf(&self, setup: &NodeSetup) -> signals::control::ApiRegConf {
        signals::control::ApiRegConf {
            started: self.started(),
            status: self.progress(),
            tcs: setup.tcs,
            ldms: setup.ldms,
            groups: setup.groups.clone(),
        }
    }

    /// The node's status; the generation is the caller's to count.
    pub(super) fn status(&self) -> NodeStatus {
        let (phase, president) = match &self.state {
            State::Connecting => (StartPhase::Connecting, None),
            State::Joining(round) => (StartPhase::Joining, Some(round.president)),
            State::Member { round, started: false, .. } => (StartPhase::Dictionary, Some(round.president)),
            State::Member { round, started: true, .. } => (StartPhase::Started, Some(round.president)),
            State::Stopping(_) | State::Stopped => (StartPhase::Stopping, None),
        };
        NodeStatus {
            phase,
            text: self.progress(),
            president,
            group: self.group,
            connected: self.linked(),
            generation: 0,
        }
    }

    /// One line for people: the phase and what it waits for.
    fn progress(&self) -> String {
        match &self.state {
            State::Connecting => self.waiting_text(),
            State::Joining(round) if round.president == self.node => {
                format!("joining: waiting for {} to agree", node_list(round.awaiting.iter().copied()))
            }
            State::Joining(round) => format!("joining: waiting for president node {}", round.president),
            State::Member { progress, .. } => progress.clone(),
            State::Stopping(_) => "stopping: waiting for the other data nodes".into(),
            State::Stopped => "stopped".into(),
        }
    }
}

/// What two nodes must have in common to place rows alike.
fn layout(setup: &NodeSetup) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&codec::encode(&(&setup.groups, setup.ldms)))
}

/// Sends to the qmgr of another node.
fn send(ctx: &mut Ctx<'_>, node: NodeId, signal: QmgrSignal) {
    ctx.send_peer(BlockNumber::Qmgr, node, PeerSignal::Qmgr(signal));
}
