//! Numbers as text: reading the number at the start of a string, and printing numbers as MySQL prints them.
//!
//! Role: MySQL takes any string where it wants a number: it reads the longest number at the start, ignores
//! spaces around it, and warns (1292) about anything else. Reading never fails; what was left over is
//! reported as `clean: false` and the caller decides whether that is a warning, an error or nothing.
//!
//! Doubles print with the fewest digits that read back to the same number, FLOATs with six digits; both
//! switch to the form with an exponent for 1e15 and above and below 1e-15.

use super::Decimal;

/// A number read from a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parsed<T> {
    /// The number; 0 if there was none, the nearest limit if it did not fit.
    pub value: T,
    /// Whether the whole text was the number, spaces around it apart.
    pub clean: bool,
    /// Whether there was any number at all.
    pub found: bool,
    /// Whether the number was beyond the limits.
    pub overflow: bool,
}

/// The spaces MySQL skips.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

/// The text without the spaces at its start.
pub fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&b| is_space(b)).count();
    &text[spaces..]
}

fn only_spaces(rest: &[u8]) -> bool {
    rest.iter().all(|&b| is_space(b))
}

fn digit_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Reads a DOUBLE.
pub fn parse_f64(text: &[u8]) -> Parsed<f64> {
    let text = trim_start(text);
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let mut at = sign + digit_run(&text[sign..]);
    let mut digits = at - sign;
    if text.get(at) == Some(&b'.') {
        let fraction = digit_run(&text[at + 1..]);
        digits += fraction;
        if digits > 0 {
            at += 1 + fraction;
        }
    }
    if digits == 0 {
        return Parsed { value: 0.0, clean: false, found: false, overflow: false };
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let signed = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digit_run(text.get(at + 1 + signed..).unwrap_or(&[]));
        if exponent > 0 {
            at += 1 + signed + exponent;
        }
    }
    // Only ASCII digits, signs, a point and an exponent are in the range, which always parses.
    let value: f64 = std::str::from_utf8(&text[..at]).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0);
    let overflow = value.is_infinite();
    let value = if overflow { f64::MAX.copysign(value) } else { value };
    Parsed { value, clean: only_spaces(&text[at..]), found: true, overflow }
}

/// Reads a DECIMAL.
pub fn parse_decimal(text: &[u8]) -> Parsed<Decimal> {
    let text = trim_start(text);
    match Decimal::parse(text) {
        None => Parsed { value: Decimal::ZERO, clean: false, found: false, overflow: false },
        Some(parsed) => Parsed {
            clean: only_spaces(&text[parsed.consumed..]),
            value: parsed.value,
            found: true,
            overflow: parsed.overflow,
        },
    }
}

/// Reads a whole number as CAST does: digits only, a fraction is left over. The value is clamped to the range
/// of BIGINT and BIGINT UNSIGNED together.
pub fn parse_int(text: &[u8]) -> Parsed<i128> {
    let text = trim_start(text);
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = digit_run(&text[sign..]);
    if digits == 0 {
        return Parsed { value: 0, clean: false, found: false, overflow: false };
    }
    let limit = 1i128 << 100;
    let magnitude =
        text[sign..sign + digits].iter().fold(0i128, |v, b| (v * 10 + i128::from(b - b'0')).min(limit));
    let value = if text.first() == Some(&b'-') { -magnitude } else { magnitude };
    let clamped = value.clamp(i128::from(i64::MIN), i128::from(u64::MAX));
    let clean = only_spaces(&text[sign + digits..]);
    Parsed { value: clamped, clean, found: true, overflow: clamped != value }
}

/// Decimal point positions up to here are printed without exponent.
const FIXED_POINT_MAX: i32 = 15;

/// A DOUBLE as MySQL prints it.
pub fn format_f64(value: f64) -> String {
    format_scientific(value, &format!("{value:e}"))
}

/// A FLOAT as MySQL prints it: six significant digits.
pub fn format_f32(value: f32) -> String {
    format_scientific(f64::from(value), &format!("{:.5e}", f64::from(value)))
}

fn format_scientific(value: f64, scientific: &str) -> String {
    if !value.is_finite() {
        // Rows never hold these; a damaged one still has to print.
        return "0".to_owned();
    }
    let negative = scientific.starts_with('-');
    let unsigned = scientific.trim_start_matches('-');
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let kept = digits.trim_end_matches('0').len().max(1);
    digits.truncate(kept);
    let point = exponent + 1;
    let count = digits.len() as i32;
    let body = if digits == "0" {
        digits
    } else if point > FIXED_POINT_MAX && count <= point || point < 1 - FIXED_POINT_MAX {
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{exponent}", &digits[..1])
    } else if point <= 0 {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else if count <= point {
        format!("{digits}{}", "0".repeat((point - count) as usize))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    if negative { format!("-{body}") } else { body }
}

/// A DOUBLE rounded to a fixed number of decimals: columns of DOUBLE(m,d), ROUND() and FORMAT().
pub fn format_fixed(value: f64, decimals: u8) -> String {
    format!("{:.*}", usize::from(decimals), round_f64(value, i32::from(decimals)))
}

/// ROUND() of a double: a half goes to the even neighbour, as the C library has it (exact numbers round half
/// away from zero); a negative number of places rounds before the point.
pub fn round_f64(value: f64, places: i32) -> f64 {
    scaled(value, places, f64::round_ties_even)
}

/// TRUNCATE() of a double.
pub fn truncate_f64(value: f64, places: i32) -> f64 {
    scaled(value, places, f64::trunc)
}

fn scaled(value: f64, places: i32, whole: impl Fn(f64) -> f64) -> f64 {
    let power = 10f64.powi(places.saturating_abs().min(308));
    let result = if places >= 0 { whole(value * power) / power } else { whole(value / power) * power };
    // Too many places to matter, or too few to leave anything.
    if result.is_finite() {
        result
    } else if places >= 0 {
        value
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_mysql_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (123456789012345678.0, "1.2345678901234568e17"),
            (123456789012345.0, "123456789012345"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.5e-15, "0.0000000000000015"),
            (1.2345678901234568e-10, "0.00000000012345678901234568"),
            (9007199254740993.0, "9.007199254740992e15"),
            (1.7976931348623157e308, "1.7976931348623157e308"),
            (999999999999999.9, "999999999999999.9"),
            (1234567890123456.8, "1234567890123456.8"),
            (-1e-7, "-0.0000001"),
            (0.1, "0.1"),
            (1e20, "1e20"),
        ] {
            assert_eq!(format_f64(value), text);
        }
        for (value, text) in [
            (123456789f32, "123457000"),
            (16777217f32, "16777200"),
            (0.1f32, "0.1"),
            (1.0f32 / 3.0, "0.333333"),
            (3.4e38f32, "3.4e38"),
            (1.5e15f32, "1.5e15"),
            (0.0, "0"),
        ] {
            assert_eq!(format_f32(value), text);
        }
    }

    #[test]
    fn prefixes_are_read() {
        let p = parse_f64(b" 12.5abc");
        assert_eq!((p.value, p.clean, p.found), (12.5, false, true));
        assert_eq!(parse_f64(b"1e3 ").value, 1000.0);
        assert!(parse_f64(b"1e3 ").clean && !parse_f64(b"").found && !parse_f64(b"-.e1").found);
        assert_eq!(parse_f64(b"1e400").value, f64::MAX);
        assert!(parse_f64(b"1e400").overflow);
        assert_eq!(parse_f64(b"5e").value, 5.0);
        assert_eq!(parse_int(b" -12.9").value, -12);
        assert!(!parse_int(b" -12.9").clean);
        assert_eq!(parse_int(b"99999999999999999999999").value, i128::from(u64::MAX));
        assert_eq!(parse_decimal(b"1.50 ").value.to_string(), "1.50");
    }

    #[test]
    fn rounding_places() {
        assert_eq!(round_f64(2.5, 0), 2.0);
        assert_eq!(round_f64(-3.5, 0), -4.0);
        assert_eq!(round_f64(155.0, -1), 160.0);
        assert_eq!(truncate_f64(1.999, 1), 1.9);
        assert_eq!(round_f64(1.5, 400), 1.5);
        assert_eq!(format_fixed(1.005, 1), "1.0");
    }
}
