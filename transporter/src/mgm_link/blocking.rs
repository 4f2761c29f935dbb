//! Management links for programs without a runtime: a thread of its own runs a small one and is talked to by
//! queues.
//!
//! Data nodes use [`BlockingNodeLink`]: their workers are plain threads that must never find themselves
//! inside a runtime. Nothing here spins; the thread sleeps in the kernel until a datagram or a request
//! comes.

use super::client::{MgmClient, MgmError};
use super::node::{NodeLink, NodeLinkHandle, NodeOptions, PendingOrder};
use signals::ErrorCode;
use signals::mgm::{MgmConf, MgmHelloConf, MgmReq};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc as tokio_mpsc, oneshot};

fn thread_failed(error: &std::io::Error) -> MgmError {
    MgmError::new(ErrorCode::MGM_REFUSED, format!("cannot start the management link's thread: {error}"))
}

fn thread_gone() -> MgmError {
    MgmError::new(ErrorCode::MGM_LINK_LOST, "the management link's thread has ended")
}

/// Runs a future on a thread of its own, on a runtime of its own.
fn on_own_thread<F, Fut>(name: &str, main: F) -> Result<JoinHandle<()>, MgmError>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| thread_failed(&e))?;
    let thread = std::thread::Builder::new().name(name.to_owned());
    // Where several nodes share a process, the log lines of this thread are its starter's.
    let context = tracing::Span::current();
    thread
        .spawn(move || {
            let _context = context.entered();
            runtime.block_on(main());
        })
        .map_err(|e| thread_failed(&e))
}

/// A node's lasting link, for plain threads.
#[derive(Debug)]
pub struct BlockingNodeLink {
    handle: NodeLinkHandle,
    orders: mpsc::Receiver<PendingOrder>,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BlockingNodeLink {
    /// Joins the cluster (see [`NodeLink::join`]) and waits for it.
    pub fn join(options: NodeOptions) -> Result<BlockingNodeLink, MgmError> {
        let (joined_sender, joined) = mpsc::sync_channel(1);
        let (order_sender, orders) = mpsc::channel();
        let (leave, leaving) = oneshot::channel::<()>();
        let thread = on_own_thread("mgm-link", move || async move {
            let mut link = match NodeLink::join(options).await {
                Ok(link) => link,
                Err(error) => {
                    let _ = joined_sender.send(Err(error));
                    return;
                }
            };
            if joined_sender.send(Ok(link.handle().clone())).is_err() {
                return;
            }
            let mut leaving = leaving;
            loop {
                tokio::select! {
                    _ = &mut leaving => break,
                    order = link.next_order() => {
                        let Some(order) = order else { break };
                        if order_sender.send(order).is_err() {
                            break;
                        }
                    }
                }
            }
            link.leave().await;
        })?;
        let handle = joined.recv().unwrap_or_else(|_| Err(thread_gone()))?;
        Ok(BlockingNodeLink { handle, orders, leave: Some(leave), thread: Some(thread) })
    }

    /// The part any thread may use: id, configuration, reports, log.
    pub fn handle(&self) -> &NodeLinkHandle {
        &self.handle
    }

    /// The server's next order, waiting at most this long.
    pub fn next_order(&self, wait: Duration) -> Option<PendingOrder> {
        self.orders.recv_timeout(wait).ok()
    }

    /// Leaves; the server frees the id before this returns, if it can be reached.
    pub fn leave(self) {
        drop(self);
    }
}

impl Drop for BlockingNodeLink {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            let _ = leave.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A question on its way to the thread, and where its answer goes.
type Job = (MgmReq, mpsc::SyncSender<Result<MgmConf, MgmError>>);

/// The operator's client, for programs without a runtime.
#[derive(Debug)]
pub struct BlockingMgmClient {
    server: MgmHelloConf,
    jobs: Option<tokio_mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl BlockingMgmClient {
    /// Connects to the first server of the connect string that answers.
    pub fn connect(connect_string: &str, program: &str) -> Result<BlockingMgmClient, MgmError> {
        let (connect_string, program) = (connect_string.to_owned(), program.to_owned());
        let (connected_sender, connected) = mpsc::sync_channel(1);
        let (jobs, mut queue) = tokio_mpsc::channel::<Job>(16);
        let thread = on_own_thread("mgm-client", move || async move {
            let client = match MgmClient::connect(&connect_string, &program).await {
                Ok(client) => client,
                Err(error) => {
                    let _ = connected_sender.send(Err(error));
                    return;
                }
            };
            let _ = connected_sender.send(Ok(client.server().clone()));
            while let Some((request, reply)) = queue.recv().await {
                let _ = reply.send(client.request(&request).await);
            }
            client.close().await;
        })?;
        let server = connected.recv().unwrap_or_else(|_| Err(thread_gone()))?;
        Ok(BlockingMgmClient { server, jobs: Some(jobs), thread: Some(thread) })
    }

    /// What the server said of itself.
    pub fn server(&self) -> &MgmHelloConf {
        &self.server
    }

    /// Asks and waits; a refusal is an error.
    pub fn request(&self, request: MgmReq) -> Result<MgmConf, MgmError> {
        let (reply, replied) = mpsc::sync_channel(1);
        let jobs = self.jobs.as_ref().ok_or_else(thread_gone)?;
        jobs.blocking_send((request, reply)).map_err(|_| thread_gone())?;
        replied.recv().unwrap_or_else(|_| Err(thread_gone()))
    }
}

impl Drop for BlockingMgmClient {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
