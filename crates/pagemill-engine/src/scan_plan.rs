//! How a table is to be scanned: the options, and what they come to for one table: in which order its
//! blocks are taken, and with which other scans.
//!
//! Invariant: whatever the order and the number of jobs, the shares together are every block that is
//! not lost, once; put one after the other they are in the order of the scan.

use std::ops::Range;

use pagemill_cluster::Cluster;
use pagemill_format::BlockNumber;
use pagemill_io::ForkFiles;
use pagemill_stream::sync_scans::JoinedScan;
use pagemill_stream::{ReadStreamOptions, ScanOrder};

use crate::error::{Error, Result};
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
    /// True to begin where another scan of the same table in this process is, if the table is large
    /// ([`Cluster::sync_scans`]), and to let others begin where this one is. The rows then come in
    /// another order. Of no effect on an order that is not plain.
    pub synchronize: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            io_combine_limit: pagemill_stream::DEFAULT_IO_COMBINE_LIMIT,
            jobs: 1,
            order: ScanOrder::default(),
            synchronize: false,
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

/// What the options come to for one table.
pub(crate) struct ScanPlan<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) table: &'a Table,
    options: ScanOptions,
    order: ScanOrder,
    joined: Option<JoinedScan<'a>>,
}

impl<'a> ScanPlan<'a> {
    /// # Errors
    /// When the block to begin with is past the end.
    pub(crate) fn new(
        cluster: &'a Cluster,
        table: &'a Table,
        options: ScanOptions,
    ) -> Result<Self> {
        let mut plan = Self { cluster, table, options, order: options.order, joined: None };
        let Some(files) = table.files() else { return Ok(plan) };
        check_start(&table.relation.display_name(), files, options.order)?;
        if options.synchronize && options.order == ScanOrder::default() {
            plan.joined = cluster.sync_scans().join(files.path(), files.blocks());
            if let Some(joined) = &plan.joined {
                plan.order = ScanOrder::from_block(joined.start());
            }
        }
        Ok(plan)
    }

    pub(crate) fn order(&self) -> ScanOrder {
        self.order
    }

    /// All blocks that are not lost, in the order of the scan.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        self.order.arrange(self.table.present())
    }

    /// The same in pieces of at most so many blocks.
    pub(crate) fn shares(&self, share_blocks: u32) -> Shares {
        Shares::new(self.table.present(), self.order, share_blocks)
    }

    pub(crate) fn stream_options(&self) -> ReadStreamOptions {
        self.table.reading(self.options)
    }

    /// Tells other scans of the table how far this one is.
    #[inline]
    pub(crate) fn report(&self, scanned: Range<u32>) {
        if let Some(joined) = &self.joined {
            joined.report(scanned);
        }
    }
}

/// Refuses an order that begins past the end. A table without blocks has nothing that it could begin
/// with.
pub(crate) fn check_start(name: &str, files: &ForkFiles, order: ScanOrder) -> Result<()> {
    let blocks = files.blocks();
    match order.start {
        Some(BlockNumber(start)) if start > 0 && start >= blocks => {
            let last = match blocks.checked_sub(1) {
                Some(last) => format!("its last block is {last}"),
                None => "it has no blocks".into(),
            };
            let reason = format!("a scan of {name} cannot begin with block {start}: {last}");
            Err(Error::Usage(reason))
        }
        _ => Ok(()),
    }
}
