//! The visible rows of a table run by run, for whoever chooses among them by some columns before it looks at others.
//!
//! ```text
//! next_run ──► rows: the columns to choose by, of all rows of a run ── keep ──► kept: the other columns, of those chosen
//! ```
//!
//! A run is what one read fetches, some pages that follow one another: enough rows for a choice that works on whole columns,
//! and few enough to stay in a core's cache until the chosen ones are looked at again. Of a row that is not chosen no more is
//! looked at than the choice needs; but where most rows of a run were chosen, all columns of the next one are found in one
//! walk over each tuple.
//!
//! Invariants: the runs have every visible tuple of the scan's blocks once, in the order of the scan; what is damaged is
//! reported once, and left out where that is the policy; each span lies inside of its tuple.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::{ClusterLog, heap};
use pagemill_format::page::Page;
use pagemill_format::tuple::{HeapTuple, Span};
use pagemill_format::{BlockNumber, Tid};

use crate::damage::DamageLog;
use crate::error::Result;
use crate::page_scan::{BlockLocation, PageScan, PageUse, SoundPage};
use crate::scan_plan::{ScanPlan, ScanRequest};
use crate::table::Table;
use crate::table_scan::{TupleRow, WantedColumns, common_blocks};

/// One of so many rows, or more, has to be chosen for all columns to be found in one walk.
const MANY: usize = 2;

/// A tuple of the run: its page's place there, its line pointer, and where its attributes lie on the page.
#[derive(Clone, Copy)]
struct Place {
    page: u16,
    number: u16,
    start: u16,
    end: u16,
}

impl Place {
    #[inline]
    fn new(page: Page<'_>, at: u16, number: u16, tuple: HeapTuple<'_>) -> Self {
        let line_pointer = page.line_pointer(number).expect("a tuple has a line pointer"); // infallible: it led there
        let item = line_pointer.offset();
        let (start, end) = (item + tuple.hoff(), item + line_pointer.len());
        Self { page: at, number, start: start as u16, end: end as u16 }
    }
}

/// Rows of the run, with the spans of the columns that were looked for.
#[derive(Default)]
struct Rows {
    places: Vec<Place>,
    spans: Vec<Span>,
}

/// Chosen rows by their places among the rows of the run; the spans of their other columns, unless the rows have those.
#[derive(Default)]
struct Kept {
    chosen: Vec<usize>,
    spans: Vec<Span>,
}

/// The columns of a scan in two steps, by their positions in `table.relation.columns`.
#[derive(Clone, Copy)]
pub struct StepColumns<'a> {
    /// What rows are chosen by.
    pub first: &'a [usize],
    /// What is wanted of the chosen rows.
    pub rest: &'a [usize],
}

/// A scan of ranges of a table's blocks in two steps, by one thread.
pub struct RunScan {
    pages: Option<PageScan>,
    log: ClusterLog,
    table: Arc<Table>,
    backward: bool,
    /// What is chosen by, and what else is wanted of the chosen rows.
    first: WantedColumns,
    rest: WantedColumns,
    /// The same of a walk that finds both.
    first_of_all: WantedColumns,
    rest_of_all: WantedColumns,
    /// True when the rows of this run have the spans of all columns.
    has_all: bool,
    rows: Rows,
    kept: Kept,
}

impl RunScan {
    /// A scan of these ranges of blocks, as [`TableScan::of_blocks`](crate::TableScan::of_blocks).
    ///
    /// # Errors
    /// When the block to begin with is past the end.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn of_blocks(
        request: ScanRequest<'_>,
        columns: StepColumns<'_>,
        ranges: &[Range<u32>],
    ) -> Result<Self> {
        let ScanRequest { cluster, table, options, progress } = request;
        let StepColumns { first, rest } = columns;
        let plan = ScanPlan::new(cluster, table, options)?;
        let chosen = plan.order().arrange(&common_blocks(table.present(), ranges));
        let all = [first, rest].concat();
        Ok(Self {
            pages: PageScan::new(&plan, chosen, PageUse::Tuples, progress),
            log: ClusterLog::new(cluster.clone()),
            backward: plan.order().backward,
            first: WantedColumns::new(first, table),
            rest: WantedColumns::new(rest, table),
            first_of_all: WantedColumns::among(first, &all, table),
            rest_of_all: WantedColumns::among(rest, &all, table),
            has_all: false,
            table: table.clone(),
            rows: Rows::default(),
            kept: Kept::default(),
        })
    }

    /// Goes on to the next run that has visible tuples; false at the end.
    ///
    /// # Errors
    /// As [`TableScan::next_batch`](crate::TableScan::next_batch).
    pub fn next_run(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.has_all = self.kept.chosen.len() * MANY > self.rows.places.len();
        self.kept.chosen.clear();
        self.rows.places.clear();
        self.rows.spans.clear();
        let Some(pages) = &mut self.pages else { return Ok(false) };
        let mut walk = RunWalk {
            log: &mut self.log,
            backward: self.backward,
            columns: if self.has_all { &self.first_of_all } else { &self.first },
            rows: &mut self.rows,
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
        let columns = if self.has_all { &self.first_of_all } else { &self.first };
        self.of((0..self.rows.places.len()).map(move |at| (at, at)), columns, &self.rows.spans)
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
        let Self { pages, rest, rows, kept, .. } = self;
        kept.chosen.clear();
        kept.spans.clear();
        if self.has_all {
            kept.chosen.extend(chosen);
            return Ok(());
        }
        for at in chosen {
            let place = rows.places[at];
            let (location, tuple) = tuple_at(pages.as_ref(), place);
            match rest.walk.spans(&tuple.data(), &mut kept.spans) {
                Ok(()) => kept.chosen.push(at),
                Err(error) => damage.report(location.damage(place.number, error.to_string()))?,
            }
        }
        Ok(())
    }

    /// The chosen rows, with the other columns.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = TupleRow<'_>> {
        let (columns, spans) = match self.has_all {
            true => (&self.rest_of_all, &self.rows.spans),
            false => (&self.rest, &self.kept.spans),
        };
        let chosen = self.kept.chosen.iter().enumerate();
        let has_all = self.has_all;
        self.of(
            chosen.map(move |(at, row)| (*row, if has_all { *row } else { at })),
            columns,
            spans,
        )
    }

    /// Rows by their places among those of the run, and among those that there are spans of.
    fn of<'s>(
        &'s self,
        rows: impl ExactSizeIterator<Item = (usize, usize)> + 's,
        columns: &'s WantedColumns,
        spans: &'s [Span],
    ) -> impl ExactSizeIterator<Item = TupleRow<'s>> {
        let width = columns.width();
        let mut held: Option<(u16, BlockNumber, Page<'s>)> = None;
        rows.map(move |(row, at)| {
            let place = self.rows.places[row];
            let (_, block, page) = match held {
                Some(held) if held.0 == place.page => held,
                _ => *held.insert(self.page(place.page)),
            };
            let tid = Tid { block, line_pointer: place.number };
            let data = &page.bytes()[usize::from(place.start)..usize::from(place.end)];
            let spans = &spans[at * width..(at + 1) * width];
            TupleRow { tid, page, data, table: &self.table, columns, spans }
        })
    }

    fn page(&self, at: u16) -> (u16, BlockNumber, Page<'_>) {
        let page = self.pages.as_ref().and_then(|pages| pages.page_of_run(at.into()));
        let Some((location, page)) = page else {
            unreachable!("a place is one of the current run")
        };
        (at, location.block, page)
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
struct RunWalk<'w> {
    log: &'w mut ClusterLog,
    backward: bool,
    columns: &'w WantedColumns,
    rows: &'w mut Rows,
}

impl RunWalk<'_> {
    /// Takes the visible tuples of a page; how many they are, and how many are dead.
    fn take(
        &mut self,
        at: usize,
        found: SoundPage<'_>,
        damage: &mut DamageLog,
    ) -> Result<(u64, u64)> {
        let Self { log, columns, rows, .. } = self;
        let SoundPage { location, page, ahead } = found;
        let at = u16::try_from(at).expect("a run is shorter"); // infallible: 128 blocks at most
        let (before, mut faults) = (rows.places.len(), 0);
        let each = |number, tuple: Result<HeapTuple<'_>, heap::TupleFault>| {
            ahead.ask(number);
            let what = match tuple {
                Err(fault) => location.tuple_damage(number, fault)?,
                Ok(tuple) => match columns.walk.spans(&tuple.data(), &mut rows.spans) {
                    Err(error) => location.damage(number, error.to_string()),
                    Ok(()) => {
                        rows.places.push(Place::new(page, at, number, tuple));
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
