//! The hash index of one fragment (NDB calls it ACC): from the hash of a primary key to the row that has it.
//!
//! Shape. Linear hashing. A bucket is one 64-byte cache line: ten row references, ten 16-bit tags, and one
//! word with the count and a link. Buckets fill pages of data memory, 512 to a page, and are added and
//! removed at the end, one at a time: bucket `n` is split off from (and merged back into) bucket `n - p`,
//! where `p` is the highest power of two in `n`. A bucket that overflows is continued in overflow buckets,
//! taken from pages of their own. The index keeps 4 to 4.5 rows per bucket: 14.2 to 16 bytes a row, and
//! about 3 % of the rows outside their first line.
//!
//! Tags. The key itself is not stored. A tag holds the hash bits that follow those which chose the bucket,
//! so a key compare on a wrong row is rare, and a split needs only the lowest tag bit to tell which half an
//! entry belongs to. Each split uses up one bit; the bucket counts how many are `missing` at the top of its
//! tags. When eight are missing the next split asks the caller for the hashes of the rows in that one
//! bucket and the tags are full again.
//!
//! Work per operation is bounded: an insert splits at most [`SPLITS_PER_INSERT`] buckets, a remove merges
//! at most [`MERGES_PER_REMOVE`], so the index grows and shrinks without stalls. A split that finds no
//! memory is left for later. An insert that finds no memory (no first page, or no overflow page when its
//! bucket is full) is refused and has changed nothing.
//!
//! Invariants. In a chain every bucket but the last is full. An overflow bucket in use is never empty.
//! `missing` counts in the first bucket of a chain only. With no rows the index holds no page.
//!
//! What it never does: it knows no keys and no rows (the caller passes closures), it never rehashes more
//! than the rows of one bucket, and it does not check for duplicates: probe first.

use super::page::{DataMemory, MemoryFull, PAGE_BYTES, PageKind, PageTable};
use super::page_lists::PageLists;
use super::prefetch::prefetch;
use super::row_ref::RowRef;

/// Buckets an insert may split: one keeps the pace, the second makes up for splits put off while memory was
/// full.
pub const SPLITS_PER_INSERT: u32 = 2;
/// Buckets a remove may merge.
pub const MERGES_PER_REMOVE: u32 = 2;

/// Entries of a bucket.
const ENTRIES: usize = 10;
/// Buckets on a page.
const BUCKETS_PER_PAGE: u32 = (PAGE_BYTES / 64) as u32;
/// The index grows above 9/2 rows per bucket and shrinks below 8/2. The gap keeps it from doing both in turn.
const GROW_ABOVE_HALVES: u64 = 9;
const SHRINK_BELOW_HALVES: u64 = 8;
/// Tags are made full again when this many of their 16 bits are missing.
const REFILL_AT_MISSING: u32 = 8;
/// Overflow links have 24 bits, 0 is none.
const OVERFLOW_PAGES_MAX: u32 = (1 << 24) / BUCKETS_PER_PAGE - 1;

/// One cache line of the index.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    rows: [u32; ENTRIES],
    /// Tags of the first eight entries, four to a word, and of the last two.
    tags: [u64; 2],
    last_tags: u32,
    /// Link (24 bits), missing tag bits (4), count (4).
    meta: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    const EMPTY: Bucket = Bucket { rows: [0; ENTRIES], tags: [0; 2], last_tags: 0, meta: 0 };

    #[inline]
    fn count(&self) -> usize {
        // The bound is known to hold; telling it spares the checks below.
        ((self.meta & 0xF) as usize).min(ENTRIES)
    }

    #[inline]
    fn missing(&self) -> u32 {
        self.meta >> 4 & 0xF
    }

    /// The overflow bucket that continues this one, 0 for none.
    #[inline]
    fn link(&self) -> u32 {
        self.meta >> 8
    }

    fn set_link(&mut self, link: u32) {
        self.meta = link << 8 | self.meta & 0xFF;
    }

    /// The tag bits that can be trusted in this bucket and its overflow buckets.
    #[inline]
    fn tag_mask(&self) -> u16 {
        u16::MAX >> self.missing()
    }

    /// The entries whose tags equal `tag` under `mask`. All ten are compared at once, four to a machine word.
    #[inline]
    fn matches(&self, tag: u16, mask: u16) -> Hits {
        let (tag, mask) = (u64::from(tag) * ONE_PER_LANE, u64::from(mask) * ONE_PER_LANE);
        // The top bit of each 16-bit lane that is zero, and no other bit.
        let zero_lanes = |x: u64| !(((x & !TOP_OF_LANE) + !TOP_OF_LANE) | x | !TOP_OF_LANE);
        let differ = |tags: u64| (tags ^ tag) & mask;
        let last = differ(u64::from(self.last_tags)) | !u64::from(u32::MAX);
        let hits = zero_lanes(differ(self.tags[0])) >> 15
            | zero_lanes(differ(self.tags[1])) >> 14
            | zero_lanes(last) >> 13;
        Hits { bits: hits, count: self.count() }
    }

    fn tag(&self, i: usize) -> u16 {
        let shift = i % 4 * 16;
        if i < 8 { (self.tags[i / 4] >> shift) as u16 } else { (self.last_tags >> shift) as u16 }
    }

    fn set_tag(&mut self, i: usize, tag: u16) {
        let shift = i % 4 * 16;
        if i < 8 {
            let word = &mut self.tags[i / 4];
            *word = *word & !(0xFFFF << shift) | u64::from(tag) << shift;
        } else {
            self.last_tags = self.last_tags & !(0xFFFF << shift) | u32::from(tag) << shift;
        }
    }

    fn push(&mut self, row: u32, tag: u16) {
        let count = self.count();
        self.rows[count] = row;
        self.set_tag(count, tag);
        self.meta += 1;
    }

    fn pop(&mut self) -> (u32, u16) {
        let last = self.count() - 1;
        self.meta -= 1;
        (self.rows[last], self.tag(last))
    }
}

const ONE_PER_LANE: u64 = 0x0001_0001_0001_0001;
const TOP_OF_LANE: u64 = 0x8000_8000_8000_8000;

/// Entries with a matching tag: bit `16 * lane + word` for the entry in that lane of that word of tags.
struct Hits {
    bits: u64,
    count: usize,
}

impl Iterator for Hits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits != 0 {
            let bit = self.bits.trailing_zeros() as usize;
            self.bits &= self.bits - 1;
            let entry = bit / 16 + bit % 16 * 4;
            // Places behind the last entry hold old tags.
            if entry < self.count {
                return Some(entry);
            }
        }
        None
    }
}

#[derive(Debug)]
struct BucketPage {
    buckets: [Bucket; BUCKETS_PER_PAGE as usize],
}

impl PageKind for BucketPage {
    fn zeroed() -> Box<Self> {
        Box::new(BucketPage { buckets: [Bucket::EMPTY; BUCKETS_PER_PAGE as usize] })
    }
}

/// Free space of one overflow page.
#[derive(Debug, Clone, Copy, Default)]
struct OverflowPage {
    used: u16,
    /// Buckets from here on were never used.
    fresh: u16,
    /// First bucket of the free list plus one; the list goes on in the links.
    free: u16,
}

/// The overflow buckets of an index. A link is bucket number plus one.
#[derive(Debug)]
struct Overflow {
    pages: PageTable<BucketPage>,
    state: Vec<OverflowPage>,
    with_room: PageLists<1>,
    used: u64,
}

impl Overflow {
    fn bucket(&self, link: u32) -> &Bucket {
        let number = link - 1;
        &self.pages.page(number / BUCKETS_PER_PAGE).buckets[(number % BUCKETS_PER_PAGE) as usize]
    }

    fn bucket_mut(&mut self, link: u32) -> &mut Bucket {
        let number = link - 1;
        &mut self.pages.page_mut(number / BUCKETS_PER_PAGE).buckets[(number % BUCKETS_PER_PAGE) as usize]
    }

    /// An empty bucket.
    fn alloc(&mut self) -> Result<u32, MemoryFull> {
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
        let bucket = &mut self.pages.page_mut(page).buckets[slot as usize];
        if state.free != 0 {
            state.free = bucket.link() as u16;
        }
        *bucket = Bucket::EMPTY;
        state.used += 1;
        if u32::from(state.used) == BUCKETS_PER_PAGE {
            self.with_room.set(page, None);
        }
        self.used += 1;
        Ok(page * BUCKETS_PER_PAGE + u32::from(slot) + 1)
    }

    #[cold]
    fn add_page(&mut self) -> Result<u32, MemoryFull> {
        let page = self.pages.add().map_err(|full| match full {
            MemoryFull::FragmentPages => MemoryFull::IndexOverflow,
            other => other,
        })?;
        if self.state.len() <= page as usize {
            self.state.resize(page as usize + 1, OverflowPage::default());
        }
        self.state[page as usize] = OverflowPage::default();
        self.with_room.set(page, Some(0));
        Ok(page)
    }

    fn free(&mut self, link: u32) {
        let (page, slot) = ((link - 1) / BUCKETS_PER_PAGE, (link - 1) % BUCKETS_PER_PAGE);
        self.used -= 1;
        let state = &mut self.state[page as usize];
        state.used -= 1;
        if state.used == 0 {
            self.with_room.set(page, None);
            self.pages.remove(page);
            return;
        }
        let bucket = &mut self.pages.page_mut(page).buckets[slot as usize];
        *bucket = Bucket::EMPTY;
        bucket.set_link(u32::from(state.free));
        state.free = slot as u16 + 1;
        self.with_room.set(page, Some(0));
    }
}

/// Counters of an index, for tests and statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexCounters {
    /// Buckets split.
    pub splits: u64,
    /// Buckets merged.
    pub merges: u64,
    /// Buckets whose tags were made full again from the rows.
    pub refills: u64,
    /// Splits and merges put off because there was no memory.
    pub postponed: u64,
}

/// The hash index of one fragment.
#[derive(Debug)]
pub struct HashIndex {
    main: PageTable<BucketPage>,
    overflow: Overflow,
    buckets: u32,
    rows: u64,
    counters: IndexCounters,
}

/// Where a chain is being appended to: its first bucket (`link` 0) or an overflow bucket.
#[derive(Clone, Copy)]
struct Tail {
    bucket: u32,
    link: u32,
}

/// Spreads the bits of a hash, so that hashes which agree in some bits (all rows of a fragment may, because
/// those bits chose the fragment) still fill all buckets. It loses nothing: different hashes stay
/// different.
#[inline]
fn mix(hash: u64) -> u64 {
    (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_right(32)
}

impl HashIndex {
    /// An empty index, without a page.
    pub fn new(memory: &DataMemory) -> Self {
        HashIndex {
            main: PageTable::new(memory, u32::MAX / BUCKETS_PER_PAGE),
            overflow: Overflow {
                pages: PageTable::new(memory, OVERFLOW_PAGES_MAX),
                state: Vec::new(),
                with_room: PageLists::default(),
                used: 0,
            },
            buckets: 0,
            rows: 0,
            counters: IndexCounters::default(),
        }
    }

    /// Rows in the index.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of data memory the index holds.
    pub fn bytes(&self) -> u64 {
        u64::from(self.main.used() + self.overflow.pages.used()) * PAGE_BYTES as u64
    }

    /// What the index has done so far.
    pub fn counters(&self) -> IndexCounters {
        self.counters
    }

    /// Starts loading the bucket of `hash`, to be probed a little later.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if self.buckets != 0 {
            prefetch(self.bucket(self.place(mix(hash)).0));
        }
    }

    /// The first row that may have this hash, without a look at the row: what to prefetch after
    /// [`Self::prefetch`].
    #[inline]
    pub fn candidate(&self, hash: u64) -> Option<RowRef> {
        if self.buckets == 0 {
            return None;
        }
        let (number, tag) = self.place(mix(hash));
        let bucket = self.bucket(number);
        bucket.matches(tag, bucket.tag_mask()).next().map(|entry| RowRef(bucket.rows[entry]))
    }

    /// The row with this hash for which `same_key` says yes.
    #[inline]
    pub fn probe(&self, hash: u64, mut same_key: impl FnMut(RowRef) -> bool) -> Option<RowRef> {
        if self.buckets == 0 {
            return None;
        }
        let (number, tag) = self.place(mix(hash));
        let mut bucket = self.bucket(number);
        let mask = bucket.tag_mask();
        loop {
            for entry in bucket.matches(tag, mask) {
                let row = RowRef(bucket.rows[entry]);
                if same_key(row) {
                    return Some(row);
                }
            }
            match bucket.link() {
                0 => return None,
                link => bucket = self.overflow.bucket(link),
            }
        }
    }

    /// Adds a row. `hash_of` gives the hash of any row in the index, the new one included, as the caller
    /// passed it. Refused with nothing changed when there is no memory for it.
    pub fn insert(
        &mut self,
        hash: u64,
        row: RowRef,
        mut hash_of: impl FnMut(RowRef) -> u64,
    ) -> Result<(), MemoryFull> {
        if self.buckets == 0 {
            self.main.add()?;
            self.buckets = 1;
        }
        let (number, tag) = self.place(mix(hash));
        let mut tail = self.tail_of(number);
        if self.at(tail).count() == ENTRIES {
            let link = self.overflow.alloc()?;
            self.at_mut(tail).set_link(link);
            tail.link = link;
        }
        self.at_mut(tail).push(row.0, tag);
        self.rows += 1;
        for _ in 0..SPLITS_PER_INSERT {
            if self.rows * 2 <= u64::from(self.buckets) * GROW_ABOVE_HALVES {
                break;
            }
            if self.split(&mut hash_of).is_err() {
                self.counters.postponed += 1;
                break;
            }
        }
        Ok(())
    }

    /// Takes a row out; false if it was not there.
    pub fn remove(&mut self, hash: u64, row: RowRef) -> bool {
        if self.buckets == 0 {
            return false;
        }
        let (number, tag) = self.place(mix(hash));
        if !self.remove_from_chain(number, tag, row) {
            return false;
        }
        self.rows -= 1;
        if self.rows == 0 {
            // All chains are empty; few pages are left because the index shrank on the way.
            self.main.free_some(usize::MAX);
            self.buckets = 0;
            return true;
        }
        for _ in 0..MERGES_PER_REMOVE {
            if self.buckets == 1 || self.rows * 2 >= u64::from(self.buckets) * SHRINK_BELOW_HALVES {
                break;
            }
            if self.merge().is_err() {
                self.counters.postponed += 1;
                break;
            }
        }
        true
    }

    /// Forgets all rows and gives up to `max_pages` (at least one) pages back; true when none is left. For
    /// dropping a table in slices.
    pub fn free_some(&mut self, max_pages: usize) -> bool {
        self.buckets = 0;
        self.rows = 0;
        self.overflow.with_room.clear();
        self.overflow.state.clear();
        self.overflow.used = 0;
        let freed = self.main.free_some(max_pages);
        freed + self.overflow.pages.free_some(max_pages - freed) < max_pages
    }

    /// Bucket number and tag of a mixed hash.
    #[inline]
    fn place(&self, mixed: u64) -> (u32, u16) {
        let level = self.buckets.ilog2();
        let number = mixed as u32 & ((1 << level) - 1);
        // Buckets below the split pointer, and their halves behind `p`, use one more bit.
        if number < self.buckets - (1 << level) {
            let number = mixed & ((2 << level) - 1);
            (number as u32, (mixed >> (level + 1)) as u16)
        } else {
            (number, (mixed >> level) as u16)
        }
    }

    #[inline]
    fn bucket(&self, number: u32) -> &Bucket {
        &self.main.page(number / BUCKETS_PER_PAGE).buckets[(number % BUCKETS_PER_PAGE) as usize]
    }

    fn bucket_mut(&mut self, number: u32) -> &mut Bucket {
        &mut self.main.page_mut(number / BUCKETS_PER_PAGE).buckets[(number % BUCKETS_PER_PAGE) as usize]
    }

    fn at(&self, tail: Tail) -> &Bucket {
        if tail.link == 0 { self.bucket(tail.bucket) } else { self.overflow.bucket(tail.link) }
    }

    fn at_mut(&mut self, tail: Tail) -> &mut Bucket {
        if tail.link == 0 { self.bucket_mut(tail.bucket) } else { self.overflow.bucket_mut(tail.link) }
    }

    fn tail_of(&self, number: u32) -> Tail {
        let mut tail = Tail { bucket: number, link: 0 };
        loop {
            match self.at(tail).link() {
                0 => return tail,
                link => tail.link = link,
            }
        }
    }

    /// Removes the entry and fills the hole with the last one of the chain.
    fn remove_from_chain(&mut self, number: u32, tag: u16, row: RowRef) -> bool {
        let mask = self.bucket(number).tag_mask();
        let mut place = Tail { bucket: number, link: 0 };
        let hole = loop {
            let bucket = self.at(place);
            if let Some(entry) = bucket.matches(tag, mask).find(|&entry| bucket.rows[entry] == row.0) {
                break entry;
            }
            match bucket.link() {
                0 => return false,
                link => place.link = link,
            }
        };
        let mut before = None;
        let mut last = place;
        while self.at(last).link() != 0 {
            before = Some(last);
            last.link = self.at(last).link();
        }
        // A hole in the last overflow bucket may empty it, so its predecessor must be known.
        if before.is_none() && last.link != 0 {
            let mut walk = Tail { bucket: number, link: 0 };
            while self.at(walk).link() != last.link {
                walk.link = self.at(walk).link();
            }
            before = Some(walk);
        }
        let (moved_row, moved_tag) = self.at_mut(last).pop();
        if last.link != place.link || hole != self.at(last).count() {
            let bucket = self.at_mut(place);
            bucket.rows[hole] = moved_row;
            bucket.set_tag(hole, moved_tag);
        }
        if let Some(before) = before
            && self.at(last).count() == 0
        {
            self.at_mut(before).set_link(0);
            self.overflow.free(last.link);
        }
        true
    }

    /// Adds one bucket and moves into it what belongs there from the bucket it is split off from.
    fn split(&mut self, hash_of: &mut impl FnMut(RowRef) -> u64) -> Result<(), MemoryFull> {
        let new = self.buckets;
        let level = new.ilog2();
        let source = new - (1 << level);
        if new.is_multiple_of(BUCKETS_PER_PAGE) {
            self.main.add()?;
        }
        if self.bucket(source).missing() >= REFILL_AT_MISSING {
            self.refill_tags(source, level, hash_of);
        }
        self.buckets += 1;
        self.counters.splits += 1;

        let mut taken = *self.bucket(source);
        let empty = Bucket { meta: (taken.missing() + 1) << 4, ..Bucket::EMPTY };
        if taken.link() == 0 {
            let mut halves = [empty; 2];
            for i in 0..taken.count() {
                let tag = taken.tag(i);
                halves[usize::from(tag & 1)].push(taken.rows[i], tag >> 1);
            }
            *self.bucket_mut(source) = halves[0];
            *self.bucket_mut(new) = halves[1];
            return Ok(());
        }
        *self.bucket_mut(source) = empty;
        *self.bucket_mut(new) = empty;
        let mut tails = [Tail { bucket: source, link: 0 }, Tail { bucket: new, link: 0 }];
        // Both first buckets together hold more than the one that was emptied, and every overflow bucket is
        // set free before its entries are placed: there is always a spare one when a chain needs it.
        let mut spare = 0;
        loop {
            for i in 0..taken.count() {
                let tag = taken.tag(i);
                self.append(&mut tails[usize::from(tag & 1)], &mut spare, taken.rows[i], tag >> 1);
            }
            match taken.link() {
                0 => break,
                link => taken = self.take_overflow(link, &mut spare),
            }
        }
        self.free_spares(spare);
        Ok(())
    }

    /// Merges the last bucket back into the one it was split off from.
    fn merge(&mut self) -> Result<(), MemoryFull> {
        let last = self.buckets - 1;
        let level = last.ilog2();
        let target = last - (1 << level);
        let (target_entries, target_overflows) = self.chain_size(target);
        let (last_entries, last_overflows) = self.chain_size(last);
        let needed = (target_entries + last_entries).div_ceil(ENTRIES).saturating_sub(1);
        let mut spare = 0;
        if needed > target_overflows + last_overflows {
            spare = self.overflow.alloc()?;
        }
        let first = *self.bucket(target);
        let gone = *self.bucket(last);
        let missing = first.missing().max(gone.missing()).saturating_sub(1);
        *self.bucket_mut(target) = Bucket { meta: missing << 4, ..Bucket::EMPTY };
        *self.bucket_mut(last) = Bucket::EMPTY;
        let mut tail = Tail { bucket: target, link: 0 };
        // The first bucket of the chain that goes comes last: by then every overflow bucket is spare or in
        // use.
        let mut link = self.append_all(&mut tail, &mut spare, &first, 0);
        while link != 0 {
            let taken = self.take_overflow(link, &mut spare);
            link = self.append_all(&mut tail, &mut spare, &taken, 0);
        }
        link = gone.link();
        while link != 0 {
            let taken = self.take_overflow(link, &mut spare);
            link = self.append_all(&mut tail, &mut spare, &taken, 1);
        }
        self.append_all(&mut tail, &mut spare, &gone, 1);
        self.free_spares(spare);
        self.buckets -= 1;
        self.counters.merges += 1;
        if self.buckets.is_multiple_of(BUCKETS_PER_PAGE) {
            self.main.remove(self.buckets / BUCKETS_PER_PAGE);
        }
        Ok(())
    }

    /// Entries and overflow buckets of a chain.
    fn chain_size(&self, number: u32) -> (usize, usize) {
        let mut bucket = self.bucket(number);
        let (mut entries, mut overflows) = (bucket.count(), 0);
        while bucket.link() != 0 {
            bucket = self.overflow.bucket(bucket.link());
            entries += bucket.count();
            overflows += 1;
        }
        (entries, overflows)
    }

    /// Appends the entries of `taken` with `bit` put in front of their tags; gives the link that follows.
    fn append_all(&mut self, tail: &mut Tail, spare: &mut u32, taken: &Bucket, bit: u16) -> u32 {
        for i in 0..taken.count() {
            self.append(tail, spare, taken.rows[i], taken.tag(i) << 1 | bit);
        }
        taken.link()
    }

    fn append(&mut self, tail: &mut Tail, spare: &mut u32, row: u32, tag: u16) {
        if self.at(*tail).count() == ENTRIES {
            let link = *spare;
            assert!(link != 0, "a chain grew while it was moved");
            let bucket = self.overflow.bucket_mut(link);
            *spare = bucket.link();
            *bucket = Bucket::EMPTY;
            self.at_mut(*tail).set_link(link);
            tail.link = link;
        }
        self.at_mut(*tail).push(row, tag);
    }

    /// Copies an overflow bucket out and puts it on the list of spare ones.
    fn take_overflow(&mut self, link: u32, spare: &mut u32) -> Bucket {
        let bucket = self.overflow.bucket_mut(link);
        let taken = *bucket;
        bucket.set_link(*spare);
        *spare = link;
        taken
    }

    fn free_spares(&mut self, mut spare: u32) {
        while spare != 0 {
            let next = self.overflow.bucket(spare).link();
            self.overflow.free(spare);
            spare = next;
        }
    }

    /// Takes the tags of one bucket anew from the hashes of its rows.
    #[cold]
    fn refill_tags(&mut self, number: u32, level: u32, hash_of: &mut impl FnMut(RowRef) -> u64) {
        self.counters.refills += 1;
        let mut place = Tail { bucket: number, link: 0 };
        self.bucket_mut(number).meta &= !0xF0;
        loop {
            let bucket = self.at_mut(place);
            for i in 0..bucket.count() {
                bucket.set_tag(i, (mix(hash_of(RowRef(bucket.rows[i]))) >> level) as u16);
            }
            match bucket.link() {
                0 => return,
                link => place.link = link,
            }
        }
    }
}

#[cfg(test)]
mod tests;
