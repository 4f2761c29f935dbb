//! The front door as an operator uses it: start, manage, stop, start again, and what it says when it cannot.

// A test's helpers may unwrap as the test itself may.
#![allow(clippy::unwrap_used)]

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A cluster's folder and ports; whatever is left running in it is stopped at the end.
struct Folder {
    folder: tempfile::TempDir,
    mgm_port: u16,
    sql_port: u16,
}

impl Folder {
    fn new() -> Self {
        let mgm = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sql = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            mgm_port: mgm.local_addr().unwrap().port(),
            sql_port: sql.local_addr().unwrap().port(),
        }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    fn quickstart(&self) -> Output {
        let ports = [self.mgm_port.to_string(), self.sql_port.to_string()];
        let dir = self.dir();
        nucdb(&dir, &["quickstart", "--detach", "--mgm-port", &ports[0], "--sql-port", &ports[1], "--dir"])
    }

    fn stop(&self) -> Output {
        nucdb(&self.dir(), &["stop", "--dir"])
    }

    fn pid_files(&self) -> usize {
        let files = std::fs::read_dir(self.dir()).into_iter().flatten().flatten();
        files.filter(|f| f.path().extension().is_some_and(|e| e == "pid")).count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs the front door with a folder as its last argument.
fn nucdb(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nucdb")).args(arguments).arg(dir).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_cluster_is_started_managed_stopped_and_started_again() {
    let cluster = Folder::new();
    let first = cluster.quickstart();
    assert!(first.status.success(), "{}", said(&first));
    assert!(said(&first).contains("The cluster is ready"), "{}", said(&first));
    assert_eq!(cluster.pid_files(), 4, "a management server, two data nodes, a SQL node");

    let connect = format!("127.0.0.1:{}", cluster.mgm_port);
    let show = Command::new(env!("CARGO_BIN_EXE_nucdb"))
        .args(["mgm", "-c", &connect, "-e", "SHOW; NONSENSE"])
        .output()
        .unwrap();
    assert!(said(&show).contains("[ndbd(NDB)]\t2 node(s)"), "{}", said(&show));
    assert!(!show.status.success(), "an unknown command is an error: {}", said(&show));

    let again = cluster.quickstart();
    assert!(!again.status.success());
    assert!(said(&again).contains("is running already"), "{}", said(&again));

    let stopped = cluster.stop();
    assert!(stopped.status.success(), "{}", said(&stopped));
    assert_eq!(cluster.pid_files(), 0);
    let idle = cluster.stop();
    assert!(idle.status.success() && said(&idle).contains("is not running"), "{}", said(&idle));

    std::fs::write(cluster.dir().join("mgmd.pid"), "1").unwrap();
    let second = cluster.quickstart();
    assert!(second.status.success(), "a stale pid file is no matter: {}", said(&second));
    assert!(said(&second).contains("again"), "{}", said(&second));
    let log = std::fs::read_to_string(cluster.dir().join("datanode1.log")).unwrap();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn ready_means_that_the_data_nodes_answer() {
    let cluster = Folder::new();
    let started = cluster.quickstart();
    assert!(started.status.success(), "{}", said(&started));
    let stopped = cluster.stop();
    assert!(stopped.status.success(), "{}", said(&stopped));
    // A data node that cannot start: its folder is a file. The SQL node alone must not pass for a cluster.
    let folder = cluster.dir().join("datanode1");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "x").unwrap();
    let refused = cluster.quickstart();
    assert!(!refused.status.success(), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("datanode1 ended") && text.contains("DataDir"), "{text}");
    assert_eq!(cluster.pid_files(), 0);
}

#[test]
fn a_clusters_stop_never_touches_another_cluster() {
    let (mine, other) = (Folder::new(), Folder::new());
    for cluster in [&mine, &other] {
        let started = cluster.quickstart();
        assert!(started.status.success(), "{}", said(&started));
    }
    assert!(mine.stop().status.success());
    // A number that was used again: my pid file names the other cluster's management server.
    std::fs::copy(other.dir().join("mgmd.pid"), mine.dir().join("mgmd.pid")).unwrap();
    let idle = mine.stop();
    assert!(said(&idle).contains("is not running"), "{}", said(&idle));
    let connect = format!("127.0.0.1:{}", other.mgm_port);
    let show = Command::new(env!("CARGO_BIN_EXE_nucdb"))
        .args(["mgm", "-c", &connect, "-e", "SHOW"])
        .output()
        .unwrap();
    assert!(show.status.success(), "the other cluster's management server is alive: {}", said(&show));
    let again = mine.quickstart();
    assert!(again.status.success(), "{}", said(&again));
}

#[test]
fn what_is_in_the_way_is_said_in_one_line_and_nothing_is_left() {
    let cluster = Folder::new();
    let taken = TcpListener::bind(("127.0.0.1", cluster.sql_port)).unwrap();
    let refused = cluster.quickstart();
    assert!(!refused.status.success());
    let line = said(&refused);
    assert!(line.contains("--sql-port") && line.trim().lines().count() == 1, "{line}");
    assert_eq!(cluster.pid_files(), 0);
    drop(taken);
    let started = cluster.quickstart();
    assert!(started.status.success(), "{}", said(&started));

    let file = cluster.folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = nucdb(&file, &["quickstart", "--detach", "--dir"]);
    assert!(!refused.status.success() && said(&refused).contains("is a file"), "{}", said(&refused));
    let empty = nucdb(&file, &["stop", "--dir"]);
    assert!(!empty.status.success() && said(&empty).contains("holds no cluster"), "{}", said(&empty));
}
