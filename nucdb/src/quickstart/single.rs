//! A whole cluster in one process: management server, data nodes and SQL node, by the same code as the
//! processes of their own, linked by rings instead of sockets.
//!
//! Each node has a thread of its own that does what its daemon's main thread does, in a span that names the
//! node in every log line. Data nodes listen on their ports as ever, so that clients outside reach them; the
//! SQL node and the data nodes find each other inside the process (`transporter::inproc`).
//!
//! Data nodes get equal shares of the CPUs. Where a share would be less than two they are not bound at all:
//! two workers bound to one CPU wait for each other while another CPU idles.
//!
//! ```text
//!   mgmd ──answers──► data nodes, SQL node ──► running
//!   running ──SHUTDOWN──► data nodes and mgmd end; the SQL node stays and refuses statements
//!   running ──a node fails──► failure(): the front door ends the process
//!   stop(): SQL node, then the data nodes together, then mgmd
//! ```
//!
//! What belongs to the process is the front door's alone: signals, the log, the exit code. A panic that ends
//! a node's own thread is that node's failure; one in a client's task costs that client its connection, as
//! it does where the SQL node is a process.

use super::{Layout, MGMD_LIMIT};
use datanode::Options;
use datanode::daemon::manage::StopSignals;
use mgmd::command::{Format, Session};
use mgmd::{Mgmd, MgmdOptions};
use signals::NodeId;
use sqlnode::protocol::StopHandle;
use sqlnode::{Node, NodeConfig};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::Span;
use tracing_subscriber::EnvFilter;

/// The process's name: of its pid file and its log.
pub const NAME: &str = "single";

/// How long a node may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(15);
/// How long the SQL node may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(20);

/// What is in the log; `RUST_LOG` says otherwise.
const LOGGED: &str = "info,quinn=error,quinn_proto=error";

/// A node's end: why it ended as it should, or what went wrong.
struct Ended {
    name: String,
    outcome: Result<String, String>,
}

/// See the module.
pub(super) struct Single {
    connect_string: String,
    running: BTreeSet<String>,
    ended: mpsc::Receiver<Ended>,
    ended_sender: mpsc::Sender<Ended>,
    stop_mgmd: Option<oneshot::Sender<()>>,
    stop_data: StopSignals,
    stop_sql: Option<StopHandle>,
}

/// Sends the log of all nodes to `file`, or to standard error.
///
/// # Errors
/// The file cannot be written.
pub(super) fn log_to(file: Option<&Path>) -> Result<(), String> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false);
    // A second subscriber in one process (tests) is refused; the first stays.
    let _ = match file {
        None => builder.with_writer(std::io::stderr).try_init(),
        Some(path) => {
            let file = std::fs::File::create(path);
            let file = file.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
            builder.with_writer(Mutex::new(file)).try_init()
        }
    };
    Ok(())
}

/// The CPUs of the data node at `place` among `nodes`; none if it is better not bound.
fn share_of_cpus(place: usize, nodes: usize, cpus: &[usize]) -> Vec<usize> {
    let share = cpus.len() / nodes.max(1);
    if share < 2 {
        return Vec::new();
    }
    cpus.iter().skip(place * share).take(share).copied().collect()
}

impl Single {
    /// Starts all nodes. They join each other in their own time: [`Self::failure`] tells of one that cannot.
    ///
    /// # Errors
    /// The management server or the SQL node cannot start, or there are no threads.
    pub(super) fn start(layout: &Layout) -> Result<Self, String> {
        let (ended_sender, ended) = mpsc::channel();
        let mut single = Self {
            connect_string: format!("127.0.0.1:{}", layout.ports.mgm),
            running: BTreeSet::new(),
            ended,
            ended_sender,
            stop_mgmd: None,
            stop_data: StopSignals::default(),
            stop_sql: None,
        };
        let started = single.start_mgmd(layout).and_then(|()| {
            single.start_data_nodes(layout)?;
            single.start_sql_node(layout)
        });
        match started {
            Ok(()) => Ok(single),
            Err(why) => {
                // The reason of the start's failure matters more than one of its clean-up.
                let _ = single.stop();
                Err(why)
            }
        }
    }

    /// Runs `work` on a thread of its own as the node `name`.
    fn spawn(
        &mut self,
        name: String,
        span: Span,
        work: impl FnOnce() -> Result<String, String> + Send + 'static,
    ) -> Result<(), String> {
        let ended = self.ended_sender.clone();
        let of_thread = name.clone();
        let main = move || {
            let _span = span.entered();
            let outcome = catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err("failed on an internal error, see the log".into()));
            match &outcome {
                Ok(reason) => tracing::info!("stopped: {reason}"),
                Err(why) => tracing::error!("{why}"),
            }
            // Nobody listens any more when the process is at its end.
            let _ = ended.send(Ended { name: of_thread, outcome });
        };
        let thread = std::thread::Builder::new().name(name.clone());
        thread.spawn(main).map_err(|e| format!("cannot start {name}: {e}"))?;
        self.running.insert(name);
        Ok(())
    }

    /// Waits until a node that was just spawned says that it listens.
    fn wait_until_ready<T>(
        &mut self,
        name: &str,
        ready: &mpsc::Receiver<T>,
        limit: Duration,
    ) -> Result<T, String> {
        match ready.recv_timeout(limit) {
            Ok(value) => Ok(value),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("{name} is not ready in time")),
            // Its thread is at its end, with a reason.
            Err(mpsc::RecvTimeoutError::Disconnected) => match self.ended.recv_timeout(limit) {
                Ok(ended) => Err(self.note(ended).unwrap_or_else(|| format!("{name} ended"))),
                Err(_) => Err(format!("{name} ended")),
            },
        }
    }

    fn start_mgmd(&mut self, layout: &Layout) -> Result<(), String> {
        let options = MgmdOptions::new(layout.config_file());
        let (stop, stopping) = oneshot::channel();
        let (ready_sender, ready) = mpsc::channel();
        self.spawn("mgmd".into(), tracing::error_span!("mgmd"), move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
            runtime.block_on(async {
                let started = Mgmd::start(&options).await;
                let mut server = started.map_err(|e| format!("cannot start: {e}"))?;
                for warning in server.warnings() {
                    tracing::warn!("{warning}");
                }
                tracing::info!(node = %server.node_id(), address = %server.address(), "ready");
                let _ = ready_sender.send(());
                tokio::select! {
                    () = server.stopped() => Ok("by order of an operator".into()),
                    _ = stopping => {
                        server.stop().await;
                        Ok("with the process".into())
                    }
                }
            })
        })?;
        self.stop_mgmd = Some(stop);
        self.wait_until_ready("mgmd", &ready, MGMD_LIMIT)
    }

    fn start_data_nodes(&mut self, layout: &Layout) -> Result<(), String> {
        let config = layout.config()?;
        let cpus = datanode::setup::cpus_of_process();
        let count = config.data_nodes.len();
        for (place, node) in config.data_nodes.iter().enumerate() {
            let id = node.node_id;
            let cpus = share_of_cpus(place, count, &cpus);
            let options = Options { in_process: true, cpus: Some(cpus) };
            let (connect_string, stop) = (self.connect_string.clone(), Arc::clone(&self.stop_data));
            let span = tracing::error_span!("datanode", id = id.0);
            self.spawn(format!("datanode{id}"), span, move || {
                serve_data_node(&connect_string, id, &options, &stop)
            })?;
        }
        Ok(())
    }

    fn start_sql_node(&mut self, layout: &Layout) -> Result<(), String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, layout.ports.sql));
        let mut config = NodeConfig::new(self.connect_string.clone(), address);
        config.data_dir = Some(layout.dir.join("sqlnode"));
        let (ready_sender, ready) = mpsc::channel();
        let span = tracing::error_span!("sqlnode");
        let context = span.clone();
        self.spawn("sqlnode".into(), span, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .thread_name("sqlnode")
                .on_thread_start(move || enter(&context))
                .on_thread_stop(leave)
                .build()
                .map_err(|e| format!("cannot start its threads: {e}"))?;
            runtime.block_on(async {
                let node = Node::bind(config).await.map_err(|e| e.to_string())?;
                tracing::info!(address = %node.address(), "ready for MySQL clients");
                let _ = ready_sender.send(node.stop_handle());
                node.run().await;
                Ok("with the process".into())
            })
        })?;
        self.stop_sql = Some(self.wait_until_ready("sqlnode", &ready, LISTEN_LIMIT)?);
        Ok(())
    }

    /// Takes note of a node's end; a line if it was a failure.
    fn note(&mut self, ended: Ended) -> Option<String> {
        self.running.remove(&ended.name);
        ended.outcome.err().map(|why| format!("{}: {why}", ended.name))
    }

    /// A line about the first node that has failed, if one has. A node that ended as an operator asked is no
    /// failure.
    pub(super) fn failure(&mut self) -> Option<String> {
        while let Ok(ended) = self.ended.try_recv() {
            if let Some(line) = self.note(ended) {
                return Some(line);
            }
        }
        None
    }

    fn is_running(&self, prefix: &str) -> bool {
        self.running.iter().any(|name| name.starts_with(prefix))
    }

    fn wait_for_end(&mut self, prefix: &str, troubles: &mut Vec<String>) {
        let deadline = Instant::now() + STOP_LIMIT;
        while self.is_running(prefix) {
            match self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(ended) => troubles.extend(self.note(ended)),
                Err(_) => {
                    troubles.push(format!("{prefix} does not end within {} s", STOP_LIMIT.as_secs()));
                    return;
                }
            }
        }
    }

    /// Stops all nodes in order; returns when they have ended or had their time.
    ///
    /// # Errors
    /// A node failed, or did not end; the process is to end all the same.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let mut troubles = Vec::new();
        if let Some(sql) = self.stop_sql.take() {
            sql.stop();
            self.wait_for_end("sqlnode", &mut troubles);
        }
        if self.is_running("mgmd") && self.is_running("datanode") {
            let reply = Session::new(&self.connect_string, Format::Text).execute("SHUTDOWN");
            if reply.exit_code != 0 {
                tracing::warn!("the management server did not stop the data nodes: {}", reply.text);
            }
        }
        // For those that do not hear the management server.
        self.stop_data.fetch_add(1, Ordering::AcqRel);
        self.wait_for_end("datanode", &mut troubles);
        if let Some(stop) = self.stop_mgmd.take() {
            // Fails only for a server that has stopped.
            let _ = stop.send(());
            self.wait_for_end("mgmd", &mut troubles);
        }
        if troubles.is_empty() { Ok(()) } else { Err(troubles.join("; ")) }
    }
}

/// A data node's life, on a thread of its own.
fn serve_data_node(
    connect_string: &str,
    id: NodeId,
    options: &Options,
    stop: &StopSignals,
) -> Result<String, String> {
    match datanode::daemon::serve(connect_string, Some(id), options, stop) {
        Ok(exit) if exit.error => Err(exit.reason),
        Ok(exit) => Ok(exit.reason),
        Err(error) => Err(format!("cannot start: {error}")),
    }
}

thread_local! {
    /// The span of a runtime's thread, for as long as the thread lives.
    static CONTEXT: RefCell<Option<tracing::span::EnteredSpan>> = const { RefCell::new(None) };
}

fn enter(span: &Span) {
    CONTEXT.set(Some(span.clone().entered()));
}

fn leave() {
    CONTEXT.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_nodes_share_the_cpus_or_are_not_bound() {
        let cpus: Vec<usize> = (0..8).collect();
        assert_eq!(share_of_cpus(0, 2, &cpus), [0, 1, 2, 3]);
        assert_eq!(share_of_cpus(1, 2, &cpus), [4, 5, 6, 7]);
        assert_eq!(share_of_cpus(2, 3, &cpus), [4, 5]);
        assert!(share_of_cpus(0, 2, &[0, 1]).is_empty());
        assert!(share_of_cpus(3, 8, &cpus).is_empty());
        assert_eq!(share_of_cpus(0, 1, &[2, 5]), [2, 5]);
    }
}
