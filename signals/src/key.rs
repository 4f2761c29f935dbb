//! Keys: their normal form and their hash.
//!
//! A key travels in **normal form**: the key columns in key order, fixed columns as their storage bytes,
//! variable ones as a 16-bit length and their bytes; character columns whose collation is not binary are
//! replaced by their weight string (and carry the length prefix even when stored fixed). Two keys are equal
//! exactly when their normal forms are equal bytes, so the kernel hashes and compares without knowing
//! collations. The client that builds the key does the collation work; the values themselves travel beside
//! it as AttrInfo.
//!
//! The hash is XXH3 with seed 0. It decides where rows live and is part of the data format: it never changes.

use crate::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use xxhash_rust::xxh3::xxh3_64;

/// The hash of a normalised key.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// Hashes a normalised key, or the distribution part of one.
    #[inline]
    #[must_use]
    pub fn of(normal_key: &[u8]) -> Self {
        Self(xxh3_64(normal_key))
    }

    /// The bucket of the partition map this hash falls into. Uses other bits than the hash index does, so
    /// that the rows of one partition still spread over all its index buckets.
    #[inline]
    #[must_use]
    pub fn bucket(self) -> u16 {
        ((self.0 >> 32) % crate::partition::BUCKETS as u64) as u16
    }
}

/// Whether a column stands in a normalised key with a length prefix.
#[must_use]
pub fn is_prefixed(column: &ColumnDef) -> bool {
    matches!(column.storage, ColumnStorage::Var { .. }) || is_weighted(column)
}

/// Whether a column stands in a normalised key as its weight string instead of its bytes.
#[must_use]
pub fn is_weighted(column: &ColumnDef) -> bool {
    column.kind == ColumnType::Char && !crate::collation::Collation(column.collation).is_binary_comparable()
}

/// Appends one key column's normal form.
pub fn push_normal(out: &mut Vec<u8>, column: &ColumnDef, value: &[u8]) {
    if !is_prefixed(column) {
        out.extend_from_slice(value);
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    if is_weighted(column) {
        crate::collation::Collation(column.collation).append_weight_string(value, out);
    } else {
        out.extend_from_slice(value);
    }
    let length = (out.len() - at - 2) as u16;
    out[at..at + 2].copy_from_slice(&length.to_le_bytes());
}

/// Splits a normalised key into its columns; `None` if it does not have the table's shape.
#[must_use]
pub fn split_normal<'a>(table: &TableDef, key: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let mut rest = key;
    let mut parts = Vec::with_capacity(table.primary_key.len());
    for id in &table.primary_key {
        let length = normal_length(table.columns.get(*id as usize)?, rest)?;
        let (part, tail) = rest.split_at_checked(length)?;
        parts.push(part);
        rest = tail;
    }
    rest.is_empty().then_some(parts)
}

fn normal_length(column: &ColumnDef, rest: &[u8]) -> Option<usize> {
    if is_prefixed(column) {
        let prefix = rest.first_chunk::<2>()?;
        Some(2 + u16::from_le_bytes(*prefix) as usize)
    } else {
        Some(column.storage.max_bytes())
    }
}

/// How to take a table's distribution hash out of a normalised key without allocating.
#[derive(Clone, Debug)]
pub struct KeyShape {
    /// Per key column: fixed length, or `None` if prefixed; and whether it is in the distribution key.
    parts: Vec<(Option<u16>, bool)>,
    /// Total length if every column is fixed.
    fixed_length: Option<usize>,
    /// Whether the distribution key is the whole key.
    whole: bool,
}

impl KeyShape {
    /// The shape of `table`'s keys.
    #[must_use]
    pub fn of(table: &TableDef) -> Self {
        let parts: Vec<_> = table
            .primary_key
            .iter()
            .map(|id| {
                let column = &table.columns[*id as usize];
                let length = (!is_prefixed(column)).then(|| column.storage.max_bytes() as u16);
                (length, table.distribution_key.contains(id))
            })
            .collect();
        let fixed_length = parts.iter().map(|p| p.0.map(usize::from)).sum();
        Self { whole: parts.iter().all(|p| p.1), parts, fixed_length }
    }

    /// Whether the distribution key is the whole key, so that one hash serves placement and index.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether `key` has the length of a table's keys, for tables whose key columns are all fixed.
    #[inline]
    #[must_use]
    pub fn fits(&self, key: &[u8]) -> bool {
        self.fixed_length == Some(key.len())
    }

    /// The distribution hash of `key`, or `None` if the bytes do not have the table's key shape.
    #[inline]
    #[must_use]
    pub fn distribution_hash(&self, key: &[u8]) -> Option<KeyHash> {
        match self.fixed_length {
            Some(length) if length != key.len() => None,
            Some(_) if self.whole => Some(KeyHash::of(key)),
            _ => self.distribution_hash_slow(key),
        }
    }

    fn distribution_hash_slow(&self, key: &[u8]) -> Option<KeyHash> {
        let mut rest = key;
        let mut picked = Vec::new();
        for (fixed, distributes) in &self.parts {
            let length = match fixed {
                Some(n) => *n as usize,
                None => 2 + u16::from_le_bytes(*rest.first_chunk::<2>()?) as usize,
            };
            let (part, tail) = rest.split_at_checked(length)?;
            if *distributes && !self.whole {
                picked.extend_from_slice(part);
            }
            rest = tail;
        }
        if !rest.is_empty() {
            return None;
        }
        Some(KeyHash::of(if self.whole { key } else { &picked }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_part_of_the_format() {
        // Changing these numbers means old data is looked for in the wrong partition.
        assert_eq!(KeyHash::of(&[]).0, 0x2d06_8005_38d3_94c2);
        // The reference implementation's value.
        assert_eq!(KeyHash::of(b"nucdb").0, 0x6842_ae97_d541_b923);
        assert!(KeyHash(u64::MAX).bucket() < 3840);
    }

    #[test]
    fn the_distribution_part_is_hashed_alone() {
        let table = crate::table::tests::table(); // key (c varchar, a u32), distributed by a
        let mut key = Vec::new();
        push_normal(&mut key, &table.columns[2], b"xy");
        push_normal(&mut key, &table.columns[0], &5u32.to_le_bytes());
        assert_eq!(key, [2, 0, b'x', b'y', 5, 0, 0, 0]);
        let shape = KeyShape::of(&table);
        assert_eq!(shape.distribution_hash(&key), Some(KeyHash::of(&5u32.to_le_bytes())));
        assert_eq!(shape.distribution_hash(&key[..7]), None);
        assert_eq!(shape.distribution_hash(&[255, 255, 1]), None);
        assert_eq!(split_normal(&table, &key).unwrap(), [&key[..4], &key[4..]]);
        assert_eq!(split_normal(&table, &key[..5]), None);
    }
}
