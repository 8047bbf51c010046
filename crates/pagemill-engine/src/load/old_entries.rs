//! The entries of an index as it is, one for each row, in its order.
//!
//! Invariant: posting lists come apart into entries of one row each; entries known to be dead are left out.

use pagemill_cluster::Database;
use pagemill_cluster::btree_scan::{Direction, LeafWalk, TreePages, leaf_entries};
use pagemill_cluster::page_check::check_page;
use pagemill_format::index_tuple_builder::copy_entry;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;

use super::index_plan::IndexPlan;
use crate::error::Result;

/// Reads the leaves one after the other.
#[derive(Debug)]
pub(super) struct OldEntries {
    pages: Pages,
    walk: LeafWalk,
    /// The entries of the leaf at hand, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    next: usize,
}

impl OldEntries {
    /// Begins at the first leaf.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read.
    pub(super) fn open(database: &Database, plan: &IndexPlan) -> Result<Self> {
        let cluster = database.cluster().clone();
        let files = cluster.main_fork(&database.base_path(&plan.class)?)?;
        let page = (None, Box::new([0; BLOCK_SIZE]));
        let mut pages = Pages { cluster, files, page };
        let walk = LeafWalk::start(&mut pages, Direction::Forward, true)?;
        Ok(Self { pages, walk, bytes: Vec::new(), ends: Vec::new(), next: 0 })
    }

    /// Puts the next entry in place of what `entry` held; false when there is none.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read.
    pub(super) fn next_into(&mut self, entry: &mut Vec<u8>) -> Result<bool> {
        while self.next >= self.ends.len() {
            if !self.next_leaf()? {
                return Ok(false);
            }
        }
        let start = self.next.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(self.next).copied().unwrap_or(0);
        entry.clear();
        entry.extend_from_slice(self.bytes.get(start.unwrap_or(0)..end).unwrap_or_default());
        self.next += 1;
        Ok(true)
    }

    fn next_leaf(&mut self) -> Result<bool> {
        let Self { pages, walk, bytes, ends, next } = self;
        bytes.clear();
        ends.clear();
        *next = 0;
        let Some((block, leaf)) = walk.next(pages)? else { return Ok(false) };
        let visited = leaf_entries(&leaf, Direction::Forward, |_, tuple| {
            let tuple = tuple?;
            for tid in tuple.heap_tids() {
                copy_entry(&tuple, tid, bytes);
                ends.push(bytes.len());
            }
            Ok(())
        });
        visited.map_err(|error: pagemill_format::Error| pages.damage(block, error.to_string()))?;
        Ok(true)
    }
}

/// The pages of the index, one at a time.
#[derive(Debug)]
struct Pages {
    cluster: pagemill_cluster::Cluster,
    files: ForkFiles,
    page: (Option<BlockNumber>, Box<BlockBytes>),
}

impl TreePages for Pages {
    fn page(&mut self, block: BlockNumber) -> pagemill_cluster::Result<&BlockBytes> {
        if self.page.0 != Some(block) {
            self.page.0 = None;
            self.files.read_block(block, &mut self.page.1)?;
            check_page(&self.cluster, &self.files, block, &self.page.1)?;
            self.page.0 = Some(block);
        }
        Ok(&self.page.1)
    }

    fn holds(&self, block: BlockNumber) -> bool {
        self.page.0 == Some(block)
    }

    fn will_want(&mut self, _blocks: &[BlockNumber]) {}

    fn blocks(&self) -> u32 {
        self.files.blocks()
    }

    fn damage(&self, block: BlockNumber, what: String) -> pagemill_cluster::Error {
        let path = self.files.locate(block).0;
        pagemill_cluster::Damage::in_block(path, self.files.fork(), block, what).into()
    }
}
