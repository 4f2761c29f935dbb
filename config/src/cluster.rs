//! The typed result: one [`ClusterConfig`] for the whole cluster, with one struct per kind of node.
//!
//! Every parameter this release uses is one plain field, units in its name. The structs are made by one
//! macro that ties each field to its row in the parameter table, so that reading, comparing and printing
//! cannot forget one. A `ClusterConfig` that came out of [`crate::parse`] is complete and consistent: ids
//! are unique, node groups are assigned, ports do not collide, `ThreadConfig` parses. It is a value: nobody
//! changes it, a new one replaces it.

use crate::params::{self, Section};
use crate::resolve::Settings;
use crate::threads::{SpinMethod, ThreadConfig, ThreadConfigError, ThreadLayout, auto_threads};
use crate::value::{Value, number_text};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use signals::NodeId;

/// What a node is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
pub enum NodeType {
    /// Keeps data.
    DataNode,
    /// Hands out this configuration.
    MgmNode,
    /// A SQL node or an application.
    ApiNode,
}

impl NodeType {
    /// The section name NDB users know the type by.
    pub fn section_name(self) -> &'static str {
        match self {
            NodeType::DataNode => "ndbd",
            NodeType::MgmNode => "ndb_mgmd",
            NodeType::ApiNode => "mysqld",
        }
    }
}

/// `Arbitration`: who decides between two halves of a cut cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub enum Arbitration {
    /// A management server or API node with an arbitration rank.
    Default,
    /// Nobody: without a majority a half stops.
    Disabled,
    /// Something outside, within `ArbitrationTimeout`.
    WaitExternal,
}

/// `DefaultOperationRedoProblemAction`: what an operation does when the redo log is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub enum RedoProblemAction {
    /// Fail at once.
    Abort,
    /// Wait and try again.
    Queue,
}

/// A type a parameter's value can be read into.
pub(crate) trait Field: Sized {
    /// Largest number the type holds; the table's `max` must not exceed it.
    #[cfg(test)]
    const MAX: u64 = u64::MAX;
    fn from_value(value: Option<&Value>) -> Self;
    fn text(&self, is_size: bool) -> String;
}

macro_rules! number_field {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            #[cfg(test)]
            const MAX: u64 = <$ty>::MAX as u64;
            fn from_value(value: Option<&Value>) -> $ty {
                match value {
                    // The table's range is inside the type's (tested), so nothing is ever cut here.
                    Some(Value::Number(n)) => <$ty>::try_from(*n).unwrap_or(<$ty>::MAX),
                    _ => 0,
                }
            }
            fn text(&self, is_size: bool) -> String {
                if is_size { number_text(u64::from(*self)) } else { self.to_string() }
            }
        }
    )*};
}
number_field!(u8, u16, u32, u64);

impl Field for NodeId {
    #[cfg(test)]
    const MAX: u64 = u8::MAX as u64;
    fn from_value(value: Option<&Value>) -> NodeId {
        NodeId(u8::from_value(value))
    }
    fn text(&self, _: bool) -> String {
        self.to_string()
    }
}

impl Field for bool {
    fn from_value(value: Option<&Value>) -> bool {
        matches!(value, Some(Value::Flag(true)))
    }
    fn text(&self, _: bool) -> String {
        self.to_string()
    }
}

impl Field for String {
    fn from_value(value: Option<&Value>) -> String {
        match value {
            Some(Value::Text(t)) => t.clone(),
            _ => String::new(),
        }
    }
    fn text(&self, _: bool) -> String {
        self.clone()
    }
}

/// Text that may be absent: empty means absent.
impl Field for Option<String> {
    fn from_value(value: Option<&Value>) -> Option<String> {
        Some(String::from_value(value)).filter(|t| !t.is_empty())
    }
    fn text(&self, _: bool) -> String {
        self.clone().unwrap_or_default()
    }
}

/// A node group; 65536 means none.
impl Field for Option<u16> {
    #[cfg(test)]
    const MAX: u64 = 65536;
    fn from_value(value: Option<&Value>) -> Option<u16> {
        match value {
            Some(Value::Number(n)) => u16::try_from(*n).ok(),
            _ => None,
        }
    }
    fn text(&self, _: bool) -> String {
        self.map_or_else(|| "65536".to_owned(), |n| n.to_string())
    }
}

impl Field for Arbitration {
    fn from_value(value: Option<&Value>) -> Arbitration {
        match String::from_value(value).as_str() {
            "Disabled" => Arbitration::Disabled,
            "WaitExternal" => Arbitration::WaitExternal,
            _ => Arbitration::Default,
        }
    }
    fn text(&self, _: bool) -> String {
        format!("{self:?}")
    }
}

impl Field for RedoProblemAction {
    fn from_value(value: Option<&Value>) -> RedoProblemAction {
        match String::from_value(value).as_str() {
            "ABORT" => RedoProblemAction::Abort,
            _ => RedoProblemAction::Queue,
        }
    }
    fn text(&self, _: bool) -> String {
        match self {
            RedoProblemAction::Abort => "ABORT".to_owned(),
            RedoProblemAction::Queue => "QUEUE".to_owned(),
        }
    }
}

impl Field for SpinMethod {
    fn from_value(value: Option<&Value>) -> SpinMethod {
        let text = String::from_value(value);
        SpinMethod::NAMES.iter().find(|row| row.1 == text).map_or_else(SpinMethod::default, |row| row.0)
    }
    fn text(&self, _: bool) -> String {
        SpinMethod::NAMES.iter().find(|row| row.0 == *self).map_or_else(String::new, |row| row.1.to_owned())
    }
}

macro_rules! node_config {
    ($(#[$meta:meta])* $name:ident in $section:ident { $($field:ident: $ty:ty = $param:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
        pub struct $name {
            $(#[doc = concat!("`", $param, "`")] pub $field: $ty,)*
        }

        impl $name {
            pub(crate) const SECTION: Section = Section::$section;
            /// Name of each field's parameter and the largest number the field's type holds.
            #[cfg(test)]
            pub(crate) const FIELDS: &'static [(&'static str, u64)] = &[$(($param, <$ty as Field>::MAX)),*];

            pub(crate) fn from_settings(settings: &Settings) -> $name {
                $name { $($field: <$ty as Field>::from_value(settings.value($param)),)* }
            }

            /// Every parameter with its value as it would be written in the file.
            pub fn parameters(&self) -> Vec<(&'static str, String)> {
                let size = |name| params::find(Self::SECTION, name).is_some_and(params::Param::is_size);
                vec![$(($param, self.$field.text(size($param)))),*]
            }
        }
    };
}

node_config! {
    /// Configuration of one data node.
    DataNodeConfig in DataNode {
        node_id: NodeId = "NodeId",
        host_name: String = "HostName",
        server_port: u16 = "ServerPort",
        data_dir: String = "DataDir",
        no_of_replicas: u8 = "NoOfReplicas",
        node_group: Option<u16> = "NodeGroup",
        location_domain_id: u8 = "LocationDomainId",
        data_memory_bytes: u64 = "DataMemory",
        long_message_buffer_bytes: u64 = "LongMessageBuffer",
        diskless: bool = "Diskless",
        lock_pages_in_main_memory: u8 = "LockPagesInMainMemory",
        max_no_of_concurrent_transactions: u32 = "MaxNoOfConcurrentTransactions",
        max_no_of_concurrent_operations: u32 = "MaxNoOfConcurrentOperations",
        max_dml_operations_per_transaction: u32 = "MaxDMLOperationsPerTransaction",
        max_no_of_concurrent_scans: u32 = "MaxNoOfConcurrentScans",
        batch_size_per_local_scan: u32 = "BatchSizePerLocalScan",
        transaction_deadlock_detection_timeout_ms: u64 = "TransactionDeadlockDetectionTimeout",
        transaction_inactive_timeout_ms: u64 = "TransactionInactiveTimeout",
        time_between_inactive_transaction_abort_check_ms: u64 = "TimeBetweenInactiveTransactionAbortCheck",
        max_no_of_tables: u32 = "MaxNoOfTables",
        max_no_of_attributes: u32 = "MaxNoOfAttributes",
        classic_fragmentation: bool = "ClassicFragmentation",
        partitions_per_node: u32 = "PartitionsPerNode",
        heartbeat_interval_db_db_ms: u64 = "HeartbeatIntervalDbDb",
        heartbeat_interval_db_api_ms: u64 = "HeartbeatIntervalDbApi",
        arbitration: Arbitration = "Arbitration",
        arbitration_timeout_ms: u64 = "ArbitrationTimeout",
        time_between_watch_dog_check_ms: u64 = "TimeBetweenWatchDogCheck",
        time_between_watch_dog_check_initial_ms: u64 = "TimeBetweenWatchDogCheckInitial",
        start_partial_timeout_ms: u64 = "StartPartialTimeout",
        start_partitioned_timeout_ms: u64 = "StartPartitionedTimeout",
        start_failure_timeout_ms: u64 = "StartFailureTimeout",
        start_no_nodegroup_timeout_ms: u64 = "StartNoNodegroupTimeout",
        stop_on_error: bool = "StopOnError",
        time_between_epochs_ms: u64 = "TimeBetweenEpochs",
        time_between_epochs_timeout_ms: u64 = "TimeBetweenEpochsTimeout",
        time_between_global_checkpoints_ms: u64 = "TimeBetweenGlobalCheckpoints",
        time_between_global_checkpoints_timeout_ms: u64 = "TimeBetweenGlobalCheckpointsTimeout",
        automatic_thread_config: bool = "AutomaticThreadConfig",
        num_cpus: u32 = "NumCPUs",
        max_no_of_execution_threads: u32 = "MaxNoOfExecutionThreads",
        thread_config: String = "ThreadConfig",
        spin_method: SpinMethod = "SpinMethod",
        scheduler_spin_timer_us: u32 = "SchedulerSpinTimer",
        realtime_scheduler: bool = "RealtimeScheduler",
        total_send_buffer_memory_bytes: u64 = "TotalSendBufferMemory",
    }
}

node_config! {
    /// Configuration of one management server.
    MgmNodeConfig in MgmNode {
        node_id: NodeId = "NodeId",
        host_name: String = "HostName",
        port_number: u16 = "PortNumber",
        data_dir: String = "DataDir",
        arbitration_rank: u8 = "ArbitrationRank",
    }
}

node_config! {
    /// Configuration of one slot for a SQL node or an application.
    ApiNodeConfig in ApiNode {
        node_id: NodeId = "NodeId",
        host_name: Option<String> = "HostName",
        arbitration_rank: u8 = "ArbitrationRank",
        batch_size: u32 = "BatchSize",
        batch_byte_size_bytes: u32 = "BatchByteSize",
        max_scan_batch_size_bytes: u32 = "MaxScanBatchSize",
        default_operation_redo_problem_action: RedoProblemAction = "DefaultOperationRedoProblemAction",
        connect_backoff_max_time_ms: u64 = "ConnectBackoffMaxTime",
        total_send_buffer_memory_bytes: u64 = "TotalSendBufferMemory",
        location_domain_id: u8 = "LocationDomainId",
    }
}

node_config! {
    /// Settings of links: the defaults of all, or those of one pair of nodes.
    TcpConfig in Tcp {
        send_buffer_memory_bytes: u32 = "SendBufferMemory",
        receive_buffer_memory_bytes: u32 = "ReceiveBufferMemory",
        overload_limit_bytes: u32 = "OverloadLimit",
        checksum: bool = "Checksum",
        tcp_spin_time_us: u32 = "TcpSpinTime",
        tcp_snd_buf_size_bytes: u32 = "TCP_SND_BUF_SIZE",
        tcp_rcv_buf_size_bytes: u32 = "TCP_RCV_BUF_SIZE",
        prefer_ip_version: u8 = "PreferIPVersion",
    }
}

/// A `[tcp]` section: the settings of the link between two nodes where they differ from the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct TcpLinkConfig {
    /// The lower node id.
    pub node_id_1: NodeId,
    /// The higher node id.
    pub node_id_2: NodeId,
    /// The link's settings, defaults filled in.
    pub settings: TcpConfig,
}

/// The configuration of a whole cluster, complete and consistent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct ClusterConfig {
    /// Counts accepted changes; set by the management server, 0 when fresh from a file.
    pub generation: u64,
    /// Name of the cluster.
    pub name: String,
    /// Data nodes by id.
    pub data_nodes: Vec<DataNodeConfig>,
    /// Management servers by id.
    pub mgm_nodes: Vec<MgmNodeConfig>,
    /// Slots for SQL nodes and applications, by id.
    pub api_nodes: Vec<ApiNodeConfig>,
    /// Settings of every link without a section of its own.
    pub tcp_default: TcpConfig,
    /// Links with a section of their own.
    pub tcp_links: Vec<TcpLinkConfig>,
}

impl ClusterConfig {
    /// Copies of every row.
    pub fn no_of_replicas(&self) -> u8 {
        self.data_nodes.first().map_or(1, |n| n.no_of_replicas)
    }

    /// The data node of this id.
    pub fn data_node(&self, node_id: NodeId) -> Option<&DataNodeConfig> {
        self.data_nodes.iter().find(|n| n.node_id == node_id)
    }

    /// The management server of this id.
    pub fn mgm_node(&self, node_id: NodeId) -> Option<&MgmNodeConfig> {
        self.mgm_nodes.iter().find(|n| n.node_id == node_id)
    }

    /// The API slot of this id.
    pub fn api_node(&self, node_id: NodeId) -> Option<&ApiNodeConfig> {
        self.api_nodes.iter().find(|n| n.node_id == node_id)
    }

    /// What the node of this id is.
    pub fn node_type(&self, node_id: NodeId) -> Option<NodeType> {
        self.nodes().find(|(id, _)| *id == node_id).map(|(_, node_type)| node_type)
    }

    /// All nodes: data nodes, management servers, API slots, each by id.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, NodeType)> + '_ {
        let data = self.data_nodes.iter().map(|n| (n.node_id, NodeType::DataNode));
        let mgm = self.mgm_nodes.iter().map(|n| (n.node_id, NodeType::MgmNode));
        let api = self.api_nodes.iter().map(|n| (n.node_id, NodeType::ApiNode));
        data.chain(mgm).chain(api)
    }

    /// Node ids of every node group, groups by number, members by id. Nodes without a group are in none.
    pub fn node_groups(&self) -> Vec<Vec<NodeId>> {
        let count = self
            .data_nodes
            .iter()
            .filter_map(|n| n.node_group)
            .map(|g| usize::from(g) + 1)
            .max()
            .unwrap_or(0);
        let mut groups = vec![Vec::new(); count];
        for node in &self.data_nodes {
            if let Some(group) = node.node_group.and_then(|g| groups.get_mut(usize::from(g))) {
                group.push(node.node_id);
            }
        }
        groups
    }

    /// Settings of the link between two nodes, given in any order.
    pub fn tcp(&self, one: NodeId, other: NodeId) -> &TcpConfig {
        let (low, high) = (one.min(other), one.max(other));
        let own = self.tcp_links.iter().find(|l| l.node_id_1 == low && l.node_id_2 == high);
        own.map_or(&self.tcp_default, |l| &l.settings)
    }

    /// `host:port` of every management server, separated by commas: what clients are started with.
    pub fn connect_string(&self) -> String {
        let all: Vec<String> = self.mgm_nodes.iter().map(MgmNodeConfig::address).collect();
        all.join(",")
    }
}

impl DataNodeConfig {
    /// `host:port` the node listens on and is reached at.
    pub fn address(&self) -> String {
        host_port(&self.host_name, self.server_port)
    }

    /// The workers this node runs, given the CPUs it may use (see [`crate::available_cpus`]).
    pub fn thread_layout(&self, cpus_available: &[usize]) -> Result<ThreadLayout, ThreadConfigError> {
        let mut layout = if self.automatic_thread_config || self.thread_config.is_empty() {
            auto_threads(cpus_available, self.num_cpus, self.max_no_of_execution_threads)
        } else {
            ThreadConfig::parse(&self.thread_config)?.layout()
        };
        layout.apply_defaults(self.scheduler_spin_timer_us, self.spin_method, self.realtime_scheduler);
        Ok(layout)
    }

    /// Idle transactions are aborted after this; `None` means never.
    pub fn transaction_inactive_timeout(&self) -> Option<u64> {
        let ms = self.transaction_inactive_timeout_ms;
        (ms != 0 && ms < params::NO_LIMIT).then_some(ms)
    }
}

impl MgmNodeConfig {
    /// `host:port` the server listens on and is reached at.
    pub fn address(&self) -> String {
        host_port(&self.host_name, self.port_number)
    }
}

/// Joins host and port; an IPv6 address gets its brackets.
fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every used parameter has a field, every field a parameter, and the field's type holds the whole range.
    #[test]
    fn fields_and_table_agree() {
        let link_ends = [("NodeId1", 255), ("NodeId2", 255)];
        let name = [("Name", u64::MAX)];
        let tcp: Vec<_> = TcpConfig::FIELDS.iter().chain(&link_ends).copied().collect();
        for (section, fields) in [
            (Section::DataNode, DataNodeConfig::FIELDS),
            (Section::MgmNode, MgmNodeConfig::FIELDS),
            (Section::ApiNode, ApiNodeConfig::FIELDS),
            (Section::Tcp, &tcp),
            (Section::System, &name),
            (Section::Shm, &[]),
        ] {
            let used: Vec<_> = section.params().iter().filter(|p| p.used).collect();
            for param in &used {
                assert!(fields.iter().any(|(n, _)| *n == param.name), "no field for {}", param.name);
            }
            for (name, max) in fields {
                let param = used.iter().find(|p| p.name == *name);
                assert!(param.is_some(), "no used parameter {name}");
                assert!(param.is_some_and(|p| p.max <= *max), "{name}: type too small");
            }
        }
    }

    #[test]
    fn addresses_bracket_ipv6() {
        assert_eq!(host_port("localhost", 1186), "localhost:1186");
        assert_eq!(host_port("::1", 1186), "[::1]:1186");
        assert_eq!(host_port("[::1]", 1186), "[::1]:1186");
    }
}
