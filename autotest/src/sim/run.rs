//! Run: one seed from beginning to end.
//!
//! ```text
//!   start ─► loads and faults for the plan's seconds ─► faults end, everything heals ─► all nodes started
//!         ─► loads come to rest ─► quiet: final looks, nothing in use, replicas equal ─► verdict
//! ```

use super::agenda::{Nanos, SECOND};
use super::env::Command;
use super::faults::{self, Script};
use super::load::Running;
use super::plan::Plan;
use super::rng::Rng;
use super::shape::Shape;
use super::trace::Trace;
use super::world::World;
use signals::planted::Planted;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// How long, in virtual time, the cluster may take to work again once everything is healed.
const RECOVERY: Nanos = 120 * SECOND;

/// How to run.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// Print the trace.
    pub(crate) print: bool,
    /// Keep the trace's lines.
    pub(crate) keep: bool,
    /// A fault built into every node and client.
    pub(crate) planted: Planted,
    /// Troubles to leave out, by number.
    pub(crate) left_out: BTreeSet<usize>,
}

/// What came of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) hash: u64,
    pub(crate) violations: Vec<String>,
    /// The cluster in words.
    pub(crate) shape: String,
    /// The troubles there were.
    pub(crate) troubles: Vec<String>,
    /// The last lines of the nodes' logs.
    pub(crate) log: Vec<String>,
    /// Virtual time, signals handled, transactions begun, total losses of the database.
    pub(crate) virtual_ns: Nanos,
    pub(crate) signals: u64,
    pub(crate) acts: u64,
    pub(crate) resets: u64,
    pub(crate) lines: Vec<String>,
}

/// The cluster of a seed under a plan.
fn shape_of(plan: &Plan, rng: &mut Rng) -> Shape {
    let mut shape = Shape::draw(rng);
    let given = &plan.cluster;
    shape.data_nodes = given.data_nodes.unwrap_or(shape.data_nodes);
    shape.replicas = given.replicas.unwrap_or(shape.replicas).min(shape.data_nodes);
    shape.api_nodes = given.api_nodes.unwrap_or(shape.api_nodes);
    if let Some(threads) = &given.threads {
        shape.threads.clone_from(threads);
    }
    for (name, value) in &given.parameters {
        shape.parameters.retain(|(n, _)| n != name);
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        shape.parameters.push((name.clone(), text));
    }
    shape
}

/// Runs a seed.
pub(crate) fn run(seed: u64, plan: &Plan, options: &Options) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut shape = shape_of(plan, &mut rng.split("shape"));
    shape.planted = options.planted;
    let mut outcome = Outcome { shape: shape.describe(), ..Outcome::default() };
    let script = Rc::new(Script { left_out: options.left_out.clone(), ..Script::default() });
    let mut world = match World::new(shape, seed, Trace::new(options.keep, options.print)) {
        Ok(world) => world,
        Err(error) => {
            outcome.violations.push(error);
            return outcome;
        }
    };
    let loads = drive(&mut world, plan, &mut rng, &script);
    outcome.violations = std::mem::take(&mut world.violations);
    outcome.acts = loads.iter().map(|l| l.acts.get()).sum();
    outcome.resets = loads.iter().map(|l| l.resets.get()).sum();
    outcome.log = world.last_log(12).to_vec();
    outcome.troubles = script.done.take();
    outcome.virtual_ns = world.now;
    outcome.signals = world.trace.signals;
    outcome.hash = world.trace.hash();
    outcome.lines = world.trace.into_lines();
    outcome
}

fn drive(world: &mut World, plan: &Plan, rng: &mut Rng, script: &Rc<Script>) -> Vec<Rc<Running>> {
    let env = world.env();
    let until = world.now + plan.seconds * SECOND;
    let mut load_rng = rng.split("loads");
    let loads: Vec<Rc<Running>> =
        plan.load.iter().map(|load| Running::start(&env, load, &mut load_rng, until)).collect();
    let mut fault_rng = rng.split("faults");
    for fault in &plan.fault {
        let own = fault_rng.split("kind");
        if fault_rng.chance(fault.in_thousandths) {
            world.spawn(Box::pin(faults::make(env.clone(), fault.clone(), own, script.clone())));
        }
    }
    world.run(until, |_| false);
    script.over.set(true);
    // Troubles under way end by themselves, or now.
    world.spawn({
        let env = env.clone();
        Box::pin(async move { env.command(Command::Heal) })
    });
    let limit = world.now + RECOVERY;
    if !world.run(limit, World::all_started_now) {
        fail(world, "the cluster does not start again");
    }
    if !world.run(limit, |_| loads.iter().all(|l| l.finished.get())) {
        fail(world, "clients do not come to rest");
    }
    let concluded = Rc::new(Cell::new(0));
    for load in &loads {
        let (load, env, concluded) = (load.clone(), env.clone(), concluded.clone());
        world.spawn(Box::pin(async move {
            load.conclude(&env).await;
            concluded.set(concluded.get() + 1);
        }));
    }
    let limit = world.now + RECOVERY;
    if !world.run(limit, |_| concluded.get() == loads.len()) {
        fail(world, "the final look does not end");
    }
    quiet(world);
    loads
}

fn fail(world: &mut World, text: &str) {
    if world.violations.is_empty() {
        let states = [world.states(), world.in_use()].concat().join("; ");
        world.violations.push(format!("{text}: {states}"));
    }
}

/// Nobody asks for anything any more: nothing may be left.
fn quiet(world: &mut World) {
    let limit = world.now + 10 * SECOND;
    if !world.run(limit, |w| w.in_use().is_empty()) && world.violations.is_empty() {
        let left = world.in_use().join("; ");
        world.violations.push(format!("all is quiet, and still: {left}"));
    }
    if world.violations.is_empty() {
        let wrong = [world.wrong_catalogues(), world.wrong_contents()].concat();
        world.violations.extend(wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = include_str!("../../workloads/bank.toml");
        let mut plan = Plan::parse("bank.toml", text).unwrap();
        plan.seconds = 3;
        plan
    }

    #[test]
    fn the_same_seed_gives_the_same_run_to_the_byte() {
        let options = Options { keep: true, ..Options::default() };
        for seed in 1..=12 {
            let (first, second) = (run(seed, &plan(), &options), run(seed, &plan(), &options));
            assert_eq!(first.violations, Vec::<String>::new(), "seed {seed}");
            assert!(first.lines.len() > 300, "seed {seed}: {} lines", first.lines.len());
            assert!(first.lines == second.lines, "seed {seed}: two runs differ");
            assert_eq!(first.hash, second.hash);
            assert_ne!(first.hash, run(seed + 100, &plan(), &options).hash);
        }
    }
}
