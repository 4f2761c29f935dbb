//! A client that is killed in mid-transaction: its locks are free at once and its writes are gone.

use std::time::{Duration, Instant};
use tests::shared;

/// Far below the lock wait timeout of 1,200 ms, with room for a loaded machine.
const AT_ONCE: Duration = Duration::from_millis(1000);

#[test]
fn a_killed_clients_locks_are_free_at_once() {
    let sql = shared().fresh_database("story_killed");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10), (2, 20)");
    let mut doomed = sql.session();
    doomed.rows("BEGIN; UPDATE t SET v = 99 WHERE id = 1; INSERT INTO t VALUES (3, 30); SELECT 1");
    let mut other = sql.session();
    other.rows("SELECT 1");
    doomed.kill();
    let start = Instant::now();
    other.rows("UPDATE t SET v = v + 1 WHERE id = 1; INSERT INTO t VALUES (3, 31)");
    let took = start.elapsed();
    let rows = sql.rows("SELECT id, v FROM t ORDER BY id");
    assert_eq!(rows, [["1", "11"], ["2", "20"], ["3", "31"]], "after {took:?}");
    assert!(took < AT_ONCE, "the locks were kept for {took:?}");
}

#[test]
fn a_held_lock_ends_a_waiter_with_1205() {
    let sql = shared().fresh_database("story_waiter");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)");
    let mut holder = sql.session();
    holder.rows("BEGIN; UPDATE t SET v = 11 WHERE id = 1");
    let failure = sql.fails("UPDATE t SET v = 12 WHERE id = 1");
    assert_eq!((failure.code, failure.sqlstate.as_str()), (1205, "HY000"));
    holder.rows("COMMIT");
    assert_eq!(sql.value("SELECT v FROM t"), "11");
}
