//! A session that knows a handful of made-up statements, so that the protocol can be tested without a
//! cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{ErrorCode, MySqlError};
use crate::protocol::processes::KillRequest;
use crate::protocol::{
    Account, Accounts, AuthPlugin, Capabilities, ColumnDefinition, ColumnType, LoginInfo, OkPacket, Prepared,
    ResultWriter, Server, ServerConfig, Session, SessionFactory, StatusFlags, StopHandle, StoredPassword,
};
use crate::value::Value;

pub(super) struct Toy {
    login: LoginInfo,
    counters: Arc<Counters>,
    in_transaction: bool,
    wait_timeout: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) open: AtomicUsize,
    pub(super) interrupted: AtomicUsize,
}

pub(super) struct ToyFactory {
    accounts: Accounts,
    counters: Arc<Counters>,
    wait_timeout: Duration,
}

pub(super) struct Prep {
    sql: String,
    parameters: usize,
}

fn text_column(name: &str) -> ColumnDefinition {
    ColumnDefinition {
        schema: "toy".into(),
        table: "t".into(),
        org_table: "t".into(),
        org_name: name.into(),
        ..ColumnDefinition::computed_text(name, 64)
    }
}

fn number_column(name: &str) -> ColumnDefinition {
    ColumnDefinition::computed(name, ColumnType::LongLong, 20)
}

impl Toy {
    async fn one(&mut self, sql: &str, out: &mut ResultWriter<'_>) -> Result<(), MySqlError> {
        let status = self.status();
        let mut words = sql.split_whitespace();
        let first = words.next().unwrap_or_default().to_ascii_uppercase();
        match first.as_str() {
            "" => Err(MySqlError::new(ErrorCode::EmptyQuery)),
            "SELECT" => self.select(sql, out).await,
            "ROWS" => {
                let count: i64 = words.next().and_then(|n| n.parse().ok()).unwrap_or_default();
                out.begin_rows(&[number_column("n"), text_column("pad")], status).await?;
                let pad = Value::text(&"x".repeat(100));
                for n in 0..count {
                    out.row(&[Value::Int(n), pad.clone()]).await?;
                }
                out.end_rows(status, 0).await
            }
            "WIDE" => {
                let size: usize = words.next().and_then(|n| n.parse().ok()).unwrap_or_default();
                out.begin_rows(&[text_column("wide")], status).await?;
                out.row(&[Value::bytes(&vec![b'w'; size])]).await?;
                out.end_rows(status, 0).await
            }
            "FAILMIDWAY" => {
                out.begin_rows(&[number_column("n")], status).await?;
                out.row(&[Value::Int(1)]).await?;
                Err(MySqlError::new(ErrorCode::LockWaitTimeout))
            }
            "SLEEP" => std::future::pending().await,
            "PANIC" => panic!("the toy was asked to"),
            "KILL" => {
                let id = words.next().and_then(|n| n.parse().ok()).unwrap_or_default();
                let known = self.login.processes.kill(id, KillRequest::Query);
                if known { Ok(()) } else { Err(MySqlError::with(ErrorCode::NoSuchThread, &[&id])) }
            }
            "SHOW" => {
                out.begin_rows(&[number_column("Id"), text_column("User")], status).await?;
                for row in self.login.processes.rows() {
                    out.row(&[Value::Int(i64::from(row.id)), Value::text(&row.user)]).await?;
                }
                out.end_rows(status, 0).await
            }
            "BEGIN" => {
                self.in_transaction = true;
                Ok(())
            }
            "COMMIT" | "ROLLBACK" => {
                self.in_transaction = false;
                Ok(())
            }
            "SET" | "USE" => Ok(()),
            "UPDATE" => {
                let found = self.login.capabilities.has(Capabilities::FOUND_ROWS);
                let ok = OkPacket {
                    affected_rows: if found { 2 } else { 1 },
                    last_insert_id: 77,
                    status,
                    warnings: 3,
                    info: "Rows matched: 2  Changed: 1  Warnings: 3".into(),
                };
                out.ok(&ok).await
            }
            _ => Err(MySqlError::parse(sql, 1)),
        }
    }

    async fn select(&mut self, sql: &str, out: &mut ResultWriter<'_>) -> Result<(), MySqlError> {
        let status = self.status();
        let name = sql.get(6..).unwrap_or_default().trim();
        let value = match name {
            "NULL" => Value::Null,
            "user()" => Value::text(&format!("{}@{}", self.login.user, self.login.host)),
            "tls()" => Value::Int(i64::from(self.login.tls)),
            name => name.parse().map_or_else(|_| Value::text(name), Value::Int),
        };
        let column = if matches!(value, Value::Int(_)) { number_column(name) } else { text_column(name) };
        out.begin_rows(&[column], status).await?;
        out.row(&[value]).await?;
        out.end_rows(status, 0).await
    }
}

impl Session for Toy {
    type Statement = Prep;

    fn status(&self) -> StatusFlags {
        StatusFlags::AUTOCOMMIT.with_if(self.in_transaction, StatusFlags::IN_TRANS)
    }

    fn wait_timeout(&self) -> Duration {
        self.wait_timeout
    }

    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), MySqlError> {
        let sql = String::from_utf8_lossy(sql);
        let sql = sql.trim().trim_end_matches(';');
        let parts: Vec<&str> = if out.multi_statements() { sql.split(';').collect() } else { vec![sql] };
        for (i, part) in parts.iter().enumerate() {
            out.set_more_results(i + 1 < parts.len());
            let before = out.results();
            self.one(part.trim(), out).await?;
            if out.results() == before {
                out.ok(&OkPacket { status: self.status(), ..OkPacket::default() }).await?;
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<Prep>, MySqlError> {
        let sql = String::from_utf8_lossy(sql).into_owned();
        let first = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        if first == "PANIC" {
            panic!("the toy was asked to");
        }
        if !matches!(first.as_str(), "SELECT" | "UPDATE" | "BEGIN" | "COMMIT" | "ROWS") {
            return Err(MySqlError::parse(&sql, 1));
        }
        let parameters = sql.matches('?').count();
        let columns: Vec<ColumnDefinition> = match first.as_str() {
            "SELECT" => (0..parameters.max(1)).map(|i| text_column(&format!("c{i}"))).collect(),
            _ => Vec::new(),
        };
        let list = vec![ColumnDefinition::parameter(); parameters];
        Ok(Prepared { statement: Prep { sql, parameters }, parameters: list, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        statement: &mut Prep,
        parameters: &[Value],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), MySqlError> {
        assert_eq!(statement.parameters, parameters.len());
        if !statement.sql.to_ascii_uppercase().starts_with("SELECT") || parameters.is_empty() {
            let sql = statement.sql.clone();
            return self.one(&sql, out).await;
        }
        let columns: Vec<ColumnDefinition> = parameters
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let name = format!("c{i}");
                match value {
                    Value::Int(_) => number_column(&name),
                    Value::Double(_) => ColumnDefinition::computed(&name, ColumnType::Double, 22),
                    Value::Float(_) => ColumnDefinition::computed(&name, ColumnType::Float, 12),
                    Value::Text(text) if text.collation().is_binary() => {
                        ColumnDefinition::computed(&name, ColumnType::Blob, 65_535)
                    }
                    Value::Date(_) => ColumnDefinition::computed(&name, ColumnType::Date, 10),
                    Value::DateTime(_) => ColumnDefinition::computed(&name, ColumnType::DateTime, 26),
                    Value::Time(_) => ColumnDefinition::computed(&name, ColumnType::Time, 17),
                    _ => text_column(&name),
                }
            })
            .collect();
        let status = self.status();
        out.begin_rows(&columns, status).await?;
        out.row(parameters).await?;
        out.end_rows(status, 0).await
    }

    async fn init_db(&mut self, database: &str) -> Result<(), MySqlError> {
        if database == "nowhere" { Err(MySqlError::with(ErrorCode::BadDb, &[&database])) } else { Ok(()) }
    }

    async fn field_list(&mut self, table: &str, _: &str) -> Result<Vec<ColumnDefinition>, MySqlError> {
        if table == "t" {
            Ok(vec![number_column("id"), text_column("name")])
        } else {
            Err(MySqlError::no_such_table("toy", table))
        }
    }

    async fn reset(&mut self) -> Result<(), MySqlError> {
        self.in_transaction = false;
        Ok(())
    }

    async fn interrupted(&mut self) {
        self.in_transaction = false;
        self.counters.interrupted.fetch_add(1, Ordering::SeqCst);
    }

    async fn close(self) {}
}

impl Drop for Toy {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SessionFactory for ToyFactory {
    type Session = Toy;

    fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    async fn open(&self, login: LoginInfo) -> Result<Toy, MySqlError> {
        self.counters.open.fetch_add(1, Ordering::SeqCst);
        let counters = Arc::clone(&self.counters);
        Ok(Toy { login, counters, in_transaction: false, wait_timeout: self.wait_timeout })
    }
}

/// A running toy server; it stops when it goes out of scope.
pub(super) struct ToyServer {
    pub(super) port: u16,
    pub(super) counters: Arc<Counters>,
    pub(super) processes: Arc<crate::protocol::processes::Processes>,
    stop: StopHandle,
    pub(super) task: tokio::task::JoinHandle<()>,
}

impl ToyServer {
    pub(super) async fn start() -> Self {
        Self::with(ServerConfig::default(), Duration::from_secs(600)).await
    }

    pub(super) async fn with(config: ServerConfig, wait_timeout: Duration) -> Self {
        let accounts = Accounts::with_root();
        for (user, plugin) in
            [("native", AuthPlugin::NativePassword), ("sha2", AuthPlugin::CachingSha2Password)]
        {
            accounts.set(user, Account { plugin, password: StoredPassword::new(plugin, "secret", [3; 20]) });
        }
        let counters = Arc::new(Counters::default());
        let factory = ToyFactory { accounts, counters: Arc::clone(&counters), wait_timeout };
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), config, factory).await.unwrap();
        let (port, stop) = (server.address().port(), server.stop_handle());
        let processes = Arc::clone(server.processes());
        let task = tokio::spawn(server.run());
        Self { port, counters, processes, stop, task }
    }

    pub(super) fn stop(&self) {
        self.stop.stop();
    }
}

impl Drop for ToyServer {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
