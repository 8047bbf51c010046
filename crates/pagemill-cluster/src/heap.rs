//! A heap page as the rows on it that are visible.
//!
//! Every normal line pointer is one candidate: HOT chains need no following, because each
//! version has its own line pointer and visibility picks one; redirected, dead and unused line
//! pointers carry no tuple. On a page marked all-visible the check is skipped.
//!
//! Source: `heapgetpage` in `src/backend/access/heap/heapam.c`, PostgreSQL 14 to 18.

use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::HeapTuple;

use crate::error::Error;
use crate::visibility::{TransactionLog, is_visible};

/// Why a tuple cannot be shown: its bytes, or the log that should tell its fate.
#[derive(Debug)]
pub enum TupleFault {
    /// The line pointer or the tuple is damaged.
    Bytes(pagemill_format::Error),
    /// The status of its transactions cannot be read.
    Status(Error),
}

/// Hands every visible tuple of a page, or what is wrong with it, to `visit`, in line pointer
/// order.
///
/// # Errors
/// What `visit` returns ends the walk.
#[inline]
pub fn visit_tuples<'p, S: TransactionLog, E>(
    page: Page<'p>,
    status: &mut S,
    visit: impl FnMut(u16, Result<HeapTuple<'p>, TupleFault>) -> Result<(), E>,
) -> Result<(), E> {
    visit_numbered(page, 1..=page.line_pointer_count(), status, visit)
}

/// As [`visit_tuples`], from the last line pointer to the first: the order of a backward scan.
///
/// # Errors
/// What `visit` returns ends the walk.
pub fn visit_tuples_backward<'p, S: TransactionLog, E>(
    page: Page<'p>,
    status: &mut S,
    visit: impl FnMut(u16, Result<HeapTuple<'p>, TupleFault>) -> Result<(), E>,
) -> Result<(), E> {
    visit_numbered(page, (1..=page.line_pointer_count()).rev(), status, visit)
}

#[inline]
fn visit_numbered<'p, S: TransactionLog, E>(
    page: Page<'p>,
    numbers: impl Iterator<Item = u16>,
    status: &mut S,
    mut visit: impl FnMut(u16, Result<HeapTuple<'p>, TupleFault>) -> Result<(), E>,
) -> Result<(), E> {
    let all_visible = page.is_all_visible();
    for number in numbers {
        let Some(lp) = page.line_pointer(number) else { break };
        if lp.state() != LinePointerState::Normal {
            continue;
        }
        let tuple = match page.item(lp).and_then(HeapTuple::parse) {
            Ok(tuple) => tuple,
            Err(error) => {
                visit(number, Err(TupleFault::Bytes(error)))?;
                continue;
            }
        };
        if all_visible {
            visit(number, Ok(tuple))?;
            continue;
        }
        match is_visible(tuple, status) {
            Ok(true) => visit(number, Ok(tuple))?,
            Ok(false) => {}
            Err(error) => visit(number, Err(TupleFault::Status(error)))?,
        }
    }
    Ok(())
}

/// Counts the visible tuples of a page; faults go to `fault`. On a page marked all-visible the
/// line pointers tell, and the tuples are not looked at.
///
/// # Errors
/// What `fault` returns ends the count.
#[inline]
pub fn count_tuples<S: TransactionLog, E>(
    page: Page<'_>,
    status: &mut S,
    mut fault: impl FnMut(u16, TupleFault) -> Result<(), E>,
) -> Result<u64, E> {
    if page.is_all_visible()
        && let Some(rows) = page.count_normal()
    {
        return Ok(rows.into());
    }
    let mut rows = 0;
    visit_tuples(page, status, |number, tuple| match tuple {
        Ok(_) => {
            rows += 1;
            Ok(())
        }
        Err(found) => fault(number, found),
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use pagemill_format::{BLOCK_SIZE, BlockBytes, MultiXactId, TransactionId};
    use proptest::prelude::*;

    use super::*;

    const UNUSED: u32 = 0;
    const NORMAL: u32 = 1;
    const REDIRECT: u32 = 2;
    const DEAD: u32 = 3;

    const COMMITTED: u32 = 10;
    const ABORTED: u32 = 11;
    const UNKNOWN: u32 = 12;
    const TUPLE_BYTES: usize = 32;

    struct Log;

    impl TransactionLog for Log {
        fn committed(&mut self, xid: TransactionId) -> crate::Result<bool> {
            match xid.0 {
                UNKNOWN => {
                    Err(Error::refused(crate::Refusal::NoFiles(pagemill_format::Oid(UNKNOWN))))
                }
                xid => Ok(xid == COMMITTED),
            }
        }

        fn updater(&mut self, multi: MultiXactId) -> crate::Result<Option<TransactionId>> {
            Ok(Some(TransactionId(multi.0)))
        }
    }

    /// A page of line pointers of these states, each with a tuple of this `xmin`.
    fn page(flags: u8, items: &[(u32, u32)]) -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        let (lower, upper) = (24 + 4 * items.len(), BLOCK_SIZE - TUPLE_BYTES * items.len());
        for (at, word) in [(12, lower), (14, upper), (16, BLOCK_SIZE), (18, 0x2004)] {
            page[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
        }
        page[10] = flags;
        for (n, (state, xmin)) in items.iter().enumerate() {
            let start = upper + n * TUPLE_BYTES;
            let pointer = start as u32 | state << 15 | (TUPLE_BYTES as u32) << 17;
            page[24 + 4 * n..28 + 4 * n].copy_from_slice(&pointer.to_le_bytes());
            page[start..start + 4].copy_from_slice(&xmin.to_le_bytes());
            // No deleter (HEAP_XMAX_INVALID); 24 bytes of header.
            page[start + 21..start + 23].copy_from_slice(&[8, 24]);
        }
        page
    }

    /// What `visit_tuples` makes of a page: line pointers, each with its `xmin` or its fault.
    fn visited(page: &BlockBytes) -> Vec<(u16, Result<u32, String>)> {
        let mut found = Vec::new();
        let visit = |number, tuple: Result<HeapTuple<'_>, TupleFault>| {
            let tuple = tuple.map(|tuple| tuple.xmin().0).map_err(|fault| match fault {
                TupleFault::Bytes(error) => format!("bytes: {error}"),
                TupleFault::Status(error) => format!("status: {error}"),
            });
            found.push((number, tuple));
            Ok::<(), ()>(())
        };
        visit_tuples(Page::new(page), &mut Log, visit).unwrap();
        found
    }

    #[test]
    fn redirected_dead_and_unused_line_pointers_carry_no_tuple() {
        let items = [UNUSED, NORMAL, REDIRECT, NORMAL, DEAD].map(|state| (state, COMMITTED));
        assert_eq!(visited(&page(0, &items)), [(2, Ok(COMMITTED)), (4, Ok(COMMITTED))]);
    }

    #[test]
    fn a_backward_walk_meets_the_same_from_the_other_end() {
        let items = [NORMAL, NORMAL, DEAD, NORMAL].map(|state| (state, COMMITTED));
        let mut numbers = Vec::new();
        let page = page(0, &items);
        visit_tuples_backward(Page::new(&page), &mut Log, |number, _| {
            numbers.push(number);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(numbers, [4, 2, 1]);
    }

    #[test]
    fn a_tuple_whose_inserter_did_not_commit_is_passed_over() {
        let page = page(0, &[(NORMAL, ABORTED), (NORMAL, COMMITTED)]);
        assert_eq!(visited(&page), [(2, Ok(COMMITTED))]);
    }

    #[test]
    fn on_a_page_marked_all_visible_no_transaction_is_asked_about() {
        const ALL_VISIBLE: u8 = 4;
        let page = page(ALL_VISIBLE, &[(NORMAL, ABORTED), (DEAD, COMMITTED), (NORMAL, UNKNOWN)]);
        assert_eq!(visited(&page), [(1, Ok(ABORTED)), (3, Ok(UNKNOWN))]);
    }

    #[test]
    fn faults_are_told_apart_and_do_not_end_the_walk() {
        let mut page = page(0, &[(NORMAL, COMMITTED), (NORMAL, UNKNOWN), (NORMAL, COMMITTED)]);
        page[BLOCK_SIZE - 3 * TUPLE_BYTES + 22] = 23;
        let found = visited(&page);
        let [(1, Err(bytes)), (2, Err(status)), (3, Ok(COMMITTED))] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(bytes.starts_with("bytes: corrupt tuple") && status.starts_with("status: "));
    }

    #[test]
    fn counting_hands_faults_on_and_counts_the_rest() {
        let page = page(0, &[(NORMAL, COMMITTED), (NORMAL, UNKNOWN), (NORMAL, COMMITTED)]);
        let mut faults = Vec::new();
        let count = count_tuples(Page::new(&page), &mut Log, |number, _| {
            faults.push(number);
            Ok::<(), ()>(())
        });
        assert_eq!((count, faults), (Ok(2), vec![2]));
        assert_eq!(count_tuples(Page::new(&page), &mut Log, |number, _| Err(number)), Err(2));
    }

    #[test]
    fn a_page_never_written_has_no_tuples() {
        assert_eq!(visited(&[0; BLOCK_SIZE]), []);
    }

    proptest! {
        #[test]
        fn pages_of_any_bytes_are_walked_in_order(
            start in prop::collection::vec(any::<u8>(), 64), fill: u8, sound_header: bool,
        ) {
            let mut page = [fill; BLOCK_SIZE];
            page[..64].copy_from_slice(&start);
            if sound_header {
                page[10..20].copy_from_slice(&[0, 0, 64, 0, 64, 0, 0, 32, 4, 32]);
            }
            let found = visited(&page);
            prop_assert!(found.is_sorted_by(|one, next| one.0 < next.0));
            prop_assert!(found.iter().all(|(number, _)| (1..=2042).contains(number)));
        }
    }
}
