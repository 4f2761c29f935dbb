//! A transaction of the mixed load: steps, what it knows meanwhile, and its end.
//!
//! A row that was read under an exclusive lock, or changed, is *known*: until the end, or until a savepoint
//! before it is rolled back to, nobody else can change it, so every result about it can be foretold. The
//! results for other rows are judged by the history.

use super::scans;
use super::{Client, Content, Done, Mixed, Sets, Stop, count, rows};
use crate::sim::load::history::{AttemptId, Moment};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, OpId, Results, TableHandle, Transaction};
use signals::ErrorCode;
use signals::keyop::Operation;
use std::collections::{BTreeMap, BTreeSet};

/// What a transaction knows of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    pub(super) content: Option<Content>,
    changed: bool,
}

pub(super) type Known = BTreeMap<u32, Own>;

/// An operation sent, or to be sent.
struct Staged {
    op: OpId,
    operation: Operation,
    id: u32,
    /// What the row holds if it succeeds.
    after: Option<Content>,
    from: Moment,
}

/// Counts an attempt, whatever becomes of it.
struct Tally<'a> {
    load: &'a Mixed,
    attempt: AttemptId,
    ended: bool,
}

impl<'a> Tally<'a> {
    fn new(load: &'a Mixed) -> Self {
        count(&load.counts.begun);
        Self { load, attempt: load.history.borrow_mut().begin(), ended: false }
    }

    fn done(&mut self, refused: &[u32]) {
        self.ended = true;
        count(&self.load.counts.committed);
        self.load.history.borrow_mut().done(self.attempt, refused);
    }

    fn failed(&mut self) -> Done<()> {
        self.ended = true;
        count(&self.load.counts.failed);
        Ok(self.load.history.borrow_mut().failed(self.attempt)?)
    }

    fn unknown(&mut self) {
        self.ended = true;
        count(&self.load.counts.unknown);
        self.load.history.borrow_mut().unknown(self.attempt);
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        if !self.ended {
            count(&self.load.counts.orphaned);
        }
    }
}

/// See the module.
pub(super) struct Trans<'a> {
    load: &'a Mixed,
    at: &'a Client,
    table: TableHandle,
    tx: Transaction,
    known: Known,
    tally: Tally<'a>,
}

impl<'a> Trans<'a> {
    pub(super) fn new(load: &'a Mixed, at: &'a Client, table: TableHandle) -> Self {
        let tx = at.connection.begin();
        Self { load, at, table, tx, known: Known::new(), tally: Tally::new(load) }
    }

    /// One step, executed and judged. An attempt that fails here has failed.
    pub(super) async fn step(&mut self, rng: &mut Rng) -> Done<()> {
        let result = self.any_step(rng).await;
        if let Err(Stop::Failed(_)) = &result {
            self.tally.failed()?;
        }
        result
    }

    async fn any_step(&mut self, rng: &mut Rng) -> Done<()> {
        match rng.below(100) {
            0..45 => self.lock_and_change(rng).await,
            45..65 => self.change_blindly(rng).await,
            65..80 => self.read_own(rng).await,
            80..88 => {
                scans::scan(self.load, self.at, &mut self.tx, &self.table, Some(&self.known), rng).await
            }
            _ => self.change_and_take_back(rng).await,
        }
    }

    /// Reads a row under an exclusive lock, then changes it, in a way that must succeed or one that must
    /// fail.
    async fn lock_and_change(&mut self, rng: &mut Rng) -> Done<()> {
        let id = self.load.draw_row(rng);
        let from = self.load.moment();
        let read = self.tx.read_exclusive(&self.table).key(&[id.into()]).finish()?;
        let results = self.tx.execute().await?;
        let found = content(&results, id, read)?;
        match self.known.get(&id) {
            Some(own) if own.content == found => {}
            Some(own) => return Err(format!("row {id} is read as {found:?}, not {own:?}").into()),
            None => {
                self.load.see(id, found.as_ref(), from)?;
                if found.is_some() {
                    self.known.insert(id, Own { content: found, changed: false });
                }
            }
        }
        let operation = match (found.is_some(), rng.below(10)) {
            (true, 0) | (false, 0..6) => Operation::Insert,
            (true, 1..5) | (false, 6) => Operation::Update,
            (true, 5 | 6) | (false, 7) => Operation::Delete,
            (_, _) => Operation::Write,
        };
        let staged = self.stage(id, operation, true, rng)?;
        let results = self.tx.execute().await?;
        self.judge(&[staged], &results)
    }

    /// Several operations at once, on rows nothing is known of; some must fail.
    async fn change_blindly(&mut self, rng: &mut Rng) -> Done<()> {
        let staged = self.stage_some(rng, true)?;
        let results = self.tx.execute().await?;
        self.judge(&staged, &results)
    }

    /// Reads rows as the transaction sees them.
    async fn read_own(&mut self, rng: &mut Rng) -> Done<()> {
        let mut reads = Vec::new();
        let from = self.load.moment();
        for _ in 0..rng.log_range(1..=4) {
            let id = self.load.draw_row(rng);
            reads.push((id, self.tx.read(&self.table).key(&[id.into()]).finish()?));
        }
        let results = self.tx.execute().await?;
        for (id, read) in reads {
            let found = match content(&results, id, read) {
                Err(Stop::Failed(error)) => {
                    self.load.refused(self.at, id, error.code(), from)?;
                    continue;
                }
                other => other?,
            };
            match self.known.get(&id) {
                Some(own) if own.content == found => {}
                Some(own) => return Err(format!("row {id} is read as {found:?}, not {own:?}").into()),
                None => self.load.see(id, found.as_ref(), from)?,
            }
        }
        Ok(())
    }

    /// Changes rows and rolls back to the savepoint before.
    async fn change_and_take_back(&mut self, rng: &mut Rng) -> Done<()> {
        let savepoint = self.tx.savepoint().await?;
        let known = self.known.clone();
        for _ in 0..rng.range(1..=2) {
            if rng.chance(500) {
                Box::pin(self.lock_and_change(rng)).await?;
            } else {
                self.change_blindly(rng).await?;
            }
        }
        self.tx.rollback_to(savepoint).await?;
        self.known = known;
        Ok(())
    }

    /// Adds an operation. On a row that is known any columns may be set, on another all of them are.
    fn stage(&mut self, id: u32, operation: Operation, ignore: bool, rng: &mut Rng) -> Done<Staged> {
        let stamp = self.load.stamp();
        let own = self.known.get(&id).copied();
        let sets = match own {
            Some(_) if operation != Operation::Insert => Sets::some(stamp, rng),
            _ => Sets::all(stamp, rng),
        };
        let after = match operation {
            Operation::Delete => None,
            // The columns an insert does not set are NULL, whatever was there.
            Operation::Insert => Some(sets.after(None)),
            _ => Some(sets.after(own.and_then(|own| own.content).as_ref())),
        };
        let from = self.load.moment();
        let key = [id.into()];
        let mut builder = self.tx.operation(&self.table, operation).key(&key).ignore_error(ignore);
        if operation != Operation::Delete {
            builder = sets.put(builder);
        }
        if rng.chance(100) {
            builder = builder.nowait();
        }
        Ok(Staged { op: builder.finish()?, operation, id, after, from })
    }

    /// Adds operations on different rows that are not known.
    fn stage_some(&mut self, rng: &mut Rng, ignore: bool) -> Done<Vec<Staged>> {
        let most = if ignore { 8 } else { 3 };
        let mut staged = Vec::new();
        let mut ids: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..rng.log_range(1..=most) {
            let id = self.load.draw_row(rng);
            if self.known.contains_key(&id) || !ids.insert(id) {
                continue;
            }
            let operation =
                *rng.pick(&[Operation::Insert, Operation::Update, Operation::Delete, Operation::Write]);
            staged.push(self.stage(id, operation, ignore, rng)?);
        }
        Ok(staged)
    }

    /// Judges the results of operations whose errors were to be ignored, and knows their rows from now on.
    fn judge(&mut self, staged: &[Staged], results: &Results) -> Done<()> {
        for one in staged {
            let code = results.result(one.op).map_err(|error| error.code());
            self.judge_one(one, code)?;
            if code.is_ok() {
                self.known.insert(one.id, Own { content: one.after, changed: true });
            }
        }
        Ok(())
    }

    fn judge_one(&self, one: &Staged, result: Result<(), ErrorCode>) -> Done<()> {
        let Staged { operation, id, from, .. } = one;
        let missing = match (operation, result) {
            (Operation::Insert, Ok(())) | (_, Err(ErrorCode::TUPLE_NOT_FOUND)) => Some(true),
            (Operation::Update | Operation::Delete, Ok(())) | (_, Err(ErrorCode::TUPLE_EXISTS)) => {
                Some(false)
            }
            (_, Ok(())) => None,
            (_, Err(code)) => return self.load.refused(self.at, *id, code, *from),
        };
        let fits = match operation {
            Operation::Insert => result != Err(ErrorCode::TUPLE_NOT_FOUND),
            Operation::Write => result.is_ok(),
            _ => result != Err(ErrorCode::TUPLE_EXISTS),
        };
        if !fits {
            return Err(format!("{operation:?} of row {id} is answered with {result:?}").into());
        }
        let known = self.known.get(id).map(|own| own.content.is_none());
        match (known, missing) {
            (_, None) => Ok(()),
            (Some(known), Some(missing)) if known == missing => Ok(()),
            (Some(_), Some(_)) => {
                let own = self.known.get(id);
                Err(format!("{operation:?} of row {id}, known as {own:?}, is answered with {result:?}")
                    .into())
            }
            (None, Some(true)) => self.load.see(*id, None, *from),
            (None, Some(false)) => Ok(self.load.history.borrow().see_some(id, *from)?),
        }
    }

    /// Ends it: commits, rolls back, or lets it go.
    pub(super) async fn finish(mut self, rng: &mut Rng) -> Done<()> {
        match rng.below(20) {
            0 | 1 => {
                if rng.chance(300) {
                    self.stage_some(rng, false)?;
                }
                self.tally.failed()?;
                Ok(self.tx.abort().await?)
            }
            // Dropped: rolled back behind the scenes.
            2 => self.tally.failed(),
            _ => self.commit(rng).await,
        }
    }

    async fn commit(mut self, rng: &mut Rng) -> Done<()> {
        let alone = self.tx.id().is_none();
        let ignore = rng.chance(500);
        let staged = if alone || rng.chance(400) { self.stage_some(rng, ignore)? } else { Vec::new() };
        let changed = self.known.iter().filter(|(_, own)| own.changed).map(|(id, own)| (*id, own.content));
        let tentative = staged.iter().map(|one| (one.id, one.after));
        let whole = !ignore || staged.is_empty();
        let changes: Vec<_> = changed.chain(tentative).collect();
        self.load.history.borrow_mut().ask(self.tally.attempt, whole, changes);
        match self.tx.commit().await {
            Ok(results) => self.committed(&staged, &results),
            Err(error) if error.code() == ErrorCode::COMMITTED_READS_LOST => {
                Err(format!("a commit without reads is answered with {error}").into())
            }
            Err(error) if error.unknown_outcome() => {
                self.tally.unknown();
                Ok(())
            }
            Err(error) => {
                self.tally.failed()?;
                self.refused(&staged, whole && !staged.is_empty(), &error)
            }
        }
    }

    fn committed(&mut self, staged: &[Staged], results: &Results) -> Done<()> {
        let refused: Vec<u32> =
            staged.iter().filter(|one| results.result(one.op).is_err()).map(|one| one.id).collect();
        self.tally.done(&refused);
        for one in staged {
            let result = results.result(one.op).map_err(|error| error.code());
            if result.is_err() {
                self.judge_one(one, result)?;
            }
        }
        Ok(())
    }

    /// Judges why a commit failed. `strict`: any of the operations sent with it may be to blame.
    fn refused(&self, staged: &[Staged], strict: bool, error: &NdbError) -> Done<()> {
        let code = error.code();
        if self.load.fits(self.at, code) && (strict || code != ErrorCode::DATA_MEMORY_FULL) {
            return Ok(());
        }
        let to_blame = |one: &Staged| self.judge_one(one, Err(code)).is_ok();
        let by_row = matches!(code, ErrorCode::TUPLE_EXISTS | ErrorCode::TUPLE_NOT_FOUND);
        if strict && by_row && staged.iter().any(to_blame) {
            return Ok(());
        }
        Err(format!("a commit with {} operations fails with {error}", staged.len()).into())
    }
}

/// The row an operation has read.
fn content(results: &Results, id: u32, read: OpId) -> Done<Option<Content>> {
    match results.row(read)?.map(|row| rows::decode(&row)).transpose()? {
        None => Ok(None),
        Some((found, content)) if found == id => Ok(Some(content)),
        Some((found, _)) => Err(format!("row {found} is read where row {id} was asked for").into()),
    }
}
