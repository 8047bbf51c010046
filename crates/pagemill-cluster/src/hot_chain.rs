//! From a TID of an index to the row it stands for: the visible member of a HOT chain.
//!
//! An index has one entry for all versions of a row that differ in no indexed column. The entry
//! leads to the *root* line pointer, and from there the versions follow each other on the page:
//!
//! ```text
//! entry ─► root: redirect ─► tuple (HOT updated) ─ t_ctid ─► tuple (heap only)
//!      or  root: tuple (HOT updated) ─ t_ctid ─► …    a link holds while xmax = the next xmin
//! ```
//!
//! Most one member is visible. A chain that ends short of a visible member stands for no row, as
//! after a delete or an aborted insert. What no server can have left is a fault: an entry that leads
//! to an unused line pointer, past the last one or into the middle of a chain; a redirect to
//! nothing; a chain that leaves the page or runs in a circle.
//!
//! Invariant: a chain is followed for at most as many steps as a page has room for line pointers.
//!
//! Source: `heap_hot_search_buffer` and `index_delete_check_htid` in
//! `src/backend/access/heap/heapam.c`, `HeapTupleHeaderIsHotUpdated` in
//! `src/include/access/htup_details.h`, PostgreSQL 14 to 18.

use pagemill_format::page::{LinePointer, LinePointerState, MAX_HEAP_TUPLES_PER_PAGE, Page};
use pagemill_format::tuple::{HeapTuple, infomask};
use pagemill_format::{BlockNumber, Error as FormatError, MultiXactId, TransactionId};

use crate::heap::TupleFault;
use crate::visibility::{TransactionLog, is_visible};

const HOT_CHAIN: &str = "HOT chain";
/// `HEAP_HOT_UPDATED` and `HEAP_ONLY_TUPLE` of `t_infomask2`.
const HOT_UPDATED: u16 = 0x4000;
const HEAP_ONLY: u16 = 0x8000;

/// Words of a bitmap with a bit for every line pointer a page can have, and more.
const WORDS: usize = 5;
const BITS: u16 = WORDS as u16 * 64;
const _: () = assert!((BITS as usize) > MAX_HEAP_TUPLES_PER_PAGE);

/// A member of a chain, or what is wrong with one, with its line pointer.
pub type Member<'p> = (u16, HeapTuple<'p>);

/// The visible member of the chain that starts at line pointer `root` of the heap block `block`.
///
/// # Errors
/// The line pointer at fault, and what is wrong there.
#[inline]
pub fn visible_member<'p>(
    page: Page<'p>,
    block: BlockNumber,
    root: u16,
    status: &mut impl TransactionLog,
) -> Result<Option<Member<'p>>, (u16, TupleFault)> {
    let Some(lp) = page.line_pointer(root) else {
        let count = page.line_pointer_count();
        return Err(fault(root, format!("an index entry leads here, past the last of {count}")));
    };
    let first = match lp.state() {
        LinePointerState::Normal => first_member(page, root, lp)?,
        LinePointerState::Dead => return Ok(None),
        LinePointerState::Unused => {
            return Err(fault(root, "an index entry leads to this line pointer, which is unused"));
        }
        LinePointerState::Redirect => redirected(page, root, lp)?,
    };
    follow(page, block, first, status)
}

/// The same as a query finds it: the server takes an entry that leads to no chain for one without a row.
///
/// # Errors
/// As [`visible_member`], for what the chain itself has wrong.
#[inline]
pub fn found_member<'p>(
    page: Page<'p>,
    block: BlockNumber,
    root: u16,
    status: &mut impl TransactionLog,
) -> Result<Option<Member<'p>>, (u16, TupleFault)> {
    match begins_chain(page, root) {
        true => visible_member(page, block, root, status),
        false => Ok(None),
    }
}

/// False where a line pointer is no root of a chain, as none may be that an entry leads to.
fn begins_chain(page: Page<'_>, root: u16) -> bool {
    let Some(lp) = page.line_pointer(root) else { return false };
    match lp.state() {
        LinePointerState::Unused | LinePointerState::Dead => false,
        LinePointerState::Redirect => {
            let target = page.line_pointer(lp.offset() as u16);
            target.is_some_and(|target| target.state() == LinePointerState::Normal)
        }
        // What cannot be read is damage, which is told elsewhere.
        LinePointerState::Normal => {
            tuple_at(page, root, lp).map_or(true, |tuple| tuple.infomask2() & HEAP_ONLY == 0)
        }
    }
}

/// The tuple at the root of a chain that was not pruned.
#[inline]
fn first_member<'p>(
    page: Page<'p>,
    root: u16,
    lp: LinePointer,
) -> Result<Member<'p>, (u16, TupleFault)> {
    let tuple = tuple_at(page, root, lp)?;
    if tuple.infomask2() & HEAP_ONLY != 0 {
        return Err(fault(root, "an index entry leads to this tuple, which is heap only"));
    }
    Ok((root, tuple))
}

/// The first tuple that is left of a pruned chain.
fn redirected<'p>(
    page: Page<'p>,
    root: u16,
    redirect: LinePointer,
) -> Result<Member<'p>, (u16, TupleFault)> {
    let target = redirect.offset() as u16;
    match page.line_pointer(target).filter(|lp| lp.state() == LinePointerState::Normal) {
        Some(lp) => Ok((target, tuple_at(page, target, lp)?)),
        None => {
            Err(fault(root, format!("redirected to line pointer {target}, which has no tuple")))
        }
    }
}

/// Follows the chain from its first tuple.
#[inline]
fn follow<'p>(
    page: Page<'p>,
    block: BlockNumber,
    first: Member<'p>,
    status: &mut impl TransactionLog,
) -> Result<Option<Member<'p>>, (u16, TupleFault)> {
    let (mut number, mut tuple) = first;
    let all_visible = page.is_all_visible();
    for _ in 0..MAX_HEAP_TUPLES_PER_PAGE {
        let unknown = |error| (number, TupleFault::Status(error));
        if all_visible || is_visible(tuple, status).map_err(unknown)? {
            return Ok(Some((number, tuple)));
        }
        if !is_hot_updated(tuple) {
            return Ok(None);
        }
        let next = tuple.ctid();
        if next.block != block {
            return Err(fault(number, format!("the chain goes on at {next}, on another page")));
        }
        // The next version may be gone: then the update that made it never committed.
        let there = page.line_pointer(next.line_pointer);
        let Some(lp) = there.filter(|lp| lp.state() == LinePointerState::Normal) else {
            return Ok(None);
        };
        let updater = updater(tuple, status).map_err(unknown)?;
        (number, tuple) = (next.line_pointer, tuple_at(page, next.line_pointer, lp)?);
        if updater != TransactionId::INVALID && updater != inserter(tuple) {
            return Ok(None);
        }
    }
    Err(fault(first.0, "the chain that starts here runs in a circle"))
}

fn tuple_at<'p>(
    page: Page<'p>,
    number: u16,
    lp: LinePointer,
) -> Result<HeapTuple<'p>, (u16, TupleFault)> {
    let tuple = page.item(lp).and_then(HeapTuple::parse);
    tuple.map_err(|error| (number, TupleFault::Bytes(error)))
}

fn is_hot_updated(tuple: HeapTuple<'_>) -> bool {
    let mask = tuple.infomask();
    let never_inserted = mask & infomask::XMIN_FROZEN == infomask::XMIN_INVALID;
    tuple.infomask2() & HOT_UPDATED != 0 && mask & infomask::XMAX_INVALID == 0 && !never_inserted
}

/// `HeapTupleHeaderGetUpdateXid`.
fn updater(tuple: HeapTuple<'_>, status: &mut impl TransactionLog) -> crate::Result<TransactionId> {
    use infomask::{XMAX_IS_MULTI, XMAX_LOCK_ONLY};
    if tuple.infomask() & (XMAX_IS_MULTI | XMAX_LOCK_ONLY) == XMAX_IS_MULTI {
        let updater = status.updater(MultiXactId(tuple.xmax()))?;
        return Ok(updater.unwrap_or(TransactionId::INVALID));
    }
    Ok(TransactionId(tuple.xmax()))
}

/// `HeapTupleHeaderGetXmin`.
fn inserter(tuple: HeapTuple<'_>) -> TransactionId {
    match tuple.infomask() & infomask::XMIN_FROZEN {
        infomask::XMIN_FROZEN => TransactionId::FROZEN,
        _ => tuple.xmin(),
    }
}

#[cold]
fn fault(number: u16, what: impl Into<std::borrow::Cow<'static, str>>) -> (u16, TupleFault) {
    (number, TupleFault::Bytes(FormatError::corrupt(HOT_CHAIN, usize::from(number), what)))
}

/// What an index entry finds at a line pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainVisibility {
    /// A visible row.
    Row,
    /// No row.
    Nothing,
    /// Damage, which [`visible_member`] tells in detail.
    Fault,
}

/// What index entries find on one heap page, worked out once for all its line pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageVisibility {
    rows: [u64; WORDS],
    sound: [u64; WORDS],
}

impl PageVisibility {
    /// Nothing but faults: what a page gives that cannot be read.
    pub const LOST: Self = Self { rows: [0; WORDS], sound: [0; WORDS] };

    /// Judges every line pointer of a page as the root of a chain.
    pub fn of(page: Page<'_>, block: BlockNumber, status: &mut impl TransactionLog) -> Self {
        let mut sight = Self::LOST;
        for root in 1..=page.line_pointer_count().min(BITS - 1) {
            let (word, bit) = (usize::from(root / 64), 1 << (root % 64));
            if let Ok(member) = visible_member(page, block, root, status) {
                sight.sound[word] |= bit;
                sight.rows[word] |= if member.is_some() { bit } else { 0 };
            }
        }
        sight
    }

    /// True when some line pointer is sound and leads to no row.
    pub fn has_nothing(&self) -> bool {
        self.sound.iter().zip(self.rows).any(|(sound, rows)| sound & !rows != 0)
    }

    /// What an entry finds at a line pointer.
    #[inline]
    pub fn at(&self, root: u16) -> ChainVisibility {
        let (word, bit) = (usize::from(root / 64), 1 << (root % 64));
        match (self.rows.get(word), self.sound.get(word)) {
            (Some(rows), _) if rows & bit != 0 => ChainVisibility::Row,
            (_, Some(sound)) if sound & bit != 0 => ChainVisibility::Nothing,
            _ => ChainVisibility::Fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use pagemill_format::{BLOCK_SIZE, BlockBytes};
    use proptest::prelude::*;

    use super::*;

    const BLOCK: BlockNumber = BlockNumber(7);
    const COMMITTED: u32 = 10;
    const LATER: u32 = 11;
    const ABORTED: u32 = 12;

    struct Log;

    impl TransactionLog for Log {
        fn committed(&mut self, xid: TransactionId) -> crate::Result<bool> {
            Ok(xid.0 == COMMITTED || xid.0 == LATER)
        }

        fn updater(&mut self, multi: MultiXactId) -> crate::Result<Option<TransactionId>> {
            Ok(Some(TransactionId(multi.0)))
        }
    }

    /// A line pointer of a made page.
    #[derive(Debug, Clone, Copy)]
    enum Item {
        Unused,
        Dead,
        Redirect(u16),
        Tuple { xmin: u32, xmax: u32, next: (u32, u16), flags: u16 },
    }

    fn tuple(xmin: u32, xmax: u32, next: u16, flags: u16) -> Item {
        Item::Tuple { xmin, xmax, next: (BLOCK.0, next), flags }
    }

    #[test]
    fn a_query_finds_no_row_where_an_entry_leads_to_no_chain() {
        let items = [
            Item::Unused,
            Item::Dead,
            Item::Redirect(1),
            Item::Redirect(40),
            tuple(COMMITTED, 0, 5, HEAP_ONLY),
            tuple(COMMITTED, 0, 6, 0),
            Item::Redirect(5),
        ];
        let bytes = page(&items);
        let found = |root| found_member(Page::new(&bytes), BLOCK, root, &mut Log);
        for root in [0, 1, 2, 3, 4, 5, 8, 900] {
            assert!(matches!(found(root), Ok(None)), "line pointer {root}");
        }
        for (root, member) in [(6, 6), (7, 5)] {
            let number = found(root).ok().flatten().map(|(number, _)| number);
            assert_eq!(number, Some(member));
        }
    }

    fn page(items: &[Item]) -> BlockBytes {
        const BYTES: usize = 32;
        let mut page = [0; BLOCK_SIZE];
        let (lower, upper) = (24 + 4 * items.len(), BLOCK_SIZE - BYTES * items.len());
        for (at, word) in [(12, lower), (14, upper), (16, BLOCK_SIZE), (18, 0x2004)] {
            page[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
        }
        for (n, item) in items.iter().enumerate() {
            let start = upper + n * BYTES;
            let pointer = match *item {
                Item::Unused => 0,
                Item::Dead => 3 << 15,
                Item::Redirect(to) => u32::from(to) | 2 << 15,
                Item::Tuple { .. } => start as u32 | 1 << 15 | (BYTES as u32) << 17,
            };
            page[24 + 4 * n..28 + 4 * n].copy_from_slice(&pointer.to_le_bytes());
            let Item::Tuple { xmin, xmax, next: (block, next), flags } = *item else { continue };
            page[start..start + 4].copy_from_slice(&xmin.to_le_bytes());
            page[start + 4..start + 8].copy_from_slice(&xmax.to_le_bytes());
            page[start + 14..start + 16].copy_from_slice(&(block as u16).to_le_bytes());
            page[start + 16..start + 18].copy_from_slice(&next.to_le_bytes());
            page[start + 18..start + 20].copy_from_slice(&flags.to_le_bytes());
            let mask: u16 = if xmax == 0 { infomask::XMAX_INVALID } else { 0 };
            page[start + 20..start + 22].copy_from_slice(&mask.to_le_bytes());
            page[start + 22] = 24;
        }
        page
    }

    fn found(items: &[Item], root: u16) -> Result<Option<u16>, String> {
        let page = page(items);
        let sight = PageVisibility::of(Page::new(&page), BLOCK, &mut Log).at(root);
        let found = visible_member(Page::new(&page), BLOCK, root, &mut Log);
        let found = found.map(|member| member.map(|(number, _)| number));
        let expected = match &found {
            Ok(Some(_)) => ChainVisibility::Row,
            Ok(None) => ChainVisibility::Nothing,
            Err(_) => ChainVisibility::Fault,
        };
        assert_eq!(sight, expected);
        found.map_err(|(number, fault)| format!("{number}: {fault:?}"))
    }

    #[test]
    fn an_updated_row_is_found_at_the_end_of_its_chain() {
        let chain = [
            tuple(COMMITTED, LATER, 2, HOT_UPDATED),
            tuple(LATER, ABORTED, 3, HOT_UPDATED | HEAP_ONLY),
            tuple(ABORTED, 0, 3, HEAP_ONLY),
        ];
        assert_eq!(found(&chain, 1), Ok(Some(2)));
    }

    #[test]
    fn a_redirect_leads_to_what_is_left_of_a_pruned_chain() {
        let items = [Item::Redirect(3), Item::Dead, tuple(COMMITTED, 0, 3, HEAP_ONLY)];
        assert_eq!(found(&items, 1), Ok(Some(3)));
        assert_eq!(found(&items, 2), Ok(None));
    }

    #[test]
    fn a_link_to_another_rows_version_is_none() {
        let items = [tuple(COMMITTED, LATER, 2, HOT_UPDATED), tuple(COMMITTED, 0, 2, HEAP_ONLY)];
        assert_eq!(found(&items, 1), Ok(None));
    }

    #[test]
    fn a_row_moved_to_another_page_is_not_followed() {
        assert_eq!(found(&[tuple(COMMITTED, LATER, 9, 0)], 1), Ok(None));
    }

    #[test]
    fn what_no_server_leaves_behind_is_a_fault() {
        let heap_only = tuple(COMMITTED, 0, 1, HEAP_ONLY);
        let away = Item::Tuple { xmin: COMMITTED, xmax: LATER, next: (8, 1), flags: HOT_UPDATED };
        for (items, what) in [
            (&[Item::Unused][..], "unused"),
            (&[], "past the last of 0"),
            (&[heap_only], "heap only"),
            (&[Item::Redirect(2), Item::Dead], "redirected to line pointer 2"),
            (&[away], "on another page"),
            (&[tuple(LATER, LATER, 1, HOT_UPDATED)], "in a circle"),
        ] {
            let fault = found(items, 1).unwrap_err();
            assert!(fault.contains(what), "{fault}");
        }
    }

    proptest! {
        #[test]
        fn chains_of_any_links_end(
            items in prop::collection::vec(
                prop_oneof![
                    Just(Item::Unused), Just(Item::Dead), (0u16..12).prop_map(Item::Redirect),
                    (8u32..14, prop_oneof![Just(0), 8u32..14], 0u16..12, any::<[bool; 2]>())
                        .prop_map(|(xmin, xmax, next, [hot, only])| {
                            let flags = if hot { HOT_UPDATED } else { 0 };
                            tuple(xmin, xmax, next, flags | if only { HEAP_ONLY } else { 0 })
                        }),
                ],
                0..10,
            ),
            root in 0u16..12,
        ) {
            let _ = found(&items, root);
        }

        #[test]
        fn pages_of_any_bytes_are_judged_without_panic(
            start in prop::collection::vec(any::<u8>(), 200), fill: u8, root: u16,
        ) {
            let mut page = [fill; BLOCK_SIZE];
            page[..200].copy_from_slice(&start);
            let _ = PageVisibility::of(Page::new(&page), BLOCK, &mut Log).at(root);
        }
    }
}
