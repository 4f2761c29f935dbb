//! ONLY_FULL_GROUP_BY: whether every column outside of aggregates has one value in its group.
//!
//! A query that groups (or aggregates everything into one group) may name a column only if the grouping
//! fixes it: it is grouped by, it is part of an expression that is, it is set equal to something fixed by
//! WHERE or a join's condition, or it belongs to a table whose whole primary key is fixed. That is MySQL's
//! rule of functional dependence; ANY_VALUE() lifts it for an expression. A query that is DISTINCT may sort
//! only by what it selects.
//!
//! Equalities count whatever types they compare, which MySQL does only for types that compare alike; a few
//! queries pass here that MySQL refuses, none the other way round.

use super::{Relation, SelectPlan, SortKey, Source};
use crate::expr::{BoundExpr, CmpOp, Node, Scope};
use crate::value::{ErrorCode, MySqlError, Result};

/// What one row of a group fixes.
struct Fixed {
    columns: Vec<bool>,
    /// Grouped expressions that are no columns, printed: the same expression prints the same.
    expressions: Vec<String>,
}

/// Checks a plan.
///
/// # Errors
/// 1055 or 1140 with the first column that is not fixed; 3065 for an order that DISTINCT makes unclear.
pub(super) fn check(plan: &SelectPlan, scope: &Scope) -> Result<()> {
    if plan.group.is_empty() && plan.aggs.is_empty() {
        return if plan.distinct { check_distinct(plan, scope) } else { Ok(()) };
    }
    let fixed = Fixed::of(plan);
    let all = |list: Vec<&BoundExpr>, clause: &str| {
        for (i, expr) in list.into_iter().enumerate() {
            if let Some(at) = fixed.first_loose(expr) {
                return Err(loose(plan, i + 1, clause, &name(scope, at)));
            }
        }
        Ok(())
    };
    all(plan.items.iter().collect(), "SELECT list")?;
    all(plan.having.iter().collect(), "HAVING clause")?;
    let sorted = |(key, _): &'_ (SortKey, bool)| match key {
        SortKey::Item(_) => None,
        SortKey::Expr(expr) => Some(expr.clone()),
    };
    let sorted: Vec<Option<BoundExpr>> = plan.order.iter().map(sorted).collect();
    for (i, expr) in sorted.iter().enumerate() {
        if let Some(at) = expr.as_ref().and_then(|expr| fixed.first_loose(expr)) {
            return Err(loose(plan, i + 1, "ORDER BY clause", &name(scope, at)));
        }
    }
    Ok(())
}

fn loose(plan: &SelectPlan, number: usize, clause: &str, column: &str) -> MySqlError {
    if !plan.group.is_empty() {
        return MySqlError::with(ErrorCode::WrongFieldWithGroup, &[&number, &clause, &column]);
    }
    MySqlError::with(ErrorCode::MixOfGroupFuncAndFields, &[&number, &clause, &column])
}

fn name(scope: &Scope, at: usize) -> String {
    let Some(column) = scope.columns.get(at) else { return String::new() };
    let db = column.db.as_deref().map(|db| format!("{db}.")).unwrap_or_default();
    format!("{db}{}.{}", column.table, column.name)
}

/// DISTINCT merges rows, so an order by what is not selected has no one answer.
fn check_distinct(plan: &SelectPlan, scope: &Scope) -> Result<()> {
    let mut columns = vec![false; scope.columns.len()];
    let mut expressions = Vec::new();
    for item in &plan.items {
        match item.node {
            Node::Column(at) => columns[at] = true,
            _ => expressions.push(format!("{:?}", item.node)),
        }
    }
    let selected = Fixed { columns, expressions };
    for (i, (key, _)) in plan.order.iter().enumerate() {
        if let SortKey::Expr(expr) = key
            && let Some(at) = selected.first_loose(expr)
        {
            let column = name(scope, at);
            return Err(MySqlError::with(
                ErrorCode::FieldInOrderNotSelect,
                &[&(i + 1), &column, &"DISTINCT"],
            ));
        }
    }
    Ok(())
}

impl Fixed {
    fn of(plan: &SelectPlan) -> Fixed {
        let width = plan.sources.iter().map(|s| s.width).sum();
        let mut fixed = Fixed { columns: vec![false; width], expressions: Vec::new() };
        for expr in &plan.group {
            match expr.node {
                Node::Column(at) => fixed.columns[at] = true,
                _ => fixed.expressions.push(format!("{:?}", expr.node)),
            }
        }
        let mut inner: Vec<&BoundExpr> = conjuncts(plan.filter.as_ref());
        for source in plan.sources.iter().filter(|s| !s.outer) {
            inner.extend(conjuncts(source.on.as_ref()));
        }
        // Each round fixes at least one more column, so there are at most as many rounds as columns.
        loop {
            let before = fixed.count();
            inner.iter().for_each(|condition| fixed.learn(condition, &|_| true));
            for source in &plan.sources {
                fixed.learn_outer(source);
                fixed.learn_by_key(source);
            }
            if fixed.count() == before {
                return fixed;
            }
        }
    }

    fn count(&self) -> usize {
        self.columns.iter().filter(|fixed| **fixed).count()
    }

    /// Takes from a condition that holds for every row which column is equal to something fixed.
    fn learn(&mut self, condition: &BoundExpr, may_fix: &dyn Fn(usize) -> bool) {
        match &condition.node {
            Node::Compare(CmpOp::Eq, a, b, _) => {
                for (column, other) in [(a, b), (b, a)] {
                    if let Node::Column(at) = column.node
                        && may_fix(at)
                        && self.is_fixed(other)
                    {
                        self.columns[at] = true;
                    }
                }
            }
            Node::IsNull(column, false) => {
                if let Node::Column(at) = column.node
                    && may_fix(at)
                {
                    self.columns[at] = true;
                }
            }
            _ => {}
        }
    }

    /// The condition of a LEFT JOIN fixes columns of its right side, or they are all NULL; it does so alike
    /// for all rows of a group only if nothing loose of the left side stands in it.
    fn learn_outer(&mut self, source: &Source) {
        let (Some(on), true) = (&source.on, source.outer) else { return };
        let own = source.offset..source.offset + source.width;
        let mut left_fixed = true;
        on.for_each_column(&mut |at| left_fixed &= own.contains(&at) || self.columns[at]);
        if left_fixed {
            for condition in conjuncts(Some(on)) {
                self.learn(condition, &|at| own.contains(&at));
            }
        }
    }

    /// A fixed primary key fixes the whole row.
    fn learn_by_key(&mut self, source: &Source) {
        let Relation::Table(meta) = &source.relation else { return };
        let own = source.offset..source.offset + source.width;
        if meta.primary_key.iter().all(|&c| self.columns[source.offset + usize::from(c)]) {
            self.columns[own].fill(true);
        }
    }

    fn is_fixed(&self, expr: &BoundExpr) -> bool {
        self.first_loose(expr).is_none()
    }

    /// The first column of an expression that is not fixed.
    fn first_loose(&self, expr: &BoundExpr) -> Option<usize> {
        if let Node::Column(at) = expr.node {
            return (!self.columns[at]).then_some(at);
        }
        // A sort key may stand around what was grouped by.
        if !self.expressions.is_empty() {
            let printed = format!("{:?}", expr.node);
            if self.expressions.contains(&printed) {
                return None;
            }
        }
        let mut found = None;
        expr.node.for_each_child(&mut |child| found = found.or_else(|| self.first_loose(child)));
        found
    }
}

/// The conditions that must all hold.
fn conjuncts(condition: Option<&BoundExpr>) -> Vec<&BoundExpr> {
    match condition {
        None => Vec::new(),
        Some(BoundExpr { node: Node::And(list), .. }) => list.iter().collect(),
        Some(one) => vec![one],
    }
}
