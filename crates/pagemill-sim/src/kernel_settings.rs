//! The kernel between the reader and the drives: its settings, and what its calls cost.
//!
//! Two ready-made kernels: [`KernelSettings::linux_2_6_30`], for what was measured in 2009, and
//! [`KernelSettings::linux_6`]. The numbers are defaults of these kernels, and what a machine of the time
//! takes for a call and for a copy.

use std::time::Duration;

use crate::drive::nanos;
use crate::request_queue::{Plug, QueueSettings};

/// How the kernel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSettings {
    /// The longest readahead (`read_ahead_kb`), in bytes.
    pub read_ahead: u64,
    /// The most bytes that one call of `posix_fadvise(WILLNEED)` reads; the kernels before 4.10 had no
    /// limit.
    pub willneed_limit: Option<u64>,
    /// Memory for the page cache, in bytes.
    pub memory: u64,
    /// Requests of one drive at once (`nr_requests`).
    pub nr_requests: usize,
    /// The longest request (`max_sectors_kb`), in bytes.
    pub max_request: u64,
    /// The most requests given to a drive at once by the I/O scheduler, whatever the drive takes.
    pub dispatch: usize,
    /// How many requests let an idle queue go, and after how long it goes by itself; `None` where each call
    /// sends off its own.
    pub plug: Option<(usize, Duration)>,
    /// True where readahead is put off while a queue is congested.
    pub yields_to_congestion: bool,
    /// True for a file system that finds its blocks by block maps (ext2, ext3), one for each 1024 blocks and
    /// lying before them, and not by extents. A map is read when it is first needed, and waited for.
    pub block_maps: bool,
    /// What a call costs.
    pub call: Duration,
    /// Bytes a second that a copy from the page cache does.
    pub copy_rate: u64,
    /// Threads that the method `worker` has.
    pub workers: usize,
}

impl KernelSettings {
    /// Linux 2.6.30 with CFQ and ext3, on a desktop of 2009 with 2 GB of memory.
    pub fn linux_2_6_30() -> Self {
        Self {
            read_ahead: 128 << 10,
            willneed_limit: None,
            memory: 1536 << 20,
            nr_requests: 128,
            max_request: 512 << 10,
            dispatch: 4,
            plug: Some((4, Duration::from_millis(3))),
            yields_to_congestion: true,
            block_maps: true,
            call: Duration::from_nanos(500),
            copy_rate: 2_500_000_000,
            workers: 4,
        }
    }

    /// A kernel of the sixth series with a file system of extents, on a machine of its time.
    pub fn linux_6() -> Self {
        Self {
            read_ahead: 128 << 10,
            willneed_limit: Some(512 << 10),
            memory: 4 << 30,
            nr_requests: 256,
            max_request: 512 << 10,
            dispatch: usize::MAX,
            plug: None,
            yields_to_congestion: false,
            block_maps: false,
            call: Duration::from_nanos(300),
            copy_rate: 8_000_000_000,
            workers: 4,
        }
    }

    pub(crate) fn queue(&self) -> QueueSettings {
        QueueSettings {
            nr_requests: self.nr_requests,
            max_request: self.max_request,
            dispatch: self.dispatch,
            plug: self.plug.map(|(requests, delay)| Plug { requests, delay: nanos(delay) }),
        }
    }
}
