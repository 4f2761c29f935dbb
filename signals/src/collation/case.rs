//! Upper and lower case of a string in a character set.
//!
//! Role: UPPER() and LOWER(). As in MySQL one character becomes one character: `ß` stays `ß`, and letters
//! whose other case takes several characters stay as they are. Binary strings have no case.

use super::{Charset, utf8};

/// Appends the string in upper case.
pub fn to_upper(charset: Charset, value: &[u8], out: &mut Vec<u8>) {
    map(charset, value, out, |c| single(c.to_uppercase()), |b| b.to_ascii_uppercase());
}

/// Appends the string in lower case.
pub fn to_lower(charset: Charset, value: &[u8], out: &mut Vec<u8>) {
    map(charset, value, out, |c| single(c.to_lowercase()), |b| b.to_ascii_lowercase());
}

/// The mapping's character when it is exactly one.
fn single(mut mapped: impl Iterator<Item = char>) -> Option<char> {
    let first = mapped.next()?;
    mapped.next().is_none().then_some(first)
}

fn map(
    charset: Charset,
    value: &[u8],
    out: &mut Vec<u8>,
    wide: impl Fn(char) -> Option<char>,
    narrow: impl Fn(u8) -> u8,
) {
    match charset {
        Charset::Binary => out.extend_from_slice(value),
        Charset::Ascii => out.extend(value.iter().map(|&b| narrow(b))),
        // Latin-1 letters keep their numbers in Unicode; a mapping that leaves the set is not made.
        Charset::Latin1 => out.extend(value.iter().map(|&b| match b {
            0xC0..=0xFF => wide(char::from(b)).and_then(|c| u8::try_from(u32::from(c)).ok()).unwrap_or(b),
            _ => narrow(b),
        })),
        Charset::Utf8mb3 | Charset::Utf8mb4 => {
            let mut rest = value;
            while let Some(decoded) = utf8::decode(rest) {
                let (head, tail) = rest.split_at(decoded.len);
                rest = tail;
                if let [ascii @ 0..0x80] = *head {
                    out.push(narrow(ascii));
                    continue;
                }
                let mapped = decoded.code_point.ok().and_then(char::from_u32).and_then(&wide);
                match mapped {
                    Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => out.extend_from_slice(head),
                }
            }
        }
    }
}
