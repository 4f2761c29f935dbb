//! Binding for the planner: expressions of one clause, with or without aggregates.

use crate::expr::{AggSpec, Binder, BoundExpr, Scope, SessionFacts};
use crate::parser::ast::Expr;
use crate::session::Facts;
use crate::value::Result;

/// Binds an expression where aggregates may not stand.
///
/// # Errors
/// As the binder.
pub fn bind_scalar(expr: &Expr, scope: &Scope, facts: &Facts, clause: &str) -> Result<BoundExpr> {
    Binder::new(scope, facts as &dyn SessionFacts, clause).bind(expr)
}

/// Binds an expression where aggregates may stand; they are added to `aggs`.
///
/// # Errors
/// As the binder.
pub fn bind_aggregated(
    expr: &Expr,
    scope: &Scope,
    facts: &Facts,
    clause: &str,
    aggs: &mut Vec<AggSpec>,
) -> Result<BoundExpr> {
    let mut binder = Binder::new(scope, facts as &dyn SessionFacts, clause);
    binder.allow_aggregates = true;
    binder.aggregates = std::mem::take(aggs);
    let bound = binder.bind(expr);
    *aggs = std::mem::take(&mut binder.aggregates);
    bound
}
