//! Aggregates: what the binder took out of an expression, and the accumulator the executor feeds.
//!
//! An accumulator is made per group, fed once per row, and finished once. Its memory is bounded: DISTINCT
//! sets and GROUP_CONCAT's rows count their bytes and end in error 1038 when they pass the limit.

use super::{BoundExpr, EvalContext};
use crate::parser::ast::AggFunc;
use crate::value::{Collation, Decimal, ErrorCode, MySqlError, Result, SqlType, Text, Value, cast, compare};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Most bytes one accumulator keeps.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// An aggregate call, bound.
#[derive(Clone, Debug)]
pub struct AggSpec {
    /// Which.
    pub func: AggFunc,
    /// With DISTINCT.
    pub distinct: bool,
    /// The arguments; none for COUNT(*).
    pub args: Vec<BoundExpr>,
    /// GROUP_CONCAT's order: key and whether it descends.
    pub order: Vec<(BoundExpr, bool)>,
    /// GROUP_CONCAT's separator.
    pub separator: Box<[u8]>,
    /// The type of the result.
    pub ty: SqlType,
}

/// What an aggregate has seen of its group.
#[derive(Debug)]
pub struct Accumulator {
    state: State,
    seen: Option<HashSet<Box<[u8]>>>,
    kept_bytes: usize,
}

#[derive(Debug)]
enum State {
    Count(i64),
    /// SUM and AVG, exactly.
    Exact(Decimal, u64),
    /// SUM and AVG of doubles.
    Double(f64, u64),
    /// MIN, MAX, ANY_VALUE.
    Best(Value),
    Bits(u64),
    /// Count, mean and sum of squared differences.
    Variance(u64, f64, f64),
    /// GROUP_CONCAT's rows: sort keys and text.
    Rows(Vec<(Vec<Value>, Text)>),
}

impl Accumulator {
    /// An accumulator for a new group.
    pub fn new(spec: &AggSpec) -> Accumulator {
        let state = match spec.func {
            AggFunc::Count => State::Count(0),
            AggFunc::Sum | AggFunc::Avg if matches!(spec.ty, SqlType::Decimal { .. }) => {
                State::Exact(Decimal::ZERO, 0)
            }
            AggFunc::Sum | AggFunc::Avg => State::Double(0.0, 0),
            AggFunc::BitAnd => State::Bits(u64::MAX),
            AggFunc::BitOr | AggFunc::BitXor => State::Bits(0),
            AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => {
                State::Variance(0, 0.0, 0.0)
            }
            AggFunc::GroupConcat => State::Rows(Vec::new()),
            AggFunc::Min
            | AggFunc::Max
            | AggFunc::AnyValue
            | AggFunc::JsonArrayAgg
            | AggFunc::JsonObjectAgg => State::Best(Value::Null),
        };
        let distinct = spec.distinct && !matches!(spec.func, AggFunc::Min | AggFunc::Max);
        Accumulator { state, seen: distinct.then(HashSet::new), kept_bytes: 0 }
    }

    /// Takes a row of the group.
    ///
    /// # Errors
    /// What evaluating the arguments reports; 1690 for a sum out of range; 1038 for too much memory.
    pub fn add(&mut self, spec: &AggSpec, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<()> {
        let mut values = Vec::with_capacity(spec.args.len());
        for arg in &spec.args {
            let value = arg.eval_typed(row, ctx)?;
            // NULLs do not count, except for the value that ANY_VALUE happens to take.
            if value.is_null() && spec.func != AggFunc::AnyValue {
                return Ok(());
            }
            values.push(value);
        }
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            for (value, arg) in values.iter().zip(&spec.args) {
                compare::append_group_key(value, arg.ty.collation(), &mut key);
            }
            let bytes = key.len();
            if !seen.insert(key.into()) {
                return Ok(());
            }
            self.keep(bytes + 48)?;
        }
        if let State::Rows(_) = self.state {
            return self.add_row(spec, &values, row, ctx);
        }
        self.add_value(spec, values.into_iter().next(), ctx)
    }

    fn keep(&mut self, bytes: usize) -> Result<()> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX { Err(ErrorCode::OutOfSortMemory.into()) } else { Ok(()) }
    }

    fn add_row(
        &mut self,
        spec: &AggSpec,
        values: &[Value],
        row: &[Value],
        ctx: &mut EvalContext<'_>,
    ) -> Result<()> {
        let mut keys = Vec::with_capacity(spec.order.len());
        for (key, _) in &spec.order {
            keys.push(key.eval_typed(row, ctx)?);
        }
        let collation = spec.ty.collation();
        let mut text = Vec::new();
        for value in values {
            text.extend_from_slice(super::eval::recode(value, collation).as_bytes());
        }
        // Without an order, what lies past the result's limit is never shown.
        if spec.order.is_empty() && self.kept_bytes > ctx.facts.group_concat_max_len() * 64 + (1 << 16) {
            return Ok(());
        }
        self.keep(text.len() + 64 * (1 + keys.len()))?;
        if let State::Rows(rows) = &mut self.state {
            rows.push((keys, Text::new(&text, collation)));
        }
        Ok(())
    }

    fn add_value(&mut self, spec: &AggSpec, value: Option<Value>, ctx: &mut EvalContext<'_>) -> Result<()> {
        let out_of_range =
            |ty: &str| MySqlError::out_of_range(ty, &format!("{}()", spec.func.name().to_lowercase()));
        match (&mut self.state, value) {
            (State::Count(n), _) => *n += 1,
            (State::Exact(sum, n), Some(value)) => {
                *sum =
                    sum.add(&cast::to_decimal(&value, ctx.warnings)).map_err(|_| out_of_range("DECIMAL"))?;
                *n += 1;
            }
            (State::Double(sum, n), Some(value)) => {
                *sum += cast::to_f64(&value, ctx.warnings);
                if !sum.is_finite() {
                    return Err(out_of_range("DOUBLE"));
                }
                *n += 1;
            }
            (State::Bits(bits), Some(value)) => {
                let value = cast::to_int(&value, ctx.warnings) as u64;
                match spec.func {
                    AggFunc::BitAnd => *bits &= value,
                    AggFunc::BitOr => *bits |= value,
                    _ => *bits ^= value,
                }
            }
            (State::Variance(n, mean, squares), Some(value)) => {
                let x = cast::to_f64(&value, ctx.warnings);
                *n += 1;
                let delta = x - *mean;
                *mean += delta / *n as f64;
                *squares += delta * (x - *mean);
            }
            (State::Best(best), Some(value)) => {
                let wanted = if spec.func == AggFunc::Min { Ordering::Less } else { Ordering::Greater };
                let better = match spec.func {
                    AggFunc::AnyValue => best.is_null(),
                    _ => {
                        best.is_null()
                            || compare::compare_with(&value, best, spec.ty.collation()) == Some(wanted)
                    }
                };
                if better {
                    *best = value;
                }
            }
            (State::Rows(_), _) | (_, None) => {}
        }
        Ok(())
    }

    /// The result for the group.
    ///
    /// # Errors
    /// 1690 for an average out of range.
    pub fn finish(self, spec: &AggSpec, ctx: &mut EvalContext<'_>) -> Result<Value> {
        Ok(match self.state {
            State::Count(n) => Value::Int(n),
            State::Exact(_, 0) | State::Double(_, 0) | State::Variance(0, ..) => Value::Null,
            State::Exact(sum, n) if spec.func == AggFunc::Avg => {
                let quotient = sum.div(&Decimal::from(n), ctx.facts.div_precision_increment());
                let quotient = quotient.map_err(|_| MySqlError::out_of_range("DECIMAL", "avg()"))?;
                super::types::coerce(quotient.into(), &spec.ty)
            }
            State::Exact(sum, _) => super::types::coerce(Value::Decimal(sum), &spec.ty),
            State::Double(sum, n) if spec.func == AggFunc::Avg => Value::Double(sum / n as f64),
            State::Double(sum, _) => Value::Double(sum),
            State::Best(value) => value,
            State::Bits(bits) => Value::UInt(bits),
            State::Variance(n, _, squares) => variance(spec.func, n, squares),
            State::Rows(rows) => group_concat(spec, rows, ctx),
        })
    }
}

fn variance(func: AggFunc, n: u64, squares: f64) -> Value {
    let sample = matches!(func, AggFunc::StdSamp | AggFunc::VarSamp);
    if sample && n < 2 {
        return Value::Null;
    }
    let variance = squares / (n - u64::from(sample)) as f64;
    let root = matches!(func, AggFunc::StdPop | AggFunc::StdSamp);
    Value::Double(if root { variance.sqrt() } else { variance })
}

fn group_concat(spec: &AggSpec, mut rows: Vec<(Vec<Value>, Text)>, ctx: &mut EvalContext<'_>) -> Value {
    if rows.is_empty() {
        return Value::Null;
    }
    if !spec.order.is_empty() {
        rows.sort_by(|(a, _), (b, _)| {
            for ((a, b), (key, desc)) in a.iter().zip(b).zip(&spec.order) {
                let order = compare::sort_order(a, b, key.ty.collation());
                let order = if *desc { order.reverse() } else { order };
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        });
    }
    let limit = ctx.facts.group_concat_max_len();
    let collation: Collation = spec.ty.collation();
    let mut out = Vec::new();
    for (i, (_, text)) in rows.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(&spec.separator);
        }
        out.extend_from_slice(text.as_bytes());
        if out.len() > limit {
            out.truncate(limit);
            // Do not cut a character in two.
            let cut = collation.charset().first_invalid(&out).filter(|at| out.len() - at < 4);
            out.truncate(cut.unwrap_or(limit));
            ctx.warnings.warn(MySqlError::with(ErrorCode::CutValueGroupConcat, &[&(i + 1)]));
            break;
        }
    }
    Value::Text(Text::new(&out, collation))
}
