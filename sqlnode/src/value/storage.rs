//! Storage: a value to the bytes of a column, and back.
//!
//! Role: what INSERT and UPDATE do to a value before it goes to the data nodes. In strict mode a value that
//! does not fit is an error; otherwise the nearest value that fits is stored and a warning is left. The
//! bytes:
//!
//! * whole numbers of n bytes, FLOAT, DOUBLE: little-endian; BIT 8 bytes; YEAR 1 byte (year - 1900, 0 for
//!   0000);
//! * ENUM and SET: the number or the bits, little-endian in 1, 2, 3, 4 or 8 bytes;
//! * DECIMAL: the sortable form of [`super::decimal`];
//! * DATE 3 bytes, DATETIME and TIMESTAMP (in UTC) 8 bytes: the packed integer, little-endian;
//! * TIME 8 bytes: signed microseconds, little-endian;
//! * CHAR, VARCHAR, TEXT: the bytes in the column's character set, CHAR without trailing spaces;
//! * BINARY(n): n bytes, filled with zeros; VARBINARY and BLOB as they are.
//!
//! [`load`] reads bytes that may be damaged and reports them as an error instead of trusting them.

use super::temporal::{DateRules, TimeZone, parse_datetime_number, parse_time};
use super::{
    Collation, Date, DateTime, Decimal, ErrorCode, IntSize, MySqlError, Result, SqlMode, SqlType, Text, Time,
    Value, Warnings, cast, charset, number,
};

/// Where a value is stored, for the rules and for the texts of errors.
pub struct StoreContext<'a> {
    /// The session's mode.
    pub mode: SqlMode,
    /// The session's time zone, for TIMESTAMP.
    pub zone: &'a TimeZone,
    /// The column's name.
    pub column: &'a str,
    /// The row of the statement, from 1.
    pub row: u64,
}

impl StoreContext<'_> {
    fn error(&self, code: ErrorCode) -> MySqlError {
        MySqlError::with(code, &[&self.column, &self.row])
    }

    /// 1366 for numbers and text, 1292 for dates and times.
    fn incorrect(&self, kind: &str, value: &Value) -> MySqlError {
        let text = match value {
            Value::Text(text) if text.charset().first_invalid(text.as_bytes()).is_some() => {
                charset::escape_bytes(text.as_bytes())
            }
            other => cast::to_text(other, Collation::UTF8MB4_BIN).to_str_lossy().into_owned(),
        };
        if matches!(kind, "date" | "datetime" | "time") {
            return MySqlError::incorrect_for_column(kind, &text, self.column, self.row);
        }
        MySqlError::with(ErrorCode::TruncatedWrongValueForField, &[&kind, &text, &self.column, &self.row])
    }

    /// An error in strict mode, a warning otherwise.
    fn complain(&self, error: MySqlError, warnings: &mut Warnings) -> Result<()> {
        if self.mode.is_strict() {
            return Err(error);
        }
        warnings.warn(error);
        Ok(())
    }
}

/// The bytes of a value in a column; `None` for NULL, whose validity is the caller's question.
///
/// # Errors
/// In strict mode 1264, 1265, 1292, 1366 or 1406 for a value that does not fit the column.
pub fn store(
    value: &Value,
    sql_type: &SqlType,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Option<Vec<u8>>> {
    if value.is_null() {
        return Ok(None);
    }
    let bytes = match sql_type {
        SqlType::Null => return Ok(None),
        SqlType::Int { size, flags, .. } => store_int(value, *size, flags.unsigned, context, warnings)?,
        SqlType::Decimal { precision, scale, flags } => {
            store_decimal(value, *precision, *scale, flags.unsigned, context, warnings)?
        }
        SqlType::Float { size, flags } => {
            let v = store_f64(value, *size, flags.unsigned, f64::from(f32::MAX), context, warnings)?;
            (v as f32).to_le_bytes().to_vec()
        }
        SqlType::Double { size, flags } => {
            store_f64(value, *size, flags.unsigned, f64::MAX, context, warnings)?.to_le_bytes().to_vec()
        }
        SqlType::Bit(n) => store_bit(value, *n, context, warnings)?,
        SqlType::Char { chars, collation } => {
            // Spaces at the end are not kept, so too many of them are no news.
            let kept = match value {
                Value::Text(text) => Some(Value::Text(without_end_spaces(text))),
                _ => None,
            };
            let value = kept.as_ref().unwrap_or(value);
            let mut bytes =
                store_text(value, Some(u32::from(*chars)), u64::MAX, *collation, context, warnings)?;
            let kept = bytes.iter().rposition(|&b| b != b' ').map_or(0, |at| at + 1);
            bytes.truncate(kept);
            bytes
        }
        SqlType::VarChar { chars, collation } => {
            store_text(value, Some(*chars), u64::MAX, *collation, context, warnings)?
        }
        SqlType::Text { size, collation } => {
            store_text(value, None, u64::from(size.bytes_max()), *collation, context, warnings)?
        }
        SqlType::Binary(n) => {
            let mut bytes = store_bytes(value, u64::from(*n), context, warnings)?;
            bytes.resize(usize::from(*n), 0);
            bytes
        }
        SqlType::VarBinary(n) => store_bytes(value, u64::from(*n), context, warnings)?,
        SqlType::Blob(size) => store_bytes(value, u64::from(size.bytes_max()), context, warnings)?,
        SqlType::Date => {
            let date = store_moment(value, "date", context, warnings)?.date();
            date.packed().to_le_bytes()[..3].to_vec()
        }
        SqlType::DateTime { fsp } => {
            let moment = store_moment(value, "datetime", context, warnings)?;
            round_moment(moment, *fsp, context, warnings)?.packed().to_le_bytes().to_vec()
        }
        SqlType::Timestamp { fsp } => {
            let moment = store_moment(value, "datetime", context, warnings)?;
            let rounded = round_moment(moment, *fsp, context, warnings)?;
            store_timestamp(rounded, value, context, warnings)?.packed().to_le_bytes().to_vec()
        }
        SqlType::Time { fsp } => {
            store_time(value, context, warnings)?.round(*fsp).micros().to_le_bytes().to_vec()
        }
        SqlType::Year => vec![store_year(value, context, warnings)?],
        SqlType::Enum { members, collation } => store_enum(value, members, *collation, context, warnings)?,
        SqlType::Set { members, collation } => store_set(value, members, *collation, context, warnings)?,
    };
    Ok(Some(bytes))
}

fn without_end_spaces(text: &Text) -> Text {
    let bytes = text.as_bytes();
    match bytes.iter().rposition(|&b| b != b' ') {
        Some(last) if last + 1 == bytes.len() => text.clone(),
        last => Text::new(&bytes[..last.map_or(0, |at| at + 1)], text.collation()),
    }
}

/// A number for a numeric column. Text that is no number is 1366; text after a number is 1265.
fn number_of(
    value: &Value,
    kind: &str,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Decimal> {
    let Value::Text(text) = value else { return Ok(cast::as_decimal(value)) };
    let parsed = number::parse_decimal(text.as_bytes());
    if !parsed.found {
        context.complain(context.incorrect(kind, value), warnings)?;
    } else if !parsed.clean {
        context.complain(context.error(ErrorCode::DataTruncated), warnings)?;
    }
    Ok(parsed.value)
}

fn store_int(
    value: &Value,
    size: IntSize,
    unsigned: bool,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    // Text after the number, which matters less than a number out of range.
    let mut junk = false;
    let whole = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        Value::Float(_) | Value::Double(_) => cast::as_f64(value).round_ties_even() as i128,
        other => {
            let number = match other {
                Value::Text(text) => {
                    let parsed = number::parse_decimal(text.as_bytes());
                    if !parsed.found {
                        context.complain(context.incorrect("integer", value), warnings)?;
                    }
                    junk = parsed.found && !parsed.clean;
                    parsed.value
                }
                other => cast::as_decimal(other),
            };
            let limit = if number.is_negative() { i128::MIN } else { i128::MAX };
            number.to_i128().unwrap_or(limit)
        }
    };
    let (low, high) = if unsigned {
        (0, i128::from(size.unsigned_max()))
    } else {
        let (low, high) = size.signed_range();
        (i128::from(low), i128::from(high))
    };
    let fitted = whole.clamp(low, high);
    if fitted != whole {
        context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
    } else if junk {
        context.complain(context.error(ErrorCode::DataTruncated), warnings)?;
    }
    Ok(fitted.to_le_bytes()[..size.bytes()].to_vec())
}

fn store_decimal(
    value: &Value,
    precision: u8,
    scale: u8,
    unsigned: bool,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    let mut exact = number_of(value, "decimal", context, warnings)?;
    let lost = exact.scale() > scale && exact.round(scale).is_ok_and(|r| r.compare(&exact).is_ne());
    if unsigned && exact.is_negative() {
        context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
        exact = Decimal::ZERO;
    }
    if let Some(bytes) = exact.encode(precision, scale) {
        // Digits after the point that do not fit are a note, except of doubles, which have no exact digits.
        if lost && !matches!(value, Value::Float(_) | Value::Double(_)) {
            warnings.note(context.error(ErrorCode::DataTruncated));
        }
        return Ok(bytes);
    }
    context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
    let max = Decimal::max_value(precision, scale);
    let nearest = if exact.is_negative() { max.neg() } else { max };
    nearest
        .encode(precision, scale)
        .ok_or_else(|| MySqlError::internal("a DECIMAL column of impossible size"))
}

fn store_f64(
    value: &Value,
    size: Option<(u8, u8)>,
    unsigned: bool,
    limit: f64,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<f64> {
    let mut stored = match value {
        Value::Text(text) => {
            let parsed = number::parse_f64(text.as_bytes());
            if !parsed.found {
                context.complain(context.incorrect("double", value), warnings)?;
            } else if !parsed.clean {
                context.complain(context.error(ErrorCode::DataTruncated), warnings)?;
            } else if parsed.overflow {
                context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
            }
            parsed.value
        }
        other => cast::as_f64(other),
    };
    let limit = match size {
        Some((digits, decimals)) => {
            stored = number::round_f64(stored, i32::from(decimals));
            let whole = 10f64.powi(i32::from(digits.saturating_sub(decimals)));
            limit.min(whole - 10f64.powi(-i32::from(decimals)))
        }
        None => limit,
    };
    let low = if unsigned { 0.0 } else { -limit };
    if stored.is_nan() || stored < low || stored > limit {
        context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
        stored = if stored.is_nan() { 0.0 } else { stored.clamp(low, limit) };
    }
    Ok(stored)
}

fn store_bit(value: &Value, n: u8, context: &StoreContext<'_>, warnings: &mut Warnings) -> Result<Vec<u8>> {
    let limit = u64::MAX >> (64 - u32::from(n.clamp(1, 64)));
    let (bits, fits) = match value {
        // A string is its bytes, the last one lowest.
        Value::Text(text) => {
            let bytes = text.as_bytes();
            let zeros = bytes.iter().take_while(|b| **b == 0).count();
            let significant = &bytes[zeros..];
            let bits = significant.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
            (bits, significant.len() <= 8)
        }
        other => {
            let whole = cast::to_int(other, warnings);
            (whole as u64, true)
        }
    };
    if !fits || bits > limit {
        context.complain(context.error(ErrorCode::DataTooLong), warnings)?;
        return Ok(limit.to_le_bytes().to_vec());
    }
    Ok(bits.to_le_bytes().to_vec())
}

fn store_text(
    value: &Value,
    chars_max: Option<u32>,
    bytes_max: u64,
    collation: Collation,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    let target = collation.charset();
    let mut bytes = match value {
        Value::Text(text) => {
            let converted = charset::convert(text.as_bytes(), text.charset(), target);
            let bad = converted.first_lost.or_else(|| target.first_invalid(&converted.bytes));
            if let Some(at) = bad {
                let shown = charset::escape_bytes(text.as_bytes().get(at..).unwrap_or(&[]));
                let error = MySqlError::with(
                    ErrorCode::TruncatedWrongValueForField,
                    &[&"string", &shown, &context.column, &context.row],
                );
                context.complain(error, warnings)?;
            }
            let mut bytes = converted.bytes;
            // Bytes that are no text in the column's set end the string.
            let valid = target.first_invalid(&bytes).unwrap_or(bytes.len());
            bytes.truncate(valid);
            bytes
        }
        other => cast::to_text(other, collation).as_bytes().to_vec(),
    };
    let limit = match chars_max {
        Some(chars) => target.char_offset(&bytes, chars as usize),
        None if bytes.len() as u64 > bytes_max => whole_chars(&bytes, bytes_max as usize, collation),
        None => bytes.len(),
    };
    if limit < bytes.len() {
        if bytes[limit..].iter().all(|&b| b == b' ') {
            // Spaces beyond the limit are cut with a note at most.
            warnings.note(context.error(ErrorCode::DataTruncated));
        } else if context.mode.is_strict() {
            return Err(context.error(ErrorCode::DataTooLong));
        } else {
            warnings.warn(context.error(ErrorCode::DataTruncated));
        }
        bytes.truncate(limit);
    }
    Ok(bytes)
}

/// The greatest length up to `limit` that does not cut a character.
fn whole_chars(bytes: &[u8], limit: usize, collation: Collation) -> usize {
    if !collation.charset().is_multi_byte() {
        return limit;
    }
    let mut at = limit;
    while at > 0 && bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}

fn store_bytes(
    value: &Value,
    bytes_max: u64,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    let mut bytes = cast::to_text(value, Collation::BINARY).as_bytes().to_vec();
    if bytes.len() as u64 > bytes_max {
        if context.mode.is_strict() {
            return Err(context.error(ErrorCode::DataTooLong));
        }
        warnings.warn(context.error(ErrorCode::DataTruncated));
        bytes.truncate(bytes_max as usize);
    }
    Ok(bytes)
}

/// A text or number that is no date or time, or more than one: an error that names it in strict mode, else a
/// warning that data were cut.
fn complain_of_moment(
    kind: &str,
    value: &Value,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<()> {
    if context.mode.is_strict() {
        return Err(context.incorrect(kind, value));
    }
    warnings.warn(context.error(ErrorCode::DataTruncated));
    Ok(())
}

/// A value as a moment for DATE, DATETIME and TIMESTAMP columns; '0000-00-00' with a warning if it is none.
fn store_moment(
    value: &Value,
    kind: &str,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<DateTime> {
    let rules = DateRules::from_mode(context.mode);
    let lenient = DateRules { no_zero_date: false, no_zero_in_date: false, ..rules };
    let (found, clean) = match value {
        Value::Date(date) => (Some(date.at_midnight()), true),
        Value::DateTime(moment) => (Some(*moment), true),
        Value::Text(text) => {
            let parsed = super::temporal::parse_datetime_offset(&text.to_str_lossy(), lenient);
            let moment = parsed.and_then(|(p, offset)| match offset {
                // A literal with an offset is converted to the session's zone.
                Some(minutes) => {
                    let unix = TimeZone::Offset(minutes).unix_from_local(p.value)?;
                    context.zone.local_from_unix(unix, p.value.fsp())
                }
                None => Some(p.value),
            });
            (moment, parsed.is_none_or(|(p, _)| p.clean))
        }
        Value::Null | Value::Time(_) => (None, true),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            let whole = cast::as_decimal(value).truncate_places(0).to_i128();
            let number = whole.and_then(|v| i64::try_from(v).ok());
            (number.and_then(|v| parse_datetime_number(v, lenient)), true)
        }
    };
    let Some(moment) = found.filter(|moment| lenient.allows(moment.date())) else {
        complain_of_moment(kind, value, context, warnings)?;
        return Ok(DateTime::ZERO);
    };
    if !rules.allows(moment.date()) {
        context.complain(context.incorrect(kind, value), warnings)?;
        return Ok(DateTime::ZERO);
    }
    if !clean {
        complain_of_moment(kind, value, context, warnings)?;
    } else if kind == "date" && moment.micros_of_day() != 0 {
        warnings.note(context.error(ErrorCode::DataTruncated));
    }
    Ok(moment)
}

fn round_moment(
    moment: DateTime,
    fsp: u8,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<DateTime> {
    match moment.round(fsp) {
        Some(rounded) => Ok(rounded),
        None => {
            context.complain(context.incorrect("datetime", &Value::DateTime(moment)), warnings)?;
            Ok(DateTime::ZERO)
        }
    }
}

fn store_timestamp(
    local: DateTime,
    value: &Value,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<DateTime> {
    match context.zone.timestamp_to_utc(local) {
        Some(utc) => Ok(utc),
        None => {
            context.complain(context.incorrect("datetime", value), warnings)?;
            Ok(DateTime::ZERO)
        }
    }
}

fn store_time(value: &Value, context: &StoreContext<'_>, warnings: &mut Warnings) -> Result<Time> {
    let parsed = match value {
        Value::Time(time) => return Ok(*time),
        Value::DateTime(moment) => return Ok(moment.time_of_day()),
        Value::Date(_) | Value::Null => return Ok(Time::ZERO),
        Value::Text(text) => parse_time(&text.to_str_lossy()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            cast::time_of_number(&cast::as_decimal(value))
        }
    };
    let Some(parsed) = parsed else {
        complain_of_moment("time", value, context, warnings)?;
        return Ok(Time::ZERO);
    };
    if !parsed.clean {
        let at_limit = parsed.value.micros().abs() == super::temporal::TIME_MICROS_MAX;
        if at_limit && !context.mode.is_strict() {
            warnings.warn(context.error(ErrorCode::WarnDataOutOfRange));
        } else {
            complain_of_moment("time", value, context, warnings)?;
        }
    }
    Ok(parsed.value)
}

/// YEAR: 1901 to 2155 and 0; one or two digits are 1970 to 2069. The number 0 is 0000, the text '0' is 2000.
fn store_year(value: &Value, context: &StoreContext<'_>, warnings: &mut Warnings) -> Result<u8> {
    let whole = match value {
        Value::Date(date) => i128::from(date.year()),
        Value::DateTime(moment) => i128::from(moment.date().year()),
        other => number_of(other, "integer", context, warnings)?.to_i128().unwrap_or(-1),
    };
    let short_text = matches!(value, Value::Text(text) if text.len() <= 2 || (text.len() == 3 && whole == 0));
    let year = match whole {
        0 if !short_text => return Ok(0),
        0..=69 => whole + 2000,
        70..=99 => whole + 1900,
        _ => whole,
    };
    match u8::try_from(year - 1900) {
        Ok(stored) if stored > 0 => Ok(stored),
        _ => {
            context.complain(context.error(ErrorCode::WarnDataOutOfRange), warnings)?;
            Ok(0)
        }
    }
}

/// The number from 1 of the member a text names, trailing spaces apart.
fn member_index(text: &Text, members: &[Box<str>], collation: Collation) -> Option<usize> {
    let text = charset::convert_text(text, collation);
    let kept = text.as_bytes().iter().rposition(|&b| b != b' ').map_or(0, |at| at + 1);
    let wanted = &text.as_bytes()[..kept];
    members.iter().position(|member| {
        let member = charset::convert_text(&Text::from(&**member), collation);
        collation.equal(member.as_bytes(), wanted)
    })
}

/// A number without its fraction: members are not rounded to.
fn whole_part(value: &Value) -> i128 {
    cast::as_decimal(value).truncate_places(0).to_i128().unwrap_or(-1)
}

fn store_enum(
    value: &Value,
    members: &[Box<str>],
    collation: Collation,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    let in_range = |number: i128| usize::try_from(number).ok().filter(|n| (1..=members.len()).contains(n));
    let number = match value {
        Value::Text(text) => match member_index(text, members, collation) {
            Some(index) => Some(index + 1),
            // A text that is no member may be a member's number.
            None => {
                let parsed = number::parse_int(text.as_bytes());
                if parsed.clean && parsed.found { in_range(parsed.value) } else { None }
            }
        },
        other => in_range(whole_part(other)),
    };
    if number.is_none() {
        context.complain(context.error(ErrorCode::DataTruncated), warnings)?;
    }
    let stored = number.unwrap_or(0) as u64;
    Ok(stored.to_le_bytes()[..super::sql_type::enum_bytes(members.len())].to_vec())
}

fn store_set(
    value: &Value,
    members: &[Box<str>],
    collation: Collation,
    context: &StoreContext<'_>,
    warnings: &mut Warnings,
) -> Result<Vec<u8>> {
    let all = u64::MAX >> (64 - members.len().clamp(1, 64) as u32);
    let (mut bits, mut fits) = (0u64, true);
    match value {
        Value::Text(text) if !text.is_empty() => {
            for part in text.as_bytes().split(|&b| b == b',') {
                match member_index(&Text::new(part, text.collation()), members, collation) {
                    Some(index) => bits |= 1u64.checked_shl(index as u32).unwrap_or(0),
                    None => fits = false,
                }
            }
            let parsed = number::parse_int(text.as_bytes());
            if !fits && bits == 0 && parsed.clean && parsed.found {
                bits = parsed.value as u64;
                fits = bits & !all == 0;
            }
        }
        Value::Text(_) => {}
        other => {
            let whole = whole_part(other);
            bits = whole as u64;
            fits = bits & !all == 0 && u64::try_from(whole).is_ok();
        }
    }
    if !fits {
        context.complain(context.error(ErrorCode::DataTruncated), warnings)?;
    }
    Ok((bits & all).to_le_bytes()[..super::sql_type::set_bytes(members.len())].to_vec())
}

/// The little-endian integer of up to 8 bytes.
fn read_uint(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// The value of a column's bytes. TIMESTAMPs come back in the session's time zone.
///
/// # Errors
/// 1815 when the bytes are no value of the type: the row is damaged or was written under another definition.
pub fn load(bytes: &[u8], sql_type: &SqlType, zone: &TimeZone) -> Result<Value> {
    load_checked(bytes, sql_type, zone).ok_or_else(|| {
        MySqlError::internal(format_args!("{} stored bytes are no value of type {sql_type}", bytes.len()))
    })
}

fn load_checked(bytes: &[u8], sql_type: &SqlType, zone: &TimeZone) -> Option<Value> {
    let fixed = |len: usize| (bytes.len() == len).then(|| read_uint(bytes));
    Some(match sql_type {
        SqlType::Null => Value::Null,
        SqlType::Int { size, flags, .. } => {
            let raw = fixed(size.bytes())?;
            let unused = 64 - 8 * size.bytes() as u32;
            if flags.unsigned { Value::UInt(raw) } else { Value::Int((raw << unused) as i64 >> unused) }
        }
        SqlType::Decimal { precision, scale, .. } => {
            Value::Decimal(Decimal::decode(bytes, *precision, *scale)?)
        }
        SqlType::Float { .. } => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        SqlType::Double { .. } => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        SqlType::Bit(_) => Value::UInt(fixed(8)?),
        SqlType::Char { collation, .. }
        | SqlType::VarChar { collation, .. }
        | SqlType::Text { collation, .. } => Value::Text(Text::new(bytes, *collation)),
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Blob(_) => Value::bytes(bytes),
        SqlType::Date => Value::Date(Date::from_packed(fixed(3)? as u32)?),
        SqlType::DateTime { fsp } => Value::DateTime(DateTime::from_packed(fixed(8)?, *fsp)?),
        SqlType::Timestamp { fsp } => {
            Value::DateTime(zone.timestamp_from_utc(DateTime::from_packed(fixed(8)?, *fsp)?))
        }
        SqlType::Time { fsp } => Value::Time(Time::from_micros(fixed(8)? as i64, *fsp)?),
        SqlType::Year => match fixed(1)? {
            0 => Value::UInt(0),
            year => Value::UInt(1900 + year),
        },
        SqlType::Enum { members, collation } => {
            let number = fixed(super::sql_type::enum_bytes(members.len()))? as usize;
            let name = match number {
                0 => "",
                _ => members.get(number - 1)?,
            };
            Value::Text(charset::convert_text(&Text::from(name), *collation))
        }
        SqlType::Set { members, collation } => {
            let bits = fixed(super::sql_type::set_bytes(members.len()))?;
            if bits.checked_shr(members.len() as u32).unwrap_or(0) != 0 {
                return None;
            }
            let chosen: Vec<&str> =
                members.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, m)| &**m).collect();
            Value::Text(charset::convert_text(&Text::from(chosen.join(",").as_str()), *collation))
        }
    })
}

#[cfg(test)]
mod tests;
