//! The server as a process: its exit codes and words, and what a killed one leaves behind.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail their test")]

use signals::ids::NodeId;
use signals::mgm::{NodeKind, NodeReport, NodeState};
use std::io::Read;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transporter::mgm_link::{BlockingMgmClient, BlockingNodeLink, NodeOptions};

/// A server process that does not outlive its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn place() -> (TempDir, u16) {
    let dir = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "[ndbd]\n[ndbd]\n[ndb_mgmd]\nHostName=127.0.0.1\nPortNumber={port}\nDataDir={}\n[mysqld]\n",
        dir.path().display()
    );
    std::fs::write(dir.path().join("config.ini"), text).unwrap();
    (dir, port)
}

fn start(dir: &Path, arguments: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nucdb-mgmd"));
    command.arg("-f").arg(dir.join("config.ini")).args(arguments);
    Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Exit code and words of a server that is expected to refuse.
fn refused(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let begin = Instant::now();
    let mut server = start(dir, arguments);
    let mut words = String::new();
    server.0.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    let code = server.0.wait().unwrap().code();
    assert!(begin.elapsed() < Duration::from_secs(5), "{words}");
    (code, words)
}

fn join(port: u16) -> BlockingNodeLink {
    let options = NodeOptions {
        connect_string: format!("127.0.0.1:{port}"),
        kind: NodeKind::DataNode,
        wanted: None,
        program: "test".to_owned(),
        wait_for_server: true,
    };
    BlockingNodeLink::join(options).unwrap()
}

#[test]
fn a_server_that_cannot_start_says_why_and_exits_nonzero() {
    let (dir, port) = place();
    let absent = dir.path().join("absent").display().to_string();
    let (code, words) = refused(dir.path(), &["--data-dir", &absent]);
    assert_eq!(code, Some(1));
    assert!(
        words.contains(&absent) && words.contains("--data-dir") && words.contains("does not exist"),
        "{words}"
    );
    let taken = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let (code, words) = refused(dir.path(), &[]);
    assert_eq!(code, Some(1));
    assert!(words.contains(&format!("127.0.0.1:{port} (PortNumber)")), "{words}");
    drop(taken);
    std::fs::write(dir.path().join("config.ini"), "[ndbd]\nNodeId=1\nFoo=1\n[ndbd]\nNodeId=1\n").unwrap();
    let (code, words) = refused(dir.path(), &[]);
    assert_eq!(code, Some(1));
    for part in [
        "config.ini:3: error: [ndbd] Foo = 1",
        "config.ini:5: error: [ndbd] NodeId = 1",
        "no management server",
    ] {
        assert!(words.contains(part), "{part}:\n{words}");
    }
}

#[test]
fn nodes_come_back_soon_after_the_server_was_killed() {
    let (dir, port) = place();
    let first = start(dir.path(), &[]);
    let link = join(port);
    link.handle().report(NodeReport { state: NodeState::Started, ..NodeReport::default() });
    assert_eq!(link.handle().node_id(), NodeId(1));
    drop(first); // SIGKILL: nobody is told.
    let second = start(dir.path(), &[]);
    let begin = Instant::now();
    loop {
        let client = BlockingMgmClient::connect(&format!("127.0.0.1:{port}"), "test");
        let shown = client.and_then(|c| c.request(signals::mgm::MgmReq::Show));
        if let Ok(signals::mgm::MgmConf::Show(show)) = shown
            && show.nodes.iter().any(|n| n.report.as_ref().is_some_and(|r| r.state == NodeState::Started))
        {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "the node did not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("back after {:?}", begin.elapsed());
    assert!(link.handle().is_connected());
    link.leave();
    drop(second);
    let log = std::fs::read_to_string(dir.path().join("ndb_145_cluster.log")).unwrap();
    assert!(log.contains("Node 1: Connected again"), "{log}");
}
