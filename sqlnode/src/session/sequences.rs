//! Sequences: AUTO_INCREMENT values and hidden keys, handed out in ranges.
//!
//! The next free value of each table is a row of a table in the `mysql` database. A SQL node takes a range
//! at a time under that row's lock and hands values out of it without asking anyone, so inserts of several
//! nodes do not meet. A value a client gives itself moves the row forward when it lies beyond the range, so
//! it is never generated later.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use ndbapi::TableHandle;
use signals::ErrorCode as Ndb;
use signals::keyop::Operation;
use tokio::sync::Mutex;

use super::node::SqlNode;
use crate::catalog::TableMeta;
use crate::catalog::types::not_yet;
use crate::exec::access::handle_of;
use crate::exec::errors::to_mysql;
use crate::exec::store::{Cluster, Lock, Write};
use crate::exec::write::Counter;
use crate::parser::ast::Stmt;
use crate::parser::{ParseMode, parse};
use crate::value::{MySqlError, Result, Warnings};

/// The database of the node's own tables.
pub const SYSTEM_DATABASE: &str = "mysql";
const TABLE: &str = "nucdb_sequence";
const CREATE: &str = "CREATE TABLE nucdb_sequence (table_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, \
                      next_value BIGINT UNSIGNED NOT NULL) ENGINE=ndbcluster";
/// How many values a range holds (ndb_autoincrement_prefetch_sz).
const PREFETCH: u64 = 512;
/// How often a range is tried for before the error goes to the client.
const ATTEMPTS: u32 = 10;

/// What is left of a table's range.
#[derive(Debug)]
struct Range {
    next: u64,
    end: u64,
    /// When a new range was last asked for in vain, and why.
    failed: Option<(Instant, MySqlError)>,
}

impl Default for Range {
    fn default() -> Self {
        Self { next: 1, end: 1, failed: None }
    }
}

impl Range {
    /// Notes what became of the wish for a new range of `count` values.
    ///
    /// # Errors
    /// That of `first`.
    fn renew(&mut self, first: Result<u64>, count: u64) -> Result<()> {
        match first {
            Ok(first) => *self = Self { next: first, end: first.saturating_add(count), failed: None },
            Err(error) => {
                self.failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sessions that waited while another's wish failed do not wish for the same one after the other: with
    /// the data nodes away, the last of many would hang for minutes.
    ///
    /// # Errors
    /// The other's, if it came after `asked`.
    fn share_failure(&self, asked: Instant) -> Result<()> {
        match &self.failed {
            Some((at, error)) if *at >= asked => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// The ranges of all tables, by id and version; each has a lock of its own.
type Ranges = HashMap<(u32, u32), Arc<Mutex<Range>>>;

/// The ranges of this node, by table id and version.
#[derive(Debug, Default)]
pub struct Sequences {
    /// Each behind a lock of its own, so that a table whose range is being renewed holds up no other.
    ranges: std::sync::Mutex<Ranges>,
}

impl Sequences {
    fn all(&self) -> std::sync::MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, table: &TableHandle) -> Arc<Mutex<Range>> {
        Arc::clone(self.all().entry(key_of(table)).or_default())
    }
}

fn key_of(table: &TableHandle) -> (u32, u32) {
    (table.id().0, table.version().0)
}

impl Counter for SqlNode {
    async fn next(&self, table: &TableMeta, count: u64) -> Result<u64> {
        let handle = handle_of(table)?;
        let asked = Instant::now();
        let range = self.sequences.of(handle);
        let mut range = range.lock().await;
        if range.end - range.next < count {
            range.share_failure(asked)?;
            let wanted = count.max(PREFETCH);
            let cluster = self.cluster()?;
            let first =
                move_row(&cluster, handle, |next| (next.max(table.first_auto_increment), wanted)).await;
            range.renew(first, wanted)?;
        }
        let first = range.next;
        range.next += count;
        Ok(first)
    }

    async fn seen(&self, table: &TableMeta, value: u64) -> Result<()> {
        let handle = handle_of(table)?;
        let asked = Instant::now();
        let range = self.sequences.of(handle);
        let mut range = range.lock().await;
        if value < range.next {
            return Ok(());
        }
        let after = value.saturating_add(1);
        if after <= range.end && range.next < range.end {
            range.next = after;
            return Ok(());
        }
        range.share_failure(asked)?;
        let cluster = self.cluster()?;
        let first = move_row(&cluster, handle, |next| (next.max(after), PREFETCH)).await;
        range.renew(first, PREFETCH)
    }
}

impl SqlNode {
    /// Forgets a table's values when it is dropped or emptied.
    pub async fn forget_sequence(&self, table: &TableHandle) {
        self.sequences.all().remove(&key_of(table));
        let Ok(cluster) = self.cluster() else { return };
        let Ok(sequences) = cluster.table(SYSTEM_DATABASE, TABLE).await else { return };
        let write = Write { operation: Operation::Delete, key: vec![row_key(table)], values: vec![] };
        let mut tx = cluster.begin();
        // A row that is not there, or a cluster that is away, leaves nothing worse than a gap in the numbers.
        if let Err(error) = tx.write(&sequences, &[write], true).await {
            tracing::debug!(%error, "forgetting a sequence");
        }
    }
}

fn row_key(table: &TableHandle) -> Vec<u8> {
    // Id and version, so that a table that is dropped and made anew starts from its beginning.
    (u64::from(table.id().0) << 32 | u64::from(table.version().0)).to_le_bytes().to_vec()
}

/// Takes a range: `choose` says, for the next free value, where it begins and how long it is.
async fn move_row(cluster: &Cluster, table: &TableHandle, choose: impl Fn(u64) -> (u64, u64)) -> Result<u64> {
    let sequences = sequence_table(cluster).await?;
    let key = vec![row_key(table)];
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut tx = cluster.begin();
        let work = async {
            let rows = tx.read(&sequences, std::slice::from_ref(&key), &[1], Lock::Exclusive, false).await?;
            let stored = rows.into_iter().next().flatten().and_then(|row| row.into_iter().next().flatten());
            let known =
                stored.as_deref().and_then(|bytes| bytes.first_chunk::<8>().copied()).map(u64::from_le_bytes);
            let (first, count) = choose(known.unwrap_or(1));
            let next = first.saturating_add(count).to_le_bytes().to_vec();
            let operation = if known.is_some() { Operation::Update } else { Operation::Insert };
            let write = Write { operation, key: key.clone(), values: vec![(1, Some(next))] };
            tx.write(&sequences, &[write], true).await?;
            Ok::<u64, ndbapi::NdbError>(first)
        };
        match work.await {
            Ok(first) => return Ok(first),
            // Without data nodes trying again is the client's to decide: each try has waited for them
            // already.
            Err(e) if matches!(e.code(), Ndb::CLUSTER_FAILURE | Ndb::CLUSTER_UNAVAILABLE) => {
                return Err(to_mysql(&e, TABLE));
            }
            Err(e) if attempt < ATTEMPTS && (e.retryable() || e.code() == Ndb::TUPLE_EXISTS) => {
                tokio::time::sleep(std::time::Duration::from_millis(5 << attempt.min(6))).await;
            }
            Err(e) => return Err(to_mysql(&e, TABLE)),
        }
    }
}

/// The table of sequences, made on first use.
async fn sequence_table(cluster: &Cluster) -> Result<TableHandle> {
    if let Ok(table) = cluster.table(SYSTEM_DATABASE, TABLE).await {
        return Ok(table);
    }
    match cluster.create_database(SYSTEM_DATABASE).await {
        Err(e) if e.code() != Ndb::DATABASE_EXISTS => return Err(to_mysql(&e, TABLE)),
        _ => {}
    }
    let parsed = parse(CREATE.as_bytes(), ParseMode::default());
    let Ok(Stmt::CreateTable(create)) = parsed.map(|p| p.stmt) else {
        return Err(not_yet("sequences"));
    };
    let meta = TableMeta::build(&create, SYSTEM_DATABASE, &mut Warnings::new())?;
    match cluster.create_table(meta.definition(&create)).await {
        Ok(table) => Ok(table),
        Err(e) if e.code() == Ndb::TABLE_EXISTS => {
            cluster.table(SYSTEM_DATABASE, TABLE).await.map_err(|e| to_mysql(&e, TABLE))
        }
        Err(e) => Err::<TableHandle, MySqlError>(to_mysql(&e, TABLE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ErrorCode;

    #[test]
    fn those_who_waited_share_a_failure_and_those_who_come_later_try_again() {
        let mut range = Range::default();
        let waiting = Instant::now();
        range.share_failure(waiting).unwrap();
        let error = MySqlError::new(ErrorCode::OutOfResources);
        assert_eq!(range.renew(Err(error), 10).unwrap_err().code, 1041);
        assert_eq!(range.share_failure(waiting).unwrap_err().code, 1041);
        let (at, _) = range.failed.as_ref().unwrap();
        range.share_failure(*at + std::time::Duration::from_nanos(1)).unwrap();
        range.renew(Ok(7), 10).unwrap();
        assert_eq!((range.next, range.end), (7, 17));
        range.share_failure(waiting).unwrap();
    }
}
