//! Trace: what happened in a run, as a running hash always, as text when somebody wants to read it.
//!
//! Two runs are the same if their hashes are; the hash takes in every byte of every signal with its time and
//! place.

use super::agenda::Nanos;
use signals::NodeId;
use signals::frame::{frame_source, frame_target};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// See the module.
pub(crate) struct Trace {
    pub(crate) now: Nanos,
    hash: u64,
    /// Lines, if they are kept.
    lines: Option<Vec<String>>,
    /// Lines are printed as they come.
    print: bool,
    pub(crate) signals: u64,
}

impl Trace {
    pub(crate) fn new(keep: bool, print: bool) -> Self {
        Self { now: 0, hash: 0, lines: keep.then(Vec::new), print, signals: 0 }
    }

    /// The hash so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines kept.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.hash = xxh3_64_with_seed(bytes, self.hash ^ self.now);
    }

    /// A worker handles a signal.
    pub(crate) fn signal(&mut self, node: NodeId, worker: usize, frame: &[u8]) {
        self.signals += 1;
        self.mix(frame);
        if self.lines.is_some() || self.print {
            let (source, target) = (frame_source(frame), frame_target(frame));
            let name = signal_name(frame);
            self.line(&format!("{node}.{worker} {name} {source:?} -> {target:?}"));
        }
    }

    /// Something else happens.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        let text = text();
        self.mix(text.as_bytes());
        if self.lines.is_some() || self.print {
            self.line(&text);
        }
    }

    /// Whether lines are kept or printed.
    pub(crate) fn is_read(&self) -> bool {
        self.print || self.lines.is_some()
    }

    /// A line for readers, of what has no effect on the run.
    pub(crate) fn remark(&mut self, text: &str) {
        if self.is_read() {
            self.line(text);
        }
    }

    fn line(&mut self, text: &str) {
        let line = format!("{:>14.6} {text}", self.now as f64 / 1e6);
        if self.print {
            println!("{line}");
        }
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }
}

/// The name of a frame's signal; control signals by the name of what is in them.
fn signal_name(frame: &[u8]) -> String {
    match signals::Signal::parse(frame) {
        Ok((_, signals::Signal::Control(control))) => {
            let text = format!("{control:?}");
            text.split(['{', '(']).filter(|s| !s.is_empty()).take(3).collect::<Vec<_>>().join(" ")
        }
        Ok((_, signal)) => {
            let mut text = format!("{signal:?}");
            text.truncate(text.floor_char_boundary(600));
            text
        }
        Err(invalid) => format!("invalid: {invalid}"),
    }
}
