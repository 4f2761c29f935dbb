//! Management messages: what nodes and operators say to the management server, and what it asks of data
//! nodes.
//!
//! They travel on a management link (QUIC), never on a data link: bincode behind [`crate::codec`], one
//! question and one answer per stream, each at most [`MESSAGE_BYTES_MAX`] long. Who speaks:
//!
//! * Anybody asks the server an [`MgmReq`] and gets an [`MgmAnswer`]. A node's first request is
//!   `AllocNodeId`; its link stays open while it lives, and when it closes the node id is free again. An
//!   operator's client never has an id.
//! * The server asks a node an [`MgmOrder`] over that same link and gets an [`MgmOrderAnswer`].
//!
//! A peer's message is decoded with a limit and then checked by `invalid()`; what is invalid costs it the
//! link. The cluster configuration travels as the bytes of the `config` crate's `ClusterConfig`, which this
//! crate cannot name.

use crate::ErrorCode;
use crate::control::Refusal;
use crate::ids::NodeId;
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// First bytes of a management hello.
pub const MAGIC: [u8; 8] = *b"NUCMGM\r\n";
/// The management protocol this build speaks.
pub const VERSION: u32 = 1;
/// The oldest one it accepts.
pub const VERSION_OLDEST: u32 = 1;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = crate::codec::DECODE_LIMIT;
/// Longest text in a message (host names, log lines, reasons).
pub const TEXT_BYTES_MAX: usize = 4096;
/// Most nodes named in one message.
pub const NODES_MAX: usize = 255;

/// What a node is, as the configuration's sections say.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode, Serialize, Deserialize,
)]
pub enum NodeKind {
    /// `[ndbd]`
    DataNode,
    /// `[ndb_mgmd]`
    MgmNode,
    /// `[mysqld]`, `[api]`
    ApiNode,
}

impl NodeKind {
    /// Name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DataNode => "data node",
            Self::MgmNode => "management server",
            Self::ApiNode => "API node",
        }
    }
}

/// The first message on a management link, from the connecting side.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct MgmHello {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The sender's newest protocol version.
    pub version: u32,
    /// The sender's release, for people.
    pub release: String,
    /// What the sender calls itself: `nucdb mgm`, `nucdb-datanode`...
    pub program: String,
}

/// The answer to a good hello. A bad one is answered by a [`Refusal`] and the end of the link.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct MgmHelloConf {
    /// The version both use.
    pub version: u32,
    /// The server's release.
    pub release: String,
    /// The server's node id.
    pub node: NodeId,
    /// The cluster's name.
    pub cluster: String,
}

/// Where a data node stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode, Serialize, Deserialize)]
pub enum NodeState {
    /// Connected, has not begun to start.
    #[default]
    NotStarted,
    /// In this start phase.
    Starting {
        /// The phase it works on.
        phase: u8,
    },
    /// Serves.
    Started,
    /// Stops.
    ShuttingDown,
    /// Stops in order to start again.
    Restarting,
}

/// Pages of a data node's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode, Serialize, Deserialize)]
pub struct MemoryUsage {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages of rows in use.
    pub data_pages_used: u64,
    /// Pages of DataMemory.
    pub data_pages_total: u64,
    /// Pages of hash and ordered indexes in use (part of the above total where it is shared).
    pub index_pages_used: u64,
    /// Pages the indexes may use.
    pub index_pages_total: u64,
}

/// A data node's news about itself: sent when something changes, and every second.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode, Serialize, Deserialize)]
pub struct NodeReport {
    /// Where it stands.
    pub state: NodeState,
    /// Its node group; `None` if it has none yet.
    pub node_group: Option<u16>,
    /// Is it the president, NDB's master?
    pub is_master: bool,
    /// The data nodes it counts as members of the cluster, itself included.
    pub members: Vec<NodeId>,
    /// The node that would arbitrate, if any.
    pub arbitrator: Option<NodeId>,
    /// What a start waits for, with peer, address and reason; empty if for nothing.
    pub waits_for: String,
    /// Memory in use.
    pub memory: MemoryUsage,
    /// The TCP port it listens on.
    pub server_port: u16,
}

/// Severity of a cluster log line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode, Serialize, Deserialize)]
pub enum LogSeverity {
    /// Details.
    Debug,
    /// Ordinary news.
    Info,
    /// Something odd.
    Warning,
    /// Something failed.
    Error,
    /// Service is in danger.
    Critical,
    /// Service is lost or needs help at once.
    Alert,
}

impl LogSeverity {
    /// The word in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Critical => "CRITICAL",
            Self::Alert => "ALERT",
        }
    }
}

/// A line for the cluster log.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct LogEvent {
    /// How bad.
    pub severity: LogSeverity,
    /// What happened, one line.
    pub text: String,
}

/// One node or all data nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Target {
    /// Every data node.
    All,
    /// This one.
    Node(NodeId),
}

/// Who wants a node id.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct AllocNodeIdReq {
    /// As what.
    pub kind: NodeKind,
    /// A certain id, or any free one.
    pub wanted: Option<NodeId>,
    /// The node runs with this id already and only lost its link (the server restarted).
    pub is_reclaim: bool,
    /// The node's own host name, for people.
    pub host_name: String,
    /// Its process id.
    pub pid: u32,
    /// Its release.
    pub release: String,
}

/// A question to the management server.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum MgmReq {
    /// A node wants its id and the configuration.
    AllocNodeId(AllocNodeIdReq),
    /// The configuration, without an id.
    GetConfig,
    /// A data node's news.
    NodeReport(Box<NodeReport>),
    /// Lines for the cluster log.
    Log(Vec<LogEvent>),
    /// SHOW
    Show,
    /// STATUS
    Status(Target),
    /// STOP
    Stop {
        /// Whom; `Node` may also be a management server.
        target: Target,
        /// Do not wait for running transactions, and skip the safety check.
        is_abort: bool,
        /// Stop although others are just stopping or starting.
        is_force: bool,
    },
    /// SHUTDOWN: all data nodes together, then the management server.
    Shutdown,
    /// REPORT MEMORYUSAGE
    ReportMemoryUsage(Target),
    /// CLUSTERLOG INFO
    ClusterLogInfo,
}

/// The server's answer: a confirmation, or a refusal with code, cause and hint.
pub type MgmAnswer = Result<MgmConf, Refusal>;

/// A node as the server sees it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its id.
    pub node: NodeId,
    /// What it is.
    pub kind: NodeKind,
    /// Host the configuration names; empty = any.
    pub config_host: String,
    /// Address it is connected from; empty = not connected.
    pub address: String,
    /// Process id; 0 = unknown.
    pub pid: u32,
    /// Its release; empty = not connected.
    pub release: String,
    /// Its last report, if it is a data node and has sent one.
    pub report: Option<NodeReport>,
    /// Age of that report in milliseconds.
    pub report_age_ms: u64,
}

impl NodeStatus {
    /// Has it a live link to the server?
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.address.is_empty()
    }
}

/// The whole cluster as the server sees it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode, Serialize, Deserialize)]
pub struct ShowConf {
    /// Name of the cluster.
    pub cluster: String,
    /// Node id of the answering server.
    pub server: NodeId,
    /// Generation of the active configuration.
    pub generation: u64,
    /// All nodes.
    pub nodes: Vec<NodeStatus>,
    /// Why the configuration file is not what is active, line by line; empty if it is.
    pub config_differences: Vec<String>,
    /// What endangers service: `no arbitrator...`.
    pub warnings: Vec<String>,
}

/// What became of one node of a command.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct NodeOutcome {
    /// The node.
    pub node: NodeId,
    /// Done, or why not.
    pub outcome: Result<(), Refusal>,
}

/// Memory of one node, or why it is unknown.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct NodeMemory {
    /// The node.
    pub node: NodeId,
    /// Its memory, or why it is unknown.
    pub usage: Result<MemoryUsage, Refusal>,
}

/// A confirmation.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum MgmConf {
    /// Taken note.
    Done,
    /// The id is yours while the link lives.
    AllocNodeId {
        /// The id.
        node: NodeId,
        /// An encoded `ClusterConfig`.
        config: Vec<u8>,
    },
    /// An encoded `ClusterConfig`.
    Config(Vec<u8>),
    /// SHOW
    Show(Box<ShowConf>),
    /// STATUS
    Status(Vec<NodeStatus>),
    /// STOP, SHUTDOWN: per node.
    Stopped(Vec<NodeOutcome>),
    /// REPORT MEMORYUSAGE
    Memory(Vec<NodeMemory>),
    /// CLUSTERLOG INFO
    ClusterLog {
        /// File being written.
        path: String,
        /// Bytes after which it is rotated.
        file_bytes_max: u64,
        /// Rotated files kept.
        files_max: u32,
        /// Lines lost because the disk was slow or full.
        lost_lines: u64,
    },
}

/// What the server asks of a node.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum MgmOrder {
    /// Are you there?
    Ping,
    /// Stop.
    Stop {
        /// Do not wait for running transactions.
        is_abort: bool,
        /// Stop although others are just stopping or starting.
        is_force: bool,
        /// The whole cluster stops: do it together, at one point.
        is_cluster: bool,
    },
    /// Tell your memory use.
    ReportMemory,
    /// An encoded `ClusterConfig` replaces the one you have.
    ConfigChange(Vec<u8>),
}

/// The node's answer. A `Stop` is answered when it has begun; its end is the closing of the link.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum MgmOrderConf {
    /// Understood, done or begun.
    Done,
    /// Memory in use.
    Memory(MemoryUsage),
}

/// The node's answer or refusal.
pub type MgmOrderAnswer = Result<MgmOrderConf, Refusal>;

fn too_long(text: &str) -> bool {
    text.len() > TEXT_BYTES_MAX
}

impl MgmHello {
    /// A hello of this build.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let release = env!("CARGO_PKG_VERSION").to_owned();
        Self { magic: MAGIC, version: VERSION, release, program: program.to_owned() }
    }

    /// What is wrong with a received hello, if anything.
    #[must_use]
    pub fn invalid(&self) -> Option<Refusal> {
        if self.magic != MAGIC {
            return Some(Refusal::new(
                ErrorCode::MALFORMED_MESSAGE,
                "not a nucdb management link: wrong magic",
            ));
        }
        if self.version < VERSION_OLDEST {
            let detail = format!(
                "management protocol version {} is too old; {VERSION_OLDEST} is needed",
                self.version
            );
            return Some(Refusal::new(ErrorCode::PROTOCOL_VERSION, detail));
        }
        if too_long(&self.release) || too_long(&self.program) {
            return Some(Refusal::new(ErrorCode::MALFORMED_MESSAGE, "hello with endless names"));
        }
        None
    }
}

impl MgmReq {
    /// What is wrong with a received request, if anything.
    #[must_use]
    pub fn invalid(&self) -> Option<&'static str> {
        match self {
            Self::AllocNodeId(req) if too_long(&req.host_name) || too_long(&req.release) => {
                Some("AllocNodeId with endless names")
            }
            Self::NodeReport(report) if report.members.len() > NODES_MAX || too_long(&report.waits_for) => {
                Some("NodeReport with endless members or reason")
            }
            Self::Log(events) if events.len() > 1024 || events.iter().any(|e| too_long(&e.text)) => {
                Some("Log with endless lines")
            }
            Self::AllocNodeId(_) | Self::NodeReport(_) | Self::Log(_) => None,
            Self::GetConfig
            | Self::Show
            | Self::Status(_)
            | Self::Stop { .. }
            | Self::Shutdown
            | Self::ReportMemoryUsage(_)
            | Self::ClusterLogInfo => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode, encode};

    #[test]
    fn messages_come_back_and_endless_ones_are_refused() {
        let report = NodeReport { waits_for: "node 3: no link to node 2".into(), ..NodeReport::default() };
        let req = MgmReq::NodeReport(Box::new(report));
        assert_eq!(decode::<MgmReq>(&encode(&req)), Ok(req.clone()));
        assert_eq!(req.invalid(), None);
        let answer: MgmAnswer = Err(Refusal::new(ErrorCode::MGM_NO_SUCH_NODE, "node 9"));
        assert_eq!(decode::<MgmAnswer>(&encode(&answer)), Ok(answer));
        let endless = NodeReport { waits_for: "x".repeat(TEXT_BYTES_MAX + 1), ..NodeReport::default() };
        assert!(MgmReq::NodeReport(Box::new(endless)).invalid().is_some());
    }

    #[test]
    fn a_hello_needs_magic_and_version() {
        let hello = MgmHello::new("test");
        assert_eq!(hello.invalid(), None);
        let old = MgmHello { version: 0, ..hello.clone() };
        assert_eq!(old.invalid().map(|r| r.code), Some(ErrorCode::PROTOCOL_VERSION));
        let odd = MgmHello { magic: *b"GET / HT", ..hello };
        assert_eq!(odd.invalid().map(|r| r.code), Some(ErrorCode::MALFORMED_MESSAGE));
    }
}
