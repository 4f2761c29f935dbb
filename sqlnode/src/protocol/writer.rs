//! Result writer: what a session uses to send its results, row by row.
//!
//! A command's answer is one or more results. Each is either an OK or: columns, rows, end. The writer
//! frames them, chooses between OK and EOF by what the client can do, and hands bytes to the network
//! whenever enough have gathered, waiting while the client is slow: a result of any size passes through a
//! fixed amount of memory.
//!
//! States: *ready* (nothing of the current result written), *rows* (columns are out), and back to ready
//! when the result ends. An error may come in both; the driver then sends ERR, which ends the whole answer.

use super::constants::{Capabilities, StatusFlags};
use super::response::{ColumnDefinition, OkPacket, encode_eof, encode_ok};
use super::rows::{ColumnFormat, encode_binary_row, encode_text_row};
use super::stream::Output;
use super::wire::put_lenenc;
use crate::error::{ErrorCode, MySqlError};
use crate::value::Value;

/// How rows are spelled: as text (COM_QUERY) or in binary (COM_STMT_EXECUTE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// Every value as text.
    Text,
    /// Values in the form of their column's type.
    Binary,
}

/// Sends the results of one command.
#[derive(Debug)]
pub struct ResultWriter<'a> {
    out: &'a mut Output,
    capabilities: Capabilities,
    format: RowFormat,
    multi_statements: bool,
    more: bool,
    /// The formats of the current result's columns, while rows are due.
    columns: Option<Vec<ColumnFormat>>,
    results: u32,
}

impl<'a> ResultWriter<'a> {
    pub(super) fn new(
        out: &'a mut Output,
        capabilities: Capabilities,
        format: RowFormat,
        multi_statements: bool,
    ) -> Self {
        Self { out, capabilities, format, multi_statements, more: false, columns: None, results: 0 }
    }

    /// True when the client allows several statements in one command.
    pub fn multi_statements(&self) -> bool {
        self.multi_statements
    }

    /// Says whether another result will follow those written from now on.
    pub fn set_more_results(&mut self, more: bool) {
        self.more = more;
    }

    /// How many results have been completed.
    pub fn results(&self) -> u32 {
        self.results
    }

    /// Sends the outcome of a statement without rows.
    pub async fn ok(&mut self, ok: &OkPacket) -> Result<(), MySqlError> {
        let ok = OkPacket { status: self.status(ok.status), ..ok.clone() };
        encode_ok(self.out.encoder.begin(), 0, &ok);
        self.out.encoder.end();
        self.results += 1;
        self.relieve().await
    }

    /// Begins a result with rows.
    pub async fn begin_rows(
        &mut self,
        columns: &[ColumnDefinition],
        status: StatusFlags,
    ) -> Result<(), MySqlError> {
        put_lenenc(self.out.encoder.begin(), columns.len() as u64);
        self.out.encoder.end();
        for column in columns {
            column.encode(self.out.encoder.begin());
            self.out.encoder.end();
            self.relieve().await?;
        }
        if !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            let status = self.status(status);
            encode_eof(self.out.encoder.begin(), status, 0);
            self.out.encoder.end();
        }
        self.columns = Some(columns.iter().map(ColumnFormat::of).collect());
        Ok(())
    }

    /// Adds a row to what waits. There must be one value for each column. Call [`Self::relieve`] now and
    /// then, or use [`Self::row`], which does.
    pub fn push_row(&mut self, values: &[Value]) -> Result<(), MySqlError> {
        let Some(columns) = self.columns.as_ref().filter(|columns| columns.len() == values.len()) else {
            return Err(MySqlError::internal("a row does not fit its result's columns"));
        };
        let payload = self.out.encoder.begin();
        let encoded = match self.format {
            RowFormat::Text => encode_text_row(payload, columns, values),
            RowFormat::Binary => encode_binary_row(payload, columns, values),
        };
        match encoded {
            Ok(()) => {
                self.out.encoder.end();
                Ok(())
            }
            Err(error) => {
                self.out.encoder.abandon();
                Err(error)
            }
        }
    }

    /// Sends a row, waiting while the client is slow.
    pub async fn row(&mut self, values: &[Value]) -> Result<(), MySqlError> {
        self.push_row(values)?;
        self.relieve().await
    }

    /// Ends a result with rows.
    pub async fn end_rows(&mut self, status: StatusFlags, warnings: u16) -> Result<(), MySqlError> {
        self.columns = None;
        let status = self.status(status);
        end_of_result(self.out.encoder.begin(), self.capabilities, status, warnings);
        self.out.encoder.end();
        self.results += 1;
        self.relieve().await
    }

    /// Hands bytes to the network if enough have gathered.
    pub async fn relieve(&mut self) -> Result<(), MySqlError> {
        self.out.flush_if_full().await.map_err(|_| MySqlError::new(ErrorCode::NetErrorOnWrite))
    }

    fn status(&self, status: StatusFlags) -> StatusFlags {
        status.with_if(self.more, StatusFlags::MORE_RESULTS_EXISTS)
    }
}

/// The packet after the last row: EOF, or the OK that took its place.
pub(super) fn end_of_result(
    out: &mut Vec<u8>,
    capabilities: Capabilities,
    status: StatusFlags,
    warnings: u16,
) {
    if capabilities.has(Capabilities::DEPRECATE_EOF) {
        encode_ok(out, 0xfe, &OkPacket { status, warnings, ..OkPacket::default() });
    } else {
        encode_eof(out, status, warnings);
    }
}
