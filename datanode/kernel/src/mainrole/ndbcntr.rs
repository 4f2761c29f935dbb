//! NDBCNTR, the start of the node: it takes the node through its phases and gives the permission to serve.
//!
//! States, and who moves on (the chart is in [`super`]):
//!
//! * `Waiting` - qmgr has not agreed on a membership yet, or lost it again. Leaves on qmgr's MembershipRep.
//! * `Dictionary` - this node's dict forgets what an earlier attempt left, then reports to the president. The
//!   president waits for all reports, has the system tables made, and then orders the start.
//! * `Started` - StartPermOrd was given. Nothing leads back: from here on a lost peer ends the node.
//! * `Stopping` - clients are refused until the process ends.
//!
//! Only the president collects and orders; it does so for itself by the same signals. Reports are
//! remembered per node with their round, because a quick peer may report before this node's own qmgr has
//! told of the round.
//!
//! It never judges membership: that is qmgr's.

use super::Ctx;
use crate::outbox::Severity;
use signals::control::ControlSignal;
use signals::peer::{CntrSignal, DictSignal, DihSignal, PeerSignal, QmgrSignal};
use signals::{BlockNumber, NodeId};
use std::collections::BTreeMap;

/// See the module.
pub(super) struct Ndbcntr {
    state: State,
    /// The last round each node reported its dictionary ready for; used by the president.
    dictionaries: BTreeMap<NodeId, u64>,
}

enum State {
    Waiting,
    Dictionary(Attempt),
    Started,
    Stopping,
}

struct Attempt {
    round: u64,
    president: NodeId,
    members: Vec<NodeId>,
    own_ready: bool,
    /// President: the system tables are being made.
    system: bool,
}

impl Ndbcntr {
    pub(super) fn new() -> Self {
        Self { state: State::Waiting, dictionaries: BTreeMap::new() }
    }

    pub(super) fn handle(&mut self, ctx: &mut Ctx<'_>, source: NodeId, signal: CntrSignal) {
        let local = source == ctx.setup.node;
        match signal {
            CntrSignal::MembershipRep { round, president, members } if local => {
                self.on_membership_rep(ctx, round, president, members);
            }
            CntrSignal::MembershipLostRep if local => {
                if let State::Dictionary(_) = self.state {
                    self.state = State::Waiting;
                }
            }
            CntrSignal::StoppingOrd if local => {
                self.state = State::Stopping;
                self.give_permission(ctx, false);
            }
            CntrSignal::DictStartConf { round } if local => self.on_dict_start_conf(ctx, round),
            CntrSignal::DictionaryRep { round } => {
                self.dictionaries.insert(source, round);
                self.move_on(ctx);
            }
            CntrSignal::DictSystemConf { round } if local => self.on_dict_system_conf(ctx, round),
            CntrSignal::DictSystemRef { round, refusal } if local => {
                if self.attempt(round).is_some() {
                    let (code, detail) = (refusal.code, refusal.detail);
                    let reason = format!("cannot make the system tables: {code}; {detail}");
                    ctx.out.effect(crate::outbox::Effect::Shutdown { reason, error: true });
                }
            }
            CntrSignal::StartOrd { round } => self.on_start_ord(ctx, source, round),
            // A peer's attempt at what only this node's own blocks may say.
            CntrSignal::MembershipRep { .. }
            | CntrSignal::MembershipLostRep
            | CntrSignal::StoppingOrd
            | CntrSignal::DictStartConf { .. }
            | CntrSignal::DictSystemConf { .. }
            | CntrSignal::DictSystemRef { .. } => {
                ctx.event(
                    Severity::Warning,
                    format!("node {source} sent a signal local to ndbcntr; dropped"),
                );
            }
        }
    }

    fn on_membership_rep(&mut self, ctx: &mut Ctx<'_>, round: u64, president: NodeId, members: Vec<NodeId>) {
        match self.state {
            State::Waiting | State::Dictionary(_) => {}
            State::Started | State::Stopping => return,
        }
        let signal = DictSignal::DictStartReq { round, master: president, members: members.clone() };
        ctx.send_local(BlockNumber::Ndbcntr, BlockNumber::Dbdict, PeerSignal::Dict(signal));
        self.state =
            State::Dictionary(Attempt { round, president, members, own_ready: false, system: false });
        self.report(ctx);
    }

    fn on_dict_start_conf(&mut self, ctx: &mut Ctx<'_>, round: u64) {
        let Some(attempt) = self.attempt(round) else { return };
        attempt.own_ready = true;
        let president = attempt.president;
        let signal = PeerSignal::Cntr(CntrSignal::DictionaryRep { round });
        ctx.send_peer(BlockNumber::Ndbcntr, president, signal);
        self.report(ctx);
    }

    /// The president: asks for the system tables when every dictionary is ready.
    fn move_on(&mut self, ctx: &mut Ctx<'_>) {
        let dictionaries = &self.dictionaries;
        if let State::Dictionary(attempt) = &mut self.state
            && attempt.president == ctx.setup.node
            && !attempt.system
            && attempt.members.iter().all(|n| dictionaries.get(n) == Some(&attempt.round))
        {
            attempt.system = true;
            let signal = DictSignal::DictSystemReq { round: attempt.round };
            ctx.send_local(BlockNumber::Ndbcntr, BlockNumber::Dbdict, PeerSignal::Dict(signal));
        }
        self.report(ctx);
    }

    fn on_dict_system_conf(&mut self, ctx: &mut Ctx<'_>, round: u64) {
        let Some(attempt) = self.attempt(round) else { return };
        for node in attempt.members.clone() {
            let signal = PeerSignal::Cntr(CntrSignal::StartOrd { round });
            ctx.send_peer(BlockNumber::Ndbcntr, node, signal);
        }
    }

    fn on_start_ord(&mut self, ctx: &mut Ctx<'_>, source: NodeId, round: u64) {
        let Some(attempt) = self.attempt(round) else { return };
        if attempt.president != source {
            return;
        }
        let (president, members) = (attempt.president, std::mem::take(&mut attempt.members));
        self.state = State::Started;
        let signal = PeerSignal::Dih(DihSignal::DihStartOrd { president, members });
        ctx.send_local(BlockNumber::Ndbcntr, BlockNumber::Dbdih, signal);
        self.give_permission(ctx, true);
        self.report(ctx);
    }

    fn give_permission(&self, ctx: &mut Ctx<'_>, started: bool) {
        let signal = ControlSignal::StartPermOrd { started };
        ctx.send_workers(BlockNumber::Ndbcntr, &signal);
        let (source, target) = (ctx.own(BlockNumber::Ndbcntr), ctx.own(BlockNumber::Dbdict));
        ctx.out.control(source, target, &signal);
    }

    /// The attempt, if it is still the one called `round`.
    fn attempt(&mut self, round: u64) -> Option<&mut Attempt> {
        match &mut self.state {
            State::Dictionary(attempt) if attempt.round == round => Some(attempt),
            State::Waiting | State::Dictionary(_) | State::Started | State::Stopping => None,
        }
    }

    /// Tells qmgr, which speaks for the node, how far the start is.
    fn report(&self, ctx: &mut Ctx<'_>) {
        let text = match &self.state {
            State::Waiting | State::Stopping => return,
            State::Dictionary(a) if !a.own_ready => "dictionary: readying this node's".to_string(),
            State::Dictionary(a) if a.president != ctx.setup.node => {
                format!("dictionary: waiting for president node {} to order the start", a.president)
            }
            State::Dictionary(a) if a.system => "dictionary: making the system tables".to_string(),
            State::Dictionary(a) => {
                let missing = a.members.iter().filter(|n| self.dictionaries.get(n) != Some(&a.round));
                format!("dictionary: waiting for {}", super::status::node_list(missing.copied()))
            }
            State::Started => "started".to_string(),
        };
        let started = matches!(self.state, State::Started);
        let signal = PeerSignal::Qmgr(QmgrSignal::StartProgressRep { started, text });
        ctx.send_local(BlockNumber::Ndbcntr, BlockNumber::Qmgr, signal);
    }
}
