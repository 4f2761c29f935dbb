//! `autotest workload`: a workload file of the simulator against real processes, in real time.
//!
//! The same loads run by the same [`Env`](crate::sim::env::Env): only who looks at the time, carries out
//! commands and makes connections is another. It starts its own processes (`--start`) or uses a cluster that
//! is there (`--connect-string`), whose processes it leaves alone. What cannot be done to real processes
//! from outside (anything to the network or the clocks) is left out, with a line that says so.

mod nodes;
mod run;

use crate::sim::plan::Plan;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs a workload against real processes.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The workload file
    file: PathBuf,
    /// Use the cluster whose management server is there; its processes are left alone
    #[arg(long, conflicts_with = "start")]
    connect_string: Option<String>,
    /// Start so many data nodes, instead of what the file says or two
    #[arg(long)]
    start: Option<u8>,
    /// Run for so long instead of the file's time
    #[arg(long)]
    seconds: Option<u64>,
    /// What is drawn is drawn from this
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs.
pub(crate) fn main(arguments: &Arguments) -> ExitCode {
    match try_main(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("autotest: {text}");
            ExitCode::FAILURE
        }
    }
}

fn try_main(arguments: &Arguments) -> Result<(), String> {
    let name = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).map_err(|e| format!("{name}: {e}"))?;
    let mut plan = Plan::parse(&name, &text)?;
    plan.seconds = arguments.seconds.unwrap_or(plan.seconds);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("no runtime: {e}"))?;
    runtime.block_on(run::run(&plan, arguments))
}
