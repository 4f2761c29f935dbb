//! Acceptor: the accepting side of the handshake, for sockets and for nodes of the same process.
//!
//! One thread calls [`Acceptor::poll`] again and again; it sleeps until somebody connects or says
//! something, and returns the links that came about. A connecting peer gets [`HANDSHAKE_TIME_MAX`] for its
//! 32 bytes of hello; peers that dawdle, send garbage, or are refused get an error code and are closed, and
//! one rate-limited line in the log. At most [`PENDING_MAX`] peers may be in that state; the one that has
//! waited longest makes room for the next.
//!
//! What it never does: read beyond the hello, or decide alone who may connect - the owner's `admit` does.

use crate::handshake::{HANDSHAKE_TIME_MAX, HELLO_BYTES};
use crate::inproc;
use crate::link::{Link, Peer, PeerRole};
use crate::tcp::{self, SocketOptions};
use crate::wake::Wake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signals::hello::{CURRENT, Hello, HelloAck, MAGIC};
use signals::{ErrorCode, NodeId};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// Most peers that may be connected without having introduced themselves.
pub const PENDING_MAX: usize = 128;
/// Lines about refused peers per second.
const LOG_LINES_MAX: u32 = 5;
/// After the process ran out of descriptors, nobody is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The owner's decision about a valid hello.
pub enum Admission {
    /// Welcome; an in-process link uses this wake-up on the accepting side, or one of its own.
    Accept(Option<Arc<Wake>>),
    /// No, and why.
    Refuse(ErrorCode, String),
}

/// Who the accepting node is.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// See [`crate::cluster_hash`].
    pub cluster: u32,
    /// The node.
    pub node: NodeId,
    /// Its incarnation.
    pub incarnation: u64,
}

struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    bytes: [u8; HELLO_BYTES],
    got: usize,
    deadline: Instant,
}

/// What became of a pending peer.
enum Progress {
    Waiting,
    Done(Option<Link>),
}

/// See the module.
pub struct Acceptor {
    identity: Identity,
    socket: SocketOptions,
    listener: TcpListener,
    inside: Option<inproc::Listener>,
    pending: Vec<Pending>,
    wake: Arc<Wake>,
    paused_until: Option<Instant>,
    log: LogLimit,
}

impl Acceptor {
    /// Listens on `address`; with `in_process` also for nodes of this process.
    ///
    /// # Errors
    /// The address is taken or not of this machine, or the node runs in this process already.
    pub fn bind(
        address: &str,
        identity: Identity,
        socket: SocketOptions,
        in_process: bool,
    ) -> io::Result<Self> {
        let inside = match in_process {
            true => Some(inproc::Listener::new(identity.cluster, identity.node)?),
            false => None,
        };
        Ok(Self {
            identity,
            socket,
            listener: tcp::listen(address)?,
            inside,
            pending: Vec::new(),
            wake: Arc::new(Wake::new()?),
            paused_until: None,
            log: LogLimit::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Notifying it makes [`Self::poll`] return at once.
    #[must_use]
    pub fn wake(&self) -> Arc<Wake> {
        self.wake.clone()
    }

    /// Waits at most `timeout` for something to happen and returns the new links.
    pub fn poll(&mut self, timeout: Duration, mut admit: impl FnMut(&Hello, &str) -> Admission) -> Vec<Link> {
        self.sleep(timeout);
        self.wake.drain();
        let mut links = Vec::new();
        self.accept_inside(&mut links, &mut admit);
        self.accept_outside();
        let mut index = 0;
        while index < self.pending.len() {
            match self.advance(index, &mut admit) {
                Progress::Waiting => index += 1,
                Progress::Done(link) => {
                    self.pending.swap_remove(index);
                    links.extend(link);
                }
            }
        }
        links
    }

    fn sleep(&mut self, timeout: Duration) {
        let now = Instant::now();
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        let deadlines = self.pending.iter().map(|p| p.deadline).chain(self.paused_until);
        let next = deadlines.min().map_or(timeout, |at| at.saturating_duration_since(now).min(timeout));
        let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        if self.paused_until.is_none() {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        if let Some(inside) = &self.inside {
            fds.push(PollFd::new(inside.wake(), PollFlags::IN));
        }
        fds.extend(self.pending.iter().map(|p| PollFd::new(&p.stream, PollFlags::IN)));
        let seconds = i64::try_from(next.as_secs()).unwrap_or(i64::MAX);
        let next = Timespec { tv_sec: seconds, tv_nsec: i64::from(next.subsec_nanos()) };
        // An interrupted wait is as good as one that is over.
        let _ = poll(&mut fds, Some(&next));
    }

    fn accept_inside(&mut self, links: &mut Vec<Link>, admit: &mut impl FnMut(&Hello, &str) -> Admission) {
        let Some(inside) = &self.inside else { return };
        inside.wake().drain();
        while let Some(request) = inside.next_request() {
            let address = "this process";
            let verdict = judge(&request.hello, self.identity, address, admit);
            let wake = match verdict {
                Ok(Some(wake)) => Ok(wake),
                Ok(None) => Wake::new().map(Arc::new).map_err(|e| (ErrorCode::SEND_FAILED, e.to_string())),
                Err(refusal) => Err(refusal),
            };
            match wake {
                Ok(wake) => {
                    let there = peer_of(&request.hello, address.to_owned());
                    let here = Peer {
                        node: self.identity.node,
                        role: PeerRole::DataNode,
                        address: address.to_owned(),
                        ..there.clone()
                    };
                    links.extend(request.accept(wake, here, there, self.identity.incarnation));
                }
                Err((code, reason)) => {
                    self.log.refused(address, &reason);
                    request.refuse(u32::from(code.0));
                }
            }
        }
    }

    fn accept_outside(&mut self) {
        while self.paused_until.is_none() {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.pending.len() >= PENDING_MAX {
                        let oldest = self.pending.remove(0);
                        self.log.refused(oldest.address, "too many peers that do not introduce themselves");
                    }
                    let deadline = Instant::now() + HANDSHAKE_TIME_MAX;
                    self.pending.push(Pending { stream, address, bytes: [0; HELLO_BYTES], got: 0, deadline });
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.log.refused("a new peer", format_args!("accept failed: {error}"));
                        self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                },
            }
        }
    }

    /// Reads what a pending peer has said; answers when its hello is complete.
    fn advance(&mut self, index: usize, admit: &mut impl FnMut(&Hello, &str) -> Admission) -> Progress {
        let Some(peer) = self.pending.get_mut(index) else { return Progress::Done(None) };
        while peer.got < HELLO_BYTES {
            match peer.stream.read(&mut peer.bytes[peer.got..]) {
                Ok(0) => {
                    self.log.refused(peer.address, "closed before its hello was complete");
                    return Progress::Done(None);
                }
                Ok(count) => peer.got += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.log.refused(peer.address, error);
                    return Progress::Done(None);
                }
            }
        }
        // Garbage is noticed at its first byte, not when 32 of them are there.
        let magic = peer.got.min(MAGIC.len());
        let garbage = peer.bytes[..magic] != MAGIC[..magic];
        if peer.got < HELLO_BYTES && !garbage {
            if Instant::now() < peer.deadline {
                return Progress::Waiting;
            }
            self.log.refused(peer.address, "no complete hello in time");
            self.answer(index, ErrorCode::MALFORMED_MESSAGE, CURRENT as u32);
            return Progress::Done(None);
        }
        Progress::Done(self.decide(index, admit))
    }

    fn decide(&mut self, index: usize, admit: &mut impl FnMut(&Hello, &str) -> Admission) -> Option<Link> {
        let peer = self.pending.get(index)?;
        let address = peer.address.to_string();
        let hello = Hello::read_from_bytes(&peer.bytes).ok()?;
        if let Err((code, reason)) = judge(&hello, self.identity, &address, admit) {
            self.log.refused(&address, reason);
            self.answer(index, code, CURRENT as u32);
            return None;
        }
        let link_peer = peer_of(&hello, address);
        if !self.answer(index, ErrorCode::NONE, link_peer.version) {
            return None;
        }
        let stream = self.pending.get(index)?.stream.try_clone().ok()?;
        tcp::prepare(&stream, self.socket).ok()?;
        Some(Link::tcp(stream, link_peer))
    }

    /// Sends the ack; a refusing one is followed by the end of the stream.
    fn answer(&mut self, index: usize, code: ErrorCode, version: u32) -> bool {
        let ack = HelloAck {
            magic: MAGIC,
            version,
            code: u32::from(code.0),
            node: self.identity.node.0,
            spare: [0; 7],
            incarnation: self.identity.incarnation,
        };
        let Some(peer) = self.pending.get_mut(index) else { return false };
        // A fresh socket has room for 32 bytes; one that has not is not worth waiting for.
        let sent = peer.stream.write(ack.as_bytes()).is_ok_and(|n| n == HELLO_BYTES);
        if code != ErrorCode::NONE {
            let _ = peer.stream.shutdown(Shutdown::Write);
        }
        sent
    }
}

fn peer_of(hello: &Hello, address: String) -> Peer {
    Peer {
        node: NodeId(hello.node),
        role: PeerRole::from_wire(hello.role).unwrap_or(PeerRole::ApiNode),
        link: hello.link,
        incarnation: hello.incarnation,
        version: hello.version.min(CURRENT as u32),
        address,
    }
}

/// Whether the hello is acceptable: the wire's rules first, then the owner's.
fn judge(
    hello: &Hello,
    identity: Identity,
    address: &str,
    admit: &mut impl FnMut(&Hello, &str) -> Admission,
) -> Result<Option<Arc<Wake>>, (ErrorCode, String)> {
    if hello.magic != MAGIC {
        return Err((ErrorCode::MALFORMED_MESSAGE, "not a nucdb data link: wrong magic".to_owned()));
    }
    if let Some(reason) = hello.invalid() {
        return Err((ErrorCode::PROTOCOL_VERSION, format!("{reason} (version {})", hello.version)));
    }
    if hello.cluster != identity.cluster {
        return Err((ErrorCode::MGM_NO_SUCH_NODE, "it belongs to another cluster".to_owned()));
    }
    if hello.target_node != identity.node.0 {
        let reason = format!("it looks for node {}, this is node {}", hello.target_node, identity.node);
        return Err((ErrorCode::MGM_NO_SUCH_NODE, reason));
    }
    match admit(hello, address) {
        Admission::Accept(wake) => Ok(wake),
        Admission::Refuse(code, reason) => Err((code, reason)),
    }
}

/// Keeps a flood of strangers out of the log.
#[derive(Default)]
struct LogLimit {
    second: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    fn refused(&mut self, who: impl std::fmt::Display, reason: impl std::fmt::Display) {
        let now = Instant::now();
        if self.second.is_none_or(|at| now.duration_since(at) >= Duration::from_secs(1)) {
            if self.suppressed > 0 {
                tracing::warn!("{} more peers refused in the last second", self.suppressed);
            }
            *self = Self { second: Some(now), lines: 0, suppressed: 0 };
        }
        if self.lines < LOG_LINES_MAX {
            self.lines += 1;
            tracing::warn!("connection from {who} refused: {reason}");
        } else {
            self.suppressed += 1;
        }
    }
}
