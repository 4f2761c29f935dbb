//! Stories of a whole cluster over real processes and real clients, in one test binary.
//!
//! Every story asserts what a user would see: contents, error numbers, who still answers. Stories that only
//! use SQL share one cluster and work in databases of their own; the others start theirs.

#![allow(clippy::unwrap_used, reason = "a story that cannot go on fails")]

mod data_nodes_away;
mod deadlock;
mod garbage;
mod killed_client;
mod large_rows;
mod mariadb_client;
mod native_api;
mod pymysql;
mod single_process;
mod sysbench;
mod types;
