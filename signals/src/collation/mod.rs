//! Collations: how two strings of a column are ordered, and when they count as the same string.
//!
//! Role: SQL nodes compare, sort and group with a column's collation, and data nodes must agree with them to
//! the last character, because a hash index finds `'Straße'` under `'STRASSE'` only when both ends turn the
//! two into the same key. So the one implementation lives here, beside the key formats, and depends on the
//! standard library alone.
//!
//! * [`Collation`] is MySQL's collation number. [`Collation::compare`] orders two byte strings that are
//!   encoded in the collation's character set.
//! * [`Collation::append_weight_string`] writes bytes that are equal exactly when `compare` says `Equal`.
//!   They are what is hashed and stored for keys. They are *not* promised to sort by memcmp: under PAD SPACE
//!   `"a\t"` sorts before `"a"`.
//! * `utf8mb4_0900_ai_ci` uses the primary weights of the Unicode 9.0.0 table (DUCET), NO PAD, without
//!   contractions. `utf8mb4_unicode_ci` and `utf8mb4_unicode_520_ci` are approximated by the same weights
//!   with PAD SPACE: MySQL uses the tables of Unicode 4.0.0 and 5.2.0 there, so characters added or moved
//!   since then sort elsewhere, and control characters and combining marks are ignored in all three.
//!   `utf8mb4_general_ci` folds one character to one character as MySQL does, exactly.
//! * Bytes that are not valid in the character set never fail: each bad byte weighs more than any character.
//!
//! What it never does: it does not convert between character sets, and it allocates nothing but what it
//! appends to the caller's buffer.

mod case;
mod charset;
mod like;
mod names;
mod tables;
mod utf8;
mod weights;

pub use case::{to_lower, to_upper};
pub use charset::Charset;
pub use like::LikePattern;
pub use names::Collation;
pub use utf8::{Decoded, decode};

use std::cmp::Ordering;

/// What trailing spaces mean when strings of different length are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadAttribute {
    /// The shorter string is filled with spaces, so trailing spaces do not matter.
    PadSpace,
    /// Trailing spaces are characters like any other.
    NoPad,
}

/// How a collation finds the weights of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// The bytes themselves.
    Bytes,
    /// One weight per byte through a table of 256.
    Table(&'static [u8; 256]),
    /// One 16-bit weight per UTF-8 character: accents and case folded away.
    General,
    /// Primary weights of the Unicode collation algorithm.
    Uca,
}

impl Collation {
    /// Orders two strings encoded in this collation's character set.
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        let pad = self.pad();
        match self.scheme() {
            Scheme::Bytes => compare_bytes(left, right, pad, |b| b),
            Scheme::Table(table) => compare_bytes(left, right, pad, |b| table[b as usize]),
            Scheme::General => weights::compare(left, right, pad, weights::GeneralWeights::new),
            Scheme::Uca => weights::compare(left, right, pad, weights::UcaWeights::new),
        }
    }

    /// Whether two strings count as the same string.
    pub fn equal(self, left: &[u8], right: &[u8]) -> bool {
        left == right || self.compare(left, right) == Ordering::Equal
    }

    /// Appends bytes that are equal for two strings exactly when they compare equal.
    pub fn append_weight_string(self, value: &[u8], out: &mut Vec<u8>) {
        let pad = self.pad();
        match self.scheme() {
            Scheme::Bytes => out.extend_from_slice(strip_spaces(value, pad)),
            Scheme::Table(table) => {
                let start = out.len();
                out.extend(value.iter().map(|&b| table[b as usize]));
                let kept = strip_spaces(&out[start..], pad).len();
                out.truncate(start + kept);
            }
            Scheme::General => {
                weights::append(weights::GeneralWeights::new(value), weights::GENERAL_SPACE, pad, out);
            }
            Scheme::Uca => weights::append(weights::UcaWeights::new(value), weights::uca_space(), pad, out),
        }
    }

    /// The weight string as a fresh buffer.
    pub fn weight_string(self, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(value.len() * 2);
        self.append_weight_string(value, &mut out);
        out
    }

    /// Whether two strings are equal exactly when their bytes are: such columns are hashed as they are.
    pub fn is_binary_comparable(self) -> bool {
        self.scheme() == Scheme::Bytes && self.pad() == PadAttribute::NoPad
    }

    /// Whether one character of each side, as encoded bytes, is equal by itself, as LIKE compares.
    pub fn characters_equal(self, left: &[u8], right: &[u8]) -> bool {
        if left == right {
            return true;
        }
        match self.scheme() {
            Scheme::Bytes => false,
            Scheme::Table(table) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(&a, &b)| table[a as usize] == table[b as usize])
            }
            Scheme::General => weights::GeneralWeights::new(left).eq(weights::GeneralWeights::new(right)),
            Scheme::Uca => weights::UcaWeights::new(left).eq(weights::UcaWeights::new(right)),
        }
    }

    /// Whether upper and lower case of a letter count as the same.
    pub fn is_case_insensitive(self) -> bool {
        self.scheme() != Scheme::Bytes
    }

    fn scheme(self) -> Scheme {
        self.info().map_or(Scheme::Bytes, |info| info.scheme)
    }
}

fn compare_bytes(left: &[u8], right: &[u8], pad: PadAttribute, weight: impl Fn(u8) -> u8) -> Ordering {
    let common = left.len().min(right.len());
    for (&a, &b) in left.iter().zip(right) {
        if a != b {
            match weight(a).cmp(&weight(b)) {
                Ordering::Equal => {}
                different => return different,
            }
        }
    }
    if pad == PadAttribute::NoPad {
        return left.len().cmp(&right.len());
    }
    let space = weight(b' ');
    let tail = |rest: &[u8]| {
        rest.iter().map(|&b| weight(b).cmp(&space)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    if left.len() > common { tail(&left[common..]) } else { tail(&right[common..]).reverse() }
}

fn strip_spaces(value: &[u8], pad: PadAttribute) -> &[u8] {
    match pad {
        PadAttribute::NoPad => value,
        PadAttribute::PadSpace => {
            let kept = value.iter().rposition(|&b| b != b' ').map_or(0, |last| last + 1);
            &value[..kept]
        }
    }
}

#[cfg(test)]
mod tests;
