//! Access: which rows of a table a statement must look at, and how changes get hold of them.
//!
//! A WHERE that fixes every column of the primary key (by `=`, or by IN on a key of one column) becomes key
//! operations; anything else is a scan with the filter applied here. The filter is always applied, so
//! choosing keys can only save work, never change an answer. A constant becomes a key only if it is stored
//! exactly as written; otherwise the scan compares it by MySQL's rules.
//!
//! UPDATE, DELETE and locking reads go in two steps: find candidates without locks, then lock each, read it
//! again and apply the filter once more. What changed in between is seen, so concurrent changes are exact.

use super::errors::to_mysql;
use super::rows::{decode, key_of};
use super::store::{Lock, StoredKey, Tx};
use super::{Env, MemoryBudget};
use crate::catalog::TableMeta;
use crate::expr::{BoundExpr, CmpOp, Node, SessionFacts};
use crate::value::storage::{StoreContext, store};
use crate::value::{Collation, MySqlError, Result, SqlMode, SqlType, Value, Warnings, number};

/// The most keys an IN list is turned into.
const KEYS_MAX: usize = 100_000;
/// How many candidates are locked in one round trip.
const LOCK_CHUNK: usize = 256;

/// How a table's rows are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// These keys, without duplicates.
    Keys(Vec<StoredKey>),
    /// All rows.
    Scan,
}

/// Chooses the access for a table whose columns begin at `offset` of the row.
///
/// # Errors
/// A constant of the filter cannot be evaluated.
pub fn choose(
    meta: &TableMeta,
    filter: Option<&BoundExpr>,
    offset: usize,
    env: &mut Env<'_>,
) -> Result<Access> {
    let Some(filter) = filter else { return Ok(Access::Scan) };
    let conjuncts = match &filter.node {
        Node::And(list) => list.as_slice(),
        _ => std::slice::from_ref(filter),
    };
    let mut parts: Vec<Vec<Vec<u8>>> = Vec::with_capacity(meta.primary_key.len());
    for &column in &meta.primary_key {
        let at = offset + usize::from(column);
        let ty = &meta.columns[usize::from(column)].ty;
        let mut found = None;
        for conjunct in conjuncts {
            if let Some(values) = constants(conjunct, at, ty, env)? {
                found = Some(values);
                break;
            }
        }
        match found {
            Some(values) => parts.push(values),
            None => return Ok(Access::Scan),
        }
    }
    if parts.iter().map(Vec::len).try_fold(1, usize::checked_mul).is_none_or(|n| n > KEYS_MAX) {
        return Ok(Access::Scan);
    }
    let mut keys: Vec<StoredKey> = vec![Vec::new()];
    for values in &parts {
        keys = keys
            .iter()
            .flat_map(|key| {
                values.iter().map(move |value| [key.as_slice(), std::slice::from_ref(value)].concat())
            })
            .collect();
    }
    // Keys that a collation holds equal are one row, which must not come twice.
    keys.sort_by_cached_key(|key| identity(meta, key));
    keys.dedup_by_key(|key| identity(meta, key));
    Ok(Access::Keys(keys))
}

/// What makes a key the same as another: its text by weight, everything else by its bytes.
pub fn identity(meta: &TableMeta, key: &StoredKey) -> Vec<Vec<u8>> {
    let part = |(&column, bytes): (&u16, &Vec<u8>)| {
        let ty = &meta.columns[usize::from(column)].ty;
        if ty.has_charset() && matches!(ty, SqlType::Char { .. } | SqlType::VarChar { .. }) {
            ty.collation().weight_string(bytes)
        } else {
            bytes.clone()
        }
    };
    meta.primary_key.iter().zip(key).map(part).collect()
}

/// The stored values a condition allows for a column; None if it does not restrict it to constants.
fn constants(
    condition: &BoundExpr,
    at: usize,
    ty: &SqlType,
    env: &mut Env<'_>,
) -> Result<Option<Vec<Vec<u8>>>> {
    let is_column = |e: &BoundExpr| matches!(e.node, Node::Column(c) if c == at);
    let (values, collation) = match &condition.node {
        Node::Compare(CmpOp::Eq, a, b, collation) if is_column(a) => (std::slice::from_ref(&**b), *collation),
        Node::Compare(CmpOp::Eq, a, b, collation) if is_column(b) => (std::slice::from_ref(&**a), *collation),
        Node::In(a, list, false, collation) if is_column(a) => (list.as_slice(), *collation),
        _ => return Ok(None),
    };
    let mut stored = Vec::with_capacity(values.len());
    for value in values {
        let mut uses_columns = false;
        value.for_each_column(&mut |_| uses_columns = true);
        if uses_columns {
            return Ok(None);
        }
        let value = value.eval(&[], &mut env.eval())?;
        match exact(&value, ty, collation, env) {
            Exact::Stored(bytes) => stored.push(bytes),
            Exact::Never => {}
            Exact::Unknown => return Ok(None),
        }
    }
    Ok(Some(stored))
}

enum Exact {
    /// Equal rows have exactly these bytes (or bytes that the key's collation holds equal).
    Stored(Vec<u8>),
    /// No row can be equal.
    Never,
    /// Only a comparison can tell.
    Unknown,
}

fn exact(value: &Value, ty: &SqlType, collation: Collation, env: &Env<'_>) -> Exact {
    let value = match (ty, value) {
        (_, Value::Null) => return Exact::Never,
        (SqlType::Int { .. }, Value::Int(_) | Value::UInt(_)) => value.clone(),
        (SqlType::Int { .. }, Value::Text(text)) => {
            let parsed = number::parse_int(text.as_bytes());
            match i64::try_from(parsed.value) {
                Ok(n) if parsed.clean => Value::Int(n),
                _ => return Exact::Unknown,
            }
        }
        (SqlType::Char { .. } | SqlType::VarChar { .. }, Value::Text(_)) if collation == ty.collation() => {
            value.clone()
        }
        (SqlType::VarBinary(_), Value::Text(_)) if collation.is_binary() => value.clone(),
        (SqlType::Decimal { .. }, Value::Int(_) | Value::UInt(_) | Value::Decimal(_))
        | (SqlType::Date, Value::Date(_))
        | (SqlType::DateTime { .. }, Value::DateTime(_))
        | (SqlType::Time { .. }, Value::Time(_)) => value.clone(),
        _ => return Exact::Unknown,
    };
    // Strict and without a single warning: the bytes say exactly what the constant says.
    let context =
        StoreContext { mode: SqlMode::STRICT_ALL_TABLES, zone: env.facts.time_zone(), column: "", row: 1 };
    let mut warnings = Warnings::new();
    let number = matches!(ty, SqlType::Int { .. });
    match store(&value, ty, &context, &mut warnings) {
        Ok(Some(bytes)) if warnings.is_empty() => Exact::Stored(bytes),
        Err(_) if number => Exact::Never,
        _ => Exact::Unknown,
    }
}

/// A row that is to be changed.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its key.
    pub key: StoredKey,
    /// Its values.
    pub row: Vec<Value>,
}

/// Whether a row satisfies a filter.
///
/// # Errors
/// The filter cannot be evaluated.
pub fn passes(filter: Option<&BoundExpr>, row: &[Value], env: &mut Env<'_>) -> Result<bool> {
    match filter {
        None => Ok(true),
        Some(filter) => Ok(filter.truth(row, &mut env.eval())? == Some(true)),
    }
}

/// Finds the rows a change may touch, without locks.
///
/// # Errors
/// The cluster's, the filter's, or 1038 when there are too many to keep.
pub async fn candidates(
    tx: &mut Tx,
    meta: &TableMeta,
    filter: Option<&BoundExpr>,
    keep_rows: bool,
    budget: &mut MemoryBudget,
    env: &mut Env<'_>,
) -> Result<Vec<Found>> {
    let handle = handle_of(meta)?;
    let keys = match choose(meta, filter, 0, env)? {
        Access::Keys(keys) if !keep_rows => {
            return Ok(keys.into_iter().map(|key| Found { key, row: Vec::new() }).collect());
        }
        Access::Keys(keys) => Some(keys),
        Access::Scan => None,
    };
    let columns = all_columns(meta);
    let mut found = Vec::new();
    let mut take =
        |stored: &super::store::StoredRow, env: &mut Env<'_>, budget: &mut MemoryBudget| -> Result<()> {
            let row = decode(meta, &columns, stored, env.facts)?;
            if passes(filter, &row, env)? {
                let key = key_of(meta, stored)?;
                budget.take(64 + key.iter().map(|k| k.len() + 24).sum::<usize>())?;
                if keep_rows {
                    budget.take_row(&row)?;
                }
                found.push(Found { key, row: if keep_rows { row } else { Vec::new() } });
            }
            Ok(())
        };
    match keys {
        Some(keys) => {
            let rows = tx.read(handle, &keys, &columns, Lock::Committed, false).await;
            for stored in rows.map_err(|e| to_mysql(&e, &meta.name))?.iter().flatten() {
                take(stored, env, budget)?;
            }
        }
        None => {
            let mut scan = tx.scan(handle, &columns).await.map_err(|e| to_mysql(&e, &meta.name))?;
            while let Some(rows) = scan.next().await.map_err(|e| to_mysql(&e, &meta.name))? {
                for stored in &rows {
                    take(stored, env, budget)?;
                }
            }
        }
    }
    Ok(found)
}

/// Locks the next candidates and gives back those that still satisfy the filter, with their values now.
///
/// # Errors
/// The cluster's or the filter's.
pub async fn lock_next(
    tx: &mut Tx,
    meta: &TableMeta,
    candidates: &mut Vec<Found>,
    filter: Option<&BoundExpr>,
    lock: Lock,
    env: &mut Env<'_>,
) -> Result<Vec<Found>> {
    let handle = handle_of(meta)?;
    let columns = all_columns(meta);
    let chunk: Vec<StoredKey> =
        candidates.drain(..candidates.len().min(LOCK_CHUNK)).map(|found| found.key).collect();
    let rows = tx.read(handle, &chunk, &columns, lock, false).await.map_err(|e| to_mysql(&e, &meta.name))?;
    let mut locked = Vec::with_capacity(chunk.len());
    for (key, stored) in chunk.into_iter().zip(rows) {
        let Some(stored) = stored else { continue };
        let row = decode(meta, &columns, &stored, env.facts)?;
        if passes(filter, &row, env)? {
            locked.push(Found { key, row });
        }
    }
    Ok(locked)
}

/// All columns of a table.
pub fn all_columns(meta: &TableMeta) -> Vec<u16> {
    (0..meta.columns.len() as u16).collect()
}

/// The table in the dictionary.
///
/// # Errors
/// The table does not exist yet.
pub fn handle_of(meta: &TableMeta) -> Result<&ndbapi::TableHandle> {
    meta.handle.as_ref().ok_or_else(|| MySqlError::no_such_table(&meta.schema, &meta.name))
}
