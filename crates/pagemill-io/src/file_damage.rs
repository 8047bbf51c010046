//! What is wrong with the files of a fork, judged by their sizes alone.
//!
//! PostgreSQL keeps a fork as full segments, then one partial segment, then perhaps empty ones left
//! by a truncation (the comment that opens `src/backend/storage/smgr/md.c`, PostgreSQL 14 to 18).
//! The server takes the first segment that is not full for the end, so it loses everything behind a
//! damaged one without a word. Here the last segment with any bytes is the end, and whatever
//! disagrees before it is damage.
//!
//! Invariant: the blocks called lost are exactly the block numbers below the end
//! that no file holds whole.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, SEGMENT_BLOCKS, SEGMENT_BYTES};

/// One finding about one segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDamage {
    /// What was found.
    pub kind: FileDamageKind,
    /// The segment file, there or not.
    pub path: PathBuf,
    /// The fork it belongs to.
    pub fork: Fork,
    /// The first block concerned.
    pub block: BlockNumber,
    /// Where in the file the damage starts, in bytes.
    pub offset: u64,
    /// How many bytes are missing, or for a partial block and an oversized segment, are too many.
    pub bytes: u64,
}

/// What can be wrong with a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileDamageKind {
    /// It is not there, but a later one is.
    MissingSegment,
    /// It is not full, but a later one has data.
    ShortSegment,
    /// The last segment ends within a block.
    PartialBlock,
    /// It is larger than a segment can be.
    OversizedSegment,
}

impl FileDamage {
    /// The block numbers that cannot be read because of this. Empty for a partial block and an
    /// oversized segment: what is too many has no block number.
    pub fn lost_blocks(&self) -> Range<u32> {
        let start = self.block.0;
        match self.kind {
            FileDamageKind::MissingSegment | FileDamageKind::ShortSegment => {
                let past_segment = (start / SEGMENT_BLOCKS).saturating_add(1);
                start..past_segment.saturating_mul(SEGMENT_BLOCKS)
            }
            FileDamageKind::PartialBlock | FileDamageKind::OversizedSegment => start..start,
        }
    }
}

impl FileDamage {
    /// What is wrong, with fork and blocks, without the file.
    pub fn finding(&self) -> String {
        let Self { fork, offset, bytes, block, .. } = self;
        let lost = self.lost_blocks();
        let (first, last) = (lost.start, lost.end.saturating_sub(1));
        match self.kind {
            FileDamageKind::MissingSegment => format!(
                "fork {fork}, blocks {first} to {last}: the segment file is missing: restore it \
                 from a backup"
            ),
            FileDamageKind::ShortSegment => format!(
                "fork {fork}, blocks {first} to {last} (offset {offset}): the segment file was \
                 cut, {bytes} bytes are missing: restore it from a backup"
            ),
            FileDamageKind::PartialBlock => format!(
                "fork {fork}, block {block} (offset {offset}): {bytes} of {BLOCK_SIZE} bytes at \
                 the end of the file: it was cut in the middle of a block"
            ),
            FileDamageKind::OversizedSegment => format!(
                "fork {fork}, offset {offset}: {bytes} bytes more than a segment has: PostgreSQL \
                 does not read them"
            ),
        }
    }
}

impl fmt::Display for FileDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.finding())
    }
}

/// Judges the sizes of a fork's segment files. `path_of` names a segment's file.
///
/// `lens` holds the sizes in bytes from segment 0 up to the last one with any bytes, `None` for a
/// file that is not there.
pub(crate) fn examine(
    fork: Fork,
    lens: &[Option<u64>],
    path_of: impl Fn(u32) -> PathBuf,
) -> Vec<FileDamage> {
    let mut found = Vec::new();
    for (segment, len) in (0..).zip(lens) {
        let is_last = segment as usize + 1 == lens.len();
        if let Some((kind, offset, bytes)) = examine_segment(*len, is_last) {
            let block = segment * u64::from(SEGMENT_BLOCKS) + offset / BLOCK_SIZE as u64;
            let block = BlockNumber(u32::try_from(block).unwrap_or(u32::MAX));
            let path = path_of(u32::try_from(segment).unwrap_or(u32::MAX));
            found.push(FileDamage { kind, path, fork, block, offset, bytes });
        }
    }
    found
}

/// What is wrong with a segment of this size, at which offset, for how many bytes.
fn examine_segment(len: Option<u64>, is_last: bool) -> Option<(FileDamageKind, u64, u64)> {
    let Some(len) = len else { return Some((FileDamageKind::MissingSegment, 0, SEGMENT_BYTES)) };
    if len > SEGMENT_BYTES {
        let excess = len - SEGMENT_BYTES;
        return Some((FileDamageKind::OversizedSegment, SEGMENT_BYTES, excess));
    }
    let tail = len % BLOCK_SIZE as u64;
    if len < SEGMENT_BYTES && !is_last {
        return Some((FileDamageKind::ShortSegment, len - tail, SEGMENT_BYTES - len));
    }
    (tail != 0).then_some((FileDamageKind::PartialBlock, len - tail, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lens: &[Option<u64>]) -> Vec<String> {
        let path_of = |n: u32| PathBuf::from(if n == 0 { "1".into() } else { format!("1.{n}") });
        examine(Fork::Main, lens, path_of).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sound_sizes_are_no_damage() {
        assert!(messages(&[Some(0)]).is_empty());
        assert!(messages(&[Some(8192)]).is_empty());
        assert!(messages(&[Some(SEGMENT_BYTES)]).is_empty());
        assert!(messages(&[Some(SEGMENT_BYTES), Some(SEGMENT_BYTES), Some(16_384)]).is_empty());
    }

    #[test]
    fn each_sort_of_damage_says_where_and_how_much() {
        assert_eq!(
            messages(&[Some(8192 * 3 + 5), None, Some(SEGMENT_BYTES + 7), Some(8192 + 4096)]),
            [
                "1: fork main, blocks 3 to 131071 (offset 24576): the segment file was cut, \
                 1073717243 bytes are missing: restore it from a backup",
                "1.1: fork main, blocks 131072 to 262143: the segment file is missing: \
                 restore it from a backup",
                "1.2: fork main, offset 1073741824: 7 bytes more than a segment has: \
                 PostgreSQL does not read them",
                "1.3: fork main, block 393217 (offset 8192): 4096 of 8192 bytes at the end of \
                 the file: it was cut in the middle of a block",
            ]
        );
    }
}
