//! The cluster's configuration: what `config.ini` says, checked, completed with defaults and typed.
//!
//! Role: one text in (the caller reads the file), one [`ClusterConfig`] out, or every mistake of the file
//! at once. The way of a file through this crate:
//!
//! ```text
//! bytes --ini--> sections with line numbers --resolve--> values (table `params`) --check--> ClusterConfig
//!                                                                  |                            |
//!                                                               explain                  diff, thread layout
//! ```
//!
//! * `ini` knows lines, never parameters; `params` is data: every parameter NDB users may have in their
//!   file, with type, default, range, restart letter and a sentence; `resolve` joins the two and assigns
//!   node ids and groups; `check` holds what one parameter alone cannot show (contradictory pairs, ports
//!   used twice).
//! * `threads` turns `ThreadConfig`, or the CPUs really available, into a list of workers and the roles each
//!   hosts.
//!
//! It never opens a file, reads a clock, asks the operating system for its CPUs or talks to a node: all of
//! that is handed in, so every answer of this crate can be tested from a string.

mod check;
mod cluster;
mod diff;
mod explain;
mod ini;
pub mod params;
mod problem;
mod resolve;
#[cfg(test)]
mod tests;
pub mod threads;
mod value;

pub use cluster::{
    ApiNodeConfig, Arbitration, ClusterConfig, DataNodeConfig, MgmNodeConfig, NodeType, RedoProblemAction,
    TcpConfig, TcpLinkConfig,
};
pub use diff::{Change, ChangeKind, diff};
pub use explain::explain;
pub use params::Restart;
pub use problem::{ConfigErrors, PROBLEMS_MAX, Problem, ProblemCode, Severity};
pub use resolve::{Loaded, parse};
pub use threads::{Role, SpinMethod, ThreadConfig, ThreadLayout, WorkerLayout, auto_threads, available_cpus};

/// Highest node id a data node may have, and how many data nodes a cluster may have.
pub const MAX_DATA_NODES: usize = 144;
/// Highest node id of any node.
pub const MAX_NODE_ID: u8 = 255;
/// Data node `n` listens on this port plus `n` unless its `ServerPort` says otherwise.
///
/// NDB lets data nodes pick their ports at start; a firewall between two hosts then lets both nodes reach
/// the management server but never each other, and the log can only say that it waits. One fixed,
/// predictable port per node can be opened in a firewall before the first start and named in a message when
/// it cannot be reached.
pub const SERVER_PORT_BASE: u16 = 11860;
/// NDB's port of the management server.
pub const MGM_PORT: u16 = 1186;
