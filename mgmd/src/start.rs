//! From options to a running server, or to one clear reason why not.
//!
//! In order: the file is read and must be without mistakes; the server finds its own section; its data
//! directory must be a directory it can write to; the stored configuration is read; the log is opened; the
//! port is taken.

use crate::cluster_log::ClusterLog;
use crate::config_state::{ConfigState, FileState, read_file};
use crate::server::Server;
use crate::store;
use config::{ClusterConfig, MgmNodeConfig};
use signals::ids::NodeId;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use transporter::mgm_link::MgmListener;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct MgmdOptions {
    /// `config.ini`.
    pub config_file: PathBuf,
    /// Instead of the DataDir the file gives.
    pub data_dir: Option<PathBuf>,
    /// Which `[ndb_mgmd]` section is ours; needed when there are several.
    pub node_id: Option<NodeId>,
    /// Forget the stored configuration and take the file's.
    pub initial: bool,
    /// How long data nodes that are up may take to come back before a changed file is taken.
    pub grace: Duration,
}

impl MgmdOptions {
    /// The usual options for a file.
    pub fn new(config_file: impl Into<PathBuf>) -> MgmdOptions {
        MgmdOptions {
            config_file: config_file.into(),
            data_dir: None,
            node_id: None,
            initial: false,
            grace: Duration::from_secs(2),
        }
    }
}

/// Why a server cannot start: one line or the list of the file's mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// A running management server. Dropping it lets it run on; [`Mgmd::stop`] ends it.
#[derive(Debug)]
pub struct Mgmd {
    server: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
    warnings: Vec<String>,
}

impl Mgmd {
    /// Starts a server inside the current tokio runtime.
    pub async fn start(options: &MgmdOptions) -> Result<Mgmd, StartError> {
        let loaded = read_file(&options.config_file).map_err(StartError)?;
        let own = own_section(&loaded.config, options.node_id)?.clone();
        let (data_dir, setting) = match &options.data_dir {
            Some(dir) => (dir.clone(), "--data-dir".to_owned()),
            None => {
                let setting = format!(
                    "DataDir of [ndb_mgmd] node {} in {}",
                    own.node_id,
                    options.config_file.display()
                );
                (PathBuf::from(&own.data_dir), setting)
            }
        };
        check_data_dir(&data_dir, &setting)?;
        let store_path = store::path(&data_dir, own.node_id);
        let stored = match store::read(&store_path) {
            Ok(stored) => stored,
            Err(_) if options.initial => None,
            Err(error) => {
                let hint = "start with --initial to take the configuration from the file again";
                return Err(StartError(format!("{}: {error}; {hint}", store_path.display())));
            }
        };
        let log = ClusterLog::open(&data_dir, own.node_id)
            .map_err(|e| StartError(format!("cluster log in {} ({setting}): {e}", data_dir.display())))?;
        let file = options.config_file.clone();
        let state = ConfigState::new(loaded.config, stored, options.initial, file, store_path.clone())
            .map_err(|e| {
                StartError(format!("{} ({setting}): cannot be written: {e}", store_path.display()))
            })?;
        let listener = listen(&own).await?;
        let address = listener.local_address().map_err(|e| StartError(e.to_string()))?;
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        let server = Server::new(own.node_id, address, log, state);
        server.tell_start(options);
        tokio::spawn(Arc::clone(&server).decide(options.grace));
        let task = tokio::spawn(Arc::clone(&server).run(listener));
        Ok(Mgmd { server, task, warnings })
    }

    /// The address listened on.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The server's node id.
    pub fn node_id(&self) -> NodeId {
        self.server.node_id
    }

    /// The active configuration.
    pub fn config(&self) -> Arc<ClusterConfig> {
        Arc::clone(self.server.state().slots.config())
    }

    /// What the operator should know about the file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Where the cluster log is.
    pub fn cluster_log(&self) -> PathBuf {
        self.server.log.path().to_owned()
    }

    /// Waits until the server has stopped (SHUTDOWN, or STOP of its node id).
    ///
    /// # Panics
    /// If the server did: a bug of ours must not look like an operator's order.
    pub async fn stopped(&mut self) {
        if let Err(error) = (&mut self.task).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    /// Stops it: every link is closed, the log is written.
    pub async fn stop(mut self) {
        self.server.is_stopping.send_replace(true);
        self.stopped().await;
    }
}

impl Server {
    /// The first lines of the log.
    fn tell_start(&self, options: &MgmdOptions) {
        let state = self.state();
        let release = env!("CARGO_PKG_VERSION");
        self.log.info(&format!(
            "Management server {} (release {release}, pid {}) listens on {}, configuration generation {} from {}",
            self.node_id,
            std::process::id(),
            self.address,
            state.config.active().generation,
            options.config_file.display()
        ));
        if !matches!(state.config.file(), FileState::Same) {
            for line in state.config.differences() {
                self.log.info(&line);
            }
        }
    }
}

/// Finds the server's own section.
fn own_section(config: &ClusterConfig, wanted: Option<NodeId>) -> Result<&MgmNodeConfig, StartError> {
    let ids = || config.mgm_nodes.iter().map(|n| n.node_id.to_string()).collect::<Vec<_>>().join(", ");
    match (wanted, config.mgm_nodes.as_slice()) {
        (Some(id), _) => config.mgm_node(id).ok_or_else(|| {
            StartError(format!(
                "--ndb-nodeid={id} is no management server of the configuration; those are {}",
                ids()
            ))
        }),
        (None, [only]) => Ok(only),
        (None, _) => Err(StartError(format!(
            "there are several management servers ({}): say which with --ndb-nodeid",
            ids()
        ))),
    }
}

/// The data directory must be there and take files; the message names it and where it was set.
fn check_data_dir(dir: &Path, setting: &str) -> Result<(), StartError> {
    let shown = dir.display();
    let bad = |why: String| Err(StartError(format!("data directory {shown} ({setting}): {why}")));
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return bad("does not exist; create it or correct the setting".to_owned());
        }
        Err(error) => return bad(error.to_string()),
        Ok(found) if !found.is_dir() => return bad("is a file, not a directory".to_owned()),
        Ok(_) => {}
    }
    let probe = dir.join(format!(".ndb_write_test.{}", std::process::id()));
    if let Err(error) = std::fs::write(&probe, b"") {
        return bad(format!("cannot be written to: {error}"));
    }
    let _ = std::fs::remove_file(&probe);
    Ok(())
}

/// Takes the port, on the address of our own section's host.
async fn listen(own: &MgmNodeConfig) -> Result<MgmListener, StartError> {
    let shown = own.address();
    let host = own.host_name.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, own.port_number)).await;
    let mut addresses: Vec<SocketAddr> = found
        .map_err(|e| StartError(format!("HostName of [ndb_mgmd] node {}: {shown}: {e}", own.node_id)))?
        .collect();
    // IPv4 first, as clients do: hosts without IPv6 are ordinary.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let address = addresses.first().copied().ok_or_else(|| StartError(format!("{shown} has no address")))?;
    MgmListener::bind(address).map_err(|e| StartError(e.detail))
}
