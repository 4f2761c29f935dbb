//! Rows up to the limit: what goes in comes out, through text and prepared statements, by key and by scan.

use std::process::Command;
use std::time::Duration;
use tests::{run, shared};

/// A program with PyMySQL for text and, on the same connection, the few packets that prepared statements
/// take.
const SCRIPT: &str = r#"
import sys, struct, random
import pymysql

db = pymysql.connect(host='127.0.0.1', port=int(sys.argv[1]), user='root', database='story_large', charset='utf8mb4', autocommit=True)
cur = db.cursor()

def lenenc(b):
    if len(b) < 251: return bytes([len(b)]) + b
    if len(b) < 65536: return b'\xfc' + struct.pack('<H', len(b)) + b
    return b'\xfd' + struct.pack('<I', len(b))[:3] + b

def take_lenenc(p, at):
    first = p[at]
    if first < 251: n, at = first, at + 1
    elif first == 0xfc: n, at = struct.unpack_from('<H', p, at + 1)[0], at + 3
    else: n, at = int.from_bytes(p[at + 1:at + 4], 'little'), at + 4
    return p[at:at + n], at + n

def prepared(sql, *args):
    """Runs a prepared statement with integers and byte strings; gives rows of byte strings."""
    db._execute_command(0x16, sql)
    p = db._read_packet().get_all_data()
    stmt, columns, params = struct.unpack_from('<IHH', p, 1)
    for count in (params, columns):
        if count:
            for _ in range(count + 1): db._read_packet()
    body = struct.pack('<IBI', stmt, 0, 1) + bytes((len(args) + 7) // 8) + b'\x01'
    body += b''.join(b'\x08\x00' if isinstance(a, int) else b'\xfc\x00' for a in args)
    body += b''.join(struct.pack('<q', a) if isinstance(a, int) else lenenc(a) for a in args)
    db._execute_command(0x17, body)
    p = db._read_packet()
    rows = []
    if not p.is_ok_packet():
        width = p.get_all_data()[0]
        for _ in range(width + 1): db._read_packet()
        while True:
            p = db._read_packet().get_all_data()
            if p[0] == 0xfe and len(p) < 9: break
            nulls, at, row = p[1:1 + (width + 9) // 8], 1 + (width + 9) // 8, []
            for i in range(width):
                if nulls[(i + 2) // 8] >> ((i + 2) % 8) & 1: row.append(None); continue
                value, at = take_lenenc(p, at)
                row.append(value)
            rows.append(tuple(row))
    db._execute_command(0x19, struct.pack('<I', stmt))
    db._next_seq_id = 0
    return rows

def q(sql, args=None):
    cur.execute(sql, args)
    return list(cur.fetchall())

def fails(code, sql, args=None):
    try:
        cur.execute(sql, args)
    except pymysql.err.MySQLError as e:
        assert e.args[0] == code, (sql[:60], e)
        return
    raise AssertionError('no error: ' + sql[:60])

rnd = random.Random(7)
text = lambda n: ''.join(rnd.choice('abcdefghijklmnop') for _ in range(n))
blob = lambda n: rnd.randbytes(n)
q('CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a TEXT, b LONGBLOB, c MEDIUMTEXT)')
want = {}
for id in range(40):
    row = (text(29000), None, None) if id % 3 == 0 else (None, blob(29000), '') if id % 3 == 1 else (text(9990), blob(9990), text(9990))
    if id % 2:
        binary = '%s' if row[1] is None else '_binary %s'
        q('INSERT INTO t VALUES (%s, %s, ' + binary + ', %s)', (id,) + row)
    else:
        # NULL is sent as a literal: the parameters here are never NULL.
        parts = ['NULL' if v is None else '?' for v in row]
        args = [v.encode() if isinstance(v, str) else v for v in row if v is not None]
        prepared('INSERT INTO t VALUES (?, %s)' % ', '.join(parts), id, *args)
    want[id] = row

def check():
    for id, row in want.items():
        assert q('SELECT a, b, c FROM t WHERE id = %s', (id,)) == [row], id
        as_bytes = tuple(v.encode() if isinstance(v, str) else v for v in row)
        assert prepared('SELECT a, b, c FROM t WHERE id = ?', id) == [as_bytes], id
    assert dict((r[0], r[1:]) for r in q('SELECT * FROM t')) == want
    scanned = prepared('SELECT a, b, c FROM t WHERE id >= 0 ORDER BY id')
    assert scanned == [tuple(v.encode() if isinstance(v, str) else v for v in want[id]) for id in sorted(want)]
    some = list(want)[::2]
    assert len(q('SELECT a FROM t WHERE id IN (%s)' % ', '.join(map(str, some)))) == len(some)
check()

# Too long as a whole: one error, nothing changes.
for sql in ["INSERT INTO t (id, a) VALUES (99, REPEAT('x', 30000))", "INSERT INTO t (id, a, c) VALUES (99, REPEAT('x', 16000), REPEAT('y', 16000))",
            "UPDATE t SET c = REPEAT('y', 10100) WHERE id = 2", "UPDATE t SET a = REPEAT('z', 29997)", "REPLACE INTO t (id, a) VALUES (2, REPEAT('y', 30001))",
            "INSERT INTO t (id, a) VALUES (98, 'fits'), (99, REPEAT('x', 30000))"]:
    fails(1118, sql)
fails(1406, "INSERT INTO t (id, a) VALUES (99, REPEAT('x', 70000))")
check()

# Before and after images at the limit: rolled back, then committed.
for end in ('ROLLBACK', 'COMMIT'):
    new = {id: (text(29000), None, None) for id in list(want)[:10]}
    q('BEGIN')
    for id, row in new.items():
        q('UPDATE t SET a = %s, b = NULL, c = NULL WHERE id = %s', (row[0], id))
    assert q('SELECT a, b, c FROM t WHERE id = 3') == [new[3]]
    q(end)
    if end == 'COMMIT': want.update(new)
    check()
prepared('UPDATE t SET a = ? WHERE id = ?', b'p' * 29990, 6)
want[6] = ('p' * 29990,) + want[6][1:]
check()

# Many at once: more than any one buffer on the way holds.
q('CREATE TABLE m (id INT NOT NULL PRIMARY KEY, a TEXT)')
rows = [(i, text(100) * 290) for i in range(300)]
q('INSERT INTO m VALUES ' + ', '.join("(%d, '%s')" % r for r in rows))
assert q('SELECT id, a FROM m ORDER BY id') == rows
assert q('SELECT id, a FROM m WHERE id IN (%s) ORDER BY id' % ', '.join(str(i) for i in range(300))) == rows
assert cur.execute("UPDATE m SET a = CONCAT('x', a)") == 300
assert q('SELECT id, a FROM m ORDER BY id') == [(i, 'x' + a) for i, a in rows]
assert cur.execute('DELETE FROM m WHERE id < 300') == 300
print('ok')
"#;

#[test]
fn rows_at_the_limit_come_back_as_they_went_in() {
    let sql = shared().fresh_database("story_large");
    let port = sql.port().to_string();
    let finished = run(Command::new("python3").args(["-c", SCRIPT, &port]), Duration::from_secs(120));
    assert_eq!(finished.expect_success("the program").trim(), "ok");
}
