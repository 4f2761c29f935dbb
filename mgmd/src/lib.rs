//! The management server and the operator's command language.
//!
//! The server owns the configuration: it reads `config.ini`, hands out node ids and the configuration,
//! keeps the cluster log, and passes an operator's commands on to the nodes they concern. Data nodes and
//! API nodes hold a link to it while they live (`transporter::mgm_link`); nothing on the data path ever
//! waits for it, and a cluster goes on without it.
//!
//! * `start`: from options and a file to a running server ([`Mgmd`]); refuses with reasons.
//! * `config_state`: which configuration is active, what the file says, when the one becomes the other.
//! * `store`: the accepted configuration on disk. `cluster_log`: the log, rotated and bounded.
//! * `slots`: who has which node id; knows no network. `server`: links and sessions. `requests`: one handler
//!   each.
//! * [`command`]: NDB's management commands parsed, run through a client and rendered as text or JSON; used
//!   by `nucdb mgm`.
//!
//! It never touches rows, never decides who is alive in the cluster (the data nodes' heartbeats do), and
//! never changes the configuration under a live data node.

mod cluster_log;
pub mod command;
mod config_state;
pub mod daemon;
mod requests;
mod server;
mod slots;
mod start;
mod store;

#[cfg(test)]
mod tests;

pub use cluster_log::{FILE_BYTES_MAX, FILES_MAX};
pub use start::{Mgmd, MgmdOptions, StartError};
