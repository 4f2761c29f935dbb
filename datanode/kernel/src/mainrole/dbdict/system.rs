//! System tables: what the cluster itself needs of the dictionary, made by the master at the first start.
//!
//! The database `mysql` holds `ndb_autoincrement`, from whose rows SQL nodes take ranges of AUTO_INCREMENT
//! values: one row per table id. A table id is used again only after all others, so a truncated or
//! recreated table counts from one. Clients may make tables of their own in `mysql`, but not drop what
//! stands here.

use signals::ErrorCode;
use signals::control::{Refusal, SchemaChange, TableInfo};
use signals::ids::SchemaVersion;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{TableId, table};

/// The database of the system tables.
pub(in crate::mainrole) const SYSTEM_DATABASE: &str = "mysql";
/// The table of AUTO_INCREMENT counters.
pub(in crate::mainrole) const AUTOINCREMENT_TABLE: &str = "ndb_autoincrement";

/// What the master makes at the first start, in this order.
pub(super) fn changes() -> Vec<SchemaChange> {
    vec![
        SchemaChange::CreateDatabase { name: SYSTEM_DATABASE.into(), sql: Vec::new() },
        SchemaChange::CreateTable(Box::new(autoincrement_table())),
    ]
}

fn autoincrement_table() -> TableDef {
    let column = |name: &str, size| ColumnDef {
        name: name.into(),
        kind: ColumnType::Unsigned,
        storage: ColumnStorage::Fixed { size },
        nullable: false,
        collation: 63,
        default: None,
        sql: Vec::new(),
    };
    TableDef {
        id: TableId(0),
        version: SchemaVersion(0),
        database: SYSTEM_DATABASE.into(),
        name: AUTOINCREMENT_TABLE.into(),
        columns: vec![column("table_id", 4), column("next_value", 8)],
        primary_key: vec![0],
        distribution_key: vec![0],
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: Vec::new(),
    }
}
const _: () = assert!(table::MAX_TABLES <= u32::MAX as usize, "a table id fits the key of ndb_autoincrement");

/// Refuses to drop or empty a system table.
pub(super) fn refuse_table_change(info: &TableInfo) -> Result<(), Refusal> {
    let def = &info.def;
    if def.database == SYSTEM_DATABASE && def.name == AUTOINCREMENT_TABLE {
        return Err(Refusal::new(
            ErrorCode::PARAMETER_ERROR,
            format!("{} is a system table", def.full_name()),
        ));
    }
    Ok(())
}

/// Refuses to drop the system database.
pub(super) fn refuse_database_drop(name: &str) -> Result<(), Refusal> {
    if name == SYSTEM_DATABASE {
        return Err(Refusal::new(ErrorCode::PARAMETER_ERROR, format!("{name} is the system database")));
    }
    Ok(())
}
