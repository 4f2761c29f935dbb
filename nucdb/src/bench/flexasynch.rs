//! flexAsynch: NDB's classic benchmark of asynchronous key operations.
//!
//! `-t` threads each keep `-p` transactions of `-c` operations in flight and run `-o` rounds of them per
//! phase. A loop has four phases, each over all rows: insert, update, read, delete; `-l` loops are run. A
//! table has `-a` attributes, of which the first is the primary key of one word and the others are `-s`
//! words. So `-t 8 -p 128 -o 300 -l 3 -a 2 -s 2` is three loops over 307,200 rows of a key and eight bytes,
//! with up to 1,024 transactions in flight.
//!
//! A phase's rate is its operations divided by the time from when all threads start to when the last one is
//! done. Every value read is compared with what the key's row must contain after this loop's update.
//! Temporary errors are retried and counted, all others end the benchmark.

use super::BenchError;
use super::phases::{Phase, Tally, Worker};
use super::stats::Rates;
use clap::Args;
use ndbapi::core::DictRequest;
use ndbapi::poll::{Cluster, Session};
use ndbapi::{ConnectOptions, TableHandle};
use signals::control::SchemaChange;
use signals::ids::SchemaVersion;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, MAX_COLUMNS, MAX_ROW_BYTES, TableDef};
use signals::{ErrorCode, NodeId, TableId};
use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const DATABASE: &str = "flexasynch";
const TABLE: &str = "TAB0";
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(60);

/// `nucdb bench flexasynch`: NDB's options.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// Threads
    #[arg(short = 't', default_value_t = 1)]
    pub threads: u32,
    /// Transactions in flight per thread
    #[arg(short = 'p', default_value_t = 32)]
    pub parallelism: u32,
    /// Rounds of parallel transactions per phase
    #[arg(short = 'o', default_value_t = 500)]
    pub rounds: u32,
    /// Loops of insert, update, read and delete
    #[arg(short = 'l', default_value_t = 1)]
    pub loops: u32,
    /// Attributes of the table, the primary key included
    #[arg(short = 'a', default_value_t = 25)]
    pub attributes: u16,
    /// Words (4 bytes) per attribute; the primary key is always one
    #[arg(short = 's', default_value_t = 1)]
    pub size: u16,
    /// Operations per transaction
    #[arg(short = 'c', default_value_t = 1)]
    pub operations: u32,
    /// A table without logging; NDB's `-temp` works, too
    #[arg(long = "temp")]
    pub temp: bool,
    /// The management server
    #[arg(long, default_value = "127.0.0.1:1186")]
    pub connect_string: String,
    /// Read this config.ini instead of asking a management server
    #[arg(long, requires = "node_id")]
    pub config_file: Option<PathBuf>,
    /// With --config-file: the API node to be
    #[arg(long)]
    pub node_id: Option<u8>,
    /// Keep the table when done
    #[arg(long)]
    pub keep_table: bool,
}

/// What a run measured, per phase.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rates of the inserts.
    pub insert: Rates,
    /// Rates of the updates.
    pub update: Rates,
    /// Rates of the deletes.
    pub delete: Rates,
    /// Rates of the reads.
    pub read: Rates,
    /// Transactions tried again.
    pub retries: u64,
}

impl Options {
    /// Rows of the table while it is full.
    #[must_use]
    pub fn rows(&self) -> u64 {
        [self.threads, self.parallelism, self.rounds, self.operations].iter().map(|n| u64::from(*n)).product()
    }

    /// Whether the numbers make sense together.
    ///
    /// # Errors
    /// What does not.
    pub fn validate(&self) -> Result<(), BenchError> {
        let row = 4 + usize::from(self.attributes.saturating_sub(1)) * usize::from(self.size) * 4;
        let faults = [
            (self.threads == 0 || self.threads > 256, "-t must be 1 to 256"),
            (self.parallelism == 0 || self.parallelism > 4096, "-p must be 1 to 4096"),
            (self.operations == 0 || self.operations > 1000, "-c must be 1 to 1000"),
            (self.rounds == 0 || self.loops == 0, "-o and -l must be at least 1"),
            (self.attributes < 2 || usize::from(self.attributes) > MAX_COLUMNS, "-a must be 2 to 512"),
            (self.size == 0 || row > MAX_ROW_BYTES, "-a and -s make rows of no or more than 30000 bytes"),
            (self.rows() > u64::from(u32::MAX), "-t, -p, -o and -c make more rows than keys of one word"),
        ];
        match faults.iter().find(|f| f.0) {
            Some((_, text)) => Err(BenchError::Outside((*text).to_owned())),
            None => Ok(()),
        }
    }

    fn definition(&self) -> TableDef {
        let column = |name: String, kind, size| ColumnDef {
            name,
            kind,
            storage: ColumnStorage::Fixed { size },
            nullable: false,
            collation: 63,
            default: None,
            sql: vec![],
        };
        let others =
            (1..self.attributes).map(|i| column(format!("ATTR{i}"), ColumnType::Binary, self.size * 4));
        TableDef {
            id: TableId(0),
            version: SchemaVersion(0),
            database: DATABASE.into(),
            name: TABLE.into(),
            columns: std::iter::once(column("ATTR0".into(), ColumnType::Unsigned, 4)).chain(others).collect(),
            primary_key: vec![0],
            distribution_key: vec![0],
            partition_balance: PartitionBalance::default(),
            nologging: self.temp,
            read_backup: true,
            fully_replicated: false,
            sql: vec![],
        }
    }

    fn join(&self) -> Result<Cluster, BenchError> {
        let options = match (&self.config_file, self.node_id) {
            (Some(file), Some(node)) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|e| BenchError::Outside(format!("cannot read {}: {e}", file.display())))?;
                let loaded = config::parse(&file.display().to_string(), text.as_bytes())
                    .map_err(|e| BenchError::Outside(e.to_string()))?;
                ConnectOptions::direct(&loaded.config, NodeId(node))
            }
            _ => ConnectOptions::new(self.connect_string.as_str()),
        };
        Ok(Cluster::join(options.program("nucdb bench"))?)
    }
}

/// Runs the benchmark; `print` gets the lines as they come.
///
/// # Errors
/// See [`BenchError`].
pub fn run(options: &Options, print: &mut dyn FnMut(String)) -> Result<Outcome, BenchError> {
    let cluster = options.join()?;
    let mut session = cluster.session()?;
    session.wait_ready(Duration::from_secs(10))?;
    let table = create_table(&mut session, &options.definition())?;
    print(format!(
        "flexAsynch: {} threads with {} transactions of {} operations in flight, {} rounds, {} loops, {} rows of {} bytes{}",
        options.threads,
        options.parallelism,
        options.operations,
        options.rounds,
        options.loops,
        options.rows(),
        4 + u32::from(options.attributes - 1) * u32::from(options.size) * 4,
        if options.temp { ", not logged" } else { "" },
    ));
    // A session nobody polls would be taken for dead; the table is dropped by a new one.
    drop(session);
    let outcome = run_loops(options, &cluster, &table, print);
    if !options.keep_table {
        let change = SchemaChange::DropTable { table: table.id(), version: table.version() };
        let mut session = cluster.session()?;
        session.wait_ready(Duration::from_secs(10))?;
        session.change_schema(change, SCHEMA_TIMEOUT)?;
    }
    let outcome = outcome?;
    if outcome.retries > 0 {
        print(format!("{} transactions were tried again after temporary errors", outcome.retries));
    }
    print(outcome.insert.line("insert"));
    print(outcome.update.line("update"));
    print(outcome.delete.line("delete"));
    print(outcome.read.line("read"));
    Ok(outcome)
}

fn create_table(session: &mut Session, def: &TableDef) -> Result<TableHandle, BenchError> {
    let create = SchemaChange::CreateDatabase { name: DATABASE.into(), sql: vec![] };
    match session.change_schema(create, SCHEMA_TIMEOUT) {
        Err(error) if error.code() != ErrorCode::DATABASE_EXISTS => return Err(error.into()),
        _ => {}
    }
    // A table of an earlier run that was cut short.
    if let Ok(old) = session.table(DATABASE, TABLE, SCHEMA_TIMEOUT) {
        let drop = SchemaChange::DropTable { table: old.id(), version: old.version() };
        session.change_schema(drop, SCHEMA_TIMEOUT)?;
    }
    let create = DictRequest::Change(SchemaChange::CreateTable(Box::new(def.clone())));
    session.dictionary(create, SCHEMA_TIMEOUT)?;
    Ok(session.table(DATABASE, TABLE, SCHEMA_TIMEOUT)?)
}

fn run_loops(
    options: &Options,
    cluster: &Cluster,
    table: &TableHandle,
    print: &mut dyn FnMut(String),
) -> Result<Outcome, BenchError> {
    let barrier = Arc::new(Barrier::new(options.threads as usize + 1));
    let mut workers = Vec::new();
    for thread in 0..options.threads {
        let mut session = cluster.session()?;
        session.wait_ready(Duration::from_secs(10))?;
        // Each session asks for itself: its handle's reference count is then its own.
        let own = session.table(DATABASE, TABLE, SCHEMA_TIMEOUT)?;
        debug_assert_eq!(own.id(), table.id());
        workers.push(Worker::new(session, &own, options, thread)?);
    }
    let (sender, reports) = std::sync::mpsc::channel::<Tally>();
    let mut outcome = Outcome::default();
    let mut failed = Tally::default();
    std::thread::scope(|scope| {
        for mut worker in workers {
            let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
            let loops = options.loops;
            scope.spawn(move || {
                for turn in 0..loops {
                    for phase in Phase::ALL {
                        barrier.wait();
                        let tally = worker.run(phase, turn);
                        let _ = sender.send(tally);
                        barrier.wait();
                    }
                }
            });
        }
        drop(sender);
        for turn in 0..options.loops {
            for phase in Phase::ALL {
                barrier.wait();
                let started = Instant::now();
                barrier.wait();
                let seconds = started.elapsed().as_secs_f64();
                let mut tally = Tally::default();
                for report in reports.iter().take(options.threads as usize) {
                    tally.add(report);
                }
                let rates = match phase {
                    Phase::Insert => &mut outcome.insert,
                    Phase::Update => &mut outcome.update,
                    Phase::Read => &mut outcome.read,
                    Phase::Delete => &mut outcome.delete,
                };
                rates.push(tally.done, seconds);
                print(format!(
                    "loop {} {}: {:.0}/s ({} in {seconds:.3} s{})",
                    turn + 1,
                    phase.name(),
                    tally.done as f64 / seconds,
                    tally.done,
                    tally.remarks(),
                ));
                outcome.retries += tally.retries;
                failed.add(tally);
            }
        }
    });
    verdict(failed).map(|()| outcome)
}

/// Whether anything failed for good.
fn verdict(failed: Tally) -> Result<(), BenchError> {
    let what = failed.first.unwrap_or_default();
    match (failed.wrong, failed.errors) {
        (0, 0) => Ok(()),
        (0, errors) => Err(BenchError::Failed(format!("{errors} transactions failed, the first: {what}"))),
        (wrong, _) => Err(BenchError::Verification(format!("{wrong} rows were wrong, the first: {what}"))),
    }
}
