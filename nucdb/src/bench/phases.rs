//! One thread of flexAsynch: a session, and how it runs a phase with its transactions in flight.
//!
//! Rounds are not waited for one by one: a transaction that ends makes room for the next one at once, so
//! the number in flight stays at `-p` until the phase runs dry.

use super::BenchError;
use super::contents::{Version, fill, mismatch};
use super::flexasynch::Options;
use ndbapi::core::{CommitMode, Completion};
use ndbapi::poll::Session;
use ndbapi::{Batch, NdbError, OpId, TableHandle, Template, Value};
use signals::ErrorCode;
use signals::keyop::Operation;
use std::time::{Duration, Instant};

/// A transaction is tried so often before its error counts.
const TRIES_MAX: u32 = 1_000;
/// A phase in which nothing ends for so long is given up.
const STUCK: Duration = Duration::from_secs(60);

/// What a phase does to every row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Insert,
    Update,
    Read,
    Delete,
}

impl Phase {
    /// In the order they are run.
    pub(super) const ALL: [Self; 4] = [Self::Insert, Self::Update, Self::Read, Self::Delete];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Read => "read",
            Self::Delete => "delete",
        }
    }

    fn version(self, turn: u32) -> Version {
        match self {
            Self::Insert => Version::Inserted(turn),
            Self::Update | Self::Read | Self::Delete => Version::Updated(turn),
        }
    }
}

/// What came of a phase.
#[derive(Default)]
pub(super) struct Tally {
    /// Operations that succeeded.
    pub(super) done: u64,
    /// Transactions tried again.
    pub(super) retries: u64,
    /// Transactions that failed for good.
    pub(super) errors: u64,
    /// Rows that were wrong or missing.
    pub(super) wrong: u64,
    /// The first thing that went wrong.
    pub(super) first: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.done += other.done;
        self.retries += other.retries;
        self.errors += other.errors;
        self.wrong += other.wrong;
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    pub(super) fn remarks(&self) -> String {
        let counts = [(self.retries, "retries"), (self.errors, "errors"), (self.wrong, "wrong")];
        counts.iter().filter(|c| c.0 > 0).map(|(n, what)| format!(", {n} {what}")).collect()
    }

    #[cold]
    fn fault(&mut self, text: String) {
        self.first.get_or_insert(text);
    }
}

/// One place for a transaction in flight.
#[derive(Clone, Copy, Default)]
struct Slot {
    first_key: u32,
    tries: u32,
    /// An earlier try's outcome is unknown: its effect may be there already.
    unsure: bool,
}

/// See the module.
pub(super) struct Worker {
    session: Session,
    templates: [Template; 4],
    slots: Vec<Slot>,
    operations: u32,
    transactions: u32,
    first_key: u32,
    attributes: u16,
    scratch: Vec<u8>,
    values: Vec<u8>,
}

impl Worker {
    pub(super) fn new(
        session: Session,
        table: &TableHandle,
        options: &Options,
        thread: u32,
    ) -> Result<Self, BenchError> {
        let all: Vec<u16> = (0..options.attributes).collect();
        let transactions = options.parallelism * options.rounds;
        let width = usize::from(options.size) * 4;
        Ok(Self {
            session,
            templates: [
                Template::new(table, Operation::Insert, &all[1..])?,
                Template::new(table, Operation::Update, &all[1..])?,
                Template::new(table, Operation::ReadCommitted, &all)?,
                Template::new::<u16>(table, Operation::Delete, &[])?,
            ],
            slots: vec![Slot::default(); options.parallelism as usize],
            operations: options.operations,
            transactions,
            first_key: thread * transactions * options.operations,
            attributes: options.attributes,
            scratch: vec![0; width],
            values: vec![0; width * usize::from(options.attributes - 1)],
        })
    }

    /// Runs a phase to its end.
    pub(super) fn run(&mut self, phase: Phase, turn: u32) -> Tally {
        let mut tally = Tally::default();
        let mut next = 0;
        let mut in_flight = 0u32;
        for slot in 0..self.slots.len().min(self.transactions as usize) {
            self.start(phase, turn, slot, next);
            next += 1;
            in_flight += 1;
        }
        let mut last_news = Instant::now();
        while in_flight > 0 {
            self.session.send();
            self.session.poll(Duration::from_millis(100));
            let mut news = false;
            while let Some(completion) = self.session.next_completion() {
                let Completion::Executed { tag, batch, result } = completion else { continue };
                news = true;
                let slot = tag as usize;
                if let Some(again) = self.ended(phase, turn, slot, batch, result.err(), &mut tally) {
                    self.session.execute(None, again, CommitMode::Commit, tag);
                } else if next < self.transactions {
                    self.start(phase, turn, slot, next);
                    next += 1;
                } else {
                    in_flight -= 1;
                }
            }
            if news {
                last_news = Instant::now();
            } else if last_news.elapsed() > STUCK {
                tally.errors += u64::from(in_flight);
                tally.fault(format!("{in_flight} transactions have had no answer for {STUCK:?}"));
                break;
            }
        }
        tally
    }

    /// Puts transaction `number` in.
    #[inline]
    fn start(&mut self, phase: Phase, turn: u32, slot: usize, number: u32) {
        let first_key = self.first_key + number * self.operations;
        self.slots[slot] = Slot { first_key, tries: 0, unsure: false };
        let mut batch = self.session.batch();
        for key in first_key..first_key + self.operations {
            // The values come from the table's own definition; they fit.
            let pushed = self.push(&mut batch, phase, turn, key);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
        }
        self.session.execute(None, batch, CommitMode::Commit, slot as u64);
    }

    #[inline]
    fn push(&mut self, batch: &mut Batch, phase: Phase, turn: u32, key: u32) -> Result<OpId, NdbError> {
        let template = &self.templates[phase as usize];
        if matches!(phase, Phase::Read | Phase::Delete) {
            return batch.push(template, &[key.into()], &[]);
        }
        let width = self.scratch.len();
        let version = phase.version(turn);
        for (i, value) in self.values.chunks_exact_mut(width).enumerate() {
            fill(value, key, version, i as u16 + 1);
        }
        let mut values = [Value::Null; signals::table::MAX_COLUMNS];
        let count = usize::from(self.attributes - 1);
        for (value, bytes) in values.iter_mut().zip(self.values.chunks_exact(width)) {
            *value = Value::Bytes(bytes);
        }
        batch.push(template, &[key.into()], &values[..count])
    }

    /// A transaction has ended. Gives its batch back if it is to be tried again.
    #[inline]
    fn ended(
        &mut self,
        phase: Phase,
        turn: u32,
        slot: usize,
        batch: Box<Batch>,
        error: Option<NdbError>,
        tally: &mut Tally,
    ) -> Option<Box<Batch>> {
        let failure = match error {
            Some(error) => Some(error),
            None if phase == Phase::Read => self.check(&batch, turn, slot, tally).err(),
            None => None,
        };
        match failure {
            None => {
                tally.done += u64::from(self.operations);
                self.session.recycle(batch);
                None
            }
            Some(error) => self.failed(phase, slot, batch, &error, tally),
        }
    }

    #[cold]
    fn failed(
        &mut self,
        phase: Phase,
        slot: usize,
        mut batch: Box<Batch>,
        error: &NdbError,
        tally: &mut Tally,
    ) -> Option<Box<Batch>> {
        let state = &mut self.slots[slot];
        let done_before = state.unsure
            && match phase {
                Phase::Insert => error.code() == ErrorCode::TUPLE_EXISTS,
                Phase::Delete => error.not_found(),
                Phase::Update | Phase::Read => false,
            };
        if done_before {
            tally.done += u64::from(self.operations);
            self.session.recycle(batch);
            return None;
        }
        state.tries += 1;
        state.unsure |= error.unknown_outcome();
        if (error.retryable() || error.unknown_outcome()) && state.tries < TRIES_MAX {
            tally.retries += 1;
            batch.rewind();
            return Some(batch);
        }
        tally.errors += 1;
        tally.fault(format!("{} of row {}: {error}", phase.name(), state.first_key));
        self.session.recycle(batch);
        None
    }

    /// Compares rows with what they must contain. An error is a read's that may be tried again.
    #[inline]
    fn check(&mut self, batch: &Batch, turn: u32, slot: usize, tally: &mut Tally) -> Result<(), NdbError> {
        let first_key = self.slots[slot].first_key;
        for i in 0..self.operations {
            let key = first_key + i;
            let wrong = match batch.row(OpId(i))? {
                Some(row) => mismatch(&row, key, Phase::Read.version(turn), &mut self.scratch),
                None => Some(format!("row {key} is missing")),
            };
            if let Some(text) = wrong {
                tally.wrong += 1;
                tally.fault(text);
            }
        }
        Ok(())
    }
}
