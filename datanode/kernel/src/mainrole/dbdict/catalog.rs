//! The catalog: databases and tables as this node's dict knows them, changed only by committed schema
//! transactions.
//!
//! It checks nothing: the master did, against the same catalog, before it let a transaction begin.

use signals::TableId;
use signals::control::{DatabaseInfo, TableInfo};
use signals::ids::SchemaVersion;
use signals::peer::SchemaOp;
use signals::table::MAX_TABLES;
use std::collections::BTreeMap;

/// A database with the names of its tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::mainrole) struct Database {
    pub(in crate::mainrole) info: DatabaseInfo,
    pub(in crate::mainrole) tables: BTreeMap<String, TableId>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::mainrole) struct Catalog {
    databases: BTreeMap<String, Database>,
    tables: BTreeMap<TableId, Box<TableInfo>>,
    /// The last version each id had, for ids that were ever used.
    versions: BTreeMap<TableId, SchemaVersion>,
    last_id: TableId,
}

impl Catalog {
    pub(in crate::mainrole) fn databases(&self) -> &BTreeMap<String, Database> {
        &self.databases
    }

    pub(in crate::mainrole) fn database(&self, name: &str) -> Option<&Database> {
        self.databases.get(name)
    }

    pub(in crate::mainrole) fn table(&self, id: TableId) -> Option<&TableInfo> {
        self.tables.get(&id).map(Box::as_ref)
    }

    pub(in crate::mainrole) fn table_ids(&self) -> impl Iterator<Item = TableId> {
        self.tables.keys().copied()
    }

    pub(in crate::mainrole) fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// The next id to give, with its version. Ids go round, so that one is used again as late as possible,
    /// and then with a higher version: a client or a message that still names its former owner is noticed.
    pub(in crate::mainrole) fn next_id(&self) -> Option<(TableId, SchemaVersion)> {
        let most = MAX_TABLES as u32;
        let from = self.last_id.0;
        let id =
            (0..most).map(|i| TableId((from + i) % most + 1)).find(|id| !self.tables.contains_key(id))?;
        let version = self.versions.get(&id).map_or(0, |v| v.0);
        Some((id, SchemaVersion(version + 1)))
    }

    /// A schema transaction is committed.
    pub(in crate::mainrole) fn apply(&mut self, op: &SchemaOp) {
        match op {
            SchemaOp::CreateDatabase(info) => {
                let database = Database { info: info.clone(), tables: BTreeMap::new() };
                self.databases.insert(info.name.clone(), database);
            }
            SchemaOp::DropDatabase { name } => {
                self.databases.remove(name);
            }
            SchemaOp::CreateTable(info) => self.add(info),
            SchemaOp::DropTable { table } => self.remove(*table),
            SchemaOp::TruncateTable { old, new } => {
                self.remove(*old);
                self.add(new);
            }
        }
    }

    fn add(&mut self, info: &TableInfo) {
        let def = &info.def;
        if let Some(database) = self.databases.get_mut(&def.database) {
            database.tables.insert(def.name.clone(), def.id);
        }
        self.last_id = def.id;
        self.versions.insert(def.id, def.version);
        self.tables.insert(def.id, Box::new(info.clone()));
    }

    fn remove(&mut self, id: TableId) {
        let Some(info) = self.tables.remove(&id) else { return };
        if let Some(database) = self.databases.get_mut(&info.def.database) {
            database.tables.remove(&info.def.name);
        }
    }
}
