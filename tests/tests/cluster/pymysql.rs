//! PyMySQL: a program in another language, with its own driver, over the same cluster.

use std::process::Command;
use std::time::Duration;
use tests::{run, shared};

const SCRIPT: &str = r"
import datetime, decimal, sys
import pymysql

port = int(sys.argv[1])
def connect(**more):
    return pymysql.connect(host='127.0.0.1', port=port, user='root', charset='utf8mb4', **more)

db = connect()
with db.cursor() as c:
    c.execute('DROP DATABASE IF EXISTS story_pymysql')
    c.execute('CREATE DATABASE story_pymysql')
db.select_db('story_pymysql')
with db.cursor() as c:
    c.execute('CREATE TABLE t (id INT NOT NULL PRIMARY KEY, s VARCHAR(50), n DECIMAL(10,2), f DOUBLE, d DATE, dt DATETIME(6), b VARBINARY(10))')
    row = (1, 'grüße \U0001F600 \'quoted\'', decimal.Decimal('12.50'), 0.1, datetime.date(2020, 2, 29),
           datetime.datetime(2020, 2, 29, 23, 59, 59, 123456), b'\x00\xff\x27')
    assert c.execute('INSERT INTO t VALUES (%s,%s,%s,%s,%s,%s,%s)', row) == 1
    assert c.executemany('INSERT INTO t (id, s) VALUES (%s, %s)', [(i, None) for i in range(2, 102)]) == 100
db.commit()
with db.cursor() as c:
    c.execute('SELECT * FROM t WHERE id = 1')
    assert c.fetchone() == row, row
    assert [d[0] for d in c.description] == ['id', 's', 'n', 'f', 'd', 'dt', 'b']
    assert c.execute('UPDATE t SET s = %s WHERE id > %s', ('x', 51)) == 50
db.rollback()
with db.cursor() as c:
    c.execute('SELECT COUNT(*), COUNT(s), SUM(id) FROM t')
    assert c.fetchone() == (101, 1, 5151)
    try:
        c.execute('INSERT INTO t (id) VALUES (1)')
        raise SystemExit('a duplicate was accepted')
    except pymysql.err.IntegrityError as e:
        assert e.args[0] == 1062, e
    try:
        c.execute('SELECT * FROM nothing')
        raise SystemExit('a missing table was read')
    except pymysql.err.ProgrammingError as e:
        assert e.args[0] == 1146, e
db.ping()
db.close()
other = connect(database='story_pymysql', autocommit=True, cursorclass=pymysql.cursors.DictCursor)
with other.cursor() as c:
    c.execute('DELETE FROM t WHERE id > 1')
    c.execute('SELECT id, s FROM t')
    assert c.fetchall() == [{'id': 1, 's': row[1]}]
try:
    connect(password='wrong')
    raise SystemExit('a wrong password was accepted')
except pymysql.err.OperationalError as e:
    assert e.args[0] == 1045, e
print('ok')
";

#[test]
fn a_python_program_works_with_the_cluster() {
    let sql = shared();
    let missing = run(Command::new("python3").args(["-c", "import pymysql"]), Duration::from_secs(20));
    assert!(missing.succeeded(), "the story needs PyMySQL: pip install pymysql ({missing:?})");
    let port = sql.port().to_string();
    let finished = run(Command::new("python3").args(["-c", SCRIPT, &port]), Duration::from_secs(60));
    assert_eq!(finished.expect_success("the program").trim(), "ok");
}
