//! Slots: numbered records whose numbers travel to data nodes and come back, perhaps late.
//!
//! A number is a place and a generation, so that an answer to something given up does not find what uses
//! the place now. Eight bits of generation wrap around soon on a busy place; therefore the place of
//! something given up, whose answer may still come, rests for a while before it is used again.

use std::collections::VecDeque;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// Most slots there can be: the numbers stay clear of [`signals::keyop::NO_OPERATION`].
pub(crate) const MAX_SLOTS: u32 = INDEX_MASK;

struct Slot<T> {
    generation: u8,
    value: Option<T>,
}

/// See the module.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    resting: VecDeque<(u64, u32)>,
    max: u32,
    used: u32,
}

impl<T> Slots<T> {
    /// Up to `max` slots.
    pub(crate) fn new(max: u32) -> Self {
        let max = max.min(MAX_SLOTS);
        Self { slots: Vec::new(), free: Vec::new(), resting: VecDeque::new(), max, used: 0 }
    }

    /// How many more there can be in use.
    #[inline]
    pub(crate) fn available(&self) -> u32 {
        self.free.len() as u32 + (self.max - self.slots.len() as u32)
    }

    /// How many are in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Takes a slot; `None` if all are taken.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if (self.slots.len() as u32) < self.max => {
                self.slots.push(Slot { generation: 0, value: None });
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        self.used += 1;
        Some(u32::from(slot.generation) << INDEX_BITS | index)
    }

    /// What goes under a number, if it still means anything.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut((number & INDEX_MASK) as usize)?;
        if u32::from(slot.generation) == number >> INDEX_BITS { slot.value.as_mut() } else { None }
    }

    #[inline]
    fn take(&mut self, number: u32) -> Option<(u32, T)> {
        let index = number & INDEX_MASK;
        let slot = self.slots.get_mut(index as usize)?;
        if u32::from(slot.generation) != number >> INDEX_BITS {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.used -= 1;
        Some((index, value))
    }

    /// Gives a slot back whose answer has come.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let (index, value) = self.take(number)?;
        self.free.push(index);
        Some(value)
    }

    /// Gives a slot back whose answer may still come; it is used again from `until` on.
    pub(crate) fn retire(&mut self, number: u32, until: u64) -> Option<T> {
        let (index, value) = self.take(number)?;
        self.resting.push_back((until, index));
        Some(value)
    }

    /// Frees the slots that have rested enough.
    pub(crate) fn wake(&mut self, now: u64) {
        while let Some((until, index)) = self.resting.front() {
            if *until > now {
                return;
            }
            self.free.push(*index);
            self.resting.pop_front();
        }
    }

    /// The numbers in use with what goes under them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let number = u32::from(slot.generation) << INDEX_BITS | index as u32;
            slot.value.as_mut().map(|v| (number, v))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_numbers_find_nothing_and_places_rest() {
        let mut slots = Slots::new(2);
        let a = slots.insert('a').unwrap();
        let b = slots.insert('b').unwrap();
        assert_eq!((slots.insert('c'), slots.available(), slots.used()), (None, 0, 2));
        assert_eq!(slots.remove(a), Some('a'));
        assert_eq!(slots.get_mut(a), None);
        assert_eq!(slots.remove(a), None);
        let c = slots.insert('c').unwrap();
        assert_ne!(c, a);
        assert_eq!(slots.retire(b, 100), Some('b'));
        assert_eq!(slots.insert('d'), None, "its place rests");
        slots.wake(99);
        assert_eq!(slots.available(), 0);
        slots.wake(100);
        let d = slots.insert('d').unwrap();
        assert_eq!(slots.get_mut(b), None);
        assert_eq!(slots.get_mut(d), Some(&mut 'd'));
        assert_eq!(slots.iter_mut().map(|(n, v)| (n, *v)).collect::<Vec<_>>(), [(c, 'c'), (d, 'd')]);
    }
}
