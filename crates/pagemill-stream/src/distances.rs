//! How far a read stream looks ahead: two distances, each with its own reason to grow.
//!
//! | distance | grows | shrinks |
//! | --- | --- | --- |
//! | *combine*: the most blocks of one read | doubles with each read, up to `io_combine_limit` | never: a block that needs no read is not noticed |
//! | *look-ahead*: the most blocks asked for and not yet handed out | doubles when the consumer had to wait for a read, up to the pin limit | by one for each read that nobody waited for, once as many in a row as the pin limit |
//!
//! Where a device has several disks to keep busy, the look-ahead is as wide as asked from the start and
//! stays so: that nobody waits shows that it is right, not that it is too long.
//!
//! A stream does not look into the buffer pool, and what is in the kernel's cache shows as a read that nobody waited for.
//!
//! Two, because one cannot serve both: with a single distance a stream of cached blocks would
//! never combine, or one of neighbours would look ahead further than its device needs. A single one that
//! doubles on a miss and shrinks by one on a hit gets stuck between 1 and 2 where both alternate.
//! PostgreSQL's development branch after 18 came to the same two
//! (`src/backend/storage/aio/read_stream.c`).
//!
//! Invariants: `1 <= combine <= combine_limit`; `1 <= look_ahead <= pin_limit`;
//! `pin_limit = (most reads in flight + 1) × combine_limit`.

/// The two distances of one stream, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Distances {
    combine: u32,
    combine_limit: u32,
    look_ahead: u32,
    pin_limit: u32,
    /// Reads in a row that nobody waited for.
    unwaited: u32,
    /// True when the look-ahead does not shrink.
    fixed: bool,
}

impl Distances {
    /// Both from 1.
    pub(crate) fn ramping_up(combine_limit: u32, most_reads: u32) -> Self {
        let pin_limit = most_reads.saturating_add(1).saturating_mul(combine_limit);
        Self { combine: 1, combine_limit, look_ahead: 1, pin_limit, unwaited: 0, fixed: false }
    }

    /// Both from where a scan that will want everything needs them: full reads, one of them ahead.
    pub(crate) fn from_the_start(combine_limit: u32, most_reads: u32) -> Self {
        let mut full = Self::ramping_up(combine_limit, most_reads);
        full.combine = combine_limit;
        full.look_ahead = (2 * combine_limit).min(full.pin_limit);
        full
    }

    /// Looks ahead at least so many blocks from now on, however little is waited for.
    pub(crate) fn widen(&mut self, blocks: u32) {
        self.pin_limit = self.pin_limit.max(blocks);
        self.look_ahead = self.pin_limit;
        self.fixed = true;
    }

    pub(crate) fn combine(&self) -> u32 {
        self.combine
    }

    pub(crate) fn look_ahead(&self) -> u32 {
        self.look_ahead
    }

    /// A read came to its end; `waited` tells whether the consumer stood still for it.
    pub(crate) fn read_done(&mut self, waited: bool) {
        self.combine = (self.combine * 2).min(self.combine_limit);
        if waited {
            self.unwaited = 0;
            self.look_ahead = self.look_ahead.saturating_mul(2).min(self.pin_limit);
        } else {
            self.unwaited = self.unwaited.saturating_add(1);
            if self.unwaited > self.pin_limit && !self.fixed {
                self.look_ahead = self.look_ahead.saturating_sub(1).max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn combining_ramps_up_with_reads_and_looking_ahead_with_waits() {
        let mut distances = Distances::ramping_up(16, 4);
        for combine in [2, 4, 8, 16, 16] {
            distances.read_done(false);
            assert_eq!((distances.combine(), distances.look_ahead()), (combine, 1));
        }
        for look_ahead in [2, 4, 8, 16, 32, 64, 80, 80] {
            distances.read_done(true);
            assert_eq!(distances.look_ahead(), look_ahead);
        }
    }

    #[test]
    fn a_device_that_keeps_up_is_looked_ahead_of_less_and_less_after_a_while() {
        let mut distances = Distances::from_the_start(4, 3);
        assert_eq!(distances.look_ahead(), 8);
        (0..16).for_each(|_| distances.read_done(false));
        assert_eq!(distances.look_ahead(), 8);
        (0..100).for_each(|_| distances.read_done(false));
        assert_eq!(distances.look_ahead(), 1);
    }

    proptest! {
        #[test]
        fn distances_stay_within_their_limits(
            combine_limit in 1u32..=128, most_reads in 0u32..=1000, full: bool,
            waits in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let new = if full { Distances::from_the_start } else { Distances::ramping_up };
            let mut distances = new(combine_limit, most_reads);
            for waited in waits {
                distances.read_done(waited);
                prop_assert!((1..=combine_limit).contains(&distances.combine()));
                prop_assert!((1..=distances.pin_limit).contains(&distances.look_ahead()));
            }
        }
    }
}
