//! [`DecryptedArchive`]: a file system in which the files of one directory, an encrypted archive of WAL, are shown as they were before
//! they were encrypted.
//!
//! A file is decrypted as a whole when it is opened: a segment, which is never long.
//!
//! Invariants: what is not encrypted, and what lies elsewhere, is as below; nothing can be written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pagemill_format::pgbackrest::{CipherHeader, Passphrase, is_encrypted};
use pagemill_io::{
    Access, Caching, Capabilities, DirEntry, File, FileState, FileSystem, Identity, IoQueue,
    Metadata, Node, QueueKind, SpaceLeft, StorageTraits,
};

use crate::recovery::FileInMemory;

/// Segments have 1 GiB at most, and compression makes none much longer.
const MOST_BYTES: u64 = (1 << 30) + (16 << 20);

/// A file system with an archive that is decrypted; it reads only.
#[derive(Debug)]
pub(super) struct DecryptedArchive {
    below: Arc<dyn FileSystem>,
    directory: PathBuf,
    passphrase: Passphrase,
}

impl DecryptedArchive {
    /// The file system `below`, with what is encrypted in this directory decrypted.
    pub(super) fn new(
        below: Arc<dyn FileSystem>,
        directory: &Path,
        passphrase: &Passphrase,
    ) -> Self {
        let (directory, passphrase) = (directory.to_owned(), passphrase.clone());
        Self { below, directory, passphrase }
    }

    /// What an encrypted file of the archive was before; `None` for any other file.
    fn decrypted(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        if !path.starts_with(&self.directory) {
            return Ok(None);
        }
        let file = self.below.open(path, Caching::Buffered)?;
        let mut head = [0; CipherHeader::Salted.bytes()];
        let got = fill(file.as_ref(), &mut head, 0)?;
        if !is_encrypted(&head[..got]) {
            return Ok(None);
        }
        let len = file.len()?;
        if len > limit.min(MOST_BYTES) {
            return Err(invalid(format!("{len} bytes: too long for a file of an archive")));
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        let got = fill(file.as_ref(), &mut bytes, 0)?;
        bytes.truncate(got);
        self.passphrase.decrypt(&bytes).map(Some).map_err(invalid)
    }
}

fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Reads as much as there is.
fn fill(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(got) => done += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl FileSystem for DecryptedArchive {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        match self.decrypted(path, MOST_BYTES)? {
            Some(bytes) => Ok(Box::new(FileInMemory(bytes))),
            None => self.below.open(path, caching),
        }
    }

    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match self.decrypted(path, limit)? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.below.read_whole(path, limit),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.below.read_dir(path)
    }

    fn read_dir_with_metadata(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.below.read_dir_with_metadata(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.below.metadata(path)
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.below.node(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.resolve(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.below.identity(path)
    }

    fn state(&self, path: &Path) -> io::Result<FileState> {
        self.below.state(path)
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.below.access(path)
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.below.space_left(path)
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.below.open_queue(kind, depth)
    }

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn place(&self, path: &Path) -> StorageTraits {
        self.below.place(path)
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}
