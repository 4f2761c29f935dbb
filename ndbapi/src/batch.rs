//! Batch: the operations of one execute, their requests and, afterwards, their results.
//!
//! An application (or a driver for it) stages operations here, hands the whole batch to the core, and gets
//! it back with the results in it. All bytes live in two buffers that are used again, so a recycled batch
//! allocates nothing.
//!
//! ```text
//!   Staged ──execute──► Sent ──row, or the coordinator's confirmation──► Done
//!                        │  └─ committed read refused: placement changed ──► Parked ──► Sent
//!                        └──refusal──► Failed(code)
//! ```
//!
//! [`OpBuilder`] checks every value against its column; [`Template`] does the same with the columns looked up
//! once.

use crate::NdbError;
use crate::row::Row;
use crate::table::{Column, Table, TableHandle};
use crate::value::{Stored, Value, store};
use signals::ErrorCode;
use signals::attr;
use signals::key::{KeyHash, push_normal};
use signals::keyop::{MAX_ATTR_BYTES, MAX_NORMAL_KEY_BYTES, Operation};
use signals::table::{MAX_KEY_BYTES, MAX_ROW_BYTES};
use std::sync::Arc;

/// Most bytes of requests in one batch.
pub const MAX_BATCH_BYTES: usize = 32 << 20;
/// Tables a recycled batch keeps in hand, so that it need not count references anew for every operation.
const TABLES_KEPT: usize = 8;

/// An operation of a batch: its place there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u32);

/// How far an operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpState {
    /// Not sent yet.
    Staged,
    /// Answer awaited.
    Sent,
    /// Waits for the table's new placement.
    Parked,
    /// Through; a read has its row.
    Done,
    /// Refused.
    Failed(ErrorCode),
}

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    pub(crate) hash: KeyHash,
    pub(crate) table: u16,
    pub(crate) operation: Operation,
    pub(crate) ignore_error: bool,
    pub(crate) nowait: bool,
    pub(crate) state: OpState,
    pub(crate) key_at: u32,
    pub(crate) key_len: u16,
    pub(crate) attr_at: u32,
    pub(crate) attr_len: u32,
    pub(crate) row_at: u32,
    pub(crate) row_len: u32,
    /// The number it was sent under.
    pub(crate) api_op: u32,
    /// Committed reads: index of the node asked.
    pub(crate) node: u8,
    /// Committed reads: bits of the replicas asked so far.
    pub(crate) tried: u8,
    /// Its table was fetched anew because of it.
    pub(crate) refreshed: bool,
    /// A node that may have had its row is gone.
    pub(crate) lost: bool,
}

/// See the module.
#[derive(Default)]
pub struct Batch {
    pub(crate) tables: Vec<TableHandle>,
    pub(crate) ops: Vec<Op>,
    pub(crate) request: Vec<u8>,
    pub(crate) rows: Vec<u8>,
    /// Bytes of `request` that belong to finished operations.
    used: usize,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all operations and results, keeps the memory.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.request.clear();
        self.rows.clear();
        self.used = 0;
        self.tables.truncate(TABLES_KEPT);
    }

    /// Makes the operations ready to be executed once more, as after a temporary error.
    pub fn rewind(&mut self) {
        self.rows.clear();
        for op in &mut self.ops {
            op.state = OpState::Staged;
            (op.row_at, op.row_len, op.tried) = (0, 0, 0);
            (op.refreshed, op.lost) = (false, false);
        }
    }

    /// How many operations it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether it has no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Starts an operation; [`OpBuilder::finish`] adds it.
    pub fn op<'b>(&'b mut self, table: &'b TableHandle, operation: Operation) -> OpBuilder<'b> {
        let start = self.used;
        self.request.truncate(start);
        OpBuilder {
            batch: self,
            table,
            operation,
            nowait: false,
            ignore_error: operation.is_read(),
            start,
            key_len: None,
            attr_at: start,
            projected: false,
            failed: None,
        }
    }

    /// Adds an operation with its columns resolved by `template`: the key columns' values in key order,
    /// then those of the template's columns in its order (none for reads and deletes).
    ///
    /// # Errors
    /// A value does not fit its column, or there are too few or too many; nothing is added then.
    #[inline]
    pub fn push(
        &mut self,
        template: &Template,
        key: &[Value<'_>],
        values: &[Value<'_>],
    ) -> Result<OpId, NdbError> {
        let start = self.used;
        self.request.truncate(start);
        let key_len = push_key(&mut self.request, &template.table, key)?;
        align(&mut self.request);
        let attr_at = self.request.len();
        let operation = template.operation;
        if operation.is_read() {
            self.request.extend_from_slice(&template.projection);
        } else {
            if matches!(operation, Operation::Insert | Operation::Write) {
                push_key_values(&mut self.request, &template.table, key)?;
            }
            if values.len() != template.columns.len() {
                return Err(wrong_count("values", values.len(), template.columns.len()));
            }
            for (id, value) in template.columns.iter().zip(values) {
                push_value(&mut self.request, &template.table, *id, *value)?;
            }
        }
        let ignore_error = template.ignore_error;
        self.add(&template.table, operation, key_len, start, attr_at, ignore_error, template.nowait)
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn add(
        &mut self,
        table: &TableHandle,
        operation: Operation,
        key_len: usize,
        start: usize,
        attr_at: usize,
        ignore_error: bool,
        nowait: bool,
    ) -> Result<OpId, NdbError> {
        let attr_len = self.request.len() - attr_at;
        align(&mut self.request);
        if self.request.len() > MAX_BATCH_BYTES {
            let text = format!("one execute may carry {MAX_BATCH_BYTES} bytes of operations");
            return Err(NdbError::with(ErrorCode::TOO_MANY_OPERATIONS, text));
        }
        if attr_len > MAX_ATTR_BYTES {
            let text = format!("{attr_len} bytes of column values; a row may have {MAX_ROW_BYTES}");
            return Err(NdbError::with(ErrorCode::RECORD_TOO_BIG, text));
        }
        let key = &self.request[start..start + key_len];
        let Some(hash) = table.distribution_hash(key) else {
            return Err(NdbError::with(
                ErrorCode::PARAMETER_ERROR,
                "the key does not have the table's shape",
            ));
        };
        let table = self.table_index(table);
        let id = OpId(self.ops.len() as u32);
        self.ops.push(Op {
            hash,
            table,
            operation,
            ignore_error,
            nowait,
            state: OpState::Staged,
            key_at: start as u32,
            key_len: key_len as u16,
            attr_at: attr_at as u32,
            attr_len: attr_len as u32,
            row_at: 0,
            row_len: 0,
            api_op: 0,
            node: 0,
            tried: 0,
            refreshed: false,
            lost: false,
        });
        self.used = self.request.len();
        Ok(id)
    }

    #[inline]
    fn table_index(&mut self, table: &TableHandle) -> u16 {
        match self.tables.iter().position(|t| Arc::ptr_eq(t, table)) {
            Some(index) => index as u16,
            None => {
                self.tables.push(Arc::clone(table));
                (self.tables.len() - 1) as u16
            }
        }
    }

    #[inline]
    pub(crate) fn table_of(&self, op: &Op) -> &TableHandle {
        &self.tables[op.table as usize]
    }
    #[inline]
    pub(crate) fn key_of(&self, op: &Op) -> &[u8] {
        &self.request[op.key_at as usize..][..op.key_len as usize]
    }
    #[inline]
    pub(crate) fn attr_of(&self, op: &Op) -> &[u8] {
        &self.request[op.attr_at as usize..][..op.attr_len as usize]
    }

    /// Whether an operation succeeded.
    ///
    /// # Errors
    /// Why it did not: the data node's code, or 4350 if its transaction was rolled back before it was
    /// through.
    pub fn result(&self, op: OpId) -> Result<(), NdbError> {
        match self.ops.get(op.0 as usize).map(|o| o.state) {
            Some(OpState::Done) => Ok(()),
            Some(OpState::Failed(code)) => Err(code.into()),
            Some(OpState::Staged | OpState::Sent | OpState::Parked) => {
                Err(ErrorCode::TRANSACTION_ALREADY_ABORTED.into())
            }
            None => Err(NdbError::with(ErrorCode::PARAMETER_ERROR, "the operation is not of this batch")),
        }
    }

    /// The row of a read; `None` if there is none (626).
    ///
    /// # Errors
    /// Any other reason why the read failed; 4200 if the operation is no read.
    #[inline]
    pub fn row(&self, op: OpId) -> Result<Option<Row<'_>>, NdbError> {
        match self.ops.get(op.0 as usize) {
            Some(o) if o.state == OpState::Done && o.operation.is_read() => {
                let bytes = &self.rows[o.row_at as usize..][..o.row_len as usize];
                Ok(Some(Row::new(&self.tables[o.table as usize], bytes)))
            }
            Some(o) if o.state == OpState::Failed(ErrorCode::TUPLE_NOT_FOUND) => Ok(None),
            Some(o) if !o.operation.is_read() => {
                Err(NdbError::with(ErrorCode::STATUS_ERROR, "only reads have rows"))
            }
            _ => self.result(op).map(|()| None),
        }
    }

    /// The results of all operations in order.
    pub fn results(&self) -> impl Iterator<Item = Result<(), NdbError>> + '_ {
        (0..self.ops.len() as u32).map(|i| self.result(OpId(i)))
    }

    /// The first operation that failed, and why.
    #[must_use]
    pub fn first_failure(&self) -> Option<(OpId, ErrorCode)> {
        self.ops.iter().enumerate().find_map(|(i, op)| match op.state {
            OpState::Failed(code) => Some((OpId(i as u32), code)),
            OpState::Staged | OpState::Sent | OpState::Parked | OpState::Done => None,
        })
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} operations, first failure {:?})", self.len(), self.first_failure())
    }
}

/// An operation being put together. Mistakes are kept and reported by [`Self::finish`].
pub struct OpBuilder<'b> {
    batch: &'b mut Batch,
    table: &'b TableHandle,
    operation: Operation,
    nowait: bool,
    ignore_error: bool,
    start: usize,
    key_len: Option<usize>,
    attr_at: usize,
    projected: bool,
    failed: Option<NdbError>,
}

impl OpBuilder<'_> {
    /// The key columns' values in key order. Comes first.
    #[must_use]
    pub fn key(mut self, values: &[Value<'_>]) -> Self {
        if self.key_len.is_some() {
            return self.fail(status("the key is given twice"));
        }
        let request = &mut self.batch.request;
        match push_key(request, self.table, values) {
            Ok(length) => self.key_len = Some(length),
            Err(error) => return self.fail(error),
        }
        align(request);
        self.attr_at = request.len();
        if matches!(self.operation, Operation::Insert | Operation::Write)
            && let Err(error) = push_key_values(request, self.table, values)
        {
            return self.fail(error);
        }
        self
    }

    /// Sets a column (inserts, updates, writes).
    #[must_use]
    pub fn set<'v>(self, column: impl Column, value: impl Into<Value<'v>>) -> Self {
        if self.failed.is_some() {
            return self;
        }
        if self.key_len.is_none() || !self.operation.is_write() || self.operation == Operation::Delete {
            return self.fail(status("columns are set by inserts, updates and writes, after the key"));
        }
        let set = column.resolve(self.table).and_then(|id| {
            if self.table.is_key(id) {
                return Err(ErrorCode::KEY_NOT_UPDATABLE.into());
            }
            push_value(&mut self.batch.request, self.table, id, value.into())
        });
        match set {
            Ok(()) => self,
            Err(error) => self.fail(error),
        }
    }

    /// The columns a read answers with, in this order; all of them if never called.
    #[must_use]
    pub fn columns<C: Column>(mut self, columns: &[C]) -> Self {
        if self.failed.is_some() {
            return self;
        }
        if self.key_len.is_none() || !self.operation.is_read() {
            return self.fail(status("columns are chosen by reads, after the key"));
        }
        self.projected = true;
        for column in columns {
            match column.resolve(self.table) {
                Ok(id) => self.batch.request.extend_from_slice(&id.to_le_bytes()),
                Err(error) => return self.fail(error),
            }
        }
        self
    }

    /// Fail with 635 instead of waiting for a lock.
    #[must_use]
    pub fn nowait(mut self) -> Self {
        self.nowait = true;
        self
    }

    /// Whether a failure of this operation leaves the transaction alive. Reads do by default, writes do
    /// not. Committed reads outside the coordinator always leave it alive.
    #[must_use]
    pub fn ignore_error(mut self, ignore: bool) -> Self {
        self.ignore_error = ignore;
        self
    }

    /// Adds the operation to the batch.
    ///
    /// # Errors
    /// The first mistake made while building it; nothing is added then.
    pub fn finish(mut self) -> Result<OpId, NdbError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(key_len) = self.key_len else { return Err(status("the operation has no key")) };
        if self.operation.is_read() && !self.projected {
            self.batch.request.extend_from_slice(self.table.all_columns());
        }
        let (start, attr_at) = (self.start, self.attr_at);
        self.batch.add(self.table, self.operation, key_len, start, attr_at, self.ignore_error, self.nowait)
    }

    fn fail(mut self, error: NdbError) -> Self {
        self.failed.get_or_insert(error);
        self
    }
}

/// An operation with its columns looked up once, for [`Batch::push`].
#[derive(Clone, Debug)]
pub struct Template {
    table: TableHandle,
    operation: Operation,
    columns: Vec<u16>,
    projection: Vec<u8>,
    ignore_error: bool,
    nowait: bool,
}

impl Template {
    /// An operation on `columns`: those a read answers with, or those an insert, update or write sets.
    ///
    /// # Errors
    /// A column does not exist (4004), or a write names a key column (4202; their values come from the key).
    pub fn new<C: Column>(
        table: &TableHandle,
        operation: Operation,
        columns: &[C],
    ) -> Result<Self, NdbError> {
        let columns: Vec<u16> = columns.iter().map(|c| c.resolve(table)).collect::<Result<_, _>>()?;
        if operation.is_write() && columns.iter().any(|c| table.is_key(*c)) {
            return Err(ErrorCode::KEY_NOT_UPDATABLE.into());
        }
        Ok(Self {
            table: Arc::clone(table),
            operation,
            projection: columns.iter().flat_map(|c| c.to_le_bytes()).collect(),
            columns,
            ignore_error: operation.is_read(),
            nowait: false,
        })
    }

    /// See [`OpBuilder::ignore_error`].
    #[must_use]
    pub fn ignore_error(mut self, ignore: bool) -> Self {
        self.ignore_error = ignore;
        self
    }

    /// See [`OpBuilder::nowait`].
    #[must_use]
    pub fn nowait(mut self) -> Self {
        self.nowait = true;
        self
    }

    /// What it does.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &TableHandle {
        &self.table
    }
}

#[inline]
fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Appends a key in normal form; returns its length.
#[inline]
pub(crate) fn push_key(out: &mut Vec<u8>, table: &Table, values: &[Value<'_>]) -> Result<usize, NdbError> {
    let def = table.def();
    if values.len() != def.primary_key.len() {
        return Err(wrong_count("key values", values.len(), def.primary_key.len()));
    }
    let start = out.len();
    let mut raw = 0;
    for (id, value) in def.primary_key.iter().zip(values) {
        let column = &def.columns[*id as usize];
        let stored = store(column, *value)?;
        let bytes = stored.bytes().unwrap_or_default();
        raw += bytes.len();
        if raw > MAX_KEY_BYTES {
            return Err(ErrorCode::KEY_TOO_LONG.into());
        }
        push_normal(out, column, bytes);
    }
    let length = out.len() - start;
    if length > MAX_NORMAL_KEY_BYTES { Err(ErrorCode::KEY_TOO_LONG.into()) } else { Ok(length) }
}

/// Appends the key columns' own values as AttrInfo: the normal form may have lost their letters' case.
#[inline]
fn push_key_values(out: &mut Vec<u8>, table: &Table, values: &[Value<'_>]) -> Result<(), NdbError> {
    for (id, value) in table.def().primary_key.iter().zip(values) {
        push_value(out, table, *id, *value)?;
    }
    Ok(())
}

#[inline]
fn push_value(out: &mut Vec<u8>, table: &Table, id: u16, value: Value<'_>) -> Result<(), NdbError> {
    let stored: Stored<'_> = store(&table.columns()[id as usize], value)?;
    attr::push(out, id, stored.bytes());
    Ok(())
}

#[cold]
fn status(text: &str) -> NdbError {
    NdbError::with(ErrorCode::STATUS_ERROR, text)
}

#[cold]
fn wrong_count(what: &str, got: usize, want: usize) -> NdbError {
    NdbError::with(ErrorCode::PARAMETER_ERROR, format!("{got} {what} where {want} are needed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table_on;
    use signals::NodeId;
    use signals::attr::AttrReader;

    fn table() -> TableHandle {
        Arc::new(Table::new(table_on(&[vec![NodeId(1)]], 1)).unwrap())
    }

    #[test]
    fn an_insert_carries_key_and_columns() {
        let table = table();
        let mut batch = Batch::new();
        let op =
            batch.op(&table, Operation::Insert).key(&[7u32.into()]).set("v", 9u32).set("s", "hi").finish();
        assert_eq!(op, Ok(OpId(0)));
        let op = batch.ops[0];
        assert_eq!(batch.key_of(&op), 7u32.to_le_bytes());
        let entries: Vec<_> = AttrReader::new(batch.attr_of(&op)).map(Result::unwrap).collect();
        let v = 9u64.to_le_bytes();
        assert_eq!(entries, [(0, Some(&[7u8, 0, 0, 0][..])), (1, Some(&v[..])), (2, Some(&b"hi"[..]))]);

        let template = Template::new(&table, Operation::Insert, &["v", "s"]).unwrap();
        batch.push(&template, &[7u32.into()], &[9u32.into(), "hi".into()]).unwrap();
        let second = batch.ops[1];
        assert_eq!(batch.attr_of(&second), batch.attr_of(&op));
        assert_eq!(batch.key_of(&second), batch.key_of(&op));
        assert_eq!(batch.tables.len(), 1);
    }

    #[test]
    fn mistakes_add_nothing() {
        let table = table();
        let mut batch = Batch::new();
        let code = |r: Result<OpId, NdbError>| r.unwrap_err().code().0;
        assert_eq!(code(batch.op(&table, Operation::Insert).set("v", 1u32).finish()), 4200);
        assert_eq!(code(batch.op(&table, Operation::Insert).key(&[]).finish()), 4118);
        assert_eq!(
            code(batch.op(&table, Operation::Update).key(&[1u32.into()]).set("id", 1u32).finish()),
            4202
        );
        assert_eq!(
            code(batch.op(&table, Operation::Update).key(&[1u32.into()]).set("x", 1u32).finish()),
            4004
        );
        let long = "x".repeat(21);
        assert_eq!(
            code(batch.op(&table, Operation::Update).key(&[1u32.into()]).set("s", &long).finish()),
            4209
        );
        assert_eq!(code(batch.op(&table, Operation::Insert).key(&[Value::Null]).finish()), 839);
        assert_eq!(
            code(batch.op(&table, Operation::Delete).key(&[1u32.into()]).set("v", 1u32).finish()),
            4200
        );
        assert!(batch.is_empty());
        assert!(batch.op(&table, Operation::Delete).key(&[1u32.into()]).finish().is_ok());
        assert_eq!(batch.request.len(), 4, "nothing of the failed ones is left");
        assert_eq!(Template::new(&table, Operation::Update, &["id"]).unwrap_err().code().0, 4202);
    }

    #[test]
    fn more_values_than_any_row_may_have_are_never_sent() {
        let mut info = table_on(&[vec![NodeId(1)]], 1);
        for name in ["a", "b", "c"] {
            let mut column = info.def.columns[2].clone();
            column.name = name.into();
            column.storage = signals::table::ColumnStorage::Var { max_len: MAX_ROW_BYTES as u16 };
            info.def.columns.push(column);
        }
        let table = Arc::new(Table::new(info).unwrap());
        let (mut batch, long) = (Batch::new(), vec![7u8; 20_000]);
        let op = |batch: &mut Batch, c: &[u8]| {
            let op = batch.op(&table, Operation::Update).key(&[1u32.into()]);
            op.set("a", &long[..9_000]).set("b", &long[..20_000]).set("c", c).finish()
        };
        assert_eq!(op(&mut batch, &long).unwrap_err().code(), ErrorCode::RECORD_TOO_BIG);
        assert!(batch.is_empty());
        assert!(op(&mut batch, &long[..1_000]).is_ok());
    }

    #[test]
    fn reads_ask_for_all_columns_unless_told() {
        let table = table();
        let mut batch = Batch::new();
        batch.op(&table, Operation::ReadCommitted).key(&[1u32.into()]).finish().unwrap();
        batch
            .op(&table, Operation::ReadCommitted)
            .key(&[1u32.into()])
            .columns(&["s", "id"])
            .finish()
            .unwrap();
        assert_eq!(batch.attr_of(&batch.ops[0]), [0, 0, 1, 0, 2, 0]);
        assert_eq!(batch.attr_of(&batch.ops[1]), [2, 0, 0, 0]);
        assert_eq!(batch.row(OpId(0)).unwrap_err().code(), ErrorCode::TRANSACTION_ALREADY_ABORTED);
    }
}
