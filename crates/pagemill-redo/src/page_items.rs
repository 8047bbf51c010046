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
        let mut kept = Vec::with_capacity(usize::from(self.count()));
        let (mut last_used, mut unused) = (0, 0);
        for number in 1..=self.count() {
            let pointer = self.line_pointer(number)?;
            if pointer.state() == LinePointerState::Unused {
                self.put_line_pointer(number, UNUSED);
                unused += 1;
                continue;
            }
            if !pointer.is_empty() {
                kept.push((number, pointer));
            }
            last_used = number;
        }
        self.compactify(&kept)?;
        if version >= PgVersion::V15 {
            unused -= self.count() - last_used;
            self.cut_line_pointers(last_used);
        }
        self.flag(HAS_FREE_LINES, unused > 0);
        Ok(())
    }

    /// Lays these items down from the special area on, in their order, and points the line pointers of these
    /// numbers to them (`compactify_tuples`).
    fn compactify(&mut self, kept: &[(u16, LinePointer)]) -> Result<()> {
        let (lower, special, before) = (self.lower(), self.special_start(), *self.bytes);
        let mut upper = special;
        for (number, pointer) in kept {
            let aligned = max_align(pointer.len());
            let from = Page::new(&before).item(*pointer).and_then(|_| {
                before
                    .get(pointer.offset()..pointer.offset() + aligned)
                    .ok_or_else(|| bad_item(*number, "ends beyond the page"))
            })?;
            let Some(start) = upper.checked_sub(aligned).filter(|start| *start >= lower) else {
                return Err(bad_item(*number, "does not fit: items lie over each other"));
            };
            self.bytes[start..upper].copy_from_slice(from);
            let moved = pointer.0 & !0x7FFF | start as u32;
            self.put_line_pointer(*number, LinePointer(moved));
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
