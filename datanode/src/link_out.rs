//! LinkOut: the sending side of one link, shared by all workers of the node.
//!
//! Any worker ships its batch for the peer here. Who finds the writer free writes; who does not leaves the
//! batch in the pending queue, and the one who writes takes it along before he goes: two workers never wait
//! for each other, and a worker's batches keep their order. Nothing is lost in between, because the writer
//! looks into the pending queue once more after he has put the pen down.
//!
//! ```text
//!   idle ── ship ──► somebody writes ── all written, nothing pending ──► idle
//!                          │
//!                    carrier full: `blocked`, the owner is told when there is room ── on_room ──► writes again
//! ```
//!
//! While `blocked`, others only append. Every link is owned by one receiving worker; its epoll watches for
//! room. Bytes waiting are counted: above `SendBufferMemory` the owner stops reading requests from this
//! peer, and far above it the link is closed, because memory is bounded and a peer that does not read its
//! answers is not worth it.

use rustix::event::epoll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use transporter::{LinkControl, LinkWriter, Peer, SendQueue, WriteOutcome};

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
    /// The epoll token of the link at its owner.
    pub token: u64,
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
    epoll: Arc<OwnedFd>,
}

struct Writing {
    writer: LinkWriter,
    queue: SendQueue,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LinkOut {
    /// The sending side of a new link that is watched by `epoll` under `token`.
    #[must_use]
    pub fn new(
        peer: Peer,
        token: u64,
        control: LinkControl,
        writer: LinkWriter,
        send_buffer_bytes: usize,
        epoll: Arc<OwnedFd>,
    ) -> Self {
        let client_limit = (send_buffer_bytes * CLIENT_LIMIT_FACTOR).max(CLIENT_LIMIT_BYTES_MIN);
        let limit_bytes = match peer.role {
            transporter::PeerRole::ApiNode => client_limit,
            transporter::PeerRole::DataNode => client_limit * NODE_LIMIT_FACTOR,
        };
        Self {
            peer,
            token,
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
            epoll,
        }
    }

    /// Takes a batch of whole frames and sends it as soon as the carrier has room. Gives an empty buffer
    /// back.
    pub fn ship(&self, batch: Vec<u8>) -> Vec<u8> {
        let length = batch.len();
        let waiting = self.bytes.fetch_add(length, Ordering::Relaxed) + length;
        let empty = locked(&self.pending).push(batch);
        if waiting > self.limit_bytes {
            self.close(format!("it does not read its answers, {waiting} bytes wait for it"));
        }
        self.flush();
        empty
    }

    fn flush(&self) {
        while !self.blocked.load(Ordering::Acquire) {
            let mut writing = match self.writing.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // He who writes looks into the pending queue again when he is done.
                Err(TryLockError::WouldBlock) => return,
            };
            self.write(&mut writing);
            drop(writing);
            if locked(&self.pending).is_empty() {
                return;
            }
        }
    }

    /// Writes what is pending, by the owner of the pen.
    fn write(&self, writing: &mut Writing) {
        writing.queue.append(&mut locked(&self.pending));
        let before = writing.queue.bytes();
        let Writing { writer, queue } = writing;
        match queue.write_to(writer) {
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
        let written = before - queue.bytes();
        self.bytes.fetch_sub(written, Ordering::Relaxed);
        self.sent_bytes.fetch_add(written as u64, Ordering::Relaxed);
    }

    /// The owner's: the carrier has room again, or might have.
    pub fn on_room(&self) {
        let mut writing = locked(&self.writing);
        self.blocked.store(false, Ordering::Release);
        self.write(&mut writing);
        if !self.blocked.load(Ordering::Acquire) {
            self.watch(&writing.writer);
        }
        drop(writing);
        self.flush();
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
        let _ = epoll::modify(&*self.epoll, fd, epoll::EventData::new_u64(self.token), flags);
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
