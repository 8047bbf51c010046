//! Which kernel runs, and under which filter this process calls it.
//!
//! Invariant: what cannot be read counts as a new kernel without a filter, so that no reason is told
//! that nothing speaks for.

use super::machine::Machine;

/// A kernel's release, and whether this process is filtered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) release: String,
    /// `Seccomp` of `/proc/self/status`: 0 for none, 1 for strict, 2 for a filter.
    seccomp: u64,
}

impl Kernel {
    pub(super) fn running(machine: &Machine) -> Self {
        let release = machine.word(&machine.proc("sys/kernel/osrelease"));
        let status = machine.text(&machine.proc("self/status")).unwrap_or_default();
        let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        let seccomp = seccomp.and_then(|mode| mode.trim().parse().ok());
        Self { release: release.unwrap_or_default(), seccomp: seccomp.unwrap_or(0) }
    }

    #[cfg(test)]
    pub(super) fn of(release: &str, seccomp: u64) -> Self {
        Self { release: release.to_owned(), seccomp }
    }

    pub(super) fn has_seccomp_filter(&self) -> bool {
        self.seccomp == 2
    }

    pub(super) fn is_older_than(&self, version: (u32, u32)) -> bool {
        self.version().is_some_and(|own| own < version)
    }

    fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::machine::PretendedMachine;

    #[test]
    fn versions_compare_by_number_and_an_unknown_one_is_not_old() {
        let is_old = |release: &str| Kernel::of(release, 0).is_older_than((5, 14));
        assert!(is_old("5.9.0-rc1") && is_old("4.19.1"));
        assert!(!is_old("5.14.0-427.el9.x86_64") && !is_old("6.1.0"));
        assert!(!is_old("") && !is_old("strange"));
    }

    #[test]
    fn the_filter_is_read_from_the_process_status() {
        let machine = PretendedMachine::new();
        assert!(!Kernel::running(&machine.machine()).has_seccomp_filter());
        machine.write("proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1");
        assert!(Kernel::running(&machine.machine()).has_seccomp_filter());
    }
}
