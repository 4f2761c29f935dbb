//! What nucdb's nodes say to each other: signals, ids, error codes, table metadata, row and key formats,
//! placement.
//!
//! Every other crate depends on this one and it depends on nothing of ours. It holds no state and does no
//! I/O: it gives bytes a meaning. Two families of signals exist.
//!
//! * **Data plane** ([`frame`], [`keyop`], [`scan`], [`deadlock`]): fixed little-endian structs followed by
//!   byte sections, laid out so that a receiver casts and goes. They are validated once, where bytes enter
//!   the process ([`Signal::parse`]), and trusted afterwards.
//! * **Control plane** ([`control`], `mgm`): rare, rich and changing; bincode behind [`codec`].
//!
//! This crate never reads a clock, opens a file, or knows a block's state.

#[cfg(target_endian = "big")]
compile_error!("nucdb's wire and row formats are little-endian; big-endian hosts are not supported");

pub mod attr;
pub mod codec;
pub mod collation;
pub mod control;
pub mod deadlock;
pub mod error;
pub mod frame;
pub mod hello;
pub mod ids;
pub mod key;
pub mod keyop;
pub mod mgm;
pub mod partition;
pub mod peer;
pub mod planted;
pub mod scan;
pub mod table;

pub use error::{ErrorClass, ErrorCode};
pub use frame::{FrameHeader, Signal};
pub use ids::{BlockNumber, BlockRef, FragmentId, NodeId, TableId, TransId};
