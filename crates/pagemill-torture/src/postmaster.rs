//! The lock file of an image: it names the process that recorded, which goes on living, unlike one whose machine lost
//! its power.
//!
//! Invariant: afterwards the file names a process that cannot be there.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// More than any process of Linux is numbered (`PID_MAX_LIMIT`).
const NOBODY: u32 = (1 << 22) + 1;

/// Lets `postmaster.pid`, where it names this process, name one that is gone.
///
/// # Errors
/// When it cannot be read or written.
pub fn name_a_dead_process(data: &Path) -> Result<()> {
    let path = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let own = format!("-{}\n", std::process::id());
    if let Some(rest) = text.strip_prefix(&own) {
        fs::write(&path, format!("-{NOBODY}\n{rest}"))?;
    }
    Ok(())
}
