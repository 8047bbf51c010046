//! A table as a file of Arrow batches: which thread reads and encodes what, and in what order it is written.
//!
//! One job reads, encodes and writes in turn. Several jobs take shares of the table, each in its own thread, and one writer puts
//! their pieces together in the order of the table: share `n` belongs to job `n mod jobs`, whose pieces come through a bounded
//! channel.
//!
//! Invariant: the file has the rows in the order of the scan, whatever the number of jobs; that decides only where a row group
//! or batch ends.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pagemill_cluster::{Relation, ValueCatalog};
use pagemill_engine::{
    DamageLog, Error as EngineError, ExportSummary, IndexOrder, OnDamage, Progress, RowSource,
};
use pagemill_io::ByteSink;

use crate::error::{Error, Result};
use crate::file_metadata::{file_metadata, geo_metadata, with_metadata};
use crate::file_writer::{Encoder, EncoderSetup, Piece, TableFile};
use crate::measure::measure;
use crate::options::{ArrowOptions, FileFormat};
use crate::plan::Plan;
use crate::sink::LentSink;
use crate::table_part::{BatchSink, TablePart};

/// Pieces that a job may be ahead of the writer.
const PIECES_AHEAD: usize = 2;

/// Where a file goes.
pub type ArrowSink<'o> = &'o mut (dyn ByteSink + Send);

/// Some blocks of a part of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRange {
    /// Which of the relations that hold the rows.
    pub part: usize,
    /// Its blocks.
    pub blocks: Range<u32>,
}

/// A table prepared for files of Arrow batches: what can be refused has been checked.
pub struct ArrowExport<'a> {
    pub(crate) source: &'a RowSource<'a>,
    pub(crate) catalog: &'a ValueCatalog,
    pub(crate) options: &'a ArrowOptions,
    pub(crate) plan: Plan,
    pub(crate) schema: SchemaRef,
}

impl<'a> ArrowExport<'a> {
    /// Works out what the columns become; numerics of unknown size are measured first, in a pass over the table.
    ///
    /// # Errors
    /// When the table cannot be read, a column does not exist, or a type is not known.
    pub fn prepare(
        source: &'a RowSource<'a>,
        catalog: &'a ValueCatalog,
        options: &'a ArrowOptions,
        progress: &Progress,
    ) -> Result<Self> {
        source.refuse(options.scan)?;
        // All types are known before any row is read.
        Plan::new(catalog, source.named(), options, &Default::default())?;
        let measured = measure(source, catalog, options, progress)?;
        let plan = Plan::new(catalog, source.named(), options, &measured)?;
        plan.refuse_no_columns(options)?;
        for part in source.parts() {
            plan.positions(catalog, part)?;
        }
        let mut metadata = file_metadata(source, options.redo_end.as_deref());
        if options.format == FileFormat::Parquet {
            metadata.extend(geo_metadata(&plan.columns).map(|found| ("geo".to_owned(), found)));
        }
        let schema = with_metadata(&plan.file_fields(), metadata);
        Ok(Self { source, catalog, options, plan, schema })
    }

    /// The schema of the file, or of each of several.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Writes a file of all rows, in the order of the table, or in the one that the options say.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; a value that does not fit; when the output cannot be written.
    pub fn write(
        &self,
        output: ArrowSink<'_>,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        self.file(output, |file, setup, encoder| {
            let mut summary = ExportSummary::default();
            for part in self.source.parts() {
                let work = self.part(part, progress, damage)?;
                let shares = work.shares()?;
                let jobs = work.options.jobs.min(shares.len());
                if jobs > 1 {
                    encoder.finish(&mut |piece| file.write(piece))?;
                    let team = Team { work: &work, setup, shares: &shares, jobs };
                    summary.add(team.write(file, damage)?);
                    continue;
                }
                let mut job = work.job()?;
                let mut emit = |piece| file.write(piece);
                job.run(work.all()?, damage, &mut Encoding(encoder, &mut emit))?;
                summary.add(job.summary());
            }
            Ok(summary)
        })
    }

    /// Writes a file of all rows in the order of an index of the table, which has no partitions.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_in_order(
        &self,
        order: &IndexOrder,
        output: ArrowSink<'_>,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        self.file(output, |file, _, encoder| {
            let work = self.part(self.source.named(), progress, damage)?;
            let mut job = work.job()?;
            let database = self.source.database();
            let mut scan = order.scan(database, work.request(), &work.columns, damage)?;
            let mut emit = |piece| file.write(piece);
            let mut encoding = Encoding(encoder, &mut emit);
            while let Some(row) = scan.next_row(damage)? {
                job.take(&[row], damage, &mut encoding)?;
            }
            job.flush(&mut encoding)?;
            Ok(job.summary())
        })
    }

    /// The blocks of all parts, each by its number, in ranges of at most so many: files of them, one after the other, have the rows
    /// of the table in its order.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn block_ranges(&self, most: u32, damage: &mut DamageLog) -> Result<Vec<BlockRange>> {
        let (progress, mut ranges) = (Progress::default(), Vec::new());
        for (number, part) in self.source.parts().iter().enumerate() {
            let cut = self.part(part, &progress, damage)?.shares_of(most)?;
            ranges.extend(cut.into_iter().map(|blocks| BlockRange { part: number, blocks }));
        }
        Ok(ranges)
    }

    /// Writes a file of the rows in some blocks; of none, a file without rows.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_blocks(
        &self,
        range: Option<&BlockRange>,
        output: ArrowSink<'_>,
        progress: &Progress,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        self.file(output, |file, _, encoder| {
            let Some(BlockRange { part, blocks }) = range else {
                return Ok(ExportSummary::default());
            };
            let work = self.part(&self.source.parts()[*part], progress, damage)?;
            let mut job = work.job()?;
            let mut emit = |piece| file.write(piece);
            job.run(work.scan(blocks)?, damage, &mut Encoding(encoder, &mut emit))?;
            Ok(job.summary())
        })
    }

    /// A file from its beginning to its end, with the rows that `write` puts into it.
    fn file<'o>(
        &self,
        output: ArrowSink<'o>,
        write: impl FnOnce(
            &mut TableFile<LentSink<'o>>,
            &EncoderSetup,
            &mut Encoder,
        ) -> Result<ExportSummary>,
    ) -> Result<ExportSummary> {
        let columns = self.plan.partition_columns();
        assert!(
            columns.is_empty(),
            "a table with columns in its directories' names goes to a directory"
        );
        let (mut file, setup) = TableFile::begin(LentSink(output), &self.schema, self.options)?;
        let mut encoder = Encoder::new(&setup);
        let summary = write(&mut file, &setup, &mut encoder)?;
        encoder.finish(&mut |piece| file.write(piece))?;
        file.finish()?;
        Ok(summary)
    }

    pub(crate) fn part<'p>(
        &'p self,
        part: &'p Relation,
        progress: &'p Progress,
        damage: &mut DamageLog,
    ) -> Result<TablePart<'p>> {
        let (table, options) = self.source.open_part(part, self.options.scan, damage)?;
        let columns = self.plan.positions(self.catalog, part)?;
        Ok(TablePart { export: self, table, columns, options, progress })
    }
}

/// The encoder that batches go to, and where that has its pieces go.
struct Encoding<'e>(&'e mut Encoder, &'e mut dyn FnMut(Piece) -> Result<()>);

impl BatchSink for Encoding<'_> {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.0.push(batch, self.1)
    }
}

/// What a job sends to the writer.
enum Message {
    Piece(Piece),
    /// A share is done: what it found damaged.
    ShareDone(DamageLog),
    /// The job did all its shares.
    JobDone(ExportSummary),
    /// The job failed; nothing more will come.
    Failed(Error),
}

/// Several jobs on one part.
struct Team<'t> {
    work: &'t TablePart<'t>,
    setup: &'t EncoderSetup,
    shares: &'t [Range<u32>],
    jobs: usize,
}

impl Team<'_> {
    fn write(
        &self,
        file: &mut TableFile<LentSink<'_>>,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let policy = damage.policy();
        std::thread::scope(|scope| {
            let (mut receivers, mut threads) = (Vec::new(), Vec::new());
            for number in 0..self.jobs {
                let (sender, receiver) = sync_channel(PIECES_AHEAD);
                let job = move || self.run_shares(number, policy, &sender);
                let started = Builder::new().spawn_scoped(scope, job);
                threads.push(started.map_err(EngineError::Threads)?);
                receivers.push(receiver);
            }
            let written = self.collect(&receivers, file, damage);
            // Jobs that still have something to send end when nobody receives it.
            drop(receivers);
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            let summary = written?;
            match ends.iter().all(std::result::Result::is_ok) {
                true => Ok(summary),
                false => Err(EngineError::Worker.into()),
            }
        })
    }

    /// Puts together what the jobs send, share by share.
    fn collect(
        &self,
        receivers: &[Receiver<Message>],
        file: &mut TableFile<LentSink<'_>>,
        damage: &mut DamageLog,
    ) -> Result<ExportSummary> {
        let mut summary = ExportSummary::default();
        let ends = (0..self.jobs).map(|number| (number, true));
        let shares = (0..self.shares.len()).map(|share| (share % self.jobs, false));
        for (number, is_end) in shares.chain(ends) {
            loop {
                match receivers[number].recv() {
                    Ok(Message::Piece(piece)) => file.write(piece)?,
                    Ok(Message::ShareDone(found)) => {
                        damage.append(&found)?;
                        break;
                    }
                    Ok(Message::JobDone(did)) if is_end => {
                        summary.add(did);
                        break;
                    }
                    Ok(Message::Failed(error)) => return Err(error),
                    Ok(Message::JobDone(_)) | Err(_) => return Err(EngineError::Worker.into()),
                }
            }
        }
        Ok(summary)
    }

    /// Does the shares of one job. A writer that is gone ends the work silently: it is the one that knows why.
    fn run_shares(&self, number: usize, policy: OnDamage, sender: &SyncSender<Message>) {
        let last = match self.try_shares(number, policy, sender) {
            Ok(did) => Message::JobDone(did),
            Err(error) => Message::Failed(error),
        };
        let _ = sender.send(last);
    }

    fn try_shares(
        &self,
        number: usize,
        policy: OnDamage,
        sender: &SyncSender<Message>,
    ) -> Result<ExportSummary> {
        let send = |message| sender.send(message).map_err(|_| Error::from(EngineError::Worker));
        let (mut job, mut encoder) = (self.work.job()?, Encoder::new(self.setup));
        for share in self.shares.iter().skip(number).step_by(self.jobs) {
            let mut damage = DamageLog::new(policy);
            let mut emit = |piece| send(Message::Piece(piece));
            job.run(self.work.scan(share)?, &mut damage, &mut Encoding(&mut encoder, &mut emit))?;
            encoder.finish(&mut emit)?;
            send(Message::ShareDone(damage))?;
        }
        Ok(job.summary())
    }
}
