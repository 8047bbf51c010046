//! The sequential scan: the pages of a range of blocks, checked, and the visible tuples on them.
//!
//! Damage is handled here for every operation alike: a block that cannot be read or fails its
//! checks, and a tuple whose line pointer, header or transaction status is unreadable, is reported
//! with its place and, where that is the policy, left out. A block that a running server has cut
//! off meanwhile is no damage but the end of the table.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use pagemill_cluster::heap::{self, TupleFault};
use pagemill_cluster::page_check::check_or_read_again;
use pagemill_cluster::{Cluster, ClusterLog, Damage};
use pagemill_format::BlockNumber;
use pagemill_format::page::Page;
use pagemill_format::tuple::HeapTuple;
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStream, ReadStreamOptions};

use crate::damage::{DamageLog, damage_of, read_damage};
use crate::error::Result;
use crate::table::Table;

/// What can be watched while an operation runs.
#[derive(Debug, Default)]
pub struct Progress {
    pages: AtomicU64,
}

impl Progress {
    /// Pages scanned so far.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn add_pages(&self, pages: u64) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
    }
}

/// A scan of one range of a table, by one thread.
pub(crate) struct Scan<'a> {
    cluster: &'a Cluster,
    table: &'a Table,
    log: ClusterLog,
    io_combine_limit: u32,
    progress: &'a Progress,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        table: &'a Table,
        io_combine_limit: u32,
        progress: &'a Progress,
    ) -> Self {
        let log = ClusterLog::new(cluster.clone());
        Self { cluster, table, log, io_combine_limit, progress }
    }

    /// The visible tuples of a range of blocks, counted.
    pub(crate) fn count(&mut self, range: Range<u32>, damage: &mut DamageLog) -> Result<u64> {
        let mut rows = 0;
        self.pages(range, damage, |place, page, log, damage| {
            rows += heap::count_tuples(page, log, |number, fault| {
                damage.report(place.tuple_damage(number, fault)?)
            })?;
            Ok(())
        })?;
        Ok(rows)
    }

    /// Hands every visible tuple of a range of blocks to `visit`.
    pub(crate) fn tuples(
        &mut self,
        range: Range<u32>,
        damage: &mut DamageLog,
        mut visit: impl FnMut(Place<'_>, u16, HeapTuple<'_>, &mut DamageLog) -> Result<()>,
    ) -> Result<()> {
        self.pages(range, damage, |place, page, log, damage| {
            heap::visit_tuples(page, log, |number, tuple| match tuple {
                Ok(tuple) => visit(place, number, tuple, damage),
                Err(fault) => damage.report(place.tuple_damage(number, fault)?),
            })
        })
    }

    fn pages(
        &mut self,
        range: Range<u32>,
        damage: &mut DamageLog,
        mut visit: impl FnMut(Place<'_>, Page<'_>, &mut ClusterLog, &mut DamageLog) -> Result<()>,
    ) -> Result<()> {
        let Some(files) = self.table.files() else { return Ok(()) };
        let options = ReadStreamOptions {
            io_combine_limit: self.io_combine_limit,
            ..ReadStreamOptions::default()
        };
        let mut stream = ReadStream::new(files, self.table.present(range), options);
        while let Some(run) = stream.next_run() {
            let (first, pages) = match run {
                Ok(run) => run,
                Err(error) => {
                    if error.block().is_some_and(|block| self.is_past_new_end(files, block)) {
                        return Ok(());
                    }
                    damage.report(read_damage(error)?)?;
                    continue;
                }
            };
            for (block, bytes) in (first.0..).map(BlockNumber).zip(pages) {
                let place = Place { files, block };
                let mut again = None;
                match check_or_read_again(self.cluster, files, block, bytes, &mut again) {
                    Ok(bytes) => visit(place, Page::new(bytes), &mut self.log, damage)?,
                    Err(_) if self.is_past_new_end(files, block) => return Ok(()),
                    Err(error) => damage.report(damage_of(error)?)?,
                }
            }
            self.progress.add_pages(pages.len() as u64);
        }
        Ok(())
    }

    /// True when a running server cut the block off after the files were opened, as VACUUM does
    /// with empty blocks at the end of a table. Then it and all after it are no part of the table
    /// any more.
    #[cold]
    fn is_past_new_end(&self, files: &ForkFiles, block: BlockNumber) -> bool {
        if !self.cluster.is_live() {
            return false;
        }
        let base = &self.table.relation.base;
        match ForkFiles::open(self.cluster.storage(), base, files.fork()) {
            Ok(Some(now)) => block.0 >= now.blocks(),
            // The files cannot be looked at, or are gone: that is not the end of a table.
            Ok(None) | Err(_) => false,
        }
    }
}

/// A block of a table.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    files: &'a ForkFiles,
    block: BlockNumber,
}

impl<'a> Place<'a> {
    /// A block of these files.
    pub(crate) fn new(files: &'a ForkFiles, block: BlockNumber) -> Self {
        Self { files, block }
    }

    /// Damage to a tuple on this block.
    pub(crate) fn damage(self, line_pointer: u16, what: impl Into<String>) -> Damage {
        let (path, _) = self.files.locate(self.block);
        Damage::in_block(path, self.files.fork(), self.block, what).at_line_pointer(line_pointer)
    }

    /// Damage to a tuple, or to the log that should tell its fate.
    #[cold]
    pub(crate) fn tuple_damage(self, number: u16, fault: TupleFault) -> Result<Damage> {
        let what = match fault {
            TupleFault::Bytes(error) => error.to_string(),
            TupleFault::Status(error) => damage_of(error)?.to_string(),
        };
        Ok(self.damage(number, what))
    }
}
