//! A table as COPY would write it, or as lines of JSON.
//!
//! One job formats and writes in turn. Several jobs scan shares of the table, each in its own
//! thread, and one writer puts their output together in the order of the table: share `n` belongs
//! to job `n mod jobs`, whose buffers come through a bounded channel. So memory stays the same
//! however large the table, and however uneven the rows.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_cluster::heap::{self, TupleFault};
use pagemill_cluster::{ClusterLog, ValueCatalog};
use pagemill_format::tuple::HeapTuple;
use pagemill_io::ByteSink;

use crate::copy::to::{CopyFormat, CopyOptions};
use crate::damage::{DamageLog, OnDamage, value_damage};
use crate::encoding::Transcoder;
use crate::error::{Error, Result};
use crate::page_scan::{BlockLocation, PageScan, PageUse, SoundPage};
use crate::progress::Progress;
use crate::row_writer::{PrintedColumn, RowWriter, ValueFault, printed_columns};
use crate::scan_plan::{ScanOptions, ScanPlan};
use crate::table::{Shares, Table};

/// A buffer is written out once it holds this many bytes: small enough to stay in the
/// processor's cache between being filled and being copied by the kernel.
pub(crate) const FLUSH_BYTES: usize = 256 << 10;
/// What a buffer starts with: room for a last row of usual size.
pub(crate) const BUFFER_BYTES: usize = FLUSH_BYTES + FLUSH_BYTES / 4;
/// The largest buffer that is kept for further use.
const LARGEST_BUFFER_BYTES: usize = 4 * FLUSH_BYTES;
/// Blocks of a share (2 MiB).
const SHARE_BLOCKS: u32 = 256;
/// Buffers a job may be ahead of the writer.
const BUFFERS_AHEAD: usize = 4;

/// What a row becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowForm {
    /// A row of COPY, as its options say.
    #[default]
    Copy,
    /// An object of JSON on a line of its own, as `row_to_json` writes it.
    Json,
}

/// What to export, and how.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// What rows become.
    pub form: RowForm,
    /// COPY's options; those of its fields mean nothing for JSON.
    pub copy: CopyOptions,
    /// Columns by name; all that COPY would print when `None`.
    pub columns: Option<Vec<Box<[u8]>>>,
    /// The encoding to convert to; when `None`, as stored, and UTF-8 for JSON, which has no other.
    pub encoding: Option<String>,
    /// How to scan.
    pub scan: ScanOptions,
}

/// What an export did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Rows written.
    pub rows: u64,
    /// Pages of TOAST tables and indexes found in the threads' caches.
    pub buffer_hits: u64,
    /// Such pages that were read.
    pub buffer_misses: u64,
}

impl ExportSummary {
    /// Adds what another export did.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.buffer_hits += other.buffer_hits;
        self.buffer_misses += other.buffer_misses;
    }
}

/// A table prepared for export: everything that can be refused has been checked.
pub struct Export<'a> {
    pub(crate) catalog: &'a ValueCatalog,
    pub(crate) table: &'a Arc<Table>,
    pub(crate) columns: Vec<PrintedColumn>,
    pub(crate) form: RowForm,
    pub(crate) copy: CopyFormat,
    pub(crate) transcoder: Option<Transcoder>,
    pub(crate) scan: ScanOptions,
}

impl<'a> Export<'a> {
    /// Works out columns, format and encoding.
    ///
    /// # Errors
    /// When a column or an option is wrong, or a type cannot be printed.
    pub fn prepare(
        catalog: &'a ValueCatalog,
        table: &'a Arc<Table>,
        options: &ExportOptions,
    ) -> Result<Self> {
        let columns = printed_columns(catalog, &table.relation, options.columns.as_deref())?;
        let names: Vec<&[u8]> = columns.iter().map(|c| &*c.name).collect();
        let database = catalog.database();
        let major = database.cluster().version().major();
        let encoding = database.row().encoding;
        let copy = CopyFormat::new(&options.copy.stored(encoding, &names)?, &names, major)?;
        let form = options.form;
        let wanted = options.encoding.as_deref().or((form == RowForm::Json).then_some("UTF8"));
        let transcoder = match wanted {
            Some(name) => Transcoder::new(encoding, name)?,
            None => None,
        };
        Ok(Self { catalog, table, columns, form, copy, transcoder, scan: options.scan })
    }

    /// The names of the columns that are printed, in order.
    pub fn column_names(&self) -> Vec<Box<[u8]>> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Writes the header line, where one was asked for.
    ///
    /// # Errors
    /// When it cannot be converted or written.
    pub fn write_header(&self, output: &mut dyn ByteSink) -> Result<()> {
        let mut line = Vec::new();
        self.copy.write_header(&mut line);
        if let Some(transcoder) = &self.transcoder {
            let stored = std::mem::take(&mut line);
            transcoder.convert(&stored, &mut line)?;
        }
        output.write_all(&line).map_err(Error::Output)
    }

    /// Writes all rows, in the order of the table, or in the one that the options say.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; when files cannot be read or the output written, or the
    /// block to begin with is past the end.
    pub fn write_rows(
        &self,
        output: &mut dyn ByteSink,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let plan = ScanPlan::new(self.catalog.database().cluster(), self.table, self.scan)?;
        let shares = plan.shares(SHARE_BLOCKS);
        let jobs = self.scan.jobs.min(shares.count() as usize);
        if jobs <= 1 {
            let mut flush = |buffer: &mut Vec<u8>| {
                output.write_all(buffer).map_err(Error::Output)?;
                recycle(buffer);
                Ok(())
            };
            let mut job = Job::new(self, &plan, progress);
            job.run(plan.ranges(), damage, &mut flush)?;
            job.flush(&mut flush)?;
            return Ok(job.summary());
        }
        let work = SharedWork { plan: &plan, shares, jobs, progress };
        self.write_in_parallel(&work, output, damage)
    }

    fn write_in_parallel(
        &self,
        work: &SharedWork<'_>,
        output: &mut dyn ByteSink,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let SharedWork { plan, shares, jobs, progress } = work;
        let (policy, jobs) = (damage.policy(), *jobs);
        std::thread::scope(|scope| {
            let (mut receivers, mut threads) = (Vec::new(), Vec::new());
            for number in 0..jobs {
                let (sender, receiver) = sync_channel(BUFFERS_AHEAD);
                let (spare_sender, spare) = sync_channel(BUFFERS_AHEAD + 2);
                let job = move || {
                    let channel = Channel { sender, spare, large: None };
                    let own = (0..shares.count()).skip(number).step_by(jobs);
                    let ranges = own.filter_map(|share| shares.get(share));
                    Job::new(self, plan, progress).run_shares(ranges, policy, channel)
                };
                threads.push(Builder::new().spawn_scoped(scope, job).map_err(Error::Threads)?);
                receivers.push(JobOutput { receiver, spare: spare_sender });
            }
            let mut summary = ExportSummary::default();
            let mut turns = (0..shares.count()).zip(receivers.iter().cycle());
            let written =
                turns.try_for_each(|(_, job)| job.write_share(output, damage, &mut summary));
            // Jobs that still have something to send end when nobody receives it.
            drop(receivers);
            let ended = join(threads);
            written.and(ended).map(|()| summary)
        })
    }
}

/// What several jobs do together.
struct SharedWork<'a> {
    plan: &'a ScanPlan,
    shares: Shares,
    jobs: usize,
    progress: &'a Progress,
}

/// Waits for all threads, and says whether one of them panicked.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) -> Result<()> {
    let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    if ends.iter().all(std::result::Result::is_ok) { Ok(()) } else { Err(Error::Worker) }
}

/// What a job sends to the writer.
enum Message {
    /// Output to be written. What is dropped after that lets a job go on that waits for it.
    Bytes(Vec<u8>, Option<Unwritten>),
    /// A share is done: what it found damaged, and what it did.
    ShareDone(DamageLog, ExportSummary),
    /// The job failed; nothing more will come.
    Failed(Error),
}

/// Goes with a large buffer until that is written; nothing is ever sent.
type Unwritten = SyncSender<Infallible>;

struct Channel {
    sender: SyncSender<Message>,
    /// Written buffers come back to be filled again.
    spare: Receiver<Vec<u8>>,
    /// Ends once the last large buffer that was sent is written.
    large: Option<Receiver<Infallible>>,
}

impl Channel {
    /// Sends a buffer and puts an empty one in its place. The queue is bounded in buffers, so of
    /// those that grew for a large value only one is in it at a time.
    fn send(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let next = self.spare.try_recv().unwrap_or_default();
        let full = std::mem::replace(buffer, next);
        let mut unwritten = None;
        if full.capacity() > LARGEST_BUFFER_BYTES {
            if let Some(large) = self.large.take() {
                // It ends with an error, whether the buffer was written or the writer is gone.
                let _ = large.recv();
            }
            let (sender, large) = sync_channel(1);
            (unwritten, self.large) = (Some(sender), Some(large));
        }
        self.sender.send(Message::Bytes(full, unwritten)).map_err(|_| Error::Worker)
    }
}

/// The writer's end of a job's [`Channel`].
struct JobOutput {
    receiver: Receiver<Message>,
    /// Where written buffers go back.
    spare: SyncSender<Vec<u8>>,
}

impl JobOutput {
    /// Writes what one share of the table yields.
    fn write_share(
        &self,
        output: &mut dyn ByteSink,
        damage: &mut DamageLog,
        summary: &mut ExportSummary,
    ) -> Result<()> {
        loop {
            match self.receiver.recv() {
                Ok(Message::Bytes(mut buffer, unwritten)) => {
                    output.write_all(&buffer).map_err(Error::Output)?;
                    recycle(&mut buffer);
                    drop(unwritten);
                    // The job may be done and gone; then the buffer is of no more use.
                    let _ = self.spare.try_send(buffer);
                }
                Ok(Message::ShareDone(found, did)) => {
                    damage.append(&found)?;
                    summary.add(did);
                    return Ok(());
                }
                Ok(Message::Failed(error)) => return Err(error),
                Err(_) => return Err(Error::Worker),
            }
        }
    }
}

/// Empties a buffer for its next use; one that grew for a large value is given back.
pub(crate) fn recycle(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > LARGEST_BUFFER_BYTES {
        *buffer = Vec::with_capacity(BUFFER_BYTES);
    }
}

/// One thread's part in an export.
struct Job<'a> {
    plan: &'a ScanPlan,
    progress: &'a Progress,
    log: ClusterLog,
    writer: RowWriter<'a>,
    columns: &'a [PrintedColumn],
    buffer: Vec<u8>,
    rows: u64,
}

impl<'a> Job<'a> {
    fn new(export: &'a Export<'_>, plan: &'a ScanPlan, progress: &'a Progress) -> Self {
        let Export { table, columns, .. } = export;
        Self {
            plan,
            progress,
            log: ClusterLog::new(plan.cluster().clone()),
            writer: RowWriter::new(export, &table.relation, columns),
            columns,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            rows: 0,
        }
    }

    /// Formats the rows of some ranges, handing over the buffer whenever it is full.
    fn run(
        &mut self,
        ranges: impl IntoIterator<Item = Range<u32>>,
        damage: &mut DamageLog,
        flush: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let Self { plan, progress, log, writer, columns, buffer, rows } = self;
        let Some(mut scan) = PageScan::new(plan, ranges, PageUse::Tuples, progress) else {
            return Ok(());
        };
        let backward = plan.order().backward;
        while let Some(SoundPage { location, page, ahead }) = scan.next_page(damage)? {
            let each = |number, tuple: std::result::Result<HeapTuple<'_>, TupleFault>| {
                ahead.ask(number);
                match tuple {
                    Ok(tuple) => match writer.write(tuple, buffer) {
                        Ok(()) => *rows += 1,
                        Err(fault) => {
                            damage.report(fault_damage(location, number, columns, fault)?)?;
                        }
                    },
                    Err(fault) => damage.report(location.tuple_damage(number, fault)?)?,
                }
                if buffer.len() >= FLUSH_BYTES { flush(buffer) } else { Ok(()) }
            };
            match backward {
                false => heap::visit_tuples(page, log, each)?,
                true => heap::visit_tuples_backward(page, log, each)?,
            }
        }
        Ok(())
    }

    fn flush(&mut self, flush: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { flush(&mut self.buffer) }
    }

    fn summary(&self) -> ExportSummary {
        let (buffer_hits, buffer_misses) = self.writer.cache_counts();
        ExportSummary { rows: self.rows, buffer_hits, buffer_misses }
    }

    /// Formats one share after the other. A writer that is gone ends the work silently: it is the
    /// one that knows why.
    fn run_shares(
        mut self,
        shares: impl Iterator<Item = Range<u32>>,
        policy: OnDamage,
        mut channel: Channel,
    ) {
        for range in shares {
            let mut damage = DamageLog::new(policy);
            let before = self.summary();
            let mut flush = |buffer: &mut Vec<u8>| channel.send(buffer);
            let done =
                self.run([range], &mut damage, &mut flush).and_then(|()| self.flush(&mut flush));
            let message = match done {
                Ok(()) => Message::ShareDone(damage, self.summary().since(before)),
                Err(error) => Message::Failed(error),
            };
            if matches!(message, Message::Failed(_)) | channel.sender.send(message).is_err() {
                return;
            }
        }
    }
}

impl ExportSummary {
    fn since(self, earlier: Self) -> Self {
        Self {
            rows: self.rows - earlier.rows,
            buffer_hits: self.buffer_hits - earlier.buffer_hits,
            buffer_misses: self.buffer_misses - earlier.buffer_misses,
        }
    }
}

/// Damage to a value.
#[cold]
pub(crate) fn fault_damage(
    location: BlockLocation<'_>,
    number: u16,
    columns: &[PrintedColumn],
    fault: ValueFault,
) -> Result<pagemill_cluster::Damage> {
    let what = value_damage(fault.error)?.to_string();
    let damage = location.damage(number, what);
    Ok(match fault.column.and_then(|index| columns.get(index)) {
        Some(column) => damage.in_column(String::from_utf8_lossy(&column.name)),
        None => damage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_an_error_and_no_panic() {
        let ended = std::thread::scope(|scope| {
            join(vec![scope.spawn(|| {}), scope.spawn(|| panic!("on purpose"))])
        });
        assert!(matches!(ended, Err(Error::Worker)));
        std::thread::scope(|scope| join(vec![scope.spawn(|| {})])).unwrap();
    }

    #[test]
    fn one_large_buffer_at_a_time_waits_to_be_written() {
        let (sender, receiver) = sync_channel(BUFFERS_AHEAD);
        let (_spare, spare) = sync_channel(1);
        let mut channel = Channel { sender, spare, large: None };
        let large = || vec![b'x'; LARGEST_BUFFER_BYTES + 1];
        channel.send(&mut large()).unwrap();
        channel.send(&mut vec![b'y']).unwrap();
        let job = std::thread::spawn(move || channel.send(&mut large()));
        let is_large = |message| match message {
            Message::Bytes(bytes, unwritten) => (bytes.len() > 1, unwritten),
            _ => panic!("no bytes"),
        };
        let (first, unwritten) = is_large(receiver.recv().unwrap());
        let (second, _) = is_large(receiver.recv().unwrap());
        assert!(first && !second);
        assert!(receiver.recv_timeout(std::time::Duration::from_millis(50)).is_err());
        drop(unwritten);
        assert!(is_large(receiver.recv().unwrap()).0);
        job.join().unwrap().unwrap();
    }
}
