//! Text for standard output.
//!
//! Invariant: what could not be written is an error; the standard library's own stream passes over one that was closed,
//! and over what is left in its buffer at the end.

use anyhow::Result;
use pagemill_engine::Error as EngineError;
use pagemill_io::{Output, Storage};

/// Writes a text to standard output.
///
/// # Errors
/// When it is closed, or cannot be written to.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<()> {
    // Nothing to be said needs no stream.
    if text.as_ref().is_empty() {
        return Ok(());
    }
    let output = Output::standard(&Storage::real().untimed());
    let written = output.and_then(|mut output| output.write_all(text.as_ref()));
    Ok(written.map_err(EngineError::Output)?)
}
