//! AttrInfo: column values on the wire, in both directions.
//!
//! A sequence of entries, each a 4-byte header (column id, byte length; [`NULL_LENGTH`] for NULL) and the
//! value's storage bytes, padded with zeros to a multiple of four. A write carries the columns it sets, a
//! read's answer the columns it asked for in the asked order. Lengths fit 16 bits because a row has at most
//! [`crate::table::MAX_ROW_BYTES`] bytes.

/// The length that marks NULL.
pub const NULL_LENGTH: u16 = 0xffff;

/// One column value: the column's number and its storage bytes, or `None` for NULL.
pub type AttrEntry<'a> = (u16, Option<&'a [u8]>);

/// Appends one entry to `out`. `out` must itself start at a multiple of four, as section buffers do.
pub fn push(out: &mut Vec<u8>, column: u16, value: Option<&[u8]>) {
    let length = value.map_or(NULL_LENGTH, |v| v.len() as u16);
    debug_assert!(value.is_none_or(|v| v.len() < NULL_LENGTH as usize));
    out.extend_from_slice(&column.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    if let Some(value) = value {
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// Walks the entries of an AttrInfo section; ends early with `Err` at the first malformed one.
#[derive(Clone, Copy)]
pub struct AttrReader<'a> {
    rest: &'a [u8],
}

/// An AttrInfo section that does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedAttr;

impl<'a> AttrReader<'a> {
    /// A reader over a whole section.
    #[must_use]
    pub fn new(section: &'a [u8]) -> Self {
        Self { rest: section }
    }

    /// Whether every entry is whole. Run once where bytes enter the process.
    #[must_use]
    pub fn is_well_formed(self) -> bool {
        self.into_iter().all(|e| e.is_ok())
    }
}

impl<'a> Iterator for AttrReader<'a> {
    type Item = Result<AttrEntry<'a>, MalformedAttr>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((head, tail)) = self.rest.split_first_chunk::<4>() else {
            self.rest = &[];
            return Some(Err(MalformedAttr));
        };
        let column = u16::from_le_bytes([head[0], head[1]]);
        let length = u16::from_le_bytes([head[2], head[3]]);
        if length == NULL_LENGTH {
            self.rest = tail;
            return Some(Ok((column, None)));
        }
        let length = length as usize;
        let padded = length.next_multiple_of(4);
        if tail.len() < padded {
            self.rest = &[];
            return Some(Err(MalformedAttr));
        }
        self.rest = &tail[padded..];
        Some(Ok((column, Some(&tail[..length]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order() {
        let mut section = Vec::new();
        push(&mut section, 0, Some(&7u32.to_le_bytes()));
        push(&mut section, 3, None);
        push(&mut section, 9, Some(b"hello"));
        push(&mut section, 2, Some(b""));
        assert_eq!(section.len() % 4, 0);
        let got: Vec<_> = AttrReader::new(&section).map(Result::unwrap).collect();
        assert_eq!(
            got,
            [(0, Some(&[7u8, 0, 0, 0][..])), (3, None), (9, Some(&b"hello"[..])), (2, Some(&[][..]))]
        );
    }

    #[test]
    fn every_truncation_is_noticed_or_shorter() {
        let mut section = Vec::new();
        push(&mut section, 1, Some(b"abcdef"));
        push(&mut section, 2, Some(b"xyz"));
        for cut in 1..section.len() {
            let whole = AttrReader::new(&section[..cut]).filter(Result::is_ok).count();
            assert!(whole < 2);
            assert_eq!(AttrReader::new(&section[..cut]).is_well_formed(), cut == 12);
        }
    }
}
