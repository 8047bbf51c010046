//! The coordinator's part of an export: who writes which file, and when all is there.
//!
//! Invariants: a file that a worker did not finish is given to another; the first refusal ends the export, and leaves what is
//! there to who begins it again.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use pagemill_arrow::{ArrowOptions, FooterRows, footer_rows};
use pagemill_cli::failure::complain;
use pagemill_cluster::ValueCatalog;
use pagemill_engine::RowSource;
use pagemill_remote::ObjectFolder;
use tokio::task::JoinSet;
use url::Url;

use super::super::PROTOCOL;
use super::super::coordinator::Workers;
use super::doing::folder;
use super::plan::{Cutting, ExportPlan, MANIFEST, PLAN, files_of};
use super::rpc::{NoAnswer, ask};
use super::sent::{Answered, Asked, SentExport, SentFile, SentOptions, Written};
use crate::error::{Error, StatementError};

/// The end of a file that tells its rows, in most files.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes of a block.
const BLOCK: usize = pagemill_format::BLOCK_SIZE;

/// What is to be exported.
#[derive(Debug, Clone)]
pub struct ExportOrder {
    /// The database's name.
    pub database: String,
    /// What becomes of values.
    pub options: ArrowOptions,
    /// Types that only an extension's code can print are bytes.
    pub unknown_as_hex: bool,
    /// Up to where WAL was redone.
    pub redo_end: Option<String>,
    /// Where files go.
    pub output: PathBuf,
    /// Bytes of a table for one file.
    pub file_bytes: usize,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportSummary {
    /// Files in all.
    pub files: usize,
    /// Those that were there already.
    pub kept: usize,
    /// Rows of all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Has workers write all files that are not there yet, and then the manifest.
///
/// # Errors
/// When another export is in the place, no worker is left, or a file cannot be written.
pub async fn run(
    workers: &Arc<Workers>,
    sources: &[RowSource<'_>],
    catalog: &ValueCatalog,
    order: &ExportOrder,
) -> Result<ExportSummary> {
    let plan = plan(workers, sources, catalog, order)?;
    let slots = begin(workers, &plan.export).await?;
    let place = folder(&order.output)?;
    tokio::task::block_in_place(|| claim(&place, &plan))?;
    let there = tokio::task::block_in_place(|| written_before(&place, &plan))?;
    let kept = there.iter().flatten().count();
    let written = write_rest(workers, slots, &plan, there).await?;
    let manifest = serde_json::to_vec_pretty(&plan.manifest(&written))?;
    tokio::task::block_in_place(|| place.write(MANIFEST, manifest))?;
    let (rows, bytes) =
        (written.iter().map(|file| file.rows).sum(), written.iter().map(|file| file.bytes).sum());
    Ok(ExportSummary { files: written.len(), kept, rows, bytes })
}

fn plan(
    workers: &Workers,
    sources: &[RowSource<'_>],
    catalog: &ValueCatalog,
    order: &ExportOrder,
) -> Result<ExportPlan> {
    let output = order.output.to_str().context("-o: names of places are UTF-8")?;
    let export = SentExport {
        protocol: PROTOCOL.to_owned(),
        directory: workers.directory.clone(),
        snapshot: workers.snapshot.clone(),
        database: order.database.clone(),
        redo_end: order.redo_end.clone(),
        options: SentOptions::new(&order.options, order.unknown_as_hex),
        output: output.to_owned(),
    };
    let blocks = u32::try_from(order.file_bytes / BLOCK).unwrap_or(u32::MAX).max(1);
    let cutting = Cutting { catalog, options: &order.options, blocks };
    let mut files = Vec::new();
    for source in sources {
        let of_table = files_of(source, cutting).map_err(|error| anyhow!(told(error)))?;
        files.extend(of_table);
    }
    Ok(ExportPlan { export, files })
}

/// Asks all workers whether they take part; how many files each writes at a time.
async fn begin(workers: &Arc<Workers>, export: &SentExport) -> Result<Vec<(Url, usize)>> {
    let mut slots = Vec::new();
    for url in &workers.urls {
        match ask(&workers.connections, url, &Asked::Begin(export.clone())).await {
            Ok(Answered::Ready(jobs)) => slots.push((url.clone(), jobs)),
            Ok(Answered::Written(_)) => bail!("the worker at {url} answers something else"),
            Err(NoAnswer::Lost(error) | NoAnswer::Refused(error)) => bail!(told(error)),
        }
    }
    Ok(slots)
}

fn told(error: Error) -> String {
    let StatementError { message, hint, .. } = error.report();
    hint.map_or(message.clone(), |hint| format!("{message}: {hint}"))
}

/// Makes the place that of this export, or finds that it is.
fn claim(place: &ObjectFolder, plan: &ExportPlan) -> Result<()> {
    let Some(found) = place.read(PLAN, None)? else {
        let sizes = place.sizes()?;
        if let Some(name) = sizes.keys().next() {
            bail!(
                "{}: there is something else in it, {name} for one: name an empty place",
                plan.export.output
            );
        }
        return Ok(place.write(PLAN, serde_json::to_vec(plan)?)?);
    };
    let found: Option<ExportPlan> = serde_json::from_slice(&found).ok();
    // The same place may be named in several ways.
    let is_same = found.is_some_and(|found| {
        let export = SentExport { output: plan.export.output.clone(), ..found.export };
        export == plan.export && found.files == plan.files
    });
    ensure!(
        is_same,
        "{}: another export is in it: of other tables, another moment, or with other options (its {PLAN} says which): \
         go on with that one, or name an empty place",
        plan.export.output
    );
    Ok(())
}

/// Of each file what is there.
fn written_before(place: &ObjectFolder, plan: &ExportPlan) -> Result<Vec<Option<Written>>> {
    let sizes = place.sizes()?;
    let of = |file: &SentFile| match sizes.get(&file.name) {
        None => Ok(None),
        Some(&bytes) => {
            let found = rows_of(place, &file.name, bytes);
            let rows = found.with_context(|| {
                format!("{}/{}: remove it, and begin again", plan.export.output, file.name)
            })?;
            Ok(Some(Written { rows, bytes }))
        }
    };
    plan.files.iter().map(of).collect()
}

fn rows_of(place: &ObjectFolder, name: &str, bytes: u64) -> Result<u64> {
    let mut wanted = TAIL_BYTES;
    loop {
        let tail = place.read(name, Some(wanted.min(bytes)))?.context("it is gone")?;
        match footer_rows(tail, bytes)? {
            FooterRows::Rows(rows) => return Ok(rows),
            FooterRows::NeedsBytes(more) => {
                ensure!(more as u64 > wanted && wanted < bytes, "it is no whole Parquet file");
                wanted = more as u64;
            }
        }
    }
}

/// What is still to be written.
struct Queue {
    waiting: VecDeque<usize>,
    written: Vec<Option<Written>>,
}

impl Queue {
    fn lock(queue: &Mutex<Self>) -> std::sync::MutexGuard<'_, Self> {
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_rest(
    workers: &Arc<Workers>,
    slots: Vec<(Url, usize)>,
    plan: &ExportPlan,
    there: Vec<Option<Written>>,
) -> Result<Vec<Written>> {
    let queue = Queue { waiting: VecDeque::new(), written: there };
    let (queue, plan) = (Arc::new(Mutex::new(queue)), Arc::new(plan.clone()));
    let mut alive = slots;
    loop {
        let is_whole = {
            let mut queue = Queue::lock(&queue);
            let written = &queue.written;
            let missing = (0..written.len()).filter(|at| written[*at].is_none()).collect();
            queue.waiting = missing;
            queue.waiting.is_empty()
        };
        if is_whole {
            return Ok(Queue::lock(&queue).written.iter().copied().flatten().collect());
        }
        ensure!(
            !alive.is_empty(),
            "no worker is left: what is written stays, and the same command goes on from there"
        );
        // Who is gone leaves files behind that the others may be through by then: they are asked again.
        let lost = write_round(workers, &alive, &plan, &queue).await?;
        alive.retain(|(url, _)| !lost.contains(url));
    }
}

/// Has all workers write until nothing waits; which of them are gone.
async fn write_round(
    workers: &Arc<Workers>,
    alive: &[(Url, usize)],
    plan: &Arc<ExportPlan>,
    queue: &Arc<Mutex<Queue>>,
) -> Result<HashSet<Url>> {
    let mut tasks = JoinSet::new();
    for (url, jobs) in alive {
        for _ in 0..*jobs {
            let (workers, url) = (workers.clone(), url.clone());
            let (plan, queue) = (plan.clone(), queue.clone());
            tasks.spawn(async move {
                let ended = write_files(&workers, &url, &plan, &queue).await;
                (url, ended)
            });
        }
    }
    let mut lost = HashSet::new();
    // Who returns from here ends all tasks, and what workers do for them, by dropping them.
    while let Some(ended) = tasks.join_next().await {
        let (url, ended) = ended.context("a defect of pagemill, please report it")?;
        match ended {
            Ok(()) => {}
            Err(NoAnswer::Refused(error)) => bail!(told(error)),
            Err(NoAnswer::Lost(error)) => {
                if lost.insert(url) {
                    complain(format!("{}: what it was writing goes to the others", told(error)));
                }
            }
        }
    }
    Ok(lost)
}

/// Has a worker write one file after the other, until there are none or it is gone.
async fn write_files(
    workers: &Workers,
    url: &Url,
    plan: &ExportPlan,
    queue: &Mutex<Queue>,
) -> Result<(), NoAnswer> {
    loop {
        let next = Queue::lock(queue).waiting.pop_front();
        let Some(at) = next else { return Ok(()) };
        let asked = Asked::File(plan.export.clone(), plan.files[at].clone());
        match ask(&workers.connections, url, &asked).await {
            Ok(Answered::Written(written)) => Queue::lock(queue).written[at] = Some(written),
            Ok(Answered::Ready(_)) => {
                let error =
                    std::io::Error::other(format!("the worker at {url} answers something else"));
                return Err(NoAnswer::Refused(error.into()));
            }
            Err(error) => return Err(error),
        }
    }
}
