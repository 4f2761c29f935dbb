//! The protocol core: one client session with every data node of a cluster, as a state machine without I/O.
//!
//! Role: it knows which data nodes are up, keeps the dictionary cache, the transactions, the operations in
//! flight and the scans of one session (one link number, so one link to every data node). It never reads a
//! clock, opens a socket or spawns a thread: time is an argument ([`Now`]), frames of the data nodes come
//! in through [`Core::receive`], frames for them are fetched with [`Core::take_outgoing`], and what became
//! of requests comes out of [`Core::next_completion`] in the order it happened. The drivers and the
//! simulator own the rest.
//!
//! ```text
//!   execute ──► committed reads only, no writes before ──► READROWREQ to the LDM of a replica ──► TRANSID_AI
//!           └─► anything else ──► TCKEYREQ to one coordinator ──► TCKEYCONF, and TRANSID_AI from the LDMs
//! ```
//!
//! An execute is complete when the coordinator has confirmed and every read that did not fail has its row;
//! rows come over other links than the confirmation, so both orders happen.
//!
//! A transaction (`trans`):
//!
//! ```text
//!   Fresh ──first operation for TC──► Executing ──TCKEYCONF──► Open ──► Executing | RollingBack
//!     │                                  │ committed, rolled back by TC, link lost, time-out
//!     └─commit, rollback─► Ended ◄───────┘            Ended ──release──► (none)
//! ```
//!
//! What a lost link means: committed reads ask another replica; a transaction whose coordinator was there
//! is aborted (4010) if its commit had not been asked for, else its outcome is unknown (4013). Nothing is
//! ever sent twice that could take effect twice.
//!
//! Everything a data node sends is checked against what was asked. A frame that makes no sense is an error of
//! [`Core::receive`]: the driver closes that link. Answers to things given up are no error, they are dropped.

mod dict;
mod execute;
mod failure;
mod node;
mod receive;
mod scan;
mod slots;
#[cfg(test)]
mod tests;
mod trans;

pub use dict::{DictReply, DictRequest, Page};
pub use execute::CommitMode;
pub use node::{DataNode, NodeStatus};
pub use scan::{RowBatch, ScanRef, ScanSpec, ScanTake};
pub use trans::TransRef;

use crate::batch::Batch;
use crate::error::NdbError;
use crate::table::TableHandle;
use dict::{Parked, PendingDict};
use execute::Flight;
use node::Node;
use scan::{Fragment, ScanRecord};
use signals::ids::Epoch;
use signals::{BlockNumber, BlockRef, ErrorCode, NodeId, TableId};
use slots::Slots;
use std::collections::{BTreeMap, HashMap, VecDeque};
use trans::Trans;

/// Monotonic time in nanoseconds, as the driver tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Now(pub u64);

impl Now {
    /// This time plus `ms` milliseconds.
    #[inline]
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
}

/// What a core is told at birth.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// This API node.
    pub node: NodeId,
    /// The session's link number: the instance of its API block, unique in the node.
    pub link: u16,
    /// All data nodes of the configuration.
    pub data_nodes: Vec<DataNode>,
    /// Most operations in flight.
    pub operations_max: u32,
    /// Most transactions alive, up to 65535.
    pub transactions_max: u32,
    /// Most fragment scans in flight.
    pub scans_max: u32,
    /// Bytes that may wait for one node before an execute is refused with 219.
    pub send_buffer_bytes: usize,
    /// How long an execute, commit or scan batch may take.
    pub request_timeout_ms: u64,
    /// How long a change of the schema may take.
    pub schema_timeout_ms: u64,
    /// How often a data node is asked how it is; one silent for four times as long is cut off.
    pub heartbeat_ms: u64,
    /// Where the transactions' numbers start. Should differ between incarnations of an API node.
    pub first_transaction: u64,
    /// A fault built in on purpose; see [`signals::planted`].
    pub planted: signals::planted::Planted,
}

impl CoreOptions {
    /// Defaults for API node `node`'s link `link`.
    #[must_use]
    pub fn new(node: NodeId, link: u16, data_nodes: Vec<DataNode>) -> Self {
        Self {
            node,
            link,
            data_nodes,
            operations_max: 256 << 10,
            transactions_max: 16 << 10,
            scans_max: 4 << 10,
            send_buffer_bytes: 8 << 20,
            request_timeout_ms: 10_000,
            schema_timeout_ms: 60_000,
            heartbeat_ms: 1_500,
            first_transaction: 0,
            planted: signals::planted::Planted::NONE,
        }
    }
}

/// What became of a request. `tag` is the asker's.
#[derive(Debug)]
pub enum Completion {
    /// An execute, a commit.
    Executed {
        /// The asker's.
        tag: u64,
        /// The operations with their results.
        batch: Box<Batch>,
        /// See [`Executed`]; an error means that the transaction is over (or was never begun).
        result: Result<Executed, NdbError>,
    },
    /// A rollback.
    RolledBack {
        /// The asker's.
        tag: u64,
        /// An error means that the transaction is over.
        result: Result<(), NdbError>,
    },
    /// A question to the dictionary or a change of it.
    Dictionary {
        /// The asker's.
        tag: u64,
        /// The answer.
        result: Result<DictReply, NdbError>,
    },
    /// [`Core::scan_take`] has something.
    ScanReady {
        /// The asker's.
        tag: u64,
    },
}

/// A successful execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Executed {
    /// The epoch the transaction committed in, if it did. Transactions that wrote nothing have epoch 0.
    pub committed: Option<Epoch>,
}

/// What a core wants its driver to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Close the link to a node, then call [`Core::disconnected`].
    Disconnect {
        /// The node.
        node: NodeId,
        /// For the log.
        reason: String,
    },
}

/// See the module.
pub struct Core {
    options: CoreOptions,
    me: BlockRef,
    nodes: Vec<Node>,
    by_id: [u8; 256],
    /// Nodes with something in their outgoing buffer.
    dirty: Vec<u8>,
    turn: u32,
    /// When [`Core::tick`] was called last.
    ticked_at: Now,

    tables: HashMap<String, TableHandle>,
    tables_by_id: HashMap<TableId, TableHandle>,
    // Ordered where it is gone through, so that the same input always gives the same output.
    dict: BTreeMap<u32, PendingDict>,
    next_request: u32,
    /// Committed reads that wait for their table's new placement.
    parked: BTreeMap<TableId, Vec<Parked>>,

    transactions: Vec<Trans>,
    free_transactions: Vec<u16>,
    next_transaction: u64,

    /// Operation numbers: which flight, which operation of its batch.
    ops: Slots<(u32, u32)>,
    flights: Vec<Flight>,
    free_flights: Vec<u32>,

    fragments: Slots<Fragment>,
    scans: Vec<ScanRecord>,
    free_scans: Vec<u32>,

    completions: VecDeque<Completion>,
    actions: VecDeque<Action>,
    stale: u64,
}

/// The tag of a request nobody waits for: its completion is dropped.
pub const NOBODY: u64 = u64::MAX;
/// How long the number of something given up is not used again.
const REST_MS: u64 = 60_000;

impl Core {
    /// A session that has no link yet.
    #[must_use]
    pub fn new(options: CoreOptions) -> Self {
        let mut by_id = [u8::MAX; 256];
        let nodes: Vec<Node> = options.data_nodes.iter().take(254).map(Node::new).collect();
        for (i, node) in nodes.iter().enumerate() {
            by_id[node.id.0 as usize] = i as u8;
        }
        Self {
            me: BlockRef::new(options.node, BlockNumber::Api, options.link),
            nodes,
            by_id,
            dirty: Vec::new(),
            turn: options.link.into(),
            ticked_at: Now(0),
            tables: HashMap::new(),
            tables_by_id: HashMap::new(),
            dict: BTreeMap::new(),
            next_request: 0,
            parked: BTreeMap::new(),
            transactions: Vec::new(),
            free_transactions: Vec::new(),
            next_transaction: options.first_transaction,
            ops: Slots::new(options.operations_max),
            flights: Vec::new(),
            free_flights: Vec::new(),
            fragments: Slots::new(options.scans_max),
            scans: Vec::new(),
            free_scans: Vec::new(),
            completions: VecDeque::new(),
            actions: VecDeque::new(),
            stale: 0,
            options,
        }
    }

    /// This session's address.
    #[must_use]
    pub fn me(&self) -> BlockRef {
        self.me
    }

    /// The next thing that became of a request.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Puts a completion back in line, at its end.
    pub(crate) fn put_back(&mut self, completion: Completion) {
        self.completions.push_back(completion);
    }

    /// The next thing the driver shall do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Hands every node's waiting frames to `accept`, which takes what it wants off the buffer (all of it,
    /// usually, by putting an empty one in its place). What it leaves stays in order and is offered again.
    #[inline]
    pub fn take_outgoing(&mut self, mut accept: impl FnMut(NodeId, &mut Vec<u8>)) {
        let mut kept = 0;
        for place in 0..self.dirty.len() {
            let index = self.dirty[place];
            let node = &mut self.nodes[index as usize];
            if !node.out.is_empty() {
                accept(node.id, &mut node.out);
            }
            if node.out.is_empty() {
                node.dirty = false;
            } else {
                self.dirty[kept] = index;
                kept += 1;
            }
        }
        self.dirty.truncate(kept);
    }

    /// Whether frames wait for any node.
    #[inline]
    #[must_use]
    pub fn has_outgoing(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Answers that came for something given up; a test and a counter look at it.
    #[must_use]
    pub fn stale_answers(&self) -> u64 {
        self.stale
    }

    /// Operations, flights, transactions and scans in use: all 0 when the session is quiet.
    #[must_use]
    pub fn in_use(&self) -> [usize; 4] {
        [
            self.ops.used() as usize,
            self.flights.len() - self.free_flights.len(),
            self.transactions.len() - self.free_transactions.len(),
            self.scans.len() - self.free_scans.len(),
        ]
    }

    #[inline]
    fn complete_with(&mut self, completion: Completion) {
        self.completions.push_back(completion);
    }

    #[inline]
    fn index_of(&self, node: NodeId) -> Option<usize> {
        let index = self.by_id[node.0 as usize] as usize;
        (index < self.nodes.len()).then_some(index)
    }

    /// The outgoing buffer of a node, noted as having something in it.
    #[inline]
    fn out(&mut self, index: usize) -> &mut Vec<u8> {
        let node = &mut self.nodes[index];
        if !node.dirty {
            node.dirty = true;
            self.dirty.push(index as u8);
        }
        &mut node.out
    }

    /// 4035, with what is known about the nodes.
    #[cold]
    fn unavailable(&self) -> NdbError {
        let states: Vec<String> =
            self.nodes.iter().map(|n| format!("node {} {}", n.id, n.describe())).collect();
        NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, states.join(", "))
    }
}
