//! TC, the transaction coordinator.

use crate::Now;
use crate::outbox::Outbox;
use crate::setup::NodeSetup;
use signals::{BlockRef, Signal};

/// One TC instance.
pub struct Tc {}

impl Tc {
    /// The instance at birth.
    #[must_use]
    pub fn new(_setup: &NodeSetup, _instance: u16) -> Self {
        Self {}
    }
    /// Handles one signal.
    pub fn handle(&mut self, _now: Now, _source: BlockRef, _signal: &Signal<'_>, _out: &mut Outbox) {}
    /// Looks at the time.
    pub fn tick(&mut self, _now: Now, _out: &mut Outbox) {}
}
