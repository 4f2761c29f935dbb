//! Collations: which character strings are equal, and in which order they stand.
//!
//! Data nodes and SQL nodes share this module, because both compare and hash character keys.

/// A collation by MySQL's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collation(pub u16);

impl Collation {
    /// Raw bytes.
    pub const BINARY: Self = Self(63);

    /// Whether strings are equal exactly when their bytes are.
    #[must_use]
    pub fn is_binary_comparable(self) -> bool {
        true
    }

    /// Appends a string that is equal for two values exactly when they compare equal.
    pub fn append_weight_string(self, value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }
}
