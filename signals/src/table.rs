//! Table metadata: what dict stores, LDMs lay rows out by, and clients build keys and values with.
//!
//! The kernel cares about storage alone ([`ColumnStorage`], nullability, collation, key membership). What
//! SQL adds (its type names, defaults, comments) travels along in [`ColumnDef::sql`] and [`TableDef::sql`]
//! as bytes the SQL node wrote and nobody else reads.

use crate::ids::{SchemaVersion, TableId};
use crate::partition::PartitionBalance;
use bincode::{Decode, Encode};

/// Longest in-memory row in bytes, NDB's limit: the bytes of all its values together. A definition may name
/// variable columns that add up to more; each row is then checked when it is written (error 738).
pub const MAX_ROW_BYTES: usize = 30_000;
/// Longest key in bytes as a client sends it, NDB's API limit (error 4207).
pub const MAX_KEY_BYTES: usize = 4_092;
/// Most columns of a table.
pub const MAX_COLUMNS: usize = 512;
/// Most table-like objects of a cluster, NDB's limit.
pub const MAX_TABLES: usize = 20_320;
/// Longest name of a database, table or column in bytes (64 characters of up to 3 bytes, NDB's limit).
pub const MAX_NAME_BYTES: usize = 192;
/// Most columns of a primary key.
pub const MAX_KEY_COLUMNS: usize = 32;

/// How a column's bytes are kept in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ColumnStorage {
    /// Always `size` bytes, in the row's fixed part.
    Fixed {
        /// Bytes per value.
        size: u16,
    },
    /// Up to `max_len` bytes, in the row's variable part.
    Var {
        /// Most bytes of a value.
        max_len: u16,
    },
}

/// What a column's bytes mean; enough for ordering and for the native API. SQL's finer types are in
/// [`ColumnDef::sql`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ColumnType {
    /// Two's complement little-endian integer of the storage size.
    Signed,
    /// Little-endian integer of the storage size.
    Unsigned,
    /// IEEE 754 little-endian, 4 or 8 bytes.
    Float,
    /// Bytes that order by memcmp (binary strings, decimals in their sortable form).
    Binary,
    /// Characters in the column's collation.
    Char,
}

/// One column.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ColumnDef {
    /// Name, unique in the table without regard to ASCII case.
    pub name: String,
    /// What the bytes mean.
    pub kind: ColumnType,
    /// How they are kept.
    pub storage: ColumnStorage,
    /// Whether NULL is allowed. Never true for a key column.
    pub nullable: bool,
    /// MySQL's collation id; 63 (binary) for everything but [`ColumnType::Char`].
    pub collation: u16,
    /// Storage bytes a row gets when a write names no value; `None` means NULL, or error 839 if not nullable.
    pub default: Option<Vec<u8>>,
    /// The SQL node's own description of the column.
    pub sql: Vec<u8>,
}

/// One table.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct TableDef {
    /// Assigned by the master's dict; 0 in a create request.
    pub id: TableId,
    /// Assigned by the master's dict; 0 in a create request.
    pub version: SchemaVersion,
    /// Database.
    pub database: String,
    /// Name within the database.
    pub name: String,
    /// Columns in definition order; a column's id is its index here.
    pub columns: Vec<ColumnDef>,
    /// Primary key: column ids in key order, at least one.
    pub primary_key: Vec<u16>,
    /// Distribution key: column ids, a subset of the primary key in primary key order; equal to it by
    /// default.
    pub distribution_key: Vec<u16>,
    /// How many partitions, as a rule over nodes and LDMs.
    pub partition_balance: PartitionBalance,
    /// Replicated but not logged: exists and is empty after a cluster restart.
    pub nologging: bool,
    /// Committed reads may use any replica.
    pub read_backup: bool,
    /// A copy of every partition in every node group.
    pub fully_replicated: bool,
    /// The SQL node's own description of the table.
    pub sql: Vec<u8>,
}

impl TableDef {
    /// `database/name`, for messages.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.database, self.name)
    }

    /// The id of the column called `name`, without regard to ASCII case.
    #[must_use]
    pub fn column_id(&self, name: &str) -> Option<u16> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)).map(|i| i as u16)
    }

    /// Checks everything the kernel relies on. The text names the offending part.
    ///
    /// # Errors
    /// NDB's code (738, 739, 740, 708, 4000-range) and what is wrong.
    pub fn validate(&self) -> Result<(), (crate::ErrorCode, String)> {
        use crate::ErrorCode as E;
        let name_ok = |n: &str| !n.is_empty() && n.len() <= MAX_NAME_BYTES && !n.contains(['\0', '/']);
        if !name_ok(&self.database) || !name_ok(&self.name) {
            return Err((E::INVALID_TABLE_DEFINITION, format!("bad table name {:?}", self.full_name())));
        }
        if self.columns.is_empty() || self.columns.len() > MAX_COLUMNS {
            let n = self.columns.len();
            return Err((E::NO_MORE_ATTRIBUTES, format!("{n} columns; 1 to {MAX_COLUMNS} are allowed")));
        }
        for (i, column) in self.columns.iter().enumerate() {
            if !name_ok(&column.name) {
                return Err((E::INVALID_TABLE_DEFINITION, format!("bad column name {:?}", column.name)));
            }
            if self.columns[..i].iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
                return Err((E::INVALID_TABLE_DEFINITION, format!("column {:?} stands twice", column.name)));
            }
            column.validate()?;
        }
        self.validate_keys()?;
        let row = self.row_bytes_min();
        if row > MAX_ROW_BYTES {
            return Err((
                E::RECORD_TOO_BIG,
                format!("rows of at least {row} bytes; {MAX_ROW_BYTES} are allowed"),
            ));
        }
        Ok(())
    }

    /// The bytes of a row whose variable columns are all empty.
    fn row_bytes_min(&self) -> usize {
        let fixed = |c: &ColumnDef| match c.storage {
            ColumnStorage::Fixed { size } => size as usize,
            ColumnStorage::Var { .. } => 0,
        };
        self.columns.iter().map(fixed).sum()
    }

    fn validate_keys(&self) -> Result<(), (crate::ErrorCode, String)> {
        use crate::ErrorCode as E;
        let pk = &self.primary_key;
        if pk.is_empty() || pk.len() > MAX_KEY_COLUMNS {
            return Err((
                E::BAD_PRIMARY_KEY,
                format!("{} primary key columns; 1 to {MAX_KEY_COLUMNS}", pk.len()),
            ));
        }
        for (i, id) in pk.iter().enumerate() {
            let Some(column) = self.columns.get(*id as usize) else {
                return Err((
                    E::BAD_PRIMARY_KEY,
                    format!("primary key names column {id}, which does not exist"),
                ));
            };
            if pk[..i].contains(id) {
                return Err((
                    E::BAD_PRIMARY_KEY,
                    format!("column {:?} stands twice in the key", column.name),
                ));
            }
            if column.nullable {
                return Err((
                    E::NULLABLE_PRIMARY_KEY,
                    format!("primary key column {:?} is nullable", column.name),
                ));
            }
        }
        let key: usize = pk.iter().map(|c| self.columns[*c as usize].storage.max_bytes() + 2).sum();
        if key > MAX_KEY_BYTES {
            return Err((E::KEY_TOO_LONG, format!("keys of up to {key} bytes; {MAX_KEY_BYTES} are allowed")));
        }
        let in_key_order: Vec<u16> =
            pk.iter().copied().filter(|c| self.distribution_key.contains(c)).collect();
        if self.distribution_key.is_empty() || in_key_order != self.distribution_key {
            let text = "the distribution key must be columns of the primary key, in its order".into();
            return Err((E::BAD_PRIMARY_KEY, text));
        }
        Ok(())
    }
}

impl ColumnDef {
    fn validate(&self) -> Result<(), (crate::ErrorCode, String)> {
        use crate::ErrorCode as E;
        let size = self.storage.max_bytes();
        let fixed = matches!(self.storage, ColumnStorage::Fixed { .. });
        let fits = match self.kind {
            ColumnType::Signed | ColumnType::Unsigned => fixed && matches!(size, 1 | 2 | 3 | 4 | 8),
            ColumnType::Float => fixed && matches!(size, 4 | 8),
            ColumnType::Binary | ColumnType::Char => size <= MAX_ROW_BYTES && (size > 0 || !fixed),
        };
        if !fits {
            let text =
                format!("column {:?}: {:?} cannot be kept as {:?}", self.name, self.kind, self.storage);
            return Err((E::INVALID_TABLE_DEFINITION, text));
        }
        if let Some(default) = &self.default
            && !self.storage.accepts(default.len())
        {
            let text = format!("column {:?}: default of {} bytes does not fit", self.name, default.len());
            return Err((E::INVALID_TABLE_DEFINITION, text));
        }
        Ok(())
    }
}

impl ColumnStorage {
    /// Most bytes a value takes.
    #[must_use]
    pub fn max_bytes(self) -> usize {
        match self {
            Self::Fixed { size } => size as usize,
            Self::Var { max_len } => max_len as usize,
        }
    }
    /// Whether a value of `len` bytes can be kept.
    #[must_use]
    pub fn accepts(self, len: usize) -> bool {
        match self {
            Self::Fixed { size } => len == size as usize,
            Self::Var { max_len } => len <= max_len as usize,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ErrorCode;

    pub(crate) fn column(name: &str, size: u16) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            kind: ColumnType::Unsigned,
            storage: ColumnStorage::Fixed { size },
            nullable: false,
            collation: 63,
            default: None,
            sql: vec![],
        }
    }

    pub(crate) fn table() -> TableDef {
        let mut text = column("c", 1);
        text.kind = ColumnType::Char;
        text.storage = ColumnStorage::Var { max_len: 100 };
        TableDef {
            id: TableId(0),
            version: SchemaVersion(0),
            database: "test".into(),
            name: "t".into(),
            columns: vec![column("a", 4), column("b", 8), text],
            primary_key: vec![2, 0],
            distribution_key: vec![0],
            partition_balance: PartitionBalance::ForRpByLdm,
            nologging: false,
            read_backup: true,
            fully_replicated: false,
            sql: vec![],
        }
    }

    #[test]
    fn faulty_definitions_are_named() {
        assert_eq!(table().validate(), Ok(()));
        let check = |change: &dyn Fn(&mut TableDef), code: ErrorCode, word: &str| {
            let mut t = table();
            change(&mut t);
            let (got, text) = t.validate().unwrap_err();
            assert_eq!(got, code, "{text}");
            assert!(text.contains(word), "{text}");
        };
        check(&|t| t.columns[0].nullable = true, ErrorCode::NULLABLE_PRIMARY_KEY, "\"a\"");
        check(&|t| t.primary_key = vec![9], ErrorCode::BAD_PRIMARY_KEY, "column 9");
        check(&|t| t.primary_key = vec![0, 0], ErrorCode::BAD_PRIMARY_KEY, "twice");
        check(&|t| t.distribution_key = vec![1], ErrorCode::BAD_PRIMARY_KEY, "distribution");
        check(&|t| t.columns[1].name = "A".into(), ErrorCode::INVALID_TABLE_DEFINITION, "twice");
        check(
            &|t| t.columns[1].storage = ColumnStorage::Fixed { size: 5 },
            ErrorCode::INVALID_TABLE_DEFINITION,
            "\"b\"",
        );
        check(
            &|t| t.columns[2].storage = ColumnStorage::Var { max_len: 30_000 },
            ErrorCode::KEY_TOO_LONG,
            "4092",
        );
        check(
            &|t| {
                t.columns.push(column("d", 1));
                t.columns[3].kind = ColumnType::Binary;
                t.columns[3].storage = ColumnStorage::Fixed { size: 29_989 };
            },
            ErrorCode::RECORD_TOO_BIG,
            "30001",
        );
        check(&|t| t.columns.clear(), ErrorCode::NO_MORE_ATTRIBUTES, "0 columns");
        check(&|t| t.name = "a/b".into(), ErrorCode::INVALID_TABLE_DEFINITION, "name");
    }

    #[test]
    fn variable_columns_may_add_up_to_more_than_a_row() {
        let mut t = table();
        for name in ["d", "e", "f"] {
            let mut long = column(name, 1);
            long.kind = ColumnType::Binary;
            long.storage = ColumnStorage::Var { max_len: MAX_ROW_BYTES as u16 };
            t.columns.push(long);
        }
        assert_eq!(t.validate(), Ok(()));
    }
}
