//! Drives without an arm: an NVMe drive, whose channels work side by side, and a volume in the cloud, which
//! is as fast as was paid for.
//!
//! Invariant: when a command is done is known when it is taken, so that both are agendas.

use std::time::Duration;

use crate::drive::{Agenda, Command, DriveModel, Nanos, nanos, time_for};
use crate::seed::Random;

/// The data sheet of an NVMe drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmeSheet {
    /// From a command to its first byte, where nothing else is done.
    pub latency: Duration,
    /// Reads of the memory that go on side by side.
    pub channels: usize,
    /// Bytes of one such read.
    pub channel_read: u64,
    /// Bytes a second of all of it.
    pub rate: u64,
    /// Commands it takes at once.
    pub queue_depth: usize,
}

impl NvmeSheet {
    /// A common drive: 80 µs, 3.2 GB/s, about 340,000 reads of 8 kB a second.
    pub fn common() -> Self {
        Self {
            latency: Duration::from_micros(80),
            channels: 32,
            channel_read: 16 << 10,
            rate: 3_200_000_000,
            queue_depth: 1023,
        }
    }
}

/// An NVMe drive.
#[derive(Debug)]
pub(crate) struct Nvme {
    sheet: NvmeSheet,
    /// Until when each channel is busy.
    channels: Vec<Nanos>,
    bus: Nanos,
    agenda: Agenda,
}

impl Nvme {
    pub(crate) fn new(sheet: NvmeSheet) -> Self {
        Self { sheet, channels: vec![0; sheet.channels.max(1)], bus: 0, agenda: Agenda::default() }
    }
}

impl DriveModel for Nvme {
    fn depth(&self) -> usize {
        self.sheet.queue_depth.max(1)
    }

    fn take(&mut self, command: Command, now: Nanos) {
        let piece = self.sheet.channel_read.max(512);
        let mut left = command.len.max(1);
        let mut done = now;
        while left > 0 {
            let len = left.min(piece);
            left -= len;
            let Some(channel) = self.channels.iter_mut().min_by_key(|until| **until) else { break };
            *channel = now.max(*channel) + nanos(self.sheet.latency);
            self.bus = self.bus.max(*channel) + time_for(len, self.sheet.rate);
            done = done.max(self.bus);
        }
        self.agenda.add(done, command.id);
    }

    fn next_done(&self) -> Option<Nanos> {
        self.agenda.next()
    }

    fn done(&mut self, now: Nanos) -> Option<u64> {
        self.agenda.due(now)
    }
}

/// What a volume in the cloud was bought with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudSheet {
    /// From a read to its answer, on average.
    pub latency: Duration,
    /// How much shorter or longer it may be, in percent.
    pub jitter: u64,
    /// Reads a second.
    pub iops: u64,
    /// Bytes a second.
    pub rate: u64,
    /// A longer read counts as several.
    pub largest: u64,
    /// How much of a time without reads can be made up for.
    pub burst: Duration,
    /// Reads it takes at once.
    pub queue_depth: usize,
    /// What the jitter is drawn from.
    pub seed: u64,
}

impl CloudSheet {
    /// A general-purpose volume as it is sold by default: 3000 reads and 125 MB a second, about a
    /// millisecond each.
    pub fn general_purpose() -> Self {
        Self {
            latency: Duration::from_millis(1),
            jitter: 20,
            iops: 3000,
            rate: 125_000_000,
            largest: 256 << 10,
            burst: Duration::from_millis(20),
            queue_depth: 128,
            seed: 1,
        }
    }
}

/// A volume in the cloud: two buckets of tokens, and a way to go.
#[derive(Debug)]
pub(crate) struct Cloud {
    sheet: CloudSheet,
    reads: Bucket,
    bytes: Bucket,
    random: Random,
    agenda: Agenda,
}

impl Cloud {
    pub(crate) fn new(sheet: CloudSheet) -> Self {
        let bucket = || Bucket { free_at: 0, burst: nanos(sheet.burst) };
        let random = Random::new(sheet.seed);
        Self { sheet, reads: bucket(), bytes: bucket(), random, agenda: Agenda::default() }
    }
}

impl DriveModel for Cloud {
    fn depth(&self) -> usize {
        self.sheet.queue_depth.max(1)
    }

    fn take(&mut self, command: Command, now: Nanos) {
        let counted = command.len.div_ceil(self.sheet.largest.max(1)).max(1);
        let reads = self.reads.draw(now, time_for(counted, self.sheet.iops));
        let bytes = self.bytes.draw(now, time_for(command.len, self.sheet.rate));
        let latency = nanos(self.sheet.latency);
        let swing = latency / 100 * self.sheet.jitter.min(100);
        let latency = latency - swing + self.random.below(2 * swing + 1);
        self.agenda.add(reads.max(bytes) + latency, command.id);
    }

    fn next_done(&self) -> Option<Nanos> {
        self.agenda.next()
    }

    fn done(&mut self, now: Nanos) -> Option<u64> {
        self.agenda.due(now)
    }
}

/// A bucket of tokens, told by when it would be full again.
#[derive(Debug)]
struct Bucket {
    free_at: Nanos,
    burst: Nanos,
}

impl Bucket {
    /// When what takes so long at the rate paid for may begin.
    fn draw(&mut self, now: Nanos, takes: Nanos) -> Nanos {
        let begin = now.max(self.free_at.saturating_sub(self.burst));
        self.free_at = self.free_at.max(now) + takes;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps `depth` reads going until `count` are done, and tells how long that took.
    fn keep_busy(drive: &mut dyn DriveModel, depth: u64, count: u64, len: u64) -> Nanos {
        let (mut begun, mut done, mut now) = (0, 0, 0);
        while done < count {
            while begun < count && begun - done < depth {
                drive.take(Command { id: begun, start: begun * 1_000_003 * 512, len }, now);
                begun += 1;
            }
            now = drive.next_done().unwrap();
            while drive.done(now).is_some() {
                done += 1;
            }
        }
        now
    }

    #[test]
    fn an_nvme_drive_needs_depth() {
        let one = keep_busy(&mut Nvme::new(NvmeSheet::common()), 1, 1000, 8192);
        let many = keep_busy(&mut Nvme::new(NvmeSheet::common()), 32, 1000, 8192);
        assert!((80_000..90_000).contains(&(one / 1000)), "{one}");
        assert!(many * 25 < one, "{one} {many}");
        let large = keep_busy(&mut Nvme::new(NvmeSheet::common()), 8, 1000, 1 << 20);
        let rate = 1000 * (1 << 20) * 1000 / (large / 1_000_000);
        assert!((2_900_000_000..3_250_000_000).contains(&rate), "{rate}");
    }

    #[test]
    fn a_cloud_volume_gives_what_was_paid_for() {
        let small = keep_busy(&mut Cloud::new(CloudSheet::general_purpose()), 64, 6000, 8192);
        assert!((1_900_000_000..2_050_000_000).contains(&small), "{small}");
        let large = keep_busy(&mut Cloud::new(CloudSheet::general_purpose()), 64, 1000, 1 << 18);
        assert!((2_000_000_000..2_150_000_000).contains(&large), "{large}");
        let alone = keep_busy(&mut Cloud::new(CloudSheet::general_purpose()), 1, 1000, 8192);
        assert!((950_000_000..1_050_000_000).contains(&alone), "{alone}");
    }
}
