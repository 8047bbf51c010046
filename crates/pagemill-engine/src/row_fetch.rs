//! Rows of a table by their addresses: those that a list of TIDs names, and those that an index leads to, in its order.
//!
//! ```text
//! RowFetch   ── fetch(tid) ──► the tuple at that very place, if it is visible
//! OrderedScan ── next_row ──► the visible tuple of the HOT chain that the next entry of the index leads to
//! ```
//!
//! Pages are kept while there is room ([`ForkPages`]), and each is checked when it is first looked at. Both own what they
//! need and are pulled.
//!
//! Invariants: a row that is handed out is visible; damage to a block is reported once; a row stays until the next is
//! asked for.

use std::collections::HashSet;
use std::sync::Arc;

use pagemill_cluster::heap::TupleFault;
use pagemill_cluster::hot_chain::visible_member;
use pagemill_cluster::visibility::is_visible;
use pagemill_cluster::{AllVisible, ClusterLog, Database};
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{HeapTuple, Span};
use pagemill_format::{BLOCK_SIZE, BlockNumber, Tid};

use crate::damage::{DamageLog, damage_of};
use crate::error::Result;
use crate::fork_pages::{ForkPages, ForkReading, IndexPages, heap_pages};
use crate::index_order::IndexOrder;
use crate::index_scan::{IndexOnly, IndexScan, KnownHeap};
use crate::page_scan::BlockLocation;
use crate::progress::Progress;
use crate::scan_plan::ScanRequest;
use crate::table::Table;
use crate::table_scan::{TupleRow, WantedColumns};

/// The heap of a table, by address.
pub struct RowFetch {
    heap: Option<ForkPages>,
    log: ClusterLog,
    table: Arc<Table>,
    columns: WantedColumns,
    spans: Vec<Span>,
    reported: HashSet<BlockNumber>,
    progress: Progress,
}

impl RowFetch {
    /// Rows of a table with the columns at these positions in `table.relation.columns`. At most `buffer_bytes` of pages are
    /// kept in memory.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn new(request: ScanRequest<'_>, columns: &[usize], buffer_bytes: usize) -> Self {
        let ScanRequest { cluster, table, progress, .. } = request;
        Self {
            heap: heap_pages(request, buffer_bytes / BLOCK_SIZE),
            log: ClusterLog::new(cluster.clone()),
            table: table.clone(),
            columns: WantedColumns::new(columns, table),
            spans: Vec::new(),
            reported: HashSet::new(),
            progress: progress.clone(),
        }
    }

    /// Says which rows will be asked for next, so that their pages are read together, in the order of the file. What has
    /// no room is read when its turn comes.
    pub fn will_want(&mut self, tids: impl IntoIterator<Item = Tid>) {
        let Some(heap) = &mut self.heap else { return };
        let blocks = heap.files().blocks();
        heap.begin_round();
        for tid in tids {
            if tid.block.0 < blocks && heap.want(tid.block).is_err() {
                break;
            }
        }
        heap.read_wanted(|_| true);
    }

    /// The tuple at this address; `None` where there is none that is visible.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read, or the work was cancelled.
    pub fn fetch(&mut self, tid: Tid, damage: &mut DamageLog) -> Result<Option<TupleRow<'_>>> {
        let number = self.find(tid, damage, |page, tid, log| {
            let Some(lp) = page.line_pointer(tid.line_pointer) else { return Ok(None) };
            if lp.state() != LinePointerState::Normal {
                return Ok(None);
            }
            let fault = |fault| (tid.line_pointer, fault);
            let tuple = page.item(lp).and_then(HeapTuple::parse);
            let tuple = tuple.map_err(|error| fault(TupleFault::Bytes(error)))?;
            let visible =
                is_visible(tuple, log).map_err(|error| fault(TupleFault::Status(error)))?;
            Ok(visible.then_some(tid.line_pointer))
        })?;
        Ok(number.and_then(|number| self.row(Tid { line_pointer: number, ..tid })))
    }

    /// The line pointer that `look` finds on the page of an address, its spans worked out.
    fn find(
        &mut self,
        tid: Tid,
        damage: &mut DamageLog,
        look: impl Fn(Page<'_>, Tid, &mut ClusterLog) -> Result<Option<u16>, (u16, TupleFault)>,
    ) -> Result<Option<u16>> {
        self.progress.check()?;
        let Self { heap, log, columns, spans, reported, .. } = self;
        let Some(heap) = heap.as_mut().filter(|heap| tid.block.0 < heap.files().blocks()) else {
            return Ok(None);
        };
        if let Err(error) = heap.get(tid.block) {
            if reported.insert(tid.block) {
                damage.report(damage_of(error)?)?;
            }
            return Ok(None);
        }
        let Some(bytes) = heap.held(tid.block) else { return Ok(None) };
        let location = BlockLocation::new(heap.files(), tid.block);
        let page = Page::new(bytes);
        let number = match look(page, tid, log) {
            Ok(Some(number)) => number,
            Ok(None) => return Ok(None),
            Err((number, fault)) => {
                damage.report(location.tuple_damage(number, fault)?)?;
                return Ok(None);
            }
        };
        spans.clear();
        let spanned = tuple_at(page, number).map(|tuple| columns.walk.spans(&tuple.data(), spans));
        match spanned {
            Some(Ok(())) => Ok(Some(number)),
            Some(Err(error)) => {
                damage.report(location.damage(number, error.to_string()))?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The row that was found last.
    fn row(&self, tid: Tid) -> Option<TupleRow<'_>> {
        let bytes = self.heap.as_ref()?.held(tid.block)?;
        let page = Page::new(bytes);
        let data = tuple_at(page, tid.line_pointer)?.data().data;
        let Self { table, columns, spans, .. } = self;
        Some(TupleRow { tid, page, data, table, columns, spans })
    }
}

fn tuple_at(page: Page<'_>, number: u16) -> Option<HeapTuple<'_>> {
    page.item(page.line_pointer(number)?).and_then(HeapTuple::parse).ok()
}

/// The rows of a table in the order of one of its indexes.
pub struct OrderedScan {
    index: IndexScan,
    rows: RowFetch,
    /// The next entry of the turn that the index is at.
    at: usize,
    found: Option<Tid>,
}

impl IndexOrder {
    /// A scan of all rows of the index's table, which is of this database, in its order, for the columns at these
    /// positions.
    ///
    /// # Errors
    /// When the files of the index are missing or damaged.
    ///
    /// # Panics
    /// As [`RowFetch::new`].
    pub fn scan(
        &self,
        database: &Database,
        request: ScanRequest<'_>,
        columns: &[usize],
        damage: &mut DamageLog,
    ) -> Result<OrderedScan> {
        let ScanRequest { cluster, table, options, progress } = request;
        let files = self.files(database)?;
        let (tree_pages, heap_bytes) = self.memory(&files);
        let options = self.reading(database, options);
        let reading = ForkReading { cluster, files: &files, options, progress };
        let tree = IndexPages::new(reading, tree_pages);
        let known = KnownHeap {
            blocks: table.blocks(),
            index_only: IndexOnly::Never,
            all_visible: AllVisible::nothing(cluster),
        };
        let index = IndexScan::new(tree, self.direction(), known);
        let mut index = index.reading_around(table.reads_around());
        index.start(cluster, damage)?;
        let rows = RowFetch::new(request, columns, heap_bytes);
        Ok(OrderedScan { index, rows, at: 0, found: None })
    }
}

impl OrderedScan {
    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read, or the work was cancelled.
    pub fn next_row(&mut self, damage: &mut DamageLog) -> Result<Option<TupleRow<'_>>> {
        self.found = None;
        while self.found.is_none() {
            if self.at == self.index.batch().entries().len() && !self.next_turn(damage)? {
                return Ok(None);
            }
            let tid = self.index.batch().entries()[self.at].tid;
            self.at += 1;
            let number = self.rows.find(tid, damage, |page, tid, log| {
                let member = visible_member(page, tid.block, tid.line_pointer, log)?;
                Ok(member.map(|(number, _)| number))
            })?;
            self.found = number.map(|number| Tid { line_pointer: number, ..tid });
        }
        Ok(self.row())
    }

    /// What [`next_row`](Self::next_row) handed out last.
    pub fn row(&self) -> Option<TupleRow<'_>> {
        self.rows.row(self.found?)
    }

    /// Goes on to the entries whose heap pages are read together; false at the end.
    fn next_turn(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.at = 0;
        let Some(heap) = &mut self.rows.heap else { return Ok(false) };
        heap.begin_round();
        if !self.index.advance(damage, |block| heap.want(block))? {
            return Ok(false);
        }
        heap.read_wanted(|block| self.index.is_worth_reading(block));
        Ok(true)
    }
}
