//! Row executor: runs planned statements against the cluster, row by row, in bounded memory.
//!
//! Role: [`store`] is the one place that touches `ndbapi`; [`errors`] turns its codes into MySQL's;
//! [`select`] answers queries; [`write`] inserts, updates and deletes; [`rows`] converts between stored
//! bytes and values; [`access`] decides between key operations and a scan and, for changes, locks each row
//! and looks at it again before it is changed, so that concurrent changes are exact.
//!
//! Statements run inside a transaction the session owns. An error leaves it to the session to undo the
//! statement. Nothing here parses, sends packets by itself or keeps state between statements.

pub mod access;
pub mod errors;
pub mod rows;
pub mod select;
pub mod store;
pub mod write;

use crate::expr::{EvalContext, SessionFacts};
use crate::session::Facts;
use crate::value::{ErrorCode, MySqlError, Result, Value, Warnings};

/// What every part of a statement's execution needs.
pub struct Env<'a> {
    /// The session's facts.
    pub facts: &'a Facts,
    /// The statement's parameters.
    pub params: &'a [Value],
    /// Where warnings go.
    pub warnings: &'a mut Warnings,
}

impl Env<'_> {
    /// A context for evaluating expressions.
    pub fn eval(&mut self) -> EvalContext<'_> {
        EvalContext {
            facts: self.facts as &dyn SessionFacts,
            params: self.params,
            aggs: &[],
            new_row: &[],
            warnings: self.warnings,
            writing: false,
        }
    }
}

/// Counts the memory a statement keeps and fails it at the limit, so that no query can exhaust the node.
#[derive(Debug)]
pub struct MemoryBudget {
    used: usize,
    max: usize,
}

impl MemoryBudget {
    /// A budget of `max` bytes.
    pub fn new(max: usize) -> Self {
        Self { used: 0, max }
    }

    /// Takes room for a row.
    ///
    /// # Errors
    /// 1038 when the budget is used up.
    pub fn take_row(&mut self, row: &[Value]) -> Result<()> {
        let texts: usize = row.iter().map(|v| if let Value::Text(t) = v { t.len() } else { 0 }).sum();
        self.take(size_of_val(row) + 48 + texts)
    }

    /// Takes some bytes.
    ///
    /// # Errors
    /// 1038 when the budget is used up.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.max {
            let text = format!(
                "Out of sort memory: the statement keeps more than {} bytes of rows; add a WHERE or LIMIT, or raise \
                 statement_memory",
                self.max
            );
            return Err(MySqlError::text(ErrorCode::OutOfSortMemory, text));
        }
        Ok(())
    }
}
