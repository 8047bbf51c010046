//! [`ChainedFiles`]: the files of an incremental backup with those of the backups it builds on below them.
//!
//! The newest backup lists everything there is: what it has whole is read as it lies, and what it has as `INCREMENTAL.<name>`
//! is put together under the plain name. `backup_label` is that of a whole backup.
//!
//! Invariant: a path outside the newest backup's directory is what it is below.
//!
//! Source: `process_directory_recursively` in `src/bin/pg_combinebackup/pg_combinebackup.c`, PostgreSQL 17 and 18.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagemill_format::BLOCK_SIZE;
use pagemill_format::backup::IncrementalHeader;
use pagemill_io::{
    Access, Caching, Capabilities, DirEntry, File, FileState, FileSystem, Identity, IoQueue,
    Metadata, Node, QueueKind, SpaceLeft, StorageTraits,
};

use super::chained_file::{ChainedFile, Increment};
use crate::recovery::{ComposedFile, FileInMemory};

/// What the names of files with some of their blocks begin with.
const PREFIX: &str = "INCREMENTAL.";
const LABEL: &str = "backup_label";

/// One backup.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) files: Arc<dyn FileSystem>,
    pub(super) directory: PathBuf,
}

/// What is wrong with a file of a chain.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChainFault {
    #[error("{path}: {cause}", path = path.display())]
    Header { path: PathBuf, cause: pagemill_format::Error },
    #[error("an older backup lacks it: {path} is not there, nor is it as {PREFIX}*", path = path.display())]
    Missing { path: PathBuf },
    #[error("{path}: the full backup of the chain has only a part of it", path = path.display())]
    NoFullFile { path: PathBuf },
    #[error(
        "block {block} of the segment should be block {position} of a file of the chain, which was cut"
    )]
    Cut { block: u32, position: u32 },
}

impl From<ChainFault> for io::Error {
    fn from(fault: ChainFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

/// The files of a chain of backups.
#[derive(Debug)]
pub(super) struct ChainedFiles {
    below: Arc<dyn FileSystem>,
    /// The newest first; there is at least one.
    links: Vec<Link>,
    label: Vec<u8>,
    /// Blocks of files that are put together, by path.
    lengths: Mutex<HashMap<PathBuf, u32>>,
}

impl ChainedFiles {
    pub(super) fn new(below: Arc<dyn FileSystem>, links: Vec<Link>, label: Vec<u8>) -> Self {
        assert!(!links.is_empty(), "a chain has a newest backup");
        Self { below, links, label, lengths: Mutex::default() }
    }

    /// A path below the newest backup's directory.
    fn within<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.links[0].directory).ok()
    }

    fn is_label(&self, path: &Path) -> bool {
        self.within(path) == Some(Path::new(LABEL))
    }

    /// The file that a file of the newest backup is put together as; `None` where it has none under this name.
    fn chained(&self, path: &Path, caching: Caching) -> io::Result<Option<ChainedFile>> {
        let Some((within, name)) = self.within(path).zip(incremental_name(path)) else {
            return Ok(None);
        };
        let newest = &self.links[0];
        let Some(newest) = newest.increment(&within.with_file_name(&name), caching)? else {
            return Ok(None);
        };
        let mut older = Vec::new();
        for (at, link) in self.links.iter().enumerate().skip(1) {
            let path = link.directory.join(within);
            if let Some(full) = if_there(link.files.open(&path, caching))? {
                let blocks = full.len()? / BLOCK_SIZE as u64;
                let full_blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                return Ok(Some(ChainedFile { newest, older, full, full_blocks }));
            }
            match link.increment(&within.with_file_name(&name), caching)? {
                Some(_) if at + 1 == self.links.len() => {
                    return Err(ChainFault::NoFullFile { path }.into());
                }
                Some(increment) => older.push(increment),
                None => return Err(ChainFault::Missing { path }.into()),
            }
        }
        let path = self.links[0].directory.join(within);
        Err(ChainFault::NoFullFile { path }.into())
    }

    /// How long a file is that is put together, in blocks; `None` where there is none under this name.
    fn chained_blocks(&self, path: &Path) -> io::Result<Option<u32>> {
        let lengths = || self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(blocks) = lengths().get(path) {
            return Ok(Some(*blocks));
        }
        let Some((within, name)) = self.within(path).zip(incremental_name(path)) else {
            return Ok(None);
        };
        let increment = self.links[0].increment(&within.with_file_name(name), Caching::Buffered)?;
        let blocks = increment.map(|increment| increment.header.blocks());
        lengths().extend(blocks.map(|blocks| (path.to_owned(), blocks)));
        Ok(blocks)
    }
}

impl Link {
    /// A file of this backup that has some blocks, by its path in the backup; `None` if it is not there.
    fn increment(&self, within: &Path, caching: Caching) -> io::Result<Option<Increment>> {
        let path = self.directory.join(within);
        let Some(header) = if_there(self.files.open(&path, Caching::Buffered))? else {
            return Ok(None);
        };
        let header = read_header(header.as_ref(), &path)?;
        Ok(Some(Increment { header, file: self.files.open(&path, caching)? }))
    }
}

fn read_header(file: &dyn File, path: &Path) -> io::Result<IncrementalHeader> {
    let damaged = |cause| io::Error::from(ChainFault::Header { path: path.to_owned(), cause });
    let mut bytes = vec![0; IncrementalHeader::FIXED_BYTES];
    read_fully(file, &mut bytes)?;
    let len = IncrementalHeader::bytes(&bytes).map_err(damaged)?;
    bytes.resize(len, 0);
    read_fully(file, &mut bytes)?;
    IncrementalHeader::parse(&bytes).map_err(damaged)
}

/// Fills a buffer from the beginning of a file; it gets no longer than what the file has.
fn read_fully(file: &dyn File, buf: &mut Vec<u8>) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], done as u64) {
            Ok(0) => break,
            Ok(got) => done += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buf.truncate(done);
    Ok(())
}

fn incremental_name(path: &Path) -> Option<OsString> {
    let mut name = OsString::from(PREFIX);
    name.push(path.file_name()?);
    Some(name)
}

fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_blocks(blocks: u32) -> Metadata {
    Metadata { len: u64::from(blocks) * BLOCK_SIZE as u64, is_dir: false }
}

impl FileSystem for ChainedFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        if self.is_label(path) {
            return Ok(Box::new(FileInMemory(self.label.clone())));
        }
        match self.below.open(path, caching) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match self.chained(path, caching)? {
                    Some(file) => Ok(Box::new(ComposedFile(file))),
                    None => Err(error),
                }
            }
            opened => opened,
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = self.below.read_dir(path)?;
        if self.within(path).is_none() {
            return Ok(entries);
        }
        let whole = |entry: &DirEntry| {
            entry.name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map(OsString::from)
        };
        for entry in &mut entries {
            if let Some(name) = whole(entry) {
                *entry = DirEntry::named(name);
            }
        }
        let mut names = HashSet::new();
        entries.retain(|entry| names.insert(entry.name.clone()));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if self.is_label(path) {
            return Ok(Metadata { len: self.label.len() as u64, is_dir: false });
        }
        match self.below.metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.chained_blocks(path)?.map(of_blocks).ok_or(error)
            }
            found => found,
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.below.node(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let blocks = self.chained_blocks(path)?.ok_or(error)?;
                Ok(Node::File { len: of_blocks(blocks).len })
            }
            found => found,
        }
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

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.below.open_queue(kind, depth)
    }

    fn place(&self, path: &Path) -> StorageTraits {
        self.below.place(path)
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}
