//! Planner: from a parsed query and the meaning of its tables to something the executor can run.
//!
//! Role: put the tables of FROM side by side in one row, bind every expression to it, take aggregates out,
//! decide what each column of the result is called and what it holds. The plan is plain data and knows
//! nothing of transactions.
//!
//! What is not supported yet is refused by name (1235) instead of being answered wrongly. It reads no row
//! and never waits.

mod bind;
mod full_group_by;

pub use bind::{bind_aggregated, bind_scalar};

use std::sync::Arc;

use crate::catalog::TableMeta;
use crate::catalog::types::not_yet;
use crate::expr::{AggSpec, BoundExpr, Node, Scope, ScopeColumn, SessionFacts};
use crate::parser::ast::{
    Expr, JoinKind, JoinOn, Limit, Lit, Locking, OrderBy, Query, QueryBody, Select, SelectItem, TableName,
    TableRef,
};
use crate::protocol::{ColumnDefinition, ColumnFlags};
use crate::session::Facts;
use crate::value::{ErrorCode, MySqlError, Result, SqlMode, SqlType, Value};

/// A table made up by this node: information_schema.
#[derive(Debug, Clone)]
pub struct VirtualTable {
    /// Its database.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Names and types of its columns.
    pub columns: Vec<(String, SqlType)>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

/// Where rows come from.
#[derive(Debug, Clone)]
pub enum Relation {
    /// A table of the cluster.
    Table(Arc<TableMeta>),
    /// A table made up here.
    Virtual(Arc<VirtualTable>),
}

/// A table of FROM.
#[derive(Debug, Clone)]
pub struct Source {
    /// What it is.
    pub relation: Relation,
    /// Its alias or name.
    pub alias: String,
    /// Where its columns begin in the row.
    pub offset: usize,
    /// How many columns it has, hidden ones included.
    pub width: usize,
    /// LEFT JOIN: without a match the columns are NULL.
    pub outer: bool,
    /// The condition of its join.
    pub on: Option<BoundExpr>,
}

/// A value to sort by.
#[derive(Debug, Clone)]
pub enum SortKey {
    /// An item of the select list.
    Item(usize),
    /// Any expression.
    Expr(BoundExpr),
}

/// A planned SELECT.
#[derive(Debug, Clone)]
pub struct SelectPlan {
    /// Tables, left to right.
    pub sources: Vec<Source>,
    /// WHERE.
    pub filter: Option<BoundExpr>,
    /// The select list.
    pub items: Vec<BoundExpr>,
    /// What the client is told about it.
    pub columns: Vec<ColumnDefinition>,
    /// GROUP BY.
    pub group: Vec<BoundExpr>,
    /// Aggregates used anywhere.
    pub aggs: Vec<AggSpec>,
    /// HAVING.
    pub having: Option<BoundExpr>,
    /// ORDER BY, with true for DESC.
    pub order: Vec<(SortKey, bool)>,
    /// LIMIT: offset and count.
    pub limit: Option<(LimitValue, LimitValue)>,
    /// DISTINCT.
    pub distinct: bool,
    /// FOR UPDATE (exclusive) or FOR SHARE.
    pub locking: Option<Locking>,
    /// SQL_CALC_FOUND_ROWS.
    pub calc_found_rows: bool,
}

/// A number of LIMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitValue {
    /// Known.
    Number(u64),
    /// A parameter.
    Param(usize),
}

impl LimitValue {
    /// The number, given the parameters.
    ///
    /// # Errors
    /// 1210: the parameter is no whole number.
    pub fn get(self, params: &[Value]) -> Result<u64> {
        match self {
            Self::Number(n) => Ok(n),
            Self::Param(i) => match params.get(i) {
                Some(Value::Int(n)) if *n >= 0 => Ok(n.unsigned_abs()),
                Some(Value::UInt(n)) => Ok(*n),
                Some(Value::Text(text)) => {
                    let parsed = crate::value::number::parse_int(text.as_bytes());
                    u64::try_from(parsed.value)
                        .map_err(|_| MySqlError::with(ErrorCode::WrongArguments, &[&"LIMIT"]))
                }
                _ => Err(MySqlError::with(ErrorCode::WrongArguments, &[&"LIMIT"])),
            },
        }
    }
}

/// Plans LIMIT.
///
/// # Errors
/// 1064: it is neither a number nor a parameter.
pub fn plan_limit(limit: Option<&Limit>) -> Result<Option<(LimitValue, LimitValue)>> {
    let Some(limit) = limit else { return Ok(None) };
    let number = |expr: &Expr| match expr {
        Expr::Lit(Lit::Int(n)) => Ok(LimitValue::Number(*n)),
        Expr::Param(i) => Ok(LimitValue::Param(*i as usize)),
        _ => Err(MySqlError::new(ErrorCode::NonIntegerLimit)),
    };
    let offset = limit.offset.as_ref().map_or(Ok(LimitValue::Number(0)), number)?;
    Ok(Some((offset, number(&limit.count)?)))
}

/// The tables a query names, in the order in which [`plan_select`] wants them resolved.
///
/// # Errors
/// 1235 for what FROM cannot hold yet.
pub fn tables_of(query: &Query) -> Result<Vec<TableName>> {
    let mut names = Vec::new();
    for table in &select_of(query)?.from {
        collect(table, &mut names)?;
    }
    Ok(names)
}

/// The tables of one element of FROM.
///
/// # Errors
/// 1235 for what FROM cannot hold yet.
pub fn collect(table: &TableRef, names: &mut Vec<TableName>) -> Result<()> {
    match table {
        TableRef::Table(factor) => names.push(factor.name.clone()),
        TableRef::Join(join) => {
            collect(&join.left, names)?;
            collect(&join.right, names)?;
        }
        TableRef::Nested(list) => list.iter().try_for_each(|t| collect(t, names))?,
        TableRef::Derived { .. } => return Err(not_yet("derived tables")),
    }
    Ok(())
}

/// The SELECT of a query without set operations.
///
/// # Errors
/// 1235 for the other forms.
pub fn select_of(query: &Query) -> Result<&Select> {
    if query.with.is_some() {
        return Err(not_yet("WITH"));
    }
    match &query.body {
        QueryBody::Select(select) => Ok(select),
        QueryBody::Query(inner) if query.order.is_empty() && query.limit.is_none() => select_of(inner),
        QueryBody::Query(_) => Err(not_yet("nested query blocks")),
        QueryBody::Values(_) => Err(not_yet("VALUES ROW()")),
        QueryBody::Table(_) => Err(not_yet("TABLE")),
        QueryBody::Set { .. } => Err(not_yet("UNION, INTERSECT and EXCEPT")),
    }
}

/// Puts FROM's tables side by side.
struct FromBuilder<'a> {
    facts: &'a Facts,
    relations: std::vec::IntoIter<Relation>,
    scope: Scope,
    sources: Vec<Source>,
    /// Positions of columns that `*` shows: USING columns once.
    hidden: Vec<usize>,
}

impl FromBuilder<'_> {
    fn add(&mut self, table: &TableRef, outer: bool) -> Result<()> {
        match table {
            TableRef::Table(factor) => {
                let relation =
                    self.relations.next().ok_or_else(|| MySqlError::internal("a table was not resolved"))?;
                let alias = factor.alias.as_deref().unwrap_or(&factor.name.name).to_owned();
                self.push(relation, alias, outer)
            }
            TableRef::Nested(list) => list.iter().try_for_each(|t| self.add(t, outer)),
            TableRef::Derived { .. } => Err(not_yet("derived tables")),
            TableRef::Join(join) => {
                let left_outer = match join.kind {
                    JoinKind::Inner | JoinKind::Straight => false,
                    JoinKind::Left => true,
                    JoinKind::Right => return Err(not_yet("RIGHT JOIN")),
                };
                if !matches!(join.right, TableRef::Table(_)) {
                    return Err(not_yet("a join as the right side of a join"));
                }
                self.add(&join.left, outer)?;
                self.add(&join.right, left_outer)?;
                let on = match &join.on {
                    JoinOn::None => None,
                    JoinOn::On(expr) => Some(expr.clone()),
                    JoinOn::Using(names) => Some(self.using(names)?),
                    JoinOn::Natural => return Err(not_yet("NATURAL JOIN")),
                };
                if let Some(on) = on {
                    let bound = bind_scalar(&on, &self.scope, self.facts, "on clause")?;
                    if let Some(source) = self.sources.last_mut() {
                        source.on = Some(bound);
                    }
                }
                Ok(())
            }
        }
    }

    /// USING as a condition between the last table and the first earlier one that has the column.
    fn using(&mut self, names: &[crate::parser::ast::Name]) -> Result<Expr> {
        let Some(last) = self.sources.last() else { return Ok(Expr::Lit(Lit::Bool(true))) };
        let mut conditions = Vec::new();
        for name in names {
            let missing = || MySqlError::bad_field(name, "from clause");
            let fits = |c: &ScopeColumn| c.name.eq_ignore_ascii_case(name);
            let left = self.scope.columns[..last.offset].iter().position(fits).ok_or_else(missing)?;
            let right = self.scope.columns[last.offset..].iter().position(fits).ok_or_else(missing)?;
            self.hidden.push(last.offset + right);
            let column = |c: &ScopeColumn| {
                Expr::Col(crate::parser::ast::ColName {
                    db: None,
                    table: Some(c.table.clone()),
                    name: c.name.clone(),
                })
            };
            let pair = (column(&self.scope.columns[left]), column(&self.scope.columns[last.offset + right]));
            conditions.push(Expr::Binary(crate::parser::ast::BinOp::Eq, Box::new(pair.0), Box::new(pair.1)));
        }
        Ok(match conditions.len() {
            1 => conditions.remove(0),
            _ => Expr::And(conditions),
        })
    }

    fn push(&mut self, relation: Relation, alias: String, outer: bool) -> Result<()> {
        let same = |s: &Source| s.alias == alias && schema_of(&s.relation) == schema_of(&relation);
        if self.sources.iter().any(same) {
            return Err(MySqlError::with(ErrorCode::NonUniqTable, &[&alias]));
        }
        let offset = self.scope.columns.len();
        let columns = scope_columns(&relation, &alias, outer);
        let width = columns.len();
        self.scope.columns.extend(columns);
        self.sources.push(Source { relation, alias, offset, width, outer, on: None });
        Ok(())
    }
}

fn schema_of(relation: &Relation) -> &str {
    match relation {
        Relation::Table(meta) => &meta.schema,
        Relation::Virtual(table) => &table.schema,
    }
}

/// A relation's columns as names for expressions.
pub fn scope_columns(relation: &Relation, alias: &str, outer: bool) -> Vec<ScopeColumn> {
    let column = |name: &str, ty: &SqlType, nullable: bool| ScopeColumn {
        db: Some(schema_of(relation).into()),
        table: alias.into(),
        name: name.into(),
        ty: ty.clone(),
        nullable,
    };
    match relation {
        Relation::Table(meta) => {
            meta.columns.iter().map(|c| column(&c.name, &c.ty, c.nullable || outer)).collect()
        }
        Relation::Virtual(table) => table.columns.iter().map(|(name, ty)| column(name, ty, true)).collect(),
    }
}

/// Plans a SELECT over relations resolved in the order of [`tables_of`].
///
/// # Errors
/// Names that do not resolve, and what is not supported yet.
pub fn plan_select(query: &Query, relations: Vec<Relation>, facts: &Facts) -> Result<SelectPlan> {
    let select = select_of(query)?;
    if query.into.is_some() {
        return Err(not_yet("SELECT INTO"));
    }
    if query.locking.iter().any(|l| l.wait != crate::parser::ast::LockWait::Wait) {
        return Err(not_yet("NOWAIT and SKIP LOCKED"));
    }
    if select.rollup || !select.windows.is_empty() {
        return Err(not_yet("WITH ROLLUP and WINDOW"));
    }
    let mut from = FromBuilder {
        facts,
        relations: relations.into_iter(),
        scope: Scope::default(),
        sources: Vec::new(),
        hidden: Vec::new(),
    };
    select.from.iter().try_for_each(|table| from.add(table, false))?;
    let FromBuilder { scope, sources, hidden, .. } = from;
    let filter = select.filter.as_ref().map(|e| bind_scalar(e, &scope, facts, "where clause")).transpose()?;
    let names = expand(select, &scope, &sources, &hidden)?;
    let mut aggs = Vec::new();
    let mut items = Vec::with_capacity(names.len());
    for (_, expr) in &names {
        items.push(bind_aggregated(expr, &scope, facts, "field list", &mut aggs)?);
    }
    let mut group = Vec::new();
    for expr in &select.group {
        let expr = by_position_or_alias(expr, &names, "group statement")?.map_or(expr, |i| &names[i].1);
        group.push(bind_scalar(expr, &scope, facts, "group statement")?);
    }
    let having = match &select.having {
        Some(expr) => {
            let expr = with_aliases(expr, &names, &scope);
            Some(bind_aggregated(&expr, &scope, facts, "having clause", &mut aggs)?)
        }
        None => None,
    };
    let order = plan_order(&query.order, &names, &items, &scope, facts, &mut aggs)?;
    let columns =
        names.iter().zip(&items).map(|((name, _), item)| definition(name, item, &sources)).collect();
    let plan = SelectPlan {
        sources,
        filter,
        items,
        columns,
        group,
        aggs,
        having,
        order,
        limit: plan_limit(query.limit.as_ref())?,
        distinct: select.modifiers.distinct,
        locking: query.locking.first().cloned(),
        calc_found_rows: select.modifiers.calc_found_rows,
    };
    if facts.sql_mode().contains(SqlMode::ONLY_FULL_GROUP_BY) {
        full_group_by::check(&plan, &scope)?;
    }
    Ok(plan)
}

fn plan_order(
    order: &[OrderBy],
    names: &[(String, Expr)],
    items: &[BoundExpr],
    scope: &Scope,
    facts: &Facts,
    aggs: &mut Vec<AggSpec>,
) -> Result<Vec<(SortKey, bool)>> {
    let mut keys = Vec::with_capacity(order.len());
    for element in order {
        let key = match by_position_or_alias(&element.expr, names, "order clause")? {
            Some(at) if matches!(items[at].ty, SqlType::Enum { .. } | SqlType::Set { .. }) => {
                SortKey::Expr(items[at].clone().for_sorting())
            }
            Some(item) => SortKey::Item(item),
            None => {
                let expr = with_aliases(&element.expr, names, scope);
                SortKey::Expr(bind_aggregated(&expr, scope, facts, "order clause", aggs)?.for_sorting())
            }
        };
        keys.push((key, element.desc));
    }
    Ok(keys)
}

/// The item that a position or an alias means.
fn by_position_or_alias(expr: &Expr, names: &[(String, Expr)], clause: &str) -> Result<Option<usize>> {
    match expr {
        Expr::Lit(Lit::Int(n)) => {
            let at = usize::try_from(*n).ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < names.len());
            at.map(Some).ok_or_else(|| MySqlError::bad_field(&n.to_string(), clause))
        }
        Expr::Col(column) if column.table.is_none() => {
            Ok(names.iter().position(|(name, _)| name.eq_ignore_ascii_case(&column.name)))
        }
        _ => Ok(None),
    }
}

/// An expression with select-list aliases replaced by what they stand for, where no column has the name.
fn with_aliases(expr: &Expr, names: &[(String, Expr)], scope: &Scope) -> Expr {
    let again = |e: &Expr| with_aliases(e, names, scope);
    let boxed = |e: &Expr| Box::new(with_aliases(e, names, scope));
    match expr {
        Expr::Col(column) if column.table.is_none() && scope.find(column, "").is_err() => {
            let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(&column.name));
            found.map_or_else(|| expr.clone(), |(_, e)| e.clone())
        }
        Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a), boxed(b)),
        Expr::And(list) => Expr::And(list.iter().map(again).collect()),
        Expr::Or(list) => Expr::Or(list.iter().map(again).collect()),
        Expr::Is { expr, not, test } => Expr::Is { expr: boxed(expr), not: *not, test: *test },
        Expr::Between { expr, not, low, high } => {
            Expr::Between { expr: boxed(expr), not: *not, low: boxed(low), high: boxed(high) }
        }
        Expr::In { expr, not, list } => {
            Expr::In { expr: boxed(expr), not: *not, list: list.iter().map(again).collect() }
        }
        other => other.clone(),
    }
}

/// The select list with `*` spelled out: name and expression of each item.
fn expand(
    select: &Select,
    scope: &Scope,
    sources: &[Source],
    hidden: &[usize],
) -> Result<Vec<(String, Expr)>> {
    let mut items = Vec::new();
    for item in &select.items {
        match item {
            SelectItem::Expr { expr, .. } => {
                items.push((item.name().unwrap_or_default().to_owned(), expr.clone()));
            }
            SelectItem::Star(which) => {
                let before = items.len();
                for source in sources.iter().filter(|s| names_source(which.as_ref(), s)) {
                    for at in source.offset..source.offset + source.width {
                        let is_hidden =
                            is_hidden_key(source, at) || (which.is_none() && hidden.contains(&at));
                        if !is_hidden {
                            let column = &scope.columns[at];
                            let expr = Expr::Col(crate::parser::ast::ColName {
                                db: column.db.clone(),
                                table: Some(column.table.clone()),
                                name: column.name.clone(),
                            });
                            items.push((column.name.to_string(), expr));
                        }
                    }
                }
                if items.len() == before {
                    return Err(match which {
                        Some(table) => MySqlError::with(ErrorCode::BadTable, &[&table.name]),
                        None => MySqlError::new(ErrorCode::NoTablesUsed),
                    });
                }
            }
        }
    }
    Ok(items)
}

fn names_source(which: Option<&TableName>, source: &Source) -> bool {
    which.is_none_or(|table| {
        *table.name == *source.alias && table.db.as_deref().is_none_or(|db| db == schema_of(&source.relation))
    })
}

fn is_hidden_key(source: &Source, at: usize) -> bool {
    match &source.relation {
        Relation::Table(meta) => meta.columns.get(at - source.offset).is_some_and(|c| c.hidden),
        Relation::Virtual(_) => false,
    }
}

/// What the client is told about a column of the result.
fn definition(name: &str, item: &BoundExpr, sources: &[Source]) -> ColumnDefinition {
    let mut column = ColumnDefinition::typed(name, &item.ty);
    if !item.nullable {
        column.flags = column.flags.with(ColumnFlags::NOT_NULL);
    }
    let Node::Column(at) = item.node else { return column };
    let Some(source) = sources.iter().find(|s| (s.offset..s.offset + s.width).contains(&at)) else {
        return column;
    };
    column.schema = schema_of(&source.relation).to_owned();
    column.table.clone_from(&source.alias);
    match &source.relation {
        Relation::Table(meta) => {
            let id = at - source.offset;
            column.org_table.clone_from(&meta.name);
            if let Some(own) = meta.columns.get(id) {
                column.org_name.clone_from(&own.name);
                let no_default = !own.nullable && matches!(own.default, crate::catalog::ColumnDefault::None);
                column.flags = column
                    .flags
                    .with_if(meta.is_key(id), ColumnFlags::PRI_KEY)
                    .with_if(own.auto_increment, ColumnFlags::AUTO_INCREMENT)
                    .with_if(own.on_update_now, ColumnFlags::ON_UPDATE_NOW)
                    .with_if(no_default && !own.auto_increment, ColumnFlags::NO_DEFAULT_VALUE);
            }
        }
        Relation::Virtual(table) => {
            column.org_table.clone_from(&table.name);
            column.org_name.clone_from(&table.columns[at - source.offset].0);
        }
    }
    column
}
