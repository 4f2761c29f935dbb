//! A cluster of real processes, started by the front door and killed at the end whatever happens.
//!
//! The front door runs in a process group of its own, and so do the nodes it starts. Dropping the [`Cluster`]
//! kills the group. A watchdog, a shell that waits on a pipe from this process, kills it too when this
//! process ends in any other way; that is also what ends the [`shared`] cluster.

use crate::program::{free_port, wait};
use crate::{Finished, Sql, run};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a cluster may take to answer SQL.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long the processes of a killed group may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What a story wants from its cluster.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many data nodes.
    pub data_nodes: u32,
    /// How many replicas of each row.
    pub replicas: u32,
    /// All nodes in one process.
    pub single_process: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { data_nodes: 2, replicas: 2, single_process: false }
    }
}

/// A running cluster.
pub struct Cluster {
    folder: TempDir,
    front_door: Child,
    group: Pid,
    /// Closing it wakes the watchdog.
    watchdog_pipe: Option<ChildStdin>,
    watchdog: Child,
    sql_port: u16,
    mgm_port: u16,
}

impl Cluster {
    /// Starts a cluster in a fresh folder and waits until it answers SQL.
    ///
    /// # Panics
    /// If it does not within a minute, with what the processes logged.
    #[must_use]
    pub fn start(options: Options) -> Cluster {
        let folder = TempDir::with_prefix("nucdb-story-").unwrap_or_else(|e| panic!("no folder: {e}"));
        let (sql_port, mgm_port) = (free_port(), free_port());
        let output = |name: &str| {
            File::create(folder.path().join(name)).unwrap_or_else(|e| panic!("cannot create {name}: {e}"))
        };
        let mut command = Command::new(binary());
        command
            .arg("quickstart")
            .arg("--dir")
            .arg(folder.path().join("cluster"))
            .args(["--data-nodes", &options.data_nodes.to_string()])
            .args(["--replicas", &options.replicas.to_string()])
            .args(["--mgm-port", &mgm_port.to_string()])
            .args(["--sql-port", &sql_port.to_string()]);
        if options.single_process {
            command.arg("--single-process");
        }
        let front_door = command
            .stdin(Stdio::null())
            .stdout(output("quickstart.out"))
            .stderr(output("quickstart.err"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start nucdb quickstart: {e}"));
        let group = Pid::from_child(&front_door);
        let mut watchdog = watchdog(group);
        let watchdog_pipe = watchdog.stdin.take();
        let mut cluster = Cluster { folder, front_door, group, watchdog_pipe, watchdog, sql_port, mgm_port };
        cluster.wait_for_sql();
        cluster
    }

    fn wait_for_sql(&mut self) {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Ok(Some(status)) = self.front_door.try_wait() {
                panic!("nucdb quickstart ended with {status} before SQL answered\n{}", self.logs());
            }
            let answer = self.sql().run("SELECT 1");
            if answer.succeeded() && answer.stdout.trim() == "1" {
                return;
            }
            assert!(Instant::now() < deadline, "no SQL in time: {answer:#?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The SQL node, as a client sees it.
    #[must_use]
    pub fn sql(&self) -> Sql {
        Sql::new(self.sql_port)
    }

    /// Runs one command of the management client.
    #[must_use]
    pub fn mgm(&self, command: &str) -> Finished {
        let connect = format!("127.0.0.1:{}", self.mgm_port);
        run(Command::new(binary()).args(["mgm", "-c", &connect, "-e", command]), Duration::from_secs(20))
    }

    /// The folder the cluster lives in.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    /// The processes of the cluster, the front door among them.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        let group = self.group.as_raw_nonzero().get().to_string();
        let in_group = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name in parentheses may hold anything; after it come state, parent and group.
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            fields.split_ascii_whitespace().nth(2) == Some(&group)
        };
        let mut pids: Vec<u32> = numbered_entries(Path::new("/proc")).into_iter().filter(in_group).collect();
        pids.sort_unstable();
        pids
    }

    /// The TCP ports of IPv4 that the processes of the cluster listen on.
    #[must_use]
    pub fn listening_ports(&self) -> Vec<u16> {
        let sockets: Vec<String> = self.pids().into_iter().flat_map(socket_inodes).collect();
        let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let mut ports: Vec<u16> =
            table.lines().skip(1).filter_map(|line| listening(line, &sockets)).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// What the processes wrote to their outputs and logs, for the text of a failure.
    #[must_use]
    pub fn logs(&self) -> String {
        let mut text = String::new();
        append_logs(self.folder.path(), 3, &mut text);
        text
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        // Fails only when no process of the group is left.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = wait(&mut self.front_door, KILL_LIMIT);
        let deadline = Instant::now() + KILL_LIMIT;
        while test_kill_process_group(self.group).is_ok() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.watchdog.kill();
        drop(self.watchdog_pipe.take());
        let _ = self.watchdog.wait();
    }
}

/// A shell that kills the group when its input ends, which happens when this process does.
fn watchdog(group: Pid) -> Child {
    Command::new("sh")
        .args(["-c", "read -r line; kill -9 -- \"-$0\" 2>/dev/null"])
        .arg(group.as_raw_nonzero().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start the watchdog: {e}"))
}

/// The front door's program: beside the test binary's folder. It and the node programs are built by the
/// command that runs all tests; alone, `cargo build --workspace --bins` makes them.
fn binary() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    let folder = here.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let program = folder.join("nucdb");
    assert!(program.exists(), "{} is missing: run cargo build --workspace --bins", program.display());
    program
}

fn numbered_entries(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn socket_inodes(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let target = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    entries.filter_map(target).collect()
}

/// The port of a line of /proc/net/tcp that is a listening socket (state 0A) among those given.
fn listening(line: &str, sockets: &[String]) -> Option<u16> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != "0A" || !sockets.iter().any(|socket| socket == inode) {
        return None;
    }
    u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
}

/// Appends the end of every text file of a folder and the folders in it, to some depth.
fn append_logs(folder: &Path, depth: u32, text: &mut String) {
    const SHOWN_BYTES: usize = 4000;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && depth > 0 {
            append_logs(&path, depth - 1, text);
        } else if path.extension().is_some_and(|e| e == "log" || e == "out" || e == "err" || e == "ini") {
            let bytes = fs::read(&path).unwrap_or_default();
            let shown = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN_BYTES)..]);
            text.push_str(&format!("--- {}\n{shown}\n", path.display()));
        }
    }
}

/// The cluster that stories share when they only use SQL: two data nodes, two replicas. Each story works in a
/// database of its own.
pub fn shared() -> Sql {
    static SHARED: OnceLock<Mutex<Cluster>> = OnceLock::new();
    let cluster = SHARED.get_or_init(|| Mutex::new(Cluster::start(Options::default())));
    cluster.lock().unwrap_or_else(PoisonError::into_inner).sql()
}
