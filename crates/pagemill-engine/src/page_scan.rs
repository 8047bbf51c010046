//! The pages of a table, pulled one by one in the order of a scan, each checked before it is handed out. It is the one
//! source of pages for every operation that reads a table in the order of its file.
//!
//! Damage is handled here for every operation alike: a block that cannot be read or fails its checks is reported with its
//! place and, where that is the policy, left out. Under `--live` a page that fails its checks is read again first, and a
//! block that a running server has cut off meanwhile is no damage but the end of the table.
//!
//! Invariants: a page that is handed out passed its checks since it was read; every block of the plan is handed out,
//! reported or past the new end, exactly once; a cancelled scan hands out nothing more.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::heap::TupleFault;
use pagemill_cluster::page_check::PageCheck;
use pagemill_cluster::{Cluster, Damage};
use pagemill_format::page::{LINE_POINTER_BYTES, PAGE_HEADER_BYTES, Page};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;
use pagemill_stream::ReadStream;
use pagemill_stream::scan_order::DirectedBlocks;
use pagemill_sys::prefetch;

use crate::damage::{DamageLog, damage_of, read_damage};
use crate::error::Result;
use crate::progress::{Progress, ScanCounts};
use crate::scan_plan::ScanPlan;
use crate::table::Table;

/// How many pages ahead of its use the beginning of a page is asked for. Pages of a mapping come out of memory, and waiting
/// for them one by one took a third of a count. Of pages that are read through, for their checksums or their tuples, the
/// next one is asked for as a whole, piece by piece beside that work.
const PREFETCHED: usize = 4;
/// The most of it: the header and 250 line pointers, which pages of a table mostly have about as many of as their
/// neighbors.
const MOST_PREFETCHED_BYTES: usize = 1024;

/// What will be looked at of each page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageUse {
    /// The header and the line pointers.
    LinePointers,
    /// The tuples.
    Tuples,
}

/// The pages of ranges of blocks of one table, for one thread.
pub(crate) struct PageScan {
    cluster: Cluster,
    table: Arc<Table>,
    files: Arc<ForkFiles>,
    stream: ReadStream<Arc<ForkFiles>, DirectedBlocks>,
    /// True when every byte of a page will be read: for its checksum, or by its user.
    reads_through: bool,
    /// The next page of the stream's current run, and how many it has.
    at: usize,
    count: usize,
    /// What was read again in place of the page handed out last.
    again: Option<Box<BlockBytes>>,
    end: NewEnd,
    progress: Progress,
    /// What was met since the progress was told.
    met: ScanCounts,
}

/// A scan that stops early tells what it met, too.
impl Drop for PageScan {
    fn drop(&mut self) {
        self.leave_run();
    }
}

impl PageScan {
    /// The pages of these ranges, which are in the order of the plan. `None` for a table without files.
    pub(crate) fn new(
        plan: &ScanPlan,
        ranges: impl IntoIterator<Item = Range<u32>>,
        page_use: PageUse,
        progress: &Progress,
    ) -> Option<Self> {
        let files = plan.table().shared_files()?;
        let cluster = plan.cluster().clone();
        let blocks = plan.order().blocks_of(ranges);
        Some(Self {
            reads_through: page_use == PageUse::Tuples || cluster.verify_checksums(),
            cluster,
            stream: ReadStream::new(files.clone(), blocks, plan.stream_options()),
            table: plan.table().clone(),
            files,
            at: 0,
            count: 0,
            again: None,
            end: NewEnd::default(),
            progress: progress.clone(),
            met: ScanCounts::default(),
        })
    }

    /// The next page that is sound; `None` at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when the scan was cancelled.
    #[inline]
    pub(crate) fn next_page(&mut self, damage: &mut DamageLog) -> Result<Option<SoundPage<'_>>> {
        loop {
            if self.at == self.count && !self.next_run(damage)? {
                return Ok(None);
            }
            self.progress.check()?;
            if self.check(damage)? {
                return Ok(self.current());
            }
        }
    }

    /// Makes sure that there are pages left of the current run, going on to the next one if need be; false at the end.
    ///
    /// # Errors
    /// As [`next_page`](Self::next_page).
    pub(crate) fn enter_run(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.again = None;
        Ok(self.at < self.count || self.next_run(damage)?)
    }

    /// The next page that is sound of the run that was entered, with its place there; `None` at its end. A page that was read
    /// again ends it early: it lies elsewhere, and for one there is room.
    ///
    /// # Errors
    /// As [`next_page`](Self::next_page).
    #[inline]
    pub(crate) fn next_in_run(
        &mut self,
        damage: &mut DamageLog,
    ) -> Result<Option<(usize, SoundPage<'_>)>> {
        while self.at < self.count && self.again.is_none() {
            self.progress.check()?;
            if self.check(damage)? {
                let at = self.at - 1;
                return Ok(self.current().map(|page| (at, page)));
            }
        }
        Ok(None)
    }

    /// The page at this place in the current run, one of those that were handed out since it was
    /// entered.
    #[inline]
    pub(crate) fn page_of_run(&self, at: usize) -> Option<(BlockLocation<'_>, Page<'_>)> {
        let run = self.stream.current_run()?;
        let again = self.again.as_deref().filter(|_| at + 1 == self.at);
        let page = Page::new(again.unwrap_or(run.pages.get(at)?));
        Some((BlockLocation::new(&self.files, BlockNumber(run.first.0 + at as u32)), page))
    }

    /// Takes note of the tuples of the page that was handed out last: so many are visible, and so many are not.
    #[inline]
    pub(crate) fn note_tuples(&mut self, alive: u64, dead: u64) {
        self.met.tuples_alive += alive;
        self.met.tuples_dead += dead;
    }

    /// Tells the progress what was met.
    fn leave_run(&mut self) {
        if self.stream.current_run().is_some_and(|run| run.is_mapped) {
            self.met.blocks_mapped += self.at as u64;
        } else {
            self.met.blocks_read += self.count as u64;
        }
        self.progress.add_counts(std::mem::take(&mut self.met));
        (self.at, self.count) = (0, 0);
    }

    /// Goes on to the next run of pages; false at the end.
    fn next_run(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.progress.add_pages(self.count as u64);
        self.leave_run();
        loop {
            match self.stream.next_run() {
                None => return Ok(false),
                Some(Ok(run)) => {
                    self.count = run.pages.len();
                    return Ok(true);
                }
                Some(Err(error)) => {
                    let Self { end, cluster, table, .. } = self;
                    if error.block().is_some_and(|block| end.is_before(block, cluster, table)) {
                        continue;
                    }
                    damage.report(read_damage(error)?)?;
                }
            }
        }
    }

    /// Checks the next page of the run, and passes over it if it is not sound.
    #[inline]
    fn check(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.again = None;
        let Some(run) = self.stream.current_run() else { return Ok(false) };
        let at = self.at;
        self.at += 1;
        let (block, bytes) = (BlockNumber(run.first.0 + at as u32), &run.pages[at]);
        let next = run.pages.get(at + 1).filter(|_| run.is_mapped && self.reads_through);
        if let (None, Some(soon)) = (next, run.pages.get(at + PREFETCHED)) {
            prefetch(&soon[..front_bytes(bytes)]);
        }
        let Self { cluster, table, files, again, end, .. } = self;
        match (PageCheck { cluster, files }).check_or_read_again(block, bytes, next, again) {
            Ok(_) => Ok(true),
            Err(_) if end.is_before(block, cluster, table) => Ok(false),
            Err(error) => damage.report(damage_of(error)?).map(|()| false),
        }
    }

    /// The page that was handed out last.
    #[inline]
    pub(crate) fn current(&self) -> Option<SoundPage<'_>> {
        let run = self.stream.current_run()?;
        let at = self.at.checked_sub(1)?;
        let page = Page::new(self.again.as_deref().unwrap_or(&run.pages[at]));
        // The check of a checksum asked for the next page already.
        let asked = !run.is_mapped || !self.reads_through || self.cluster.verify_checksums();
        let next = run.pages.get(at + 1).filter(|_| !asked);
        let location = BlockLocation::new(&self.files, BlockNumber(run.first.0 + at as u32));
        Some(SoundPage { location, page, ahead: NextPage::new(next, page) })
    }
}

/// A page that passed its checks.
#[derive(Clone, Copy)]
pub(crate) struct SoundPage<'s> {
    pub(crate) location: BlockLocation<'s>,
    pub(crate) page: Page<'s>,
    /// The page that will be next, to be asked for beside the tuples of this one.
    pub(crate) ahead: NextPage<'s>,
}

impl SoundPage<'_> {
    /// How many of its tuples are dead, where so many were visible or damaged.
    #[inline]
    pub(crate) fn dead_tuples(self, others: usize) -> u64 {
        match self.page.is_all_visible() {
            true => 0,
            false => {
                let normal = self.page.count_normal().unwrap_or(0);
                u64::from(normal).saturating_sub(others as u64)
            }
        }
    }
}

/// A page to be asked for from memory piece by piece, beside the work on the tuples of the page before it: asked for all at
/// once it fills the processor's queue, and the work waits.
#[derive(Clone, Copy)]
pub(crate) struct NextPage<'s> {
    bytes: &'s [u8],
    /// Bytes for each tuple.
    piece: usize,
}

impl<'s> NextPage<'s> {
    /// The page to ask for, if any, beside the tuples of `page`.
    fn new(next: Option<&'s BlockBytes>, page: Page<'_>) -> Self {
        let Some(bytes) = next else { return Self { bytes: &[], piece: 0 } };
        let tuples = usize::from(page.line_pointer_count()).max(1);
        Self { bytes, piece: BLOCK_SIZE.div_ceil(tuples) }
    }

    /// Asks for the piece beside the tuple of this line pointer; they count from 1.
    #[inline]
    pub(crate) fn ask(self, number: u16) {
        let start = usize::from(number).saturating_sub(1) * self.piece;
        if let Some(rest) = self.bytes.get(start..) {
            prefetch(&rest[..self.piece.min(rest.len())]);
        }
    }
}

/// How long the front of a page is, its header and line pointers.
fn front_bytes(bytes: &BlockBytes) -> usize {
    let pointers = usize::from(Page::new(bytes).line_pointer_count());
    (PAGE_HEADER_BYTES + pointers * LINE_POINTER_BYTES).min(MOST_PREFETCHED_BYTES)
}

/// Where a running server cut the table off after its files were opened, as VACUUM does with empty
/// blocks at the end. From there on nothing is part of the table any more.
#[derive(Default)]
struct NewEnd(Option<u32>);

impl NewEnd {
    /// True when the block was cut off.
    #[cold]
    fn is_before(&mut self, block: BlockNumber, cluster: &Cluster, table: &Table) -> bool {
        let known = |end: Option<u32>| end.is_some_and(|end| block.0 >= end);
        if !cluster.is_live() || known(self.0) {
            return cluster.is_live();
        }
        let Some(files) = table.files() else { return false };
        let now = ForkFiles::open(cluster.storage(), &table.relation.base, files.fork());
        if let Ok(Some(now)) = now {
            self.0 = Some(now.blocks());
            return known(self.0);
        }
        // The files cannot be looked at, or are gone: that is not the end of a table.
        false
    }
}

/// A block of a fork, for messages about what lies there.
#[derive(Clone, Copy)]
pub(crate) struct BlockLocation<'a> {
    files: &'a ForkFiles,
    pub(crate) block: BlockNumber,
}

impl<'a> BlockLocation<'a> {
    /// A block of these files.
    pub(crate) fn new(files: &'a ForkFiles, block: BlockNumber) -> Self {
        Self { files, block }
    }

    /// Damage to a tuple on this block.
    pub(crate) fn damage(self, line_pointer: u16, what: impl Into<String>) -> Damage {
        self.page_damage(what).at_line_pointer(line_pointer)
    }

    /// Damage to the block.
    pub(crate) fn page_damage(self, what: impl Into<String>) -> Damage {
        let (path, _) = self.files.locate(self.block);
        Damage::in_block(path, self.files.fork(), self.block, what)
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
