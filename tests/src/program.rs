//! Programs: run one with a time limit, keep what it says.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Finished {
    /// Its exit code; `None` if a signal or the time limit ended it.
    pub code: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended by itself with exit code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// Its standard output.
    ///
    /// # Panics
    /// With everything the program said, unless it succeeded.
    #[must_use]
    pub fn expect_success(self, what: &str) -> String {
        assert!(self.succeeded(), "{what} failed: {self:#?}");
        self.stdout
    }
}

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Runs a program to its end, or kills it when the time is up.
///
/// # Panics
/// If the program cannot be started: its name and what to install are in the text.
pub fn run(command: &mut Command, limit: Duration) -> Finished {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run {name}: {e} (the stories need it: install it)"));
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let (code, timed_out) = wait(&mut child, limit);
    Finished { code, timed_out, stdout: joined(stdout), stderr: joined(stderr) }
}

/// Waits for the end of a child, or kills it when the time is up.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> (Option<i32>, bool) {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (status.code(), false),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                // Either call fails only if the child is gone already.
                let _ = child.kill();
                let _ = child.wait();
                return (None, true);
            }
        }
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(reader: JoinHandle<String>) -> String {
    reader.join().unwrap_or_default()
}

/// A TCP port of the loopback that was free a moment ago.
///
/// # Panics
/// If the machine has none left.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|l| l.local_addr());
    address.unwrap_or_else(|e| panic!("no free TCP port on 127.0.0.1: {e}")).port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_exit_code_are_kept() {
        let finished =
            run(Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"]), Duration::from_secs(10));
        assert_eq!((finished.code, finished.timed_out), (Some(3), false));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("a\n", "b\n"));
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let finished = run(Command::new("sleep").arg("600"), Duration::from_millis(50));
        assert!(finished.timed_out && finished.code.is_none());
    }
}
