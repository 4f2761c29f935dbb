//! nucdb: the front door, one binary for starting, managing, measuring and looking into a cluster.
//!
//! It parses arguments and calls the library; every command lives there, in a module of its own. A failed
//! command prints one line and exits with 1. `nucdb mgmd`, `nucdb datanode` and `nucdb sqlnode` are the
//! three servers, with the command lines of `nucdb-mgmd`, `nucdb-datanode` and `nucdb-sqlnode`, so that one
//! binary is a whole cluster.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// nucdb: a distributed in-memory cluster database
#[derive(Parser)]
#[command(
    name = "nucdb",
    version,
    after_help = "Examples:\n  nucdb quickstart --detach --dir ./demo\n  mariadb -h 127.0.0.1 -u root\n  \
                  nucdb mgm -e 'ALL STATUS'\n  nucdb stop --dir ./demo\n\n\
                  The servers by themselves: nucdb mgmd|datanode|sqlnode --help"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster on this machine: one management server, data nodes, one SQL node
    Quickstart(nucdb::quickstart::Arguments),
    /// All nodes of a quickstart folder in one process, as `quickstart --single-process --detach` starts it
    #[command(hide = true)]
    Single(nucdb::quickstart::SingleArguments),
    /// Stop a cluster that quickstart started
    Stop(nucdb::stop::Arguments),
    /// Manage a running cluster
    Mgm(nucdb::mgm::Arguments),
    /// Benchmarks
    #[command(subcommand)]
    Bench(nucdb::bench::Command),
}

impl Command {
    /// Whether the command runs nodes and sets up their log.
    fn logs_itself(&self) -> bool {
        match self {
            Self::Quickstart(arguments) => arguments.single_process && !arguments.detach,
            Self::Single(_) => true,
            Self::Stop(_) | Self::Mgm(_) | Self::Bench(_) => false,
        }
    }
}

fn main() -> ExitCode {
    let raw: Vec<OsString> = std::env::args_os().collect();
    if let Some(exit) = server(&raw) {
        return exit;
    }
    let arguments = Arguments::parse_from(nucdb::bench::fix_arguments(raw));
    if !arguments.command.logs_itself() {
        tracing_subscriber::fmt()
            .with_env_filter(
                tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
            )
            .with_writer(std::io::stderr)
            .init();
    }
    let result = match &arguments.command {
        Command::Quickstart(arguments) => nucdb::quickstart::run(arguments),
        Command::Single(arguments) => nucdb::quickstart::run_single(arguments),
        Command::Stop(arguments) => nucdb::stop::run(arguments),
        Command::Mgm(arguments) => return nucdb::mgm::run(arguments),
        Command::Bench(command) => nucdb::bench::run(command).map_err(|e| e.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("nucdb: {text}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one of the three servers if the command line names one.
fn server(raw: &[OsString]) -> Option<ExitCode> {
    let name = raw.get(1)?.to_str()?;
    let rest = raw.iter().skip(1).cloned();
    match name {
        "mgmd" => Some(mgmd::daemon::main_from(rest)),
        "datanode" => Some(datanode::daemon::main_from(rest)),
        "sqlnode" => Some(sqlnode::daemon::main_from(rest)),
        _ => None,
    }
}
