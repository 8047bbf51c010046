//! Control groups that make a device slow or memory small for the processes in them.
//!
//! Both hierarchies are known: version 1 (`blkio.throttle.*`, `memory.limit_in_bytes`, each in a mount of its own) and
//! version 2 (`io.max`, `memory.max`). A process enters by writing itself into the group before it becomes the program;
//! see [`ControlGroup::command`].
//!
//! What a throttle on a loop device catches, as tried on Linux 6.18 with version 1: the limit counts requests where they
//! enter the loop device, in the group of whoever submits them. Reads of raw loops, of btrfs, XFS and ext4 on them
//! (buffered or direct, read ahead by the kernel or asked for) and those of io_uring (its worker threads and its polling thread included)
//! are all submitted in the reader's group. What the loop's own thread does to the image happens below and is not
//! counted. Two loops of a btrfs RAID1, limited to 60 MiB/s each, gave one reading thread 61 MiB/s and several 120 MiB/s.
//! A first few milliseconds are free, so short reads look faster than the limit. A limit in reads counts requests as
//! large as the kernel made them: read-ahead of 2 MiB is one or two of them.
//!
//! Must hold: a group is removed when its value is dropped; one whose processes still live stays until `clean` is asked.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::devices::{LoopDevice, Unavailable, is_leftover, require_root, unique_name};

/// Writes the shell into the groups before the mark `--`, then becomes the command after it.
const ENTER: &str = r#"while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@""#;

/// How fast a device may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// At most so many bytes a second.
    BytesPerSecond(u64),
    /// At most so many requests a second.
    ReadsPerSecond(u64),
}

impl ReadLimit {
    /// The file of version 1 and its line.
    fn version_1(self, device: &str) -> (&'static str, String) {
        match self {
            ReadLimit::BytesPerSecond(bytes) => {
                ("blkio.throttle.read_bps_device", format!("{device} {bytes}"))
            }
            ReadLimit::ReadsPerSecond(reads) => {
                ("blkio.throttle.read_iops_device", format!("{device} {reads}"))
            }
        }
    }

    /// The line of `io.max` in version 2.
    fn version_2(self, device: &str) -> String {
        match self {
            ReadLimit::BytesPerSecond(bytes) => format!("{device} rbps={bytes}"),
            ReadLimit::ReadsPerSecond(reads) => format!("{device} riops={reads}"),
        }
    }
}

/// A group of processes with limits; one directory for each hierarchy it is in.
#[derive(Debug)]
pub struct ControlGroup {
    directories: Vec<PathBuf>,
}

impl ControlGroup {
    /// A group without limits yet.
    ///
    /// # Errors
    /// [`Unavailable`] without root.
    pub fn create() -> Result<ControlGroup, Unavailable> {
        require_root()?;
        Ok(ControlGroup { directories: Vec::new() })
    }

    /// Limits how fast a device may be read.
    ///
    /// # Errors
    /// [`Unavailable`] where there is no controller for it.
    pub fn limit_reads(
        &mut self,
        device: &LoopDevice,
        limit: ReadLimit,
    ) -> Result<(), Unavailable> {
        let number = device.number()?;
        let (directory, version) = self.join("blkio", "io")?;
        let (file, line) = match version {
            1 => limit.version_1(&number),
            _ => ("io.max", limit.version_2(&number)),
        };
        write(&directory.join(file), &line)
    }

    /// Limits the memory of the group, its page cache included, to this many bytes.
    ///
    /// # Errors
    /// [`Unavailable`] where there is no controller for it.
    pub fn limit_memory(&mut self, bytes: u64) -> Result<(), Unavailable> {
        let (directory, version) = self.join("memory", "memory")?;
        let file = if version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        write(&directory.join(file), &bytes.to_string())
    }

    /// A command that starts inside the group.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", ENTER, "sh"]).args(&self.directories).arg("--").arg(program);
        command
    }

    /// The group's directory in the hierarchy of a controller, made if it is not there yet, and the version.
    fn join(&mut self, name_1: &str, name_2: &str) -> Result<(PathBuf, u8), Unavailable> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("reading the mounts")?;
        let (parent, version) = match hierarchy(&mounts, name_1) {
            Some(root) => (root, 1),
            None => (unified(&mounts, name_2)?, 2),
        };
        if let Some(own) = self.directories.iter().find(|own| own.parent() == Some(&parent)) {
            return Ok((own.clone(), version));
        }
        let directory = parent.join(unique_name());
        fs::create_dir(&directory).with_context(|| format!("a control group for {name_2}"))?;
        self.directories.push(directory.clone());
        Ok((directory, version))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            if remove(directory).is_err() {
                let _ = writeln!(std::io::stderr(), "left behind: {}", directory.display());
            }
        }
    }
}

/// Where a controller of version 1 is mounted.
fn hierarchy(mounts: &str, controller: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
        let matches = kind == "cgroup" && options.split(',').any(|option| option == controller);
        matches.then(|| PathBuf::from(point))
    })
}

/// Where version 2 is mounted, with the controller switched on for children.
fn unified(mounts: &str, controller: &str) -> Result<PathBuf, Unavailable> {
    let mut lines = mounts.lines().map(|line| line.split(' ').skip(1));
    let root = lines.find_map(|mut words| {
        let (point, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(point))
    });
    let root = root.ok_or_else(|| Unavailable::new("no control groups are mounted"))?;
    let offered = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if !offered.split_whitespace().any(|offered| offered == controller) {
        return Err(Unavailable::new(format!("no control groups for {controller}")));
    }
    write(&root.join("cgroup.subtree_control"), &format!("+{controller}"))?;
    Ok(root)
}

fn write(path: &Path, line: &str) -> Result<(), Unavailable> {
    fs::write(path, line).with_context(|| format!("writing {line:?} to {}", path.display()))?;
    Ok(())
}

/// Removes a group; processes that just ended may be in it a little longer.
fn remove(directory: &Path) -> std::io::Result<()> {
    for _ in 0..20 {
        if fs::remove_dir(directory).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::remove_dir(directory)
}

/// Removes the groups of processes that are gone, and gives a line for each.
pub(crate) fn clean() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let roots = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        kind.starts_with("cgroup").then(|| PathBuf::from(point))
    });
    let groups = roots.flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    let leftovers = groups.map(|entry| entry.path()).filter(|path| is_leftover(path));
    leftovers
        .filter(|path| remove(path).is_ok())
        .map(|path| format!("removed {}", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn a_controller_is_found_by_its_mount_option() {
        assert_eq!(hierarchy(MOUNTS, "blkio"), Some("/sys/fs/cgroup/blkio".into()));
        assert_eq!(hierarchy(MOUNTS, "memory"), None);
    }

    #[test]
    fn a_limit_is_spelled_for_both_versions() {
        let limit = ReadLimit::ReadsPerSecond(2000);
        assert_eq!(limit.version_1("7:0").1, "7:0 2000");
        assert_eq!(limit.version_2("7:0"), "7:0 riops=2000");
        assert_eq!(ReadLimit::BytesPerSecond(9).version_2("7:1"), "7:1 rbps=9");
    }

    #[test]
    fn a_command_outside_every_group_runs_as_it_is() {
        let group = ControlGroup { directories: Vec::new() };
        let output = group.command("echo").args(["a b", "c"]).output().unwrap();
        assert_eq!(output.stdout, b"a b c\n");
    }
}
