//! BlockSet: the blocks one worker hosts, and the dispatch of frames to them.
//!
//! Which blocks a worker hosts is the runtime's decision (ThreadConfig); the blocks do not notice. A frame
//! for a block that is not here is a fault of the sender's route table or a forged address: it is counted
//! and dropped.

use crate::Now;
use crate::ldm::Ldm;
use crate::ldm::digest::FragmentDigest;
use crate::mainrole::MainRole;
use crate::outbox::{Outbox, RouteId, Severity};
use crate::setup::NodeSetup;
use crate::tc::Tc;
use signals::frame::{Invalid, Signal};
use signals::{BlockNumber, BlockRef};

/// See the module.
pub struct BlockSet {
    ldms: Vec<Option<Box<Ldm>>>,
    tcs: Vec<Option<Box<Tc>>>,
    main: Option<Box<MainRole>>,
    misdirected: u64,
}

impl BlockSet {
    /// The LDM and TC instances numbered, and the main-role blocks if `main`; their routes in `out` are set
    /// to self.
    #[must_use]
    pub fn new(setup: &NodeSetup, ldms: &[u16], tcs: &[u16], main: bool, out: &mut Outbox) -> Self {
        let mut set = Self { ldms: Vec::new(), tcs: Vec::new(), main: None, misdirected: 0 };
        for &instance in ldms {
            put(&mut set.ldms, instance, Box::new(Ldm::new(setup, instance)));
            out.set_local_route(BlockNumber::Dblqh, instance, RouteId::SELF);
        }
        for &instance in tcs {
            put(&mut set.tcs, instance, Box::new(Tc::new(setup, instance)));
            out.set_local_route(BlockNumber::Dbtc, instance, RouteId::SELF);
        }
        if main {
            set.main = Some(Box::new(MainRole::new(setup)));
            for block in MainRole::BLOCKS {
                out.set_local_route(block, 0, RouteId::SELF);
            }
        }
        set
    }

    /// Handles one frame addressed to a block of this worker.
    ///
    /// # Errors
    /// The frame is no signal; the link it came from must be closed. Nothing was changed.
    #[inline]
    pub fn handle(&mut self, now: Now, frame: &[u8], out: &mut Outbox) -> Result<(), Invalid> {
        let (header, signal) = Signal::parse(frame)?;
        let instance = header.target.instance() as usize;
        match header.target.block() {
            Some(BlockNumber::Dblqh) => match self.ldms.get_mut(instance) {
                Some(Some(ldm)) => ldm.handle(now, header.source, &signal, out),
                _ => self.misdirected(header.target, out),
            },
            Some(BlockNumber::Dbtc) => match self.tcs.get_mut(instance) {
                Some(Some(tc)) => tc.handle(now, header.source, &signal, out),
                _ => self.misdirected(header.target, out),
            },
            Some(
                BlockNumber::Cmvmi
                | BlockNumber::Qmgr
                | BlockNumber::Ndbcntr
                | BlockNumber::Dbdict
                | BlockNumber::Dbdih,
            ) => match (&mut self.main, signal) {
                (Some(main), Signal::Control(control)) => main.handle(now, header, *control, out),
                _ => self.misdirected(header.target, out),
            },
            Some(BlockNumber::Api | BlockNumber::Mgm) | None => self.misdirected(header.target, out),
        }
        Ok(())
    }

    /// Lets every block look at the time. Call about every 10 ms.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        for ldm in self.ldms.iter_mut().flatten() {
            ldm.tick(now, out);
        }
        for tc in self.tcs.iter_mut().flatten() {
            tc.tick(now, out);
        }
        if let Some(main) = &mut self.main {
            main.tick(now, out);
        }
    }

    /// The main-role blocks, if this worker hosts them.
    #[must_use]
    pub fn main(&self) -> Option<&MainRole> {
        self.main.as_deref()
    }

    /// Transactions, operations and scans in use: 0 when the cluster is quiet.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let ldms: usize =
            self.ldms.iter().flatten().map(|l| l.in_use()).map(|(ops, scans)| ops + scans).sum();
        let tcs: usize = self.tcs.iter().flatten().map(|t| t.in_use()).map(|(trans, ops)| trans + ops).sum();
        ldms + tcs
    }

    /// What every fragment of this worker's LDMs holds; see [`Ldm::digests`].
    #[must_use]
    pub fn digests(&self) -> Vec<FragmentDigest> {
        self.ldms.iter().flatten().flat_map(|ldm| ldm.digests()).collect()
    }

    /// Whether dropped tables still hold memory.
    #[must_use]
    pub fn is_burying(&self) -> bool {
        self.ldms.iter().flatten().any(|ldm| ldm.is_burying())
    }

    #[cold]
    fn misdirected(&mut self, target: BlockRef, out: &mut Outbox) {
        self.misdirected += 1;
        if self.misdirected.is_power_of_two() {
            let count = self.misdirected;
            out.event(
                Severity::Warning,
                format!("signal for {target:?}, which is not here ({count} so far)"),
            );
        }
    }
}

fn put<T>(list: &mut Vec<Option<T>>, instance: u16, block: T) {
    if list.len() <= instance as usize {
        list.resize_with(instance as usize + 1, || None);
    }
    list[instance as usize] = Some(block);
}
