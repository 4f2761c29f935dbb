//! Automatic thread configuration: from the number of CPUs to a layout.
//!
//! Small machines are a table of explicit placements (`SMALL`), because there every pairing of roles
//! matters and is to be measured; from four CPUs on a table of counts (`LARGE`) follows the proportions
//! RonDB found: half the CPUs for LDMs, a quarter for TCs, the rest for the network. Between two rows the
//! lower one holds; the operating system and the disk threads live on what is left over.

use super::layout::{Role, ThreadLayout, Threads, WorkerLayout};
use Role::{Ldm, Main, Recv, Rep, Send, Tc};

/// Placements for one, two and three CPUs: the roles of each worker.
///
/// Two CPUs get one worker with every role. Measured on a two-CPU machine that the clients share,
/// `flexasynch -t 8 -p 128 -o 300 -l 3 -a 2 -s 2 -temp`, thousand operations per second (ranges of two
/// runs; other work was running):
///
/// ```text
///                                        one data node          two data nodes, two replicas
///                                        inserts    reads       inserts    reads
///   one worker with all roles            1430-1760  2430-2680   390-520    670-990
///   ldm | tc+recv+send+main+rep          1200       1950-2500   380        660-910
///   ldm+tc | recv+send+main+rep           740-920   1240-1650   200-270    520-680
///   two workers, each ldm+tc+recv         670-690   1220-1480   240-250    460-480
///   one worker with all roles, unbound    990       1680        460-500    920-1190
/// ```
///
/// A hop between workers costs a wake-up of a sleeping CPU (20-50 us, and 4-22 us of CPU on the waking
/// side) as soon as queues run empty, and the clients need the other CPU anyway. With the clients on other
/// machines a second worker can pay; `ThreadConfig` says so then. Three CPUs are not measured.
const SMALL: &[&[&[Role]]] = &[
    &[&[Ldm(0), Tc(0), Recv(0), Send(0), Main, Rep]],
    &[&[Ldm(0), Tc(0), Recv(0), Send(0), Main, Rep]],
    &[&[Ldm(0)], &[Tc(0), Main, Rep], &[Recv(0), Send(0)]],
];

/// A row of the large table.
struct Counts {
    cpus: usize,
    ldm: usize,
    tc: usize,
    recv: usize,
    send: usize,
    main: usize,
    rep: usize,
}

const fn row(
    cpus: usize,
    ldm: usize,
    tc: usize,
    recv: usize,
    send: usize,
    main: usize,
    rep: usize,
) -> Counts {
    assert!(ldm + tc + recv + send + main + rep <= cpus);
    Counts { cpus, ldm, tc, recv, send, main, rep }
}

/// Threads of each type from this many CPUs on.
const LARGE: &[Counts] = &[
    row(4, 2, 1, 1, 0, 0, 0),
    row(6, 3, 1, 1, 1, 0, 0),
    row(8, 4, 2, 1, 1, 0, 0),
    row(10, 5, 2, 2, 1, 0, 0),
    row(12, 6, 3, 2, 1, 0, 0),
    row(14, 7, 4, 2, 1, 0, 0),
    row(16, 8, 4, 2, 1, 1, 0),
    row(20, 10, 5, 2, 2, 1, 0),
    row(24, 12, 6, 3, 2, 1, 0),
    row(28, 14, 7, 3, 2, 1, 1),
    row(32, 16, 8, 4, 2, 1, 1),
    row(40, 20, 10, 5, 3, 1, 1),
    row(48, 24, 12, 6, 4, 1, 1),
    row(64, 32, 16, 8, 6, 1, 1),
    row(96, 48, 24, 12, 10, 1, 1),
    row(128, 64, 32, 16, 14, 1, 1),
];

/// The layout for these CPUs. `num_cpus` (`NumCPUs`) and `max_no_of_execution_threads` limit how many are
/// used; 0 means no limit. Workers are bound in the order of `cpus_available`; when `num_cpus` asks for
/// more CPUs than there are, the layout has its size and nothing is bound. Two nodes on one machine share
/// it best when the second gets the list rotated.
pub fn auto_threads(
    cpus_available: &[usize],
    num_cpus: u32,
    max_no_of_execution_threads: u32,
) -> ThreadLayout {
    let limit = |n: u32| if n == 0 { usize::MAX } else { usize::try_from(n).unwrap_or(usize::MAX) };
    let asked = if num_cpus == 0 { cpus_available.len() } else { limit(num_cpus) };
    let count = asked.min(limit(max_no_of_execution_threads)).max(1);
    let is_bound = asked <= cpus_available.len();
    let mut layout = match count.checked_sub(1).and_then(|i| SMALL.get(i)) {
        Some(placement) => {
            let workers = placement.iter().map(|roles| WorkerLayout::new(None, roles.to_vec()));
            ThreadLayout { workers: workers.collect() }
        }
        None => large(count),
    };
    if is_bound {
        for (worker, cpu) in layout.workers.iter_mut().zip(cpus_available) {
            worker.cpu = Some(*cpu);
        }
    }
    layout
}

fn large(count: usize) -> ThreadLayout {
    let row = LARGE.iter().rev().find(|r| r.cpus <= count).or(LARGE.first());
    let workers = |pick: fn(&Counts) -> usize| vec![WorkerLayout::default(); row.map_or(1, pick)];
    let threads = Threads {
        main: workers(|r| r.main),
        rep: workers(|r| r.rep),
        ldm: workers(|r| r.ldm),
        tc: workers(|r| r.tc),
        recv: workers(|r| r.recv),
        send: workers(|r| r.send),
    };
    threads.host()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_and_two_cpus() {
        let one = auto_threads(&[5], 0, 0);
        assert_eq!(one.workers.len(), 1);
        assert_eq!(one.workers[0].roles, [Ldm(0), Tc(0), Recv(0), Send(0), Main, Rep]);
        assert_eq!(one.workers[0].cpu, Some(5));
        let two = auto_threads(&[0, 1], 0, 0);
        assert_eq!(
            two.describe(),
            "worker 0: ldm0_tc0_recv0_send0_main_rep on cpu 0; rep has no block yet and does nothing"
        );
    }

    #[test]
    fn limits_hold() {
        assert_eq!(auto_threads(&[0, 1, 2, 3], 1, 0).workers.len(), 1);
        assert_eq!(auto_threads(&[0, 1, 2, 3], 0, 3).workers.len(), 3);
        assert_eq!(auto_threads(&[], 0, 0).workers.len(), 1);
        let more = auto_threads(&[0, 1], 8, 0);
        assert_eq!((more.ldm_count(), more.workers.len()), (4, 8));
        assert!(more.workers.iter().all(|w| w.cpu.is_none()));
    }

    /// Every size up to 300 CPUs: all roles there, each once, no more workers than CPUs, no CPU twice.
    #[test]
    fn every_size_is_complete() {
        for n in 1..=300 {
            let cpus: Vec<usize> = (0..n).collect();
            let layout = auto_threads(&cpus, 0, 0);
            assert!(layout.workers.len() <= n, "{n}");
            let roles: Vec<Role> = layout.roles().collect();
            let distinct: BTreeSet<Role> = roles.iter().copied().collect();
            assert_eq!(roles.len(), distinct.len(), "{n}");
            for needed in [Main, Rep, Ldm(0), Tc(0), Recv(0), Send(0)] {
                assert!(distinct.contains(&needed), "{n}: {needed:?}");
            }
            assert!(distinct.contains(&Ldm(layout.ldm_count() - 1)), "{n}");
            let bound: BTreeSet<usize> = layout.workers.iter().filter_map(|w| w.cpu).collect();
            assert_eq!(bound.len(), layout.workers.len(), "{n}");
        }
    }
}
