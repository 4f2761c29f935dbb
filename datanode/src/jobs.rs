//! Job queues: how a worker hands a batch of frames to another worker.
//!
//! One ring of bytes per ordered pair of workers, single producer, single consumer. The producer appends
//! its batch and publishes it once; the consumer handles frames where they lie and gives the room back in
//! pieces. Only a frame that wraps around the ring's end is copied. Frames keep their order within a ring,
//! and that is all that is promised.
//!
//! A full ring refuses part of a batch: the producer keeps the rest in its own buffer and offers it again
//! at its next turn. It never waits, so two workers with full rings to each other go on emptying them.

use rtrb::{Consumer, Producer, RingBuffer};
use signals::frame::{FRAME_ALIGN, MAX_FRAME_BYTES, next_frame};
use std::sync::Arc;
use transporter::Wake;

/// Bytes of a ring: room for a frame of the largest size and for batches while it is being handled.
pub const RING_BYTES: usize = 1 << 20;
/// The consumer gives room back at least this often.
const COMMIT_BYTES: usize = 64 << 10;

const _: () = assert!(RING_BYTES >= 2 * MAX_FRAME_BYTES);
const _: () = assert!(RING_BYTES.is_multiple_of(FRAME_ALIGN));

/// The producing end.
pub struct JobSender {
    ring: Producer<u8>,
    wake: Arc<Wake>,
}

/// The consuming end.
pub struct JobReceiver {
    ring: Consumer<u8>,
    /// A frame that wraps around the end is put together here.
    joint: Vec<u8>,
}

/// A ring whose consumer is woken through `wake`.
#[must_use]
pub fn job_queue(wake: Arc<Wake>) -> (JobSender, JobReceiver) {
    let (producer, consumer) = RingBuffer::new(RING_BYTES);
    (JobSender { ring: producer, wake }, JobReceiver { ring: consumer, joint: Vec::new() })
}

impl JobSender {
    /// Publishes as much of `batch` as has room, takes it out of `batch`, and wakes the consumer. Returns
    /// whether the whole batch went.
    pub fn send(&mut self, batch: &mut Vec<u8>) -> bool {
        if batch.is_empty() {
            return true;
        }
        let sent = self.ring.push_partial_slice(batch).0.len();
        if sent > 0 {
            self.wake.wake();
        }
        if sent == batch.len() {
            batch.clear();
            return true;
        }
        batch.drain(..sent);
        false
    }
}

impl JobReceiver {
    /// Whether nothing is there.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.slots() == 0
    }

    /// Handles the frames that are there now, in order; returns how many. Those that arrive meanwhile wait
    /// for the next call, so that a busy producer cannot hold its consumer for ever.
    pub fn drain(&mut self, mut handle: impl FnMut(&[u8])) -> usize {
        let mut left = self.ring.slots();
        let mut count = 0;
        while left > 0 {
            let Some((taken, frames)) = self.drain_piece(left, &mut handle) else { break };
            left -= taken;
            count += frames;
        }
        count
    }

    /// Handles whole frames of about [`COMMIT_BYTES`]; `None` if not even one is complete yet.
    fn drain_piece(&mut self, available: usize, handle: &mut impl FnMut(&[u8])) -> Option<(usize, usize)> {
        let chunk = self.ring.read_chunk(available).ok()?;
        let (first, second) = chunk.as_slices();
        let (mut taken, mut count) = walk(first, COMMIT_BYTES, handle);
        if taken == first.len() {
            let (more, frames) = walk(second, COMMIT_BYTES, handle);
            taken += more;
            count += frames;
        } else if taken < COMMIT_BYTES && join(&first[taken..], second, &mut self.joint) {
            handle(&self.joint);
            taken += self.joint.len();
            count += 1;
        }
        if taken == 0 {
            return None;
        }
        chunk.commit(taken);
        Some((taken, count))
    }
}

/// Puts the frame that begins with `cut` and goes on in `second` together; `false` if its end is not there
/// yet.
fn join(cut: &[u8], second: &[u8], joint: &mut Vec<u8>) -> bool {
    // Everything in the ring is a multiple of 8 long, so a length field never wraps.
    let length = cut.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b)) as usize;
    let Some(end) = length.checked_sub(cut.len()).and_then(|missing| second.get(..missing)) else {
        return false;
    };
    joint.clear();
    joint.extend_from_slice(cut);
    joint.extend_from_slice(end);
    true
}

/// Hands whole frames to `handle` until none is left or `limit` bytes are exceeded; returns bytes and frames.
fn walk(bytes: &[u8], limit: usize, handle: &mut impl FnMut(&[u8])) -> (usize, usize) {
    let (mut rest, mut count) = (bytes, 0);
    while bytes.len() - rest.len() < limit {
        match next_frame(rest) {
            Ok(Some((frame, tail))) => {
                handle(frame);
                rest = tail;
                count += 1;
            }
            Ok(None) => break,
            Err(invalid) => {
                // Only our own workers write here: a broken length is a bug of ours, and nothing after it can
                // be told.
                debug_assert!(false, "job queue out of step: {invalid}");
                return (bytes.len(), count);
            }
        }
    }
    (bytes.len() - rest.len(), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signals::BlockRef;
    use signals::frame::push_signal;
    use signals::keyop::TransIdAi;

    fn push(batch: &mut Vec<u8>, n: u32) {
        let length = match n % 97 {
            0 => 28_000,
            _ => (n as usize * 31) % 300,
        };
        let body = TransIdAi { api_op: n, length: length as u32 };
        push_signal(batch, BlockRef(1), BlockRef(2), &body, &vec![n as u8; length], &[]);
    }

    /// Two threads, batches larger and smaller than the ring, everything arrives once, in order, unharmed.
    #[test]
    fn frames_pass_in_order_under_stress() {
        const COUNT: u32 = 300_000;
        let wake = Arc::new(Wake::new().unwrap());
        let (mut sender, mut receiver) = job_queue(wake.clone());
        let producer = std::thread::spawn(move || {
            let (mut n, mut batch, mut full) = (0, Vec::new(), 0);
            while n < COUNT || !batch.is_empty() {
                let size = [1, 7, 400, 40_000][(n % 4) as usize];
                while n < COUNT && batch.len() < size {
                    push(&mut batch, n);
                    n += 1;
                }
                if !sender.send(&mut batch) {
                    full += 1;
                    std::thread::yield_now();
                }
            }
            full
        });
        let mut next = 0;
        while next < COUNT {
            wake.arm();
            let got = receiver.drain(|frame| {
                let (_, signals::Signal::TransIdAi(row)) = signals::Signal::parse(frame).unwrap() else {
                    panic!()
                };
                assert_eq!(row.body.api_op, next);
                assert!(row.first.iter().all(|b| *b == next as u8));
                next += 1;
            });
            if got == 0 {
                std::thread::yield_now();
            }
        }
        assert!(receiver.is_empty());
        producer.join().unwrap();
    }

    #[test]
    fn a_full_ring_gives_the_rest_back() {
        let (mut sender, mut receiver) = job_queue(Arc::new(Wake::new().unwrap()));
        let mut batch = Vec::new();
        let mut n = 0;
        while batch.len() < RING_BYTES + 4096 {
            push(&mut batch, n);
            n += 1;
        }
        assert!(!sender.send(&mut batch));
        assert!(!batch.is_empty());
        let mut seen = 0;
        while !sender.send(&mut batch) || !receiver.is_empty() {
            seen += receiver.drain(|_| {});
        }
        assert_eq!(seen, n as usize);
    }
}
