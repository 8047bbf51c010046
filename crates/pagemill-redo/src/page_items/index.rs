//! Items of an index's page removed and replaced. Which order the rest lies in afterwards depends on how many are
//! removed at once, as it does in a server.
//!
//! Sources: `PageIndexTupleDelete`, `PageIndexMultiDelete`, `PageIndexTupleDeleteNoCompact` and
//! `PageIndexTupleOverwrite` in `src/backend/storage/page/bufpage.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use pagemill_format::page::{LINE_POINTER_BYTES, LinePointer};
use pagemill_format::page_builder::max_align;
use pagemill_format::{Error, Result};

use super::{LOWER, PageItems, UNUSED, UPPER, bad_item, line_pointer_start, no_line_pointer};

impl PageItems<'_> {
    /// Removes an item of an index and its number; those behind get lower numbers (`PageIndexTupleDelete`).
    pub(crate) fn delete(&mut self, number: u16) -> Result<()> {
        let span = self.span(number)?;
        let (count, from) = (self.count(), line_pointer_start(number));
        self.bytes.copy_within(from + LINE_POINTER_BYTES..line_pointer_start(count + 1), from);
        self.put(LOWER, self.lower().saturating_sub(LINE_POINTER_BYTES));
        self.resize_item(span, 0)
    }

    /// Removes an item of an index; the others keep their numbers, and its own is free, or gone if it was the
    /// last (`PageIndexTupleDeleteNoCompact`).
    pub(crate) fn delete_in_place(&mut self, number: u16) -> Result<()> {
        let span = self.span(number)?;
        if number < self.count() {
            self.put_line_pointer(number, UNUSED);
        } else {
            self.put(LOWER, self.lower().saturating_sub(LINE_POINTER_BYTES));
        }
        self.resize_item(span, 0)
    }

    /// Removes items of an index, their numbers ascending (`PageIndexMultiDelete`): up to two of them one by
    /// one, which keeps the order the rest lies in; more by laying the rest down anew.
    pub(crate) fn delete_all(&mut self, numbers: &[u16]) -> Result<()> {
        if numbers.len() <= 2 {
            return numbers.iter().rev().try_for_each(|number| self.delete(*number));
        }
        let (mut wanted, mut kept) = (numbers.iter().peekable(), Vec::new());
        for number in 1..=self.count() {
            self.span(number)?;
            if wanted.next_if_eq(&&number).is_none() {
                kept.push((kept.len() as u16 + 1, self.line_pointer(number)?));
            }
        }
        if let Some(number) = wanted.next() {
            return Err(no_line_pointer(*number, self.count()));
        }
        for (number, pointer) in &kept {
            self.put_line_pointer(*number, *pointer);
        }
        self.cut_line_pointers(kept.len() as u16);
        self.compactify(kept.len() as u16, Some(*self.bytes))
    }

    /// Puts another item in the place of one, with the same number and state (`PageIndexTupleOverwrite`).
    pub(crate) fn overwrite(&mut self, number: u16, item: &[u8]) -> Result<()> {
        let (span, state) = (self.span(number)?, self.line_pointer(number)?.0 & 3 << 15);
        let (old, new) = (max_align(span.len()), max_align(item.len()));
        if item.is_empty() || new > old + (self.upper() - self.lower()) {
            let what = format!("does not fit with its {} bytes", item.len());
            return Err(bad_item(number, what));
        }
        // Where the item ends stays, so it begins where its new length says.
        let start = span.start + old - new;
        self.resize_item(span, new)?;
        let pointer = LinePointer::normal(start, item.len()).0 & !(3 << 15) | state;
        self.put_line_pointer(number, LinePointer(pointer));
        self.bytes[start..start + item.len()].copy_from_slice(item);
        Ok(())
    }

    /// Gives an item another aligned size, from which its beginning follows: what lies below it moves, and
    /// line pointers with it.
    fn resize_item(&mut self, span: Range<usize>, new: usize) -> Result<()> {
        let (upper, old) = (self.upper(), max_align(span.len()));
        let upper_after = (upper + old).checked_sub(new).filter(|after| *after >= self.lower());
        // An item that ends off the alignment right before the special area would move beyond it.
        let fits = span.start + old <= self.special_start();
        let Some(upper_after) = upper_after.filter(|_| fits) else {
            return Err(Error::corrupt("page", span.start, "an item cannot be moved"));
        };
        self.bytes.copy_within(upper..span.start, upper_after);
        self.put(UPPER, upper_after);
        for number in 1..=self.count() {
            let pointer = self.line_pointer(number)?;
            if !pointer.is_empty() && pointer.offset() <= span.start {
                let moved = (pointer.offset() + old).saturating_sub(new) as u32 & 0x7FFF;
                self.put_line_pointer(number, LinePointer(pointer.0 & !0x7FFF | moved));
            }
        }
        Ok(())
    }
}
