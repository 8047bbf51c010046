//! `pagemill export`: tables to standard output, a file, or a directory of files.
//!
//! Options are judged before a page is read, and a directory is made only once it is known what
//! goes into it.

use std::path::Path;

use anyhow::{Result, anyhow};
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use pagemill_cluster::{Database, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    CopyOptions, Error as EngineError, ExportOptions, ExportSummary, ForcedColumns, Format,
    RowForm, RowSource,
};
use pagemill_io::Output;
#[cfg(feature = "arrow")]
use pagemill_io::OutputDirectory;

use crate::export_files::{Destination, file_name};
use crate::failure::{Completion, UsageError, say};
use crate::options::values::{character, money_locale};
use crate::order::Order;
use crate::other_program;
use crate::session::Session;
use crate::tables::{Tables, Watch};
use pagemill_cli::column_lists::column_list;
use pagemill_cli::export_arguments::{ExportArguments, ExportFormat, UnknownTypesChoice};

pub(crate) fn run(arguments: &ExportArguments) -> Result<Completion> {
    #[cfg(not(feature = "arrow"))]
    crate::arrow_missing::refuse(arguments)?;
    if !arguments.on_workers.workers.is_empty() {
        return other_program::run(other_program::SQL, "pagemill export --workers");
    }
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    refuse_flags_of_copy(arguments)?;
    let options = export_options(&session, arguments)?;
    #[cfg(feature = "arrow")]
    let arrow = crate::arrow_export::arrow_options(&options, arguments)?;
    let database = session.database(&arguments.database.dbname)?;
    let tables = Tables::choose(&database, &arguments.selection)?;
    let host = session.storage().host();
    let destination = Destination::of(arguments.output.as_deref(), &host);
    destination.refuse_inside(database.cluster())?;
    let order = Order::of(&arguments.order, &arguments.common, &tables)?;
    #[cfg(feature = "arrow")]
    let is_partitioned = arrow.as_ref().is_some_and(|arrow| !arrow.partition_by.is_empty());
    #[cfg(not(feature = "arrow"))]
    let is_partitioned = false;
    match is_partitioned {
        true => refuse_no_single_directory(&tables, &destination)?,
        false => refuse_many_in_one(&tables, &destination)?,
    }
    let catalog = value_catalog(&database, arguments)?;
    catalog.setting_problems().iter().for_each(|problem| session.tell(|| problem.to_string()));
    if !is_partitioned {
        destination.create(&host)?;
    }
    let format = arguments.format;
    let job = Job { session: &session, catalog, options, destination, format, order };
    #[cfg(feature = "arrow")]
    if let Some(arrow) = arrow {
        return tables.for_each(&session, |source, watch| job.export_arrow(&arrow, source, watch));
    }
    tables.for_each(&session, |source, watch| job.export(source, watch))
}

/// What is the same for every table.
pub(crate) struct Job<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) catalog: ValueCatalog,
    options: ExportOptions,
    destination: Destination,
    format: ExportFormat,
    pub(crate) order: Option<Order>,
}

impl Job<'_> {
    fn export(&self, source: &RowSource<'_>, watch: &mut Watch<'_>) -> Result<()> {
        let mut output = self.output(source, watch)?;
        let export = source.export(&self.catalog, &self.options);
        let done = match &self.order {
            None => export.write(&mut output, watch.progress, watch.damage)?,
            Some(order) => order.write(source, &export, &mut output, watch)?,
        };
        finish(output, done, watch)
    }

    /// Says of a table's rows what is to be known.
    pub(crate) fn tell_order(&self, source: &RowSource<'_>, watch: &Watch<'_>) {
        if source.is_in_oid_order() {
            watch.display.aside(|| say(in_oid_order(source)));
        }
    }

    /// The directory that a table's files go to.
    #[cfg(feature = "arrow")]
    pub(crate) fn output_directory(&self) -> Result<OutputDirectory> {
        let (Destination::File(path) | Destination::Directory(path)) = &self.destination else {
            unreachable!("standard output was refused")
        };
        OutputDirectory::new(&self.session.storage().host(), path)
            .map_err(|error| not_there(error, path))
    }

    /// Where a table goes; says of its rows what is to be known.
    pub(crate) fn output(&self, source: &RowSource<'_>, watch: &Watch<'_>) -> Result<Output> {
        self.tell_order(source, watch);
        let storage = self.session.storage();
        let path = match &self.destination {
            Destination::Standard => return self.session.standard_output(),
            Destination::File(path) => path.clone(),
            Destination::Directory(directory) => {
                directory.join(file_name(source.selected(), self.format))
            }
        };
        Output::file(&storage.host(), &path).map_err(|error| not_there(error, &path))
    }
}

/// What is said of a place that nothing can be written to.
fn not_there(error: pagemill_io::Error, path: &Path) -> anyhow::Error {
    match error.is_not_found() {
        true => anyhow!("{}: there is no such directory to write it to", path.display()),
        false => error.into(),
    }
}

/// Gives a table's file its name, and takes note of what was done.
pub(crate) fn finish(output: Output, done: ExportSummary, watch: &mut Watch<'_>) -> Result<()> {
    output.finish().map_err(EngineError::Output)?;
    note(done, watch);
    Ok(())
}

/// Takes note of what was done.
pub(crate) fn note(done: ExportSummary, watch: &mut Watch<'_>) {
    watch.work.rows += done.rows;
    watch.work.buffer_hits += done.buffer_hits;
    watch.work.buffer_misses += done.buffer_misses;
}

fn in_oid_order(source: &RowSource<'_>) -> String {
    let name = source.selected().display_name();
    format!(
        "{name}: its partitions are in the order of their OIDs: a server may scan them in another one, which depends \
         on an order of values that is not known here (ICU, an extension, or a type that is not simple)"
    )
}

fn refuse_many_in_one(tables: &Tables<'_>, destination: &Destination) -> Result<()> {
    let count = tables.sources.len();
    if count > 1 && !matches!(destination, Destination::Directory(_)) {
        let reason = format!("{count} tables match: name a directory for them with -o DIR/");
        return Err(UsageError(reason).into());
    }
    Ok(())
}

fn refuse_no_single_directory(tables: &Tables<'_>, destination: &Destination) -> Result<()> {
    let count = tables.sources.len();
    let reason = match destination {
        Destination::Standard => {
            "--partition-by writes a directory: name it with -o DIR".to_owned()
        }
        _ if count > 1 => {
            format!(
                "{count} tables match, and --partition-by writes the directory of one: name one"
            )
        }
        _ => return Ok(()),
    };
    Err(UsageError(reason).into())
}

fn value_catalog(database: &Database, arguments: &ExportArguments) -> Result<ValueCatalog> {
    let unknown = match arguments.unknown_types {
        UnknownTypesChoice::Refuse => UnknownTypes::Refuse,
        UnknownTypesChoice::Hex => UnknownTypes::Hex,
    };
    let catalog = ValueCatalog::new(database, unknown)?;
    Ok(match arguments.lc_monetary.as_deref() {
        Some(locale) => catalog.with_lc_monetary(money_locale(locale)?),
        None => catalog,
    })
}

fn export_options(session: &Session<'_>, arguments: &ExportArguments) -> Result<ExportOptions> {
    let columns = arguments.columns.as_deref().map(|text| column_list("columns", text));
    let is_json = arguments.format == ExportFormat::Json;
    Ok(ExportOptions {
        form: if is_json { RowForm::Json } else { RowForm::Copy },
        copy: copy_options(arguments)?,
        columns: columns.transpose()?,
        encoding: arguments.encoding.clone(),
        scan: session.scan_options(arguments.order.scan_order()),
    })
}

/// A flag, and whether it was given.
pub(crate) type Given = (&'static str, bool);

/// Refuses flags of COPY for formats that are not COPY's.
fn refuse_flags_of_copy(arguments: &ExportArguments) -> Result<()> {
    let flags = [
        ("delimiter", arguments.delimiter.is_some()),
        ("null", arguments.null.is_some()),
        ("header", arguments.header),
        ("quote", arguments.quote.is_some()),
        ("escape", arguments.escape.is_some()),
        ("force-quote", arguments.force_quote.is_some()),
        ("encoding", arguments.encoding.is_some()),
    ];
    match arguments.format {
        ExportFormat::Text | ExportFormat::Csv => Ok(()),
        _ => refuse_given(&flags, arguments),
    }
}

/// Refuses flags that mean nothing for the format.
pub(crate) fn refuse_given(flags: &[Given], arguments: &ExportArguments) -> Result<()> {
    let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    let format = arguments.format.to_possible_value();
    let format = format.as_ref().map_or("this", PossibleValue::get_name);
    let reason = format!("--{flag} means nothing for --format {format}: leave it out");
    Err(UsageError(reason).into())
}

fn copy_options(arguments: &ExportArguments) -> Result<CopyOptions> {
    let byte = |option, text: &Option<String>| {
        text.as_deref().map(|text| character(option, text)).transpose()
    };
    Ok(CopyOptions {
        format: match arguments.format {
            ExportFormat::Text => Format::Text,
            ExportFormat::Csv => Format::Csv,
            _ => Format::Text,
        },
        delimiter: byte("delimiter", &arguments.delimiter)?,
        null: arguments.null.as_ref().map(|text| text.clone().into_bytes()),
        header: arguments.header,
        quote: byte("quote", &arguments.quote)?,
        escape: byte("escape", &arguments.escape)?,
        force_quote: match arguments.force_quote.as_deref() {
            None => ForcedColumns::None,
            Some("*") => ForcedColumns::All,
            Some(list) => ForcedColumns::Columns(
                column_list("force-quote", list)?.into_iter().map(Vec::from).collect(),
            ),
        },
    })
}
