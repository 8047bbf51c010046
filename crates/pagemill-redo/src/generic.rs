//! Generic records, which extensions write for their indexes: pieces of the page, byte by byte.
//!
//! The hole between line pointers and tuples is zeros afterwards, as the pieces leave it out.
//!
//! Source: `src/backend/access/transam/generic_xlog.c`, PostgreSQL 14 to 18.

use pagemill_format::page::Page;
use pagemill_format::{BlockBytes, Error, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::put;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    let mut data = change.data();
    while !data.is_empty() {
        let (at, length) = (usize::from(data.u16()?), usize::from(data.u16()?));
        put(page, at, data.bytes(length)?)?;
    }
    let header = Page::new(page).header();
    let hole = usize::from(header.lower)..usize::from(header.upper);
    let Some(hole) = page.get_mut(hole.clone()) else {
        let what = format!("lower {} and upper {} hold no hole", hole.start, hole.end);
        return Err(Error::corrupt("page header", 12, what));
    };
    hole.fill(0);
    Ok(PageLsn::Advance)
}
