//! A cluster of real processes, started by the front door and killed at the end whatever happens.

use crate::group::{Group, Ports};
use crate::program::free_port;
use crate::{Finished, Sql, run};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a cluster may take to answer SQL.
const START_LIMIT: Duration = Duration::from_secs(60);
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
    group: Group,
    folder: TempDir,
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
        command.stdin(Stdio::null()).stdout(output("quickstart.out")).stderr(output("quickstart.err"));
        let group = Group::spawn(&mut command);
        let mut cluster = Cluster { group, folder, sql_port, mgm_port };
        wait_for_sql(&cluster.sql(), || {
            if let Some(status) = cluster.group.leader_status() {
                panic!("nucdb quickstart ended with {status} before SQL answered");
            }
        });
        cluster
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

    /// Where programs of the native API find it.
    #[must_use]
    pub fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.mgm_port)
    }

    /// The folder the cluster lives in.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    /// The processes of the cluster, the front door among them.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.group.pids()
    }

    /// The ports of IPv4 that the processes of the cluster listen on.
    #[must_use]
    pub fn listening_ports(&self) -> Ports {
        self.group.listening_ports()
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
        // The group is killed before the folder is removed.
        self.group.kill();
    }
}

/// The front door's program: beside the test binary's folder. It and the node programs are built by the
/// command that runs all tests; alone, `cargo build --workspace --bins` makes them.
pub(crate) fn binary() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    let folder = here.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let program = folder.join("nucdb");
    assert!(program.exists(), "{} is missing: run cargo build --workspace --bins", program.display());
    program
}

/// Waits until statements that need the data nodes are answered; `check` may give up before.
///
/// # Panics
/// If they are not within a minute. The cluster prints its logs when it is dropped by a panic.
pub(crate) fn wait_for_sql(sql: &Sql, mut check: impl FnMut()) {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        check();
        let answer = sql.run("SHOW DATABASES");
        if answer.succeeded() {
            return;
        }
        assert!(Instant::now() < deadline, "no SQL in time: {answer:#?}");
        // Another process's readiness can only be asked for.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Appends the end of every text file of a folder and the folders in it, to some depth.
pub(crate) fn append_logs(folder: &Path, depth: u32, text: &mut String) {
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

/// The cluster that stories share when they need no other: two data nodes, two replicas.
fn with_shared<T>(ask: impl FnOnce(&Cluster) -> T) -> T {
    static SHARED: OnceLock<Mutex<Cluster>> = OnceLock::new();
    let cluster = SHARED.get_or_init(|| Mutex::new(Cluster::start(Options::default())));
    ask(&cluster.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The shared cluster's SQL node. Each story works in a database of its own.
pub fn shared() -> Sql {
    with_shared(Cluster::sql)
}

/// Where programs of the native API find the shared cluster.
pub fn shared_connect_string() -> String {
    with_shared(Cluster::connect_string)
}
