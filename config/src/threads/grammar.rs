//! NDB's `ThreadConfig` text: `ldm={count=2,cpubind=1-2},tc={count=1},main,rep,recv={count=1,realtime=1},io`.
//!
//! An entry is a thread type, with its parameters in braces or alone. A comma separates entries, parameters
//! and the CPUs of a list; a list goes on as long as digits follow. At most one of the four CPU parameters
//! per entry; `thread_prio` excludes `realtime`; a type may have several entries, each for its own threads.
//! `main`, `rep`, `recv` and `ldm` must be listed, with `count=0` when they are to have no thread of their
//! own. Errors name the column. Types this release has no thread for yet (`query`, `recover`, `io`,
//! `watchdog`, `idxbld`) are read and reported as not used, and so is a spin time beside `realtime=1`.
//!
//! What the parameters do to a worker: `cpubind` and `cpuset` tie it to CPUs; `spintime` is the longest it
//! looks for work before it sleeps; `realtime=1` gives it a real-time priority (and no spin); `thread_prio`
//! sets its nice value (0 is 19, 5 is 0, 10 is -20); with `nosend=1` it never writes to a link itself.

use super::layout::{SpinMethod, ThreadLayout, Threads, WorkerLayout};
use std::collections::BTreeMap;
use std::fmt;

/// Highest CPU number accepted.
const CPU_MAX: usize = 4095;
/// Longest spin accepted.
const SPIN_TIME_US_MAX: u32 = 500;

/// A thread type of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadType {
    /// Rows and indexes.
    Ldm,
    /// Reads on behalf of an LDM; not used yet.
    Query,
    /// Recovery only; not used yet.
    Recover,
    /// Schema and membership.
    Main,
    /// Receives.
    Recv,
    /// Sends.
    Send,
    /// Events.
    Rep,
    /// Files; not used yet.
    Io,
    /// Coordinates transactions.
    Tc,
    /// Looks for stuck threads; not used yet.
    Watchdog,
    /// Builds indexes; not used yet.
    Idxbld,
}

/// Name, type, smallest and largest number of threads, and whether it must be listed.
const TYPES: &[(&str, ThreadType, u32, u32, bool)] = &[
    ("ldm", ThreadType::Ldm, 0, 332, true),
    ("query", ThreadType::Query, 0, 332, false),
    ("recover", ThreadType::Recover, 0, 332, false),
    ("main", ThreadType::Main, 0, 2, true),
    ("recv", ThreadType::Recv, 1, 64, true),
    ("send", ThreadType::Send, 0, 64, false),
    ("rep", ThreadType::Rep, 0, 1, true),
    ("io", ThreadType::Io, 1, 1, false),
    ("tc", ThreadType::Tc, 0, 128, false),
    ("watchdog", ThreadType::Watchdog, 1, 1, false),
    ("idxbld", ThreadType::Idxbld, 0, 1, false),
];

impl ThreadType {
    fn row(self) -> (&'static str, u32, u32, bool) {
        let row = TYPES.iter().find(|row| row.1 == self);
        row.map_or(("", 0, 0, false), |(name, _, min, max, listed)| (name, *min, *max, *listed))
    }

    /// The name in the grammar.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Has this release no thread for it?
    fn is_not_used_yet(self) -> bool {
        match self {
            ThreadType::Query | ThreadType::Recover => true,
            // Rows live in memory: no file is written, no index is built in a restart, and workers notice
            // their own stalls.
            ThreadType::Io | ThreadType::Watchdog | ThreadType::Idxbld => true,
            ThreadType::Ldm | ThreadType::Main | ThreadType::Recv => false,
            ThreadType::Send | ThreadType::Rep | ThreadType::Tc => false,
        }
    }
}

/// The CPUs of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CpuBinding {
    /// Any CPU.
    #[default]
    Any,
    /// One CPU for each thread, in order.
    Bind(Vec<usize>),
    /// Each thread may use all of these.
    Set(Vec<usize>),
    /// As `Bind`, and nobody else may use them.
    BindExclusive(Vec<usize>),
    /// As `Set`, and nobody else may use them.
    SetExclusive(Vec<usize>),
}

impl CpuBinding {
    fn cpus(&self) -> &[usize] {
        match self {
            CpuBinding::Any => &[],
            CpuBinding::Bind(c)
            | CpuBinding::Set(c)
            | CpuBinding::BindExclusive(c)
            | CpuBinding::SetExclusive(c) => c,
        }
    }

    fn is_exclusive(&self) -> bool {
        matches!(self, CpuBinding::BindExclusive(_) | CpuBinding::SetExclusive(_))
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadEntry {
    /// Which threads.
    pub thread_type: ThreadType,
    /// How many.
    pub count: u32,
    /// On which CPUs.
    pub cpus: CpuBinding,
    /// `spintime`.
    pub spin_time_us: Option<u32>,
    /// `realtime`.
    pub realtime: Option<bool>,
    /// `nosend`.
    pub nosend: bool,
    /// `thread_prio`.
    pub thread_prio: Option<u8>,
    column: usize,
}

/// A parsed `ThreadConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadConfig {
    /// Its entries, in order.
    pub entries: Vec<ThreadEntry>,
}

/// What is wrong with a `ThreadConfig`, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadConfigError {
    /// Column in the text, from 1; 0 when it is about the whole.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ThreadConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.column == 0 {
            f.write_str(&self.message)
        } else {
            write!(f, "column {}: {}", self.column, self.message)
        }
    }
}

impl std::error::Error for ThreadConfigError {}

type Result<T> = std::result::Result<T, ThreadConfigError>;

fn fail<T>(column: usize, message: impl Into<String>) -> Result<T> {
    Err(ThreadConfigError { column, message: message.into() })
}

impl ThreadConfig {
    /// Reads and validates the text.
    pub fn parse(text: &str) -> Result<ThreadConfig> {
        let mut reader = Reader { chars: text.chars().collect(), at: 0 };
        let mut entries = Vec::new();
        loop {
            entries.push(reader.entry()?);
            reader.blanks();
            match reader.next() {
                None => break,
                Some(',') => {}
                Some(c) => return fail(reader.at, format!("expected a comma or the end, found {c:?}")),
            }
        }
        let config = ThreadConfig { entries };
        config.check_counts()?;
        config.check_exclusive()?;
        Ok(config)
    }

    /// Threads of one type, over all its entries.
    pub fn count(&self, thread_type: ThreadType) -> u32 {
        let of_type = self.entries.iter().filter(|e| e.thread_type == thread_type);
        of_type.fold(0, |sum, e| sum.saturating_add(e.count))
    }

    /// What was read but has no effect yet.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |e: &ThreadEntry| {
            let name = e.thread_type.name();
            if e.thread_type.is_not_used_yet() && e.count > 0 {
                Some(format!("{name} threads are accepted, not used yet"))
            } else if e.realtime == Some(true) && e.spin_time_us.is_some_and(|us| us > 0) {
                Some(format!("{name}: spintime has no effect beside realtime=1"))
            } else {
                None
            }
        };
        self.entries.iter().filter_map(warning).collect()
    }

    fn check_counts(&self) -> Result<()> {
        for (name, thread_type, min, max, must_be_listed) in TYPES {
            let first = self.entries.iter().find(|e| e.thread_type == *thread_type);
            let Some(first) = first else {
                if *must_be_listed {
                    return fail(
                        0,
                        format!(
                            "{name} is missing: main, rep, recv and ldm must be listed, count=0 for none"
                        ),
                    );
                }
                continue;
            };
            let count = self.count(*thread_type);
            if count < *min || count > *max {
                return fail(first.column, format!("{count} {name} threads; allowed is {min} to {max}"));
            }
        }
        let (ldm, query) = (self.count(ThreadType::Ldm), self.count(ThreadType::Query));
        if query > 0 && (ldm == 0 || !query.is_multiple_of(ldm) || query / ldm > 3) {
            let column =
                self.entries.iter().find(|e| e.thread_type == ThreadType::Query).map_or(0, |e| e.column);
            return fail(
                column,
                format!("{query} query threads; allowed is 0, 1, 2 or 3 times the {ldm} ldm threads"),
            );
        }
        Ok(())
    }

    fn check_exclusive(&self) -> Result<()> {
        let mut owner: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            for cpu in entry.cpus.cpus() {
                let exclusive = entry.cpus.is_exclusive();
                if let Some((other, other_exclusive)) = owner.get(cpu)
                    && *other != index
                    && (exclusive || *other_exclusive)
                {
                    let names = self.entries.get(*other).map_or("", |e| e.thread_type.name());
                    let message = format!("cpu {cpu} is bound exclusively and also used by {names}");
                    return fail(entry.column, message);
                }
                owner.insert(*cpu, (index, exclusive));
            }
        }
        Ok(())
    }

    /// The workers it describes.
    pub fn layout(&self) -> ThreadLayout {
        let mut threads = Threads::default();
        for entry in &self.entries {
            let list = match entry.thread_type {
                ThreadType::Ldm => &mut threads.ldm,
                ThreadType::Main => &mut threads.main,
                ThreadType::Recv => &mut threads.recv,
                ThreadType::Send => &mut threads.send,
                ThreadType::Rep => &mut threads.rep,
                ThreadType::Tc => &mut threads.tc,
                // Not workers, and nothing else yet.
                ThreadType::Query | ThreadType::Recover => continue,
                ThreadType::Io | ThreadType::Watchdog | ThreadType::Idxbld => continue,
            };
            list.extend((0..entry.count).map(|i| entry.worker(i)));
        }
        threads.host()
    }
}

impl ThreadEntry {
    fn worker(&self, index: u32) -> WorkerLayout {
        let nth = |cpus: &[usize]| usize::try_from(index).ok().and_then(|i| cpus.get(i)).copied();
        let (cpu, cpuset) = match &self.cpus {
            CpuBinding::Any => (None, Vec::new()),
            CpuBinding::Bind(cpus) | CpuBinding::BindExclusive(cpus) => (nth(cpus), Vec::new()),
            CpuBinding::Set(cpus) | CpuBinding::SetExclusive(cpus) => (None, cpus.clone()),
        };
        WorkerLayout {
            cpu,
            cpuset,
            spin_time_us: self.spin_time_us.unwrap_or(0),
            spin_method: SpinMethod::default(),
            realtime: self.realtime.unwrap_or(false),
            thread_prio: self.thread_prio,
            nosend: self.nosend,
            spin_given: self.spin_time_us.is_some(),
            realtime_given: self.realtime.is_some(),
            roles: Vec::new(),
        }
    }
}

/// Reads the text character by character.
struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// The next character must be this one.
    fn expect(&mut self, wanted: char) -> Result<()> {
        self.blanks();
        match self.next() {
            Some(c) if c == wanted => Ok(()),
            Some(c) => fail(self.at, format!("expected {wanted:?}, found {c:?}")),
            None => fail(self.at + 1, format!("expected {wanted:?}, found the end")),
        }
    }

    fn word(&mut self) -> String {
        self.blanks();
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphabetic() || *c == '_') {
            word.push(c.to_ascii_lowercase());
            self.at += 1;
        }
        word
    }

    fn number(&mut self, what: &str, max: u32) -> Result<u32> {
        self.blanks();
        let column = self.at + 1;
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        if digits.is_empty() {
            return fail(column, format!("{what} needs a number from 0 to {max}"));
        }
        match digits.parse::<u32>() {
            Ok(number) if number <= max => Ok(number),
            _ => fail(column, format!("{what} is out of range; allowed is 0 to {max}")),
        }
    }

    fn entry(&mut self) -> Result<ThreadEntry> {
        self.blanks();
        let column = self.at + 1;
        let name = self.word();
        let Some((_, thread_type, ..)) = TYPES.iter().find(|row| row.0 == name) else {
            let names: Vec<&str> = TYPES.iter().map(|row| row.0).collect();
            let found = if name.is_empty() {
                "no thread type".to_owned()
            } else {
                format!("unknown thread type {name}")
            };
            return fail(column, format!("{found}; thread types are {}", names.join(", ")));
        };
        let mut entry = ThreadEntry {
            thread_type: *thread_type,
            count: 1,
            cpus: CpuBinding::Any,
            spin_time_us: None,
            realtime: None,
            nosend: false,
            thread_prio: None,
            column,
        };
        self.blanks();
        if self.peek() == Some('=') {
            self.at += 1;
            self.expect('{')?;
            self.params(&mut entry)?;
        }
        entry.check()?;
        Ok(entry)
    }

    fn params(&mut self, entry: &mut ThreadEntry) -> Result<()> {
        let mut seen: Vec<String> = Vec::new();
        self.blanks();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blanks();
            let column = self.at + 1;
            let name = self.word();
            if seen.contains(&name) {
                return fail(column, format!("{name} is given twice in one entry"));
            }
            self.param(entry, &name, column)?;
            seen.push(name);
            self.blanks();
            match self.next() {
                Some(',') => {}
                Some('}') => return Ok(()),
                Some(c) => return fail(self.at, format!("expected a comma or a closing brace, found {c:?}")),
                None => return fail(self.at + 1, "the closing brace is missing"),
            }
        }
    }

    fn param(&mut self, entry: &mut ThreadEntry, name: &str, column: usize) -> Result<()> {
        const NAMES: &str = "count, cpubind, cpuset, cpubind_exclusive, cpuset_exclusive, spintime, realtime, nosend, thread_prio";
        match name {
            "count" => {
                self.expect('=')?;
                entry.count = self.number(name, 332)?;
            }
            "spintime" => {
                self.expect('=')?;
                entry.spin_time_us = Some(self.number(name, SPIN_TIME_US_MAX)?);
            }
            "realtime" => {
                self.expect('=')?;
                entry.realtime = Some(self.number(name, 1)? == 1);
            }
            "nosend" => {
                self.expect('=')?;
                entry.nosend = self.number(name, 1)? == 1;
                let may = [ThreadType::Main, ThreadType::Ldm, ThreadType::Rep, ThreadType::Tc];
                if !may.contains(&entry.thread_type) {
                    return fail(column, "nosend is only for main, ldm, rep and tc");
                }
            }
            "thread_prio" => {
                self.expect('=')?;
                entry.thread_prio = u8::try_from(self.number(name, 10)?).ok();
            }
            "cpubind" | "cpuset" | "cpubind_exclusive" | "cpuset_exclusive" => {
                if entry.cpus != CpuBinding::Any {
                    return fail(
                        column,
                        "only one of cpubind, cpuset, cpubind_exclusive, cpuset_exclusive is allowed",
                    );
                }
                self.expect('=')?;
                let cpus = self.cpu_list(name)?;
                entry.cpus = match name {
                    "cpubind" => CpuBinding::Bind(cpus),
                    "cpuset" => CpuBinding::Set(cpus),
                    "cpubind_exclusive" => CpuBinding::BindExclusive(cpus),
                    _ => CpuBinding::SetExclusive(cpus),
                };
            }
            "" => return fail(column, format!("expected a parameter: {NAMES}")),
            _ => return fail(column, format!("unknown parameter {name}; parameters are {NAMES}")),
        }
        Ok(())
    }

    /// `0,2,4-7`: goes on while a comma is followed by a digit.
    fn cpu_list(&mut self, what: &str) -> Result<Vec<usize>> {
        let max = u32::try_from(CPU_MAX).unwrap_or(u32::MAX);
        let mut cpus = Vec::new();
        loop {
            let column = self.at + 1;
            let from = self.number(what, max)?;
            let mut to = from;
            self.blanks();
            if self.peek() == Some('-') {
                self.at += 1;
                to = self.number(what, max)?;
            }
            if to < from {
                return fail(column, format!("the range {from}-{to} runs backwards"));
            }
            for cpu in (from..=to).filter_map(|c| usize::try_from(c).ok()) {
                if cpus.contains(&cpu) {
                    return fail(column, format!("cpu {cpu} is listed twice"));
                }
                cpus.push(cpu);
            }
            self.blanks();
            let mut ahead = self.at + 1;
            while self.chars.get(ahead).is_some_and(|c| c.is_whitespace()) {
                ahead += 1;
            }
            let goes_on = self.peek() == Some(',') && self.chars.get(ahead).is_some_and(char::is_ascii_digit);
            if !goes_on {
                return Ok(cpus);
            }
            self.at += 1;
        }
    }
}

impl ThreadEntry {
    fn check(&self) -> Result<()> {
        let name = self.thread_type.name();
        if self.realtime.is_some() && self.thread_prio.is_some() {
            return fail(self.column, format!("{name}: thread_prio excludes realtime"));
        }
        if let CpuBinding::Bind(cpus) | CpuBinding::BindExclusive(cpus) = &self.cpus
            && cpus.len() != usize::try_from(self.count).unwrap_or(usize::MAX)
        {
            let message = format!(
                "{name}: cpubind lists {} CPUs for {} threads; give one for each, or use cpuset",
                cpus.len(),
                self.count
            );
            return fail(self.column, message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Role;

    const BASE: &str = "ldm,main,rep,recv";

    #[test]
    fn a_full_config_becomes_workers() {
        let text = "ldm={count=2,cpubind=1-2,spintime=50}, tc={count=1,cpubind=3,nosend=1},recv={cpuset=4,5,realtime=1},send={thread_prio=10},main,rep,io={cpubind=0},watchdog,idxbld={cpuset=6}";
        let layout = ThreadConfig::parse(text).unwrap().layout();
        assert_eq!(
            layout.describe(),
            "worker 0: ldm0 on cpu 1; spins up to 50 us\nworker 1: ldm1 on cpu 2; spins up to 50 us\n\
             worker 2: tc0 on cpu 3; leaves sending to others\n\
             worker 3: recv0 on cpus [4, 5]; real-time priority\nworker 4: send0; thread_prio 10\n\
             worker 5: main\nworker 6: rep; rep has no block yet and does nothing"
        );
        assert_eq!(layout.workers[1].spin_time_us, 50);
        assert!(layout.workers[2].nosend && layout.workers[3].realtime);
        assert_eq!(layout.workers[4].thread_prio, Some(10));
    }

    #[test]
    fn roles_without_a_thread_find_a_host() {
        let layout = ThreadConfig::parse("ldm={count=0},main={count=0},rep={count=0},recv").unwrap().layout();
        assert_eq!(layout.workers.len(), 1);
        assert_eq!(
            layout.workers[0].roles,
            [Role::Recv(0), Role::Send(0), Role::Ldm(0), Role::Main, Role::Tc(0), Role::Rep]
        );
        let layout = ThreadConfig::parse("ldm,main,rep={count=0},recv={count=2}").unwrap().layout();
        assert_eq!(
            layout.describe(),
            "worker 0: ldm0\nworker 1: recv0_send0_rep; rep has no block yet and does nothing\n\
             worker 2: recv1_send1\nworker 3: main_tc0"
        );
        let layout = ThreadConfig::parse("ldm,main={count=2},rep={count=0},recv").unwrap().layout();
        assert_eq!(layout.worker_of(Role::Rep), Some(3));
    }

    #[test]
    fn mistakes_name_the_column() {
        for (text, column, part) in [
            ("", 1, "no thread type"),
            ("ldm,,main", 5, "no thread type"),
            ("lmd={count=1}", 1, "unknown thread type lmd"),
            ("ldm=count=1", 5, "expected '{'"),
            ("ldm={count=1", 13, "closing brace"),
            ("ldm={count=}", 12, "needs a number"),
            ("ldm={count=333}", 12, "out of range"),
            ("ldm={cnt=1}", 6, "unknown parameter cnt"),
            ("ldm={count=1,count=2}", 14, "twice"),
            ("ldm={cpubind=1,cpuset=2}", 16, "only one of"),
            ("ldm={count=2,cpubind=1}", 1, "lists 1 CPUs for 2 threads"),
            ("ldm={cpubind=2-1}", 14, "backwards"),
            ("ldm={count=2,cpubind=1,1}", 24, "listed twice"),
            ("ldm={realtime=1,thread_prio=2}", 1, "excludes realtime"),
            ("recv={nosend=1}", 7, "nosend is only"),
            ("ldm={thread_prio=11}", 18, "0 to 10"),
            ("ldm main", 5, "expected a comma"),
            ("ldm,main,rep", 0, "recv is missing"),
            ("ldm,main,rep,recv={count=0}", 14, "allowed is 1 to 64"),
            ("ldm,main={count=3},rep,recv", 5, "allowed is 0 to 2"),
            ("ldm={count=2},query={count=3},main,rep,recv", 15, "times the 2 ldm"),
            ("ldm={cpubind_exclusive=1},tc={cpubind=1},main,rep,recv", 27, "exclusively"),
        ] {
            let error = ThreadConfig::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(ThreadConfig::parse(BASE).is_ok());
    }

    #[test]
    fn what_has_no_effect_is_reported() {
        let config = ThreadConfig::parse("ldm,query,main,rep,recv").unwrap();
        assert_eq!(config.warnings(), ["query threads are accepted, not used yet"]);
        assert_eq!(config.layout().workers.len(), 4);
        let config = ThreadConfig::parse("ldm={realtime=1,spintime=50},io={count=1},main,rep,recv").unwrap();
        assert_eq!(
            config.warnings(),
            ["ldm: spintime has no effect beside realtime=1", "io threads are accepted, not used yet"]
        );
    }
}
