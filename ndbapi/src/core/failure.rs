//! Failure: lost links and time-outs, and what they mean for everything in flight.
//!
//! | in flight                                   | its node is lost                 | it takes too long             |
//! |---------------------------------------------|----------------------------------|-------------------------------|
//! | committed read                              | ask another replica              | fails, 4035                   |
//! | execute without commit                      | aborted, 4010                    | rolled back, 4035             |
//! | execute with commit, commit, writes made    | unknown, 4013                    | unknown, 4012                 |
//! | execute with commit, commit, only reads     | aborted, 4010                    | rolled back, 4035             |
//! | idle transaction                            | aborted, 4010 at its next call   | the coordinator's own affair  |
//! | rollback                                    | done: the node's end is its end  | done, as far as we are asked  |
//! | rollback to a savepoint                     | aborted, 4010                    | aborted, 4035                 |
//! | question to the dictionary                  | ask another node                 | fails, 4035                   |
//! | change of the schema                        | unknown, 4013                    | unknown, 4012                 |
//! | fragment scan that gave no row yet          | ask another replica              | fails, 4035                   |
//! | fragment scan that gave rows                | fails, 499                       | fails, 4035                   |
//!
//! A lost link also takes the rows with it that the node's LDMs had sent for operations of coordinators
//! elsewhere. The coordinator then reports the operation as done and the row never comes; such operations
//! are marked, and given up when the confirmation is in and the row is not.

use super::node::NodeStatus;
use super::trans::TransState;
use super::{Core, Now, REST_MS};
use crate::NdbError;
use crate::batch::OpState;
use signals::keyop::ROLLBACK_ALL;
use signals::planted::Fault;
use signals::{ErrorCode, NodeId, TransId};

impl Core {
    /// The link to `node` is gone.
    pub fn disconnected(&mut self, now: Now, node: NodeId, reason: &str) {
        let Some(index) = self.index_of(node) else { return };
        let record = &mut self.nodes[index];
        if record.status == NodeStatus::Down {
            return;
        }
        record.status = NodeStatus::Down;
        record.out.clear();
        let text = format!("node {node}: {reason}");
        self.coordinator_lost(now, index, &text);
        self.rows_of_node_lost(now, node, index);
        self.dict_node_lost(now, index, &text);
        self.scan_node_lost(now, index);
    }

    /// Every transaction whose coordinator was on the node.
    fn coordinator_lost(&mut self, now: Now, node: usize, text: &str) {
        let theirs: Vec<(TransId, TransState, bool)> = self
            .transactions
            .iter()
            .filter(|t| t.state != TransState::Free && !t.tc.is_none() && t.tc_node as usize == node)
            .map(|t| (t.id, t.state, t.has_writes))
            .collect();
        for (id, state, has_writes) in theirs {
            match state {
                TransState::Executing { flight, commit } => {
                    let lies = self.options.planted.has(Fault::UnknownReportedAborted);
                    let code = if commit && has_writes && !lies {
                        ErrorCode::NODE_FAILED_UNKNOWN
                    } else {
                        ErrorCode::NODE_FAILED_NO_COMMIT
                    };
                    self.fail_flight(now, flight, NdbError::with(code, text));
                }
                TransState::Open => self.end_trans(id, ErrorCode::NODE_FAILED_NO_COMMIT),
                TransState::RollingBack { keep, tag, .. } => {
                    self.end_trans(id, ErrorCode::NODE_FAILED_NO_COMMIT);
                    let result = if keep == ROLLBACK_ALL {
                        Ok(())
                    } else {
                        Err(NdbError::with(ErrorCode::NODE_FAILED_NO_COMMIT, text))
                    };
                    self.rolled_back(tag, result);
                }
                TransState::Free | TransState::Fresh | TransState::Ended(_) => {}
            }
        }
    }

    /// Committed reads that were on their way from the node ask another replica; reads of coordinators
    /// elsewhere whose row the node may have sent are marked.
    fn rows_of_node_lost(&mut self, now: Now, node: NodeId, index: usize) {
        let until = now.after_ms(REST_MS).0;
        for flight in 0..self.flights.len() as u32 {
            let Some(mut batch) = self.flights[flight as usize].batch.take() else { continue };
            let mut gone = 0;
            let mut lost = false;
            for place in 0..batch.ops.len() {
                let op = batch.ops[place];
                if op.state != OpState::Sent || !op.operation.is_read() {
                    continue;
                }
                if op.tried != 0 {
                    if op.node as usize == index {
                        self.ops.retire(op.api_op, until);
                        gone += u32::from(!self.send_read(flight, &mut batch, place));
                    }
                } else {
                    let table = batch.table_of(&op);
                    if table.placement(table.partition_of(op.hash)).replicas().any(|r| r.0 == node) {
                        batch.ops[place].lost = true;
                        lost = true;
                    }
                }
            }
            let record = &mut self.flights[flight as usize];
            record.outstanding -= gone;
            record.batch = Some(batch);
            let (trans, confirmed) = (record.trans, !record.awaiting_tc);
            if lost && confirmed {
                self.rows_lost(now, trans, flight);
            } else if gone > 0 {
                self.settle(now, flight);
            }
        }
    }

    /// A coordinator has confirmed, but rows that a lost node was to send will not come: those reads fail.
    /// If the transaction is not committed it is rolled back, because it may have decided by them.
    #[cold]
    pub(super) fn rows_lost(&mut self, now: Now, id: TransId, index: u32) {
        let until = now.after_ms(REST_MS).0;
        let flight = &mut self.flights[index as usize];
        if !flight.commit {
            self.send_rollback(id, ROLLBACK_ALL);
            let text = "a node was lost that had rows of the transaction's reads";
            self.fail_flight(now, index, NdbError::with(ErrorCode::NODE_FAILED_NO_COMMIT, text));
            return;
        }
        if let Some(batch) = flight.batch.as_deref_mut() {
            for op in batch.ops.iter_mut().filter(|op| op.state == OpState::Sent && op.lost) {
                op.state = OpState::Failed(ErrorCode::COMMITTED_READS_LOST);
                flight.outstanding -= 1;
                self.ops.retire(op.api_op, until);
            }
        }
        self.settle(now, index);
    }

    /// Looks at the time: heartbeats, silent nodes, requests that take too long. Call about every 100 ms.
    pub fn tick(&mut self, now: Now) {
        self.check_nodes(now);
        self.ops.wake(now.0);
        self.fragments.wake(now.0);
        for index in 0..self.flights.len() as u32 {
            let flight = &self.flights[index as usize];
            if flight.batch.is_some() && now >= flight.deadline {
                self.flight_timed_out(now, index);
            }
        }
        for index in 0..self.transactions.len() {
            let trans = &self.transactions[index];
            if let TransState::RollingBack { keep, tag, deadline } = trans.state
                && now >= deadline
            {
                let id = trans.id;
                let ended = keep == ROLLBACK_ALL;
                if !ended {
                    self.send_rollback(id, ROLLBACK_ALL);
                }
                self.end_trans(id, ErrorCode::CLUSTER_UNAVAILABLE);
                self.rolled_back(tag, if ended { Ok(()) } else { Err(self.no_answer()) });
            }
        }
        self.dict_timeouts(now);
        self.scan_timeouts(now);
    }

    fn flight_timed_out(&mut self, now: Now, index: u32) {
        let flight = &self.flights[index as usize];
        let (id, commit) = (flight.trans, flight.commit);
        let at_tc = self.trans_mut(id).is_some_and(|t| !t.tc.is_none());
        let has_writes = self.trans_mut(id).is_some_and(|t| t.has_writes);
        if !at_tc {
            self.reads_timed_out(now, index);
        } else if commit && has_writes {
            let text = format!("no answer within {} ms", self.options.request_timeout_ms);
            self.fail_flight(now, index, NdbError::with(ErrorCode::REQUEST_TIMEOUT, text));
        } else {
            self.send_rollback(id, ROLLBACK_ALL);
            let error = self.no_answer();
            self.fail_flight(now, index, error);
        }
    }

    /// Committed reads that are not answered fail one by one; those that are keep their rows.
    fn reads_timed_out(&mut self, now: Now, index: u32) {
        let until = now.after_ms(REST_MS).0;
        let flight = &mut self.flights[index as usize];
        let Some(batch) = flight.batch.as_deref_mut() else { return };
        for op in &mut batch.ops {
            if matches!(op.state, OpState::Sent | OpState::Parked) {
                if op.state == OpState::Sent {
                    self.ops.retire(op.api_op, until);
                }
                op.state = OpState::Failed(ErrorCode::CLUSTER_UNAVAILABLE);
                flight.outstanding -= 1;
            }
        }
        self.settle(now, index);
    }

    /// 4035, because nothing came back in time.
    #[cold]
    pub(super) fn no_answer(&self) -> NdbError {
        let text = format!("no answer within {} ms", self.options.request_timeout_ms);
        NdbError::with(ErrorCode::CLUSTER_UNAVAILABLE, text)
    }

    /// The driver gives up: everything in flight ends as if all links were lost.
    pub fn shut_down(&mut self, now: Now) {
        for index in 0..self.nodes.len() {
            let node = self.nodes[index].id;
            self.disconnected(now, node, "the connection was closed");
        }
    }
}
