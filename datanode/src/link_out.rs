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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::{SendDesk, send_queue};
    use crate::usage::Counters;
    use rustix::event::Timespec;
    use signals::frame::push_signal;
    use signals::keyop::TransIdAi;
    use signals::{BlockRef, NodeId};
    use std::time::{Duration, Instant};
    use transporter::acceptor::Identity;
    use transporter::{
        Acceptor, Admission, ConnectOptions, FrameReader, Link, LinkReader, PeerRole, ReadOutcome,
        SocketOptions, connect_with, hello,
    };

    const LONG: Duration = Duration::from_secs(60);
    const TOKEN: u64 = 9;

    /// Both ends of a link.
    fn pair(in_process: bool) -> (Link, Link) {
        let identity = Identity { cluster: 1, node: NodeId(1), incarnation: 1 };
        let mut acceptor =
            Acceptor::bind("127.0.0.1:0", identity, SocketOptions::default(), in_process).unwrap();
        let address = acceptor.local_address().unwrap().to_string();
        let there = std::thread::spawn(move || {
            let hello = hello(1, NodeId(60), NodeId(1), PeerRole::ApiNode, 0, 1);
            connect_with(&address, &hello, ConnectOptions { in_process, ..Default::default() }).unwrap()
        });
        let begin = Instant::now();
        let here = loop {
            if let Some(link) = acceptor.poll(LONG, |_, _| Admission::Accept(None)).pop() {
                break link;
            }
            assert!(begin.elapsed() < LONG);
        };
        (here, there.join().unwrap())
    }

    /// A sending side with its owner's epoll and a send queue.
    fn link_out(link: Link, send_buffer: usize) -> (Arc<LinkOut>, LinkReader, Arc<Wake>, SendDesk) {
        let Link { peer, reader, writer } = link;
        let (wake, sender_wake) = (Arc::new(Wake::new().unwrap()), Arc::new(Wake::new().unwrap()));
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        watch_reader(&epoll, &reader, TOKEN).unwrap();
        let (post, desk) = send_queue(1, sender_wake, Arc::default());
        let owner = Owner { token: TOKEN, epoll, wake: wake.clone() };
        let control = reader.control();
        let out = LinkOut::new(peer, control, writer, send_buffer, owner, Some(Arc::new(post)));
        (Arc::new(out), reader, wake, desk)
    }

    /// What the owner does while the others write: gives room back, by himself or through the send instance.
    fn own(link: &Arc<LinkOut>, turn: u64) -> usize {
        let room = if link.writing.lock().unwrap().writer.socket().is_some() {
            let mut events = Vec::with_capacity(4);
            let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            let buffer = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&*link.owner.epoll, buffer, Some(&timeout));
            events.iter().any(|event: &epoll::Event| {
                let flags = event.flags;
                flags.contains(epoll::EventFlags::OUT)
            })
        } else {
            std::thread::yield_now();
            link.is_blocked() && link.has_room()
        };
        match (room, turn % 2) {
            (false, _) => 0,
            (true, 0) => link.on_room(),
            (true, _) => link.hand_over_room(),
        }
    }

    const SHIPPERS: u32 = 3;
    const FRAMES: u32 = 20_000;

    fn body_length(n: u32) -> usize {
        if n.is_multiple_of(511) { 20_000 } else { (n as usize * 37) % 400 }
    }

    /// Ships numbered frames, now writing and now leaving it to the send instance; returns bytes shipped and
    /// bytes written.
    fn ship_frames(link: &Arc<LinkOut>, shipper: u32) -> (usize, usize) {
        let (mut shipped, mut written, mut n) = (0, 0, 0);
        let mut batch = Vec::new();
        while n < FRAMES {
            for _ in 0..=(n * 7 + shipper) % 40 {
                let body = TransIdAi { api_op: n, length: body_length(n) as u32 };
                let bytes = vec![n as u8; body_length(n)];
                push_signal(&mut batch, BlockRef(shipper), BlockRef(2), &body, &bytes, &[]);
                n += 1;
                if n == FRAMES {
                    break;
                }
            }
            shipped += batch.len();
            batch = link.append(batch);
            assert!(batch.is_empty());
            written += if (n / 3 + shipper).is_multiple_of(2) { link.hand_over() } else { link.flush() };
            while link.waiting_bytes() > 2 << 20 {
                std::thread::yield_now();
            }
        }
        (shipped, written)
    }

    /// Reads what the shippers shipped: everything once and in each shipper's order.
    fn read_all(link: &mut Link) {
        let (mut next, mut frames) = ([0; SHIPPERS as usize], FrameReader::new());
        let begin = Instant::now();
        while next.iter().any(|n| *n < FRAMES) {
            match link.reader.read_into(&mut frames).unwrap() {
                ReadOutcome::Bytes(_) => {}
                ReadOutcome::WouldBlock => link.wait(false, Duration::from_millis(10)).unwrap(),
                ReadOutcome::Closed => panic!("the link ended at {next:?}"),
            }
            while let Ok(Some(frame)) = frames.next_frame() {
                let (header, signals::Signal::TransIdAi(row)) = signals::Signal::parse(frame).unwrap() else {
                    panic!()
                };
                let expected = &mut next[header.source.0 as usize];
                assert_eq!(row.body.api_op, *expected);
                assert_eq!(row.first.len(), body_length(*expected));
                assert!(row.first.iter().all(|b| *b == *expected as u8));
                *expected += 1;
            }
            assert!(begin.elapsed() < LONG, "stuck at {next:?}");
        }
    }

    /// Several shippers, a send instance, an owner and a carrier that is full again and again: all bytes
    /// arrive once, in each shipper's order, and are counted once, whoever wrote them.
    #[test]
    fn nothing_is_lost_between_those_who_ship_and_those_who_write() {
        for in_process in [false, true] {
            let (here, mut there) = pair(in_process);
            let (link, _reader, _wake, desk) = link_out(here, 1 << 20);
            let done = AtomicBool::new(false);
            let counters = Counters::default();
            let written = AtomicUsize::new(0);
            let shipped = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) || !desk.is_empty() {
                        if desk.serve(&counters) == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
                scope.spawn(|| {
                    for turn in 0.. {
                        written.fetch_add(own(&link, turn), Ordering::Relaxed);
                        if done.load(Ordering::Acquire) {
                            break;
                        }
                    }
                });
                let shippers: Vec<_> = (0..SHIPPERS)
                    .map(|s| {
                        scope.spawn({
                            let link = &link;
                            move || ship_frames(link, s)
                        })
                    })
                    .collect();
                read_all(&mut there);
                let mut shipped = 0;
                for shipper in shippers {
                    let (bytes, own) = shipper.join().unwrap();
                    shipped += bytes;
                    written.fetch_add(own, Ordering::Relaxed);
                }
                done.store(true, Ordering::Release);
                shipped
            });
            let by_send_instance = counters.sent_bytes.load(Ordering::Relaxed) as usize;
            assert!(by_send_instance > 0);
            assert_eq!(written.into_inner() + by_send_instance, shipped);
            assert_eq!((link.sent_bytes() as usize, link.waiting_bytes()), (shipped, 0));
            assert_eq!(link.closing_reason(), None);
        }
    }

    #[test]
    fn batches_of_several_workers_leave_together() {
        let (here, _there) = pair(true);
        let (link, _reader, _wake, desk) = link_out(here, 1 << 20);
        for _ in 0..5 {
            link.append(vec![0; 64]);
            assert_eq!(link.hand_over(), 0);
        }
        let counters = Counters::default();
        assert_eq!(desk.serve(&counters), 1, "queued once");
        assert_eq!((link.sent_bytes(), counters.sent_bytes.into_inner()), (320, 320));
        assert!(desk.is_empty());
        // Without its send instance a link is written by whoever ships.
        drop(desk);
        link.append(vec![0; 64]);
        assert_eq!((link.hand_over(), link.waiting_bytes()), (64, 0));
    }

    /// An owner that does not read because answers pile up is woken by whoever writes them.
    #[test]
    fn a_paused_owner_is_woken_when_enough_was_written() {
        let (here, mut there) = pair(true);
        let (link, _reader, wake, desk) = link_out(here, 100_000);
        for _ in 0..40 {
            link.append(vec![0; 100_000]);
        }
        assert!(link.is_overloaded());
        link.pause(true);
        wake.arm();
        let mut frames = FrameReader::new();
        while link.waiting_bytes() > 0 {
            assert_eq!(wake.times_woken(), u64::from(!link.is_overloaded()));
            link.hand_over_room();
            desk.serve(&Counters::default());
            let _ = there.reader.read_into(&mut frames).unwrap();
            frames.consume(frames.bytes().len());
        }
        assert_eq!(wake.times_woken(), 1);
    }
}
