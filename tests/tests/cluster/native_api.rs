//! The native API beside SQL: both see each other's rows, and every row is read at each of its replicas.

use ndbapi::{ClusterConnection, ConnectOptions, ScanSpec, TableHandle};
use signals::{ErrorCode, NodeId};
use std::collections::BTreeMap;
use tests::{shared, shared_connect_string};

const ROWS: i32 = 200;

/// All rows of `t (id INT, v INT, name VARCHAR)` by single committed reads, as seen by a client next to
/// `node`.
async fn read_beside(node: u8) -> BTreeMap<i32, (i32, String)> {
    let options = ConnectOptions::new(shared_connect_string()).neighbour(NodeId(node));
    let cluster = ClusterConnection::connect_with(options).await.unwrap();
    cluster.wait_all_ready(std::time::Duration::from_secs(20)).await.unwrap();
    let table = cluster.dictionary().table("story_native", "t").await.unwrap();
    let mut all = BTreeMap::new();
    for id in 0..ROWS {
        let mut tx = cluster.begin();
        let read = tx.read(&table).key(&[id.into()]).finish().unwrap();
        let results = tx.execute().await.unwrap();
        let row = results.row(read).unwrap().expect("the row is there");
        let name = row.get_str("name").unwrap().expect("a name").to_string();
        all.insert(row.get_i32("id").unwrap().unwrap(), (row.get_i32("v").unwrap().unwrap(), name));
    }
    cluster.close().await;
    all
}

async fn change_natively(cluster: &ClusterConnection, table: &TableHandle) {
    // One transaction over many rows, one of them taken back by a savepoint.
    let mut tx = cluster.begin();
    for id in 0..10 {
        tx.update(table).key(&[id.into()]).set("v", 1000 + id).finish().unwrap();
    }
    tx.execute().await.unwrap();
    let savepoint = tx.savepoint().await.unwrap();
    tx.delete(table).key(&[10.into()]).finish().unwrap();
    tx.execute().await.unwrap();
    tx.rollback_to(savepoint).await.unwrap();
    tx.commit().await.unwrap();

    // A failed operation names its code and leaves nothing behind.
    let mut tx = cluster.begin();
    tx.insert(table).key(&[5.into()]).set("v", 0).set("name", "again").finish().unwrap();
    let error = match tx.commit().await {
        Ok(results) => results.check().unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.code(), ErrorCode::TUPLE_EXISTS);
    assert!(!error.retryable());

    // Rolled back: nobody sees it.
    let mut tx = cluster.begin();
    tx.update(table).key(&[20.into()]).set("v", -1).finish().unwrap();
    tx.execute().await.unwrap();
    tx.abort().await.unwrap();
}

#[tokio::test]
async fn sql_and_native_clients_see_the_same_rows_at_every_replica() {
    let sql = shared().fresh_database("story_native");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, name VARCHAR(20))");
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {}, 'name {id}')", id * 2)).collect();
    sql.rows(&format!("INSERT INTO t VALUES {}", rows.join(",")));

    let cluster = ClusterConnection::connect(&shared_connect_string()).await.unwrap();
    let table = cluster.dictionary().table("story_native", "t").await.unwrap();
    change_natively(&cluster, &table).await;

    let want: BTreeMap<i32, (i32, String)> =
        (0..ROWS).map(|id| (id, (if id < 10 { 1000 + id } else { id * 2 }, format!("name {id}")))).collect();
    for node in [1, 2] {
        assert_eq!(read_beside(node).await, want, "beside data node {node}");
    }

    let spec = ScanSpec::new(&table).columns(&["id", "v"]).unwrap();
    let mut scan = cluster.begin().scan(spec).await.unwrap();
    let mut scanned = BTreeMap::new();
    while let Some(batch) = scan.next().await.unwrap() {
        for row in batch.rows() {
            let id = row.get_i32("id").unwrap().unwrap();
            assert!(scanned.insert(id, row.get_i32("v").unwrap().unwrap()).is_none(), "row {id} twice");
        }
    }
    drop(scan);
    assert_eq!(scanned, want.iter().map(|(id, (v, _))| (*id, *v)).collect());
    cluster.close().await;

    assert_eq!(sql.value("SELECT SUM(v) FROM t"), want.values().map(|(v, _)| v).sum::<i32>().to_string());
    assert_eq!(
        sql.rows("SELECT id, v FROM t WHERE id IN (5, 10, 20) ORDER BY id"),
        [["5", "1005"], ["10", "20"], ["20", "40"]]
    );
}
