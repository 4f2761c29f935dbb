//! Planted: faults built in on purpose, to prove that the simulator's checkers bite.
//!
//! Each names a mistake a protocol like this is prone to. Where the mistake would be made, the code asks
//! [`Planted::has`]; without the cargo feature `simulation`, which only the simulator's crate asks for, the
//! answer is a constant and nothing is left of the question. With the feature, nodes have no fault unless
//! whoever makes them says so.

/// A planted fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// TC tells the client that the commit is done when it has only been ordered.
    CommitAckedEarly,
    /// Backups commit when they are told to forget, after the client was told.
    BackupCommitsLate,
    /// A lone write is confirmed by its primary before a backup has it.
    LoneWriteAckedEarly,
    /// An abort leaves locks of reads behind.
    LockLeftOnAbort,
    /// An abort does not reach the backups.
    AbortSkipsBackups,
    /// An abort keeps what an update has changed.
    AbortKeepsUpdate,
    /// Reads for update lock nothing.
    ReadLocksNothing,
    /// Lock-free reads see changes that are not committed.
    DirtyRead,
    /// A backup keeps rows whose delete was committed.
    BackupKeepsDeleted,
    /// An insert overwrites a row that exists.
    InsertOverwrites,
    /// A scan loses a row between two batches.
    ScanLosesRow,
    /// Going back to a savepoint keeps one operation too many.
    SavepointKeepsOne,
    /// A transaction whose commit takes long is reported as rolled back.
    SlowCommitReportedAborted,
    /// The client library reports a commit whose coordinator is lost as rolled back.
    UnknownReportedAborted,
    /// A dead client's transactions stay.
    DeadClientStays,
    /// Silent data nodes are never found out.
    HeartbeatsNeverExpire,
    /// A data node that lost a peer goes on serving.
    ServesAlone,
    /// One data node forgets a schema change it has agreed to.
    SchemaChangeForgotten,
    /// The memory of dropped tables is lost.
    DroppedMemoryLost,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::CommitAckedEarly,
        Self::BackupCommitsLate,
        Self::LoneWriteAckedEarly,
        Self::LockLeftOnAbort,
        Self::AbortSkipsBackups,
        Self::AbortKeepsUpdate,
        Self::ReadLocksNothing,
        Self::DirtyRead,
        Self::BackupKeepsDeleted,
        Self::InsertOverwrites,
        Self::ScanLosesRow,
        Self::SavepointKeepsOne,
        Self::SlowCommitReportedAborted,
        Self::UnknownReportedAborted,
        Self::DeadClientStays,
        Self::HeartbeatsNeverExpire,
        Self::ServesAlone,
        Self::SchemaChangeForgotten,
        Self::DroppedMemoryLost,
    ];
}

/// The fault a node has, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Planted(Option<Fault>);

impl Planted {
    /// No fault.
    pub const NONE: Self = Self(None);

    /// This fault.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        Self(Some(fault))
    }

    /// Whether `fault` is to be made here.
    #[inline(always)]
    #[must_use]
    pub fn has(self, fault: Fault) -> bool {
        cfg!(feature = "simulation") && self.0 == Some(fault)
    }
}
