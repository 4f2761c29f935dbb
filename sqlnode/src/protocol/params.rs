//! Parameters: the values a client sends with COM_STMT_EXECUTE.
//!
//! The packet holds a bitmap of NULLs, a flag that says whether types follow, the types, and the values one
//! after the other. Types are remembered from one execution to the next. A parameter sent ahead as long
//! data has no value here. Everything is checked: a packet that does not fit its statement is an error of
//! that statement.

use super::constants::ColumnType;
use super::error::ProtocolError;
use super::statements::Slot;
use super::wire::Reader;
use crate::error::{ErrorCode, MySqlError};
use crate::value::{Collation, Date, DateTime, Decimal, Text, Time, Value};

/// The type of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType {
    column_type: ColumnType,
    unsigned: bool,
}

const COMMAND: &str = "mysqld_stmt_execute";

const fn bad(reason: &'static str) -> ProtocolError {
    ProtocolError::BadArguments { command: COMMAND, reason }
}

/// Reads the values for one execution of a statement.
pub(super) fn parse_execute<S>(slot: &mut Slot<S>, packet: &[u8]) -> Result<Vec<Value>, MySqlError> {
    if let Some(error) = slot.long_data_error.take() {
        return Err(error);
    }
    if slot.parameters == 0 {
        return Ok(Vec::new());
    }
    let mut r = Reader::new(packet);
    let nulls = r.bytes(slot.parameters.div_ceil(8), "the NULL bitmap")?;
    if r.u8("the flag for new types")? == 1 {
        slot.types = parse_types(&mut r, slot.parameters)?;
    }
    if slot.types.len() != slot.parameters {
        return Err(bad("no types were ever sent for the parameters").into());
    }
    let mut values = Vec::with_capacity(slot.parameters);
    for (i, parameter) in slot.types.iter().enumerate() {
        let long = u16::try_from(i).ok().and_then(|i| slot.long_data.get(&i));
        let value = match long {
            Some(data) => Value::Text(Text::new(data, collation_of(parameter.column_type))),
            None if nulls[i / 8] >> (i % 8) & 1 == 1 => Value::Null,
            None => parse_value(&mut r, *parameter)?,
        };
        values.push(value);
    }
    Ok(values)
}

fn parse_types(r: &mut Reader<'_>, count: usize) -> Result<Vec<ParameterType>, ProtocolError> {
    let bytes = r.bytes(count * 2, "the parameter types")?;
    bytes
        .chunks_exact(2)
        .map(|pair| {
            let column_type = ColumnType::from_byte(pair[0]).ok_or(bad("unknown parameter type"))?;
            Ok(ParameterType { column_type, unsigned: pair[1] & 0x80 != 0 })
        })
        .collect()
}

/// Blobs are bytes; everything else that is a string is text.
fn collation_of(column_type: ColumnType) -> Collation {
    match column_type {
        ColumnType::TinyBlob
        | ColumnType::MediumBlob
        | ColumnType::LongBlob
        | ColumnType::Blob
        | ColumnType::Bit
        | ColumnType::Geometry => Collation::BINARY,
        _ => Collation::UTF8MB4_0900_AI_CI,
    }
}

fn parse_value(r: &mut Reader<'_>, parameter: ParameterType) -> Result<Value, MySqlError> {
    let what = "a parameter";
    let integer = |signed: i64, unsigned: u64| {
        if parameter.unsigned { Value::UInt(unsigned) } else { Value::Int(signed) }
    };
    Ok(match parameter.column_type {
        ColumnType::Null => Value::Null,
        ColumnType::Tiny => {
            let byte = r.u8(what)?;
            integer(i64::from(byte.cast_signed()), u64::from(byte))
        }
        ColumnType::Short | ColumnType::Year => {
            let number = r.u16(what)?;
            integer(i64::from(number.cast_signed()), u64::from(number))
        }
        ColumnType::Long | ColumnType::Int24 => {
            let number = r.u32(what)?;
            integer(i64::from(number.cast_signed()), u64::from(number))
        }
        ColumnType::LongLong => {
            let number = r.u64(what)?;
            integer(number.cast_signed(), number)
        }
        ColumnType::Float => Value::Double(f64::from(f32::from_le_bytes(r.array(what)?))),
        ColumnType::Double => Value::Double(f64::from_le_bytes(r.array(what)?)),
        ColumnType::Date => match parse_moment(r)? {
            moment if moment.micros_of_day() == 0 => Value::Date(moment.date()),
            moment => Value::DateTime(moment),
        },
        ColumnType::DateTime | ColumnType::Timestamp => Value::DateTime(parse_moment(r)?),
        ColumnType::Time => Value::Time(parse_time(r)?),
        ColumnType::Decimal | ColumnType::NewDecimal => {
            let text = r.lenenc_bytes(what)?;
            match Decimal::parse(text) {
                Some(parsed) if parsed.consumed == text.len() && !parsed.overflow => {
                    Value::Decimal(parsed.value)
                }
                _ => Value::Text(Text::new(text, Collation::UTF8MB4_0900_AI_CI)),
            }
        }
        ColumnType::VarChar
        | ColumnType::Bit
        | ColumnType::Json
        | ColumnType::Enum
        | ColumnType::Set
        | ColumnType::TinyBlob
        | ColumnType::MediumBlob
        | ColumnType::LongBlob
        | ColumnType::Blob
        | ColumnType::VarString
        | ColumnType::String
        | ColumnType::Geometry => {
            Value::Text(Text::new(r.lenenc_bytes(what)?, collation_of(parameter.column_type)))
        }
    })
}

fn wrong() -> MySqlError {
    MySqlError::with(ErrorCode::WrongArguments, &[&COMMAND])
}

fn parse_moment(r: &mut Reader<'_>) -> Result<DateTime, MySqlError> {
    let length = r.u8("a date's length")?;
    let mut f = Reader::new(r.bytes(usize::from(length), "a date")?);
    if length == 0 {
        return Ok(DateTime::ZERO);
    }
    if !matches!(length, 4 | 7 | 11) {
        return Err(wrong());
    }
    let date = Date::new(f.u16("a year")?.into(), f.u8("a month")?.into(), f.u8("a day")?.into());
    let date = date.ok_or_else(wrong)?;
    let [hour, minute, second] = if length >= 7 { f.array("a time of day")? } else { [0; 3] };
    let micro = if length == 11 { f.u32("microseconds")? } else { 0 };
    let fsp = if length == 11 { 6 } else { 0 };
    DateTime::new(date, hour.into(), minute.into(), second.into(), micro, fsp).ok_or_else(wrong)
}

fn parse_time(r: &mut Reader<'_>) -> Result<Time, MySqlError> {
    let length = r.u8("a time's length")?;
    let mut f = Reader::new(r.bytes(usize::from(length), "a time")?);
    if length == 0 {
        return Ok(Time::from_micros_clamped(0, 0));
    }
    if !matches!(length, 8 | 12) {
        return Err(wrong());
    }
    let negative = f.u8("a sign")? != 0;
    let days = f.u32("days")?;
    let [hour, minute, second] = f.array("a time of day")?;
    let micro = if length == 12 { f.u32("microseconds")? } else { 0 };
    if minute > 59 || second > 59 || micro > 999_999 {
        return Err(wrong());
    }
    let hours = i64::from(days) * 24 + i64::from(hour);
    let seconds = hours * 3600 + i64::from(minute) * 60 + i64::from(second);
    let micros = seconds * 1_000_000 + i64::from(micro);
    let micros = if negative { -micros } else { micros };
    Ok(Time::from_micros_clamped(micros, if length == 12 { 6 } else { 0 }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn slot(parameters: usize) -> Slot<()> {
        Slot {
            statement: (),
            parameters,
            types: Vec::new(),
            long_data: HashMap::new(),
            long_data_error: None,
        }
    }

    #[test]
    fn every_kind_of_parameter_is_read() {
        let mut packet = vec![0b10_0000_0000_u16 as u8, 0b10, 1];
        let types = [
            (ColumnType::Tiny, 0),
            (ColumnType::Tiny, 0x80),
            (ColumnType::Short, 0),
            (ColumnType::Long, 0x80),
            (ColumnType::LongLong, 0),
            (ColumnType::Double, 0),
            (ColumnType::NewDecimal, 0),
            (ColumnType::DateTime, 0),
            (ColumnType::Time, 0),
            (ColumnType::VarString, 0),
            (ColumnType::Blob, 0),
        ];
        types.iter().for_each(|(kind, flag)| packet.extend([*kind as u8, *flag]));
        packet.extend([0xff, 0xff, 0xfe, 0xff]);
        packet.extend([0xff; 4]);
        packet.extend((-5_i64).to_le_bytes());
        packet.extend(1.5_f64.to_le_bytes());
        packet.extend(b"\x0412.5");
        packet.extend([11, 0xea, 7, 11, 30, 1, 2, 3, 7, 0, 0, 0]);
        packet.extend([8, 1, 1, 0, 0, 0, 1, 0, 0]);
        packet.extend(b"\x02\x00\xff");
        let mut slot = slot(types.len());
        let values = parse_execute(&mut slot, &packet).unwrap();
        let moment = DateTime::new(Date::new(2026, 11, 30).unwrap(), 1, 2, 3, 7, 6).unwrap();
        let expected = [
            Value::Int(-1),
            Value::UInt(255),
            Value::Int(-2),
            Value::UInt(u32::MAX.into()),
            Value::Int(-5),
            Value::Double(1.5),
            Value::Decimal(Decimal::from_unscaled(125, 1)),
            Value::DateTime(moment),
            Value::Time(Time::from_micros(-90_000_000_000, 0).unwrap()),
            Value::Null,
            Value::bytes(b"\x00\xff"),
        ];
        assert_eq!(values, expected);
        for cut in 0..packet.len() {
            let _ = parse_execute(&mut slot, &packet[..cut]);
        }
    }

    #[test]
    fn types_are_remembered_and_long_data_takes_the_place_of_a_value() {
        let mut slot = slot(2);
        assert!(parse_execute(&mut slot, &[0, 0, 1, 2]).is_err(), "no types yet");
        let first = [0, 1, ColumnType::Blob as u8, 0, ColumnType::Tiny as u8, 0, 1, b'x', 7];
        assert_eq!(parse_execute(&mut slot, &first).unwrap(), [Value::bytes(b"x"), Value::Int(7)]);
        slot.long_data.insert(0, b"long".to_vec());
        assert_eq!(parse_execute(&mut slot, &[0, 0, 9]).unwrap(), [Value::bytes(b"long"), Value::Int(9)]);
    }
}
