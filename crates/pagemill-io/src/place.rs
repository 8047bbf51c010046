//! What lies below a file, as far as it matters to how the file is read.
//!
//! Invariant: what is not known counts as the plain case: one disk that the kernel reads ahead on well
//! enough.

use std::path::Path;

use crate::probe::device::{self, DeviceDescription};

/// Below this much readahead (in units of 1024 bytes) the kernel keeps too little in flight for a device
/// without moving parts.
const SMALL_READ_AHEAD_KB: u64 = 1024;

/// From this much readahead on it is far.
const LARGE_READ_AHEAD_KB: u64 = 4096;

/// The place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Disks that each hold all of it; 1 where nothing is mirrored.
    pub mirrors: u32,
    /// True where the number of the reading thread decides which mirror it reads from (btrfs).
    pub mirror_by_thread: bool,
    /// True for disks that turn: what matters most is how far their heads move.
    pub turns: bool,
    /// True when the kernel's readahead keeps less in flight than the device can serve at once.
    pub reads_ahead_too_little: bool,
    /// True when it reads so far ahead that even the faults of a mapping seldom wait for the device.
    pub reads_ahead_far: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            mirrors: 1,
            mirror_by_thread: false,
            turns: false,
            reads_ahead_too_little: false,
            reads_ahead_far: false,
        }
    }
}

impl Place {
    /// The place of a file of this machine.
    pub(crate) fn of(path: &Path) -> Self {
        device::describe(path).map_or_else(|_| Self::default(), |found| Self::from_device(&found))
    }

    fn from_device(found: &DeviceDescription) -> Self {
        let turns = found.devices.iter().any(|device| device.rotational == Some(true));
        let little = found.read_ahead_kb.is_some_and(|kb| kb < SMALL_READ_AHEAD_KB);
        Self {
            mirrors: found.mirrors,
            mirror_by_thread: found.file_system == "btrfs"
                && found.read_policy.as_deref().is_none_or(|policy| policy == "pid"),
            turns,
            reads_ahead_too_little: little && !turns && !found.devices.is_empty(),
            reads_ahead_far: found.read_ahead_kb.is_some_and(|kb| kb >= LARGE_READ_AHEAD_KB),
        }
    }
}
