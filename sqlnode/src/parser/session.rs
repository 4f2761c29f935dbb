//! Statements about the session: transactions, SET, USE, PREPARE, LOCK TABLES, KILL, FLUSH, EXPLAIN, table
//! upkeep.

use super::ast::{
    BeginOptions, ColName, Completion, Explain, ExplainTarget, Expr, FlushLock, FlushTarget, Isolation, Name,
    PrepareSource, SetItem, SetTransaction, SetValue, Stmt, TableAdmin, TableLock, TableVerb, VarScope,
};
use super::cursor::{Parser, R};
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// BEGIN and START TRANSACTION.
    pub(super) fn begin(&mut self) -> R<Stmt> {
        let mut options = BeginOptions::default();
        if self.bump().kw == Kw::BEGIN {
            let _ = self.eat(Kw::WORK);
            return Ok(Stmt::Begin(options));
        }
        self.expect(Kw::TRANSACTION)?;
        if self.at_end() {
            return Ok(Stmt::Begin(options));
        }
        self.list(|p| {
            if p.eat(Kw::WITH) {
                p.expect(Kw::CONSISTENT)?;
                p.expect(Kw::SNAPSHOT)?;
                options.snapshot = true;
                return Ok(());
            }
            p.expect(Kw::READ)?;
            options.read_only = Some(p.expect_any(&[Kw::ONLY, Kw::WRITE])? == Kw::ONLY);
            Ok(())
        })?;
        Ok(Stmt::Begin(options))
    }

    /// COMMIT, ROLLBACK and ROLLBACK TO.
    pub(super) fn commit_or_rollback(&mut self) -> R<Stmt> {
        let commit = self.bump().kw == Kw::COMMIT;
        let _ = self.eat(Kw::WORK);
        if !commit && self.eat(Kw::TO) {
            let _ = self.eat(Kw::SAVEPOINT);
            return Ok(Stmt::RollbackTo(self.ident()?));
        }
        let mut completion = Completion::default();
        if self.eat(Kw::AND) {
            completion.chain = Some(!self.eat(Kw::NO));
            self.expect(Kw::CHAIN)?;
        }
        if self.at(Kw::NO) || self.at(Kw::RELEASE) {
            completion.release = Some(!self.eat(Kw::NO));
            self.expect(Kw::RELEASE)?;
        }
        Ok(if commit { Stmt::Commit(completion) } else { Stmt::Rollback(completion) })
    }

    /// SAVEPOINT and RELEASE SAVEPOINT.
    pub(super) fn savepoint(&mut self) -> R<Stmt> {
        if self.eat(Kw::RELEASE) {
            self.expect(Kw::SAVEPOINT)?;
            return Ok(Stmt::ReleaseSavepoint(self.ident()?));
        }
        self.expect(Kw::SAVEPOINT)?;
        Ok(Stmt::Savepoint(self.ident()?))
    }

    /// LOCK TABLES and UNLOCK TABLES (the INSTANCE forms are recognised only).
    pub(super) fn lock_tables(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        let unlock = self.bump().kw == Kw::UNLOCK;
        if self.at(Kw::INSTANCE) {
            let verb = if unlock { "UNLOCK INSTANCE" } else { "LOCK INSTANCE" };
            return Ok(self.unsupported(verb.into(), start));
        }
        self.expect_any(&[Kw::TABLES, Kw::TABLE])?;
        if unlock {
            return Ok(Stmt::UnlockTables);
        }
        Ok(Stmt::LockTables(self.list(|p| {
            let table = p.table_name()?;
            let alias = p.alias()?;
            let _ = p.eat(Kw::LOW_PRIORITY);
            let write = p.expect_any(&[Kw::READ, Kw::WRITE])? == Kw::WRITE;
            let local = !write && p.eat(Kw::LOCAL);
            Ok(TableLock { table, alias, write, local })
        })?))
    }

    /// SET.
    pub(super) fn set(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        self.expect(Kw::SET)?;
        match self.tok.kw {
            Kw::PASSWORD if self.peek().t != T::Dot => return self.set_password(),
            Kw::ROLE => return Ok(self.unsupported("SET ROLE".into(), start)),
            Kw::RESOURCE if self.peek().kw == Kw::GROUP => {
                return Ok(self.unsupported("SET RESOURCE GROUP".into(), start));
            }
            Kw::DEFAULT => return Ok(self.unsupported("SET DEFAULT ROLE".into(), start)),
            Kw::TRANSACTION => return self.set_transaction(VarScope::None),
            Kw::GLOBAL | Kw::SESSION | Kw::LOCAL if self.peek().kw == Kw::TRANSACTION => {
                let scope = self.set_scope();
                return self.set_transaction(scope);
            }
            _ => {}
        }
        Ok(Stmt::Set(self.list(Self::set_item)?))
    }

    /// GLOBAL, SESSION and so on, or nothing.
    fn set_scope(&mut self) -> VarScope {
        match self.eat_any(&[Kw::GLOBAL, Kw::SESSION, Kw::LOCAL, Kw::PERSIST, Kw::PERSIST_ONLY]) {
            Some(Kw::GLOBAL) => VarScope::Global,
            Some(Kw::PERSIST) => VarScope::Persist,
            Some(Kw::PERSIST_ONLY) => VarScope::PersistOnly,
            Some(_) => VarScope::Session,
            None => VarScope::None,
        }
    }

    fn set_item(&mut self) -> R<SetItem> {
        match (self.tok.t, self.tok.kw) {
            (T::At, _) => {
                let name = self.user_var()?;
                self.set_equals()?;
                Ok(SetItem::UserVar(name, self.expr()?))
            }
            (T::AtAt, _) => {
                let var = self.sys_var()?;
                self.set_equals()?;
                Ok(SetItem::SysVar(var.scope, var.name, self.set_value()?))
            }
            (_, Kw::NAMES) if self.peek().t != T::Eq && self.peek().t != T::Assign => {
                self.bump();
                if self.eat(Kw::DEFAULT) {
                    return Ok(SetItem::Names { charset: None, collate: None });
                }
                let charset = Some(self.charset_name()?);
                let collate = if self.eat(Kw::COLLATE) {
                    if self.eat(Kw::DEFAULT) { None } else { Some(self.collation_name()?) }
                } else {
                    None
                };
                Ok(SetItem::Names { charset, collate })
            }
            (_, Kw::CHARACTER | Kw::CHARSET | Kw::CHAR) => {
                if !self.eat(Kw::CHARSET) {
                    self.bump();
                    self.expect(Kw::SET)?;
                }
                Ok(SetItem::Charset(if self.eat(Kw::DEFAULT) { None } else { Some(self.charset_name()?) }))
            }
            _ => {
                let scope = if self.peek().t == T::Eq { VarScope::None } else { self.set_scope() };
                if scope == VarScope::None && !self.at_ident() {
                    return self.fail();
                }
                let name = self.dotted_name()?;
                self.set_equals()?;
                Ok(SetItem::SysVar(scope, name, self.set_value()?))
            }
        }
    }

    fn set_equals(&mut self) -> R<()> {
        if self.eat_t(T::Eq) || self.eat_t(T::Assign) { Ok(()) } else { self.fail() }
    }

    /// The value of a system variable; ON, ALL, BINARY, ROW and SYSTEM are words that no expression begins
    /// with.
    fn set_value(&mut self) -> R<SetValue> {
        let next_ends = matches!(self.peek().t, T::Comma | T::Eof | T::Semi);
        if self.at(Kw::DEFAULT) && next_ends {
            self.bump();
            return Ok(SetValue::Default);
        }
        if self.at_any(&[Kw::ON, Kw::ALL, Kw::BINARY, Kw::ROW, Kw::SYSTEM]) && next_ends {
            return Ok(SetValue::Expr(Expr::Col(ColName::bare(self.any_word()?))));
        }
        Ok(SetValue::Expr(self.expr()?))
    }

    fn set_transaction(&mut self, scope: VarScope) -> R<Stmt> {
        self.expect(Kw::TRANSACTION)?;
        let mut set = SetTransaction { scope, isolation: None, read_only: None };
        self.list(|p| {
            if p.eat(Kw::ISOLATION) {
                p.expect(Kw::LEVEL)?;
                set.isolation = Some(p.isolation()?);
                return Ok(());
            }
            p.expect(Kw::READ)?;
            set.read_only = Some(p.expect_any(&[Kw::ONLY, Kw::WRITE])? == Kw::ONLY);
            Ok(())
        })?;
        Ok(Stmt::SetTransaction(set))
    }

    fn isolation(&mut self) -> R<Isolation> {
        match self.expect_any(&[Kw::READ, Kw::REPEATABLE, Kw::SERIALIZABLE])? {
            Kw::READ => Ok(match self.expect_any(&[Kw::COMMITTED, Kw::UNCOMMITTED])? {
                Kw::COMMITTED => Isolation::ReadCommitted,
                _ => Isolation::ReadUncommitted,
            }),
            Kw::REPEATABLE => {
                self.expect(Kw::READ)?;
                Ok(Isolation::RepeatableRead)
            }
            _ => Ok(Isolation::Serializable),
        }
    }

    fn set_password(&mut self) -> R<Stmt> {
        self.expect(Kw::PASSWORD)?;
        let user = if self.eat(Kw::FOR) { Some(self.user_name()?) } else { None };
        self.set_equals()?;
        Ok(Stmt::SetPassword { user, password: self.string_text()? })
    }

    /// USE.
    pub(super) fn use_database(&mut self) -> R<Stmt> {
        self.expect(Kw::USE)?;
        Ok(Stmt::Use(self.ident()?))
    }

    /// KILL.
    pub(super) fn kill(&mut self) -> R<Stmt> {
        self.expect(Kw::KILL)?;
        let word = self.eat_any(&[Kw::CONNECTION, Kw::QUERY]);
        Ok(Stmt::Kill { query_only: word == Some(Kw::QUERY), id: self.expr()? })
    }

    /// PREPARE, EXECUTE, DEALLOCATE.
    pub(super) fn prepared(&mut self) -> R<Stmt> {
        match self.bump().kw {
            Kw::PREPARE => {
                let name = self.ident()?;
                self.expect(Kw::FROM)?;
                let source = if self.at_t(T::At) {
                    PrepareSource::Var(self.user_var()?)
                } else {
                    PrepareSource::Text(self.string_bytes()?.into())
                };
                Ok(Stmt::Prepare { name, source })
            }
            Kw::EXECUTE => {
                let name = self.ident()?;
                let using = if self.eat(Kw::USING) { self.list(Self::user_var)? } else { Vec::new() };
                Ok(Stmt::Execute { name, using })
            }
            _ => {
                self.expect(Kw::PREPARE)?;
                Ok(Stmt::Deallocate(self.ident()?))
            }
        }
    }

    /// FLUSH.
    pub(super) fn flush(&mut self) -> R<Stmt> {
        self.expect(Kw::FLUSH)?;
        let _ = self.eat_any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
        Ok(Stmt::Flush(self.list(|p| {
            if p.eat_any(&[Kw::TABLES, Kw::TABLE]).is_some() {
                let tables = if p.at_ident() { p.list(Self::table_name)? } else { Vec::new() };
                let lock = if p.eat_seq(&[Kw::WITH, Kw::READ, Kw::LOCK]) {
                    FlushLock::Read
                } else if p.eat_seq(&[Kw::FOR, Kw::EXPORT]) {
                    FlushLock::Export
                } else {
                    FlushLock::None
                };
                return Ok(FlushTarget::Tables(tables, lock));
            }
            let start = p.tok.start;
            while p.at_t(T::Word) {
                p.bump();
            }
            let words = p.text_since(start).to_ascii_uppercase();
            if p.tok.start == start || words.is_empty() {
                p.fail()
            } else {
                Ok(FlushTarget::Other(words.into()))
            }
        })?))
    }

    /// ANALYZE, CHECK, CHECKSUM, OPTIMIZE, REPAIR TABLE.
    pub(super) fn table_admin(&mut self) -> R<Stmt> {
        let verb = match self.bump().kw {
            Kw::ANALYZE => TableVerb::Analyze,
            Kw::CHECK => TableVerb::Check,
            Kw::CHECKSUM => TableVerb::Checksum,
            Kw::OPTIMIZE => TableVerb::Optimize,
            _ => TableVerb::Repair,
        };
        let _ = self.eat_any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
        self.expect_any(&[Kw::TABLE, Kw::TABLES])?;
        let tables = self.list(Self::table_name)?;
        let mut options: Vec<Name> = Vec::new();
        while self.at_t(T::Word) {
            options.push(self.any_word()?.to_ascii_uppercase().into());
        }
        Ok(Stmt::TableAdmin(TableAdmin { verb, tables, options }))
    }

    /// DESCRIBE, DESC and EXPLAIN, which mean the same.
    pub(super) fn describe(&mut self) -> R<Stmt> {
        self.bump();
        let analyze = self.eat(Kw::ANALYZE);
        let mut format = None;
        if self.at(Kw::FORMAT) && self.peek().t == T::Eq {
            self.bump();
            self.bump();
            format = Some(self.ident_or_text()?.to_ascii_uppercase().into());
        }
        let _ = self.eat_any(&[Kw::EXTENDED, Kw::PARTITIONS]);
        if self.eat_seq(&[Kw::FOR, Kw::CONNECTION]) {
            let target = ExplainTarget::Connection(self.uint()?);
            return Ok(Stmt::Explain(Box::new(Explain { analyze, format, target })));
        }
        let statement = matches!(
            self.tok.kw,
            Kw::SELECT
                | Kw::WITH
                | Kw::TABLE
                | Kw::VALUES
                | Kw::INSERT
                | Kw::REPLACE
                | Kw::UPDATE
                | Kw::DELETE
        );
        if statement || self.at_t(T::LParen) || analyze || format.is_some() {
            let target = ExplainTarget::Stmt(self.deeper(Self::explainable)?);
            return Ok(Stmt::Explain(Box::new(Explain { analyze, format, target })));
        }
        let table = self.table_name()?;
        let column = if self.at_t(T::Str) {
            Some(self.string_text()?)
        } else if self.at_ident() {
            Some(self.ident()?)
        } else {
            None
        };
        Ok(Stmt::Describe { table, column })
    }

    /// Statements that EXPLAIN takes.
    fn explainable(&mut self) -> R<Stmt> {
        match self.tok.kw {
            Kw::INSERT | Kw::REPLACE => self.insert(),
            Kw::UPDATE => self.update(None),
            Kw::DELETE => self.delete(None),
            Kw::WITH => self.with_statement(),
            _ => Ok(Stmt::Query(Box::new(self.query()?))),
        }
    }
}
