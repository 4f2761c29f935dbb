//! World: a whole cluster on one thread and on virtual time, from one seed.
//!
//! ```text
//!   agenda ── next event ──► a connection delivers, a worker's turn, a tick, a sleeper wakes, a start ...
//!                               │
//!                   processes and clients change ──► wishes: send, close, exit ──► net, agenda
//!                               │
//!                   tasks that were woken run (clients' programs, the fault script) ──► commands
//! ```
//!
//! Everything that is left to chance is drawn from the seed, and nothing else decides anything: no clock, no
//! address, no hash order. So the same seed gives the same run, and [`Trace`] proves it.
//!
//! The world plays the operator as well: data node processes that end are started again after a while, unless
//! they are to stay down.

use super::agenda::{Agenda, MICRO, MILLI, Nanos, SECOND};
use super::api::{self, Api};
use super::env::{Command, Env, Shared};
use super::net::{Net, Parcel, Weather};
use super::process::{Process, Wish};
use super::rng::Rng;
use super::shape::Shape;
use super::tasks::Tasks;
use super::trace::Trace;
use config::ClusterConfig;
use kernel::Now;
use kernel::mainrole::StartPhase;
use signals::BlockNumber;
use signals::NodeId;
use signals::control::{ControlSignal, StopScope};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;
use transporter::PeerRole;

/// Between two ticks of a worker, and of a client.
const TICK: Nanos = 10 * MILLI;
const API_TICK: Nanos = 50 * MILLI;
/// A data node tries to reach another again after this.
const RETRY: Nanos = 100 * MILLI;
const BACKOFF_FIRST: Nanos = 50 * MILLI;
const BACKOFF_MAX: Nanos = 2 * SECOND;
/// When a run begins; a clock that starts at zero hides mistakes.
const BEGIN: Nanos = SECOND;

enum Event {
    /// Something arrives on a connection.
    Arrive {
        from: NodeId,
        to: NodeId,
        connection: u64,
    },
    /// A worker works.
    Turn {
        node: NodeId,
        boot: u64,
        worker: usize,
    },
    Tick {
        node: NodeId,
        boot: u64,
        worker: usize,
    },
    ApiTick {
        node: NodeId,
        boot: u64,
    },
    /// A process tries to reach a data node.
    Connect {
        from: NodeId,
        to: NodeId,
        boot: u64,
        backoff: Nanos,
    },
    Wake(Waker),
    Start(NodeId),
    /// A look at who hears whom.
    Watch,
}

/// A machine of a data node: its process, if it runs, and what outlives it.
struct Machine {
    process: Option<Box<Process>>,
    boot: u64,
    booted_at: Nanos,
    /// Parts per million its clock is fast or slow.
    drift_ppm: i64,
    /// What its wall clock is off by; only incarnations come from it.
    wall_offset: i64,
    /// Not started again by itself.
    stay_down: bool,
    /// The machine is on, whether or not the process runs.
    powered: bool,
    /// The process ends at this many signals, as by a crash.
    crash_at: Option<u64>,
}

/// See the module.
pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) config: Rc<ClusterConfig>,
    pub(crate) shape: Shape,
    agenda: Agenda<Event>,
    machines: BTreeMap<NodeId, Machine>,
    apis: BTreeMap<NodeId, Api>,
    net: Net,
    tasks: Tasks,
    pub(crate) trace: Trace,
    rng: Rng,
    task_rng: Rng,
    shared: Rc<Shared>,
    boots: u64,
    /// Data nodes that another one cannot hear, or has no connection to, and since when.
    unheard: BTreeMap<(NodeId, NodeId), Nanos>,
    /// Log lines of the nodes, the last of them.
    log: Vec<String>,
    /// Something that must not happen has.
    pub(crate) violations: Vec<String>,
}

impl World {
    /// A cluster whose processes are about to start.
    pub(crate) fn new(shape: Shape, seed: u64, trace: Trace) -> Result<Self, String> {
        let mut rng = Rng::new(seed).split("world");
        let config = Rc::new(shape.config()?);
        let weather = Weather::draw(&mut rng);
        let net = Net::new(weather, rng.split("net"));
        let tasks = Tasks::new();
        let shared = Rc::new(Shared::new(BEGIN, tasks.requests.clone(), &config));
        shared.verbose.set(trace.is_read());
        let task_rng = rng.split("tasks");
        let mut world = Self {
            now: BEGIN,
            config: config.clone(),
            shape,
            agenda: Agenda::new(),
            machines: BTreeMap::new(),
            apis: BTreeMap::new(),
            net,
            tasks,
            trace,
            rng,
            task_rng,
            shared,
            boots: 0,
            unheard: BTreeMap::new(),
            log: Vec::new(),
            violations: Vec::new(),
        };
        for node in &config.data_nodes {
            let drift_ppm = world.rng.range(0..=400) as i64 - 200;
            let wall_offset = world.rng.range(0..=20 * SECOND) as i64 - (10 * SECOND) as i64;
            let machine = Machine {
                process: None,
                boot: 0,
                booted_at: 0,
                drift_ppm,
                wall_offset,
                stay_down: false,
                powered: true,
                crash_at: None,
            };
            world.machines.insert(node.node_id, machine);
            let at = BEGIN + world.rng.below(300 * MILLI);
            world.agenda.put(at, Event::Start(node.node_id));
        }
        world.agenda.put(BEGIN, Event::Watch);
        for node in &config.api_nodes {
            world.apis.insert(node.node_id, Api::new(node.node_id));
            world.start_api(node.node_id);
        }
        Ok(world)
    }

    /// What programs use.
    pub(crate) fn env(&self) -> Env {
        Env::new(self.shared.clone())
    }

    /// Starts a program that belongs to no process.
    pub(crate) fn spawn(&mut self, program: super::tasks::Program) {
        self.tasks.spawn(None, program);
        self.run_tasks();
    }

    /// Lets everything happen until `until`, or until `enough` says so after an event.
    pub(crate) fn run(&mut self, until: Nanos, mut enough: impl FnMut(&mut Self) -> bool) -> bool {
        while self.violations.is_empty() {
            if enough(self) {
                return true;
            }
            let Some((at, event)) = self.agenda.take(until) else {
                self.set_now(until);
                return false;
            };
            self.set_now(at.max(self.now));
            self.happen(event);
            self.run_tasks();
        }
        false
    }

    fn set_now(&mut self, now: Nanos) {
        self.now = now;
        self.trace.now = now;
        self.shared.set_now(now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { from, to, connection } => self.arrive(from, to, connection),
            Event::Turn { node, boot, worker } => self.turn(node, boot, worker),
            Event::Tick { node, boot, worker } => self.tick(node, boot, worker),
            Event::ApiTick { node, boot } => self.api_tick(node, boot),
            Event::Connect { from, to, boot, backoff } => self.connect(from, to, boot, backoff),
            Event::Wake(waker) => waker.wake(),
            Event::Start(node) => self.start(node),
            Event::Watch => self.watch(),
        }
    }

    // --- tasks and their commands

    fn run_tasks(&mut self) {
        loop {
            let ran = self.tasks.run(&mut self.task_rng);
            let sleepers = std::mem::take(&mut self.tasks.requests.borrow_mut().sleepers);
            for (at, waker) in sleepers {
                self.agenda.put(at.max(self.now), Event::Wake(waker));
            }
            let commands = self.shared.take_commands();
            let idle = !ran && commands.is_empty();
            for command in commands {
                self.trace.note(|| format!("fault: {command}"));
                self.command(command);
            }
            for remark in self.shared.take_remarks() {
                self.trace.remark(&remark);
            }
            self.violations.extend(self.shared.take_violations());
            if idle {
                break;
            }
        }
        self.flush_apis();
    }

    // Commands are done with once carried out.
    #[allow(clippy::needless_pass_by_value)]
    fn command(&mut self, command: Command) {
        match command {
            Command::Kill { node, stay_down } => {
                self.crash(node, true);
                self.restart_later(node, stay_down);
            }
            Command::KillAt { node, signals } => {
                if let Some(machine) = self.machines.get_mut(&node)
                    && let Some(process) = &machine.process
                {
                    machine.crash_at = Some(process.handled + signals);
                }
            }
            Command::PowerOff { node, stay_down } => {
                self.crash(node, false);
                self.restart_later(node, stay_down);
            }
            Command::Start { node } => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.stay_down = false;
                    self.agenda.put(self.now, Event::Start(node));
                }
            }
            Command::Freeze { node, frozen } => self.freeze(node, frozen),
            Command::Slow { node, factor } => {
                if let Some(process) = self.machines.get_mut(&node).and_then(|m| m.process.as_mut()) {
                    process.slowness = factor.max(1);
                }
            }
            Command::Block { from, to, blocked } => {
                let due = self.net.block(self.now, from, to, blocked);
                for (at, connection) in due {
                    self.agenda.put(at, Event::Arrive { from, to, connection });
                }
            }
            Command::SlowPath { from, to, factor } => self.net.slow(from, to, factor),
            Command::Reset { a, b } => self.reset(a, b),
            Command::ClockJump { node, by } => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.wall_offset += by;
                }
            }
            Command::KillApi { node } => self.crash_api(node),
            Command::StopCluster => self.order_stop(StopScope::Cluster),
            Command::Heal => self.heal(),
        }
    }

    /// The weather is fine again and everything runs.
    fn heal(&mut self) {
        for (from, to) in self.net.blocked() {
            self.command(Command::Block { from, to, blocked: false });
        }
        self.net.clear_slow();
        for node in self.machines.keys().copied().collect::<Vec<_>>() {
            self.freeze(node, false);
            self.command(Command::Slow { node, factor: 1 });
            if let Some(machine) = self.machines.get_mut(&node) {
                machine.crash_at = None;
                if machine.stay_down {
                    self.command(Command::Start { node });
                }
            }
        }
    }

    fn order_stop(&mut self, scope: StopScope) {
        let signal = ControlSignal::StopReq { request: 1, scope, force: false };
        for node in self.machines.keys().copied().collect::<Vec<_>>() {
            if let Some(process) = self.process_mut(node) {
                process.order(BlockNumber::Mgm, BlockNumber::Cmvmi, &signal);
                self.plan(node);
                break;
            }
        }
    }

    fn freeze(&mut self, node: NodeId, frozen: bool) {
        if let Some(process) = self.process_mut(node) {
            process.frozen = frozen;
            if !frozen {
                self.plan(node);
            }
        }
    }

    fn reset(&mut self, a: NodeId, b: NodeId) {
        let Some(connection) = self.connection_between(a, b) else { return };
        for (from, to) in [(a, b), (b, a)] {
            self.net.truncate(self.now, from, to, connection);
            let parcel = Parcel::End("connection reset".into());
            self.post(from, to, connection, parcel);
        }
    }

    // --- data nodes

    fn process_mut(&mut self, node: NodeId) -> Option<&mut Process> {
        self.machines.get_mut(&node)?.process.as_deref_mut()
    }

    /// A running process, for checks.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (NodeId, &Process)> {
        self.machines.iter().filter_map(|(node, m)| Some((*node, m.process.as_deref()?)))
    }

    fn start(&mut self, node: NodeId) {
        let Some(machine) = self.machines.get_mut(&node) else { return };
        if machine.process.is_some() || machine.stay_down {
            return;
        }
        self.boots += 1;
        let boot = self.boots;
        let wall = 1_800_000_000 * SECOND as i64 + self.now as i64 + machine.wall_offset;
        let (layout, setup) = match self.shape.node(&self.config, node, wall as u64) {
            Ok(made) => made,
            Err(error) => return self.violations.push(error),
        };
        let process = Process::new(setup, &layout);
        machine.boot = boot;
        machine.booted_at = self.now;
        machine.powered = true;
        let workers = process.workers();
        machine.process = Some(Box::new(process));
        self.trace.note(|| format!("{node} starts"));
        for worker in 0..workers {
            let at = self.now + self.rng.below(TICK);
            self.agenda.put(at, Event::Tick { node, boot, worker });
        }
        let lower: Vec<NodeId> = self.machines.keys().copied().filter(|other| *other < node).collect();
        for to in lower {
            let at = self.now + self.rng.below(20 * MILLI);
            self.agenda.put(at, Event::Connect { from: node, to, boot, backoff: RETRY });
        }
    }

    fn node_now(machine: &Machine, now: Nanos) -> Now {
        let since = (now - machine.booted_at) as i64;
        Now((since + since / 1_000_000 * machine.drift_ppm) as u64)
    }

    fn tick(&mut self, node: NodeId, boot: u64, worker: usize) {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(&node).filter(|m| m.boot == boot) else { return };
        let node_now = Self::node_now(machine, now);
        let Some(process) = machine.process.as_mut() else { return };
        if !process.frozen {
            process.tick(node_now, worker);
        }
        self.agenda.put(now + TICK + self.rng.below(100 * MICRO), Event::Tick { node, boot, worker });
        self.grant(node);
    }

    fn turn(&mut self, node: NodeId, boot: u64, worker: usize) {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(&node).filter(|m| m.boot == boot) else { return };
        let node_now = Self::node_now(machine, now);
        let crash_at = machine.crash_at;
        let Some(process) = machine.process.as_mut() else { return };
        if process.frozen {
            process.cancel_turn(worker);
            return;
        }
        process.turn(node_now, worker, &mut self.rng, &mut self.trace);
        if crash_at.is_some_and(|at| process.handled >= at) {
            self.trace.note(|| format!("fault: {node} is killed at a signal"));
            self.grant(node);
            self.crash(node, true);
            self.restart_later(node, false);
            return;
        }
        self.grant(node);
    }

    /// Plans turns for workers that have something to do.
    fn plan(&mut self, node: NodeId) {
        let Some(machine) = self.machines.get_mut(&node) else { return };
        let boot = machine.boot;
        let Some(process) = machine.process.as_mut() else { return };
        for worker in 0..process.workers() {
            if process.plan_turn(worker) {
                // Waking up or coming round again: from next to nothing to the scheduler's whim.
                let wait = (200 + self.rng.log_range(100..=30_000)) * process.slowness;
                self.agenda.put(self.now + wait, Event::Turn { node, boot, worker });
            }
        }
    }

    /// Does what a process wants.
    fn grant(&mut self, node: NodeId) {
        loop {
            let Some(process) = self.process_mut(node) else { return };
            let wishes = std::mem::take(&mut process.wishes);
            if wishes.is_empty() {
                break;
            }
            for wish in wishes {
                match wish {
                    Wish::Send { to, connection, bytes } => {
                        self.post(node, to, connection, Parcel::Bytes(bytes));
                    }
                    Wish::Close { to, connection, reason } => {
                        self.post(
                            node,
                            to,
                            connection,
                            Parcel::End(format!("closed by node {node}: {reason}")),
                        );
                    }
                    Wish::Gone { peer, connection } => {
                        self.net.forget(peer, node, connection);
                        self.connect_again(node, peer);
                    }
                    Wish::Log(line) => self.note_log(node, &line),
                    Wish::Exit { reason, error } => {
                        self.note_log(
                            node,
                            &format!("ends ({}): {reason}", if error { "error" } else { "planned" }),
                        );
                        self.end_process(node);
                        self.restart_later(node, false);
                        return;
                    }
                    Wish::Violation(text) => self.violations.push(text),
                }
            }
        }
        self.plan(node);
    }

    fn note_log(&mut self, node: NodeId, line: &str) {
        self.trace.note(|| format!("{node} log: {line}"));
        if self.log.len() >= 200 {
            self.log.remove(0);
        }
        self.log.push(format!("{:.3} node {node}: {line}", self.now as f64 / SECOND as f64));
    }

    /// The last lines of the nodes' logs.
    pub(crate) fn last_log(&self, count: usize) -> &[String] {
        &self.log[self.log.len().saturating_sub(count)..]
    }

    fn restart_later(&mut self, node: NodeId, stay_down: bool) {
        if let Some(machine) = self.machines.get_mut(&node) {
            machine.stay_down |= stay_down;
            let wait = self.rng.log_range(1..=3000) * MILLI;
            self.agenda.put(self.now + wait, Event::Start(node));
        }
    }

    /// A process ends in order: what it has sent arrives, then its links close.
    fn end_process(&mut self, node: NodeId) {
        let Some(process) = self.machines.get_mut(&node).and_then(|m| m.process.take()) else { return };
        for (peer, connection) in process.connections() {
            let parcel = Parcel::End(format!("node {node} has ended"));
            self.post(node, peer, connection, parcel);
            self.net.forget(peer, node, connection);
        }
    }

    /// A process dies. `told`: its operating system lives and closes its connections.
    fn crash(&mut self, node: NodeId, told: bool) {
        let Some(machine) = self.machines.get_mut(&node) else { return };
        machine.crash_at = None;
        let Some(process) = machine.process.take() else { return };
        machine.powered = told;
        for (peer, connection) in process.connections() {
            self.net.truncate(self.now, node, peer, connection);
            if told {
                let parcel = Parcel::End(format!("node {node} has died"));
                self.post(node, peer, connection, parcel);
            }
            self.net.forget(peer, node, connection);
        }
    }

    // --- connections

    fn post(&mut self, from: NodeId, to: NodeId, connection: u64, parcel: Parcel) {
        if let Some(at) = self.net.send(self.now, from, to, connection, parcel) {
            self.agenda.put(at, Event::Arrive { from, to, connection });
        }
    }

    fn arrive(&mut self, from: NodeId, to: NodeId, connection: u64) {
        while let Some(parcel) = self.net.receive(self.now, from, to, connection) {
            if self.apis.contains_key(&to) {
                self.api_receives(to, from, connection, parcel);
                continue;
            }
            if self.own_connection(to, from) != Some(connection) {
                // Nobody there knows the connection; a machine that is on says so.
                if self.machines.get(&to).is_some_and(|m| m.powered) {
                    self.post(to, from, connection, Parcel::End("connection reset by peer".into()));
                }
                continue;
            }
            let Some(process) = self.process_mut(to) else { continue };
            match parcel {
                Parcel::Bytes(bytes) => process.arrived(from, connection, &bytes),
                Parcel::End(reason) => process.ended(from, connection, reason),
            }
            self.plan(to);
        }
    }

    fn connection_between(&self, a: NodeId, b: NodeId) -> Option<u64> {
        let of = |node: NodeId, peer: NodeId| match self.apis.get(&node) {
            Some(api) => api.connection_to(peer),
            None => self.machines.get(&node)?.process.as_ref()?.connection_to(peer),
        };
        of(a, b).or_else(|| of(b, a))
    }

    fn boot_of(&self, node: NodeId) -> Option<u64> {
        match self.apis.get(&node) {
            Some(api) => api.boot(),
            None => self.machines.get(&node).and_then(|m| m.process.as_ref().map(|_| m.boot)),
        }
    }

    /// A link was lost: whoever connects tries again.
    fn connect_again(&mut self, node: NodeId, peer: NodeId) {
        if self.apis.contains_key(&peer) || node < peer {
            return;
        }
        if let Some(boot) = self.boot_of(node) {
            let at = self.now + self.rng.below(10 * MILLI);
            self.agenda.put(at, Event::Connect { from: node, to: peer, boot, backoff: RETRY });
        }
    }

    fn connect(&mut self, from: NodeId, to: NodeId, boot: u64, backoff: Nanos) {
        if self.boot_of(from) != Some(boot) || self.own_connection(from, to).is_some() {
            return;
        }
        let passes = !self.net.is_blocked(from, to) && !self.net.is_blocked(to, from);
        let is_api = self.apis.contains_key(&from);
        let can = passes
            && self.machines.get(&to).and_then(|m| m.process.as_ref()).is_some_and(|p| !p.frozen)
            && self.own_connection(to, from).is_none();
        if !can {
            let next = if is_api { (backoff * 2).min(BACKOFF_MAX) } else { RETRY };
            let at = self.now + backoff + self.rng.below(MILLI);
            self.agenda.put(at, Event::Connect { from, to, boot, backoff: next });
            return;
        }
        let connection = self.net.open(from, to);
        let incarnation = |world: &Self, node: NodeId| {
            world
                .machines
                .get(&node)
                .and_then(|m| m.process.as_ref())
                .map_or(api::incarnation(boot), |p| p.incarnation)
        };
        let (from_incarnation, to_incarnation) = (incarnation(self, from), incarnation(self, to));
        self.trace.note(|| format!("{from} connects to {to}"));
        let role = if is_api { PeerRole::ApiNode } else { PeerRole::DataNode };
        if let Some(process) = self.process_mut(to) {
            process.link_up(from, role, from_incarnation, connection);
        }
        self.plan(to);
        if is_api {
            if let Some(api) = self.apis.get_mut(&from) {
                api.link_up(to, connection);
            }
        } else if let Some(process) = self.process_mut(from) {
            process.link_up(to, PeerRole::DataNode, to_incarnation, connection);
            self.plan(from);
        }
    }

    fn own_connection(&self, node: NodeId, peer: NodeId) -> Option<u64> {
        match self.apis.get(&node) {
            Some(api) => api.connection_to(peer),
            None => self.machines.get(&node)?.process.as_ref()?.connection_to(peer),
        }
    }

    // --- clients

    fn start_api(&mut self, node: NodeId) {
        self.boots += 1;
        let boot = self.boots;
        let Some(api) = self.apis.get_mut(&node) else { return };
        match api.start(&self.config, boot, self.now, self.shape.planted) {
            Ok(connection) => self.shared.set_connection(node, Some(connection)),
            Err(error) => self.violations.push(format!("API node {node}: {error}")),
        }
        self.agenda.put(self.now + self.rng.below(API_TICK), Event::ApiTick { node, boot });
        for to in self.machines.keys().copied().collect::<Vec<_>>() {
            let at = self.now + self.rng.below(20 * MILLI);
            self.agenda.put(at, Event::Connect { from: node, to, boot, backoff: BACKOFF_FIRST });
        }
    }

    fn crash_api(&mut self, node: NodeId) {
        self.tasks.end_of(node);
        self.shared.set_connection(node, None);
        let Some(api) = self.apis.get_mut(&node) else { return };
        for (peer, connection) in api.stop() {
            self.net.truncate(self.now, node, peer, connection);
            self.post(node, peer, connection, Parcel::End("the client has died".into()));
            self.net.forget(peer, node, connection);
        }
        self.start_api(node);
        self.shared.api_restarted(node);
    }

    fn api_tick(&mut self, node: NodeId, boot: u64) {
        let now = self.now;
        let Some(api) = self.apis.get_mut(&node).filter(|a| a.boot() == Some(boot)) else { return };
        for (peer, connection) in api.tick(now) {
            self.post(node, peer, connection, Parcel::End("closed by the client".into()));
            self.net.forget(peer, node, connection);
            self.agenda.put(
                now + BACKOFF_FIRST,
                Event::Connect { from: node, to: peer, boot, backoff: BACKOFF_FIRST },
            );
        }
        self.agenda.put(now + API_TICK + self.rng.below(MILLI), Event::ApiTick { node, boot });
    }

    fn api_receives(&mut self, node: NodeId, from: NodeId, connection: u64, parcel: Parcel) {
        let now = self.now;
        let Some(api) = self.apis.get_mut(&node) else { return };
        let Some(boot) = api.boot() else { return };
        match api.receive(now, from, connection, parcel) {
            Ok(false) => {}
            Ok(true) => {
                self.post(node, from, connection, Parcel::End("closed by the data node".into()));
                let at = now + BACKOFF_FIRST;
                self.agenda.put(at, Event::Connect { from: node, to: from, boot, backoff: BACKOFF_FIRST });
            }
            Err(text) => self.violations.push(text),
        }
    }

    fn flush_apis(&mut self) {
        for node in self.apis.keys().copied().collect::<Vec<_>>() {
            let Some(api) = self.apis.get_mut(&node) else { continue };
            api.set_now(self.now);
            for (to, connection, bytes) in api.take_outgoing() {
                self.post(node, to, connection, Parcel::Bytes(bytes));
            }
        }
    }

    // --- what checks look at

    /// No started node may go on serving for long without hearing from every other: that would be two
    /// halves of one cluster.
    fn watch(&mut self) {
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for listener in &nodes {
            let Some(limit) = self.patience(*listener) else {
                self.unheard.retain(|(_, to), _| to != listener);
                continue;
            };
            for speaker in nodes.iter().filter(|n| *n != listener) {
                let pair = (*speaker, *listener);
                if self.hears(*speaker, *listener) {
                    self.unheard.remove(&pair);
                    continue;
                }
                let since = *self.unheard.entry(pair).or_insert(self.now);
                if self.now - since > limit {
                    let ms = (self.now - since) / MILLI;
                    self.violations.push(format!(
                        "node {listener} serves although it has not heard node {speaker} for {ms} ms"
                    ));
                }
            }
        }
        self.agenda.put(self.now + 50 * MILLI, Event::Watch);
    }

    /// How long a node may serve without hearing another: the heartbeats it may miss and something for being
    /// slow. None for nodes that do not serve, or cannot because they are frozen.
    fn patience(&self, node: NodeId) -> Option<Nanos> {
        let process = self.machines.get(&node)?.process.as_ref()?;
        let serves = process.status().is_some_and(|s| s.phase == StartPhase::Started);
        (serves && !process.frozen).then(|| process.setup.heartbeat_db_ms * 7 * MILLI + 1500 * MILLI)
    }

    fn hears(&self, speaker: NodeId, listener: NodeId) -> bool {
        let Some(connection) = self.own_connection(listener, speaker) else { return false };
        let speaks = self.machines.get(&speaker).and_then(|m| m.process.as_ref());
        speaks.is_some_and(|p| !p.frozen && p.connection_to(listener) == Some(connection))
            && !self.net.is_blocked(speaker, listener)
    }

    /// Whether every data node is started.
    pub(crate) fn all_started(&self) -> bool {
        self.machines.values().all(|machine| {
            let status = machine.process.as_ref().and_then(|p| p.status());
            status.is_some_and(|s| s.phase == StartPhase::Started)
        })
    }

    /// The same, to wait for.
    pub(crate) fn all_started_now(world: &mut Self) -> bool {
        world.all_started()
    }

    /// What every data node says about itself.
    pub(crate) fn states(&self) -> Vec<String> {
        let state = |(node, machine): (&NodeId, &Machine)| {
            let text =
                machine.process.as_ref().and_then(|p| p.status()).map_or("not running".into(), |s| s.text);
            format!("node {node}: {text}")
        };
        self.machines.iter().map(state).collect()
    }

    /// Dictionaries that differ, now that nobody changes them.
    pub(crate) fn wrong_catalogues(&self) -> Vec<String> {
        let mut first: Option<(NodeId, String)> = None;
        let mut wrong = Vec::new();
        for (node, process) in self.processes() {
            let Some(own) =
                process.blocks().find_map(kernel::BlockSet::main).map(kernel::mainrole::MainRole::catalogue)
            else {
                continue;
            };
            let (other, text) = first.get_or_insert_with(|| (node, own.clone()));
            if *text != own {
                wrong.push(format!("the dictionaries of nodes {other} and {node} differ: {text} and {own}"));
            }
        }
        wrong
    }

    /// What is wrong with the rows, now that nobody changes any: replicas that differ, rows their key does
    /// not lead to, memory nobody holds.
    pub(crate) fn wrong_contents(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen: BTreeMap<(u32, u16), (NodeId, kernel::ldm::digest::FragmentDigest)> = BTreeMap::new();
        for (node, process) in self.processes() {
            let mut bytes = 0;
            for digest in process.blocks().flat_map(kernel::BlockSet::digests) {
                let place = (digest.table.0, digest.fragment.0);
                bytes += digest.bytes;
                if digest.strays > 0 {
                    wrong.push(format!(
                        "node {node}: {} rows of {place:?} cannot be found by key",
                        digest.strays
                    ));
                }
                let (other, first) = *seen.entry(place).or_insert((node, digest));
                if !first.same_rows(&digest) {
                    wrong.push(format!(
                        "replicas of table {} fragment {} differ: node {other} has {} rows (sum {:016x}), node {node} {} ({:016x})",
                        place.0, place.1, first.rows, first.sum, digest.rows, digest.sum
                    ));
                }
            }
            let used = process.setup.data_memory.used() * kernel::ldm::page::PAGE_BYTES as u64;
            if used != bytes && !process.blocks().any(kernel::BlockSet::is_burying) {
                wrong
                    .push(format!("node {node}: {used} bytes of data memory in use, fragments hold {bytes}"));
            }
        }
        wrong
    }

    /// Records in use at data nodes and clients: what is not zero when all is quiet.
    pub(crate) fn in_use(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (node, process) in self.processes() {
            let used: usize = process.blocks().map(kernel::BlockSet::in_use).sum();
            if used > 0 {
                found.push(format!("node {node}: {used} records in use"));
            }
        }
        for (node, api) in &self.apis {
            let used = api.in_use();
            if used != [0; 4] {
                found.push(format!(
                    "API node {node}: operations, executes, transactions, scans in use {used:?}"
                ));
            }
        }
        found
    }
}
