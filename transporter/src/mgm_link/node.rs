//! A node's lasting link to the management server.
//!
//! States and what moves them:
//!
//! * **joining**: a server is connected, `AllocNodeId` is asked. A refusal ends it; joining is the caller's
//!   decision.
//! * **joined**: the id is ours while the link lives. Reports (the newest only) and log lines (a bounded
//!   queue, the newest dropped when it is full) go out as they come, orders of the server come in.
//! * **lost**: the link is gone, the node lives on. Servers are tried again and again, soon and then every
//!   half second; the id is asked for as "mine already". A refusal is logged and tried again: the node
//!   decides about its life by its peers' heartbeats, never by the management server.
//!
//! Leaving closes the link, which frees the id at once.

use super::client::{ANSWER_TIMEOUT, ConnectString, MgmError, connect_any};
use super::link::{MgmLink, Question};
use config::ClusterConfig;
use signals::ErrorCode;
use signals::control::Refusal;
use signals::ids::NodeId;
use signals::mgm::{
    AllocNodeIdReq, LogEvent, LogSeverity, MgmAnswer, MgmConf, MgmOrder, MgmOrderAnswer, MgmOrderConf,
    MgmReq, NodeKind, NodeReport,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

/// Log lines that may wait for the server.
const LOG_QUEUE: usize = 256;
/// Orders that may wait for the node.
const ORDER_QUEUE: usize = 16;
/// Longest wait between two attempts to find a server again.
const RETRY_MAX: Duration = Duration::from_millis(500);
/// Longest wait for a report or log to be taken.
const NEWS_TIMEOUT: Duration = Duration::from_secs(3);

/// Who joins.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where the servers are, as in [`ConnectString`]; its `nodeid` counts when `wanted` is `None`.
    pub connect_string: String,
    /// As what.
    pub kind: NodeKind,
    /// A certain id, or any free one.
    pub wanted: Option<NodeId>,
    /// The program's name, for logs.
    pub program: String,
    /// Try again when no server can be reached, for ever, instead of failing.
    pub wait_for_server: bool,
}

/// An order of the server, to be answered. One that is dropped is answered with an error.
#[derive(Debug)]
pub struct PendingOrder {
    /// What is asked.
    pub order: MgmOrder,
    reply: oneshot::Sender<MgmOrderAnswer>,
}

impl PendingOrder {
    /// Answers it.
    pub fn answer(self, answer: MgmOrderAnswer) {
        // The server may have stopped waiting; then nobody needs the answer.
        let _ = self.reply.send(answer);
    }
}

#[derive(Debug)]
struct Shared {
    node_id: NodeId,
    config: Mutex<Arc<ClusterConfig>>,
    is_connected: AtomicBool,
    is_leaving: Notify,
}

/// The part of a node's link that any thread may use.
#[derive(Debug, Clone)]
pub struct NodeLinkHandle {
    shared: Arc<Shared>,
    report: Arc<watch::Sender<Option<NodeReport>>>,
    log: mpsc::Sender<LogEvent>,
}

impl NodeLinkHandle {
    /// The node's id.
    pub fn node_id(&self) -> NodeId {
        self.shared.node_id
    }

    /// The newest configuration.
    pub fn config(&self) -> Arc<ClusterConfig> {
        Arc::clone(&self.shared.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Is there a link right now?
    pub fn is_connected(&self) -> bool {
        self.shared.is_connected.load(Ordering::Acquire)
    }

    /// Tells the server how the node is. Never blocks; only the newest report is sent.
    pub fn report(&self, report: NodeReport) {
        self.report.send_replace(Some(report));
    }

    /// A line for the cluster log. Never blocks; lost when too many wait.
    pub fn log(&self, severity: LogSeverity, text: impl Into<String>) {
        let _ = self.log.try_send(LogEvent { severity, text: text.into() });
    }
}

/// A node's link; dropping it leaves.
#[derive(Debug)]
pub struct NodeLink {
    handle: NodeLinkHandle,
    orders: mpsc::Receiver<PendingOrder>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl NodeLink {
    /// Joins the cluster: finds a server, takes an id, fetches the configuration.
    pub async fn join(options: NodeOptions) -> Result<NodeLink, MgmError> {
        let servers = ConnectString::parse(&options.connect_string)?;
        let (link, node_id, config) = first_entry(&servers, &options).await?;
        let shared = Arc::new(Shared {
            node_id,
            config: Mutex::new(Arc::new(config)),
            is_connected: AtomicBool::new(true),
            is_leaving: Notify::new(),
        });
        let (report, reports) = watch::channel(None);
        let (log, logs) = mpsc::channel(LOG_QUEUE);
        let (order_sender, orders) = mpsc::channel(ORDER_QUEUE);
        let handle = NodeLinkHandle { shared: Arc::clone(&shared), report: Arc::new(report), log };
        let session = Session { servers, options, shared, reports, logs, orders: order_sender };
        let task = tokio::spawn(session.run(link));
        Ok(NodeLink { handle, orders, task: Some(task) })
    }

    /// The part any thread may use.
    pub fn handle(&self) -> &NodeLinkHandle {
        &self.handle
    }

    /// The server's next order; `None` when the link has been left.
    pub async fn next_order(&mut self) -> Option<PendingOrder> {
        self.orders.recv().await
    }

    /// Leaves: the server frees the id before this returns, if it can be reached.
    pub async fn leave(mut self) {
        self.handle.shared.is_leaving.notify_one();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for NodeLink {
    fn drop(&mut self) {
        self.handle.shared.is_leaving.notify_one();
    }
}

/// Joins for the first time, waiting for a server if that is wanted.
async fn first_entry(
    servers: &ConnectString,
    options: &NodeOptions,
) -> Result<(MgmLink, NodeId, ClusterConfig), MgmError> {
    let wanted = options.wanted.or(servers.node_id);
    let mut wait = Duration::from_millis(50);
    let mut is_told = false;
    loop {
        match enter(servers, options, wanted, false).await {
            Err(error) if options.wait_for_server && error.is_link_trouble() => {
                if !is_told {
                    tracing::warn!("waiting for a management server: {error}");
                    is_told = true;
                }
                sleep(wait).await;
                wait = (wait * 2).min(RETRY_MAX);
            }
            outcome => return outcome,
        }
    }
}

/// One attempt to join.
async fn enter(
    servers: &ConnectString,
    options: &NodeOptions,
    wanted: Option<NodeId>,
    is_reclaim: bool,
) -> Result<(MgmLink, NodeId, ClusterConfig), MgmError> {
    let (link, _) = connect_any(servers, &options.program).await?;
    let request = MgmReq::AllocNodeId(AllocNodeIdReq {
        kind: options.kind,
        wanted,
        is_reclaim,
        host_name: host_name(),
        pid: std::process::id(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let answer: MgmAnswer = link.ask(&request, ANSWER_TIMEOUT).await?;
    match answer.map_err(MgmError::from)? {
        MgmConf::AllocNodeId { node, config } => Ok((link, node, decode_config(&config)?)),
        other => {
            Err(MgmError::new(ErrorCode::MALFORMED_MESSAGE, format!("odd answer to AllocNodeId: {other:?}")))
        }
    }
}

fn decode_config(bytes: &[u8]) -> Result<ClusterConfig, MgmError> {
    signals::codec::decode(bytes).map_err(|e| MgmError::new(ErrorCode::MALFORMED_MESSAGE, e.to_string()))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The task behind a node's link.
struct Session {
    servers: ConnectString,
    options: NodeOptions,
    shared: Arc<Shared>,
    reports: watch::Receiver<Option<NodeReport>>,
    logs: mpsc::Receiver<LogEvent>,
    orders: mpsc::Sender<PendingOrder>,
}

impl Session {
    async fn run(mut self, mut link: MgmLink) {
        loop {
            let shared = Arc::clone(&self.shared);
            let is_over = tokio::select! {
                () = shared.is_leaving.notified() => true,
                () = self.serve(&link) => false,
            };
            self.shared.is_connected.store(false, Ordering::Release);
            if is_over {
                link.close_and_wait("node leaves").await;
                return;
            }
            tracing::warn!(node = %self.shared.node_id, "lost the management server: looking for it again");
            link = tokio::select! {
                () = shared.is_leaving.notified() => return,
                again = self.again() => again,
            };
            self.shared.is_connected.store(true, Ordering::Release);
            tracing::info!(node = %self.shared.node_id, server = %link.peer(), "found the management server again");
        }
    }

    /// Carries news out and orders in until the link is gone.
    async fn serve(&mut self, link: &MgmLink) {
        // A new link starts with the report the old one had, if there was any.
        self.reports.mark_changed();
        let orders = self.orders.clone();
        let news = news(link, &mut self.reports, &mut self.logs);
        tokio::select! {
            reason = link.closed() => tracing::debug!("management link: {reason}"),
            () = news => {}
            () = take_orders(link, &orders, &self.shared) => {}
        }
    }

    /// Name of the cluster this node belongs to.
    fn cluster(&self) -> String {
        self.shared.config.lock().unwrap_or_else(PoisonError::into_inner).name.clone()
    }

    /// Logs why the server is still not found, once per reason.
    fn tell(&self, last: &mut String, why: String) {
        if *last != why {
            tracing::warn!(node = %self.shared.node_id, "management server: {why}");
            *last = why;
        }
    }

    /// Tries servers until one takes us back.
    async fn again(&self) -> MgmLink {
        let mut wait = Duration::from_millis(50);
        let mut last = String::new();
        loop {
            match enter(&self.servers, &self.options, Some(self.shared.node_id), true).await {
                Ok((link, _, config)) if config.name == self.cluster() => {
                    set_config(&self.shared, config);
                    return link;
                }
                Ok((link, _, config)) => {
                    link.close_and_wait("wrong cluster").await;
                    let detail = format!("{} serves cluster {}, not ours", link.peer(), config.name);
                    self.tell(&mut last, detail);
                }
                Err(error) => self.tell(&mut last, error.to_string()),
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }
}

fn set_config(shared: &Shared, config: ClusterConfig) {
    *shared.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
}

/// Sends reports and log lines; ends when the link does.
async fn news(
    link: &MgmLink,
    reports: &mut watch::Receiver<Option<NodeReport>>,
    logs: &mut mpsc::Receiver<LogEvent>,
) {
    loop {
        let request = tokio::select! {
            changed = reports.changed() => {
                if changed.is_err() {
                    // The node has dropped its handles; only the link's end is still to come.
                    return std::future::pending().await;
                }
                let report = reports.borrow_and_update().clone();
                let Some(report) = report else { continue };
                MgmReq::NodeReport(Box::new(report))
            }
            first = logs.recv() => {
                let Some(first) = first else { return std::future::pending().await };
                let mut lines = vec![first];
                while let Ok(line) = logs.try_recv() {
                    lines.push(line);
                }
                MgmReq::Log(lines)
            }
        };
        let answer: Result<MgmAnswer, MgmError> = link.ask(&request, NEWS_TIMEOUT).await;
        match answer {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => tracing::warn!("management server refused news: {}", refusal.detail),
            Err(error) if error.code == ErrorCode::MGM_NO_ANSWER => {}
            Err(_) => return,
        }
    }
}

/// Hands orders to the node; ends when the link does.
async fn take_orders(link: &MgmLink, orders: &mpsc::Sender<PendingOrder>, shared: &Arc<Shared>) {
    while let Ok(question) = link.next_question().await {
        let (orders, shared) = (orders.clone(), Arc::clone(shared));
        tokio::spawn(async move {
            if let Err(error) = take_order(question, &orders, &shared).await {
                tracing::warn!("order of the management server: {error}");
            }
        });
    }
}

async fn take_order(
    mut question: Question,
    orders: &mpsc::Sender<PendingOrder>,
    shared: &Shared,
) -> Result<(), MgmError> {
    let answer: MgmOrderAnswer = match question.read::<MgmOrder>().await? {
        MgmOrder::Ping => Ok(MgmOrderConf::Done),
        MgmOrder::ConfigChange(bytes) => match decode_config(&bytes) {
            Ok(config) => {
                set_config(shared, config);
                Ok(MgmOrderConf::Done)
            }
            Err(error) => Err(error.into()),
        },
        order @ (MgmOrder::Stop { .. } | MgmOrder::ReportMemory) => {
            let (reply, replied) = oneshot::channel();
            let busy = || Refusal::new(ErrorCode::MGM_REFUSED, "the node is too busy to take the order");
            match orders.try_send(PendingOrder { order, reply }) {
                Ok(()) => match timeout(ANSWER_TIMEOUT, replied).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(_)) | Err(_) => Err(busy()),
                },
                Err(_) => Err(busy()),
            }
        }
    };
    question.answer(&answer).await
}
