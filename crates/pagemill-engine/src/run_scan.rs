//! The visible rows of a table run by run, for whoever chooses among them by some columns before it looks at others.
//!
//! ```text
//! next_run ──► rows: the columns to choose by, of all rows of a run ── keep ──► kept: the other columns, of those chosen
//! ```
//!
//! A run is what one read fetches, some pages that follow one another: enough rows for a choice that works on whole columns,
//! and few enough to stay in a core's cache until the chosen ones are looked at again. Of a row that is not chosen no more is
//! looked at than the choice needs.
//!
//! Invariants: the runs have every visible tuple of the scan's blocks once, in the order of the scan; what is damaged is
//! reported once, and left out where that is the policy; each span lies inside of its tuple.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::{Cluster, ClusterLog, heap};
use pagemill_format::Tid;
use pagemill_format::tuple::{HeapTuple, Span};

use crate::damage::DamageLog;
use crate::error::Result;
use crate::page_scan::{BlockLocation, PageScan, PageUse, SoundPage};
use crate::progress::Progress;
use crate::scan_plan::{ScanOptions, ScanPlan};
use crate::table::Table;
use crate::table_scan::{TupleRow, common_blocks, depth_of};

/// Columns, and how many leading attributes of a tuple they take.
struct Columns {
    positions: Box<[usize]>,
    depth: usize,
}

impl Columns {
    fn new(positions: &[usize], table: &Table) -> Self {
        let width = table.relation.columns.len();
        assert!(positions.iter().all(|position| *position < width), "a column past the last");
        Self { positions: positions.into(), depth: depth_of(positions) }
    }
}

/// A tuple of the run: its page's place there, and its line pointer.
#[derive(Clone, Copy)]
struct Place {
    page: u16,
    number: u16,
}

/// Rows of the run, with the spans of their first attributes.
#[derive(Default)]
struct Rows {
    places: Vec<Place>,
    spans: Vec<Span>,
}

impl Rows {
    fn clear(&mut self) {
        self.places.clear();
        self.spans.clear();
    }

    fn push(&mut self, place: Place, spans: &[Span]) {
        self.places.push(place);
        self.spans.extend_from_slice(spans);
    }
}

/// A scan of ranges of a table's blocks in two steps, by one thread.
pub struct RunScan {
    pages: Option<PageScan>,
    log: ClusterLog,
    table: Arc<Table>,
    backward: bool,
    /// What is chosen by, and what else is wanted of the chosen rows.
    first: Columns,
    rest: Columns,
    rows: Rows,
    kept: Rows,
    row_spans: Vec<Span>,
}

impl RunScan {
    /// A scan of these ranges of blocks, as [`TableScan::of_blocks`](crate::TableScan::of_blocks): the columns to choose by,
    /// and those that are wanted of chosen rows.
    ///
    /// # Errors
    /// When the block to begin with is past the end.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn of_blocks(
        cluster: &Cluster,
        table: &Arc<Table>,
        (first, rest, ranges): (&[usize], &[usize], &[Range<u32>]),
        options: ScanOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let plan = ScanPlan::new(cluster, table, options)?;
        let chosen = plan.order().arrange(&common_blocks(table.present(), ranges));
        Ok(Self {
            pages: PageScan::new(&plan, chosen, PageUse::Tuples, progress),
            log: ClusterLog::new(cluster.clone()),
            backward: plan.order().backward,
            first: Columns::new(first, table),
            rest: Columns::new(rest, table),
            table: table.clone(),
            rows: Rows::default(),
            kept: Rows::default(),
            row_spans: Vec::new(),
        })
    }

    /// Goes on to the next run that has visible tuples; false at the end.
    ///
    /// # Errors
    /// As [`TableScan::next_batch`](crate::TableScan::next_batch).
    pub fn next_run(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.kept.clear();
        self.rows.clear();
        let Some(pages) = &mut self.pages else { return Ok(false) };
        let mut walk = Walk {
            log: &mut self.log,
            table: &self.table,
            backward: self.backward,
            depth: self.first.depth,
            rows: &mut self.rows,
            row_spans: &mut self.row_spans,
        };
        while walk.rows.places.is_empty() {
            if !pages.enter_run(damage)? {
                return Ok(false);
            }
            while let Some((at, page)) = pages.next_in_run(damage)? {
                let (alive, dead) = walk.take(at, page, damage)?;
                pages.note_tuples(alive, dead);
            }
        }
        Ok(true)
    }

    /// The rows of the run, with the columns to choose by.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = TupleRow<'_>> {
        (0..self.rows.places.len()).map(|at| self.row(&self.rows, at, &self.first))
    }

    /// Chooses rows of the run by their places among [`rows`](Self::rows), ascending.
    ///
    /// # Errors
    /// On damage to a chosen tuple, unless it is to be skipped.
    pub fn keep(
        &mut self,
        chosen: impl IntoIterator<Item = usize>,
        damage: &mut DamageLog,
    ) -> Result<()> {
        let Self { pages, table, rest, rows, kept, row_spans, .. } = self;
        let layout = &table.relation.layout;
        kept.clear();
        for at in chosen {
            let place = rows.places[at];
            let (location, tuple) = tuple_at(pages.as_ref(), place);
            match layout.spans(&tuple.data(), rest.depth, row_spans) {
                Ok(()) => kept.push(place, &row_spans[..rest.depth]),
                Err(error) => damage.report(location.damage(place.number, error.to_string()))?,
            }
        }
        Ok(())
    }

    /// The chosen rows, with the other columns.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = TupleRow<'_>> {
        (0..self.kept.places.len()).map(|at| self.row(&self.kept, at, &self.rest))
    }

    fn row<'s>(&'s self, rows: &'s Rows, at: usize, columns: &'s Columns) -> TupleRow<'s> {
        let place = rows.places[at];
        let spans = &rows.spans[at * columns.depth..(at + 1) * columns.depth];
        let (location, tuple) = tuple_at(self.pages.as_ref(), place);
        let tid = Tid { block: location.block, line_pointer: place.number };
        TupleRow::new(tid, tuple, &self.table, &columns.positions, spans)
    }
}

/// A tuple of the run that the scan is in.
#[inline]
fn tuple_at(pages: Option<&PageScan>, place: Place) -> (BlockLocation<'_>, HeapTuple<'_>) {
    let page = pages.and_then(|pages| pages.page_of_run(place.page.into()));
    let Some((location, page)) = page else { unreachable!("a place is one of the current run") };
    let item = page.line_pointer(place.number);
    let Some(Ok(tuple)) = item.map(|lp| page.item(lp).and_then(HeapTuple::parse)) else {
        unreachable!("a tuple of a run was parsed when the run was entered")
    };
    (location, tuple)
}

/// What collects the tuples of a run.
struct Walk<'w> {
    log: &'w mut ClusterLog,
    table: &'w Table,
    backward: bool,
    depth: usize,
    rows: &'w mut Rows,
    row_spans: &'w mut Vec<Span>,
}

impl Walk<'_> {
    /// Takes the visible tuples of a page; how many they are, and how many are dead.
    fn take(
        &mut self,
        at: usize,
        found: SoundPage<'_>,
        damage: &mut DamageLog,
    ) -> Result<(u64, u64)> {
        let Self { log, table, depth, rows, row_spans, .. } = self;
        let SoundPage { location, page, ahead } = found;
        let at = u16::try_from(at).expect("a run is shorter"); // infallible: 128 blocks at most
        let (before, mut faults) = (rows.places.len(), 0);
        let each = |number, tuple: Result<HeapTuple<'_>, heap::TupleFault>| {
            ahead.ask(number);
            let what = match tuple {
                Err(fault) => location.tuple_damage(number, fault)?,
                Ok(tuple) => match table.relation.layout.spans(&tuple.data(), *depth, row_spans) {
                    Err(error) => location.damage(number, error.to_string()),
                    Ok(()) => {
                        rows.push(Place { page: at, number }, &row_spans[..*depth]);
                        return Ok(());
                    }
                },
            };
            faults += 1;
            damage.report(what)
        };
        match self.backward {
            false => heap::visit_tuples(page, *log, each)?,
            true => heap::visit_tuples_backward(page, *log, each)?,
        }
        let alive = self.rows.places.len() - before;
        Ok((alive as u64, found.dead_tuples(alive + faults)))
    }
}
