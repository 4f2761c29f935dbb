//! The dictionary in the client core: lookups, changes, refresh after schema errors.

use super::*;
use Operation::ReadCommitted;
use signals::control::{DictAnswer, DictQuery, Refusal, SchemaChange, TableInfo};
use signals::ids::SchemaVersion;

fn by_name() -> DictRequest {
    DictRequest::Query(DictQuery::TableByName { database: "test".into(), name: "t".into() })
}

/// The number and node of the one request to a dict that was sent.
fn asked(script: &mut Script) -> (NodeId, u32) {
    match script.sent()[..] {
        [Sent::Control(node, ControlSignal::DictQueryReq { request, .. })]
        | [Sent::Control(node, ControlSignal::SchemaReq { request, .. })] => (node, request),
        ref other => panic!("{other:?}"),
    }
}

fn answer(script: &mut Script, node: NodeId, request: u32, answer: DictAnswer) -> Result<(), Invalid> {
    script.control(node, BlockNumber::Dbdict, ControlSignal::DictConf { request, answer })
}

fn replied(script: &mut Script, want: u64) -> Result<DictReply, NdbError> {
    match script.core.next_completion() {
        Some(Completion::Dictionary { tag, result }) if tag == want => result,
        other => panic!("{other:?}"),
    }
}

fn info() -> TableInfo {
    table_on(&groups(), 1)
}

#[test]
fn tables_are_cached_until_they_change() {
    let mut script = Script::new();
    script.core.dictionary(script.now, by_name(), 1);
    let (node, request) = asked(&mut script);
    answer(&mut script, node, request, DictAnswer::Table(Box::new(info()))).unwrap();
    let Ok(DictReply::Table(table)) = replied(&mut script, 1) else { panic!("no table") };
    assert!(Arc::ptr_eq(&table, &script.core.cached_table("test", "t").unwrap()));

    script.core.dictionary(script.now, by_name(), 2);
    let (node, request) = asked(&mut script);
    let refusal = Refusal::new(ErrorCode::TABLE_NOT_FOUND, "test/t");
    script.control(node, BlockNumber::Dbdict, ControlSignal::DictRef { request, refusal }).unwrap();
    assert_eq!(replied(&mut script, 2).unwrap_err().code(), ErrorCode::TABLE_NOT_FOUND);

    let change = SchemaChange::DropTable { table: table.id(), version: table.version() };
    script.core.dictionary(script.now, DictRequest::Change(change), 3);
    let (node, request) = asked(&mut script);
    answer(&mut script, node, request, DictAnswer::Changed(None)).unwrap();
    assert!(matches!(replied(&mut script, 3), Ok(DictReply::Changed(None))));
    assert!(script.core.cached_table("test", "t").is_none());
}

#[test]
fn answers_that_are_no_table_are_refused() {
    let mut broken = info();
    broken.map.partitions[0].clear();
    let mut other = info();
    other.def.name = "u".into();
    for bad in [
        DictAnswer::Table(Box::new(broken)),
        DictAnswer::Table(Box::new(other)),
        DictAnswer::Databases { databases: vec![], more: false },
        DictAnswer::Changed(None),
    ] {
        let mut script = Script::new();
        script.core.dictionary(script.now, by_name(), 1);
        let (node, request) = asked(&mut script);
        assert!(answer(&mut script, node, request, bad).is_err());
        assert_eq!(replied(&mut script, 1).unwrap_err().code(), ErrorCode::MALFORMED_MESSAGE);
    }
}

#[test]
fn questions_move_on_and_changes_become_unknown_when_their_node_is_lost() {
    let mut script = Script::new();
    script.core.dictionary(script.now, by_name(), 1);
    let (node, _) = asked(&mut script);
    script.core.disconnected(script.now, node, "gone");
    let (other, request) = asked(&mut script);
    assert_ne!(node, other);
    answer(&mut script, other, request, DictAnswer::Table(Box::new(info()))).unwrap();
    assert!(replied(&mut script, 1).is_ok());
    let change = SchemaChange::DropDatabase { name: "test".into() };
    script.core.dictionary(script.now, DictRequest::Change(change.clone()), 2);
    script.core.disconnected(script.now, other, "gone");
    assert!(replied(&mut script, 2).unwrap_err().unknown_outcome());
    script.core.dictionary(script.now, DictRequest::Change(change.clone()), 3);
    assert_eq!(replied(&mut script, 3).unwrap_err().code(), ErrorCode::CLUSTER_UNAVAILABLE);

    let mut script = Script::new();
    script.core.dictionary(script.now, DictRequest::Change(change), 4);
    script.pass(60_000);
    assert_eq!(replied(&mut script, 4).unwrap_err().code(), ErrorCode::REQUEST_TIMEOUT);
}

/// A committed read that is refused for a stale table; returns the request for the new one.
fn refused_read(script: &mut Script, code: ErrorCode) -> (NodeId, u32) {
    script.execute(None, &[(ReadCommitted, 7)], CommitMode::Commit, 1);
    let sent = script.sent();
    let [Sent::Read { node, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    script.read_ref(node, api_op, code).unwrap();
    script.nothing_yet();
    asked(script)
}

#[test]
fn reads_follow_a_new_placement_and_refuse_a_new_table() {
    let mut script = Script::new();
    let (node, request) = refused_read(&mut script, ErrorCode::DISTRIBUTION_CHANGED);
    let mut moved = info();
    moved.map.version = 2;
    for replicas in &mut moved.map.partitions {
        *replicas = vec![signals::partition::Replica { node: N2, ldm: 0 }];
    }
    answer(&mut script, node, request, DictAnswer::Table(Box::new(moved))).unwrap();
    let sent = script.sent();
    let [Sent::Read { node: N2, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    // Once only: refused again, it fails.
    script.read_ref(N2, api_op, ErrorCode::DISTRIBUTION_CHANGED).unwrap();
    let (batch, _) = script.executed(1);
    assert_eq!(batch.result(op(0)).unwrap_err().code(), ErrorCode::DISTRIBUTION_CHANGED);

    let mut script = Script::new();
    let (node, request) = refused_read(&mut script, ErrorCode::INVALID_SCHEMA_VERSION);
    let mut changed = info();
    changed.def.version = SchemaVersion(4);
    answer(&mut script, node, request, DictAnswer::Table(Box::new(changed))).unwrap();
    let (batch, result) = script.executed(1);
    assert!(result.is_ok());
    assert_eq!(batch.result(op(0)).unwrap_err().code(), ErrorCode::INVALID_SCHEMA_VERSION);
    assert_eq!(script.core.cached_table("test", "t").unwrap().version(), SchemaVersion(4));

    let mut script = Script::new();
    let (node, request) = refused_read(&mut script, ErrorCode::INVALID_SCHEMA_VERSION);
    let refusal = Refusal::new(ErrorCode::NO_SUCH_TABLE, "7");
    script.control(node, BlockNumber::Dbdict, ControlSignal::DictRef { request, refusal }).unwrap();
    let (batch, _) = script.executed(1);
    assert_eq!(batch.result(op(0)).unwrap_err().code(), ErrorCode::NO_SUCH_TABLE);
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn a_read_that_waits_for_its_table_times_out_with_the_others() {
    let mut script = Script::new();
    let (node, request) = refused_read(&mut script, ErrorCode::DISTRIBUTION_CHANGED);
    script.pass(10_000);
    let (batch, _) = script.executed(1);
    assert_eq!(batch.result(op(0)).unwrap_err().code(), ErrorCode::CLUSTER_UNAVAILABLE);
    answer(&mut script, node, request, DictAnswer::Table(Box::new(info()))).unwrap();
    script.nothing_yet();
    assert_eq!(script.core.in_use(), [0; 4]);
}
