//! How a table is to be scanned: the options, and what they come to for one table.
//!
//! Invariant: whatever the order and the number of jobs, the shares together are every block that is
//! not lost, once; put one after the other they are in the order of the scan.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::Cluster;
use pagemill_format::BlockNumber;
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStreamOptions, ScanOrder};

use crate::error::Result;
use crate::progress::Progress;
use crate::refusal::Misuse;
use crate::table::{Shares, Table};

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Most blocks fetched by one read call.
    pub io_combine_limit: u32,
    /// Threads that scan.
    pub jobs: usize,
    /// The order of blocks; in a backward scan the rows of a page come last to first, too.
    pub order: ScanOrder,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            io_combine_limit: pagemill_stream::DEFAULT_IO_COMBINE_LIMIT,
            jobs: 1,
            order: ScanOrder::default(),
        }
    }
}

impl ScanOptions {
    /// How files are read that lie where so many reads may be in flight.
    pub(crate) fn reading(self, effective_io_concurrency: u32) -> ReadStreamOptions {
        let io_combine_limit = self.io_combine_limit;
        ReadStreamOptions { io_combine_limit, effective_io_concurrency, ramp_up: false }
    }
}

/// What a scan of a table is asked for with, whatever it is that it looks for there.
#[derive(Clone, Copy)]
pub struct ScanRequest<'a> {
    /// The cluster that the table is of.
    pub cluster: &'a Cluster,
    /// The table, opened.
    pub table: &'a Arc<Table>,
    /// How to scan it.
    pub options: ScanOptions,
    /// Where it says how far it is, and hears that it was cancelled.
    pub progress: &'a Progress,
}

/// What the options come to for one table. Threads that share a scan share it.
#[derive(Debug, Clone)]
pub(crate) struct ScanPlan {
    cluster: Cluster,
    table: Arc<Table>,
    options: ScanOptions,
}

impl ScanPlan {
    /// # Errors
    /// When the block to begin with is past the end.
    pub(crate) fn new(cluster: &Cluster, table: &Arc<Table>, options: ScanOptions) -> Result<Self> {
        if let Some(files) = table.files() {
            check_start(&table.relation.display_name(), files, options.order)?;
        }
        Ok(Self { cluster: cluster.clone(), table: table.clone(), options })
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn order(&self) -> ScanOrder {
        self.options.order
    }

    /// All blocks that are not lost, in the order of the scan.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        self.order().arrange(self.table.present())
    }

    /// The same in pieces of at most so many blocks.
    pub(crate) fn shares(&self, share_blocks: u32) -> Shares {
        Shares::new(self.table.present(), self.order(), share_blocks)
    }

    pub(crate) fn stream_options(&self) -> ReadStreamOptions {
        self.table.reading(self.options)
    }
}

/// Refuses an order that begins past the end. A table without blocks has nothing that it could begin
/// with.
pub(crate) fn check_start(name: &str, files: &ForkFiles, order: ScanOrder) -> Result<()> {
    let blocks = files.blocks();
    match order.start {
        Some(BlockNumber(start)) if start > 0 && start >= blocks => {
            let (relation, start) = (name.to_owned(), BlockNumber(start));
            Err(Misuse::StartPastEnd { relation, start, blocks }.into())
        }
        _ => Ok(()),
    }
}
