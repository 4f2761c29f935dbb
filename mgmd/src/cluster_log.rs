//! The cluster log: one line per event, UTC with microseconds, in `ndb_<id>_cluster.log`, rotated by size.
//!
//! Whoever logs only puts a line into a bounded queue; a thread of its own writes. When the disk is slow or
//! full, lines are lost and counted, and the count is written once there is room again. A file that would
//! grow beyond [`FILE_BYTES_MAX`] becomes `.1`, `.1` becomes `.2`, and so on; the oldest of [`FILES_MAX`]
//! goes.

use signals::ids::NodeId;
use signals::mgm::LogSeverity;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes after which the file is rotated.
pub const FILE_BYTES_MAX: u64 = 1_000_000;
/// Files kept: the one being written and the rotated ones.
pub const FILES_MAX: u32 = 6;
/// Lines that may wait for the disk.
const QUEUE: usize = 4096;
/// Longest line.
const LINE_BYTES_MAX: usize = 4096;

/// The log; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    lines: Mutex<Option<mpsc::SyncSender<String>>>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ClusterLog {
    /// Opens the log of this server in its data directory.
    pub(crate) fn open(data_dir: &Path, node: NodeId) -> io::Result<ClusterLog> {
        ClusterLog::open_sized(&data_dir.join(format!("ndb_{node}_cluster.log")), FILE_BYTES_MAX)
    }

    fn open_sized(path: &Path, bytes_max: u64) -> io::Result<ClusterLog> {
        let mut file = Rotated::open(path, bytes_max)?;
        let lost = Arc::new(AtomicU64::new(0));
        let (lines, queue) = mpsc::sync_channel::<String>(QUEUE);
        let lost_of_thread = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("cluster-log".to_owned()).spawn(move || {
            let mut told = 0;
            while let Ok(line) = queue.recv() {
                let lost = lost_of_thread.load(Ordering::Relaxed);
                if lost > told
                    && file.write(&line_of(LogSeverity::Warning, None, &lost_words(lost - told))).is_ok()
                {
                    told = lost;
                }
                if file.write(&line).is_err() {
                    lost_of_thread.fetch_add(1, Ordering::Relaxed);
                }
            }
        })?;
        let inner = Inner {
            path: path.to_owned(),
            lines: Mutex::new(Some(lines)),
            lost,
            thread: Mutex::new(Some(thread)),
        };
        Ok(ClusterLog { inner: Arc::new(inner) })
    }

    /// Writes a line, about a node or about the server itself.
    pub(crate) fn write(&self, severity: LogSeverity, node: Option<NodeId>, text: &str) {
        let line = line_of(severity, node, text);
        let lines = self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !is_taken {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn info(&self, text: &str) {
        self.write(LogSeverity::Info, None, text);
    }

    pub(crate) fn warn(&self, text: &str) {
        self.write(LogSeverity::Warning, None, text);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.inner.path
    }

    pub(crate) fn lost_lines(&self) -> u64 {
        self.inner.lost.load(Ordering::Relaxed)
    }

    /// Writes what waits and ends the thread.
    pub(crate) fn close(&self) {
        self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.inner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn lost_words(lost: u64) -> String {
    format!("{lost} lines of this log were lost: its disk is too slow or full")
}

/// A whole line with its line end; control characters of the text cannot make two lines of it.
fn line_of(severity: LogSeverity, node: Option<NodeId>, text: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let stamp = utc(now.as_secs(), now.subsec_micros());
    let mut line = format!("{stamp} [MgmtSrvr] {:<8} -- ", severity.name());
    if let Some(node) = node {
        line.push_str(&format!("Node {node}: "));
    }
    for c in text.chars() {
        if line.len() >= LINE_BYTES_MAX {
            line.push_str("...");
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line.push('\n');
    line
}

/// `2026-11-30 22:27:10.123456`, by the usual arithmetic of the Gregorian calendar.
fn utc(seconds: u64, micros: u32) -> String {
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    // Count from 0000-03-01, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// A file that is rotated when it has grown.
struct Rotated {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl Rotated {
    fn open(path: &Path, bytes_max: u64) -> io::Result<Rotated> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Rotated { path: path.to_owned(), file, bytes, bytes_max })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.bytes > 0 && self.bytes.saturating_add(length) > self.bytes_max {
            self.rotate()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes = self.bytes.saturating_add(length);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..FILES_MAX - 1).rev() {
            match std::fs::rename(numbered(n), numbered(n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::rename(&self.path, numbered(1))?;
        *self = Rotated::open(&self.path, self.bytes_max)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_to_the_microsecond() {
        assert_eq!(utc(0, 0), "1970-01-01 00:00:00.000000");
        assert_eq!(utc(951_782_400, 7), "2000-02-29 00:00:00.000007");
        assert_eq!(utc(1_796_077_630, 123_456), "2026-11-30 22:27:10.123456");
        assert_eq!(utc(4_102_444_799, 999_999), "2099-12-31 23:59:59.999999");
    }

    #[test]
    fn the_log_is_rotated_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ndb_145_cluster.log");
        let log = ClusterLog::open_sized(&path, 1000).unwrap();
        for i in 0..200 {
            log.write(
                LogSeverity::Info,
                Some(NodeId(1)),
                &format!("event number {i:04}\nand no second line"),
            );
        }
        log.close();
        let mut names: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let wanted: Vec<String> = std::iter::once("ndb_145_cluster.log".to_owned())
            .chain((1..FILES_MAX).map(|n| format!("ndb_145_cluster.log.{n}")))
            .collect();
        assert_eq!(names, wanted);
        let mut all = Vec::new();
        for name in names.iter().rev() {
            let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
            assert!(text.len() <= 1000, "{name}: {}", text.len());
            all.extend(text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
        // What is kept is the newest, in order, without a gap.
        let first = 200 - all.len();
        for (i, line) in all.iter().enumerate() {
            let text =
                format!("[MgmtSrvr] INFO     -- Node 1: event number {:04} and no second line", first + i);
            assert!(line.ends_with(&text), "{line}");
        }
        assert!(all.len() > 20);
        log.write(LogSeverity::Info, None, "too late");
        assert_eq!(log.lost_lines(), 1);
    }
}
