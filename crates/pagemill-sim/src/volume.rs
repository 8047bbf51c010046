//! The drives that files lie on, and which of them does what: one drive, mirrors, or a stripe.
//!
//! The rules of the mirrors are those of Linux's `drivers/md/raid1.c` (`read_balance`) and of btrfs, told in
//! own words:
//!
//! | rule | a read goes to |
//! | --- | --- |
//! | [`Balance::Linux26`] (before 2012) | the disk used last, if it goes on where *any* read ended last, or where that disk's head is; else the next disk that is idle; else the one whose head is nearest |
//! | [`Balance::Linux5`] | the disk that it goes on at; else an idle disk; else the one whose head is nearest |
//! | [`Balance::ByThread`] (btrfs) | the disk that the number of the reading thread chooses |
//!
//! A head is taken to be where the last finished read of its disk ended.
//!
//! Invariant: each byte of an I/O is read from one drive, and pieces are told apart by their queue.

use crate::drive::{DriveModel, Nanos};
use crate::hard_disk::{HardDisk, HardDiskSheet};
use crate::request_queue::{DriveCount, Piece, QueueSettings, RequestQueue};
use crate::solid_state::{Cloud, CloudSheet, Nvme, NvmeSheet};

/// What files lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeModel {
    /// One drive.
    One(DriveSheet),
    /// Drives that each hold everything.
    Mirror {
        /// What each of them is.
        drive: DriveSheet,
        /// How many.
        count: usize,
        /// Who reads.
        balance: Balance,
    },
    /// Drives that hold a chunk each in turn.
    Stripe {
        /// What each of them is.
        drive: DriveSheet,
        /// How many.
        count: usize,
        /// Bytes of a chunk.
        chunk: u64,
    },
}

impl VolumeModel {
    /// Drives that each hold everything.
    pub(crate) fn mirrors(&self) -> u32 {
        match self {
            Self::Mirror { count, .. } => u32::try_from(*count).unwrap_or(u32::MAX),
            Self::One(_) | Self::Stripe { .. } => 1,
        }
    }

    /// True for drives with an arm.
    pub(crate) fn turns(&self) -> bool {
        let (Self::One(drive) | Self::Mirror { drive, .. } | Self::Stripe { drive, .. }) = self;
        matches!(drive, DriveSheet::HardDisk(_))
    }
}

/// A drive, by its data sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveSheet {
    /// A hard disk.
    HardDisk(HardDiskSheet),
    /// An NVMe drive.
    Nvme(NvmeSheet),
    /// A volume in the cloud.
    Cloud(CloudSheet),
}

/// Which mirror reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// As `md` did in Linux 2.6.
    Linux26,
    /// As `md` does on disks that turn, since 3.5.
    Linux5,
    /// As btrfs does.
    ByThread,
}

impl DriveSheet {
    fn model(&self) -> Box<dyn DriveModel> {
        match *self {
            Self::HardDisk(sheet) => Box::new(HardDisk::new(sheet)),
            Self::Nvme(sheet) => Box::new(Nvme::new(sheet)),
            Self::Cloud(sheet) => Box::new(Cloud::new(sheet)),
        }
    }
}

/// The drives at work.
#[derive(Debug)]
pub(crate) struct Volume {
    model: VolumeModel,
    queues: Vec<RequestQueue>,
    mirrors: Mirrors,
}

/// What the rules of mirrors remember.
#[derive(Debug, Default)]
struct Mirrors {
    disks: Vec<Mirror>,
    last_used: usize,
    /// Where the last read that was handed out ends, on whatever disk.
    next: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Mirror {
    head: u64,
    pending: u64,
    /// Where the last read handed to this disk ends.
    next: Option<u64>,
}

impl Volume {
    pub(crate) fn new(model: VolumeModel, settings: QueueSettings) -> Self {
        let (drive, count) = match model {
            VolumeModel::One(drive) => (drive, 1),
            VolumeModel::Mirror { drive, count, .. } | VolumeModel::Stripe { drive, count, .. } => {
                (drive, count.max(1))
            }
        };
        let queues = (0..count).map(|_| RequestQueue::new(drive.model(), settings)).collect();
        let mirrors = Mirrors { disks: vec![Mirror::default(); count], ..Mirrors::default() };
        Self { model, queues, mirrors }
    }

    pub(crate) fn model(&self) -> &VolumeModel {
        &self.model
    }

    pub(crate) fn counts(&self) -> Vec<DriveCount> {
        self.queues.iter().map(RequestQueue::count).collect()
    }

    /// Divides a read among the drives: each piece with the number of its queue.
    pub(crate) fn route(&mut self, read: Piece, thread: usize) -> Vec<(usize, Piece)> {
        match self.model {
            VolumeModel::One(_) => vec![(0, read)],
            VolumeModel::Mirror { balance, .. } => {
                vec![(self.mirrors.choose(balance, read, thread), read)]
            }
            VolumeModel::Stripe { chunk, .. } => {
                stripe(read, chunk.max(4096), self.queues.len() as u64)
            }
        }
    }

    /// Puts a routed piece into its queue; false when that is full.
    pub(crate) fn put(&mut self, queue: usize, piece: Piece, now: Nanos) -> bool {
        self.queues[queue].put(piece, now)
    }

    pub(crate) fn is_full(&self, queue: usize) -> bool {
        self.queues[queue].is_full()
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.queues.iter().any(RequestQueue::is_congested)
    }

    pub(crate) fn unplug(&mut self, now: Nanos) {
        self.queues.iter_mut().for_each(|queue| queue.unplug(now));
    }

    pub(crate) fn next_time(&self) -> Option<Nanos> {
        self.queues.iter().filter_map(RequestQueue::next_time).min()
    }

    /// Does what is due, and adds the pieces that are done.
    pub(crate) fn advance(&mut self, now: Nanos, finished: &mut Vec<Piece>) {
        for (queue, disk) in self.queues.iter_mut().zip(&mut self.mirrors.disks) {
            let before = finished.len();
            queue.advance(now, finished);
            for piece in &finished[before..] {
                disk.head = piece.start + piece.len;
                disk.pending = disk.pending.saturating_sub(1);
            }
        }
    }
}

impl Mirrors {
    fn choose(&mut self, balance: Balance, read: Piece, thread: usize) -> usize {
        let chosen = match balance {
            Balance::Linux26 => self.choose_linux26(read.start),
            Balance::Linux5 => self.choose_linux5(read.start),
            Balance::ByThread => thread % self.disks.len(),
        };
        let end = Some(read.start + read.len);
        self.disks[chosen].pending += 1;
        self.disks[chosen].next = end;
        (self.next, self.last_used) = (end, chosen);
        chosen
    }

    fn choose_linux26(&self, start: u64) -> usize {
        let last = self.last_used;
        if self.next == Some(start) || self.disks[last].head == start {
            return last;
        }
        let count = self.disks.len();
        // The one used last comes last.
        let others = (1..=count).map(|step| (last + count - step) % count);
        let mut best = (last, self.disks[last].head.abs_diff(start));
        for disk in others {
            if self.disks[disk].pending == 0 {
                return disk;
            }
            let distance = self.disks[disk].head.abs_diff(start);
            if distance < best.1 {
                best = (disk, distance);
            }
        }
        best.0
    }

    fn choose_linux5(&self, start: u64) -> usize {
        let goes_on = |disk: &Mirror| disk.next == Some(start) || disk.head == start;
        let idle = |disk: &Mirror| disk.pending == 0;
        let nearest = || {
            let distances = self.disks.iter().map(|disk| disk.head.abs_diff(start)).enumerate();
            distances.min_by_key(|(disk, distance)| (*distance, *disk)).map(|(disk, _)| disk)
        };
        let chosen = self.disks.iter().position(goes_on);
        chosen.or_else(|| self.disks.iter().position(idle)).or_else(nearest).unwrap_or(0)
    }
}

fn stripe(read: Piece, chunk: u64, drives: u64) -> Vec<(usize, Piece)> {
    let mut pieces: Vec<(usize, Piece)> = Vec::new();
    let (mut at, end) = (read.start, read.start + read.len);
    while at < end {
        let number = at / chunk;
        let len = (chunk - at % chunk).min(end - at);
        let start = number / drives * chunk + at % chunk;
        let queue = (number % drives) as usize;
        pieces.push((queue, Piece { io: read.io, start, len }));
        at += len;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(count: usize) -> Mirrors {
        Mirrors { disks: vec![Mirror::default(); count], ..Mirrors::default() }
    }

    fn read(start: u64) -> Piece {
        Piece { io: 0, start, len: 100 }
    }

    #[test]
    fn a_sequential_reader_stays_on_one_disk_and_a_second_one_gets_the_other() {
        for balance in [Balance::Linux26, Balance::Linux5] {
            let mut mirrors = mirrors(2);
            let first: Vec<_> =
                (50..60).map(|n| mirrors.choose(balance, read(n * 100), 0)).collect();
            assert!(first.iter().all(|disk| *disk == first[0]), "{balance:?} {first:?}");
            let other = mirrors.choose(balance, read(1_000_000), 0);
            assert_ne!(other, first[0], "{balance:?}");
        }
    }

    #[test]
    fn threads_choose_disks_by_their_number() {
        let mut mirrors = mirrors(2);
        let chosen = [0, 1, 2, 3].map(|thread| mirrors.choose(Balance::ByThread, read(0), thread));
        assert_eq!(chosen, [0, 1, 0, 1]);
    }

    #[test]
    fn a_stripe_divides_a_read_at_its_chunks() {
        let pieces = stripe(Piece { io: 3, start: 96, len: 100 }, 64, 3);
        let at = |start, len| Piece { io: 3, start, len };
        assert_eq!(pieces, [(1, at(32, 32)), (2, at(0, 64)), (0, at(64, 4))]);
    }
}
