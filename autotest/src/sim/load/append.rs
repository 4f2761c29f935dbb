//! Append: transactions that append unique numbers to lists and read them, under locks, and readers without
//! locks. What exactly is promised stands in [`crate::check::append`].
//!
//! A transaction is noted as failed when it begins, as unknown when its commit is asked for, and as committed
//! when that is acknowledged: a client that dies leaves its last one as what it is.

use super::{Client, Load, Local, column};
use crate::check::append::{self, Element, Op, Txn};
use crate::check::{Outcome, Time};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, OpId, Results, Row, ScanSpec, TableHandle, Transaction};
use signals::ErrorCode;
use signals::table::{ColumnStorage, ColumnType};
use std::cell::{Cell, RefCell};

const TABLE: &str = "append";
/// A list this long is only read.
const LENGTH_MAX: usize = 600;
const BYTES: usize = size_of::<Element>();

/// See the module.
pub(crate) struct Append {
    rows: u64,
    next: Cell<Element>,
    history: RefCell<Vec<Txn>>,
    /// A row that is not there.
    gone: RefCell<Option<String>>,
}

/// A transaction in the history.
#[derive(Clone, Copy)]
struct Noted(usize);

impl Append {
    pub(crate) fn new(rows: u64) -> Self {
        Self { rows: rows.max(1), next: Cell::new(1), history: RefCell::default(), gone: RefCell::default() }
    }

    fn begin(&self, at: &Client, locks: bool) -> Noted {
        let mut history = self.history.borrow_mut();
        let (client, begun) = (at.number, at.env.now());
        history.push(Txn { client, begun, outcome: Outcome::Failed, locks, ops: Vec::new() });
        Noted(history.len() - 1)
    }

    fn note(&self, txn: Noted, op: Op) {
        if let Some(txn) = self.history.borrow_mut().get_mut(txn.0) {
            txn.ops.push(op);
        }
    }

    fn settle(&self, txn: Noted, outcome: Outcome) {
        if let Some(txn) = self.history.borrow_mut().get_mut(txn.0) {
            txn.outcome = outcome;
        }
    }

    async fn commit(&self, at: &Client, tx: &mut Transaction, txn: Noted) -> Result<(), NdbError> {
        self.settle(txn, Outcome::Unknown);
        let result = tx.commit().await;
        let outcome = match &result {
            Ok(_) => Outcome::Ok(at.env.now()),
            Err(error) if error.unknown_outcome() => Outcome::Unknown,
            Err(_) => Outcome::Failed,
        };
        self.settle(txn, outcome);
        result.map(drop)
    }

    /// Takes a row's list from the results of a read and notes it.
    fn took(
        &self,
        at: &Client,
        txn: Noted,
        row: u64,
        called: Time,
        found: Option<Row<'_>>,
    ) -> Result<Vec<Element>, NdbError> {
        let list = match found {
            Some(found) => elements(found)?,
            None => {
                let text = format!("append: row {row} is not there for client {}", at.number as i64);
                self.gone.borrow_mut().get_or_insert(text);
                return Err(ErrorCode::TUPLE_NOT_FOUND.into());
            }
        };
        let answered = at.env.now();
        self.note(txn, Op::Read { row, list: list.clone(), called, answered });
        Ok(list)
    }

    /// All rows without locks: by a scan, or by reads in one round trip.
    async fn read_all(&self, at: &Client, table: &TableHandle, by_scan: bool) -> Result<(), NdbError> {
        let txn = self.begin(at, false);
        let called = at.env.now();
        let mut seen = 0;
        if by_scan {
            let mut scan = at.connection.begin().scan(ScanSpec::new(table)).await?;
            while let Some(batch) = scan.next().await? {
                for found in batch.rows() {
                    let row = found.get_u64("id")?.unwrap_or(u64::MAX);
                    self.took(at, txn, row, called, Some(found))?;
                    seen += 1;
                }
            }
        } else {
            let mut tx = at.connection.begin();
            let mut reads = Vec::new();
            for row in 0..self.rows {
                reads.push((row, tx.read(table).key(&[row.into()]).finish()?));
            }
            let results = tx.commit().await?;
            for (row, read) in reads {
                self.took(at, txn, row, called, results.row(read)?)?;
                seen += 1;
            }
        }
        if seen != self.rows {
            let text = format!("append: a scan found {seen} rows of {}", self.rows);
            self.gone.borrow_mut().get_or_insert(text);
        }
        self.settle(txn, Outcome::Ok(at.env.now()));
        Ok(())
    }

    /// Reads some rows under shared locks, all at the same time.
    async fn read_some(&self, at: &Client, table: &TableHandle, rng: &mut Rng) -> Result<(), NdbError> {
        let txn = self.begin(at, true);
        let mut tx = at.connection.begin();
        let rows = self.choose(rng);
        let one_by_one = rng.chance(500);
        let called = at.env.now();
        let mut reads: Vec<(u64, OpId)> = Vec::new();
        for row in &rows {
            let called = at.env.now();
            let read = tx.read_shared(table).key(&[(*row).into()]).finish()?;
            if one_by_one {
                let results = tx.execute().await?;
                self.took(at, txn, *row, called, results.row(read)?)?;
            } else {
                reads.push((*row, read));
            }
        }
        if !one_by_one {
            let results = tx.execute().await?;
            for (row, read) in reads {
                self.took(at, txn, row, called, results.row(read)?)?;
            }
        }
        self.commit(at, &mut tx, txn).await
    }

    fn choose(&self, rng: &mut Rng) -> Vec<u64> {
        let count = rng.range(1..=4).min(self.rows);
        let mut rows = Vec::new();
        for _ in 0..count {
            let row = rng.below(self.rows);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }

    /// One to four operations, appends or reads, in one transaction.
    async fn transact(&self, at: &Client, table: &TableHandle, rng: &mut Rng) -> Result<(), NdbError> {
        let txn = self.begin(at, true);
        let mut tx = at.connection.begin();
        let rows = self.choose(rng);
        if rng.chance(400) {
            // All reads in one round trip, all writes in the next, with the commit.
            let called = at.env.now();
            let mut reads = Vec::new();
            for row in &rows {
                reads.push((*row, tx.read_exclusive(table).key(&[(*row).into()]).finish()?));
            }
            let results = tx.execute().await?;
            for (row, read) in reads {
                let list = self.took(at, txn, row, called, results.row(read)?)?;
                if rng.chance(800) {
                    self.append(&mut tx, txn, table, row, list)?;
                }
            }
        } else {
            for row in rows {
                self.step(at, &mut tx, txn, table, row, rng).await?;
            }
        }
        if rng.chance(30) {
            return tx.abort().await;
        }
        self.commit(at, &mut tx, txn).await
    }

    async fn step(
        &self,
        at: &Client,
        tx: &mut Transaction,
        txn: Noted,
        table: &TableHandle,
        row: u64,
        rng: &mut Rng,
    ) -> Result<(), NdbError> {
        let called = at.env.now();
        let appends = rng.chance(700);
        let read = if appends { tx.read_exclusive(table) } else { tx.read_shared(table) };
        let read = read.key(&[row.into()]).finish()?;
        let results: Results = tx.execute().await?;
        let mut list = self.took(at, txn, row, called, results.row(read)?)?;
        if !appends {
            return Ok(());
        }
        list = self.append(tx, txn, table, row, list)?;
        if rng.chance(150) {
            // Twice to one row.
            tx.execute().await?;
            self.append(tx, txn, table, row, list)?;
        }
        Ok(())
    }

    /// Stages an append to a list that was read under an exclusive lock.
    fn append(
        &self,
        tx: &mut Transaction,
        txn: Noted,
        table: &TableHandle,
        row: u64,
        mut list: Vec<Element>,
    ) -> Result<Vec<Element>, NdbError> {
        if list.len() >= LENGTH_MAX {
            return Ok(list);
        }
        let element = self.next.get();
        self.next.set(element + 1);
        self.note(txn, Op::Append { row, element });
        list.push(element);
        tx.update(table).key(&[row.into()]).set("list", &bytes(&list)[..]).finish()?;
        Ok(list)
    }
}

fn elements(row: Row<'_>) -> Result<Vec<Element>, NdbError> {
    let bytes = row.get_bytes("list")?.unwrap_or_default();
    Ok(bytes.as_chunks::<BYTES>().0.iter().map(|chunk| Element::from_le_bytes(*chunk)).collect())
}

fn bytes(list: &[Element]) -> Vec<u8> {
    list.iter().flat_map(|element| element.to_le_bytes()).collect()
}

impl Load for Append {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        Box::pin(async move {
            let columns = vec![
                column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
                column(
                    "list",
                    ColumnType::Binary,
                    ColumnStorage::Var { max_len: ((LENGTH_MAX + 1) * BYTES) as u16 },
                ),
            ];
            let table = at.create(TABLE, columns).await?;
            for row in 0..self.rows {
                let mut tx = at.connection.begin();
                // An insert, not a write: one of unknown outcome that comes late must not empty the list.
                tx.insert(&table).key(&[row.into()]).set("list", &[0u8; 0][..]).finish()?;
                match tx.commit().await {
                    Err(error) if error.code() != ErrorCode::TUPLE_EXISTS => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            let Ok(table) = at.table(TABLE).await else { return };
            // What fails, fails by right, or shows in the history.
            let _ = match rng.below(100) {
                0..5 => self.read_all(at, &table, true).await,
                5..12 => self.read_all(at, &table, false).await,
                12..32 => self.read_some(at, &table, rng).await,
                _ => self.transact(at, &table, rng).await,
            };
        })
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(text) = self.gone.borrow().clone() {
            return Err(text);
        }
        append::check(&self.history.borrow()).map_err(|text| format!("append: {text}"))
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            let table = at.table(TABLE).await?;
            self.read_all(at, &table, true).await?;
            for row in 0..self.rows {
                let txn = self.begin(at, true);
                let called = at.env.now();
                let mut tx = at.connection.begin();
                let read = tx.read_shared(&table).key(&[row.into()]).finish()?;
                let results = tx.execute().await?;
                self.took(at, txn, row, called, results.row(read)?)?;
                self.commit(at, &mut tx, txn).await?;
            }
            Ok(self.judge())
        })
    }

    fn forget(&self) {
        self.history.borrow_mut().clear();
        self.gone.borrow_mut().take();
    }
}
