//! A large object that is read from front to end: pages of it as they are stored, and bytes as they are asked for.
//!
//! A page that there is not, and what a page is short of before another one, reads as zeros. The last page ends the object.
//!
//! Source: `inv_read` in `src/backend/storage/large_object/inv_api.c`, `src/include/storage/large_object.h`, PostgreSQL 14 to 18.

use std::collections::VecDeque;

/// `LOBLKSIZE`: bytes of a page.
const PAGE_BYTES: i64 = 2048;
/// Pages that are read at once.
pub(super) const PAGES_AT_ONCE: usize = 512;

/// A row of `pg_largeobject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) number: i32,
    pub(super) data: Vec<u8>,
}

impl Page {
    fn begin(&self) -> i64 {
        i64::from(self.number) * PAGE_BYTES
    }

    /// The first byte behind it.
    pub(super) fn end(&self) -> i64 {
        self.begin() + self.data.len() as i64
    }
}

/// An object, and how far it is read.
#[derive(Debug)]
pub(super) struct LargeObject {
    number: u32,
    at: i64,
    /// Pages from the one on that `at` is in, or as many of them as were read; none of them ends before `at`.
    pages: VecDeque<Page>,
    /// True once there are no more pages than those.
    is_all: bool,
}

impl LargeObject {
    /// An object from its beginning on.
    pub(super) fn new(number: u32) -> Self {
        Self { number, at: 0, pages: VecDeque::new(), is_all: false }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn at(&self) -> i64 {
        self.at
    }

    pub(super) fn move_to(&mut self, at: i64) {
        *self = Self { at, ..Self::new(self.number) };
    }

    /// Pages that were asked for; fewer than might have come are the last ones.
    pub(super) fn give(&mut self, pages: Vec<Page>) {
        self.is_all = pages.len() < PAGES_AT_ONCE;
        self.pages.extend(pages);
    }

    /// Reads until there are so many bytes; a page number where pages from that on are needed before.
    pub(super) fn read(&mut self, length: usize, out: &mut Vec<u8>) -> Option<i64> {
        while out.len() < length {
            let Some(page) = self.pages.front() else {
                return (!self.is_all).then_some(self.at / PAGE_BYTES);
            };
            let wanted = length - out.len();
            if self.at < page.begin() {
                // As many as are wanted at most, however far the page is.
                let zeros = (page.begin() - self.at).min(wanted as i64);
                out.resize(out.len() + zeros as usize, 0);
                self.at += zeros;
                continue;
            }
            let left = page.data.get((self.at - page.begin()) as usize..).unwrap_or_default();
            let taken = left.len().min(wanted);
            out.extend_from_slice(&left[..taken]);
            self.at += taken as i64;
            if taken < left.len() {
                break;
            }
            // What follows it tells whether it is followed by zeros.
            let page = self.pages.pop_front();
            let next_page = page.map_or(0, |page| page.begin() + PAGE_BYTES);
            if self.pages.is_empty() && !self.is_all && out.len() < length {
                return Some(next_page / PAGE_BYTES);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: i32, data: &[u8]) -> Page {
        Page { number, data: data.to_vec() }
    }

    fn object(pages: Vec<Page>) -> LargeObject {
        let mut object = LargeObject::new(1);
        object.give(pages);
        object
    }

    #[test]
    fn what_is_missing_is_zero() {
        let mut object = object(vec![page(0, b"ab"), page(2, b"c")]);
        let mut out = Vec::new();
        assert_eq!(object.read(5000, &mut out), None);
        assert_eq!(out.len(), 4097);
        assert_eq!((&out[..2], out[4096]), (&b"ab"[..], b'c'));
        assert!(out[2..4096].iter().all(|byte| *byte == 0));
        assert_eq!(object.at(), 4097);
        out.clear();
        assert_eq!(object.read(10, &mut out), None);
        assert!(out.is_empty(), "nothing behind the end");
    }

    #[test]
    fn pieces_of_any_length_are_the_whole() {
        let stored: Vec<Page> = (0..3).map(|n| page(n, &[n as u8 + 1; 2048])).collect();
        for length in [1, 7, 2047, 2048, 2049, 9000] {
            let (mut object, mut all) = (object(stored.clone()), Vec::new());
            loop {
                let mut out = Vec::new();
                assert_eq!(object.read(length, &mut out), None);
                if out.is_empty() {
                    break;
                }
                all.extend(out);
            }
            assert_eq!(all.len(), 3 * 2048, "pieces of {length}");
        }
    }

    #[test]
    fn more_pages_are_asked_for_where_the_last_ones_end() {
        let mut object = LargeObject::new(1);
        let mut out = Vec::new();
        assert_eq!(object.read(10, &mut out), Some(0));
        let many = PAGES_AT_ONCE as i32;
        object.give((0..many).map(|n| page(n, &[1; 2048])).collect());
        let all = PAGES_AT_ONCE * 2048;
        assert_eq!(object.read(all, &mut out), None);
        out.clear();
        assert_eq!(object.read(5, &mut out), Some(i64::from(many)));
        object.give(vec![page(many, b"xyz")]);
        assert_eq!(object.read(5, &mut out), None);
        assert_eq!(out, b"xyz");
        object.move_to(1);
        assert_eq!((object.at(), object.read(1, &mut Vec::new())), (1, Some(0)));
    }
}
