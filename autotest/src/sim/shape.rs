//! Shape: the cluster of a run - how many nodes, which threads, which limits.
//!
//! It is written as a `config.ini` and read by the same code as everybody's, so that what is simulated is
//! what a configuration gives.

use super::env::OBSERVER;
use super::rng::Rng;
use config::{ClusterConfig, ThreadLayout};
use kernel::NodeSetup;
use kernel::tunables::{Rare, Tunables};
use signals::NodeId;
use signals::planted::Planted;
use std::fmt::Write;

/// Ids of client processes begin here.
const FIRST_API: u8 = 200;
const MGM: u8 = 199;

/// Thread layouts to run with.
const THREADS: [&str; 6] = [
    "",
    "ldm={count=1},tc={count=1},recv={count=1},send={count=1},main,rep",
    "ldm={count=2},tc={count=1},recv={count=1},main,rep",
    "ldm={count=2},tc={count=2},recv={count=2},send={count=1},main,rep",
    "ldm={count=4},tc={count=2},recv={count=1},main,rep",
    "ldm={count=3},recv={count=1},main,rep",
];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) data_nodes: u8,
    pub(crate) replicas: u8,
    pub(crate) api_nodes: u8,
    pub(crate) threads: String,
    /// Parameters of `[ndbd default]`.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) tunables: Tunables,
    /// Chance of rare events, of 65536, and their seed.
    pub(crate) rare: (u16, u64),
    /// A fault built into every node and client.
    pub(crate) planted: Planted,
}

impl Shape {
    /// A cluster drawn for a seed.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let (data_nodes, replicas) =
            *rng.pick(&[(1, 1), (2, 2), (2, 2), (2, 1), (3, 3), (4, 2), (4, 2), (4, 4), (6, 2)]);
        let mut parameters: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: u64| parameters.push((name.to_owned(), value.to_string()));
        set("HeartbeatIntervalDbDb", rng.log_range(50..=1500));
        set("HeartbeatIntervalDbApi", rng.log_range(100..=1500));
        set("TimeBetweenEpochs", rng.log_range(10..=500));
        set("TimeBetweenGlobalCheckpoints", rng.log_range(500..=4000));
        set("TransactionDeadlockDetectionTimeout", rng.log_range(100..=3000));
        if rng.chance(300) {
            set("MaxNoOfConcurrentOperations", rng.log_range(32..=512));
        }
        if rng.chance(300) {
            set("MaxNoOfConcurrentTransactions", rng.log_range(32..=128));
        }
        let tunables =
            if rng.chance(500) { Tunables::drawn(|range| rng.log_range(range)) } else { Tunables::default() };
        let rare = (if rng.chance(400) { rng.log_range(1..=600) as u16 } else { 0 }, rng.next());
        Self {
            data_nodes,
            replicas,
            api_nodes: rng.range(1..=4) as u8,
            threads: (*rng.pick(&THREADS)).to_owned(),
            parameters,
            tunables,
            rare,
            planted: Planted::NONE,
        }
    }

    /// A shape in one line.
    pub(crate) fn describe(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(|(n, v)| format!("{n}={v}")).collect();
        format!(
            "{} data nodes, {} replicas, {} clients, threads \"{}\", {}",
            self.data_nodes,
            self.replicas,
            self.api_nodes,
            self.threads,
            parameters.join(" ")
        ) + &self.describe_inner()
    }

    fn describe_inner(&self) -> String {
        let usual = Tunables::default().list();
        let differ = self.tunables.list().into_iter().zip(usual).filter(|(drawn, usual)| drawn != usual);
        let mut text: String = differ.map(|((name, value), _)| format!(" {name}={value}")).collect();
        if self.rare.0 > 0 {
            text += &format!(" rare={}/65536", self.rare.0);
        }
        text
    }

    /// The configuration.
    pub(crate) fn config(&self) -> Result<ClusterConfig, String> {
        let mut ini = format!("[ndbd default]\nNoOfReplicas={}\n", self.replicas);
        if !self.parameters.iter().any(|(name, _)| name == "DataMemory") {
            ini.push_str("DataMemory=64M\n");
        }
        if !self.threads.is_empty() {
            let _ = writeln!(ini, "ThreadConfig={}", self.threads);
        }
        for (name, value) in &self.parameters {
            let _ = writeln!(ini, "{name}={value}");
        }
        let _ = writeln!(ini, "[ndb_mgmd]\nNodeId={MGM}\nHostName=10.0.0.250\nDataDir=/simulated");
        for node in 1..=self.data_nodes {
            let _ = writeln!(ini, "[ndbd]\nNodeId={node}\nHostName=10.0.0.{node}\nDataDir=/simulated/{node}");
        }
        let _ = writeln!(ini, "[api]\nNodeId={OBSERVER}");
        for node in 0..self.api_nodes {
            let _ = writeln!(ini, "[api]\nNodeId={}", FIRST_API + node);
        }
        config::parse("simulated config.ini", ini.as_bytes())
            .map(|loaded| loaded.config)
            .map_err(|errors| format!("the shape's configuration is refused: {errors}"))
    }

    /// A data node's threads and what its blocks are told.
    pub(crate) fn node(
        &self,
        config: &ClusterConfig,
        node: NodeId,
        incarnation: u64,
    ) -> Result<(ThreadLayout, NodeSetup), String> {
        let own = config.data_node(node).ok_or_else(|| format!("there is no data node {node}"))?;
        let layout = datanode::setup::layout_of(config, own, &[0, 1]).map_err(|e| e.to_string())?;
        let mut setup = datanode::setup::node_setup(config, own, &layout, incarnation);
        setup.planted = self.planted;
        setup.tunables = self.tunables;
        if self.rare.0 > 0 {
            setup.rare = Rare::new(self.rare.1 ^ incarnation, self.rare.0);
        }
        Ok((layout, setup))
    }
}
