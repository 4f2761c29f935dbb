//! Doubly linked lists over page numbers: which pages of an owner have room, and roughly how much.
//!
//! A page is in at most one of the `N` lists. All moves are O(1). The bookkeeping is 12 bytes per page and
//! is not counted as data memory.

/// No page.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    /// The list it is in, or `NONE`.
    list: u32,
}

const OUTSIDE: Node = Node { previous: NONE, next: NONE, list: NONE };

/// `N` lists of pages.
#[derive(Debug)]
pub(super) struct PageLists<const N: usize> {
    heads: [u32; N],
    nodes: Vec<Node>,
}

impl<const N: usize> Default for PageLists<N> {
    fn default() -> Self {
        PageLists { heads: [NONE; N], nodes: Vec::new() }
    }
}

impl<const N: usize> PageLists<N> {
    /// Puts the page into `list` (taking it out of the one it was in), or into none.
    pub(super) fn set(&mut self, page: u32, list: Option<usize>) {
        if self.nodes.len() <= page as usize {
            self.nodes.resize(page as usize + 1, OUTSIDE);
        }
        let target = list.map_or(NONE, |list| list as u32);
        let node = self.nodes[page as usize];
        if node.list == target {
            return;
        }
        if node.list != NONE {
            if node.previous == NONE {
                self.heads[node.list as usize] = node.next;
            } else {
                self.nodes[node.previous as usize].next = node.next;
            }
            if node.next != NONE {
                self.nodes[node.next as usize].previous = node.previous;
            }
            self.nodes[page as usize] = OUTSIDE;
        }
        if let Some(list) = list {
            let next = std::mem::replace(&mut self.heads[list], page);
            if next != NONE {
                self.nodes[next as usize].previous = page;
            }
            self.nodes[page as usize] = Node { previous: NONE, next, list: target };
        }
    }

    /// The page that entered `list` last.
    pub(super) fn first(&self, list: usize) -> Option<u32> {
        let head = self.heads[list];
        (head != NONE).then_some(head)
    }

    /// The page after `page` in its list.
    pub(super) fn after(&self, page: u32) -> Option<u32> {
        let next = self.nodes[page as usize].next;
        (next != NONE).then_some(next)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = PageLists::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members<const N: usize>(lists: &PageLists<N>, list: usize) -> Vec<u32> {
        std::iter::successors(lists.first(list), |&page| lists.after(page)).collect()
    }

    #[test]
    fn pages_move_between_lists() {
        let mut lists = PageLists::<2>::default();
        for page in [4, 7, 1] {
            lists.set(page, Some(0));
        }
        assert_eq!(members(&lists, 0), [1, 7, 4]);
        lists.set(7, Some(1));
        assert_eq!((members(&lists, 0), members(&lists, 1)), (vec![1, 4], vec![7]));
        lists.set(1, Some(1));
        lists.set(1, Some(1));
        assert_eq!((members(&lists, 0), members(&lists, 1)), (vec![4], vec![1, 7]));
        lists.set(7, None);
        lists.set(4, None);
        lists.set(4, None);
        assert_eq!((members(&lists, 0), members(&lists, 1)), (vec![], vec![1]));
        lists.clear();
        assert_eq!(lists.first(1), None);
    }
}
