//! Schema changes to text.

use std::fmt::{self, Display, Formatter};

use super::{Id, Text, flag, list, names, write_text};
use crate::parser::ast::{
    AlterSpec, AlterTable, CheckDef, ColumnDef, ColumnDefault, ColumnFormat, ColumnPosition, CreateDatabase,
    CreateIndex, CreateTable, CreateView, DatabaseOption, DuplicateRows, ForeignKey, Generated, IndexType,
    IntSize, KeyDef, KeyKind, KeyOptions, KeyPart, LobSize, PartitionBy, PartitionDef, PartitionMethod,
    PartitionValues, RefAction, Reference, Storage, TableOption, TypeKind, TypeName,
};

impl Display for CreateDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE DATABASE ")?;
        f.write_str(if self.if_not_exists { "IF NOT EXISTS " } else { "" })?;
        write!(f, "{}", Id(&self.name))?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

impl Display for DatabaseOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseOption::Charset(name) => write!(f, "CHARACTER SET {}", Id(name)),
            DatabaseOption::Collate(name) => write!(f, "COLLATE {}", Id(name)),
            DatabaseOption::Encryption(value) => write!(f, "ENCRYPTION {}", Text(value)),
            DatabaseOption::ReadOnly(on) => write!(f, "READ ONLY = {}", u8::from(*on)),
        }
    }
}

fn sized(f: &mut Formatter<'_>, word: &str, size: Option<u32>) -> fmt::Result {
    match size {
        Some(size) => write!(f, "{word}({size})"),
        None => f.write_str(word),
    }
}

fn lob(f: &mut Formatter<'_>, size: LobSize, word: &str, len: Option<u32>) -> fmt::Result {
    f.write_str(match size {
        LobSize::Tiny => "TINY",
        LobSize::Normal => "",
        LobSize::Medium => "MEDIUM",
        LobSize::Long => "LONG",
    })?;
    sized(f, word, len)
}

fn number_attributes(f: &mut Formatter<'_>, unsigned: bool, zerofill: bool) -> fmt::Result {
    flag(f, unsigned, "UNSIGNED")?;
    flag(f, zerofill, "ZEROFILL")
}

fn values(f: &mut Formatter<'_>, word: &str, values: &[Box<[u8]>]) -> fmt::Result {
    write!(f, "{word}(")?;
    for (i, value) in values.iter().enumerate() {
        f.write_str(if i > 0 { "," } else { "" })?;
        write_text(f, value)?;
    }
    f.write_str(")")
}

impl Display for TypeKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeKind::Int { size, width, unsigned, zerofill } => {
                let word = match size {
                    IntSize::Tiny => "TINYINT",
                    IntSize::Small => "SMALLINT",
                    IntSize::Medium => "MEDIUMINT",
                    IntSize::Int => "INT",
                    IntSize::Big => "BIGINT",
                };
                sized(f, word, *width)?;
                number_attributes(f, *unsigned, *zerofill)
            }
            TypeKind::Decimal { precision, scale, unsigned, zerofill } => {
                match (precision, scale) {
                    (Some(m), Some(d)) => write!(f, "DECIMAL({m},{d})")?,
                    (m, _) => sized(f, "DECIMAL", *m)?,
                }
                number_attributes(f, *unsigned, *zerofill)
            }
            TypeKind::Float { size, unsigned, zerofill } | TypeKind::Double { size, unsigned, zerofill } => {
                f.write_str(if matches!(self, TypeKind::Float { .. }) { "FLOAT" } else { "DOUBLE" })?;
                if let Some((m, d)) = size {
                    write!(f, "({m},{d})")?;
                }
                number_attributes(f, *unsigned, *zerofill)
            }
            TypeKind::Bit(n) => sized(f, "BIT", *n),
            TypeKind::Char(n) => sized(f, "CHAR", *n),
            TypeKind::VarChar(n) => write!(f, "VARCHAR({n})"),
            TypeKind::Binary(n) => sized(f, "BINARY", *n),
            TypeKind::VarBinary(n) => write!(f, "VARBINARY({n})"),
            TypeKind::Text(size, n) => lob(f, *size, "TEXT", *n),
            TypeKind::Blob(size, n) => lob(f, *size, "BLOB", *n),
            TypeKind::Enum(list) => values(f, "ENUM", list),
            TypeKind::Set(list) => values(f, "SET", list),
            TypeKind::Date => f.write_str("DATE"),
            TypeKind::Time(n) => sized(f, "TIME", *n),
            TypeKind::DateTime(n) => sized(f, "DATETIME", *n),
            TypeKind::Timestamp(n) => sized(f, "TIMESTAMP", *n),
            TypeKind::Year => f.write_str("YEAR"),
            TypeKind::Json => f.write_str("JSON"),
            TypeKind::Geometry(word) => f.write_str(word),
        }
    }
}

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(charset) = &self.charset {
            write!(f, " CHARACTER SET {}", Id(charset))?;
        }
        flag(f, self.binary, "BINARY")?;
        match &self.collate {
            Some(collate) => write!(f, " COLLATE {}", Id(collate)),
            None => Ok(()),
        }
    }
}

/// `CURRENT_TIMESTAMP(fsp)`.
struct Now(u32);

impl Display for Now {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        sized(f, "CURRENT_TIMESTAMP", (self.0 > 0).then_some(self.0))
    }
}

impl Display for ColumnDefault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnDefault::Value(value) => write!(f, "{value}"),
            ColumnDefault::Now(fsp) => write!(f, "{}", Now(*fsp)),
            ColumnDefault::Expr(expr) => write!(f, "({expr})"),
        }
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Id(&self.name), self.ty)?;
        if let Some(Generated { expr, stored }) = &self.generated {
            write!(f, " AS ({expr}) {}", if *stored { "STORED" } else { "VIRTUAL" })?;
        }
        if let Some(nullable) = self.nullable {
            f.write_str(if nullable { " NULL" } else { " NOT NULL" })?;
        }
        if let Some(visible) = self.visible {
            f.write_str(if visible { " VISIBLE" } else { " INVISIBLE" })?;
        }
        if let Some(srid) = self.srid {
            write!(f, " SRID {srid}")?;
        }
        if let Some(default) = &self.default {
            write!(f, " DEFAULT {default}")?;
        }
        if let Some(fsp) = self.on_update {
            write!(f, " ON UPDATE {}", Now(fsp))?;
        }
        flag(f, self.auto_increment, "AUTO_INCREMENT")?;
        flag(f, self.unique, "UNIQUE KEY")?;
        flag(f, self.primary, "PRIMARY KEY")?;
        if let Some(comment) = &self.comment {
            write!(f, " COMMENT {}", Text(comment))?;
        }
        match self.column_format {
            Some(ColumnFormat::Fixed) => f.write_str(" COLUMN_FORMAT FIXED")?,
            Some(ColumnFormat::Dynamic) => f.write_str(" COLUMN_FORMAT DYNAMIC")?,
            Some(ColumnFormat::Default) => f.write_str(" COLUMN_FORMAT DEFAULT")?,
            None => {}
        }
        if let Some(storage) = self.storage {
            write!(f, " STORAGE {storage}")?;
        }
        for check in &self.checks {
            write!(f, " {check}")?;
        }
        match &self.references {
            Some(reference) => write!(f, " {reference}"),
            None => Ok(()),
        }
    }
}

impl Display for Storage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Storage::Disk => "DISK",
            Storage::Memory => "MEMORY",
            Storage::Default => "DEFAULT",
        })
    }
}

fn constraint(f: &mut Formatter<'_>, name: Option<&str>) -> fmt::Result {
    match name {
        Some(name) => write!(f, "CONSTRAINT {} ", Id(name)),
        None => Ok(()),
    }
}

impl Display for CheckDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        constraint(f, self.name.as_deref())?;
        write!(f, "CHECK ({})", self.expr)?;
        flag(f, !self.enforced, "NOT ENFORCED")
    }
}

/// The words of a kind of key.
fn key_words(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Primary => "PRIMARY KEY",
        KeyKind::Unique => "UNIQUE KEY",
        KeyKind::Index => "KEY",
        KeyKind::Fulltext => "FULLTEXT KEY",
        KeyKind::Spatial => "SPATIAL KEY",
    }
}

impl Display for KeyPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let desc = match self {
            KeyPart::Column { name, prefix, desc } => {
                sized(f, &Id(name).to_string(), *prefix)?;
                *desc
            }
            KeyPart::Expr { expr, desc } => {
                write!(f, "({expr})")?;
                *desc
            }
        };
        flag(f, desc, "DESC")
    }
}

impl Display for KeyOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.using {
            Some(IndexType::Btree) => f.write_str(" USING BTREE")?,
            Some(IndexType::Hash) => f.write_str(" USING HASH")?,
            Some(IndexType::Rtree) => f.write_str(" USING RTREE")?,
            None => {}
        }
        if let Some(size) = self.block_size {
            write!(f, " KEY_BLOCK_SIZE = {size}")?;
        }
        if let Some(parser) = &self.parser {
            write!(f, " WITH PARSER {}", Id(parser))?;
        }
        if let Some(comment) = &self.comment {
            write!(f, " COMMENT {}", Text(comment))?;
        }
        match self.visible {
            Some(true) => f.write_str(" VISIBLE"),
            Some(false) => f.write_str(" INVISIBLE"),
            None => Ok(()),
        }
    }
}

fn key_rest(f: &mut Formatter<'_>, key: &KeyDef) -> fmt::Result {
    f.write_str(" (")?;
    list(f, &key.parts, ", ")?;
    write!(f, "){}", key.options)
}

impl Display for KeyDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(key_words(self.kind))?;
        if let Some(name) = &self.name {
            write!(f, " {}", Id(name))?;
        }
        key_rest(f, self)
    }
}

impl Display for ForeignKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        constraint(f, self.constraint.as_deref())?;
        f.write_str("FOREIGN KEY ")?;
        if let Some(index) = &self.index {
            write!(f, "{} ", Id(index))?;
        }
        f.write_str("(")?;
        names(f, &self.columns)?;
        write!(f, ") {}", self.references)
    }
}

impl Display for RefAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefAction::Restrict => "RESTRICT",
            RefAction::Cascade => "CASCADE",
            RefAction::SetNull => "SET NULL",
            RefAction::NoAction => "NO ACTION",
            RefAction::SetDefault => "SET DEFAULT",
        })
    }
}

impl Display for Reference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "REFERENCES {}", self.table)?;
        if !self.columns.is_empty() {
            f.write_str(" (")?;
            names(f, &self.columns)?;
            f.write_str(")")?;
        }
        if let Some(action) = self.on_delete {
            write!(f, " ON DELETE {action}")?;
        }
        match self.on_update {
            Some(action) => write!(f, " ON UPDATE {action}"),
            None => Ok(()),
        }
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CREATE")?;
        flag(f, self.temporary, "TEMPORARY")?;
        f.write_str(" TABLE")?;
        flag(f, self.if_not_exists, "IF NOT EXISTS")?;
        write!(f, " {}", self.name)?;
        if let Some(like) = &self.like {
            return write!(f, " LIKE {like}");
        }
        let columns = self.columns.iter().map(ToString::to_string);
        let keys = self.keys.iter().map(ToString::to_string);
        let foreign = self.foreign_keys.iter().map(ToString::to_string);
        let checks = self.checks.iter().map(ToString::to_string);
        let elements: Vec<String> = columns.chain(keys).chain(foreign).chain(checks).collect();
        if !elements.is_empty() {
            write!(f, " ({})", elements.join(", "))?;
        }
        for option in &self.options {
            write!(f, " {option}")?;
        }
        if let Some(partition) = &self.partition {
            write!(f, " {partition}")?;
        }
        match &self.select {
            Some((duplicates, query)) => {
                f.write_str(match duplicates {
                    DuplicateRows::Error => "",
                    DuplicateRows::Ignore => " IGNORE",
                    DuplicateRows::Replace => " REPLACE",
                })?;
                write!(f, " AS {query}")
            }
            None => Ok(()),
        }
    }
}

impl Display for TableOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TableOption::Engine(name) => write!(f, "ENGINE = {}", Id(name)),
            TableOption::Comment(text) => write!(f, "COMMENT = {}", Text(text)),
            TableOption::Charset(name) => write!(f, "CHARACTER SET = {}", Id(name)),
            TableOption::Collate(name) => write!(f, "COLLATE = {}", Id(name)),
            TableOption::AutoIncrement(n) => write!(f, "AUTO_INCREMENT = {n}"),
            TableOption::RowFormat(word) => write!(f, "ROW_FORMAT = {word}"),
            TableOption::MaxRows(n) => write!(f, "MAX_ROWS = {n}"),
            TableOption::MinRows(n) => write!(f, "MIN_ROWS = {n}"),
            TableOption::AvgRowLength(n) => write!(f, "AVG_ROW_LENGTH = {n}"),
            TableOption::Tablespace(name) => write!(f, "TABLESPACE = {}", Id(name)),
            TableOption::Storage(storage) => write!(f, "STORAGE {storage}"),
            TableOption::Other(name, value) if &**name == "UNION" => write!(f, "UNION = ({value})"),
            TableOption::Other(name, value) => {
                let number = !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit());
                let word = value.starts_with(|c: char| c.is_ascii_alphabetic())
                    && value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
                if number || word {
                    write!(f, "{name} = {value}")
                } else {
                    write!(f, "{name} = {}", Text(value))
                }
            }
        }
    }
}

impl Display for PartitionMethod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let columns = |f: &mut Formatter<'_>, word: &str, columns: &[Box<str>]| {
            write!(f, "{word} (")?;
            names(f, columns)?;
            f.write_str(")")
        };
        let word = |linear: bool| if linear { "LINEAR " } else { "" };
        match self {
            PartitionMethod::Key { linear, algorithm, columns: list } => {
                f.write_str(word(*linear))?;
                match algorithm {
                    Some(n) => columns(f, &format!("KEY ALGORITHM = {n}"), list),
                    None => columns(f, "KEY", list),
                }
            }
            PartitionMethod::Hash { linear, expr } => write!(f, "{}HASH ({expr})", word(*linear)),
            PartitionMethod::Range(expr) => write!(f, "RANGE ({expr})"),
            PartitionMethod::RangeColumns(list) => columns(f, "RANGE COLUMNS", list),
            PartitionMethod::List(expr) => write!(f, "LIST ({expr})"),
            PartitionMethod::ListColumns(list) => columns(f, "LIST COLUMNS", list),
        }
    }
}

impl Display for PartitionBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PARTITION BY {}", self.method)?;
        if let Some(count) = self.count {
            write!(f, " PARTITIONS {count}")?;
        }
        if let Some((method, count)) = &self.sub {
            write!(f, " SUBPARTITION BY {method}")?;
            if let Some(count) = count {
                write!(f, " SUBPARTITIONS {count}")?;
            }
        }
        if self.partitions.is_empty() { Ok(()) } else { partition_list(f, " ", &self.partitions) }
    }
}

fn partition_list(f: &mut Formatter<'_>, before: &str, partitions: &[PartitionDef]) -> fmt::Result {
    write!(f, "{before}(")?;
    list(f, partitions, ", ")?;
    f.write_str(")")
}

impl Display for PartitionDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PARTITION {}", Id(&self.name))?;
        match &self.values {
            PartitionValues::None => {}
            PartitionValues::MaxValue => f.write_str(" VALUES LESS THAN MAXVALUE")?,
            PartitionValues::LessThan(bounds) => {
                f.write_str(" VALUES LESS THAN (")?;
                for (i, bound) in bounds.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match bound {
                        crate::parser::ast::Expr::Col(c) if &*c.name == "MAXVALUE" => {
                            f.write_str("MAXVALUE")?;
                        }
                        bound => write!(f, "{bound}")?,
                    }
                }
                f.write_str(")")?;
            }
            PartitionValues::In(values) => {
                f.write_str(" VALUES IN (")?;
                list(f, values, ", ")?;
                f.write_str(")")?;
            }
        }
        for option in &self.options {
            write!(f, " {option}")?;
        }
        for (i, (name, options)) in self.subs.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { " (" })?;
            write!(f, "SUBPARTITION {}", Id(name))?;
            for option in options {
                write!(f, " {option}")?;
            }
        }
        f.write_str(if self.subs.is_empty() { "" } else { ")" })
    }
}

impl Display for AlterTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER TABLE {}", self.name)?;
        for (i, spec) in self.specs.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { " " })?;
            write!(f, "{spec}")?;
        }
        Ok(())
    }
}

impl Display for ColumnPosition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnPosition::Default => Ok(()),
            ColumnPosition::First => f.write_str(" FIRST"),
            ColumnPosition::After(name) => write!(f, " AFTER {}", Id(name)),
        }
    }
}

impl Display for AlterSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let visible = |on: bool| if on { "VISIBLE" } else { "INVISIBLE" };
        match self {
            AlterSpec::AddColumn(columns, position) => match columns.as_slice() {
                [column] => write!(f, "ADD COLUMN {column}{position}"),
                columns => {
                    f.write_str("ADD COLUMN (")?;
                    list(f, columns, ", ")?;
                    f.write_str(")")
                }
            },
            AlterSpec::AddKey(key) => write!(f, "ADD {key}"),
            AlterSpec::AddForeignKey(key) => write!(f, "ADD {key}"),
            AlterSpec::AddCheck(check) => write!(f, "ADD {check}"),
            AlterSpec::DropColumn(name) => write!(f, "DROP COLUMN {}", Id(name)),
            AlterSpec::DropKey(name) => write!(f, "DROP KEY {}", Id(name)),
            AlterSpec::DropPrimaryKey => f.write_str("DROP PRIMARY KEY"),
            AlterSpec::DropForeignKey(name) => write!(f, "DROP FOREIGN KEY {}", Id(name)),
            AlterSpec::DropConstraint(name) => write!(f, "DROP CONSTRAINT {}", Id(name)),
            AlterSpec::AlterCheck(name, on) => {
                write!(f, "ALTER CHECK {} {}ENFORCED", Id(name), if *on { "" } else { "NOT " })
            }
            AlterSpec::ModifyColumn(column, position) => write!(f, "MODIFY COLUMN {column}{position}"),
            AlterSpec::ChangeColumn(old, column, position) => {
                write!(f, "CHANGE COLUMN {} {column}{position}", Id(old))
            }
            AlterSpec::AlterDefault(name, Some(default)) => {
                write!(f, "ALTER COLUMN {} SET DEFAULT {default}", Id(name))
            }
            AlterSpec::AlterDefault(name, None) => write!(f, "ALTER COLUMN {} DROP DEFAULT", Id(name)),
            AlterSpec::AlterVisible(name, on) => write!(f, "ALTER COLUMN {} SET {}", Id(name), visible(*on)),
            AlterSpec::AlterIndexVisible(name, on) => write!(f, "ALTER INDEX {} {}", Id(name), visible(*on)),
            AlterSpec::RenameColumn(from, to) => write!(f, "RENAME COLUMN {} TO {}", Id(from), Id(to)),
            AlterSpec::RenameIndex(from, to) => write!(f, "RENAME INDEX {} TO {}", Id(from), Id(to)),
            AlterSpec::Rename(to) => write!(f, "RENAME TO {to}"),
            AlterSpec::ConvertCharset(charset, collate) => {
                write!(f, "CONVERT TO CHARACTER SET {}", Id(charset))?;
                collate.iter().try_for_each(|collate| write!(f, " COLLATE {}", Id(collate)))
            }
            AlterSpec::EnableKeys(on) => f.write_str(if *on { "ENABLE KEYS" } else { "DISABLE KEYS" }),
            AlterSpec::Force => f.write_str("FORCE"),
            AlterSpec::OrderBy(order) => {
                f.write_str("ORDER BY ")?;
                list(f, order, ", ")
            }
            AlterSpec::Option(option) => write!(f, "{option}"),
            AlterSpec::Algorithm(word) => write!(f, "ALGORITHM = {}", Word(word)),
            AlterSpec::Lock(word) => write!(f, "LOCK = {}", Word(word)),
            AlterSpec::Validation(on) => {
                f.write_str(if *on { "WITH VALIDATION" } else { "WITHOUT VALIDATION" })
            }
            AlterSpec::PartitionBy(partition) => write!(f, "{partition}"),
            AlterSpec::RemovePartitioning => f.write_str("REMOVE PARTITIONING"),
            AlterSpec::Tablespace(import) => {
                write!(f, "{} TABLESPACE", if *import { "IMPORT" } else { "DISCARD" })
            }
            AlterSpec::AddPartition(_)
            | AlterSpec::AddPartitions(_)
            | AlterSpec::DropPartition(_)
            | AlterSpec::TruncatePartition(_)
            | AlterSpec::CoalescePartition(_)
            | AlterSpec::ReorganizePartition(..)
            | AlterSpec::PartitionAdmin(..) => partition_spec(f, self),
        }
    }
}

/// A word that any name may replace but reserved words stand for themselves (`LOCK = DEFAULT`).
struct Word<'a>(&'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.bytes().all(|c| c.is_ascii_alphabetic()) {
            f.write_str(self.0)
        } else {
            write!(f, "{}", Id(self.0))
        }
    }
}

fn partition_spec(f: &mut Formatter<'_>, spec: &AlterSpec) -> fmt::Result {
    let some = |f: &mut Formatter<'_>, list: &[Box<str>]| {
        if list.is_empty() { f.write_str(" ALL") } else { names(f.write_str(" ").map(|()| f)?, list) }
    };
    match spec {
        AlterSpec::AddPartition(partitions) => partition_list(f, "ADD PARTITION ", partitions),
        AlterSpec::AddPartitions(n) => write!(f, "ADD PARTITION PARTITIONS {n}"),
        AlterSpec::DropPartition(list) => {
            f.write_str("DROP PARTITION ")?;
            names(f, list)
        }
        AlterSpec::TruncatePartition(list) => {
            f.write_str("TRUNCATE PARTITION")?;
            some(f, list)
        }
        AlterSpec::CoalescePartition(n) => write!(f, "COALESCE PARTITION {n}"),
        AlterSpec::ReorganizePartition(list, partitions) => {
            f.write_str("REORGANIZE PARTITION")?;
            if list.is_empty() {
                return Ok(());
            }
            f.write_str(" ")?;
            names(f, list)?;
            partition_list(f, " INTO ", partitions)
        }
        AlterSpec::PartitionAdmin(verb, list) => {
            write!(f, "{verb} PARTITION")?;
            some(f, list)
        }
        _ => Ok(()),
    }
}

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.key.kind {
            KeyKind::Unique => "CREATE UNIQUE INDEX",
            KeyKind::Fulltext => "CREATE FULLTEXT INDEX",
            KeyKind::Spatial => "CREATE SPATIAL INDEX",
            KeyKind::Index | KeyKind::Primary => "CREATE INDEX",
        })?;
        if let Some(name) = &self.key.name {
            write!(f, " {}", Id(name))?;
        }
        write!(f, " ON {}", self.table)?;
        key_rest(f, &self.key)?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.or_replace { "CREATE OR REPLACE VIEW " } else { "CREATE VIEW " })?;
        write!(f, "{}", self.name)?;
        if !self.columns.is_empty() {
            f.write_str(" (")?;
            names(f, &self.columns)?;
            f.write_str(")")?;
        }
        write!(f, " AS {}", self.query)
    }
}
