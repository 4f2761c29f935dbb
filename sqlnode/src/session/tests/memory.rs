//! The stand-in: tables as sorted maps behind one lock, with an undo list for each transaction. It knows no
//! concurrency; it exists so that SQL can be tested without a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ndbapi::{NdbError, Table, TableHandle};
use signals::control::TableInfo;
use signals::ids::SchemaVersion;
use signals::keyop::Operation;
use signals::partition::PartitionMap;
use signals::table::TableDef;
use signals::{ErrorCode, NodeId, TableId};

use crate::exec::store::{StoredKey, StoredRow, Write};

type Rows = BTreeMap<StoredKey, StoredRow>;

#[derive(Default)]
struct State {
    databases: BTreeMap<String, BTreeMap<String, TableHandle>>,
    rows: BTreeMap<u32, Rows>,
    last_id: u32,
}

/// All tables.
#[derive(Clone, Default)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

fn handle(mut def: TableDef, id: u32) -> TableHandle {
    def.id = TableId(id);
    def.version = SchemaVersion(1);
    let map = PartitionMap::place(def.id, def.partition_balance, &[vec![NodeId(1)]], 1);
    Arc::new(Table::new(TableInfo { def, map }).unwrap())
}

impl Memory {
    pub(crate) fn begin(&self) -> MemoryTx {
        MemoryTx { memory: self.clone(), undo: Vec::new(), over: false }
    }

    pub(crate) fn table(&self, database: &str, name: &str) -> Result<TableHandle, NdbError> {
        let state = self.state.lock().unwrap();
        let found = state.databases.get(database).and_then(|tables| tables.get(name));
        found.cloned().ok_or(NdbError::new(ErrorCode::TABLE_NOT_FOUND))
    }

    pub(crate) fn databases(&self) -> Vec<String> {
        self.state.lock().unwrap().databases.keys().cloned().collect()
    }

    pub(crate) fn tables(&self, database: &str) -> Result<Vec<String>, NdbError> {
        let state = self.state.lock().unwrap();
        let tables = state.databases.get(database).ok_or(NdbError::new(ErrorCode::NO_SUCH_DATABASE))?;
        Ok(tables.keys().cloned().collect())
    }

    pub(crate) fn create_database(&self, name: &str) -> Result<(), NdbError> {
        let mut state = self.state.lock().unwrap();
        if state.databases.contains_key(name) {
            return Err(NdbError::new(ErrorCode::DATABASE_EXISTS));
        }
        state.databases.insert(name.to_owned(), BTreeMap::new());
        Ok(())
    }

    pub(crate) fn drop_database(&self, name: &str) -> Result<(), NdbError> {
        self.state.lock().unwrap().databases.remove(name);
        Ok(())
    }

    pub(crate) fn create_table(&self, def: TableDef) -> Result<TableHandle, NdbError> {
        def.validate().map_err(|(code, text)| NdbError::with(code, text))?;
        let mut state = self.state.lock().unwrap();
        state.last_id += 1;
        let id = state.last_id;
        let tables =
            state.databases.get_mut(&def.database).ok_or(NdbError::new(ErrorCode::NO_SUCH_DATABASE))?;
        if tables.contains_key(&def.name) {
            return Err(NdbError::new(ErrorCode::TABLE_EXISTS));
        }
        let name = def.name.clone();
        let table = handle(def, id);
        tables.insert(name, Arc::clone(&table));
        state.rows.insert(id, Rows::new());
        Ok(table)
    }

    pub(crate) fn drop_table(&self, table: &TableHandle) -> Result<(), NdbError> {
        let mut state = self.state.lock().unwrap();
        state.rows.remove(&table.id().0);
        if let Some(tables) = state.databases.get_mut(&table.def().database) {
            tables.remove(&table.def().name);
        }
        Ok(())
    }

    pub(crate) fn truncate_table(&self, table: &TableHandle) -> Result<(), NdbError> {
        self.state.lock().unwrap().rows.insert(table.id().0, Rows::new());
        Ok(())
    }
}

/// A transaction: what to put back, in order.
pub struct MemoryTx {
    memory: Memory,
    undo: Vec<(u32, StoredKey, Option<StoredRow>)>,
    over: bool,
}

fn project(row: &StoredRow, columns: &[u16]) -> StoredRow {
    columns.iter().map(|&c| row[usize::from(c)].clone()).collect()
}

impl MemoryTx {
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn position(&self) -> usize {
        self.undo.len()
    }

    pub(crate) fn undo_to(&mut self, position: usize) {
        let mut state = self.memory.state.lock().unwrap();
        while self.undo.len() > position {
            let (table, key, before) = self.undo.pop().unwrap();
            let Some(rows) = state.rows.get_mut(&table) else { continue };
            match before {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }

    pub(crate) fn commit(&mut self) -> Result<(), NdbError> {
        self.undo.clear();
        self.over = true;
        Ok(())
    }

    pub(crate) fn read(
        &mut self,
        table: &TableHandle,
        keys: &[StoredKey],
        columns: &[u16],
        last: bool,
    ) -> Result<Vec<Option<StoredRow>>, NdbError> {
        assert!(!self.over, "a read after the end of its transaction");
        let found = {
            let state = self.memory.state.lock().unwrap();
            let rows = state.rows.get(&table.id().0).ok_or(NdbError::new(ErrorCode::NO_SUCH_TABLE))?;
            keys.iter().map(|key| rows.get(key).map(|row| project(row, columns))).collect()
        };
        if last {
            self.commit()?;
        }
        Ok(found)
    }

    pub(crate) fn scan(
        &mut self,
        table: &TableHandle,
        columns: &[u16],
    ) -> Result<std::vec::IntoIter<StoredRow>, NdbError> {
        assert!(!self.over, "a scan after the end of its transaction");
        let state = self.memory.state.lock().unwrap();
        let rows = state.rows.get(&table.id().0).ok_or(NdbError::new(ErrorCode::NO_SUCH_TABLE))?;
        Ok(rows.values().map(|row| project(row, columns)).collect::<Vec<_>>().into_iter())
    }

    pub(crate) fn write(
        &mut self,
        table: &TableHandle,
        writes: &[Write],
        last: bool,
    ) -> Result<Vec<Result<(), NdbError>>, NdbError> {
        assert!(!self.over, "a write after the end of its transaction");
        let mut results = Vec::new();
        for write in writes {
            let result = self.apply(table, write);
            if let (Err(error), true) = (&result, last) {
                let error = error.clone();
                self.undo_to(0);
                self.over = true;
                return Err(error);
            }
            results.push(result);
        }
        if last {
            self.commit()?;
        }
        Ok(results)
    }

    fn apply(&mut self, table: &TableHandle, write: &Write) -> Result<(), NdbError> {
        let mut state = self.memory.state.lock().unwrap();
        let id = table.id().0;
        let rows = state.rows.get_mut(&id).ok_or(NdbError::new(ErrorCode::NO_SUCH_TABLE))?;
        let before = rows.get(&write.key).cloned();
        let mut row = match (write.operation, &before) {
            (Operation::Insert, Some(_)) => return Err(NdbError::new(ErrorCode::TUPLE_EXISTS)),
            (Operation::Update | Operation::Delete, None) => {
                return Err(NdbError::new(ErrorCode::TUPLE_NOT_FOUND));
            }
            (Operation::Update | Operation::Write, Some(row)) => row.clone(),
            _ => vec![None; table.columns().len()],
        };
        if write.operation == Operation::Delete {
            self.undo.push((id, write.key.clone(), before));
            rows.remove(&write.key);
            return Ok(());
        }
        for (&column, bytes) in table.def().primary_key.iter().zip(&write.key) {
            row[usize::from(column)] = Some(bytes.clone());
        }
        for (column, bytes) in &write.values {
            let def = &table.columns()[usize::from(*column)];
            if let Some(bytes) = bytes {
                assert!(def.storage.accepts(bytes.len()), "{} bytes for {def:?}", bytes.len());
            } else {
                assert!(def.nullable, "NULL for {def:?}");
            }
            row[usize::from(*column)] = bytes.clone();
        }
        if row.iter().flatten().map(Vec::len).sum::<usize>() > signals::table::MAX_ROW_BYTES {
            return Err(NdbError::new(ErrorCode::RECORD_TOO_BIG));
        }
        self.undo.push((id, write.key.clone(), before));
        rows.insert(write.key.clone(), row);
        Ok(())
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        self.undo_to(0);
    }
}
