//! FrameReader: the receive buffer of a link, from which whole frames are taken in place.
//!
//! Bytes go in behind the last (`spare`/`filled`, or `feed`), frames come out at the front (`next_frame`),
//! and when little room is left the rest of a frame is moved to the front: one big read serves hundreds of
//! signals and only the last, cut one is ever copied. The buffer is one chunk, and grows to one chunk plus
//! one frame of the largest size when a frame asks for it; it never grows beyond. Pages nobody touched cost
//! no memory.
//!
//! Facts: `start <= end <= buffer.len()`; `start..end` is received and not handed out yet.

use signals::frame::{Invalid, MAX_FRAME_BYTES, next_frame};

/// Bytes asked of the carrier at once.
pub const READ_CHUNK_BYTES: usize = 256 << 10;
/// With less room than this the buffer is tidied before the next read.
const ROOM_BYTES_MIN: usize = READ_CHUNK_BYTES / 4;

/// See the module.
pub struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// An empty buffer of one chunk.
    #[must_use]
    pub fn new() -> Self {
        Self { buffer: vec![0; READ_CHUNK_BYTES], start: 0, end: 0 }
    }

    /// Room to read into. It is never empty if all whole frames were taken out before.
    #[inline]
    pub fn spare(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.buffer.len() - self.end < ROOM_BYTES_MIN {
            self.tidy();
        }
        &mut self.buffer[self.end..]
    }

    #[cold]
    fn tidy(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < ROOM_BYTES_MIN {
            self.buffer.resize(MAX_FRAME_BYTES + READ_CHUNK_BYTES, 0);
        }
    }

    /// Notes that `count` bytes of [`Self::spare`] were filled.
    #[inline]
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Copies bytes in; returns how many had room.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let room = self.spare();
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.filled(count);
        count
    }

    /// Takes the next whole frame, `None` if more bytes are needed.
    ///
    /// # Errors
    /// The length field is impossible: the stream is out of step, close the link.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Invalid> {
        match next_frame(&self.buffer[self.start..self.end])? {
            Some((frame, _)) => {
                let at = self.start;
                self.start += frame.len();
                Ok(Some(&self.buffer[at..at + frame.len()]))
            }
            None => Ok(None),
        }
    }

    /// Everything received and not handed out yet, for callers that walk frames themselves; see
    /// [`Self::consume`].
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Notes that the first `count` bytes of [`Self::bytes`] were handled.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Bytes received and not handed out yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signals::BlockRef;
    use signals::frame::push_signal;
    use signals::keyop::TransIdAi;

    fn frames(lengths: &[usize]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, length) in lengths.iter().enumerate() {
            let body = TransIdAi { api_op: i as u32, length: *length as u32 };
            push_signal(&mut out, BlockRef(1), BlockRef(2), &body, &vec![i as u8; *length], &[]);
        }
        out
    }

    /// Every way of cutting the stream gives the same frames, and the buffer stays within its bound.
    #[test]
    fn frames_come_out_whole_however_they_arrive() {
        let lengths: Vec<usize> = (0..3000).map(|i| (i * 7919) % 30_000).collect();
        let bytes = frames(&lengths);
        for step in [1 << 20, 100_003, 4096, 61] {
            let mut reader = FrameReader::new();
            let mut seen = 0;
            for part in bytes[..bytes.len().min(step * 4000)].chunks(step) {
                let mut rest = part;
                while !rest.is_empty() {
                    rest = &rest[reader.feed(rest)..];
                    while let Some(frame) = reader.next_frame().unwrap() {
                        let want = &frames(&lengths[seen..=seen]);
                        assert_eq!(frame.len(), want.len());
                        assert!(frame[24..24 + lengths[seen]].iter().all(|b| *b == seen as u8));
                        seen += 1;
                    }
                }
            }
            assert!(reader.buffer.len() <= MAX_FRAME_BYTES + READ_CHUNK_BYTES);
            if bytes.len() <= step * 4000 {
                assert_eq!((seen, reader.pending()), (lengths.len(), 0), "step {step}");
            }
        }
    }

    #[test]
    fn impossible_lengths_are_refused_and_a_huge_frame_fits() {
        for length in [0u32, 8, 15, 17, MAX_FRAME_BYTES as u32 + 8, u32::MAX] {
            let mut reader = FrameReader::new();
            reader.feed(&length.to_le_bytes());
            assert!(reader.next_frame().is_err(), "{length}");
        }
        let mut huge = vec![0u8; MAX_FRAME_BYTES];
        huge[..4].copy_from_slice(&(MAX_FRAME_BYTES as u32).to_le_bytes());
        let mut reader = FrameReader::new();
        reader.feed(&frames(&[100]));
        let mut fed = 0;
        while fed < huge.len() {
            while let Some(frame) = reader.next_frame().unwrap() {
                assert_eq!(frame.len(), 128);
            }
            fed += reader.feed(&huge[fed..(fed + 1000).min(huge.len())]);
        }
        assert_eq!(reader.next_frame().unwrap().unwrap().len(), MAX_FRAME_BYTES);
        assert_eq!(reader.pending(), 0);
    }
}
