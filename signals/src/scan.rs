//! Scans: a client walks one fragment of a table in batches, straight at the LDM.
//!
//! The client starts one scan per fragment, asks for the next batch when it has digested the last, and
//! closes when it has enough; a closed link closes its scans. A batch holds whole rows, at most the asked
//! number and bytes. The LDM gives up the worker after a bounded number of examined rows and goes on by a
//! signal to itself, so a scan of millions does not hurt a key lookup.

use crate::frame::{Body, SignalNumber};
use crate::ids::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most rows a batch may hold (NDB's BatchSize limit).
pub const MAX_BATCH_ROWS: u32 = 992;
/// Most bytes of rows a batch may be asked for; one row more may exceed it.
pub const MAX_BATCH_BYTES: u32 = 128 << 10;

/// API to LDM: scan a fragment. Section: projection (column ids as u16).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ScanFragReq {
    /// The transaction whose own changes are visible, or [`TransId::NONE`].
    pub trans: TransId,
    /// The table, and the schema version of the request.
    pub table: TableId,
    /// See `table`.
    pub version: SchemaVersion,
    /// The client's number of the scan.
    pub api_scan: u32,
    /// Rows per batch, 1 to [`MAX_BATCH_ROWS`].
    pub batch_rows: u32,
    /// Bytes per batch, 1 to [`MAX_BATCH_BYTES`].
    pub batch_bytes: u32,
    /// Bytes of the projection.
    pub attr_len: u32,
    /// The partition.
    pub fragment: FragmentId,
    /// Zero.
    pub spare: [u16; 3],
}
const _: () = assert!(size_of::<ScanFragReq>() == 40);

impl Body for ScanFragReq {
    const NUMBER: SignalNumber = SignalNumber::ScanFragReq;
    fn sections(&self) -> [usize; 2] {
        [self.attr_len as usize, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        if !(1..=MAX_BATCH_ROWS).contains(&self.batch_rows)
            || !(1..=MAX_BATCH_BYTES).contains(&self.batch_bytes)
        {
            return Some("SCAN_FRAGREQ: impossible batch size");
        }
        (self.attr_len as usize > 2 * crate::table::MAX_COLUMNS)
            .then_some("SCAN_FRAGREQ: projection too long")
    }
}

/// LDM to API: a batch. Section: rows, each a u32 byte length (a multiple of 4) and its AttrInfo.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ScanFragConf {
    /// The client's number of the scan.
    pub api_scan: u32,
    /// The LDM's number of the scan, for [`ScanNextReq`].
    pub scan: u32,
    /// Rows in this batch.
    pub rows: u32,
    /// 1 if the fragment is done and the scan forgotten.
    pub end: u32,
    /// Bytes of the rows section.
    pub length: u32,
    /// Zero.
    pub spare: u32,
}

impl Body for ScanFragConf {
    const NUMBER: SignalNumber = SignalNumber::ScanFragConf;
    fn sections(&self) -> [usize; 2] {
        [self.length as usize, 0]
    }
    fn invalid(&self) -> Option<&'static str> {
        (self.length as usize > crate::frame::MAX_FRAME_BYTES).then_some("SCAN_FRAGCONF of impossible length")
    }
}

/// LDM to API: the scan is over because of an error.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ScanFragRef {
    /// The client's number of the scan.
    pub api_scan: u32,
    /// [`crate::ErrorCode`].
    pub code: u32,
}

/// API to LDM: the next batch, or close. A close is answered by no one.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ScanNextReq {
    /// The LDM's number of the scan.
    pub scan: u32,
    /// The client's number of the scan.
    pub api_scan: u32,
    /// 1 to close.
    pub close: u32,
    /// Zero.
    pub spare: u32,
}

/// LDM to itself: go on with a scan after a real-time break.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ScanContinueOrd {
    /// The LDM's number of the scan.
    pub scan: u32,
    /// The client's number of the scan, to notice a number used again.
    pub api_scan: u32,
}

macro_rules! plain_bodies {
    ($($type:ident)*) => {$(
        impl Body for $type {
            const NUMBER: SignalNumber = SignalNumber::$type;
            fn sections(&self) -> [usize; 2] {
                [0, 0]
            }
            fn invalid(&self) -> Option<&'static str> {
                None
            }
        }
    )*};
}
plain_bodies! { ScanFragRef ScanNextReq ScanContinueOrd }

/// Walks the rows of a batch's section; stops at the first malformed one.
pub fn rows(section: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = section;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        let (row, after) = tail.split_at_checked(u32::from_le_bytes(*head) as usize)?;
        rest = after;
        Some(row)
    })
}
