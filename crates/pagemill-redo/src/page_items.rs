//! Items of a page added, removed, replaced and moved, as PostgreSQL's own page functions do it: where a tuple
//! comes to lie is part of what must agree with a server, since later records count on the space.
//!
//! Invariants: the header was sound when the page was opened, and stays so; whatever the line pointers say, no
//! byte outside of `upper..special` is taken for an item, and nothing panics.
//!
//! Sources: `PageAddItemExtended`, `PageRepairFragmentation`, `compactify_tuples` and
//! `PageTruncateLinePointerArray` in `src/backend/storage/page/bufpage.c`, PostgreSQL 14 to 18.

mod index;

use pagemill_format::page::{
    LINE_POINTER_BYTES, LinePointer, LinePointerState, MAX_HEAP_TUPLES_PER_PAGE, PAGE_HEADER_BYTES,
    Page,
};
use pagemill_format::page_builder::{PageBuilder, max_align};
use pagemill_format::{BLOCK_SIZE, BlockBytes, Error, PgVersion, Result};

const FLAGS: usize = 10;
const LOWER: usize = 12;
const UPPER: usize = 14;
const SPECIAL: usize = 16;
const PRUNE_XID: usize = 20;

/// `PD_HAS_FREE_LINES`: there are line pointers without use among those in use.
const HAS_FREE_LINES: u16 = 0x0001;
/// `PD_ALL_VISIBLE`.
const ALL_VISIBLE: u16 = 0x0004;

/// How an item gets its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// In a heap: the line pointer is not in use, or the next one.
    Heap,
    /// In an index: the line pointers from there on move up by one.
    Shift,
    /// In an index: the line pointer is not in use, or the next one (BRIN, SP-GiST).
    Reuse,
}

/// A page whose items are changed.
#[derive(Debug)]
pub(crate) struct PageItems<'p> {
    bytes: &'p mut BlockBytes,
}

impl<'p> PageItems<'p> {
    /// A page that was initialized before.
    pub(crate) fn open(bytes: &'p mut BlockBytes) -> Result<Self> {
        PageBuilder::resume(bytes)?;
        Ok(Self { bytes })
    }

    /// Makes the page empty, with a special area of so many bytes (`PageInit`).
    pub(crate) fn init(bytes: &'p mut BlockBytes, special_bytes: usize) -> Self {
        PageBuilder::init(bytes, special_bytes);
        Self { bytes }
    }

    /// The page as it can be read.
    pub(crate) fn page(&self) -> Page<'_> {
        Page::new(self.bytes)
    }

    fn get(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn put(&mut self, at: usize, value: usize) {
        [self.bytes[at], self.bytes[at + 1]] = (value as u16).to_le_bytes();
    }

    /// Where the line pointers end.
    pub(crate) fn lower(&self) -> usize {
        self.get(LOWER)
    }

    /// Where the tuples begin.
    pub(crate) fn upper(&self) -> usize {
        self.get(UPPER)
    }

    /// Where the tuples end.
    pub(crate) fn special_start(&self) -> usize {
        self.get(SPECIAL)
    }

    /// The special area.
    pub(crate) fn special(&mut self) -> &mut [u8] {
        let start = self.special_start().min(BLOCK_SIZE);
        &mut self.bytes[start..]
    }

    /// How many line pointers there are.
    pub(crate) fn count(&self) -> u16 {
        self.page().line_pointer_count()
    }

    fn flag(&mut self, flag: u16, is_set: bool) {
        let flags = self.get(FLAGS);
        let flag = usize::from(flag);
        self.put(FLAGS, if is_set { flags | flag } else { flags & !flag });
    }

    /// Every tuple is visible to everybody, or that is no longer promised.
    pub(crate) fn set_all_visible(&mut self, is_set: bool) {
        self.flag(ALL_VISIBLE, is_set);
    }

    /// Notes that a transaction leaves something to prune, unless an older one did (`PageSetPrunable`).
    pub(crate) fn set_prunable(&mut self, xid: pagemill_format::TransactionId) {
        let known = pagemill_format::TransactionId(self.page().header().prune_xid);
        if known.0 == 0 || xid.precedes(known) {
            self.bytes[PRUNE_XID..PRUNE_XID + 4].copy_from_slice(&xid.0.to_le_bytes());
        }
    }

    /// The line pointer of this number.
    pub(crate) fn line_pointer(&self, number: u16) -> Result<LinePointer> {
        let found = self.page().line_pointer(number);
        found.ok_or_else(|| no_line_pointer(number, self.count()))
    }

    /// One of the first [`count`](Self::count) line pointers.
    #[inline]
    fn counted_line_pointer(&self, number: u16) -> LinePointer {
        let from = self.bytes.get(line_pointer_start(number)..);
        let found = from.and_then(|from| from.first_chunk());
        found.map_or(UNUSED, |bytes| LinePointer(u32::from_le_bytes(*bytes)))
    }

    /// Overwrites a line pointer that there is.
    pub(crate) fn set_line_pointer(&mut self, number: u16, pointer: LinePointer) -> Result<()> {
        self.line_pointer(number)?;
        self.put_line_pointer(number, pointer);
        Ok(())
    }

    /// Writes a line pointer below `upper`; any other is left out, and none is written by the callers here.
    fn put_line_pointer(&mut self, number: u16, pointer: LinePointer) {
        let at = line_pointer_start(number);
        if let Some(to) = self.bytes.get_mut(at..at + LINE_POINTER_BYTES) {
            to.copy_from_slice(&pointer.0.to_le_bytes());
        }
    }

    /// Where the bytes of an item lie that has storage, whatever the state of its line pointer.
    fn span(&self, number: u16) -> Result<std::ops::Range<usize>> {
        let pointer = self.line_pointer(number)?;
        if pointer.is_empty() {
            return Err(bad_item(number, "has no storage"));
        }
        self.page().item(pointer)?;
        Ok(pointer.offset()..pointer.offset() + pointer.len())
    }

    /// The bytes of an item.
    pub(crate) fn item(&self, number: u16) -> Result<&[u8]> {
        let span = self.span(number)?;
        Ok(&self.bytes[span])
    }

    /// The bytes of an item, to be changed.
    pub(crate) fn item_mut(&mut self, number: u16) -> Result<&mut [u8]> {
        let span = self.span(number)?;
        Ok(&mut self.bytes[span])
    }

    /// The bytes of a tuple, to be changed: its line pointer is a normal one.
    pub(crate) fn tuple_mut(&mut self, number: u16) -> Result<&mut [u8]> {
        match self.line_pointer(number)?.state() {
            LinePointerState::Normal => self.item_mut(number),
            state => Err(bad_item(number, format!("is no tuple but {state:?}"))),
        }
    }

    /// Adds an item under a number (`PageAddItemExtended`, which is always told the number in redo).
    pub(crate) fn add(&mut self, item: &[u8], number: u16, numbering: Numbering) -> Result<()> {
        self.reserve(item.len(), number, numbering)?.copy_from_slice(item);
        Ok(())
    }

    /// Adds an item of `len` bytes, which hold whatever lay there: where to write it.
    pub(crate) fn reserve(
        &mut self,
        len: usize,
        number: u16,
        numbering: Numbering,
    ) -> Result<&mut [u8]> {
        let (count, lower, upper) = (self.count(), self.lower(), self.upper());
        let next = count.saturating_add(1);
        let is_full = usize::from(number) > MAX_HEAP_TUPLES_PER_PAGE;
        if number == 0 || number > next || numbering == Numbering::Heap && is_full {
            return Err(no_line_pointer(number, count));
        }
        let grows = number == next || numbering == Numbering::Shift;
        if !grows && !is_free(self.line_pointer(number)?) {
            return Err(bad_item(number, "is in use already"));
        }
        let lower_after = if grows { lower + LINE_POINTER_BYTES } else { lower };
        let start = upper.checked_sub(max_align(len));
        let Some(start) = start.filter(|start| lower_after <= *start) else {
            let what = format!("does not fit with its {len} bytes");
            return Err(bad_item(number, what));
        };
        if grows && number < next {
            let from = line_pointer_start(number);
            self.bytes.copy_within(from..line_pointer_start(next), from + LINE_POINTER_BYTES);
        }
        self.put_line_pointer(number, LinePointer::normal(start, len));
        self.put(LOWER, lower_after);
        self.put(UPPER, start);
        Ok(&mut self.bytes[start..start + len])
    }

    /// Closes the gaps that pruning left between a heap's tuples, which come to lie in the order of their line
    /// pointers; from 15 on, line pointers without use at the end are cut off (`PageRepairFragmentation`).
    pub(crate) fn repair_fragmentation(&mut self, version: PgVersion) -> Result<()> {
        let count = self.count();
        let (mut last_used, mut unused) = (0, 0);
        let (mut lowest, mut is_in_order) = (self.special_start(), true);
        for number in 1..=count {
            let pointer = self.counted_line_pointer(number);
            if pointer.state() == LinePointerState::Unused {
                self.put_line_pointer(number, UNUSED);
                unused += 1;
                continue;
            }
            if !pointer.is_empty() {
                let end = pointer.offset() + max_align(pointer.len());
                is_in_order &= end <= lowest;
                lowest = pointer.offset();
            }
            last_used = number;
        }
        match is_in_order {
            true => self.compactify(last_used, None)?,
            false => self.compactify(last_used, Some(*self.bytes))?,
        }
        if version >= PgVersion::V15 {
            unused -= count - last_used;
            self.cut_line_pointers(last_used);
        }
        self.flag(HAS_FREE_LINES, unused > 0);
        Ok(())
    }

    /// Lays the items down from the special area on, in the order of their line pointers, of which those up to
    /// `last_used` count (`compactify_tuples`). Where they lie in that order already, from the end of the page to its
    /// beginning and not over each other, each is moved up over what is gone; otherwise they are taken from the page
    /// as it was `before`.
    fn compactify(&mut self, last_used: u16, before: Option<BlockBytes>) -> Result<()> {
        let (lower, special) = (self.lower(), self.special_start());
        let mut upper = special;
        for number in 1..=last_used {
            let pointer = self.counted_line_pointer(number);
            if pointer.is_empty() {
                continue;
            }
            let (from, aligned) = (pointer.offset(), max_align(pointer.len()));
            self.page().item(pointer)?;
            if from + aligned > BLOCK_SIZE {
                return Err(bad_item(number, "ends beyond the page"));
            }
            let Some(start) = upper.checked_sub(aligned).filter(|start| *start >= lower) else {
                return Err(bad_item(number, "does not fit: items lie over each other"));
            };
            match &before {
                _ if start == from => {}
                Some(before) => {
                    self.bytes[start..upper].copy_from_slice(&before[from..from + aligned]);
                }
                None => self.bytes.copy_within(from..from + aligned, start),
            }
            let moved = pointer.0 & !0x7FFF | start as u32;
            self.put_line_pointer(number, LinePointer(moved));
            upper = start;
        }
        self.put(UPPER, upper);
        Ok(())
    }

    fn cut_line_pointers(&mut self, count: u16) {
        self.put(LOWER, PAGE_HEADER_BYTES + usize::from(count) * LINE_POINTER_BYTES);
    }

    /// Cuts off line pointers without use at the end, but never the first of all; tuples stay where they are
    /// (`PageTruncateLinePointerArray`, of heaps).
    pub(crate) fn truncate_line_pointers(&mut self) {
        let is_unused = |page: &Self, number: u16| {
            page.line_pointer(number).is_ok_and(|p| p.state() == LinePointerState::Unused)
        };
        let mut count = self.count();
        while count > 1 && is_unused(self, count) {
            count -= 1;
        }
        if count < self.count() {
            self.cut_line_pointers(count);
        }
        let has_unused = (1..=count).any(|number| is_unused(self, number));
        self.flag(HAS_FREE_LINES, has_unused);
    }
}

/// A line pointer that is free for use.
const UNUSED: LinePointer = LinePointer(0);

fn is_free(pointer: LinePointer) -> bool {
    pointer.state() == LinePointerState::Unused && pointer.is_empty()
}

fn line_pointer_start(number: u16) -> usize {
    PAGE_HEADER_BYTES + usize::from(number.saturating_sub(1)) * LINE_POINTER_BYTES
}

#[cold]
fn no_line_pointer(number: u16, count: u16) -> Error {
    Error::corrupt("page", 0, format!("line pointer {number} is wanted, there are {count}"))
}

#[cold]
fn bad_item(number: u16, what: impl std::fmt::Display) -> Error {
    Error::corrupt("page", line_pointer_start(number), format!("item {number} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of tuples of different lengths, some of them gone, whose line pointers lead to them in this order.
    fn page_with_gaps(order: &[u16], gone: impl Fn(u16) -> bool) -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        let mut items = PageItems::init(&mut page, 0);
        for number in 1..=order.len() as u16 {
            let item =
                vec![order[usize::from(number) - 1] as u8; 30 + usize::from(number) * 7 % 40];
            items.add(&item, number, Numbering::Heap).unwrap();
        }
        let pointers: Vec<_> = order.iter().map(|n| items.line_pointer(*n).unwrap()).collect();
        for (number, pointer) in (1..).zip(pointers) {
            items.put_line_pointer(number, if gone(number) { UNUSED } else { pointer });
        }
        page
    }

    fn contents(page: &BlockBytes) -> Vec<Option<Vec<u8>>> {
        let view = Page::new(page);
        let pointers = (1..=view.line_pointer_count()).filter_map(|n| view.line_pointer(n));
        pointers.map(|p| (!p.is_empty()).then(|| view.item(p).unwrap().to_vec())).collect()
    }

    /// Both ways of closing the gaps make the same page, where the tuples lie in order; and where they do not, they come to.
    #[test]
    fn gaps_are_closed_in_place_as_they_are_from_a_copy() {
        let forward: Vec<u16> = (1..=100).collect();
        let shuffled: Vec<u16> = (0..100).map(|n| n * 37 % 100 + 1).collect();
        for every in 2..20 {
            for order in [&forward, &shuffled] {
                let before = page_with_gaps(order, |number| number % every == 0 || number > 95);
                let mut copied = before;
                PageItems::open(&mut copied).unwrap().compactify(95, Some(before)).unwrap();
                let mut page = before;
                PageItems::open(&mut page).unwrap().repair_fragmentation(PgVersion::V14).unwrap();
                assert_eq!(contents(&page), contents(&before));
                assert_eq!(contents(&copied), contents(&before));
                let view = Page::new(&page);
                assert_eq!(view.header().upper, Page::new(&copied).header().upper);
                let upper = usize::from(view.header().upper);
                assert_eq!(page[upper..], copied[upper..]);
                assert_eq!(page[PAGE_HEADER_BYTES..424], copied[PAGE_HEADER_BYTES..424]);
                let offsets: Vec<_> = (1..=95)
                    .filter_map(|n| view.line_pointer(n))
                    .filter(|pointer| !pointer.is_empty())
                    .map(LinePointer::offset)
                    .collect();
                assert!(offsets.is_sorted_by(|one, next| one > next), "{offsets:?}");
            }
        }
    }

    /// An item that ends beyond the special area, and items over each other, are never moved over others unseen.
    #[test]
    fn items_that_lie_over_each_other_are_refused_or_copied() {
        let mut page = page_with_gaps(&[1, 2, 3], |_| false);
        let first = Page::new(&page).line_pointer(1).unwrap();
        let mut items = PageItems::open(&mut page).unwrap();
        for number in 2..=3 {
            items.put_line_pointer(number, LinePointer::normal(first.offset(), 30));
        }
        items.repair_fragmentation(PgVersion::V15).unwrap();
        assert_eq!(items.item(3).unwrap(), [1; 30]);
        for number in 1..=3 {
            let whole = LinePointer::normal(items.upper(), BLOCK_SIZE - items.upper());
            items.put_line_pointer(number, whole);
        }
        for _ in 0..100 {
            let count = items.count() + 1;
            items.put_line_pointer(count, LinePointer::normal(items.upper(), 120));
            items.cut_line_pointers(count);
        }
        assert!(items.repair_fragmentation(PgVersion::V15).is_err());
    }
}
