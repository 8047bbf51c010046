//! The visible rows that a list of an index's TIDs leads to, round by round, for whoever chooses among them by some columns
//! before it looks at others.
//!
//! ```text
//! TIDs, ascending ─► the blocks of the next of them, read together ─► next_round ──► rows ──► row: the other columns
//! ```
//!
//! A block is read without its neighbors, as few are wanted. The rows of a round are handed out together: a block has one or
//! two of them, and a choice works on whole columns.
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
use pagemill_format::tuple::{HeapTuple, Span};
use pagemill_format::{BlockNumber, Tid};

use crate::damage::{DamageLog, damage_of};
use crate::error::Result;
use crate::fork_pages::{ForkPages, heap_pages};
use crate::page_scan::BlockLocation;
use crate::progress::{Progress, ScanCounts};
use crate::scan_plan::ScanRequest;
use crate::table::Table;
use crate::table_scan::{TupleRow, WantedColumns};

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
    /// The TIDs that are left.
    left: Range<usize>,
    /// The rows of the round.
    places: Vec<Place>,
    spans: Vec<Span>,
    progress: Progress,
}

/// A row of the round: its block, its line pointer, and where its attributes lie on the page.
#[derive(Clone, Copy)]
struct Place {
    tid: Tid,
    start: u16,
    end: u16,
}

impl Place {
    fn new(page: Page<'_>, tid: Tid, tuple: HeapTuple<'_>) -> Self {
        let line_pointer = page.line_pointer(tid.line_pointer).expect("a tuple has a line pointer"); // infallible: it led there
        let item = line_pointer.offset();
        let (start, end) = (item + tuple.hoff(), item + line_pointer.len());
        Self { tid, start: start as u16, end: end as u16 }
    }
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
            places: Vec::new(),
            spans: Vec::new(),
            progress: progress.clone(),
        }
    }

    /// Goes on with other TIDs, ascending.
    pub fn go_on_with(&mut self, tids: Arc<[Tid]>) {
        self.left = 0..tids.len();
        self.tids = tids;
    }

    /// Goes on to the next blocks that have visible rows; false at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read, or the work was cancelled.
    pub fn next_round(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.places.clear();
        self.spans.clear();
        while self.places.is_empty() {
            self.progress.check()?;
            if self.left.is_empty() {
                return Ok(false);
            }
            let end = self.read_round();
            while self.left.start < end && self.look_up(damage)? {}
        }
        Ok(true)
    }

    /// The rows of the round, with the columns to choose by.
    pub fn rows(&self) -> impl Iterator<Item = TupleRow<'_>> {
        let mut held: Option<Page<'_>> = None;
        let mut at: Option<BlockNumber> = None;
        self.places.iter().enumerate().map(move |(number, place)| {
            let block = place.tid.block;
            let page = match held.filter(|_| at == Some(block)) {
                Some(page) => page,
                None => *held.insert(self.page(block)),
            };
            at = Some(block);
            self.row_of(number, page, &self.first)
        })
    }

    /// A row of the round by its place among [`rows`](Self::rows), with the other columns.
    ///
    /// # Panics
    /// When there are fewer rows.
    pub fn row(&self, at: usize) -> TupleRow<'_> {
        self.row_of(at, self.page(self.places[at].tid.block), &self.rest)
    }

    fn row_of<'s>(&'s self, at: usize, page: Page<'s>, columns: &'s WantedColumns) -> TupleRow<'s> {
        let Place { tid, start, end } = self.places[at];
        let data = &page.bytes()[usize::from(start)..usize::from(end)];
        let width = columns.width();
        let spans = &self.spans[at * width..(at + 1) * width];
        TupleRow { tid, page, data, table: &self.table, columns, spans }
    }

    fn page(&self, block: BlockNumber) -> Page<'_> {
        let held = self.heap.as_ref().and_then(|heap| heap.held(block));
        Page::new(held.expect("the pages of a round are held")) // infallible: none gives way to another of its round
    }

    /// Reads the blocks of the next TIDs together; where the TIDs of others begin.
    fn read_round(&mut self) -> usize {
        let Some(heap) = &mut self.heap else {
            self.left.start = self.left.end;
            return self.left.end;
        };
        let mut blocks: Vec<BlockNumber> = Vec::with_capacity(ROUND_BLOCKS);
        let mut end = self.left.end;
        for at in self.left.clone() {
            let block = self.tids[at].block;
            if blocks.last() == Some(&block) {
                continue;
            }
            if blocks.len() == ROUND_BLOCKS {
                end = at;
                break;
            }
            blocks.push(block);
        }
        let past = heap.files().blocks();
        heap.read_alone(blocks.into_iter().filter(|block| block.0 < past));
        end
    }

    /// Looks up the next TIDs that are on one block; false where the round ends with them, or before them.
    fn look_up(&mut self, damage: &mut DamageLog) -> Result<bool> {
        let rest = self.tids.get(self.left.clone()).unwrap_or_default();
        let Some(block) = rest.first().map(|tid| tid.block) else { return Ok(false) };
        let count = rest.partition_point(|tid| tid.block == block);
        let Some(heap) = self.heap.as_mut().filter(|heap| block.0 < heap.files().blocks()) else {
            self.left.start += count;
            return Ok(true);
        };
        // A block that could not be read with the others is read alone, and those may give way to it.
        let is_alone = !heap.holds(block);
        if is_alone && !self.places.is_empty() {
            return Ok(false);
        }
        let tids = self.left.start..self.left.start + count;
        self.left.start = tids.end;
        if let Err(error) = heap.get(block) {
            damage.report(damage_of(error)?)?;
            return Ok(!is_alone);
        }
        self.find(block, tids, damage)?;
        Ok(!is_alone)
    }

    /// Finds the rows of TIDs on a page that is held.
    fn find(
        &mut self,
        block: BlockNumber,
        tids: Range<usize>,
        damage: &mut DamageLog,
    ) -> Result<()> {
        let Self { heap, log, first, places, spans, .. } = self;
        let Some(heap) = heap else { return Ok(()) };
        let Some(bytes) = heap.held(block) else { return Ok(()) };
        let (page, location) = (Page::new(bytes), BlockLocation::new(heap.files(), block));
        let mut met = ScanCounts::default();
        for tid in &self.tids[tids] {
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
                Ok(()) => {
                    let tid = Tid { block, line_pointer: number };
                    places.push(Place::new(page, tid, tuple));
                }
            }
        }
        self.progress.add_counts(met);
        Ok(())
    }
}
