//! The parameters of every section but `[ndbd]`.

use super::Restart::{InitialSystem as IS, Node as N, System as S};
use super::{G, K, M, NO_LIMIT, Param, bytes, flag, int, ms, num, text, word};
use crate::params::Unit;

/// `[ndb_mgmd]`.
pub(super) const MGM_NODE: &[Param] = &[
    int("NodeId", "", 1, 255, IS, "Id of the management server; from 145 upwards when not given.")
        .alias(&["Id"]),
    text("HostName", "localhost", 255, N, "Host name or address the management server listens on."),
    int("PortNumber", "1186", 1, 65535, N, "UDP port of the management server.").alias(&["Port"]),
    text("DataDir", ".", 4096, N, "Folder for the cluster log and the accepted configuration."),
    int("ArbitrationRank", "1", 0, 2, N, "1 and 2 may arbitrate (1 first), 0 never does."),
    text(
        "LogDestination",
        "",
        4096,
        N,
        "Where the cluster log goes; a rotating file in DataDir when not given.",
    )
    .later(),
    ms("HeartbeatIntervalMgmdMgmd", "1500", 100, NO_LIMIT, N, "Heartbeats between management servers.")
        .later(),
    int("HeartbeatThreadPriority", "0", 0, 100, N, "Priority of the heartbeat thread.").later(),
    ms("ArbitrationDelay", "0", 0, NO_LIMIT, N, "Delay of the arbitrator's answer.").later(),
    bytes("TotalSendBufferMemory", "0", 0, 64 * G, N, "Send buffers of all links together.").later(),
    bytes("ExtraSendBufferMemory", "0", 0, 32 * G, N, "Send buffers beyond the sum.").later(),
    int("MaxNoOfSavedEvents", "100", 0, NO_LIMIT, N, "Events kept for late listeners.").later(),
    int("LocationDomainId", "0", 0, 16, S, "Availability zone of the node.").later(),
    flag("RequireTls", "false", N, "Refuse clients without TLS.").later(),
    flag("RequireCertificate", "false", N, "Refuse to start without a certificate.").later(),
    flag("Wan", "false", N, "Larger TCP windows for far hosts.").later(),
];

/// `[mysqld]`.
pub(super) const API_NODE: &[Param] = &[
    int("NodeId", "", 1, 255, IS, "Id of the API node; the next free one from 145 upwards when not given.")
        .alias(&["Id"]),
    text("HostName", "", 255, N, "Only this host may take the node id; any host when not given."),
    int("ArbitrationRank", "0", 0, 2, N, "1 and 2 may arbitrate (1 first), 0 never does."),
    ms("ArbitrationDelay", "0", 0, NO_LIMIT, N, "Delay of the arbitrator's answer.").later(),
    int("BatchSize", "256", 1, 992, N, "Rows a scan asks of one fragment at a time."),
    bytes("BatchByteSize", "16K", K, M, N, "Bytes a scan asks of one fragment at a time."),
    bytes("MaxScanBatchSize", "256K", 32 * K, 16 * M, N, "Bytes a scan asks of all fragments at a time."),
    flag("AutoReconnect", "false", N, "False makes a node that lost the cluster take a fresh connection.")
        .later(),
    word(
        "DefaultOperationRedoProblemAction",
        "QUEUE",
        &["ABORT", "QUEUE"],
        S,
        "What to do when the redo log is slow.",
    ),
    ms(
        "ConnectBackoffMaxTime",
        "0",
        0,
        NO_LIMIT,
        N,
        "Longest wait between attempts to connect to a data node.",
    ),
    ms(
        "StartConnectBackoffMaxTime",
        "0",
        0,
        NO_LIMIT,
        N,
        "The same before the first data node is connected.",
    )
    .later(),
    num("ApiVerbose", Unit::Count, "0", 0, 100, N, "How much the API tells about node ids.").later(),
    bytes("TotalSendBufferMemory", "0", 0, 64 * G, N, "Send buffers of all links together; 0 means the sum."),
    bytes("ExtraSendBufferMemory", "0", 0, 32 * G, N, "Send buffers beyond the sum.").later(),
    int("DefaultHashMapSize", "3840", 240, 3840, N, "Buckets of the hash map new tables get.").later(),
    int(
        "LocationDomainId",
        "0",
        0,
        16,
        S,
        "Availability zone of the node; reads prefer replicas of the same one.",
    ),
    int("HeartbeatThreadPriority", "0", 0, 100, N, "Priority of the heartbeat thread.").later(),
    flag("Wan", "false", N, "Larger TCP windows for far hosts.").later(),
    flag("RequireTls", "false", N, "Refuse links without TLS.").later(),
    flag("RequireCertificate", "false", N, "Refuse to start without a certificate.").later(),
];

/// `[tcp]`.
pub(super) const TCP: &[Param] = &[
    int("NodeId1", "", 1, 255, N, "One end of the link."),
    int("NodeId2", "", 1, 255, N, "The other end of the link."),
    text("HostName1", "", 255, N, "Address of the first node for this link only.").later(),
    text("HostName2", "", 255, N, "Address of the second node for this link only.").later(),
    int("NodeIdServer", "", 1, 255, N, "Which end listens.").later(),
    bytes(
        "SendBufferMemory",
        "2M",
        256 * K,
        4 * G - 1,
        N,
        "Bytes that may wait to be sent; error 1218 above it.",
    ),
    bytes("ReceiveBufferMemory", "2M", 16 * K, 4 * G - 1, N, "Bytes read from the socket at a time."),
    bytes(
        "OverloadLimit",
        "0",
        0,
        4 * G - 1,
        N,
        "Waiting bytes that count as overload; 0 means 0.8 of SendBufferMemory.",
    ),
    flag("Checksum", "false", S, "Checksum on every message of the link."),
    flag("SendSignalId", "false", N, "Number the signals of the link.").later(),
    flag("PreSendChecksum", "false", S, "Check the checksum before sending, too.").later(),
    num(
        "TcpSpinTime",
        Unit::Micros,
        "0",
        0,
        2000,
        N,
        "Longest spin of workers that receive, where it exceeds their own; read from [tcp default].",
    ),
    bytes("TCP_SND_BUF_SIZE", "0", 0, 2 * G - 1, N, "Socket send buffer; 0 means the system's default."),
    bytes("TCP_RCV_BUF_SIZE", "0", 0, 2 * G - 1, N, "Socket receive buffer; 0 means the system's default."),
    bytes("TCP_MAXSEG_SIZE", "0", 0, 2 * G - 1, N, "Largest TCP segment; 0 means the system's default.")
        .later(),
    int("PreferIPVersion", "4", 4, 6, N, "IP version tried first."),
    flag("AllowUnresolvedHostNames", "false", N, "Start although a host name has no address yet.").later(),
    flag("TcpBind_INADDR_ANY", "false", N, "Listen on all addresses of the host.").later(),
    flag("RequireLinkTls", "false", N, "Refuse the link without TLS.").later(),
    int("Group", "55", 0, 200, N, "Cost of the link, for choosing the nearest node.").later(),
    int("Proxy", "", 0, 65535, N, "Deprecated.").later(),
];

/// `[system]`.
pub(super) const SYSTEM: &[Param] = &[
    text("Name", "nucdb", 64, N, "Name of the cluster, shown to clients and in logs."),
    int("ConfigGenerationNumber", "0", 0, NO_LIMIT, N, "Number of this edition of the file, for people.")
        .later(),
    int("PrimaryMGMNode", "0", 0, 255, N, "Id of the first management server.").later(),
];

/// `[shm]`.
pub(super) const SHM: &[Param] = &[
    int("NodeId1", "", 1, 255, N, "One end of the link.").later(),
    int("NodeId2", "", 1, 255, N, "The other end of the link.").later(),
    int("NodeIdServer", "", 1, 255, N, "Which end makes the segment.").later(),
    int("ShmKey", "", 0, NO_LIMIT, N, "Key of the segment.").later(),
    bytes("ShmSize", "4M", 64 * K, 4 * G - 1, N, "Size of the segment.").later(),
    num("ShmSpinTime", Unit::Micros, "0", 0, 2000, N, "How long a receive thread spins on the link.").later(),
    bytes("SendBufferMemory", "2M", 256 * K, 4 * G - 1, N, "Bytes that may wait to be sent.").later(),
    flag("Checksum", "true", S, "Checksum on every message of the link.").later(),
    flag("SendSignalId", "false", N, "Number the signals of the link.").later(),
];
