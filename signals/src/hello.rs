//! Hello: the first bytes on a data plane link, before any signal.
//!
//! The connecting side sends [`Hello`], the accepting side answers [`HelloAck`]; both are fixed-size, so
//! garbage is noticed at the first bytes and nothing is read beyond them. Version N speaks with N-1; the
//! ack carries the version both use.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a hello.
pub const MAGIC: [u8; 8] = *b"NUCDB\r\n\0";

/// The protocol's versions; their comments are its history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum ProtocolVersion {
    /// The first.
    V1 = 1,
}

/// The version this build speaks.
pub const CURRENT: ProtocolVersion = ProtocolVersion::V1;
/// The oldest version this build accepts.
pub const OLDEST: ProtocolVersion = ProtocolVersion::V1;

/// The connecting side's introduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The sender's newest version.
    pub version: u32,
    /// Hash of the cluster's name and creation, so that nodes of two clusters do not mix.
    pub cluster: u32,
    /// Who connects.
    pub node: u8,
    /// Who is meant.
    pub target_node: u8,
    /// 0 data node, 1 API node.
    pub role: u8,
    /// Zero.
    pub spare: u8,
    /// The link's number: the instance of the API block, 0 for data nodes.
    pub link: u16,
    /// Zero.
    pub spare2: u16,
    /// Distinguishes a node's incarnations.
    pub incarnation: u64,
}
const _: () = assert!(size_of::<Hello>() == 32);

/// The accepting side's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HelloAck {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The version both use.
    pub version: u32,
    /// 0, or an [`crate::ErrorCode`]; the link is then closed.
    pub code: u32,
    /// The accepting node.
    pub node: u8,
    /// Zero.
    pub spare: [u8; 7],
    /// The accepting node's incarnation.
    pub incarnation: u64,
}
const _: () = assert!(size_of::<HelloAck>() == 32);

impl Hello {
    /// What is wrong with a received hello, if anything.
    #[must_use]
    pub fn invalid(&self) -> Option<&'static str> {
        if self.magic != MAGIC {
            return Some("not a nucdb data link: wrong magic");
        }
        if self.version < OLDEST as u32 {
            return Some("protocol version too old");
        }
        if self.node == 0 || self.role > 1 {
            return Some("hello with impossible node id or role");
        }
        None
    }
}
