//! Connect: how a data node's links come about.
//!
//! One thread accepts (data nodes with a higher id, and API nodes); for every data node with a lower id one
//! thread connects, and connects again whenever the link is lost. Both hand finished links to the
//! [`Directory`] and sleep again. A peer that cannot be reached is named with address and reason, in the
//! log once and then every ten seconds, and in the node's status as long as it lasts: an operator has to
//! see which port a firewall swallows.
//!
//! Nobody here reads a signal, and no worker ever waits for anybody here.

use crate::directory::Directory;
use signals::hello::Hello;
use signals::{ErrorCode, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transporter::{Acceptor, Admission, ConnectError, ConnectOptions, PeerRole, SocketOptions};

/// Pause between two attempts to reach a data node.
const RETRY: Duration = Duration::from_millis(100);
/// Longest time for one attempt.
const ATTEMPT: Duration = Duration::from_secs(3);
/// An unreachable peer is logged again after this.
const LOG_AGAIN: Duration = Duration::from_secs(10);
/// The acceptor looks up from its sleep at least this often.
const ACCEPT_POLL: Duration = Duration::from_secs(60);

/// Who may connect, by node id; everything else is refused.
pub type Peers = BTreeMap<NodeId, PeerRole>;

/// Accepts links until the node ends.
pub fn accept(mut acceptor: Acceptor, directory: &Directory, peers: &Peers) {
    // A wait that returns at once and says whether the node lives on.
    while directory.wait_for_loss(Duration::ZERO) {
        let links = acceptor.poll(ACCEPT_POLL, |hello, _| admit(hello, directory, peers));
        for link in links {
            let peer = link.peer.to_string();
            if !directory.link_up(link) {
                tracing::warn!("connection from {peer} dropped: connected already");
            }
        }
    }
}

/// Whether a peer with a valid hello may connect.
fn admit(hello: &Hello, directory: &Directory, peers: &Peers) -> Admission {
    let node = NodeId(hello.node);
    let refuse = |code, reason: String| Admission::Refuse(code, reason);
    let role = match peers.get(&node) {
        Some(role) => *role,
        None => {
            return refuse(ErrorCode::MGM_NO_SUCH_NODE, format!("no node {node} in the configuration"));
        }
    };
    if role as u8 != hello.role {
        let reason = format!("node {node} is another kind of node in the configuration");
        return refuse(ErrorCode::NODE_TYPE_MISMATCH, reason);
    }
    if role == PeerRole::DataNode && (hello.link != 0 || node <= directory.node) {
        let reason = format!("data node {node} must not connect here, the higher id connects to the lower");
        return refuse(ErrorCode::NODE_TYPE_MISMATCH, reason);
    }
    if directory.is_connected(node, hello.link) {
        let reason = format!("node {node} is connected already (link {})", hello.link);
        return refuse(ErrorCode::NODE_ALREADY_RESERVED, reason);
    }
    if !directory.has_room() {
        return refuse(ErrorCode::OUT_OF_TRANSACTION_OBJECTS, "too many links".to_owned());
    }
    Admission::Accept(directory.wake_of(node, hello.link))
}

/// A data node this one connects to.
pub struct Target {
    /// Its id.
    pub node: NodeId,
    /// `host:port`.
    pub address: String,
    /// Our introduction.
    pub hello: Hello,
    /// Of the socket.
    pub socket: SocketOptions,
    /// Whether it may be reached inside this process.
    pub in_process: bool,
}

/// Keeps a link to `target` until the node ends.
pub fn keep_connected(target: &Target, directory: &Arc<Directory>) {
    let mut logged: Option<(Instant, String)> = None;
    loop {
        if directory.is_connected(target.node, 0) {
            if !directory.wait_for_loss(Duration::from_secs(1)) {
                return;
            }
            continue;
        }
        let options = ConnectOptions {
            timeout: ATTEMPT,
            socket: target.socket,
            wake: directory.wake_of(target.node, 0),
            in_process: target.in_process,
        };
        match transporter::connect_with(&target.address, &target.hello, options) {
            Ok(link) => {
                directory.set_trouble(target.node, None);
                logged = None;
                directory.link_up(link);
            }
            Err(error) => {
                note(target, directory, &error, &mut logged);
                if !directory.wait_for_loss(RETRY) {
                    return;
                }
            }
        }
    }
}

/// Logs why a peer cannot be reached, unless that was said already not long ago.
fn note(
    target: &Target,
    directory: &Directory,
    error: &ConnectError,
    logged: &mut Option<(Instant, String)>,
) {
    let reason = error.to_string();
    directory.set_trouble(target.node, Some(format!("{}: {reason}", target.address)));
    let news = logged.as_ref().is_none_or(|(at, text)| *text != reason || at.elapsed() >= LOG_AGAIN);
    if news {
        tracing::warn!("no link to data node {}: {reason}; trying on", target.node);
        *logged = Some((Instant::now(), reason));
    }
}
