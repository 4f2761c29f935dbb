//! Bytes that no client should send, at every state, and bad statements by the thousand.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::client::{BASE, Client, error_code, response};
use super::toy::ToyServer;
use crate::protocol::constants::Capabilities;
use crate::protocol::{ServerConfig, StatusFlags};

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, max: usize) -> Vec<u8> {
        let length = self.next() as usize % (max + 1);
        (0..length).map(|_| self.next() as u8).collect()
    }
}

async fn impatient() -> ToyServer {
    let config = ServerConfig {
        connect_timeout: Duration::from_millis(200),
        net_read_timeout: Duration::from_millis(200),
        max_connections: 2000,
        ..ServerConfig::default()
    };
    ToyServer::with(config, Duration::from_secs(600)).await
}

#[tokio::test]
async fn random_bytes_instead_of_a_login_hurt_nobody() {
    let server = impatient().await;
    let mut random = Random(4711);
    for _ in 0..150 {
        let mut client = Client::connect(server.port).await;
        let bytes = random.bytes(300);
        let _ = client.stream.write_all(&bytes).await;
        let _ = client.stream.shutdown().await;
        client.assert_closed().await;
    }
    for _ in 0..150 {
        let mut client = Client::connect(server.port).await;
        client.read().await.unwrap();
        client.write(&random.bytes(300)).await;
        let _ = client.stream.shutdown().await;
        client.assert_closed().await;
    }
    Client::login(server.port).await.assert_alive().await;
}

#[tokio::test]
async fn a_login_cut_anywhere_hurts_nobody() {
    let server = impatient().await;
    let packet = response(BASE.with(Capabilities::CONNECT_WITH_DB), "root", b"abc", "mysql_native_password");
    for cut in 0..packet.len() {
        let mut client = Client::connect(server.port).await;
        client.read().await.unwrap();
        client.write(&packet[..cut]).await;
        let _ = client.stream.shutdown().await;
        client.assert_closed().await;
    }
    // The frame promises more than comes.
    for cut in [0, 1, 4, 20, 40] {
        let mut client = Client::connect(server.port).await;
        client.read().await.unwrap();
        let mut frame = vec![packet.len() as u8, 0, 0, 1];
        frame.extend_from_slice(&packet[..cut]);
        client.stream.write_all(&frame).await.unwrap();
        client.assert_closed().await;
    }
    // A TLS request followed by something that is not TLS.
    let mut client = Client::connect(server.port).await;
    client.read().await.unwrap();
    client.write(&response(BASE.with(Capabilities::SSL), "", b"", "")[..32]).await;
    let _ = client.stream.write_all(&[0x42; 500]).await;
    client.assert_closed().await;
    // A login packet of sixteen megabytes.
    let mut client = Client::connect(server.port).await;
    client.read().await.unwrap();
    client.write(&vec![1; 16_000_000]).await;
    client.assert_closed().await;
    Client::login(server.port).await.assert_alive().await;
}

#[tokio::test]
async fn random_commands_get_answers_and_the_connection_lives() {
    let server = impatient().await;
    let mut random = Random(99);
    let mut client = Client::login(server.port).await;
    for round in 0..3000 {
        let code = random.next() as u8;
        let arguments = random.bytes(40);
        // Left out: QUIT ends the connection, CHANGE_USER with a bad password too, and a real statement
        // needs its rows read. The silent ones are sent without waiting.
        match code {
            0x01 | 0x11 | 0x03 | 0x0a | 0x0c | 0x04 => continue,
            0x18 | 0x19 => client.command(code, &arguments).await,
            _ => {
                let answer = client.ask(code, &arguments).await;
                assert!(!answer.is_empty() || code == 0x09, "round {round} code {code}");
            }
        }
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn thousands_of_bad_statements_leave_the_connection_alive() {
    let server = impatient().await;
    let mut random = Random(7);
    let mut client = Client::login(server.port).await;
    for _ in 0..1000 {
        let mut sql = random.bytes(60);
        sql.insert(0, b'?');
        sql.retain(|&b| b != b';');
        assert!(matches!(error_code(&client.ask(3, &sql).await), 1064 | 1065));
        assert!(matches!(error_code(&client.ask(0x16, &sql).await), 1064 | 1065));
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn execute_with_broken_arguments_is_an_error() {
    let server = impatient().await;
    let mut random = Random(1234);
    let mut client = Client::login_with(server.port, BASE.with(Capabilities::DEPRECATE_EOF)).await;
    let prepared = client.ask(0x16, b"SELECT ?, ?, ?").await;
    for _ in 0..6 {
        client.read().await.unwrap();
    }
    let id = &prepared[1..5];
    let mut errors = 0;
    for _ in 0..2000 {
        let mut arguments = [id, &[0, 1, 0, 0, 0]].concat();
        arguments.extend(random.bytes(40));
        let first = client.ask(0x17, &arguments).await;
        if first[0] == 0xff {
            errors += 1;
        } else {
            client.rows(&first).await;
        }
    }
    assert!(errors > 500, "{errors} of 2000 random argument lists were refused");
    for length in 0..9 {
        let first = client.ask(0x17, &[id, &[0, 1, 0, 0, 0]].concat()[..length]).await;
        assert_eq!(error_code(&first), 1835, "length {length}");
    }
    client.assert_alive().await;
    assert_eq!(client.ask(0x0e, b"").await[3], StatusFlags::AUTOCOMMIT.0 as u8);
}
