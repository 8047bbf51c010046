//! Slow devices for a while: a control group of the run's own that limits how fast some devices are read, which the process
//! enters for a turn and leaves again.
//!
//! Both hierarchies are known: version 1 (`blkio.throttle.read_bps_device`) and version 2 (`io.max`); Linux
//! `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/blkio-controller.rst`. The limit counts requests in the group of whoever
//! makes them, so that reads ahead count too. The first few milliseconds are free.
//!
//! Invariants: the group lies below the process's own; it is removed when the value is dropped, and an empty one that a killed
//! run left is removed by the next; the process is back in its own group after a turn.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What the group's name begins with; the process's number follows.
const PREFIX: &str = "pagemill-lab-slow-";

/// A group that reads slowly.
#[derive(Debug)]
pub(crate) struct DeviceLimit {
    own: PathBuf,
    slow: PathBuf,
}

/// The process is in the group until this is dropped.
#[derive(Debug)]
pub(crate) struct Slow<'l>(&'l DeviceLimit);

/// A hierarchy: where the process's own group is, and how a limit is written.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    own: PathBuf,
    version_1: bool,
}

impl DeviceLimit {
    /// One that reads each of these devices, named as `7:0`, at no more than so many bytes a second.
    ///
    /// # Errors
    /// Why there can be none: no control groups, no right to make one, no controller for devices here.
    pub(crate) fn create(devices: &[String], bytes_per_second: u64) -> Result<Self> {
        let fault = || Error::system("a control group that reads slowly");
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let found = hierarchy(&groups).ok_or_else(|| fault()(io::ErrorKind::Unsupported.into()))?;
        let Hierarchy { own, version_1 } = found;
        remove_leftovers(&own);
        let slow = own.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&slow).map_err(fault())?;
        let limit = Self { own, slow };
        for device in devices {
            // Without the controller the file is not there, and none can be made.
            let written = match version_1 {
                true => fs::write(
                    limit.slow.join("blkio.throttle.read_bps_device"),
                    format!("{device} {bytes_per_second}"),
                ),
                false => fs::write(
                    limit.slow.join("io.max"),
                    format!("{device} rbps={bytes_per_second}"),
                ),
            };
            written.map_err(fault())?;
        }
        Ok(limit)
    }

    /// Moves the process into it.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn enter(&self) -> Result<Slow<'_>> {
        move_to(&self.slow).map_err(Error::system("entering a control group"))?;
        Ok(Slow(self))
    }
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        // A process may always go back to a group that it came from and may write to.
        let _ = move_to(&self.0.own);
    }
}

impl Drop for DeviceLimit {
    fn drop(&mut self) {
        // A group with a process in it cannot be removed; the next run finds it empty.
        let _ = fs::remove_dir(&self.slow);
    }
}

fn move_to(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Of both hierarchies the one with the controller for devices.
fn hierarchy(groups: &str) -> Option<Hierarchy> {
    let below = |root: &str, path: &str| Path::new(root).join(path.trim_start_matches('/'));
    let lines = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let version_1 =
        lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "blkio"));
    if let Some((_, path)) = version_1 {
        return Some(Hierarchy { own: below("/sys/fs/cgroup/blkio", path), version_1: true });
    }
    let (_, path) = lines().find(|(controllers, _)| controllers.is_empty())?;
    Some(Hierarchy { own: below("/sys/fs/cgroup", path), version_1: false })
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
        let found = hierarchy("9:name=systemd:/\n4:blkio:/box/one\n0::/\n").unwrap();
        let expected = Hierarchy { own: "/sys/fs/cgroup/blkio/box/one".into(), version_1: true };
        assert_eq!(found, expected);
        let found = hierarchy("0::/user.slice/session").unwrap();
        let own = "/sys/fs/cgroup/user.slice/session".into();
        assert_eq!(found, Hierarchy { own, version_1: false });
        assert_eq!(hierarchy("1:cpu:/x"), None);
    }
}
