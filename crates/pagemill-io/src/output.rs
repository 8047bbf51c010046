//! Where results go: a file that appears under its name only when it is whole, or a stream.
//!
//! A file is written under a temporary name beside its target and renamed by [`Output::finish`];
//! dropped unfinished, it is removed. So nobody ever sees half a file, and an older file of the
//! same name stays until the new one is complete. What is there already and is no regular file (a
//! device, a pipe) is written to as it is: renaming would replace it.
//!
//! Each write call is counted, as every read is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, Result};
use crate::storage::Storage;

/// An open destination for bytes.
#[derive(Debug)]
pub struct Output {
    storage: Storage,
    fd: OwnedFd,
    /// The name for messages, and of the finished file.
    target: PathBuf,
    /// What the file is called until it is finished; `None` for a stream.
    temporary: Option<PathBuf>,
}

impl Output {
    /// An output to a copy of an open descriptor, such as standard output, called `name` in
    /// messages.
    ///
    /// # Errors
    /// When the descriptor cannot be copied.
    pub fn stream(storage: &Storage, fd: impl AsFd, name: &str) -> Result<Self> {
        let target = PathBuf::from(name);
        let fd = fd.as_fd().try_clone_to_owned().map_err(|error| Error::new(error, &target))?;
        Ok(Self { storage: storage.clone(), fd, target, temporary: None })
    }

    /// An output to the file `path`, which comes to be when the output is finished.
    ///
    /// # Errors
    /// When the file cannot be made there.
    pub fn file(storage: &Storage, path: &Path) -> Result<Self> {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = std::fs::metadata(&target).is_ok_and(|found| !found.is_file());
        let (opened, flags) = if is_special {
            (target.clone(), OFlags::WRONLY)
        } else {
            (temporary_name(&target), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
        };
        let mode = Mode::from_bits_truncate(0o666);
        let fd = rustix::fs::open(&opened, flags | OFlags::CLOEXEC, mode)
            .map_err(|error| Error::new(io::Error::from(error), path))?;
        let temporary = (!is_special).then_some(opened);
        Ok(Self { storage: storage.clone(), fd, target, temporary })
    }

    /// Writes all of `bytes`; short and interrupted calls are repeated.
    ///
    /// # Errors
    /// Names the output.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.write_once(rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::new(io::Error::from(error), &self.target)),
            }
        }
        Ok(())
    }

    fn write_once(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let start = Instant::now();
        let outcome = rustix::io::write(&self.fd, bytes);
        self.storage.counters().record_write(outcome.unwrap_or(0), start.elapsed());
        outcome
    }

    /// Gives the file its name. Bytes are left to the kernel to write back, as by COPY.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(mut self) -> Result<()> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        std::fs::rename(&temporary, &self.target).map_err(|error| {
            // The name could not be given; what was written is of no use to anybody.
            let _ = std::fs::remove_file(&temporary);
            Error::new(error, &self.target)
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done about a failure, and the name says what the file is.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A name beside the target that no other process uses.
fn temporary_name(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.partial", std::process::id()));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.txt");
        let storage = Storage::real();
        let mut output = Output::file(&storage, &path).unwrap();
        output.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut output = Output::file(&storage, &path).unwrap();
        output.write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let counted = storage.counters().snapshot();
        assert_eq!((counted.write_calls, counted.bytes_written), (2, 9));
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let storage = Storage::real();
        let mut output = Output::file(&storage, Path::new("/dev/null")).unwrap();
        output.write_all(b"gone").unwrap();
        output.finish().unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Output::file(&Storage::real(), Path::new("/nonexistent/t.txt")).unwrap_err();
        assert!(error.is_not_found() && error.to_string().starts_with("/nonexistent/t.txt"));
    }
}
