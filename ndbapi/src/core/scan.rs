//! Scans: a table is read fragment by fragment, several at once, in batches straight from the LDMs.
//!
//! Each fragment scan is one request at one replica. When its batch has come it waits in the scan's queue
//! until the consumer takes it, and only then is the next one asked for: a scan never holds more than one
//! batch per fragment, so a slow consumer bounds the memory.
//!
//! ```text
//!   (not started) ──► Asked ──SCAN_FRAGCONF──► Full ──taken──► Asked ... ──end──► (gone)
//!                       └── its node is lost: before any row, another replica; after, the scan fails (499)
//! ```
//!
//! Inside a transaction with changes of its own the scan reads the primaries under the transaction's id,
//! and so sees those changes. Scans take no locks and see rows as committed when passed, not as of one
//! moment.

use super::receive::{error_code, is_stale_schema};
use super::{Completion, Core, NOBODY, Now, REST_MS, TransRef};
use crate::NdbError;
use crate::row::{Row, fits};
use crate::table::{Column, TableHandle};
use signals::frame::{self, Invalid};
use signals::ids::FragmentId;
use signals::scan::{
    MAX_BATCH_BYTES, MAX_BATCH_ROWS, ScanFragConf, ScanFragRef, ScanFragReq, ScanNextReq, rows,
};
use signals::{BlockNumber, BlockRef, ErrorClass, ErrorCode, TransId};
use std::collections::VecDeque;

/// What to scan.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    table: TableHandle,
    projection: Option<Vec<u8>>,
    partition: Option<u16>,
    batch_rows: u32,
    batch_bytes: u32,
    parallelism: u16,
}

impl ScanSpec {
    /// All columns of all partitions.
    #[must_use]
    pub fn new(table: &TableHandle) -> Self {
        Self {
            table: table.clone(),
            projection: None,
            partition: None,
            batch_rows: 256,
            batch_bytes: 32 << 10,
            parallelism: 16,
        }
    }

    /// The columns to answer with, in this order; none at all is allowed (who only counts).
    ///
    /// # Errors
    /// 4004: a column does not exist.
    pub fn columns<C: Column>(mut self, columns: &[C]) -> Result<Self, NdbError> {
        let mut projection = Vec::with_capacity(2 * columns.len());
        for column in columns {
            projection.extend_from_slice(&column.resolve(&self.table)?.to_le_bytes());
        }
        self.projection = Some(projection);
        Ok(self)
    }

    /// One partition only.
    #[must_use]
    pub fn partition(mut self, partition: u16) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Rows (1 to 992) and bytes (up to 128 KiB) per batch and fragment.
    #[must_use]
    pub fn batch(mut self, rows: u32, bytes: u32) -> Self {
        self.batch_rows = rows.clamp(1, MAX_BATCH_ROWS);
        self.batch_bytes = bytes.clamp(1, MAX_BATCH_BYTES);
        self
    }

    /// Most fragments scanned at the same time.
    #[must_use]
    pub fn parallelism(mut self, fragments: u16) -> Self {
        self.parallelism = fragments.max(1);
        self
    }
}

/// A scan of a [`Core`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScanRef {
    index: u32,
    serial: u64,
}

/// Rows of one fragment.
pub struct RowBatch {
    table: TableHandle,
    bytes: Vec<u8>,
    count: u32,
}

impl RowBatch {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &TableHandle {
        &self.table
    }
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        rows(&self.bytes).map(|bytes| Row::new(&self.table, bytes))
    }
}

impl std::fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

/// What [`Core::scan_take`] finds.
#[derive(Debug)]
pub enum ScanTake {
    /// Rows.
    Rows(RowBatch),
    /// Nothing yet: [`Completion::ScanReady`] will tell.
    Pending,
    /// The scan is over; its record is free.
    End,
    /// The scan is over because of this; its record is free.
    Failed(NdbError),
}

pub(super) struct Fragment {
    scan: u32,
    fragment: u16,
    node: u8,
    tried: u8,
    /// The LDM, and its number of the scan once it has told.
    ldm: BlockRef,
    ldm_scan: Option<u32>,
    /// Has given rows: it cannot start over.
    started: bool,
    /// A batch is awaited (else it waits in the queue).
    asked: bool,
    deadline: Now,
}

struct Ready {
    bytes: Vec<u8>,
    count: u32,
    /// The fragment to go on with; `None` if it is done.
    next: Option<u32>,
}

#[derive(Default)]
pub(super) struct ScanRecord {
    /// `None` while the record is free.
    spec: Option<ScanSpec>,
    projection: Vec<u8>,
    trans: TransId,
    next_fragment: u16,
    end_fragment: u16,
    /// Numbers of the fragment scans under way.
    running: Vec<u32>,
    ready: VecDeque<Ready>,
    failed: Option<NdbError>,
    tag: u64,
    /// The consumer found nothing and wants to be told.
    waiting: bool,
    serial: u64,
}

impl Core {
    /// Starts a scan; batches are fetched with [`Self::scan_take`].
    ///
    /// # Errors
    /// The partition does not exist, the transaction is over, no data node is there, or too many scans are
    /// (245).
    pub fn scan(
        &mut self,
        now: Now,
        trans: Option<TransRef>,
        spec: ScanSpec,
        tag: u64,
    ) -> Result<ScanRef, NdbError> {
        if let Some(trans) = trans
            && let Some(error) = self.refusal(trans)
        {
            return Err(error);
        }
        let partitions = spec.table.partitions();
        let (next_fragment, end_fragment) = match spec.partition {
            Some(p) if p < partitions => (p, p + 1),
            Some(p) => {
                let text = format!("partition {p} of a table with {partitions}");
                return Err(NdbError::with(ErrorCode::PARAMETER_ERROR, text));
            }
            None => (0, partitions),
        };
        if !self.is_ready() {
            return Err(self.unavailable());
        }
        let own = trans.and_then(|t| self.trans_mut(t.0)).filter(|t| t.has_writes).map(|t| t.id);
        let index = match self.free_scans.pop() {
            Some(index) => index,
            None => {
                self.scans.push(ScanRecord::default());
                (self.scans.len() - 1) as u32
            }
        };
        let record = &mut self.scans[index as usize];
        let serial = record.serial + 1;
        let projection = spec.projection.clone().unwrap_or_else(|| spec.table.all_columns().to_vec());
        let trans = own.unwrap_or(TransId::NONE);
        *record = ScanRecord {
            spec: Some(spec),
            projection,
            trans,
            next_fragment,
            end_fragment,
            tag,
            serial,
            ..Default::default()
        };
        self.scan_more(now, index);
        if let Some(error) = self.scans[index as usize].failed.take() {
            self.free_scan(now, index);
            return Err(error);
        }
        Ok(ScanRef { index, serial })
    }

    /// Starts fragments up to the scan's parallelism.
    fn scan_more(&mut self, now: Now, index: u32) {
        loop {
            let record = &mut self.scans[index as usize];
            let Some(spec) = &record.spec else { return };
            let full = record.running.len() >= spec.parallelism as usize;
            if full || record.failed.is_some() || record.next_fragment >= record.end_fragment {
                return;
            }
            let fragment = Fragment {
                scan: index,
                fragment: record.next_fragment,
                node: 0,
                tried: 0,
                ldm: BlockRef::NONE,
                ldm_scan: None,
                started: false,
                asked: true,
                deadline: now,
            };
            record.next_fragment += 1;
            if let Err(code) = self.start_fragment(now, fragment) {
                if code == ErrorCode::TOO_MANY_SCANS && !self.scans[index as usize].running.is_empty() {
                    // Others hold the numbers; it gets its turn when one of its own is done.
                    self.scans[index as usize].next_fragment -= 1;
                    return;
                }
                self.fail_scan(now, index, code.into());
                return;
            }
        }
    }

    fn start_fragment(&mut self, now: Now, mut fragment: Fragment) -> Result<(), ErrorCode> {
        let record = &self.scans[fragment.scan as usize];
        let Some(spec) = &record.spec else { return Err(ErrorCode::STATUS_ERROR) };
        let own_changes = record.trans != TransId::NONE;
        let any = spec.table.def().read_backup && !own_changes;
        let candidates = spec.table.placement(fragment.fragment).replicas().enumerate();
        let mut best: Option<(usize, usize, u16, bool)> = None;
        for (bit, (node, ldm)) in candidates {
            let node_index = self.by_id[node.0 as usize] as usize;
            let Some(state) = self.nodes.get(node_index).filter(|n| n.is_started()) else { continue };
            let tried = fragment.tried & 1 << bit != 0;
            if !tried && (best.is_none() || state.near && !best.is_some_and(|b| b.3)) {
                best = Some((bit, node_index, ldm, state.near));
            }
            if !any {
                break;
            }
        }
        let Some((bit, node, ldm, _)) = best else { return Err(ErrorCode::SCAN_LOST_NODE) };
        fragment.tried |= 1 << bit;
        fragment.node = node as u8;
        fragment.ldm = BlockRef::new(self.nodes[node].id, BlockNumber::Dblqh, ldm);
        fragment.asked = true;
        fragment.deadline = now.after_ms(self.options.request_timeout_ms);
        let (scan, target, number) = (fragment.scan, fragment.ldm, FragmentId(fragment.fragment));
        let mut body = ScanFragReq {
            trans: record.trans,
            table: spec.table.id(),
            version: spec.table.version(),
            api_scan: 0,
            batch_rows: spec.batch_rows,
            batch_bytes: spec.batch_bytes,
            attr_len: record.projection.len() as u32,
            fragment: number,
            spare: [0; 3],
        };
        let Some(api_scan) = self.fragments.insert(fragment) else { return Err(ErrorCode::TOO_MANY_SCANS) };
        body.api_scan = api_scan;
        let projection = std::mem::take(&mut self.scans[scan as usize].projection);
        let me = self.me;
        frame::push_signal(self.out(node), me, target, &body, &projection, &[]);
        let record = &mut self.scans[scan as usize];
        record.projection = projection;
        record.running.push(api_scan);
        Ok(())
    }

    pub(super) fn on_scanfragconf(
        &mut self,
        now: Now,
        source: BlockRef,
        conf: &ScanFragConf,
        section: &[u8],
    ) -> Result<(), Invalid> {
        let Some(fragment) = self.fragments.get_mut(conf.api_scan) else {
            self.stale += 1;
            if conf.end == 0 {
                // Closed before its number was known: now it is.
                self.send_scan_next(source, conf.scan, conf.api_scan, true);
            }
            return Ok(());
        };
        if !fragment.asked || conf.end > 1 {
            return Err(Invalid("SCAN_FRAGCONF without a question"));
        }
        let index = fragment.scan;
        let record = &mut self.scans[index as usize];
        let Some(spec) = &record.spec else { return Err(Invalid("SCAN_FRAGCONF of a closed scan")) };
        let (mut count, mut used) = (0, 0);
        for row in rows(section) {
            if !fits(&spec.table, &record.projection, row) {
                return Err(Invalid("a scanned row that does not fit what was asked"));
            }
            count += 1;
            used += 4 + row.len();
        }
        if count != conf.rows || used != section.len() {
            return Err(Invalid("SCAN_FRAGCONF whose rows do not add up"));
        }
        fragment.asked = count == 0 && conf.end == 0;
        fragment.ldm_scan = Some(conf.scan);
        fragment.started |= count > 0;
        if fragment.asked {
            self.send_scan_next(source, conf.scan, conf.api_scan, false);
            return Ok(());
        }
        let next = if conf.end == 1 {
            self.fragments.remove(conf.api_scan);
            record.running.retain(|n| *n != conf.api_scan);
            None
        } else {
            Some(conf.api_scan)
        };
        if count > 0 {
            record.ready.push_back(Ready { bytes: section.to_vec(), count, next });
        }
        self.scan_more(now, index);
        self.scan_news(index);
        Ok(())
    }

    pub(super) fn on_scanfragref(&mut self, now: Now, refusal: &ScanFragRef) -> Result<(), Invalid> {
        let code = error_code(refusal.code)?;
        let Some(fragment) = self.fragments.remove(refusal.api_scan) else {
            self.stale += 1;
            return Ok(());
        };
        let index = fragment.scan;
        self.scans[index as usize].running.retain(|n| *n != refusal.api_scan);
        let elsewhere = matches!(code.class(), ErrorClass::NodeRecovery | ErrorClass::NodeShutdown)
            && !is_stale_schema(code)
            && !fragment.started;
        if elsewhere && self.start_fragment(now, fragment).is_ok() {
            return Ok(());
        }
        if is_stale_schema(code)
            && let Some(spec) = &self.scans[index as usize].spec
        {
            let table = spec.table.id();
            self.forget_table(table);
        }
        self.fail_scan(now, index, code.into());
        Ok(())
    }

    /// The next rows of a scan, if there are any yet.
    pub fn scan_take(&mut self, now: Now, scan: ScanRef) -> ScanTake {
        let deadline = now.after_ms(self.options.request_timeout_ms);
        let Some(record) = self.scans.get_mut(scan.index as usize).filter(|r| r.serial == scan.serial) else {
            return ScanTake::Failed(NdbError::with(ErrorCode::STATUS_ERROR, "the scan is over"));
        };
        let Some(spec) = &record.spec else {
            return ScanTake::Failed(NdbError::with(ErrorCode::STATUS_ERROR, "the scan is over"));
        };
        let table = spec.table.clone();
        if let Some(error) = record.failed.take() {
            self.free_scan(now, scan.index);
            return ScanTake::Failed(error);
        }
        let Some(ready) = record.ready.pop_front() else {
            if record.running.is_empty() && record.next_fragment >= record.end_fragment {
                self.free_scan(now, scan.index);
                return ScanTake::End;
            }
            record.waiting = true;
            return ScanTake::Pending;
        };
        if let Some(api_scan) = ready.next
            && let Some(fragment) = self.fragments.get_mut(api_scan)
        {
            fragment.asked = true;
            fragment.deadline = deadline;
            let (ldm, number) = (fragment.ldm, fragment.ldm_scan.unwrap_or_default());
            self.send_scan_next(ldm, number, api_scan, false);
        }
        ScanTake::Rows(RowBatch { table, bytes: ready.bytes, count: ready.count })
    }

    /// The consumer has enough.
    pub fn scan_close(&mut self, now: Now, scan: ScanRef) {
        if self.scans.get(scan.index as usize).is_some_and(|r| r.serial == scan.serial && r.spec.is_some()) {
            self.free_scan(now, scan.index);
        }
    }

    /// Tells a waiting consumer that there is something to take.
    fn scan_news(&mut self, index: u32) {
        let record = &mut self.scans[index as usize];
        let over = record.running.is_empty() && record.next_fragment >= record.end_fragment;
        if record.waiting && (over || record.failed.is_some() || !record.ready.is_empty()) {
            record.waiting = false;
            let tag = record.tag;
            if tag != NOBODY {
                self.complete_with(Completion::ScanReady { tag });
            }
        }
    }

    fn fail_scan(&mut self, now: Now, index: u32, error: NdbError) {
        self.close_fragments(now, index);
        let record = &mut self.scans[index as usize];
        record.ready.clear();
        record.failed.get_or_insert(error);
        self.scan_news(index);
    }

    fn close_fragments(&mut self, now: Now, index: u32) {
        let until = now.after_ms(REST_MS).0;
        for api_scan in std::mem::take(&mut self.scans[index as usize].running) {
            let Some(fragment) = self.fragments.retire(api_scan, until) else { continue };
            // One that has not told its number yet is closed when it does.
            if let Some(number) = fragment.ldm_scan {
                self.send_scan_next(fragment.ldm, number, api_scan, true);
            }
        }
    }

    fn send_scan_next(&mut self, ldm: BlockRef, scan: u32, api_scan: u32, close: bool) {
        let Some(node) = self.index_of(ldm.node()).filter(|i| self.nodes[*i].is_started()) else { return };
        let body = ScanNextReq { scan, api_scan, close: close.into(), spare: 0 };
        let me = self.me;
        frame::push_signal(self.out(node), me, ldm, &body, &[], &[]);
    }

    fn free_scan(&mut self, now: Now, index: u32) {
        self.close_fragments(now, index);
        let record = &mut self.scans[index as usize];
        let serial = record.serial;
        *record = ScanRecord { serial, ..Default::default() };
        self.free_scans.push(index);
    }

    pub(super) fn scan_node_lost(&mut self, now: Now, node: usize) {
        let theirs: Vec<u32> =
            self.fragments.iter_mut().filter(|(_, f)| f.node as usize == node).map(|(n, _)| n).collect();
        for number in theirs {
            let until = now.after_ms(REST_MS).0;
            let Some(fragment) = self.fragments.retire(number, until) else { continue };
            let index = fragment.scan;
            let record = &mut self.scans[index as usize];
            record.running.retain(|n| *n != number);
            let restarted = !fragment.started && self.start_fragment(now, fragment).is_ok();
            if !restarted {
                let text = "a node was lost in the middle of the scan";
                self.fail_scan(now, index, NdbError::with(ErrorCode::SCAN_LOST_NODE, text));
            }
        }
    }

    pub(super) fn scan_timeouts(&mut self, now: Now) {
        let due: Vec<u32> = self
            .fragments
            .iter_mut()
            .filter(|(_, f)| f.asked && now >= f.deadline)
            .map(|(_, f)| f.scan)
            .collect();
        for index in due {
            let error = self.no_answer();
            self.fail_scan(now, index, error);
        }
    }
}
