//! `autotest sim`: runs seeds and says what came of them.
//!
//! The first line is always the seed (or the seeds) and the commit. A failure is printed in about ten
//! lines, with the command that runs it again; before that, the run is tried with fewer and fewer troubles,
//! to show only those it takes.

use super::plan::Plan;
use super::run::{Options, Outcome, run};
use clap::Args;
use signals::planted::{Fault, Planted};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The plans every seed is run with in turn, unless one is named.
const PLANS: &[(&str, &str)] = &[
    ("bank", include_str!("../../workloads/bank.toml")),
    ("ring", include_str!("../../workloads/ring.toml")),
    ("ring-calm", include_str!("../../workloads/ring-calm.toml")),
    ("mixed", include_str!("../../workloads/mixed.toml")),
    ("mixed-calm", include_str!("../../workloads/mixed-calm.toml")),
    ("churn", include_str!("../../workloads/churn.toml")),
    ("churn-calm", include_str!("../../workloads/churn-calm.toml")),
    ("mixed-full", include_str!("../../workloads/mixed-full.toml")),
    ("register", include_str!("../../workloads/register.toml")),
    ("register-calm", include_str!("../../workloads/register-calm.toml")),
    ("append", include_str!("../../workloads/append.toml")),
    ("append-calm", include_str!("../../workloads/append-calm.toml")),
];
/// Runs a failure may cost to be made smaller.
const SHRINK_RUNS: usize = 60;
/// Seeds that found a fault; see the file.
const KEPT: &str = include_str!("../../seeds/kept.txt");
/// What `cargo autotest` runs.
const CHECKED_SEEDS: (u64, u64) = (1, 240);
const PROVING_SEEDS: u64 = 240;

/// Runs the cluster in the simulator.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Run this seed alone
    #[arg(long, conflicts_with_all = ["seeds", "minutes"])]
    seed: Option<u64>,
    /// Run seeds A to B (`A..B`, B included)
    #[arg(long, value_parser = seeds)]
    seeds: Option<(u64, u64)>,
    /// Run seeds from a new beginning for this long
    #[arg(long, conflicts_with = "seeds")]
    minutes: Option<u64>,
    /// Seeds run at once
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// The workload: a name of the built-in ones, or a TOML file; all built-in ones in turn if absent
    #[arg(long)]
    workload: Option<String>,
    /// Print everything that happens (with --seed)
    #[arg(long)]
    trace: bool,
    /// Leave out these troubles, by number
    #[arg(long, value_delimiter = ',')]
    without: Vec<usize>,
    /// Build this fault into every node and client
    #[arg(long, value_parser = fault)]
    planted: Option<Fault>,
    /// Prove that the checkers bite: every planted fault must be found within this many seeds
    #[arg(long, value_name = "SEEDS", num_args = 0..=1, default_missing_value = "200", conflicts_with_all = ["seed", "seeds", "minutes", "planted"])]
    prove: Option<u64>,
    /// Show failures as they are, without looking for a smaller one
    #[arg(long)]
    no_shrink: bool,
}

/// The step of `cargo autotest`: the kept seeds and a few hundred others, without a violation.
pub(crate) fn check() -> Result<(), String> {
    silence_panics();
    let mut wrong = 0;
    let mut kept = 0;
    for line in KEPT.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(workload), Some(Ok(seed))) = (words.next(), words.next().map(str::parse)) else {
            return Err(format!("seeds/kept.txt: {line:?} does not begin with a workload and a seed"));
        };
        let plan = &plans(Some(workload))?[0];
        kept += 1;
        let outcome = guarded(seed, plan, &Options::default());
        if !outcome.violations.is_empty() {
            wrong += 1;
            print!("{}", failure(seed, plan, &outcome, Planted::NONE, true));
        }
    }
    println!("{kept} kept seeds, {wrong} failed");
    let (from, to) = CHECKED_SEEDS;
    let failed = many(
        &plans(None)?,
        &Many { from, to, deadline: None, jobs: jobs(), planted: Planted::NONE, shrink: true },
    );
    if wrong + failed == 0 { Ok(()) } else { Err(format!("{} seeds with violations", wrong + failed)) }
}

/// The step of `cargo autotest`: every planted fault is found.
pub(crate) fn check_checkers() -> Result<(), String> {
    silence_panics();
    match prove(&plans(None)?, PROVING_SEEDS, jobs()) {
        0 => Ok(()),
        missed => Err(format!("{missed} planted faults were not found")),
    }
}

/// A panic in a run is a finding and is reported with its seed.
fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

fn jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

fn fault(text: &str) -> Result<Fault, String> {
    let names = || Fault::ALL.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(", ");
    let found = Fault::ALL.into_iter().find(|f| format!("{f:?}").eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("no such fault; there are {}", names()))
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("not of the form A..B")?;
    let number = |t: &str| t.trim_start_matches('=').parse::<u64>().map_err(|e| format!("{t}: {e}"));
    let (from, to) = (number(from)?, number(to)?);
    if to < from { Err("the range is empty".into()) } else { Ok((from, to)) }
}

/// Runs.
pub(crate) fn main(arguments: &Arguments) -> ExitCode {
    let plans = match plans(arguments.workload.as_deref()) {
        Ok(plans) => plans,
        Err(error) => {
            eprintln!("autotest: {error}");
            return ExitCode::FAILURE;
        }
    };
    silence_panics();
    if let Some(most) = arguments.prove {
        println!("planted faults, commit {}", commit());
        let missed = prove(&plans, most, arguments.jobs.max(1));
        return if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(seed) = arguments.seed {
        println!("seed {seed}, commit {}", commit());
        return one(seed, &plans, arguments);
    }
    let wanted = Many::of(arguments);
    println!("seeds {}..{}, commit {}", wanted.from, wanted.to, commit());
    if many(&plans, &wanted) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The plan of a seed, if several are run in turn.
fn plan_of(plans: &[Plan], seed: u64) -> &Plan {
    &plans[(seed % plans.len() as u64) as usize]
}

fn plans(named: Option<&str>) -> Result<Vec<Plan>, String> {
    match named {
        None => PLANS.iter().map(|(name, text)| Plan::parse(name, text)).collect(),
        Some(name) => {
            if let Some((name, text)) = PLANS.iter().find(|(n, _)| *n == name) {
                return Ok(vec![Plan::parse(name, text)?]);
            }
            let path = PathBuf::from(name);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                let known: Vec<&str> = PLANS.iter().map(|(n, _)| *n).collect();
                format!("{name} is no built-in workload ({}) and no file: {error}", known.join(", "))
            })?;
            Ok(vec![Plan::parse(name, &text)?])
        }
    }
}

fn commit() -> String {
    let output = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let text = output
        .ok()
        .filter(|o| o.status.success())
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.unwrap_or_else(|| "unknown".into())
}

/// Runs a seed; a panic is a violation.
fn guarded(seed: u64, plan: &Plan, options: &Options) -> Outcome {
    match std::panic::catch_unwind(AssertUnwindSafe(|| run(seed, plan, options))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                .unwrap_or_default();
            Outcome { violations: vec![format!("panic: {text}")], ..Outcome::default() }
        }
    }
}

fn one(seed: u64, plans: &[Plan], arguments: &Arguments) -> ExitCode {
    let plan = plan_of(plans, seed);
    let left_out: BTreeSet<usize> = arguments.without.iter().copied().collect();
    let begun = Instant::now();
    let planted = planted(arguments.planted);
    let options = Options { print: arguments.trace, planted, left_out, ..Options::default() };
    let outcome = guarded(seed, plan, &options);
    print!("{}", describe(seed, plan, &outcome));
    println!("{:.3} s", begun.elapsed().as_secs_f64());
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn planted(fault: Option<Fault>) -> Planted {
    fault.map_or(Planted::NONE, Planted::new)
}

/// What it took to find a planted fault.
struct Found {
    seeds: u64,
    workload: String,
    violation: String,
}

/// Looks for every planted fault, seed after seed.
fn prove(plans: &[Plan], most: u64, jobs: u64) -> u64 {
    let (next, table) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(fault) = Fault::ALL.get(index) else { return };
                    let found = search(*fault, plans, most);
                    if let Ok(mut table) = table.lock() {
                        table.insert(index, found);
                    }
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_default();
    let mut missed = 0;
    println!("{:<28} {:>5}  {:<14} found by", "fault", "seeds", "workload");
    for (fault, found) in Fault::ALL.iter().zip(table.values()) {
        match found {
            Some(Found { seeds, workload, violation }) => {
                let short: String = violation.chars().take(90).collect();
                println!("{:<28} {seeds:>5}  {workload:<14} {short}", format!("{fault:?}"));
            }
            None => {
                missed += 1;
                println!("{:<28} NOT FOUND in {most} seeds", format!("{fault:?}"));
            }
        }
    }
    println!("{} planted faults, {missed} not found", Fault::ALL.len());
    missed
}

fn search(fault: Fault, plans: &[Plan], most: u64) -> Option<Found> {
    (1..=most).find_map(|seed| {
        let plan = plan_of(plans, seed);
        let options = Options { planted: Planted::new(fault), ..Options::default() };
        let violation = guarded(seed, plan, &options).violations.into_iter().next()?;
        Some(Found { seeds: seed, workload: plan.name.clone(), violation })
    })
}

/// Everything about a run.
fn describe(seed: u64, plan: &Plan, outcome: &Outcome) -> String {
    let mut text = format!("seed {seed}, workload {}: {}\n", plan.name, outcome.shape);
    text += &format!(
        "  {:.1} s virtual, {} signals, {} transactions, the database lost {} times, trace {:016x}\n",
        outcome.virtual_ns as f64 / 1e9,
        outcome.signals,
        outcome.acts,
        outcome.resets,
        outcome.hash
    );
    for (number, line) in outcome.troubles.iter().enumerate() {
        text += &format!("  trouble {number}: {line}\n");
    }
    for line in &outcome.log {
        text += &format!("  {line}\n");
    }
    for violation in &outcome.violations {
        text += &format!("  VIOLATION: {violation}\n");
    }
    text
}

/// Sums over many runs.
#[derive(Default)]
struct Totals {
    virtual_ns: AtomicU64,
    signals: AtomicU64,
    acts: AtomicU64,
    resets: AtomicU64,
}

impl Totals {
    fn add(&self, outcome: &Outcome) {
        self.virtual_ns.fetch_add(outcome.virtual_ns, Ordering::Relaxed);
        self.signals.fetch_add(outcome.signals, Ordering::Relaxed);
        self.acts.fetch_add(outcome.acts, Ordering::Relaxed);
        self.resets.fetch_add(outcome.resets, Ordering::Relaxed);
    }
}

/// Many runs.
struct Many {
    from: u64,
    to: u64,
    deadline: Option<Instant>,
    jobs: u64,
    planted: Planted,
    shrink: bool,
}

impl Many {
    fn of(arguments: &Arguments) -> Self {
        let (from, to) = match (arguments.seeds, arguments.minutes) {
            (Some(range), _) => range,
            (None, Some(_)) => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                (since.map_or(1, |d| d.as_secs() * 1000), u64::MAX)
            }
            (None, None) => CHECKED_SEEDS,
        };
        Self {
            from,
            to,
            deadline: arguments.minutes.map(|m| Instant::now() + Duration::from_secs(m * 60)),
            jobs: arguments.jobs.max(1),
            planted: planted(arguments.planted),
            shrink: !arguments.no_shrink,
        }
    }
}

/// Failures shown whole; of the others only the seeds.
const SHOWN: u64 = 5;

/// Runs many seeds; how many failed. Failures are shown as they come.
fn many(plans: &[Plan], wanted: &Many) -> u64 {
    let begun = Instant::now();
    let cpu_before = cpu_seconds();
    let (next, done, totals) = (AtomicU64::new(wanted.from), AtomicU64::new(0), Totals::default());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > wanted.to || wanted.deadline.is_some_and(|d| Instant::now() >= d) {
                        return;
                    }
                    let plan = plan_of(plans, seed);
                    let options = Options { planted: wanted.planted, ..Options::default() };
                    let outcome = guarded(seed, plan, &options);
                    totals.add(&outcome);
                    done.fetch_add(1, Ordering::Relaxed);
                    if outcome.violations.is_empty() {
                        continue;
                    }
                    let Ok(mut failed) = failed.lock() else { return };
                    failed.push(seed);
                    if failed.len() as u64 <= SHOWN {
                        print!("{}", failure(seed, plan, &outcome, wanted.planted, wanted.shrink));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    failed.sort_unstable();
    summary(&totals, done.into_inner(), &failed, begun.elapsed(), cpu_seconds() - cpu_before);
    failed.len() as u64
}

/// CPU time of the process so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn summary(totals: &Totals, done: u64, failed: &[u64], took: Duration, cpu: f64) {
    let seconds = took.as_secs_f64();
    let virtual_hours = totals.virtual_ns.load(Ordering::Relaxed) as f64 / 3.6e12;
    println!(
        "{done} seeds in {seconds:.1} s ({:.0} per minute), {} failed; {virtual_hours:.2} cluster hours, {:.2} per CPU \
         minute; {} signals, {} transactions, {} total losses",
        done as f64 / seconds * 60.0,
        failed.len(),
        virtual_hours / (cpu / 60.0),
        totals.signals.load(Ordering::Relaxed),
        totals.acts.load(Ordering::Relaxed),
        totals.resets.load(Ordering::Relaxed),
    );
    if failed.len() as u64 > SHOWN {
        let seeds: Vec<String> = failed.iter().map(ToString::to_string).collect();
        println!("failed seeds: {}", seeds.join(" "));
    }
}

/// A failure in about ten lines, made smaller first.
fn failure(seed: u64, plan: &Plan, outcome: &Outcome, planted: Planted, shrinks: bool) -> String {
    let mut left_out: BTreeSet<usize> = BTreeSet::new();
    let mut smallest = None;
    if shrinks {
        (left_out, smallest) = shrink(seed, plan, outcome, planted);
    }
    let shown = smallest.as_ref().unwrap_or(outcome);
    let mut text = format!("--- seed {seed}, workload {}: {}\n", plan.name, shown.shape);
    for (number, line) in shown.troubles.iter().enumerate().filter(|(n, _)| !left_out.contains(n)).take(8) {
        text += &format!("    trouble {number}: {line}\n");
    }
    for line in shown.log.iter().rev().take(4).rev() {
        text += &format!("    {line}\n");
    }
    for violation in shown.violations.iter().take(2) {
        text += &format!("    VIOLATION: {violation}\n");
    }
    let without: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    let without =
        if without.is_empty() { String::new() } else { format!(" --without {}", without.join(",")) };
    text +=
        &format!("    again: cargo autotest sim --workload {} --seed {seed}{without} --trace\n", plan.name);
    text
}

/// Leaves troubles out as long as the run still fails: halves first, then one by one.
fn shrink(seed: u64, plan: &Plan, outcome: &Outcome, planted: Planted) -> (BTreeSet<usize>, Option<Outcome>) {
    let count = outcome.troubles.len();
    let mut left_out = BTreeSet::new();
    let mut smallest = None;
    let mut runs = 0;
    let mut size = count.div_ceil(2);
    while size > 0 && runs < SHRINK_RUNS {
        let mut start = 0;
        while start < count && runs < SHRINK_RUNS {
            let mut attempt: BTreeSet<usize> = left_out.clone();
            attempt.extend(start..(start + size).min(count));
            start += size;
            if attempt.len() == left_out.len() {
                continue;
            }
            runs += 1;
            let options = Options { planted, left_out: attempt.clone(), ..Options::default() };
            let tried = guarded(seed, plan, &options);
            if !tried.violations.is_empty() {
                left_out = attempt;
                smallest = Some(tried);
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    (left_out, smallest)
}
