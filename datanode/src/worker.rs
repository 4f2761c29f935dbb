//! Worker: one thread of the data node, its loop and its sleep.
//!
//! A worker hosts the role instances ThreadConfig gave it. Each turn of its loop:
//!
//! ```text
//!   orders (rare) ─► own signals ─► job queues ─► links ─► every 10 ms: tick
//!     ─► ship ─► send queue ─► nothing to do? sleep
//! ```
//!
//! Signals among its own blocks cost a function call; what goes elsewhere is shipped once per turn, and in
//! between when it has grown. Before sleeping it announces itself, looks at everything once more, and waits
//! in epoll for links, a wake-up by another thread, or the next tick. Before that it spins, as long as that
//! pays and at most as long as it was configured to (see [`crate::spin`]).
//!
//! A worker that hosts send instances writes, at the end of its turn, the links others left to it (see
//! [`crate::send`]); a dedicated send worker has nothing else to do. A real-time worker that never sleeps
//! takes breaks (see [`crate::priority`]).
//!
//! It never waits for anybody else: a full ring or socket leaves the bytes where they are and the loop goes
//! on. A turn that takes too long, or a sleep that lasts too long because the process was stopped, is
//! logged by the worker itself, so that a stalled node knows.

use crate::core::Core;
use crate::directory::{Directory, Order};
use crate::jobs::JobReceiver;
use crate::priority;
use crate::receive::{Receiver, WAKE_TOKEN};
use crate::send::SendDesk;
use crate::spin::{self, SchedStat, Spin};
use crate::usage::{Counters, Usage};
use config::WorkerLayout;
use kernel::{Now, Severity};
use rustix::event::{Timespec, epoll};
use signals::control::ControlSignal;
use signals::frame::push_control;
use signals::{BlockNumber, BlockRef};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use transporter::{PeerRole, Wake};

/// Time between two ticks of the blocks.
const TICK_NS: u64 = 10_000_000;
/// A turn that takes longer is a stall.
const STALL_NS: u64 = 100_000_000;
/// Stalls are logged at most this often.
const STALL_LOG_NS: u64 = 1_000_000_000;
/// How long to sleep when only a full ring of another worker is in the way.
const BACKLOG_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Everything that can give a worker something to do.
pub struct Inputs {
    /// The job queues of all other workers.
    pub rings: Vec<JobReceiver>,
    /// Its orders.
    pub orders: crossbeam_channel::Receiver<Order>,
    /// Links others left to it, if it hosts a send instance.
    pub desk: Option<SendDesk>,
    /// Its wake-up.
    pub wake: Arc<Wake>,
    /// Its epoll.
    pub epoll: Arc<OwnedFd>,
}

/// See the module.
pub struct Worker {
    pub(crate) core: Core,
    rings: Vec<JobReceiver>,
    orders: crossbeam_channel::Receiver<Order>,
    desk: Option<SendDesk>,
    wake: Arc<Wake>,
    receiver: Receiver,
    started: Instant,
    spin: Spin,
    waits: SchedStat,
    usage: Usage,
    realtime: bool,
    /// When a real-time worker last slept.
    rested: u64,
    next_tick: u64,
    stall_logged: u64,
    turn_began: u64,
    stopping: bool,
}

impl Worker {
    /// A worker at birth, on its own thread; its epoll gets the wake-up registered.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn new(
        mut core: Core,
        inputs: Inputs,
        plan: &WorkerLayout,
        started: Instant,
    ) -> std::io::Result<Self> {
        let Inputs { rings, orders, desk, wake, epoll } = inputs;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&*epoll, &*wake, epoll::EventData::new_u64(WAKE_TOKEN), flags)?;
        let receiver = Receiver::new(epoll, core.directory.first_link_route());
        core.sending.nosend = plan.nosend;
        Ok(Self {
            core,
            rings,
            orders,
            desk,
            wake,
            receiver,
            started,
            spin: Spin::new(plan.longest_spin_us(), plan.spin_method.worth_us()),
            waits: SchedStat::of_this_thread(),
            usage: Usage::default(),
            realtime: plan.realtime,
            rested: 0,
            next_tick: 0,
            stall_logged: 0,
            turn_began: 0,
            stopping: false,
        })
    }

    /// Works until told to stop.
    pub fn run(&mut self) {
        self.core.publish_status();
        self.turn_began = self.now();
        while !self.stopping {
            let work = self.turn();
            if work == 0 && !self.stopping {
                self.sleep();
            }
        }
        self.core.ship();
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn turn(&mut self) -> usize {
        let now = self.now();
        self.core.now = Now(now);
        let mut work = 0;
        if !self.orders.is_empty() {
            work += self.take_orders();
        }
        work += self.core.drain_own();
        work += self.drain_rings();
        if self.receiver.has_links() {
            work += self.receiver.poll(&NO_TIME, &mut self.core);
            work += self.receiver.serve(&mut self.core);
        }
        work += self.core.drain_own();
        Counters::add(&self.core.counters.turns, 1);
        Counters::add(&self.core.counters.signals, work as u64);
        if now >= self.next_tick {
            self.tick(now);
        }
        self.core.ship();
        if let Some(desk) = &self.desk {
            work += desk.serve(&self.core.counters);
        }
        if self.core.has_own() { work.max(1) } else { work }
    }

    fn drain_rings(&mut self) -> usize {
        let Self { rings, core, .. } = self;
        let mut count = 0;
        for ring in rings.iter_mut() {
            let mut since_ship = 0;
            count += ring.drain(|frame| {
                core.handle_own(frame);
                since_ship += 1;
                if since_ship % 32 == 0 && core.out.pending_total() > crate::core::SHIP_BYTES {
                    core.ship();
                }
            });
            count += core.drain_own();
        }
        count
    }

    #[cold]
    fn tick(&mut self, now: u64) {
        self.core.blocks.tick(self.core.now, &mut self.core.out);
        self.core.drain_own();
        self.next_tick = now + TICK_NS;
        if self.usage.is_due(now) {
            self.sample(now);
        }
        if self.realtime && now.saturating_sub(self.rested) >= nanos(priority::SLICE) {
            std::thread::sleep(priority::BREAK);
            self.rested = self.now();
        }
        let end = self.now();
        // From the end of the last tick's sleep on: covers a slow turn as well as a process that was stopped.
        let took = end.saturating_sub(self.turn_began);
        self.turn_began = end;
        if took > STALL_NS + TICK_NS {
            self.stalled(end, took);
        }
    }

    /// Every 50 ms: CPU use, and what follows from it for spinning and sending.
    #[cold]
    fn sample(&mut self, now: u64) {
        let wanted = self.spin.is_allowed() && {
            let (waited, runs) = self.waits.since_last();
            spin::is_wanted(waited, runs, self.usage.since_last(now))
        };
        let spun = self.spin.sample(wanted);
        let counters = &self.core.counters;
        self.usage.sample(now, spun, counters);
        self.core.sending.busy = counters.busy_50ms.load(Ordering::Relaxed);
    }

    #[cold]
    fn stalled(&mut self, now: u64, took: u64) {
        Counters::add(&self.core.counters.stalls, 1);
        if now >= self.stall_logged + STALL_LOG_NS {
            self.stall_logged = now;
            let name = self.core.directory.workers.get(self.core.index).map_or("", |p| &p.name);
            let ms = took / 1_000_000;
            let text = format!("worker {name} was stalled for {ms} ms (no CPU, or the process was stopped)");
            self.core.log(Severity::Warning, text);
        }
    }

    #[cold]
    fn take_orders(&mut self) -> usize {
        let mut count = 0;
        while let Ok(order) = self.orders.try_recv() {
            count += 1;
            match order {
                Order::LinkUp(birth) => {
                    self.core.ship();
                    self.core.link_up(&birth);
                    self.core.directory.birth_applied(&birth);
                }
                Order::Announce(birth) => {
                    let peer = &birth.out.peer;
                    if peer.role == PeerRole::DataNode {
                        let (node, incarnation) = (peer.node, peer.incarnation);
                        self.tell_qmgr(&ControlSignal::ConnectRep { node, incarnation });
                    }
                    self.core.directory.birth_announced(&birth);
                }
                Order::Adopt(birth) => self.receiver.adopt(&birth, &self.core),
                Order::LinkDown(death) => {
                    // What the link's owner published before is in the rings now; after this nothing of it
                    // is.
                    self.drain_rings();
                    self.core.ship();
                    self.core.link_down(&death);
                    self.core.directory.death_applied(&death);
                }
                Order::Frame(frame) => self.core.handle_own(&frame),
                Order::Stop => self.stopping = true,
            }
        }
        count
    }

    fn tell_qmgr(&mut self, signal: &ControlSignal) {
        let own = |block| BlockRef::new(self.core.directory.node, block, 0);
        let mut frame = Vec::new();
        if push_control(&mut frame, own(BlockNumber::Cmvmi), own(BlockNumber::Qmgr), signal) {
            self.core.handle_own(&frame);
        }
    }

    /// Whether something has come that needs no epoll event.
    fn has_input(&self) -> bool {
        !self.rings.iter().all(JobReceiver::is_empty)
            || !self.orders.is_empty()
            || self.desk.as_ref().is_some_and(|desk| !desk.is_empty())
    }

    fn sleep(&mut self) {
        if self.spin.is_allowed() && self.spin_for_work() {
            return;
        }
        self.wake.arm();
        if !self.has_input() && self.receiver.may_sleep() {
            let begin = self.now();
            let timeout = match self.core.backlog() {
                0 => timespec(self.next_tick.saturating_sub(begin)),
                _ => BACKLOG_SLEEP,
            };
            Counters::add(&self.core.counters.sleeps, 1);
            let count = self.receiver.poll_asleep(&timeout);
            self.wake.disarm();
            let now = self.now();
            if now.saturating_sub(begin) >= nanos(spin::DISPLACED) {
                self.rested = now;
            }
            self.core.now = Now(now);
            let served = self.receiver.serve_events(count, &mut self.core);
            Counters::add(&self.core.counters.signals, served as u64);
            return;
        }
        self.wake.disarm();
    }

    /// Looks for work without sleeping, as long as that has been paying off. Returns whether there is some.
    #[cold]
    fn spin_for_work(&mut self) -> bool {
        let Some(plan) = self.spin.begin() else { return false };
        let begin = Instant::now();
        loop {
            let found = self.has_input()
                || self.receiver.has_work()
                || self.receiver.poll(&NO_TIME, &mut self.core) > 0;
            let looked = Instant::now();
            let took = looked - begin;
            if found || took >= plan.time {
                self.spin.end(plan, took, found, &self.core.counters);
                return found;
            }
            rustix::thread::sched_yield();
            if looked.elapsed() > spin::DISPLACED {
                // Somebody else had this CPU: he gets it.
                self.spin.displaced(took);
                return false;
            }
        }
    }
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(0),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

/// Runs a worker so that a bug of ours (a panic) ends the node with its reason instead of a thread in
/// silence.
pub fn run_guarded(mut worker: Worker, directory: &Directory) {
    let name = directory.workers.get(worker.core.index).map_or_else(String::new, |p| p.name.clone());
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run()));
    if outcome.is_err() {
        directory.request_exit(format!("worker {name} failed on an internal error, see the log above"), true);
    }
}
