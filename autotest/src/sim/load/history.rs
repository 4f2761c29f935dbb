//! History: what clients did to things with a name, and whether what somebody sees of one can be.
//!
//! A thing (a row, a table, a database) has a value or is not there. An attempt changes some of them; it is
//! *open* until its change is asked for, then *asked*, and ends as *done*, *failed* or *unknown*. The history
//! keeps every attempt of a round with the moments it was asked for and answered, and judges sightings:
//!
//! * A value of an attempt that is open or has failed is never seen.
//! * A value is not seen any more once another attempt, asked for after the first was answered, has been
//!   answered as done before the look began. An unknown attempt may take effect at any time, so nothing
//!   outdates it.
//! * What has been seen never fails. But until it is answered, one replica may show it and another not; only
//!   when all is quiet does what was seen count as done.
//!
//! Moments are counted, not measured, so that no two are the same. That a change is seen in the order a
//! single copy would allow is not judged here.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// A moment.
pub(super) type Moment = u64;

/// An attempt of a [`History`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct AttemptId(usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Open,
    /// With the moment it was asked for; a client that died leaves it so.
    Asked(Moment),
    Done {
        asked: Moment,
        answered: Moment,
    },
    Failed,
    Unknown(Moment),
}

impl Outcome {
    /// When it may have begun to be seen, if it may be seen.
    fn asked(self) -> Option<Moment> {
        match self {
            Self::Open | Self::Failed => None,
            Self::Asked(asked) | Self::Unknown(asked) | Self::Done { asked, .. } => Some(asked),
        }
    }

    /// When it was answered as done.
    fn answered(self) -> Option<Moment> {
        match self {
            Self::Done { answered, .. } => Some(answered),
            Self::Open | Self::Failed | Self::Asked(_) | Self::Unknown(_) => None,
        }
    }
}

struct Attempt {
    outcome: Outcome,
    /// A value of it was.
    seen: bool,
    /// All of its changes take effect, or none.
    whole: bool,
}

/// See the module.
pub(super) struct History<K, V> {
    now: Moment,
    attempts: Vec<Attempt>,
    changes: BTreeMap<K, Vec<(AttemptId, Option<V>)>>,
}

impl<K, V> Default for History<K, V> {
    fn default() -> Self {
        Self { now: 0, attempts: Vec::new(), changes: BTreeMap::new() }
    }
}

impl<K: Ord + Clone + Debug, V: PartialEq + Debug> History<K, V> {
    /// This moment; the next is later.
    pub(super) fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// An attempt begins.
    pub(super) fn begin(&mut self) -> AttemptId {
        self.attempts.push(Attempt { outcome: Outcome::Open, seen: false, whole: true });
        AttemptId(self.attempts.len() - 1)
    }

    /// The attempt's changes are asked for. Not `whole`: any of them may have been refused by itself.
    pub(super) fn ask(
        &mut self,
        id: AttemptId,
        whole: bool,
        changes: impl IntoIterator<Item = (K, Option<V>)>,
    ) {
        let asked = self.moment();
        self.attempts[id.0] = Attempt { outcome: Outcome::Asked(asked), seen: false, whole };
        for (key, value) in changes {
            self.changes.entry(key).or_default().push((id, value));
        }
    }

    /// It was answered as done; these of its changes were refused.
    pub(super) fn done(&mut self, id: AttemptId, refused: &[K]) {
        let answered = self.moment();
        for key in refused {
            if let Some(changes) = self.changes.get_mut(key) {
                changes.retain(|(attempt, _)| *attempt != id);
            }
        }
        let attempt = &mut self.attempts[id.0];
        if let Some(asked) = attempt.outcome.asked() {
            attempt.outcome = Outcome::Done { asked, answered };
        }
    }

    /// It has failed for sure.
    ///
    /// # Errors
    /// Its effect was seen.
    pub(super) fn failed(&mut self, id: AttemptId) -> Result<(), String> {
        let seen = self.attempts[id.0].seen;
        self.attempts[id.0].outcome = Outcome::Failed;
        if seen { Err("what has failed was seen before".into()) } else { Ok(()) }
    }

    /// All is quiet: what was seen is done.
    pub(super) fn settle(&mut self) {
        let answered = self.moment();
        for attempt in self.attempts.iter_mut().filter(|a| a.seen && a.whole) {
            if let Outcome::Asked(asked) | Outcome::Unknown(asked) = attempt.outcome {
                attempt.outcome = Outcome::Done { asked, answered };
            }
        }
    }

    /// Nobody knows.
    pub(super) fn unknown(&mut self, id: AttemptId) {
        if let Outcome::Asked(asked) = self.attempts[id.0].outcome {
            self.attempts[id.0].outcome = Outcome::Unknown(asked);
        }
    }

    /// Judges a sighting of `key`'s value by a look that began at `from` and has just ended.
    ///
    /// # Errors
    /// It cannot be.
    pub(super) fn see(&mut self, key: &K, seen: Option<&V>, from: Moment) -> Result<(), String> {
        let current = self.current(key, from);
        let by = current.iter().find(|(_, value)| *value == seen).map(|(id, _)| *id);
        match by {
            None => Err(format!("{key:?} is seen as {seen:?}: {}", self.reason(key, seen))),
            Some(by) => {
                // A value is one attempt's alone; that something is not there may be several's.
                if let Some(id) = by.filter(|_| seen.is_some()) {
                    self.attempts[id.0].seen = true;
                }
                Ok(())
            }
        }
    }

    /// Judges that `key` had some value at a moment since `from`.
    ///
    /// # Errors
    /// It cannot have had any.
    pub(super) fn see_some(&self, key: &K, from: Moment) -> Result<(), String> {
        if self.current(key, from).iter().any(|(_, value)| value.is_some()) {
            return Ok(());
        }
        Err(format!("{key:?} is said to be there and cannot be; {}", self.tail(key)))
    }

    /// What a look that began at `from` may see, and whose it is.
    fn current(&self, key: &K, from: Moment) -> Vec<(Option<AttemptId>, Option<&V>)> {
        let changes = self.changes.get(key).map_or(&[][..], Vec::as_slice);
        let outcome = |id: AttemptId| self.attempts[id.0].outcome;
        // Whoever was answered before the last that is done for sure was asked for is outdated.
        let sure = changes.iter().filter_map(|(id, _)| match outcome(*id) {
            Outcome::Done { asked, answered } if answered < from => Some(asked),
            Outcome::Done { .. }
            | Outcome::Open
            | Outcome::Asked(_)
            | Outcome::Failed
            | Outcome::Unknown(_) => None,
        });
        let floor = sure.max().unwrap_or_default();
        let is_current = |id: AttemptId| {
            outcome(id).asked().is_some() && outcome(id).answered().is_none_or(|answered| answered >= floor)
        };
        let beginning = (floor == 0).then_some((None, None));
        let made = changes.iter().filter(|(id, _)| is_current(*id)).map(|(id, v)| (Some(*id), v.as_ref()));
        beginning.into_iter().chain(made).collect()
    }

    fn reason(&self, key: &K, seen: Option<&V>) -> String {
        let changes = self.changes.get(key).map_or(&[][..], Vec::as_slice);
        let reason = match changes.iter().rev().find(|(_, value)| value.as_ref() == seen) {
            None => "nobody made it so",
            Some((id, _)) if self.attempts[id.0].outcome.asked().is_none() => "who made it so has failed",
            Some(_) => "it was changed since, for sure",
        };
        format!("{reason}; {}", self.tail(key))
    }

    /// The last changes of a key, for the text of a failure.
    fn tail(&self, key: &K) -> String {
        let changes = self.changes.get(key).map_or(&[][..], Vec::as_slice);
        let last = &changes[changes.len().saturating_sub(5)..];
        let texts: Vec<String> =
            last.iter().map(|(id, v)| format!("{v:?} {:?}", self.attempts[id.0].outcome)).collect();
        format!("the last of {} changes: {}", changes.len(), texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(history: &mut History<u8, u8>, value: Option<u8>) -> AttemptId {
        let id = history.begin();
        history.ask(id, true, [(1, value)]);
        id
    }

    #[test]
    fn what_was_acknowledged_is_seen_and_nothing_older() {
        let mut h = History::default();
        let first = change(&mut h, Some(7));
        h.done(first, &[]);
        let from = h.moment();
        assert!(h.see(&1, Some(&7), from).is_ok());
        assert!(h.see(&1, None, from).is_err(), "an acknowledged change is missing");
        let second = change(&mut h, None);
        assert!(h.see(&1, Some(&7), from).is_ok() && h.see(&1, None, from).is_ok(), "either, meanwhile");
        h.done(second, &[]);
        assert!(h.see(&1, Some(&7), from).is_ok(), "the look began before");
        let from = h.moment();
        assert!(h.see(&1, Some(&7), from).is_err() && h.see(&1, None, from).is_ok());
        assert!(h.see(&1, Some(&9), from).is_err(), "from nowhere");
    }

    #[test]
    fn what_failed_is_never_seen_and_what_is_unknown_may_be() {
        let mut h = History::default();
        let first = change(&mut h, Some(1));
        assert!(h.failed(first).is_ok());
        let from = h.moment();
        assert!(h.see(&1, Some(&1), from).is_err() && h.see(&1, None, from).is_ok());
        let second = change(&mut h, Some(2));
        h.unknown(second);
        let from = h.moment();
        assert!(h.see(&1, None, from).is_ok(), "it may not have happened");
        assert!(h.see(&1, Some(&2), from).is_ok(), "it may have");
        assert!(h.see(&1, None, from).is_ok(), "another replica may not have it yet");
        h.settle();
        let from = h.moment();
        assert!(h.see(&1, None, from).is_err(), "it was seen and all is quiet");
        let third = change(&mut h, Some(3));
        let from = h.moment();
        assert!(h.see(&1, Some(&3), from).is_ok());
        assert!(h.failed(third).is_err(), "it was seen");
    }

    #[test]
    fn a_refused_part_is_not_there() {
        let mut h: History<u8, u8> = History::default();
        let id = h.begin();
        h.ask(id, false, [(1, Some(1)), (2, Some(2))]);
        h.done(id, &[2]);
        let from = h.moment();
        assert!(h.see(&1, None, from).is_err() && h.see(&2, None, from).is_ok());
        assert!(h.see(&2, Some(&2), from).is_err());
    }
}
