//! Tasks: a small executor for the programs that use the cluster in a run.
//!
//! Tasks are polled on the simulator's thread, one at a time, when something has woken them; which of
//! several goes first is drawn from the run's random numbers. A task belongs to a process and goes with it.

use super::agenda::Nanos;
use super::rng::Rng;
use signals::NodeId;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The number of a task; never used twice in a run.
pub(crate) type TaskId = u64;

/// A program.
pub(crate) type Program = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks to poll. A set, not a list: the order in which tokio's channels wake those who wait is random.
#[derive(Default)]
struct Ready(Mutex<BTreeSet<TaskId>>);

struct Alarm {
    task: TaskId,
    ready: Arc<Ready>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.ready.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.task);
    }
}

struct Task {
    id: TaskId,
    owner: Option<NodeId>,
    program: Program,
    waker: Waker,
}

/// What tasks ask of the executor while they run.
#[derive(Default)]
pub(crate) struct Requests {
    /// Tasks to start.
    pub(crate) spawned: Vec<(Option<NodeId>, Program)>,
    /// Who wants to be woken when.
    pub(crate) sleepers: Vec<(Nanos, Waker)>,
}

/// See the module.
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    ready: Arc<Ready>,
    next: TaskId,
    pub(crate) requests: Rc<RefCell<Requests>>,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new(), ready: Arc::default(), next: 0, requests: Rc::default() }
    }

    /// Starts a program of process `owner`, or of nobody's.
    pub(crate) fn spawn(&mut self, owner: Option<NodeId>, program: Program) {
        let id = self.next;
        self.next += 1;
        let alarm = Arc::new(Alarm { task: id, ready: self.ready.clone() });
        alarm.clone().wake();
        self.tasks.push(Task { id, owner, program, waker: alarm.into() });
    }

    /// Ends every task of a process, as the process's death would.
    pub(crate) fn end_of(&mut self, owner: NodeId) {
        self.tasks.retain(|task| task.owner != Some(owner));
    }

    /// Polls tasks until none is ready. Returns whether any was.
    pub(crate) fn run(&mut self, rng: &mut Rng) -> bool {
        let mut any = false;
        loop {
            let id = {
                let mut ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
                let index = if ready.len() <= 1 { 0 } else { rng.index(ready.len()) };
                let Some(id) = ready.iter().nth(index).copied() else { return any };
                ready.remove(&id);
                id
            };
            any = true;
            let Some(at) = self.tasks.iter().position(|task| task.id == id) else { continue };
            let task = &mut self.tasks[at];
            let waker = task.waker.clone();
            if let Poll::Ready(()) = task.program.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.tasks.remove(at);
            }
            let spawned = std::mem::take(&mut self.requests.borrow_mut().spawned);
            for (owner, program) in spawned {
                self.spawn(owner, program);
            }
        }
    }
}
