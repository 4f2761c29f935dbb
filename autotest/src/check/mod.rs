//! Check: pure judges of histories - what clients asked, when, and what they were told - for anomalies.
//!
//! A judge knows nothing of the cluster, the simulator or the load: a history goes in, a verdict comes out.
//! So each is tested on histories written by hand, good ones and one bad one per anomaly.
//!
//! ```text
//!   linear   one register per row: locked operations and writes against a single order, lock-free reads
//!            against what READ_BACKUP promises
//!   append   lists of unique numbers: lost, dirty, duplicate, stale and fractured appends, and cycles
//! ```
//!
//! Times are of one clock that all clients share. Two moments that are equal count as concurrent.

pub(crate) mod append;
pub(crate) mod linear;

/// A moment.
pub(crate) type Time = u64;

/// What became of something asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Acknowledged then.
    Ok(Time),
    /// It has had no effect and will have none.
    Failed,
    /// Nobody knows: it may take effect at any later time, or never.
    Unknown,
}
