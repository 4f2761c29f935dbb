//! Server: listens on the MySQL port and runs one task for each client.
//!
//! Role: accept, admit or refuse by the connection limit, and hand over to [`super::connection`]. Failing
//! to accept (no file descriptors left) is logged and tried again; it never ends the server. On shutdown
//! the listener closes first and every connection is asked to end; whoever does not within the grace period
//! is dropped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::auth::AuthPlugin;
use super::connection;
use super::constants::{Capabilities, StatusFlags};
use super::processes::Processes;
use super::response::encode_err;
use super::session::SessionFactory;
use super::statements::StatementQuota;
use super::tls::{self, TlsError};
use crate::error::{ErrorCode, MySqlError};

/// The version this server reports: clients look for `8.0`.
pub const SERVER_VERSION: &str = concat!("8.0.40-nucdb-", env!("CARGO_PKG_VERSION"));

/// The limits and habits of the MySQL port; the names are those of MySQL's system variables.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The most connections at one time.
    pub max_connections: usize,
    /// The largest packet a client may send, in bytes.
    pub max_allowed_packet: usize,
    /// The most prepared statements of all sessions together.
    pub max_prepared_stmt_count: usize,
    /// The most prepared statements of one session.
    pub max_session_prepared_stmt_count: usize,
    /// How long a login may take.
    pub connect_timeout: Duration,
    /// How long a client may pause inside a packet.
    pub net_read_timeout: Duration,
    /// How long a client may leave results unread.
    pub net_write_timeout: Duration,
    /// Where the TLS certificate is kept; without it one is made for each start.
    pub tls_directory: Option<PathBuf>,
    /// Whether TLS is offered.
    pub tls: bool,
    /// The login method offered first.
    pub default_authentication_plugin: AuthPlugin,
    /// How long connections get to end at shutdown.
    pub shutdown_grace: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: 151,
            max_allowed_packet: 64 << 20,
            max_prepared_stmt_count: 16_382,
            max_session_prepared_stmt_count: 4_096,
            connect_timeout: Duration::from_secs(10),
            net_read_timeout: Duration::from_secs(30),
            net_write_timeout: Duration::from_secs(60),
            tls_directory: None,
            tls: true,
            default_authentication_plugin: AuthPlugin::CachingSha2Password,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// What all connections of a server share.
pub(super) struct Shared<F> {
    pub(super) factory: F,
    pub(super) config: ServerConfig,
    pub(super) processes: Arc<Processes>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) quota: Arc<StatementQuota>,
}

impl<F> Shared<F> {
    /// What this server offers to do.
    pub(super) fn capabilities(&self) -> Capabilities {
        Capabilities::LONG_PASSWORD
            .with(Capabilities::FOUND_ROWS)
            .with(Capabilities::LONG_FLAG)
            .with(Capabilities::CONNECT_WITH_DB)
            .with(Capabilities::IGNORE_SPACE)
            .with(Capabilities::PROTOCOL_41)
            .with(Capabilities::INTERACTIVE)
            .with(Capabilities::TRANSACTIONS)
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::MULTI_STATEMENTS)
            .with(Capabilities::MULTI_RESULTS)
            .with(Capabilities::PS_MULTI_RESULTS)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::CONNECT_ATTRS)
            .with(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
            .with(Capabilities::DEPRECATE_EOF)
            .with_if(self.tls.is_some(), Capabilities::SSL)
    }
}

/// Why a server could not be started.
#[derive(Debug)]
pub enum ServerError {
    /// The address could not be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        cause: std::io::Error,
    },
    /// TLS could not be set up.
    Tls(TlsError),
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen { address, cause } => {
                write!(f, "cannot listen on {address} for MySQL clients: {cause}")
            }
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {}

/// A listening server.
pub struct Server<F> {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared<F>>,
    stop: Arc<Notify>,
}

/// Stops a running server.
#[derive(Debug, Clone)]
pub struct StopHandle {
    stop: Arc<Notify>,
}

impl StopHandle {
    /// Asks the server to stop; [`Server::run`] returns once it has.
    pub fn stop(&self) {
        self.stop.notify_one();
    }
}

impl<F: SessionFactory> Server<F> {
    /// Listens on `address`; port 0 picks a free one.
    pub async fn bind(address: SocketAddr, config: ServerConfig, factory: F) -> Result<Self, ServerError> {
        let tls = if config.tls {
            Some(tls::acceptor(config.tls_directory.as_deref()).map_err(ServerError::Tls)?)
        } else {
            None
        };
        let listener =
            TcpListener::bind(address).await.map_err(|cause| ServerError::Listen { address, cause })?;
        let address = listener.local_addr().map_err(|cause| ServerError::Listen { address, cause })?;
        let processes = Arc::new(Processes::new(config.max_connections));
        let quota = Arc::new(StatementQuota::new(config.max_prepared_stmt_count));
        let shared = Arc::new(Shared { factory, config, processes, tls, quota });
        Ok(Self { listener, address, shared, stop: Arc::new(Notify::new()) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The factory its sessions come from.
    pub fn factory(&self) -> &F {
        &self.shared.factory
    }

    /// The process list.
    pub fn processes(&self) -> &Arc<Processes> {
        &self.shared.processes
    }

    /// A handle that stops this server.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { stop: Arc::clone(&self.stop) }
    }

    /// Serves clients until it is stopped.
    pub async fn run(self) {
        let Self { listener, shared, stop, .. } = self;
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.notified() => break,
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let _ = stream.set_nodelay(true);
                        admit(&shared, &mut tasks, stream, peer);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a MySQL client; trying again");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
        drop(listener);
        shared.processes.kill_all();
        let grace = shared.config.shutdown_grace;
        let _ = tokio::time::timeout(grace, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

/// The most refusals of surplus clients in progress at one time; beyond it they are dropped without a word.
const REFUSALS_MAX: usize = 64;

fn admit<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    tasks: &mut JoinSet<()>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    match shared.processes.admit(peer.to_string()) {
        Some(guard) => {
            tasks.spawn(connection::serve(Arc::clone(shared), stream, peer, guard));
        }
        None if tasks.len() < shared.config.max_connections + REFUSALS_MAX => {
            tasks.spawn(refuse(stream));
        }
        None => drop(stream),
    }
}

/// Tells a surplus client why it cannot come in.
async fn refuse(stream: TcpStream) {
    let (_, mut output) = super::stream::split(stream, 0, Duration::from_secs(1));
    encode_err(output.encoder.begin(), &MySqlError::new(ErrorCode::ConCount), false);
    output.encoder.end();
    let _ = output.flush().await;
    output.close().await;
}

/// The state a session has before its first command.
pub(super) const INITIAL_STATUS: StatusFlags = StatusFlags::AUTOCOMMIT;
