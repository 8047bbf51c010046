//! A hard disk: an arm that seeks, platters that turn, a cache that goes on reading, a queue of commands.
//!
//! Tracks are taken to follow one another without a gap in time: byte `a` passes under the head whenever
//! `time × media rate ≡ a` modulo the bytes of a track. So a sequential reader gets the media rate, and one
//! that comes too late waits for the next turn. Between commands the drive goes on reading into the cache
//! segment of the last one, until that is full or the arm is wanted elsewhere.
//!
//! ```text
//!   command in a kept segment      from the cache, the arm stays
//!   where the drive reads on       when the media has passed under the head
//!   elsewhere                      seek, wait for the turn, read
//! ```
//!
//! Invariants: one command is served at a time; among those queued the one whose data can be had
//! soonest is next, the older one of two alike.

use std::collections::VecDeque;
use std::time::Duration;

use crate::drive::{Command, DriveModel, Nanos, SECOND, bytes_in, nanos, time_for};

/// The data sheet of a hard disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardDiskSheet {
    /// Bytes of the disk.
    pub capacity: u64,
    /// Turns a minute.
    pub rpm: u64,
    /// Bytes a second that a sequential reader gets, where the data lies.
    pub media_rate: u64,
    /// Seek to the next track.
    pub track_seek: Duration,
    /// Average seek: a third of the stroke.
    pub average_seek: Duration,
    /// Seek from one end to the other.
    pub full_seek: Duration,
    /// What the drive's electronics take for each command.
    pub command_time: Duration,
    /// Bytes a second over the cable.
    pub interface_rate: u64,
    /// Bytes of the cache.
    pub cache: u64,
    /// Segments that the cache is divided into.
    pub segments: usize,
    /// Commands it takes at once.
    pub queue_depth: usize,
}

impl HardDiskSheet {
    /// A desktop SATA disk of 2008, such as a data sheet describes it: 7200 rpm, 8.5 ms average seek,
    /// 16 MB cache; the media rate is that of 60 MB/s where the data lies.
    pub fn sata_2008() -> Self {
        Self {
            capacity: 250_000_000_000,
            rpm: 7200,
            media_rate: 60_000_000,
            track_seek: Duration::from_micros(1000),
            average_seek: Duration::from_micros(8500),
            full_seek: Duration::from_micros(18_000),
            command_time: Duration::from_micros(50),
            interface_rate: 250_000_000,
            cache: 16 << 20,
            segments: 16,
            queue_depth: 31,
        }
    }

    fn track(&self) -> u64 {
        (self.media_rate * 60 / self.rpm).max(1)
    }

    /// Seek over a distance: the square root of it up to a third of the stroke, where the arm speeds up and
    /// slows down, and in proportion beyond.
    fn seek(&self, distance: u64) -> Nanos {
        if distance < self.track() {
            return 0;
        }
        let part = (distance as f64 / self.capacity as f64).min(1.0);
        let [track, average, full] =
            [self.track_seek, self.average_seek, self.full_seek].map(|time| nanos(time) as f64);
        let time = if part <= 1.0 / 3.0 {
            track + (average - track) * (3.0 * part).sqrt()
        } else {
            average + (full - average) * (part - 1.0 / 3.0) * 1.5
        };
        time as Nanos
    }
}

/// The disk.
#[derive(Debug)]
pub(crate) struct HardDisk {
    sheet: HardDiskSheet,
    waiting: VecDeque<Command>,
    active: Option<(u64, Nanos)>,
    reading: Reading,
    /// Cache segments that are no longer read on: the oldest first.
    kept: VecDeque<(u64, u64)>,
}

/// What the drive reads into its current segment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Where the segment begins.
    start: u64,
    /// At the time `since`, `from` was under the head.
    from: u64,
    since: Nanos,
    /// Where it stops.
    limit: u64,
}

impl Reading {
    fn position(&self, now: Nanos, rate: u64) -> u64 {
        let passed = bytes_in(now.saturating_sub(self.since), rate);
        self.from.saturating_add(passed).min(self.limit)
    }
}

impl HardDisk {
    pub(crate) fn new(sheet: HardDiskSheet) -> Self {
        let reading = Reading { start: 0, from: 0, since: 0, limit: 0 };
        Self { sheet, waiting: VecDeque::new(), active: None, reading, kept: VecDeque::new() }
    }

    /// When a command begun now would be done, and what the drive then reads.
    fn plan(&self, command: &Command, now: Nanos) -> (Nanos, Option<Reading>) {
        let begin = now + nanos(self.sheet.command_time);
        let over_cable = time_for(command.len, self.sheet.interface_rate);
        let end = command.start + command.len;
        if self.kept.iter().any(|(from, to)| *from <= command.start && end <= *to) {
            return (begin + over_cable, None);
        }
        let rate = self.sheet.media_rate;
        let segment = self.sheet.cache / self.sheet.segments.max(1) as u64;
        let position = self.reading.position(begin, rate);
        let coming = position.saturating_add(self.sheet.track()).min(self.reading.limit);
        if (self.reading.start..=coming).contains(&command.start) {
            let mut reading = self.reading;
            if position == reading.limit && end > reading.limit {
                reading.from = reading.limit;
                reading.since = self.when_under_head(reading.limit, begin);
            }
            reading.limit = reading.limit.max(end + segment);
            reading.start = reading.start.max(end.saturating_sub(segment));
            let ahead = end.saturating_sub(reading.from);
            let passed = reading.since + time_for(ahead, rate);
            return (passed.max(begin + over_cable), Some(reading));
        }
        let arrived = begin + self.sheet.seek(command.start.abs_diff(position));
        let since = self.when_under_head(command.start, arrived);
        let reading =
            Reading { start: command.start, from: command.start, since, limit: end + segment };
        (since + time_for(command.len, rate), Some(reading))
    }

    /// When a place passes under the head next, the arm being there.
    fn when_under_head(&self, place: u64, now: Nanos) -> Nanos {
        let (track, rate) = (self.sheet.track(), self.sheet.media_rate);
        // The turn's own length, not that of all time before it: rounding must not add up.
        let turn = 60 * SECOND / self.sheet.rpm;
        let under = bytes_in(now % turn, rate);
        let ahead = (place % track + track - under % track) % track;
        now + time_for(ahead, rate)
    }

    fn start_next(&mut self, now: Nanos) {
        if self.active.is_some() {
            return;
        }
        let plans = self.waiting.iter().map(|command| self.plan(command, now).0);
        let Some((index, _)) = plans.enumerate().min_by_key(|(index, done)| (*done, *index)) else {
            return;
        };
        let Some(command) = self.waiting.remove(index) else { return };
        let (done, reading) = self.plan(&command, now);
        if let Some(reading) = reading {
            if reading.from == command.start && reading.start == command.start {
                self.keep(now);
            }
            self.reading = reading;
        }
        self.active = Some((command.id, done));
    }

    /// Keeps what the current segment holds.
    fn keep(&mut self, now: Nanos) {
        let end = self.reading.position(now, self.sheet.media_rate);
        let segment = self.sheet.cache / self.sheet.segments.max(1) as u64;
        let start = self.reading.start.max(end.saturating_sub(segment));
        if end > start {
            self.kept.push_back((start, end));
        }
        while self.kept.len() >= self.sheet.segments.max(1) {
            self.kept.pop_front();
        }
    }
}

impl DriveModel for HardDisk {
    fn depth(&self) -> usize {
        self.sheet.queue_depth.max(1)
    }

    fn take(&mut self, command: Command, now: Nanos) {
        self.waiting.push_back(command);
        self.start_next(now);
    }

    fn next_done(&self) -> Option<Nanos> {
        self.active.map(|(_, done)| done)
    }

    fn done(&mut self, now: Nanos) -> Option<u64> {
        let (id, done) = self.active.filter(|(_, done)| *done <= now)?;
        self.active = None;
        self.start_next(done);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does commands one after the other, and tells how long that took.
    fn serve(disk: &mut HardDisk, begin: Nanos, places: &[(u64, u64)]) -> Nanos {
        let mut now = begin;
        for (id, (start, len)) in (0..).zip(places) {
            disk.take(Command { id, start: *start, len: *len }, now);
            now = disk.next_done().unwrap();
            assert_eq!(disk.done(now), Some(id));
        }
        now - begin
    }

    #[test]
    fn a_sequential_reader_gets_the_media_rate() {
        let sheet = HardDiskSheet::sata_2008();
        let mut disk = HardDisk::new(sheet);
        let places: Vec<_> = (0..800).map(|n| (n * 131_072, 131_072)).collect();
        let took = serve(&mut disk, 0, &places);
        let ideal = time_for(800 * 131_072, sheet.media_rate);
        assert!(took >= ideal && took < ideal + ideal / 50, "{took} {ideal}");
    }

    #[test]
    fn random_reads_take_an_average_seek_and_half_a_turn() {
        let sheet = HardDiskSheet::sata_2008();
        let mut disk = HardDisk::new(sheet);
        let mut random = crate::seed::Random::new(2);
        let places: Vec<_> =
            (0..2000).map(|_| (random.below(sheet.capacity / 4096) * 4096, 4096)).collect();
        let each = serve(&mut disk, 0, &places) / 2000;
        // 8.5 ms and 4.17 ms.
        assert!((11_500_000..13_700_000).contains(&each), "{each}");
    }

    #[test]
    fn what_was_read_on_comes_from_the_cache() {
        let mut disk = HardDisk::new(HardDiskSheet::sata_2008());
        serve(&mut disk, 0, &[(1 << 30, 8192)]);
        let begin = disk.reading.since + 20 * 1_000_000;
        let took = serve(&mut disk, begin, &[((1 << 30) + 8192, 8192)]);
        assert!(took < 200_000, "{took}");
    }

    #[test]
    fn several_commands_at_once_are_served_sooner_than_one_by_one() {
        let sheet = HardDiskSheet::sata_2008();
        let mut random = crate::seed::Random::new(1);
        let places: Vec<u64> = (0..31).map(|_| random.below(60_000_000) * 4096).collect();
        let one_by_one = serve(
            &mut HardDisk::new(sheet),
            0,
            &places.iter().map(|place| (*place, 8192)).collect::<Vec<_>>(),
        );
        let mut disk = HardDisk::new(sheet);
        for (id, start) in (0..).zip(&places) {
            disk.take(Command { id, start: *start, len: 8192 }, 0);
        }
        let mut now = 0;
        while let Some(next) = disk.next_done() {
            now = next;
            disk.done(now);
        }
        assert!(now < one_by_one * 3 / 4, "{now} {one_by_one}");
    }
}
