//! Node: a data node put together from its configuration, started, asked and stopped.
//!
//! [`start`] is the one way in, for the daemon, for a single process with all node types, and for tests. It
//! makes the workers with their rings, starts their threads, listens, and begins to connect to the other
//! data nodes. From then on the node runs by itself; the [`Node`] handle asks for its state and ends it.
//!
//! The end, whoever asked for it: no new links, workers ship what they have and stop, what lies in the
//! links' queues gets a moment to leave, then the links close and the peers see it at once.

use crate::connect::{self, Peers, Target};
use crate::core::{Core, Placement};
use crate::directory::{Directory, Exit, Order, Port};
use crate::jobs::{JobReceiver, JobSender, job_queue};
use crate::priority;
use crate::send::{SendDesk, SendPost, send_queue};
use crate::setup::{self, StartError, hosted};
use crate::usage::Counters;
use crate::worker::{Inputs, Worker, run_guarded};
use config::{ClusterConfig, DataNodeConfig, Role, ThreadLayout, WorkerLayout};
use kernel::mainrole::{MainRole, NodeStatus};
use kernel::{BlockSet, Event, NodeSetup, Outbox, Severity};
use rustix::event::epoll;
use signals::control::{ControlSignal, StopScope};
use signals::mgm::MemoryUsage;
use signals::{BlockNumber, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use transporter::acceptor::Identity;
use transporter::{Acceptor, PeerRole, Wake, cluster_hash, hello};

/// What is left in the queues of the links gets this long to leave when the node ends.
const FAREWELL: Duration = Duration::from_millis(200);
/// Events the cluster log may be behind.
const EVENTS_MAX: usize = 1024;
/// Frames for the management thread that may wait.
const MGM_FRAMES_MAX: usize = 64;

/// How to start a node.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Nodes of this process are reached through rings instead of sockets.
    pub in_process: bool,
    /// CPUs to use; `None` for those the process may use. An empty list binds nothing.
    pub cpus: Option<Vec<usize>>,
}

/// A running data node.
pub struct Node {
    directory: Arc<Directory>,
    setup: NodeSetup,
    layout: ThreadLayout,
    workers: Vec<JoinHandle<()>>,
    helpers: Vec<JoinHandle<()>>,
    accepting: Arc<Wake>,
    events: crossbeam_channel::Receiver<Event>,
    mgm_frames: crossbeam_channel::Receiver<Vec<u8>>,
    ended: bool,
}

/// A worker's figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerFigures {
    /// Its name.
    pub name: String,
    /// Turns of its loop.
    pub turns: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Times another thread had to wake it.
    pub wakes: u64,
    /// Signals handled.
    pub signals: u64,
    /// Bytes received from links.
    pub received_bytes: u64,
    /// Batches shipped.
    pub batches: u64,
    /// Bytes shipped.
    pub shipped_bytes: u64,
    /// Bytes it wrote to links, its own and those others left to it.
    pub sent_bytes: u64,
    /// Times it spun for work, and how many of them found some.
    pub spins: [u64; 2],
    /// Stalls it noticed.
    pub stalls: u64,
    /// CPU in thousandths over 50 ms, 1 s and 20 s.
    pub cpu: [u32; 3],
}

/// Starts data node `node` of `cluster`.
///
/// # Errors
/// There is no such data node, its `ThreadConfig` cannot be used, its address cannot be listened on, or the
/// operating system gives no more threads or descriptors.
pub fn start(cluster: &ClusterConfig, node: NodeId, options: &Options) -> Result<Node, StartError> {
    let own = cluster
        .data_node(node)
        .ok_or_else(|| StartError(format!("the configuration has no data node {node}")))?;
    let cpus = options.cpus.clone().unwrap_or_else(setup::cpus_of_process);
    let layout = setup::layout_of(cluster, own, &cpus)?;
    let incarnation = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let setup = setup::node_setup(cluster, own, &layout, incarnation);
    let identity = Identity { cluster: cluster_hash(&cluster.name), node, incarnation };
    let acceptor = listen(cluster, own, identity, options.in_process)?;
    let accepting = acceptor.wake();
    let mut node = build(cluster, setup, layout, accepting).map_err(|e| system(&e))?;
    node.start_helpers(cluster, own, identity, acceptor, options.in_process).map_err(|e| system(&e))?;
    Ok(node)
}

fn system(error: &std::io::Error) -> StartError {
    StartError(format!("the operating system refuses what a data node needs: {error}"))
}

fn listen(
    cluster: &ClusterConfig,
    own: &DataNodeConfig,
    identity: Identity,
    in_process: bool,
) -> Result<Acceptor, StartError> {
    let socket = setup::socket_options(&cluster.tcp_default);
    let address = own.address();
    Acceptor::bind(&address, identity, socket, in_process).map_err(|error| {
        StartError(format!(
            "data node {} cannot listen on {address} (HostName and ServerPort of its [ndbd] section): {error}",
            own.node_id
        ))
    })
}

/// Makes and starts the workers.
fn build(
    cluster: &ClusterConfig,
    setup: NodeSetup,
    layout: ThreadLayout,
    accepting: Arc<Wake>,
) -> std::io::Result<Node> {
    let (event_sender, events) = crossbeam_channel::bounded(EVENTS_MAX);
    let (mgm_sender, mgm_frames) = crossbeam_channel::bounded(MGM_FRAMES_MAX);
    let count = layout.workers.len();
    let mut ports = Vec::with_capacity(count);
    let mut order_queues = Vec::with_capacity(count);
    for worker in &layout.workers {
        let (orders, queue) = crossbeam_channel::unbounded();
        order_queues.push(queue);
        ports.push(Port {
            name: worker.name(),
            orders,
            wake: Arc::new(Wake::new()?),
            epoll: Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?),
            counters: Arc::new(Counters::default()),
        });
    }
    let mut rings = Rings::new(&ports);
    let receivers = (0..count).filter(|i| hosted(&layout.workers[*i].roles).3).collect();
    let (posts, mut desks) = send_queues(&layout, &ports);
    let main = layout.worker_of(Role::Main).unwrap_or(0);
    let send_buffers = cluster.clone();
    let own = setup.node;
    let send_buffer = Box::new(move |peer| send_buffers.tcp(own, peer).send_buffer_memory_bytes as usize);
    let directory =
        Arc::new(Directory::new(own, ports, receivers, posts, main, Some(event_sender), send_buffer));
    let placement = placement_of(&layout);
    let started = Instant::now();
    let mut workers = Vec::with_capacity(count);
    for (index, (plan, orders)) in layout.workers.iter().zip(order_queues).enumerate() {
        let (senders, receivers) = rings.take(index);
        let parts = Parts {
            plan: plan.clone(),
            index,
            setup: setup.clone(),
            directory: directory.clone(),
            placement: placement.clone(),
            senders,
            receivers,
            orders,
            desk: desks.remove(&index),
            mgm: mgm_sender.clone(),
            started,
        };
        workers.push(parts.spawn()?);
    }
    Ok(Node {
        directory,
        setup,
        layout,
        workers,
        helpers: Vec::new(),
        accepting,
        events,
        mgm_frames,
        ended: false,
    })
}

/// The queues of the workers that host send instances: for every instance the way to its worker, and by
/// worker the queue's other end. A single worker needs none.
fn send_queues(layout: &ThreadLayout, ports: &[Port]) -> (Vec<Arc<SendPost>>, BTreeMap<usize, SendDesk>) {
    let (mut posts, mut desks) = (Vec::new(), BTreeMap::new());
    if ports.len() < 2 {
        return (posts, desks);
    }
    let mut by_worker: BTreeMap<usize, Arc<SendPost>> = BTreeMap::new();
    for instance in 0..layout.send_count() {
        let Some(worker) = layout.worker_of(Role::Send(instance)) else { continue };
        let Some(port) = ports.get(worker) else { continue };
        let post = by_worker.entry(worker).or_insert_with(|| {
            let (post, desk) = send_queue(worker, port.wake.clone(), port.counters.clone());
            desks.insert(worker, desk);
            Arc::new(post)
        });
        posts.push(post.clone());
    }
    (posts, desks)
}

/// Which worker hosts which block instance.
fn placement_of(layout: &ThreadLayout) -> Placement {
    let mut placement = Placement::default();
    for (index, worker) in layout.workers.iter().enumerate() {
        let (ldms, tcs, main, _) = hosted(&worker.roles);
        for instance in ldms {
            placement.set(BlockNumber::Dblqh, instance, index);
        }
        for instance in tcs {
            placement.set(BlockNumber::Dbtc, instance, index);
        }
        if main {
            for block in MainRole::BLOCKS {
                placement.set(block, 0, index);
            }
        }
    }
    placement
}

/// The job queues between all pairs of workers, until they are given out.
struct Rings {
    /// By producer, then consumer.
    senders: Vec<Vec<Option<JobSender>>>,
    /// By consumer.
    receivers: Vec<Vec<JobReceiver>>,
}

impl Rings {
    fn new(ports: &[Port]) -> Self {
        let mut receivers: Vec<Vec<JobReceiver>> = ports.iter().map(|_| Vec::new()).collect();
        let mut senders = Vec::new();
        for from in 0..ports.len() {
            let mut row = Vec::new();
            for (to, port) in ports.iter().enumerate() {
                row.push((from != to).then(|| {
                    let (sender, receiver) = job_queue(port.wake.clone());
                    receivers[to].push(receiver);
                    sender
                }));
            }
            senders.push(row);
        }
        Self { senders, receivers }
    }

    fn take(&mut self, index: usize) -> (Vec<Option<JobSender>>, Vec<JobReceiver>) {
        (std::mem::take(&mut self.senders[index]), std::mem::take(&mut self.receivers[index]))
    }
}

/// Everything a worker's thread is given.
struct Parts {
    plan: WorkerLayout,
    index: usize,
    setup: NodeSetup,
    directory: Arc<Directory>,
    placement: Placement,
    senders: Vec<Option<JobSender>>,
    receivers: Vec<JobReceiver>,
    orders: crossbeam_channel::Receiver<Order>,
    desk: Option<SendDesk>,
    mgm: crossbeam_channel::Sender<Vec<u8>>,
    started: Instant,
}

impl Parts {
    /// Starts the thread; the blocks are made on it, so that their memory is local to its CPU.
    fn spawn(self) -> std::io::Result<JoinHandle<()>> {
        let name = self.plan.name();
        let context = tracing::Span::current();
        std::thread::Builder::new().name(name).spawn(move || {
            let _context = context.entered();
            let directory = self.directory.clone();
            for refused in [bind(&self.plan), priority::apply(&self.plan)].into_iter().filter_map(Result::err)
            {
                directory.log(Event { severity: Severity::Warning, text: refused });
            }
            match self.into_worker() {
                Ok(worker) => run_guarded(worker, &directory),
                Err(error) => directory.request_exit(format!("a worker cannot start: {error}"), true),
            }
        })
    }

    fn into_worker(self) -> std::io::Result<Worker> {
        let (ldms, tcs, main, _) = hosted(&self.plan.roles);
        let mut out = Outbox::new(self.setup.node);
        let blocks = BlockSet::new(&self.setup, &ldms, &tcs, main, &mut out);
        let (wake, epoll) = match self.directory.workers.get(self.index) {
            Some(port) => (port.wake.clone(), port.epoll.clone()),
            None => return Err(std::io::ErrorKind::NotFound.into()),
        };
        let core =
            Core::new(self.index, blocks, out, self.directory, self.placement, self.senders, Some(self.mgm));
        let inputs = Inputs { rings: self.receivers, orders: self.orders, desk: self.desk, wake, epoll };
        Worker::new(core, inputs, &self.plan, self.started)
    }
}

/// Starts a thread that is no worker. A bug of ours in it ends the node, as it does on a worker: a node that
/// no longer accepts or connects would be half alive.
fn helper(
    name: String,
    directory: Arc<Directory>,
    work: impl FnOnce(&Arc<Directory>) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let context = tracing::Span::current();
    let thread = std::thread::Builder::new().name(name.clone()).stack_size(256 << 10);
    thread.spawn(move || {
        let _context = context.entered();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&directory))).is_err() {
            directory.request_exit(format!("thread {name} failed on an internal error, see the log"), true);
        }
    })
}

/// Binds the calling thread to its CPUs; one that cannot be bound runs anywhere, and the line to log says so.
fn bind(plan: &WorkerLayout) -> Result<(), String> {
    let bound = match (plan.cpu, plan.cpuset.as_slice()) {
        (Some(id), _) => core_affinity::set_for_current(core_affinity::CoreId { id }),
        (None, []) => true,
        (None, cpus) => {
            let mut set = rustix::thread::CpuSet::new();
            for cpu in cpus.iter().filter(|c| **c < rustix::thread::CpuSet::MAX_CPU) {
                set.set(*cpu);
            }
            rustix::thread::sched_setaffinity(None, &set).is_ok()
        }
    };
    if bound {
        return Ok(());
    }
    let cpus: Vec<usize> = plan.cpu.into_iter().chain(plan.cpuset.iter().copied()).collect();
    Err(format!("worker {} cannot be bound to cpu {cpus:?}; it runs anywhere", plan.name()))
}

impl Node {
    fn start_helpers(
        &mut self,
        cluster: &ClusterConfig,
        own: &DataNodeConfig,
        identity: Identity,
        acceptor: Acceptor,
        in_process: bool,
    ) -> std::io::Result<()> {
        let peers: Peers = setup::peers(cluster, own.node_id).collect();
        let directory = self.directory.clone();
        self.helpers.push(helper("accept".to_owned(), directory, move |directory| {
            connect::accept(acceptor, directory, &peers);
        })?);
        for peer in cluster.data_nodes.iter().filter(|peer| peer.node_id < own.node_id) {
            let target = Target {
                node: peer.node_id,
                address: peer.address(),
                hello: hello(
                    identity.cluster,
                    own.node_id,
                    peer.node_id,
                    PeerRole::DataNode,
                    0,
                    identity.incarnation,
                ),
                socket: setup::socket_options(cluster.tcp(own.node_id, peer.node_id)),
                in_process,
            };
            let name = format!("connect{}", peer.node_id);
            self.helpers.push(helper(name, self.directory.clone(), move |directory| {
                connect::keep_connected(&target, directory);
            })?);
        }
        Ok(())
    }

    /// Its id.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.setup.node
    }

    #[cfg(test)]
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Its workers.
    #[must_use]
    pub fn layout(&self) -> &ThreadLayout {
        &self.layout
    }

    /// What its blocks were told.
    #[must_use]
    pub fn setup(&self) -> &NodeSetup {
        &self.setup
    }

    /// What it says about itself; `None` in its first moments.
    #[must_use]
    pub fn status(&self) -> Option<NodeStatus> {
        self.directory.status()
    }

    /// Its row memory.
    #[must_use]
    pub fn memory(&self) -> MemoryUsage {
        let memory = &self.setup.data_memory;
        MemoryUsage {
            page_bytes: u32::try_from(kernel::ldm::page::PAGE_BYTES).unwrap_or(0),
            data_pages_used: memory.used(),
            data_pages_total: memory.total(),
            // Indexes live in the same pages.
            index_pages_used: 0,
            index_pages_total: 0,
        }
    }

    /// Data nodes it cannot reach, with address and reason.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        self.directory.troubles()
    }

    /// Events for the cluster log.
    #[must_use]
    pub fn events(&self) -> &crossbeam_channel::Receiver<Event> {
        &self.events
    }

    /// Frames addressed to the management thread: answers to [`Self::order_stop`].
    #[must_use]
    pub fn mgm_frames(&self) -> &crossbeam_channel::Receiver<Vec<u8>> {
        &self.mgm_frames
    }

    /// Figures of all workers.
    #[must_use]
    pub fn figures(&self) -> Vec<WorkerFigures> {
        self.directory.workers.iter().map(figures).collect()
    }

    /// Orders the node or its cluster to stop, the planned way. The answer comes through
    /// [`Self::mgm_frames`], the end through [`Self::wait`].
    pub fn order_stop(&self, request: u32, scope: StopScope, force: bool) {
        let signal = ControlSignal::StopReq { request, scope, force };
        self.directory.order_frame(BlockNumber::Mgm, BlockNumber::Cmvmi, &signal);
    }

    /// Asks for the node's end without ado.
    pub fn request_exit(&self, reason: &str, error: bool) {
        self.directory.request_exit(reason, error);
    }

    /// Waits until the node is asked to end (by itself, an operator, [`Self::request_exit`]), at most `time`.
    #[must_use]
    pub fn wait(&self, time: Option<Duration>) -> Option<Exit> {
        self.directory.wait_for_exit(time)
    }

    /// Ends the node; returns when its last thread has ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.directory.end();
        self.accepting.notify();
        for port in &self.directory.workers {
            port.order(Order::Stop);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        let links = self.directory.links();
        let deadline = Instant::now() + FAREWELL;
        for link in &links {
            link.drain_for(deadline.saturating_duration_since(Instant::now()));
            link.close("this node ends");
        }
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

fn figures(port: &Port) -> WorkerFigures {
    let c = &port.counters;
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    WorkerFigures {
        name: port.name.clone(),
        turns: get(&c.turns),
        sleeps: get(&c.sleeps),
        wakes: port.wake.times_woken(),
        signals: get(&c.signals),
        received_bytes: get(&c.received_bytes),
        batches: get(&c.batches),
        shipped_bytes: get(&c.shipped_bytes),
        sent_bytes: get(&c.sent_bytes),
        spins: [get(&c.spins), get(&c.spins_paid)],
        stalls: get(&c.stalls),
        cpu: [&c.cpu_50ms, &c.cpu_1s, &c.cpu_20s].map(|window| window.load(Ordering::Relaxed)),
    }
}
