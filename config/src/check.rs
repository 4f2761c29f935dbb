//! What one parameter alone cannot show: pairs that contradict each other, ports used twice, links to nobody.
//!
//! Pairs are tables, each row argued where it is not plain. A pair is only reported when the file gives at
//! least one of the two, and the message names both, with the line of each. A pair given in a `default`
//! section is reported once, not once per node.

use crate::params::Section;
use crate::problem::{Place, ProblemCode, Problems};
use crate::resolve::{Draft, Settings};
use std::collections::{BTreeMap, BTreeSet};

/// The first must not be above the second.
struct AtMost {
    section: Section,
    small: &'static str,
    large: &'static str,
    /// A second value of zero means "no limit".
    zero_is_no_limit: bool,
}

const fn at_most(
    section: Section,
    small: &'static str,
    large: &'static str,
    zero_is_no_limit: bool,
) -> AtMost {
    AtMost { section, small, large, zero_is_no_limit }
}

const AT_MOST: &[AtMost] = &[
    at_most(Section::DataNode, "InitialNoOfOpenFiles", "MaxNoOfOpenFiles", true),
    at_most(Section::DataNode, "MinDiskWriteSpeed", "MaxDiskWriteSpeed", false),
    at_most(Section::DataNode, "TimeBetweenEpochs", "TimeBetweenGlobalCheckpoints", false),
    at_most(Section::DataNode, "TimeBetweenGlobalCheckpoints", "TimeBetweenGlobalCheckpointsTimeout", false),
    at_most(Section::DataNode, "TimeBetweenEpochs", "TimeBetweenEpochsTimeout", true),
    // Half a cluster that asks the arbitrator must still be waiting when the heartbeats have told the other
    // half.
    at_most(Section::DataNode, "HeartbeatIntervalDbDb", "ArbitrationTimeout", false),
    at_most(Section::DataNode, "BackupWriteSize", "BackupMaxWriteSize", false),
    at_most(Section::DataNode, "BackupMaxWriteSize", "BackupDataBufferSize", false),
    at_most(Section::Tcp, "OverloadLimit", "SendBufferMemory", false),
    at_most(Section::ApiNode, "BatchByteSize", "MaxScanBatchSize", false),
];

/// Old pools whose memory `TransactionMemory` replaces: giving both leaves open which one holds.
const REPLACED_BY_TRANSACTION_MEMORY: &[&str] = &[
    "MaxNoOfConcurrentIndexOperations",
    "MaxNoOfFiredTriggers",
    "MaxNoOfLocalOperations",
    "MaxNoOfLocalScans",
    "TransactionBufferMemory",
];

/// Looks at the whole file.
pub(crate) fn check(draft: &Draft, problems: &mut Problems) {
    let mut reporter = Reporter { problems, seen: BTreeSet::new() };
    let tcp = std::iter::once(&draft.tcp_default).chain(&draft.tcp_links);
    for settings in draft.data_nodes.iter().chain(&draft.mgm_nodes).chain(&draft.api_nodes).chain(tcp) {
        pairs(settings, &mut reporter);
    }
    for node in &draft.data_nodes {
        data_node(node, &mut reporter);
    }
    same_replicas(draft, &mut reporter);
    ports(&draft.data_nodes, "ServerPort", &mut reporter);
    ports(&draft.mgm_nodes, "PortNumber", &mut reporter);
    links(draft, &mut reporter);
    needed_nodes(draft, &mut reporter);
    risks(draft, &mut reporter);
}

/// Reports each problem once, however many nodes share the lines.
struct Reporter<'a> {
    problems: &'a mut Problems,
    seen: BTreeSet<(u32, String)>,
}

impl Reporter<'_> {
    fn error(&mut self, place: &Place, code: ProblemCode, message: String, hint: &str) {
        if self.seen.insert((place.line, message.clone())) {
            self.problems.error(place, code, message, hint);
        }
    }

    fn warn(&mut self, place: &Place, code: ProblemCode, message: String, hint: &str) {
        if self.seen.insert((place.line, message.clone())) {
            self.problems.warn(place, code, message, hint);
        }
    }
}

/// `DataMemory (80M, line 3)` or `DataMemory (98M, the default)`.
fn naming(settings: &Settings, name: &str) -> String {
    let param = settings.section.params().iter().find(|p| p.name == name);
    let value = match (param, settings.value(name)) {
        (Some(param), Some(value)) => value.text(param),
        _ => "not given".to_owned(),
    };
    match settings.given(name) {
        Some(place) => format!("{name} ({value}, line {})", place.line),
        None => format!("{name} ({value}, the default)"),
    }
}

/// Where to report a pair: at the later of the two lines; `None` if the file gives neither.
fn later<'a>(settings: &'a Settings, one: &str, other: &str) -> Option<&'a Place> {
    match (settings.given(one), settings.given(other)) {
        (Some(a), Some(b)) => Some(if a.line >= b.line { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn pairs(settings: &Settings, reporter: &mut Reporter<'_>) {
    for rule in AT_MOST.iter().filter(|r| r.section == settings.section) {
        let Some(place) = later(settings, rule.small, rule.large) else { continue };
        let (Some(small), Some(large)) = (settings.number(rule.small), settings.number(rule.large)) else {
            continue;
        };
        if small > large && !(rule.zero_is_no_limit && large == 0) {
            let message =
                format!("{} must not exceed {}", naming(settings, rule.small), naming(settings, rule.large));
            reporter.error(place, ProblemCode::Contradiction, message, "change one of the two");
        }
    }
}

fn data_node(node: &Settings, reporter: &mut Reporter<'_>) {
    let excludes = |one: &str, other: &str| format!("{} excludes {}", naming(node, one), naming(node, other));
    let has_threads = !node.text("ThreadConfig").is_empty();
    if node.given("AutomaticThreadConfig").is_some()
        && node.flag("AutomaticThreadConfig")
        && has_threads
        && let Some(place) = later(node, "AutomaticThreadConfig", "ThreadConfig")
    {
        let message = excludes("AutomaticThreadConfig", "ThreadConfig");
        reporter.error(place, ProblemCode::Contradiction, message, "keep one of the two");
    }
    if node.flag("Diskless")
        && node.flag("EncryptedFileSystem")
        && let Some(place) = later(node, "Diskless", "EncryptedFileSystem")
    {
        let message = excludes("Diskless", "EncryptedFileSystem");
        reporter.error(
            place,
            ProblemCode::Contradiction,
            message,
            "without disk there is nothing to encrypt",
        );
    }
    if node.number("TransactionMemory").is_some_and(|n| n > 0) {
        for old in REPLACED_BY_TRANSACTION_MEMORY {
            if node.given(old).is_some()
                && let Some(place) = later(node, "TransactionMemory", old)
            {
                let message = excludes("TransactionMemory", old);
                reporter.error(place, ProblemCode::Contradiction, message, "remove the older parameter");
            }
        }
    }
    let ignored =
        |name: &str| has_threads && node.given(name).is_some() && node.number(name).is_some_and(|n| n > 0);
    for name in ["MaxNoOfExecutionThreads", "NumCPUs"] {
        if ignored(name) {
            let message = format!("{} has no effect beside {}", naming(node, name), naming_short(node));
            reporter.warn(node.place_of(name), ProblemCode::Risk, message, "remove one of the two");
        }
    }
}

/// `ThreadConfig` without its long value.
fn naming_short(node: &Settings) -> String {
    format!("ThreadConfig (line {})", node.given("ThreadConfig").map_or(0, |p| p.line))
}

fn same_replicas(draft: &Draft, reporter: &mut Reporter<'_>) {
    let Some(first) = draft.data_nodes.first() else { return };
    for node in &draft.data_nodes {
        if node.number("NoOfReplicas") != first.number("NoOfReplicas") {
            let message = format!(
                "{} of one data node differs from {} of another",
                naming(node, "NoOfReplicas"),
                naming(first, "NoOfReplicas")
            );
            let hint = "give it once, in [ndbd default]";
            reporter.error(node.place_of("NoOfReplicas"), ProblemCode::Contradiction, message, hint);
        }
    }
}

/// Two spellings of this machine are one host.
fn host_key(host: &str) -> String {
    match host.to_ascii_lowercase().as_str() {
        "127.0.0.1" | "::1" | "[::1]" | "localhost.localdomain" => "localhost".to_owned(),
        other => other.to_owned(),
    }
}

fn is_loopback(host: &str) -> bool {
    host_key(host) == "localhost" || host.starts_with("127.")
}

fn ports(nodes: &[Settings], port_name: &str, reporter: &mut Reporter<'_>) {
    let mut taken: BTreeMap<(String, u64), &Settings> = BTreeMap::new();
    for node in nodes {
        let Some(port) = node.number(port_name) else { continue };
        let key = (host_key(node.text("HostName")), port);
        if let Some(first) = taken.get(&key) {
            if node.number("NodeId") == first.number("NodeId") {
                continue; // An id used twice was reported; that the port made from it clashes is no news.
            }
            let id = |n: &Settings| n.number("NodeId").unwrap_or(0);
            let message = format!(
                "{port_name} {port} on host {} is used by node {} (line {}) and node {} (line {})",
                node.text("HostName"),
                id(first),
                first.place.line,
                id(node),
                node.place.line
            );
            let hint = "nodes on one host need different ports";
            reporter.error(node.place_of(port_name), ProblemCode::Contradiction, message, hint);
        } else {
            taken.insert(key, node);
        }
    }
}

fn links(draft: &Draft, reporter: &mut Reporter<'_>) {
    let nodes = draft.data_nodes.iter().chain(&draft.mgm_nodes).chain(&draft.api_nodes);
    let ids: BTreeSet<u64> = nodes.filter_map(|n| n.number("NodeId")).collect();
    let mut seen: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    for link in &draft.tcp_links {
        let (Some(one), Some(other)) = (link.number("NodeId1"), link.number("NodeId2")) else {
            let message = "a [tcp] section needs NodeId1 and NodeId2".to_owned();
            reporter.error(&link.place, ProblemCode::Missing, message, "use [tcp default] for all links");
            continue;
        };
        for (name, id) in [("NodeId1", one), ("NodeId2", other)] {
            if !ids.contains(&id) {
                let message = format!("there is no node {id}");
                reporter.error(link.place_of(name), ProblemCode::BadValue, message, "");
            }
        }
        if one == other {
            let message = format!("NodeId1 and NodeId2 are both {one}");
            reporter.error(
                link.place_of("NodeId2"),
                ProblemCode::Contradiction,
                message,
                "a link joins two nodes",
            );
        }
        if let Some(first) = seen.insert((one.min(other), one.max(other)), link.place.line) {
            let message = format!(
                "the link of nodes {one} and {other} is described twice: in line {first} and in line {}",
                link.place.line
            );
            reporter.error(&link.place, ProblemCode::DuplicateKey, message, "keep one of the two sections");
        }
    }
}

fn needed_nodes(draft: &Draft, reporter: &mut Reporter<'_>) {
    if draft.data_nodes.is_empty() {
        let message = "no data node: there is no [ndbd] section".to_owned();
        reporter.error(&Place::file(), ProblemCode::Missing, message, "add one [ndbd] section per data node");
    }
    if draft.mgm_nodes.is_empty() {
        let message = "no management server: there is no [ndb_mgmd] section".to_owned();
        reporter.error(&Place::file(), ProblemCode::Missing, message, "add an [ndb_mgmd] section");
    }
    if draft.api_nodes.is_empty() {
        let message =
            "no SQL node or application can connect: there is no [mysqld] or [api] section".to_owned();
        reporter.warn(&Place::file(), ProblemCode::Risk, message, "add one section per connection");
    }
}

fn risks(draft: &Draft, reporter: &mut Reporter<'_>) {
    let Some(data_node) = draft.data_nodes.first() else { return };
    let may_arbitrate = |n: &Settings| n.number("ArbitrationRank").is_some_and(|rank| rank > 0);
    let arbitrators = draft.mgm_nodes.iter().chain(&draft.api_nodes).filter(|n| may_arbitrate(n)).count();
    let replicated = data_node.number("NoOfReplicas").is_some_and(|r| r > 1);
    if replicated
        && data_node.text("Arbitration") == "Default"
        && arbitrators == 0
        && !draft.mgm_nodes.is_empty()
    {
        let message =
            "no arbitrator: every ArbitrationRank is 0, so a node failure may stop service".to_owned();
        let hint = "give a management server ArbitrationRank = 1";
        reporter.warn(&Place::file(), ProblemCode::Risk, message, hint);
    }
    let reachable = draft.mgm_nodes.iter().any(|n| !is_loopback(n.text("HostName")));
    let open = draft.api_nodes.iter().find(|n| n.text("HostName").is_empty());
    if let (true, Some(open)) = (reachable, open) {
        let message =
            "API slots without HostName: any host that reaches the management server may join".to_owned();
        reporter.warn(
            &open.place,
            ProblemCode::Risk,
            message,
            "give HostName in each [mysqld] or [api] section",
        );
    }
}
