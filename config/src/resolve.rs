//! From sections to a complete configuration: names looked up, values read, defaults filled in, ids and
//! groups given.
//!
//! Order of work: read every pair (its own mistakes are reported here), lay each node's values over those
//! of its `default` section and the table's defaults, assign node ids, assign node groups, let `check` look
//! at what spans several values, and build the typed result only when nothing was wrong. Every step goes on
//! after an error, so the operator sees all mistakes of a file at once.
//!
//! Node ids that are not given: data nodes take the lowest free id from 1, management servers the lowest
//! free from 145, API nodes after them. Data nodes and the rest come from different ranges, so adding a
//! data node later leaves everybody else's id alone.

use crate::check;
use crate::cluster::{ApiNodeConfig, ClusterConfig, DataNodeConfig, MgmNodeConfig, TcpConfig, TcpLinkConfig};
use crate::ini::{self, RawEntry, RawSection};
use crate::params::{self, Param, SECTIONS, Section};
use crate::problem::{ConfigErrors, Place, Problem, ProblemCode, Problems};
use crate::threads::ThreadConfig;
use crate::value::{Value, parse_value};
use crate::{MAX_DATA_NODES, SERVER_PORT_BASE};
use signals::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// `NodeGroup` of a data node that is in none yet.
const NO_NODE_GROUP: u64 = 65536;
/// First id given to a node that keeps no data.
const FIRST_OTHER_ID: u64 = 145;

/// An accepted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What it says.
    pub config: ClusterConfig,
    /// What the operator should know about it, in line order.
    pub warnings: Vec<Problem>,
}

/// A value and where it was given; no place if it is a default.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) place: Option<Place>,
}

/// The values of one node (or link), defaults included.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) section: Section,
    /// The section's header line.
    pub(crate) place: Place,
    map: BTreeMap<&'static str, Setting>,
}

impl Settings {
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name).map(|s| &s.value)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(n)) => Some(*n),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Flag(true)))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(t)) => t,
            _ => "",
        }
    }

    /// Where the file gives this parameter, if it does.
    pub(crate) fn given(&self, name: &str) -> Option<&Place> {
        self.map.get(name).and_then(|s| s.place.as_ref())
    }

    /// Where the parameter is given, else the section's header.
    pub(crate) fn place_of(&self, name: &str) -> &Place {
        self.given(name).unwrap_or(&self.place)
    }

    fn assign(&mut self, name: &'static str, value: Value) {
        let place = self.map.get(name).and_then(|s| s.place.clone());
        self.map.insert(name, Setting { value, place });
    }
}

/// All sections of a file with their values read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) data_nodes: Vec<Settings>,
    pub(crate) mgm_nodes: Vec<Settings>,
    pub(crate) api_nodes: Vec<Settings>,
    pub(crate) tcp_default: Settings,
    pub(crate) tcp_links: Vec<Settings>,
    pub(crate) system: Settings,
}

/// Reads a configuration file. `file` is only its name for messages; the caller has read it.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Loaded, ConfigErrors> {
    let mut problems = Problems::new(file);
    let sections = ini::read(bytes, &mut problems);
    let mut draft = draft(&sections, &mut problems);
    assign_node_ids(&mut draft, &mut problems);
    draft.data_nodes.sort_by_key(|n| n.number("NodeId"));
    draft.mgm_nodes.sort_by_key(|n| n.number("NodeId"));
    draft.api_nodes.sort_by_key(|n| n.number("NodeId"));
    assign_node_groups(&mut draft, &mut problems);
    for node in &mut draft.data_nodes {
        complete_data_node(node);
    }
    check::check(&draft, &mut problems);
    if problems.has_errors() {
        return Err(problems.finish());
    }
    Ok(Loaded { config: build(&draft), warnings: problems.finish().problems })
}

fn draft(sections: &[RawSection], problems: &mut Problems) -> Draft {
    let mut defaults: BTreeMap<Section, BTreeMap<&'static str, Setting>> = BTreeMap::new();
    for raw in sections.iter().filter(|s| s.is_default) {
        read_entries(raw, defaults.entry(raw.section).or_default(), problems);
    }
    let base = |section: Section| {
        let mut map = table_defaults(section);
        map.extend(defaults.get(&section).cloned().unwrap_or_default());
        map
    };
    let bases: BTreeMap<Section, _> = SECTIONS.into_iter().map(|s| (s, base(s))).collect();
    let whole = |section: Section| Settings {
        section,
        place: Place::file(),
        map: bases.get(&section).cloned().unwrap_or_default(),
    };
    let mut draft = Draft {
        data_nodes: Vec::new(),
        mgm_nodes: Vec::new(),
        api_nodes: Vec::new(),
        tcp_default: whole(Section::Tcp),
        tcp_links: Vec::new(),
        system: whole(Section::System),
    };
    for raw in sections.iter().filter(|s| !s.is_default) {
        let mut own = BTreeMap::new();
        read_entries(raw, &mut own, problems);
        if raw.section == Section::System {
            draft.system.map.extend(own);
            continue;
        }
        let mut settings = whole(raw.section);
        settings.place = Place { line: raw.line, section: raw.header.clone(), ..Place::default() };
        settings.map.extend(own);
        match raw.section {
            Section::DataNode => draft.data_nodes.push(settings),
            Section::MgmNode => draft.mgm_nodes.push(settings),
            Section::ApiNode => draft.api_nodes.push(settings),
            Section::Tcp => draft.tcp_links.push(settings),
            Section::System | Section::Shm => {}
        }
    }
    draft
}

fn table_defaults(section: Section) -> BTreeMap<&'static str, Setting> {
    let with_default = section.params().iter().filter(|p| !p.default.is_empty());
    // The table's own test guarantees that every default parses.
    let parsed = with_default.filter_map(|p| Some((p.name, parse_value(p, p.default).ok()?)));
    parsed.map(|(name, value)| (name, Setting { value, place: None })).collect()
}

/// Reads the pairs of one section into `into`, reporting everything wrong with a single pair.
fn read_entries(raw: &RawSection, into: &mut BTreeMap<&'static str, Setting>, problems: &mut Problems) {
    for entry in &raw.entries {
        let place = Place {
            line: entry.line,
            section: raw.header.clone(),
            key: entry.key.clone(),
            value: entry.value.clone(),
        };
        let Some(param) = known_param(raw, entry, &place, problems) else { continue };
        if let Some(first) = into.get(param.name) {
            let line = first.place.as_ref().map_or(0, |p| p.line);
            let message =
                format!("{} is given twice: first in line {line}, again in line {}", param.name, place.line);
            problems.error(&place, ProblemCode::DuplicateKey, message, "keep one of the two lines");
            // Which of the two lines is right is open, so this value has to be right as well.
            match parse_value(param, &entry.value) {
                Ok(value) => check_one(param, &value, &place, problems),
                Err(refusal) => problems.error(&place, refusal.code, refusal.message, refusal.hint),
            }
            continue;
        }
        match parse_value(param, &entry.value) {
            Ok(value) => {
                check_one(param, &value, &place, problems);
                into.insert(param.name, Setting { value, place: Some(place) });
            }
            Err(refusal) => problems.error(&place, refusal.code, refusal.message, refusal.hint),
        }
    }
}

fn known_param(
    raw: &RawSection,
    entry: &RawEntry,
    place: &Place,
    problems: &mut Problems,
) -> Option<&'static Param> {
    let Some(param) = params::find(raw.section, &entry.key) else {
        if problems.is_full() {
            // The search for similar names below is slow; a big file of garbage must not take minutes.
            problems.error(place, ProblemCode::UnknownParameter, "unknown parameter", "");
            return None;
        }
        let elsewhere = SECTIONS.into_iter().find(|s| params::find(*s, &entry.key).is_some());
        let hint = match (params::nearest(raw.section, &entry.key), elsewhere) {
            (_, Some(section)) => format!("it belongs in [{}]", section.name()),
            (Some(near), None) => format!("did you mean {}?", near.name),
            (None, None) => String::new(),
        };
        problems.error(place, ProblemCode::UnknownParameter, "unknown parameter", &hint);
        return None;
    };
    if raw.is_default && matches!(param.name, "NodeId" | "NodeId1" | "NodeId2") {
        let message = "a node id cannot be a default";
        problems.error(place, ProblemCode::Contradiction, message, "give it in each node's own section");
        return None;
    }
    Some(param)
}

/// What a single value can show beyond its range.
fn check_one(param: &Param, value: &Value, place: &Place, problems: &mut Problems) {
    if !param.used {
        problems.warn(place, ProblemCode::NotUsedYet, "accepted, not used yet", "");
    }
    if let ("ThreadConfig", Value::Text(text)) = (param.name, value)
        && !text.is_empty()
    {
        match ThreadConfig::parse(text) {
            Ok(parsed) => {
                for warning in parsed.warnings() {
                    problems.warn(place, ProblemCode::NotUsedYet, warning, "");
                }
            }
            Err(error) => problems.error(place, ProblemCode::BadValue, error.to_string(), ""),
        }
    }
    if matches!(param.name, "HostName" | "DataDir") && value == &Value::Text(String::new()) {
        problems.error(
            place,
            ProblemCode::BadValue,
            "must not be empty",
            "leave the line out for the default",
        );
    }
}

/// Gives every node an id and reports ids used twice and clusters that are too big.
fn assign_node_ids(draft: &mut Draft, problems: &mut Problems) {
    if draft.data_nodes.len() > MAX_DATA_NODES {
        let message = format!("{} data nodes; at most {MAX_DATA_NODES} are allowed", draft.data_nodes.len());
        let place = draft.data_nodes.get(MAX_DATA_NODES).map_or_else(Place::file, |n| n.place.clone());
        problems.error(&place, ProblemCode::TooMany, message, "");
    }
    let mut taken: BTreeMap<u64, u32> = BTreeMap::new();
    for node in draft.data_nodes.iter().chain(&draft.mgm_nodes).chain(&draft.api_nodes) {
        let Some(id) = node.number("NodeId") else { continue };
        let place = node.place_of("NodeId");
        if let Some(first) = taken.get(&id) {
            let message = format!("node id {id} is used twice: in line {first} and in line {}", place.line);
            problems.error(place, ProblemCode::DuplicateNodeId, message, "every node needs its own id");
        } else {
            taken.insert(id, place.line);
        }
    }
    let mut used: BTreeSet<u64> = taken.into_keys().collect();
    give_ids(&mut draft.data_nodes, 1, MAX_DATA_NODES as u64, &mut used, problems);
    give_ids(&mut draft.mgm_nodes, FIRST_OTHER_ID, 255, &mut used, problems);
    give_ids(&mut draft.api_nodes, FIRST_OTHER_ID, 255, &mut used, problems);
}

fn give_ids(nodes: &mut [Settings], from: u64, to: u64, used: &mut BTreeSet<u64>, problems: &mut Problems) {
    let mut no_room = None;
    for node in nodes.iter_mut().filter(|n| n.number("NodeId").is_none()) {
        // A NodeId that was given but refused is reported already; the node still takes a free id for the
        // rest.
        let free = (from..=to).chain(1..from).find(|id| !used.contains(id));
        match free {
            Some(id) => {
                used.insert(id);
                node.assign("NodeId", Value::Number(id));
            }
            None => no_room = no_room.or_else(|| Some(node.place.clone())),
        }
    }
    if let Some(place) = no_room {
        let message = format!("no free node id from 1 to {to} is left for this node");
        problems.error(
            &place,
            ProblemCode::TooMany,
            message,
            "a cluster has at most 144 data nodes and 255 nodes",
        );
    }
}

/// Fills the node groups and reports those that do not come out even.
fn assign_node_groups(draft: &mut Draft, problems: &mut Problems) {
    let Some(first) = draft.data_nodes.first() else { return };
    let replicas = first.number("NoOfReplicas").unwrap_or(2);
    let replicas_place = first.place_of("NoOfReplicas").clone();
    let in_groups =
        draft.data_nodes.iter().filter(|n| n.number("NodeGroup") != Some(NO_NODE_GROUP)).count() as u64;
    if !in_groups.is_multiple_of(replicas) {
        let message =
            format!("NoOfReplicas = {replicas} does not divide the number of data nodes, {in_groups}");
        problems.error(
            &replicas_place,
            ProblemCode::NodeGroup,
            message,
            "every node group has NoOfReplicas data nodes; add or remove [ndbd] sections or change NoOfReplicas",
        );
        return;
    }
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for group in draft.data_nodes.iter().filter_map(|n| n.number("NodeGroup")) {
        *sizes.entry(group).or_default() += 1;
    }
    sizes.remove(&NO_NODE_GROUP);
    for node in draft.data_nodes.iter_mut().filter(|n| n.number("NodeGroup").is_none()) {
        let group = (0u64..).find(|g| sizes.get(g).copied().unwrap_or(0) < replicas).unwrap_or(0);
        *sizes.entry(group).or_default() += 1;
        node.assign("NodeGroup", Value::Number(group));
    }
    check_node_groups(draft, &sizes, in_groups / replicas, replicas, problems);
}

/// Reports groups that do not exist; only if all do, groups of the wrong size (one mistake is told once).
fn check_node_groups(
    draft: &Draft,
    sizes: &BTreeMap<u64, u64>,
    groups: u64,
    replicas: u64,
    problems: &mut Problems,
) {
    const HINT: &str = "leave NodeGroup out to have it assigned";
    let all_exist = sizes.keys().all(|group| *group < groups);
    let mut reported = BTreeSet::new();
    for node in &draft.data_nodes {
        let Some(group) = node.number("NodeGroup").filter(|g| *g != NO_NODE_GROUP) else { continue };
        let size = sizes.get(&group).copied().unwrap_or(0);
        let message = if group >= groups {
            format!(
                "node group {group} does not exist; allowed is a number below {groups} (data nodes / NoOfReplicas)"
            )
        } else if all_exist && size != replicas {
            format!("node group {group} has {size} data nodes but NoOfReplicas = {replicas}")
        } else {
            continue;
        };
        if reported.insert(group) {
            problems.error(node.place_of("NodeGroup"), ProblemCode::NodeGroup, message, HINT);
        }
    }
}

/// Defaults that depend on other values.
fn complete_data_node(node: &mut Settings) {
    if node.number("ServerPort").is_none() {
        let port = u64::from(SERVER_PORT_BASE) + node.number("NodeId").unwrap_or(0);
        node.assign("ServerPort", Value::Number(port));
    }
    if !node.text("ThreadConfig").is_empty() && node.given("AutomaticThreadConfig").is_none() {
        node.assign("AutomaticThreadConfig", Value::Flag(false));
    }
}

fn build(draft: &Draft) -> ClusterConfig {
    let id = |link: &Settings, end| NodeId(u8::try_from(link.number(end).unwrap_or(0)).unwrap_or(0));
    let link = |link: &Settings| {
        let (one, other) = (id(link, "NodeId1"), id(link, "NodeId2"));
        TcpLinkConfig {
            node_id_1: one.min(other),
            node_id_2: one.max(other),
            settings: TcpConfig::from_settings(link),
        }
    };
    ClusterConfig {
        generation: 0,
        name: draft.system.text("Name").to_owned(),
        data_nodes: draft.data_nodes.iter().map(DataNodeConfig::from_settings).collect(),
        mgm_nodes: draft.mgm_nodes.iter().map(MgmNodeConfig::from_settings).collect(),
        api_nodes: draft.api_nodes.iter().map(ApiNodeConfig::from_settings).collect(),
        tcp_default: TcpConfig::from_settings(&draft.tcp_default),
        tcp_links: draft.tcp_links.iter().map(link).collect(),
    }
}
