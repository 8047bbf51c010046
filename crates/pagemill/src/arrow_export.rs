//! `pagemill export` as Parquet and Arrow IPC: what the flags ask for, and one table's file.
//! Errors of values come with the flag that lets them through.

use anyhow::{Error, Result};
use pagemill_arrow::{ArrowExport, ArrowOptions, Error as ArrowError, FileFormat, Remedy};
use pagemill_engine::{ExportOptions, RowSource};

use crate::arguments::{ExportArguments, ExportFormat};
use crate::export::{Job, finish};
use crate::failure::UsageError;
use crate::tables::Watch;

/// What the flags ask for, if it is one of Arrow's formats; the flags of the other formats are refused.
pub(crate) fn arrow_options(
    options: &ExportOptions,
    arguments: &ExportArguments,
) -> Result<Option<ArrowOptions>> {
    let (format, name) = match arguments.format {
        ExportFormat::Parquet => (FileFormat::Parquet, "parquet"),
        ExportFormat::Arrow => (FileFormat::Arrow, "arrow"),
        ExportFormat::ArrowStream => (FileFormat::ArrowStream, "arrow-stream"),
        ExportFormat::Text | ExportFormat::Csv => {
            return refuse_given(&arrow_flags(arguments), "text and csv").map(|()| None);
        }
    };
    refuse_given(&copy_flags(arguments), name)?;
    let flags = &arguments.arrow;
    if format != FileFormat::Parquet {
        refuse_given(&[("row-group-size", flags.row_group_size.is_some())], name)?;
    }
    Ok(Some(ArrowOptions {
        columns: options.columns.clone(),
        numeric: flags.numeric.unwrap_or_default(),
        infinity: flags.infinity.map(Into::into).unwrap_or_default(),
        arrays: flags.arrays.map(Into::into).unwrap_or_default(),
        format,
        compression: flags.compression,
        row_group_rows: flags.row_group_size.map(|rows| rows as usize),
        scan: options.scan,
    }))
}

type Given = (&'static str, bool);

fn arrow_flags(arguments: &ExportArguments) -> [Given; 5] {
    let flags = &arguments.arrow;
    [
        ("compression", flags.compression.is_some()),
        ("row-group-size", flags.row_group_size.is_some()),
        ("numeric", flags.numeric.is_some()),
        ("infinity", flags.infinity.is_some()),
        ("arrays", flags.arrays.is_some()),
    ]
}

fn copy_flags(arguments: &ExportArguments) -> [Given; 7] {
    [
        ("delimiter", arguments.delimiter.is_some()),
        ("null", arguments.null.is_some()),
        ("header", arguments.header),
        ("quote", arguments.quote.is_some()),
        ("escape", arguments.escape.is_some()),
        ("force-quote", arguments.force_quote.is_some()),
        ("encoding", arguments.encoding.is_some()),
    ]
}

fn refuse_given(flags: &[Given], format: &str) -> Result<()> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(UsageError(format!("--{flag} means nothing for --format {format}: leave it out"))
                .into())
        }
    }
}

impl Job<'_> {
    pub(crate) fn export_arrow(
        &self,
        options: &ArrowOptions,
        source: &RowSource<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let end = self.session.end_of_wal(source.database().cluster()).map(|lsn| lsn.to_string());
        let how = (options, end.as_deref());
        let export = ArrowExport::prepare(source, &self.catalog, how, watch.progress);
        let export = export.map_err(told)?;
        let order = self.order.as_ref().map(|order| order.index(source)).transpose()?;
        let mut output = self.output(source, watch)?;
        let done = match &order {
            None => export.write(&mut output, watch.progress, watch.damage),
            Some(order) => export.write_in_order(order, &mut output, watch.progress, watch.damage),
        };
        finish(output, done.map_err(told)?, watch)
    }
}

/// The error as the command tells it: with what to type instead.
fn told(error: ArrowError) -> Error {
    match error {
        ArrowError::Engine(error) => error.into(),
        ArrowError::Usage(reason) => UsageError(reason).into(),
        ArrowError::Unfit(unfit) => {
            let remedy = match unfit.remedy {
                Remedy::Infinity => ": --infinity null or clamp lets it through",
                Remedy::Numeric => ": --numeric text lets it through",
                Remedy::Arrays => ": --arrays text lets it through",
                Remedy::Columns => ": leave out the column, with --columns",
            };
            Error::msg(format!("{unfit}{remedy}"))
        }
        other => other.into(),
    }
}
