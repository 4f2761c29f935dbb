//! Membership: how the data nodes agree that they are all here, and who is president.
//!
//! Every node tells its peers when the set of its links becomes complete or loses that. The node with the
//! lowest id of the configuration proposes when everybody is complete; it becomes president. A round's
//! number tells one attempt from the next, and a member is a node with its incarnation, so that a node
//! restarted in the middle is noticed.
//!
//! ```text
//!   N ◄──CmNodeInfoReq/Conf──► N      at every ConnectRep; CmNodeInfoRep to all when something changed
//!   P ──CmMembersReq{round, members}──► N       all said complete
//!   P ◄──CmMembersConf──────────────────N       N sees exactly these members; or CmMembersRef, and P asks again later
//!   P ──CmMembershipOrd{round}──► N             all agreed
//!   P ──CmCancelOrd{round}──► N                 somebody fell out before the start was over: all back to Connecting
//! ```
//!
//! A node that is started, or one that is configured otherwise, is never joined: the texts say so.

use super::{Link, Qmgr, State, send};
use crate::mainrole::Ctx;
use crate::mainrole::status::node_list;
use crate::outbox::Severity;
use signals::peer::{CntrSignal, Member, NodeInfo, PeerSignal, QmgrSignal};
use signals::{BlockNumber, NodeId};
use std::collections::BTreeSet;

/// One attempt to agree, as this node takes part in it.
pub(super) struct Round {
    pub(super) number: u64,
    pub(super) president: NodeId,
    /// The president: who has not agreed yet.
    pub(super) awaiting: BTreeSet<NodeId>,
}

impl Qmgr {
    pub(super) fn own_info(&self, ctx: &Ctx<'_>) -> NodeInfo {
        NodeInfo {
            incarnation: ctx.setup.incarnation,
            layout: self.layout,
            complete: self.all_linked(),
            started: self.started(),
        }
    }

    fn all_linked(&self) -> bool {
        self.peers.values().all(|p| p.link.is_some())
    }

    /// The node that proposes: the lowest of the configuration.
    fn proposer(&self) -> NodeId {
        self.peers.keys().next().copied().map_or(self.node, |n| n.min(self.node))
    }

    /// Tells all linked peers what changed about this node.
    pub(super) fn tell_peers(&self, ctx: &mut Ctx<'_>) {
        let info = self.own_info(ctx);
        for node in self.linked() {
            send(ctx, node, QmgrSignal::CmNodeInfoRep(info));
        }
    }

    /// Asks peers again that have not said they are complete; an answer may have met this node unprepared.
    pub(super) fn ask_incomplete(&self, ctx: &mut Ctx<'_>) {
        let info = self.own_info(ctx);
        for (node, peer) in &self.peers {
            if let Some(link) = &peer.link
                && !link.info.is_some_and(|i| i.complete)
            {
                send(ctx, *node, QmgrSignal::CmNodeInfoReq(info));
            }
        }
    }

    pub(super) fn on_node_info(&mut self, ctx: &mut Ctx<'_>, source: NodeId, info: NodeInfo) {
        let Some(link) = self.peers.get_mut(&source).and_then(|p| p.link.as_mut()) else { return };
        if link.incarnation != info.incarnation {
            return;
        }
        link.info = Some(info);
        self.changed = true;
        // A member that lost a link again ends the round; only the president may, so that all end the same
        // one.
        let in_round = match &self.state {
            State::Joining(round) | State::Member { round, started: false, .. } => {
                round.president == self.node
            }
            State::Connecting | State::Member { started: true, .. } | State::Stopping(_) | State::Stopped => {
                false
            }
        };
        if in_round && !info.complete {
            self.fall_back(ctx, &format!("data node {source} lost its link to another data node"));
        }
    }

    /// The proposer: proposes as soon as everybody is complete.
    pub(super) fn propose_membership(&mut self, ctx: &mut Ctx<'_>) {
        let State::Connecting = self.state else { return };
        if self.proposer() != self.node || self.hindrance().is_some() {
            return;
        }
        self.last_round = self.last_round.wrapping_add(1);
        let number = self.last_round;
        let members = self.members(ctx);
        for node in self.linked() {
            send(ctx, node, QmgrSignal::CmMembersReq { round: number, members: members.clone() });
        }
        let awaiting = self.peers.keys().copied().collect();
        self.state = State::Joining(Round { number, president: self.node, awaiting });
        self.changed = true;
        self.enter_if_agreed(ctx);
    }

    /// The members as this node sees them, in id order.
    fn members(&self, ctx: &Ctx<'_>) -> Vec<Member> {
        let linked = |(node, peer): (&NodeId, &super::Peer)| {
            peer.link.as_ref().map(|l| Member { node: *node, incarnation: l.incarnation })
        };
        let mut members: Vec<Member> = self.peers.iter().filter_map(linked).collect();
        members.push(Member { node: self.node, incarnation: ctx.setup.incarnation });
        members.sort_by_key(|m| m.node);
        members
    }

    pub(super) fn on_members_req(
        &mut self,
        ctx: &mut Ctx<'_>,
        source: NodeId,
        round: u64,
        members: &[Member],
    ) {
        let reason = match &self.state {
            State::Connecting | State::Joining(_) if source != self.proposer() => {
                format!("node {} is to propose", self.proposer())
            }
            State::Connecting | State::Joining(_) if self.members(ctx) != members => {
                format!("node {} sees other members: {}", self.node, self.waiting_text())
            }
            State::Connecting | State::Joining(_) => {
                let round = Round { number: round, president: source, awaiting: BTreeSet::new() };
                send(ctx, source, QmgrSignal::CmMembersConf { round: round.number });
                self.state = State::Joining(round);
                self.changed = true;
                return;
            }
            State::Member { .. } | State::Stopping(_) | State::Stopped => {
                format!("node {} is {}", self.node, self.progress())
            }
        };
        send(ctx, source, QmgrSignal::CmMembersRef { round, reason });
    }

    pub(super) fn on_members_conf(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64) {
        let State::Joining(round) = &mut self.state else { return };
        if round.number == number && round.president == self.node {
            round.awaiting.remove(&source);
            self.changed = true;
            self.enter_if_agreed(ctx);
        }
    }

    pub(super) fn on_members_ref(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64, reason: &str) {
        let State::Joining(round) = &self.state else { return };
        if round.number != number || round.president != self.node {
            return;
        }
        // It will say when it is complete again, or be asked.
        if let Some(Link { info: Some(info), .. }) = self.peers.get_mut(&source).and_then(|p| p.link.as_mut())
        {
            info.complete = false;
        }
        self.fall_back(ctx, reason);
    }

    /// The president: goes on when all have agreed.
    fn enter_if_agreed(&mut self, ctx: &mut Ctx<'_>) {
        let State::Joining(round) = &self.state else { return };
        if !round.awaiting.is_empty() {
            return;
        }
        let number = round.number;
        for node in self.linked() {
            send(ctx, node, QmgrSignal::CmMembershipOrd { round: number });
        }
        self.enter(ctx);
    }

    pub(super) fn on_membership_ord(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64) {
        let State::Joining(round) = &self.state else { return };
        if round.number == number && round.president == source {
            self.enter(ctx);
        }
    }

    /// The membership is agreed: ndbcntr goes on.
    fn enter(&mut self, ctx: &mut Ctx<'_>) {
        let State::Joining(Round { number, president, .. }) = &self.state else { return };
        let (number, president) = (*number, *president);
        let members = self.members(ctx).iter().map(|m| m.node).collect();
        let signal = CntrSignal::MembershipRep { round: number, president, members };
        ctx.send_local(BlockNumber::Qmgr, BlockNumber::Ndbcntr, PeerSignal::Cntr(signal));
        self.state = State::Member {
            round: Round { number, president, awaiting: BTreeSet::new() },
            progress: "dictionary: beginning".into(),
            started: false,
        };
        self.changed = true;
    }

    pub(super) fn on_cancel_ord(&mut self, ctx: &mut Ctx<'_>, source: NodeId, number: u64, reason: &str) {
        let ours = match &self.state {
            State::Joining(round) | State::Member { round, started: false, .. } => {
                round.number == number && round.president == source
            }
            State::Connecting | State::Member { started: true, .. } | State::Stopping(_) | State::Stopped => {
                false
            }
        };
        if ours {
            self.fall_back(ctx, reason);
        }
    }

    /// Gives the round up: back to `Connecting`, everybody with us.
    pub(super) fn fall_back(&mut self, ctx: &mut Ctx<'_>, reason: &str) {
        ctx.event(Severity::Warning, format!("node {} connects again: {reason}", self.node));
        let before = std::mem::replace(&mut self.state, State::Connecting);
        // The loss may be another node's, told by the president; whoever stops because of it says so.
        self.last_loss = reason.to_string();
        self.changed = true;
        let round = match before {
            State::Joining(round) => round,
            State::Member { round, .. } => {
                let signal = PeerSignal::Cntr(CntrSignal::MembershipLostRep);
                ctx.send_local(BlockNumber::Qmgr, BlockNumber::Ndbcntr, signal);
                round
            }
            State::Connecting | State::Stopping(_) | State::Stopped => return,
        };
        if round.president == self.node {
            for node in self.linked() {
                let reason = reason.to_string();
                send(ctx, node, QmgrSignal::CmCancelOrd { round: round.number, reason });
            }
        }
        self.tell_peers(ctx);
    }

    /// What keeps this node from proposing: nodes and the reason, the gravest first.
    fn hindrance(&self) -> Option<(Vec<NodeId>, String)> {
        for (node, peer) in &self.peers {
            if peer.link.is_none() {
                let others = self.peers.iter().filter(|(_, p)| p.link.is_none()).map(|(n, _)| *n).collect();
                return Some((others, self.peers[node].reason.clone()));
            }
        }
        let with = |wanted: &dyn Fn(Option<NodeInfo>) -> bool| -> Vec<NodeId> {
            let info = |p: &super::Peer| p.link.as_ref().and_then(|l| l.info);
            self.peers.iter().filter(|(_, p)| wanted(info(p))).map(|(n, _)| *n).collect()
        };
        let layout = self.layout;
        let reasons: [(Vec<NodeId>, &str); 4] = [
            (
                with(&|i| i.is_some_and(|i| i.layout != layout)),
                "runs with other node groups or another LDM count; give all nodes the same configuration",
            ),
            (
                with(&|i| i.is_some_and(|i| i.started)),
                "belongs to a cluster that runs without this node; it has to stop first",
            ),
            (with(&|i| i.is_none()), "has not answered yet"),
            (with(&|i| i.is_some_and(|i| !i.complete)), "lacks links to other data nodes"),
        ];
        reasons.into_iter().find(|(nodes, _)| !nodes.is_empty()).map(|(n, r)| (n, r.to_string()))
    }

    /// What a connecting node waits for, for people.
    pub(super) fn waiting_text(&self) -> String {
        match self.hindrance() {
            Some((nodes, reason)) => {
                format!("connecting: waiting for {}: {reason}", node_list(nodes.into_iter()))
            }
            None => format!("connecting: waiting for node {} to propose the membership", self.proposer()),
        }
    }
}
