//! On which lines of the input the new rows of a table lay, so that a duplicate key is reported with its line, as COPY does.
//!
//! Rows that follow each other line by line, as most do, are one run. What is kept for each row is nothing, for each page two
//! bytes, for each batch a run or a few.
//!
//! Invariant: memory is bounded beyond that: where [`MOST_RUNS`] are kept, batches of rows with many lines keep none, and their
//! lines are unknown, never wrong.

use std::sync::Arc;

use pagemill_format::page::Page;
use pagemill_format::{BlockNumber, Tid};

use crate::heap_files::page_run::Piece;

/// Runs kept in all, besides one for each batch.
const MOST_RUNS: usize = 1 << 20;

/// A row's place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputLine {
    /// The name of the input.
    pub input: Arc<str>,
    /// The table that the load names, as messages have it.
    pub relation: Arc<str>,
    /// The line on which the row ends, from 1.
    pub line: u64,
}

/// The lines of one batch.
#[derive(Debug)]
pub(super) struct BatchLines {
    input: Arc<str>,
    runs: Vec<LineRun>,
    rows: u32,
    /// By page.
    rows_of_pages: Box<[u16]>,
}

/// Rows from this one of the batch on, each a line behind the one before.
#[derive(Debug, Clone, Copy)]
struct LineRun {
    row: u32,
    line: u64,
}

impl LineRun {
    fn line_of(self, row: u32) -> u64 {
        self.line + u64::from(row - self.row)
    }
}

impl BatchLines {
    /// For rows of this input.
    pub(super) fn new(input: Arc<str>) -> Self {
        Self { input, runs: Vec::new(), rows: 0, rows_of_pages: Box::default() }
    }

    /// Adds the next row, which ends on this line.
    #[inline]
    pub(super) fn push(&mut self, line: u64) {
        if self.runs.last().is_none_or(|last| last.line_of(self.rows) != line) {
            self.runs.push(LineRun { row: self.rows, line });
        }
        self.rows += 1;
    }

    /// Counts the rows of each page they lie on.
    pub(super) fn end(mut self, pieces: &[Piece]) -> Self {
        let pages = pieces.iter().flat_map(Piece::filled);
        self.rows_of_pages = pages.map(|page| Page::new(page).line_pointer_count()).collect();
        self
    }

    fn line(&self, page: usize, line_pointer: u16) -> Option<u64> {
        let before: u32 = self.rows_of_pages.get(..page)?.iter().map(|rows| u32::from(*rows)).sum();
        let row = before + u32::from(line_pointer).checked_sub(1)?;
        let run = self.runs.partition_point(|run| run.row <= row).checked_sub(1)?;
        Some(self.runs.get(run)?.line_of(row))
    }
}

/// The lines of all batches.
#[derive(Debug, Default)]
pub(super) struct RowLines {
    /// With the block each begins at, in the order of these.
    batches: Vec<(BlockNumber, BatchLines)>,
    runs: usize,
}

impl RowLines {
    /// Adds a batch that begins at this block.
    pub(super) fn add(&mut self, first: BlockNumber, mut batch: BatchLines) {
        if batch.runs.len() > 1 {
            self.runs += batch.runs.len();
            if self.runs > MOST_RUNS {
                self.runs -= batch.runs.len();
                batch.runs = Vec::new();
            }
        }
        batch.runs.shrink_to_fit();
        self.batches.push((first, batch));
    }

    /// The input of a new row, and its line there, if that was kept.
    pub(super) fn find(&self, row: Tid) -> Option<(Arc<str>, u64)> {
        let at = self.batches.partition_point(|(first, _)| *first <= row.block).checked_sub(1)?;
        let (first, batch) = self.batches.get(at)?;
        let page = (row.block.0 - first.0) as usize;
        Some((Arc::clone(&batch.input), batch.line(page, row.line_pointer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows on these lines, so many on each page.
    fn batch(lines: &[u64], pages: &[u16]) -> BatchLines {
        let mut batch = BatchLines::new("in".into());
        lines.iter().for_each(|line| batch.push(*line));
        BatchLines { rows_of_pages: pages.into(), ..batch }
    }

    fn line(lines: &RowLines, block: u32, line_pointer: u16) -> Option<u64> {
        lines.find(Tid { block: BlockNumber(block), line_pointer }).map(|(_, line)| line)
    }

    #[test]
    fn a_row_is_found_by_its_page_and_line_pointer() {
        let mut lines = RowLines::default();
        lines.add(BlockNumber(7), batch(&[2, 3, 4, 8, 9], &[2, 3]));
        lines.add(BlockNumber(9), batch(&[10, 20, 21], &[3]));
        let found = [(7, 1), (7, 2), (8, 1), (8, 2), (8, 3), (9, 1), (9, 2), (9, 3)];
        let found = found.map(|(block, pointer)| line(&lines, block, pointer));
        assert_eq!(found, [2, 3, 4, 8, 9, 10, 20, 21].map(Some));
        assert_eq!(line(&lines, 6, 1), None, "a row that was there before");
        assert_eq!(lines.batches[0].1.runs.len(), 2);
    }

    #[test]
    fn what_too_many_runs_would_say_is_unknown() {
        let mut lines = RowLines { runs: MOST_RUNS, ..RowLines::default() };
        lines.add(BlockNumber(0), batch(&[2, 4, 6], &[3]));
        lines.add(BlockNumber(1), batch(&[7, 8, 9], &[3]));
        assert_eq!((line(&lines, 0, 2), line(&lines, 1, 2)), (None, Some(8)));
    }
}
