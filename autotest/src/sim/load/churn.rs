//! Churn: databases and tables made, dropped and emptied by several clients at once, while others write and
//! read their rows.
//!
//! Every database and table is made with a stamp in the description that nobody but its reader looks at, so
//! that one is told from the next of the same name; a [`History`] judges what is seen of names. Every row
//! says which table it was written to, down to the version, so that a row of a dropped or emptied table that
//! shows up elsewhere is noticed at once. What was acknowledged is asked for through every client.
//!
//! A cluster that was lost forgets all names. Nobody is told, so before something missing is called a fault,
//! a table is looked for that is never dropped: if it is gone, so was the cluster.

use super::history::{History, Moment};
use super::{Client, Load, Local, column};
use crate::sim::agenda::{MILLI, Nanos, SECOND};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, Row, ScanSpec, TableHandle};
use signals::control::SchemaChange;
use signals::ids::SchemaVersion;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{ErrorClass, ErrorCode, TableId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

const DATABASES: u64 = 2;
const TABLES: u64 = 3;
const ANCHOR: &str = "churn";
/// Longer than a request may take.
const OTHERS_ANSWER: Nanos = 15 * SECOND;

/// A database, or a table of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Name {
    Database(u64),
    Table(u64, u64),
}

/// What ends an act early.
enum Stop {
    /// It failed.
    Failed(NdbError),
    /// Something was seen that cannot be in a cluster that was there all along.
    Wrong(String),
    /// Something was seen that can never be.
    Impossible(String),
}

impl From<NdbError> for Stop {
    fn from(error: NdbError) -> Self {
        Self::Failed(error)
    }
}

type Done<T> = Result<T, Stop>;

/// See the module.
pub(crate) struct Churn {
    rows: u32,
    history: RefCell<History<Name, u64>>,
    stamps: Cell<u64>,
    wrong: RefCell<Option<String>>,
    /// What the first client saw at the end.
    last: RefCell<Option<BTreeMap<Name, u64>>>,
}

impl Churn {
    pub(crate) fn new(rows: u64) -> Self {
        Self {
            rows: rows.max(1) as u32,
            history: RefCell::default(),
            stamps: Cell::new(0),
            wrong: RefCell::default(),
            last: RefCell::default(),
        }
    }

    fn stamp(&self) -> u64 {
        self.stamps.set(self.stamps.get() + 1);
        self.stamps.get()
    }

    fn moment(&self) -> Moment {
        self.history.borrow_mut().moment()
    }

    fn see(&self, name: Name, stamp: Option<u64>, from: Moment) -> Done<()> {
        self.history.borrow_mut().see(&name, stamp.as_ref(), from).map_err(Stop::Wrong)
    }

    fn see_some(&self, name: Name, from: Moment) -> Done<()> {
        self.history.borrow().see_some(&name, from).map_err(Stop::Wrong)
    }

    fn note(&self, text: String) {
        self.wrong.borrow_mut().get_or_insert(text);
    }

    async fn any(&self, at: &Client, rng: &mut Rng) -> Done<()> {
        let (d, t) = (rng.below(DATABASES), rng.below(TABLES));
        match rng.below(100) {
            0..15 => self.create_table(at, d, t).await,
            15..22 => self.drop_table(at, d, t).await,
            22..28 => self.truncate_table(at, d, t).await,
            28..33 => self.create_database(at, d).await,
            33..38 => self.drop_database(at, d).await,
            38..75 => self.write(at, d, t, rng).await,
            _ => self.read(at, d, t, rng).await,
        }
    }

    async fn create_database(&self, at: &Client, d: u64) -> Done<()> {
        let (stamp, name) = (self.stamp(), Name::Database(d));
        let sql = stamp.to_le_bytes().to_vec();
        let change = SchemaChange::CreateDatabase { name: database(at, d), sql };
        match self.change(at, change, Some((name, Some(stamp)))).await? {
            (Ok(()), from) => self.see_database(at, d, from).await,
            (Err(ErrorCode::DATABASE_EXISTS), from) => self.see_some(name, from),
            (Err(code), _) => fits("to create a database", code),
        }
    }

    async fn drop_database(&self, at: &Client, d: u64) -> Done<()> {
        let name = Name::Database(d);
        let change = SchemaChange::DropDatabase { name: database(at, d) };
        match self.change(at, change, Some((name, None))).await? {
            (Ok(()), from) => self.see_database(at, d, from).await,
            (Err(ErrorCode::NO_SUCH_DATABASE), from) => self.see(name, None, from),
            (Err(ErrorCode::DATABASE_NOT_EMPTY), from) => {
                let any = (0..TABLES).any(|t| self.see_some(Name::Table(d, t), from).is_ok());
                let text = || Stop::Wrong(format!("database {d} is said to have tables and can have none"));
                any.then_some(()).ok_or_else(text)
            }
            (Err(code), _) => fits("to drop a database", code),
        }
    }

    async fn create_table(&self, at: &Client, d: u64, t: u64) -> Done<()> {
        let (stamp, name) = (self.stamp(), Name::Table(d, t));
        let change = SchemaChange::CreateTable(Box::new(definition(at, d, t, stamp)));
        match self.change(at, change, Some((name, Some(stamp)))).await? {
            (Ok(()), _) => self.see_everywhere(at, d, t).await,
            (Err(ErrorCode::TABLE_EXISTS), from) => self.see_some(name, from),
            (Err(ErrorCode::NO_SUCH_DATABASE), from) => self.see(Name::Database(d), None, from),
            (Err(code), _) => fits("to create a table", code),
        }
    }

    async fn drop_table(&self, at: &Client, d: u64, t: u64) -> Done<()> {
        let Some(handle) = self.fetch(at, d, t).await? else { return Ok(()) };
        let change = SchemaChange::DropTable { table: handle.id(), version: handle.version() };
        match self.change(at, change, Some((Name::Table(d, t), None))).await? {
            (Ok(()), _) => self.see_everywhere(at, d, t).await,
            (Err(code), _) if outdated(code) => Ok(()),
            (Err(code), _) => fits("to drop a table", code),
        }
    }

    /// Emptied, a table keeps its name and stamp.
    async fn truncate_table(&self, at: &Client, d: u64, t: u64) -> Done<()> {
        let Some(handle) = self.fetch(at, d, t).await? else { return Ok(()) };
        let change = SchemaChange::TruncateTable { table: handle.id(), version: handle.version() };
        match self.change(at, change, None).await? {
            (Ok(()), _) => Ok(()),
            (Err(code), _) if outdated(code) => Ok(()),
            (Err(code), _) => fits("to empty a table", code),
        }
    }

    /// Makes a change and notes what became of it. Returns its outcome and the moment it was asked for;
    /// fails if its outcome is unknown.
    async fn change(
        &self,
        at: &Client,
        change: SchemaChange,
        effect: Option<(Name, Option<u64>)>,
    ) -> Done<(Result<(), ErrorCode>, Moment)> {
        let from = self.moment();
        let attempt = {
            let mut history = self.history.borrow_mut();
            let attempt = history.begin();
            history.ask(attempt, true, effect);
            attempt
        };
        let result = at.connection.dictionary().change(change).await;
        let mut history = self.history.borrow_mut();
        match result {
            Ok(_) => {
                history.done(attempt, &[]);
                Ok((Ok(()), from))
            }
            Err(error) if error.unknown_outcome() => {
                history.unknown(attempt);
                Err(error.into())
            }
            Err(error) => {
                history.failed(attempt).map_err(Stop::Wrong)?;
                Ok((Err(error.code()), from))
            }
        }
    }

    /// A table as some data node has it, judged.
    async fn fetch(&self, at: &Client, d: u64, t: u64) -> Done<Option<TableHandle>> {
        let from = self.moment();
        match at.connection.dictionary().fetch(&database(at, d), &table_name(t)).await {
            Ok(handle) => {
                self.see(Name::Table(d, t), stamp_of(&handle.def().sql), from)?;
                Ok(Some(handle))
            }
            Err(error) if error.code() == ErrorCode::TABLE_NOT_FOUND => {
                self.see(Name::Table(d, t), None, from)?;
                Ok(None)
            }
            Err(error) if error.code() == ErrorCode::NO_SUCH_DATABASE => {
                self.see(Name::Database(d), None, from)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A table was made or dropped, and acknowledged: every client asks for it.
    async fn see_everywhere(&self, at: &Client, d: u64, t: u64) -> Done<()> {
        for node in at.env.api_nodes() {
            let Some(connection) = at.env.connection(*node) else { continue };
            let other = Client { connection, ..at.clone() };
            match until(at.env.sleep(OTHERS_ANSWER), self.fetch(&other, d, t)).await {
                // That client cannot ask now, or has died meanwhile.
                Some(Ok(_) | Err(Stop::Failed(_))) | None => {}
                Some(Err(stop)) => return Err(stop),
            }
        }
        Ok(())
    }

    async fn see_database(&self, at: &Client, d: u64, from: Moment) -> Done<()> {
        let found = at.connection.dictionary().databases().await?;
        let name = database(at, d);
        let stamp = found.iter().find(|info| info.name == name).and_then(|info| stamp_of(&info.sql));
        self.see(Name::Database(d), stamp, from)
    }

    /// The table by the cache, as an application has it, or as it is.
    async fn handle(&self, at: &Client, d: u64, t: u64, rng: &mut Rng) -> Done<Option<TableHandle>> {
        if rng.chance(700)
            && let Some(handle) = at.connection.dictionary().cached(&database(at, d), &table_name(t))
        {
            return Ok(Some(handle));
        }
        self.fetch(at, d, t).await
    }

    async fn write(&self, at: &Client, d: u64, t: u64, rng: &mut Rng) -> Done<()> {
        let Some(handle) = self.handle(at, d, t, rng).await? else { return Ok(()) };
        let mut tx = at.connection.begin();
        for _ in 0..rng.log_range(1..=5) {
            let id = rng.below(u64::from(self.rows)) as u32;
            let Origin { stamp, table, version } = Origin::of(&handle);
            tx.write(&handle)
                .key(&[id.into()])
                .set("stamp", stamp)
                .set("table", table)
                .set("version", version)
                .finish()?;
            if rng.chance(200) {
                tx.execute().await?;
            }
        }
        if rng.chance(200) {
            tx.execute().await?;
            at.env.sleep(rng.log_range(1..=100) * MILLI).await;
        }
        Ok(tx.commit().await.map(drop)?)
    }

    async fn read(&self, at: &Client, d: u64, t: u64, rng: &mut Rng) -> Done<()> {
        let Some(handle) = self.handle(at, d, t, rng).await? else { return Ok(()) };
        if rng.chance(400) {
            return scan(at, &handle).await;
        }
        let mut tx = at.connection.begin();
        let id = rng.below(u64::from(self.rows)) as u32;
        let read = match rng.below(3) {
            0 => tx.read(&handle).key(&[id.into()]).finish()?,
            1 => tx.read_shared(&handle).key(&[id.into()]).finish()?,
            _ => tx.read_exclusive(&handle).key(&[id.into()]).finish()?,
        };
        let results = tx.execute().await?;
        match results.row(read)? {
            Some(row) => Origin::of(&handle).check(&row),
            None => Ok(()),
        }
    }

    /// Whether the cluster is the one the round began with.
    async fn is_same_cluster(&self, at: &Client) -> bool {
        for _ in 0..300 {
            let name = at.name(ANCHOR);
            match at.connection.dictionary().fetch(super::DATABASE, &name).await {
                Ok(_) => return true,
                Err(error) if error.class() == ErrorClass::SchemaError => return false,
                Err(_) => at.env.sleep(100 * MILLI).await,
            }
        }
        false
    }

    async fn look_at_all(&self, at: &Client) -> Done<()> {
        self.history.borrow_mut().settle();
        let mut found = BTreeMap::new();
        let from = self.moment();
        let databases = at.connection.dictionary().databases().await?;
        for d in 0..DATABASES {
            let name = database(at, d);
            let info = databases.iter().find(|info| info.name == name);
            let stamp = info.and_then(|info| stamp_of(&info.sql));
            self.see(Name::Database(d), stamp, from)?;
            let Some(stamp) = stamp else { continue };
            found.insert(Name::Database(d), stamp);
            let listed = at.connection.dictionary().tables(&name).await?;
            for t in 0..TABLES {
                let handle = self.fetch(at, d, t).await?;
                let entry = listed.iter().find(|(name, _, _)| *name == table_name(t));
                let fetched = handle.as_ref().map(|h| (h.id(), h.version()));
                if entry.map(|(_, id, version)| (*id, *version)) != fetched {
                    return Err(Stop::Wrong(format!(
                        "table {d}.{t} is listed as {entry:?}, found as {fetched:?}"
                    )));
                }
                if let Some(handle) = handle {
                    found.insert(Name::Table(d, t), Origin::of(&handle).stamp);
                    scan(at, &handle).await?;
                }
            }
        }
        match self.last.borrow_mut().get_or_insert_with(|| found.clone()) {
            last if *last == found => Ok(()),
            last => Err(Stop::Wrong(format!("two clients see different names: {last:?} and {found:?}"))),
        }
    }
}

/// What comes of `work` before `end` does: the connection of a process that dies answers nobody any more.
async fn until<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|cx| match (work.as_mut().poll(cx), end.as_mut().poll(cx)) {
        (Poll::Ready(value), _) => Poll::Ready(Some(value)),
        (Poll::Pending, Poll::Ready(())) => Poll::Ready(None),
        (Poll::Pending, Poll::Pending) => Poll::Pending,
    })
    .await
}

/// Where a row belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin {
    stamp: u64,
    table: u32,
    version: u32,
}

impl Origin {
    fn of(handle: &TableHandle) -> Self {
        Self {
            stamp: stamp_of(&handle.def().sql).unwrap_or_default(),
            table: handle.id().0,
            version: handle.version().0,
        }
    }

    /// Judges a row that was read by the table's handle.
    fn check(&self, row: &Row<'_>) -> Done<()> {
        let found = Self {
            stamp: row.get_u64("stamp")?.unwrap_or_default(),
            table: row.get_u32("table")?.unwrap_or_default(),
            version: row.get_u32("version")?.unwrap_or_default(),
        };
        if found == *self {
            return Ok(());
        }
        Err(Stop::Impossible(format!("a row of {found:?} is read from {self:?}")))
    }
}

async fn scan(at: &Client, handle: &TableHandle) -> Done<()> {
    let mut scan = at.connection.begin().scan(ScanSpec::new(handle).batch(5, 1000)).await?;
    while let Some(batch) = scan.next().await? {
        for row in batch.rows() {
            Origin::of(handle).check(&row)?;
        }
    }
    Ok(())
}

fn stamp_of(sql: &[u8]) -> Option<u64> {
    sql.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

fn database(at: &Client, d: u64) -> String {
    format!("churn{}_{d}", at.round)
}

fn table_name(t: u64) -> String {
    format!("t{t}")
}

fn definition(at: &Client, d: u64, t: u64, stamp: u64) -> TableDef {
    TableDef {
        id: TableId(0),
        version: SchemaVersion(0),
        database: database(at, d),
        name: table_name(t),
        columns: columns(),
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::default(),
        nologging: false,
        read_backup: !stamp.is_multiple_of(3),
        fully_replicated: false,
        sql: stamp.to_le_bytes().to_vec(),
    }
}

fn columns() -> Vec<ColumnDef> {
    let unsigned = |name, size| column(name, ColumnType::Unsigned, ColumnStorage::Fixed { size });
    vec![unsigned("id", 4), unsigned("stamp", 8), unsigned("table", 4), unsigned("version", 4)]
}

/// The table a handle means is not there any more, or not as it was.
fn outdated(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::INVALID_SCHEMA_VERSION
            | ErrorCode::NO_SUCH_TABLE
            | ErrorCode::TABLE_NOT_FOUND
            | ErrorCode::TABLE_NOT_DEFINED
            | ErrorCode::TABLE_BEING_DROPPED
            | ErrorCode::TABLE_DROPPING
    )
}

/// Judges a failure that says nothing about names.
fn fits(what: &str, code: ErrorCode) -> Done<()> {
    if code.is_temporary() || code.class() == ErrorClass::UnknownResult || code == ErrorCode::CLUSTER_SHUTDOWN
    {
        return Ok(());
    }
    Err(Stop::Wrong(format!("{what} fails with {code}")))
}

impl Load for Churn {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        Box::pin(async move { at.create(ANCHOR, columns()).await.map(drop) })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            let stop = match self.any(at, rng).await {
                Ok(()) => return,
                // An application holds handles of tables that are gone.
                Err(Stop::Failed(error)) if outdated(error.code()) => return,
                Err(Stop::Failed(error)) => match fits("a transaction", error.code()) {
                    Err(stop) => stop,
                    Ok(()) => return,
                },
                Err(stop) => stop,
            };
            match stop {
                Stop::Impossible(text) => self.note(text),
                Stop::Wrong(text) if self.is_same_cluster(at).await => self.note(text),
                Stop::Wrong(_) | Stop::Failed(_) => {}
            }
        })
    }

    fn judge(&self) -> Result<(), String> {
        self.wrong.borrow().as_ref().map_or(Ok(()), |text| Err(format!("churn: {text}")))
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            match self.look_at_all(at).await {
                Ok(()) => Ok(Ok(())),
                Err(Stop::Wrong(text) | Stop::Impossible(text)) => {
                    Ok(Err(format!("churn: {text}, at the end")))
                }
                Err(Stop::Failed(error)) => Err(error),
            }
        })
    }

    fn forget(&self) {
        self.history.take();
        self.wrong.take();
        self.last.take();
    }
}
