//! DECIMAL as text: reading MySQL's number forms and writing exactly the scale's digits.

use super::{Decimal, Repr, SCALE_MAX, limbs};
use std::fmt;

/// A number read from the start of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// The number; the greatest possible if it did not fit.
    pub value: Decimal,
    /// How many bytes it took. What follows is for the caller to judge.
    pub consumed: usize,
    /// Whether it had too many digits before the point.
    pub overflow: bool,
    /// Whether digits after the point were rounded away.
    pub rounded: bool,
}

/// Digits before and after the point that are looked at; more cannot matter.
const TEXT_DIGITS_MAX: usize = 512;

impl Decimal {
    /// Reads `[+-]digits[.digits][e[+-]digits]` from the start of a text; `None` if no digit is there.
    /// Spaces are not skipped.
    pub fn parse(text: &[u8]) -> Option<ParsedDecimal> {
        let negative = text.first() == Some(&b'-');
        let start = usize::from(matches!(text.first(), Some(b'-' | b'+')));
        let int_len = digit_run(&text[start..]);
        let mut at = start + int_len;
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            let len = digit_run(&text[at + 1..]);
            if int_len + len > 0 {
                fraction = &text[at + 1..at + 1 + len];
                at += 1 + len;
            }
        }
        if int_len + fraction.len() == 0 {
            return None;
        }
        let whole = &text[start..start + int_len];
        let (exponent, exponent_len) = exponent(&text[at..]);
        let consumed = at + exponent_len;
        Some(assemble(negative, whole, fraction, exponent, consumed))
    }
}

fn digit_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// The exponent at the start of a text and its length; (0, 0) if there is none.
fn exponent(text: &[u8]) -> (i64, usize) {
    let Some((b'e' | b'E', rest)) = text.split_first() else { return (0, 0) };
    let signed = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
    let len = digit_run(&rest[signed..]);
    if len == 0 {
        return (0, 0);
    }
    let digits = &rest[signed..signed + len];
    let value = digits.iter().fold(0i64, |v, &b| (v * 10 + i64::from(b - b'0')).min(1_000_000));
    (if rest.first() == Some(&b'-') { -value } else { value }, 1 + signed + len)
}

fn assemble(negative: bool, whole: &[u8], fraction: &[u8], exponent: i64, consumed: usize) -> ParsedDecimal {
    let zeros = whole.iter().take_while(|&&b| b == b'0').count();
    let whole = &whole[zeros..];
    let saturated = |consumed| {
        let max = Decimal::max_value(super::PRECISION_MAX, 0);
        let value = if negative { max.neg() } else { max };
        ParsedDecimal { value, consumed, overflow: true, rounded: false }
    };
    if whole.len() > TEXT_DIGITS_MAX && exponent >= 0 {
        return saturated(consumed);
    }
    let kept_fraction = &fraction[..fraction.len().min(TEXT_DIGITS_MAX)];
    let limbs = digits_to_limbs(whole.iter().chain(kept_fraction));
    let scale = kept_fraction.len() as i64 - exponent;
    let digits = limbs::digits(&limbs) as i64;
    if limbs.is_empty() {
        // A zero keeps the digits it was written with.
        let scale = scale.clamp(0, i64::from(SCALE_MAX)) as u8;
        return ParsedDecimal {
            value: Decimal::from_unscaled(0, scale),
            consumed,
            overflow: false,
            rounded: false,
        };
    }
    if digits - scale > i64::from(super::PRECISION_MAX) {
        return saturated(consumed);
    }
    if digits - scale < -i64::from(SCALE_MAX) - 1 {
        let value = Decimal::from_unscaled(0, SCALE_MAX);
        return ParsedDecimal { value, consumed, overflow: false, rounded: true };
    }
    let built = if scale < 0 {
        Decimal::build(negative, limbs::shift_up(&limbs, -scale as usize), 0)
    } else {
        Decimal::build(negative, limbs, scale as usize)
    };
    match built {
        Ok(value) => {
            let rounded = scale > i64::from(value.scale());
            ParsedDecimal { value, consumed, overflow: false, rounded }
        }
        Err(super::Overflow) => saturated(consumed),
    }
}

fn digits_to_limbs<'a>(digits: impl DoubleEndedIterator<Item = &'a u8>) -> Vec<u32> {
    let (mut limbs, mut limb, mut count) = (Vec::new(), 0, 0);
    for &digit in digits.rev() {
        limb += u32::from(digit - b'0') * limbs::pow10(count) as u32;
        count += 1;
        if count == limbs::DIGITS {
            limbs.push(limb);
            (limb, count) = (0, 0);
        }
    }
    limbs.push(limb);
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    limbs
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match &self.0 {
            Repr::Small { .. } => self.as_small().unwrap_or(0).unsigned_abs().to_string(),
            Repr::Big(big) => {
                let mut text = String::with_capacity(big.limbs.len() * limbs::DIGITS);
                for (index, limb) in big.limbs.iter().rev().enumerate() {
                    let part = if index == 0 { limb.to_string() } else { format!("{limb:09}") };
                    text.push_str(&part);
                }
                text
            }
        };
        let scale = usize::from(self.scale());
        if self.is_negative() {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{whole}.{fraction}")
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
