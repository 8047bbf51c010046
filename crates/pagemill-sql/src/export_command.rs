//! `pagemill export --workers`: from flags to what the library has.
//!
//! Invariant: a flag that workers do not follow is refused, before anything is opened.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pagemill_arrow::FileFormat;
use pagemill_cli::cluster_arguments::DamageChoice;
use pagemill_cli::column_lists::column_list;
use pagemill_cli::export_arguments::{ExportArguments, ExportFormat, UnknownTypesChoice};
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::output_paths::refuse_in_cluster;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::session::stats::Work;
use pagemill_cli::worker_arguments::WorkerEngine;
use pagemill_cluster::{Database, UnknownTypes, ValueCatalog};
use pagemill_engine::{PatternTexts, Patterns, RowSource, ScanOrder};
use pagemill_io::{HostFiles, is_url};
use pagemill_sql::named_workers::{Dividing, NamedWorkers};
use pagemill_sql::workers::{ExportOrder, ExportSummary, export};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) fn run(arguments: &ExportArguments) -> Result<Completion> {
    refuse_flags(arguments)?;
    let output = arguments
        .output
        .as_deref()
        .context("--workers write files: where to, -o DIR/ or a URL?")?;
    let opened = Opened::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let database = opened.database(&arguments.database.dbname)?;
    let output = place(output, &database)?;
    let unknown_as_hex = arguments.unknown_types == UnknownTypesChoice::Hex;
    let unknown = if unknown_as_hex { UnknownTypes::Hex } else { UnknownTypes::Refuse };
    let catalog = ValueCatalog::new(&database, unknown)?;
    let sources = sources(&database, arguments)?;
    let columns = arguments.columns.as_deref().map(|text| column_list("columns", text));
    let scan = opened.scan_options(ScanOrder::default());
    let options = arguments.arrow.options(FileFormat::Parquet, columns.transpose()?, scan)?;
    let order = ExportOrder {
        database: arguments.database.dbname.clone(),
        options,
        unknown_as_hex,
        redo_end: opened.end_of_wal(database.cluster()).map(|lsn| lsn.to_string()),
        output,
        file_bytes: arguments.part_size,
    };
    let directory = arguments.common.pgdata.as_deref().map_or_else(|| opened.directory(), Ok)?;
    // No statement is divided.
    let dividing = Dividing { share_bytes: 0, engine: WorkerEngine::Distributed };
    let workers = NamedWorkers::of(&arguments.on_workers, dividing, directory, database.cluster())?;
    let workers = workers.workers().context("no workers are named")?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            done = export(workers, &sources, &catalog, &order) => done,
            _ = interrupt.recv() => bail!("interrupted: what is written stays, and the same command goes on from there"),
        }
    })?;
    tell(&done, &order.output);
    opened.finish(&Work { rows: done.rows, ..Work::default() });
    runtime.shutdown_background();
    Ok(Completion::Done)
}

fn tell(done: &ExportSummary, output: &Path) {
    let ExportSummary { files, kept, rows, bytes } = *done;
    let kept = match kept {
        0 => String::new(),
        _ => format!(", of which {kept} were there"),
    };
    failure::say(format!(
        "{rows} rows in {files} files{kept}, {bytes} bytes, in {}",
        output.display()
    ));
}

/// Where files go, as workers know it: a URL, or a directory as links lead to it.
fn place(output: &Path, database: &Database) -> Result<PathBuf> {
    if is_url(output) {
        let text = output.to_string_lossy();
        return Ok(PathBuf::from(text.trim_end_matches('/')));
    }
    refuse_in_cluster("-o", output, database.cluster())?;
    let host = HostFiles::real();
    host.create_dir_all(output)?;
    Ok(host.resolve(output)?)
}

fn sources<'d>(database: &'d Database, arguments: &ExportArguments) -> Result<Vec<RowSource<'d>>> {
    let selection = &arguments.selection;
    let patterns = Patterns::parse(PatternTexts {
        tables: &selection.tables,
        excluded_tables: &selection.excluded_tables,
        schemas: &selection.schemas,
        excluded_schemas: &selection.excluded_schemas,
    })?;
    let mut selected = patterns.select(database)?;
    // A materialized view without rows yet has nothing to show.
    selected.retain(|one| {
        if !one.class.is_populated {
            failure::say(format!("{}: passed over: it has not been populated", one.display_name()));
        }
        one.class.is_populated
    });
    Ok(RowSource::all(database, &selected)?)
}

/// Refuses what only one machine does.
fn refuse_flags(arguments: &ExportArguments) -> Result<()> {
    let order = &arguments.order;
    let flags = [
        ("delimiter", arguments.delimiter.is_some()),
        ("null", arguments.null.is_some()),
        ("header", arguments.header),
        ("quote", arguments.quote.is_some()),
        ("escape", arguments.escape.is_some()),
        ("force-quote", arguments.force_quote.is_some()),
        ("encoding", arguments.encoding.is_some()),
        ("lc-monetary", arguments.lc_monetary.is_some()),
        ("order-by", order.order_by.is_some()),
        ("backward", order.backward),
        ("start-block", order.start_block.is_some()),
        ("partition-by", arguments.arrow.partition_by.is_some()),
        ("live", arguments.common.live),
        ("on-damage skip", arguments.common.on_damage == DamageChoice::Skip),
    ];
    if arguments.format != ExportFormat::Parquet {
        return Err(UsageError("--workers write Parquet: --format parquet".to_owned()).into());
    }
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => {
            Err(UsageError(format!("--{flag} is not for --workers: leave one of them out")).into())
        }
        None => Ok(()),
    }
}
