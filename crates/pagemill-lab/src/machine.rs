//! What the kernel tells of the machine in files and by calls: processors, devices, load.
//!
//! Invariant: what is not told is `None` or empty, and never a guess.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagemill_io::probe::device::{Device, DeviceKind};

/// Bytes of a sector in `/sys/class/block/*/stat`, whatever the device's own are (Linux `Documentation/block/stat.rst`).
const SECTOR: u64 = 512;

/// The contents of a small file of `/proc` or `/sys`, without the line's end.
pub(crate) fn word(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Ticks of a processor's time in a second (`USER_HZ`, 100 on every architecture that Linux still has).
const TICKS: u64 = 100;

/// Time of all processors since the machine was started (`/proc/stat`, proc(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTimes {
    /// At work for anybody here.
    pub(crate) busy: Duration,
    /// Ready to work, while the host gave the processor to another guest.
    pub(crate) stolen: Duration,
}

impl ProcessorTimes {
    /// Now.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest times are in user's.
        let [user, nice, system, _, _, irq, softirq, stolen, ..] = ticks[..] else { return None };
        let duration = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS);
        Some(Self {
            busy: duration(user + nice + system + irq + softirq),
            stolen: duration(stolen),
        })
    }
}

/// How long the calling thread was ready to run and had no processor (`/proc/thread-self/schedstat`, Linux
/// `Documentation/scheduler/sched-stats.rst`).
pub(crate) fn run_queue_wait() -> Option<Duration> {
    let text = word("/proc/thread-self/schedstat")?;
    text.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Bytes that a device has moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeviceBytes {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The counters of the devices below a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceCounters {
    files: Vec<PathBuf>,
}

impl DeviceCounters {
    /// Those of the devices that hold the data itself: of a stack of devices, the uppermost.
    pub(crate) fn of(devices: &[Device]) -> Self {
        let file = |device: &Device| {
            let name = device.name.replace('/', "!");
            Path::new("/sys/class/block").join(name).join("stat")
        };
        let files = devices.iter().map(file).filter(|file| file.exists());
        Self { files: files.collect() }
    }

    /// Added over all devices; `None` where there are none.
    pub(crate) fn now(&self) -> Option<DeviceBytes> {
        let mut sum = DeviceBytes::default();
        for file in &self.files {
            let found = parse_device(&word(file)?)?;
            sum.read += found.read;
            sum.written += found.written;
        }
        (!self.files.is_empty()).then_some(sum)
    }
}

fn parse_device(line: &str) -> Option<DeviceBytes> {
    let field = |place| line.split_whitespace().nth(place)?.parse::<u64>().ok();
    Some(DeviceBytes { read: field(2)? * SECTOR, written: field(6)? * SECTOR })
}

/// The disk of a device, which has the queue: of a partition the disk it is part of.
pub(crate) fn disk_name(device: &Device) -> &str {
    match &device.kind {
        DeviceKind::Partition { disk } => disk,
        _ => &device.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_leave_idle_and_waiting_out() {
        let text = "cpu  100 2 30 4000 500 6 7 80 0 0\ncpu0 1 2 3\n";
        let found = ProcessorTimes::parse(text).unwrap();
        assert_eq!(found.busy, Duration::from_millis(1450));
        assert_eq!(found.stolen, Duration::from_millis(800));
        assert_eq!(ProcessorTimes::parse("intr 1"), None);
        assert_eq!(ProcessorTimes::parse("cpu  1 2"), None);
    }

    #[test]
    fn a_device_counts_in_sectors_of_512_bytes() {
        let line = "  327        0   325624     3570     1501     3286   674328    12602        0";
        let found = parse_device(line).unwrap();
        assert_eq!((found.read, found.written), (325_624 * 512, 674_328 * 512));
        assert_eq!(parse_device(""), None);
    }

    #[test]
    fn no_device_is_not_a_device_that_moved_nothing() {
        assert_eq!(DeviceCounters::default().now(), None);
    }
}
