//! The links of one session: connecting, reading, writing, and connecting again for as long as it takes.
//!
//! Both drivers use it. It knows sockets and the clock and nothing of the protocol: bytes that arrive are
//! handed to the core as frames, frames the core wants sent are written. Connecting blocks, so it happens
//! on a short-lived thread per attempt, which wakes the session when it is done; attempts back off from 50
//! ms to 2 s.
//!
//! ```text
//!   Down ──retry time──► Connecting ──hello done──► Up ──closed, broken, nonsense──► Down
//! ```

use crate::connect::Place;
use crate::core::{Action, Core, Now};
use signals::NodeId;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use transporter::{FrameReader, Link, PeerRole, ReadOutcome, SendQueue, Wake, WriteOutcome};

const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Bytes taken over from the core before more is left there, where requests are then refused.
const QUEUE_BYTES: usize = 2 << 20;
/// Reads of one link before the others get their turn.
const READS_MAX: usize = 4;

type Attempt = mpsc::Receiver<Result<Link, transporter::ConnectError>>;

enum State {
    Down { retry_at: Instant },
    Connecting(Attempt),
    Up(Box<Up>),
}

struct Up {
    link: Link,
    buffer: FrameReader,
    queue: SendQueue,
    /// The last write found no room.
    full: bool,
    serial: u64,
}

struct NodeLink {
    node: NodeId,
    address: String,
    state: State,
    backoff: Duration,
    /// What went wrong last, to log it once.
    complaint: String,
}

/// A TCP link's descriptor, for whoever waits.
pub(crate) struct Interest<'a> {
    pub(crate) node: NodeId,
    /// Tells the link from those before it to the same node.
    pub(crate) serial: u64,
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) wants_write: bool,
}

/// What [`Links::receive`] found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    Nothing,
    Something,
    /// Something, and there is more to read at once.
    More,
}

/// See the module.
pub(crate) struct Links {
    links: Vec<NodeLink>,
    cluster: u32,
    own: NodeId,
    number: u16,
    incarnation: u64,
    connect_timeout: Duration,
    wake: Arc<Wake>,
    started: Instant,
    /// Links that ended since the core was last told, and why.
    ended: Vec<(NodeId, String)>,
    next_serial: u64,
}

impl Links {
    /// Links for session `number`, none of them up.
    pub(crate) fn new(
        place: &Place,
        number: u16,
        incarnation: u64,
        connect_timeout: Duration,
        wake: Arc<Wake>,
    ) -> Self {
        let started = Instant::now();
        let links = place.data_nodes.iter().map(|(node, address)| NodeLink {
            node: node.id,
            address: address.clone(),
            state: State::Down { retry_at: started },
            backoff: BACKOFF_FIRST,
            complaint: String::new(),
        });
        Self {
            links: links.collect(),
            cluster: place.cluster,
            own: place.node,
            number,
            incarnation,
            connect_timeout,
            wake,
            started,
            ended: Vec::new(),
            next_serial: 0,
        }
    }

    /// The core's time.
    #[inline]
    pub(crate) fn now(&self) -> Now {
        Now(self.started.elapsed().as_nanos() as u64)
    }

    /// Starts attempts that are due and collects those that are done.
    pub(crate) fn reconnect(&mut self, core: &mut Core) {
        let now = Instant::now();
        let core_now = self.now();
        for index in 0..self.links.len() {
            let node = self.links[index].node;
            match &self.links[index].state {
                State::Down { retry_at } if now >= *retry_at => {
                    self.links[index].state = State::Connecting(self.attempt(index));
                }
                State::Connecting(attempt) => match attempt.try_recv() {
                    Ok(Ok(link)) => {
                        let link_record = &mut self.links[index];
                        link_record.backoff = BACKOFF_FIRST;
                        link_record.complaint.clear();
                        tracing::info!("connected to {}", link.peer);
                        let serial = self.next_serial;
                        let (buffer, queue) = (FrameReader::new(), SendQueue::new(QUEUE_BYTES));
                        link_record.state =
                            State::Up(Box::new(Up { link, buffer, queue, full: false, serial }));
                        self.next_serial += 1;
                        core.connected(core_now, node);
                    }
                    Ok(Err(error)) => self.back_off(index, now, &error.to_string()),
                    Err(mpsc::TryRecvError::Disconnected) => {
                        self.back_off(index, now, "the connecting thread ended");
                    }
                    Err(mpsc::TryRecvError::Empty) => {}
                },
                State::Down { .. } | State::Up(_) => {}
            }
        }
    }

    fn back_off(&mut self, index: usize, now: Instant, complaint: &str) {
        let link = &mut self.links[index];
        if link.complaint != complaint {
            tracing::info!("data node {}: {complaint}; trying again", link.node);
            link.complaint = complaint.to_owned();
        }
        link.state = State::Down { retry_at: now + link.backoff };
        link.backoff = (link.backoff * 2).min(BACKOFF_MAX);
    }

    fn attempt(&self, index: usize) -> Attempt {
        let (sender, receiver) = mpsc::channel();
        let link = &self.links[index];
        let hello = transporter::hello(
            self.cluster,
            self.own,
            link.node,
            PeerRole::ApiNode,
            self.number,
            self.incarnation,
        );
        let address = link.address.clone();
        let wake = Arc::clone(&self.wake);
        let options = transporter::ConnectOptions {
            timeout: self.connect_timeout,
            wake: Some(Arc::clone(&self.wake)),
            ..Default::default()
        };
        // If no thread can be had the receiver finds its sender gone, which counts as a failed attempt.
        let _ = std::thread::Builder::new().name("ndbapi-connect".into()).spawn(move || {
            let _ = sender.send(transporter::connect_with(&address, &hello, options));
            wake.notify();
        });
        receiver
    }

    /// Reads what has arrived on the links named (and on those inside the process) and hands it to the core.
    pub(crate) fn receive(&mut self, core: &mut Core, readable: impl Fn(NodeId) -> bool) -> Received {
        let now = self.now();
        let mut found = Received::Nothing;
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            let State::Up(up) = &mut link.state else { continue };
            if !up.link.reader.is_ready().unwrap_or_else(|| readable(link.node)) {
                continue;
            }
            match read_link(up, core, now, link.node) {
                Ok(Received::Nothing) => {}
                Ok(Received::Something) if found == Received::More => {}
                Ok(read) => found = read,
                Err(reason) => self.close(index, reason),
            }
        }
        self.report_ended(core);
        found
    }

    /// Takes over what the core wants sent and writes as much as there is room for.
    pub(crate) fn send(&mut self, core: &mut Core) {
        self.collect(core);
        self.write();
        self.report_ended(core);
    }

    /// Takes over what the core wants sent.
    pub(crate) fn collect(&mut self, core: &mut Core) {
        let links = &mut self.links;
        core.take_outgoing(|node, buffer| {
            let up = links.iter_mut().find(|l| l.node == node).map(|l| &mut l.state);
            match up {
                Some(State::Up(up)) if up.queue.bytes() < QUEUE_BYTES => {
                    let filled = std::mem::take(buffer);
                    *buffer = up.queue.push(filled);
                }
                Some(State::Up(_)) => {}
                // The core has been or will be told.
                _ => buffer.clear(),
            }
        });
    }

    /// Writes what was taken over.
    pub(crate) fn write(&mut self) {
        for index in 0..self.links.len() {
            let State::Up(up) = &mut self.links[index].state else { continue };
            if up.queue.is_empty() {
                up.full = false;
                continue;
            }
            match up.queue.write_to(&mut up.link.writer) {
                Ok(outcome) => up.full = outcome == WriteOutcome::Full,
                Err(error) => self.close(index, error.to_string()),
            }
        }
    }

    /// Heartbeats and time-outs of the core, and what it wants done because of them.
    pub(crate) fn tick(&mut self, core: &mut Core) {
        core.tick(self.now());
        while let Some(action) = core.next_action() {
            let Action::Disconnect { node, reason } = action;
            if let Some(index) = self.links.iter().position(|l| l.node == node) {
                self.close(index, reason);
            }
        }
        self.report_ended(core);
        self.reconnect(core);
    }

    fn close(&mut self, index: usize, reason: String) {
        let link = &mut self.links[index];
        let State::Up(up) = &link.state else { return };
        up.link.control().shutdown();
        tracing::warn!("link to data node {} ended: {reason}", link.node);
        link.state = State::Down { retry_at: Instant::now() + link.backoff };
        self.ended.push((link.node, reason));
    }

    /// Tells the core of links that ended.
    pub(crate) fn report_ended(&mut self, core: &mut Core) {
        let now = self.now();
        for (node, reason) in self.ended.drain(..) {
            core.disconnected(now, node, &reason);
        }
    }

    /// The descriptors of TCP links, to wait on beside the session's wake-up.
    pub(crate) fn interests(&self) -> impl Iterator<Item = Interest<'_>> {
        self.links.iter().filter_map(|link| match &link.state {
            State::Up(up) if up.link.reader.wake_handle().is_none() => Some(Interest {
                node: link.node,
                serial: up.serial,
                fd: up.link.reader.as_fd(),
                wants_write: up.full,
            }),
            State::Up(_) | State::Down { .. } | State::Connecting(_) => None,
        })
    }

    /// Before sleeping: whether every in-process link has nothing to read, and will wake us when it has.
    pub(crate) fn arm(&self) -> bool {
        self.links.iter().all(|link| match &link.state {
            State::Up(up) => up.link.reader.arm(),
            State::Down { .. } | State::Connecting(_) => true,
        })
    }

    /// After sleeping.
    pub(crate) fn disarm(&self) {
        for link in &self.links {
            if let State::Up(up) = &link.state {
                up.link.reader.disarm();
            }
        }
    }

    /// The session's wake-up.
    pub(crate) fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }
}

/// Reads one link until it has nothing more (or has had its turn).
fn read_link(up: &mut Up, core: &mut Core, now: Now, node: NodeId) -> Result<Received, String> {
    let mut found = Received::Nothing;
    for _ in 0..READS_MAX {
        let room = up.buffer.spare().len();
        match up.link.reader.read_into(&mut up.buffer) {
            Ok(ReadOutcome::Bytes(count)) => {
                found = Received::Something;
                loop {
                    match up.buffer.next_frame() {
                        Ok(Some(frame)) => core.receive(now, node, frame).map_err(|e| e.to_string())?,
                        Ok(None) => break,
                        Err(invalid) => return Err(invalid.to_string()),
                    }
                }
                // Less than there was room for: the carrier is empty, and will say so when it no longer is.
                if count < room {
                    return Ok(found);
                }
            }
            Ok(ReadOutcome::WouldBlock) => return Ok(found),
            Ok(ReadOutcome::Closed) => return Err("closed by the data node".into()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(Received::More)
}

/// Tells this incarnation of the process from earlier ones.
pub(crate) fn incarnation() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_nanos() as u64 ^ u64::from(std::process::id()) << 48
}
