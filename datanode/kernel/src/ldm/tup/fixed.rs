//! The fixed part of a fragment: row slots of one size on pages, and the fields of the row header.
//!
//! A slot is free or allocated (a flag in its header). Free slots of a page form a list through their
//! headers; slots above the page's `fresh` mark were never used and are zero, which reads as free. A page
//! whose last row goes is given back at once and its number is used again; a row never moves, so its
//! reference holds for its life.

use crate::ldm::page::{BytePage, DataMemory, MemoryFull, PAGE_BYTES, PageTable};
use crate::ldm::page_lists::PageLists;
use crate::ldm::prefetch::prefetch_bytes;
use crate::ldm::row_ref::{ROW_PAGES_MAX, RowRef};

/// In the header of a row: no operation waits for or holds it.
pub const NO_OPERATION: u32 = u32::MAX;

const ALLOCATED: u8 = 1;
const UNCOMMITTED: u8 = 2;

const EPOCH: usize = 0;
const OP_HEAD: usize = 8;
const FLAGS: usize = 12;

/// Bookkeeping of one page.
#[derive(Debug, Clone, Copy, Default)]
struct PageState {
    used: u16,
    /// Slots from here on were never used.
    fresh: u16,
    /// First slot of the free list plus one; the list goes on in the slots' `OP_HEAD`.
    free: u16,
}

/// Rows' fixed parts.
#[derive(Debug)]
pub(super) struct FixedPart {
    pages: PageTable<BytePage>,
    state: Vec<PageState>,
    with_room: PageLists<1>,
    slot_bytes: usize,
    slots_per_page: u32,
    rows: u64,
}

/// What lies at a place of the row space, for a scan.
pub(super) enum Place {
    Row,
    Free,
    NoPage,
}

impl FixedPart {
    pub(super) fn new(memory: &DataMemory, slot_bytes: usize, slots_per_page: usize) -> Self {
        FixedPart {
            // The highest page number stays unused so that no row reference is all ones.
            pages: PageTable::new(memory, ROW_PAGES_MAX - 1),
            state: Vec::new(),
            with_room: PageLists::default(),
            slot_bytes,
            slots_per_page: slots_per_page as u32,
            rows: 0,
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn pages(&self) -> u32 {
        self.pages.used()
    }

    /// One more than the highest page number in use.
    pub(super) fn pages_end(&self) -> u32 {
        self.pages.numbers_end()
    }

    pub(super) fn slots_per_page(&self) -> u32 {
        self.slots_per_page
    }

    /// Takes a free slot and marks it as an uncommitted row without operations. The image holds old bytes.
    pub(super) fn alloc(&mut self) -> Result<RowRef, MemoryFull> {
        let page = match self.with_room.first(0) {
            Some(page) => page,
            None => self.add_page()?,
        };
        let state = &mut self.state[page as usize];
        let slot = if state.free == 0 {
            state.fresh += 1;
            state.fresh - 1
        } else {
            state.free - 1
        };
        state.used += 1;
        let (full, from_list) = (u32::from(state.used) == self.slots_per_page, state.free != 0);
        if full {
            self.with_room.set(page, None);
        }
        let row = RowRef::new(page, u32::from(slot));
        if from_list {
            self.state[page as usize].free = self.op_head(row) as u16;
        }
        self.rows += 1;
        let header = self.header_mut(row);
        header[EPOCH..EPOCH + 8].fill(0);
        header[OP_HEAD..OP_HEAD + 4].copy_from_slice(&NO_OPERATION.to_le_bytes());
        header[FLAGS] = ALLOCATED | UNCOMMITTED;
        Ok(row)
    }

    #[cold]
    fn add_page(&mut self) -> Result<u32, MemoryFull> {
        let page = self.pages.add()?;
        if self.state.len() <= page as usize {
            self.state.resize(page as usize + 1, PageState::default());
        }
        self.state[page as usize] = PageState::default();
        self.with_room.set(page, Some(0));
        Ok(page)
    }

    /// Frees the slot, and its page with the last one.
    pub(super) fn free(&mut self, row: RowRef) {
        assert!(self.is_row(row), "row {row:?} freed twice");
        self.rows -= 1;
        let state = &mut self.state[row.page() as usize];
        state.used -= 1;
        if state.used == 0 {
            self.with_room.set(row.page(), None);
            self.pages.remove(row.page());
            return;
        }
        let next = u32::from(state.free);
        state.free = row.slot() as u16 + 1;
        self.with_room.set(row.page(), Some(0));
        self.set_op_head(row, next);
        self.header_mut(row)[FLAGS] = 0;
    }

    /// The whole slot.
    #[inline]
    pub(super) fn slot(&self, row: RowRef) -> &[u8] {
        let at = row.slot() as usize * self.slot_bytes;
        &self.pages.page(row.page()).bytes[at..at + self.slot_bytes]
    }

    /// The whole slot, to change.
    #[inline]
    pub(super) fn slot_mut(&mut self, row: RowRef) -> &mut [u8] {
        let at = row.slot() as usize * self.slot_bytes;
        &mut self.pages.page_mut(row.page()).bytes[at..at + self.slot_bytes]
    }

    #[inline]
    fn header_mut(&mut self, row: RowRef) -> &mut [u8] {
        self.slot_mut(row)
    }

    #[inline]
    pub(super) fn epoch(&self, row: RowRef) -> u64 {
        self.slot(row).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    pub(super) fn op_head(&self, row: RowRef) -> u32 {
        self.slot(row)[OP_HEAD..].first_chunk().map_or(NO_OPERATION, |bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    pub(super) fn set_op_head(&mut self, row: RowRef, head: u32) {
        self.slot_mut(row)[OP_HEAD..OP_HEAD + 4].copy_from_slice(&head.to_le_bytes());
    }

    #[inline]
    pub(super) fn is_uncommitted(&self, row: RowRef) -> bool {
        self.slot(row)[FLAGS] & UNCOMMITTED != 0
    }

    /// Gives the row an epoch and so makes it a committed one.
    pub(super) fn commit(&mut self, row: RowRef, epoch: u64) {
        let header = self.header_mut(row);
        debug_assert!(header[FLAGS] & ALLOCATED != 0);
        header[EPOCH..EPOCH + 8].copy_from_slice(&epoch.to_le_bytes());
        header[FLAGS] &= !UNCOMMITTED;
    }

    /// Whether the reference, which may come from anywhere, names a row.
    pub(super) fn is_row(&self, row: RowRef) -> bool {
        matches!(self.place(row), Place::Row)
    }

    /// What lies at that place.
    #[inline]
    pub(super) fn place(&self, row: RowRef) -> Place {
        let Some(page) = self.pages.get(row.page()) else { return Place::NoPage };
        if row.slot() >= self.slots_per_page {
            return Place::Free;
        }
        if page.bytes[row.slot() as usize * self.slot_bytes + FLAGS] & ALLOCATED != 0 {
            Place::Row
        } else {
            Place::Free
        }
    }

    /// Starts loading the row.
    #[inline]
    pub(super) fn prefetch(&self, row: RowRef) {
        prefetch_bytes(self.slot(row));
    }

    /// Forgets all rows and gives up to `max_pages` pages back; tells how many.
    pub(super) fn free_some(&mut self, max_pages: usize) -> usize {
        self.rows = 0;
        self.with_room.clear();
        self.state.clear();
        self.pages.free_some(max_pages)
    }
}

const _: () = assert!(FLAGS < super::layout::HEADER_BYTES && PAGE_BYTES <= u16::MAX as usize + 1);
