//! The data node: the runtime around the kernel's blocks - pinned workers, job queues, links - and the
//! daemon.
//!
//! ```text
//!            sockets, in-process rings
//!                  │            ▲
//!        receive ──┤            │ link_out        one LinkOut per link, shared by all workers,
//!                  ▼            │                 written by them or by a worker that hosts `send`
//!   ┌─ worker ─────────────────────────┐  jobs   ┌─ worker ─┐
//!   │ core: BlockSet + Outbox, batches │ ──────► │   ...    │      one ring per ordered pair of workers
//!   └──────────────────────────────────┘         └──────────┘
//!        ▲ orders                                      ▲
//!        └──────── directory ──────────────────────────┘         links up and down, the node's end
//!                      ▲
//!         connect: acceptor thread, a connector per data node with a lower id
//! ```
//!
//! [`start`] makes a node from a configuration; the daemon and single-process clusters use nothing else. What
//! never happens here: a decision about transactions, schema or membership (the blocks'), or a wait on a
//! worker thread.

pub mod connect;
pub mod core;
pub mod daemon;
pub mod directory;
pub mod jobs;
pub mod link_out;
pub mod node;
pub mod priority;
pub mod receive;
pub mod screen;
pub mod send;
pub mod setup;
pub mod spin;
pub mod usage;
pub mod worker;

pub use directory::Exit;
pub use node::{Node, Options, WorkerFigures, start};
pub use setup::StartError;

#[cfg(test)]
mod tests;
