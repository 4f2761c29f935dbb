//! Failures in the client core: lost links in each state, time-outs, malformed frames.

use super::*;
use Operation::{Insert, ReadCommitted, ReadExclusive, ReadShared};

/// Starts something at a coordinator and returns it.
fn at_tc(
    script: &mut Script,
    trans: Option<TransRef>,
    what: Operation,
    mode: CommitMode,
) -> (BlockRef, TransId, u32) {
    script.execute(trans, &[(what, 5)], mode, 1);
    match script.sent()[..] {
        [Sent::Key { tc, trans, api_op, .. }] => (tc, trans, api_op),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_coordinator_aborts_or_leaves_the_outcome_unknown() {
    let cases = [
        (Insert, CommitMode::NoCommit, ErrorCode::NODE_FAILED_NO_COMMIT),
        (Insert, CommitMode::Commit, ErrorCode::NODE_FAILED_UNKNOWN),
        (ReadExclusive, CommitMode::Commit, ErrorCode::NODE_FAILED_NO_COMMIT),
    ];
    for (what, mode, code) in cases {
        let mut script = Script::new();
        let trans = script.core.begin().unwrap();
        let (tc, _, _) = at_tc(&mut script, Some(trans), what, mode);
        script.core.disconnected(script.now, tc.node(), "reset by peer");
        let error = script.executed(1).1.unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(error.unknown_outcome(), code == ErrorCode::NODE_FAILED_UNKNOWN);
        assert!(error.detail().contains("reset by peer"));
        assert!(script.core.has_ended(trans));
        script.core.release(script.now, trans);
        assert_eq!(script.core.in_use(), [0; 4]);
    }
}

#[test]
fn a_lost_coordinator_ends_idle_and_rolling_back_transactions() {
    let mut script = Script::new();
    let trans = script.core.begin().unwrap();
    let (tc, id, _) = at_tc(&mut script, Some(trans), Insert, CommitMode::NoCommit);
    script.key_conf(tc, id, 1, None).unwrap();
    assert!(script.executed(1).1.is_ok());
    script.core.disconnected(script.now, tc.node(), "gone");
    script.execute(Some(trans), &[(Insert, 6)], CommitMode::Commit, 2);
    let error = script.executed(2).1.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NODE_FAILED_NO_COMMIT);
    assert!(error.retryable());

    for (keep, fine) in [(None, true), (Some(0), false)] {
        let mut script = Script::new();
        let trans = script.core.begin().unwrap();
        let (tc, id, _) = at_tc(&mut script, Some(trans), Insert, CommitMode::NoCommit);
        script.key_conf(tc, id, 1, None).unwrap();
        assert!(script.executed(1).1.is_ok());
        script.core.rollback(script.now, trans, keep, 7);
        script.core.disconnected(script.now, tc.node(), "gone");
        match script.core.next_completion() {
            Some(Completion::RolledBack { tag: 7, result }) => assert_eq!(result.is_ok(), fine),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn committed_reads_survive_the_loss_of_their_node() {
    let mut script = Script::new();
    script.execute(None, &[(ReadCommitted, 7)], CommitMode::Commit, 1);
    let sent = script.sent();
    let [Sent::Read { node: first, api_op: old, .. }] = sent[..] else { panic!("{sent:?}") };
    script.core.disconnected(script.now, first, "gone");
    script.nothing_yet();
    let sent = script.sent();
    let [Sent::Read { node: second, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    assert_ne!((first, old), (second, api_op));
    script.row(second, api_op, 7, 70).unwrap();
    let (batch, result) = script.executed(1);
    assert!(result.is_ok() && batch.row(op(0)).unwrap().is_some());

    // Both gone: it fails, and what comes next fails at once.
    script.execute(None, &[(ReadCommitted, 7)], CommitMode::Commit, 2);
    script.core.disconnected(script.now, second, "gone too");
    let (batch, result) = script.executed(2);
    assert!(result.is_ok());
    assert_eq!(batch.row(op(0)).unwrap_err().code(), ErrorCode::CLUSTER_UNAVAILABLE);
    script.execute(None, &[(Insert, 7)], CommitMode::Commit, 3);
    let error = script.executed(3).1.unwrap_err();
    assert_eq!(error.code(), ErrorCode::CLUSTER_UNAVAILABLE);
    assert!(error.retryable() && error.detail().contains("node 1 is not connected"));
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn a_node_that_cannot_serve_a_read_is_passed_over() {
    let mut script = Script::new();
    script.execute(None, &[(ReadCommitted, 7)], CommitMode::Commit, 1);
    let sent = script.sent();
    let [Sent::Read { node: first, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    script.read_ref(first, api_op, ErrorCode::NODE_NOT_STARTED).unwrap();
    let sent = script.sent();
    let [Sent::Read { node: second, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    assert_ne!(first, second);
    script.read_ref(second, api_op, ErrorCode::NODE_SHUTDOWN_ABORT).unwrap();
    let (batch, _) = script.executed(1);
    assert_eq!(batch.result(op(0)).unwrap_err().code(), ErrorCode::NODE_SHUTDOWN_ABORT);
}

#[test]
fn rows_lost_with_their_node_are_not_waited_for() {
    // (confirmed before the loss, commit)
    for (before, commit) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut script = Script::new();
        let mode = if commit { CommitMode::Commit } else { CommitMode::NoCommit };
        let trans = script.core.begin().unwrap();
        let (tc, id, api_op) = at_tc(&mut script, Some(trans), ReadShared, mode);
        let other = if tc.node() == N1 { N2 } else { N1 };
        let epoch = commit.then_some(5);
        if before {
            script.key_conf(tc, id, 1, epoch).unwrap();
        }
        script.core.disconnected(script.now, other, "gone");
        if !before {
            script.nothing_yet();
            script.key_conf(tc, id, 1, epoch).unwrap();
        }
        let (batch, result) = script.executed(1);
        if commit {
            assert_eq!(result, Ok(Executed { committed: Some(Epoch(5)) }));
            assert_eq!(batch.row(op(0)).unwrap_err().code(), ErrorCode::COMMITTED_READS_LOST);
        } else {
            assert_eq!(result.unwrap_err().code(), ErrorCode::NODE_FAILED_NO_COMMIT);
            assert_eq!(script.sent(), [Sent::Rollback { tc, trans: id, keep: ROLLBACK_ALL }]);
        }
        // The row after all: too late.
        script.row(tc.node(), api_op, 5, 50).unwrap();
        assert_eq!(script.core.stale_answers(), 1);
    }
}

#[test]
fn requests_that_take_too_long_end() {
    // An execute without commit is rolled back.
    let mut script = Script::new();
    let trans = script.core.begin().unwrap();
    let (tc, id, _) = at_tc(&mut script, Some(trans), Insert, CommitMode::NoCommit);
    script.pass(9_500);
    script.nothing_yet();
    script.sent();
    script.pass(500);
    let error = script.executed(1).1.unwrap_err();
    assert_eq!(error.code(), ErrorCode::CLUSTER_UNAVAILABLE);
    let rollback = Sent::Rollback { tc, trans: id, keep: ROLLBACK_ALL };
    assert!(script.sent().contains(&rollback));
    script.key_conf(tc, id, 1, None).unwrap();
    assert_eq!(script.core.stale_answers(), 1);

    // A commit's outcome is unknown.
    let mut script = Script::new();
    let (tc, id, _) = at_tc(&mut script, None, Insert, CommitMode::Commit);
    script.pass(10_000);
    let error = script.executed(1).1.unwrap_err();
    assert!(error.unknown_outcome() && error.code() == ErrorCode::REQUEST_TIMEOUT);
    script.key_conf(tc, id, 1, Some(4)).unwrap();
    assert_eq!((script.core.stale_answers(), script.core.in_use()), (1, [0; 4]));

    // Committed reads fail one by one.
    let mut script = Script::new();
    script.execute(None, &[(ReadCommitted, 1), (ReadCommitted, 2)], CommitMode::Commit, 2);
    let sent = script.sent();
    let Some(Sent::Read { node, api_op, key, .. }) = sent.first() else { panic!("{sent:?}") };
    let id = u32::from(key[0]);
    script.row(*node, *api_op, id, 10).unwrap();
    script.pass(10_000);
    let (batch, result) = script.executed(2);
    assert!(result.is_ok());
    assert!(batch.row(op(id - 1)).unwrap().is_some());
    assert_eq!(batch.row(op(2 - id)).unwrap_err().code(), ErrorCode::CLUSTER_UNAVAILABLE);
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn silent_nodes_are_cut_off_and_starting_ones_not_used() {
    let mut script = Script::new();
    script.advance(100);
    script.advance(1_400);
    let beats = script.sent();
    assert!(matches!(beats[..], [Sent::Control(N1, _), Sent::Control(N2, _)]), "{beats:?}");
    script.reg_conf(N1, true).unwrap();
    for _ in 0..4 {
        script.advance(1_000);
        assert_eq!(script.core.next_action(), None);
    }
    script.reg_conf(N1, true).unwrap();
    script.advance(600);
    assert_eq!(
        script.core.next_action(),
        Some(Action::Disconnect { node: N2, reason: "node 2 has said nothing for 6000 ms".into() })
    );
    assert_eq!(script.core.next_action(), None);
    script.core.disconnected(script.now, N2, "silent");
    script.reg_conf(N1, false).unwrap();
    assert!(!script.core.is_ready());
    script.execute(None, &[(ReadCommitted, 1)], CommitMode::Commit, 1);
    assert_eq!(script.executed(1).0.result(op(0)).unwrap_err().code(), ErrorCode::CLUSTER_UNAVAILABLE);
    script.execute(None, &[(Insert, 1)], CommitMode::Commit, 1);
    assert!(script.executed(1).1.unwrap_err().detail().contains("phase 3"));
}

#[test]
fn who_stood_still_himself_blames_nobody() {
    let mut script = Script::new();
    script.advance(100);
    script.advance(60_000);
    assert_eq!(script.core.next_action(), None);
    assert_eq!(script.sent().len(), 2, "heartbeats");
    for _ in 0..4 {
        script.advance(1_400);
    }
    assert_eq!(script.core.next_action(), None);
    script.advance(1_400);
    assert!(script.core.next_action().is_some());
}
