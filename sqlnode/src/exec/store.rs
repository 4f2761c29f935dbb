//! Store: transactions over stored rows, the executor's only way to the cluster.
//!
//! A thin layer over `ndbapi` in terms of whole storage bytes: reads by key, writes by key, scans, commit,
//! rollback and savepoints. It cuts long lists of operations into bounded round trips. In tests the same
//! calls go to a small in-memory stand-in, so that SQL is tested without a cluster.

use ndbapi::{
    ClusterConnection, NdbError, OpId, Results, Savepoint, ScanSpec, TableHandle, Transaction, Value,
};
use signals::keyop::Operation;
use signals::table::MAX_ROW_BYTES;

#[cfg(test)]
use super::super::session::tests::memory;

/// A row's storage bytes, in the order of the columns asked for.
pub type StoredRow = Vec<Option<Vec<u8>>>;
/// A key's storage bytes, in key order.
pub type StoredKey = Vec<Vec<u8>>;

/// The most operations of one round trip.
const OPERATIONS_MAX: usize = 1000;
/// The most bytes of one round trip.
const BYTES_MAX: usize = 4 << 20;

/// What a read does to its row's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Nothing.
    Committed,
    /// Others may read but not change it.
    Shared,
    /// Others may do neither.
    Exclusive,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Insert, Update, Write or Delete.
    pub operation: Operation,
    /// The row.
    pub key: StoredKey,
    /// Columns that are not of the key and their new values.
    pub values: Vec<(u16, Option<Vec<u8>>)>,
}

impl Write {
    fn bytes(&self) -> usize {
        let values: usize = self.values.iter().map(|(_, v)| v.as_ref().map_or(4, |v| v.len() + 4)).sum();
        values + self.key.iter().map(|k| k.len() + 4).sum::<usize>() + 64
    }
}

/// The cluster.
#[derive(Clone)]
pub enum Cluster {
    /// The real one.
    Ndb(ClusterConnection),
    /// The stand-in of tests.
    #[cfg(test)]
    Memory(memory::Memory),
}

impl Cluster {
    /// Begins a transaction; nothing is sent yet.
    pub fn begin(&self) -> Tx {
        match self {
            Self::Ndb(connection) => Tx { inner: Inner::Ndb(connection.begin()) },
            #[cfg(test)]
            Self::Memory(memory) => Tx { inner: Inner::Memory(memory.begin()) },
        }
    }
}

/// A table of the dictionary, and the calls that change the dictionary.
impl Cluster {
    /// A table.
    ///
    /// # Errors
    /// 723: there is none.
    pub async fn table(&self, database: &str, name: &str) -> Result<TableHandle, NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().table(database, name).await,
            #[cfg(test)]
            Self::Memory(m) => m.table(database, name),
        }
    }

    /// Forgets what is known about a table.
    pub fn forget(&self, table: &TableHandle) {
        match self {
            Self::Ndb(c) => c.dictionary().forget(table),
            #[cfg(test)]
            Self::Memory(_) => {}
        }
    }

    /// The databases' names.
    ///
    /// # Errors
    /// The cluster is away.
    pub async fn databases(&self) -> Result<Vec<String>, NdbError> {
        match self {
            Self::Ndb(c) => Ok(c.dictionary().databases().await?.into_iter().map(|d| d.name).collect()),
            #[cfg(test)]
            Self::Memory(m) => Ok(m.databases()),
        }
    }

    /// The names of a database's tables.
    ///
    /// # Errors
    /// 4718: there is no such database.
    pub async fn tables(&self, database: &str) -> Result<Vec<String>, NdbError> {
        match self {
            Self::Ndb(c) => Ok(c.dictionary().tables(database).await?.into_iter().map(|t| t.0).collect()),
            #[cfg(test)]
            Self::Memory(m) => m.tables(database),
        }
    }

    /// Creates a database.
    ///
    /// # Errors
    /// 4719: it exists.
    pub async fn create_database(&self, name: &str) -> Result<(), NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().create_database(name, Vec::new()).await,
            #[cfg(test)]
            Self::Memory(m) => m.create_database(name),
        }
    }

    /// Drops an empty database.
    ///
    /// # Errors
    /// 4718, 4720.
    pub async fn drop_database(&self, name: &str) -> Result<(), NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().drop_database(name).await,
            #[cfg(test)]
            Self::Memory(m) => m.drop_database(name),
        }
    }

    /// Creates a table.
    ///
    /// # Errors
    /// 721: it exists.
    pub async fn create_table(&self, def: signals::table::TableDef) -> Result<TableHandle, NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().create_table(def).await,
            #[cfg(test)]
            Self::Memory(m) => m.create_table(def),
        }
    }

    /// Drops a table.
    ///
    /// # Errors
    /// 241, 723.
    pub async fn drop_table(&self, table: &TableHandle) -> Result<(), NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().drop_table(table).await,
            #[cfg(test)]
            Self::Memory(m) => m.drop_table(table),
        }
    }

    /// Empties a table.
    ///
    /// # Errors
    /// 241, 723.
    pub async fn truncate_table(&self, table: &TableHandle) -> Result<(), NdbError> {
        match self {
            Self::Ndb(c) => c.dictionary().truncate_table(table).await,
            #[cfg(test)]
            Self::Memory(m) => m.truncate_table(table),
        }
    }
}

enum Inner {
    /// No cluster: for statements that touch no table.
    None,
    Ndb(Transaction),
    #[cfg(test)]
    Memory(memory::MemoryTx),
}

/// A transaction.
pub struct Tx {
    inner: Inner,
}

/// A point in a transaction to roll back to.
#[derive(Clone, Copy)]
pub enum Mark {
    /// Of the cluster.
    Ndb(Savepoint),
    /// Of the stand-in.
    #[cfg(test)]
    Memory(usize),
}

fn borrowed(key: &StoredKey) -> Vec<Value<'_>> {
    key.iter().map(|bytes| Value::Bytes(bytes)).collect()
}

fn owned(results: &Results, op: OpId) -> Result<Option<StoredRow>, NdbError> {
    Ok(results.row(op)?.map(|row| row.entries().map(|(_, bytes)| bytes.map(<[u8]>::to_vec)).collect()))
}

/// How many rows of a table one round trip may ask for: as many as are sure to stay under [`BYTES_MAX`].
fn rows_per_trip(table: &TableHandle) -> usize {
    let row: usize = table.columns().iter().map(|c| c.storage.max_bytes() + 8).sum();
    (BYTES_MAX / row.min(MAX_ROW_BYTES)).clamp(1, OPERATIONS_MAX)
}

fn away() -> NdbError {
    NdbError::new(signals::ErrorCode::CLUSTER_UNAVAILABLE)
}

impl Tx {
    /// A transaction of a statement that touches no table.
    pub fn none() -> Self {
        Self { inner: Inner::None }
    }

    /// Whether it was committed or rolled back.
    pub fn is_over(&self) -> bool {
        match &self.inner {
            Inner::None => false,
            Inner::Ndb(tx) => tx.is_over(),
            #[cfg(test)]
            Inner::Memory(tx) => tx.is_over(),
        }
    }

    /// Reads rows by key. With `last`, the transaction is committed in the same round trip as the last rows.
    ///
    /// # Errors
    /// As `ndbapi`; the transaction may be over.
    pub async fn read(
        &mut self,
        table: &TableHandle,
        keys: &[StoredKey],
        columns: &[u16],
        lock: Lock,
        last: bool,
    ) -> Result<Vec<Option<StoredRow>>, NdbError> {
        let tx = match &mut self.inner {
            Inner::None => return Err(away()),
            Inner::Ndb(tx) => tx,
            #[cfg(test)]
            Inner::Memory(tx) => return tx.read(table, keys, columns, last),
        };
        let operation = match lock {
            Lock::Committed => Operation::ReadCommitted,
            Lock::Shared => Operation::ReadShared,
            Lock::Exclusive => Operation::ReadExclusive,
        };
        let mut rows = Vec::with_capacity(keys.len());
        let mut chunks = keys.chunks(rows_per_trip(table)).peekable();
        while let Some(chunk) = chunks.next() {
            let mut ops = Vec::with_capacity(chunk.len());
            for key in chunk {
                let op = tx.operation(table, operation).key(&borrowed(key)).columns(columns).finish();
                ops.push(op.inspect_err(|_| tx.discard_staged())?);
            }
            let results =
                if last && chunks.peek().is_none() { tx.commit().await? } else { tx.execute().await? };
            for op in ops {
                rows.push(owned(&results, op)?);
            }
        }
        Ok(rows)
    }

    /// Makes changes. With `last` they are committed in the same round trip, and any failure undoes the
    /// transaction; without it, each change has its own result and the transaction goes on.
    ///
    /// # Errors
    /// As `ndbapi`; the transaction is over.
    pub async fn write(
        &mut self,
        table: &TableHandle,
        writes: &[Write],
        last: bool,
    ) -> Result<Vec<Result<(), NdbError>>, NdbError> {
        let tx = match &mut self.inner {
            Inner::None => return Err(away()),
            Inner::Ndb(tx) => tx,
            #[cfg(test)]
            Inner::Memory(tx) => return tx.write(table, writes, last),
        };
        let mut results = Vec::with_capacity(writes.len());
        let mut rest = writes;
        if writes.is_empty() && !last {
            return Ok(results);
        }
        loop {
            let mut ops = Vec::new();
            let mut bytes = 0;
            while let Some((write, tail)) = rest.split_first() {
                if ops.len() == OPERATIONS_MAX || (bytes > 0 && bytes + write.bytes() > BYTES_MAX) {
                    break;
                }
                bytes += write.bytes();
                rest = tail;
                let mut op = tx.operation(table, write.operation).key(&borrowed(&write.key));
                for (column, value) in &write.values {
                    op = op.set(*column, value.as_deref());
                }
                let op = op.ignore_error(!last).finish();
                ops.push(op.inspect_err(|_| tx.discard_staged())?);
            }
            let commit = last && rest.is_empty();
            let done = if commit { tx.commit().await? } else { tx.execute().await? };
            results.extend(ops.into_iter().map(|op| done.result(op)));
            if rest.is_empty() {
                return Ok(results);
            }
        }
    }

    /// Scans the whole table.
    ///
    /// # Errors
    /// As `ndbapi`.
    pub async fn scan(&mut self, table: &TableHandle, columns: &[u16]) -> Result<RowScan, NdbError> {
        match &mut self.inner {
            Inner::None => Err(away()),
            Inner::Ndb(tx) => {
                let spec = ScanSpec::new(table).columns(columns)?;
                Ok(RowScan::Ndb(tx.scan(spec).await?))
            }
            #[cfg(test)]
            Inner::Memory(tx) => Ok(RowScan::Memory(tx.scan(table, columns)?)),
        }
    }

    /// Commits.
    ///
    /// # Errors
    /// It was rolled back, or nobody knows.
    pub async fn commit(&mut self) -> Result<(), NdbError> {
        match &mut self.inner {
            Inner::None => Ok(()),
            Inner::Ndb(tx) if tx.id().is_none() && tx.staged() == 0 => tx.abort().await,
            Inner::Ndb(tx) => tx.commit().await.map(drop),
            #[cfg(test)]
            Inner::Memory(tx) => tx.commit(),
        }
    }

    /// Rolls back.
    pub async fn abort(&mut self) {
        match &mut self.inner {
            Inner::None => {}
            Inner::Ndb(tx) => {
                if let Err(error) = tx.abort().await {
                    tracing::debug!(%error, "rollback");
                }
            }
            #[cfg(test)]
            Inner::Memory(tx) => tx.undo_to(0),
        }
    }

    /// A point to come back to.
    ///
    /// # Errors
    /// The cluster is away.
    pub async fn mark(&mut self) -> Result<Mark, NdbError> {
        match &mut self.inner {
            Inner::None => Err(away()),
            Inner::Ndb(tx) => Ok(Mark::Ndb(tx.savepoint().await?)),
            #[cfg(test)]
            Inner::Memory(tx) => Ok(Mark::Memory(tx.position())),
        }
    }

    /// Undoes everything since `mark`.
    ///
    /// # Errors
    /// The transaction is over.
    pub async fn roll_back_to(&mut self, mark: Mark) -> Result<(), NdbError> {
        match (&mut self.inner, mark) {
            (Inner::None, _) => Err(away()),
            (Inner::Ndb(tx), Mark::Ndb(savepoint)) => tx.rollback_to(savepoint).await,
            #[cfg(test)]
            (Inner::Memory(tx), Mark::Memory(position)) => {
                tx.undo_to(position);
                Ok(())
            }
            #[cfg(test)]
            _ => Err(NdbError::new(signals::ErrorCode::STATUS_ERROR)),
        }
    }
}

/// A scan under way.
pub enum RowScan {
    /// Of the cluster.
    Ndb(ndbapi::Scan),
    /// Of the stand-in.
    #[cfg(test)]
    Memory(std::vec::IntoIter<StoredRow>),
}

impl RowScan {
    /// The next rows; None at the end.
    ///
    /// # Errors
    /// The scan is over and rows may have been missed.
    pub async fn next(&mut self) -> Result<Option<Vec<StoredRow>>, NdbError> {
        match self {
            Self::Ndb(scan) => Ok(scan.next().await?.map(|batch| {
                let row = |row: ndbapi::Row<'_>| row.entries().map(|(_, b)| b.map(<[u8]>::to_vec)).collect();
                batch.rows().map(row).collect()
            })),
            #[cfg(test)]
            Self::Memory(rows) => {
                let some: Vec<StoredRow> = rows.by_ref().take(3).collect();
                Ok(Some(some).filter(|rows| !rows.is_empty()))
            }
        }
    }
}
