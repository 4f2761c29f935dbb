//! Rows of the mixed load: what one holds, how it is written, and how it is read back to the last byte.
//!
//! Every value comes from the stamp of the change that wrote it, a number no other change has. So a row says
//! who wrote each of its columns, and a byte that is not what its stamp makes it shows.

use crate::sim::load::column;
use crate::sim::rng::Rng;
use ndbapi::{NdbError, OpBuilder, Value};
use signals::table::{ColumnDef, ColumnStorage, ColumnType};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most bytes of the two columns of variable length.
const TEXT_MAX: u16 = 4000;
const BYTES_MAX: u16 = 300;

/// A value of variable length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Long {
    Null,
    Empty,
    /// Made from a stamp.
    Of(u64),
}

/// A row but for its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// Its last change.
    stamp: u64,
    number: Option<i64>,
    text: Long,
    bytes: Long,
}

/// What a change sets, beside the stamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets {
    stamp: u64,
    number: Option<Option<i64>>,
    text: Option<Long>,
    bytes: Option<Long>,
}

impl Sets {
    /// Sets every column.
    pub(super) fn all(stamp: u64, rng: &mut Rng) -> Self {
        Self {
            stamp,
            number: Some(draw_number(stamp, rng)),
            text: Some(draw_long(stamp, rng)),
            bytes: Some(draw_long(stamp, rng)),
        }
    }

    /// Sets some columns.
    pub(super) fn some(stamp: u64, rng: &mut Rng) -> Self {
        let all = Self::all(stamp, rng);
        Self {
            stamp,
            number: all.number.filter(|_| rng.chance(500)),
            text: all.text.filter(|_| rng.chance(500)),
            bytes: all.bytes.filter(|_| rng.chance(500)),
        }
    }

    /// What a row holds afterwards.
    pub(super) fn after(&self, before: Option<&Content>) -> Content {
        let before = before.copied().unwrap_or(Content {
            stamp: 0,
            number: None,
            text: Long::Null,
            bytes: Long::Null,
        });
        Content {
            stamp: self.stamp,
            number: self.number.unwrap_or(before.number),
            text: self.text.unwrap_or(before.text),
            bytes: self.bytes.unwrap_or(before.bytes),
        }
    }

    /// Sets the columns of an operation.
    pub(super) fn put<'b>(&self, operation: OpBuilder<'b>) -> OpBuilder<'b> {
        let mut operation = operation.set("stamp", self.stamp);
        if let Some(number) = self.number {
            operation = operation.set("number", number);
        }
        for (name, value, most) in [("text", self.text, TEXT_MAX), ("bytes", self.bytes, BYTES_MAX)] {
            operation = match value {
                None => operation,
                Some(Long::Null) => operation.set(name, Value::Null),
                Some(Long::Empty) => operation.set(name, Value::Bytes(&[])),
                Some(Long::Of(stamp)) => operation.set(name, Value::Bytes(&made(stamp, most))),
            };
        }
        operation
    }
}

fn draw_number(stamp: u64, rng: &mut Rng) -> Option<i64> {
    rng.chance(700).then_some(stamp as i64)
}

fn draw_long(stamp: u64, rng: &mut Rng) -> Long {
    match rng.below(10) {
        0 | 1 => Long::Null,
        2 => Long::Empty,
        _ => Long::Of(stamp),
    }
}

/// The bytes a stamp makes: the stamp itself, then a pattern of a length of its own. Most are short.
fn made(stamp: u64, most: u16) -> Vec<u8> {
    let hash = xxh3_64_with_seed(&stamp.to_le_bytes(), u64::from(most));
    let longest = (1u64 << (hash % 13)).min(u64::from(most) - 8);
    let length = 8 + ((hash >> 8) % (longest + 1)) as usize;
    let mut bytes = stamp.to_le_bytes().to_vec();
    let mut word = hash;
    while bytes.len() < length {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ stamp;
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The table's columns.
pub(super) fn columns() -> Vec<ColumnDef> {
    let nullable = |mut column: ColumnDef| {
        column.nullable = true;
        column
    };
    let var = |max_len| ColumnStorage::Var { max_len };
    vec![
        column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
        column("stamp", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
        nullable(column("number", ColumnType::Signed, ColumnStorage::Fixed { size: 8 })),
        nullable(column("text", ColumnType::Binary, var(TEXT_MAX))),
        nullable(column("bytes", ColumnType::Binary, var(BYTES_MAX))),
    ]
}

/// Reads a row back: its key and what it holds.
///
/// # Errors
/// A column does not hold what any stamp makes.
pub(super) fn decode(row: &ndbapi::Row<'_>) -> Result<(u32, Content), String> {
    let parts = || -> Result<_, NdbError> {
        Ok((
            row.get_u32("id")?,
            row.get_u64("stamp")?,
            row.get_i64("number")?,
            row.get_bytes("text")?,
            row.get_bytes("bytes")?,
        ))
    };
    let (id, stamp, number, text, bytes) = parts().map_err(|e| format!("a row cannot be read: {e}"))?;
    let (Some(id), Some(stamp)) = (id, stamp) else {
        return Err("a row has NULL in a NOT NULL column".into());
    };
    let content = Content { stamp, number, text: long(text, TEXT_MAX)?, bytes: long(bytes, BYTES_MAX)? };
    Ok((id, content))
}

fn long(bytes: Option<&[u8]>, most: u16) -> Result<Long, String> {
    let Some(bytes) = bytes else { return Ok(Long::Null) };
    if bytes.is_empty() {
        return Ok(Long::Empty);
    }
    let stamp = bytes.first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
    match stamp {
        Some(stamp) if made(stamp, most) == bytes => Ok(Long::Of(stamp)),
        _ => Err(format!("{} bytes that no change has written, stamp {stamp:?}", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stamps_make_is_told_apart() {
        let mut lengths = Vec::new();
        for stamp in 1..500u64 {
            let bytes = made(stamp, TEXT_MAX);
            assert_eq!(long(Some(&bytes), TEXT_MAX), Ok(Long::Of(stamp)));
            lengths.push(bytes.len());
            let mut torn = made(stamp + 1, TEXT_MAX);
            torn.splice(..8, stamp.to_le_bytes());
            assert!(torn == bytes || long(Some(&torn), TEXT_MAX).is_err(), "stamp {stamp}");
        }
        lengths.sort_unstable();
        assert!(lengths[0] == 8 && lengths[250] < 200 && lengths[498] > 2000 && lengths[498] <= 4000);
        assert_eq!((long(None, 9), long(Some(&[]), 9)), (Ok(Long::Null), Ok(Long::Empty)));
        assert!(long(Some(&[1, 2]), 9).is_err());
    }

    #[test]
    fn a_change_keeps_what_it_does_not_set() {
        let rng = &mut Rng::new(1);
        let first = Sets::all(1, rng).after(None);
        let change = Sets { stamp: 2, number: Some(None), text: None, bytes: Some(Long::Of(2)) };
        let second = change.after(Some(&first));
        assert_eq!(second, Content { stamp: 2, number: None, text: first.text, bytes: Long::Of(2) });
    }
}
