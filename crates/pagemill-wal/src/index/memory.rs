//! [`MemoryLimits`]: what each part of an index may take of the memory that it was given.
//!
//! | part | of all |
//! | --- | --- |
//! | pieces of WAL that are read ahead, later segments that were decompressed | a quarter |
//! | sorting | a tenth |
//! | entries, which go to a temporary file when there are more | the rest, without what follows |
//! | what cannot go to a file: the table of forks, pages of transaction logs, directories | at most half |
//!
//! A piece of WAL has to be in memory to be read, so that very small limits are passed by a few MiB.

use super::entry_list::EntryList;

/// Shares of the memory for an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryLimits {
    /// All of it, in bytes.
    pub(super) all: usize,
}

/// Entries that are sorted at once at least, however little memory there is.
const LEAST_SORTED: usize = 1 << 10;

impl MemoryLimits {
    fn sorting(self) -> usize {
        self.all / 10
    }

    /// New entries of a fork that may wait to be sorted.
    pub(super) fn unsorted_entries(self) -> usize {
        (self.sorting() / EntryList::SORTING_BYTES).max(LEAST_SORTED)
    }

    /// Bytes of entries, where so many are taken by what cannot go to a file.
    pub(super) fn entries(self, fixed: usize) -> usize {
        let rest = self.all - self.all / 4 - self.sorting();
        rest.saturating_sub(fixed).max(self.all / 16)
    }

    /// Bytes of what cannot go to a file.
    pub(super) fn fixed(self) -> usize {
        self.all / 2
    }
}
