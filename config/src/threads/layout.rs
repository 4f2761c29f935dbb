//! A thread layout: the list of workers and the roles each hosts.
//!
//! Facts that hold for every layout made here: there is at least one worker; `Main`, `Rep` and at least one
//! each of `Ldm`, `Tc`, `Recv`, `Send` exist; every role instance is hosted by exactly one worker;
//! instances of one role are numbered from 0 without gaps.

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

/// One worker thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerLayout {
    /// The one CPU to bind to.
    pub cpu: Option<usize>,
    /// Several CPUs the worker may use (`cpuset`); empty means any, and `cpu` goes first.
    pub cpuset: Vec<usize>,
    /// Longest spin before it sleeps.
    pub spin_time_us: u32,
    /// Real-time priority.
    pub realtime: bool,
    /// `thread_prio`: 0 (lowest) to 10 (highest); 5 is normal.
    pub thread_prio: Option<u8>,
    /// Leaves all sending to others.
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

    /// The node's own spin time and real-time flag, for workers that were not given theirs.
    pub(crate) fn apply_defaults(&mut self, spin_time_us: u32, realtime: bool) {
        for worker in &mut self.workers {
            if !worker.spin_given {
                worker.spin_time_us = spin_time_us;
            }
            if !worker.realtime_given && worker.thread_prio.is_none() {
                worker.realtime = realtime;
            }
        }
    }

    /// One line per worker, for logs.
    pub fn describe(&self) -> String {
        let line = |(i, w): (usize, &WorkerLayout)| match (w.cpu, w.cpuset.as_slice()) {
            (Some(cpu), _) => format!("worker {i}: {} on cpu {cpu}", w.name()),
            (None, []) => format!("worker {i}: {}", w.name()),
            (None, set) => format!("worker {i}: {} on cpus {set:?}", w.name()),
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
