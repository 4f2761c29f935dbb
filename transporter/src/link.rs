//! Link: one ordered byte stream to one peer, in two halves, over whichever carrier.
//!
//! A link is born connected and introduced; from then on it can only end. It ends when either side closes
//! it, when the peer's process is gone, or when somebody calls [`LinkControl::shutdown`] - from any thread,
//! which is how a worker that finds a peer's bytes malformed gets rid of it. After the end, the reader
//! still gets what had arrived.

use crate::frame_reader::FrameReader;
use crate::inproc;
use crate::wake::Wake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signals::NodeId;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// What a peer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PeerRole {
    /// A data node.
    DataNode = 0,
    /// A client session of an API node.
    ApiNode = 1,
}

impl PeerRole {
    pub(crate) fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::DataNode),
            1 => Some(Self::ApiNode),
            _ => None,
        }
    }
}

/// Who is at the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its node id.
    pub node: NodeId,
    /// What it is.
    pub role: PeerRole,
    /// The link's number: the instance of the API block; 0 between data nodes.
    pub link: u16,
    /// Its incarnation.
    pub incarnation: u64,
    /// The protocol version both use.
    pub version: u32,
    /// For logs: where it is.
    pub address: String,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.role {
            PeerRole::DataNode => write!(f, "data node {} at {}", self.node, self.address),
            PeerRole::ApiNode => write!(f, "API node {} link {} at {}", self.node, self.link, self.address),
        }
    }
}

/// What a read came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// So many bytes arrived.
    Bytes(usize),
    /// Nothing there now (or no room in the buffer: take frames out first).
    WouldBlock,
    /// The peer closed the link, or its process is gone.
    Closed,
}

/// What a write came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOutcome {
    /// Everything is written.
    Drained,
    /// The carrier is full; try again when it has room.
    Full,
}

/// See the module.
pub struct Link {
    /// Who is at the other end.
    pub peer: Peer,
    /// The receiving half.
    pub reader: LinkReader,
    /// The sending half.
    pub writer: LinkWriter,
}

/// The receiving half of a link.
pub struct LinkReader(pub(crate) ReadHalf);
/// The sending half of a link.
pub struct LinkWriter(pub(crate) WriteHalf);

pub(crate) enum ReadHalf {
    Tcp(Arc<TcpStream>),
    InProcess(inproc::Reader),
}

pub(crate) enum WriteHalf {
    Tcp(Arc<TcpStream>),
    InProcess(inproc::Writer),
}

/// A handle that can end the link from any thread.
#[derive(Clone)]
pub struct LinkControl(Control);

#[derive(Clone)]
enum Control {
    Tcp(Arc<TcpStream>),
    InProcess(Arc<inproc::Shared>),
}

impl LinkControl {
    /// Ends the link in both directions; both sides notice at once.
    pub fn shutdown(&self) {
        match &self.0 {
            Control::Tcp(stream) => {
                let _ = stream.shutdown(Shutdown::Both);
            }
            Control::InProcess(shared) => shared.close(),
        }
    }
}

impl Link {
    pub(crate) fn tcp(stream: TcpStream, peer: Peer) -> Self {
        let stream = Arc::new(stream);
        let reader = LinkReader(ReadHalf::Tcp(stream.clone()));
        Self { peer, reader, writer: LinkWriter(WriteHalf::Tcp(stream)) }
    }

    /// A handle that can end the link.
    #[must_use]
    pub fn control(&self) -> LinkControl {
        self.reader.control()
    }

    /// Blocks until there is something to read, room to write (if `want_write`), or `timeout` is over.
    ///
    /// # Errors
    /// The operating system refuses to wait; never because of the peer.
    pub fn wait(&self, want_write: bool, timeout: Duration) -> io::Result<()> {
        if !self.reader.arm() || (want_write && self.writer.room_is_readable() && self.writer.has_room()) {
            self.reader.disarm();
            return Ok(());
        }
        let mut flags = PollFlags::IN;
        if want_write && !self.writer.room_is_readable() {
            flags |= PollFlags::OUT;
        }
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let result = poll(&mut [PollFd::new(&self.reader, flags)], Some(&timeout));
        self.reader.disarm();
        match result {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl LinkReader {
    /// Reads once into the buffer's room.
    ///
    /// # Errors
    /// The link is broken (reset, timed out): as good as closed.
    #[inline]
    pub fn read_into(&mut self, buffer: &mut FrameReader) -> io::Result<ReadOutcome> {
        let room = buffer.spare();
        if room.is_empty() {
            return Ok(ReadOutcome::WouldBlock);
        }
        match &mut self.0 {
            ReadHalf::Tcp(stream) => {
                let mut source: &TcpStream = stream;
                match source.read(room) {
                    Ok(0) => Ok(ReadOutcome::Closed),
                    Ok(count) => {
                        buffer.filled(count);
                        Ok(ReadOutcome::Bytes(count))
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::WouldBlock),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(ReadOutcome::WouldBlock),
                    Err(error) => Err(error),
                }
            }
            ReadHalf::InProcess(reader) => {
                let outcome = reader.read(room);
                if let ReadOutcome::Bytes(count) = outcome {
                    buffer.filled(count);
                }
                Ok(outcome)
            }
        }
    }

    /// Call before sleeping on the descriptor: `false` means there is something to read already.
    #[inline]
    #[must_use]
    pub fn arm(&self) -> bool {
        match &self.0 {
            ReadHalf::Tcp(_) => true,
            ReadHalf::InProcess(reader) => reader.arm(),
        }
    }

    /// Call after sleeping on the descriptor.
    #[inline]
    pub fn disarm(&self) {
        if let ReadHalf::InProcess(reader) = &self.0 {
            reader.disarm();
        }
    }

    /// In-process links only: whether there is something to read, without a system call. TCP links say
    /// `None`: ask the descriptor.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> Option<bool> {
        match &self.0 {
            ReadHalf::Tcp(_) => None,
            ReadHalf::InProcess(reader) => Some(reader.is_ready()),
        }
    }

    /// A handle that can end the link.
    #[must_use]
    pub fn control(&self) -> LinkControl {
        LinkControl(match &self.0 {
            ReadHalf::Tcp(stream) => Control::Tcp(stream.clone()),
            ReadHalf::InProcess(reader) => Control::InProcess(reader.shared()),
        })
    }
}

/// The descriptor to wait on. TCP: the socket, "readable" and "writable" as usual. In-process: an event
/// descriptor that becomes readable when there is something to read, room to write again, or the end; one
/// that was passed in as [`crate::ConnectOptions::wake`] serves all links it was passed to.
impl AsFd for LinkReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            ReadHalf::Tcp(stream) => stream.as_fd(),
            ReadHalf::InProcess(reader) => reader.wake().as_fd(),
        }
    }
}

impl LinkWriter {
    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now; anything else means that the link is broken.
    #[inline]
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            WriteHalf::Tcp(stream) => {
                let mut sink: &TcpStream = stream;
                match slices {
                    // A plain write is cheaper than a gathered one of one piece.
                    [one] => sink.write(one),
                    many => sink.write_vectored(many),
                }
            }
            WriteHalf::InProcess(writer) => writer.write(slices),
        }
    }

    /// Whether "room to write again" makes the descriptor readable (in-process) instead of writable (TCP).
    #[must_use]
    pub fn room_is_readable(&self) -> bool {
        matches!(self.0, WriteHalf::InProcess(_))
    }

    /// The socket to watch for room; in-process links have none.
    #[must_use]
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            WriteHalf::Tcp(stream) => Some(stream.as_fd()),
            WriteHalf::InProcess(_) => None,
        }
    }

    /// In-process links only: whether there is room; TCP links say `false`: ask the descriptor.
    #[must_use]
    pub fn has_room(&self) -> bool {
        match &self.0 {
            WriteHalf::Tcp(_) => false,
            WriteHalf::InProcess(writer) => writer.has_room(),
        }
    }
}

/// The wake-up of an in-process link's reader, if it is one.
pub(crate) fn reader_wake(reader: &LinkReader) -> Option<&Arc<Wake>> {
    match &reader.0 {
        ReadHalf::Tcp(_) => None,
        ReadHalf::InProcess(reader) => Some(reader.wake()),
    }
}

impl LinkReader {
    /// The wake-up an in-process link uses; TCP links have none.
    #[must_use]
    pub fn wake_handle(&self) -> Option<&Arc<Wake>> {
        reader_wake(self)
    }
}
