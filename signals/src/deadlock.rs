//! Deadlock signals: how LDMs and TCs find a circle of transactions that wait for each other, at once.
//!
//! The wait-for graph is nowhere in one piece: an LDM knows who stands before whom in the queue of a row, a
//! TC knows for which rows its transactions wait. A probe walks from one to the other and back.
//!
//! ```text
//!   P = the primary LDM where a row is waited for      T1, T2, ... = the TCs of the transactions
//!
//!   P  -> T1    WAITFORREP      an operation of transaction 1 waits here
//!   T1 -> P     DEADLOCKPROBE   who stands before it?
//!   P  -> T2    DEADLOCKPROBE   transaction 2 does: what does that wait for?  (nothing: the probe ends)
//!   T2 -> P'    DEADLOCKPROBE   who stands before this one?
//!   P' -> T1    DEADLOCKPROBE   transaction 1, which began the probe: the circle is closed
//!   T1 -> Tv    DEADLOCKREQ     to the TC of the youngest transaction of the circle: abort it
//!   Tv -> T1    DEADLOCKCONF    it is being aborted: see whether there is another circle
//! ```
//!
//! The side of the TC, and why no circle is missed, is told in the kernel's `tc::deadlock`; that of the LDM
//! in `ldm::lqh::deadlock`. Data nodes alone send these signals, and only when a lock is waited for.

use crate::frame::{Body, SignalNumber};
use crate::ids::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Primary LDM to TC: an operation waits for its row; or, in answer to a probe with
/// [`DeadlockProbe::elsewhere`], the LDM knows now that its transaction waits for other rows as well.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct WaitForRep {
    /// The transaction.
    pub trans: TransId,
    /// TC's operation record.
    pub tc_op: u32,
    /// The LDM's operation record, while it waits.
    pub op: u32,
}
const _: () = assert!(size_of::<WaitForRep>() == 16);

impl Body for WaitForRep {
    const NUMBER: SignalNumber = SignalNumber::WaitForRep;
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        (self.trans == TransId::NONE).then_some("WAITFORREP: no transaction id")
    }
}

/// TC to the primary LDM where `target` waits, or from there to the TC of a transaction that stands in its
/// way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeadlockProbe {
    /// The transaction whose wait began the probe; with `number` it names the probe.
    pub initiator: TransId,
    /// To an LDM: the transaction that waits there. To a TC: the one that is waited for.
    pub target: TransId,
    /// The youngest transaction on the way so far.
    pub victim: TransId,
    /// The victim's coordinator.
    pub victim_tc: BlockRef,
    /// The operation through which the probe passed the victim, as a record of its TC.
    pub victim_tc_op: u32,
    /// The victim's age as its TC saw it: clocks of nodes are not compared.
    pub victim_age_ms: u32,
    /// Counts the probes of a TC.
    pub number: u32,
    /// To an LDM: its record of the waiting operation. To a TC: [`crate::keyop::NO_OPERATION`].
    pub op: u32,
    /// To an LDM: TC's record of the waiting operation. To a TC: the record of that operation of `target`
    /// which stands in the way while it waits itself, in the queue the probe has just been through;
    /// [`crate::keyop::NO_OPERATION`] if `target` holds the row.
    pub tc_op: u32,
    /// How many more signals may be sent for the sake of this one.
    pub budget: u32,
    /// To an LDM: 1 if the transaction waits for other rows as well.
    pub elsewhere: u32,
}
const _: () = assert!(size_of::<DeadlockProbe>() == 56);

impl Body for DeadlockProbe {
    const NUMBER: SignalNumber = SignalNumber::DeadlockProbe;
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        if self.initiator == TransId::NONE || self.target == TransId::NONE || self.victim == TransId::NONE {
            return Some("DEADLOCKPROBE: no transaction id");
        }
        if self.victim_tc.block() != Some(BlockNumber::Dbtc) {
            return Some("DEADLOCKPROBE: a victim without coordinator");
        }
        (self.elsewhere > 1 || self.budget > PROBE_BUDGET).then_some("DEADLOCKPROBE: impossible values")
    }
}

/// Most signals one probe may become. Where it branches the branches share what is left, so the sum is kept
/// whatever the graph looks like.
pub const PROBE_BUDGET: u32 = 4096;

impl DeadlockProbe {
    /// How many of `branches` the probe's budget allows, and the budget of each of those.
    #[must_use]
    pub fn shares(&self, branches: usize) -> (usize, u32) {
        let allowed = branches.min(self.budget as usize);
        (allowed, self.budget.checked_div(allowed as u32).map_or(0, |share| share - 1))
    }

    /// Whether a transaction of this age is to be preferred as victim to the one so far. Of the same age is
    /// the one with the lower id the elder, so that all probes of one circle choose alike.
    #[must_use]
    pub fn is_elder_than(&self, age_ms: u32, trans: TransId) -> bool {
        self.victim_age_ms > age_ms || (self.victim_age_ms == age_ms && self.victim.0 < trans.0)
    }
}

/// TC of the initiator to the TC of a victim: abort the transaction, if that operation of it still waits.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeadlockReq {
    /// The victim.
    pub trans: TransId,
    /// The transaction whose probe found the circle.
    pub initiator: TransId,
    /// The victim's TC's record of the waiting operation.
    pub tc_op: u32,
    /// Zero.
    pub spare: u32,
}
const _: () = assert!(size_of::<DeadlockReq>() == 24);

impl Body for DeadlockReq {
    const NUMBER: SignalNumber = SignalNumber::DeadlockReq;
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        (self.trans == TransId::NONE || self.initiator == TransId::NONE)
            .then_some("DEADLOCKREQ: no transaction id")
    }
}

/// TC of the victim to the TC of the initiator: the victim is no longer part of the circle.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeadlockConf {
    /// The transaction whose probe found the circle.
    pub initiator: TransId,
}
const _: () = assert!(size_of::<DeadlockConf>() == 8);

impl Body for DeadlockConf {
    const NUMBER: SignalNumber = SignalNumber::DeadlockConf;
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        (self.initiator == TransId::NONE).then_some("DEADLOCKCONF: no transaction id")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Signal, push_signal};
    use crate::keyop::NO_OPERATION;

    fn probe() -> DeadlockProbe {
        DeadlockProbe {
            initiator: TransId(1),
            target: TransId(2),
            victim: TransId(3),
            victim_tc: BlockRef::new(NodeId(2), BlockNumber::Dbtc, 1),
            victim_tc_op: 4,
            victim_age_ms: 5,
            number: 6,
            op: 7,
            tc_op: NO_OPERATION,
            budget: 9,
            elsewhere: 1,
        }
    }

    fn parsed(body: &DeadlockProbe) -> Result<DeadlockProbe, &'static str> {
        if let Some(reason) = body.invalid() {
            return Err(reason);
        }
        let mut frame = Vec::new();
        push_signal(&mut frame, BlockRef(1), BlockRef(2), body, &[], &[]);
        let (_, signal) = Signal::parse(&frame).map_err(|e| e.0)?;
        let Signal::DeadlockProbe(view) = signal else { panic!("another signal") };
        Ok(view.body)
    }

    #[test]
    fn a_probe_comes_back_as_it_was_sent_and_impossible_ones_are_refused() {
        assert_eq!(parsed(&probe()), Ok(probe()));
        for bad in [
            DeadlockProbe { initiator: TransId::NONE, ..probe() },
            DeadlockProbe { target: TransId::NONE, ..probe() },
            DeadlockProbe { victim: TransId::NONE, ..probe() },
            DeadlockProbe { victim_tc: BlockRef::new(NodeId(2), BlockNumber::Dblqh, 1), ..probe() },
            DeadlockProbe { victim_tc: BlockRef::NONE, ..probe() },
            DeadlockProbe { elsewhere: 2, ..probe() },
            DeadlockProbe { budget: PROBE_BUDGET + 1, ..probe() },
        ] {
            assert!(parsed(&bad).is_err(), "{bad:?}");
        }
        assert!(WaitForRep { trans: TransId::NONE, tc_op: 1, op: 1 }.invalid().is_some());
        let order = |trans, initiator| DeadlockReq { trans, initiator, tc_op: 1, spare: 0 };
        assert!(order(TransId::NONE, TransId(1)).invalid().is_some());
        assert!(order(TransId(1), TransId::NONE).invalid().is_some());
        assert!(DeadlockConf { initiator: TransId::NONE }.invalid().is_some());
    }

    #[test]
    fn branches_never_spend_more_than_the_budget() {
        for budget in 0..200 {
            for branches in 0..40 {
                let (allowed, share) = DeadlockProbe { budget, ..probe() }.shares(branches);
                assert!(allowed <= branches && allowed as u32 * (1 + share) <= budget);
                assert_eq!(allowed == 0, budget == 0 || branches == 0);
            }
        }
    }

    #[test]
    fn of_two_transactions_one_is_the_younger_whoever_is_asked_first() {
        let aged = |age_ms, id| DeadlockProbe { victim: TransId(id), victim_age_ms: age_ms, ..probe() };
        for (a, b) in [((5, 1), (4, 2)), ((5, 2), (5, 1)), ((0, 7), (9, 1))] {
            let first = aged(a.0, a.1).is_elder_than(b.0, TransId(b.1));
            let second = aged(b.0, b.1).is_elder_than(a.0, TransId(a.1));
            assert_ne!(first, second);
        }
    }
}
