//! The folder of a quickstart cluster: what is in it, and whether a cluster can be started from it.

use super::Arguments;
use super::process;
use serde::{Deserialize, Serialize};
use signals::NodeId;
use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

/// The ports of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// UDP port of the management server, from `config.ini`.
    pub mgm: u16,
    /// TCP port of the SQL node, from `cluster.json`.
    pub sql: u16,
    /// TCP ports of the data nodes, from `config.ini`.
    pub data: BTreeMap<NodeId, u16>,
}

/// `cluster.json`: what `config.ini` has no place for. Its presence says that a folder holds a cluster.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// TCP port of the SQL node.
    sql: u16,
}

/// A cluster's folder.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The folder, absolute.
    pub dir: PathBuf,
    /// Its ports.
    pub ports: Ports,
}

impl Layout {
    /// The layout in a folder that holds a cluster.
    ///
    /// # Errors
    /// There is none, or its `cluster.json` or `config.ini` cannot be used.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let dir = cluster_folder(dir)?;
        let file = dir.join("cluster.json");
        let text = fs::read_to_string(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        let stored: Stored = serde_json::from_str(&text)
            .map_err(|e| format!("{} is damaged: {e}; remove the folder to start anew", file.display()))?;
        let mut layout = Self { dir, ports: Ports { mgm: 0, sql: stored.sql, data: BTreeMap::new() } };
        let config = layout.config()?;
        let servers = config.mgm_nodes.first();
        layout.ports.mgm = servers.map(|n| n.port_number).ok_or_else(|| {
            format!("{} has no [ndb_mgmd] section; it needs one", layout.config_file().display())
        })?;
        layout.ports.data = config.data_nodes.iter().map(|n| (n.node_id, n.server_port)).collect();
        Ok(layout)
    }

    /// The layout for a start, and whether the folder held a cluster before.
    ///
    /// # Errors
    /// The folder cannot be used, or the arguments do not fit the cluster in it.
    pub(super) fn open_or_create(arguments: &Arguments) -> Result<(Self, bool), String> {
        let dir = &arguments.dir;
        if dir.join("cluster.json").exists() {
            let layout = Self::open(dir)?;
            layout.refuse_other(arguments)?;
            check_writable(&layout.dir)?;
            return Ok((layout, true));
        }
        if dir.exists() && !dir.is_dir() {
            return Err(format!("--dir {} is a file, not a folder; name another", dir.display()));
        }
        if dir.is_dir() && fs::read_dir(dir).is_ok_and(|mut d| d.next().is_some()) {
            return Err(format!(
                "--dir {} has other things in it and no cluster; name another",
                dir.display()
            ));
        }
        let data_nodes = arguments.data_nodes.unwrap_or(2);
        let replicas = arguments.replicas.unwrap_or(if data_nodes == 1 { 1 } else { 2 });
        if !data_nodes.is_multiple_of(replicas) {
            return Err(format!(
                "--data-nodes {data_nodes} is no multiple of --replicas {replicas}; change one of them"
            ));
        }
        fs::create_dir_all(dir).map_err(|e| format!("cannot make --dir {}: {e}", dir.display()))?;
        check_writable(dir)?;
        let dir = dir.canonicalize().map_err(|e| format!("--dir {}: {e}", dir.display()))?;
        let data = (1..).map(NodeId).zip(free_ports(data_nodes.into())?).collect();
        let ports =
            Ports { mgm: arguments.mgm_port.unwrap_or(1186), sql: arguments.sql_port.unwrap_or(3306), data };
        let layout = Self { dir, ports };
        layout.check_ports()?;
        layout.write(replicas, arguments.data_memory.as_deref())?;
        Ok((layout, false))
    }

    fn refuse_other(&self, arguments: &Arguments) -> Result<(), String> {
        let differs = |name: &str, wanted: Option<u16>, is: u16, file: &str| match wanted {
            Some(wanted) if wanted != is => Err(format!(
                "the cluster in {} has {name} {is}, not {wanted}; edit its {file}, or name another --dir",
                self.dir.display()
            )),
            _ => Ok(()),
        };
        differs("--mgm-port", arguments.mgm_port, self.ports.mgm, "config.ini")?;
        differs("--sql-port", arguments.sql_port, self.ports.sql, "cluster.json")?;
        differs("--data-nodes", arguments.data_nodes, self.ports.data.len() as u16, "config.ini")?;
        let config = self.config()?;
        differs("--replicas", arguments.replicas, u16::from(config.no_of_replicas()), "config.ini")?;
        if arguments.data_memory.is_some() {
            return Err(format!(
                "--data-memory shapes a new cluster; change DataMemory in {} instead",
                self.config_file().display()
            ));
        }
        Ok(())
    }

    /// The configuration as it stands in `config.ini`.
    pub(super) fn config(&self) -> Result<config::ClusterConfig, String> {
        let file = self.config_file();
        let bytes = fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        let loaded = config::parse(&file.display().to_string(), &bytes).map_err(|e| e.to_string())?;
        Ok(loaded.config)
    }

    /// A warning if the data nodes may together use more memory than the machine has.
    pub(super) fn memory_warning(&self) -> Option<String> {
        let config = self.config().ok()?;
        let wanted: u64 = config.data_nodes.iter().map(|n| n.data_memory_bytes).sum();
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
        let has = line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024;
        (wanted > has).then(|| {
            format!(
                "Warning: DataMemory of all data nodes together is {} MB, this machine has {} MB.",
                wanted >> 20,
                has >> 20
            )
        })
    }

    /// Takes the folder for this start; a second start in the same folder is refused meanwhile.
    pub(super) fn lock(&self) -> Result<fs::File, String> {
        let path = self.dir.join("quickstart.lock");
        let file = fs::File::create(&path).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("another quickstart is at work in {}; wait for it or stop it", self.dir.display())
        })?;
        Ok(file)
    }

    /// The cluster's `config.ini`.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.dir.join("config.ini")
    }

    fn write(&self, replicas: u16, data_memory: Option<&str>) -> Result<(), String> {
        let text = config_ini(&self.dir, &self.ports, replicas, data_memory);
        // The same check that the management server makes, before anything is started.
        config::parse("config.ini", text.as_bytes()).map_err(|e| format!("{e}"))?;
        for name in &self.node_names() {
            let folder = self.dir.join(name);
            fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        }
        let put = |name: &str, text: &str| {
            let path = self.dir.join(name);
            fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
        };
        put("config.ini", &text)?;
        let stored = Stored { sql: self.ports.sql };
        let stored = serde_json::to_string_pretty(&stored).map_err(|e| e.to_string())?;
        put("cluster.json", &stored)
    }

    /// The cluster's nodes in the order they are started; a node's process is called the same.
    #[must_use]
    pub fn node_names(&self) -> Vec<String> {
        let data = self.ports.data.keys().map(|id| format!("datanode{id}"));
        std::iter::once("mgmd".to_string()).chain(data).chain(["sqlnode".to_string()]).collect()
    }

    /// Removes stale pid files; refuses if one names a process of this cluster that is alive.
    pub(super) fn refuse_if_running(&self) -> Result<(), String> {
        let names = process::names_of_pid_files(&self.dir);
        let pids: Vec<(String, Option<u32>)> =
            names.into_iter().map(|name| (name.clone(), process::read_pid(&self.dir, &name))).collect();
        let dir = self.dir.display();
        if let Some((name, pid)) = pids.iter().find_map(|(name, pid)| Some((name, (*pid)?))) {
            let is_data = |name: &str| name.starts_with("datanode");
            let has_ended = |(name, pid): &(String, Option<u32>)| is_data(name) && pid.is_none();
            let ended: Vec<&str> =
                pids.iter().filter(|p| has_ended(p)).map(|(name, _)| name.as_str()).collect();
            let why = match ended.as_slice() {
                [] => String::new(),
                some => format!(", but {} ended (see {dir}/*.log for why)", some.join(" and ")),
            };
            return Err(format!(
                "the cluster in {dir} is running already ({name} is process {pid}){why}; stop it with nucdb stop \
                 --dir {dir}"
            ));
        }
        pids.iter().for_each(|(name, _)| process::remove_pid(&self.dir, name));
        Ok(())
    }

    /// Refuses if a port is taken.
    pub(super) fn check_ports(&self) -> Result<(), String> {
        let known = self.config_file().exists();
        let change = |option: &str, setting: &str, file: &str| match known {
            true => format!("change {setting} in {}", self.dir.join(file).display()),
            false => format!("choose another with {option}"),
        };
        UdpSocket::bind(("127.0.0.1", self.ports.mgm)).map_err(|e| {
            let change = change("--mgm-port", "PortNumber", "config.ini");
            format!("the management port {} cannot be used: {e}; {change}", self.ports.mgm)
        })?;
        TcpListener::bind(("127.0.0.1", self.ports.sql)).map_err(|e| {
            let change = change("--sql-port", "the SQL port", "cluster.json");
            format!("the SQL port {} cannot be used: {e}; {change}", self.ports.sql)
        })?;
        for (id, port) in &self.ports.data {
            TcpListener::bind(("127.0.0.1", *port)).map_err(|e| {
                format!(
                    "port {port} of data node {id} cannot be used: {e}; change its ServerPort in {}",
                    self.config_file().display()
                )
            })?;
        }
        Ok(())
    }
}

/// The absolute path of a folder that holds a cluster.
///
/// # Errors
/// It holds none.
pub(crate) fn cluster_folder(dir: &Path) -> Result<PathBuf, String> {
    let file = dir.join("cluster.json");
    if let Err(error) = fs::metadata(&file) {
        return Err(format!(
            "{} holds no cluster: {}: {error}; start one with nucdb quickstart --dir",
            dir.display(),
            file.display()
        ));
    }
    dir.canonicalize().map_err(|e| format!("{}: {e}", dir.display()))
}

fn check_writable(dir: &Path) -> Result<(), String> {
    let probe = dir.join(".nucdb-write-test");
    fs::write(&probe, b"x").map_err(|e| format!("--dir {} cannot be written: {e}", dir.display()))?;
    // Left behind it would only be a file of one byte.
    let _ = fs::remove_file(&probe);
    Ok(())
}

/// Ports that are free now, all different because all are held until the last is found.
fn free_ports(count: usize) -> Result<Vec<u16>, String> {
    let held: Result<Vec<TcpListener>, _> = (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect();
    let held = held.map_err(|e| format!("no free port for a data node: {e}"))?;
    held.iter().map(|l| l.local_addr().map(|a| a.port()).map_err(|e| e.to_string())).collect()
}

fn config_ini(dir: &Path, ports: &Ports, replicas: u16, data_memory: Option<&str>) -> String {
    let dir = dir.display();
    let mut text = format!(
        "# Written by nucdb quickstart; yours to edit. Changes take effect when all data nodes are stopped.\n\
         [ndbd default]\nNoOfReplicas={replicas}\n"
    );
    if let Some(memory) = data_memory {
        text.push_str(&format!("DataMemory={memory}\n"));
    }
    text.push_str(&format!(
        "\n[ndb_mgmd]\nNodeId=145\nHostName=127.0.0.1\nPortNumber={}\nDataDir={dir}/mgmd\n",
        ports.mgm
    ));
    for (id, port) in &ports.data {
        text.push_str(&format!(
            "\n[ndbd]\nNodeId={id}\nHostName=127.0.0.1\nServerPort={port}\nDataDir={dir}/datanode{id}\n"
        ));
    }
    text.push_str("\n# The SQL node, and free places for programs that use the native API.\n");
    for id in 150..158 {
        text.push_str(&format!("[api]\nNodeId={id}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(dir: &Path) -> Arguments {
        Arguments {
            dir: dir.to_path_buf(),
            detach: true,
            data_nodes: Some(4),
            replicas: Some(2),
            mgm_port: Some(0),
            sql_port: Some(0),
            data_memory: Some("50M".into()),
            single_process: false,
        }
    }

    #[test]
    fn a_new_folder_holds_a_configuration_that_parses_and_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = arguments(&folder.path().join("new/cluster"));
        wanted.mgm_port = Some(21999);
        let (layout, known) = Layout::open_or_create(&wanted).unwrap();
        assert!(!known);
        let text = fs::read(layout.config_file()).unwrap();
        let loaded = config::parse("config.ini", &text).unwrap();
        assert_eq!(loaded.config.data_nodes.len(), 4);
        assert_eq!(
            layout.node_names(),
            ["mgmd", "datanode1", "datanode2", "datanode3", "datanode4", "sqlnode"]
        );
        assert!(Layout::open_or_create(&wanted).unwrap_err().contains("--data-memory"));
        wanted.data_memory = None;
        let (again, known) = Layout::open_or_create(&wanted).unwrap();
        assert!(known && again.ports == layout.ports);
        wanted.replicas = Some(1);
        assert!(Layout::open_or_create(&wanted).unwrap_err().contains("--replicas 2"));
        wanted.replicas = None;
        let held = layout.lock().unwrap();
        assert!(layout.lock().unwrap_err().contains("another quickstart"));
        drop(held);
        wanted.mgm_port = Some(1);
        assert!(Layout::open_or_create(&wanted).unwrap_err().contains("--mgm-port 21999"));
    }

    #[test]
    fn an_edited_config_ini_is_the_truth_about_ports_and_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = arguments(&folder.path().join("c"));
        wanted.mgm_port = Some(21997);
        let (layout, _) = Layout::open_or_create(&wanted).unwrap();
        let text = fs::read_to_string(layout.config_file()).unwrap();
        let edited = text.replace("PortNumber=21997", "PortNumber=21998").replace("NodeId=4", "NodeId=9");
        fs::write(layout.config_file(), edited).unwrap();
        (wanted.data_memory, wanted.mgm_port) = (None, Some(21998));
        let (again, known) = Layout::open_or_create(&wanted).unwrap();
        assert!(known);
        assert_eq!(again.ports.mgm, 21998);
        assert_eq!(again.node_names()[1..5], ["datanode1", "datanode2", "datanode3", "datanode9"]);
        fs::write(layout.config_file(), "[ndbd]\nNonsense=1\n").unwrap();
        let refused = Layout::open_or_create(&wanted).unwrap_err();
        assert!(refused.contains("Nonsense") && refused.contains("config.ini"), "{refused}");
        assert!(cluster_folder(&wanted.dir).is_ok(), "what runs can be stopped all the same");
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(Layout::open_or_create(&arguments(&file)).unwrap_err().contains("is a file"));
        assert!(Layout::open_or_create(&arguments(folder.path())).unwrap_err().contains("other things"));
        let mut odd = arguments(&folder.path().join("odd"));
        odd.data_nodes = Some(3);
        assert!(Layout::open_or_create(&odd).unwrap_err().contains("multiple"));
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut port = arguments(&folder.path().join("taken"));
        port.sql_port = Some(taken.local_addr().unwrap().port());
        assert!(Layout::open_or_create(&port).unwrap_err().contains("--sql-port"));
        assert!(Layout::open(folder.path()).unwrap_err().contains("no cluster"));
    }
}
