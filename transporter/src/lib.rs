//! Links between nodes: how frames get from one node's threads to another's.
//!
//! A [`Link`] is an ordered, reliable, bounded byte stream between two nodes that have introduced
//! themselves to each other ([`handshake`]). Two carriers exist behind the same type: a TCP socket, and a
//! pair of byte rings when both nodes live in one process ([`inproc`]). Whoever uses a link does not notice
//! which.
//!
//! ```text
//!   connect(address, hello, timeout) ──┐                         ┌── LinkReader ──► FrameReader ──► whole frames
//!                                      ├─► Link { peer, .. } ────┤
//!   Acceptor::poll(timeout, admit) ────┘                         └── LinkWriter ◄── SendQueue ◄── buffers of frames
//! ```
//!
//! The halves may live on different threads. Nothing here blocks but [`connect`], [`Acceptor::poll`] and
//! [`Link::wait`]; everything else is non-blocking, so one thread can drive hundreds of links (epoll), an
//! application can drive one by hand, and a runtime can wait on the link's descriptor. The same rules for
//! all:
//!
//! 1. Read until [`ReadOutcome::WouldBlock`] (or until you have had enough for now), handle whole frames.
//! 2. Before sleeping on [`LinkReader::as_fd`], call [`LinkReader::arm`]; if it says `false`, there is
//!    something already. After waking up, call [`LinkReader::disarm`].
//! 3. A write that ends in [`WriteOutcome::Full`] is repeated when the descriptor says "writable" (TCP) or
//!    "readable" (in-process; see [`LinkWriter::room_is_readable`]).
//!
//! Here nobody knows what a signal means: a frame is a length and bytes. A peer's bytes are never trusted
//! before the handshake is through, and never for more than a frame's bounds afterwards.

pub mod acceptor;
pub mod frame_reader;
pub mod handshake;
pub mod inproc;
pub mod link;
pub mod mgm_link;
pub mod send_queue;
pub mod tcp;
pub mod wake;

pub use acceptor::{Acceptor, Admission};
pub use frame_reader::FrameReader;
pub use handshake::{ConnectError, ConnectOptions, cluster_hash, connect, connect_with, hello};
pub use link::{Link, LinkControl, LinkReader, LinkWriter, Peer, PeerRole, ReadOutcome, WriteOutcome};
pub use send_queue::SendQueue;
pub use tcp::SocketOptions;
pub use wake::Wake;

#[cfg(test)]
mod tests;
