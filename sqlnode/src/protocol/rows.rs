//! Rows: the values of one result row, as text or in the binary form of their column's type.
//!
//! The text form writes what MySQL prints. The binary form is fixed by the column definition that went out
//! before, so a value of another kind is converted to the column's type here, and text goes wherever the
//! type says string. Strings leave in UTF-8: text stored in another character set is converted.

use std::io::Write;

use super::constants::{ColumnFlags, ColumnType};
use super::response::ColumnDefinition;
use super::wire::{put_lenenc, put_lenenc_bytes};
use crate::error::MySqlError;
use crate::value::{Charset, Date, DateTime, Text, Time, Value};

/// Decimals of a float that has no fixed number of them.
const DECIMALS_NOT_FIXED: u8 = 31;

/// What a row's encoding must know about a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnFormat {
    column_type: ColumnType,
    zerofill: bool,
    length: u32,
    decimals: u8,
}

impl ColumnFormat {
    /// The format of a column.
    pub fn of(column: &ColumnDefinition) -> Self {
        Self {
            column_type: column.column_type,
            zerofill: column.flags.has(ColumnFlags::ZEROFILL),
            length: column.length,
            decimals: column.decimals,
        }
    }

    /// Zeroes in front of a number of `digits` characters.
    fn padding(&self, digits: usize) -> usize {
        if self.zerofill { (self.length.min(255) as usize).saturating_sub(digits) } else { 0 }
    }
}

/// Appends a row in the text protocol.
pub fn encode_text_row(
    out: &mut Vec<u8>,
    columns: &[ColumnFormat],
    values: &[Value],
) -> Result<(), MySqlError> {
    for (column, value) in columns.iter().zip(values) {
        put_text(out, *column, value);
    }
    Ok(())
}

/// Appends a row in the binary protocol.
pub fn encode_binary_row(
    out: &mut Vec<u8>,
    columns: &[ColumnFormat],
    values: &[Value],
) -> Result<(), MySqlError> {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (columns.len() + 9) / 8, 0);
    for (i, (column, value)) in columns.iter().zip(values).enumerate() {
        if value.is_null() {
            out[bitmap + (i + 2) / 8] |= 1 << ((i + 2) % 8);
        } else {
            put_binary(out, *column, value)?;
        }
    }
    Ok(())
}

fn put_text(out: &mut Vec<u8>, column: ColumnFormat, value: &Value) {
    match value {
        Value::Null => out.push(0xfb),
        Value::Text(text) => put_string(out, text),
        Value::Int(number) => put_integer(out, column, number.unsigned_abs(), *number < 0),
        Value::UInt(bits) if column.column_type == ColumnType::Bit => put_bits(out, column, *bits),
        Value::UInt(number) => put_integer(out, column, *number, false),
        Value::Float(number) => put_padded(out, column, &float_text(f64::from(*number), column, true)),
        Value::Double(number) => put_padded(out, column, &float_text(*number, column, false)),
        Value::Decimal(number) => put_padded(out, column, &number.to_string()),
        Value::Date(date) => put_display(out, date),
        Value::DateTime(moment) => put_display(out, moment),
        Value::Time(time) => put_display(out, time),
    }
}

/// Writes something whose text is at most 250 bytes long.
fn put_display(out: &mut Vec<u8>, value: &dyn std::fmt::Display) {
    let at = out.len();
    out.push(0);
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
    let length = out.len() - at - 1;
    out[at] = length.min(250) as u8;
    out.truncate(at + 1 + length.min(250));
}

fn put_padded(out: &mut Vec<u8>, column: ColumnFormat, text: &str) {
    let zeroes = column.padding(text.len());
    put_lenenc(out, (zeroes + text.len()) as u64);
    out.resize(out.len() + zeroes, b'0');
    out.extend_from_slice(text.as_bytes());
}

fn put_integer(out: &mut Vec<u8>, column: ColumnFormat, magnitude: u64, negative: bool) {
    let mut digits = [0; 21];
    let mut at = digits.len();
    let mut rest = magnitude;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if negative {
        at -= 1;
        digits[at] = b'-';
    }
    let zeroes = column.padding(digits.len() - at);
    put_lenenc(out, (zeroes + digits.len() - at) as u64);
    out.resize(out.len() + zeroes, b'0');
    out.extend_from_slice(&digits[at..]);
}

/// A BIT value travels as its bytes, the highest first.
fn put_bits(out: &mut Vec<u8>, column: ColumnFormat, bits: u64) {
    let length = (column.length.clamp(1, 64) as usize).div_ceil(8);
    put_lenenc_bytes(out, &bits.to_be_bytes()[8 - length..]);
}

fn put_string(out: &mut Vec<u8>, text: &Text) {
    match text.charset() {
        Charset::Latin1 => put_lenenc_bytes(out, text.to_str_lossy().as_bytes()),
        _ => put_lenenc_bytes(out, text.as_bytes()),
    }
}

/// A float as MySQL prints it: fixed decimals when the column has them, else the shortest text that reads
/// back.
fn float_text(number: f64, column: ColumnFormat, single: bool) -> String {
    let is_float = matches!(column.column_type, ColumnType::Float | ColumnType::Double);
    if is_float && column.decimals < DECIMALS_NOT_FIXED {
        return format!("{number:.*}", usize::from(column.decimals));
    }
    shortest_float(number, single)
}

/// The shortest digits that read back (six for FLOAT), plain between 1e-15 and 1e15 and with an exponent
/// outside.
fn shortest_float(number: f64, single: bool) -> String {
    let scientific = if single { format!("{:.5e}", number as f32) } else { format!("{number:e}") };
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = if mantissa.contains('.') { digits.trim_end_matches('0') } else { &digits };
    let digits = if digits.is_empty() { "0" } else { digits };
    if !(-15..15).contains(&exponent) {
        let (head, tail) = digits.split_at(1);
        let point = if tail.is_empty() { "" } else { "." };
        return format!("{sign}{head}{point}{tail}e{exponent}");
    }
    if exponent < 0 {
        let zeroes = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeroes}{digits}");
    }
    let whole = exponent as usize + 1;
    match digits.split_at_checked(whole) {
        Some((head, "")) => format!("{sign}{head}"),
        Some((head, tail)) => format!("{sign}{head}.{tail}"),
        None => format!("{sign}{digits}{}", "0".repeat(whole - digits.len())),
    }
}

fn put_binary(out: &mut Vec<u8>, column: ColumnFormat, value: &Value) -> Result<(), MySqlError> {
    match column.column_type {
        ColumnType::Tiny => out.extend_from_slice(&integer(value)?.to_le_bytes()[..1]),
        ColumnType::Short | ColumnType::Year => out.extend_from_slice(&integer(value)?.to_le_bytes()[..2]),
        ColumnType::Long | ColumnType::Int24 => out.extend_from_slice(&integer(value)?.to_le_bytes()[..4]),
        ColumnType::LongLong => out.extend_from_slice(&integer(value)?.to_le_bytes()),
        ColumnType::Float => out.extend_from_slice(&(double(value)? as f32).to_le_bytes()),
        ColumnType::Double => out.extend_from_slice(&double(value)?.to_le_bytes()),
        ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp => match value {
            Value::Date(date) => put_date(out, *date),
            Value::DateTime(moment) => put_date_time(out, *moment),
            other => return Err(misfit(other)),
        },
        ColumnType::Time => match value {
            Value::Time(time) => put_time(out, *time),
            other => return Err(misfit(other)),
        },
        ColumnType::Null => {}
        ColumnType::Decimal
        | ColumnType::VarChar
        | ColumnType::Bit
        | ColumnType::Json
        | ColumnType::NewDecimal
        | ColumnType::Enum
        | ColumnType::Set
        | ColumnType::TinyBlob
        | ColumnType::MediumBlob
        | ColumnType::LongBlob
        | ColumnType::Blob
        | ColumnType::VarString
        | ColumnType::String
        | ColumnType::Geometry => put_text(out, column, value),
    }
    Ok(())
}

#[cold]
fn misfit(value: &Value) -> MySqlError {
    MySqlError::internal(format_args!("{value:?} does not fit the type of its result column"))
}

fn integer(value: &Value) -> Result<u64, MySqlError> {
    Ok(match value {
        Value::Int(number) => number.cast_unsigned(),
        Value::UInt(number) => *number,
        Value::Double(number) => (*number as i64).cast_unsigned(),
        Value::Float(number) => (*number as i64).cast_unsigned(),
        Value::Decimal(number) => number.to_f64() as i64 as u64,
        other => return Err(misfit(other)),
    })
}

fn double(value: &Value) -> Result<f64, MySqlError> {
    Ok(match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Float(number) => f64::from(*number),
        Value::Decimal(number) => number.to_f64(),
        other => return Err(misfit(other)),
    })
}

fn put_ymd(out: &mut Vec<u8>, date: Date) {
    out.extend_from_slice(&(date.year() as u16).to_le_bytes());
    out.extend_from_slice(&[date.month() as u8, date.day() as u8]);
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    if date.is_zero() {
        out.push(0);
    } else {
        out.push(4);
        put_ymd(out, date);
    }
}

fn put_date_time(out: &mut Vec<u8>, moment: DateTime) {
    let clock = [moment.hour() as u8, moment.minute() as u8, moment.second() as u8];
    if moment.micro() > 0 {
        out.push(11);
        put_ymd(out, moment.date());
        out.extend_from_slice(&clock);
        out.extend_from_slice(&moment.micro().to_le_bytes());
    } else if clock == [0; 3] {
        put_date(out, moment.date());
    } else {
        out.push(7);
        put_ymd(out, moment.date());
        out.extend_from_slice(&clock);
    }
}

fn put_time(out: &mut Vec<u8>, time: Time) {
    if time.micros() == 0 {
        out.push(0);
        return;
    }
    out.push(if time.micro() > 0 { 12 } else { 8 });
    out.push(u8::from(time.is_negative()));
    out.extend_from_slice(&(time.hour() / 24).to_le_bytes());
    out.extend_from_slice(&[(time.hour() % 24) as u8, time.minute() as u8, time.second() as u8]);
    if time.micro() > 0 {
        out.extend_from_slice(&time.micro().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(column_type: ColumnType) -> ColumnFormat {
        ColumnFormat { column_type, zerofill: false, length: 20, decimals: DECIMALS_NOT_FIXED }
    }

    fn text(column: ColumnFormat, value: &Value) -> String {
        let mut out = Vec::new();
        encode_text_row(&mut out, &[column], std::slice::from_ref(value)).unwrap();
        assert_eq!(usize::from(out[0]), out.len() - 1);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[test]
    fn numbers_print_as_mysql_prints_them() {
        let long = column(ColumnType::LongLong);
        for number in [0, 7, -1, i64::MAX, i64::MIN] {
            assert_eq!(text(long, &Value::Int(number)), number.to_string());
        }
        assert_eq!(text(long, &Value::UInt(u64::MAX)), u64::MAX.to_string());
        let filled = ColumnFormat { zerofill: true, length: 5, ..long };
        assert_eq!(text(filled, &Value::UInt(42)), "00042");
        assert_eq!(text(filled, &Value::UInt(1_234_567)), "1234567");
        let double = column(ColumnType::Double);
        for (number, printed) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1.25e-7, "0.000000125"),
            (1e-16, "1e-16"),
            (-1.7976931348623157e308, "-1.7976931348623157e308"),
            (123456.789, "123456.789"),
        ] {
            assert_eq!(text(double, &Value::Double(number)), printed);
        }
        let float = column(ColumnType::Float);
        for (number, printed) in [(0.1, "0.1"), (16_777_216.0, "16777200"), (-3.0, "-3"), (0.0, "0")] {
            assert_eq!(text(float, &Value::Float(number)), printed);
        }
        assert_eq!(text(ColumnFormat { decimals: 2, ..double }, &Value::Double(1.005)), "1.00");
        assert_eq!(text(column(ColumnType::Bit), &Value::UInt(0x41_42_43)), "ABC");
    }

    #[test]
    fn binary_rows_mark_nulls_after_two_reserved_bits() {
        let columns = [column(ColumnType::Tiny); 9];
        let mut values = vec![Value::Int(-1); 9];
        values[0] = Value::Null;
        values[8] = Value::Null;
        let mut out = Vec::new();
        encode_binary_row(&mut out, &columns, &values).unwrap();
        assert_eq!(out, [&[0, 0b100, 0b100][..], &[255; 7]].concat());
    }

    #[test]
    fn dates_and_times_take_their_shortest_form() {
        let mut out = Vec::new();
        let date = Date::new(2026, 11, 30).unwrap();
        let columns =
            [ColumnType::Date, ColumnType::DateTime, ColumnType::DateTime, ColumnType::Time].map(column);
        let values = [
            Value::Date(date),
            Value::DateTime(DateTime::new(date, 1, 2, 3, 4, 6).unwrap()),
            Value::DateTime(DateTime::ZERO),
            Value::Time(Time::from_micros(-90_000_000_000, 0).unwrap()),
        ];
        encode_binary_row(&mut out, &columns, &values).unwrap();
        let mut expected = vec![0, 0, 4, 0xea, 7, 11, 30, 11, 0xea, 7, 11, 30, 1, 2, 3, 4, 0, 0, 0, 0, 8];
        expected.extend([1, 1, 0, 0, 0, 1, 0, 0]);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_an_error_and_not_a_wrong_row() {
        let mut out = Vec::new();
        let error =
            encode_binary_row(&mut out, &[column(ColumnType::Long)], &[Value::text("x")]).unwrap_err();
        assert_eq!(error.code, 1815);
    }
}
