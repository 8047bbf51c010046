//! What lies below a file, as far as it matters to how the file is read.
//!
//! Invariant: what is not known counts as the plain case: one disk that the kernel reads ahead on well
//! enough.

use std::path::Path;

use crate::memory_limit::memory_limit;
use crate::probe::device::{self, DeviceDescription};

/// The place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTraits {
    /// Disks that each hold all of it; 1 where nothing is mirrored.
    pub mirrors: u32,
    /// True where the number of the reading thread decides which mirror it reads from (btrfs).
    pub mirror_by_thread: bool,
    /// True for disks that turn: what matters most is how far their heads move.
    pub turns: bool,
    /// True where block devices of this machine are known to hold it.
    pub has_devices: bool,
    /// How far the kernel reads ahead, in units of 1024 bytes; `None` where that is not known.
    pub read_ahead_kb: Option<u64>,
    /// True when blocks are written to a new place each time (btrfs, ZFS, bcachefs): space for them cannot
    /// be taken beforehand.
    pub copies_on_write: bool,
    /// True when the file system compresses what is written here, unless it was allocated (btrfs).
    pub compresses: bool,
    /// How many bytes of files the page cache can hold for this process, at most.
    pub cache_bytes: u64,
}

impl Default for StorageTraits {
    fn default() -> Self {
        Self {
            mirrors: 1,
            mirror_by_thread: false,
            turns: false,
            has_devices: false,
            read_ahead_kb: None,
            copies_on_write: false,
            compresses: false,
            cache_bytes: u64::MAX,
        }
    }
}

impl StorageTraits {
    /// The place of a file of this machine.
    pub(crate) fn of(path: &Path) -> Self {
        // What is yet to be made lies where its directory does.
        let found = device::describe(path).or_else(|_| device::describe(directory_of(path)));
        let Ok(found) = found else { return Self::default() };
        let place = Self::from_device(&found);
        let btrfs = found.file_system == "btrfs";
        let compresses = place.compresses || (btrfs && is_marked(directory_of(path)));
        Self { compresses, cache_bytes: memory_limit(), ..place }
    }

    fn from_device(found: &DeviceDescription) -> Self {
        let turns = found.devices.iter().any(|device| device.rotational == Some(true));
        Self {
            mirrors: found.mirrors,
            mirror_by_thread: found.file_system == "btrfs"
                && found.read_policy.as_deref().is_none_or(|policy| policy == "pid"),
            turns,
            has_devices: !found.devices.is_empty(),
            read_ahead_kb: found.read_ahead_kb,
            copies_on_write: COPY_ON_WRITE.contains(&found.file_system.as_str()),
            compresses: found.file_system == "btrfs"
                && found.mount_options.iter().any(|option| is_compression(option)),
            ..Self::default()
        }
    }
}

/// File systems that write each block to a new place.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

fn is_compression(option: &str) -> bool {
    let on = option.starts_with("compress=") || option.starts_with("compress-force=");
    on && !option.ends_with("=no") && !option.ends_with("=none")
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// True when files made in the directory are to be compressed (`chattr +c`).
fn is_marked(directory: &Path) -> bool {
    use rustix::fs::{IFlags, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    let found = opened.and_then(rustix::fs::ioctl_getflags);
    found.is_ok_and(|found| found.contains(IFlags::COMPRESSED))
}
