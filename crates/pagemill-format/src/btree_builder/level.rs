//! The page in hand of one level of a B-tree being built, and the meta page.
//!
//! While a page is filled its first line pointer is kept for the high key, and entries begin at the
//! second. The last page of a level has no high key: there the line pointers move up by one.
//!
//! Invariant: the tuple added last lies at the start of the tuple space, so it can be taken off or
//! replaced by one of another length without moving others.
//!
//! Sources: `_bt_blnewpage`, `_bt_buildadd`, `_bt_slideleft` in
//! `src/backend/access/nbtree/nbtsort.c`, `_bt_initmetapage` in `nbtpage.c`,
//! `PageIndexTupleOverwrite` in `src/backend/storage/page/bufpage.c`, PostgreSQL 14 to 18.

use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};
use crate::index_tuple_builder::minus_infinity;
use crate::page::{LINE_POINTER_BYTES, LinePointer, PAGE_HEADER_BYTES};
use crate::page_builder::{PageBuilder, max_align};

use super::{BtreeSummary, first_low_key};

const SPECIAL_BYTES: usize = 16;
const SPECIAL: usize = BLOCK_SIZE - SPECIAL_BYTES;
const LOWER: usize = 12;
const UPPER: usize = 14;
/// In the special space.
const PREVIOUS: usize = SPECIAL;
const NEXT: usize = SPECIAL + 4;
const LEVEL: usize = SPECIAL + 8;
const FLAGS: usize = SPECIAL + 12;

const IS_LEAF: u16 = 1;
const IS_ROOT: u16 = 2;
const IS_META: u16 = 8;

/// Numbers of line pointers.
const HIGH_KEY: usize = 1;
const FIRST_ENTRY: usize = 2;

/// A pivot begins with the block it leads to.
const DOWNLINK_BYTES: usize = 4;
/// A high key may have to be longer than its entry by a padded heap TID.
const ROOM_FOR_TID: usize = 8;

const META_BYTES: usize = 48;
const MAGIC: u32 = 0x0005_3162;
const VERSION: u32 = 4;

/// The page in hand of a level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) page: Box<BlockBytes>,
    pub(super) block: BlockNumber,
    /// What the level above will know the page by.
    pub(super) low_key: Vec<u8>,
    level: u32,
    /// The number of the last line pointer.
    last: usize,
    /// Of the last entry, the bytes of its posting list.
    last_list_bytes: usize,
    /// A page with less free space than this is full.
    kept_free: usize,
}

/// A page that is done, but for its high key.
pub(super) struct Done {
    pub(super) page: Box<BlockBytes>,
    pub(super) block: BlockNumber,
    /// How many line pointers it has, high key included.
    last: usize,
}

impl Level {
    pub(super) fn new(level: u32, block: BlockNumber, fillfactor: u8) -> Self {
        Self {
            page: new_page(level),
            block,
            low_key: first_low_key(),
            level,
            last: HIGH_KEY,
            last_list_bytes: 0,
            kept_free: BLOCK_SIZE * usize::from(100 - fillfactor.min(100)) / 100,
        }
    }

    /// True when a tuple of so many bytes has to go to the next page.
    pub(super) fn is_full_for(&self, length: usize) -> bool {
        let free =
            get(&self.page, UPPER).saturating_sub(get(&self.page, LOWER) + LINE_POINTER_BYTES);
        let needed = max_align(length) + if self.level == 0 { ROOM_FOR_TID } else { 0 };
        let is_filled = free + self.last_list_bytes < self.kept_free;
        // A page needs an entry besides the one that becomes its high key.
        self.last > FIRST_ENTRY && (free < needed || is_filled)
    }

    /// Adds a tuple; the first of an inner page loses its key. False when there is no room.
    pub(super) fn add(&mut self, tuple: &[u8], list_bytes: usize) -> bool {
        let mut keyless = minus_infinity();
        let is_first_of_inner = self.level > 0 && self.last == HIGH_KEY;
        let tuple = if is_first_of_inner {
            keyless[..DOWNLINK_BYTES].copy_from_slice(&tuple[..DOWNLINK_BYTES]);
            &keyless[..]
        } else {
            tuple
        };
        self.last += 1;
        self.last_list_bytes = list_bytes;
        PageBuilder::trusted(&mut self.page).add(tuple).is_some()
    }

    /// Goes on with an empty page as block `next`, on which the last entry is the first. In the page that is
    /// done that entry is the high key.
    pub(super) fn turn(&mut self, next: BlockNumber) -> Done {
        assert!(
            self.last > FIRST_ENTRY,
            "a page keeps an entry when its last becomes the high key"
        );
        let page = std::mem::replace(&mut self.page, new_page(self.level));
        let block = std::mem::replace(&mut self.block, next);
        let mut done = Done { page, block, last: self.last };
        done.take_high_key();
        put_u32(&mut done.page, NEXT, next.0);
        put_u32(&mut self.page, PREVIOUS, block.0);
        self.last = HIGH_KEY;
        let added = self.add(done.high_key(), 0);
        assert!(added, "an empty page takes the entry that ended the page before");
        done
    }

    /// Makes the page the last of its level.
    pub(super) fn close(&mut self, is_root: bool) {
        let page = &mut *self.page;
        let lower = get(page, LOWER);
        page.copy_within(PAGE_HEADER_BYTES + LINE_POINTER_BYTES..lower, PAGE_HEADER_BYTES);
        page[lower - LINE_POINTER_BYTES..lower].fill(0);
        put(page, LOWER, lower - LINE_POINTER_BYTES);
        if is_root {
            let flags = get(page, FLAGS);
            put(page, FLAGS, flags | usize::from(IS_ROOT));
        }
    }
}

impl Done {
    fn take_high_key(&mut self) {
        let last = pointer(&self.page, self.last);
        let lower = get(&self.page, LOWER);
        self.page[lower - LINE_POINTER_BYTES..lower].fill(0);
        put(&mut self.page, LOWER, lower - LINE_POINTER_BYTES);
        self.last -= 1;
        set_pointer(&mut self.page, HIGH_KEY, last);
    }

    pub(super) fn high_key(&self) -> &[u8] {
        self.tuple(HIGH_KEY)
    }

    /// The last entry on the page.
    pub(super) fn before_last(&self) -> &[u8] {
        self.tuple(self.last)
    }

    fn tuple(&self, number: usize) -> &[u8] {
        let pointer = pointer(&self.page, number);
        &self.page[pointer.offset()..pointer.offset() + pointer.len()]
    }

    /// Puts another tuple in the high key's place, which is the start of the tuple space. False when there is
    /// no room.
    pub(super) fn replace_high_key(&mut self, tuple: &[u8]) -> bool {
        let old = pointer(&self.page, HIGH_KEY);
        let end = old.offset() + max_align(old.len());
        let lower = get(&self.page, LOWER);
        let start = end.checked_sub(max_align(tuple.len())).filter(|start| *start >= lower);
        let Some(start) = start else { return false };
        self.page[old.offset().min(start)..end].fill(0);
        self.page[start..start + tuple.len()].copy_from_slice(tuple);
        put(&mut self.page, UPPER, start);
        set_pointer(&mut self.page, HIGH_KEY, LinePointer::normal(start, tuple.len()));
        true
    }
}

fn new_page(level: u32) -> Box<BlockBytes> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    PageBuilder::init(&mut page, SPECIAL_BYTES);
    put_u32(&mut page, LEVEL, level);
    put(&mut page, FLAGS, usize::from(if level == 0 { IS_LEAF } else { 0 }));
    put(&mut page, LOWER, PAGE_HEADER_BYTES + LINE_POINTER_BYTES);
    page
}

/// Block 0 of an index.
pub(super) fn meta_page(summary: &BtreeSummary, all_equal_image: bool) -> Box<BlockBytes> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    PageBuilder::init(&mut page, SPECIAL_BYTES);
    let root = summary.root.map_or(0, |block| block.0);
    // The root twice: as such, and as the page where searches begin.
    let words = [MAGIC, VERSION, root, summary.level, root, summary.level];
    for (n, word) in words.into_iter().enumerate() {
        put_u32(&mut page, PAGE_HEADER_BYTES + 4 * n, word);
    }
    let heap_tuples = PAGE_HEADER_BYTES + 32;
    page[heap_tuples..heap_tuples + 8].copy_from_slice(&(-1.0_f64).to_le_bytes());
    page[heap_tuples + 8] = u8::from(all_equal_image);
    put(&mut page, FLAGS, usize::from(IS_META));
    put(&mut page, LOWER, PAGE_HEADER_BYTES + META_BYTES);
    page
}

fn get(page: &BlockBytes, at: usize) -> usize {
    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
}

fn put(page: &mut BlockBytes, at: usize, value: usize) {
    [page[at], page[at + 1]] = (value as u16).to_le_bytes();
}

fn put_u32(page: &mut BlockBytes, at: usize, value: u32) {
    [page[at], page[at + 1], page[at + 2], page[at + 3]] = value.to_le_bytes();
}

/// Where line pointer `number`, from 1, lies.
fn pointer_at(number: usize) -> usize {
    PAGE_HEADER_BYTES + (number - 1) * LINE_POINTER_BYTES
}

fn pointer(page: &BlockBytes, number: usize) -> LinePointer {
    let at = pointer_at(number);
    LinePointer(u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]))
}

fn set_pointer(page: &mut BlockBytes, number: usize, pointer: LinePointer) {
    put_u32(page, pointer_at(number), pointer.0);
}
