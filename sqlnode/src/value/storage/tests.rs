//! Tests of storing and loading: every type round-trips, and bad values behave as MySQL's strict and lenient
//! modes say.

use super::*;
use crate::value::sql_type::NumberFlags;
use crate::value::{LobSize, compare};
use proptest::prelude::*;
use std::sync::Arc;

const CI: Collation = Collation::UTF8MB4_0900_AI_CI;

fn context(mode: SqlMode) -> StoreContext<'static> {
    StoreContext { mode, zone: &TimeZone::Offset(120), column: "c", row: 1 }
}

fn round_trip(value: &Value, sql_type: &SqlType, mode: SqlMode) -> (Result<String>, u64) {
    let mut warnings = Warnings::new();
    let result = store(value, sql_type, &context(mode), &mut warnings).map(|bytes| {
        let bytes = bytes.unwrap();
        assert!(bytes.len() as u64 <= sql_type.storage_bytes_max(), "{sql_type}");
        let loaded = load(&bytes, sql_type, &TimeZone::Offset(120)).unwrap();
        let mut text = Vec::new();
        cast::append_result_text(&loaded, sql_type, &mut text);
        String::from_utf8(text).unwrap()
    });
    (result, warnings.count())
}

fn strict(value: &Value, sql_type: &SqlType) -> std::result::Result<String, u16> {
    round_trip(value, sql_type, SqlMode::default()).0.map_err(|e| e.code)
}

fn lenient(value: &Value, sql_type: &SqlType) -> (String, u64) {
    let (text, warnings) = round_trip(value, sql_type, SqlMode::EMPTY);
    (text.unwrap(), warnings)
}

fn member_list() -> Arc<[Box<str>]> {
    Arc::from(["small".into(), "Größe".into(), "large".into()])
}

fn t(text: &str) -> Value {
    Value::text(text)
}

#[test]
fn good_values_round_trip() {
    let flags = NumberFlags::default();
    for (value, sql_type, text) in [
        (Value::Int(-128), SqlType::int(IntSize::Tiny), "-128"),
        (Value::Int(-1), SqlType::int(IntSize::Medium), "-1"),
        (Value::UInt(u64::MAX), SqlType::BIGINT_UNSIGNED, "18446744073709551615"),
        (t("12.5"), SqlType::int(IntSize::Int), "13"),
        (t(" 7 "), SqlType::int(IntSize::Int), "7"),
        (t("1.005"), SqlType::decimal(10, 2), "1.01"),
        (Value::Int(-5), SqlType::decimal(5, 2), "-5.00"),
        (Value::Double(0.5), SqlType::Float { size: None, flags }, "0.5"),
        (t("1e20"), SqlType::DOUBLE, "1e20"),
        (Value::Double(1.239), SqlType::Double { size: Some((5, 2)), flags }, "1.24"),
        (t("abc  "), SqlType::Char { chars: 5, collation: CI }, "abc"),
        (t("abc  "), SqlType::varchar(5, CI), "abc  "),
        (t("é€"), SqlType::varchar(2, Collation::UTF8MB3_GENERAL_CI), "é€"),
        (Value::Int(42), SqlType::varchar(5, CI), "42"),
        (Value::bytes(b"ab"), SqlType::VarBinary(4), "ab"),
        (t("2020-1-2"), SqlType::Date, "2020-01-02"),
        (t("20200102030405.678"), SqlType::DateTime { fsp: 0 }, "2020-01-02 03:04:06"),
        (t("2020-01-02 03:04:05.678"), SqlType::DateTime { fsp: 2 }, "2020-01-02 03:04:05.68"),
        (t("9999-12-31 23:59:59"), SqlType::DateTime { fsp: 0 }, "9999-12-31 23:59:59"),
        (Value::Int(20200102), SqlType::Date, "2020-01-02"),
        (t("2020-07-01 12:00:00"), SqlType::Timestamp { fsp: 0 }, "2020-07-01 12:00:00"),
        (t("2020-07-01 12:00:00+00:00"), SqlType::Timestamp { fsp: 0 }, "2020-07-01 14:00:00"),
        (t("-838:59:59"), SqlType::Time { fsp: 0 }, "-838:59:59"),
        (t("1 2:3"), SqlType::Time { fsp: 0 }, "26:03:00"),
        (Value::Int(-112), SqlType::Time { fsp: 3 }, "-00:01:12.000"),
        (Value::Int(69), SqlType::Year, "2069"),
        (t("0"), SqlType::Year, "2000"),
        (Value::Int(0), SqlType::Year, "0000"),
        (Value::Int(2155), SqlType::Year, "2155"),
        (t("GROSSE"), SqlType::Enum { members: member_list(), collation: CI }, "Größe"),
        (Value::Int(3), SqlType::Enum { members: member_list(), collation: CI }, "large"),
        (t("large,small"), SqlType::Set { members: member_list(), collation: CI }, "small,large"),
        (t(""), SqlType::Set { members: member_list(), collation: CI }, ""),
        (Value::Int(5), SqlType::Bit(3), "5"),
        (t("x"), SqlType::Text { size: LobSize::Tiny, collation: CI }, "x"),
        (Value::bytes(b""), SqlType::Blob(LobSize::Long), ""),
    ] {
        assert_eq!(strict(&value, &sql_type), Ok(text.to_owned()), "{value:?} in {sql_type}");
    }
    let binary =
        store(&Value::bytes(b"ab"), &SqlType::Binary(4), &context(SqlMode::default()), &mut Warnings::new());
    assert_eq!(binary.unwrap().unwrap(), b"ab\0\0");
    assert_eq!(store(&Value::Null, &SqlType::Date, &context(SqlMode::EMPTY), &mut Warnings::new()), Ok(None));
}

#[test]
fn bad_values_fail_in_strict_mode_and_are_cut_otherwise() {
    let unsigned = SqlType::unsigned(IntSize::Tiny);
    let enumeration = SqlType::Enum { members: member_list(), collation: CI };
    let set = SqlType::Set { members: member_list(), collation: CI };
    for (value, sql_type, code, cut) in [
        (Value::Int(128), SqlType::int(IntSize::Tiny), 1264, "127"),
        (Value::Int(-1), unsigned.clone(), 1264, "0"),
        (Value::Int(256), unsigned, 1264, "255"),
        (Value::Double(1e30), SqlType::BIGINT, 1264, "9223372036854775807"),
        (t("abc"), SqlType::int(IntSize::Int), 1366, "0"),
        (t("12abc"), SqlType::int(IntSize::Int), 1265, "12"),
        (t(""), SqlType::int(IntSize::Int), 1366, "0"),
        (t("1000"), SqlType::decimal(5, 2), 1264, "999.99"),
        (t("x"), SqlType::decimal(5, 2), 1366, "0.00"),
        (t("x"), SqlType::DOUBLE, 1366, "0"),
        (t("abcd"), SqlType::varchar(3, CI), 1406, "abc"),
        (t("abcd"), SqlType::Char { chars: 3, collation: CI }, 1406, "abc"),
        (t("a中"), SqlType::varchar(3, Collation::LATIN1_SWEDISH_CI), 1366, "a?"),
        (Value::bytes(b"a\xFFb"), SqlType::varchar(3, CI), 1366, "a"),
        (Value::bytes(b"abc"), SqlType::VarBinary(2), 1406, "ab"),
        (t("2020-02-30"), SqlType::Date, 1292, "0000-00-00"),
        (t("x"), SqlType::DateTime { fsp: 0 }, 1292, "0000-00-00 00:00:00"),
        (t("2020-01-01x"), SqlType::Date, 1292, "2020-01-01"),
        (t("1969-12-31 00:00:00"), SqlType::Timestamp { fsp: 0 }, 1292, "0000-00-00 00:00:00"),
        (t("2038-01-19 05:14:08"), SqlType::Timestamp { fsp: 0 }, 1292, "0000-00-00 00:00:00"),
        (t("839:00:00"), SqlType::Time { fsp: 0 }, 1292, "838:59:59"),
        (t("x"), SqlType::Time { fsp: 0 }, 1292, "00:00:00"),
        (Value::Int(1900), SqlType::Year, 1264, "0000"),
        (t("huge"), enumeration, 1265, ""),
        (t("small,huge"), set, 1265, "small"),
        (Value::Int(9), SqlType::Bit(3), 1406, "7"),
    ] {
        assert_eq!(strict(&value, &sql_type), Err(code), "{value:?} in {sql_type}");
        assert_eq!(lenient(&value, &sql_type), (cut.to_owned(), 1), "{value:?} in {sql_type}");
    }
    assert_eq!(strict(&t("0000-00-00"), &SqlType::Date), Err(1292));
    assert_eq!(strict(&t("2020-00-10"), &SqlType::Date), Err(1292));
    assert_eq!(lenient(&t("0000-00-00"), &SqlType::Date), ("0000-00-00".to_owned(), 0));
    assert_eq!(lenient(&t("2020-00-10"), &SqlType::Date), ("2020-00-10".to_owned(), 0));
}

#[test]
fn messages_name_column_and_row() {
    let error = |value: &Value, sql_type: &SqlType| {
        round_trip(value, sql_type, SqlMode::default()).0.unwrap_err().to_string()
    };
    for (value, sql_type, text) in [
        (
            t("abc"),
            SqlType::int(IntSize::Int),
            "ERROR 1366 (HY000): Incorrect integer value: 'abc' for column 'c' at row 1",
        ),
        (
            t("x"),
            SqlType::DateTime { fsp: 0 },
            "ERROR 1292 (22007): Incorrect datetime value: 'x' for column 'c' at row 1",
        ),
        (t("abcd"), SqlType::varchar(3, CI), "ERROR 1406 (22001): Data too long for column 'c' at row 1"),
        (
            Value::bytes(b"\xF0\x9F"),
            SqlType::varchar(3, CI),
            "ERROR 1366 (HY000): Incorrect string value: '\\xF0\\x9F' for column 'c' at row 1",
        ),
    ] {
        assert_eq!(error(&value, &sql_type), text);
    }
}

fn all_types() -> Vec<SqlType> {
    let flags = NumberFlags::default();
    vec![
        SqlType::int(IntSize::Tiny),
        SqlType::unsigned(IntSize::Medium),
        SqlType::BIGINT,
        SqlType::decimal(10, 3),
        SqlType::decimal(65, 30),
        SqlType::Float { size: None, flags },
        SqlType::DOUBLE,
        SqlType::Bit(13),
        SqlType::Char { chars: 5, collation: CI },
        SqlType::varchar(5, Collation::LATIN1_SWEDISH_CI),
        SqlType::Binary(3),
        SqlType::VarBinary(3),
        SqlType::Text { size: LobSize::Tiny, collation: CI },
        SqlType::Blob(LobSize::Tiny),
        SqlType::Date,
        SqlType::DateTime { fsp: 3 },
        SqlType::Timestamp { fsp: 6 },
        SqlType::Time { fsp: 1 },
        SqlType::Year,
        SqlType::Enum { members: member_list(), collation: CI },
        SqlType::Set { members: member_list(), collation: CI },
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-300i64..300).prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f64>().prop_map(Value::Double),
        any::<f32>().prop_map(Value::Float),
        (any::<i128>(), 0u8..31).prop_map(|(v, s)| Value::Decimal(Decimal::from_unscaled(v, s))),
        "[0-9:. -]{0,25}".prop_map(|s| t(&s)),
        ".{0,12}".prop_map(|s| t(&s)),
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(|b| Value::bytes(&b)),
        (0u32..10000, 0u32..13, 0u32..32).prop_map(|(y, m, d)| Value::Date(Date::new(y, m, d).unwrap())),
        any::<i64>().prop_map(|v| Value::Time(Time::from_micros_clamped(v, 6))),
    ]
}

proptest! {
    #[test]
    fn what_is_stored_loads_and_stores_again(value in any_value(), strict in any::<bool>()) {
        let mode = if strict { SqlMode::default() } else { SqlMode::EMPTY };
        for sql_type in all_types() {
            let mut warnings = Warnings::new();
            let Ok(Some(bytes)) = store(&value, &sql_type, &context(mode), &mut warnings) else { continue };
            prop_assert!(bytes.len() as u64 <= sql_type.storage_bytes_max());
            let loaded = load(&bytes, &sql_type, &TimeZone::Offset(120)).unwrap();
            let again = store(&loaded, &sql_type, &context(SqlMode::EMPTY), &mut Warnings::new()).unwrap().unwrap();
            prop_assert_eq!(&again, &bytes, "{:?} in {}", value, sql_type);
        }
    }

    #[test]
    fn damaged_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        for sql_type in all_types() {
            if let Ok(value) = load(&bytes, &sql_type, &TimeZone::Utc) {
                let _ = compare::compare(&value, &value);
                let mut out = Vec::new();
                cast::append_result_text(&value, &sql_type, &mut out);
            }
        }
    }

    #[test]
    fn comparison_is_antisymmetric(a in any_value(), b in any_value()) {
        let forth = compare::compare(&a, &b);
        let back = compare::compare(&b, &a);
        prop_assert_eq!(forth, back.map(std::cmp::Ordering::reverse));
        prop_assert!(compare::null_safe_equal(&a, &a));
    }
}
