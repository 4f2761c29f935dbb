//! Deadlock detection, TC's side: a circle of transactions that wait for each other ends at once, by the
//! abort of the youngest.
//!
//! TC remembers of an operation that it waits when its LDM says so (WAITFORREP), until its answer comes. That
//! costs no memory: while an operation is Preparing its record has no use for the replicas' record numbers,
//! so the primary's stands there if and only if it waits. Whom it waits for is the LDM's to tell, each
//! time it is asked.
//!
//! ```text
//!   WAITFORREP ──► remember; if the transaction has other operations (else nobody waits for it):
//!                  a probe begins at each of its waits
//!   DEADLOCKPROBE, target ended, or waits for nothing ──► the probe ends here
//!                  target is the initiator ─────────────► DEADLOCKREQ to the victim's TC
//!                  otherwise ───────────────────────────► on to the LDMs where the target waits
//!   DEADLOCKREQ ──► abort, if the transaction is Active and that operation still waits; DEADLOCKCONF
//!   DEADLOCKCONF ─► a new probe of the initiator: there may have been several circles
//! ```
//!
//! **No circle is missed.** A circle closes with the wait that is remembered last. Its TC then begins a
//! probe, and the others of the circle, all remembered, pass it on until it is back. What an LDM leaves out
//! (see `ldm::lqh::deadlock`) are operations that wait before others in one queue and whose transactions wait
//! nowhere else; so it must know when they do. TC says so with every probe, the LDM answers with WAITFORREP
//! when that is news, and a new probe begins: then this was the last thing to be remembered. If such an
//! operation got its turn before the news arrived, a new probe begins when TC learns that: by its LQHKEYCONF,
//! or by a WAITFORREP that comes after that (the last replica sends the one, the primary the other).
//!
//! **Not found,** and so left to TransactionDeadlockDetectionTimeout, are circles that need more than
//! [`WAITS_FOLLOWED_MAX`] waits of one transaction or more blockers of one operation than the LDM follows, or
//! that lead through more transactions than the probe's budget lasts for.
//!
//! **The victim** is the youngest transaction of the circle, by the age its own TC sees; of the same age, the
//! one with the highest id. A transaction passes a probe on once, so a probe costs no more signals than there
//! are waits, and it finds one of the circles that its initiator is part of, if there is any. When the victim
//! of that one is on its way out the initiator probes again, until it finds none. If the last two waits
//! of a circle are remembered at the same time two probes find it; both name the same victim, unless ages
//! differ by less than the probes' travel. Then two transactions end where one would do.
//!
//! **A needless victim** is also possible when a circle is ending as it is found: by a time-out, by a client
//! that rolls back, because another circle's victim was part of it, or because an operation of a batch is
//! refused and lets go of its row. Nothing else lets go of a lock that a waiting transaction holds, so
//! without aborts a circle found is one that exists: clients that lock rows in one order are never victims.
//! The price is one retry.
//!
//! What it never does: it keeps no graph, sends nothing while locks are free, and waits for no answer.

#[cfg(test)]
mod tests;

use super::{AbortReply, OpState, Tc, TransState};
use crate::Now;
use crate::outbox::Outbox;
use signals::deadlock::{DeadlockConf, DeadlockProbe, DeadlockReq, PROBE_BUDGET, WaitForRep};
use signals::keyop::NO_OPERATION;
use signals::{BlockRef, ErrorCode, TransId};

/// Most waits of one transaction that are followed.
const WAITS_FOLLOWED_MAX: usize = 16;

/// Most probes a transaction remembers to have passed on. One more, while the first of them still travels,
/// may be passed on again: that costs signals, which the probe's budget bounds.
const PROBES_REMEMBERED_MAX: usize = 32;

/// A probe that a transaction passed on: initiator and number.
pub(super) type Probed = (TransId, u32);

/// The operations of a transaction that wait.
struct Waits {
    list: [u32; WAITS_FOLLOWED_MAX],
    len: usize,
    /// There is more than one, counting one left out.
    several: bool,
}

impl Tc {
    /// An operation waits for its row.
    pub(super) fn on_waitforrep(&mut self, now: Now, rep: &WaitForRep, out: &mut Outbox) {
        let Some(op) = self.operation_of(rep.tc_op, rep.trans) else { return };
        let index = op.trans_index;
        match op.state {
            OpState::Preparing => {
                op.ops[0] = rep.op;
                self.begin_probe(now, index, rep.tc_op, out);
            }
            OpState::Prepared => self.begin_probe(now, index, NO_OPERATION, out),
            OpState::Free | OpState::Committing | OpState::Committed | OpState::Aborting => {}
        }
    }

    /// Begins a probe at the waits of a transaction, `latest` among them.
    #[cold]
    pub(super) fn begin_probe(&mut self, now: Now, index: u32, latest: u32, out: &mut Outbox) {
        let transaction = &self.transactions[index];
        let mut others = transaction.ops.iter().filter(|o| **o != NO_OPERATION && **o != latest);
        if transaction.state != TransState::Active || others.next().is_none() {
            return;
        }
        let mut waits = self.waits_of(index, NO_OPERATION);
        if latest != NO_OPERATION && !waits.list[..waits.len].contains(&latest) {
            waits.list[WAITS_FOLLOWED_MAX - 1] = latest;
        }
        self.probes = self.probes.wrapping_add(1);
        let probe = DeadlockProbe {
            initiator: transaction.id,
            target: transaction.id,
            victim: transaction.id,
            victim_tc: self.me,
            victim_tc_op: NO_OPERATION,
            victim_age_ms: 0,
            number: self.probes,
            op: NO_OPERATION,
            tc_op: NO_OPERATION,
            budget: PROBE_BUDGET,
            elsewhere: 0,
        };
        self.follow(now, index, &waits, &probe, out);
    }

    /// The latest operations of a transaction that wait, but for `left_out`.
    fn waits_of(&self, index: u32, left_out: u32) -> Waits {
        let transaction = &self.transactions[index];
        let mut waits = Waits { list: [NO_OPERATION; WAITS_FOLLOWED_MAX], len: 0, several: false };
        let mut outstanding = transaction.outstanding;
        let mut seen = false;
        for &tc_op in transaction.ops.iter().rev().filter(|o| **o != NO_OPERATION) {
            if outstanding == 0 || waits.len == WAITS_FOLLOWED_MAX {
                break;
            }
            let op = &self.operations[tc_op];
            if op.state != OpState::Preparing {
                continue;
            }
            outstanding -= 1;
            if op.ops[0] == NO_OPERATION {
                continue;
            }
            waits.several |= seen;
            seen = true;
            if tc_op != left_out {
                waits.list[waits.len] = tc_op;
                waits.len += 1;
            }
        }
        waits
    }

    /// Sends a probe to the LDMs where a transaction waits.
    fn follow(&self, now: Now, index: u32, waits: &Waits, probe: &DeadlockProbe, out: &mut Outbox) {
        let transaction = &self.transactions[index];
        let age_ms = u32::try_from(now.millis_since(transaction.started)).unwrap_or(u32::MAX);
        let (allowed, budget) = probe.shares(waits.len);
        let mut body =
            DeadlockProbe { target: transaction.id, budget, elsewhere: u32::from(waits.several), ..*probe };
        let is_victim = probe.victim == transaction.id || probe.is_elder_than(age_ms, transaction.id);
        for &tc_op in &waits.list[..allowed] {
            let op = &self.operations[tc_op];
            body.op = op.ops[0];
            body.tc_op = tc_op;
            if is_victim {
                body.victim = transaction.id;
                body.victim_tc = self.me;
                body.victim_tc_op = tc_op;
                body.victim_age_ms = age_ms;
            }
            out.send(self.me, op.replicas[0], &body, &[], &[]);
        }
    }

    /// A probe has come to one of this TC's transactions.
    pub(super) fn on_deadlockprobe(&mut self, now: Now, probe: &DeadlockProbe, out: &mut Outbox) {
        let Some(index) = self.find(probe.target) else { return };
        let transaction = &mut self.transactions[index];
        if transaction.state != TransState::Active || transaction.outstanding == 0 {
            return;
        }
        let this = (probe.initiator, probe.number);
        if transaction.probed.contains(&this) {
            return;
        }
        if transaction.probed.len() == PROBES_REMEMBERED_MAX {
            transaction.probed.remove(0);
        }
        transaction.probed.push(this);
        if probe.target == probe.initiator {
            let (trans, tc_op) = (probe.victim, probe.victim_tc_op);
            let body = DeadlockReq { trans, initiator: probe.initiator, tc_op, spare: 0 };
            out.send(self.me, probe.victim_tc, &body, &[], &[]);
            return;
        }
        // Those before an operation that waits in the queue the probe comes from have been probed with it.
        let waits = self.waits_of(index, probe.tc_op);
        self.follow(now, index, &waits, probe, out);
    }

    /// A transaction was chosen to end a deadlock.
    pub(super) fn on_deadlockreq(&mut self, source: BlockRef, req: &DeadlockReq, out: &mut Outbox) {
        if let Some(op) = self.operation_of(req.tc_op, req.trans) {
            let (index, api_op) = (op.trans_index, op.api_op);
            let waits = op.state == OpState::Preparing && op.ops[0] != NO_OPERATION;
            if waits && self.transactions[index].state == TransState::Active {
                self.abort(index, AbortReply::Decided { code: ErrorCode::DEADLOCK, api_op }, out);
            }
        }
        // Probes do not pass it any more, at least not by that wait.
        out.send(self.me, source, &DeadlockConf { initiator: req.initiator }, &[], &[]);
    }

    /// The victim of a circle that was found from here is on its way out.
    pub(super) fn on_deadlockconf(&mut self, now: Now, conf: &DeadlockConf, out: &mut Outbox) {
        if let Some(index) = self.find(conf.initiator) {
            self.begin_probe(now, index, NO_OPERATION, out);
        }
    }
}
