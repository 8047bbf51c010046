//! `pagemill load`: files into a table of a stopped cluster.
//!
//! The right to change the cluster is taken before anything of it is read, and given back at the end.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use pagemill_cli::column_lists::column_list;
use pagemill_cli::sizes::default_jobs;
use pagemill_cluster::{Cluster, OpenOptions, Persistence};
use pagemill_engine::copy::from::{
    CopyFromOptions, ForcedColumns, Header, InputSource, RejectLog, RejectSettings,
};
use pagemill_engine::load::{ReadBack, expected_blocks};
use pagemill_engine::{
    Error as EngineError, Format, LoadOptions, LoadRequest, LoadSummary, Progress, load,
};
use pagemill_io::{InputStream, Output, Storage};

use crate::arguments::FormatChoice;
use crate::changing::{data_directory, open, take_lock, undone};
use crate::failure::{Completion, say};
use crate::load_arguments::{HeaderChoice, LoadArguments};
use crate::options::values::character;
use crate::output_paths::{refuse_existing, refuse_in_cluster, refuse_input};
use crate::progress::{ProgressDisplay, is_wanted};
use crate::session::stats::{self, Work};

/// `wal_level` in the control file from which rows are decoded for subscribers.
const LOGICAL: u32 = 2;

pub(crate) fn run(arguments: &LoadArguments) -> Result<Completion> {
    let start = Instant::now();
    let storage = Storage::real();
    let loaded = load_with(arguments, &storage);
    if let Some(form) = arguments.stats {
        let summary = loaded.as_ref().copied().unwrap_or_default();
        let work = Work {
            rows: summary.rows,
            pages: summary.blocks,
            write_method: summary.write_method,
            ..Work::default()
        };
        stats::print(form, start.elapsed(), &storage, &work);
    }
    let summary = loaded?;
    if arguments.verbose {
        say(format!(
            "{} rows in {} blocks, {} bytes of WAL, {:.3} s",
            summary.rows,
            summary.blocks,
            summary.wal_bytes,
            start.elapsed().as_secs_f64()
        ));
    }
    if arguments.verify && arguments.verbose {
        say(format!("{} blocks read back, all as they were written", summary.verified_blocks));
    }
    if summary.rejected > 0 {
        let file = arguments.log_errors.as_deref().unwrap_or(Path::new("")).display();
        let rows = if summary.rejected == 1 { "row was" } else { "rows were" };
        say(format!("{} {rows} rejected: see {file}", summary.rejected));
    }
    Ok(Completion::Done)
}

fn load_with(arguments: &LoadArguments, storage: &Storage) -> Result<LoadSummary> {
    let copy = copy_options(arguments)?;
    let columns =
        arguments.columns.as_deref().map(|list| column_list("columns", list)).transpose()?;
    let sources: Vec<_> =
        arguments.files.iter().map(|file| source(storage, file)).collect::<Result<_>>()?;
    let lock = take_lock(storage, data_directory(arguments.pgdata.as_deref())?)?;
    let cluster = open(storage, &lock, OpenOptions::default())?;
    let rejects = reject_log(arguments, storage, &cluster)?;
    let database = cluster.database(&arguments.database.dbname)?;
    let selected = pagemill_engine::select::find_one(&database, &arguments.table)?;
    let relation = database.relation(&selected.class)?;
    if arguments.no_wal {
        warn_of_no_wal(&cluster, &relation.display_name());
    }
    if relation.class.persistence == Persistence::Unlogged {
        warn_of_unlogged(&relation.display_name());
    }
    if cluster.control().settings.wal_level >= LOGICAL {
        warn_of_subscribers(&relation.display_name());
    }
    let progress = Progress::default();
    let pages = is_wanted(arguments.progress)
        .then(|| u64::from(expected_blocks(storage, &sources)))
        .filter(|pages| *pages > 0);
    let _display = ProgressDisplay::start(pages, &progress);
    let options = LoadOptions {
        progress,
        columns,
        wal: !arguments.no_wal,
        truncate: arguments.truncate,
        freeze: arguments.freeze,
        jobs: arguments.jobs.map_or_else(default_jobs, usize::from),
        writing: arguments.writing.settings()?,
        read_back: if arguments.verify { ReadBack::on() } else { ReadBack::default() },
    };
    let compression = match arguments.wal_compression {
        Some(choice) => choice.compression(),
        None => database.wal_compression()?,
    };
    let request = LoadRequest { relation, sources, copy: &copy, options, compression, rejects };
    let loaded = load(lock, &database, request);
    loaded.map_err(|error| undone(error.into(), &cluster, "nothing was loaded"))
}

fn source(storage: &Storage, file: &Path) -> Result<InputSource> {
    if file == Path::new("-") {
        let input = InputStream::standard(storage);
        return Ok(InputSource::Stream(input.map_err(pagemill_cluster::Error::from)?));
    }
    Ok(InputSource::File(file.to_owned()))
}

fn warn_of_no_wal(cluster: &Cluster, table: &str) {
    let control = cluster.control();
    let follows = match control.settings.wal_level {
        0 => "",
        _ => {
            ", which standbys, archives and running backups do not get: they will have an empty file"
        }
    };
    say(format!("--no-wal: the rows of {table} are in its new files only{follows}"));
}

fn warn_of_unlogged(table: &str) {
    say(format!(
        "{table} is unlogged: a crash empties it, even one after the commit and before the end of this load"
    ));
}

fn warn_of_subscribers(table: &str) {
    say(format!(
        "wal_level is logical, and subscribers do not get what is loaded: copy the rows of {table} to them"
    ));
}

/// Where rejected rows go. The file may be none of those that are read or that a server reads.
fn reject_log(
    arguments: &LoadArguments,
    storage: &Storage,
    cluster: &Cluster,
) -> Result<Option<RejectLog>> {
    const FLAG: &str = "--log-errors";
    let Some(path) = &arguments.log_errors else { return Ok(None) };
    refuse_in_cluster(FLAG, path, cluster)?;
    refuse_input(FLAG, path, &arguments.files)?;
    refuse_existing(FLAG, path, arguments.force)?;
    let output = Output::file(&storage.host(), path).map_err(EngineError::Output)?;
    let settings = RejectSettings {
        format: format(arguments.format),
        most: arguments.max_errors,
        name: path.display().to_string(),
    };
    Ok(Some(RejectLog::new(output, settings)?))
}

fn format(choice: FormatChoice) -> Format {
    match choice {
        FormatChoice::Text => Format::Text,
        FormatChoice::Csv => Format::Csv,
    }
}

fn copy_options(arguments: &LoadArguments) -> Result<CopyFromOptions> {
    let byte = |option, text: &Option<String>| {
        text.as_deref().map(|text| character(option, text)).transpose()
    };
    Ok(CopyFromOptions {
        format: format(arguments.format),
        delimiter: byte("delimiter", &arguments.delimiter)?,
        null: arguments.null.as_ref().map(|text| text.clone().into_bytes()),
        header: match arguments.header {
            HeaderChoice::None => Header::None,
            HeaderChoice::Skip => Header::Skip,
            HeaderChoice::Match => Header::Match,
        },
        quote: byte("quote", &arguments.quote)?,
        escape: byte("escape", &arguments.escape)?,
        encoding: arguments.encoding.clone(),
        force_null: forced("force-null", arguments.force_null.as_deref())?,
        force_not_null: forced("force-not-null", arguments.force_not_null.as_deref())?,
    })
}

fn forced(option: &'static str, list: Option<&str>) -> Result<ForcedColumns> {
    Ok(match list {
        None => ForcedColumns::None,
        Some("*") => ForcedColumns::All,
        Some(list) => {
            ForcedColumns::Columns(column_list(option, list)?.into_iter().map(Vec::from).collect())
        }
    })
}
