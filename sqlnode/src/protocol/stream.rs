//! Streams: the two halves of a client's connection, plain or TLS, with timeouts on every wait.
//!
//! [`Input`] reads big pieces and hands out packets; [`Output`] gathers packets and writes them at once. They
//! are separate values so that a connection can notice that its client went away while a statement is
//! running. Before login [`Input`] reads not one byte more than the packet it is waiting for: what follows
//! may already be TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::error::ProtocolError;
use super::packet::{Decoded, PacketDecoder, PacketEncoder};

/// How much one read takes.
const READ_BYTES: usize = 16 * 1024;
/// A result is flushed to the client whenever this much waits.
pub(super) const FLUSH_BYTES: usize = 32 * 1024;

#[derive(Debug)]
enum ReadHalf {
    Plain(OwnedReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream<TcpStream>>),
}

#[derive(Debug)]
enum WriteHalf {
    Plain(OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<TlsStream<TcpStream>>),
}

/// Why no packet came.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The client closed the connection or it broke.
    Gone,
    /// The client was silent for too long.
    TimedOut,
    /// The bytes make no sense.
    Protocol(ProtocolError),
}

/// The incoming half.
#[derive(Debug)]
pub(super) struct Input {
    stream: ReadHalf,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    decoder: PacketDecoder,
}

impl Input {
    /// The packet that [`Self::packet`] found.
    pub(super) fn payload(&self) -> &[u8] {
        self.decoder.payload()
    }

    /// The framing state.
    pub(super) fn decoder(&mut self) -> &mut PacketDecoder {
        &mut self.decoder
    }

    /// Reads one packet. The first byte may take `first`, every later wait `later`. With `exact`, nothing
    /// after the packet is read.
    pub(super) async fn packet(
        &mut self,
        first: Duration,
        later: Duration,
        exact: bool,
    ) -> Result<(), ReadError> {
        let mut patience = first;
        loop {
            if self.start < self.end {
                patience = later;
                let decoded =
                    self.decoder.decode(&self.buffer[self.start..self.end]).map_err(ReadError::Protocol)?;
                match decoded {
                    Decoded::NeedMore => self.start = self.end,
                    Decoded::Packet { used } => {
                        self.start += used;
                        return Ok(());
                    }
                    Decoded::TooLarge { used } => {
                        self.start += used;
                        let limit = self.decoder.limit();
                        return Err(ReadError::Protocol(ProtocolError::TooLarge { limit }));
                    }
                }
            }
            self.start = 0;
            self.end = 0;
            let room = if exact { self.decoder.missing().min(self.buffer.len()) } else { self.buffer.len() };
            let got = timeout(patience, read(&mut self.stream, &mut self.buffer[..room]))
                .await
                .map_err(|_| ReadError::TimedOut)?
                .map_err(|_| ReadError::Gone)?;
            if got == 0 {
                return Err(ReadError::Gone);
            }
            self.end = got;
        }
    }

    /// Waits until the client closes its side, keeping what it sends meanwhile. A client that has sent a
    /// whole buffer ahead is taken to be alive and is not watched any further. Dropping the future loses
    /// nothing.
    pub(super) async fn closed(&mut self) {
        loop {
            if self.start == self.end {
                self.start = 0;
                self.end = 0;
            }
            if self.end == self.buffer.len() {
                return std::future::pending().await;
            }
            match read(&mut self.stream, &mut self.buffer[self.end..]).await {
                Ok(0) | Err(_) => return,
                Ok(got) => self.end += got,
            }
        }
    }

    /// Reads and forgets what the client still sends, so that closing does not destroy an error on its way to
    /// it.
    pub(super) async fn drain(&mut self, patience: Duration) {
        let _ = timeout(patience, async {
            while let Ok(got) = read(&mut self.stream, &mut self.buffer).await {
                if got == 0 {
                    break;
                }
            }
        })
        .await;
    }
}

async fn read(stream: &mut ReadHalf, buffer: &mut [u8]) -> io::Result<usize> {
    match stream {
        ReadHalf::Plain(half) => half.read(buffer).await,
        ReadHalf::Tls(half) => half.read(buffer).await,
    }
}

/// The outgoing half.
#[derive(Debug)]
pub(super) struct Output {
    stream: WriteHalf,
    /// The packets that wait to be written.
    pub(super) encoder: PacketEncoder,
    /// How many of those bytes are written already.
    written: usize,
    write_timeout: Duration,
}

impl Output {
    /// Writes everything that waits. An error means the client is gone or does not read. Dropping the
    /// future in the middle is safe: what has been written is not written again.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        let Self { stream, encoder, written, write_timeout } = self;
        if encoder.is_empty() {
            return Ok(());
        }
        let work = async {
            while *written < encoder.len() {
                let rest = &encoder.bytes()[*written..];
                let wrote = match stream {
                    WriteHalf::Plain(half) => half.write(rest).await?,
                    WriteHalf::Tls(half) => half.write(rest).await?,
                };
                if wrote == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                *written += wrote;
            }
            match stream {
                WriteHalf::Plain(_) => Ok(()),
                WriteHalf::Tls(half) => half.flush().await,
            }
        };
        timeout(*write_timeout, work)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client does not read its results"))??;
        encoder.clear();
        *written = 0;
        Ok(())
    }

    /// Writes when enough has gathered.
    pub(super) async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.encoder.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Tells the client that nothing more comes.
    pub(super) async fn close(&mut self) {
        let work = async {
            match &mut self.stream {
                WriteHalf::Plain(half) => half.shutdown().await,
                WriteHalf::Tls(half) => half.shutdown().await,
            }
        };
        let _ = timeout(Duration::from_secs(1), work).await;
    }
}

/// Splits an accepted connection.
pub(super) fn split(stream: TcpStream, limit: usize, write_timeout: Duration) -> (Input, Output) {
    let (read, write) = stream.into_split();
    let input = Input {
        stream: ReadHalf::Plain(read),
        buffer: vec![0; READ_BYTES].into_boxed_slice(),
        start: 0,
        end: 0,
        decoder: PacketDecoder::new(limit),
    };
    (
        input,
        Output { stream: WriteHalf::Plain(write), encoder: PacketEncoder::new(), written: 0, write_timeout },
    )
}

/// Starts TLS on both halves, keeping sequence numbers. The halves must be idle and plain.
pub(super) async fn start_tls(
    input: Input,
    output: Output,
    acceptor: &TlsAcceptor,
    patience: Duration,
) -> io::Result<(Input, Output)> {
    let (ReadHalf::Plain(read), WriteHalf::Plain(write)) = (input.stream, output.stream) else {
        return Err(io::Error::other("TLS is on already"));
    };
    let stream = read.reunite(write).map_err(io::Error::other)?;
    let tls = timeout(patience, acceptor.accept(stream))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time"))??;
    let (read, write) = tokio::io::split(tls);
    Ok((Input { stream: ReadHalf::Tls(read), ..input }, Output { stream: WriteHalf::Tls(write), ..output }))
}
