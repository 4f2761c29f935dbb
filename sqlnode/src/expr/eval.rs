//! The evaluator: one recursive match over the bound tree.
//!
//! AND and OR follow three-valued logic and stop as soon as the answer is known. Nothing is cached between
//! rows.

use super::types::{coerce, coerce_today};
use super::{BoundExpr, CaseNode, CmpOp, EvalContext, LikeNode, Node, dates, func::Args, func_text, member};
use crate::value::arith::{self, ArithContext};
use crate::value::{Collation, LikePattern, MySqlError, Result, SqlType, Text, Value, cast, compare};
use std::cmp::Ordering;

impl BoundExpr {
    /// Computes the value for a row.
    ///
    /// # Errors
    /// Results out of range, values that a strict write refuses, and what functions report.
    pub fn eval(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
        let get = |values: &[Value], at: usize| values.get(at).cloned().unwrap_or(Value::Null);
        Ok(match &self.node {
            Node::Const(value) => value.clone(),
            Node::Column(at) => get(row, *at),
            Node::Param(at) => get(ctx.params, *at),
            Node::Agg(at) => get(ctx.aggs, *at),
            Node::InsertValue(at) => get(ctx.new_row, *at),
            Node::UserVar(name) => ctx.facts.user_var(name),
            Node::AssignVar(name, value) => {
                let value = value.eval_typed(row, ctx)?;
                ctx.facts.set_user_var(name, value.clone())?;
                value
            }
            Node::SysVar(scope, name) => ctx.facts.sys_var(*scope, name)?,
            Node::And(list) => Value::from_truth(chain(list, row, ctx, false)?),
            Node::Or(list) => Value::from_truth(chain(list, row, ctx, true)?),
            Node::Xor(a, b) => {
                let (a, b) = (a.truth(row, ctx)?, b.truth(row, ctx)?);
                Value::from_truth(a.zip(b).map(|(a, b)| a != b))
            }
            Node::Not(a) => Value::from_truth(a.truth(row, ctx)?.map(|a| !a)),
            Node::IsNull(a, not) => Value::from_bool(a.eval(row, ctx)?.is_null() != *not),
            Node::IsTruth(a, wanted, not) => Value::from_bool((a.truth(row, ctx)? == Some(*wanted)) != *not),
            Node::Compare(op, a, b, collation) => {
                let (a, b) = (a.eval(row, ctx)?, b.eval(row, ctx)?);
                compare_values(*op, &a, &b, *collation)
            }
            Node::Between(abc, not, collation) => between(abc, *not, *collation, row, ctx)?,
            Node::In(a, list, not, collation) => in_list(a, list, *not, *collation, row, ctx)?,
            Node::Like(like) => eval_like(like, row, ctx)?,
            Node::Regexp(regexp) => regexp.eval(row, ctx)?,
            Node::Member(member, beside) => member::eval(member, beside.as_deref(), row, ctx)?,
            Node::Arith(..) | Node::Bits(..) | Node::Neg(..) | Node::BitNot(_) => {
                self.eval_operator(row, ctx)?
            }
            Node::Case(case) => eval_case(case, &self.ty, row, ctx)?,
            Node::Cast(a) => {
                let value = a.eval_typed(row, ctx)?;
                cast::cast(&value, &self.ty, ctx.facts.sql_mode(), Some(ctx.today()), ctx.warnings)
            }
            Node::Recode(a) => match a.eval_typed(row, ctx)? {
                Value::Null => Value::Null,
                value => Value::Text(recode(&value, self.ty.collation())),
            },
            Node::DateArith(..)
            | Node::Extract(..)
            | Node::TimestampDiff(..)
            | Node::Trim(..)
            | Node::Call(..) => self.eval_function(row, ctx)?,
        })
    }

    /// The operators on numbers.
    fn eval_operator(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
        Ok(match &self.node {
            Node::Arith(op, a, b, text) => {
                let (a, b) = (a.eval(row, ctx)?, b.eval(row, ctx)?);
                arith::apply(*op, &a, &b, &mut arith_context(ctx, &&**text))?
            }
            Node::Bits(op, a, b) => {
                let (a, b) = (a.eval(row, ctx)?, b.eval(row, ctx)?);
                arith::apply_bits(*op, &a, &b, ctx.warnings)
            }
            Node::Neg(a, text) => {
                let a = a.eval(row, ctx)?;
                arith::negate(&a, &mut arith_context(ctx, &&**text))?
            }
            Node::BitNot(a) => {
                let a = a.eval(row, ctx)?;
                arith::invert_bits(&a, ctx.warnings)
            }
            _ => return Err(MySqlError::internal("not an operator on numbers")),
        })
    }

    /// What is written like a function, and dates with intervals.
    fn eval_function(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
        Ok(match &self.node {
            Node::DateArith(a, sub, amount, unit) => {
                let (a, amount) = (a.eval(row, ctx)?, amount.eval(row, ctx)?);
                let moved = dates::add_interval(&a, *sub, &amount, *unit, ctx);
                coerce(moved, &self.ty)
            }
            Node::Extract(unit, a) => {
                let value = a.eval(row, ctx)?;
                dates::extract(*unit, &value, ctx)
            }
            Node::TimestampDiff(unit, a, b) => {
                let (a, b) = (a.eval(row, ctx)?, b.eval(row, ctx)?);
                dates::difference(*unit, &a, &b, ctx)
            }
            Node::Trim(side, what, a) => {
                let text = a.eval_typed(row, ctx)?;
                let what = what.as_ref().map(|what| what.eval_typed(row, ctx)).transpose()?;
                func_text::trim(*side, what.as_ref(), &text, self.ty.collation())
            }
            Node::Call(def, args) => {
                let mut args = Args { exprs: args, row, ctx, ty: &self.ty };
                (def.eval)(&mut args)?
            }
            _ => return Err(MySqlError::internal("not a function")),
        })
    }
}

fn arith_context<'a>(ctx: &'a mut EvalContext<'_>, text: &'a &'a str) -> ArithContext<'a> {
    ArithContext {
        mode: ctx.facts.sql_mode(),
        div_increment: ctx.facts.div_precision_increment(),
        writing: ctx.writing,
        expression: text,
        warnings: ctx.warnings,
    }
}

/// AND (`stop` false) and OR (`stop` true): ends at the first operand that decides.
fn chain(list: &[BoundExpr], row: &[Value], ctx: &mut EvalContext<'_>, stop: bool) -> Result<Option<bool>> {
    let mut answer = Some(!stop);
    for operand in list {
        match operand.truth(row, ctx)? {
            Some(truth) if truth == stop => return Ok(Some(stop)),
            Some(_) => {}
            None => answer = None,
        }
    }
    Ok(answer)
}

/// Compares two values.
pub(super) fn compare_values(op: CmpOp, a: &Value, b: &Value, collation: Collation) -> Value {
    let Some(order) = compare::compare_with(a, b, collation) else {
        return match op {
            CmpOp::NullSafeEq => Value::from_bool(a.is_null() && b.is_null()),
            _ => Value::Null,
        };
    };
    Value::from_bool(match op {
        CmpOp::Eq | CmpOp::NullSafeEq => order == Ordering::Equal,
        CmpOp::Ne => order != Ordering::Equal,
        CmpOp::Lt => order == Ordering::Less,
        CmpOp::Le => order != Ordering::Greater,
        CmpOp::Gt => order == Ordering::Greater,
        CmpOp::Ge => order != Ordering::Less,
    })
}

fn between(
    abc: &[BoundExpr; 3],
    not: bool,
    collation: Collation,
    row: &[Value],
    ctx: &mut EvalContext<'_>,
) -> Result<Value> {
    let value = abc[0].eval(row, ctx)?;
    let (low, high) = (abc[1].eval(row, ctx)?, abc[2].eval(row, ctx)?);
    let above = compare::compare_with(&value, &low, collation).map(Ordering::is_ge);
    let below = compare::compare_with(&value, &high, collation).map(Ordering::is_le);
    // One bound may decide although the other is NULL.
    let inside = match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    Ok(Value::from_truth(inside.map(|inside| inside != not)))
}

fn in_list(
    a: &BoundExpr,
    list: &[BoundExpr],
    not: bool,
    collation: Collation,
    row: &[Value],
    ctx: &mut EvalContext<'_>,
) -> Result<Value> {
    let value = a.eval(row, ctx)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mut saw_null = false;
    for item in list {
        match item.node {
            Node::Const(ref item) => match compare::compare_with(&value, item, collation) {
                Some(Ordering::Equal) => return Ok(Value::from_bool(!not)),
                Some(_) => {}
                None => saw_null = true,
            },
            _ => {
                let item = item.eval(row, ctx)?;
                match compare::compare_with(&value, &item, collation) {
                    Some(Ordering::Equal) => return Ok(Value::from_bool(!not)),
                    Some(_) => {}
                    None => saw_null = true,
                }
            }
        }
    }
    Ok(if saw_null { Value::Null } else { Value::from_bool(not) })
}

fn eval_like(like: &LikeNode, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
    let value = like.expr.eval_typed(row, ctx)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = cast::to_text(&value, like.collation);
    let hit = match &like.compiled {
        Some(pattern) => pattern.matches(text.as_bytes()),
        None => {
            let pattern = like.pattern.eval_typed(row, ctx)?;
            if pattern.is_null() {
                return Ok(Value::Null);
            }
            let pattern = cast::to_text(&pattern, like.collation);
            LikePattern::new(like.collation, pattern.as_bytes(), like.escape).matches(text.as_bytes())
        }
    };
    Ok(Value::from_bool(hit != like.not))
}

fn eval_case(case: &CaseNode, ty: &SqlType, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
    let operand = match &case.operand {
        Some(operand) => Some(operand.eval(row, ctx)?),
        None => None,
    };
    for (when, then) in &case.whens {
        let hit = match &operand {
            Some(operand) => {
                let when = when.eval(row, ctx)?;
                compare::compare_with(operand, &when, case.collation) == Some(Ordering::Equal)
            }
            None => when.truth(row, ctx)? == Some(true),
        };
        if hit {
            let value = then.eval_typed(row, ctx)?;
            return Ok(coerce_today(value, ty, ctx));
        }
    }
    match &case.other {
        Some(other) => {
            let value = other.eval_typed(row, ctx)?;
            Ok(coerce_today(value, ty, ctx))
        }
        None => Ok(Value::Null),
    }
}

/// The value as text under a collation. From or to `binary` the bytes stay as they are.
pub(super) fn recode(value: &Value, collation: Collation) -> Text {
    match value {
        Value::Text(text) if text.collation().is_binary() || collation.is_binary() => {
            Text::new(text.as_bytes(), collation)
        }
        other => cast::to_text(other, collation),
    }
}
