//! The clients people really use against the toy session. A client that is not installed fails its test by
//! name.

use std::process::Command;

use super::toy::ToyServer;

async fn run(program: &'static str, arguments: Vec<String>) -> (bool, String) {
    tokio::task::spawn_blocking(move || {
        let output = Command::new(program)
            .args(&arguments)
            .env_remove("MYSQL_HOST")
            .output()
            .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), text)
    })
    .await
    .unwrap()
}

async fn mariadb(port: u16, arguments: &[&str]) -> (bool, String) {
    let mut all = vec!["--no-defaults".to_owned(), "-h127.0.0.1".to_owned(), format!("-P{port}")];
    all.extend(arguments.iter().map(|&a| a.to_owned()));
    run("mariadb", all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mariadb_client_logs_in_every_way() {
    let server = ToyServer::start().await;
    let port = server.port;
    let query = ["-NBe", "select user()"];
    let (ok, text) = mariadb(port, &[&["-uroot"][..], &query].concat()).await;
    assert!(ok && text.contains("root@127.0.0.1"), "{text}");
    let (ok, text) = mariadb(port, &[&["-unative", "-psecret"][..], &query].concat()).await;
    assert!(ok && text.contains("native@127.0.0.1"), "{text}");
    let (ok, text) = mariadb(port, &[&["-unative", "-pwrong"][..], &query].concat()).await;
    assert!(!ok && text.contains("1045"), "{text}");
    let (ok, text) = mariadb(port, &[&["-usha2", "-psecret", "--skip-ssl"][..], &query].concat()).await;
    assert!(!ok && text.contains("TLS"), "{text}");
    let (ok, text) = mariadb(port, &[&["-usha2", "-pwrong", "--ssl"][..], &query].concat()).await;
    assert!(!ok && text.contains("1045"), "{text}");
    let (ok, text) = mariadb(port, &[&["-usha2", "-psecret", "--ssl"][..], &query].concat()).await;
    assert!(ok && text.contains("sha2@127.0.0.1"), "full exchange over TLS: {text}");
    let (ok, text) = mariadb(port, &[&["-usha2", "-psecret", "--skip-ssl"][..], &query].concat()).await;
    assert!(ok && text.contains("sha2@127.0.0.1"), "fast exchange without TLS: {text}");
    let (ok, text) = mariadb(port, &["-uroot", "--ssl", "-NBe", "select tls()"]).await;
    assert!(ok && text.trim() == "1", "{text}");
    let (ok, text) = mariadb(port, &["-uroot", "-Dnowhere", "-e", "select 1"]).await;
    assert!(!ok && text.contains("1049"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mariadb_client_shows_rows_errors_and_metadata() {
    let server = ToyServer::start().await;
    let (ok, text) = mariadb(server.port, &["-uroot", "-e", "select 7; rows 3; bad"]).await;
    assert!(!ok && text.contains("ERROR 1064 (42000) at line 1"), "{text}");
    assert!(text.contains("7\n7\n"), "{text}");
    assert!(text.contains(&format!("2\t{}", "x".repeat(100))), "{text}");
    let (ok, text) = mariadb(server.port, &["-uroot", "-e", "select NULL"]).await;
    assert!(ok && text.contains("NULL\nNULL\n"), "{ok} {text}");
    let (ok, text) = mariadb(server.port, &["-uroot", "--column-type-info", "-t", "-e", "select 7"]).await;
    assert!(ok && text.contains("LONGLONG"), "{text}");
    let (ok, text) = mariadb(server.port, &["-uroot", "-vvv", "-e", "update t"]).await;
    assert!(ok && text.contains("Rows matched: 2  Changed: 1"), "{text}");
}

const PYMYSQL: &str = r#"
import sys, ssl, pymysql
port = int(sys.argv[1])
c = pymysql.connect(host='127.0.0.1', port=port, user='root')
cur = c.cursor()
cur.execute('select 12'); assert cur.fetchall() == ((12,),), 'int'
cur.execute('select NULL'); assert cur.fetchall() == ((None,),), 'null'
assert cur.description[0][0] == 'NULL'
try:
    cur.execute('nonsense'); raise SystemExit('no error')
except pymysql.err.ProgrammingError as e:
    assert e.args[0] == 1064, e
c.select_db('shop'); c.ping(); c.begin(); c.commit(); c.autocommit(True)
assert cur.execute('update t') == 1 and cur.lastrowid == 77
f = pymysql.connect(host='127.0.0.1', port=port, user='root', client_flag=pymysql.constants.CLIENT.FOUND_ROWS)
assert f.cursor().execute('update t') == 2, 'found rows'
f.close()
cur.execute('rows 50000'); assert len(cur.fetchall()) == 50000
cur = c.cursor(pymysql.cursors.SSCursor); cur.execute('rows 1000'); assert len(list(cur)) == 1000
c.close()
for user, options in [('native', {}), ('sha2', {'ssl': {'fake': True}}), ('sha2', {})]:
    c = pymysql.connect(host='127.0.0.1', port=port, user=user, password='secret', **options)
    cur = c.cursor(); cur.execute('select user()'); assert cur.fetchone() == (user + '@127.0.0.1',)
    c.close()
try:
    pymysql.connect(host='127.0.0.1', port=port, user='native', password='wrong'); raise SystemExit('no error')
except pymysql.err.OperationalError as e:
    assert e.args[0] == 1045, e
print('all good')
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pymysql_works_plain_and_over_tls() {
    let server = ToyServer::start().await;
    let arguments = vec!["-c".to_owned(), PYMYSQL.to_owned(), server.port.to_string()];
    let (ok, text) = run("/usr/bin/python3", arguments).await;
    assert!(ok && text.contains("all good"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sysbench_prepares_and_executes_with_several_threads() {
    let server = ToyServer::start().await;
    for ps_mode in ["auto", "disable"] {
        let arguments = [
            "oltp_point_select".to_owned(),
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={}", server.port),
            "--mysql-user=root".to_owned(),
            "--mysql-db=sbtest".to_owned(),
            format!("--db-ps-mode={ps_mode}"),
            "--threads=8".to_owned(),
            "--events=2000".to_owned(),
            "--time=20".to_owned(),
            "run".to_owned(),
        ];
        let (ok, text) = run("sysbench", arguments.to_vec()).await;
        assert!(ok && text.contains("queries:"), "{text}");
        assert!(!text.contains("FATAL"), "{text}");
    }
}
