//! Append: judges histories of transactions that append to lists and read them, and says what went wrong.
//!
//! A row holds a list of numbers; no number is appended twice, so a list read tells which transactions it
//! has seen and in which order they came (the idea of Jepsen's Elle).
//!
//! # What is promised
//!
//! 1. **Lists only grow.** Of two lists of a row, one begins with the other. No number is there twice, none
//!    that nobody appended, none of a transaction that failed, none before its transaction appended it.
//! 2. **Acknowledged is seen.** A read called after a commit was acknowledged, lock-free or not, on whatever
//!    replica, sees all its appends: none lost, none late, no half of a transaction.
//! 3. **What anybody has seen is committed.** A locked read called after any read was answered sees at least
//!    as much. A lock-free one need not while the commit is not acknowledged: another replica may be later.
//! 4. **Transactions that only use locks are strictly serializable**: there is one order of the committed
//!    ones that explains all they read, and that keeps to real time: acknowledged before another begun is
//!    before it in the order. A transaction of unknown outcome counts as committed as soon as anybody saw one
//!    of its appends; then all of them must be there.
//! 5. Nobody sees a list in the middle of what one transaction appends to it.
//!
//! # How
//!
//! Per row, the longest list anybody read gives the order of its appends; one pass over the reads with what
//! was acknowledged and seen by then finds what concerns a single row. Promise 4 is a graph: an edge for
//! "appended next" (ww), "read what it appended" (wr), "read the list before it appended" (rw) and "was
//! acknowledged before it began" (rt, through a chain of moments, so that there are few edges). A circle is a
//! contradiction; a shortest one is reported.

use super::{Outcome, Time};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Something appended; never twice.
pub(crate) type Element = u32;

/// An operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Append {
        row: u64,
        element: Element,
    },
    /// A list read; the transaction's own appends before it are in it.
    Read {
        row: u64,
        list: Vec<Element>,
        called: Time,
        answered: Time,
    },
}

/// A transaction of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Txn {
    pub(crate) client: u64,
    pub(crate) begun: Time,
    pub(crate) outcome: Outcome,
    /// Its reads take locks; else it only reads, each row for itself.
    pub(crate) locks: bool,
    pub(crate) ops: Vec<Op>,
}

impl Txn {
    fn acknowledged(&self) -> Option<Time> {
        match self.outcome {
            Outcome::Ok(at) => Some(at),
            Outcome::Failed | Outcome::Unknown => None,
        }
    }

    fn appends(&self) -> impl Iterator<Item = (u64, Element)> + '_ {
        self.ops.iter().filter_map(|op| match op {
            Op::Append { row, element } => Some((*row, *element)),
            Op::Read { .. } => None,
        })
    }
}

impl std::fmt::Display for Txn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |at: Time| at as f64 / 1e6;
        write!(f, "[client {} {:.3}..", self.client as i64, ms(self.begun))?;
        match self.outcome {
            Outcome::Ok(at) => write!(f, "{:.3} ms", ms(at))?,
            Outcome::Failed => write!(f, " ms, failed")?,
            Outcome::Unknown => write!(f, " ms, unknown")?,
        }
        for op in self.ops.iter().take(6) {
            match op {
                Op::Append { row, element } => write!(f, ", row {row} += {element}")?,
                Op::Read { row, list, .. } => {
                    let tail = list.last().map_or("nothing".into(), ToString::to_string);
                    write!(f, ", row {row} = {} ending with {tail}", list.len())?;
                }
            }
        }
        write!(f, "]")
    }
}

/// A read, without what its own transaction had appended before.
struct Seen<'a> {
    txn: usize,
    list: &'a [Element],
    called: Time,
    answered: Time,
}

/// All about one row.
#[derive(Default)]
struct Row<'a> {
    reads: Vec<Seen<'a>>,
    /// The longest list read.
    order: &'a [Element],
}

/// Judges a history.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn check(txns: &[Txn]) -> Result<(), String> {
    let history = History::new(txns)?;
    for (row, about) in &history.rows {
        history.check_row(*row, about).map_err(|text| format!("row {row}: {text}"))?;
    }
    history.check_order()
}

struct History<'a> {
    txns: &'a [Txn],
    /// Who appends an element, to which row, and whether it is the last one of the transaction there.
    writers: HashMap<Element, (usize, u64, bool)>,
    rows: BTreeMap<u64, Row<'a>>,
}

impl<'a> History<'a> {
    fn new(txns: &'a [Txn]) -> Result<Self, String> {
        let mut writers = HashMap::new();
        let mut rows: BTreeMap<u64, Row<'a>> = BTreeMap::new();
        for (at, txn) in txns.iter().enumerate() {
            let mut own: HashMap<u64, Vec<Element>> = HashMap::new();
            for op in &txn.ops {
                match op {
                    Op::Append { row, element } => {
                        own.entry(*row).or_default().push(*element);
                        writers.insert(*element, (at, *row, false));
                    }
                    Op::Read { row, list, called, answered } => {
                        let own = own.get(row).map_or(&[][..], Vec::as_slice);
                        let Some(before) = list.strip_suffix(own) else {
                            return Err(format!("row {row}: does not see its own appends: {txn}"));
                        };
                        let about = rows.entry(*row).or_default();
                        // A list that ends with own appends is no proof that they were committed.
                        if before.len() > about.order.len() {
                            about.order = before;
                        }
                        about.reads.push(Seen {
                            txn: at,
                            list: before,
                            called: *called,
                            answered: *answered,
                        });
                    }
                }
            }
            for element in own.values().filter_map(|list| list.last()) {
                if let Some((_, _, last)) = writers.get_mut(element) {
                    *last = true;
                }
            }
        }
        Ok(Self { txns, writers, rows })
    }

    fn writer(&self, element: Element) -> Option<&'a Txn> {
        self.writers.get(&element).and_then(|(at, _, _)| self.txns.get(*at))
    }

    fn check_row(&self, row: u64, about: &Row<'_>) -> Result<(), String> {
        for read in &about.reads {
            self.check_list(row, about, read)?;
        }
        let mut places: HashMap<Element, usize> = HashMap::new();
        for (at, element) in about.order.iter().enumerate() {
            if places.insert(*element, at).is_some() {
                let writer = self.writer(*element).map_or_else(String::new, ToString::to_string);
                return Err(format!("duplicate append: {element} is there twice, by {writer}"));
            }
        }
        self.check_length(row, about, &places)
    }

    /// What a list may be in itself.
    fn check_list(&self, row: u64, about: &Row<'_>, read: &Seen<'_>) -> Result<(), String> {
        let reader = &self.txns[read.txn];
        for element in new_elements(about, read) {
            let (writer, its_row, _) = match self.writers.get(element) {
                Some((at, row, last)) => (&self.txns[*at], *row, *last),
                None => return Err(format!("nobody appended {element}, seen by {reader}")),
            };
            if its_row != row {
                return Err(format!("{element} was appended to row {its_row}, seen by {reader}"));
            }
            if writer.outcome == Outcome::Failed {
                return Err(format!("dirty read: {element} of {writer}, which failed, seen by {reader}"));
            }
            if writer.begun > read.answered {
                return Err(format!("{element} of {writer}, which had not begun, seen by {reader}"));
            }
        }
        if !about.order.starts_with(read.list) {
            let at = about.order.iter().zip(read.list).position(|(a, b)| a != b).unwrap_or_default();
            return Err(format!(
                "lists that are no prefixes of each other: at {at}, one has {:?}, and {:?} was seen by {reader}",
                about.order.get(at),
                read.list.get(at)
            ));
        }
        if let Some(element) = read.list.last()
            && let Some((writer, _, false)) = self.writers.get(element)
        {
            let writer = &self.txns[*writer];
            return Err(format!("fractured read: {element} is not the last of {writer}, seen by {reader}"));
        }
        Ok(())
    }

    /// How long a list must have been at least.
    fn check_length(
        &self,
        row: u64,
        about: &Row<'_>,
        places: &HashMap<Element, usize>,
    ) -> Result<(), String> {
        let mut acknowledged = Floor::default();
        for (at, txn) in self.txns.iter().enumerate() {
            let Some(time) = txn.acknowledged() else { continue };
            for (_, element) in txn.appends().filter(|(r, _)| *r == row) {
                match places.get(&element) {
                    Some(place) => acknowledged.raise(time, place + 1, at),
                    None => {
                        // Nobody who began later may have missed it; who is the last to have had a chance?
                        if let Some(read) = about.reads.iter().find(|r| r.called > time && r.txn != at) {
                            let reader = &self.txns[read.txn];
                            return Err(format!("lost append: {element} of {txn} is not there for {reader}"));
                        }
                    }
                }
            }
        }
        acknowledged.settle();
        let mut seen = Floor::default();
        for read in &about.reads {
            seen.raise(read.answered, read.list.len(), read.txn);
        }
        seen.settle();
        for read in &about.reads {
            let reader = &self.txns[read.txn];
            if let Some(by) = acknowledged.missed(read) {
                return Err(format!("stale read: {reader} misses what {} appended", self.txns[by]));
            }
            if reader.locks
                && let Some(by) = seen.missed(read)
            {
                return Err(format!("stale locked read: {reader} misses what {} saw before", self.txns[by]));
            }
        }
        Ok(())
    }

    /// Whether a transaction was certainly committed.
    fn committed(&self, at: usize, seen: &[bool]) -> bool {
        let txn = &self.txns[at];
        txn.locks && (txn.acknowledged().is_some() || txn.outcome == Outcome::Unknown && seen[at])
    }

    /// The fourth promise.
    fn check_order(&self) -> Result<(), String> {
        let mut seen = vec![false; self.txns.len()];
        for element in self.rows.values().flat_map(|row| row.order) {
            if let Some((at, _, _)) = self.writers.get(element) {
                seen[*at] = true;
            }
        }
        let committed: Vec<bool> = (0..self.txns.len()).map(|at| self.committed(at, &seen)).collect();
        let mut graph = Graph::new(self.txns.len());
        self.real_time(&committed, &mut graph);
        for (row, about) in &self.rows {
            self.row_edges(*row, about, &committed, &mut graph);
        }
        match graph.circle() {
            None => Ok(()),
            Some(circle) => Err(self.describe(&circle)),
        }
    }

    fn row_edges(&self, row: u64, about: &Row<'_>, committed: &[bool], graph: &mut Graph) {
        let writer = |element: &Element| self.writers.get(element).map(|(at, _, _)| *at);
        let order: Vec<usize> = about.order.iter().filter_map(writer).collect();
        for pair in order.windows(2) {
            graph.edge(pair[0], pair[1], Why::Append(row));
        }
        // Committed and never seen: all of them come after the longest list, in an order nobody knows.
        let place: HashMap<&Element, ()> = about.order.iter().map(|element| (element, ())).collect();
        let unseen: Vec<usize> = (0..self.txns.len())
            .filter(|at| committed[*at])
            .filter(|at| self.txns[*at].appends().any(|(r, e)| r == row && !place.contains_key(&e)))
            .collect();
        if let Some(last) = order.last() {
            unseen.iter().for_each(|at| graph.edge(*last, *at, Why::Append(row)));
        }
        for read in about.reads.iter().filter(|read| committed[read.txn]) {
            if let Some(at) = read.list.last().and_then(writer) {
                graph.edge(at, read.txn, Why::Sees(row));
            }
            match order.get(read.list.len()) {
                Some(next) => graph.edge(read.txn, *next, Why::Misses(row)),
                None => unseen.iter().for_each(|at| graph.edge(read.txn, *at, Why::Misses(row))),
            }
        }
    }

    /// From each acknowledged transaction to all that began later, over a chain of moments.
    fn real_time(&self, committed: &[bool], graph: &mut Graph) {
        let mut ends: Vec<(Time, usize)> = (0..self.txns.len())
            .filter(|at| committed[*at])
            .filter_map(|at| Some((self.txns[at].acknowledged()?, at)))
            .collect();
        ends.sort_unstable();
        let first = self.txns.len();
        for (moment, (_, at)) in ends.iter().enumerate() {
            graph.edge(*at, first + moment, Why::Time);
            if moment + 1 < ends.len() {
                graph.edge(first + moment, first + moment + 1, Why::Time);
            }
        }
        for at in (0..self.txns.len()).filter(|at| committed[*at]) {
            let before = ends.partition_point(|(end, _)| *end < self.txns[at].begun);
            if before > 0 {
                graph.edge(first + before - 1, at, Why::Time);
            }
        }
    }

    fn describe(&self, circle: &[(usize, Why)]) -> String {
        let misses = circle.iter().filter(|(_, why)| matches!(why, Why::Misses(_))).count();
        let sees = circle.iter().any(|(_, why)| matches!(why, Why::Sees(_)));
        let kind = match (misses, sees) {
            (0, false) => "G0",
            (0, true) => "G1c",
            (1, _) => "G-single",
            _ => "G2",
        };
        let time = if circle.iter().any(|(_, why)| *why == Why::Time) { ", with real time" } else { "" };
        let mut text = format!("not serializable ({kind}{time}):");
        let mut in_time = false;
        for (at, why) in circle {
            if let Some(txn) = self.txns.get(*at) {
                text += &format!(" {txn}");
                in_time = false;
            }
            if !in_time {
                text += &match why {
                    Why::Append(row) => format!(" --before in row {row}-->"),
                    Why::Sees(row) => format!(" --seen in row {row} by-->"),
                    Why::Misses(row) => format!(" --misses in row {row}-->"),
                    Why::Time => " --over before-->".into(),
                };
            }
            in_time = *why == Why::Time;
        }
        text + " the first"
    }
}

/// The elements of a read to look at: those that the longest list does not have at the same place, and all
/// of the longest list itself.
fn new_elements<'r>(about: &Row<'_>, read: &Seen<'r>) -> &'r [Element] {
    let same = if std::ptr::eq(about.order, read.list) {
        0
    } else {
        about.order.iter().zip(read.list).take_while(|(a, b)| a == b).count()
    };
    // The last one always: whether it had been begun shows there first.
    &read.list[same.min(read.list.len().saturating_sub(1))..]
}

/// The least length of a list, over time.
#[derive(Default)]
struct Floor {
    /// Time, length, whose doing.
    steps: Vec<(Time, usize, usize)>,
}

impl Floor {
    fn raise(&mut self, at: Time, length: usize, txn: usize) {
        self.steps.push((at, length, txn));
    }

    /// Sorts, and makes lengths grow.
    fn settle(&mut self) {
        self.steps.sort_unstable();
        let mut greatest = (0, 0);
        for (_, length, txn) in &mut self.steps {
            if *length > greatest.0 {
                greatest = (*length, *txn);
            }
            (*length, *txn) = greatest;
        }
    }

    /// Who made the list longer than a read found it, before the read was called.
    fn missed(&self, read: &Seen<'_>) -> Option<usize> {
        let before = self.steps.partition_point(|(at, _, _)| *at < read.called);
        let (_, length, txn) = self.steps.get(before.checked_sub(1)?)?;
        (*length > read.list.len() && *txn != read.txn).then_some(*txn)
    }
}

/// Why a transaction is before another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    Append(u64),
    Sees(u64),
    Misses(u64),
    Time,
}

/// Transactions, then moments.
struct Graph {
    edges: Vec<Vec<(usize, Why)>>,
}

impl Graph {
    fn new(txns: usize) -> Self {
        Self { edges: vec![Vec::new(); txns * 2] }
    }

    fn edge(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.edges[from].push((to, why));
        }
    }

    /// A short circle, if there is any: what is left when nodes nobody leads to are taken away, again and
    /// again, then the shortest way from a node of it back to itself.
    fn circle(&self) -> Option<Vec<(usize, Why)>> {
        let mut leading_here = vec![0usize; self.edges.len()];
        for (to, _) in self.edges.iter().flatten() {
            leading_here[*to] += 1;
        }
        let mut free: Vec<usize> = (0..self.edges.len()).filter(|at| leading_here[*at] == 0).collect();
        let mut left = self.edges.len();
        while let Some(at) = free.pop() {
            left -= 1;
            for (to, _) in &self.edges[at] {
                leading_here[*to] -= 1;
                if leading_here[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        if left == 0 {
            return None;
        }
        // Not all that is left is on a circle, so several beginnings are tried; bounded, as this is for
        // people.
        let begins = (0..self.edges.len()).filter(|at| leading_here[*at] > 0);
        let mut shortest: Option<Vec<(usize, Why)>> = None;
        for (tried, begin) in begins.enumerate() {
            if tried >= 200 && shortest.is_some() {
                break;
            }
            if let Some(circle) = self.way_back(begin)
                && shortest.as_ref().is_none_or(|s| s.len() > circle.len())
            {
                shortest = Some(circle);
            }
        }
        shortest
    }

    fn way_back(&self, begin: usize) -> Option<Vec<(usize, Why)>> {
        let mut from: Vec<Option<(usize, Why)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([begin]);
        while let Some(at) = queue.pop_front() {
            for (to, why) in &self.edges[at] {
                if from[*to].is_some() {
                    continue;
                }
                from[*to] = Some((at, *why));
                if *to != begin {
                    queue.push_back(*to);
                    continue;
                }
                let mut circle = Vec::new();
                let mut here = begin;
                while let Some((before, why)) = from[here] {
                    circle.push((before, why));
                    here = before;
                    if here == begin {
                        break;
                    }
                }
                circle.reverse();
                return Some(circle);
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
