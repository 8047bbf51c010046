//! What a record does to a block, told from its headers: for whoever lists records by block before any page is
//! redone.
//!
//! The answer matters in two ways. Behind an image or an initialization nothing older is needed. And where the
//! server writes full-page images, the first record of a block after a checkpoint has one, or initializes the
//! block: a delta there means that WAL is missing, unless it is one of the few that the server never logs an
//! image with.
//!
//! Sources: `XLogRecordAssemble` in `src/backend/access/transam/xloginsert.c`; the callers that pass
//! `REGBUF_NO_IMAGE`: `log_heap_visible` in `src/backend/access/heap/heapam.c`, `src/backend/access/hash/hash.c`,
//! `hashpage.c` and `hashovfl.c`; PostgreSQL 14 to 18.

use pagemill_format::wal::{BlockTouch, RecordHeader, ResourceManager};

/// What a record does to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It brings the whole page, which replaces what was there.
    Image,
    /// It makes the page anew; what was there does not matter.
    Init,
    /// It changes the page that is there.
    Delta,
    /// The same, but the server never writes an image of this block with it, also where it is the first
    /// change after a checkpoint.
    DeltaWithoutImage,
    /// Nothing: the reference only tells of the block.
    Nothing,
}

/// XLOG records.
const XLOG_FPI_FOR_HINT: u8 = 0xA0;
/// Heap2 records: bits of the visibility map are set, block 1 is the heap's.
const HEAP2_VISIBLE: u8 = 0x40;
const VISIBLE_HEAP: u8 = 1;
/// The primary bucket page, which hash records name for its lock.
const HASH_MOVE_PAGE_CONTENTS: u8 = 0x70;
const HASH_SQUEEZE_PAGE: u8 = 0x80;
const HASH_DELETE: u8 = 0x90;

/// What a record with this header does to a block.
#[inline]
pub fn effect(header: &RecordHeader, block: &BlockTouch) -> Effect {
    if block.brings_image {
        return Effect::Image;
    }
    if block.will_init {
        return Effect::Init;
    }
    match (header.resource_manager, header.kind(), block.id) {
        (ResourceManager::XLOG, XLOG_FPI_FOR_HINT, _) => Effect::Nothing,
        (ResourceManager::HEAP2, HEAP2_VISIBLE, VISIBLE_HEAP) => Effect::DeltaWithoutImage,
        (ResourceManager::HASH, HASH_MOVE_PAGE_CONTENTS | HASH_SQUEEZE_PAGE | HASH_DELETE, 0) => {
            Effect::DeltaWithoutImage
        }
        _ => Effect::Delta,
    }
}
