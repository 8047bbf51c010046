//! The machine as each turn shall find it: nothing left to be written, and no free memory that has to be fetched.
//!
//! A virtual machine may hand free memory back to its host, within a second of a large file's deletion. Touching it
//! again then costs up to ten times what reusing memory costs, and whose turn comes next would pay, by luck. So what is
//! free is filled with clean pages of the cache: holes of a sparse file, which take no room on the disk, and which the
//! kernel gives up at once, without writing anything.
//!
//! Invariant: nothing that is in use is pushed out, as only free memory is filled.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;

/// What is left free: with less the kernel would begin to reclaim.
const LEFT: u64 = 512 << 20;
/// Of the sparse file; below the largest of every common file system.
const LENGTH: u64 = 8 << 40;
const PIECE: u64 = 1 << 20;

/// The sparse file. It has no name, so it is gone with this process.
static HOLES: OnceLock<File> = OnceLock::new();
/// Where the next piece is read, so that none is read twice.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How the environment of a benchmark tells it whose turns begin so.
pub(super) fn told() -> (&'static str, String) {
    ("free memory", "filled with clean page cache before each turn that writes".to_owned())
}

/// Writes out what is dirty, and fills what is free. `directory`: on a file system with room for sparse files.
pub(super) fn settle(directory: &Path) -> Result<()> {
    rustix::fs::sync();
    let Some(free) = free_memory() else { return Ok(()) };
    let holes = match HOLES.get() {
        Some(file) => file,
        None => {
            let file = tempfile::tempfile_in(directory)?;
            file.set_len(LENGTH)?;
            HOLES.get_or_init(|| file)
        }
    };
    let mut piece = vec![0; PIECE as usize];
    for _ in 0..free.saturating_sub(LEFT) / PIECE {
        holes.read_exact_at(&mut piece, NEXT.fetch_add(PIECE, Relaxed) % LENGTH)?;
    }
    Ok(())
}

/// Bytes of memory that nothing uses, where the system tells.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemFree:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
