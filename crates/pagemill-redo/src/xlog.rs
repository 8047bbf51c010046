//! Redo of the blocks of XLOG records. All they bring is images; one that is missing where a page got a hint
//! means that the server found none to be needed.
//!
//! Source: `xlog_redo` in `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18.

use pagemill_format::{BlockBytes, Result};

use crate::change::{Change, PageLsn};

const FPI_FOR_HINT: u8 = 0xA0;

/// Redoes a block of an XLOG record that has no image to be applied.
pub(crate) fn redo(_page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match change.kind() {
        FPI_FOR_HINT => Ok(PageLsn::Keep),
        _ => Err(change.corrupt("a full-page image is missing")),
    }
}
