//! The reference to a row inside its fragment: page number and slot, stable for the life of the row.

use std::fmt;

/// Bits of a [`RowRef`] that name the slot inside the page.
pub const SLOT_BITS: u32 = 11;
/// Slots a page can have at most.
pub const SLOTS_PER_PAGE_MAX: usize = 1 << SLOT_BITS;
/// Pages a fragment can have at most.
pub const ROW_PAGES_MAX: u32 = 1 << (32 - SLOT_BITS);

/// Where a row lies in its fragment: page number in the upper 21 bits, slot in the lower 11.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct RowRef(pub u32);

impl RowRef {
    /// The reference of `slot` on `page`.
    #[inline]
    pub fn new(page: u32, slot: u32) -> Self {
        debug_assert!(page < ROW_PAGES_MAX && (slot as usize) < SLOTS_PER_PAGE_MAX);
        RowRef(page << SLOT_BITS | slot)
    }

    /// The page number.
    #[inline]
    pub fn page(self) -> u32 {
        self.0 >> SLOT_BITS
    }

    /// The slot on the page.
    #[inline]
    pub fn slot(self) -> u32 {
        self.0 & (SLOTS_PER_PAGE_MAX as u32 - 1)
    }
}

impl fmt::Debug for RowRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.page(), self.slot())
    }
}
