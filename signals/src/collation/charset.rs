//! Character sets: how the characters of a string become bytes.
//!
//! Role: names and the few facts about a set that storing and comparing need. Conversion between sets
//! belongs to the SQL node; data nodes only ever see bytes already in the column's set.

use super::{Collation, utf8};

/// The character sets a column can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    /// No characters, only bytes.
    Binary,
    /// Seven-bit ASCII.
    Ascii,
    /// Windows-1252 with the five gaps filled as ISO 8859-1, as MySQL's `latin1` is.
    Latin1,
    /// UTF-8 limited to three bytes per character.
    Utf8mb3,
    /// UTF-8.
    Utf8mb4,
}

impl Charset {
    /// Every character set, in MySQL's alphabetical order.
    pub const ALL: &'static [Charset] =
        &[Charset::Ascii, Charset::Binary, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4];

    /// The name as MySQL writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Latin1 => "latin1",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Utf8mb4 => "utf8mb4",
        }
    }

    /// The words `SHOW CHARACTER SET` prints.
    pub const fn description(self) -> &'static str {
        match self {
            Charset::Binary => "Binary pseudo charset",
            Charset::Ascii => "US ASCII",
            Charset::Latin1 => "cp1252 West European",
            Charset::Utf8mb3 | Charset::Utf8mb4 => "UTF-8 Unicode",
        }
    }

    /// The set of a name, in any case. `utf8` is `utf8mb3`, as in MySQL 8.
    pub fn by_name(name: &str) -> Option<Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Charset::Utf8mb3);
        }
        Charset::ALL.iter().copied().find(|set| set.name().eq_ignore_ascii_case(name))
    }

    /// The most bytes one character takes.
    pub const fn bytes_per_char_max(self) -> usize {
        match self {
            Charset::Binary | Charset::Ascii | Charset::Latin1 => 1,
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
        }
    }

    /// The collation a column gets when only the set is named.
    pub const fn default_collation(self) -> Collation {
        match self {
            Charset::Binary => Collation::BINARY,
            Charset::Ascii => Collation::ASCII_GENERAL_CI,
            Charset::Latin1 => Collation::LATIN1_SWEDISH_CI,
            Charset::Utf8mb3 => Collation::UTF8MB3_GENERAL_CI,
            Charset::Utf8mb4 => Collation::UTF8MB4_0900_AI_CI,
        }
    }

    /// The collation of the set that compares bytes.
    pub const fn binary_collation(self) -> Collation {
        match self {
            Charset::Binary => Collation::BINARY,
            Charset::Ascii => Collation::ASCII_BIN,
            Charset::Latin1 => Collation::LATIN1_BIN,
            Charset::Utf8mb3 => Collation::UTF8MB3_BIN,
            Charset::Utf8mb4 => Collation::UTF8MB4_BIN,
        }
    }

    /// Whether a character can take more than one byte.
    pub const fn is_multi_byte(self) -> bool {
        self.bytes_per_char_max() > 1
    }

    /// The length in bytes of the character at the start of `bytes` (at least 1 unless `bytes` is empty);
    /// a byte that starts no valid character counts as one.
    pub fn char_len(self, bytes: &[u8]) -> usize {
        if !self.is_multi_byte() {
            return bytes.len().min(1);
        }
        utf8::decode(bytes).map_or(0, |decoded| decoded.len)
    }

    /// How many characters a string has.
    pub fn char_count(self, bytes: &[u8]) -> usize {
        if !self.is_multi_byte() || bytes.is_ascii() {
            return bytes.len();
        }
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            rest = &rest[self.char_len(rest)..];
            count += 1;
        }
        count
    }

    /// The byte offset of character number `chars`, or the string's length when it has fewer.
    pub fn char_offset(self, bytes: &[u8], chars: usize) -> usize {
        if !self.is_multi_byte() {
            return chars.min(bytes.len());
        }
        let mut at = 0;
        for _ in 0..chars {
            if at >= bytes.len() {
                break;
            }
            at += self.char_len(&bytes[at..]);
        }
        at
    }

    /// The offset of the first byte that is no valid character of the set, if any.
    pub fn first_invalid(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Charset::Binary | Charset::Latin1 => None,
            Charset::Ascii => bytes.iter().position(|b| !b.is_ascii()),
            Charset::Utf8mb4 => std::str::from_utf8(bytes).err().map(|e| e.valid_up_to()),
            Charset::Utf8mb3 => {
                let valid = match std::str::from_utf8(bytes) {
                    Ok(_) => bytes.len(),
                    Err(e) => e.valid_up_to(),
                };
                // In valid UTF-8 a byte of 0xF0 or more only ever starts a four-byte character.
                let wide = bytes[..valid].iter().position(|&b| b >= 0xF0);
                wide.or((valid < bytes.len()).then_some(valid))
            }
        }
    }
}
