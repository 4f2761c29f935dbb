//! Pages of data memory: the one budget that every row, variable part and hash bucket of a node is paid from.
//!
//! Role. [`DataMemory`] is the node-wide account: a fixed number of 32 KiB pages, shared by all LDM
//! instances through an `Arc` with one atomic counter. A [`PageTable`] is one owner of pages (the fixed
//! part of a fragment, its variable part, its hash buckets): it asks the account before it allocates and
//! tells it when it frees, so the account is a hard limit and an emptied page is at once usable by any
//! other table.
//!
//! Who makes each move. Only a `PageTable` allocates and frees. Dropping a table gives every page back; a
//! big one is emptied first in slices with [`PageTable::free_some`] so that the worker is never held up.
//!
//! What is not counted: the page table itself (8 bytes per page) and a few bytes of bookkeeping per page,
//! together under 0.2 % of what they describe.
//!
//! What it never does: it never waits, never overcommits, never hands a page of one owner to another with old
//! contents in it (pages are born zeroed).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use signals::ErrorCode;

/// Size of a page; every page kind has exactly this size.
pub const PAGE_BYTES: usize = 32 * 1024;

/// A storage resource has run out. The operation that asked is refused; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFull {
    /// The node's DataMemory is used up.
    DataMemory,
    /// The fragment uses every page number a row reference can name.
    FragmentPages,
    /// The fragment's hash index uses every overflow bucket its links can name.
    IndexOverflow,
}

impl MemoryFull {
    /// NDB's error code of this condition.
    pub fn code(self) -> ErrorCode {
        match self {
            MemoryFull::DataMemory => ErrorCode::DATA_MEMORY_FULL,
            MemoryFull::FragmentPages => ErrorCode::FRAGMENT_FULL,
            MemoryFull::IndexOverflow => ErrorCode::INDEX_FULL,
        }
    }
}

impl fmt::Display for MemoryFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            MemoryFull::DataMemory => {
                "out of data memory: all pages of DataMemory are in use (delete rows, or raise DataMemory)"
            }
            MemoryFull::FragmentPages => {
                "fragment full: no more row references (spread the table over more partitions)"
            }
            MemoryFull::IndexOverflow => {
                "hash index full: no more overflow buckets (spread the table over more partitions)"
            }
        };
        write!(f, "error {}: {text}", self.code().0)
    }
}

impl std::error::Error for MemoryFull {}

#[derive(Debug)]
struct Account {
    total: u64,
    used: AtomicU64,
}

/// The node's account of data memory in pages. Cloning it gives another handle on the same account.
#[derive(Debug, Clone)]
pub struct DataMemory {
    account: Arc<Account>,
}

impl DataMemory {
    /// An account of `total_pages` pages, none used.
    pub fn new(total_pages: u64) -> Self {
        DataMemory { account: Arc::new(Account { total: total_pages, used: AtomicU64::new(0) }) }
    }

    /// Pages in use by all owners of this account.
    pub fn used(&self) -> u64 {
        self.account.used.load(Ordering::Relaxed)
    }

    /// Pages there are in all.
    pub fn total(&self) -> u64 {
        self.account.total
    }

    /// Takes one zeroed page, or says that there is none.
    pub fn alloc<P: PageKind>(&self) -> Result<Box<P>, MemoryFull> {
        const { assert!(size_of::<P>() == PAGE_BYTES) };
        let total = self.account.total;
        // A counter guards no other data, so relaxed ordering is enough.
        self.account
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| (used < total).then_some(used + 1))
            .map_err(|_| MemoryFull::DataMemory)?;
        Ok(P::zeroed())
    }

    /// Gives a page back.
    pub fn free<P: PageKind>(&self, page: Box<P>) {
        drop(page);
        let before = self.account.used.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "more pages freed than were taken");
    }
}

/// A type that fills one page. The size is checked at compile time by [`DataMemory::alloc`].
pub trait PageKind: Sized {
    /// A new page, all bytes zero.
    fn zeroed() -> Box<Self>;
}

/// A page of plain bytes, aligned to a cache line: row slots or variable parts.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct BytePage {
    /// The contents.
    pub bytes: [u8; PAGE_BYTES],
}

impl PageKind for BytePage {
    fn zeroed() -> Box<Self> {
        Box::new(BytePage { bytes: [0; PAGE_BYTES] })
    }
}

/// The pages of one owner, by page number. Numbers of freed pages are used again.
#[derive(Debug)]
pub struct PageTable<P: PageKind> {
    pages: Vec<Option<Box<P>>>,
    unused_numbers: Vec<u32>,
    memory: DataMemory,
    numbers_max: u32,
}

impl<P: PageKind> PageTable<P> {
    /// An owner without pages; it will never use a page number of `numbers_max` or above.
    pub fn new(memory: &DataMemory, numbers_max: u32) -> Self {
        PageTable { pages: Vec::new(), unused_numbers: Vec::new(), memory: memory.clone(), numbers_max }
    }

    /// The page of that number, which must be in use.
    #[inline]
    pub fn page(&self, number: u32) -> &P {
        match &self.pages[number as usize] {
            Some(page) => page,
            None => no_such_page(number),
        }
    }

    /// The page of that number, which must be in use, to change.
    #[inline]
    pub fn page_mut(&mut self, number: u32) -> &mut P {
        match &mut self.pages[number as usize] {
            Some(page) => page,
            None => no_such_page(number),
        }
    }

    /// The page of that number, or `None` if it is not in use: for references that came from outside.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&P> {
        self.pages.get(number as usize)?.as_deref()
    }

    /// Adds a page and tells its number.
    pub fn add(&mut self) -> Result<u32, MemoryFull> {
        if self.unused_numbers.is_empty() && self.pages.len() as u64 >= u64::from(self.numbers_max) {
            return Err(MemoryFull::FragmentPages);
        }
        let page = self.memory.alloc()?;
        if let Some(number) = self.unused_numbers.pop() {
            self.pages[number as usize] = Some(page);
            return Ok(number);
        }
        self.pages.push(Some(page));
        Ok(self.pages.len() as u32 - 1)
    }

    /// Gives the page of that number back to the account.
    pub fn remove(&mut self, number: u32) {
        let Some(page) = self.pages[number as usize].take() else { no_such_page(number) };
        self.memory.free(page);
        if number as usize + 1 != self.pages.len() {
            self.unused_numbers.push(number);
            return;
        }
        self.pages.pop();
        // The numbers are only forgotten when none is in use: keeping the two lists in step costs less than
        // it saves.
        if self.pages.len() == self.unused_numbers.len() {
            self.pages.clear();
            self.unused_numbers.clear();
        }
    }

    /// Gives up to `max_pages` pages back, the highest numbers first, and tells how many: fewer than asked
    /// for when none is left. The table is on its way out and must not get pages again before that.
    pub fn free_some(&mut self, max_pages: usize) -> usize {
        let mut freed = 0;
        while freed < max_pages
            && let Some(last) = self.pages.pop()
        {
            if let Some(page) = last {
                self.memory.free(page);
                freed += 1;
            }
        }
        self.unused_numbers.clear();
        freed
    }

    /// One more than the highest page number ever handed out and not forgotten: the bound of a scan.
    #[inline]
    pub fn numbers_end(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Pages in use.
    pub fn used(&self) -> u32 {
        (self.pages.len() - self.unused_numbers.len()) as u32
    }
}

impl<P: PageKind> Drop for PageTable<P> {
    fn drop(&mut self) {
        self.free_some(usize::MAX);
    }
}

/// A reference to a page that is not in use can only come from a bug of ours: stop at once.
#[cold]
#[inline(never)]
fn no_such_page(number: u32) -> ! {
    panic!("page {number} is not in use");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_hard_and_shared() {
        let memory = DataMemory::new(3);
        let mut a = PageTable::<BytePage>::new(&memory, 100);
        let mut b = PageTable::<BytePage>::new(&memory, 100);
        assert_eq!(a.add(), Ok(0));
        assert_eq!(a.add(), Ok(1));
        assert_eq!(b.add(), Ok(0));
        assert_eq!(b.add(), Err(MemoryFull::DataMemory));
        assert_eq!(MemoryFull::DataMemory.code().0, 827);
        assert_eq!((memory.used(), memory.total()), (3, 3));
        a.remove(0);
        assert_eq!(b.add(), Ok(1));
        drop(b);
        assert_eq!(memory.used(), 1);
        drop(a);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn pages_come_zeroed_and_numbers_are_used_again() {
        let memory = DataMemory::new(10);
        let mut table = PageTable::<BytePage>::new(&memory, 3);
        for expected in 0..3 {
            assert_eq!(table.add(), Ok(expected));
            table.page_mut(expected).bytes.fill(expected as u8 + 1);
        }
        assert_eq!(table.add(), Err(MemoryFull::FragmentPages));
        table.remove(1);
        assert!(table.get(1).is_none());
        assert!(table.get(77).is_none());
        assert_eq!(table.add(), Ok(1));
        assert!(table.page(1).bytes.iter().all(|&b| b == 0));
        assert_eq!(table.page(2).bytes[PAGE_BYTES - 1], 3);
        assert_eq!((table.used(), table.numbers_end()), (3, 3));
        for number in [2, 0, 1] {
            table.remove(number);
        }
        assert_eq!((table.used(), memory.used()), (0, 0));
        assert_eq!(table.add(), Ok(table.numbers_end() - 1));
    }

    #[test]
    fn a_table_is_emptied_in_slices() {
        let memory = DataMemory::new(10);
        let mut table = PageTable::<BytePage>::new(&memory, 100);
        for _ in 0..7 {
            table.add().unwrap();
        }
        table.remove(3);
        assert_eq!((table.free_some(4), memory.used()), (4, 2));
        assert_eq!((table.free_some(4), memory.used()), (2, 0));
    }
}
