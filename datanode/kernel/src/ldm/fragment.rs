//! One fragment replica in memory: its rows and the hash index over their primary keys, kept in step.
//!
//! A row is in the index from its (uncommitted) insert until its delete is committed or its insert aborted:
//! whoever looks the key up in between finds the row, and with it the operations that hold or wait for it.
//!
//! Speed. `examples/ldm_bench.rs` on a two-core virtual machine with other builds running, best single run,
//! ns per row, keys in random order and hashed within the figure; "batched" is groups of 16 with
//! [`Fragment::prefetch_bucket`], `prefetch_row`, `prefetch_body`, then the read:
//!
//! ```text
//!                            insert  read  batched  update  scan  delete  bytes/row
//!   8-byte key + 8,   5,000     100    40       47      68    17      80         59
//!                 1,000,000     225   350       79     380    18     365         47
//!   8-byte key + 100, 5,000     154    53       49      81    31     101        157
//!                 1,000,000     292   437      101     384    22     405        143
//!   key + var 100,    5,000     120    60       63     117    18      93        170
//!                 1,000,000     355   447      133     742    21     695        155
//! ```
//!
//! Under more load the large tables read up to two and a half times that: they wait for memory, not for
//! the processor. Where the time goes (sampled; the virtual machine shows no hardware counters): a single
//! read of a large table is two waits in a row, bucket then row, each with a walk of the page tables.
//! Prefetching overlaps the waits of a batch and is worth a factor of four; nothing done to the code of a
//! single read comes near. Comparing ten tags at once in three machine words, instead of the loop the
//! compiler half vectorised, took a read in cache from 61 to 40 ns. Bounds checks did not show, so the
//! storage stays safe code. Two megabyte pages (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1` with transparent
//! huge pages on `madvise`) take 5 to 20 % off everything on large tables, and more off a first fill, where
//! the kernel otherwise faults in eight small pages per page of ours; the runtime decides that, not this
//! module.
//!
//! Not done: rows never move, so a page with one row left is a whole page. Deletes scattered evenly over a
//! table leave its fixed part allocated (its own inserts use it again); variable pages are compacted one by
//! one, never merged.

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

    /// Third step, for tables with variable columns: starts loading the variable part of the row that
    /// probably has the key.
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

    /// Forgets all rows and gives up to `max_pages` (at least one) pages back; true when none is left. For
    /// dropping a table in slices.
    pub fn free_some(&mut self, max_pages: usize) -> bool {
        // The last slice of the rows may bring the first of the index with it: at most twice the pages.
        self.tup.free_some(max_pages) && self.acc.free_some(max_pages)
    }
}
