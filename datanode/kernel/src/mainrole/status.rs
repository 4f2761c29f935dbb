//! Status: what a node says about itself to the management server, to clients and in its log.
//!
//! It is a plain value, taken from the blocks whenever somebody asks; nothing is decided by it.

use signals::NodeId;

/// The start phases: few and named, because an operator has to understand where a start hangs. A node goes
/// through them in order; before [`StartPhase::Started`] a lost peer sets it back to
/// [`StartPhase::Connecting`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StartPhase {
    /// Waits for the links to all data nodes of the configuration.
    Connecting = 1,
    /// Agrees with them on the membership and its president.
    Joining = 2,
    /// Readies the dictionary; the president's makes the system tables at the first start.
    Dictionary = 3,
    /// Serves.
    Started = 4,
    /// Refuses clients and is about to end.
    Stopping = 5,
}

impl StartPhase {
    /// The name shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Joining => "joining",
            Self::Dictionary => "dictionary",
            Self::Started => "started",
            Self::Stopping => "stopping",
        }
    }
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    /// The start phase.
    pub phase: StartPhase,
    /// One line for people: the phase and what it waits for.
    pub text: String,
    /// The president, once one is agreed on.
    pub president: Option<NodeId>,
    /// This node's group, an index into the configuration's groups.
    pub group: Option<u16>,
    /// The data nodes whose links are up, this node left out.
    pub connected: Vec<NodeId>,
    /// Grows with every change of the above.
    pub generation: u64,
}

/// `node 3`, `nodes 3, 4`, `nodes 3, 4, 5 and 12 others`: for texts that say who is waited for.
pub(super) fn node_list(nodes: impl Iterator<Item = NodeId>) -> String {
    const SHOWN: usize = 8;
    let nodes: Vec<String> = nodes.map(|n| n.to_string()).collect();
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    match nodes.len().checked_sub(SHOWN) {
        None | Some(0) => format!("{word} {}", nodes.join(", ")),
        Some(more) => format!("{word} {} and {more} others", nodes[..SHOWN].join(", ")),
    }
}
