//! Runs all that CI runs.
fn main() {}
