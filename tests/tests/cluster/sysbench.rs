//! sysbench: its tables filled, read, changed and emptied by several threads, and the contents checked by
//! SQL.

use std::process::Command;
use std::time::Duration;
use tests::{Sql, run, shared};

const ROWS: u64 = 500;

fn sysbench(sql: &Sql, database: &str, workload: &str, step: &str) -> String {
    let mut command = Command::new("sysbench");
    command.args([
        workload,
        "--db-driver=mysql",
        "--mysql-host=127.0.0.1",
        "--mysql-user=root",
        "--mysql-ssl=off",
        "--mysql-storage-engine=ndbcluster",
        "--tables=2",
        "--threads=4",
        "--time=60",
        "--skip-trx=on",
    ]);
    command.arg(format!("--mysql-port={}", sql.port()));
    command.arg(format!("--mysql-db={database}"));
    command.arg(format!("--table-size={ROWS}"));
    command.arg(format!("--events={EVENTS}"));
    command.arg(step);
    run(&mut command, Duration::from_secs(120)).expect_success(&format!("sysbench {workload} {step}"))
}

/// Statements of one run over all threads.
const EVENTS: u64 = 1000;

/// The number behind a label of sysbench's report.
fn reported(report: &str, label: &str) -> u64 {
    let line = report.lines().find(|line| line.trim_start().starts_with(label));
    let digits = line.and_then(|line| line.split(':').nth(1)?.split_whitespace().next()?.parse().ok());
    digits.unwrap_or_else(|| panic!("no {label} in {report}"))
}

/// Prepares the tables, runs the workload, and returns what it reported.
fn story(sql: &Sql, database: &str, workload: &str) -> String {
    sql.fresh_database(database);
    sysbench(sql, database, workload, "prepare");
    for table in ["sbtest1", "sbtest2"] {
        let rows = sql.rows(&format!("SELECT COUNT(*), MIN(id), MAX(id), SUM(id) FROM {database}.{table}"));
        let sum = ROWS * (ROWS + 1) / 2;
        assert_eq!(rows, [[ROWS.to_string(), "1".to_owned(), ROWS.to_string(), sum.to_string()]], "{table}");
    }
    let report = sysbench(sql, database, workload, "run");
    assert_eq!(reported(&report, "ignored errors"), 0, "{report}");
    assert_eq!(reported(&report, "transactions"), EVENTS, "{report}");
    report
}

fn total(sql: &Sql, database: &str, expression: &str) -> u64 {
    ["sbtest1", "sbtest2"]
        .map(|table| {
            sql.value(&format!("SELECT {expression} FROM {database}.{table}")).parse::<u64>().unwrap()
        })
        .iter()
        .sum()
}

#[test]
fn oltp_point_select_reads_and_changes_nothing() {
    let (sql, db) = (shared(), "story_sb_select");
    let report = story(&sql, db, "oltp_point_select");
    assert_eq!(reported(&report, "read"), EVENTS);
    assert_eq!(total(&sql, db, "COUNT(*)"), 2 * ROWS);
}

#[test]
fn oltp_insert_adds_its_rows() {
    let (sql, db) = (shared(), "story_sb_insert");
    story(&sql, db, "oltp_insert");
    assert_eq!(total(&sql, db, "COUNT(*)"), 2 * ROWS + EVENTS);
    let lengths =
        sql.rows(&format!("SELECT MIN(LENGTH(c)), MAX(LENGTH(c)), MAX(LENGTH(pad)) FROM {db}.sbtest1"));
    assert_eq!(lengths, [["119", "119", "59"]]);
}

#[test]
fn oltp_update_non_index_changes_only_c() {
    let (sql, db) = (shared(), "story_sb_update");
    story(&sql, db, "oltp_update_non_index");
    let sum = 2 * (ROWS * (ROWS + 1) / 2);
    assert_eq!((total(&sql, db, "COUNT(*)"), total(&sql, db, "SUM(id)")), (2 * ROWS, sum));
    let lengths =
        sql.rows(&format!("SELECT MIN(LENGTH(c)), MAX(LENGTH(c)), MIN(LENGTH(pad)) FROM {db}.sbtest1"));
    assert_eq!(lengths, [["119", "119", "59"]]);
}

#[test]
fn oltp_delete_leaves_a_part_of_the_rows() {
    let (sql, db) = (shared(), "story_sb_delete");
    let report = story(&sql, db, "oltp_delete");
    let deleted = reported(&report, "write");
    let left = total(&sql, db, "COUNT(*)");
    // Rows are picked at random, some twice; sysbench counts only statements that found one.
    assert_eq!(left, 2 * ROWS - deleted, "{report}");
    assert!(deleted > 0 && left > 0, "{report}");
}
