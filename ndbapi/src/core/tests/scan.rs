//! Scans in the client core: batches, closes, lost nodes.

use super::*;
use signals::scan::{ScanFragConf, ScanFragRef};

/// A batch of `ids` for a fragment scan.
fn rows(script: &mut Script, node: NodeId, api_scan: u32, ids: &[u32], end: bool) -> Result<(), Invalid> {
    let mut section = Vec::new();
    for id in ids {
        let row = row_bytes(*id, u64::from(*id) * 10);
        section.extend_from_slice(&(row.len() as u32).to_le_bytes());
        section.extend_from_slice(&row);
    }
    let conf = ScanFragConf {
        api_scan,
        scan: 40 + u32::from(node.0),
        rows: ids.len() as u32,
        end: end.into(),
        length: section.len() as u32,
        spare: 0,
    };
    script.signal(Script::ldm(node), &conf, &section)
}

fn ids(batch: &RowBatch) -> Vec<u32> {
    batch.rows().map(|r| r.get_u32("id").unwrap().unwrap()).collect()
}

/// Starts a scan; its fragments as they were sent.
fn start(script: &mut Script, spec: ScanSpec) -> (ScanRef, Vec<(NodeId, u32, u16)>) {
    let scan = script.core.scan(script.now, None, spec, 5).unwrap();
    let fragments = script.sent().into_iter().map(|s| match s {
        Sent::Scan { node, api_scan, fragment, trans: TransId::NONE } => (node, api_scan, fragment),
        other => panic!("{other:?}"),
    });
    (scan, fragments.collect())
}

#[test]
fn batches_are_asked_for_one_by_one() {
    let mut script = Script::new();
    let spec = ScanSpec::new(&script.table).parallelism(1);
    let (scan, fragments) = start(&mut script, spec);
    let [(node, api_scan, 0)] = fragments[..] else { panic!("{fragments:?}") };
    assert!(matches!(script.core.scan_take(script.now, scan), ScanTake::Pending));
    rows(&mut script, node, api_scan, &[1, 2], false).unwrap();
    assert!(matches!(script.core.next_completion(), Some(Completion::ScanReady { tag: 5 })));
    assert!(script.sent().is_empty(), "nobody has taken it yet");
    let ScanTake::Rows(batch) = script.core.scan_take(script.now, scan) else { panic!("no rows") };
    assert_eq!(ids(&batch), [1, 2]);
    let number = 40 + u32::from(node.0);
    assert_eq!(script.sent(), [Sent::Next { node, scan: number, api_scan, close: false }]);
    rows(&mut script, node, api_scan, &[3], true).unwrap();
    let sent = script.sent();
    let [Sent::Scan { node, api_scan, fragment: 1, .. }] = sent[..] else { panic!("{sent:?}") };
    rows(&mut script, node, api_scan, &[], true).unwrap();
    let ScanTake::Rows(batch) = script.core.scan_take(script.now, scan) else { panic!("no rows") };
    assert_eq!(ids(&batch), [3]);
    assert!(matches!(script.core.scan_take(script.now, scan), ScanTake::End));
    assert!(matches!(script.core.scan_take(script.now, scan), ScanTake::Failed(_)));
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn own_changes_are_scanned_at_the_primaries() {
    let mut script = Script::new();
    let trans = script.core.begin().unwrap();
    script.execute(Some(trans), &[(Operation::Insert, 1)], CommitMode::NoCommit, 1);
    let sent = script.sent();
    let [Sent::Key { tc, .. }] = sent[..] else { panic!("{sent:?}") };
    script.key_conf(tc, trans.id(), 1, None).unwrap();
    assert!(script.executed(1).1.is_ok());
    let spec = ScanSpec::new(&script.table);
    script.core.scan(script.now, Some(trans), spec, 5).unwrap();
    let sent = script.sent();
    assert_eq!(sent.len(), 2);
    for scan in sent {
        let Sent::Scan { node, fragment, trans: id, .. } = scan else { panic!("{scan:?}") };
        assert_eq!(id, trans.id());
        assert_eq!(script.table.placement(fragment).replicas().next().unwrap().0, node);
    }
}

#[test]
fn closing_reaches_fragments_that_had_not_answered_yet() {
    let mut script = Script::new();
    let spec = ScanSpec::new(&script.table);
    let (scan, fragments) = start(&mut script, spec);
    let [(a, first, _), (b, second, _)] = fragments[..] else { panic!("{fragments:?}") };
    rows(&mut script, a, first, &[1], false).unwrap();
    script.core.scan_close(script.now, scan);
    let number = |n: NodeId| 40 + u32::from(n.0);
    assert_eq!(script.sent(), [Sent::Next { node: a, scan: number(a), api_scan: first, close: true }]);
    rows(&mut script, b, second, &[2], false).unwrap();
    assert_eq!(script.sent(), [Sent::Next { node: b, scan: number(b), api_scan: second, close: true }]);
    assert_eq!(script.core.in_use(), [0; 4]);
    script.nothing_yet();
}

#[test]
fn a_lost_node_restarts_fragments_without_rows_and_fails_the_others() {
    let mut script = Script::new();
    let spec = ScanSpec::new(&script.table).partition(1);
    let (scan, fragments) = start(&mut script, spec);
    let [(node, api_scan, 1)] = fragments[..] else { panic!("{fragments:?}") };
    script.core.disconnected(script.now, node, "gone");
    let sent = script.sent();
    let [Sent::Scan { node: other, api_scan: again, fragment: 1, .. }] = sent[..] else { panic!("{sent:?}") };
    assert_ne!((node, api_scan), (other, again));
    rows(&mut script, other, again, &[1], false).unwrap();
    script.core.disconnected(script.now, other, "gone");
    match script.core.scan_take(script.now, scan) {
        ScanTake::Failed(error) => assert_eq!(error.code(), ErrorCode::SCAN_LOST_NODE),
        other => panic!("{other:?}"),
    }
    assert_eq!(script.core.in_use(), [0; 4]);
    let spec = ScanSpec::new(&script.table);
    assert_eq!(
        script.core.scan(script.now, None, spec, 6).unwrap_err().code(),
        ErrorCode::CLUSTER_UNAVAILABLE
    );
}

#[test]
fn refusals_and_nonsense() {
    let mut script = Script::new();
    let spec = ScanSpec::new(&script.table).partition(0);
    let (scan, fragments) = start(&mut script, spec.clone());
    let [(node, api_scan, _)] = fragments[..] else { panic!("{fragments:?}") };
    let mut section = row_bytes(1, 1);
    section.truncate(8);
    let mut framed = (section.len() as u32).to_le_bytes().to_vec();
    framed.extend_from_slice(&section);
    let conf = ScanFragConf { api_scan, scan: 1, rows: 1, end: 1, length: framed.len() as u32, spare: 0 };
    assert!(script.signal(Script::ldm(node), &conf, &framed).is_err(), "columns missing");
    let conf = ScanFragConf { rows: 2, ..conf };
    assert!(script.signal(Script::ldm(node), &conf, &framed).is_err(), "rows missing");
    let refusal = ScanFragRef { api_scan, code: 241 };
    script.signal(Script::ldm(node), &refusal, &[]).unwrap();
    match script.core.scan_take(script.now, scan) {
        ScanTake::Failed(error) => assert_eq!(error.code(), ErrorCode::INVALID_SCHEMA_VERSION),
        other => panic!("{other:?}"),
    }
    let (scan, _) = start(&mut script, spec.clone());
    script.pass(10_000);
    assert!(matches!(script.core.scan_take(script.now, scan), ScanTake::Failed(_)));
    let error = script.core.scan(script.now, None, spec.partition(2), 1).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PARAMETER_ERROR);
    assert_eq!(script.core.in_use(), [0; 4]);
}
