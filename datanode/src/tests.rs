//! Data nodes end to end, in this process: they find each other over sockets and over rings, serve clients'
//! links, close those that break the rules, and notice each other's end.

use crate::{Node, Options, WorkerFigures, start};
use config::ClusterConfig;
use ndbapi::{ClusterConnection, ConnectOptions, ScanSpec, TableHandle};
use signals::frame::{push_control, push_signal};
use signals::ids::{SchemaVersion, TransId};
use signals::keyop::{CompleteOrd, TcCommitReq};
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockNumber, BlockRef, NodeId, TableId, control::ControlSignal};
use std::io::IoSlice;
use std::time::{Duration, Instant};
use transporter::{FrameReader, Link, PeerRole, ReadOutcome, cluster_hash, connect_with, hello};

const LONG: Duration = Duration::from_secs(20);

/// A cluster of `nodes` data nodes on free ports, with this ThreadConfig.
fn cluster(name: &str, nodes: u8, threads: &str) -> ClusterConfig {
    let mut text = format!("[system]\nName={name}\n[ndbd default]\nNoOfReplicas={nodes}\nDataMemory=64M\n");
    if !threads.is_empty() {
        text += &format!("ThreadConfig={threads}\nAutomaticThreadConfig=0\n");
    }
    text += "[ndb_mgmd]\nNodeId=49\nHostName=127.0.0.1\nDataDir=/tmp\n";
    for node in 1..=nodes {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        text += &format!("[ndbd]\nNodeId={node}\nHostName=127.0.0.1\nServerPort={port}\nDataDir=/tmp\n");
    }
    text += "[mysqld]\nNodeId=60\n[mysqld]\nNodeId=61\n";
    config::parse("config.ini", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:?}")).config
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LONG, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn client(cluster: &ClusterConfig, node: u8, api: u8, link: u16, in_process: bool) -> Link {
    let hash = cluster_hash(&cluster.name);
    let hello = hello(hash, NodeId(api), NodeId(node), PeerRole::ApiNode, link, 1);
    let address = cluster.data_node(NodeId(node)).unwrap().address();
    let begin = Instant::now();
    loop {
        let options = transporter::ConnectOptions { in_process, ..Default::default() };
        match connect_with(&address, &hello, options) {
            Ok(link) => return link,
            // The session's number is free again as soon as every worker has forgotten the last one.
            Err(error) if error.code() == signals::ErrorCode::NODE_ALREADY_RESERVED => {
                assert!(begin.elapsed() < LONG, "{error}");
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn start_all(cluster: &ClusterConfig, in_process: bool) -> Vec<Node> {
    let options = Options { in_process, cpus: None };
    cluster.data_nodes.iter().map(|n| start(cluster, n.node_id, &options).unwrap()).collect()
}

/// Reads until the link ends; returns how long that took.
fn wait_for_end(link: &mut Link) -> Duration {
    let (begin, mut frames) = (Instant::now(), FrameReader::new());
    loop {
        match link.reader.read_into(&mut frames) {
            Ok(ReadOutcome::Closed) | Err(_) => return begin.elapsed(),
            Ok(ReadOutcome::Bytes(_)) => while let Ok(Some(_)) = frames.next_frame() {},
            Ok(ReadOutcome::WouldBlock) => link.wait(false, Duration::from_millis(100)).unwrap(),
        }
        assert!(begin.elapsed() < LONG, "the link did not end");
    }
}

fn send(link: &mut Link, bytes: &[u8]) {
    let sent = link.writer.write_vectored(&[IoSlice::new(bytes)]).unwrap();
    assert_eq!(sent, bytes.len());
}

#[test]
fn nodes_find_each_other_and_notice_the_end_at_once() {
    let layouts = ["", "main,rep,ldm={count=2},tc={count=1},recv={count=2}"];
    for (turn, in_process) in [(0, false), (1, true), (2, false)] {
        let cluster = cluster(&format!("pair{turn}"), 2, layouts[turn % 2]);
        let mut nodes = start_all(&cluster, in_process);
        let (first, second) = (NodeId(1), NodeId(2));
        wait_until("the link", || {
            nodes[0].directory().is_connected(second, 0) && nodes[1].directory().is_connected(first, 0)
        });
        let mut api = client(&cluster, 1, 60, 0, in_process);
        let mut other = client(&cluster, 2, 60, 0, in_process);
        nodes.pop().unwrap().stop();
        let took = wait_for_end(&mut other);
        assert!(took < Duration::from_secs(2), "{took:?}");
        wait_until("the notice of the loss", || !nodes[0].directory().is_connected(second, 0));
        // A node that comes back is let in again.
        let options = Options { in_process, cpus: None };
        nodes.push(start(&cluster, second, &options).unwrap());
        wait_until("the new link", || nodes[0].directory().is_connected(second, 0));
        nodes.remove(0).stop();
        wait_for_end(&mut api);
        assert!(nodes[0].wait(Some(Duration::ZERO)).is_none_or(|exit| !exit.reason.contains("internal")));
    }
}

#[test]
fn a_client_that_breaks_the_rules_loses_its_link_and_nobody_else_does() {
    let cluster = cluster("rules", 1, "");
    let nodes = start_all(&cluster, false);
    let mut honest = client(&cluster, 1, 60, 0, false);
    let own = |link| BlockRef::new(NodeId(61), BlockNumber::Api, link);
    let tc = BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0);
    let ldm = BlockRef::new(NodeId(1), BlockNumber::Dblqh, 0);
    let commit = TcCommitReq { trans: TransId(1) };
    let frame = |source, target| {
        let mut out = Vec::new();
        push_signal(&mut out, source, target, &commit, &[], &[]);
        out
    };
    let mut forbidden = Vec::new();
    let complete = CompleteOrd { trans: TransId(1), op: 0, spare: 0 };
    push_signal(&mut forbidden, own(1), ldm, &complete, &[], &[]);
    let mut cut_body = frame(own(1), tc);
    cut_body[0] = 16;
    cut_body.truncate(16);
    let cases: [(&str, Vec<u8>); 6] = [
        ("garbage", vec![0xff; 64]),
        ("a forged source", frame(BlockRef::new(NodeId(60), BlockNumber::Api, 0), tc)),
        ("a data node's signal", forbidden),
        ("an instance that is not here", frame(own(1), BlockRef::new(NodeId(1), BlockNumber::Dbtc, 99))),
        ("a body cut off", cut_body),
        ("another node's signal", frame(own(1), BlockRef::new(NodeId(2), BlockNumber::Dbtc, 0))),
    ];
    for (what, bytes) in cases {
        let mut rogue = client(&cluster, 1, 61, 1, false);
        send(&mut rogue, &bytes);
        let took = wait_for_end(&mut rogue);
        assert!(took < Duration::from_secs(5), "{what}: {took:?}");
        wait_until("the number's release", || !nodes[0].directory().is_connected(NodeId(61), 1));
    }
    // A second session under the same number is refused while the first lives, and let in afterwards.
    let hash = cluster_hash(&cluster.name);
    let again = hello(hash, NodeId(60), NodeId(1), PeerRole::ApiNode, 0, 2);
    let address = cluster.data_nodes[0].address();
    let refused = transporter::connect(&address, &again, LONG).err().unwrap();
    assert_eq!(refused.code(), signals::ErrorCode::NODE_ALREADY_RESERVED);
    for (node, role) in [(200, PeerRole::ApiNode), (60, PeerRole::DataNode), (49, PeerRole::ApiNode)] {
        let hello = hello(hash, NodeId(node), NodeId(1), role, 5, 2);
        assert!(transporter::connect(&address, &hello, LONG).is_err(), "node {node} as {role:?}");
    }
    // The honest one still has its link.
    send(&mut honest, &frame(BlockRef::new(NodeId(60), BlockNumber::Api, 0), tc));
    assert!(matches!(
        honest.reader.read_into(&mut FrameReader::new()).unwrap(),
        ReadOutcome::WouldBlock | ReadOutcome::Bytes(_)
    ));
    drop(honest);
    wait_until("the session's end", || !nodes[0].directory().is_connected(NodeId(60), 0));
    drop(transporter::connect(&address, &again, LONG).unwrap());
}

/// Thousands of sessions come and go; numbers and descriptors are used again.
#[test]
fn sessions_come_and_go_without_a_trace() {
    let cluster = cluster("sessions", 1, "main,rep,ldm={count=1},tc={count=1},recv={count=2}");
    let nodes = start_all(&cluster, false);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    for round in 0..200u16 {
        let mut links: Vec<Link> =
            (0..8).map(|i| client(&cluster, 1, 60, round % 2 * 8 + i, false)).collect();
        for (i, link) in links.iter_mut().enumerate() {
            let session = BlockRef::new(NodeId(60), BlockNumber::Api, round % 2 * 8 + i as u16);
            let mut frame = Vec::new();
            let qmgr = BlockRef::new(NodeId(1), BlockNumber::Qmgr, 0);
            assert!(push_control(&mut frame, session, qmgr, &ControlSignal::ApiRegReq { version: 1 }));
            send(link, &frame);
        }
        drop(links);
    }
    wait_until("the end of all sessions", || nodes[0].directory().links().is_empty());
    assert!(descriptors() < 400, "{}", descriptors());
    assert!(nodes[0].figures().iter().all(|f| f.received_bytes == 0 || f.turns > 0));
    assert_eq!(nodes[0].wait(Some(Duration::ZERO)), None, "it is as good as new");
}

#[test]
fn what_hinders_a_start_is_named() {
    let mut cluster = cluster("hindered", 1, "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    cluster.data_nodes[0].server_port = taken.local_addr().unwrap().port();
    let error = start(&cluster, NodeId(1), &Options::default()).err().unwrap().to_string();
    for part in ["data node 1", "ServerPort", &taken.local_addr().unwrap().to_string()] {
        assert!(error.contains(part), "{error}");
    }
    let error = start(&cluster, NodeId(7), &Options::default()).err().unwrap().to_string();
    assert!(error.contains("no data node 7"), "{error}");
}

/// A peer that is not there is named with its address, and the node waits for it without using CPU.
#[test]
fn an_unreachable_peer_is_named_and_waiting_is_cheap() {
    let cluster = cluster("waiting", 2, "");
    let begin = Instant::now();
    let node = start(&cluster, NodeId(2), &Options::default()).unwrap();
    let address = cluster.data_nodes[0].address();
    wait_until("the trouble's name", || {
        node.troubles().iter().any(|t| t.contains("node 1") && t.contains(&address))
    });
    // Cheap: it wakes up for its ticks and for what others tell it, and sleeps again at once.
    let sleeps = || node.figures().iter().map(|w| w.sleeps).min();
    wait_until("some ticks", || sleeps() >= Some(40));
    let figures = node.figures();
    let ticks = u64::try_from(begin.elapsed().as_millis()).unwrap() / 10 + 1;
    for worker in figures {
        assert!(worker.sleeps <= 2 * (ticks + worker.wakes) + 10, "{ticks} ticks: {worker:?}");
        assert!(worker.turns <= 3 * worker.sleeps + 10, "{worker:?}");
        assert_eq!((worker.sent_bytes, worker.spins), (0, [0, 0]), "{worker:?}");
    }
}

fn column(name: &str, kind: ColumnType, storage: ColumnStorage) -> ColumnDef {
    ColumnDef { name: name.into(), kind, storage, nullable: false, collation: 63, default: None, sql: vec![] }
}

fn table_def() -> TableDef {
    TableDef {
        id: TableId(0),
        version: SchemaVersion(0),
        database: "test".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
            column("n", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
            column("s", ColumnType::Char, ColumnStorage::Var { max_len: 900 }),
        ],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: true,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

const TASKS: u32 = 24;
const ROWS: u32 = 40;
const ROUNDS: u32 = 6;

fn text(id: u32, round: u32) -> String {
    format!("row {id} in round {round} ").repeat(id as usize % 30 + 1)
}

/// Writes a task's rows, round after round, and reads them back after each.
async fn write_and_read(cluster: ClusterConnection, table: TableHandle, task: u32) {
    let ids = task * ROWS..(task + 1) * ROWS;
    for round in 0..ROUNDS {
        let mut tx = cluster.begin();
        for id in ids.clone() {
            let s = text(id, round);
            tx.write(&table).key(&[id.into()]).set("n", round).set("s", s.as_str()).finish().unwrap();
        }
        tx.commit().await.unwrap().check().unwrap();
        let mut tx = cluster.begin();
        let reads: Vec<_> =
            ids.clone().map(|id| (id, tx.read(&table).key(&[id.into()]).finish().unwrap())).collect();
        let results = tx.execute().await.unwrap();
        for (id, read) in reads {
            let row = results.row(read).unwrap().unwrap();
            assert_eq!(row.get_u32("n"), Ok(Some(round)));
            assert_eq!(row.get_str("s"), Ok(Some(text(id, round).as_str())));
        }
        tx.abort().await.unwrap();
    }
}

/// Real work on two nodes; returns the figures of all workers.
fn work(threads: &str) -> Vec<WorkerFigures> {
    let cluster = cluster("work", 2, threads);
    let nodes = start_all(&cluster, false);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = ConnectOptions::direct(&cluster, NodeId(60)).wait(LONG);
        let api = ClusterConnection::connect_with(options).await.unwrap();
        api.wait_all_ready(LONG).await.unwrap();
        api.dictionary().create_database("test", vec![]).await.unwrap();
        let table = api.dictionary().create_table(table_def()).await.unwrap();
        let tasks: Vec<_> =
            (0..TASKS).map(|task| tokio::spawn(write_and_read(api.clone(), table.clone(), task))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut scan = api.begin().scan(ScanSpec::new(&table)).await.unwrap();
        let mut seen = std::collections::BTreeMap::new();
        while let Some(rows) = scan.next().await.unwrap() {
            for row in rows.rows() {
                let s = row.get_str("s").unwrap().unwrap().to_owned();
                assert!(seen.insert(row.get_u32("id").unwrap().unwrap(), s).is_none());
            }
        }
        let expected = (0..TASKS * ROWS).map(|id| (id, text(id, ROUNDS - 1))).collect();
        assert_eq!(seen, expected);
        drop(scan);
        api.close().await;
    });
    nodes.iter().flat_map(Node::figures).collect()
}

/// Bytes written by the workers whose names begin so.
fn sent(figures: &[WorkerFigures], name: &str) -> Vec<u64> {
    figures.iter().filter(|w| w.name.starts_with(name)).map(|w| w.sent_bytes).collect()
}

/// With `nosend` the send workers write everything; each link has its send worker.
#[test]
fn send_workers_write_for_those_who_do_not() {
    let figures = work(
        "main={nosend=1},rep={count=0},tc={nosend=1},ldm={count=2,nosend=1},recv={count=1},send={count=2}",
    );
    assert_eq!(sent(&figures, "send").len(), 4);
    assert!(sent(&figures, "send").iter().all(|bytes| *bytes > 0), "{figures:?}");
    for silent in ["main", "tc", "ldm"] {
        assert!(sent(&figures, silent).iter().all(|bytes| *bytes == 0), "{figures:?}");
    }
    let shipped: u64 = figures.iter().filter(|w| w.name.starts_with("ldm")).map(|w| w.shipped_bytes).sum();
    assert!(shipped > u64::from(TASKS * ROWS * ROUNDS) * 100, "{shipped}");
}

/// A node without threads of its own for sending: those who may not send leave it to the one that receives,
/// also when all are fused in odd ways, spin, and have priorities they may not be allowed to have.
#[test]
fn other_layouts_work_as_well() {
    let figures = work("main={nosend=1},rep,ldm={count=1,nosend=1,spintime=100},recv={count=1,realtime=1}");
    assert!(sent(&figures, "recv").iter().all(|bytes| *bytes > 0), "{figures:?}");
    assert!(sent(&figures, "ldm").iter().all(|bytes| *bytes == 0), "{figures:?}");
    assert!(figures.iter().all(|w| w.spins[0] == 0 || w.name.starts_with("ldm")), "{figures:?}");
    let figures =
        work("main={count=0},rep={count=0},ldm={count=2,thread_prio=6},recv={count=1},send={spintime=20}");
    let all: u64 = figures.iter().map(|w| w.sent_bytes).sum();
    assert!(all > u64::from(TASKS * ROWS * ROUNDS) * 100, "{figures:?}");
}
