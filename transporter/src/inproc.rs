//! In-process links: two bounded byte rings between two nodes that live in one process.
//!
//! `nucdb quickstart --single-process`, small hardware and tests run all node types in one process by the
//! same code as everywhere; a node that listens with in-process links allowed is found here by its cluster
//! and id, and whoever connects to it gets a pair of rings instead of a socket. No system call is made
//! while both sides are awake.
//!
//! A side is woken ([`Wake`]) when its ring gets bytes, when a ring it found full has room again, and at
//! the end. Orders that matter: a writer publishes, then wakes; a reader takes, then looks whether the
//! writer waits for room; a writer that finds no room says so first and then looks again. `closed` is set
//! after the last byte, so a reader that finds its ring empty, then `closed`, then its ring still empty,
//! has seen everything.
//!
//! There is one producer and one consumer per ring by construction: the halves are not clonable.

use crate::link::{Link, LinkReader, LinkWriter, Peer, ReadHalf, ReadOutcome, WriteHalf};
use crate::wake::Wake;
use rtrb::{Consumer, Producer, RingBuffer};
use signals::NodeId;
use signals::hello::Hello;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

/// Bytes each direction holds. A frame may be longer than what is free, or than the ring: bytes stream
/// through.
const RING_BYTES: usize = 256 << 10;
/// A writer that waits for room is woken when at least this much is free.
const ROOM_BYTES: usize = RING_BYTES / 4;
/// Connection requests a listener lets wait.
const REQUESTS_MAX: usize = 256;

/// What both ends of a link see.
pub(crate) struct Shared {
    closed: AtomicBool,
    sides: [Side; 2],
}

struct Side {
    wake: Arc<Wake>,
    /// This side's writer found its ring full.
    wants_room: AtomicBool,
}

impl Shared {
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for side in &self.sides {
            side.wake.disarm();
            side.wake.notify();
        }
    }
}

/// The receiving half.
pub(crate) struct Reader {
    ring: Consumer<u8>,
    side: usize,
    shared: Arc<Shared>,
}

/// The sending half.
pub(crate) struct Writer {
    ring: Producer<u8>,
    side: usize,
    shared: Arc<Shared>,
}

impl Reader {
    pub(crate) fn read(&mut self, room: &mut [u8]) -> ReadOutcome {
        let mut count = self.ring.pop_partial_slice(room).0.len();
        if count == 0 {
            if !self.shared.closed.load(Ordering::SeqCst) {
                return ReadOutcome::WouldBlock;
            }
            count = self.ring.pop_partial_slice(room).0.len();
            if count == 0 {
                return ReadOutcome::Closed;
            }
        }
        let other = &self.shared.sides[1 - self.side];
        fence(Ordering::SeqCst);
        if other.wants_room.load(Ordering::SeqCst) && RING_BYTES - self.ring.slots() >= ROOM_BYTES {
            other.wants_room.store(false, Ordering::SeqCst);
            other.wake.wake();
        }
        ReadOutcome::Bytes(count)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ring.slots() > 0 || self.shared.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn arm(&self) -> bool {
        self.wake().arm();
        !self.is_ready()
    }

    pub(crate) fn disarm(&self) {
        if self.wake().disarm() {
            self.wake().drain();
        }
    }

    pub(crate) fn wake(&self) -> &Arc<Wake> {
        &self.shared.sides[self.side].wake
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Writer {
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.shared.closed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut count = self.push(slices);
        if count == 0 {
            self.shared.sides[self.side].wants_room.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            count = self.push(slices);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.shared.sides[1 - self.side].wake.wake();
        Ok(count)
    }

    fn push(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let mut count = 0;
        for slice in slices {
            let (written, rest) = self.ring.push_partial_slice(slice);
            count += written.len();
            if !rest.is_empty() {
                break;
            }
        }
        count
    }

    pub(crate) fn has_room(&self) -> bool {
        self.ring.slots() > 0 || self.shared.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A request to connect, on its way to the listener's acceptor.
pub(crate) struct Request {
    pub(crate) hello: Hello,
    wake: Arc<Wake>,
    reply: mpsc::Sender<Reply>,
}

/// The acceptor's answer: the connecting side's link and the accepting node's incarnation, or a code.
pub(crate) type Reply = Result<(Link, u64), u32>;

struct Door {
    requests: Mutex<VecDeque<Request>>,
    wake: Wake,
}

/// A node's entry in the process-wide list of listeners; leaving scope removes it.
pub(crate) struct Listener {
    key: (u32, u8),
    door: Arc<Door>,
}

static LISTENERS: Mutex<BTreeMap<(u32, u8), Arc<Door>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `node` of `cluster` can be reached inside this process.
#[must_use]
pub fn is_listening(cluster: u32, node: NodeId) -> bool {
    locked(&LISTENERS).contains_key(&(cluster, node.0))
}

impl Listener {
    /// Makes `node` of `cluster` reachable inside this process.
    pub(crate) fn new(cluster: u32, node: NodeId) -> io::Result<Self> {
        let door = Arc::new(Door { requests: Mutex::new(VecDeque::new()), wake: Wake::new()? });
        let key = (cluster, node.0);
        let mut listeners = locked(&LISTENERS);
        if listeners.contains_key(&key) {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                format!("node {node} runs in this process already"),
            ));
        }
        listeners.insert(key, door.clone());
        Ok(Self { key, door })
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.door.wake
    }

    pub(crate) fn next_request(&self) -> Option<Request> {
        locked(&self.door.requests).pop_front()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        locked(&LISTENERS).remove(&self.key);
        locked(&self.door.requests).clear();
    }
}

/// Asks `hello.target_node` for a link. The answer arrives at the receiver; it fails if the node goes away.
/// `None` if the node does not listen in this process or has too many requests waiting.
pub(crate) fn request(hello: Hello, wake: Arc<Wake>) -> Option<mpsc::Receiver<Reply>> {
    let door = locked(&LISTENERS).get(&(hello.cluster, hello.target_node))?.clone();
    let (reply, answer) = mpsc::channel();
    let mut requests = locked(&door.requests);
    if requests.len() >= REQUESTS_MAX {
        return None;
    }
    requests.push_back(Request { hello, wake, reply });
    drop(requests);
    door.wake.notify();
    Some(answer)
}

impl Request {
    /// Refuses the request with an error code.
    pub(crate) fn refuse(self, code: u32) {
        let _ = self.reply.send(Err(code));
    }

    /// Makes the link: its one end goes to the asker, the other is returned. `None` if the asker has given
    /// up.
    pub(crate) fn accept(self, wake: Arc<Wake>, here: Peer, there: Peer, incarnation: u64) -> Option<Link> {
        let side = |wake| Side { wake, wants_room: AtomicBool::new(false) };
        let shared =
            Arc::new(Shared { closed: AtomicBool::new(false), sides: [side(self.wake), side(wake)] });
        let (to_acceptor, from_asker) = RingBuffer::new(RING_BYTES);
        let (to_asker, from_acceptor) = RingBuffer::new(RING_BYTES);
        let end = |peer, consumer, producer, side| Link {
            peer,
            reader: LinkReader(ReadHalf::InProcess(Reader { ring: consumer, side, shared: shared.clone() })),
            writer: LinkWriter(WriteHalf::InProcess(Writer { ring: producer, side, shared: shared.clone() })),
        };
        let asker = end(here, from_acceptor, to_acceptor, 0);
        let acceptor = end(there, from_asker, to_asker, 1);
        self.reply.send(Ok((asker, incarnation))).ok()?;
        Some(acceptor)
    }
}
