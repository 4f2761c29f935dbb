//! nucdb: the front door, one binary for starting, managing, measuring and looking into a cluster.
//!
//! It parses arguments and calls the library; every command lives there, in a module of its own. A failed command
//! prints one line and exits with 1.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// nucdb: a distributed in-memory cluster database
#[derive(Parser)]
#[command(name = "nucdb", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Benchmarks
    #[command(subcommand)]
    Bench(nucdb::bench::Command),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let arguments = Arguments::parse_from(nucdb::bench::fix_arguments(std::env::args_os()));
    let result = match &arguments.command {
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
