//! The file that calls are tried on: one without a name, made in the directory, or where that cannot
//! be, an existing one that is only read.
//!
//! The own file is made with O_TMPFILE, which never gives it a name; where a file system lacks that, it
//! is made under a random name that is removed before anything else is done. Either way it is gone
//! when its descriptor is closed, also when the process is killed.
//!
//! Invariants: an existing file is never written, and its pages are not made to leave the cache; the
//! own file has `TRIAL_BYTES` bytes that neither compress nor repeat.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagemill_sys::{Mapping, cachestat};
use rustix::fd::AsFd as _;
use rustix::fs::{Advice, OFlags};

/// Size of the own file in bytes: more than one readahead of most settings, small enough to be no
/// burden.
pub(super) const TRIAL_BYTES: usize = 1 << 20;

/// How many names of a directory are looked at to find a file to read.
const MOST_LOOKED_AT: usize = 1000;

/// How long an effect in the background is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// A file to try calls on.
#[derive(Debug)]
pub(super) struct TrialFile {
    pub(super) file: File,
    /// Bytes that trials may read, from the start on.
    pub(super) len: usize,
    /// The path of an existing file; None for the own one.
    pub(super) existing: Option<PathBuf>,
    page_size: u64,
    /// True once pages were found that do not leave the cache, however long one waits.
    keeps_pages: Cell<bool>,
}

impl TrialFile {
    /// Makes a file in `directory` and fills it.
    pub(super) fn make(directory: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        file.write_all_at(&noise(), 0)?;
        Ok(Self::of(file, TRIAL_BYTES, None))
    }

    /// Opens the first file in `directory`, or in a directory within that is on the same device, that is
    /// long enough to be of use; failing that the longest seen.
    pub(super) fn existing(directory: &Path) -> Option<Self> {
        let path = candidate(directory)?;
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
        let flags = i32::try_from(flags).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path).ok()?;
        let len = file.metadata().ok()?.len().min(TRIAL_BYTES as u64);
        (len > 0).then_some(())?;
        Some(Self::of(file, usize::try_from(len).unwrap_or(0), Some(path)))
    }

    fn of(file: File, len: usize, existing: Option<PathBuf>) -> Self {
        let page_size = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        Self { file, len, existing, page_size, keeps_pages: Cell::new(false) }
    }

    pub(super) fn is_own(&self) -> bool {
        self.existing.is_none()
    }

    /// Opens the same file once more.
    pub(super) fn reopened(&self, flags: OFlags) -> rustix::io::Result<File> {
        use rustix::fd::AsRawFd as _;
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let access = if self.is_own() { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::CLOEXEC | flags;
        Ok(File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?))
    }

    /// Machine pages that the file's bytes fill.
    pub(super) fn pages(&self) -> u64 {
        (self.len as u64).div_ceil(self.page_size)
    }

    /// Machine pages of it that are in the page cache, as far as the kernel tells: by mincore, since on
    /// overlayfs cachestat looks at the wrong file; by cachestat where files cannot be mapped.
    pub(super) fn cached_pages(&self) -> Option<u64> {
        let asked = || Some(cachestat(&self.file, 0..self.len as u64).ok()?.cached);
        self.resident_pages().ok().or_else(asked)
    }

    /// The same, asked with mincore.
    pub(super) fn resident_pages(&self) -> io::Result<u64> {
        let mapping = Mapping::new(self.file.as_fd(), self.len)?;
        let resident = mapping.resident(0..self.len)?;
        Ok(resident.into_iter().filter(|&page| page).count() as u64)
    }

    /// Makes the own file's pages leave the cache, and says how many stayed: None where that cannot be
    /// told or the file is not one's own.
    pub(super) fn drop_cached(&self) -> Option<u64> {
        if !self.is_own() {
            return None;
        }
        // A page that is still being fetched stays; whoever has read it has waited for it.
        self.fill_cache();
        rustix::fs::fdatasync(&self.file).ok()?;
        let start = Instant::now();
        loop {
            rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed).ok()?;
            let stayed = self.cached_pages()?;
            if stayed == 0 || self.keeps_pages.get() {
                return Some(stayed);
            }
            // Writing back may hold a page for a moment longer.
            self.keeps_pages.set(start.elapsed() > PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Reads the file, so that its pages are cached.
    pub(super) fn fill_cache(&self) {
        let mut buf = vec![0; self.len];
        // Whether it worked is seen in the cache, by whoever wants it filled.
        let _ = self.file.read_exact_at(&mut buf, 0);
    }

    /// Waits until pages are cached, and returns how many are.
    pub(super) fn await_cached(&self) -> Option<u64> {
        let start = Instant::now();
        loop {
            let cached = self.cached_pages()?;
            if cached >= self.pages() || start.elapsed() > PATIENCE {
                return Some(cached);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The bytes of the own file: those of a xorshift generator (Marsaglia 2003), so that a file system can
/// neither compress them nor take them for a hole.
pub(super) fn noise() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(TRIAL_BYTES / 8).flatten().collect()
}

fn candidate(directory: &Path) -> Option<PathBuf> {
    let mut pending = std::collections::VecDeque::from([directory.to_path_buf()]);
    let mut longest: Option<(u64, PathBuf)> = None;
    let mut looked_at = 0;
    let device = std::fs::metadata(directory).ok().map(|found| found.dev());
    while let Some(directory) = pending.pop_front() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MOST_LOOKED_AT {
                return longest.map(|(_, path)| path);
            }
            let Ok(kind) = entry.file_type() else { continue };
            let Ok(found) = entry.metadata() else { continue };
            if kind.is_dir() && Some(found.dev()) == device {
                pending.push_back(entry.path());
            } else if kind.is_file() && File::open(entry.path()).is_ok() {
                let len = found.len();
                if longest.as_ref().is_none_or(|(known, _)| *known < len) {
                    longest = Some((len, entry.path()));
                }
                if len >= TRIAL_BYTES as u64 {
                    return Some(entry.path());
                }
            }
        }
    }
    longest.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_file_has_no_name_and_is_full_of_noise() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialFile::make(dir.path()).unwrap();
        assert!(trial.is_own());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut contents = vec![0; TRIAL_BYTES];
        trial.file.read_exact_at(&mut contents, 0).unwrap();
        assert!(contents == noise());
        assert!(contents.chunks(8).all(|word| word != [0; 8]));
    }

    #[test]
    fn of_existing_files_one_that_is_long_enough_is_read_or_else_the_longest() {
        let dir = tempfile::tempdir().unwrap();
        assert!(TrialFile::existing(dir.path()).is_none());
        std::fs::write(dir.path().join("short"), "x").unwrap();
        std::fs::create_dir(dir.path().join("base")).unwrap();
        std::fs::write(dir.path().join("base/longer"), [1; 9000]).unwrap();
        let found = TrialFile::existing(dir.path()).unwrap();
        assert_eq!((found.len, found.is_own()), (9000, false));
        assert!(found.existing.as_ref().unwrap().ends_with("base/longer"));
        assert_eq!(found.drop_cached(), None);
    }
}
