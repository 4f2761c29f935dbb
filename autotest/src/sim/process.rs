//! Process: a data node's process in a run - its workers, their queues, its ends of the links.
//!
//! It does what the runtime of the `datanode` crate does, with the same blocks, placement and screen, but one
//! signal at a time, so that every interleaving the runtime permits can happen:
//!
//! * Each worker has a first-in first-out queue per source: its own blocks, every other worker, the runtime,
//!   every link it owns. In a turn it takes a few items; from which queue is drawn each time.
//! * What its blocks send leaves at the end of the turn, which takes virtual time.
//! * A link is announced to every worker before qmgr hears of it and before anything is read from it; its
//!   end goes the same way, behind everything that came over it.
//!
//! Nothing here looks at what signals mean.

use super::rng::Rng;
use super::trace::Trace;
use config::ThreadLayout;
use datanode::core::Placement;
use datanode::screen::Screen;
use datanode::setup::hosted;
use kernel::mainrole::{MainRole, NodeStatus};
use kernel::{BlockSet, Effect, NodeSetup, Now, Outbox, RouteId};
use signals::control::ControlSignal;
use signals::frame::{next_frame, push_control};
use signals::{BlockNumber, BlockRef, NodeId};
use std::collections::{BTreeMap, VecDeque};
use transporter::{Peer, PeerRole};

const FIRST_WORKER: u16 = 1;
const MGM: RouteId = RouteId(60);
const FIRST_LINK: u16 = 64;

/// Where a worker's work comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Source {
    Own,
    Worker(usize),
    Runtime,
    Link(NodeId),
}

enum Item {
    Frame(Vec<u8>),
    LinkUp(NodeId),
    LinkDown(NodeId),
    /// The link's last item: its other end, or this one, has closed it.
    Ended(String),
}

/// What a process wants of the world.
pub(crate) enum Wish {
    /// Send over a link.
    Send { to: NodeId, connection: u64, bytes: Vec<u8> },
    /// End a link's connection.
    Close { to: NodeId, connection: u64, reason: String },
    /// A link is forgotten: a new one can be made.
    Gone { peer: NodeId, connection: u64 },
    /// Something for the log.
    Log(String),
    /// The process ends.
    Exit { reason: String, error: bool },
    /// Something that must never happen.
    Violation(String),
}

struct Link {
    connection: u64,
    owner: usize,
    route: RouteId,
    screen: Screen,
    peer: Peer,
    /// Workers that have not heard of it yet, or of its end.
    waiting: usize,
    /// It is being read from.
    adopted: bool,
    /// Its end was seen; the reason.
    ended: Option<String>,
}

struct Worker {
    blocks: BlockSet,
    out: Outbox,
    queues: BTreeMap<Source, VecDeque<Item>>,
    /// Items in all queues that can be taken.
    scheduled: bool,
}

/// See the module.
pub(crate) struct Process {
    id: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) setup: NodeSetup,
    workers: Vec<Worker>,
    placement: Placement,
    main: usize,
    receivers: Vec<usize>,
    links: BTreeMap<NodeId, Link>,
    pub(crate) wishes: Vec<Wish>,
    /// Signals handled since the start.
    pub(crate) handled: u64,
    pub(crate) frozen: bool,
    /// How many times slower than usual its threads are.
    pub(crate) slowness: u64,
}

impl Process {
    pub(crate) fn new(setup: NodeSetup, layout: &ThreadLayout) -> Self {
        let mut placement = Placement::default();
        let mut receivers = Vec::new();
        let mut main = 0;
        for (index, worker) in layout.workers.iter().enumerate() {
            let (ldms, tcs, is_main, receives) = hosted(&worker.roles);
            ldms.iter().for_each(|i| placement.set(BlockNumber::Dblqh, *i, index));
            tcs.iter().for_each(|i| placement.set(BlockNumber::Dbtc, *i, index));
            if is_main {
                main = index;
                MainRole::BLOCKS.iter().for_each(|block| placement.set(*block, 0, index));
            }
            if receives {
                receivers.push(index);
            }
        }
        let workers = layout.workers.iter().enumerate().map(|(index, worker)| {
            let (ldms, tcs, is_main, _) = hosted(&worker.roles);
            let mut out = Outbox::new(setup.node);
            let blocks = BlockSet::new(&setup, &ldms, &tcs, is_main, &mut out);
            for (block, instance, host) in placement.all() {
                if host != index {
                    out.set_local_route(block, instance, RouteId(FIRST_WORKER + host as u16));
                }
            }
            out.set_local_route(BlockNumber::Mgm, 0, MGM);
            Worker { blocks, out, queues: BTreeMap::new(), scheduled: false }
        });
        Self {
            id: setup.node,
            incarnation: setup.incarnation,
            workers: workers.collect(),
            setup,
            placement,
            main,
            receivers: if receivers.is_empty() { vec![0] } else { receivers },
            links: BTreeMap::new(),
            wishes: Vec::new(),
            handled: 0,
            frozen: false,
            slowness: 1,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// What the node says about itself.
    pub(crate) fn status(&self) -> Option<NodeStatus> {
        self.workers[self.main].blocks.main().map(MainRole::status)
    }

    /// Every worker's blocks, for checks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BlockSet> {
        self.workers.iter().map(|w| &w.blocks)
    }

    /// The number of the link to a peer, as long as it is not forgotten.
    pub(crate) fn connection_to(&self, peer: NodeId) -> Option<u64> {
        self.links.get(&peer).map(|link| link.connection)
    }

    /// Every link: peer and connection.
    pub(crate) fn connections(&self) -> Vec<(NodeId, u64)> {
        self.links.iter().map(|(peer, link)| (*peer, link.connection)).collect()
    }

    fn put(&mut self, worker: usize, source: Source, item: Item) {
        self.workers[worker].queues.entry(source).or_default().push_back(item);
    }

    /// A connection was made.
    pub(crate) fn link_up(&mut self, peer: NodeId, role: PeerRole, incarnation: u64, connection: u64) {
        let peer_info =
            Peer { node: peer, role, link: 0, incarnation, version: 1, address: format!("node {peer}") };
        let owner = self.receivers[usize::from(peer.0) % self.receivers.len()];
        let link = Link {
            connection,
            owner,
            route: RouteId(FIRST_LINK + u16::from(peer.0)),
            screen: Screen::new(self.id, &peer_info),
            peer: peer_info,
            waiting: self.workers.len(),
            adopted: false,
            ended: None,
        };
        self.links.insert(peer, link);
        for worker in 0..self.workers.len() {
            self.put(worker, Source::Runtime, Item::LinkUp(peer));
        }
    }

    /// Bytes have arrived over a connection.
    pub(crate) fn arrived(&mut self, peer: NodeId, connection: u64, bytes: &[u8]) {
        let Some(link) = self.links.get(&peer).filter(|l| l.connection == connection) else { return };
        let owner = link.owner;
        let mut rest = bytes;
        while let Ok(Some((frame, tail))) = next_frame(rest) {
            self.put(owner, Source::Link(peer), Item::Frame(frame.to_vec()));
            rest = tail;
        }
    }

    /// A connection has ended; what came before is still read.
    pub(crate) fn ended(&mut self, peer: NodeId, connection: u64, reason: String) {
        let Some(link) = self.links.get(&peer).filter(|l| l.connection == connection) else { return };
        let owner = link.owner;
        self.put(owner, Source::Link(peer), Item::Ended(reason));
    }

    /// A control signal in the name of a block of this node, for a main-role block.
    pub(crate) fn order(&mut self, source: BlockNumber, target: BlockNumber, signal: &ControlSignal) {
        let own = |block| BlockRef::new(self.id, block, 0);
        let mut frame = Vec::new();
        if push_control(&mut frame, own(source), own(target), signal) {
            self.put(self.main, Source::Runtime, Item::Frame(frame));
        }
    }

    /// Whether a worker has something to do and no turn is planned; plans one.
    pub(crate) fn plan_turn(&mut self, worker: usize) -> bool {
        let plan = !self.frozen && !self.workers[worker].scheduled && self.has_work(worker);
        self.workers[worker].scheduled |= plan;
        plan
    }

    fn has_work(&self, worker: usize) -> bool {
        self.workers[worker].queues.iter().any(|(source, queue)| !queue.is_empty() && self.readable(*source))
    }

    fn readable(&self, source: Source) -> bool {
        match source {
            Source::Link(peer) => self.links.get(&peer).is_some_and(|l| l.adopted && l.ended.is_none()),
            Source::Own | Source::Worker(_) | Source::Runtime => true,
        }
    }

    /// The turn planned for a worker does not take place now (the process is frozen).
    pub(crate) fn cancel_turn(&mut self, worker: usize) {
        self.workers[worker].scheduled = false;
    }

    /// A turn: a few items. Returns how many.
    pub(crate) fn turn(&mut self, now: Now, worker: usize, rng: &mut Rng, trace: &mut Trace) -> u64 {
        self.workers[worker].scheduled = false;
        let most = rng.log_range(1..=32);
        let mut count = 0;
        while count < most {
            let sources: Vec<Source> = {
                let queues = &self.workers[worker].queues;
                queues.iter().filter(|(s, q)| !q.is_empty() && self.readable(**s)).map(|(s, _)| *s).collect()
            };
            if sources.is_empty() {
                break;
            }
            let source = sources[if sources.len() == 1 { 0 } else { rng.index(sources.len()) }];
            let item = self.workers[worker].queues.get_mut(&source).and_then(VecDeque::pop_front);
            let Some(item) = item else { break };
            count += 1;
            self.handled += 1;
            self.take(now, worker, source, item, trace);
        }
        self.ship(worker);
        count
    }

    fn take(&mut self, now: Now, worker: usize, source: Source, item: Item, trace: &mut Trace) {
        match item {
            Item::Frame(frame) => match source {
                Source::Link(peer) => self.take_from_link(now, worker, peer, &frame, trace),
                Source::Own | Source::Worker(_) | Source::Runtime => {
                    self.handle(now, worker, &frame, trace);
                }
            },
            Item::LinkUp(peer) => self.apply_link_up(now, worker, peer, trace),
            Item::LinkDown(peer) => self.apply_link_down(worker, peer),
            Item::Ended(reason) => {
                if let Source::Link(peer) = source {
                    self.link_ended(peer, reason);
                }
            }
        }
    }

    fn handle(&mut self, now: Now, worker: usize, frame: &[u8], trace: &mut Trace) {
        trace.signal(self.id, worker, frame);
        let Worker { blocks, out, .. } = &mut self.workers[worker];
        if let Err(invalid) = blocks.handle(now, frame, out) {
            let text = format!("node {}: a signal of its own makes no sense: {invalid}", self.id);
            self.wishes.push(Wish::Violation(text));
        }
    }

    fn take_from_link(&mut self, now: Now, worker: usize, peer: NodeId, frame: &[u8], trace: &mut Trace) {
        let Some(link) = self.links.get(&peer) else { return };
        let target = match link.screen.check(frame) {
            Ok(target) => target,
            Err(reason) => return self.bad_peer(peer, reason),
        };
        match self.placement.find(target) {
            Some(own) if own == worker => {
                trace.signal(self.id, worker, frame);
                let Worker { blocks, out, .. } = &mut self.workers[worker];
                if let Err(invalid) = blocks.handle(now, frame, out) {
                    self.bad_peer(peer, invalid.0);
                }
            }
            Some(other) => self.put(other, Source::Worker(worker), Item::Frame(frame.to_vec())),
            None => self.bad_peer(peer, "frame for a block that is not here"),
        }
    }

    /// Every peer in a run is honest: a frame that is refused is a fault.
    fn bad_peer(&mut self, peer: NodeId, reason: &str) {
        self.wishes
            .push(Wish::Violation(format!("node {} refuses a frame of node {peer}: {reason}", self.id)));
        self.close(peer, reason);
    }

    fn apply_link_up(&mut self, now: Now, worker: usize, peer: NodeId, trace: &mut Trace) {
        let Some(link) = self.links.get_mut(&peer) else { return };
        let out = &mut self.workers[worker].out;
        match link.peer.role {
            PeerRole::DataNode => out.set_node_route(peer, Some(link.route)),
            PeerRole::ApiNode => {
                out.set_session(client(peer), link.peer.incarnation);
                out.set_client_route(client(peer), Some(link.route));
            }
        }
        link.waiting -= 1;
        if link.waiting == 0 {
            link.adopted = true;
            if link.peer.role == PeerRole::DataNode {
                let signal = ControlSignal::ConnectRep { node: peer, incarnation: link.peer.incarnation };
                self.tell_qmgr(now, &signal, trace);
            }
        }
    }

    /// The announcement goes to qmgr before anything is read from the link.
    fn tell_qmgr(&mut self, now: Now, signal: &ControlSignal, trace: &mut Trace) {
        let own = |block| BlockRef::new(self.id, block, 0);
        let mut frame = Vec::new();
        if push_control(&mut frame, own(BlockNumber::Cmvmi), own(BlockNumber::Qmgr), signal) {
            let main = self.main;
            self.handle(now, main, &frame, trace);
            self.ship(main);
        }
    }

    fn link_ended(&mut self, peer: NodeId, reason: String) {
        let workers = self.workers.len();
        let Some(link) = self.links.get_mut(&peer).filter(|l| l.ended.is_none()) else { return };
        link.ended = Some(reason);
        link.waiting = workers;
        let owner = link.owner;
        self.workers[owner].queues.remove(&Source::Link(peer));
        for worker in 0..workers {
            let source = if worker == owner { Source::Own } else { Source::Worker(owner) };
            self.put(worker, source, Item::LinkDown(peer));
        }
    }

    fn apply_link_down(&mut self, worker: usize, peer: NodeId) {
        self.ship(worker);
        let Some(link) = self.links.get_mut(&peer) else { return };
        let out = &mut self.workers[worker].out;
        match link.peer.role {
            PeerRole::DataNode => out.set_node_route(peer, None),
            PeerRole::ApiNode => out.set_client_route(client(peer), None),
        }
        link.waiting -= 1;
        if link.waiting > 0 {
            return;
        }
        let Some(link) = self.links.remove(&peer) else { return };
        let reason = link.ended.unwrap_or_default();
        let signal = match link.peer.role {
            PeerRole::DataNode => ControlSignal::DisconnectRep { node: peer, reason: reason.clone() },
            PeerRole::ApiNode => ControlSignal::ApiFailReq { client: client(peer) },
        };
        self.order(BlockNumber::Cmvmi, BlockNumber::Qmgr, &signal);
        self.wishes.push(Wish::Close { to: peer, connection: link.connection, reason });
        self.wishes.push(Wish::Gone { peer, connection: link.connection });
    }

    /// Closes a link from this side.
    fn close(&mut self, peer: NodeId, reason: &str) {
        let Some(link) = self.links.get(&peer) else { return };
        let (owner, connection) = (link.owner, link.connection);
        self.wishes.push(Wish::Close { to: peer, connection, reason: reason.to_owned() });
        self.put(owner, Source::Link(peer), Item::Ended(reason.to_owned()));
    }

    /// Lets a worker's blocks look at the time.
    pub(crate) fn tick(&mut self, now: Now, worker: usize) {
        let Worker { blocks, out, .. } = &mut self.workers[worker];
        blocks.tick(now, out);
        self.ship(worker);
    }

    /// Takes what a worker's blocks have sent to where it goes.
    fn ship(&mut self, worker: usize) {
        let mut routes = Vec::new();
        {
            let out = &mut self.workers[worker].out;
            while let Some((route, buffer)) = out.take_dirty() {
                routes.push((route, buffer));
            }
        }
        for (route, buffer) in routes {
            match route {
                RouteId::SELF => self.pass(worker, Source::Own, &buffer),
                // Answers to orders: nobody asked for them by name.
                MGM => {}
                RouteId(n) if n >= FIRST_LINK => self.send(NodeId((n - FIRST_LINK) as u8), buffer.clone()),
                RouteId(n) => self.pass(usize::from(n - FIRST_WORKER), Source::Worker(worker), &buffer),
            }
            self.workers[worker].out.give_back(route, buffer);
        }
        if self.workers[worker].out.has_news() {
            self.news(worker);
        }
    }

    fn pass(&mut self, to: usize, source: Source, mut rest: &[u8]) {
        while let Ok(Some((frame, tail))) = next_frame(rest) {
            self.put(to, source, Item::Frame(frame.to_vec()));
            rest = tail;
        }
    }

    fn send(&mut self, to: NodeId, bytes: Vec<u8>) {
        if let Some(link) = self.links.get(&to) {
            self.wishes.push(Wish::Send { to, connection: link.connection, bytes });
        }
    }

    fn news(&mut self, worker: usize) {
        for event in self.workers[worker].out.take_events() {
            self.wishes.push(Wish::Log(format!("{:?}: {}", event.severity, event.text)));
        }
        for effect in self.workers[worker].out.take_effects() {
            match effect {
                Effect::Shutdown { reason, error } => self.wishes.push(Wish::Exit { reason, error }),
                Effect::Disconnect { node, reason } => self.close(node, &reason),
                Effect::DisconnectClient { client, reason } => self.close(client.node(), &reason),
                Effect::StateChanged => {}
            }
        }
    }
}

fn client(node: NodeId) -> BlockRef {
    BlockRef::new(node, BlockNumber::Api, 0)
}
