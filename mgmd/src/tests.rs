//! Stories of an in-process server with fake nodes: real links on loopback, real files, no real data node.

use crate::command::{Format, Session};
use crate::{Mgmd, MgmdOptions};
use signals::ErrorCode;
use signals::control::Refusal;
use signals::ids::NodeId;
use signals::mgm::{
    AllocNodeIdReq, LogSeverity, MemoryUsage, MgmAnswer, MgmConf, MgmHello, MgmHelloConf, MgmOrder,
    MgmOrderConf, MgmReq, NodeKind, NodeReport, NodeState, ShowConf, Target,
};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transporter::mgm_link::{
    BlockingMgmClient, BlockingNodeLink, MgmClient, MgmError, MgmLink, NodeLink, NodeOptions,
};

/// A folder with a configuration, and the port it names.
struct Place {
    dir: TempDir,
    port: u16,
}

impl Place {
    fn new(extra: &str) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = Place { dir, port };
        place.write(extra);
        place
    }

    /// Two data nodes, two API slots (one for another host), and what the test adds to `[ndbd default]`.
    fn write(&self, extra: &str) {
        let text = format!(
            "[ndbd default]\nNoOfReplicas=2\n{extra}\n[ndbd]\n[ndbd]\n[ndb_mgmd]\nHostName=127.0.0.1\nPortNumber={}\nDataDir={}\n[mysqld]\n[api]\nHostName=203.0.113.9\n",
            self.port,
            self.dir.path().display()
        );
        std::fs::write(self.file(), text).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("config.ini")
    }

    async fn start(&self) -> Mgmd {
        Mgmd::start(&self.options()).await.unwrap()
    }

    fn options(&self) -> MgmdOptions {
        MgmdOptions { grace: Duration::from_secs(2), ..MgmdOptions::new(self.file()) }
    }

    fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn node(&self, kind: NodeKind, wanted: Option<u8>) -> NodeOptions {
        NodeOptions {
            connect_string: self.connect_string(),
            kind,
            wanted: wanted.map(NodeId),
            program: "test".to_owned(),
            wait_for_server: false,
        }
    }

    async fn join(&self, kind: NodeKind, wanted: Option<u8>) -> Result<NodeLink, MgmError> {
        NodeLink::join(self.node(kind, wanted)).await
    }

    async fn client(&self) -> MgmClient {
        MgmClient::connect(&self.connect_string(), "test").await.unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("ndb_145_cluster.log")).unwrap()
    }

    /// Runs a command of the operator's language on a thread of its own, as `nucdb mgm` does.
    async fn command(&self, line: &str, format: Format) -> (String, u8) {
        let (connect_string, line) = (self.connect_string(), line.to_owned());
        tokio::task::spawn_blocking(move || {
            let reply = Session::new(&connect_string, format).execute(&line);
            (reply.text, reply.exit_code)
        })
        .await
        .unwrap()
    }
}

async fn show(client: &MgmClient) -> ShowConf {
    match client.request(&MgmReq::Show).await.unwrap() {
        MgmConf::Show(show) => *show,
        other => panic!("{other:?}"),
    }
}

/// Asks SHOW until it satisfies; the wait is bounded and what was last seen is told.
async fn show_until(client: &MgmClient, is_so: impl Fn(&ShowConf) -> bool) -> ShowConf {
    let begin = Instant::now();
    loop {
        let seen = show(client).await;
        if is_so(&seen) {
            return seen;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{seen:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn connected(show: &ShowConf) -> Vec<u8> {
    show.nodes.iter().filter(|n| n.is_connected()).map(|n| n.node.0).collect()
}

fn started(master: bool) -> NodeReport {
    NodeReport {
        state: NodeState::Started,
        node_group: Some(0),
        is_master: master,
        members: vec![NodeId(1), NodeId(2)],
        memory: memory(),
        server_port: 11861,
        ..NodeReport::default()
    }
}

fn memory() -> MemoryUsage {
    MemoryUsage {
        page_bytes: 32768,
        data_pages_used: 25,
        data_pages_total: 100,
        index_pages_used: 3,
        index_pages_total: 100,
    }
}

/// A data node that obeys: tells its memory, and leaves when told to stop.
async fn obey(mut link: NodeLink) -> Vec<MgmOrder> {
    let mut orders = Vec::new();
    while let Some(pending) = link.next_order().await {
        orders.push(pending.order.clone());
        match pending.order {
            MgmOrder::Stop { .. } => {
                pending.answer(Ok(MgmOrderConf::Done));
                link.leave().await;
                return orders;
            }
            MgmOrder::ReportMemory => pending.answer(Ok(MgmOrderConf::Memory(memory()))),
            MgmOrder::Ping | MgmOrder::ConfigChange(_) => {
                pending.answer(Err(Refusal::new(ErrorCode::MGM_REFUSED, "not for the node")));
            }
        }
    }
    orders
}

fn code<T: std::fmt::Debug>(outcome: Result<T, MgmError>) -> ErrorCode {
    outcome.unwrap_err().code
}

#[tokio::test]
async fn node_ids_are_given_refused_and_freed() {
    let place = Place::new("");
    let mgmd = place.start().await;
    let first = place.join(NodeKind::DataNode, None).await.unwrap();
    assert_eq!(first.handle().node_id(), NodeId(1));
    assert_eq!(*first.handle().config(), *mgmd.config());
    let second = place.join(NodeKind::DataNode, Some(2)).await.unwrap();
    assert_eq!(code(place.join(NodeKind::DataNode, None).await), ErrorCode::MGM_NO_FREE_NODE_ID);
    assert_eq!(code(place.join(NodeKind::DataNode, Some(2)).await), ErrorCode::MGM_NODE_ID_TAKEN);
    assert_eq!(code(place.join(NodeKind::ApiNode, Some(2)).await), ErrorCode::MGM_WRONG_NODE_TYPE);
    assert_eq!(code(place.join(NodeKind::DataNode, Some(9)).await), ErrorCode::MGM_NO_SUCH_NODE);
    let elsewhere = place.join(NodeKind::ApiNode, Some(147)).await.unwrap_err();
    assert_eq!(elsewhere.code, ErrorCode::MGM_NO_FREE_NODE_ID);
    assert!(elsewhere.detail.contains("203.0.113.9"), "{elsewhere}");
    let api = place.join(NodeKind::ApiNode, None).await.unwrap();
    assert_eq!(api.handle().node_id(), NodeId(146));
    let client = place.client().await;
    assert_eq!(client.server().node, NodeId(145));
    assert_eq!(connected(&show(&client).await), [1, 2, 145, 146]);
    second.leave().await;
    show_until(&client, |s| connected(s) == [1, 145, 146]).await;
    let again = place.join(NodeKind::DataNode, None).await.unwrap();
    assert_eq!(again.handle().node_id(), NodeId(2));
    mgmd.stop().await;
    let log = place.log();
    assert!(
        log.contains("Node 2: Connected from 127.0.0.1") && log.contains("Node 2: Disconnected"),
        "{log}"
    );
}

#[tokio::test]
async fn reports_are_shown_as_text_and_json() {
    let place = Place::new("");
    let mgmd = place.start().await;
    let one = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    let two = place.join(NodeKind::DataNode, Some(2)).await.unwrap();
    one.handle().report(started(true));
    let waiting = "node 2: no link to node 1 at localhost:11861: refused";
    let starting = NodeState::Starting { phase: 3 };
    two.handle().report(NodeReport { state: starting, waits_for: waiting.to_owned(), ..started(false) });
    one.handle().log(LogSeverity::Warning, "stalled for 1200 ms");
    let client = place.client().await;
    let has_reports = |s: &ShowConf| s.nodes.iter().filter(|n| n.report.is_some()).count() == 2;
    let seen = show_until(&client, has_reports).await;
    assert_eq!(seen.warnings, [""; 0]);
    let (text, exit) = place.command("show", Format::Text).await;
    assert_eq!(exit, 0);
    let release = env!("CARGO_PKG_VERSION");
    assert_eq!(
        text,
        format!(
            "Cluster Configuration\n---------------------\n[ndbd(NDB)]\t2 node(s)\n\
             id=1\t@127.0.0.1  (nucdb-{release}, Nodegroup: 0, *)\n\
             id=2\t@127.0.0.1  (nucdb-{release}, starting, Nodegroup: 0)\n\n\
             [ndb_mgmd(MGM)]\t1 node(s)\nid=145\t@127.0.0.1  (nucdb-{release})\n\n\
             [mysqld(API)]\t2 node(s)\nid=146 (not connected, accepting connect from any host)\n\
             id=147 (not connected, accepting connect from 203.0.113.9)"
        )
    );
    let (text, _) = place.command("2 STATUS", Format::Text).await;
    assert_eq!(text, format!("Node 2: starting (phase 3) (nucdb-{release}), waits for: {waiting}"));
    let (text, _) = place.command("all status", Format::Json).await;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&json["nodes"][0]["status"], &json["nodes"][1]["start_phase"]),
        (&"STARTED".into(), &3.into())
    );
    let refused = place.command("1 STOP", Format::Text).await;
    assert_eq!(refused.1, 1);
    assert!(
        refused.0.starts_with("ERROR 5008: node 1 is the last started node of node group 0"),
        "{}",
        refused.0
    );
    mgmd.stop().await;
    let log = place.log();
    for line in ["WARNING  -- Node 1: stalled for 1200 ms", "Node 1: Started", "Node 2: Start phase 3"] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
}

#[tokio::test]
async fn memory_stop_and_shutdown_reach_the_nodes() {
    let place = Place::new("");
    let mut mgmd = place.start().await;
    let one = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    let two = place.join(NodeKind::DataNode, Some(2)).await.unwrap();
    one.handle().report(started(true));
    let (one, two) = (tokio::spawn(obey(one)), tokio::spawn(obey(two)));
    let (text, exit) = place.command("ALL REPORT MEM", Format::Text).await;
    assert_eq!(exit, 0);
    assert!(
        text.starts_with("Node 1: Data usage is 25%(25 32K pages of total 100)\nNode 1: Index usage is 3%"),
        "{text}"
    );
    assert!(text.contains("\nNode 2: Data usage is 25%"), "{text}");
    assert_eq!(place.command("2 STOP", Format::Text).await, ("Node 2 has shut down.".to_owned(), 0));
    let stop = |is_cluster| MgmOrder::Stop { is_abort: false, is_force: is_cluster, is_cluster };
    assert_eq!(two.await.unwrap(), [MgmOrder::ReportMemory, stop(false)]);
    let (text, exit) = place.command("2 STATUS; ", Format::Text).await;
    assert_eq!((text.as_str(), exit), ("Node 2: not connected", 0));
    let (text, exit) = place.command("ALL REPORT MEM", Format::Json).await;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["nodes"][1]["error"]["code"], exit), (&5001.into(), 1));
    let (text, exit) = place.command("shutdown", Format::Text).await;
    assert_eq!((text.as_str(), exit), ("Node 1 has shut down.\nNode 145 has shut down.", 0));
    assert_eq!(one.await.unwrap().last(), Some(&stop(true)));
    mgmd.stopped().await;
    let log = place.log();
    for line in ["Node 2: Stop ordered", "Cluster shutdown completed", "Management server stops"] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
    let (text, exit) = place.command("SHOW", Format::Text).await;
    assert_eq!(exit, 1);
    assert!(text.starts_with("ERROR 5005: no management server can be reached"), "{text}");
    assert!(text.contains("nothing listens there"), "{text}");
}

#[tokio::test]
async fn commands_on_the_wrong_nodes_are_refused() {
    let place = Place::new("");
    let mgmd = place.start().await;
    for (line, code) in [
        ("1 STOP", 5001),
        ("ALL STOP", 5001),
        ("146 STOP", 5003),
        ("99 STOP", 5000),
        ("99 STATUS", 5000),
        ("146 REPORT MEM", 5003),
        ("RESTART", 5011),
        ("SHWO", 5006),
    ] {
        let (text, exit) = place.command(line, Format::Json).await;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&json["error"]["code"], exit), (&code.into(), 1), "{line}: {text}");
    }
    let (text, exit) = place.command("CLUSTERLOG INFO", Format::Text).await;
    assert!(exit == 0 && text.contains("ndb_145_cluster.log"), "{text}");
    let mut mgmd = mgmd;
    assert_eq!(place.command("145 STOP", Format::Text).await.1, 0);
    mgmd.stopped().await;
}

#[tokio::test]
async fn nodes_come_back_to_a_restarted_server_and_bring_their_reports() {
    let place = Place::new("");
    let mgmd = place.start().await;
    let node = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    node.handle().report(started(true));
    mgmd.stop().await;
    let mgmd = place.start().await;
    let client = place.client().await;
    let is_back = |s: &ShowConf| s.nodes[0].report.as_ref().is_some_and(|r| r.state == NodeState::Started);
    show_until(&client, is_back).await;
    assert!(node.handle().is_connected());
    mgmd.stop().await;
    assert!(place.log().contains("Node 1: Connected again"));
}

#[tokio::test]
async fn a_dead_owner_does_not_keep_an_id() {
    let place = Place::new("");
    let mgmd = place.start().await;
    // It holds the link open but never answers a ping, as a frozen process would.
    let address: SocketAddr = place.connect_string().parse().unwrap();
    let (frozen, _) = MgmLink::connect(address, "frozen").await.unwrap();
    let request = MgmReq::AllocNodeId(AllocNodeIdReq {
        kind: NodeKind::DataNode,
        wanted: Some(NodeId(1)),
        is_reclaim: false,
        host_name: "h".to_owned(),
        pid: 1,
        release: "1".to_owned(),
    });
    let answer: MgmAnswer = frozen.ask(&request, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(answer, Ok(MgmConf::AllocNodeId { node: NodeId(1), .. })), "{answer:?}");
    let again: MgmAnswer = frozen.ask(&request, Duration::from_secs(5)).await.unwrap();
    assert_eq!(again.unwrap_err().code, ErrorCode::MGM_REFUSED);
    let node = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    assert_eq!(node.handle().node_id(), NodeId(1));
    assert!(frozen.closed().await.contains("does not answer"));
    mgmd.stop().await;
}

#[tokio::test]
async fn a_changed_file_is_shown_and_taken_when_all_data_nodes_are_down() {
    let place = Place::new("DataMemory=100M");
    let mgmd = place.start().await;
    assert_eq!(mgmd.config().generation, 1);
    let node = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    mgmd.stop().await;
    place.write("DataMemory=200M");
    // The node comes back within the grace, so the old configuration stays; new nodes get the old one, too.
    let mgmd = place.start().await;
    let second = place.join(NodeKind::DataNode, Some(2)).await.unwrap();
    assert_eq!(second.handle().config().data_nodes[0].data_memory_bytes, 100 << 20);
    let api = place.join(NodeKind::ApiNode, None).await.unwrap();
    let client = place.client().await;
    let seen = show_until(&client, |s| connected(s) == [1, 2, 145, 146]).await;
    assert_eq!(seen.generation, 1);
    assert!(seen.config_differences[0].contains("differs from the active configuration"), "{seen:?}");
    assert_eq!(seen.config_differences[1], "[ndbd] node 1 DataMemory: 100M -> 200M (restart: N)");
    // A file with mistakes is told as such and changes nothing.
    place.write("DataMemory=lots");
    let seen = show(&client).await;
    assert!(seen.config_differences[0].contains("cannot be used"), "{seen:?}");
    assert!(seen.config_differences[1].contains("DataMemory = lots"), "{seen:?}");
    place.write("DataMemory=300M");
    node.leave().await;
    second.leave().await;
    let seen = show_until(&client, |s| s.generation == 2).await;
    assert_eq!(seen.config_differences, [""; 0]);
    let begin = Instant::now();
    while api.handle().config().generation != 2 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the API node was not told");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let node = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    assert_eq!(node.handle().config().data_nodes[0].data_memory_bytes, 300 << 20);
    mgmd.stop().await;
    assert!(place.log().contains("Configuration generation 2 taken from the file"), "{}", place.log());
}

#[tokio::test]
async fn a_changed_file_is_taken_at_start_when_nobody_is_there() {
    let place = Place::new("DataMemory=100M");
    place.start().await.stop().await;
    place.write("DataMemory=200M");
    let mgmd = place.start().await;
    assert_eq!(mgmd.config().generation, 1);
    let node = place.join(NodeKind::DataNode, None).await.unwrap();
    let config = node.handle().config();
    assert_eq!((config.generation, config.data_nodes[0].data_memory_bytes), (2, 200 << 20));
    mgmd.stop().await;
    place.write("DataMemory=300M");
    let options = MgmdOptions { initial: true, ..place.options() };
    let mgmd = Mgmd::start(&options).await.unwrap();
    assert_eq!((mgmd.config().generation, mgmd.config().data_nodes[0].data_memory_bytes), (3, 300 << 20));
    mgmd.stop().await;
}

#[tokio::test]
async fn bad_places_are_refused_by_name() {
    let place = Place::new("");
    let refused = async |data_dir: &Path| {
        let options = MgmdOptions { data_dir: Some(data_dir.to_owned()), ..place.options() };
        Mgmd::start(&options).await.unwrap_err().to_string()
    };
    let absent = place.dir.path().join("absent");
    let text = refused(&absent).await;
    assert!(text.contains(&absent.display().to_string()) && text.contains("does not exist"), "{text}");
    assert!(text.contains("--data-dir"), "{text}");
    assert!(refused(&place.file()).await.contains("is a file, not a directory"));
    assert!(refused(Path::new("/proc")).await.contains("cannot be written to"));
    let no_file = MgmdOptions::new(place.dir.path().join("no.ini"));
    assert!(Mgmd::start(&no_file).await.unwrap_err().to_string().contains("no.ini: cannot be read"));
    let other = MgmdOptions { node_id: Some(NodeId(7)), ..place.options() };
    assert!(
        Mgmd::start(&other).await.unwrap_err().to_string().contains("--ndb-nodeid=7 is no management server")
    );
    place.write("DataMemory=1");
    let text = Mgmd::start(&place.options()).await.unwrap_err().to_string();
    assert!(text.contains("config.ini:3: error: [ndbd default] DataMemory = 1: out of range"), "{text}");
    place.write("");
    let mgmd = place.start().await;
    let text = Mgmd::start(&place.options()).await.unwrap_err().to_string();
    assert!(text.contains(&format!("127.0.0.1:{} (PortNumber)", place.port)), "{text}");
    mgmd.stop().await;
    std::fs::write(place.dir.path().join("ndb_145_config.bin"), b"damaged").unwrap();
    let text = Mgmd::start(&place.options()).await.unwrap_err().to_string();
    assert!(text.contains("ndb_145_config.bin: damaged") && text.contains("--initial"), "{text}");
}

#[tokio::test]
async fn garbage_costs_the_peer_its_link_and_nobody_else_anything() {
    let place = Place::new("");
    let mgmd = place.start().await;
    let node = place.join(NodeKind::DataNode, Some(1)).await.unwrap();
    let client = place.client().await;
    let address: SocketAddr = place.connect_string().parse().unwrap();
    // Datagrams that are no QUIC, or only look like it.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = 4711u64;
    for round in 0..3000usize {
        let mut datagram = vec![0u8; round % 1400 + 1];
        for byte in &mut datagram {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = random.to_be_bytes()[0];
        }
        if round % 3 == 0 {
            datagram[0] |= 0xc0;
            for (at, byte) in [0, 0, 0, 1].into_iter().enumerate() {
                if let Some(place) = datagram.get_mut(1 + at) {
                    *place = byte;
                }
            }
        }
        socket.send_to(&datagram, address).unwrap();
    }
    // A wrong version is told so.
    let (link, conf) = MgmLink::connect(address, "test").await.unwrap();
    assert_eq!(conf.node, NodeId(145));
    // A message that is no request, then one that is endless: the link is cut each time.
    let odd: Result<MgmAnswer, MgmError> = link.ask(&MgmHello::new("again"), Duration::from_secs(5)).await;
    assert!(odd.is_err(), "{odd:?}");
    assert!(link.closed().await.contains("malformed"));
    let (link, _) = MgmLink::connect(address, "test").await.unwrap();
    let endless =
        MgmReq::NodeReport(Box::new(NodeReport { waits_for: "x".repeat(100_000), ..NodeReport::default() }));
    let odd: Result<MgmAnswer, MgmError> = link.ask(&endless, Duration::from_secs(5)).await;
    assert!(odd.is_err(), "{odd:?}");
    assert!(link.closed().await.contains("endless"));
    // Reports and log lines of somebody without a node id are refused.
    let report = MgmReq::NodeReport(Box::new(started(true)));
    assert_eq!(code(client.request(&report).await), ErrorCode::MGM_REFUSED);
    assert_eq!(code(client.request(&MgmReq::Log(Vec::new())).await), ErrorCode::MGM_REFUSED);
    assert_eq!(connected(&show(&client).await), [1, 145]);
    assert!(node.handle().is_connected());
    client.request(&MgmReq::Status(Target::All)).await.unwrap();
    mgmd.stop().await;
    let log = place.log();
    assert!(log.contains("disconnected: ") && log.contains("NodeReport with endless"), "{log}");
    let stray = format!("{}: a datagram of ", socket.local_addr().unwrap());
    assert!(log.contains(&stray), "{log}");
    assert!(log.matches(&stray).count() < 100, "a flood is not written out: {log}");
    assert!(!log.contains("Node 1: Disconnected: no"), "{log}");
}

/// What a peer that is no client of ours can do with a connection: nothing, wrong versions, oversized, cut
/// short.
#[tokio::test]
async fn bad_hellos_are_refused() {
    let place = Place::new("");
    let mgmd = place.start().await;
    let address: SocketAddr = place.connect_string().parse().unwrap();
    let hello = |version: u32, magic: [u8; 8]| MgmHello { version, magic, ..MgmHello::new("odd") };
    let good = MgmHello::new("x").magic;
    for (hello, wanted) in [
        (hello(0, good), ErrorCode::PROTOCOL_VERSION),
        (hello(1, *b"GET / HT"), ErrorCode::MALFORMED_MESSAGE),
    ] {
        let (link, answer): (MgmLink, Result<Result<MgmHelloConf, Refusal>, MgmError>) =
            MgmLink::connect_with(address, &hello).await.unwrap();
        assert_eq!(answer.unwrap().unwrap_err().code, wanted);
        link.closed().await;
    }
    for raw in [
        vec![],
        vec![1, 2],
        u32::MAX.to_le_bytes().to_vec(),
        vec![9, 0, 0, 0, 1, 2],
        vec![4, 0, 0, 0, 255, 255, 255, 255],
    ] {
        MgmLink::connect_raw(address, &raw).await.unwrap().closed().await;
    }
    assert_eq!(connected(&show(&place.client().await).await), [145]);
    mgmd.stop().await;
    let log = place.log();
    assert!(log.contains("4294967295 bytes; at most") && log.contains("cut short"), "{log}");
}

#[test]
fn programs_without_a_runtime_have_links_too() {
    let place = Place::new("");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mgmd = runtime.block_on(place.start());
    let link = BlockingNodeLink::join(place.node(NodeKind::DataNode, None)).unwrap();
    link.handle().report(started(true));
    let client = BlockingMgmClient::connect(&place.connect_string(), "test").unwrap();
    assert_eq!(client.server().node, NodeId(145));
    let asked =
        std::thread::spawn(move || client.request(MgmReq::ReportMemoryUsage(Target::Node(NodeId(1)))));
    let order = link.next_order(Duration::from_secs(10)).unwrap();
    assert_eq!(order.order, MgmOrder::ReportMemory);
    order.answer(Ok(MgmOrderConf::Memory(memory())));
    let MgmConf::Memory(nodes) = asked.join().unwrap().unwrap() else { panic!("no memory") };
    assert_eq!(nodes[0].usage, Ok(memory()));
    assert!(link.next_order(Duration::ZERO).is_none());
    link.leave();
    let other = BlockingNodeLink::join(place.node(NodeKind::DataNode, Some(1))).unwrap();
    assert_eq!(other.handle().node_id(), NodeId(1));
    drop(other);
    runtime.block_on(mgmd.stop());
    let nobody = BlockingNodeLink::join(place.node(NodeKind::DataNode, None)).unwrap_err();
    assert_eq!(nobody.code, ErrorCode::MGM_UNREACHABLE);
}
