//! nucdb's front door as a library: what the binary's commands do, callable by tests and by the benchmark
//! harness.
//!
//! It starts nothing by being linked, and holds no state between calls.

pub mod bench;
pub mod mgm;
pub mod quickstart;
pub mod stop;
