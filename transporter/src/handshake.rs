//! Handshake: the first bytes of a link, seen from the connecting side; and what both sides check.
//!
//! ```text
//!   connecting side                       accepting side ([`crate::acceptor`])
//!   connect, send HELLO (32 bytes)  ──►   read exactly 32 bytes within 5 s; magic, version, cluster, target, role,
//!                                         and the owner's own opinion (is this node known? connected already?)
//!   read exactly 32 bytes           ◄──   HELLO_ACK: code 0 and the version both use, or an error code and close
//!   check magic, code, node, version
//! ```
//!
//! Both messages have a fixed size, so nobody reads a byte beyond them and garbage is noticed at once.
//! Whatever goes wrong ends in a typed error that names the address, and in a closed socket; nothing else
//! happens.

use crate::inproc;
use crate::link::{Link, Peer, PeerRole};
use crate::tcp::{self, SocketOptions};
use crate::wake::Wake;
use signals::hello::{CURRENT, Hello, HelloAck, MAGIC, OLDEST};
use signals::{ErrorCode, NodeId};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// Longest time a handshake may take on the accepting side.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a hello and of its ack.
pub(crate) const HELLO_BYTES: usize = size_of::<Hello>();

/// The number a cluster is told apart by: FNV-1a of its name.
#[must_use]
pub fn cluster_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The hello of node `node` to `target`. `link` is 0 between data nodes.
#[must_use]
pub fn hello(
    cluster: u32,
    node: NodeId,
    target: NodeId,
    role: PeerRole,
    link: u16,
    incarnation: u64,
) -> Hello {
    Hello {
        magic: MAGIC,
        version: CURRENT as u32,
        cluster,
        node: node.0,
        target_node: target.0,
        role: role as u8,
        spare: 0,
        link,
        spare2: 0,
        incarnation,
    }
}

/// Why there is no link.
#[derive(Debug)]
pub enum ConnectError {
    /// No connection: the name does not resolve, nobody listens, a firewall drops, no time left.
    Unreachable {
        /// Who was meant.
        address: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// Connected, but the peer did not introduce itself as it should.
    Handshake {
        /// Who was meant.
        address: String,
        /// What was wrong.
        reason: String,
    },
    /// The peer refuses.
    Refused {
        /// Who refuses.
        address: String,
        /// Its reason.
        code: ErrorCode,
    },
}

impl ConnectError {
    /// The code clients see.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } => ErrorCode::CLUSTER_FAILURE,
            Self::Handshake { .. } => ErrorCode::MALFORMED_MESSAGE,
            Self::Refused { code, .. } => *code,
        }
    }
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable { address, error } => write!(f, "cannot reach {address}: {error}"),
            Self::Handshake { address, reason } => write!(f, "no usable handshake with {address}: {reason}"),
            Self::Refused { address, code } => write!(f, "{address} refuses the connection: {code}"),
        }
    }
}
impl std::error::Error for ConnectError {}

/// How to connect; [`connect`] takes the defaults.
pub struct ConnectOptions {
    /// Longest time for everything.
    pub timeout: Duration,
    /// Of the socket.
    pub socket: SocketOptions,
    /// The wake-up an in-process link shall use; `None` makes one for this link alone.
    pub wake: Option<Arc<Wake>>,
    /// Whether a node of this process is reached through rings.
    pub in_process: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self { timeout: HANDSHAKE_TIME_MAX, socket: SocketOptions::default(), wake: None, in_process: true }
    }
}

/// Connects to the node at `address` (`host:port`) and introduces itself with `hello`; blocks at most
/// `timeout` (plus the time the host name takes to resolve). A node of this process is reached through
/// rings, whatever its address.
///
/// # Errors
/// See [`ConnectError`].
pub fn connect(address: &str, hello: &Hello, timeout: Duration) -> Result<Link, ConnectError> {
    connect_with(address, hello, ConnectOptions { timeout, ..ConnectOptions::default() })
}

/// As [`connect`], with all options.
///
/// # Errors
/// See [`ConnectError`].
pub fn connect_with(address: &str, hello: &Hello, options: ConnectOptions) -> Result<Link, ConnectError> {
    let deadline = Instant::now() + options.timeout;
    let unreachable = |error| ConnectError::Unreachable { address: address.to_owned(), error };
    if options.in_process {
        let wake = match options.wake {
            Some(wake) => wake,
            None => Arc::new(Wake::new().map_err(unreachable)?),
        };
        if let Some(answer) = inproc::request(*hello, wake) {
            return connect_inside(address, &answer, options.timeout);
        }
    }
    let mut stream = tcp::connect(address, deadline).map_err(unreachable)?;
    let ack = exchange(&mut stream, hello, deadline)
        .map_err(|reason| ConnectError::Handshake { address: address.to_owned(), reason })?;
    check_ack(&ack, hello, address)?;
    tcp::prepare(&stream, options.socket).map_err(unreachable)?;
    let peer = Peer {
        node: NodeId(ack.node),
        role: PeerRole::DataNode,
        link: hello.link,
        incarnation: ack.incarnation,
        version: ack.version,
        address: address.to_owned(),
    };
    Ok(Link::tcp(stream, peer))
}

fn connect_inside(
    address: &str,
    answer: &std::sync::mpsc::Receiver<inproc::Reply>,
    timeout: Duration,
) -> Result<Link, ConnectError> {
    let address = address.to_owned();
    match answer.recv_timeout(timeout) {
        Ok(Ok((mut link, incarnation))) => {
            link.peer.incarnation = incarnation;
            Ok(link)
        }
        Ok(Err(code)) => Err(ConnectError::Refused { address, code: code_of(code) }),
        Err(_) => Err(ConnectError::Unreachable { address, error: io::ErrorKind::TimedOut.into() }),
    }
}

/// Sends the hello and reads exactly one ack.
fn exchange(stream: &mut TcpStream, hello: &Hello, deadline: Instant) -> Result<HelloAck, String> {
    let left = |deadline: Instant| {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err("no answer in time".to_owned()) } else { Ok(left) }
    };
    let text = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    stream.set_nodelay(true).map_err(text)?;
    stream.set_write_timeout(Some(left(deadline)?)).map_err(text)?;
    stream.write_all(hello.as_bytes()).map_err(text)?;
    let mut bytes = [0u8; HELLO_BYTES];
    let mut got = 0;
    while got < HELLO_BYTES {
        stream.set_read_timeout(Some(left(deadline)?)).map_err(text)?;
        match stream.read(&mut bytes[got..]) {
            Ok(0) => return Err("the peer closed the connection".to_owned()),
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(text(error)),
        }
    }
    HelloAck::read_from_bytes(&bytes).map_err(|_| "ack of impossible size".to_owned())
}

fn code_of(code: u32) -> ErrorCode {
    u16::try_from(code).map_or(ErrorCode::MALFORMED_MESSAGE, ErrorCode)
}

fn check_ack(ack: &HelloAck, hello: &Hello, address: &str) -> Result<(), ConnectError> {
    let bad = |reason: String| Err(ConnectError::Handshake { address: address.to_owned(), reason });
    if ack.magic != MAGIC {
        return bad("not a nucdb data node: wrong magic".to_owned());
    }
    if ack.code != 0 {
        return Err(ConnectError::Refused { address: address.to_owned(), code: code_of(ack.code) });
    }
    if ack.node != hello.target_node {
        return bad(format!("node {} answers, node {} was meant", ack.node, hello.target_node));
    }
    if !(OLDEST as u32..=CURRENT as u32).contains(&ack.version) {
        return bad(format!("the peer wants protocol version {}", ack.version));
    }
    Ok(())
}
