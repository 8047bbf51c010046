//! The rows of a table by the entries of one of its indexes alone, for whoever wants no other columns than the index has.
//!
//! ```text
//! pages of the index, in the order of its file ─► leaves ─► entries ─► a row for each TID on a block that is all-visible
//! ```
//!
//! The visibility map says of which heap blocks every tuple is visible to everybody: there each entry is a row, and its columns
//! are the row's. Rows on other blocks are left to a scan of those ([`mixed_blocks`]). No order is wanted, so that leaves are
//! taken as they lie in the file, by several threads, and no link is followed.
//!
//! Invariants: an entry that is handed out leads to a block that the map promises to be all-visible; every such entry of the
//! ranges is handed out once; what is damaged is reported, and left out where that is the policy; each span lies inside of its
//! entry. Under a running server, whose pages split meanwhile, no such scan is made.
//!
//! Source: `IndexOnlyNext` in `src/backend/executor/nodeIndexonlyscan.c`, `btvacuumscan` in
//! `src/backend/access/nbtree/nbtree.c`, PostgreSQL 14 to 18.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::btree_scan::{Direction, leaf_entries};
use pagemill_cluster::{AllVisible, Cluster};
use pagemill_format::btree::{BtreePage, IndexTuple, META_BLOCK};
use pagemill_format::page::Page;
use pagemill_format::tuple::{Span, TupleData};
use pagemill_format::{BlockNumber, Error as FormatError, Tid};

use crate::damage::DamageLog;
use crate::error::Result;
use crate::page_scan::{PageScan, PageUse, SoundPage};
use crate::scan_plan::{ScanPlan, ScanRequest};
use crate::table::Table;
use crate::table_scan::{TupleRow, WantedColumns, common_blocks};
use crate::tid_scan::StepColumns;

/// The blocks of a table of which some tuple may not be visible to everybody, in ascending ranges apart from one another.
///
/// # Errors
/// When the directory or the size of a file cannot be read.
pub fn mixed_blocks(cluster: &Cluster, heap: &Table) -> Result<Vec<Range<u32>>> {
    let mut map = AllVisible::open(cluster, &heap.relation.base)?;
    let mut mixed: Vec<Range<u32>> = Vec::new();
    for block in (0..heap.blocks()).filter(|block| !map.contains(BlockNumber(*block))) {
        match mixed.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => mixed.push(block..block + 1),
        }
    }
    Ok(mixed)
}

/// An entry of the page: where its columns lie there.
#[derive(Clone, Copy)]
struct Entry {
    start: u16,
    end: u16,
}

/// A scan of ranges of the blocks of an index, by one thread.
pub struct KeyScan {
    pages: Option<PageScan>,
    index: Arc<Table>,
    /// What rows are chosen by, and what else is wanted of the chosen ones; one walk finds both.
    first: WantedColumns,
    rest: WantedColumns,
    heap_blocks: u32,
    all_visible: AllVisible,
    entries: Vec<Entry>,
    /// The columns of each entry.
    spans: Vec<Span>,
    /// The rows of the page, each with the place of its entry.
    rows: Vec<(Tid, u16)>,
}

impl KeyScan {
    /// The rows of `heap` that the entries in these ranges of blocks of an index lead to; the request is for the index, as
    /// [`Table::of_index`] opens it, and the columns are its own.
    ///
    /// # Errors
    /// When the visibility map cannot be opened.
    ///
    /// # Panics
    /// When the index has no column at one of the positions.
    pub fn of_blocks(
        request: ScanRequest<'_>,
        columns: StepColumns<'_>,
        heap: &Table,
        ranges: &[Range<u32>],
    ) -> Result<Self> {
        let ScanRequest { cluster, table: index, options, progress } = request;
        let plan = ScanPlan::new(cluster, index, options)?;
        let chosen = plan.order().arrange(&common_blocks(index.present(), ranges));
        let StepColumns { first, rest } = columns;
        let all = [first, rest].concat();
        Ok(Self {
            pages: PageScan::new(&plan, chosen, PageUse::Tuples, progress),
            index: index.clone(),
            first: WantedColumns::among(first, &all, index),
            rest: WantedColumns::among(rest, &all, index),
            heap_blocks: heap.blocks(),
            all_visible: AllVisible::open(cluster, &heap.relation.base)?,
            entries: Vec::new(),
            spans: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Goes on to the next page of the index that has rows; false at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read, or the work was cancelled.
    pub fn next_page(&mut self, damage: &mut DamageLog) -> Result<bool> {
        let Self { pages, index, first, heap_blocks, all_visible, entries, spans, rows, .. } = self;
        let Some(pages) = pages else { return Ok(false) };
        let attributes = index.relation.columns.len();
        rows.clear();
        while rows.is_empty() {
            let Some(found) = pages.next_page(damage)? else { return Ok(false) };
            entries.clear();
            spans.clear();
            let mut leaf = LeafRows {
                attributes,
                columns: first,
                heap_blocks: *heap_blocks,
                all_visible,
                entries,
                spans,
                rows,
            };
            leaf.take(found, damage)?;
            pages.note_tuples(rows.len() as u64, 0);
        }
        Ok(true)
    }

    /// The rows of the page, with the columns to choose by.
    pub fn rows(&self) -> impl Iterator<Item = TupleRow<'_>> {
        (0..self.rows.len()).map(|at| self.row_of(at, &self.first))
    }

    /// A row of the page by its place among [`rows`](Self::rows), with the other columns.
    ///
    /// # Panics
    /// When there are fewer rows.
    pub fn row(&self, at: usize) -> TupleRow<'_> {
        self.row_of(at, &self.rest)
    }

    #[inline]
    fn row_of<'s>(&'s self, at: usize, columns: &'s WantedColumns) -> TupleRow<'s> {
        let page = self.pages.as_ref().and_then(PageScan::current);
        let Some(SoundPage { page, .. }) = page else {
            unreachable!("rows are those of the page that was handed out last")
        };
        let (tid, entry) = self.rows[at];
        let Entry { start, end } = self.entries[usize::from(entry)];
        let data = &page.bytes()[usize::from(start)..usize::from(end)];
        let from = usize::from(entry) * columns.width();
        let spans = &self.spans[from..from + columns.width()];
        TupleRow { tid, page, data, table: &self.index, columns, spans }
    }
}

/// Finds the rows of a leaf.
struct LeafRows<'s> {
    /// How many columns the index has.
    attributes: usize,
    columns: &'s WantedColumns,
    heap_blocks: u32,
    all_visible: &'s mut AllVisible,
    entries: &'s mut Vec<Entry>,
    spans: &'s mut Vec<Span>,
    rows: &'s mut Vec<(Tid, u16)>,
}

impl LeafRows<'_> {
    /// Takes the rows of a page; one that is no leaf in use has none.
    fn take(&mut self, found: SoundPage<'_>, damage: &mut DamageLog) -> Result<()> {
        let SoundPage { location, page, .. } = found;
        // A page that was allocated when the server fell belongs to no tree.
        if location.block == META_BLOCK || page.is_new() {
            return Ok(());
        }
        let leaf = match BtreePage::parse(page.bytes()) {
            Ok(leaf) if !leaf.is_leaf() || leaf.flags().is_ignored() => return Ok(()),
            Ok(leaf) => leaf,
            Err(error) => return damage.report(location.page_damage(error.to_string())),
        };
        leaf_entries(&leaf, Direction::Forward, |number, entry| {
            let taken = entry.map_err(|error| error.to_string());
            match taken.and_then(|entry| self.take_entry(page, number, &entry)) {
                Ok(()) => Ok(()),
                Err(what) => damage.report(location.damage(number, what)),
            }
        })
    }

    #[inline]
    fn take_entry(
        &mut self,
        page: Page<'_>,
        number: u16,
        entry: &IndexTuple<'_>,
    ) -> Result<(), String> {
        let place = self.entries.len() as u16;
        let before = self.rows.len();
        for tid in entry.heap_tids() {
            if tid.block.0 >= self.heap_blocks {
                self.rows.truncate(before);
                let blocks = self.heap_blocks;
                return Err(format!(
                    "the entry leads to {tid} of the table, which has {blocks} blocks"
                ));
            }
            if self.all_visible.contains(tid.block) {
                self.rows.push((tid, place));
            }
        }
        if self.rows.len() == before {
            return Ok(());
        }
        let found = self.find_columns(page, number, entry);
        found.map_err(|error| {
            self.rows.truncate(before);
            error.to_string()
        })
    }

    fn find_columns(
        &mut self,
        page: Page<'_>,
        number: u16,
        entry: &IndexTuple<'_>,
    ) -> Result<(), FormatError> {
        let line_pointer = page.line_pointer(number).expect("an entry has a line pointer"); // infallible: it led there
        let (nulls, data) = (entry.null_bitmap().map(<[u8; 4]>::as_slice), entry.key());
        let tuple = TupleData { attributes: self.attributes, nulls, data };
        self.columns.walk.spans(&tuple, self.spans)?;
        let end = line_pointer.offset() + entry.key_end();
        self.entries.push(Entry { start: (end - data.len()) as u16, end: end as u16 });
        Ok(())
    }
}
