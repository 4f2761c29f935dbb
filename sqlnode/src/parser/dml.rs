//! Row changes: INSERT, REPLACE, UPDATE, DELETE, and DO.

use super::ast::{
    Assignment, ColName, Delete, DeleteTarget, Expr, Insert, InsertSource, Name, Priority, Stmt, TableName,
    Update, With,
};
use super::cursor::{Parser, R};
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// INSERT and REPLACE.
    pub(super) fn insert(&mut self) -> R<Stmt> {
        let replace = self.bump().kw == Kw::REPLACE;
        let priority = match self.eat_any(&[Kw::LOW_PRIORITY, Kw::DELAYED, Kw::HIGH_PRIORITY]) {
            Some(Kw::LOW_PRIORITY) => Priority::Low,
            Some(Kw::DELAYED) => Priority::Delayed,
            Some(_) if replace => return self.fail(),
            Some(_) => Priority::High,
            None => Priority::Normal,
        };
        let ignore = !replace && self.eat(Kw::IGNORE);
        let _ = self.eat(Kw::INTO);
        let table = self.table_name()?;
        let partitions = self.partition_names()?;
        let mut insert = Insert {
            replace,
            priority,
            ignore,
            table,
            partitions,
            columns: None,
            source: InsertSource::Values(Vec::new()),
            row_alias: None,
            on_duplicate: Vec::new(),
        };
        if self.at_t(T::LParen) && !self.paren_starts_query() {
            insert.columns = Some(self.insert_columns()?);
        }
        self.insert_source(&mut insert)?;
        if self.eat_seq(&[Kw::ON, Kw::DUPLICATE, Kw::KEY, Kw::UPDATE]) {
            if replace {
                return self.fail();
            }
            insert.on_duplicate = self.list(Self::assignment)?;
        }
        Ok(Stmt::Insert(Box::new(insert)))
    }

    /// Whether the parentheses here (one or more) open a query.
    fn paren_starts_query(&self) -> bool {
        let mut lex = self.lex;
        let mut token = lex.next();
        while token.t == T::LParen {
            token = lex.next();
        }
        matches!(token.kw, Kw::SELECT | Kw::WITH | Kw::TABLE)
    }

    fn insert_columns(&mut self) -> R<Vec<ColName>> {
        self.expect_t(T::LParen)?;
        if self.eat_t(T::RParen) {
            return Ok(Vec::new());
        }
        let columns = self.list(Self::col_name)?;
        self.expect_t(T::RParen)?;
        Ok(columns)
    }

    fn insert_source(&mut self, insert: &mut Insert) -> R<()> {
        if self.at(Kw::SET) && insert.columns.is_none() {
            self.bump();
            let (columns, row) =
                self.list(Self::assignment)?.into_iter().map(|a| (a.column, a.value)).unzip();
            insert.columns = Some(columns);
            insert.source = InsertSource::Values(vec![row]);
        } else if self.at_any(&[Kw::VALUES, Kw::VALUE]) {
            self.bump();
            let rows = self.list(|p| {
                let _ = p.eat(Kw::ROW);
                p.value_row()
            })?;
            insert.source = InsertSource::Values(rows);
        } else {
            insert.source = InsertSource::Query(Box::new(self.query()?));
            return Ok(());
        }
        if !insert.replace && self.eat(Kw::AS) {
            let alias = self.ident()?;
            let columns: Vec<Name> = if self.at_t(T::LParen) { self.ident_list()? } else { Vec::new() };
            insert.row_alias = Some((alias, columns));
        }
        Ok(())
    }

    /// `column = expr`.
    pub(super) fn assignment(&mut self) -> R<Assignment> {
        let column = self.col_name()?;
        if !self.eat_t(T::Eq) {
            self.expect_t(T::Assign)?;
        }
        Ok(Assignment { column, value: self.expr()? })
    }

    /// WHERE, or nothing.
    fn filter(&mut self) -> R<Option<Expr>> {
        if self.eat(Kw::WHERE) { self.expr().map(Some) } else { Ok(None) }
    }

    /// UPDATE.
    pub(super) fn update(&mut self, with: Option<With>) -> R<Stmt> {
        self.expect(Kw::UPDATE)?;
        let low_priority = self.eat(Kw::LOW_PRIORITY);
        let ignore = self.eat(Kw::IGNORE);
        let tables = self.list(Self::table_ref)?;
        self.expect(Kw::SET)?;
        let set = self.list(Self::assignment)?;
        let filter = self.filter()?;
        let mut update =
            Update { with, low_priority, ignore, tables, set, filter, order: Vec::new(), limit: None };
        if self.eat_seq(&[Kw::ORDER, Kw::BY]) {
            update.order = self.order_list()?;
        }
        update.limit = self.change_limit()?;
        Ok(Stmt::Update(Box::new(update)))
    }

    /// LIMIT of UPDATE and DELETE, which has no offset.
    fn change_limit(&mut self) -> R<Option<super::ast::Limit>> {
        let limit = self.limit()?;
        if limit.as_ref().is_some_and(|limit| limit.offset.is_some()) { self.fail() } else { Ok(limit) }
    }

    /// DELETE.
    pub(super) fn delete(&mut self, with: Option<With>) -> R<Stmt> {
        self.expect(Kw::DELETE)?;
        let (mut low_priority, mut quick, mut ignore) = (false, false, false);
        while let Some(word) = self.eat_any(&[Kw::LOW_PRIORITY, Kw::QUICK, Kw::IGNORE]) {
            match word {
                Kw::LOW_PRIORITY => low_priority = true,
                Kw::QUICK => quick = true,
                _ => ignore = true,
            }
        }
        let target = self.delete_target()?;
        let filter = self.filter()?;
        let mut delete =
            Delete { with, low_priority, quick, ignore, target, filter, order: Vec::new(), limit: None };
        if matches!(delete.target, DeleteTarget::Single(_)) {
            if self.eat_seq(&[Kw::ORDER, Kw::BY]) {
                delete.order = self.order_list()?;
            }
            delete.limit = self.change_limit()?;
        }
        Ok(Stmt::Delete(Box::new(delete)))
    }

    fn delete_target(&mut self) -> R<DeleteTarget> {
        if !self.eat(Kw::FROM) {
            let targets = self.list(Self::delete_table)?;
            self.expect(Kw::FROM)?;
            return Ok(DeleteTarget::Multi { targets, tables: self.list(Self::table_ref)? });
        }
        let (lex, tok, prev_end) = (self.lex, self.tok, self.prev_end);
        let targets = self.list(Self::delete_table)?;
        if self.eat(Kw::USING) {
            return Ok(DeleteTarget::Multi { targets, tables: self.list(Self::table_ref)? });
        }
        // A single table after all: read it again with its alias and partitions.
        (self.lex, self.tok, self.prev_end) = (lex, tok, prev_end);
        let name = self.table_name()?;
        let mut alias = self.alias()?;
        let partitions = self.partition_names()?;
        if alias.is_none() {
            alias = self.alias()?;
        }
        Ok(DeleteTarget::Single(super::ast::TableFactor { name, partitions, alias, hints: Vec::new() }))
    }

    /// `t`, `db.t`, `t.*`, `db.t.*`.
    fn delete_table(&mut self) -> R<TableName> {
        let first = self.ident()?;
        if !self.eat_t(T::Dot) || self.eat_t(T::Star) {
            return Ok(TableName { db: None, name: first });
        }
        let name = self.any_word()?;
        if self.eat_t(T::Dot) {
            self.expect_t(T::Star)?;
        }
        Ok(TableName { db: Some(first), name })
    }

    /// A statement that begins with WITH.
    pub(super) fn with_statement(&mut self) -> R<Stmt> {
        let with = self.with()?;
        match self.tok.kw {
            Kw::UPDATE => self.update(with),
            Kw::DELETE => self.delete(with),
            _ => Ok(Stmt::Query(Box::new(self.query_after(with)?))),
        }
    }

    /// DO.
    pub(super) fn do_statement(&mut self) -> R<Stmt> {
        self.expect(Kw::DO)?;
        Ok(Stmt::Do(self.list(Self::expr)?))
    }
}
