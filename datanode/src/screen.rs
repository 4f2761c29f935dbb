//! Screen: what a peer may send here at all, decided from a frame's header alone.
//!
//! A frame that comes over a link must carry the address of the node at the other end, or it is forged; an
//! API link carries one client session, so also its link number must be right. API nodes may only ask what
//! applications ask: the signals between data nodes (LQHKEYREQ and its kin) would let them write one
//! replica without the others. A frame that does not pass costs the peer its link. The bodies are checked
//! later, by [`signals::Signal::parse`].

use signals::frame::{HEADER_BYTES, SignalNumber};
use signals::{BlockNumber, BlockRef, NodeId};
use transporter::{Peer, PeerRole};

/// What frames of one link are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    own: NodeId,
    peer: NodeId,
    /// The only source of an API link.
    client: Option<BlockRef>,
}

impl Screen {
    /// The screen for a link of node `own` to `peer`.
    #[must_use]
    pub fn new(own: NodeId, peer: &Peer) -> Self {
        let client = match peer.role {
            PeerRole::ApiNode => Some(BlockRef::new(peer.node, BlockNumber::Api, peer.link)),
            PeerRole::DataNode => None,
        };
        Self { own, peer: peer.node, client }
    }

    /// The target of a whole frame, if it may pass.
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn check(&self, frame: &[u8]) -> Result<BlockRef, &'static str> {
        let Some(header) = frame.first_chunk::<HEADER_BYTES>() else { return Err("frame without header") };
        let number = u16::from_le_bytes([header[4], header[5]]);
        let source = BlockRef(u32::from_le_bytes([header[8], header[9], header[10], header[11]]));
        let target = BlockRef(u32::from_le_bytes([header[12], header[13], header[14], header[15]]));
        if target.node() != self.own {
            return Err("frame for another node");
        }
        match self.client {
            Some(client) if source != client => Err("forged source address"),
            Some(_) if !client_may_send(number, target) => Err("signal that an API node may not send"),
            None if source.node() != self.peer || source.block_byte() == BlockNumber::Api as u8 => {
                Err("forged source address")
            }
            Some(_) | None => Ok(target),
        }
    }
}

/// Whether an API node may send signal `number` to `target`.
#[inline]
fn client_may_send(number: u16, target: BlockRef) -> bool {
    const TC: u8 = BlockNumber::Dbtc as u8;
    const LDM: u8 = BlockNumber::Dblqh as u8;
    const QMGR: u8 = BlockNumber::Qmgr as u8;
    const DICT: u8 = BlockNumber::Dbdict as u8;
    match target.block_byte() {
        TC => {
            number == SignalNumber::TcKeyReq as u16
                || number == SignalNumber::TcCommitReq as u16
                || number == SignalNumber::TcRollbackReq as u16
        }
        LDM => {
            number == SignalNumber::ReadRowReq as u16
                || number == SignalNumber::ScanFragReq as u16
                || number == SignalNumber::ScanNextReq as u16
        }
        // Which control signals are a client's is those blocks' to judge: they see the session in the source.
        QMGR | DICT => number == SignalNumber::Control as u16,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signals::deadlock::{DeadlockReq, WaitForRep};
    use signals::frame::push_signal;
    use signals::ids::TransId;
    use signals::keyop::*;

    fn screen(role: PeerRole) -> Screen {
        let peer =
            Peer { node: NodeId(9), role, link: 2, incarnation: 1, version: 1, address: String::new() };
        Screen::new(NodeId(1), &peer)
    }

    fn frame<B: signals::frame::Body>(source: BlockRef, target: BlockRef, body: &B) -> Vec<u8> {
        let mut out = Vec::new();
        push_signal(&mut out, source, target, body, &[], &[]);
        out
    }

    #[test]
    fn clients_pass_with_their_own_address_and_their_own_signals() {
        let client = BlockRef::new(NodeId(9), BlockNumber::Api, 2);
        let tc = BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0);
        let ldm = BlockRef::new(NodeId(1), BlockNumber::Dblqh, 0);
        let commit = TcCommitReq { trans: TransId(1) };
        let api = screen(PeerRole::ApiNode);
        assert_eq!(api.check(&frame(client, tc, &commit)), Ok(tc));
        for forged in [
            BlockRef::NONE,
            BlockRef::new(NodeId(9), BlockNumber::Api, 3),
            BlockRef::new(NodeId(8), BlockNumber::Api, 2),
            BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0),
        ] {
            assert_eq!(api.check(&frame(forged, tc, &commit)), Err("forged source address"));
        }
        let complete = CompleteOrd { trans: TransId(1), op: 1, spare: 0 };
        for (target, body) in [(ldm, complete), (tc, complete)] {
            assert!(api.check(&frame(client, target, &body)).is_err());
        }
        assert!(api.check(&frame(client, ldm, &commit)).is_err(), "TC's signals are not the LDM's");
        let victim = DeadlockReq { trans: TransId(1), initiator: TransId(1), tc_op: 1, spare: 0 };
        assert!(api.check(&frame(client, tc, &victim)).is_err(), "no client ends another's transaction");
        assert!(api.check(&frame(client, tc, &WaitForRep { trans: TransId(1), tc_op: 1, op: 1 })).is_err());
        let elsewhere = BlockRef::new(NodeId(2), BlockNumber::Dbtc, 0);
        assert_eq!(api.check(&frame(client, elsewhere, &commit)), Err("frame for another node"));
        for block in 0..=255u8 {
            let target = BlockRef(1 << 24 | u32::from(block) << 16);
            let passes = api.check(&frame(client, target, &commit)).is_ok();
            assert_eq!(passes, block == BlockNumber::Dbtc as u8, "block {block}");
        }
    }

    #[test]
    fn data_nodes_speak_for_themselves_only() {
        let ldm = BlockRef::new(NodeId(1), BlockNumber::Dblqh, 0);
        let body = CompleteOrd { trans: TransId(1), op: 1, spare: 0 };
        let node = screen(PeerRole::DataNode);
        assert_eq!(node.check(&frame(BlockRef::new(NodeId(9), BlockNumber::Dbtc, 4), ldm, &body)), Ok(ldm));
        let tc = BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0);
        let victim = DeadlockReq { trans: TransId(1), initiator: TransId(1), tc_op: 1, spare: 0 };
        assert_eq!(node.check(&frame(BlockRef::new(NodeId(9), BlockNumber::Dbtc, 4), tc, &victim)), Ok(tc));
        for forged in [
            BlockRef::NONE,
            BlockRef::new(NodeId(1), BlockNumber::Dbtc, 0),
            BlockRef::new(NodeId(9), BlockNumber::Api, 2),
        ] {
            assert_eq!(node.check(&frame(forged, ldm, &body)), Err("forged source address"));
        }
    }
}
