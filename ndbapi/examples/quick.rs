//! Inserts, reads, updates and scans a small table: `cargo run -p ndbapi --example quick -- 127.0.0.1:1186`.

use ndbapi::{ClusterConnection, NdbError, ScanSpec};
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{ErrorCode, TableId};

fn column(name: &str, kind: ColumnType, storage: ColumnStorage) -> ColumnDef {
    ColumnDef { name: name.into(), kind, storage, nullable: false, collation: 63, default: None, sql: vec![] }
}

fn people() -> TableDef {
    let mut name = column("name", ColumnType::Char, ColumnStorage::Var { max_len: 100 });
    name.nullable = true;
    TableDef {
        id: TableId(0),
        version: signals::ids::SchemaVersion(0),
        database: "quick".into(),
        name: "people".into(),
        columns: vec![
            column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
            name,
            column("born", ColumnType::Unsigned, ColumnStorage::Fixed { size: 2 }),
        ],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::default(),
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

#[tokio::main]
async fn main() -> Result<(), NdbError> {
    let connect_string = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:1186".into());
    let cluster = ClusterConnection::connect(&connect_string).await?;
    println!("connected as API node {}", cluster.node_id());

    let dictionary = cluster.dictionary();
    match dictionary.create_database("quick", vec![]).await {
        Err(error) if error.code() != ErrorCode::DATABASE_EXISTS => return Err(error),
        _ => {}
    }
    let table = match dictionary.create_table(people()).await {
        Err(error) if error.code() == ErrorCode::TABLE_EXISTS => dictionary.table("quick", "people").await?,
        other => other?,
    };

    // One transaction, one round trip.
    let mut tx = cluster.begin();
    for (id, name, born) in [(1u32, "Ada", 1815u16), (2, "Grace", 1906), (3, "Barbara", 1928)] {
        tx.write(&table).key(&[id.into()]).set("name", name).set("born", born).finish()?;
    }
    tx.commit().await?;

    // Read with a lock, change, commit.
    let mut tx = cluster.begin();
    let read = tx.read_exclusive(&table).key(&[2u32.into()]).finish()?;
    let results = tx.execute().await?;
    if let Some(row) = results.row(read)? {
        println!("before: {}", row.get_str("name")?.unwrap_or("NULL"));
    }
    tx.update(&table).key(&[2u32.into()]).set("name", "Grace Hopper").finish()?;
    tx.commit().await?;

    let mut scan = cluster.begin().scan(ScanSpec::new(&table).columns(&["id", "name"])?).await?;
    while let Some(rows) = scan.next().await? {
        for row in rows.rows() {
            println!("{} {}", row.get_u32("id")?.unwrap_or_default(), row.get_str("name")?.unwrap_or("-"));
        }
    }
    drop(scan);
    cluster.close().await;
    Ok(())
}
