//! What is wrong (or merely odd) in a configuration file, told so that the operator can find and fix it.
//!
//! A [`Problem`] always names file and line, and section, key, value and a hint as far as they exist. All
//! problems of a file are collected and sorted by line; the file is refused when one of them is an error.
//! The list is bounded: a file of garbage yields [`PROBLEMS_MAX`] problems and a count of the rest.

use std::fmt;

/// How many problems of one file are kept; the rest is only counted.
pub const PROBLEMS_MAX: usize = 500;
/// Longest part of a value that is repeated in a message.
const VALUE_SHOWN_MAX: usize = 120;

/// Whether a problem refuses the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted; the operator should know.
    Warning,
}

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemCode {
    /// The line is neither a section, nor `key=value`, nor a comment.
    Syntax,
    /// There is no such section.
    UnknownSection,
    /// There is no such parameter in this section.
    UnknownParameter,
    /// The value is not of the parameter's type.
    BadValue,
    /// The value is of the right type but outside the allowed range.
    OutOfRange,
    /// The same parameter was set twice in one section.
    DuplicateKey,
    /// Two settings exclude each other.
    Contradiction,
    /// Something needed is not there.
    Missing,
    /// Two nodes have the same id.
    DuplicateNodeId,
    /// More nodes than a cluster can have.
    TooMany,
    /// Node groups and replicas do not fit the data nodes.
    NodeGroup,
    /// Accepted, but this release does nothing with it yet.
    NotUsedYet,
    /// Accepted, but the operator may not like what follows from it.
    Risk,
}

/// One problem of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Does it refuse the file?
    pub severity: Severity,
    /// What kind of problem.
    pub code: ProblemCode,
    /// The file's name as the caller gave it.
    pub file: String,
    /// Line in the file, from 1; 0 when the problem is about the file as a whole.
    pub line: u32,
    /// Section header as written, without brackets; empty if none.
    pub section: String,
    /// Parameter as written (or its proper name); empty if none.
    pub key: String,
    /// Value as written, shortened; empty if none.
    pub value: String,
    /// What is wrong, with the allowed range where there is one.
    pub message: String,
    /// What to do about it; empty if there is nothing to add.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(match self.severity {
            Severity::Error => ": error: ",
            Severity::Warning => ": warning: ",
        })?;
        if !self.section.is_empty() {
            write!(f, "[{}] ", self.section)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if !self.value.is_empty() {
                write!(f, " = {}", self.value)?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, " (hint: {})", self.hint)?;
        }
        Ok(())
    }
}

/// Where in the file something was said: copied into the problems about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) section: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Place {
    /// The file as a whole.
    pub(crate) fn file() -> Place {
        Place::default()
    }
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    list: Vec<Problem>,
    omitted: usize,
    errors: usize,
}

impl Problems {
    pub(crate) fn new(file: &str) -> Problems {
        Problems { file: file.to_owned(), list: Vec::new(), omitted: 0, errors: 0 }
    }

    pub(crate) fn error(&mut self, place: &Place, code: ProblemCode, message: impl Into<String>, hint: &str) {
        self.push(Severity::Error, place, code, message.into(), hint);
    }

    pub(crate) fn warn(&mut self, place: &Place, code: ProblemCode, message: impl Into<String>, hint: &str) {
        self.push(Severity::Warning, place, code, message.into(), hint);
    }

    fn push(&mut self, severity: Severity, place: &Place, code: ProblemCode, message: String, hint: &str) {
        if severity == Severity::Error {
            self.errors += 1;
        }
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        self.list.push(Problem {
            severity,
            code,
            file: self.file.clone(),
            line: place.line,
            section: shorten(&place.section),
            key: shorten(&place.key),
            value: shorten(&place.value),
            message,
            hint: hint.to_owned(),
        });
    }

    /// Whether further problems are only counted: no use in wording them with care.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Everything in line order (problems of the whole file first), errors before warnings on one line.
    pub(crate) fn finish(mut self) -> ConfigErrors {
        self.list.sort_by_key(|p| (p.line, p.severity));
        ConfigErrors { problems: self.list, omitted: self.omitted }
    }
}

/// A value as it may be repeated in a message: printable and not endless.
pub(crate) fn shorten(text: &str) -> String {
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i >= VALUE_SHOWN_MAX {
            out.push_str("...");
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// All problems of a refused file, in line order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// The problems, warnings included, in line order.
    pub problems: Vec<Problem>,
    /// How many more there were than are listed.
    pub omitted: usize,
}

impl ConfigErrors {
    /// Only the errors, without the warnings.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|p| p.severity == Severity::Error)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n... and {} more problems", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
