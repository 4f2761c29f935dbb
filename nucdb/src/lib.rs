//! nucdb's front door as a library: what the binary's commands do, callable by tests and by the benchmark
//! harness.
//!
//! It starts nothing by being linked, and holds no state between calls.

pub mod bench;
pub mod mgm;
pub mod quickstart;
pub mod stop;

/// Prints a line to standard output. Whoever read it may have gone away (`| head`): that is no failure of
/// the command, and must not end a cluster that was just started.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}
