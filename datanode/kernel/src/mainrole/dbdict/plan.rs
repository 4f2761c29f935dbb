//! Plan: what a client asks becomes what a schema transaction does, or a refusal that says why not.
//!
//! Only the master plans, against its own catalog and when the change's turn has come, so that what is true
//! here stays true until the transaction ends.

use super::catalog::Catalog;
use super::system;
use crate::setup::NodeSetup;
use signals::codec;
use signals::control::{DatabaseInfo, Refusal, SchemaChange, TableInfo};
use signals::frame::MAX_FRAME_BYTES;
use signals::ids::SchemaVersion;
use signals::partition::PartitionMap;
use signals::peer::SchemaOp;
use signals::table::{MAX_NAME_BYTES, MAX_TABLES, TableDef};
use signals::{ErrorCode, TableId};

/// Most bytes of the SQL node's description of a database.
const DATABASE_SQL_BYTES_MAX: usize = 4 << 10;
/// Most databases.
const DATABASES_MAX: usize = MAX_TABLES;
/// Most bytes of a table's definition with its map: it has to fit a frame with everything around it.
const TABLE_INFO_BYTES_MAX: usize = MAX_FRAME_BYTES - (8 << 10);

/// A refusal of a change that would not even fit the signals it travels in.
pub(super) fn oversized(change: &SchemaChange) -> Option<Refusal> {
    let bytes = match change {
        SchemaChange::CreateTable(def) => codec::encode(def.as_ref()).len(),
        SchemaChange::CreateDatabase { name, sql } => name.len() + sql.len(),
        SchemaChange::DropDatabase { name } => name.len(),
        SchemaChange::DropTable { .. } | SchemaChange::TruncateTable { .. } => 0,
    };
    (bytes > TABLE_INFO_BYTES_MAX).then(|| too_large(bytes))
}

fn too_large(bytes: usize) -> Refusal {
    let text = format!(
        "a definition of {bytes} bytes; {TABLE_INFO_BYTES_MAX} are allowed: shorten names or defaults"
    );
    Refusal::new(ErrorCode::INVALID_TABLE_DEFINITION, text)
}

/// Works a change out.
///
/// # Errors
/// The change is not possible.
pub(super) fn plan(catalog: &Catalog, setup: &NodeSetup, change: SchemaChange) -> Result<SchemaOp, Refusal> {
    match change {
        SchemaChange::CreateDatabase { name, sql } => create_database(catalog, name, sql),
        SchemaChange::DropDatabase { name } => drop_database(catalog, name),
        SchemaChange::CreateTable(def) => create_table(catalog, setup, *def),
        SchemaChange::DropTable { table, version } => {
            system::refuse_table_change(existing(catalog, table, version)?)?;
            Ok(SchemaOp::DropTable { table })
        }
        SchemaChange::TruncateTable { table, version } => {
            let old = existing(catalog, table, version)?;
            system::refuse_table_change(old)?;
            let new = place(catalog, setup, old.def.clone())?;
            Ok(SchemaOp::TruncateTable { old: table, new: Box::new(new) })
        }
    }
}

fn create_database(catalog: &Catalog, name: String, sql: Vec<u8>) -> Result<SchemaOp, Refusal> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(['\0', '/']) {
        let text = format!("bad database name {name:?}: 1 to {MAX_NAME_BYTES} bytes without '/' are allowed");
        return Err(Refusal::new(ErrorCode::INVALID_TABLE_DEFINITION, text));
    }
    if sql.len() > DATABASE_SQL_BYTES_MAX {
        return Err(too_large(sql.len()));
    }
    if catalog.database(&name).is_some() {
        return Err(Refusal::new(ErrorCode::DATABASE_EXISTS, format!("database {name:?}")));
    }
    if catalog.databases().len() >= DATABASES_MAX {
        return Err(Refusal::new(ErrorCode::NO_MORE_TABLES, format!("{DATABASES_MAX} databases exist")));
    }
    Ok(SchemaOp::CreateDatabase(DatabaseInfo { name, sql }))
}

fn drop_database(catalog: &Catalog, name: String) -> Result<SchemaOp, Refusal> {
    system::refuse_database_drop(&name)?;
    let Some(database) = catalog.database(&name) else { return Err(no_database(&name)) };
    if let Some(table) = database.tables.keys().next() {
        let count = database.tables.len();
        let text = format!("database {name:?} has {count} tables, among them {table:?}; drop them first");
        return Err(Refusal::new(ErrorCode::DATABASE_NOT_EMPTY, text));
    }
    Ok(SchemaOp::DropDatabase { name })
}

fn create_table(catalog: &Catalog, setup: &NodeSetup, def: TableDef) -> Result<SchemaOp, Refusal> {
    def.validate().map_err(|(code, text)| Refusal::new(code, text))?;
    if def.fully_replicated {
        let text =
            "FULLY_REPLICATED tables are not supported yet; use READ_BACKUP for reads from every replica";
        return Err(Refusal::new(ErrorCode::FULLY_REPLICATED_FRAGMENTS, text));
    }
    let Some(database) = catalog.database(&def.database) else { return Err(no_database(&def.database)) };
    if database.tables.contains_key(&def.name) {
        return Err(Refusal::new(ErrorCode::TABLE_EXISTS, format!("table {:?}", def.full_name())));
    }
    let most = MAX_TABLES.min(setup.tables_max as usize);
    if catalog.table_count() >= most {
        let text = format!("{} tables exist and MaxNoOfTables allows {most}", catalog.table_count());
        return Err(Refusal::new(ErrorCode::NO_MORE_TABLES, text));
    }
    Ok(SchemaOp::CreateTable(Box::new(place(catalog, setup, def)?)))
}

/// Gives the definition an id, a version and a place.
fn place(catalog: &Catalog, setup: &NodeSetup, mut def: TableDef) -> Result<TableInfo, Refusal> {
    let Some((id, version)) = catalog.next_id() else {
        return Err(Refusal::new(
            ErrorCode::NO_MORE_TABLES,
            format!("all {MAX_TABLES} table ids are in use"),
        ));
    };
    (def.id, def.version) = (id, version);
    let map = PartitionMap::place(id, def.partition_balance, &setup.groups, setup.ldms);
    let info = TableInfo { def, map };
    let bytes = codec::encode(&info).len();
    if bytes > TABLE_INFO_BYTES_MAX { Err(too_large(bytes)) } else { Ok(info) }
}

/// The table as the asker saw it.
fn existing(catalog: &Catalog, table: TableId, version: SchemaVersion) -> Result<&TableInfo, Refusal> {
    let Some(info) = catalog.table(table) else {
        return Err(Refusal::new(ErrorCode::NO_SUCH_TABLE, format!("table id {table}")));
    };
    if info.def.version != version {
        let text = format!(
            "table {:?} has version {}, the request was made for version {version}",
            info.def.full_name(),
            info.def.version
        );
        return Err(Refusal::new(ErrorCode::INVALID_SCHEMA_VERSION, text));
    }
    Ok(info)
}

pub(super) fn no_database(name: &str) -> Refusal {
    Refusal::new(ErrorCode::NO_SUCH_DATABASE, format!("database {name:?}"))
}
