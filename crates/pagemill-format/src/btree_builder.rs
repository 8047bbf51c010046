//! Builds a B-tree from its entries in order, bottom up, as `CREATE INDEX` does.
//!
//! Each level has one page in hand. When an entry no longer fits, the last one on the page is moved to
//! a new page, what is needed of it becomes the old page's *high key*, and the level above gets a pivot
//! with the low key of the page that is done. Pages are handed out as they are done, and their block
//! numbers are given when they are begun, so they come nearly in order, and the meta page last.
//!
//! ```text
//! entries ─► posting lists ─► level 0 ─ high key ─► level 1 ─ high key ─► … root
//! ```
//!
//! Invariants: a page has two entries or more and a high key, unless it is the last of its level; the
//! first pivot of a page has no key; memory is one page per level, whatever the index's size.
//!
//! Sources: `_bt_load`, `_bt_buildadd`, `_bt_uppershutdown` in `src/backend/access/nbtree/nbtsort.c`,
//! `_bt_dedup_save_htid` in `nbtdedup.c`, `_bt_initmetapage` in `nbtpage.c`, PostgreSQL 14 to 18.

use std::fmt::Debug;

use crate::error::Error;
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};
use crate::index_tuple_builder::{
    MAX_ENTRY_BYTES, TID_BYTES, Truncation, entry_too_long, form_high_key, form_posting,
    has_same_image, minus_infinity, set_downlink,
};
use crate::page_builder::max_align;

mod level;

use level::Level;

/// What leaf pages are filled to, in percent, unless the index's `fillfactor` says otherwise.
pub const BTREE_DEFAULT_FILLFACTOR: u8 = 90;
/// What the pages above are filled to.
const NONLEAF_FILLFACTOR: u8 = 70;
/// The longest entry with a posting list: a tenth of a page, less a line pointer.
const MAX_POSTING_BYTES: usize = (BLOCK_SIZE / 10) / 8 * 8 - 4;

/// What kind of index is built.
#[derive(Debug, Clone)]
pub struct BtreeOptions {
    /// The index's name, for messages.
    pub name: String,
    /// In percent, 10 to 100.
    pub fillfactor: u8,
    /// Entries can have included columns behind the key.
    pub has_included_columns: bool,
    /// The index is unique: then nothing is deduplicated, as there is little to gain.
    pub is_unique: bool,
    /// `deduplicate_items`, on unless it was turned off.
    pub deduplicate_items: bool,
    /// Of a catalog or a TOAST table, in 14: such an index never says that equal keys are equal byte by byte
    /// (`_bt_allequalimage` in `src/backend/access/nbtree/nbtutils.c`, PostgreSQL 14; not from 15 on).
    pub is_of_system_in_14: bool,
}

/// What was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BtreeSummary {
    /// Blocks of the index, meta page included.
    pub blocks: u32,
    /// The root page; none without entries.
    pub root: Option<BlockNumber>,
    /// The root's level.
    pub level: u32,
}

/// The order in which an index's entries come, as far as its pages depend on it.
///
/// What the order of values is, the crate of the types knows; here it is only asked.
pub trait EntryOrder: Debug + Sync {
    /// True when equal keys are equal bytes in every column.
    fn has_equal_image(&self) -> bool;

    /// What of `entry` has to be kept so that it still comes behind `before`, the entry right before it.
    fn truncation(&self, before: &[u8], entry: &[u8]) -> Truncation;
}

/// Builds one index.
#[derive(Debug)]
pub struct BtreeBuilder<'o> {
    order: &'o dyn EntryOrder,
    options: BtreeOptions,
    /// Leaf level first; the pages in hand.
    levels: Vec<Level>,
    next_block: u32,
    pending: Pending,
    posting: Vec<u8>,
    high_key: Vec<u8>,
}

/// Equal entries on their way into a posting list.
#[derive(Debug, Default)]
struct Pending {
    /// The first of them; empty when there is none.
    base: Vec<u8>,
    /// The heap TIDs of all of them.
    tids: Vec<u8>,
}

impl Pending {
    fn begin(&mut self, entry: &[u8]) {
        self.base.clear();
        self.base.extend_from_slice(entry);
        self.tids.clear();
        self.tids.extend_from_slice(&entry[..TID_BYTES]);
    }

    /// False when the entry is another one, or the list would be too long.
    fn take(&mut self, entry: &[u8]) -> bool {
        let length = max_align(self.base.len() + self.tids.len() + TID_BYTES);
        let fits = length <= MAX_POSTING_BYTES && has_same_image(&self.base, entry);
        if fits {
            self.tids.extend_from_slice(&entry[..TID_BYTES]);
        }
        fits
    }
}

impl<'o> BtreeBuilder<'o> {
    /// Begins an index whose entries come in this order.
    pub fn new(order: &'o dyn EntryOrder, options: BtreeOptions) -> Self {
        Self {
            order,
            options,
            levels: Vec::new(),
            next_block: 1,
            pending: Pending::default(),
            posting: Vec::new(),
            high_key: Vec::new(),
        }
    }

    /// True when equal keys are equal byte by byte (`btm_allequalimage`).
    fn all_equal_image(&self) -> bool {
        !self.options.has_included_columns
            && !self.options.is_of_system_in_14
            && self.order.has_equal_image()
    }

    fn deduplicates(&self) -> bool {
        self.options.deduplicate_items && !self.options.is_unique && self.all_equal_image()
    }

    /// Adds the next entry (one heap TID, as [`crate::index_tuple_builder::IndexForm`] makes it). Pages that
    /// are done go to `sink` with their block; LSN and checksum are still to be set.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for an entry that is too long; the sink's.
    pub fn add<E, S>(&mut self, entry: &[u8], sink: &mut S) -> Result<(), E>
    where
        E: From<Error>,
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        assert!(entry.len() >= TID_BYTES, "an index entry begins with its heap TID");
        if entry.len() > MAX_ENTRY_BYTES {
            return Err(entry_too_long(entry.len(), &self.options.name).into());
        }
        if !self.deduplicates() {
            return self.add_to_level(0, entry, 0, sink);
        }
        if !self.pending.base.is_empty() {
            if self.pending.take(entry) {
                return Ok(());
            }
            self.finish_pending(sink)?;
        }
        self.pending.begin(entry);
        Ok(())
    }

    fn finish_pending<E, S>(&mut self, sink: &mut S) -> Result<(), E>
    where
        E: From<Error>,
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        let pending = std::mem::take(&mut self.pending);
        let result = if pending.tids.len() <= TID_BYTES {
            self.add_to_level(0, &pending.base, 0, sink)
        } else {
            let mut posting = std::mem::take(&mut self.posting);
            form_posting(&pending.base, &pending.tids, &mut posting);
            let list_bytes = posting.len() - pending.base.len();
            let result = self.add_to_level(0, &posting, list_bytes, sink);
            self.posting = posting;
            result
        };
        self.pending = pending;
        result
    }

    /// Adds a tuple to a level; `list_bytes` of it are a posting list that a high key would not have.
    fn add_to_level<E, S>(
        &mut self,
        level: usize,
        tuple: &[u8],
        list_bytes: usize,
        sink: &mut S,
    ) -> Result<(), E>
    where
        E: From<Error>,
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        if level == self.levels.len() {
            let block = self.allocate()?;
            let fillfactor = if level == 0 { self.options.fillfactor } else { NONLEAF_FILLFACTOR };
            self.levels.push(Level::new(level as u32, block, fillfactor));
        }
        assert!(level < self.levels.len(), "levels of an index are begun one above the other");
        if self.levels[level].is_full_for(tuple.len()) {
            self.turn_page(level, sink)?;
        }
        if self.levels[level].add(tuple, list_bytes) {
            Ok(())
        } else {
            Err(Error::limit("failed to add item to the index page").into())
        }
    }

    /// Finishes a level's page, and begins the next with the last entry of it.
    fn turn_page<E, S>(&mut self, level: usize, sink: &mut S) -> Result<(), E>
    where
        E: From<Error>,
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        let block = self.allocate()?;
        let page = &mut self.levels[level];
        let mut done = page.turn(block);
        if level == 0 {
            let (before, first) = (done.before_last(), done.high_key());
            let truncation = self.order.truncation(before, first);
            form_high_key(before, first, &truncation, &mut self.high_key)?;
            if !done.replace_high_key(&self.high_key) {
                return Err(no_room("high key").into());
            }
        }
        let mut low_key = std::mem::take(&mut page.low_key);
        page.low_key.extend_from_slice(done.high_key());
        set_downlink(&mut low_key, done.block);
        self.add_to_level(level + 1, &low_key, 0, sink)?;
        sink(done.block, &mut done.page)
    }

    fn allocate(&mut self) -> Result<BlockNumber, Error> {
        let block = self.next_block;
        // The number after the last is "none".
        self.next_block = block.checked_add(1).ok_or_else(too_many_blocks)?;
        Ok(BlockNumber(block))
    }

    /// Hands out the pages in hand, and the meta page as block 0.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish<E, S>(mut self, sink: &mut S) -> Result<BtreeSummary, E>
    where
        E: From<Error>,
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        if !self.pending.base.is_empty() {
            self.finish_pending(sink)?;
        }
        let mut level = 0;
        let mut root = None;
        while let Some(page) = self.levels.get_mut(level) {
            let block = page.block;
            let mut low_key = std::mem::take(&mut page.low_key);
            if level + 1 < self.levels.len() {
                set_downlink(&mut low_key, block);
                self.add_to_level(level + 1, &low_key, 0, sink)?;
            } else {
                root = Some(block);
            }
            let page = &mut self.levels[level];
            page.close(root.is_some());
            sink(block, &mut page.page)?;
            level += 1;
        }
        let top = level.saturating_sub(1) as u32;
        let summary = BtreeSummary { blocks: self.next_block, root, level: top };
        let mut meta = level::meta_page(&summary, self.all_equal_image());
        sink(BlockNumber(0), &mut meta)?;
        Ok(summary)
    }
}

/// What the limit on entries prevents.
#[cold]
fn no_room(what: &str) -> Error {
    Error::limit(format!("failed to add {what} to the index page"))
}

#[cold]
fn too_many_blocks() -> Error {
    Error::limit(format!("cannot extend an index beyond {} blocks", u32::MAX))
}

/// The low key of the first page of a level.
fn first_low_key() -> Vec<u8> {
    minus_infinity().to_vec()
}
