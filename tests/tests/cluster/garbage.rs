//! Garbage on every port: the sender is disconnected, and nothing else happens.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::time::Duration;
use tests::{Cluster, Options};

/// How long a port may take to drop a sender of garbage that has closed its side.
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// Bytes that look like nothing, like something else, or like a message that never ends.
fn patterns() -> Vec<Vec<u8>> {
    let mut patterns = vec![
        Vec::new(),
        vec![0],
        vec![0; 4096],
        vec![0xFF; 4096],
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03".to_vec(),
        // MySQL packets: the longest length with nothing behind, a login that is cut, an empty login.
        b"\xFF\xFF\xFF\x01".to_vec(),
        b"\x55\x00\x00\x01\x8D\xA6\xFF\x00\x00\x00\x00\x01root".to_vec(),
        b"\x00\x00\x00\x01".to_vec(),
        b"\x01\x00\x00\x00\x03".to_vec(),
    ];
    // A fixed sequence, so that a failure repeats.
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    for length in [7, 64, 1000, 70_000] {
        let bytes = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        patterns.push(bytes.take(length).collect());
    }
    patterns
}

/// Sends a pattern, closes the sending side, and waits for the port to close the other.
fn send(port: u16, pattern: &[u8]) {
    let mut stream =
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_or_else(|e| panic!("port {port}: {e}"));
    stream.set_read_timeout(Some(DROP_LIMIT)).unwrap();
    stream.set_write_timeout(Some(DROP_LIMIT)).unwrap();
    // A port may close before it has read everything.
    let _ = stream.write_all(pattern);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(e) => panic!("port {port} keeps a dead sender of {} bytes: {e}", pattern.len()),
        }
    }
}

/// Sends a pattern as one datagram, as much of it as fits.
fn send_datagram(port: u16, pattern: &[u8]) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.send_to(&pattern[..pattern.len().min(60_000)], (Ipv4Addr::LOCALHOST, port)).unwrap();
}

#[test]
fn garbage_on_every_port_hurts_nobody() {
    let cluster = Cluster::start(Options::default());
    let sql = cluster.sql().fresh_database("story_garbage");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)");
    let mut bystander = sql.session();
    bystander.rows("BEGIN; INSERT INTO t VALUES (2, 20)");
    let pids = cluster.pids();
    let ports = cluster.listening_ports();
    // SQL and two data nodes; the management server.
    assert!(ports.tcp.contains(&sql.port()) && ports.tcp.len() >= 3 && !ports.udp.is_empty(), "{ports:?}");
    let tcp = ports.tcp.iter().map(|&port| (port, send as fn(u16, &[u8])));
    let udp = ports.udp.iter().map(|&port| (port, send_datagram as fn(u16, &[u8])));
    for (port, send) in tcp.chain(udp) {
        for pattern in patterns() {
            send(port, &pattern);
        }
        assert_eq!(cluster.pids(), pids, "after garbage on port {port}");
        assert_eq!(cluster.sql().value("SELECT v FROM story_garbage.t WHERE id = 1"), "10", "port {port}");
    }
    assert_eq!(bystander.rows("COMMIT; SELECT * FROM t ORDER BY id"), [["1", "10"], ["2", "20"]]);
    let status = cluster.mgm("ALL STATUS");
    assert!(status.succeeded(), "{status:?}");
    assert_eq!(status.stdout.matches("started").count(), 2, "{status:?}");
}

#[test]
fn broken_statements_keep_the_connection() {
    let sql = tests::shared();
    let mut session = sql.session();
    for statement in ["'", "SELECT (((((", "/*", "\u{1}", "SELECT 'é", "INSERT", "😀", "SELECT `", "((((1"]
    {
        let finished = sql.run(statement);
        assert!(!finished.timed_out, "{statement:?}: {finished:?}");
    }
    let deep = format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    let failure = sql.fails(&deep);
    assert!(failure.code == 1064 || failure.code == 1119 || failure.code == 1436, "{failure:?}");
    assert_eq!(session.rows("SELECT 1"), [["1"]]);
}
