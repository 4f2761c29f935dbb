//! The running server: links come, ask, and go; one task per link and one per question.
//!
//! All state is behind one mutex that is held for a moment and never across an await. A link that ends for
//! whatever reason gives its node id back. When the last data node's id comes back, a changed file may take
//! over.

use crate::cluster_log::ClusterLog;
use crate::config_state::{ConfigState, FileState};
use crate::requests;
use crate::slots::Slots;
use config::ClusterConfig;
use signals::ErrorCode;
use signals::ids::NodeId;
use signals::mgm::{LogSeverity, MgmHelloConf, MgmOrder, MgmOrderAnswer, MgmReq, NodeKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use transporter::mgm_link::{MgmError, MgmIncoming, MgmLink, MgmListener, Question, Stray};

/// Lines about misbehaving peers written per [`PEER_TROUBLE_PERIOD`]; the rest is counted.
const PEER_TROUBLE_MAX: u32 = 20;
const PEER_TROUBLE_PERIOD: Duration = Duration::from_secs(10);
/// Longest wait for a node to take a new configuration.
const CONFIG_CHANGE_TIMEOUT: Duration = Duration::from_secs(3);

/// Everything that changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) slots: Slots,
    pub(crate) links: HashMap<usize, MgmLink>,
    pub(crate) config: ConfigState,
    peer_trouble: PeerTrouble,
    /// Counted apart: a flood of garbage must not hide what is said of links.
    stray_trouble: PeerTrouble,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) node_id: NodeId,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) log: ClusterLog,
    /// The file differs and it is still open whether a data node is up: nobody new gets a configuration
    /// meanwhile.
    pub(crate) is_deciding: watch::Sender<bool>,
    /// Set once the server is to stop.
    pub(crate) is_stopping: watch::Sender<bool>,
    state: Mutex<State>,
}

impl Server {
    pub(crate) fn new(
        node_id: NodeId,
        address: std::net::SocketAddr,
        log: ClusterLog,
        config: ConfigState,
    ) -> Arc<Server> {
        let slots = Slots::new(Arc::clone(config.active()));
        let is_deciding = matches!(config.file(), FileState::Differs { .. });
        Arc::new(Server {
            node_id,
            address,
            log,
            is_deciding: watch::Sender::new(is_deciding),
            is_stopping: watch::Sender::new(false),
            state: Mutex::new(State {
                slots,
                links: HashMap::new(),
                config,
                peer_trouble: PeerTrouble::new(),
                stray_trouble: PeerTrouble::new(),
            }),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A handler that panicked left whole values behind: every change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts links until the server is to stop, then closes them all.
    pub(crate) async fn run(self: Arc<Server>, listener: MgmListener) {
        let mut is_stopping = self.is_stopping.subscribe();
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept() => incoming,
                stray = listener.stray() => {
                    self.stray_datagram(stray);
                    continue;
                }
                _ = is_stopping.wait_for(|stop| *stop) => None,
            };
            let Some(incoming) = incoming else { break };
            tokio::spawn(Arc::clone(&self).session(incoming));
        }
        self.log.info("Management server stops");
        listener.close("management server stops").await;
        self.log.close();
    }

    /// Waits for data nodes that are up and come back after the server's own restart; without any, the
    /// changed file takes over.
    pub(crate) async fn decide(self: Arc<Server>, grace: Duration) {
        if *self.is_deciding.borrow() {
            tokio::time::sleep(grace).await;
            self.adopt_if_all_down();
            self.is_deciding.send_replace(false);
        }
    }

    /// Takes the file's configuration if it differs and no data node is up.
    pub(crate) fn adopt_if_all_down(self: &Arc<Server>) {
        let adopted = {
            let mut state = self.state();
            if !state.slots.live_data_nodes().is_empty() {
                return;
            }
            state.config.refresh();
            let adopted = state.config.adopt();
            if let Ok(Some(config)) = &adopted {
                state.slots.set_config(Arc::clone(config));
            }
            adopted
        };
        match adopted {
            Ok(Some(config)) => {
                let generation = config.generation;
                self.log.info(&format!("Configuration generation {generation} taken from the file"));
                self.tell_config(&config);
            }
            Ok(None) => {}
            Err(error) => {
                let text = format!("The changed configuration cannot be stored and is not taken: {error}");
                self.log.write(LogSeverity::Error, None, &text);
            }
        }
    }

    /// Gives a new configuration to everybody who has a node id.
    fn tell_config(&self, config: &Arc<ClusterConfig>) {
        let links: Vec<MgmLink> = {
            let state = self.state();
            let with_id = state.links.iter().filter(|(link, _)| state.slots.owned_by(**link).is_some());
            with_id.map(|(_, link)| link.clone()).collect()
        };
        let order = MgmOrder::ConfigChange(signals::codec::encode(&**config));
        for link in links {
            let (order, log) = (order.clone(), self.log.clone());
            tokio::spawn(async move {
                let answer: Result<MgmOrderAnswer, MgmError> = link.ask(&order, CONFIG_CHANGE_TIMEOUT).await;
                if let Err(error) = answer {
                    log.warn(&format!("{} did not take the new configuration: {error}", link.peer()));
                }
            });
        }
    }

    fn hello(&self) -> MgmHelloConf {
        MgmHelloConf {
            version: signals::mgm::VERSION,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            node: self.node_id,
            cluster: self.state().slots.config().name.clone(),
        }
    }

    /// One link from hello to end.
    async fn session(self: Arc<Server>, incoming: MgmIncoming) {
        let peer = incoming.peer();
        let link = match incoming.hello(&self.hello()).await {
            Ok((link, _)) => link,
            Err(error) => return self.peer_trouble(&format!("{peer}: no management link: {error}")),
        };
        self.state().links.insert(link.id(), link.clone());
        let reason = loop {
            match link.next_question().await {
                Ok(question) => {
                    tokio::spawn(Arc::clone(&self).question(link.clone(), question));
                }
                Err(error) => break error.detail,
            }
        };
        self.state().links.remove(&link.id());
        self.release(&link, &reason);
    }

    /// A link is gone: its id is free.
    pub(crate) fn release(self: &Arc<Server>, link: &MgmLink, reason: &str) {
        let released = {
            let mut state = self.state();
            state.slots.release(link.id()).map(|id| (id, state.slots.kind(id)))
        };
        let Some((id, kind)) = released else { return };
        self.log.write(LogSeverity::Info, Some(id), &format!("Disconnected: {reason}"));
        if kind == Some(NodeKind::DataNode) && !*self.is_deciding.borrow() {
            self.adopt_if_all_down();
        }
    }

    /// One question: read, answered, or the end of the link.
    async fn question(self: Arc<Server>, link: MgmLink, mut question: Question) {
        let request: MgmReq = match question.read().await {
            Ok(request) => request,
            Err(error) if error.code == ErrorCode::MGM_LINK_LOST => return,
            Err(error) => return self.drop_peer(&link, &error.to_string()),
        };
        if let Some(why) = request.invalid() {
            return self.drop_peer(&link, why);
        }
        let (answer, is_last) = requests::answer(&self, &link, request).await;
        let is_told = question.answer(&answer).await.is_ok();
        if is_last {
            if is_told {
                // The client hangs up when it has its answer; only then is it safe to close everything.
                let _ = tokio::time::timeout(Duration::from_secs(1), link.closed()).await;
            }
            self.is_stopping.send_replace(true);
        }
    }

    fn drop_peer(&self, link: &MgmLink, why: &str) {
        self.peer_trouble(&format!("{}: disconnected: {why}", link.peer()));
        link.close(why);
    }

    /// Logs a datagram that is no management link's, but not without end.
    fn stray_datagram(&self, stray: Stray) {
        let text =
            format!("{}: a datagram of {} bytes that begins no management link", stray.peer, stray.bytes);
        let line = self.state().stray_trouble.line(&text, Instant::now());
        if let Some(line) = line {
            self.log.warn(&line);
        }
    }

    /// Logs a misbehaving peer, but not without end.
    fn peer_trouble(&self, text: &str) {
        let line = self.state().peer_trouble.line(text, Instant::now());
        if let Some(line) = line {
            self.log.warn(&line);
        }
    }
}

/// Limits the lines about misbehaving peers.
#[derive(Debug)]
struct PeerTrouble {
    since: Instant,
    lines: u32,
    omitted: u64,
}

impl PeerTrouble {
    fn new() -> Self {
        Self { since: Instant::now(), lines: 0, omitted: 0 }
    }

    fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        if now.saturating_duration_since(self.since) >= PEER_TROUBLE_PERIOD {
            self.since = now;
            self.lines = 0;
        }
        if self.lines >= PEER_TROUBLE_MAX {
            self.omitted += 1;
            return None;
        }
        self.lines += 1;
        let omitted = std::mem::take(&mut self.omitted);
        Some(if omitted == 0 { text.to_owned() } else { format!("{text} ({omitted} like it before)") })
    }
}
