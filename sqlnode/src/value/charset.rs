//! Character set conversion: the same text in another set's bytes.
//!
//! Role: clients, columns and literals may each have their own set. Conversion goes through Unicode; what the
//! target set lacks becomes `?` and is reported, so that the caller can make it an error (storing) or a
//! warning (comparing). MySQL's `latin1` is Windows-1252 with its five gaps filled by the control characters
//! of the same number.

use super::{Charset, Collation, ErrorCode, MySqlError, Result, Text};
use signals::collation::decode;

/// Windows-1252 between 0x80 and 0x9F; the gaps hold their own number.
#[rustfmt::skip]
static LATIN1_HIGH: [u16; 32] = [
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x008D, 0x017D, 0x008F,
    0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
];

/// The character of a `latin1` byte.
pub fn latin1_char(byte: u8) -> char {
    match byte {
        0x80..=0x9F => char::from_u32(u32::from(LATIN1_HIGH[usize::from(byte - 0x80)])).unwrap_or('?'),
        _ => char::from(byte),
    }
}

/// The `latin1` byte of a character, if there is one.
pub fn latin1_byte(c: char) -> Option<u8> {
    let number = u32::from(c);
    match number {
        0..=0x7F | 0xA0..=0xFF => Some(number as u8),
        _ => LATIN1_HIGH.iter().position(|&known| u32::from(known) == number).map(|at| 0x80 + at as u8),
    }
}

/// What a conversion made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The bytes in the target set.
    pub bytes: Vec<u8>,
    /// The offset in the source of the first character that was replaced by `?`.
    pub first_lost: Option<usize>,
}

/// Converts bytes from one set to another. `binary` on either side leaves the bytes as they are.
pub fn convert(bytes: &[u8], from: Charset, to: Charset) -> Converted {
    let unchanged = from == to
        || from == Charset::Binary
        || to == Charset::Binary
        || (bytes.is_ascii() && from != Charset::Binary)
        || (from == Charset::Utf8mb3 && to == Charset::Utf8mb4);
    if unchanged {
        return Converted { bytes: bytes.to_vec(), first_lost: None };
    }
    let mut out = Converted { bytes: Vec::with_capacity(bytes.len() + 8), first_lost: None };
    let mut at = 0;
    while at < bytes.len() {
        let (character, len) = next_char(&bytes[at..], from);
        if !push_char(character, to, &mut out.bytes) {
            out.bytes.push(b'?');
            out.first_lost.get_or_insert(at);
        }
        at += len;
    }
    out
}

/// The first character of a string that is not empty (`None` if its bytes are none) and its length.
fn next_char(bytes: &[u8], from: Charset) -> (Option<char>, usize) {
    let first = bytes.first().copied().unwrap_or(0);
    match from {
        Charset::Binary | Charset::Latin1 => (Some(latin1_char(first)), 1),
        Charset::Ascii => (first.is_ascii().then_some(char::from(first)), 1),
        Charset::Utf8mb3 | Charset::Utf8mb4 => match decode(bytes) {
            Some(decoded) => (decoded.code_point.ok().and_then(char::from_u32), decoded.len.max(1)),
            None => (None, 1),
        },
    }
}

fn push_char(character: Option<char>, to: Charset, out: &mut Vec<u8>) -> bool {
    let Some(c) = character else { return false };
    match to {
        Charset::Ascii if c.is_ascii() => out.push(c as u8),
        Charset::Latin1 => match latin1_byte(c) {
            Some(byte) => out.push(byte),
            None => return false,
        },
        Charset::Utf8mb3 if u32::from(c) > 0xFFFF => return false,
        Charset::Utf8mb3 | Charset::Utf8mb4 => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Charset::Ascii | Charset::Binary => return false,
    }
    true
}

/// The text in another collation's set. Lost characters become `?`.
pub fn convert_text(text: &Text, to: Collation) -> Text {
    if text.charset() == to.charset() {
        return text.with_collation(to);
    }
    Text::new(&convert(text.as_bytes(), text.charset(), to.charset()).bytes, to)
}

/// Bytes that came from a client as text of a set.
///
/// # Errors
/// 1300 when they are not valid in it; the text shows the bad bytes in hexadecimal.
pub fn checked_text(bytes: &[u8], collation: Collation) -> Result<Text> {
    match collation.charset().first_invalid(bytes) {
        None => Ok(Text::new(bytes, collation)),
        Some(at) => Err(MySqlError::with(
            ErrorCode::InvalidCharacterString,
            &[&collation.charset().name(), &hex_tail(&bytes[at..])],
        )),
    }
}

/// Bad bytes as MySQL shows them in messages: up to six in hexadecimal, printable ones as they are.
pub fn escape_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for &byte in bytes.iter().take(6) {
        if (0x20..0x7F).contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    if bytes.len() > 6 {
        text.push_str("...");
    }
    text
}

fn hex_tail(bytes: &[u8]) -> String {
    let mut text: String = bytes.iter().take(6).map(|byte| format!("{byte:02X}")).collect();
    if bytes.len() > 6 {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_and_utf8_convert_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        let wide = convert(&all, Charset::Latin1, Charset::Utf8mb4);
        assert_eq!(wide.first_lost, None);
        let back = convert(&wide.bytes, Charset::Utf8mb4, Charset::Latin1);
        assert_eq!((back.bytes, back.first_lost), (all, None));
    }

    #[test]
    fn lost_characters_are_reported() {
        let lost = convert("aé中".as_bytes(), Charset::Utf8mb4, Charset::Latin1);
        assert_eq!(lost, Converted { bytes: b"a\xE9?".to_vec(), first_lost: Some(3) });
        let lost = convert("a😀".as_bytes(), Charset::Utf8mb4, Charset::Utf8mb3);
        assert_eq!(lost, Converted { bytes: b"a?".to_vec(), first_lost: Some(1) });
        let lost = convert(b"\xFFa", Charset::Utf8mb4, Charset::Latin1);
        assert_eq!(lost, Converted { bytes: b"?a".to_vec(), first_lost: Some(0) });
    }

    #[test]
    fn bad_client_text_is_refused() {
        let e = checked_text(b"ab\xFFcdefghij", Collation::default()).unwrap_err();
        assert_eq!(e.to_string(), "ERROR 1300 (HY000): Invalid utf8mb4 character string: 'FF6364656667...'");
        assert_eq!(escape_bytes(b"\xF0\x9F\x98\x80 abc"), "\\xF0\\x9F\\x98\\x80 a...");
    }
}
