//! Register: rows as registers - read, changed under locks and blindly, made and removed - whose histories
//! must be linearizable. What exactly is promised stands in [`crate::check::linear`].
//!
//! Every tag written is a new one, so a tag read tells which write it is from. A tag is noted as failed when
//! it is taken, as unknown when its commit is asked for, and as committed when that is acknowledged: a client
//! that dies leaves its last write as what it is. A row's second column follows from the first, so that a row
//! put together of two writes shows.

use super::{Client, Load, Local, column};
use crate::check::linear::{self, Action, Op, Tag};
use crate::check::{Outcome, Time};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, Row, ScanSpec, TableHandle, Transaction};
use signals::ErrorCode;
use signals::keyop::Operation;
use signals::table::{ColumnStorage, ColumnType};
use std::cell::{Cell, RefCell};

const TABLE: &str = "register";
const TWIN_MAX: u64 = 60;

/// See the module.
pub(crate) struct Register {
    rows: u64,
    next: Cell<Tag>,
    history: RefCell<Vec<Op>>,
    /// Rows that contradict themselves.
    torn: RefCell<Option<String>>,
}

/// A write in the history.
#[derive(Clone, Copy)]
struct Noted(usize);

impl Register {
    pub(crate) fn new(rows: u64) -> Self {
        Self { rows: rows.max(1), next: Cell::new(1), history: RefCell::default(), torn: RefCell::default() }
    }

    fn tag(&self) -> Tag {
        let tag = self.next.get();
        self.next.set(tag + 1);
        tag
    }

    fn note(&self, at: &Client, row: u64, called: Time, outcome: Outcome, action: Action) -> Noted {
        let mut history = self.history.borrow_mut();
        history.push(Op { row, client: at.number, called, outcome, action });
        Noted(history.len() - 1)
    }

    /// Something seen, now.
    fn saw(&self, at: &Client, row: u64, called: Time, action: Action) {
        self.note(at, row, called, Outcome::Ok(at.env.now()), action);
    }

    fn settle(&self, write: Noted, outcome: Outcome) {
        if let Some(op) = self.history.borrow_mut().get_mut(write.0) {
            op.outcome = outcome;
        }
    }

    fn value(&self, row: u64, read: Option<Row<'_>>) -> Result<Option<Tag>, NdbError> {
        let Some(read) = read else { return Ok(None) };
        let tag = read.get_u64("tag")?.unwrap_or_default();
        if read.get_bytes("twin")? != Some(&twin(tag)[..]) {
            let text = format!("register: row {row} has tag {tag} and the twin of another");
            self.torn.borrow_mut().get_or_insert(text);
        }
        Ok(Some(tag))
    }

    /// Commits what was staged last, a write noted as `write`.
    async fn commit(&self, at: &Client, tx: &mut Transaction, write: Noted) -> Result<(), NdbError> {
        self.settle(write, Outcome::Unknown);
        let result = tx.commit().await;
        let outcome = match &result {
            Ok(_) => Outcome::Ok(at.env.now()),
            Err(error) if error.unknown_outcome() => Outcome::Unknown,
            Err(_) => Outcome::Failed,
        };
        self.settle(write, outcome);
        result.map(drop)
    }

    async fn free_read(&self, at: &Client, table: &TableHandle, row: u64) -> Result<(), NdbError> {
        let called = at.env.now();
        let mut tx = at.connection.begin();
        let op = tx.read(table).key(&[row.into()]).finish()?;
        let results = tx.commit().await?;
        let value = self.value(row, results.row(op)?)?;
        self.saw(at, row, called, Action::FreeRead(value));
        Ok(())
    }

    /// Reads all rows without locks.
    async fn scan(&self, at: &Client, table: &TableHandle) -> Result<(), NdbError> {
        let called = at.env.now();
        let mut scan = at.connection.begin().scan(ScanSpec::new(table)).await?;
        let mut found = Vec::new();
        while let Some(batch) = scan.next().await? {
            for read in batch.rows() {
                let row = read.get_u64("id")?.unwrap_or(u64::MAX);
                found.push((row, self.value(row, Some(read))?));
            }
        }
        for row in 0..self.rows {
            if !found.iter().any(|(r, _)| *r == row) {
                found.push((row, None));
            }
        }
        for (row, value) in found {
            self.saw(at, row, called, Action::FreeRead(value));
        }
        Ok(())
    }

    async fn locked_read(
        &self,
        at: &Client,
        table: &TableHandle,
        row: u64,
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let called = at.env.now();
        let lock = if rng.chance(600) { Operation::ReadShared } else { Operation::ReadExclusive };
        let mut tx = at.connection.begin();
        let op = tx.operation(table, lock).key(&[row.into()]).finish()?;
        let lone = rng.chance(500);
        let results = if lone { tx.commit().await? } else { tx.execute().await? };
        let value = self.value(row, results.row(op)?)?;
        self.saw(at, row, called, Action::Read(value));
        if lone { Ok(()) } else { tx.commit().await.map(drop) }
    }

    /// Reads under an exclusive lock and changes what it read, or removes the row, or thinks better of it.
    async fn change(
        &self,
        at: &Client,
        table: &TableHandle,
        row: u64,
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let called = at.env.now();
        let mut tx = at.connection.begin();
        let op = tx.read_exclusive(table).key(&[row.into()]).finish()?;
        let value = {
            let results = tx.execute().await?;
            self.value(row, results.row(op)?)?
        };
        self.saw(at, row, called, Action::Read(value));
        let Some(from) = value else {
            tx.abort().await?;
            return self.insert(at, table, row, rng).await;
        };
        if rng.chance(300) {
            at.env.sleep(rng.below(20_000_000)).await;
        }
        // As a compare-and-set that finds another value than it hoped for.
        if rng.chance(150) {
            return if rng.chance(500) { tx.abort().await } else { tx.commit().await.map(drop) };
        }
        let called = at.env.now();
        let write = if rng.chance(100) {
            tx.delete(table).key(&[row.into()]).finish()?;
            self.note(at, row, called, Outcome::Failed, Action::Delete)
        } else {
            let to = self.tag();
            tx.update(table).key(&[row.into()]).set("tag", to).set("twin", &twin(to)[..]).finish()?;
            self.note(at, row, called, Outcome::Failed, Action::Swap { from, to })
        };
        if rng.chance(300) {
            tx.execute().await?;
        }
        if rng.chance(60) {
            return tx.abort().await;
        }
        self.commit(at, &mut tx, write).await
    }

    /// Changes a row it knows nothing about, in one round trip or several.
    async fn set(&self, at: &Client, table: &TableHandle, row: u64, rng: &mut Rng) -> Result<(), NdbError> {
        let to = self.tag();
        let mut tx = at.connection.begin();
        tx.update(table).key(&[row.into()]).set("tag", to).set("twin", &twin(to)[..]).finish()?;
        let absent = (ErrorCode::TUPLE_NOT_FOUND, Action::Read(None));
        self.blind(at, &mut tx, (row, Action::Set(to)), absent, rng).await
    }

    async fn delete(
        &self,
        at: &Client,
        table: &TableHandle,
        row: u64,
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let mut tx = at.connection.begin();
        tx.delete(table).key(&[row.into()]).finish()?;
        let absent = (ErrorCode::TUPLE_NOT_FOUND, Action::Read(None));
        self.blind(at, &mut tx, (row, Action::Delete), absent, rng).await
    }

    async fn insert(
        &self,
        at: &Client,
        table: &TableHandle,
        row: u64,
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let to = self.tag();
        let mut tx = at.connection.begin();
        tx.insert(table).key(&[row.into()]).set("tag", to).set("twin", &twin(to)[..]).finish()?;
        let present = (ErrorCode::TUPLE_EXISTS, Action::Present);
        self.blind(at, &mut tx, (row, Action::Insert(to)), present, rng).await
    }

    /// Executes a write that was staged; a refusal is an answer as well.
    async fn blind(
        &self,
        at: &Client,
        tx: &mut Transaction,
        (row, action): (u64, Action),
        (refusal, seen): (ErrorCode, Action),
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let called = at.env.now();
        let write = self.note(at, row, called, Outcome::Failed, action);
        let mut result = Ok(());
        if rng.chance(250) {
            result = tx.execute().await.map(drop);
            if result.is_ok() && rng.chance(150) {
                return tx.abort().await;
            }
        }
        if result.is_ok() {
            result = self.commit(at, tx, write).await;
        }
        if result.as_ref().is_err_and(|error| error.code() == refusal) {
            self.saw(at, row, called, seen);
        }
        result
    }
}

/// The second column of a tag.
fn twin(tag: Tag) -> Vec<u8> {
    (0..tag.wrapping_mul(7) % TWIN_MAX).map(|i| (tag.wrapping_mul(31) + i) as u8).collect()
}

impl Load for Register {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        // Rows begin absent: an insert here of unknown outcome could come late and look like a client's.
        Box::pin(async move {
            let columns = vec![
                column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
                column("tag", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
                column("twin", ColumnType::Binary, ColumnStorage::Var { max_len: TWIN_MAX as u16 }),
            ];
            at.create(TABLE, columns).await.map(drop)
        })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            let Ok(table) = at.table(TABLE).await else { return };
            let row = rng.below(self.rows);
            // What fails, fails by right, or shows in the history.
            let _ = match rng.below(100) {
                0..22 => self.free_read(at, &table, row).await,
                22..26 => self.scan(at, &table).await,
                26..42 => self.locked_read(at, &table, row, rng).await,
                42..76 => self.change(at, &table, row, rng).await,
                76..88 => self.set(at, &table, row, rng).await,
                88..95 => self.insert(at, &table, row, rng).await,
                _ => self.delete(at, &table, row, rng).await,
            };
        })
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(text) = self.torn.borrow().clone() {
            return Err(text);
        }
        linear::check(&self.history.borrow()).map_err(|text| format!("register: {text}"))
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            let table = at.table(TABLE).await?;
            self.scan(at, &table).await?;
            for row in 0..self.rows {
                let called = at.env.now();
                let mut tx = at.connection.begin();
                let op = tx.read_shared(&table).key(&[row.into()]).finish()?;
                let results = tx.commit().await?;
                self.saw(at, row, called, Action::Read(self.value(row, results.row(op)?)?));
                self.free_read(at, &table, row).await?;
            }
            Ok(self.judge())
        })
    }

    fn forget(&self) {
        self.history.borrow_mut().clear();
        self.torn.borrow_mut().take();
    }
}
