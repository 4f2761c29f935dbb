//! Process groups: a program and all it starts, killed together whatever happens to the test.
//!
//! The program leads a process group of its own, and what it starts stays in it. Dropping the [`Group`] kills
//! the group. A watchdog, a shell that waits on a pipe from this process, kills it too when this process ends
//! in any other way; that is also what ends a group that is kept in a static.

use crate::program::wait;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long the processes of a killed group may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// The ports of IPv4 that processes listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// TCP: clients of SQL, links between nodes.
    pub tcp: Vec<u16>,
    /// UDP: the management protocol.
    pub udp: Vec<u16>,
}

/// A running program and what it started.
pub(crate) struct Group {
    leader: Child,
    id: Pid,
    watchdog: Child,
    /// Closing it wakes the watchdog.
    watchdog_pipe: Option<ChildStdin>,
}

impl Group {
    /// Starts a program as the leader of a new group.
    pub(crate) fn spawn(command: &mut Command) -> Group {
        let name = command.get_program().to_string_lossy().into_owned();
        let leader = command.process_group(0).spawn().unwrap_or_else(|e| panic!("cannot start {name}: {e}"));
        let id = Pid::from_child(&leader);
        let mut watchdog = watchdog(id);
        let watchdog_pipe = watchdog.stdin.take();
        Group { leader, id, watchdog, watchdog_pipe }
    }

    /// How the leader ended, if it did.
    pub(crate) fn leader_status(&mut self) -> Option<ExitStatus> {
        self.leader.try_wait().ok().flatten()
    }

    /// The processes of the group.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let group = self.id.as_raw_nonzero().get().to_string();
        let in_group = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name in parentheses may hold anything; after it come state, parent and group.
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            fields.split_ascii_whitespace().nth(2) == Some(&group)
        };
        let mut pids: Vec<u32> = numbered_entries(Path::new("/proc")).into_iter().filter(in_group).collect();
        pids.sort_unstable();
        pids
    }

    /// The ports of IPv4 that the group listens on.
    pub(crate) fn listening_ports(&self) -> Ports {
        let sockets: Vec<String> = self.pids().into_iter().flat_map(socket_inodes).collect();
        // Listening is state 0A of TCP; 07 is a UDP socket without a peer.
        Ports { tcp: bound("/proc/net/tcp", "0A", &sockets), udp: bound("/proc/net/udp", "07", &sockets) }
    }

    /// Kills every process of the group and waits until they are gone.
    pub(crate) fn kill(&mut self) {
        // Fails only when no process of the group is left.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = wait(&mut self.leader, KILL_LIMIT);
        let deadline = Instant::now() + KILL_LIMIT;
        while test_kill_process_group(self.id).is_ok() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The watchdog goes first: it must not kill a group that reuses the number.
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
        drop(self.watchdog_pipe.take());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell that kills the group when its input ends, which happens when this process does.
fn watchdog(group: Pid) -> Child {
    Command::new("sh")
        .args(["-c", "read -r line; kill -s KILL -- \"-$0\" 2>/dev/null"])
        .arg(group.as_raw_nonzero().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start the watchdog: {e}"))
}

fn numbered_entries(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn socket_inodes(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let target = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    entries.filter_map(target).collect()
}

/// The ports of a table of sockets that are in a state and among those given.
fn bound(table: &str, wanted: &str, sockets: &[String]) -> Vec<u16> {
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        if *state != wanted || !sockets.iter().any(|socket| socket == inode) {
            return None;
        }
        u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
    };
    let mut ports: Vec<u16> =
        fs::read_to_string(table).unwrap_or_default().lines().skip(1).filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + KILL_LIMIT;
        while !done() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn family() -> Group {
        let group = Group::spawn(Command::new("sh").args(["-c", "sleep 600 & sleep 600 & wait"]));
        until("the shell starts two programs", || group.pids().len() == 3);
        group
    }

    #[test]
    fn dropping_a_group_kills_all_of_it() {
        let group = family();
        let id = group.id;
        drop(group);
        assert!(test_kill_process_group(id).is_err());
    }

    #[test]
    fn the_watchdog_kills_when_the_pipe_closes() {
        let mut group = family();
        drop(group.watchdog_pipe.take());
        // The leader is this process's child and stays until it is waited for.
        until("the leader is killed", || group.leader_status().is_some());
        until("its children are killed", || test_kill_process_group(group.id).is_err());
    }

    #[test]
    fn listening_ports_are_found() {
        let script = "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n\
                      u = socket.socket(type=socket.SOCK_DGRAM)\nu.bind(s.getsockname())\n\
                      print(s.getsockname()[1], flush=True)\ntime.sleep(600)";
        let mut command = Command::new("python3");
        let mut group = Group::spawn(command.args(["-c", script]).stdout(Stdio::piped()));
        let mut line = String::new();
        let output = group.leader.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        assert_eq!(group.listening_ports(), Ports { tcp: vec![port], udp: vec![port] });
    }
}
