//! The CPUs a node may really use: its affinity mask, cut to the quota its cgroup grants.
//!
//! A container often sees all CPUs of its host but is granted the time of two. Sixteen workers on two CPUs'
//! time are stopped together when the quota of a period is used up, heartbeats included; so the quota
//! counts as CPUs, rounded down, and never below one.

/// Works out the usable CPUs from the CPUs of the affinity mask and the text of cgroup v2's `cpu.max` (such
/// as `200000 100000` or `max 100000`). A text that cannot be read grants everything: a guess must not
/// shrink a node.
pub fn available_cpus(affinity: &[usize], cpu_max: Option<&str>) -> Vec<usize> {
    let mut cpus = affinity.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    if let Some(granted) = cpu_max.and_then(granted_cpus) {
        cpus.truncate(granted);
    }
    cpus
}

/// Whole CPUs of a quota, at least one; `None` if there is no quota.
fn granted_cpus(cpu_max: &str) -> Option<usize> {
    let mut words = cpu_max.split_whitespace();
    let quota: u64 = words.next()?.parse().ok()?;
    let period: u64 = words.next().map_or(Some(100_000), |w| w.parse().ok())?;
    let cpus = quota.checked_div(period)?;
    usize::try_from(cpus.max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_cuts_the_mask() {
        assert_eq!(available_cpus(&[3, 1, 2, 1], None), [1, 2, 3]);
        assert_eq!(available_cpus(&[0, 1, 2, 3], Some("200000 100000\n")), [0, 1]);
        assert_eq!(available_cpus(&[0, 1, 2, 3], Some("150000 100000")), [0]);
        assert_eq!(available_cpus(&[0, 1, 2, 3], Some("50000 100000")), [0]);
        assert_eq!(available_cpus(&[0, 1], Some("max 100000")), [0, 1]);
        for odd in ["", "x", "1 0", "-1 5", "99999999999999999999 1"] {
            assert_eq!(available_cpus(&[0, 1], Some(odd)), [0, 1], "{odd}");
        }
        assert_eq!(available_cpus(&[0, 1], Some("300000")), [0, 1]);
        assert_eq!(available_cpus(&[], None), [0usize; 0]);
    }
}
