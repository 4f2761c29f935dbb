//! Stories: several main roles wired together, delivered in an order a seed decides.
//!
//! [`cluster`] is the wiring; each other file tells one kind of story.

mod cluster;
mod schema;
mod start;
mod stop;
