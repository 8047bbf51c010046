//! The visible rows of a table run by run, for whoever chooses among them by some columns before it looks at others.
//!
//! ```text
//! next_run ──► rows: the columns of one step, of all rows of a run ── keep ──► rows: those of another, of the chosen ── …
//! ```
//!
//! A run is what one read fetches, some pages that follow one another: enough rows for a choice that works on whole columns,
//! and few enough to stay in a core's cache until the chosen ones are looked at again. Of a row that is not chosen no more is
//! looked at than the choice needs; but where most rows of a run were chosen to the end, all columns of the next one are
//! found in one walk over each tuple.
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

/// Chosen rows by their places among all of the run, with the spans of the columns that were looked for last.
#[derive(Default)]
struct Chosen {
    rows: Vec<u32>,
    spans: Vec<Span>,
}

/// The columns of a step: found by a walk of their own, and by the one that finds all.
struct Step {
    alone: WantedColumns,
    of_all: WantedColumns,
}

/// A scan of ranges of a table's blocks in steps, by one thread.
pub struct RunScan {
    pages: Option<PageScan>,
    log: ClusterLog,
    table: Arc<Table>,
    backward: bool,
    steps: Box<[Step]>,
    /// The step whose columns the rows have.
    step: usize,
    /// True when the rows of this run have the spans of all columns.
    has_all: bool,
    /// All rows of the run.
    places: Vec<Place>,
    chosen: Chosen,
    /// Spans of all columns, and of all rows, if they were found in one walk.
    all: Vec<Span>,
}

impl RunScan {
    /// A scan of these ranges of blocks, as [`TableScan::of_blocks`](crate::TableScan::of_blocks), for steps with these
    /// columns, by their positions in `table.relation.columns`.
    ///
    /// # Errors
    /// When the block to begin with is past the end.
    ///
    /// # Panics
    /// When the table has no column at one of the positions.
    pub fn of_blocks(
        request: ScanRequest<'_>,
        steps: &[&[usize]],
        ranges: &[Range<u32>],
    ) -> Result<Self> {
        let ScanRequest { cluster, table, options, progress } = request;
        let plan = ScanPlan::new(cluster, table, options)?;
        let chosen = plan.order().arrange(&common_blocks(table.present(), ranges));
        let all = steps.concat();
        let step = |columns: &&[usize]| Step {
            alone: WantedColumns::new(columns, table),
            of_all: WantedColumns::among(columns, &all, table),
        };
        Ok(Self {
            pages: PageScan::new(&plan, chosen, PageUse::Tuples, progress),
            log: ClusterLog::new(cluster.clone()),
            backward: plan.order().backward,
            steps: steps.iter().map(step).collect(),
            step: 0,
            has_all: false,
            table: table.clone(),
            places: Vec::new(),
            chosen: Chosen::default(),
            all: Vec::new(),
        })
    }

    /// Goes on to the next run that has visible tuples; false at the end. The rows have the columns of this step.
    ///
    /// # Errors
    /// As [`TableScan::next_batch`](crate::TableScan::next_batch).
    ///
    /// # Panics
    /// When there is no such step.
    pub fn next_run(&mut self, step: usize, damage: &mut DamageLog) -> Result<bool> {
        self.has_all = self.chosen.rows.len() * MANY > self.places.len();
        self.step = step;
        self.places.clear();
        self.all.clear();
        self.chosen.rows.clear();
        self.chosen.spans.clear();
        let Some(pages) = &mut self.pages else { return Ok(false) };
        let Step { alone, of_all } = &self.steps[step];
        let mut walk = RunWalk {
            log: &mut self.log,
            backward: self.backward,
            columns: if self.has_all { of_all } else { alone },
            places: &mut self.places,
            spans: if self.has_all { &mut self.all } else { &mut self.chosen.spans },
        };
        while walk.places.is_empty() {
            if !pages.enter_run(damage)? {
                return Ok(false);
            }
            while let Some((at, page)) = pages.next_in_run(damage)? {
                let (alive, dead) = walk.take(at, page, damage)?;
                pages.note_tuples(alive, dead);
            }
        }
        self.chosen.rows.extend(0..self.places.len() as u32);
        Ok(true)
    }

    /// The rows that are left of the run, with the columns of the step.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = TupleRow<'_>> {
        let Step { alone, of_all } = &self.steps[self.step];
        let (columns, spans) = match self.has_all {
            true => (of_all, &self.all),
            false => (alone, &self.chosen.spans),
        };
        let width = columns.width();
        let mut held: Option<(u16, BlockNumber, Page<'_>)> = None;
        self.chosen.rows.iter().enumerate().map(move |(at, row)| {
            let row = *row as usize;
            let place = self.places[row];
            let (_, block, page) = match held {
                Some(held) if held.0 == place.page => held,
                _ => *held.insert(self.page(place.page)),
            };
            let tid = Tid { block, line_pointer: place.number };
            let data = &page.bytes()[usize::from(place.start)..usize::from(place.end)];
            let at = if self.has_all { row } else { at };
            let spans = &spans[at * width..(at + 1) * width];
            TupleRow { tid, page, data, table: &self.table, columns, spans }
        })
    }

    /// Keeps some of the [`rows`](Self::rows), by their places among them, ascending; they have the columns of this step
    /// from here on.
    ///
    /// # Errors
    /// On damage to a chosen tuple, unless it is to be skipped.
    ///
    /// # Panics
    /// When there is no such step, or no row at one of the places.
    pub fn keep(&mut self, chosen: &[usize], step: usize, damage: &mut DamageLog) -> Result<()> {
        self.step = step;
        let before = std::mem::take(&mut self.chosen.rows);
        self.chosen.rows.reserve(chosen.len());
        if self.has_all {
            self.chosen.rows.extend(chosen.iter().map(|at| before[*at]));
            return Ok(());
        }
        self.chosen.spans.clear();
        let walk = &self.steps[step].alone.walk;
        for at in chosen {
            let row = before[*at];
            let place = self.places[row as usize];
            let (location, tuple) = tuple_at(self.pages.as_ref(), place);
            match walk.spans(&tuple.data(), &mut self.chosen.spans) {
                Ok(()) => self.chosen.rows.push(row),
                Err(error) => damage.report(location.damage(place.number, error.to_string()))?,
            }
        }
        Ok(())
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
    places: &'w mut Vec<Place>,
    spans: &'w mut Vec<Span>,
}

impl RunWalk<'_> {
    /// Takes the visible tuples of a page; how many they are, and how many are dead.
    fn take(
        &mut self,
        at: usize,
        found: SoundPage<'_>,
        damage: &mut DamageLog,
    ) -> Result<(u64, u64)> {
        let Self { log, columns, places, spans, .. } = self;
        let SoundPage { location, page, ahead } = found;
        let at = u16::try_from(at).expect("a run is shorter"); // infallible: 128 blocks at most
        let (before, mut faults) = (places.len(), 0);
        let each = |number, tuple: Result<HeapTuple<'_>, heap::TupleFault>| {
            ahead.ask(number);
            let what = match tuple {
                Err(fault) => location.tuple_damage(number, fault)?,
                Ok(tuple) => match columns.walk.spans(&tuple.data(), spans) {
                    Err(error) => location.damage(number, error.to_string()),
                    Ok(()) => {
                        places.push(Place::new(page, at, number, tuple));
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
        let alive = self.places.len() - before;
        Ok((alive as u64, found.dead_tuples(alive + faults)))
    }
}
