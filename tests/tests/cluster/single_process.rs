//! All nodes in one process: SQL through rings, native clients from outside, the same rows at both replicas.

use ndbapi::{ClusterConnection, ConnectOptions};
use signals::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;
use tests::{Cluster, Options};

const ROWS: i32 = 100;

/// The rows of `story.t (id, v)` as a client from outside reads them next to `node`.
async fn read_beside(connect_string: &str, node: u8) -> BTreeMap<i32, i32> {
    let options = ConnectOptions::new(connect_string).neighbour(NodeId(node));
    let cluster = ClusterConnection::connect_with(options).await.unwrap();
    cluster.wait_all_ready(Duration::from_secs(20)).await.unwrap();
    let table = cluster.dictionary().table("story", "t").await.unwrap();
    let mut all = BTreeMap::new();
    for id in 0..ROWS {
        let mut tx = cluster.begin();
        let read = tx.read(&table).key(&[id.into()]).finish().unwrap();
        let results = tx.execute().await.unwrap();
        if let Some(row) = results.row(read).unwrap() {
            all.insert(id, row.get_i32("v").unwrap().unwrap());
        }
    }
    cluster.close().await;
    all
}

#[tokio::test]
async fn one_process_serves_sql_and_native_clients_from_both_replicas() {
    let cluster = Cluster::start(Options { single_process: true, ..Options::default() });
    assert_eq!(cluster.pids().len(), 1, "the front door is the cluster");
    let sql = cluster.sql();
    sql.rows("CREATE DATABASE story; CREATE TABLE story.t (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)");
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {})", id * 3)).collect();
    sql.rows(&format!("INSERT INTO story.t VALUES {}", rows.join(",")));
    sql.rows("UPDATE story.t SET v = -v WHERE id < 10; DELETE FROM story.t WHERE id >= 90");
    let want: BTreeMap<i32, i32> = (0..90).map(|id| (id, if id < 10 { -3 * id } else { 3 * id })).collect();
    for node in [1, 2] {
        assert_eq!(read_beside(&cluster.connect_string(), node).await, want, "beside data node {node}");
    }
    assert_eq!(sql.value("SELECT SUM(v) FROM story.t"), want.values().sum::<i32>().to_string());

    let status = cluster.mgm("ALL STATUS").expect_success("ALL STATUS");
    assert!(status.contains("Node 1: started") && status.contains("Node 2: started"), "{status}");
    // SQL and both data nodes, as in processes of their own.
    assert_eq!(cluster.listening_ports().tcp.len(), 3);
}
