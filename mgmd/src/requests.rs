//! One handler per request.

use crate::cluster_log::{FILE_BYTES_MAX, FILES_MAX};
use crate::server::Server;
use crate::slots::{Candidate, Live};
use signals::ErrorCode;
use signals::codec::encode;
use signals::control::Refusal;
use signals::ids::NodeId;
use signals::mgm::{
    AllocNodeIdReq, LogEvent, LogSeverity, MgmAnswer, MgmConf, MgmOrder, MgmOrderAnswer, MgmOrderConf,
    MgmReq, NodeKind, NodeMemory, NodeOutcome, NodeReport, NodeState, ShowConf, Target,
};
use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;
use transporter::mgm_link::{MgmError, MgmLink};

/// Longest wait for a sign of life of a node whose id somebody else wants.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for a node to begin to stop (it first asks the others for their consent, for up to ten
/// seconds), and then to be gone; both together fit a client's patience.
const STOP_BEGIN_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_END_TIMEOUT: Duration = Duration::from_secs(35);
/// Longest wait for a memory report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a host name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(1);

fn refuse<T>(code: ErrorCode, detail: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, detail))
}

/// Answers a request; true if the server is to stop when the answer is through.
pub(crate) async fn answer(server: &Arc<Server>, link: &MgmLink, request: MgmReq) -> (MgmAnswer, bool) {
    let answer = match request {
        MgmReq::AllocNodeId(request) => alloc_node_id(server, link, &request).await,
        MgmReq::GetConfig => Ok(MgmConf::Config(encode(&**server.state().slots.config()))),
        MgmReq::NodeReport(report) => node_report(server, link, *report),
        MgmReq::Log(events) => log(server, link, &events),
        MgmReq::Show => Ok(MgmConf::Show(Box::new(show(server)))),
        MgmReq::Status(target) => status(server, target),
        MgmReq::Stop { target, is_abort, is_force } => return stop(server, target, is_abort, is_force).await,
        MgmReq::Shutdown => return shutdown(server).await,
        MgmReq::ReportMemoryUsage(target) => memory(server, target).await,
        MgmReq::ClusterLogInfo => Ok(MgmConf::ClusterLog {
            path: server.log.path().display().to_string(),
            file_bytes_max: FILE_BYTES_MAX,
            files_max: FILES_MAX,
            lost_lines: server.log.lost_lines(),
        }),
    };
    (answer, false)
}

async fn alloc_node_id(server: &Arc<Server>, link: &MgmLink, request: &AllocNodeIdReq) -> MgmAnswer {
    if let Some(id) = server.state().slots.owned_by(link.id()) {
        return refuse(ErrorCode::MGM_REFUSED, format!("this link has node id {id} already"));
    }
    if request.kind == NodeKind::MgmNode {
        return refuse(ErrorCode::MGM_NOT_AVAILABLE, "several management servers do not coordinate yet");
    }
    if !request.is_reclaim {
        // A data node that was up when this server restarted comes back within the grace; new ones wait for
        // the decision which configuration holds.
        let _ = server.is_deciding.subscribe().wait_for(|deciding| !deciding).await;
        if request.kind == NodeKind::DataNode {
            server.adopt_if_all_down();
        }
    }
    let hosts = server.state().slots.hosts(request.kind);
    let allowed = allowed_ids(hosts, link.peer().ip()).await;
    // A second round sees what dead owners have left.
    for _ in 0..2 {
        let candidate = server.state().slots.candidate(request, &allowed)?;
        match candidate {
            Candidate::Free(id) => {
                if let Some(conf) = take(server, link, request, id) {
                    return Ok(conf);
                }
            }
            Candidate::Taken(owners) => free_dead(server, request, link, &owners).await,
        }
    }
    let name = request.kind.name();
    match request.wanted {
        Some(id) => refuse(ErrorCode::MGM_NODE_ID_TAKEN, format!("node id {id} is in use by a living node")),
        None => refuse(
            ErrorCode::MGM_NO_FREE_NODE_ID,
            format!("every node id for a {name} on this host is in use; add a section to config.ini"),
        ),
    }
}

/// Gives the id to the link, unless somebody was faster or the link is gone.
fn take(server: &Arc<Server>, link: &MgmLink, request: &AllocNodeIdReq, id: NodeId) -> Option<MgmConf> {
    let address = link.peer().ip().to_canonical();
    let live =
        Live { link: link.id(), address, pid: request.pid, release: request.release.clone(), report: None };
    let config = {
        let mut state = server.state();
        if !state.slots.take(id, live) {
            return None;
        }
        encode(&**state.slots.config())
    };
    let how = if request.is_reclaim { "Connected again" } else { "Connected" };
    let text = format!(
        "{how} from {address} ({}), pid {}, release {}",
        request.host_name, request.pid, request.release
    );
    server.log.write(LogSeverity::Info, Some(id), &text);
    if link.is_closed() {
        server.release(link, "gone before it had its answer");
    }
    Some(MgmConf::AllocNodeId { node: id, config })
}

/// Asks the owners of ids whether they live, and frees those of the dead. A node that reclaims its id from
/// the same process needs no proof: its old link is stale.
async fn free_dead(
    server: &Arc<Server>,
    request: &AllocNodeIdReq,
    asker: &MgmLink,
    owners: &[(NodeId, usize)],
) {
    let mut pings = JoinSet::new();
    for (id, owner) in owners {
        let (link, is_same) = {
            let state = server.state();
            let asker_address = asker.peer().ip().to_canonical();
            let is_same =
                |live: &Live| request.is_reclaim && live.pid == request.pid && live.address == asker_address;
            (state.links.get(owner).cloned(), state.slots.live(*id).is_some_and(is_same))
        };
        let Some(link) = link else { continue };
        pings.spawn(async move {
            let answer: Result<MgmOrderAnswer, MgmError> = if is_same {
                Ok(Err(Refusal::new(ErrorCode::MGM_LINK_LOST, "stale")))
            } else {
                link.ask(&MgmOrder::Ping, PING_TIMEOUT).await
            };
            (link, is_same || answer.is_err())
        });
    }
    while let Some(Ok((link, is_dead))) = pings.join_next().await {
        if is_dead {
            link.close("node does not answer and its id is wanted");
            server.release(&link, "no answer, and its node id is wanted");
        }
    }
}

/// Ids whose host is the peer's.
async fn allowed_ids(hosts: Vec<(NodeId, String)>, peer: IpAddr) -> Vec<NodeId> {
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut allowed = Vec::new();
    for (id, host) in hosts {
        let is_allowed = match known.get(&host) {
            Some(is_allowed) => *is_allowed,
            None => host.is_empty() || is_host(&host, peer.to_canonical()).await,
        };
        known.insert(host, is_allowed);
        if is_allowed {
            allowed.push(id);
        }
    }
    allowed
}

/// Is the peer's address one of this host name's? Every address of this very machine counts as the same host.
async fn is_host(host: &str, peer: IpAddr) -> bool {
    let found = timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((host, 0))).await;
    let Ok(Ok(found)) = found else { return false };
    let is_ours = |ip: IpAddr| ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok();
    let mut addresses = found.map(|a| a.ip().to_canonical());
    addresses.any(|ip| ip == peer || (is_ours(ip) && is_ours(peer)))
}

fn node_report(server: &Arc<Server>, link: &MgmLink, report: NodeReport) -> MgmAnswer {
    let state = report.state;
    let (id, changed) = {
        let mut locked = server.state();
        let changed = locked.slots.report(link.id(), report, Instant::now())?;
        (locked.slots.owned_by(link.id()), changed)
    };
    if changed.is_some() {
        let text = match state {
            NodeState::NotStarted => "Not started".to_owned(),
            NodeState::Starting { phase } => format!("Start phase {phase}"),
            NodeState::Started => "Started".to_owned(),
            NodeState::ShuttingDown => "Node shutdown initiated".to_owned(),
            NodeState::Restarting => "Node restart initiated".to_owned(),
        };
        server.log.write(LogSeverity::Info, id, &text);
    }
    Ok(MgmConf::Done)
}

fn log(server: &Arc<Server>, link: &MgmLink, events: &[LogEvent]) -> MgmAnswer {
    let Some(id) = server.state().slots.owned_by(link.id()) else {
        return refuse(ErrorCode::MGM_REFUSED, "only nodes with a node id write to the cluster log");
    };
    for event in events {
        server.log.write(event.severity, Some(id), &event.text);
    }
    Ok(MgmConf::Done)
}

fn show(server: &Arc<Server>) -> ShowConf {
    let mut state = server.state();
    if state.config.refresh() {
        for line in state.config.differences() {
            server.log.info(&line);
        }
    }
    let mut nodes = state.slots.all(Instant::now());
    for node in nodes.iter_mut().filter(|n| n.node == server.node_id) {
        node.address = server.address.ip().to_string();
        node.pid = std::process::id();
        node.release = env!("CARGO_PKG_VERSION").to_owned();
    }
    let config = state.slots.config();
    let mut warnings = Vec::new();
    let is_default = config.data_nodes.first().is_some_and(|n| n.arbitration == config::Arbitration::Default);
    if config.no_of_replicas() > 1 && is_default && !state.slots.has_arbitrator(server.node_id) {
        warnings.push("no arbitrator: the next failure may stop service".to_owned());
    }
    ShowConf {
        cluster: config.name.clone(),
        server: server.node_id,
        generation: config.generation,
        nodes,
        config_differences: state.config.differences(),
        warnings,
    }
}

fn status(server: &Arc<Server>, target: Target) -> MgmAnswer {
    let all = show(server).nodes;
    let wanted: Vec<_> = match target {
        Target::All => all.into_iter().filter(|n| n.kind == NodeKind::DataNode).collect(),
        Target::Node(id) => all.into_iter().filter(|n| n.node == id).collect(),
    };
    match target {
        Target::Node(id) if wanted.is_empty() => no_such_node(id),
        Target::Node(_) | Target::All => Ok(MgmConf::Status(wanted)),
    }
}

fn no_such_node<T>(id: NodeId) -> Result<T, Refusal> {
    refuse(ErrorCode::MGM_NO_SUCH_NODE, format!("node id {id} is not in the configuration"))
}

fn not_connected(id: NodeId) -> Refusal {
    Refusal::new(ErrorCode::MGM_NODE_NOT_CONNECTED, format!("node {id} is not connected"))
}

/// The link of a node.
fn link_of(server: &Server, id: NodeId) -> Result<MgmLink, Refusal> {
    let state = server.state();
    let link = state.slots.live(id).and_then(|live| state.links.get(&live.link)).cloned();
    link.ok_or_else(|| not_connected(id))
}

async fn stop(server: &Arc<Server>, target: Target, is_abort: bool, is_force: bool) -> (MgmAnswer, bool) {
    let id = match target {
        Target::All => return (stop_all(server, is_abort, is_force).await, false),
        Target::Node(id) => id,
    };
    let kind = server.state().slots.kind(id);
    match kind {
        None => return (no_such_node(id), false),
        Some(NodeKind::ApiNode) => {
            let detail = format!("node {id} is an API node; it is stopped where it runs");
            return (refuse(ErrorCode::MGM_WRONG_NODE_TYPE, detail), false);
        }
        Some(NodeKind::MgmNode) if id == server.node_id => {
            return (Ok(MgmConf::Stopped(vec![NodeOutcome { node: id, outcome: Ok(()) }])), true);
        }
        Some(NodeKind::MgmNode) => {
            let detail = format!("node {id} is another management server; connect to it to stop it");
            return (refuse(ErrorCode::MGM_NOT_AVAILABLE, detail), false);
        }
        Some(NodeKind::DataNode) => {}
    }
    if let Err(refusal) = may_stop(server, id, is_abort, is_force) {
        return (Err(refusal), false);
    }
    let order = MgmOrder::Stop { is_abort, is_force, is_cluster: false };
    let outcome = stop_node(server, id, order).await;
    (outcome.map(|()| MgmConf::Stopped(vec![NodeOutcome { node: id, outcome: Ok(()) }])), false)
}

/// Would the cluster survive it?
fn may_stop(server: &Server, id: NodeId, is_abort: bool, is_force: bool) -> Result<(), Refusal> {
    let state = server.state();
    if state.slots.live(id).is_none() {
        return Err(not_connected(id));
    }
    if !is_abort && let Some(group) = state.slots.group_lost_without(id) {
        let detail = format!(
            "node {id} is the last started node of node group {group}: the cluster would be incomplete; \
             use SHUTDOWN or ALL STOP to stop the cluster, STOP -a to stop the node all the same"
        );
        return refuse(ErrorCode::MGM_INCOMPLETE, detail);
    }
    if !is_abort
        && !is_force
        && let Some((other, doing)) = state.slots.in_transition(id)
    {
        let detail = format!("node {other} is {doing}; wait for it, or use STOP -f");
        return refuse(ErrorCode::MGM_REFUSED, detail);
    }
    Ok(())
}

async fn stop_all(server: &Arc<Server>, is_abort: bool, is_force: bool) -> MgmAnswer {
    let live = server.state().slots.live_data_nodes();
    if live.is_empty() {
        return refuse(ErrorCode::MGM_NODE_NOT_CONNECTED, "no data node is connected");
    }
    Ok(MgmConf::Stopped(stop_together(server, &live, is_abort, is_force).await))
}

/// Stops data nodes at one point: all are told before anybody is waited for.
async fn stop_together(
    server: &Arc<Server>,
    nodes: &[NodeId],
    is_abort: bool,
    is_force: bool,
) -> Vec<NodeOutcome> {
    let mut stopping = JoinSet::new();
    for id in nodes {
        let (server, id) = (Arc::clone(server), *id);
        let order = MgmOrder::Stop { is_abort, is_force, is_cluster: true };
        stopping.spawn(async move { NodeOutcome { node: id, outcome: stop_node(&server, id, order).await } });
    }
    let mut outcomes = Vec::new();
    while let Some(done) = stopping.join_next().await {
        outcomes.extend(done.ok());
    }
    outcomes.sort_by_key(|o| o.node);
    outcomes
}

/// Tells a node to stop and waits until its link is gone.
async fn stop_node(server: &Arc<Server>, id: NodeId, order: MgmOrder) -> Result<(), Refusal> {
    let link = link_of(server, id)?;
    server.log.write(LogSeverity::Info, Some(id), "Stop ordered");
    let answer: Result<MgmOrderAnswer, MgmError> = link.ask(&order, STOP_BEGIN_TIMEOUT).await;
    match answer {
        Ok(Ok(_)) => {}
        Ok(Err(refusal)) => return Err(refusal),
        // It may have been so quick that its answer was lost with the link.
        Err(_) if link.is_closed() => {}
        Err(error) => return Err(error.into()),
    }
    if timeout(STOP_END_TIMEOUT, link.closed()).await.is_err() {
        return refuse(ErrorCode::MGM_NO_ANSWER, format!("node {id} has begun to stop but is still there"));
    }
    server.release(&link, "stopped");
    Ok(())
}

async fn shutdown(server: &Arc<Server>) -> (MgmAnswer, bool) {
    server.log.info("Cluster shutdown initiated");
    let live = server.state().slots.live_data_nodes();
    let mut outcomes = stop_together(server, &live, false, true).await;
    let is_down = outcomes.iter().all(|o| o.outcome.is_ok());
    if is_down {
        server.log.info("Cluster shutdown completed");
        outcomes.push(NodeOutcome { node: server.node_id, outcome: Ok(()) });
    }
    (Ok(MgmConf::Stopped(outcomes)), is_down)
}

async fn memory(server: &Arc<Server>, target: Target) -> MgmAnswer {
    let nodes = match target {
        Target::All => server.state().slots.data_nodes(),
        Target::Node(id) => {
            let kind = server.state().slots.kind(id);
            match kind {
                Some(NodeKind::DataNode) => vec![id],
                Some(_) => {
                    return refuse(ErrorCode::MGM_WRONG_NODE_TYPE, format!("node {id} is no data node"));
                }
                None => return no_such_node(id),
            }
        }
    };
    let mut asking = JoinSet::new();
    for id in nodes {
        let link = link_of(server, id);
        asking.spawn(async move {
            let answer: MgmOrderAnswer = match link {
                Ok(link) => match link.ask(&MgmOrder::ReportMemory, REPORT_TIMEOUT).await {
                    Ok(answer) => answer,
                    Err(error) => Err(error.into()),
                },
                Err(refusal) => Err(refusal),
            };
            let usage = answer.and_then(|conf| match conf {
                MgmOrderConf::Memory(usage) => Ok(usage),
                MgmOrderConf::Done => {
                    refuse(ErrorCode::MALFORMED_MESSAGE, "the node did not tell its memory")
                }
            });
            NodeMemory { node: id, usage }
        });
    }
    let mut all = Vec::new();
    while let Some(done) = asking.join_next().await {
        all.extend(done.ok());
    }
    all.sort_by_key(|m| m.node);
    Ok(MgmConf::Memory(all))
}
