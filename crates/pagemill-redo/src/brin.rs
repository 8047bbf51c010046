//! BRIN records.
//!
//! An index has three kinds of pages: the meta page; the range map, an array that says for each range of blocks
//! where its summary lies; and pages of summaries. Each record names the block of the range, from which follows the
//! place in the range map's page.
//!
//! Sources: `src/backend/access/brin/brin_xlog.c`, `brin_page_init` and `brin_metapage_init` in
//! `src/backend/access/brin/brin_pageops.c`, `brinSetHeapBlockItemptr` in
//! `src/backend/access/brin/brin_revmap.c`, `src/include/access/{brin_page,brin_xlog}.h`, PostgreSQL 14 to 18.

use pagemill_format::brin::{
    KIND_MAP, KIND_META, KIND_SUMMARIES, MAGIC, RANGES_PER_MAP_PAGE, SPECIAL_BYTES,
};
use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, BlockNumber, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::{self, CONTENTS, TID_BYTES, put, put_u16, put_u32, set_lower, tid_bytes};
use crate::page_items::{Numbering, PageItems};

const CREATE_INDEX: u8 = 0x00;
const INSERT: u8 = 0x10;
const UPDATE: u8 = 0x20;
const SAMEPAGE_UPDATE: u8 = 0x30;
const REVMAP_EXTEND: u8 = 0x40;
const DESUMMARIZE: u8 = 0x50;
const KIND_MASK: u8 = 0x70;
/// The record also initializes the page of summaries.
const INIT_PAGE: u8 = 0x80;

/// What kind of page it is, in the special area.
const PAGE_TYPE: usize = 6;

/// Bytes of what the meta page holds: magic, version, blocks in a range, last page of the range map.
const META_BYTES: usize = 16;
const META_LAST_REVMAP: usize = 12;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind() & KIND_MASK, change.reference()) {
        (CREATE_INDEX, 0) => create(page, change),
        (INSERT, 0 | 1) => insert(page, change, &mut change.main()),
        (UPDATE, 0..=2) => update(page, change),
        (SAMEPAGE_UPDATE, 0) => {
            let number = change.main().u16()?;
            index_page::open(page, SPECIAL_BYTES)?.overwrite(number, change.data().rest())
        }
        (REVMAP_EXTEND, 0) => {
            index_page::open(page, SPECIAL_BYTES)?;
            put_u32(page, CONTENTS + META_LAST_REVMAP, change.main().u32()?)?;
            set_lower(page, CONTENTS + META_BYTES)
        }
        (REVMAP_EXTEND, 1) => init(page, KIND_MAP).map(|_| ()),
        (DESUMMARIZE, 0 | 1) => desummarize(page, change),
        (CREATE_INDEX..=DESUMMARIZE, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

fn init(page: &mut BlockBytes, page_type: u16) -> Result<PageItems<'_>> {
    let mut items = PageItems::init(page, SPECIAL_BYTES);
    put_u16(items.special(), PAGE_TYPE, page_type)?;
    Ok(items)
}

fn create(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (range_blocks, version) = (main.u32()?, main.u16()?);
    init(page, KIND_META)?;
    for (at, value) in [(0, MAGIC), (4, u32::from(version)), (8, range_blocks)] {
        put_u32(page, CONTENTS + at, value)?;
    }
    set_lower(page, CONTENTS + META_BYTES)
}

/// A range of blocks of the table.
struct Range {
    /// One of its blocks.
    block: u32,
    /// How many blocks the ranges of the index have.
    blocks: u32,
}

impl Range {
    /// Where its entry is on the page of the range map that has it.
    fn place(&self, change: Change<'_>) -> Result<usize> {
        let range = self.block.checked_div(self.blocks);
        let range = range.ok_or_else(|| change.corrupt("ranges of no blocks"))?;
        Ok(CONTENTS + (range % RANGES_PER_MAP_PAGE) as usize * TID_BYTES)
    }
}

/// A summary is added to a page (block 0), and the range map points to it (block 1). `main` stands at the range.
fn insert(page: &mut BlockBytes, change: Change<'_>, main: &mut Reader<'_>) -> Result<()> {
    let range = Range { block: main.u32()?, blocks: main.u32()? };
    let number = main.u16()?;
    if change.reference() == 1 {
        index_page::open(page, SPECIAL_BYTES)?;
        let place = range.place(change)?;
        return put(page, place, &tid_bytes(change.needed(0)?, number));
    }
    let mut items = match change.kind() & INIT_PAGE {
        0 => index_page::open(page, SPECIAL_BYTES)?,
        _ => init(page, KIND_SUMMARIES)?,
    };
    items.add(change.data().rest(), number, Numbering::Reuse)
}

/// A summary goes to another page, and leaves its old one (block 2).
fn update(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let old = main.u16()?;
    main.align(4);
    if change.reference() == 2 {
        return index_page::open(page, SPECIAL_BYTES)?.delete_in_place(old);
    }
    insert(page, change, &mut main)
}

/// The range map (block 0) forgets a range, and its summary (block 1) goes.
fn desummarize(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (blocks, block, number) = (main.u32()?, main.u32()?, main.u16()?);
    let mut items = index_page::open(page, SPECIAL_BYTES)?;
    if change.reference() == 1 {
        return items.delete_in_place(number);
    }
    let place = Range { block, blocks }.place(change)?;
    put(page, place, &tid_bytes(BlockNumber(u32::MAX), 0))
}
