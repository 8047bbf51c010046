//! The sequential scan: the pages of ranges of blocks, in the order of its plan, checked, and the visible
//! tuples on them.
//!
//! Damage is handled here for every operation alike: a block that cannot be read or fails its
//! checks, and a tuple whose line pointer, header or transaction status is unreadable, is reported
//! with its place and, where that is the policy, left out. A block that a running server has cut
//! off meanwhile is no damage but the end of the table.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use pagemill_cluster::heap::{self, TupleFault};
use pagemill_cluster::page_check::check_or_read_again;
use pagemill_cluster::{ClusterLog, Damage};
use pagemill_format::page::{LINE_POINTER_BYTES, PAGE_HEADER_BYTES, Page};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStream, Run};
use pagemill_sys::prefetch;

use crate::damage::{DamageLog, damage_of, read_damage};
use crate::error::Result;
use crate::scan_plan::ScanPlan;

/// How many pages ahead of its use the beginning of a page is asked for. Pages of a mapping come out of memory, and waiting
/// for them one by one took a third of a count. Of pages that are read through, for their checksums or their tuples, the
/// next one is asked for as a whole, piece by piece beside that work.
const PREFETCHED: usize = 4;
/// The most of it: the header and 250 line pointers, which pages of a table mostly have about as many of as their
/// neighbours.
const MOST_PREFETCHED_BYTES: usize = 1024;

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

/// A scan of a table or of shares of it, by one thread.
pub(crate) struct Scan<'a> {
    plan: &'a ScanPlan<'a>,
    log: ClusterLog,
    progress: &'a Progress,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(plan: &'a ScanPlan<'a>, progress: &'a Progress) -> Self {
        Self { plan, log: ClusterLog::new(plan.cluster.clone()), progress }
    }

    /// The visible tuples of ranges of blocks, counted.
    pub(crate) fn count(&mut self, ranges: &[Range<u32>], damage: &mut DamageLog) -> Result<u64> {
        let mut rows = 0;
        let reads_through = self.plan.cluster.verify_checksums();
        self.pages(ranges, reads_through, damage, |place, page, _, log, damage| {
            rows += heap::count_tuples(page, log, |number, fault| {
                damage.report(place.tuple_damage(number, fault)?)
            })?;
            Ok(())
        })?;
        Ok(rows)
    }

    /// Hands every visible tuple of ranges of blocks, which are in the order of the plan, to `visit`.
    pub(crate) fn tuples(
        &mut self,
        ranges: &[Range<u32>],
        damage: &mut DamageLog,
        mut visit: impl FnMut(Place<'_>, u16, HeapTuple<'_>, &mut DamageLog) -> Result<()>,
    ) -> Result<()> {
        let backward = self.plan.order().backward;
        self.pages(ranges, true, damage, |place, page, ahead, log, damage| {
            let each = |number, tuple: std::result::Result<_, TupleFault>| {
                ahead.ask(number);
                match tuple {
                    Ok(tuple) => visit(place, number, tuple, damage),
                    Err(fault) => damage.report(place.tuple_damage(number, fault)?),
                }
            };
            match backward {
                false => heap::visit_tuples(page, log, each),
                true => heap::visit_tuples_backward(page, log, each),
            }
        })
    }

    /// Hands every page to `visit`, with what of the next one is to be asked for. `reads_through`: all bytes of a page will
    /// be looked at, not only its line pointers.
    fn pages(
        &mut self,
        ranges: &[Range<u32>],
        reads_through: bool,
        damage: &mut DamageLog,
        mut visit: impl FnMut(
            Place<'_>,
            Page<'_>,
            Ahead<'_>,
            &mut ClusterLog,
            &mut DamageLog,
        ) -> Result<()>,
    ) -> Result<()> {
        let ScanPlan { cluster, table, .. } = *self.plan;
        let Some(files) = table.files() else { return Ok(()) };
        let order = self.plan.order();
        let blocks = ranges.iter().flat_map(|range| order.blocks(range.clone()));
        let mut stream = ReadStream::new(files, blocks, self.plan.stream_options());
        let mut end = NewEnd::default();
        while let Some(run) = stream.next_run() {
            let Run { first, pages, is_mapped } = match run {
                Ok(run) => run,
                Err(error) => {
                    if error.block().is_some_and(|block| end.is_before(block, self.plan, files)) {
                        continue;
                    }
                    damage.report(read_damage(error)?)?;
                    continue;
                }
            };
            for (at, (block, bytes)) in (first.0..).map(BlockNumber).zip(pages).enumerate() {
                let next = pages.get(at + 1).filter(|_| is_mapped && reads_through);
                if let (None, Some(soon)) = (next, pages.get(at + PREFETCHED)) {
                    prefetch(&soon[..front_bytes(bytes)]);
                }
                let place = Place { files, block };
                let mut again = None;
                match check_or_read_again(cluster, files, block, bytes, next, &mut again) {
                    Ok(bytes) => {
                        let page = Page::new(bytes);
                        // The check of a checksum asked for it already.
                        let next = next.filter(|_| !cluster.verify_checksums());
                        visit(place, page, Ahead::new(next, page), &mut self.log, damage)?;
                    }
                    Err(_) if end.is_before(block, self.plan, files) => {}
                    Err(error) => damage.report(damage_of(error)?)?,
                }
            }
            let count = pages.len() as u32;
            self.plan.report(first.0..first.0.saturating_add(count));
            self.progress.add_pages(count.into());
        }
        Ok(())
    }
}

/// A page to be asked for from memory piece by piece, beside the work on the tuples of the page before it: asked for all at
/// once it fills the processor's queue, and the work waits.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    next: &'a [u8],
    /// Bytes for each tuple.
    piece: usize,
}

impl<'a> Ahead<'a> {
    /// The page to ask for, if any, beside the tuples of `page`.
    fn new(next: Option<&'a BlockBytes>, page: Page<'_>) -> Self {
        let tuples = usize::from(page.line_pointer_count()).max(1);
        Self { next: next.map_or(&[], |next| next), piece: BLOCK_SIZE.div_ceil(tuples) }
    }

    /// Asks for the piece beside the tuple of this line pointer; they count from 1.
    fn ask(self, number: u16) {
        let start = usize::from(number).saturating_sub(1) * self.piece;
        if let Some(rest) = self.next.get(start..) {
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
    fn is_before(&mut self, block: BlockNumber, plan: &ScanPlan<'_>, files: &ForkFiles) -> bool {
        let known = |end: Option<u32>| end.is_some_and(|end| block.0 >= end);
        if !plan.cluster.is_live() || known(self.0) {
            return plan.cluster.is_live();
        }
        let base = &plan.table.relation.base;
        if let Ok(Some(now)) = ForkFiles::open(plan.cluster.storage(), base, files.fork()) {
            self.0 = Some(now.blocks());
            return known(self.0);
        }
        // The files cannot be looked at, or are gone: that is not the end of a table.
        false
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
