//! The page: a 24-byte header, line pointers growing up, tuples growing down, and a special area.
//!
//! ```text
//! 0        24            lower         upper                special   8192
//! | header | line pointers | free space  | tuples               | special |
//! ```
//!
//! What must hold before anything inside a page is believed, and is checked by
//! [`Page::check_header`]: `24 <= lower <= upper <= special <= 8192`, special a multiple of 8,
//! size 8192 and layout version 4 in the last header word. A page of zeros is valid and empty.
//! What must hold for a line pointer is checked each time one is followed.
//!
//! Source: `src/include/storage/bufpage.h`, `src/include/storage/itemid.h`,
//! `PageIsVerifiedExtended` in `src/backend/storage/page/bufpage.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, Lsn};

/// Bytes of the page header before the first line pointer.
pub const PAGE_HEADER_BYTES: usize = 24;
/// Bytes of a line pointer.
pub const LINE_POINTER_BYTES: usize = 4;
/// Most line pointers a heap page can hold: each needs itself and a bare tuple header.
pub const MAX_HEAP_TUPLES_PER_PAGE: usize = (BLOCK_SIZE - PAGE_HEADER_BYTES) / (24 + 4);
/// The page layout version that PostgreSQL 8.3 and later write.
pub const PAGE_LAYOUT_VERSION: u8 = 4;

pub(crate) const PD_ALL_VISIBLE: u16 = 0x0004;
const PD_VALID_FLAG_BITS: u16 = 0x0007;
const HEADER: &str = "page header";

/// A borrowed page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a BlockBytes,
}

/// The fields of a page header as they lie on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// WAL position after the last change of the page.
    pub lsn: Lsn,
    /// Checksum, 0 where the cluster has none.
    pub checksum: u16,
    /// Flag bits (free line pointers, full, all visible).
    pub flags: u16,
    /// Offset of the end of the line pointers.
    pub lower: u16,
    /// Offset of the start of the tuples.
    pub upper: u16,
    /// Offset of the special area.
    pub special: u16,
    /// Page size in bytes, from the size-and-version word.
    pub size: u16,
    /// Layout version, from the same word.
    pub version: u8,
    /// Oldest transaction that may have left something to prune, or 0.
    pub prune_xid: u32,
}

/// The state of a line pointer (`LP_*` of `itemid.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePointerState {
    /// Free for use, no storage.
    Unused,
    /// Points to a tuple.
    Normal,
    /// Points to another line pointer: the first tuple of a HOT chain.
    Redirect,
    /// Dead: no tuple a query could want.
    Dead,
}

/// A line pointer: 15 bits of offset, 2 of state, 15 of length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePointer(pub u32);

impl LinePointer {
    /// A normal line pointer to `len` bytes at `offset`, both less than 2^15.
    #[inline]
    pub fn normal(offset: usize, len: usize) -> Self {
        Self(offset as u32 & 0x7FFF | 1 << 15 | (len as u32 & 0x7FFF) << 17)
    }

    /// Offset of the tuple in the page, or the target line pointer of a redirect.
    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & 0x7FFF) as usize
    }

    /// Bytes of the tuple.
    #[inline]
    pub fn len(self) -> usize {
        (self.0 >> 17) as usize
    }

    /// True when the line pointer has no storage.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The state bits.
    #[inline]
    pub fn state(self) -> LinePointerState {
        match (self.0 >> 15) & 3 {
            0 => LinePointerState::Unused,
            1 => LinePointerState::Normal,
            2 => LinePointerState::Redirect,
            _ => LinePointerState::Dead,
        }
    }
}

impl<'a> Page<'a> {
    /// A view of a block's bytes; nothing is checked yet.
    #[inline]
    pub fn new(bytes: &'a BlockBytes) -> Self {
        Self { bytes }
    }

    /// The bytes of the page.
    pub fn bytes(self) -> &'a BlockBytes {
        self.bytes
    }

    #[inline]
    fn u16_at(self, offset: usize) -> u16 {
        u16::from_le_bytes([self.bytes[offset], self.bytes[offset + 1]])
    }

    #[inline]
    fn u32_at(self, offset: usize) -> u32 {
        let b = self.bytes;
        u32::from_le_bytes([b[offset], b[offset + 1], b[offset + 2], b[offset + 3]])
    }

    /// The header's fields, believed or not.
    pub fn header(self) -> PageHeader {
        let size_version = self.u16_at(18);
        PageHeader {
            lsn: Lsn(u64::from(self.u32_at(0)) << 32 | u64::from(self.u32_at(4))),
            checksum: self.u16_at(8),
            flags: self.u16_at(10),
            lower: self.u16_at(12),
            upper: self.u16_at(14),
            special: self.u16_at(16),
            size: size_version & 0xFF00,
            version: (size_version & 0x00FF) as u8,
            prune_xid: self.u32_at(20),
        }
    }

    /// True for a page that was allocated and never initialised: `upper` is 0
    /// (`PageIsNew`). Whether the rest is zero too is checked by [`Page::check_header`].
    #[inline]
    pub fn is_new(self) -> bool {
        self.u16_at(14) == 0
    }

    /// The page-level promise that every tuple is visible to everybody.
    #[inline]
    pub fn is_all_visible(self) -> bool {
        self.u16_at(10) & PD_ALL_VISIBLE != 0
    }

    /// Checks the header; a new page must be zeros throughout.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] naming the first field that cannot be.
    #[inline]
    pub fn check_header(self) -> Result<()> {
        let (lower, upper, special) = (self.u16_at(12), self.u16_at(14), self.u16_at(16));
        let sound = self.u16_at(10) & !PD_VALID_FLAG_BITS == 0
            && usize::from(lower) >= PAGE_HEADER_BYTES
            && lower <= upper
            && upper <= special
            && usize::from(special) <= BLOCK_SIZE
            && special % 8 == 0
            && self.u16_at(18) == BLOCK_SIZE as u16 | u16::from(PAGE_LAYOUT_VERSION);
        if sound { Ok(()) } else { self.header_fault() }
    }

    #[cold]
    fn header_fault(self) -> Result<()> {
        let h = self.header();
        if h.upper == 0 {
            return match self.bytes.iter().position(|&b| b != 0) {
                None => Ok(()),
                Some(at) => Err(Error::corrupt(
                    HEADER,
                    at,
                    "an uninitialised page (upper 0) that is not all zeros",
                )),
            };
        }
        let fault = |offset, what: String| Err(Error::corrupt(HEADER, offset, what));
        if h.flags & !PD_VALID_FLAG_BITS != 0 {
            return fault(10, format!("flags {:#06x} has unknown bits", h.flags));
        }
        if usize::from(h.size) != BLOCK_SIZE || h.version != PAGE_LAYOUT_VERSION {
            let what = format!(
                "page size {} and layout version {}, expected {BLOCK_SIZE} and {PAGE_LAYOUT_VERSION}",
                h.size, h.version
            );
            return fault(18, what);
        }
        fault(
            12,
            format!(
                "lower {}, upper {}, special {} are not in the order {PAGE_HEADER_BYTES} <= lower \
                 <= upper <= special <= {BLOCK_SIZE}, special a multiple of 8",
                h.lower, h.upper, h.special
            ),
        )
    }

    /// How many line pointers lie between header and `lower` (0 for a new page). A `lower` past
    /// the page counts to the page's end.
    #[inline]
    pub fn line_pointer_count(self) -> u16 {
        let lower = usize::from(self.u16_at(12)).min(BLOCK_SIZE);
        (lower.saturating_sub(PAGE_HEADER_BYTES) / LINE_POINTER_BYTES) as u16
    }

    /// Line pointer `number`, counted from 1, or `None` past the last.
    #[inline]
    pub fn line_pointer(self, number: u16) -> Option<LinePointer> {
        if number == 0 || number > self.line_pointer_count() {
            return None;
        }
        let at = PAGE_HEADER_BYTES + (usize::from(number) - 1) * LINE_POINTER_BYTES;
        Some(LinePointer(self.u32_at(at)))
    }

    /// How many line pointers are normal, when every one of those points to where a tuple can be;
    /// `None` when one does not, which [`Page::item`] tells in detail. No tuple is looked at, so
    /// only the front of the page is touched.
    #[inline]
    pub fn count_normal(self) -> Option<u32> {
        let upper = u32::from(self.u16_at(14));
        let special = u32::from(self.u16_at(16)).min(BLOCK_SIZE as u32);
        let end = PAGE_HEADER_BYTES + usize::from(self.line_pointer_count()) * LINE_POINTER_BYTES;
        let pointers = self.bytes.get(PAGE_HEADER_BYTES..end)?.as_chunks::<LINE_POINTER_BYTES>().0;
        let (normal, bad) = if pointers.len() < FEW_LINE_POINTERS {
            tally(pointers, upper, special)
        } else {
            pulp::Arch::new().dispatch(|| tally(pointers, upper, special))
        };
        (bad == 0).then_some(normal)
    }

    /// The bytes a normal line pointer points to.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when they do not lie, aligned to 8, between `upper` and `special`.
    #[inline]
    pub fn item(self, lp: LinePointer) -> Result<&'a [u8]> {
        let (start, end) = (lp.offset(), lp.offset() + lp.len());
        let upper = usize::from(self.u16_at(14));
        let special = usize::from(self.u16_at(16)).min(BLOCK_SIZE);
        if start < upper || end > special || start % 8 != 0 {
            return Err(item_fault(lp, upper, special));
        }
        // start <= end holds, as len is not negative; end <= special <= BLOCK_SIZE was checked.
        Ok(&self.bytes[start..end])
    }

    /// The special area, empty for heap pages.
    pub fn special(self) -> &'a [u8] {
        let start = usize::from(self.u16_at(16)).min(BLOCK_SIZE);
        &self.bytes[start..]
    }
}

#[cold]
fn item_fault(lp: LinePointer, upper: usize, special: usize) -> Error {
    let what = format!(
        "offset {}, length {} does not lie within {upper}..{special} on a multiple of 8",
        lp.offset(),
        lp.len()
    );
    Error::corrupt("line pointer", lp.offset(), what)
}

/// Below so many line pointers wider registers gain nothing.
const FEW_LINE_POINTERS: usize = 32;

/// How many line pointers are normal, and whether one of those does not lie, aligned, between `upper` and
/// `special` (then not 0).
///
/// Inlined into every version `pulp` makes of its caller, and there compiled to that instruction set.
#[inline(always)]
fn tally(pointers: &[[u8; LINE_POINTER_BYTES]], upper: u32, special: u32) -> (u32, u32) {
    let (mut normal, mut bad) = (0, 0);
    for bytes in pointers {
        let word = u32::from_le_bytes(*bytes);
        let is_normal = u32::from((word >> 15) & 3 == 1);
        let (start, len) = (word & 0x7FFF, word >> 17);
        let lies_wrong =
            u32::from(start < upper) | u32::from(start + len > special) | u32::from(start & 7 != 0);
        normal += is_normal;
        bad |= is_normal & lies_wrong;
    }
    (normal, bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sound() -> BlockBytes {
        let mut b = [0u8; BLOCK_SIZE];
        b[12..14].copy_from_slice(&28u16.to_le_bytes());
        b[14..16].copy_from_slice(&8160u16.to_le_bytes());
        b[16..18].copy_from_slice(&8192u16.to_le_bytes());
        b[18..20].copy_from_slice(&0x2004u16.to_le_bytes());
        let lp = 8160u32 | 1 << 15 | 30 << 17;
        b[24..28].copy_from_slice(&lp.to_le_bytes());
        b
    }

    #[test]
    fn a_page_of_zeros_is_valid_and_empty() {
        let b = [0; BLOCK_SIZE];
        let page = Page::new(&b);
        assert!(page.check_header().is_ok() && page.is_new());
        assert_eq!(page.line_pointer_count(), 0);
    }

    #[test]
    fn a_new_page_with_anything_on_it_is_damage() {
        let mut b = [0; BLOCK_SIZE];
        b[5000] = 1;
        let message = Page::new(&b).check_header().unwrap_err().to_string();
        assert!(message.contains("not all zeros") && message.contains("5000"), "{message}");
    }

    #[test]
    fn a_line_pointer_leads_to_its_tuple() {
        let b = sound();
        let page = Page::new(&b);
        page.check_header().unwrap();
        let lp = page.line_pointer(1).unwrap();
        assert_eq!(lp.state(), LinePointerState::Normal);
        assert_eq!(page.item(lp).unwrap().len(), 30);
        assert_eq!(page.line_pointer(2), None);
        assert_eq!(page.line_pointer(0), None);
    }

    #[test]
    fn a_line_pointer_past_the_special_area_is_damage() {
        let mut b = sound();
        let lp = 8168u32 | 1 << 15 | 100 << 17;
        b[24..28].copy_from_slice(&lp.to_le_bytes());
        let page = Page::new(&b);
        assert!(page.item(page.line_pointer(1).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn counting_line_pointers_agrees_with_following_them(
            pointers in proptest::collection::vec(any::<u32>(), 0..20), sound_ones: bool,
        ) {
            let mut b = sound();
            let lower = (PAGE_HEADER_BYTES + pointers.len() * LINE_POINTER_BYTES) as u16;
            b[12..14].copy_from_slice(&lower.to_le_bytes());
            b[14..16].copy_from_slice(&1000u16.to_le_bytes());
            for (i, &pointer) in pointers.iter().enumerate() {
                let pointer = if sound_ones { pointer & 0x0018_9FF8 | 0x1000 } else { pointer };
                b[24 + 4 * i..28 + 4 * i].copy_from_slice(&pointer.to_le_bytes());
            }
            let page = Page::new(&b);
            let mut normal = Some(0);
            for number in 1..=page.line_pointer_count() {
                let lp = page.line_pointer(number).unwrap();
                if lp.state() == LinePointerState::Normal {
                    normal = page.item(lp).ok().and(normal).map(|n| n + 1);
                }
            }
            prop_assert_eq!(page.count_normal(), normal);
        }

        #[test]
        fn arbitrary_bytes_never_panic(seed in proptest::collection::vec(any::<u8>(), 64), fill: u8) {
            let mut b = [fill; BLOCK_SIZE];
            b[..64].copy_from_slice(&seed);
            let page = Page::new(&b);
            let _ = page.check_header();
            for n in 0..=page.line_pointer_count() {
                if let Some(lp) = page.line_pointer(n) {
                    let _ = page.item(lp);
                }
            }
            let _ = page.special();
        }
    }
}
