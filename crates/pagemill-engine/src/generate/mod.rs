//! `generate`: the relation files of a made-up table, as PostgreSQL would have written them, with no cluster around.
//!
//! ```text
//!   numbers of rows ─► batches ─┬─► rows ─► tuples on pages ─┐
//!                               └─► rows ─► tuples on pages ─┴─► in order: blocks, files ─► maps
//! ```
//!
//! Pages are built and written as those of a load; there is no transaction, so rows are frozen under PostgreSQL's own
//! number for that, and their pages are marked all-visible and name no WAL.
//!
//! Invariants: the same options give the same bytes, whatever the number of threads; memory does not grow with the
//! table; files that were there are left alone, and a failure or an interrupt leaves none behind.

mod rows;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_format::heap_builder::{HeapBuilder, assign_blocks};
use pagemill_format::tuple_builder::{TupleForm, TupleStamp};
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, TransactionId};
use pagemill_io::{ErrorKind, Storage, WritableFork, WriteSettings, check_interrupt};
use pagemill_stream::WriteStream;

use self::rows::GeneratedRows;
use crate::error::{Error, Result};
use crate::heap_files::maps::{free_space_pages, room_category, visibility_pages};
use crate::heap_files::new_fork::{NewFork, end_of};
use crate::heap_files::page_run::{PageFill, PageRun, Piece, Pieces};
use crate::refusal::LoadRefusal;

pub use self::rows::GeneratedTable;

/// Pages of a batch, about: enough for the threads to meet seldom.
const BATCH_PAGES: u64 = 512;
/// Batches of a thread that wait to be written.
const WAITING_BATCHES: usize = 1;
/// Rows that nobody inserted and everybody sees.
const STAMP: TransactionId = TransactionId::FROZEN;

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub struct GenerateOptions {
    /// The table.
    pub table: GeneratedTable,
    /// Its rows.
    pub rows: u64,
    /// What random numbers begin with.
    pub seed: u64,
    /// How full pages are made, in percent.
    pub fillfactor: u8,
    /// Pages carry checksums.
    pub checksums: bool,
    /// Threads that form rows.
    pub jobs: usize,
    /// How files are made longer and filled.
    pub writing: WriteSettings,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateSummary {
    /// The first file of the main fork.
    pub path: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Blocks of the main fork.
    pub blocks: u32,
}

/// Makes the files of a table in `directory`, which is made too if it is not there. They are named after the table,
/// as those of a relation are after its number: segments, free-space map and visibility map.
///
/// # Errors
/// When there are such files already, when the table would be larger than one can be, or when something cannot be
/// written: no file stays then.
pub fn generate(
    storage: &Storage,
    directory: &Path,
    options: &GenerateOptions,
) -> Result<GenerateSummary> {
    make_directory(storage, directory)?;
    let mut generator = Generator {
        storage,
        options,
        path: directory.join(options.table.name()),
        form: TupleForm::new(&options.table.columns())?,
        made: Vec::new(),
    };
    generator.check_size()?;
    let made = generator.make();
    if made.is_err() {
        // The failure that is told is the one before.
        generator.made.iter().for_each(|files| drop(files.remove_made()));
    }
    let blocks = made?;
    Ok(GenerateSummary { path: generator.path, rows: options.rows, blocks })
}

fn make_directory(storage: &Storage, directory: &Path) -> Result<()> {
    match storage.create_dir(directory) {
        Ok(()) => storage.sync_dir_of(directory).map_err(Error::Output),
        Err(error) if matches!(error.kind(), ErrorKind::Exists) => Ok(()),
        Err(error) => Err(Error::Output(error)),
    }
}

/// A table in the making.
struct Generator<'a> {
    storage: &'a Storage,
    options: &'a GenerateOptions,
    path: PathBuf,
    form: TupleForm,
    /// The forks begun.
    made: Vec<Arc<WritableFork>>,
}

impl Generator<'_> {
    /// Refuses a table that no file system could show to be too large within a reasonable time.
    fn check_size(&self) -> Result<()> {
        let rows = self.options.rows;
        match rows / self.rows_on_page(rows)? < u64::from(u32::MAX) {
            true => Ok(()),
            false => Err(too_large()),
        }
    }

    /// Makes all forks, and tells the blocks of the main one.
    fn make(&mut self) -> Result<u32> {
        let expected = self.options.rows / self.rows_on_page(self.options.rows)? + 1;
        let stream = self.new_fork(Fork::Main, u32::try_from(expected).unwrap_or(u32::MAX))?;
        let pieces = Pieces::default();
        let mut heap = HeapFile {
            path: self.path.clone(),
            stream,
            next: 0,
            categories: Vec::new(),
            pieces: pieces.clone(),
        };
        self.form_batches(&pieces, |run| heap.add(run))?;
        let HeapFile { stream, next: blocks, categories, .. } = heap;
        stream.finish().map_err(Error::Output)?;
        if blocks > 0 {
            let mut map = self.new_fork(Fork::Fsm, 0)?;
            free_space_pages(&categories, |block, page| {
                map.write_page(block, page).map_err(Error::Output)
            })?;
            map.finish().map_err(Error::Output)?;
            let mut map = self.new_fork(Fork::Vm, 0)?;
            visibility_pages(blocks, |block, page| {
                map.write_page(block, page).map_err(Error::Output)
            })?;
            map.finish().map_err(Error::Output)?;
        }
        Ok(blocks)
    }

    fn new_fork(&mut self, fork: Fork, expected: u32) -> Result<WriteStream> {
        let GenerateOptions { writing, checksums, .. } = *self.options;
        let new = NewFork { fork, writing, checksums, expected };
        let stream = new.create(self.storage, &self.path);
        let stream = stream.map_err(Error::Output)?;
        self.made.push(stream.space().fork().clone());
        Ok(stream)
    }

    /// Has the threads form all batches, and takes them in order.
    fn form_batches(
        &self,
        pieces: &Pieces,
        mut take: impl FnMut(Vec<Piece>) -> Result<()>,
    ) -> Result<()> {
        let jobs = self.options.jobs.max(1);
        std::thread::scope(|scope| {
            let (mut runs, mut threads) = (Vec::new(), Vec::new());
            for job in 0..jobs {
                let (sender, receiver) = sync_channel(WAITING_BATCHES);
                let work = move || {
                    for batch in self.batches().skip(job).step_by(jobs) {
                        let run = batch.and_then(|batch| self.form_batch(batch, pieces));
                        // Nobody takes any more after a failure.
                        if sender.send(run).is_err() {
                            return;
                        }
                    }
                };
                threads.push(Builder::new().spawn_scoped(scope, work).map_err(Error::Threads)?);
                runs.push(receiver);
            }
            let taken = take_in_turn(&runs, &mut take);
            drop(runs);
            taken.and(join(threads))
        })
    }

    /// The numbers of the rows of each batch, which fill their pages, as far as all rows are of a size.
    fn batches(&self) -> impl Iterator<Item = Result<Range<u64>>> {
        let end = self.options.rows.saturating_add(1);
        let mut next = 1;
        std::iter::from_fn(move || {
            let first = next;
            (first < end).then(|| {
                next = end;
                let rows = self.rows_on_page(first)? * BATCH_PAGES;
                next = first.saturating_add(rows).min(end);
                Ok(first..next)
            })
        })
    }

    /// How many rows of the size of this one a page holds; at least 1.
    fn rows_on_page(&self, number: u64) -> Result<u64> {
        let mut rows = GeneratedRows::new(self.options.table, self.options.seed);
        let row = rows.row(number);
        let mut page = HeapBuilder::new(vec![0; BLOCK_SIZE], self.options.fillfactor, true);
        let mut count = 0;
        while page.add(&self.form, &row, TupleStamp::frozen(STAMP, 0))?.is_some() {
            count += 1;
        }
        Ok(count.max(1))
    }

    fn form_batch(&self, batch: Range<u64>, pieces: &Pieces) -> Result<Vec<Piece>> {
        let fillfactor = self.options.fillfactor;
        let stamp = TupleStamp::frozen(STAMP, 0);
        let mut run =
            PageRun::new(pieces.clone(), PageFill { fillfactor, all_visible: true, stamp });
        let mut rows = GeneratedRows::new(self.options.table, self.options.seed);
        for number in batch {
            let row = rows.row(number);
            run.add(&self.form, &row, self.form.measure(&row)?)?;
        }
        Ok(run.finish())
    }
}

/// Takes a run of each thread, and again, until there are no more.
fn take_in_turn(
    runs: &[Receiver<Result<Vec<Piece>>>],
    take: &mut impl FnMut(Vec<Piece>) -> Result<()>,
) -> Result<()> {
    let in_turn = runs.iter().cycle().map_while(|run| run.recv().ok());
    in_turn.into_iter().try_for_each(|run| take(run?))
}

/// Waits for all threads, and says whether one of them panicked.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) -> Result<()> {
    let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    if ends.iter().any(std::result::Result::is_err) { Err(Error::Worker) } else { Ok(()) }
}

fn too_large() -> Error {
    Error::refused(LoadRefusal::TooManyBlocks)
}

/// The main fork.
struct HeapFile {
    /// Its first file.
    path: PathBuf,
    stream: WriteStream,
    next: u32,
    /// How much room each page has.
    categories: Vec<u8>,
    pieces: Pieces,
}

impl HeapFile {
    /// Adds pages, whose tuples learn where they are, and gives their memory back.
    fn add(&mut self, run: Vec<Piece>) -> Result<()> {
        // Here, as the caller still removes every fork that was begun.
        check_interrupt(&self.path).map_err(Error::Output)?;
        for Piece { mut buffer, pages } in run {
            let first = BlockNumber(self.next);
            self.next = end_of(self.next, pages).ok_or_else(too_large)?;
            let blocks = buffer.as_chunks_mut::<BLOCK_SIZE>().0;
            let blocks = blocks.get_mut(..pages).expect("a piece holds its pages"); // infallible: they were built in it
            assign_blocks(blocks, first);
            self.categories.extend(blocks.iter().map(room_category));
            self.stream.write_run(first, buffer, pages).map_err(Error::Output)?;
            self.pieces.put(self.stream.buffer().map_err(Error::Output)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
