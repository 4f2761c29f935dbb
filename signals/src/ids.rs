//! The names of things: nodes, blocks, transactions, tables, fragments.
//!
//! All are newtypes, so that a fragment id cannot be passed where a table id is meant. Those that travel in
//! data plane signals are plain little-endian integers on the wire.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A node of the cluster: 1 to 255; data nodes 1 to 144 (NDB's ranges). 0 means "none".
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Encode,
    Decode,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
)]
#[repr(transparent)]
pub struct NodeId(pub u8);

/// Highest id a data node may have.
pub const MAX_DATA_NODE_ID: u8 = 144;
/// Most replicas a fragment can have.
pub const MAX_REPLICAS: usize = 4;

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
impl std::fmt::Debug for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// The blocks of the kernel, plus the peers that are no data nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum BlockNumber {
    /// Configuration, counters, orders from the management server; one per node.
    Cmvmi = 1,
    /// Membership and heartbeats; one per node.
    Qmgr = 2,
    /// Start phases; one per node.
    Ndbcntr = 3,
    /// Schema; one per node, the master's decides.
    Dbdict = 4,
    /// Fragment placement and epochs; one per node, the master's decides.
    Dbdih = 5,
    /// Transaction coordinators.
    Dbtc = 6,
    /// Local data managers: hash index, locks, rows and ordered index of the fragments they own.
    Dblqh = 7,
    /// A client session of an API node; the instance is the link's number.
    Api = 8,
    /// A management server.
    Mgm = 9,
}

impl BlockNumber {
    /// The block a wire byte names, if any.
    #[must_use]
    pub fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Cmvmi,
            2 => Self::Qmgr,
            3 => Self::Ndbcntr,
            4 => Self::Dbdict,
            5 => Self::Dbdih,
            6 => Self::Dbtc,
            7 => Self::Dblqh,
            8 => Self::Api,
            9 => Self::Mgm,
            _ => return None,
        })
    }
}

/// The address of a block instance: node, block and instance number packed into 32 bits. 0 means "nobody".
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Encode,
    Decode,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
)]
#[repr(transparent)]
pub struct BlockRef(pub u32);

impl BlockRef {
    /// Nobody: the end of a replica chain, an unset address.
    pub const NONE: Self = Self(0);

    /// The address of `instance` of `block` on `node`.
    #[must_use]
    pub const fn new(node: NodeId, block: BlockNumber, instance: u16) -> Self {
        Self((node.0 as u32) << 24 | (block as u32) << 16 | instance as u32)
    }
    /// The node part.
    #[must_use]
    pub const fn node(self) -> NodeId {
        NodeId((self.0 >> 24) as u8)
    }
    /// The block part as it stands on the wire; see [`Self::block`].
    #[must_use]
    pub const fn block_byte(self) -> u8 {
        (self.0 >> 16) as u8
    }
    /// The block part, if it names a block.
    #[must_use]
    pub fn block(self) -> Option<BlockNumber> {
        BlockNumber::from_wire(self.block_byte())
    }
    /// The instance part.
    #[must_use]
    pub const fn instance(self) -> u16 {
        self.0 as u16
    }
    /// Whether this is nobody's address.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl std::fmt::Debug for BlockRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.block() {
            Some(block) => write!(f, "{block:?}({}).{:?}", self.instance(), self.node()),
            None => write!(f, "BlockRef({:#x})", self.0),
        }
    }
}

/// A transaction: the API node, its link and a counter of that link; unique while the API node keeps its id.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Encode,
    Decode,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
)]
#[repr(transparent)]
pub struct TransId(pub u64);

impl TransId {
    /// No transaction (committed reads outside any).
    pub const NONE: Self = Self(0);

    /// The `counter`-th transaction of `link` of API node `node`; the counter wraps at 40 bits.
    #[must_use]
    pub const fn new(node: NodeId, link: u16, counter: u64) -> Self {
        Self((node.0 as u64) << 56 | (link as u64) << 40 | (counter & 0xff_ffff_ffff))
    }
    /// The API node and link that started the transaction.
    #[must_use]
    pub const fn client(self) -> BlockRef {
        BlockRef::new(NodeId((self.0 >> 56) as u8), BlockNumber::Api, (self.0 >> 40) as u16)
    }
}

macro_rules! integer_id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Encode, Decode)]
        #[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

integer_id!(
    /// A table-like object of the dictionary; at most [`crate::table::MAX_TABLES`].
    TableId(u32)
);
integer_id!(
    /// A table's schema version: grows with every create of the same id and every change.
    SchemaVersion(u32)
);
integer_id!(
    /// A partition of a table; its replicas share the number.
    FragmentId(u16)
);
integer_id!(
    /// An epoch: the durable unit (GCI) in the high half, the micro-epoch in the low half.
    Epoch(u64)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_refs_keep_their_parts() {
        let r = BlockRef::new(NodeId(144), BlockNumber::Dblqh, 331);
        assert_eq!((r.node(), r.block(), r.instance()), (NodeId(144), Some(BlockNumber::Dblqh), 331));
        assert!(BlockRef::NONE.is_none() && BlockRef::NONE.block().is_none());
        for byte in 0..=255u8 {
            if let Some(block) = BlockNumber::from_wire(byte) {
                assert_eq!(block as u8, byte);
            }
        }
    }

    #[test]
    fn a_transaction_names_its_client() {
        let t = TransId::new(NodeId(7), 3, 1 << 41 | 5);
        assert_eq!(t.client(), BlockRef::new(NodeId(7), BlockNumber::Api, 3));
        assert_eq!(t.0 & 0xff_ffff_ffff, 5);
    }
}
