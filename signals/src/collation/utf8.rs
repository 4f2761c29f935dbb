//! UTF-8, one character at a time, without failing: bad bytes come out one by one.
//!
//! Role: the only decoder the collations use, so that comparing, weighing and LIKE cut a damaged string in
//! the same places. A byte that starts no valid sequence is one "character" of one byte; a valid sequence
//! never contains a byte that could start another, so decoding may begin at any byte that is not a
//! continuation byte.

/// What the start of a string holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The character, or the byte that is none.
    pub code_point: Result<u32, u8>,
    /// How many bytes it takes.
    pub len: usize,
}

/// Decodes the first character; `None` at the end of the string.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<Decoded> {
    let &first = bytes.first()?;
    if first < 0x80 {
        return Some(Decoded { code_point: Ok(u32::from(first)), len: 1 });
    }
    Some(decode_wide(bytes, first))
}

fn decode_wide(bytes: &[u8], first: u8) -> Decoded {
    let bad = Decoded { code_point: Err(first), len: 1 };
    let (len, lead, least) = match first {
        0xC2..=0xDF => (2, u32::from(first & 0x1F), 0x80),
        0xE0..=0xEF => (3, u32::from(first & 0x0F), 0x800),
        0xF0..=0xF4 => (4, u32::from(first & 0x07), 0x1_0000),
        _ => return bad,
    };
    let Some(tail) = bytes.get(1..len) else { return bad };
    let mut code_point = lead;
    for &byte in tail {
        if byte & 0xC0 != 0x80 {
            return bad;
        }
        code_point = code_point << 6 | u32::from(byte & 0x3F);
    }
    // Overlong forms, surrogates and numbers past the last character are no characters.
    if code_point < least || char::from_u32(code_point).is_none() {
        return bad;
    }
    Decoded { code_point: Ok(code_point), len }
}

/// The largest offset not above `at` where decoding may begin.
pub(super) fn boundary_before(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}
