//! Command loop: reads a command, has the session do it, answers.
//!
//! While a statement runs, two more things are awaited: somebody's KILL, and the client closing its
//! connection. Either drops the statement's future where it stands and lets the session undo it, so a
//! client that dies holds no locks. A panic inside a statement, which would be our bug, is caught here,
//! logged, and answered as an internal error: one client's statement must not take the others' connection.
//! Every answer leaves in one write unless it is large.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::command::Command;
use super::connection::{Request, change_user, new_scramble};
use super::constants::Capabilities;
use super::error::ProtocolError;
use super::handshake::HandshakeResponse;
use super::params::parse_execute;
use super::processes::{KillRequest, Process, ProcessGuard};
use super::response::{ColumnDefinition, OkPacket, encode_err, encode_ok};
use super::server::Shared;
use super::session::{LoginInfo, Session, SessionFactory};
use super::statements::Statements;
use super::stream::{Input, Output, ReadError};
use super::writer::{ResultWriter, RowFormat, end_of_result};
use crate::error::{ErrorCode, MySqlError};

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// The client said goodbye, vanished, or was killed: nothing more to say.
    Silent,
    /// The client shall see this first.
    Error(MySqlError),
}

/// What became of a statement's future.
enum Outcome<T> {
    Done(T),
    QueryKilled,
    ConnectionEnded,
    Panicked,
}

/// A logged-in client.
pub(super) struct Commands<F: SessionFactory> {
    shared: Arc<Shared<F>>,
    session: F::Session,
    input: Input,
    output: Output,
    capabilities: Capabilities,
    multi_statements: bool,
    host: String,
    tls: bool,
    process: Arc<Process>,
    statements: Statements<<F::Session as Session>::Statement>,
}

/// What is left when the command loop has ended.
pub(super) struct Parts<S> {
    pub(super) session: S,
    pub(super) input: Input,
    pub(super) output: Output,
}

type Flow = Result<(), End>;

impl<F: SessionFactory> Commands<F> {
    pub(super) fn new(
        shared: Arc<Shared<F>>,
        session: F::Session,
        input: Input,
        output: Output,
        capabilities: Capabilities,
        (host, tls): (String, bool),
        guard: &ProcessGuard,
    ) -> Self {
        let config = &shared.config;
        let statements = Statements::new(
            config.max_session_prepared_stmt_count,
            Arc::clone(&shared.quota),
            config.max_allowed_packet,
        );
        let multi_statements = capabilities.has(Capabilities::MULTI_STATEMENTS);
        let process = Arc::clone(guard.process());
        Self {
            shared,
            session,
            input,
            output,
            capabilities,
            multi_statements,
            host,
            tls,
            process,
            statements,
        }
    }

    pub(super) fn into_parts(self) -> Parts<F::Session> {
        Parts { session: self.session, input: self.input, output: self.output }
    }

    /// Serves commands until the connection ends.
    pub(super) async fn run(&mut self) -> End {
        loop {
            self.process.idle();
            self.input.decoder().expect_sequence(0);
            if let Err(end) = self.next().await {
                return end;
            }
        }
    }

    async fn next(&mut self) -> Flow {
        let patience = self.session.wait_timeout();
        let read = tokio::select! {
            biased;
            read = self.input.packet(patience, self.shared.config.net_read_timeout, false) => read,
            request = self.process.killed() => return match request {
                KillRequest::Query => Ok(()),
                KillRequest::Connection => Err(End::Silent),
            },
        };
        self.output.encoder.set_sequence(self.input.decoder().next_sequence());
        match read {
            Ok(()) => {}
            Err(ReadError::Gone) => return Err(End::Silent),
            Err(ReadError::TimedOut) => {
                self.output.encoder.set_sequence(1);
                let idle = self.input.decoder().at_boundary();
                let code =
                    if idle { ErrorCode::ClientInteractionTimeout } else { ErrorCode::NetReadInterrupted };
                return Err(End::Error(MySqlError::new(code)));
            }
            Err(ReadError::Protocol(error)) if error.is_fatal() => return Err(End::Error(error.into())),
            Err(ReadError::Protocol(error)) => {
                self.error(&error.into());
                return self.flush().await;
            }
        }
        let packet = self.input.decoder().take_payload();
        let flow = match Command::parse(&packet) {
            Ok(command) => self.command(command).await,
            Err(error) => {
                if !packet.first().is_some_and(|&code| Command::is_silent(code)) {
                    self.error(&error.into());
                }
                Ok(())
            }
        };
        self.input.decoder().give_back(packet);
        flow?;
        self.flush().await
    }

    async fn command(&mut self, command: Command<'_>) -> Flow {
        let statement = match command {
            Command::Query(sql) | Command::StmtPrepare(sql) => sql,
            _ => &[],
        };
        self.process.begin(command.name(), statement);
        match command {
            Command::Quit => return Err(End::Silent),
            Command::Query(sql) => return self.query(sql).await,
            Command::ProcessInfo => return self.query(b"SHOW PROCESSLIST").await,
            Command::InitDb(name) => return self.init_db(name).await,
            Command::FieldList { table, wildcard } => return self.field_list(table, wildcard).await,
            Command::StmtPrepare(sql) => return self.prepare(sql).await,
            Command::StmtExecute { id, parameters, .. } => return self.execute(id, parameters).await,
            Command::ChangeUser(arguments) => return self.change_user(arguments).await,
            Command::ResetConnection => return self.reset().await,
            Command::Statistics => self.statistics(),
            Command::ProcessKill(id) => self.kill(id)?,
            Command::Debug => self.eof(),
            Command::Ping => self.ok(),
            Command::SetOption(option) => self.set_option(option),
            Command::StmtSendLongData { id, parameter, data } => self.statements.append(id, parameter, data),
            Command::StmtClose(id) => self.statements.close(id),
            Command::StmtReset(id) => self.reset_statement(id),
            Command::StmtFetch { id, .. } => self.fetch(id),
        }
        Ok(())
    }

    async fn query(&mut self, sql: &[u8]) -> Flow {
        self.shared.processes.count_statement();
        let mut out =
            ResultWriter::new(&mut self.output, self.capabilities, RowFormat::Text, self.multi_statements);
        let work = self.session.query(sql, &mut out);
        let outcome = guarded(work, &mut self.input, &self.process).await;
        let silent = out.results() == 0;
        self.conclude(outcome, silent).await
    }

    async fn execute(&mut self, id: u32, parameters: &[u8]) -> Flow {
        self.shared.processes.count_statement();
        let flow = match self.statements.get(id, "mysqld_stmt_execute") {
            Err(error) => {
                self.error(&error.into());
                return Ok(());
            }
            Ok(slot) => match parse_execute(slot, parameters) {
                Err(error) => {
                    self.error(&error);
                    Ok(())
                }
                Ok(values) => {
                    let mut out =
                        ResultWriter::new(&mut self.output, self.capabilities, RowFormat::Binary, false);
                    let work = self.session.execute(&mut slot.statement, &values, &mut out);
                    let outcome = guarded(work, &mut self.input, &self.process).await;
                    let silent = out.results() == 0;
                    self.conclude(outcome, silent).await
                }
            },
        };
        self.statements.forget_long_data(id);
        flow
    }

    /// Answers after a statement; `silent` says that it has written no result itself.
    async fn conclude(&mut self, outcome: Outcome<Result<(), MySqlError>>, silent: bool) -> Flow {
        if self.settle(outcome).await?.is_some() && silent {
            self.ok();
        }
        Ok(())
    }

    /// Sends the error of a statement that failed or was cut off; None when it has been dealt with here.
    async fn settle<T>(&mut self, outcome: Outcome<Result<T, MySqlError>>) -> Result<Option<T>, End> {
        let error = match outcome {
            Outcome::Done(Ok(value)) => return Ok(Some(value)),
            Outcome::Done(Err(error)) => error,
            Outcome::QueryKilled => {
                self.session.interrupted().await;
                MySqlError::new(ErrorCode::QueryInterrupted)
            }
            Outcome::Panicked => {
                self.output.encoder.abandon();
                self.session.interrupted().await;
                MySqlError::internal("the statement hit a defect of this server; its log says more")
            }
            Outcome::ConnectionEnded => {
                self.session.interrupted().await;
                return Err(End::Silent);
            }
        };
        self.error(&error);
        Ok(None)
    }

    async fn prepare(&mut self, sql: &[u8]) -> Flow {
        let place = match self.statements.reserve() {
            Ok(place) => place,
            Err(error) => {
                self.error(&error);
                return Ok(());
            }
        };
        let outcome = guarded(self.session.prepare(sql), &mut self.input, &self.process).await;
        let Some(prepared) = self.settle(outcome).await? else { return Ok(()) };
        let counts = (u16::try_from(prepared.columns.len()), u16::try_from(prepared.parameters.len()));
        let (Ok(columns), Ok(parameters)) = counts else {
            self.error(&MySqlError::new(ErrorCode::PsManyParam));
            return Ok(());
        };
        let id = self.statements.insert(place, prepared.statement, prepared.parameters.len());
        let out = self.output.encoder.begin();
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&prepared.warnings.to_le_bytes());
        self.output.encoder.end();
        self.definitions(&prepared.parameters).await?;
        self.definitions(&prepared.columns).await
    }

    /// Column definitions in the answer to PREPARE: none at all when there are none, else closed by an EOF.
    async fn definitions(&mut self, columns: &[ColumnDefinition]) -> Flow {
        for column in columns {
            column.encode(self.output.encoder.begin());
            self.output.encoder.end();
            self.output.flush_if_full().await.map_err(|_| End::Silent)?;
        }
        if !columns.is_empty() && !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            self.eof();
        }
        Ok(())
    }

    async fn field_list(&mut self, table: &[u8], wildcard: &[u8]) -> Flow {
        let (table, wildcard) = (String::from_utf8_lossy(table), String::from_utf8_lossy(wildcard));
        let work = self.session.field_list(&table, &wildcard);
        let outcome = guarded(work, &mut self.input, &self.process).await;
        let Some(columns) = self.settle(outcome).await? else { return Ok(()) };
        for column in &columns {
            let out = self.output.encoder.begin();
            column.encode(out);
            // The column's default, which nobody reads any more: NULL.
            out.push(0xfb);
            self.output.encoder.end();
            self.output.flush_if_full().await.map_err(|_| End::Silent)?;
        }
        self.eof();
        Ok(())
    }

    async fn init_db(&mut self, name: &[u8]) -> Flow {
        let name = String::from_utf8_lossy(name);
        let outcome = guarded(self.session.init_db(&name), &mut self.input, &self.process).await;
        if self.settle(outcome).await?.is_some() {
            self.process.set_database(Some(&name));
            self.ok();
        }
        Ok(())
    }

    async fn reset(&mut self) -> Flow {
        self.statements.clear();
        self.multi_statements = self.capabilities.has(Capabilities::MULTI_STATEMENTS);
        let outcome = guarded(self.session.reset(), &mut self.input, &self.process).await;
        self.conclude(outcome, true).await
    }

    async fn change_user(&mut self, arguments: &[u8]) -> Flow {
        let mut response = HandshakeResponse::parse_change_user(arguments, self.capabilities)
            .map_err(|error| End::Error(error.into()))?;
        // The answer was made with a scramble of which the client keeps its own idea; ask anew with a fresh
        // one.
        if !response.auth_response.is_empty() {
            response.plugin = Some(String::new());
        }
        let scramble = new_scramble().ok_or(End::Silent)?;
        let patience = self.shared.config.connect_timeout;
        let request = Request { response: &response, host: &self.host, tls: self.tls, scramble, patience };
        let changed = change_user(&self.shared, &mut self.input, &mut self.output, request).await;
        changed.map_err(|failure| failure.map_or(End::Silent, End::Error))?;
        self.statements.clear();
        self.process.set_user(&response.user);
        self.process.set_database(response.database.as_deref());
        let login = LoginInfo {
            user: response.user,
            host: self.host.clone(),
            capabilities: self.capabilities,
            collation: response.collation,
            tls: self.tls,
            attributes: response.attributes,
            process: Arc::clone(&self.process),
            processes: Arc::clone(&self.shared.processes),
        };
        let session = self.shared.factory.open(login).await.map_err(End::Error)?;
        std::mem::replace(&mut self.session, session).close().await;
        if let Some(database) = &response.database {
            self.session.init_db(database).await.map_err(End::Error)?;
        }
        self.ok();
        Ok(())
    }

    fn statistics(&mut self) {
        let processes = &self.shared.processes;
        let (uptime, statements) = (processes.uptime_seconds(), processes.statements());
        let rate = statements as f64 / uptime.max(1) as f64;
        let text = format!(
            "Uptime: {uptime}  Threads: {}  Questions: {statements}  Slow queries: 0  Opens: 0  \
             Flush tables: 1  Open tables: 0  Queries per second avg: {rate:.3}",
            processes.count()
        );
        self.output.encoder.packet(text.as_bytes());
    }

    fn kill(&mut self, id: u32) -> Flow {
        if id == self.process.id() {
            return Err(End::Error(MySqlError::new(ErrorCode::QueryInterrupted)));
        }
        if self.shared.processes.kill(id, KillRequest::Connection) {
            self.ok();
        } else {
            self.error(&MySqlError::with(ErrorCode::NoSuchThread, &[&id]));
        }
        Ok(())
    }

    fn set_option(&mut self, option: u16) {
        match option {
            0 => self.multi_statements = true,
            1 => self.multi_statements = false,
            _ => return self.error(&MySqlError::new(ErrorCode::UnknownCom)),
        }
        self.eof();
    }

    fn reset_statement(&mut self, id: u32) {
        match self.statements.get(id, "mysqld_stmt_reset") {
            Ok(_) => {
                self.statements.forget_long_data(id);
                self.ok();
            }
            Err(error) => self.error(&error.into()),
        }
    }

    /// Cursors are never opened: a client that asks for one gets its whole result with EXECUTE.
    fn fetch(&mut self, id: u32) {
        let error = match self.statements.get(id, "mysqld_stmt_fetch") {
            Ok(_) => ProtocolError::NoCursor { id },
            Err(error) => error,
        };
        self.error(&error.into());
    }

    fn ok(&mut self) {
        let ok = OkPacket { status: self.session.status(), ..OkPacket::default() };
        encode_ok(self.output.encoder.begin(), 0, &ok);
        self.output.encoder.end();
    }

    fn eof(&mut self) {
        let status = self.session.status();
        end_of_result(self.output.encoder.begin(), self.capabilities, status, 0);
        self.output.encoder.end();
    }

    fn error(&mut self, error: &MySqlError) {
        encode_err(self.output.encoder.begin(), error, true);
        self.output.encoder.end();
    }

    async fn flush(&mut self) -> Flow {
        self.output.flush().await.map_err(|_| End::Silent)
    }
}

/// Runs a statement while watching for a KILL and for the client's end.
async fn guarded<T>(work: impl Future<Output = T>, input: &mut Input, process: &Process) -> Outcome<T> {
    let mut work = pin!(work);
    let caught = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Outcome::Done(value)),
        Err(_) => {
            tracing::error!(connection = process.id(), "a statement panicked");
            Poll::Ready(Outcome::Panicked)
        }
    });
    tokio::select! {
        biased;
        outcome = caught => outcome,
        request = process.killed() => match request {
            KillRequest::Query => Outcome::QueryKilled,
            KillRequest::Connection => Outcome::ConnectionEnded,
        },
        () = input.closed() => Outcome::ConnectionEnded,
    }
}
