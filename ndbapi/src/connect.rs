//! How to connect: where the cluster is, who we are there, and what to do while it is away.

use crate::core::{CoreOptions, DataNode};
use config::ClusterConfig;
use signals::NodeId;
use signals::mgm::NodeKind;
use signals::planted::Planted;
use std::time::Duration;
use transporter::mgm_link::NodeOptions;

/// Where the data nodes are, and who we are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Hash of the cluster's name.
    pub(crate) cluster: u32,
    /// This API node.
    pub(crate) node: NodeId,
    /// The data nodes and their addresses.
    pub(crate) data_nodes: Vec<(DataNode, String)>,
    /// HeartbeatIntervalDbApi.
    pub(crate) heartbeat_ms: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    pub(crate) place: Option<Place>,
    pub(crate) connect_string: String,
    pub(crate) program: String,
    pub(crate) link: u16,
    pub(crate) neighbour: Option<NodeId>,
    pub(crate) wait: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) operations_max: Option<u32>,
    pub(crate) transactions_max: Option<u32>,
    pub(crate) planted: Planted,
}

impl ConnectOptions {
    /// Connect by asking a management server: `host:port[,host:port...]`, with `nodeid=N` as an optional
    /// first item.
    #[must_use]
    pub fn new(connect_string: impl Into<String>) -> Self {
        Self {
            place: None,
            connect_string: connect_string.into(),
            program: "ndbapi".into(),
            link: 0,
            neighbour: None,
            wait: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            operations_max: None,
            transactions_max: None,
            planted: Planted::NONE,
        }
    }

    /// Connect as API node `node` of a configuration that is already in hand, without a management server.
    #[must_use]
    pub fn direct(config: &ClusterConfig, node: NodeId) -> Self {
        let mut options = Self::new(String::new());
        options.place = Some(place(config, node));
        options
    }

    /// What the program calls itself, for the cluster log.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = name.into();
        self
    }

    /// The number of the first link (each session of a process has its own). 0 by default.
    #[must_use]
    pub fn link(mut self, link: u16) -> Self {
        self.link = link;
        self
    }

    /// The data node that committed reads should prefer (`ndb_data_node_neighbour`); else those on this host.
    #[must_use]
    pub fn neighbour(mut self, node: NodeId) -> Self {
        self.neighbour = Some(node);
        self
    }

    /// How long calls wait for a cluster that is away before they fail with 4035; zero fails them at once.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long an answer may take.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How long connecting may take, to the management server and to a data node.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Most operations and transactions in flight in one session.
    #[must_use]
    pub fn limits(mut self, operations: u32, transactions: u32) -> Self {
        self.operations_max = Some(operations);
        self.transactions_max = Some(transactions);
        self
    }

    /// A fault built in on purpose; see [`signals::planted`].
    #[must_use]
    pub fn planted(mut self, planted: Planted) -> Self {
        self.planted = planted;
        self
    }

    /// How we join at the management server.
    pub(crate) fn node_options(&self) -> NodeOptions {
        NodeOptions {
            connect_string: self.connect_string.clone(),
            kind: NodeKind::ApiNode,
            wanted: None,
            program: self.program.clone(),
            wait_for_server: false,
        }
    }

    pub(crate) fn core_options(&self, place: &Place, link: u16, incarnation: u64) -> CoreOptions {
        let nodes = place.data_nodes.iter().map(|(node, _)| match self.neighbour {
            Some(neighbour) => DataNode { id: node.id, near: node.id == neighbour },
            None => *node,
        });
        let mut core = CoreOptions::new(place.node, link, nodes.collect());
        core.request_timeout_ms = self.request_timeout.as_millis() as u64;
        core.heartbeat_ms = place.heartbeat_ms;
        core.first_transaction = scattered(incarnation);
        core.planted = self.planted;
        core.operations_max = self.operations_max.unwrap_or(core.operations_max);
        core.transactions_max = self.transactions_max.unwrap_or(core.transactions_max);
        core
    }
}

/// What a client needs of a configuration.
pub(crate) fn place(config: &ClusterConfig, node: NodeId) -> Place {
    let own_host = config.api_node(node).and_then(|n| n.host_name.clone()).unwrap_or_default();
    let data_nodes = config.data_nodes.iter().map(|n| {
        let near = is_loopback(&n.host_name) || n.host_name.eq_ignore_ascii_case(&own_host);
        (DataNode { id: n.node_id, near }, n.address())
    });
    Place {
        cluster: transporter::cluster_hash(&config.name),
        node,
        data_nodes: data_nodes.collect(),
        heartbeat_ms: config.data_nodes.first().map_or(1_500, |n| n.heartbeat_interval_db_api_ms).max(100),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Where the numbers of an incarnation's transactions begin, out of the 24 bits they have beside the record's
/// index. Incarnations that follow each other begin far apart: were it by the clock alone, a client that
/// starts again could meet its own last transactions, which the data nodes may still be rolling back.
fn scattered(incarnation: u64) -> u64 {
    incarnation.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulator, workload mixed, seed 1290: the new process's transactions had the numbers of the old one's.
    #[test]
    fn incarnations_number_their_transactions_far_apart() {
        let starts: Vec<u64> = (1..50u64).map(|boot| scattered(boot << 32)).collect();
        for (i, a) in starts.iter().enumerate() {
            assert!(*a < 1 << 24);
            assert!(starts[..i].iter().all(|b| a.abs_diff(*b) > 10_000), "incarnation {i} begins at {a}");
        }
    }
}
