//! Pages of an SP-GiST index, and their tuples: leaf, inner and dead ones, which all say in their first two bits
//! which state they are in.
//!
//! Sources: `src/include/access/spgist_private.h`, `addOrReplaceTuple` in
//! `src/backend/access/spgist/spgxlog.c`, `spgUpdateNodeLink` and `spgPageIndexMultiDelete` in
//! `src/backend/access/spgist/spgdoinsert.c`, PostgreSQL 14 to 18.

use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, BlockNumber, Error, Result, TransactionId};

use crate::index_page::{self, put, put_u16, put_u32, tid_bytes, tuple_size, u16_at, u32_at};
use crate::page_items::{Numbering, PageItems};

/// Bytes of the special area: flags, redirections, placeholders, a number that tells the manager.
const SPECIAL_BYTES: usize = 8;
const FLAGS: usize = 0;
const REDIRECTIONS: usize = 2;
const PLACEHOLDERS: usize = 4;
const PAGE_ID: usize = 6;
const SPGIST_PAGE_ID: u16 = 0xFF82;
const LEAF: u16 = 1 << 2;
const NULLS: u16 = 1 << 3;

/// In the first word of a leaf or dead tuple: its state in 2 bits, its size in all others.
const STATE_MASK: u32 = 3;
const SIZE_SHIFT: u32 = 2;
/// Where a leaf tuple names the next of its chain, in 14 bits.
const NEXT: usize = 4;
const NEXT_MASK: u16 = 0x3FFF;
/// Where a dead tuple says where the tuple went, and by which transaction.
const POINTER: usize = 6;
const REDIRECTED_BY: usize = 12;
const DEAD_BYTES: usize = 16;

/// In the first word of an inner tuple: state, a flag, the number of nodes in 13 bits, the prefix's size in 16.
const NODES_SHIFT: u32 = 3;
const NODES_MASK: u32 = 0x1FFF;
const PREFIX_SHIFT: u32 = 16;
const INNER_SIZE: usize = 4;
const INNER_HEADER_BYTES: usize = 8;

/// States of a tuple that is no longer live.
pub(super) const REDIRECT: u32 = 1;
pub(super) const DEAD: u32 = 2;
pub(super) const PLACEHOLDER: u32 = 3;

/// What stays under the number of a tuple that went.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadTuple {
    pub(super) state: u32,
    /// For a redirection, where to: block and number; and the transaction that made it.
    pub(super) target: Option<(BlockNumber, u16, TransactionId)>,
}

impl DeadTuple {
    /// One that leads nowhere.
    pub(super) fn of(state: u32) -> Self {
        Self { state, target: None }
    }

    fn bytes(self) -> Result<[u8; DEAD_BYTES]> {
        let nowhere = (BlockNumber(u32::MAX), 0, TransactionId(0));
        let (block, number, xid) = self.target.unwrap_or(nowhere);
        let mut bytes = [0; DEAD_BYTES];
        put_u32(&mut bytes, 0, self.state | (DEAD_BYTES as u32) << SIZE_SHIFT)?;
        put(&mut bytes, POINTER, &tid_bytes(block, number))?;
        put_u32(&mut bytes, REDIRECTED_BY, xid.0)?;
        Ok(bytes)
    }
}

/// The next leaf tuple of a record.
pub(super) fn next_leaf<'a>(main: &mut Reader<'a>) -> Result<&'a [u8]> {
    let size = main.clone().u32()? >> SIZE_SHIFT;
    let least = POINTER + index_page::TID_BYTES;
    if (size as usize) < least {
        return Err(main.corrupt(format!("a leaf tuple of {size} bytes")));
    }
    main.bytes(size as usize)
}

/// The next inner tuple of a record.
pub(super) fn next_inner<'a>(main: &mut Reader<'a>) -> Result<&'a [u8]> {
    let size = usize::from(u16_at(main.clone().bytes(INNER_HEADER_BYTES)?, INNER_SIZE)?);
    if size < INNER_HEADER_BYTES {
        return Err(main.corrupt(format!("an inner tuple of {size} bytes")));
    }
    main.bytes(size)
}

/// A page whose tuples are changed.
pub(super) struct SpGistPage<'p> {
    items: PageItems<'p>,
}

impl<'p> SpGistPage<'p> {
    /// A page that there is.
    pub(super) fn open(page: &'p mut BlockBytes) -> Result<Self> {
        Ok(Self { items: index_page::open(page, SPECIAL_BYTES)? })
    }

    /// An empty page.
    pub(super) fn init(page: &'p mut BlockBytes, is_leaf: bool, nulls: bool) -> Result<Self> {
        let mut items = PageItems::init(page, SPECIAL_BYTES);
        let flags = if is_leaf { LEAF } else { 0 } | if nulls { NULLS } else { 0 };
        put_u16(items.special(), FLAGS, flags)?;
        put_u16(items.special(), PAGE_ID, SPGIST_PAGE_ID)?;
        Ok(Self { items })
    }

    pub(super) fn count(&self) -> u16 {
        self.items.count()
    }

    fn add_to(&mut self, counter: usize, change: i32) -> Result<()> {
        let before = u16_at(self.items.special(), counter)?;
        let after = u16::try_from(i32::from(before) + change);
        let after =
            after.map_err(|_| damaged(format!("{before} dead tuples, changed by {change}")))?;
        put_u16(self.items.special(), counter, after)
    }

    fn state(&self, number: u16) -> Result<u32> {
        Ok(u32_at(self.items.item(number)?, 0)? & STATE_MASK)
    }

    /// Adds a tuple under a number: the next one, or that of a placeholder.
    pub(super) fn add(&mut self, tuple: &[u8], number: u16) -> Result<()> {
        if number <= self.count() {
            if self.state(number)? != PLACEHOLDER {
                return Err(damaged(format!("tuple {number} is no placeholder")));
            }
            self.add_to(PLACEHOLDERS, -1)?;
            self.items.delete(number)?;
        }
        self.items.add(tuple, number, Numbering::Shift)
    }

    /// Puts a tuple in the place of another.
    pub(super) fn replace(&mut self, tuple: &[u8], number: u16) -> Result<()> {
        self.items.delete(number)?;
        self.items.add(tuple, number, Numbering::Shift)
    }

    /// Puts a dead tuple in the place of another.
    pub(super) fn replace_by_dead(&mut self, number: u16, dead: DeadTuple) -> Result<()> {
        self.replace(&dead.bytes()?, number)?;
        self.count_dead(dead.state)
    }

    fn count_dead(&mut self, state: u32) -> Result<()> {
        match state {
            REDIRECT => self.add_to(REDIRECTIONS, 1),
            PLACEHOLDER => self.add_to(PLACEHOLDERS, 1),
            _ => Ok(()),
        }
    }

    /// Puts dead tuples in the place of all these: `first` for the one that is listed first, `rest` for the others.
    pub(super) fn replace_all(
        &mut self,
        numbers: &[u16],
        first: DeadTuple,
        rest: DeadTuple,
    ) -> Result<()> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        // All are deleted before any is added, which decides how the page is laid out.
        self.items.delete_all(&sorted)?;
        for number in sorted {
            let dead = if Some(&number) == numbers.first() { first } else { rest };
            self.items.add(&dead.bytes()?, number, Numbering::Shift)?;
            self.count_dead(dead.state)?;
        }
        Ok(())
    }

    /// Deletes tuples and their numbers, which ascend.
    pub(super) fn delete_all(&mut self, numbers: &[u16]) -> Result<()> {
        self.items.delete_all(numbers)
    }

    /// Deletes the placeholders from this number on, which are the last tuples of the page.
    pub(super) fn cut_placeholders(&mut self, first: u16) -> Result<()> {
        let numbers: Vec<u16> = (first..=self.count()).collect();
        self.add_to(PLACEHOLDERS, -(numbers.len() as i32))?;
        self.items.delete_all(&numbers)
    }

    /// Exchanges what two numbers stand for.
    pub(super) fn exchange(&mut self, a: u16, b: u16) -> Result<()> {
        let (pointer_a, pointer_b) = (self.items.line_pointer(a)?, self.items.line_pointer(b)?);
        self.items.set_line_pointer(a, pointer_b)?;
        self.items.set_line_pointer(b, pointer_a)
    }

    /// A redirection becomes a placeholder; its transaction stays in it.
    pub(super) fn forget_redirection(&mut self, number: u16) -> Result<()> {
        let tuple = self.items.item_mut(number)?;
        let word = u32_at(tuple, 0)?;
        if word & STATE_MASK != REDIRECT {
            return Err(damaged(format!("tuple {number} is no redirection")));
        }
        put_u32(tuple, 0, word & !STATE_MASK | PLACEHOLDER)?;
        put(tuple, POINTER, &tid_bytes(BlockNumber(u32::MAX), 0))?;
        self.add_to(REDIRECTIONS, -1)?;
        self.add_to(PLACEHOLDERS, 1)
    }

    /// Names the next leaf tuple of the chain.
    pub(super) fn set_next(&mut self, number: u16, next: u16) -> Result<()> {
        let tuple = self.items.item_mut(number)?;
        let flags = u16_at(tuple, NEXT)? & !NEXT_MASK;
        put_u16(tuple, NEXT, flags | next & NEXT_MASK)
    }

    /// Makes a node of an inner tuple lead to a tuple.
    pub(super) fn set_link(
        &mut self,
        link: &super::Link,
        block: BlockNumber,
        number: u16,
    ) -> Result<()> {
        let tuple = self.items.item_mut(link.parent)?;
        let word = u32_at(tuple, 0)?;
        let nodes = word >> NODES_SHIFT & NODES_MASK;
        if u32::from(link.node) >= nodes {
            let what = format!("node {} of an inner tuple of {nodes} is wanted", link.node);
            return Err(damaged(what));
        }
        let mut at = INNER_HEADER_BYTES + (word >> PREFIX_SHIFT) as usize;
        for _ in 0..link.node {
            at += tuple_size(tuple.get(at..).unwrap_or_default())?;
        }
        put(tuple, at, &tid_bytes(block, number))
    }
}

#[cold]
fn damaged(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::corrupt("SP-GiST page", 0, what)
}
