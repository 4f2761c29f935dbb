//! Peer signals: what the main-role blocks of the data nodes say to each other.
//!
//! One enum per receiving block, so that each block's match is exhaustive and a signal cannot reach the
//! wrong block. Signals marked *local* stay within a node; they go the same way because blocks never call
//! each other. The charts stand beside the code that makes the moves, in the kernel's `mainrole`.
//!
//! A `round` is one attempt to start the cluster, numbered by the president. A signal of another round is
//! dropped:
//! it belongs to an attempt that was given up.

use crate::control::{DatabaseInfo, Refusal, SchemaChange, StopScope, TableInfo};
use crate::ids::*;
use bincode::{Decode, Encode};

/// Signals between main-role blocks, sorted by the block they are for.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum PeerSignal {
    /// For qmgr.
    Qmgr(QmgrSignal),
    /// For ndbcntr.
    Cntr(CntrSignal),
    /// For dbdict.
    Dict(DictSignal),
    /// For dbdih.
    Dih(DihSignal),
}

/// What a node tells its peers about itself while the cluster starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct NodeInfo {
    /// Its incarnation; must be the one its link was opened with.
    pub incarnation: u64,
    /// A hash of the node groups and the LDM count: nodes that differ here cannot place rows alike.
    pub layout: u64,
    /// Whether its links to all data nodes of the configuration are up.
    pub complete: bool,
    /// Whether it is started, and so belongs to a running cluster.
    pub started: bool,
}

/// A member of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its incarnation; a restarted node is another member.
    pub incarnation: u64,
}

/// For qmgr; CM stands for cluster membership.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum QmgrSignal {
    /// I am alive.
    Heartbeat,
    /// This is me; who are you?
    CmNodeInfoReq(NodeInfo),
    /// This is me.
    CmNodeInfoConf(NodeInfo),
    /// This has changed about me.
    CmNodeInfoRep(NodeInfo),
    /// President to all: shall this be the membership?
    CmMembersReq {
        /// The round.
        round: u64,
        /// All members in id order.
        members: Vec<Member>,
    },
    /// To the president: it is what I see.
    CmMembersConf {
        /// The round.
        round: u64,
    },
    /// To the president: I see something else.
    CmMembersRef {
        /// The round.
        round: u64,
        /// What, for the log.
        reason: String,
    },
    /// President to all: all agree, go on.
    CmMembershipOrd {
        /// The round.
        round: u64,
    },
    /// President to all: this round is over, connect again.
    CmCancelOrd {
        /// The round.
        round: u64,
        /// For the log.
        reason: String,
    },
    /// The announcer to all: the cluster is being stopped; expect links to close.
    StopAnnounceReq,
    /// To the announcer: understood, clients are refused from now on.
    StopAnnounceConf,
    /// The announcer to all: everybody knows, end.
    StopOrd,
    /// To all: this node alone is stopped by order.
    LeaveRep,
    /// Local, ndbcntr to qmgr: how far the start is.
    StartProgressRep {
        /// Whether the node is started.
        started: bool,
        /// One line for people.
        text: String,
    },
    /// Local, cmvmi to qmgr: stop. Answered to the asker with StopConf or StopRef.
    StopReq {
        /// Who gets the answer.
        asker: BlockRef,
        /// The asker's number of the request.
        request: u32,
        /// What to stop.
        scope: StopScope,
        /// Stop although it ends the cluster's service.
        force: bool,
    },
}

/// For ndbcntr.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum CntrSignal {
    /// Local, qmgr to ndbcntr: the membership is agreed.
    MembershipRep {
        /// The round.
        round: u64,
        /// The president.
        president: NodeId,
        /// The members in id order.
        members: Vec<NodeId>,
    },
    /// Local, qmgr to ndbcntr: the membership fell apart before the start was over; wait for the next.
    MembershipLostRep,
    /// Local, qmgr to ndbcntr: the node is about to stop, refuse clients.
    StoppingOrd,
    /// Local, dict to ndbcntr: ready for the round.
    DictStartConf {
        /// The round.
        round: u64,
    },
    /// To the president's ndbcntr: this node's dictionary is ready.
    DictionaryRep {
        /// The round.
        round: u64,
    },
    /// Local, the master's dict to ndbcntr: the system tables exist.
    DictSystemConf {
        /// The round.
        round: u64,
    },
    /// Local, the master's dict to ndbcntr: the system tables could not be made.
    DictSystemRef {
        /// The round.
        round: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The president's ndbcntr to all: every node is ready, serve.
    StartOrd {
        /// The round.
        round: u64,
    },
}

/// What one schema transaction does, worked out by the master: ids, versions and maps are assigned.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum SchemaOp {
    /// A new database.
    CreateDatabase(DatabaseInfo),
    /// A database goes; it is empty.
    DropDatabase {
        /// Its name.
        name: String,
    },
    /// A new table.
    CreateTable(Box<TableInfo>),
    /// A table goes.
    DropTable {
        /// Which.
        table: TableId,
    },
    /// A table is replaced by an empty one of the same definition.
    TruncateTable {
        /// The full one, which goes.
        old: TableId,
        /// The empty one.
        new: Box<TableInfo>,
    },
}

/// For dbdict.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum DictSignal {
    /// Local, ndbcntr to dict: forget everything and take part in a round. Answered by DictStartConf.
    DictStartReq {
        /// The round.
        round: u64,
        /// The master: the president's dict.
        master: NodeId,
        /// The members in id order.
        members: Vec<NodeId>,
    },
    /// Local, ndbcntr to the master's dict: make the system tables. Answered by DictSystemConf or
    /// DictSystemRef.
    DictSystemReq {
        /// The round.
        round: u64,
    },
    /// Any dict to the master's: a client's change.
    SchemaForwardReq {
        /// The round.
        round: u64,
        /// The sender's number of the request.
        key: u64,
        /// The change.
        change: SchemaChange,
    },
    /// Master to the dict that forwarded: done on every node.
    SchemaForwardConf {
        /// The sender's number of the request.
        key: u64,
        /// The table's id and version, if the change made one.
        table: Option<(TableId, SchemaVersion)>,
    },
    /// Master to the dict that forwarded: not done, anywhere.
    SchemaForwardRef {
        /// The sender's number of the request.
        key: u64,
        /// Why.
        refusal: Refusal,
    },
    /// To the master: the client is gone; drop its change if it has not begun.
    SchemaCancelOrd {
        /// The sender's number of the request.
        key: u64,
    },
    /// Master to all: prepare a schema transaction.
    SchemaPrepareReq {
        /// The round.
        round: u64,
        /// The schema transaction.
        trans: u64,
        /// What it does.
        op: SchemaOp,
    },
    /// To the master: prepared.
    SchemaPrepareConf {
        /// The schema transaction.
        trans: u64,
    },
    /// To the master: cannot be prepared.
    SchemaPrepareRef {
        /// The schema transaction.
        trans: u64,
        /// Why.
        refusal: Refusal,
    },
    /// Master to all: all are prepared, make it visible.
    SchemaCommitReq {
        /// The schema transaction.
        trans: u64,
    },
    /// To the master: visible here, and what was dropped is gone.
    SchemaCommitConf {
        /// The schema transaction.
        trans: u64,
    },
    /// Master to all: undo what was prepared.
    SchemaAbortReq {
        /// The schema transaction.
        trans: u64,
    },
    /// To the master: undone.
    SchemaAbortConf {
        /// The schema transaction.
        trans: u64,
    },
}

/// For dbdih.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum DihSignal {
    /// Local, ndbcntr to dih: the cluster starts with this president and these members.
    DihStartOrd {
        /// The president, whose dih makes the epochs.
        president: NodeId,
        /// The members in id order.
        members: Vec<NodeId>,
    },
    /// The master's dih to all: this epoch begins.
    EpochRep {
        /// The epoch.
        epoch: Epoch,
    },
}
