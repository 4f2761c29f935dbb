//! Pool: records of one kind, at most a fixed number, named by their index.
//!
//! Blocks keep transactions, operations and scans in pools. A pool starts empty, grows up to its limit and
//! never shrinks; a full pool refuses, and the refusal is an error code for the one request that asked. A
//! released record keeps its buffers, so steady state allocates nothing. Indexes cross the wire: whoever
//! gets one back checks that the record is still the one it was.

/// See the module.
pub struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
    max: u32,
}

impl<T: Default> Pool<T> {
    /// An empty pool of at most `max` records.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self { items: Vec::new(), free: Vec::new(), max }
    }

    /// Takes a record: a released one as it was left, or a new one. `None` if all are taken.
    #[inline]
    pub fn seize(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        if self.items.len() >= self.max as usize {
            return None;
        }
        self.items.push(T::default());
        Some(self.items.len() as u32 - 1)
    }

    /// Gives a record back. The caller has put it into its free state.
    #[inline]
    pub fn release(&mut self, index: u32) {
        debug_assert!(self.free.len() > 64 || !self.free.contains(&index), "released twice");
        self.free.push(index);
    }

    /// A record by an index from outside.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.items.get(index as usize)
    }

    /// A record by an index from outside, to change.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.items.get_mut(index as usize)
    }

    /// Records in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// All records ever made, released ones included, with their indexes.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (i as u32, t))
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_refuses_and_released_records_come_back() {
        let mut pool: Pool<Vec<u8>> = Pool::new(2);
        let (a, b) = (pool.seize().unwrap(), pool.seize().unwrap());
        assert_ne!(a, b);
        assert_eq!(pool.seize(), None);
        pool[a].reserve(100);
        pool.release(a);
        assert_eq!(pool.used(), 1);
        assert_eq!(pool.seize(), Some(a));
        assert!(pool[a].capacity() >= 100);
        assert!(pool.get(2).is_none());
    }
}
