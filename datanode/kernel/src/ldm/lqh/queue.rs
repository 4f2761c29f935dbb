//! Row queues: who holds a row, who waits for it, and who is next.
//!
//! A queue hangs off its row's header (`op_head`) as a list of operation records: granted ones first,
//! waiting ones behind them in arrival order. The first record knows the last one, so joining a long queue
//! of a hot row costs the same as joining a short one.
//!
//! Two exceptions to the order of arrival keep a transaction from waiting for itself through others: who
//! holds the row goes before those who wait for it, and an operation of a transaction that already waits in
//! the queue goes right behind that. Who stands in whose way, and what becomes of circles, is `deadlock`'s
//! subject.

use super::Ldm;
use super::op::{Change, Lock, NONE, Op, OpState, Request};
use crate::ldm::fragment::Fragment;
use crate::ldm::row_ref::RowRef;
use crate::outbox::Outbox;
use crate::pool::Pool;
use signals::{FragmentId, TableId, TransId};

/// A row whose queue lost an operation.
#[derive(Clone, Copy)]
pub(super) struct Released {
    table: TableId,
    fragment: FragmentId,
    row: RowRef,
}

/// What a new claim on a row meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// Nobody is in the way.
    Free,
    /// Others are; wait behind them.
    Wait,
}

/// Whether `trans` may have the row whose queue begins at `head`. `first_in_line`: the claim already waited
/// its turn.
pub(super) fn claim(ops: &Pool<Op>, head: u32, trans: TransId, lock: Lock, first_in_line: bool) -> Claim {
    let mut own = false;
    let mut others = false;
    let mut others_exclusive = false;
    let mut index = head;
    while index != NONE && ops[index].state == OpState::Prepared {
        let op = &ops[index];
        if op.trans == trans {
            own = true;
        } else {
            others = true;
            others_exclusive |= op.lock == Lock::Exclusive;
        }
        index = op.next;
    }
    // `index` is the first waiting operation now.
    if !others {
        return if own || index == NONE || first_in_line { Claim::Free } else { Claim::Wait };
    }
    if others_exclusive {
        return Claim::Wait;
    }
    match lock {
        Lock::Shared if own || index == NONE || first_in_line => Claim::Free,
        Lock::Shared => Claim::Wait,
        Lock::Exclusive => Claim::Wait,
    }
}

/// The newest change `trans` has prepared on the row, as an operation record.
pub(super) fn newest_change(ops: &Pool<Op>, head: u32, trans: TransId) -> Option<u32> {
    let mut newest = None;
    let mut index = head;
    while index != NONE && ops[index].state == OpState::Prepared {
        let op = &ops[index];
        if op.trans == trans && op.change != Change::None {
            newest = Some(index);
        }
        index = op.next;
    }
    newest
}

/// Puts a granted operation behind the other granted ones.
pub(super) fn join_granted(ops: &mut Pool<Op>, fragment: &mut Fragment, row: RowRef, new: u32) {
    let head = fragment.tup.op_head(row);
    ops[new].state = OpState::Prepared;
    if head == NONE || ops[head].state == OpState::Waiting {
        let tail = if head == NONE { new } else { ops[head].tail };
        ops[new].next = head;
        ops[new].tail = tail;
        fragment.tup.set_op_head(row, new);
        return;
    }
    let mut last = head;
    while ops[last].next != NONE && ops[ops[last].next].state == OpState::Prepared {
        last = ops[last].next;
    }
    insert_behind(ops, head, last, new);
}

/// Puts a waiting operation last; but before the other waiting ones if its transaction holds the row,
/// because they wait for that anyway, and behind the last waiting one of its own transaction if there is one.
/// `batched`: there may be one.
pub(super) fn join_waiting(
    ops: &mut Pool<Op>,
    fragment: &mut Fragment,
    row: RowRef,
    new: u32,
    batched: bool,
) {
    let head = fragment.tup.op_head(row);
    debug_assert_ne!(head, NONE, "waiting for nobody");
    ops[new].state = OpState::Waiting;
    let (trans, mut last, mut own) = (ops[new].trans, head, false);
    let mut index = head;
    while index != NONE && ops[index].state == OpState::Prepared {
        own |= ops[index].trans == trans;
        last = index;
        index = ops[index].next;
    }
    if !own {
        last = ops[head].tail;
    }
    while batched && index != NONE {
        if ops[index].trans == trans {
            last = index;
        }
        index = ops[index].next;
    }
    insert_behind(ops, head, last, new);
}

fn insert_behind(ops: &mut Pool<Op>, head: u32, last: u32, new: u32) {
    ops[new].next = ops[last].next;
    ops[last].next = new;
    if ops[new].next == NONE {
        ops[head].tail = new;
    }
}

/// Takes an operation out of its row's queue.
pub(super) fn leave(ops: &mut Pool<Op>, fragment: &mut Fragment, row: RowRef, gone: u32) {
    let head = fragment.tup.op_head(row);
    let next = ops[gone].next;
    if head == gone {
        if next != NONE {
            ops[next].tail = ops[gone].tail;
        }
        fragment.tup.set_op_head(row, next);
        return;
    }
    let mut before = head;
    while ops[before].next != gone {
        before = ops[before].next;
    }
    ops[before].next = next;
    if next == NONE {
        ops[head].tail = before;
    }
}

impl Ldm {
    /// Notes that a row's queue lost an operation.
    #[inline]
    pub(super) fn note_released(&mut self, table: TableId, fragment: FragmentId, row: RowRef, head: u32) {
        if head != NONE {
            self.released.push_back(Released { table, fragment, row });
        }
    }

    /// Takes every waiting operation off a row that is going away, to be executed anew in order.
    pub(super) fn evict_waiters(&mut self, mut index: u32, out: &mut Outbox) {
        while index != NONE {
            let next = self.ops[index].next;
            if let Some(request) = self.take_waiting(index, out) {
                self.retry.push_back(request);
            }
            index = next;
        }
    }

    /// Releases a waiting operation's record, which is in no queue any more, and returns its request.
    pub(super) fn take_waiting(&mut self, index: u32, out: &mut Outbox) -> Option<Request> {
        let op = &mut self.ops[index];
        debug_assert_eq!(op.state, OpState::Waiting);
        op.state = OpState::Free;
        let (table, request) = (op.table, op.request.take());
        self.ops.release(index);
        self.tables.operation_over(self.me, table, out);
        self.saved_bytes -= request.as_ref().map_or(0, Request::len);
        request
    }

    /// Executes the operations whose turn has come, until nobody's has. What they release in turn is looked
    /// at as well, without recursion: a hot row can have thousands in its queue.
    #[inline]
    pub(super) fn wake_waiters(&mut self, out: &mut Outbox) {
        while !self.released.is_empty() || !self.retry.is_empty() {
            self.wake_some(out);
        }
    }

    #[cold]
    fn wake_some(&mut self, out: &mut Outbox) {
        while let Some(request) = self.retry.pop_front() {
            self.execute(&request.view(), false, out);
            self.keep_buffer(request.into_buffer());
        }
        let Some(place) = self.released.pop_front() else { return };
        let Some(fragment) = self.tables.fragment(place.table, place.fragment) else { return };
        if !fragment.tup.is_row(place.row) {
            return;
        }
        let head = fragment.tup.op_head(place.row);
        let mut waiting = head;
        while waiting != NONE && self.ops[waiting].state == OpState::Prepared {
            waiting = self.ops[waiting].next;
        }
        if waiting == NONE {
            return;
        }
        let op = &self.ops[waiting];
        if claim(&self.ops, head, op.trans, op.lock, true) != Claim::Free {
            return;
        }
        leave(&mut self.ops, fragment, place.row, waiting);
        // Several shared claims may have their turn together.
        self.released.push_back(place);
        if let Some(request) = self.take_waiting(waiting, out) {
            self.execute(&request.view(), true, out);
            self.keep_buffer(request.into_buffer());
        }
    }

    fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < 64 && buffer.capacity() <= 4096 {
            self.spare.push(buffer);
        }
    }
}
