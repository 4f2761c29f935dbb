//! DECIMAL as stored: a fixed number of bytes for a precision and scale, which memcmp orders.
//!
//! Layout: the digits before and after the point are cut, from the point outwards, into groups of nine,
//! each a big-endian number of four bytes; the digits left over at the outer ends take one to four bytes.
//! The first bit is inverted, and all bits of a negative number are inverted, so that bytes sort as
//! numbers.

use super::{Decimal, limbs};

/// Bytes that 0 to 9 left-over digits take.
const LEFTOVER_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Bytes of the stored form.
pub const fn encoded_len(precision: u8, scale: u8) -> usize {
    let whole = precision.saturating_sub(scale) as usize;
    let scale = scale as usize;
    whole / 9 * 4 + LEFTOVER_BYTES[whole % 9] + scale / 9 * 4 + LEFTOVER_BYTES[scale % 9]
}

/// The digits of each group from the left, for one side of the point.
fn groups(digits: usize, leftover_first: bool) -> impl Iterator<Item = usize> {
    let leftover = digits % 9;
    let lead = (leftover_first && leftover > 0).then_some(leftover);
    let tail = (!leftover_first && leftover > 0).then_some(leftover);
    lead.into_iter().chain(std::iter::repeat_n(9, digits / 9)).chain(tail)
}

impl Decimal {
    /// The stored form for a column type. `None` if the number does not fit; digits past the scale are
    /// rounded away.
    pub fn encode(&self, precision: u8, scale: u8) -> Option<Vec<u8>> {
        let rounded = self.round(scale).ok()?;
        if !rounded.fits(precision, scale) {
            return None;
        }
        let whole = usize::from(precision.checked_sub(scale)?);
        let total = usize::from(precision);
        let digits = format!("{:0>total$}", rounded.unscaled_digits());
        let mut out = Vec::with_capacity(encoded_len(precision, scale));
        let mut rest = digits.as_str();
        for len in groups(whole, true).chain(groups(usize::from(scale), false)) {
            let (group, tail) = rest.split_at_checked(len)?;
            rest = tail;
            let value: u32 = group.parse().ok()?;
            out.extend_from_slice(&value.to_be_bytes()[4 - LEFTOVER_BYTES[len]..]);
        }
        if let Some(first) = out.first_mut() {
            *first ^= 0x80;
        }
        if rounded.is_negative() {
            out.iter_mut().for_each(|byte| *byte = !*byte);
        }
        Some(out)
    }

    /// The digits without point and sign.
    fn unscaled_digits(&self) -> String {
        self.abs().to_string().replace('.', "")
    }

    /// Reads the stored form; `None` if the bytes are no number of the type.
    pub fn decode(bytes: &[u8], precision: u8, scale: u8) -> Option<Decimal> {
        let whole = usize::from(precision.checked_sub(scale)?);
        if bytes.len() != encoded_len(precision, scale) {
            return None;
        }
        let negative = bytes.first().is_some_and(|first| first & 0x80 == 0);
        let flip = if negative { 0xFF } else { 0 };
        let (mut at, mut magnitude) = (0, Vec::new());
        for len in groups(whole, true).chain(groups(usize::from(scale), false)) {
            let width = LEFTOVER_BYTES[len];
            let mut group = [0; 4];
            for (to, from) in group[4 - width..].iter_mut().zip(bytes.get(at..at + width)?) {
                *to = from ^ flip;
            }
            if at == 0 {
                group[4 - width] ^= 0x80;
            }
            at += width;
            let value = u32::from_be_bytes(group);
            if u64::from(value) >= limbs::pow10(len) {
                return None;
            }
            magnitude = limbs::add(&limbs::shift_up(&magnitude, len), &limbs::from_u128(u128::from(value)));
        }
        Decimal::build(negative, magnitude, usize::from(scale)).ok()
    }
}
