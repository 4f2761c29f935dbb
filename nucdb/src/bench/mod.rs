//! Benchmarks of the front door: NDB's flexAsynch, and a comparison with Redis on the same machine.
//!
//! A benchmark is a function of its options and a place to print; it exits nowhere, it returns. It drives
//! the cluster through `ndbapi` alone and starts no cluster of its own.

mod contents;
pub mod flexasynch;
mod phases;
pub mod redis;
pub mod stats;

use crate::say;
use clap::Subcommand;
use ndbapi::NdbError;

/// `nucdb bench ...`
#[derive(Subcommand, Debug, Clone)]
pub enum Command {
    /// NDB's flexAsynch: insert, update, read and delete rows with many transactions in flight; every value
    /// read is checked.
    Flexasynch(flexasynch::Options),
    /// flexAsynch beside redis-benchmark on the same machine, and the ratios.
    CompareRedis(redis::Options),
}

/// Why a benchmark failed.
#[derive(Debug)]
pub enum BenchError {
    /// The cluster refused or is away.
    Ndb(NdbError),
    /// Rows were wrong or missing: a bug of the database.
    Verification(String),
    /// Operations failed for good.
    Failed(String),
    /// Something outside the cluster: a file, a process.
    Outside(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ndb(error) => error.fmt(f),
            Self::Verification(text) => write!(f, "verification failed: {text}"),
            Self::Failed(text) | Self::Outside(text) => f.write_str(text),
        }
    }
}
impl std::error::Error for BenchError {}

impl From<NdbError> for BenchError {
    fn from(error: NdbError) -> Self {
        Self::Ndb(error)
    }
}

/// Runs a benchmark; prints to standard output.
///
/// # Errors
/// See [`BenchError`]; the process should then exit with 1.
pub fn run(command: &Command) -> Result<(), BenchError> {
    match command {
        Command::Flexasynch(options) => {
            options.validate()?;
            flexasynch::run(options, &mut |line| say!("{line}")).map(drop)
        }
        Command::CompareRedis(options) => redis::run(options, &mut |line| say!("{line}")),
    }
}

/// Brings NDB's one-dash long options (`-temp`) into the form the argument parser knows.
pub fn fix_arguments(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut after_bench = false;
    let fix = |argument: std::ffi::OsString| {
        after_bench |= argument == "bench";
        if after_bench && argument == "-temp" { "--temp".into() } else { argument }
    };
    arguments.into_iter().map(fix).collect()
}
