//! SHOW CREATE TABLE: a table's meaning as a statement that makes it again.

use std::fmt::Write;

use super::{ColumnDefault, ColumnMeta, TableMeta};
use crate::parser::{quote_name, quote_text};
use crate::value::{Collation, Value, cast};

impl TableMeta {
    /// The CREATE TABLE statement in MySQL's layout.
    pub fn show_create(&self) -> String {
        let mut out = format!("CREATE TABLE {} (\n", quoted(&self.name));
        let mut lines: Vec<String> = self.visible().map(|(_, c)| self.show_column(c)).collect();
        let names = |ids: &[u16]| {
            let list: Vec<String> = ids.iter().map(|&i| quoted(&self.columns[usize::from(i)].name)).collect();
            list.join(",")
        };
        if !self.columns.iter().any(|c| c.hidden) {
            lines.push(format!("  PRIMARY KEY ({})", names(&self.primary_key)));
        }
        for key in &self.keys {
            lines.push(format!("  KEY {} ({})", quoted(&key.name), names(&key.columns)));
        }
        out.push_str(&lines.join(",\n"));
        let charset = self.collation.charset().name();
        let _ =
            write!(out, "\n) ENGINE=ndbcluster DEFAULT CHARSET={charset} COLLATE={}", self.collation.name());
        if !self.comment.is_empty() {
            let _ = write!(out, " COMMENT={}", text(&self.comment));
        }
        out
    }

    fn show_column(&self, column: &ColumnMeta) -> String {
        let mut out = format!("  {} {}", quoted(&column.name), column.ty);
        if column.ty.has_charset() && column.ty.collation() != self.collation {
            let collation = column.ty.collation();
            let _ = write!(out, " CHARACTER SET {} COLLATE {}", collation.charset().name(), collation.name());
        }
        if !column.nullable {
            out.push_str(" NOT NULL");
        }
        match &column.default {
            ColumnDefault::None if column.nullable && !column.ty.is_lob() => out.push_str(" DEFAULT NULL"),
            ColumnDefault::None => {}
            ColumnDefault::Now { fsp: 0 } => out.push_str(" DEFAULT CURRENT_TIMESTAMP"),
            ColumnDefault::Now { fsp } => {
                let _ = write!(out, " DEFAULT CURRENT_TIMESTAMP({fsp})");
            }
            ColumnDefault::Value(value) => {
                let _ = write!(out, " DEFAULT {}", text(&value_text(value)));
            }
        }
        if column.on_update_now {
            out.push_str(" ON UPDATE CURRENT_TIMESTAMP");
        }
        if column.auto_increment {
            out.push_str(" AUTO_INCREMENT");
        }
        if !column.comment.is_empty() {
            let _ = write!(out, " COMMENT {}", text(&column.comment));
        }
        out
    }
}

impl ColumnMeta {
    /// The default as SHOW COLUMNS prints it.
    pub fn default_text(&self) -> Option<String> {
        match &self.default {
            ColumnDefault::None => None,
            ColumnDefault::Value(value) => Some(value_text(value)),
            ColumnDefault::Now { fsp: 0 } => Some("CURRENT_TIMESTAMP".to_owned()),
            ColumnDefault::Now { fsp } => Some(format!("CURRENT_TIMESTAMP({fsp})")),
        }
    }

    /// The Extra column of SHOW COLUMNS.
    pub fn extra(&self) -> String {
        let mut words = Vec::new();
        if self.auto_increment {
            words.push("auto_increment");
        }
        if matches!(self.default, ColumnDefault::Now { .. }) {
            words.push("DEFAULT_GENERATED");
        }
        if self.on_update_now {
            words.push("on update CURRENT_TIMESTAMP");
        }
        words.join(" ")
    }
}

fn value_text(value: &Value) -> String {
    cast::to_text(value, Collation::UTF8MB4_BIN).to_str_lossy().into_owned()
}

fn quoted(name: &str) -> String {
    quote_name(name).to_string()
}

fn text(value: &str) -> String {
    quote_text(value.as_bytes()).to_string()
}
