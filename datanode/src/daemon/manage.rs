//! Manage: a running node and its management link - reports, log lines, orders, the end.
//!
//! One thread, never a worker: it waits for the server's orders and in between, ten times a second, passes
//! on what the node has to say. The management server may be away for as long as it likes; the node runs
//! on, and the link comes back by itself.
//!
//! ```text
//!   Stop order ──► StopReq to cmvmi ──► StopConf/StopRef back through the node's management route ──► answered
//!   signal, or the node's own decision ──► the node ends ──► the link is left, which frees the node id
//! ```

use crate::directory::Exit;
use crate::node::Node;
use crate::setup::StartError;
use kernel::Severity;
use kernel::mainrole::StartPhase;
use signals::control::{ControlSignal, Refusal, StopScope};
use signals::frame::{Signal, next_frame};
use signals::mgm::{LogSeverity, MemoryUsage, MgmOrder, MgmOrderConf, NodeKind, NodeReport, NodeState};
use signals::{ErrorCode, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use transporter::mgm_link::{BlockingNodeLink, NodeOptions, PendingOrder};

/// How long an order is waited for at once.
const PULSE: Duration = Duration::from_millis(50);
/// A report is sent at least this often.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// A planned stop that has not ended by then is ended.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// How often SIGTERM or SIGINT arrived.
pub type StopSignals = Arc<AtomicU32>;

/// Counts SIGTERM and SIGINT; before somebody looks at the count, the second ends the process.
///
/// # Errors
/// The operating system gives no thread.
pub fn stop_on_signals() -> Result<StopSignals, StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let failed = |error: std::io::Error| StartError(format!("cannot watch for signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let guard = runtime.enter();
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    drop(guard);
    let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(256 << 10);
    thread
        .spawn(move || {
            runtime.block_on(async move {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => {}
                        _ = interrupt.recv() => {}
                    }
                    // `RUNNING` is set once a node is there to be stopped; before that there is nothing to
                    // end.
                    if counted.fetch_add(1, Ordering::AcqRel) & !RUNNING > 0
                        || counted.load(Ordering::Acquire) & RUNNING == 0
                    {
                        tracing::warn!("ended by a signal");
                        std::process::exit(0);
                    }
                }
            });
        })
        .map_err(failed)?;
    Ok(count)
}

/// Bit of [`StopSignals`]: a node runs and looks at the count.
const RUNNING: u32 = 1 << 31;

/// Joins the cluster as a data node; waits for the management server as long as it takes.
///
/// # Errors
/// The server refuses, or the connect string is malformed.
pub fn join(connect_string: &str, wanted: Option<NodeId>) -> Result<BlockingNodeLink, StartError> {
    let options = NodeOptions {
        connect_string: connect_string.to_owned(),
        kind: NodeKind::DataNode,
        wanted,
        program: "nucdb-datanode".to_owned(),
        wait_for_server: true,
    };
    BlockingNodeLink::join(options)
        .map_err(|error| StartError(format!("no node id and configuration from {connect_string}: {error}")))
}

/// See the module.
pub struct Managed {
    node: Node,
    link: BlockingNodeLink,
    orders: BTreeMap<u32, PendingOrder>,
    next_request: u32,
    reported: Option<(Instant, NodeReport)>,
    stop_by: Option<Instant>,
}

impl Managed {
    /// A started node and the link it joined by.
    #[must_use]
    pub fn new(node: Node, link: BlockingNodeLink) -> Self {
        Self { node, link, orders: BTreeMap::new(), next_request: 0, reported: None, stop_by: None }
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Manages the node until it ends; stops it when `signals` counts one.
    #[must_use]
    pub fn run(mut self, signals: &StopSignals) -> Exit {
        signals.fetch_or(RUNNING, Ordering::AcqRel);
        loop {
            if let Some(order) = self.link.next_order(PULSE) {
                self.on_order(order);
            }
            self.pass_on();
            if signals.load(Ordering::Acquire) & !RUNNING > 0 && self.stop_by.is_none() {
                tracing::info!("asked to stop by a signal");
                self.stop_node(StopScope::Node, true);
            }
            if self.stop_by.is_some_and(|by| by <= Instant::now()) {
                self.node.request_exit("stopped as ordered, without the consent of the other nodes", false);
            }
            if let Some(exit) = self.node.wait(Some(Duration::ZERO)) {
                return self.finish(exit);
            }
        }
    }

    fn finish(mut self, exit: Exit) -> Exit {
        self.pass_on();
        let severity = if exit.error { LogSeverity::Alert } else { LogSeverity::Info };
        let text = format!("node {} stops: {}", self.node.node(), exit.reason);
        self.link.handle().log(severity, text);
        self.node.stop();
        self.link.leave();
        exit
    }

    fn stop_node(&mut self, scope: StopScope, force: bool) -> u32 {
        self.next_request = self.next_request.wrapping_add(1);
        self.stop_by = Some(Instant::now() + STOP_TIME_MAX);
        self.node.order_stop(self.next_request, scope, force);
        self.next_request
    }

    fn on_order(&mut self, order: PendingOrder) {
        match &order.order {
            MgmOrder::Ping => order.answer(Ok(MgmOrderConf::Done)),
            MgmOrder::ReportMemory => {
                let usage = self.memory();
                order.answer(Ok(MgmOrderConf::Memory(usage)));
            }
            MgmOrder::Stop { is_abort, is_force, is_cluster } => {
                let scope = if *is_cluster { StopScope::Cluster } else { StopScope::Node };
                let request = self.stop_node(scope, *is_abort || *is_force);
                self.orders.insert(request, order);
            }
            MgmOrder::ConfigChange(_) => {
                let text = "this data node takes a changed configuration at its next start; restart it";
                order.answer(Err(Refusal::new(ErrorCode::MGM_REFUSED, text)));
            }
        }
    }

    /// Events to the cluster log, answers to orders, news to the server.
    fn pass_on(&mut self) {
        while let Ok(event) = self.node.events().try_recv() {
            self.link.handle().log(severity_of(event.severity), event.text);
        }
        while let Ok(frames) = self.node.mgm_frames().try_recv() {
            self.on_frames(&frames);
        }
        let report = self.report();
        let due =
            self.reported.as_ref().is_none_or(|(at, last)| at.elapsed() >= REPORT_EVERY || *last != report);
        if due {
            self.link.handle().report(report.clone());
            self.reported = Some((Instant::now(), report));
        }
    }

    fn on_frames(&mut self, mut rest: &[u8]) {
        while let Ok(Some((frame, tail))) = next_frame(rest) {
            rest = tail;
            let Ok((_, Signal::Control(signal))) = Signal::parse(frame) else { continue };
            let (request, answer) = match *signal {
                ControlSignal::StopConf { request } => (request, Ok(MgmOrderConf::Done)),
                ControlSignal::StopRef { request, refusal } => {
                    self.stop_by = None;
                    (request, Err(refusal))
                }
                _ => continue,
            };
            if let Some(order) = self.orders.remove(&request) {
                order.answer(answer);
            }
        }
    }

    fn report(&self) -> NodeReport {
        let Some(status) = self.node.status() else { return NodeReport::default() };
        let state = match status.phase {
            StartPhase::Connecting | StartPhase::Joining | StartPhase::Dictionary => {
                NodeState::Starting { phase: status.phase as u8 }
            }
            StartPhase::Started => NodeState::Started,
            StartPhase::Stopping => NodeState::ShuttingDown,
        };
        let mut members = status.connected.clone();
        members.push(self.node.node());
        members.sort_unstable();
        let mut waits_for = match status.phase {
            StartPhase::Started => String::new(),
            _ => status.text.clone(),
        };
        for trouble in self.node.troubles() {
            if !waits_for.is_empty() {
                waits_for += "; ";
            }
            waits_for += &trouble;
        }
        let server_port =
            self.link.handle().config().data_node(self.node.node()).map_or(0, |n| n.server_port);
        NodeReport {
            state,
            node_group: status.group,
            is_master: status.president == Some(self.node.node()),
            members,
            arbitrator: None,
            waits_for: waits_for.chars().take(1000).collect(),
            memory: self.memory(),
            server_port,
        }
    }

    fn memory(&self) -> MemoryUsage {
        self.node.memory()
    }
}

fn severity_of(severity: Severity) -> LogSeverity {
    match severity {
        Severity::Debug => LogSeverity::Debug,
        Severity::Info => LogSeverity::Info,
        Severity::Warning => LogSeverity::Warning,
        Severity::Error => LogSeverity::Error,
        Severity::Alert => LogSeverity::Alert,
    }
}
