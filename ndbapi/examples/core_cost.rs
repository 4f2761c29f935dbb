//! What the client library costs per operation, without any link: `cargo run --release -p ndbapi --example
//! core_cost`.
//!
//! Committed reads and lone updates of one row each, 1,024 in flight, answered by this program. Prints
//! nanoseconds per operation for putting operations in, taking answers in, and reading the results.

use ndbapi::core::{CommitMode, Completion, Core, CoreOptions, DataNode, Now};
use ndbapi::{Batch, OpId, Table, TableHandle, Template, Value};
use signals::control::{ApiRegConf, ControlSignal, TableInfo};
use signals::frame::{Signal, next_frame, push_control, push_signal};
use signals::ids::{Epoch, SchemaVersion};
use signals::keyop::{Operation, TcKeyConf, TransIdAi};
use signals::partition::{PartitionBalance, PartitionMap};
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{BlockNumber, BlockRef, NodeId, TableId, attr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const IN_FLIGHT: u32 = 1024;
const ROUNDS: u32 = 2_000;
const NODE: NodeId = NodeId(1);

fn table() -> TableHandle {
    let column = |name: &str, kind, size| ColumnDef {
        name: name.into(),
        kind,
        storage: ColumnStorage::Fixed { size },
        nullable: false,
        collation: 63,
        default: None,
        sql: vec![],
    };
    let def = TableDef {
        id: TableId(4),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "t".into(),
        columns: vec![column("id", ColumnType::Unsigned, 4), column("v", ColumnType::Binary, 8)],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::default(),
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    };
    let map = PartitionMap::place(def.id, def.partition_balance, &[vec![NODE]], 1);
    Arc::new(Table::new(TableInfo { def, map }).expect("a good table"))
}

fn main() {
    let mut core = Core::new(CoreOptions::new(NodeId(9), 0, vec![DataNode { id: NODE, near: true }]));
    core.connected(Now(0), NODE);
    let conf = ApiRegConf { started: true, status: String::new(), tcs: 1, ldms: 1, groups: vec![vec![NODE]] };
    let mut bytes = Vec::new();
    let qmgr = BlockRef::new(NODE, BlockNumber::Qmgr, 0);
    assert!(push_control(&mut bytes, qmgr, core.me(), &ControlSignal::ApiRegConf(conf)));
    core.receive(Now(0), NODE, &bytes).expect("a good frame");
    core.take_outgoing(|_, buffer| buffer.clear());
    let table = table();
    let read = Template::new(&table, Operation::ReadCommitted, &["id", "v"]).expect("columns");
    let update = Template::new(&table, Operation::Update, &["v"]).expect("columns");
    for (name, template) in [("committed read", &read), ("lone update", &update)] {
        measure(name, &mut core, template);
    }
}

fn measure(name: &str, core: &mut Core, template: &Template) {
    let mut pool: Vec<Box<Batch>> = (0..IN_FLIGHT).map(|_| Box::default()).collect();
    let mut spent = [Duration::ZERO; 3];
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let values: &[Value<'_>] = if template_is_read(template) { &[] } else { &[Value::Bytes(b"01234567")] };
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for key in 0..IN_FLIGHT {
            let mut batch = pool.pop().expect("one per key");
            batch.clear();
            batch.push(template, &[key.into()], values).expect("it fits");
            core.execute(Now(1), None, batch, CommitMode::Commit, key.into());
        }
        core.take_outgoing(|_, buffer| std::mem::swap(buffer, &mut requests));
        spent[0] += started.elapsed();

        answers.clear();
        answer(&requests, core.me(), &mut answers);
        requests.clear();

        let started = Instant::now();
        let mut rest = &answers[..];
        while let Ok(Some((frame, tail))) = next_frame(rest) {
            core.receive(Now(2), NODE, frame).expect("a good frame");
            rest = tail;
        }
        spent[1] += started.elapsed();

        let started = Instant::now();
        while let Some(Completion::Executed { tag, batch, result }) = core.next_completion() {
            assert!(result.is_ok());
            if template_is_read(template) {
                let row = batch.row(OpId(0)).expect("no error").expect("a row");
                assert_eq!(row.get_u32(0u16), Ok(Some(tag as u32)));
            }
            pool.push(batch);
        }
        spent[2] += started.elapsed();
        assert_eq!(pool.len(), IN_FLIGHT as usize);
    }
    let per = |d: Duration| d.as_nanos() as f64 / f64::from(ROUNDS * IN_FLIGHT);
    println!(
        "{name}: put in {:.0} ns, take in {:.0} ns, results {:.0} ns, together {:.0} ns",
        per(spent[0]),
        per(spent[1]),
        per(spent[2]),
        per(spent.iter().sum()),
    );
}

fn template_is_read(template: &Template) -> bool {
    template.operation().is_read()
}

/// Plays the data node.
fn answer(requests: &[u8], client: BlockRef, out: &mut Vec<u8>) {
    let mut rest = requests;
    let mut row = Vec::new();
    while let Ok(Some((frame, tail))) = next_frame(rest) {
        rest = tail;
        match Signal::parse(frame) {
            Ok((header, Signal::ReadRowReq(read))) => {
                row.clear();
                attr::push(&mut row, 0, Some(read.first));
                attr::push(&mut row, 1, Some(b"01234567"));
                let body = TransIdAi { api_op: read.body.api_op, length: row.len() as u32 };
                push_signal(out, header.target, client, &body, &row, &[]);
            }
            Ok((header, Signal::TcKeyReq(op))) => {
                let body = TcKeyConf { trans: op.body.trans, epoch: Epoch(1), operations: 1, committed: 1 };
                push_signal(out, header.target, client, &body, &[], &[]);
            }
            other => panic!("{other:?}"),
        }
    }
}
