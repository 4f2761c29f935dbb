//! Session: one client's state, and the dispatch of its statements.
//!
//! Role: transactions (autocommit, BEGIN, savepoints), the current database, variables, warnings, prepared
//! statements. [`dml`] plans and runs changes and queries, [`ddl`] changes schemas, [`show`] answers SHOW
//! and information_schema, [`vars`] and [`facts`] hold variables, [`sequences`] counts, [`node`] is what
//! all sessions share.
//!
//! A statement that touches tables takes the open transaction out of the session (or begins one of its
//! own), runs, and puts it back. When it fails, only the statement is undone if the transaction lives on;
//! an error that ended the transaction in the cluster ends it here too. A statement that is cut off in the
//! middle drops the transaction, which rolls it back.

pub mod ddl;
mod dml;
pub mod facts;
mod info;
pub mod node;
pub mod sequences;
mod show;
#[cfg(test)]
pub mod tests;
pub mod vars;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use facts::Facts;
pub use node::{Node, NodeConfig, Sessions, SqlNode};

use crate::catalog::types::not_yet;
use crate::exec::errors::to_mysql;
use crate::exec::store::{Mark, Tx};
use crate::expr::{Binder, Scope, SessionFacts};
use crate::parser::ast::{
    Completion, Expr, FlushLock, FlushTarget, Isolation, PrepareSource, SetItem, SetValue, Stmt, VarScope,
};
use crate::parser::{ParseError, Parsed, parse, parse_next};
use crate::protocol::processes::KillRequest;
use crate::protocol::{ColumnDefinition, LoginInfo, OkPacket, Prepared, ResultWriter, Session, StatusFlags};
use crate::value::{ErrorCode, MySqlError, Result, Value, WarningLevel, Warnings, cast};

/// The most statements a session keeps with PREPARE.
const NAMED_STATEMENTS_MAX: usize = 1024;
/// The most savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1024;

/// A statement ready to run again.
#[derive(Debug, Clone)]
pub struct PreparedStatement {
    stmt: Arc<Stmt>,
    params: usize,
}

/// A transaction that stays open between statements.
struct OpenTransaction {
    tx: Tx,
    savepoints: Vec<(String, Mark)>,
    read_only: bool,
}

/// The transaction of the statement under way.
pub(crate) struct Work {
    pub(crate) tx: Tx,
    open: Option<(OpenParts, Mark)>,
}

struct OpenParts {
    savepoints: Vec<(String, Mark)>,
    read_only: bool,
}

impl Work {
    /// Whether the statement is a transaction of its own.
    pub(crate) fn is_own(&self) -> bool {
        self.open.is_none()
    }
}

/// One client's session.
pub struct SqlSession {
    pub(crate) facts: Facts,
    pub(crate) warnings: Warnings,
    transaction: Option<OpenTransaction>,
    named: HashMap<String, PreparedStatement>,
}

fn parse_error(error: ParseError) -> MySqlError {
    MySqlError { code: error.code, sqlstate: error.sqlstate, message: error.message.into() }
}

impl SqlSession {
    /// A session for a client that has logged in.
    pub fn new(node: Arc<SqlNode>, login: LoginInfo) -> Self {
        Self {
            facts: Facts::new(node, login),
            warnings: Warnings::new(),
            transaction: None,
            named: HashMap::new(),
        }
    }

    /// The state for OK and EOF packets.
    pub(crate) fn flags(&self) -> StatusFlags {
        StatusFlags::default()
            .with_if(self.facts.autocommit, StatusFlags::AUTOCOMMIT)
            .with_if(self.transaction.is_some() || !self.facts.own_transaction, StatusFlags::IN_TRANS)
    }

    /// An OK without figures.
    pub(crate) async fn ok(&mut self, out: &mut ResultWriter<'_>) -> Result<()> {
        let ok =
            OkPacket { status: self.flags(), warnings: self.warnings.count_u16(), ..OkPacket::default() };
        out.ok(&ok).await
    }

    /// Takes the open transaction for a statement, opens one if autocommit is off, or begins one of its own.
    pub(crate) async fn begin_work(&mut self, touches_tables: bool, writes: bool) -> Result<Work> {
        self.facts.own_transaction = true;
        if !touches_tables {
            return Ok(Work { tx: Tx::none(), open: None });
        }
        let cluster = self.facts.node.cluster()?;
        if self.transaction.is_none() && !self.facts.autocommit {
            let tx = cluster.begin();
            self.transaction = Some(OpenTransaction { tx, savepoints: Vec::new(), read_only: false });
        }
        let Some(mut open) = self.transaction.take() else {
            return Ok(Work { tx: cluster.begin(), open: None });
        };
        if writes && open.read_only {
            self.transaction = Some(open);
            return Err(MySqlError::new(ErrorCode::CantExecuteInReadOnlyTransaction));
        }
        match open.tx.mark().await {
            Ok(mark) => {
                self.facts.own_transaction = false;
                let parts = OpenParts { savepoints: open.savepoints, read_only: open.read_only };
                Ok(Work { tx: open.tx, open: Some((parts, mark)) })
            }
            Err(error) => {
                if !open.tx.is_over() {
                    self.transaction = Some(open);
                }
                Err(to_mysql(&error, ""))
            }
        }
    }

    /// Ends a statement: commits or undoes it, or puts the transaction back.
    pub(crate) async fn end_work<T>(&mut self, work: Work, result: Result<T>) -> Result<T> {
        self.facts.own_transaction = true;
        let Work { mut tx, open } = work;
        let Some((parts, mark)) = open else {
            if tx.is_over() {
                return result;
            }
            return match result {
                Ok(value) => match tx.commit().await {
                    Ok(()) => Ok(value),
                    Err(error) => Err(to_mysql(&error, "")),
                },
                Err(error) => {
                    tx.abort().await;
                    Err(error)
                }
            };
        };
        let alive = !tx.is_over() && (result.is_ok() || tx.roll_back_to(mark).await.is_ok());
        if alive {
            let OpenParts { savepoints, read_only } = parts;
            self.transaction = Some(OpenTransaction { tx, savepoints, read_only });
        }
        result
    }

    async fn commit(&mut self) -> Result<()> {
        match self.transaction.take() {
            None => Ok(()),
            Some(mut open) => open.tx.commit().await.map_err(|e| to_mysql(&e, "")),
        }
    }

    async fn rollback(&mut self) {
        if let Some(mut open) = self.transaction.take() {
            open.tx.abort().await;
        }
    }

    async fn begin(&mut self, read_only: bool) -> Result<()> {
        self.commit().await?;
        let tx = self.facts.node.cluster()?.begin();
        self.transaction = Some(OpenTransaction { tx, savepoints: Vec::new(), read_only });
        Ok(())
    }

    async fn complete(&mut self, completion: Completion) -> Result<()> {
        if completion.chain == Some(true) { self.begin(false).await } else { Ok(()) }
    }

    async fn savepoint(&mut self, name: &str) -> Result<()> {
        let Some(open) = &mut self.transaction else { return Ok(()) };
        if open.savepoints.len() >= SAVEPOINTS_MAX {
            return Err(MySqlError::text(
                ErrorCode::OutOfResources,
                "too many savepoints in one transaction",
            ));
        }
        let mark = open.tx.mark().await.map_err(|e| to_mysql(&e, ""))?;
        open.savepoints.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        open.savepoints.push((name.to_owned(), mark));
        Ok(())
    }

    /// ROLLBACK TO (keeping the savepoint) and RELEASE.
    async fn leave_savepoint(&mut self, name: &str, roll_back: bool) -> Result<()> {
        let missing = || MySqlError::with(ErrorCode::SpDoesNotExist, &[&"SAVEPOINT", &name]);
        let open = self.transaction.as_mut().ok_or_else(missing)?;
        let at = open.savepoints.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(missing)?;
        let mark = open.savepoints[at].1;
        open.savepoints.truncate(at + usize::from(roll_back));
        if roll_back {
            let done = open.tx.roll_back_to(mark).await;
            if open.tx.is_over() {
                self.transaction = None;
            }
            done.map_err(|e| to_mysql(&e, ""))?;
        }
        Ok(())
    }

    /// Runs one statement and answers the client.
    pub(crate) async fn run(
        &mut self,
        stmt: &Stmt,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        self.facts.statement_micros = facts::now_micros();
        let keeps_warnings = matches!(stmt, Stmt::Show(show) if show::is_diagnostic(show));
        if !keeps_warnings {
            self.facts.last_warnings = count_by_level(&self.warnings);
            self.warnings.clear();
        }
        let result = self.dispatch(stmt, params, out).await;
        if let Err(error) = &result {
            self.facts.row_count = -1;
            if !keeps_warnings {
                self.warnings.push(WarningLevel::Error, error.clone());
            }
        }
        if !keeps_warnings {
            self.facts.last_warnings = count_by_level(&self.warnings);
        }
        result
    }

    async fn dispatch(&mut self, stmt: &Stmt, params: &[Value], out: &mut ResultWriter<'_>) -> Result<()> {
        match stmt {
            Stmt::Query(query) => return self.select(query, params, out).await,
            Stmt::Insert(insert) => return self.insert(insert, params, out).await,
            Stmt::Update(update) => return self.update(update, params, out).await,
            Stmt::Delete(delete) => return self.delete(delete, params, out).await,
            Stmt::Show(show) => return self.show(show, params, out).await,
            Stmt::Describe { table, column } => return self.describe(table, column.as_deref(), out).await,
            Stmt::TableAdmin(admin) => return self.table_admin(admin, out).await,
            Stmt::Explain(_) => return Err(not_yet("EXPLAIN")),
            Stmt::Do(list) => {
                for expr in list {
                    self.evaluate(expr, params)?;
                }
            }
            Stmt::Begin(options) => self.begin(options.read_only == Some(true)).await?,
            Stmt::Commit(completion) => {
                self.commit().await?;
                self.complete(*completion).await?;
            }
            Stmt::Rollback(completion) => {
                self.rollback().await;
                self.complete(*completion).await?;
            }
            Stmt::Savepoint(name) => self.savepoint(name).await?,
            Stmt::RollbackTo(name) => self.leave_savepoint(name, true).await?,
            Stmt::ReleaseSavepoint(name) => self.leave_savepoint(name, false).await?,
            Stmt::Set(items) => self.set(items, params).await?,
            Stmt::SetTransaction(set) => self.note_isolation(set.isolation),
            Stmt::Use(name) => self.use_database(name).await?,
            Stmt::Kill { query_only, id } => self.kill(*query_only, id, params)?,
            Stmt::Flush(targets) => {
                let locks = |t: &FlushTarget| {
                    matches!(t, FlushTarget::Tables(_, FlushLock::Read | FlushLock::Export))
                };
                if targets.iter().any(locks) {
                    return Err(not_yet("FLUSH TABLES WITH READ LOCK"));
                }
            }
            Stmt::UnlockTables => {}
            Stmt::Prepare { name, source } => self.prepare_named(name, source)?,
            Stmt::Execute { name, using } => return self.execute_named(name, using, out).await,
            Stmt::Deallocate(name) => self.deallocate(name)?,
            Stmt::Empty => return Err(MySqlError::new(ErrorCode::EmptyQuery)),
            Stmt::Unsupported { what, .. } => return Err(not_yet(what)),
            other => self.define(other, out).await?,
        }
        self.facts.row_count = 0;
        self.ok(out).await
    }

    /// Schema changes, and what is left.
    async fn define(&mut self, stmt: &Stmt, _: &mut ResultWriter<'_>) -> Result<()> {
        match stmt {
            Stmt::CreateDatabase(create) => self.create_database(create).await,
            Stmt::DropDatabase { if_exists, name } => self.drop_database(name, *if_exists).await,
            Stmt::AlterDatabase { .. } => Err(not_yet("ALTER DATABASE")),
            Stmt::CreateTable(create) => self.create_table(create).await,
            Stmt::DropTable { if_exists, tables, .. } => self.drop_tables(tables, *if_exists).await,
            Stmt::Truncate(table) => self.truncate(table).await,
            Stmt::AlterTable(_) => Err(not_yet("ALTER TABLE")),
            Stmt::RenameTable(_) => Err(not_yet("RENAME TABLE")),
            Stmt::CreateIndex(create) => self.create_index(create).await,
            Stmt::DropIndex { .. } => Err(not_yet("DROP INDEX")),
            Stmt::CreateView(_) | Stmt::DropView { .. } => Err(not_yet("views")),
            Stmt::LockTables(_) => Err(not_yet("LOCK TABLES")),
            Stmt::Xa(_) => Err(not_yet("XA")),
            Stmt::Help(_) => Err(not_yet("HELP")),
            Stmt::Reset(_) => Err(not_yet("RESET")),
            Stmt::SetPassword { .. }
            | Stmt::User(_)
            | Stmt::DropUser { .. }
            | Stmt::RenameUser(_)
            | Stmt::CreateRole { .. }
            | Stmt::DropRole { .. }
            | Stmt::Grant(_)
            | Stmt::Revoke(_) => Err(not_yet("users and grants")),
            _ => Err(MySqlError::internal("a statement went the wrong way")),
        }
    }

    /// The value of an expression without columns.
    pub(crate) fn evaluate(&mut self, expr: &Expr, params: &[Value]) -> Result<Value> {
        let scope = Scope::default();
        let bound = Binder::new(&scope, &self.facts as &dyn SessionFacts, "field list").bind(expr)?;
        let mut env = crate::exec::Env { facts: &self.facts, params, warnings: &mut self.warnings };
        bound.eval_typed(&[], &mut env.eval())
    }

    async fn set(&mut self, items: &[SetItem], params: &[Value]) -> Result<()> {
        for item in items {
            match item {
                SetItem::UserVar(name, expr) => {
                    let value = self.evaluate(expr, params)?;
                    self.facts.set_user_var(name, value)?;
                }
                SetItem::Names { charset, collate } => {
                    vars::set_names(&mut self.facts, charset.as_deref(), collate.as_deref())?;
                }
                SetItem::Charset(charset) => vars::set_names(&mut self.facts, charset.as_deref(), None)?,
                SetItem::SysVar(scope, name, value) => self.set_variable(*scope, name, value, params).await?,
            }
        }
        Ok(())
    }

    async fn set_variable(
        &mut self,
        scope: VarScope,
        name: &str,
        value: &SetValue,
        params: &[Value],
    ) -> Result<()> {
        let value = match value {
            SetValue::Default => None,
            SetValue::Expr(Expr::Col(word)) if word.table.is_none() => Some(Value::text(&word.name)),
            SetValue::Expr(expr) => Some(self.evaluate(expr, params)?),
        };
        let was_on = self.facts.autocommit;
        vars::set(&mut self.facts, scope, name, value)?;
        if self.facts.autocommit && !was_on {
            self.commit().await?;
        }
        Ok(())
    }

    /// Every transaction reads what is committed; who asks for more is told.
    fn note_isolation(&mut self, isolation: Option<Isolation>) {
        if matches!(isolation, Some(Isolation::RepeatableRead | Isolation::Serializable)) {
            let text = "Transactions read committed rows here; the isolation level stays READ COMMITTED";
            self.warnings.warn(MySqlError::text(ErrorCode::NotSupportedYet, text));
        }
    }

    pub(crate) async fn use_database(&mut self, name: &str) -> Result<()> {
        let known = info::is_virtual(name) || {
            let cluster = self.facts.node.cluster()?;
            let all = cluster.databases().await.map_err(|e| to_mysql(&e, ""))?;
            all.iter().any(|known| known == name)
        };
        if !known {
            return Err(MySqlError::with(ErrorCode::BadDb, &[&name]));
        }
        self.facts.database = Some(name.to_owned());
        self.facts.login.process.set_database(Some(name));
        Ok(())
    }

    fn kill(&mut self, query_only: bool, id: &Expr, params: &[Value]) -> Result<()> {
        let value = self.evaluate(id, params)?;
        let id = cast::to_u64(&value, &mut self.warnings);
        let request = if query_only { KillRequest::Query } else { KillRequest::Connection };
        let known = u32::try_from(id).is_ok_and(|id| self.facts.login.processes.kill(id, request));
        if known { Ok(()) } else { Err(MySqlError::with(ErrorCode::NoSuchThread, &[&id])) }
    }

    fn prepare_named(&mut self, name: &str, source: &PrepareSource) -> Result<()> {
        let text = match source {
            PrepareSource::Text(text) => text.to_vec(),
            PrepareSource::Var(var) => {
                let value = self.facts.user_var(var);
                cast::to_text(&value, crate::value::Collation::UTF8MB4_BIN).as_bytes().to_vec()
            }
        };
        let parsed = parse(&text, self.facts.parse_mode()).map_err(parse_error)?;
        let statement = preparable(parsed)?;
        if self.named.len() >= NAMED_STATEMENTS_MAX && !self.named.contains_key(&name.to_lowercase()) {
            return Err(MySqlError::with(ErrorCode::MaxPreparedStmtCountReached, &[&NAMED_STATEMENTS_MAX]));
        }
        self.named.insert(name.to_lowercase(), statement);
        Ok(())
    }

    async fn execute_named(
        &mut self,
        name: &str,
        using: &[crate::parser::ast::Name],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let found = self.named.get(&name.to_lowercase()).cloned();
        let statement =
            found.ok_or_else(|| MySqlError::with(ErrorCode::UnknownStmtHandler, &[&name, &"EXECUTE"]))?;
        if statement.params != using.len() {
            return Err(MySqlError::with(ErrorCode::WrongArguments, &[&"EXECUTE"]));
        }
        let params: Vec<Value> = using.iter().map(|var| self.facts.user_var(var)).collect();
        // A prepared statement is never EXECUTE itself, so this goes one level deep.
        Box::pin(self.dispatch(&statement.stmt, &params, out)).await
    }

    fn deallocate(&mut self, name: &str) -> Result<()> {
        match self.named.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err(MySqlError::with(ErrorCode::UnknownStmtHandler, &[&name, &"DEALLOCATE PREPARE"])),
        }
    }
}

fn count_by_level(warnings: &Warnings) -> (u64, u64) {
    let errors = warnings.iter().filter(|w| w.level == WarningLevel::Error).count() as u64;
    (warnings.count(), errors)
}

fn preparable(parsed: Parsed) -> Result<PreparedStatement> {
    match parsed.stmt {
        Stmt::Prepare { .. } | Stmt::Execute { .. } | Stmt::Deallocate(_) => {
            Err(MySqlError::new(ErrorCode::UnsupportedPs))
        }
        Stmt::Empty => Err(MySqlError::new(ErrorCode::EmptyQuery)),
        stmt => Ok(PreparedStatement { stmt: Arc::new(stmt), params: parsed.params as usize }),
    }
}

impl Session for SqlSession {
    type Statement = PreparedStatement;

    fn status(&self) -> StatusFlags {
        self.flags()
    }

    fn wait_timeout(&self) -> Duration {
        let seconds = match vars::read(&self.facts, VarScope::Session, "wait_timeout") {
            Ok(Value::Int(n)) => n.clamp(1, 31_536_000).unsigned_abs(),
            _ => 28_800,
        };
        Duration::from_secs(seconds)
    }

    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<()> {
        let mode = self.facts.parse_mode();
        let mut rest = sql;
        loop {
            let parsed = if out.multi_statements() { parse_next(rest, mode) } else { parse(rest, mode) };
            let parsed = match parsed.map_err(parse_error) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.warnings.clear();
                    self.warnings.push(WarningLevel::Error, error.clone());
                    self.facts.last_warnings = (1, 1);
                    return Err(error);
                }
            };
            if parsed.params > 0 {
                return Err(MySqlError::parse("?", 1));
            }
            out.set_more_results(parsed.next.is_some());
            self.run(&parsed.stmt, &[], out).await?;
            match parsed.next.and_then(|next| rest.get(next..)) {
                Some(next) => rest = next,
                None => return Ok(()),
            }
        }
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<PreparedStatement>> {
        let parsed = parse(sql, self.facts.parse_mode()).map_err(parse_error)?;
        let statement = preparable(parsed)?;
        let columns = match &*statement.stmt {
            Stmt::Query(query) => self.plan(query).await?.columns,
            _ => Vec::new(),
        };
        let parameters = vec![ColumnDefinition::parameter(); statement.params];
        Ok(Prepared { statement, parameters, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        statement: &mut PreparedStatement,
        parameters: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let stmt = Arc::clone(&statement.stmt);
        self.run(&stmt, parameters, out).await
    }

    async fn init_db(&mut self, database: &str) -> Result<()> {
        self.use_database(database).await
    }

    async fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnDefinition>> {
        self.list_fields(table, wildcard).await
    }

    async fn reset(&mut self) -> Result<()> {
        self.rollback().await;
        let mut fresh = Facts::new(Arc::clone(&self.facts.node), self.facts.login.clone());
        fresh.database = self.facts.database.take();
        self.facts = fresh;
        self.named.clear();
        self.warnings.clear();
        Ok(())
    }

    async fn interrupted(&mut self) {
        self.facts.own_transaction = true;
        self.rollback().await;
    }

    async fn close(mut self) {
        self.rollback().await;
    }
}
