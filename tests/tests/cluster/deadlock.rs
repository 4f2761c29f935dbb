//! Two sessions that wait for each other: one is told so with 1213 and loses its whole transaction, the other
//! goes on.
//!
//! The number tells detection from the lock wait time-out, which ends a wait with 1205.

use std::process::Command;
use std::time::Duration;
use tests::{run, shared};

const SCRIPT: &str = r"
import sys, threading
import pymysql

class Session:
    def __init__(self, own, other):
        self.own, self.other = own, other
        self.db = pymysql.connect(host='127.0.0.1', port=int(sys.argv[1]), user='root', db='story_deadlock')
    def do(self, statement, *values):
        with self.db.cursor() as c:
            c.execute(statement, values)
            return c.fetchall()
    def ask(self, turn):
        try:
            self.do('UPDATE t SET v = %s WHERE id = %s', -turn, self.other)
            self.failed = None
        except pymysql.err.OperationalError as e:
            self.failed = e.args[0]

a, b = Session(1, 2), Session(2, 1)
for turn in range(1, 21):
    for session in (a, b):
        session.db.begin()
        session.do('UPDATE t SET v = %s WHERE id = %s', turn, session.own)
        session.do('INSERT INTO log VALUES (%s, %s)', turn, session.own)
    threads = [threading.Thread(target=session.ask, args=(turn,)) for session in (a, b)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    lost, kept = (a, b) if a.failed else (b, a)
    assert (lost.failed, kept.failed) == (1213, None), (turn, a.failed, b.failed)
    # There is nothing of the victim left to commit, and its session goes on with a transaction anew.
    lost.db.commit()
    lost.do('INSERT INTO log VALUES (%s, %s)', turn, 0)
    lost.db.commit()
    kept.db.commit()
    rows = lost.do('SELECT id, v FROM t ORDER BY id')
    assert dict(rows) == {kept.own: turn, kept.other: -turn}, (turn, rows)
    rows = lost.do('SELECT session FROM log WHERE turn = %s ORDER BY session', turn)
    assert rows == ((0,), (kept.own,)), (turn, rows)
print('20 rounds')
";

#[test]
fn of_sessions_that_wait_for_each_other_one_is_told_1213() {
    let sql = shared().fresh_database("story_deadlock");
    sql.rows(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 0), (2, 0); \
         CREATE TABLE log (turn INT NOT NULL, session INT NOT NULL, PRIMARY KEY (turn, session))",
    );
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, &sql.port().to_string()]);
    let printed = run(&mut command, Duration::from_secs(60)).expect_success("two sessions");
    assert_eq!(printed.trim(), "20 rounds");
    assert_eq!(sql.value("SELECT COUNT(*) FROM log"), "40");
}
