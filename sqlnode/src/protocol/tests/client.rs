//! A raw client: packets in, packets out, nothing hidden.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocol::constants::Capabilities;
use crate::protocol::packet::FRAME_PAYLOAD_MAX;

pub(super) struct Client {
    pub(super) stream: TcpStream,
    sequence: u8,
    pub(super) capabilities: Capabilities,
}

pub(super) const BASE: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::MULTI_STATEMENTS.0
        | Capabilities::MULTI_RESULTS.0,
);

pub(super) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("no answer in time")
}

impl Client {
    pub(super) async fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        Self { stream, sequence: 0, capabilities: BASE }
    }

    /// Connects and logs in as root.
    pub(super) async fn login(port: u16) -> Self {
        Self::login_with(port, BASE).await
    }

    pub(super) async fn login_with(port: u16, capabilities: Capabilities) -> Self {
        let mut client = Self::connect(port).await;
        client.capabilities = capabilities;
        let greeting = client.read().await.unwrap();
        assert_eq!(greeting[0], 10);
        assert!(greeting[1..].starts_with(b"8.0.40-nucdb"));
        client.write(&response(capabilities, "root", b"", "caching_sha2_password")).await;
        let ok = client.read().await.unwrap();
        assert_eq!(ok[0], 0, "{}", String::from_utf8_lossy(&ok));
        client
    }

    /// One packet; None when the server has closed.
    pub(super) async fn read(&mut self) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            within(self.stream.read_exact(&mut header)).await.ok()?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            assert_eq!(header[3], self.sequence, "the server's sequence number");
            self.sequence = self.sequence.wrapping_add(1);
            let start = payload.len();
            payload.resize(start + length, 0);
            within(self.stream.read_exact(&mut payload[start..])).await.ok()?;
            if length < FRAME_PAYLOAD_MAX {
                return Some(payload);
            }
        }
    }

    /// Sends a packet as the next of the conversation.
    pub(super) async fn write(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        let mut rest = payload;
        loop {
            let (chunk, tail) = rest.split_at(rest.len().min(FRAME_PAYLOAD_MAX));
            bytes.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
            bytes.push(self.sequence);
            bytes.extend_from_slice(chunk);
            self.sequence = self.sequence.wrapping_add(1);
            rest = tail;
            if chunk.len() < FRAME_PAYLOAD_MAX {
                break;
            }
        }
        // A server that has had enough may close while we write; what it said is read afterwards.
        let _ = within(self.stream.write_all(&bytes)).await;
    }

    /// Sends a command.
    pub(super) async fn command(&mut self, code: u8, arguments: &[u8]) {
        self.sequence = 0;
        self.write(&[&[code], arguments].concat()).await;
    }

    /// Sends a command and reads the first packet of its answer.
    pub(super) async fn ask(&mut self, code: u8, arguments: &[u8]) -> Vec<u8> {
        self.command(code, arguments).await;
        self.read().await.expect("an answer")
    }

    /// Reads the rest of a result with rows after its first packet: the rows' packets and the closing one.
    pub(super) async fn rows(&mut self, first: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
        assert!(first.len() == 1 && first[0] != 0, "{}", String::from_utf8_lossy(first));
        for _ in 0..first[0] {
            assert!(self.read().await.unwrap().starts_with(b"\x03def"));
        }
        if !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            assert_eq!(self.read().await.unwrap()[0], 0xfe);
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.read().await.unwrap();
            if packet[0] == 0xff || (packet[0] == 0xfe && packet.len() < 9) {
                return (rows, packet);
            }
            rows.push(packet);
        }
    }

    /// Proves that the connection lives.
    pub(super) async fn assert_alive(&mut self) {
        let first = self.ask(3, b"SELECT 42").await;
        let (rows, _) = self.rows(&first).await;
        assert_eq!(rows, vec![b"\x0242".to_vec()]);
    }

    /// Reads until the server closes.
    pub(super) async fn assert_closed(&mut self) {
        let mut rest = Vec::new();
        let _ = within(self.stream.read_to_end(&mut rest)).await;
    }
}

/// A login packet.
pub(super) fn response(capabilities: Capabilities, user: &str, answer: &[u8], plugin: &str) -> Vec<u8> {
    let mut packet = capabilities.0.to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    packet.push(45);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(user.as_bytes());
    packet.push(0);
    packet.push(answer.len() as u8);
    packet.extend_from_slice(answer);
    packet.extend_from_slice(plugin.as_bytes());
    packet.push(0);
    packet
}

/// The number of an ERR packet.
pub(super) fn error_code(packet: &[u8]) -> u16 {
    assert_eq!(packet[0], 0xff, "an error expected, got {}", String::from_utf8_lossy(packet));
    u16::from_le_bytes([packet[1], packet[2]])
}
