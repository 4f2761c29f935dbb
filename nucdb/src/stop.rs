//! `nucdb stop`: ends a cluster that quickstart left running.
//!
//! The SQL node goes first, so that its clients hear from it and not from a vanished cluster; then the data
//! nodes together, by order of the management server, so that none sees another as lost; the management
//! server last.

use crate::quickstart::{Layout, read_pid, remove_pid, stop_process};
use clap::Args;
use mgmd::command::{Format, Session};
use std::path::PathBuf;
use std::time::Duration;

/// How long a process may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(30);

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
    let layout = Layout::open(&arguments.dir)?;
    if layout.process_names().iter().all(|name| read_pid(&layout.dir, name).is_none()) {
        println!("The cluster in {} is not running.", layout.dir.display());
        return Ok(());
    }
    stop(&layout)?;
    println!("The cluster in {} is stopped.", layout.dir.display());
    Ok(())
}

/// Stops what runs of a cluster, in order.
///
/// # Errors
/// A process does not end; the others are stopped all the same.
pub fn stop(layout: &Layout) -> Result<(), String> {
    let mut troubles = Vec::new();
    end(layout, "sqlnode", &mut troubles);
    let data: Vec<String> =
        layout.process_names().into_iter().filter(|n| n.starts_with("datanode")).collect();
    if read_pid(&layout.dir, "mgmd").is_some() && data.iter().any(|n| read_pid(&layout.dir, n).is_some()) {
        let mut session = Session::new(&format!("127.0.0.1:{}", layout.ports.mgm), Format::Text);
        let reply = session.execute("SHUTDOWN");
        if reply.exit_code != 0 {
            eprintln!("nucdb: the management server did not stop the data nodes: {}", reply.text.trim_end());
        }
    }
    for name in &data {
        end(layout, name, &mut troubles);
    }
    end(layout, "mgmd", &mut troubles);
    if troubles.is_empty() { Ok(()) } else { Err(troubles.join("; ")) }
}

fn end(layout: &Layout, name: &str, troubles: &mut Vec<String>) {
    if let Some(pid) = read_pid(&layout.dir, name)
        && let Err(trouble) = stop_process(pid, STOP_LIMIT)
    {
        troubles.push(format!("{name}: {trouble}; end it with kill -9 {pid}"));
        return;
    }
    remove_pid(&layout.dir, name);
}
