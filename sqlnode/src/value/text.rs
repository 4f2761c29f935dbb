//! Text: a string value, its bytes and its collation together.
//!
//! Role: up to [`INLINE_BYTES_MAX`] bytes sit in the value itself; longer ones are shared by reference count,
//! so that rows can be copied, sorted and cached without copying strings. The bytes are in the collation's
//! character set, which is not checked here: rows and clients may hold damaged text, and every user of the
//! bytes copes with that.

use super::{Charset, Collation};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Strings up to this long need no allocation.
pub const INLINE_BYTES_MAX: usize = 20;

/// A string and its collation.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, collation: Collation, bytes: [u8; INLINE_BYTES_MAX] },
    Shared { collation: Collation, bytes: Arc<[u8]> },
}

const _: () = assert!(size_of::<Text>() <= 24);

impl Text {
    /// A string from its bytes, which are in the collation's character set.
    pub fn new(bytes: &[u8], collation: Collation) -> Text {
        if bytes.len() <= INLINE_BYTES_MAX {
            let mut inline = [0; INLINE_BYTES_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            Text(Repr::Inline { len: bytes.len() as u8, collation, bytes: inline })
        } else {
            Text(Repr::Shared { collation, bytes: Arc::from(bytes) })
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes, .. } => &bytes[..usize::from(*len)],
            Repr::Shared { bytes, .. } => bytes,
        }
    }

    /// The collation.
    pub const fn collation(&self) -> Collation {
        match &self.0 {
            Repr::Inline { collation, .. } | Repr::Shared { collation, .. } => *collation,
        }
    }

    /// The character set the bytes are in.
    pub fn charset(&self) -> Charset {
        self.collation().charset()
    }

    /// The same bytes under another collation of the same character set.
    #[must_use]
    pub fn with_collation(&self, collation: Collation) -> Text {
        let mut text = self.clone();
        match &mut text.0 {
            Repr::Inline { collation: old, .. } | Repr::Shared { collation: old, .. } => *old = collation,
        }
        text
    }

    /// The string for messages and for parsing: latin1 is decoded, bytes that are no text are replaced.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        match self.charset() {
            Charset::Latin1 if !self.as_bytes().is_ascii() => {
                Cow::Owned(self.as_bytes().iter().map(|&b| super::charset::latin1_char(b)).collect())
            }
            _ => String::from_utf8_lossy(self.as_bytes()),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length in characters.
    pub fn char_count(&self) -> usize {
        self.charset().char_count(self.as_bytes())
    }
}

impl From<&str> for Text {
    /// A string in the default collation.
    fn from(value: &str) -> Text {
        Text::new(value.as_bytes(), Collation::default())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_bytes() == other.as_bytes() && self.collation() == other.collation()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_strings_behave_alike() {
        for len in [0, 1, INLINE_BYTES_MAX - 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 1000] {
            let bytes = vec![b'x'; len];
            let text = Text::new(&bytes, Collation::UTF8MB4_BIN);
            assert_eq!(text.as_bytes(), bytes);
            let binary = text.with_collation(Collation::BINARY);
            assert_eq!((binary.collation(), binary.len()), (Collation::BINARY, len));
        }
    }

    #[test]
    fn latin1_reads_as_text() {
        let text = Text::new(b"Stra\xDFe \x80", Collation::LATIN1_SWEDISH_CI);
        assert_eq!(text.to_str_lossy(), "Straße €");
    }
}
