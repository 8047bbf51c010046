//! A small cache of pages for random access that is not worth a lock: the commit log.
//!
//! Belongs to one thread, so no page needs a lock or a pin: a page is borrowed from the cache, and
//! the borrow ends before the next is asked for. Which page gives way is decided by the clock
//! algorithm, as for PostgreSQL's shared buffers (`src/backend/storage/buffer/freelist.c`,
//! PostgreSQL 15): a page used since the hand last passed gets one more round.
//!
//! Memory is taken page by page, as pages are first used: a cache is made for each scan of a catalog, and most of them see one
//! page of the log. One piece for all would not do, as an allocator that had such a piece before clears it anew.
//!
//! Invariants: frames are used in their order until each has a page; `frames[f].key` is `Some(k)` exactly when `places[k]` is `f`; the page of such a
//! frame is what its load made of it, whole; a frame whose load failed is empty.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_sys::AlignedBuffer;

/// A fixed number of pages, keyed by file and block.
#[derive(Debug)]
pub struct PageCache {
    /// Of the first frames, each a block.
    pages: Vec<AlignedBuffer>,
    frames: Vec<Frame>,
    places: HashMap<Key, usize>,
    /// The frame looked at next when one must give way.
    hand: usize,
    /// The frame of the last page handed out: the next one is often the same.
    last: usize,
    hits: u64,
    misses: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    file: u64,
    block: BlockNumber,
}

#[derive(Debug, Clone, Default)]
struct Frame {
    key: Option<Key>,
    used: bool,
}

impl PageCache {
    /// A cache of `capacity` pages. Their memory is taken when they are first used.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self {
            pages: Vec::new(),
            frames: vec![Frame::default(); capacity.get()],
            places: HashMap::new(),
            hand: 0,
            last: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// The page of `block` in the file the caller calls `file`. On a miss, `load` fills it; it finds
    /// arbitrary bytes there and must overwrite them all.
    ///
    /// # Errors
    /// That of `load`. Nothing is kept then, and the next attempt loads again.
    pub fn get<E>(
        &mut self,
        file: u64,
        block: BlockNumber,
        load: impl FnOnce(&mut BlockBytes) -> Result<(), E>,
    ) -> Result<&BlockBytes, E> {
        let key = Key { file, block };
        let frame = match self.find(key) {
            Some(frame) => {
                self.hits += 1;
                frame
            }
            None => {
                self.misses += 1;
                self.load(key, load)?
            }
        };
        self.frames[frame].used = true;
        self.last = frame;
        Ok(&self.pages[frame].as_chunks().0[0])
    }

    /// True when the page is here now. Neither a hit nor a miss, and no use of the page.
    pub fn contains(&self, file: u64, block: BlockNumber) -> bool {
        self.find(Key { file, block }).is_some()
    }

    /// How many pages were asked for and found.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// How many pages were asked for and had to be loaded, failures included.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    fn find(&self, key: Key) -> Option<usize> {
        if self.frames[self.last].key == Some(key) {
            return Some(self.last);
        }
        self.places.get(&key).copied()
    }

    /// Loads a page into a frame that is free or gives way.
    fn load<E>(
        &mut self,
        key: Key,
        load: impl FnOnce(&mut BlockBytes) -> Result<(), E>,
    ) -> Result<usize, E> {
        let frame = self.victim();
        if let Some(old) = self.frames[frame].key.take() {
            self.places.remove(&old);
        }
        if frame == self.pages.len() {
            self.pages.push(AlignedBuffer::zeroed(BLOCK_SIZE));
        }
        load(&mut self.pages[frame].as_chunks_mut().0[0])?;
        self.frames[frame].key = Some(key);
        self.places.insert(key, frame);
        Ok(frame)
    }

    /// Moves the hand on to the first frame that is empty or not used since the last round, which
    /// it meets within two rounds.
    fn victim(&mut self) -> usize {
        loop {
            let frame = self.hand;
            self.hand = (frame + 1) % self.frames.len();
            let found = &mut self.frames[frame];
            if found.key.is_none() || !std::mem::take(&mut found.used) {
                return frame;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cache(capacity: usize) -> PageCache {
        PageCache::new(NonZeroUsize::new(capacity).unwrap())
    }

    fn fill(page: &mut BlockBytes, file: u64, block: u32) -> Result<(), String> {
        page.fill(0);
        page[..8].copy_from_slice(&file.to_le_bytes());
        page[8..12].copy_from_slice(&block.to_le_bytes());
        Ok(())
    }

    fn get(cache: &mut PageCache, file: u64, block: u32) -> Vec<u8> {
        let page = cache.get(file, BlockNumber(block), |page| fill(page, file, block));
        page.unwrap()[..12].to_vec()
    }

    #[test]
    fn looking_whether_a_page_is_here_changes_nothing() {
        let mut cache = cache(1);
        assert!(!cache.contains(1, BlockNumber(5)));
        get(&mut cache, 1, 5);
        assert!(cache.contains(1, BlockNumber(5)) && !cache.contains(1, BlockNumber(6)));
        assert_eq!((cache.hits(), cache.misses()), (0, 1));
    }

    #[test]
    fn the_same_block_of_two_files_is_two_pages() {
        let mut cache = cache(2);
        assert_ne!(get(&mut cache, 1, 5), get(&mut cache, 2, 5));
        assert_eq!((cache.hits(), cache.misses()), (0, 2));
        get(&mut cache, 1, 5);
        get(&mut cache, 2, 5);
        assert_eq!((cache.hits(), cache.misses()), (2, 2));
    }

    #[test]
    fn a_failed_load_leaves_nothing_behind() {
        let mut cache = cache(1);
        get(&mut cache, 1, 1);
        let failed = cache.get(1, BlockNumber(2), |page| {
            page.fill(0xFF);
            Err("unreadable")
        });
        assert_eq!(failed.unwrap_err(), "unreadable");
        assert_eq!(get(&mut cache, 1, 2)[8], 2);
        assert_eq!(get(&mut cache, 1, 1)[8], 1);
        assert_eq!((cache.hits(), cache.misses()), (0, 4));
    }

    #[test]
    fn a_page_in_use_outlives_a_scan_through_others() {
        let mut cache = cache(3);
        get(&mut cache, 1, 0);
        for block in 1..100 {
            get(&mut cache, 1, block);
            get(&mut cache, 1, 0);
        }
        assert!(cache.hits() >= 90, "{} hits", cache.hits());
    }

    /// Each scan of a catalog has a cache of 128 pages, which cost a command a third of its time before it read a row.
    #[test]
    fn a_cache_takes_no_memory_for_pages_that_nobody_asks_for() {
        let mut cache = cache(128);
        assert!(cache.pages.is_empty());
        get(&mut cache, 1, 7);
        get(&mut cache, 1, 7);
        assert_eq!(cache.pages.len(), 1);
    }

    proptest! {
        #[test]
        fn every_page_is_the_one_asked_for_whatever_came_before(
            capacity in 1_usize..8,
            asked in prop::collection::vec((0_u64..3, 0_u32..6, prop::bool::weighted(0.1)), 0..200),
        ) {
            let mut cache = cache(capacity);
            let mut loads = 0;
            for (n, (file, block, fails)) in asked.iter().copied().enumerate() {
                let page = cache.get(file, BlockNumber(block), |page| {
                    loads += 1;
                    if fails { Err("fails".to_owned()) } else { fill(page, file, block) }
                });
                if let Ok(page) = page {
                    prop_assert_eq!(&page[..8], &file.to_le_bytes());
                    prop_assert_eq!(&page[8..12], &block.to_le_bytes());
                }
                prop_assert_eq!(cache.misses(), loads);
                prop_assert_eq!(cache.hits() + cache.misses(), n as u64 + 1);
                prop_assert!(cache.places.len() <= capacity);
            }
        }
    }
}
