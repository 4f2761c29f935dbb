//! SQL as a user has it: the `mariadb` client, one command at a time or one session kept open.

use crate::program::wait;
use crate::{Finished, run};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// A SQL node and the database to work in.
#[derive(Clone, Debug)]
pub struct Sql {
    port: u16,
    database: Option<String>,
}

/// The error that a statement ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlFailure {
    /// The number.
    pub code: u16,
    /// The SQLSTATE.
    pub sqlstate: String,
    /// The text.
    pub message: String,
}

impl Sql {
    /// The SQL node at a port of the loopback.
    #[must_use]
    pub fn new(port: u16) -> Sql {
        Sql { port, database: None }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same node, working in a database that is created empty.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn fresh_database(&self, name: &str) -> Sql {
        self.rows(&format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}"));
        Sql { port: self.port, database: Some(name.to_owned()) }
    }

    fn client(&self) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-u", "root"]);
        command.args(["--batch", "--skip-column-names", "--default-character-set=utf8mb4"]);
        command.arg(format!("--port={}", self.port));
        command.args(&self.database);
        command
    }

    /// Runs statements and returns what the client said.
    #[must_use]
    pub fn run(&self, statements: &str) -> Finished {
        run(self.client().args(["-e", statements]), COMMAND_LIMIT)
    }

    /// The rows of a statement, with NULL as `NULL` and the client's escapes (`\t`, `\n`, `\\`, `\0`) kept.
    ///
    /// # Panics
    /// If the statement fails.
    #[track_caller]
    pub fn rows(&self, statements: &str) -> Vec<Vec<String>> {
        let text = self.run(statements).expect_success(statements);
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// The only value of a statement.
    ///
    /// # Panics
    /// If the statement fails or gives anything but one value.
    #[track_caller]
    #[must_use]
    pub fn value(&self, statement: &str) -> String {
        let rows = self.rows(statement);
        match rows.as_slice() {
            [row] if row.len() == 1 => row[0].clone(),
            other => panic!("{statement}: one value expected, got {other:?}"),
        }
    }

    /// Runs statements whose last one must fail, and returns its error.
    ///
    /// # Panics
    /// If nothing fails or the client says something else.
    #[track_caller]
    #[must_use]
    pub fn fails(&self, statements: &str) -> SqlFailure {
        let finished = self.run(statements);
        assert!(!finished.succeeded(), "{statements}: should fail: {finished:#?}");
        parse_failure(&finished.stderr).unwrap_or_else(|| panic!("{statements}: {finished:#?}"))
    }

    /// Opens a session that stays.
    ///
    /// # Panics
    /// If the client cannot be started.
    #[must_use]
    pub fn session(&self) -> Session {
        let mut command = self.client();
        command.args(["--unbuffered", "--force"]);
        Session::open(command)
    }
}

/// Reads `ERROR 1062 (23000) at line 1: text`.
fn parse_failure(text: &str) -> Option<SqlFailure> {
    let rest = text.lines().find_map(|line| line.strip_prefix("ERROR "))?;
    let (head, message) = rest.split_once(": ")?;
    let (code, rest) = head.split_once(" (")?;
    let sqlstate = rest.split(')').next()?;
    Some(SqlFailure { code: code.parse().ok()?, sqlstate: sqlstate.to_owned(), message: message.to_owned() })
}

/// One client connection that stays open over several statements.
pub struct Session {
    client: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    marks: u64,
}

impl Session {
    fn open(mut command: Command) -> Session {
        let mut client = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run mariadb: {e}"));
        let (input, output) = (client.stdin.take(), client.stdout.take());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok)
            {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Session { client, input, lines, marks: 0 }
    }

    /// Runs statements and returns their rows; an error shows as rows that are missing.
    ///
    /// # Panics
    /// If the client is gone or gives no answer in time.
    #[track_caller]
    pub fn rows(&mut self, statements: &str) -> Vec<Vec<String>> {
        self.marks += 1;
        let mark = format!("mark-{}", self.marks);
        let text = format!("{statements};\nSELECT '{mark}';\n");
        let input = self.input.as_mut().unwrap_or_else(|| panic!("the session is closed"));
        input.write_all(text.as_bytes()).unwrap_or_else(|e| panic!("the client is gone: {e}"));
        input.flush().unwrap_or_else(|e| panic!("the client is gone: {e}"));
        let mut rows = Vec::new();
        loop {
            match self.lines.recv_timeout(COMMAND_LIMIT) {
                Ok(line) if line == mark => return rows,
                Ok(line) => rows.push(line.split('\t').map(str::to_owned).collect()),
                Err(RecvTimeoutError::Timeout) => panic!("{statements}: no answer in time, so far {rows:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{statements}: the client ended, after {rows:?}")
                }
            }
        }
    }

    /// Kills the client without a goodbye.
    pub fn kill(mut self) {
        // Fails only if it is gone already.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = wait(&mut self.client, Duration::from_secs(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_client_are_read() {
        let text = "ERROR 1062 (23000) at line 1: Duplicate entry '1: 2' for key 't.PRIMARY'\n";
        let failure = parse_failure(text).unwrap();
        assert_eq!((failure.code, failure.sqlstate.as_str()), (1062, "23000"));
        assert_eq!(failure.message, "Duplicate entry '1: 2' for key 't.PRIMARY'");
        assert_eq!(parse_failure("Killed"), None);
    }
}
