//! What a run ran on, as facts, and what of it makes its figures doubtful.
//!
//! Invariant: no fact names the machine, its owner or a directory: results are shown to others. What the kernel
//! does not tell is left out.

use std::path::Path;
use std::time::Duration;

use pagemill_io::probe::device::{Device, DeviceDescription, DeviceKind};
use pagemill_io::probe::{self, Limits};

use crate::error::Result;
use crate::machine::{ProcessorTimes, disk_name, word};
use crate::results::{Fact, Warning, WarningKind};

/// How long the machine is watched for others' work before the run.
const WATCHED: Duration = Duration::from_millis(300);
/// Share of all processors from which on others' work is worth a warning.
const BUSY: f64 = 0.10;
/// File systems whose files are another machine's.
const NETWORK: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "9p",
    "virtiofs",
    "glusterfs",
    "lustre",
    "afs",
    "fuse.sshfs",
    "fuse.glusterfs",
];
/// File systems whose files are in memory.
pub(crate) const MEMORY: [&str; 3] = ["tmpfs", "ramfs", "devtmpfs"];

/// What a run runs on.
#[derive(Debug, Clone)]
pub struct Environment {
    /// In the order in which they are told.
    pub facts: Vec<Fact>,
    /// What is doubtful from the start.
    pub warnings: Vec<Warning>,
    /// The devices below.
    pub devices: Vec<Device>,
    /// The machine's memory in bytes, or that of the control group where it is less.
    pub memory_bytes: Option<u64>,
}

/// Looks at the machine, and at what lies below `directory`, in which calls are tried on a file without a name.
///
/// # Errors
/// When the directory cannot be looked at.
pub fn look_around(directory: &Path) -> Result<Environment> {
    let report = probe::run(directory)?;
    let mut facts = Facts::default();
    facts.add("kernel", format!("Linux {}", report.kernel));
    facts.add("architecture", std::env::consts::ARCH);
    processors(&mut facts);
    memory(&mut facts, &report.limits);
    place(&mut facts, &report.place);
    offers(&mut facts, &report);
    facts.add("pagemill", env!("CARGO_PKG_VERSION"));
    let mut warnings: Vec<Warning> =
        file_system_warning(&report.place.file_system).into_iter().collect();
    warnings.extend(processor_warning());
    warnings.extend(busy_warning());
    let limits = [report.limits.memory_bytes, report.limits.memory_cgroup_bytes];
    Ok(Environment {
        facts: facts.0,
        warnings,
        devices: report.place.devices,
        memory_bytes: limits.into_iter().flatten().min(),
    })
}

/// Facts in the making.
#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0.push(Fact { name: name.into(), value: value.into() });
    }

    fn add_known(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value.to_string());
        }
    }
}

fn processors(facts: &mut Facts) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let model = word("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    facts.add("processors", count.to_string());
    facts.add_known("processor", model);
    facts.add_known("governor", governor());
    let virtualized = word("/proc/cpuinfo").is_some_and(|text| {
        text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
    });
    if virtualized {
        facts.add("virtual_machine", "yes");
    }
    let load = word("/proc/loadavg");
    facts
        .add_known("load_average", load.and_then(|text| text.split(' ').next().map(str::to_owned)));
}

fn governor() -> Option<String> {
    word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

fn memory(facts: &mut Facts, limits: &Limits) {
    facts.add_known("memory_bytes", limits.memory_bytes);
    facts.add_known("memory_limit_bytes", limits.memory_cgroup_bytes);
    let or_none = |limit: Option<u64>| limit.map_or("no limit".into(), |limit| limit.to_string());
    facts.add("open_files_limit", or_none(limits.nofile.0));
    facts.add("locked_memory_limit_bytes", or_none(limits.memlock.0));
    facts.add("machine_page_bytes", limits.page_size_bytes.to_string());
    facts.add_known("transparent_hugepage", limits.transparent_hugepage.as_ref());
}

fn place(facts: &mut Facts, place: &DeviceDescription) {
    facts.add("file_system", place.file_system.as_str());
    facts.add("mount_options", shown_options(&place.mount_options));
    facts.add_known("read_ahead_kb", place.read_ahead_kb);
    facts.add("mirrors", place.mirrors.to_string());
    if !place.data_profiles.is_empty() {
        facts.add("data_profiles", place.data_profiles.join(","));
    }
    facts.add_known("read_policy", place.read_policy.as_ref());
    for device in &place.devices {
        device_facts(facts, device);
    }
    facts.add_known("device_note", place.note.as_ref());
}

/// Without those that name a directory or an address.
fn shown_options(options: &[String]) -> String {
    let shown = |option: &&String| !option.contains('/') && !option.contains("addr=");
    options.iter().filter(shown).cloned().collect::<Vec<_>>().join(",")
}

fn device_facts(facts: &mut Facts, device: &Device) {
    facts.add("device", format!("{}: {}", device.name, kind_of(device)));
    facts.add_known("device_size_bytes", device.size_bytes);
    facts.add_known(
        "rotational",
        device.rotational.map(|rotational| if rotational { "yes" } else { "no" }),
    );
    facts.add_known("scheduler", device.scheduler.as_ref());
    facts.add_known("device_read_ahead_kb", device.read_ahead_kb);
    facts.add_known("logical_block_size", device.logical_block_size);
    facts.add_known("physical_block_size", device.physical_block_size);
    facts.add_known("nr_requests", device.nr_requests);
    let cache = format!("/sys/class/block/{}/queue/write_cache", disk_name(device));
    facts.add_known("write_cache", word(cache));
    for member in &device.members {
        device_facts(facts, member);
    }
}

fn kind_of(device: &Device) -> String {
    match &device.kind {
        DeviceKind::Disk => "disk".into(),
        DeviceKind::Partition { .. } => "partition".into(),
        DeviceKind::Loop { .. } => "loop device".into(),
        DeviceKind::DeviceMapper { .. } => "device mapper".into(),
        DeviceKind::Md { level, raid_disks, copies } => {
            format!("md {level} of {raid_disks} disks, {copies} copies")
        }
        _ => "device".into(),
    }
}

/// What calls this place has, in a word each.
fn offers(facts: &mut Facts, report: &probe::Report) {
    for name in ["io_uring", "o_direct", "fallocate", "cachestat", "ficlone"] {
        facts.add_known(name, report.finding(name).map(|finding| finding.state.name()));
    }
}

fn file_system_warning(file_system: &str) -> Option<Warning> {
    let kind = WarningKind::FileSystem;
    if NETWORK.contains(&file_system) {
        return Some(Warning {
            kind,
            group: None,
            message: format!(
                "{file_system} is a file system of another machine: the network is in every figure"
            ),
            remedy: "name a directory on the storage that PostgreSQL uses".into(),
        });
    }
    MEMORY.contains(&file_system).then(|| Warning {
        kind,
        group: None,
        message: format!(
            "{file_system} keeps files in memory: nothing here says anything of a disk"
        ),
        remedy: "name a directory on the storage that PostgreSQL uses".into(),
    })
}

fn processor_warning() -> Option<Warning> {
    let (message, remedy) = match governor() {
        Some(governor) if governor == "performance" => return None,
        Some(governor) => (
            format!("the processors' governor is {governor}: their speed changes with the load"),
            "set it for the run: cpupower frequency-set -g performance",
        ),
        None => (
            "the kernel does not tell whether the processors' speed is steady (a virtual machine?)"
                .into(),
            "run it twice, and believe what both runs say",
        ),
    };
    let kind = WarningKind::ProcessorSpeed;
    Some(Warning { kind, group: None, message, remedy: remedy.into() })
}

/// Watches the machine for a moment in which this process does nothing.
fn busy_warning() -> Option<Warning> {
    let before = ProcessorTimes::now()?;
    std::thread::sleep(WATCHED);
    let now = ProcessorTimes::now()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let share = |used: Duration| used.as_secs_f64() / WATCHED.as_secs_f64() / processors;
    let (busy, stolen) = (
        share(now.busy.saturating_sub(before.busy)),
        share(now.stolen.saturating_sub(before.stolen)),
    );
    (busy + stolen > BUSY).then(|| Warning {
        kind: WarningKind::BusyMachine,
        group: None,
        message: format!(
            "before the run others used {:.0} % of the processors, and {:.0} % were taken by the host",
            busy * 100.0,
            stolen * 100.0
        ),
        remedy: "stop what else runs here, or run at a quieter time".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_are_named_once_and_name_no_place() {
        let dir = tempfile::tempdir().unwrap();
        let found = look_around(dir.path()).unwrap();
        let value = |name: &str| found.facts.iter().find(|fact| fact.name == name);
        for name in ["kernel", "processors", "file_system", "mount_options", "io_uring", "pagemill"]
        {
            assert!(value(name).is_some_and(|fact| !fact.value.is_empty()), "{name}: {found:?}");
        }
        let path = dir.path().to_str().unwrap();
        assert!(found.facts.iter().all(|fact| !fact.value.contains(path)), "{:?}", found.facts);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn options_that_name_a_place_are_left_out() {
        let options = ["rw", "lowerdir=/a/b", "addr=10.0.0.1", "relatime"].map(str::to_owned);
        assert_eq!(shown_options(&options), "rw,relatime");
    }

    #[test]
    fn files_of_others_and_files_in_memory_are_warned_of() {
        assert!(file_system_warning("nfs4").unwrap().message.contains("network"));
        assert!(file_system_warning("tmpfs").unwrap().message.contains("memory"));
        assert_eq!(file_system_warning("ext4"), None);
    }
}
