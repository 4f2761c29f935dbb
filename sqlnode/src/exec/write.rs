//! Changes: INSERT, REPLACE, UPDATE, DELETE.
//!
//! A plain INSERT outside of a transaction travels with its commit, one round trip for any number of rows.
//! UPDATE and DELETE lock the rows they find, look at them again and change them (see [`super::access`]).
//! What one statement changes is undone by the session when the statement fails.

use std::collections::HashSet;
use std::sync::Arc;

use signals::ErrorCode as Ndb;
use signals::keyop::Operation;

use super::access::{Found, candidates, handle_of, lock_next};
use super::errors::to_mysql;
use super::rows::{Encoder, implicit_default};
use super::select::compare_values;
use super::store::{Lock, StoredKey, Tx, Write};
use super::{Env, MemoryBudget};
use crate::catalog::{ColumnDefault, TableMeta};
use crate::expr::{BoundExpr, EvalContext, SessionFacts};
use crate::plan::LimitValue;
use crate::value::{Collation, ErrorCode, MySqlError, Result, Value, cast};

/// What a change did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Rows found (for UPDATE) or worked on.
    pub found: u64,
    /// Rows changed, as MySQL counts.
    pub affected: u64,
    /// Rows of an INSERT that were there already.
    pub duplicates: u64,
    /// The first generated AUTO_INCREMENT value.
    pub insert_id: u64,
}

/// One value of an INSERT's row.
#[derive(Debug, Clone)]
pub enum InsertValue {
    /// Computed.
    Expr(BoundExpr),
    /// DEFAULT.
    Default,
}

/// What INSERT does with a row whose key exists.
#[derive(Debug, Clone)]
pub enum OnDuplicate {
    /// Fails.
    Error,
    /// IGNORE: leaves the old row, warns.
    Ignore,
    /// REPLACE.
    Replace,
    /// ON DUPLICATE KEY UPDATE: column and value.
    Update(Vec<(usize, BoundExpr)>),
}

/// A planned INSERT.
#[derive(Debug, Clone)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<TableMeta>,
    /// The columns that get values, in the values' order.
    pub columns: Vec<usize>,
    /// The rows.
    pub rows: Vec<Vec<InsertValue>>,
    /// What happens to duplicates.
    pub on_duplicate: OnDuplicate,
    /// IGNORE: bad values are adjusted.
    pub lenient: bool,
}

/// A planned UPDATE or DELETE.
#[derive(Debug, Clone)]
pub struct ChangePlan {
    /// The table.
    pub table: Arc<TableMeta>,
    /// SET: column and value; None for DELETE.
    pub set: Option<Vec<(usize, BoundExpr)>>,
    /// WHERE.
    pub filter: Option<BoundExpr>,
    /// ORDER BY, with true for DESC.
    pub order: Vec<(BoundExpr, bool)>,
    /// LIMIT.
    pub limit: Option<LimitValue>,
    /// IGNORE.
    pub lenient: bool,
}

/// Hands out AUTO_INCREMENT values.
pub trait Counter {
    /// The first of `count` new values.
    fn next(&self, table: &TableMeta, count: u64) -> impl Future<Output = Result<u64>> + Send;
    /// Makes sure that values up to `value`, given by a client, are not handed out.
    fn seen(&self, table: &TableMeta, value: u64) -> impl Future<Output = Result<()>> + Send;
}

/// A row on its way into the table.
struct NewRow {
    values: Vec<Value>,
    write: Write,
}

fn insert_write(meta: &TableMeta, stored: Vec<Option<Vec<u8>>>, operation: Operation) -> Result<Write> {
    let key: Option<StoredKey> = meta.primary_key.iter().map(|&c| stored[usize::from(c)].clone()).collect();
    let key = key.ok_or_else(|| MySqlError::internal("a new row has no key"))?;
    let values = stored.into_iter().enumerate().filter(|(i, _)| !meta.is_key(*i));
    Ok(Write { operation, key, values: values.map(|(i, v)| (i as u16, v)).collect() })
}

/// Runs an INSERT or REPLACE. With `last`, the transaction is the statement's own and may be committed with
/// it.
///
/// # Errors
/// Whatever goes wrong.
pub async fn insert<C: Counter + Sync>(
    plan: &InsertPlan,
    tx: &mut Tx,
    env: &mut Env<'_>,
    counter: &C,
    last: bool,
) -> Result<Changed> {
    let meta = &*plan.table;
    let handle = handle_of(meta)?;
    let mut changed = Changed::default();
    let rows = new_rows(plan, env, counter, &mut changed).await?;
    let fail = |e: &ndbapi::NdbError| to_mysql(e, &meta.name);
    match &plan.on_duplicate {
        OnDuplicate::Error => {
            let writes: Vec<Write> = rows.iter().map(|row| row.write.clone()).collect();
            let results = tx.write(handle, &writes, last).await;
            let results = match results {
                Err(e) if e.code() == Ndb::TUPLE_EXISTS => return Err(find_duplicate(meta, &rows, env).await),
                other => other.map_err(|e| fail(&e))?,
            };
            for (row, result) in rows.iter().zip(results) {
                result.map_err(|e| duplicate_or(&e, meta, row))?;
            }
            changed.affected = rows.len() as u64;
        }
        OnDuplicate::Ignore => {
            let writes: Vec<Write> = rows.iter().map(|row| row.write.clone()).collect();
            let results = tx.write(handle, &writes, false).await.map_err(|e| fail(&e))?;
            for (row, result) in rows.iter().zip(results) {
                match result {
                    Ok(()) => changed.affected += 1,
                    Err(e) if e.code() == Ndb::TUPLE_EXISTS => {
                        changed.duplicates += 1;
                        env.warnings.warn(duplicate_or(&e, meta, row));
                    }
                    Err(e) => return Err(fail(&e)),
                }
            }
        }
        OnDuplicate::Replace => {
            for row in &rows {
                let there = read_locked(meta, &row.write.key, tx).await?.is_some();
                let mut write = row.write.clone();
                write.operation = Operation::Write;
                one(tx, meta, &write).await?;
                changed.affected += 1 + u64::from(there);
                changed.duplicates += u64::from(there);
            }
        }
        OnDuplicate::Update(set) => {
            for (i, row) in rows.iter().enumerate() {
                update_on_duplicate(plan, set, row, i as u64 + 1, tx, env, &mut changed).await?;
            }
        }
    }
    changed.found = rows.len() as u64;
    Ok(changed)
}

async fn one(tx: &mut Tx, meta: &TableMeta, write: &Write) -> Result<()> {
    let results = tx.write(handle_of(meta)?, std::slice::from_ref(write), false).await;
    let results = results.map_err(|e| to_mysql(&e, &meta.name))?;
    results.into_iter().try_for_each(|r| r.map_err(|e| to_mysql(&e, &meta.name)))
}

async fn read_locked(
    meta: &TableMeta,
    key: &StoredKey,
    tx: &mut Tx,
) -> Result<Option<super::store::StoredRow>> {
    let columns = super::access::all_columns(meta);
    let rows = tx.read(handle_of(meta)?, std::slice::from_ref(key), &columns, Lock::Exclusive, false).await;
    Ok(rows.map_err(|e| to_mysql(&e, &meta.name))?.pop().flatten())
}

async fn update_on_duplicate(
    plan: &InsertPlan,
    set: &[(usize, BoundExpr)],
    new: &NewRow,
    number: u64,
    tx: &mut Tx,
    env: &mut Env<'_>,
    changed: &mut Changed,
) -> Result<()> {
    let meta = &*plan.table;
    let Some(stored) = read_locked(meta, &new.write.key, tx).await? else {
        one(tx, meta, &new.write).await?;
        changed.affected += 1;
        return Ok(());
    };
    changed.duplicates += 1;
    let row = super::rows::decode(meta, &super::access::all_columns(meta), &stored, env.facts)?;
    let found = Found { key: new.write.key.clone(), row };
    let (writes, different) = updated(meta, set, &found, &new.values, number, plan.lenient, env)?;
    for write in &writes {
        one(tx, meta, write).await?;
    }
    let counts_found = env.facts.found_rows_wanted();
    changed.affected += if different { 2 } else { u64::from(counts_found) };
    Ok(())
}

/// Evaluates the rows of an INSERT and gives them their generated values.
async fn new_rows<C: Counter + Sync>(
    plan: &InsertPlan,
    env: &mut Env<'_>,
    counter: &C,
    changed: &mut Changed,
) -> Result<Vec<NewRow>> {
    let meta = &*plan.table;
    let mut budget = MemoryBudget::new(env.facts.statement_memory());
    let counting = meta.counting_column();
    let mut all = Vec::with_capacity(plan.rows.len());
    let mut missing = 0;
    for row in &plan.rows {
        let values = evaluate(plan, row, env)?;
        budget.take_row(&values)?;
        missing += u64::from(counting.is_some_and(|at| wants_number(&values[at], env)));
        all.push(values);
    }
    let mut next = if missing > 0 { counter.next(meta, missing).await? } else { 0 };
    if missing > 0 && counting.is_some_and(|at| meta.columns[at].auto_increment) {
        changed.insert_id = next;
    }
    let mut rows = Vec::with_capacity(all.len());
    let mut highest = 0;
    for (i, mut values) in all.into_iter().enumerate() {
        if let Some(at) = counting {
            if wants_number(&values[at], env) {
                values[at] = Value::UInt(next);
                next += 1;
            } else if let Ok(given) = u64::try_from(cast::to_int(&values[at], env.warnings)) {
                highest = highest.max(given);
            }
        }
        let encoder = Encoder { meta, facts: env.facts, row: i as u64 + 1, lenient: plan.lenient };
        let stored = values.iter().enumerate().map(|(at, value)| encoder.column(at, value, env.warnings));
        let stored = stored.collect::<Result<Vec<_>>>()?;
        let write = insert_write(meta, stored, Operation::Insert)?;
        rows.push(NewRow { values, write });
    }
    if highest > 0 {
        counter.seen(meta, highest).await?;
    }
    Ok(rows)
}

/// Whether a counting column's value is to be generated.
fn wants_number(value: &Value, env: &Env<'_>) -> bool {
    use crate::value::SqlMode;
    match value {
        Value::Null => true,
        Value::Int(0) | Value::UInt(0) => !env.facts.sql_mode().contains(SqlMode::NO_AUTO_VALUE_ON_ZERO),
        _ => false,
    }
}

fn evaluate(plan: &InsertPlan, row: &[InsertValue], env: &mut Env<'_>) -> Result<Vec<Value>> {
    let meta = &*plan.table;
    let mut values: Vec<Option<Value>> = vec![None; meta.columns.len()];
    for (&column, value) in plan.columns.iter().zip(row) {
        if let InsertValue::Expr(expr) = value {
            let mut ctx = env.eval();
            ctx.writing = true;
            values[column] = Some(expr.eval(&[], &mut ctx)?);
        }
    }
    let given = |at: usize| plan.columns.contains(&at);
    values
        .into_iter()
        .enumerate()
        .map(|(at, value)| match value {
            Some(value) => Ok(value),
            None => default_value(meta, at, given(at), plan.lenient, env),
        })
        .collect()
}

/// What a column gets that a statement names no value for.
fn default_value(
    meta: &TableMeta,
    at: usize,
    asked: bool,
    lenient: bool,
    env: &mut Env<'_>,
) -> Result<Value> {
    let column = &meta.columns[at];
    match &column.default {
        ColumnDefault::Value(value) => Ok(value.clone()),
        ColumnDefault::Now { fsp } => Ok(Value::DateTime(env.eval().now(*fsp))),
        ColumnDefault::None if column.nullable || column.auto_increment || column.hidden => Ok(Value::Null),
        ColumnDefault::None => {
            let error = MySqlError::with(ErrorCode::NoDefaultForField, &[&column.name]);
            if asked || (env.facts.sql_mode().is_strict() && !lenient) {
                return Err(error);
            }
            env.warnings.warn(error);
            Ok(implicit_default(&column.ty))
        }
    }
}

/// 1062 with the row's key, or the error as it is.
fn duplicate_or(error: &ndbapi::NdbError, meta: &TableMeta, row: &NewRow) -> MySqlError {
    if error.code() != Ndb::TUPLE_EXISTS {
        return to_mysql(error, &meta.name);
    }
    let text = |&c: &u16| {
        cast::to_text(&row.values[usize::from(c)], Collation::UTF8MB4_BIN).to_str_lossy().into_owned()
    };
    let key: Vec<String> = meta.primary_key.iter().map(text).collect();
    MySqlError::with(ErrorCode::DupEntry, &[&key.join("-"), &format!("{}.PRIMARY", meta.name)])
}

/// The row that made a whole INSERT fail: one that stands twice in it, or one whose key is in the table.
async fn find_duplicate(meta: &TableMeta, rows: &[NewRow], env: &Env<'_>) -> MySqlError {
    let exists = ndbapi::NdbError::new(Ndb::TUPLE_EXISTS);
    if let [only] = rows {
        return duplicate_or(&exists, meta, only);
    }
    let mut seen = HashSet::new();
    if let Some(row) = rows.iter().find(|row| !seen.insert(super::access::identity(meta, &row.write.key))) {
        return duplicate_or(&exists, meta, row);
    }
    let keys: Vec<StoredKey> = rows.iter().map(|row| row.write.key.clone()).collect();
    let Ok(handle) = handle_of(meta) else { return to_mysql(&exists, &meta.name) };
    let Ok(cluster) = env.facts.node.cluster() else { return to_mysql(&exists, &meta.name) };
    let mut fresh = cluster.begin();
    let there = fresh.read(handle, &keys, &meta.primary_key, Lock::Committed, true).await.unwrap_or_default();
    let found = rows.iter().zip(&there).find(|(_, stored)| stored.is_some());
    found.map_or_else(|| to_mysql(&exists, &meta.name), |(row, _)| duplicate_or(&exists, meta, row))
}

/// Runs an UPDATE or DELETE.
///
/// # Errors
/// Whatever goes wrong.
pub async fn change(plan: &ChangePlan, tx: &mut Tx, env: &mut Env<'_>) -> Result<Changed> {
    let meta = &*plan.table;
    let handle = handle_of(meta)?;
    let filter = plan.filter.as_ref();
    let mut budget = MemoryBudget::new(env.facts.statement_memory());
    let limit = plan.limit.map(|limit| limit.get(env.params)).transpose()?.unwrap_or(u64::MAX);
    let ordered = !plan.order.is_empty();
    let mut pending = candidates(tx, meta, filter, ordered, &mut budget, env).await?;
    if ordered {
        sort_candidates(&plan.order, &mut pending, env)?;
    }
    let mut changed = Changed::default();
    while !pending.is_empty() && changed.found < limit {
        let mut locked = lock_next(tx, meta, &mut pending, filter, Lock::Exclusive, env).await?;
        locked.truncate(usize::try_from(limit - changed.found).unwrap_or(usize::MAX));
        let mut writes = Vec::with_capacity(locked.len());
        for found in &locked {
            changed.found += 1;
            match &plan.set {
                None => {
                    changed.affected += 1;
                    writes.push(Write {
                        operation: Operation::Delete,
                        key: found.key.clone(),
                        values: vec![],
                    });
                }
                Some(set) => {
                    let (more, different) = updated(meta, set, found, &[], changed.found, plan.lenient, env)?;
                    changed.affected += u64::from(different);
                    writes.extend(more);
                }
            }
        }
        let results = tx.write(handle, &writes, false).await.map_err(|e| to_mysql(&e, &meta.name))?;
        for (write, result) in writes.iter().zip(results) {
            result.map_err(|e| moved_error(&e, meta, write, env))?;
        }
    }
    Ok(changed)
}

fn moved_error(error: &ndbapi::NdbError, meta: &TableMeta, write: &Write, env: &Env<'_>) -> MySqlError {
    if error.code() != Ndb::TUPLE_EXISTS {
        return to_mysql(error, &meta.name);
    }
    let part = |(&c, bytes): (&u16, &Vec<u8>)| {
        let ty = &meta.columns[usize::from(c)].ty;
        let value = crate::value::storage::load(bytes, ty, env.facts.time_zone()).unwrap_or_default();
        cast::to_text(&value, Collation::UTF8MB4_BIN).to_str_lossy().into_owned()
    };
    let key: Vec<String> = meta.primary_key.iter().zip(&write.key).map(part).collect();
    MySqlError::with(ErrorCode::DupEntry, &[&key.join("-"), &format!("{}.PRIMARY", meta.name)])
}

fn sort_candidates(order: &[(BoundExpr, bool)], pending: &mut [Found], env: &mut Env<'_>) -> Result<()> {
    let mut keyed = Vec::with_capacity(pending.len());
    for found in pending.iter() {
        let mut keys = Vec::with_capacity(order.len());
        for (expr, _) in order {
            keys.push(expr.eval_typed(&found.row, &mut env.eval())?);
        }
        keyed.push((keys, found.clone()));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let by = a.iter().zip(b).zip(order).map(|((a, b), (_, desc))| {
            let by = compare_values(a, b);
            if *desc { by.reverse() } else { by }
        });
        by.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    pending.iter_mut().zip(keyed).for_each(|(slot, (_, found))| *slot = found);
    Ok(())
}

/// The writes that an UPDATE of one row takes, and whether anything becomes different.
fn updated(
    meta: &TableMeta,
    set: &[(usize, BoundExpr)],
    found: &Found,
    new_row: &[Value],
    number: u64,
    lenient: bool,
    env: &mut Env<'_>,
) -> Result<(Vec<Write>, bool)> {
    let encoder = Encoder { meta, facts: env.facts, row: number, lenient };
    let mut row = found.row.clone();
    let mut touched: Vec<(usize, Option<Vec<u8>>)> = Vec::with_capacity(set.len());
    let mut different = false;
    for (column, expr) in set {
        let value = {
            let mut ctx: EvalContext<'_> = env.eval();
            ctx.writing = true;
            ctx.new_row = new_row;
            expr.eval(&row, &mut ctx)?
        };
        let bytes = encoder.column(*column, &value, env.warnings)?;
        let before = encoder.column(*column, &found.row[*column], &mut crate::value::Warnings::new())?;
        different |= bytes != before;
        // Later assignments see the new value, as in MySQL.
        row[*column] = match &bytes {
            None => Value::Null,
            Some(bytes) => {
                crate::value::storage::load(bytes, &meta.columns[*column].ty, env.facts.time_zone())?
            }
        };
        touched.retain(|(c, _)| c != column);
        touched.push((*column, bytes));
    }
    if !different {
        return Ok((Vec::new(), false));
    }
    for (at, column) in meta.columns.iter().enumerate() {
        if column.on_update_now && !touched.iter().any(|(c, _)| *c == at) {
            let fsp = column.ty.decimals();
            let now = Value::DateTime(env.eval().now(fsp));
            row[at] = now.clone();
            touched.push((at, encoder.column(at, &now, env.warnings)?));
        }
    }
    if touched.iter().any(|(c, _)| meta.is_key(*c)) {
        let stored = row.iter().enumerate().map(|(at, v)| encoder.column(at, v, env.warnings));
        let insert = insert_write(meta, stored.collect::<Result<_>>()?, Operation::Insert)?;
        if insert.key != found.key {
            let delete = Write { operation: Operation::Delete, key: found.key.clone(), values: vec![] };
            return Ok((vec![delete, insert], true));
        }
    }
    let values = touched.into_iter().filter(|(c, _)| !meta.is_key(*c)).map(|(c, v)| (c as u16, v)).collect();
    Ok((vec![Write { operation: Operation::Update, key: found.key.clone(), values }], true))
}
