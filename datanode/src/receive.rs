//! Receive: the links a worker reads - epoll, big reads, frames handled where they lie.
//!
//! Per turn a link is read once, a chunk at most, and its frames are walked: checked ([`Screen`]), handled
//! in place if their block lives here, copied into another worker's batch if not. A link's walk stops early
//! when the outbox has grown (it is shipped first) or when the peer does not read its answers; the rest
//! waits in the link's buffer, among the `unfinished`. States of a link here:
//!
//! ```text
//!   reading ──► unfinished ──► reading      whole frames are left over
//!   reading ──► paused ──► unfinished       the peer has to read answers first; its socket is not read meanwhile
//!   any ──► dying ──► gone                  the end was seen; told to the directory when nothing of it is left in
//!                                           this worker's batches
//! ```
//!
//! A peer's malformed bytes end its link and nothing else.

use crate::core::{Core, SHIP_BYTES};
use crate::directory::Birth;
use crate::link_out::{LinkOut, watch_reader};
use crate::screen::Screen;
use crate::usage::Counters;
use kernel::{RouteId, Severity};
use rustix::event::{Timespec, epoll};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use transporter::{FrameReader, LinkReader, PeerRole, ReadOutcome};

/// The token of the worker's own wake-up.
pub(crate) const WAKE_TOKEN: u64 = u64::MAX;
/// Events taken from epoll at once.
const EVENTS_MAX: usize = 64;
/// Frames walked between two looks at the outbox.
const LOOK_EVERY: u32 = 32;

struct Receiving {
    route: RouteId,
    reader: LinkReader,
    frames: FrameReader,
    screen: Screen,
    out: Arc<LinkOut>,
    in_process: bool,
    paused: bool,
    unfinished: bool,
    dying: bool,
}

/// How a walk over received frames ended.
enum Walk {
    /// Only the beginning of a frame is left, or nothing.
    Done,
    /// Stopped early; whole frames may be left.
    Stopped,
    /// The peer broke the protocol.
    Broken(&'static str),
}

/// See the module.
pub(crate) struct Receiver {
    epoll: Arc<OwnedFd>,
    first_route: u16,
    links: Vec<Option<Box<Receiving>>>,
    /// Numbers of in-process links: they are asked directly.
    in_process: Vec<usize>,
    unfinished: Vec<usize>,
    paused: Vec<usize>,
    dying: Vec<(usize, String)>,
    events: Vec<epoll::Event>,
}

impl Receiver {
    pub(crate) fn new(epoll: Arc<OwnedFd>, first_route: u16) -> Self {
        Self {
            epoll,
            first_route,
            links: Vec::new(),
            in_process: Vec::new(),
            unfinished: Vec::new(),
            paused: Vec::new(),
            dying: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
        }
    }

    /// Whether this worker reads links at all.
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Begins to read a link.
    pub(crate) fn adopt(&mut self, birth: &Birth, core: &Core) {
        let Some(reader) = birth.take_reader() else { return };
        let number = usize::from(birth.route.0 - self.first_route);
        if self.links.len() <= number {
            self.links.resize_with(number + 1, || None);
        }
        let in_process = reader.wake_handle().is_some();
        let watched = watch_reader(&self.epoll, &reader, u64::from(birth.route.0));
        let screen = Screen::new(core.directory.node, &birth.out.peer);
        core.log(Severity::Info, format!("connected to {}", birth.out.peer));
        self.links[number] = Some(Box::new(Receiving {
            route: birth.route,
            reader,
            frames: FrameReader::new(),
            screen,
            out: birth.out.clone(),
            in_process,
            paused: false,
            unfinished: false,
            dying: false,
        }));
        if in_process {
            self.in_process.push(number);
        }
        match watched {
            // It may have been shut down or blocked before it was watched.
            Ok(()) if birth.out.is_blocked() => core.on_room(&birth.out),
            Ok(()) => {}
            Err(error) => self.end(number, format!("cannot be watched: {error}")),
        }
    }

    /// Serves the links that have something, without waiting. Returns the signals handled.
    pub(crate) fn poll(&mut self, timeout: &Timespec, core: &mut Core) -> usize {
        match self.poll_asleep(timeout) {
            0 => 0,
            events => self.serve_events(events, core),
        }
    }

    /// Waits for links or the wake-up, at most `timeout`; returns how many events [`Self::serve_events`] will
    /// serve.
    pub(crate) fn poll_asleep(&mut self, timeout: &Timespec) -> usize {
        self.events.clear();
        // Interrupted: as good as over.
        epoll::wait(&*self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(timeout))
            .unwrap_or(0)
    }

    /// Serves the links of the events got before.
    pub(crate) fn serve_events(&mut self, events: usize, core: &mut Core) -> usize {
        let mut count = 0;
        for index in 0..events.min(self.events.len()) {
            let Some(event) = self.events.get(index) else { break };
            let (token, flags) = (event.data.u64(), event.flags);
            if token == WAKE_TOKEN {
                continue;
            }
            let Ok(route) = u16::try_from(token) else { continue };
            count += self.on_event(usize::from(route.wrapping_sub(self.first_route)), flags, core);
        }
        count
    }

    fn on_event(&mut self, number: usize, flags: epoll::EventFlags, core: &mut Core) -> usize {
        let Some(Some(link)) = self.links.get(number) else { return 0 };
        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
        if link.dying {
            return 0;
        }
        if flags.contains(epoll::EventFlags::OUT) || (broken && link.out.is_blocked()) {
            core.on_room(&link.out);
        }
        if link.paused && broken {
            self.end(number, "the peer is gone".to_owned());
            return 0;
        }
        if flags.contains(epoll::EventFlags::IN) || broken {
            return self.read(number, core);
        }
        0
    }

    /// Serves what needs no epoll event: in-process links, leftovers, the paused and the dying.
    pub(crate) fn serve(&mut self, core: &mut Core) -> usize {
        let mut count = 0;
        for index in 0..self.in_process.len() {
            let Some(&number) = self.in_process.get(index) else { break };
            let Some(Some(link)) = self.links.get(number) else { continue };
            if link.out.is_blocked() && link.out.has_room() {
                core.on_room(&link.out);
            }
            if !link.dying && !link.paused && link.reader.is_ready() == Some(true) {
                count += self.read(number, core);
            }
        }
        if !self.unfinished.is_empty() {
            for number in std::mem::take(&mut self.unfinished) {
                if let Some(Some(link)) = self.links.get_mut(number) {
                    link.unfinished = false;
                    count += self.walk(number, core);
                }
            }
        }
        if !self.paused.is_empty() {
            self.unpause();
        }
        if !self.dying.is_empty() && core.backlog() == 0 {
            self.bury(core);
        }
        count
    }

    /// Whether [`Self::serve`] has something to do at once.
    pub(crate) fn has_work(&self) -> bool {
        !self.unfinished.is_empty()
            || !self.dying.is_empty()
            || self.in_process.iter().any(|number| match self.links.get(*number) {
                Some(Some(link)) => !link.dying && !link.paused && link.reader.is_ready() == Some(true),
                _ => false,
            })
    }

    fn read(&mut self, number: usize, core: &mut Core) -> usize {
        if core.is_behind() {
            return 0;
        }
        let Some(Some(link)) = self.links.get_mut(number) else { return 0 };
        if link.dying || link.paused || link.unfinished {
            return 0;
        }
        match link.reader.read_into(&mut link.frames) {
            Ok(ReadOutcome::Bytes(bytes)) => {
                Counters::add(&core.counters.received_bytes, bytes as u64);
                self.walk(number, core)
            }
            Ok(ReadOutcome::WouldBlock) => 0,
            Ok(ReadOutcome::Closed) => {
                self.end(number, "closed by the peer".to_owned());
                0
            }
            Err(error) => {
                self.end(number, error.to_string());
                0
            }
        }
    }

    fn walk(&mut self, number: usize, core: &mut Core) -> usize {
        let Some(Some(link)) = self.links.get_mut(number) else { return 0 };
        if link.dying {
            return 0;
        }
        let (walk, count) = link.walk(core);
        match walk {
            Walk::Done => {}
            Walk::Stopped => {
                if link.out.is_overloaded() {
                    link.paused = true;
                    link.out.pause(true);
                    self.paused.push(number);
                } else {
                    link.unfinished = true;
                    self.unfinished.push(number);
                }
            }
            Walk::Broken(reason) => {
                // The peer learns nothing but the end.
                link.out.close(format!("malformed bytes: {reason}"));
                self.end(number, String::new());
            }
        }
        count
    }

    fn unpause(&mut self) {
        let Self { links, paused, unfinished, .. } = self;
        paused.retain(|number| {
            let Some(Some(link)) = links.get_mut(*number) else { return false };
            if link.dying {
                return false;
            }
            if link.out.is_overloaded() {
                return true;
            }
            link.paused = false;
            link.out.pause(false);
            link.unfinished = true;
            unfinished.push(*number);
            false
        });
    }

    /// The end of a link was seen.
    fn end(&mut self, number: usize, reason: String) {
        let Some(Some(link)) = self.links.get_mut(number) else { return };
        if !link.dying {
            link.dying = true;
            if !link.in_process {
                let _ = epoll::delete(&*self.epoll, &link.reader);
            }
            self.dying.push((number, reason));
        }
    }

    /// Tells everybody of links that ended. Everything they brought has left this worker.
    fn bury(&mut self, core: &mut Core) {
        for (number, reason) in std::mem::take(&mut self.dying) {
            let Some(link) = self.links.get_mut(number).and_then(Option::take) else { continue };
            self.in_process.retain(|n| *n != number);
            self.unfinished.retain(|n| *n != number);
            self.paused.retain(|n| *n != number);
            let reason = link.out.closing_reason().unwrap_or(reason);
            // Clients come and go; a data node that goes is news.
            let severity = match link.out.peer.role {
                PeerRole::ApiNode if link.out.closing_reason().is_none() => Severity::Info,
                PeerRole::ApiNode | PeerRole::DataNode => Severity::Warning,
            };
            core.log(severity, format!("link to {} is gone: {reason}", link.out.peer));
            // So that other workers' writes fail too, whatever ended the link.
            link.out.close(reason.clone());
            core.directory.link_lost(link.route, &link.out.peer, reason);
        }
    }

    /// Before sleep: the last look at in-process links, whose peers wake the worker only from now on, and at
    /// paused ones, whose writers do.
    pub(crate) fn may_sleep(&self) -> bool {
        !self.has_work()
            && !self.paused.iter().any(|number| match self.links.get(*number) {
                Some(Some(link)) => !link.dying && !link.out.is_overloaded(),
                _ => false,
            })
            && !self.in_process.iter().any(|number| match self.links.get(*number) {
                Some(Some(link)) => link.out.is_blocked() && link.out.has_room(),
                _ => false,
            })
    }
}

impl Receiving {
    /// Walks whole frames until none is left or it is time to ship.
    fn walk(&mut self, core: &mut Core) -> (Walk, usize) {
        let (mut taken, mut count, mut look) = (0, 0u32, LOOK_EVERY);
        let mut end = Walk::Done;
        let bytes = self.frames.bytes();
        loop {
            let frame = match signals::frame::next_frame(&bytes[taken..]) {
                Ok(Some((frame, _))) => frame,
                Ok(None) => break,
                Err(invalid) => {
                    end = Walk::Broken(invalid.0);
                    break;
                }
            };
            if look == 0 {
                look = LOOK_EVERY;
                if core.out.pending_total() > SHIP_BYTES || self.out.is_overloaded() || core.is_behind() {
                    end = Walk::Stopped;
                    break;
                }
            }
            look -= 1;
            let delivered = match self.screen.check(frame) {
                Ok(target) => core.deliver(target, frame).map_err(|invalid| invalid.0),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = delivered {
                end = Walk::Broken(reason);
                break;
            }
            taken += frame.len();
            count += 1;
        }
        self.frames.consume(taken);
        (end, count as usize)
    }
}
