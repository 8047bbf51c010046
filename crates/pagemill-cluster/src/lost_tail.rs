//! What else tells that a heap was longer than its files are.
//!
//! A lost last segment leaves no gap: where all segments before it are full, or none is left but an empty file, the
//! heap looks like one that ends there. Others kept beside it know better, and an honest heap of that very size is
//! contradicted by none of them:
//!
//! | witness | what it says |
//! | --- | --- |
//! | visibility map | a bit is set for a block behind the end |
//! | free-space map | a block behind the end has room |
//! | B-tree | an entry leads behind the end |
//!
//! Invariants: only a cluster that was shut down cleanly is asked, since nothing else keeps maps and heap together; a
//! truncation takes what it cuts off out of all of them, so that what is left says nothing; what cannot be read says
//! nothing either.
//!
//! Sources: `visibilitymap_prepare_truncate` in `src/backend/access/heap/visibilitymap.c`,
//! `FreeSpaceMapPrepareTruncateRel` in `src/backend/storage/freespace/freespace.c`, `lazy_truncate_heap` in
//! `src/backend/access/heap/vacuumlazy.c`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_format::btree::BtreePage;
use pagemill_format::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};
use pagemill_format::{
    BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, Fork, Oid, SEGMENT_BLOCKS,
    free_space_map_builder as free_space_map,
};
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStream, ReadStreamOptions};

use crate::btree_scan::{Direction, leaf_entries};
use crate::data_directory::Cluster;
use crate::database::Database;
use crate::error::Result;
use crate::page_check::check_page;

/// Something that tells of a block behind the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailWitness {
    /// A block that the heap had.
    pub block: BlockNumber,
    /// What knows of it: `its visibility map`.
    pub witness: String,
}

impl TailWitness {
    /// What is lost of a heap of this many blocks, for messages.
    pub fn loss(&self, blocks: u32) -> String {
        let Self { block, witness } = self;
        let lost = match blocks {
            0 => "the file is empty",
            _ => "the segment file is missing",
        };
        format!("fork main, blocks {blocks} to {block}: {lost}: {witness} knows of block {block}")
    }
}

/// True for a size that a heap also has once its last segment, or all but an empty file, is lost.
pub fn may_have_lost_its_tail(blocks: u32) -> bool {
    blocks.is_multiple_of(SEGMENT_BLOCKS)
}

/// What the maps beside a heap of this many blocks tell of blocks behind its end; `None` for a size that loses
/// nothing unseen.
///
/// # Errors
/// When a directory or the size of a file cannot be read.
pub fn witness_in_maps(cluster: &Cluster, base: &Path, blocks: u32) -> Result<Option<TailWitness>> {
    if !may_have_lost_its_tail(blocks) || !cluster.is_clean() || cluster.is_live() {
        return Ok(None);
    }
    let found = |block: Option<u32>, map: &str| {
        block.map(|block| TailWitness { block: BlockNumber(block), witness: format!("its {map}") })
    };
    let map = cluster.fork(base, Fork::Vm)?;
    if let Some(found) =
        found(map.and_then(|map| last_visible(cluster, &map, blocks)), "visibility map")
    {
        return Ok(Some(found));
    }
    let map = cluster.fork(base, Fork::Fsm)?;
    Ok(found(map.and_then(|map| last_with_room(cluster, &map, blocks)), "free-space map"))
}

impl Database {
    /// What the B-trees of a table of this many blocks tell of blocks behind its end, read as a whole; `None` for a
    /// size that loses nothing unseen.
    ///
    /// # Errors
    /// When the catalogs, a directory or the size of a file cannot be read.
    pub fn tail_witness_in_indexes(&self, table: Oid, blocks: u32) -> Result<Option<TailWitness>> {
        let cluster = self.cluster();
        if !may_have_lost_its_tail(blocks) || !cluster.is_clean() || cluster.is_live() {
            return Ok(None);
        }
        for row in self.indexes_of(table)?.into_iter().filter(|row| row.is_usable()) {
            let Some(class) = self.class(row.oid) else { continue };
            if !self.is_btree(class)? {
                continue;
            }
            let Some(files) = cluster.fork(&self.base_path(class)?, Fork::Main)? else { continue };
            if let Some(block) = last_entry(cluster, &files, blocks) {
                let name = crate::relation::display_name(&self.schema_of(class)?, &class.name);
                return Ok(Some(TailWitness { block, witness: format!("the index {name}") }));
            }
        }
        Ok(None)
    }
}

/// A page of a map, if it is there and sound.
fn map_page(cluster: &Cluster, map: &ForkFiles, block: BlockNumber) -> Option<Box<BlockBytes>> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    map.read_block(block, &mut page).ok()?;
    check_page(cluster, map, block, &page).ok()?;
    Some(page)
}

/// The last block, from `blocks` on, that the visibility map says something of.
fn last_visible(cluster: &Cluster, map: &ForkFiles, blocks: u32) -> Option<u32> {
    let first_page = VisibilityPosition::of(BlockNumber(blocks)).block.0;
    (first_page..map.blocks()).rev().find_map(|number| {
        let page = map_page(cluster, map, BlockNumber(number))?;
        let covered = number * BLOCKS_PER_PAGE..(number + 1).checked_mul(BLOCKS_PER_PAGE)?;
        covered.rev().take_while(|block| *block >= blocks).find(|block| {
            let bits = VisibilityPosition::of(BlockNumber(*block)).bits(&page);
            bits.all_visible() || bits.all_frozen()
        })
    })
}

/// The last block, from `blocks` on, that has room by the free-space map.
fn last_with_room(cluster: &Cluster, map: &ForkFiles, blocks: u32) -> Option<u32> {
    let (mut last, mut next) = (None, blocks);
    loop {
        let (block, first) = free_space_map::position(BlockNumber(next));
        if block.0 >= map.blocks() {
            return last;
        }
        let slots = BLOCK_SIZE - first;
        if let Some(page) = map_page(cluster, map, block) {
            let slot = page.iter().skip(first).rposition(|category| *category != 0);
            last = slot.map(|slot| next + slot as u32).or(last);
        }
        let Some(following) = next.checked_add(slots as u32) else { return last };
        next = following;
    }
}

/// The last block, from `blocks` on, to which an entry of a B-tree leads that is not known to be dead.
fn last_entry(cluster: &Cluster, index: &ForkFiles, blocks: u32) -> Option<BlockNumber> {
    let mut last: Option<BlockNumber> = None;
    let all = (1..index.blocks()).map(BlockNumber);
    let mut pages = ReadStream::new(index, all, ReadStreamOptions::default());
    while let Some(next) = pages.next() {
        let Ok((block, bytes)) = next else { continue };
        if check_page(cluster, index, block, bytes).is_err() {
            continue;
        }
        let Ok(page) = BtreePage::parse(bytes) else { continue };
        if page.level() != 0 || page.flags().is_ignored() || page.flags().is_deleted() {
            continue;
        }
        // A damaged entry ends the look at its page.
        let _: Result<(), FormatError> = leaf_entries(&page, Direction::Forward, |_, entry| {
            let leads_to = entry?.heap_tids().map(|tid| tid.block);
            last = leads_to.filter(|block| block.0 >= blocks).chain(last).max();
            Ok(())
        });
    }
    last
}
