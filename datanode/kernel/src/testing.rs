//! A cluster in a test: several nodes' TCs and LDMs, a client, and a network that delivers in a seeded order.
//!
//! Everything runs on one thread. Frames between two nodes, or between a node and the client, arrive in the
//! order they were sent; which pair's frame comes next is decided by the seed. Dict is played by the test.

use crate::ldm::page::DataMemory;
use crate::{BlockSet, NodeSetup, Now, Outbox, RouteId};
use signals::attr;
use signals::control::{ControlSignal, TableInfo};
use signals::frame::{Signal, SignalNumber, next_frame, push_control, push_signal};
use signals::ids::{Epoch, SchemaVersion, TransId};
use signals::keyop::*;
use signals::partition::{PartitionBalance, PartitionMap};
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockNumber, BlockRef, ErrorCode, FragmentId, NodeId, TableId};
use std::collections::{BTreeMap, VecDeque};

const TO_CLIENT: RouteId = RouteId(300);
const TO_DICT: RouteId = RouteId(301);
pub(crate) const CLIENT: BlockRef = BlockRef::new(NodeId(200), BlockNumber::Api, 0);

struct Node {
    id: NodeId,
    blocks: BlockSet,
    out: Outbox,
    memory: DataMemory,
}

/// A row as it was read: column ids and values.
pub(crate) type Columns = Vec<(u16, Option<Vec<u8>>)>;

/// What the client has heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Row(u32, Columns),
    ReadRef(u32, ErrorCode),
    KeyConf { trans: TransId, operations: u32, committed: bool },
    KeyRef(u32, ErrorCode),
    Committed(TransId),
    RolledBack(TransId, u32),
    Aborted(TransId, ErrorCode),
    Batch { api_scan: u32, scan: u32, rows: Vec<Columns>, end: bool },
    ScanRef(u32, ErrorCode),
}

/// See the module.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    /// Frames on their way, per sender and receiver; 0 is the client.
    wires: BTreeMap<(u8, u8), VecDeque<Vec<u8>>>,
    pub(crate) now: Now,
    pub(crate) heard: Vec<Heard>,
    pub(crate) table: TableInfo,
    dict_answers: u32,
    seed: u64,
    next_trans: u64,
    /// Transactions that another node's TC coordinates than the first node's.
    tcs: BTreeMap<TransId, NodeId>,
    /// Deadlock probes delivered so far.
    pub(crate) probes: usize,
}

fn fixed(name: &str, size: u16, nullable: bool) -> ColumnDef {
    ColumnDef {
        name: name.into(),
        kind: ColumnType::Unsigned,
        storage: ColumnStorage::Fixed { size },
        nullable,
        collation: 63,
        default: None,
        sql: vec![],
    }
}

/// A table `(id u32 primary key, n u32 null, text varchar null)`.
pub(crate) fn table_def() -> TableDef {
    let mut text = fixed("text", 1, true);
    text.kind = ColumnType::Binary;
    text.storage = ColumnStorage::Var { max_len: signals::table::MAX_ROW_BYTES as u16 };
    TableDef {
        id: TableId(4),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "t".into(),
        columns: vec![fixed("id", 4, false), fixed("n", 4, true), text],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: true,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

/// AttrInfo of a row of [`table_def`].
pub(crate) fn row(id: u32, n: u32, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    attr::push(&mut out, 0, Some(&id.to_le_bytes()));
    attr::push(&mut out, 1, Some(&n.to_le_bytes()));
    attr::push(&mut out, 2, Some(text.as_bytes()));
    out
}

/// AttrInfo that sets `n` alone.
pub(crate) fn set_n(n: u32) -> Vec<u8> {
    let mut out = Vec::new();
    attr::push(&mut out, 1, Some(&n.to_le_bytes()));
    out
}

/// A projection of all three columns.
pub(crate) const ALL: [u8; 6] = [0, 0, 1, 0, 2, 0];

/// The entries a full row reads back as.
pub(crate) fn values(id: u32, n: u32, text: &str) -> Columns {
    vec![
        (0, Some(id.to_le_bytes().to_vec())),
        (1, Some(n.to_le_bytes().to_vec())),
        (2, Some(text.as_bytes().to_vec())),
    ]
}

pub(crate) struct Shape {
    pub(crate) groups: Vec<Vec<u8>>,
    pub(crate) ldms: u16,
    pub(crate) memory_pages: u64,
    pub(crate) operations_max: u32,
}

impl Shape {
    /// One node group of `replicas` nodes, with plenty of everything.
    pub(crate) fn of(replicas: u8) -> Self {
        Self { groups: vec![(1..=replicas).collect()], ldms: 2, memory_pages: 1000, operations_max: 1000 }
    }
}

impl Cluster {
    /// Nodes of `shape`, started, with [`table_def`]'s table.
    pub(crate) fn new(shape: &Shape, seed: u64) -> Self {
        let groups: Vec<Vec<NodeId>> =
            shape.groups.iter().map(|g| g.iter().map(|n| NodeId(*n)).collect()).collect();
        let all: Vec<NodeId> = groups.iter().flatten().copied().collect();
        let nodes = all.iter().map(|id| node(*id, &groups, &all, shape)).collect();
        let def = table_def();
        let map = PartitionMap::place(def.id, def.partition_balance, &groups, shape.ldms);
        let mut cluster = Self {
            nodes,
            wires: BTreeMap::new(),
            now: Now(1),
            heard: Vec::new(),
            table: TableInfo { def, map },
            dict_answers: 0,
            seed: seed.wrapping_mul(2) + 1,
            next_trans: 1,
            tcs: BTreeMap::new(),
            probes: 0,
        };
        let info = cluster.table.clone();
        let asked = cluster.order(&ControlSignal::AddTableReq(Box::new(info)));
        cluster.run();
        assert_eq!(cluster.dict_answers, asked);
        cluster.order(&ControlSignal::StartPermOrd { started: true });
        cluster.run();
        cluster
    }

    /// A node knows that the client's address is another process's now.
    pub(crate) fn set_session(&mut self, at: usize, incarnation: u64) {
        self.nodes[at].out.set_session(CLIENT, incarnation);
    }

    /// Sends a control signal to every TC and LDM; returns to how many.
    pub(crate) fn order(&mut self, signal: &ControlSignal) -> u32 {
        let mut frames = Vec::new();
        for node in &self.nodes {
            let dict = BlockRef::new(node.id, BlockNumber::Dbdict, 0);
            let ldms = self.table.map.partitions.iter().flatten().map(|r| r.ldm).max().unwrap_or(0);
            let mut targets = vec![BlockRef::new(node.id, BlockNumber::Dbtc, 0)];
            targets.extend((0..=ldms).map(|l| BlockRef::new(node.id, BlockNumber::Dblqh, l)));
            for target in targets {
                let mut frame = Vec::new();
                assert!(push_control(&mut frame, dict, target, signal));
                frames.push((node.id, frame));
            }
        }
        let count = frames.len() as u32;
        for (node, frame) in frames {
            self.wires.entry((node.0, node.0)).or_default().push_back(frame);
        }
        count
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % below
    }

    /// Delivers frames in seeded order until none is on its way.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Delivers one frame; false if none is on its way.
    pub(crate) fn step(&mut self) -> bool {
        let busy: Vec<(u8, u8)> = self.wires.iter().filter(|(_, w)| !w.is_empty()).map(|(k, _)| *k).collect();
        if busy.is_empty() {
            return false;
        }
        let pick = busy[self.random(busy.len())];
        let Some(frame) = self.wires.get_mut(&pick).and_then(VecDeque::pop_front) else { return false };
        if pick.1 == 0 {
            self.client_hears(&frame);
            return true;
        }
        let at = self.nodes.iter().position(|n| n.id.0 == pick.1).expect("a node");
        let node = &mut self.nodes[at];
        self.probes += usize::from(frame[4..6] == (SignalNumber::DeadlockProbe as u16).to_le_bytes());
        node.blocks.handle(self.now, &frame, &mut node.out).expect("a valid frame");
        self.collect(at);
        true
    }

    fn collect(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        while let Some((route, buffer)) = node.out.take_dirty() {
            let to = match route {
                RouteId::SELF => node.id.0,
                TO_CLIENT => 0,
                TO_DICT => {
                    let mut rest = &buffer[..];
                    while let Some((_, tail)) = next_frame(rest).expect("a frame") {
                        self.dict_answers += 1;
                        rest = tail;
                    }
                    continue;
                }
                RouteId(n) => n as u8,
            };
            let mut rest = &buffer[..];
            while let Some((frame, tail)) = next_frame(rest).expect("a frame") {
                self.wires.entry((node.id.0, to)).or_default().push_back(frame.to_vec());
                rest = tail;
            }
        }
        assert_eq!(node.out.dropped(), 0, "every signal has a receiver");
    }

    /// Lets time pass, with a tick of every node each 10 ms.
    pub(crate) fn wait_ms(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.now = self.now.after_ms(10);
            for at in 0..self.nodes.len() {
                let node = &mut self.nodes[at];
                node.blocks.tick(self.now, &mut node.out);
                self.collect(at);
            }
            self.run();
        }
    }

    fn client_hears(&mut self, frame: &[u8]) {
        let (_, signal) = Signal::parse(frame).expect("a valid frame");
        let code = |c: u32| ErrorCode(c as u16);
        let heard = match signal {
            Signal::TransIdAi(row) => Heard::Row(row.body.api_op, entries(row.first)),
            Signal::ReadRowRef(r) => Heard::ReadRef(r.body.api_op, code(r.body.code)),
            Signal::TcKeyConf(c) => Heard::KeyConf {
                trans: c.body.trans,
                operations: c.body.operations,
                committed: c.body.committed != 0,
            },
            Signal::TcKeyRef(r) => Heard::KeyRef(r.body.api_op, code(r.body.code)),
            Signal::TcCommitConf(c) => Heard::Committed(c.body.trans),
            Signal::TcRollbackConf(c) => Heard::RolledBack(c.body.trans, c.body.keep),
            Signal::TcRollbackRep(r) => Heard::Aborted(r.body.trans, code(r.body.code)),
            Signal::ScanFragConf(c) => Heard::Batch {
                api_scan: c.body.api_scan,
                scan: c.body.scan,
                rows: signals::scan::rows(c.first).map(entries).collect(),
                end: c.body.end != 0,
            },
            Signal::ScanFragRef(r) => Heard::ScanRef(r.body.api_scan, code(r.body.code)),
            other => panic!("not for a client: {other:?}"),
        };
        self.heard.push(heard);
    }

    pub(crate) fn begin(&mut self) -> TransId {
        self.next_trans += 1;
        TransId::new(CLIENT.node(), CLIENT.instance(), self.next_trans)
    }

    fn send<B: signals::frame::Body>(&mut self, target: BlockRef, body: &B, first: &[u8], second: &[u8]) {
        let mut frame = Vec::new();
        push_signal(&mut frame, CLIENT, target, body, first, second);
        self.wires.entry((0, target.node().0)).or_default().push_back(frame);
    }

    /// A transaction that node `node` coordinates.
    pub(crate) fn begin_at(&mut self, node: u8) -> TransId {
        let trans = self.begin();
        self.tcs.insert(trans, NodeId(node));
        trans
    }

    /// The TC of the first node, which coordinates every transaction of a test unless told otherwise.
    fn tc_of(&self, trans: TransId) -> BlockRef {
        let node = self.tcs.get(&trans).copied().unwrap_or(self.nodes[0].id);
        BlockRef::new(node, BlockNumber::Dbtc, 0)
    }

    /// The LDM that has the primary of row `id`.
    pub(crate) fn primary(&self, id: u32) -> (NodeId, u16) {
        let partition = self.table.map.partition_of(signals::key::KeyHash::of(&id.to_le_bytes()));
        let primary = &self.table.map.partitions[partition as usize][0];
        (primary.node, primary.ldm)
    }

    /// Sends one operation on row `id`.
    pub(crate) fn op(
        &mut self,
        trans: TransId,
        operation: Operation,
        id: u32,
        attr: &[u8],
        flags: u8,
        api_op: u32,
    ) {
        let key = id.to_le_bytes();
        let body = TcKeyReq {
            trans,
            table: self.table.def.id,
            version: self.table.def.version,
            api_op,
            attr_len: attr.len() as u32,
            key_len: key.len() as u16,
            operation: operation as u8,
            flags,
            spare: 0,
        };
        self.send(self.tc_of(trans), &body, &key, attr);
    }

    pub(crate) fn commit(&mut self, trans: TransId) {
        self.send(self.tc_of(trans), &TcCommitReq { trans }, &[], &[]);
    }

    pub(crate) fn rollback(&mut self, trans: TransId, keep: u32) {
        self.send(self.tc_of(trans), &TcRollbackReq { trans, keep, spare: 0 }, &[], &[]);
    }

    /// Runs a lone autocommit operation to its end; what the client heard.
    pub(crate) fn alone(&mut self, operation: Operation, id: u32, attr: &[u8]) -> Vec<Heard> {
        let trans = self.begin();
        self.heard.clear();
        self.op(trans, operation, id, attr, tc_flags::START | tc_flags::EXECUTE | tc_flags::COMMIT, 1);
        self.run();
        std::mem::take(&mut self.heard)
    }

    /// A committed read of row `id` at each replica, which must agree; `None` if the row does not exist.
    pub(crate) fn read(&mut self, id: u32) -> Option<Columns> {
        let key = id.to_le_bytes();
        let partition = self.table.map.partition_of(signals::key::KeyHash::of(&key));
        let replicas = self.table.map.partitions[partition as usize].clone();
        let mut seen = Vec::new();
        for replica in replicas {
            let body = ReadRowReq {
                table: self.table.def.id,
                version: self.table.def.version,
                api_op: 9,
                fragment: FragmentId(partition),
                key_len: 4,
                attr_len: ALL.len() as u32,
                spare: 0,
            };
            self.heard.clear();
            self.send(BlockRef::new(replica.node, BlockNumber::Dblqh, replica.ldm), &body, &key, &ALL);
            self.run();
            seen.push(match std::mem::take(&mut self.heard).as_slice() {
                [Heard::Row(9, row)] => Some(row.clone()),
                [Heard::ReadRef(9, ErrorCode::TUPLE_NOT_FOUND)] => None,
                other => panic!("{other:?}"),
            });
        }
        assert!(seen.windows(2).all(|w| w[0] == w[1]), "replicas of row {id} differ: {seen:?}");
        seen.pop().expect("a replica")
    }

    /// All rows of the table by a full scan of every fragment at its primary, by id.
    pub(crate) fn scan(&mut self, trans: TransId, batch_rows: u32) -> BTreeMap<u32, Columns> {
        let mut all = BTreeMap::new();
        for (partition, replicas) in self.table.map.partitions.clone().iter().enumerate() {
            let ldm = BlockRef::new(replicas[0].node, BlockNumber::Dblqh, replicas[0].ldm);
            let body = signals::scan::ScanFragReq {
                trans,
                table: self.table.def.id,
                version: self.table.def.version,
                api_scan: 5,
                batch_rows,
                batch_bytes: 30_000,
                attr_len: ALL.len() as u32,
                fragment: FragmentId(partition as u16),
                spare: [0; 3],
            };
            self.heard.clear();
            self.send(ldm, &body, &ALL, &[]);
            loop {
                self.run();
                let [Heard::Batch { api_scan: 5, scan, rows, end }] = &std::mem::take(&mut self.heard)[..]
                else {
                    panic!("no batch")
                };
                assert!(rows.len() <= batch_rows as usize);
                for row in rows {
                    let id = u32::from_le_bytes(row[0].1.clone().unwrap().try_into().unwrap());
                    assert!(all.insert(id, row.clone()).is_none(), "row {id} twice");
                }
                if *end {
                    break;
                }
                let next = signals::scan::ScanNextReq { scan: *scan, api_scan: 5, close: 0, spare: 0 };
                self.send(ldm, &next, &[], &[]);
            }
        }
        all
    }

    /// Pages of data memory in use on every node.
    pub(crate) fn pages_used(&self) -> Vec<u64> {
        self.nodes.iter().map(|n| n.memory.used()).collect()
    }

    /// No transaction, operation or scan is left anywhere.
    pub(crate) fn assert_nothing_leaked(&self) {
        for node in &self.nodes {
            assert_eq!(node.blocks.in_use(), 0, "records in use on node {}", node.id);
        }
    }

    /// Every LDM and TC of the cluster learns that the client is gone; nothing it sent arrives after that.
    pub(crate) fn client_dies(&mut self) {
        self.wires.retain(|(from, _), _| *from != 0);
        self.order(&ControlSignal::ApiFailReq { client: CLIENT });
        self.run();
    }

    /// Every LDM and TC moves on to `epoch`.
    pub(crate) fn epoch(&mut self, epoch: u64) {
        self.order(&ControlSignal::EpochOrd { epoch: Epoch(epoch) });
        self.run();
    }

    /// Answers dict got so far.
    pub(crate) fn dict_answers(&self) -> u32 {
        self.dict_answers
    }
}

fn entries(section: &[u8]) -> Columns {
    attr::AttrReader::new(section)
        .map(|e| e.map(|(c, v)| (c, v.map(<[u8]>::to_vec))).expect("AttrInfo"))
        .collect()
}

fn node(id: NodeId, groups: &[Vec<NodeId>], all: &[NodeId], shape: &Shape) -> Node {
    let memory = DataMemory::new(shape.memory_pages);
    let setup = NodeSetup {
        epoch_ms: 100,
        gcp_ms: 2_000,
        tunables: crate::tunables::Tunables::default(),
        rare: crate::tunables::Rare::NEVER,
        planted: signals::planted::Planted::NONE,
        node: id,
        incarnation: 1,
        groups: groups.to_vec(),
        ldms: shape.ldms,
        tcs: 1,
        data_memory: memory.clone(),
        deadlock_timeout_ms: 1200,
        inactive_timeout_ms: 60_000,
        transactions_max: 500,
        operations_max: shape.operations_max,
        scans_max: 100,
        tables_max: 128,
        heartbeat_db_ms: 5000,
        heartbeat_api_ms: 1500,
    };
    let mut out = Outbox::new(id);
    let ldms: Vec<u16> = (0..shape.ldms).collect();
    let blocks = BlockSet::new(&setup, &ldms, &[0], false, &mut out);
    for peer in all.iter().filter(|p| **p != id) {
        out.set_node_route(*peer, Some(RouteId(u16::from(peer.0))));
    }
    out.set_client_route(CLIENT, Some(TO_CLIENT));
    out.set_local_route(BlockNumber::Dbdict, 0, TO_DICT);
    Node { id, blocks, out, memory }
}
