//! SQL against a small in-memory stand-in for the cluster, through real packets and real clients.

pub mod memory;
mod sql;
