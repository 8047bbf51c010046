//! [`SpilledFork`]: the entries of one fork in a temporary file, looked up by block.
//!
//! Of each chunk its first block is known, so that one is read for a block, or a few where its entries fill them. The last ones
//! that were read are kept.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::BlockNumber;
use pagemill_io::{File, Storage};

use super::chunk::{self, ChunkHeader, HEADER_BYTES};
use super::run::changed;
use super::sorted_writer::{ChunkPlace, Written, temporary};
use crate::error::{Error, Result};
use crate::index::entry::Entry;
use crate::index::entry_list::first_from;

/// Chunks that are kept, at most 48 KiB each.
const KEPT_CHUNKS: usize = 16;

/// Entries of all forks in one file.
#[derive(Debug)]
pub(super) struct SpilledEntries {
    storage: Storage,
    file: Arc<dyn File>,
    chunks: Vec<ChunkPlace>,
    /// Entries of one block that are handed out at most.
    most_entries: usize,
    kept: Vec<Mutex<Option<KeptChunk>>>,
}

#[derive(Debug)]
struct KeptChunk {
    number: usize,
    entries: Arc<[Entry]>,
}

impl SpilledEntries {
    pub(super) fn new(storage: Storage, written: Written, most_entries: usize) -> Self {
        let Written { file, chunks, .. } = written;
        let kept = (0..KEPT_CHUNKS).map(|_| Mutex::default()).collect();
        Self { storage, file, chunks, most_entries, kept }
    }

    fn chunk(&self, number: usize) -> Result<Arc<[Entry]>> {
        let slot = &self.kept[number % KEPT_CHUNKS];
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = slot.as_ref().filter(|kept| kept.number == number) {
            return Ok(found.entries.clone());
        }
        let entries: Arc<[Entry]> = self.read(self.chunks[number])?.into();
        *slot = Some(KeptChunk { number, entries: entries.clone() });
        Ok(entries)
    }

    fn read(&self, place: ChunkPlace) -> Result<Vec<Entry>> {
        let mut bytes = vec![0; place.bytes as usize];
        let got = self.storage.read_fully_at(self.file.as_ref(), &mut bytes, place.offset);
        bytes.truncate(got.map_err(temporary)?);
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(changed)?;
        let header = ChunkHeader::parse(header).ok_or_else(changed)?;
        chunk::decode(&header, body).filter(|entries| !entries.is_empty()).ok_or_else(changed)
    }
}

/// Entries of one fork.
#[derive(Debug, Clone)]
pub(in crate::index) struct SpilledFork {
    pub(super) file: Arc<SpilledEntries>,
    pub(super) chunks: Range<usize>,
    /// The first change of a page that is nowhere brought whole, of the kinds that bring an image.
    pub(in crate::index) first_without_image: Option<Entry>,
}

impl SpilledFork {
    /// The chunks that can have entries of blocks from this one on.
    fn chunks_from(&self, block: BlockNumber) -> Range<usize> {
        let places = &self.file.chunks[self.chunks.clone()];
        let behind = places.partition_point(|place| place.first_block < block.0);
        self.chunks.start + behind.saturating_sub(1)..self.chunks.end
    }

    /// Hands out entries of blocks from `block` on, chunk by chunk, until `take` returns false.
    fn visit(&self, block: BlockNumber, mut take: impl FnMut(&[Entry]) -> bool) -> Result<()> {
        for number in self.chunks_from(block) {
            let entries = self.file.chunk(number)?;
            let some = &entries[first_from(&entries, block)..];
            if !some.is_empty() && !take(some) {
                break;
            }
        }
        Ok(())
    }

    pub(in crate::index) fn entries_of(&self, block: BlockNumber) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.visit(block, |entries| {
            let count = first_from(entries, BlockNumber(block.0.saturating_add(1)));
            let count = if block.0 == u32::MAX { entries.len() } else { count };
            found.extend_from_slice(&entries[..count]);
            count == entries.len() && found.len() <= self.file.most_entries
        })?;
        if found.len() > self.file.most_entries {
            return Err(Error::Memory("the places of one page's records"));
        }
        Ok(found)
    }

    pub(in crate::index) fn next_touched(&self, block: BlockNumber) -> Result<Option<BlockNumber>> {
        let mut found = None;
        self.visit(block, |entries| {
            found = entries.first().map(|entry| entry.block);
            false
        })?;
        Ok(found)
    }

    pub(in crate::index) fn visit_touched(
        &self,
        range: Range<u32>,
        see: &mut impl FnMut(BlockNumber),
    ) -> Result<()> {
        self.visit(BlockNumber(range.start), |entries| {
            let count = first_from(entries, BlockNumber(range.end));
            entries[..count].iter().for_each(|entry| see(entry.block));
            count == entries.len()
        })
    }

    pub(in crate::index) fn entries(&self) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.visit(BlockNumber(0), |entries| {
            found.extend_from_slice(entries);
            true
        })?;
        Ok(found)
    }
}
