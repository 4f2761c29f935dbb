//! Tests of the collations: MySQL's documented equalities, and the laws every collation keeps.

use super::*;

const CI: Collation = Collation::UTF8MB4_0900_AI_CI;
const GENERAL: Collation = Collation::UTF8MB4_GENERAL_CI;

fn cmp(collation: Collation, a: &str, b: &str) -> Ordering {
    let order = collation.compare(a.as_bytes(), b.as_bytes());
    let same = collation.weight_string(a.as_bytes()) == collation.weight_string(b.as_bytes());
    assert_eq!(same, order.is_eq(), "{collation}: {a:?} {b:?}");
    assert_eq!(collation.compare(b.as_bytes(), a.as_bytes()), order.reverse());
    order
}

#[test]
fn default_collation_ignores_case_and_accents() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, order) in [
        ("abc", "ABC", Equal),
        ("résumé", "RESUME", Equal),
        ("ß", "SS", Equal),
        ("æ", "ae", Equal),
        ("ø", "o", Equal),
        ("đ", "d", Equal),
        ("ñ", "n", Equal),
        ("Ж", "ж", Equal),
        ("Σ", "ς", Equal),
        ("a", "a ", Less),
        ("a", "b", Less),
        ("z", "я", Less),
        ("한글", "한글", Equal),
        ("한", "각", Greater),
        ("中", "丂", Greater),
        ("a\u{0}", "a", Equal),
        ("e\u{301}", "é", Equal),
        ("😀", "😁", Less),
        ("1", "a", Less),
        ("ａ", "A", Equal),
        ("½", "1\u{2044}2", Equal),
    ] {
        assert_eq!(cmp(CI, a, b), order, "{a:?} {b:?}");
    }
}

#[test]
fn general_ci_folds_one_to_one_and_pads() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, order) in [
        ("abc", "ABC", Equal),
        ("é", "E", Equal),
        ("ß", "s", Equal),
        ("ß", "ss", Less),
        ("a", "a   ", Equal),
        ("a", "a\t", Greater),
        ("", "   ", Equal),
        ("a b", "a  b", Greater),
        ("😀", "😁", Equal),
        ("й", "и", Greater),
    ] {
        assert_eq!(cmp(GENERAL, a, b), order, "{a:?} {b:?}");
    }
}

#[test]
fn byte_collations() {
    assert_eq!(cmp(Collation::UTF8MB4_BIN, "a", "a "), Ordering::Equal);
    assert_eq!(cmp(Collation::UTF8MB4_BIN, "a", "A"), Ordering::Greater);
    assert_eq!(cmp(Collation::BINARY, "a", "a "), Ordering::Less);
    assert_eq!(cmp(Collation::UTF8MB4_0900_BIN, "a", "a "), Ordering::Less);
    assert!(Collation::BINARY.is_binary_comparable() && !Collation::UTF8MB4_BIN.is_binary_comparable());
    let swedish = Collation::LATIN1_SWEDISH_CI;
    assert_eq!(swedish.compare(b"\xE9", b"E"), Ordering::Equal);
    assert_eq!(swedish.compare(b"\xE4", b"z"), Ordering::Greater);
    assert_eq!(swedish.compare(b"\xFC", b"Y "), Ordering::Equal);
}

#[test]
fn damaged_strings_keep_the_laws() {
    // Every string of up to three pieces over an alphabet of awkward pieces, against every other.
    let pieces: [&[u8]; 9] =
        [b"", b"a", b"A ", b"\xC3", b"\xA9", "é".as_bytes(), b"\xF0\x9F", "😀".as_bytes(), b" "];
    let mut strings = Vec::new();
    for x in pieces {
        for y in pieces {
            for z in pieces {
                strings.push([x, y, z].concat());
            }
        }
    }
    strings.sort();
    strings.dedup();
    for collation in [CI, GENERAL, Collation::UTF8MB4_UNICODE_CI, Collation::UTF8MB4_BIN] {
        let weights: Vec<_> = strings.iter().map(|s| collation.weight_string(s)).collect();
        for (i, a) in strings.iter().enumerate() {
            for (j, b) in strings.iter().enumerate() {
                let order = collation.compare(a, b);
                assert_eq!(order.is_eq(), weights[i] == weights[j], "{collation} {a:?} {b:?}");
                assert_eq!(order, collation.compare(b, a).reverse());
            }
        }
        strings.sort_by(|a, b| collation.compare(a, b));
        strings.sort();
    }
}

#[test]
fn names_and_numbers() {
    for collation in Collation::all() {
        assert_eq!(Collation::by_id(collation.id()), Some(collation));
        assert_eq!(Collation::by_name(&collation.name().to_uppercase()), Some(collation));
    }
    assert_eq!(Collation::by_name("utf8_general_ci"), Some(Collation::UTF8MB3_GENERAL_CI));
    assert_eq!(Collation::by_id(1), None);
    assert_eq!(Charset::by_name("UTF8"), Some(Charset::Utf8mb3));
    assert_eq!(Collation::default().charset().default_collation(), Collation::default());
}

#[test]
fn like_matches_under_the_collation() {
    for (pattern, value, matched) in [
        ("a%", "Abc", true),
        ("%c", "abC", true),
        ("%b%", "aBc", true),
        ("_b_", "abc", true),
        ("_b_", "abcd", false),
        ("", "", true),
        ("", "a", false),
        ("%", "", true),
        ("é", "E", true),
        ("_", "😀", true),
        ("a\\%", "a%", true),
        ("a\\%", "ab", false),
        ("a\\", "a\\", true),
        ("%a%b%c%", "xxaxxbxxc", true),
        ("%a%b%c%", "xxaxxcxxb", false),
        ("a", "a ", false),
        ("ss", "ß", false),
    ] {
        let compiled = LikePattern::new(CI, pattern.as_bytes(), Some('\\'));
        assert_eq!(compiled.matches(value.as_bytes()), matched, "{value:?} LIKE {pattern:?}");
    }
    let compiled = LikePattern::new(CI, b"a|_%", Some('|'));
    assert!(compiled.matches(b"a_x") && !compiled.matches(b"abx"));
    assert_eq!(compiled.prefix(), (&b"a_"[..], true));
    assert!(!LikePattern::new(Collation::UTF8MB4_BIN, b"A%", None).matches(b"abc"));
}

#[test]
fn case_maps_one_to_one() {
    let mut out = Vec::new();
    to_upper(Charset::Utf8mb4, "straße é ǆ \u{149}".as_bytes(), &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "STRAßE É Ǆ \u{149}");
    let mut out = Vec::new();
    to_lower(Charset::Latin1, b"\xC9A\xD7\xFF", &mut out);
    assert_eq!(out, b"\xE9a\xD7\xFF");
}

#[test]
fn lengths_and_validity() {
    let s = "aé😀".as_bytes();
    assert_eq!(Charset::Utf8mb4.char_count(s), 3);
    assert_eq!(Charset::Utf8mb4.char_offset(s, 2), 3);
    assert_eq!(Charset::Utf8mb4.char_offset(s, 9), s.len());
    assert_eq!(Charset::Utf8mb4.first_invalid(s), None);
    assert_eq!(Charset::Utf8mb3.first_invalid(s), Some(3));
    assert_eq!(Charset::Utf8mb3.first_invalid(b"a\xFF"), Some(1));
    assert_eq!(Charset::Ascii.first_invalid(s), Some(1));
}
