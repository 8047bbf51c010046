//! How much memory this process may use, and with it how much of files the page cache can hold for it: what a process
//! reads into the cache counts as the memory of its control group.
//!
//! Both hierarchies are known: version 1 (`memory.limit_in_bytes`) and version 2 (`memory.max`); Linux
//! `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`. Invariant: what cannot be read limits nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The machine's memory in bytes, or the least limit of the groups that the process is in.
pub(crate) fn memory_limit() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| limit_in(&file));
    limits.fold(machine_memory(), u64::min)
}

fn machine_memory() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(found.mem_unit.into())
}

/// The files that may hold a limit: those of the process's group and of all above it.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let (mut root, mut file, mut group) = ("/sys/fs/cgroup", "memory.max", "");
    for line in groups.lines() {
        let Some((controllers, path)) =
            line.split_once(':').and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "memory") {
            (root, file, group) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", path);
            break;
        }
        if controllers.is_empty() {
            group = path;
        }
    }
    let below = Path::new(group.trim_start_matches('/'));
    below.ancestors().map(|above| Path::new(root).join(above).join(file)).collect()
}

/// The limit in a file; none where it says `max`, or is not there.
fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_for_in_all_groups_above() {
        let found = limit_files("0::/user.slice/session\n");
        let due = ["user.slice/session/memory.max", "user.slice/memory.max", "memory.max"];
        assert_eq!(found, due.map(|file| Path::new("/sys/fs/cgroup").join(file)));
        let found = limit_files("9:name=systemd:/\n4:cpu,memory:/box\n0::/other\n");
        let due = ["box/memory.limit_in_bytes", "memory.limit_in_bytes"];
        assert_eq!(found, due.map(|file| Path::new("/sys/fs/cgroup/memory").join(file)));
    }

    #[test]
    fn what_is_not_a_number_limits_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("memory.max");
        assert_eq!(limit_in(&file), None);
        for (text, due) in [("max\n", None), ("1048576\n", Some(1 << 20)), ("", None)] {
            fs::write(&file, text).unwrap();
            assert_eq!(limit_in(&file), due);
        }
    }

    #[test]
    fn there_is_some_memory() {
        assert!(memory_limit() > 1 << 20);
    }
}
