//! The syntax tree: what a MySQL statement says, before anyone asks what it means.
//!
//! The tree owns everything (no arena, no borrowed text), so a prepared statement is simply kept. It is
//! built once by the parser and read by the planner; nobody changes it in between. Names are kept as
//! written, never folded: which names ignore case is the catalogue's business. Literals are kept as MySQL
//! distinguishes them (integer, decimal, float, string with introducer, hex, bit), because their type
//! decides the type of the expression.
//!
//! Facts the parser guarantees: the height of every tree (expression, set operation, join) is at most
//! [`MAX_HEIGHT`](super::MAX_HEIGHT), so recursive walks and recursive drops are safe; chains of AND and
//! OR, however long, are flat vectors; every vector that the grammar calls non-empty is non-empty;
//! parameters are numbered from 0 in text order.
//!
//! It never resolves a name, checks a type, or knows which statements the executor supports.

mod admin;
mod ddl;
mod expr;
mod query;

pub use admin::*;
pub use ddl::*;
pub use expr::*;
pub use query::*;

/// An identifier as it was written, without its quotes.
pub type Name = Box<str>;

/// A table, view or other schema object, perhaps with its database in front.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, when written as `db.name`.
    pub db: Option<Name>,
    /// The object's own name.
    pub name: Name,
}

/// One whole statement. The list is closed: a new kind of statement breaks every `match` that must know it.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// `SELECT`, `UNION`, `VALUES ROW(..)`, `TABLE t`, with or without `WITH`.
    Query(Box<Query>),
    /// `INSERT` and `REPLACE`.
    Insert(Box<Insert>),
    /// `UPDATE` of one or several tables.
    Update(Box<Update>),
    /// `DELETE` from one or several tables.
    Delete(Box<Delete>),
    /// `DO expr, ...`: evaluate and forget.
    Do(Vec<Expr>),
    /// `TRUNCATE [TABLE] t`.
    Truncate(TableName),

    /// `CREATE DATABASE` / `CREATE SCHEMA`.
    CreateDatabase(CreateDatabase),
    /// `ALTER DATABASE [db] options`.
    AlterDatabase {
        /// The database; the current one when absent.
        name: Option<Name>,
        /// What to change.
        options: Vec<DatabaseOption>,
    },
    /// `DROP DATABASE [IF EXISTS] db`.
    DropDatabase {
        /// Whether a missing database is only a note.
        if_exists: bool,
        /// The database.
        name: Name,
    },
    /// `CREATE TABLE` in all its forms.
    CreateTable(Box<CreateTable>),
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE` of one or several tables.
    DropTable {
        /// `DROP TEMPORARY TABLE`.
        temporary: bool,
        /// Whether missing tables are only notes.
        if_exists: bool,
        /// The tables.
        tables: Vec<TableName>,
    },
    /// `RENAME TABLE a TO b, ...`.
    RenameTable(Vec<(TableName, TableName)>),
    /// `CREATE INDEX`.
    CreateIndex(Box<CreateIndex>),
    /// `DROP INDEX i ON t`.
    DropIndex {
        /// The index.
        index: Name,
        /// Its table.
        table: TableName,
    },
    /// `CREATE [OR REPLACE] VIEW`.
    CreateView(Box<CreateView>),
    /// `DROP VIEW`.
    DropView {
        /// Whether missing views are only notes.
        if_exists: bool,
        /// The views.
        views: Vec<TableName>,
    },

    /// `BEGIN` / `START TRANSACTION`.
    Begin(BeginOptions),
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK` of the whole transaction.
    Rollback(Completion),
    /// `ROLLBACK TO [SAVEPOINT] s`.
    RollbackTo(Name),
    /// `SAVEPOINT s`.
    Savepoint(Name),
    /// `RELEASE SAVEPOINT s`.
    ReleaseSavepoint(Name),
    /// `LOCK TABLES`.
    LockTables(Vec<TableLock>),
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `XA ...`: recognised, kept as text.
    Xa(Box<str>),

    /// `SET a = 1, @b = 2, GLOBAL c = 3`.
    Set(Vec<SetItem>),
    /// `SET [GLOBAL|SESSION] TRANSACTION ...`.
    SetTransaction(SetTransaction),
    /// `SET PASSWORD [FOR u] = '...'`.
    SetPassword {
        /// Whose password; one's own when absent.
        user: Option<UserName>,
        /// The new password.
        password: Box<str>,
    },
    /// `USE db`.
    Use(Name),
    /// `SHOW ...`.
    Show(Box<Show>),
    /// `DESCRIBE t [column]` (the EXPLAIN form is [`Stmt::Explain`]).
    Describe {
        /// The table.
        table: TableName,
        /// A column name or LIKE pattern.
        column: Option<Box<str>>,
    },
    /// `EXPLAIN [FORMAT=..] statement`.
    Explain(Box<Explain>),
    /// `HELP 'topic'`.
    Help(Box<str>),
    /// `KILL [CONNECTION|QUERY] id`.
    Kill {
        /// Only the running statement, not the connection.
        query_only: bool,
        /// The connection's id.
        id: Expr,
    },
    /// `FLUSH what`.
    Flush(Vec<FlushTarget>),
    /// `RESET what`: recognised, kept as text.
    Reset(Box<str>),
    /// `ANALYZE`, `CHECK`, `CHECKSUM`, `OPTIMIZE`, `REPAIR TABLE`.
    TableAdmin(TableAdmin),

    /// `PREPARE s FROM 'text' | @var`.
    Prepare {
        /// The statement's name.
        name: Name,
        /// Where its text comes from.
        source: PrepareSource,
    },
    /// `EXECUTE s [USING @a, @b]`.
    Execute {
        /// The statement's name.
        name: Name,
        /// User variables, without their `@`.
        using: Vec<Name>,
    },
    /// `DEALLOCATE PREPARE s` / `DROP PREPARE s`.
    Deallocate(Name),

    /// `CREATE USER` / `ALTER USER`.
    User(Box<UserStmt>),
    /// `DROP USER`.
    DropUser {
        /// Whether missing users are only notes.
        if_exists: bool,
        /// The users.
        users: Vec<UserName>,
    },
    /// `RENAME USER a TO b`.
    RenameUser(Vec<(UserName, UserName)>),
    /// `CREATE ROLE`.
    CreateRole {
        /// Whether existing roles are only notes.
        if_not_exists: bool,
        /// The roles.
        roles: Vec<UserName>,
    },
    /// `DROP ROLE`.
    DropRole {
        /// Whether missing roles are only notes.
        if_exists: bool,
        /// The roles.
        roles: Vec<UserName>,
    },
    /// `GRANT`.
    Grant(Box<Grant>),
    /// `REVOKE`.
    Revoke(Box<Grant>),

    /// A statement that MySQL knows and this grammar only recognises by its first words (`CREATE TRIGGER`,
    /// `LOAD DATA`, `CALL`, `CHANGE REPLICATION SOURCE`...). The executor refuses it by name, which beats a
    /// syntax error.
    Unsupported {
        /// The words that name it, in capitals: `CREATE TRIGGER`.
        what: Box<str>,
        /// The whole text.
        text: Box<str>,
    },
    /// Nothing but comments: MySQL's error 1065 (or nothing, after another statement).
    Empty,
}
