//! Mixed: every kind of operation, by many clients at once, on the same few rows.
//!
//! Transactions insert, update, delete and write rows, roll back, roll back to savepoints, send many
//! operations at once of which some must fail, read and scan - all of the rows or some, to the end or not.
//! Each change is noted in a [`History`], by which everything that is read, every refusal and the final state
//! are judged. Every attempt ends as committed, failed with a code that fits, unknown, or with its client.
//!
//! ```text
//!   rows    what a row holds
//!   trans   a transaction: what it knows of the rows it has locked or changed
//!   scans   scans and their judgement
//! ```

mod rows;
mod scans;
mod trans;

use super::history::{History, Moment};
use super::{Client, Load, Local};
use crate::sim::rng::Rng;
use ndbapi::NdbError;
use rows::{Content, Sets};
use signals::{ErrorClass, ErrorCode};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use trans::Trans;

/// With less DataMemory than this, it may run out.
const PLENTY_BYTES: u64 = 32 << 20;

/// What ends an attempt early.
enum Stop {
    /// It failed.
    Failed(NdbError),
    /// Something was seen that cannot be.
    Wrong(String),
}

impl From<NdbError> for Stop {
    fn from(error: NdbError) -> Self {
        Self::Failed(error)
    }
}
impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

type Done<T> = Result<T, Stop>;

/// How attempts ended.
#[derive(Default, Debug)]
struct Counts {
    begun: Cell<u64>,
    committed: Cell<u64>,
    failed: Cell<u64>,
    unknown: Cell<u64>,
    /// Their client died.
    orphaned: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// See the module.
pub(crate) struct Mixed {
    rows: u32,
    history: RefCell<History<u32, Content>>,
    stamps: Cell<u64>,
    counts: Counts,
    wrong: RefCell<Option<String>>,
    /// A refusal that fits only if the table is gone.
    gone: RefCell<Option<String>>,
    /// The rows as the first client saw them at the end.
    last: RefCell<Option<BTreeMap<u32, Content>>>,
}

impl Mixed {
    pub(crate) fn new(rows: u64) -> Self {
        Self {
            rows: rows.max(4) as u32,
            history: RefCell::default(),
            stamps: Cell::new(0),
            counts: Counts::default(),
            wrong: RefCell::default(),
            gone: RefCell::default(),
            last: RefCell::default(),
        }
    }

    fn note(&self, text: String) {
        self.wrong.borrow_mut().get_or_insert(text);
    }

    fn stamp(&self) -> u64 {
        count(&self.stamps);
        self.stamps.get()
    }

    fn moment(&self) -> Moment {
        self.history.borrow_mut().moment()
    }

    /// A committed row was seen, or that there is none, by a look that began at `from`.
    fn see(&self, id: u32, content: Option<&Content>, from: Moment) -> Done<()> {
        Ok(self.history.borrow_mut().see(&id, content, from)?)
    }

    fn draw_row(&self, rng: &mut Rng) -> u32 {
        rng.below(u64::from(self.rows)) as u32
    }

    /// Whether an operation or an attempt may fail with a code, whatever the rows.
    fn fits(&self, at: &Client, code: ErrorCode) -> bool {
        match code.class() {
            ErrorClass::TemporaryResource
            | ErrorClass::NodeRecovery
            | ErrorClass::Overload
            | ErrorClass::TimeoutExpired
            | ErrorClass::NodeShutdown
            | ErrorClass::UnknownResult => true,
            ErrorClass::InsufficientSpace => at
                .connection
                .config()
                .is_none_or(|c| c.data_nodes.iter().any(|n| n.data_memory_bytes < PLENTY_BYTES)),
            ErrorClass::SchemaError => {
                self.gone.borrow_mut().get_or_insert_with(|| format!("{code}"));
                true
            }
            ErrorClass::NoDataFound
            | ErrorClass::ConstraintViolation
            | ErrorClass::SchemaObjectExists
            | ErrorClass::ApplicationError
            | ErrorClass::FunctionNotImplemented
            | ErrorClass::InternalError => code == ErrorCode::CLUSTER_SHUTDOWN,
        }
    }

    /// Judges the refusal of an operation on a row that the attempt had no lock on, at a moment since `from`.
    fn refused(&self, at: &Client, id: u32, code: ErrorCode, from: Moment) -> Done<()> {
        match code {
            ErrorCode::TUPLE_EXISTS => Ok(self.history.borrow().see_some(&id, from)?),
            ErrorCode::TUPLE_NOT_FOUND => self.see(id, None, from),
            _ if self.fits(at, code) => Ok(()),
            _ => Err(format!("an operation on row {id} fails with {code}").into()),
        }
    }

    async fn attempt(&self, at: &Client, rng: &mut Rng) -> Done<()> {
        let table = at.table("mixed").await?;
        match rng.below(100) {
            0..10 => scans::read_some(self, at, &table, rng).await,
            10..22 => scans::scan(self, at, &mut at.connection.begin(), &table, None, rng).await,
            22..40 => Trans::new(self, at, table).finish(rng).await,
            _ => {
                let mut trans = Trans::new(self, at, table);
                for _ in 0..rng.range(1..=5) {
                    trans.step(rng).await?;
                }
                trans.finish(rng).await
            }
        }
    }

    /// All rows, at the end; judged.
    async fn look_at_all(&self, at: &Client) -> Done<()> {
        let table = at.table("mixed").await?;
        self.history.borrow_mut().settle();
        let from = self.moment();
        let mut found = BTreeMap::new();
        let mut scan = at.connection.begin().scan(ndbapi::ScanSpec::new(&table)).await?;
        while let Some(batch) = scan.next().await? {
            for row in batch.rows() {
                let (id, content) = rows::decode(&row)?;
                if found.insert(id, content).is_some() {
                    return Err(format!("row {id} is there twice").into());
                }
            }
        }
        for id in 0..self.rows {
            self.see(id, found.get(&id), from)?;
            let mut tx = at.connection.begin();
            let read = tx.read(&table).key(&[id.into()]).finish()?;
            let results = tx.execute().await?;
            let row = results.row(read)?.map(|row| rows::decode(&row)).transpose()?;
            if row != found.get(&id).map(|content| (id, *content)) {
                return Err(format!("row {id} is {row:?} when read, {:?} in a scan", found.get(&id)).into());
            }
        }
        if let Some(id) = found.keys().find(|id| **id >= self.rows) {
            return Err(format!("row {id} was never written").into());
        }
        match self.last.borrow_mut().get_or_insert_with(|| found.clone()) {
            last if *last == found => Ok(()),
            last => Err(format!("two clients see different rows: {last:?} and {found:?}").into()),
        }
    }
}

impl Load for Mixed {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        Box::pin(async move { at.create("mixed", rows::columns()).await.map(drop) })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            match self.attempt(at, rng).await {
                Ok(()) => {}
                Err(Stop::Wrong(text)) => self.note(format!("{text} (client {} of {})", at.number, at.node)),
                Err(Stop::Failed(error)) => {
                    if !self.fits(at, error.code()) {
                        self.note(format!("an attempt fails with {error}"));
                    }
                }
            }
        })
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(text) = self.wrong.borrow().as_ref() {
            return Err(format!("mixed: {text}"));
        }
        let Counts { begun, committed, failed, unknown, orphaned } = &self.counts;
        let ended = committed.get() + failed.get() + unknown.get() + orphaned.get();
        if ended == begun.get() {
            Ok(())
        } else {
            Err(format!("mixed: attempts do not add up: {:?}", self.counts))
        }
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            if let Some(code) = self.gone.borrow().as_ref() {
                return Ok(Err(format!("mixed: the table is there and was said not to be: {code}")));
            }
            match self.look_at_all(at).await {
                Ok(()) => Ok(Ok(())),
                Err(Stop::Wrong(text)) => Ok(Err(format!("mixed: {text}, at the end"))),
                Err(Stop::Failed(error)) => Err(error),
            }
        })
    }

    fn forget(&self) {
        self.history.take();
        self.wrong.take();
        self.gone.take();
        self.last.take();
    }
}
