//! Dictionary: tables and databases, asked for and changed.
//!
//! Tables are kept in the connection's cache until a data node says that they have changed. Changes take
//! effect in the whole cluster before the call returns.

use crate::NdbError;
use crate::cluster::ClusterConnection;
use crate::core::{Completion, DictReply, DictRequest};
use crate::table::{Table, TableHandle};
use signals::control::{DatabaseInfo, DictQuery, SchemaChange};
use signals::ids::SchemaVersion;
use signals::table::TableDef;
use signals::{ErrorCode, TableId};

/// See the module.
#[derive(Clone, Debug)]
pub struct Dictionary {
    connection: ClusterConnection,
}

impl Dictionary {
    pub(crate) fn new(connection: ClusterConnection) -> Self {
        Self { connection }
    }

    /// A table, from the cache if it is there.
    ///
    /// # Errors
    /// 723: there is no such table.
    pub async fn table(&self, database: &str, name: &str) -> Result<TableHandle, NdbError> {
        match self.cached(database, name) {
            Some(table) => Ok(table),
            None => self.fetch(database, name).await,
        }
    }

    /// A table from the cache, if it is there; may be out of date, which its use would show (241).
    #[must_use]
    pub fn cached(&self, database: &str, name: &str) -> Option<TableHandle> {
        self.connection.lock().core.cached_table(database, name)
    }

    /// A table from a data node, whatever the cache says.
    ///
    /// # Errors
    /// 723: there is no such table.
    pub async fn fetch(&self, database: &str, name: &str) -> Result<TableHandle, NdbError> {
        let query = DictQuery::TableByName { database: database.into(), name: name.into() };
        self.fetch_table(query).await
    }

    /// A table by its id.
    ///
    /// # Errors
    /// 723: there is no such table.
    pub async fn table_by_id(&self, id: TableId) -> Result<TableHandle, NdbError> {
        self.fetch_table(DictQuery::TableById(id)).await
    }

    async fn fetch_table(&self, query: DictQuery) -> Result<TableHandle, NdbError> {
        match self.ask(DictRequest::Query(query)).await? {
            DictReply::Table(table) => Ok(table),
            _ => Err(ErrorCode::MALFORMED_MESSAGE.into()),
        }
    }

    /// Forgets a table, so that it is fetched anew.
    pub fn forget(&self, table: &Table) {
        self.connection.tell(|core, _| core.forget_table(table.id()));
    }

    /// All databases.
    ///
    /// # Errors
    /// The cluster is away.
    pub async fn databases(&self) -> Result<Vec<DatabaseInfo>, NdbError> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let query = DictQuery::Databases { after };
            let DictReply::Databases(page) = self.ask(DictRequest::Query(query)).await? else {
                return Err(ErrorCode::MALFORMED_MESSAGE.into());
            };
            // A page that is empty or does not move on would be asked for again and again.
            after = page.items.last().map(|d: &DatabaseInfo| d.name.clone()).unwrap_or_default();
            all.extend(page.items);
            if !page.more || after.is_empty() {
                return Ok(all);
            }
        }
    }

    /// A database's tables: name, id, version.
    ///
    /// # Errors
    /// 4718: there is no such database.
    pub async fn tables(&self, database: &str) -> Result<Vec<(String, TableId, SchemaVersion)>, NdbError> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let query = DictQuery::Tables { database: database.into(), after };
            let DictReply::Tables(page) = self.ask(DictRequest::Query(query)).await? else {
                return Err(ErrorCode::MALFORMED_MESSAGE.into());
            };
            after = page.items.last().map(|t| t.0.clone()).unwrap_or_default();
            all.extend(page.items);
            if !page.more || after.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Creates a database; `sql` is the SQL node's own description.
    ///
    /// # Errors
    /// 4719: it exists.
    pub async fn create_database(&self, name: &str, sql: Vec<u8>) -> Result<(), NdbError> {
        self.change(SchemaChange::CreateDatabase { name: name.into(), sql }).await.map(drop)
    }

    /// Drops an empty database.
    ///
    /// # Errors
    /// 4718: there is none; 4720: it has tables.
    pub async fn drop_database(&self, name: &str) -> Result<(), NdbError> {
        self.change(SchemaChange::DropDatabase { name: name.into() }).await.map(drop)
    }

    /// Creates a table; id, version and placement are assigned.
    ///
    /// # Errors
    /// The definition is faulty (checked before anything is sent), the database is not there (4718), or the
    /// table is (721).
    pub async fn create_table(&self, def: TableDef) -> Result<TableHandle, NdbError> {
        def.validate().map_err(|(code, text)| NdbError::with(code, text))?;
        let (database, name) = (def.database.clone(), def.name.clone());
        self.change(SchemaChange::CreateTable(Box::new(def))).await?;
        self.fetch(&database, &name).await
    }

    /// Drops a table, as known by its handle.
    ///
    /// # Errors
    /// 241: it has changed since; 723: it is gone.
    pub async fn drop_table(&self, table: &Table) -> Result<(), NdbError> {
        let change = SchemaChange::DropTable { table: table.id(), version: table.version() };
        self.change(change).await.map(drop)
    }

    /// Empties a table. Its handles are out of date afterwards.
    ///
    /// # Errors
    /// As [`Self::drop_table`].
    pub async fn truncate_table(&self, table: &Table) -> Result<(), NdbError> {
        let change = SchemaChange::TruncateTable { table: table.id(), version: table.version() };
        self.change(change).await.map(drop)
    }

    /// Makes a change; for tables, the id and version given.
    ///
    /// # Errors
    /// The master's dict refuses it, or its outcome is unknown.
    pub async fn change(&self, change: SchemaChange) -> Result<Option<(TableId, SchemaVersion)>, NdbError> {
        match self.ask(DictRequest::Change(change)).await? {
            DictReply::Changed(what) => Ok(what),
            _ => Err(ErrorCode::MALFORMED_MESSAGE.into()),
        }
    }

    async fn ask(&self, request: DictRequest) -> Result<DictReply, NdbError> {
        self.connection.wait_ready().await?;
        match self.connection.ask(|core, now, tag| core.dictionary(now, request, tag)).await {
            Completion::Dictionary { result, .. } => result,
            Completion::Executed { .. } | Completion::RolledBack { .. } | Completion::ScanReady { .. } => {
                Err(ErrorCode::STATUS_ERROR.into())
            }
        }
    }
}
