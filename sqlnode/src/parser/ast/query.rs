//! Queries and row changes: SELECT and its relatives, INSERT, UPDATE, DELETE.
//!
//! A query is a body (one SELECT, or a tree of set operations) with the clauses that apply to the whole of
//! it. The clauses of a lone `SELECT ... ORDER BY ... LIMIT ...` therefore sit in [`Query`], not in
//! [`Select`].

use super::{ColName, Expr, Name, OrderBy, TableName};

/// A whole query expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// What is computed.
    pub body: QueryBody,
    /// ORDER BY of the whole.
    pub order: Vec<OrderBy>,
    /// LIMIT of the whole.
    pub limit: Option<Limit>,
    /// FOR UPDATE and its relatives, in text order.
    pub locking: Vec<Locking>,
    /// INTO, wherever it stood.
    pub into: Option<Into>,
}

/// What a query computes.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// One SELECT.
    Select(Box<Select>),
    /// A parenthesised query with clauses of its own.
    Query(Box<Query>),
    /// `VALUES ROW(1, 2), ROW(3, 4)`.
    Values(Vec<Vec<Expr>>),
    /// `TABLE t`.
    Table(TableName),
    /// UNION, INTERSECT, EXCEPT.
    Set {
        /// Which.
        op: SetOp,
        /// With ALL.
        all: bool,
        /// First operand.
        left: Box<QueryBody>,
        /// Second operand.
        right: Box<QueryBody>,
    },
}

/// Set operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOp {
    /// UNION.
    Union,
    /// INTERSECT.
    Intersect,
    /// EXCEPT.
    Except,
}

/// The WITH clause.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// WITH RECURSIVE.
    pub recursive: bool,
    /// The common table expressions.
    pub ctes: Vec<Cte>,
}

/// One common table expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Cte {
    /// Its name.
    pub name: Name,
    /// Column names, if given.
    pub columns: Vec<Name>,
    /// Its query.
    pub query: Query,
}

/// One SELECT.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// DISTINCT, SQL_CALC_FOUND_ROWS and so on.
    pub modifiers: SelectModifiers,
    /// The non-empty select list.
    pub items: Vec<SelectItem>,
    /// FROM; empty without FROM and for FROM DUAL. Comma-separated.
    pub from: Vec<TableRef>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY. An integer literal is a select item's position, which the planner resolves.
    pub group: Vec<Expr>,
    /// GROUP BY ... WITH ROLLUP.
    pub rollup: bool,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW definitions, as written; empty when absent.
    pub windows: Box<str>,
}

/// Words between SELECT and the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectModifiers {
    /// DISTINCT or DISTINCTROW.
    pub distinct: bool,
    /// HIGH_PRIORITY.
    pub high_priority: bool,
    /// STRAIGHT_JOIN.
    pub straight_join: bool,
    /// SQL_SMALL_RESULT.
    pub small_result: bool,
    /// SQL_BIG_RESULT.
    pub big_result: bool,
    /// SQL_BUFFER_RESULT.
    pub buffer_result: bool,
    /// SQL_NO_CACHE.
    pub no_cache: bool,
    /// SQL_CALC_FOUND_ROWS.
    pub calc_found_rows: bool,
}

/// One element of the select list.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// `*`, `t.*` or `db.t.*`.
    Star(Option<TableName>),
    /// An expression.
    Expr {
        /// What is computed.
        expr: Expr,
        /// `AS name`.
        alias: Option<Name>,
        /// The name an unaliased item gets: the text as written, a string literal's contents, or empty for
        /// a plain column (whose own name is used) and for an aliased item. [`SelectItem::name`] chooses.
        text: Box<str>,
    },
}

impl SelectItem {
    /// The column name shown to the client; `None` for `*`.
    pub fn name(&self) -> Option<&str> {
        match self {
            SelectItem::Star(_) => None,
            SelectItem::Expr { alias: Some(alias), .. } => Some(alias),
            SelectItem::Expr { expr: Expr::Col(column), .. } => Some(&column.name),
            SelectItem::Expr { text, .. } => Some(text),
        }
    }
}

/// A table in FROM, or several joined.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A stored table or view.
    Table(TableFactor),
    /// `(SELECT ...) AS alias [(columns)]`.
    Derived {
        /// With LATERAL.
        lateral: bool,
        /// The query.
        query: Box<Query>,
        /// Its name.
        alias: Name,
        /// Its column names, if given.
        columns: Vec<Name>,
    },
    /// Two tables joined.
    Join(Box<Join>),
    /// A parenthesised list: `(a, b)`.
    Nested(Vec<TableRef>),
}

/// A stored table as named in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFactor {
    /// The table.
    pub name: TableName,
    /// PARTITION (p0, p1).
    pub partitions: Vec<Name>,
    /// Its alias.
    pub alias: Option<Name>,
    /// USE, FORCE and IGNORE INDEX.
    pub hints: Vec<IndexHint>,
}

/// An index hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHint {
    /// What to do with the indexes.
    pub kind: IndexHintKind,
    /// For which purpose.
    pub scope: IndexHintScope,
    /// Which indexes (`PRIMARY` included); none at all for `USE INDEX ()`.
    pub indexes: Vec<Name>,
}

/// USE, FORCE or IGNORE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintKind {
    /// USE INDEX.
    Use,
    /// FORCE INDEX.
    Force,
    /// IGNORE INDEX.
    Ignore,
}

/// FOR JOIN, FOR ORDER BY, FOR GROUP BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintScope {
    /// Nothing written.
    All,
    /// FOR JOIN.
    Join,
    /// FOR ORDER BY.
    OrderBy,
    /// FOR GROUP BY.
    GroupBy,
}

/// A join.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// Left table.
    pub left: TableRef,
    /// Right table.
    pub right: TableRef,
    /// Which kind.
    pub kind: JoinKind,
    /// How rows are matched.
    pub on: JoinOn,
}

/// Kinds of join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN: the same in MySQL.
    Inner,
    /// LEFT [OUTER] JOIN.
    Left,
    /// RIGHT [OUTER] JOIN.
    Right,
    /// STRAIGHT_JOIN.
    Straight,
}

/// How a join matches rows.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinOn {
    /// Every pair.
    None,
    /// ON condition.
    On(Expr),
    /// USING (columns).
    Using(Vec<Name>),
    /// NATURAL.
    Natural,
}

/// LIMIT. Both are literals or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Rows to skip.
    pub offset: Option<Expr>,
    /// Rows to return.
    pub count: Expr,
}

/// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locking {
    /// Exclusive (FOR UPDATE) instead of shared.
    pub exclusive: bool,
    /// OF tables.
    pub of: Vec<TableName>,
    /// NOWAIT and SKIP LOCKED.
    pub wait: LockWait,
}

/// What to do when a row is locked by someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait.
    Wait,
    /// NOWAIT: fail.
    NoWait,
    /// SKIP LOCKED: leave the row out.
    SkipLocked,
}

/// Where a query's rows go instead of to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// INTO @a, @b (names without `@`; a name without `@` keeps no mark: stored programs are not supported).
    Vars(Vec<Name>),
    /// INTO OUTFILE 'f' options: the rest as written.
    Outfile(Box<str>, Box<str>),
    /// INTO DUMPFILE 'f'.
    Dumpfile(Box<str>),
}

/// INSERT or REPLACE.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// REPLACE instead of INSERT.
    pub replace: bool,
    /// LOW_PRIORITY, DELAYED, HIGH_PRIORITY.
    pub priority: Priority,
    /// IGNORE.
    pub ignore: bool,
    /// The table.
    pub table: TableName,
    /// PARTITION (p0, p1).
    pub partitions: Vec<Name>,
    /// The columns, if listed (also from the SET form).
    pub columns: Option<Vec<ColName>>,
    /// The rows.
    pub source: InsertSource,
    /// `AS new [(columns)]`: the row alias.
    pub row_alias: Option<(Name, Vec<Name>)>,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
}

/// Where inserted rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// VALUES (..), (..): each row may be empty (`VALUES ()`). The SET form comes here as one row.
    Values(Vec<Vec<Expr>>),
    /// SELECT, TABLE, VALUES ROW(..).
    Query(Box<Query>),
}

/// Priority words of row changes; only syntax for this engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// None written.
    #[default]
    Normal,
    /// LOW_PRIORITY.
    Low,
    /// HIGH_PRIORITY.
    High,
    /// DELAYED.
    Delayed,
}

/// `column = expr`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// What is written.
    pub column: ColName,
    /// The new value.
    pub value: Expr,
}

/// UPDATE.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// WITH.
    pub with: Option<With>,
    /// LOW_PRIORITY.
    pub low_priority: bool,
    /// IGNORE.
    pub ignore: bool,
    /// One plain table, or the multi-table form.
    pub tables: Vec<TableRef>,
    /// SET, non-empty.
    pub set: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY (single table only).
    pub order: Vec<OrderBy>,
    /// LIMIT (single table only).
    pub limit: Option<Limit>,
}

/// DELETE.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// WITH.
    pub with: Option<With>,
    /// LOW_PRIORITY.
    pub low_priority: bool,
    /// QUICK.
    pub quick: bool,
    /// IGNORE.
    pub ignore: bool,
    /// From where.
    pub target: DeleteTarget,
    /// WHERE.
    pub filter: Option<Expr>,
    /// ORDER BY (single table only).
    pub order: Vec<OrderBy>,
    /// LIMIT (single table only).
    pub limit: Option<Limit>,
}

/// The two forms of DELETE.
#[derive(Debug, Clone, PartialEq)]
pub enum DeleteTarget {
    /// DELETE FROM t.
    Single(TableFactor),
    /// DELETE a, b FROM tables, or DELETE FROM a, b USING tables.
    Multi {
        /// Tables that lose rows.
        targets: Vec<TableName>,
        /// Tables that are read.
        tables: Vec<TableRef>,
    },
}
