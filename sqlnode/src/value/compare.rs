//! Comparison between any two values, by MySQL's rules.
//!
//! The rules, first match wins: NULL gives no answer; two strings compare under a collation; exact numbers
//! compare exactly; a date or time with a string reads the string as one, if it is one; a date with a number
//! reads the number as one, if it is one; two dates compare as moments; everything else compares as doubles.

use super::temporal::{DateRules, parse_datetime, parse_datetime_number, parse_time};
use super::{Collation, Date, DateTime, Decimal, Value, cast};
use std::cmp::Ordering;

/// Compares under the operands' own collation; `None` if either is NULL.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    compare_with(left, right, common_collation(left, right))
}

/// The collation two operands share when nothing else decides: `binary` wins, then a `_bin` collation, then
/// the left one's.
pub fn common_collation(left: &Value, right: &Value) -> Collation {
    match (left.collation(), right.collation()) {
        (Some(a), Some(b)) if a == b => a,
        (Some(a), Some(b)) if a.is_binary() || b.is_binary() => Collation::BINARY,
        (Some(a), Some(b)) => {
            if !b.is_case_insensitive() && a.charset() == b.charset() {
                b
            } else {
                a
            }
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Collation::default(),
    }
}

/// Compares, strings under the given collation; `None` if either is NULL.
pub fn compare_with(left: &Value, right: &Value, collation: Collation) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return None,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Int(a), Value::UInt(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::UInt(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Text(a), Value::Text(b)) => {
            let needs =
                |text: &super::Text| text.charset() != collation.charset() && !text.as_bytes().is_ascii();
            if needs(a) || needs(b) {
                let (a, b) =
                    (super::charset::convert_text(a, collation), super::charset::convert_text(b, collation));
                collation.compare(a.as_bytes(), b.as_bytes())
            } else {
                collation.compare(a.as_bytes(), b.as_bytes())
            }
        }
        (Value::Decimal(a), Value::Decimal(b)) => a.compare(b),
        (Value::Decimal(a), Value::Int(b)) => a.compare(&Decimal::from(*b)),
        (Value::Decimal(a), Value::UInt(b)) => a.compare(&Decimal::from(*b)),
        (Value::Int(a), Value::Decimal(b)) => Decimal::from(*a).compare(b),
        (Value::UInt(a), Value::Decimal(b)) => Decimal::from(*a).compare(b),
        _ => compare_mixed(left, right, collation),
    })
}

fn compare_mixed(left: &Value, right: &Value, collation: Collation) -> Ordering {
    if left.is_temporal() || right.is_temporal() {
        if let (Value::Time(_), _) | (_, Value::Time(_)) = (left, right)
            && let (Some(a), Some(b)) = (time_of(left), time_of(right))
        {
            return a.cmp(&b);
        }
        if let (Some(a), Some(b)) = (moment_of(left), moment_of(right)) {
            return a.packed().cmp(&b.packed());
        }
        if let (Value::Text(text), _) | (_, Value::Text(text)) = (left, right) {
            // A string that is no date compares as text, under the string's collation.
            let collation = if collation.is_binary() { collation } else { text.collation() };
            let (a, b) = (cast::to_text(left, collation), cast::to_text(right, collation));
            return collation.compare(a.as_bytes(), b.as_bytes());
        }
    }
    let (a, b) = (cast::as_f64(left), cast::as_f64(right));
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// The value as a moment, if it is one or reads as one.
fn moment_of(value: &Value) -> Option<DateTime> {
    match value {
        Value::Date(date) => Some(date.at_midnight()),
        Value::DateTime(moment) => Some(*moment),
        Value::Text(text) => parse_datetime(&text.to_str_lossy(), DateRules::default()).map(|p| p.value),
        Value::Int(number) => parse_datetime_number(*number, DateRules::default()),
        Value::UInt(number) => parse_datetime_number(i64::try_from(*number).ok()?, DateRules::default()),
        Value::Null | Value::Float(_) | Value::Double(_) | Value::Decimal(_) | Value::Time(_) => None,
    }
}

/// The value as a duration in microseconds, if it is one or reads as one.
fn time_of(value: &Value) -> Option<i64> {
    match value {
        Value::Time(time) => Some(time.micros()),
        Value::Text(text) => parse_time(&text.to_str_lossy()).map(|p| p.value.micros()),
        Value::Int(number) => super::temporal::parse_time_number(*number).map(|p| p.value.micros()),
        _ => None,
    }
}

/// `<=>`: NULLs are equal to each other and to nothing else.
pub fn null_safe_equal(left: &Value, right: &Value) -> bool {
    match compare(left, right) {
        Some(order) => order.is_eq(),
        None => left.is_null() && right.is_null(),
    }
}

/// Orders for ORDER BY: NULL before everything.
pub fn sort_order(left: &Value, right: &Value, collation: Collation) -> Ordering {
    match compare_with(left, right, collation) {
        Some(order) => order,
        None => right.is_null().cmp(&left.is_null()),
    }
}

/// Whether a condition holds; `None` for NULL. A string counts by the number it starts with.
pub fn truth(value: &Value) -> Option<bool> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => *v != 0,
        Value::UInt(v) => *v != 0,
        Value::Decimal(v) => !v.is_zero(),
        Value::Date(v) => *v != Date::ZERO,
        Value::DateTime(v) => v.packed() != 0,
        Value::Time(v) => v.micros() != 0,
        Value::Float(_) | Value::Double(_) | Value::Text(_) => cast::as_f64(value) != 0.0,
    })
}

/// Appends bytes that are equal for two values of the same column exactly when they compare equal: the key of
/// GROUP BY, DISTINCT and hash joins. Whole numbers and decimals share their forms, as do the two float
/// types.
pub fn append_group_key(value: &Value, collation: Collation, out: &mut Vec<u8>) {
    let at = out.len();
    match value {
        Value::Null => out.push(0),
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => {
            out.push(1);
            out.extend_from_slice(&cast::as_decimal(value).normalized().to_string().into_bytes());
        }
        Value::Float(_) | Value::Double(_) => {
            out.push(2);
            // -0 and 0 are one group.
            out.extend_from_slice(&(cast::as_f64(value) + 0.0).to_bits().to_be_bytes());
        }
        Value::Text(text) => {
            out.push(3);
            collation.append_weight_string(text.as_bytes(), out);
        }
        Value::Date(date) => {
            out.push(4);
            out.extend_from_slice(&date.at_midnight().packed().to_be_bytes());
        }
        Value::DateTime(moment) => {
            out.push(4);
            out.extend_from_slice(&moment.packed().to_be_bytes());
        }
        Value::Time(time) => {
            out.push(5);
            out.extend_from_slice(&time.micros().to_be_bytes());
        }
    }
    // The length behind makes a sequence of keys unambiguous.
    let len = (out.len() - at) as u32;
    out.extend_from_slice(&len.to_be_bytes());
}
