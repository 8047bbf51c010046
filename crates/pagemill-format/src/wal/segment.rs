//! WAL segments: their sizes, and the names of their files.
//!
//! A name is 24 hexadecimal digits: timeline, then the segment's number in two parts of 32 bits, of which the
//! second counts the segments within 4 GiB, and so has less than eight digits' worth of values.
//!
//! Source: `XLogFileName` and `IsValidWalSegSize` in `src/include/access/xlog_internal.h`, PostgreSQL 14 to 18.

use std::fmt;

use crate::ids::Lsn;

/// The smallest size of a segment, in bytes.
pub const MIN_SEGMENT_SIZE: u32 = 1 << 20;
/// The largest size of a segment, in bytes.
pub const MAX_SEGMENT_SIZE: u32 = 1 << 30;
const NAME_BYTES: usize = 24;

/// True for the sizes that initdb accepts: powers of two from 1 MiB to 1 GiB.
pub fn is_segment_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (MIN_SEGMENT_SIZE..=MAX_SEGMENT_SIZE).contains(&bytes)
}

/// One segment of one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// The timeline it was written on.
    pub timeline: u32,
    /// Which segment of the whole WAL, counted from 0.
    pub number: u64,
    /// Bytes of each segment of this WAL.
    pub segment_size: u32,
}

impl SegmentName {
    /// The segment with the byte at `lsn`.
    pub fn of(lsn: Lsn, timeline: u32, segment_size: u32) -> Self {
        Self { timeline, number: lsn.0 / u64::from(segment_size.max(1)), segment_size }
    }

    /// Reads a file's name; `None` when it is not one of a segment of this size.
    pub fn parse(name: &str, segment_size: u32) -> Option<Self> {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'A'..=b'F');
        if name.len() != NAME_BYTES || !name.bytes().all(is_digit) || !is_segment_size(segment_size)
        {
            return None;
        }
        let part = |from: usize| u32::from_str_radix(name.get(from..from + 8)?, 16).ok();
        let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
        let per_high = segments_per_4_gib(segment_size);
        let number = u64::from(high) * per_high + u64::from(low);
        (u64::from(low) < per_high).then_some(Self { timeline, number, segment_size })
    }

    /// Its first byte.
    pub fn start(self) -> Lsn {
        Lsn(self.number.saturating_mul(u64::from(self.segment_size)))
    }

    /// The first byte after it.
    pub fn end(self) -> Lsn {
        Lsn(self.start().0.saturating_add(u64::from(self.segment_size)))
    }
}

/// The file's name.
impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_high = segments_per_4_gib(self.segment_size);
        let (high, low) = (self.number / per_high, self.number % per_high);
        write!(f, "{:08X}{high:08X}{low:08X}", self.timeline)
    }
}

fn segments_per_4_gib(segment_size: u32) -> u64 {
    (1 << 32) / u64::from(segment_size.max(1))
}
