//! Agenda: what happens when, in virtual time.
//!
//! Entries of the same moment come out in the order they were put in, so the order never depends on
//! anything but the run itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time in nanoseconds.
pub(crate) type Nanos = u64;
pub(crate) const MICRO: Nanos = 1_000;
pub(crate) const MILLI: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

struct Entry<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// See the module.
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    next_number: u64,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { entries: BinaryHeap::new(), next_number: 0 }
    }

    /// Puts an event in.
    pub(crate) fn put(&mut self, at: Nanos, event: E) {
        self.entries.push(Reverse(Entry { at, number: self.next_number, event }));
        self.next_number += 1;
    }

    /// Takes the next one, if it is due by `until`.
    pub(crate) fn take(&mut self, until: Nanos) -> Option<(Nanos, E)> {
        if self.entries.peek().is_none_or(|Reverse(entry)| entry.at > until) {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}
