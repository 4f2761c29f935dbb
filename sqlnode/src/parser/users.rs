//! Accounts and privileges: CREATE USER, ALTER USER, GRANT, REVOKE.

use super::ast::{Auth, Grant, GrantLevel, Name, Stmt, TableName, UserName, UserSpec, UserStmt};
use super::cursor::{Parser, R};
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// `user`, `user@host`, `'user'@'host'`, CURRENT_USER.
    pub(super) fn user_name(&mut self) -> R<UserName> {
        if self.eat(Kw::CURRENT_USER) {
            if self.eat_t(T::LParen) {
                self.expect_t(T::RParen)?;
            }
            return Ok(UserName::Current);
        }
        let user = self.ident_or_text()?;
        if !self.at_t(T::At) {
            return Ok(UserName::Named { user, host: None });
        }
        // A host may hold dots and dashes, so it has its own lexical rule; a quoted one is an ordinary token.
        let unquoted = self.lex.host();
        if unquoted.start != unquoted.end {
            let host = Some(self.name_after_at(unquoted)?);
            return Ok(UserName::Named { user, host });
        }
        self.bump();
        Ok(UserName::Named { user, host: Some(self.ident_or_text()?) })
    }

    /// CREATE USER and ALTER USER, at USER.
    pub(super) fn user_statement(&mut self, alter: bool) -> R<Stmt> {
        self.expect(Kw::USER)?;
        let if_exists = if alter { self.if_exists() } else { self.if_not_exists() };
        let users = self.list(|p| {
            // ALTER USER USER() is the current one too.
            if alter && p.at(Kw::USER) && p.peek().t == T::LParen {
                p.bump();
                p.bump();
                p.expect_t(T::RParen)?;
                return Ok(UserSpec { user: UserName::Current, auth: p.auth()? });
            }
            let user = p.user_name()?;
            Ok(UserSpec { user, auth: p.auth()? })
        })?;
        let mut stmt = UserStmt {
            alter,
            if_exists,
            users,
            default_roles: Vec::new(),
            require: Box::default(),
            options: Vec::new(),
        };
        if self.eat_seq(&[Kw::DEFAULT, Kw::ROLE]) {
            stmt.default_roles = self.list(Self::user_name)?;
        }
        if self.eat(Kw::REQUIRE) {
            let start = self.tok.start;
            while !self.at_end()
                && !self.at_any(&[Kw::WITH, Kw::PASSWORD, Kw::ACCOUNT, Kw::COMMENT, Kw::ATTRIBUTE])
            {
                self.word_or_value()?;
            }
            stmt.require = self.text_since(start);
        }
        while !self.at_end() {
            stmt.options.push(self.user_option()?);
        }
        Ok(Stmt::User(Box::new(stmt)))
    }

    fn word_or_value(&mut self) -> R<()> {
        if matches!(self.tok.t, T::Word | T::Str | T::Int) {
            self.bump();
            Ok(())
        } else {
            self.fail()
        }
    }

    /// `WITH MAX_..`, `PASSWORD EXPIRE ..`, `ACCOUNT LOCK`, `COMMENT '..'`, `ATTRIBUTE '..'` and the like:
    /// the words up to the next option.
    fn user_option(&mut self) -> R<Box<str>> {
        let start = self.tok.start;
        self.word_or_value()?;
        while !self.at_end()
            && !self.at_any(&[Kw::PASSWORD, Kw::ACCOUNT, Kw::COMMENT, Kw::ATTRIBUTE, Kw::REQUIRE])
        {
            self.word_or_value()?;
        }
        Ok(self.text_since(start))
    }

    /// IDENTIFIED, or nothing.
    fn auth(&mut self) -> R<Option<Auth>> {
        if !self.eat(Kw::IDENTIFIED) {
            return Ok(None);
        }
        let mut auth = Auth { plugin: None, password: None, hash: None };
        if self.eat(Kw::WITH) {
            auth.plugin = Some(self.ident_or_text()?);
        }
        if self.eat(Kw::BY) {
            auth.password = Some(self.string_text()?);
            if self.eat(Kw::REPLACE) {
                self.string_text()?;
            }
            let _ = self.eat_seq(&[Kw::RETAIN, Kw::CURRENT, Kw::PASSWORD]);
        } else if auth.plugin.is_some() && self.eat(Kw::AS) {
            auth.hash = Some(if self.at_t(T::Str) {
                self.string_bytes()?.into()
            } else {
                match self.literal()? {
                    super::ast::Lit::Hex(None, bytes) => bytes,
                    _ => return self.fail(),
                }
            });
        } else if auth.plugin.is_none() {
            return self.fail();
        }
        Ok(Some(auth))
    }

    /// GRANT and REVOKE.
    pub(super) fn grant(&mut self) -> R<Stmt> {
        let revoke = self.bump().kw == Kw::REVOKE;
        if revoke {
            let _ = self.if_exists();
        }
        let grant = self.grant_what(revoke)?;
        Ok(if revoke { Stmt::Revoke(Box::new(grant)) } else { Stmt::Grant(Box::new(grant)) })
    }

    fn grant_what(&mut self, revoke: bool) -> R<Grant> {
        let towards = if revoke { Kw::FROM } else { Kw::TO };
        if self.at(Kw::PROXY) && self.peek().kw == Kw::ON {
            self.bump();
            self.bump();
            let on = self.user_name()?;
            self.expect(towards)?;
            let users = self.list(Self::user_name)?;
            return Ok(Grant::Proxy { on, users, grant_option: self.with_option(Kw::GRANT)? });
        }
        if revoke && self.eat_seq(&[Kw::ALL, Kw::PRIVILEGES])
            || revoke && self.at(Kw::ALL) && self.eat(Kw::ALL)
        {
            if self.eat_t(T::Comma) {
                self.expect(Kw::GRANT)?;
                self.expect(Kw::OPTION)?;
                self.expect(Kw::FROM)?;
                return Ok(Grant::All(self.list(Self::user_name)?));
            }
            return self.grant_on(vec![("ALL".into(), Vec::new())], towards);
        }
        // Whether these are roles or privileges shows only at ON or TO.
        let (lex, tok, prev_end) = (self.lex, self.tok, self.prev_end);
        if let Ok(privileges) = self.list(Self::privilege)
            && self.at(Kw::ON)
        {
            return self.grant_on(privileges, towards);
        }
        (self.lex, self.tok, self.prev_end) = (lex, tok, prev_end);
        let roles = self.list(Self::user_name)?;
        self.expect(towards)?;
        let users = self.list(Self::user_name)?;
        Ok(Grant::Roles { roles, users, admin_option: self.with_option(Kw::ADMIN)? })
    }

    fn with_option(&mut self, kw: Kw) -> R<bool> {
        if !self.eat(Kw::WITH) {
            return Ok(false);
        }
        self.expect(kw)?;
        self.expect(Kw::OPTION)?;
        Ok(true)
    }

    /// Words up to a comma, parenthesis or ON: `SELECT`, `CREATE TEMPORARY TABLES`, `SELECT (a, b)`.
    fn privilege(&mut self) -> R<(Name, Vec<Name>)> {
        let start = self.tok.start;
        while self.at_t(T::Word) && !self.at_any(&[Kw::ON, Kw::TO, Kw::FROM]) {
            self.bump();
        }
        if self.tok.start == start {
            return self.fail();
        }
        let words = self.text_since(start).to_ascii_uppercase();
        let name = if words == "ALL PRIVILEGES" { "ALL".into() } else { words.into() };
        let columns = if self.at_t(T::LParen) { self.ident_list()? } else { Vec::new() };
        Ok((name, columns))
    }

    fn grant_on(&mut self, privileges: Vec<(Name, Vec<Name>)>, towards: Kw) -> R<Grant> {
        self.expect(Kw::ON)?;
        let object = self.eat_any(&[Kw::TABLE, Kw::FUNCTION, Kw::PROCEDURE]).map_or("", Kw::name);
        let level = self.grant_level()?;
        self.expect(towards)?;
        let users = self.list(|p| {
            let user = p.user_name()?;
            Ok(UserSpec { user, auth: p.auth()? })
        })?;
        let grant_option = self.with_option(Kw::GRANT)?;
        Ok(Grant::Privileges { privileges, object, level, users, grant_option })
    }

    fn grant_level(&mut self) -> R<GrantLevel> {
        if self.eat_t(T::Star) {
            if !self.eat_t(T::Dot) {
                return Ok(GrantLevel::CurrentDatabase);
            }
            self.expect_t(T::Star)?;
            return Ok(GrantLevel::Global);
        }
        let first = self.ident()?;
        if !self.eat_t(T::Dot) {
            return Ok(GrantLevel::Table(TableName { db: None, name: first }));
        }
        if self.eat_t(T::Star) {
            return Ok(GrantLevel::Database(first));
        }
        Ok(GrantLevel::Table(TableName { db: Some(first), name: self.any_word()? }))
    }
}
