//! A delta backup of WAL-G and those it builds on, as one data directory ([`delta_files`]).
//!
//! What there is, the newest backup says: what its archives have, and what its list has as unchanged. An unchanged file is that of the
//! backup before, an increment lies over it, block by block.
//!
//! Invariants: nothing is taken from an older backup that the newest one's list does not name; what should be in an older backup, and is
//! not, is an error and never zeros.
//!
//! Source: `ApplyFileIncrement` in `internal/databases/postgres/pagefile.go`, `GetBaseFilesToUnwrap` in `backup_util.go`, WAL-G 3.0.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::walg::{FileList, Increment, StoredAs};
use pagemill_format::{BLOCK_SIZE, BlockBytes};
use pagemill_io::{
    Caching, Error as IoError, File, FileSystem, ListedFile, ListedFiles, Node, Storage,
};

use crate::error::{Error, Result};
use crate::recovery::{ComposedFile, Composition};

/// One backup of a chain, as its archives have it.
#[derive(Debug)]
pub(super) struct ChainLink {
    pub(super) storage: Storage,
    pub(super) directory: PathBuf,
    /// How it has the files; empty of one that builds on no other.
    pub(super) list: FileList,
}

/// What is wrong with a file that is put together.
#[derive(Debug, thiserror::Error)]
enum DeltaFault {
    #[error("{}: the backup before has no such file, though this one builds on it", .0.display())]
    NoBase(PathBuf),
    #[error("what is stored of it ends in block {block}: it was cut short")]
    Cut { block: u32 },
}

impl From<DeltaFault> for io::Error {
    fn from(fault: DeltaFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

/// The files of a chain of backups, the newest first, of which `sentinel` tells.
///
/// # Errors
/// An increment that is damaged, or has nothing below it.
pub(super) fn delta_files(
    storage: &Storage,
    sentinel: &Path,
    chain: Vec<ChainLink>,
) -> Result<ListedFiles> {
    let newest = &chain[0];
    let mut files = ListedFiles::new(storage, &newest.directory, sentinel);
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        files.add_directory(&directory);
        let at = newest.directory.join(&directory);
        for entry in newest.storage.read_dir(&at)? {
            let name = directory.join(&entry.name);
            match newest.storage.node(&at.join(&entry.name))? {
                Node::Directory => waiting.push(name),
                Node::File { .. } if newest.list.get(&text(&name)).is_none() => {
                    files.add_file(&name, whole(newest, &name)?);
                }
                // Files of the list come below.
                _ => {}
            }
        }
    }
    for (name, stored) in newest.list.iter() {
        let path = Path::new(name);
        let is_directory = stored != StoredAs::Unchanged && is_directory(newest, path)?;
        if !is_directory && let Some(file) = found(&chain, path)? {
            files.add_file(path, file);
        }
    }
    Ok(files)
}

fn text(name: &Path) -> String {
    name.to_string_lossy().into_owned()
}

fn is_directory(link: &ChainLink, name: &Path) -> Result<bool> {
    match link.storage.metadata(&link.directory.join(name)) {
        Err(error) if error.is_not_found() => Ok(false),
        metadata => Ok(metadata?.is_dir),
    }
}

/// The file of this name as the first backup of a chain has it; `None` where it vanished while that was taken.
fn found(chain: &[ChainLink], name: &Path) -> Result<Option<Arc<dyn ListedFile>>> {
    let Some((newest, older)) = chain.split_first() else { return Ok(None) };
    let path = newest.directory.join(name);
    let before = || {
        let found = found(older, name)?;
        found.ok_or_else(|| {
            let fault = io::Error::from(DeltaFault::NoBase(path.clone()));
            Error::from(IoError::new(fault, &path))
        })
    };
    match newest.list.get(&text(name)) {
        Some(StoredAs::Unchanged) => before().map(Some),
        _ if !newest.storage.exists(&path)? => Ok(None),
        Some(StoredAs::Increment) => {
            let increment = increment(newest, &path)?;
            let (files, base) = (newest.storage.file_system().clone(), before()?);
            Ok(Some(Arc::new(DeltaFile(Arc::new(Delta { increment, files, path, base })))))
        }
        Some(StoredAs::Whole) | None => whole(newest, name).map(Some),
    }
}

/// A file that a backup has whole.
fn whole(link: &ChainLink, name: &Path) -> Result<Arc<dyn ListedFile>> {
    let path = link.directory.join(name);
    let len = link.storage.metadata(&path)?.len;
    Ok(Arc::new(WholeFile { files: link.storage.file_system().clone(), path, len }))
}

/// Which blocks an increment has.
fn increment(link: &ChainLink, path: &Path) -> Result<Increment> {
    let file = link.storage.open(path)?;
    let read = |bytes: &mut [u8]| {
        let got = link.storage.read_fully_at(file.as_ref(), bytes, 0);
        got.map_err(|error| IoError::new(error, path))
    };
    let damaged = |error: pagemill_format::Error| Error::file_damage(path, &error);
    let mut start = [0; Increment::FIXED_BYTES];
    let got = read(&mut start)?;
    let mut bytes = vec![0; Increment::bytes(&start[..got]).map_err(damaged)?];
    let got = read(&mut bytes)?;
    Increment::parse(&bytes[..got]).map_err(damaged)
}

/// A file as an archive has it.
#[derive(Debug)]
struct WholeFile {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    len: u64,
}

impl ListedFile for WholeFile {
    fn bytes(&self) -> u64 {
        self.len
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        self.files.open(&self.path, Caching::Buffered)
    }
}

/// A file whose blocks lie in an increment and below it.
#[derive(Debug)]
struct DeltaFile(Arc<Delta>);

#[derive(Debug)]
struct Delta {
    increment: Increment,
    files: Arc<dyn FileSystem>,
    /// The increment's.
    path: PathBuf,
    base: Arc<dyn ListedFile>,
}

impl ListedFile for DeltaFile {
    fn bytes(&self) -> u64 {
        u64::from(self.0.increment.blocks()) * BLOCK_SIZE as u64
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        let of = self.0.clone();
        let (newer, base) = (of.files.open(&of.path, Caching::Buffered)?, of.base.open()?);
        Ok(Box::new(ComposedFile(Blocks { of, newer, base })))
    }
}

/// Both, open.
#[derive(Debug)]
struct Blocks {
    of: Arc<Delta>,
    newer: Box<dyn File>,
    base: Box<dyn File>,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In the increment, from this byte on.
    Newer(u64),
    /// In the file of the backup before, from this byte on.
    Base(u64),
    /// Nowhere.
    Zeros,
}

impl Source {
    /// Where the block lies that is so many further, if it lies behind this one.
    fn further(self, blocks: u64) -> Self {
        let bytes = blocks * BLOCK_SIZE as u64;
        match self {
            Self::Newer(at) => Self::Newer(at + bytes),
            Self::Base(at) => Self::Base(at + bytes),
            Self::Zeros => Self::Zeros,
        }
    }
}

impl Delta {
    fn source(&self, block: u32) -> Source {
        let own = u64::from(block) * BLOCK_SIZE as u64;
        match self.increment.offset(block) {
            Some(offset) => Source::Newer(offset),
            None if own + BLOCK_SIZE as u64 <= self.base.bytes() => Source::Base(own),
            None => Source::Zeros,
        }
    }
}

impl Composition for Blocks {
    fn pages(&self) -> u32 {
        self.of.increment.blocks()
    }

    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize> {
        let source = self.of.source(first);
        let blocks = (first..self.pages()).take(pages.len()).zip(0..);
        let run = blocks.take_while(|(block, at)| self.of.source(*block) == source.further(*at));
        let run = run.count();
        let bytes = pages[..run].as_flattened_mut();
        let (file, offset) = match source {
            Source::Newer(offset) => (&self.newer, offset),
            Source::Base(offset) => (&self.base, offset),
            Source::Zeros => {
                bytes.fill(0);
                return Ok(run);
            }
        };
        match read_up_to(file.as_ref(), bytes, offset)? / BLOCK_SIZE {
            0 => Err(DeltaFault::Cut { block: first }.into()),
            whole => Ok(whole),
        }
    }
}

/// Reads as much as there is.
fn read_up_to(file: &dyn File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
