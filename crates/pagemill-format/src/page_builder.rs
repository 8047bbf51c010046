//! Making pages: an empty page, items added to it, and the fields that come last: LSN and checksum.
//!
//! A [`PageBuilder`] is a view of a block that was initialised; all its state is in the page itself,
//! so it costs nothing to make one per item. What it writes, [`crate::page`] reads.
//!
//! Invariants: `24 <= lower <= upper <= special <= 8192` at any time, items start on multiples of 8,
//! and all bytes no item was written to are zeros.
//!
//! Sources: `PageInit`, `PageAddItemExtended`, `PageGetHeapFreeSpace` in
//! `src/backend/storage/page/bufpage.c`, `src/include/storage/bufpage.h`, PostgreSQL 14 to 18.

use crate::checksum::page_checksum;
use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber, Lsn, TransactionId};
use crate::page::{
    LINE_POINTER_BYTES, LinePointer, MAX_HEAP_TUPLES_PER_PAGE, PAGE_HEADER_BYTES,
    PAGE_LAYOUT_VERSION, PD_ALL_VISIBLE, Page,
};

const CHECKSUM: usize = 8;
const FLAGS: usize = 10;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const SIZE_AND_VERSION: usize = 18;
const PRUNE_XID: usize = 20;

/// The next multiple of 8 (`MAXALIGN`).
#[inline]
pub fn max_align(bytes: usize) -> usize {
    (bytes + 7) & !7
}

/// A block being filled.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    page: &'a mut BlockBytes,
}

impl<'a> PageBuilder<'a> {
    /// Makes an empty page with a special area of so many bytes, which are rounded up to 8 and cut to
    /// what a page has.
    pub fn init(page: &'a mut BlockBytes, special_bytes: usize) -> Self {
        let room = BLOCK_SIZE - PAGE_HEADER_BYTES;
        let special = BLOCK_SIZE - max_align(special_bytes.min(room));
        page.fill(0);
        let mut builder = Self { page };
        builder.put(LOWER, PAGE_HEADER_BYTES);
        builder.put(UPPER, special);
        builder.put(SPECIAL, special);
        builder.put(SIZE_AND_VERSION, BLOCK_SIZE | usize::from(PAGE_LAYOUT_VERSION));
        builder
    }

    /// Goes on with a page that was made before.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when its header is not sound, or it was never initialised.
    pub fn resume(page: &'a mut BlockBytes) -> Result<Self> {
        let view = Page::new(page);
        view.check_header()?;
        if view.is_new() {
            return Err(Error::corrupt("page header", UPPER, "a page that was never initialised"));
        }
        Ok(Self { page })
    }

    /// A page that this crate initialised and nobody else changed.
    #[inline]
    pub(crate) fn trusted(page: &'a mut BlockBytes) -> Self {
        Self { page }
    }

    #[inline]
    fn get(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.page[at], self.page[at + 1]]))
    }

    #[inline]
    fn put(&mut self, at: usize, value: usize) {
        [self.page[at], self.page[at + 1]] = (value as u16).to_le_bytes();
    }

    /// The page as it can be read.
    pub fn page(&self) -> Page<'_> {
        Page::new(self.page)
    }

    /// How many line pointers there are.
    #[inline]
    pub fn line_pointers(&self) -> u16 {
        (self.get(LOWER).saturating_sub(PAGE_HEADER_BYTES) / LINE_POINTER_BYTES) as u16
    }

    /// Bytes that a further item may have, its line pointer left out (`PageGetFreeSpace`).
    #[inline]
    pub fn free_space(&self) -> usize {
        self.get(UPPER).saturating_sub(self.get(LOWER) + LINE_POINTER_BYTES)
    }

    /// The same for a heap, where a page holds 291 tuples at most (`PageGetHeapFreeSpace`).
    #[inline]
    pub fn heap_free_space(&self) -> usize {
        let is_full = usize::from(self.line_pointers()) >= MAX_HEAP_TUPLES_PER_PAGE;
        if is_full { 0 } else { self.free_space() }
    }

    /// Adds an item of `len` zero bytes: its number, and where to write it. `None` when it does not fit.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<(u16, &mut [u8])> {
        let (lower, upper) = (self.get(LOWER), self.get(UPPER));
        let start = upper.checked_sub(max_align(len))?;
        let lower_after = lower + LINE_POINTER_BYTES;
        if lower_after > start {
            return None;
        }
        let pointer = LinePointer::normal(start, len).0.to_le_bytes();
        self.page.get_mut(lower..lower_after)?.copy_from_slice(&pointer);
        self.put(LOWER, lower_after);
        self.put(UPPER, start);
        let number = self.line_pointers();
        Some((number, self.page.get_mut(start..start + len)?))
    }

    /// Adds an item; `None` when it does not fit.
    #[inline]
    pub fn add(&mut self, item: &[u8]) -> Option<u16> {
        let (number, room) = self.reserve(item.len())?;
        room.copy_from_slice(item);
        Some(number)
    }

    /// The special area.
    pub fn special(&mut self) -> &mut [u8] {
        let start = self.get(SPECIAL);
        assert!(start <= BLOCK_SIZE, "the special area of a page that was checked is within it");
        &mut self.page[start..]
    }

    /// Takes back that every tuple is visible to everybody, and notes that `xid` leaves something to prune
    /// (`PageSetPrunable`).
    pub fn set_prunable(&mut self, xid: TransactionId) {
        self.clear_all_visible();
        self.page[PRUNE_XID..PRUNE_XID + 4].copy_from_slice(&xid.0.to_le_bytes());
    }

    /// Takes back that every tuple is visible to everybody, as for a new one that is not committed.
    pub fn clear_all_visible(&mut self) {
        self.put(FLAGS, self.get(FLAGS) & !usize::from(PD_ALL_VISIBLE));
    }

    /// Marks every tuple as visible to everybody.
    pub fn set_all_visible(&mut self) {
        self.put(FLAGS, self.get(FLAGS) | usize::from(PD_ALL_VISIBLE));
    }
}

/// Sets the LSN of a page.
pub fn set_lsn(page: &mut BlockBytes, lsn: Lsn) {
    let (high, low) = ((lsn.0 >> 32) as u32, lsn.0 as u32);
    [page[0], page[1], page[2], page[3]] = high.to_le_bytes();
    [page[4], page[5], page[6], page[7]] = low.to_le_bytes();
}

/// Sets the checksum that a page has as block `block` of its fork. The last thing to do with a page;
/// only for clusters with checksums.
pub fn set_checksum(page: &mut BlockBytes, block: BlockNumber) {
    let checksum = page_checksum(page, block);
    [page[CHECKSUM], page[CHECKSUM + 1]] = checksum.to_le_bytes();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::stored_checksum;

    #[test]
    fn an_empty_page_has_all_its_room_free() {
        let mut bytes = [7; BLOCK_SIZE];
        let builder = PageBuilder::init(&mut bytes, 0);
        assert_eq!(builder.free_space(), 8192 - 24 - 4);
        assert_eq!(builder.line_pointers(), 0);
        let mut bytes = [7; BLOCK_SIZE];
        let mut builder = PageBuilder::init(&mut bytes, 13);
        assert_eq!(builder.special(), &[0; 16]);
        assert_eq!(builder.free_space(), 8192 - 24 - 4 - 16);
        assert!(Page::new(&bytes).check_header().is_ok());
    }

    #[test]
    fn a_heap_page_takes_291_tuples_at_most() {
        let mut bytes = [0; BLOCK_SIZE];
        let mut builder = PageBuilder::init(&mut bytes, 0);
        for _ in 0..291 {
            assert_eq!(builder.heap_free_space(), builder.free_space());
            builder.add(&[1; 8]).unwrap();
        }
        assert_eq!(builder.heap_free_space(), 0);
        assert!(builder.free_space() > 1000);
    }

    #[test]
    fn lsn_checksum_and_visibility_are_where_they_are_read() {
        let mut bytes = [0; BLOCK_SIZE];
        PageBuilder::init(&mut bytes, 0).set_all_visible();
        set_lsn(&mut bytes, Lsn(0x12_3456_789A));
        set_checksum(&mut bytes, BlockNumber(5));
        let page = Page::new(&bytes);
        assert!(page.is_all_visible());
        assert_eq!(page.header().lsn, Lsn(0x12_3456_789A));
        assert_eq!(stored_checksum(&bytes), page_checksum(&bytes, BlockNumber(5)));
    }

    #[test]
    fn a_page_never_initialised_is_not_gone_on_with() {
        assert!(PageBuilder::resume(&mut [0; BLOCK_SIZE]).is_err());
        let mut bytes = [0; BLOCK_SIZE];
        PageBuilder::init(&mut bytes, 0).add(b"one").unwrap();
        assert_eq!(PageBuilder::resume(&mut bytes).unwrap().add(b"two"), Some(2));
    }

    proptest! {
        #[test]
        fn what_was_added_is_read_back_and_what_does_not_fit_changes_nothing(
            items in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..900), 0..60),
            special in 0_usize..40,
        ) {
            let mut bytes = [0; BLOCK_SIZE];
            let mut builder = PageBuilder::init(&mut bytes, special);
            let mut added = Vec::new();
            for item in &items {
                let fits = max_align(item.len()) <= builder.free_space();
                let number = builder.add(item);
                prop_assert_eq!(number.is_some(), fits);
                if fits {
                    added.push(item);
                }
            }
            let page = Page::new(&bytes);
            page.check_header().unwrap();
            prop_assert_eq!(usize::from(page.line_pointer_count()), added.len());
            for (number, item) in (1..).zip(added) {
                let found = page.item(page.line_pointer(number).unwrap()).unwrap();
                prop_assert_eq!(found, &item[..]);
            }
        }
    }
}
