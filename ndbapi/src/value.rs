//! Values: what an application gives for a column, turned into the column's storage bytes.
//!
//! Numbers are checked against the column's width, lengths against its limit (4209); nothing is cut or
//! rounded silently. The SQL node, which does MySQL's conversions itself, gives storage bytes
//! ([`Value::Bytes`]).

use crate::NdbError;
use signals::ErrorCode;
use signals::table::{ColumnDef, ColumnStorage, ColumnType};
use std::borrow::Cow;

/// A column value as an application gives it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// For integer columns of either kind, and floats if it is exact.
    Signed(i64),
    /// For integer columns of either kind, and floats if it is exact.
    Unsigned(u64),
    /// For float columns.
    Float(f64),
    /// For character and binary columns; in fixed ones it is filled up with spaces or zeros.
    Text(&'a str),
    /// The storage bytes, of exactly the column's length if it is fixed.
    Bytes(&'a [u8]),
}

macro_rules! value_from {
    ($($from:ty => $variant:ident($as:ty)),* $(,)?) => {$(
        impl From<$from> for Value<'_> {
            fn from(value: $from) -> Self {
                Self::$variant(<$as>::from(value))
            }
        }
    )*};
}
value_from! {
    i8 => Signed(i64), i16 => Signed(i64), i32 => Signed(i64), i64 => Signed(i64),
    u8 => Unsigned(u64), u16 => Unsigned(u64), u32 => Unsigned(u64), u64 => Unsigned(u64),
    f32 => Float(f64), f64 => Float(f64), bool => Unsigned(u64),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}
impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self::Bytes(value)
    }
}
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A value in storage form.
pub(crate) enum Stored<'a> {
    Null,
    Inline([u8; 8], usize),
    Bytes(Cow<'a, [u8]>),
}

impl Stored<'_> {
    /// The bytes, or `None` for NULL.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Null => None,
            Self::Inline(bytes, length) => Some(&bytes[..*length]),
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// Brings `value` into `column`'s storage form.
#[inline]
pub(crate) fn store<'a>(column: &ColumnDef, value: Value<'a>) -> Result<Stored<'a>, NdbError> {
    match value {
        Value::Null if column.nullable => Ok(Stored::Null),
        Value::Null => Err(refuse(ErrorCode::NULL_IN_NOT_NULL, column, "NULL in a NOT NULL column")),
        Value::Signed(v) => store_integer(column, i128::from(v)),
        Value::Unsigned(v) => store_integer(column, i128::from(v)),
        Value::Float(v) => store_float(column, v),
        Value::Text(v) => store_text(column, v.as_bytes()),
        Value::Bytes(v) if column.storage.accepts(v.len()) => Ok(Stored::Bytes(Cow::Borrowed(v))),
        Value::Bytes(v) => Err(wrong_length(column, v.len())),
    }
}

#[inline]
fn store_integer<'a>(column: &ColumnDef, value: i128) -> Result<Stored<'a>, NdbError> {
    let size = column.storage.max_bytes();
    let (low, high) = match column.kind {
        ColumnType::Signed if size <= 8 => (-(1i128 << (8 * size - 1)), (1i128 << (8 * size - 1)) - 1),
        ColumnType::Unsigned if size <= 8 => (0, (1i128 << (8 * size)) - 1),
        ColumnType::Float => {
            let float = value as f64;
            if float as i128 != value {
                return Err(refuse(ErrorCode::PARAMETER_ERROR, column, "number not exact as a float"));
            }
            return store_float(column, float);
        }
        ColumnType::Signed | ColumnType::Unsigned | ColumnType::Binary | ColumnType::Char => {
            return Err(refuse(ErrorCode::PARAMETER_ERROR, column, "a number for a column of bytes"));
        }
    };
    if !(low..=high).contains(&value) {
        let text = format!("{value} is outside {low} to {high}");
        return Err(refuse(ErrorCode::PARAMETER_ERROR, column, &text));
    }
    Ok(Stored::Inline((value as u64).to_le_bytes(), size))
}

fn store_float<'a>(column: &ColumnDef, value: f64) -> Result<Stored<'a>, NdbError> {
    match (column.kind, column.storage.max_bytes()) {
        (ColumnType::Float, 8) => Ok(Stored::Inline(value.to_le_bytes(), 8)),
        (ColumnType::Float, 4) => {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&(value as f32).to_le_bytes());
            Ok(Stored::Inline(bytes, 4))
        }
        _ => Err(refuse(ErrorCode::PARAMETER_ERROR, column, "a float for a column of another type")),
    }
}

fn store_text<'a>(column: &ColumnDef, text: &'a [u8]) -> Result<Stored<'a>, NdbError> {
    let fill = match column.kind {
        ColumnType::Char => b' ',
        ColumnType::Binary => 0,
        ColumnType::Signed | ColumnType::Unsigned | ColumnType::Float => {
            return Err(refuse(ErrorCode::PARAMETER_ERROR, column, "text for a column of numbers"));
        }
    };
    match column.storage {
        ColumnStorage::Fixed { size } if text.len() < size as usize => {
            let mut filled = text.to_vec();
            filled.resize(size as usize, fill);
            Ok(Stored::Bytes(Cow::Owned(filled)))
        }
        storage if storage.accepts(text.len()) => Ok(Stored::Bytes(Cow::Borrowed(text))),
        ColumnStorage::Fixed { .. } | ColumnStorage::Var { .. } => Err(wrong_length(column, text.len())),
    }
}

#[cold]
fn wrong_length(column: &ColumnDef, length: usize) -> NdbError {
    let text = format!("{length} bytes for {:?}", column.storage);
    refuse(ErrorCode::VALUE_LENGTH, column, &text)
}

#[cold]
fn refuse(code: ErrorCode, column: &ColumnDef, text: &str) -> NdbError {
    NdbError::with(code, format!("column {:?}: {text}", column.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::column;

    fn stored(kind: ColumnType, storage: ColumnStorage, value: Value<'_>) -> Result<Option<Vec<u8>>, u16> {
        let mut c = column("c", kind, storage);
        c.nullable = true;
        store(&c, value).map(|s| s.bytes().map(<[u8]>::to_vec)).map_err(|e| e.code().0)
    }

    #[test]
    fn numbers_are_checked_against_the_width() {
        use ColumnType::{Float, Signed, Unsigned};
        let fixed = |size| ColumnStorage::Fixed { size };
        assert_eq!(stored(Unsigned, fixed(1), 255u32.into()), Ok(Some(vec![255])));
        assert_eq!(stored(Unsigned, fixed(1), 256u32.into()), Err(4118));
        assert_eq!(stored(Unsigned, fixed(4), (-1i32).into()), Err(4118));
        assert_eq!(stored(Signed, fixed(3), (-2i64).into()), Ok(Some(vec![0xfe, 0xff, 0xff])));
        assert_eq!(stored(Signed, fixed(8), u64::MAX.into()), Err(4118));
        assert_eq!(stored(Unsigned, fixed(8), u64::MAX.into()), Ok(Some(vec![255; 8])));
        assert_eq!(stored(Float, fixed(4), 1.5f64.into()), Ok(Some(1.5f32.to_le_bytes().to_vec())));
        assert_eq!(stored(Float, fixed(8), 3i64.into()), Ok(Some(3f64.to_le_bytes().to_vec())));
        assert_eq!(stored(Float, fixed(8), (i64::MAX).into()), Err(4118));
        assert_eq!(stored(Unsigned, fixed(4), "7".into()), Err(4118));
        assert_eq!(stored(Unsigned, fixed(4), None::<u32>.into()), Ok(None));
    }

    #[test]
    fn text_is_filled_up_and_lengths_are_checked() {
        use ColumnType::{Binary, Char};
        let var = ColumnStorage::Var { max_len: 4 };
        let fixed = ColumnStorage::Fixed { size: 4 };
        assert_eq!(stored(Char, fixed, "ab".into()), Ok(Some(b"ab  ".to_vec())));
        assert_eq!(stored(Binary, fixed, "ab".into()), Ok(Some(b"ab\0\0".to_vec())));
        assert_eq!(stored(Char, var, "ab".into()), Ok(Some(b"ab".to_vec())));
        assert_eq!(stored(Char, var, "abcde".into()), Err(4209));
        assert_eq!(stored(Binary, fixed, b"abc".into()), Err(4209));
        assert_eq!(stored(Binary, var, 5u32.into()), Err(4118));
    }
}
