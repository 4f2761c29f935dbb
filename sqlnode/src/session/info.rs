//! information_schema and the tables behind SHOW: facts about schemas as rows.
//!
//! Tables are made when a query asks for them, from the dictionary and from this node's own state. They are
//! read-only.

use super::SqlSession;
use crate::catalog::TableMeta;
use crate::exec::errors::to_mysql;
use crate::plan::VirtualTable;
use crate::value::{Charset, Collation, ErrorCode, MySqlError, Result, SqlType, Value};

/// The database of tables made up here.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

/// Whether a database is made up here.
pub(super) fn is_virtual(schema: &str) -> bool {
    schema.eq_ignore_ascii_case(INFORMATION_SCHEMA)
}

/// A table of text columns, except those whose names begin with `#`, which are numbers.
pub(super) fn made_up(name: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> VirtualTable {
    let column = |name: &&str| match name.strip_prefix('#') {
        Some(name) => (name.to_owned(), SqlType::BIGINT_UNSIGNED),
        None => ((*name).to_owned(), SqlType::varchar(512, Collation::UTF8MB3_GENERAL_CI.charset_default())),
    };
    VirtualTable {
        schema: INFORMATION_SCHEMA.to_owned(),
        name: name.to_owned(),
        columns: columns.iter().map(column).collect(),
        rows,
    }
}

trait CharsetDefault {
    fn charset_default(self) -> Collation;
}

impl CharsetDefault for Collation {
    /// Names compare without regard to case, in UTF-8.
    fn charset_default(self) -> Collation {
        Collation::UTF8MB4_GENERAL_CI
    }
}

pub(super) fn text(value: &str) -> Value {
    Value::text(value)
}

pub(super) fn number(value: u64) -> Value {
    Value::UInt(value)
}

impl SqlSession {
    /// The databases' names, the made-up one included.
    pub(super) async fn all_databases(&self) -> Result<Vec<String>> {
        let cluster = self.facts.node.cluster()?;
        let mut names = cluster.databases().await.map_err(|e| to_mysql(&e, ""))?;
        names.push(INFORMATION_SCHEMA.to_owned());
        names.sort();
        Ok(names)
    }

    /// The tables of a database with their meanings.
    pub(super) async fn all_tables(&self, schema: &str) -> Result<Vec<std::sync::Arc<TableMeta>>> {
        if is_virtual(schema) {
            return Ok(Vec::new());
        }
        let cluster = self.facts.node.cluster()?;
        let mut names = match cluster.tables(schema).await {
            Ok(names) => names,
            Err(e) if e.code() == signals::ErrorCode::NO_SUCH_DATABASE => {
                return Err(MySqlError::with(ErrorCode::BadDb, &[&schema]));
            }
            Err(e) => return Err(to_mysql(&e, schema)),
        };
        names.sort();
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            match self.facts.node.table(schema, &name).await {
                Ok(meta) => tables.push(meta),
                // Dropped since, or made by a program without SQL: nothing to show.
                Err(error) => tracing::debug!(%schema, %name, error = %error.message, "a table is left out"),
            }
        }
        Ok(tables)
    }

    /// A table of information_schema.
    pub(super) async fn information(&self, schema: &str, name: &str) -> Result<VirtualTable> {
        match name.to_ascii_lowercase().as_str() {
            "schemata" => self.schemata().await,
            "tables" => self.tables_table().await,
            "columns" => self.columns_table().await,
            "statistics" => self.statistics_table().await,
            "engines" => Ok(engines()),
            "character_sets" => Ok(character_sets()),
            "collations" => Ok(collations()),
            "processlist" => Ok(self.process_table(true)),
            "views"
            | "triggers"
            | "routines"
            | "events"
            | "referential_constraints"
            | "partitions"
            | "files" => Ok(made_up(name, &["TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME"], Vec::new())),
            _ => Err(MySqlError::with(ErrorCode::UnknownTable, &[&name, &schema])),
        }
    }

    async fn schemata(&self) -> Result<VirtualTable> {
        let row = |name: &String| {
            let default = Collation::UTF8MB4_0900_AI_CI;
            let charset = text(default.charset().name());
            vec![text("def"), text(name), charset, text(default.name()), Value::Null, text("NO")]
        };
        let rows = self.all_databases().await?.iter().map(row).collect();
        let columns = [
            "CATALOG_NAME",
            "SCHEMA_NAME",
            "DEFAULT_CHARACTER_SET_NAME",
            "DEFAULT_COLLATION_NAME",
            "SQL_PATH",
            "DEFAULT_ENCRYPTION",
        ];
        Ok(made_up("SCHEMATA", &columns, rows))
    }

    async fn every_table(&self) -> Result<Vec<std::sync::Arc<TableMeta>>> {
        let mut tables = Vec::new();
        for schema in self.all_databases().await? {
            tables.extend(self.all_tables(&schema).await.unwrap_or_default());
        }
        Ok(tables)
    }

    async fn tables_table(&self) -> Result<VirtualTable> {
        let row = |meta: &std::sync::Arc<TableMeta>| {
            vec![
                text("def"),
                text(&meta.schema),
                text(&meta.name),
                text("BASE TABLE"),
                text("ndbcluster"),
                number(10),
                text("Dynamic"),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                text(meta.collation.name()),
                text(""),
                text(&meta.comment),
            ]
        };
        let rows = self.every_table().await?.iter().map(row).collect();
        let columns = [
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "TABLE_TYPE",
            "ENGINE",
            "#VERSION",
            "ROW_FORMAT",
            "#TABLE_ROWS",
            "#DATA_LENGTH",
            "#INDEX_LENGTH",
            "#AUTO_INCREMENT",
            "TABLE_COLLATION",
            "CREATE_OPTIONS",
            "TABLE_COMMENT",
        ];
        Ok(made_up("TABLES", &columns, rows))
    }

    async fn columns_table(&self) -> Result<VirtualTable> {
        let mut rows = Vec::new();
        for meta in self.every_table().await? {
            for (at, column) in meta.visible() {
                let collation = column.ty.collation();
                let (charset, collation) = if column.ty.has_charset() {
                    (text(collation.charset().name()), text(collation.name()))
                } else {
                    (Value::Null, Value::Null)
                };
                let length = match &column.ty {
                    SqlType::Char { chars, .. } => number(u64::from(*chars)),
                    SqlType::VarChar { chars, .. } => number(u64::from(*chars)),
                    other if other.is_string() => number(other.storage_bytes_max()),
                    _ => Value::Null,
                };
                rows.push(vec![
                    text("def"),
                    text(&meta.schema),
                    text(&meta.name),
                    text(&column.name),
                    number(at as u64 + 1),
                    column.default_text().map_or(Value::Null, |d| text(&d)),
                    text(if column.nullable { "YES" } else { "NO" }),
                    text(&column.ty.data_type()),
                    length,
                    charset,
                    collation,
                    text(&column.ty.to_string()),
                    text(key_word(&meta, at)),
                    text(&column.extra()),
                    text("select,insert,update,references"),
                    text(&column.comment),
                ]);
            }
        }
        let columns = [
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "COLUMN_NAME",
            "#ORDINAL_POSITION",
            "COLUMN_DEFAULT",
            "IS_NULLABLE",
            "DATA_TYPE",
            "#CHARACTER_MAXIMUM_LENGTH",
            "CHARACTER_SET_NAME",
            "COLLATION_NAME",
            "COLUMN_TYPE",
            "COLUMN_KEY",
            "EXTRA",
            "PRIVILEGES",
            "COLUMN_COMMENT",
        ];
        Ok(made_up("COLUMNS", &columns, rows))
    }

    async fn statistics_table(&self) -> Result<VirtualTable> {
        let mut rows = Vec::new();
        for meta in self.every_table().await? {
            rows.extend(index_rows(&meta));
        }
        Ok(made_up("STATISTICS", INDEX_COLUMNS, rows))
    }

    /// The process list.
    pub(super) fn process_table(&self, full: bool) -> VirtualTable {
        let row = |p: crate::protocol::processes::ProcessRow| {
            let statement = p
                .statement
                .map_or(Value::Null, |s| text(&if full { s } else { s.chars().take(100).collect() }));
            vec![
                number(u64::from(p.id)),
                text(&p.user),
                text(&p.host),
                p.database.map_or(Value::Null, |d| text(&d)),
                text(p.command),
                number(p.seconds),
                text(""),
                statement,
            ]
        };
        let rows = self.facts.login.processes.rows().into_iter().map(row).collect();
        made_up("PROCESSLIST", &["#Id", "User", "Host", "db", "Command", "#Time", "State", "Info"], rows)
    }
}

/// PRI, MUL or nothing.
pub(super) fn key_word(meta: &TableMeta, column: usize) -> &'static str {
    if meta.is_key(column) {
        "PRI"
    } else if meta.keys.iter().any(|k| k.columns.first().is_some_and(|&c| usize::from(c) == column)) {
        "MUL"
    } else {
        ""
    }
}

/// The columns of SHOW INDEX.
pub(super) const INDEX_COLUMNS: &[&str] = &[
    "Table",
    "#Non_unique",
    "Key_name",
    "#Seq_in_index",
    "Column_name",
    "Collation",
    "#Cardinality",
    "#Sub_part",
    "Packed",
    "Null",
    "Index_type",
    "Comment",
    "Index_comment",
    "Visible",
    "Expression",
];

/// A table's keys as SHOW INDEX shows them.
pub(super) fn index_rows(meta: &TableMeta) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut add = |name: &str, columns: &[u16], unique: bool| {
        for (i, &column) in columns.iter().enumerate() {
            let column = &meta.columns[usize::from(column)];
            if column.hidden {
                continue;
            }
            rows.push(vec![
                text(&meta.name),
                number(u64::from(!unique)),
                text(name),
                number(i as u64 + 1),
                text(&column.name),
                if unique { Value::Null } else { text("A") },
                Value::Null,
                Value::Null,
                Value::Null,
                text(if column.nullable { "YES" } else { "" }),
                text(if unique { "HASH" } else { "BTREE" }),
                text(""),
                text(""),
                text("YES"),
                Value::Null,
            ]);
        }
    };
    add("PRIMARY", &meta.primary_key, true);
    meta.keys.iter().for_each(|key| add(&key.name, &key.columns, false));
    rows
}

/// SHOW ENGINES.
pub(super) fn engines() -> VirtualTable {
    let row = |name: &str, support: &str, comment: &str| {
        vec![text(name), text(support), text(comment), text("YES"), text("NO"), text("YES")]
    };
    let rows = vec![row("ndbcluster", "DEFAULT", "Clustered, fault-tolerant, in-memory tables")];
    made_up("ENGINES", &["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"], rows)
}

/// SHOW CHARACTER SET.
pub(super) fn character_sets() -> VirtualTable {
    let row = |c: &Charset| {
        let length = number(c.bytes_per_char_max() as u64);
        vec![text(c.name()), text(c.description()), text(c.default_collation().name()), length]
    };
    let rows = Charset::ALL.iter().map(row).collect();
    made_up("CHARACTER_SETS", &["Charset", "Description", "Default collation", "#Maxlen"], rows)
}

/// SHOW COLLATION.
pub(super) fn collations() -> VirtualTable {
    let row = |c: Collation| {
        let pad = match c.pad() {
            crate::value::collation::PadAttribute::NoPad => "NO PAD",
            crate::value::collation::PadAttribute::PadSpace => "PAD SPACE",
        };
        let default = if c.is_default() { "Yes" } else { "" };
        let id = number(u64::from(c.id()));
        vec![text(c.name()), text(c.charset().name()), id, text(default), text("Yes"), number(1), text(pad)]
    };
    let rows = Collation::all().map(row).collect();
    let columns = ["Collation", "Charset", "#Id", "Default", "Compiled", "#Sortlen", "Pad_attribute"];
    made_up("COLLATIONS", &columns, rows)
}
