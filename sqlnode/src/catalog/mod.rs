//! Catalogue: what a table means to SQL, built from its CREATE TABLE statement.
//!
//! The cluster's dictionary keeps for each table how its bytes lie ([`TableDef`]) and, as the SQL node's
//! own description, the text of the CREATE TABLE statement. That text is the single source:
//! [`TableMeta::build`] turns a parsed statement into columns, defaults and keys, once when the table is
//! created and again whenever any SQL node loads it, so all of them see the same table without a format of
//! their own.
//!
//! It checks definitions (types, sizes, defaults, keys) and refuses what would not be enforced. It never
//! talks to the cluster and never evaluates more than constants.

mod build;
mod print;
pub mod types;

pub use build::{check_name, constant, literal};

use std::sync::Arc;

use ndbapi::TableHandle;
use signals::table::TableDef;

use crate::parser::ast::{CreateTable, Stmt};
use crate::parser::{ParseMode, parse};
use crate::value::{Collation, MySqlError, Result, SqlType, Value};

/// The name of the column that is the key of a table without PRIMARY KEY.
pub const HIDDEN_KEY: &str = "$PK";

/// What a column gets when a statement names no value.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnDefault {
    /// Nothing: NULL if allowed, else error 1364.
    None,
    /// A constant.
    Value(Value),
    /// The time of the statement.
    Now {
        /// Digits of the fraction.
        fsp: u8,
    },
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnMeta {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Its default.
    pub default: ColumnDefault,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// The hidden key's column.
    pub hidden: bool,
    /// COMMENT.
    pub comment: String,
}

/// A key that is not the primary one.
#[derive(Debug, Clone)]
pub struct KeyMeta {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<u16>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableMeta {
    /// Its database.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, the hidden one last.
    pub columns: Vec<ColumnMeta>,
    /// The primary key's columns in key order.
    pub primary_key: Vec<u16>,
    /// Other keys.
    pub keys: Vec<KeyMeta>,
    /// The table's collation.
    pub collation: Collation,
    /// COMMENT.
    pub comment: String,
    /// AUTO_INCREMENT of the statement.
    pub first_auto_increment: u64,
    /// The NOLOGGING and READ_BACKUP options of NDB.
    pub ndb: crate::parser::NdbTableOptions,
    /// The dictionary's side of it; absent until the table exists.
    pub handle: Option<TableHandle>,
}

impl TableMeta {
    /// What a table in the dictionary means.
    ///
    /// # Errors
    /// The description is damaged or of a newer release.
    pub fn load(def: &TableDef, handle: Option<TableHandle>) -> Result<Arc<TableMeta>> {
        let damaged =
            || MySqlError::internal(format_args!("table {} has no SQL description", def.full_name()));
        let parsed = parse(&def.sql, ParseMode::default()).map_err(|_| damaged())?;
        let Stmt::CreateTable(create) = parsed.stmt else { return Err(damaged()) };
        let mut ignored = crate::value::Warnings::new();
        let mut meta = TableMeta::build(&create, &def.database, &mut ignored)?;
        if meta.columns.len() != def.columns.len() {
            return Err(damaged());
        }
        meta.name.clone_from(&def.name);
        meta.handle = handle;
        Ok(Arc::new(meta))
    }

    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<u16> {
        let found = self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name) && !c.hidden);
        found.and_then(|i| u16::try_from(i).ok())
    }

    /// The columns a client sees.
    pub fn visible(&self) -> impl Iterator<Item = (usize, &ColumnMeta)> {
        self.columns.iter().enumerate().filter(|(_, c)| !c.hidden)
    }

    /// The column that counts by itself: AUTO_INCREMENT or the hidden key.
    pub fn counting_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment || c.hidden)
    }

    /// Whether a column is part of the primary key.
    pub fn is_key(&self, column: usize) -> bool {
        self.primary_key.iter().any(|&k| usize::from(k) == column)
    }

    /// The dictionary's definition of a new table.
    pub fn definition(&self, create: &CreateTable) -> TableDef {
        let columns = self.columns.iter().map(types::storage_column).collect();
        TableDef {
            id: signals::TableId(0),
            version: signals::ids::SchemaVersion(0),
            database: self.schema.clone(),
            name: self.name.clone(),
            columns,
            primary_key: self.primary_key.clone(),
            distribution_key: self.primary_key.clone(),
            partition_balance: signals::partition::PartitionBalance::default(),
            nologging: self.ndb.nologging.unwrap_or(false),
            read_backup: self.ndb.read_backup.unwrap_or(true),
            fully_replicated: false,
            sql: Stmt::CreateTable(Box::new(create.clone())).to_string().into_bytes(),
        }
    }
}
