//! What two sound states of a page may differ in: hints, which are set without WAL, and bytes that nobody reads.
//!
//! Must hold: whether a page is all-visible is blanked as the servers' own comparison blanks it, so whoever wants to
//! know that has to ask for it ([`is_all_visible`]).
//!
//! Sources: `src/backend/access/common/bufmask.c`, `heap_mask` in `src/backend/access/heap/heapam.c`
//! (`heapam_xlog.c` from 18 on), `seq_mask` in `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use crate::index_page_mask;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 8192;

/// A page.
pub type PageBytes = [u8; PAGE_BYTES];

pub(crate) const HEADER_BYTES: usize = 24;
const LSN: Range<usize> = 0..8;
const CHECKSUM: Range<usize> = 8..10;
const FLAGS: usize = 10;
pub(crate) const LOWER: usize = 12;
pub(crate) const UPPER: usize = 14;
pub(crate) const SPECIAL: usize = 16;
const PRUNE_XID: Range<usize> = 20..24;
/// `PD_ALL_VISIBLE`.
const ALL_VISIBLE: u16 = 1 << 2;

/// The states of line pointers.
const NORMAL: u8 = 1;

/// Places in a heap tuple's header.
const COMMAND: Range<usize> = 8..12;
const CTID: Range<usize> = 12..18;
const INFOMASK: usize = 20;
const XMIN_FROZEN: u16 = 0x0300;
const XMAX_COMMITTED: u16 = 0x0400;
const XMAX_INVALID: u16 = 0x0800;
/// `HEAP_XACT_MASK`: all of the transactions' bits.
const TRANSACTION_BITS: u16 = 0xFFF0;
/// What stands for the line pointer in the `ctid` of a tuple that may still be taken back.
const SPECULATIVE: u16 = 0xFFFE;

/// Who writes a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// A table, or what looks like one.
    Heap,
    /// A sequence.
    Sequence,
    /// An index of this kind.
    Btree,
    /// An index of this kind.
    Hash,
    /// An index of this kind.
    Gin,
    /// An index of this kind.
    Gist,
    /// An index of this kind.
    SpGist,
    /// An index of this kind.
    Brin,
    /// Some extension.
    Generic,
}

impl PageKind {
    /// The kind of a page in a main fork, by its special area. Those that no built-in manager writes are `Generic`.
    ///
    /// Sources: the page ids in `src/include/access/{nbtree,hash,gist_private,spgist_private,brin_page}.h`, `SEQ_MAGIC`
    /// in `src/backend/commands/sequence.c`.
    pub fn of(page: &PageBytes) -> Self {
        let special = usize::from(u16_at(page, SPECIAL));
        let id = u16_at(page, PAGE_BYTES - 2);
        match (PAGE_BYTES.saturating_sub(special), id) {
            (0, _) => Self::Heap,
            (8, 0xFF82) => Self::SpGist,
            (8, 0xF091..=0xF093) => Self::Brin,
            (8, _) if u16_at(page, special) == 0x1717 && u16_at(page, special + 2) == 0 => {
                Self::Sequence
            }
            (8, _) => Self::Gin,
            (16, 0xFF80) => Self::Hash,
            (16, 0xFF81) => Self::Gist,
            (16, _) => Self::Btree,
            _ => Self::Generic,
        }
    }
}

/// Whether all that is on a heap page is visible to all.
pub fn is_all_visible(page: &PageBytes) -> bool {
    u16_at(page, FLAGS) & ALL_VISIBLE != 0
}

/// The first byte that differs and counts, in words.
pub fn difference(
    ours: &PageBytes,
    theirs: &PageBytes,
    kind: PageKind,
    block: u32,
) -> Option<String> {
    let (mut a, mut b) = (*ours, *theirs);
    mask(&mut a, kind, block);
    mask(&mut b, kind, block);
    // Nearly always, and many times as fast as byte by byte in what is built for tests.
    if a == b {
        return None;
    }
    let at = a.iter().zip(&b).position(|(a, b)| a != b)?;
    let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    Some(format!(
        "byte {at} is {:02x}, the server has {:02x} ({differing} bytes differ); there, {}; here, {}",
        a[at],
        b[at],
        place(theirs, at),
        place(ours, at)
    ))
}

/// Blanks what does not count on a page of this kind.
pub fn mask(page: &mut PageBytes, kind: PageKind, block: u32) {
    page[LSN].fill(0);
    page[CHECKSUM].fill(0);
    if index_page_mask::has_unused_space(page, kind) {
        mask_unused_space(page);
    }
    match kind {
        PageKind::Heap => mask_heap(page, block),
        PageKind::Sequence | PageKind::Generic => {}
        _ => index_page_mask::mask(page, kind),
    }
}

pub(crate) fn u16_at(page: &PageBytes, at: usize) -> u16 {
    page.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// What lies between line pointers and tuples.
fn mask_unused_space(page: &mut PageBytes) {
    let (lower, upper) = (usize::from(u16_at(page, LOWER)), usize::from(u16_at(page, UPPER)));
    if lower <= upper && upper <= PAGE_BYTES {
        page[lower..upper].fill(0);
    }
}

/// Flags of the page header that are hints, all-visible among them, and the transaction to prune for.
pub(crate) fn mask_page_hints(page: &mut PageBytes) {
    page[FLAGS] = 0;
    page[PRUNE_XID].fill(0);
}

/// A line pointer, taken apart.
struct LinePointer {
    start: usize,
    state: u8,
    len: usize,
}

impl LinePointer {
    fn end(&self) -> usize {
        self.start + self.len
    }
}

/// Line pointers by their number, those without storage left out.
fn items(page: &PageBytes) -> Vec<(u16, LinePointer)> {
    let lower = usize::from(u16_at(page, LOWER)).min(PAGE_BYTES);
    let pointers = page[HEADER_BYTES.min(lower)..lower].chunks_exact(4).zip(1..);
    let taken_apart = pointers.map(|(bytes, number)| {
        let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let (start, len) = ((bits & 0x7FFF) as usize, (bits >> 17) as usize);
        (number, LinePointer { start, state: (bits >> 15) as u8 & 3, len })
    });
    let fits = |pointer: &LinePointer| pointer.end().next_multiple_of(8) <= PAGE_BYTES;
    taken_apart.filter(|(_, pointer)| pointer.len > 0 && fits(pointer)).collect()
}

fn mask_heap(page: &mut PageBytes, block: u32) {
    mask_page_hints(page);
    for (number, pointer) in items(page) {
        let (start, end) = (pointer.start, pointer.end());
        page[end..end.next_multiple_of(8)].fill(0);
        if pointer.state == NORMAL && pointer.len > INFOMASK + 2 {
            mask_tuple(&mut page[start..end], block, number);
        }
    }
}

fn mask_tuple(tuple: &mut [u8], block: u32, number: u16) {
    let mask = u16::from_le_bytes([tuple[INFOMASK], tuple[INFOMASK + 1]]);
    let hints = match mask & XMIN_FROZEN == XMIN_FROZEN {
        true => XMAX_INVALID | XMAX_COMMITTED,
        false => TRANSACTION_BITS,
    };
    tuple[INFOMASK..INFOMASK + 2].copy_from_slice(&(mask & !hints).to_le_bytes());
    tuple[COMMAND].fill(0);
    if u16::from_le_bytes([tuple[16], tuple[17]]) == SPECULATIVE {
        let words = [(block >> 16) as u16, block as u16, number];
        for (to, word) in tuple[CTID].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Where a byte of a page lies, for who has to find out why it differs.
fn place(page: &PageBytes, at: usize) -> String {
    if at < HEADER_BYTES {
        return "the page header".into();
    }
    if at < usize::from(u16_at(page, LOWER)) {
        return format!("line pointer {}", (at - HEADER_BYTES) / 4 + 1);
    }
    let special = usize::from(u16_at(page, SPECIAL));
    if at >= special {
        return format!("byte {} of the special area", at - special);
    }
    let items = items(page);
    let found = items.iter().find(|(_, item)| (item.start..item.end()).contains(&at));
    found.map_or("no item".into(), |(number, item)| {
        let LinePointer { start, state, len } = item;
        format!("byte {} of item {number} (state {state}, {len} bytes)", at - start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap page with one tuple of 32 bytes.
    fn heap_page() -> PageBytes {
        let mut page = [0; PAGE_BYTES];
        page[LOWER..LOWER + 2].copy_from_slice(&28u16.to_le_bytes());
        page[UPPER..UPPER + 2].copy_from_slice(&8160u16.to_le_bytes());
        page[SPECIAL..SPECIAL + 2].copy_from_slice(&8192u16.to_le_bytes());
        let pointer = 8160u32 | u32::from(NORMAL) << 15 | 30 << 17;
        page[24..28].copy_from_slice(&pointer.to_le_bytes());
        page
    }

    #[test]
    fn hints_and_unused_bytes_do_not_count_and_all_else_does() {
        let page = heap_page();
        assert_eq!(PageKind::of(&page), PageKind::Heap);
        let differs = |at: usize| {
            let mut other = page;
            other[at] ^= 0x04;
            difference(&page, &other, PageKind::Heap, 0).is_some()
        };
        // LSN, checksum, flags, the hole, a transaction's hints, the command, padding behind the tuple.
        for at in [0, 8, FLAGS, 100, 8160 + INFOMASK + 1, 8160 + 8, 8160 + 31] {
            assert!(!differs(at), "byte {at} counts");
        }
        // The line pointers' end, the inserter, the deleter, the infomask, data.
        for at in [LOWER, 8160, 8160 + 4, 8160 + INFOMASK, 8160 + 24] {
            assert!(differs(at), "byte {at} does not count");
        }
    }

    #[test]
    fn a_page_is_known_by_its_special_area() {
        let kind = |special: u16, id: u16| {
            let mut page = [0; PAGE_BYTES];
            page[SPECIAL..SPECIAL + 2].copy_from_slice(&special.to_le_bytes());
            page[PAGE_BYTES - 2..].copy_from_slice(&id.to_le_bytes());
            PageKind::of(&page)
        };
        assert_eq!(kind(8176, 3), PageKind::Btree);
        assert_eq!(kind(8176, 0xFF80), PageKind::Hash);
        assert_eq!(kind(8184, 0xFF82), PageKind::SpGist);
        assert_eq!(kind(8184, 0xF092), PageKind::Brin);
        assert_eq!(kind(8184, 2), PageKind::Gin);
        assert_eq!(kind(8000, 2), PageKind::Generic);
    }
}
