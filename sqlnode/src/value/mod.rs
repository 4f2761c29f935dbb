//! MySQL's values: what a column or an expression can be, and everything MySQL does to them.
//!
//! Role: the one place for casts, comparison, arithmetic, decimals, dates and collations, so that the
//! executor, the protocol and the tools agree on every corner. The parts:
//!
//! * [`Value`], [`Text`], [`SqlType`]: a value, a string with its collation, the type of a column or result.
//! * [`decimal`]: exact numbers of up to 65 digits.
//! * [`temporal`]: dates and times with MySQL's zeroes, their parsing, formats, arithmetic and time zones.
//! * [`number`]: text to number and number to text, as MySQL prints them.
//! * [`compare`], [`arith`], [`cast`]: comparison between any two types, operators, conversions.
//! * [`storage`]: a value to the bytes of a column and back, with the errors and warnings of sql_mode.
//! * [`charset`]: conversion between character sets.
//! * [`mode`]: sql_mode and the list behind SHOW WARNINGS.
//!
//! What it never does: it knows nothing of the network, of sessions or of the cluster. It reads no clock:
//! the current time comes in from the caller. It never panics on bytes from a row, a packet or a statement.

pub mod arith;
pub mod cast;
pub mod charset;
pub mod compare;
pub mod decimal;
pub mod mode;
pub mod number;
pub mod sql_type;
pub mod storage;
pub mod temporal;
pub mod text;

pub use crate::error::{ErrorCode, MySqlError};
pub use decimal::Decimal;
pub use mode::{SqlMode, Warning, WarningLevel, Warnings};
pub use signals::collation::{self, Charset, Collation, LikePattern};
pub use sql_type::{IntSize, LobSize, SqlType};
pub use temporal::{Date, DateTime, Time, TimeZone};
pub use text::Text;

/// What conversions and operators return.
pub type Result<T> = std::result::Result<T, MySqlError>;

/// One value. Cloning copies at most 32 bytes or counts a reference.
///
/// `PartialEq` is structural (`1` and `1.0` differ, collations are not looked at); SQL's comparisons are in
/// [`compare`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    #[default]
    Null,
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer: BIGINT UNSIGNED, BIT, YEAR and results that are unsigned in MySQL.
    UInt(u64),
    /// FLOAT, kept apart because MySQL prints it with 6 digits.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// A string in its collation's character set, or bytes when the collation is `binary`.
    Text(Text),
    /// DATE.
    Date(Date),
    /// DATETIME, or TIMESTAMP in the session's time zone.
    DateTime(DateTime),
    /// TIME.
    Time(Time),
}

const _: () = assert!(size_of::<Value>() <= 32);

impl Value {
    /// A string in the default collation.
    pub fn text(value: &str) -> Value {
        Value::Text(Text::new(value.as_bytes(), Collation::UTF8MB4_0900_AI_CI))
    }

    /// A binary string.
    pub fn bytes(value: &[u8]) -> Value {
        Value::Text(Text::new(value, Collation::BINARY))
    }

    /// MySQL's booleans are 1 and 0.
    pub const fn from_bool(value: bool) -> Value {
        Value::Int(value as i64)
    }

    /// NULL for `None`, else 1 or 0.
    pub fn from_truth(value: Option<bool>) -> Value {
        value.map_or(Value::Null, Value::from_bool)
    }

    /// Whether this is NULL.
    pub const fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether this is a number of any kind.
    pub const fn is_numeric(&self) -> bool {
        matches!(
            self,
            Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_)
        )
    }

    /// Whether this is a date, a time or both.
    pub const fn is_temporal(&self) -> bool {
        matches!(self, Value::Date(_) | Value::DateTime(_) | Value::Time(_))
    }

    /// The collation that comparisons as text use; numbers and dates are `None`.
    pub const fn collation(&self) -> Option<Collation> {
        match self {
            Value::Text(text) => Some(text.collation()),
            Value::Null
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Date(_)
            | Value::DateTime(_)
            | Value::Time(_) => None,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::UInt(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Double(value)
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Value {
        Value::Decimal(value)
    }
}

impl From<Text> for Value {
    fn from(value: Text) -> Value {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
