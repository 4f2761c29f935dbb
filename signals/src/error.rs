//! Error codes: NDB's numbers, texts and classes, in one table.
//!
//! A code crosses the wire as 16 bits; its meaning is looked up here by whoever shows it or decides about it.
//! Whether an operation may be retried is a property of the code's class, never of a list kept by a client.
//! Numbers below 5000 are NDB's where NDB has one for the case.

use bincode::{Decode, Encode};

/// An NDB error code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct ErrorCode(pub u16);

/// What kind of failure a code is, and so what a client should do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// The row is not there.
    NoDataFound,
    /// A constraint forbids it.
    ConstraintViolation,
    /// Resources are short now; retry.
    TemporaryResource,
    /// A node failed or left; retry.
    NodeRecovery,
    /// The cluster cannot keep up; retry later.
    Overload,
    /// Waited for a lock too long, or in vain; retry.
    TimeoutExpired,
    /// The node is shutting down; retry elsewhere.
    NodeShutdown,
    /// Nobody knows whether it happened.
    UnknownResult,
    /// Memory or disk is full.
    InsufficientSpace,
    /// The schema forbids it or has changed.
    SchemaError,
    /// A schema object exists already.
    SchemaObjectExists,
    /// The application did something it may not.
    ApplicationError,
    /// Not supported.
    FunctionNotImplemented,
    /// A fault of ours.
    InternalError,
}

impl ErrorClass {
    /// Whether the same transaction may succeed when tried again.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        match self {
            Self::TemporaryResource
            | Self::NodeRecovery
            | Self::Overload
            | Self::TimeoutExpired
            | Self::NodeShutdown => true,
            Self::NoDataFound
            | Self::ConstraintViolation
            | Self::UnknownResult
            | Self::InsufficientSpace
            | Self::SchemaError
            | Self::SchemaObjectExists
            | Self::ApplicationError
            | Self::FunctionNotImplemented
            | Self::InternalError => false,
        }
    }
}

macro_rules! error_codes {
    ($($code:literal $name:ident $class:ident $text:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $text] pub const $name: Self = Self($code);)*
        }
        const TABLE: &[(u16, ErrorClass, &str)] = &[$(($code, ErrorClass::$class, $text)),*];
    };
}

// Sorted by number; a test insists.
error_codes! {
    218 OUT_OF_LONG_MESSAGE_BUFFER TemporaryResource "Out of long message buffer";
    219 SEND_BUFFER_OVERLOAD TemporaryResource "Send buffer of a node-to-node link is full";
    221 TOO_MANY_FIRED_TRIGGERS TemporaryResource "Too many concurrently fired triggers";
    233 OUT_OF_OPERATION_RECORDS TemporaryResource "Out of operation records in the transaction coordinator (increase MaxNoOfConcurrentOperations)";
    234 OUT_OF_LOCAL_OPERATION_RECORDS TemporaryResource "Out of operation records in the data manager (increase MaxNoOfConcurrentOperations)";
    237 COMMIT_TIMEOUT TimeoutExpired "Transaction had timed out when trying to commit it";
    241 INVALID_SCHEMA_VERSION SchemaError "Invalid schema object version; fetch the table definition again";
    245 TOO_MANY_SCANS TemporaryResource "Too many active scans";
    261 TOO_MANY_OPERATIONS ApplicationError "Too many operations in one transaction (see MaxDMLOperationsPerTransaction)";
    266 LOCK_WAIT_TIMEOUT TimeoutExpired "Time-out in NDB, probably caused by deadlock";
    270 NODE_SHUTDOWN_ABORT NodeShutdown "Transaction aborted due to node shutdown";
    274 INACTIVE_TIMEOUT TimeoutExpired "Transaction was idle longer than TransactionInactiveTimeout";
    281 CLUSTER_SHUTDOWN ApplicationError "Operation not allowed due to cluster shutdown in progress";
    283 TABLE_BEING_DROPPED SchemaError "Table is being dropped";
    284 TABLE_NOT_DEFINED SchemaError "Table not defined in transaction coordinator";
    286 NODE_FAILURE_ABORT NodeRecovery "Node failure caused abort of transaction";
    289 OUT_OF_TRANSACTION_BUFFER TemporaryResource "Out of transaction buffer memory in TC (increase TransactionBufferMemory)";
    410 REDO_LOG_FULL Overload "REDO log files overloaded (decrease TimeBetweenLocalCheckpoints or increase NoOfFragmentLogFiles)";
    499 SCAN_LOST_NODE NodeRecovery "Scan take over error, restart scan transaction";
    626 TUPLE_NOT_FOUND NoDataFound "Tuple did not exist";
    630 TUPLE_EXISTS ConstraintViolation "Tuple already existed when attempting to insert";
    631 SCAN_TOO_OLD NodeRecovery "Scan take over error, restart scan transaction";
    633 INDEX_FULL InsufficientSpace "Table fragment hash index has reached maximum possible size (use more partitions)";
    635 LOCK_NOT_AVAILABLE TimeoutExpired "Lock already taken, not waiting";
    701 DICT_BUSY Overload "System busy with other schema operation";
    707 NO_MORE_TABLES SchemaError "No more table metadata records (increase MaxNoOfTables)";
    708 NO_MORE_ATTRIBUTES SchemaError "No more attribute metadata records (increase MaxNoOfAttributes)";
    709 NO_SUCH_TABLE SchemaError "No such table existed";
    711 NODE_RESTART_NO_DDL Overload "System busy with node restart, schema operations not allowed";
    721 TABLE_EXISTS SchemaObjectExists "Schema object with given name already exists";
    723 TABLE_NOT_FOUND SchemaError "No such table existed in the dictionary";
    738 RECORD_TOO_BIG SchemaError "Record too big";
    739 BAD_PRIMARY_KEY SchemaError "Unsupported primary key";
    740 NULLABLE_PRIMARY_KEY SchemaError "Nullable primary key not supported";
    787 SCHEMA_TRANS_ABORTED TemporaryResource "Schema transaction aborted";
    793 INVALID_TABLE_DEFINITION SchemaError "Invalid table definition";
    797 FULLY_REPLICATED_FRAGMENTS FunctionNotImplemented "Wrong fragment count for fully replicated table";
    827 DATA_MEMORY_FULL InsufficientSpace "Out of memory in Ndb Kernel, table data (increase DataMemory)";
    839 NULL_IN_NOT_NULL ConstraintViolation "Illegal null attribute";
    850 MALFORMED_ATTRIBUTES ApplicationError "Too long, too short or unknown attribute in an operation";
    873 OUT_OF_ATTRINFO TemporaryResource "Out of transaction memory in local data manager";
    889 FRAGMENT_FULL InsufficientSpace "Table fragment fixed data reference has reached maximum possible value (use more partitions)";
    899 ROWID_ALLOCATED TemporaryResource "Rowid already allocated";
    1204 DISTRIBUTION_CHANGED NodeRecovery "Temporary failure, distribution changed";
    1218 SEND_BUFFERS_OVERLOADED TemporaryResource "Send Buffers overloaded in NDB kernel";
    1226 TABLE_DROPPING SchemaError "Table is being dropped in the local data manager";
    1701 NODE_ALREADY_RESERVED ApplicationError "Node already reserved";
    1703 NODE_FAILURE_HANDLING NodeRecovery "Node failure handling not completed";
    1704 NODE_TYPE_MISMATCH ApplicationError "Node type mismatch";
    4000 MEMORY_ALLOCATION_API InternalError "Memory allocation error in the client";
    4004 UNKNOWN_COLUMN ApplicationError "Attribute name or id not found in the table";
    4006 OUT_OF_TRANSACTION_OBJECTS Overload "Connect failure - out of connection objects (increase MaxNoOfConcurrentTransactions)";
    4007 SEND_FAILED NodeRecovery "Send to data node failed";
    4008 RECEIVE_TIMEOUT UnknownResult "Receive from NDB failed: no answer in time, the outcome is unknown";
    4009 CLUSTER_FAILURE UnknownResult "Cluster Failure: no data node can be reached";
    4010 NODE_FAILED_NO_COMMIT NodeRecovery "Node failure caused abort of transaction";
    4012 REQUEST_TIMEOUT UnknownResult "Request timed out, waiting for answer; the outcome is unknown";
    4013 NODE_FAILED_UNKNOWN UnknownResult "A node failed during commit; the outcome is unknown";
    4035 CLUSTER_UNAVAILABLE NodeRecovery "Cluster temporary unavailable";
    // NDB calls 4115 temporary. It is committed: who tries again on that word does it twice.
    4115 COMMITTED_READS_LOST UnknownResult "Transaction was committed but not all rows it read were received, because a node failed";
    4118 PARAMETER_ERROR ApplicationError "Parameter error in API call";
    4200 STATUS_ERROR ApplicationError "Status error: the call does not fit the object's state";
    4202 KEY_NOT_UPDATABLE ApplicationError "Updating a primary key column is not allowed";
    4207 KEY_TOO_LONG ApplicationError "Key size is limited to 4092 bytes";
    4209 VALUE_LENGTH ApplicationError "Length parameter does not fit the column";
    4233 TRANSACTION_HAS_FAILED ApplicationError "Calling execute on a transaction that has ended";
    4350 TRANSACTION_ALREADY_ABORTED ApplicationError "Transaction already aborted";
    4718 NO_SUCH_DATABASE SchemaError "No such database";
    4719 DATABASE_EXISTS SchemaObjectExists "Database exists already";
    4720 DATABASE_NOT_EMPTY SchemaError "Database still has tables";
    4900 PROTOCOL_VERSION ApplicationError "Protocol version not supported by the peer";
    4901 MALFORMED_MESSAGE InternalError "Malformed message from the peer";
    4902 NODE_NOT_STARTED NodeRecovery "Data node has not finished starting";
    4903 DEADLOCK TimeoutExpired "Transaction was chosen as the victim of a deadlock and rolled back; retry it";
    5000 MGM_NO_SUCH_NODE ApplicationError "No such node in the configuration";
    5001 MGM_NODE_NOT_CONNECTED ApplicationError "Node is not connected to the management server";
    5002 MGM_NO_FREE_NODE_ID ApplicationError "No free node id of that type for this host";
    5003 MGM_WRONG_NODE_TYPE ApplicationError "Node id belongs to a node of another type";
    5004 MGM_NODE_ID_TAKEN ApplicationError "Node id is in use by a connected node";
    5005 MGM_UNREACHABLE NodeRecovery "No management server can be reached";
    5006 MGM_SYNTAX ApplicationError "Unknown or malformed management command";
    5007 MGM_REFUSED ApplicationError "The management server refused the command";
    5008 MGM_INCOMPLETE ApplicationError "The cluster would be incomplete without that node";
    5009 MGM_NO_ANSWER UnknownResult "The node did not answer in time";
    5010 MGM_LINK_LOST UnknownResult "The management link was lost before the answer came";
    5011 MGM_NOT_AVAILABLE FunctionNotImplemented "Not available yet";
    5012 MGM_CONFIG ApplicationError "The configuration cannot be used";
}

impl ErrorCode {
    /// Success.
    pub const NONE: Self = Self(0);

    fn entry(self) -> Option<&'static (u16, ErrorClass, &'static str)> {
        TABLE.binary_search_by_key(&self.0, |e| e.0).ok().map(|at| &TABLE[at])
    }

    /// The code's class; unknown codes (a newer peer's) count as internal errors.
    #[must_use]
    pub fn class(self) -> ErrorClass {
        self.entry().map_or(ErrorClass::InternalError, |e| e.1)
    }

    /// The code's text.
    #[must_use]
    pub fn message(self) -> &'static str {
        self.entry().map_or("Unknown error code", |e| e.2)
    }

    /// Whether the same transaction may succeed when tried again.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        self.class().is_temporary()
    }

    /// All known codes, for `nucdb` tools and documentation.
    pub fn all() -> impl Iterator<Item = (Self, ErrorClass, &'static str)> {
        TABLE.iter().map(|e| (Self(e.0), e.1, e.2))
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.0, self.message())
    }
}
impl std::fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ErrorCode({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_classes_decide_retry() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0), "the table is searched by halves");
        assert!(ErrorCode::LOCK_WAIT_TIMEOUT.is_temporary());
        assert!(ErrorCode::DEADLOCK.is_temporary());
        assert!(!ErrorCode::TUPLE_EXISTS.is_temporary());
        assert!(
            !ErrorCode::NODE_FAILED_UNKNOWN.is_temporary(),
            "an unknown outcome must not be retried blindly"
        );
        assert_eq!(ErrorCode(60_000).class(), ErrorClass::InternalError);
    }
}
