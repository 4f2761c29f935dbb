//! The harness of the cluster stories: real processes, real clients, bounded time, nothing left behind.
//!
//! * [`Cluster`] starts a cluster by `nucdb quickstart` on free ports in a folder of its own.
//! * [`ByHand`] starts one whose data nodes a story kills and starts again.
//! * [`Sql`] runs the `mariadb` client against it, one command at a time; [`Session`] keeps one client open.
//! * [`run`] runs any program with a time limit and keeps its output.
//!
//! The stories themselves are in `tests/tests/cluster/`, one test binary, so that they link once and share a
//! cluster where they may ([`shared`]).
//!
//! What it never does: it does not reach into a node; a story sees what a user sees. It kills only processes
//! of the group it started.

mod by_hand;
mod cluster;
mod group;
mod program;
mod sql;

pub use by_hand::ByHand;
pub use cluster::{Cluster, Options, shared, shared_connect_string};
pub use group::Ports;
pub use program::{Finished, free_port, run};
pub use sql::{Session, Sql, SqlFailure};
