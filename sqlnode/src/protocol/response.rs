//! Answers: OK, ERR and EOF packets and the description of a result's columns, as bytes.
//!
//! The functions append one packet's payload to a buffer; framing is [`super::packet`]'s business. Which of
//! OK and EOF ends a result depends on what the client can do and is decided in [`super::writer`].

use std::borrow::Cow;

use super::constants::{
    COLLATION_BINARY, COLLATION_UTF8MB4_0900_AI_CI, ColumnFlags, ColumnType, StatusFlags,
};
use super::wire::{put_lenenc, put_lenenc_bytes};
use crate::error::MySqlError;
use crate::value::{Charset, Collation, SqlType};

/// The outcome of a statement that returns no rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OkPacket {
    /// Rows changed (or found, if the client asked for that).
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value the statement made, or zero.
    pub last_insert_id: u64,
    /// The session's state.
    pub status: StatusFlags,
    /// How many warnings wait for SHOW WARNINGS.
    pub warnings: u16,
    /// A line for people, such as `Records: 3  Duplicates: 0  Warnings: 0`.
    pub info: Cow<'static, str>,
}

/// Appends an OK packet; `header` is 0x00, or 0xfe where it stands for an EOF.
pub fn encode_ok(out: &mut Vec<u8>, header: u8, ok: &OkPacket) {
    out.push(header);
    put_lenenc(out, ok.affected_rows);
    put_lenenc(out, ok.last_insert_id);
    out.extend_from_slice(&ok.status.0.to_le_bytes());
    out.extend_from_slice(&ok.warnings.to_le_bytes());
    if !ok.info.is_empty() {
        put_lenenc_bytes(out, ok.info.as_bytes());
    }
}

/// Appends an old-style EOF packet.
pub fn encode_eof(out: &mut Vec<u8>, status: StatusFlags, warnings: u16) {
    out.push(0xfe);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&status.0.to_le_bytes());
}

/// Appends an ERR packet; before login is agreed the SQLSTATE must be left out.
pub fn encode_err(out: &mut Vec<u8>, error: &MySqlError, with_state: bool) {
    out.push(0xff);
    out.extend_from_slice(&error.code.to_le_bytes());
    if with_state {
        out.push(b'#');
        let mut state = *b"HY000";
        if error.sqlstate.len() == state.len() {
            state.copy_from_slice(error.sqlstate.as_bytes());
        }
        out.extend_from_slice(&state);
    }
    out.extend_from_slice(error.message.as_bytes());
}

/// One column of a result, or one parameter of a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// The database of the table.
    pub schema: String,
    /// The table's alias in the statement.
    pub table: String,
    /// The table's own name.
    pub org_table: String,
    /// The column's alias.
    pub name: String,
    /// The column's own name.
    pub org_name: String,
    /// The collation number; `binary` for everything that is not text.
    pub collation: u16,
    /// The longest display length in bytes.
    pub length: u32,
    /// The type.
    pub column_type: ColumnType,
    /// What else is known.
    pub flags: ColumnFlags,
    /// Digits after the point; 31 when they are not fixed.
    pub decimals: u8,
}

impl ColumnDefinition {
    /// A column that belongs to no table.
    pub fn computed(name: impl Into<String>, column_type: ColumnType, length: u32) -> Self {
        Self {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.into(),
            org_name: String::new(),
            collation: COLLATION_BINARY,
            length,
            column_type,
            flags: ColumnFlags::BINARY,
            decimals: 0,
        }
    }

    /// A text column that belongs to no table, `chars` characters wide.
    pub fn computed_text(name: impl Into<String>, chars: u32) -> Self {
        Self {
            collation: COLLATION_UTF8MB4_0900_AI_CI,
            flags: ColumnFlags::default(),
            decimals: 31,
            ..Self::computed(name, ColumnType::VarString, chars.saturating_mul(4))
        }
    }

    /// A column of an SQL type that belongs to no table.
    pub fn typed(name: impl Into<String>, sql_type: &SqlType) -> Self {
        let column_type = ColumnType::from_byte(sql_type.protocol_type()).unwrap_or(ColumnType::VarString);
        let decimals = match sql_type {
            SqlType::Float { size: None, .. } | SqlType::Double { size: None, .. } => 31,
            other => other.decimals(),
        };
        // Text is sent in utf8mb4 whatever it is stored in.
        let collation = match sql_type.collation() {
            Collation::BINARY => COLLATION_BINARY,
            stored if stored.charset() == Charset::Utf8mb4 => stored.id(),
            _ => COLLATION_UTF8MB4_0900_AI_CI,
        };
        Self {
            collation,
            flags: ColumnFlags(sql_type.protocol_flags()),
            decimals,
            ..Self::computed(name, column_type, sql_type.display_length(Charset::Utf8mb4))
        }
    }

    /// What a `?` looks like before its type is known.
    pub fn parameter() -> Self {
        Self::computed("?", ColumnType::VarString, 0)
    }

    /// Appends the packet's payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lenenc_bytes(out, b"def");
        for text in [&self.schema, &self.table, &self.org_table, &self.name, &self.org_name] {
            put_lenenc_bytes(out, text.as_bytes());
        }
        out.push(0x0c);
        out.extend_from_slice(&self.collation.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.column_type as u8);
        out.extend_from_slice(&self.flags.0.to_le_bytes());
        out.push(self.decimals);
        out.extend_from_slice(&[0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn ok_and_eof_packets_have_the_documented_layout() {
        let ok = OkPacket {
            affected_rows: 300,
            last_insert_id: 7,
            status: StatusFlags::AUTOCOMMIT,
            warnings: 1,
            info: "hi".into(),
        };
        let mut out = Vec::new();
        encode_ok(&mut out, 0, &ok);
        assert_eq!(out, [0, 0xfc, 0x2c, 1, 7, 2, 0, 1, 0, 2, b'h', b'i']);
        let mut out = Vec::new();
        encode_eof(&mut out, StatusFlags::IN_TRANS, 2);
        assert_eq!(out, [0xfe, 2, 0, 1, 0]);
    }

    #[test]
    fn errors_carry_their_state_only_after_the_handshake() {
        let error = MySqlError::new(ErrorCode::NoDb);
        let mut out = Vec::new();
        encode_err(&mut out, &error, true);
        assert_eq!(out, [&[0xff, 0x16, 0x04][..], b"#3D000No database selected"].concat());
        let mut out = Vec::new();
        encode_err(&mut out, &error, false);
        assert_eq!(out, [&[0xff, 0x16, 0x04][..], b"No database selected"].concat());
    }

    #[test]
    fn column_definitions_carry_all_their_names() {
        let column = ColumnDefinition {
            schema: "s".into(),
            table: "t".into(),
            org_table: "ot".into(),
            org_name: "oc".into(),
            flags: ColumnFlags::NOT_NULL.with(ColumnFlags::PRI_KEY),
            ..ColumnDefinition::computed("c", ColumnType::Long, 11)
        };
        let mut out = Vec::new();
        column.encode(&mut out);
        assert_eq!(out, b"\x03def\x01s\x01t\x02ot\x01c\x02oc\x0c\x3f\0\x0b\0\0\0\x03\x03\0\0\0\0");
    }
}
