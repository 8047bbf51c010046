//! The formats and flags of Parquet and Arrow in a program that was built without them: taken, so that they are answered
//! with how to build them in, and not called unknown.
//!
//! Invariant: nothing is opened before the answer.

use anyhow::Result;
use clap::Args;

use crate::arguments::{ExportArguments, ExportFormat};
use crate::failure::UsageError;

const REMEDY: &str = "this program was built without Parquet and Arrow; the feature arrow builds them in: cargo install --locked --path crates/pagemill --features arrow";

/// The flags of those formats, whatever their values are.
#[derive(Debug, Args)]
pub(crate) struct ArrowArguments {
    #[arg(long, hide = true)]
    compression: Option<String>,
    #[arg(long, hide = true)]
    row_group_size: Option<String>,
    #[arg(long, hide = true)]
    numeric: Option<String>,
    #[arg(long, hide = true)]
    infinity: Option<String>,
    #[arg(long, hide = true)]
    arrays: Option<String>,
    #[arg(long, hide = true)]
    partition_by: Option<String>,
}

/// Refuses what only a program with the feature can do.
///
/// # Errors
/// Names the format or the flag, and how to build it in.
pub(crate) fn refuse(arguments: &ExportArguments) -> Result<()> {
    let format = match arguments.format {
        ExportFormat::Text | ExportFormat::Csv | ExportFormat::Json => None,
        ExportFormat::Parquet => Some("format parquet"),
        ExportFormat::Arrow => Some("format arrow"),
        ExportFormat::ArrowStream => Some("format arrow-stream"),
    };
    match format.or_else(|| arguments.arrow.given()) {
        None => Ok(()),
        Some(flag) => Err(UsageError(format!("--{flag}: {REMEDY}")).into()),
    }
}

impl ArrowArguments {
    fn given(&self) -> Option<&'static str> {
        let flags = [
            ("compression", &self.compression),
            ("row-group-size", &self.row_group_size),
            ("numeric", &self.numeric),
            ("infinity", &self.infinity),
            ("arrays", &self.arrays),
            ("partition-by", &self.partition_by),
        ];
        flags.into_iter().find(|(_, value)| value.is_some()).map(|(flag, _)| flag)
    }
}
