//! Types of results: what each operator and function tells the client it returns, and the conversion to it.

use super::{BoundExpr, Coercion, EvalContext};
use crate::value::cast;
use crate::value::{Collation, ErrorCode, IntSize, LobSize, MySqlError, Result, SqlType, Value};

/// A string type for so many characters.
pub(super) fn string(chars: u64, collation: Collation) -> SqlType {
    if collation.is_binary() {
        return match u16::try_from(chars) {
            Ok(n) => SqlType::VarBinary(n),
            Err(_) => SqlType::Blob(if chars < 1 << 24 { LobSize::Medium } else { LobSize::Long }),
        };
    }
    let bytes = chars.saturating_mul(collation.charset().bytes_per_char_max() as u64);
    if bytes <= 65_535 {
        return SqlType::varchar(chars as u32, collation);
    }
    SqlType::Text { size: if bytes < 1 << 24 { LobSize::Medium } else { LobSize::Long }, collation }
}

/// The most characters a value of the type takes as text.
pub(super) fn chars(ty: &SqlType) -> u64 {
    match ty {
        SqlType::Null => 0,
        SqlType::Int { size, flags, width } => {
            u64::from(width.unwrap_or(0)).max(u64::from(size.default_width(flags.unsigned)))
        }
        // Sign, point, and the zero before it.
        SqlType::Decimal { precision, scale, .. } => {
            u64::from(*precision) + 2 + u64::from(precision == scale)
        }
        SqlType::Float { .. } => 12,
        SqlType::Double { .. } => 22,
        SqlType::Bit(n) => u64::from(*n).div_ceil(8),
        SqlType::Char { chars, .. } => u64::from(*chars),
        SqlType::VarChar { chars, .. } => u64::from(*chars),
        SqlType::Binary(n) => u64::from(*n),
        SqlType::VarBinary(n) => u64::from(*n),
        SqlType::Text { size, collation } => {
            u64::from(size.bytes_max()) / collation.charset().bytes_per_char_max() as u64
        }
        SqlType::Blob(size) => u64::from(size.bytes_max()),
        SqlType::Date => 10,
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => 19 + fraction(*fsp),
        SqlType::Time { fsp } => 10 + fraction(*fsp),
        SqlType::Year => 4,
        SqlType::Enum { members, .. } => members.iter().map(|m| m.chars().count() as u64).max().unwrap_or(0),
        SqlType::Set { members, .. } => members.iter().map(|m| m.chars().count() as u64 + 1).sum(),
    }
}

fn fraction(fsp: u8) -> u64 {
    if fsp == 0 { 0 } else { u64::from(fsp) + 1 }
}

/// A type as an exact number: (digits before the point, digits after it). `None` for what computes as a
/// double.
pub(super) fn exact(ty: &SqlType) -> Option<(u8, u8)> {
    Some(match ty {
        SqlType::Int { size, flags, .. } => (int_digits(*size, flags.unsigned), 0),
        SqlType::Decimal { precision, scale, .. } => (precision.saturating_sub(*scale), *scale),
        SqlType::Bit(_) => (20, 0),
        SqlType::Year => (4, 0),
        SqlType::Date => (8, 0),
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => (14, *fsp),
        SqlType::Time { fsp } => (7, *fsp),
        SqlType::Null => (1, 0),
        _ => return None,
    })
}

fn int_digits(size: IntSize, unsigned: bool) -> u8 {
    match size {
        IntSize::Tiny => 3,
        IntSize::Small => 5,
        IntSize::Medium => 8,
        IntSize::Int => 10,
        IntSize::Big if unsigned => 20,
        IntSize::Big => 19,
    }
}

/// Whether the type computes in whole numbers.
pub(super) fn is_whole(ty: &SqlType) -> bool {
    !matches!(ty, SqlType::Decimal { .. }) && exact(ty).is_some_and(|(_, scale)| scale == 0)
}

/// DECIMAL with these digits, within MySQL's limits.
pub(super) fn decimal(int_digits: u32, scale: u32) -> SqlType {
    let scale = scale.min(30);
    let precision = (int_digits + scale).clamp(1, 65);
    SqlType::decimal(precision as u8, scale.min(precision) as u8)
}

/// Greatest type of several branches (IF, CASE, COALESCE, GREATEST, UNION).
pub(super) fn common(items: &[&BoundExpr], collation: Collation) -> SqlType {
    let known: Vec<&SqlType> = items.iter().map(|e| &e.ty).filter(|ty| **ty != SqlType::Null).collect();
    let Some(first) = known.first() else { return SqlType::Null };
    if known.iter().all(|ty| ty == first) && !first.has_charset() {
        return (*first).clone();
    }
    if known.iter().all(|ty| ty.is_numeric()) {
        return common_number(&known);
    }
    let is_date = |ty: &SqlType| {
        matches!(
            ty,
            SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. } | SqlType::Time { .. }
        )
    };
    if known.iter().all(|ty| is_date(ty)) {
        let fsp = known.iter().map(|ty| ty.decimals()).max().unwrap_or(0);
        if known.iter().all(|ty| matches!(ty, SqlType::Time { .. })) {
            return SqlType::Time { fsp };
        }
        return SqlType::DateTime { fsp };
    }
    string(known.iter().map(|ty| chars(ty)).max().unwrap_or(0), collation)
}

fn common_number(known: &[&SqlType]) -> SqlType {
    if known.iter().any(|ty| exact(ty).is_none()) {
        return SqlType::DOUBLE;
    }
    if known.iter().all(|ty| is_whole(ty)) {
        let unsigned = known.iter().all(|ty| ty.is_unsigned());
        if !unsigned && known.iter().any(|ty| **ty == SqlType::BIGINT_UNSIGNED) {
            return SqlType::decimal(20, 0);
        }
        return if unsigned { SqlType::BIGINT_UNSIGNED } else { SqlType::BIGINT };
    }
    let digits = known.iter().filter_map(|ty| exact(ty));
    let (int, scale) = digits.fold((0, 0), |(i, s), (a, b)| (i.max(a), s.max(b)));
    decimal(u32::from(int), u32::from(scale))
}

/// The value in a type, silently: what IF, CASE and result sets need. Not a cast: nothing is cut.
pub(super) fn coerce(value: Value, ty: &SqlType) -> Value {
    match (&value, ty) {
        (Value::Null, _) | (_, SqlType::Null) => value,
        (Value::Decimal(v), SqlType::Decimal { scale, .. }) if v.scale() != *scale => {
            v.round(*scale).map_or(value, Value::Decimal)
        }
        (Value::Decimal(_), SqlType::Decimal { .. }) => value,
        (_, SqlType::Decimal { scale, .. }) => {
            let v = cast::as_decimal(&value);
            Value::Decimal(v.round(*scale).unwrap_or(v))
        }
        (Value::Double(_) | Value::Float(_), SqlType::Double { .. } | SqlType::Float { .. }) => value,
        (_, SqlType::Double { .. }) => Value::Double(cast::as_f64(&value)),
        (Value::Int(v), SqlType::Int { flags, .. }) if flags.unsigned => Value::UInt(*v as u64),
        (Value::UInt(v), SqlType::Int { flags, .. }) if !flags.unsigned => {
            i64::try_from(*v).map_or(value, Value::Int)
        }
        (Value::Int(_) | Value::UInt(_), SqlType::Int { .. }) => value,
        (_, SqlType::Int { flags, .. }) => {
            let whole = cast::as_decimal(&value).to_i128().unwrap_or(0);
            if flags.unsigned { Value::UInt(whole as u64) } else { Value::Int(whole as i64) }
        }
        (Value::Text(text), ty) if ty.is_string() => {
            if text.collation() == ty.collation() || !ty.has_charset() {
                value
            } else {
                Value::Text(cast::to_text(&value, ty.collation()))
            }
        }
        (_, ty) if ty.is_string() => Value::Text(cast::to_text(&value, ty.collation())),
        (Value::Date(date), SqlType::DateTime { .. }) => Value::DateTime(date.at_midnight()),
        _ => value,
    }
}

/// The value in a type, as [`coerce`]; a time among moments is a time of the current day.
pub(super) fn coerce_today(value: Value, ty: &SqlType, ctx: &EvalContext<'_>) -> Value {
    use crate::value::temporal::{DateTime, MICROS_PER_DAY};
    match (&value, ty) {
        (Value::Time(time), SqlType::DateTime { .. } | SqlType::Timestamp { .. }) => {
            let day = i64::from(ctx.today().day_number().unwrap_or(0));
            let moment = DateTime::from_linear_micros(day * MICROS_PER_DAY + time.micros(), time.fsp());
            moment.map_or(Value::Null, Value::DateTime)
        }
        _ => coerce(value, ty),
    }
}

/// The collation that several operands agree on, and how strongly.
///
/// # Errors
/// 1267 or 1271 if they do not agree.
pub(super) fn agree(
    items: &[&BoundExpr],
    operation: &str,
    connection: Collation,
) -> Result<(Collation, Coercion)> {
    let mut found: Option<(Collation, Coercion)> = None;
    for item in items {
        let own = (text_collation(item, connection), item.coercion);
        found = Some(match found {
            None => own,
            Some(other) => merge(other, own).ok_or_else(|| mix(items.len(), other, own, operation))?,
        });
    }
    Ok(match found {
        // Numbers and NULLs alone make text of the connection.
        Some((_, coercion @ (Coercion::Number | Coercion::Ignorable))) => (connection, coercion),
        Some(found) => found,
        None => (connection, Coercion::Ignorable),
    })
}

/// The collation of an expression when taken as text.
pub(super) fn text_collation(item: &BoundExpr, connection: Collation) -> Collation {
    if item.ty.is_string() { item.ty.collation() } else { connection }
}

fn merge(a: (Collation, Coercion), b: (Collation, Coercion)) -> Option<(Collation, Coercion)> {
    if a.1 != b.1 {
        let (strong, weak) = if a.1 < b.1 { (a, b) } else { (b, a) };
        // A weak string converts to the strong one's set, unless it is a column whose set holds more.
        let widens = weak.1 <= Coercion::Implicit && weak.0.charset() != strong.0.charset();
        return (!widens || strong.1 == Coercion::Explicit).then_some(strong);
    }
    if a.0 == b.0 {
        return Some(a);
    }
    if a.0.is_binary() || b.0.is_binary() {
        return Some((Collation::BINARY, a.1));
    }
    if a.1 == Coercion::Explicit {
        return None;
    }
    if a.0.charset() != b.0.charset() {
        // Unicode holds the others.
        let wide = |c: Collation| c.charset().bytes_per_char_max();
        return match wide(a.0).cmp(&wide(b.0)) {
            std::cmp::Ordering::Greater => Some(a),
            std::cmp::Ordering::Less => Some(b),
            std::cmp::Ordering::Equal => None,
        };
    }
    match (a.0 == a.0.charset().binary_collation(), b.0 == b.0.charset().binary_collation()) {
        (true, _) => Some(a),
        (_, true) => Some(b),
        _ if a.1 == Coercion::Implicit => None,
        _ => Some(a),
    }
}

fn mix(count: usize, a: (Collation, Coercion), b: (Collation, Coercion), operation: &str) -> MySqlError {
    let name = |coercion: Coercion| match coercion {
        Coercion::Explicit => "EXPLICIT",
        Coercion::Conflict => "NONE",
        Coercion::Implicit => "IMPLICIT",
        Coercion::System => "SYSCONST",
        Coercion::Literal => "COERCIBLE",
        Coercion::Number => "NUMERIC",
        Coercion::Ignorable => "IGNORABLE",
    };
    if count > 2 {
        return MySqlError::with(ErrorCode::CantAggregateNCollations, &[&operation]);
    }
    let args: [&dyn std::fmt::Display; 5] = [&a.0.name(), &name(a.1), &b.0.name(), &name(b.1), &operation];
    MySqlError::with(ErrorCode::CantAggregate2Collations, &args)
}
