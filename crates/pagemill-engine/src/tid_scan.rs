//! The visible rows that a list of an index's TIDs leads to, block by block, for whoever chooses among them by some columns
//! before it looks at others.
//!
//! ```text
//! TIDs, ascending ─► the blocks of the next of them, read together ─► next_block ──► rows ──► row: the other columns
//! ```
//!
//! A block is read without its neighbors, as few are wanted.
//!
//! Invariants: of each HOT chain that a TID leads to the visible member is handed out, once; a TID that leads to no chain is
//! one without a row, as it is for the server; what is damaged is reported, and left out where that is the policy; each span
//! lies inside of its tuple.
//!
//! Source: `heap_hot_search_buffer` in `src/backend/access/heap/heapam.c`, `BitmapHeapNext` in
//! `src/backend/executor/nodeBitmapHeapscan.c`, PostgreSQL 14 to 17.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::ClusterLog;
use pagemill_cluster::hot_chain::found_member;
use pagemill_format::page::Page;
use pagemill_format::tuple::Span;
use pagemill_format::{BlockNumber, Tid};

use crate::damage::{DamageLog, damage_of};
use crate::error::Result;
use crate::fork_pages::{ForkPages, heap_pages};
use crate::page_scan::BlockLocation;
use crate::progress::{Progress, ScanCounts};
use crate::scan_plan::ScanRequest;
use crate::table::Table;
use crate::table_scan::{TupleBatch, TupleRow, WantedColumns};

/// Blocks of a table that are read together.
const ROUND_BLOCKS: usize = 128;

/// The columns of a scan in two steps, by their positions in `table.relation.columns`.
#[derive(Clone, Copy)]
pub struct StepColumns<'a> {
    /// What rows are chosen by.
    pub first: &'a [usize],
    /// What is wanted of the chosen rows.
    pub rest: &'a [usize],
}

/// A scan of the rows behind TIDs, by one thread.
pub struct TidScan {
    heap: Option<ForkPages>,
    log: ClusterLog,
    table: Arc<Table>,
    /// What is chosen by, and what else is wanted of the chosen rows; one walk finds both.
    first: WantedColumns,
    rest: WantedColumns,
    tids: Arc<[Tid]>,
    /// The TIDs that are left, and where those begin whose blocks were not read yet.
    left: Range<usize>,
    unread: usize,
    /// The rows of the block that the scan is at.
    block: BlockNumber,
    numbers: Vec<u16>,
    spans: Vec<Span>,
    progress: Progress,
}

impl TidScan {
    /// The rows of ascending TIDs that lie in a range of blocks.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn new(
        request: ScanRequest<'_>,
        columns: StepColumns<'_>,
        tids: &Arc<[Tid]>,
        blocks: &Range<u32>,
    ) -> Self {
        let ScanRequest { cluster, table, progress, .. } = request;
        let StepColumns { first, rest } = columns;
        // Without any yet, there may come many.
        let room = if tids.is_empty() { ROUND_BLOCKS } else { tids.len().min(ROUND_BLOCKS) };
        let heap = heap_pages(request, room);
        let all = [first, rest].concat();
        let start = tids.partition_point(|tid| tid.block.0 < blocks.start);
        let end = tids.partition_point(|tid| tid.block.0 < blocks.end);
        Self {
            heap,
            log: ClusterLog::new(cluster.clone()),
            table: table.clone(),
            first: WantedColumns::among(first, &all, table),
            rest: WantedColumns::among(rest, &all, table),
            tids: tids.clone(),
            left: start..end.max(start),
            unread: start,
            block: BlockNumber(0),
            numbers: Vec::new(),
            spans: Vec::new(),
            progress: progress.clone(),
        }
    }

    /// Goes on with other TIDs, ascending.
    pub fn go_on_with(&mut self, tids: Arc<[Tid]>) {
        self.left = 0..tids.len();
        self.unread = 0;
        self.tids = tids;
    }

    /// Goes on to the next block that has visible rows; false at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read, or the work was cancelled.
    pub fn next_block(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.numbers.clear();
        while self.numbers.is_empty() {
            self.progress.check()?;
            if self.left.is_empty() {
                return Ok(false);
            }
            if self.left.start >= self.unread {
                self.read_round();
            }
            self.look_up(damage)?;
        }
        Ok(true)
    }

    /// The rows of the block, with the columns to choose by.
    pub fn rows(&self) -> impl Iterator<Item = TupleRow<'_>> {
        self.batch(&self.first).into_iter().flat_map(|batch| batch.rows())
    }

    /// A row of the block by its place among [`rows`](Self::rows), with the other columns.
    ///
    /// # Panics
    /// When there are fewer rows.
    pub fn row(&self, at: usize) -> Option<TupleRow<'_>> {
        Some(self.batch(&self.rest)?.row(at))
    }

    fn batch<'s>(&'s self, columns: &'s WantedColumns) -> Option<TupleBatch<'s>> {
        let page = Page::new(self.heap.as_ref()?.held(self.block)?);
        let Self { block, table, numbers, spans, .. } = self;
        let batch = TupleBatch { block: *block, page, table, columns, numbers, spans };
        (!numbers.is_empty()).then_some(batch)
    }

    /// Reads the next blocks together.
    fn read_round(&mut self) {
        let Some(heap) = &mut self.heap else { return };
        let mut blocks: Vec<BlockNumber> = Vec::with_capacity(ROUND_BLOCKS);
        self.unread = self.left.end;
        for at in self.left.clone() {
            let block = self.tids[at].block;
            if blocks.last() == Some(&block) {
                continue;
            }
            if blocks.len() == ROUND_BLOCKS {
                self.unread = at;
                break;
            }
            blocks.push(block);
        }
        let past = heap.files().blocks();
        heap.read_alone(blocks.into_iter().filter(|block| block.0 < past));
    }

    /// Looks up the next TIDs that are on one block.
    fn look_up(&mut self, damage: &mut DamageLog) -> Result<()> {
        let Self { heap, log, first, tids, left, numbers, spans, .. } = self;
        let mut met = ScanCounts::default();
        let rest = tids.get(left.clone()).unwrap_or_default();
        let Some(block) = rest.first().map(|tid| tid.block) else { return Ok(()) };
        let count = rest.partition_point(|tid| tid.block == block);
        left.start += count;
        self.block = block;
        spans.clear();
        let Some(heap) = heap.as_mut().filter(|heap| block.0 < heap.files().blocks()) else {
            return Ok(());
        };
        if let Err(error) = heap.get(block) {
            return damage.report(damage_of(error)?);
        }
        let Some(bytes) = heap.held(block) else { return Ok(()) };
        let (page, location) = (Page::new(bytes), BlockLocation::new(heap.files(), block));
        for tid in rest.iter().take(count) {
            let (number, tuple) = match found_member(page, block, tid.line_pointer, log) {
                Ok(None) => {
                    met.tuples_dead += 1;
                    continue;
                }
                Ok(Some(member)) => member,
                Err((number, fault)) => {
                    damage.report(location.tuple_damage(number, fault)?)?;
                    continue;
                }
            };
            met.tuples_alive += 1;
            match first.walk.spans(&tuple.data(), spans) {
                Err(error) => damage.report(location.damage(number, error.to_string()))?,
                Ok(()) => numbers.push(number),
            }
        }
        self.progress.add_counts(met);
        Ok(())
    }
}
