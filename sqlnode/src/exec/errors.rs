//! Errors of the cluster as MySQL's errors: one table, so that every statement maps a code the same way.

use ndbapi::NdbError;
use signals::ErrorCode as Ndb;

use crate::value::{ErrorCode, MySqlError};

/// The name the cluster goes under in messages.
const ENGINE: &str = "NDBCLUSTER";

/// What a client is told about an error of the cluster; `table` is the table's name for messages.
pub fn to_mysql(error: &NdbError, table: &str) -> MySqlError {
    let code = error.code();
    match code {
        Ndb::TUPLE_NOT_FOUND => MySqlError::with(ErrorCode::KeyNotFound, &[&table]),
        Ndb::TUPLE_EXISTS => MySqlError::with(ErrorCode::DupEntry, &[&"", &format!("{table}.PRIMARY")]),
        Ndb::LOCK_WAIT_TIMEOUT | Ndb::INACTIVE_TIMEOUT | Ndb::COMMIT_TIMEOUT | Ndb::LOCK_NOT_AVAILABLE => {
            MySqlError::new(ErrorCode::LockWaitTimeout)
        }
        Ndb::DEADLOCK => MySqlError::new(ErrorCode::LockDeadlock),
        Ndb::DATA_MEMORY_FULL | Ndb::INDEX_FULL | Ndb::FRAGMENT_FULL => {
            MySqlError::with(ErrorCode::RecordFileFull, &[&table])
        }
        Ndb::RECORD_TOO_BIG => row_too_big(),
        Ndb::INVALID_SCHEMA_VERSION | Ndb::TABLE_NOT_DEFINED => MySqlError::new(ErrorCode::TableDefChanged),
        Ndb::NO_SUCH_TABLE | Ndb::TABLE_NOT_FOUND | Ndb::TABLE_BEING_DROPPED | Ndb::TABLE_DROPPING => {
            let (schema, name) = table.split_once('.').unwrap_or(("", table));
            MySqlError::no_such_table(schema, name)
        }
        Ndb::TABLE_EXISTS => MySqlError::with(ErrorCode::TableExists, &[&table]),
        Ndb::CLUSTER_FAILURE | Ndb::CLUSTER_SHUTDOWN | Ndb::CLUSTER_UNAVAILABLE | Ndb::MGM_UNREACHABLE => {
            let text = format!("Could not connect to storage engine: {error}");
            MySqlError::text(ErrorCode::NoStorageConnection, text)
        }
        _ if error.unknown_outcome() => {
            let text = describe(error);
            let text = format!(
                "Got error {} '{text}; it is unknown whether it was committed' from {ENGINE}",
                code.0
            );
            MySqlError::text(ErrorCode::GetErrmsg, text)
        }
        _ if error.retryable() => {
            MySqlError::with(ErrorCode::GetTemporaryErrmsg, &[&code.0, &describe(error), &ENGINE])
        }
        _ => MySqlError::with(ErrorCode::GetErrmsg, &[&code.0, &describe(error), &ENGINE]),
    }
}

/// 1118, as MySQL's own engines answer a row that turns out too long when it is written. MySQL's usual text
/// for it advises TEXT and BLOB, which do not help here: they live in the row.
pub fn row_too_big() -> MySqlError {
    let max = signals::table::MAX_ROW_BYTES;
    let text = format!(
        "Row size too large. The values of a row, TEXT and BLOB columns included, may have {max} bytes together; \
         the row was not written"
    );
    MySqlError::text(ErrorCode::TooBigRowsize, text)
}

fn describe(error: &NdbError) -> String {
    match error.detail() {
        "" => error.code().message().to_owned(),
        detail => format!("{} ({detail})", error.code().message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_maps_by_its_class() {
        let code = |ndb: Ndb| to_mysql(&NdbError::new(ndb), "db.t").code;
        assert_eq!(code(Ndb::LOCK_WAIT_TIMEOUT), 1205);
        let deadlock = to_mysql(&NdbError::new(Ndb::DEADLOCK), "db.t");
        assert_eq!((deadlock.code, deadlock.sqlstate), (1213, "40001"));
        assert_eq!(code(Ndb::TUPLE_EXISTS), 1062);
        assert_eq!(code(Ndb::DATA_MEMORY_FULL), 1114);
        assert_eq!(code(Ndb::NODE_FAILURE_ABORT), 1297);
        assert_eq!(code(Ndb::TOO_MANY_OPERATIONS), 1296);
        assert_eq!(code(Ndb::CLUSTER_FAILURE), 157);
        assert_eq!(code(Ndb::RECORD_TOO_BIG), 1118);
        let unknown = to_mysql(&NdbError::new(Ndb::RECEIVE_TIMEOUT), "db.t");
        assert!(unknown.code == 1296 && unknown.message.contains("unknown"), "{}", unknown.message);
        for (ndb, ..) in Ndb::all() {
            assert!(code(ndb) > 0);
        }
    }
}
