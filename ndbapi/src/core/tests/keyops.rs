//! Key operations in the client core: orders of rows and confirmations, refusals, batches.

use super::*;
use Operation::{Delete, Insert, ReadCommitted, ReadExclusive, Update};

/// Sends one autocommit write and returns coordinator, transaction and operation number.
fn lone_write(script: &mut Script, operation: Operation, tag: u64) -> (BlockRef, TransId, u32) {
    script.execute(None, &[(operation, 5)], CommitMode::Commit, tag);
    match script.sent()[..] {
        [Sent::Key { tc, trans, api_op, flags, .. }] => {
            assert_eq!(flags, tc_flags::START | tc_flags::EXECUTE | tc_flags::COMMIT);
            (tc, trans, api_op)
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn committed_reads_go_straight_to_replicas_in_turn() {
    let mut script = Script::new();
    let mut asked = Vec::new();
    for i in 0..4 {
        script.execute(None, &[(ReadCommitted, 7)], CommitMode::Commit, i);
        let sent = script.sent();
        let [Sent::Read { node, ldm, api_op, ref key }] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((ldm, &key[..]), (0, &7u32.to_le_bytes()[..]));
        script.nothing_yet();
        script.row(node, api_op, 7, 70 + i).unwrap();
        let (batch, result) = script.executed(i);
        assert_eq!(result, Ok(Executed { committed: Some(Epoch(0)) }));
        assert_eq!(batch.row(op(0)).unwrap().unwrap().get_u64("v"), Ok(Some(70 + i)));
        asked.push(node);
    }
    assert!(asked.contains(&N1) && asked.contains(&N2), "READ_BACKUP: both are used");
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn a_near_replica_is_preferred_and_without_read_backup_the_primary_is() {
    let mut script = Script::with(|o| o.data_nodes[1].near = true, |_| {});
    for i in 0..3 {
        script.execute(None, &[(ReadCommitted, i)], CommitMode::Commit, 1);
        assert!(matches!(script.sent()[..], [Sent::Read { node: N2, .. }]));
    }
    let mut script = Script::with(|o| o.data_nodes[1].near = true, |t| t.def.read_backup = false);
    let id = id_on(&script.table, N1);
    for _ in 0..3 {
        script.execute(None, &[(ReadCommitted, id)], CommitMode::Commit, 1);
        assert!(matches!(script.sent()[..], [Sent::Read { node: N1, .. }]));
    }
}

#[test]
fn a_missing_row_is_a_result_not_an_error() {
    let mut script = Script::new();
    script.execute(None, &[(ReadCommitted, 1), (ReadCommitted, 2)], CommitMode::Commit, 8);
    let mut sent = script.sent();
    sent.sort_by_key(|s| matches!(s, Sent::Read { key, .. } if key[0] == 2));
    let [Sent::Read { node: a, api_op: first, .. }, Sent::Read { node: b, api_op: second, .. }] = sent[..]
    else {
        panic!("{sent:?}")
    };
    script.read_ref(b, second, ErrorCode::TUPLE_NOT_FOUND).unwrap();
    script.nothing_yet();
    script.row(a, first, 1, 10).unwrap();
    let (batch, result) = script.executed(8);
    assert!(result.is_ok());
    assert_eq!(batch.row(op(0)).unwrap().unwrap().get_u32("id"), Ok(Some(1)));
    assert!(batch.row(op(1)).unwrap().is_none());
    assert_eq!(batch.result(op(1)), Err(ErrorCode::TUPLE_NOT_FOUND.into()));
}

#[test]
fn a_lone_write_is_one_message_each_way() {
    let mut script = Script::new();
    let (tc, trans, _) = lone_write(&mut script, Insert, 4);
    assert_eq!(
        tc.node(),
        script
            .table
            .placement(
                script.table.partition_of(script.table.distribution_hash(&5u32.to_le_bytes()).unwrap())
            )
            .replicas()
            .next()
            .unwrap()
            .0
    );
    script.key_conf(tc, trans, 1, Some(77)).unwrap();
    let (batch, result) = script.executed(4);
    assert_eq!(result, Ok(Executed { committed: Some(Epoch(77)) }));
    assert_eq!(batch.result(op(0)), Ok(()));
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn a_refused_lone_write_is_an_error_with_its_operation() {
    let mut script = Script::new();
    let (tc, trans, api_op) = lone_write(&mut script, Insert, 4);
    let rep = TcRollbackRep { trans, code: 630, api_op };
    script.signal(tc, &rep, &[]).unwrap();
    let (batch, result) = script.executed(4);
    assert_eq!(result.unwrap_err().code(), ErrorCode::TUPLE_EXISTS);
    assert_eq!(batch.first_failure(), Some((op(0), ErrorCode::TUPLE_EXISTS)));
    assert_eq!(script.core.in_use(), [0; 4]);
    // The same once more is late news, no fault.
    script.signal(tc, &rep, &[]).unwrap();
    assert_eq!(script.core.stale_answers(), 1);
}

/// Executes a locking read and an update in a new transaction.
fn read_and_update(script: &mut Script, mode: CommitMode) -> (TransRef, BlockRef, [u32; 2]) {
    let trans = script.core.begin().unwrap();
    script.execute(Some(trans), &[(ReadExclusive, 5), (Update, 6)], mode, 1);
    let sent = script.sent();
    let [Sent::Key { tc, api_op: a, flags, .. }, Sent::Key { api_op: b, flags: last, .. }] = sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(flags, tc_flags::START | tc_flags::IGNORE_ERROR);
    let commit = if mode == CommitMode::Commit { tc_flags::COMMIT } else { 0 };
    assert_eq!(last, tc_flags::EXECUTE | commit);
    (trans, tc, [a, b])
}

#[test]
fn rows_may_come_before_or_after_the_confirmation() {
    for row_first in [true, false] {
        let mut script = Script::new();
        let (trans, tc, [read, _]) = read_and_update(&mut script, CommitMode::NoCommit);
        // The row comes from a node of its own, over another link.
        let other = if tc.node() == N1 { N2 } else { N1 };
        if row_first {
            script.row(other, read, 5, 50).unwrap();
            script.nothing_yet();
            script.key_conf(tc, trans.id(), 2, None).unwrap();
        } else {
            script.key_conf(tc, trans.id(), 2, None).unwrap();
            script.nothing_yet();
            script.row(other, read, 5, 50).unwrap();
        }
        let (batch, result) = script.executed(1);
        assert_eq!(result, Ok(Executed { committed: None }));
        assert_eq!(batch.row(op(0)).unwrap().unwrap().get_u64("v"), Ok(Some(50)));
        assert_eq!(batch.result(op(1)), Ok(()));
        assert_eq!(script.core.operations_of(trans), 2);

        // With writes made, committed reads go through the coordinator, without START.
        script.execute(Some(trans), &[(ReadCommitted, 6)], CommitMode::NoCommit, 2);
        let sent = script.sent();
        let [Sent::Key { tc: again, api_op, flags, .. }] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((again, flags), (tc, tc_flags::EXECUTE | tc_flags::IGNORE_ERROR));
        script.signal(tc, &TcKeyRef { trans: trans.id(), api_op, code: 626 }, &[]).unwrap();
        script.key_conf(tc, trans.id(), 3, None).unwrap();
        let (batch, result) = script.executed(2);
        assert!(result.is_ok() && batch.row(op(0)).unwrap().is_none());

        script.execute(Some(trans), &[], CommitMode::Commit, 3);
        assert_eq!(script.sent(), [Sent::Commit { tc, trans: trans.id() }]);
        script.signal(tc, &TcCommitConf { trans: trans.id(), epoch: Epoch(9) }, &[]).unwrap();
        assert_eq!(script.executed(3).1, Ok(Executed { committed: Some(Epoch(9)) }));
        script.execute(Some(trans), &[(Delete, 1)], CommitMode::Commit, 4);
        assert_eq!(script.executed(4).1.unwrap_err().code(), ErrorCode::TRANSACTION_HAS_FAILED);
        script.core.release(script.now, trans);
        assert_eq!(script.core.in_use(), [0; 4]);
    }
}

#[test]
fn reads_in_a_transaction_without_writes_need_no_coordinator() {
    let mut script = Script::new();
    let trans = script.core.begin().unwrap();
    script.execute(Some(trans), &[(ReadCommitted, 1)], CommitMode::NoCommit, 1);
    let sent = script.sent();
    let [Sent::Read { node, api_op, .. }] = sent[..] else { panic!("{sent:?}") };
    // One thing at a time.
    script.execute(Some(trans), &[(ReadCommitted, 2)], CommitMode::NoCommit, 2);
    assert_eq!(script.executed(2).1.unwrap_err().code(), ErrorCode::STATUS_ERROR);
    script.row(node, api_op, 1, 10).unwrap();
    assert!(script.executed(1).1.is_ok());
    script.execute(Some(trans), &[], CommitMode::Commit, 3);
    assert_eq!(script.executed(3).1, Ok(Executed { committed: Some(Epoch(0)) }));
    assert!(script.sent().is_empty());
    script.core.release(script.now, trans);
    assert_eq!(script.core.in_use(), [0; 4]);
}

/// Simulator, workload ring-calm, seed 14: it was sent as a commit, and what was rolled back later stayed.
#[test]
fn executing_nothing_asks_nothing_of_the_coordinator() {
    let mut script = Script::new();
    let (trans, tc, [read, _]) = read_and_update(&mut script, CommitMode::NoCommit);
    script.row(N1, read, 5, 50).unwrap();
    script.key_conf(tc, trans.id(), 2, None).unwrap();
    assert!(script.executed(1).1.is_ok());
    script.execute(Some(trans), &[], CommitMode::NoCommit, 2);
    assert_eq!(script.executed(2).1, Ok(Executed { committed: None }));
    assert!(script.sent().is_empty());
    script.core.rollback(script.now, trans, None, 3);
    assert_eq!(script.sent(), [Sent::Rollback { tc, trans: trans.id(), keep: ROLLBACK_ALL }]);
}

#[test]
fn a_hint_chooses_the_coordinator() {
    let mut script = Script::new();
    let (here, there) = (id_on(&script.table, N1), id_on(&script.table, N2));
    let trans = script.core.begin().unwrap();
    let hash = script.table.distribution_hash(&there.to_le_bytes()).unwrap();
    script.core.hint(trans, &script.table.clone(), hash);
    script.execute(Some(trans), &[(Update, here)], CommitMode::NoCommit, 1);
    assert!(matches!(script.sent()[..], [Sent::Key { tc, .. }] if tc.node() == N2));
}

#[test]
fn savepoints_keep_the_first_operations() {
    let mut script = Script::new();
    let (trans, tc, [read, _]) = read_and_update(&mut script, CommitMode::NoCommit);
    script.row(N1, read, 5, 50).unwrap();
    script.key_conf(tc, trans.id(), 2, None).unwrap();
    assert!(script.executed(1).1.is_ok());
    script.execute(Some(trans), &[(Insert, 8), (Insert, 9)], CommitMode::NoCommit, 2);
    script.sent();
    script.key_conf(tc, trans.id(), 4, None).unwrap();
    assert!(script.executed(2).1.is_ok());
    script.core.rollback(script.now, trans, Some(5), 3);
    assert!(matches!(script.core.next_completion(), Some(Completion::RolledBack { tag: 3, result: Err(_) })));
    script.core.rollback(script.now, trans, Some(2), 4);
    assert_eq!(script.sent(), [Sent::Rollback { tc, trans: trans.id(), keep: 2 }]);
    script.signal(tc, &TcRollbackConf { trans: trans.id(), keep: 2, spare: 0 }, &[]).unwrap();
    assert!(matches!(script.core.next_completion(), Some(Completion::RolledBack { tag: 4, result: Ok(()) })));
    assert_eq!(script.core.operations_of(trans), 2);
    script.execute(Some(trans), &[(Insert, 8)], CommitMode::Commit, 5);
    script.sent();
    script.key_conf(tc, trans.id(), 3, Some(1)).unwrap();
    assert!(script.executed(5).1.is_ok());
}

#[test]
fn a_transaction_let_go_is_rolled_back_and_its_record_freed() {
    let mut script = Script::new();
    let (trans, tc, [read, _]) = read_and_update(&mut script, CommitMode::NoCommit);
    script.core.release(script.now, trans);
    assert!(script.sent().is_empty(), "it is still executing");
    script.row(N1, read, 5, 50).unwrap();
    script.key_conf(tc, trans.id(), 2, None).unwrap();
    assert_eq!(script.sent(), [Sent::Rollback { tc, trans: trans.id(), keep: ROLLBACK_ALL }]);
    let conf = TcRollbackConf { trans: trans.id(), keep: ROLLBACK_ALL, spare: 0 };
    script.signal(tc, &conf, &[]).unwrap();
    assert!(script.executed(1).1.is_ok());
    assert_eq!(script.core.in_use(), [0; 4]);
}

#[test]
fn the_coordinator_may_end_an_idle_transaction() {
    let mut script = Script::new();
    let (trans, tc, [read, _]) = read_and_update(&mut script, CommitMode::NoCommit);
    script.row(N1, read, 5, 50).unwrap();
    script.key_conf(tc, trans.id(), 2, None).unwrap();
    assert!(script.executed(1).1.is_ok());
    let rep = TcRollbackRep { trans: trans.id(), code: 274, api_op: NO_OPERATION };
    script.signal(tc, &rep, &[]).unwrap();
    script.execute(Some(trans), &[(Insert, 8)], CommitMode::Commit, 5);
    let error = script.executed(5).1.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INACTIVE_TIMEOUT);
    assert!(error.retryable());
    assert!(script.sent().is_empty());
}

#[test]
fn nonsense_is_an_error_and_changes_nothing() {
    let mut script = Script::new();
    let (trans, tc, [read, update]) = read_and_update(&mut script, CommitMode::NoCommit);
    let id = trans.id();
    let other_tc = BlockRef::new(tc.node(), BlockNumber::Dbtc, 1 - tc.instance());
    assert!(script.key_conf(tc, id, 1, None).is_err(), "another number of operations");
    assert!(script.key_conf(tc, id, 2, Some(5)).is_err(), "committed unasked");
    assert!(script.key_conf(other_tc, id, 2, None).is_err(), "another coordinator");
    assert!(script.row(N1, update, 6, 60).is_err(), "a row for a write");
    let short = row_bytes(5, 50)[..8].to_vec();
    let body = TransIdAi { api_op: read, length: 8 };
    assert!(script.signal(Script::ldm(N1), &body, &short).is_err(), "columns missing");
    assert!(script.read_ref(N1, read, ErrorCode::TUPLE_NOT_FOUND).is_err(), "not a direct read");
    assert!(script.signal(tc, &TcKeyRef { trans: id, api_op: read, code: 0 }, &[]).is_err(), "no code");
    assert!(script.signal(tc, &TcCommitConf { trans: id, epoch: Epoch(1) }, &[]).is_err(), "not asked");
    assert!(script.signal(tc, &TcCommitReq { trans: id }, &[]).is_err(), "not for clients");
    let foreign = TransId::new(NodeId(9), LINK + 1, 5);
    assert!(script.key_conf(tc, foreign, 2, None).is_err(), "another client's");
    let mut bytes = Vec::new();
    frame::push_signal(&mut bytes, tc, script.core.me(), &TcCommitReq { trans: id }, &[], &[]);
    let wrong_link = if tc.node() == N1 { N2 } else { N1 };
    assert!(script.core.receive(script.now, wrong_link, &bytes).is_err(), "over another node's link");
    assert!(script.core.receive(script.now, N1, &bytes[..20]).is_err(), "cut short");
    script.nothing_yet();
    // All the same, the real answers still count.
    script.row(N1, read, 5, 50).unwrap();
    script.key_conf(tc, id, 2, None).unwrap();
    assert!(script.executed(1).1.is_ok());
}

#[test]
fn random_bytes_never_panic_the_core() {
    let mut script = Script::new();
    let mut state = 7u64;
    for round in 0..20_000u64 {
        script.execute(None, &[(ReadCommitted, 1), (ReadCommitted, 2)], CommitMode::Commit, round);
        script.sent();
        let section = row_bytes(1, 2);
        let mut bytes = Vec::new();
        let body = TransIdAi { api_op: round as u32 & 0xff, length: section.len() as u32 };
        frame::push_signal(&mut bytes, Script::ldm(N1), script.core.me(), &body, &section, &[]);
        for _ in 0..2 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        let _ = script.core.receive(script.now, N1, &bytes);
        if round % 64 == 0 {
            script.core.disconnected(script.now, N1, "test");
            script.core.disconnected(script.now, N2, "test");
            while script.core.next_completion().is_some() {}
            script.now = script.now.after_ms(61_000);
            script.core.tick(script.now);
            script.start(N1);
            script.start(N2);
        }
    }
}

#[test]
fn limits_are_kept() {
    let mut script =
        Script::with(|o| (o.operations_max, o.transactions_max, o.send_buffer_bytes) = (3, 2, 400), |_| {});
    script.execute(None, &[(ReadCommitted, 1); 4], CommitMode::Commit, 1);
    assert_eq!(script.executed(1).1.unwrap_err().code(), ErrorCode::OUT_OF_OPERATION_RECORDS);
    let (a, _b) = (script.core.begin().unwrap(), script.core.begin().unwrap());
    assert_eq!(script.core.begin().unwrap_err().code(), ErrorCode::OUT_OF_TRANSACTION_OBJECTS);
    script.execute(None, &[(Insert, 1)], CommitMode::Commit, 1);
    assert_eq!(script.executed(1).1.unwrap_err().code(), ErrorCode::OUT_OF_TRANSACTION_OBJECTS);
    script.execute(Some(a), &[(Insert, 1); 3], CommitMode::NoCommit, 2);
    script.core.release(script.now, _b);
    script.execute(None, &[(ReadCommitted, 1)], CommitMode::Commit, 3);
    assert_eq!(script.executed(3).1.unwrap_err().code(), ErrorCode::OUT_OF_OPERATION_RECORDS);

    let mut script = Script::with(|o| o.send_buffer_bytes = 300, |t| t.def.read_backup = false);
    let id = id_on(&script.table, N1);
    script.execute(None, &[(Insert, id), (Insert, id)], CommitMode::Commit, 1);
    script.execute(None, &[(Insert, id), (Insert, id)], CommitMode::Commit, 2);
    assert_eq!(script.executed(2).1.unwrap_err().code(), ErrorCode::SEND_BUFFER_OVERLOAD);
}
