//! The front door as an operator uses it: start, manage, stop, start again, and what it says when it cannot.

// A test's helpers may unwrap as the test itself may.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
        self.quickstart_with(&[])
    }

    fn quickstart_with(&self, more: &[&str]) -> Output {
        let ports = [self.mgm_port.to_string(), self.sql_port.to_string()];
        let mut arguments = vec!["quickstart", "--detach", "--mgm-port", &ports[0], "--sql-port", &ports[1]];
        arguments.extend(more);
        arguments.push("--dir");
        nucdb(&self.dir(), &arguments)
    }

    /// Runs the management client with these commands on its input.
    fn mgm(&self, arguments: &[&str], input: &str) -> Output {
        let connect = format!("127.0.0.1:{}", self.mgm_port);
        let mut client = Command::new(env!("CARGO_BIN_EXE_nucdb"))
            .args(["mgm", "-c", &connect])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        client.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        client.wait_with_output().unwrap()
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

#[test]
fn one_process_is_started_and_stopped_like_many_and_both_take_the_same_folder() {
    let cluster = Folder::new();
    let single = ["--single-process"];
    let first = cluster.quickstart_with(&single);
    assert!(first.status.success(), "{}", said(&first));
    assert_eq!(cluster.pid_files(), 1);
    let pid = std::fs::read_to_string(cluster.dir().join("single.pid")).unwrap();
    let status = cluster.mgm(&["--json", "-e", "SHOW"], "");
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(text.matches(&format!("\"pid\":{pid},")).count(), 4, "all four nodes are one process: {text}");
    let log = std::fs::read_to_string(cluster.dir().join("single.log")).unwrap();
    for line in ["mgmd: ready", "datanode{id=1}: node 1: started", "sqlnode: joined"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert!(log.contains("sqlnode: connected to data node 2 at this process"), "rings, not sockets: {log}");

    for form in [&single[..], &[]] {
        let again = cluster.quickstart_with(form);
        assert!(!again.status.success());
        assert!(said(&again).contains("is running already"), "{}", said(&again));
    }
    let stopped = cluster.stop();
    assert!(stopped.status.success(), "{}", said(&stopped));
    assert_eq!(cluster.pid_files(), 0);
    let log = std::fs::read_to_string(cluster.dir().join("single.log")).unwrap();
    assert!(log.contains("datanode{id=2}: stopped: planned stop") && !log.contains("ERROR"), "{log}");

    let many = cluster.quickstart();
    assert!(many.status.success(), "{}", said(&many));
    assert_eq!(cluster.pid_files(), 4);
    assert!(cluster.stop().status.success());
    let one = cluster.quickstart_with(&single);
    assert!(one.status.success(), "{}", said(&one));

    // The data nodes and the management server end by order; the SQL node stays until it is stopped.
    let shutdown = cluster.mgm(&["-e", "SHUTDOWN"], "");
    assert!(shutdown.status.success(), "{}", said(&shutdown));
    assert_eq!(cluster.pid_files(), 1);
    let stopped = cluster.stop();
    assert!(stopped.status.success() && said(&stopped).contains("is stopped"), "{}", said(&stopped));
}

#[test]
fn a_single_process_that_cannot_start_says_why_and_leaves_nothing() {
    let cluster = Folder::new();
    let single = ["--single-process"];
    let taken = TcpListener::bind(("127.0.0.1", cluster.sql_port)).unwrap();
    let refused = cluster.quickstart_with(&single);
    assert!(!refused.status.success());
    let line = said(&refused);
    assert!(line.contains("--sql-port") && line.trim().lines().count() == 1, "{line}");
    drop(taken);
    assert!(cluster.quickstart_with(&single).status.success());
    assert!(cluster.stop().status.success());

    let folder = cluster.dir().join("datanode1");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "x").unwrap();
    let refused = cluster.quickstart_with(&single);
    let text = said(&refused);
    assert!(!refused.status.success(), "{text}");
    assert!(
        text.contains("single ended (exit status: 1)") && text.contains("datanode1: cannot start"),
        "{text}"
    );
    assert!(text.contains("DataDir") && text.lines().count() <= 13, "{text}");
    assert_eq!(cluster.pid_files(), 0);

    // In the foreground it is the front door itself that ends.
    let refused = nucdb(&cluster.dir(), &["quickstart", "--single-process", "--dir"]);
    let text = said(&refused);
    assert!(!refused.status.success() && text.contains("nucdb: datanode1: cannot start"), "{text}");
    assert_eq!(cluster.pid_files(), 0);
}

#[test]
fn scripts_of_the_management_client_end_with_the_code_of_what_failed() {
    let cluster = Folder::new();
    let started = cluster.quickstart_with(&["--single-process"]);
    assert!(started.status.success(), "{}", said(&started));
    let good = cluster.mgm(&[], "SHOW\nALL STATUS\n");
    assert!(good.status.success() && said(&good).contains("Node 2: started"), "{}", said(&good));
    let bad = cluster.mgm(&[], "NONSENSE\nSHOW\nQUIT\n");
    assert_eq!(bad.status.code(), Some(1), "{}", said(&bad));
    assert!(said(&bad).contains("[ndb_mgmd(MGM)]"), "{}", said(&bad));
    let json = cluster.mgm(&["--json", "-e", "SHOW; ALL STATUS; ALL REPORT MEMORYUSAGE; NONSENSE"], "");
    assert!(!json.status.success());
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(answers.len(), 4, "{}", said(&json));
    assert_eq!(answers[1]["nodes"][1]["status"], "STARTED");
    // One of the two replicas may not stop alone while the other could not go on without it.
    let stop = cluster.mgm(&["-e", "1 STOP"], "");
    assert!(!stop.status.success() && said(&stop).contains("use SHUTDOWN"), "{}", said(&stop));
    assert_eq!(cluster.pid_files(), 1);
}

#[test]
fn a_cluster_in_the_foreground_is_stopped_from_elsewhere() {
    for form in [&["--single-process"][..], &[]] {
        let cluster = Folder::new();
        let ports = [cluster.mgm_port.to_string(), cluster.sql_port.to_string()];
        let mut front_door = Command::new(env!("CARGO_BIN_EXE_nucdb"))
            .args(["quickstart", "--mgm-port", &ports[0], "--sql-port", &ports[1]])
            .args(form)
            .arg("--dir")
            .arg(cluster.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(front_door.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("Press Ctrl-C") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ended early");
        }
        let again = cluster.quickstart_with(form);
        assert!(!again.status.success() && said(&again).contains("running already"), "{}", said(&again));
        let stopped = cluster.stop();
        assert!(stopped.status.success() && said(&stopped).contains("is stopped"), "{}", said(&stopped));
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        front_door.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "Stopping.\n");
        assert!(front_door.wait().unwrap().success());
        assert_eq!(cluster.pid_files(), 0);
    }
}

#[test]
fn a_reader_that_goes_away_ends_neither_the_command_nor_the_cluster() {
    let folder = Folder::new();
    let ports = [folder.mgm_port.to_string(), folder.sql_port.to_string()];
    let unread = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_nucdb"));
        let output = command.args(arguments).arg("--dir").arg(folder.dir()).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    };
    unread(&["quickstart", "--detach", "--mgm-port", &ports[0], "--sql-port", &ports[1]]);
    let shown = folder.mgm(&["-e", "SHOW"], "");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("[ndbd(NDB)]"), "{}", said(&shown));
    unread(&["stop"]);
    assert_eq!(folder.pid_files(), 0);
}

#[test]
fn a_cluster_whose_data_nodes_ended_is_told_from_one_that_runs() {
    let cluster = Folder::new();
    let started = cluster.quickstart();
    assert!(started.status.success(), "{}", said(&started));
    let pid = |name: &str| std::fs::read_to_string(cluster.dir().join(format!("{name}.pid"))).unwrap();
    let (first, second) = (pid("datanode1"), pid("datanode2"));
    assert!(Command::new("kill").args(["-9", &first]).status().unwrap().success());
    // Without its peer the other node ends as well.
    let ends_by = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::fs::read(format!("/proc/{second}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(std::time::Instant::now() < ends_by, "data node 2 goes on alone");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let refused = cluster.quickstart();
    assert!(!refused.status.success(), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("running already") && text.contains("datanode1 and datanode2 ended"), "{text}");
}
