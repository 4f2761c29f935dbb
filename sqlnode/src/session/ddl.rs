//! Schema changes: databases and tables, through the cluster's dictionary, seen by every SQL node at once.
//!
//! Like MySQL's, they commit the open transaction first and cannot be rolled back.

use signals::ErrorCode as Ndb;

use super::{SqlSession, info};
use crate::catalog::TableMeta;
use crate::catalog::types::not_yet;
use crate::exec::errors::to_mysql;
use crate::parser::ast::{CreateDatabase, CreateIndex, CreateTable, KeyKind, TableName};
use crate::value::{ErrorCode, MySqlError, Result};

impl SqlSession {
    pub(super) async fn create_database(&mut self, create: &CreateDatabase) -> Result<()> {
        self.commit().await?;
        crate::catalog::check_name(&create.name, ErrorCode::WrongDbName)?;
        let exists = MySqlError::with(ErrorCode::DbCreateExists, &[&create.name]);
        let done = if info::is_virtual(&create.name) {
            Err(exists)
        } else {
            match self.facts.node.cluster()?.create_database(&create.name).await {
                Err(e) if e.code() == Ndb::DATABASE_EXISTS => Err(exists),
                other => other.map_err(|e| to_mysql(&e, &create.name)),
            }
        };
        match done {
            Err(error) if create.if_not_exists && error.is(ErrorCode::DbCreateExists) => {
                self.warnings.note(error);
                Ok(())
            }
            other => other,
        }
    }

    pub(super) async fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<()> {
        self.commit().await?;
        if info::is_virtual(name) || name == super::sequences::SYSTEM_DATABASE {
            let (user, host) = (&self.facts.login.user, &self.facts.login.host);
            return Err(MySqlError::with(ErrorCode::DbAccessDenied, &[user, host, &name]));
        }
        let cluster = self.facts.node.cluster()?;
        let tables = match cluster.tables(name).await {
            Ok(tables) => tables,
            Err(e) if e.code() == Ndb::NO_SUCH_DATABASE => {
                let error = MySqlError::with(ErrorCode::DbDropExists, &[&name]);
                if !if_exists {
                    return Err(error);
                }
                self.warnings.note(error);
                return Ok(());
            }
            Err(e) => return Err(to_mysql(&e, name)),
        };
        for table in tables {
            self.drop_one(name, &table).await?;
        }
        cluster.drop_database(name).await.map_err(|e| to_mysql(&e, name))?;
        if self.facts.database.as_deref() == Some(name) {
            self.facts.database = None;
            self.facts.login.process.set_database(None);
        }
        Ok(())
    }

    pub(super) async fn create_table(&mut self, create: &CreateTable) -> Result<()> {
        self.commit().await?;
        let schema = self.qualify(&create.name)?.0.to_owned();
        if info::is_virtual(&schema) {
            let (user, host) = (&self.facts.login.user, &self.facts.login.host);
            return Err(MySqlError::with(ErrorCode::DbAccessDenied, &[user, host, &schema]));
        }
        if create.select.is_some() {
            return Err(not_yet("CREATE TABLE ... SELECT"));
        }
        let copied;
        let create = match &create.like {
            None => create,
            Some(other) => {
                copied = self.like(create, other).await?;
                &copied
            }
        };
        let meta = TableMeta::build(create, &schema, &mut self.warnings)?;
        let created = self.facts.node.cluster()?.create_table(meta.definition(create)).await;
        match created {
            Ok(_) => Ok(()),
            Err(e) if e.code() == Ndb::TABLE_EXISTS => {
                let error = MySqlError::with(ErrorCode::TableExists, &[&create.name.name]);
                if !create.if_not_exists {
                    return Err(error);
                }
                self.warnings.note(error);
                Ok(())
            }
            Err(e) if e.code() == Ndb::NO_SUCH_DATABASE => {
                Err(MySqlError::with(ErrorCode::BadDb, &[&schema]))
            }
            Err(e) if e.code() == Ndb::RECORD_TOO_BIG => {
                Err(MySqlError::with(ErrorCode::TooBigRowsize, &[&signals::table::MAX_ROW_BYTES]))
            }
            Err(e) => Err(to_mysql(&e, &create.name.name)),
        }
    }

    /// CREATE TABLE ... LIKE: the other table's statement under the new name.
    async fn like(&self, create: &CreateTable, other: &TableName) -> Result<CreateTable> {
        let meta = self.table(other).await?;
        let text = meta.show_create();
        match crate::parser::parse(text.as_bytes(), crate::parser::ParseMode::default()).map(|p| p.stmt) {
            Ok(crate::parser::ast::Stmt::CreateTable(mut copy)) => {
                copy.name = create.name.clone();
                copy.if_not_exists = create.if_not_exists;
                Ok(*copy)
            }
            _ => Err(MySqlError::internal("a table's own statement does not parse")),
        }
    }

    /// CREATE INDEX: checked, and then answered like a KEY of CREATE TABLE, by scans. Nothing is kept of it
    /// yet.
    pub(super) async fn create_index(&mut self, create: &CreateIndex) -> Result<()> {
        self.commit().await?;
        match create.key.kind {
            KeyKind::Index => {}
            KeyKind::Primary | KeyKind::Unique => return Err(not_yet("UNIQUE keys other than PRIMARY KEY")),
            KeyKind::Fulltext => return Err(MySqlError::new(ErrorCode::TableCantHandleFt)),
            KeyKind::Spatial => return Err(not_yet("SPATIAL keys")),
        }
        let meta = self.table(&create.table).await?;
        meta.key_columns(&create.key.parts)?;
        let text =
            "CREATE INDEX changes nothing for now; statements that would use it are answered by a scan";
        self.warnings.warn(MySqlError::text(ErrorCode::NotSupportedYet, text));
        Ok(())
    }

    pub(super) async fn drop_tables(&mut self, tables: &[TableName], if_exists: bool) -> Result<()> {
        self.commit().await?;
        let mut missing = Vec::new();
        for name in tables {
            let (schema, table) = self.qualify(name)?;
            let (schema, table) = (schema.to_owned(), table.to_owned());
            match self.drop_one(&schema, &table).await {
                Ok(()) => {}
                Err(error) if error.is(ErrorCode::NoSuchTable) => missing.push(format!("{schema}.{table}")),
                Err(error) => return Err(error),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        if !if_exists {
            return Err(MySqlError::with(ErrorCode::BadTable, &[&missing.join(",")]));
        }
        for name in missing {
            self.warnings.note(MySqlError::with(ErrorCode::BadTable, &[&name]));
        }
        Ok(())
    }

    async fn drop_one(&mut self, schema: &str, table: &str) -> Result<()> {
        if info::is_virtual(schema) {
            let (user, host) = (&self.facts.login.user, &self.facts.login.host);
            return Err(MySqlError::with(ErrorCode::DbAccessDenied, &[user, host, &schema]));
        }
        let cluster = self.facts.node.cluster()?;
        let handle = match cluster.table(schema, table).await {
            Ok(handle) => handle,
            Err(e)
                if matches!(e.code(), Ndb::TABLE_NOT_FOUND | Ndb::NO_SUCH_TABLE | Ndb::NO_SUCH_DATABASE) =>
            {
                return Err(MySqlError::no_such_table(schema, table));
            }
            Err(e) => return Err(to_mysql(&e, table)),
        };
        cluster.drop_table(&handle).await.map_err(|e| to_mysql(&e, table))?;
        cluster.forget(&handle);
        self.facts.node.forget_sequence(&handle).await;
        Ok(())
    }

    pub(super) async fn truncate(&mut self, name: &TableName) -> Result<()> {
        self.commit().await?;
        let meta = self.table(name).await?;
        let handle = crate::exec::access::handle_of(&meta)?;
        let cluster = self.facts.node.cluster()?;
        cluster.truncate_table(handle).await.map_err(|e| to_mysql(&e, &meta.name))?;
        cluster.forget(handle);
        self.facts.node.forget_sequence(handle).await;
        Ok(())
    }
}
