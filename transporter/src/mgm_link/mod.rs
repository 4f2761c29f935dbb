//! Management links: how nodes and operators reach the management server, over QUIC on one UDP port.
//!
//! A link is one QUIC connection. Its first stream carries the hello, which settles the protocol version.
//! After that either side opens a stream per question, writes one length-prefixed message, reads one as the
//! answer. Questions do not wait for each other, and a slow one blocks nobody.
//!
//! ```text
//!   MgmListener ── accept ──► MgmIncoming ── hello ──► MgmLink ◄── connect ── MgmClient (operator, one server of many)
//!                                                       ask / next_question     NodeLink  (node: id, reports, orders,
//!                                                                                          comes back by itself)
//! ```
//!
//! * `quic`: certificates, timeouts, limits. Trust is the loopback or private network for now: the server
//!   makes a certificate at start and the client takes any, so the link is encrypted but the peer is not
//!   proven.
//! * `link`: one established link; the only place that reads a peer's bytes.
//! * `client`: connect strings, the operator's client. `node`: a node's lasting link. `blocking`: both for
//!   programs without a runtime.
//!
//! A dead peer is noticed when it closes, when its successor on the same port answers with a stateless
//! reset, or after [`IDLE_TIMEOUT`] of silence. Bytes that are not this protocol cost the peer its link and
//! nobody else anything: every message has a length limit, every wait a timeout, every server a limit of
//! links.

mod blocking;
mod client;
mod link;
mod node;
mod quic;
mod watch;

pub use blocking::{BlockingMgmClient, BlockingNodeLink};
pub use client::{ConnectString, MgmClient, MgmError};
pub use link::{MgmIncoming, MgmLink, MgmListener, Question};
pub use node::{NodeLink, NodeLinkHandle, NodeOptions, PendingOrder};
pub use watch::Stray;

use std::time::Duration;

/// Silence after which a peer counts as dead.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a live link says so.
pub const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// Longest wait for a connection and its hello.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest wait for the rest of a message that has begun.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most links a server keeps; a cluster has 255 nodes, the rest are operators.
pub const LINKS_MAX: usize = 1024;
