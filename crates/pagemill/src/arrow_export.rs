//! `pagemill export` as Parquet and Arrow IPC: what the flags ask for, and one table's file.
//! Errors of values come with the flag that lets them through.

use anyhow::{Error, Result};
use pagemill_arrow::{ArrowExport, ArrowOptions, Error as ArrowError, FileFormat, Remedy};
use pagemill_engine::{Error as EngineError, ExportOptions, IndexOrder, RowSource};

use crate::export::{Given, Job, finish, note, refuse_given};
use crate::failure::{UsageError, is_interruption};
use crate::tables::Watch;
use pagemill_cli::export_arguments::{ExportArguments, ExportFormat};

/// What the flags ask for, if it is one of Arrow's formats; the flags of the other formats are refused.
pub(crate) fn arrow_options(
    options: &ExportOptions,
    arguments: &ExportArguments,
) -> Result<Option<ArrowOptions>> {
    let format = match arguments.format {
        ExportFormat::Parquet => FileFormat::Parquet,
        ExportFormat::Arrow => FileFormat::Arrow,
        ExportFormat::ArrowStream => FileFormat::ArrowStream,
        ExportFormat::Text | ExportFormat::Csv | ExportFormat::Json => {
            return refuse_given(&arrow_flags(arguments), arguments).map(|()| None);
        }
    };
    let flags = &arguments.arrow;
    if format != FileFormat::Parquet {
        refuse_given(&[("row-group-size", flags.row_group_size.is_some())], arguments)?;
    }
    flags.options(format, options.columns.clone(), options.scan).map(Some)
}

fn arrow_flags(arguments: &ExportArguments) -> [Given; 6] {
    let flags = &arguments.arrow;
    [
        ("compression", flags.compression.is_some()),
        ("row-group-size", flags.row_group_size.is_some()),
        ("numeric", flags.numeric.is_some()),
        ("infinity", flags.infinity.is_some()),
        ("arrays", flags.arrays.is_some()),
        ("partition-by", flags.partition_by.is_some()),
    ]
}

impl Job<'_> {
    pub(crate) fn export_arrow(
        &self,
        options: &ArrowOptions,
        source: &RowSource<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let end = self.session.end_of_wal(source.database().cluster()).map(|lsn| lsn.to_string());
        let options = &ArrowOptions { redo_end: end, ..options.clone() };
        let export = ArrowExport::prepare(source, &self.catalog, options, watch.progress);
        let export = export.map_err(told)?;
        let order = self.order.as_ref().map(|order| order.index(source)).transpose()?;
        if !options.partition_by.is_empty() {
            return self.export_partitioned(&export, order.as_ref(), source, watch);
        }
        let mut output = self.output(source, watch)?;
        let done = match &order {
            None => export.write(&mut output, watch.progress, watch.damage),
            Some(order) => export.write_in_order(order, &mut output, watch.progress, watch.damage),
        };
        let done = done.map_err(told)?;
        finish(output, done, watch)
    }

    fn export_partitioned(
        &self,
        export: &ArrowExport<'_>,
        order: Option<&IndexOrder>,
        source: &RowSource<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        self.tell_order(source, watch);
        // A directory cannot be removed by the handler of a signal: the work is undone instead.
        let _ = pagemill_io::watch_interrupts();
        let directory = self.output_directory()?;
        let done = match order {
            None => export.write_partitioned(&directory, watch.progress, watch.damage),
            Some(order) => {
                export.write_partitioned_in_order(order, &directory, watch.progress, watch.damage)
            }
        };
        let done = done.map_err(told).map_err(|error| match is_interruption(&error) {
            true => error.context("nothing was exported, and what was written so far is removed"),
            false => error,
        })?;
        directory.finish().map_err(EngineError::Output)?;
        note(done, watch);
        Ok(())
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
                Remedy::Arrays => ": --arrays text or json lets it through",
                Remedy::Columns => ": leave out the column, with --columns",
            };
            Error::msg(format!("{unfit}{remedy}"))
        }
        other => other.into(),
    }
}
