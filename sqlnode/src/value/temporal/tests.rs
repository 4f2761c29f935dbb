//! Tests of dates and times: MySQL's forms of text, the calendar, and time zones.

use super::*;
use proptest::prelude::*;

#[test]
fn texts_that_are_dates() {
    for (text, shown) in [
        ("2020-1-2", "2020-01-02 00:00:00"),
        ("2020.01.02", "2020-01-02 00:00:00"),
        ("2020@01@02 3+4+5", "2020-01-02 03:04:05"),
        ("20200102", "2020-01-02 00:00:00"),
        ("200102", "2020-01-02 00:00:00"),
        ("700102", "1970-01-02 00:00:00"),
        ("69-1-2", "2069-01-02 00:00:00"),
        ("20200102030405", "2020-01-02 03:04:05"),
        ("200102030405", "2020-01-02 03:04:05"),
        ("20200102T030405", "2020-01-02 03:04:05"),
        ("2020-01-02T03:04:05.5", "2020-01-02 03:04:05.5"),
        ("2020-01-02 03:04:05.1234567", "2020-01-02 03:04:05.123457"),
        ("2020-12-31 23:59:59.9999999", "2021-01-01 00:00:00.000000"),
        ("  2020-01-02 03:04  ", "2020-01-02 03:04:00"),
        ("0000-00-00", "0000-00-00 00:00:00"),
        ("00-00-00", "0000-00-00 00:00:00"),
        ("000000", "0000-00-00 00:00:00"),
        ("00-1-1", "2000-01-01 00:00:00"),
        ("5-1-2", "0005-01-02 00:00:00"),
        ("2020-00-00", "2020-00-00 00:00:00"),
        ("2020-02-29", "2020-02-29 00:00:00"),
    ] {
        let parsed = parse_datetime(text, DateRules::default());
        assert_eq!(parsed.map(|p| (p.value.to_string(), p.clean)), Some((shown.to_owned(), true)), "{text}");
    }
    for text in
        ["", "x", "2020", "2020-13-01", "2021-02-29", "2020-01-02 24:00:00", "2020-01-32", "12020-01-01"]
    {
        assert_eq!(parse_datetime(text, DateRules::default()), None, "{text}");
    }
    assert!(!parse_datetime("2020-01-02abc", DateRules::default()).unwrap().clean);
    assert_eq!(
        parse_datetime_offset("2020-01-02 03:04:05-02:30", DateRules::default()).unwrap().1,
        Some(-150)
    );
}

#[test]
fn texts_that_are_times() {
    for (text, shown, clean) in [
        ("11:12:13", "11:12:13", true),
        ("11:12", "11:12:00", true),
        ("1112", "00:11:12", true),
        ("111213", "11:12:13", true),
        ("12", "00:00:12", true),
        ("1 11:12", "35:12:00", true),
        ("2 11", "59:00:00", true),
        ("-838:59:59", "-838:59:59", true),
        ("900:00:00", "838:59:59", false),
        ("10:11:12.5", "10:11:12.5", true),
        ("2020-01-02 03:04:05", "03:04:05", true),
        ("11:12:13x", "11:12:13", false),
    ] {
        let parsed = parse_time(text).unwrap();
        assert_eq!((parsed.value.to_string().as_str(), parsed.clean), (shown, clean), "{text}");
    }
    assert_eq!(parse_time("x"), None);
    assert_eq!(parse_time("10:60:00"), None);
    assert_eq!(parse_time_number(-1).unwrap().value.to_string(), "-00:00:01");
}

#[test]
fn numbers_that_are_dates() {
    let shown = |n| parse_datetime_number(n, DateRules::default()).map(|d| d.to_string());
    assert_eq!(shown(20200102), Some("2020-01-02 00:00:00".to_owned()));
    assert_eq!(shown(700101), Some("1970-01-01 00:00:00".to_owned()));
    assert_eq!(shown(200102030405), Some("2020-01-02 03:04:05".to_owned()));
    assert_eq!(shown(20200102030405), Some("2020-01-02 03:04:05".to_owned()));
    assert_eq!(shown(0), Some("0000-00-00 00:00:00".to_owned()));
    assert_eq!([shown(5), shown(-1), shown(i64::MAX), shown(20201301)], [None, None, None, None]);
}

#[test]
fn day_numbers_are_mysqls() {
    let days = |y, m, d| Date::new(y, m, d).unwrap().day_number().unwrap();
    assert_eq!(days(0, 1, 1), 1);
    assert_eq!(days(0, 3, 1), 60);
    assert_eq!(days(1, 1, 1), 366);
    assert_eq!(days(1970, 1, 1), 719_528);
    assert_eq!(days(9999, 12, 31), 3_652_424);
    assert_eq!(Date::from_day_number(365), Date::ZERO);
    assert_eq!(Date::from_day_number(719_528).to_string(), "1970-01-01");
    assert_eq!(Date::new(2024, 1, 1).unwrap().weekday(), Some(0));
}

#[test]
fn zones_convert_both_ways() {
    let stockholm = TimeZone::parse("Europe/Stockholm").unwrap();
    let local = |text: &str| parse_datetime(text, DateRules::default()).unwrap().value;
    for (text, unix) in [
        ("2020-01-01 01:00:00", 1_577_836_800),
        ("2020-07-01 02:00:00", 1_593_561_600),
        // Skipped: the moment of the change.
        ("2020-03-29 02:30:00", 1_585_443_600),
        // Twice: the first.
        ("2020-10-25 02:30:00", 1_603_585_800),
    ] {
        assert_eq!(stockholm.unix_from_local(local(text)), Some(unix * 1_000_000), "{text}");
    }
    assert_eq!(stockholm.local_from_unix(1_593_561_600_000_000, 0), Some(local("2020-07-01 02:00:00")));
    for bad in ["+15:00", "Mars/Olympus", "+1", "-14:00", "+01:60", "", "+é:00"] {
        assert_eq!(TimeZone::parse(bad).unwrap_err().code, 1298, "{bad}");
    }
    for name in ["+02:00", "-13:59", "SYSTEM", "UTC", "Europe/Stockholm"] {
        assert_eq!(TimeZone::parse(name).unwrap().to_string(), name);
    }
}

#[test]
fn weeks_follow_the_eight_modes() {
    let weeks = |y, m, d| -> Vec<u32> {
        (0..8).map(|mode| week_of(Date::new(y, m, d).unwrap(), WeekMode(mode)).unwrap().1).collect()
    };
    assert_eq!(weeks(2008, 2, 20), [7, 8, 7, 8, 8, 7, 8, 7]);
    assert_eq!(weeks(2000, 1, 1), [0, 0, 52, 52, 0, 0, 52, 52]);
    assert_eq!(weeks(2008, 12, 31), [52, 53, 52, 1, 53, 52, 53, 52]);
    assert_eq!(week_of(Date::new(2000, 1, 1).unwrap(), WeekMode(3)), Some((1999, 52)));
}

#[test]
fn formats_both_ways() {
    let moment = parse_datetime("2009-10-04 22:23:00", DateRules::default()).unwrap().value;
    for (format, text) in [
        ("%W %M %Y", "Sunday October 2009"),
        ("%H:%i:%s", "22:23:00"),
        ("%D %y %a %d %m %b %j", "4th 09 Sun 04 10 Oct 277"),
        ("%H %k %I %r %T %S %w", "22 22 10 10:23:00 PM 22:23:00 00 0"),
        ("%X %V %x %v %U %u", "2009 40 2009 40 40 40"),
        ("%f%%%q%", "000000%q%"),
    ] {
        assert_eq!(date_format(moment, format).as_deref(), Some(text), "{format}");
    }
    let time = Time::from_micros(100 * 3_600_000_000, 0).unwrap();
    assert_eq!(time_format(time, "%H %k %h %I %l").as_deref(), Some("100 100 04 04 4"));
    for (text, format, shown) in [
        ("01,5,2013", "%d,%m,%Y", "2013-05-01 00:00:00"),
        ("May 1, 2013", "%M %d,%Y", "2013-05-01 00:00:00"),
        ("a09:30:17", "a%h:%i:%s", "0000-00-00 09:30:17"),
        ("9:30:17 PM 2020-1-2", "%r %Y-%m-%d", "2020-01-02 21:30:17"),
        ("2020 060", "%Y %j", "2020-02-29 00:00:00"),
        ("3rd Mar 99", "%D %b %y", "1999-03-03 00:00:00"),
    ] {
        let read = str_to_date(text, format, DateRules::default());
        assert_eq!(read.map(|(d, clean)| (d.to_string(), clean)), Some((shown.to_owned(), true)), "{text}");
    }
    assert_eq!(str_to_date("2020-99-01", "%Y-%m-%d", DateRules::default()), None);
    assert_eq!(str_to_date("abc", "%Y", DateRules::default()), None);
    assert_eq!(str_to_date("é", "%p", DateRules::default()), None);
}

proptest! {
    #[test]
    fn day_numbers_round_trip(days in 366i64..3_652_425) {
        let date = Date::from_day_number(days);
        prop_assert!(date.is_valid());
        prop_assert_eq!(date.day_number().map(i64::from), Some(days));
    }

    #[test]
    fn packed_moments_sort_and_round_trip(a in any::<u64>(), linear in 31_622_400_000_000i64..315_537_897_600_000_000) {
        if let Some(moment) = DateTime::from_packed(a, 6) {
            prop_assert_eq!(moment.packed(), a);
        }
        let moment = DateTime::from_linear_micros(linear, 6).unwrap();
        prop_assert_eq!(moment.linear_micros(), Some(linear));
        let later = DateTime::from_linear_micros(linear + 1, 6).unwrap();
        prop_assert!(later.packed() > moment.packed());
        prop_assert_eq!(parse_datetime(&moment.to_string(), DateRules::default()).unwrap().value, moment);
    }

    #[test]
    fn no_format_panics(text in ".{0,30}", format in "(%.|.){0,10}", micros in any::<i64>()) {
        let _ = str_to_date(&text, &format, DateRules::default());
        let _ = time_format(Time::from_micros_clamped(micros, 6), &format);
        let _ = date_format(DateTime::ZERO, &format);
        let _ = TimeZone::Offset(840).local_from_unix(micros, 6);
    }

    #[test]
    fn no_text_panics(text in "[0-9]{0,12}[0-9:.T +/x-]{0,30}") {
        let _ = parse_datetime(&text, DateRules::default());
        if let Some(parsed) = parse_time(&text) {
            prop_assert_eq!(parse_time(&parsed.value.to_string()).unwrap().value, parsed.value);
        }
    }
}
