//! MySQL's SQL, from bytes to a syntax tree: lexer, Pratt parser, tree, and the printer back to text.
//!
//! Role: text comes in as bytes (a literal may hold any), a [`ast::Stmt`] or a [`ParseError`] comes out.
//! The parser keeps no state between statements, reads no catalogue and knows no session beyond the few SQL
//! modes that change the grammar ([`ParseMode`]). It never panics and never recurses deeper than
//! [`MAX_HEIGHT`] levels, whatever the bytes. The length of a statement is the caller's limit
//! (`max_allowed_packet`); memory used here is proportional to it.
//!
//! Map: `keyword` the words, `lexer` the tokens, `cursor` the moves, `expr` and `func` expressions, `query`
//! SELECT, `dml` row changes, `types` columns, `ddl` and `alter` schema changes, `session`, `show`, `users`
//! the rest; `ast` the tree; `print` its way back to text; `ndb_comment` the options NDB hides in comments.
//!
//! A client may send several statements in one text: [`parse_next`] takes the first and says where the next
//! begins.

pub mod ast;

mod alter;
mod cursor;
mod ddl;
mod dml;
mod error;
mod expr;
mod func;
mod keyword;
mod lexer;
mod ndb_comment;
mod print;
mod query;
mod session;
mod show;
#[cfg(test)]
mod tests;
mod types;
mod users;

pub use error::ParseError;
pub use keyword::is_reserved;
pub use lexer::ParseMode;
pub use ndb_comment::{NdbColumnOptions, NdbTableOptions, ndb_column_options, ndb_table_options};
pub use print::{quote_name, quote_text};

use ast::{Expr, Stmt};
use cursor::{Parser, R};
use keyword::Kw;
use lexer::T;

/// Greatest height of any tree the parser returns. Each level costs the recursive parser, and later the
/// binder and the evaluator, some hundreds of bytes of stack; a worker has 2 MiB. Real statements stay
/// below fifty.
pub const MAX_HEIGHT: u32 = 256;

/// One statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub stmt: Stmt,
    /// How many parameters it has.
    pub params: u32,
    /// Where its text ends (before the semicolon).
    pub end: usize,
    /// Where the next statement begins; `None` if nothing but blanks, comments and semicolons follow.
    pub next: Option<usize>,
}

/// Parses the first statement of a text.
pub fn parse_next(sql: &[u8], mode: ParseMode) -> Result<Parsed, ParseError> {
    if u32::try_from(sql.len()).is_err() {
        let message = "Got a packet bigger than 'max_allowed_packet' bytes";
        return Err(ParseError::other(1153, "08S01", message, 0));
    }
    let mut parser = Parser::new(sql, mode);
    let stmt = parser.statement().map_err(|e| *e)?;
    if !parser.at_end() {
        return parser.fail().map_err(|e| *e);
    }
    let end = parser.prev_end as usize;
    let mut next = None;
    if parser.at_t(T::Semi) {
        // Skip what is empty. A text that does not lex any more is left for the next call to complain about.
        let mut begin = parser.tok.end as usize;
        while parser.at_t(T::Semi) {
            begin = parser.tok.end as usize;
            parser.bump();
        }
        next = (!parser.at_t(T::Eof)).then_some(begin);
    }
    Ok(Parsed { stmt, params: parser.params, end, next })
}

/// Parses a text that must be one statement (a semicolon may follow), as prepared statements must.
pub fn parse(sql: &[u8], mode: ParseMode) -> Result<Parsed, ParseError> {
    let parsed = parse_next(sql, mode)?;
    match parsed.next {
        None => Ok(parsed),
        Some(next) => {
            let blank = sql[next..].iter().take_while(|c| c.is_ascii_whitespace()).count();
            Err(ParseError::syntax(sql, next + blank))
        }
    }
}

/// Parses a lone expression: a stored default, a generated column, a check.
pub fn parse_expr(sql: &[u8], mode: ParseMode) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(sql.get(..u32::MAX as usize).unwrap_or(sql), mode);
    let expr = parser.expr().map_err(|e| *e)?;
    if !parser.at_t(T::Eof) {
        return parser.fail().map_err(|e| *e);
    }
    Ok(expr)
}

impl Parser<'_> {
    /// Any statement.
    fn statement(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        match self.tok.kw {
            Kw::SELECT | Kw::VALUES | Kw::TABLE => Ok(Stmt::Query(Box::new(self.query()?))),
            Kw::WITH => self.with_statement(),
            Kw::INSERT | Kw::REPLACE => self.insert(),
            Kw::UPDATE => self.update(None),
            Kw::DELETE => self.delete(None),
            Kw::SET => self.set(),
            Kw::BEGIN | Kw::START if self.at(Kw::BEGIN) || self.peek().kw == Kw::TRANSACTION => self.begin(),
            Kw::COMMIT | Kw::ROLLBACK => self.commit_or_rollback(),
            Kw::SAVEPOINT | Kw::RELEASE => self.savepoint(),
            Kw::SHOW => self.show(),
            Kw::USE => self.use_database(),
            Kw::DO => self.do_statement(),
            Kw::CREATE => self.create(),
            Kw::ALTER => self.alter(),
            Kw::DROP => self.drop_statement(),
            Kw::RENAME => self.rename(),
            Kw::TRUNCATE => self.truncate(),
            Kw::DESCRIBE | Kw::DESC | Kw::EXPLAIN => self.describe(),
            Kw::PREPARE | Kw::EXECUTE | Kw::DEALLOCATE => self.prepared(),
            Kw::KILL => self.kill(),
            Kw::LOCK | Kw::UNLOCK => self.lock_tables(),
            Kw::FLUSH => self.flush(),
            Kw::ANALYZE | Kw::CHECK | Kw::CHECKSUM | Kw::OPTIMIZE | Kw::REPAIR => self.table_admin(),
            Kw::GRANT | Kw::REVOKE => self.grant(),
            Kw::XA => {
                self.bump();
                Ok(Stmt::Xa(self.rest()))
            }
            Kw::HELP => {
                self.bump();
                Ok(Stmt::Help(self.ident_or_text()?))
            }
            Kw::RESET => {
                self.bump();
                Ok(Stmt::Reset(self.rest()))
            }
            _ if self.at_t(T::LParen) => Ok(Stmt::Query(Box::new(self.query()?))),
            _ if self.at_end() => Ok(Stmt::Empty),
            kw => self.rare_statement(kw, start),
        }
    }

    /// Statements that are only recognised.
    fn rare_statement(&mut self, kw: Kw, start: u32) -> R<Stmt> {
        let known = matches!(
            kw,
            Kw::CALL
                | Kw::LOAD
                | Kw::HANDLER
                | Kw::CHANGE
                | Kw::PURGE
                | Kw::START
                | Kw::STOP
                | Kw::INSTALL
                | Kw::UNINSTALL
                | Kw::SIGNAL
                | Kw::RESIGNAL
                | Kw::GET
                | Kw::BINLOG
                | Kw::CACHE
                | Kw::CLONE
                | Kw::IMPORT
                | Kw::SHUTDOWN
                | Kw::RESTART
        );
        if !known {
            return self.fail();
        }
        Ok(self.unsupported(kw.name().into(), start))
    }
}
