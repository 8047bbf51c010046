//! [`LogPages`]: what WAL says of pages of a log of transactions, bit by bit, to be laid over what its files say.
//!
//! The rules by which a server's recovery keeps these pages, when one is zeroed and when the next is begun, changed with
//! minor releases. What records say of transactions and multixacts themselves did not; so that is what is taken, and
//! where a page begins as zeros all of it is known.
//!
//! Sources: `clog_redo` in `src/backend/access/transam/clog.c`, `multixact_redo` in `multixact.c`, PostgreSQL 14 to 18.

use std::collections::BTreeMap;

use pagemill_format::{BLOCK_SIZE, BlockBytes};

/// Pages of one log, as far as WAL knows them.
#[derive(Debug, Clone, Default)]
pub struct LogPages {
    pages: BTreeMap<u32, LogPage>,
}

#[derive(Debug, Clone)]
struct LogPage {
    values: Box<BlockBytes>,
    /// The bits of `values` that are known.
    known: Box<BlockBytes>,
}

impl LogPages {
    /// The pages that something is known of, ascending.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.pages.keys().copied()
    }

    /// What they take in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        const PAGE_BYTES: usize = 2 * BLOCK_SIZE + 64;
        self.pages.len() * PAGE_BYTES
    }

    /// True when nothing is known of a page.
    pub fn lacks(&self, page: u32) -> bool {
        !self.pages.contains_key(&page)
    }

    /// Lays what is known of a page over its bytes.
    pub fn lay_over(&self, page: u32, bytes: &mut BlockBytes) {
        let Some(LogPage { values, known }) = self.pages.get(&page) else { return };
        for (byte, (value, known)) in bytes.iter_mut().zip(values.iter().zip(known.iter())) {
            *byte = *byte & !known | value & known;
        }
    }

    /// The page begins as zeros.
    pub(crate) fn zero(&mut self, page: u32) {
        let page = self.page(page);
        page.values.fill(0);
        page.known.fill(u8::MAX);
    }

    /// Sets those bits of a byte that `mask` has.
    pub(crate) fn set(&mut self, page: u32, byte: usize, value: u8, mask: u8) {
        let page = self.page(page);
        if let (Some(to), Some(known)) = (page.values.get_mut(byte), page.known.get_mut(byte)) {
            *to = *to & !mask | value & mask;
            *known |= mask;
        }
    }

    /// Sets four bytes.
    pub(crate) fn set_word(&mut self, page: u32, byte: usize, word: u32) {
        for (at, value) in (byte..).zip(word.to_le_bytes()) {
            self.set(page, at, value, u8::MAX);
        }
    }

    /// True when all bits of four bytes are known.
    pub(crate) fn knows_word(&self, page: u32, byte: usize) -> bool {
        let known = self.pages.get(&page).and_then(|page| page.known.get(byte..byte + 4));
        known.is_some_and(|known| known.iter().all(|bits| *bits == u8::MAX))
    }

    /// The four bytes at a place, as far as they are known.
    pub(crate) fn word(&self, page: u32, byte: usize) -> u32 {
        let found = self.pages.get(&page).and_then(|page| page.values.get(byte..)?.first_chunk());
        found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn page(&mut self, page: u32) -> &mut LogPage {
        let empty = || Box::new([0; BLOCK_SIZE]);
        self.pages.entry(page).or_insert_with(|| LogPage { values: empty(), known: empty() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_laid_over_a_page() {
        let mut pages = LogPages::default();
        pages.set(3, 0, 0b0000_0110, 0b0000_1111);
        pages.set_word(3, 8, 0x0102_0304);
        let mut bytes = [0xFF; BLOCK_SIZE];
        pages.lay_over(3, &mut bytes);
        assert_eq!((bytes[0], bytes[1], &bytes[8..12]), (0xF6, 0xFF, &[4, 3, 2, 1][..]));
        let before = bytes;
        pages.lay_over(4, &mut bytes);
        assert_eq!(bytes, before);
        assert!(pages.lacks(4) && !pages.lacks(3));
        assert!(pages.knows_word(3, 8) && !pages.knows_word(3, 0));
    }

    #[test]
    fn of_a_zeroed_page_all_is_known_and_what_follows_is_set_in_it() {
        let mut pages = LogPages::default();
        pages.set_word(0, 0, 7);
        pages.zero(0);
        pages.set_word(0, 4, 9);
        let mut bytes = [0xFF; BLOCK_SIZE];
        pages.lay_over(0, &mut bytes);
        assert_eq!((pages.word(0, 0), pages.word(0, 4)), (0, 9));
        assert_eq!((bytes[0], bytes[4], bytes[BLOCK_SIZE - 1]), (0, 9, 0));
    }
}
