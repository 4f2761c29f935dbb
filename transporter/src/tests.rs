//! Links end to end: both carriers under load, and what hostile or broken peers get.

use crate::acceptor::{Acceptor, Admission, Identity};
use crate::*;
use signals::hello::{Hello, HelloAck, MAGIC};
use signals::{BlockRef, ErrorCode, NodeId, frame::push_signal, keyop::TransIdAi};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

const LONG: Duration = Duration::from_secs(20);

/// An acceptor on its own thread which hands its links over and refuses API node 77.
struct Server {
    address: String,
    links: std::sync::mpsc::Receiver<Link>,
    stop: Arc<AtomicBool>,
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(cluster: u32, in_process: bool) -> Self {
        let identity = Identity { cluster, node: NodeId(1), incarnation: 42 };
        let mut acceptor =
            Acceptor::bind("127.0.0.1:0", identity, SocketOptions::default(), in_process).unwrap();
        let address = acceptor.local_address().unwrap().to_string();
        let (sender, links) = std::sync::mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (wake, stopped) = (acceptor.wake(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let links = acceptor.poll(LONG, |hello, _| match hello.node {
                    77 => Admission::Refuse(ErrorCode::NODE_ALREADY_RESERVED, "connected already".into()),
                    _ => Admission::Accept(None),
                });
                for link in links {
                    let _ = sender.send(link);
                }
            }
        });
        Self { address, links, stop, wake, thread: Some(thread) }
    }

    fn hello(cluster: u32, node: u8) -> Hello {
        hello(cluster, NodeId(node), NodeId(1), PeerRole::ApiNode, 3, 7)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Sends everything queued, sleeping while the link is full.
fn drain(queue: &mut SendQueue, link: &mut Link) {
    while queue.write_to(&mut link.writer).unwrap() == WriteOutcome::Full {
        link.wait(true, LONG).unwrap();
        // Keep reading so that two full directions cannot wait for each other: not needed here, nobody
        // answers.
    }
}

fn stream(mut from: Link, mut to: Link) {
    const BATCHES: u32 = 400;
    const PER_BATCH: u32 = 64;
    let sender = std::thread::spawn(move || {
        let mut queue = SendQueue::new(1 << 20);
        let mut buffer = Vec::new();
        for batch in 0..BATCHES {
            for i in 0..PER_BATCH {
                let n = batch * PER_BATCH + i;
                let length = (n as usize * 131) % 5000;
                let body = TransIdAi { api_op: n, length: length as u32 };
                push_signal(&mut buffer, BlockRef(1), BlockRef(2), &body, &vec![n as u8; length], &[]);
            }
            buffer = queue.push(buffer);
            if queue.is_overloaded() {
                drain(&mut queue, &mut from);
            }
        }
        drain(&mut queue, &mut from);
        assert!(queue.is_empty());
        from
    });
    let mut reader = FrameReader::new();
    let mut next = 0;
    while next < BATCHES * PER_BATCH {
        match to.reader.read_into(&mut reader).unwrap() {
            ReadOutcome::WouldBlock => to.wait(false, LONG).unwrap(),
            ReadOutcome::Closed => panic!("closed at {next}"),
            ReadOutcome::Bytes(_) => {}
        }
        while let Some(frame) = reader.next_frame().unwrap() {
            let (_, signals::Signal::TransIdAi(row)) = signals::Signal::parse(frame).unwrap() else {
                panic!()
            };
            assert_eq!(row.body.api_op, next);
            assert_eq!(row.first.len(), (next as usize * 131) % 5000);
            assert!(row.first.iter().all(|b| *b == next as u8));
            next += 1;
        }
    }
    // The end is noticed at once, also by a sleeper.
    let from = sender.join().unwrap();
    let closer = std::thread::spawn(move || drop(from));
    let begin = Instant::now();
    loop {
        match to.reader.read_into(&mut reader).unwrap() {
            ReadOutcome::Closed => break,
            _ => to.wait(false, LONG).unwrap(),
        }
        assert!(begin.elapsed() < LONG);
    }
    closer.join().unwrap();
}

#[test]
fn a_tcp_link_carries_everything_in_order_and_its_end_is_noticed() {
    let server = Server::start(1, false);
    for turn in 0..2 {
        let client = connect(&server.address, &Server::hello(1, 9), LONG).unwrap();
        assert_eq!((client.peer.node, client.peer.incarnation), (NodeId(1), 42));
        let accepted = server.links.recv().unwrap();
        assert_eq!((accepted.peer.node, accepted.peer.link, accepted.peer.incarnation), (NodeId(9), 3, 7));
        assert!(!accepted.writer.room_is_readable());
        if turn == 0 { stream(client, accepted) } else { stream(accepted, client) }
    }
}

#[test]
fn an_in_process_link_carries_everything_in_order_and_its_end_is_noticed() {
    let server = Server::start(2, true);
    assert!(inproc::is_listening(2, NodeId(1)));
    for turn in 0..2 {
        let client = connect("nowhere.invalid:1", &Server::hello(2, 9), LONG).unwrap();
        assert_eq!((client.peer.node, client.peer.incarnation), (NodeId(1), 42));
        let accepted = server.links.recv().unwrap();
        assert_eq!((accepted.peer.node, accepted.peer.link), (NodeId(9), 3));
        assert!(accepted.writer.room_is_readable());
        if turn == 0 { stream(client, accepted) } else { stream(accepted, client) }
    }
    drop(server);
    assert!(!inproc::is_listening(2, NodeId(1)));
}

#[test]
fn shutdown_from_another_thread_ends_both_sides() {
    for in_process in [false, true] {
        let cluster = 30 + u32::from(in_process);
        let server = Server::start(cluster, in_process);
        let mut client = connect(&server.address, &Server::hello(cluster, 9), LONG).unwrap();
        let mut accepted = server.links.recv().unwrap();
        accepted.control().shutdown();
        let mut reader = FrameReader::new();
        for link in [&mut client, &mut accepted] {
            let begin = Instant::now();
            while link.reader.read_into(&mut reader).unwrap() != ReadOutcome::Closed {
                link.wait(false, LONG).unwrap();
                assert!(begin.elapsed() < LONG);
            }
        }
    }
}

/// What a peer that sends `bytes` gets: the ack's code, and the end.
fn talk(server: &Server, bytes: &[u8]) -> Option<u32> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset instead of an end is possible when the server had not read everything.
    let _ = stream.read_to_end(&mut answer);
    answer.get(..32).map(|ack| {
        let ack = HelloAck::read_from_bytes(ack).unwrap();
        assert_eq!((ack.magic, answer.len()), (MAGIC, 32));
        ack.code
    })
}

#[test]
fn strangers_get_a_code_and_nothing_else_happens() {
    let server = Server::start(4, false);
    let good = Server::hello(4, 9);
    let code = |code: ErrorCode| Some(u32::from(code.0));
    let with = |change: fn(&mut Hello)| {
        let mut hello = good;
        change(&mut hello);
        hello.as_bytes().to_vec()
    };
    assert_eq!(talk(&server, b"GET / HTTP/1.1\r\n\r\n"), code(ErrorCode::MALFORMED_MESSAGE));
    assert_eq!(talk(&server, b"x"), code(ErrorCode::MALFORMED_MESSAGE));
    assert_eq!(talk(&server, &with(|h| h.version = 0)), code(ErrorCode::PROTOCOL_VERSION));
    assert_eq!(talk(&server, &with(|h| h.cluster = 5)), code(ErrorCode::MGM_NO_SUCH_NODE));
    assert_eq!(talk(&server, &with(|h| h.target_node = 2)), code(ErrorCode::MGM_NO_SUCH_NODE));
    assert_eq!(talk(&server, &with(|h| h.role = 9)), code(ErrorCode::PROTOCOL_VERSION));
    assert_eq!(talk(&server, &with(|h| h.node = 77)), code(ErrorCode::NODE_ALREADY_RESERVED));
    // Megabytes of garbage: refused at the first bytes, the rest is nobody's.
    let flood = talk(&server, &vec![0xa5; 64 << 10]);
    assert!(flood.is_none() || flood == code(ErrorCode::MALFORMED_MESSAGE));
    // A cut hello, closed: no answer.
    let mut cut = TcpStream::connect(&server.address).unwrap();
    cut.write_all(&good.as_bytes()[..20]).unwrap();
    drop(cut);
    // A newer version is answered with ours.
    let mut newer = good;
    newer.version = 99;
    assert_eq!(connect(&server.address, &newer, LONG).unwrap().peer.version, signals::hello::CURRENT as u32);
    assert_eq!(server.links.recv().unwrap().peer.version, signals::hello::CURRENT as u32);
    let refused = connect(&server.address, &Server::hello(4, 77), LONG).err().unwrap();
    assert_eq!(refused.code(), ErrorCode::NODE_ALREADY_RESERVED);
    // The acceptor is as good as new.
    drop(connect(&server.address, &good, LONG).unwrap());
    assert_eq!(server.links.recv().unwrap().peer.node, NodeId(9));
    assert!(server.links.try_recv().is_err(), "no stranger became a link");
}

#[test]
fn one_who_dawdles_blocks_nobody_and_is_closed() {
    let server = Server::start(6, false);
    let mut slow: Vec<TcpStream> = (0..acceptor::PENDING_MAX + 10)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(&MAGIC[..3]).unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    let _link = connect(&server.address, &Server::hello(6, 9), LONG).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(2), "dawdlers do not delay others");
    // The first dawdlers were pushed out at once, the last ones run into the deadline.
    for stream in [slow.remove(0), slow.pop().unwrap()] {
        let mut stream = stream;
        stream.set_read_timeout(Some(LONG)).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(begin.elapsed() < handshake::HANDSHAKE_TIME_MAX + Duration::from_secs(3));
}

#[test]
fn the_connecting_side_believes_nothing_either() {
    let answers: [(&[u8], &str); 3] =
        [(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", "wrong magic"), (b"", "closed"), (&MAGIC, "closed")];
    for (answer, reason) in answers {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; 32];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(answer).unwrap();
        });
        let error = connect(&address, &Server::hello(1, 9), LONG).err().unwrap();
        thread.join().unwrap();
        assert!(error.to_string().contains(reason) && error.to_string().contains(&address), "{error}");
    }
    // Silence ends with the time given.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let begin = Instant::now();
    let error = connect(&address, &Server::hello(1, 9), Duration::from_millis(200)).err().unwrap();
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(listener);
    let error = connect(&address, &Server::hello(1, 9), LONG).err().unwrap();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

/// A peer that does not read: the queue says so, and the memory it costs is what was pushed.
#[test]
fn a_peer_that_does_not_read_is_noticed() {
    for in_process in [false, true] {
        let cluster = 50 + u32::from(in_process);
        let server = Server::start(cluster, in_process);
        let _client = connect(&server.address, &Server::hello(cluster, 9), LONG).unwrap();
        let mut accepted = server.links.recv().unwrap();
        let mut queue = SendQueue::new(1 << 20);
        let mut pushed = 0;
        while !queue.is_overloaded() {
            queue.push(vec![1; 32 << 10]);
            pushed += 1;
            queue.write_to(&mut accepted.writer).unwrap();
            assert!(pushed < 2000, "the carrier swallows without end");
        }
        assert!(queue.bytes() > 1 << 20 && queue.bytes() <= (1 << 20) + (32 << 10));
        queue.clear();
        assert!(queue.is_empty() && !queue.is_overloaded());
    }
}
