//! Where results go: a file that appears under its name only when it is whole, or a stream.
//!
//! A file has no name, or a temporary one beside its target, until [`Output::finish`] (see `partial_file.rs`); dropped
//! unfinished, it is gone. So nobody ever sees half a file, and an older file of the same name stays until the new one is
//! complete. What a killed process left, where there are no nameless files, the next one removes. What is there already
//! and is no regular file (a device, a pipe) is written to as it is: renaming would replace it.
//!
//! Each write call is counted, as every read is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, ErrorKind, Result};
use crate::host_files::HostFiles;
use crate::partial_file::{self, Partial};
use crate::storage::Storage;

/// How much a pipe may hold that results are written to: what Linux lets anybody ask for
/// (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

/// Where bytes of a result go, in order: a file or descriptor ([`Output`]), or any writer ([`WriterSink`]).
pub trait ByteSink {
    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// Names the sink.
    fn write_all(&mut self, bytes: &[u8]) -> Result<()>;
}

impl ByteSink for Output {
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        Self::write_all(self, bytes)
    }
}

/// Any writer as a sink. Its calls are its own and are not counted.
#[derive(Debug)]
pub struct WriterSink<W> {
    writer: W,
    name: PathBuf,
}

impl<W: io::Write> WriterSink<W> {
    /// A sink over a writer, called `name` in messages.
    pub fn new(writer: W, name: &str) -> Self {
        Self { writer, name: name.into() }
    }

    /// Flushes the writer: what a buffered one still holds would fail unseen when it is dropped.
    ///
    /// # Errors
    /// Names the sink.
    pub fn finish(mut self) -> Result<()> {
        self.writer.flush().map_err(|error| Error::new(error, &self.name))
    }
}

impl<W: io::Write> ByteSink for WriterSink<W> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(|error| Error::new(error, &self.name))
    }
}

/// An open destination for bytes.
#[derive(Debug)]
pub struct Output {
    storage: Storage,
    fd: OwnedFd,
    /// The name for messages, and of the finished file.
    target: PathBuf,
    /// What the file is until it is finished; `None` for a stream.
    partial: Option<Partial>,
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
        // A pipe of the usual 64 kB has writer and reader take turns. What is no pipe, or may not grow, stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&fd, PIPE_BYTES);
        Ok(Self { storage: storage.clone(), fd, target, partial: None })
    }

    /// Standard output.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when it was closed as the process began, and when it cannot be copied.
    pub fn standard(storage: &Storage) -> Result<Self> {
        let name = "standard output";
        if pagemill_sys::standard_output_was_closed() {
            return Err(Error::new(ErrorKind::Closed, name));
        }
        Self::stream(storage, io::stdout(), name)
    }

    /// An output to the file `path`, which comes to be when the output is finished.
    ///
    /// # Errors
    /// When the file cannot be made there.
    pub fn file(host: &HostFiles, path: &Path) -> Result<Self> {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = std::fs::metadata(&target).is_ok_and(|found| !found.is_file());
        let opened = if is_special {
            open(&target).map(|fd| (fd, None))
        } else {
            partial_file::create(&target).map(|(fd, partial)| (fd, Some(partial)))
        };
        // The system's own words for all but a missing directory: the remedies of reading are others.
        let kind = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io(error),
        };
        let (fd, partial) =
            opened.map_err(|error| Error::new(kind(io::Error::from(error)), path))?;
        Ok(Self { storage: host.storage().clone(), fd, target, partial })
    }

    /// An output to the file `path` that grows with each write: it is made, or emptied, at once.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn growing(host: &HostFiles, path: &Path) -> Result<Self> {
        let opened = std::fs::File::create(path);
        let file = opened.map_err(|error| Error::new(ErrorKind::Io(error), path))?;
        let (storage, target) = (host.storage().clone(), path.to_owned());
        Ok(Self { storage, fd: file.into(), target, partial: None })
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
        let begin = self.storage.call_begins();
        let outcome = rustix::io::write(&self.fd, bytes);
        let waited = self.storage.call_took(begin);
        self.storage.counters().record_write(outcome.unwrap_or(0), waited);
        outcome
    }

    /// Gives the file its name. Bytes are left to the kernel to write back, as by COPY.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(mut self) -> Result<()> {
        let Some(partial) = self.partial.take() else { return Ok(()) };
        partial_file::name(&self.fd, partial, &self.target)
            .map_err(|error| Error::new(error, &self.target))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            partial_file::remove(partial);
        }
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_buffered_writer_still_holds_is_an_error_if_it_cannot_be_written() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut sink = WriterSink::new(io::BufWriter::new(full), "full");
        ByteSink::write_all(&mut sink, b"row").unwrap();
        assert!(sink.finish().unwrap_err().to_string().contains("full"));
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.txt");
        let host = HostFiles::real();
        let mut output = Output::file(&host, &path).unwrap();
        output.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut output = Output::file(&host, &path).unwrap();
        output.write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let counted = host.storage().counters().snapshot();
        assert_eq!((counted.write_calls, counted.bytes_written), (2, 9));
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let host = HostFiles::real();
        let mut output = Output::file(&host, Path::new("/dev/null")).unwrap();
        output.write_all(b"gone").unwrap();
        output.finish().unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Output::file(&HostFiles::real(), Path::new("/nonexistent/t.txt")).unwrap_err();
        assert!(error.is_not_found() && error.to_string().starts_with("/nonexistent/t.txt"));
    }
}
