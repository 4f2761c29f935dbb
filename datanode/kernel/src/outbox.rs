//! Outbox: where blocks put what they want sent, logged or done.
//!
//! A signal is encoded once, straight into the buffer of the route its target lies on: this worker, another
//! worker of the node, or a link to another node. The owner of the outbox (a worker thread, or the
//! simulator) decides what a route is, fills the route table as links come and go, and ships the buffers
//! that have something in them, once per batch. A signal to somebody without a route is dropped and
//! counted: the peer is gone, and whoever waits for its answer is told by failure handling.
//!
//! The outbox never blocks and never loses order within a route.

use signals::control::ControlSignal;
use signals::frame::{self, Body};
use signals::keyop::session_tag;
use signals::{BlockNumber, BlockRef, NodeId};

/// A buffer of an [`Outbox`]: 0 is this worker itself, the others are the owner's to number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RouteId(pub u16);

impl RouteId {
    /// Signals between blocks of this worker.
    pub const SELF: Self = Self(0);
    const NONE: Self = Self(u16::MAX);
}

/// How loud an event is in the cluster log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// For developers.
    Debug,
    /// Ordinary life.
    Info,
    /// Somebody should look.
    Warning,
    /// Something failed.
    Error,
    /// Service is affected.
    Alert,
}

/// A line for the node's log and the cluster log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// How loud.
    pub severity: Severity,
    /// The text, one line.
    pub text: String,
}

/// What a block wants the runtime to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// End the process, after what is in the outbox was shipped; `error` tells a stop from a failure.
    Shutdown {
        /// Why, for the log and the operator.
        reason: String,
        /// Whether the process exits with an error.
        error: bool,
    },
    /// Close the link to a node.
    Disconnect {
        /// The peer.
        node: NodeId,
        /// For the log.
        reason: String,
    },
    /// Close a client session's link.
    DisconnectClient {
        /// The session.
        client: BlockRef,
        /// For the log.
        reason: String,
    },
    /// The node's state changed ([`crate::mainrole::MainRole::status`]); report it to the management server.
    StateChanged,
}

/// See the module.
pub struct Outbox {
    node: NodeId,
    buffers: Vec<Vec<u8>>,
    /// Routes with something in their buffer, in the order they got it.
    dirty: Vec<RouteId>,
    /// Own node: route per block byte, and per instance of the multi-instance blocks.
    local: Vec<Vec<RouteId>>,
    /// Data and management nodes: route per node id.
    nodes: Vec<RouteId>,
    /// API nodes: route per node id and link.
    clients: Vec<Vec<RouteId>>,
    /// API nodes: the tag of the process that has the session now, per node id and link.
    sessions: Vec<Vec<u32>>,
    events: Vec<Event>,
    effects: Vec<Effect>,
    dropped: u64,
}

const BLOCKS: usize = 16;

impl Outbox {
    /// An outbox of node `node` whose every signal goes to [`RouteId::SELF`] until routes are set.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            buffers: vec![Vec::new()],
            dirty: Vec::new(),
            local: vec![Vec::new(); BLOCKS],
            nodes: vec![RouteId::NONE; 256],
            clients: vec![Vec::new(); 256],
            sessions: vec![Vec::new(); 256],
            events: Vec::new(),
            effects: Vec::new(),
            dropped: 0,
        }
    }

    /// Signals to `instance` of `block` of this node go to `route`.
    pub fn set_local_route(&mut self, block: BlockNumber, instance: u16, route: RouteId) {
        set_route(&mut self.local[block as usize], instance, route);
        self.grow_to(route);
    }

    /// Signals to data or management node `node` go to `route`, or are dropped from now on.
    pub fn set_node_route(&mut self, node: NodeId, route: Option<RouteId>) {
        let route = route.unwrap_or(RouteId::NONE);
        self.nodes[node.0 as usize] = route;
        self.grow_to(route);
    }

    /// Signals to client session `client` go to `route`, or are dropped from now on.
    pub fn set_client_route(&mut self, client: BlockRef, route: Option<RouteId>) {
        let route = route.unwrap_or(RouteId::NONE);
        set_route(&mut self.clients[client.node().0 as usize], client.instance(), route);
        self.grow_to(route);
    }

    /// From now on client session `client` is a process's of this incarnation.
    pub fn set_session(&mut self, client: BlockRef, incarnation: u64) {
        let sessions = &mut self.sessions[client.node().0 as usize];
        let link = client.instance() as usize;
        if sessions.len() <= link {
            sessions.resize(link + 1, 0);
        }
        sessions[link] = session_tag(incarnation);
    }

    /// Which process has `client`'s address, as a tag that goes with every operation to the LDMs. A row must
    /// not be sent to another process than asked: it numbers its operations as the one before did and would
    /// take the row for an answer of its own. (Found by the simulator, bank seed 646: a read of a client
    /// that had died was held up on its way to the LDM until the client's next process was connected.)
    #[inline]
    #[must_use]
    pub fn session(&self, client: BlockRef) -> u32 {
        let sessions = &self.sessions[client.node().0 as usize];
        sessions.get(client.instance() as usize).copied().unwrap_or(0)
    }

    fn grow_to(&mut self, route: RouteId) {
        if route != RouteId::NONE && self.buffers.len() <= route.0 as usize {
            self.buffers.resize_with(route.0 as usize + 1, Vec::new);
        }
    }

    /// The route to `target`, if there is one.
    #[inline]
    fn route(&self, target: BlockRef) -> RouteId {
        let node = target.node();
        let table = if target.block_byte() == BlockNumber::Api as u8 {
            &self.clients[node.0 as usize]
        } else if node == self.node {
            match self.local.get(target.block_byte() as usize) {
                Some(table) => table,
                None => return RouteId::NONE,
            }
        } else {
            return self.nodes[node.0 as usize];
        };
        table.get(target.instance() as usize).copied().unwrap_or(RouteId::NONE)
    }

    /// The buffer for a signal to `target`; notes that it will have something in it.
    #[inline]
    fn buffer_for(&mut self, target: BlockRef) -> Option<&mut Vec<u8>> {
        let route = self.route(target);
        if route == RouteId::NONE {
            self.dropped += 1;
            return None;
        }
        let buffer = &mut self.buffers[route.0 as usize];
        if buffer.is_empty() {
            self.dirty.push(route);
        }
        Some(buffer)
    }

    /// Sends a data plane signal; the section lengths in `body` must be those of `first` and `second`.
    #[inline]
    pub fn send<B: Body>(
        &mut self,
        source: BlockRef,
        target: BlockRef,
        body: &B,
        first: &[u8],
        second: &[u8],
    ) {
        if let Some(buffer) = self.buffer_for(target) {
            frame::push_signal(buffer, source, target, body, first, second);
        }
    }

    /// Sends a data plane signal whose section `write` appends in place; nothing is sent if it refuses.
    ///
    /// # Errors
    /// Those of `write`. A missing route is no error.
    #[inline]
    pub fn send_with<B: Body, E>(
        &mut self,
        source: BlockRef,
        target: BlockRef,
        write: impl FnOnce(&mut Vec<u8>) -> Result<B, E>,
    ) -> Result<(), E> {
        match self.buffer_for(target) {
            Some(buffer) => frame::push_signal_with(buffer, source, target, write),
            None => Ok(()),
        }
    }

    /// Sends a control plane signal. One that is too large for a frame is dropped and logged; requests that
    /// could grow that large are limited where they are made.
    pub fn control(&mut self, source: BlockRef, target: BlockRef, signal: &ControlSignal) {
        let sent = match self.buffer_for(target) {
            Some(buffer) => frame::push_control(buffer, source, target, signal),
            None => return,
        };
        if !sent {
            self.event(
                Severity::Error,
                format!("control signal from {source:?} to {target:?} too large, dropped"),
            );
        }
    }

    /// Logs a line.
    pub fn event(&mut self, severity: Severity, text: impl Into<String>) {
        self.events.push(Event { severity, text: text.into() });
    }

    /// Asks the runtime for something.
    pub fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Takes the next route that has something to ship, with its buffer. Give the emptied buffer back with
    /// [`Self::give_back`] so that its memory is used again.
    #[inline]
    pub fn take_dirty(&mut self) -> Option<(RouteId, Vec<u8>)> {
        loop {
            let route = self.dirty.pop()?;
            let buffer = std::mem::take(&mut self.buffers[route.0 as usize]);
            if !buffer.is_empty() {
                return Some((route, buffer));
            }
        }
    }

    /// Takes what blocks of this worker sent each other, leaving `empty` in its place. The result may be
    /// empty.
    #[inline]
    pub fn swap_self(&mut self, empty: Vec<u8>) -> Vec<u8> {
        debug_assert!(empty.is_empty());
        self.dirty.retain(|r| *r != RouteId::SELF);
        std::mem::replace(&mut self.buffers[0], empty)
    }

    /// Gives a shipped buffer's memory back.
    #[inline]
    pub fn give_back(&mut self, route: RouteId, mut buffer: Vec<u8>) {
        buffer.clear();
        let slot = &mut self.buffers[route.0 as usize];
        if slot.is_empty() && slot.capacity() < buffer.capacity() {
            *slot = buffer;
        }
    }

    /// Bytes waiting on `route`.
    #[must_use]
    pub fn pending(&self, route: RouteId) -> usize {
        self.buffers.get(route.0 as usize).map_or(0, Vec::len)
    }

    /// Bytes waiting on all routes, so that the owner can ship in the middle of a long turn.
    #[inline]
    #[must_use]
    pub fn pending_total(&self) -> usize {
        self.dirty.iter().map(|route| self.buffers[route.0 as usize].len()).sum()
    }

    /// Takes the events logged so far.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Takes the effects asked for so far.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether there are events or effects to take.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.events.is_empty() || !self.effects.is_empty()
    }

    /// Signals dropped because their target had no route.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn set_route(table: &mut Vec<RouteId>, instance: u16, route: RouteId) {
    if table.len() <= instance as usize {
        table.resize(instance as usize + 1, RouteId::NONE);
    }
    table[instance as usize] = route;
}

#[cfg(test)]
mod tests {
    use super::*;
    use signals::frame::next_frame;
    use signals::ids::TransId;
    use signals::keyop::TcCommitReq;

    #[test]
    fn signals_go_to_their_routes_in_order_and_strays_are_counted() {
        let mut out = Outbox::new(NodeId(1));
        let tc = BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0);
        let ldm = BlockRef::new(NodeId(1), BlockNumber::Dblqh, 3);
        let peer = BlockRef::new(NodeId(2), BlockNumber::Dblqh, 0);
        let client = BlockRef::new(NodeId(9), BlockNumber::Api, 2);
        out.set_local_route(BlockNumber::Dbtc, 0, RouteId::SELF);
        out.set_local_route(BlockNumber::Dblqh, 3, RouteId(1));
        out.set_node_route(NodeId(2), Some(RouteId(2)));
        out.set_client_route(client, Some(RouteId(3)));
        for target in [tc, ldm, peer, client, ldm] {
            out.send(tc, target, &TcCommitReq { trans: TransId(u64::from(target.0)) }, &[], &[]);
        }
        out.set_node_route(NodeId(2), None);
        out.send(tc, peer, &TcCommitReq { trans: TransId(1) }, &[], &[]);
        out.send(
            tc,
            BlockRef::new(NodeId(1), BlockNumber::Dblqh, 4),
            &TcCommitReq { trans: TransId(1) },
            &[],
            &[],
        );
        assert_eq!(out.dropped(), 2);

        let own = out.swap_self(Vec::new());
        assert_eq!(signals::frame::frame_target(&own), tc);
        let mut seen = Vec::new();
        while let Some((route, buffer)) = out.take_dirty() {
            let mut rest = &buffer[..];
            while let Some((frame, tail)) = next_frame(rest).unwrap() {
                seen.push((route.0, signals::frame::frame_target(frame)));
                rest = tail;
            }
            out.give_back(route, buffer);
        }
        seen.sort();
        assert_eq!(seen, [(1, ldm), (1, ldm), (2, peer), (3, client)]);
        assert!(out.take_dirty().is_none());
    }
}
