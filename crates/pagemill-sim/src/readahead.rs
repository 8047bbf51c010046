//! The kernel's readahead, one state for each open file description.
//!
//! Linux calls it *on demand* (`mm/readahead.c`): a window is read ahead of the reader, and one page in it
//! is marked. When the reader comes to the mark, the next window, twice as long up to the limit, is begun
//! while the rest of this one is used.
//!
//! ```text
//!        window 1        window 2                window 3
//!   |----*-----------|*------------------------|*-----------
//!        mark             size − async_size
//! ```
//!
//! Left out: the guess from neighbouring pages in the cache that Linux makes for interleaved readers
//! without a mark (`try_context_readahead`), and large folios.
//!
//! Invariants: a window is never longer than the limit; a limit of 0 reads nothing ahead.

/// The state of one open file description; all numbers are pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readahead {
    start: u32,
    size: u32,
    async_size: u32,
    /// The page read last.
    previous: Option<u32>,
    /// The limit.
    pub(crate) most: u32,
}

/// A window to read: `len` pages from `start`, the one at `mark` marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) mark: Option<u32>,
}

impl Readahead {
    pub(crate) fn new(most: u32) -> Self {
        Self { start: 0, size: 0, async_size: 0, previous: None, most }
    }

    /// The reader has used a page.
    pub(crate) fn used(&mut self, page: u32) {
        self.previous = Some(page);
    }

    /// The reader wants `wanted` pages from `page` on, and the first is not there.
    pub(crate) fn missed(&mut self, page: u32, wanted: u32) -> Window {
        let alone = Window { start: page, len: wanted.max(1), mark: None };
        if self.most == 0 {
            return alone;
        }
        if page > 0 && self.expects(page) {
            return self.next();
        }
        let follows = self.previous.is_some_and(|previous| page.wrapping_sub(previous) <= 1);
        if page == 0 || follows || wanted > self.most { self.first(page, wanted) } else { alone }
    }

    /// The reader has come to a mark, and the first page behind it that is not there is `hole`.
    pub(crate) fn marked(&mut self, page: u32, wanted: u32, hole: Option<u32>) -> Option<Window> {
        if self.most == 0 {
            return None;
        }
        if self.expects(page) {
            return Some(self.next());
        }
        let hole = hole?;
        self.start = hole;
        self.size = self.grown((hole - page).saturating_add(wanted));
        self.async_size = self.size;
        Some(self.window())
    }

    /// True for the page that was marked, and for the one after the window.
    fn expects(&self, page: u32) -> bool {
        let end = self.start.saturating_add(self.size);
        self.size > 0 && (page == end.saturating_sub(self.async_size) || page == end)
    }

    fn first(&mut self, page: u32, wanted: u32) -> Window {
        self.start = page;
        self.size = self.initial(wanted);
        self.async_size = if self.size > wanted { self.size - wanted } else { self.size };
        if self.async_size == self.size {
            // The mark would be met at once: both windows in one.
            self.async_size = self.grown(self.size);
            self.size = (self.size + self.async_size).min(self.most.max(self.size));
            self.async_size = self.async_size.min(self.size);
        }
        self.window()
    }

    fn next(&mut self) -> Window {
        self.start = self.start.saturating_add(self.size);
        self.size = self.grown(self.size);
        self.async_size = self.size;
        self.window()
    }

    fn window(&self) -> Window {
        let mark = self.start.saturating_add(self.size - self.async_size);
        Window { start: self.start, len: self.size, mark: Some(mark) }
    }

    fn initial(&self, wanted: u32) -> u32 {
        let size = wanted.max(1).checked_next_power_of_two().unwrap_or(wanted);
        if size <= self.most / 32 {
            size * 4
        } else if size <= self.most / 4 {
            size * 2
        } else {
            self.most
        }
    }

    fn grown(&self, size: u32) -> u32 {
        let grown = if size < self.most / 16 { 4 } else { 2 };
        size.saturating_mul(grown).min(self.most).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_reader_gets_windows_that_grow_to_the_limit() {
        let mut readahead = Readahead::new(32);
        let first = readahead.missed(0, 2);
        assert_eq!(first, Window { start: 0, len: 4, mark: Some(2) });
        let second = readahead.marked(2, 2, None).unwrap();
        assert_eq!(second, Window { start: 4, len: 8, mark: Some(4) });
        let third = readahead.marked(4, 2, None).unwrap();
        assert_eq!(third, Window { start: 12, len: 16, mark: Some(12) });
        let fourth = readahead.marked(12, 2, None).unwrap();
        assert_eq!((fourth.start, fourth.len), (28, 32));
        let fifth = readahead.marked(28, 2, None).unwrap();
        assert_eq!((fifth.start, fifth.len), (60, 32));
    }

    #[test]
    fn a_reader_here_and_there_gets_what_it_asks_for() {
        let mut readahead = Readahead::new(32);
        readahead.used(500);
        assert_eq!(readahead.missed(100, 2), Window { start: 100, len: 2, mark: None });
        readahead.used(101);
        assert_eq!(readahead.missed(40, 2), Window { start: 40, len: 2, mark: None });
        readahead.used(41);
        assert_eq!(readahead.missed(42, 2).len, 4, "two in order are a sequence");
    }

    #[test]
    fn no_window_without_a_limit() {
        let mut readahead = Readahead::new(0);
        assert_eq!(readahead.missed(0, 2), Window { start: 0, len: 2, mark: None });
        assert_eq!(readahead.marked(2, 2, Some(3)), None);
    }
}
