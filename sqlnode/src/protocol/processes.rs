//! Process list: which connections exist, what they do, and the way to end one.
//!
//! Every connection has an entry from accept to close. The entry's owner writes what it is doing; others
//! read it for SHOW PROCESSLIST and may ask the owner to stop its statement or itself. The request is a
//! flag and a wake-up: the owner notices it at its next await, so nothing is torn down from outside. The
//! number of entries is the connection limit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// How much of a statement the list keeps.
const STATEMENT_BYTES_MAX: usize = 1024;

const KILL_NONE: u8 = 0;
const KILL_QUERY: u8 = 1;
const KILL_CONNECTION: u8 = 2;

/// What a connection has been asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillRequest {
    /// End the statement.
    Query,
    /// End the connection.
    Connection,
}

/// One row of the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// The connection's number.
    pub id: u32,
    /// The user.
    pub user: String,
    /// The client's address.
    pub host: String,
    /// The current database.
    pub database: Option<String>,
    /// The command's name.
    pub command: &'static str,
    /// Seconds since the command began.
    pub seconds: u64,
    /// The beginning of the statement.
    pub statement: Option<String>,
}

#[derive(Debug)]
struct Activity {
    user: String,
    database: Option<String>,
    command: &'static str,
    since: Instant,
    statement: Vec<u8>,
}

/// One connection's entry.
#[derive(Debug)]
pub struct Process {
    id: u32,
    host: String,
    activity: Mutex<Activity>,
    kill: AtomicU8,
    wake: Notify,
}

impl Process {
    /// The connection's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The client's address.
    pub fn host(&self) -> &str {
        &self.host
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes who the connection belongs to.
    pub fn set_user(&self, user: &str) {
        self.activity().user = user.to_owned();
    }

    /// Notes the current database.
    pub fn set_database(&self, database: Option<&str>) {
        self.activity().database = database.map(str::to_owned);
    }

    /// Notes that a command begins.
    pub fn begin(&self, command: &'static str, statement: &[u8]) {
        let mut activity = self.activity();
        activity.command = command;
        activity.since = Instant::now();
        activity.statement.clear();
        activity.statement.extend_from_slice(&statement[..statement.len().min(STATEMENT_BYTES_MAX)]);
    }

    /// Notes that the connection waits for a command; an old request to end a statement is void.
    pub fn idle(&self) {
        {
            let mut activity = self.activity();
            activity.command = "Sleep";
            activity.since = Instant::now();
            activity.statement.clear();
        }
        let _ = self.kill.compare_exchange(KILL_QUERY, KILL_NONE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits until someone asks this connection to stop.
    pub async fn killed(&self) -> KillRequest {
        loop {
            let wake = self.wake.notified();
            match self.kill.load(Ordering::Acquire) {
                KILL_QUERY => return KillRequest::Query,
                KILL_CONNECTION => return KillRequest::Connection,
                _ => wake.await,
            }
        }
    }

    fn request(&self, request: KillRequest) {
        let code = match request {
            KillRequest::Query => KILL_QUERY,
            KillRequest::Connection => KILL_CONNECTION,
        };
        self.kill.fetch_max(code, Ordering::AcqRel);
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    fn row(&self) -> ProcessRow {
        let activity = self.activity();
        let statement = String::from_utf8_lossy(&activity.statement).into_owned();
        ProcessRow {
            id: self.id,
            user: activity.user.clone(),
            host: self.host.clone(),
            database: activity.database.clone(),
            command: activity.command,
            seconds: activity.since.elapsed().as_secs(),
            statement: Some(statement).filter(|s| !s.is_empty()),
        }
    }
}

/// All connections of one SQL node.
#[derive(Debug)]
pub struct Processes {
    list: Mutex<BTreeMap<u32, Arc<Process>>>,
    next_id: AtomicU32,
    limit: usize,
    started: Instant,
    statements: AtomicU64,
}

impl Processes {
    /// An empty list that admits at most `limit` connections.
    pub fn new(limit: usize) -> Self {
        Self {
            list: Mutex::default(),
            next_id: AtomicU32::new(1),
            limit,
            started: Instant::now(),
            statements: AtomicU64::new(0),
        }
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Process>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, unless there are too many. The guard removes it again.
    pub fn admit(self: &Arc<Self>, host: String) -> Option<ProcessGuard> {
        let mut list = self.list();
        if list.len() >= self.limit {
            return None;
        }
        let id = loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            if id != 0 && !list.contains_key(&id) {
                break id;
            }
        };
        let activity = Activity {
            user: "unauthenticated user".to_owned(),
            database: None,
            command: "Connect",
            since: Instant::now(),
            statement: Vec::new(),
        };
        let process = Arc::new(Process {
            id,
            host,
            activity: Mutex::new(activity),
            kill: AtomicU8::new(KILL_NONE),
            wake: Notify::new(),
        });
        list.insert(id, Arc::clone(&process));
        Some(ProcessGuard { process, processes: Arc::clone(self) })
    }

    /// Asks a connection to stop; false when there is none with this number.
    pub fn kill(&self, id: u32, request: KillRequest) -> bool {
        let process = self.list().get(&id).cloned();
        process.is_some_and(|process| {
            process.request(request);
            true
        })
    }

    /// Asks all connections to end.
    pub fn kill_all(&self) {
        let all: Vec<_> = self.list().values().cloned().collect();
        all.iter().for_each(|process| process.request(KillRequest::Connection));
    }

    /// The list, ordered by connection number.
    pub fn rows(&self) -> Vec<ProcessRow> {
        let all: Vec<_> = self.list().values().cloned().collect();
        all.iter().map(|process| process.row()).collect()
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        self.list().len()
    }

    /// Counts a statement.
    pub fn count_statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// How many statements clients have sent.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Seconds since the list was made.
    pub fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

/// Removes a connection's entry when the connection ends, however it ends.
#[derive(Debug)]
pub struct ProcessGuard {
    process: Arc<Process>,
    processes: Arc<Processes>,
}

impl ProcessGuard {
    /// The entry.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        self.processes.list().remove(&self.process.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_live_as_long_as_their_guards_and_are_limited() {
        let processes = Arc::new(Processes::new(2));
        let a = processes.admit("a".into()).unwrap();
        let b = processes.admit("b".into()).unwrap();
        assert!(processes.admit("c".into()).is_none());
        a.process().begin("Query", b"select 1");
        a.process().set_user("root");
        let rows = processes.rows();
        assert_eq!((rows.len(), rows[0].command, rows[0].user.as_str()), (2, "Query", "root"));
        assert_eq!(rows[0].statement.as_deref(), Some("select 1"));
        drop(b);
        assert_eq!(processes.count(), 1);
        assert!(!processes.kill(999, KillRequest::Query));
    }

    #[tokio::test]
    async fn a_kill_reaches_its_connection_and_idling_voids_a_query_kill() {
        let processes = Arc::new(Processes::new(2));
        let a = processes.admit("a".into()).unwrap();
        assert!(processes.kill(a.process().id(), KillRequest::Query));
        assert_eq!(a.process().killed().await, KillRequest::Query);
        a.process().idle();
        processes.kill(a.process().id(), KillRequest::Connection);
        processes.kill(a.process().id(), KillRequest::Query);
        assert_eq!(a.process().killed().await, KillRequest::Connection);
    }
}
