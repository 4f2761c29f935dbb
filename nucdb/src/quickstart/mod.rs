//! `nucdb quickstart`: a whole cluster on this machine from one command.
//!
//! It writes a folder that any later start uses again: `config.ini`, `cluster.json` (the ports), a data
//! folder, a log and a pid file per process. The processes are this binary again, as `nucdb mgmd`, `nucdb
//! datanode` and `nucdb sqlnode`. In the foreground it stays and stops them all when it is told to end;
//! with `--detach` it leaves them running for `nucdb stop`.
//!
//! With `--single-process` all nodes live in one process (see `single`): this one in the foreground, `nucdb
//! single` with `--detach`. The choice is each start's own; the folder is the same.
//!
//! Order: check everything that can be checked before anything runs (folder, ports, a cluster that runs
//! already), start, wait until SQL really answers, say what to type next. Whatever fails, nothing is left
//! running.

mod answer;
mod layout;
mod process;
mod single;

pub use layout::Layout;
pub(crate) use layout::cluster_folder;
pub use process::{FOREGROUND, Process, names_of_pid_files, read_pid, remove_pid, stop_process};
pub use single::NAME as SINGLE;

use crate::say;
use clap::Args;
use mgmd::command::{Format, Session};
use process::{Foreground, with_log_tail};
use single::Single;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a cluster may take to answer SQL.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long the management server may take to answer.
const MGMD_LIMIT: Duration = Duration::from_secs(20);

/// Command line of `nucdb quickstart`.
#[derive(Args, Debug, Clone)]
pub struct Arguments {
    /// The cluster's folder; made if absent, started again if it holds a cluster
    #[arg(long, default_value = "nucdb-data")]
    pub dir: PathBuf,
    /// Leave the cluster running and return
    #[arg(long)]
    pub detach: bool,
    /// Run all nodes in one process: quicker to start and smaller, but one fault ends them all
    #[arg(long)]
    pub single_process: bool,
    /// Data nodes of a new cluster [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=48))]
    pub data_nodes: Option<u16>,
    /// Replicas of each row in a new cluster [default: 2, or 1 with one data node]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4))]
    pub replicas: Option<u16>,
    /// UDP port of the management server of a new cluster [default: 1186]
    #[arg(long)]
    pub mgm_port: Option<u16>,
    /// TCP port of the SQL node of a new cluster [default: 3306]
    #[arg(long)]
    pub sql_port: Option<u16>,
    /// DataMemory of each data node of a new cluster, as in config.ini [default: 98M]
    #[arg(long)]
    pub data_memory: Option<String>,
}

/// Starts a cluster.
///
/// # Errors
/// One line: what is in the way and what to do about it. Nothing is left running.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let (layout, known) = Layout::open_or_create(arguments)?;
    let lock = layout.lock()?;
    layout.refuse_if_running()?;
    layout.check_ports()?;
    if let Some(warning) = layout.memory_warning() {
        eprintln!("{warning}");
    }
    if known {
        say!("Starting the cluster in {} again.", layout.dir.display());
        say!("Tables live in memory: what it held before its last full stop is gone.");
    }
    let stop = Arc::new(AtomicBool::new(false));
    watch_signals(&stop)?;
    let foreground = match arguments.detach {
        true => None,
        false => Some(Foreground::enter(&layout.dir)?),
    };
    if arguments.single_process && !arguments.detach {
        return run_here(&layout, lock, &stop);
    }
    let mut cluster = Running { layout: layout.clone(), processes: Vec::new(), keep: false };
    // Away from a terminal the processes share the front door's group, so that whoever started it can end
    // all of them.
    let own_groups = arguments.detach || std::io::stdin().is_terminal();
    match arguments.single_process {
        true => cluster.start_single(own_groups)?,
        false => cluster.start(own_groups)?,
    }
    wait_until_ready(&layout, &stop, || cluster.first_ended())?;
    drop(lock);
    print_next(&layout, arguments.detach);
    if arguments.detach {
        cluster.keep = true;
        return Ok(());
    }
    watch(&stop, || cluster.first_ended())?;
    say!("Stopping.");
    cluster.keep = true;
    // What follows stops whatever pid files name.
    drop(foreground);
    crate::stop::stop(&layout.dir)
}

/// Waits until told to end.
///
/// # Errors
/// Something ended before.
fn watch(stop: &AtomicBool, mut ended: impl FnMut() -> Option<String>) -> Result<(), String> {
    while !stop.load(Ordering::Relaxed) {
        if let Some(line) = ended() {
            return Err(line);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Runs all nodes in this process, in the foreground.
fn run_here(layout: &Layout, lock: std::fs::File, stop: &AtomicBool) -> Result<(), String> {
    let log = layout.dir.join(format!("{SINGLE}.log"));
    single::log_to(Some(&log))?;
    let result = Single::start(layout).and_then(|mut cluster| {
        let ready = wait_until_ready(layout, stop, || cluster.failure());
        let ended = ready.and_then(|()| {
            drop(lock);
            print_next(layout, false);
            watch(stop, || cluster.failure())
        });
        if ended.is_ok() {
            say!("Stopping.");
        }
        let stopped = cluster.stop();
        ended.and(stopped)
    });
    result.map_err(|failure| with_log_tail(&failure, &log))
}

/// Command line of `nucdb single`: the process behind `quickstart --single-process --detach`.
#[derive(Args, Debug, Clone)]
pub struct SingleArguments {
    /// The cluster's folder
    #[arg(long)]
    dir: PathBuf,
}

/// Runs all nodes of a folder in this process until it is told to end; the log goes to standard error.
///
/// # Errors
/// A node cannot start, or failed. The process must end then: it holds the rest of a cluster that has
/// stopped.
pub fn run_single(arguments: &SingleArguments) -> Result<(), String> {
    single::log_to(None)?;
    let layout = Layout::open(&arguments.dir)?;
    let stop = Arc::new(AtomicBool::new(false));
    watch_signals(&stop)?;
    let mut cluster = Single::start(&layout)?;
    let ended = watch(&stop, || cluster.failure());
    let stopped = cluster.stop();
    ended.and(stopped)
}

fn watch_signals(stop: &Arc<AtomicBool>) -> Result<(), String> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot wait for signals: {e}"))?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            if let (Ok(mut term), Ok(mut int)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            {
                loop {
                    tokio::select! {
                        _ = term.recv() => {}
                        _ = int.recv() => {}
                    }
                    stop.store(true, Ordering::Relaxed);
                }
            }
        });
    });
    Ok(())
}

/// Whether the management server knows every data node as started, so that `SHOW` tells what is.
fn all_started(management: &mut Session) -> Result<(), String> {
    let reply = management.execute("ALL STATUS");
    let answer: serde_json::Value = serde_json::from_str(&reply.text).unwrap_or_default();
    let Some(nodes) = answer.get("nodes").and_then(serde_json::Value::as_array) else {
        return Err(format!("the management server answers {}", reply.text.trim_end()));
    };
    match nodes.iter().find(|node| node.get("status").is_none_or(|status| status != "STARTED")) {
        None => Ok(()),
        Some(node) => {
            let part = |name| node.get(name).map(ToString::to_string).unwrap_or_default();
            Err(format!("data node {} is {}", part("id"), part("status")))
        }
    }
}

/// Waits until the data nodes answer through SQL, and the management server says so.
fn wait_until_ready(
    layout: &Layout,
    stop: &AtomicBool,
    mut ended: impl FnMut() -> Option<String>,
) -> Result<(), String> {
    let begun = Instant::now();
    let mut told = Instant::now();
    let mut last;
    let mut management = Session::new(&format!("127.0.0.1:{}", layout.ports.mgm), Format::Json);
    loop {
        if let Some(line) = ended() {
            return Err(line);
        }
        if stop.load(Ordering::Relaxed) {
            return Err("told to end before the cluster was ready".into());
        }
        match answer::list_databases(layout.ports.sql).and_then(|()| all_started(&mut management)) {
            Ok(()) => return Ok(()),
            Err(why) => last = why,
        }
        if begun.elapsed() > START_LIMIT {
            let logs = layout.dir.display();
            return Err(format!(
                "the cluster does not answer after {} s ({last}); the logs are {logs}/*.log",
                START_LIMIT.as_secs()
            ));
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            say!("Waiting for the cluster, {} s so far: {last}", begun.elapsed().as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn print_next(layout: &Layout, detached: bool) {
    let sql = layout.ports.sql;
    let mgm = layout.ports.mgm;
    let port = if sql == 3306 { String::new() } else { format!(" -P {sql}") };
    say!("\nThe cluster is ready. Try:");
    say!("  mariadb -h 127.0.0.1{port} -u root");
    say!("  nucdb mgm -c 127.0.0.1:{mgm} -e 'SHOW'");
    say!("  nucdb bench flexasynch --connect-string 127.0.0.1:{mgm} -t 8 -p 128 -o 300 -l 3 -a 2 -s 2 -temp");
    if detached {
        say!("  nucdb stop --dir {}", layout.dir.display());
    } else {
        say!("Press Ctrl-C to stop it.");
    }
}

/// The processes of a cluster being started; unless kept, they end with it.
struct Running {
    layout: Layout,
    processes: Vec<Process>,
    keep: bool,
}

impl Running {
    fn start(&mut self, own_groups: bool) -> Result<(), String> {
        let mgm = format!("127.0.0.1:{}", self.layout.ports.mgm);
        let config = self.layout.config_file().display().to_string();
        let mut wanted: Vec<(String, Vec<String>)> =
            vec![("mgmd".into(), vec!["mgmd".into(), "--config-file".into(), config])];
        for id in self.layout.ports.data.keys() {
            let arguments = ["datanode", "--connect-string", &mgm, "--ndb-nodeid", &id.to_string()];
            wanted.push((format!("datanode{id}"), arguments.map(String::from).to_vec()));
        }
        let sql_dir = self.layout.dir.join("sqlnode").display().to_string();
        let port = self.layout.ports.sql.to_string();
        let arguments = ["sqlnode", "--connect-string", &mgm, "--port", &port, "--data-dir", &sql_dir];
        wanted.push(("sqlnode".into(), arguments.map(String::from).to_vec()));
        for (name, arguments) in wanted {
            let is_mgmd = name == "mgmd";
            let process = Process::start(&self.layout.dir, &name, &arguments, own_groups)?;
            self.processes.push(process);
            if is_mgmd {
                self.wait_for_mgmd(&mgm)?;
            }
        }
        Ok(())
    }

    fn start_single(&mut self, own_group: bool) -> Result<(), String> {
        let dir = self.layout.dir.display().to_string();
        let arguments = [SINGLE, "--dir", &dir].map(String::from);
        self.processes.push(Process::start(&self.layout.dir, SINGLE, &arguments, own_group)?);
        Ok(())
    }

    /// Waits for the management server, so that the others need not try again.
    fn wait_for_mgmd(&mut self, connect_string: &str) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            if let Some(line) = self.first_ended() {
                return Err(line);
            }
            let mut session = Session::new(connect_string, Format::Text);
            match session.connect() {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > MGMD_LIMIT => {
                    return Err(format!("the management server does not answer: {error}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// What to say about the first process that has ended, if one has.
    fn first_ended(&mut self) -> Option<String> {
        self.processes.iter_mut().find_map(Process::ended)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // The SQL node first, so that it sees no cluster going away under it.
        for process in self.processes.iter_mut().rev() {
            process.kill();
        }
        for process in &self.processes {
            remove_pid(&self.layout.dir, process.name());
        }
    }
}
