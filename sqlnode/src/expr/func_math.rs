//! Functions of numbers. A result that is no number (the logarithm of 0, the arc sine of 2) is NULL.

use super::func::{Args, FuncDef, Returns, def, def_null, def_session, some};
use super::{BoundExpr, digest, types};
use crate::value::{Collation, Decimal, MySqlError, Result, SqlType, Value, cast, number};

pub(super) static TABLE: &[FuncDef] = &[
    def("abs", 1, 1, Returns::Number, abs),
    def("ceil", 1, 1, Returns::Whole, |a| whole(a, f64::ceil, Decimal::ceil)),
    def("ceiling", 1, 1, Returns::Whole, |a| whole(a, f64::ceil, Decimal::ceil)),
    def("floor", 1, 1, Returns::Whole, |a| whole(a, f64::floor, Decimal::floor)),
    def("round", 1, 2, Returns::By(round_type), |a| round(a, true)),
    def("truncate", 2, 2, Returns::By(round_type), |a| round(a, false)),
    def("pow", 2, 2, Returns::Double, power),
    def("power", 2, 2, Returns::Double, power),
    def_null("sqrt", 1, 1, Returns::Double, |a| real(a, f64::sqrt)),
    def("exp", 1, 1, Returns::Double, exp),
    def_null("ln", 1, 1, Returns::Double, |a| real(a, f64::ln)),
    def_null("log", 1, 2, Returns::Double, log),
    def_null("log2", 1, 1, Returns::Double, |a| real(a, |x| x.ln() / std::f64::consts::LN_2)),
    def_null("log10", 1, 1, Returns::Double, |a| real(a, f64::log10)),
    def("sign", 1, 1, Returns::Int, |a| {
        let x = some!(a.double(0)?);
        Ok(Value::Int(i64::from(x > 0.0) - i64::from(x < 0.0)))
    }),
    def("pi", 0, 0, Returns::By(|_, _| six_decimals()), |_| Ok(Value::Double(std::f64::consts::PI))),
    def_session("rand", 0, 1, Returns::Double, rand),
    def("greatest", 2, 255, Returns::Common(0), |a| extreme(a, true)),
    def("least", 2, 255, Returns::Common(0), |a| extreme(a, false)),
    def("crc32", 1, 1, Returns::UInt, |a| {
        Ok(Value::UInt(u64::from(digest::crc32(some!(a.own_text(0)?).as_bytes()))))
    }),
    def("sin", 1, 1, Returns::Double, |a| real(a, f64::sin)),
    def("cos", 1, 1, Returns::Double, |a| real(a, f64::cos)),
    def("tan", 1, 1, Returns::Double, |a| real(a, f64::tan)),
    def("cot", 1, 1, Returns::Double, |a| real(a, |x| 1.0 / x.tan())),
    def_null("asin", 1, 1, Returns::Double, |a| real(a, f64::asin)),
    def_null("acos", 1, 1, Returns::Double, |a| real(a, f64::acos)),
    def("atan", 1, 2, Returns::Double, atan),
    def("atan2", 2, 2, Returns::Double, atan),
    def("radians", 1, 1, Returns::Double, |a| real(a, f64::to_radians)),
    def("degrees", 1, 1, Returns::Double, |a| real(a, f64::to_degrees)),
    def("bit_count", 1, 1, Returns::Int, |a| {
        let value = a.val(0)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        Ok(Value::Int(i64::from((cast::to_int(&value, a.ctx.warnings) as u64).count_ones())))
    }),
];

/// PI() shows six decimals.
fn six_decimals() -> SqlType {
    SqlType::Double { size: Some((8, 6)), flags: SqlType::DOUBLE.number_flags() }
}

fn finite(value: f64) -> Value {
    if value.is_finite() { Value::Double(value) } else { Value::Null }
}

fn real(a: &mut Args<'_, '_>, f: impl Fn(f64) -> f64) -> Result<Value> {
    Ok(finite(f(some!(a.double(0)?))))
}

fn power(a: &mut Args<'_, '_>) -> Result<Value> {
    let (x, y) = (some!(a.double(0)?), some!(a.double(1)?));
    let result = x.powf(y);
    if result.is_finite() {
        return Ok(Value::Double(result));
    }
    let text = format!("pow({},{})", number::format_f64(x), number::format_f64(y));
    Err(MySqlError::out_of_range("DOUBLE", &text))
}

fn exp(a: &mut Args<'_, '_>) -> Result<Value> {
    let x = some!(a.double(0)?);
    let result = x.exp();
    if result.is_finite() {
        return Ok(Value::Double(result));
    }
    Err(MySqlError::out_of_range("DOUBLE", &format!("exp({})", number::format_f64(x))))
}

fn log(a: &mut Args<'_, '_>) -> Result<Value> {
    let x = some!(a.double(0)?);
    if a.len() == 1 {
        return Ok(finite(x.ln()));
    }
    let y = some!(a.double(1)?);
    if x <= 0.0 || x == 1.0 || y <= 0.0 {
        return Ok(Value::Null);
    }
    Ok(finite(y.ln() / x.ln()))
}

fn atan(a: &mut Args<'_, '_>) -> Result<Value> {
    let y = some!(a.double(0)?);
    if a.len() == 1 {
        return Ok(finite(y.atan()));
    }
    Ok(finite(y.atan2(some!(a.double(1)?))))
}

fn abs(a: &mut Args<'_, '_>) -> Result<Value> {
    Ok(match a.val(0)? {
        Value::Int(v) => match v.checked_abs() {
            Some(v) => Value::Int(v),
            None => return Err(MySqlError::out_of_range("BIGINT", &format!("abs({v})"))),
        },
        Value::Decimal(v) => Value::Decimal(v.abs()),
        value @ (Value::Null | Value::UInt(_)) => value,
        value => Value::Double(cast::to_f64(&value, a.ctx.warnings).abs()),
    })
}

fn whole(
    a: &mut Args<'_, '_>,
    real: fn(f64) -> f64,
    exact: fn(&Decimal) -> std::result::Result<Decimal, crate::value::decimal::Overflow>,
) -> Result<Value> {
    Ok(match a.val(0)? {
        Value::Decimal(v) => {
            let value = exact(&v).map_err(|_| MySqlError::out_of_range("DECIMAL", "ceil"))?;
            types::coerce(Value::Decimal(value), a.ty)
        }
        value @ (Value::Null | Value::Int(_) | Value::UInt(_)) => value,
        value => types::coerce(Value::Double(real(cast::to_f64(&value, a.ctx.warnings))), a.ty),
    })
}

/// The places of ROUND and TRUNCATE, if they are constant.
fn constant_places(args: &[BoundExpr]) -> Option<i64> {
    match args.get(1) {
        None => Some(0),
        Some(expr) => match expr.as_const() {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        },
    }
}

fn round_type(args: &[BoundExpr], _: Collation) -> SqlType {
    let first = args.first().map_or(SqlType::Null, |e| e.ty.clone());
    match types::exact(&first) {
        _ if types::is_whole(&first) && first.is_unsigned() => SqlType::BIGINT_UNSIGNED,
        _ if types::is_whole(&first) => SqlType::BIGINT,
        Some((int, scale)) => {
            let places = constant_places(args).map_or(scale, |n| n.clamp(0, i64::from(scale)) as u8);
            // Rounding may carry into one more digit.
            types::decimal(u32::from(int) + u32::from(places < scale), u32::from(places))
        }
        // The client sees as many decimals as were asked for.
        None => match constant_places(args) {
            Some(n) if (0..31).contains(&n) => {
                SqlType::Double { size: Some((17 + n as u8, n as u8)), flags: SqlType::DOUBLE.number_flags() }
            }
            _ => SqlType::DOUBLE,
        },
    }
}

/// ROUND of a double: a half goes to the even neighbour, as the C library does it.
fn round_double(x: f64, places: i32) -> f64 {
    let power = 10f64.powi(places.abs().min(308));
    let rounded = if places >= 0 {
        (x * power).round_ties_even() / power
    } else {
        (x / power).round_ties_even() * power
    };
    if rounded.is_finite() { rounded } else { x }
}

fn round(a: &mut Args<'_, '_>, nearest: bool) -> Result<Value> {
    let value = a.val(0)?;
    let places = if a.len() > 1 { some!(a.int(1)?) } else { 0 };
    let places = places.clamp(-400, 400) as i32;
    let out_of_range = |_| MySqlError::out_of_range("BIGINT", "round()");
    let exact = |v: &Decimal| {
        if nearest { v.round_places(places) } else { Ok(v.truncate_places(places)) }
    };
    Ok(match &value {
        Value::Null => Value::Null,
        Value::Int(_) | Value::UInt(_) if places >= 0 => value,
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => {
            let rounded = exact(&cast::as_decimal(&value)).map_err(out_of_range)?;
            let fits = match (rounded.to_i128(), a.ty) {
                (Some(whole), SqlType::Int { flags, .. }) if flags.unsigned => u64::try_from(whole).is_ok(),
                (Some(whole), SqlType::Int { .. }) => i64::try_from(whole).is_ok(),
                _ => true,
            };
            if !fits {
                return Err(MySqlError::out_of_range("BIGINT", "round()"));
            }
            types::coerce(Value::Decimal(rounded), a.ty)
        }
        other => {
            let x = cast::to_f64(other, a.ctx.warnings);
            Value::Double(if nearest { round_double(x, places) } else { number::truncate_f64(x, places) })
        }
    })
}

fn rand(a: &mut Args<'_, '_>) -> Result<Value> {
    const MAX: u64 = 0x3fff_ffff;
    if a.len() == 0 {
        return Ok(Value::Double((a.ctx.facts.random() >> 11) as f64 / (1u64 << 53) as f64));
    }
    // The same seed gives the same first number as in MySQL.
    let seed = u64::from(a.int(0)?.unwrap_or(0) as u32);
    let first = (seed * 0x1_0001 + 55_555_555) & 0xffff_ffff;
    let second = (seed * 0x1000_0001) & 0xffff_ffff;
    let (first, second) = (first % MAX, second % MAX);
    Ok(Value::Double(((first * 3 + second) % MAX) as f64 / MAX as f64))
}

fn extreme(a: &mut Args<'_, '_>, greatest: bool) -> Result<Value> {
    let collation = a.collation();
    let mut best = some_value(a.result(0)?);
    for at in 1..a.len() {
        let (Some(current), Some(value)) = (best.take(), some_value(a.result(at)?)) else {
            return Ok(Value::Null);
        };
        let order = crate::value::compare::compare_with(&value, &current, collation);
        let better = order.is_some_and(|order| if greatest { order.is_gt() } else { order.is_lt() });
        best = Some(if better { value } else { current });
    }
    Ok(best.unwrap_or(Value::Null))
}

fn some_value(value: Value) -> Option<Value> {
    if value.is_null() { None } else { Some(value) }
}
