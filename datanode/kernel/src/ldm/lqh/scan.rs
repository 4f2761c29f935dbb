//! Scans: rows of one fragment in batches, to a client that reads them at its own pace.
//!
//! ```text
//!   SCAN_FRAGREQ ──► Running ──batch full──► Parked ──SCAN_NEXTREQ──► Running ...
//!                      │  ▲                     └── close, client gone ──► (none)
//!                      │  └─ SCAN_CONTINUEORD after a real-time break
//!                      └──end of the fragment, error──► (none)
//! ```
//!
//! A running scan examines at most [`crate::tunables::Tunables::scan_slice_slots`] row slots, then goes on
//! by a signal to itself, so that other signals of the worker get their turn. Rows are looked at one by
//! one: each is the last committed version at the moment it is passed, or the scanning transaction's own
//! version.

use super::op::{Change, NONE};
use super::queue;
use super::{Ldm, op::Op};
use crate::ldm::row_ref::RowRef;
use crate::ldm::tup::{Cursor, ScanStep, TupError, TupFragment};
use crate::outbox::Outbox;
use crate::pool::Pool;
use signals::frame::View;
use signals::ids::SchemaVersion;
use signals::planted::Fault;
use signals::scan::{ScanContinueOrd, ScanFragConf, ScanFragRef, ScanFragReq, ScanNextReq};
use signals::{BlockRef, ErrorCode, FragmentId, TableId, TransId};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ScanState {
    #[default]
    Free,
    /// A SCAN_CONTINUEORD is on the way, or it is being worked on.
    Running,
    /// The client has a batch.
    Parked,
}

#[derive(Default)]
pub(super) struct Scan {
    state: ScanState,
    client: BlockRef,
    api_scan: u32,
    trans: TransId,
    table: TableId,
    version: SchemaVersion,
    fragment: FragmentId,
    batch_rows: u32,
    batch_bytes: u32,
    projection: Vec<u16>,
    cursor: Option<Cursor>,
    /// The batch so far.
    rows: u32,
    bytes: Vec<u8>,
}

impl Ldm {
    pub(super) fn on_scanfragreq(&mut self, client: BlockRef, req: &View<'_, ScanFragReq>, out: &mut Outbox) {
        let body = &req.body;
        match self.start_scan(client, req) {
            Ok(index) => self.run_scan(index, out),
            Err(code) => self.refuse_scan(client, body.api_scan, code, out),
        }
    }

    fn refuse_scan(&self, client: BlockRef, api_scan: u32, code: ErrorCode, out: &mut Outbox) {
        out.send(self.me, client, &ScanFragRef { api_scan, code: u32::from(code.0) }, &[], &[]);
    }

    fn start_scan(&mut self, client: BlockRef, req: &View<'_, ScanFragReq>) -> Result<u32, ErrorCode> {
        let body = &req.body;
        if let Some(code) = self.refusing {
            return Err(code);
        }
        let table = self.tables.get(body.table)?;
        table.check_version(body.version)?;
        let fragment = table.fragment_mut(body.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        let cursor = fragment.tup.start_scan();
        let index = self.scans.seize().ok_or(ErrorCode::TOO_MANY_SCANS)?;
        let scan = &mut self.scans[index];
        scan.state = ScanState::Running;
        scan.client = client;
        scan.api_scan = body.api_scan;
        scan.trans = body.trans;
        scan.table = body.table;
        scan.version = body.version;
        scan.fragment = body.fragment;
        scan.batch_rows = body.batch_rows;
        scan.batch_bytes = body.batch_bytes;
        scan.projection.clear();
        scan.projection.extend(req.first.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)));
        scan.cursor = Some(cursor);
        scan.rows = 0;
        scan.bytes.clear();
        Ok(index)
    }

    pub(super) fn on_scannextreq(&mut self, client: BlockRef, req: &ScanNextReq, out: &mut Outbox) {
        let parked = self.scans.get(req.scan).is_some_and(|s| {
            s.state == ScanState::Parked && s.client == client && s.api_scan == req.api_scan
        });
        if parked && req.close == 0 {
            self.scans[req.scan].state = ScanState::Running;
            if self.planted.has(Fault::ScanLosesRow) {
                self.lose_row(req.scan);
            }
            self.run_scan(req.scan, out);
        } else if parked {
            self.end_scan(req.scan);
        } else if req.close == 0 {
            self.refuse_scan(client, req.api_scan, ErrorCode::SCAN_TOO_OLD, out);
        }
    }

    /// [`Fault::ScanLosesRow`].
    #[cold]
    fn lose_row(&mut self, index: u32) {
        let scan = &mut self.scans[index];
        if let Some(fragment) = self.tables.fragment(scan.table, scan.fragment)
            && let Some(cursor) = &mut scan.cursor
        {
            fragment.tup.next(cursor, &mut 1000);
        }
    }

    pub(super) fn on_scancontinueord(&mut self, order: &ScanContinueOrd, out: &mut Outbox) {
        let running = self
            .scans
            .get(order.scan)
            .is_some_and(|s| s.state == ScanState::Running && s.api_scan == order.api_scan);
        if running {
            self.run_scan(order.scan, out);
        }
    }

    /// Works on a running scan for one slice: sends its batch if it is full or the fragment ends.
    fn run_scan(&mut self, index: u32, out: &mut Outbox) {
        let (client, api_scan) = (self.scans[index].client, self.scans[index].api_scan);
        match self.scan_slice(index) {
            Ok(Slice::Break) => {
                out.send(self.me, self.me, &ScanContinueOrd { scan: index, api_scan }, &[], &[]);
            }
            Ok(Slice::Full) => {
                self.send_batch(index, false, out);
                self.scans[index].state = ScanState::Parked;
            }
            Ok(Slice::End) => {
                self.send_batch(index, true, out);
                self.end_scan(index);
            }
            Err(code) => {
                self.end_scan(index);
                self.refuse_scan(client, api_scan, code, out);
            }
        }
    }

    fn scan_slice(&mut self, index: u32) -> Result<Slice, ErrorCode> {
        let scan = &mut self.scans[index];
        let table = self.tables.get(scan.table)?;
        table.check_version(scan.version)?;
        let fragment = table.fragment_mut(scan.fragment).ok_or(ErrorCode::DISTRIBUTION_CHANGED)?;
        let Some(mut cursor) = scan.cursor else { return Ok(Slice::End) };
        // About 20 microseconds.
        let mut budget = self.tunables.scan_slice_slots;
        let slice = loop {
            match fragment.tup.next(&mut cursor, &mut budget) {
                ScanStep::Row(row) => {
                    if append_row(scan, &fragment.tup, &self.ops, row)? || self.rare.happens() {
                        break Slice::Full;
                    }
                }
                ScanStep::Pause => break Slice::Break,
                ScanStep::End => break Slice::End,
            }
        };
        scan.cursor = Some(cursor);
        Ok(slice)
    }

    fn send_batch(&mut self, index: u32, end: bool, out: &mut Outbox) {
        let scan = &mut self.scans[index];
        let body = ScanFragConf {
            api_scan: scan.api_scan,
            scan: index,
            rows: scan.rows,
            end: u32::from(end),
            length: scan.bytes.len() as u32,
            spare: 0,
        };
        out.send(self.me, scan.client, &body, &scan.bytes, &[]);
        scan.rows = 0;
        scan.bytes.clear();
    }

    fn end_scan(&mut self, index: u32) {
        let scan = &mut self.scans[index];
        scan.state = ScanState::Free;
        scan.bytes = Vec::new();
        self.scans.release(index);
    }

    pub(super) fn close_scans_of(&mut self, client: BlockRef) {
        let theirs: Vec<u32> = self
            .scans
            .iter()
            .filter(|(_, s)| s.client == client && s.state != ScanState::Free)
            .map(|(index, _)| index)
            .collect();
        for index in theirs {
            self.end_scan(index);
        }
    }
}

enum Slice {
    /// More rows are there, others get their turn first.
    Break,
    /// The batch is full.
    Full,
    /// The fragment is done.
    End,
}

/// Adds a row to the batch if the scan may see it; returns whether the batch is full.
fn append_row(scan: &mut Scan, tup: &TupFragment, ops: &Pool<Op>, row: RowRef) -> Result<bool, ErrorCode> {
    let head = tup.op_head(row);
    let own = if head == NONE || scan.trans == TransId::NONE {
        None
    } else {
        queue::newest_change(ops, head, scan.trans)
    };
    let change = own.map_or(Change::None, |n| ops[n].change);
    if change == Change::Delete || (own.is_none() && tup.is_uncommitted(row)) {
        return Ok(false);
    }
    let start = scan.bytes.len();
    scan.bytes.extend_from_slice(&[0; 4]);
    let read: Result<(), TupError> = match own {
        Some(n) if change == Change::Copy => tup.read_copy(&ops[n].copy, &scan.projection, &mut scan.bytes),
        _ => tup.read(row, &scan.projection, &mut scan.bytes),
    };
    if let Err(error) = read {
        scan.bytes.truncate(start);
        return Err(error.into());
    }
    let length = (scan.bytes.len() - start - 4) as u32;
    scan.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    scan.rows += 1;
    Ok(scan.rows >= scan.batch_rows || scan.bytes.len() >= scan.batch_bytes as usize)
}
