//! Micro benchmark of the storage of one LDM: nanoseconds per row for insert, read, update, scan and delete.
//!
//! `cargo run --release -p kernel --example ldm_bench [rows] [table]` runs all tables, or only the one
//! whose name is given, with a million rows each and again with a number that stays in the caches. Keys
//! come in random order. Hashing the key is part of every figure; "batched" reads go through the index in
//! groups of 16 with prefetch, as lqh does with the requests of one job batch. It measures; it asserts only
//! that every row was found.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock; the kernel does not"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use kernel::ldm::fragment::Fragment;
use kernel::ldm::page::{DataMemory, PAGE_BYTES};
use kernel::ldm::tup::{Before, CopyTuple, RowLayout, ScanStep};
use signals::attr;
use signals::ids::{SchemaVersion, TableId};
use signals::key::KeyHash;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};

const BATCH: usize = 16;

/// What can go wrong in a benchmark.
type Outcome<T> = Result<T, Box<dyn Error>>;

fn column(name: &str, storage: ColumnStorage) -> ColumnDef {
    ColumnDef {
        name: name.into(),
        kind: ColumnType::Binary,
        storage,
        nullable: false,
        collation: 63,
        default: None,
        sql: vec![],
    }
}

fn table(value: ColumnStorage, count: usize) -> TableDef {
    let mut columns = vec![column("id", ColumnStorage::Fixed { size: 8 })];
    columns.extend((0..count).map(|i| column(&format!("v{i}"), value)));
    TableDef {
        id: TableId(1),
        version: SchemaVersion(1),
        database: "bench".into(),
        name: "t".into(),
        columns,
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: true,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

/// Random order without repeats: a bijection of the numbers below 2^63.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()
}

/// The `n`-th row to visit, in an order unlike that of insertion.
fn shuffled(n: u64, rows: u64) -> u64 {
    // A full cycle of a multiplier that is prime to any row count used here.
    n.wrapping_mul(2_147_483_647) % rows
}

struct Bench {
    fragment: Fragment,
    memory: DataMemory,
    rows: u64,
    columns: u16,
    value: Vec<u8>,
    has_body: bool,
}

impl Bench {
    fn attrs(&self, key: &[u8; 8], fill: u8, out: &mut Vec<u8>) {
        out.clear();
        attr::push(out, 0, Some(key));
        self.values(fill, out);
    }

    fn values(&self, fill: u8, out: &mut Vec<u8>) {
        for id in 1..self.columns {
            let at = out.len() + 4;
            attr::push(out, id, Some(&self.value));
            out[at] = fill;
        }
    }

    fn insert(&mut self) -> Outcome<()> {
        let mut attrs = Vec::new();
        for n in 0..self.rows {
            let key = key(n);
            self.attrs(&key, 1, &mut attrs);
            let row = self.fragment.insert(KeyHash::of(&key), &key, &attrs)?;
            self.fragment.tup.commit_insert(row, 1);
        }
        Ok(())
    }

    fn read(&self) -> Outcome<u64> {
        let mut out = Vec::new();
        let mut bytes = 0;
        for n in 0..self.rows {
            let key = key(shuffled(n, self.rows));
            let row = self.fragment.find(KeyHash::of(&key), &key).ok_or("row lost")?;
            out.clear();
            self.fragment.tup.read_all(row, &mut out);
            bytes += out.len() as u64;
        }
        Ok(bytes)
    }

    fn read_batched(&self) -> Outcome<u64> {
        let mut out = Vec::new();
        let mut bytes = 0;
        let mut keys = [([0; 8], KeyHash(0)); BATCH];
        let mut n = 0;
        while n < self.rows {
            let count = BATCH.min((self.rows - n) as usize);
            for (i, slot) in keys[..count].iter_mut().enumerate() {
                let key = key(shuffled(n + i as u64, self.rows));
                *slot = (key, KeyHash::of(&key));
                self.fragment.prefetch_bucket(slot.1);
            }
            for (_, hash) in &keys[..count] {
                self.fragment.prefetch_row(*hash);
            }
            if self.has_body {
                for (_, hash) in &keys[..count] {
                    self.fragment.prefetch_body(*hash);
                }
            }
            for (key, hash) in &keys[..count] {
                let row = self.fragment.find(*hash, key).ok_or("row lost")?;
                out.clear();
                self.fragment.tup.read_all(row, &mut out);
                bytes += out.len() as u64;
            }
            n += count as u64;
        }
        Ok(bytes)
    }

    fn update(&mut self) -> Outcome<()> {
        let (mut attrs, mut copy) = (Vec::new(), CopyTuple::default());
        for n in 0..self.rows {
            let key = key(shuffled(n, self.rows));
            let row = self.fragment.find(KeyHash::of(&key), &key).ok_or("row lost")?;
            attrs.clear();
            self.values(n as u8, &mut attrs);
            self.fragment.tup.prepare_update(row, Before::Row, &attrs, &mut copy)?;
            self.fragment.tup.commit_update(row, &mut copy, n);
        }
        Ok(())
    }

    fn scan(&self) -> Outcome<u64> {
        let (mut cursor, mut out, mut found) = (self.fragment.tup.start_scan(), Vec::new(), 0);
        loop {
            let mut budget = 1000;
            out.clear();
            loop {
                match self.fragment.tup.next(&mut cursor, &mut budget) {
                    ScanStep::Row(row) => self.fragment.tup.read_all(row, &mut out),
                    ScanStep::Pause => break,
                    ScanStep::End if found == self.rows => return Ok(found),
                    ScanStep::End => return Err("scan lost rows".into()),
                }
                found += 1;
            }
        }
    }

    fn delete(&mut self) -> Outcome<()> {
        for n in 0..self.rows {
            let key = key(shuffled(n, self.rows));
            let hash = KeyHash::of(&key);
            let row = self.fragment.find(hash, &key).ok_or("row lost")?;
            self.fragment.commit_delete(hash, row);
        }
        Ok(())
    }
}

/// Nanoseconds per row of one pass.
fn timed<T>(rows: u64, pass: impl FnOnce() -> Outcome<T>) -> Outcome<f64> {
    let start = Instant::now();
    std::hint::black_box(pass()?);
    Ok(start.elapsed().as_nanos() as f64 / rows as f64)
}

fn run(name: &str, table: &TableDef, value: usize, rows: u64) -> Outcome<()> {
    let memory = DataMemory::new(1 << 20);
    let layout = Arc::new(RowLayout::new(table).map_err(|(code, text)| format!("{code:?} {text}"))?);
    let fragment = Fragment::new(layout, &memory);
    let columns = table.columns.len() as u16;
    let mut bench = Bench {
        fragment,
        memory,
        rows,
        columns,
        value: vec![7; value],
        has_body: matches!(table.columns[1].storage, ColumnStorage::Var { .. }),
    };
    // Small tables take as long as big ones: many rounds, and the best of each figure.
    let rounds = (1_000_000 / rows).clamp(3, 100);
    let mut best = [f64::MAX; 6];
    let mut bytes_per_row = 0.0;
    for _ in 0..rounds {
        let insert = timed(rows, || bench.insert())?;
        bytes_per_row = (bench.memory.used() * PAGE_BYTES as u64) as f64 / rows as f64;
        let figures = [
            insert,
            timed(rows, || bench.read())?,
            timed(rows, || bench.read_batched())?,
            timed(rows, || bench.update())?,
            timed(rows, || bench.scan())?,
            timed(rows, || bench.delete())?,
        ];
        for (best, figure) in best.iter_mut().zip(figures) {
            *best = best.min(figure);
        }
    }
    let [insert, read, batched, update, scan, delete] = best;
    println!(
        "{name:<22} {rows:>9} {insert:>7.0} {read:>7.0} {batched:>8.0} {update:>7.0} {scan:>7.1} {delete:>7.0} {bytes_per_row:>8.1}"
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let rows: Option<u64> = args.next().map(|text| text.parse()).transpose()?;
    let only = args.next();
    let fixed = |size| ColumnStorage::Fixed { size };
    let tables = [
        ("fixed-8", table(fixed(8), 1), 8),
        ("fixed-100", table(fixed(100), 1), 100),
        ("fixed-10x10", table(fixed(10), 10), 10),
        ("var-100", table(ColumnStorage::Var { max_len: 200 }, 1), 100),
    ];
    println!("ns per row             rows       insert    read  batched  update    scan  delete bytes/row");
    for (name, table, value) in &tables {
        if only.as_ref().is_none_or(|only| only == name) {
            for rows in rows.map_or(vec![5_000, 1_000_000], |rows| vec![rows]) {
                run(name, table, *value, rows)?;
            }
        }
    }
    Ok(())
}
