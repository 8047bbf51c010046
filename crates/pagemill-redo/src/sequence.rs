//! Redo of sequences: the record brings the only tuple of the only page, which is made anew each time.
//!
//! Source: `seq_redo` in `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BlockBytes, Result};

use crate::change::{Change, PageLsn};
use crate::page_items::{Numbering, PageItems};

const LOG: u8 = 0x00;
/// What tells a sequence's page from others, in its special area.
const MAGIC: u32 = 0x1717;

/// Redoes a record of a sequence.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    if change.kind() != LOG {
        return Err(change.unexpected_kind());
    }
    if change.reference() != 0 {
        return Err(change.unexpected_reference());
    }
    let mut main = change.main();
    main.bytes(RelFileLocator::BYTES)?;
    let mut items = PageItems::init(page, size_of::<u32>());
    if let Some(magic) = items.special().first_chunk_mut() {
        *magic = MAGIC.to_le_bytes();
    }
    items.add(main.rest(), 1, Numbering::Reuse)?;
    Ok(PageLsn::Advance)
}
