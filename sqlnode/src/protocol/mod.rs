//! MySQL's client/server protocol, server side: everything between a client's socket and the SQL session.
//!
//! Role: greet, log in, read commands, hand them to a [`Session`], send its results. The lower half is
//! sans-IO and tested without sockets: [`packet`] (frames), [`handshake`] and [`login`] (who comes in),
//! [`auth`] (passwords), [`command`] and [`params`] (what a client asks), [`response`] and [`rows`] (what
//! it gets). The upper half is a thin tokio driver: [`server`] accepts, `connection` logs in, `dispatch`
//! serves commands, [`writer`] streams results with back-pressure, [`processes`] lists and ends
//! connections.
//!
//! A connection's states: greeting -> (TLS) -> login -> commands -> over. The client moves it forward by its
//! packets; KILL, shutdown, timeouts and errors of framing move it to over.
//!
//! Promises: no byte sequence panics, hangs or grows memory without bound; a statement's error never ends the
//! connection; a client that disappears is noticed while its statement runs and the statement is dropped.
//!
//! It never parses SQL, knows no table and opens no connection to the cluster.

pub mod auth;
pub mod command;
mod connection;
pub mod constants;
mod dispatch;
pub mod error;
pub mod handshake;
pub mod login;
pub mod packet;
pub mod params;
pub mod processes;
pub mod response;
pub mod rows;
pub mod server;
pub mod session;
mod statements;
mod stream;
pub mod tls;
pub mod wire;
pub mod writer;

#[cfg(test)]
mod tests;

pub use auth::{Account, Accounts, AuthPlugin, StoredPassword};
pub use constants::{Capabilities, ColumnFlags, ColumnType, StatusFlags};
pub use response::{ColumnDefinition, OkPacket};
pub use server::{SERVER_VERSION, Server, ServerConfig, ServerError, StopHandle};
pub use session::{LoginInfo, Prepared, Session, SessionFactory};
pub use writer::{ResultWriter, RowFormat};
