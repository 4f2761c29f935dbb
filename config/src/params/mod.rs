//! The table of all configuration parameters: data that parsing, checking, explaining and comparing work
//! from.
//!
//! Each row gives NDB's name, type, default (in the file's own notation), range, restart letter and one
//! sentence. Rows marked `later()` are known to NDB operators and certainly stand in their files: they are
//! checked for type and range and accepted with the warning "accepted, not used yet". A name that is in no
//! table is refused.
//!
//! Restart letters are NDB's: N = rolling restart, IN = rolling restart with `--initial`, S = stop and
//! start of the whole cluster, IS = the same with all data wiped and restored.
//!
//! Names are compared without case and without `-` and `_`, so `no-of-replicas` finds `NoOfReplicas`.

mod data_node;
mod other;

use std::fmt;

/// The kinds of sections a configuration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// `[ndbd]`: a data node.
    DataNode,
    /// `[ndb_mgmd]` or `[mgm]`: a management server.
    MgmNode,
    /// `[mysqld]` or `[api]`: a SQL node or an application.
    ApiNode,
    /// `[tcp]`: the link of two nodes.
    Tcp,
    /// `[system]`: the cluster as a whole.
    System,
    /// `[shm]`: shared-memory links; known, not used yet.
    Shm,
}

/// Every kind of section, in the order people write them.
pub const SECTIONS: [Section; 6] =
    [Section::System, Section::MgmNode, Section::DataNode, Section::ApiNode, Section::Tcp, Section::Shm];

impl Section {
    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Section::DataNode => "ndbd",
            Section::MgmNode => "ndb_mgmd",
            Section::ApiNode => "mysqld",
            Section::Tcp => "tcp",
            Section::System => "system",
            Section::Shm => "shm",
        }
    }

    /// All spellings, folded as [`fold`] does.
    pub(crate) fn spellings(self) -> &'static [&'static str] {
        match self {
            Section::DataNode => &["ndbd", "ndbmtd", "db"],
            Section::MgmNode => &["ndbmgmd", "mgm", "mgmd"],
            Section::ApiNode => &["mysqld", "api", "mysql"],
            Section::Tcp => &["tcp"],
            Section::System => &["system"],
            Section::Shm => &["shm"],
        }
    }

    /// The parameters of this section.
    pub fn params(self) -> &'static [Param] {
        match self {
            Section::DataNode => data_node::PARAMS,
            Section::MgmNode => other::MGM_NODE,
            Section::ApiNode => other::API_NODE,
            Section::Tcp => other::TCP,
            Section::System => other::SYSTEM,
            Section::Shm => other::SHM,
        }
    }
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain count or id.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// Percent.
    Percent,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Bytes => "bytes",
            Unit::Millis => "ms",
            Unit::Micros => "us",
            Unit::Seconds => "s",
            Unit::Percent => "%",
        }
    }
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer with a unit, between `min` and `max`.
    Number(Unit),
    /// true or false.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text of at most `max` bytes.
    Text,
}

/// What it takes for a changed value to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Restart {
    /// N: rolling restart.
    Node,
    /// IN: rolling restart, each node with `--initial`.
    InitialNode,
    /// S: stop and start of the whole cluster.
    System,
    /// IS: stop, wipe, start and restore of the whole cluster.
    InitialSystem,
}

impl Restart {
    /// NDB's letter.
    pub fn letter(self) -> &'static str {
        match self {
            Restart::Node => "N",
            Restart::InitialNode => "IN",
            Restart::System => "S",
            Restart::InitialSystem => "IS",
        }
    }

    /// The letter in words.
    pub fn words(self) -> &'static str {
        match self {
            Restart::Node => "rolling restart",
            Restart::InitialNode => "rolling restart with --initial",
            Restart::System => "stop and start of the whole cluster",
            Restart::InitialSystem => "stop, initial start and restore of the whole cluster",
        }
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.letter())
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// NDB's name.
    pub name: &'static str,
    /// Other names people use.
    pub aliases: &'static [&'static str],
    /// Type.
    pub kind: Kind,
    /// Default, as it would be written in the file; empty = none (or worked out, see `doc`).
    pub default: &'static str,
    /// Smallest number allowed.
    pub min: u64,
    /// Largest number (or length of text) allowed.
    pub max: u64,
    /// What a change takes.
    pub restart: Restart,
    /// Does this release do something with it?
    pub used: bool,
    /// One sentence on what it is.
    pub doc: &'static str,
}

impl Param {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        restart: Restart,
        doc: &'static str,
    ) -> Param {
        Param { name, aliases: &[], kind, default, min: 0, max: 1024, restart, used: true, doc }
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> Param {
        self.aliases = aliases;
        self
    }

    const fn later(mut self) -> Param {
        self.used = false;
        self
    }

    /// Is it written with K, M, G?
    pub(crate) fn is_size(&self) -> bool {
        matches!(self.kind, Kind::Number(Unit::Bytes))
    }

    /// The allowed values in words: `a number from 1 to 4`.
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Number(unit) => {
                let show = |n: u64| if self.is_size() { crate::value::number_text(n) } else { n.to_string() };
                let space = if unit.name().is_empty() { "" } else { " " };
                format!("a number from {} to {}{space}{}", show(self.min), show(self.max), unit.name())
            }
            Kind::Flag => "true or false".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Text => format!("text of at most {} bytes", self.max),
        }
    }

    /// Does this (already folded) name mean this parameter?
    fn answers_to(&self, folded: &str) -> bool {
        fold(self.name) == folded || self.aliases.iter().any(|a| fold(a) == folded)
    }
}

/// Shorthands for the rows.
const fn num(
    n: &'static str,
    u: Unit,
    d: &'static str,
    min: u64,
    max: u64,
    r: Restart,
    doc: &'static str,
) -> Param {
    let mut param = Param::new(n, Kind::Number(u), d, r, doc);
    param.min = min;
    param.max = max;
    param
}
const fn int(n: &'static str, d: &'static str, min: u64, max: u64, r: Restart, doc: &'static str) -> Param {
    num(n, Unit::Count, d, min, max, r, doc)
}
const fn bytes(n: &'static str, d: &'static str, min: u64, max: u64, r: Restart, doc: &'static str) -> Param {
    num(n, Unit::Bytes, d, min, max, r, doc)
}
const fn ms(n: &'static str, d: &'static str, min: u64, max: u64, r: Restart, doc: &'static str) -> Param {
    num(n, Unit::Millis, d, min, max, r, doc)
}
const fn flag(n: &'static str, d: &'static str, r: Restart, doc: &'static str) -> Param {
    Param::new(n, Kind::Flag, d, r, doc)
}
const fn word(
    n: &'static str,
    d: &'static str,
    words: &'static [&'static str],
    r: Restart,
    doc: &'static str,
) -> Param {
    Param::new(n, Kind::Word(words), d, r, doc)
}
const fn text(n: &'static str, d: &'static str, max: u64, r: Restart, doc: &'static str) -> Param {
    let mut param = Param::new(n, Kind::Text, d, r, doc);
    param.max = max;
    param
}

/// A kibibyte, and so on.
const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const G: u64 = 1 << 30;
const T: u64 = 1 << 40;
/// NDB's "no limit" for 32-bit parameters (0xFFFFFEFF).
pub(crate) const NO_LIMIT: u64 = 4_294_967_039;

/// A name as it is compared: lower case, without `-`, `_` and blanks.
pub fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '\t')).flat_map(char::to_lowercase).collect()
}

/// Finds a parameter of a section by any of its names.
pub fn find(section: Section, name: &str) -> Option<&'static Param> {
    let folded = fold(name);
    section.params().iter().find(|p| p.answers_to(&folded))
}

/// The parameter of this section whose name is nearest to the given one, if any is near.
pub fn nearest(section: Section, name: &str) -> Option<&'static Param> {
    let names = section.params().iter().map(|p| (p.name, p));
    nearest_of(name, names)
}

/// Of several names the one nearest to what was written, if it is near enough to be meant.
pub(crate) fn nearest_of<T>(written: &str, names: impl Iterator<Item = (&'static str, T)>) -> Option<T> {
    let folded: String = fold(written).chars().take(64).collect();
    let allowed = (folded.len() / 3).max(1);
    names
        .map(|(name, item)| (edit_distance(&folded, &fold(name)), item))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, item)| item)
}

/// Of several names the one nearest to what was written, if it is near enough to be meant.
pub fn nearest_name(written: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    nearest_of(written, names.map(|name| (name, name)))
}

/// Levenshtein's distance, with two neighbours swapped counting as one mistake, as fingers make it.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut cost =
                (at(&last, j) + usize::from(ca != cb)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if is_swap {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse_value;

    #[test]
    fn every_default_is_a_legal_value_and_every_name_is_unique() {
        for section in SECTIONS {
            let mut seen = std::collections::BTreeSet::new();
            for param in section.params() {
                if !param.default.is_empty() {
                    let value = parse_value(param, param.default);
                    assert!(
                        value.is_ok(),
                        "{}: default {} is not {}",
                        param.name,
                        param.default,
                        param.allowed()
                    );
                }
                assert!(param.min <= param.max, "{}", param.name);
                assert!(param.doc.ends_with('.'), "{}: the doc is a sentence", param.name);
                for name in std::iter::once(&param.name).chain(param.aliases) {
                    assert!(seen.insert(fold(name)), "{name} twice in [{}]", section.name());
                }
            }
        }
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest(Section::DataNode, "DataMemry").map(|p| p.name), Some("DataMemory"));
        assert_eq!(nearest(Section::DataNode, "NoOfReplica").map(|p| p.name), Some("NoOfReplicas"));
        assert_eq!(nearest(Section::DataNode, "Quux").map(|p| p.name), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("shwo", "show"), 1);
    }
}
