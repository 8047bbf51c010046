//! The rows of a table that stays which nobody sees any more: no index that is built anew gets entries for them.
//!
//! As no session and no prepared transaction is there, a row is dead to everyone as soon as a next query would not see it.
//! Only a replication slot may hold older ones back, for a standby's sessions: with one, all are kept, as before.
//!
//! Invariants: a line pointer is dead only when its whole chain was sound and none of it visible; what is damaged counts
//! as a row, and is told by whoever reads the table.
//!
//! Source: `heapam_index_build_range_scan` in `src/backend/access/heap/heapam_handler.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_cluster::all_visible::AllVisible;
use pagemill_cluster::hot_chain::{ChainVisibility, PageVisibility};
use pagemill_cluster::page_check::check_page;
use pagemill_cluster::{ClassRow, ClusterLog, Database};
use pagemill_format::page::Page;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Tid};
use pagemill_io::ForkFiles;

use crate::error::Result;

/// The dead rows of one table: 90 bytes or so for each block that has some.
#[derive(Debug, Default)]
pub(super) struct DeadRows {
    blocks: HashMap<BlockNumber, PageVisibility>,
}

impl DeadRows {
    /// Reads the blocks that the visibility map does not vouch for.
    ///
    /// # Errors
    /// When the map or the directory of the slots cannot be read.
    pub(super) fn find(database: &Database, class: &ClassRow, heap: &ForkFiles) -> Result<Self> {
        let cluster = database.cluster();
        let slots = cluster.path().join("pg_replslot");
        let slots = cluster.storage().read_dir(&slots).map_err(pagemill_cluster::Error::from)?;
        let mut found = Self::default();
        if !slots.is_empty() {
            return Ok(found);
        }
        let mut all_visible = AllVisible::open(cluster, &database.base_path(class)?)?;
        let mut log = ClusterLog::new(cluster.clone());
        let mut page = Box::new([0; BLOCK_SIZE]);
        for block in (0..heap.blocks()).map(BlockNumber) {
            let is_read = !all_visible.contains(block)
                && heap.read_block(block, &mut page).is_ok()
                && check_page(cluster, heap, block, &page).is_ok();
            if !is_read {
                continue;
            }
            let sight = PageVisibility::of(Page::new(&page), block, &mut log);
            if sight.has_nothing() {
                found.blocks.insert(block, sight);
            }
        }
        Ok(found)
    }

    /// True for a line pointer that leads to no row.
    pub(super) fn contains(&self, tid: Tid) -> bool {
        let sight = self.blocks.get(&tid.block);
        sight.is_some_and(|sight| sight.at(tid.line_pointer) == ChainVisibility::Nothing)
    }
}
