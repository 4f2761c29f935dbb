//! Prepared statements of one connection: their ids, parameter types and long data.
//!
//! The client refers to statements by number and sends parameter types only when they change, so both are
//! kept here. Three limits hold: statements per session, statements of the whole server
//! ([`StatementQuota`]), and the bytes of long data a session may have waiting. SEND_LONG_DATA has no
//! answer, so its errors wait for the next EXECUTE.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::ProtocolError;
use super::params::ParameterType;
use crate::error::{ErrorCode, MySqlError};

/// Counts the prepared statements of all sessions.
#[derive(Debug)]
pub(super) struct StatementQuota {
    count: AtomicUsize,
    max: usize,
}

impl StatementQuota {
    /// Room for `max` statements.
    pub(super) fn new(max: usize) -> Self {
        Self { count: AtomicUsize::new(0), max }
    }

    fn reserve(&self) -> bool {
        let more = |count: usize| (count < self.max).then_some(count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    fn release(&self, count: usize) {
        self.count.fetch_sub(count, Ordering::AcqRel);
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

/// One prepared statement.
#[derive(Debug)]
pub(super) struct Slot<S> {
    pub(super) statement: S,
    pub(super) parameters: usize,
    /// The types of the last EXECUTE that sent them.
    pub(super) types: Vec<ParameterType>,
    /// Data sent ahead, by parameter.
    pub(super) long_data: HashMap<u16, Vec<u8>>,
    /// What went wrong while it was sent.
    pub(super) long_data_error: Option<MySqlError>,
}

/// The statements of one connection.
#[derive(Debug)]
pub(super) struct Statements<S> {
    slots: HashMap<u32, Slot<S>>,
    next_id: u32,
    session_max: usize,
    quota: Arc<StatementQuota>,
    long_bytes: usize,
    long_bytes_max: usize,
}

impl<S> Statements<S> {
    pub(super) fn new(session_max: usize, quota: Arc<StatementQuota>, long_bytes_max: usize) -> Self {
        Self { slots: HashMap::new(), next_id: 1, session_max, quota, long_bytes: 0, long_bytes_max }
    }

    /// Reserves a place before the work of preparing is done.
    pub(super) fn reserve(&self) -> Result<Reservation, MySqlError> {
        let full = |max: usize| MySqlError::with(ErrorCode::MaxPreparedStmtCountReached, &[&max]);
        if self.slots.len() >= self.session_max {
            return Err(full(self.session_max));
        }
        if !self.quota.reserve() {
            return Err(full(self.quota.max));
        }
        Ok(Reservation { quota: Some(Arc::clone(&self.quota)) })
    }

    pub(super) fn insert(&mut self, mut place: Reservation, statement: S, parameters: usize) -> u32 {
        place.quota = None;
        while self.next_id == 0 || self.slots.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let slot = Slot {
            statement,
            parameters,
            types: Vec::new(),
            long_data: HashMap::new(),
            long_data_error: None,
        };
        self.slots.insert(id, slot);
        id
    }

    pub(super) fn get(&mut self, id: u32, command: &'static str) -> Result<&mut Slot<S>, ProtocolError> {
        self.slots.get_mut(&id).ok_or(ProtocolError::UnknownStatement { id, command })
    }

    /// Appends to a parameter; errors are kept for EXECUTE.
    pub(super) fn append(&mut self, id: u32, parameter: u16, data: &[u8]) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if usize::from(parameter) >= slot.parameters {
            let text = "Incorrect arguments to mysqld_stmt_send_long_data";
            slot.long_data_error = Some(MySqlError::text(ErrorCode::WrongArguments, text));
        } else if self.long_bytes + data.len() > self.long_bytes_max {
            let text = "Parameter of prepared statement which is set through mysql_send_long_data() is longer \
                        than 'max_allowed_packet' bytes";
            slot.long_data_error = Some(MySqlError::text(ErrorCode::Unknown, text));
        } else if slot.long_data_error.is_none() {
            self.long_bytes += data.len();
            slot.long_data.entry(parameter).or_default().extend_from_slice(data);
        }
    }

    /// Forgets a statement's long data, as EXECUTE and RESET do.
    pub(super) fn forget_long_data(&mut self, id: u32) {
        if let Some(slot) = self.slots.get_mut(&id) {
            self.long_bytes -= slot.long_data.values().map(Vec::len).sum::<usize>();
            slot.long_data = HashMap::new();
            slot.long_data_error = None;
        }
    }

    pub(super) fn close(&mut self, id: u32) {
        self.forget_long_data(id);
        if self.slots.remove(&id).is_some() {
            self.quota.release(1);
        }
    }

    pub(super) fn clear(&mut self) {
        self.quota.release(self.slots.len());
        self.slots.clear();
        self.long_bytes = 0;
    }
}

impl<S> Drop for Statements<S> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A place for a statement that is being prepared; given back when preparing fails.
#[derive(Debug)]
pub(super) struct Reservation {
    quota: Option<Arc<StatementQuota>>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(quota) = &self.quota {
            quota.release(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_hold_and_places_come_back() {
        let quota = Arc::new(StatementQuota::new(3));
        let mut a = Statements::new(2, Arc::clone(&quota), 10);
        let mut b = Statements::new(9, Arc::clone(&quota), 10);
        let first = a.insert(a.reserve().unwrap(), "one", 0);
        a.insert(a.reserve().unwrap(), "two", 0);
        assert_eq!(a.reserve().unwrap_err().code, 1461);
        drop(b.reserve().unwrap());
        b.insert(b.reserve().unwrap(), "three", 0);
        assert_eq!(b.reserve().unwrap_err().code, 1461);
        a.close(first);
        a.close(first);
        assert_eq!(quota.count(), 2);
        drop(a);
        drop(b);
        assert_eq!(quota.count(), 0);
    }

    #[test]
    fn long_data_is_bounded_over_the_session() {
        let mut statements = Statements::new(9, Arc::new(StatementQuota::new(9)), 10);
        let a = statements.insert(statements.reserve().unwrap(), (), 1);
        let b = statements.insert(statements.reserve().unwrap(), (), 1);
        statements.append(a, 0, b"123456");
        statements.append(b, 0, b"12345");
        statements.append(b, 7, b"");
        assert_eq!(statements.get(a, "x").unwrap().long_data[&0], b"123456");
        assert!(statements.get(b, "x").unwrap().long_data_error.is_some());
        statements.forget_long_data(a);
        statements.forget_long_data(b);
        statements.append(b, 0, b"1234567890");
        assert!(statements.get(b, "x").unwrap().long_data_error.is_none());
        statements.append(99, 0, b"nobody");
        assert_eq!(statements.get(99, "x").unwrap_err().code(), 1243);
    }
}
