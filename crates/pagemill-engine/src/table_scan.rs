//! The visible rows of a table as values' bytes, pulled page by page: the scan for whoever wants rows and not their text.
//!
//! ```text
//! TableScan ── next_batch ──► TupleBatch: one page ── rows ──► TupleRow ── raw(column) ──► bytes of a value
//! ```
//!
//! A scan owns what it needs (the cluster, the table, its open files), so it can be kept in a struct and moved to another
//! thread. A batch borrows the page where it lies: in the mapping or the buffer it was read to. Nothing is copied, and per
//! row nothing is allocated.
//!
//! Invariants: the batches have every visible tuple of the scan's blocks once, in the order of the scan; what is damaged is
//! reported, and left out where that is the policy; each span lies inside of its tuple.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::{Cluster, ClusterLog, Damage, RelationKind, heap};
use pagemill_format::page::Page;
use pagemill_format::tuple::{AttributeWalk, HeapTuple, Span};
use pagemill_format::{BlockNumber, Error as FormatError, Tid};

use crate::damage::{DamageLog, value_damage};
use crate::error::Result;
use crate::page_scan::{BlockLocation, PageScan, PageUse, SoundPage};
use crate::progress::Progress;
use crate::scan_plan::{ScanOptions, ScanPlan, ScanRequest};
use crate::table::Table;

/// A scan of a table, or of ranges of its blocks, by one thread.
pub struct TableScan {
    pages: Option<PageScan>,
    log: ClusterLog,
    table: Arc<Table>,
    backward: bool,
    columns: WantedColumns,
    /// Line pointers of the batch, and the spans of the columns, row by row.
    numbers: Vec<u16>,
    spans: Vec<Span>,
}

impl TableScan {
    /// A scan of all blocks of a table, in the order of the options, for the columns at these
    /// positions in `table.relation.columns`.
    ///
    /// # Errors
    /// When the block to begin with is past the end.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn new(request: ScanRequest<'_>, columns: &[usize]) -> Result<Self> {
        let ScanRequest { cluster, table, options, progress } = request;
        let plan = ScanPlan::new(cluster, table, options)?;
        Ok(Self::over(&plan, plan.ranges(), columns, progress))
    }

    /// The same of the blocks of these ranges only, which are ascending and do not overlap; blocks
    /// that are lost or past the end are left out. For a table that several threads scan, or of which
    /// some blocks are known not to matter.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn of_blocks(
        request: ScanRequest<'_>,
        columns: &[usize],
        ranges: &[Range<u32>],
    ) -> Result<Self> {
        let ScanRequest { cluster, table, options, progress } = request;
        let plan = ScanPlan::new(cluster, table, options)?;
        let chosen = plan.order().arrange(&common_blocks(table.present(), ranges));
        Ok(Self::over(&plan, chosen, columns, progress))
    }

    /// All blocks that are not lost, in the order of the options, cut into ranges of at most so many: scans of them, one
    /// after the other, are the scan of the table.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shares(
        cluster: &Cluster,
        table: &Arc<Table>,
        options: ScanOptions,
        most_blocks: u32,
    ) -> Result<Vec<Range<u32>>> {
        let shares = ScanPlan::new(cluster, table, options)?.shares(most_blocks);
        Ok((0..shares.count()).filter_map(|share| shares.get(share)).collect())
    }

    fn over(
        plan: &ScanPlan,
        ranges: Vec<Range<u32>>,
        columns: &[usize],
        progress: &Progress,
    ) -> Self {
        Self {
            pages: PageScan::new(plan, ranges, PageUse::Tuples, progress),
            log: ClusterLog::new(plan.cluster().clone()),
            table: plan.table().clone(),
            backward: plan.order().backward,
            columns: WantedColumns::new(columns, plan.table()),
            numbers: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// The visible tuples of the next page that has any; `None` at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when a file cannot be read; [`Error::Cancelled`] once the
    /// progress was cancelled.
    ///
    /// [`Error::Cancelled`]: crate::Error::Cancelled
    pub fn next_batch(&mut self, damage: &mut DamageLog) -> Result<Option<TupleBatch<'_>>> {
        let Self { pages, log, backward, columns, numbers, spans, .. } = self;
        let Some(pages) = pages else { return Ok(None) };
        loop {
            numbers.clear();
            spans.clear();
            let Some(found) = pages.next_page(damage)? else { return Ok(None) };
            let SoundPage { location, page, ahead } = found;
            let mut faults = 0;
            let each = |number, tuple: Result<HeapTuple<'_>, heap::TupleFault>| {
                ahead.ask(number);
                let what = match tuple {
                    Err(fault) => location.tuple_damage(number, fault)?,
                    Ok(tuple) => match columns.walk.spans(&tuple.data(), spans) {
                        Err(error) => location.damage(number, error.to_string()),
                        Ok(()) => {
                            numbers.push(number);
                            return Ok(());
                        }
                    },
                };
                faults += 1;
                damage.report(what)
            };
            match backward {
                false => heap::visit_tuples(page, log, each)?,
                true => heap::visit_tuples_backward(page, log, each)?,
            }
            let dead = found.dead_tuples(numbers.len() + faults);
            pages.note_tuples(numbers.len() as u64, dead);
            if !numbers.is_empty() {
                break;
            }
        }
        Ok(self.batch())
    }

    /// What [`next_batch`](Self::next_batch) handed out last, for a caller that cannot hold on to it; `None` before the
    /// first and after the last.
    pub fn batch(&self) -> Option<TupleBatch<'_>> {
        let SoundPage { location, page, .. } = self.pages.as_ref()?.current()?;
        let Self { table, columns, numbers, spans, .. } = self;
        Some(TupleBatch { block: location.block, page, table, columns, numbers, spans })
    }
}

/// The blocks that are in both lists of ascending ranges.
pub(crate) fn common_blocks(present: &[Range<u32>], wanted: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut common = Vec::new();
    for one in present {
        let first = wanted.partition_point(|other| other.end <= one.start);
        let overlapping = wanted[first..].iter().take_while(|other| other.start < one.end);
        common.extend(overlapping.map(|o| o.start.max(one.start)..o.end.min(one.end)));
    }
    common.retain(|range: &Range<u32>| !range.is_empty());
    common
}

/// The visible tuples of one page.
#[derive(Clone, Copy)]
pub struct TupleBatch<'s> {
    pub(crate) block: BlockNumber,
    pub(crate) page: Page<'s>,
    pub(crate) table: &'s Table,
    pub(crate) columns: &'s WantedColumns,
    /// The line pointers, at least one.
    pub(crate) numbers: &'s [u16],
    /// Where the columns are in each tuple.
    pub(crate) spans: &'s [Span],
}

impl<'s> TupleBatch<'s> {
    /// The block they are on.
    pub fn block(&self) -> BlockNumber {
        self.block
    }

    /// How many there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The tuples in the order of the scan.
    pub fn rows(&self) -> impl Iterator<Item = TupleRow<'s>> + use<'s> {
        let batch = *self;
        (0..batch.len()).map(move |at| batch.row(at))
    }

    /// The tuple at this place in the batch, from 0.
    ///
    /// # Panics
    /// When the batch has no so many.
    #[inline]
    pub fn row(&self, at: usize) -> TupleRow<'s> {
        let width = self.columns.width();
        let spans = &self.spans[at * width..(at + 1) * width];
        let number = self.numbers[at];
        let item = self.page.line_pointer(number);
        let item = item.map(|lp| self.page.item(lp).and_then(HeapTuple::parse));
        let Some(Ok(tuple)) = item else {
            unreachable!("a tuple of a batch was parsed when the batch was made")
        };
        let tid = Tid { block: self.block, line_pointer: number };
        let (page, data) = (self.page, tuple.data().data);
        TupleRow { tid, page, data, table: self.table, columns: self.columns, spans }
    }
}

/// Columns of a table that are asked for, and how they are found in a tuple.
pub(crate) struct WantedColumns {
    /// Positions of the columns, from 0, in the order they were asked for in.
    positions: Box<[usize]>,
    /// Where each is among the spans that the walk finds.
    slots: Box<[usize]>,
    pub(crate) walk: AttributeWalk,
    width: usize,
}

impl WantedColumns {
    /// # Panics
    /// When the table has no column at one of the positions.
    pub(crate) fn new(positions: &[usize], table: &Table) -> Self {
        Self::among(positions, positions, table)
    }

    /// Columns that a walk finds together with others.
    ///
    /// # Panics
    /// When the table has no column at one of the positions, or the walk does not find one of the columns.
    pub(crate) fn among(positions: &[usize], found: &[usize], table: &Table) -> Self {
        let columns = table.relation.columns.len();
        assert!(found.iter().all(|position| *position < columns), "a column past the last");
        let mut ascending = found.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        let slot = |position| {
            ascending.binary_search(position).expect("the walk finds what is asked for") // infallible: by who calls
        };
        Self {
            slots: positions.iter().map(slot).collect(),
            positions: positions.into(),
            walk: AttributeWalk::new(&table.relation.layout, &ascending),
            width: ascending.len(),
        }
    }

    /// How many spans the walk finds of a tuple.
    #[inline]
    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

/// One visible tuple.
#[derive(Clone, Copy)]
pub struct TupleRow<'s> {
    pub(crate) tid: Tid,
    pub(crate) page: Page<'s>,
    /// Its attributes.
    pub(crate) data: &'s [u8],
    pub(crate) table: &'s Table,
    pub(crate) columns: &'s WantedColumns,
    /// Where the columns are in the attributes.
    pub(crate) spans: &'s [Span],
}

impl<'s> TupleRow<'s> {
    /// Its `ctid`.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// The tuple itself, with its header.
    pub fn tuple(&self) -> HeapTuple<'s> {
        let item = self.page.line_pointer(self.tid.line_pointer);
        let Some(Ok(tuple)) = item.map(|lp| self.page.item(lp).and_then(HeapTuple::parse)) else {
            unreachable!("a tuple was parsed when it was found")
        };
        tuple
    }

    /// The damage that the error of a value of this tuple tells of; the error itself, where it is of another kind.
    ///
    /// # Errors
    /// A refusal, or a failure of the system.
    #[cold]
    pub fn value_damage(&self, column: &str, error: FormatError) -> Result<Damage> {
        let what = value_damage(error)?.to_string();
        let files = self.table.files().expect("a tuple lies in a file"); // infallible: it was read
        if self.table.relation.class.kind == RelationKind::Index {
            let (path, _) = files.locate(BlockNumber(0));
            let what = format!("the entry of row {}: {what}", self.tid);
            return Ok(Damage::in_file(path, what).in_column(column));
        }
        let place = BlockLocation::new(files, self.tid.block);
        Ok(place.damage(self.tid.line_pointer, what).in_column(column))
    }

    /// The value of a column that was asked for, by its place among those, as it lies in the tuple: with its
    /// varlena header, or with its terminating zero. `None` for NULL. A column added after the row was
    /// written has the default it was added with.
    ///
    /// # Panics
    /// When fewer columns were asked for.
    #[inline]
    pub fn raw(&self, column: usize) -> Option<&'s [u8]> {
        match self.spans[self.columns.slots[column]] {
            Span::MISSING => self.missing(column),
            span => span.of(self.data),
        }
    }

    #[cold]
    fn missing(&self, column: usize) -> Option<&'s [u8]> {
        let position = self.columns.positions[column];
        self.table.relation.columns[position].missing.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_blocks_that_are_wanted_those_that_are_there_remain() {
        let present = [0..4, 8..12];
        assert_eq!(common_blocks(&present, &[]), []);
        assert_eq!(common_blocks(&present, &[4..8, 12..13]), []);
        let wanted = [0..2, 3..9, 11..40];
        assert_eq!(common_blocks(&present, &wanted), [0..2, 3..4, 8..9, 11..12]);
    }
}
