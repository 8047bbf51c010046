//! A table as a directory of files, one directory for each value of some columns: `NAME=VALUE/…/part-0.parquet`.
//!
//! ```text
//! job 0: shares 0 … k  ── batches ─► window ─ by value ─► rows of each value ─ row groups ─► NAME=VALUE/part-0
//! job 1: shares k+1 …  ── batches ─► window ─ by value ─► rows of each value ─ row groups ─► NAME=VALUE/part-1
//! ```
//!
//! Nothing is sorted and nothing spilled: rows of a value wait in memory until they make a row group, or all that wait take too
//! much memory; then those of the values with most of them are written. A file is open only while it is written to.
//!
//! Invariants: the files of a value, by their numbers, have its rows in the order of the table; memory for rows that wait is
//! bounded, whatever the number of values, and that is bounded, too.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;
use pagemill_engine::{
    DamageLog, Error as EngineError, ExportSummary, IndexOrder, OnDamage, Progress,
};
use pagemill_io::{OutputDirectory, check_interrupt};
use pagemill_types::builtin::oid;

use crate::error::{Error, Result};
use crate::export::ArrowExport;
use crate::file_writer::{Encoder, Piece, TableFile};
use crate::options::FileFormat;
use crate::partition_names::directory;
use crate::sink::SharedFile;
use crate::table_part::{BatchSink, TablePart};

/// The most directories: with more of them, files are too small to be of use.
const MOST_DIRECTORIES: usize = 4096;
/// Memory for rows that wait, of all jobs.
const WAITING_BYTES: usize = 512 << 20;
/// Rows of one value that make a row group, by their bytes.
const GROUP_BYTES: usize = 128 << 20;
/// Rows that are sorted out at a time, so that those of one value are not a few each.
const WINDOW_ROWS: usize = 16 * 8192;
const WINDOW_BYTES: usize = 64 << 20;
/// Rows of a batch in files that have batches.
const BATCH_ROWS: usize = 65_536;
/// What a batch takes for each column beside its values.
const COLUMN_BYTES: usize = 256;

impl ArrowExport<'_> {
    /// Writes all rows into a directory, by the values of the columns that the options name.
    ///
    /// # Errors
    /// As [`write`](Self::write); with too many values, or one that cannot be a name; when a signal came that is watched.
    pub fn write_partitioned(
        &self,
        directory: &OutputDirectory,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let jobs = self.options.scan.jobs.max(1);
        let dataset = Dataset::new(self, directory, jobs);
        let mut jobs: Vec<_> = (0..jobs).map(|number| JobFiles::new(&dataset, number)).collect();
        let mut summary = ExportSummary::default();
        for part in self.source.parts() {
            let part = self.part(part, progress, damage)?;
            let shares = part.shares()?;
            let each = shares.len().div_ceil(jobs.len()).max(1);
            let policy = damage.policy();
            let pairs: Vec<_> = jobs.iter_mut().zip(shares.chunks(each)).collect();
            let work = |(files, shares): (&mut JobFiles<'_>, &[Range<u32>])| {
                files.run(&part, shares, policy)
            };
            for (found, did) in dataset.in_threads(pairs, work)? {
                damage.append(&found)?;
                summary.add(did);
            }
        }
        dataset.in_threads(jobs, JobFiles::finish)?;
        Ok(summary)
    }

    /// The same in the order of an index of the table, which has no partitions.
    ///
    /// # Errors
    /// As [`write_partitioned`](Self::write_partitioned).
    pub fn write_partitioned_in_order(
        &self,
        order: &IndexOrder,
        directory: &OutputDirectory,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let dataset = Dataset::new(self, directory, 1);
        let mut files = JobFiles::new(&dataset, 0);
        let part = self.part(self.source.named(), progress, damage)?;
        let mut job = part.job()?;
        let database = self.source.database();
        let mut scan = order.scan(database, part.request(), &part.columns, damage)?;
        while let Some(row) = scan.next_row(damage)? {
            job.take(&[row], damage, &mut files)?;
        }
        job.flush(&mut files)?;
        files.finish()?;
        Ok(job.summary())
    }
}

/// Rows of a window: in which batch, at which place.
type Places = Vec<(usize, usize)>;

/// What the jobs have in common.
struct Dataset<'d> {
    export: &'d ArrowExport<'d>,
    directory: &'d OutputDirectory,
    /// The directories that some job has rows for.
    known: Mutex<HashSet<PathBuf>>,
    /// A job failed: the others need not go on.
    has_failed: AtomicBool,
    /// Memory for the rows that wait in one job.
    waiting_bytes: usize,
}

impl<'d> Dataset<'d> {
    fn new(export: &'d ArrowExport<'d>, directory: &'d OutputDirectory, jobs: usize) -> Self {
        Self {
            export,
            directory,
            known: Mutex::default(),
            has_failed: AtomicBool::new(false),
            waiting_bytes: WAITING_BYTES / jobs,
        }
    }

    /// Does some work with each of these, each in a thread of its own. Of several errors the one that led to the others is
    /// given.
    fn in_threads<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        work: impl Fn(I) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let watched =
            |item| work(item).inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed));
        let results: Vec<Result<T>> = std::thread::scope(|scope| {
            let started = |item| Builder::new().spawn_scoped(scope, || watched(item));
            let threads: Vec<_> = items.into_iter().map(started).collect();
            let ended = threads.into_iter().map(|thread| match thread.map(|own| own.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(EngineError::Worker.into()),
                Err(error) => Err(EngineError::Threads(error).into()),
            });
            ended.collect()
        });
        let (mut done, mut failed) = (Vec::new(), None);
        for result in results {
            match result {
                Ok(result) => done.push(result),
                Err(Error::Engine(EngineError::Cancelled)) if failed.is_some() => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Takes note of a directory.
    ///
    /// # Errors
    /// When there are too many.
    fn admit(&self, path: &Path) -> Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(path) {
            return Ok(());
        }
        if known.len() == MOST_DIRECTORIES {
            let table = self.export.source.selected().display_name();
            return Err(Error::Partition(format!(
                "{table}: more than {MOST_DIRECTORIES} different values to partition by: choose columns with fewer"
            )));
        }
        known.insert(path.to_owned());
        Ok(())
    }
}

/// The files of one job.
struct JobFiles<'d> {
    dataset: &'d Dataset<'d>,
    number: usize,
    /// Batches that are not sorted out yet.
    window: Vec<RecordBatch>,
    window_rows: usize,
    window_bytes: usize,
    /// The values that came, by [`write_key`], and which of the files are theirs.
    known: HashMap<Box<[u8]>, usize>,
    files: Vec<ValueFile>,
    waiting_bytes: usize,
}

/// The file of one value.
struct ValueFile {
    path: PathBuf,
    /// Rows that wait.
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    open: Option<OpenFile>,
}

struct OpenFile {
    file: TableFile<SharedFile>,
    shared: SharedFile,
    encoder: Encoder,
}

impl BatchSink for JobFiles<'_> {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        check_interrupt(self.dataset.directory.target()).map_err(EngineError::Output)?;
        if self.dataset.has_failed.load(Ordering::Relaxed) {
            return Err(EngineError::Cancelled.into());
        }
        self.window_rows += batch.num_rows();
        self.window_bytes += batch.get_array_memory_size();
        self.window.push(batch);
        match self.window_rows >= WINDOW_ROWS || self.window_bytes >= WINDOW_BYTES {
            true => self.sort_out(),
            false => Ok(()),
        }
    }
}

impl<'d> JobFiles<'d> {
    fn new(dataset: &'d Dataset<'d>, number: usize) -> Self {
        Self {
            dataset,
            number,
            window: Vec::new(),
            window_rows: 0,
            window_bytes: 0,
            known: HashMap::new(),
            files: Vec::new(),
            waiting_bytes: 0,
        }
    }

    /// Reads shares of a part, one after the other.
    fn run(
        &mut self,
        part: &TablePart<'_>,
        shares: &[Range<u32>],
        policy: OnDamage,
    ) -> Result<(DamageLog, ExportSummary)> {
        let (mut job, mut damage) = (part.job()?, DamageLog::new(policy));
        for share in shares {
            job.run(part.scan(share)?, &mut damage, self)?;
        }
        Ok((damage, job.summary()))
    }

    /// Gives the rows of the window to the files of their values.
    fn sort_out(&mut self) -> Result<()> {
        let window = std::mem::take(&mut self.window);
        let whole = std::mem::take(&mut self.window_rows);
        self.window_bytes = 0;
        let places = self.places(&window)?;
        let columns: Vec<usize> = (0..self.dataset.export.plan.file_columns()).collect();
        let batches: Vec<RecordBatch> =
            window.iter().map(|batch| batch.project(&columns)).collect::<Result<_, _>>()?;
        drop(window);
        let lent: Vec<&RecordBatch> = batches.iter().collect();
        for (file, places) in places {
            match places.len() == whole {
                true => batches.iter().for_each(|batch| self.wait(file, batch.clone())),
                false => self.wait(file, interleave_record_batch(&lent, &places)?),
            }
            let found = &self.files[file];
            if found.rows >= self.most_rows() || found.bytes >= GROUP_BYTES {
                self.write_waiting(file)?;
            }
        }
        self.keep_within_memory()
    }

    /// For each value of the window its file, and where its rows are: in which batch, at which place.
    fn places(&mut self, window: &[RecordBatch]) -> Result<Vec<(usize, Places)>> {
        let first = self.dataset.export.plan.file_columns();
        let (mut found, mut slots) = (Vec::new(), HashMap::new());
        let (mut last, mut key, mut slot) = (Vec::new(), Vec::new(), None);
        for (number, batch) in window.iter().enumerate() {
            let texts: Vec<&StringArray> =
                batch.columns()[first..].iter().map(|column| column.as_string()).collect();
            for row in 0..batch.num_rows() {
                key.clear();
                write_key(&texts, row, &mut key);
                let at = match slot {
                    Some(slot) if key == last => slot,
                    _ => {
                        let file = self.file_of(&key, &texts, row)?;
                        *slots.entry(file).or_insert_with(|| {
                            found.push((file, Vec::new()));
                            found.len() - 1
                        })
                    }
                };
                found[at].1.push((number, row));
                slot = Some(at);
                std::mem::swap(&mut key, &mut last);
            }
        }
        Ok(found)
    }

    /// The file for the values of a row.
    fn file_of(&mut self, key: &[u8], texts: &[&StringArray], row: usize) -> Result<usize> {
        if let Some(file) = self.known.get(key) {
            return Ok(*file);
        }
        let export = self.dataset.export;
        let columns = export.plan.partition_columns();
        let value = |(column, texts): (&crate::plan::ColumnPlan, &&'_ StringArray)| {
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            match (column.value_type.base, text.as_deref()) {
                // COPY's letters are words to all who read directories.
                (oid::BOOL, Some("t")) => Some("true".to_owned()),
                (oid::BOOL, Some("f")) => Some("false".to_owned()),
                _ => text,
            }
        };
        let values: Vec<Option<String>> = columns.iter().zip(texts).map(value).collect();
        let named =
            columns.iter().map(|c| c.name.as_str()).zip(values.iter().map(Option::as_deref));
        let path = directory(named).map_err(|(at, what)| {
            let (table, column) = (export.source.selected().display_name(), &columns[at].name);
            Error::Partition(format!(
                "{table}: column \"{column}\" cannot be partitioned by: it has {what}"
            ))
        })?;
        self.dataset.admit(&path)?;
        let name = format!("part-{}{}", self.number, export.options.format.extension());
        let path = path.join(name);
        self.files.push(ValueFile { path, batches: Vec::new(), rows: 0, bytes: 0, open: None });
        self.known.insert(key.into(), self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    fn wait(&mut self, file: usize, batch: RecordBatch) {
        let bytes = batch.get_array_memory_size() + COLUMN_BYTES * batch.num_columns();
        let file = &mut self.files[file];
        file.rows += batch.num_rows();
        file.bytes += bytes;
        file.batches.push(batch);
        self.waiting_bytes += bytes;
    }

    fn most_rows(&self) -> usize {
        let options = self.dataset.export.options;
        options.row_group_rows.unwrap_or(crate::file_writer::ROW_GROUP_ROWS)
    }

    /// Writes what waits of the values with most of it, once it is too much.
    fn keep_within_memory(&mut self) -> Result<()> {
        if self.waiting_bytes <= self.dataset.waiting_bytes {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|file| std::cmp::Reverse(self.files[*file].bytes));
        for file in order {
            if self.waiting_bytes <= self.dataset.waiting_bytes / 2 {
                break;
            }
            self.write_waiting(file)?;
        }
        Ok(())
    }

    /// Writes the rows of a value that wait.
    fn write_waiting(&mut self, file: usize) -> Result<()> {
        let Dataset { export, directory, .. } = self.dataset;
        let found = &mut self.files[file];
        let batches = std::mem::take(&mut found.batches);
        let Some(first) = batches.first() else { return Ok(()) };
        self.waiting_bytes -= std::mem::take(&mut found.bytes);
        found.rows = 0;
        let batch = concat_batches(&first.schema(), &batches)?;
        drop(batches);
        let open = match &mut found.open {
            Some(open) => open,
            None => {
                let made = directory.file(&found.path).map_err(EngineError::Output)?;
                let shared = SharedFile::new(made);
                let begun = TableFile::begin(shared.clone(), &export.schema, export.options)?;
                let (file, encoder) = (begun.0, Encoder::new(&begun.1));
                found.open.insert(OpenFile { file, shared, encoder })
            }
        };
        open.write(batch, export.options.format)
    }

    /// Writes all that waits, and the ends of all files.
    fn finish(mut self) -> Result<()> {
        self.sort_out()?;
        for file in 0..self.files.len() {
            self.write_waiting(file)?;
            if let Some(OpenFile { file, .. }) = self.files[file].open.take() {
                file.finish()?;
            }
        }
        Ok(())
    }
}

impl OpenFile {
    fn write(&mut self, batch: RecordBatch, format: FileFormat) -> Result<()> {
        let Self { file, shared, encoder } = self;
        let mut emit = |piece: Piece| file.write(piece);
        let most_rows = if format == FileFormat::Parquet { usize::MAX } else { BATCH_ROWS };
        let mut from = 0;
        while from < batch.num_rows() {
            let rows = most_rows.min(batch.num_rows() - from);
            encoder.push(batch.slice(from, rows), &mut emit)?;
            from += rows;
        }
        encoder.finish(&mut emit)?;
        file.flush()?;
        shared.rest();
        Ok(())
    }
}

/// Appends bytes that are the same for the same values only: of each whether it is there, its length, and the text.
fn write_key(texts: &[&StringArray], row: usize, key: &mut Vec<u8>) {
    for text in texts {
        if text.is_null(row) {
            key.push(0);
            continue;
        }
        let text = text.value(row).as_bytes();
        key.push(1);
        key.extend_from_slice(&text.len().to_le_bytes());
        key.extend_from_slice(text);
    }
}
