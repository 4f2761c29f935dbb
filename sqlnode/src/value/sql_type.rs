//! SQL types: what a column or a result holds, as MySQL names, shows and sends it.
//!
//! Role: one closed enum, and the facts about each type that the catalogue (SHOW, storage), the protocol
//! (type byte, flags, lengths) and the executor ask for. Sizes are those of MySQL.
//!
//! What it never does: it does not parse type names (the parser does), does not judge whether a size is
//! allowed (the catalogue does, with the column's name at hand) and converts no values.

use super::{Charset, Collation};
use signals::table::{ColumnStorage, ColumnType};
use std::fmt;
use std::sync::Arc;

/// Widths of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntSize {
    /// TINYINT, 1 byte.
    Tiny,
    /// SMALLINT, 2 bytes.
    Small,
    /// MEDIUMINT, 3 bytes.
    Medium,
    /// INT, 4 bytes.
    Int,
    /// BIGINT, 8 bytes.
    Big,
}

impl IntSize {
    /// Bytes of storage.
    pub const fn bytes(self) -> usize {
        match self {
            IntSize::Tiny => 1,
            IntSize::Small => 2,
            IntSize::Medium => 3,
            IntSize::Int => 4,
            IntSize::Big => 8,
        }
    }

    /// Least and greatest signed value.
    pub const fn signed_range(self) -> (i64, i64) {
        let max = (u64::MAX >> (65 - 8 * self.bytes() as u32)) as i64;
        (-max - 1, max)
    }

    /// Greatest unsigned value.
    pub const fn unsigned_max(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes() as u32)
    }

    /// The type's word.
    pub const fn name(self) -> &'static str {
        match self {
            IntSize::Tiny => "tinyint",
            IntSize::Small => "smallint",
            IntSize::Medium => "mediumint",
            IntSize::Int => "int",
            IntSize::Big => "bigint",
        }
    }

    /// Characters of the longest value with its sign: the width MySQL assumes when none is given.
    pub const fn default_width(self, unsigned: bool) -> u8 {
        match (self, unsigned) {
            (IntSize::Tiny, false) => 4,
            (IntSize::Tiny, true) => 3,
            (IntSize::Small, false) => 6,
            (IntSize::Small, true) => 5,
            (IntSize::Medium, false) => 9,
            (IntSize::Medium, true) => 8,
            (IntSize::Int, false) => 11,
            (IntSize::Int, true) => 10,
            (IntSize::Big, _) => 20,
        }
    }
}

/// The four lengths of TEXT and BLOB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LobSize {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 65,535 bytes.
    Normal,
    /// Up to 16,777,215 bytes.
    Medium,
    /// Up to 4,294,967,295 bytes.
    Long,
}

impl LobSize {
    /// The most bytes.
    pub const fn bytes_max(self) -> u32 {
        match self {
            LobSize::Tiny => 255,
            LobSize::Normal => 65_535,
            LobSize::Medium => 16_777_215,
            LobSize::Long => u32::MAX,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            LobSize::Tiny => "tiny",
            LobSize::Normal => "",
            LobSize::Medium => "medium",
            LobSize::Long => "long",
        }
    }
}

/// What a number column adds to its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberFlags {
    /// UNSIGNED.
    pub unsigned: bool,
    /// ZEROFILL; UNSIGNED is set too.
    pub zerofill: bool,
}

/// A type of a column or of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlType {
    /// The type of a bare NULL.
    Null,
    /// TINYINT to BIGINT.
    Int {
        /// How wide.
        size: IntSize,
        /// UNSIGNED and ZEROFILL.
        flags: NumberFlags,
        /// Display width as written; kept for TINYINT(1) and ZEROFILL.
        width: Option<u8>,
    },
    /// DECIMAL(precision, scale).
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
        /// UNSIGNED and ZEROFILL.
        flags: NumberFlags,
    },
    /// FLOAT.
    Float {
        /// (digits, decimals) of FLOAT(m,d).
        size: Option<(u8, u8)>,
        /// UNSIGNED and ZEROFILL.
        flags: NumberFlags,
    },
    /// DOUBLE.
    Double {
        /// (digits, decimals) of DOUBLE(m,d).
        size: Option<(u8, u8)>,
        /// UNSIGNED and ZEROFILL.
        flags: NumberFlags,
    },
    /// BIT(n), 1 to 64.
    Bit(u8),
    /// CHAR(n) in characters.
    Char {
        /// Characters, 0 to 255.
        chars: u8,
        /// Collation.
        collation: Collation,
    },
    /// VARCHAR(n) in characters.
    VarChar {
        /// Characters.
        chars: u32,
        /// Collation.
        collation: Collation,
    },
    /// BINARY(n).
    Binary(u8),
    /// VARBINARY(n).
    VarBinary(u16),
    /// TINYTEXT to LONGTEXT.
    Text {
        /// Which.
        size: LobSize,
        /// Collation.
        collation: Collation,
    },
    /// TINYBLOB to LONGBLOB.
    Blob(LobSize),
    /// DATE.
    Date,
    /// DATETIME(fsp).
    DateTime {
        /// Digits of the fraction, 0 to 6.
        fsp: u8,
    },
    /// TIMESTAMP(fsp), stored in UTC.
    Timestamp {
        /// Digits of the fraction, 0 to 6.
        fsp: u8,
    },
    /// TIME(fsp).
    Time {
        /// Digits of the fraction, 0 to 6.
        fsp: u8,
    },
    /// YEAR.
    Year,
    /// ENUM.
    Enum {
        /// The members, numbered from 1.
        members: Arc<[Box<str>]>,
        /// Collation.
        collation: Collation,
    },
    /// SET.
    Set {
        /// The members, one bit each.
        members: Arc<[Box<str>]>,
        /// Collation.
        collation: Collation,
    },
}

impl SqlType {
    /// A signed integer without display width.
    pub const fn int(size: IntSize) -> SqlType {
        SqlType::Int { size, flags: NumberFlags { unsigned: false, zerofill: false }, width: None }
    }

    /// An unsigned integer without display width.
    pub const fn unsigned(size: IntSize) -> SqlType {
        SqlType::Int { size, flags: NumberFlags { unsigned: true, zerofill: false }, width: None }
    }

    /// BIGINT.
    pub const BIGINT: SqlType = SqlType::int(IntSize::Big);
    /// BIGINT UNSIGNED.
    pub const BIGINT_UNSIGNED: SqlType = SqlType::unsigned(IntSize::Big);
    /// DOUBLE.
    pub const DOUBLE: SqlType =
        SqlType::Double { size: None, flags: NumberFlags { unsigned: false, zerofill: false } };

    /// DECIMAL(precision, scale), signed.
    pub const fn decimal(precision: u8, scale: u8) -> SqlType {
        SqlType::Decimal { precision, scale, flags: NumberFlags { unsigned: false, zerofill: false } }
    }

    /// VARCHAR(chars).
    pub const fn varchar(chars: u32, collation: Collation) -> SqlType {
        SqlType::VarChar { chars, collation }
    }

    /// The collation of strings; `binary` for everything else, as the protocol reports it.
    pub const fn collation(&self) -> Collation {
        match self {
            SqlType::Char { collation, .. }
            | SqlType::VarChar { collation, .. }
            | SqlType::Text { collation, .. }
            | SqlType::Enum { collation, .. }
            | SqlType::Set { collation, .. } => *collation,
            SqlType::Null
            | SqlType::Int { .. }
            | SqlType::Decimal { .. }
            | SqlType::Float { .. }
            | SqlType::Double { .. }
            | SqlType::Bit(_)
            | SqlType::Binary(_)
            | SqlType::VarBinary(_)
            | SqlType::Blob(_)
            | SqlType::Date
            | SqlType::DateTime { .. }
            | SqlType::Timestamp { .. }
            | SqlType::Time { .. }
            | SqlType::Year => Collation::BINARY,
        }
    }

    /// The same type with another collation; types without characters stay as they are.
    #[must_use]
    pub fn with_collation(&self, new: Collation) -> SqlType {
        let mut changed = self.clone();
        match &mut changed {
            SqlType::Char { collation, .. }
            | SqlType::VarChar { collation, .. }
            | SqlType::Text { collation, .. }
            | SqlType::Enum { collation, .. }
            | SqlType::Set { collation, .. } => *collation = new,
            _ => {}
        }
        changed
    }

    /// Whether SHOW CREATE TABLE may print a character set for it.
    pub const fn has_charset(&self) -> bool {
        matches!(
            self,
            SqlType::Char { .. }
                | SqlType::VarChar { .. }
                | SqlType::Text { .. }
                | SqlType::Enum { .. }
                | SqlType::Set { .. }
        )
    }

    /// UNSIGNED and ZEROFILL of numbers.
    pub const fn number_flags(&self) -> NumberFlags {
        match self {
            SqlType::Int { flags, .. }
            | SqlType::Decimal { flags, .. }
            | SqlType::Float { flags, .. }
            | SqlType::Double { flags, .. } => *flags,
            SqlType::Bit(_) => NumberFlags { unsigned: true, zerofill: false },
            SqlType::Year => NumberFlags { unsigned: true, zerofill: true },
            _ => NumberFlags { unsigned: false, zerofill: false },
        }
    }

    /// Whether values are never negative.
    pub const fn is_unsigned(&self) -> bool {
        self.number_flags().unsigned
    }

    /// Whether it is TINYINT to BIGINT, BIT or YEAR.
    pub const fn is_integer(&self) -> bool {
        matches!(self, SqlType::Int { .. } | SqlType::Bit(_) | SqlType::Year)
    }

    /// Whether it is a number.
    pub const fn is_numeric(&self) -> bool {
        self.is_integer()
            || matches!(self, SqlType::Decimal { .. } | SqlType::Float { .. } | SqlType::Double { .. })
    }

    /// Whether it is a date, a time or both.
    pub const fn is_temporal(&self) -> bool {
        matches!(
            self,
            SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. } | SqlType::Time { .. }
        )
    }

    /// Whether it is TEXT or BLOB of any length.
    pub const fn is_lob(&self) -> bool {
        matches!(self, SqlType::Text { .. } | SqlType::Blob(_))
    }

    /// Whether values are strings of characters or bytes.
    pub const fn is_string(&self) -> bool {
        self.has_charset() || matches!(self, SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Blob(_))
    }

    /// Digits after the point: the scale of exact numbers, the fsp of times, 31 for "as many as needed".
    pub const fn decimals(&self) -> u8 {
        match self {
            SqlType::Decimal { scale, .. } => *scale,
            SqlType::Float { size, .. } | SqlType::Double { size, .. } => match size {
                Some((_, decimals)) => *decimals,
                None => 31,
            },
            SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => *fsp,
            _ => 0,
        }
    }

    /// The most bytes a value takes in storage, before any limit of rows.
    pub fn storage_bytes_max(&self) -> u64 {
        let text = |chars: u64, collation: Collation| chars * collation.charset().bytes_per_char_max() as u64;
        match self {
            SqlType::Null => 0,
            SqlType::Int { size, .. } => size.bytes() as u64,
            SqlType::Decimal { precision, scale, .. } => {
                super::decimal::encoded_len(*precision, *scale) as u64
            }
            SqlType::Float { .. } => 4,
            SqlType::Double { .. } | SqlType::Bit(_) => 8,
            SqlType::Char { chars, collation } => text(u64::from(*chars), *collation),
            SqlType::VarChar { chars, collation } => text(u64::from(*chars), *collation),
            SqlType::Binary(n) => u64::from(*n),
            SqlType::VarBinary(n) => u64::from(*n),
            SqlType::Text { size, .. } | SqlType::Blob(size) => u64::from(size.bytes_max()),
            SqlType::Date => 3,
            SqlType::DateTime { .. } | SqlType::Timestamp { .. } | SqlType::Time { .. } => 8,
            SqlType::Year => 1,
            SqlType::Enum { members, .. } => enum_bytes(members.len()) as u64,
            SqlType::Set { members, .. } => set_bytes(members.len()) as u64,
        }
    }

    /// How the cluster keeps the column: what its bytes mean, and how many there are. Strings longer than a
    /// row are cut to what a row can hold.
    pub fn column_storage(&self) -> (ColumnType, ColumnStorage) {
        let max = self.storage_bytes_max();
        let fixed = ColumnStorage::Fixed { size: max.min(u64::from(u16::MAX)) as u16 };
        let var = ColumnStorage::Var { max_len: max.min(signals::table::MAX_ROW_BYTES as u64) as u16 };
        match self {
            SqlType::Int { flags, .. } if flags.unsigned => (ColumnType::Unsigned, fixed),
            SqlType::Int { .. } | SqlType::Time { .. } => (ColumnType::Signed, fixed),
            SqlType::Bit(_)
            | SqlType::Date
            | SqlType::DateTime { .. }
            | SqlType::Timestamp { .. }
            | SqlType::Year
            | SqlType::Enum { .. }
            | SqlType::Set { .. } => (ColumnType::Unsigned, fixed),
            SqlType::Float { .. } | SqlType::Double { .. } => (ColumnType::Float, fixed),
            SqlType::Decimal { .. } | SqlType::Binary(_) => (ColumnType::Binary, fixed),
            SqlType::Null | SqlType::VarBinary(_) | SqlType::Blob(_) => (ColumnType::Binary, var),
            SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => (ColumnType::Char, var),
        }
    }

    /// The type byte of column definitions in the protocol.
    pub const fn protocol_type(&self) -> u8 {
        match self {
            SqlType::Null => 6,
            SqlType::Int { size, .. } => match size {
                IntSize::Tiny => 1,
                IntSize::Small => 2,
                IntSize::Medium => 9,
                IntSize::Int => 3,
                IntSize::Big => 8,
            },
            SqlType::Decimal { .. } => 246,
            SqlType::Float { .. } => 4,
            SqlType::Double { .. } => 5,
            SqlType::Bit(_) => 16,
            // ENUM and SET are sent as strings with a flag that says what they are.
            SqlType::Char { .. } | SqlType::Binary(_) | SqlType::Enum { .. } | SqlType::Set { .. } => 254,
            SqlType::VarChar { .. } | SqlType::VarBinary(_) => 253,
            SqlType::Text { .. } | SqlType::Blob(_) => 252,
            SqlType::Date => 10,
            SqlType::DateTime { .. } => 12,
            SqlType::Timestamp { .. } => 7,
            SqlType::Time { .. } => 11,
            SqlType::Year => 13,
        }
    }

    /// The type's own bits of the protocol's column flags: unsigned 32, zerofill 64, blob 16, binary 128,
    /// enum 256, timestamp 1024, set 2048, number 32768.
    pub const fn protocol_flags(&self) -> u16 {
        let number = self.number_flags();
        let mut flags = 0;
        if number.unsigned {
            flags |= 32;
        }
        if number.zerofill {
            flags |= 64;
        }
        if self.is_numeric() {
            flags |= 32768;
        }
        if self.is_lob() {
            flags |= 16;
        }
        match self {
            SqlType::Enum { .. } => flags |= 256,
            SqlType::Set { .. } => flags |= 2048,
            SqlType::Timestamp { .. } => flags |= 1024,
            _ => {}
        }
        if self.collation().is_binary() {
            flags |= 128;
        }
        flags
    }

    /// The column length of the protocol: the most bytes of the value's text in `results`, the character set
    /// of the connection.
    pub fn display_length(&self, results: Charset) -> u32 {
        let per_char = results.bytes_per_char_max() as u64;
        let fraction = |fsp: u8| if fsp == 0 { 0 } else { u32::from(fsp) + 1 };
        let chars = |n: u64| u32::try_from(n * per_char).unwrap_or(u32::MAX);
        match self {
            SqlType::Null => 0,
            SqlType::Int { size, flags, width } => {
                u32::from(width.unwrap_or_else(|| size.default_width(flags.unsigned)))
            }
            SqlType::Decimal { precision, scale, flags } => {
                u32::from(*precision) + u32::from(*scale > 0) + u32::from(!flags.unsigned)
            }
            SqlType::Float { size, .. } => size.map_or(12, |(digits, _)| u32::from(digits)),
            SqlType::Double { size, .. } => size.map_or(22, |(digits, _)| u32::from(digits)),
            SqlType::Bit(n) => u32::from(*n),
            SqlType::Char { chars: n, .. } => chars(u64::from(*n)),
            SqlType::VarChar { chars: n, .. } => chars(u64::from(*n)),
            SqlType::Binary(n) => u32::from(*n),
            SqlType::VarBinary(n) => u32::from(*n),
            SqlType::Text { size, .. } => {
                // A TEXT of n bytes can hold n characters of one byte, each longer in the result's set.
                chars(u64::from(size.bytes_max()))
            }
            SqlType::Blob(size) => size.bytes_max(),
            SqlType::Date => 10,
            SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => 19 + fraction(*fsp),
            SqlType::Time { fsp } => 10 + fraction(*fsp),
            SqlType::Year => 4,
            SqlType::Enum { members, .. } => {
                chars(members.iter().map(|m| m.chars().count() as u64).max().unwrap_or(0))
            }
            SqlType::Set { members, .. } => {
                let letters: u64 = members.iter().map(|m| m.chars().count() as u64).sum();
                chars(letters + (members.len() as u64).saturating_sub(1))
            }
        }
    }

    /// The word of INFORMATION_SCHEMA's DATA_TYPE.
    pub fn data_type(&self) -> String {
        match self {
            SqlType::Null => "null".to_owned(),
            SqlType::Int { size, .. } => size.name().to_owned(),
            SqlType::Decimal { .. } => "decimal".to_owned(),
            SqlType::Float { .. } => "float".to_owned(),
            SqlType::Double { .. } => "double".to_owned(),
            SqlType::Bit(_) => "bit".to_owned(),
            SqlType::Char { .. } => "char".to_owned(),
            SqlType::VarChar { .. } => "varchar".to_owned(),
            SqlType::Binary(_) => "binary".to_owned(),
            SqlType::VarBinary(_) => "varbinary".to_owned(),
            SqlType::Text { size, .. } => format!("{}text", size.prefix()),
            SqlType::Blob(size) => format!("{}blob", size.prefix()),
            SqlType::Date => "date".to_owned(),
            SqlType::DateTime { .. } => "datetime".to_owned(),
            SqlType::Timestamp { .. } => "timestamp".to_owned(),
            SqlType::Time { .. } => "time".to_owned(),
            SqlType::Year => "year".to_owned(),
            SqlType::Enum { .. } => "enum".to_owned(),
            SqlType::Set { .. } => "set".to_owned(),
        }
    }
}

/// Bytes that the number of an ENUM member takes.
pub const fn enum_bytes(members: usize) -> usize {
    if members < 256 { 1 } else { 2 }
}

/// Bytes that the bits of a SET take: 1, 2, 3, 4 or 8.
pub const fn set_bytes(members: usize) -> usize {
    match members.div_ceil(8) {
        0 | 1 => 1,
        bytes @ 2..=4 => bytes,
        _ => 8,
    }
}

/// The type as `SHOW COLUMNS` and `SHOW CREATE TABLE` print it, without the character set.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.data_type())?;
        match self {
            // MySQL 8.0.19 and later show a display width only where it still means something.
            SqlType::Int { size, flags, width } => match width {
                Some(1) if *size == IntSize::Tiny && !flags.unsigned => f.write_str("(1)")?,
                _ if flags.zerofill => {
                    write!(f, "({})", width.unwrap_or_else(|| size.default_width(true)))?;
                }
                _ => {}
            },
            SqlType::Decimal { precision, scale, .. } => write!(f, "({precision},{scale})")?,
            SqlType::Float { size: Some((m, d)), .. } | SqlType::Double { size: Some((m, d)), .. } => {
                write!(f, "({m},{d})")?;
            }
            SqlType::Bit(n) | SqlType::Binary(n) => write!(f, "({n})")?,
            SqlType::Char { chars, .. } => write!(f, "({chars})")?,
            SqlType::VarChar { chars, .. } => write!(f, "({chars})")?,
            SqlType::VarBinary(n) => write!(f, "({n})")?,
            SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } if *fsp > 0 => {
                write!(f, "({fsp})")?;
            }
            SqlType::Enum { members, .. } | SqlType::Set { members, .. } => {
                for (index, member) in members.iter().enumerate() {
                    let before = if index == 0 { '(' } else { ',' };
                    write!(f, "{before}'{}'", member.replace('\'', "''"))?;
                }
                f.write_str(")")?;
            }
            _ => {}
        }
        if !matches!(self, SqlType::Bit(_) | SqlType::Year) {
            let flags = self.number_flags();
            if flags.unsigned {
                f.write_str(" unsigned")?;
            }
            if flags.zerofill {
                f.write_str(" zerofill")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_mysql_shows_them() {
        let zerofill = NumberFlags { unsigned: true, zerofill: true };
        let members: Arc<[Box<str>]> = Arc::from(["a".into(), "it's".into()]);
        let collation = Collation::default();
        for (sql_type, text) in [
            (SqlType::int(IntSize::Int), "int"),
            (SqlType::unsigned(IntSize::Big), "bigint unsigned"),
            (
                SqlType::Int { size: IntSize::Tiny, flags: NumberFlags::default(), width: Some(1) },
                "tinyint(1)",
            ),
            (
                SqlType::Int { size: IntSize::Int, flags: zerofill, width: Some(5) },
                "int(5) unsigned zerofill",
            ),
            (SqlType::Int { size: IntSize::Int, flags: zerofill, width: None }, "int(10) unsigned zerofill"),
            (SqlType::decimal(10, 2), "decimal(10,2)"),
            (SqlType::Double { size: Some((7, 3)), flags: NumberFlags::default() }, "double(7,3)"),
            (SqlType::varchar(20, collation), "varchar(20)"),
            (SqlType::Text { size: LobSize::Medium, collation }, "mediumtext"),
            (SqlType::Blob(LobSize::Normal), "blob"),
            (SqlType::DateTime { fsp: 6 }, "datetime(6)"),
            (SqlType::Timestamp { fsp: 0 }, "timestamp"),
            (SqlType::Year, "year"),
            (SqlType::Bit(3), "bit(3)"),
            (SqlType::Enum { members, collation }, "enum('a','it''s')"),
        ] {
            assert_eq!(sql_type.to_string(), text);
        }
    }

    #[test]
    fn integer_ranges() {
        assert_eq!(IntSize::Tiny.signed_range(), (-128, 127));
        assert_eq!(IntSize::Medium.signed_range(), (-8_388_608, 8_388_607));
        assert_eq!(IntSize::Big.signed_range(), (i64::MIN, i64::MAX));
        assert_eq!(IntSize::Medium.unsigned_max(), 16_777_215);
        assert_eq!(IntSize::Big.unsigned_max(), u64::MAX);
    }

    #[test]
    fn storage_sizes() {
        assert_eq!(SqlType::varchar(10, Collation::default()).storage_bytes_max(), 40);
        assert_eq!(SqlType::decimal(10, 2).storage_bytes_max(), 5);
        assert_eq!([set_bytes(8), set_bytes(9), set_bytes(33), set_bytes(64)], [1, 2, 8, 8]);
    }
}
