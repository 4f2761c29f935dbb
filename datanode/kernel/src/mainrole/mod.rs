//! The main role: the blocks a node has one of - cmvmi, qmgr, ndbcntr, dbdict, dbdih.

pub mod status;

use crate::Now;
use crate::outbox::Outbox;
use crate::setup::NodeSetup;
use signals::control::ControlSignal;
use signals::{BlockNumber, FrameHeader};
pub use status::{NodeStatus, StartPhase};

/// The blocks of the main role.
pub struct MainRole {}

impl MainRole {
    /// Its blocks, for route tables.
    pub const BLOCKS: [BlockNumber; 5] = [
        BlockNumber::Cmvmi,
        BlockNumber::Qmgr,
        BlockNumber::Ndbcntr,
        BlockNumber::Dbdict,
        BlockNumber::Dbdih,
    ];

    /// The blocks at birth.
    #[must_use]
    pub fn new(_setup: &NodeSetup) -> Self {
        Self {}
    }

    /// Hands a control signal to the block it is for.
    pub fn handle(&mut self, _now: Now, _header: FrameHeader, _signal: ControlSignal, _out: &mut Outbox) {}

    /// Lets the blocks look at the time.
    pub fn tick(&mut self, _now: Now, _out: &mut Outbox) {}

    /// What the node says about itself.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        NodeStatus {
            phase: StartPhase::Connecting,
            text: "connecting".into(),
            president: None,
            group: None,
            connected: Vec::new(),
            generation: 0,
        }
    }
}
