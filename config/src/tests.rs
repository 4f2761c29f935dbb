//! Whole files through [`parse`]: a typical one read to the last field, bad ones refused in words, random
//! ones survived.

use super::*;
use signals::NodeId;

/// A file as an NDB operator has it, with comments, suffixes, aliases and parameters not used yet.
const TYPICAL: &str = "\
# Example of a two-host cluster
[system]
Name = orders

[ndbd default]
NoOfReplicas=2            ; two copies
DataMemory: 2G
data-dir=/var/lib/nucdb
TimeBetweenGlobalCheckpoints=1000
NoOfFragmentLogFiles=32

[NDB_MGMD]
HostName=10.0.0.9
ArbitrationRank=1

[ndbd]
HostName=10.0.0.1
NodeId=1
[ndbd]
HostName=10.0.0.2
ThreadConfig=ldm={count=2,cpubind=0,1},main,rep,recv

[tcp default]
SendBufferMemory=4M
[mysqld]
HostName=10.0.0.1
[api]
Id=200
HostName=10.0.0.2

[tcp]
NodeId1=2
NodeId2=1
SendBufferMemory=8M
";

fn load(text: &str) -> Loaded {
    match parse("config.ini", text.as_bytes()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{errors}"),
    }
}

fn group_ids(config: &ClusterConfig) -> Vec<Vec<u8>> {
    config.node_groups().into_iter().map(|g| g.into_iter().map(|id| id.0).collect()).collect()
}

fn refused(text: &str) -> ConfigErrors {
    match parse("config.ini", text.as_bytes()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(errors) => errors,
    }
}

#[test]
fn a_typical_file_is_read_to_the_last_field() {
    let Loaded { config, warnings } = load(TYPICAL);
    assert_eq!(config.name, "orders");
    assert_eq!(
        config.nodes().collect::<Vec<_>>(),
        [
            (NodeId(1), NodeType::DataNode),
            (NodeId(2), NodeType::DataNode),
            (NodeId(145), NodeType::MgmNode),
            (NodeId(146), NodeType::ApiNode),
            (NodeId(200), NodeType::ApiNode),
        ]
    );
    let two = config.data_node(NodeId(2)).unwrap();
    assert_eq!(two.address(), "10.0.0.2:11862");
    assert_eq!((two.data_memory_bytes, two.no_of_replicas, two.node_group), (2 << 30, 2, Some(0)));
    assert_eq!((two.data_dir.as_str(), two.time_between_global_checkpoints_ms), ("/var/lib/nucdb", 1000));
    assert_eq!((two.time_between_epochs_ms, two.transaction_deadlock_detection_timeout_ms), (100, 1200));
    assert_eq!((two.max_no_of_concurrent_transactions, two.max_no_of_concurrent_operations), (4096, 32768));
    assert_eq!(two.transaction_inactive_timeout(), None);
    assert!(!two.automatic_thread_config && !two.diskless && two.stop_on_error);
    let layout = two.thread_layout(&[0, 1, 2, 3]).unwrap();
    assert_eq!((layout.ldm_count(), layout.workers.len()), (2, 5));
    let one = config.data_node(NodeId(1)).unwrap();
    assert!(one.automatic_thread_config);
    assert_eq!(one.thread_layout(&[0, 1, 2]).unwrap().workers.len(), 3);
    assert_eq!(config.mgm_node(NodeId(145)).unwrap().arbitration_rank, 1);
    assert_eq!(config.connect_string(), "10.0.0.9:1186");
    assert_eq!(config.api_node(NodeId(200)).unwrap().host_name.as_deref(), Some("10.0.0.2"));
    assert_eq!(config.tcp(NodeId(1), NodeId(2)).send_buffer_memory_bytes, 8 << 20);
    assert_eq!(config.tcp(NodeId(2), NodeId(146)).send_buffer_memory_bytes, 4 << 20);
    assert_eq!(group_ids(&config), [[1, 2]]);
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["config.ini:10: warning: [ndbd default] NoOfFragmentLogFiles = 32: accepted, not used yet"]
    );
}

#[test]
fn it_survives_the_wire_and_json() {
    let config = load(TYPICAL).config;
    let bytes = bincode::encode_to_vec(&config, bincode::config::standard()).unwrap();
    let (back, _): (ClusterConfig, usize) =
        bincode::decode_from_slice(&bytes, bincode::config::standard()).unwrap();
    assert_eq!(back, config);
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<ClusterConfig>(&json).unwrap(), config);
}

#[test]
fn defaults_keep_the_ports_predictable_and_local() {
    let config = load("[ndbd default]\nNoOfReplicas=1\n[ndbd]\n[ndb_mgmd]\n[api]\n").config;
    assert_eq!(config.data_nodes[0].address(), "localhost:11861");
    assert_eq!(config.connect_string(), "localhost:1186");
    assert_eq!(config.data_nodes[0].heartbeat_interval_db_db_ms, 1500);
}

#[test]
fn node_ids_fill_the_gaps_of_their_range() {
    let text = "[mgm]\nNodeId=1\n[mgm]\nPortNumber=1187\n[ndbd]\n[ndbd]\nNodeId=2\n[ndbd]\n[ndbd]\n[api]\nNodeId=146\n[api]\n";
    let ids: Vec<u8> = load(text).config.nodes().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [2, 3, 4, 5, 1, 145, 146, 147]);
}

#[test]
fn node_groups_are_assigned_around_given_ones() {
    let base = "[ndbd default]\nNoOfReplicas=2\n[mgm]\n[api]\n";
    let groups = |nodes: &str| group_ids(&load(&format!("{base}{nodes}")).config);
    assert_eq!(groups("[ndbd]\n[ndbd]\n[ndbd]\n[ndbd]\n"), [[1, 2], [3, 4]]);
    assert_eq!(groups("[ndbd]\nNodeGroup=1\n[ndbd]\n[ndbd]\n[ndbd]\n"), [[2, 3], [1, 4]]);
    assert_eq!(groups("[ndbd]\n[ndbd]\n[ndbd]\nNodeGroup=65536\n"), [[1, 2]]);
}

#[test]
fn the_largest_cluster_fits_and_one_more_does_not() {
    let many = |data: usize, api: usize| {
        format!("[mgm]\n[ndbd default]\nNoOfReplicas=2\n{}{}", "[ndbd]\n".repeat(data), "[api]\n".repeat(api))
    };
    let config = load(&many(144, 110)).config;
    assert_eq!((config.nodes().count(), config.node_groups().len()), (255, 72));
    assert!(refused(&many(144, 111)).to_string().contains("no free node id"));
    assert!(refused(&many(146, 1)).to_string().contains("at most 144 are allowed"));
}

/// The rest of a good file, so that each bad line is the only mistake.
fn with(data_node_default: &str, data_node: &str, rest: &str) -> String {
    format!("[ndbd default]\n{data_node_default}\n[ndbd]\n{data_node}\n[ndbd]\n[mgm]\n[api]\n{rest}\n")
}

fn bad_defaults() -> Vec<(String, &'static str)> {
    let default = |line: &str| with(line, "", "");
    vec![
        (
            default("NoOfReplicas=9"),
            ":2: error: [ndbd default] NoOfReplicas = 9: out of range; allowed is a number from 1 to 4",
        ),
        (
            default("NoOfReplicas=3"),
            ":2: error: [ndbd default] NoOfReplicas = 3: NoOfReplicas = 3 does not divide the number of data nodes, 2",
        ),
        (
            default("DataMemory=512K"),
            "DataMemory = 512K: out of range; allowed is a number from 1M to 16T bytes",
        ),
        (
            default("DataMemory=12MB"),
            "not a valid value; allowed is a number from 1M to 16T bytes (hint: suffixes are",
        ),
        (default("DataMemory=-1"), "negative numbers"),
        (default("DataMemory="), "DataMemory: not a valid value"),
        (
            default("DataMemry=1G"),
            "[ndbd default] DataMemry = 1G: unknown parameter (hint: did you mean DataMemory?)",
        ),
        (default("PortNumber=1186"), "unknown parameter (hint: it belongs in [ndb_mgmd])"),
        (default("Diskless=maybe"), "allowed is true or false"),
        (default("Arbitration=None"), "allowed is one of Default, Disabled, WaitExternal"),
        (default("NodeId=1"), "a node id cannot be a default"),
        (
            default("InitialNoOfOpenFiles=100\nMaxNoOfOpenFiles=50"),
            ":3: error: [ndbd default] MaxNoOfOpenFiles = 50: InitialNoOfOpenFiles (100, line 2) must not exceed MaxNoOfOpenFiles (50, line 3)",
        ),
        (
            default("TimeBetweenEpochs=5000"),
            "TimeBetweenEpochs (5000, line 2) must not exceed TimeBetweenGlobalCheckpoints (2000, the default)",
        ),
        (
            default("TimeBetweenGlobalCheckpointsTimeout=500"),
            "TimeBetweenGlobalCheckpoints (2000, the default) must not exceed TimeBetweenGlobalCheckpointsTimeout (500, line 2)",
        ),
        (
            default("TimeBetweenEpochsTimeout=50"),
            "TimeBetweenEpochs (100, the default) must not exceed TimeBetweenEpochsTimeout (50, line 2)",
        ),
        (
            default("HeartbeatIntervalDbDb=9000"),
            "HeartbeatIntervalDbDb (9000, line 2) must not exceed ArbitrationTimeout (7500, the default)",
        ),
        (
            default("MinDiskWriteSpeed=30M"),
            "MinDiskWriteSpeed (30M, line 2) must not exceed MaxDiskWriteSpeed (20M, the default)",
        ),
        (
            default("AutomaticThreadConfig=1\nThreadConfig=ldm,main,rep,recv"),
            "AutomaticThreadConfig (true, line 2) excludes ThreadConfig (ldm,main,rep,recv, line 3)",
        ),
        (
            default("TransactionMemory=1G\nMaxNoOfFiredTriggers=10"),
            "TransactionMemory (1G, line 2) excludes MaxNoOfFiredTriggers (10, line 3)",
        ),
        (
            default("Diskless=1\nEncryptedFileSystem=1"),
            "Diskless (true, line 2) excludes EncryptedFileSystem (true, line 3)",
        ),
        (default("ThreadConfig=ldm,main,rep"), "ThreadConfig = ldm,main,rep: recv is missing"),
        (default("ThreadConfig=ldm={count=2,cpubnd=1},main,rep,recv"), "column 14: unknown parameter cpubnd"),
    ]
}

fn bad_nodes_and_links() -> Vec<(String, &'static str)> {
    let node = |line: &str| with("", line, "");
    let rest = |line: &str| with("", "", line);
    vec![
        (
            node("NoOfReplicas=1"),
            "NoOfReplicas (2, the default) of one data node differs from NoOfReplicas (1, line 4) of another",
        ),
        (node("NodeGroup=7"), "node group 7 does not exist; allowed is a number below 1 (data nodes"),
        (node("NodeId=145"), "allowed is a number from 1 to 144"),
        (
            node("ServerPort=11862"),
            "ServerPort 11862 on host localhost is used by node 1 (line 3) and node 2 (line 5)",
        ),
        (node("ServerPort=70000"), "allowed is a number from 1 to 65535"),
        (node("HostName="), "must not be empty"),
        (
            node("DataMemory=1G\nDATA_MEMORY=2G"),
            "DataMemory is given twice: first in line 4, again in line 5",
        ),
        (
            rest("[mgm]"),
            "PortNumber 1186 on host localhost is used by node 145 (line 6) and node 146 (line 8)",
        ),
        (rest("[api]\nNodeId=2\n[api]\nNodeId=2"), "node id 2 is used twice: in line 9 and in line 11"),
        (rest("[tcp]\nNodeId1=1"), "a [tcp] section needs NodeId1 and NodeId2"),
        (rest("[tcp]\nNodeId1=1\nNodeId2=9"), "there is no node 9"),
        (rest("[tcp]\nNodeId1=1\nNodeId2=1"), "are both 1"),
        (
            rest("[tcp]\nNodeId1=1\nNodeId2=2\n[tcp]\nNodeId1=2\nNodeId2=1"),
            "the link of nodes 2 and 1 is described twice",
        ),
        (
            rest("[tcp default]\nOverloadLimit=3M"),
            "OverloadLimit (3M, line 9) must not exceed SendBufferMemory (2M, the default)",
        ),
        (
            rest("[api]\nBatchByteSize=1M"),
            "BatchByteSize (1M, line 9) must not exceed MaxScanBatchSize (256K, the default)",
        ),
        (rest("[computer]"), "give HostName in each node's section"),
        (rest("[mysqldd]"), "did you mean [mysqld]?"),
        ("[mgm]\n[api]\n".to_owned(), "config.ini: error: no data node"),
        ("[ndbd]\n[ndbd]\n[api]\n".to_owned(), "config.ini: error: no management server"),
        (String::new(), "no data node"),
    ]
}

#[test]
fn contradictory_and_out_of_range_files_are_refused_in_words() {
    let cases: Vec<(String, &str)> = bad_defaults().into_iter().chain(bad_nodes_and_links()).collect();
    for (text, wanted) in &cases {
        let errors = refused(text);
        assert!(errors.to_string().contains(wanted), "wanted: {wanted}\ngot:\n{errors}\nfor:\n{text}");
    }
    for (text, wanted) in cases.iter().filter(|(text, _)| !text.is_empty() && text.contains("[ndbd default]"))
    {
        assert_eq!(refused(text).errors().count(), 1, "{wanted}:\n{}", refused(text));
    }
}

#[test]
fn all_errors_of_a_file_come_at_once_in_line_order() {
    let errors = refused(
        "bogus\n[ndbd default]\nNoOfReplicas=5\nFoo=1\nDataMemory=x\n[ndbd]\nNodeId=1\n[ndbd]\nNodeId=1\nServerPort=0\n[mgm]\n[api]\n",
    );
    let lines: Vec<u32> = errors.errors().map(|p| p.line).collect();
    assert_eq!(lines, [1, 3, 4, 5, 9, 10]);
    let codes: Vec<ProblemCode> = errors.errors().map(|p| p.code).collect();
    assert_eq!(
        codes,
        [
            ProblemCode::Syntax,
            ProblemCode::OutOfRange,
            ProblemCode::UnknownParameter,
            ProblemCode::BadValue,
            ProblemCode::DuplicateNodeId,
            ProblemCode::OutOfRange,
        ]
    );
}

#[test]
fn risks_are_told_but_accepted() {
    let text = "[ndbd]\n[ndbd]\n[mgm]\nHostName=10.0.0.1\nArbitrationRank=0\n[api]\n";
    let told: Vec<String> = load(text).warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("no arbitrator"), "{told:?}");
    assert!(told[1].starts_with("config.ini:6: warning: [api] API slots without HostName"), "{told:?}");
}

#[test]
fn a_diff_names_node_values_and_restart() {
    let old = load("[ndbd]\nDataMemory=1G\n[ndbd]\n[mgm]\n[api]\n").config;
    let new =
        load("[ndbd]\nDataMemory=2G\n[ndbd]\nDiskless=1\n[mgm]\n[api]\n[api]\n[tcp default]\nChecksum=1\n")
            .config;
    let changes: Vec<String> = diff(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "[ndbd] node 1 DataMemory: 1G -> 2G (restart: N)",
            "[ndbd] node 2 Diskless: false -> true (restart: IS)",
            "[tcp default] Checksum: false -> true (restart: S)",
            "[mysqld] node 147 added mysqld node 147 (restart: N)",
        ]
    );
    assert_eq!(diff(&old, &old), []);
    let gone: Vec<String> = diff(&new, &old).iter().map(ToString::to_string).collect();
    assert!(gone.contains(&"[mysqld] node 147 removed mysqld node 147 (restart: N)".to_owned()), "{gone:?}");
}

/// A small generator of the same numbers every time.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut random = Lcg(4711);
    let pieces: Vec<&[u8]> = vec![
        b"[ndbd]",
        b"[",
        b"]",
        b"=",
        b":",
        b"\n",
        b"\r\n",
        b" default",
        b"NodeId=",
        b"NodeGroup=",
        b"ThreadConfig=",
        b"ldm={",
        b"count=",
        b"}",
        b",",
        b"\"",
        b"#",
        b";",
        b"\xff",
        b"\xef\xbb\xbf",
        b"99999999999999999999",
        b"1-",
        b"\0",
        b"[tcp]",
        b"[mgm]",
        b"[api]",
        b"NoOfReplicas=",
        b"65536",
        b"\xc3\xa9",
        b"4",
        b"G",
        b"[ndbd default]\n",
    ];
    for round in 0..20_000u32 {
        let mut text = Vec::new();
        for _ in 0..random.next() % 40 {
            if round % 4 == 0 {
                text.push(random.next().to_le_bytes()[0]);
            } else {
                let at = usize::try_from(random.next()).unwrap() % pieces.len();
                text.extend_from_slice(pieces[at]);
            }
        }
        if let Err(errors) = parse("fuzz.ini", &text) {
            assert!(!errors.problems.is_empty() && !errors.to_string().is_empty());
        }
        let _ = ThreadConfig::parse(&String::from_utf8_lossy(&text));
    }
    for cut in 0..TYPICAL.len() {
        let _ = parse("cut.ini", &TYPICAL.as_bytes()[..cut]);
    }
}

#[test]
fn a_huge_or_hopeless_file_costs_little() {
    let huge = vec![b'x'; (4 << 20) + 1];
    assert!(parse("huge", &huge).unwrap_err().to_string().contains("at most 4194304 are read"));
    let hopeless = "x\n".repeat(100_000);
    let errors = refused(&hopeless);
    assert_eq!((errors.problems.len(), errors.omitted > 90_000), (PROBLEMS_MAX, true));
    assert!(errors.to_string().ends_with("more problems"));
    // The search for a similar name costs half a millisecond; it must not be made for each of these.
    let strange: String = (0..100_000).map(|i| format!("Parameter{i}=1\n")).collect();
    let errors = refused(&format!("[ndbd default]\n{strange}"));
    assert_eq!((errors.problems.len(), errors.omitted > 90_000), (PROBLEMS_MAX, true));
}

#[test]
fn the_value_of_a_line_given_twice_is_checked_as_well() {
    let errors = refused(&with("DataMemory=1G\nDataMemory=512K", "", ""));
    let text = errors.to_string();
    assert_eq!(errors.problems.len(), 2, "{text}");
    assert!(text.contains("given twice") && text.contains("DataMemory = 512K: out of range"), "{text}");
}
