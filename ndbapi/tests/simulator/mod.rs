//! A small simulator: client cores and real blocks on one thread, with a network that delivers in a seeded
//! order.
//!
//! Frames between two parties arrive in the order they were sent; which pair's frame is next is decided by
//! the seed. Time moves only when the test says so. The test plays the main role's blocks (membership and
//! dictionary).

use kernel::ldm::page::DataMemory;
use kernel::{BlockSet, NodeSetup, Outbox, RouteId};
use ndbapi::core::{CommitMode, Completion, Core, CoreOptions, DataNode, Executed, Now, ScanTake, TransRef};
use ndbapi::{Batch, NdbError, ScanSpec, Table, TableHandle};
use signals::control::{ApiRegConf, ControlSignal, DictAnswer, DictQuery, TableInfo};
use signals::frame::{Signal, next_frame, push_control};
use signals::ids::SchemaVersion;
use signals::partition::{PartitionBalance, PartitionMap};
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockNumber, BlockRef, NodeId, TableId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const API: NodeId = NodeId(200);
const LDMS: u16 = 2;
const TO_MAIN: RouteId = RouteId(600);
const TO_CLIENTS: u16 = 300;

struct Node {
    id: NodeId,
    blocks: BlockSet,
    out: Outbox,
}

/// Where frames come from and go to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Node(u8),
    Client(u16),
}

/// See the module.
pub(crate) struct Sim {
    nodes: Vec<Node>,
    pub(crate) clients: Vec<Core>,
    wires: BTreeMap<(Party, Party), VecDeque<Vec<u8>>>,
    groups: Vec<Vec<NodeId>>,
    pub(crate) table: TableHandle,
    info: TableInfo,
    nanos: u64,
    seed: u64,
    next_tag: u64,
    done: Vec<Completion>,
}

fn column(name: &str, kind: ColumnType, storage: ColumnStorage, nullable: bool) -> ColumnDef {
    ColumnDef { name: name.into(), kind, storage, nullable, collation: 63, default: None, sql: vec![] }
}

/// `test/t (id u32 primary key, n i64 null, s varchar(200) null)`.
fn table_def() -> TableDef {
    TableDef {
        id: TableId(4),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }, false),
            column("n", ColumnType::Signed, ColumnStorage::Fixed { size: 8 }, true),
            column("s", ColumnType::Char, ColumnStorage::Var { max_len: 200 }, true),
        ],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: true,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

impl Sim {
    /// One node group of `replicas` nodes and `clients` client sessions, all started and linked.
    pub(crate) fn new(replicas: u8, clients: u16, seed: u64) -> Self {
        let groups: Vec<Vec<NodeId>> = vec![(1..=replicas).map(NodeId).collect()];
        let nodes = groups[0].iter().map(|id| node(*id, &groups, clients)).collect();
        let def = table_def();
        let map = PartitionMap::place(def.id, def.partition_balance, &groups, LDMS);
        let info = TableInfo { def, map };
        let data_nodes: Vec<DataNode> =
            groups[0].iter().map(|id| DataNode { id: *id, near: false }).collect();
        let mut sim = Self {
            nodes,
            clients: (0..clients).map(|c| Core::new(CoreOptions::new(API, c, data_nodes.clone()))).collect(),
            wires: BTreeMap::new(),
            groups,
            table: Arc::new(Table::new(info.clone()).unwrap()),
            info,
            nanos: 1_000_000_000,
            seed: seed.wrapping_mul(2) + 1,
            next_tag: 0,
            done: Vec::new(),
        };
        let add = ControlSignal::AddTableReq(Box::new(sim.info.clone()));
        sim.order(&add);
        sim.order(&ControlSignal::StartPermOrd { started: true });
        let now = sim.now();
        for client in &mut sim.clients {
            for id in &sim.groups[0] {
                client.connected(now, *id);
            }
        }
        sim.run();
        assert!(sim.clients.iter().all(Core::all_ready));
        sim
    }

    fn now(&self) -> Now {
        Now(self.nanos)
    }

    /// A control signal from the main role to every TC and LDM.
    fn order(&mut self, signal: &ControlSignal) {
        for node in &self.nodes {
            let dict = BlockRef::new(node.id, BlockNumber::Dbdict, 0);
            let ldms = (0..LDMS).map(|l| BlockRef::new(node.id, BlockNumber::Dblqh, l));
            for target in ldms.chain([BlockRef::new(node.id, BlockNumber::Dbtc, 0)]) {
                let mut frame = Vec::new();
                assert!(push_control(&mut frame, dict, target, signal));
                let party = Party::Node(node.id.0);
                self.wires.entry((party, party)).or_default().push_back(frame);
            }
        }
    }

    pub(crate) fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % below
    }

    /// Delivers frames until none is on its way.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Delivers one frame; false if none is on its way.
    pub(crate) fn step(&mut self) -> bool {
        self.send_clients();
        let busy: Vec<(Party, Party)> =
            self.wires.iter().filter(|(_, w)| !w.is_empty()).map(|(k, _)| *k).collect();
        if busy.is_empty() {
            return false;
        }
        let pick = busy[self.random(busy.len())];
        let Some(frame) = self.wires.get_mut(&pick).and_then(VecDeque::pop_front) else { return false };
        let now = self.now();
        match pick {
            (Party::Node(from), Party::Client(client)) => {
                let core = &mut self.clients[client as usize];
                core.receive(now, NodeId(from), &frame).expect("a frame the client accepts");
                while let Some(completion) = core.next_completion() {
                    self.done.push(completion);
                }
            }
            (from, Party::Node(to)) => {
                let at = self.nodes.iter().position(|n| n.id.0 == to).unwrap();
                let (header, signal) = Signal::parse(&frame).unwrap();
                if let (
                    Some(BlockNumber::Qmgr | BlockNumber::Dbdict),
                    Signal::Control(control),
                    Party::Client(c),
                ) = (header.target.block(), signal, from)
                {
                    self.main_role(to, c, header.source, header.target, &control);
                    return true;
                }
                let node = &mut self.nodes[at];
                node.blocks.handle(kernel::Now(now.0), &frame, &mut node.out).unwrap();
                self.collect(at);
            }
            (Party::Client(_), Party::Client(_)) => unreachable!("clients do not talk"),
        }
        true
    }

    fn main_role(&mut self, node: u8, client: u16, to: BlockRef, me: BlockRef, control: &ControlSignal) {
        let reply = match control {
            ControlSignal::ApiRegReq { .. } => ControlSignal::ApiRegConf(ApiRegConf {
                started: true,
                status: String::new(),
                tcs: 1,
                ldms: LDMS,
                groups: self.groups.clone(),
            }),
            ControlSignal::DictQueryReq { request, query: DictQuery::TableByName { .. } } => {
                let answer = DictAnswer::Table(Box::new(self.info.clone()));
                ControlSignal::DictConf { request: *request, answer }
            }
            other => panic!("{other:?}"),
        };
        let mut frame = Vec::new();
        assert!(push_control(&mut frame, me, to, &reply));
        self.wires.entry((Party::Node(node), Party::Client(client))).or_default().push_back(frame);
    }

    fn send_clients(&mut self) {
        for (c, core) in self.clients.iter_mut().enumerate() {
            let wires = &mut self.wires;
            core.take_outgoing(|node, buffer| {
                let wire = wires.entry((Party::Client(c as u16), Party::Node(node.0))).or_default();
                wire.extend(frames(&std::mem::take(buffer)));
            });
        }
    }

    fn collect(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        while let Some((route, buffer)) = node.out.take_dirty() {
            let to = match route {
                RouteId::SELF => Party::Node(node.id.0),
                TO_MAIN => continue,
                RouteId(n) if n >= TO_CLIENTS => Party::Client(n - TO_CLIENTS),
                RouteId(n) => Party::Node(n as u8),
            };
            self.wires.entry((Party::Node(node.id.0), to)).or_default().extend(frames(&buffer));
        }
    }

    /// Lets time pass for everybody.
    pub(crate) fn wait_ms(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(50) {
            self.nanos += 50_000_000;
            let now = self.now();
            for at in 0..self.nodes.len() {
                let node = &mut self.nodes[at];
                node.blocks.tick(kernel::Now(now.0), &mut node.out);
                self.collect(at);
            }
            for core in &mut self.clients {
                core.tick(now);
                assert_eq!(core.next_action(), None);
            }
            self.run();
        }
    }

    /// Cuts a client off from every node, as its death would, and lets it connect again.
    pub(crate) fn reconnect(&mut self, client: usize) {
        let now = self.now();
        self.wires.retain(|(a, b), _| {
            let party = Party::Client(client as u16);
            *a != party && *b != party
        });
        for id in self.groups[0].clone() {
            self.clients[client].disconnected(now, id, "cut by the test");
        }
        while let Some(completion) = self.clients[client].next_completion() {
            self.done.push(completion);
        }
        self.clients[client].take_outgoing(|_, buffer| buffer.clear());
        self.order(&ControlSignal::ApiFailReq {
            client: BlockRef::new(API, BlockNumber::Api, client as u16),
        });
        self.run();
        for id in self.groups[0].clone() {
            self.clients[client].connected(now, id);
        }
        self.run();
    }

    pub(crate) fn begin(&mut self, client: usize) -> TransRef {
        self.clients[client].begin().unwrap()
    }

    /// Puts a batch in; its tag.
    pub(crate) fn put(
        &mut self,
        client: usize,
        trans: Option<TransRef>,
        batch: Batch,
        mode: CommitMode,
    ) -> u64 {
        self.next_tag += 1;
        let (now, tag) = (self.now(), self.next_tag);
        self.clients[client].execute(now, trans, Box::new(batch), mode, tag);
        while let Some(completion) = self.clients[client].next_completion() {
            self.done.push(completion);
        }
        tag
    }

    /// What became of a batch, if anything yet.
    pub(crate) fn ended(&mut self, want: u64) -> Option<(Box<Batch>, Result<Executed, NdbError>)> {
        let at =
            self.done.iter().position(|c| matches!(c, Completion::Executed { tag, .. } if *tag == want))?;
        match self.done.remove(at) {
            Completion::Executed { batch, result, .. } => Some((batch, result)),
            _ => None,
        }
    }

    /// Executes and waits for the end.
    pub(crate) fn execute(
        &mut self,
        client: usize,
        trans: Option<TransRef>,
        batch: Batch,
        mode: CommitMode,
    ) -> (Box<Batch>, Result<Executed, NdbError>) {
        let tag = self.put(client, trans, batch, mode);
        self.run();
        self.ended(tag).expect("an execute that ends without time passing")
    }

    pub(crate) fn rollback(
        &mut self,
        client: usize,
        trans: TransRef,
        keep: Option<u32>,
    ) -> Result<(), NdbError> {
        self.next_tag += 1;
        let (now, want) = (self.now(), self.next_tag);
        self.clients[client].rollback(now, trans, keep, want);
        while let Some(completion) = self.clients[client].next_completion() {
            self.done.push(completion);
        }
        self.run();
        let mut result = None;
        self.done.retain_mut(|c| match c {
            Completion::RolledBack { tag, result: r } if *tag == want => {
                result = Some(std::mem::replace(r, Ok(())));
                false
            }
            _ => true,
        });
        result.expect("a rollback that ends without time passing")
    }

    pub(crate) fn release(&mut self, client: usize, trans: TransRef) {
        let now = self.now();
        self.clients[client].release(now, trans);
        self.run();
    }

    /// All rows a client sees: id to n and s.
    pub(crate) fn scan(
        &mut self,
        client: usize,
        trans: Option<TransRef>,
        spec: ScanSpec,
    ) -> BTreeMap<u32, (Option<i64>, Option<String>)> {
        let now = self.now();
        let scan = self.clients[client].scan(now, trans, spec, 0).unwrap();
        let mut all = BTreeMap::new();
        loop {
            match self.clients[client].scan_take(now, scan) {
                ScanTake::Rows(rows) => {
                    for row in rows.rows() {
                        let id = row.get_u32("id").unwrap().unwrap();
                        let value = (row.get_i64("n").unwrap(), row.get_str("s").unwrap().map(str::to_owned));
                        assert!(all.insert(id, value).is_none(), "row {id} twice");
                    }
                }
                ScanTake::Pending => assert!(self.step(), "a scan that stands still"),
                ScanTake::End => return all,
                ScanTake::Failed(error) => panic!("{error}"),
            }
        }
    }

    /// Nothing is in use anywhere.
    pub(crate) fn assert_nothing_leaked(&mut self) {
        self.run();
        for client in &self.clients {
            assert_eq!(client.in_use(), [0; 4]);
            assert_eq!(client.stale_answers(), 0);
        }
        for node in &self.nodes {
            assert_eq!(node.blocks.in_use(), 0, "records in use on node {}", node.id);
        }
    }
}

fn frames(buffer: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = buffer;
    while let Some((frame, tail)) = next_frame(rest).unwrap() {
        all.push(frame.to_vec());
        rest = tail;
    }
    all
}

fn node(id: NodeId, groups: &[Vec<NodeId>], clients: u16) -> Node {
    let setup = NodeSetup {
        node: id,
        incarnation: 1,
        groups: groups.to_vec(),
        ldms: LDMS,
        tcs: 1,
        data_memory: DataMemory::new(1000),
        deadlock_timeout_ms: 1200,
        inactive_timeout_ms: 60_000,
        transactions_max: 500,
        operations_max: 5000,
        scans_max: 100,
        tables_max: 128,
        heartbeat_db_ms: 5000,
        heartbeat_api_ms: 1500,
        epoch_ms: 100,
        gcp_ms: 2000,
        tunables: kernel::tunables::Tunables::default(),
        rare: kernel::tunables::Rare::NEVER,
        planted: signals::planted::Planted::NONE,
    };
    let mut out = Outbox::new(id);
    let ldms: Vec<u16> = (0..LDMS).collect();
    let blocks = BlockSet::new(&setup, &ldms, &[0], false, &mut out);
    for peer in groups.iter().flatten().filter(|p| **p != id) {
        out.set_node_route(*peer, Some(RouteId(u16::from(peer.0))));
    }
    for client in 0..clients {
        out.set_client_route(
            BlockRef::new(API, BlockNumber::Api, client),
            Some(RouteId(TO_CLIENTS + client)),
        );
    }
    out.set_local_route(BlockNumber::Dbdict, 0, TO_MAIN);
    Node { id, blocks, out }
}
