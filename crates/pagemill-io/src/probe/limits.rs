//! The limits this process runs under: resource limits, the memory its control group may use, and
//! whether the kernel gives huge pages.
//!
//! A process in a control group fills the page cache at the group's expense: with little memory
//! allowed, what was read ahead is gone before it is used. The smallest limit on the way from the own
//! group to the root counts (Linux `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`).

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::machine::Machine;

/// Version 1 tells "no limit" by a number near `i64::MAX`, rounded down to a page.
const UNLIMITED_V1: u64 = 1 << 62;

/// Limits of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory the control group may use, page cache included, in bytes; None for no limit.
    pub memory_cgroup_bytes: Option<u64>,
    /// The file that this limit stands in.
    pub memory_cgroup_file: Option<PathBuf>,
    /// The machine's memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Soft and hard RLIMIT_NOFILE, open files; None for no limit.
    pub nofile: (Option<u64>, Option<u64>),
    /// Soft and hard RLIMIT_MEMLOCK, locked memory in bytes; None for no limit.
    pub memlock: (Option<u64>, Option<u64>),
    /// Size in bytes of the machine's pages.
    pub page_size_bytes: u64,
    /// Where the kernel uses transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepage: Option<String>,
}

pub(super) fn limits(machine: &Machine) -> Limits {
    let both = |resource| {
        let limit = getrlimit(resource);
        (limit.current, limit.maximum)
    };
    let memory = memory_limit(machine);
    let huge = machine.word(&machine.sys("kernel/mm/transparent_hugepage/enabled"));
    Limits {
        memory_cgroup_bytes: memory.as_ref().map(|(bytes, _)| *bytes),
        memory_cgroup_file: memory.map(|(_, file)| file),
        memory_bytes: machine_memory(machine),
        nofile: both(Resource::Nofile),
        memlock: both(Resource::Memlock),
        page_size_bytes: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
        transparent_hugepage: huge.map(|listed| in_brackets(&listed)),
    }
}

fn in_brackets(listed: &str) -> String {
    let inner = listed.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(listed, |(word, _)| word).to_owned()
}

/// `MemTotal` of `/proc/meminfo`, which is in units of 1024 bytes.
fn machine_memory(machine: &Machine) -> Option<u64> {
    let text = machine.text(&machine.proc("meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The smallest limit that applies, and where it stands.
fn memory_limit(machine: &Machine) -> Option<(u64, PathBuf)> {
    let groups = machine.text(&machine.proc("self/cgroup"))?;
    let limits = groups.lines().flat_map(|line| limits_of(machine, line));
    limits.min_by_key(|(bytes, _)| *bytes)
}

/// The limits from a group up to the root of its hierarchy. A line is `ID:CONTROLLERS:PATH`; version 2
/// names no controllers.
fn limits_of(machine: &Machine, line: &str) -> Vec<(u64, PathBuf)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (roots, file) = match controllers {
        "" => (&["fs/cgroup", "fs/cgroup/unified"][..], "memory.max"),
        named if named.split(',').any(|name| name == "memory") => {
            (&["fs/cgroup/memory"][..], "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    let files = roots.iter().flat_map(|root| {
        let root = machine.sys(root);
        path.ancestors().map(move |group| root.join(group).join(file)).collect::<Vec<_>>()
    });
    files.filter_map(|file| Some((limit_in(machine, &file)?, file))).collect()
}

fn limit_in(machine: &Machine, file: &Path) -> Option<u64> {
    // Version 2 writes `max` for no limit, which is no number.
    machine.number(file).filter(|bytes| *bytes < UNLIMITED_V1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::machine::PretendedMachine;

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let machine = PretendedMachine::new();
        machine.write("proc/self/cgroup", "0::/system.slice/postgresql.service");
        machine.write("sys/fs/cgroup/system.slice/postgresql.service/memory.max", "max");
        machine.write("sys/fs/cgroup/system.slice/memory.max", "1073741824");
        let (bytes, file) = memory_limit(&machine.machine()).unwrap();
        assert_eq!(bytes, 1 << 30);
        assert!(file.ends_with("system.slice/memory.max"), "{}", file.display());
    }

    #[test]
    fn version_1_has_its_own_files_and_its_own_word_for_none() {
        let machine = PretendedMachine::new();
        machine.write("proc/self/cgroup", "4:memory:/box\n0::/");
        machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(memory_limit(&machine.machine()), None);
        machine.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096");
        assert_eq!(memory_limit(&machine.machine()).unwrap().0, 4096);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_no_limits() {
        let found = limits(&PretendedMachine::new().machine());
        assert_eq!((found.memory_cgroup_bytes, found.memory_bytes), (None, None));
        assert!(found.page_size_bytes >= 4096);
    }

    #[test]
    fn memory_and_huge_pages_are_read_from_their_files() {
        let machine = PretendedMachine::new();
        machine.write("proc/meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB");
        machine.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
        let found = limits(&machine.machine());
        assert_eq!(found.memory_bytes, Some(24_684_084 * 1024));
        assert_eq!(found.transparent_hugepage.as_deref(), Some("madvise"));
    }
}
