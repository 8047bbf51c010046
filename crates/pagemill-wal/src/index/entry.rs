//! [`Entry`]: one record that changed one block.
//!
//! There are as many of them as records, so they are small: 12 bytes.

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BlockNumber, Fork, Lsn};

/// A fork of a relation, as WAL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForkKey {
    /// The relation's files.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: Fork,
}

/// A block of a fork, as WAL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// The fork.
    pub fork: ForkKey,
    /// The block in it.
    pub block: BlockNumber,
}

/// What a record does to one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// It changes the page that is there.
    Delta,
    /// The same, but with a record that never brings an image, whatever the settings are.
    DeltaWithoutImage,
    /// It brings the page as it is afterwards.
    Image,
    /// It makes the page anew.
    Init,
}

impl EntryKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Delta, Self::DeltaWithoutImage, Self::Image, Self::Init];

    /// True when the page before it does not matter.
    pub fn is_whole_page(self) -> bool {
        matches!(self, Self::Image | Self::Init)
    }
}

/// One record that changed one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The block.
    pub block: BlockNumber,
    /// The upper half of where the record begins.
    upper: u32,
    /// The lower half, a multiple of 8, so that the lowest bits have room for its kind.
    lower: u32,
}

impl Entry {
    const KIND_BITS: u64 = 3;
    /// Bytes of one in memory.
    pub(super) const BYTES: usize = size_of::<Self>();

    pub(crate) fn new(block: BlockNumber, lsn: Lsn, kind: EntryKind) -> Self {
        let place = lsn.0 & !Self::KIND_BITS | kind as u64;
        Self { block, upper: (place >> 32) as u32, lower: place as u32 }
    }

    fn place(self) -> u64 {
        u64::from(self.upper) << 32 | u64::from(self.lower)
    }

    /// Where the record begins.
    pub fn lsn(self) -> Lsn {
        Lsn(self.place() & !Self::KIND_BITS)
    }

    /// What the record does to the block.
    pub fn kind(self) -> EntryKind {
        EntryKind::ALL[(self.place() & Self::KIND_BITS) as usize]
    }
}

/// The first change of a page that is nowhere brought whole, of the kinds that bring an image; `entries` are sorted and pruned.
pub(super) fn first_without_image(entries: &[Entry]) -> Option<Entry> {
    let chains = entries.chunk_by(|one, next| one.block == next.block);
    let mut bare = chains.filter(|chain| !chain.iter().any(|e| e.kind().is_whole_page()));
    bare.find_map(|chain| chain.iter().find(|entry| entry.kind() == EntryKind::Delta).copied())
}

const _: () = assert!(Entry::BYTES == 12);
