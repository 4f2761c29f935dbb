//! The printer: a syntax tree back to text.
//!
//! It writes one canonical form: keywords in capitals, names quoted only where they must be, parentheses
//! only where precedence needs them. Parsing the text again gives the same tree, except for string literals
//! that are not UTF-8, which are written in hex with an introducer. It serves expressions kept in a
//! catalogue, EXPLAIN, logs and tests; the *name* of an unaliased column is not printed from the tree, it
//! is the text as the user wrote it.

mod admin;
mod ddl;
mod expr;
mod query;

use std::fmt::{self, Display, Formatter, Write};

use super::ast::{ColName, Name, TableName};
use super::keyword::is_reserved;

/// `name` in backticks, whatever it holds.
pub fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// `text` as a string literal. Bytes that are not UTF-8 are written in hex.
pub fn quote_text(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    // A String takes everything.
    let _ = write_text(&mut out, text);
    out
}

pub(super) fn write_text(f: &mut impl Write, text: &[u8]) -> fmt::Result {
    let Ok(text) = std::str::from_utf8(text) else {
        f.write_str("_utf8mb4 ")?;
        return write_hex(f, text);
    };
    f.write_char('\'')?;
    for c in text.chars() {
        match c {
            '\0' => f.write_str("\\0")?,
            '\'' => f.write_str("''")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\u{1a}' => f.write_str("\\Z")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('\'')
}

pub(super) fn write_hex(f: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    f.write_str("x'")?;
    for byte in bytes {
        write!(f, "{byte:02X}")?;
    }
    f.write_char('\'')
}

/// A name, quoted only if it must be.
pub(super) struct Id<'a>(pub(super) &'a str);

impl Display for Id<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        let starts_plain = self.0.starts_with(|c: char| c.is_ascii_alphabetic() || !c.is_ascii());
        if starts_plain && self.0.chars().all(plain) && !is_reserved(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "`{}`", self.0.replace('`', "``"))
        }
    }
}

/// A string literal made of text.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_text(f, self.0.as_bytes())
    }
}

/// A user variable's name, with its `@`.
pub(super) struct Var<'a>(pub(super) &'a str);

impl Display for Var<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
        if self.0.chars().all(plain) {
            write!(f, "@{}", self.0)
        } else {
            write!(f, "@{}", quote_name(self.0))
        }
    }
}

/// Things with a separator between.
pub(super) fn list<V: Display>(f: &mut Formatter<'_>, items: &[V], separator: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// Names with commas between.
pub(super) fn names(f: &mut Formatter<'_>, items: &[Name]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{}", Id(item))?;
    }
    Ok(())
}

/// ` word` if `on`.
pub(super) fn flag(f: &mut Formatter<'_>, on: bool, word: &str) -> fmt::Result {
    if on { write!(f, " {word}") } else { Ok(()) }
}

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(db) = &self.db {
            write!(f, "{}.", Id(db))?;
        }
        write!(f, "{}", Id(&self.name))
    }
}

impl Display for ColName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for qualifier in [&self.db, &self.table].into_iter().flatten() {
            write!(f, "{}.", Id(qualifier))?;
        }
        write!(f, "{}", Id(&self.name))
    }
}
