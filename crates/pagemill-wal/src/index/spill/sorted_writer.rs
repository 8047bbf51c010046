//! [`SortedWriter`]: entries that come sorted by fork, block and LSN, written to a temporary file in chunks.
//!
//! A block whose entries do not fit one chunk begins a chunk, so that those can be left out when an image comes that makes
//! them needless: they stay in the file, and the directory does not name them.

use std::io::{self, BufWriter, Write as _};
use std::ops::Range;
use std::sync::Arc;

use pagemill_format::BlockNumber;
use pagemill_io::{File, TemporaryFile};

use super::chunk;
use crate::error::{Error, Result};
use crate::index::entry::{Entry, EntryKind, ForkKey};

/// Entries of a chunk, but for those of its last block.
pub(super) const CHUNK_ENTRIES: usize = 1 << 11;

/// Where a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    /// Of the file.
    pub(super) offset: u64,
    /// Bytes with the header.
    pub(super) bytes: u32,
    /// Of its first entry.
    pub(super) first_block: u32,
}

impl ChunkPlace {
    pub(super) const BYTES: usize = size_of::<Self>();
}

/// The chunks of one fork.
#[derive(Debug, Clone)]
pub(super) struct ForkChunks {
    pub(super) key: ForkKey,
    pub(super) chunks: Range<usize>,
    /// The first change of a page that is nowhere brought whole, of the kinds that bring an image.
    pub(super) first_without_image: Option<Entry>,
}

/// What was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: Arc<dyn File>,
    /// Bytes of it.
    pub(super) len: u64,
    pub(super) chunks: Vec<ChunkPlace>,
    pub(super) forks: Vec<ForkChunks>,
}

/// Writes sorted entries.
#[derive(Debug)]
pub(super) struct SortedWriter {
    file: BufWriter<TemporaryFile>,
    len: u64,
    /// Bytes that the directory may take; 0 for a file without one.
    most_directory_bytes: usize,
    chunks: Vec<ChunkPlace>,
    forks: Vec<ForkChunks>,
    fork: Option<ForkKey>,
    block: Option<Block>,
    /// Entries of the next chunk.
    pending: Vec<Entry>,
    bytes: Vec<u8>,
}

/// The block of the last entry.
#[derive(Debug)]
struct Block {
    number: BlockNumber,
    /// Where its entries begin among those of the next chunk.
    at: usize,
    /// How many chunks there were before those with its entries only.
    chunks_before: Option<usize>,
    is_whole: bool,
    bare: Option<Entry>,
}

impl SortedWriter {
    /// Writes a file that is read from its beginning to its end.
    ///
    /// # Errors
    /// When there is no place for temporary files.
    pub(super) fn new() -> Result<Self> {
        Self::with_directory(0)
    }

    /// Writes a file that any block's entries are looked up in, by a directory of at most so many bytes.
    ///
    /// # Errors
    /// When there is no place for temporary files.
    pub(super) fn with_directory(most_directory_bytes: usize) -> Result<Self> {
        Ok(Self {
            file: BufWriter::new(TemporaryFile::new()?),
            len: 0,
            most_directory_bytes,
            chunks: Vec::new(),
            forks: Vec::new(),
            fork: None,
            block: None,
            pending: Vec::with_capacity(CHUNK_ENTRIES),
            bytes: Vec::new(),
        })
    }

    fn has_directory(&self) -> bool {
        self.most_directory_bytes > 0
    }

    /// Adds an entry that is not before the last one.
    ///
    /// # Errors
    /// A file that cannot be written; a directory that becomes too large.
    pub(super) fn push(&mut self, key: ForkKey, entry: Entry) -> Result<()> {
        if self.fork != Some(key) {
            self.begin_fork(key)?;
        }
        if self.block.as_ref().is_none_or(|block| block.number != entry.block) {
            self.begin_block(entry.block);
        }
        if let Some(block) = &mut self.block {
            if entry.kind().is_whole_page() {
                self.pending.truncate(block.at);
                if let Some(chunks) = block.chunks_before.take() {
                    self.chunks.truncate(chunks);
                }
                (block.is_whole, block.bare) = (true, None);
            } else if entry.kind() == EntryKind::Delta && !block.is_whole {
                block.bare.get_or_insert(entry);
            }
        }
        self.pending.push(entry);
        if self.pending.len() >= CHUNK_ENTRIES { self.write_full() } else { Ok(()) }
    }

    /// All was added.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn finish(mut self) -> Result<Written> {
        self.end_fork()?;
        let file = self.file.into_inner().map_err(|error| temporary(error.into_error()))?;
        let (len, chunks, forks) = (self.len, self.chunks, self.forks);
        Ok(Written { file: file.into_file(), len, chunks, forks })
    }

    fn begin_fork(&mut self, key: ForkKey) -> Result<()> {
        self.end_fork()?;
        self.fork = Some(key);
        if self.has_directory() {
            let chunks = self.chunks.len()..self.chunks.len();
            self.forks.push(ForkChunks { key, chunks, first_without_image: None });
        }
        Ok(())
    }

    fn end_fork(&mut self) -> Result<()> {
        self.end_block();
        self.write_chunk(self.pending.len())?;
        if let Some(fork) = self.forks.last_mut() {
            fork.chunks.end = self.chunks.len();
        }
        Ok(())
    }

    fn begin_block(&mut self, number: BlockNumber) {
        self.end_block();
        let at = self.pending.len();
        self.block = Some(Block { number, at, chunks_before: None, is_whole: false, bare: None });
    }

    fn end_block(&mut self) {
        if let (Some(ended), Some(fork)) = (self.block.take(), self.forks.last_mut())
            && fork.first_without_image.is_none()
        {
            fork.first_without_image = ended.bare;
        }
    }

    /// Writes a chunk, of blocks that are complete if there are some.
    fn write_full(&mut self) -> Result<()> {
        let before = self.chunks.len();
        let Some(block) = &mut self.block else { return Ok(()) };
        match std::mem::take(&mut block.at) {
            0 => {
                block.chunks_before.get_or_insert(before);
                self.write_chunk(self.pending.len())
            }
            complete => self.write_chunk(complete),
        }
    }

    /// Writes the first entries that are pending.
    fn write_chunk(&mut self, count: usize) -> Result<()> {
        let (Some(key), Some(first)) = (self.fork, self.pending[..count].first()) else {
            return Ok(());
        };
        let first_block = first.block.0;
        self.bytes.clear();
        chunk::encode(key, &self.pending[..count], &mut self.bytes);
        self.pending.drain(..count);
        self.file.write_all(&self.bytes).map_err(temporary)?;
        if self.has_directory() {
            let place =
                ChunkPlace { offset: self.len, bytes: self.bytes.len() as u32, first_block };
            self.chunks.push(place);
            if self.chunks.len() * ChunkPlace::BYTES > self.most_directory_bytes {
                return Err(Error::Memory("the places of changes in a temporary file"));
            }
        }
        self.len += self.bytes.len() as u64;
        Ok(())
    }
}

/// Names the place of temporary files in an error.
pub(super) fn temporary(error: io::Error) -> Error {
    pagemill_io::Error::new(error, TemporaryFile::directory()).into()
}
