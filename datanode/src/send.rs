//! Send: who writes what a worker has for a link - the worker itself, or a send instance on another worker.
//!
//! A batch for a link always goes into the link's pending queue first ([`LinkOut::append`]). Then its worker
//! either writes the link out himself ([`LinkOut::flush`]) or leaves that to the link's send instance
//! ([`LinkOut::hand_over`]): the link is put into that worker's queue once, however many batches come before
//! its turn, so that the batches of several workers leave in one system call.
//!
//! ```text
//!   worker: append ──► leaves it? ── no ──► flush
//!                          │ yes
//!                          ▼
//!               queued already? ── yes ──► nothing more to do
//!                          │ no
//!                          ▼
//!               into the queue, wake ──► `SendDesk::serve`: mark off, write, queued again if more came
//! ```
//!
//! The link is marked off before it is written: a batch appended after the mark queues the link anew, one
//! appended before is seen by the write. So nothing stays behind, and because there is one pending queue and
//! one pen per link, a worker's batches keep their order whoever writes.
//!
//! Who leaves it to whom ([`Sending::leaves`]): with `nosend=1` a worker never writes; without, it does as
//! long as it had CPU to spare in the last 50 ms ([`BUSY`]), because a hand-over costs a wake-up and a cold
//! cache; and a loaded one still writes when the send instance's worker is no less loaded than itself. That
//! last rule is ours: in small layouts the send instance shares its worker with others, and moving work to
//! somebody busier only lengthens the queue. Time spent spinning counts as time to spare.
//!
//! Links are spread over the send instances by number. A node with one worker has no send queue at all, and
//! the worker that hosts a send instance writes its own output at once. Bytes handed over count against the
//! link's limits like any others. When the node ends, whatever a queue still holds is in the links' pending
//! queues and is written by the node's farewell.
//!
//! Nobody here waits for anybody, and nobody here reads a link.

use crate::link_out::LinkOut;
use crate::usage::Counters;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use transporter::Wake;

/// A worker that used more than this (thousandths of a CPU, over 50 ms) has none to spare.
pub const BUSY: u32 = 750;
/// Links that may be queued at once: each of the living ones, and as many that just ended.
const QUEUE_MAX: usize = 2 * crate::directory::LINKS_MAX;

/// The worker of a send instance, as those see it who leave links to it.
pub struct SendPost {
    worker: usize,
    queue: Sender<Arc<LinkOut>>,
    wake: Arc<Wake>,
    counters: Arc<Counters>,
}

/// The queue of a worker that hosts send instances, at that worker.
pub struct SendDesk {
    queue: Receiver<Arc<LinkOut>>,
}

/// The two ends of the queue of `worker`.
#[must_use]
pub fn send_queue(worker: usize, wake: Arc<Wake>, counters: Arc<Counters>) -> (SendPost, SendDesk) {
    let (sender, receiver) = bounded(QUEUE_MAX);
    (SendPost { worker, queue: sender, wake, counters }, SendDesk { queue: receiver })
}

impl SendPost {
    /// Queues a link and wakes the worker. Returns whether that went: it does not when the worker has ended.
    #[inline]
    pub(crate) fn queue(&self, link: Arc<LinkOut>) -> bool {
        let queued = self.queue.try_send(link).is_ok();
        if queued {
            self.wake.wake();
        }
        queued
    }
}

impl SendDesk {
    /// Whether nothing is queued.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Writes the links that are queued now, each once; returns how many. Those queued meanwhile wait for the
    /// next call, so that a link that always has more cannot keep the others waiting.
    pub fn serve(&self, counters: &Counters) -> usize {
        let mut served = 0;
        for _ in 0..self.queue.len() {
            let Ok(link) = self.queue.try_recv() else { break };
            let written = link.flush_queued();
            Counters::add(&counters.sent_bytes, written as u64);
            served += 1;
        }
        served
    }
}

/// What a worker knows of itself when it decides who sends.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Its number.
    pub worker: usize,
    /// `nosend=1`.
    pub nosend: bool,
    /// Its CPU use of the last 50 ms without spinning, in thousandths.
    pub busy: u32,
}

impl Sending {
    /// Whether it leaves a link of `post` to that post.
    #[inline]
    #[must_use]
    pub fn leaves(&self, post: &SendPost) -> bool {
        self.worker != post.worker
            && (self.nosend
                || (self.busy >= BUSY && post.counters.busy_50ms.load(Ordering::Relaxed) < self.busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_is_decided_by_load() {
        let counters = Arc::new(Counters::default());
        let (post, _desk) = send_queue(2, Arc::new(Wake::new().unwrap()), counters.clone());
        // Own worker, nosend, own load, the post's load, and whether it is left to the post.
        for (worker, nosend, busy, other, leaves) in [
            (2, false, 1000, 0, false),
            (2, true, 1000, 0, false),
            (0, true, 0, 1000, true),
            (0, false, 0, 0, false),
            (0, false, BUSY - 1, 0, false),
            (0, false, BUSY, 0, true),
            (0, false, 900, 899, true),
            (0, false, 900, 900, false),
            (0, false, 1000, 1000, false),
        ] {
            counters.busy_50ms.store(other, Ordering::Relaxed);
            let sending = Sending { worker, nosend, busy };
            assert_eq!(sending.leaves(&post), leaves, "{sending:?} beside {other}");
        }
    }
}
