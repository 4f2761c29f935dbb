//! One fragment replica in memory: its rows and the hash index over their primary keys, kept in step.
//!
//! A row is in the index from its (uncommitted) insert until its delete is committed or its insert aborted: whoever looks
//! the key up in between finds the row, and with it the operations that hold or wait for it.

use std::sync::Arc;

use signals::key::KeyHash;

use super::acc::HashIndex;
use super::page::DataMemory;
use super::row_ref::RowRef;
use super::tup::{RowLayout, TupError, TupFragment, TupStats};

/// Rows and index of a fragment.
#[derive(Debug)]
pub struct Fragment {
    /// The rows.
    pub tup: TupFragment,
    /// The index over their keys.
    pub acc: HashIndex,
}

impl Fragment {
    /// A fragment without rows; it holds no page.
    #[must_use]
    pub fn new(layout: Arc<RowLayout>, memory: &DataMemory) -> Self {
        Fragment { tup: TupFragment::new(layout, memory), acc: HashIndex::new(memory) }
    }

    /// The row with this key (in normal form), uncommitted inserts included.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Option<RowRef> {
        self.acc.probe(hash.0, |row| self.tup.key_equals(row, key))
    }

    /// First step of a batched lookup: starts loading the index bucket.
    #[inline]
    pub fn prefetch_bucket(&self, hash: KeyHash) {
        self.acc.prefetch(hash.0);
    }

    /// Second step of a batched lookup: starts loading the row that probably has the key.
    #[inline]
    pub fn prefetch_row(&self, hash: KeyHash) {
        if let Some(row) = self.acc.candidate(hash.0) {
            self.tup.prefetch(row);
        }
    }

    /// Third step, for tables with variable columns: starts loading the variable part of the row that probably has the key.
    #[inline]
    pub fn prefetch_body(&self, hash: KeyHash) {
        if let Some(row) = self.acc.candidate(hash.0) {
            self.tup.prefetch_body(row);
        }
    }

    /// Writes a new row, uncommitted, and enters it into the index. No row with this key may exist.
    ///
    /// # Errors
    /// The row cannot be stored as asked; nothing has changed.
    pub fn insert(&mut self, hash: KeyHash, key: &[u8], attrs: &[u8]) -> Result<RowRef, TupError> {
        let row = self.tup.insert(attrs)?;
        if !self.tup.key_equals(row, key) {
            self.tup.abort_insert(row);
            return Err(TupError::KeyMismatch);
        }
        let tup = &self.tup;
        if let Err(full) = self.acc.insert(hash.0, row, |row| tup.key_hash(row).0) {
            self.tup.abort_insert(row);
            return Err(full.into());
        }
        Ok(row)
    }

    /// Takes an uncommitted insert back.
    pub fn abort_insert(&mut self, hash: KeyHash, row: RowRef) {
        let found = self.acc.remove(hash.0, row);
        assert!(found, "row {row:?} is not in the index");
        self.tup.abort_insert(row);
    }

    /// Takes a row away.
    pub fn commit_delete(&mut self, hash: KeyHash, row: RowRef) {
        let found = self.acc.remove(hash.0, row);
        assert!(found, "row {row:?} is not in the index");
        self.tup.commit_delete(row);
    }

    /// Rows and bytes, and the bytes of the index.
    #[must_use]
    pub fn stats(&self) -> (TupStats, u64) {
        (self.tup.stats(), self.acc.bytes())
    }

    /// Forgets all rows and gives up to `max_pages` (at least one) pages back; true when none is left. For dropping a table in slices.
    pub fn free_some(&mut self, max_pages: usize) -> bool {
        // The last slice of the rows may bring the first of the index with it: at most twice the pages.
        self.tup.free_some(max_pages) && self.acc.free_some(max_pages)
    }
}
