//! The lock file of an image: it names the process that recorded, which goes on living, unlike one whose machine lost
//! its power.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// The number of a process that is gone.
fn dead_process() -> Result<u32> {
    static DEAD: OnceLock<u32> = OnceLock::new();
    if let Some(number) = DEAD.get() {
        return Ok(*number);
    }
    let mut child = Command::new("true").spawn().context("starting true")?;
    child.wait()?;
    Ok(*DEAD.get_or_init(|| child.id()))
}

/// Lets `postmaster.pid`, where it names this process, name one that is gone.
///
/// # Errors
/// When it cannot be read or written.
pub fn name_a_dead_process(data: &Path) -> Result<()> {
    let path = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let own = format!("-{}\n", std::process::id());
    if let Some(rest) = text.strip_prefix(&own) {
        fs::write(&path, format!("-{}\n{rest}", dead_process()?))?;
    }
    Ok(())
}
