//! Where bytes to load come from: a file, mapped or read from its beginning, or a stream.
//!
//! ```text
//!   regular file ──► MappedInput: bytes lent where the page cache holds them
//!                └─► InputStream: read in order, for what has to be decompressed first
//!   pipe, device, open descriptor ──► InputStream
//! ```
//!
//! A mapped file that somebody cuts, or whose device fails, reads as zeros from there on: whoever
//! uses its bytes asks [`MappedInput::check`] afterwards, before it believes what it saw. A file
//! that grows is read to the size it had when it was opened.
//!
//! A stream that has no bytes yet is waited for with an eye on [`check_interrupt`]: whoever writes to a pipe may never do
//! it again, and a signal has to end the work all the same.
//!
//! Each read call is counted, as for relations; EINTR is no failure, and a file that ends before
//! the size it had is a short read.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use pagemill_sys::{MapAdvice, Mapping};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use crate::error::{Error, ErrorKind, Result, check_interrupt};
use crate::host_files::HostFiles;
use crate::seam::File;
use crate::storage::Storage;

/// How long a stream is waited for before it is asked whether the process is to end, in nanoseconds.
const ASK_EVERY: i64 = 100_000_000;

/// A regular file as memory.
#[derive(Debug)]
pub struct MappedInput {
    storage: Storage,
    file: Box<dyn File>,
    mapping: Mapping,
    path: PathBuf,
}

impl MappedInput {
    /// The file, or nothing if it is not one to map: empty, no regular file, or on a file system
    /// that maps none.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(host: &HostFiles, path: &Path) -> Result<Option<Self>> {
        if is_special(path) {
            return Ok(None);
        }
        let storage = host.storage();
        let file = open_regular(storage, path)?;
        let len = file.len().map_err(|error| Error::new(error, path))?;
        let Some(len) = usize::try_from(len).ok().filter(|&len| len > 0) else { return Ok(None) };
        storage.counters().record_map();
        let Ok(mapping) = file.map(len) else { return Ok(None) };
        storage.counters().record_advice();
        // Advice is never needed for a right result.
        let _ = mapping.advise(0..len, MapAdvice::Sequential);
        Ok(Some(Self { storage: storage.clone(), file, mapping, path: path.to_owned() }))
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's size in bytes when it was opened.
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// True for a file without bytes.
    pub fn is_empty(&self) -> bool {
        self.mapping.is_empty()
    }

    /// The bytes of the range, as far as the file has them; zeros where they cannot be read.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.mapping.bytes(self.within(&range))
    }

    /// Has the kernel begin to read the range, as far as the file has it.
    pub fn will_need(&self, range: Range<usize>) {
        self.storage.counters().record_advice();
        // Advice is never needed for a right result.
        let _ = self.mapping.advise(self.within(&range), MapAdvice::WillNeed);
    }

    /// Makes sure that the bytes of the range were the file's: that no fault met them so far, and
    /// that the file was not cut.
    ///
    /// # Errors
    /// Names the file and the offset where it ends now, or could not be read.
    pub fn check(&self, range: Range<usize>) -> Result<()> {
        let range = self.within(&range);
        let len = self.file.len().map_err(|error| Error::new(error, &self.path))?;
        if len < range.end as u64 {
            let kind = ErrorKind::ShortRead { expected: self.len() as u64, got: len };
            return Err(Error::new(kind, &self.path));
        }
        match self.mapping.faulted(range) {
            None => Ok(()),
            Some(offset) => {
                let failed = io::Error::from(rustix::io::Errno::IO);
                Err(Error::new(failed, &self.path).with_offset(offset))
            }
        }
    }

    /// Lets go of the memory that the range takes in this process; it stays readable.
    pub fn release(&self, range: Range<usize>) {
        self.storage.counters().record_advice();
        // What is not let go now is at the end.
        let _ = self.mapping.release(self.within(&range));
    }

    fn within(&self, range: &Range<usize>) -> Range<usize> {
        let end = range.end.min(self.len());
        range.start.min(end)..end
    }
}

/// Bytes in the order they come.
#[derive(Debug)]
pub struct InputStream {
    storage: Storage,
    source: Source,
    /// The name for messages.
    path: PathBuf,
}

enum Source {
    /// Read by a file position of its own: a pipe, a terminal.
    Descriptor(OwnedFd),
    /// What the caller reads from.
    Reader(Box<dyn io::Read + Send>),
    /// Read by offsets.
    File { file: Box<dyn File>, offset: u64, len: u64 },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Descriptor(_) => "Descriptor",
            Self::Reader(_) => "Reader",
            Self::File { .. } => "File",
        })
    }
}

impl InputStream {
    /// The bytes of any reader, called `name` in messages.
    pub fn reader(storage: &Storage, reader: impl io::Read + Send + 'static, name: &str) -> Self {
        let source = Source::Reader(Box::new(reader));
        Self { storage: storage.clone(), source, path: name.into() }
    }

    /// The bytes of a copy of an open descriptor, such as standard input, called `name` in
    /// messages.
    ///
    /// # Errors
    /// When the descriptor cannot be copied.
    pub fn stream(storage: &Storage, fd: impl AsFd, name: &str) -> Result<Self> {
        let path = PathBuf::from(name);
        let fd = fd.as_fd().try_clone_to_owned().map_err(|error| Error::new(error, &path))?;
        Ok(Self { storage: storage.clone(), source: Source::Descriptor(fd), path })
    }

    /// The bytes of standard input.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when it was closed as the process began, and when it cannot be copied.
    pub fn standard(storage: &Storage) -> Result<Self> {
        let name = "standard input";
        if pagemill_sys::standard_input_was_closed() {
            return Err(Error::new(ErrorKind::Closed, name));
        }
        Self::stream(storage, io::stdin(), name)
    }

    /// The bytes of a file, from its beginning; of a pipe under that name, those somebody writes to it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(host: &HostFiles, path: &Path) -> Result<Self> {
        let source = if is_special(path) {
            // Without NONBLOCK a pipe that nobody writes to yet would hold the caller where no signal is seen.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let open = || rustix::fs::open(path, flags, Mode::empty());
            let opened = rustix::io::retry_on_intr(open);
            let refused = |error| Error::new(ErrorKind::Io(io::Error::from(error)), path);
            Source::Descriptor(opened.map_err(refused)?)
        } else {
            let file = open_regular(host.storage(), path)?;
            let len = file.len().map_err(|error| Error::new(error, path))?;
            Source::File { file, offset: 0, len }
        };
        Ok(Self { storage: host.storage().clone(), source, path: path.to_owned() })
    }

    /// The name for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads once into `buf`, waiting for bytes if there are none yet. None, for a buffer that is
    /// not empty, mean the end.
    ///
    /// # Errors
    /// Names the input; also when a file ends before the size it had.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        loop {
            let begin = self.storage.call_begins();
            if let Source::Descriptor(fd) = &self.source {
                wait_for_bytes(fd, &self.path)?;
            }
            let outcome = match &mut self.source {
                Source::Descriptor(fd) => rustix::io::read(fd, &mut *buf).map_err(io::Error::from),
                Source::Reader(reader) => reader.read(buf),
                Source::File { file, offset, .. } => file.read_at(buf, *offset),
            };
            let waited = self.storage.call_took(begin);
            self.storage.counters().record_read(*outcome.as_ref().unwrap_or(&0), waited);
            match outcome {
                Err(error) if is_to_be_repeated(&error) => {}
                Err(error) => return Err(Error::new(error, &self.path)),
                Ok(0) if !buf.is_empty() => return self.ended(),
                Ok(count) => {
                    self.advance(count);
                    return Ok(count);
                }
            }
        }
    }

    fn advance(&mut self, count: usize) {
        if let Source::File { offset, .. } = &mut self.source {
            *offset += count as u64;
        }
    }

    fn ended(&self) -> Result<usize> {
        match self.source {
            Source::File { offset, len, .. } if offset < len => {
                let kind = ErrorKind::ShortRead { expected: len, got: offset };
                Err(Error::new(kind, &self.path))
            }
            _ => Ok(0),
        }
    }
}

/// True for a call that a signal cut short, or that found a stream without bytes after all.
fn is_to_be_repeated(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Waits until there is something to read, or the end. What cannot be waited for is left to the read itself.
fn wait_for_bytes(fd: &OwnedFd, path: &Path) -> Result<()> {
    let patience = Timespec { tv_sec: 0, tv_nsec: ASK_EVERY };
    loop {
        check_interrupt(path)?;
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return Ok(()),
        }
    }
}

fn open_regular(storage: &Storage, path: &Path) -> Result<Box<dyn File>> {
    storage.open(path).map_err(|error| match error.kind() {
        // The system's own words: the remedies for files of a data directory are others.
        ErrorKind::Permission => Error::new(ErrorKind::Io(rustix::io::Errno::ACCESS.into()), path),
        ErrorKind::NotFound => Error::new(ErrorKind::Io(rustix::io::Errno::NOENT.into()), path),
        _ => error,
    })
}

/// True for what is there and is no regular file: opening a pipe twice would show its writer a
/// reader that goes away again.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Disturbance, FaultyFileSystem};
    use std::io::Write as _;
    use std::sync::Arc;

    fn file_of(contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        std::fs::write(&path, contents).unwrap();
        (dir, path)
    }

    fn read_all(mut stream: InputStream) -> Result<Vec<u8>> {
        let (mut all, mut buf) = (Vec::new(), [0; 4]);
        loop {
            match stream.read(&mut buf)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&buf[..count]),
            }
        }
    }

    #[test]
    fn a_mapped_file_lends_its_bytes_and_an_empty_one_is_not_mapped() {
        let host = HostFiles::real();
        let (_dir, path) = file_of(b"1,2\n3,4\n");
        let input = MappedInput::open(&host, &path).unwrap().unwrap();
        assert_eq!((input.len(), input.is_empty(), input.path()), (8, false, path.as_path()));
        assert_eq!(input.bytes(4..100), b"3,4\n");
        assert_eq!(input.bytes(9..100), b"");
        input.will_need(0..100);
        input.check(0..100).unwrap();
        input.release(0..100);
        assert_eq!(input.bytes(0..3), b"1,2");
        let (_dir, path) = file_of(b"");
        assert!(MappedInput::open(&host, &path).unwrap().is_none());
        assert!(MappedInput::open(&host, Path::new("/dev/null")).unwrap().is_none());
    }

    #[test]
    fn a_mapped_file_that_was_cut_is_an_error_where_it_was_cut_and_not_before() {
        let (_dir, path) = file_of(&vec![b'x'; 3 * 65_536]);
        let input = MappedInput::open(&HostFiles::real(), &path).unwrap().unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(65_536).unwrap();
        assert!(input.bytes(0..input.len()).ends_with(&[0]));
        input.check(0..65_536).unwrap();
        let error = input.check(65_536..70_000).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShortRead { got: 65_536, .. }), "{error}");
    }

    #[test]
    fn a_file_a_descriptor_and_a_pipe_give_the_same_bytes() {
        let host = HostFiles::real();
        let (dir, path) = file_of(b"0123456789");
        assert_eq!(read_all(InputStream::open(&host, &path).unwrap()).unwrap(), b"0123456789");
        let file = std::fs::File::open(&path).unwrap();
        let stream = InputStream::stream(host.storage(), &file, "standard input").unwrap();
        assert_eq!(read_all(stream).unwrap(), b"0123456789");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::from_bits_truncate(0o600),
            0,
        )
        .unwrap();
        assert!(MappedInput::open(&host, &pipe).unwrap().is_none());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::File::create(pipe).unwrap().write_all(b"through a pipe").unwrap()
        });
        let all = read_all(InputStream::open(&host, &pipe).unwrap()).unwrap();
        writer.join().unwrap();
        assert_eq!(all, b"through a pipe");
    }

    #[test]
    fn short_and_interrupted_reads_lose_nothing_and_a_cut_file_is_an_error() {
        let (_dir, path) = file_of(b"0123456789");
        let files = Arc::new(FaultyFileSystem::default());
        files.disturb([Disturbance::Short(1), Disturbance::Interrupted, Disturbance::Short(2)]);
        let host = HostFiles::new(files.clone());
        assert_eq!(read_all(InputStream::open(&host, &path).unwrap()).unwrap(), b"0123456789");
        let stream = InputStream::open(&host, &path).unwrap();
        files.cut(&path, 4);
        let error = read_all(stream).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 10, got: 4 }), "{error}");
    }
}
