//! Control plane signals: schema, membership, placement, start-up. Rare, so they are bincode, owned and rich.
//!
//! Names follow the field: REQ asks, CONF says yes, REF says no, ORD needs no answer, REP is news.

use crate::ErrorCode;
use crate::ids::*;
use crate::partition::PartitionMap;
use crate::peer::PeerSignal;
use crate::table::TableDef;
use bincode::{Decode, Encode};

/// A refusal: the code, and what in particular is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Refusal {
    /// NDB's code.
    pub code: ErrorCode,
    /// The particular cause and what to do, for people.
    pub detail: String,
}

impl Refusal {
    /// A refusal with its particular cause.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// A change of the schema, asked of any node's dict and decided by the master's.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum SchemaChange {
    /// Create a database.
    CreateDatabase {
        /// Its name.
        name: String,
        /// The SQL node's own description (character set).
        sql: Vec<u8>,
    },
    /// Drop an empty database.
    DropDatabase {
        /// Its name.
        name: String,
    },
    /// Create a table; id, version and map are assigned.
    CreateTable(Box<TableDef>),
    /// Drop a table.
    DropTable {
        /// Which.
        table: TableId,
        /// The version the asker saw; another is refused with 241.
        version: SchemaVersion,
    },
    /// Empty a table; it gets a new version.
    TruncateTable {
        /// Which.
        table: TableId,
        /// See [`SchemaChange::DropTable`].
        version: SchemaVersion,
    },
}

/// A table and where its rows live.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct TableInfo {
    /// The definition, ids assigned.
    pub def: TableDef,
    /// The placement.
    pub map: PartitionMap,
}

/// A database's name and the SQL node's description of it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct DatabaseInfo {
    /// Name.
    pub name: String,
    /// The SQL node's own description.
    pub sql: Vec<u8>,
}

/// What a client wants to know of the dictionary.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum DictQuery {
    /// One table by name.
    TableByName {
        /// Database.
        database: String,
        /// Table.
        name: String,
    },
    /// One table by id.
    TableById(TableId),
    /// Databases in the byte order of their names, one page.
    Databases {
        /// Only names after this one; empty for the first page.
        after: String,
    },
    /// Names, ids and versions of a database's tables in the byte order of their names, one page.
    Tables {
        /// Database.
        database: String,
        /// Only names after this one; empty for the first page.
        after: String,
    },
}

/// The answer to a [`DictQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum DictAnswer {
    /// A table.
    Table(Box<TableInfo>),
    /// A page of databases.
    Databases {
        /// The databases.
        databases: Vec<DatabaseInfo>,
        /// Whether there are others after the last of this page.
        more: bool,
    },
    /// A page of tables.
    Tables {
        /// Name, id, version.
        tables: Vec<(String, TableId, SchemaVersion)>,
        /// Whether there are others after the last of this page.
        more: bool,
    },
    /// A change was made on every node; for tables, the id and version given (a truncated table gets a new
    /// id).
    Changed(Option<(TableId, SchemaVersion)>),
}

/// What a [`ControlSignal::StopReq`] stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum StopScope {
    /// The node asked alone.
    Node,
    /// All data nodes.
    Cluster,
}

/// Every control plane signal.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ControlSignal {
    // --- API and dict
    // -------------------------------------------------------------------------------------------
    /// API to any dict: a question. `request` is echoed.
    DictQueryReq {
        /// The client's number of the request.
        request: u32,
        /// The question.
        query: DictQuery,
    },
    /// API to any dict: a change.
    SchemaReq {
        /// The client's number of the request.
        request: u32,
        /// The change.
        change: SchemaChange,
    },
    /// Dict to API: done.
    DictConf {
        /// The client's number of the request.
        request: u32,
        /// The answer.
        answer: DictAnswer,
    },
    /// Dict to API: refused.
    DictRef {
        /// The client's number of the request.
        request: u32,
        /// Why.
        refusal: Refusal,
    },
    /// API to Qmgr: register the session, and from then on a heartbeat.
    ApiRegReq {
        /// The client's protocol version.
        version: u32,
    },
    /// Qmgr to API: the node's state, its peers, its instances.
    ApiRegConf(ApiRegConf),

    // --- dict and its node's TCs and LDMs
    // ---------------------------------------------------------------------- Every REQ here is answered
    // exactly once, with TableConf or TableRef; dict has at most one open per table and instance.
    /// Dict to TC and LDM: take a table into use. A refusal leaves nothing of the table behind.
    AddTableReq(Box<TableInfo>),
    /// Dict to TC and LDM: refuse new operations on the table (1226), answer when none is left.
    PrepDropTableReq {
        /// Which.
        table: TableId,
    },
    /// Dict to TC and LDM: the drop did not come about, accept operations again. No answer of its own, but a
    /// [`ControlSignal::PrepDropTableReq`] still unanswered is answered now, with TableRef 787.
    CancelDropTableOrd {
        /// Which.
        table: TableId,
    },
    /// Dict to TC and LDM: forget the table and free its memory; operations left on it (there are none after
    /// [`ControlSignal::PrepDropTableReq`]) end with 283. A table that is not known counts as dropped.
    DropTableReq {
        /// Which.
        table: TableId,
    },
    /// TC or LDM to its dict: the step asked for is done.
    TableConf {
        /// Which.
        table: TableId,
    },
    /// TC or LDM to its dict: the step asked for failed.
    TableRef {
        /// Which.
        table: TableId,
        /// Why.
        refusal: Refusal,
    },

    // --- news for every block
    // ----------------------------------------------------------------------------------
    /// Runtime to Qmgr: a link to a data node is up. The route to it is set before this is sent.
    ConnectRep {
        /// The peer.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
    },
    /// Runtime to Qmgr: a link to a data node is gone, and why. Nothing that came over it is delivered
    /// afterwards.
    DisconnectRep {
        /// The peer.
        node: NodeId,
        /// For the log.
        reason: String,
    },
    /// Runtime to Qmgr, and Qmgr to dict and to every TC and LDM of its node: a client session's link is
    /// gone; end what it had.
    ApiFailReq {
        /// The session.
        client: BlockRef,
    },
    /// Ndbcntr to dict and to every TC and LDM: accept clients' requests from now on (`true`), or refuse
    /// them (4902 before the first `true`, 281 after a `false`). Signals of other data nodes are not meant:
    /// a peer may be started a moment earlier.
    StartPermOrd {
        /// Whether the node is started.
        started: bool,
    },
    /// Dbdih to every TC and LDM of its node: commits belong to this epoch from now on.
    EpochOrd {
        /// The epoch; never smaller than the one before.
        epoch: Epoch,
    },

    // --- management server, or the runtime on its behalf, and cmvmi
    // ---------------------------------------------
    /// To cmvmi: stop. Answered to the sender.
    StopReq {
        /// The asker's number of the request.
        request: u32,
        /// What to stop.
        scope: StopScope,
        /// Stop although it ends the cluster's service (`-f`, `-a`).
        force: bool,
    },
    /// Cmvmi: the stop has begun and will end with [`StopScope`]'s processes gone.
    StopConf {
        /// The asker's number of the request.
        request: u32,
    },
    /// Cmvmi: not stopped.
    StopRef {
        /// The asker's number of the request.
        request: u32,
        /// Why.
        refusal: Refusal,
    },

    // --- blocks of the main role, between data nodes
    // ------------------------------------------------------------
    /// Qmgr, Ndbcntr, Dbdih and Dbdict among themselves.
    Peer(PeerSignal),
}

/// The node a client reached, as it describes itself.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ApiRegConf {
    /// Whether it accepts requests.
    pub started: bool,
    /// For people: the start phase or what it waits for.
    pub status: String,
    /// Its TC instances.
    pub tcs: u16,
    /// Its LDM instances.
    pub ldms: u16,
    /// The node groups, members in id order.
    pub groups: Vec<Vec<NodeId>>,
}
