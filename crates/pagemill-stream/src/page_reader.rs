//! One thread's way to single pages of the shared pool, in any order.
//!
//! Who follows an index or fetches a value asks for the same page many times on end. So the page
//! asked for last stays pinned here, and asking for it again takes no lock.
//!
//! Invariant: at most one page is pinned, and none while another is being fetched.

use std::sync::Arc;

use pagemill_format::BlockBytes;

use crate::buffer_pool::{BufferPool, NoUnpinnedBuffers, PageKey, PinnedPage, Strategy};

/// Pages of a pool, borrowed one after the other.
#[derive(Debug)]
pub struct PageReader {
    pool: Arc<BufferPool>,
    last: Option<(PageKey, PinnedPage)>,
    hits: u64,
    misses: u64,
}

impl PageReader {
    /// A reader that has asked for nothing yet.
    pub fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, last: None, hits: 0, misses: 0 }
    }

    /// The page of a block, as [`BufferPool::get`] fetches it.
    ///
    /// # Errors
    /// As [`BufferPool::get`].
    #[inline]
    pub fn get<E: From<NoUnpinnedBuffers>>(
        &mut self,
        key: PageKey,
        strategy: Strategy<'_>,
        load: impl FnOnce(&mut BlockBytes) -> Result<(), E>,
    ) -> Result<&BlockBytes, E> {
        // In two steps, so that what does not match is let go of before anything is fetched.
        let last = match self.last.take().filter(|last| last.0 == key) {
            Some(last) => {
                self.hits += 1;
                last
            }
            None => (key, self.fetch(key, strategy, load)?),
        };
        Ok(&self.last.insert(last).1)
    }

    fn fetch<E: From<NoUnpinnedBuffers>>(
        &mut self,
        key: PageKey,
        strategy: Strategy<'_>,
        load: impl FnOnce(&mut BlockBytes) -> Result<(), E>,
    ) -> Result<PinnedPage, E> {
        let mut loaded = false;
        let page = self.pool.get(key, strategy, |page| {
            loaded = true;
            load(page)
        });
        self.hits += u64::from(!loaded && page.is_ok());
        self.misses += u64::from(loaded);
        page
    }

    /// True when the page is in the pool; it is then pinned, so that asking for it next costs nothing.
    /// Never waits, and begins no load.
    #[inline]
    pub fn pin(&mut self, key: PageKey, strategy: Strategy<'_>) -> bool {
        if self.last.as_ref().is_none_or(|last| last.0 != key) {
            self.last = self.pool.find(key, strategy).map(|page| (key, page));
        }
        self.last.is_some()
    }

    /// How many pages this reader asked for and did not have to load.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// How many pages this reader loaded, failures included.
    pub fn misses(&self) -> u64 {
        self.misses
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use pagemill_format::BlockNumber;

    use super::*;

    fn get(reader: &mut PageReader, block: u32) -> Result<u8, NoUnpinnedBuffers> {
        let key = PageKey { file: 1, block: BlockNumber(block) };
        let page = reader.get(key, Strategy::Normal, |page| {
            page[0] = block as u8;
            Ok(())
        });
        page.map(|page| page[0])
    }

    #[test]
    fn two_readers_share_what_one_of_them_loaded() {
        let pool = BufferPool::new(NonZeroUsize::new(2).unwrap());
        let (mut one, mut two) = (PageReader::new(pool.clone()), PageReader::new(pool.clone()));
        assert_eq!((get(&mut one, 1), get(&mut two, 1), get(&mut one, 1)), (Ok(1), Ok(1), Ok(1)));
        assert_eq!((one.hits(), one.misses(), two.hits(), two.misses()), (1, 1, 1, 0));
        assert!(one.pin(PageKey { file: 1, block: BlockNumber(1) }, Strategy::Normal));
        assert!(!one.pin(PageKey { file: 1, block: BlockNumber(2) }, Strategy::Normal));
    }

    #[test]
    fn a_reader_pins_one_page_and_lets_go_of_it_for_the_next() {
        let pool = BufferPool::new(NonZeroUsize::new(1).unwrap());
        let (mut one, mut two) = (PageReader::new(pool.clone()), PageReader::new(pool));
        for block in 0..10 {
            assert_eq!(get(&mut one, block), Ok(block as u8));
            assert!(get(&mut two, block + 1).is_err());
        }
    }
}
