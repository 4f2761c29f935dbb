//! What differs between two configurations, parameter by parameter, and what it takes for the change to hold.
//!
//! Nodes are matched by id. The generation is not compared: it counts changes and is none itself.

use crate::cluster::{ClusterConfig, NodeType};
use crate::params::{self, Restart, Section};
use serde::{Deserialize, Serialize};
use signals::NodeId;
use std::collections::BTreeMap;
use std::fmt;

/// What happened to a node or a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    /// A parameter has another value.
    Changed,
    /// The node or link is new.
    Added,
    /// The node or link is gone.
    Removed,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The node, or node 0 for the cluster and its links.
    pub node_id: NodeId,
    /// Section name: `ndbd`, `tcp`, ...
    pub section: String,
    /// Parameter; empty when a whole node or link came or went.
    pub parameter: String,
    /// Old value; empty if there was none.
    pub old: String,
    /// New value; empty if there is none.
    pub new: String,
    /// NDB's restart letter: N, IN, S, IS.
    pub restart: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", self.section)?;
        if self.node_id != CLUSTER {
            write!(f, "node {} ", self.node_id)?;
        }
        match self.kind {
            ChangeKind::Changed => write!(f, "{}: {} -> {}", self.parameter, self.old, self.new)?,
            ChangeKind::Added => write!(f, "added {}", self.new)?,
            ChangeKind::Removed => write!(f, "removed {}", self.old)?,
        }
        write!(f, " (restart: {})", self.restart)
    }
}

/// Stands for the cluster and its links where a node is named.
const CLUSTER: NodeId = NodeId(0);

/// One comparable thing: which section and what its name is.
type Key = (Section, NodeId, String);
type Parameters = Vec<(&'static str, String)>;

/// Lists what changed from `old` to `new`, by section and node.
pub fn diff(old: &ClusterConfig, new: &ClusterConfig) -> Vec<Change> {
    let (old, new) = (parts(old), parts(new));
    let mut changes = Vec::new();
    for (key, before) in &old {
        match new.get(key) {
            Some(after) => changed(key, before, after, &mut changes),
            None => changes.push(whole(ChangeKind::Removed, key)),
        }
    }
    let added = new.keys().filter(|key| !old.contains_key(*key));
    changes.extend(added.map(|key| whole(ChangeKind::Added, key)));
    changes
}

fn parts(config: &ClusterConfig) -> BTreeMap<Key, Parameters> {
    let mut parts: BTreeMap<Key, Parameters> = BTreeMap::new();
    parts.insert((Section::System, CLUSTER, "system".to_owned()), vec![("Name", config.name.clone())]);
    parts.insert((Section::Tcp, CLUSTER, "tcp default".to_owned()), config.tcp_default.parameters());
    let named = |id: NodeId, node_type: NodeType| format!("{} node {id}", node_type.section_name());
    for n in &config.data_nodes {
        parts.insert((Section::DataNode, n.node_id, named(n.node_id, NodeType::DataNode)), n.parameters());
    }
    for n in &config.mgm_nodes {
        parts.insert((Section::MgmNode, n.node_id, named(n.node_id, NodeType::MgmNode)), n.parameters());
    }
    for n in &config.api_nodes {
        parts.insert((Section::ApiNode, n.node_id, named(n.node_id, NodeType::ApiNode)), n.parameters());
    }
    for link in &config.tcp_links {
        let name = format!("tcp {}-{}", link.node_id_1, link.node_id_2);
        parts.insert((Section::Tcp, CLUSTER, name), link.settings.parameters());
    }
    parts
}

fn changed(key: &Key, before: &Parameters, after: &Parameters, changes: &mut Vec<Change>) {
    for ((name, old), (_, new)) in before.iter().zip(after).filter(|((_, old), (_, new))| old != new) {
        let restart = params::find(key.0, name).map_or(Restart::Node, |p| p.restart);
        // A link's section has a name of its own ("tcp 1-2"); a node's is the plain one.
        let section = if key.0 == Section::Tcp { key.2.clone() } else { key.0.name().to_owned() };
        changes.push(Change {
            kind: ChangeKind::Changed,
            node_id: key.1,
            section,
            parameter: (*name).to_owned(),
            old: old.clone(),
            new: new.clone(),
            restart: restart.letter().to_owned(),
        });
    }
}

fn whole(kind: ChangeKind, key: &Key) -> Change {
    let name = key.2.clone();
    let (old, new) = match kind {
        ChangeKind::Removed => (name, String::new()),
        ChangeKind::Added | ChangeKind::Changed => (String::new(), name),
    };
    // A new slot only has to be told to everybody; a data node that goes takes its data with it.
    let is_data_node_removed = key.0 == Section::DataNode && kind == ChangeKind::Removed;
    let restart = if is_data_node_removed { Restart::InitialSystem } else { Restart::Node };
    Change {
        kind,
        node_id: key.1,
        section: key.0.name().to_owned(),
        parameter: String::new(),
        old,
        new,
        restart: restart.letter().to_owned(),
    }
}
