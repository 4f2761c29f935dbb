//! Stop: how the cluster, or one node, is ended by order without anybody taking it for a failure.
//!
//! ```text
//!   any ──StopReq{Cluster}──► A          A, the announcer, refuses clients from here on
//!   any ◄──StopConf────────── A
//!   A ──StopAnnounceReq──► N             N refuses clients and expects links to close
//!   A ◄──StopAnnounceConf── N
//!   A ──StopOrd──► N                     everybody knows; A ends, every N ends
//! ```
//!
//! Two nodes may announce at once (the management server orders every node it reaches); each then confirms
//! the other's announcement and ends when its own is confirmed or its peers are gone. A follower whose
//! announcer is gone ends too, since the stop was decided. A peer that does not confirm within
//! [`STOP_WAIT_MS`] is not waited for.
//!
//! One node alone is stopped only if that ends no service: while it is still starting, if it is the only
//! data node, or by force. After a forced stop the others end as well, with an error that names the cause.

use super::{Qmgr, State, send};
use crate::Now;
use crate::mainrole::Ctx;
use crate::outbox::Severity;
use signals::control::{ControlSignal, Refusal, StopScope};
use signals::peer::{CntrSignal, PeerSignal, QmgrSignal};
use signals::{BlockNumber, BlockRef, ErrorCode, NodeId};
use std::collections::BTreeSet;

/// How long a stop waits for peers.
pub(super) const STOP_WAIT_MS: u64 = 3_000;

/// A stop under way.
pub(super) struct Stop {
    /// Who has not confirmed this node's announcement; for a follower, the announcer it waits for.
    awaiting: BTreeSet<NodeId>,
    announcer: bool,
    began: Now,
}

impl Qmgr {
    pub(super) fn on_stop_req(
        &mut self,
        ctx: &mut Ctx<'_>,
        asker: BlockRef,
        request: u32,
        scope: StopScope,
        force: bool,
    ) {
        let cmvmi = ctx.own(BlockNumber::Cmvmi);
        if scope == StopScope::Node && self.started() && !self.peers.is_empty() && !force {
            let detail = format!(
                "stopping node {} alone would end the service of the whole cluster; use SHUTDOWN to stop all \
                 nodes in order, or STOP -f to stop it all the same",
                self.node
            );
            let refusal = Refusal::new(ErrorCode::MGM_REFUSED, detail);
            ctx.out.control(cmvmi, asker, &ControlSignal::StopRef { request, refusal });
            return;
        }
        ctx.out.control(cmvmi, asker, &ControlSignal::StopConf { request });
        match (scope, &self.state) {
            (_, State::Stopping(Stop { announcer: true, .. }) | State::Stopped) => {}
            (StopScope::Node, _) => {
                for node in self.linked() {
                    send(ctx, node, QmgrSignal::LeaveRep);
                }
                self.refuse_clients(ctx);
                self.end(ctx, "stopped by order".into(), false);
            }
            (StopScope::Cluster, _) => self.announce_stop(ctx),
        }
    }

    fn announce_stop(&mut self, ctx: &mut Ctx<'_>) {
        self.refuse_clients(ctx);
        let awaiting: BTreeSet<NodeId> = self.linked().into_iter().collect();
        for node in &awaiting {
            send(ctx, *node, QmgrSignal::StopAnnounceReq);
        }
        self.state = State::Stopping(Stop { awaiting, announcer: true, began: ctx.now });
        self.changed = true;
        self.stop_if_known(ctx);
    }

    pub(super) fn on_stop_announce_req(&mut self, ctx: &mut Ctx<'_>, source: NodeId) {
        send(ctx, source, QmgrSignal::StopAnnounceConf);
        match self.state {
            State::Stopping(_) | State::Stopped => {}
            State::Connecting | State::Joining(_) | State::Member { .. } => {
                ctx.event(Severity::Info, format!("node {source} announces the cluster's planned stop"));
                self.refuse_clients(ctx);
                let awaiting = BTreeSet::from([source]);
                self.state = State::Stopping(Stop { awaiting, announcer: false, began: ctx.now });
                self.changed = true;
            }
        }
    }

    /// `node` need not be waited for any more: it confirmed, or it is gone.
    pub(super) fn stop_without(&mut self, ctx: &mut Ctx<'_>, node: NodeId) {
        if let State::Stopping(stop) = &mut self.state {
            stop.awaiting.remove(&node);
            self.stop_if_known(ctx);
        }
    }

    pub(super) fn on_stop_ord(&mut self, ctx: &mut Ctx<'_>, source: NodeId) {
        match &self.state {
            State::Stopping(Stop { announcer: false, .. }) => self.end_planned(ctx),
            // Its own announcement is not confirmed by all; the sender counts as gone.
            State::Stopping(_) => self.stop_without(ctx, source),
            State::Connecting | State::Joining(_) | State::Member { .. } | State::Stopped => {
                ctx.event(
                    Severity::Warning,
                    format!("node {source} ordered a stop nobody announced; dropped"),
                );
            }
        }
    }

    /// Ends the stop when nobody is left to wait for.
    fn stop_if_known(&mut self, ctx: &mut Ctx<'_>) {
        if let State::Stopping(stop) = &self.state
            && stop.awaiting.is_empty()
        {
            self.end_planned(ctx);
        }
    }

    /// Ends the stop although somebody did not answer.
    pub(super) fn stop_overdue(&mut self, ctx: &mut Ctx<'_>) {
        if let State::Stopping(stop) = &self.state
            && ctx.now.millis_since(stop.began) >= STOP_WAIT_MS
        {
            let missing = crate::mainrole::status::node_list(stop.awaiting.iter().copied());
            ctx.event(Severity::Warning, format!("planned stop: {missing} did not answer, stopping now"));
            self.end_planned(ctx);
        }
    }

    fn end_planned(&mut self, ctx: &mut Ctx<'_>) {
        if let State::Stopping(Stop { announcer: true, .. }) = self.state {
            for node in self.linked() {
                send(ctx, node, QmgrSignal::StopOrd);
            }
        }
        self.end(ctx, "planned stop of the cluster".into(), false);
    }

    fn refuse_clients(&self, ctx: &mut Ctx<'_>) {
        let signal = PeerSignal::Cntr(CntrSignal::StoppingOrd);
        ctx.send_local(BlockNumber::Qmgr, BlockNumber::Ndbcntr, signal);
    }
}
