//! Column types: from the words of CREATE TABLE to [`SqlType`], with MySQL's limits.

use std::sync::Arc;

use signals::table::ColumnDef;

use super::ColumnMeta;
use crate::parser::ast::{self, TypeKind, TypeName};
use crate::value::sql_type::NumberFlags;
use crate::value::{Charset, Collation, ErrorCode, IntSize, LobSize, MySqlError, Result, SqlType};

/// The collation of a type, from its own words or the table's default.
fn collation_of(ty: &TypeName, default: Collation) -> Result<Collation> {
    let unknown = |code, name: &str| MySqlError::with(code, &[&name]);
    let mut collation = match &ty.charset {
        Some(name) => {
            let charset =
                Charset::by_name(name).ok_or_else(|| unknown(ErrorCode::UnknownCharacterSet, name))?;
            charset.default_collation()
        }
        None => default,
    };
    if ty.binary {
        collation = collation.charset().binary_collation();
    }
    if let Some(name) = &ty.collate {
        let named = Collation::by_name(name).ok_or_else(|| unknown(ErrorCode::UnknownCollation, name))?;
        if ty.charset.is_some() && named.charset() != collation.charset() {
            let set = collation.charset().name();
            return Err(MySqlError::with(ErrorCode::CollationCharsetMismatch, &[name, &set]));
        }
        collation = named;
    }
    Ok(collation)
}

/// The SQL type that a statement's type words mean for `column`.
///
/// # Errors
/// A size outside of its range, an unknown character set, or a type that is not supported yet.
pub fn sql_type(ty: &TypeName, default: Collation, column: &str) -> Result<SqlType> {
    let too_long = |max: u32| MySqlError::with(ErrorCode::TooBigFieldlength, &[&column, &max]);
    let fsp = |fsp: &Option<u32>| match fsp.unwrap_or(0) {
        n @ 0..=6 => Ok(n as u8),
        n => Err(MySqlError::with(ErrorCode::TooBigPrecision, &[&n, &column, &6])),
    };
    let pair = |size: &Option<(u32, u32)>| match size {
        None => Ok(None),
        Some((m, d)) if *m <= 255 && *d <= 30 && d <= m => Ok(Some((*m as u8, *d as u8))),
        Some(_) => Err(MySqlError::with(ErrorCode::MBiggerThanD, &[&column])),
    };
    let flags = |unsigned: bool, zerofill: bool| NumberFlags { unsigned: unsigned || zerofill, zerofill };
    Ok(match &ty.kind {
        TypeKind::Int { size, width, unsigned, zerofill } => SqlType::Int {
            size: int_size(*size),
            flags: flags(*unsigned, *zerofill),
            width: width.map(|w| u8::try_from(w).unwrap_or(255)),
        },
        TypeKind::Decimal { precision, scale, unsigned, zerofill } => {
            decimal(*precision, *scale, flags(*unsigned, *zerofill), column)?
        }
        TypeKind::Float { size, unsigned, zerofill } => {
            SqlType::Float { size: pair(size)?, flags: flags(*unsigned, *zerofill) }
        }
        TypeKind::Double { size, unsigned, zerofill } => {
            SqlType::Double { size: pair(size)?, flags: flags(*unsigned, *zerofill) }
        }
        TypeKind::Bit(bits) => match bits.unwrap_or(1) {
            n @ 1..=64 => SqlType::Bit(n as u8),
            _ => return Err(MySqlError::with(ErrorCode::TooBigDisplaywidth, &[&column, &64])),
        },
        TypeKind::Char(chars) => {
            let chars = u8::try_from(chars.unwrap_or(1)).map_err(|_| too_long(255))?;
            character(collation_of(ty, default)?, u32::from(chars), true)
        }
        TypeKind::VarChar(chars) => {
            let collation = collation_of(ty, default)?;
            let max = 65_535 / collation.charset().bytes_per_char_max() as u32;
            if *chars > max {
                return Err(too_long(max));
            }
            character(collation, *chars, false)
        }
        TypeKind::Binary(n) => SqlType::Binary(u8::try_from(n.unwrap_or(1)).map_err(|_| too_long(255))?),
        TypeKind::VarBinary(n) => SqlType::VarBinary(u16::try_from(*n).map_err(|_| too_long(65_535))?),
        TypeKind::Text(size, length) => {
            let collation = collation_of(ty, default)?;
            let size = lob_size(*size, length.map(|n| n.saturating_mul(4)));
            if collation.is_binary() { SqlType::Blob(size) } else { SqlType::Text { size, collation } }
        }
        TypeKind::Blob(size, length) => SqlType::Blob(lob_size(*size, *length)),
        TypeKind::Enum(members) => SqlType::Enum {
            members: member_names(members, 65_535, column)?,
            collation: collation_of(ty, default)?,
        },
        TypeKind::Set(members) => SqlType::Set {
            members: member_names(members, 64, column)?,
            collation: collation_of(ty, default)?,
        },
        TypeKind::Date => SqlType::Date,
        TypeKind::Time(n) => SqlType::Time { fsp: fsp(n)? },
        TypeKind::DateTime(n) => SqlType::DateTime { fsp: fsp(n)? },
        TypeKind::Timestamp(n) => SqlType::Timestamp { fsp: fsp(n)? },
        TypeKind::Year => SqlType::Year,
        TypeKind::Json => return Err(not_yet("JSON columns")),
        TypeKind::Geometry(name) => return Err(not_yet(&format!("{name} columns"))),
    })
}

/// Error 1235: a feature this release does not have.
pub fn not_yet(what: &str) -> MySqlError {
    MySqlError::with(ErrorCode::NotSupportedYet, &[&what])
}

fn character(collation: Collation, chars: u32, fixed: bool) -> SqlType {
    match (collation.is_binary(), fixed) {
        (true, true) => SqlType::Binary(chars.min(255) as u8),
        (true, false) => SqlType::VarBinary(chars.min(65_535) as u16),
        (false, true) => SqlType::Char { chars: chars.min(255) as u8, collation },
        (false, false) => SqlType::VarChar { chars, collation },
    }
}

fn decimal(precision: Option<u32>, scale: Option<u32>, flags: NumberFlags, column: &str) -> Result<SqlType> {
    let (precision, scale) = (precision.unwrap_or(10), scale.unwrap_or(0));
    let precision = if precision == 0 { 10 } else { precision };
    if scale > 30 {
        return Err(MySqlError::with(ErrorCode::TooBigScale, &[&scale, &column, &30]));
    }
    if precision > 65 {
        return Err(MySqlError::with(ErrorCode::TooBigPrecision, &[&precision, &column, &65]));
    }
    if scale > precision {
        return Err(MySqlError::with(ErrorCode::MBiggerThanD, &[&column]));
    }
    Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8, flags })
}

fn int_size(size: ast::IntSize) -> IntSize {
    match size {
        ast::IntSize::Tiny => IntSize::Tiny,
        ast::IntSize::Small => IntSize::Small,
        ast::IntSize::Medium => IntSize::Medium,
        ast::IntSize::Int => IntSize::Int,
        ast::IntSize::Big => IntSize::Big,
    }
}

fn lob_size(size: ast::LobSize, length: Option<u32>) -> LobSize {
    match (size, length) {
        (ast::LobSize::Tiny, _) => LobSize::Tiny,
        (ast::LobSize::Normal, Some(0..=255)) => LobSize::Tiny,
        (ast::LobSize::Normal, Some(65_536..=16_777_215)) | (ast::LobSize::Medium, _) => LobSize::Medium,
        (ast::LobSize::Normal, Some(16_777_216..)) | (ast::LobSize::Long, _) => LobSize::Long,
        (ast::LobSize::Normal, _) => LobSize::Normal,
    }
}

fn member_names(members: &[Box<[u8]>], max: usize, column: &str) -> Result<Arc<[Box<str>]>> {
    if members.len() > max {
        return Err(MySqlError::with(ErrorCode::TooBigSet, &[&column]));
    }
    let text = |bytes: &[u8]| Box::from(String::from_utf8_lossy(bytes).trim_end_matches(' '));
    Ok(members.iter().map(|member| text(member)).collect())
}

/// How a column's bytes lie in a row. Large objects live in their row for now: each may take what the row has
/// left, and the data node refuses a row that is too long as a whole.
pub(super) fn storage_column(column: &ColumnMeta) -> ColumnDef {
    let (kind, storage) = column.ty.column_storage();
    ColumnDef {
        name: column.name.clone(),
        kind,
        storage,
        nullable: column.nullable,
        collation: column.ty.collation().id(),
        default: None,
        sql: Vec::new(),
    }
}
