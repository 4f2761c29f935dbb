//! Setup: what a data node's blocks are told at birth.
//!
//! Everything here comes from the configuration and the machine, through the runtime; blocks read nothing
//! else.

use crate::ldm::page::DataMemory;
use crate::tunables::{Rare, Tunables};
use signals::NodeId;
use signals::planted::Planted;

/// See the module.
#[derive(Clone)]
pub struct NodeSetup {
    /// This node.
    pub node: NodeId,
    /// This process's incarnation, to tell a restarted node from its former self.
    pub incarnation: u64,
    /// The node groups, members in id order; all data nodes of the configuration.
    pub groups: Vec<Vec<NodeId>>,
    /// LDM instances of every node, from 0.
    pub ldms: u16,
    /// TC instances of this node, from 0.
    pub tcs: u16,
    /// The node's row memory, shared by its LDMs.
    pub data_memory: DataMemory,
    /// TransactionDeadlockDetectionTimeout.
    pub deadlock_timeout_ms: u64,
    /// TransactionInactiveTimeout; `u64::MAX` for never.
    pub inactive_timeout_ms: u64,
    /// MaxNoOfConcurrentTransactions, per TC instance.
    pub transactions_max: u32,
    /// MaxNoOfConcurrentOperations, per TC and per LDM instance.
    pub operations_max: u32,
    /// MaxNoOfConcurrentScans times fragments scanned at once, per LDM instance.
    pub scans_max: u32,
    /// MaxNoOfTables.
    pub tables_max: u32,
    /// HeartbeatIntervalDbDb.
    pub heartbeat_db_ms: u64,
    /// HeartbeatIntervalDbApi.
    pub heartbeat_api_ms: u64,
    /// TimeBetweenEpochs.
    pub epoch_ms: u64,
    /// TimeBetweenGlobalCheckpoints.
    pub gcp_ms: u64,
    /// Numbers that are a matter of measure.
    pub tunables: Tunables,
    /// Rare events on demand.
    pub rare: Rare,
    /// A fault built in on purpose; see [`signals::planted`].
    pub planted: Planted,
}

impl NodeSetup {
    /// All data nodes of the configuration in id order.
    #[must_use]
    pub fn data_nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.groups.iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes
    }
}
