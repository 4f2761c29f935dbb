//! The SQL node: what all sessions share, and the daemon's entry.
//!
//! It joins the cluster in the background and keeps trying: clients can log in at once, and statements that
//! need the cluster answer error 157 until it is there. Once joined, `ndbapi` reconnects by itself.
//! Meanings of tables are cached by table id and version, so a table that another node has changed is read
//! anew.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ndbapi::{ClusterConnection, ConnectOptions};
use signals::ErrorCode as Ndb;

use super::SqlSession;
use super::sequences::Sequences;
use crate::catalog::TableMeta;
use crate::exec::errors::to_mysql;
use crate::exec::store::Cluster;
use crate::protocol::{Accounts, LoginInfo, Server, ServerConfig, ServerError, SessionFactory};
use crate::value::{ErrorCode, MySqlError, Result};

/// The most tables whose meaning is kept.
const TABLES_CACHED_MAX: usize = 2_000;
/// The pause between attempts to join the cluster.
const JOIN_PAUSE: Duration = Duration::from_millis(500);

/// How long a statement waits while no data node is connected, before it fails with 157: long enough for a
/// link that is being made again, short enough for a client that has a user waiting.
const AWAY_WAIT: Duration = Duration::from_millis(500);

/// How a SQL node is run.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The management servers, `host:port,...`.
    pub connect_string: String,
    /// Where MySQL clients connect.
    pub bind_address: SocketAddr,
    /// The port as `@@port` tells it; taken from the listener when it is started.
    pub port: u16,
    /// Where the TLS certificate is kept.
    pub data_dir: Option<PathBuf>,
    /// Limits of the MySQL port.
    pub server: ServerConfig,
    /// The most bytes of rows one statement may keep.
    pub statement_memory: usize,
}

impl NodeConfig {
    /// The usual settings.
    pub fn new(connect_string: impl Into<String>, bind_address: SocketAddr) -> Self {
        Self {
            connect_string: connect_string.into(),
            bind_address,
            port: bind_address.port(),
            data_dir: None,
            server: ServerConfig::default(),
            statement_memory: 256 << 20,
        }
    }
}

/// What sessions share.
pub struct SqlNode {
    /// The configuration.
    pub config: NodeConfig,
    /// Who may log in.
    pub accounts: Accounts,
    /// AUTO_INCREMENT ranges.
    pub sequences: Sequences,
    cluster: RwLock<Option<Cluster>>,
    tables: Mutex<HashMap<(u32, u32), Arc<TableMeta>>>,
}

impl SqlNode {
    /// A node that has not joined yet.
    pub fn new(config: NodeConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            accounts: Accounts::with_root(),
            sequences: Sequences::default(),
            cluster: RwLock::new(None),
            tables: Mutex::default(),
        })
    }

    /// The cluster.
    ///
    /// # Errors
    /// 157: it has not been joined yet.
    pub fn cluster(&self) -> Result<Cluster> {
        let cluster = self.cluster.read().unwrap_or_else(PoisonError::into_inner);
        cluster.clone().ok_or_else(|| {
            let text = "Could not connect to storage engine: the SQL node has not joined the cluster yet";
            MySqlError::text(ErrorCode::NoStorageConnection, text)
        })
    }

    /// Takes the cluster into use.
    pub fn set_cluster(&self, cluster: Cluster) {
        *self.cluster.write().unwrap_or_else(PoisonError::into_inner) = Some(cluster);
    }

    /// A table's meaning.
    ///
    /// # Errors
    /// 1146: there is no such table.
    pub async fn table(&self, schema: &str, name: &str) -> Result<Arc<TableMeta>> {
        let cluster = self.cluster()?;
        let handle = match cluster.table(schema, name).await {
            Ok(handle) => handle,
            Err(e)
                if matches!(e.code(), Ndb::TABLE_NOT_FOUND | Ndb::NO_SUCH_TABLE | Ndb::NO_SUCH_DATABASE) =>
            {
                return Err(MySqlError::no_such_table(schema, name));
            }
            Err(e) => return Err(to_mysql(&e, name)),
        };
        let key = (handle.id().0, handle.version().0);
        if let Some(meta) = self.tables.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && meta.handle.as_ref().is_some_and(|known| Arc::ptr_eq(known, &handle))
        {
            return Ok(Arc::clone(meta));
        }
        let meta = TableMeta::load(handle.def(), Some(handle.clone()))?;
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= TABLES_CACHED_MAX {
            tables.clear();
        }
        tables.insert(key, Arc::clone(&meta));
        Ok(meta)
    }

    /// Joins the cluster, trying for as long as it takes.
    async fn join(self: Arc<Self>) {
        let mut complaint = String::new();
        loop {
            let options = ConnectOptions::new(self.config.connect_string.clone())
                .program("nucdb-sqlnode")
                .wait(AWAY_WAIT);
            match ClusterConnection::open(options).await {
                Ok(connection) => {
                    tracing::info!(node = connection.node_id().0, "joined the cluster");
                    self.set_cluster(Cluster::Ndb(connection));
                    return;
                }
                Err(error) => {
                    // The same reason every second would bury everything else.
                    let reason = error.to_string();
                    if reason != complaint {
                        tracing::warn!(%error, "cannot join the cluster yet; trying again");
                        complaint = reason;
                    }
                    tokio::time::sleep(JOIN_PAUSE).await;
                }
            }
        }
    }
}

/// Makes sessions.
pub struct Sessions(pub Arc<SqlNode>);

impl SessionFactory for Sessions {
    type Session = SqlSession;

    fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    async fn open(&self, login: LoginInfo) -> Result<SqlSession> {
        Ok(SqlSession::new(Arc::clone(&self.0), login))
    }
}

/// A SQL node that listens and has not begun to serve.
pub struct Node {
    server: Server<Sessions>,
    node: Arc<SqlNode>,
}

impl Node {
    /// Listens for clients.
    ///
    /// # Errors
    /// The address is taken, or TLS cannot be set up.
    pub async fn bind(mut config: NodeConfig) -> std::result::Result<Self, ServerError> {
        config.server.tls_directory.clone_from(&config.data_dir);
        let address = config.bind_address;
        let server_config = config.server.clone();
        let node = SqlNode::new(config);
        let server = Server::bind(address, server_config, Sessions(Arc::clone(&node))).await?;
        Ok(Self { server, node })
    }

    /// The address clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Stops [`Self::run`].
    pub fn stop_handle(&self) -> crate::protocol::StopHandle {
        self.server.stop_handle()
    }

    /// What sessions share.
    pub fn shared(&self) -> Arc<SqlNode> {
        Arc::clone(&self.node)
    }

    /// Serves clients until stopped, joining the cluster meanwhile.
    pub async fn run(self) {
        let join = tokio::spawn(Arc::clone(&self.node).join());
        self.server.run().await;
        join.abort();
    }
}
