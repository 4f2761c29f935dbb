//! SELECT: rows from their sources through filter, groups, order and limit to the client.
//!
//! A query that neither groups nor sorts is streamed: rows go out while the scan is still running, and a
//! LIMIT ends it early. Everything else is gathered within the statement's memory budget. Joins read their
//! right sides once, keep them, and loop.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::access::{Access, all_columns, candidates, choose, handle_of, lock_next, passes};
use super::errors::to_mysql;
use super::rows::decode;
use super::store::{Lock, RowScan, Tx};
use super::{Env, MemoryBudget};
use crate::catalog::TableMeta;
use crate::expr::Accumulator;
use crate::plan::{Relation, SelectPlan, SortKey, Source};
use crate::protocol::{ResultWriter, StatusFlags};
use crate::value::{Collation, Result, Value, compare};

/// Where result rows go.
pub trait RowSink {
    /// Takes a row.
    fn row(&mut self, row: &[Value]) -> impl Future<Output = Result<()>> + Send;
}

impl RowSink for ResultWriter<'_> {
    async fn row(&mut self, row: &[Value]) -> Result<()> {
        ResultWriter::row(self, row).await
    }
}

impl RowSink for Vec<Vec<Value>> {
    async fn row(&mut self, row: &[Value]) -> Result<()> {
        self.push(row.to_vec());
        Ok(())
    }
}

/// Rows skipped and rows still wanted.
struct Window {
    skip: u64,
    left: u64,
    found: u64,
    count_all: bool,
}

impl Window {
    fn new(plan: &SelectPlan, params: &[Value]) -> Result<Self> {
        let (skip, left) = match plan.limit {
            Some((offset, count)) => (offset.get(params)?, count.get(params)?),
            None => (0, u64::MAX),
        };
        Ok(Self { skip, left, found: 0, count_all: plan.calc_found_rows })
    }

    /// Whether the next row goes out.
    fn admit(&mut self) -> bool {
        self.found += 1;
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let admitted = self.left > 0;
        self.left = self.left.saturating_sub(1);
        admitted
    }

    fn is_full(&self) -> bool {
        self.left == 0 && !self.count_all
    }
}

/// Runs a plan and answers the client; gives back how many rows there were.
///
/// # Errors
/// Whatever goes wrong; columns may have been sent by then.
pub async fn run(
    plan: &SelectPlan,
    tx: &mut Tx,
    env: &mut Env<'_>,
    out: &mut ResultWriter<'_>,
    status: StatusFlags,
) -> Result<u64> {
    let window = Window::new(plan, env.params)?;
    out.begin_rows(&plan.columns, status).await?;
    let own = env.facts.own_transaction;
    let found = execute(plan, tx, env, out, window, own).await?;
    out.end_rows(status, env.warnings.count_u16()).await?;
    Ok(found)
}

/// Runs a plan into memory.
///
/// # Errors
/// Whatever goes wrong.
pub async fn collect(plan: &SelectPlan, tx: &mut Tx, env: &mut Env<'_>) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let window = Window::new(plan, env.params)?;
    execute(plan, tx, env, &mut rows, window, false).await?;
    Ok(rows)
}

async fn execute<S: RowSink>(
    plan: &SelectPlan,
    tx: &mut Tx,
    env: &mut Env<'_>,
    sink: &mut S,
    mut window: Window,
    own: bool,
) -> Result<u64> {
    let mut budget = MemoryBudget::new(env.facts.statement_memory());
    if window.left == 0 && !window.count_all && plan.aggs.is_empty() {
        return Ok(0);
    }
    let mut source = RowSource::open(plan, tx, env, &mut budget, own).await?;
    if plan.aggs.is_empty() && plan.group.is_empty() {
        if plan.order.is_empty() {
            stream(plan, &mut source, env, sink, &mut window, &mut budget).await?;
        } else {
            let mut kept = Vec::new();
            while let Some(rows) = source.next(env).await? {
                for row in rows {
                    keep(plan, &row, &[], env, &mut kept, &mut budget)?;
                }
            }
            emit_sorted(plan, kept, sink, &mut window).await?;
        }
    } else {
        let kept = aggregate(plan, &mut source, env, &mut budget).await?;
        emit_sorted(plan, kept, sink, &mut window).await?;
    }
    Ok(window.found)
}

async fn stream<S: RowSink>(
    plan: &SelectPlan,
    source: &mut RowSource<'_>,
    env: &mut Env<'_>,
    sink: &mut S,
    window: &mut Window,
    budget: &mut MemoryBudget,
) -> Result<()> {
    let mut seen = HashSet::new();
    while let Some(rows) = source.next(env).await? {
        for row in rows {
            if !passes(plan.having.as_ref(), &row, env)? {
                continue;
            }
            let result = project(plan, &row, &[], env)?;
            if plan.distinct && !is_new(&result, &mut seen, budget)? {
                continue;
            }
            if window.admit() {
                sink.row(&result).await?;
            }
            if window.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn project(plan: &SelectPlan, row: &[Value], aggs: &[Value], env: &mut Env<'_>) -> Result<Vec<Value>> {
    let mut ctx = env.eval();
    ctx.aggs = aggs;
    plan.items.iter().map(|item| item.eval_typed(row, &mut ctx)).collect()
}

fn is_new(row: &[Value], seen: &mut HashSet<Vec<u8>>, budget: &mut MemoryBudget) -> Result<bool> {
    let key = group_key(row);
    budget.take(key.len() + 48)?;
    Ok(seen.insert(key))
}

fn group_key(values: &[Value]) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        compare::append_group_key(value, value.collation().unwrap_or(Collation::BINARY), &mut key);
    }
    key
}

/// A result row and what it is sorted by.
struct Kept {
    keys: Vec<Value>,
    row: Vec<Value>,
}

fn keep(
    plan: &SelectPlan,
    row: &[Value],
    aggs: &[Value],
    env: &mut Env<'_>,
    kept: &mut Vec<Kept>,
    budget: &mut MemoryBudget,
) -> Result<()> {
    if let Some(having) = &plan.having {
        let mut ctx = env.eval();
        ctx.aggs = aggs;
        if having.truth(row, &mut ctx)? != Some(true) {
            return Ok(());
        }
    }
    let result = project(plan, row, aggs, env)?;
    let mut keys = Vec::with_capacity(plan.order.len());
    for (key, _) in &plan.order {
        keys.push(match key {
            SortKey::Item(i) => result.get(*i).cloned().unwrap_or_default(),
            SortKey::Expr(expr) => {
                let mut ctx = env.eval();
                ctx.aggs = aggs;
                expr.eval_typed(row, &mut ctx)?
            }
        });
    }
    budget.take_row(&result)?;
    budget.take_row(&keys)?;
    kept.push(Kept { keys, row: result });
    Ok(())
}

async fn emit_sorted<S: RowSink>(
    plan: &SelectPlan,
    mut kept: Vec<Kept>,
    sink: &mut S,
    window: &mut Window,
) -> Result<()> {
    kept.sort_by(|a, b| order_of(&plan.order, &a.keys, &b.keys));
    let mut seen = HashSet::new();
    for Kept { row, .. } in kept {
        if plan.distinct && !seen.insert(group_key(&row)) {
            continue;
        }
        if window.admit() {
            sink.row(&row).await?;
        }
        if window.is_full() {
            break;
        }
    }
    Ok(())
}

fn order_of(order: &[(SortKey, bool)], a: &[Value], b: &[Value]) -> Ordering {
    for ((a, b), (_, desc)) in a.iter().zip(b).zip(order) {
        let by = compare_values(a, b);
        if by != Ordering::Equal {
            return if *desc { by.reverse() } else { by };
        }
    }
    Ordering::Equal
}

/// How two values sort: NULL first, text by its collation.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    compare::sort_order(a, b, a.collation().or(b.collation()).unwrap_or(Collation::BINARY))
}

/// A group: its first row, for columns that are the same in all its rows, and its aggregates.
struct Group {
    row: Vec<Value>,
    accumulators: Vec<Accumulator>,
}

async fn aggregate(
    plan: &SelectPlan,
    source: &mut RowSource<'_>,
    env: &mut Env<'_>,
    budget: &mut MemoryBudget,
) -> Result<Vec<Kept>> {
    let new_group = |row: &[Value]| Group {
        row: row.to_vec(),
        accumulators: plan.aggs.iter().map(Accumulator::new).collect(),
    };
    let mut groups: Vec<Group> = Vec::new();
    let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
    while let Some(rows) = source.next(env).await? {
        for row in rows {
            let mut values = Vec::with_capacity(plan.group.len());
            for expr in &plan.group {
                values.push(expr.eval_typed(&row, &mut env.eval())?);
            }
            let key = group_key(&values);
            let at = match index.get(&key) {
                Some(&at) => at,
                None => {
                    budget.take_row(&row)?;
                    budget.take(key.len() + 160 * (plan.aggs.len() + 1))?;
                    groups.push(new_group(&row));
                    index.insert(key, groups.len() - 1);
                    groups.len() - 1
                }
            };
            for (accumulator, spec) in groups[at].accumulators.iter_mut().zip(&plan.aggs) {
                accumulator.add(spec, &row, &mut env.eval())?;
            }
        }
    }
    if groups.is_empty() && plan.group.is_empty() {
        groups.push(new_group(&vec![Value::Null; source.width]));
    }
    let mut kept = Vec::with_capacity(groups.len());
    for group in groups {
        let mut results = Vec::with_capacity(plan.aggs.len());
        for (accumulator, spec) in group.accumulators.into_iter().zip(&plan.aggs) {
            results.push(accumulator.finish(spec, &mut env.eval())?);
        }
        keep(plan, &group.row, &results, env, &mut kept, budget)?;
    }
    Ok(kept)
}

/// Rows of the first source, as they come.
enum Leading {
    /// In memory.
    Ready(Vec<Vec<Value>>),
    Scan {
        scan: RowScan,
        columns: Vec<u16>,
    },
    Done,
}

/// Joined and filtered rows, batch by batch.
struct RowSource<'a> {
    plan: &'a SelectPlan,
    width: usize,
    leading: Leading,
    /// The rows of the other sources.
    others: Vec<Vec<Vec<Value>>>,
}

impl<'a> RowSource<'a> {
    async fn open(
        plan: &'a SelectPlan,
        tx: &mut Tx,
        env: &mut Env<'_>,
        budget: &mut MemoryBudget,
        own: bool,
    ) -> Result<RowSource<'a>> {
        let width = plan.sources.iter().map(|s| s.width).sum();
        let used = used_columns(plan);
        let mut others = Vec::new();
        for source in plan.sources.iter().skip(1) {
            let mut rows = Vec::new();
            let mut leading = lead(plan, source, &used, tx, env, budget, own).await?;
            while let Some(batch) = advance(&mut leading, source, env).await? {
                for row in batch {
                    budget.take_row(&row)?;
                    rows.push(row);
                }
            }
            others.push(rows);
        }
        let leading = match plan.sources.first() {
            None => Leading::Ready(vec![Vec::new()]),
            Some(source) => lead(plan, source, &used, tx, env, budget, own).await?,
        };
        Ok(RowSource { plan, width, leading, others })
    }

    /// The next rows that satisfy joins and WHERE; None at the end. May be an empty batch.
    async fn next(&mut self, env: &mut Env<'_>) -> Result<Option<Vec<Vec<Value>>>> {
        let rows = match self.plan.sources.first() {
            Some(source) => advance(&mut self.leading, source, env).await?,
            None => match std::mem::replace(&mut self.leading, Leading::Done) {
                Leading::Ready(rows) => Some(rows),
                Leading::Scan { .. } | Leading::Done => None,
            },
        };
        let Some(mut rows) = rows else { return Ok(None) };
        for (source, others) in self.plan.sources.iter().skip(1).zip(&self.others) {
            rows = join(rows, source, others, env)?;
        }
        if let Some(filter) = &self.plan.filter {
            let mut kept = Vec::with_capacity(rows.len());
            for row in rows {
                if filter.truth(&row, &mut env.eval())? == Some(true) {
                    kept.push(row);
                }
            }
            rows = kept;
        }
        Ok(Some(rows))
    }
}

fn join(
    left: Vec<Vec<Value>>,
    source: &Source,
    right: &[Vec<Value>],
    env: &mut Env<'_>,
) -> Result<Vec<Vec<Value>>> {
    let mut joined = Vec::new();
    for row in left {
        let mut matched = false;
        for other in right {
            let candidate = [row.as_slice(), other.as_slice()].concat();
            if passes(source.on.as_ref(), &candidate, env)? {
                matched = true;
                joined.push(candidate);
            }
        }
        if !matched && source.outer {
            let mut alone = row;
            alone.resize(alone.len() + source.width, Value::Null);
            joined.push(alone);
        }
    }
    Ok(joined)
}

async fn lead(
    plan: &SelectPlan,
    source: &Source,
    used: &[bool],
    tx: &mut Tx,
    env: &mut Env<'_>,
    budget: &mut MemoryBudget,
    own: bool,
) -> Result<Leading> {
    let meta = match &source.relation {
        Relation::Virtual(table) => return Ok(Leading::Ready(table.rows.clone())),
        Relation::Table(meta) => meta,
    };
    if let Some(locking) = &plan.locking {
        let lock = if locking.exclusive { Lock::Exclusive } else { Lock::Shared };
        return locked(plan, meta, lock, tx, env, budget).await;
    }
    let columns: Vec<u16> =
        all_columns(meta).into_iter().filter(|&c| used[source.offset + usize::from(c)]).collect();
    let filter = if source.outer { None } else { plan.filter.as_ref() };
    let handle = handle_of(meta)?;
    let fail = |e: &ndbapi::NdbError| to_mysql(e, &meta.name);
    match choose(meta, filter, source.offset, env)? {
        Access::Keys(keys) if keys.is_empty() => Ok(Leading::Done),
        Access::Keys(keys) => {
            let last = own && plan.sources.len() == 1;
            let stored =
                tx.read(handle, &keys, &columns, Lock::Committed, last).await.map_err(|e| fail(&e))?;
            let mut rows = Vec::with_capacity(stored.len());
            for stored in stored.iter().flatten() {
                let row = decode(meta, &columns, stored, env.facts)?;
                budget.take_row(&row)?;
                rows.push(row);
            }
            Ok(Leading::Ready(rows))
        }
        Access::Scan => {
            let scan = tx.scan(handle, &columns).await.map_err(|e| fail(&e))?;
            Ok(Leading::Scan { scan, columns })
        }
    }
}

/// Rows for FOR UPDATE and FOR SHARE: found, locked, and looked at again.
async fn locked(
    plan: &SelectPlan,
    meta: &TableMeta,
    lock: Lock,
    tx: &mut Tx,
    env: &mut Env<'_>,
    budget: &mut MemoryBudget,
) -> Result<Leading> {
    let filter = if plan.sources.len() == 1 { plan.filter.as_ref() } else { None };
    let mut pending = candidates(tx, meta, filter, false, budget, env).await?;
    let mut rows = Vec::new();
    while !pending.is_empty() {
        for found in lock_next(tx, meta, &mut pending, filter, lock, env).await? {
            budget.take_row(&found.row)?;
            rows.push(found.row);
        }
    }
    Ok(Leading::Ready(rows))
}

async fn advance(
    leading: &mut Leading,
    source: &Source,
    env: &mut Env<'_>,
) -> Result<Option<Vec<Vec<Value>>>> {
    match leading {
        Leading::Done => Ok(None),
        Leading::Ready(rows) => {
            let rows = std::mem::take(rows);
            *leading = Leading::Done;
            Ok(Some(rows))
        }
        Leading::Scan { scan, columns } => {
            let Relation::Table(meta) = &source.relation else { return Ok(None) };
            let Some(stored) = scan.next().await.map_err(|e| to_mysql(&e, &meta.name))? else {
                return Ok(None);
            };
            let rows =
                stored.iter().map(|stored| decode(meta, columns, stored, env.facts)).collect::<Result<_>>();
            Ok(Some(rows?))
        }
    }
}

/// Which columns of the joined row any expression reads; the others are not fetched.
fn used_columns(plan: &SelectPlan) -> Vec<bool> {
    let width = plan.sources.iter().map(|s| s.width).sum();
    let mut used = vec![false; width];
    let mut mark = |at: usize| {
        if let Some(used) = used.get_mut(at) {
            *used = true;
        }
    };
    let sort =
        plan.order.iter().filter_map(|(key, _)| if let SortKey::Expr(e) = key { Some(e) } else { None });
    let aggs = plan.aggs.iter().flat_map(|agg| agg.args.iter().chain(agg.order.iter().map(|(e, _)| e)));
    let joins = plan.sources.iter().filter_map(|s| s.on.as_ref());
    let all = plan.items.iter().chain(&plan.filter).chain(&plan.group).chain(&plan.having).chain(sort);
    all.chain(aggs).chain(joins).for_each(|expr| expr.for_each_column(&mut mark));
    used
}
