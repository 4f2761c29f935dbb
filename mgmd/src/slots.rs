//! Who has which node id. Plain state: links are numbers here, time is handed in, and nobody is asked
//! anything.
//!
//! A slot is free or taken by one link. A taken slot whose owner may be dead is the caller's to find out
//! (it pings); here it is only named as a candidate.

use config::{ClusterConfig, NodeType};
use signals::ErrorCode;
use signals::control::Refusal;
use signals::ids::NodeId;
use signals::mgm::{AllocNodeIdReq, NodeKind, NodeReport, NodeState, NodeStatus};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A node that has an id.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) link: usize,
    pub(crate) address: IpAddr,
    pub(crate) pid: u32,
    pub(crate) release: String,
    pub(crate) report: Option<(NodeReport, Instant)>,
}

/// What can be done for a node that wants an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// This id is free.
    Free(NodeId),
    /// These are taken by these links; if one of those is dead, its id is free.
    Taken(Vec<(NodeId, usize)>),
}

/// All slots of the active configuration.
#[derive(Debug)]
pub(crate) struct Slots {
    config: Arc<ClusterConfig>,
    live: BTreeMap<NodeId, Live>,
}

/// The configuration's word for a kind.
fn node_type(kind: NodeKind) -> NodeType {
    match kind {
        NodeKind::DataNode => NodeType::DataNode,
        NodeKind::MgmNode => NodeType::MgmNode,
        NodeKind::ApiNode => NodeType::ApiNode,
    }
}

fn node_kind(node_type: NodeType) -> NodeKind {
    match node_type {
        NodeType::DataNode => NodeKind::DataNode,
        NodeType::MgmNode => NodeKind::MgmNode,
        NodeType::ApiNode => NodeKind::ApiNode,
    }
}

impl Slots {
    pub(crate) fn new(config: Arc<ClusterConfig>) -> Slots {
        Slots { config, live: BTreeMap::new() }
    }

    /// Another configuration; who has an id keeps it.
    pub(crate) fn set_config(&mut self, config: Arc<ClusterConfig>) {
        self.config = config;
    }

    /// Ids of a kind with the host that may take each; empty = any.
    pub(crate) fn hosts(&self, kind: NodeKind) -> Vec<(NodeId, String)> {
        let of_kind = self.config.nodes().filter(|(_, t)| *t == node_type(kind));
        of_kind.map(|(id, _)| (id, self.config_host(id))).collect()
    }

    fn config_host(&self, id: NodeId) -> String {
        let data = self.config.data_node(id).map(|n| n.host_name.clone());
        let mgm = || self.config.mgm_node(id).map(|n| n.host_name.clone());
        let api = || self.config.api_node(id).and_then(|n| n.host_name.clone());
        data.or_else(mgm).or_else(api).unwrap_or_default()
    }

    /// Finds an id. `allowed` are the ids of the kind whose host is the asker's.
    pub(crate) fn candidate(
        &self,
        request: &AllocNodeIdReq,
        allowed: &[NodeId],
    ) -> Result<Candidate, Refusal> {
        let name = request.kind.name();
        if let Some(wanted) = request.wanted {
            let Some(found) = self.config.node_type(wanted) else {
                let detail = format!("node id {wanted} is not in the configuration");
                return Err(Refusal::new(ErrorCode::MGM_NO_SUCH_NODE, detail));
            };
            if found != node_type(request.kind) {
                let detail =
                    format!("node id {wanted} belongs to a {}, not to a {name}", node_kind(found).name());
                return Err(Refusal::new(ErrorCode::MGM_WRONG_NODE_TYPE, detail));
            }
            if !allowed.contains(&wanted) {
                let host = self.config_host(wanted);
                let detail = format!("node id {wanted} is reserved for host {host} (HostName)");
                return Err(Refusal::new(ErrorCode::MGM_NO_FREE_NODE_ID, detail));
            }
            return Ok(match self.live.get(&wanted) {
                None => Candidate::Free(wanted),
                Some(live) => Candidate::Taken(vec![(wanted, live.link)]),
            });
        }
        if let Some(free) = allowed.iter().find(|id| !self.live.contains_key(id)) {
            return Ok(Candidate::Free(*free));
        }
        if allowed.is_empty() {
            let detail = format!(
                "no {name} of the configuration has this host (HostName); add a section or correct one"
            );
            return Err(Refusal::new(ErrorCode::MGM_NO_FREE_NODE_ID, detail));
        }
        let taken = allowed.iter().filter_map(|id| Some((*id, self.live.get(id)?.link)));
        Ok(Candidate::Taken(taken.collect()))
    }

    /// Gives an id to a link, if it is still free.
    pub(crate) fn take(&mut self, id: NodeId, live: Live) -> bool {
        let is_free = !self.live.contains_key(&id);
        if is_free {
            self.live.insert(id, live);
        }
        is_free
    }

    /// Frees the id of a link.
    pub(crate) fn release(&mut self, link: usize) -> Option<NodeId> {
        let id = self.owned_by(link)?;
        self.live.remove(&id);
        Some(id)
    }

    /// The id a link has.
    pub(crate) fn owned_by(&self, link: usize) -> Option<NodeId> {
        self.live.iter().find(|(_, live)| live.link == link).map(|(id, _)| *id)
    }

    /// Who has an id.
    pub(crate) fn live(&self, id: NodeId) -> Option<&Live> {
        self.live.get(&id)
    }

    /// What an id is in the active configuration.
    pub(crate) fn kind(&self, id: NodeId) -> Option<NodeKind> {
        self.config.node_type(id).map(node_kind)
    }

    /// Data nodes with a link.
    pub(crate) fn live_data_nodes(&self) -> Vec<NodeId> {
        self.live.keys().copied().filter(|id| self.kind(*id) == Some(NodeKind::DataNode)).collect()
    }

    /// All data nodes of the configuration.
    pub(crate) fn data_nodes(&self) -> Vec<NodeId> {
        self.config.data_nodes.iter().map(|n| n.node_id).collect()
    }

    /// Takes a data node's report; returns the state before if it changed.
    pub(crate) fn report(
        &mut self,
        link: usize,
        report: NodeReport,
        now: Instant,
    ) -> Result<Option<NodeState>, Refusal> {
        let is_data_node = self.owned_by(link).filter(|id| self.kind(*id) == Some(NodeKind::DataNode));
        let live = is_data_node.and_then(|id| self.live.get_mut(&id));
        let Some(live) = live else {
            return Err(Refusal::new(ErrorCode::MGM_REFUSED, "only data nodes with a node id send reports"));
        };
        let before = live.report.as_ref().map(|(report, _)| report.state);
        let is_changed = before != Some(report.state);
        live.report = Some((report, now));
        Ok(is_changed.then(|| before.unwrap_or_default()))
    }

    /// A node as SHOW and STATUS tell it.
    pub(crate) fn status(&self, id: NodeId, now: Instant) -> Option<NodeStatus> {
        let kind = self.kind(id)?;
        let live = self.live.get(&id);
        let report = live.and_then(|live| live.report.clone());
        let age = report.as_ref().map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(*at));
        Some(NodeStatus {
            node: id,
            kind,
            config_host: self.config_host(id),
            address: live.map(|live| live.address.to_string()).unwrap_or_default(),
            pid: live.map_or(0, |live| live.pid),
            release: live.map(|live| live.release.clone()).unwrap_or_default(),
            report: report.map(|(report, _)| report),
            report_age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// All nodes.
    pub(crate) fn all(&self, now: Instant) -> Vec<NodeStatus> {
        self.config.nodes().filter_map(|(id, _)| self.status(id, now)).collect()
    }

    /// Would a group be left without a started node if this one stopped? Says which.
    pub(crate) fn group_lost_without(&self, stopping: NodeId) -> Option<u16> {
        let group = self.config.data_node(stopping)?.node_group?;
        let is_serving = |id: &NodeId| {
            let report = self.live.get(id).and_then(|live| live.report.as_ref());
            report.is_some_and(|(report, _)| report.state == NodeState::Started)
        };
        if !is_serving(&stopping) {
            return None;
        }
        let groups = self.config.node_groups();
        let members = groups.get(usize::from(group))?;
        let is_survived = members.iter().any(|id| *id != stopping && is_serving(id));
        (!is_survived).then_some(group)
    }

    /// A data node other than this one that is starting or stopping.
    pub(crate) fn in_transition(&self, but: NodeId) -> Option<(NodeId, &'static str)> {
        self.live.iter().filter(|(id, _)| **id != but).find_map(|(id, live)| {
            let (report, _) = live.report.as_ref()?;
            match report.state {
                NodeState::Starting { .. } => Some((*id, "starting")),
                NodeState::ShuttingDown => Some((*id, "stopping")),
                NodeState::Restarting => Some((*id, "restarting")),
                NodeState::NotStarted | NodeState::Started => None,
            }
        })
    }

    /// Is anybody with an arbitration rank there to decide between two halves? `server` is this server
    /// itself.
    pub(crate) fn has_arbitrator(&self, server: NodeId) -> bool {
        let mgm = self.config.mgm_nodes.iter().map(|n| (n.node_id, n.arbitration_rank));
        let api = self.config.api_nodes.iter().map(|n| (n.node_id, n.arbitration_rank));
        mgm.chain(api).any(|(id, rank)| rank > 0 && (id == server || self.live.contains_key(&id)))
    }

    pub(crate) fn config(&self) -> &Arc<ClusterConfig> {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn slots() -> Slots {
        let text = b"[ndbd]\n[ndbd]\n[mgm]\n[api]\nHostName=10.0.0.7\n[api]\n";
        Slots::new(Arc::new(config::parse("t", text).unwrap().config))
    }

    fn live(link: usize, state: Option<NodeState>) -> Live {
        let report = state.map(|state| (NodeReport { state, ..NodeReport::default() }, Instant::now()));
        Live { link, address: Ipv4Addr::LOCALHOST.into(), pid: 1, release: "1".into(), report }
    }

    fn request(kind: NodeKind, wanted: Option<u8>) -> AllocNodeIdReq {
        AllocNodeIdReq {
            kind,
            wanted: wanted.map(NodeId),
            is_reclaim: false,
            host_name: "h".into(),
            pid: 1,
            release: "1".into(),
        }
    }

    #[test]
    fn ids_are_found_refused_and_freed() {
        let mut slots = slots();
        let data = [NodeId(1), NodeId(2)];
        let ask = |slots: &Slots, kind, wanted| slots.candidate(&request(kind, wanted), &data);
        let code = |r: Result<Candidate, Refusal>| r.unwrap_err().code;
        assert_eq!(ask(&slots, NodeKind::DataNode, None), Ok(Candidate::Free(NodeId(1))));
        assert!(slots.take(NodeId(1), live(11, None)) && !slots.take(NodeId(1), live(12, None)));
        assert_eq!(ask(&slots, NodeKind::DataNode, None), Ok(Candidate::Free(NodeId(2))));
        assert_eq!(ask(&slots, NodeKind::DataNode, Some(1)), Ok(Candidate::Taken(vec![(NodeId(1), 11)])));
        assert!(slots.take(NodeId(2), live(12, None)));
        let both = Candidate::Taken(vec![(NodeId(1), 11), (NodeId(2), 12)]);
        assert_eq!(ask(&slots, NodeKind::DataNode, None), Ok(both));
        assert_eq!(code(ask(&slots, NodeKind::DataNode, Some(9))), ErrorCode::MGM_NO_SUCH_NODE);
        assert_eq!(code(ask(&slots, NodeKind::ApiNode, Some(1))), ErrorCode::MGM_WRONG_NODE_TYPE);
        assert_eq!(code(ask(&slots, NodeKind::ApiNode, Some(146))), ErrorCode::MGM_NO_FREE_NODE_ID);
        assert_eq!(
            code(slots.candidate(&request(NodeKind::DataNode, None), &[])),
            ErrorCode::MGM_NO_FREE_NODE_ID
        );
        assert_eq!(slots.release(11), Some(NodeId(1)));
        assert_eq!(slots.release(11), None);
        assert_eq!(slots.live_data_nodes(), [NodeId(2)]);
        assert_eq!(slots.hosts(NodeKind::ApiNode)[0], (NodeId(146), "10.0.0.7".to_owned()));
    }

    #[test]
    fn the_last_node_of_a_group_is_known() {
        let mut slots = slots();
        slots.take(NodeId(1), live(11, Some(NodeState::Started)));
        assert_eq!(slots.group_lost_without(NodeId(1)), Some(0));
        slots.take(NodeId(2), live(12, Some(NodeState::Starting { phase: 2 })));
        assert_eq!(slots.group_lost_without(NodeId(1)), Some(0));
        assert_eq!(slots.in_transition(NodeId(1)), Some((NodeId(2), "starting")));
        assert_eq!(slots.group_lost_without(NodeId(2)), None);
        let report = NodeReport { state: NodeState::Started, ..NodeReport::default() };
        assert_eq!(slots.report(12, report, Instant::now()), Ok(Some(NodeState::Starting { phase: 2 })));
        assert_eq!(slots.group_lost_without(NodeId(1)), None);
        assert!(slots.report(99, NodeReport::default(), Instant::now()).is_err());
        assert!(slots.has_arbitrator(NodeId(145)));
    }
}
