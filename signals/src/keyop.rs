//! Key operations: the signals between API, TC and LDMs that read and write rows by primary key.
//!
//! ```text
//!   A = API   T = TC   P = primary LDM   B = backup LDMs (a chain of up to three)
//!
//!   a transaction                                  a single self-committing operation
//!   A ->T      TCKEYREQ (op), ... (op, EXECUTE)    A ->T      TCKEYREQ (START|EXECUTE|COMMIT)
//!     T ->P    LQHKEYREQ                             T ->P    LQHKEYREQ (SELF_COMMIT)
//!       P ->B  LQHKEYREQ            prepare            P ->B  LQHKEYREQ (SELF_COMMIT)
//!     T<--- B  LQHKEYCONF                              P<-B   COMMITREQ      B prepared and committed
//!   A<-T       TCKEYCONF                             T<-P     LQHKEYCONF (COMMITTED)
//!   A ->T      TCCOMMITREQ                         A<-T       TCKEYCONF (COMMITTED)
//!     T --->B  COMMITREQ            commit,
//!       P<-B   COMMITREQ            backup first
//!     T<-P     COMMITTEDCONF
//!   A<-T       TCCOMMITCONF
//!     T ->P,B  COMPLETEORD          forget
//! ```
//!
//! The commit is acknowledged when the primary, which commits last, has committed: by then every replica
//! shows the row, so tables whose backups may be read need no further round. Aborts follow the chain from
//! the primary on, behind the prepare they cancel, so they cannot overtake it. A self-committing operation
//! needs no decision by TC: it is the whole transaction, and the last replica to prepare it knows that all
//! have.
//!
//! Rows go straight from the LDM to the API as TRANSID_AI.

use crate::frame::{Body, SignalNumber};
use crate::ids::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What an operation does to its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Read the last committed row, or the transaction's own version; no lock.
    ReadCommitted = 0,
    /// Read with a shared lock held to the transaction's end.
    ReadShared = 1,
    /// Read with an exclusive lock held to the transaction's end.
    ReadExclusive = 2,
    /// Create the row; 630 if it exists.
    Insert = 3,
    /// Change named columns; 626 if it does not exist.
    Update = 4,
    /// Insert, or update if it exists.
    Write = 5,
    /// Remove the row; 626 if it does not exist.
    Delete = 6,
}

impl Operation {
    /// The operation a wire byte names.
    #[inline]
    #[must_use]
    pub fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::ReadCommitted,
            1 => Self::ReadShared,
            2 => Self::ReadExclusive,
            3 => Self::Insert,
            4 => Self::Update,
            5 => Self::Write,
            6 => Self::Delete,
            _ => return None,
        })
    }
    /// Whether it answers with a row: AttrInfo is then a projection (column ids as u16), else column values.
    #[inline]
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::ReadCommitted | Self::ReadShared | Self::ReadExclusive)
    }
    /// Whether it changes the row, on every replica.
    #[inline]
    #[must_use]
    pub fn is_write(self) -> bool {
        !self.is_read()
    }
}

/// The operation byte of a validated body.
macro_rules! operation_of {
    ($type:ident) => {
        impl $type {
            /// The operation.
            #[inline]
            #[must_use]
            pub fn op(&self) -> Operation {
                Operation::from_wire(self.operation).unwrap_or(Operation::ReadCommitted)
            }
            /// Whether all bits of `flag` are set.
            #[inline]
            #[must_use]
            pub fn has(&self, flag: u8) -> bool {
                self.flags & flag == flag
            }
        }
    };
}

/// Flags of [`TcKeyReq`].
pub mod tc_flags {
    /// First operation of its transaction.
    pub const START: u8 = 1;
    /// Last operation of a batch: TC answers with TCKEYCONF when all operations so far are through.
    pub const EXECUTE: u8 = 2;
    /// With EXECUTE: commit if every operation since the start succeeded or may fail.
    pub const COMMIT: u8 = 4;
    /// The operation may fail without aborting the transaction.
    pub const IGNORE_ERROR: u8 = 8;
    /// Do not wait for a lock: fail with 635.
    pub const NOWAIT: u8 = 16;
    /// All of them.
    pub const ALL: u8 = 31;
}

/// API to TC: one operation. Sections: normalised key; AttrInfo or projection.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcKeyReq {
    /// The transaction.
    pub trans: TransId,
    /// The table, and the schema version the client built the request with.
    pub table: TableId,
    /// See `table`.
    pub version: SchemaVersion,
    /// The client's number of the operation, echoed with its row or error.
    pub api_op: u32,
    /// Bytes of AttrInfo.
    pub attr_len: u32,
    /// Bytes of the key.
    pub key_len: u16,
    /// An [`Operation`].
    pub operation: u8,
    /// Bits of [`tc_flags`].
    pub flags: u8,
    /// Zero.
    pub spare: u32,
}
const _: () = assert!(size_of::<TcKeyReq>() == 32);
operation_of!(TcKeyReq);

impl Body for TcKeyReq {
    const NUMBER: SignalNumber = SignalNumber::TcKeyReq;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [self.key_len as usize, self.attr_len as usize]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        if Operation::from_wire(self.operation).is_none() {
            return Some("TCKEYREQ: unknown operation");
        }
        if self.flags & !tc_flags::ALL != 0 || self.flags & 6 == tc_flags::COMMIT {
            return Some("TCKEYREQ: impossible flags");
        }
        limits(self.key_len, self.attr_len, self.trans)
    }
}

fn limits(key_len: u16, attr_len: u32, trans: TransId) -> Option<&'static str> {
    if key_len == 0 || key_len as usize > MAX_NORMAL_KEY_BYTES {
        return Some("key of impossible length");
    }
    if attr_len as usize > MAX_ATTR_BYTES {
        return Some("AttrInfo of impossible length");
    }
    (trans == TransId::NONE).then_some("no transaction id")
}

/// Longest normalised key: weight strings can be longer than what they stand for.
pub const MAX_NORMAL_KEY_BYTES: usize = 4 * crate::table::MAX_KEY_BYTES;
/// Longest AttrInfo: a full row with headers and padding.
pub const MAX_ATTR_BYTES: usize = crate::table::MAX_ROW_BYTES + crate::table::MAX_COLUMNS * 8;

/// TC to API: every operation up to the last EXECUTE is through; those that failed were told of by TCKEYREF
/// before.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcKeyConf {
    /// The transaction.
    pub trans: TransId,
    /// The epoch it committed in, if it did.
    pub epoch: Epoch,
    /// How many operations of the transaction are through so far.
    pub operations: u32,
    /// 1 if the transaction is committed and over.
    pub committed: u32,
}
const _: () = assert!(size_of::<TcKeyConf>() == 24);

/// TC to API: one operation failed and was undone; its batch's TCKEYCONF still comes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcKeyRef {
    /// The transaction.
    pub trans: TransId,
    /// The client's number of the operation.
    pub api_op: u32,
    /// [`crate::ErrorCode`].
    pub code: u32,
}

/// API to TC: commit the transaction.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcCommitReq {
    /// The transaction.
    pub trans: TransId,
}

/// TC to API: the transaction is committed and over.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcCommitConf {
    /// The transaction.
    pub trans: TransId,
    /// The epoch it committed in.
    pub epoch: Epoch,
}

/// API to TC: roll back.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcRollbackReq {
    /// The transaction.
    pub trans: TransId,
    /// Operations to keep, counted from the start; [`ROLLBACK_ALL`] ends the transaction.
    pub keep: u32,
    /// Zero.
    pub spare: u32,
}
/// [`TcRollbackReq::keep`] for a rollback of the whole transaction.
pub const ROLLBACK_ALL: u32 = u32::MAX;

/// TC to API: rolled back as asked; with [`ROLLBACK_ALL`] the transaction is over.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcRollbackConf {
    /// The transaction.
    pub trans: TransId,
    /// As asked.
    pub keep: u32,
    /// Zero.
    pub spare: u32,
}

/// TC to API: the transaction is rolled back and over, by TC's own decision.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TcRollbackRep {
    /// The transaction.
    pub trans: TransId,
    /// Why: an [`crate::ErrorCode`].
    pub code: u32,
    /// The operation that caused it, or [`NO_OPERATION`].
    pub api_op: u32,
}
/// No operation in particular.
pub const NO_OPERATION: u32 = u32::MAX;

/// LDM to API: the row an operation asked for. Section: AttrInfo in projection order.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TransIdAi {
    /// The client's number of the operation.
    pub api_op: u32,
    /// Bytes of AttrInfo.
    pub length: u32,
}

impl Body for TransIdAi {
    const NUMBER: SignalNumber = SignalNumber::TransIdAi;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [self.length as usize, 0]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        (self.length as usize > MAX_ATTR_BYTES).then_some("TRANSID_AI of impossible length")
    }
}

/// Flags of [`LqhKeyReq`].
pub mod lqh_flags {
    /// The operation is its whole transaction: commit as soon as every replica has prepared.
    pub const SELF_COMMIT: u8 = 1;
    /// Do not wait for a lock: fail with 635.
    pub const NOWAIT: u8 = 2;
    /// Other operations of the transaction are on their way: some may wait for the same row.
    pub const BATCHED: u8 = 4;
    /// All of them.
    pub const ALL: u8 = 7;
}

/// TC to primary, then along the chain: prepare an operation. Sections: normalised key; AttrInfo or
/// projection.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct LqhKeyReq {
    /// The transaction.
    pub trans: TransId,
    /// The table, and the schema version of the request.
    pub table: TableId,
    /// See `table`.
    pub version: SchemaVersion,
    /// The coordinator, and its operation record.
    pub tc: BlockRef,
    /// See `tc`.
    pub tc_op: u32,
    /// Who gets the row, and the client's number of the operation.
    pub api: BlockRef,
    /// See `api`.
    pub api_op: u32,
    /// The chain of LDMs, the primary first; unused places are [`BlockRef::NONE`].
    pub replicas: [BlockRef; MAX_REPLICAS],
    /// The operation records of the replicas before `position`.
    pub ops: [u32; MAX_REPLICAS],
    /// Bytes of AttrInfo.
    pub attr_len: u32,
    /// Bytes of the key.
    pub key_len: u16,
    /// The partition.
    pub fragment: FragmentId,
    /// An [`Operation`]. A backup gets what the primary resolved a WRITE to.
    pub operation: u8,
    /// Bits of [`lqh_flags`].
    pub flags: u8,
    /// The receiver's place in the chain.
    pub position: u8,
    /// Replicas in the chain.
    pub count: u8,
    /// Which process has the client's address, as TC knows it; see [`session_tag`]. An LDM sends the row to
    /// no other.
    pub session: u32,
}
const _: () = assert!(size_of::<LqhKeyReq>() == 80);

/// Tells the processes apart that have a client's address one after the other, by the incarnation they are
/// linked with (nanoseconds since 1970): its milliseconds.
#[must_use]
pub const fn session_tag(incarnation: u64) -> u32 {
    (incarnation >> 20) as u32
}
operation_of!(LqhKeyReq);

impl Body for LqhKeyReq {
    const NUMBER: SignalNumber = SignalNumber::LqhKeyReq;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [self.key_len as usize, self.attr_len as usize]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        if Operation::from_wire(self.operation).is_none() || self.flags & !lqh_flags::ALL != 0 {
            return Some("LQHKEYREQ: unknown operation or flags");
        }
        chain(self.position, self.count).or_else(|| limits(self.key_len, self.attr_len, self.trans))
    }
}

#[inline]
fn chain(position: u8, count: u8) -> Option<&'static str> {
    (count == 0 || count as usize > MAX_REPLICAS || position >= count).then_some("impossible replica chain")
}

/// Last LDM (or the primary, for reads and self-committed operations) to TC: prepared, or committed.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct LqhKeyConf {
    /// The transaction.
    pub trans: TransId,
    /// The epoch of a self-committed operation.
    pub epoch: Epoch,
    /// TC's operation record.
    pub tc_op: u32,
    /// 1 if the operation is committed and forgotten everywhere.
    pub committed: u32,
    /// The operation records of the replicas.
    pub ops: [u32; MAX_REPLICAS],
}
const _: () = assert!(size_of::<LqhKeyConf>() == 40);

/// Up the chain to TC: the operation failed. A replica that refuses tells the one before it, which undoes
/// its part and tells the next; so when TC hears of it, it is prepared nowhere.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct LqhKeyRef {
    /// The transaction.
    pub trans: TransId,
    /// TC's operation record.
    pub tc_op: u32,
    /// [`crate::ErrorCode`].
    pub code: u32,
    /// The receiving replica's operation record; [`NO_OPERATION`] to TC.
    pub op: u32,
    /// Zero.
    pub spare: u32,
}

/// TC to the last replica, then up the chain to the primary: commit an operation.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CommitReq {
    /// The transaction.
    pub trans: TransId,
    /// The epoch it commits in.
    pub epoch: Epoch,
    /// The coordinator, and its operation record.
    pub tc: BlockRef,
    /// See `tc`.
    pub tc_op: u32,
    /// The chain, the primary first.
    pub replicas: [BlockRef; MAX_REPLICAS],
    /// The replicas' operation records.
    pub ops: [u32; MAX_REPLICAS],
    /// The receiver's place in the chain.
    pub position: u8,
    /// Replicas in the chain.
    pub count: u8,
    /// 1 if this is a self-committed operation: forget it at once.
    pub self_commit: u8,
    /// Zero.
    pub spare: [u8; 5],
}
const _: () = assert!(size_of::<CommitReq>() == 64);

impl Body for CommitReq {
    const NUMBER: SignalNumber = SignalNumber::CommitReq;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        chain(self.position, self.count)
    }
}

/// Primary LDM to TC: the operation is committed on every replica.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CommittedConf {
    /// The transaction.
    pub trans: TransId,
    /// TC's operation record.
    pub tc_op: u32,
    /// Zero.
    pub spare: u32,
}

/// TC to every replica: the transaction is committed everywhere, forget the operation.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CompleteOrd {
    /// The transaction.
    pub trans: TransId,
    /// The receiver's operation record.
    pub op: u32,
    /// Zero.
    pub spare: u32,
}

/// TC to the primary, then down the chain: abort an operation, whatever its state.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AbortReq {
    /// The transaction.
    pub trans: TransId,
    /// The coordinator, and its operation record.
    pub tc: BlockRef,
    /// See `tc`.
    pub tc_op: u32,
    /// The chain, the primary first.
    pub replicas: [BlockRef; MAX_REPLICAS],
    /// The replicas' operation records; [`NO_OPERATION`] where TC does not know them yet. The primary's may
    /// be out of date, if the operation waited there.
    pub ops: [u32; MAX_REPLICAS],
    /// The receiver's place in the chain.
    pub position: u8,
    /// Replicas in the chain.
    pub count: u8,
    /// Zero.
    pub spare: [u8; 6],
}
const _: () = assert!(size_of::<AbortReq>() == 56);

impl Body for AbortReq {
    const NUMBER: SignalNumber = SignalNumber::AbortReq;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [0, 0]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        chain(self.position, self.count)
    }
}

/// LDM to TC: the operation is undone on every replica; or, for a self-committing operation that could no
/// longer be stopped, `too_late`: its LQHKEYCONF or LQHKEYREF comes or came.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AbortedConf {
    /// The transaction.
    pub trans: TransId,
    /// TC's operation record.
    pub tc_op: u32,
    /// 1 if the operation is on its way to commit.
    pub too_late: u32,
}

/// API to LDM: committed read, outside any transaction. Sections: normalised key; projection.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ReadRowReq {
    /// The table, and the schema version of the request.
    pub table: TableId,
    /// See `table`.
    pub version: SchemaVersion,
    /// The client's number of the operation.
    pub api_op: u32,
    /// The partition.
    pub fragment: FragmentId,
    /// Bytes of the key.
    pub key_len: u16,
    /// Bytes of the projection.
    pub attr_len: u32,
    /// Zero.
    pub spare: u32,
}
const _: () = assert!(size_of::<ReadRowReq>() == 24);

impl Body for ReadRowReq {
    const NUMBER: SignalNumber = SignalNumber::ReadRowReq;
    #[inline]
    fn sections(&self) -> [usize; 2] {
        [self.key_len as usize, self.attr_len as usize]
    }
    #[inline]
    fn invalid(&self) -> Option<&'static str> {
        limits(self.key_len, self.attr_len, TransId(1))
    }
}

/// LDM to API: no row for this read.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ReadRowRef {
    /// The client's number of the operation.
    pub api_op: u32,
    /// [`crate::ErrorCode`].
    pub code: u32,
}

/// Bodies without sections or constraints.
macro_rules! plain_bodies {
    ($($type:ident)*) => {$(
        impl Body for $type {
            const NUMBER: SignalNumber = SignalNumber::$type;
            #[inline]
            fn sections(&self) -> [usize; 2] {
                [0, 0]
            }
            #[inline]
            fn invalid(&self) -> Option<&'static str> {
                None
            }
        }
    )*};
}
plain_bodies! {
    TcKeyConf TcKeyRef TcCommitReq TcCommitConf TcRollbackReq TcRollbackConf TcRollbackRep
    LqhKeyConf LqhKeyRef CommittedConf CompleteOrd AbortedConf ReadRowRef
}

/// The column ids of a projection section. Frames are aligned, so they are viewed where they lie; `scratch`
/// is for the case that they are not.
#[inline]
pub fn projection<'a>(section: &'a [u8], scratch: &'a mut Vec<u16>) -> &'a [u16] {
    if let Ok(ids) = <[u16]>::ref_from_bytes(section) {
        return ids;
    }
    scratch.clear();
    scratch.extend(section.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)));
    scratch
}
