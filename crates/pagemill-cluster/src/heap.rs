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
    mut visit: impl FnMut(u16, Result<HeapTuple<'p>, TupleFault>) -> Result<(), E>,
) -> Result<(), E> {
    let all_visible = page.is_all_visible();
    for number in 1..=page.line_pointer_count() {
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

/// Counts the visible tuples of a page; faults go to `fault`.
///
/// # Errors
/// What `fault` returns ends the count.
#[inline]
pub fn count_tuples<S: TransactionLog, E>(
    page: Page<'_>,
    status: &mut S,
    mut fault: impl FnMut(u16, TupleFault) -> Result<(), E>,
) -> Result<u64, E> {
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
