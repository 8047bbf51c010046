//! One block device as sysfs describes it, and those it is made of.
//!
//! `/sys/dev/block/MAJOR:MINOR` and `/sys/class/block/NAME` lead to the same directory. A partition has
//! its queue in the directory of its disk, above its own; dm and md devices name their members under
//! `slaves/`, a loop device its file in `loop/backing_file`
//! (Linux `Documentation/ABI/stable/sysfs-block`, `Documentation/admin-guide/md.rst`).
//!
//! Invariant: what the kernel does not tell is None, never a guess; a stack of devices that goes deeper
//! than `DEEPEST` is cut off there.

use std::path::{Path, PathBuf};

use super::machine::Machine;

/// How many devices may lie below each other before the description stops.
const DEEPEST: usize = 8;

/// A block device. What the kernel does not tell is None.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, `sda1`.
    pub name: String,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// True for a spinning disk, as far as the device says so; virtual disks often say so without being one.
    pub rotational: Option<bool>,
    /// The kernel's readahead for files read through this device, in units of 1024 bytes.
    pub read_ahead_kb: Option<u64>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// The smallest addressable unit in bytes, and what direct I/O aligns to at least.
    pub logical_block_size: Option<u64>,
    /// The smallest unit in bytes that the device writes without reading it first.
    pub physical_block_size: Option<u64>,
    /// Requests the queue of the block layer holds.
    pub nr_requests: Option<u64>,
    /// True when completions can be polled for, which RWF_HIPRI and IORING_SETUP_IOPOLL need.
    pub polled: Option<bool>,
    /// The devices this one is made of, in the order of their names.
    pub members: Vec<Device>,
}

/// What sort of block device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A disk, or what says it is one.
    Disk,
    /// A part of the disk of that name.
    Partition {
        /// The kernel's name of the disk.
        disk: String,
    },
    /// A file used as a disk.
    Loop {
        /// That file, as the kernel names it.
        backing_file: PathBuf,
    },
    /// A mapping of the device mapper (LVM, LUKS, multipath).
    DeviceMapper {
        /// The mapping's name.
        mapping: String,
    },
    /// A software RAID array.
    Md {
        /// The level, `raid1`.
        level: String,
        /// Members the array has when it is complete.
        raid_disks: u32,
        /// How many of them hold a copy of each block.
        copies: u32,
    },
}

impl Device {
    /// The device whose numbers are `major:minor`.
    pub(super) fn by_number(machine: &Machine, number: &str) -> Option<Self> {
        Self::in_directory(machine, &machine.sys(&format!("dev/block/{number}")), DEEPEST)
    }

    /// The device of that name.
    pub(super) fn by_name(machine: &Machine, name: &str) -> Option<Self> {
        Self::in_directory(machine, &machine.sys(&format!("class/block/{name}")), DEEPEST)
    }

    fn in_directory(machine: &Machine, link: &Path, depth: usize) -> Option<Self> {
        let own = machine.resolved(link)?;
        let name = kernel_name(&own)?;
        let disk = match own.join("partition").exists() {
            true => own.parent().unwrap_or(&own).to_path_buf(),
            false => own.clone(),
        };
        let queue = |file: &str| machine.word(&disk.join("queue").join(file));
        let number = |file: &str| queue(file)?.parse().ok();
        let flag = |file: &str| queue(file).map(|value| value == "1");
        Some(Self {
            kind: if own == disk { kind(machine, &own) } else { partition_of(&disk) },
            size_bytes: machine.number(&own.join("size")).map(|sectors| sectors * 512),
            rotational: flag("rotational"),
            read_ahead_kb: number("read_ahead_kb"),
            scheduler: queue("scheduler").map(|listed| chosen(&listed)),
            logical_block_size: number("logical_block_size"),
            physical_block_size: number("physical_block_size"),
            nr_requests: number("nr_requests"),
            polled: flag("io_poll"),
            members: members(machine, &disk, depth),
            name,
        })
    }

    /// How many devices hold a copy of each block: 1 where nothing mirrors.
    pub fn mirrors(&self) -> u32 {
        let below = self.members.iter().map(Self::mirrors).min().unwrap_or(1);
        let own = match &self.kind {
            DeviceKind::Md { copies, .. } => *copies,
            DeviceKind::DeviceMapper { .. } => {
                let images = self.members.iter().filter(|member| member.is_mirror_image());
                u32::try_from(images.count()).unwrap_or(u32::MAX)
            }
            _ => 1,
        };
        below.saturating_mul(own.max(1))
    }

    /// True for a leg of a mapping of type `mirror`, by the name LVM gives it.
    fn is_mirror_image(&self) -> bool {
        matches!(&self.kind, DeviceKind::DeviceMapper { mapping } if mapping.contains("_mimage_"))
    }
}

fn kernel_name(directory: &Path) -> Option<String> {
    // A slash in a name (`cciss/c0d0`) stands as an exclamation mark in sysfs.
    Some(directory.file_name()?.to_string_lossy().replace('!', "/"))
}

fn partition_of(disk: &Path) -> DeviceKind {
    DeviceKind::Partition { disk: kernel_name(disk).unwrap_or_default() }
}

fn kind(machine: &Machine, directory: &Path) -> DeviceKind {
    let word = |file: &str| machine.word(&directory.join(file));
    if let Some(backing_file) = word("loop/backing_file") {
        return DeviceKind::Loop { backing_file: backing_file.into() };
    }
    if let Some(mapping) = word("dm/name") {
        return DeviceKind::DeviceMapper { mapping };
    }
    if let Some(level) = word("md/level").filter(|level| !level.is_empty()) {
        // While an array is reshaped, a file holds the new value and the old one in brackets.
        let number = |file: &str| word(file)?.split(' ').next()?.parse().ok();
        let raid_disks = number("md/raid_disks").unwrap_or(0);
        let copies = md_copies(&level, raid_disks, number("md/layout"));
        return DeviceKind::Md { level, raid_disks, copies };
    }
    DeviceKind::Disk
}

/// The layout of raid10 holds the near copies in its low byte, the far ones in the next
/// (Linux `drivers/md/raid10.c`, `setup_geo`).
fn md_copies(level: &str, raid_disks: u32, layout: Option<u32>) -> u32 {
    match (level, layout) {
        ("raid1", _) => raid_disks.max(1),
        ("raid10", Some(layout)) => ((layout & 255) * (layout >> 8 & 255)).max(1),
        _ => 1,
    }
}

fn members(machine: &Machine, directory: &Path, depth: usize) -> Vec<Device> {
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let slaves = machine.list(&directory.join("slaves"));
    slaves.iter().filter_map(|slave| Device::in_directory(machine, slave, depth)).collect()
}

/// The word in brackets, of `none [mq-deadline] kyber`; the only word, where there is one.
fn chosen(listed: &str) -> String {
    let inner = listed.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(listed, |(word, _)| word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::machine::PretendedMachine;

    #[test]
    fn a_partition_has_the_queue_of_its_disk_and_its_own_size() {
        let machine = PretendedMachine::new();
        machine.block("sda", "8:0", &[("size", "4096"), ("queue/rotational", "1")]);
        machine.write("sys/devices/sda/queue/scheduler", "none [mq-deadline] kyber");
        machine.write("sys/devices/sda/sda1/partition", "1");
        machine.write("sys/devices/sda/sda1/size", "2048");
        machine.link("sys/dev/block/8:1", "sys/devices/sda/sda1");
        let found = Device::by_number(&machine.machine(), "8:1").unwrap();
        assert_eq!(found.name, "sda1");
        assert_eq!(found.kind, DeviceKind::Partition { disk: "sda".into() });
        assert_eq!(found.size_bytes, Some(1 << 20));
        assert_eq!((found.rotational, found.read_ahead_kb), (Some(true), None));
        assert_eq!(found.scheduler.as_deref(), Some("mq-deadline"));
    }

    #[test]
    fn an_md_mirror_has_as_many_copies_as_disks_and_a_stripe_one() {
        let machine = PretendedMachine::new();
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
            machine.block(name, number, &[]);
        }
        for (name, number, level) in [("md0", "9:0", "raid1"), ("md1", "9:1", "raid0")] {
            machine.block(name, number, &[("md/level", level), ("md/raid_disks", "2")]);
            for slave in ["sdb", "sda"] {
                machine.link(
                    &format!("sys/devices/{name}/slaves/{slave}"),
                    &format!("sys/devices/{slave}"),
                );
            }
        }
        let mirror = Device::by_name(&machine.machine(), "md0").unwrap();
        let names: Vec<&str> = mirror.members.iter().map(|member| &*member.name).collect();
        assert_eq!((names, mirror.mirrors()), (vec!["sda", "sdb"], 2));
        assert_eq!(Device::by_name(&machine.machine(), "md1").unwrap().mirrors(), 1);
    }

    #[test]
    fn raid10_has_its_near_copies_times_its_far_ones() {
        assert_eq!(md_copies("raid10", 4, Some(0x102)), 2);
        assert_eq!(md_copies("raid10", 6, Some(0x10203)), 6);
        assert_eq!((md_copies("raid10", 4, None), md_copies("raid5", 4, Some(2))), (1, 1));
    }

    #[test]
    fn a_volume_on_a_mirror_is_mirrored_and_a_mapping_has_its_name() {
        let machine = PretendedMachine::new();
        machine.block("md0", "9:0", &[("md/level", "raid1"), ("md/raid_disks", "3 (2)")]);
        machine.block("dm-0", "253:0", &[("dm/name", "vg-data")]);
        machine.link("sys/devices/dm-0/slaves/md0", "sys/devices/md0");
        let volume = Device::by_number(&machine.machine(), "253:0").unwrap();
        assert_eq!(volume.kind, DeviceKind::DeviceMapper { mapping: "vg-data".into() });
        assert_eq!(volume.mirrors(), 3);
    }

    #[test]
    fn a_device_that_is_its_own_member_ends_somewhere() {
        let machine = PretendedMachine::new();
        machine.block("dm-0", "253:0", &[("dm/name", "a")]);
        machine.link("sys/devices/dm-0/slaves/dm-0", "sys/devices/dm-0");
        assert!(Device::by_name(&machine.machine(), "dm-0").is_some());
    }

    #[test]
    fn a_loop_device_tells_its_file() {
        let machine = PretendedMachine::new();
        machine.block("loop3", "7:3", &[("loop/backing_file", "/var/disk image.img")]);
        let found = Device::by_name(&machine.machine(), "loop3").unwrap();
        assert_eq!(found.kind, DeviceKind::Loop { backing_file: "/var/disk image.img".into() });
        assert!(Device::by_name(&machine.machine(), "loop4").is_none());
    }
}
