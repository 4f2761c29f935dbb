//! Threads of a data node: which workers there are, which CPU each may use, and which roles each hosts.
//!
//! A worker is an operating system thread; a role is a block instance group that must run somewhere:
//! `Ldm(i)` owns rows and redo of its fragments, `Tc(i)` coordinates transactions, `Recv(i)` reads sockets,
//! `Send(i)` writes them, `Main` runs schema and membership, `Rep` events. One worker may host any number
//! of roles, and a hop between two roles of one worker costs a function call instead of a wake-up.
//!
//! * `grammar` reads NDB's `ThreadConfig` text;
//! * `layout` is the result, and how thread counts (from the text or from the table) become workers;
//! * `auto` is the table that picks the counts from the number of CPUs;
//! * `cpus` works out how many CPUs there really are, from an affinity mask and a cgroup quota.
//!
//! Nothing here starts a thread or asks the system anything.

mod auto;
mod cpus;
mod grammar;
mod layout;

pub use auto::auto_threads;
pub use cpus::available_cpus;
pub use grammar::{CpuBinding, ThreadConfig, ThreadConfigError, ThreadEntry, ThreadType};
pub use layout::{Role, SpinMethod, ThreadLayout, WorkerLayout};
