//! Faults: the script of troubles of a run. One program per kind, each with its own random numbers.
//!
//! Every single trouble has a number in the order it comes up. A run can be told to leave out some of them:
//! the script draws the same numbers and does nothing, which is how a failing run is made smaller.

use super::agenda::MILLI;
use super::env::{Command, Env};
use super::plan::{FaultKind, FaultPlan};
use super::rng::Rng;
use signals::NodeId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The troubles of a run: which there were, and which are left out.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) done: RefCell<Vec<String>>,
    pub(crate) left_out: BTreeSet<usize>,
    pub(crate) over: Cell<bool>,
}

impl Script {
    /// Notes a trouble; whether it is to be made.
    fn begins(&self, text: impl FnOnce() -> String) -> bool {
        let mut done = self.done.borrow_mut();
        let number = done.len();
        done.push(text());
        !self.left_out.contains(&number)
    }
}

/// Makes one kind of trouble until the script is over.
pub(crate) async fn make(env: Env, plan: FaultPlan, mut rng: Rng, script: Rc<Script>) {
    loop {
        env.sleep(plan.every_ms.millis(&mut rng)).await;
        if script.over.get() {
            return;
        }
        trouble(&env, &plan, &mut rng, &script).await;
    }
}

async fn trouble(env: &Env, plan: &FaultPlan, rng: &mut Rng, script: &Script) {
    let lasts = plan.for_ms.millis(rng);
    let factor = plan.factor.draw(rng);
    let data = env.data_nodes().to_vec();
    let node = *rng.pick(&data);
    let other = *rng.pick(&data);
    let api = *rng.pick(env.api_nodes());
    let second = if rng.chance(300) { api } else { other };
    let (begin, end) = match plan.kind {
        FaultKind::Kill => (vec![Command::Kill { node, stay_down: false }], vec![]),
        FaultKind::KillAtSignal => {
            let signals = rng.log_range(1..=2000);
            (vec![Command::KillAt { node, signals }], vec![])
        }
        FaultKind::KillAll => {
            (data.iter().map(|node| Command::Kill { node: *node, stay_down: false }).collect(), vec![])
        }
        FaultKind::PowerOff => (vec![Command::PowerOff { node, stay_down: false }], vec![]),
        FaultKind::Freeze => {
            (vec![Command::Freeze { node, frozen: true }], vec![Command::Freeze { node, frozen: false }])
        }
        FaultKind::Slow => (vec![Command::Slow { node, factor }], vec![Command::Slow { node, factor: 1 }]),
        FaultKind::OneWay => blocks(&[(node, second)]),
        FaultKind::TwoWay => blocks(&[(node, second), (second, node)]),
        FaultKind::CutOff => {
            let pairs: Vec<(NodeId, NodeId)> =
                data.iter().filter(|n| **n != node).flat_map(|n| [(node, *n), (*n, node)]).collect();
            blocks(&pairs)
        }
        FaultKind::SlowPath => (
            vec![Command::SlowPath { from: node, to: second, factor }],
            vec![Command::SlowPath { from: node, to: second, factor: 1 }],
        ),
        FaultKind::Reset => (vec![Command::Reset { a: node, b: second }], vec![]),
        FaultKind::ClockJump => {
            let by = (lasts as i64) * if rng.chance(500) { 1000 } else { -1000 };
            (vec![Command::ClockJump { node, by }], vec![])
        }
        FaultKind::KillClient => (vec![Command::KillApi { node: api }], vec![]),
        FaultKind::Stop => (vec![Command::StopCluster], vec![]),
    };
    let begins = script.begins(|| {
        let what: Vec<String> = begin.iter().map(ToString::to_string).collect();
        format!("{:.3} ms: {}", env.now() as f64 / MILLI as f64, what.join(", "))
    });
    if begins {
        begin.into_iter().for_each(|command| env.command(command));
    }
    if !end.is_empty() {
        env.sleep(lasts).await;
        if begins {
            end.into_iter().for_each(|command| env.command(command));
        }
    }
}

fn blocks(pairs: &[(NodeId, NodeId)]) -> (Vec<Command>, Vec<Command>) {
    let command =
        |blocked| move |(from, to): &(NodeId, NodeId)| Command::Block { from: *from, to: *to, blocked };
    (pairs.iter().map(command(true)).collect(), pairs.iter().map(command(false)).collect())
}
