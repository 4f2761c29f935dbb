//! The network of a run: connections between processes, and what the weather does to them.
//!
//! A connection behaves like TCP: what one side sends arrives at the other whole and in order, or the
//! connection ends. Between different connections nothing is in order. Delays have a long tail; a path can
//! be blocked one way or both ways (what is sent waits and arrives after the path is open again, as by
//! retransmission), or slow. A connection that is reset loses what is under way from a point on that chance
//! chooses. The end of a connection travels the path like everything else, so a side whose peer is cut off
//! does not hear of it.
//!
//! Here is only what is under way. What has arrived is the receiving process's.

use super::agenda::{MICRO, MILLI, Nanos};
use super::rng::Rng;
use signals::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What travels.
pub(crate) enum Parcel {
    /// Bytes: whole frames.
    Bytes(Vec<u8>),
    /// The connection ends, and why.
    End(String),
}

struct Underway {
    arrives: Nanos,
    parcel: Parcel,
}

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    parcels: VecDeque<Underway>,
    /// Nothing arrives before what was sent before it.
    last_arrival: Nanos,
    /// The sender has ended its side.
    ended: bool,
}

/// How the network is this time.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// Usual delay from and to, in microseconds.
    pub(crate) delay_us: (u64, u64),
    /// Thousandths of parcels that take up to a hundred times as long.
    pub(crate) tail: u64,
}

impl Weather {
    /// Drawn for a run.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let low = rng.log_range(5..=200);
        Self { delay_us: (low, low * rng.range(1..=5)), tail: rng.range(0..=20) }
    }
}

/// See the module.
pub(crate) struct Net {
    /// By sender, receiver and the number of the connection.
    pipes: BTreeMap<(NodeId, NodeId, u64), Pipe>,
    blocked: BTreeSet<(NodeId, NodeId)>,
    /// Factor on delays.
    slow: BTreeMap<(NodeId, NodeId), u64>,
    weather: Weather,
    rng: Rng,
    next_connection: u64,
}

impl Net {
    pub(crate) fn new(weather: Weather, rng: Rng) -> Self {
        Self {
            pipes: BTreeMap::new(),
            blocked: BTreeSet::new(),
            slow: BTreeMap::new(),
            weather,
            rng,
            next_connection: 1,
        }
    }

    /// The time a parcel sent now takes.
    pub(crate) fn delay(&mut self, from: NodeId, to: NodeId) -> Nanos {
        let (low, high) = self.weather.delay_us;
        let mut delay = self.rng.range(low..=high) * MICRO + self.rng.below(MICRO);
        if self.rng.chance(self.weather.tail) {
            delay *= self.rng.log_range(2..=100);
        }
        delay * self.slow.get(&(from, to)).copied().unwrap_or(1)
    }

    /// Opens a connection; its number.
    pub(crate) fn open(&mut self, a: NodeId, b: NodeId) -> u64 {
        let number = self.next_connection;
        self.next_connection += 1;
        self.pipes.insert((a, b, number), Pipe::default());
        self.pipes.insert((b, a, number), Pipe::default());
        number
    }

    /// Sends; returns when it will arrive if that is known now. On a blocked path it is known when the path
    /// opens.
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        from: NodeId,
        to: NodeId,
        connection: u64,
        parcel: Parcel,
    ) -> Option<Nanos> {
        let delay = self.delay(from, to);
        let pipe = self.pipes.get_mut(&(from, to, connection))?;
        if pipe.ended {
            return None;
        }
        pipe.ended = matches!(parcel, Parcel::End(_));
        let arrives = (now + delay).max(pipe.last_arrival + 1);
        pipe.last_arrival = arrives;
        pipe.parcels.push_back(Underway { arrives, parcel });
        (!self.blocked.contains(&(from, to))).then_some(arrives)
    }

    /// Takes what arrives on a pipe by now; `None` if there is nothing, or the path is blocked.
    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        from: NodeId,
        to: NodeId,
        connection: u64,
    ) -> Option<Parcel> {
        if self.blocked.contains(&(from, to)) {
            return None;
        }
        let pipe = self.pipes.get_mut(&(from, to, connection))?;
        if pipe.parcels.front().is_none_or(|p| p.arrives > now) {
            return None;
        }
        let parcel = pipe.parcels.pop_front().map(|p| p.parcel);
        if matches!(parcel, Some(Parcel::End(_))) {
            self.pipes.remove(&(from, to, connection));
        }
        parcel
    }

    /// Nobody will look at a pipe any more.
    pub(crate) fn forget(&mut self, from: NodeId, to: NodeId, connection: u64) {
        self.pipes.remove(&(from, to, connection));
    }

    /// Loses what is under way from a point on, as a reset or a crash does.
    pub(crate) fn truncate(&mut self, now: Nanos, from: NodeId, to: NodeId, connection: u64) {
        if let Some(pipe) = self.pipes.get_mut(&(from, to, connection)) {
            let first = pipe.parcels.iter().position(|p| p.arrives > now).unwrap_or(pipe.parcels.len());
            let keep = first + self.rng.index(pipe.parcels.len() - first + 1);
            pipe.parcels.truncate(keep);
            pipe.ended = false;
        }
    }

    /// Blocks or opens the path one way. Opening returns what can arrive now: receiver's pipes with the time
    /// of their next parcel.
    pub(crate) fn block(&mut self, now: Nanos, from: NodeId, to: NodeId, blocked: bool) -> Vec<(Nanos, u64)> {
        if blocked {
            self.blocked.insert((from, to));
            return Vec::new();
        }
        if !self.blocked.remove(&(from, to)) {
            return Vec::new();
        }
        // Retransmission takes a while to notice that the path is open.
        let begin = now + self.rng.range(1..=200) * MILLI;
        let mut due = Vec::new();
        for ((_, _, connection), pipe) in self.pipes.range_mut((from, to, 0)..=(from, to, u64::MAX)) {
            let mut at = begin;
            for underway in &mut pipe.parcels {
                at = at.max(underway.arrives) + 1;
                underway.arrives = at;
                due.push((at, *connection));
            }
            pipe.last_arrival = pipe.last_arrival.max(at);
        }
        due
    }

    /// Whether the path is blocked.
    pub(crate) fn is_blocked(&self, from: NodeId, to: NodeId) -> bool {
        self.blocked.contains(&(from, to))
    }

    /// Every blocked path.
    pub(crate) fn blocked(&self) -> Vec<(NodeId, NodeId)> {
        self.blocked.iter().copied().collect()
    }

    /// Makes a path slower by a factor; 1 makes it itself again.
    pub(crate) fn slow(&mut self, from: NodeId, to: NodeId, factor: u64) {
        if factor <= 1 {
            self.slow.remove(&(from, to));
        } else {
            self.slow.insert((from, to), factor);
        }
    }

    /// No path is slow any more.
    pub(crate) fn clear_slow(&mut self) {
        self.slow.clear();
    }
}
