//! Schema statements: CREATE, DROP, RENAME, TRUNCATE of databases, tables, indexes and views.

use super::ast::{
    CreateDatabase, CreateIndex, CreateTable, CreateView, DatabaseOption, DuplicateRows, ForeignKey,
    IndexType, KeyDef, KeyKind, KeyOptions, KeyPart, Name, RefAction, Reference, Stmt, TableOption,
};
use super::cursor::{Parser, R, lossy};
use super::keyword::Kw;
use super::lexer::T;

/// An element of a table's definition that is not a column.
pub(super) enum Constraint {
    Key(KeyDef),
    Foreign(ForeignKey),
    Check(super::ast::CheckDef),
}

impl Parser<'_> {
    /// CREATE anything.
    pub(super) fn create(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        self.expect(Kw::CREATE)?;
        let or_replace = self.eat_seq(&[Kw::OR, Kw::REPLACE]);
        match self.tok.kw {
            Kw::TABLE | Kw::TEMPORARY if !or_replace => self.create_table(),
            Kw::DATABASE | Kw::SCHEMA if !or_replace => self.create_database(),
            Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL | Kw::INDEX if !or_replace => self.create_index(),
            Kw::USER if !or_replace => self.user_statement(false),
            Kw::ROLE if !or_replace => {
                self.bump();
                let if_not_exists = self.if_not_exists();
                Ok(Stmt::CreateRole { if_not_exists, roles: self.list(Self::user_name)? })
            }
            _ => self.create_view_or_other(start, or_replace),
        }
    }

    /// CREATE VIEW, behind its many words; any other CREATE is recognised only.
    fn create_view_or_other(&mut self, start: u32, or_replace: bool) -> R<Stmt> {
        if self.eat(Kw::ALGORITHM) {
            self.eat_eq();
            self.expect_any(&[Kw::UNDEFINED, Kw::MERGE, Kw::TEMPTABLE])?;
        }
        if self.eat(Kw::DEFINER) {
            self.eat_eq();
            self.user_name()?;
        }
        if self.eat(Kw::SQL) {
            self.expect(Kw::SECURITY)?;
            self.expect_any(&[Kw::DEFINER, Kw::INVOKER])?;
        }
        if self.eat(Kw::VIEW) {
            return self.create_view(or_replace);
        }
        let _ = self.eat(Kw::AGGREGATE);
        let known = [
            Kw::TRIGGER,
            Kw::PROCEDURE,
            Kw::FUNCTION,
            Kw::EVENT,
            Kw::TABLESPACE,
            Kw::LOGFILE,
            Kw::SERVER,
            Kw::RESOURCE,
        ];
        match self.eat_any(&known) {
            Some(kw) => Ok(self.unsupported(format!("CREATE {}", kw.name()), start)),
            None => self.fail(),
        }
    }

    /// A statement recognised by its first words. Its body may hold semicolons, so it takes the whole text.
    pub(super) fn unsupported(&mut self, what: String, start: u32) -> Stmt {
        while !matches!(self.tok.t, T::Eof | T::Bad) {
            self.bump();
        }
        Stmt::Unsupported { what: what.into(), text: self.text_since(start) }
    }

    fn create_view(&mut self, or_replace: bool) -> R<Stmt> {
        let name = self.table_name()?;
        let columns = if self.at_t(T::LParen) { self.ident_list()? } else { Vec::new() };
        self.expect(Kw::AS)?;
        let start = self.tok.start;
        let query = self.query()?;
        let text = self.text_since(start);
        if self.eat(Kw::WITH) {
            let _ = self.eat_any(&[Kw::CASCADED, Kw::LOCAL]);
            self.expect(Kw::CHECK)?;
            self.expect(Kw::OPTION)?;
        }
        Ok(Stmt::CreateView(Box::new(CreateView { or_replace, name, columns, query, text })))
    }

    fn create_database(&mut self) -> R<Stmt> {
        self.bump();
        let if_not_exists = self.if_not_exists();
        let name = self.ident()?;
        Ok(Stmt::CreateDatabase(CreateDatabase { if_not_exists, name, options: self.database_options()? }))
    }

    /// ALTER DATABASE after its first two words.
    pub(super) fn alter_database(&mut self) -> R<Stmt> {
        let option_follows = self.at_any(&[Kw::DEFAULT, Kw::CHARACTER, Kw::CHARSET, Kw::COLLATE]);
        let name = if option_follows { None } else { Some(self.ident()?) };
        let options = self.database_options()?;
        if options.is_empty() { self.fail() } else { Ok(Stmt::AlterDatabase { name, options }) }
    }

    fn database_options(&mut self) -> R<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        loop {
            let default = self.eat(Kw::DEFAULT);
            match self.tok.kw {
                Kw::CHARACTER | Kw::CHAR | Kw::CHARSET => {
                    options.push(DatabaseOption::Charset(self.charset_clause()?));
                }
                Kw::COLLATE => {
                    self.bump();
                    self.eat_eq();
                    options.push(DatabaseOption::Collate(self.collation_name()?));
                }
                Kw::ENCRYPTION => {
                    self.bump();
                    self.eat_eq();
                    options.push(DatabaseOption::Encryption(self.string_text()?));
                }
                Kw::READ => {
                    self.bump();
                    self.expect(Kw::ONLY)?;
                    self.eat_eq();
                    let on = !self.eat(Kw::DEFAULT) && self.uint()? != 0;
                    options.push(DatabaseOption::ReadOnly(on));
                }
                _ if default => return self.fail(),
                _ => return Ok(options),
            }
        }
    }

    fn create_table(&mut self) -> R<Stmt> {
        let temporary = self.eat(Kw::TEMPORARY);
        self.expect(Kw::TABLE)?;
        let if_not_exists = self.if_not_exists();
        let name = self.table_name()?;
        let mut table = CreateTable {
            temporary,
            if_not_exists,
            name,
            like: None,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            options: Vec::new(),
            partition: None,
            select: None,
        };
        if self.eat(Kw::LIKE) {
            table.like = Some(self.table_name()?);
            return Ok(Stmt::CreateTable(Box::new(table)));
        }
        if self.at_t(T::LParen) && self.peek().kw == Kw::LIKE {
            self.bump();
            self.bump();
            table.like = Some(self.table_name()?);
            self.expect_t(T::RParen)?;
            return Ok(Stmt::CreateTable(Box::new(table)));
        }
        if self.at_t(T::LParen) && !matches!(self.peek().kw, Kw::SELECT | Kw::WITH | Kw::TABLE) {
            self.parens(|p| p.list(|p| p.table_element(&mut table)))?;
        }
        table.options = self.table_options()?;
        if self.at(Kw::PARTITION) {
            table.partition = Some(self.partition_by()?);
        }
        let duplicates = match self.eat_any(&[Kw::IGNORE, Kw::REPLACE]) {
            Some(Kw::IGNORE) => DuplicateRows::Ignore,
            Some(_) => DuplicateRows::Replace,
            None => DuplicateRows::Error,
        };
        let must = self.eat(Kw::AS) || duplicates != DuplicateRows::Error;
        if must || self.at_query() || self.at_t(T::LParen) {
            table.select = Some((duplicates, Box::new(self.query()?)));
        }
        if table.columns.is_empty() && table.select.is_none() {
            let message = "A table must have at least 1 column";
            let offset = self.tok.start as usize;
            return Err(Box::new(super::ParseError::other(1113, "42000", message, offset)));
        }
        Ok(Stmt::CreateTable(Box::new(table)))
    }

    fn table_element(&mut self, table: &mut CreateTable) -> R<()> {
        match self.constraint()? {
            Some(Constraint::Key(key)) => table.keys.push(key),
            Some(Constraint::Foreign(key)) => table.foreign_keys.push(key),
            Some(Constraint::Check(check)) => table.checks.push(check),
            None => {
                let column = self.column_def()?;
                table.columns.push(column);
            }
        }
        Ok(())
    }

    /// A key, foreign key or check, if one begins here.
    pub(super) fn constraint(&mut self) -> R<Option<Constraint>> {
        let mut name = None;
        let named = self.eat(Kw::CONSTRAINT);
        if named && self.at_ident() {
            name = Some(self.ident()?);
        }
        let kind = match self.tok.kw {
            Kw::PRIMARY => {
                self.bump();
                self.expect(Kw::KEY)?;
                KeyKind::Primary
            }
            Kw::UNIQUE => {
                self.bump();
                let _ = self.eat_any(&[Kw::INDEX, Kw::KEY]);
                KeyKind::Unique
            }
            Kw::FOREIGN => return Ok(Some(Constraint::Foreign(self.foreign_key(name)?))),
            Kw::CHECK => return Ok(Some(Constraint::Check(self.check(name)?))),
            _ if named => return self.fail(),
            Kw::INDEX | Kw::KEY => {
                self.bump();
                KeyKind::Index
            }
            kw @ (Kw::FULLTEXT | Kw::SPATIAL) => {
                self.bump();
                let _ = self.eat_any(&[Kw::INDEX, Kw::KEY]);
                if kw == Kw::FULLTEXT { KeyKind::Fulltext } else { KeyKind::Spatial }
            }
            _ => return Ok(None),
        };
        if self.at_ident() {
            name = Some(self.ident()?);
        }
        Ok(Some(Constraint::Key(self.key_rest(kind, name)?)))
    }

    /// `[USING type] (parts) [options]`.
    fn key_rest(&mut self, kind: KeyKind, name: Option<Name>) -> R<KeyDef> {
        let mut options = KeyOptions::default();
        self.key_options(&mut options)?;
        let parts = self.key_parts()?;
        self.key_options(&mut options)?;
        Ok(KeyDef { kind, name, parts, options })
    }

    fn key_parts(&mut self) -> R<Vec<KeyPart>> {
        self.parens(|p| {
            p.list(|p| {
                if p.at_t(T::LParen) {
                    let expr = p.parens(Self::expr)?;
                    let desc = p.eat_any(&[Kw::ASC, Kw::DESC]) == Some(Kw::DESC);
                    return Ok(KeyPart::Expr { expr, desc });
                }
                let name = p.ident()?;
                let prefix = if p.at_t(T::LParen) { Some(p.parens(Self::size)?) } else { None };
                let desc = p.eat_any(&[Kw::ASC, Kw::DESC]) == Some(Kw::DESC);
                Ok(KeyPart::Column { name, prefix, desc })
            })
        })
    }

    fn key_options(&mut self, options: &mut KeyOptions) -> R<()> {
        loop {
            match self.tok.kw {
                Kw::USING | Kw::TYPE => {
                    self.bump();
                    options.using = Some(match self.expect_any(&[Kw::BTREE, Kw::HASH, Kw::RTREE])? {
                        Kw::BTREE => IndexType::Btree,
                        Kw::HASH => IndexType::Hash,
                        _ => IndexType::Rtree,
                    });
                }
                Kw::COMMENT => {
                    self.bump();
                    options.comment = Some(self.string_text()?);
                }
                Kw::VISIBLE | Kw::INVISIBLE => options.visible = Some(self.bump().kw == Kw::VISIBLE),
                Kw::KEY_BLOCK_SIZE => {
                    self.bump();
                    self.eat_eq();
                    options.block_size = Some(self.uint()?);
                }
                Kw::WITH => {
                    self.bump();
                    self.expect(Kw::PARSER)?;
                    options.parser = Some(self.ident()?);
                }
                Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                    self.bump();
                    self.eat_eq();
                    self.string_text()?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn foreign_key(&mut self, constraint: Option<Name>) -> R<ForeignKey> {
        self.expect(Kw::FOREIGN)?;
        self.expect(Kw::KEY)?;
        let index = if self.at_ident() { Some(self.ident()?) } else { None };
        let columns = self.ident_list()?;
        Ok(ForeignKey { constraint, index, columns, references: self.reference()? })
    }

    /// REFERENCES.
    pub(super) fn reference(&mut self) -> R<Reference> {
        self.expect(Kw::REFERENCES)?;
        let table = self.table_name()?;
        let columns = if self.at_t(T::LParen) { self.ident_list()? } else { Vec::new() };
        if self.eat(Kw::MATCH) && self.eat_any(&[Kw::FULL, Kw::PARTIAL, Kw::SIMPLE]).is_none() {
            return self.fail();
        }
        let mut reference = Reference { table, columns, on_delete: None, on_update: None };
        while self.at(Kw::ON) && matches!(self.peek().kw, Kw::DELETE | Kw::UPDATE) {
            self.bump();
            let delete = self.bump().kw == Kw::DELETE;
            let action = match self.expect_any(&[Kw::RESTRICT, Kw::CASCADE, Kw::SET, Kw::NO])? {
                Kw::RESTRICT => RefAction::Restrict,
                Kw::CASCADE => RefAction::Cascade,
                Kw::NO => {
                    self.expect(Kw::ACTION)?;
                    RefAction::NoAction
                }
                _ => match self.expect_any(&[Kw::NULL, Kw::DEFAULT])? {
                    Kw::NULL => RefAction::SetNull,
                    _ => RefAction::SetDefault,
                },
            };
            if delete {
                reference.on_delete = Some(action);
            } else {
                reference.on_update = Some(action);
            }
        }
        Ok(reference)
    }

    fn create_index(&mut self) -> R<Stmt> {
        let kind = match self.eat_any(&[Kw::UNIQUE, Kw::FULLTEXT, Kw::SPATIAL]) {
            Some(Kw::UNIQUE) => KeyKind::Unique,
            Some(Kw::FULLTEXT) => KeyKind::Fulltext,
            Some(_) => KeyKind::Spatial,
            None => KeyKind::Index,
        };
        self.expect(Kw::INDEX)?;
        let name = Some(self.ident()?);
        let mut options = KeyOptions::default();
        self.key_options(&mut options)?;
        self.expect(Kw::ON)?;
        let table = self.table_name()?;
        let parts = self.key_parts()?;
        self.key_options(&mut options)?;
        let key = KeyDef { kind, name, parts, options };
        let options = self.online_options()?;
        Ok(Stmt::CreateIndex(Box::new(CreateIndex { table, key, options })))
    }

    /// Table options, with or without commas between.
    pub(super) fn table_options(&mut self) -> R<Vec<TableOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
            let _ = self.eat_t(T::Comma);
        }
        Ok(options)
    }

    /// One table option, if one begins here.
    pub(super) fn table_option(&mut self) -> R<Option<TableOption>> {
        let default = self.at(Kw::DEFAULT);
        if default {
            self.bump();
        }
        let kw = self.tok.kw;
        let option = match kw {
            Kw::CHARACTER | Kw::CHAR | Kw::CHARSET => TableOption::Charset(self.charset_clause()?),
            Kw::COLLATE => {
                self.bump();
                self.eat_eq();
                TableOption::Collate(self.collation_name()?)
            }
            _ if default => return self.fail(),
            Kw::AUTO_INCREMENT | Kw::MAX_ROWS | Kw::MIN_ROWS | Kw::AVG_ROW_LENGTH => {
                self.bump();
                self.eat_eq();
                let n = self.uint()?;
                match kw {
                    Kw::AUTO_INCREMENT => TableOption::AutoIncrement(n),
                    Kw::MAX_ROWS => TableOption::MaxRows(n),
                    Kw::MIN_ROWS => TableOption::MinRows(n),
                    _ => TableOption::AvgRowLength(n),
                }
            }
            Kw::ENGINE | Kw::TABLESPACE => {
                self.bump();
                self.eat_eq();
                let name = self.ident_or_text()?;
                if kw == Kw::ENGINE { TableOption::Engine(name) } else { TableOption::Tablespace(name) }
            }
            Kw::STORAGE => {
                self.bump();
                if self.eat(Kw::ENGINE) {
                    self.eat_eq();
                    TableOption::Engine(self.ident_or_text()?)
                } else {
                    TableOption::Storage(self.storage()?)
                }
            }
            Kw::COMMENT => {
                self.bump();
                self.eat_eq();
                TableOption::Comment(self.string_text()?)
            }
            Kw::ROW_FORMAT => {
                self.bump();
                self.eat_eq();
                TableOption::RowFormat(self.any_word()?.to_ascii_uppercase().into())
            }
            _ => return self.rare_table_option(),
        };
        Ok(Some(option))
    }

    fn rare_table_option(&mut self) -> R<Option<TableOption>> {
        let word = self.text(self.tok);
        let is = |name: &&str| name.as_bytes().eq_ignore_ascii_case(word);
        if matches!(self.tok.kw, Kw::DATA | Kw::INDEX) && self.peek().kw == Kw::DIRECTORY {
            let what = format!("{} DIRECTORY", self.bump().kw.name());
            self.bump();
            self.eat_eq();
            return Ok(Some(TableOption::Other(what.into(), self.string_text()?)));
        }
        if self.at(Kw::UNION) {
            let next = self.peek().t;
            if next == T::Eq || next == T::LParen {
                self.bump();
                self.eat_eq();
                self.expect_t(T::LParen)?;
                let text = self.balanced_text()?;
                self.expect_t(T::RParen)?;
                return Ok(Some(TableOption::Other("UNION".into(), text)));
            }
        }
        if self.tok.t != T::Word || !OTHER_OPTIONS.iter().any(is) {
            return Ok(None);
        }
        let name = lossy(word.to_ascii_uppercase());
        self.bump();
        self.eat_eq();
        let value = match self.tok.t {
            T::Str => self.string_text()?,
            T::Word | T::Quoted => self.any_word()?,
            T::Int => lossy(self.bump_text().to_vec()),
            _ => return self.fail(),
        };
        Ok(Some(TableOption::Other(name, value)))
    }

    /// DROP anything.
    pub(super) fn drop_statement(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        self.expect(Kw::DROP)?;
        let temporary = self.eat(Kw::TEMPORARY);
        match self.tok.kw {
            Kw::TABLE | Kw::TABLES => {
                self.bump();
                let if_exists = self.if_exists();
                let tables = self.list(Self::table_name)?;
                let _ = self.eat_any(&[Kw::RESTRICT, Kw::CASCADE]);
                return Ok(Stmt::DropTable { temporary, if_exists, tables });
            }
            _ if temporary => return self.fail(),
            _ => {}
        }
        let Some(what) = self.eat_any(&[
            Kw::DATABASE,
            Kw::SCHEMA,
            Kw::INDEX,
            Kw::VIEW,
            Kw::PREPARE,
            Kw::USER,
            Kw::ROLE,
            Kw::TRIGGER,
            Kw::PROCEDURE,
            Kw::FUNCTION,
            Kw::EVENT,
            Kw::TABLESPACE,
            Kw::LOGFILE,
            Kw::SERVER,
        ]) else {
            return self.fail();
        };
        match what {
            Kw::DATABASE | Kw::SCHEMA => {
                let if_exists = self.if_exists();
                Ok(Stmt::DropDatabase { if_exists, name: self.ident()? })
            }
            Kw::INDEX => {
                let index = if self.at(Kw::PRIMARY) { self.any_word()? } else { self.ident()? };
                self.expect(Kw::ON)?;
                let table = self.table_name()?;
                self.online_options()?;
                Ok(Stmt::DropIndex { index, table })
            }
            Kw::VIEW => {
                let if_exists = self.if_exists();
                let views = self.list(Self::table_name)?;
                let _ = self.eat_any(&[Kw::RESTRICT, Kw::CASCADE]);
                Ok(Stmt::DropView { if_exists, views })
            }
            Kw::PREPARE => Ok(Stmt::Deallocate(self.ident()?)),
            Kw::USER => {
                let if_exists = self.if_exists();
                Ok(Stmt::DropUser { if_exists, users: self.list(Self::user_name)? })
            }
            Kw::ROLE => {
                let if_exists = self.if_exists();
                Ok(Stmt::DropRole { if_exists, roles: self.list(Self::user_name)? })
            }
            other => Ok(self.unsupported(format!("DROP {}", other.name()), start)),
        }
    }

    /// RENAME TABLE and RENAME USER.
    pub(super) fn rename(&mut self) -> R<Stmt> {
        self.expect(Kw::RENAME)?;
        if self.eat(Kw::USER) {
            return Ok(Stmt::RenameUser(self.list(|p| {
                let from = p.user_name()?;
                p.expect(Kw::TO)?;
                Ok((from, p.user_name()?))
            })?));
        }
        self.expect_any(&[Kw::TABLE, Kw::TABLES])?;
        Ok(Stmt::RenameTable(self.list(|p| {
            let from = p.table_name()?;
            p.expect(Kw::TO)?;
            Ok((from, p.table_name()?))
        })?))
    }

    /// TRUNCATE.
    pub(super) fn truncate(&mut self) -> R<Stmt> {
        self.expect(Kw::TRUNCATE)?;
        let _ = self.eat(Kw::TABLE);
        Ok(Stmt::Truncate(self.table_name()?))
    }
}

/// Table options that mean nothing to this engine and are kept as words.
const OTHER_OPTIONS: &[&str] = &[
    "AUTOEXTEND_SIZE",
    "CHECKSUM",
    "COMPRESSION",
    "CONNECTION",
    "DELAY_KEY_WRITE",
    "ENCRYPTION",
    "ENGINE_ATTRIBUTE",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "NODEGROUP",
    "PACK_KEYS",
    "PASSWORD",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLE_CHECKSUM",
];
