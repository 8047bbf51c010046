//! The machine and the versions a result was measured with.
//!
//! Only what changes a figure, and nothing that names the machine, its owner or its directories.
//! Whatever cannot be found out is left out.

use std::path::Path;
use std::process::Command;

use super::output_of;
use super::server::Cluster;

/// Names with values, in the order they are printed.
pub(super) fn collect(
    cluster: &Cluster,
    pagemill: Option<String>,
    root: &Path,
) -> Vec<(&'static str, String)> {
    of_directory(&cluster.directory, Some(cluster.version()), pagemill, root)
}

/// As [`collect`], for a directory with no cluster in it.
pub(crate) fn of_directory(
    directory: &Path,
    postgresql: Option<String>,
    pagemill: Option<String>,
    root: &Path,
) -> Vec<(&'static str, String)> {
    let mount = mount_of(directory);
    let queue = mount.as_ref().and_then(|mount| mount.queue.clone()).unwrap_or_default();
    let entries = [
        ("date", said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        ("kernel", said("uname", &["-sr"])),
        ("cpu", proc_entry("/proc/cpuinfo", "model name")),
        ("cores", said("nproc", &[])),
        ("governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("virtualization", said("systemd-detect-virt", &[])),
        ("memory", proc_entry("/proc/meminfo", "MemTotal")),
        ("load average", line_of("/proc/loadavg").map(|line| first_words(&line, 3))),
        ("file system", mount.as_ref().map(|mount| mount.kind.clone())),
        ("mount options", mount.as_ref().map(|mount| mount.options.clone())),
        ("device", mount.as_ref().map(|mount| mount.source.clone())),
        ("scheduler", line_of(&format!("{queue}/scheduler"))),
        ("read_ahead_kb", line_of(&format!("{queue}/read_ahead_kb"))),
        ("postgresql", postgresql),
        ("pagemill", pagemill),
        ("commit", commit(root)),
        ("rustc", said("rustc", &["--version"])),
    ];
    entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = output_of(Command::new(program).args(arguments)).ok()?;
    Some(output.trim().to_owned()).filter(|text| !text.is_empty())
}

fn line_of(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

fn first_words(line: &str, count: usize) -> String {
    line.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

fn proc_entry(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let entry = |line: &str| Some(line.strip_prefix(name)?.split_once(':')?.1.trim().to_owned());
    text.lines().find_map(entry)
}

fn commit(root: &Path) -> Option<String> {
    let git =
        |arguments: &[&str]| output_of(Command::new("git").args(arguments).current_dir(root)).ok();
    let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.trim().is_empty() { commit } else { format!("{commit} with changes") })
}

struct Mount {
    kind: String,
    source: String,
    options: String,
    /// The queue directory of its block device, when it has one.
    queue: Option<String>,
}

fn mount_of(directory: &Path) -> Option<Mount> {
    let mut findmnt = Command::new("findmnt");
    findmnt.args(["-n", "-o", "FSTYPE,SOURCE,OPTIONS", "-T"]).arg(directory);
    let line = output_of(&mut findmnt).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (kind, source, options) = (words.next()?, words.next()?, words.next()?);
    let queue = queue_of(&source);
    Some(Mount { kind, source, options, queue })
}

/// A partition has no queue of its own: its disk's is one directory up.
fn queue_of(source: &str) -> Option<String> {
    let device = source.strip_prefix("/dev/")?.split('[').next()?;
    let own = std::fs::canonicalize(format!("/sys/class/block/{device}")).ok()?;
    let queue =
        [own.join("queue"), own.parent()?.join("queue")].into_iter().find(|q| q.is_dir())?;
    Some(queue.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_a_missing_entry_is_left_out() {
        assert!(proc_entry("/proc/meminfo", "MemTotal").unwrap().ends_with("kB"));
        assert_eq!(proc_entry("/proc/meminfo", "NoSuchEntry"), None);
        assert_eq!(line_of("/proc/no-such-file"), None);
    }

    #[test]
    fn a_source_that_is_no_device_has_no_queue() {
        assert_eq!(queue_of("overlay"), None);
        assert_eq!(queue_of("/dev/no-such-device"), None);
    }
}
