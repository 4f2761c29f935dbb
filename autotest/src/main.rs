//! `cargo autotest`: runs everything CI runs, in order, and says how long each step took.
//!
//! Steps: format, tidy (the repository's own rules, see `tidy`), clippy with warnings denied, the test
//! clients, unit tests, the node programs, and the cluster tests over real processes and real clients. The
//! first failure ends the run unless `--keep-going`. It changes nothing but the target folder, and the
//! machine's packages where a test client is missing and this is root.

mod check;
mod clients;
mod real;
mod sim;
mod tidy;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Instant;

/// Runs all of nucdb's checks and tests.
#[derive(Parser)]
#[command(name = "autotest", version)]
struct Arguments {
    /// Run this step alone
    #[arg(long)]
    only: Option<String>,
    /// List the steps
    #[arg(long)]
    list: bool,
    /// Do not stop at the first failure
    #[arg(long)]
    keep_going: bool,
    /// Never install missing test clients, only name them
    #[arg(long)]
    no_install: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What else it does.
#[derive(Subcommand)]
enum Command {
    /// Runs a whole cluster in the simulator
    Sim(sim::Arguments),
    /// Runs a workload against real processes
    Workload(real::Arguments),
}

/// A step: its name, what it is for, and its work.
struct Step {
    name: &'static str,
    about: &'static str,
    work: fn(&Context) -> Result<(), String>,
}

/// What steps need to know.
struct Context {
    root: PathBuf,
    install: bool,
}

const STEPS: [Step; 10] = [
    Step { name: "format", about: "cargo fmt --check", work: |c| cargo(c, &["fmt", "--all", "--check"]) },
    Step { name: "tidy", about: "the repository's own rules", work: |c| tidy::check(&c.root) },
    Step {
        name: "clippy",
        about: "clippy, warnings denied",
        work: |c| cargo(c, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    },
    Step { name: "clients", about: "test clients are there", work: |c| clients::ensure(c.install) },
    Step {
        name: "unit",
        about: "tests beside the code",
        work: |c| cargo(c, &["test", "--workspace", "--exclude", "tests", "--quiet"]),
    },
    Step {
        name: "sim",
        about: "a whole cluster in the simulator, some hundred seeds",
        work: |_| sim::check(),
    },
    Step {
        name: "planted",
        about: "the simulator finds every planted fault",
        work: |_| sim::check_checkers(),
    },
    Step {
        name: "programs",
        about: "build what the cluster tests start",
        work: |c| cargo(c, &["build", "--workspace", "--bins", "--quiet"]),
    },
    Step {
        name: "workload",
        about: "a workload of the simulator against real processes that are killed",
        work: |c| {
            let file = "autotest/workloads/real-processes.toml";
            cargo(c, &["run", "--quiet", "-p", "autotest", "--", "workload", file])
        },
    },
    Step {
        name: "cluster",
        about: "stories over real processes",
        work: |c| cargo(c, &["test", "-p", "tests"]),
    },
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Sim(arguments)) => return sim::main(arguments),
        Some(Command::Workload(arguments)) => return real::main(arguments),
        None => {}
    }
    if arguments.list {
        for step in &STEPS {
            println!("{:<10} {}", step.name, step.about);
        }
        return ExitCode::SUCCESS;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf();
    let context = Context { root, install: !arguments.no_install };
    let wanted: Vec<&Step> =
        STEPS.iter().filter(|s| arguments.only.as_deref().is_none_or(|only| only == s.name)).collect();
    if wanted.is_empty() {
        eprintln!("autotest: no such step; --list names them");
        return ExitCode::FAILURE;
    }
    let mut failed = 0;
    let mut passed = 0;
    let begun = Instant::now();
    for step in wanted {
        println!("--- {}: {}", step.name, step.about);
        let step_begun = Instant::now();
        let result = (step.work)(&context);
        let seconds = step_begun.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                passed += 1;
                println!("--- {} ok, {seconds:.1} s", step.name);
            }
            Err(text) => {
                failed += 1;
                println!("--- {} FAILED, {seconds:.1} s: {text}", step.name);
                if !arguments.keep_going {
                    break;
                }
            }
        }
    }
    println!("autotest: {passed} steps ok, {failed} failed, {:.0} s", begun.elapsed().as_secs_f32());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cargo(context: &Context, arguments: &[&str]) -> Result<(), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = process::Command::new(program).args(arguments).current_dir(&context.root).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {} ended with {status}", arguments.join(" "))),
        Err(error) => Err(format!("cargo cannot be run: {error}")),
    }
}
