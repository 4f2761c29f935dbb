//! NDB's management commands: read, run through a client, shown as text or JSON.
//!
//! * [`Command::parse`] reads one command, in any case, with abbreviations as long as they are unambiguous.
//! * [`Session`] runs lines against a management server; `nucdb mgm` is a loop around it. It connects when
//!   needed and again when the link was lost, so an interactive client survives the server's restart.
//! * `render` makes text the way NDB operators know it, or JSON with the same content.
//!
//! Every error has a code, a cause and, where there is one, a hint; a session's reply carries the exit code a
//! one-shot client ends with. Commands NDB has and this release does not say so; they never pretend.

mod parse;
mod render;
mod session;

pub use parse::{Command, Format, help};
pub use session::{Reply, Session, split_script};
