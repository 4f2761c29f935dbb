//! DBDIH, the keeper of placement and of time: node groups, and the epochs every commit belongs to.
//!
//! An epoch's high half is the GCI, the unit that becomes durable; the low half counts the micro-epochs
//! within it. The president's dih is the master. Every TimeBetweenEpochs it begins a micro-epoch, every
//! TimeBetweenGlobalCheckpoints a GCI, and tells all:
//!
//! ```text
//!   M.dih ──EpochRep──► N.dih ──EpochOrd──► the TCs and LDMs of N
//! ```
//!
//! This is one phase: two nodes may for a moment stamp commits with neighbouring epochs. That is enough as
//! long as an epoch only orders the commits of one TC. The switch that makes an epoch a cut through the
//! whole cluster has two phases - prepare: hold commits, all confirm; commit: go on in the new epoch - and
//! takes the place of [`Dbdih::begin`]; it must exist before anything is made durable, copied or streamed
//! by epochs.
//!
//! Fragments are placed by [`signals::partition::PartitionMap::place`] from the node groups when dict makes
//! a table; dih holds no map of its own until fragments move.

use super::Ctx;
use crate::Now;
use signals::control::ControlSignal;
use signals::ids::Epoch;
use signals::peer::{DihSignal, PeerSignal};
use signals::{BlockNumber, NodeId};

/// See the module.
pub(super) struct Dbdih {
    epoch: Epoch,
    /// Set on the master, from the start on.
    master: Option<Master>,
}

struct Master {
    members: Vec<NodeId>,
    epoch_began: Now,
    gci_began: Now,
}

impl Dbdih {
    pub(super) fn new() -> Self {
        Self { epoch: Epoch(0), master: None }
    }

    pub(super) fn handle(&mut self, ctx: &mut Ctx<'_>, signal: DihSignal) {
        match signal {
            DihSignal::DihStartOrd { president, members } => {
                self.master = None;
                if president == ctx.setup.node {
                    self.master = Some(Master { members, epoch_began: ctx.now, gci_began: ctx.now });
                    self.begin(ctx, first_of_gci(gci(self.epoch) + 1));
                }
            }
            DihSignal::EpochRep { epoch } => {
                if epoch > self.epoch {
                    self.epoch = epoch;
                    ctx.send_workers(BlockNumber::Dbdih, &ControlSignal::EpochOrd { epoch });
                }
            }
        }
    }

    pub(super) fn tick(&mut self, ctx: &mut Ctx<'_>) {
        let Some(master) = &mut self.master else { return };
        if ctx.now.millis_since(master.gci_began) >= ctx.setup.gcp_ms {
            (master.gci_began, master.epoch_began) = (ctx.now, ctx.now);
            self.begin(ctx, first_of_gci(gci(self.epoch) + 1));
        } else if ctx.now.millis_since(master.epoch_began) >= ctx.setup.epoch_ms {
            master.epoch_began = ctx.now;
            // A GCI of 2^32 micro-epochs would run into the next GCI, which is still in order.
            self.begin(ctx, Epoch(self.epoch.0 + 1));
        }
    }

    /// The master begins an epoch.
    fn begin(&mut self, ctx: &mut Ctx<'_>, epoch: Epoch) {
        let Some(master) = &self.master else { return };
        for node in &master.members {
            ctx.send_peer(BlockNumber::Dbdih, *node, PeerSignal::Dih(DihSignal::EpochRep { epoch }));
        }
    }
}

fn gci(epoch: Epoch) -> u64 {
    epoch.0 >> 32
}

fn first_of_gci(gci: u64) -> Epoch {
    Epoch(gci << 32)
}
