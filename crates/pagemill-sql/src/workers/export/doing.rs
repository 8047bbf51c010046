//! The worker's part of an export: a range of blocks into a file.
//!
//! Invariant: a file is finished only where the directory was what it was pinned as, before and after.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_arrow::{ArrowExport, BlockRange};
use pagemill_cli::output_paths::refuse_in_any_cluster;
use pagemill_cluster::{Database, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, OnDamage, PatternTexts, Patterns, Progress, RowSource, ScanOptions,
};
use pagemill_io::{HostFiles, is_url};
use pagemill_remote::{ObjectFolder, RetryPolicy};
use tokio::sync::Semaphore;

use super::super::arrived::{Arrivals, REFUSED, Wanted};
use super::super::travelling::{Asker, Planning};
use super::plan::columns_fingerprint;
use super::sent::{Answered, Asked, SentExport, SentFile, Written};
use crate::error::{Error, Result, SqlState, StatementError};
use crate::session::Session;

/// What a worker exports with.
#[derive(Debug)]
pub(in super::super) struct Exporter {
    arrivals: Arc<Arrivals>,
    /// Files that are written at a time.
    jobs: Arc<Semaphore>,
    most_jobs: usize,
    scan: ScanOptions,
    /// Paths and URLs below which it may write.
    places: Vec<PathBuf>,
}

/// Cancels when it is dropped.
struct CancelOnDrop(Progress);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Exporter {
    pub(in super::super) fn new(
        arrivals: Arc<Arrivals>,
        scan: ScanOptions,
        places: Vec<PathBuf>,
    ) -> Self {
        let most_jobs = scan.jobs.max(1);
        let (jobs, scan) = (Arc::new(Semaphore::new(most_jobs)), ScanOptions { jobs: 1, ..scan });
        Self { arrivals, jobs, most_jobs, scan, places }
    }

    pub(super) async fn answer(self: Arc<Self>, asked: Asked) -> Result<Answered> {
        match asked {
            Asked::Begin(export) => {
                self.allowed(&export)?;
                let exporter = self.clone();
                blocking(move || exporter.session(&export).map(drop)).await?;
                Ok(Answered::Ready(self.most_jobs))
            }
            Asked::File(export, file) => {
                let permit = self.jobs.clone().acquire_owned().await;
                let progress = Progress::default();
                let _cancel = CancelOnDrop(progress.clone());
                let written = blocking(move || {
                    // It is kept until the work has ended, also where nobody waits for it any more.
                    let _permit = permit;
                    self.write(&export, &file, &progress)
                });
                written.await.map(Answered::Written)
            }
        }
    }

    fn session(&self, export: &SentExport) -> Result<Arc<Session>> {
        export.check_protocol().map_err(|why| refused(&why))?;
        let asker = Asker { client: None, row_security: true, settings: None };
        let planning = Planning { jobs: 1, memory: None, share_bytes: 0 };
        self.arrivals.session(&Wanted {
            directory: &export.directory,
            snapshot: &export.snapshot,
            database: &export.database,
            planning,
            asker: &asker,
        })
    }

    /// The place that files go to, if the worker may write there.
    fn allowed(&self, export: &SentExport) -> Result<PathBuf> {
        let output = PathBuf::from(&export.output);
        let is_plain = !export.output.split('/').any(|name| name == ".." || name == ".");
        if !is_plain || !self.places.iter().any(|place| output.starts_with(place)) {
            let message = format!("the worker does not write to {}", export.output);
            let error = StatementError::new(SqlState::DENIED, message);
            return Err(error
                .with_hint("Start it with this place, or one above it, by --export-to.")
                .into());
        }
        if !is_url(&output) {
            refuse_in_any_cluster("-o", &output).map_err(|error| refused(&error.to_string()))?;
        }
        Ok(output)
    }

    fn write(&self, export: &SentExport, file: &SentFile, progress: &Progress) -> Result<Written> {
        let output = self.allowed(export)?;
        let session = self.session(export)?;
        let database = session.catalog().database();
        let sources = source(database, file)?;
        let unknown = match export.options.unknown_as_hex {
            true => UnknownTypes::Hex,
            false => UnknownTypes::Refuse,
        };
        let catalog = ValueCatalog::new(database, unknown)?;
        let options = export.options.arrow(self.scan, export.redo_end.as_deref());
        let source = &sources[0];
        let prepared = ArrowExport::prepare(source, &catalog, &options, progress)?;
        if columns_fingerprint(prepared.schema()) != file.columns {
            return Err(refused("the worker finds other columns in the table than who sent it"));
        }
        let range = range(source, file)?;
        let folder = folder(&output)?;
        let mut object = folder.create(&file.name)?;
        let mut damage = DamageLog::new(OnDamage::Stop);
        let done = prepared.write_blocks(range.as_ref(), &mut object, progress, &mut damage)?;
        database.cluster().check_unchanged().map_err(|change| {
            refused(&format!("the data directory has changed while it was exported: {change}"))
        })?;
        if progress.is_cancelled() {
            return Err(pagemill_engine::Error::Cancelled.into());
        }
        let bytes = object.finish().map_err(pagemill_engine::Error::Output)?;
        Ok(Written { rows: done.rows, bytes })
    }
}

fn refused(why: &str) -> Error {
    StatementError::new(REFUSED, why).into()
}

/// The place of files, which is made where it is a directory and missing.
///
/// # Errors
/// When it cannot be made, or is no URL that can be used.
pub(super) fn folder(output: &Path) -> Result<ObjectFolder> {
    if !is_url(output) {
        HostFiles::real().create_dir_all(output).map_err(pagemill_engine::Error::Output)?;
    }
    let opened = ObjectFolder::open(output, RetryPolicy::default());
    opened.map_err(|error| refused(&format!("{}: {error}", output.display())))
}

/// The table, by its name and OID.
fn source<'d>(database: &'d Database, file: &SentFile) -> Result<Vec<RowSource<'d>>> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let tables = [format!("{}.{}", quoted(&file.schema), quoted(&file.table))];
    let patterns = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let found = Patterns::parse(patterns)?.select(database)?;
    let sources = RowSource::all(database, &found)?;
    match &sources[..] {
        [one] if one.selected().class.oid.0 == file.oid => Ok(sources),
        _ => Err(refused("the worker finds another table of this name than who sent it")),
    }
}

fn range(source: &RowSource<'_>, file: &SentFile) -> Result<Option<BlockRange>> {
    let Some(blocks) = &file.blocks else { return Ok(None) };
    let part = source.parts().get(blocks.part).filter(|part| part.class.oid.0 == blocks.oid);
    match part {
        Some(_) if blocks.first < blocks.end => {
            Ok(Some(BlockRange { part: blocks.part, blocks: blocks.first..blocks.end }))
        }
        _ => Err(refused("the worker finds other partitions in the table than who sent it")),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| {
        let message = "a file of an export ended in a defect of pagemill, please report it";
        Err(StatementError::new(SqlState("XX000"), message).into())
    })
}
