//! Little memory for a while: a control group of the run's own, which the process enters for a turn and leaves again.
//!
//! What a process reads into the page cache counts as its group's memory, so a file larger than the limit behaves as one
//! larger than the machine's memory. Both hierarchies are known: version 1 (`memory.limit_in_bytes`) and version 2
//! (`memory.max`); Linux `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`. What is in memory when the group is
//! entered stays counted where it was.
//!
//! Invariants: the group lies below the process's own and has no limit but this one; it is removed when the value is dropped, and
//! an empty one that a killed run left is removed by the next run; the process is always back in its own group after a turn.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::word;

/// What the group's name begins with; the process's number follows.
const PREFIX: &str = "pagemill-lab-";

/// A group with little memory.
#[derive(Debug)]
pub struct MemoryGroup {
    own: PathBuf,
    small: PathBuf,
}

/// The process is in the group until this is dropped.
#[derive(Debug)]
pub struct Entered<'g>(&'g MemoryGroup);

impl MemoryGroup {
    /// One whose processes may use so many bytes.
    ///
    /// # Errors
    /// Why there can be none: no control groups, no right to make one, no controller for memory here.
    pub fn create(bytes: u64) -> Result<Self> {
        let fault = || Error::system("a control group with little memory");
        let groups = word("/proc/self/cgroup").unwrap_or_default();
        let (own, file) =
            own_group(&groups).ok_or_else(|| fault()(io::ErrorKind::Unsupported.into()))?;
        remove_leftovers(&own);
        let small = own.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&small).map_err(fault())?;
        let group = Self { own, small };
        // Without the controller the file is not there, and none can be made.
        fs::write(group.small.join(file), bytes.to_string()).map_err(fault())?;
        Ok(group)
    }

    /// Moves the process into it.
    ///
    /// # Errors
    /// What the system reports.
    pub fn enter(&self) -> Result<Entered<'_>> {
        move_to(&self.small).map_err(Error::system("entering a control group"))?;
        Ok(Entered(self))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // A process may always go back to a group that it came from and may write to; if not, it runs on with little memory.
        let _ = move_to(&self.0.own);
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group with a process in it cannot be removed; the next run finds it empty.
        let _ = fs::remove_dir(&self.small);
    }
}

fn move_to(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// The directory of the process's group, and the file of its limit; of both hierarchies the one with memory.
fn own_group(groups: &str) -> Option<(PathBuf, &'static str)> {
    let below = |root: &str, path: &str| Path::new(root).join(path.trim_start_matches('/'));
    let lines = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let version_1 =
        lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
    if let Some((_, path)) = version_1 {
        return Some((below("/sys/fs/cgroup/memory", path), "memory.limit_in_bytes"));
    }
    let (_, path) = lines().find(|(controllers, _)| controllers.is_empty())?;
    Some((below("/sys/fs/cgroup", path), "memory.max"))
}

/// Removes groups of runs that are no more: one with a process in it cannot be removed.
fn remove_leftovers(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_in_either_hierarchy() {
        let version_1 = "9:name=systemd:/\n4:cpu,memory:/box/one\n0::/\n";
        let found = own_group(version_1).unwrap();
        assert_eq!(found, ("/sys/fs/cgroup/memory/box/one".into(), "memory.limit_in_bytes"));
        let found = own_group("0::/user.slice/session").unwrap();
        assert_eq!(found, ("/sys/fs/cgroup/user.slice/session".into(), "memory.max"));
        assert_eq!(own_group("1:cpu:/x"), None);
    }
}
