//! [`Run`]: the entries that were in memory at one moment, sorted, in a temporary file; [`RunCursor`] reads them one after the
//! other.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use pagemill_format::BlockNumber;
use pagemill_io::{File, Storage};

use super::chunk::{self, ChunkHeader, HEADER_BYTES};
use super::sorted_writer::{Written, temporary};
use crate::error::Result;
use crate::index::entry::{Entry, ForkKey};

/// Sorted entries that were written to a file.
#[derive(Debug)]
pub(super) struct Run {
    /// Of the last moment that is in it: entries of a run with a lower number are all older.
    pub(super) number: u32,
    /// How many times it was merged.
    pub(super) tier: u32,
    file: Arc<dyn File>,
    len: u64,
}

impl Run {
    pub(super) fn new(number: u32, tier: u32, written: Written) -> Self {
        Self { number, tier, file: written.file, len: written.len }
    }

    /// Stands before the first entry.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn cursor(&self, storage: &Storage) -> Result<RunCursor> {
        let (storage, file) = (storage.clone(), self.file.clone());
        let rest = RestOfFile { storage, file, at: 0, len: self.len };
        let mut cursor = RunCursor {
            number: self.number,
            file: BufReader::new(rest),
            chunk: None,
            entries: Vec::new(),
            at: 0,
            bytes: Vec::new(),
        };
        cursor.next_chunk()?;
        Ok(cursor)
    }
}

/// A place in a run.
#[derive(Debug)]
pub(super) struct RunCursor {
    /// Of the run.
    pub(super) number: u32,
    file: BufReader<RestOfFile>,
    chunk: Option<ForkKey>,
    entries: Vec<Entry>,
    at: usize,
    bytes: Vec<u8>,
}

impl RunCursor {
    /// The fork whose entry is next; `None` at the end.
    pub(super) fn fork(&self) -> Option<ForkKey> {
        self.chunk
    }

    /// The next entry, if it is one of this fork.
    pub(super) fn entry_of(&self, key: ForkKey) -> Option<Entry> {
        let is_of_it = self.chunk == Some(key);
        self.entries.get(self.at).copied().filter(|_| is_of_it)
    }

    /// The block of the next entry, if it is one of this fork.
    pub(super) fn block_of(&self, key: ForkKey) -> Option<BlockNumber> {
        self.entry_of(key).map(|entry| entry.block)
    }

    /// Goes on behind the next entry.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at < self.entries.len() { Ok(()) } else { self.next_chunk() }
    }

    /// Goes on behind the entries of a fork.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn pass(&mut self, key: ForkKey) -> Result<()> {
        while self.chunk == Some(key) {
            self.next_chunk()?;
        }
        Ok(())
    }

    fn next_chunk(&mut self) -> Result<()> {
        (self.chunk, self.at) = (None, 0);
        self.entries.clear();
        if self.file.get_ref().is_at_end() && self.file.buffer().is_empty() {
            return Ok(());
        }
        let mut header = [0; HEADER_BYTES];
        self.file.read_exact(&mut header).map_err(temporary)?;
        let header = ChunkHeader::parse(&header).ok_or_else(changed)?;
        self.bytes.resize(header.bytes as usize, 0);
        self.file.read_exact(&mut self.bytes).map_err(temporary)?;
        self.entries = chunk::decode(&header, &self.bytes).ok_or_else(changed)?;
        self.chunk = Some(header.key);
        Ok(())
    }
}

/// What was written is not what is read.
pub(super) fn changed() -> crate::error::Error {
    let what = "a temporary file was changed, or its device is damaged";
    temporary(io::Error::new(io::ErrorKind::InvalidData, what))
}

#[derive(Debug)]
struct RestOfFile {
    storage: Storage,
    file: Arc<dyn File>,
    at: u64,
    len: u64,
}

impl RestOfFile {
    fn is_at_end(&self) -> bool {
        self.at >= self.len
    }
}

impl Read for RestOfFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buf.len().min(left);
        let got = self.storage.read_fully_at(self.file.as_ref(), &mut buf[..wanted], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}
