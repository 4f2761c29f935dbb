//! Scanning a fragment: every row in row order, a bounded piece of work at a time.
//!
//! A cursor is a place in the row space, not a row, so it stays valid whatever happens to rows and pages
//! between two calls. Rows that are there from the start of the scan to the moment it passes them are seen
//! exactly once. Rows that come or go meanwhile may or may not be seen. Uncommitted inserts are seen too:
//! what to do with them is for lqh to say.

use super::TupFragment;
use super::fixed::Place;
use crate::ldm::row_ref::RowRef;

/// How far a scan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    page: u32,
    slot: u32,
    /// Pages from here on did not exist when the scan started.
    end: u32,
}

/// What a scan came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanStep {
    /// The next row.
    Row(RowRef),
    /// The budget is used up; go on later.
    Pause,
    /// There are no more rows.
    End,
}

impl TupFragment {
    /// A cursor before the first row.
    #[must_use]
    pub fn start_scan(&self) -> Cursor {
        Cursor { page: 0, slot: 0, end: self.fixed.pages_end() }
    }

    /// The next row. Every slot examined and every missing page costs one of `budget`.
    #[inline]
    pub fn next(&self, cursor: &mut Cursor, budget: &mut u32) -> ScanStep {
        let slots = self.fixed.slots_per_page();
        while cursor.page < cursor.end {
            if *budget == 0 {
                return ScanStep::Pause;
            }
            *budget -= 1;
            let row = RowRef::new(cursor.page, cursor.slot);
            let place = self.fixed.place(row);
            if matches!(place, Place::NoPage) || cursor.slot + 1 == slots {
                cursor.page += 1;
                cursor.slot = 0;
            } else {
                cursor.slot += 1;
            }
            if matches!(place, Place::Row) {
                return ScanStep::Row(row);
            }
        }
        ScanStep::End
    }
}
