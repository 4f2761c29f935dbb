//! SHOW and DESCRIBE: facts about the server and its schemas, as result sets with MySQL's column names.

use super::info::{
    INDEX_COLUMNS, character_sets, collations, engines, index_rows, key_word, made_up, number, text,
};
use super::{SqlSession, vars};
use crate::catalog::types::not_yet;
use crate::exec::Env;
use crate::expr::{Binder, Scope, SessionFacts};
use crate::parser::ast::{Limit, Name, Show, ShowFilter, TableAdmin, TableName, TableVerb};
use crate::plan::{Relation, VirtualTable, plan_limit, scope_columns};
use crate::protocol::{ColumnDefinition, ResultWriter};
use crate::value::{Collation, ErrorCode, LikePattern, MySqlError, Result, Value, WarningLevel};

/// Whether a SHOW reads the warnings of the statement before and must not clear them.
pub(super) fn is_diagnostic(show: &Show) -> bool {
    matches!(show, Show::Warnings(_) | Show::Errors(_) | Show::CountWarnings | Show::CountErrors)
}

impl SqlSession {
    pub(super) async fn show(
        &mut self,
        show: &Show,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let (table, filter) = match show {
            Show::Warnings(limit) => return self.show_warnings(limit.as_ref(), false, params, out).await,
            Show::Errors(limit) => return self.show_warnings(limit.as_ref(), true, params, out).await,
            Show::Databases(filter) => {
                let rows = self.all_databases().await?.iter().map(|d| vec![text(d)]).collect();
                (made_up("SCHEMATA", &["Database"], rows), filter)
            }
            Show::Tables { full, db, filter } => (self.show_tables(*full, db.as_deref()).await?, filter),
            Show::Columns { full, table, filter } => (self.show_columns(table, *full).await?, filter),
            Show::Index { table, filter } => {
                let meta = self.table(table).await?;
                (made_up("STATISTICS", INDEX_COLUMNS, index_rows(&meta)), filter)
            }
            Show::TableStatus { db, filter } => (self.table_status(db.as_deref()).await?, filter),
            Show::Variables(scope, filter) => {
                let rows = vars::all(&self.facts, *scope);
                let rows = rows.iter().map(|(name, value)| vec![text(name), text(value)]).collect();
                (made_up("session_variables", &["Variable_name", "Value"], rows), filter)
            }
            Show::Status(_, filter) => (self.status_table(), filter),
            Show::Charset(filter) => (character_sets(), filter),
            Show::Collation(filter) => (collations(), filter),
            Show::OpenTables { filter, .. } => {
                (made_up("open_tables", &["Database", "Table", "#In_use", "#Name_locked"], vec![]), filter)
            }
            Show::Triggers { filter, .. } => {
                let columns =
                    ["Trigger", "Event", "Table", "Statement", "Timing", "Created", "sql_mode", "Definer"];
                (made_up("triggers", &columns, vec![]), filter)
            }
            Show::Events { filter, .. } => {
                (made_up("events", &["Db", "Name", "Definer", "Time zone"], vec![]), filter)
            }
            Show::Routines(_, filter) => {
                (made_up("routines", &["Db", "Name", "Type", "Definer"], vec![]), filter)
            }
            other => (self.show_plain(other).await?, &ShowFilter::None),
        };
        let table = self.filter(table, filter, params)?;
        self.emit(&table, out).await
    }

    /// The forms without a filter.
    async fn show_plain(&mut self, show: &Show) -> Result<VirtualTable> {
        Ok(match show {
            Show::CreateTable(name) => {
                let meta = self.table(name).await?;
                let row = vec![text(&meta.name), text(&meta.show_create())];
                made_up("t", &["Table", "Create Table"], vec![row])
            }
            Show::CreateDatabase { name, .. } => {
                let statement = format!(
                    "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */",
                    crate::parser::quote_name(name)
                );
                if !self.all_databases().await?.iter().any(|known| **known == **name) {
                    return Err(MySqlError::with(ErrorCode::BadDb, &[name]));
                }
                made_up("d", &["Database", "Create Database"], vec![vec![text(name), text(&statement)]])
            }
            Show::CountWarnings => count("@@session.warning_count", self.warnings.count()),
            Show::CountErrors => {
                let errors = self.warnings.iter().filter(|w| w.level == WarningLevel::Error).count();
                count("@@session.error_count", errors as u64)
            }
            Show::Engines => engines(),
            Show::Processlist { full } => self.process_table(*full),
            Show::Grants(_) => {
                let account = format!("'{}'@'%'", self.facts.login.user);
                let row = vec![text(&format!("GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION"))];
                made_up("grants", &[&format!("Grants for {}@%", self.facts.login.user)], vec![row])
            }
            Show::Privileges => made_up("privileges", &["Privilege", "Context", "Comment"], vec![]),
            Show::Plugins => made_up("plugins", &["Name", "Status", "Type", "Library", "License"], vec![]),
            Show::MasterStatus => {
                made_up("m", &["File", "#Position", "Binlog_Do_DB", "Binlog_Ignore_DB"], vec![])
            }
            Show::ReplicaStatus | Show::Replicas => made_up("r", &["#Server_Id", "Host"], vec![]),
            Show::BinaryLogs => return Err(not_yet("SHOW BINARY LOGS")),
            Show::CreateView(_) => return Err(not_yet("views")),
            Show::CreateUser(_) => return Err(not_yet("users and grants")),
            Show::Engine(..) => made_up("e", &["Type", "Name", "Status"], vec![]),
            Show::Other(words) => return Err(not_yet(&format!("SHOW {words}"))),
            _ => return Err(MySqlError::internal("a SHOW went the wrong way")),
        })
    }

    /// Keeps the rows that LIKE or WHERE asks for.
    fn filter(
        &mut self,
        mut table: VirtualTable,
        filter: &ShowFilter,
        params: &[Value],
    ) -> Result<VirtualTable> {
        match filter {
            ShowFilter::None => {}
            ShowFilter::Like(pattern) => {
                let pattern = LikePattern::new(Collation::UTF8MB4_GENERAL_CI, pattern.as_bytes(), Some('\\'));
                table.rows.retain(|row| match row.first() {
                    Some(Value::Text(name)) => pattern.matches(name.as_bytes()),
                    _ => false,
                });
            }
            ShowFilter::Where(expr) => {
                let relation =
                    Relation::Virtual(std::sync::Arc::new(VirtualTable { rows: vec![], ..table.clone() }));
                let scope = Scope { columns: scope_columns(&relation, &table.name, false) };
                let bound =
                    Binder::new(&scope, &self.facts as &dyn SessionFacts, "where clause").bind(expr)?;
                let mut env = Env { facts: &self.facts, params, warnings: &mut self.warnings };
                let mut kept = Vec::new();
                for row in table.rows {
                    if bound.truth(&row, &mut env.eval())? == Some(true) {
                        kept.push(row);
                    }
                }
                table.rows = kept;
            }
        }
        Ok(table)
    }

    async fn emit(&mut self, table: &VirtualTable, out: &mut ResultWriter<'_>) -> Result<()> {
        let columns: Vec<ColumnDefinition> =
            table.columns.iter().map(|(name, ty)| ColumnDefinition::typed(name, ty)).collect();
        let status = self.flags();
        out.begin_rows(&columns, status).await?;
        for row in &table.rows {
            out.row(row).await?;
        }
        self.facts.row_count = -1;
        self.facts.found_rows = table.rows.len() as u64;
        out.end_rows(status, self.warnings.count_u16()).await
    }

    async fn show_warnings(
        &mut self,
        limit: Option<&Limit>,
        errors_only: bool,
        params: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let (skip, take) = match plan_limit(limit)? {
            None => (0, u64::MAX),
            Some((offset, count)) => (offset.get(params)?, count.get(params)?),
        };
        let wanted = self.warnings.iter().filter(|w| !errors_only || w.level == WarningLevel::Error);
        let row = |w: &crate::value::Warning| {
            vec![text(w.level.name()), number(u64::from(w.error.code)), text(&w.error.message)]
        };
        let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let rows = wanted.skip(bound(skip)).take(bound(take)).map(row).collect();
        let table = made_up("warnings", &["Level", "#Code", "Message"], rows);
        self.emit(&table, out).await
    }

    fn current_or(&self, db: Option<&str>) -> Result<String> {
        let current = self.facts.database.as_deref();
        db.or(current).map(str::to_owned).ok_or_else(|| MySqlError::new(ErrorCode::NoDb))
    }

    async fn show_tables(&mut self, full: bool, db: Option<&str>) -> Result<VirtualTable> {
        let schema = self.current_or(db)?;
        let title = format!("Tables_in_{schema}");
        let tables = self.all_tables(&schema).await?;
        let row = |name: &str| {
            if full { vec![text(name), text("BASE TABLE")] } else { vec![text(name)] }
        };
        let rows = tables.iter().map(|meta| row(&meta.name)).collect();
        let columns: &[&str] = if full { &[&title, "Table_type"] } else { &[&title] };
        Ok(made_up("TABLES", columns, rows))
    }

    async fn show_columns(&mut self, table: &TableName, full: bool) -> Result<VirtualTable> {
        let meta = self.table(table).await?;
        let row = |(at, column): (usize, &crate::catalog::ColumnMeta)| {
            let default = column.default_text().map_or(Value::Null, |d| text(&d));
            let null = text(if column.nullable { "YES" } else { "NO" });
            let (name, ty, key) =
                (text(&column.name), text(&column.ty.to_string()), text(key_word(&meta, at)));
            if !full {
                return vec![name, ty, null, key, default, text(&column.extra())];
            }
            let has_charset = column.ty.has_charset();
            let collation = if has_charset { text(column.ty.collation().name()) } else { Value::Null };
            let privileges = text("select,insert,update,references");
            vec![
                name,
                ty,
                collation,
                null,
                key,
                default,
                text(&column.extra()),
                privileges,
                text(&column.comment),
            ]
        };
        let columns: &[&str] = if full {
            &["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"]
        } else {
            &["Field", "Type", "Null", "Key", "Default", "Extra"]
        };
        Ok(made_up("COLUMNS", columns, meta.visible().map(row).collect()))
    }

    pub(super) async fn describe(
        &mut self,
        table: &TableName,
        column: Option<&str>,
        out: &mut ResultWriter<'_>,
    ) -> Result<()> {
        let shown = self.show_columns(table, false).await?;
        let filter = column.map_or(ShowFilter::None, |pattern| ShowFilter::Like(pattern.into()));
        let shown = self.filter(shown, &filter, &[])?;
        self.emit(&shown, out).await
    }

    async fn table_status(&mut self, db: Option<&str>) -> Result<VirtualTable> {
        let schema = self.current_or(db)?;
        let row = |meta: &std::sync::Arc<crate::catalog::TableMeta>| {
            vec![
                text(&meta.name),
                text("ndbcluster"),
                number(10),
                text("Dynamic"),
                Value::Null,
                Value::Null,
                Value::Null,
                text(meta.collation.name()),
                text(""),
                text(&meta.comment),
            ]
        };
        let rows = self.all_tables(&schema).await?.iter().map(row).collect();
        let columns = [
            "Name",
            "Engine",
            "#Version",
            "Row_format",
            "#Rows",
            "#Data_length",
            "#Auto_increment",
            "Collation",
            "Create_options",
            "Comment",
        ];
        Ok(made_up("TABLES", &columns, rows))
    }

    fn status_table(&self) -> VirtualTable {
        let processes = &self.facts.login.processes;
        let rows = [
            ("Com_select", processes.statements()),
            ("Connections", u64::from(self.facts.login.process.id())),
            ("Queries", processes.statements()),
            ("Questions", processes.statements()),
            ("Threads_connected", processes.count() as u64),
            ("Threads_running", 1),
            ("Uptime", processes.uptime_seconds()),
        ];
        let mut rows: Vec<Vec<Value>> =
            rows.iter().map(|(name, value)| vec![text(name), text(&value.to_string())]).collect();
        if self.facts.login.tls {
            rows.insert(4, vec![text("Ssl_cipher"), text("TLS")]);
        } else {
            rows.insert(4, vec![text("Ssl_cipher"), text("")]);
        }
        made_up("session_status", &["Variable_name", "Value"], rows)
    }

    /// COM_FIELD_LIST.
    pub(super) async fn list_fields(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnDefinition>> {
        let name: Name = table.into();
        let meta = self.table(&TableName { db: None, name }).await?;
        let pattern = LikePattern::new(Collation::UTF8MB4_GENERAL_CI, wildcard.as_bytes(), Some('\\'));
        let fits = |name: &str| wildcard.is_empty() || pattern.matches(name.as_bytes());
        let definition = |column: &crate::catalog::ColumnMeta| ColumnDefinition {
            schema: meta.schema.clone(),
            table: meta.name.clone(),
            org_table: meta.name.clone(),
            org_name: column.name.clone(),
            ..ColumnDefinition::typed(&column.name, &column.ty)
        };
        Ok(meta.visible().filter(|(_, c)| fits(&c.name)).map(|(_, c)| definition(c)).collect())
    }

    /// ANALYZE and its like: there is nothing to do, but the answer has MySQL's form.
    pub(super) async fn table_admin(&mut self, admin: &TableAdmin, out: &mut ResultWriter<'_>) -> Result<()> {
        let verb = match admin.verb {
            TableVerb::Analyze => "analyze",
            TableVerb::Check => "check",
            TableVerb::Optimize => "optimize",
            TableVerb::Repair => "repair",
            TableVerb::Checksum => return Err(not_yet("CHECKSUM TABLE")),
        };
        let mut rows = Vec::new();
        for name in &admin.tables {
            let (schema, table) = self.qualify(name)?;
            let full = text(&format!("{schema}.{table}"));
            match self.table(name).await {
                Ok(_) => rows.push(vec![full, text(verb), text("status"), text("OK")]),
                Err(error) => rows.push(vec![full, text(verb), text("Error"), text(&error.message)]),
            }
        }
        let table = made_up("admin", &["Table", "Op", "Msg_type", "Msg_text"], rows);
        self.emit(&table, out).await
    }
}

fn count(name: &str, value: u64) -> VirtualTable {
    made_up("count", &[&format!("#{name}")], vec![vec![number(value)]])
}
