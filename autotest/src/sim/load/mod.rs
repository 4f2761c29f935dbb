//! Loads: what clients do in a run, and how it is judged.
//!
//! A load lives in rounds, because a cluster that keeps its rows in memory forgets them when all of it
//! stops:
//!
//! ```text
//!   Setting up ── tables made and filled ──► Running ── time is over, or the tables are gone ──► Ending
//!       ▲                                                                                         │
//!       └──────── tables were gone: judged by what clients saw, then anew ◄── clients at rest ────┘
//!                                          time is over: the final state is looked at as well
//! ```
//!
//! Clients do one transaction at a time while the round runs. What they saw is kept outside of their
//! processes, so that a client's death leaves its last transaction as what it is: unknown.

pub(crate) mod append;
pub(crate) mod bank;
pub(crate) mod churn;
mod history;
pub(crate) mod mixed;
pub(crate) mod register;
pub(crate) mod ring;

use super::agenda::{MILLI, Nanos, SECOND};
use super::env::{Env, OBSERVER};
use super::plan::{LoadKind, LoadPlan};
use super::rng::Rng;
use ndbapi::{ClusterConnection, NdbError, TableHandle};
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};
use signals::{ErrorCode, NodeId, TableId};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

pub(crate) type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a load is.
pub(crate) trait Load {
    /// Makes and fills the tables of a round. Anything it finds of an earlier attempt is no error.
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>>;
    /// One transaction of a client.
    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()>;
    /// Judges a round by what its clients saw.
    fn judge(&self) -> Result<(), String>;
    /// Looks at the final state through one client.
    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>>;
    /// Forgets the round.
    fn forget(&self);
}

/// A client program: its process, its connection, the round.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) env: Env,
    pub(crate) node: NodeId,
    /// The client's number among the load's.
    pub(crate) number: u64,
    pub(crate) round: u64,
    pub(crate) connection: ClusterConnection,
}

impl Client {
    /// A table of this round.
    pub(crate) async fn table(&self, name: &str) -> Result<TableHandle, NdbError> {
        self.connection.dictionary().table(DATABASE, &self.name(name)).await
    }

    fn name(&self, name: &str) -> String {
        format!("{name}_{}", self.round)
    }

    /// Makes a table of this round, unless it is there.
    pub(crate) async fn create(&self, name: &str, columns: Vec<ColumnDef>) -> Result<TableHandle, NdbError> {
        let dictionary = self.connection.dictionary();
        match dictionary.create_database(DATABASE, vec![]).await {
            Err(error) if error.code() != ErrorCode::DATABASE_EXISTS => return Err(error),
            _ => {}
        }
        let table = TableDef {
            id: TableId(0),
            version: signals::ids::SchemaVersion(0),
            database: DATABASE.into(),
            name: self.name(name),
            columns,
            primary_key: vec![0],
            distribution_key: vec![0],
            partition_balance: PartitionBalance::default(),
            nologging: false,
            read_backup: true,
            fully_replicated: false,
            sql: vec![],
        };
        match dictionary.create_table(table).await {
            Err(error) if error.code() == ErrorCode::TABLE_EXISTS => {
                dictionary.fetch(DATABASE, &self.name(name)).await
            }
            other => other,
        }
    }
}

const DATABASE: &str = "sim";

/// A column that may not be null.
pub(crate) fn column(name: &str, kind: ColumnType, storage: ColumnStorage) -> ColumnDef {
    ColumnDef { name: name.into(), kind, storage, nullable: false, collation: 63, default: None, sql: vec![] }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SettingUp,
    Running,
    Ending,
    Over,
}

/// A load under way.
pub(crate) struct Running {
    load: Rc<dyn Load>,
    phase: Cell<Phase>,
    round: Cell<u64>,
    active: Cell<u64>,
    /// Rounds that ended because the tables were gone.
    pub(crate) resets: Cell<u64>,
    /// Transactions begun.
    pub(crate) acts: Cell<u64>,
    pub(crate) finished: Cell<bool>,
    /// The round's tables were made and filled.
    made: Cell<bool>,
}

/// Counts a client as active while it exists, also when its process dies under it.
struct Active<'a>(&'a Cell<u64>);

impl<'a> Active<'a> {
    fn new(count: &'a Cell<u64>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Running {
    /// Starts a load's programs.
    pub(crate) fn start(env: &Env, plan: &LoadPlan, rng: &mut Rng, until: Nanos) -> Rc<Self> {
        let rows = plan.rows.draw(rng);
        let load: Rc<dyn Load> = match plan.kind {
            LoadKind::Bank => Rc::new(bank::Bank::new(rows)),
            LoadKind::Ring => Rc::new(ring::Ring::new(rows)),
            LoadKind::Churn => Rc::new(churn::Churn::new(rows)),
            LoadKind::Mixed => Rc::new(mixed::Mixed::new(rows)),
            LoadKind::Register => Rc::new(register::Register::new(rows)),
            LoadKind::Append => Rc::new(append::Append::new(rows)),
        };
        let running = Rc::new(Self {
            load,
            phase: Cell::new(Phase::SettingUp),
            round: Cell::new(1),
            active: Cell::new(0),
            resets: Cell::new(0),
            acts: Cell::new(0),
            finished: Cell::new(false),
            made: Cell::new(false),
        });
        for number in 0..plan.clients.draw(rng) {
            let node = env.api_nodes()[number as usize % env.api_nodes().len()];
            let (running, seed, think) = (running.clone(), rng.next(), plan.think_ms);
            env.settle(node, move |env| {
                let running = running.clone();
                // A client that is started again goes on with other numbers.
                let mut rng = Rng::new(seed ^ env.now());
                Box::pin(async move {
                    while running.phase.get() != Phase::Over {
                        if running.phase.get() == Phase::Running
                            && let Some(connection) = env.connection(node)
                        {
                            let _active = Active::new(&running.active);
                            running.acts.set(running.acts.get() + 1);
                            let round = running.round.get();
                            let client = Client { env: env.clone(), node, number, round, connection };
                            running.load.act(&client, &mut rng).await;
                        }
                        env.sleep(think.millis(&mut rng)).await;
                    }
                })
            });
        }
        let conductor = running.clone();
        let conductor_env = env.clone();
        env.spawn(None, Box::pin(async move { conductor.conduct(&conductor_env, until).await }));
        running
    }

    fn client(&self, env: &Env, node: NodeId) -> Option<Client> {
        let connection = env.connection(node)?;
        Some(Client { env: env.clone(), node, number: u64::MAX, round: self.round.get(), connection })
    }

    async fn conduct(&self, env: &Env, until: Nanos) {
        let node = OBSERVER;
        while env.now() < until {
            self.phase.set(Phase::SettingUp);
            if !self.set_up(env, node, until).await {
                break;
            }
            self.phase.set(Phase::Running);
            let lost = self.watch(env, node, until).await;
            self.phase.set(Phase::Ending);
            while self.active.get() > 0 {
                env.sleep(5 * MILLI).await;
            }
            if let Err(text) = self.load.judge() {
                env.violation(text);
                return;
            }
            if lost {
                self.resets.set(self.resets.get() + 1);
                self.load.forget();
                self.made.set(false);
                self.round.set(self.round.get() + 1);
            }
        }
        self.finished.set(true);
    }

    /// Tries until the tables are there, or the time is over.
    async fn set_up(&self, env: &Env, node: NodeId, until: Nanos) -> bool {
        while env.now() < until {
            if let Some(client) = self.client(env, node) {
                let _active = Active::new(&self.active);
                match self.load.set_up(&client).await {
                    Ok(()) => {
                        self.made.set(true);
                        return true;
                    }
                    Err(error) => {
                        // What may still take effect must not do so among the rows of a later attempt.
                        if error.unknown_outcome() {
                            self.round.set(self.round.get() + 1);
                        }
                        env.remark(|| format!("the tables are not made: {error}"));
                    }
                }
            }
            env.sleep(100 * MILLI).await;
        }
        false
    }

    /// Watches until the time is over (false) or the tables are gone (true).
    async fn watch(&self, env: &Env, node: NodeId, until: Nanos) -> bool {
        while env.now() < until {
            env.sleep(50 * MILLI).await;
            if self.gone(env, node).await {
                return true;
            }
        }
        false
    }

    /// Whether the cluster answers and does not know the round's tables.
    async fn gone(&self, env: &Env, node: NodeId) -> bool {
        let Some(client) = self.client(env, node) else { return false };
        let tables = client.connection.dictionary().tables(DATABASE).await;
        let suffix = format!("_{}", self.round.get());
        match tables {
            Ok(tables) => !tables.iter().any(|(name, _, _)| name.ends_with(&suffix)),
            Err(error) => error.code() == ErrorCode::NO_SUCH_DATABASE,
        }
    }

    /// The end: everything works again; what is there must be right. Looks through every client node.
    pub(crate) async fn conclude(&self, env: &Env) {
        let begun = env.now();
        for node in [OBSERVER].into_iter().chain(env.api_nodes().iter().copied()) {
            loop {
                let looked = match self.client(env, node) {
                    None => Err("no process".to_owned()),
                    Some(_) if !self.made.get() || self.gone(env, node).await => break,
                    Some(client) => self.load.look(&client).await.map_err(|error| error.to_string()),
                };
                match looked {
                    Ok(Ok(())) => break,
                    Ok(Err(text)) => return env.violation(text),
                    Err(trouble) if env.now() > begun + 60 * SECOND => {
                        return env
                            .violation(format!("the cluster does not serve client {node} again: {trouble}"));
                    }
                    Err(_) => env.sleep(100 * MILLI).await,
                }
            }
        }
        self.phase.set(Phase::Over);
    }
}
