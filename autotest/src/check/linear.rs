//! Linear: judges histories of registers, one per row - is there one order of the operations that explains
//! all answers?
//!
//! # What is promised
//!
//! A register is absent or holds a tag; no tag is written twice.
//!
//! 1. **Writes and reads under locks** (shared or exclusive) are linearizable per row: there is one order
//!    in which each takes effect at a moment between its call and its answer. A write whose outcome is
//!    unknown takes effect at some moment after its call, or never. One that failed never does. "No such
//!    row" and "the row exists" are answers like a value.
//! 2. **What anybody has seen is committed.** A tag read by whomever, lock-free readers included, was
//!    written; what is called under locks after that read was answered comes after the write.
//! 3. **A lock-free read** (of any replica) promises less. It never answers
//!    - a tag nobody wrote, or whose write failed, or was called after the read was answered;
//!    - a tag that had certainly been replaced by a write (or delete) acknowledged before the read was
//!      called;
//!    - "no such row" if the row was certainly there when the read was called, and no delete may have
//!      happened until it was answered.
//!
//!    What it may do: two of them, one after the other, may see first the new and then the old value of a
//!    write that is not acknowledged yet, because they ask different replicas.
//!
//! # How
//!
//! The search of Wing and Gong with Lowe's memory: operations are put in order one by one; one may be next
//! if it was called before the first answer of those that are left. A pair (set of operations placed, value
//! of the register) that was visited once is not visited again. Three things keep it small:
//!
//! - A read that fits the value now is placed at once: it changes nothing, so later is no better.
//! - A write of unknown outcome whose tag nobody saw need not have happened, unless it made the row appear
//!   or disappear; if somebody saw the tag, it happened before that answer.
//! - The set is kept as "all before here" and a window of bits.
//!
//! What is still too much is reported as such, never passed.

use super::{Outcome, Time};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A value of a register; never written twice.
pub(crate) type Tag = u64;

/// What an operation did, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Saw this under a lock.
    Read(Option<Tag>),
    /// Saw under a lock that there is a row.
    Present,
    /// Saw this without a lock.
    FreeRead(Option<Tag>),
    /// Makes the row, which must be absent.
    Insert(Tag),
    /// Changes the row, which must be there.
    Set(Tag),
    /// Changes the row from what it saw under the lock it still holds.
    Swap { from: Tag, to: Tag },
    /// Removes the row, which must be there.
    Delete,
}

impl Action {
    fn writes(self) -> Option<Tag> {
        match self {
            Self::Insert(tag) | Self::Set(tag) | Self::Swap { to: tag, .. } => Some(tag),
            Self::Read(_) | Self::Present | Self::FreeRead(_) | Self::Delete => None,
        }
    }

    fn reads(self) -> Option<Tag> {
        match self {
            Self::Read(seen) | Self::FreeRead(seen) => seen,
            Self::Swap { from, .. } => Some(from),
            Self::Present | Self::Insert(_) | Self::Set(_) | Self::Delete => None,
        }
    }

    fn is_read(self) -> bool {
        matches!(self, Self::Read(_) | Self::Present | Self::FreeRead(_))
    }

    /// The register after it; `None` if it cannot happen now.
    fn apply(self, state: Option<Tag>) -> Option<Option<Tag>> {
        let fits = match self {
            Self::Read(seen) | Self::FreeRead(seen) => state == seen,
            Self::Present | Self::Set(_) | Self::Delete => state.is_some(),
            Self::Insert(_) => state.is_none(),
            Self::Swap { from, .. } => state == Some(from),
        };
        let after = match self {
            Self::Read(_) | Self::FreeRead(_) | Self::Present => state,
            Self::Insert(tag) | Self::Set(tag) | Self::Swap { to: tag, .. } => Some(tag),
            Self::Delete => None,
        };
        fits.then_some(after)
    }
}

/// An operation of a history. Reads are there only if they were answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Op {
    pub(crate) row: u64,
    pub(crate) client: u64,
    pub(crate) called: Time,
    pub(crate) outcome: Outcome,
    pub(crate) action: Action,
}

impl Op {
    fn answered(&self) -> Option<Time> {
        match self.outcome {
            Outcome::Ok(at) => Some(at),
            Outcome::Failed | Outcome::Unknown => None,
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |at: Time| at as f64 / 1e6;
        match self.outcome {
            Outcome::Ok(at) => write!(f, "[{:.3}..{:.3} ms] ", ms(self.called), ms(at))?,
            Outcome::Failed => write!(f, "[{:.3}.. failed] ", ms(self.called))?,
            Outcome::Unknown => write!(f, "[{:.3}.. unknown] ", ms(self.called))?,
        }
        write!(f, "client {} {:?}", self.client as i64, self.action)
    }
}

/// More places of the search than these are too many.
const NODES_MAX: usize = 300_000;
/// Writes of unknown outcome that may or may not have happened, per row.
const OPTIONAL_MAX: usize = 64;

/// Judges a history.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn check(ops: &[Op]) -> Result<(), String> {
    let mut rows: BTreeMap<u64, Vec<Op>> = BTreeMap::new();
    for op in ops {
        rows.entry(op.row).or_default().push(*op);
    }
    for (row, ops) in &rows {
        Row::new(ops).and_then(|r| r.check()).map_err(|text| format!("row {row}: {text}"))?;
    }
    Ok(())
}

/// One row's history, and when each tag was certainly there.
struct Row<'a> {
    ops: &'a [Op],
    /// By this moment the tag's write has certainly taken effect.
    known_by: HashMap<Tag, Time>,
}

impl<'a> Row<'a> {
    fn new(ops: &'a [Op]) -> Result<Self, String> {
        let writes: HashMap<Tag, &Op> =
            ops.iter().filter_map(|op| op.action.writes().map(|tag| (tag, op))).collect();
        let mut known_by: HashMap<Tag, Time> = HashMap::new();
        for op in ops {
            let Some(answered) = op.answered() else { continue };
            for tag in [op.action.reads(), op.action.writes()].into_iter().flatten() {
                let known = known_by.entry(tag).or_insert(answered);
                *known = answered.min(*known);
            }
            let Some(tag) = op.action.reads() else { continue };
            match writes.get(&tag) {
                None => return Err(format!("{op}: nobody wrote that")),
                Some(write) if write.outcome == Outcome::Failed => {
                    return Err(format!("dirty read: {op}, but its write failed: {write}"));
                }
                Some(write) if write.called > answered => {
                    return Err(format!("{op}, before it was written: {write}"));
                }
                Some(_) => {}
            }
        }
        Ok(Self { ops, known_by })
    }

    fn check(&self) -> Result<(), String> {
        self.check_free_reads()?;
        self.check_order()
    }

    /// The third promise.
    fn check_free_reads(&self) -> Result<(), String> {
        // Acknowledged changes by the time of their call, with the first answer among those from there on.
        let mut changes: Vec<(Time, Time)> = self
            .ops
            .iter()
            .filter(|op| !op.action.is_read())
            .filter_map(|op| Some((op.called, op.answered()?)))
            .collect();
        changes.sort_unstable();
        let mut first = Time::MAX;
        for change in changes.iter_mut().rev() {
            first = first.min(change.1);
            change.1 = first;
        }
        let mut replaced: HashMap<Tag, Time> = HashMap::new();
        for (tag, known) in &self.known_by {
            let at = changes.partition_point(|(called, _)| called <= known);
            replaced.insert(*tag, changes.get(at).map_or(Time::MAX, |(_, answered)| *answered));
        }
        for op in self.ops {
            if let (Action::Swap { from, .. }, Some(answered)) = (op.action, op.answered()) {
                let at = replaced.entry(from).or_insert(Time::MAX);
                *at = answered.min(*at);
            }
        }
        let presence = self.presence();
        for op in self.ops {
            match op.action {
                Action::FreeRead(Some(tag)) => {
                    if let Some(at) = replaced.get(&tag).filter(|at| **at < op.called) {
                        return Err(self.stale(op, *at));
                    }
                }
                Action::FreeRead(None) => self.check_absent(op, &presence)?,
                Action::Read(_)
                | Action::Present
                | Action::Insert(_)
                | Action::Set(_)
                | Action::Swap { .. }
                | Action::Delete => {}
            }
        }
        Ok(())
    }

    /// Answers that prove the row was there at some moment since their call: by the time of the answer, with
    /// the latest call so far.
    fn presence(&self) -> Vec<(Time, Time)> {
        let proves = |action| match action {
            Action::Read(seen) => seen.is_some(),
            Action::Present | Action::Insert(_) | Action::Set(_) | Action::Swap { .. } => true,
            Action::FreeRead(_) | Action::Delete => false,
        };
        let mut presence: Vec<(Time, Time)> = self
            .ops
            .iter()
            .filter(|op| proves(op.action))
            .filter_map(|op| Some((op.answered()?, op.called)))
            .collect();
        presence.sort_unstable();
        let mut latest = 0;
        for (_, called) in &mut presence {
            latest = latest.max(*called);
            *called = latest;
        }
        presence
    }

    fn check_absent(&self, read: &Op, presence: &[(Time, Time)]) -> Result<(), String> {
        let before = presence.partition_point(|(answered, _)| *answered < read.called);
        let Some((_, there)) = before.checked_sub(1).and_then(|at| presence.get(at)) else { return Ok(()) };
        let read_end = read.answered().unwrap_or(Time::MAX);
        let removed = self.ops.iter().filter(|op| op.action == Action::Delete).any(|op| {
            let over = op.answered().is_some_and(|answered| answered < *there);
            op.outcome != Outcome::Failed && op.called <= read_end && !over
        });
        if removed {
            return Ok(());
        }
        Err(format!("stale lock-free read: {read}, but the row was there and nobody removed it"))
    }

    fn stale(&self, read: &Op, replaced: Time) -> String {
        let by = self.ops.iter().find(|op| op.answered() == Some(replaced) && !op.action.is_read());
        let by = by.map_or_else(String::new, ToString::to_string);
        let written = self.ops.iter().find(|op| op.action.writes() == read.action.reads());
        let written = written.map_or_else(String::new, ToString::to_string);
        format!("stale lock-free read: {read}, written by {written}, was replaced by {by}")
    }

    /// The first and the second promise.
    fn check_order(&self) -> Result<(), String> {
        let mut search = Search { steps: Vec::new(), optional: Vec::new() };
        for op in self.ops {
            if op.outcome == Outcome::Failed || matches!(op.action, Action::FreeRead(_)) {
                continue;
            }
            let seen = op.action.writes().and_then(|tag| self.known_by.get(&tag).copied());
            match (op.answered(), seen) {
                (Some(answered), _) => {
                    let end = answered.min(seen.unwrap_or(answered));
                    search.steps.push(Step { op: *op, called: op.called, end });
                }
                (None, Some(seen)) => {
                    search.steps.push(Step { op: *op, called: op.called, end: seen });
                }
                // Nobody saw it, so it matters only if it made the row come or go.
                (None, None) if matches!(op.action, Action::Insert(_) | Action::Delete) => {
                    search.optional.push(Step { op: *op, called: op.called, end: Time::MAX });
                }
                (None, None) => {}
            }
        }
        search.steps.sort_by_key(|step| (step.called, step.end));
        search.optional.sort_by_key(|step| step.called);
        search.run()
    }
}

#[derive(Clone, Copy)]
struct Step {
    op: Op,
    called: Time,
    end: Time,
}

/// A set of steps placed and the register after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    /// All steps before this one are placed.
    low: usize,
    /// Bits of the steps placed, from the word of `low` on.
    window: Vec<u64>,
    optional: u64,
    state: Option<Tag>,
}

impl Node {
    fn has(&self, step: usize) -> bool {
        let word = (step / 64).checked_sub(self.low / 64).and_then(|word| self.window.get(word));
        step < self.low || word.is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    fn place(&mut self, step: usize) {
        let word = step / 64 - self.low / 64;
        if self.window.len() <= word {
            self.window.resize(word + 1, 0);
        }
        self.window[word] |= 1 << (step % 64);
        let before = self.low / 64;
        while self.has(self.low) {
            self.low += 1;
            if self.low.is_multiple_of(64) {
                break;
            }
        }
        if self.low / 64 > before {
            self.window.remove(0);
            // The next word may be full to some point as well.
            while !self.window.is_empty() && self.has(self.low) {
                self.low += 1;
                if self.low.is_multiple_of(64) {
                    self.window.remove(0);
                }
            }
        }
    }

    fn placed(&self) -> usize {
        let at_low = (1u64 << (self.low % 64)) - 1;
        let beyond: u32 = self
            .window
            .iter()
            .enumerate()
            .map(|(i, word)| if i == 0 { word & !at_low } else { *word }.count_ones())
            .sum();
        self.low + beyond as usize
    }
}

struct Search {
    /// What has happened, by time of call.
    steps: Vec<Step>,
    /// What may have happened.
    optional: Vec<Step>,
}

impl Search {
    fn run(&self) -> Result<(), String> {
        if self.optional.len() > OPTIONAL_MAX {
            return Err(format!("too hard to judge: {} unknown outcomes", self.optional.len()));
        }
        let mut stack = vec![Node { low: 0, window: Vec::new(), optional: 0, state: None }];
        let mut seen: HashSet<Node> = HashSet::new();
        let mut best: Option<Node> = None;
        while let Some(mut node) = stack.pop() {
            let next = self.place_reads(&mut node);
            if node.low >= self.steps.len() {
                return Ok(());
            }
            if !seen.insert(node.clone()) {
                continue;
            }
            if seen.len() > NODES_MAX {
                return Err(format!("too hard to judge: {} operations", self.steps.len()));
            }
            if best.as_ref().is_none_or(|best| node.placed() > best.placed()) {
                best = Some(node.clone());
            }
            self.branch(&node, &next, &mut stack);
        }
        Err(best.map_or_else(String::new, |best| self.explain(&best)))
    }

    /// The steps that may be next, those that end first in front, and the first end of those left.
    fn candidates(&self, node: &Node) -> (Vec<usize>, Time) {
        let mut found = Vec::new();
        let mut first_end = Time::MAX;
        for (at, step) in self.steps.iter().enumerate().skip(node.low) {
            if step.called > first_end {
                break;
            }
            if !node.has(at) {
                first_end = first_end.min(step.end);
                found.push(at);
            }
        }
        found.retain(|at| self.steps[*at].called <= first_end);
        found.sort_by_key(|at| self.steps[*at].end);
        (found, first_end)
    }

    /// Places the reads that fit now. Returns what may be next then.
    fn place_reads(&self, node: &mut Node) -> (Vec<usize>, Time) {
        loop {
            let (candidates, first_end) = self.candidates(node);
            let mut any = false;
            for at in &candidates {
                let action = self.steps[*at].op.action;
                if action.is_read() && action.apply(node.state).is_some() {
                    node.place(*at);
                    any = true;
                }
            }
            if !any {
                return (candidates, first_end);
            }
        }
    }

    fn branch(&self, node: &Node, (candidates, first_end): &(Vec<usize>, Time), stack: &mut Vec<Node>) {
        // The last one pushed is tried first: what must end soon, and what may never have happened last.
        for (bit, step) in self.optional.iter().enumerate() {
            if step.called <= *first_end
                && node.optional >> bit & 1 == 0
                && let Some(state) = step.op.action.apply(node.state)
            {
                stack.push(Node { optional: node.optional | 1 << bit, state, ..node.clone() });
            }
        }
        for at in candidates.iter().rev() {
            let action = self.steps[*at].op.action;
            if !action.is_read()
                && let Some(state) = action.apply(node.state)
            {
                let mut next = Node { state, ..node.clone() };
                next.place(*at);
                stack.push(next);
            }
        }
    }

    fn explain(&self, node: &Node) -> String {
        let (candidates, _) = self.candidates(node);
        let left: Vec<String> = candidates.iter().take(5).map(|at| self.steps[*at].op.to_string()).collect();
        let mut before: Vec<&Step> = (0..self.steps.len())
            .filter(|at| node.has(*at))
            .map(|at| &self.steps[at])
            .filter(|step| !step.op.action.is_read())
            .collect();
        before.sort_by_key(|step| step.end);
        let last: Vec<String> = before.iter().rev().take(3).map(|step| step.op.to_string()).collect();
        format!(
            "not linearizable: {} of {} operations can be ordered, the row is then {:?}, and next would be one of: {}; the last writes: {}",
            node.placed(),
            self.steps.len(),
            node.state,
            left.join("; "),
            last.join("; ")
        )
    }
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
