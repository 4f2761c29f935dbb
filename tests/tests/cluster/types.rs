//! Every column type: what goes in comes out, through the client, on both replicas.

use tests::shared;

/// Type, literal, and the text that must come back.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("TINYINT", "-128", "-128"),
    ("TINYINT UNSIGNED", "255", "255"),
    ("SMALLINT", "-32768", "-32768"),
    ("MEDIUMINT", "8388607", "8388607"),
    ("MEDIUMINT UNSIGNED", "16777215", "16777215"),
    ("INT", "-2147483648", "-2147483648"),
    ("INT UNSIGNED", "4294967295", "4294967295"),
    ("BIGINT", "-9223372036854775808", "-9223372036854775808"),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
    ("BOOL", "TRUE", "1"),
    ("DECIMAL(10,2)", "-12345678.905", "-12345678.91"),
    (
        "DECIMAL(65,30)",
        "'12345678901234567890123456789012345.123456789012345678901234567891'",
        "12345678901234567890123456789012345.123456789012345678901234567891",
    ),
    ("DECIMAL(5)", "12.5", "13"),
    ("FLOAT", "0.1", "0.1"),
    ("FLOAT", "123456789", "123457000"),
    ("DOUBLE", "1.7976931348623157e308", "1.7976931348623157e308"),
    ("DOUBLE", "0.1", "0.1"),
    ("CHAR(5)", "'ab  '", "ab"),
    ("VARCHAR(10)", "'ab  '", "ab  "),
    ("VARCHAR(10)", "'grüße 😀'", "grüße 😀"),
    ("VARCHAR(10) CHARACTER SET latin1", "'grüße'", "grüße"),
    ("VARBINARY(10)", "x'616200'", "ab\\0"),
    ("BINARY(4)", "'ab'", "ab\\0\\0"),
    ("TEXT", "REPEAT('x', 1000)", "x*1000"),
    ("TINYTEXT", "'t'", "t"),
    ("BLOB", "'a\\tb'", "a\\tb"),
    ("DATE", "'2020-02-29'", "2020-02-29"),
    ("DATE", "'9999-12-31'", "9999-12-31"),
    ("DATETIME", "'2020-02-29 23:59:59'", "2020-02-29 23:59:59"),
    ("DATETIME(6)", "'1000-01-01 00:00:00.000001'", "1000-01-01 00:00:00.000001"),
    ("DATETIME(3)", "'2020-01-01 00:00:00.9996'", "2020-01-01 00:00:01.000"),
    ("TIMESTAMP", "'2020-07-01 12:00:00'", "2020-07-01 12:00:00"),
    ("TIMESTAMP(6)", "'2038-01-01 00:00:00.123456'", "2038-01-01 00:00:00.123456"),
    ("TIME", "'-838:59:59'", "-838:59:59"),
    ("TIME(2)", "'1:2:3.456'", "01:02:03.46"),
    ("YEAR", "2155", "2155"),
    ("YEAR", "'69'", "2069"),
    ("ENUM('small','large')", "'LARGE'", "large"),
    ("SET('a','b','c')", "'c,a'", "a,c"),
];

#[test]
fn every_type_comes_back_as_it_went_in() {
    let sql = shared().fresh_database("story_types");
    for (index, (sql_type, literal, text)) in COLUMNS.iter().enumerate() {
        let table = format!("t{index}");
        sql.rows(&format!("CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v {sql_type})"));
        sql.rows(&format!("INSERT INTO {table} VALUES (1, {literal}), (2, NULL)"));
        let expected = match text.split_once("x*") {
            Some(("", times)) => "x".repeat(times.parse().unwrap()),
            _ => (*text).to_owned(),
        };
        // Several reads, so that both replicas get to answer; as an expression, so that the key lookup and
        // the scan are both taken.
        for _ in 0..4 {
            let by_key = sql.rows(&format!("SELECT v FROM {table} WHERE id = 1"));
            assert_eq!(by_key, [[expected.clone()]], "{sql_type} {literal}");
        }
        let scanned = sql.rows(&format!("SELECT id FROM {table} WHERE v IS NULL"));
        assert_eq!(scanned, [["2"]], "{sql_type}");
        sql.rows(&format!("DROP TABLE {table}"));
    }
}

#[test]
fn defaults_fill_what_an_insert_leaves_out() {
    let sql = shared().fresh_database("story_defaults");
    sql.rows(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(5) NOT NULL DEFAULT 'x', \
         c DECIMAL(4,2) DEFAULT 1.5, d DATETIME DEFAULT '2020-01-01 00:00:00', e DATE, \
         f TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)",
    );
    sql.rows("INSERT INTO t (id) VALUES (1); INSERT INTO t (id, a, b) VALUES (2, DEFAULT, 'y')");
    let rows = sql.rows("SELECT id, a, b, c, d, e, f > '2020-01-01' FROM t ORDER BY id");
    let row = |id: &str, b: &str| -> Vec<String> {
        [id, "5", b, "1.50", "2020-01-01 00:00:00", "NULL", "1"].map(str::to_owned).to_vec()
    };
    assert_eq!(rows, [row("1", "x"), row("2", "y")]);
}
