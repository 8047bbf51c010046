//! New versions of rows of `pg_class`, for relations that get other files.
//!
//! The old version stays and is marked as updated, so that whoever replays the WAL and stops before the commit finds it
//! and the old files: a standby that is promoted, a recovery to a point in time. Which version is seen is up to the
//! commit log, as after an ALTER TABLE by a server.
//!
//! Invariants: the old version keeps its place and its entries; pages that were all-visible are no more.
//!
//! Source: `heap_update` in `src/backend/access/heap/heapam.c`, PostgreSQL 14 to 18.

use std::collections::{BTreeMap, HashMap};

use pagemill_format::page::Page;
use pagemill_format::page_builder::{PageBuilder, max_align};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::tuple_update::{succeed, supersede};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Oid, Tid, TransactionId};

use super::class_rows::{ClassChange, ClassEntry, class_files, offset_of, places_of};
use crate::database::Database;
use crate::error::{Error, Result};

/// The pages with old and new versions, and what the indexes have to say of the new ones.
#[derive(Debug, Default)]
pub(super) struct ClassVersions {
    pub(super) pages: BTreeMap<BlockNumber, Box<BlockBytes>>,
    pub(super) entries: Vec<ClassEntry>,
}

impl ClassVersions {
    /// Writes a new version of the row of each relation; `changed` are pages that were changed otherwise before.
    ///
    /// # Errors
    /// When `pg_class` cannot be read, or has no row for one of them.
    pub(super) fn write(
        database: &Database,
        xid: TransactionId,
        changes: &HashMap<Oid, ClassChange>,
        changed: impl Fn(BlockNumber) -> Option<Box<BlockBytes>>,
    ) -> Result<Self> {
        let places = places_of(database, changes)?;
        let mut writer = Writer {
            database,
            xid,
            changed,
            blocks: class_files(database)?.blocks(),
            made: Self::default(),
        };
        for (oid, tid) in places {
            if let Some(change) = changes.get(&oid) {
                writer.write(tid, change)?;
            }
        }
        Ok(writer.made)
    }
}

struct Writer<'a, F> {
    database: &'a Database,
    xid: TransactionId,
    changed: F,
    blocks: u32,
    made: ClassVersions,
}

impl<F: Fn(BlockNumber) -> Option<Box<BlockBytes>>> Writer<'_, F> {
    fn write(&mut self, old: Tid, change: &ClassChange) -> Result<()> {
        let mut tuple = self.tuple(old)?;
        let data = HeapTuple::parse(&tuple)?.hoff();
        for (name, value) in change.fields() {
            let Some(at) = offset_of(self.database, name)? else { continue };
            if let Some(field) = tuple.get_mut(data + at..data + at + value.len()) {
                field.copy_from_slice(&value);
            }
        }
        let new = self.add(old.block, &tuple)?;
        let xid = self.xid;
        self.change_tuple(new, |tuple| succeed(tuple, xid, new))?;
        self.change_tuple(old, |tuple| supersede(tuple, xid, new))?;
        let entry = ClassEntry::of(self.database, HeapTuple::parse(&tuple)?, new)?;
        self.made.entries.push(entry);
        Ok(())
    }

    /// Puts the tuple where there is room: beside the old version, else on the last page, else on a new one.
    fn add(&mut self, beside: BlockNumber, tuple: &[u8]) -> Result<Tid> {
        for block in [beside, BlockNumber(self.blocks.saturating_sub(1))] {
            let page = self.page(block)?;
            let mut page = PageBuilder::resume(page)?;
            if page.heap_free_space() >= max_align(tuple.len())
                && let Some(line_pointer) = page.add(tuple)
            {
                return Ok(Tid { block, line_pointer });
            }
        }
        let block = BlockNumber(self.blocks);
        self.blocks += 1;
        let mut page = Box::new([0; BLOCK_SIZE]);
        let added = PageBuilder::init(&mut page, 0).add(tuple);
        self.made.pages.insert(block, page);
        let full = || Error::refused("a row of pg_class finds no room on an empty page");
        Ok(Tid { block, line_pointer: added.ok_or_else(full)? })
    }

    fn tuple(&mut self, tid: Tid) -> Result<Vec<u8>> {
        let page = Page::new(self.page(tid.block)?);
        let lp = page.line_pointer(tid.line_pointer);
        let lp = lp.ok_or_else(|| Error::refused("a row of pg_class lost its line pointer"))?;
        Ok(page.item(lp)?.to_vec())
    }

    fn change_tuple(&mut self, tid: Tid, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let xid = self.xid;
        let page = self.page(tid.block)?;
        let lp = Page::new(page).line_pointer(tid.line_pointer);
        if let Some(tuple) = lp.and_then(|lp| page.get_mut(lp.offset()..lp.offset() + lp.len())) {
            change(tuple);
        }
        PageBuilder::resume(page)?.set_prunable(xid);
        Ok(())
    }

    /// A page with all its changes so far.
    fn page(&mut self, block: BlockNumber) -> Result<&mut Box<BlockBytes>> {
        use std::collections::btree_map::Entry;
        match self.made.pages.entry(block) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let page = match (self.changed)(block) {
                    Some(page) => page,
                    None => {
                        let mut page = Box::new([0; BLOCK_SIZE]);
                        class_files(self.database)?.read_block(block, &mut page)?;
                        page
                    }
                };
                Ok(place.insert(page))
            }
        }
    }
}
