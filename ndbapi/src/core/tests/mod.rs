//! The core against a scripted kernel: the test plays the data nodes, frame by frame.

mod dict;
mod failure;
mod keyops;
mod scan;

use super::*;
use crate::batch::{Batch, OpId};
use crate::table::Table;
use crate::table::tests::table_on;
use signals::attr;
use signals::control::{ApiRegConf, ControlSignal};
use signals::frame::{self, Body, Invalid, Signal, next_frame};
use signals::keyop::*;
use std::sync::Arc;

pub(super) const N1: NodeId = NodeId(1);
pub(super) const N2: NodeId = NodeId(2);
const API: NodeId = NodeId(9);
const LINK: u16 = 3;

/// A frame the core sent, as the test looks at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    Read { node: NodeId, ldm: u16, api_op: u32, key: Vec<u8> },
    Key { tc: BlockRef, trans: TransId, api_op: u32, operation: Operation, flags: u8 },
    Commit { tc: BlockRef, trans: TransId },
    Rollback { tc: BlockRef, trans: TransId, keep: u32 },
    Scan { node: NodeId, api_scan: u32, fragment: u16, trans: TransId },
    Next { node: NodeId, scan: u32, api_scan: u32, close: bool },
    Control(NodeId, ControlSignal),
}

pub(super) use signals::TransId;

/// A core with data nodes 1 and 2 in one group, and table `test/t` of two partitions.
pub(super) struct Script {
    pub(super) core: Core,
    pub(super) now: Now,
    pub(super) table: TableHandle,
}

pub(super) fn groups() -> Vec<Vec<NodeId>> {
    vec![vec![N1, N2]]
}

impl Script {
    /// Both nodes started.
    pub(super) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    pub(super) fn with(
        change: impl FnOnce(&mut CoreOptions),
        change_table: impl FnOnce(&mut signals::control::TableInfo),
    ) -> Self {
        let nodes = vec![DataNode { id: N1, near: false }, DataNode { id: N2, near: false }];
        let mut options = CoreOptions::new(API, LINK, nodes);
        change(&mut options);
        let mut info = table_on(&groups(), 1);
        change_table(&mut info);
        let table = Arc::new(Table::new(info).unwrap());
        let mut script = Self { core: Core::new(options), now: Now(1_000_000_000), table };
        script.start(N1);
        script.start(N2);
        assert!(script.core.all_ready());
        script.sent();
        script
    }

    /// The node is linked and says that it is started.
    pub(super) fn start(&mut self, node: NodeId) {
        self.core.connected(self.now, node);
        self.reg_conf(node, true).unwrap();
    }

    pub(super) fn reg_conf(&mut self, node: NodeId, started: bool) -> Result<(), Invalid> {
        let conf = ApiRegConf { started, status: "phase 3".into(), tcs: 2, ldms: 1, groups: groups() };
        self.control(node, BlockNumber::Qmgr, ControlSignal::ApiRegConf(conf))
    }

    #[allow(clippy::needless_pass_by_value)]
    pub(super) fn control(
        &mut self,
        node: NodeId,
        block: BlockNumber,
        signal: ControlSignal,
    ) -> Result<(), Invalid> {
        let mut bytes = Vec::new();
        assert!(frame::push_control(&mut bytes, BlockRef::new(node, block, 0), self.core.me(), &signal));
        self.core.receive(self.now, node, &bytes)
    }

    /// A data plane signal of a data node.
    pub(super) fn signal<B: Body>(
        &mut self,
        source: BlockRef,
        body: &B,
        section: &[u8],
    ) -> Result<(), Invalid> {
        let mut bytes = Vec::new();
        frame::push_signal(&mut bytes, source, self.core.me(), body, section, &[]);
        self.core.receive(self.now, source.node(), &bytes)
    }

    pub(super) fn ldm(node: NodeId) -> BlockRef {
        BlockRef::new(node, BlockNumber::Dblqh, 0)
    }

    /// The row `(id, v, NULL)` for an operation.
    pub(super) fn row(&mut self, node: NodeId, api_op: u32, id: u32, v: u64) -> Result<(), Invalid> {
        let section = row_bytes(id, v);
        self.signal(Self::ldm(node), &TransIdAi { api_op, length: section.len() as u32 }, &section)
    }

    pub(super) fn read_ref(&mut self, node: NodeId, api_op: u32, code: ErrorCode) -> Result<(), Invalid> {
        self.signal(Self::ldm(node), &ReadRowRef { api_op, code: u32::from(code.0) }, &[])
    }

    pub(super) fn key_conf(
        &mut self,
        tc: BlockRef,
        trans: TransId,
        operations: u32,
        epoch: Option<u64>,
    ) -> Result<(), Invalid> {
        let committed = u32::from(epoch.is_some());
        let epoch = Epoch(epoch.unwrap_or(0));
        self.signal(tc, &TcKeyConf { trans, epoch, operations, committed }, &[])
    }

    /// What the core has sent since the last call, in order per node, node 1 first.
    pub(super) fn sent(&mut self) -> Vec<Sent> {
        let mut buffers = Vec::new();
        self.core.take_outgoing(|node, buffer| buffers.push((node, std::mem::take(buffer))));
        buffers.sort_by_key(|b| b.0);
        let mut sent = Vec::new();
        for (node, buffer) in buffers {
            let mut rest = &buffer[..];
            while let Some((bytes, tail)) = next_frame(rest).unwrap() {
                sent.push(look(node, bytes, self.core.me()));
                rest = tail;
            }
            assert!(rest.is_empty());
        }
        sent
    }

    pub(super) fn batch(&self, ops: &[(Operation, u32)]) -> Box<Batch> {
        let mut batch = Box::new(Batch::new());
        for (operation, id) in ops {
            let op = batch.op(&self.table, *operation).key(&[(*id).into()]);
            let op = if matches!(operation, Operation::Insert | Operation::Update | Operation::Write) {
                op.set("v", u64::from(*id) * 10)
            } else {
                op
            };
            op.finish().unwrap();
        }
        batch
    }

    pub(super) fn execute(
        &mut self,
        trans: Option<TransRef>,
        ops: &[(Operation, u32)],
        mode: CommitMode,
        tag: u64,
    ) {
        let batch = self.batch(ops);
        self.core.execute(self.now, trans, batch, mode, tag);
    }

    /// The one completion there is, which must be an execute's with this tag.
    pub(super) fn executed(&mut self, want: u64) -> (Box<Batch>, Result<Executed, NdbError>) {
        match self.core.next_completion() {
            Some(Completion::Executed { tag, batch, result }) if tag == want => {
                assert!(self.core.next_completion().is_none());
                (batch, result)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn nothing_yet(&mut self) {
        assert!(self.core.next_completion().is_none());
    }

    pub(super) fn advance(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.core.tick(self.now);
    }

    /// Data nodes answer heartbeats while `ms` pass.
    pub(super) fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 500 {
            self.advance(500);
            for node in [N1, N2] {
                if self.core.node_states().any(|(n, s)| n == node && *s != NodeStatus::Down) {
                    self.reg_conf(node, true).unwrap();
                }
            }
        }
    }
}

pub(super) fn row_bytes(id: u32, v: u64) -> Vec<u8> {
    let mut section = Vec::new();
    attr::push(&mut section, 0, Some(&id.to_le_bytes()));
    attr::push(&mut section, 1, Some(&v.to_le_bytes()));
    attr::push(&mut section, 2, None);
    section
}

fn look(node: NodeId, bytes: &[u8], me: BlockRef) -> Sent {
    let (header, signal) = Signal::parse(bytes).unwrap();
    assert_eq!((header.source, header.target.node()), (me, node));
    let tc = header.target;
    match signal {
        Signal::ReadRowReq(r) => {
            Sent::Read { node, ldm: tc.instance(), api_op: r.body.api_op, key: r.first.to_vec() }
        }
        Signal::TcKeyReq(r) => Sent::Key {
            tc,
            trans: r.body.trans,
            api_op: r.body.api_op,
            operation: r.body.op(),
            flags: r.body.flags,
        },
        Signal::TcCommitReq(r) => Sent::Commit { tc, trans: r.body.trans },
        Signal::TcRollbackReq(r) => Sent::Rollback { tc, trans: r.body.trans, keep: r.body.keep },
        Signal::ScanFragReq(r) => {
            Sent::Scan { node, api_scan: r.body.api_scan, fragment: r.body.fragment.0, trans: r.body.trans }
        }
        Signal::ScanNextReq(r) => {
            Sent::Next { node, scan: r.body.scan, api_scan: r.body.api_scan, close: r.body.close == 1 }
        }
        Signal::Control(c) => Sent::Control(node, *c),
        other => panic!("a client sent {other:?}"),
    }
}

/// An id whose primary is on `node`.
pub(super) fn id_on(table: &Table, node: NodeId) -> u32 {
    (0u32..)
        .find(|id| {
            let hash = table.distribution_hash(&id.to_le_bytes()).unwrap();
            table.placement(table.partition_of(hash)).replicas().next().unwrap().0 == node
        })
        .unwrap()
}

pub(super) fn op(index: u32) -> OpId {
    OpId(index)
}
