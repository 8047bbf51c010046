//! The meta page of a hash index.
//!
//! Sources: `_hash_init_metabuffer` in `src/backend/access/hash/hashpage.c`, `_hash_spareindex` and
//! `_hash_get_totalbuckets` in `src/backend/access/hash/hashutil.c`, `src/include/access/hash.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::reader::Reader;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error, Result};

use super::{META_PAGE, Opaque, SPECIAL_BYTES, open};
use crate::change::Change;
use crate::index_page::{CONTENTS, put, put_u16, put_u32, set_lower, u32_at};

const MAGIC: u32 = 0x0644_0640;
const VERSION: u32 = 4;

// Places on the page.
const TUPLES: usize = CONTENTS + 8;
const FILL_FACTOR: usize = CONTENTS + 16;
const BITMAP_SPACE: usize = CONTENTS + 18;
const BITMAP_BYTES: usize = CONTENTS + 20;
const BITMAP_SHIFT: usize = CONTENTS + 22;
const MAX_BUCKET: usize = CONTENTS + 24;
const HIGH_MASK: usize = CONTENTS + 28;
const LOW_MASK: usize = CONTENTS + 32;
const SPLIT_POINT: usize = CONTENTS + 36;
const FIRST_FREE: usize = CONTENTS + 40;
const BITMAP_COUNT: usize = CONTENTS + 44;
const HASH_FUNCTION: usize = CONTENTS + 48;
const SPARES: usize = CONTENTS + 52;
const BITMAPS: usize = SPARES + 4 * MAX_SPLIT_POINTS as usize;
/// Where the contents end, padded as the number of tuples wants.
const END: usize = (BITMAPS + 4 * MAX_BITMAPS as usize).next_multiple_of(8);

/// Overflow pages are counted per split point: ten groups of buckets with one, all others with four.
const MAX_SPLIT_POINTS: u32 = 98;
const MAX_BITMAPS: u32 = 1024;
const GROUPS_WITH_ONE_PHASE: u32 = 10;
const PHASE_BITS: u32 = 2;
const PHASE_MASK: u32 = (1 << PHASE_BITS) - 1;
const MAX_FIRST_BUCKETS: u32 = 0x4000_0000;

/// What a bitmap page has room for, and what it uses of it: a power of two.
const BITMAP_ROOM: u16 = (BLOCK_SIZE - CONTENTS - SPECIAL_BYTES) as u16;
const BITMAP_USED_SHIFT: u16 = BITMAP_ROOM.ilog2() as u16;

/// In the flags of a split: the masks follow, or a new split point does.
const UPDATES_MASKS: u8 = 1 << 0;
const UPDATES_SPLIT_POINT: u8 = 1 << 1;

/// Makes the meta page of an index for so many tuples.
pub(super) fn init(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (tuples, function, fill_factor) = (main.f64()?, main.u32()?, main.u16()?);
    let buckets = first_buckets(tuples / f64::from(fill_factor));
    let split_point = split_point(buckets);
    // The masks cover the buckets, and the next power of two above them.
    let high_mask = (buckets + 1).next_power_of_two() - 1;
    super::init(page, Opaque::unowned(META_PAGE))?;
    for (at, value) in [(CONTENTS, MAGIC), (CONTENTS + 4, VERSION), (HASH_FUNCTION, function)] {
        put_u32(page, at, value)?;
    }
    for (at, value) in [
        (FILL_FACTOR, fill_factor),
        (BITMAP_SPACE, BITMAP_ROOM),
        (BITMAP_BYTES, 1 << BITMAP_USED_SHIFT),
        (BITMAP_SHIFT, BITMAP_USED_SHIFT + 3),
    ] {
        put_u16(page, at, value)?;
    }
    for (at, value) in [
        (MAX_BUCKET, buckets - 1),
        (HIGH_MASK, high_mask),
        (LOW_MASK, high_mask >> 1),
        (SPLIT_POINT, split_point),
        (place(SPARES, split_point, MAX_SPLIT_POINTS)?, 1),
    ] {
        put_u32(page, at, value)?;
    }
    set_lower(page, END)
}

/// How many buckets an index begins with that would fill so many.
fn first_buckets(wanted: f64) -> u32 {
    if wanted >= f64::from(MAX_FIRST_BUCKETS) {
        return MAX_FIRST_BUCKETS;
    }
    // NaN, from nothing in nothing, falls to the least too.
    if wanted > 2.0 { total_buckets(split_point(wanted as u32)) } else { 2 }
}

/// At which split point this bucket, counted from 1, is made.
fn split_point(bucket: u32) -> u32 {
    // The logarithm, rounded up.
    let group = u32::BITS - bucket.saturating_sub(1).leading_zeros();
    if group < GROUPS_WITH_ONE_PHASE {
        return group;
    }
    let phase = (bucket - 1) >> (group - (PHASE_BITS + 1)) & PHASE_MASK;
    GROUPS_WITH_ONE_PHASE + ((group - GROUPS_WITH_ONE_PHASE) << PHASE_BITS) + phase
}

/// How many buckets there are when this split point is complete.
fn total_buckets(split_point: u32) -> u32 {
    if split_point < GROUPS_WITH_ONE_PHASE {
        return 1 << split_point;
    }
    let beyond = split_point - GROUPS_WITH_ONE_PHASE;
    let before = 1 << (GROUPS_WITH_ONE_PHASE + (beyond >> PHASE_BITS) - 1);
    before + (before >> PHASE_BITS) * ((beyond & PHASE_MASK) + 1)
}

/// The place of an array's element.
fn place(array: usize, index: u32, length: u32) -> Result<usize> {
    if index >= length {
        let what = format!("element {index} of an array of {length}");
        return Err(Error::corrupt("hash meta page", array, what));
    }
    Ok(array + index as usize * 4)
}

fn increment(page: &mut BlockBytes, at: usize) -> Result<()> {
    let value = u32_at(page, at)?.wrapping_add(1);
    put_u32(page, at, value)
}

/// The first bitmap page lies right behind the first buckets.
pub(super) fn add_first_bitmap(page: &mut BlockBytes) -> Result<()> {
    open(page)?;
    let block = u32_at(page, MAX_BUCKET)?.wrapping_add(2);
    add_bitmap(page, BlockNumber(block))
}

fn add_bitmap(page: &mut BlockBytes, block: BlockNumber) -> Result<()> {
    let at = place(BITMAPS, u32_at(page, BITMAP_COUNT)?, MAX_BITMAPS)?;
    put_u32(page, at, block.0)?;
    increment(page, BITMAP_COUNT)
}

/// There are more tuples in the index, or fewer.
pub(super) fn change_tuples(page: &mut BlockBytes, change: impl FnOnce(f64) -> f64) -> Result<()> {
    open(page)?;
    let tuples = Reader::new("hash meta page", page.get(TUPLES..).unwrap_or_default()).f64()?;
    put(page, TUPLES, &change(tuples).to_le_bytes())
}

/// An overflow page is in use. `added` is there if the file grew by it, and has the bitmap page that came with it.
pub(super) fn add_overflow_page(
    page: &mut BlockBytes,
    first_free: u32,
    added: Option<Option<BlockNumber>>,
) -> Result<()> {
    set_first_free(page, first_free)?;
    let Some(new_bitmap) = added else { return Ok(()) };
    let spares = place(SPARES, u32_at(page, SPLIT_POINT)?, MAX_SPLIT_POINTS)?;
    increment(page, spares)?;
    if let Some(block) = new_bitmap {
        add_bitmap(page, block)?;
        // A bitmap page counts as an overflow page.
        increment(page, spares)?;
    }
    Ok(())
}

pub(super) fn set_first_free(page: &mut BlockBytes, first_free: u32) -> Result<()> {
    open(page)?;
    put_u32(page, FIRST_FREE, first_free)
}

/// There is another bucket, and with it maybe larger masks, or a further split point.
pub(super) fn add_bucket(
    page: &mut BlockBytes,
    bucket: u32,
    flags: u8,
    data: &mut Reader<'_>,
) -> Result<()> {
    open(page)?;
    put_u32(page, MAX_BUCKET, bucket)?;
    if flags & UPDATES_MASKS != 0 {
        put_u32(page, LOW_MASK, data.u32()?)?;
        put_u32(page, HIGH_MASK, data.u32()?)?;
    }
    if flags & UPDATES_SPLIT_POINT != 0 {
        let split_point = data.u32()?;
        put_u32(page, place(SPARES, split_point, MAX_SPLIT_POINTS)?, data.u32()?)?;
        put_u32(page, SPLIT_POINT, split_point)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_points_come_in_phases_from_the_tenth_group_on() {
        assert_eq!([1, 2, 3, 4, 5, 512, 513].map(split_point), [0, 1, 2, 2, 3, 9, 10]);
        // 512 buckets grow to 1024 in four steps of 128.
        assert_eq!([640, 641, 768, 1024, 1025].map(split_point), [10, 11, 11, 13, 14]);
        assert_eq!([0, 1, 9, 10, 11, 13, 14].map(total_buckets), [1, 2, 512, 640, 768, 1024, 1280]);
        assert_eq!(split_point(MAX_FIRST_BUCKETS), 93);
        assert_eq!(total_buckets(93), MAX_FIRST_BUCKETS);
    }

    #[test]
    fn an_index_begins_with_at_least_two_buckets() {
        for wanted in [0.0, 2.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(first_buckets(wanted), 2);
        }
        assert_eq!(first_buckets(2.5), 2);
        assert_eq!(first_buckets(600.0), 640);
        assert_eq!(first_buckets(f64::INFINITY), MAX_FIRST_BUCKETS);
    }
}
