//! SendQueue: what waits to be written to one link, in order and bounded by its owner's decision.
//!
//! Whole buffers are moved in (`push`), not copied; the writer gathers them into one system call. Small
//! buffers that pile up behind a full socket are joined, so that a slow peer costs bytes and not thousands
//! of pieces. Emptied buffers come back from `push`, so in the steady state nothing is allocated.
//!
//! The queue never refuses: dropping part of a stream would break it. `is_overloaded` says that
//! SendBufferMemory is exceeded; the owner then stops taking work from that peer, refuses it, or closes the
//! link.

use crate::link::{LinkWriter, WriteOutcome};
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Most pieces gathered into one write.
const GATHER_MAX: usize = 32;
/// A piece behind another is joined to it while the result stays under this.
const JOIN_BYTES_MAX: usize = 64 << 10;
/// Emptied buffers kept for use, and the largest kept.
const SPARE_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 1 << 20;

/// See the module.
pub struct SendQueue {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are written already.
    written: usize,
    bytes: usize,
    limit_bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl SendQueue {
    /// An empty queue that counts as overloaded above `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { pieces: VecDeque::new(), written: 0, bytes: 0, limit_bytes, spare: Vec::new() }
    }

    /// Bytes waiting.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether more waits than the limit given at birth.
    #[inline]
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.bytes > self.limit_bytes
    }

    /// Takes a buffer of whole frames; gives back an empty one to fill next.
    #[inline]
    pub fn push(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        self.bytes += buffer.len();
        if let Some(last) = self.pieces.back_mut()
            && last.len() + buffer.len() <= JOIN_BYTES_MAX
        {
            last.extend_from_slice(&buffer);
            buffer.clear();
            return buffer;
        }
        if buffer.is_empty() {
            return buffer;
        }
        self.pieces.push_back(buffer);
        self.spare.pop().unwrap_or_default()
    }

    /// Moves everything of `other` behind what waits here. `other` keeps its limit and its spare buffers.
    pub fn append(&mut self, other: &mut Self) {
        debug_assert_eq!(other.written, 0, "a queue that was written from is not appended");
        self.bytes += other.bytes;
        other.bytes = 0;
        self.pieces.append(&mut other.pieces);
        // Buffers wander to the side that empties them; bring some back to the side that hands them out.
        while other.spare.len() < SPARE_MAX
            && let Some(buffer) = self.spare.pop()
        {
            other.spare.push(buffer);
        }
    }

    /// Writes until nothing is left or the link is full.
    ///
    /// # Errors
    /// The link is broken.
    pub fn write_to(&mut self, writer: &mut LinkWriter) -> io::Result<WriteOutcome> {
        while self.bytes > 0 {
            let mut slices = [IoSlice::new(&[]); GATHER_MAX];
            let mut used = 0;
            for (slot, piece) in slices.iter_mut().zip(&self.pieces) {
                let from = if used == 0 { self.written } else { 0 };
                *slot = IoSlice::new(&piece[from..]);
                used += 1;
            }
            match writer.write_vectored(&slices[..used]) {
                Ok(0) => return Ok(WriteOutcome::Full),
                Ok(count) => self.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(WriteOutcome::Full),
                Err(error) => return Err(error),
            }
        }
        Ok(WriteOutcome::Drained)
    }

    fn wrote(&mut self, count: usize) {
        self.bytes -= count;
        self.written += count;
        while let Some(first) = self.pieces.front()
            && first.len() <= self.written
        {
            self.written -= first.len();
            if let Some(mut piece) = self.pieces.pop_front()
                && self.spare.len() < SPARE_MAX
                && piece.capacity() <= SPARE_BYTES_MAX
            {
                piece.clear();
                self.spare.push(piece);
            }
        }
    }

    /// Forgets everything (the link is gone).
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.written = 0;
        self.bytes = 0;
    }
}
