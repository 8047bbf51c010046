//! What two sound states of a page may differ in: hints, which are set without WAL, and bytes that nobody reads.
//!
//! Sources: `src/backend/access/common/bufmask.c`, `heap_mask` in `src/backend/access/heap/heapam.c`
//! (`heapam_xlog.c` from 18 on), `seq_mask` in `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

#[path = "index_mask.rs"]
mod index_mask;

use std::ops::Range;

use pagemill_format::page::{LinePointer, LinePointerState, Page};
use pagemill_format::tuple::infomask;
use pagemill_format::wal::ResourceManager;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};

const LSN: Range<usize> = 0..8;
const CHECKSUM: Range<usize> = 8..10;
const FLAGS: usize = 10;
const PRUNE_XID: Range<usize> = 20..24;

/// Places in a heap tuple's header.
const COMMAND: Range<usize> = 8..12;
const CTID: Range<usize> = 12..18;
const INFOMASK: usize = 20;
/// `HEAP_XACT_MASK`: all of the transactions' bits.
const TRANSACTION_BITS: u16 = 0xFFF0;
/// What stands for the line pointer in the `ctid` of a tuple that may still be taken back.
const SPECULATIVE: u16 = 0xFFFE;

/// Blanks what does not count on a page that this manager writes.
pub(crate) fn mask(page: &mut BlockBytes, manager: ResourceManager, block: BlockNumber) {
    page[LSN].fill(0);
    page[CHECKSUM].fill(0);
    if index_mask::has_unused_space(page, manager) {
        mask_unused_space(page);
    }
    match manager {
        ResourceManager::HEAP | ResourceManager::HEAP2 => mask_heap(page, block),
        ResourceManager::SEQUENCE | ResourceManager::GENERIC => {}
        _ => index_mask::mask(page, manager),
    }
}

/// What lies between line pointers and tuples.
fn mask_unused_space(page: &mut BlockBytes) {
    let header = Page::new(page).header();
    let (lower, upper) = (usize::from(header.lower), usize::from(header.upper));
    if lower <= upper && upper <= BLOCK_SIZE {
        page[lower..upper].fill(0);
    }
}

/// Flags of the page header that are hints, all-visible among them, and the transaction to prune for.
pub(crate) fn mask_page_hints(page: &mut BlockBytes) {
    page[FLAGS] = 0;
    page[PRUNE_XID].fill(0);
}

fn mask_heap(page: &mut BlockBytes, block: BlockNumber) {
    mask_page_hints(page);
    for number in 1..=Page::new(page).line_pointer_count() {
        let Some(pointer) = Page::new(page).line_pointer(number) else { continue };
        if pointer.is_empty() {
            continue;
        }
        let (start, end) = (pointer.offset(), pointer.offset() + pointer.len());
        if end.next_multiple_of(8) > BLOCK_SIZE {
            continue;
        }
        page[end..end.next_multiple_of(8)].fill(0);
        if pointer.state() == LinePointerState::Normal && pointer.len() > INFOMASK + 2 {
            mask_tuple(&mut page[start..end], block, number);
        }
    }
}

fn mask_tuple(tuple: &mut [u8], block: BlockNumber, number: u16) {
    let mask = u16::from_le_bytes([tuple[INFOMASK], tuple[INFOMASK + 1]]);
    let is_frozen = mask & infomask::XMIN_FROZEN == infomask::XMIN_FROZEN;
    let hints = match is_frozen {
        true => infomask::XMAX_INVALID | infomask::XMAX_COMMITTED,
        false => TRANSACTION_BITS,
    };
    tuple[INFOMASK..INFOMASK + 2].copy_from_slice(&(mask & !hints).to_le_bytes());
    tuple[COMMAND].fill(0);
    if u16::from_le_bytes([tuple[16], tuple[17]]) == SPECULATIVE {
        let words = [(block.0 >> 16) as u16, block.0 as u16, number];
        for (to, word) in tuple[CTID].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Where a byte of a page lies, for who has to find out why it differs.
pub(crate) fn place(page: &BlockBytes, at: usize) -> String {
    let view = Page::new(page);
    let header = view.header();
    if at < 24 {
        return "the page header".into();
    }
    if at < usize::from(header.lower) {
        let number = (at - 24) / 4 + 1;
        let pointer = view.line_pointer(number as u16).unwrap_or(LinePointer(0));
        return format!(
            "line pointer {number}: {:?} {}+{}",
            pointer.state(),
            pointer.offset(),
            pointer.len()
        );
    }
    if at >= usize::from(header.special) {
        return format!("byte {} of the special area", at - usize::from(header.special));
    }
    for number in 1..=view.line_pointer_count() {
        let Some(pointer) = view.line_pointer(number).filter(|pointer| !pointer.is_empty()) else {
            continue;
        };
        if (pointer.offset()..pointer.offset() + pointer.len()).contains(&at) {
            let (state, len) = (pointer.state(), pointer.len());
            return format!(
                "byte {} of item {number} ({state:?}, {len} bytes)",
                at - pointer.offset()
            );
        }
    }
    "no item".into()
}
