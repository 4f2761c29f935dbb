//! A thread layout: the list of workers and the roles each hosts.
//!
//! Facts that hold for every layout made here: there is at least one worker; `Main`, `Rep` and at least one
//! each of `Ldm`, `Tc`, `Recv`, `Send` exist; every role instance is hosted by exactly one worker;
//! instances of one role are numbered from 0 without gaps.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A role instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Schema, membership, start phases.
    Main,
    /// Events to subscribers.
    Rep,
    /// Rows, hash index, locks and redo of its fragments.
    Ldm(u16),
    /// Transaction coordinator.
    Tc(u16),
    /// Reads the sockets of the nodes given to it.
    Recv(u16),
    /// Writes the sockets of the nodes given to it.
    Send(u16),
}

/// `SpinMethod`: how much CPU an idle worker may burn to be spared a sleep.
///
/// Whatever the method, a worker spins only while that has been paying off, and not at all while somebody
/// else wants its CPU. The methods differ in the longest spin they bring along and in what they think a
/// sleep avoided is worth; the proportions are NDB's (allowed overhead 1 : 5 : 50).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Encode, Decode)]
pub enum SpinMethod {
    /// Only as long as `SchedulerSpinTimer` or `spintime` says; values cost as `CostBased` does.
    #[default]
    Static,
    /// As long as spinning costs no more than the sleeps it saves.
    CostBased,
    /// Some CPU for shorter answers.
    LatencyOptimised,
    /// The machine is there for the database: any CPU for shorter answers.
    DatabaseMachine,
}

impl SpinMethod {
    /// Every method and its name in the configuration.
    pub(crate) const NAMES: [(SpinMethod, &'static str); 4] = [
        (SpinMethod::Static, "StaticSpinning"),
        (SpinMethod::CostBased, "CostBasedSpinning"),
        (SpinMethod::LatencyOptimised, "LatencyOptimisedSpinning"),
        (SpinMethod::DatabaseMachine, "DatabaseMachineSpinning"),
    ];

    /// The longest spin where `SchedulerSpinTimer` gives none.
    #[must_use]
    pub fn limit_us(self) -> u32 {
        match self {
            SpinMethod::Static => 0,
            SpinMethod::CostBased => 100,
            SpinMethod::LatencyOptimised => 200,
            SpinMethod::DatabaseMachine => 500,
        }
    }

    /// How much spinning a sleep avoided is worth. A sleep costs 20-50 us until the sleeper runs again and
    /// 4-22 us of CPU at the one who wakes it (measured on a two-CPU virtual machine).
    #[must_use]
    pub fn worth_us(self) -> u32 {
        match self {
            SpinMethod::Static | SpinMethod::CostBased => 50,
            SpinMethod::LatencyOptimised => 250,
            SpinMethod::DatabaseMachine => 2500,
        }
    }
}

/// One worker thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerLayout {
    /// The one CPU to bind to.
    pub cpu: Option<usize>,
    /// Several CPUs the worker may use (`cpuset`); empty means any, and `cpu` goes first.
    pub cpuset: Vec<usize>,
    /// Longest spin before it sleeps, as configured; see [`WorkerLayout::longest_spin_us`].
    pub spin_time_us: u32,
    /// What spinning is worth.
    pub spin_method: SpinMethod,
    /// Real-time priority.
    pub realtime: bool,
    /// `thread_prio`: 0 (lowest) to 10 (highest); 5 is normal.
    pub thread_prio: Option<u8>,
    /// Leaves all sending to the send instances of other workers.
    pub nosend: bool,
    /// Spin and real-time were given and are not to be replaced by the node's defaults.
    pub(super) spin_given: bool,
    pub(super) realtime_given: bool,
    /// The roles it hosts.
    pub roles: Vec<Role>,
}

impl WorkerLayout {
    /// A worker with these roles, bound to a CPU or not.
    pub fn new(cpu: Option<usize>, roles: Vec<Role>) -> WorkerLayout {
        WorkerLayout { cpu, roles, ..WorkerLayout::default() }
    }

    /// A name for logs and the operating system: `ldm0`, `tc0_recv0_send0_main_rep`.
    pub fn name(&self) -> String {
        let part = |role: &Role| match role {
            Role::Main => "main".to_owned(),
            Role::Rep => "rep".to_owned(),
            Role::Ldm(i) => format!("ldm{i}"),
            Role::Tc(i) => format!("tc{i}"),
            Role::Recv(i) => format!("recv{i}"),
            Role::Send(i) => format!("send{i}"),
        };
        self.roles.iter().map(part).collect::<Vec<_>>().join("_")
    }

    /// The longest spin there may really be: a real-time worker does not spin, because nobody of normal
    /// priority could take the CPU from it meanwhile, nor could it notice that somebody wants to.
    #[must_use]
    pub fn longest_spin_us(&self) -> u32 {
        if self.realtime { 0 } else { self.spin_time_us }
    }

    /// What else there is to say about it, for [`ThreadLayout::describe`].
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match (self.realtime, self.spin_time_us) {
            (true, 0) => notes.push("real-time priority".to_owned()),
            (true, _) => notes.push("real-time priority, therefore no spinning".to_owned()),
            (false, 0) => {}
            (false, us) => notes.push(format!("spins up to {us} us")),
        }
        if let Some(priority) = self.thread_prio {
            notes.push(format!("thread_prio {priority}"));
        }
        if self.nosend {
            notes.push("leaves sending to others".to_owned());
        }
        if self.roles.contains(&Role::Rep) {
            notes.push("rep has no block yet and does nothing".to_owned());
        }
        notes
    }
}

/// All workers of a data node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The workers, in order.
    pub workers: Vec<WorkerLayout>,
}

impl ThreadLayout {
    /// All role instances, in worker order.
    pub fn roles(&self) -> impl Iterator<Item = Role> + '_ {
        self.workers.iter().flat_map(|w| w.roles.iter().copied())
    }

    /// Index of the worker that hosts a role.
    pub fn worker_of(&self, role: Role) -> Option<usize> {
        self.workers.iter().position(|w| w.roles.contains(&role))
    }

    /// Number of LDM instances.
    pub fn ldm_count(&self) -> u16 {
        self.count(|role| matches!(role, Role::Ldm(_)))
    }

    /// Number of TC instances.
    pub fn tc_count(&self) -> u16 {
        self.count(|role| matches!(role, Role::Tc(_)))
    }

    /// Number of receive instances.
    pub fn recv_count(&self) -> u16 {
        self.count(|role| matches!(role, Role::Recv(_)))
    }

    /// Number of send instances.
    pub fn send_count(&self) -> u16 {
        self.count(|role| matches!(role, Role::Send(_)))
    }

    fn count(&self, is_counted: fn(&Role) -> bool) -> u16 {
        u16::try_from(self.roles().filter(is_counted).count()).unwrap_or(u16::MAX)
    }

    /// The node's own spin time, spin method and real-time flag; spin time and flag are for workers that
    /// were not given theirs.
    pub(crate) fn apply_defaults(&mut self, spin_time_us: u32, method: SpinMethod, realtime: bool) {
        let spin_time_us = if spin_time_us == 0 { method.limit_us() } else { spin_time_us };
        for worker in &mut self.workers {
            worker.spin_method = method;
            if !worker.spin_given {
                worker.spin_time_us = spin_time_us;
            }
            if !worker.realtime_given && worker.thread_prio.is_none() {
                worker.realtime = realtime;
            }
        }
    }

    /// The links' `TcpSpinTime`: workers that read links spin at least that long, unless ThreadConfig gave
    /// them a spin time.
    pub fn apply_tcp_spin_time(&mut self, us: u32) {
        for worker in &mut self.workers {
            if !worker.spin_given && worker.roles.iter().any(|role| matches!(role, Role::Recv(_))) {
                worker.spin_time_us = worker.spin_time_us.max(us);
            }
        }
    }

    /// One line per worker, for logs: its roles, its CPUs, what is special about it.
    pub fn describe(&self) -> String {
        let line = |(i, w): (usize, &WorkerLayout)| {
            let place = match (w.cpu, w.cpuset.as_slice()) {
                (Some(cpu), _) => format!(" on cpu {cpu}"),
                (None, []) => String::new(),
                (None, set) => format!(" on cpus {set:?}"),
            };
            let notes: String = w.notes().iter().map(|note| format!("; {note}")).collect();
            format!("worker {i}: {}{place}{notes}", w.name())
        };
        self.workers.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Workers by the thread type they were made for; roles that have no thread of their own find a host among
/// them.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) main: Vec<WorkerLayout>,
    pub(super) rep: Vec<WorkerLayout>,
    pub(super) ldm: Vec<WorkerLayout>,
    pub(super) tc: Vec<WorkerLayout>,
    pub(super) recv: Vec<WorkerLayout>,
    pub(super) send: Vec<WorkerLayout>,
}

/// Numbers a role's instances over the workers made for it.
fn number(workers: &mut [WorkerLayout], role: fn(u16) -> Role) {
    for (i, worker) in (0u16..).zip(workers) {
        worker.roles.push(role(i));
    }
}

impl Threads {
    /// Gives every role its worker. Roles without a thread: LDM, main and rep go to the first receive
    /// worker, TC to main's worker, send instances to every receive worker (who has something to say has
    /// just been told something).
    pub(super) fn host(mut self) -> ThreadLayout {
        if self.recv.is_empty() {
            self.recv.push(WorkerLayout::default());
        }
        number(&mut self.ldm, Role::Ldm);
        number(&mut self.tc, Role::Tc);
        number(&mut self.recv, Role::Recv);
        number(&mut self.send, Role::Send);
        if self.send.is_empty() {
            number(&mut self.recv, Role::Send);
        }
        let mut homeless = Vec::new();
        if self.ldm.is_empty() {
            homeless.push(Role::Ldm(0));
        }
        let mut on_main = vec![Role::Main];
        if self.tc.is_empty() {
            on_main.push(Role::Tc(0));
        }
        match self.main.first_mut() {
            Some(main) => main.roles.extend(on_main),
            None => homeless.extend(on_main),
        }
        // A second main thread has always carried what rep would do.
        match self.rep.first_mut().or(self.main.get_mut(1)) {
            Some(rep) => rep.roles.push(Role::Rep),
            None => homeless.push(Role::Rep),
        }
        if let Some(recv) = self.recv.first_mut() {
            recv.roles.extend(homeless);
        }
        let groups = [self.ldm, self.tc, self.recv, self.send, self.main, self.rep];
        ThreadLayout { workers: groups.into_iter().flatten().filter(|w| !w.roles.is_empty()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(workers: Vec<WorkerLayout>) -> ThreadLayout {
        ThreadLayout { workers }
    }

    #[test]
    fn spin_times_come_from_the_nearest_setting() {
        let given = WorkerLayout {
            spin_given: true,
            spin_time_us: 7,
            ..WorkerLayout::new(None, vec![Role::Recv(0)])
        };
        let mut own =
            layout(vec![given, WorkerLayout::new(None, vec![Role::Recv(1)]), WorkerLayout::default()]);
        let spins = |l: &ThreadLayout| l.workers.iter().map(|w| w.spin_time_us).collect::<Vec<_>>();
        for (timer, method, tcp, expected) in [
            (0, SpinMethod::Static, 0, [7, 0, 0]),
            (30, SpinMethod::Static, 0, [7, 30, 30]),
            (30, SpinMethod::Static, 40, [7, 40, 30]),
            (0, SpinMethod::CostBased, 0, [7, 100, 100]),
            (0, SpinMethod::DatabaseMachine, 20, [7, 500, 500]),
            (60, SpinMethod::LatencyOptimised, 0, [7, 60, 60]),
        ] {
            own.apply_defaults(timer, method, false);
            own.apply_tcp_spin_time(tcp);
            assert_eq!(spins(&own), expected, "{timer} {method:?} {tcp}");
            assert!(own.workers.iter().all(|w| w.spin_method == method));
        }
    }

    #[test]
    fn a_description_hides_nothing() {
        let mut own = layout(vec![
            WorkerLayout { cpu: Some(3), nosend: true, ..WorkerLayout::new(Some(3), vec![Role::Ldm(0)]) },
            WorkerLayout { thread_prio: Some(9), ..WorkerLayout::new(None, vec![Role::Rep]) },
        ]);
        own.apply_defaults(20, SpinMethod::Static, true);
        assert_eq!(own.workers.iter().map(WorkerLayout::longest_spin_us).collect::<Vec<_>>(), [0, 20]);
        assert_eq!(
            own.describe(),
            "worker 0: ldm0 on cpu 3; real-time priority, therefore no spinning; leaves sending to others\n\
             worker 1: rep; spins up to 20 us; thread_prio 9; rep has no block yet and does nothing"
        );
    }
}
