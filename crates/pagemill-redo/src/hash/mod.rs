//! Records of hash indexes.
//!
//! A bucket is a primary page with a chain of overflow pages. Records that work on the chain name the primary page
//! as block 0 where it is not changed, only because replay on a standby has to lock it. Bitmap pages say which
//! overflow pages are in use; the meta page counts buckets, overflow pages and tuples.
//!
//! What differs: since 17 a squeeze that moves no tuples may leave the page alone that they would have gone to;
//! since 16 the record of a page's cleanup counts its tuples in 16 bits.
//!
//! Sources: `src/backend/access/hash/{hash_xlog,hashpage,hashovfl}.c`, `src/include/access/{hash,hash_xlog}.h`,
//! PostgreSQL 14 to 18.

mod meta_page;

use pagemill_format::reader::Reader;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, PgVersion, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::{
    self, CONTENTS, all_numbers, next_aligned_tuple, numbers, put_u16, put_u32, set_lower, u16_at,
    u32_at,
};
use crate::page_items::{Numbering, PageItems};

const INIT_META_PAGE: u8 = 0x00;
const INIT_BITMAP_PAGE: u8 = 0x10;
const INSERT: u8 = 0x20;
const ADD_OVFL_PAGE: u8 = 0x30;
const SPLIT_ALLOCATE_PAGE: u8 = 0x40;
const SPLIT_PAGE: u8 = 0x50;
const SPLIT_COMPLETE: u8 = 0x60;
const MOVE_PAGE_CONTENTS: u8 = 0x70;
const SQUEEZE_PAGE: u8 = 0x80;
const DELETE: u8 = 0x90;
const SPLIT_CLEANUP: u8 = 0xA0;
const UPDATE_META_PAGE: u8 = 0xB0;
const VACUUM_ONE_PAGE: u8 = 0xC0;

/// Bytes of the special area: the pages before and behind, bucket, flags, a number that tells the manager.
const SPECIAL_BYTES: usize = 16;
const PREVIOUS: usize = 0;
const NEXT: usize = 4;
const BUCKET: usize = 8;
const FLAGS: usize = 12;
const PAGE_ID: usize = 14;
const HASH_PAGE_ID: u16 = 0xFF80;
/// No block, and no bucket.
const NONE: u32 = u32::MAX;

/// Flags, of which the lower four say what kind of page it is; none of those for one that is not in use.
const OVERFLOW_PAGE: u16 = 1 << 0;
const BITMAP_PAGE: u16 = 1 << 2;
const META_PAGE: u16 = 1 << 3;
const NEEDS_SPLIT_CLEANUP: u16 = 1 << 6;
const HAS_DEAD_TUPLES: u16 = 1 << 7;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind(), change.reference()) {
        (INIT_META_PAGE, 0) => meta_page::init(page, change),
        (INIT_BITMAP_PAGE, 0) => init_bitmap(page, change.main().u16()?),
        (INIT_BITMAP_PAGE, 1) => meta_page::add_first_bitmap(page),
        (INSERT, 0) => insert(page, change),
        (INSERT, 1) => meta_page::change_tuples(page, |tuples| tuples + 1.0),
        (ADD_OVFL_PAGE, _) => add_overflow_page(page, change),
        (SPLIT_ALLOCATE_PAGE, _) => allocate_bucket(page, change),
        (SPLIT_PAGE, 0) => Err(change.corrupt("a bucket is split, without an image of its page")),
        (SPLIT_COMPLETE, 0 | 1) => complete_split(page, change),
        // These name the primary page only for its lock.
        (MOVE_PAGE_CONTENTS | SQUEEZE_PAGE | DELETE, 0) => return Ok(PageLsn::Keep),
        (MOVE_PAGE_CONTENTS, 1) => {
            let tuples = change.main().u16()?;
            add_tuples(&mut open(page)?, change, tuples)
        }
        (MOVE_PAGE_CONTENTS, 2) => open(page)?.delete_all(&all_numbers(&mut change.data())?),
        (SQUEEZE_PAGE, _) => return squeeze(page, change),
        (DELETE, 1) => delete(page, change),
        (SPLIT_CLEANUP, 0) => change_flags(&mut open(page)?, |flags| flags & !NEEDS_SPLIT_CLEANUP),
        (UPDATE_META_PAGE, 0) => {
            let tuples = change.main().f64()?;
            meta_page::change_tuples(page, |_| tuples)
        }
        (VACUUM_ONE_PAGE, 0 | 1) => vacuum_one_page(page, change),
        (INIT_META_PAGE..=VACUUM_ONE_PAGE, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

fn open(page: &mut BlockBytes) -> Result<PageItems<'_>> {
    index_page::open(page, SPECIAL_BYTES)
}

/// What is in the special area.
struct Opaque {
    previous: u32,
    bucket: u32,
    flags: u16,
}

impl Opaque {
    /// Of a page that belongs to no bucket.
    const fn unowned(flags: u16) -> Self {
        Self { previous: NONE, bucket: NONE, flags }
    }
}

/// Makes an empty page; what is behind it is said later.
fn init(page: &mut BlockBytes, opaque: Opaque) -> Result<PageItems<'_>> {
    let mut items = PageItems::init(page, SPECIAL_BYTES);
    let special = items.special();
    for (at, value) in [(PREVIOUS, opaque.previous), (NEXT, NONE), (BUCKET, opaque.bucket)] {
        put_u32(special, at, value)?;
    }
    put_u16(special, FLAGS, opaque.flags)?;
    put_u16(special, PAGE_ID, HASH_PAGE_ID)?;
    Ok(items)
}

fn change_flags(items: &mut PageItems<'_>, change: impl FnOnce(u16) -> u16) -> Result<()> {
    let flags = u16_at(items.special(), FLAGS)?;
    put_u16(items.special(), FLAGS, change(flags))
}

fn set_next(items: &mut PageItems<'_>, block: u32) -> Result<()> {
    put_u32(items.special(), NEXT, block)
}

/// Makes a bitmap page of so many bytes, on which every overflow page is in use: there are none yet.
fn init_bitmap(page: &mut BlockBytes, bytes: u16) -> Result<()> {
    init(page, Opaque::unowned(BITMAP_PAGE))?;
    let end = CONTENTS + usize::from(bytes);
    let bits = page.get_mut(CONTENTS..end).filter(|_| end <= BLOCK_SIZE - SPECIAL_BYTES);
    let too_many = || pagemill_format::Error::corrupt("bitmap page", CONTENTS, "too many bytes");
    bits.ok_or_else(too_many)?.fill(0xFF);
    set_lower(page, end)
}

/// Says of an overflow page whether it is in use.
fn change_bit(page: &mut BlockBytes, change: Change<'_>, is_set: bool) -> Result<()> {
    let bit = change.data().u32()?;
    open(page)?;
    let at = CONTENTS + bit as usize / 32 * 4;
    if at >= BLOCK_SIZE - SPECIAL_BYTES {
        return Err(change.corrupt(format!("bit {bit} lies outside of a page")));
    }
    let (word, mask) = (u32_at(page, at)?, 1 << (bit % 32));
    put_u32(page, at, if is_set { word | mask } else { word & !mask })
}

fn insert(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let number = change.main().u16()?;
    open(page)?.add(change.data().rest(), number, Numbering::Shift)
}

/// A bucket's chain gets another page (block 0) behind its last one (block 1), a bit says so (block 2), maybe on
/// a bitmap page of its own (block 3), and the meta page counts (block 4).
fn add_overflow_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (bitmap_bytes, had_bit) = (main.u16()?, main.u8()? != 0);
    match change.reference() {
        0 => {
            let opaque = Opaque {
                previous: change.needed(1)?.0,
                bucket: change.data().u32()?,
                flags: OVERFLOW_PAGE,
            };
            init(page, opaque).map(|_| ())
        }
        1 => set_next(&mut open(page)?, change.needed(0)?.0),
        2 => change_bit(page, change, true),
        3 => init_bitmap(page, bitmap_bytes),
        4 => {
            let first_free = change.data().u32()?;
            let new_bitmap: Option<BlockNumber> = change.other(3);
            meta_page::add_overflow_page(page, first_free, (!had_bit).then_some(new_bitmap))
        }
        _ => Err(change.unexpected_reference()),
    }
}

/// A bucket (block 0) begins to be split, and the new one (block 1) is made.
fn allocate_bucket(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (bucket, old_flags, new_flags) = (main.u32()?, main.u16()?, main.u16()?);
    match change.reference() {
        0 => {
            let mut items = open(page)?;
            change_flags(&mut items, |_| old_flags)?;
            // The primary page of a bucket says here how many buckets there were when it was split last.
            put_u32(items.special(), PREVIOUS, bucket)
        }
        1 => init(page, Opaque { previous: bucket, bucket, flags: new_flags }).map(|_| ()),
        2 => meta_page::add_bucket(page, bucket, main.u8()?, &mut change.data()),
        _ => Err(change.unexpected_reference()),
    }
}

fn complete_split(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (old, new) = (main.u16()?, main.u16()?);
    let flags = if change.reference() == 0 { old } else { new };
    change_flags(&mut open(page)?, |_| flags)
}

/// Adds tuples under the numbers that come first in the block's data.
fn add_tuples(items: &mut PageItems<'_>, change: Change<'_>, count: u16) -> Result<()> {
    let mut data = change.data();
    for number in numbers(&mut data, usize::from(count))? {
        items.add(next_aligned_tuple(&mut data)?, number, Numbering::Shift)?;
    }
    if data.is_empty() { Ok(()) } else { Err(data.corrupt("more tuples than numbers for them")) }
}

/// An overflow page (block 2) gives its tuples to a page before it (block 1), and is taken out of the chain
/// between its neighbors (3, which may be block 1, and 4); a bit (block 5) and the meta page (6) say so.
fn squeeze(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    let mut main = change.main();
    let (previous, next, tuples) = (main.u32()?, main.u32()?, main.u16()?);
    main.u8()?; // whether tuples went to the primary page: then there is no block 0
    let is_previous = main.u8()? != 0;
    match change.reference() {
        1 => {
            let mut items = open(page)?;
            add_tuples(&mut items, change, tuples)?;
            if is_previous {
                set_next(&mut items, next)?;
            }
            // Since 17 a page that nothing happens to keeps its LSN.
            let is_changed = tuples > 0 || is_previous || change.version() < PgVersion::V17;
            return Ok(if is_changed { PageLsn::Advance } else { PageLsn::Keep });
        }
        2 => init(page, Opaque::unowned(0)).map(|_| ()),
        3 => set_next(&mut open(page)?, next),
        4 => put_u32(open(page)?.special(), PREVIOUS, previous),
        5 => change_bit(page, change, false),
        6 => meta_page::set_first_free(page, change.data().u32()?),
        _ => Err(change.unexpected_reference()),
    }?;
    Ok(PageLsn::Advance)
}

fn delete(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let clears_dead = change.main().u8()? != 0;
    let mut items = open(page)?;
    items.delete_all(&all_numbers(&mut change.data())?)?;
    if clears_dead {
        change_flags(&mut items, |flags| flags & !HAS_DEAD_TUPLES)?;
    }
    Ok(())
}

/// Tuples that a scan found to be dead make room for a new one; the meta page (block 1) counts them off.
fn vacuum_one_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let count = dead_tuples(&mut main, change.version())?;
    if change.reference() == 1 {
        return meta_page::change_tuples(page, |tuples| tuples - f64::from(count));
    }
    let dead = numbers(&mut main, usize::from(count))?;
    let mut items = open(page)?;
    items.delete_all(&dead)?;
    change_flags(&mut items, |flags| flags & !HAS_DEAD_TUPLES)
}

/// How many there are; the reader stands at their numbers afterwards.
fn dead_tuples(main: &mut Reader<'_>, version: PgVersion) -> Result<u16> {
    main.u32()?; // the transaction that standbys wait for
    let count = main.u16()?;
    // 32 bits before 16; since then a flag, and padding.
    main.u16()?;
    if version < PgVersion::V16 && usize::from(count) * 2 != main.remaining() {
        return Err(main.corrupt(format!("{count} tuples, and other numbers of them")));
    }
    Ok(count)
}
