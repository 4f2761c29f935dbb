//! Whole statements, and those about the session and the server, to text.

use std::fmt::{self, Display, Formatter};

use super::expr::{VarName, scope};
use super::{Id, Text, Var, flag, list, names, write_hex, write_text};
use crate::parser::ast::{
    Auth, BeginOptions, Completion, Explain, ExplainTarget, FlushLock, FlushTarget, Grant, GrantLevel,
    Isolation, Name, PrepareSource, SetItem, SetTransaction, SetValue, Show, ShowFilter, Stmt, TableAdmin,
    TableLock, TableName, TableVerb, UserName, UserSpec, UserStmt, VarScope,
};

impl Display for Stmt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let exists = |on: bool| if on { "IF EXISTS " } else { "" };
        match self {
            Stmt::Query(query) => write!(f, "{query}"),
            Stmt::Insert(insert) => write!(f, "{insert}"),
            Stmt::Update(update) => write!(f, "{update}"),
            Stmt::Delete(delete) => write!(f, "{delete}"),
            Stmt::Do(exprs) => {
                f.write_str("DO ")?;
                list(f, exprs, ", ")
            }
            Stmt::Truncate(table) => write!(f, "TRUNCATE TABLE {table}"),
            Stmt::CreateDatabase(create) => write!(f, "{create}"),
            Stmt::AlterDatabase { name, options } => {
                f.write_str("ALTER DATABASE")?;
                if let Some(name) = name {
                    write!(f, " {}", Id(name))?;
                }
                options.iter().try_for_each(|option| write!(f, " {option}"))
            }
            Stmt::DropDatabase { if_exists, name } => {
                write!(f, "DROP DATABASE {}{}", exists(*if_exists), Id(name))
            }
            Stmt::CreateTable(create) => write!(f, "{create}"),
            Stmt::AlterTable(alter) => write!(f, "{alter}"),
            Stmt::DropTable { temporary, if_exists, tables } => {
                write!(f, "DROP {}TABLE {}", if *temporary { "TEMPORARY " } else { "" }, exists(*if_exists))?;
                list(f, tables, ", ")
            }
            Stmt::RenameTable(pairs) => renames(f, "TABLE", pairs),
            Stmt::CreateIndex(create) => write!(f, "{create}"),
            Stmt::DropIndex { index, table } => write!(f, "DROP INDEX {} ON {table}", Id(index)),
            Stmt::CreateView(create) => write!(f, "{create}"),
            Stmt::DropView { if_exists, views } => {
                write!(f, "DROP VIEW {}", exists(*if_exists))?;
                list(f, views, ", ")
            }
            Stmt::User(user) => write!(f, "{user}"),
            Stmt::DropUser { if_exists, users } => {
                write!(f, "DROP USER {}", exists(*if_exists))?;
                list(f, users, ", ")
            }
            Stmt::RenameUser(pairs) => renames(f, "USER", pairs),
            Stmt::CreateRole { if_not_exists, roles } => {
                write!(f, "CREATE ROLE {}", if *if_not_exists { "IF NOT EXISTS " } else { "" })?;
                list(f, roles, ", ")
            }
            Stmt::DropRole { if_exists, roles } => {
                write!(f, "DROP ROLE {}", exists(*if_exists))?;
                list(f, roles, ", ")
            }
            Stmt::Grant(grant) => write_grant(f, grant, "GRANT", "TO"),
            Stmt::Revoke(grant) => write_grant(f, grant, "REVOKE", "FROM"),
            Stmt::Unsupported { text, .. } => f.write_str(text),
            Stmt::Empty => Ok(()),
            session => write_session(f, session),
        }
    }
}

fn renames<V: Display>(f: &mut Formatter<'_>, what: &str, pairs: &[(V, V)]) -> fmt::Result {
    write!(f, "RENAME {what} ")?;
    for (i, (from, to)) in pairs.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        write!(f, "{from} TO {to}")?;
    }
    Ok(())
}

fn write_session(f: &mut Formatter<'_>, stmt: &Stmt) -> fmt::Result {
    match stmt {
        Stmt::Begin(options) => write!(f, "{options}"),
        Stmt::Commit(completion) => write!(f, "COMMIT{completion}"),
        Stmt::Rollback(completion) => write!(f, "ROLLBACK{completion}"),
        Stmt::RollbackTo(name) => write!(f, "ROLLBACK TO SAVEPOINT {}", Id(name)),
        Stmt::Savepoint(name) => write!(f, "SAVEPOINT {}", Id(name)),
        Stmt::ReleaseSavepoint(name) => write!(f, "RELEASE SAVEPOINT {}", Id(name)),
        Stmt::LockTables(locks) => {
            f.write_str("LOCK TABLES ")?;
            list(f, locks, ", ")
        }
        Stmt::UnlockTables => f.write_str("UNLOCK TABLES"),
        Stmt::Xa(rest) => write!(f, "XA {rest}"),
        Stmt::Set(items) => {
            f.write_str("SET ")?;
            list(f, items, ", ")
        }
        Stmt::SetTransaction(set) => write!(f, "{set}"),
        Stmt::SetPassword { user, password } => {
            f.write_str("SET PASSWORD")?;
            if let Some(user) = user {
                write!(f, " FOR {user}")?;
            }
            write!(f, " = {}", Text(password))
        }
        Stmt::Use(name) => write!(f, "USE {}", Id(name)),
        Stmt::Show(show) => write!(f, "SHOW {show}"),
        Stmt::Describe { table, column } => {
            write!(f, "DESCRIBE {table}")?;
            column.iter().try_for_each(|column| write!(f, " {}", Text(column)))
        }
        Stmt::Explain(explain) => write!(f, "{explain}"),
        Stmt::Help(topic) => write!(f, "HELP {}", Text(topic)),
        Stmt::Kill { query_only, id } => write!(f, "KILL {}{id}", if *query_only { "QUERY " } else { "" }),
        Stmt::Flush(targets) => {
            f.write_str("FLUSH ")?;
            list(f, targets, ", ")
        }
        Stmt::Reset(rest) => write!(f, "RESET {rest}"),
        Stmt::TableAdmin(admin) => write!(f, "{admin}"),
        Stmt::Prepare { name, source } => {
            write!(f, "PREPARE {} FROM ", Id(name))?;
            match source {
                PrepareSource::Text(text) => write_text(f, text),
                PrepareSource::Var(var) => write!(f, "{}", Var(var)),
            }
        }
        Stmt::Execute { name, using } => {
            write!(f, "EXECUTE {}", Id(name))?;
            for (i, var) in using.iter().enumerate() {
                write!(f, "{}{}", if i > 0 { ", " } else { " USING " }, Var(var))?;
            }
            Ok(())
        }
        Stmt::Deallocate(name) => write!(f, "DEALLOCATE PREPARE {}", Id(name)),
        _ => Ok(()),
    }
}

impl Display for BeginOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("START TRANSACTION")?;
        flag(f, self.snapshot, "WITH CONSISTENT SNAPSHOT")?;
        let comma = if self.snapshot { "," } else { "" };
        match self.read_only {
            Some(only) => write!(f, "{comma} READ {}", if only { "ONLY" } else { "WRITE" }),
            None => Ok(()),
        }
    }
}

impl Display for Completion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(chain) = self.chain {
            f.write_str(if chain { " AND CHAIN" } else { " AND NO CHAIN" })?;
        }
        match self.release {
            Some(true) => f.write_str(" RELEASE"),
            Some(false) => f.write_str(" NO RELEASE"),
            None => Ok(()),
        }
    }
}

impl Display for TableLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table)?;
        if let Some(alias) = &self.alias {
            write!(f, " AS {}", Id(alias))?;
        }
        f.write_str(if self.write { " WRITE" } else { " READ" })?;
        flag(f, self.local, "LOCAL")
    }
}

impl Display for SetItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SetItem::UserVar(name, value) => write!(f, "{} = {value}", Var(name)),
            SetItem::SysVar(var_scope, name, value) => {
                // With `@@` a variable may have any name, also one that begins another kind of SET.
                let word = scope(*var_scope).trim_end();
                let dot = if *var_scope == VarScope::None { "" } else { "." };
                write!(f, "@@{word}{dot}{} = ", VarName(name))?;
                match value {
                    SetValue::Default => f.write_str("DEFAULT"),
                    SetValue::Expr(expr) => write!(f, "{expr}"),
                }
            }
            SetItem::Names { charset, collate } => {
                f.write_str("NAMES ")?;
                match charset {
                    Some(charset) => write!(f, "{}", Id(charset))?,
                    None => f.write_str("DEFAULT")?,
                }
                collate.iter().try_for_each(|collate| write!(f, " COLLATE {}", Id(collate)))
            }
            SetItem::Charset(Some(charset)) => write!(f, "CHARACTER SET {}", Id(charset)),
            SetItem::Charset(None) => f.write_str("CHARACTER SET DEFAULT"),
        }
    }
}

impl Display for SetTransaction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "SET {}TRANSACTION ", scope(self.scope))?;
        if let Some(isolation) = self.isolation {
            f.write_str(match isolation {
                Isolation::ReadUncommitted => "ISOLATION LEVEL READ UNCOMMITTED",
                Isolation::ReadCommitted => "ISOLATION LEVEL READ COMMITTED",
                Isolation::RepeatableRead => "ISOLATION LEVEL REPEATABLE READ",
                Isolation::Serializable => "ISOLATION LEVEL SERIALIZABLE",
            })?;
            f.write_str(if self.read_only.is_some() { ", " } else { "" })?;
        }
        match self.read_only {
            Some(only) => f.write_str(if only { "READ ONLY" } else { "READ WRITE" }),
            None => Ok(()),
        }
    }
}

impl Display for ShowFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ShowFilter::None => Ok(()),
            ShowFilter::Like(pattern) => write!(f, " LIKE {}", Text(pattern)),
            ShowFilter::Where(condition) => write!(f, " WHERE {condition}"),
        }
    }
}

fn of_db(f: &mut Formatter<'_>, what: &str, db: Option<&Name>, filter: &ShowFilter) -> fmt::Result {
    f.write_str(what)?;
    if let Some(db) = db {
        write!(f, " FROM {}", Id(db))?;
    }
    write!(f, "{filter}")
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let full_word = |full: bool| if full { "FULL " } else { "" };
        match self {
            Show::Databases(filter) => write!(f, "DATABASES{filter}"),
            Show::Tables { full, db, filter } => {
                f.write_str(full_word(*full))?;
                of_db(f, "TABLES", db.as_ref(), filter)
            }
            Show::Columns { full, table, filter } => {
                write!(f, "{}COLUMNS FROM {table}{filter}", full_word(*full))
            }
            Show::Index { table, filter } => write!(f, "INDEX FROM {table}{filter}"),
            Show::CreateTable(name) => write!(f, "CREATE TABLE {name}"),
            Show::CreateView(name) => write!(f, "CREATE VIEW {name}"),
            Show::CreateDatabase { if_not_exists, name } => {
                write!(
                    f,
                    "CREATE DATABASE {}{}",
                    if *if_not_exists { "IF NOT EXISTS " } else { "" },
                    Id(name)
                )
            }
            Show::CreateUser(user) => write!(f, "CREATE USER {user}"),
            Show::TableStatus { db, filter } => of_db(f, "TABLE STATUS", db.as_ref(), filter),
            Show::OpenTables { db, filter } => of_db(f, "OPEN TABLES", db.as_ref(), filter),
            Show::Triggers { db, filter } => of_db(f, "TRIGGERS", db.as_ref(), filter),
            Show::Events { db, filter } => of_db(f, "EVENTS", db.as_ref(), filter),
            Show::Routines(procedures, filter) => {
                write!(f, "{} STATUS{filter}", if *procedures { "PROCEDURE" } else { "FUNCTION" })
            }
            Show::Warnings(None) => f.write_str("WARNINGS"),
            Show::Warnings(Some(limit)) => write!(f, "WARNINGS {limit}"),
            Show::Errors(None) => f.write_str("ERRORS"),
            Show::Errors(Some(limit)) => write!(f, "ERRORS {limit}"),
            Show::CountWarnings => f.write_str("COUNT(*) WARNINGS"),
            Show::CountErrors => f.write_str("COUNT(*) ERRORS"),
            Show::Variables(var_scope, filter) => write!(f, "{}VARIABLES{filter}", scope(*var_scope)),
            Show::Status(var_scope, filter) => write!(f, "{}STATUS{filter}", scope(*var_scope)),
            Show::Engines => f.write_str("ENGINES"),
            Show::Engine(engine, what) => write!(f, "ENGINE {} {what}", Id(engine)),
            Show::Processlist { full } => write!(f, "{}PROCESSLIST", full_word(*full)),
            Show::Charset(filter) => write!(f, "CHARACTER SET{filter}"),
            Show::Collation(filter) => write!(f, "COLLATION{filter}"),
            Show::Grants(None) => f.write_str("GRANTS"),
            Show::Grants(Some(user)) => write!(f, "GRANTS FOR {user}"),
            Show::Privileges => f.write_str("PRIVILEGES"),
            Show::Plugins => f.write_str("PLUGINS"),
            Show::MasterStatus => f.write_str("BINARY LOG STATUS"),
            Show::ReplicaStatus => f.write_str("REPLICA STATUS"),
            Show::Replicas => f.write_str("REPLICAS"),
            Show::BinaryLogs => f.write_str("BINARY LOGS"),
            Show::Other(words) => f.write_str(words),
        }
    }
}

impl Display for Explain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("EXPLAIN ")?;
        f.write_str(if self.analyze { "ANALYZE " } else { "" })?;
        if let Some(format) = &self.format {
            write!(f, "FORMAT = {} ", Id(format))?;
        }
        match &self.target {
            ExplainTarget::Stmt(stmt) => write!(f, "{stmt}"),
            ExplainTarget::Connection(id) => write!(f, "FOR CONNECTION {id}"),
        }
    }
}

impl Display for FlushTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FlushTarget::Tables(tables, lock) => {
                f.write_str("TABLES")?;
                f.write_str(if tables.is_empty() { "" } else { " " })?;
                list(f, tables, ", ")?;
                f.write_str(match lock {
                    FlushLock::None => "",
                    FlushLock::Read => " WITH READ LOCK",
                    FlushLock::Export => " FOR EXPORT",
                })
            }
            FlushTarget::Other(words) => f.write_str(words),
        }
    }
}

impl Display for TableAdmin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.verb {
            TableVerb::Analyze => "ANALYZE TABLE ",
            TableVerb::Check => "CHECK TABLE ",
            TableVerb::Checksum => "CHECKSUM TABLE ",
            TableVerb::Optimize => "OPTIMIZE TABLE ",
            TableVerb::Repair => "REPAIR TABLE ",
        })?;
        list(f, &self.tables, ", ")?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

impl Display for UserName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            UserName::Current => f.write_str("CURRENT_USER()"),
            UserName::Named { user, host: None } => write!(f, "{}", Text(user)),
            UserName::Named { user, host: Some(host) } => write!(f, "{}@{}", Text(user), Text(host)),
        }
    }
}

impl Display for UserSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.user)?;
        let Some(Auth { plugin, password, hash }) = &self.auth else { return Ok(()) };
        f.write_str(" IDENTIFIED")?;
        if let Some(plugin) = plugin {
            write!(f, " WITH {}", Text(plugin))?;
        }
        if let Some(password) = password {
            write!(f, " BY {}", Text(password))?;
        }
        if let Some(hash) = hash {
            f.write_str(" AS ")?;
            if std::str::from_utf8(hash).is_ok() { write_text(f, hash)? } else { write_hex(f, hash)? }
        }
        Ok(())
    }
}

impl Display for UserStmt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.alter, self.if_exists) {
            (false, false) => "CREATE USER ",
            (false, true) => "CREATE USER IF NOT EXISTS ",
            (true, false) => "ALTER USER ",
            (true, true) => "ALTER USER IF EXISTS ",
        })?;
        list(f, &self.users, ", ")?;
        if !self.default_roles.is_empty() {
            f.write_str(" DEFAULT ROLE ")?;
            list(f, &self.default_roles, ", ")?;
        }
        if !self.require.is_empty() {
            write!(f, " REQUIRE {}", self.require)?;
        }
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

impl Display for GrantLevel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            GrantLevel::Global => f.write_str("*.*"),
            GrantLevel::CurrentDatabase => f.write_str("*"),
            GrantLevel::Database(db) => write!(f, "{}.*", Id(db)),
            GrantLevel::Table(TableName { db, name }) => {
                db.iter().try_for_each(|db| write!(f, "{}.", Id(db)))?;
                write!(f, "{}", Id(name))
            }
        }
    }
}

fn write_grant(f: &mut Formatter<'_>, grant: &Grant, verb: &str, towards: &str) -> fmt::Result {
    match grant {
        Grant::Privileges { privileges, object, level, users, grant_option } => {
            write!(f, "{verb} ")?;
            for (i, (privilege, columns)) in privileges.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                f.write_str(privilege)?;
                if !columns.is_empty() {
                    f.write_str(" (")?;
                    names(f, columns)?;
                    f.write_str(")")?;
                }
            }
            write!(f, " ON {object}{}{level} {towards} ", if object.is_empty() { "" } else { " " })?;
            list(f, users, ", ")?;
            flag(f, *grant_option, "WITH GRANT OPTION")
        }
        Grant::Roles { roles, users, admin_option } => {
            write!(f, "{verb} ")?;
            list(f, roles, ", ")?;
            write!(f, " {towards} ")?;
            list(f, users, ", ")?;
            flag(f, *admin_option, "WITH ADMIN OPTION")
        }
        Grant::All(users) => {
            write!(f, "{verb} ALL PRIVILEGES, GRANT OPTION {towards} ")?;
            list(f, users, ", ")
        }
        Grant::Proxy { on, users, grant_option } => {
            write!(f, "{verb} PROXY ON {on} {towards} ")?;
            list(f, users, ", ")?;
            flag(f, *grant_option, "WITH GRANT OPTION")
        }
    }
}
