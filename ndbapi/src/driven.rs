//! Driven: a connection whose clock and links are somebody else's, for simulators and for programs with a
//! network of their own.
//!
//! Tasks use the [`ClusterConnection`] as they would any other, on any executor. The owner of the
//! [`Driven`] half moves it: says what time it is, which links are up, what has arrived, and takes what is
//! to be sent. Nothing happens in between: no thread, no timer, no socket. Given the same calls in the same
//! order it gives the same results.

use crate::cluster::{ClusterConnection, Inner, Readiness, wake_all};
use crate::core::{Action, Core, Now};
use crate::{ConnectOptions, NdbError};
use signals::{ErrorCode, NodeId, frame};
use std::sync::Arc;
use tokio::sync::watch;

/// See the module.
pub struct Driven {
    inner: Arc<Inner>,
    ready: watch::Sender<Readiness>,
}

impl Driven {
    /// A connection by [`ConnectOptions::direct`], and its driving half. `incarnation`, in
    /// nanoseconds of some clock, must grow from one process of an API node to the next.
    ///
    /// # Errors
    /// 4200: the options lead to a management server, whose link nobody would drive.
    pub fn new(options: ConnectOptions, incarnation: u64) -> Result<(ClusterConnection, Self), NdbError> {
        let Some(place) = options.place.clone() else {
            return Err(NdbError::with(ErrorCode::STATUS_ERROR, "a driven connection needs direct options"));
        };
        let (connection, ready) = ClusterConnection::undriven(options, place, incarnation);
        let inner = Arc::clone(&connection.inner);
        Ok((connection, Self { inner, ready }))
    }

    /// It is `now`. Time never goes back.
    pub fn set_now(&self, now: Now) {
        self.inner.set_now(now);
    }

    /// A link to a data node is up.
    pub fn connected(&self, node: NodeId) {
        self.with(false, |core, now| core.connected(now, node));
    }

    /// A link is gone.
    pub fn disconnected(&self, node: NodeId, reason: &str) {
        self.with(false, |core, now| core.disconnected(now, node, reason));
    }

    /// A frame of a data node has arrived.
    ///
    /// # Errors
    /// It makes no sense: close the link.
    pub fn receive(&self, node: NodeId, bytes: &[u8]) -> Result<(), frame::Invalid> {
        self.with(false, |core, now| core.receive(now, node, bytes))
    }

    /// Heartbeats and time-outs; call every 50 ms. What it returns is to be done.
    #[must_use]
    pub fn tick(&self) -> Vec<Action> {
        self.with(true, |core, now| {
            core.tick(now);
            std::iter::from_fn(|| core.next_action()).collect()
        })
    }

    /// Hands over what is to be sent; see [`Core::take_outgoing`].
    pub fn take_outgoing(&self, accept: impl FnMut(NodeId, &mut Vec<u8>)) {
        self.inner.lock().core.take_outgoing(accept);
    }

    /// See [`Core::in_use`].
    #[must_use]
    pub fn in_use(&self) -> [usize; 4] {
        self.inner.lock().core.in_use()
    }

    /// See [`Core::stale_answers`].
    #[must_use]
    pub fn stale_answers(&self) -> u64 {
        self.inner.lock().core.stale_answers()
    }

    fn with<R>(&self, ticked: bool, work: impl FnOnce(&mut Core, Now) -> R) -> R {
        let now = self.inner.now();
        let mut locked = self.inner.lock();
        let result = work(&mut locked.core, now);
        let (wakers, started) = (locked.deliver(), locked.core.started_nodes());
        drop(locked);
        wake_all(wakers);
        Readiness::tell(&self.ready, started, ticked);
        result
    }
}
