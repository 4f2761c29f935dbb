//! The stand-in: one thread, one table, rows in a map.

use signals::control::{ApiRegConf, ControlSignal, DictAnswer, TableInfo};
use signals::frame::{Signal, push_control, push_signal};
use signals::ids::{Epoch, SchemaVersion};
use signals::keyop::{Operation, ReadRowRef, TcKeyConf, TcRollbackRep, TransIdAi};
use signals::partition::{PartitionBalance, PartitionMap};
use signals::scan::ScanFragConf;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockRef, NodeId, TableId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use transporter::acceptor::Identity;
use transporter::{Acceptor, Admission, FrameReader, Link, ReadOutcome, SendQueue, SocketOptions};

pub(crate) struct StandIn {
    port: u16,
    stop: Arc<AtomicBool>,
    drop_clients: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn table() -> TableInfo {
    let column = |name: &str, size| ColumnDef {
        name: name.into(),
        kind: ColumnType::Unsigned,
        storage: ColumnStorage::Fixed { size },
        nullable: false,
        collation: 63,
        default: None,
        sql: vec![],
    };
    let def = TableDef {
        id: TableId(4),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "t".into(),
        columns: vec![column("id", 4), column("v", 8)],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::default(),
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    };
    let map = PartitionMap::place(def.id, def.partition_balance, &[vec![NodeId(1)]], 1);
    TableInfo { def, map }
}

struct Client {
    link: Link,
    buffer: FrameReader,
    queue: SendQueue,
}

/// Rows by key bytes in big-endian order, as AttrInfo.
type Rows = BTreeMap<u32, Vec<u8>>;

impl StandIn {
    pub(crate) fn start(in_process: bool) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = transporter::cluster_hash(&format!("stand-in-{port}"));
        let identity = Identity { cluster, node: NodeId(1), incarnation: 7 };
        let address = format!("127.0.0.1:{port}");
        let mut acceptor = Acceptor::bind(&address, identity, SocketOptions::default(), in_process).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let drop_clients = Arc::new(AtomicBool::new(false));
        let (stopping, dropping) = (Arc::clone(&stop), Arc::clone(&drop_clients));
        let thread = std::thread::spawn(move || {
            let (mut clients, mut rows) = (Vec::<Client>::new(), Rows::new());
            while !stopping.load(Ordering::Relaxed) {
                let wait = if clients.is_empty() { Duration::from_millis(5) } else { Duration::ZERO };
                for link in acceptor.poll(wait, |_, _| Admission::Accept(None)) {
                    clients.push(Client { link, buffer: FrameReader::new(), queue: SendQueue::new(1 << 20) });
                }
                if dropping.swap(false, Ordering::Relaxed) {
                    clients.clear();
                }
                clients.retain_mut(|client| serve(client, &mut rows));
                std::thread::yield_now();
            }
        });
        Self { port, stop, drop_clients, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn drop_clients(&self) {
        self.drop_clients.store(true, Ordering::Relaxed);
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Whether the client is still there.
fn serve(client: &mut Client, rows: &mut Rows) -> bool {
    match client.link.reader.read_into(&mut client.buffer) {
        Ok(ReadOutcome::Bytes(_)) => {}
        Ok(ReadOutcome::WouldBlock) => return client.queue.write_to(&mut client.link.writer).is_ok(),
        Ok(ReadOutcome::Closed) | Err(_) => return false,
    }
    let mut out = Vec::new();
    while let Some(frame) = client.buffer.next_frame().unwrap() {
        let (header, signal) = Signal::parse(frame).unwrap();
        answer(&mut out, header.target, header.source, &signal, rows);
    }
    client.queue.push(out);
    client.queue.write_to(&mut client.link.writer).is_ok()
}

fn answer(out: &mut Vec<u8>, me: BlockRef, client: BlockRef, signal: &Signal<'_>, rows: &mut Rows) {
    match signal {
        Signal::Control(control) => {
            let reply = match &**control {
                ControlSignal::ApiRegReq { .. } => ControlSignal::ApiRegConf(ApiRegConf {
                    started: true,
                    status: String::new(),
                    tcs: 1,
                    ldms: 1,
                    groups: vec![vec![NodeId(1)]],
                }),
                ControlSignal::DictQueryReq { request, .. } => ControlSignal::DictConf {
                    request: *request,
                    answer: DictAnswer::Table(Box::new(table())),
                },
                other => panic!("{other:?}"),
            };
            assert!(push_control(out, me, client, &reply));
        }
        Signal::ReadRowReq(read) => {
            let api_op = read.body.api_op;
            match rows.get(&u32::from_le_bytes(read.first.try_into().unwrap())) {
                Some(row) => {
                    push_signal(out, me, client, &TransIdAi { api_op, length: row.len() as u32 }, row, &[]);
                }
                None => push_signal(out, me, client, &ReadRowRef { api_op, code: 626 }, &[], &[]),
            }
        }
        Signal::TcKeyReq(write) => {
            assert_eq!(write.body.op(), Operation::Insert);
            let trans = write.body.trans;
            let key = u32::from_le_bytes(write.first.try_into().unwrap());
            match rows.entry(key) {
                Entry::Occupied(_) => {
                    let rep = TcRollbackRep { trans, code: 630, api_op: write.body.api_op };
                    push_signal(out, me, client, &rep, &[], &[]);
                }
                Entry::Vacant(place) => {
                    place.insert(write.second.to_vec());
                    let conf = TcKeyConf { trans, epoch: Epoch(9), operations: 1, committed: 1 };
                    push_signal(out, me, client, &conf, &[], &[]);
                }
            }
        }
        Signal::ScanFragReq(scan) => {
            let mut section = Vec::new();
            for row in rows.values() {
                section.extend_from_slice(&(row.len() as u32).to_le_bytes());
                section.extend_from_slice(row);
            }
            let conf = ScanFragConf {
                api_scan: scan.body.api_scan,
                scan: 0,
                rows: rows.len() as u32,
                end: 1,
                length: section.len() as u32,
                spare: 0,
            };
            push_signal(out, me, client, &conf, &section, &[]);
        }
        other => panic!("{other:?}"),
    }
}
