//! Plan: a workload file - what clients do, what goes wrong meanwhile, on which cluster, for how long.
//!
//! TOML. Every number may be left out; a range `[low, high]` is drawn from per use.
//!
//! ```toml
//! name = "bank"
//! seconds = 20
//!
//! [cluster]              # what is not said is drawn from the seed
//! data_nodes = 4
//! replicas = 2
//!
//! [[load]]
//! kind = "bank"
//! clients = 5
//! think_ms = [1, 20]
//!
//! [[fault]]
//! kind = "kill"
//! every_ms = [2000, 8000]
//! ```

use super::agenda::{MILLI, Nanos};
use super::rng::Rng;
use serde::Deserialize;

/// A number, or a range to draw one from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Span {
    One(u64),
    Range([u64; 2]),
}

impl Span {
    /// Draws.
    pub(crate) fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::One(n) => n,
            Self::Range([low, high]) => rng.range(low..=high.max(low)),
        }
    }

    /// Draws milliseconds.
    pub(crate) fn millis(self, rng: &mut Rng) -> Nanos {
        self.draw(rng) * MILLI + rng.below(MILLI)
    }
}

/// The cluster, as far as it is given.
#[derive(Clone, Default, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ClusterPlan {
    pub(crate) data_nodes: Option<u8>,
    pub(crate) replicas: Option<u8>,
    pub(crate) api_nodes: Option<u8>,
    pub(crate) threads: Option<String>,
    /// Parameters of `[ndbd default]`.
    pub(crate) parameters: std::collections::BTreeMap<String, toml::Value>,
}

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadKind {
    /// Transfers between accounts; the sum stays.
    Bank,
    /// Rows that point at each other in one circle.
    Ring,
    /// Every kind of operation; every attempt's end is accounted for.
    Mixed,
    /// Tables and databases made, dropped and emptied.
    Churn,
    /// Registers whose histories are linearizable per row.
    Register,
    /// Lists that only grow, and transactions over several of them.
    Append,
}

/// One load.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadPlan {
    pub(crate) kind: LoadKind,
    /// Client programs, spread over the API nodes.
    #[serde(default = "five")]
    pub(crate) clients: Span,
    /// Rows.
    #[serde(default = "twenty")]
    pub(crate) rows: Span,
    /// Pause between two transactions of a client.
    #[serde(default = "think")]
    pub(crate) think_ms: Span,
}

fn five() -> Span {
    Span::Range([2, 8])
}
fn twenty() -> Span {
    Span::Range([4, 40])
}
fn think() -> Span {
    Span::Range([1, 40])
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultKind {
    /// A data node's process dies, at a moment.
    Kill,
    /// The same, at a signal.
    KillAtSignal,
    /// All data nodes at once.
    KillAll,
    /// A machine is off.
    PowerOff,
    /// A process stands still for a while.
    Freeze,
    /// Threads get less CPU for a while.
    Slow,
    /// One direction of a path is blocked for a while.
    OneWay,
    /// Both directions.
    TwoWay,
    /// A node is cut off from all data nodes.
    CutOff,
    /// A path is slow for a while.
    SlowPath,
    /// A connection breaks.
    Reset,
    /// A wall clock is set.
    ClockJump,
    /// A client's process dies.
    KillClient,
    /// A planned stop.
    Stop,
}

/// One kind of trouble.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultPlan {
    pub(crate) kind: FaultKind,
    /// Time between the end of one and the next.
    pub(crate) every_ms: Span,
    /// How long it lasts.
    #[serde(default = "lasting")]
    pub(crate) for_ms: Span,
    /// How many times slower.
    #[serde(default = "factor")]
    pub(crate) factor: Span,
    /// Thousandths of seeds that have it at all.
    #[serde(default = "always")]
    pub(crate) in_thousandths: u64,
}

fn lasting() -> Span {
    Span::Range([10, 3000])
}
fn factor() -> Span {
    Span::Range([2, 50])
}
fn always() -> u64 {
    1000
}

/// See the module.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Virtual seconds the loads run.
    pub(crate) seconds: u64,
    #[serde(default)]
    pub(crate) cluster: ClusterPlan,
    #[serde(default)]
    pub(crate) load: Vec<LoadPlan>,
    #[serde(default)]
    pub(crate) fault: Vec<FaultPlan>,
}

impl Plan {
    /// Reads a file's text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| format!("{name}: {error}"))
    }
}
