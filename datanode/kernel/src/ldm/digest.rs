//! Digest: what a fragment replica holds, in a few numbers that replicas can be compared by.
//!
//! It does not depend on where rows lie. Taken while transactions are under way it shows something in
//! between; the comparison means something when the fragment is quiet.

use super::fragment::Fragment;
use super::tup::ScanStep;
use signals::key::KeyHash;
use signals::{FragmentId, TableId};

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FragmentDigest {
    /// The table.
    pub table: TableId,
    /// The fragment.
    pub fragment: FragmentId,
    /// Rows, uncommitted inserts included.
    pub rows: u64,
    /// The sum of the hashes of all rows' contents: the same for the same rows in any order.
    pub sum: u64,
    /// Rows that their own key does not lead to; always 0.
    pub strays: u64,
    /// Bytes of data memory held.
    pub bytes: u64,
}

impl FragmentDigest {
    /// Whether two replicas hold the same rows.
    #[must_use]
    pub fn same_rows(&self, other: &Self) -> bool {
        (self.rows, self.sum) == (other.rows, other.sum)
    }

    /// Looks at every row of a fragment.
    pub(super) fn of(table: TableId, id: FragmentId, fragment: &Fragment) -> Self {
        let (stats, index_bytes) = fragment.stats();
        let bytes = stats.fixed_alloc_bytes + stats.var_alloc_bytes + index_bytes;
        let mut digest = Self { table, fragment: id, bytes, ..Self::default() };
        let (mut row_bytes, mut key) = (Vec::new(), Vec::new());
        let mut cursor = fragment.tup.start_scan();
        loop {
            let mut budget = u32::MAX;
            let row = match fragment.tup.next(&mut cursor, &mut budget) {
                ScanStep::Row(row) => row,
                ScanStep::Pause => continue,
                ScanStep::End => break,
            };
            row_bytes.clear();
            key.clear();
            fragment.tup.read_all(row, &mut row_bytes);
            fragment.tup.append_key(row, &mut key);
            digest.rows += 1;
            digest.sum = digest.sum.wrapping_add(KeyHash::of(&row_bytes).0);
            digest.strays += u64::from(fragment.find(KeyHash::of(&key), &key) != Some(row));
        }
        digest
    }
}
