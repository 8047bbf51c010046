//! Where clusters are copied to: in memory where there is a file system for that, as they are copied thousands of times
//! and none has to last.
//!
//! Invariant: `TMPDIR`, where it is set, decides.

use std::path::Path;

use anyhow::Result;
use tempfile::{Builder, TempDir};

/// Memory as a file system.
const MEMORY: &str = "/dev/shm";

/// A directory that is removed with its contents when it is dropped.
///
/// # Errors
/// When it cannot be made.
pub fn new(prefix: &str) -> Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    let in_memory = std::env::var_os("TMPDIR").is_none() && Path::new(MEMORY).is_dir();
    Ok(if in_memory { builder.tempdir_in(MEMORY)? } else { builder.tempdir()? })
}
