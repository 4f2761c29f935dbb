//! Conversations between a raw client and the server, packet by packet.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::client::{BASE, Client, error_code, response, within};
use super::toy::ToyServer;
use crate::protocol::constants::Capabilities;
use crate::protocol::packet::FRAME_PAYLOAD_MAX;
use crate::protocol::processes::KillRequest;
use crate::protocol::{ServerConfig, StatusFlags};

fn small(change: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    let mut config = ServerConfig { tls: false, ..ServerConfig::default() };
    change(&mut config);
    config
}

/// Waits for something another task will do; panics when it does not happen.
async fn until(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn simple_commands_are_answered() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    assert_eq!(client.ask(0x0e, b"").await, [0, 0, 0, 2, 0, 0, 0], "ping");
    assert_eq!(client.ask(0x02, b"shop").await[0], 0, "init db");
    assert_eq!(error_code(&client.ask(0x02, b"nowhere").await), 1049);
    assert!(client.ask(0x09, b"").await.starts_with(b"Uptime: "), "statistics");
    assert_eq!(client.ask(0x1b, b"\0\0").await[0], 0xfe, "set option");
    assert_eq!(error_code(&client.ask(0x1b, b"\x09\0").await), 1047);
    assert_eq!(client.ask(0x0d, b"").await[0], 0xfe, "debug");
    assert_eq!(error_code(&client.ask(0x0c, &9999_u32.to_le_bytes()).await), 1094, "kill");
    assert_eq!(error_code(&client.ask(0x1d, b"").await), 1047, "unknown");
    let first = client.ask(0x0a, b"").await;
    assert_eq!(client.rows(&first).await.0.len(), 1, "process info");
    assert!(client.ask(0x04, b"t\0").await.starts_with(b"\x03def"), "field list");
    assert!(client.read().await.unwrap().starts_with(b"\x03def"));
    assert_eq!(client.read().await.unwrap()[0], 0xfe);
    assert_eq!(error_code(&client.ask(0x04, b"missing\0").await), 1146);
    client.assert_alive().await;
    client.command(0x01, b"").await;
    client.assert_closed().await;
}

#[tokio::test]
async fn ok_packets_report_the_session() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    let ok = client.ask(3, b"BEGIN").await;
    assert_eq!(ok[3], (StatusFlags::AUTOCOMMIT.0 | StatusFlags::IN_TRANS.0) as u8);
    let ok = client.ask(3, b"UPDATE t").await;
    assert_eq!(&ok[..7], [0, 1, 77, 3, 0, 3, 0]);
    assert!(ok.ends_with(b"Warnings: 3"));
    assert_eq!(client.ask(0x1f, b"").await[3], StatusFlags::AUTOCOMMIT.0 as u8, "reset connection");
    let mut finder = Client::login_with(server.port, BASE.with(Capabilities::FOUND_ROWS)).await;
    assert_eq!(finder.ask(3, b"UPDATE t").await[1], 2, "found rows, not changed ones");
}

#[tokio::test]
async fn several_statements_give_several_results() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    let first = client.ask(3, b"SELECT 1; BEGIN; bad; SELECT 2").await;
    let (rows, end) = client.rows(&first).await;
    assert_eq!(rows, vec![b"\x011".to_vec()]);
    assert_eq!(end[3] & StatusFlags::MORE_RESULTS_EXISTS.0 as u8, 8);
    assert_eq!(client.read().await.unwrap()[3] & 8, 8);
    assert_eq!(error_code(&client.read().await.unwrap()), 1064, "an error ends the chain");
    client.assert_alive().await;
    client.ask(0x1b, b"\x01\0").await;
    assert_eq!(error_code(&client.ask(3, b"BEGIN; BEGIN; bad").await[..]), 1064);
}

#[tokio::test]
async fn results_end_with_ok_for_clients_without_eof() {
    let server = ToyServer::start().await;
    let mut client = Client::login_with(server.port, BASE.with(Capabilities::DEPRECATE_EOF)).await;
    let first = client.ask(3, b"ROWS 3").await;
    let (rows, end) = client.rows(&first).await;
    assert_eq!(rows.len(), 3);
    assert_eq!(end, [0xfe, 0, 0, 2, 0, 0, 0]);
    client.assert_alive().await;
}

#[tokio::test]
async fn an_error_after_the_first_rows_ends_the_result_and_not_the_connection() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    let first = client.ask(3, b"FAILMIDWAY").await;
    let (rows, end) = client.rows(&first).await;
    assert_eq!((rows.len(), error_code(&end)), (1, 1205));
    client.assert_alive().await;
}

#[tokio::test]
async fn large_packets_pass_in_both_directions() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    for size in [FRAME_PAYLOAD_MAX - 10, FRAME_PAYLOAD_MAX - 4, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 5] {
        let first = client.ask(3, format!("WIDE {size}").as_bytes()).await;
        let (rows, _) = client.rows(&first).await;
        assert!(rows[0].len() > size && rows[0].ends_with(b"www"), "{size}");
        let sql = format!("SELECT {}", "q".repeat(size));
        let first = client.ask(3, sql.as_bytes()).await;
        let (rows, _) = client.rows(&first).await;
        assert!(rows[0].len() > size && rows[0].ends_with(b"qqq"), "{size}");
    }
}

#[tokio::test]
async fn an_oversized_statement_is_refused_and_the_connection_lives() {
    let config = small(|c| c.max_allowed_packet = 100_000);
    let server = ToyServer::with(config, Duration::from_secs(600)).await;
    let mut client = Client::login(server.port).await;
    for size in [100_000, 3_000_000, FRAME_PAYLOAD_MAX + 100] {
        assert_eq!(error_code(&client.ask(3, &vec![b'x'; size]).await), 1153, "{size}");
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn sequence_errors_end_the_connection_with_a_reason() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    client.write(b"\x0e").await;
    // The server counts from zero; so must the reader of its answer.
    let mut bytes = Vec::new();
    within(tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut bytes)).await.unwrap();
    assert_eq!(error_code(&bytes[4..]), 1156);
    let mut client = Client::login(server.port).await;
    client.assert_alive().await;
}

#[tokio::test]
async fn wrong_logins_are_refused_with_1045() {
    let server = ToyServer::start().await;
    for (user, answer, plugin) in [
        ("root", &b"wrong"[..], "caching_sha2_password"),
        ("nobody", b"12345678901234567890123456789012", "caching_sha2_password"),
        ("native", b"12345678901234567890", "mysql_native_password"),
        ("native", b"", "mysql_native_password"),
        ("sha2", b"12345678901234567890123456789012", "caching_sha2_password"),
        ("", b"", "caching_sha2_password"),
    ] {
        let mut client = Client::connect(server.port).await;
        client.read().await.unwrap();
        client.write(&response(BASE, user, answer, plugin)).await;
        assert_eq!(error_code(&client.read().await.unwrap()), 1045, "{user}");
        client.assert_closed().await;
    }
    assert_eq!(server.counters.open.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn change_user_opens_a_new_session() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    client.ask(3, b"BEGIN").await;
    let prepared = client.ask(0x16, b"BEGIN").await;
    let ok = client.ask(0x11, b"root\0\0shop\0\x2d\0caching_sha2_password\0").await;
    assert_eq!(ok, [0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(error_code(&client.ask(0x17, &[&prepared[1..5], &[0, 1, 0, 0, 0]].concat()).await), 1243);
    client.assert_alive().await;
    assert_eq!(client.ask(0x11, b"native\0\0\0\x2d\0caching_sha2_password\0").await[0], 0xfe);
    client.write(b"12345678901234567890").await;
    assert_eq!(error_code(&client.read().await.unwrap()), 1045);
    client.assert_closed().await;
    until(|| server.counters.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn the_connection_limit_is_answered_with_1040() {
    let server = ToyServer::with(small(|c| c.max_connections = 2), Duration::from_secs(600)).await;
    let a = Client::login(server.port).await;
    let _b = Client::login(server.port).await;
    let mut c = Client::connect(server.port).await;
    assert_eq!(error_code(&c.read().await.unwrap()), 1040);
    drop(a);
    until(|| server.processes.count() == 1).await;
    Client::login(server.port).await.assert_alive().await;
}

#[tokio::test]
async fn silent_clients_are_let_go() {
    let config = small(|c| c.connect_timeout = Duration::from_millis(100));
    let server = ToyServer::with(config, Duration::from_millis(100)).await;
    let mut mute = Client::connect(server.port).await;
    mute.read().await.unwrap();
    mute.assert_closed().await;
    let mut idle = Client::login(server.port).await;
    let mut bytes = Vec::new();
    within(tokio::io::AsyncReadExt::read_to_end(&mut idle.stream, &mut bytes)).await.unwrap();
    assert_eq!(error_code(&bytes[4..]), 4031);
    until(|| server.processes.count() == 0).await;
}

#[tokio::test]
async fn a_client_that_vanishes_takes_its_statement_with_it() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    client.command(3, b"SLEEP").await;
    until(|| server.processes.rows().iter().any(|row| row.statement.as_deref() == Some("SLEEP"))).await;
    drop(client);
    until(|| server.counters.open.load(Ordering::SeqCst) == 0).await;
    assert_eq!(server.counters.interrupted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn kill_ends_a_statement_or_a_connection() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    let id = server.processes.rows()[0].id;
    client.command(3, b"SLEEP").await;
    until(|| server.processes.rows().iter().any(|row| row.statement.is_some())).await;
    let mut killer = Client::login(server.port).await;
    assert_eq!(killer.ask(3, format!("KILL {id}").as_bytes()).await[0], 0);
    assert_eq!(error_code(&client.read().await.unwrap()), 1317);
    client.assert_alive().await;
    assert!(server.processes.kill(id, KillRequest::Connection));
    client.assert_closed().await;
}

#[tokio::test]
async fn a_panic_in_a_statement_is_an_error_of_that_statement() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    assert_eq!(error_code(&client.ask(3, b"PANIC").await), 1815);
    assert_eq!(error_code(&client.ask(0x16, b"PANIC").await), 1815);
    client.assert_alive().await;
    assert_eq!(server.counters.interrupted.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_slow_reader_gets_all_rows_of_a_large_result() {
    let server = ToyServer::start().await;
    let mut client = Client::login(server.port).await;
    client.command(3, b"ROWS 400000").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let first = client.read().await.unwrap();
    let (rows, _) = client.rows(&first).await;
    assert_eq!(rows.len(), 400_000);
    assert!(rows[399_999].starts_with(b"\x06399999"));
    client.assert_alive().await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_dropped() {
    let config = small(|c| c.net_write_timeout = Duration::from_millis(100));
    let server = ToyServer::with(config, Duration::from_secs(600)).await;
    let mut client = Client::login(server.port).await;
    client.command(3, b"ROWS 4000000").await;
    until(|| server.processes.count() == 0).await;
    drop(client);
}

#[tokio::test]
async fn shutdown_ends_idle_and_busy_connections() {
    let mut server = ToyServer::start().await;
    let mut idle = Client::login(server.port).await;
    let mut busy = Client::login(server.port).await;
    busy.command(3, b"SLEEP").await;
    until(|| server.processes.rows().iter().any(|row| row.statement.is_some())).await;
    server.stop();
    idle.assert_closed().await;
    busy.assert_closed().await;
    within(&mut server.task).await.unwrap();
    assert_eq!(server.counters.open.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_statement_limit_is_answered_with_1461() {
    let server =
        ToyServer::with(small(|c| c.max_session_prepared_stmt_count = 3), Duration::from_secs(600)).await;
    let mut client = Client::login(server.port).await;
    let first = client.ask(0x16, b"BEGIN").await;
    assert_eq!(first[0], 0);
    client.ask(0x16, b"BEGIN").await;
    client.ask(0x16, b"BEGIN").await;
    assert_eq!(error_code(&client.ask(0x16, b"BEGIN").await), 1461);
    client.command(0x19, &first[1..5]).await;
    assert_eq!(client.ask(0x16, b"BEGIN").await[0], 0);
}
