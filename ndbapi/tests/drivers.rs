//! Both drivers over real links, against a stand-in for a data node that keeps rows in a map.
//!
//! The stand-in knows just enough of the protocol: it registers clients, describes one table, answers
//! committed reads and lone writes, and can drop its clients. What the real kernel does is tested with the
//! real kernel.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

mod stand_in;

use ndbapi::core::{CommitMode, Completion, ScanSpec};
use ndbapi::poll::Cluster;
use ndbapi::{Batch, ClusterConnection, ConnectOptions, OpId};
use signals::NodeId;
use signals::keyop::Operation;
use stand_in::StandIn;
use std::time::Duration;

fn options(port: u16) -> ConnectOptions {
    let text = format!(
        "[system]\nName=stand-in-{port}\n[ndbd default]\nNoOfReplicas=1\n[ndb_mgmd]\nHostName=127.0.0.1\nNodeId=145\n\
         [ndbd]\nHostName=127.0.0.1\nNodeId=1\nServerPort={port}\n[api]\nNodeId=9\n"
    );
    let loaded = config::parse("test", text.as_bytes()).unwrap();
    ConnectOptions::direct(&loaded.config, NodeId(9)).wait(Duration::from_secs(10))
}

#[tokio::test]
async fn tasks_share_one_session() {
    for in_process in [false, true] {
        let node = StandIn::start(in_process);
        let cluster = ClusterConnection::connect_with(options(node.port())).await.unwrap();
        let table = cluster.dictionary().table("test", "t").await.unwrap();
        let tasks: Vec<_> = (0..100u32)
            .map(|id| {
                let (cluster, table) = (cluster.clone(), table.clone());
                tokio::spawn(async move {
                    let mut tx = cluster.begin();
                    let insert = tx.insert(&table).key(&[id.into()]).set("v", u64::from(id) * 3).finish();
                    let done = tx.commit().await.unwrap();
                    done.result(insert.unwrap()).unwrap();
                    assert!(done.committed().is_some() && tx.is_over());
                    let mut tx = cluster.begin();
                    let read = tx.read(&table).key(&[id.into()]).finish().unwrap();
                    let missing = tx.read(&table).key(&[(id + 1000).into()]).finish().unwrap();
                    let results = tx.execute().await.unwrap();
                    let row = results.row(read).unwrap().unwrap();
                    assert_eq!(row.get_u64("v"), Ok(Some(u64::from(id) * 3)));
                    assert!(results.row(missing).unwrap().is_none());
                    results.check().unwrap();
                    tx.abort().await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut tx = cluster.begin();
        tx.insert(&table).key(&[5u32.into()]).set("v", 1u64).finish().unwrap();
        assert_eq!(tx.commit().await.unwrap_err().code().0, 630);
        assert!(tx.is_over());
        let mut scan = cluster.begin().scan(ScanSpec::new(&table)).await.unwrap();
        let mut ids = Vec::new();
        while let Some(rows) = scan.next().await.unwrap() {
            ids.extend(rows.rows().map(|r| r.get_u32("id").unwrap().unwrap()));
        }
        assert_eq!(ids, (0..100).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_connection_comes_back_after_its_node() {
    let node = StandIn::start(false);
    let cluster = ClusterConnection::connect_with(options(node.port())).await.unwrap();
    let table = cluster.dictionary().table("test", "t").await.unwrap();
    let mut batch = Box::new(Batch::new());
    batch.op(&table, Operation::Insert).key(&[1u32.into()]).set("v", 1u64).finish().unwrap();
    cluster.execute(batch).await.unwrap();
    for _ in 0..3 {
        node.drop_clients();
        // Whatever the moment: it is answered, waits for the link, or fails as temporary.
        loop {
            let mut batch = Box::new(Batch::new());
            batch.op(&table, Operation::ReadCommitted).key(&[1u32.into()]).finish().unwrap();
            let results = cluster.execute(batch).await;
            match results.as_ref().map(|r| r.row(OpId(0)).map(|row| row.is_some())) {
                Ok(Ok(found)) => {
                    assert!(found);
                    break;
                }
                Ok(Err(error)) => assert!(error.retryable(), "{error}"),
                Err(error) => assert!(error.retryable(), "{error}"),
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn an_absent_cluster_is_an_error_after_the_wait() {
    let options = options(1).wait(Duration::from_millis(200));
    let error = ClusterConnection::connect_with(options).await.unwrap_err();
    assert_eq!(error.code().0, 4035);
    assert!(error.retryable() && error.detail().contains("node 1"));
}

#[test]
fn a_poll_session_keeps_many_transactions_in_flight() {
    for in_process in [false, true] {
        let node = StandIn::start(in_process);
        let cluster = Cluster::join(options(node.port())).unwrap();
        let mut session = cluster.session().unwrap();
        session.wait_ready(Duration::from_secs(10)).unwrap();
        let table = session.table("test", "t", Duration::from_secs(10)).unwrap();
        for operation in [Operation::Insert, Operation::ReadCommitted] {
            for id in 0..500u32 {
                let mut batch = session.batch();
                let op = batch.op(&table, operation).key(&[id.into()]);
                let op = if operation == Operation::Insert { op.set("v", 7u64) } else { op };
                op.finish().unwrap();
                session.execute(None, batch, CommitMode::Commit, id.into());
            }
            let mut seen = [false; 500];
            while seen.contains(&false) {
                session.send();
                session.poll(Duration::from_secs(1));
                while let Some(Completion::Executed { tag, batch, result }) = session.next_completion() {
                    result.unwrap();
                    if operation == Operation::ReadCommitted {
                        let row = batch.row(OpId(0)).unwrap().unwrap();
                        assert_eq!(row.get_u32("id"), Ok(Some(tag as u32)));
                    }
                    assert!(!std::mem::replace(&mut seen[tag as usize], true));
                    session.recycle(batch);
                }
            }
        }
        let mut count = 0;
        let spec = ScanSpec::new(&table).batch(10, 1 << 10);
        session.scan_all(spec, Duration::from_secs(10), |rows| count += rows.len()).unwrap();
        assert_eq!(count, 500);
    }
}
