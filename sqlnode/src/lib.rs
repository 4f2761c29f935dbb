//! The SQL node: MySQL's protocol, parser, planner and row executor over `ndbapi`.
//!
//! It talks to the cluster through `ndbapi` alone and never sees a signal.

pub mod catalog;
pub mod daemon;
pub mod error;
pub mod exec;
pub mod expr;
pub mod parser;
pub mod plan;
pub mod protocol;
pub mod session;
pub mod value;

pub use session::{Node, NodeConfig};
