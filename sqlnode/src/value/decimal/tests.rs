//! Tests of DECIMAL: MySQL's printed results, and `fastnum` as the oracle of exact arithmetic.

use super::*;
use fastnum::D512;
use proptest::prelude::*;

fn dec(text: &str) -> Decimal {
    let parsed = Decimal::parse(text.as_bytes()).unwrap();
    assert_eq!(parsed.consumed, text.len());
    parsed.value
}

#[test]
fn text_forms() {
    for (text, printed) in [
        ("0", "0"),
        ("-0", "0"),
        ("0.00", "0.00"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1.50", "1.50"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("-1.25E2", "-125"),
        ("0012.0", "12.0"),
        ("1e-40", "0.000000000000000000000000000000"),
        ("0.0000000000000000000000000000005", "0.000000000000000000000000000001"),
        (
            "99999999999999999999999999999999999999999999999999999999999999999",
            "99999999999999999999999999999999999999999999999999999999999999999",
        ),
    ] {
        assert_eq!(dec(text).to_string(), printed, "{text}");
    }
    assert!(
        Decimal::parse(b"").is_none() && Decimal::parse(b".").is_none() && Decimal::parse(b"-x").is_none()
    );
    assert_eq!(Decimal::parse(b"12abc").unwrap().consumed, 2);
    assert_eq!(Decimal::parse(b"12e+").unwrap().consumed, 2);
    assert_eq!(Decimal::parse(b"1.x").unwrap().consumed, 2);
    assert!(Decimal::parse(b"1e66").unwrap().overflow);
    assert!(Decimal::parse(b"1e999999999999").unwrap().overflow);
}

#[test]
fn division_keeps_hidden_digits() {
    let third = dec("1").div(&dec("3"), 4).unwrap().unwrap();
    assert_eq!(third.to_string(), "0.333333333");
    assert_eq!(third.round(4).unwrap().to_string(), "0.3333");
    let shown = |d: Decimal, scale| d.round(scale).unwrap().to_string();
    assert_eq!(shown(third.mul(&dec("3")).unwrap(), 4), "1.0000");
    assert_eq!(shown(dec("2").div(&dec("3"), 4).unwrap().unwrap(), 4), "0.6667");
    assert_eq!(shown(dec("5.0").div(&dec("3"), 4).unwrap().unwrap(), 5), "1.66667");
    assert_eq!(dec("1").div(&dec("0.00"), 4), Ok(None));
    assert_eq!(Decimal::div_scale(28, 4), 30);
}

#[test]
fn rounding_is_half_away_from_zero() {
    for (text, places, rounded) in [
        ("2.5", 0, "3"),
        ("-2.5", 0, "-3"),
        ("0.45", 1, "0.5"),
        ("-0.45", 1, "-0.5"),
        ("1.449", 1, "1.4"),
        ("150", -2, "200"),
        ("149", -2, "100"),
        ("49", -2, "0"),
        ("1", 3, "1.000"),
        ("9.99", 1, "10.0"),
    ] {
        assert_eq!(dec(text).round_places(places).unwrap().to_string(), rounded, "{text} {places}");
    }
    assert_eq!(dec("-1.999").truncate_places(2).to_string(), "-1.99");
    assert_eq!(dec("199").truncate_places(-2).to_string(), "100");
    assert_eq!(dec("-1.5").floor().unwrap().to_string(), "-2");
    assert_eq!(dec("1.2").ceil().unwrap().to_string(), "2");
    assert_eq!(dec("-1.2").ceil().unwrap().to_string(), "-1");
}

#[test]
fn overflow_is_reported() {
    let max = Decimal::max_value(65, 0);
    assert_eq!(max.add(&dec("1")), Err(Overflow));
    assert_eq!(max.mul(&dec("10")), Err(Overflow));
    assert_eq!(max.neg().sub(&dec("1")), Err(Overflow));
    assert_eq!(max.to_i128(), None);
    assert_eq!(dec("99999999999999999999").to_i128(), Some(99_999_999_999_999_999_999));
}

#[test]
fn encoded_lengths_are_mysqls() {
    assert_eq!(encoded_len(10, 2), 5);
    assert_eq!(encoded_len(18, 9), 8);
    assert_eq!(encoded_len(65, 30), 30);
    assert_eq!(dec("1234567890.1234").encode(14, 4).unwrap(), hex("810DFB38D204D2"));
    assert_eq!(dec("-1234567890.1234").encode(14, 4).unwrap(), hex("7EF204C72DFB2D"));
    assert_eq!(dec("1000").encode(5, 2), None);
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

#[test]
fn doubles_convert_by_their_shortest_text() {
    assert_eq!(Decimal::from_f64(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::from_f64(1e20).unwrap().to_string(), "100000000000000000000");
    assert_eq!(Decimal::from_f64(f64::NAN), None);
    assert_eq!(Decimal::from_f64(1e300), None);
    assert_eq!(dec("0.1").to_f64(), 0.1);
    assert_eq!(dec("123456789012345678901234567890.5").to_f64(), 123_456_789_012_345_678_901_234_567_890.5);
}

fn numbers() -> impl Strategy<Value = String> {
    (any::<bool>(), proptest::collection::vec(0u8..10, 1..25), proptest::collection::vec(0u8..10, 0..16))
        .prop_map(|(negative, whole, fraction)| {
            let digits = |d: &[u8]| d.iter().map(|d| char::from(b'0' + d)).collect::<String>();
            let sign = if negative { "-" } else { "" };
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{sign}{}{point}{}", digits(&whole), digits(&fraction))
        })
}

fn oracle(text: &str) -> D512 {
    D512::from_str(text, fastnum::decimal::Context::default()).unwrap()
}

/// Compares a result with the oracle's, as numbers.
fn same(ours: &Decimal, theirs: &D512) -> bool {
    oracle(&ours.to_string()) == *theirs
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_the_oracle(a in numbers(), b in numbers()) {
        let (x, y) = (dec(&a), dec(&b));
        let (p, q) = (oracle(&a), oracle(&b));
        prop_assert!(same(&x.add(&y).unwrap(), &(p + q)));
        prop_assert!(same(&x.sub(&y).unwrap(), &(p - q)));
        prop_assert!(same(&x.mul(&y).unwrap(), &(p * q)) || x.scale() + y.scale() > SCALE_MAX);
        prop_assert_eq!(x.compare(&y), p.partial_cmp(&q).unwrap());
        if let Some(rem) = x.rem(&y) {
            let quotient = x.int_div(&y).unwrap().unwrap();
            let back = quotient.mul(&y).unwrap().add(&rem).unwrap();
            prop_assert_eq!(back.compare(&x), std::cmp::Ordering::Equal);
            prop_assert!(rem.abs().compare(&y.abs()).is_lt());
            prop_assert!(rem.is_zero() || rem.is_negative() == x.is_negative());
        } else {
            prop_assert!(y.is_zero());
        }
    }

    #[test]
    fn quotients_are_cut_not_rounded(a in numbers(), b in numbers()) {
        let (x, y) = (dec(&a), dec(&b));
        if let Ok(Some(quotient)) = x.div(&y, 4) {
            // quotient * y <= x < (quotient + 1 unit) * y, in magnitude.
            let unit = Decimal::from_unscaled(1, quotient.scale());
            let (q, y, x) = (oracle(&quotient.abs().to_string()), oracle(&y.abs().to_string()), oracle(&x.abs().to_string()));
            prop_assert!(q * y <= x);
            prop_assert!((q + oracle(&unit.to_string())) * y > x);
        }
    }

    #[test]
    fn text_and_storage_round_trip(a in numbers(), b in numbers()) {
        let (x, y) = (dec(&a), dec(&b));
        prop_assert_eq!(&dec(&x.to_string()), &x);
        let (ex, ey) = (x.encode(65, 30), y.encode(65, 30));
        if let (Some(ex), Some(ey)) = (&ex, &ey) {
            prop_assert_eq!(ex.cmp(ey), x.compare(&y));
            prop_assert_eq!(Decimal::decode(ex, 65, 30).unwrap().compare(&x), std::cmp::Ordering::Equal);
        }
        prop_assert_eq!(x.normalized().compare(&x), std::cmp::Ordering::Equal);
    }

    #[test]
    fn any_number_of_places_is_fine(a in numbers(), places in any::<i32>()) {
        let x = dec(&a);
        let _ = x.round_places(places);
        prop_assert!(x.truncate_places(places).abs().compare(&x.abs()).is_le());
        let _ = crate::value::number::round_f64(x.to_f64(), places);
    }

    #[test]
    fn damaged_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..32), p in 0u8..70, s in 0u8..70) {
        let _ = Decimal::decode(&bytes, p, s);
        if let Some(parsed) = Decimal::parse(&bytes) {
            prop_assert!(parsed.consumed <= bytes.len());
        }
    }
}
