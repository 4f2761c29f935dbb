//! CMVMI, the node's door for the management server: orders come in here and are passed to the block that
//! owns the matter.
//!
//! It keeps no state. The only order so far is the stop, which is qmgr's because it is a matter of
//! membership: the peers have to know that links will close. Memory and thread reports are the runtime's
//! own and never come here.
//!
//! ```text
//!   mgmd (or the runtime) ──StopReq──► cmvmi ──StopReq{asker}──► qmgr
//!   mgmd (or the runtime) ◄──────────StopConf / StopRef───────── qmgr
//! ```

use super::Ctx;
use crate::outbox::Severity;
use signals::control::StopScope;
use signals::peer::{PeerSignal, QmgrSignal};
use signals::{BlockNumber, BlockRef};

/// An order to stop.
pub(super) fn on_stop_req(ctx: &mut Ctx<'_>, asker: BlockRef, request: u32, scope: StopScope, force: bool) {
    let what = match scope {
        StopScope::Node => "this node",
        StopScope::Cluster => "the cluster",
    };
    let by = if asker.is_none() { ctx.setup.node } else { asker.node() };
    ctx.event(
        Severity::Info,
        format!("ordered to stop {what} by node {by}{}", if force { ", forced" } else { "" }),
    );
    let signal = QmgrSignal::StopReq { asker, request, scope, force };
    ctx.send_local(BlockNumber::Cmvmi, BlockNumber::Qmgr, PeerSignal::Qmgr(signal));
}
