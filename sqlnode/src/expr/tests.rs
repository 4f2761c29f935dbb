//! Expressions and their values: text in, text out, as a client would see it.
//!
//! The expected values are MySQL 8's. Most were observed on MariaDB 10.11, which shares them; where the two
//! differ, MySQL's manual decides, and the comment of the table says so.

use super::*;
use crate::parser::{ParseMode, parse_expr};
use crate::value::{Text, cast};
use std::cell::RefCell;

mod tables;

/// A session whose clock stands still: 2024-02-29 13:14:15.678901 UTC.
struct Fixed {
    zone: TimeZone,
    mode: SqlMode,
    var: RefCell<Value>,
}

const NOW: i64 = 1_709_212_455_678_901;

impl Fixed {
    fn new() -> Fixed {
        Fixed { zone: TimeZone::Utc, mode: SqlMode::default(), var: RefCell::new(Value::Null) }
    }
}

impl SessionFacts for Fixed {
    fn database(&self) -> Option<&str> {
        Some("test")
    }
    fn user(&self) -> &str {
        "root@localhost"
    }
    fn connection_id(&self) -> u64 {
        7
    }
    fn last_insert_id(&self) -> u64 {
        42
    }
    fn statement_micros(&self) -> i64 {
        NOW
    }
    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
    fn sql_mode(&self) -> SqlMode {
        self.mode
    }
    fn max_allowed_packet(&self) -> usize {
        1 << 20
    }
    fn user_var(&self, _name: &str) -> Value {
        self.var.borrow().clone()
    }
    fn set_user_var(&self, _name: &str, value: Value) -> Result<()> {
        *self.var.borrow_mut() = value;
        Ok(())
    }
}

fn scope() -> Scope {
    let column = |table: &str, name: &str, ty: SqlType| ScopeColumn {
        db: Some("test".into()),
        table: table.into(),
        name: name.into(),
        ty,
        nullable: true,
    };
    let text = |c| SqlType::varchar(20, c);
    Scope {
        columns: vec![
            column("t", "i", SqlType::BIGINT),
            column("t", "u", SqlType::BIGINT_UNSIGNED),
            column("t", "d", SqlType::decimal(10, 2)),
            column("t", "f", SqlType::DOUBLE),
            column("t", "s", text(Collation::UTF8MB4_0900_AI_CI)),
            column("t", "b", text(Collation::UTF8MB4_BIN)),
            column("t", "day", SqlType::Date),
            column("t", "at", SqlType::DateTime { fsp: 0 }),
            column("t", "n", SqlType::BIGINT),
            column("t2", "i", SqlType::BIGINT),
            column("t", "g", text(Collation::UTF8MB4_GENERAL_CI)),
        ],
    }
}

fn row() -> Vec<Value> {
    vec![
        Value::Int(5),
        Value::UInt(7),
        Value::Decimal(crate::value::Decimal::from_unscaled(1050, 2)),
        Value::Double(1.5),
        Value::text("Straße"),
        Value::Text(Text::new(b"abc", Collation::UTF8MB4_BIN)),
        Value::Date(Date::new(2024, 1, 31).unwrap()),
        Value::DateTime(DateTime::new(Date::new(2024, 1, 31).unwrap(), 10, 20, 30, 0, 0).unwrap()),
        Value::Null,
        Value::Int(6),
        Value::Text(Text::new(b"abc", Collation::UTF8MB4_GENERAL_CI)),
    ]
}

/// Binds and evaluates; the value as the text protocol shows it, its type, and the warnings' numbers.
fn run(sql: &str) -> Result<(String, SqlType, Vec<u16>)> {
    let facts = Fixed::new();
    let ast = parse_expr(sql.as_bytes(), ParseMode::default()).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let scope = scope();
    let bound = Binder::new(&scope, &facts, "field list").bind(&ast)?;
    let mut warnings = Warnings::new();
    let mut ctx = EvalContext {
        facts: &facts,
        params: &[],
        aggs: &[],
        new_row: &[],
        warnings: &mut warnings,
        writing: false,
    };
    let value = bound.eval_typed(&row(), &mut ctx)?;
    let mut out = Vec::new();
    if value.is_null() {
        out.extend_from_slice(b"NULL");
    } else {
        assert!(!matches!(bound.ty, SqlType::Null), "{sql}: a value without a type");
        cast::append_result_text(&value, &bound.ty, &mut out);
    }
    let numbers = warnings.iter().map(|w| w.error.code).collect();
    Ok((String::from_utf8_lossy(&out).into_owned(), bound.ty, numbers))
}

pub(super) fn check(table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (sql, expect) in table {
        match run(sql) {
            Ok((value, ..)) if value == *expect => {}
            Ok((value, ty, _)) => wrong.push(format!("{sql}: {value} ({ty}), not {expect}")),
            Err(e) => wrong.push(format!("{sql}: {e}, not {expect}")),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The number of the error that an expression ends with.
pub(super) fn fails(sql: &str) -> u16 {
    run(sql).expect_err(sql).code
}

#[test]
fn errors_have_mysql_numbers() {
    for (sql, code) in [
        ("nothing", 1054),
        ("t3.i", 1054),
        ("i", 1052),
        ("no_such_function(1)", 1305),
        ("f2.g(1)", 1305),
        ("concat()", 1582),
        ("left('a')", 1582),
        ("(1, 2)", 1241),
        ("(1, 2) = (1, 2, 3)", 1241),
        ("(1, 2) IN ((1, 2), 3)", 1241),
        ("sum(t.i)", 1111),
        ("9223372036854775807 + 1", 1690),
        ("- 9223372036854775808 - 1", 1690),
        ("exp(1000)", 1690),
        ("t.g = t.s", 1267),
        ("'a' COLLATE latin1_bin", 1253),
        ("'a' COLLATE nonsense", 1273),
        ("CONVERT('a' USING nonsense)", 1115),
        ("(SELECT 1)", 1235),
        ("DATE 'x'", 1525),
        ("benchmark(1, 1)", 1235),
    ] {
        let error = run(sql).expect_err(sql);
        assert_eq!(error.code, code, "{sql}: {error}");
    }
}

#[test]
fn warnings_are_collected() {
    for (sql, numbers) in [
        ("1 / 0", &[1365][..]),
        ("5 % 0", &[1365]),
        ("'1abc' + 1", &[1292]),
        ("CAST('12x' AS SIGNED)", &[1292]),
        ("CAST('x' AS DATE)", &[1292]),
        ("repeat('a', 10000000)", &[1301]),
        ("str_to_date('x', '%Y')", &[1411]),
        ("str_to_date('2020x', '%Y%m')", &[1411]),
        ("str_to_date('2020-01-01x', '%Y-%m-%d')", &[1292]),
        ("1 + 1", &[]),
    ] {
        assert_eq!(run(sql).unwrap().2, numbers, "{sql}");
    }
}

#[test]
fn corners_found_by_comparing_with_another_server() {
    check(&[
        ("COLLATION(HEX(UNHEX('41')))", "utf8mb4_0900_ai_ci"),
        ("COLLATION(TO_BASE64(UNHEX('41')))", "utf8mb4_0900_ai_ci"),
        ("MOD(5.345, 7/12.345)", "0.2417"),
        ("MOD(t.i, 3)", "2"),
        ("CAST(2147483647 AS TIME)", "NULL"),
        ("CAST(8385959 AS TIME)", "838:59:59"),
        ("CAST('2024-05-06' AS TIME)", "00:20:24"),
        ("CAST('2024-05-06 01:02:03' AS TIME)", "01:02:03"),
        ("CAST('1e3' AS TIME)", "NULL"),
        ("IF(t.i, MAKETIME(1, 2, 3), t.at)", "2024-02-29 01:02:03"),
        ("CASE WHEN t.i THEN MAKETIME(-1, 0, 0) ELSE t.at END", "2024-02-28 23:00:00"),
        ("COALESCE(NULL, TIME'10:00:00', t.at)", "2024-02-29 10:00:00"),
    ]);
    assert_eq!(fails("ROUND(9223372036854775807, -1)"), 1690);
    assert_eq!(fails("MOD(1)"), 1582);
}

#[test]
fn intervals_add_calendar_time() {
    check(&[
        ("'2018-12-31 23:59:59' + INTERVAL 1 SECOND", "2019-01-01 00:00:00"),
        ("'2018-01-31' + INTERVAL 1 MONTH", "2018-02-28"),
        ("'2020-02-29' + INTERVAL -1 YEAR", "2019-02-28"),
        ("'2020-01-01 00:00:00' + INTERVAL '1.5' SECOND", "2020-01-01 00:00:01.500000"),
        ("'2020-01-01' + INTERVAL '1-2' YEAR_MONTH", "2021-03-01"),
        ("'2020-01-01' + INTERVAL 2 QUARTER", "2020-07-01"),
        ("'2020-01-01' + INTERVAL 1 WEEK", "2020-01-08"),
        ("'9999-12-31' + INTERVAL 9223372036854775807 YEAR", "NULL"),
        ("'2020-01-01' + INTERVAL 9223372036854775807 MICROSECOND", "NULL"),
        ("'2020-01-01' - INTERVAL '99999999999999999999 1' DAY_HOUR", "NULL"),
        ("'2020-01-01' + INTERVAL '1 2 3 4 5 6' DAY_SECOND", "NULL"),
        ("STR_TO_DATE('2013', '%Y-%m-%d')", "NULL"),
        ("STR_TO_DATE('2013-05-01 junk', '%Y-%m-%d')", "2013-05-01"),
        ("STR_TO_DATE('9:30:17 PM 2020-1-2', '%r %Y-%m-%d')", "2020-01-02 21:30:17"),
        ("DATE_FORMAT('2009-10-04 22:23:00', '%X %V %x %v %U %u')", "2009 40 2009 40 40 40"),
        ("WEEK('2000-01-01', 2)", "52"),
    ]);
    let mut facts = Fixed::new();
    facts.mode = SqlMode::EMPTY;
    let scope = scope();
    let ast = parse_expr(b"STR_TO_DATE('2013', '%Y-%m-%d')", ParseMode::default()).unwrap();
    let bound = Binder::new(&scope, &facts, "field list").bind(&ast).unwrap();
    assert!(
        bound
            .as_const()
            .is_some_and(|v| cast::to_text(v, Collation::UTF8MB4_BIN).as_bytes() == b"2013-00-00")
    );
}

#[test]
fn types_of_results() {
    for (sql, ty) in [
        ("1 + 1", "bigint"),
        ("t.u + 1", "bigint unsigned"),
        ("t.d * 2", "decimal(29,2)"),
        ("t.d + 1.005", "decimal(12,3)"),
        ("t.i / 3", "decimal(23,4)"),
        ("t.f + 1", "double"),
        ("'1' + 1", "double"),
        ("concat(t.s, 'xy')", "varchar(22)"),
        ("t.day + INTERVAL 1 DAY", "date"),
        ("t.day + INTERVAL 1 HOUR", "datetime"),
        ("now(3)", "datetime(3)"),
        ("if(t.i = 1, t.i, t.d)", "decimal(21,2)"),
        ("coalesce(t.n, 'x')", "varchar(20)"),
        ("round(t.d, 1)", "decimal(10,1)"),
        ("ceil(t.d)", "bigint"),
        ("t.s LIKE 'a%'", "bigint"),
        ("CAST(t.i AS CHAR(3))", "varchar(3)"),
        ("CAST(t.s AS DECIMAL(5,1))", "decimal(5,1)"),
    ] {
        let facts = Fixed::new();
        let ast = parse_expr(sql.as_bytes(), ParseMode::default()).unwrap();
        let scope = scope();
        let bound = Binder::new(&scope, &facts, "field list").bind(&ast).unwrap();
        let shown = bound.ty.to_string();
        assert!(shown == ty || shown.starts_with(&format!("{ty} ")), "{sql}: {shown}, not {ty}");
    }
}

#[test]
fn constants_are_folded_and_fitted_to_columns() {
    let facts = Fixed::new();
    let scope = scope();
    let bind = |sql: &str| {
        let ast = parse_expr(sql.as_bytes(), ParseMode::default()).unwrap();
        Binder::new(&scope, &facts, "where clause").bind(&ast).unwrap()
    };
    assert_eq!(bind("1 + 2 * 3").as_const(), Some(&Value::Int(7)));
    assert!(bind("now()").as_const().is_none());
    assert!(bind("1 / 0").as_const().is_none(), "the warning belongs to the execution");
    let Node::Compare(CmpOp::Eq, column, constant, _) = bind("t.i = '12'").node else { panic!() };
    assert!(matches!(column.node, Node::Column(0)));
    assert_eq!(constant.as_const(), Some(&Value::Int(12)));
    let Node::Compare(_, _, constant, _) = bind("t.day >= '2024-01-31'").node else { panic!() };
    assert!(matches!(constant.as_const(), Some(Value::DateTime(_))));
    let mut columns = Vec::new();
    bind("t.i + t.u > 3 AND t.s LIKE 'x'").for_each_column(&mut |at| columns.push(at));
    assert_eq!(columns, [0, 1, 4]);
}

#[test]
fn parameters_and_variables() {
    let facts = Fixed::new();
    let scope = scope();
    let ast = parse_expr(b"? + 1 = 8 AND (@a := t.i + ?) = 7", ParseMode::default()).unwrap();
    let bound = Binder::new(&scope, &facts, "where clause").bind(&ast).unwrap();
    let mut warnings = Warnings::new();
    let params = [Value::text("7"), Value::Int(2)];
    let mut ctx = EvalContext {
        facts: &facts,
        params: &params,
        aggs: &[],
        new_row: &[],
        warnings: &mut warnings,
        writing: false,
    };
    assert_eq!(bound.truth(&row(), &mut ctx).unwrap(), Some(true));
    assert_eq!(*facts.var.borrow(), Value::Int(7));
}

fn aggregate(sql: &str, rows: &[Value]) -> String {
    let facts = Fixed::new();
    let scope = Scope {
        columns: vec![ScopeColumn {
            db: None,
            table: "t".into(),
            name: "x".into(),
            ty: match rows.iter().find(|v| !v.is_null()) {
                Some(Value::Decimal(_)) => SqlType::decimal(5, 1),
                Some(Value::Double(_)) => SqlType::DOUBLE,
                Some(Value::Text(_)) => SqlType::varchar(5, Collation::UTF8MB4_0900_AI_CI),
                _ => SqlType::int(crate::value::IntSize::Int),
            },
            nullable: true,
        }],
    };
    let ast = parse_expr(sql.as_bytes(), ParseMode::default()).unwrap();
    let mut binder = Binder::new(&scope, &facts, "field list");
    binder.allow_aggregates = true;
    let bound = binder.bind(&ast).unwrap();
    let mut warnings = Warnings::new();
    let mut ctx = EvalContext {
        facts: &facts,
        params: &[],
        aggs: &[],
        new_row: &[],
        warnings: &mut warnings,
        writing: false,
    };
    let mut results = Vec::new();
    for spec in &binder.aggregates {
        let mut accumulator = Accumulator::new(spec);
        for value in rows {
            accumulator.add(spec, std::slice::from_ref(value), &mut ctx).unwrap();
        }
        results.push(accumulator.finish(spec, &mut ctx).unwrap());
    }
    let mut ctx = EvalContext { aggs: &results, ..ctx };
    let value = bound.eval_typed(&[], &mut ctx).unwrap();
    let mut out = Vec::new();
    if value.is_null() {
        return "NULL".to_owned();
    }
    cast::append_result_text(&value, &bound.ty, &mut out);
    format!("{} {}", String::from_utf8(out).unwrap(), bound.ty.to_string().split(' ').next().unwrap())
}

#[test]
fn aggregates() {
    let ints: Vec<Value> = [3, 1, 2, 2].map(Value::Int).into_iter().chain([Value::Null]).collect();
    let texts = ["b", "a", "B"].map(Value::text);
    let doubles = [1.0, 2.0, 6.0].map(Value::Double);
    let decimals = [15, 25].map(|v| Value::Decimal(crate::value::Decimal::from_unscaled(v, 1)));
    for (sql, rows, expect) in [
        ("count(*)", &ints[..], "5 bigint"),
        ("count(x)", &ints, "4 bigint"),
        ("count(DISTINCT x)", &ints, "3 bigint"),
        ("sum(x)", &ints, "8 decimal(32,0)"),
        ("sum(DISTINCT x)", &ints, "6 decimal(32,0)"),
        ("avg(x)", &ints, "2.0000 decimal(14,4)"),
        ("min(x) + max(x)", &ints, "4 bigint"),
        ("bit_and(x)", &ints, "0 bigint"),
        ("bit_or(x)", &ints, "3 bigint"),
        ("bit_xor(x)", &ints, "2 bigint"),
        ("group_concat(x ORDER BY x DESC SEPARATOR '-')", &ints, "3-2-2-1 varchar(1024)"),
        ("sum(x)", &decimals, "4.0 decimal(27,1)"),
        ("avg(x)", &decimals, "2.00000 decimal(9,5)"),
        ("sum(x)", &doubles, "9 double"),
        ("var_samp(x)", &doubles, "7 double"),
        ("min(x)", &texts, "a varchar(5)"),
        ("count(DISTINCT x)", &texts, "2 bigint"),
        ("group_concat(DISTINCT x)", &texts, "b,a varchar(1024)"),
        ("sum(x)", &[][..], "NULL"),
        ("count(*)", &[], "0 bigint"),
        ("bit_and(x)", &[], "18446744073709551615 bigint"),
        ("group_concat(x)", &[], "NULL"),
    ] {
        assert_eq!(aggregate(sql, rows), expect, "{sql}");
    }
}
