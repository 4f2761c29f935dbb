//! The mariadb client: schema changes, writes, reads, errors, transactions, SHOW.

use tests::{Sql, SqlFailure, shared};

fn grid(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

#[track_caller]
fn assert_fails(sql: &Sql, statement: &str, code: u16, sqlstate: &str, message: &str) {
    let expected = SqlFailure { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() };
    assert_eq!(sql.fails(statement), expected, "{statement}");
}

#[test]
fn rows_are_written_read_changed_and_deleted() {
    let sql = shared().fresh_database("story_dml");
    sql.rows(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, name VARCHAR(20), amount DECIMAL(8,2)) ENGINE=NDB",
    );
    sql.rows("INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', 2.25), (3, NULL, NULL)");
    sql.rows("INSERT INTO t (name, id) VALUES ('four', 4)");
    assert_eq!(
        sql.rows("SELECT * FROM t ORDER BY id"),
        grid(&[&["1", "one", "1.50"], &["2", "two", "2.25"], &["3", "NULL", "NULL"], &["4", "four", "NULL"]])
    );
    assert_eq!(sql.rows("SELECT name FROM t WHERE id = 2"), grid(&[&["two"]]));
    assert_eq!(
        sql.rows("SELECT id FROM t WHERE amount > 1.5 OR name IS NULL ORDER BY id DESC"),
        grid(&[&["3"], &["2"]])
    );
    assert_eq!(sql.rows("SELECT id FROM t ORDER BY id LIMIT 1, 2"), grid(&[&["2"], &["3"]]));
    assert_eq!(
        sql.rows("SELECT COUNT(*), COUNT(amount), SUM(amount), MIN(id), MAX(name), AVG(id) FROM t"),
        grid(&[&["4", "2", "3.75", "1", "two", "2.5000"]])
    );
    assert_eq!(
        sql.rows("UPDATE t SET amount = amount * 2, name = 'TWO' WHERE id = 2; SELECT ROW_COUNT()"),
        grid(&[&["1"]])
    );
    assert_eq!(sql.rows("UPDATE t SET name = 'TWO' WHERE id = 2; SELECT ROW_COUNT()"), grid(&[&["0"]]));
    assert_eq!(sql.rows("SELECT * FROM t WHERE name = 'two'"), grid(&[&["2", "TWO", "4.50"]]));
    assert_eq!(sql.rows("DELETE FROM t WHERE id IN (1, 3, 99); SELECT ROW_COUNT()"), grid(&[&["2"]]));
    assert_eq!(sql.rows("SELECT id FROM t ORDER BY id"), grid(&[&["2"], &["4"]]));
    sql.rows("TRUNCATE TABLE t");
    assert_eq!(sql.value("SELECT COUNT(*) FROM t"), "0");
    sql.rows("DROP TABLE t");
    assert_eq!(sql.rows("SHOW TABLES"), grid(&[]));
}

#[test]
fn keys_of_several_columns_and_strings_find_their_rows() {
    let sql = shared().fresh_database("story_keys");
    sql.rows(
        "CREATE TABLE k (a VARCHAR(10) NOT NULL, b BIGINT UNSIGNED NOT NULL, c CHAR(5), PRIMARY KEY (a, b)) \
         DEFAULT CHARSET=utf8mb4",
    );
    sql.rows("INSERT INTO k VALUES ('Straße', 1, 'x'), ('b', 18446744073709551615, 'y'), ('b', 0, 'z')");
    assert_eq!(sql.rows("SELECT c FROM k WHERE a = 'STRASSE' AND b = 1"), grid(&[&["x"]]));
    assert_eq!(sql.rows("SELECT c FROM k WHERE a = 'B' AND b = 18446744073709551615"), grid(&[&["y"]]));
    assert_eq!(sql.rows("SELECT c FROM k WHERE a = 'b' ORDER BY b"), grid(&[&["z"], &["y"]]));
    let failure = sql.fails("INSERT INTO k VALUES ('strasse', 1, 'again')");
    assert_eq!((failure.code, failure.sqlstate.as_str()), (1062, "23000"));
    assert_eq!(sql.value("SELECT COUNT(*) FROM k"), "3");
}

#[test]
fn auto_increment_counts_and_reports() {
    let sql = shared().fresh_database("story_auto");
    sql.rows("CREATE TABLE a (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT DEFAULT 7)");
    assert_eq!(sql.rows("INSERT INTO a (v) VALUES (10), (20); SELECT LAST_INSERT_ID()"), grid(&[&["1"]]));
    sql.rows("INSERT INTO a VALUES (100, 30)");
    sql.rows("INSERT INTO a () VALUES ()");
    let rows = sql.rows("SELECT id, v FROM a ORDER BY id");
    assert_eq!(rows[..3], grid(&[&["1", "10"], &["2", "20"], &["100", "30"]]));
    let last: i64 = rows[3][0].parse().unwrap();
    assert!(last > 100 && rows[3][1] == "7", "{rows:?}");
}

#[test]
fn errors_have_mysqls_numbers_classes_and_words() {
    let sql = shared().fresh_database("story_errors");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(3) NOT NULL, n TINYINT)");
    sql.rows("INSERT INTO t VALUES (1, 'a', 1)");
    assert_fails(&sql, "SELECT * FROM missing", 1146, "42S02", "Table 'story_errors.missing' doesn't exist");
    assert_fails(&sql, "SELECT nope FROM t", 1054, "42S22", "Unknown column 'nope' in 'field list'");
    assert_fails(&sql, "USE nowhere", 1049, "42000", "Unknown database 'nowhere'");
    assert_fails(
        &sql,
        "INSERT INTO t VALUES (1, 'b', 2)",
        1062,
        "23000",
        "Duplicate entry '1' for key 't.PRIMARY'",
    );
    assert_fails(&sql, "INSERT INTO t VALUES (2, NULL, 2)", 1048, "23000", "Column 'v' cannot be null");
    assert_fails(
        &sql,
        "INSERT INTO t VALUES (2, 'long', 2)",
        1406,
        "22001",
        "Data too long for column 'v' at row 1",
    );
    assert_fails(
        &sql,
        "INSERT INTO t VALUES (2, 'b', 200)",
        1264,
        "22003",
        "Out of range value for column 'n' at row 1",
    );
    assert_fails(
        &sql,
        "INSERT INTO t VALUES ('x', 'b', 2)",
        1366,
        "HY000",
        "Incorrect integer value: 'x' for column 'id' at row 1",
    );
    assert_fails(
        &sql,
        "INSERT INTO t VALUES (2, 'b')",
        1136,
        "21S01",
        "Column count doesn't match value count at row 1",
    );
    assert_fails(
        &sql,
        "INSERT INTO t (id) VALUES (2)",
        1364,
        "HY000",
        "Field 'v' doesn't have a default value",
    );
    assert_fails(&sql, "CREATE TABLE t (id INT PRIMARY KEY)", 1050, "42S01", "Table 't' already exists");
    assert_fails(&sql, "DROP TABLE missing", 1051, "42S02", "Unknown table 'story_errors.missing'");
    assert_fails(
        &sql,
        "CREATE DATABASE story_errors",
        1007,
        "HY000",
        "Can't create database 'story_errors'; database exists",
    );
    assert_fails(
        &sql,
        "DROP DATABASE nowhere",
        1008,
        "HY000",
        "Can't drop database 'nowhere'; database doesn't exist",
    );
    assert_eq!(sql.rows("SELECT * FROM t"), grid(&[&["1", "a", "1"]]), "a failed statement writes nothing");
}

#[test]
fn bad_statements_say_where_and_why() {
    let sql = shared();
    let failure = sql.fails("SELEC 1");
    assert_eq!((failure.code, failure.sqlstate.as_str()), (1064, "42000"));
    assert!(failure.message.ends_with("near 'SELEC 1' at line 1"), "{failure:?}");
    let failure = sql.fails("SELECT 9223372036854775807 + 1");
    assert_eq!((failure.code, failure.sqlstate.as_str()), (1690, "22003"));
}

#[test]
fn transactions_commit_roll_back_and_hide_their_writes() {
    let sql = shared().fresh_database("story_trx");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10), (2, 20)");
    let (mut writer, mut reader) = (sql.session(), sql.session());
    writer.rows(
        "BEGIN; UPDATE t SET v = 11 WHERE id = 1; INSERT INTO t VALUES (3, 30); DELETE FROM t WHERE id = 2",
    );
    assert_eq!(writer.rows("SELECT * FROM t ORDER BY id"), grid(&[&["1", "11"], &["3", "30"]]));
    assert_eq!(reader.rows("SELECT * FROM t ORDER BY id"), grid(&[&["1", "10"], &["2", "20"]]));
    writer.rows("ROLLBACK");
    assert_eq!(writer.rows("SELECT * FROM t ORDER BY id"), grid(&[&["1", "10"], &["2", "20"]]));
    writer.rows("START TRANSACTION; UPDATE t SET v = v + 1; COMMIT");
    assert_eq!(reader.rows("SELECT * FROM t ORDER BY id"), grid(&[&["1", "11"], &["2", "21"]]));
    writer.rows("SET autocommit = 0; UPDATE t SET v = 0 WHERE id = 1");
    assert_eq!(reader.rows("SELECT v FROM t WHERE id = 1"), grid(&[&["11"]]));
    writer.rows("COMMIT");
    assert_eq!(reader.rows("SELECT v FROM t WHERE id = 1"), grid(&[&["0"]]));
}

#[test]
fn a_failed_statement_keeps_the_transaction() {
    let sql = shared().fresh_database("story_stmt");
    sql.rows("CREATE TABLE t (id INT NOT NULL PRIMARY KEY); INSERT INTO t VALUES (5)");
    let mut session = sql.session();
    session.rows("BEGIN; INSERT INTO t VALUES (1)");
    // The second row is a duplicate: nothing of the statement stays, the transaction does.
    session.rows("INSERT INTO t VALUES (2), (5)");
    assert_eq!(session.rows("SELECT id FROM t ORDER BY id"), grid(&[&["1"], &["5"]]));
    session.rows("COMMIT");
    assert_eq!(sql.rows("SELECT id FROM t ORDER BY id"), grid(&[&["1"], &["5"]]));
}

#[test]
fn show_tells_the_schema() {
    let sql = shared().fresh_database("story_show");
    sql.rows(
        "CREATE TABLE t (id INT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(20) DEFAULT 'x', d DATETIME(3), \
         PRIMARY KEY (id), KEY name_key (name)) ENGINE=NDBCLUSTER",
    );
    assert!(sql.rows("SHOW DATABASES").contains(&vec!["story_show".to_owned()]));
    assert_eq!(sql.rows("SHOW TABLES"), grid(&[&["t"]]));
    assert_eq!(
        sql.rows("SHOW COLUMNS FROM t"),
        grid(&[
            &["id", "int unsigned", "NO", "PRI", "NULL", "auto_increment"],
            &["name", "varchar(20)", "YES", "MUL", "x", ""],
            &["d", "datetime(3)", "YES", "", "NULL", ""],
        ])
    );
    let create = sql.rows("SHOW CREATE TABLE t");
    for piece in [
        "CREATE TABLE `t`",
        "`id` int unsigned NOT NULL AUTO_INCREMENT",
        "PRIMARY KEY (`id`)",
        "`name` varchar(20) DEFAULT 'x'",
    ] {
        assert!(create[0][1].contains(piece), "{piece} in {create:?}");
    }
    let engines = sql.rows("SHOW ENGINES");
    assert!(
        engines.iter().any(|row| row[0].eq_ignore_ascii_case("ndbcluster") && row[1] == "DEFAULT"),
        "{engines:?}"
    );
    assert_eq!(sql.rows("SHOW VARIABLES LIKE 'autocommit'"), grid(&[&["autocommit", "ON"]]));
    let warnings = sql.rows("SET sql_mode = ''; CREATE TABLE w (n TINYINT, id INT PRIMARY KEY); INSERT INTO w VALUES (300, 1); SHOW WARNINGS");
    assert_eq!(warnings, grid(&[&["Warning", "1264", "Out of range value for column 'n' at row 1"]]));
    assert_eq!(sql.value("SELECT n FROM w"), "127");
}

#[test]
fn expressions_follow_mysqls_rules() {
    let sql = shared();
    for (expression, value) in [
        ("7 / 2", "3.5000"),
        ("7 DIV 2", "3"),
        ("-7 % 2", "-1"),
        ("1 / 0", "NULL"),
        ("'1' + '2abc'", "3"),
        ("1 = '1abc'", "1"),
        ("'a' = 'A'", "1"),
        ("NULL <=> NULL", "1"),
        ("NULL = NULL", "NULL"),
        ("1/3*3", "1.0000"),
        ("0.1 + 0.2", "0.3"),
        ("1e20", "1e20"),
        ("CONCAT('a', NULL)", "NULL"),
        ("'abc' LIKE 'A_c'", "1"),
        ("2 BETWEEN 1 AND 3", "1"),
        ("5 IN (1, 2, NULL)", "NULL"),
        ("~0", "18446744073709551615"),
        ("IF(0, 'a', 'b')", "b"),
        ("CAST('12.6' AS SIGNED)", "12"),
        ("CAST(1.005 AS DECIMAL(5,2))", "1.01"),
    ] {
        assert_eq!(sql.value(&format!("SELECT {expression}")), value, "{expression}");
    }
}
