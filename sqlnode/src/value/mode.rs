//! sql_mode and warnings: how strict a statement is, and the notes it leaves for SHOW WARNINGS.
//!
//! Role: [`SqlMode`] is the set of flags a session chose; [`Warnings`] collects what a statement has to say
//! besides its result, bounded as MySQL's max_error_count bounds it.

use crate::error::{ErrorCode, MySqlError};
use std::fmt;

/// A set of sql_mode flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlMode(u32);

/// Declares the single flags once, with their names, so that parsing and printing cannot disagree.
macro_rules! flags {
    ($($name:ident = $bit:literal, $doc:literal;)*) => {
        impl SqlMode {
            $(#[doc = $doc] pub const $name: SqlMode = SqlMode(1 << $bit);)*
        }
        /// Every single flag with its name, in the order in which MySQL prints them.
        static FLAGS: &[(&str, SqlMode)] = &[$((stringify!($name), SqlMode::$name),)*];
    };
}

flags! {
    REAL_AS_FLOAT = 0, "REAL means FLOAT.";
    PIPES_AS_CONCAT = 1, "`||` concatenates.";
    ANSI_QUOTES = 2, "`\"` quotes identifiers.";
    IGNORE_SPACE = 3, "Spaces may stand between a function's name and its parenthesis.";
    ONLY_FULL_GROUP_BY = 5, "Selected columns must be grouped or aggregated.";
    NO_UNSIGNED_SUBTRACTION = 6, "Subtraction of unsigned numbers may be negative.";
    NO_DIR_IN_CREATE = 7, "Directory options of CREATE TABLE are ignored.";
    ANSI = 18, "The ANSI combination was asked for.";
    NO_AUTO_VALUE_ON_ZERO = 19, "Zero in an AUTO_INCREMENT column is zero.";
    NO_BACKSLASH_ESCAPES = 20, "`\\` is an ordinary character.";
    STRICT_TRANS_TABLES = 21, "Bad values are errors for transactional tables.";
    STRICT_ALL_TABLES = 22, "Bad values are errors for all tables.";
    NO_ZERO_IN_DATE = 23, "Dates with a zero month or day are bad.";
    NO_ZERO_DATE = 24, "'0000-00-00' is bad.";
    ALLOW_INVALID_DATES = 25, "Only months 1-12 and days 1-31 are checked.";
    ERROR_FOR_DIVISION_BY_ZERO = 26, "Division by zero warns, and fails in strict writes.";
    TRADITIONAL = 27, "The TRADITIONAL combination was asked for.";
    HIGH_NOT_PRECEDENCE = 29, "NOT binds as tight as `!`.";
    NO_ENGINE_SUBSTITUTION = 30, "An unknown engine is an error.";
    PAD_CHAR_TO_FULL_LENGTH = 31, "CHAR values are read with their trailing spaces.";
}

impl SqlMode {
    /// No flags: the mode of `sql_mode = ''`.
    pub const EMPTY: SqlMode = SqlMode(0);

    /// Both sets of flags.
    #[must_use]
    pub const fn union(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 & !other.0)
    }

    /// Whether bad values in writes are errors. Every table of the cluster is transactional, so both strict
    /// flags mean the same here.
    pub const fn is_strict(self) -> bool {
        self.0 & (SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::STRICT_ALL_TABLES.0) != 0
    }

    /// The set written as names with commas, as `SET sql_mode` takes it.
    ///
    /// # Errors
    /// 1231 for a name that is no mode.
    pub fn parse(text: &str) -> Result<SqlMode, MySqlError> {
        let mut mode = SqlMode::EMPTY;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let upper = name.to_ascii_uppercase();
            let flag = match upper.as_str() {
                "ANSI" => Self::ANSI_SET,
                "TRADITIONAL" => Self::TRADITIONAL_SET,
                // Rounds temporal fractions off instead of up; accepted and not acted upon.
                "TIME_TRUNCATE_FRACTIONAL" => SqlMode::EMPTY,
                // Flags MySQL 8 removed but old clients and dumps still set; without effect.
                "NO_AUTO_CREATE_USER" | "NO_FIELD_OPTIONS" | "NO_KEY_OPTIONS" | "NO_TABLE_OPTIONS" => {
                    SqlMode::EMPTY
                }
                other => match FLAGS.iter().find(|(known, _)| *known == other) {
                    Some((_, flag)) => *flag,
                    None => {
                        return Err(MySqlError::with(ErrorCode::WrongValueForVar, &[&"sql_mode", &name]));
                    }
                },
            };
            mode = mode.union(flag);
        }
        Ok(mode)
    }

    const ANSI_SET: SqlMode = SqlMode::REAL_AS_FLOAT
        .union(SqlMode::PIPES_AS_CONCAT)
        .union(SqlMode::ANSI_QUOTES)
        .union(SqlMode::IGNORE_SPACE)
        .union(SqlMode::ONLY_FULL_GROUP_BY)
        .union(SqlMode::ANSI);

    const TRADITIONAL_SET: SqlMode = SqlMode::STRICT_TRANS_TABLES
        .union(SqlMode::STRICT_ALL_TABLES)
        .union(SqlMode::NO_ZERO_IN_DATE)
        .union(SqlMode::NO_ZERO_DATE)
        .union(SqlMode::ERROR_FOR_DIVISION_BY_ZERO)
        .union(SqlMode::TRADITIONAL)
        .union(SqlMode::NO_ENGINE_SUBSTITUTION);
}

impl Default for SqlMode {
    /// MySQL 8's default.
    fn default() -> SqlMode {
        SqlMode::ONLY_FULL_GROUP_BY
            .union(SqlMode::STRICT_TRANS_TABLES)
            .union(SqlMode::NO_ZERO_IN_DATE)
            .union(SqlMode::NO_ZERO_DATE)
            .union(SqlMode::ERROR_FOR_DIVISION_BY_ZERO)
            .union(SqlMode::NO_ENGINE_SUBSTITUTION)
    }
}

impl fmt::Display for SqlMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = FLAGS.iter().filter(|(_, flag)| self.contains(*flag)).map(|(name, _)| *name);
        for (index, name) in names.enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SqlMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlMode({self})")
    }
}

/// How serious a warning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningLevel {
    /// Good to know.
    Note,
    /// Something was changed or ignored.
    Warning,
    /// The error that ended the statement.
    Error,
}

impl WarningLevel {
    /// The word SHOW WARNINGS prints.
    pub const fn name(self) -> &'static str {
        match self {
            WarningLevel::Note => "Note",
            WarningLevel::Warning => "Warning",
            WarningLevel::Error => "Error",
        }
    }
}

/// One line of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How serious it is.
    pub level: WarningLevel,
    /// Number, class and text.
    pub error: MySqlError,
}

/// The warnings of a statement: all are counted, the first [`Warnings::KEPT_MAX`] are kept.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kept: Vec<Warning>,
    count: u64,
}

impl Warnings {
    /// MySQL's default of max_error_count.
    pub const KEPT_MAX: usize = 1024;

    /// None yet.
    pub const fn new() -> Warnings {
        Warnings { kept: Vec::new(), count: 0 }
    }

    /// Adds a warning.
    pub fn warn(&mut self, error: MySqlError) {
        self.push(WarningLevel::Warning, error);
    }

    /// Adds a note.
    pub fn note(&mut self, error: MySqlError) {
        self.push(WarningLevel::Note, error);
    }

    /// Adds a line of any level.
    pub fn push(&mut self, level: WarningLevel, error: MySqlError) {
        self.count += 1;
        if self.kept.len() < Self::KEPT_MAX {
            self.kept.push(Warning { level, error });
        }
    }

    /// The kept lines in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Warning> {
        self.kept.iter()
    }

    /// How many there were, kept or not.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The count as the OK packet carries it.
    pub fn count_u16(&self) -> u16 {
        u16::try_from(self.count).unwrap_or(u16::MAX)
    }

    /// Whether there were none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all, at the start of a statement.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
    }
}

impl<'a> IntoIterator for &'a Warnings {
    type Item = &'a Warning;
    type IntoIter = std::slice::Iter<'a, Warning>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_mode_prints_as_mysql_does() {
        let text = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                    ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
        assert_eq!(SqlMode::default().to_string(), text);
        assert_eq!(SqlMode::parse(&text.to_lowercase()).unwrap(), SqlMode::default());
        assert_eq!(SqlMode::parse("").unwrap(), SqlMode::EMPTY);
        assert_eq!(SqlMode::parse("x").unwrap_err().code, 1231);
        assert!(SqlMode::parse("traditional").unwrap().is_strict());
        assert!(SqlMode::parse("ANSI").unwrap().to_string().starts_with("REAL_AS_FLOAT,PIPES_AS_CONCAT"));
    }

    #[test]
    fn warnings_are_counted_beyond_what_is_kept() {
        let mut warnings = Warnings::new();
        for _ in 0..2000 {
            warnings.warn(MySqlError::new(ErrorCode::DivisionByZero));
        }
        assert_eq!((warnings.count(), warnings.iter().len()), (2000, Warnings::KEPT_MAX));
    }
}
