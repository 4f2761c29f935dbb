//! Errors of the parser: a MySQL error number, its SQLSTATE and its message, and where it happened.

use crate::error::MySqlError;
use std::fmt;

/// Why a text is not a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// MySQL's error number.
    pub code: u16,
    /// Its SQLSTATE.
    pub sqlstate: &'static str,
    /// The message as the client sees it.
    pub message: String,
    /// Byte offset of the token that did not fit.
    pub offset: usize,
}

/// How much of the text a syntax error repeats, in characters.
const NEAR_CHARS: usize = 80;

impl ParseError {
    /// ER_PARSE_ERROR: the text does not fit the grammar at `offset`.
    pub(super) fn syntax(src: &[u8], offset: usize) -> ParseError {
        let offset = offset.min(src.len());
        let rest = &src[offset..];
        // At most four bytes a character, so this bounds the copy too.
        let near = String::from_utf8_lossy(&rest[..rest.len().min(4 * NEAR_CHARS)]);
        let near: String = near.chars().take(NEAR_CHARS).collect();
        let line = 1 + src[..offset].iter().filter(|&&c| c == b'\n').count();
        let message = format!(
            "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version \
             for the right syntax to use near '{near}' at line {line}"
        );
        ParseError { code: 1064, sqlstate: "42000", message, offset }
    }

    /// ER_STACK_OVERRUN_NEED_MORE: nested deeper than the limit.
    pub(super) fn too_deep(offset: usize) -> ParseError {
        let message = format!(
            "Thread stack overrun:  statement is nested more than {} levels deep. Use fewer nested parentheses, \
             operators or subqueries.",
            super::MAX_HEIGHT
        );
        ParseError { code: 1436, sqlstate: "HY000", message, offset }
    }

    /// Any other error with a number of its own.
    pub(super) fn other(
        code: u16,
        sqlstate: &'static str,
        message: impl Into<String>,
        offset: usize,
    ) -> ParseError {
        ParseError { code, sqlstate, message: message.into(), offset }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for MySqlError {
    fn from(error: ParseError) -> MySqlError {
        MySqlError { code: error.code, sqlstate: error.sqlstate, message: error.message.into() }
    }
}
