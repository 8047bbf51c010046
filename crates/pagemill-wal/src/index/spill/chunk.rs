//! A chunk: sorted entries of one fork as they lie in a temporary file, about 5 bytes each.
//!
//! ```text
//! header: bytes behind it, entries, locator, fork, first block, first LSN
//! entry:  (LSN behind the one before) / 8 × 8 + kind × 2 + is_new_block, [blocks behind the one before]
//! ```
//!
//! Numbers of entries are variable in length, seven bits in a byte, the lowest first. The first entry of a block counts its
//! LSN from the header's, later ones from the one before.

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BlockNumber, Fork, Lsn, Oid};

use crate::index::entry::{Entry, EntryKind, ForkKey};

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 36;
/// An LSN and a block at most.
const MOST_ENTRY_BYTES: usize = 10 + 5;

/// What is known of a chunk before its entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    /// Bytes of its entries.
    pub(super) bytes: u32,
    /// How many there are.
    pub(super) entries: u32,
    /// Of which fork.
    pub(super) key: ForkKey,
    first_block: BlockNumber,
    first_lsn: Lsn,
}

impl ChunkHeader {
    /// The header in these bytes; `None` when it cannot have been written here.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        };
        let (tablespace, database, number) = (Oid(word(8)?), Oid(word(12)?), Oid(word(16)?));
        let locator = RelFileLocator { tablespace, database, number };
        let key = ForkKey { locator, fork: *Fork::ALL.get(word(20)? as usize)? };
        let first_lsn = Lsn(u64::from(word(28)?) | u64::from(word(32)?) << 32);
        let (bytes, entries) = (word(0)?, word(4)?);
        let first_block = BlockNumber(word(24)?);
        let is_possible = u64::from(bytes) <= u64::from(entries) * MOST_ENTRY_BYTES as u64;
        is_possible.then_some(Self { bytes, entries, key, first_block, first_lsn })
    }

    fn write(&self, to: &mut [u8]) {
        let RelFileLocator { tablespace, database, number } = self.key.locator;
        let fork = Fork::ALL.iter().position(|fork| *fork == self.key.fork).unwrap_or(0) as u32;
        let (lower, upper) = (self.first_lsn.0 as u32, (self.first_lsn.0 >> 32) as u32);
        let words = [self.bytes, self.entries, tablespace.0, database.0, number.0, fork];
        let words = words.into_iter().chain([self.first_block.0, lower, upper]);
        for (to, word) in to.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Writes a chunk behind what is in `to`. There is an entry at least.
pub(super) fn encode(key: ForkKey, entries: &[Entry], to: &mut Vec<u8>) {
    let Some(first) = entries.first() else { return };
    let begin = to.len();
    to.resize(begin + HEADER_BYTES, 0);
    let (mut block, mut lsn) = (first.block, first.lsn());
    for entry in entries {
        let is_new = entry.block != block;
        let base = if is_new { first.lsn() } else { lsn };
        let behind = entry.lsn().0.wrapping_sub(base.0) & !7;
        write_number(behind | (entry.kind() as u64) << 1 | u64::from(is_new), to);
        if is_new {
            write_number(u64::from(entry.block.0.wrapping_sub(block.0)), to);
        }
        (block, lsn) = (entry.block, entry.lsn());
    }
    let bytes = (to.len() - begin - HEADER_BYTES) as u32;
    let (first_block, first_lsn) = (first.block, first.lsn());
    let header = ChunkHeader { bytes, entries: entries.len() as u32, key, first_block, first_lsn };
    header.write(&mut to[begin..begin + HEADER_BYTES]);
}

/// The entries in these bytes behind a header; `None` when they cannot have been written here.
pub(super) fn decode(header: &ChunkHeader, mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::with_capacity(bytes.len().min(header.entries as usize));
    let (mut block, mut lsn) = (header.first_block, header.first_lsn);
    for _ in 0..header.entries {
        let number = read_number(&mut bytes)?;
        if number & 1 != 0 {
            block =
                BlockNumber(block.0.wrapping_add(u32::try_from(read_number(&mut bytes)?).ok()?));
            lsn = header.first_lsn;
        }
        lsn = Lsn(lsn.0.wrapping_add(number & !7));
        entries.push(Entry::new(block, lsn, EntryKind::ALL[(number >> 1 & 3) as usize]));
    }
    bytes.is_empty().then_some(entries)
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> ForkKey {
        let locator = RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(7) };
        ForkKey { locator, fork: Fork::Init }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(entries in prop::collection::vec((0..9_u32, any::<u64>(), 0..4_usize), 1..99)) {
            let entry = |(block, lsn, kind): (u32, u64, usize)| {
                let block = BlockNumber(block * (u32::MAX / 9));
                Entry::new(block, Lsn(lsn & !7), EntryKind::ALL[kind])
            };
            let mut entries: Vec<_> = entries.into_iter().map(entry).collect();
            entries.sort_by_key(|entry| entry.block);
            let mut bytes = vec![1, 2, 3];
            encode(key(), &entries, &mut bytes);
            let header = ChunkHeader::parse(bytes[3..].first_chunk().unwrap()).unwrap();
            prop_assert_eq!(header.key, key());
            let body = &bytes[3 + HEADER_BYTES..];
            prop_assert_eq!(header.bytes as usize, body.len());
            prop_assert_eq!(decode(&header, body).unwrap(), entries);
            prop_assert_eq!(decode(&header, &body[..body.len() - 1]), None);
        }

        #[test]
        fn bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), HEADER_BYTES..200)) {
            if let Some(header) = ChunkHeader::parse(bytes.first_chunk().unwrap()) {
                let _ = decode(&header, &bytes[HEADER_BYTES..]);
            }
        }
    }

    #[test]
    fn an_entry_takes_about_five_bytes() {
        let entry = |at: u32| {
            let lsn = Lsn(u64::from(at % 20 * 50_000_000 + at * 7919) / 8 * 8);
            Entry::new(BlockNumber(at / 20), lsn, EntryKind::Delta)
        };
        let entries: Vec<_> = (0..2000).map(entry).collect();
        let mut bytes = Vec::new();
        encode(key(), &entries, &mut bytes);
        assert!(bytes.len() < 5 * entries.len() + 2 * HEADER_BYTES + 300, "{}", bytes.len());
    }
}
