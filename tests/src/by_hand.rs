//! A small cluster whose processes a story starts and kills one by one: one management server, two data nodes
//! with two replicas, one SQL node.

use crate::Sql;
use crate::cluster::binary;
use crate::group::Group;
use crate::program::free_port;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// See the module.
pub struct ByHand {
    data_nodes: Vec<Option<Group>>,
    /// The SQL node and the management server, which live as long as the story.
    others: Vec<Group>,
    folder: TempDir,
    mgm_port: u16,
    sql_port: u16,
}

impl ByHand {
    /// Starts everything and waits until it answers SQL.
    ///
    /// # Panics
    /// If it does not within a minute.
    #[must_use]
    pub fn start() -> ByHand {
        let folder = TempDir::with_prefix("nucdb-story-").unwrap_or_else(|e| panic!("no folder: {e}"));
        let (mgm_port, sql_port, one, two) = (free_port(), free_port(), free_port(), free_port());
        let dir = folder.path().display();
        let text = format!(
            "[ndbd default]\nNoOfReplicas=2\nDataMemory=64M\n\
             [ndb_mgmd]\nNodeId=145\nHostName=127.0.0.1\nPortNumber={mgm_port}\nDataDir={dir}/mgmd\n\
             [ndbd]\nNodeId=1\nHostName=127.0.0.1\nServerPort={one}\nDataDir={dir}/datanode1\n\
             [ndbd]\nNodeId=2\nHostName=127.0.0.1\nServerPort={two}\nDataDir={dir}/datanode2\n\
             [api]\nNodeId=150\n[api]\nNodeId=151\n"
        );
        for name in ["mgmd", "datanode1", "datanode2"] {
            fs::create_dir(folder.path().join(name)).unwrap_or_else(|e| panic!("no folder for {name}: {e}"));
        }
        let config = folder.path().join("config.ini");
        fs::write(&config, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", config.display()));
        let (others, data_nodes) = (Vec::new(), vec![None, None]);
        let mut cluster = ByHand { data_nodes, others, folder, mgm_port, sql_port };
        let mgmd = cluster.spawn("mgmd", &["mgmd", "--config-file", &config.display().to_string()]);
        cluster.others.push(mgmd);
        cluster.start_data_nodes();
        let (mgm, port) = (cluster.connect_string(), sql_port.to_string());
        let sqlnode = cluster.spawn("sqlnode", &["sqlnode", "--connect-string", &mgm, "--port", &port]);
        cluster.others.push(sqlnode);
        cluster.wait_for_sql();
        cluster
    }

    fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.mgm_port)
    }

    fn spawn(&self, name: &str, arguments: &[&str]) -> Group {
        let log = self.folder.path().join(format!("{name}.log"));
        let output = File::options().append(true).create(true).open(&log);
        let output = output.unwrap_or_else(|e| panic!("cannot write {}: {e}", log.display()));
        let errors = output.try_clone().unwrap_or_else(|e| panic!("cannot write {}: {e}", log.display()));
        let mut command = Command::new(binary());
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        Group::spawn(command.current_dir(self.folder.path()))
    }

    /// Starts the data nodes.
    pub fn start_data_nodes(&mut self) {
        let mgm = self.connect_string();
        for index in 0..self.data_nodes.len() {
            let id = (index + 1).to_string();
            let arguments = ["datanode", "--connect-string", &mgm, "--ndb-nodeid", &id];
            self.data_nodes[index] = Some(self.spawn(&format!("datanode{id}"), &arguments));
        }
    }

    /// Kills the data nodes, all at once.
    pub fn kill_data_nodes(&mut self) {
        self.data_nodes.iter_mut().for_each(|node| *node = None);
    }

    /// Waits until statements that need the cluster are answered.
    ///
    /// # Panics
    /// If they are not within a minute.
    pub fn wait_for_sql(&self) {
        crate::cluster::wait_for_sql(&self.sql(), || {});
    }

    /// The SQL node.
    #[must_use]
    pub fn sql(&self) -> Sql {
        Sql::new(self.sql_port)
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        crate::cluster::append_logs(self.folder.path(), 1, &mut text);
        text
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        // The processes end before the folder is removed.
        self.kill_data_nodes();
        self.others.clear();
    }
}
