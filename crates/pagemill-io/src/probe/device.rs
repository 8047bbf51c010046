//! Where a path lies: its file system, the devices below, and how many copies of a block these hold.
//!
//! The mount tells the file system. One block device is found by its number; btrfs, which has as many
//! as it likes and a made-up number, names them under `/sys/fs/btrfs/UUID/devices`, and how data is
//! spread over them by the directories under `allocation/data`
//! (Linux `Documentation/ABI/testing/sysfs-fs-btrfs`, `fs/btrfs/sysfs.c`).
//!
//! Invariant: nothing is opened but files of `/proc` and `/sys`; what they do not tell is None or
//! empty, and [`DeviceDescription::note`] says why.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};

pub use super::block_device::{Device, DeviceKind};
use super::machine::Machine;
use super::mounts::{self, Mount};
use crate::error::{Error, Result};

/// The place of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDescription {
    /// The type of the file system, as mount(8) names it; `unknown` without `/proc`.
    pub file_system: String,
    /// What is mounted: a device, a host and path, or any word.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// How it is mounted.
    pub mount_options: Vec<String>,
    /// The kernel's readahead for files here, in units of 1024 bytes. On some file systems (btrfs, NFS)
    /// it is not that of a device.
    pub read_ahead_kb: Option<u64>,
    /// How btrfs spreads data, `raid1`; several while it is converted.
    pub data_profiles: Vec<String>,
    /// How btrfs chooses among copies. With `pid`, one process reads from one of them alone.
    pub read_policy: Option<String>,
    /// The block devices, none for file systems in memory or on a network.
    pub devices: Vec<Device>,
    /// How many devices hold a copy of each block; 1 where nothing is mirrored, or nothing known.
    pub mirrors: u32,
    /// Why the devices or their mirrors are not known, when they are not.
    pub note: Option<String>,
}

/// Describes the place of `path`, symbolic links followed.
///
/// # Errors
/// Names the path, when it does not exist or may not be looked at.
pub fn describe(path: &Path) -> Result<DeviceDescription> {
    let resolved = path.canonicalize().map_err(|error| Error::new(error, path))?;
    let mount_id = rustix::fs::statx(CWD, &resolved, AtFlags::empty(), StatxFlags::MNT_ID)
        .ok()
        .filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0)
        .map(|found| found.stx_mnt_id);
    Ok(describe_on(&Machine::this(), &resolved, mount_id))
}

fn describe_on(machine: &Machine, path: &Path, mount_id: Option<u64>) -> DeviceDescription {
    // A thread may have mounts of its own.
    let table = machine.text(&machine.proc("thread-self/mountinfo"));
    let table = table.or_else(|| machine.text(&machine.proc("self/mountinfo"))).unwrap_or_default();
    let mounts = mounts::parse(&table);
    match mounts::of_path(&mounts, path, mount_id) {
        Some(mount) => describe_mount(machine, mount),
        None => unknown(),
    }
}

fn unknown() -> DeviceDescription {
    DeviceDescription {
        file_system: "unknown".into(),
        source: String::new(),
        mount_point: PathBuf::new(),
        mount_options: Vec::new(),
        read_ahead_kb: None,
        data_profiles: Vec::new(),
        read_policy: None,
        devices: Vec::new(),
        mirrors: 1,
        note: Some("no mount in /proc/self/mountinfo fits: is /proc mounted?".into()),
    }
}

fn describe_mount(machine: &Machine, mount: &Mount) -> DeviceDescription {
    let btrfs = (mount.file_system == "btrfs").then(|| Btrfs::of(machine, mount)).flatten();
    let devices = match &btrfs {
        Some(btrfs) => btrfs.devices(machine),
        None => own_device(machine, mount).into_iter().collect(),
    };
    let bdi = machine.sys(&format!("class/bdi/{}", mount.device));
    let bdi = btrfs.as_ref().map_or(bdi, |btrfs| btrfs.directory.join("bdi"));
    let profiles = btrfs.as_ref().map(|btrfs| btrfs.data_profiles(machine)).unwrap_or_default();
    let below = devices.iter().map(Device::mirrors).min().unwrap_or(1);
    DeviceDescription {
        file_system: mount.file_system.clone(),
        source: mount.source.clone(),
        mount_point: mount.mount_point.clone(),
        mount_options: mount.options.clone(),
        read_ahead_kb: machine
            .number(&bdi.join("read_ahead_kb"))
            .or_else(|| devices.first()?.read_ahead_kb),
        mirrors: below.saturating_mul(copies(&profiles, devices.len())),
        data_profiles: profiles,
        read_policy: btrfs.and_then(|btrfs| btrfs.read_policy(machine)),
        note: note(mount, &devices),
        devices,
    }
}

/// The device a mount is on: by its number, or by its name where the number is made up.
fn own_device(machine: &Machine, mount: &Mount) -> Option<Device> {
    if !mount.device.starts_with("0:") {
        return Device::by_number(machine, &mount.device);
    }
    Device::by_name(machine, &source_name(machine, mount)?)
}

/// The kernel's name of the device that was mounted; `/dev/mapper/…` are links.
fn source_name(machine: &Machine, mount: &Mount) -> Option<String> {
    let source = Path::new(&mount.source);
    if !source.starts_with("/dev") {
        return None;
    }
    let resolved = machine.resolved(source).unwrap_or_else(|| source.to_path_buf());
    Some(resolved.file_name()?.to_string_lossy().into_owned())
}

/// The directory of a mounted btrfs in sysfs.
struct Btrfs {
    directory: PathBuf,
}

impl Btrfs {
    /// The one that has the mounted device among its own.
    fn of(machine: &Machine, mount: &Mount) -> Option<Self> {
        let name = source_name(machine, mount)?;
        let directories = machine.list(&machine.sys("fs/btrfs"));
        let has_it = |directory: &PathBuf| directory.join("devices").join(&name).exists();
        directories.into_iter().find(has_it).map(|directory| Self { directory })
    }

    fn devices(&self, machine: &Machine) -> Vec<Device> {
        let links = machine.list(&self.directory.join("devices"));
        let names = links.iter().filter_map(|link| link.file_name()?.to_str());
        names.filter_map(|name| Device::by_name(machine, name)).collect()
    }

    /// The directories under `allocation/data`: one for each profile in use.
    fn data_profiles(&self, machine: &Machine) -> Vec<String> {
        // Of a file system with mixed block groups, data and metadata lie together.
        let entries = ["data", "mixed"].into_iter().find_map(|kind| {
            let listed = machine.list(&self.directory.join("allocation").join(kind));
            (!listed.is_empty()).then_some(listed)
        });
        let directories = entries.unwrap_or_default().into_iter().filter(|path| path.is_dir());
        directories
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect()
    }

    /// The policy in brackets, of `[pid] round-robin`.
    fn read_policy(&self, machine: &Machine) -> Option<String> {
        let listed = machine.word(&self.directory.join("read_policy"))?;
        let inner = listed.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Some(inner.map_or(listed.as_str(), |(word, _)| word).to_owned())
    }
}

/// How many devices hold a copy of each block under these profiles: of several, the least.
fn copies(profiles: &[String], devices: usize) -> u32 {
    let of = |profile: &String| match profile.as_str() {
        "raid1" | "raid10" => 2,
        "raid1c3" => 3,
        "raid1c4" => 4,
        // `dup` keeps both copies on one device.
        _ => 1,
    };
    let copies = profiles.iter().map(of).min().unwrap_or(1);
    copies.min(u32::try_from(devices.max(1)).unwrap_or(u32::MAX))
}

/// Why something is not known.
fn note(mount: &Mount, devices: &[Device]) -> Option<String> {
    if devices.iter().any(has_untold_mirrors) {
        let text =
            "sysfs does not tell how the array mirrors: see `dmsetup table`, `mdadm --detail`";
        return Some(text.into());
    }
    if !devices.is_empty() {
        return None;
    }
    let why = match mount.file_system.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" => "the files are in memory",
        "overlay" => "the layers are other file systems, whose devices are not told here",
        "zfs" => "sysfs does not tell the pool's devices: see `zpool status`",
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" => {
            "the devices are another machine's"
        }
        _ => "sysfs names no block device for this file system",
    };
    Some(why.into())
}

/// True for a raid of the device mapper, by the names LVM gives its legs: its level is not in sysfs.
fn has_untold_mirrors(device: &Device) -> bool {
    let own = matches!(&device.kind, DeviceKind::DeviceMapper { mapping } if mapping.contains("_rimage_"));
    own || device.members.iter().any(has_untold_mirrors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::machine::PretendedMachine;

    fn on_btrfs(profiles: &[&str]) -> DeviceDescription {
        let pretended = PretendedMachine::new();
        pretended.write(
            "proc/self/mountinfo",
            "44 27 0:41 / /data rw,noatime - btrfs /dev/loop98 rw,compress=zstd:3,subvol=/\n\
             45 27 8:0 / / rw - ext4 /dev/sda rw",
        );
        for (name, number) in [("loop98", "7:98"), ("loop99", "7:99"), ("sda", "8:0")] {
            pretended.block(name, number, &[("queue/read_ahead_kb", "128")]);
        }
        let directory = "sys/fs/btrfs/56eb0b40";
        for name in ["loop98", "loop99"] {
            pretended.link(&format!("{directory}/devices/{name}"), &format!("sys/devices/{name}"));
        }
        for profile in profiles {
            pretended.write(&format!("{directory}/allocation/data/{profile}/used_bytes"), "0");
        }
        pretended.write(&format!("{directory}/allocation/data/flags"), "1");
        pretended.write(&format!("{directory}/bdi/read_ahead_kb"), "4096");
        pretended.write(&format!("{directory}/read_policy"), "[pid] round-robin");
        describe_on(&pretended.machine(), Path::new("/data/base"), Some(44))
    }

    #[test]
    fn btrfs_names_its_devices_its_profile_and_its_own_readahead() {
        let found = on_btrfs(&["raid1"]);
        assert_eq!((&*found.file_system, found.mirrors), ("btrfs", 2));
        let names: Vec<&str> = found.devices.iter().map(|device| &*device.name).collect();
        assert_eq!(names, ["loop98", "loop99"]);
        assert_eq!(found.data_profiles, ["raid1"]);
        assert_eq!(found.read_policy.as_deref(), Some("pid"));
        assert_eq!((found.read_ahead_kb, found.devices[0].read_ahead_kb), (Some(4096), Some(128)));
        assert_eq!(found.note, None);
    }

    #[test]
    fn profiles_tell_how_many_devices_hold_a_block() {
        assert_eq!(on_btrfs(&["raid10"]).mirrors, 2);
        for profiles in [&["single"][..], &["dup"], &["raid0"], &["raid1", "single"], &[]] {
            assert_eq!(on_btrfs(profiles).mirrors, 1, "{profiles:?}");
        }
        let profiles = ["raid1c3".to_owned()];
        assert_eq!((copies(&profiles, 3), copies(&profiles, 1), copies(&profiles, 0)), (3, 1, 1));
    }

    #[test]
    fn a_file_system_in_memory_has_no_device_and_says_why() {
        let pretended = PretendedMachine::new();
        pretended.write("proc/self/mountinfo", "25 24 0:23 / / rw - tmpfs tmpfs rw,size=9k");
        let found = describe_on(&pretended.machine(), Path::new("/x"), None);
        assert_eq!((found.devices.len(), found.mirrors), (0, 1));
        assert_eq!(found.note.as_deref(), Some("the files are in memory"));
    }

    #[test]
    fn without_a_table_of_mounts_the_file_system_is_unknown_and_no_failure() {
        let found = describe_on(&PretendedMachine::new().machine(), Path::new("/x"), Some(1));
        assert_eq!(found.file_system, "unknown");
        assert!(found.note.unwrap().contains("/proc"));
    }

    #[test]
    fn this_machine_describes_its_temporary_directory_and_misses_what_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let found = describe(dir.path()).unwrap();
        assert!(found.mirrors >= 1 && !found.file_system.is_empty(), "{found:?}");
        assert!(describe(&dir.path().join("absent")).unwrap_err().is_not_found());
    }
}
