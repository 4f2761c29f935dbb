//! Data nodes as a session sees them: linked or not, started or not, near or not.
//!
//! ```text
//!   Down ──connected──► Greeting ──APIREGCONF started──► Started
//!     ▲                    ▲ └────── not started ──────────┘│
//!     └────────── disconnected ──────────────────────────────┘
//! ```
//!
//! Only started nodes get requests. APIREGREQ is the greeting and, repeated, the heartbeat.

use super::{Action, Core, Now};
use signals::control::{ApiRegConf, ControlSignal};
use signals::{BlockNumber, BlockRef, NodeId, frame};

/// A data node of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataNode {
    /// Its id.
    pub id: NodeId,
    /// On this host, or named as the neighbour: committed reads prefer it.
    pub near: bool,
}

/// What a session knows about a data node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeStatus {
    /// No link.
    Down,
    /// Linked, not accepting requests; its own words why.
    Starting(String),
    /// Accepts requests.
    Started,
}

pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) near: bool,
    pub(super) status: NodeStatus,
    pub(super) tcs: u16,
    pub(super) ldms: u16,
    pub(super) out: Vec<u8>,
    pub(super) dirty: bool,
    heard_at: Now,
    greeted_at: Now,
}

impl Node {
    pub(super) fn new(node: &DataNode) -> Self {
        Self {
            id: node.id,
            near: node.near,
            status: NodeStatus::Down,
            tcs: 0,
            ldms: 0,
            out: Vec::new(),
            dirty: false,
            heard_at: Now(0),
            greeted_at: Now(0),
        }
    }

    #[inline]
    pub(super) fn is_started(&self) -> bool {
        self.status == NodeStatus::Started
    }

    pub(super) fn describe(&self) -> String {
        match &self.status {
            NodeStatus::Down => "is not connected".into(),
            NodeStatus::Starting(words) if words.is_empty() => "is starting".into(),
            NodeStatus::Starting(words) => format!("is starting: {words}"),
            NodeStatus::Started => "is started".into(),
        }
    }

    #[inline]
    pub(super) fn heard(&mut self, now: Now) {
        self.heard_at = now;
    }
}

impl Core {
    /// A link to `node` is up: greet it.
    pub fn connected(&mut self, now: Now, node: NodeId) {
        let Some(index) = self.index_of(node) else { return };
        if self.nodes[index].status != NodeStatus::Down {
            self.disconnected(now, node, "the link was replaced");
        }
        let record = &mut self.nodes[index];
        record.status = NodeStatus::Starting(String::new());
        record.heard_at = now;
        record.out.clear();
        self.greet(now, index);
    }

    fn greet(&mut self, now: Now, index: usize) {
        self.nodes[index].greeted_at = now;
        let (me, id) = (self.me, self.nodes[index].id);
        let signal = ControlSignal::ApiRegReq { version: signals::hello::CURRENT as u32 };
        let qmgr = BlockRef::new(id, BlockNumber::Qmgr, 0);
        let sent = frame::push_control(self.out(index), me, qmgr, &signal);
        debug_assert!(sent);
    }

    pub(super) fn on_api_reg_conf(&mut self, index: usize, conf: ApiRegConf) -> Result<(), frame::Invalid> {
        if conf.started && (conf.tcs == 0 || conf.ldms == 0) {
            return Err(frame::Invalid("APIREGCONF of a started node without TC or LDM"));
        }
        let node = &mut self.nodes[index];
        node.tcs = conf.tcs;
        node.ldms = conf.ldms;
        node.status = if conf.started { NodeStatus::Started } else { NodeStatus::Starting(conf.status) };
        Ok(())
    }

    /// What is known about every data node.
    pub fn node_states(&self) -> impl Iterator<Item = (NodeId, &NodeStatus)> {
        self.nodes.iter().map(|n| (n.id, &n.status))
    }

    /// Whether any data node accepts requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.nodes.iter().any(Node::is_started)
    }

    /// How many data nodes accept requests.
    #[must_use]
    pub fn started_nodes(&self) -> usize {
        self.nodes.iter().filter(|n| n.is_started()).count()
    }

    /// Whether every data node accepts requests.
    #[must_use]
    pub fn all_ready(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(Node::is_started)
    }

    /// Heartbeats; nodes silent too long are to be cut off.
    pub(super) fn check_nodes(&mut self, now: Now) {
        let beat = self.options.heartbeat_ms;
        if now >= self.ticked_at.after_ms(beat) {
            // It is us who stood still: nobody could be heard, so nobody is blamed.
            for node in &mut self.nodes {
                node.heard_at = now;
            }
        }
        self.ticked_at = now;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.status == NodeStatus::Down {
                continue;
            }
            // A node that is not started yet is asked more often, so that it is used as soon as it is.
            let interval = if node.is_started() { beat } else { beat.min(100) };
            if now >= node.heard_at.after_ms(4 * beat) {
                let reason = format!("node {} has said nothing for {} ms", node.id, 4 * beat);
                self.actions.push_back(Action::Disconnect { node: node.id, reason });
            } else if now >= node.greeted_at.after_ms(interval) {
                self.greet(now, index);
            }
        }
    }

    /// The index of a started node, any of them in turn.
    pub(super) fn any_started(&mut self) -> Option<usize> {
        let count = self.nodes.len();
        self.turn = self.turn.wrapping_add(1);
        let start = self.turn as usize;
        (0..count).map(|i| (start + i) % count).find(|i| self.nodes[*i].is_started())
    }
}
