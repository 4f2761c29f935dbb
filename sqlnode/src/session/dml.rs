//! Queries and changes: from the parsed statement through a plan to the executor, inside the right
//! transaction.

use std::sync::Arc;

use super::{SqlSession, info};
use crate::catalog::TableMeta;
use crate::catalog::types::not_yet;
use crate::exec::Env;
use crate::exec::select;
use crate::exec::write::{self, ChangePlan, Changed, InsertPlan, InsertValue, OnDuplicate};
use crate::expr::{BoundExpr, Scope, SessionFacts};
use crate::parser::ast::{
    Assignment, ColName, Delete, DeleteTarget, Expr, Insert, InsertSource, Limit, Lit, OrderBy, Query,
    TableName, TableRef, Update,
};
use crate::plan::{
    LimitValue, Relation, SelectPlan, bind_scalar, plan_limit, plan_select, scope_columns, tables_of,
};
use crate::protocol::{OkPacket, ResultWriter};
use crate::value::{ErrorCode, MySqlError, Result, SqlType, Value};

/// ORDER BY of a change, with true for DESC.
type SortKeys = Vec<(BoundExpr, bool)>;

impl SqlSession {
    /// Database and name of a table.
    pub(super) fn qualify<'a>(&'a self, name: &'a TableName) -> Result<(&'a str, &'a str)> {
        let current = self.facts.database.as_deref();
        let schema = name.db.as_deref().or(current).ok_or_else(|| MySqlError::new(ErrorCode::NoDb))?;
        Ok((schema, &name.name))
    }

    /// A table of the cluster.
    pub(super) async fn table(&self, name: &TableName) -> Result<Arc<TableMeta>> {
        let (schema, table) = self.qualify(name)?;
        if info::is_virtual(schema) {
            return Err(MySqlError::with(
                ErrorCode::TableaccessDenied,
                &[&"ALTER", &self.facts.login.user, &self.facts.login.host, &table],
            ));
        }
        self.facts.node.table(schema, table).await
    }

    async fn relations(&mut self, names: &[TableName]) -> Result<Vec<Relation>> {
        let mut relations = Vec::with_capacity(names.len());
        for name in names {
            let (schema, table) = self.qualify(name)?;
            if info::is_virtual(schema) {
                let (schema, table) = (schema.to_owned(), table.to_owned());
                relations.push(Relation::Virtual(Arc::new(self.information(&schema, &table).await?)));
            } else {
                relations.push(Relation::Table(self.facts.node.table(schema, table).await?));
            }
        }
        Ok(relations)
    }

    /// Plans a query.
    pub(super) async fn plan(&mut self, query: &Query) -> Result<SelectPlan> {
        let relations = self.relations(&tables_of(query)?).await?;
        plan_select(query, relations, &self.facts)
    }

    pub(super) async fn select(
        &mut self,
        query: &Query,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let plan = self.plan(query).await?;
        let real = plan.sources.iter().any(|s| matches!(s.relation, Relation::Table(_)));
        let mut work = self.begin_work(real, plan.locking.is_some()).await?;
        let status = self.flags();
        let mut env = Env { facts: &self.facts, params, warnings: &mut self.warnings };
        let result = select::run(&plan, &mut work.tx, &mut env, out, status).await;
        let found = self.end_work(work, result).await?;
        self.facts.found_rows = found;
        self.facts.row_count = -1;
        Ok(())
    }

    pub(super) async fn insert(
        &mut self,
        insert: &Insert,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let meta = self.table(&insert.table).await?;
        let mut plan = self.plan_insert(insert, &meta)?;
        let mut work = self.begin_work(true, true).await?;
        let result = self.run_insert(insert, &mut plan, params, &mut work).await;
        let changed = self.end_work(work, result).await?;
        if changed.insert_id > 0 {
            self.facts.set_last_insert_id(changed.insert_id);
        }
        let info = if changed.found > 1 || matches!(insert.source, InsertSource::Query(_)) {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {}",
                changed.found,
                changed.duplicates,
                self.warnings.count()
            )
        } else {
            String::new()
        };
        self.changed(&changed, info, out).await
    }

    async fn run_insert(
        &mut self,
        insert: &Insert,
        plan: &mut InsertPlan,
        params: &[Value],
        work: &mut super::Work,
    ) -> Result<Changed> {
        if let InsertSource::Query(query) = &insert.source {
            let select = self.plan(query).await?;
            if select.items.len() != plan.columns.len() {
                return Err(MySqlError::with(ErrorCode::WrongValueCountOnRow, &[&1]));
            }
            let mut env = Env { facts: &self.facts, params, warnings: &mut self.warnings };
            let rows = select::collect(&select, &mut work.tx, &mut env).await?;
            let constant = |(value, item): (Value, &BoundExpr)| {
                InsertValue::Expr(BoundExpr::constant(value, item.ty.clone()))
            };
            plan.rows = rows
                .into_iter()
                .map(|row| row.into_iter().zip(&select.items).map(constant).collect())
                .collect();
        }
        let last = work.is_own() && matches!(plan.on_duplicate, OnDuplicate::Error);
        let node = Arc::clone(&self.facts.node);
        let mut env = Env { facts: &self.facts, params, warnings: &mut self.warnings };
        write::insert(plan, &mut work.tx, &mut env, &*node, last).await
    }

    fn plan_insert(&self, insert: &Insert, meta: &Arc<TableMeta>) -> Result<InsertPlan> {
        let columns = match &insert.columns {
            None => meta.visible().map(|(i, _)| i).collect(),
            Some(names) => columns_of(meta, names)?,
        };
        let alias = insert.row_alias.as_ref();
        if alias.is_some() {
            return Err(not_yet("row aliases of INSERT"));
        }
        let scope = table_scope(meta, &meta.name);
        let nothing = Scope::default();
        let mut rows = Vec::new();
        if let InsertSource::Values(list) = &insert.source {
            for (i, row) in list.iter().enumerate() {
                let empty = row.is_empty() && (insert.columns.is_none() || columns.is_empty());
                if row.len() != columns.len() && !empty {
                    return Err(MySqlError::with(ErrorCode::WrongValueCountOnRow, &[&(i + 1)]));
                }
                let value = |(expr, &column): (&Expr, &usize)| match expr {
                    Expr::Default(None) => Ok(InsertValue::Default),
                    other => {
                        Ok(InsertValue::Expr(self.value_for(other, &meta.columns[column].ty, &nothing)?))
                    }
                };
                rows.push(row.iter().zip(&columns).map(value).collect::<Result<Vec<_>>>()?);
            }
        }
        let on_duplicate = if insert.replace {
            OnDuplicate::Replace
        } else if !insert.on_duplicate.is_empty() {
            OnDuplicate::Update(self.assignments(&insert.on_duplicate, meta, &scope)?)
        } else if insert.ignore {
            OnDuplicate::Ignore
        } else {
            OnDuplicate::Error
        };
        Ok(InsertPlan { table: Arc::clone(meta), columns, rows, on_duplicate, lenient: insert.ignore })
    }

    /// A value for a column: a literal of hexadecimal digits or bits is a number for a column of numbers.
    fn value_for(&self, expr: &Expr, ty: &SqlType, scope: &Scope) -> Result<BoundExpr> {
        if let Expr::Lit(Lit::Hex(None, bytes) | Lit::Bit(None, bytes)) = expr
            && ty.is_numeric()
            && bytes.len() <= 8
        {
            let number = bytes.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
            return Ok(BoundExpr::constant(Value::UInt(number), SqlType::BIGINT_UNSIGNED));
        }
        bind_scalar(expr, scope, &self.facts, "field list")
    }

    fn assignments(
        &self,
        list: &[Assignment],
        meta: &TableMeta,
        scope: &Scope,
    ) -> Result<Vec<(usize, BoundExpr)>> {
        list.iter()
            .map(|assignment| {
                let missing = || MySqlError::bad_field(&assignment.column.name, "field list");
                let column = usize::from(meta.column(&assignment.column.name).ok_or_else(missing)?);
                let value = match &assignment.value {
                    Expr::Default(None) => {
                        let value = match &meta.columns[column].default {
                            crate::catalog::ColumnDefault::Value(value) => value.clone(),
                            _ => Value::Null,
                        };
                        BoundExpr::constant(value, meta.columns[column].ty.clone())
                    }
                    expr => self.value_for(expr, &meta.columns[column].ty, scope)?,
                };
                Ok((column, value))
            })
            .collect()
    }

    fn order_and_limit(
        &self,
        order: &[OrderBy],
        limit: Option<&Limit>,
        scope: &Scope,
    ) -> Result<(SortKeys, Option<LimitValue>)> {
        let bind = |o: &OrderBy| {
            let key = bind_scalar(&o.expr, scope, &self.facts, "order clause")?;
            Ok((key.for_sorting(), o.desc))
        };
        let order = order.iter().map(bind).collect::<Result<Vec<_>>>()?;
        Ok((order, plan_limit(limit)?.map(|(_, count)| count)))
    }

    pub(super) async fn update(
        &mut self,
        update: &Update,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let [TableRef::Table(factor)] = update.tables.as_slice() else {
            return Err(not_yet("UPDATE of several tables"));
        };
        if update.with.is_some() {
            return Err(not_yet("WITH"));
        }
        let meta = self.table(&factor.name).await?;
        let scope = table_scope(&meta, factor.alias.as_deref().unwrap_or(&meta.name));
        let filter = update
            .filter
            .as_ref()
            .map(|e| bind_scalar(e, &scope, &self.facts, "where clause"))
            .transpose()?;
        let (order, limit) = self.order_and_limit(&update.order, update.limit.as_ref(), &scope)?;
        let set = Some(self.assignments(&update.set, &meta, &scope)?);
        let plan = ChangePlan { table: meta, set, filter, order, limit, lenient: update.ignore };
        let mut changed = self.change(&plan, params).await?;
        let info = format!(
            "Rows matched: {}  Changed: {}  Warnings: {}",
            changed.found,
            changed.affected,
            self.warnings.count()
        );
        if self.facts.found_rows_wanted() {
            changed.affected = changed.found;
        }
        self.changed(&changed, info, out).await
    }

    pub(super) async fn delete(
        &mut self,
        delete: &Delete,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let DeleteTarget::Single(factor) = &delete.target else {
            return Err(not_yet("DELETE from several tables"));
        };
        if delete.with.is_some() {
            return Err(not_yet("WITH"));
        }
        let meta = self.table(&factor.name).await?;
        let scope = table_scope(&meta, factor.alias.as_deref().unwrap_or(&meta.name));
        let filter = delete
            .filter
            .as_ref()
            .map(|e| bind_scalar(e, &scope, &self.facts, "where clause"))
            .transpose()?;
        let (order, limit) = self.order_and_limit(&delete.order, delete.limit.as_ref(), &scope)?;
        let plan = ChangePlan { table: meta, set: None, filter, order, limit, lenient: delete.ignore };
        let changed = self.change(&plan, params).await?;
        self.changed(&changed, String::new(), out).await
    }

    async fn change(&mut self, plan: &ChangePlan, params: &[Value]) -> Result<Changed> {
        let mut work = self.begin_work(true, true).await?;
        let mut env = Env { facts: &self.facts, params, warnings: &mut self.warnings };
        let result = write::change(plan, &mut work.tx, &mut env).await;
        self.end_work(work, result).await
    }

    async fn changed(&mut self, changed: &Changed, info: String, out: &mut ResultWriter<'_>) -> Result<()> {
        self.facts.row_count = i64::try_from(changed.affected).unwrap_or(i64::MAX);
        let ok = OkPacket {
            affected_rows: changed.affected,
            last_insert_id: changed.insert_id,
            status: self.flags(),
            warnings: self.warnings.count_u16(),
            info: info.into(),
        };
        out.ok(&ok).await
    }
}

fn table_scope(meta: &Arc<TableMeta>, alias: &str) -> Scope {
    Scope { columns: scope_columns(&Relation::Table(Arc::clone(meta)), alias, false) }
}

fn columns_of(meta: &TableMeta, names: &[ColName]) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let missing = || MySqlError::bad_field(&name.name, "field list");
        let column = usize::from(meta.column(&name.name).ok_or_else(missing)?);
        if columns.contains(&column) {
            return Err(MySqlError::with(ErrorCode::FieldSpecifiedTwice, &[&name.name]));
        }
        columns.push(column);
    }
    Ok(columns)
}
