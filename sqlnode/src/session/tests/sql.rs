//! SQL through PyMySQL and the mariadb client, over the in-memory stand-in.

use std::process::Command;
use std::sync::Arc;

use super::memory::Memory;
use crate::exec::store::Cluster;
use crate::protocol::{Server, ServerConfig, StopHandle};
use crate::session::{NodeConfig, Sessions, SqlNode};

struct TestServer {
    port: u16,
    stop: StopHandle,
}

impl TestServer {
    async fn start(with_cluster: bool) -> Self {
        let address = "127.0.0.1:0".parse().unwrap();
        let node = SqlNode::new(NodeConfig::new("", address));
        if with_cluster {
            let memory = Memory::default();
            memory.create_database("test").unwrap();
            node.set_cluster(Cluster::Memory(memory));
        }
        let config = ServerConfig { tls: false, ..ServerConfig::default() };
        let server = Server::bind(address, config, Sessions(Arc::clone(&node))).await.unwrap();
        let (port, stop) = (server.address().port(), server.stop_handle());
        tokio::spawn(server.run());
        Self { port, stop }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

async fn run(program: &'static str, arguments: Vec<String>) -> (bool, String) {
    tokio::task::spawn_blocking(move || {
        let output = Command::new(program)
            .args(&arguments)
            .output()
            .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    })
    .await
    .unwrap()
}

const PRELUDE: &str = r#"
import sys, pymysql, datetime, decimal
port = int(sys.argv[1])
def connect(db='test', **o):
    return pymysql.connect(host='127.0.0.1', port=port, user='root', database=db, autocommit=True, **o)
c = connect()
cur = c.cursor()
def q(sql, args=None):
    cur.execute(sql, args)
    return list(cur.fetchall())
def affected(sql, args=None):
    return cur.execute(sql, args)
def fails(code, sql, args=None):
    try:
        cur.execute(sql, args)
    except pymysql.err.MySQLError as e:
        assert e.args[0] == code, (sql, e)
        return e.args[1]
    raise AssertionError('no error: ' + sql)
def eq(a, b):
    assert a == b, (a, b)
"#;

async fn python(server: &TestServer, script: &str) {
    let arguments =
        vec!["-c".to_owned(), format!("{PRELUDE}{script}\nprint('all good')"), server.port.to_string()];
    let (ok, text) = run("/usr/bin/python3", arguments).await;
    assert!(ok && text.contains("all good"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_back_as_they_went_in() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q("""create table t (id int primary key, name varchar(20), d decimal(8,2), f double, dt datetime(3), day date,
     b varbinary(10), note text, tiny tinyint unsigned, e enum('x','y'), t time)""")
row = (1, 'Ada \u2603', decimal.Decimal('12.50'), 0.25, datetime.datetime(2026, 11, 30, 1, 2, 3, 250000),
       datetime.date(2026, 11, 30), b'\x00\xff', 'long text', 255, 'y', datetime.timedelta(hours=25))
eq(affected('insert into t values (%s,%s,%s,%s,%s,%s,_binary %s,%s,%s,%s,%s)', row), 1)
eq(q('select * from t'), [row])
eq(q('select * from t where id = 1'), [row])
eq(affected('insert into t (id) values (2), (3), (4)'), 3)
eq(q('select id from t where id in (4, 2, 9)'), [(2,), (4,)])
eq(q('select id, name from t where name is null order by id desc limit 1, 1'), [(3, None)])
eq(q('select count(*), sum(id), min(id), max(id), avg(id) from t'), [(4, 10, 1, 4, decimal.Decimal('2.5000'))])
eq(q('select id % 2 as odd, count(*) as n from t group by odd order by odd'), [(0, 2), (1, 2)])
eq(q('select id % 2 as odd, count(*) as n from t group by odd having n > 5'), [])
eq(q('select distinct name is null from t order by 1'), [(0,), (1,)])
eq(q('select count(*) from t where id > 100'), [(0,)])
eq(q('select a.id, b.id from t a join t b on a.id = b.id + 1 order by a.id'), [(2, 1), (3, 2), (4, 3)])
eq(q('select a.id, b.id from t a left join t b on b.id = a.id + 3 where a.id < 3 order by 1'), [(1, 4), (2, None)])
eq(fails(1062, 'insert into t (id) values (2)'), "Duplicate entry '2' for key 't.PRIMARY'")
eq(fails(1062, 'insert into t (id) values (8), (3)'), "Duplicate entry '3' for key 't.PRIMARY'")
eq(q('select id from t where id = 8'), [])
fails(1264, 'insert into t (id, tiny) values (9, 256)')
fails(1406, "insert into t (id, name) values (9, repeat('x', 21))")
fails(1054, 'select nope from t')
fails(1146, 'select * from nope')
fails(1136, 'insert into t (id, name) values (1)')
eq(affected('truncate table t'), 0)
eq(q('select * from t'), [])
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_count_what_mysql_counts() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q('create table t (id int primary key auto_increment, v int not null default 7, u timestamp null on update current_timestamp)')
eq(affected('insert into t (v) values (10), (20), (30)'), 3)
eq(cur.lastrowid, 1)
eq(q('select last_insert_id()'), [(1,)])
eq(q('select id, v from t'), [(1, 10), (2, 20), (3, 30)])
eq(affected('insert into t (id, v) values (5000, 1)'), 1)
affected('insert into t () values ()')
eq(cur.lastrowid, 5001)
eq(q('select v from t where id = 5001'), [(7,)])
affected('delete from t where id >= 5000')
eq(affected('update t set v = v + 1'), 3)
eq(affected('update t set v = 11 where id = 1'), 0)
eq(affected('update t set v = v * 2, u = null where v > 20 order by id desc limit 1'), 1)
eq(q('select v from t order by id'), [(11,), (21,), (62,)])
eq(affected('update t set id = id + 100 where id = 1'), 1)
eq(q('select id from t order by id'), [(2,), (3,), (101,)])
fails(1062, 'update t set id = 3 where id = 2')
eq(affected('delete from t where id = 101'), 1)
eq(affected('delete from t where id = 101'), 0)
eq(affected('insert ignore into t (id, v) values (2, 0), (50, 5)'), 1)
eq(q('show warnings')[0][:2], ('Warning', 1062))
eq(affected('replace into t (id, v) values (2, 99), (51, 6)'), 3)
eq(affected('insert into t (id, v) values (2, 1) on duplicate key update v = v + values(v)'), 2)
eq(q('select v from t where id = 2'), [(100,)])
eq(affected('insert into t (id, v) values (2, 1) on duplicate key update v = v'), 0)
eq(affected('insert into t (v) select v from t where id > 40'), 2)
eq(affected('delete from t'), 6)
fails(1048, 'insert into t (v) values (null)')
f = connect(client_flag=pymysql.constants.CLIENT.FOUND_ROWS)
fc = f.cursor()
fc.execute('insert into t (id, v) values (1, 1)')
eq(fc.execute('update t set v = 1 where id = 1'), 1)
q('create table h (a int, b int)')
eq(affected('insert into h values (1, 1), (1, 1)'), 2)
eq(q('select * from h'), [(1, 1), (1, 1)])
eq(affected('delete from h limit 1'), 1)
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_statement_undoes_only_itself() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q('create table t (id int primary key)')
q('begin')
q('insert into t values (1)')
fails(1062, 'insert into t values (1)')
fails(1062, 'insert into t values (7), (8), (1)')
q('insert into t values (2)')
q('commit')
eq(q('select id from t'), [(1,), (2,)])
q('begin'); q('insert into t values (3)'); q('savepoint a'); q('insert into t values (4)')
q('rollback to a'); q('insert into t values (5)'); q('rollback to savepoint a'); q('commit')
eq(q('select id from t'), [(1,), (2,), (3,)])
fails(1305, 'rollback to nowhere')
q('start transaction'); q('delete from t'); q('rollback')
eq(q('select count(*) from t'), [(3,)])
q('set autocommit = 0'); q('insert into t values (9)'); q('rollback'); q('set autocommit = 1')
eq(q('select count(*) from t'), [(3,)])
q('begin'); q('select * from t where id = 1 for update'); q('update t set id = 10 where id = 1'); q('commit')
eq(q('select id from t order by id'), [(2,), (3,), (10,)])
q('start transaction read only'); fails(1792, 'insert into t values (20)'); q('commit')
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_are_made_shown_and_dropped() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q('create database shop'); fails(1007, 'create database shop'); q('create database if not exists shop')
q('use shop')
q("""create table p (id bigint unsigned not null auto_increment, name varchar(30) not null default 'x', price decimal(6,2),
     made timestamp default current_timestamp, primary key (id), key by_name (name)) engine=innodb comment 'things'""")
codes = [w[1] for w in q('show warnings')]
assert 1266 in codes and 1235 in codes, codes
eq(q('show tables'), [('p',)])
eq(q('describe p')[0], ('id', 'bigint unsigned', 'NO', 'PRI', None, 'auto_increment'))
eq([r[3] for r in q('show columns from p')], ['PRI', 'MUL', '', ''])
create = q('show create table p')[0][1]
assert 'PRIMARY KEY (`id`)' in create and 'ENGINE=ndbcluster' in create, create
q('create table p2 like p')
eq(q('show create table p2')[0][1], create.replace('`p`', '`p2`'))
eq(len(q('show index from p')), 2)
eq(q("select table_name, engine from information_schema.tables where table_schema = 'shop' order by 1"),
   [('p', 'ndbcluster'), ('p2', 'ndbcluster')])
eq(q("select column_name, data_type from information_schema.columns where table_name = 'p' and ordinal_position = 2"),
   [('name', 'varchar')])
assert ('shop',) in q('show databases')
eq(q("show tables like 'p_'"), [('p2',)])
fails(1050, 'create table p (a int)')
fails(1235, 'create table u (a int primary key, b int unique)')
fails(1235, 'alter table p add column z int')
fails(1068, 'create table u (a int primary key, b int primary key)')
fails(1072, 'create table u (a int, primary key (b))')
fails(1067, 'create table u (a int not null default null)')
fails(1286, 'create table u (a int) engine=nonsense')
q('drop table p, p2'); fails(1051, 'drop table p'); q('drop table if exists p')
eq(q('show warnings')[0][1], 1051)
q('drop database shop'); fails(1008, 'drop database shop'); fails(1049, 'use shop'); fails(1046, 'select * from x')
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_drivers_ask_at_connect_is_answered() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
names = '''auto_increment_increment character_set_client character_set_connection character_set_results
character_set_server collation_server collation_connection init_connect interactive_timeout license lower_case_table_names
max_allowed_packet net_buffer_length net_write_timeout performance_schema query_cache_size query_cache_type sql_mode
system_time_zone time_zone transaction_isolation tx_isolation wait_timeout version version_comment'''.split()
row = q('select ' + ', '.join('@@session.' + n + ' as ' + n for n in names))[0]
eq(len(row), len(names))
assert row[-2].startswith('8.0'), row
for sql in ['set names utf8mb4', 'SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci', 'set @@session.autocommit = off',
            'set autocommit=1', "set sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'", "set time_zone='+02:00'",
            'set session transaction isolation level read committed', 'set sql_select_limit=default', 'rollback',
            'set character_set_results = null', 'set foreign_key_checks = 0, unique_checks = 0', 'set @a = 5']:
    q(sql)
eq(q('select @a, @a + 1, database(), connection_id() > 0'), [(5, 6, 'test', 1)])
eq(q('select user(), 1 + 1, null, "x"'), [('root@127.0.0.1', 2, None, 'x')])
fails(1193, 'set nonsense = 1'); fails(1193, 'select @@nonsense'); fails(1238, 'set version = 1')
eq(q("show variables like 'version'")[0][1], q('select version()')[0][0])
eq(q("show variables where variable_name = 'autocommit'"), [('autocommit', 'ON')])
for sql in ['show engines', 'show collation', 'show character set', 'show processlist', 'show status',
            'show table status', 'show full tables', 'show grants', 'show errors', 'show count(*) warnings']:
    q(sql)
q("prepare s from 'select ? + ?'"); q('set @x = 3, @y = 4'); eq(q('execute s using @x, @y'), [(7,)]); q('deallocate prepare s')
fails(1243, 'execute s')
for sql in ['', ';', 'select', 'selec 1', 'select * from', 'create table', "insert into t values ('", 'select 1 union select 2',
            'lock tables t read', 'call p()', 'load data local infile "x" into table t', 'select (select 1)']:
    try:
        cur.execute(sql); cur.fetchall()
    except pymysql.err.MySQLError as e:
        assert e.args[0] > 1000, e
eq(q('select 1'), [(1,)])
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cluster_the_node_answers_errors() {
    let server = TestServer::start(false).await;
    let script = r#"
import sys, pymysql
c = pymysql.connect(host='127.0.0.1', port=int(sys.argv[1]), user='root')
cur = c.cursor()
cur.execute('select 1 + 1'); assert cur.fetchone() == (2,)
for sql in ['show databases', 'select * from test.t', 'begin', 'insert into test.t values (1)', 'create database d']:
    try:
        cur.execute(sql); raise SystemExit('no error: ' + sql)
    except pymysql.err.MySQLError as e:
        assert e.args[0] == 157, (sql, e)
print('all good')
"#;
    let (ok, text) = run("/usr/bin/python3", vec!["-c".into(), script.into(), server.port.to_string()]).await;
    assert!(ok && text.contains("all good"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sysbench_runs_its_oltp_workloads() {
    let server = TestServer::start(true).await;
    for (workload, steps) in [
        ("oltp_insert", &["prepare", "run", "cleanup"][..]),
        ("oltp_point_select", &["prepare", "run", "cleanup"]),
        ("oltp_update_non_index", &["prepare", "run", "cleanup"]),
        ("oltp_delete", &["prepare", "run", "cleanup"]),
        ("oltp_read_write", &["prepare", "run", "cleanup"]),
    ] {
        for step in steps {
            let arguments = [
                workload.to_owned(),
                "--db-driver=mysql".to_owned(),
                "--mysql-host=127.0.0.1".to_owned(),
                format!("--mysql-port={}", server.port),
                "--mysql-user=root".to_owned(),
                "--mysql-db=test".to_owned(),
                "--table-size=200".to_owned(),
                "--threads=1".to_owned(),
                "--events=50".to_owned(),
                "--time=30".to_owned(),
                (*step).to_owned(),
            ];
            let (ok, text) = run("sysbench", arguments.to_vec()).await;
            assert!(ok && !text.contains("FATAL"), "{workload} {step}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mariadb_client_shows_tables() {
    let server = TestServer::start(true).await;
    let sql = "create table t (id int primary key, v varchar(10)); insert into t values (1,'a'),(2,'b'); \
               select * from t; update t set v='c' where id=2; select v from t where id=2";
    let arguments =
        ["--no-defaults", "-h127.0.0.1", &format!("-P{}", server.port), "-uroot", "test", "-t", "-e", sql];
    let (ok, text) = run("mariadb", arguments.iter().map(|&a| a.to_owned()).collect()).await;
    assert!(ok && text.contains("|  1 | a    |") && text.contains("| c    |"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_objects_take_what_their_row_has_left() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q("""create table t (id int primary key, a text, b mediumblob, c longtext, d tinytext, e varchar(20) default 'x')""")
big = 'z' * 29000
eq(affected('insert into t (id, a) values (1, %s)', (big,)), 1)
eq(affected('insert into t (id, b) values (2, _binary %s)', (bytes(range(250)) * 116,)), 1)
eq(affected("insert into t (id, a, b, c) values (3, repeat('a', 9990), repeat('b', 9990), repeat('c', 9990))"), 1)
eq(q('select a from t where id = 1'), [(big,)])
eq(q('select id, length(a), length(b), length(c) from t order by id'),
   [(1, 29000, None, None), (2, None, 29000, None), (3, 9990, 9990, 9990)])
eq(q('select b from t where b is not null and id = 2'), [(bytes(range(250)) * 116,)])
for sql in ["insert into t (id, a) values (4, repeat('x', 30000))", "insert into t (id, a) values (4, repeat('x', 29996))",
            "insert into t (id, a, c) values (4, repeat('x', 20000), repeat('y', 20000))",
            "insert ignore into t (id, c) values (4, repeat('x', 70000))", "update t set c = repeat('c', 10050) where id = 3",
            "update t set a = concat(a, a)", "replace into t (id, a) values (1, repeat('x', 30001))",
            "insert into t (id, a) values (1, '') on duplicate key update b = repeat('q', 1500)"]:
    text = fails(1118, sql)
    assert 'Row size too large' in text and '30000' in text, text
fails(1406, "insert into t (id, a) values (4, repeat('x', 65536))")
fails(1406, "insert into t (id, d) values (4, repeat('x', 256))")
eq(q('select id, length(a), length(b), length(c) from t order by id'),
   [(1, 29000, None, None), (2, None, 29000, None), (3, 9990, 9990, 9990)])
eq(affected("update t set a = '', c = concat(c, c) where id = 3"), 1)
eq(q('select c from t where id = 3'), [('c' * 19980,)])
q('begin'); q("update t set a = repeat('y', 29000) where id = 1"); q('rollback')
eq(q('select a from t where id = 1'), [(big,)])
fails(1118, 'create table u (a varchar(4000), b varchar(4000))')
fails(1118, 'create table u (a varchar(16000))')
fails(1074, 'create table u (a varchar(20000))')
q('create table u (a varchar(3700), b varchar(3700), c text, d blob)')
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_numbers_where_numbers_are_wanted() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q("create table t (id int primary key, e enum('small','medium','large'), s set('a','b','c'), n int)")
q("insert into t values (1,'large','a,c',3), (2,'small','b',1), (3,'medium','',2), (4,null,null,null)")
eq(q('select id, e+0, s+0, e-5, -e, e|8 from t order by id'),
   [(1, 3.0, 5.0, -2.0, -3.0, 11), (2, 1.0, 2.0, -4.0, -1.0, 9), (3, 2.0, 0.0, -3.0, -2.0, 10), (4, None, None, None, None, None)])
eq(q('select id from t order by e, id'), [(4,), (2,), (3,), (1,)])
eq(q('select e from t order by e desc'), [('large',), ('medium',), ('small',), (None,)])
eq(q('select e as x from t where e is not null order by x'), [('small',), ('medium',), ('large',)])
eq(q('select e from t where e is not null order by 1'), [('small',), ('medium',), ('large',)])
eq(q('select id from t order by s, id'), [(4,), (3,), (2,), (1,)])
eq(q("select id from t where e = 3"), [(1,)])
eq(q("select id from t where e > 1 order by id"), [(1,), (3,)])
eq(q("select id from t where e in (1, 'large') order by id"), [(1,), (2,)])
eq(q("select id from t where e not in (1, 2) order by id"), [(1,)])
eq(q("select id from t where e between 2 and 3 order by id"), [(1,), (3,)])
eq(q("select id from t where e = 'MEDIUM'"), [(3,)])
eq(q("select id from t where e = n order by id"), [(1,), (2,), (3,)])
eq(q("select id from t where s & 4"), [(1,)])
eq(q("select id from t where s order by id"), [(1,), (2,)])
eq(q("select id from t where not s"), [(3,)])
eq(q("select sum(e), avg(e), sum(s), bit_or(s), max(e), min(e), count(e) from t"), [(6.0, 2.0, 7.0, 7, 'small', 'large', 3)])
eq(q("select group_concat(e order by e) from t"), [('small,medium,large',)])
eq(q("select cast(e as unsigned), cast(e as char), concat(e), abs(e), round(e), if(e, 'y', 'n') from t where id = 1"),
   [(3, 'large', 'large', 3.0, 3.0, 'y')])
eq(q("select greatest(e, 'a'), least(e, 'zz'), crc32(e) = crc32('large') from t where id = 1"), [('large', 'large', 1)])
eq(q("select case e when 1 then 'one' when 3 then 'three' end from t where id = 1"), [('three',)])
q("prepare p from 'select id from t where e = ?'"); q('set @n = 2, @s = "large"')
eq(q('execute p using @n'), [(3,)]); eq(q('execute p using @s'), [(1,)])
eq(q("select e, count(*) from t group by e order by e"), [(None, 1), ('small', 1), ('medium', 1), ('large', 1)])
affected('update t set n = e + 10 where id < 4')
eq(q('select n from t order by id'), [(13,), (11,), (12,), (None,)])
affected('delete from t order by e desc limit 1')
eq(q('select id from t order by id'), [(2,), (3,), (4,)])
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_full_group_by_asks_for_one_value_per_group() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
q('create table c (id int primary key, name varchar(10), city varchar(10), zip int)')
q('create table o (id int, line int, c_id int, n int, primary key (id, line))')
q("insert into c values (1,'a','x',5), (2,'b','x',6), (3,'c','y',7)")
q("insert into o values (1,1,1,10), (1,2,1,20), (2,1,2,30)")
ok = '''select city, count(*) from c group by city
select upper(city), count(*) from c group by city
select id, name, city, count(*) from c group by id
select c.id, c.name, sum(o.n) from c join o on o.c_id = c.id group by c.id
select c.name, sum(o.n) from c join o on o.c_id = c.id group by o.c_id
select c.name, sum(o.n) from c left join o on o.c_id = c.id group by c.id
select o.id, o.line, c.name from o left join c on c.id = o.c_id group by o.id, o.line
select o.id, o.line, o.n, count(*) from o group by o.line, o.id
select id, n, count(*) from o where line = 1 group by id
select any_value(name), city from c group by city
select city, zip from c where zip = 5 group by city
select name, count(*) from c where id = 1
select id + 1, count(*) from c group by id + 1
select (zip % 2) * 2, count(*) from c group by zip % 2
select zip % 2 as odd, count(*) from c group by odd having odd = 1 order by odd
select city, count(*) as k from c group by city having k > 1 order by max(name)
select count(*) from c having count(*) > 1
select 1, now() > '2000-01-01', count(*) from c
select distinct city, name from c order by name
select distinct city, name from c order by upper(name)
select max(name) from c group by city order by city'''
for sql in ok.split('\n'):
    q(sql)
bad = [(1055, 'select name, city from c group by city'), (1055, 'select city, count(*) from c group by city order by name'),
       (1055, 'select city, count(*) from c group by city having zip > 1'), (1055, 'select o.n from o group by id'),
       (1055, 'select name, count(*) from c group by upper(city)'), (1055, 'select upper(name) from c group by city'),
       (1055, 'select o.n from c left join o on o.c_id = c.id group by c.id'), (1055, 'select * from c group by city'),
       (1140, 'select name, count(*) from c'), (1140, 'select count(*) from c order by name'), (1140, 'select max(id) + zip from c'),
       (3065, 'select distinct city from c order by name')]
for code, sql in bad:
    text = fails(code, sql)
    assert 'only_full_group_by' in text or code == 3065, text
text = fails(1055, 'select city, name from c group by city')
assert "'test.c.name'" in text and '#2 of SELECT list' in text, text
q("set sql_mode = 'STRICT_TRANS_TABLES'")
for code, sql in bad:
    q(sql)
"#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_take_values_as_mysql_takes_them() {
    let server = TestServer::start(true).await;
    python(
        &server,
        r#"
def stored(ty, value):
    q('drop table if exists t'); q('create table t (id int primary key, v %s)' % ty)
    q('insert into t values (1, %s)' % value)
    codes = sorted(w[1] for w in q('show warnings'))
    return q("select concat(v) from t")[0][0], codes
def refused(code, ty, value):
    q('drop table if exists t'); q('create table t (id int primary key, v %s)' % ty)
    fails(code, 'insert into t values (1, %s)' % value)
eq(stored('int', "b'101'"), ('5', [])); eq(stored('bigint', "x'0102'"), ('258', [])); eq(stored('decimal(6,2)', "0x1F"), ('31.00', []))
eq(stored('varchar(5)', "0x4142"), ('AB', [])); eq(stored('char(5)', "'abc    '"), ('abc', []))
eq(stored('varchar(5)', "'abc    '"), ('abc  ', [1265]))
eq(stored('time(2)', '1.5'), ('00:00:01.50', [])); eq(stored('time(2)', '-0.5'), ('-00:00:00.50', [])); eq(stored('time', '10/4'), ('00:00:03', []))
eq(stored("enum('a','b','c')", '1.9'), ('a', [])); eq(stored("set('x','y')", '2.9'), ('y', []))
now = q('select current_date()')[0][0].isoformat()
eq(stored('datetime', "time'10:20:30'"), (now + ' 10:20:30', [])); eq(stored('date', "time'10:20:30'")[0], now)
refused(1264, 'tinyint', "'2024-02-29'"); refused(1265, 'smallint', "'2024-02-29'"); refused(1366, 'int', "'abc'")
refused(1292, 'time', "'2024-05-06'"); refused(1292, 'time', "'12abc'"); refused(1292, 'date', "'2024-02-29x'"); refused(1292, 'date', "'abc'")
refused(1367, 'double', '1e400')
q("set sql_mode = ''")
eq(stored('tinyint', "'2024-02-29'"), ('127', [1264])); eq(stored('date', "'abc'"), ('0000-00-00', [1265]))
eq(stored('time', "'12abc'"), ('00:00:12', [1265])); eq(stored('time', "'900:00:00'"), ('838:59:59', [1264]))
"#,
    )
    .await;
}
