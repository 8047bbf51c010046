//! Why nobody extends with `ftruncate`: on a full device it promises what a later write does not get.
//!
//! Shown on a file system of 1 MiB in memory, which one thread mounts for itself and which ends with it. Counted is what
//! was promised and could not be written. Invariant: no device is filled.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use pagemill_format::BLOCK_SIZE;
use rustix::io::Errno;

use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::grow::GrowMethod;

/// Bytes of the tiny file system.
const SPACE: u64 = 1 << 20;
/// Bytes that the file shall grow to.
const WANTED: u64 = 2 << 20;

/// One for each way, on a directory to mount on.
pub(crate) fn contestants(directory: &Path) -> Vec<Contestant<'static>> {
    let ways = [GrowMethod::WriteZeros, GrowMethod::PosixFallocate, GrowMethod::Ftruncate];
    ways.into_iter().map(|way| contestant(way, directory.into())).collect()
}

fn contestant(way: GrowMethod, directory: PathBuf) -> Contestant<'static> {
    let work = move |_: &_| {
        let directory = directory.clone();
        let thread = std::thread::Builder::new().spawn(move || promise(way, &directory));
        let thread = thread.map_err(Error::system("threads"))?;
        let lost = |_| Error::system("threads")(io::Error::other("the thread panicked"));
        thread.join().map_err(lost)?
    };
    Contestant::new(way.name(), work).parameter("method", way.name()).by_threads()
}

/// Extends beyond the space there is, then fills what was promised.
fn promise(way: GrowMethod, directory: &Path) -> Result<Work> {
    pagemill_sys::mount_memory_for_thread(directory, SPACE).map_err(Error::system("mount"))?;
    let path = directory.join("file");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = file.map_err(Error::system("a file on the tiny file system"))?;
    let zeros = vec![0; usize::try_from(WANTED).unwrap_or(usize::MAX)];
    let (promised, told) = match way.extend(&file, 0, &zeros) {
        Ok(()) => (WANTED, "promised"),
        Err(error) if is_full(&error) => (0, "refused at once: no space left"),
        Err(error) => return Err(Error::system(way.name())(error)),
    };
    let written = fill(&file, promised).map_err(Error::system("pwrite"))?;
    let late = promised.saturating_sub(written);
    let note = match late {
        0 => told.to_owned(),
        _ => format!("{promised} bytes promised, no space left after {written}"),
    };
    Ok(Work { counted: Some(late as f64), note: Some(note), ..Work::operations(1) })
}

/// How many bytes could be written of those promised.
fn fill(file: &File, promised: u64) -> io::Result<u64> {
    let page = vec![1; BLOCK_SIZE];
    for at in (0..promised).step_by(BLOCK_SIZE) {
        match file.write_all_at(&page, at) {
            Err(error) if is_full(&error) => return Ok(at),
            outcome => outcome?,
        }
    }
    Ok(promised)
}

fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;

    #[test]
    fn only_ftruncate_promises_what_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        for mut contestant in contestants(dir.path()) {
            let work = match contestant.perform.as_mut().ok().unwrap()(&Cancel::default()) {
                Ok(work) => work,
                Err(error) => {
                    eprintln!("skipped: {error}");
                    return;
                }
            };
            let late = work.counted.unwrap();
            assert_eq!(late > 0.0, contestant.name == "ftruncate", "{work:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
