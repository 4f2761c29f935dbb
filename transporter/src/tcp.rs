//! TCP: socket settings of data plane links, listening, and connecting with a limit on the time it takes.
//!
//! Sockets are non-blocking, without Nagle's delay, and have buffers big enough for a batch but small
//! enough that a peer which does not read is noticed before megabytes have gone into the kernel.

use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// `TCP_SND_BUF_SIZE` and `TCP_RCV_BUF_SIZE` of the configuration; 0 leaves the size to the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketOptions {
    /// Bytes of the socket's send buffer.
    pub send_buffer_bytes: usize,
    /// Bytes of the socket's receive buffer.
    pub receive_buffer_bytes: usize,
}

/// Makes a connected socket a link's socket.
pub(crate) fn prepare(stream: &TcpStream, options: SocketOptions) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    if options.send_buffer_bytes > 0 {
        sockopt::set_socket_send_buffer_size(stream, options.send_buffer_bytes)?;
    }
    if options.receive_buffer_bytes > 0 {
        sockopt::set_socket_recv_buffer_size(stream, options.receive_buffer_bytes)?;
    }
    Ok(())
}

/// Listens on `address` (`host:port`), non-blocking.
///
/// # Errors
/// The address does not resolve, is not of this machine, or is taken.
pub fn listen(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to the first of `address`'s resolutions that answers before `deadline`.
pub(crate) fn connect(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    // Resolved anew at every attempt: a peer may come back with another address.
    let candidates: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for candidate in candidates {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&candidate, left.max(Duration::from_millis(1))) {
            // Connecting to a free local port of the ephemeral range can meet itself.
            Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {
                last = io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there");
            }
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
