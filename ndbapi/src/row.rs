//! Row: the columns a read or scan asked for, viewed in the bytes the data node sent.
//!
//! Columns stand in the asked order. Looking one up walks the row; who wants all of them walks once with
//! [`Row::entries`].

use crate::NdbError;
use crate::table::{Column, Table};
use signals::ErrorCode;
use signals::attr::AttrReader;
use signals::table::ColumnType;

/// One row. The bytes were checked against the table when they came in.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a Table,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// A view of checked AttrInfo.
    #[inline]
    pub(crate) fn new(table: &'a Table, bytes: &'a [u8]) -> Self {
        Self { table, bytes }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// The AttrInfo as it came.
    #[must_use]
    pub fn attr_info(&self) -> &'a [u8] {
        self.bytes
    }

    /// Column number and storage bytes (`None` for NULL) of every column, in the asked order.
    pub fn entries(&self) -> impl Iterator<Item = (u16, Option<&'a [u8]>)> + use<'a> {
        AttrReader::new(self.bytes).map_while(Result::ok)
    }

    /// A column's storage bytes, `None` for NULL.
    ///
    /// # Errors
    /// 4004: the table has no such column, or the read did not ask for it.
    #[inline]
    pub fn get_bytes(&self, column: impl Column) -> Result<Option<&'a [u8]>, NdbError> {
        let id = column.resolve(self.table)?;
        match self.entries().find(|e| e.0 == id) {
            Some((_, value)) => Ok(value),
            None => Err(NdbError::with(ErrorCode::UNKNOWN_COLUMN, format!("column {id} was not asked for"))),
        }
    }

    /// Whether a column is NULL.
    ///
    /// # Errors
    /// As [`Self::get_bytes`].
    pub fn is_null(&self, column: impl Column) -> Result<bool, NdbError> {
        Ok(self.get_bytes(column)?.is_none())
    }

    /// An unsigned integer of any width.
    ///
    /// # Errors
    /// As [`Self::get_bytes`]; 4118 if the column is no unsigned integer.
    #[inline]
    pub fn get_u64(&self, column: impl Column) -> Result<Option<u64>, NdbError> {
        let id = column.resolve(self.table)?;
        self.expect_kind(id, ColumnType::Unsigned)?;
        Ok(self.get_bytes(id)?.map(|b| widen(b, 0)))
    }

    /// An unsigned integer that fits 32 bits.
    ///
    /// # Errors
    /// As [`Self::get_u64`]; 4118 if the value is larger.
    #[inline]
    pub fn get_u32(&self, column: impl Column) -> Result<Option<u32>, NdbError> {
        self.get_u64(column)?.map(|v| u32::try_from(v).map_err(|_| too_large())).transpose()
    }

    /// A signed integer of any width.
    ///
    /// # Errors
    /// As [`Self::get_bytes`]; 4118 if the column is no signed integer.
    pub fn get_i64(&self, column: impl Column) -> Result<Option<i64>, NdbError> {
        let id = column.resolve(self.table)?;
        self.expect_kind(id, ColumnType::Signed)?;
        Ok(self.get_bytes(id)?.map(|b| {
            let negative = b.last().is_some_and(|top| top & 0x80 != 0);
            widen(b, if negative { 0xff } else { 0 }) as i64
        }))
    }

    /// A signed integer that fits 32 bits.
    ///
    /// # Errors
    /// As [`Self::get_i64`]; 4118 if the value is larger.
    pub fn get_i32(&self, column: impl Column) -> Result<Option<i32>, NdbError> {
        self.get_i64(column)?.map(|v| i32::try_from(v).map_err(|_| too_large())).transpose()
    }

    /// A float of either width.
    ///
    /// # Errors
    /// As [`Self::get_bytes`]; 4118 if the column is no float.
    pub fn get_f64(&self, column: impl Column) -> Result<Option<f64>, NdbError> {
        let id = column.resolve(self.table)?;
        self.expect_kind(id, ColumnType::Float)?;
        Ok(self.get_bytes(id)?.map(|b| match b.first_chunk::<8>() {
            Some(bytes) => f64::from_le_bytes(*bytes),
            None => f64::from(f32::from_le_bytes(b.first_chunk::<4>().copied().unwrap_or_default())),
        }))
    }

    /// A character or binary column as UTF-8; fixed character columns without the spaces they are filled
    /// with.
    ///
    /// # Errors
    /// As [`Self::get_bytes`]; 4118 if the column is a number or the bytes are no UTF-8.
    pub fn get_str(&self, column: impl Column) -> Result<Option<&'a str>, NdbError> {
        let id = column.resolve(self.table)?;
        let def = &self.table.columns()[id as usize];
        if !matches!(def.kind, ColumnType::Char | ColumnType::Binary) {
            return Err(self.wrong_kind(id));
        }
        let fixed = matches!(def.storage, signals::table::ColumnStorage::Fixed { .. });
        self.get_bytes(id)?
            .map(|b| match std::str::from_utf8(b) {
                Ok(text) if fixed && def.kind == ColumnType::Char => Ok(text.trim_end_matches(' ')),
                Ok(text) => Ok(text),
                Err(_) => Err(NdbError::with(ErrorCode::PARAMETER_ERROR, "the column's bytes are no UTF-8")),
            })
            .transpose()
    }

    #[inline]
    fn expect_kind(&self, column: u16, kind: ColumnType) -> Result<(), NdbError> {
        if self.table.columns()[column as usize].kind == kind { Ok(()) } else { Err(self.wrong_kind(column)) }
    }

    #[cold]
    fn wrong_kind(&self, column: u16) -> NdbError {
        let def = &self.table.columns()[column as usize];
        NdbError::with(ErrorCode::PARAMETER_ERROR, format!("column {:?} is {:?}", def.name, def.kind))
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = self.entries().map(|(id, value)| {
            (self.table.columns().get(id as usize).map_or("?", |c| c.name.as_str()), value)
        });
        f.debug_map().entries(named).finish()
    }
}

#[inline]
fn widen(bytes: &[u8], fill: u8) -> u64 {
    let mut wide = [fill; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(wide)
}

#[cold]
fn too_large() -> NdbError {
    NdbError::with(ErrorCode::PARAMETER_ERROR, "the value does not fit 32 bits")
}

/// Whether AttrInfo from a data node is what `projection` asks of `table`: the asked columns in the asked
/// order, each of a length the column can have.
#[inline]
pub(crate) fn fits(table: &Table, projection: &[u8], attr_info: &[u8]) -> bool {
    let mut asked = projection.as_chunks::<2>().0.iter();
    for entry in AttrReader::new(attr_info) {
        let Ok((id, value)) = entry else { return false };
        if asked.next() != Some(&id.to_le_bytes()) {
            return false;
        }
        let Some(column) = table.columns().get(id as usize) else { return false };
        let fits = match value {
            Some(bytes) => column.storage.accepts(bytes.len()),
            None => column.nullable,
        };
        if !fits {
            return false;
        }
    }
    asked.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{column, table_on};
    use signals::NodeId;
    use signals::attr;
    use signals::table::ColumnStorage;

    fn table() -> Table {
        let mut info = table_on(&[vec![NodeId(1)]], 1);
        info.def.columns.push(column("n", ColumnType::Signed, ColumnStorage::Fixed { size: 3 }));
        info.def.columns.push(column("f", ColumnType::Float, ColumnStorage::Fixed { size: 4 }));
        info.def.columns.push(column("c", ColumnType::Char, ColumnStorage::Fixed { size: 4 }));
        Table::new(info).unwrap()
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        attr::push(&mut bytes, 0, Some(&7u32.to_le_bytes()));
        attr::push(&mut bytes, 1, Some(&(1u64 << 40).to_le_bytes()));
        attr::push(&mut bytes, 2, None);
        attr::push(&mut bytes, 3, Some(&[0xfe, 0xff, 0xff]));
        attr::push(&mut bytes, 4, Some(&0.5f32.to_le_bytes()));
        attr::push(&mut bytes, 5, Some(b"ab  "));
        bytes
    }

    #[test]
    fn typed_columns_come_out() {
        let (table, bytes) = (table(), bytes());
        let row = Row::new(&table, &bytes);
        assert_eq!(row.get_u32("id"), Ok(Some(7)));
        assert_eq!(row.get_u64(1u16), Ok(Some(1 << 40)));
        assert_eq!(row.get_u32("v").unwrap_err().code(), ErrorCode::PARAMETER_ERROR);
        assert_eq!((row.is_null("s"), row.get_str("s")), (Ok(true), Ok(None)));
        assert_eq!(row.get_i32("n"), Ok(Some(-2)));
        assert_eq!(row.get_f64("f"), Ok(Some(0.5)));
        assert_eq!(row.get_str("c"), Ok(Some("ab")));
        assert_eq!(row.get_u64("n").unwrap_err().code(), ErrorCode::PARAMETER_ERROR);
        assert_eq!(Row::new(&table, &[]).get_u64("id").unwrap_err().code(), ErrorCode::UNKNOWN_COLUMN);
    }

    #[test]
    fn rows_that_were_not_asked_for_are_noticed() {
        let (table, bytes) = (table(), bytes());
        let all = table.all_columns().to_vec();
        assert!(fits(&table, &all, &bytes));
        assert!(!fits(&table, &all[..10], &bytes), "a column too many");
        assert!(!fits(&table, &all, &bytes[..8]), "columns missing");
        let mut wrong = Vec::new();
        attr::push(&mut wrong, 0, Some(&[1, 2, 3]));
        assert!(!fits(&table, &[0, 0], &wrong), "a wrong length");
        let mut null = Vec::new();
        attr::push(&mut null, 0, None);
        assert!(!fits(&table, &[0, 0], &null), "NULL in a NOT NULL column");
    }
}
