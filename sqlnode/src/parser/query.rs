//! Queries: SELECT, set operations, VALUES, TABLE, and what stands in FROM.
//!
//! A query is read as body then tail: ORDER BY, LIMIT, locking and INTO belong to the whole, so a SELECT
//! inside a UNION has them only in parentheses. INTERSECT binds tighter than UNION and EXCEPT. Joins are
//! read leftwards; a join that needs an ON takes further joins into its right side until it finds one.

use super::ast::{
    Cte, Expr, IndexHint, IndexHintKind, IndexHintScope, Into, Join, JoinKind, JoinOn, Limit, Lit, LockWait,
    Locking, Name, Query, QueryBody, Select, SelectItem, SelectModifiers, SetOp, TableFactor, TableName,
    TableRef, With,
};
use super::cursor::{Parser, R, lossy};
use super::error::ParseError;
use super::keyword::Kw;
use super::lexer::T;

/// MySQL's limit on tables in one join.
const JOIN_TABLES_MAX: u32 = 61;

impl Parser<'_> {
    /// Whether a query begins here (parentheses not counted).
    pub(super) fn at_query(&self) -> bool {
        match self.tok.kw {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => self.peek().kw == Kw::ROW,
            _ => false,
        }
    }

    /// A whole query, WITH included.
    pub(super) fn query(&mut self) -> R<Query> {
        self.deeper(|p| {
            let with = p.with()?;
            p.query_after(with)
        })
    }

    /// A query after its WITH.
    pub(super) fn query_after(&mut self, with: Option<With>) -> R<Query> {
        let mut into = None;
        let first = self.query_primary(&mut into)?;
        self.query_rest(with, first, into)
    }

    /// A query whose WITH and first operand were taken.
    pub(super) fn query_from(&mut self, with: Option<With>, first: QueryBody) -> R<Query> {
        self.deeper(|p| p.query_rest(with, first, None))
    }

    fn query_rest(&mut self, with: Option<With>, first: QueryBody, mut into: Option<Into>) -> R<Query> {
        let body = self.set_operations(first, 1, &mut into)?;
        let mut query = Query { with, body, order: Vec::new(), limit: None, locking: Vec::new(), into };
        if self.at_end() || self.at_t(T::RParen) {
            return Ok(unwrapped(query));
        }
        if self.eat_seq(&[Kw::ORDER, Kw::BY]) {
            query.order = self.order_list()?;
        }
        query.limit = self.limit()?;
        loop {
            if self.at(Kw::INTO) && query.into.is_none() {
                query.into = Some(self.query_into()?);
            } else if let Some(locking) = self.locking()? {
                query.locking.push(locking);
            } else {
                return Ok(unwrapped(query));
            }
        }
    }

    /// `WITH [RECURSIVE] name [(columns)] AS (query), ...`.
    pub(super) fn with(&mut self) -> R<Option<With>> {
        if !self.eat(Kw::WITH) {
            return Ok(None);
        }
        let recursive = self.eat(Kw::RECURSIVE);
        let ctes = self.list(|p| {
            let name = p.ident()?;
            let columns = if p.at_t(T::LParen) { p.ident_list()? } else { Vec::new() };
            p.expect(Kw::AS)?;
            Ok(Cte { name, columns, query: p.parens(Self::query)? })
        })?;
        Ok(Some(With { recursive, ctes }))
    }

    fn query_primary(&mut self, into: &mut Option<Into>) -> R<QueryBody> {
        match (self.tok.t, self.tok.kw) {
            (_, Kw::SELECT) => Ok(QueryBody::Select(Box::new(self.select(into)?))),
            (_, Kw::TABLE) => {
                self.bump();
                Ok(QueryBody::Table(self.table_name()?))
            }
            (_, Kw::VALUES) => {
                self.bump();
                Ok(QueryBody::Values(self.list(|p| {
                    p.expect(Kw::ROW)?;
                    p.value_row()
                })?))
            }
            (T::LParen, _) => Ok(QueryBody::Query(Box::new(self.parens(Self::query)?))),
            _ => self.fail(),
        }
    }

    /// `(a, DEFAULT, b)`, perhaps empty.
    pub(super) fn value_row(&mut self) -> R<Vec<Expr>> {
        self.expect_t(T::LParen)?;
        if self.eat_t(T::RParen) {
            return Ok(Vec::new());
        }
        let row = self.list(Self::expr)?;
        self.expect_t(T::RParen)?;
        Ok(row)
    }

    /// The set operations of level `min` (1: UNION and EXCEPT, 2: INTERSECT) after a first operand.
    fn set_operations(&mut self, mut left: QueryBody, min: u8, into: &mut Option<Into>) -> R<QueryBody> {
        if !self.at_any(&[Kw::UNION, Kw::EXCEPT, Kw::INTERSECT]) {
            return Ok(left);
        }
        let outer = std::mem::take(&mut self.height);
        let mut height = 0;
        loop {
            let (op, level) = match self.tok.kw {
                Kw::UNION => (SetOp::Union, 1),
                Kw::EXCEPT => (SetOp::Except, 1),
                Kw::INTERSECT => (SetOp::Intersect, 2),
                _ => break,
            };
            if level < min {
                break;
            }
            self.bump();
            let all = self.eat(Kw::ALL);
            if !all {
                let _ = self.eat(Kw::DISTINCT);
            }
            let first = self.query_primary(into)?;
            let right = self.deeper(|p| p.set_operations(first, level + 1, into))?;
            left = QueryBody::Set { op, all, left: Box::new(left), right: Box::new(right) };
            self.grow(&mut height)?;
        }
        self.height = outer.max(height);
        Ok(left)
    }

    fn select(&mut self, into: &mut Option<Into>) -> R<Select> {
        self.expect(Kw::SELECT)?;
        let modifiers = self.select_modifiers();
        let items = self.list(Self::select_item)?;
        if self.at(Kw::INTO) && into.is_none() {
            *into = Some(self.query_into()?);
        }
        let mut select = Select {
            modifiers,
            items,
            from: Vec::new(),
            filter: None,
            group: Vec::new(),
            rollup: false,
            having: None,
            windows: Box::default(),
        };
        if self.eat(Kw::FROM) && !self.eat(Kw::DUAL) {
            select.from = self.list(Self::table_ref)?;
        }
        if self.eat(Kw::WHERE) {
            select.filter = Some(self.expr()?);
        }
        if self.eat_seq(&[Kw::GROUP, Kw::BY]) {
            select.group = self.list(Self::expr)?;
            select.rollup = self.eat_seq(&[Kw::WITH, Kw::ROLLUP]);
        }
        if self.eat(Kw::HAVING) {
            select.having = Some(self.expr()?);
        }
        if self.eat(Kw::WINDOW) {
            let start = self.tok.start;
            self.list(|p| {
                p.ident()?;
                p.expect(Kw::AS)?;
                p.parens(Self::balanced_text)
            })?;
            select.windows = self.text_since(start);
        }
        Ok(select)
    }

    fn select_modifiers(&mut self) -> SelectModifiers {
        let mut m = SelectModifiers::default();
        loop {
            match self.tok.kw {
                Kw::NONE => return m,
                Kw::ALL | Kw::SQL_CACHE => {}
                Kw::DISTINCT | Kw::DISTINCTROW => m.distinct = true,
                Kw::HIGH_PRIORITY => m.high_priority = true,
                Kw::STRAIGHT_JOIN => m.straight_join = true,
                Kw::SQL_SMALL_RESULT => m.small_result = true,
                Kw::SQL_BIG_RESULT => m.big_result = true,
                Kw::SQL_BUFFER_RESULT => m.buffer_result = true,
                Kw::SQL_NO_CACHE => m.no_cache = true,
                Kw::SQL_CALC_FOUND_ROWS => m.calc_found_rows = true,
                _ => return m,
            }
            self.bump();
        }
    }

    fn select_item(&mut self) -> R<SelectItem> {
        if self.eat_t(T::Star) {
            return Ok(SelectItem::Star(None));
        }
        if let Some(table) = self.table_star()? {
            return Ok(SelectItem::Star(Some(table)));
        }
        let start = self.tok.start;
        let expr = self.expr()?;
        let end = self.prev_end;
        let aliased = self.eat(Kw::AS) || self.at_ident() || self.at_t(T::Str);
        let alias = if aliased { Some(self.ident_or_text()?) } else { None };
        let text = match (&alias, &expr) {
            (Some(_), _) | (None, Expr::Col(_)) => Box::default(),
            (None, Expr::Lit(Lit::Str(text))) => lossy(text.to_vec()),
            _ => lossy(self.src.get(start as usize..end as usize).unwrap_or(&[]).to_vec()),
        };
        Ok(SelectItem::Expr { expr, alias, text })
    }

    /// `t.*` or `db.t.*`, if that is what follows.
    fn table_star(&mut self) -> R<Option<TableName>> {
        // A look at the bytes first: most select items are a name that no dot follows.
        let after = self.src.get(self.tok.end as usize..).unwrap_or(&[]);
        if !self.at_ident() || after.iter().find(|c| !c.is_ascii_whitespace()) != Some(&b'.') {
            return Ok(None);
        }
        let (lex, tok, prev_end) = (self.lex, self.tok, self.prev_end);
        let first = self.ident()?;
        self.bump();
        if self.eat_t(T::Star) {
            return Ok(Some(TableName { db: None, name: first }));
        }
        if matches!(self.tok.t, T::Word | T::Quoted) {
            let second = self.any_word()?;
            if self.eat_t(T::Dot) && self.eat_t(T::Star) {
                return Ok(Some(TableName { db: Some(first), name: second }));
            }
        }
        (self.lex, self.tok, self.prev_end) = (lex, tok, prev_end);
        Ok(None)
    }

    fn query_into(&mut self) -> R<Into> {
        self.expect(Kw::INTO)?;
        if self.eat(Kw::OUTFILE) {
            let file = self.string_text()?;
            let start = self.tok.start;
            while !self.at_end() && !self.at_any(&[Kw::FROM, Kw::FOR, Kw::LOCK]) && !self.at_t(T::Bad) {
                self.bump();
            }
            return Ok(Into::Outfile(file, self.text_since(start.min(self.prev_end))));
        }
        if self.eat(Kw::DUMPFILE) {
            return Ok(Into::Dumpfile(self.string_text()?));
        }
        Ok(Into::Vars(self.list(|p| if p.at_t(T::At) { p.user_var() } else { p.ident() })?))
    }

    /// `LIMIT n`, `LIMIT m, n`, `LIMIT n OFFSET m`.
    pub(super) fn limit(&mut self) -> R<Option<Limit>> {
        if !self.eat(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.eat_t(T::Comma) {
            return Ok(Some(Limit { offset: Some(first), count: self.limit_value()? }));
        }
        let offset = if self.eat(Kw::OFFSET) { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { offset, count: first }))
    }

    fn limit_value(&mut self) -> R<Expr> {
        match self.tok.t {
            T::Int => Ok(Expr::Lit(Lit::Int(self.uint()?))),
            T::Param => self.expr_at(super::expr::level::ATOM),
            _ => self.fail(),
        }
    }

    fn locking(&mut self) -> R<Option<Locking>> {
        if self.eat_seq(&[Kw::LOCK, Kw::IN, Kw::SHARE, Kw::MODE]) {
            return Ok(Some(Locking { exclusive: false, of: Vec::new(), wait: LockWait::Wait }));
        }
        if !self.eat(Kw::FOR) {
            return Ok(None);
        }
        let exclusive = self.expect_any(&[Kw::UPDATE, Kw::SHARE])? == Kw::UPDATE;
        let of = if self.eat(Kw::OF) { self.list(Self::table_name)? } else { Vec::new() };
        let wait = if self.eat(Kw::NOWAIT) {
            LockWait::NoWait
        } else if self.eat_seq(&[Kw::SKIP, Kw::LOCKED]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(Locking { exclusive, of, wait }))
    }

    /// A table and everything joined to it.
    pub(super) fn table_ref(&mut self) -> R<TableRef> {
        let first = self.table_factor()?;
        self.joins(first)
    }

    /// The joins after a first table.
    fn joins(&mut self, mut left: TableRef) -> R<TableRef> {
        if !self.at_join() {
            return Ok(left);
        }
        let outer = std::mem::take(&mut self.height);
        let mut height = 0;
        let mut tables = 1;
        while let Some((kind, natural)) = self.join_kind()? {
            tables += 1;
            if tables > JOIN_TABLES_MAX {
                let message =
                    format!("Too many tables; MySQL can only use {JOIN_TABLES_MAX} tables in a join");
                return Err(Box::new(ParseError::other(1116, "HY000", message, self.tok.start as usize)));
            }
            self.height = 0;
            let mut right = self.table_factor()?;
            let needs_on = matches!(kind, JoinKind::Left | JoinKind::Right) && !natural;
            if needs_on && !self.at_any(&[Kw::ON, Kw::USING]) {
                right = self.deeper(|p| p.joins(right))?;
            }
            let on = if natural {
                JoinOn::Natural
            } else if self.eat(Kw::ON) {
                JoinOn::On(self.expr()?)
            } else if self.eat(Kw::USING) {
                JoinOn::Using(self.ident_list()?)
            } else if needs_on {
                return self.fail();
            } else {
                JoinOn::None
            };
            left = TableRef::Join(Box::new(Join { left, right, kind, on }));
            self.grow(&mut height)?;
        }
        self.height = outer.max(height);
        Ok(left)
    }

    fn at_join(&self) -> bool {
        self.at_any(&[Kw::JOIN, Kw::INNER, Kw::CROSS, Kw::LEFT, Kw::RIGHT, Kw::NATURAL, Kw::STRAIGHT_JOIN])
    }

    /// Takes the words of a join: its kind and whether it is NATURAL.
    fn join_kind(&mut self) -> R<Option<(JoinKind, bool)>> {
        if !self.at_join() {
            return Ok(None);
        }
        let natural = self.eat(Kw::NATURAL);
        let kind = match self.tok.kw {
            Kw::STRAIGHT_JOIN if !natural => {
                self.bump();
                return Ok(Some((JoinKind::Straight, false)));
            }
            Kw::LEFT => JoinKind::Left,
            Kw::RIGHT => JoinKind::Right,
            _ => JoinKind::Inner,
        };
        if kind == JoinKind::Inner {
            let _ = self.eat(Kw::INNER) || (!natural && self.eat(Kw::CROSS));
        } else {
            self.bump();
            let _ = self.eat(Kw::OUTER);
        }
        self.expect(Kw::JOIN)?;
        Ok(Some((kind, natural)))
    }

    fn table_factor(&mut self) -> R<TableRef> {
        let lateral = self.eat(Kw::LATERAL);
        if !self.at_t(T::LParen) {
            return if lateral { self.fail() } else { Ok(TableRef::Table(self.table_named()?)) };
        }
        if !self.paren_holds_query() {
            if lateral {
                return self.fail();
            }
            let inner = self.deeper(|p| p.parens(|p| p.list(Self::table_ref)))?;
            return Ok(match <[TableRef; 1]>::try_from(inner) {
                Ok([single]) => single,
                Err(several) => TableRef::Nested(several),
            });
        }
        let query = Box::new(self.parens(Self::query)?);
        let Some(alias) = self.alias()? else {
            let message = "Every derived table must have its own alias";
            return Err(Box::new(ParseError::other(1248, "42000", message, self.tok.start as usize)));
        };
        let columns = if self.at_t(T::LParen) { self.ident_list()? } else { Vec::new() };
        Ok(TableRef::Derived { lateral, query, alias, columns })
    }

    /// At `(` in FROM: whether it holds a query rather than tables. What follows the inner parenthesis
    /// decides:
    /// `((SELECT 1) UNION ..)` does, `((SELECT 1) t JOIN u)` does not.
    fn paren_holds_query(&self) -> bool {
        let mut lex = self.lex;
        let mut token = lex.next();
        let starts_query = |kw| matches!(kw, Kw::SELECT | Kw::WITH | Kw::TABLE | Kw::VALUES);
        if token.t != T::LParen {
            return starts_query(token.kw);
        }
        while token.t == T::LParen {
            token = lex.next();
        }
        if !starts_query(token.kw) {
            return false;
        }
        let mut lex = self.lex;
        let mut open = 0u32;
        loop {
            match lex.next().t {
                T::LParen => open += 1,
                T::RParen if open == 1 => break,
                T::RParen => open -= 1,
                T::Eof | T::Bad | T::Semi => return false,
                _ => {}
            }
        }
        let next = lex.next();
        next.t == T::RParen
            || matches!(next.kw, Kw::UNION | Kw::EXCEPT | Kw::INTERSECT | Kw::ORDER | Kw::LIMIT)
    }

    /// A stored table with partitions, alias and hints.
    pub(super) fn table_named(&mut self) -> R<TableFactor> {
        let name = self.table_name()?;
        let partitions = self.partition_names()?;
        let alias = self.alias()?;
        let mut hints = Vec::new();
        while self.at_any(&[Kw::USE, Kw::FORCE, Kw::IGNORE]) && matches!(self.peek().kw, Kw::INDEX | Kw::KEY)
        {
            hints.push(self.index_hint()?);
        }
        Ok(TableFactor { name, partitions, alias, hints })
    }

    /// `PARTITION (p0, p1)`, or nothing.
    pub(super) fn partition_names(&mut self) -> R<Vec<Name>> {
        if self.at(Kw::PARTITION) && self.peek().t == T::LParen {
            self.bump();
            return self.ident_list();
        }
        Ok(Vec::new())
    }

    /// `[AS] name`, or nothing.
    pub(super) fn alias(&mut self) -> R<Option<Name>> {
        if self.eat(Kw::AS) || self.at_ident() { self.ident_or_text().map(Some) } else { Ok(None) }
    }

    fn index_hint(&mut self) -> R<IndexHint> {
        let kind = match self.bump().kw {
            Kw::USE => IndexHintKind::Use,
            Kw::FORCE => IndexHintKind::Force,
            _ => IndexHintKind::Ignore,
        };
        self.expect_any(&[Kw::INDEX, Kw::KEY])?;
        let scope = if !self.eat(Kw::FOR) {
            IndexHintScope::All
        } else if self.eat(Kw::JOIN) {
            IndexHintScope::Join
        } else {
            let order = self.expect_any(&[Kw::ORDER, Kw::GROUP])? == Kw::ORDER;
            self.expect(Kw::BY)?;
            if order { IndexHintScope::OrderBy } else { IndexHintScope::GroupBy }
        };
        self.expect_t(T::LParen)?;
        let mut indexes = Vec::new();
        if kind != IndexHintKind::Use || !self.at_t(T::RParen) {
            indexes = self.list(|p| if p.at(Kw::PRIMARY) { p.any_word() } else { p.ident() })?;
        }
        self.expect_t(T::RParen)?;
        Ok(IndexHint { kind, scope, indexes })
    }
}

/// A query in parentheses with nothing of its own around it is the query inside.
fn unwrapped(query: Query) -> Query {
    let bare = query.with.is_none()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.locking.is_empty()
        && query.into.is_none();
    match query.body {
        QueryBody::Query(inner) if bare => *inner,
        body => Query { body, ..query },
    }
}
