//! Core: what a worker's blocks need around them - the outbox, the ways to other workers and to links.
//!
//! It takes frames to where their target lives: handled in place if it is this worker, copied into the
//! batch for another worker if not. [`Core::ship`] empties the outbox once per turn: one publication per
//! ring, one write per link. Buffers circulate; in the steady state nothing is allocated.

use crate::directory::{Birth, Death, Directory};
use crate::jobs::JobSender;
use crate::link_out::LinkOut;
use crate::send::Sending;
use crate::usage::Counters;
use kernel::{BlockSet, Effect, Event, Now, Outbox, RouteId, Severity};
use signals::frame::{Invalid, next_frame};
use signals::{BlockNumber, BlockRef};
use std::sync::Arc;
use transporter::PeerRole;

/// Signals among the worker's own blocks are followed this many steps before sockets and rings get their
/// turn.
const GENERATIONS: usize = 6;
/// With more than this in the outbox, it is shipped in the middle of a turn.
pub(crate) const SHIP_BYTES: usize = 192 << 10;
/// With more than this refused by full rings, no requests are read.
const BACKLOG_BYTES_MAX: usize = 4 << 20;
const BLOCKS: usize = 16;

/// Which worker hosts a block instance.
#[derive(Clone, Default)]
pub struct Placement {
    workers: Vec<Vec<Option<u16>>>,
}

impl Placement {
    /// Notes that `worker` hosts `instance` of `block`.
    pub fn set(&mut self, block: BlockNumber, instance: u16, worker: usize) {
        self.workers.resize(BLOCKS, Vec::new());
        let list = &mut self.workers[block as usize];
        if list.len() <= usize::from(instance) {
            list.resize(usize::from(instance) + 1, None);
        }
        list[usize::from(instance)] = u16::try_from(worker).ok();
    }

    /// The worker that hosts `target`.
    #[inline]
    #[must_use]
    pub fn find(&self, target: BlockRef) -> Option<usize> {
        let list = self.workers.get(usize::from(target.block_byte()))?;
        list.get(usize::from(target.instance())).copied().flatten().map(usize::from)
    }

    /// Every instance with its worker.
    pub fn all(&self) -> impl Iterator<Item = (BlockNumber, u16, usize)> + '_ {
        self.workers.iter().enumerate().flat_map(|(block, list)| {
            let block = u8::try_from(block).ok().and_then(BlockNumber::from_wire);
            list.iter().enumerate().filter_map(move |(instance, worker)| {
                Some((block?, u16::try_from(instance).ok()?, usize::from((*worker)?)))
            })
        })
    }
}

/// See the module.
pub struct Core {
    pub(crate) index: usize,
    pub(crate) now: Now,
    pub(crate) blocks: BlockSet,
    pub(crate) out: Outbox,
    pub(crate) directory: Arc<Directory>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) sending: Sending,
    pub(crate) placement: Placement,
    /// Towards other workers, by index.
    pub(crate) senders: Vec<Option<JobSender>>,
    /// What goes to them, by index: frames read from links, then the outbox's, then what a full ring refused.
    batches: Vec<Vec<u8>>,
    /// Links by number.
    links: Vec<Option<Arc<LinkOut>>>,
    /// Frames for this worker's own blocks that a ship found unhandled.
    carry: Vec<u8>,
    spare: Vec<u8>,
    mgm: Option<crossbeam_channel::Sender<Vec<u8>>>,
}

impl Core {
    /// The surroundings of worker `index`.
    pub fn new(
        index: usize,
        blocks: BlockSet,
        out: Outbox,
        directory: Arc<Directory>,
        placement: Placement,
        senders: Vec<Option<JobSender>>,
        mgm: Option<crossbeam_channel::Sender<Vec<u8>>>,
    ) -> Self {
        let counters = directory.workers.get(index).map(|port| port.counters.clone()).unwrap_or_default();
        let batches = senders.iter().map(|_| Vec::new()).collect();
        let mut core = Self {
            index,
            now: Now(0),
            blocks,
            out,
            directory,
            counters,
            sending: Sending { worker: index, nosend: false, busy: 0 },
            placement,
            senders,
            batches,
            links: Vec::new(),
            carry: Vec::new(),
            spare: Vec::new(),
            mgm,
        };
        for (block, instance, worker) in core.placement.clone().all() {
            if worker != index {
                core.out.set_local_route(block, instance, route_of(worker));
            }
        }
        if core.mgm.is_some() {
            core.out.set_local_route(BlockNumber::Mgm, 0, core.directory.mgm_route());
        }
        core
    }

    /// Takes a checked frame from a link to its target.
    ///
    /// # Errors
    /// The frame is no signal, or nobody here is its target: close the link.
    #[inline]
    pub(crate) fn deliver(&mut self, target: BlockRef, frame: &[u8]) -> Result<(), Invalid> {
        match self.placement.find(target) {
            Some(worker) if worker == self.index => self.blocks.handle(self.now, frame, &mut self.out),
            Some(worker) => {
                self.batches[worker].extend_from_slice(frame);
                Ok(())
            }
            None => Err(Invalid("frame for a block that is not here")),
        }
    }

    /// Handles a frame of this node's own making.
    #[inline]
    pub(crate) fn handle_own(&mut self, frame: &[u8]) {
        if let Err(invalid) = self.blocks.handle(self.now, frame, &mut self.out) {
            self.own_fault(invalid);
        }
    }

    #[cold]
    fn own_fault(&mut self, invalid: Invalid) {
        debug_assert!(false, "a signal of our own is malformed: {invalid}");
        self.out.event(Severity::Error, format!("a signal of our own is malformed: {invalid}"));
    }

    /// Handles what this worker's blocks sent each other, a few steps deep; returns how many signals.
    pub(crate) fn drain_own(&mut self) -> usize {
        let mut count = 0;
        for _ in 0..GENERATIONS {
            let mut batch = std::mem::take(&mut self.carry);
            if batch.is_empty() {
                let empty = std::mem::take(&mut self.spare);
                batch = self.out.swap_self(empty);
            }
            if batch.is_empty() {
                self.spare = batch;
                break;
            }
            let mut rest = &batch[..];
            while let Ok(Some((frame, tail))) = next_frame(rest) {
                self.handle_own(frame);
                rest = tail;
                count += 1;
            }
            batch.clear();
            self.spare = batch;
            if self.out.pending_total() > SHIP_BYTES {
                self.ship();
            }
        }
        count
    }

    /// Whether blocks of this worker have signals for each other left.
    pub(crate) fn has_own(&self) -> bool {
        !self.carry.is_empty() || self.out.pending(RouteId::SELF) > 0
    }

    /// Sends everything in the outbox on its way. Whatever a full ring refuses stays for the next call.
    pub(crate) fn ship(&mut self) {
        while let Some((route, buffer)) = self.out.take_dirty() {
            let length = buffer.len() as u64;
            let back = match route {
                RouteId::SELF => self.keep_own(buffer),
                route if usize::from(route.0) <= self.senders.len() => {
                    self.pass_to_worker(usize::from(route.0) - 1, buffer)
                }
                route => self.pass_to_link(route, buffer),
            };
            self.out.give_back(route, back);
            Counters::add(&self.counters.batches, 1);
            Counters::add(&self.counters.shipped_bytes, length);
        }
        for (sender, batch) in self.senders.iter_mut().zip(&mut self.batches) {
            if let Some(sender) = sender {
                sender.send(batch);
            }
        }
        if self.out.has_news() {
            self.news();
        }
    }

    fn keep_own(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        if self.carry.is_empty() {
            return std::mem::replace(&mut self.carry, buffer);
        }
        self.carry.append(&mut buffer);
        buffer
    }

    fn pass_to_worker(&mut self, worker: usize, mut buffer: Vec<u8>) -> Vec<u8> {
        let batch = &mut self.batches[worker];
        if batch.is_empty() {
            return std::mem::replace(batch, buffer);
        }
        batch.append(&mut buffer);
        buffer
    }

    fn pass_to_link(&mut self, route: RouteId, mut buffer: Vec<u8>) -> Vec<u8> {
        if route == self.directory.mgm_route() {
            if let Some(mgm) = &self.mgm {
                let _ = mgm.try_send(buffer);
            }
            return Vec::new();
        }
        let number = usize::from(route.0.saturating_sub(self.directory.first_link_route()));
        match self.links.get(number) {
            Some(Some(link)) => {
                let back = link.append(buffer);
                let written = if self.leaves(link) { link.hand_over() } else { link.flush() };
                Counters::add(&self.counters.sent_bytes, written as u64);
                back
            }
            // The link went down between the signal and now; its receiver's failure is being handled.
            _ => {
                buffer.clear();
                buffer
            }
        }
    }

    /// Whether this worker leaves writing to that link's send instance.
    #[inline]
    fn leaves(&self, link: &LinkOut) -> bool {
        link.post().is_some_and(|post| self.sending.leaves(post))
    }

    /// The owner's: a link's carrier has room again, or might have.
    pub(crate) fn on_room(&self, link: &Arc<LinkOut>) {
        let written = if self.leaves(link) { link.hand_over_room() } else { link.on_room() };
        Counters::add(&self.counters.sent_bytes, written as u64);
    }

    /// Bytes that full rings refused.
    pub(crate) fn backlog(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// Whether other workers are so far behind that no more requests should be read.
    pub(crate) fn is_behind(&self) -> bool {
        self.backlog() > BACKLOG_BYTES_MAX
    }

    /// Sets the route of a new link.
    pub(crate) fn link_up(&mut self, birth: &Birth) {
        let number = usize::from(birth.route.0 - self.directory.first_link_route());
        if self.links.len() <= number {
            self.links.resize_with(number + 1, || None);
        }
        self.links[number] = Some(birth.out.clone());
        let peer = &birth.out.peer;
        match peer.role {
            PeerRole::DataNode => self.out.set_node_route(peer.node, Some(birth.route)),
            PeerRole::ApiNode => {
                let client = BlockRef::new(peer.node, BlockNumber::Api, peer.link);
                self.out.set_session(client, peer.incarnation);
                self.out.set_client_route(client, Some(birth.route));
            }
        }
    }

    /// Forgets a link. What the outbox held for it is dropped by the ship before.
    pub(crate) fn link_down(&mut self, death: &Death) {
        let peer = &death.peer;
        match peer.role {
            PeerRole::DataNode => self.out.set_node_route(peer.node, None),
            PeerRole::ApiNode => {
                self.out.set_client_route(BlockRef::new(peer.node, BlockNumber::Api, peer.link), None);
            }
        }
        let number = usize::from(death.route.0 - self.directory.first_link_route());
        if let Some(link) = self.links.get_mut(number) {
            *link = None;
        }
    }

    #[cold]
    fn news(&mut self) {
        for event in self.out.take_events() {
            self.directory.log(event);
        }
        for effect in self.out.take_effects() {
            match effect {
                Effect::Shutdown { reason, error } => self.directory.request_exit(reason, error),
                Effect::Disconnect { node, reason } => self.directory.disconnect(node, None, &reason),
                Effect::DisconnectClient { client, reason } => {
                    self.directory.disconnect(client.node(), Some(client.instance()), &reason);
                }
                Effect::StateChanged => self.publish_status(),
            }
        }
    }

    /// Publishes what the main-role blocks say about the node, if they are here.
    pub(crate) fn publish_status(&self) {
        if let Some(main) = self.blocks.main() {
            self.directory.set_status(main.status());
        }
    }

    /// Logs a line of the runtime's own.
    pub(crate) fn log(&self, severity: Severity, text: String) {
        self.directory.log(Event { severity, text });
    }
}

/// The route to a worker.
pub(crate) fn route_of(worker: usize) -> RouteId {
    RouteId(u16::try_from(worker + 1).unwrap_or(u16::MAX - 1))
}
