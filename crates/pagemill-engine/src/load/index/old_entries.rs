//! The entries of an index as it is, one for each row, in its order.
//!
//! Invariant: posting lists come apart into entries of one row each; entries known to be dead are left out, and those of
//! rows that were found dead.

use pagemill_cluster::Database;
use pagemill_cluster::btree_scan::{Direction, LeafWalk, TreePages, leaf_entries};
use pagemill_cluster::page_check::check_page;
use pagemill_format::index_tuple_builder::copy_entry;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError};
use pagemill_io::ForkFiles;
use pagemill_types::index_key_order::KeyOrder;

use super::keys::KeyRun;
use super::plan::IndexPlan;
use crate::error::Result;
use crate::load::dead_rows::DeadRows;

/// Reads the leaves one after the other.
#[derive(Debug)]
pub(in crate::load) struct OldEntries<'p> {
    order: &'p KeyOrder,
    dead: &'p DeadRows,
    pages: Pages,
    walk: LeafWalk,
}

impl<'p> OldEntries<'p> {
    /// Begins at the first leaf.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read.
    pub(in crate::load) fn open(
        database: &Database,
        plan: &'p IndexPlan,
        dead: &'p DeadRows,
    ) -> Result<Self> {
        let cluster = database.cluster().clone();
        let files = cluster.main_fork(&database.base_path(&plan.class)?)?;
        let page = (None, Box::new([0; BLOCK_SIZE]));
        let mut pages = Pages { cluster, files, page };
        let walk = LeafWalk::start(&mut pages, Direction::Forward, true)?;
        Ok(Self { order: &plan.order, dead, pages, walk })
    }

    /// The entries of the next leaf that has any; nothing behind the last.
    ///
    /// # Errors
    /// When the index is damaged or cannot be read.
    pub(in crate::load) fn next_leaf(&mut self) -> Result<Option<KeyRun>> {
        let Self { order, dead, pages, walk } = self;
        while let Some((block, leaf)) = walk.next(pages)? {
            let mut run = KeyRun::default();
            let visited = leaf_entries(&leaf, Direction::Forward, |_, tuple| {
                let tuple = tuple?;
                for tid in tuple.heap_tids().filter(|tid| !dead.contains(*tid)) {
                    let start = run.bytes.len();
                    copy_entry(&tuple, tid, &mut run.bytes);
                    run.end_entry(start, order)?;
                }
                Ok(())
            });
            visited.map_err(|error: FormatError| pages.damage(block, error.to_string()))?;
            if !run.entries.is_empty() {
                return Ok(Some(run));
            }
        }
        Ok(None)
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
