//! Nodes: the real processes of a run - one management server and its data nodes, in a folder of their own.
//!
//! Everything is addressed through the handle of a child this process has started, so nobody else's process
//! is ever stopped. What is left at the end is killed, and the folder removed.

use rustix::process::{Pid, Signal, kill_process};
use signals::NodeId;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MGM: u8 = 145;
const FIRST_API: u8 = 200;

/// See the module.
pub(super) struct Nodes {
    folder: PathBuf,
    port: u16,
    mgmd: Child,
    data: BTreeMap<NodeId, Option<Child>>,
}

impl Nodes {
    /// Starts a management server and data nodes, with room for so many clients.
    pub(super) fn start(
        count: u8,
        replicas: u8,
        clients: u8,
        parameters: &BTreeMap<String, toml::Value>,
    ) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("nucdb-workload-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let port = free_udp_port()?;
        let mut ini = format!("[ndbd default]\nNoOfReplicas={replicas}\n");
        if !parameters.contains_key("DataMemory") {
            ini.push_str("DataMemory=64M\n");
        }
        for (name, value) in parameters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(ini, "{name}={text}");
        }
        // A daemon uses its folder and does not make it.
        let made = |name: &str| {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(path.display().to_string())
        };
        let dir = made("mgmd")?;
        let _ =
            writeln!(ini, "[ndb_mgmd]\nNodeId={MGM}\nHostName=127.0.0.1\nPortNumber={port}\nDataDir={dir}");
        for node in 1..=count {
            let (server, dir) = (free_tcp_port()?, made(&format!("data{node}"))?);
            let _ = writeln!(
                ini,
                "[ndbd]\nNodeId={node}\nHostName=127.0.0.1\nServerPort={server}\nDataDir={dir}"
            );
        }
        for node in 0..clients {
            let _ = writeln!(ini, "[api]\nNodeId={}", FIRST_API + node);
        }
        let file = folder.join("config.ini");
        fs::write(&file, ini).map_err(|e| format!("{}: {e}", file.display()))?;
        let mgmd = spawn(&folder, "nucdb-mgmd", &["-f", &file.display().to_string()], "mgmd")?;
        let data = (1..=count).map(|node| (NodeId(node), None)).collect();
        let mut nodes = Self { folder, port, mgmd, data };
        for node in 1..=count {
            nodes.start_data(NodeId(node))?;
        }
        Ok(nodes)
    }

    pub(super) fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn data_nodes(&self) -> Vec<NodeId> {
        self.data.keys().copied().collect()
    }

    /// Starts a data node that does not run.
    pub(super) fn start_data(&mut self, node: NodeId) -> Result<(), String> {
        let (connect, id) = (self.connect_string(), node.to_string());
        let Some(place) = self.data.get_mut(&node).filter(|place| place.is_none()) else { return Ok(()) };
        let arguments = ["-c", &connect, "--ndb-nodeid", &id];
        *place = Some(spawn(&self.folder, "nucdb-datanode", &arguments, &format!("data{id}"))?);
        Ok(())
    }

    /// Sends a signal to a data node that runs.
    pub(super) fn signal(&self, node: NodeId, signal: Signal) {
        if let Some(Some(child)) = self.data.get(&node) {
            // Fails only if the process is gone, which is noticed elsewhere.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// The data nodes that have ended since the last call.
    pub(super) fn ended(&mut self) -> Vec<NodeId> {
        let mut ended = Vec::new();
        for (node, place) in &mut self.data {
            if place.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_)))) {
                *place = None;
                ended.push(*node);
            }
        }
        ended
    }

    /// The ends of what the processes have logged.
    pub(super) fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "log") {
                let log = fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(6)..].join("\n  ");
                let _ = writeln!(text, "--- {}\n  {last}", path.display());
            }
        }
        text
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.data.values_mut().flatten().chain([&mut self.mgmd]) {
            // A stopped process dies of SIGKILL as well; fails only if it is gone.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(folder: &Path, program: &str, arguments: &[&str], log: &str) -> Result<Child, String> {
    let here = std::env::current_exe().unwrap_or_default();
    let beside = here.parent().unwrap_or(Path::new("."));
    // Tests run one folder further down.
    let found = [beside, beside.parent().unwrap_or(beside)].map(|folder| folder.join(program));
    let Some(path) = found.iter().find(|path| path.exists()) else {
        return Err(format!("{} is missing: cargo build --workspace --bins makes it", found[0].display()));
    };
    let log = folder.join(format!("{log}.log"));
    let output = || {
        let file = File::options().create(true).append(true).open(&log);
        file.map_err(|e| format!("{}: {e}", log.display()))
    };
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(output()?).stderr(output()?);
    command.spawn().map_err(|e| format!("{}: {e}", path.display()))
}

fn free_tcp_port() -> Result<u16, String> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|s| s.local_addr());
    socket.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

fn free_udp_port() -> Result<u16, String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|s| s.local_addr());
    socket.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}
