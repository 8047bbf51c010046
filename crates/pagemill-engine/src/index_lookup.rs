//! Where rows are, by the values of their keys: a search of an index gives TIDs.
//!
//! ```text
//! IndexLookup ── tids(ranges) ──► TIDs in the order of the table ──► TidScan: visible rows, block by block
//! ```
//!
//! A page of the index is read when it is wanted, without its neighbors: what is looked up is little.
//!
//! Invariants: the TIDs lead to every row that a scan of the whole table gives for the same keys; a search that would find
//! more than it is told to ends early and gives nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use pagemill_cluster::btree_scan::{Direction, TreePages};
use pagemill_cluster::btree_search::{KeyChanges, KeySearch, OrderedTid, RangeWalk, least_share};
use pagemill_cluster::{
    ClassRow, Cluster, Damage, Database, Error as ClusterError, Relation, SearchIndex,
};
use pagemill_format::{BlockBytes, BlockNumber, Tid};
use pagemill_types::index_key_range::KeyRange;

use crate::error::Result;
use crate::fork_pages::{ForkPages, ForkReading};
use crate::progress::Progress;
use crate::scan_plan::ScanOptions;
use crate::table::{Table, device_settings, fork_with_rows};

/// Pages of an index that are kept: all levels above the leaves of most searches.
const TREE_PAGES: usize = 64;

/// Of so few ranges each is held against the downlinks of the root before it is begun.
const FEW_RANGES: usize = 100;

/// Blocks that are kept one by one, before there is a bit for each block of the table.
const FIRST_BLOCKS: usize = 32;

/// When a search ends early.
#[derive(Debug, Clone, Copy)]
pub struct LookupLimits {
    /// More blocks of the table than these are not worth a search.
    pub blocks: u32,
    /// More TIDs are not kept.
    pub tids: usize,
    /// A range of a greater share of the index, from 0 to 1, is not begun.
    pub share: f64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The TIDs, ascending, each once.
    Found(Vec<Tid>),
    /// More than its limits allow.
    TooMany,
}

/// An index opened for searches.
pub struct IndexLookup {
    cluster: Cluster,
    index: Arc<SearchIndex>,
    pages: LonePages,
    heap_blocks: u32,
    progress: Progress,
}

impl IndexLookup {
    /// Opens the files of an index of a table.
    ///
    /// # Errors
    /// When they are missing or damaged.
    pub fn open(
        database: &Database,
        table: &Table,
        index: &Arc<SearchIndex>,
        options: ScanOptions,
    ) -> Result<Self> {
        let pages = LonePages::open(database, (&index.class, &index.relation), options)?;
        Ok(Self {
            cluster: database.cluster().clone(),
            index: index.clone(),
            pages,
            heap_blocks: table.blocks(),
            progress: Progress::default(),
        })
    }

    /// For a search that is told of and cancelled by `progress`, the first or another. Pages that were read before are not read
    /// again: the files must not change meanwhile.
    pub fn begin(&mut self, progress: &Progress) {
        self.pages.set_progress(progress);
        self.progress = progress.clone();
    }

    /// Where the rows of these ranges are, which come in the order of the index and have nothing in common.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read, or the work was cancelled.
    pub fn tids(&mut self, ranges: &[KeyRange], limits: LookupLimits) -> Result<Lookup> {
        let Self { cluster, index, pages, heap_blocks, progress } = self;
        let mut blocks = BlockSet::new(*heap_blocks);
        let (mut tids, mut last) = (Vec::new(), None);
        // Of many ranges none tells much of them all: the blocks that they lead to do.
        let asks_share = limits.share < 1.0 && ranges.len() <= FEW_RANGES;
        for range in ranges {
            let (order, strict) = (&index.order, !cluster.is_live());
            if asks_share && least_share(pages, order, range)? > limits.share {
                return Ok(Lookup::TooMany);
            }
            let search = KeySearch { order, range, direction: Direction::Forward };
            let mut walk = match last.filter(|_| strict) {
                Some(last) => RangeWalk::go_on_from(pages, search, strict, last)?,
                None => RangeWalk::start(pages, search, strict)?,
            };
            loop {
                progress.check()?;
                let before = tids.len();
                let goes_on = walk.next_leaf(pages, &mut tids)?;
                for tid in tids.get(before..).unwrap_or_default() {
                    if !blocks.insert(tid.block) {
                        return Err(pages.past_end(*tid, *heap_blocks).into());
                    }
                }
                if blocks.count > limits.blocks || tids.len() > limits.tids {
                    return Ok(Lookup::TooMany);
                }
                if !goes_on {
                    break;
                }
            }
            last = walk.last_leaf();
        }
        tids.sort_unstable();
        tids.dedup();
        Ok(Lookup::Found(tids))
    }

    /// Goes along a range in the order of the index, or backward, and shows the entries of leaf after leaf, until `visit`
    /// has enough. They tell where the values of so many leading key columns change.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read, or the work was cancelled.
    pub fn in_order(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        columns: usize,
        mut visit: impl FnMut(&[OrderedTid]) -> ControlFlow<()>,
    ) -> Result<()> {
        let Self { cluster, index, pages, heap_blocks, progress } = self;
        let search = KeySearch { order: &index.order, range, direction };
        let mut walk = RangeWalk::start(pages, search, !cluster.is_live())?;
        let (mut changes, mut entries) = (KeyChanges::new(columns), Vec::new());
        loop {
            progress.check()?;
            entries.clear();
            let goes_on = walk.next_leaf_by_keys(pages, &mut changes, &mut entries)?;
            if let Some(past) = entries.iter().find(|entry| entry.tid.block.0 >= *heap_blocks) {
                return Err(pages.past_end(past.tid, *heap_blocks).into());
            }
            if !entries.is_empty() && visit(&entries).is_break() {
                return Ok(());
            }
            if !goes_on {
                return Ok(());
            }
        }
    }
}

/// Blocks of a table, and how many.
struct BlockSet {
    /// The first of them, which for most searches are all.
    first: Vec<u32>,
    /// A bit for each block of the table, once there are more.
    words: Vec<u64>,
    blocks: u32,
    count: u32,
}

impl BlockSet {
    fn new(blocks: u32) -> Self {
        Self { first: Vec::new(), words: Vec::new(), blocks, count: 0 }
    }

    /// False for a block that the table does not have.
    fn insert(&mut self, block: BlockNumber) -> bool {
        if block.0 >= self.blocks {
            return false;
        }
        if self.words.is_empty() {
            if self.first.contains(&block.0) {
                return true;
            }
            if self.first.len() < FIRST_BLOCKS {
                self.first.push(block.0);
                self.count += 1;
                return true;
            }
            self.words = vec![0; self.blocks.div_ceil(64) as usize];
            std::mem::take(&mut self.first).into_iter().for_each(|first| {
                self.set(first);
            });
        }
        self.count += u32::from(self.set(block.0));
        true
    }

    /// Whether it was not there.
    fn set(&mut self, block: u32) -> bool {
        let (word, bit) = (&mut self.words[(block / 64) as usize], 1 << (block % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Pages of an index, read one by one.
pub(crate) struct LonePages(ForkPages);

impl LonePages {
    /// Of an index by its row and its files.
    pub(crate) fn open(
        database: &Database,
        (class, relation): (&ClassRow, &Relation),
        options: ScanOptions,
    ) -> Result<Self> {
        let (cluster, base) = (database.cluster(), &relation.base);
        let damage = |what: String| ClusterError::from(Damage::in_file(base, what));
        let files = cluster.fork(base, fork_with_rows(cluster, class))?;
        let missing =
            || damage(format!("the file of index {} is missing", relation.display_name()));
        let files = Arc::new(files.ok_or_else(missing)?);
        if let Some(found) = files.damage().first() {
            return Err(damage(found.to_string()).into());
        }
        let (concurrency, _) = device_settings(database, class);
        let (options, progress) = (options.reading(concurrency), Progress::default());
        let reading = ForkReading { cluster, files: &files, options, progress: &progress };
        Ok(Self(ForkPages::new(reading, TREE_PAGES)))
    }

    /// Who is told of what is read.
    pub(crate) fn set_progress(&mut self, progress: &Progress) {
        self.0.set_progress(progress);
    }

    fn past_end(&self, tid: Tid, blocks: u32) -> ClusterError {
        let what = format!("an entry leads to {tid} of the table, which has {blocks} blocks");
        let (path, _) = self.0.files().locate(BlockNumber(0));
        Damage::in_file(path, what).into()
    }
}

impl TreePages for LonePages {
    fn page(&mut self, block: BlockNumber) -> Result<&BlockBytes, ClusterError> {
        self.0.read_alone([block]);
        self.0.get(block)
    }

    fn holds(&self, block: BlockNumber) -> bool {
        self.0.held(block).is_some()
    }

    fn will_want(&mut self, blocks: &[BlockNumber]) {
        let past = self.blocks();
        self.0.read_alone(blocks.iter().copied().filter(|block| block.0 < past));
    }

    fn blocks(&self) -> u32 {
        self.0.files().blocks()
    }

    fn damage(&self, block: BlockNumber, what: String) -> ClusterError {
        let files = self.0.files();
        Damage::in_block(files.locate(block).0, files.fork(), block, what).into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn blocks_are_counted_once_however_many_there_are() {
        let (mut blocks, mut model) = (BlockSet::new(1000), HashSet::new());
        for step in 0..5_000_u32 {
            // The first ones come again and again, and then all of them.
            let block = (step * step + step / 7) % (1 + step).min(1000);
            assert!(blocks.insert(BlockNumber(block)));
            model.insert(block);
            assert_eq!(blocks.count as usize, model.len(), "after block {block}");
        }
        assert!(model.len() > FIRST_BLOCKS && !blocks.insert(BlockNumber(1000)));
    }
}
