//! Files that experiments read and write: full of bytes that do not compress, on the device, out of the page cache.
//!
//! Why written in full: blocks that were only allocated, or are holes, are read and written by other ways of the file
//! system.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::cache::drop_file;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::experiments::random::Random;

/// Bytes written at once.
const CHUNK: u64 = 1 << 20;

/// Makes a file of so many bytes.
///
/// # Errors
/// When it cannot be written, or somebody ends the run.
pub(crate) fn make(path: &Path, bytes: u64, seed: u64, cancel: &Cancel) -> Result<()> {
    let fault = || Error::file(path);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path).map_err(fault())?;
    let mut random = Random::new(seed);
    let mut chunk = vec![0; usize::try_from(CHUNK.min(bytes)).unwrap_or(0)];
    let mut done = 0;
    while done < bytes {
        cancel.check()?;
        random.fill(&mut chunk);
        let now = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(chunk.len());
        file.write_all_at(chunk.get(..now).unwrap_or_default(), done).map_err(fault())?;
        done += now as u64;
    }
    file.sync_all().map_err(fault())?;
    drop_file(path).map_err(fault())
}
