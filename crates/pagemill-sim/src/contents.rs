//! What is in a simulated file, and where on the volume it lies.
//!
//! A file of many gigabytes costs no memory: its blocks are made when they are read. A file that a test
//! gives keeps its bytes.
//!
//! Invariants: the bytes at a place are the same however they are asked for; files lie one after the other
//! and do not overlap.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::BLOCK_SIZE;

use crate::page_cache::PAGE;

/// Pages that one block map of ext3 tells the places of.
pub(crate) const MAP_PAGES: u32 = 1024;

/// What is in a file.
#[derive(Debug, Clone)]
pub enum Contents {
    /// These bytes.
    Bytes(Arc<Vec<u8>>),
    /// So many blocks, each beginning and ending with its number from `first` on (four bytes, little-endian);
    /// what lies between is zero.
    Stamped {
        /// The number of the first block.
        first: u32,
        /// How many blocks.
        blocks: u32,
    },
    /// So many bytes, whose values nobody wants: reading them leaves the buffer as it is.
    Unfilled(u64),
}

impl Contents {
    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stamped { blocks, .. } => u64::from(*blocks) * BLOCK_SIZE as u64,
            Self::Unfilled(len) => *len,
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills a buffer from `offset` on, as far as there is something.
    pub(crate) fn fill(&self, buf: &mut [u8], offset: u64) {
        match self {
            Self::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
                let rest = rest.unwrap_or_default();
                let len = rest.len().min(buf.len());
                buf[..len].copy_from_slice(&rest[..len]);
            }
            Self::Stamped { first, blocks } => stamp(buf, offset, *first, *blocks),
            Self::Unfilled(_) => {}
        }
    }
}

fn stamp(buf: &mut [u8], offset: u64, first: u32, blocks: u32) {
    let block_size = BLOCK_SIZE as u64;
    let mut at = 0;
    while at < buf.len() {
        let place = offset + at as u64;
        let number = u32::try_from(place / block_size).unwrap_or(u32::MAX);
        if number >= blocks {
            return;
        }
        let mut block = [0; BLOCK_SIZE];
        let stamp = first.wrapping_add(number).to_le_bytes();
        block[..4].copy_from_slice(&stamp);
        block[BLOCK_SIZE - 4..].copy_from_slice(&stamp);
        let skipped = (place % block_size) as usize;
        let len = (BLOCK_SIZE - skipped).min(buf.len() - at);
        buf[at..at + len].copy_from_slice(&block[skipped..skipped + len]);
        at += len;
    }
}

/// A file on the volume.
#[derive(Debug)]
pub(crate) struct SimulatedFile {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    pub(crate) layout: Layout,
    /// Which block maps were read: 0 not, 1 on its way, 2 there.
    pub(crate) maps: Vec<u8>,
}

/// Where the pages of a file lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) base: u64,
    pub(crate) block_maps: bool,
}

impl Layout {
    /// The place of a page, in bytes.
    pub(crate) fn page(&self, page: u32) -> u64 {
        let maps = if self.block_maps { page / MAP_PAGES + 1 } else { 0 };
        self.base + (u64::from(page) + u64::from(maps)) * PAGE
    }

    /// The place of a block map, right before its pages.
    pub(crate) fn map(&self, map: u32) -> u64 {
        self.base + u64::from(map) * u64::from(MAP_PAGES + 1) * PAGE
    }

    /// Pages from `pages` on that lie one after the other.
    pub(crate) fn extent(&self, pages: Range<u32>) -> Range<u32> {
        if !self.block_maps {
            return pages;
        }
        let edge = (pages.start / MAP_PAGES + 1) * MAP_PAGES;
        pages.start..pages.end.min(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamped_blocks_read_in_any_parts_are_the_same() {
        let contents = Contents::Stamped { first: 7, blocks: 3 };
        let mut whole = vec![1; 3 * BLOCK_SIZE];
        contents.fill(&mut whole, 0);
        assert_eq!((whole[0], whole[BLOCK_SIZE], whole[2 * BLOCK_SIZE - 4]), (7, 8, 8));
        let mut part = vec![1; 10_000];
        contents.fill(&mut part, 4000);
        assert_eq!(part, whole[4000..14_000]);
    }

    #[test]
    fn block_maps_lie_between_the_pages_they_describe() {
        let layout = Layout { base: 1 << 20, block_maps: true };
        assert_eq!(layout.map(0), 1 << 20);
        assert_eq!(layout.page(0), (1 << 20) + PAGE);
        assert_eq!(layout.map(1), layout.page(MAP_PAGES - 1) + PAGE);
        assert_eq!(layout.page(MAP_PAGES), layout.map(1) + PAGE);
        assert_eq!(layout.extent(1000..1100), 1000..1024);
    }
}
