//! Frames: how one signal stands in a byte stream, a job buffer or a link.
//!
//! ```text
//! 0        4        6        8        12       16
//! | length | number | spare  | source | target | body ... sections ... | padding to 8 |
//! ```
//!
//! `length` counts everything including header and padding. Between two worker threads, between two
//! processes and inside one worker a signal has this same form: it is encoded once by its sender and viewed
//! in place by its receiver, and variable-length frames in byte rings need no pool of long-message handles.
//! (The design's first sketch had fixed-size entries with handles; bytes measured simpler and copy less.)
//!
//! [`Signal::parse`] validates; everything behind it may trust lengths and enums.

use crate::control::ControlSignal;
use crate::deadlock::*;
use crate::ids::BlockRef;
use crate::keyop::*;
use crate::scan::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The largest frame: a full row's AttrInfo with its key, a scan batch, or a table definition with its map.
pub const MAX_FRAME_BYTES: usize = 256 << 10;
/// Frames start at multiples of this.
pub const FRAME_ALIGN: usize = 8;
/// Bytes of [`FrameHeader`].
pub const HEADER_BYTES: usize = size_of::<FrameHeader>();

/// The header of every frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct FrameHeader {
    /// Bytes of the whole frame: header, body, sections, padding. A multiple of [`FRAME_ALIGN`].
    pub length: u32,
    /// Which signal ([`SignalNumber`]).
    pub number: u16,
    /// Zero.
    pub spare: u16,
    /// Who sent it.
    pub source: BlockRef,
    /// Who shall handle it.
    pub target: BlockRef,
}
const _: () = assert!(size_of::<FrameHeader>() == 16);

/// Why bytes are no signal. The text goes into the log when a peer is disconnected for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid(pub &'static str);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// A signal's fixed part: sizes are asserted, lengths of the sections that follow come from it.
pub trait Body: FromBytes + IntoBytes + KnownLayout + Immutable + Copy {
    /// The number on the wire.
    const NUMBER: SignalNumber;
    /// Byte lengths of the up to two sections that follow the body; each is padded to a multiple of 4 but the
    /// last, which runs into the frame's padding.
    fn sections(&self) -> [usize; 2];
    /// What is wrong with the body's values, if anything.
    fn invalid(&self) -> Option<&'static str>;
}

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The numbers of all signals; part of the protocol, never reused.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum SignalNumber {
            $($(#[$doc])* $name = $number,)*
            /// Control plane, see [`ControlSignal`].
            Control = 1,
        }

        /// Every signal, as its receiver sees it: bodies copied out, sections borrowed.
        #[derive(Debug)]
        pub enum Signal<'a> {
            $($(#[$doc])* $name(View<'a, $name>),)*
            /// Control plane: decoded, owned.
            Control(Box<ControlSignal>),
        }

        impl<'a> Signal<'a> {
            /// Views a whole frame (as [`next_frame`] returned it) as a signal.
            ///
            /// # Errors
            /// The frame's number is unknown, its lengths do not fit, or its values are not allowed.
            #[inline]
            pub fn parse(frame: &'a [u8]) -> Result<(FrameHeader, Self), Invalid> {
                let (header, rest) =
                    FrameHeader::read_from_prefix(frame).map_err(|_| Invalid("frame shorter than its header"))?;
                let signal = match header.number {
                    $($number => Self::$name(View::parse(rest)?),)*
                    1 => Self::Control(Box::new(parse_control(rest)?)),
                    _ => return Err(Invalid("unknown signal number")),
                };
                Ok((header, signal))
            }
        }
    };
}

signals! {
    /// API to TC: one operation of a transaction.
    TcKeyReq = 10,
    /// TC to API: a batch is through.
    TcKeyConf = 11,
    /// TC to API: one operation failed; the transaction lives.
    TcKeyRef = 12,
    /// API to TC: commit.
    TcCommitReq = 13,
    /// TC to API: committed.
    TcCommitConf = 14,
    /// API to TC: roll back, wholly or to a savepoint.
    TcRollbackReq = 15,
    /// TC to API: rolled back.
    TcRollbackConf = 16,
    /// TC to API: TC itself rolled the transaction back.
    TcRollbackRep = 17,
    /// LDM to API: a row.
    TransIdAi = 18,
    /// TC or LDM to LDM: prepare an operation.
    LqhKeyReq = 20,
    /// LDM to TC: prepared on all replicas, or committed if it was a self-committing operation.
    LqhKeyConf = 21,
    /// LDM to TC: not prepared anywhere.
    LqhKeyRef = 22,
    /// TC or LDM to LDM: commit an operation, last replica first.
    CommitReq = 23,
    /// Primary LDM to TC: committed on all replicas.
    CommittedConf = 24,
    /// TC to LDM: forget a committed operation.
    CompleteOrd = 25,
    /// TC or LDM to LDM: abort an operation, primary first.
    AbortReq = 26,
    /// Last LDM to TC: aborted on all replicas.
    AbortedConf = 27,
    /// API to LDM: committed read of a row, outside any transaction.
    ReadRowReq = 30,
    /// LDM to API: the row cannot be read.
    ReadRowRef = 31,
    /// API to LDM: start scanning a fragment.
    ScanFragReq = 40,
    /// LDM to API: a batch of rows.
    ScanFragConf = 41,
    /// LDM to API: the scan is over because of an error.
    ScanFragRef = 42,
    /// API to LDM: the next batch, or close.
    ScanNextReq = 43,
    /// LDM to itself: go on with a scan after a real-time break.
    ScanContinueOrd = 44,
    /// Primary LDM to TC: an operation waits for its row.
    WaitForRep = 50,
    /// TC to LDM and LDM to TC: follow who waits for whom.
    DeadlockProbe = 51,
    /// TC to TC: abort the victim of a deadlock.
    DeadlockReq = 52,
    /// TC to TC: it is no longer part of the deadlock.
    DeadlockConf = 53,
}

fn parse_control(rest: &[u8]) -> Result<ControlSignal, Invalid> {
    let (length, tail) = rest.split_first_chunk::<8>().ok_or(Invalid("control signal without length"))?;
    let length =
        usize::try_from(u64::from_le_bytes(*length)).map_err(|_| Invalid("control signal too long"))?;
    let payload = tail.get(..length).ok_or(Invalid("control signal longer than its frame"))?;
    crate::codec::decode(payload).map_err(|_| Invalid("control signal does not decode"))
}

/// A data plane signal viewed in its frame.
#[derive(Clone, Copy)]
pub struct View<'a, B> {
    /// The fixed part, copied out: frames then need no particular address.
    pub body: B,
    /// The first section, usually the key.
    pub first: &'a [u8],
    /// The second section, usually AttrInfo.
    pub second: &'a [u8],
}

impl<'a, B: Body> View<'a, B> {
    #[inline]
    fn parse(rest: &'a [u8]) -> Result<Self, Invalid> {
        let (body, tail) = B::read_from_prefix(rest).map_err(|_| Invalid("frame shorter than its body"))?;
        if let Some(reason) = body.invalid() {
            return Err(Invalid(reason));
        }
        let [first, second] = body.sections();
        let second_at = first.next_multiple_of(4);
        if tail.len() < second_at.saturating_add(second) {
            return Err(Invalid("sections longer than their frame"));
        }
        Ok(Self { body, first: &tail[..first], second: &tail[second_at..second_at + second] })
    }
}

impl<B: std::fmt::Debug> std::fmt::Debug for View<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} first={} second={}", self.body, self.first.len(), self.second.len())
    }
}

/// Appends a data plane signal to `out`, whose length must be a multiple of [`FRAME_ALIGN`].
///
/// The section lengths in `body` must be those of `first` and `second`.
#[inline]
pub fn push_signal<B: Body>(
    out: &mut Vec<u8>,
    source: BlockRef,
    target: BlockRef,
    body: &B,
    first: &[u8],
    second: &[u8],
) {
    debug_assert_eq!(out.len() % FRAME_ALIGN, 0);
    debug_assert_eq!(body.sections(), [first.len(), second.len()]);
    debug_assert_eq!(body.invalid(), None);
    let second_at = first.len().next_multiple_of(4);
    let length = (HEADER_BYTES + size_of::<B>() + second_at + second.len()).next_multiple_of(FRAME_ALIGN);
    debug_assert!(length <= MAX_FRAME_BYTES);
    let header = FrameHeader { length: length as u32, number: B::NUMBER as u16, spare: 0, source, target };
    let end = out.len() + length;
    out.reserve(length);
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(body.as_bytes());
    out.extend_from_slice(first);
    if !second.is_empty() {
        out.resize(out.len() + second_at - first.len(), 0);
        out.extend_from_slice(second);
    }
    out.resize(end, 0);
}

/// Appends a data plane signal whose only section is written in place by `write`, which returns the body.
///
/// If `write` refuses, `out` is as before.
///
/// # Errors
/// Those of `write`.
#[inline]
pub fn push_signal_with<B: Body, E>(
    out: &mut Vec<u8>,
    source: BlockRef,
    target: BlockRef,
    write: impl FnOnce(&mut Vec<u8>) -> Result<B, E>,
) -> Result<(), E> {
    debug_assert_eq!(out.len() % FRAME_ALIGN, 0);
    let start = out.len();
    let body_at = start + HEADER_BYTES;
    let section_at = body_at + size_of::<B>();
    out.resize(section_at, 0);
    let body = write(out).inspect_err(|_| out.truncate(start))?;
    debug_assert_eq!(body.sections(), [out.len() - section_at, 0]);
    out.resize(out.len().next_multiple_of(FRAME_ALIGN), 0);
    let length = out.len() - start;
    debug_assert!(length <= MAX_FRAME_BYTES);
    let header = FrameHeader { length: length as u32, number: B::NUMBER as u16, spare: 0, source, target };
    out[start..body_at].copy_from_slice(header.as_bytes());
    out[body_at..section_at].copy_from_slice(body.as_bytes());
    Ok(())
}

/// Appends a control signal to `out`. Returns whether it fitted into a frame; if not, nothing is appended.
#[must_use]
pub fn push_control(out: &mut Vec<u8>, source: BlockRef, target: BlockRef, signal: &ControlSignal) -> bool {
    debug_assert_eq!(out.len() % FRAME_ALIGN, 0);
    let payload = crate::codec::encode(signal);
    let length = (HEADER_BYTES + 8 + payload.len()).next_multiple_of(FRAME_ALIGN);
    if payload.is_empty() || length > MAX_FRAME_BYTES {
        return false;
    }
    let number = SignalNumber::Control as u16;
    let header = FrameHeader { length: length as u32, number, spare: 0, source, target };
    let end = out.len() + length;
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(&payload);
    out.resize(end, 0);
    true
}

/// A whole frame, and the bytes behind it.
pub type FrameAndRest<'a> = (&'a [u8], &'a [u8]);

/// Takes the first whole frame off `bytes`: `Ok(Some((frame, rest)))`, or `Ok(None)` if more bytes are
/// needed.
///
/// # Errors
/// The length field is impossible: the stream is out of step and the peer must be disconnected.
#[inline]
pub fn next_frame(bytes: &[u8]) -> Result<Option<FrameAndRest<'_>>, Invalid> {
    let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*head) as usize;
    if !(HEADER_BYTES..=MAX_FRAME_BYTES).contains(&length) || !length.is_multiple_of(FRAME_ALIGN) {
        return Err(Invalid("impossible frame length"));
    }
    Ok(bytes.split_at_checked(length))
}

/// The target of a whole frame, without parsing the rest.
#[inline]
#[must_use]
pub fn frame_target(frame: &[u8]) -> BlockRef {
    frame
        .get(12..16)
        .and_then(<[u8]>::first_chunk)
        .map_or(BlockRef::NONE, |b| BlockRef(u32::from_le_bytes(*b)))
}

/// The source of a whole frame, without parsing the rest.
#[inline]
#[must_use]
pub fn frame_source(frame: &[u8]) -> BlockRef {
    frame
        .get(8..12)
        .and_then(<[u8]>::first_chunk)
        .map_or(BlockRef::NONE, |b| BlockRef(u32::from_le_bytes(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::*;

    fn read_row() -> Vec<u8> {
        let body = ReadRowReq {
            table: TableId(3),
            version: SchemaVersion(1),
            api_op: 77,
            fragment: FragmentId(2),
            key_len: 5,
            attr_len: 4,
            spare: 0,
        };
        let mut out = Vec::new();
        let to = BlockRef::new(NodeId(1), BlockNumber::Dblqh, 0);
        push_signal(
            &mut out,
            BlockRef::new(NodeId(9), BlockNumber::Api, 1),
            to,
            &body,
            b"abcde",
            &[1, 0, 2, 0],
        );
        out
    }

    #[test]
    fn a_signal_comes_back_as_it_was_sent() {
        let mut bytes = read_row();
        assert!(push_control(
            &mut bytes,
            BlockRef::NONE,
            BlockRef(5),
            &ControlSignal::StartPermOrd { started: true }
        ));
        let (frame, rest) = next_frame(&bytes).unwrap().unwrap();
        assert_eq!(frame_target(frame).block(), Some(BlockNumber::Dblqh));
        assert_eq!(frame_source(frame).instance(), 1);
        let (header, Signal::ReadRowReq(read)) = Signal::parse(frame).unwrap() else {
            panic!("another signal")
        };
        assert_eq!(
            (header.length as usize, read.body.api_op, read.first, read.second),
            (frame.len(), 77, &b"abcde"[..], &[1u8, 0, 2, 0][..])
        );
        let (frame, rest) = next_frame(rest).unwrap().unwrap();
        let (_, Signal::Control(control)) = Signal::parse(frame).unwrap() else { panic!("another signal") };
        assert_eq!(*control, ControlSignal::StartPermOrd { started: true });
        assert!(rest.is_empty() && next_frame(rest).unwrap().is_none());
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let good = read_row();
        for cut in 0..good.len() {
            assert_eq!(next_frame(&good[..cut]).unwrap(), None);
            let _ = Signal::parse(&good[..cut]);
        }
        let mut state = 1u64;
        for _ in 0..200_000 {
            let mut bad = good.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % bad.len();
                bad[at] = (state >> 20) as u8;
            }
            if let Ok(Some((frame, _))) = next_frame(&bad)
                && let Ok((_, Signal::TcKeyReq(op))) = Signal::parse(frame)
            {
                assert_eq!(op.first.len(), op.body.key_len as usize);
            }
        }
    }

    #[test]
    fn impossible_lengths_end_the_stream() {
        for length in [0u32, 8, 17, MAX_FRAME_BYTES as u32 + 8, u32::MAX] {
            assert!(next_frame(&length.to_le_bytes()).is_err(), "{length}");
        }
    }
}
