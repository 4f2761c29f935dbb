//! Directory: what all threads of a data node know of each other and of the node's links.
//!
//! Workers own their blocks and buffers; what they must agree on - that a link came up or went down -
//! travels as [`Order`]s through a channel beside the job queues, rare and off the hot path. The life of a
//! link:
//!
//! ```text
//!   acceptor/connector ── link_up ──► LinkUp to every worker: route set
//!   the last worker done ──► Announce to the main worker: Qmgr gets ConnectRep ──► Adopt to the owner: reads begin
//!   ...
//!   owner sees the end ── link_lost ──► LinkDown to every worker: rings emptied, then route unset
//!   the last worker done ──► number free again; Qmgr gets DisconnectRep or ApiFailReq
//! ```
//!
//! So every worker can answer a peer before the first of its signals is read, and after Qmgr heard of a
//! loss nothing of that link is delivered any more. A link's number (its route and epoll token) is used
//! again only when every worker has forgotten it.
//!
//! The node's end is decided here too: the first reason wins ([`Directory::request_exit`]).

use crate::link_out::{LinkOut, Owner};
use crate::send::SendPost;
use crate::usage::Counters;
use crossbeam_channel::Sender;
use kernel::mainrole::NodeStatus;
use kernel::{Event, RouteId, Severity};
use signals::control::ControlSignal;
use signals::frame::push_control;
use signals::{BlockNumber, BlockRef, NodeId};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transporter::{Link, LinkReader, Peer, PeerRole, Wake};

/// Most links of a node: one per data node and a generous number of client sessions.
pub const LINKS_MAX: usize = 4096;

/// What a worker is told.
pub enum Order {
    /// A link is new: set its route.
    LinkUp(Arc<Birth>),
    /// Every worker has its route: tell Qmgr, then let the owner read.
    Announce(Arc<Birth>),
    /// Begin to read a link.
    Adopt(Arc<Birth>),
    /// A link is gone: empty the rings, then forget its route.
    LinkDown(Arc<Death>),
    /// A frame for one of your blocks.
    Frame(Vec<u8>),
    /// Ship what you have and end.
    Stop,
}

/// A link on its way up.
pub struct Birth {
    /// Its route.
    pub route: RouteId,
    /// Its sending side.
    pub out: Arc<LinkOut>,
    /// The worker that reads it.
    owner: usize,
    reader: Mutex<Option<LinkReader>>,
    waiting: AtomicUsize,
}

impl Birth {
    /// The receiving side, for the owner; once.
    #[must_use]
    pub fn take_reader(&self) -> Option<LinkReader> {
        locked(&self.reader).take()
    }
}

/// A link on its way down.
pub struct Death {
    /// Its route.
    pub route: RouteId,
    /// Who was at the other end.
    pub peer: Peer,
    reason: String,
    waiting: AtomicUsize,
}

/// How a worker is reached.
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its orders.
    pub orders: Sender<Order>,
    /// Its wake-up.
    pub wake: Arc<Wake>,
    /// Its epoll.
    pub epoll: Arc<OwnedFd>,
    /// Its counters.
    pub counters: Arc<Counters>,
}

impl Port {
    /// Gives the worker an order and wakes it.
    pub fn order(&self, order: Order) {
        // A worker that has ended needs no orders.
        let _ = self.orders.send(order);
        self.wake.wake();
    }
}

/// Why and how the node ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// For the log and the operator.
    pub reason: String,
    /// Whether it is a failure.
    pub error: bool,
}

/// See the module.
pub struct Directory {
    /// This node.
    pub node: NodeId,
    /// All workers.
    pub workers: Vec<Port>,
    /// Those that read links.
    receivers: Vec<usize>,
    /// Where the send instances are, by number; none in a node with one worker.
    posts: Vec<Arc<SendPost>>,
    main: usize,
    table: Mutex<Table>,
    /// Rung when a link is gone or the node ends.
    bell: Condvar,
    exit: Mutex<Option<Exit>>,
    exit_bell: Condvar,
    status: Mutex<Option<NodeStatus>>,
    troubles: Mutex<BTreeMap<NodeId, String>>,
    log: Option<crossbeam_channel::Sender<Event>>,
    send_buffer: Box<dyn Fn(NodeId) -> usize + Send + Sync>,
}

#[derive(Default)]
struct Table {
    links: BTreeMap<(NodeId, u16), Entry>,
    free: Vec<u16>,
    next: u16,
    ended: bool,
}

struct Entry {
    out: Arc<LinkOut>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// The directory of a node; `receivers` and `main` are indexes into `workers`.
    pub fn new(
        node: NodeId,
        workers: Vec<Port>,
        receivers: Vec<usize>,
        posts: Vec<Arc<SendPost>>,
        main: usize,
        log: Option<Sender<Event>>,
        send_buffer: Box<dyn Fn(NodeId) -> usize + Send + Sync>,
    ) -> Self {
        Self {
            node,
            workers,
            receivers,
            posts,
            main,
            table: Mutex::default(),
            bell: Condvar::new(),
            exit: Mutex::new(None),
            exit_bell: Condvar::new(),
            status: Mutex::new(None),
            troubles: Mutex::default(),
            log,
            send_buffer,
        }
    }

    /// The first route that is a link: 0 is self, then come the workers, then the management thread.
    #[must_use]
    pub fn first_link_route(&self) -> u16 {
        self.mgm_route().0 + 1
    }

    /// The route to the management thread.
    #[must_use]
    pub fn mgm_route(&self) -> RouteId {
        RouteId(u16::try_from(self.workers.len() + 1).unwrap_or(u16::MAX - 1))
    }

    /// The worker that reads the links of a peer.
    #[must_use]
    pub fn owner_of(&self, node: NodeId, link: u16) -> usize {
        let nth = (usize::from(node.0) + usize::from(link)) % self.receivers.len().max(1);
        self.receivers.get(nth).copied().unwrap_or(0)
    }

    /// The wake-up of the worker that reads the links of a peer.
    #[must_use]
    pub fn wake_of(&self, node: NodeId, link: u16) -> Option<Arc<Wake>> {
        self.workers.get(self.owner_of(node, link)).map(|port| port.wake.clone())
    }

    /// Whether there is such a link, on its way up or down included.
    #[must_use]
    pub fn is_connected(&self, node: NodeId, link: u16) -> bool {
        locked(&self.table).links.contains_key(&(node, link))
    }

    /// Whether there is room for another link.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let table = locked(&self.table);
        !table.ended && table.links.len() < LINKS_MAX
    }

    /// Takes a new link into service; drops it if there is one to that peer already, or no room.
    pub fn link_up(&self, link: Link) -> bool {
        let Link { peer, reader, writer } = link;
        let owner = self.owner_of(peer.node, peer.link);
        let Some(port) = self.workers.get(owner) else { return false };
        let mut table = locked(&self.table);
        let key = (peer.node, peer.link);
        if table.ended || table.links.len() >= LINKS_MAX || table.links.contains_key(&key) {
            return false;
        }
        let number = table.free.pop().unwrap_or_else(|| {
            table.next += 1;
            table.next - 1
        });
        let route = RouteId(self.first_link_route() + number);
        let send_buffer = (self.send_buffer)(peer.node);
        let control = reader.control();
        let at_owner =
            Owner { token: u64::from(route.0), epoll: port.epoll.clone(), wake: port.wake.clone() };
        let post = self.posts.get(usize::from(number) % self.posts.len().max(1)).cloned();
        let out = Arc::new(LinkOut::new(peer, control, writer, send_buffer, at_owner, post));
        table.links.insert(key, Entry { out: out.clone() });
        let birth = Arc::new(Birth {
            route,
            out,
            owner,
            reader: Mutex::new(Some(reader)),
            waiting: AtomicUsize::new(self.workers.len()),
        });
        // Under the table's lock: every worker hears of links in the same order.
        for port in &self.workers {
            port.order(Order::LinkUp(birth.clone()));
        }
        true
    }

    /// A worker has set the route of a new link.
    pub fn birth_applied(&self, birth: &Arc<Birth>) {
        if birth.waiting.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(port) = self.workers.get(self.main)
        {
            port.order(Order::Announce(birth.clone()));
        }
    }

    /// The main worker has told Qmgr of a new link.
    pub fn birth_announced(&self, birth: &Arc<Birth>) {
        if let Some(port) = self.workers.get(birth.owner) {
            port.order(Order::Adopt(birth.clone()));
        }
    }

    /// The owner of a link has seen its end, and has delivered everything that came before.
    pub fn link_lost(&self, route: RouteId, peer: &Peer, reason: String) {
        let waiting = AtomicUsize::new(self.workers.len());
        let death = Arc::new(Death { route, peer: peer.clone(), reason, waiting });
        let _table = locked(&self.table);
        for port in &self.workers {
            port.order(Order::LinkDown(death.clone()));
        }
    }

    /// A worker has forgotten a link.
    pub fn death_applied(&self, death: &Arc<Death>) {
        if death.waiting.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let mut table = locked(&self.table);
        table.links.remove(&(death.peer.node, death.peer.link));
        table.free.push(death.route.0 - self.first_link_route());
        drop(table);
        self.bell.notify_all();
        let signal = match death.peer.role {
            PeerRole::DataNode => {
                ControlSignal::DisconnectRep { node: death.peer.node, reason: death.reason.clone() }
            }
            PeerRole::ApiNode => ControlSignal::ApiFailReq {
                client: BlockRef::new(death.peer.node, BlockNumber::Api, death.peer.link),
            },
        };
        self.order_frame(BlockNumber::Cmvmi, BlockNumber::Qmgr, &signal);
    }

    /// Gives a main-role block a control signal in the name of another block of this node.
    pub fn order_frame(&self, source: BlockNumber, target: BlockNumber, signal: &ControlSignal) {
        let mut frame = Vec::new();
        let own = |block| BlockRef::new(self.node, block, 0);
        if push_control(&mut frame, own(source), own(target), signal)
            && let Some(port) = self.workers.get(self.main)
        {
            port.order(Order::Frame(frame));
        }
    }

    /// Closes the links to a node: all of them, or the one of a client session.
    pub fn disconnect(&self, node: NodeId, link: Option<u16>, reason: &str) {
        let table = locked(&self.table);
        for (key, entry) in &table.links {
            if key.0 == node && link.is_none_or(|l| l == key.1) {
                entry.out.close(reason);
            }
        }
    }

    /// The sending sides of all links.
    #[must_use]
    pub fn links(&self) -> Vec<Arc<LinkOut>> {
        locked(&self.table).links.values().map(|entry| entry.out.clone()).collect()
    }

    /// Waits until a link is lost, the node ends, or `time` is over. Returns whether the node lives on.
    pub fn wait_for_loss(&self, time: Duration) -> bool {
        let table = locked(&self.table);
        if table.ended {
            return false;
        }
        let (table, _) = self.bell.wait_timeout(table, time).unwrap_or_else(PoisonError::into_inner);
        !table.ended
    }

    /// No new links from now on; those who wait for losses are released.
    pub fn end(&self) {
        locked(&self.table).ended = true;
        self.bell.notify_all();
    }

    /// Asks for the node's end. The first reason stays.
    pub fn request_exit(&self, reason: impl Into<String>, error: bool) {
        let mut exit = locked(&self.exit);
        if exit.is_none() {
            *exit = Some(Exit { reason: reason.into(), error });
        }
        self.exit_bell.notify_all();
    }

    /// Waits until somebody asks for the node's end, at most `time` if given.
    #[must_use]
    pub fn wait_for_exit(&self, time: Option<Duration>) -> Option<Exit> {
        let mut exit = locked(&self.exit);
        loop {
            if exit.is_some() {
                return exit.clone();
            }
            exit = match time {
                None => self.exit_bell.wait(exit).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let waited = self.exit_bell.wait_timeout(exit, time);
                    return waited.unwrap_or_else(PoisonError::into_inner).0.clone();
                }
            };
        }
    }

    /// What the node says about itself.
    #[must_use]
    pub fn status(&self) -> Option<NodeStatus> {
        locked(&self.status).clone()
    }

    /// The main worker's: publishes what the node says about itself.
    pub fn set_status(&self, status: NodeStatus) {
        *locked(&self.status) = Some(status);
    }

    /// Why data nodes cannot be reached: `node 3 at host:port: reason`.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        locked(&self.troubles).iter().map(|(node, text)| format!("node {node} at {text}")).collect()
    }

    /// Notes why a data node cannot be reached, or that it can.
    pub fn set_trouble(&self, node: NodeId, trouble: Option<String>) {
        let mut troubles = locked(&self.troubles);
        match trouble {
            Some(text) => troubles.insert(node, text),
            None => troubles.remove(&node),
        };
    }

    /// Writes an event to the node's log and offers it to the cluster log.
    pub fn log(&self, event: Event) {
        match event.severity {
            Severity::Debug => tracing::debug!("{}", event.text),
            Severity::Info => tracing::info!("{}", event.text),
            Severity::Warning => tracing::warn!("{}", event.text),
            Severity::Error | Severity::Alert => tracing::error!("{}", event.text),
        }
        if let Some(log) = &self.log {
            // A management server that does not keep up costs the cluster log lines, never the data node its
            // pace.
            let _ = log.try_send(event);
        }
    }
}
