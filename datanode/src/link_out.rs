//! LinkOut: the sending side of one link, shared by all workers of the node.
//!
//! Any worker appends its batch for the peer to the pending queue. Then it either writes, or hands the link
//! over to a send instance who will (see [`crate::send`] for who does which). Who wants to write takes the
//! pen; who finds it taken leaves, because the one who writes looks into the pending queue once more after
//! he has put the pen down: two workers never wait for each other, nothing is lost in between, and a
//! worker's batches keep their order.
//!
//! ```text
//!   idle ── append, flush ──► somebody writes ── all written, nothing pending ──► idle
//!     │                            ▲   │
//!     └── append, hand over ──► queued │  carrier full: `blocked`, the owner is told when there is room
//!                                      └──────────► ── on_room ──► writes again, or unblocks and hands over
//! ```
//!
//! While `blocked`, others only append. Every link is owned by one receiving worker; its epoll watches for
//! room. Bytes waiting are counted, in whosever hands they are: above `SendBufferMemory` the owner stops
//! reading requests from this peer, and is woken when they are below again; far above it the link is closed,
//! because memory is bounded and a peer that does not read its answers is not worth it.

use crate::send::SendPost;
use rustix::event::epoll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use transporter::{LinkControl, LinkWriter, Peer, SendQueue, Wake, WriteOutcome};

/// A client is closed when this many times its `SendBufferMemory` waits for it ...
const CLIENT_LIMIT_FACTOR: usize = 8;
/// ... but not below this, because answers to requests already accepted must have room.
const CLIENT_LIMIT_BYTES_MIN: usize = 16 << 20;
/// A data node is closed (and thereby declared failed) at this many times as much.
const NODE_LIMIT_FACTOR: usize = 4;

/// See the module.
pub struct LinkOut {
    /// Who is at the other end.
    pub peer: Peer,
    owner: Owner,
    /// The send instance it can be left to; none in a node with one worker.
    post: Option<Arc<SendPost>>,
    /// It stands in the send instance's queue.
    queued: AtomicBool,
    control: LinkControl,
    pending: Mutex<SendQueue>,
    writing: Mutex<Writing>,
    blocked: AtomicBool,
    /// The owner does not want to read from this peer for now.
    paused: AtomicBool,
    bytes: AtomicUsize,
    sent_bytes: AtomicU64,
    overload_bytes: usize,
    limit_bytes: usize,
    closing: Mutex<Option<String>>,
}

/// The worker that reads a link.
pub struct Owner {
    /// The link's epoll token there.
    pub token: u64,
    /// Its epoll.
    pub epoll: Arc<OwnedFd>,
    /// Its wake-up.
    pub wake: Arc<Wake>,
}

struct Writing {
    writer: LinkWriter,
    queue: SendQueue,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LinkOut {
    /// The sending side of a new link that is read by `owner` and can be left to `post`.
    #[must_use]
    pub fn new(
        peer: Peer,
        control: LinkControl,
        writer: LinkWriter,
        send_buffer_bytes: usize,
        owner: Owner,
        post: Option<Arc<SendPost>>,
    ) -> Self {
        let client_limit = (send_buffer_bytes * CLIENT_LIMIT_FACTOR).max(CLIENT_LIMIT_BYTES_MIN);
        let limit_bytes = match peer.role {
            transporter::PeerRole::ApiNode => client_limit,
            transporter::PeerRole::DataNode => client_limit * NODE_LIMIT_FACTOR,
        };
        Self {
            peer,
            owner,
            post,
            queued: AtomicBool::new(false),
            control,
            pending: Mutex::new(SendQueue::new(send_buffer_bytes)),
            writing: Mutex::new(Writing { writer, queue: SendQueue::new(send_buffer_bytes) }),
            blocked: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            sent_bytes: AtomicU64::new(0),
            overload_bytes: send_buffer_bytes,
            limit_bytes,
            closing: Mutex::new(None),
        }
    }

    /// The send instance this link can be left to.
    #[inline]
    #[must_use]
    pub fn post(&self) -> Option<&SendPost> {
        self.post.as_deref()
    }

    /// Takes a batch of whole frames; [`Self::flush`] or [`Self::hand_over`] must follow. Gives an empty
    /// buffer back.
    pub fn append(&self, batch: Vec<u8>) -> Vec<u8> {
        let length = batch.len();
        let waiting = self.bytes.fetch_add(length, Ordering::Relaxed) + length;
        let empty = locked(&self.pending).push(batch);
        if waiting > self.limit_bytes {
            self.close(format!("it does not read its answers, {waiting} bytes wait for it"));
        }
        empty
    }

    /// Writes what was appended, unless somebody does already or the carrier is full. Returns the bytes
    /// written here.
    pub fn flush(&self) -> usize {
        let mut written = 0;
        while let Some(bytes) = self.write_once() {
            written += bytes;
            if locked(&self.pending).is_empty() {
                break;
            }
        }
        written
    }

    /// Leaves what was appended to the send instance. Returns the bytes written here: some only if there is
    /// none, or it has ended.
    pub fn hand_over(self: &Arc<Self>) -> usize {
        let Some(post) = &self.post else { return self.flush() };
        if self.queued.swap(true, Ordering::AcqRel) || post.queue(self.clone()) {
            return 0;
        }
        // Others may have relied on the mark in between: what they appended is seen after this swap.
        self.queued.swap(false, Ordering::AcqRel);
        self.flush()
    }

    /// The send instance's: it took the link from its queue. Writes once; if more has come meanwhile the link
    /// goes back to the end of the queue.
    pub(crate) fn flush_queued(self: &Arc<Self>) -> usize {
        // Marked off first: who appends from here on queues the link anew.
        self.queued.swap(false, Ordering::AcqRel);
        let Some(written) = self.write_once() else { return 0 };
        // Somebody who found the pen taken relies on this look.
        if locked(&self.pending).is_empty() { written } else { written + self.hand_over() }
    }

    /// Takes the pen and writes; `None` if the carrier is full or somebody else has the pen. After this the
    /// pending queue must be looked at again.
    fn write_once(&self) -> Option<usize> {
        if self.blocked.load(Ordering::Acquire) {
            return None;
        }
        let mut writing = match self.writing.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // He who writes looks into the pending queue again when he is done.
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(self.write(&mut writing))
    }

    /// Writes what is pending, by the owner of the pen.
    fn write(&self, writing: &mut Writing) -> usize {
        writing.queue.append(&mut locked(&self.pending));
        let before = writing.queue.bytes();
        let Writing { writer, queue } = writing;
        let outcome = queue.write_to(writer);
        let written = before - queue.bytes();
        match outcome {
            Ok(WriteOutcome::Drained) => {}
            Ok(WriteOutcome::Full) => {
                self.blocked.store(true, Ordering::Release);
                self.watch(writer);
            }
            Err(error) => {
                self.close(format!("sending failed: {error}"));
                queue.clear();
            }
        }
        self.sent_bytes.fetch_add(written as u64, Ordering::Relaxed);
        self.count_off(before - queue.bytes());
        written
    }

    /// Bytes no longer wait. An owner that stopped reading because of them is woken when they are few enough.
    fn count_off(&self, gone: usize) {
        let before = self.bytes.fetch_sub(gone, Ordering::Relaxed);
        if before > self.overload_bytes && before - gone <= self.overload_bytes {
            // Against the fence of the owner's `Wake::arm`: he sees the count, or we see that he has paused.
            fence(Ordering::SeqCst);
            if self.paused.load(Ordering::Relaxed) {
                self.owner.wake.wake();
            }
        }
    }

    /// The owner's: the carrier has room again, or might have. Writes; returns the bytes written.
    pub fn on_room(&self) -> usize {
        let mut writing = locked(&self.writing);
        self.blocked.store(false, Ordering::Release);
        let written = self.write(&mut writing);
        if !self.blocked.load(Ordering::Acquire) {
            self.watch(&writing.writer);
        }
        drop(writing);
        written + self.flush()
    }

    /// The owner's: the carrier has room again, or might have. Leaves the writing to the send instance.
    pub fn hand_over_room(self: &Arc<Self>) -> usize {
        let writing = locked(&self.writing);
        self.blocked.store(false, Ordering::Release);
        self.watch(&writing.writer);
        drop(writing);
        self.hand_over()
    }

    /// The owner's: reads from this peer no more, or again. An end of the link is noticed all the same.
    pub fn pause(&self, paused: bool) {
        let writing = locked(&self.writing);
        self.paused.store(paused, Ordering::Release);
        self.watch(&writing.writer);
    }

    /// Tells the owner's epoll what is waited for; in-process links tell their owner through his wake-up.
    /// Called with the pen in hand, so that the last call is the one that counts.
    fn watch(&self, writer: &LinkWriter) {
        let Some(fd) = writer.socket() else { return };
        let mut flags = epoll::EventFlags::empty();
        if !self.paused.load(Ordering::Acquire) {
            flags |= epoll::EventFlags::IN;
        }
        if self.blocked.load(Ordering::Acquire) {
            flags |= epoll::EventFlags::OUT;
        }
        // Fails only when the owner has given the link up already.
        let data = epoll::EventData::new_u64(self.owner.token);
        let _ = epoll::modify(&*self.owner.epoll, fd, data, flags);
    }

    /// Whether the writer waits for room.
    #[inline]
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire)
    }

    /// In-process links: whether the carrier has room. The owner's.
    #[must_use]
    pub fn has_room(&self) -> bool {
        locked(&self.writing).writer.has_room()
    }

    /// Bytes waiting to be written.
    #[inline]
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the peer's requests should rest until it has read more of its answers.
    #[inline]
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.waiting_bytes() > self.overload_bytes
    }

    /// Bytes written so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Ends the link; its owner notices at once and tells everybody. The first reason given is the one
    /// logged.
    pub fn close(&self, reason: impl Into<String>) {
        let mut closing = locked(&self.closing);
        if closing.is_none() {
            *closing = Some(reason.into());
            self.control.shutdown();
        }
    }

    /// Why this side closed the link, if it did.
    #[must_use]
    pub fn closing_reason(&self) -> Option<String> {
        locked(&self.closing).clone()
    }

    /// Tries for a moment to write what is left (the node stops).
    pub fn drain_for(&self, time: std::time::Duration) {
        let deadline = std::time::Instant::now() + time;
        while self.waiting_bytes() > 0 && std::time::Instant::now() < deadline {
            self.on_room();
            if self.waiting_bytes() > 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

/// Registers a link's descriptor with its owner's epoll.
pub(crate) fn watch_reader(
    epoll_fd: &OwnedFd,
    reader: &transporter::LinkReader,
    token: u64,
) -> io::Result<()> {
    if reader.wake_handle().is_some() {
        return Ok(());
    }
    Ok(epoll::add(epoll_fd, reader, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
}
