//! Priority: what `realtime`, `RealtimeScheduler` and `thread_prio` ask of the operating system for a worker.
//!
//! `realtime=1` is SCHED_FIFO at its lowest priority: above every normal thread, below the kernel's own
//! interrupt threads. `thread_prio` is a nice value, NDB's way: 0 is 19, 5 is 0, 10 is -20, and evenly in
//! between. Both may need a permission; a refusal costs one line that names the worker and what is missing,
//! and the worker runs on with normal priority.
//!
//! A real-time worker that never sleeps would starve everything else on its CPU, threads of the kernel and
//! the node's own helpers included; yielding does not help, because SCHED_FIFO yields to its equals only. So
//! such a worker takes a break: after [`SLICE`] without a sleep it sleeps for [`BREAK`]. Two percent of a CPU
//! is less than what the kernel takes by itself from real-time threads (5 %, in stalls of 50 ms). And it
//! never spins: nobody could take the CPU from it meanwhile, nor could it notice that somebody wants to.

use config::WorkerLayout;
use std::time::Duration;
use thread_priority::{
    Error, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// A real-time worker takes a break when it has not slept for this long.
pub const SLICE: Duration = Duration::from_millis(50);
/// How long the break lasts.
pub const BREAK: Duration = Duration::from_millis(1);

/// The nice value of a `thread_prio`.
#[must_use]
pub fn nice_of(thread_prio: u8) -> i32 {
    let steps = i32::from(thread_prio.min(10)) - 5;
    if steps < 0 { -steps * 19 / 5 } else { -steps * 4 }
}

/// Gives the calling thread the priority of its plan.
///
/// # Errors
/// The operating system refuses: the line to log.
pub fn apply(plan: &WorkerLayout) -> Result<(), String> {
    if plan.realtime {
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        return set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).map_err(
            |error| {
                let reason = match error {
                    Error::OS(code) => std::io::Error::from_raw_os_error(code).to_string(),
                    Error::Priority(_) | Error::PriorityNotInRange(_) | Error::Ffi(_) => error.to_string(),
                };
                refusal(
                    plan,
                    &format!("realtime=1 (SCHED_FIFO): {reason}"),
                    "CAP_SYS_NICE, or RLIMIT_RTPRIO of at least 1 (LimitRTPRIO= in a systemd unit)",
                )
            },
        );
    }
    let Some(thread_prio) = plan.thread_prio else { return Ok(()) };
    let nice = nice_of(thread_prio);
    // On Linux this sets the calling thread alone.
    rustix::process::setpriority_process(None, nice).map_err(|error| {
        let limit = 20 - nice;
        refusal(
            plan,
            &format!("thread_prio={thread_prio} (nice {nice}): {error}"),
            &format!("CAP_SYS_NICE, or RLIMIT_NICE of at least {limit} (LimitNICE={nice} in a systemd unit)"),
        )
    })
}

fn refusal(plan: &WorkerLayout, what: &str, needed: &str) -> String {
    format!("worker {} runs with normal priority, refused {what}; it needs {needed}", plan.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Role;
    use rustix::process::getpriority_process;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use thread_priority::thread_schedule_policy;

    fn plan(realtime: bool, thread_prio: Option<u8>) -> WorkerLayout {
        let mut plan = WorkerLayout::new(None, vec![Role::Ldm(3)]);
        (plan.realtime, plan.thread_prio) = (realtime, thread_prio);
        plan
    }

    /// On a thread of its own, whose priority and permissions are nobody else's.
    fn on_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    fn has_cap_sys_nice() -> bool {
        capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_NICE)
    }

    #[test]
    fn thread_prio_spans_the_nice_values() {
        let all: Vec<i32> = (0..=11).map(nice_of).collect();
        assert_eq!(all, [19, 15, 11, 7, 3, 0, -4, -8, -12, -16, -20, -20]);
    }

    #[test]
    fn priorities_are_set_where_they_are_allowed() {
        on_a_thread(|| {
            // Lower than normal is always allowed.
            apply(&plan(false, Some(3))).unwrap();
            assert_eq!(getpriority_process(None).unwrap(), 7);
            if has_cap_sys_nice() {
                apply(&plan(false, Some(8))).unwrap();
                assert_eq!(getpriority_process(None).unwrap(), -12);
                apply(&plan(true, None)).unwrap();
                let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
                assert_eq!(thread_schedule_policy().unwrap(), fifo);
            }
        });
    }

    #[test]
    fn a_refusal_names_the_worker_and_the_permission() {
        on_a_thread(|| {
            let mut own = capabilities(None).unwrap();
            own.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, own).unwrap();
            for (plan, parts) in [
                (plan(true, None), ["worker ldm3", "realtime=1", "RLIMIT_RTPRIO"]),
                (
                    plan(false, Some(10)),
                    ["worker ldm3", "thread_prio=10 (nice -20)", "RLIMIT_NICE of at least 40"],
                ),
            ] {
                let line = apply(&plan).unwrap_err();
                for part in parts.into_iter().chain(["CAP_SYS_NICE", "normal priority"]) {
                    assert!(line.contains(part), "{line}");
                }
            }
            apply(&plan(false, None)).unwrap();
        });
    }
}
