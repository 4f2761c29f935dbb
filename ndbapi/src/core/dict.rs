//! The dictionary as a session sees it: a cache of tables, questions and changes on their way, and reads
//! that wait for a table's new placement.
//!
//! Any data node's dict takes questions and changes. A question may be asked twice, so it survives the loss
//! of its node; a change may not, and its outcome is then unknown.
//!
//! A table is forgotten when a data node says that it has changed, and fetched anew when somebody asks for
//! it next. Committed reads refused for that reason are parked while the table is fetched, once each: if
//! only its placement has changed they go on, if the table itself has, they fail with 241, because they
//! were built for another one.

use super::{Completion, Core, NOBODY, Now};
use crate::NdbError;
use crate::batch::OpState;
use crate::table::{Table, TableHandle};
use signals::control::{ControlSignal, DatabaseInfo, DictAnswer, DictQuery, Refusal, SchemaChange};
use signals::frame::{self, Invalid};
use signals::ids::SchemaVersion;
use signals::table::MAX_TABLES;
use signals::{BlockNumber, BlockRef, ErrorCode, TableId};
use std::sync::Arc;

/// Most questions and changes on their way.
const REQUESTS_MAX: usize = 1_000;
/// How many nodes a question is asked of before it fails.
const QUERY_TRIES: u8 = 4;

/// Something for the dictionary.
#[derive(Clone, Debug)]
pub enum DictRequest {
    /// A question.
    Query(DictQuery),
    /// A change.
    Change(SchemaChange),
}

/// A page of a listing, in the byte order of the names.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Whether there is more after the last of them.
    pub more: bool,
}

/// The dictionary's answer.
#[derive(Clone, Debug)]
pub enum DictReply {
    /// A table; it is in the cache now.
    Table(TableHandle),
    /// A page of the databases.
    Databases(Page<DatabaseInfo>),
    /// A page of a database's tables.
    Tables(Page<(String, TableId, SchemaVersion)>),
    /// A change was made; for tables, the id and version given.
    Changed(Option<(TableId, SchemaVersion)>),
}

#[derive(Clone, Copy)]
enum Asker {
    User(u64),
    Parked(TableId),
}

pub(super) struct PendingDict {
    what: DictRequest,
    asker: Asker,
    node: usize,
    deadline: Now,
    tries: u8,
}

/// A committed read that waits: flight, its serial, the operation's place.
pub(super) type Parked = (u32, u64, u32);

impl Core {
    /// A table from the cache.
    #[must_use]
    pub fn cached_table(&self, database: &str, name: &str) -> Option<TableHandle> {
        // One table's full name is looked up rarely enough that the string does not matter.
        self.tables.get(&format!("{database}/{name}")).cloned()
    }

    /// Forgets a table, so that it is fetched anew when asked for.
    pub fn forget_table(&mut self, table: TableId) {
        if let Some(old) = self.tables_by_id.remove(&table) {
            self.tables.remove(&old.def().full_name());
        }
    }

    /// Asks or changes the dictionary. Answered by [`Completion::Dictionary`].
    pub fn dictionary(&mut self, now: Now, what: DictRequest, tag: u64) {
        if let Err(error) = self.ask(now, what, Asker::User(tag)) {
            self.complete_with(Completion::Dictionary { tag, result: Err(error) });
        }
    }

    fn ask(&mut self, now: Now, what: DictRequest, asker: Asker) -> Result<(), NdbError> {
        if self.dict.len() >= REQUESTS_MAX {
            return Err(NdbError::with(ErrorCode::DICT_BUSY, "too many requests to the dictionary"));
        }
        let timeout = match what {
            DictRequest::Query(_) => self.options.request_timeout_ms,
            DictRequest::Change(_) => self.options.schema_timeout_ms,
        };
        let deadline = now.after_ms(timeout);
        self.send_dict(PendingDict { what, asker, node: 0, deadline, tries: 0 })
    }

    fn send_dict(&mut self, mut pending: PendingDict) -> Result<(), NdbError> {
        let Some(node) = self.any_started() else { return Err(self.unavailable()) };
        self.next_request = self.next_request.wrapping_add(1);
        let request = self.next_request;
        let signal = match &pending.what {
            DictRequest::Query(query) => ControlSignal::DictQueryReq { request, query: query.clone() },
            DictRequest::Change(change) => ControlSignal::SchemaReq { request, change: change.clone() },
        };
        let target = BlockRef::new(self.nodes[node].id, BlockNumber::Dbdict, 0);
        let me = self.me;
        if !frame::push_control(self.out(node), me, target, &signal) {
            let text = "the definition is too long for one message";
            return Err(NdbError::with(ErrorCode::INVALID_TABLE_DEFINITION, text));
        }
        pending.node = node;
        pending.tries += 1;
        self.dict.insert(request, pending);
        Ok(())
    }

    pub(super) fn on_dict_conf(&mut self, now: Now, request: u32, answer: DictAnswer) -> Result<(), Invalid> {
        let Some(pending) = self.dict.remove(&request) else {
            self.stale += 1;
            return Ok(());
        };
        let reply = match (answer, &pending.what) {
            (DictAnswer::Table(info), DictRequest::Query(query)) => {
                let fits = match query {
                    DictQuery::TableByName { database, name } => {
                        info.def.database.eq_ignore_ascii_case(database)
                            && info.def.name.eq_ignore_ascii_case(name)
                    }
                    DictQuery::TableById(id) => info.def.id == *id,
                    DictQuery::Databases { .. } | DictQuery::Tables { .. } => false,
                };
                let table = Table::new(*info).ok().filter(|_| fits);
                table.map(|table| DictReply::Table(self.remember(Arc::new(table))))
            }
            (
                DictAnswer::Databases { databases: items, more },
                DictRequest::Query(DictQuery::Databases { .. }),
            ) => Some(DictReply::Databases(Page { items, more })),
            (DictAnswer::Tables { tables: items, more }, DictRequest::Query(DictQuery::Tables { .. })) => {
                Some(DictReply::Tables(Page { items, more }))
            }
            (DictAnswer::Changed(what), DictRequest::Change(change)) => {
                let change = change.clone();
                self.forget_changed(&change);
                Some(DictReply::Changed(what))
            }
            _ => None,
        };
        let Some(reply) = reply else {
            self.dict_answered(now, pending.asker, Err(ErrorCode::MALFORMED_MESSAGE.into()));
            return Err(Invalid("a dictionary answer that is no table or was not asked for"));
        };
        self.dict_answered(now, pending.asker, Ok(reply));
        Ok(())
    }

    pub(super) fn on_dict_ref(&mut self, now: Now, request: u32, refusal: Refusal) {
        match self.dict.remove(&request) {
            Some(pending) => self.dict_answered(now, pending.asker, Err(refusal.into())),
            None => self.stale += 1,
        }
    }

    fn dict_answered(&mut self, now: Now, asker: Asker, result: Result<DictReply, NdbError>) {
        match asker {
            Asker::User(NOBODY) => {}
            Asker::User(tag) => self.complete_with(Completion::Dictionary { tag, result }),
            Asker::Parked(id) => {
                let result = match result {
                    Ok(DictReply::Table(table)) => Ok(table),
                    Ok(_) => Err(ErrorCode::MALFORMED_MESSAGE),
                    Err(error) => Err(error.code()),
                };
                self.unpark(now, id, &result);
            }
        }
    }

    fn remember(&mut self, table: TableHandle) -> TableHandle {
        if let Some(known) = self.tables_by_id.get(&table.id())
            && known.info() == table.info()
        {
            return Arc::clone(known);
        }
        self.forget_table(table.id());
        if self.tables_by_id.len() >= MAX_TABLES {
            self.tables.clear();
            self.tables_by_id.clear();
        }
        if let Some(former) = self.tables.insert(table.def().full_name(), Arc::clone(&table)) {
            self.tables_by_id.remove(&former.id());
        }
        self.tables_by_id.insert(table.id(), Arc::clone(&table));
        table
    }

    fn forget_changed(&mut self, change: &SchemaChange) {
        match change {
            SchemaChange::DropTable { table, .. } | SchemaChange::TruncateTable { table, .. } => {
                self.forget_table(*table);
            }
            SchemaChange::CreateTable(def) => {
                if let Some(former) = self.tables.remove(&def.full_name()) {
                    self.tables_by_id.remove(&former.id());
                }
            }
            SchemaChange::CreateDatabase { .. } | SchemaChange::DropDatabase { .. } => {}
        }
    }

    pub(super) fn has_room_to_park(&self) -> bool {
        self.dict.len() < REQUESTS_MAX
    }

    /// Keeps a committed read until its table is fetched anew.
    pub(super) fn park(&mut self, now: Now, table: TableId, flight: u32, serial: u64, place: u32) {
        let waiting = self.parked.entry(table).or_default();
        waiting.push((flight, serial, place));
        if waiting.len() == 1 {
            // If nobody can be asked now they fail at the next tick: failing them here would go behind the
            // back of the caller, who holds their batch.
            let _ = self.ask(now, DictRequest::Query(DictQuery::TableById(table)), Asker::Parked(table));
        }
    }

    fn unpark(&mut self, now: Now, id: TableId, result: &Result<TableHandle, ErrorCode>) {
        for (index, serial, place) in self.parked.remove(&id).unwrap_or_default() {
            let Some(flight) = self.flights.get_mut(index as usize).filter(|f| f.serial == serial) else {
                continue;
            };
            let Some(mut batch) = flight.batch.take() else { continue };
            let op = batch.ops[place as usize];
            if op.state != OpState::Parked {
                flight.batch = Some(batch);
                continue;
            }
            let sent = match result {
                Ok(table) if table.version() == batch.table_of(&op).version() => {
                    batch.tables.push(Arc::clone(table));
                    let newest = (batch.tables.len() - 1) as u16;
                    let op = &mut batch.ops[place as usize];
                    (op.table, op.tried) = (newest, 0);
                    self.send_read(index, &mut batch, place as usize)
                }
                Ok(_) => {
                    batch.ops[place as usize].state = OpState::Failed(ErrorCode::INVALID_SCHEMA_VERSION);
                    false
                }
                Err(code) => {
                    batch.ops[place as usize].state = OpState::Failed(*code);
                    false
                }
            };
            let flight = &mut self.flights[index as usize];
            flight.batch = Some(batch);
            flight.outstanding -= u32::from(!sent);
            self.settle(now, index);
        }
    }

    pub(super) fn dict_node_lost(&mut self, now: Now, node: usize, text: &str) {
        let theirs: Vec<u32> = self.dict.iter().filter(|(_, p)| p.node == node).map(|(r, _)| *r).collect();
        for request in theirs {
            let Some(pending) = self.dict.remove(&request) else { continue };
            let asker = pending.asker;
            let again = match pending.what {
                DictRequest::Change(_) => Err(NdbError::with(ErrorCode::NODE_FAILED_UNKNOWN, text)),
                DictRequest::Query(_) if pending.tries < QUERY_TRIES => self.send_dict(pending),
                DictRequest::Query(_) => Err(NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, text)),
            };
            if let Err(error) = again {
                self.dict_answered(now, asker, Err(error));
            }
        }
    }

    pub(super) fn dict_timeouts(&mut self, now: Now) {
        let due: Vec<u32> = self.dict.iter().filter(|(_, p)| now >= p.deadline).map(|(r, _)| *r).collect();
        for request in due {
            let Some(pending) = self.dict.remove(&request) else { continue };
            let error = match pending.what {
                DictRequest::Change(_) => {
                    let text = format!("no answer within {} ms", self.options.schema_timeout_ms);
                    NdbError::with(ErrorCode::REQUEST_TIMEOUT, text)
                }
                DictRequest::Query(_) => self.no_answer(),
            };
            self.dict_answered(now, pending.asker, Err(error));
        }
        // Reads whose table could not even be asked for.
        let orphans: Vec<TableId> = self
            .parked
            .keys()
            .filter(|id| !self.dict.values().any(|p| matches!(p.asker, Asker::Parked(t) if t == **id)))
            .copied()
            .collect();
        for table in orphans {
            self.unpark(now, table, &Err(ErrorCode::CLUSTER_UNAVAILABLE));
        }
    }
}
