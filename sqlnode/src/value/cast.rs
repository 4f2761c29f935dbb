//! Conversions between kinds of values: what CAST does, and what operators do to their operands.
//!
//! Role: the `as_...` functions convert silently, for comparing and sorting; the `to_...` functions warn as
//! MySQL does (1292 for text that is no number, 1292 for text that is no date). NULL is the caller's: the
//! number of NULL is 0 here and its text is empty.

use super::temporal::{
    DateRules, MICROS_PER_SECOND, Parsed, parse_datetime, parse_datetime_number, parse_time,
    parse_time_number,
};
use super::{
    Collation, Date, DateTime, Decimal, MySqlError, SqlMode, SqlType, Text, Time, Value, Warnings, number,
};

fn wrong(kind: &str, text: &Text) -> MySqlError {
    MySqlError::truncated_wrong_value(kind, &text.to_str_lossy())
}

/// The value as a double, without warnings.
pub fn as_f64(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Float(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Decimal(v) => v.to_f64(),
        Value::Text(text) => number::parse_f64(text.as_bytes()).value,
        Value::Date(v) => f64::from(v.to_number()),
        Value::DateTime(v) => v.to_number() as f64 + f64::from(v.micro()) / 1e6,
        Value::Time(v) => {
            let fraction = f64::from(v.micro()) / 1e6;
            v.to_number() as f64 + if v.is_negative() { -fraction } else { fraction }
        }
    }
}

/// The value as a double.
pub fn to_f64(value: &Value, warnings: &mut Warnings) -> f64 {
    if let Value::Text(text) = value {
        let parsed = number::parse_f64(text.as_bytes());
        if !parsed.clean || parsed.overflow {
            warnings.warn(wrong("DOUBLE", text));
        }
        return parsed.value;
    }
    as_f64(value)
}

/// The value as a decimal, without warnings; a double that does not fit becomes the greatest decimal.
pub fn as_decimal(value: &Value) -> Decimal {
    let from_f64 = |v: f64| {
        Decimal::from_f64(v).unwrap_or_else(|| {
            let max = Decimal::max_value(super::decimal::PRECISION_MAX, 0);
            if v < 0.0 { max.neg() } else { max }
        })
    };
    match value {
        Value::Null => Decimal::ZERO,
        Value::Int(v) => Decimal::from(*v),
        Value::UInt(v) => Decimal::from(*v),
        // A FLOAT counts as the digits it prints, not as the double behind them.
        Value::Float(v) => number::parse_decimal(number::format_f32(*v).as_bytes()).value,
        Value::Double(v) => from_f64(*v),
        Value::Decimal(v) => v.clone(),
        Value::Text(text) => number::parse_decimal(text.as_bytes()).value,
        Value::Date(v) => Decimal::from(i64::from(v.to_number())),
        Value::DateTime(v) => with_micros(i128::from(v.to_number()), v.micro(), v.fsp()),
        Value::Time(v) => {
            let magnitude = with_micros(i128::from(v.to_number().unsigned_abs()), v.micro(), v.fsp());
            if v.is_negative() { magnitude.neg() } else { magnitude }
        }
    }
}

fn with_micros(whole: i128, micro: u32, fsp: u8) -> Decimal {
    let unscaled = whole * 1_000_000 + i128::from(micro);
    Decimal::from_unscaled(unscaled, 6).truncate_places(i32::from(fsp))
}

/// The value as a decimal.
pub fn to_decimal(value: &Value, warnings: &mut Warnings) -> Decimal {
    if let Value::Text(text) = value {
        let parsed = number::parse_decimal(text.as_bytes());
        if !parsed.clean || parsed.overflow {
            warnings.warn(wrong("DECIMAL", text));
        }
        return parsed.value;
    }
    as_decimal(value)
}

/// The value as a whole number in the range of BIGINT and BIGINT UNSIGNED together: fractions round, except
/// in text, where they are cut off with a warning.
pub fn to_int(value: &Value, warnings: &mut Warnings) -> i128 {
    let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(u64::MAX));
    match value {
        Value::Null => 0,
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        Value::Float(v) => clamp(f64::from(*v).round_ties_even() as i128),
        Value::Double(v) => clamp(v.round_ties_even() as i128),
        Value::Decimal(v) => {
            let limit = if v.is_negative() { i128::MIN } else { i128::MAX };
            let whole = v.to_i128().unwrap_or(limit);
            if clamp(whole) != whole {
                warnings.warn(MySqlError::truncated_wrong_value("DECIMAL", &v.to_string()));
            }
            clamp(whole)
        }
        Value::Text(text) => {
            let parsed = number::parse_int(text.as_bytes());
            if !parsed.clean || parsed.overflow {
                warnings.warn(wrong("INTEGER", text));
            }
            parsed.value
        }
        Value::Date(v) => i128::from(v.to_number()),
        Value::DateTime(v) => i128::from(v.round(0).unwrap_or(*v).to_number()),
        Value::Time(v) => i128::from(v.round(0).to_number()),
    }
}

/// CAST(x AS SIGNED): numbers past the range of BIGINT keep their 64 bits.
pub fn to_i64(value: &Value, warnings: &mut Warnings) -> i64 {
    match value {
        Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            to_int(value, warnings).min(i128::from(i64::MAX)) as i64
        }
        _ => to_int(value, warnings) as i64,
    }
}

/// CAST(x AS UNSIGNED): negative whole numbers keep their 64 bits.
pub fn to_u64(value: &Value, warnings: &mut Warnings) -> u64 {
    match value {
        Value::Decimal(_) => to_int(value, warnings).max(0) as u64,
        _ => to_int(value, warnings) as u64,
    }
}

/// The text MySQL prints for a value, in the collation's character set. Numbers and dates are ASCII.
pub fn to_text(value: &Value, collation: Collation) -> Text {
    match value {
        Value::Text(text) => super::charset::convert_text(text, collation),
        other => Text::new(to_display(other).as_bytes(), collation),
    }
}

/// The text MySQL prints for a value that is no string.
fn to_display(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Float(v) => number::format_f32(*v),
        Value::Double(v) => number::format_f64(*v),
        Value::Decimal(v) => v.to_string(),
        Value::Text(text) => text.to_str_lossy().into_owned(),
        Value::Date(v) => v.to_string(),
        Value::DateTime(v) => v.to_string(),
        Value::Time(v) => v.to_string(),
    }
}

/// Appends what the text protocol sends for a value of a type, in the value's own character set: decimals at
/// the type's scale, zero-filled integers, fractions as declared. NULL is the caller's.
pub fn append_result_text(value: &Value, sql_type: &SqlType, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a vector cannot fail.
    let _ = match (value, sql_type) {
        (Value::Text(text), _) => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        (Value::Int(v), SqlType::Int { size, flags, width }) if flags.zerofill => {
            let width = usize::from(width.unwrap_or_else(|| size.default_width(true)));
            write!(out, "{v:0width$}")
        }
        (Value::UInt(v), SqlType::Int { size, flags, width }) if flags.zerofill => {
            let width = usize::from(width.unwrap_or_else(|| size.default_width(true)));
            write!(out, "{v:0width$}")
        }
        (Value::UInt(v), SqlType::Year) => write!(out, "{v:04}"),
        (Value::Int(v), _) => write!(out, "{v}"),
        (Value::UInt(v), _) => write!(out, "{v}"),
        (Value::Decimal(v), SqlType::Decimal { scale, .. }) => {
            write!(out, "{}", v.round(*scale).as_ref().unwrap_or(v))
        }
        (Value::Double(_) | Value::Float(_), SqlType::Double { size: Some((_, d)), .. })
        | (Value::Double(_) | Value::Float(_), SqlType::Float { size: Some((_, d)), .. }) => {
            write!(out, "{}", number::format_fixed(as_f64(value), *d))
        }
        (Value::DateTime(v), SqlType::DateTime { fsp } | SqlType::Timestamp { fsp }) => {
            write!(out, "{}", v.with_fsp(*fsp))
        }
        (Value::Time(v), SqlType::Time { fsp }) => write!(out, "{}", v.with_fsp(*fsp)),
        (other, _) => write!(out, "{}", to_display(other)),
    };
}

/// The value as a DATETIME; `None`, with a warning, if it is none. A TIME needs the current date: `today`.
pub fn to_datetime(
    value: &Value,
    rules: DateRules,
    today: Option<Date>,
    warnings: &mut Warnings,
) -> Option<DateTime> {
    let found = match value {
        Value::Null => return None,
        Value::Date(date) => Some(date.at_midnight()),
        Value::DateTime(moment) => Some(*moment),
        Value::Time(time) => {
            let midnight = today?.at_midnight().linear_micros()?;
            return DateTime::from_linear_micros(midnight + time.micros(), time.fsp());
        }
        Value::Text(text) => {
            let parsed = parse_datetime(&text.to_str_lossy(), rules);
            if parsed.is_some_and(|p| !p.clean) {
                warnings.warn(wrong("datetime", text));
            }
            parsed.map(|p| p.value)
        }
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let whole = as_decimal(value).truncate_places(0).to_i128();
            whole.and_then(|v| i64::try_from(v).ok()).and_then(|v| parse_datetime_number(v, rules))
        }
    };
    if found.is_none_or(|moment| !rules.allows(moment.date())) {
        let text = to_display(value);
        warnings.warn(MySqlError::text(
            super::ErrorCode::TruncatedWrongValue,
            format!("Incorrect datetime value: '{text}'"),
        ));
        return None;
    }
    found
}

/// The value as a DATE; `None`, with a warning, if it is none.
pub fn to_date(
    value: &Value,
    rules: DateRules,
    today: Option<Date>,
    warnings: &mut Warnings,
) -> Option<Date> {
    to_datetime(value, rules, today, warnings).map(DateTime::date)
}

/// The value as a TIME; `None`, with a warning, if it is none.
pub fn to_time(value: &Value, warnings: &mut Warnings) -> Option<Time> {
    let parsed = match value {
        Value::Null => return None,
        Value::Time(time) => return Some(*time),
        Value::Date(_) => return Some(Time::ZERO),
        Value::DateTime(moment) => return Some(moment.time_of_day()),
        Value::Text(text) => parse_time(&text.to_str_lossy()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let exact = as_decimal(value);
            // Numbers between the greatest time and the least moment are neither.
            let whole = exact.truncate_places(0).to_i128();
            let known = whole.is_some_and(|v| v.abs() <= 8_385_959 || v >= 10_000_000_000);
            if known { time_of_number(&exact) } else { None }
        }
    };
    if parsed.is_none_or(|p| !p.clean) {
        warnings.warn(MySqlError::truncated_wrong_value("time", &to_display(value)));
    }
    parsed.map(|p| p.value)
}

/// A number such as 101112.5 as a time.
pub(super) fn time_of_number(exact: &Decimal) -> Option<Parsed<Time>> {
    let whole = i64::try_from(exact.truncate_places(0).to_i128()?).ok()?;
    let parsed = parse_time_number(whole)?;
    if exact.scale() == 0 {
        return Some(parsed);
    }
    let micros = exact.mul(&Decimal::from(MICROS_PER_SECOND)).ok()?.round(0).ok()?.to_i128()?;
    let fraction = i64::try_from(micros - i128::from(whole) * i128::from(MICROS_PER_SECOND)).ok()?;
    let value = Time::from_micros_clamped(parsed.value.micros() + fraction, 6);
    Some(Parsed { value, ..parsed })
}

/// CAST(value AS sql_type) for the types CAST takes; other types convert like a column of that type without
/// strictness. `mode` decides which dates are valid.
pub fn cast(
    value: &Value,
    sql_type: &SqlType,
    mode: SqlMode,
    today: Option<Date>,
    warnings: &mut Warnings,
) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    let rules = DateRules::from_mode(mode);
    match sql_type {
        SqlType::Null => Value::Null,
        SqlType::Int { flags, .. } if flags.unsigned => Value::UInt(to_u64(value, warnings)),
        SqlType::Int { .. } => Value::Int(to_i64(value, warnings)),
        SqlType::Bit(_) | SqlType::Year => Value::UInt(to_u64(value, warnings)),
        SqlType::Decimal { precision, scale, .. } => {
            Value::Decimal(fit_decimal(&to_decimal(value, warnings), *precision, *scale, warnings))
        }
        SqlType::Float { .. } => Value::Float(to_f64(value, warnings) as f32),
        SqlType::Double { .. } => Value::Double(to_f64(value, warnings)),
        SqlType::Char { chars, collation } => {
            Value::Text(cut_text(&to_text(value, *collation), u32::from(*chars), warnings))
        }
        SqlType::VarChar { chars, collation } => {
            Value::Text(cut_text(&to_text(value, *collation), *chars, warnings))
        }
        SqlType::Text { collation, .. }
        | SqlType::Enum { collation, .. }
        | SqlType::Set { collation, .. } => Value::Text(to_text(value, *collation)),
        SqlType::Binary(n) => {
            let text = cut_text(&to_text(value, Collation::BINARY), u32::from(*n), warnings);
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(usize::from(*n), 0);
            Value::bytes(&bytes)
        }
        SqlType::VarBinary(n) => {
            Value::Text(cut_text(&to_text(value, Collation::BINARY), u32::from(*n), warnings))
        }
        SqlType::Blob(_) => Value::Text(to_text(value, Collation::BINARY)),
        SqlType::Date => to_date(value, rules, today, warnings).map_or(Value::Null, Value::Date),
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => to_datetime(value, rules, today, warnings)
            .and_then(|v| v.round(*fsp))
            .map_or(Value::Null, Value::DateTime),
        SqlType::Time { fsp } => to_time(value, warnings).map_or(Value::Null, |v| Value::Time(v.round(*fsp))),
    }
}

/// Rounds to the type, or takes the nearest limit with a warning.
fn fit_decimal(value: &Decimal, precision: u8, scale: u8, warnings: &mut Warnings) -> Decimal {
    match value.round(scale) {
        Ok(rounded) if rounded.fits(precision, scale) => rounded,
        _ => {
            warnings.warn(MySqlError::with(super::ErrorCode::WarnDataOutOfRange, &[&"", &1]));
            let max = Decimal::max_value(precision, scale);
            if value.is_negative() { max.neg() } else { max }
        }
    }
}

fn cut_text(text: &Text, chars: u32, warnings: &mut Warnings) -> Text {
    let at = text.charset().char_offset(text.as_bytes(), chars as usize);
    if at >= text.len() {
        return text.clone();
    }
    let kind = if text.collation().is_binary() { "BINARY" } else { "CHAR" };
    warnings.warn(wrong(&format!("{kind}({chars})"), text));
    Text::new(&text.as_bytes()[..at], text.collation())
}
