//! Rows between storage and SQL: bytes to values and values to bytes, by the table's columns.

use signals::table::MAX_ROW_BYTES;

use super::errors::row_too_big;
use super::store::{StoredKey, StoredRow};
use crate::catalog::TableMeta;
use crate::expr::SessionFacts;
use crate::session::Facts;
use crate::value::storage::{StoreContext, load, store};
use crate::value::{MySqlError, Result, SqlType, Value, Warnings};

/// Puts the stored `columns` into their places of a row as wide as the table.
///
/// # Errors
/// The bytes are damaged.
pub fn decode(meta: &TableMeta, columns: &[u16], stored: &StoredRow, facts: &Facts) -> Result<Vec<Value>> {
    let mut row = vec![Value::Null; meta.columns.len()];
    for (&column, bytes) in columns.iter().zip(stored) {
        if let Some(bytes) = bytes {
            let at = usize::from(column);
            row[at] = load(bytes, &meta.columns[at].ty, facts.time_zone())?;
        }
    }
    Ok(row)
}

/// Turns values into stored bytes for one table.
pub struct Encoder<'a> {
    /// The table.
    pub meta: &'a TableMeta,
    /// The session.
    pub facts: &'a Facts,
    /// The row of the statement, from 1.
    pub row: u64,
    /// IGNORE: bad values are adjusted with a warning.
    pub lenient: bool,
}

impl Encoder<'_> {
    /// The bytes of a value in a column.
    ///
    /// # Errors
    /// The value does not fit, or is NULL where NULL is not allowed.
    pub fn column(&self, at: usize, value: &Value, warnings: &mut Warnings) -> Result<Option<Vec<u8>>> {
        let column = &self.meta.columns[at];
        if value.is_null() && !column.nullable {
            let error = MySqlError::bad_null(&column.name);
            if !self.lenient {
                return Err(error);
            }
            warnings.warn(error);
            return self.column(at, &implicit_default(&column.ty), warnings);
        }
        let mut mode = self.facts.sql_mode();
        if self.lenient {
            use crate::value::SqlMode;
            mode = mode.without(SqlMode::STRICT_TRANS_TABLES).without(SqlMode::STRICT_ALL_TABLES);
        }
        let context =
            StoreContext { mode, zone: self.facts.time_zone(), column: &column.name, row: self.row };
        let on_today = self.on_today(value, &column.ty);
        let bytes = store(on_today.as_ref().unwrap_or(value), &column.ty, &context, warnings)?;
        match &bytes {
            Some(bytes) if bytes.len() > MAX_ROW_BYTES => Err(row_too_big()),
            _ => Ok(bytes),
        }
    }
}

impl Encoder<'_> {
    /// A time for a column of dates is a time of the current day.
    fn on_today(&self, value: &Value, ty: &SqlType) -> Option<Value> {
        use crate::value::{DateTime, temporal::MICROS_PER_DAY};
        match (value, ty) {
            (Value::Time(time), SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. }) => {
                let day = i64::from(self.facts.today().day_number()?);
                let micros = day * MICROS_PER_DAY + time.micros();
                DateTime::from_linear_micros(micros, time.fsp()).map(Value::DateTime)
            }
            _ => None,
        }
    }
}

/// The value a NOT NULL column takes when nothing better is known.
pub fn implicit_default(ty: &SqlType) -> Value {
    use crate::value::{Date, DateTime, Time};
    match ty {
        SqlType::Date => Value::Date(Date::ZERO),
        SqlType::DateTime { .. } | SqlType::Timestamp { .. } => Value::DateTime(DateTime::ZERO),
        SqlType::Time { .. } => Value::Time(Time::from_micros_clamped(0, 0)),
        SqlType::Enum { .. } => Value::Int(1),
        ty if ty.is_numeric() => Value::Int(0),
        _ => Value::text(""),
    }
}

/// The key of a stored row whose columns are all there.
///
/// # Errors
/// The row has no value in a key column.
pub fn key_of(meta: &TableMeta, stored: &StoredRow) -> Result<StoredKey> {
    let part = |&column: &u16| stored.get(usize::from(column)).cloned().flatten();
    let key: Option<StoredKey> = meta.primary_key.iter().map(part).collect();
    key.ok_or_else(|| MySqlError::internal("a row came without its key"))
}
