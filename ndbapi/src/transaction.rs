//! Transaction: operations staged, executed many at a time, committed or rolled back.
//!
//! Operations are added with [`Transaction::insert`] and its like and go out together with the next
//! [`Transaction::execute`] or [`Transaction::commit`], in one round trip. A transaction that is dropped
//! without commit is rolled back behind the scenes.
//!
//! An operation that fails without [`crate::OpBuilder::ignore_error`] ends the transaction: execute fails
//! with its code. Reads ignore errors by default, so a missing row is seen in the results.

use crate::NdbError;
use crate::batch::{Batch, OpBuilder, OpId, Template};
use crate::cluster::ClusterConnection;
use crate::core::{CommitMode, Completion, Executed, ScanSpec, TransRef};
use crate::row::Row;
use crate::scan::Scan;
use crate::table::TableHandle;
use crate::value::Value;
use signals::ids::Epoch;
use signals::keyop::Operation;
use signals::{ErrorCode, TransId};

/// A point in a transaction to roll back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    trans: TransId,
    keep: u32,
}

/// What an execute brought: the batch with its results.
#[derive(Debug)]
pub struct Results {
    batch: Box<Batch>,
    executed: Executed,
}

impl Results {
    pub(crate) fn new(batch: Box<Batch>, executed: Executed) -> Self {
        Self { batch, executed }
    }
    /// The row of a read; `None` if there is none.
    ///
    /// # Errors
    /// See [`Batch::row`].
    pub fn row(&self, op: OpId) -> Result<Option<Row<'_>>, NdbError> {
        self.batch.row(op)
    }
    /// Whether an operation succeeded.
    ///
    /// # Errors
    /// See [`Batch::result`].
    pub fn result(&self, op: OpId) -> Result<(), NdbError> {
        self.batch.result(op)
    }
    /// The first failure of any operation that is more than a missing row.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&self) -> Result<(), NdbError> {
        self.batch.results().find(|r| r.as_ref().is_err_and(|e| !e.not_found())).unwrap_or(Ok(()))
    }
    /// The epoch it was committed in, if it was.
    #[must_use]
    pub fn committed(&self) -> Option<Epoch> {
        self.executed.committed
    }
    /// The operations with their results.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.batch
    }
    /// The operations with their results, to be cleared and used again.
    #[must_use]
    pub fn into_batch(self) -> Box<Batch> {
        self.batch
    }
}

/// See the module.
pub struct Transaction {
    connection: ClusterConnection,
    trans: Option<TransRef>,
    batch: Box<Batch>,
    hint: Option<(TableHandle, signals::key::KeyHash)>,
    /// Committed or rolled back: nothing more can be done.
    over: bool,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<'a>(&'a mut self, table: &'a TableHandle) -> OpBuilder<'a> {
            self.batch.op(table, Operation::$operation)
        }
    )*};
}

impl Transaction {
    pub(crate) fn new(connection: ClusterConnection) -> Self {
        Self { connection, trans: None, batch: Box::default(), hint: None, over: false }
    }

    operations! {
        /// Reads a row as it was committed last (or as this transaction has changed it), without a lock.
        read = ReadCommitted;
        /// Reads a row and keeps others from changing it until this transaction ends.
        read_shared = ReadShared;
        /// Reads a row and keeps others from changing or locking it until this transaction ends.
        read_exclusive = ReadExclusive;
        /// Inserts a row; 630 if it exists.
        insert = Insert;
        /// Changes columns of a row; 626 if it does not exist.
        update = Update;
        /// Inserts a row, or changes the columns named if it exists.
        write = Write;
        /// Deletes a row; 626 if it does not exist.
        delete = Delete;
    }

    /// An operation chosen at run time.
    pub fn operation<'a>(&'a mut self, table: &'a TableHandle, operation: Operation) -> OpBuilder<'a> {
        self.batch.op(table, operation)
    }

    /// Adds an operation whose columns were looked up beforehand; see [`Batch::push`].
    ///
    /// # Errors
    /// A value does not fit its column.
    pub fn push(
        &mut self,
        template: &Template,
        key: &[Value<'_>],
        values: &[Value<'_>],
    ) -> Result<OpId, NdbError> {
        self.batch.push(template, key, values)
    }

    /// Operations staged and not executed yet.
    #[must_use]
    pub fn staged(&self) -> usize {
        self.batch.len()
    }

    /// Forgets the operations staged and not executed yet.
    pub fn discard_staged(&mut self) {
        self.batch.clear();
    }

    /// Coordinates the transaction near the rows with this key (in key order) of `table`; without a hint it
    /// is near the row of its first operation. Has no effect once something was executed.
    ///
    /// # Errors
    /// The values are no key of the table.
    pub fn hint(&mut self, table: &TableHandle, key: &[Value<'_>]) -> Result<(), NdbError> {
        let mut normal = Vec::new();
        crate::batch::push_key(&mut normal, table, key)?;
        self.hint = table.distribution_hash(&normal).map(|hash| (table.clone(), hash));
        Ok(())
    }

    /// The id the transaction goes under in the cluster; `None` before its first execute.
    #[must_use]
    pub fn id(&self) -> Option<TransId> {
        self.trans.map(TransRef::id)
    }

    /// Whether it was committed or rolled back.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Executes what is staged, in one round trip.
    ///
    /// # Errors
    /// The transaction is over, for this reason.
    pub async fn execute(&mut self) -> Result<Results, NdbError> {
        self.run(CommitMode::NoCommit).await
    }

    /// Executes what is staged and commits, in one round trip if possible.
    ///
    /// # Errors
    /// The transaction is rolled back, or its outcome is unknown ([`NdbError::unknown_outcome`]).
    pub async fn commit(&mut self) -> Result<Results, NdbError> {
        self.run(CommitMode::Commit).await
    }

    async fn run(&mut self, mode: CommitMode) -> Result<Results, NdbError> {
        if self.over {
            return Err(ErrorCode::TRANSACTION_HAS_FAILED.into());
        }
        let lone = mode == CommitMode::Commit && self.trans.is_none() && self.hint.is_none();
        let trans = if lone { None } else { Some(self.trans().await?) };
        let batch = std::mem::take(&mut self.batch);
        let (mut batch, result) = self.connection.run(trans, batch, mode).await;
        match result {
            Ok(executed) => {
                self.over = mode == CommitMode::Commit;
                Ok(Results::new(batch, executed))
            }
            Err(error) => {
                self.over = error.code() != ErrorCode::STATUS_ERROR;
                batch.clear();
                self.batch = batch;
                Err(error)
            }
        }
    }

    /// Its record in the core, made when it is first needed.
    async fn trans(&mut self) -> Result<TransRef, NdbError> {
        if let Some(trans) = self.trans {
            return Ok(trans);
        }
        self.connection.wait_ready().await?;
        let mut locked = self.connection.lock();
        let trans = locked.core.begin()?;
        if let Some((table, hash)) = &self.hint {
            locked.core.hint(trans, table, *hash);
        }
        self.trans = Some(trans);
        Ok(trans)
    }

    /// Rolls back. Operations staged and not executed are forgotten.
    ///
    /// # Errors
    /// It was committed before.
    pub async fn abort(&mut self) -> Result<(), NdbError> {
        self.batch.clear();
        let Some(trans) = self.trans else {
            self.over = true;
            return Ok(());
        };
        let done = self.roll_back(trans, None).await;
        self.over = true;
        done
    }

    async fn roll_back(&self, trans: TransRef, keep: Option<u32>) -> Result<(), NdbError> {
        match self.connection.ask(|core, now, tag| core.rollback(now, trans, keep, tag)).await {
            Completion::RolledBack { result, .. } => result,
            Completion::Executed { .. } | Completion::Dictionary { .. } | Completion::ScanReady { .. } => {
                Err(ErrorCode::STATUS_ERROR.into())
            }
        }
    }

    /// A point to come back to with [`Self::rollback_to`].
    ///
    /// # Errors
    /// 4200: operations are staged and not executed; 4006: too many transactions; 4035: the cluster is away.
    pub async fn savepoint(&mut self) -> Result<Savepoint, NdbError> {
        if !self.batch.is_empty() {
            return Err(NdbError::with(ErrorCode::STATUS_ERROR, "execute what is staged before a savepoint"));
        }
        if self.over {
            return Err(ErrorCode::TRANSACTION_HAS_FAILED.into());
        }
        let trans = self.trans().await?;
        let keep = self.connection.lock().core.operations_of(trans);
        Ok(Savepoint { trans: trans.id(), keep })
    }

    /// Undoes everything since the savepoint, locks included; what is staged is forgotten.
    ///
    /// # Errors
    /// The savepoint is another transaction's, or the transaction is over.
    pub async fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), NdbError> {
        self.batch.clear();
        match self.trans {
            Some(trans) if trans.id() == savepoint.trans && !self.over => {
                let result = self.roll_back(trans, Some(savepoint.keep)).await;
                self.over = result.is_err() && self.connection.lock().core.has_ended(trans);
                result
            }
            _ => Err(NdbError::with(ErrorCode::STATUS_ERROR, "the savepoint is of another transaction")),
        }
    }

    /// Scans a table. The transaction's own changes are seen; nothing is locked.
    ///
    /// # Errors
    /// The transaction is over, or the cluster is away.
    pub async fn scan(&mut self, spec: ScanSpec) -> Result<Scan, NdbError> {
        if self.over {
            return Err(ErrorCode::TRANSACTION_HAS_FAILED.into());
        }
        if self.trans.is_none() {
            self.connection.wait_ready().await?;
        }
        Scan::start(self.connection.clone(), self.trans, spec)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(trans) = self.trans {
            self.connection.tell(|core, now| core.release(now, trans));
        }
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction({:?}, {} staged, over: {})", self.id(), self.staged(), self.over)
    }
}
