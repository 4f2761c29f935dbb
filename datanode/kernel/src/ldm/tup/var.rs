//! The variable part of a fragment: the bodies of rows with variable columns, packed on pages.
//!
//! An entry is `owner (4) | size (2) | body`, one after the other from the start of a page; a deleted entry
//! stays as a hole (owner all ones) until the page is compacted. The owner is the row, whose variable
//! reference names page and offset directly: a read goes from the row to the body with no directory in
//! between, and a compaction, which moves entries down over the holes, tells each owner its new offset.
//! Overhead per row: 8 bytes of reference in the row, 6 bytes of entry head, 2 bytes per variable column.
//!
//! Space is promised before it is used. A write that will need a new entry at commit makes a
//! [`Reservation`], which takes the bytes from a page's free count but puts nothing there; so nothing
//! uncommitted lies in a page, compaction can move all it sees, and placing a promised entry cannot fail.
//!
//! Which page? The current one, to whose end entries are appended. When it has no more room at its end: a
//! page with at least a quarter free (compacted when used), else a new page, else, with memory full, any
//! page with enough room. Pages are kept in lists by free space in steps of 2 KiB. A page without entries
//! and promises is given back at once.

use crate::ldm::page::{BytePage, DataMemory, MemoryFull, PAGE_BYTES, PageTable};
use crate::ldm::page_lists::PageLists;
use crate::ldm::row_ref::RowRef;

/// Bytes of an entry before its body.
pub(super) const ENTRY_HEAD_BYTES: usize = 6;
/// Owner of a hole.
const HOLE: u32 = u32::MAX;
/// Step of the lists by free space.
const CLASS_BYTES: usize = 2048;
const CLASSES: usize = PAGE_BYTES / CLASS_BYTES + 1;
/// Pages with less free space than this are only used again when memory is full.
const REUSE_BYTES: usize = PAGE_BYTES / 4;
/// Pages of the class around the wanted size that are tried one by one when memory is full.
const LAST_RESORT_TRIES: usize = 16;
/// A body that shrinks by this much gives the difference back.
const SHRINK_BYTES: usize = 32;

/// Where a body is: what the variable reference in a row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VarRef {
    pub(super) page: u32,
    /// Of the entry, head included.
    pub(super) offset: u16,
    /// Of the body.
    pub(super) len: u16,
}

impl VarRef {
    /// The reference of a row whose variable columns are all empty.
    pub(super) const NONE: VarRef = VarRef { page: u32::MAX, offset: 0, len: 0 };

    #[inline]
    pub(super) fn from_bytes(b: [u8; 8]) -> Self {
        VarRef {
            page: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            offset: u16::from_le_bytes([b[4], b[5]]),
            len: u16::from_le_bytes([b[6], b[7]]),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 8] {
        let (page, offset, len) =
            (self.page.to_le_bytes(), self.offset.to_le_bytes(), self.len.to_le_bytes());
        [page[0], page[1], page[2], page[3], offset[0], offset[1], len[0], len[1]]
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.page == u32::MAX
    }
}

/// Space promised for one entry.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Reservation {
    page: u32,
    /// Of the entry, head included.
    size: u16,
}

impl Reservation {
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.size)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct PageState {
    /// Where the next entry goes.
    end: u16,
    /// Bytes neither in entries nor promised.
    free: u16,
    entries: u16,
    promises: u16,
}

/// Bytes and entries of the variable part, for statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VarTotals {
    pub(super) entries: u64,
    /// Bytes in entries and promises.
    pub(super) used_bytes: u64,
    /// Pages compacted so far.
    pub(super) compactions: u64,
}

/// Rows' variable parts.
#[derive(Debug)]
pub(super) struct VarPart {
    pages: PageTable<BytePage>,
    state: Vec<PageState>,
    by_room: PageLists<CLASSES>,
    current: Option<u32>,
    totals: VarTotals,
}

impl VarPart {
    pub(super) fn new(memory: &DataMemory) -> Self {
        VarPart {
            pages: PageTable::new(memory, u32::MAX - 1),
            state: Vec::new(),
            by_room: PageLists::default(),
            current: None,
            totals: VarTotals::default(),
        }
    }

    pub(super) fn pages(&self) -> u32 {
        self.pages.used()
    }

    pub(super) fn totals(&self) -> VarTotals {
        self.totals
    }

    /// The body at `at`.
    #[inline]
    pub(super) fn body(&self, at: VarRef) -> &[u8] {
        if at.is_none() {
            return &[];
        }
        let start = at.offset as usize + ENTRY_HEAD_BYTES;
        &self.pages.page(at.page).bytes[start..start + at.len as usize]
    }

    /// The body at `at`, to write.
    pub(super) fn body_mut(&mut self, at: VarRef) -> &mut [u8] {
        if at.is_none() {
            return &mut [];
        }
        let start = at.offset as usize + ENTRY_HEAD_BYTES;
        &mut self.pages.page_mut(at.page).bytes[start..start + at.len as usize]
    }

    /// The longest body the entry at `at` can hold where it is.
    pub(super) fn capacity(&self, at: VarRef) -> usize {
        if at.is_none() {
            return 0;
        }
        let (_, size) = self.head(at.page, at.offset as usize);
        size - ENTRY_HEAD_BYTES
    }

    /// Promises room for a body of `len` bytes, at least one.
    pub(super) fn reserve(&mut self, len: usize) -> Result<Reservation, MemoryFull> {
        debug_assert!(len > 0);
        let size = len + ENTRY_HEAD_BYTES;
        let page = match self.current {
            Some(page) if self.fits_at_end(page, size) => page,
            _ => self.choose_page(size)?,
        };
        let state = &mut self.state[page as usize];
        state.free -= size as u16;
        state.promises += 1;
        self.totals.used_bytes += size as u64;
        self.relist(page);
        Ok(Reservation { page, size: size as u16 })
    }

    /// Takes a promise back.
    #[expect(clippy::needless_pass_by_value, reason = "a promise is used up by this")]
    pub(super) fn release(&mut self, promise: Reservation) {
        let state = &mut self.state[promise.page as usize];
        state.free += promise.size;
        state.promises -= 1;
        self.totals.used_bytes -= u64::from(promise.size);
        self.tidy(promise.page);
    }

    /// Makes the promised entry for `owner`; the caller fills its body. `moved` is told about every other
    /// entry that changes its offset.
    #[expect(clippy::needless_pass_by_value, reason = "a promise is used up by this")]
    pub(super) fn place(
        &mut self,
        promise: Reservation,
        owner: RowRef,
        moved: impl FnMut(RowRef, u16),
    ) -> VarRef {
        let Reservation { page, size } = promise;
        if self.state[page as usize].end as usize + size as usize > PAGE_BYTES {
            self.compact(page, moved);
        }
        let state = &mut self.state[page as usize];
        let offset = state.end;
        state.end += size;
        state.entries += 1;
        state.promises -= 1;
        self.totals.entries += 1;
        self.set_head(page, offset as usize, owner.0, size as usize);
        VarRef { page, offset, len: size - ENTRY_HEAD_BYTES as u16 }
    }

    /// Deletes the entry.
    pub(super) fn free(&mut self, at: VarRef) {
        if at.is_none() {
            return;
        }
        let (_, size) = self.head(at.page, at.offset as usize);
        self.set_head(at.page, at.offset as usize, HOLE, size);
        let state = &mut self.state[at.page as usize];
        state.entries -= 1;
        self.totals.entries -= 1;
        self.give_back(at.page, at.offset as usize, size);
    }

    /// Changes the length of the body where it is; it must fit. Gives the new reference.
    pub(super) fn resize(&mut self, at: VarRef, len: usize) -> VarRef {
        let (owner, size) = self.head(at.page, at.offset as usize);
        assert!(len + ENTRY_HEAD_BYTES <= size, "a body of {len} bytes was not promised room");
        let over = size - ENTRY_HEAD_BYTES - len;
        if over >= SHRINK_BYTES {
            let kept = size - over;
            self.set_head(at.page, at.offset as usize, owner, kept);
            self.set_head(at.page, at.offset as usize + kept, HOLE, over);
            self.give_back(at.page, at.offset as usize + kept, over);
        }
        VarRef { len: len as u16, ..at }
    }

    /// Forgets all entries and gives up to `max_pages` pages back; tells how many.
    pub(super) fn free_some(&mut self, max_pages: usize) -> usize {
        self.state.clear();
        self.by_room.clear();
        self.current = None;
        self.totals = VarTotals::default();
        self.pages.free_some(max_pages)
    }

    fn fits_at_end(&self, page: u32, size: usize) -> bool {
        let state = &self.state[page as usize];
        state.free as usize >= size && state.end as usize + size <= PAGE_BYTES
    }

    /// A page with room for an entry of `size` bytes; it becomes the current one.
    #[cold]
    fn choose_page(&mut self, size: usize) -> Result<u32, MemoryFull> {
        if let Some(page) = self.first_with(size.max(REUSE_BYTES)) {
            self.current = Some(page);
            return Ok(page);
        }
        match self.pages.add() {
            Ok(page) => {
                if self.state.len() <= page as usize {
                    self.state.resize(page as usize + 1, PageState::default());
                }
                self.state[page as usize] = PageState { free: PAGE_BYTES as u16, ..PageState::default() };
                self.current = Some(page);
                Ok(page)
            }
            Err(full) => self.first_with(size).or_else(|| self.last_resort(size)).ok_or(full),
        }
    }

    /// The fullest page known to have `bytes` free.
    fn first_with(&self, bytes: usize) -> Option<u32> {
        (bytes.div_ceil(CLASS_BYTES)..CLASSES).find_map(|class| self.by_room.first(class))
    }

    /// A page of the class in which some pages have the room and some have not.
    fn last_resort(&self, size: usize) -> Option<u32> {
        let first = self.by_room.first(size / CLASS_BYTES);
        std::iter::successors(first, |&page| self.by_room.after(page))
            .take(LAST_RESORT_TRIES)
            .find(|&page| self.state[page as usize].free as usize >= size)
    }

    /// Counts bytes as free again that end an entry or were one.
    fn give_back(&mut self, page: u32, offset: usize, size: usize) {
        let state = &mut self.state[page as usize];
        state.free += size as u16;
        if offset + size == state.end as usize {
            state.end = offset as u16;
        }
        if state.entries == 0 {
            state.end = 0;
        }
        self.totals.used_bytes -= size as u64;
        self.tidy(page);
    }

    /// After space became free: gives the page back if nothing is left on it, else puts it into the right
    /// list.
    fn tidy(&mut self, page: u32) {
        let state = self.state[page as usize];
        if state.entries > 0 || state.promises > 0 {
            return self.relist(page);
        }
        self.by_room.set(page, None);
        if self.current == Some(page) {
            self.current = None;
        }
        self.pages.remove(page);
    }

    fn relist(&mut self, page: u32) {
        let class = self.state[page as usize].free as usize / CLASS_BYTES;
        self.by_room.set(page, Some(class));
    }

    /// Moves all entries of the page together at its start.
    fn compact(&mut self, page: u32, mut moved: impl FnMut(RowRef, u16)) {
        self.totals.compactions += 1;
        let end = self.state[page as usize].end as usize;
        let (mut from, mut to) = (0, 0);
        while from < end {
            let (owner, size) = self.head(page, from);
            if owner != HOLE {
                if from != to {
                    self.pages.page_mut(page).bytes.copy_within(from..from + size, to);
                    moved(RowRef(owner), to as u16);
                }
                to += size;
            }
            from += size;
        }
        self.state[page as usize].end = to as u16;
    }

    /// Owner and size of the entry at `offset`.
    #[inline]
    fn head(&self, page: u32, offset: usize) -> (u32, usize) {
        let bytes = &self.pages.page(page).bytes[offset..offset + ENTRY_HEAD_BYTES];
        let owner = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        (owner, u16::from_le_bytes([bytes[4], bytes[5]]) as usize)
    }

    fn set_head(&mut self, page: u32, offset: usize, owner: u32, size: usize) {
        let bytes = &mut self.pages.page_mut(page).bytes[offset..offset + ENTRY_HEAD_BYTES];
        bytes[..4].copy_from_slice(&owner.to_le_bytes());
        bytes[4..].copy_from_slice(&(size as u16).to_le_bytes());
    }

    /// Checks the bookkeeping of every page, and that every entry is the one its owner refers to.
    #[cfg(test)]
    pub(super) fn check(&self, promised_bytes: u64, ref_of: impl Fn(RowRef) -> VarRef) {
        let (mut entries, mut used, mut promises) = (0, 0, 0);
        for page in 0..self.pages.numbers_end() {
            if self.pages.get(page).is_none() {
                continue;
            }
            let state = self.state[page as usize];
            let (mut at, mut live_entries, mut live_bytes) = (0, 0, 0);
            while at < state.end as usize {
                let (owner, size) = self.head(page, at);
                assert!(size >= ENTRY_HEAD_BYTES, "entry of {size} bytes at {page}.{at}");
                if owner != HOLE {
                    let refers = ref_of(RowRef(owner));
                    assert_eq!((refers.page, refers.offset as usize), (page, at));
                    live_entries += 1;
                    live_bytes += size;
                }
                at += size;
            }
            assert_eq!(at, state.end as usize);
            assert_eq!(live_entries, state.entries);
            let promised = PAGE_BYTES - live_bytes - state.free as usize;
            assert!(promised == 0 || state.promises > 0);
            assert!(state.entries > 0 || state.promises > 0, "an empty page was kept");
            entries += u64::from(live_entries);
            used += live_bytes as u64;
            promises += promised as u64;
        }
        assert_eq!(promises, promised_bytes, "promised bytes leaked");
        assert_eq!((entries, used + promises), (self.totals.entries, self.totals.used_bytes));
    }
}
