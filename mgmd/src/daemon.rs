//! The management server as a program: its command line, its log, its signals.

use crate::{Mgmd, MgmdOptions};
use clap::Parser;
use signals::ids::NodeId;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// The management server of a nucdb cluster: owns config.ini, hands out node ids, keeps the cluster log.
#[derive(Debug, Parser)]
#[command(name = "nucdb-mgmd", version)]
struct Arguments {
    /// The cluster's configuration.
    #[arg(short = 'f', long, default_value = "config.ini")]
    config_file: PathBuf,
    /// Folder for the cluster log and the accepted configuration, instead of the file's DataDir.
    #[arg(long, alias = "datadir")]
    data_dir: Option<PathBuf>,
    /// Which management server of the configuration this is; needed when there are several.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    ndb_nodeid: Option<u8>,
    /// Forget the stored configuration and take the file's.
    #[arg(long)]
    initial: bool,
    /// Accepted for NDB's sake: the file is always looked at.
    #[arg(long)]
    reload: bool,
    /// Accepted for NDB's sake: the server always stays in the foreground.
    #[arg(long)]
    nodaemon: bool,
}

/// Runs the server of a command line, the program's name first.
#[must_use]
pub fn main_from(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    let arguments = Arguments::parse_from(arguments);
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,quinn=error,quinn_proto=error")),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("nucdb-mgmd: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> ExitCode {
    let options = MgmdOptions {
        data_dir: arguments.data_dir,
        node_id: arguments.ndb_nodeid.map(NodeId),
        initial: arguments.initial,
        ..MgmdOptions::new(arguments.config_file)
    };
    let mut server = match Mgmd::start(&options).await {
        Ok(server) => server,
        Err(error) => {
            eprintln!("nucdb-mgmd: {error}");
            return ExitCode::FAILURE;
        }
    };
    for warning in server.warnings() {
        eprintln!("{warning}");
    }
    tracing::info!(node = %server.node_id(), address = %server.address(), "management server is ready");
    let signal = tokio::select! {
        () = server.stopped() => false,
        () = asked_to_end() => true,
    };
    if signal {
        server.stop().await;
    }
    ExitCode::SUCCESS
}

/// Waits for SIGTERM or SIGINT.
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut term), Ok(mut int)) => {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        }
        // Without handlers the signals' default action ends the process.
        _ => std::future::pending().await,
    }
}
