//! The processes of a quickstart cluster: start, pid files, and their end.
//!
//! A pid file is believed only if the process it names is a `nucdb` of that role working in that very
//! folder. Anything else is a stale file: numbers are used again, and must never lead to another cluster's
//! process.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How much of a log is shown with a failure.
const TAIL_LINES: usize = 10;
/// Lines longer than this on average are cut short.
const TAIL_BYTES: u64 = 8 << 10;

/// A process this program started.
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

fn pid_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.pid"))
}

/// The live process of a pid file, if it is what the file says.
#[must_use]
pub fn read_pid(dir: &Path, name: &str) -> Option<u32> {
    let pid: u32 = fs::read_to_string(pid_file(dir, name)).ok()?.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|b| *b == 0);
    let program = String::from_utf8_lossy(words.next()?).into_owned();
    let role = String::from_utf8_lossy(words.next()?).into_owned();
    // Every process of a cluster works in the cluster's folder. Where another user's process works is not for
    // us to see; it is believed, lest its cluster be taken for stopped.
    let same_folder = match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(works_in) => dir.canonicalize().is_ok_and(|dir| dir == works_in),
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let is_ours = program.ends_with("nucdb") && !role.is_empty() && name.starts_with(&role) && same_folder;
    is_ours.then_some(pid)
}

/// The names of the pid files in a folder: of processes that run or have run. Not taken from the
/// configuration, which may have been edited since they were started.
#[must_use]
pub fn names_of_pid_files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let name = |file: fs::DirEntry| file.file_name().to_str()?.strip_suffix(".pid").map(str::to_string);
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_unstable();
    names
}

/// Writes a pid file.
fn write_pid(dir: &Path, name: &str, pid: u32) -> Result<(), String> {
    let file = pid_file(dir, name);
    fs::write(&file, pid.to_string()).map_err(|e| format!("cannot write {}: {e}", file.display()))
}

/// The front door's own pid file while it is in the foreground; it goes with this value. Whoever wants to
/// stop the cluster asks the front door, which would take the end of a process for a failure.
pub(super) struct Foreground {
    dir: PathBuf,
}

/// The name of the front door's own pid file.
pub const FOREGROUND: &str = "quickstart";

impl Foreground {
    /// Writes the file, and makes the folder this process's own as pid files want it.
    pub(super) fn enter(dir: &Path) -> Result<Self, String> {
        std::env::set_current_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        write_pid(dir, FOREGROUND, std::process::id())?;
        Ok(Self { dir: dir.to_path_buf() })
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        remove_pid(&self.dir, FOREGROUND);
    }
}

/// Removes a pid file; one that is not there is no matter.
pub fn remove_pid(dir: &Path, name: &str) {
    let _ = fs::remove_file(pid_file(dir, name));
}

impl Process {
    /// Starts this binary with `arguments`, its output in `<name>.log`; writes `<name>.pid`.
    pub(super) fn start(
        dir: &Path,
        name: &str,
        arguments: &[String],
        own_group: bool,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let log = dir.join(format!("{name}.log"));
        let output = File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let errors = output.try_clone().map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors).current_dir(dir);
        if own_group {
            // A Ctrl-C at the terminal is for the front door alone, which stops the cluster in order.
            command.process_group(0);
        }
        let child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
        let process = Self { name: name.to_string(), log, child };
        if let Err(error) = write_pid(dir, name, process.child.id()) {
            let mut process = process;
            process.kill();
            return Err(error);
        }
        Ok(process)
    }

    /// The process's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to say about the process's end, with the last lines of its log, if it has ended.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(with_log_tail(&format!("{} ended ({status})", self.name), &self.log))
    }

    /// Ends the process at once.
    pub(super) fn kill(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A failure followed by the last lines of a log, which tell more than the failure alone.
pub(super) fn with_log_tail(failure: &str, log: &Path) -> String {
    let text = String::from_utf8_lossy(&tail_bytes(log)).into_owned();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let shown = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default();
    if shown.is_empty() {
        return format!("{failure}; its log {} is empty", log.display());
    }
    format!("{failure}; the end of {}:\n  {}", log.display(), shown.join("\n  "))
}

/// The last bytes of a file, enough for the lines that are shown.
fn tail_bytes(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(file) {
        let length = file.metadata().map_or(0, |m| m.len());
        // What cannot be read is not shown.
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)));
        let _ = file.take(TAIL_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

/// Asks a process to end and waits for it.
///
/// # Errors
/// It is still there after `limit`.
pub fn stop_process(pid: u32, limit: Duration) -> Result<(), String> {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    match kill_process(target, Signal::TERM) {
        Err(rustix::io::Errno::PERM) => Err(format!("process {pid} is another user's and cannot be stopped")),
        // It fails otherwise only for a process that is gone.
        Ok(()) | Err(_) => wait_gone(pid, limit),
    }
}

/// Waits until a process is gone or a zombie its parent has not looked at.
pub(crate) fn wait_gone(pid: u32, limit: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while is_alive(pid) {
        if begun.elapsed() > limit {
            return Err(format!("process {pid} does not end within {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim_start());
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_of_another_program_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_pid(folder.path(), "mgmd"), None);
        fs::write(folder.path().join("mgmd.pid"), std::process::id().to_string()).unwrap();
        assert_eq!(read_pid(folder.path(), "mgmd"), None, "this test is no management server");
        fs::write(folder.path().join("mgmd.pid"), "not a number").unwrap();
        assert_eq!(read_pid(folder.path(), "mgmd"), None);
        remove_pid(folder.path(), "mgmd");
        assert!(!folder.path().join("mgmd.pid").exists());
    }

    #[test]
    fn a_failure_shows_the_end_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.log");
        assert!(with_log_tail("a ended", &log).ends_with("a.log is empty"));
        let lines: Vec<String> = (1..=12).map(|i| format!("line {i}\n\n")).collect();
        fs::write(&log, lines.concat()).unwrap();
        let text = with_log_tail("a ended", &log);
        assert!(text.starts_with("a ended; the end of ") && text.ends_with("line 11\n  line 12"), "{text}");
        assert!(text.contains("  line 3\n") && !text.contains("line 2\n"), "{text}");
        fs::write(&log, "x".repeat(100_000)).unwrap();
        assert!(with_log_tail("a ended", &log).len() < 9_000);
    }

    #[test]
    fn a_stopped_process_is_waited_for() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        stop_process(child.id(), Duration::from_secs(10)).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!is_alive(child.id()));
    }
}
