//! Answers as text the way NDB operators know it, or as JSON with the same content.

use super::parse::Format;
use serde_json::{Value, json};
use signals::mgm::{MgmConf, NodeKind, NodeMemory, NodeOutcome, NodeReport, NodeState, NodeStatus, ShowConf};
use transporter::mgm_link::MgmError;

/// An answer, and whether it is a success as a whole.
pub(super) fn answer(conf: &MgmConf, format: Format) -> (String, bool) {
    let is_good = match conf {
        MgmConf::Stopped(outcomes) => outcomes.iter().all(|o| o.outcome.is_ok()),
        MgmConf::Memory(nodes) => nodes.iter().all(|n| n.usage.is_ok()),
        MgmConf::Done
        | MgmConf::AllocNodeId { .. }
        | MgmConf::Config(_)
        | MgmConf::Show(_)
        | MgmConf::Status(_)
        | MgmConf::ClusterLog { .. } => true,
    };
    let shown = match format {
        Format::Text => text(conf),
        Format::Json => as_json(conf).to_string(),
    };
    (shown, is_good)
}

/// An error.
pub(super) fn error(error: &MgmError, format: Format) -> String {
    match format {
        Format::Text => format!("ERROR {}: {}", error.code.0, error.detail),
        Format::Json => json!({ "error": error_json(error.code, &error.detail) }).to_string(),
    }
}

/// A line of the client itself.
pub(super) fn line(text: String, format: Format) -> String {
    match format {
        Format::Text => text,
        Format::Json => json!({ "message": text }).to_string(),
    }
}

fn error_json(code: signals::ErrorCode, detail: &str) -> Value {
    json!({ "code": code.0, "message": code.message(), "detail": detail, "temporary": code.is_temporary() })
}

/// NDB's word for where a node stands.
fn state_word(node: &NodeStatus) -> &'static str {
    match (node.is_connected(), node.kind, &node.report) {
        (false, ..) => "NO_CONTACT",
        (true, NodeKind::DataNode, None) => "UNKNOWN",
        (true, NodeKind::DataNode, Some(report)) => match report.state {
            NodeState::NotStarted => "NOT_STARTED",
            NodeState::Starting { .. } => "STARTING",
            NodeState::Started => "STARTED",
            NodeState::ShuttingDown => "SHUTTING_DOWN",
            NodeState::Restarting => "RESTARTING",
        },
        (true, NodeKind::MgmNode | NodeKind::ApiNode, _) => "CONNECTED",
    }
}

fn text(conf: &MgmConf) -> String {
    match conf {
        MgmConf::Show(show) => show_text(show),
        MgmConf::Status(nodes) => nodes.iter().map(status_text).collect::<Vec<_>>().join("\n"),
        MgmConf::Stopped(outcomes) => stopped_text(outcomes),
        MgmConf::Memory(nodes) => nodes.iter().map(memory_text).collect::<Vec<_>>().join("\n"),
        MgmConf::ClusterLog { path, file_bytes_max, files_max, lost_lines } => format!(
            "Cluster log: {path}\nRotated at {file_bytes_max} bytes, {files_max} files kept, {lost_lines} lines lost"
        ),
        MgmConf::Config(bytes) => format!("Configuration of {} bytes", bytes.len()),
        MgmConf::AllocNodeId { node, .. } => format!("Node id {node}"),
        MgmConf::Done => "Done".to_owned(),
    }
}

fn show_text(show: &ShowConf) -> String {
    let mut lines = vec!["Cluster Configuration".to_owned(), "---------------------".to_owned()];
    for (kind, title) in [
        (NodeKind::DataNode, "[ndbd(NDB)]"),
        (NodeKind::MgmNode, "[ndb_mgmd(MGM)]"),
        (NodeKind::ApiNode, "[mysqld(API)]"),
    ] {
        let nodes: Vec<&NodeStatus> = show.nodes.iter().filter(|n| n.kind == kind).collect();
        lines.push(format!("{title}\t{} node(s)", nodes.len()));
        lines.extend(nodes.into_iter().map(show_line));
        lines.push(String::new());
    }
    lines.extend(show.warnings.iter().map(|w| format!("WARNING: {w}")));
    lines.extend(show.config_differences.iter().map(|d| format!("NOTE: {d}")));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n")
}

fn show_line(node: &NodeStatus) -> String {
    let id = node.node;
    if !node.is_connected() {
        let from = if node.config_host.is_empty() { "any host" } else { &node.config_host };
        return format!("id={id} (not connected, accepting connect from {from})");
    }
    let mut about = vec![format!("nucdb-{}", node.release)];
    if node.kind == NodeKind::DataNode {
        match &node.report {
            None => about.push("no report yet".to_owned()),
            Some(report) => {
                match report.state {
                    NodeState::NotStarted => about.push("not started".to_owned()),
                    NodeState::Starting { .. } => about.push("starting".to_owned()),
                    NodeState::Started => {}
                    NodeState::ShuttingDown => about.push("shutting down".to_owned()),
                    NodeState::Restarting => about.push("restarting".to_owned()),
                }
                about.push(match report.node_group {
                    Some(group) => format!("Nodegroup: {group}"),
                    None => "no nodegroup".to_owned(),
                });
                if report.is_master {
                    about.push("*".to_owned());
                }
            }
        }
    }
    format!("id={id}\t@{}  ({})", node.address, about.join(", "))
}

fn status_text(node: &NodeStatus) -> String {
    let id = node.node;
    if !node.is_connected() {
        return format!("Node {id}: not connected");
    }
    let release = format!("nucdb-{}", node.release);
    let Some(report) = &node.report else {
        let word = if node.kind == NodeKind::DataNode { "connected, no report yet" } else { "connected" };
        return format!("Node {id}: {word} ({release})");
    };
    let state = match report.state {
        NodeState::NotStarted => "not started".to_owned(),
        NodeState::Starting { phase } => format!("starting (phase {phase})"),
        NodeState::Started => "started".to_owned(),
        NodeState::ShuttingDown => "shutting down".to_owned(),
        NodeState::Restarting => "restarting".to_owned(),
    };
    let mut line = format!("Node {id}: {state} ({release})");
    if !report.waits_for.is_empty() {
        line.push_str(&format!(", waits for: {}", report.waits_for));
    }
    // Reports come every second; an old one is no news.
    if node.report_age_ms > 3000 {
        line.push_str(&format!(", as of {} s ago", node.report_age_ms / 1000));
    }
    line
}

fn stopped_text(outcomes: &[NodeOutcome]) -> String {
    let line = |o: &NodeOutcome| match &o.outcome {
        Ok(()) => format!("Node {} has shut down.", o.node),
        Err(refusal) => format!("Node {}: ERROR {}: {}", o.node, refusal.code.0, refusal.detail),
    };
    outcomes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn percent(used: u64, total: u64) -> u64 {
    used.saturating_mul(100).checked_div(total).unwrap_or(0)
}

fn memory_text(node: &NodeMemory) -> String {
    let id = node.node;
    match &node.usage {
        Err(refusal) => format!("Node {id}: ERROR {}: {}", refusal.code.0, refusal.detail),
        Ok(m) => {
            let line = |what: &str, used: u64, total: u64| {
                let (percent, kilobytes) = (percent(used, total), m.page_bytes / 1024);
                format!("Node {id}: {what} usage is {percent}%({used} {kilobytes}K pages of total {total})")
            };
            let data = line("Data", m.data_pages_used, m.data_pages_total);
            format!("{data}\n{}", line("Index", m.index_pages_used, m.index_pages_total))
        }
    }
}

fn as_json(conf: &MgmConf) -> Value {
    match conf {
        MgmConf::Show(show) => json!({
            "cluster": show.cluster,
            "server": show.server.0,
            "generation": show.generation,
            "nodes": show.nodes.iter().map(node_json).collect::<Vec<_>>(),
            "warnings": show.warnings,
            "config_differences": show.config_differences,
        }),
        MgmConf::Status(nodes) => json!({ "nodes": nodes.iter().map(node_json).collect::<Vec<_>>() }),
        MgmConf::Stopped(outcomes) => {
            let one = |o: &NodeOutcome| match &o.outcome {
                Ok(()) => json!({ "id": o.node.0, "stopped": true }),
                Err(r) => json!({ "id": o.node.0, "stopped": false, "error": error_json(r.code, &r.detail) }),
            };
            json!({ "nodes": outcomes.iter().map(one).collect::<Vec<_>>() })
        }
        MgmConf::Memory(nodes) => {
            let one = |n: &NodeMemory| match &n.usage {
                Ok(m) => json!({
                    "id": n.node.0,
                    "page_bytes": m.page_bytes,
                    "data_pages_used": m.data_pages_used,
                    "data_pages_total": m.data_pages_total,
                    "data_percent": percent(m.data_pages_used, m.data_pages_total),
                    "index_pages_used": m.index_pages_used,
                    "index_pages_total": m.index_pages_total,
                    "index_percent": percent(m.index_pages_used, m.index_pages_total),
                }),
                Err(r) => json!({ "id": n.node.0, "error": error_json(r.code, &r.detail) }),
            };
            json!({ "nodes": nodes.iter().map(one).collect::<Vec<_>>() })
        }
        MgmConf::ClusterLog { path, file_bytes_max, files_max, lost_lines } => json!({
            "path": path, "file_bytes_max": file_bytes_max, "files_max": files_max, "lost_lines": lost_lines,
        }),
        MgmConf::Config(bytes) => json!({ "config_bytes": bytes.len() }),
        MgmConf::AllocNodeId { node, .. } => json!({ "id": node.0 }),
        MgmConf::Done => json!({ "done": true }),
    }
}

fn node_json(node: &NodeStatus) -> Value {
    let kind = match node.kind {
        NodeKind::DataNode => "ndbd",
        NodeKind::MgmNode => "ndb_mgmd",
        NodeKind::ApiNode => "mysqld",
    };
    let mut value = json!({
        "id": node.node.0,
        "type": kind,
        "status": state_word(node),
        "connected": node.is_connected(),
        "config_host": node.config_host,
        "address": node.address,
        "pid": node.pid,
        "release": node.release,
    });
    if let (Some(report), Some(map)) = (&node.report, value.as_object_mut()) {
        map.extend(report_json(report, node.report_age_ms));
    }
    value
}

fn report_json(report: &NodeReport, age_ms: u64) -> serde_json::Map<String, Value> {
    let phase = match report.state {
        NodeState::Starting { phase } => Some(phase),
        NodeState::NotStarted | NodeState::Started | NodeState::ShuttingDown | NodeState::Restarting => None,
    };
    let value = json!({
        "start_phase": phase,
        "node_group": report.node_group,
        "master": report.is_master,
        "members": report.members.iter().map(|id| id.0).collect::<Vec<_>>(),
        "arbitrator": report.arbitrator.map(|id| id.0),
        "waits_for": report.waits_for,
        "server_port": report.server_port,
        "data_pages_used": report.memory.data_pages_used,
        "data_pages_total": report.memory.data_pages_total,
        "report_age_ms": age_ms,
    });
    match value {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}
