//! The SQL node while the data nodes are away: it says so soon, stays up, and works again with them.

use std::time::{Duration, Instant};
use tests::ByHand;

/// How long an answer may take, with room for a loaded machine; clients and links time out far later.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn statements_fail_soon_without_data_nodes_and_work_again_with_them() {
    let mut cluster = ByHand::start();
    let sql = cluster.sql().fresh_database("story_away");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)");
    let mut open = sql.session();
    assert_eq!(open.rows("SELECT v FROM t"), [["10"]]);
    let mut idle = sql.session();
    idle.rows("BEGIN; UPDATE t SET v = 11");

    cluster.kill_data_nodes();
    for statement in [
        "SELECT v FROM t WHERE id = 1",
        "INSERT INTO t VALUES (2, 20)",
        "SHOW TABLES",
        "BEGIN; SELECT * FROM t",
    ] {
        let start = Instant::now();
        let failure = sql.fails(statement);
        let took = start.elapsed();
        // The first statement may still find the links as they were and learn that its node has failed.
        assert!(matches!(failure.code, 157 | 1296 | 1297), "{statement}: {failure:?}");
        assert!(took < SOON, "{statement}: {took:?}");
    }
    let failure = sql.fails("SELECT v FROM t");
    assert_eq!(failure.code, 157, "{failure:?}");
    // What needs no data is answered, and sessions stay.
    assert_eq!(cluster.sql().value("SELECT 6 * 7"), "42");
    let start = Instant::now();
    assert_eq!(open.rows("SELECT v FROM t; SELECT 'still here'"), [["still here"]]);
    assert_eq!(idle.rows("COMMIT; SELECT 'still here'"), [["still here"]]);
    assert!(start.elapsed() < 2 * SOON, "{:?}", start.elapsed());

    cluster.start_data_nodes();
    cluster.wait_for_sql();
    // Tables live in memory: the cluster comes back empty.
    let sql = cluster.sql().fresh_database("story_away");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 30)");
    assert_eq!(open.rows("SELECT v FROM t"), [["30"]]);
    assert_eq!(idle.rows("UPDATE t SET v = 31; SELECT v FROM t"), [["31"]]);
}
