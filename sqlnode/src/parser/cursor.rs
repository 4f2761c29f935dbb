//! The parser's cursor: the current token and the few moves that every rule is made of.
//!
//! Rules look at `tok`, take it with `bump`, and report what does not fit with `fail`, which always means
//! the current token. Height is counted here, see [`Parser::nest`].

use super::MAX_HEIGHT;
use super::ast::{ColName, Name, TableName};
use super::error::ParseError;
use super::keyword::Kw;
use super::lexer::{Lexer, ParseMode, T, Token, unescape};

/// Result of every rule. The error is boxed to keep the good case small.
pub(super) type R<V> = Result<V, Box<ParseError>>;

/// The parser: a lexer and its current token.
pub(super) struct Parser<'a> {
    pub(super) src: &'a [u8],
    pub(super) lex: Lexer<'a>,
    pub(super) tok: Token,
    /// End of the token before `tok`: the end of what was parsed so far.
    pub(super) prev_end: u32,
    pub(super) mode: ParseMode,
    /// Parameters seen so far.
    pub(super) params: u32,
    /// How many rules that may contain themselves are open.
    depth: u32,
    /// Height of the highest tree finished inside the innermost open rule.
    pub(super) height: u32,
}

impl<'a> Parser<'a> {
    /// A parser before the first token of `src`.
    pub(super) fn new(src: &'a [u8], mode: ParseMode) -> Parser<'a> {
        let mut lex = Lexer::new(src, mode);
        let tok = lex.next();
        Parser { src, lex, tok, prev_end: 0, mode, params: 0, depth: 0, height: 0 }
    }

    /// Takes the current token.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.tok;
        self.prev_end = token.end;
        self.tok = self.lex.next();
        token
    }

    /// Takes the current token and returns its bytes.
    pub(super) fn bump_text(&mut self) -> &'a [u8] {
        let token = self.bump();
        self.text(token)
    }

    /// The token after the current one.
    pub(super) fn peek(&self) -> Token {
        let mut lex = self.lex;
        lex.next()
    }

    /// The current token does not fit.
    #[cold]
    pub(super) fn fail<V>(&self) -> R<V> {
        Err(Box::new(ParseError::syntax(self.src, self.tok.start as usize)))
    }

    /// Runs a rule that may contain itself, one level deeper.
    pub(super) fn deeper<V>(&mut self, rule: impl FnOnce(&mut Self) -> R<V>) -> R<V> {
        self.depth += 1;
        if self.depth > MAX_HEIGHT {
            return Err(Box::new(ParseError::too_deep(self.tok.start as usize)));
        }
        let out = rule(self);
        self.depth -= 1;
        out
    }

    /// Notes that the tree being built just got a node on top of what it was (`a + b` on top of `a`). Loops
    /// that build leftwards do not recurse, so `deeper` does not see them; this does.
    pub(super) fn grow(&mut self, height: &mut u32) -> R<()> {
        *height = (*height).max(self.height) + 1;
        if *height > MAX_HEIGHT {
            return Err(Box::new(ParseError::too_deep(self.tok.start as usize)));
        }
        Ok(())
    }

    pub(super) fn at(&self, kw: Kw) -> bool {
        self.tok.kw == kw
    }

    pub(super) fn at_any(&self, kws: &[Kw]) -> bool {
        self.tok.kw != Kw::NONE && kws.contains(&self.tok.kw)
    }

    pub(super) fn at_t(&self, t: T) -> bool {
        self.tok.t == t
    }

    pub(super) fn eat(&mut self, kw: Kw) -> bool {
        let hit = self.at(kw);
        if hit {
            self.bump();
        }
        hit
    }

    /// Takes one of several words and says which.
    pub(super) fn eat_any(&mut self, kws: &[Kw]) -> Option<Kw> {
        self.at_any(kws).then(|| self.bump().kw)
    }

    /// Takes these words if all of them follow.
    pub(super) fn eat_seq(&mut self, kws: &[Kw]) -> bool {
        let Some((first, rest)) = kws.split_first() else { return true };
        if !self.at(*first) {
            return false;
        }
        let mut ahead = self.lex;
        if rest.iter().any(|kw| ahead.next().kw != *kw) {
            return false;
        }
        for _ in kws {
            self.bump();
        }
        true
    }

    pub(super) fn eat_t(&mut self, t: T) -> bool {
        let hit = self.at_t(t);
        if hit {
            self.bump();
        }
        hit
    }

    pub(super) fn expect(&mut self, kw: Kw) -> R<()> {
        if self.eat(kw) { Ok(()) } else { self.fail() }
    }

    pub(super) fn expect_t(&mut self, t: T) -> R<()> {
        if self.eat_t(t) { Ok(()) } else { self.fail() }
    }

    /// One of these words or an error.
    pub(super) fn expect_any(&mut self, kws: &[Kw]) -> R<Kw> {
        match self.eat_any(kws) {
            Some(kw) => Ok(kw),
            None => self.fail(),
        }
    }

    /// Whether the current token ends a statement.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.tok.t, T::Eof | T::Semi)
    }

    /// The bytes of a token.
    pub(super) fn text(&self, token: Token) -> &'a [u8] {
        self.lex.text(token)
    }

    /// The source from one offset to the end of the last token taken, without blanks around.
    pub(super) fn text_since(&self, start: u32) -> Box<str> {
        let bytes = self.src.get(start as usize..self.prev_end as usize).unwrap_or(&[]);
        lossy(bytes.trim_ascii().to_vec())
    }

    /// Whether the current token can be a name.
    pub(super) fn at_ident(&self) -> bool {
        match self.tok.t {
            T::Word => !self.tok.kw.is_reserved(),
            T::Quoted => true,
            _ => false,
        }
    }

    /// A name.
    pub(super) fn ident(&mut self) -> R<Name> {
        if self.at_ident() { self.any_word() } else { self.fail() }
    }

    /// A name, or any word (reserved words included).
    pub(super) fn any_word(&mut self) -> R<Name> {
        let token = self.tok;
        let name = match token.t {
            T::Word => self.utf8(self.text(token))?.into(),
            T::Quoted => {
                let text = unescape(self.text(token), self.mode);
                // A name is never empty and never holds a NUL.
                if text.is_empty() || text.contains(&0) {
                    return self.fail();
                }
                self.utf8(&text)?.into()
            }
            _ => return self.fail(),
        };
        self.bump();
        Ok(name)
    }

    /// A name that MySQL also accepts as a string (an alias, a charset, a user).
    pub(super) fn ident_or_text(&mut self) -> R<Name> {
        if self.at_t(T::Str) { self.string_text() } else { self.ident() }
    }

    fn utf8<'t>(&self, text: &'t [u8]) -> R<&'t str> {
        std::str::from_utf8(text).map_err(|_| {
            let shown: String = text.iter().take(16).map(|b| format!("\\x{b:02X}")).collect();
            let message = format!("Invalid utf8mb4 character string: '{shown}'");
            Box::new(ParseError::other(1300, "HY000", message, self.tok.start as usize))
        })
    }

    /// A list of rules with commas between.
    pub(super) fn list<V>(&mut self, mut rule: impl FnMut(&mut Self) -> R<V>) -> R<Vec<V>> {
        let mut out = vec![rule(self)?];
        while self.eat_t(T::Comma) {
            out.push(rule(self)?);
        }
        Ok(out)
    }

    /// A rule in parentheses.
    pub(super) fn parens<V>(&mut self, rule: impl FnOnce(&mut Self) -> R<V>) -> R<V> {
        self.expect_t(T::LParen)?;
        let out = rule(self)?;
        self.expect_t(T::RParen)?;
        Ok(out)
    }

    /// `(name, name, ...)`.
    pub(super) fn ident_list(&mut self) -> R<Vec<Name>> {
        self.parens(|p| p.list(Self::ident))
    }

    /// `name`, `db.name` or `.name`.
    pub(super) fn table_name(&mut self) -> R<TableName> {
        if self.eat_t(T::Dot) {
            return Ok(TableName { db: None, name: self.any_word()? });
        }
        let first = self.ident()?;
        if self.eat_t(T::Dot) {
            return Ok(TableName { db: Some(first), name: self.any_word()? });
        }
        Ok(TableName { db: None, name: first })
    }

    /// `name`, `table.name` or `db.table.name`.
    pub(super) fn col_name(&mut self) -> R<ColName> {
        let first = self.ident()?;
        self.col_name_from(first)
    }

    /// The rest of a column name whose first word was taken.
    pub(super) fn col_name_from(&mut self, first: Name) -> R<ColName> {
        if !self.eat_t(T::Dot) {
            return Ok(ColName { db: None, table: None, name: first });
        }
        let second = self.any_word()?;
        if !self.eat_t(T::Dot) {
            return Ok(ColName { db: None, table: Some(first), name: second });
        }
        Ok(ColName { db: Some(first), table: Some(second), name: self.any_word()? })
    }

    /// The bytes of a string literal, adjacent ones joined.
    pub(super) fn string_bytes(&mut self) -> R<Vec<u8>> {
        if !self.at_t(T::Str) {
            return self.fail();
        }
        let mut text = unescape(self.text(self.tok), self.mode);
        self.bump();
        while self.at_t(T::Str) {
            text.extend(unescape(self.text(self.tok), self.mode));
            self.bump();
        }
        Ok(text)
    }

    /// One string literal as text; bytes that are not UTF-8 are replaced.
    pub(super) fn string_text(&mut self) -> R<Box<str>> {
        if !self.at_t(T::Str) {
            return self.fail();
        }
        let text = unescape(self.text(self.tok), self.mode);
        self.bump();
        Ok(lossy(text))
    }

    /// An unsigned integer.
    pub(super) fn uint(&mut self) -> R<u64> {
        let digits = match self.tok.t {
            T::Int => std::str::from_utf8(self.text(self.tok)).ok(),
            _ => None,
        };
        match digits {
            Some(digits) => {
                let value = digits.parse().unwrap_or(u64::MAX); // Only overflow can fail: saturate.
                self.bump();
                Ok(value)
            }
            None => self.fail(),
        }
    }

    /// An unsigned integer for a length; saturates at 32 bits.
    pub(super) fn size(&mut self) -> R<u32> {
        Ok(u32::try_from(self.uint()?).unwrap_or(u32::MAX))
    }

    /// `= value` with an optional equals sign.
    pub(super) fn eat_eq(&mut self) {
        let _ = self.eat_t(T::Eq) || self.eat_t(T::Assign);
    }

    /// `IF EXISTS`.
    pub(super) fn if_exists(&mut self) -> bool {
        self.eat_seq(&[Kw::IF, Kw::EXISTS])
    }

    /// `IF NOT EXISTS`.
    pub(super) fn if_not_exists(&mut self) -> bool {
        self.eat_seq(&[Kw::IF, Kw::NOT, Kw::EXISTS])
    }

    /// Takes everything to the end of the statement and returns it as written.
    pub(super) fn rest(&mut self) -> Box<str> {
        let start = self.tok.start;
        while !self.at_end() && !self.at_t(T::Bad) {
            self.bump();
        }
        self.text_since(start)
    }
}

/// Text for humans: what is not UTF-8 is replaced.
pub(super) fn lossy(text: Vec<u8>) -> Box<str> {
    match String::from_utf8(text) {
        Ok(text) => text.into(),
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into(),
    }
}
