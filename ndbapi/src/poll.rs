//! Poll-driven sessions: the native API for one thread without a runtime.
//!
//! A session owns its core and its links. The thread that owns the session stages operations into batches,
//! puts them in with [`Session::execute`], sends what has gathered with [`Session::send`], waits with
//! [`Session::poll`] and takes what has become of them with [`Session::next_completion`], told apart by the
//! tags it gave. Batches come back with their results and are used again ([`Session::recycle`]), so that
//! nothing is allocated per operation.

use crate::NdbError;
use crate::batch::Batch;
use crate::connect::{ConnectOptions, Place};
use crate::core::{
    CommitMode, Completion, Core, DictReply, DictRequest, NodeStatus, RowBatch, ScanRef, ScanSpec, ScanTake,
    TransRef,
};
use crate::net::{Links, Received, incarnation};
use crate::table::TableHandle;
use rustix::event::{PollFd, PollFlags, Timespec};
use signals::control::{DictQuery, SchemaChange};
use signals::{ErrorCode, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use transporter::Wake;
use transporter::mgm_link::BlockingNodeLink;

/// How often the core looks at the time.
const TICK: Duration = Duration::from_millis(50);
/// Emptied batches kept for use.
const POOL_MAX: usize = 4_096;
/// The tag of the session's own calls that wait.
const OWN_TAG: u64 = u64::MAX - 1;

/// See the module.
pub struct Session {
    core: Core,
    links: Links,
    wake: Arc<Wake>,
    next_tick: Instant,
    // Boxed because that is how batches travel.
    #[allow(clippy::vec_box)]
    pool: Vec<Box<Batch>>,
    readable: Vec<NodeId>,
    /// The last read left something behind.
    more: bool,
}

/// A process's membership of a cluster: an API node id, under which any number of sessions can be opened.
pub struct Cluster {
    options: ConnectOptions,
    place: Place,
    next_link: AtomicU16,
    /// Keeps the node id ours.
    _mgm: Option<BlockingNodeLink>,
}

impl Cluster {
    /// Joins the cluster at its management server, or in a configuration that is in hand
    /// ([`ConnectOptions::direct`]). Waits for a management server up to [`ConnectOptions::wait`].
    ///
    /// # Errors
    /// No management server can be reached, or there is no free API node id.
    pub fn join(options: ConnectOptions) -> Result<Self, NdbError> {
        let (place, mgm) = match options.place.clone() {
            Some(place) => (place, None),
            None => {
                let link = Self::join_by_mgm(&options)?;
                (crate::connect::place(&link.handle().config(), link.handle().node_id()), Some(link))
            }
        };
        let next_link = AtomicU16::new(options.link);
        Ok(Self { options, place, next_link, _mgm: mgm })
    }

    fn join_by_mgm(options: &ConnectOptions) -> Result<BlockingNodeLink, NdbError> {
        let deadline = Instant::now() + options.wait;
        loop {
            match BlockingNodeLink::join(options.node_options()) {
                Err(error) if error.is_link_trouble() && Instant::now() < deadline => {
                    std::thread::sleep(TICK);
                }
                other => return other.map_err(crate::cluster::mgm_error),
            }
        }
    }

    /// This API node's id.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.place.node
    }

    /// A session with links of its own; it starts connecting at once.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn session(&self) -> Result<Session, NdbError> {
        let link = self.next_link.fetch_add(1, Ordering::Relaxed);
        Session::open_at(&self.options, &self.place, link)
    }
}

impl Session {
    pub(crate) fn open_at(options: &ConnectOptions, place: &Place, link: u16) -> Result<Self, NdbError> {
        let wake = Arc::new(Wake::new().map_err(|e| crate::cluster::out_of_descriptors(&e))?);
        let incarnation = incarnation();
        let links = Links::new(place, link, incarnation, options.connect_timeout, Arc::clone(&wake));
        let core = Core::new(options.core_options(place, link, incarnation));
        let mut session = Self {
            core,
            links,
            wake,
            next_tick: Instant::now(),
            pool: Vec::new(),
            readable: Vec::new(),
            more: false,
        };
        session.links.reconnect(&mut session.core);
        Ok(session)
    }

    /// Waits until every data node of the configuration accepts requests, or at least one when `timeout` is
    /// over.
    ///
    /// # Errors
    /// 4035: none does.
    pub fn wait_ready(&mut self, timeout: Duration) -> Result<(), NdbError> {
        let deadline = Instant::now() + timeout;
        while !self.core.all_ready() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let states: Vec<String> =
                    self.core.node_states().map(|(n, s)| format!("node {n}: {s:?}")).collect();
                let error = NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, states.join(", "));
                return if self.core.is_ready() { Ok(()) } else { Err(error) };
            }
            self.send();
            self.poll(left.min(TICK));
        }
        Ok(())
    }

    /// What is known about every data node.
    pub fn node_states(&self) -> impl Iterator<Item = (NodeId, &NodeStatus)> {
        self.core.node_states()
    }

    /// An empty batch.
    #[inline]
    pub fn batch(&mut self) -> Box<Batch> {
        self.pool.pop().unwrap_or_default()
    }

    /// Takes a batch back for use.
    #[inline]
    pub fn recycle(&mut self, mut batch: Box<Batch>) {
        batch.clear();
        if self.pool.len() < POOL_MAX {
            self.pool.push(batch);
        }
    }

    /// Begins a transaction of several executes.
    ///
    /// # Errors
    /// 4006: too many transactions.
    pub fn begin(&mut self) -> Result<TransRef, NdbError> {
        self.core.begin()
    }

    /// Lets a transaction go; it is rolled back if it was not committed.
    pub fn release(&mut self, trans: TransRef) {
        self.core.release(self.links.now(), trans);
    }

    /// Puts a batch in: as a transaction of its own, or in one begun before. Answered by
    /// [`Completion::Executed`].
    #[inline]
    pub fn execute(&mut self, trans: Option<TransRef>, batch: Box<Batch>, mode: CommitMode, tag: u64) {
        self.core.execute(self.links.now(), trans, batch, mode, tag);
    }

    /// Rolls back, wholly or keeping the first `keep` operations. Answered by [`Completion::RolledBack`].
    pub fn rollback(&mut self, trans: TransRef, keep: Option<u32>, tag: u64) {
        self.core.rollback(self.links.now(), trans, keep, tag);
    }

    /// Starts a scan; [`Completion::ScanReady`] says when [`Self::scan_take`] has more after it had nothing.
    ///
    /// # Errors
    /// See [`Core::scan`].
    pub fn scan(&mut self, trans: Option<TransRef>, spec: ScanSpec, tag: u64) -> Result<ScanRef, NdbError> {
        self.core.scan(self.links.now(), trans, spec, tag)
    }

    /// The next rows of a scan.
    pub fn scan_take(&mut self, scan: ScanRef) -> ScanTake {
        self.core.scan_take(self.links.now(), scan)
    }

    /// Ends a scan early.
    pub fn scan_close(&mut self, scan: ScanRef) {
        self.core.scan_close(self.links.now(), scan);
    }

    /// Sends what has gathered.
    #[inline]
    pub fn send(&mut self) {
        self.links.send(&mut self.core);
    }

    /// The next thing that became of a request.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.core.next_completion()
    }

    /// Reads what has arrived, waiting up to `timeout` if nothing has, and sends what could not be sent
    /// before.
    pub fn poll(&mut self, timeout: Duration) {
        if !self.more {
            self.wait(timeout);
        }
        let readable = std::mem::take(&mut self.readable);
        let more = self.more;
        let found = self.links.receive(&mut self.core, |node| more || readable.contains(&node));
        self.more = found == Received::More;
        self.readable = readable;
        self.readable.clear();
        let now = Instant::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.links.tick(&mut self.core);
            self.send();
        }
    }

    /// Sleeps until a link has something, the wake-up is used, or the time is over.
    fn wait(&mut self, timeout: Duration) {
        let until_tick = self.next_tick.saturating_duration_since(Instant::now());
        let mut timeout = timeout.min(until_tick);
        if !self.links.arm() {
            timeout = Duration::ZERO;
        }
        let (mut wakened, mut writable) = (false, false);
        {
            let mut nodes: [NodeId; FDS_MAX] = [NodeId(0); FDS_MAX];
            let mut fds: [PollFd<'_>; FDS_MAX] =
                std::array::from_fn(|_| PollFd::new(&*self.wake, PollFlags::IN));
            let mut count = 1;
            for interest in self.links.interests().take(FDS_MAX - 1) {
                let mut flags = PollFlags::IN;
                if interest.wants_write {
                    flags |= PollFlags::OUT;
                }
                nodes[count] = interest.node;
                fds[count] = PollFd::from_borrowed_fd(interest.fd, flags);
                count += 1;
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(timeout.subsec_nanos()),
            };
            // An interrupted wait is a short one.
            if rustix::event::poll(&mut fds[..count], Some(&timeout)).unwrap_or(0) > 0 {
                wakened = !fds[0].revents().is_empty();
                for (fd, node) in fds[1..count].iter().zip(&nodes[1..count]) {
                    let events = fd.revents();
                    writable |= events.contains(PollFlags::OUT);
                    if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                        self.readable.push(*node);
                    }
                }
            }
        }
        self.links.disarm();
        if wakened {
            self.wake.drain();
            self.links.reconnect(&mut self.core);
        }
        if writable {
            self.send();
        }
    }

    /// A table, from the cache or a data node; waits up to `timeout`.
    ///
    /// # Errors
    /// 723: there is no such table; 4035: no answer.
    pub fn table(&mut self, database: &str, name: &str, timeout: Duration) -> Result<TableHandle, NdbError> {
        if let Some(table) = self.core.cached_table(database, name) {
            return Ok(table);
        }
        let query = DictQuery::TableByName { database: database.into(), name: name.into() };
        match self.dictionary(DictRequest::Query(query), timeout)? {
            DictReply::Table(table) => Ok(table),
            DictReply::Databases(_) | DictReply::Tables(_) | DictReply::Changed(_) => {
                Err(ErrorCode::MALFORMED_MESSAGE.into())
            }
        }
    }

    /// Changes the schema; waits up to `timeout`.
    ///
    /// # Errors
    /// The master's dict refuses it, or its outcome is unknown.
    pub fn change_schema(&mut self, change: SchemaChange, timeout: Duration) -> Result<(), NdbError> {
        self.dictionary(DictRequest::Change(change), timeout).map(drop)
    }

    /// Asks or changes the dictionary and waits. Completions of other requests stay in line behind.
    ///
    /// # Errors
    /// The dictionary refuses, or nothing came in time.
    pub fn dictionary(&mut self, request: DictRequest, timeout: Duration) -> Result<DictReply, NdbError> {
        let deadline = Instant::now() + timeout;
        while !self.core.is_ready() && Instant::now() < deadline {
            self.send();
            self.poll(TICK);
        }
        self.core.dictionary(self.links.now(), request, OWN_TAG);
        loop {
            let mut others = Vec::new();
            let mut answer = None;
            while let Some(completion) = self.core.next_completion() {
                match completion {
                    Completion::Dictionary { tag: OWN_TAG, result } => answer = Some(result),
                    other => others.push(other),
                }
            }
            for other in others {
                self.core.put_back(other);
            }
            if let Some(answer) = answer {
                return answer;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, "no answer from the dictionary"));
            }
            self.send();
            self.poll(left);
        }
    }

    /// Reads a whole table, batch by batch, and waits for it; for tools and checks.
    ///
    /// # Errors
    /// The scan failed, or took longer than `timeout`.
    pub fn scan_all(
        &mut self,
        spec: ScanSpec,
        timeout: Duration,
        mut each: impl FnMut(&RowBatch),
    ) -> Result<(), NdbError> {
        let deadline = Instant::now() + timeout;
        let scan = self.scan(None, spec, crate::core::NOBODY)?;
        loop {
            match self.scan_take(scan) {
                ScanTake::Rows(rows) => each(&rows),
                ScanTake::End => return Ok(()),
                ScanTake::Failed(error) => return Err(error),
                ScanTake::Pending => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        self.scan_close(scan);
                        return Err(NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, "the scan took too long"));
                    }
                    self.send();
                    self.poll(left);
                }
            }
        }
    }
}

/// Descriptors one wait looks at; data nodes beyond are read at the next tick at the latest.
const FDS_MAX: usize = 160;
