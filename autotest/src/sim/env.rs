//! Env: what the programs of a run use beside the native API - time, sleep, faults, other programs.
//!
//! The same programs run against a simulated cluster and against real processes; this is where the two
//! differ. Connections are the native API's own.

use super::agenda::Nanos;
use super::tasks::{Program, Requests};
use config::ClusterConfig;
use ndbapi::ClusterConnection;
use signals::NodeId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What a fault script may do to a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// End a data node's process; its connections close. Started again after a while unless it stays down.
    Kill { node: NodeId, stay_down: bool },
    /// The same, after so many more signals.
    KillAt { node: NodeId, signals: u64 },
    /// The machine is off: nobody is told.
    PowerOff { node: NodeId, stay_down: bool },
    /// Start a data node that stayed down.
    Start { node: NodeId },
    /// Stop a process as SIGSTOP does, or let it go on.
    Freeze { node: NodeId, frozen: bool },
    /// A data node's threads get less of the CPU.
    Slow { node: NodeId, factor: u64 },
    /// Nothing passes from one node to another, or passes again.
    Block { from: NodeId, to: NodeId, blocked: bool },
    /// Everything between two nodes takes longer.
    SlowPath { from: NodeId, to: NodeId, factor: u64 },
    /// The connection between two nodes breaks.
    Reset { a: NodeId, b: NodeId },
    /// A machine's wall clock is set, by nanoseconds.
    ClockJump { node: NodeId, by: i64 },
    /// A client's process ends and starts again.
    KillApi { node: NodeId },
    /// A planned stop of all data nodes.
    StopCluster,
    /// Everything is as it should be again.
    Heal,
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kill { node, stay_down: false } => write!(f, "kill node {node}"),
            Self::Kill { node, stay_down: true } => write!(f, "kill node {node} for good"),
            Self::KillAt { node, signals } => write!(f, "kill node {node} after {signals} signals"),
            Self::PowerOff { node, .. } => write!(f, "switch the machine of node {node} off"),
            Self::Start { node } => write!(f, "start node {node}"),
            Self::Freeze { node, frozen: true } => write!(f, "freeze node {node}"),
            Self::Freeze { node, frozen: false } => write!(f, "let node {node} go on"),
            Self::Slow { node, factor } => write!(f, "node {node} is {factor} times slower"),
            Self::Block { from, to, blocked: true } => write!(f, "nothing passes from {from} to {to}"),
            Self::Block { from, to, blocked: false } => write!(f, "the path from {from} to {to} is open"),
            Self::SlowPath { from, to, factor } => {
                write!(f, "the path from {from} to {to} is {factor} times slower")
            }
            Self::Reset { a, b } => write!(f, "reset the connection of {a} and {b}"),
            Self::ClockJump { node, by } => {
                write!(f, "set the clock of node {node} by {} ms", by / 1_000_000)
            }
            Self::KillApi { node } => write!(f, "kill client {node}"),
            Self::StopCluster => write!(f, "stop the cluster in order"),
            Self::Heal => write!(f, "heal everything"),
        }
    }
}

/// The client process that conducts and looks; no fault hits it.
pub(crate) const OBSERVER: NodeId = NodeId(198);

type Factory = Rc<dyn Fn(Env) -> Program>;

/// What world and programs share.
pub(crate) struct Shared {
    now: Cell<Nanos>,
    requests: Rc<RefCell<Requests>>,
    commands: RefCell<Vec<Command>>,
    violations: RefCell<Vec<String>>,
    /// Somebody reads the trace.
    pub(crate) verbose: Cell<bool>,
    remarks: RefCell<Vec<String>>,
    connections: RefCell<BTreeMap<NodeId, ClusterConnection>>,
    /// Programs that start with their process.
    residents: RefCell<Vec<(NodeId, Factory)>>,
    data_nodes: Vec<NodeId>,
    api_nodes: Vec<NodeId>,
}

impl Shared {
    pub(crate) fn new(now: Nanos, requests: Rc<RefCell<Requests>>, config: &ClusterConfig) -> Self {
        let data_nodes = config.data_nodes.iter().map(|n| n.node_id).collect();
        let api_nodes = config.api_nodes.iter().map(|n| n.node_id).filter(|n| *n != OBSERVER).collect();
        Self::with_nodes(now, requests, data_nodes, api_nodes)
    }

    /// For these data nodes and client processes, beside the observer.
    pub(crate) fn with_nodes(
        now: Nanos,
        requests: Rc<RefCell<Requests>>,
        data_nodes: Vec<NodeId>,
        api_nodes: Vec<NodeId>,
    ) -> Self {
        Self {
            now: Cell::new(now),
            requests,
            commands: RefCell::default(),
            violations: RefCell::default(),
            verbose: Cell::new(false),
            remarks: RefCell::default(),
            connections: RefCell::default(),
            residents: RefCell::default(),
            data_nodes,
            api_nodes,
        }
    }

    pub(crate) fn data_node_list(&self) -> Vec<NodeId> {
        self.data_nodes.clone()
    }

    pub(crate) fn set_now(&self, now: Nanos) {
        self.now.set(now);
    }

    pub(crate) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.commands.borrow_mut())
    }

    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.violations.borrow_mut())
    }

    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.remarks.borrow_mut())
    }

    pub(crate) fn set_connection(&self, node: NodeId, connection: Option<ClusterConnection>) {
        let mut connections = self.connections.borrow_mut();
        match connection {
            Some(connection) => connections.insert(node, connection),
            None => connections.remove(&node),
        };
    }

    /// A client's process has started again: so do its programs.
    pub(crate) fn api_restarted(self: &Rc<Self>, node: NodeId) {
        for (owner, factory) in self.residents.borrow().iter().filter(|(owner, _)| *owner == node) {
            let program = factory(Env::new(self.clone()));
            self.requests.borrow_mut().spawned.push((Some(*owner), program));
        }
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Env {
    shared: Rc<Shared>,
}

impl Env {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        Self { shared }
    }

    /// The time, in nanoseconds.
    pub(crate) fn now(&self) -> Nanos {
        self.shared.now.get()
    }

    /// Waits.
    pub(crate) fn sleep(&self, time: Nanos) -> impl Future<Output = ()> + use<> {
        Sleep { shared: self.shared.clone(), until: self.now() + time, asked: false }
    }

    /// Starts a program that lives as long as process `owner`, once.
    pub(crate) fn spawn(&self, owner: Option<NodeId>, program: Program) {
        self.shared.requests.borrow_mut().spawned.push((owner, program));
    }

    /// Starts a program of a client's process, now and whenever the process starts again.
    pub(crate) fn settle(&self, owner: NodeId, factory: impl Fn(Env) -> Program + 'static) {
        self.spawn(Some(owner), factory(self.clone()));
        self.shared.residents.borrow_mut().push((owner, Rc::new(factory)));
    }

    /// A client process's connection.
    pub(crate) fn connection(&self, node: NodeId) -> Option<ClusterConnection> {
        self.shared.connections.borrow().get(&node).cloned()
    }

    /// Does something to the cluster.
    pub(crate) fn command(&self, command: Command) {
        self.shared.commands.borrow_mut().push(command);
    }

    /// Puts a line into the trace, if somebody reads it.
    pub(crate) fn remark(&self, text: impl FnOnce() -> String) {
        if self.shared.verbose.get() {
            self.shared.remarks.borrow_mut().push(text());
        }
    }

    /// Reports something that must never happen.
    pub(crate) fn violation(&self, text: impl Into<String>) {
        self.shared.violations.borrow_mut().push(text.into());
    }

    pub(crate) fn data_nodes(&self) -> &[NodeId] {
        &self.shared.data_nodes
    }

    /// Client processes that faults may hit.
    pub(crate) fn api_nodes(&self) -> &[NodeId] {
        &self.shared.api_nodes
    }
}

struct Sleep {
    shared: Rc<Shared>,
    until: Nanos,
    asked: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.shared.now.get() >= self.until {
            return Poll::Ready(());
        }
        if !self.asked {
            self.asked = true;
            self.shared.requests.borrow_mut().sleepers.push((self.until, cx.waker().clone()));
        }
        Poll::Pending
    }
}
