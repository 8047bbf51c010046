//! A directory of results that appears under its name only when all of it is whole.
//!
//! ```text
//!   .NAME.PID.pagemill-partial/… ─ whole ─► renamed to NAME/
//! ```
//!
//! Until then it is locked, as a partial file is (see `partial_file.rs`): dropped unfinished, it is removed with all that is in
//! it, and what a killed process left the next one removes that writes beside it. A directory cannot be removed by the handler
//! of a signal: whoever fills one [watches](crate::watch_interrupts) signals and gives up when one came.
//!
//! Its files are open only while they are written to, so there may be any number of them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, ErrorKind, Result};
use crate::host_files::HostFiles;
use crate::output::ByteSink;
use crate::partial_file;
use crate::storage::Storage;

/// A directory in the making.
#[derive(Debug)]
pub struct OutputDirectory {
    storage: Storage,
    target: PathBuf,
    /// What it is called until it is whole, and what keeps others from removing it.
    partial: Option<(PathBuf, OwnedFd)>,
}

impl OutputDirectory {
    /// A directory that is to become `target`, which may be there already if it is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when something else is there; when none can be made beside it.
    pub fn new(host: &HostFiles, target: &Path) -> Result<Self> {
        refuse_what_is_there(target)?;
        let made = partial_file::create_directory(target);
        // The system's own words for all but a missing directory: the remedies of reading are others.
        let kind = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io(error),
        };
        let (path, lock) =
            made.map_err(|error| Error::new(kind(io::Error::from(error)), target))?;
        let (storage, target) = (host.storage().clone(), target.to_owned());
        Ok(Self { storage, target, partial: Some((path, lock)) })
    }

    /// What it will be called.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// A new file in it, in directories that are made where they are missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn file(&self, relative: &Path) -> Result<DirectoryFile> {
        let (partial, _) = self.partial.as_ref().expect("it is not finished"); // infallible: finishing takes it
        let path = partial.join(relative);
        let directory = path.parent().unwrap_or(partial);
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::new(ErrorKind::Io(error), directory))?;
        let mut file = DirectoryFile { storage: self.storage.clone(), path, fd: None };
        file.open(OFlags::CREATE | OFlags::EXCL)?;
        Ok(file)
    }

    /// Gives it its name. Bytes are left to the kernel to write back, as by COPY.
    ///
    /// # Errors
    /// When it cannot be renamed: something may be there by now.
    pub fn finish(mut self) -> Result<()> {
        let (path, _) = self.partial.as_ref().expect("it is not finished"); // infallible: finishing takes it
        std::fs::rename(path, &self.target)
            .map_err(|error| Error::new(ErrorKind::Io(error), &self.target))?;
        self.partial = None;
        Ok(())
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.partial {
            // Nothing can be done about a failure, and the name says what it is.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn refuse_what_is_there(target: &Path) -> Result<()> {
    match std::fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(Error::new(ErrorKind::Exists, target)),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::new(ErrorKind::Exists, target))
        }
        Err(error) => Err(Error::new(ErrorKind::Io(error), target)),
    }
}

/// A file in such a directory, written from its beginning to its end.
#[derive(Debug)]
pub struct DirectoryFile {
    storage: Storage,
    path: PathBuf,
    fd: Option<OwnedFd>,
}

impl DirectoryFile {
    /// Closes it until it is written to again.
    pub fn rest(&mut self) {
        self.fd = None;
    }

    fn open(&mut self, how: OFlags) -> Result<&OwnedFd> {
        let flags = how | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.path, flags, Mode::from_bits_truncate(0o666));
        let fd = opened.map_err(|error| self.failed(error))?;
        Ok(self.fd.insert(fd))
    }

    fn failed(&self, error: rustix::io::Errno) -> Error {
        Error::new(ErrorKind::Io(io::Error::from(error)), &self.path)
    }

    fn write_once(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.fd.is_none() {
            self.open(OFlags::empty())?;
        }
        let Some(fd) = &self.fd else { unreachable!("it was opened") };
        let begin = self.storage.call_begins();
        let outcome = rustix::io::write(fd, bytes);
        let waited = self.storage.call_took(begin);
        self.storage.counters().record_write(outcome.unwrap_or(0), waited);
        match outcome {
            Err(rustix::io::Errno::INTR) => Ok(0),
            written => written.map_err(|error| self.failed(error)),
        }
    }
}

impl ByteSink for DirectoryFile {
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = self.write_once(rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = std::fs::read_dir(path).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (host, target) = (HostFiles::real(), dir.path().join("t"));
        let output = OutputDirectory::new(&host, &target).unwrap();
        output.file(Path::new("a=1/b=2/part-0")).unwrap().write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(output);
        assert_eq!(names(dir.path()), [""; 0]);

        let output = OutputDirectory::new(&host, &target).unwrap();
        let mut file = output.file(Path::new("a=1/part-0")).unwrap();
        for piece in [b"one ", b"two "] {
            file.write_all(piece).unwrap();
            file.rest();
        }
        assert!(output.file(Path::new("a=1/part-0")).is_err(), "it is there");
        output.finish().unwrap();
        assert_eq!(names(dir.path()), ["t"]);
        assert_eq!(std::fs::read(target.join("a=1/part-0")).unwrap(), b"one two ");
    }

    #[test]
    fn only_an_empty_directory_may_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let (host, target) = (HostFiles::real(), dir.path().join("t"));
        std::fs::create_dir(&target).unwrap();
        let output = OutputDirectory::new(&host, &target).unwrap();
        output.file(Path::new("new")).unwrap();
        output.finish().unwrap();
        assert_eq!(names(&target), ["new"]);
        for taken in [target.as_path(), &target.join("new")] {
            let error = OutputDirectory::new(&host, taken).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
        }
        let error = OutputDirectory::new(&host, Path::new("/nonexistent/t")).unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_being_filled_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (host, target) = (HostFiles::real(), dir.path().join("t"));
        let left = dir.path().join(".old.77.pagemill-partial");
        std::fs::create_dir_all(left.join("a=1")).unwrap();
        std::fs::write(left.join("a=1/part-0"), "x").unwrap();
        let first = OutputDirectory::new(&host, &target).unwrap();
        assert!(!left.exists());
        let second = OutputDirectory::new(&host, &target).unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        drop((first, second));
        assert_eq!(names(dir.path()), [""; 0]);
    }
}
