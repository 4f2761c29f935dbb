//! One established management link, and the listener that accepts them.
//!
//! A message is its length (4 bytes, little-endian) and its bytes, alone on its side of a stream.
//! Everything a peer sends is read here, with a limit of length and time, and decoded before anybody else
//! sees it.

use super::client::MgmError;
use super::watch::{STRAYS_MAX, Stray};
use super::{CONNECT_TIMEOUT, LINKS_MAX, MESSAGE_TIMEOUT, quic};
use bincode::{Decode, Encode};
use quinn::{Connection, Endpoint, Incoming, RecvStream, SendStream, VarInt};
use signals::ErrorCode;
use signals::codec::{decode, encode};
use signals::control::Refusal;
use signals::mgm::{MESSAGE_BYTES_MAX, MgmHello, MgmHelloConf};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// Longest hello: names only.
const HELLO_BYTES_MAX: usize = 16 << 10;

/// Waits for peers on a UDP port.
#[derive(Debug)]
pub struct MgmListener {
    endpoint: Endpoint,
    strays: Mutex<mpsc::Receiver<Stray>>,
}

impl MgmListener {
    /// Listens on this address. Must be called inside a tokio runtime.
    pub fn bind(address: SocketAddr) -> Result<MgmListener, MgmError> {
        let (sender, strays) = mpsc::channel(STRAYS_MAX);
        let endpoint = quic::server(address, sender).map_err(|e| {
            MgmError::new(ErrorCode::MGM_REFUSED, format!("cannot listen on UDP {address} (PortNumber): {e}"))
        })?;
        Ok(MgmListener { endpoint, strays: Mutex::new(strays) })
    }

    /// The address really listened on.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next peer that wants a link; `None` when the listener is closed. Beyond the limit of links a
    /// peer is refused here and never seen.
    pub async fn accept(&self) -> Option<MgmIncoming> {
        loop {
            let incoming = self.endpoint.accept().await?;
            if self.endpoint.open_connections() >= LINKS_MAX {
                tracing::warn!(peer = %incoming.remote_address(), "too many management links: peer refused");
                incoming.refuse();
                continue;
            }
            return Some(MgmIncoming { incoming });
        }
    }

    /// The next datagram that made no sense; QUIC drops them without a word. Of a flood some are left out.
    pub async fn stray(&self) -> Stray {
        match self.strays.lock().await.recv().await {
            Some(stray) => stray,
            // The endpoint is gone and with it the socket.
            None => std::future::pending().await,
        }
    }

    /// Closes every link and waits until the peers have been told.
    pub async fn close(&self, reason: &str) {
        self.endpoint.close(VarInt::from_u32(0), reason.as_bytes());
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

/// A peer before its hello.
#[derive(Debug)]
pub struct MgmIncoming {
    incoming: Incoming,
}

impl MgmIncoming {
    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Shakes hands. A peer that does not speak the protocol is told why, as far as it can be, and dropped.
    pub async fn hello(self, conf: &MgmHelloConf) -> Result<(MgmLink, MgmHello), MgmError> {
        let shake = async {
            let connection = self.incoming.await.map_err(|e| broken(&e))?;
            let (send, recv) = connection.accept_bi().await.map_err(|e| broken(&e))?;
            let link = MgmLink { connection, endpoint: None };
            let mut question = Question { send, recv };
            let hello: MgmHello = match question.read_limited(HELLO_BYTES_MAX).await {
                Ok(hello) => hello,
                Err(error) => {
                    link.refuse(question, error.clone().into()).await;
                    return Err(error);
                }
            };
            if let Some(refusal) = hello.invalid() {
                let error = MgmError::from(refusal.clone());
                link.refuse(question, refusal).await;
                return Err(error);
            }
            let answer: Result<MgmHelloConf, Refusal> = Ok(conf.clone());
            question.answer(&answer).await?;
            Ok((link, hello))
        };
        timeout(CONNECT_TIMEOUT, shake).await.unwrap_or_else(|_| {
            Err(MgmError::new(ErrorCode::MALFORMED_MESSAGE, "no management hello came within the time"))
        })
    }
}

/// An established link; clones share it.
#[derive(Debug, Clone)]
pub struct MgmLink {
    connection: Connection,
    /// The client's own endpoint lives as long as its link.
    endpoint: Option<Endpoint>,
}

impl MgmLink {
    /// Connects to a server.
    pub async fn connect(address: SocketAddr, program: &str) -> Result<(MgmLink, MgmHelloConf), MgmError> {
        let (link, answer) = MgmLink::connect_with(address, &MgmHello::new(program)).await?;
        Ok((link, answer?.map_err(MgmError::from)?))
    }

    /// Connects and says this hello; what the server makes of it is the second part.
    pub async fn connect_with(
        address: SocketAddr,
        hello: &MgmHello,
    ) -> Result<(MgmLink, Result<Result<MgmHelloConf, Refusal>, MgmError>), MgmError> {
        let link = MgmLink::dial(address).await?;
        let answer = link.ask(hello, CONNECT_TIMEOUT).await;
        Ok((link, answer))
    }

    /// Connects and says these bytes instead of a hello: for tests of what a server bears.
    pub async fn connect_raw(address: SocketAddr, bytes: &[u8]) -> Result<MgmLink, MgmError> {
        let link = MgmLink::dial(address).await?;
        let (mut send, _recv) = link.connection.open_bi().await.map_err(|e| broken(&e))?;
        send.write_all(bytes).await.map_err(|e| broken(&e))?;
        send.finish().map_err(|e| broken(&e))?;
        let _ = timeout(CONNECT_TIMEOUT, send.stopped()).await;
        Ok(link)
    }

    /// A QUIC connection, without hello.
    async fn dial(address: SocketAddr) -> Result<MgmLink, MgmError> {
        let unreachable =
            |why: String| MgmError::new(ErrorCode::MGM_UNREACHABLE, format!("{address}: {why}"));
        nothing_listens(address).await.map_err(unreachable)?;
        let endpoint = quic::client(address).map_err(|e| unreachable(e.to_string()))?;
        let connecting = endpoint.connect(address, "nucdb-mgmd").map_err(|e| unreachable(e.to_string()))?;
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => Ok(MgmLink { connection, endpoint: Some(endpoint) }),
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable("no answer".to_owned())),
        }
    }

    /// The peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// A number no other link of this process has.
    pub fn id(&self) -> usize {
        self.connection.stable_id()
    }

    /// Asks a question and waits for the answer.
    pub async fn ask<Q: Encode, A: Decode<()>>(&self, question: &Q, wait: Duration) -> Result<A, MgmError> {
        let exchange = async {
            let (send, recv) = self.connection.open_bi().await.map_err(|e| broken(&e))?;
            let mut stream = Question { send, recv };
            stream.write(question).await?;
            stream.read_limited(MESSAGE_BYTES_MAX).await
        };
        timeout(wait, exchange).await.unwrap_or_else(|_| {
            Err(MgmError::new(
                ErrorCode::MGM_NO_ANSWER,
                format!("{} gave no answer in {wait:?}", self.peer()),
            ))
        })
    }

    /// The peer's next question; its message is still to be read.
    pub async fn next_question(&self) -> Result<Question, MgmError> {
        let (send, recv) = self.connection.accept_bi().await.map_err(|e| broken(&e))?;
        Ok(Question { send, recv })
    }

    /// Waits until the link is gone and says why.
    pub async fn closed(&self) -> String {
        self.connection.closed().await.to_string()
    }

    /// Is the link gone?
    pub fn is_closed(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    /// Ends the link.
    pub fn close(&self, reason: &str) {
        self.connection.close(VarInt::from_u32(0), reason.as_bytes());
    }

    /// Ends the link and waits until the peer has been told.
    pub async fn close_and_wait(&self, reason: &str) {
        self.close(reason);
        if let Some(endpoint) = &self.endpoint {
            let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
        }
    }

    /// Answers a bad hello and ends the link once the answer is through.
    async fn refuse(&self, mut question: Question, refusal: Refusal) {
        let detail = refusal.detail.clone();
        let answer: Result<MgmHelloConf, Refusal> = Err(refusal);
        if question.write(&answer).await.is_ok() {
            let _ = timeout(Duration::from_millis(500), question.send.stopped()).await;
        }
        self.close(&detail);
    }
}

/// A question of the peer, on its own stream.
#[derive(Debug)]
pub struct Question {
    send: SendStream,
    recv: RecvStream,
}

impl Question {
    /// Reads the question.
    pub async fn read<Q: Decode<()>>(&mut self) -> Result<Q, MgmError> {
        timeout(MESSAGE_TIMEOUT, self.read_limited(MESSAGE_BYTES_MAX)).await.unwrap_or_else(|_| {
            Err(MgmError::new(ErrorCode::MALFORMED_MESSAGE, "a management message stopped half-way"))
        })
    }

    /// Answers it.
    pub async fn answer<A: Encode>(mut self, answer: &A) -> Result<(), MgmError> {
        self.write(answer).await
    }

    async fn write<T: Encode>(&mut self, message: &T) -> Result<(), MgmError> {
        let bytes = encode(message);
        let length =
            u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MESSAGE_BYTES_MAX && !bytes.is_empty());
        let Some(length) = length else {
            return Err(MgmError::new(ErrorCode::MALFORMED_MESSAGE, "our own message is too long"));
        };
        self.send.write_all(&length.to_le_bytes()).await.map_err(|e| broken(&e))?;
        self.send.write_all(&bytes).await.map_err(|e| broken(&e))?;
        self.send.finish().map_err(|e| broken(&e))
    }

    async fn read_limited<T: Decode<()>>(&mut self, bytes_max: usize) -> Result<T, MgmError> {
        let malformed = |why: String| MgmError::new(ErrorCode::MALFORMED_MESSAGE, why);
        let mut length = [0u8; 4];
        self.read_exact(&mut length).await?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > bytes_max {
            return Err(malformed(format!(
                "management message of {length} bytes; at most {bytes_max} are allowed"
            )));
        }
        // The buffer grows with what really arrives, so an announced length costs nothing by itself.
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let mut chunk = vec![0u8; (length - bytes.len()).min(64 << 10)];
            self.read_exact(&mut chunk).await?;
            bytes.append(&mut chunk);
        }
        decode(&bytes).map_err(|e| malformed(e.to_string()))
    }

    async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), MgmError> {
        use quinn::ReadExactError::{FinishedEarly, ReadError};
        match self.recv.read_exact(buffer).await {
            Ok(()) => Ok(()),
            Err(FinishedEarly(_)) => {
                Err(MgmError::new(ErrorCode::MALFORMED_MESSAGE, "a management message was cut short"))
            }
            Err(ReadError(error)) => Err(broken(&error)),
        }
    }
}

/// A link that broke under a question.
fn broken(error: &dyn std::error::Error) -> MgmError {
    MgmError::new(ErrorCode::MGM_LINK_LOST, format!("management link lost: {error}"))
}

/// QUIC ignores the operating system's "port unreachable", so a server that is not there would cost the whole
/// timeout. One datagram that means nothing to a server that is there tells in a moment. No answer is good
/// news.
async fn nothing_listens(address: SocketAddr) -> Result<(), String> {
    let bound = tokio::net::UdpSocket::bind(SocketAddr::new(quic::local_for(address.ip()), 0)).await;
    let socket = bound.map_err(|e| e.to_string())?;
    socket.connect(address).await.map_err(|e| e.to_string())?;
    socket.send(&[0]).await.map_err(|e| e.to_string())?;
    let mut buffer = [0u8; 1];
    match timeout(Duration::from_millis(20), socket.recv(&mut buffer)).await {
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Err("nothing listens there".to_owned())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
