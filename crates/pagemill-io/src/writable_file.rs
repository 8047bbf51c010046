//! A file that is written: calls repeated and counted, errors that name it, failed syncs remembered.
//!
//! Invariants: a write either takes all bytes or is an error that says at which offset it stopped; a sync
//! after a failed one fails (see `failed_sync.rs`). Any number of threads may write to one file at once,
//! to parts that do not overlap.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_sys::WriteBack;

use crate::error::{Error, ErrorKind, Result};
use crate::seam::{Create, File, OpenForWrite};
use crate::storage::Storage;

/// Buffers handed to the kernel in one call at most (`IOV_MAX` of Linux).
const MOST_BUFFERS: usize = 1024;

/// An open file and its name. Clones are the same file.
#[derive(Debug, Clone)]
pub struct WritableFile {
    storage: Storage,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl Storage {
    /// Opens a file for reading and writing. A new one lasts only when its directory was
    /// [synced](Self::sync_dir) too.
    ///
    /// # Errors
    /// Names the file. [`ErrorKind::Exists`] where a new one was wanted.
    pub fn open_for_write(&self, path: &Path, how: OpenForWrite) -> Result<WritableFile> {
        let file = self.file_system().open_for_write(path, how);
        let file = file.map_err(|error| Error::new(error, path))?;
        if let Some(modes) = self.modes().filter(|_| how.create != Create::Existing) {
            modes.set(&*file).map_err(|error| Error::new(error, path))?;
        }
        Ok(WritableFile { storage: self.clone(), path: path.to_owned(), file: Arc::from(file) })
    }
}

impl WritableFile {
    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was opened through.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The file, for calls that are counted elsewhere or not at all.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Its size in bytes, asked for anew.
    ///
    /// # Errors
    /// Names the file.
    pub fn len(&self) -> Result<u64> {
        self.file.len().map_err(|error| self.error(error))
    }

    /// True when it has no bytes.
    ///
    /// # Errors
    /// Names the file.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// Names the file and the offset; [`ErrorKind::ShortRead`] when the file ends before.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let got = self.storage.read_fully_at(self.file.as_ref(), buf, offset);
        let got = got.map_err(|error| self.error(error).with_offset(offset))?;
        if got == buf.len() {
            return Ok(());
        }
        let kind = ErrorKind::ShortRead { expected: buf.len() as u64, got: got as u64 };
        Err(Error::new(kind, &self.path).with_offset(offset))
    }

    /// Writes all of `buf` at `offset`; short and interrupted calls are repeated.
    ///
    /// # Errors
    /// Names the file and the offset of the first byte that was not written.
    pub fn write_all_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = buf.get(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            done += self.write_once(rest.len(), at, || self.file.write_at(rest, at))?;
        }
        Ok(())
    }

    /// Writes all of `bufs`, one after the other, at `offset`; short and interrupted calls are repeated.
    ///
    /// # Errors
    /// As [`write_all_at`](Self::write_all_at).
    pub fn write_all_vectored_at(&self, bufs: &[&[u8]], offset: u64) -> Result<()> {
        let mut slices: Vec<IoSlice<'_>> = bufs.iter().map(|buf| IoSlice::new(buf)).collect();
        let mut rest = slices.as_mut_slice();
        let mut at = offset;
        // Empty buffers in front would look like a file that takes nothing.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let now = &rest[..rest.len().min(MOST_BUFFERS)];
            let wanted = now.iter().map(|slice| slice.len()).sum();
            let n = self.write_once(wanted, at, || self.file.write_vectored_at(now, at))?;
            at = at.saturating_add(n as u64);
            IoSlice::advance_slices(&mut rest, n);
        }
        Ok(())
    }

    /// One write call, timed and counted, and how many of the `wanted` bytes it took.
    fn write_once(
        &self,
        wanted: usize,
        offset: u64,
        call: impl FnOnce() -> io::Result<usize>,
    ) -> Result<usize> {
        let begin = self.storage.call_begins();
        let outcome = call();
        let waited = self.storage.call_took(begin);
        self.storage.counters().record_write(*outcome.as_ref().unwrap_or(&0), waited);
        self.written(wanted, outcome).map_err(|error| error.with_offset(offset))
    }

    /// What a write call's outcome means: a file that takes nothing would be asked forever.
    pub(crate) fn written(&self, wanted: usize, outcome: io::Result<usize>) -> Result<usize> {
        match outcome {
            Ok(0) => Err(self.error(io::Error::from(io::ErrorKind::WriteZero))),
            Ok(n) => Ok(n.min(wanted)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Takes space for a range of the file, in bytes, as the kernel does it: nothing is written. The file
    /// grows when need be. Interrupted calls are repeated.
    ///
    /// # Errors
    /// The system's: the caller knows what else could be done, and names the file.
    pub fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        loop {
            let begin = self.storage.call_begins();
            let outcome = self.file.allocate(range.clone());
            self.storage.counters().record_extend(self.storage.call_took(begin));
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Takes space for a range behind the file's end, in bytes, which stays where it is. Where the file system cannot
    /// do that, nothing is taken.
    ///
    /// # Errors
    /// Names the file: when there is no space.
    pub fn reserve(&self, range: Range<u64>) -> Result<()> {
        let begin = self.storage.call_begins();
        let outcome = self.repeat(|| self.file.reserve(range.clone()));
        self.storage.counters().record_extend(self.storage.call_took(begin));
        match outcome {
            Err(error) if is_missing(&error) => Ok(()),
            outcome => outcome.map_err(|error| self.error(error).with_offset(range.start)),
        }
    }

    /// Cuts the file at `len` bytes, or lengthens it by a hole.
    ///
    /// # Errors
    /// Names the file.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.repeat(|| self.file.set_len(len)).map_err(|error| self.error(error))
    }

    /// Sends what was written to a range, in bytes, to the device, so that a later sync is short. Makes
    /// nothing durable.
    ///
    /// # Errors
    /// Names the file. A failure to write counts as a failed sync: the kernel may not tell it again.
    pub fn write_back(&self, range: Range<u64>, how: WriteBack) -> Result<()> {
        self.storage.counters().record_advice();
        let begin = self.storage.call_begins();
        let outcome = self.file.write_back(range, how);
        self.storage.counters().record_wait(self.storage.call_took(begin));
        match outcome {
            // A kernel or a file system without it writes back on its own.
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(self.storage.failed_sync().record(&error, &self.path)),
            Ok(()) => Ok(()),
        }
    }

    /// Waits until the device holds what was written, and the file's size.
    ///
    /// # Errors
    /// Names the file; [`ErrorKind::SyncFailed`], or that an earlier one had failed.
    pub fn sync_data(&self) -> Result<()> {
        self.sync(|| self.file.sync_data())
    }

    /// As [`sync_data`](Self::sync_data), with all that is known of the file.
    ///
    /// # Errors
    /// As [`sync_data`](Self::sync_data).
    pub fn sync_all(&self) -> Result<()> {
        self.sync(|| self.file.sync_all())
    }

    fn sync(&self, call: impl FnMut() -> io::Result<()>) -> Result<()> {
        self.storage.sync_call(&self.path, call)
    }

    fn repeat(&self, mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// A failure of this file.
    pub fn error(&self, kind: impl Into<ErrorKind>) -> Error {
        Error::new(kind, &self.path)
    }
}

impl Storage {
    /// Syncs, once no earlier sync failed, and remembers if this one does. Each call is timed and counted;
    /// interrupted ones are repeated.
    pub(crate) fn sync_call(
        &self,
        path: &Path,
        mut call: impl FnMut() -> io::Result<()>,
    ) -> Result<()> {
        self.failed_sync().check(path)?;
        loop {
            let begin = self.call_begins();
            let outcome = call();
            self.counters().record_sync(self.call_took(begin));
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if was_not_tried(&error) => return Err(Error::new(error, path)),
                Err(error) => return Err(self.failed_sync().record(&error, path)),
            }
        }
    }
}

/// True when what was to be synced could not even be opened, as a directory that is not there.
fn was_not_tried(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let opening = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::MFILE, Errno::NFILE];
    errno.is_none_or(|errno| opening.contains(&errno))
}

/// True when there is no such call here, or not for such a file.
fn is_missing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        errno,
        Some(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::SPIPE | Errno::OPNOTSUPP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::Caching;
    use crate::simulated::{Disturbance, FaultyFileSystem};

    const NEW: OpenForWrite = OpenForWrite { create: Create::New, caching: Caching::Buffered };

    fn open(files: &FaultyFileSystem, name: &str) -> (tempfile::TempDir, WritableFile) {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::new(Arc::new(files.clone()));
        let file = storage.open_for_write(&dir.path().join(name), NEW).unwrap();
        (dir, file)
    }

    #[test]
    fn short_and_interrupted_writes_are_repeated_and_counted() {
        let files = FaultyFileSystem::default();
        let (_dir, file) = open(&files, "16384");
        files.disturb([Disturbance::Short(3), Disturbance::Interrupted, Disturbance::Short(1)]);
        file.write_all_at(b"0123456789", 2).unwrap();
        files.disturb([Disturbance::Interrupted, Disturbance::Short(1)]);
        file.write_all_vectored_at(&[b"", b"ab", b"", b"cd", b""], 12).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"\x00\x000123456789abcd");
        let counted = file.storage().counters().snapshot();
        assert_eq!((counted.write_calls, counted.bytes_written), (8, 14));
    }

    #[test]
    fn more_buffers_than_one_call_takes_are_all_written() {
        let files = FaultyFileSystem::default();
        let (_dir, file) = open(&files, "16384");
        let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let bufs: Vec<&[u8]> = bytes.chunks(1).collect();
        file.write_all_vectored_at(&bufs, 0).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
    }

    #[test]
    fn a_write_that_fails_names_the_file_and_the_offset_it_came_to() {
        let files = FaultyFileSystem::default();
        let (_dir, file) = open(&files, "16384");
        files.disturb([Disturbance::Short(4), Disturbance::NoSpace]);
        let error = file.write_all_at(b"0123456789", 8192).unwrap_err();
        assert!(error.is_no_space() && error.offset() == Some(8196), "{error}");
        assert!(error.to_string().contains("16384: offset 8196: no space left"), "{error}");
    }

    #[test]
    fn after_a_failed_sync_no_sync_of_the_job_succeeds() {
        let files = FaultyFileSystem::default();
        let (_dir, file) = open(&files, "16384");
        let other = file.path().with_file_name("16385");
        let other = file.storage().open_for_write(&other, NEW).unwrap();
        other.sync_data().unwrap();
        files.fail_syncs(1);
        let error = file.sync_data().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::SyncFailed { .. }), "{error}");
        for error in [file.sync_all().unwrap_err(), other.sync_all().unwrap_err()] {
            assert!(matches!(error.kind(), ErrorKind::SyncFailedBefore { .. }), "{error}");
        }
        assert_eq!(file.storage().counters().snapshot().sync_calls, 2);
    }

    #[test]
    fn space_is_taken_with_zeros_and_cut_again() {
        let files = FaultyFileSystem::default();
        let (_dir, file) = open(&files, "16384");
        match file.allocate(0..32_768) {
            Err(error) => println!("SKIPPED: fallocate: {error}"),
            Ok(()) => {
                assert_eq!(file.len().unwrap(), 32_768);
                assert_eq!(file.storage().counters().snapshot().extend_calls, 1);
            }
        }
        file.set_len(8192).unwrap();
        assert_eq!(file.len().unwrap(), 8192);
        let mut page = [1; 8192];
        file.read_exact_at(&mut page, 0).unwrap();
        assert_eq!(page, [0; 8192]);
        let error = file.read_exact_at(&mut page, 1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 8192, got: 8191 }));
    }
}
