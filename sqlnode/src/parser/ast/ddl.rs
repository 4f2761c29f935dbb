//! Schema changes: databases, tables, indexes, views.
//!
//! Options keep the order in which they were written; a later one overrides an earlier one, as in MySQL.
//! Sizes are kept as written (saturated at 32 bits): whether `VARCHAR(70000)` is allowed is the catalogue's
//! question.

use super::{Expr, Name, OrderBy, Query, TableName};

/// CREATE DATABASE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDatabase {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The database.
    pub name: Name,
    /// Its options.
    pub options: Vec<DatabaseOption>,
}

/// An option of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseOption {
    /// CHARACTER SET.
    Charset(Name),
    /// COLLATE.
    Collate(Name),
    /// ENCRYPTION 'Y'.
    Encryption(Box<str>),
    /// READ ONLY 0 or 1 (ALTER only).
    ReadOnly(bool),
}

/// A column type as written, with the character attributes that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The type.
    pub kind: TypeKind,
    /// CHARACTER SET, or what NATIONAL and BYTE imply.
    pub charset: Option<Name>,
    /// COLLATE.
    pub collate: Option<Name>,
    /// The BINARY attribute: the charset's `_bin` collation.
    pub binary: bool,
}

/// Sizes of the four lengths of BLOB and TEXT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LobSize {
    /// TINY: 255 bytes.
    Tiny,
    /// Plain: 64 KiB, or the size the length in parentheses asks for.
    Normal,
    /// MEDIUM: 16 MiB.
    Medium,
    /// LONG: 4 GiB.
    Long,
}

/// Widths of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The types of MySQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    /// Integers; BOOL is TINYINT(1), SERIAL is BIGINT UNSIGNED with column attributes.
    Int {
        /// How wide.
        size: IntSize,
        /// Display width.
        width: Option<u32>,
        /// UNSIGNED.
        unsigned: bool,
        /// ZEROFILL (implies UNSIGNED, already set).
        zerofill: bool,
    },
    /// DECIMAL, NUMERIC, DEC, FIXED.
    Decimal {
        /// Digits in all.
        precision: Option<u32>,
        /// Digits after the point.
        scale: Option<u32>,
        /// UNSIGNED.
        unsigned: bool,
        /// ZEROFILL.
        zerofill: bool,
    },
    /// FLOAT and FLOAT(p), FLOAT(m,d). FLOAT(25) and more is turned into DOUBLE.
    Float {
        /// (m,d).
        size: Option<(u32, u32)>,
        /// UNSIGNED.
        unsigned: bool,
        /// ZEROFILL.
        zerofill: bool,
    },
    /// DOUBLE, DOUBLE PRECISION, REAL.
    Double {
        /// (m,d).
        size: Option<(u32, u32)>,
        /// UNSIGNED.
        unsigned: bool,
        /// ZEROFILL.
        zerofill: bool,
    },
    /// BIT(n).
    Bit(Option<u32>),
    /// CHAR(n), 1 when not written.
    Char(Option<u32>),
    /// VARCHAR(n).
    VarChar(u32),
    /// BINARY(n), 1 when not written.
    Binary(Option<u32>),
    /// VARBINARY(n).
    VarBinary(u32),
    /// TINYTEXT to LONGTEXT, TEXT(n), LONG, LONG VARCHAR.
    Text(LobSize, Option<u32>),
    /// TINYBLOB to LONGBLOB, BLOB(n), LONG VARBINARY.
    Blob(LobSize, Option<u32>),
    /// ENUM.
    Enum(Vec<Box<[u8]>>),
    /// SET.
    Set(Vec<Box<[u8]>>),
    /// DATE.
    Date,
    /// TIME(fsp).
    Time(Option<u32>),
    /// DATETIME(fsp).
    DateTime(Option<u32>),
    /// TIMESTAMP(fsp).
    Timestamp(Option<u32>),
    /// YEAR.
    Year,
    /// JSON.
    Json,
    /// A spatial type, its name in capitals.
    Geometry(&'static str),
}

/// A column of CREATE TABLE or ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeName,
    /// NOT NULL is `Some(false)`, NULL is `Some(true)`.
    pub nullable: Option<bool>,
    /// DEFAULT.
    pub default: Option<ColumnDefault>,
    /// ON UPDATE CURRENT_TIMESTAMP(fsp).
    pub on_update: Option<u32>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// UNIQUE [KEY].
    pub unique: bool,
    /// [PRIMARY] KEY.
    pub primary: bool,
    /// COMMENT.
    pub comment: Option<Box<str>>,
    /// COLUMN_FORMAT.
    pub column_format: Option<ColumnFormat>,
    /// STORAGE.
    pub storage: Option<Storage>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<Generated>,
    /// CHECK constraints of the column.
    pub checks: Vec<CheckDef>,
    /// REFERENCES (which MySQL parses and ignores on a column).
    pub references: Option<Box<Reference>>,
    /// INVISIBLE is `Some(false)`.
    pub visible: Option<bool>,
    /// SRID.
    pub srid: Option<u64>,
}

/// DEFAULT of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnDefault {
    /// A literal, with its sign if any.
    Value(Expr),
    /// CURRENT_TIMESTAMP(fsp).
    Now(u32),
    /// A parenthesised expression.
    Expr(Expr),
}

/// COLUMN_FORMAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum ColumnFormat {
    Fixed,
    Dynamic,
    Default,
}

/// STORAGE of a column, table or tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum Storage {
    Disk,
    Memory,
    Default,
}

/// A generated column's expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// How to compute it.
    pub expr: Expr,
    /// STORED instead of VIRTUAL.
    pub stored: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckDef {
    /// CONSTRAINT name.
    pub name: Option<Name>,
    /// The condition.
    pub expr: Expr,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

/// Kinds of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// PRIMARY KEY.
    Primary,
    /// UNIQUE.
    Unique,
    /// KEY or INDEX.
    Index,
    /// FULLTEXT.
    Fulltext,
    /// SPATIAL.
    Spatial,
}

/// USING HASH or BTREE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum IndexType {
    Btree,
    Hash,
    Rtree,
}

/// A key of CREATE TABLE or ALTER TABLE, foreign keys apart.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyDef {
    /// Which kind.
    pub kind: KeyKind,
    /// The key's name, else the CONSTRAINT's.
    pub name: Option<Name>,
    /// Its parts, non-empty.
    pub parts: Vec<KeyPart>,
    /// Options.
    pub options: KeyOptions,
}

/// What follows a key's columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyOptions {
    /// USING.
    pub using: Option<IndexType>,
    /// COMMENT.
    pub comment: Option<Box<str>>,
    /// INVISIBLE is `Some(false)`.
    pub visible: Option<bool>,
    /// KEY_BLOCK_SIZE.
    pub block_size: Option<u64>,
    /// WITH PARSER.
    pub parser: Option<Name>,
}

/// One part of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyPart {
    /// A column.
    Column {
        /// Which.
        name: Name,
        /// Only the first so many characters or bytes.
        prefix: Option<u32>,
        /// DESC.
        desc: bool,
    },
    /// A functional part.
    Expr {
        /// The expression.
        expr: Expr,
        /// DESC.
        desc: bool,
    },
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// CONSTRAINT name.
    pub constraint: Option<Name>,
    /// Index name.
    pub index: Option<Name>,
    /// The columns of this table.
    pub columns: Vec<Name>,
    /// What they point to.
    pub references: Reference,
}

/// REFERENCES.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The other table.
    pub table: TableName,
    /// Its columns.
    pub columns: Vec<Name>,
    /// ON DELETE.
    pub on_delete: Option<RefAction>,
    /// ON UPDATE.
    pub on_update: Option<RefAction>,
}

/// What a foreign key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum RefAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// LIKE t: then everything below is empty.
    pub like: Option<TableName>,
    /// Columns in order.
    pub columns: Vec<ColumnDef>,
    /// Keys in order (a column's own PRIMARY and UNIQUE stay with the column).
    pub keys: Vec<KeyDef>,
    /// Foreign keys in order.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints of the table.
    pub checks: Vec<CheckDef>,
    /// Table options in order.
    pub options: Vec<TableOption>,
    /// PARTITION BY.
    pub partition: Option<PartitionBy>,
    /// [IGNORE|REPLACE] [AS] SELECT.
    pub select: Option<(DuplicateRows, Box<Query>)>,
}

/// What CREATE TABLE ... SELECT does with duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum DuplicateRows {
    Error,
    Ignore,
    Replace,
}

/// An option of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOption {
    /// ENGINE.
    Engine(Name),
    /// COMMENT; `ndb_table_options` reads what NDB hides in it.
    Comment(Box<str>),
    /// [DEFAULT] CHARACTER SET.
    Charset(Name),
    /// [DEFAULT] COLLATE.
    Collate(Name),
    /// AUTO_INCREMENT.
    AutoIncrement(u64),
    /// ROW_FORMAT, in capitals.
    RowFormat(Name),
    /// MAX_ROWS.
    MaxRows(u64),
    /// MIN_ROWS.
    MinRows(u64),
    /// AVG_ROW_LENGTH.
    AvgRowLength(u64),
    /// TABLESPACE.
    Tablespace(Name),
    /// STORAGE.
    Storage(Storage),
    /// Any other, its name in capitals and its value as written without quotes.
    Other(Name, Box<str>),
}

/// PARTITION BY.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionBy {
    /// How rows are spread.
    pub method: PartitionMethod,
    /// PARTITIONS n.
    pub count: Option<u64>,
    /// SUBPARTITION BY with SUBPARTITIONS n.
    pub sub: Option<(PartitionMethod, Option<u64>)>,
    /// Partition definitions.
    pub partitions: Vec<PartitionDef>,
}

/// How rows are spread over partitions.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionMethod {
    /// [LINEAR] KEY [ALGORITHM=n] (columns); no columns means the primary key.
    Key {
        /// LINEAR.
        linear: bool,
        /// ALGORITHM.
        algorithm: Option<u64>,
        /// The columns.
        columns: Vec<Name>,
    },
    /// [LINEAR] HASH (expr).
    Hash {
        /// LINEAR.
        linear: bool,
        /// The expression.
        expr: Box<Expr>,
    },
    /// RANGE (expr).
    Range(Box<Expr>),
    /// RANGE COLUMNS (columns).
    RangeColumns(Vec<Name>),
    /// LIST (expr).
    List(Box<Expr>),
    /// LIST COLUMNS (columns).
    ListColumns(Vec<Name>),
}

/// One partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionDef {
    /// Its name.
    pub name: Name,
    /// Its rows.
    pub values: PartitionValues,
    /// Its options.
    pub options: Vec<TableOption>,
    /// Its subpartitions' names and options.
    pub subs: Vec<(Name, Vec<TableOption>)>,
}

/// Which rows a partition takes.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionValues {
    /// HASH and KEY: nothing to say.
    None,
    /// LESS THAN MAXVALUE.
    MaxValue,
    /// LESS THAN (values); MAXVALUE inside the list is the column named MAXVALUE.
    LessThan(Vec<Expr>),
    /// IN (values).
    In(Vec<Expr>),
}

/// ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: TableName,
    /// What to do, in order.
    pub specs: Vec<AlterSpec>,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPosition {
    /// At the end, or where it is.
    Default,
    /// FIRST.
    First,
    /// AFTER column.
    After(Name),
}

/// One change of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterSpec {
    /// ADD [COLUMN]: one column with its place, or several in parentheses.
    AddColumn(Vec<ColumnDef>, ColumnPosition),
    /// ADD a key.
    AddKey(KeyDef),
    /// ADD FOREIGN KEY.
    AddForeignKey(ForeignKey),
    /// ADD CHECK.
    AddCheck(CheckDef),
    /// DROP [COLUMN].
    DropColumn(Name),
    /// DROP INDEX / KEY.
    DropKey(Name),
    /// DROP PRIMARY KEY.
    DropPrimaryKey,
    /// DROP FOREIGN KEY.
    DropForeignKey(Name),
    /// DROP CHECK / CONSTRAINT.
    DropConstraint(Name),
    /// ALTER CHECK c [NOT] ENFORCED.
    AlterCheck(Name, bool),
    /// MODIFY [COLUMN].
    ModifyColumn(Box<ColumnDef>, ColumnPosition),
    /// CHANGE [COLUMN] old new.
    ChangeColumn(Name, Box<ColumnDef>, ColumnPosition),
    /// ALTER [COLUMN] c SET DEFAULT / DROP DEFAULT.
    AlterDefault(Name, Option<ColumnDefault>),
    /// ALTER [COLUMN] c SET VISIBLE / INVISIBLE.
    AlterVisible(Name, bool),
    /// ALTER INDEX i VISIBLE / INVISIBLE.
    AlterIndexVisible(Name, bool),
    /// RENAME COLUMN a TO b.
    RenameColumn(Name, Name),
    /// RENAME INDEX a TO b.
    RenameIndex(Name, Name),
    /// RENAME [TO] t.
    Rename(TableName),
    /// CONVERT TO CHARACTER SET c [COLLATE d].
    ConvertCharset(Name, Option<Name>),
    /// ENABLE (true) or DISABLE KEYS.
    EnableKeys(bool),
    /// FORCE.
    Force,
    /// ORDER BY.
    OrderBy(Vec<OrderBy>),
    /// A table option.
    Option(TableOption),
    /// ALGORITHM = x, in capitals.
    Algorithm(Name),
    /// LOCK = x, in capitals.
    Lock(Name),
    /// WITH or WITHOUT VALIDATION.
    Validation(bool),
    /// ADD PARTITION definitions.
    AddPartition(Vec<PartitionDef>),
    /// ADD PARTITION PARTITIONS n.
    AddPartitions(u64),
    /// DROP PARTITION.
    DropPartition(Vec<Name>),
    /// TRUNCATE PARTITION; none means ALL.
    TruncatePartition(Vec<Name>),
    /// COALESCE PARTITION n.
    CoalescePartition(u64),
    /// REORGANIZE PARTITION [names INTO definitions]; both empty is NDB's "spread over the new nodes".
    ReorganizePartition(Vec<Name>, Vec<PartitionDef>),
    /// ANALYZE, CHECK, OPTIMIZE, REBUILD, REPAIR PARTITION: the verb in capitals; no names means ALL.
    PartitionAdmin(&'static str, Vec<Name>),
    /// REMOVE PARTITIONING.
    RemovePartitioning,
    /// PARTITION BY.
    PartitionBy(PartitionBy),
    /// DISCARD (false) or IMPORT (true) TABLESPACE.
    Tablespace(bool),
}

/// CREATE INDEX.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// On which table.
    pub table: TableName,
    /// What.
    pub key: KeyDef,
    /// ALGORITHM and LOCK.
    pub options: Vec<AlterSpec>,
}

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// OR REPLACE.
    pub or_replace: bool,
    /// The view.
    pub name: TableName,
    /// Column names.
    pub columns: Vec<Name>,
    /// Its query.
    pub query: Query,
    /// Text of the query, which is what a catalogue keeps.
    pub text: Box<str>,
}
