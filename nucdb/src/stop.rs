//! `nucdb stop`: ends a cluster that quickstart left running.
//!
//! The SQL node goes first, so that its clients hear from it and not from a vanished cluster; then the data
//! nodes together, by order of the management server, so that none sees another as lost; the management
//! server last. A cluster in one process, and a front door in the foreground, do the same by themselves when
//! they are asked to end.
//!
//! What runs is taken from the pid files; `config.ini` may have been edited since. Without a usable one the
//! data nodes are asked one by one.

use crate::quickstart::{
    FOREGROUND, Layout, SINGLE, cluster_folder, names_of_pid_files, read_pid, remove_pid, stop_process,
};
use crate::say;
use clap::Args;
use mgmd::command::{Format, Session};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long a process that stands for a whole cluster may take to end.
const STOP_LIMIT_WHOLE: Duration = Duration::from_secs(60);

/// Command line of `nucdb stop`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The cluster's folder
    #[arg(long, default_value = "nucdb-data")]
    dir: PathBuf,
}

/// Stops a cluster.
///
/// # Errors
/// There is none in the folder, or a process does not end.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let dir = cluster_folder(&arguments.dir)?;
    if names_of_pid_files(&dir).iter().all(|name| read_pid(&dir, name).is_none()) {
        say!("The cluster in {} is not running.", dir.display());
        return Ok(());
    }
    stop(&dir)?;
    say!("The cluster in {} is stopped.", dir.display());
    Ok(())
}

/// Stops what runs of the cluster in `dir` (absolute), in order.
///
/// # Errors
/// A process does not end; the others are stopped all the same.
pub fn stop(dir: &Path) -> Result<(), String> {
    let mut troubles = Vec::new();
    for whole in [FOREGROUND, SINGLE] {
        end(dir, whole, STOP_LIMIT_WHOLE, &mut troubles);
    }
    end(dir, "sqlnode", STOP_LIMIT, &mut troubles);
    let data: Vec<String> =
        names_of_pid_files(dir).into_iter().filter(|n| n.starts_with("datanode")).collect();
    if read_pid(dir, "mgmd").is_some() && data.iter().any(|n| read_pid(dir, n).is_some()) {
        match Layout::open(dir) {
            Ok(layout) => shut_down(&layout),
            Err(why) => eprintln!("nucdb: the data nodes are stopped one by one: {why}"),
        }
    }
    for name in &data {
        end(dir, name, STOP_LIMIT, &mut troubles);
    }
    end(dir, "mgmd", STOP_LIMIT, &mut troubles);
    if troubles.is_empty() { Ok(()) } else { Err(troubles.join("; ")) }
}

/// Has the management server stop the data nodes.
fn shut_down(layout: &Layout) {
    let mut session = Session::new(&format!("127.0.0.1:{}", layout.ports.mgm), Format::Text);
    let reply = session.execute("SHUTDOWN");
    if reply.exit_code != 0 {
        eprintln!("nucdb: the management server did not stop the data nodes: {}", reply.text.trim_end());
    }
}

fn end(dir: &Path, name: &str, limit: Duration, troubles: &mut Vec<String>) {
    if let Some(pid) = read_pid(dir, name)
        && let Err(trouble) = stop_process(pid, limit)
    {
        troubles.push(format!("{name}: {trouble}; kill -9 {pid} ends it at once"));
        return;
    }
    remove_pid(dir, name);
}
