//! Setup: from the cluster's configuration and the machine to what a data node is built from.

use config::{ClusterConfig, DataNodeConfig, NodeType, Role, TcpConfig, ThreadLayout, available_cpus};
use kernel::NodeSetup;
use kernel::ldm::page::{DataMemory, PAGE_BYTES};
use signals::NodeId;
use transporter::{PeerRole, SocketOptions};

/// Why a node cannot start; the text names the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError(pub String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for StartError {}

/// The CPUs this process may use: its affinity mask, cut to its cgroup's quota.
#[must_use]
pub fn cpus_of_process() -> Vec<usize> {
    let affinity: Vec<usize> = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => vec![0],
    };
    available_cpus(&affinity, std::fs::read_to_string("/sys/fs/cgroup/cpu.max").ok().as_deref())
}

/// The workers of a node. Data nodes on one host begin at different CPUs, so that two of them share a machine
/// evenly.
///
/// # Errors
/// `ThreadConfig` does not parse.
pub fn layout_of(
    cluster: &ClusterConfig,
    node: &DataNodeConfig,
    cpus: &[usize],
) -> Result<ThreadLayout, StartError> {
    let mut cpus = cpus.to_vec();
    let neighbours = cluster.data_nodes.iter().filter(|n| n.host_name == node.host_name);
    let place = neighbours.take_while(|n| n.node_id != node.node_id).count();
    if !cpus.is_empty() {
        let by = place % cpus.len();
        cpus.rotate_left(by);
    }
    let mut layout = node.thread_layout(&cpus).map_err(|error| {
        StartError(format!("ThreadConfig of data node {} cannot be used: {error}", node.node_id))
    })?;
    layout.apply_tcp_spin_time(cluster.tcp_default.tcp_spin_time_us);
    Ok(layout)
}

/// What the blocks are told.
#[must_use]
pub fn node_setup(
    cluster: &ClusterConfig,
    node: &DataNodeConfig,
    layout: &ThreadLayout,
    incarnation: u64,
) -> NodeSetup {
    NodeSetup {
        node: node.node_id,
        incarnation,
        groups: cluster.node_groups(),
        ldms: layout.ldm_count(),
        tcs: layout.tc_count(),
        data_memory: DataMemory::new(node.data_memory_bytes / u64::try_from(PAGE_BYTES).unwrap_or(32 << 10)),
        deadlock_timeout_ms: node.transaction_deadlock_detection_timeout_ms,
        inactive_timeout_ms: node.transaction_inactive_timeout().unwrap_or(u64::MAX),
        transactions_max: node.max_no_of_concurrent_transactions,
        operations_max: node.max_no_of_concurrent_operations,
        scans_max: node.max_no_of_concurrent_scans,
        tables_max: node.max_no_of_tables,
        heartbeat_db_ms: node.heartbeat_interval_db_db_ms,
        heartbeat_api_ms: node.heartbeat_interval_db_api_ms,
        epoch_ms: node.time_between_epochs_ms,
        gcp_ms: node.time_between_global_checkpoints_ms,
        tunables: kernel::tunables::Tunables::default(),
        rare: kernel::tunables::Rare::NEVER,
        planted: signals::planted::Planted::NONE,
    }
}

/// Socket settings of a link.
#[must_use]
pub fn socket_options(tcp: &TcpConfig) -> SocketOptions {
    SocketOptions {
        send_buffer_bytes: tcp.tcp_snd_buf_size_bytes as usize,
        receive_buffer_bytes: tcp.tcp_rcv_buf_size_bytes as usize,
    }
}

/// Who may connect to a data node: other data nodes and API nodes of the configuration.
pub fn peers(cluster: &ClusterConfig, own: NodeId) -> impl Iterator<Item = (NodeId, PeerRole)> + '_ {
    cluster.nodes().filter_map(move |(node, node_type)| match node_type {
        NodeType::DataNode if node != own => Some((node, PeerRole::DataNode)),
        NodeType::ApiNode => Some((node, PeerRole::ApiNode)),
        NodeType::DataNode | NodeType::MgmNode => None,
    })
}

/// The LDM and TC instances among a worker's roles, whether it has the main role, and whether it receives.
#[must_use]
pub fn hosted(roles: &[Role]) -> (Vec<u16>, Vec<u16>, bool, bool) {
    let (mut ldms, mut tcs, mut main, mut receives) = (Vec::new(), Vec::new(), false, false);
    for role in roles {
        match role {
            Role::Ldm(instance) => ldms.push(*instance),
            Role::Tc(instance) => tcs.push(*instance),
            Role::Main => main = true,
            Role::Recv(_) => receives = true,
            // Send instances are queues, see [`crate::send`]; events to subscribers have no block yet.
            Role::Rep | Role::Send(_) => {}
        }
    }
    (ldms, tcs, main, receives)
}
