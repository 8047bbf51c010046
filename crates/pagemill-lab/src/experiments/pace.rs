//! How long a turn goes on, and which part of it counts: until the rate stands.
//!
//! A limit on a device, such as that of a cloud volume or of a control group, lets more through at first: what was not used
//! before, or a slice of time at once. A turn of some milliseconds sees nothing else. So a turn lasts its least time, and up to
//! [`LONGEST`] times that while the rate still changes; and what came before the rate stood does not count.
//!
//! ```text
//! blocks a second  ████▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
//!                  └──┘└──────────────┘
//!                 burst     counts
//! ```
//!
//! Neither do the blocks that came first, whatever their rate: a control group lets a tenth of a second's blocks through at
//! once and then none until the next tenth. From one such heap to the next is the rate; from the begin on, a turn of six
//! tenths would have seven. Nor do those that were in flight when the turn was over and came at once with its last heap. So the
//! rate is that of the line through the marks behind the burst (least squares), and no quotient of its ends: what counts took
//! as long as it takes at that rate.
//!
//! Invariant: time is told to it, and may be that of a simulated disk; what counts is never more than what was done.

use std::time::Duration;

/// A turn lasts at most so many times its least time.
const LONGEST: u32 = 4;
/// Marks in the least time.
const MARKS: u32 = 50;
/// The share by which the rates of two quarters may differ where the rate stands.
const STANDS: f64 = 0.05;
/// The share by which the begin of a turn has to be faster than the rest to be a burst: that of a limit is several times as
/// fast, and a disk whose rate differs by less would be told to be slower than it is.
const BURST: f64 = 0.30;
/// Marks that a line is drawn through, at least.
const LEAST_MARKS: usize = 4;
/// Of so many parts of a turn the first half may be a burst.
const PARTS: u32 = 10;

/// The course of a turn.
#[derive(Debug)]
pub(crate) struct Pace {
    least: Duration,
    /// When so much had been done, in rising order; the first is (0, 0).
    marks: Vec<(Duration, u64)>,
}

/// The part of a turn that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) done: u64,
    pub(crate) elapsed: Duration,
}

impl Pace {
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, marks: vec![(Duration::ZERO, 0)] }
    }

    /// Notes how much is done at a time since the begin, and tells whether the turn is over.
    pub(crate) fn is_over(&mut self, now: Duration, done: u64) -> bool {
        let last = self.marks.last().map_or(Duration::ZERO, |(time, _)| *time);
        if now < last + self.least / MARKS {
            return now >= self.least * LONGEST;
        }
        self.marks.push((now, done));
        now >= self.least && (now >= self.least * LONGEST || self.stands(now))
    }

    /// What counts of a turn that ended at a time with so much done.
    pub(crate) fn counted(&self, now: Duration, done: u64) -> Counted {
        let burst = |part: &u32| {
            let (from, until) = (now * *part / PARTS, now * (*part + 1) / PARTS);
            let (from, until) = (self.mark(from), self.mark(until));
            let rest = rate(until, (now, done));
            rate(from, until) > (1.0 + BURST) * rest
        };
        let parts = (0..PARTS / 2).take_while(burst).count();
        let after_burst = self.mark(now * u32::try_from(parts).unwrap_or(0) / PARTS);
        let from = if after_burst.1 > 0 { after_burst } else { self.first() };
        if let Some(counted) = self.by_slope(from.0) {
            return counted;
        }
        let counted =
            Counted { done: done.saturating_sub(from.1), elapsed: now.saturating_sub(from.0) };
        let everything = Counted { done, elapsed: now };
        if counted.done == 0 || counted.elapsed.is_zero() { everything } else { counted }
    }

    /// What was done from a mark to the last, in the time that it takes at the rate of these marks, where they are enough
    /// for one.
    fn by_slope(&self, from: Duration) -> Option<Counted> {
        let marks = &self.marks[self.marks.partition_point(|(at, _)| *at < from)..];
        let ((_, first), (_, last)) = (marks.first()?, marks.last()?);
        let done = last.saturating_sub(*first);
        let rate = (marks.len() >= LEAST_MARKS).then(|| slope(marks))?;
        let elapsed = Duration::try_from_secs_f64(done as f64 / rate).ok()?;
        (done > 0 && !elapsed.is_zero()).then_some(Counted { done, elapsed })
    }

    /// True when the last quarter is as fast as the one before.
    fn stands(&self, now: Duration) -> bool {
        let (half, three) = (self.mark(now / 2), self.mark(now * 3 / 4));
        let Some(last) = self.marks.last() else { return true };
        let (before, after) = (rate(half, three), rate(three, *last));
        (before - after).abs() <= STANDS * before.max(after)
    }

    /// The first mark at which something was done.
    fn first(&self) -> (Duration, u64) {
        self.marks.iter().find(|(_, done)| *done > 0).copied().unwrap_or_default()
    }

    /// The last mark up to a time.
    fn mark(&self, time: Duration) -> (Duration, u64) {
        let behind = self.marks.partition_point(|(at, _)| *at <= time);
        behind.checked_sub(1).and_then(|at| self.marks.get(at)).copied().unwrap_or_default()
    }
}

/// How much is done a second along the line that is nearest to all these marks.
fn slope(marks: &[(Duration, u64)]) -> f64 {
    let points = || marks.iter().map(|(at, done)| (at.as_secs_f64(), *done as f64));
    let count = marks.len() as f64;
    let (times, all) = points().fold((0.0, 0.0), |(a, b), (at, done)| (a + at, b + done));
    let (time, done) = (times / count, all / count);
    let products = |(at, of): (f64, f64)| ((at - time) * (of - done), (at - time) * (at - time));
    let (both, squares) = points().map(products).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    both / squares
}

/// How much is done a second between two marks; 0 where they are the same.
fn rate(from: (Duration, u64), until: (Duration, u64)) -> f64 {
    let time = until.0.saturating_sub(from.0).as_secs_f64();
    let done = until.1.saturating_sub(from.1) as f64;
    if time > 0.0 { done / time } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(500);

    /// A turn whose blocks come at a rate that depends on the time: what counts of it.
    fn turn(rate: impl Fn(f64) -> f64) -> (Counted, Duration) {
        let (mut pace, mut now, mut done) = (Pace::new(LEAST), 0.0, 0);
        loop {
            now += 1.0 / rate(now);
            done += 1;
            let time = Duration::from_secs_f64(now);
            if pace.is_over(time, done) {
                return (pace.counted(time, done), time);
            }
        }
    }

    fn rate_of(counted: Counted) -> f64 {
        counted.done as f64 / counted.elapsed.as_secs_f64()
    }

    #[test]
    fn a_steady_rate_counts_but_for_its_begin_and_ends_in_time() {
        let (counted, took) = turn(|_| 10_000.0);
        assert!(took < LEAST * 11 / 10, "{took:?}");
        assert!(counted.elapsed > took - LEAST * 2 / MARKS, "{counted:?} {took:?}");
        assert!((9_990.0..=10_010.0).contains(&rate_of(counted)), "{counted:?}");
    }

    /// A turn of a device that lets a tenth of its blocks of a second through at once, every tenth of a second; so many are
    /// in flight, and it begins so far into such a tenth, of which nothing was used.
    fn turn_in_heaps(per_second: u64, in_flight: u64, begun: f64) -> (Counted, Duration) {
        let heap = per_second / 10;
        // When the block of that number comes: what waits for its tenth comes with the others.
        let comes =
            |block: u64| (((block / heap) as f64 / 10.0 - begun).max(0.0)) + block as f64 * 1e-7;
        let (mut pace, mut now, mut done) = (Pace::new(LEAST), 0.0, 0);
        while !pace.is_over(Duration::from_secs_f64(now), done) {
            // All that came by then is taken together.
            now = comes(done);
            let came =
                (done..done + in_flight).take_while(|block| comes(*block) <= now + 1e-5).count();
            done += came as u64;
        }
        // What is in flight then is waited for, and has been done.
        done += in_flight;
        now = comes(done - 1).max(now);
        let time = Duration::from_secs_f64(now);
        (pace.counted(time, done), time)
    }

    /// With 2,000 reads a second let through, a run told 2,080 at depth 64, and single turns 2,457.
    #[test]
    fn what_comes_in_heaps_is_told_by_the_time_between_them() {
        for begun in [0.0, 0.03, 0.06, 0.09] {
            for in_flight in [1, 4, 16, 64] {
                let (counted, took) = turn_in_heaps(2_000, in_flight, begun);
                let rate = rate_of(counted);
                assert!(
                    (1_960.0..=2_040.0).contains(&rate),
                    "{begun} {in_flight}: {rate} {took:?}"
                );
            }
        }
    }

    /// A run told 64 MiB a second of a control group that lets 60 through: what was in flight at the end counted, and what
    /// came with the first heap did not.
    #[test]
    fn large_blocks_in_heaps_are_told_at_the_rate_that_is_let_through() {
        for (blocks, in_flight) in [(60, 4), (240, 4), (240, 16), (480, 32)] {
            for begun in [0.0, 0.03, 0.06, 0.09] {
                let (counted, took) = turn_in_heaps(blocks, in_flight, begun);
                let mebibytes = rate_of(counted) * 60.0 / blocks as f64;
                assert!(
                    (59.0..=61.0).contains(&mebibytes),
                    "{blocks} {in_flight} {begun}: {mebibytes} {took:?}"
                );
            }
        }
    }

    /// A quick run reported 2,470 reads a second of a device that was limited to 2,000.
    #[test]
    fn a_burst_at_the_begin_does_not_count() {
        for burst in [0.05, 0.1, 0.2] {
            let (counted, took) = turn(|now| if now < burst { 9_000.0 } else { 2_000.0 });
            let rate = rate_of(counted);
            assert!((1_950.0..=2_060.0).contains(&rate), "{burst}: {rate}");
            assert!(took < LEAST * 2, "{burst}: {took:?}");
        }
    }

    #[test]
    fn a_turn_goes_on_while_its_rate_falls_but_not_for_ever() {
        let (counted, took) = turn(|now| if now < 0.45 { 9_000.0 } else { 2_000.0 });
        assert!(took > LEAST * 5 / 4, "{took:?}");
        assert!((1_900.0..=2_100.0).contains(&rate_of(counted)), "{counted:?}");
        let (_, took) = turn(|now| 20_000.0 / (1.0 + 4.0 * now));
        assert!(took <= LEAST * LONGEST + LEAST / 10, "{took:?}");
    }
}
