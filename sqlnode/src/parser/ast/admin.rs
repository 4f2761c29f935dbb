//! Statements about the session and the server: transactions, SET, SHOW, users, table upkeep.

use super::{Expr, Name, Stmt, TableName, VarScope};

/// START TRANSACTION's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BeginOptions {
    /// WITH CONSISTENT SNAPSHOT.
    pub snapshot: bool,
    /// READ ONLY is `Some(true)`, READ WRITE `Some(false)`.
    pub read_only: Option<bool>,
}

/// What follows COMMIT and ROLLBACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// AND CHAIN is `Some(true)`, AND NO CHAIN `Some(false)`.
    pub chain: Option<bool>,
    /// RELEASE is `Some(true)`, NO RELEASE `Some(false)`.
    pub release: Option<bool>,
}

/// One table of LOCK TABLES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLock {
    /// The table.
    pub table: TableName,
    /// Its alias.
    pub alias: Option<Name>,
    /// WRITE instead of READ.
    pub write: bool,
    /// READ LOCAL.
    pub local: bool,
}

/// One assignment of SET.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `@name = expr`.
    UserVar(Name, Expr),
    /// A system variable. `ON`, `OFF`, `utf8mb4` and other bare words arrive as an unqualified column.
    SysVar(VarScope, Name, SetValue),
    /// `NAMES charset [COLLATE c]`; no charset for DEFAULT.
    Names {
        /// Charset.
        charset: Option<Name>,
        /// Collation.
        collate: Option<Name>,
    },
    /// `CHARACTER SET charset`; none for DEFAULT.
    Charset(Option<Name>),
}

/// The right side of SET for a system variable.
#[derive(Debug, Clone, PartialEq)]
pub enum SetValue {
    /// DEFAULT.
    Default,
    /// Any expression; bare words are unqualified columns.
    Expr(Expr),
}

/// SET TRANSACTION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetTransaction {
    /// GLOBAL, SESSION, or the next transaction only.
    pub scope: VarScope,
    /// ISOLATION LEVEL.
    pub isolation: Option<Isolation>,
    /// READ ONLY is `Some(true)`.
    pub read_only: Option<bool>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// Which rows a SHOW returns.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowFilter {
    /// All.
    None,
    /// LIKE 'pattern'.
    Like(Box<str>),
    /// WHERE over the shown columns.
    Where(Expr),
}

/// SHOW.
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// SHOW DATABASES.
    Databases(ShowFilter),
    /// SHOW [FULL] TABLES.
    Tables {
        /// FULL.
        full: bool,
        /// FROM db.
        db: Option<Name>,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW [FULL] COLUMNS.
    Columns {
        /// FULL.
        full: bool,
        /// The table.
        table: TableName,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW INDEX.
    Index {
        /// The table.
        table: TableName,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW CREATE TABLE.
    CreateTable(TableName),
    /// SHOW CREATE VIEW.
    CreateView(TableName),
    /// SHOW CREATE DATABASE.
    CreateDatabase {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The database.
        name: Name,
    },
    /// SHOW CREATE USER; none for CURRENT_USER.
    CreateUser(UserName),
    /// SHOW TABLE STATUS.
    TableStatus {
        /// FROM db.
        db: Option<Name>,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW OPEN TABLES.
    OpenTables {
        /// FROM db.
        db: Option<Name>,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW TRIGGERS.
    Triggers {
        /// FROM db.
        db: Option<Name>,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW EVENTS.
    Events {
        /// FROM db.
        db: Option<Name>,
        /// Which.
        filter: ShowFilter,
    },
    /// SHOW PROCEDURE STATUS (true) or FUNCTION STATUS.
    Routines(bool, ShowFilter),
    /// SHOW WARNINGS [LIMIT].
    Warnings(Option<super::Limit>),
    /// SHOW ERRORS [LIMIT].
    Errors(Option<super::Limit>),
    /// SHOW COUNT(*) WARNINGS.
    CountWarnings,
    /// SHOW COUNT(*) ERRORS.
    CountErrors,
    /// SHOW [GLOBAL|SESSION] VARIABLES.
    Variables(VarScope, ShowFilter),
    /// SHOW [GLOBAL|SESSION] STATUS.
    Status(VarScope, ShowFilter),
    /// SHOW [STORAGE] ENGINES.
    Engines,
    /// SHOW ENGINE e STATUS | MUTEX | LOGS (the word in capitals).
    Engine(Name, &'static str),
    /// SHOW [FULL] PROCESSLIST.
    Processlist {
        /// FULL.
        full: bool,
    },
    /// SHOW CHARACTER SET.
    Charset(ShowFilter),
    /// SHOW COLLATION.
    Collation(ShowFilter),
    /// SHOW GRANTS [FOR user].
    Grants(Option<UserName>),
    /// SHOW PRIVILEGES.
    Privileges,
    /// SHOW PLUGINS.
    Plugins,
    /// SHOW MASTER STATUS / BINARY LOG STATUS.
    MasterStatus,
    /// SHOW REPLICA STATUS / SLAVE STATUS.
    ReplicaStatus,
    /// SHOW REPLICAS / SLAVE HOSTS.
    Replicas,
    /// SHOW BINARY LOGS / MASTER LOGS.
    BinaryLogs,
    /// SHOW BINLOG EVENTS and RELAYLOG EVENTS, PROFILE, PROFILES and other rare ones: the words as written.
    Other(Box<str>),
}

/// EXPLAIN of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// ANALYZE.
    pub analyze: bool,
    /// FORMAT, in capitals.
    pub format: Option<Name>,
    /// What is explained.
    pub target: ExplainTarget,
}

/// What EXPLAIN explains.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainTarget {
    /// A statement.
    Stmt(Stmt),
    /// FOR CONNECTION n.
    Connection(u64),
}

/// What FLUSH flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlushTarget {
    /// TABLES [list] [WITH READ LOCK | FOR EXPORT].
    Tables(Vec<TableName>, FlushLock),
    /// LOGS, PRIVILEGES, STATUS, HOSTS, BINARY LOGS...: the words in capitals.
    Other(Box<str>),
}

/// How FLUSH TABLES leaves the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushLock {
    /// Unlocked.
    None,
    /// WITH READ LOCK.
    Read,
    /// FOR EXPORT.
    Export,
}

/// Upkeep of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAdmin {
    /// Which.
    pub verb: TableVerb,
    /// On which tables.
    pub tables: Vec<TableName>,
    /// Options (QUICK, EXTENDED, FOR UPGRADE...), in capitals.
    pub options: Vec<Name>,
}

/// Kinds of upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum TableVerb {
    Analyze,
    Check,
    Checksum,
    Optimize,
    Repair,
}

/// Where PREPARE takes its text from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareSource {
    /// A string.
    Text(Box<[u8]>),
    /// A user variable, without its `@`.
    Var(Name),
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UserName {
    /// `user@host`; the host is `%` when not written.
    Named {
        /// User.
        user: Box<str>,
        /// Host, if written.
        host: Option<Box<str>>,
    },
    /// CURRENT_USER.
    Current,
}

/// CREATE USER or ALTER USER.
#[derive(Debug, Clone, PartialEq)]
pub struct UserStmt {
    /// ALTER instead of CREATE.
    pub alter: bool,
    /// IF NOT EXISTS, or IF EXISTS for ALTER.
    pub if_exists: bool,
    /// The users.
    pub users: Vec<UserSpec>,
    /// DEFAULT ROLE.
    pub default_roles: Vec<UserName>,
    /// REQUIRE, as words in capitals with values as written; empty when absent.
    pub require: Box<str>,
    /// WITH limits, PASSWORD and ACCOUNT options, COMMENT, ATTRIBUTE: as words.
    pub options: Vec<Box<str>>,
}

/// One user with authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// Who.
    pub user: UserName,
    /// How; nothing for an unchanged or empty password.
    pub auth: Option<Auth>,
}

/// IDENTIFIED.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// WITH plugin.
    pub plugin: Option<Name>,
    /// BY 'password'.
    pub password: Option<Box<str>>,
    /// AS 'hash'.
    pub hash: Option<Box<[u8]>>,
}

/// GRANT or REVOKE.
#[derive(Debug, Clone, PartialEq)]
pub enum Grant {
    /// Privileges on something.
    Privileges {
        /// Privilege words in capitals, with their columns.
        privileges: Vec<(Name, Vec<Name>)>,
        /// TABLE, FUNCTION or PROCEDURE before the level, if written.
        object: &'static str,
        /// On what.
        level: GrantLevel,
        /// To or from whom.
        users: Vec<UserSpec>,
        /// WITH GRANT OPTION.
        grant_option: bool,
    },
    /// Roles.
    Roles {
        /// The roles.
        roles: Vec<UserName>,
        /// To or from whom.
        users: Vec<UserName>,
        /// WITH ADMIN OPTION.
        admin_option: bool,
    },
    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM users.
    All(Vec<UserName>),
    /// PROXY ON user.
    Proxy {
        /// The account one may act as.
        on: UserName,
        /// To or from whom.
        users: Vec<UserName>,
        /// WITH GRANT OPTION.
        grant_option: bool,
    },
}

/// What a privilege is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantLevel {
    /// `*.*`.
    Global,
    /// `*`: the current database.
    CurrentDatabase,
    /// `db.*`.
    Database(Name),
    /// `db.t` or `t`.
    Table(TableName),
}
