//! The seam between protocol and SQL: what a session must do for the commands of its client.
//!
//! The protocol side owns bytes, packets, login and prepared-statement bookkeeping; the SQL side implements
//! [`Session`] and writes its results through a [`ResultWriter`]. One session belongs to one connection and
//! is used by one task at a time. Statements are futures: when the client goes away or is killed, the
//! future is dropped in the middle and [`Session::interrupted`] is called, so sessions must keep their
//! state usable at every await.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::auth::Accounts;
use super::constants::{Capabilities, StatusFlags};
use super::processes::{Process, Processes};
use super::response::ColumnDefinition;
use super::writer::ResultWriter;
use crate::error::MySqlError;
use crate::value::Value;

/// What is known about a client once it has logged in.
#[derive(Debug, Clone)]
pub struct LoginInfo {
    /// The user's name.
    pub user: String,
    /// The client's host, without port.
    pub host: String,
    /// What client and server agreed on; [`Capabilities::FOUND_ROWS`] changes the meaning of affected rows.
    pub capabilities: Capabilities,
    /// The collation the client asked for.
    pub collation: u16,
    /// True when the connection is encrypted.
    pub tls: bool,
    /// Facts about the client program.
    pub attributes: Vec<(String, String)>,
    /// This connection's entry in the process list.
    pub process: Arc<Process>,
    /// The process list, for SHOW PROCESSLIST and KILL.
    pub processes: Arc<Processes>,
}

/// A statement that has been prepared.
#[derive(Debug)]
pub struct Prepared<S> {
    /// The session's own form of it.
    pub statement: S,
    /// One entry for each `?`.
    pub parameters: Vec<ColumnDefinition>,
    /// The columns of its result; empty when it returns no rows or they are not known yet.
    pub columns: Vec<ColumnDefinition>,
    /// How many warnings preparing it raised.
    pub warnings: u16,
}

/// What the SQL layer does for one client.
pub trait Session: Send + 'static {
    /// A prepared statement.
    type Statement: Send + 'static;

    /// The state that OK and EOF packets report.
    fn status(&self) -> StatusFlags;

    /// How long the client may be silent.
    fn wait_timeout(&self) -> Duration;

    /// Runs one or, if the client asked for that, several statements and writes all their results.
    fn query(
        &mut self,
        sql: &[u8],
        out: &mut ResultWriter<'_>,
    ) -> impl Future<Output = Result<(), MySqlError>> + Send;

    /// Prepares one statement.
    fn prepare(
        &mut self,
        sql: &[u8],
    ) -> impl Future<Output = Result<Prepared<Self::Statement>, MySqlError>> + Send;

    /// Runs a prepared statement; there is one value for each parameter.
    fn execute(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> impl Future<Output = Result<(), MySqlError>> + Send;

    /// Changes the current database.
    fn init_db(&mut self, database: &str) -> impl Future<Output = Result<(), MySqlError>> + Send;

    /// The columns of a table whose names match a LIKE pattern (empty: all).
    fn field_list(
        &mut self,
        table: &str,
        wildcard: &str,
    ) -> impl Future<Output = Result<Vec<ColumnDefinition>, MySqlError>> + Send;

    /// Makes the session as new: rolls back, forgets variables and temporary state, keeps the user.
    fn reset(&mut self) -> impl Future<Output = Result<(), MySqlError>> + Send;

    /// The last statement's future was dropped before its end; whatever it left open must be undone.
    fn interrupted(&mut self) -> impl Future<Output = ()> + Send;

    /// The connection has ended: rolls back and lets go of everything.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Makes the sessions of a server.
pub trait SessionFactory: Send + Sync + 'static {
    /// The kind of session made.
    type Session: Session;

    /// Who may log in.
    fn accounts(&self) -> &Accounts;

    /// Opens a session for a client that has logged in.
    fn open(&self, login: LoginInfo) -> impl Future<Output = Result<Self::Session, MySqlError>> + Send;
}
