//! The SQL node: MySQL's protocol, parser, planner and row executor over `ndbapi`.
//!
//! It talks to the cluster through `ndbapi` alone and never sees a signal.

pub mod error;
pub mod expr;
pub mod parser;
pub mod protocol;
pub mod value;
