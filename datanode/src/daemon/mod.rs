//! The daemon: `nucdb-datanode`, from command line to exit code.
//!
//! ```text
//!   options ─► management server: node id, configuration ─► DataDir, pid file ─► node::start ─► manage until the end
//! ```
//!
//! It stays in the foreground; whoever wants a service uses a supervisor or `nucdb quickstart --detach`.
//! Exit codes: 0 stopped as asked, 1 could not start, 2 wrong usage, 3 stopped because of a failure.
//! SIGTERM and SIGINT stop the node the planned way; a second one ends the process at once.

pub mod data_dir;
pub mod manage;

use crate::node::Options;
use crate::setup::StartError;
use clap::{Parser, ValueEnum};
use data_dir::DataDir;
use manage::{Managed, StopSignals};
use signals::NodeId;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code of a start that failed.
pub const EXIT_NO_START: u8 = 1;
/// Exit code of a node that stopped because of a failure.
pub const EXIT_FAILURE: u8 = 3;

/// How the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A data node of a nucdb cluster. It gets its node id and configuration from the management server.
#[derive(Parser, Clone, Debug)]
#[command(name = "nucdb-datanode", version)]
pub struct DaemonOptions {
    /// Where the management servers are: host[:port][,host[:port]...]
    #[arg(
        short = 'c',
        long = "connect-string",
        visible_alias = "ndb-connectstring",
        env = "NDB_CONNECTSTRING",
        default_value = "127.0.0.1:1186"
    )]
    pub connect_string: String,
    /// The node id to ask for; any free one if absent
    #[arg(long = "ndb-nodeid", value_parser = clap::value_parser!(u8).range(1..=144))]
    pub node_id: Option<u8>,
    /// Start without what an earlier run left in DataDir
    #[arg(long)]
    pub initial: bool,
    /// How the log looks
    #[arg(long, value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Write the log here instead of to standard output
    #[arg(long)]
    pub log_file: Option<PathBuf>,
    /// Stay in the foreground (it always does; accepted for those who are used to it)
    #[arg(long)]
    pub foreground: bool,
}

/// Runs the daemon of a command line, the program's name first.
#[must_use]
pub fn main_from(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    let options = DaemonOptions::parse_from(arguments);
    if let Err(error) = init_log(options.log_format, options.log_file.as_deref()) {
        eprintln!("nucdb-datanode: {error}");
        return ExitCode::from(EXIT_NO_START);
    }
    match run(&options) {
        Ok(exit) if exit.error => {
            tracing::error!("stopped: {}", exit.reason);
            ExitCode::from(EXIT_FAILURE)
        }
        Ok(exit) => {
            tracing::info!("stopped: {}", exit.reason);
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("cannot start: {error}");
            // Whoever started it by hand looks at the terminal, not at a log file.
            if options.log_file.is_some() {
                eprintln!("nucdb-datanode: cannot start: {error}");
            }
            ExitCode::from(EXIT_NO_START)
        }
    }
}

/// Runs the node of a command line until it ends, by itself or by a signal; returns why it ended.
///
/// # Errors
/// It could not start.
pub fn run(options: &DaemonOptions) -> Result<crate::Exit, StartError> {
    let stop = manage::stop_on_signals()?;
    if options.initial {
        tracing::info!("initial start: nothing of an earlier run is used");
    }
    serve(&options.connect_string, options.node_id.map(NodeId), &Options::default(), &stop)
}

/// Joins the cluster as a data node, runs the node until it ends or `stop` counts a signal, and returns why
/// it ended. What the daemon does, without a command line and signals of its own: for a process with several
/// nodes.
///
/// # Errors
/// It could not start.
pub fn serve(
    connect_string: &str,
    wanted: Option<NodeId>,
    options: &Options,
    stop: &StopSignals,
) -> Result<crate::Exit, StartError> {
    let joined = manage::join(connect_string, wanted)?;
    let config = joined.handle().config();
    let node_id = joined.handle().node_id();
    let own = config
        .data_node(node_id)
        .ok_or_else(|| StartError(format!("the configuration has no data node {node_id}")))?;
    let data_dir = DataDir::open(&own.data_dir, node_id)?;
    tracing::info!("data node {node_id} of cluster {}, DataDir {}", config.name, data_dir.path().display());
    let node = crate::node::start(&config, node_id, options)?;
    for line in node.layout().describe().lines() {
        tracing::info!("{line}");
    }
    let exit = Managed::new(node, joined).run(stop);
    drop(data_dir);
    Ok(exit)
}

/// Sends the log to standard output or a file. `RUST_LOG` chooses what is in it; the default is `info`.
///
/// # Errors
/// The file cannot be opened.
pub fn init_log(format: LogFormat, file: Option<&std::path::Path>) -> Result<(), StartError> {
    use tracing_subscriber::{EnvFilter, fmt};
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let builder = fmt().with_env_filter(filter).with_target(false).with_ansi(ansi);
    // A second subscriber in one process (tests) is refused; the first stays.
    let _ = match (file, format) {
        (None, LogFormat::Text) => builder.try_init(),
        (None, LogFormat::Json) => builder.json().try_init(),
        (Some(path), format) => {
            let file = std::fs::File::options().create(true).append(true).open(path).map_err(|error| {
                StartError(format!("cannot write the log file {} (--log-file): {error}", path.display()))
            })?;
            let builder = builder.with_ansi(false).with_writer(std::sync::Mutex::new(file));
            match format {
                LogFormat::Text => builder.try_init(),
                LogFormat::Json => builder.json().try_init(),
            }
        }
    };
    Ok(())
}
