//! Pages of one fork kept in memory while a scan needs them in another order than the file's.
//!
//! A page is checked when it is first looked at, not when it is read: what was only read along with
//! its neighbours and is never asked for is nobody's damage.
//!
//! Invariant: a page that was handed out passed its checks since it was last read.

use std::sync::Arc;

use pagemill_cluster::btree_scan::TreePages;
use pagemill_cluster::page_check::{check_page, read_again};
use pagemill_cluster::{Cluster, Damage, Error as ClusterError};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;
use pagemill_stream::ReadStreamOptions;
use pagemill_sys::AlignedBuffer;

use crate::fork_slots::{Full, SlotState, Slots};
use crate::progress::{Progress, ScanCounts};
use crate::scan_plan::ScanRequest;

/// Pages of an index whose leaves lie one after the other (4 MiB): several times what is read ahead.
const NEAR_PAGES: usize = 512;
/// So few pages are read by a call each: a stream, which maps what is cached, takes longer to begin than they do.
const FEW_READS: usize = 2;
/// Leaves lie scattered when they are spread over more than this many times their own number.
const SCATTERED: usize = 3;

/// Which fork's pages are read, and how.
#[derive(Clone, Copy)]
pub(crate) struct ForkReading<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) files: &'a Arc<ForkFiles>,
    pub(crate) options: ReadStreamOptions,
    pub(crate) progress: &'a Progress,
}

/// The pages of one fork, for one thread.
pub(crate) struct ForkPages {
    cluster: Cluster,
    files: Arc<ForkFiles>,
    slots: Slots,
    /// A page for each slot; memory is taken when it is first written.
    pages: AlignedBuffer,
    checked: Vec<bool>,
    reading: ReadStreamOptions,
    progress: Progress,
}

impl ForkPages {
    /// Room for at most `capacity` pages.
    pub(crate) fn new(reading: ForkReading<'_>, capacity: usize) -> Self {
        let ForkReading { cluster, files, options: reading, progress } = reading;
        let slots = Slots::new(files.blocks(), capacity);
        let pages = AlignedBuffer::zeroed(slots.count() * BLOCK_SIZE);
        let checked = vec![false; slots.count()];
        let (cluster, files, progress) = (cluster.clone(), files.clone(), progress.clone());
        Self { cluster, files, slots, pages, checked, reading, progress }
    }

    /// The fork.
    pub(crate) fn files(&self) -> &ForkFiles {
        &self.files
    }

    /// Pages asked for and found here, and pages read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.slots.counts()
    }

    /// Begins a round; see [`Slots`].
    pub(crate) fn begin_round(&mut self) {
        self.slots.begin_round();
    }

    /// Wants a page in this round.
    ///
    /// # Errors
    /// When there is no room left in this round.
    #[inline]
    pub(crate) fn want(&mut self, block: BlockNumber) -> Result<(), Full> {
        self.slots.want(block)
    }

    /// Reads what is wanted, and the neighbours that are worth it.
    pub(crate) fn read_wanted(&mut self, worth: impl FnMut(BlockNumber) -> bool) {
        let Self { files, slots, pages, checked, reading, progress, .. } = self;
        let before = slots.counts().1;
        slots.read_wanted(files, *reading, worth, |slot, _, bytes| {
            pages.as_chunks_mut().0[slot] = *bytes;
            checked[slot] = false;
        });
        let blocks_read = slots.counts().1 - before;
        progress.add_pages(blocks_read);
        progress.add_counts(ScanCounts { blocks_read, ..ScanCounts::default() });
    }

    /// Reads these pages, without neighbours, in a round of their own; what has no room is read when it is asked for.
    pub(crate) fn read_alone(&mut self, blocks: impl IntoIterator<Item = BlockNumber>) {
        self.begin_round();
        for block in blocks {
            if self.want(block).is_err() {
                break;
            }
        }
        match self.slots.wanted() {
            0 => {}
            1..=FEW_READS => self.read_each(),
            _ => self.read_wanted(|_| false),
        }
    }

    /// Reads what is wanted by a call for each page.
    fn read_each(&mut self) {
        let Self { files, slots, pages, checked, progress, .. } = self;
        let before = slots.counts().1;
        slots.read_each(|slot, block| {
            checked[slot] = false;
            files.read_block(block, &mut pages.as_chunks_mut().0[slot]).is_ok()
        });
        let blocks_read = slots.counts().1 - before;
        progress.add_pages(blocks_read);
        progress.add_counts(ScanCounts { blocks_read, ..ScanCounts::default() });
    }

    /// Whoever uses the pages from now on, with what it read and is told of.
    pub(crate) fn set_progress(&mut self, progress: &Progress) {
        self.progress = progress.clone();
    }

    /// A page, read now if it is not here.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    #[inline]
    pub(crate) fn get(&mut self, block: BlockNumber) -> Result<&BlockBytes, ClusterError> {
        let slot = match self.slots.find(block) {
            Some((slot, SlotState::Read)) => slot,
            _ => self.read_one(block)?,
        };
        if !self.checked[slot] {
            self.check(slot, block)?;
        }
        Ok(&self.pages.as_chunks().0[slot])
    }

    /// A page that was got in this round, and nothing else.
    #[inline]
    pub(crate) fn held(&self, block: BlockNumber) -> Option<&BlockBytes> {
        let (slot, _) = self.slots.find(block)?;
        self.checked.get(slot).filter(|checked| **checked)?;
        self.pages.as_chunks().0.get(slot)
    }

    /// True when [`ForkPages::get`] need not read.
    pub(crate) fn holds(&self, block: BlockNumber) -> bool {
        self.slots.find(block).is_some_and(|(_, state)| state == SlotState::Read)
    }

    #[cold]
    fn read_one(&mut self, block: BlockNumber) -> Result<usize, ClusterError> {
        if self.slots.find(block).is_none_or(|(_, state)| state == SlotState::Empty) {
            self.begin_round();
            let _ = self.want(block);
            self.read_wanted(|_| true);
        }
        match self.slots.find(block) {
            Some((slot, SlotState::Read)) => Ok(slot),
            // Read on its own it tells why it cannot be read.
            found => {
                let mut page = Box::new([0; BLOCK_SIZE]);
                self.files.read_block(block, &mut page)?;
                let (slot, _) = found.expect("a round that begins has room"); // infallible: it was wanted first
                self.pages.as_chunks_mut().0[slot] = *page;
                self.checked[slot] = false;
                Ok(slot)
            }
        }
    }

    #[cold]
    fn check(&mut self, slot: usize, block: BlockNumber) -> Result<(), ClusterError> {
        let page = &mut self.pages.as_chunks_mut().0[slot];
        match check_page(&self.cluster, &self.files, block, page) {
            Err(_) if self.cluster.is_live() => {
                read_again(&self.cluster, &self.files, block, page)?;
            }
            checked => checked?,
        }
        self.checked[slot] = true;
        Ok(())
    }
}

/// The pages of a table's main fork; `None` when it has no files.
pub(crate) fn heap_pages(request: ScanRequest<'_>, capacity: usize) -> Option<ForkPages> {
    let ScanRequest { cluster, table, options, progress } = request;
    let files = table.shared_files()?;
    let reading = ForkReading { cluster, files: &files, options: table.reading(options), progress };
    Some(ForkPages::new(reading, capacity))
}

/// The pages of an index. The leaves of an index that was built in one go lie nearly one after the
/// other: of such, a few at a time are kept. Once they turn out to lie scattered, and the whole
/// index has room, whole groups of blocks are read and kept, because all of them will be wanted.
pub(crate) struct IndexPages {
    near: ForkPages,
    /// What it takes to make `whole`, if there is room for it.
    capacity: Option<usize>,
    whole: Option<Box<ForkPages>>,
}

impl IndexPages {
    /// Pages of an index, for which there is room for `capacity` of them.
    pub(crate) fn new(reading: ForkReading<'_>, capacity: usize) -> Self {
        let near = ForkPages::new(reading, NEAR_PAGES);
        let capacity = Some(capacity).filter(|pages| *pages >= reading.files.blocks() as usize);
        Self { near, capacity, whole: None }
    }

    /// The index's files.
    pub(crate) fn files(&self) -> &ForkFiles {
        &self.near.files
    }

    /// Pages asked for and found here, and pages read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let ((hits, read), whole) = (self.near.counts(), self.whole.as_ref());
        let (more_hits, more_read) = whole.map_or((0, 0), |pages| pages.counts());
        (hits + more_hits, read + more_read)
    }

    fn store_for(&mut self, blocks: &[BlockNumber]) -> &mut ForkPages {
        let bounds = blocks.iter().min().zip(blocks.iter().max());
        let span = bounds.map_or(0, |(first, last)| (last.0 - first.0) as usize);
        let near = &self.near;
        let make = |capacity| {
            let ForkPages { cluster, files, reading, progress, .. } = near;
            let reading = ForkReading { cluster, files, options: *reading, progress };
            Box::new(ForkPages::new(reading, capacity))
        };
        if let Some(capacity) = self.capacity.take_if(|_| span > SCATTERED * blocks.len()) {
            self.whole = Some(make(capacity));
        }
        self.whole.as_deref_mut().unwrap_or(&mut self.near)
    }
}

impl TreePages for IndexPages {
    fn page(&mut self, block: BlockNumber) -> Result<&BlockBytes, ClusterError> {
        match &mut self.whole {
            Some(whole) if !self.near.holds(block) => whole.get(block),
            _ => self.near.get(block),
        }
    }

    fn holds(&self, block: BlockNumber) -> bool {
        self.near.holds(block) || self.whole.as_ref().is_some_and(|whole| whole.holds(block))
    }

    fn will_want(&mut self, blocks: &[BlockNumber]) {
        let past = self.blocks();
        let blocks: Vec<_> = blocks.iter().copied().filter(|block| block.0 < past).collect();
        let store = self.store_for(&blocks);
        store.begin_round();
        for block in blocks {
            if store.want(block).is_err() {
                break;
            }
        }
        store.read_wanted(|_| true);
    }

    fn blocks(&self) -> u32 {
        self.near.files.blocks()
    }

    fn damage(&self, block: BlockNumber, what: String) -> ClusterError {
        let files = &self.near.files;
        Damage::in_block(files.locate(block).0, files.fork(), block, what).into()
    }
}
