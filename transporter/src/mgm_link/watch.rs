//! Watch: a look at every datagram that reaches a management server's port, before QUIC does.
//!
//! QUIC drops what it cannot make sense of without a word. An operator wants to hear of it, so datagrams are
//! told apart here by where they come from: an address that has asked for a connection may send anything
//! afterwards, and what is wrong with it ends its link with a reason. From any other address only the
//! request for a connection makes sense: a long header of QUIC version 1 in a datagram of at least 1200
//! bytes (RFC 9000, sections 14.1 and 17.2). Everything else is a stray: garbage, or the last words of a
//! link to a server that ran here before.
//!
//! Datagrams are passed on as they are, strays too, and nothing is kept but a bounded list of addresses.

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Addresses remembered; the one silent for longest goes first. Links keep themselves alive, so theirs stay.
const ADDRESSES_MAX: usize = 4096;
/// Strays that may wait to be reported; more are dropped, since nobody would read them.
pub(super) const STRAYS_MAX: usize = 64;
/// Least bytes of a datagram that asks for a connection.
const INITIAL_BYTES_MIN: usize = 1200;

/// A datagram nobody asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray {
    /// Where it came from.
    pub peer: SocketAddr,
    /// Its length.
    pub bytes: usize,
}

/// The addresses that have asked for a connection, with the number of the last datagram of each.
#[derive(Debug, Default)]
struct Known {
    addresses: HashMap<SocketAddr, u64>,
    datagrams: u64,
}

impl Known {
    /// Whether a datagram makes sense.
    fn admits(&mut self, peer: SocketAddr, datagram: &[u8]) -> bool {
        self.datagrams += 1;
        if let Some(last) = self.addresses.get_mut(&peer) {
            *last = self.datagrams;
            return true;
        }
        if !asks_for_connection(datagram) {
            return false;
        }
        if self.addresses.len() >= ADDRESSES_MAX {
            let quietest = self.addresses.iter().min_by_key(|(_, last)| **last).map(|(peer, _)| *peer);
            quietest.and_then(|peer| self.addresses.remove(&peer));
        }
        self.addresses.insert(peer, self.datagrams);
        true
    }
}

fn asks_for_connection(datagram: &[u8]) -> bool {
    // Long header, the bit that is always set, type Initial; then version 1.
    datagram.len() >= INITIAL_BYTES_MIN && datagram[0] & 0xF0 == 0xC0 && datagram[1..5] == [0, 0, 0, 1]
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watched {
    socket: Arc<dyn AsyncUdpSocket>,
    known: Mutex<Known>,
    strays: mpsc::Sender<Stray>,
}

impl Watched {
    /// Watches `socket` and reports strays.
    pub(super) fn new(socket: Arc<dyn AsyncUdpSocket>, strays: mpsc::Sender<Stray>) -> Self {
        Self { socket, known: Mutex::default(), strays }
    }

    fn look(&self, peer: SocketAddr, datagram: &[u8]) {
        let admitted = self.known.lock().unwrap_or_else(PoisonError::into_inner).admits(peer, datagram);
        if !admitted {
            let _ = self.strays.try_send(Stray { peer, bytes: datagram.len() });
        }
    }
}

impl AsyncUdpSocket for Watched {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.socket.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(count)) = received {
            for (buffer, meta) in bufs.iter().zip(meta.iter()).take(count) {
                let bytes = buffer.get(..meta.len).unwrap_or_default();
                if bytes.is_empty() {
                    self.look(meta.addr, bytes);
                }
                // The kernel may hand over several datagrams of one peer as one.
                bytes.chunks(meta.stride.max(1)).for_each(|datagram| self.look(meta.addr, datagram));
            }
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn request() -> Vec<u8> {
        let mut datagram = vec![0xC3, 0, 0, 0, 1];
        datagram.resize(INITIAL_BYTES_MIN, 7);
        datagram
    }

    #[test]
    fn only_a_request_for_a_connection_is_admitted_from_a_new_address() {
        let mut known = Known::default();
        let short = request()[..INITIAL_BYTES_MIN - 1].to_vec();
        let mut version = request();
        version[4] = 9;
        let mut header = request();
        header[0] = 0x43;
        for garbage in
            [Vec::new(), vec![0], vec![0xFF; 4096], b"GET / HTTP/1.1".to_vec(), short, version, header]
        {
            assert!(!known.admits(peer(1), &garbage), "{} bytes", garbage.len());
        }
        assert!(known.admits(peer(1), &request()));
        assert!(known.admits(peer(1), &[0x40, 1, 2]), "what follows is its connection's affair");
        assert!(!known.admits(peer(2), &[0x40, 1, 2]));
    }

    #[test]
    fn the_address_that_was_silent_for_longest_is_forgotten() {
        let mut known = Known::default();
        for port in 0..ADDRESSES_MAX as u16 {
            assert!(known.admits(peer(port), &request()));
        }
        assert!(known.admits(peer(0), &[1]), "a link that keeps itself alive");
        assert!(known.admits(peer(60_000), &request()));
        assert_eq!(known.addresses.len(), ADDRESSES_MAX);
        assert!(known.admits(peer(0), &[1]) && !known.admits(peer(1), &[1]));
    }
}
