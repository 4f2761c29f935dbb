//! The simulator: a whole cluster on one thread, on virtual time, from one seed.
//!
//! `autotest sim --seed 7` runs data nodes (the kernel's own blocks, all their workers), client processes
//! (the native API's own core under its ordinary asynchronous face) and the network between them, lets
//! clients work and things go wrong as a workload file says, and judges what clients saw and what is left.
//! The same seed gives the same run to the last byte.
//!
//! ```text
//!   plan (TOML) + seed ─► run ─► world: machines, processes, net, clients, tasks ─► trace, verdict
//!                          ├─► load: what clients do, and their judges
//!                          └─► faults: what goes wrong
//! ```
//!
//! What is not simulated is the runtime around the blocks: threads, rings, sockets, wake-ups. `process`
//! keeps its guarantees about order and nothing else.

pub(crate) mod agenda;
mod api;
mod cli;
pub(crate) mod env;
pub(crate) mod faults;
pub(crate) mod load;
mod net;
pub(crate) mod plan;
mod process;
pub(crate) mod rng;
mod run;
mod shape;
pub(crate) mod tasks;
mod trace;
mod world;

pub(crate) use cli::{Arguments, check, check_checkers, main};
