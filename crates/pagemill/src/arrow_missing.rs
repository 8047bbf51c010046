//! The formats and flags of Parquet and Arrow in a program that was built without them: the answer is how to build them in.
//!
//! Invariant: nothing is opened before the answer.

use anyhow::Result;

use crate::failure::UsageError;
use pagemill_cli::export_arguments::{ExportArguments, ExportFormat};

const REMEDY: &str = "this program was built without Parquet and Arrow; the feature arrow builds them in: cargo install --locked --path crates/pagemill --features arrow";

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
