//! The kernel's page cache: which pages of 4 kB of which file are there, on their way, or gone.
//!
//! Pages go in the order they came, but for those read twice since: one second chance (Linux's inactive
//! and active list, with one list).
//!
//! Invariants: a page on its way is never evicted; no more pages are held than the limit unless all
//! of them are on their way.

use std::collections::VecDeque;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

const READING: u8 = 1;
const THERE: u8 = 2;
/// Where the reader is to begin the next readahead.
const MARKED: u8 = 4;
const TOUCHED: u8 = 8;
const TOUCHED_TWICE: u8 = 16;

/// What the cache knows of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageState {
    Absent,
    Reading,
    There,
}

/// A page of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageKey {
    pub(crate) file: usize,
    pub(crate) page: u32,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct PageCache {
    files: Vec<Vec<u8>>,
    order: VecDeque<PageKey>,
    limit: usize,
}

impl PageCache {
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit / PAGE).unwrap_or(usize::MAX).max(1024);
        Self { files: Vec::new(), order: VecDeque::new(), limit }
    }

    /// Makes room to remember a file of so many bytes.
    pub(crate) fn add_file(&mut self, len: u64) {
        let pages = usize::try_from(len.div_ceil(PAGE)).unwrap_or(usize::MAX);
        self.files.push(vec![0; pages]);
    }

    fn bits(&mut self, key: PageKey) -> Option<&mut u8> {
        self.files.get_mut(key.file)?.get_mut(key.page as usize)
    }

    pub(crate) fn state(&self, key: PageKey) -> PageState {
        let bits = self.files.get(key.file).and_then(|file| file.get(key.page as usize));
        match bits.map_or(0, |bits| bits & (READING | THERE)) {
            0 => PageState::Absent,
            READING => PageState::Reading,
            _ => PageState::There,
        }
    }

    /// Makes a place for a page that is about to be read.
    pub(crate) fn begin(&mut self, key: PageKey, marked: bool) {
        let mut chances = 2 * self.order.len();
        while self.order.len() >= self.limit && chances > 0 {
            chances -= 1;
            self.evict_or_spare();
        }
        if let Some(bits) = self.bits(key) {
            *bits = if marked { READING | MARKED } else { READING };
            self.order.push_back(key);
        }
    }

    fn evict_or_spare(&mut self) {
        let Some(key) = self.order.pop_front() else { return };
        let Some(bits) = self.bits(key) else { return };
        if *bits & (READING | TOUCHED_TWICE) == 0 {
            *bits = 0;
        } else {
            *bits &= !(TOUCHED | TOUCHED_TWICE);
            self.order.push_back(key);
        }
    }

    /// A page has come.
    pub(crate) fn arrive(&mut self, key: PageKey) {
        if let Some(bits) = self.bits(key) {
            *bits = *bits & !READING | THERE;
        }
    }

    /// Takes a page's mark; true when it had one.
    pub(crate) fn unmark(&mut self, key: PageKey) -> bool {
        let Some(bits) = self.bits(key) else { return false };
        let marked = *bits & MARKED != 0;
        *bits &= !MARKED;
        marked
    }

    /// A page is read from.
    pub(crate) fn touch(&mut self, key: PageKey) {
        if let Some(bits) = self.bits(key) {
            *bits |= if *bits & TOUCHED != 0 { TOUCHED_TWICE } else { TOUCHED };
        }
    }

    /// The first page from `page` on, up to `most` further, that is neither there nor on its way.
    pub(crate) fn next_hole(&self, key: PageKey, most: u32) -> Option<u32> {
        let mut pages = key.page..key.page.saturating_add(most);
        pages.find(|page| self.state(PageKey { page: *page, ..key }) == PageState::Absent)
    }

    /// Forgets everything that is not on its way.
    pub(crate) fn drop_all(&mut self) {
        let mut kept = VecDeque::new();
        while let Some(key) = self.order.pop_front() {
            match self.state(key) {
                PageState::Reading => kept.push_back(key),
                _ => self.bits(key).into_iter().for_each(|bits| *bits = 0),
            }
        }
        self.order = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(page: u32) -> PageKey {
        PageKey { file: 0, page }
    }

    fn cache() -> PageCache {
        let mut cache = PageCache::new(0);
        cache.add_file(10_000 * PAGE);
        cache
    }

    #[test]
    fn a_page_goes_from_absent_over_reading_to_there() {
        let mut cache = cache();
        assert_eq!(cache.state(key(3)), PageState::Absent);
        cache.begin(key(3), true);
        assert_eq!(cache.state(key(3)), PageState::Reading);
        cache.arrive(key(3));
        assert_eq!(cache.state(key(3)), PageState::There);
        assert!(cache.unmark(key(3)) && !cache.unmark(key(3)));
        assert_eq!(cache.next_hole(key(3), 5), Some(4));
    }

    #[test]
    fn what_came_first_goes_first_unless_it_was_read_twice_or_is_on_its_way() {
        let mut cache = cache();
        for page in 0..1024 {
            cache.begin(key(page), false);
            if page != 2 {
                cache.arrive(key(page));
            }
        }
        cache.touch(key(0));
        cache.touch(key(1));
        cache.touch(key(1));
        for page in 2000..2010 {
            cache.begin(key(page), false);
        }
        assert_eq!(cache.state(key(0)), PageState::Absent);
        assert_eq!(cache.state(key(1)), PageState::There);
        assert_eq!(cache.state(key(2)), PageState::Reading);
        assert_eq!(cache.state(key(3)), PageState::Absent);
    }
}
