//! Wire primitives: how MySQL's protocol spells integers and strings in bytes.
//!
//! [`Reader`] walks over one packet a client sent. Every step is checked and answers a typed error, so a
//! packet that ends too early is a value and not a crash. The `put_*` functions append the same shapes to a
//! buffer. Nothing here knows what a packet means, and nothing here allocates from a length a client merely
//! claimed.

use super::error::ProtocolError;

/// A cursor over the bytes of one packet.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True when everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes; `what` names the field in the error.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], ProtocolError> {
        match self.rest.split_at_checked(count) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(ProtocolError::Truncated { what }),
        }
    }

    /// A fixed number of bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ProtocolError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(ProtocolError::Truncated { what }),
        }
    }

    /// One byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, ProtocolError> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, ProtocolError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, ProtocolError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, ProtocolError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A length-encoded integer: one byte, or a marker followed by 2, 3 or 8 bytes.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, ProtocolError> {
        match self.u8(what)? {
            n @ 0..=0xfa => Ok(u64::from(n)),
            0xfc => Ok(u64::from(self.u16(what)?)),
            0xfd => {
                let [a, b, c] = self.array(what)?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => self.u64(what),
            0xfb | 0xff => Err(ProtocolError::BadLength { what }),
        }
    }

    /// A length-encoded string.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], ProtocolError> {
        let length = self.lenenc(what)?;
        let length = usize::try_from(length).map_err(|_| ProtocolError::BadLength { what })?;
        self.bytes(length, what)
    }

    /// A string that ends with a zero byte, which is read and left out.
    pub fn null_terminated(&mut self, what: &'static str) -> Result<&'a [u8], ProtocolError> {
        match self.rest.iter().position(|&b| b == 0) {
            Some(at) => {
                let text = self.bytes(at, what)?;
                self.u8(what)?;
                Ok(text)
            }
            None => Err(ProtocolError::Truncated { what }),
        }
    }

    /// A string that ends with a zero byte or with the packet; some clients leave the last terminator out.
    pub fn null_or_end_terminated(&mut self) -> &'a [u8] {
        match self.rest.iter().position(|&b| b == 0) {
            Some(at) => {
                let text = &self.rest[..at];
                self.rest = &self.rest[at + 1..];
                text
            }
            None => self.take_rest(),
        }
    }

    /// Everything that is left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Appends a length-encoded integer.
pub fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends a length-encoded string.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a string and its zero byte. A zero byte inside the text would end it early, so it is cut there.
pub fn put_null_terminated(out: &mut Vec<u8>, text: &str) {
    let text = text.split('\0').next().unwrap_or_default();
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_survive_a_round_trip_at_every_border() {
        for value in [0, 1, 250, 251, 252, 255, 256, 65_535, 65_536, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.lenenc("n").unwrap(), value);
            assert!(reader.is_empty());
            for cut in 0..out.len() {
                assert!(Reader::new(&out[..cut]).lenenc("n").is_err(), "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn claimed_lengths_beyond_the_packet_are_errors() {
        assert!(
            Reader::new(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).lenenc_bytes("s").is_err()
        );
        assert!(Reader::new(&[5, b'a', b'b']).lenenc_bytes("s").is_err());
        assert!(Reader::new(&[0xfb]).lenenc("n").is_err());
        assert!(Reader::new(&[0xff]).lenenc("n").is_err());
        assert!(Reader::new(b"abc").null_terminated("s").is_err());
        assert_eq!(Reader::new(b"abc").null_or_end_terminated(), b"abc");
        assert_eq!(Reader::new(b"ab\0c").null_or_end_terminated(), b"ab");
    }
}
