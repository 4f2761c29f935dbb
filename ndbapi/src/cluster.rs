//! ClusterConnection: the asynchronous driver. Tasks of a tokio runtime share one session with the cluster.
//!
//! Tasks put their requests into the shared core under a short mutex, never held across an await, and wake
//! the driver task; it writes what all of them have asked in the meantime with one system call per data
//! node, reads the answers, and wakes the tasks they are for. So operations of concurrent tasks are batched
//! without anybody asking for it.
//!
//! While no data node can be reached, calls wait up to [`ConnectOptions::wait`] and then fail with 4035;
//! the driver goes on connecting for as long as the connection lives.
//!
//! Who waits for readiness is looked at with every tick of the driver, not by a timer of its own, so that a
//! connection whose clock and links somebody else moves ([`crate::driven`]) waits by that clock.

use crate::NdbError;
use crate::batch::Batch;
use crate::connect::{ConnectOptions, Place};
use crate::core::{CommitMode, Completion, Core, NOBODY, NodeStatus, Now};
use crate::dictionary::Dictionary;
use crate::net::{Links, Received, incarnation};
use crate::transaction::{Results, Transaction};
use signals::{ErrorCode, NodeId};
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::Interest as FdInterest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};
use transporter::Wake;
use transporter::mgm_link::{MgmError, NodeLink, NodeLinkHandle};

/// How often the core looks at the time.
const TICK: Duration = Duration::from_millis(50);

/// A session with a cluster, shared by all who clone it; it ends with the last clone.
#[derive(Clone)]
pub struct ClusterConnection {
    pub(crate) inner: Arc<Inner>,
    end: Arc<EndOfDriver>,
}

/// What those who wait for the cluster look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Readiness {
    /// Data nodes that accept requests.
    started: usize,
    /// Ticks of the driver, so that everybody looks at the time once per tick.
    ticks: u64,
}

impl Readiness {
    /// Tells those who wait how many nodes are started, and whether time went on.
    pub(crate) fn tell(sender: &watch::Sender<Self>, started: usize, ticked: bool) {
        sender.send_if_modified(|state| {
            let changed = ticked || state.started != started;
            state.started = started;
            state.ticks += u64::from(ticked);
            changed
        });
    }
}

/// Where the time comes from.
pub(crate) enum Clock {
    /// The machine, since this moment.
    Machine(Instant),
    /// Whoever drives the connection; nanoseconds.
    Told(AtomicU64),
}

pub(crate) struct Inner {
    shared: Mutex<Shared>,
    notify: Arc<Notify>,
    clock: Clock,
    ready: watch::Receiver<Readiness>,
    options: ConnectOptions,
    place: Place,
    next_link: AtomicU16,
    /// Keeps the node id ours.
    mgm: Mutex<Option<NodeLink>>,
    mgm_handle: Option<NodeLinkHandle>,
}

pub(crate) struct Shared {
    pub(crate) core: Core,
    waiters: Vec<Waiter>,
    free: Vec<u32>,
    /// Waiters in use.
    used: u32,
}

enum Waiter {
    Free,
    Waiting(Option<Waker>),
    Done(Completion),
    /// A scan's.
    Subscribed(Arc<Notify>),
    /// Whoever waited is gone.
    Abandoned,
}

/// Stops the driver task when the last clone of the connection is dropped.
struct EndOfDriver {
    /// None if somebody else drives.
    task: Option<tokio::task::AbortHandle>,
}

impl Drop for EndOfDriver {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl ClusterConnection {
    /// Connects by connect string: `host:port` of a management server, or several separated by commas.
    /// Returns when a data node accepts requests.
    ///
    /// # Errors
    /// No management server or no data node can be reached within the time ([`ConnectOptions::wait`]), or
    /// there is no free API node id.
    pub async fn connect(connect_string: &str) -> Result<Self, NdbError> {
        Self::connect_with(ConnectOptions::new(connect_string)).await
    }

    /// As [`Self::connect`], with all options.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_with(options: ConnectOptions) -> Result<Self, NdbError> {
        let connection = Self::open(options).await?;
        connection.wait_ready().await?;
        Ok(connection)
    }

    /// Joins the cluster at its management server and returns without waiting for data nodes; calls wait
    /// for them as [`ConnectOptions::wait`] says. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// No management server can be reached within the time, or there is no free API node id.
    pub async fn open(options: ConnectOptions) -> Result<Self, NdbError> {
        if let Some(place) = options.place.clone() {
            return Self::open_at(options, place, None);
        }
        let deadline = Instant::now() + options.wait;
        let joined = loop {
            match NodeLink::join(options.node_options()).await {
                Err(error) if error.is_link_trouble() && Instant::now() < deadline => {
                    tracing::debug!("management server: {error}; trying again");
                    tokio::time::sleep(TICK).await;
                }
                other => break other,
            }
        };
        let link = joined.map_err(mgm_error)?;
        let place = crate::connect::place(&link.handle().config(), link.handle().node_id());
        Self::open_at(options, place, Some(link))
    }

    fn open_at(options: ConnectOptions, place: Place, mgm: Option<NodeLink>) -> Result<Self, NdbError> {
        let wake = Wake::new().map_err(|e| out_of_descriptors(&e))?;
        let incarnation = incarnation();
        let links = Links::new(&place, options.link, incarnation, options.connect_timeout, Arc::new(wake));
        let (inner, ready) = Inner::new(options, place, incarnation, Clock::Machine(Instant::now()), mgm);
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| {
            NdbError::with(ErrorCode::STATUS_ERROR, "a connection is opened inside a tokio runtime")
        })?;
        let driver = Driver::new(Arc::clone(&inner), links, ready)?;
        let task = Some(runtime.spawn(driver.run()).abort_handle());
        Ok(Self { inner, end: Arc::new(EndOfDriver { task }) })
    }

    /// A connection that nobody drives yet.
    pub(crate) fn undriven(
        options: ConnectOptions,
        place: Place,
        incarnation: u64,
    ) -> (Self, watch::Sender<Readiness>) {
        let clock = Clock::Told(AtomicU64::new(0));
        let (inner, ready) = Inner::new(options, place, incarnation, clock, None);
        (Self { inner, end: Arc::new(EndOfDriver { task: None }) }, ready)
    }

    /// Waits until a data node accepts requests.
    ///
    /// # Errors
    /// 4035: none did within [`ConnectOptions::wait`].
    pub async fn wait_ready(&self) -> Result<(), NdbError> {
        self.wait_started(1, self.inner.options.wait).await
    }

    /// Waits until every data node of the configuration accepts requests.
    ///
    /// # Errors
    /// 4035: `timeout` is over.
    pub async fn wait_all_ready(&self, timeout: Duration) -> Result<(), NdbError> {
        self.wait_started(self.inner.place.data_nodes.len(), timeout).await
    }

    async fn wait_started(&self, count: usize, wait: Duration) -> Result<(), NdbError> {
        // Every execute comes by here: no clock and no reference count while all is well.
        if self.inner.ready.borrow().started >= count {
            return Ok(());
        }
        let deadline = self.now().after_ms(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let mut ready = self.inner.ready.clone();
        let waited = ready.wait_for(|s| s.started >= count || self.now() >= deadline).await;
        match waited {
            Ok(state) if state.started >= count => Ok(()),
            Ok(_) | Err(_) => Err(self.unavailable()),
        }
    }

    fn unavailable(&self) -> NdbError {
        let states: Vec<String> =
            self.node_states().iter().map(|(n, s)| format!("node {n}: {s:?}")).collect();
        NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, states.join(", "))
    }

    /// What is known about every data node.
    #[must_use]
    pub fn node_states(&self) -> Vec<(NodeId, NodeStatus)> {
        self.lock().core.node_states().map(|(n, s)| (n, s.clone())).collect()
    }

    /// This API node's id.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.inner.place.node
    }

    /// The newest configuration, if a management server gave it.
    #[must_use]
    pub fn config(&self) -> Option<Arc<config::ClusterConfig>> {
        self.inner.mgm_handle.as_ref().map(NodeLinkHandle::config)
    }

    /// Leaves the cluster: the API node id is free when this returns. Without it, the id is free when the
    /// management server has noticed that the process is gone. What is still under way ends as if all links
    /// were lost.
    pub async fn close(self) {
        self.tell(Core::shut_down);
        let link = self.inner.mgm.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(link) = link {
            link.leave().await;
        }
    }

    /// Begins a transaction. Nothing is sent before its first execute.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// The tables and databases of the cluster.
    #[must_use]
    pub fn dictionary(&self) -> Dictionary {
        Dictionary::new(self.clone())
    }

    /// Executes a batch as a transaction of its own: committed reads go straight to the rows' nodes,
    /// everything else is committed together.
    ///
    /// # Errors
    /// The transaction was rolled back, or its outcome is unknown.
    pub async fn execute(&self, batch: Box<Batch>) -> Result<Results, NdbError> {
        let (batch, result) = self.run(None, batch, CommitMode::Commit).await;
        result.map(|executed| Results::new(batch, executed))
    }

    /// A poll-driven session beside this one, with links of its own, for one thread.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn poll_session(&self) -> Result<crate::poll::Session, NdbError> {
        let link = self.inner.next_link.fetch_add(1, Ordering::Relaxed);
        crate::poll::Session::open_at(&self.inner.options, &self.inner.place, link)
    }

    /// Executes in an optional transaction and waits for the end; the batch comes back in any case.
    pub(crate) async fn run(
        &self,
        trans: Option<crate::core::TransRef>,
        batch: Box<Batch>,
        mode: CommitMode,
    ) -> (Box<Batch>, Result<crate::core::Executed, NdbError>) {
        if trans.is_none()
            && let Err(error) = self.wait_ready().await
        {
            return (batch, Err(error));
        }
        let wait = self.ask(|core, now, tag| core.execute(now, trans, batch, mode, tag));
        match wait.await {
            Completion::Executed { batch, result, .. } => (batch, result),
            Completion::RolledBack { .. } | Completion::Dictionary { .. } | Completion::ScanReady { .. } => {
                (Box::default(), Err(ErrorCode::STATUS_ERROR.into()))
            }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.inner.lock()
    }

    pub(crate) fn now(&self) -> Now {
        self.inner.now()
    }

    /// Puts something to the core, to be answered under a tag, and wakes the driver.
    pub(crate) fn ask(&self, put: impl FnOnce(&mut Core, Now, u64)) -> Wait {
        let now = self.now();
        let mut locked = self.lock();
        let tag = locked.new_waiter();
        put(&mut locked.core, now, tag);
        let (wakers, to_send) = (locked.deliver(), locked.core.has_outgoing());
        drop(locked);
        wake_all(wakers);
        if to_send {
            self.inner.notify.notify_one();
        }
        Wait { connection: self.clone(), tag: Some(tag) }
    }

    /// Puts something to the core that nobody waits for.
    pub(crate) fn tell(&self, put: impl FnOnce(&mut Core, Now)) {
        let now = self.now();
        let mut locked = self.lock();
        put(&mut locked.core, now);
        let (wakers, to_send) = (locked.deliver(), locked.core.has_outgoing());
        drop(locked);
        wake_all(wakers);
        if to_send {
            self.inner.notify.notify_one();
        }
    }

    /// A tag for news that may come any number of times: each notifies `notify`.
    pub(crate) fn subscribe(&self, notify: Arc<Notify>) -> u64 {
        let mut locked = self.lock();
        let tag = locked.new_waiter();
        locked.waiters[tag as usize] = Waiter::Subscribed(notify);
        tag
    }

    pub(crate) fn unsubscribe(&self, tag: u64) {
        self.lock().free_waiter(tag);
    }

    /// Whether two handles are of one connection.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.end, &other.end)
    }
}

impl std::fmt::Debug for ClusterConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterConnection(API node {})", self.inner.place.node)
    }
}

pub(crate) fn mgm_error(error: MgmError) -> NdbError {
    NdbError::with(error.code, error.detail)
}

pub(crate) fn out_of_descriptors(error: &std::io::Error) -> NdbError {
    NdbError::with(ErrorCode::MEMORY_ALLOCATION_API, error.to_string())
}

impl Inner {
    fn new(
        options: ConnectOptions,
        place: Place,
        incarnation: u64,
        clock: Clock,
        mgm: Option<NodeLink>,
    ) -> (Arc<Self>, watch::Sender<Readiness>) {
        let core = Core::new(options.core_options(&place, options.link, incarnation));
        let (ready_sender, ready) = watch::channel(Readiness::default());
        let inner = Arc::new(Self {
            shared: Mutex::new(Shared { core, waiters: Vec::new(), free: Vec::new(), used: 0 }),
            notify: Arc::new(Notify::new()),
            clock,
            ready,
            next_link: AtomicU16::new(options.link.wrapping_add(1)),
            options,
            place,
            mgm_handle: mgm.as_ref().map(|link| link.handle().clone()),
            mgm: Mutex::new(mgm),
        });
        (inner, ready_sender)
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic while the lock was held is a fault of ours; the state is values and goes on being usable.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Now {
        match &self.clock {
            Clock::Machine(started) => Now(started.elapsed().as_nanos() as u64),
            Clock::Told(nanos) => Now(nanos.load(Ordering::Relaxed)),
        }
    }

    /// The driver's: it is `now`. Without effect on a connection that goes by the machine's clock.
    pub(crate) fn set_now(&self, now: Now) {
        if let Clock::Told(nanos) = &self.clock {
            nanos.store(now.0, Ordering::Relaxed);
        }
    }
}

impl Shared {
    fn new_waiter(&mut self) -> u64 {
        self.used += 1;
        match self.free.pop() {
            Some(index) => {
                self.waiters[index as usize] = Waiter::Waiting(None);
                u64::from(index)
            }
            None => {
                self.waiters.push(Waiter::Waiting(None));
                self.waiters.len() as u64 - 1
            }
        }
    }

    fn free_waiter(&mut self, tag: u64) {
        if let Some(waiter) = self.waiters.get_mut(tag as usize)
            && !matches!(waiter, Waiter::Free)
        {
            *waiter = Waiter::Free;
            self.free.push(tag as u32);
            self.used -= 1;
        }
    }

    /// Takes what has become of requests to those who wait; returns whom to wake once the lock is free.
    pub(crate) fn deliver(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(completion) = self.core.next_completion() {
            let tag = match &completion {
                Completion::Executed { tag, .. }
                | Completion::RolledBack { tag, .. }
                | Completion::Dictionary { tag, .. }
                | Completion::ScanReady { tag } => *tag,
            };
            debug_assert_ne!(tag, NOBODY);
            match self.waiters.get_mut(tag as usize) {
                Some(Waiter::Abandoned) => self.free_waiter(tag),
                Some(waiter @ Waiter::Waiting(_)) => {
                    if let Waiter::Waiting(Some(waker)) = std::mem::replace(waiter, Waiter::Done(completion))
                    {
                        wakers.push(waker);
                    }
                }
                Some(Waiter::Subscribed(notify)) => notify.notify_one(),
                Some(Waiter::Free | Waiter::Done(_)) | None => {}
            }
        }
        wakers
    }
}

pub(crate) fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// Waits for one completion. Dropped before it came, the completion is thrown away when it does.
pub(crate) struct Wait {
    connection: ClusterConnection,
    tag: Option<u64>,
}

impl Future for Wait {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Completion> {
        let Some(tag) = self.tag else { return Poll::Pending };
        let connection = self.connection.clone();
        let mut locked = connection.lock();
        match locked.waiters.get_mut(tag as usize) {
            Some(Waiter::Waiting(waker)) => {
                if !waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Some(waiter @ Waiter::Done(_)) => {
                let done = std::mem::replace(waiter, Waiter::Abandoned);
                locked.free_waiter(tag);
                self.tag = None;
                match done {
                    Waiter::Done(completion) => Poll::Ready(completion),
                    _ => Poll::Pending,
                }
            }
            Some(Waiter::Free | Waiter::Subscribed(_) | Waiter::Abandoned) | None => Poll::Pending,
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(tag) = self.tag else { return };
        let mut locked = self.connection.lock();
        match locked.waiters.get_mut(tag as usize) {
            Some(Waiter::Done(_)) => locked.free_waiter(tag),
            Some(waiter @ Waiter::Waiting(_)) => *waiter = Waiter::Abandoned,
            Some(Waiter::Free | Waiter::Subscribed(_) | Waiter::Abandoned) | None => {}
        }
    }
}

/// A TCP link as tokio's reactor knows it. The descriptor is a duplicate: it is taken out of the reactor by
/// its own number, whatever became of the link's.
struct LinkFd {
    node: NodeId,
    serial: u64,
    fd: AsyncFd<OwnedFd>,
    wants_write: bool,
}

/// Registers a descriptor with the reactor.
// Deprecated for types that may give another descriptor later; the replacement is `unsafe` because of them.
// An `OwnedFd` never does.
#[allow(deprecated)]
fn watch_fd(fd: OwnedFd, interest: FdInterest) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// The task that owns the links.
struct Driver {
    inner: Arc<Inner>,
    links: Links,
    ready: watch::Sender<Readiness>,
    fds: Vec<LinkFd>,
    wake: AsyncFd<OwnedFd>,
    readable: Vec<NodeId>,
}

impl Driver {
    fn new(inner: Arc<Inner>, links: Links, ready: watch::Sender<Readiness>) -> Result<Self, NdbError> {
        let wake = links.wake().as_fd().try_clone_to_owned().map_err(|e| out_of_descriptors(&e))?;
        let wake = watch_fd(wake, FdInterest::READABLE).map_err(|e| out_of_descriptors(&e))?;
        Ok(Self { inner, links, ready, fds: Vec::new(), wake, readable: Vec::new() })
    }

    async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let notify = Arc::clone(&self.inner.notify);
        loop {
            let crowded = self.exchange();
            let ticked = {
                let mut notified = pin!(notify.notified());
                let links = &mut self.links;
                let (fds, wake, readable) = (&self.fds, &self.wake, &mut self.readable);
                std::future::poll_fn(|cx| {
                    let found = poll_links(cx, links, fds, wake, readable);
                    let asked = notified.as_mut().poll(cx).is_ready();
                    let ticked = tick.poll_tick(cx).is_ready();
                    if found || asked || ticked { Poll::Ready(ticked) } else { Poll::Pending }
                })
                .await
            };
            self.links.disarm();
            if crowded && self.readable.is_empty() {
                // Several tasks are at it: let those that can run put their requests in, too.
                tokio::task::yield_now().await;
            }
            self.receive(ticked).await;
        }
    }

    /// Sends what was put in. Returns whether several tasks have requests under way.
    fn exchange(&mut self) -> bool {
        let mut locked = self.inner.lock();
        self.links.collect(&mut locked.core);
        let crowded = locked.used > 1;
        drop(locked);
        self.links.write();
        self.follow_links();
        crowded
    }

    async fn receive(&mut self, ticked: bool) {
        while self.receive_once(ticked) == Received::More {
            tokio::task::yield_now().await;
        }
        self.readable.clear();
    }

    fn receive_once(&mut self, ticked: bool) -> Received {
        let mut locked = self.inner.lock();
        let readable = &self.readable;
        let found = self.links.receive(&mut locked.core, |node| readable.contains(&node));
        if ticked {
            self.links.tick(&mut locked.core);
        } else {
            self.links.reconnect(&mut locked.core);
        }
        let wakers = locked.deliver();
        let started = locked.core.started_nodes();
        drop(locked);
        wake_all(wakers);
        Readiness::tell(&self.ready, started, ticked);
        found
    }

    /// Lets the reactor know links that are new, and forgets those that are gone.
    fn follow_links(&mut self) {
        let links = &self.links;
        self.fds.retain(|fd| links.interests().any(|i| i.node == fd.node && i.serial == fd.serial));
        for interest in self.links.interests() {
            let known = self.fds.iter_mut().find(|fd| fd.node == interest.node);
            if let Some(known) = known {
                known.wants_write = interest.wants_write;
                continue;
            }
            let registered = interest
                .fd
                .try_clone_to_owned()
                .and_then(|fd| watch_fd(fd, FdInterest::READABLE | FdInterest::WRITABLE));
            match registered {
                Ok(fd) => self.fds.push(LinkFd {
                    node: interest.node,
                    serial: interest.serial,
                    fd,
                    wants_write: interest.wants_write,
                }),
                Err(error) => {
                    tracing::error!("the link to node {} cannot be watched: {error}", interest.node);
                }
            }
        }
    }
}

/// Looks at all links; those that are readable are noted. Whether there is something to do.
fn poll_links(
    cx: &mut Context<'_>,
    links: &mut Links,
    fds: &[LinkFd],
    wake: &AsyncFd<OwnedFd>,
    readable: &mut Vec<NodeId>,
) -> bool {
    let mut found = false;
    // Readiness is cleared before the link is read to its end, so that nothing that arrives meanwhile is
    // missed.
    for link in fds {
        while let Poll::Ready(Ok(mut guard)) = link.fd.poll_read_ready(cx) {
            guard.clear_ready();
            found = true;
            if !readable.contains(&link.node) {
                readable.push(link.node);
            }
        }
        while link.wants_write
            && let Poll::Ready(Ok(mut guard)) = link.fd.poll_write_ready(cx)
        {
            guard.clear_ready();
            found = true;
        }
    }
    while let Poll::Ready(Ok(mut guard)) = wake.poll_read_ready(cx) {
        guard.clear_ready();
        links.wake().drain();
        found = true;
    }
    found || !links.arm()
}
