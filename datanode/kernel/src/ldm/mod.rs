//! LDM, the local data manager: lqh, acc and tup of the fragments one instance owns.
//!
//! The storage under lqh is made of plain owned structs: [`page`] is the node's data memory, [`acc`] the
//! hash index of a fragment, [`tup`] its rows, [`fragment`] the two kept in step. They do no I/O, read no
//! clock and hold no locks: a fragment belongs to exactly one LDM thread. The storage never allocates on a
//! read, never panics on what a client sent, and never takes a byte that grows with data from anywhere but
//! [`page::DataMemory`].

pub mod acc;
pub mod digest;
pub mod fragment;
pub mod lqh;
pub mod page;
mod page_lists;
pub mod prefetch;
pub mod row_ref;
pub mod tup;

pub use lqh::Ldm;
