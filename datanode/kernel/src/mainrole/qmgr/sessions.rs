//! Sessions: the client links of this node, registered by their heartbeat ApiRegReq.
//!
//! A client that misses four HeartbeatIntervalDbApi has its link closed; the runtime then reports
//! ApiFailReq, as it does for every link that ends, and that is passed on to whoever may hold something of
//! the client: TCs, LDMs, dict. A session that never registered is the runtime's to limit.

use super::HEARTBEATS_MISSED_MAX;
use crate::Now;
use crate::mainrole::Ctx;
use crate::outbox::{Effect, Severity};
use signals::control::{ApiRegConf, ControlSignal};
use signals::{BlockNumber, BlockRef};
use std::collections::BTreeMap;

/// Most sessions kept; far above the links a node accepts.
const SESSIONS_MAX: usize = 1 << 14;

/// See the module: the sessions, and when each was heard of.
#[derive(Default)]
pub(super) struct Sessions(BTreeMap<BlockRef, Now>);

impl Sessions {
    /// Notes that the client is alive. False if there are too many, and its link is being closed.
    pub(super) fn register(&mut self, ctx: &mut Ctx<'_>, client: BlockRef) -> bool {
        if self.0.len() >= SESSIONS_MAX && !self.0.contains_key(&client) {
            let reason = format!("{SESSIONS_MAX} client sessions already");
            ctx.out.effect(Effect::DisconnectClient { client, reason });
            return false;
        }
        self.0.insert(client, ctx.now);
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = BlockRef> {
        self.0.keys().copied()
    }

    /// Closes the links of clients that have been silent too long.
    pub(super) fn check(&mut self, ctx: &mut Ctx<'_>) {
        let interval = ctx.setup.heartbeat_api_ms;
        for (client, heard) in &mut self.0 {
            let silent = ctx.now.millis_since(*heard);
            if silent > interval * HEARTBEATS_MISSED_MAX + interval / 2 {
                let reason = format!("no heartbeat for {silent} ms");
                ctx.event(
                    Severity::Warning,
                    format!("API node {}, link {}: {reason}, closing", client.node(), client.instance()),
                );
                // The runtime answers with ApiFailReq; until then this is not repeated.
                *heard = ctx.now;
                ctx.out.effect(Effect::DisconnectClient { client: *client, reason });
            }
        }
    }

    /// This node itself did not listen for `gap` milliseconds.
    pub(super) fn forgive(&mut self, now: Now, gap: u64) {
        for heard in self.0.values_mut() {
            *heard = heard.after_ms(gap).min(now);
        }
    }

    /// The client's link is gone; whoever may hold something of it is told.
    pub(super) fn fail(&mut self, ctx: &mut Ctx<'_>, client: BlockRef) {
        self.0.remove(&client);
        let signal = ControlSignal::ApiFailReq { client };
        ctx.send_workers(BlockNumber::Qmgr, &signal);
        let (source, target) = (ctx.own(BlockNumber::Qmgr), ctx.own(BlockNumber::Dbdict));
        ctx.out.control(source, target, &signal);
    }
}

/// Answers a registration.
pub(super) fn send_conf(ctx: &mut Ctx<'_>, client: BlockRef, conf: ApiRegConf) {
    let source = ctx.own(BlockNumber::Qmgr);
    ctx.out.control(source, client, &ControlSignal::ApiRegConf(conf));
}
