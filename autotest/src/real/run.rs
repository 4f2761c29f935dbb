//! Run: a workload against real processes, from beginning to end, on one thread.
//!
//! ```text
//!   every millisecond: look at the time ─► programs that can go on ─► their commands ─► processes that ended
//! ```
//!
//! The programs run on the simulator's own executor; between two looks the runtime serves the connections.
//! A data node that ends, for whatever reason, is started again after a while, as its operator would do.

use super::Arguments;
use super::nodes::Nodes;
use crate::sim::agenda::{MILLI, Nanos, SECOND};
use crate::sim::env::{Command, Env, OBSERVER, Shared};
use crate::sim::faults::{self, Script};
use crate::sim::load::Running;
use crate::sim::plan::{FaultKind, FaultPlan, Plan};
use crate::sim::rng::Rng;
use crate::sim::tasks::Tasks;
use ndbapi::core::NodeStatus;
use ndbapi::{ClusterConnection, ConnectOptions, NdbError};
use rustix::process::Signal;
use signals::NodeId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long the cluster may take to start, to work again once everything is healed, and to be looked at.
const LIMIT: Nanos = 60 * SECOND;
/// Where the clock of a run begins.
const BEGIN: Nanos = SECOND;

struct Connecting {
    node: NodeId,
    /// Its programs are to be started again.
    again: bool,
    task: JoinHandle<Result<ClusterConnection, NdbError>>,
}

struct Stage {
    begun: Instant,
    connect: String,
    nodes: Option<Nodes>,
    shared: Rc<Shared>,
    tasks: Tasks,
    rng: Rng,
    sleepers: BTreeMap<(Nanos, u64), Waker>,
    sleeper: u64,
    connecting: Vec<Connecting>,
    /// Data nodes to start, and when.
    starting: Vec<(Nanos, NodeId)>,
    violations: Vec<String>,
}

/// Runs a plan.
pub(super) async fn run(plan: &Plan, arguments: &Arguments) -> Result<(), String> {
    let mut rng = Rng::new(arguments.seed);
    let clients = plan.cluster.api_nodes.unwrap_or(2).max(1);
    let apis: Vec<NodeId> = (0..clients).map(|n| NodeId(200 + n)).collect();
    let nodes = match &arguments.connect_string {
        Some(_) => None,
        None => {
            let count = arguments.start.or(plan.cluster.data_nodes).unwrap_or(2);
            let replicas = plan.cluster.replicas.unwrap_or(2).min(count);
            // The observer is a client as well.
            Some(Nodes::start(count, replicas, clients + 1, &plan.cluster.parameters)?)
        }
    };
    let connect = match (&nodes, &arguments.connect_string) {
        (Some(nodes), _) => nodes.connect_string(),
        (None, text) => text.clone().unwrap_or_default(),
    };
    // Somebody else's data nodes are not touched; one name stands for all of them.
    let data = nodes.as_ref().map_or_else(|| vec![NodeId(1)], Nodes::data_nodes);
    let tasks = Tasks::new();
    let shared = Rc::new(Shared::with_nodes(BEGIN, tasks.requests.clone(), data, apis.clone()));
    let mut stage = Stage {
        begun: Instant::now(),
        connect,
        nodes,
        shared,
        tasks,
        rng: rng.split("tasks"),
        sleepers: BTreeMap::new(),
        sleeper: 0,
        connecting: Vec::new(),
        starting: Vec::new(),
        violations: Vec::new(),
    };
    for node in [OBSERVER].into_iter().chain(apis) {
        stage.connect(node, false);
    }
    let result = stage.play(plan, &mut rng).await;
    if result.is_err()
        && let Some(nodes) = &stage.nodes
    {
        eprint!("{}", nodes.logs());
    }
    result
}

impl Stage {
    async fn play(&mut self, plan: &Plan, rng: &mut Rng) -> Result<(), String> {
        if !self.until(self.now() + LIMIT, Self::all_started).await {
            return Err(self.failed("the cluster does not start"));
        }
        let env = Env::new(self.shared.clone());
        let until = self.now() + plan.seconds * SECOND;
        let mut load_rng = rng.split("loads");
        let loads: Vec<Rc<Running>> =
            plan.load.iter().map(|load| Running::start(&env, load, &mut load_rng, until)).collect();
        let script = Rc::new(Script::default());
        let mut fault_rng = rng.split("faults");
        for fault in &plan.fault {
            let own = fault_rng.split("kind");
            if self.is_available(fault) && fault_rng.chance(fault.in_thousandths) {
                let made = faults::make(env.clone(), fault.clone(), own, script.clone());
                self.tasks.spawn(None, Box::pin(made));
            }
        }
        self.until(until, |_| false).await;
        script.over.set(true);
        self.heal();
        if !self.until(self.now() + LIMIT, Self::all_started).await {
            return Err(self.failed("the cluster does not start again"));
        }
        if !self.until(self.now() + LIMIT, |_| loads.iter().all(|load| load.finished.get())).await {
            return Err(self.failed("clients do not come to rest"));
        }
        let concluded = Rc::new(Cell::new(0));
        for load in &loads {
            let (load, env, concluded) = (load.clone(), env.clone(), concluded.clone());
            let look = async move {
                load.conclude(&env).await;
                concluded.set(concluded.get() + 1);
            };
            self.tasks.spawn(None, Box::pin(look));
        }
        if !self.until(self.now() + LIMIT, |_| concluded.get() == loads.len()).await {
            return Err(self.failed("the final look does not end"));
        }
        for line in script.done.take() {
            println!("trouble: {line}");
        }
        let acts: u64 = loads.iter().map(|load| load.acts.get()).sum();
        let resets: u64 = loads.iter().map(|load| load.resets.get()).sum();
        let seconds = (self.now() - BEGIN) as f64 / SECOND as f64;
        println!("{}: {acts} transactions in {seconds:.1} s, the database lost {resets} times", plan.name);
        if acts == 0 { Err("no client has done anything".into()) } else { Ok(()) }
    }

    fn failed(&self, text: &str) -> String {
        self.violations.first().cloned().unwrap_or_else(|| text.to_owned())
    }

    fn now(&self) -> Nanos {
        BEGIN + self.begun.elapsed().as_nanos() as Nanos
    }

    /// Whether a kind of trouble can be made here; says so if not.
    fn is_available(&self, fault: &FaultPlan) -> bool {
        let available = match fault.kind {
            FaultKind::KillClient => true,
            FaultKind::Kill | FaultKind::KillAll | FaultKind::Freeze | FaultKind::Stop => {
                self.nodes.is_some()
            }
            FaultKind::KillAtSignal
            | FaultKind::PowerOff
            | FaultKind::Slow
            | FaultKind::OneWay
            | FaultKind::TwoWay
            | FaultKind::CutOff
            | FaultKind::SlowPath
            | FaultKind::Reset
            | FaultKind::ClockJump => false,
        };
        if !available {
            println!("left out: {:?} cannot be done to these processes", fault.kind);
        }
        available
    }

    /// Lets everything go on until a moment, or until `enough` says so. Returns whether it did.
    async fn until(&mut self, limit: Nanos, enough: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.step();
            if !self.violations.is_empty() {
                return false;
            }
            if enough(self) {
                return true;
            }
            if self.now() >= limit {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn step(&mut self) {
        let now = self.now();
        self.shared.set_now(now);
        while let Some(first) = self.sleepers.first_entry().filter(|entry| entry.key().0 <= now) {
            first.remove().wake();
        }
        self.finish_connecting();
        self.tasks.run(&mut self.rng);
        let sleepers = std::mem::take(&mut self.tasks.requests.borrow_mut().sleepers);
        for (at, waker) in sleepers {
            self.sleeper += 1;
            self.sleepers.insert((at, self.sleeper), waker);
        }
        for command in self.shared.take_commands() {
            self.command(&command);
        }
        self.violations.extend(self.shared.take_violations());
        self.restart();
    }

    fn connect(&mut self, node: NodeId, again: bool) {
        let options = ConnectOptions::new(self.connect.clone()).wait(Duration::from_secs(3));
        let connect = async move {
            loop {
                // The management server may not be up yet, or the old connection's node id not free.
                match ClusterConnection::connect_with(options.clone()).await {
                    Err(error) if error.retryable() => tokio::time::sleep(Duration::from_millis(100)).await,
                    other => return other,
                }
            }
        };
        self.connecting.push(Connecting { node, again, task: tokio::spawn(connect) });
    }

    fn finish_connecting(&mut self) {
        let (ready, rest) =
            std::mem::take(&mut self.connecting).into_iter().partition(|c| c.task.is_finished());
        self.connecting = rest;
        let ready: Vec<Connecting> = ready;
        for Connecting { node, again, task } in ready {
            // It is finished, so this does not wait.
            match futures_now(task) {
                Some(Ok(connection)) => {
                    self.shared.set_connection(node, Some(connection));
                    if again {
                        self.shared.api_restarted(node);
                    }
                }
                Some(Err(error)) => self.violations.push(format!("client {node} cannot connect: {error}")),
                None => self.violations.push(format!("client {node} cannot connect: it panicked")),
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Kill { node, .. } => self.signal(*node, Signal::KILL),
            Command::Freeze { node, frozen: true } => self.signal(*node, Signal::STOP),
            Command::Freeze { node, frozen: false } => self.signal(*node, Signal::CONT),
            Command::StopCluster => {
                for node in self.shared.data_node_list() {
                    self.signal(node, Signal::TERM);
                }
            }
            Command::KillApi { node } => {
                self.tasks.end_of(*node);
                self.shared.set_connection(*node, None);
                self.connect(*node, true);
            }
            Command::Start { node } => self.starting.push((self.now(), *node)),
            Command::Heal => self.heal(),
            // Faults that make these are left out of the run.
            Command::KillAt { .. }
            | Command::PowerOff { .. }
            | Command::Slow { .. }
            | Command::Block { .. }
            | Command::SlowPath { .. }
            | Command::Reset { .. }
            | Command::ClockJump { .. } => {}
        }
    }

    fn signal(&self, node: NodeId, signal: Signal) {
        if let Some(nodes) = &self.nodes {
            nodes.signal(node, signal);
        }
    }

    fn heal(&self) {
        for node in self.shared.data_node_list() {
            self.signal(node, Signal::CONT);
        }
    }

    /// Starts data nodes that have ended again, after a while.
    fn restart(&mut self) {
        let now = self.now();
        let Some(nodes) = &mut self.nodes else { return };
        for node in nodes.ended() {
            self.starting.push((now + self.rng.log_range(10..=1000) * MILLI, node));
        }
        let (due, rest) = std::mem::take(&mut self.starting).into_iter().partition(|(at, _)| *at <= now);
        self.starting = rest;
        let due: Vec<(Nanos, NodeId)> = due;
        for (_, node) in due {
            if let Err(text) = nodes.start_data(node) {
                self.violations.push(text);
            }
        }
    }

    /// Whether the observer and every client is linked to every data node, and those serve.
    fn all_started(&self) -> bool {
        let env = Env::new(self.shared.clone());
        let serves = |node: NodeId| {
            let states = env.connection(node).map(|connection| connection.node_states()).unwrap_or_default();
            !states.is_empty() && states.iter().all(|(_, status)| *status == NodeStatus::Started)
        };
        self.connecting.is_empty()
            && self.starting.is_empty()
            && serves(OBSERVER)
            && env.api_nodes().iter().all(|n| serves(*n))
    }
}

/// The result of a task that is finished.
fn futures_now<T>(mut task: JoinHandle<T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(Waker::noop());
    match std::pin::Pin::new(&mut task).poll(&mut context) {
        std::task::Poll::Ready(Ok(value)) => Some(value),
        std::task::Poll::Ready(Err(_)) | std::task::Poll::Pending => None,
    }
}
