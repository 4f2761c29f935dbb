//! The SQL node as a program: its command line, its log, its signals.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::session::{Node, NodeConfig};
use clap::Parser;

/// A SQL node: MySQL clients in front, the cluster behind.
#[derive(Parser)]
#[command(name = "nucdb-sqlnode", version, about)]
struct Options {
    /// Management servers: host:port[,host:port...]
    #[arg(short = 'c', long, default_value = "127.0.0.1:1186")]
    connect_string: String,
    /// Where MySQL clients connect
    #[arg(long, default_value = "127.0.0.1")]
    bind_address: std::net::IpAddr,
    /// The port for MySQL clients
    #[arg(short = 'P', long, default_value_t = 3306)]
    port: u16,
    /// Where the TLS certificate is kept; without it one is made for each start
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// The most MySQL clients at one time
    #[arg(long, default_value_t = 151)]
    max_connections: usize,
}

/// Runs the SQL node of a command line, the program's name first.
#[must_use]
pub fn main_from(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    let options = Options::parse_from(arguments);
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
        )
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("nucdb-sqlnode: cannot start its threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> ExitCode {
    let address = SocketAddr::new(options.bind_address, options.port);
    let mut config = NodeConfig::new(options.connect_string, address);
    config.data_dir = options.data_dir;
    config.server.max_connections = options.max_connections;
    let node = match Node::bind(config).await {
        Ok(node) => node,
        Err(error) => {
            eprintln!("nucdb-sqlnode: {error}");
            return ExitCode::FAILURE;
        }
    };
    tracing::info!(address = %node.address(), "ready for MySQL clients");
    let stop = node.stop_handle();
    tokio::spawn(async move {
        let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(terminate) => terminate,
            Err(error) => {
                tracing::warn!(%error, "cannot listen for SIGTERM");
                return;
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        stop.stop();
    });
    node.run().await;
    ExitCode::SUCCESS
}
