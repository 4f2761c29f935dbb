//! Weights: the numbers that stand for characters when strings are compared.
//!
//! Role: reads the two generated tables (`autotest/tools/gen_collation.py` writes and documents them) and
//! turns a string into its sequence of 16-bit weights, one scheme per iterator. The comparing loop first
//! skips what both strings share byte for byte, which is nearly everything when keys are looked up.

use super::PadAttribute;
use super::utf8::{boundary_before, decode};
use std::cmp::Ordering;
use std::iter::Peekable;

/// The primary weights of Unicode 9.0.0.
static UCA: &[u8] = include_bytes!("uca900.bin");
/// The folding of `utf8mb4_general_ci`.
static GENERAL: &[u8] = include_bytes!("general.bin");

const BLOCKS: usize = 0x11_0000 / 256;
const PAGES_AT: usize = 1 + BLOCKS;
const ABSENT: u16 = 0xFFFF;
const EXPANSION: u16 = 0x8000;
/// A byte that is no character: heavier than every character, and different bytes differ.
const BAD_BYTE: u16 = 0xFF00;
/// What characters beyond the first 65,536 weigh in `utf8mb4_general_ci`.
const GENERAL_SUPPLEMENTARY: u16 = 0xFFFD;
/// The weight of a space in `utf8mb4_general_ci`.
pub(super) const GENERAL_SPACE: u16 = 0x20;

/// Word number `index` of a table. The tables are part of the program, so an index past the end is a fault of
/// the generator; it reads as "absent".
#[inline]
const fn word(table: &[u8], index: usize) -> u16 {
    if index * 2 + 1 < table.len() {
        u16::from_le_bytes([table[index * 2], table[index * 2 + 1]])
    } else {
        ABSENT
    }
}

#[inline]
const fn lookup(table: &[u8], code_point: u32) -> u16 {
    let page = word(table, 1 + (code_point >> 8) as usize);
    if page == ABSENT {
        return ABSENT;
    }
    word(table, PAGES_AT + page as usize * 256 + (code_point & 0xFF) as usize)
}

const fn ascii_weights(table: &[u8], absent_is_itself: bool) -> [u16; 128] {
    let mut weights = [0; 128];
    let mut at = 0;
    while at < 128 {
        let found = lookup(table, at as u32);
        weights[at] = if found == ABSENT && absent_is_itself { at as u16 } else { found };
        at += 1;
    }
    weights
}

/// No ASCII character expands, so these are final.
static UCA_ASCII: [u16; 128] = ascii_weights(UCA, false);
static GENERAL_ASCII: [u16; 128] = ascii_weights(GENERAL, true);

/// The primary weight of a space.
pub(super) fn uca_space() -> u16 {
    UCA_ASCII[b' ' as usize]
}

/// A scheme's weights of one string, in order.
pub(super) trait Weights<'a>: Iterator<Item = u16> {
    /// The weight that padding adds.
    fn space() -> u16;
}

/// One weight per character: `utf8mb4_general_ci` and `utf8mb3_general_ci`.
pub(super) struct GeneralWeights<'a> {
    rest: &'a [u8],
}

impl<'a> GeneralWeights<'a> {
    pub(super) fn new(value: &'a [u8]) -> Self {
        Self { rest: value }
    }
}

impl Iterator for GeneralWeights<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let decoded = decode(self.rest)?;
        self.rest = &self.rest[decoded.len..];
        Some(match decoded.code_point {
            Ok(ascii @ 0..0x80) => GENERAL_ASCII[ascii as usize],
            Ok(code_point @ 0x80..=0xFFFF) => match lookup(GENERAL, code_point) {
                ABSENT => code_point as u16,
                folded => folded,
            },
            Ok(_) => GENERAL_SUPPLEMENTARY,
            Err(byte) => BAD_BYTE | u16::from(byte),
        })
    }
}

impl<'a> Weights<'a> for GeneralWeights<'a> {
    fn space() -> u16 {
        GENERAL_SPACE
    }
}

/// The primary weights of the Unicode collation algorithm; ignorable characters have none, others up to 18.
pub(super) struct UcaWeights<'a> {
    rest: &'a [u8],
    pending: Pending,
}

/// Weights of the current character that are still to come.
enum Pending {
    None,
    /// Words `at..end` of the table.
    Table {
        at: usize,
        end: usize,
    },
    /// The second half of an implicit weight.
    Implicit(u16),
    /// The second and third letter (0: none) of a Korean syllable.
    Jamo {
        vowel: u32,
        trailing: u32,
    },
}

impl<'a> UcaWeights<'a> {
    pub(super) fn new(value: &'a [u8]) -> Self {
        Self { rest: value, pending: Pending::None }
    }

    fn next_pending(&mut self) -> Option<u16> {
        match self.pending {
            Pending::None => None,
            Pending::Table { at, end } => {
                self.pending = if at + 1 < end { Pending::Table { at: at + 1, end } } else { Pending::None };
                Some(word(UCA, at))
            }
            Pending::Implicit(second) => {
                self.pending = Pending::None;
                Some(second)
            }
            Pending::Jamo { vowel, trailing } => {
                self.pending = match trailing {
                    0 => Pending::None,
                    letter => Pending::Jamo { vowel: letter, trailing: 0 },
                };
                Some(lookup(UCA, vowel))
            }
        }
    }

    /// The first weight of a character past ASCII; the others go to `pending`. `None`: ignorable.
    fn first_weight(&mut self, code_point: u32) -> Option<u16> {
        match lookup(UCA, code_point) {
            0 => None,
            ABSENT => Some(self.absent(code_point)),
            single if single < EXPANSION => Some(single),
            expansion => {
                let pages = word(UCA, 0) as usize;
                let at = PAGES_AT + pages * 256 + (expansion - EXPANSION) as usize;
                let length = word(UCA, at) as usize;
                if length > 1 {
                    self.pending = Pending::Table { at: at + 2, end: at + 1 + length };
                }
                Some(word(UCA, at + 1))
            }
        }
    }

    /// Korean syllables weigh as their letters; everything else gets a weight computed from its number.
    fn absent(&mut self, code_point: u32) -> u16 {
        if let Some(index @ 0..11_172) = code_point.checked_sub(0xAC00) {
            let trailing = index % 28;
            self.pending = Pending::Jamo {
                vowel: 0x1161 + index / 28 % 21,
                trailing: if trailing == 0 { 0 } else { 0x11A7 + trailing },
            };
            return lookup(UCA, 0x1100 + index / 588);
        }
        let (first, second) = implicit_weight(code_point);
        self.pending = Pending::Implicit(second);
        first
    }
}

impl Iterator for UcaWeights<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(weight) = self.next_pending() {
            return Some(weight);
        }
        loop {
            let decoded = decode(self.rest)?;
            self.rest = &self.rest[decoded.len..];
            match decoded.code_point {
                Ok(ascii @ 0..0x80) => match UCA_ASCII[ascii as usize] {
                    0 => {}
                    weight => return Some(weight),
                },
                Ok(code_point) => {
                    if let Some(weight) = self.first_weight(code_point) {
                        return Some(weight);
                    }
                }
                Err(byte) => return Some(BAD_BYTE | u16::from(byte)),
            }
        }
    }
}

impl<'a> Weights<'a> for UcaWeights<'a> {
    fn space() -> u16 {
        uca_space()
    }
}

/// Section 10.1.3 of the algorithm: two weights derived from the code point, by kind of character.
fn implicit_weight(code_point: u32) -> (u16, u16) {
    let tail = (code_point & 0x7FFF) as u16 | 0x8000;
    let high = (code_point >> 15) as u16;
    match code_point {
        0x1_7000..=0x1_87EC | 0x1_8800..=0x1_8AF2 => (0xFB00, (code_point - 0x1_7000) as u16 | 0x8000),
        0x4E00..=0x9FD5 => (0xFB40 + high, tail),
        0xFA0E | 0xFA0F | 0xFA11 | 0xFA13 | 0xFA14 | 0xFA1F | 0xFA21 | 0xFA23 | 0xFA24 | 0xFA27..=0xFA29 => {
            (0xFB40 + high, tail)
        }
        0x3400..=0x4DB5
        | 0x2_0000..=0x2_A6D6
        | 0x2_A700..=0x2_B734
        | 0x2_B740..=0x2_B81D
        | 0x2_B820..=0x2_CEA1 => (0xFB80 + high, tail),
        _ => (0xFBC0 + high, tail),
    }
}

/// Compares weight by weight.
pub(super) fn compare<'a, W: Weights<'a>>(
    left: &'a [u8],
    right: &'a [u8],
    pad: PadAttribute,
    weigh: impl Fn(&'a [u8]) -> W,
) -> Ordering {
    let shared = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    if shared == left.len() && shared == right.len() {
        return Ordering::Equal;
    }
    // A difference inside a character belongs to the whole character.
    let from = boundary_before(left, shared).min(boundary_before(right, shared));
    let mut left = weigh(&left[from..]).peekable();
    let mut right = weigh(&right[from..]).peekable();
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return a.cmp(&b),
            (None, None) => return Ordering::Equal,
            (Some(a), None) => return tail(a, left, pad, W::space()),
            (None, Some(b)) => return tail(b, right, pad, W::space()).reverse(),
        }
    }
}

/// The longer string's rest against nothing, or against padding.
fn tail(first: u16, rest: Peekable<impl Iterator<Item = u16>>, pad: PadAttribute, space: u16) -> Ordering {
    if pad == PadAttribute::NoPad {
        return Ordering::Greater;
    }
    std::iter::once(first).chain(rest).map(|w| w.cmp(&space)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Appends the weights big-endian, without the trailing ones that padding would add anyway.
pub(super) fn append(weights: impl Iterator<Item = u16>, space: u16, pad: PadAttribute, out: &mut Vec<u8>) {
    let start = out.len();
    let mut end = start;
    for weight in weights {
        out.extend_from_slice(&weight.to_be_bytes());
        if weight != space {
            end = out.len();
        }
    }
    if pad == PadAttribute::PadSpace {
        out.truncate(end);
    }
}
