//! The native client library: key operations, transactions, scans and the dictionary, straight at the data
//! nodes.
//!
//! Role: everything that talks to the data of a cluster goes through this crate: applications, the SQL
//! node, the benchmarks. It is cut in three:
//!
//! * [`core`] is the protocol as a state machine without clock, thread or socket. Frames of the data nodes
//!   go in, frames for them and completions come out. A simulator runs it as it is.
//! * [`cluster`] is the asynchronous driver for tokio: [`ClusterConnection`], [`Transaction`], [`Scan`],
//!   [`Dictionary`]. All tasks of a process share one core, so that what they do at the same time travels
//!   together.
//! * [`poll`] is the driver for programs without a runtime: a session owns its links, and one thread drives
//!   it.
//!
//! What both share stands beside them: [`Batch`] (operations to send and their results), [`Row`], [`Value`],
//! [`Table`], [`NdbError`].
//!
//! ```no_run
//! # async fn example() -> Result<(), ndbapi::NdbError> {
//! let cluster = ndbapi::ClusterConnection::connect("127.0.0.1:1186").await?;
//! let table = cluster.dictionary().table("test", "t1").await?;
//! let mut tx = cluster.begin();
//! tx.insert(&table).key(&[1u32.into()]).set("name", "Ada").finish()?;
//! tx.commit().await?;
//! let mut tx = cluster.begin();
//! let read = tx.read(&table).key(&[1u32.into()]).finish()?;
//! let results = tx.execute().await?;
//! assert_eq!(results.row(read)?.expect("it is there").get_str("name")?, Some("Ada"));
//! # Ok(()) }
//! ```
//!
//! What it never does: it never parses SQL, never decides what is durable, and never reports a transaction as
//! committed unless the coordinator said so; an outcome nobody knows is reported as such
//! ([`NdbError::unknown_outcome`]).

pub mod batch;
pub mod cluster;
pub mod connect;
pub mod core;
pub mod dictionary;
pub mod driven;
pub mod error;
mod net;
pub mod poll;
pub mod row;
pub mod scan;
pub mod table;
pub mod transaction;
pub mod value;

pub use batch::{Batch, OpBuilder, OpId, Template};
pub use cluster::ClusterConnection;
pub use connect::ConnectOptions;
pub use core::{RowBatch, ScanSpec};
pub use dictionary::Dictionary;
pub use error::NdbError;
pub use row::Row;
pub use scan::Scan;
pub use table::{Column, Table, TableHandle};
pub use transaction::{Results, Savepoint, Transaction};
pub use value::Value;
