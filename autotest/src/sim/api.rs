//! Api: an API node's process in a run - the client library's core and its ends of the links.

use super::agenda::Nanos;
use super::net::Parcel;
use config::ClusterConfig;
use ndbapi::core::{Action, Now};
use ndbapi::driven::Driven;
use ndbapi::{ClusterConnection, ConnectOptions};
use signals::NodeId;
use signals::frame::next_frame;
use signals::planted::Planted;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a process says of itself, from its number among all that were started.
pub(crate) fn incarnation(boot: u64) -> u64 {
    boot << 32
}

struct Running {
    boot: u64,
    driven: Driven,
    links: BTreeMap<NodeId, u64>,
}

/// See the module.
pub(crate) struct Api {
    id: NodeId,
    running: Option<Running>,
}

impl Api {
    pub(crate) fn new(id: NodeId) -> Self {
        Self { id, running: None }
    }

    /// Starts the process; what its programs use.
    pub(crate) fn start(
        &mut self,
        config: &ClusterConfig,
        boot: u64,
        now: Nanos,
        planted: Planted,
    ) -> Result<ClusterConnection, String> {
        let options = ConnectOptions::direct(config, self.id).wait(Duration::from_secs(3)).planted(planted);
        let (connection, driven) = Driven::new(options, incarnation(boot)).map_err(|e| e.to_string())?;
        driven.set_now(Now(now));
        self.running = Some(Running { boot, driven, links: BTreeMap::new() });
        Ok(connection)
    }

    /// Ends it; its connections.
    pub(crate) fn stop(&mut self) -> Vec<(NodeId, u64)> {
        self.running.take().map(|r| r.links.into_iter().collect()).unwrap_or_default()
    }

    pub(crate) fn boot(&self) -> Option<u64> {
        self.running.as_ref().map(|r| r.boot)
    }

    pub(crate) fn connection_to(&self, peer: NodeId) -> Option<u64> {
        self.running.as_ref()?.links.get(&peer).copied()
    }

    pub(crate) fn set_now(&mut self, now: Nanos) {
        if let Some(running) = &self.running {
            running.driven.set_now(Now(now));
        }
    }

    pub(crate) fn link_up(&mut self, peer: NodeId, connection: u64) {
        if let Some(running) = &mut self.running {
            running.links.insert(peer, connection);
            running.driven.connected(peer);
        }
    }

    /// Something has arrived. Returns whether the link is over.
    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        from: NodeId,
        connection: u64,
        parcel: Parcel,
    ) -> Result<bool, String> {
        let Some(running) = &mut self.running else { return Ok(false) };
        if running.links.get(&from) != Some(&connection) {
            return Ok(false);
        }
        running.driven.set_now(Now(now));
        match parcel {
            Parcel::Bytes(bytes) => {
                let mut rest = &bytes[..];
                while let Ok(Some((frame, tail))) = next_frame(rest) {
                    running.driven.receive(from, frame).map_err(|invalid| {
                        format!("API node {} refuses a frame of node {from}: {invalid}", self.id)
                    })?;
                    rest = tail;
                }
                Ok(false)
            }
            Parcel::End(reason) => {
                running.links.remove(&from);
                running.driven.disconnected(from, &reason);
                Ok(true)
            }
        }
    }

    /// Heartbeats and time-outs. Returns the links it has closed.
    pub(crate) fn tick(&mut self, now: Nanos) -> Vec<(NodeId, u64)> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.driven.set_now(Now(now));
        let mut closed = Vec::new();
        for Action::Disconnect { node, reason } in running.driven.tick() {
            if let Some(connection) = running.links.remove(&node) {
                running.driven.disconnected(node, &reason);
                closed.push((node, connection));
            }
        }
        closed
    }

    /// What it wants sent.
    pub(crate) fn take_outgoing(&mut self) -> Vec<(NodeId, u64, Vec<u8>)> {
        let mut all = Vec::new();
        if let Some(running) = &mut self.running {
            let links = &running.links;
            running.driven.take_outgoing(|node, buffer| {
                let bytes = std::mem::take(buffer);
                if let Some(connection) = links.get(&node) {
                    all.push((node, *connection, bytes));
                }
            });
        }
        all
    }

    pub(crate) fn in_use(&self) -> [usize; 4] {
        self.running.as_ref().map_or([0; 4], |r| r.driven.in_use())
    }
}
