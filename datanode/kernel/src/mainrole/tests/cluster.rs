//! A cluster of main roles on one thread, with fake TCs and LDMs, clients and a management server.
//!
//! Every pair of senders and receivers has a first-in first-out channel; which channel delivers next is the
//! seed's choice, so every interleaving the design permits can happen. Coming and going of links travels in
//! the channels too. The fakes check dict's side of the contract: at most one open request per table, no
//! table added twice.

use crate::Now;
use crate::mainrole::{MainRole, NodeStatus, StartPhase};
use crate::outbox::{Effect, Outbox, RouteId};
use crate::setup::NodeSetup;
use signals::control::{ApiRegConf, ControlSignal, DictAnswer, DictQuery, Refusal, SchemaChange, StopScope};
use signals::frame::{self, next_frame};
use signals::ids::SchemaVersion;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockNumber, BlockRef, ErrorCode, NodeId, Signal, TableId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const WORKERS: RouteId = RouteId(1);
const CLIENTS: RouteId = RouteId(2);
const MGM: RouteId = RouteId(3);
const FIRST_NODE: u16 = 10;
pub(super) const MGM_NODE: NodeId = NodeId(145);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Main(u8),
    Worker(u8, BlockRef),
    /// The runtime of a node, its clients and the management server.
    Outside(u8),
}

enum Item {
    Frame(Vec<u8>),
    Link { node: u8, up: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FakeTable {
    Usable,
    /// Refuses new operations; `asked` while PrepDropTableReq is unanswered.
    Dropping {
        asked: bool,
    },
}

/// A TC or LDM that knows tables and nothing else.
#[derive(Default)]
struct Worker {
    tables: BTreeMap<TableId, (SchemaVersion, FakeTable)>,
    /// Operations are in progress on these: a drop has to wait.
    busy: BTreeSet<TableId>,
    /// Refuse to add a table from now on.
    full: bool,
    started: Option<bool>,
    failed_clients: Vec<BlockRef>,
    epoch: u64,
}

struct Process {
    main: MainRole,
    out: Outbox,
    workers: BTreeMap<BlockRef, Worker>,
    ended: Option<(String, bool)>,
    incarnation: u64,
    events: Vec<String>,
}

pub(super) struct Cluster {
    groups: Vec<Vec<NodeId>>,
    nodes: BTreeMap<u8, Process>,
    channels: BTreeMap<(End, End), VecDeque<Item>>,
    links: BTreeSet<(u8, u8)>,
    frozen: BTreeSet<u8>,
    seed: u64,
    now: Now,
    incarnations: u64,
    pub(super) tables_max: u32,
    /// What clients got: per session and request.
    pub(super) answers: BTreeMap<(BlockRef, u32), Result<DictAnswer, Refusal>>,
    pub(super) regs: BTreeMap<BlockRef, ApiRegConf>,
    /// What the management server got, per node and request.
    pub(super) stops: BTreeMap<(u8, u32), Result<(), Refusal>>,
    pub(super) disconnected: Vec<BlockRef>,
}

impl Cluster {
    /// `count` nodes with ids from 1 in groups of two (one group for up to two), none of them running.
    pub(super) fn new(count: u8, seed: u64) -> Self {
        let ids: Vec<NodeId> = (1..=count).map(NodeId).collect();
        Self {
            groups: ids.chunks(2).map(<[NodeId]>::to_vec).collect(),
            nodes: BTreeMap::new(),
            channels: BTreeMap::new(),
            links: BTreeSet::new(),
            frozen: BTreeSet::new(),
            seed,
            now: Now(0),
            incarnations: 100,
            tables_max: 128,
            answers: BTreeMap::new(),
            regs: BTreeMap::new(),
            stops: BTreeMap::new(),
            disconnected: Vec::new(),
        }
    }

    /// A cluster that is started and at rest.
    pub(super) fn started(count: u8, seed: u64) -> Self {
        let mut c = Self::new(count, seed);
        for node in 1..=count {
            c.boot(node);
        }
        c.link_all();
        c.advance(50);
        c.settle();
        c.assert_started();
        c
    }

    pub(super) fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % below
    }

    /// Starts the process of `node`.
    pub(super) fn boot(&mut self, node: u8) {
        self.boot_with(node, |_| {});
    }

    pub(super) fn boot_with(&mut self, node: u8, change: impl FnOnce(&mut NodeSetup)) {
        self.incarnations += 1;
        let mut setup = NodeSetup {
            data_memory: crate::ldm::page::DataMemory::new(1024),
            node: NodeId(node),
            incarnation: self.incarnations,
            groups: self.groups.clone(),
            ldms: 2,
            tcs: 2,
            deadlock_timeout_ms: 1200,
            inactive_timeout_ms: u64::MAX,
            transactions_max: 4096,
            operations_max: 32768,
            scans_max: 256,
            tables_max: self.tables_max,
            heartbeat_db_ms: 1000,
            heartbeat_api_ms: 500,
            epoch_ms: 100,
            gcp_ms: 2000,
            tunables: crate::tunables::Tunables::default(),
            rare: crate::tunables::Rare::NEVER,
            planted: signals::planted::Planted::NONE,
        };
        change(&mut setup);
        let mut out = Outbox::new(NodeId(node));
        for block in MainRole::BLOCKS {
            out.set_local_route(block, 0, RouteId::SELF);
        }
        let workers: BTreeMap<_, _> =
            crate::mainrole::workers(&setup).map(|w| (w, Worker::default())).collect();
        for worker in workers.keys() {
            out.set_local_route(worker.block().unwrap(), worker.instance(), WORKERS);
        }
        out.set_node_route(MGM_NODE, Some(MGM));
        for link in 0..4 {
            out.set_client_route(client(200, link), Some(CLIENTS));
        }
        let process = Process {
            main: MainRole::new(&setup),
            out,
            workers,
            ended: None,
            incarnation: self.incarnations,
            events: Vec::new(),
        };
        self.nodes.insert(node, process);
    }

    /// Opens the link between two running nodes.
    pub(super) fn link(&mut self, a: u8, b: u8) {
        if self.running(a) && self.running(b) && self.links.insert((a.min(b), a.max(b))) {
            for (to, from) in [(a, b), (b, a)] {
                self.push(End::Main(from), End::Main(to), Item::Link { node: from, up: true });
            }
        }
    }

    pub(super) fn link_all(&mut self) {
        let nodes: Vec<u8> = self.nodes.keys().copied().collect();
        for a in &nodes {
            for b in nodes.iter().filter(|b| *b > a) {
                self.link(*a, *b);
            }
        }
    }

    /// Closes a link; what is under way on it arrives up to a point the seed chooses.
    pub(super) fn cut(&mut self, a: u8, b: u8) {
        if !self.links.remove(&(a.min(b), a.max(b))) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            let length = self.channels.entry((End::Main(from), End::Main(to))).or_default().len();
            let keep = self.random(length + 1);
            if let Some(channel) = self.channels.get_mut(&(End::Main(from), End::Main(to))) {
                // News of the link itself is the receiver's own and is not lost.
                let lost: Vec<Item> = channel.drain(keep..).collect();
                channel.extend(lost.into_iter().filter(|i| matches!(i, Item::Link { .. })));
            }
            self.push(End::Main(from), End::Main(to), Item::Link { node: from, up: false });
        }
    }

    /// Ends a process as a crash would.
    pub(super) fn kill(&mut self, node: u8) {
        for other in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.cut(node, other);
        }
        self.nodes.remove(&node);
        self.channels.retain(|(_, to), _| !matches!(to, End::Main(n) | End::Worker(n, _) if *n == node));
        self.channels.retain(|(from, _), _| !matches!(from, End::Worker(n, _) if *n == node));
    }

    pub(super) fn running(&self, node: u8) -> bool {
        self.nodes.get(&node).is_some_and(|p| p.ended.is_none())
    }

    fn push(&mut self, from: End, to: End, item: Item) {
        self.channels.entry((from, to)).or_default().push_back(item);
    }

    /// A signal from outside of the kernel.
    fn inject(&mut self, node: u8, source: BlockRef, block: BlockNumber, signal: &ControlSignal) {
        let mut bytes = Vec::new();
        assert!(frame::push_control(&mut bytes, source, BlockRef::new(NodeId(node), block, 0), signal));
        self.push(End::Outside(node), End::Main(node), Item::Frame(bytes));
    }

    pub(super) fn ask(&mut self, node: u8, client: BlockRef, request: u32, change: SchemaChange) {
        let signal = ControlSignal::SchemaReq { request, change };
        self.inject(node, client, BlockNumber::Dbdict, &signal);
    }

    pub(super) fn register(&mut self, node: u8, client: BlockRef) {
        self.inject(node, client, BlockNumber::Qmgr, &ControlSignal::ApiRegReq { version: 1 });
    }

    pub(super) fn client_fails(&mut self, node: u8, client: BlockRef) {
        self.inject(node, BlockRef::NONE, BlockNumber::Qmgr, &ControlSignal::ApiFailReq { client });
    }

    pub(super) fn stop(&mut self, node: u8, request: u32, scope: StopScope, force: bool) {
        let source = BlockRef::new(MGM_NODE, BlockNumber::Mgm, 0);
        let signal = ControlSignal::StopReq { request, scope, force };
        self.inject(node, source, BlockNumber::Cmvmi, &signal);
    }

    /// Asks and waits until everything is at rest.
    pub(super) fn change(&mut self, node: u8, change: SchemaChange) -> Result<DictAnswer, Refusal> {
        let client = client(200, 3);
        self.ask(node, client, 9999, change);
        self.settle();
        self.answers.remove(&(client, 9999)).expect("an answer")
    }

    pub(super) fn query(&mut self, node: u8, query: DictQuery) -> Result<DictAnswer, Refusal> {
        let client = client(200, 3);
        let signal = ControlSignal::DictQueryReq { request: 8888, query };
        self.inject(node, client, BlockNumber::Dbdict, &signal);
        self.settle();
        self.answers.remove(&(client, 8888)).expect("an answer")
    }

    /// Sets the answer every worker of `node` gives to the next tables.
    pub(super) fn set_full(&mut self, node: u8, full: bool) {
        let worker = BlockRef::new(NodeId(node), BlockNumber::Dblqh, 1);
        self.nodes.get_mut(&node).unwrap().workers.get_mut(&worker).unwrap().full = full;
    }

    /// Operations on a table begin (and last), or end, in one LDM.
    pub(super) fn set_busy(&mut self, node: u8, table: TableId, busy: bool) {
        let id = BlockRef::new(NodeId(node), BlockNumber::Dblqh, 0);
        let worker = self.nodes.get_mut(&node).unwrap().workers.get_mut(&id).unwrap();
        if busy {
            worker.busy.insert(table);
            return;
        }
        worker.busy.remove(&table);
        if let Some((_, state)) = worker.tables.get_mut(&table)
            && *state == (FakeTable::Dropping { asked: true })
        {
            *state = FakeTable::Dropping { asked: false };
            self.worker_sends(node, id, &ControlSignal::TableConf { table });
        }
    }

    fn worker_sends(&mut self, node: u8, worker: BlockRef, signal: &ControlSignal) {
        let mut bytes = Vec::new();
        let dict = BlockRef::new(NodeId(node), BlockNumber::Dbdict, 0);
        assert!(frame::push_control(&mut bytes, worker, dict, signal));
        self.push(End::Worker(node, worker), End::Main(node), Item::Frame(bytes));
    }

    /// Delivers one item of a channel the seed chooses. False if there is none.
    pub(super) fn step(&mut self) -> bool {
        let frozen = |end: &End| matches!(end, End::Main(n) if self.frozen.contains(n));
        let ready = self.channels.iter().filter(|((_, to), c)| !c.is_empty() && !frozen(to));
        let full: Vec<(End, End)> = ready.map(|(k, _)| *k).collect();
        if full.is_empty() {
            return false;
        }
        let key = full[self.random(full.len())];
        let Some(item) = self.channels.get_mut(&key).and_then(VecDeque::pop_front) else { return false };
        match (key.1, item) {
            (End::Main(node), Item::Frame(bytes)) => self.main_gets(node, &bytes),
            (End::Main(node), Item::Link { node: peer, up }) => self.link_news(node, peer, up),
            (End::Worker(node, worker), Item::Frame(bytes)) => self.worker_gets(node, worker, &bytes),
            (End::Outside(node), Item::Frame(bytes)) => self.outside_gets(node, &bytes),
            (End::Worker(..) | End::Outside(_), Item::Link { .. }) => {
                unreachable!("links are between main roles")
            }
        }
        true
    }

    /// Delivers until nothing is under way.
    pub(super) fn settle(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 1_000_000, "the cluster does not come to rest");
        }
    }

    /// Delivers `count` items at most.
    pub(super) fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Lets time pass, with ticks and deliveries.
    pub(super) fn advance(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.now = self.now.after_ms(10);
            for node in self.nodes.keys().copied().collect::<Vec<_>>() {
                self.tick(node);
            }
            self.settle();
        }
    }

    /// Time passes and nobody notices: the whole machine was asleep.
    pub(super) fn skip(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
    }

    /// A frozen node neither ticks nor takes signals; its links stay up.
    pub(super) fn freeze(&mut self, node: u8, frozen: bool) {
        if frozen {
            self.frozen.insert(node);
        } else {
            self.frozen.remove(&node);
        }
    }

    fn tick(&mut self, node: u8) {
        let now = self.now;
        if self.frozen.contains(&node) {
            return;
        }
        if let Some(p) = self.nodes.get_mut(&node).filter(|p| p.ended.is_none()) {
            p.main.tick(now, &mut p.out);
            self.collect(node);
        }
    }

    fn main_gets(&mut self, node: u8, bytes: &[u8]) {
        let now = self.now;
        let Some(p) = self.nodes.get_mut(&node).filter(|p| p.ended.is_none()) else { return };
        let (header, Signal::Control(signal)) = Signal::parse(bytes).unwrap() else {
            unreachable!("control")
        };
        p.main.handle(now, header, *signal, &mut p.out);
        self.collect(node);
    }

    fn link_news(&mut self, node: u8, peer: u8, up: bool) {
        let incarnation = self.nodes.get(&peer).map_or(0, |p| p.incarnation);
        let Some(p) = self.nodes.get_mut(&node).filter(|p| p.ended.is_none()) else { return };
        let peer_id = NodeId(peer);
        let signal = if up {
            p.out.set_node_route(peer_id, Some(RouteId(FIRST_NODE + u16::from(peer))));
            ControlSignal::ConnectRep { node: peer_id, incarnation }
        } else {
            p.out.set_node_route(peer_id, None);
            ControlSignal::DisconnectRep { node: peer_id, reason: "closed".into() }
        };
        let mut bytes = Vec::new();
        let qmgr = BlockRef::new(NodeId(node), BlockNumber::Qmgr, 0);
        assert!(frame::push_control(&mut bytes, BlockRef::NONE, qmgr, &signal));
        self.main_gets(node, &bytes);
    }

    /// Ships what a node's outbox holds and does what it asks for.
    fn collect(&mut self, node: u8) {
        let Some(p) = self.nodes.get_mut(&node) else { return };
        let mut frames = Vec::new();
        while let Some((route, buffer)) = p.out.take_dirty() {
            let mut rest = &buffer[..];
            while let Some((bytes, tail)) = next_frame(rest).unwrap() {
                frames.push((route, bytes.to_vec()));
                rest = tail;
            }
            p.out.give_back(route, buffer);
        }
        p.events.extend(p.out.take_events().into_iter().map(|e| e.text));
        let effects = p.out.take_effects();
        for (route, bytes) in frames {
            let to = match route {
                RouteId::SELF => End::Main(node),
                WORKERS => End::Worker(node, frame::frame_target(&bytes)),
                CLIENTS | MGM => End::Outside(node),
                RouteId(n) => {
                    let peer = (n - FIRST_NODE) as u8;
                    if !self.links.contains(&(node.min(peer), node.max(peer))) {
                        continue;
                    }
                    End::Main(peer)
                }
            };
            self.push(End::Main(node), to, Item::Frame(bytes));
        }
        for effect in effects {
            self.effect(node, effect);
        }
    }

    fn effect(&mut self, node: u8, effect: Effect) {
        match effect {
            Effect::Shutdown { reason, error } => {
                let Some(p) = self.nodes.get_mut(&node) else { return };
                assert!(p.ended.is_none(), "ended twice");
                p.ended = Some((reason, error));
                for other in self.nodes.keys().copied().collect::<Vec<_>>() {
                    // What was sent arrives: the process ships its outbox before it ends.
                    if self.links.remove(&(node.min(other), node.max(other))) {
                        self.push(End::Main(node), End::Main(other), Item::Link { node, up: false });
                    }
                }
            }
            Effect::Disconnect { node: peer, .. } => self.cut(node, peer.0),
            Effect::DisconnectClient { client, .. } => self.disconnected.push(client),
            Effect::StateChanged => {}
        }
    }

    fn outside_gets(&mut self, node: u8, bytes: &[u8]) {
        let (header, Signal::Control(signal)) = Signal::parse(bytes).unwrap() else {
            unreachable!("control")
        };
        let double = match *signal {
            ControlSignal::DictConf { request, answer } => {
                self.answers.insert((header.target, request), Ok(answer)).is_some()
            }
            ControlSignal::DictRef { request, refusal } => {
                self.answers.insert((header.target, request), Err(refusal)).is_some()
            }
            ControlSignal::StopConf { request } => self.stops.insert((node, request), Ok(())).is_some(),
            ControlSignal::StopRef { request, refusal } => {
                self.stops.insert((node, request), Err(refusal)).is_some()
            }
            ControlSignal::ApiRegConf(conf) => {
                self.regs.insert(header.target, conf);
                false
            }
            other => panic!("sent outside: {other:?}"),
        };
        assert!(!double, "answered twice");
    }

    fn worker_gets(&mut self, node: u8, id: BlockRef, bytes: &[u8]) {
        let (_, Signal::Control(signal)) = Signal::parse(bytes).unwrap() else { unreachable!("control") };
        let Some(worker) = self.nodes.get_mut(&node).and_then(|p| p.workers.get_mut(&id)) else { return };
        if let Some(answer) = worker.handle(*signal) {
            self.worker_sends(node, id, &answer);
        }
    }

    // --- what the stories look at
    // ---------------------------------------------------------------------------------

    pub(super) fn status(&self, node: u8) -> NodeStatus {
        self.nodes[&node].main.status()
    }

    /// Why a node ended, and whether as a failure.
    pub(super) fn ended(&self, node: u8) -> Option<(String, bool)> {
        self.nodes.get(&node).and_then(|p| p.ended.clone())
    }

    pub(super) fn events(&self, node: u8) -> &[String] {
        &self.nodes[&node].events
    }

    pub(super) fn epochs(&self, node: u8) -> Vec<u64> {
        self.nodes[&node].workers.values().map(|w| w.epoch).collect()
    }

    pub(super) fn failed_clients(&self, node: u8) -> Vec<Vec<BlockRef>> {
        self.nodes[&node].workers.values().map(|w| w.failed_clients.clone()).collect()
    }

    pub(super) fn assert_started(&self) {
        for node in self.nodes.keys() {
            let status = self.status(*node);
            assert_eq!(status.phase, StartPhase::Started, "node {node}: {}", status.text);
            assert_eq!(status.president, Some(NodeId(1)));
        }
        self.assert_schema_equal();
        assert!(self.nodes.values().flat_map(|p| p.workers.values()).all(|w| w.started == Some(true)));
    }

    /// At rest: every node has the same catalog, every worker exactly its tables, and nothing is left half
    /// done.
    pub(super) fn assert_schema_equal(&self) {
        let Some(first) = self.nodes.values().next() else { return };
        let catalog = first.main.dict().catalog();
        let expected: BTreeMap<TableId, (SchemaVersion, FakeTable)> = catalog
            .table_ids()
            .map(|id| (id, (catalog.table(id).unwrap().def.version, FakeTable::Usable)))
            .collect();
        for (node, process) in &self.nodes {
            assert!(process.main.dict().is_quiet(), "node {node} holds a schema transaction");
            assert_eq!(process.main.dict().catalog(), catalog, "node {node}");
            for (id, worker) in &process.workers {
                assert_eq!(worker.tables, expected, "{id:?}");
            }
            assert!(!process.events.iter().any(|e| e.contains("unasked")), "{:?}", process.events);
        }
    }

    /// `database/table` of everything in a node's catalog but the system's.
    pub(super) fn tables(&self, node: u8) -> Vec<String> {
        let catalog = self.nodes[&node].main.dict().catalog();
        let names = catalog.table_ids().map(|id| catalog.table(id).unwrap().def.full_name());
        let mut names: Vec<String> = names.filter(|n| !n.starts_with("mysql/")).collect();
        names.sort();
        names
    }
}

impl Worker {
    fn handle(&mut self, signal: ControlSignal) -> Option<ControlSignal> {
        match signal {
            ControlSignal::AddTableReq(info) => {
                let (table, version) = (info.def.id, info.def.version);
                assert!(info.map.is_valid());
                if self.full {
                    let refusal = Refusal::new(ErrorCode::DATA_MEMORY_FULL, "no page left");
                    return Some(ControlSignal::TableRef { table, refusal });
                }
                let before = self.tables.insert(table, (version, FakeTable::Usable));
                assert_eq!(before, None, "table added twice");
                Some(ControlSignal::TableConf { table })
            }
            ControlSignal::PrepDropTableReq { table } => {
                let asked = self.busy.contains(&table);
                let (_, state) = self.tables.get_mut(&table).expect("a table to drop");
                assert_eq!(*state, FakeTable::Usable);
                *state = FakeTable::Dropping { asked };
                (!asked).then_some(ControlSignal::TableConf { table })
            }
            ControlSignal::CancelDropTableOrd { table } => {
                let (_, state) = self.tables.get_mut(&table).expect("a table");
                let asked = *state == FakeTable::Dropping { asked: true };
                *state = FakeTable::Usable;
                let refusal = Refusal::new(ErrorCode::SCHEMA_TRANS_ABORTED, "cancelled");
                asked.then_some(ControlSignal::TableRef { table, refusal })
            }
            ControlSignal::DropTableReq { table } => {
                let before = self.tables.remove(&table);
                assert_ne!(before.map(|(_, s)| s), Some(FakeTable::Dropping { asked: true }));
                Some(ControlSignal::TableConf { table })
            }
            ControlSignal::StartPermOrd { started } => {
                self.started = Some(started);
                None
            }
            ControlSignal::ApiFailReq { client } => {
                self.failed_clients.push(client);
                None
            }
            ControlSignal::EpochOrd { epoch } => {
                assert!(epoch.0 > self.epoch);
                self.epoch = epoch.0;
                None
            }
            other => panic!("sent to a worker: {other:?}"),
        }
    }
}

pub(super) fn client(node: u8, link: u16) -> BlockRef {
    BlockRef::new(NodeId(node), BlockNumber::Api, link)
}

/// A table `database/name` of two columns.
pub(super) fn table(database: &str, name: &str) -> TableDef {
    let column = |name: &str| ColumnDef {
        name: name.into(),
        kind: ColumnType::Unsigned,
        storage: ColumnStorage::Fixed { size: 4 },
        nullable: false,
        collation: 63,
        default: None,
        sql: vec![1, 2],
    };
    TableDef {
        id: TableId(0),
        version: SchemaVersion(0),
        database: database.into(),
        name: name.into(),
        columns: vec![column("a"), column("b")],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: vec![7],
    }
}

pub(super) fn create(name: &str) -> SchemaChange {
    SchemaChange::CreateTable(Box::new(table("test", name)))
}

pub(super) fn create_database(name: &str) -> SchemaChange {
    SchemaChange::CreateDatabase { name: name.into(), sql: vec![33] }
}

/// The id and version a change gave.
pub(super) fn changed(answer: Result<DictAnswer, Refusal>) -> (TableId, SchemaVersion) {
    match answer {
        Ok(DictAnswer::Changed(Some(given))) => given,
        other => panic!("{other:?}"),
    }
}

/// The code of a refusal.
pub(super) fn code(answer: Result<DictAnswer, Refusal>) -> ErrorCode {
    answer.expect_err("a refusal").code
}
