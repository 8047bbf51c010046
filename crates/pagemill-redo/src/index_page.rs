//! What the pages and records of all index managers have in common: a special area of a size that tells whose
//! page it is, numbers at fixed places, and tuples behind one another that say their own size.
//!
//! Invariant: no place is read or written that does not lie within the bytes given.
//!
//! Sources: `src/include/access/itup.h`, `src/include/storage/{bufpage,itemptr,block}.h`, PostgreSQL 14 to 18.

use pagemill_format::page_builder::max_align;
use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, BlockNumber, Error, Result};

use crate::page_items::PageItems;

/// Where the contents of a page without line pointers begin (`PageGetContents`).
pub(crate) const CONTENTS: usize = 24;
/// Where the header says how far the contents reach (`pd_lower`).
const LOWER: usize = 12;
const UPPER: usize = 14;

/// Bytes of the header of an index tuple.
pub(crate) const TUPLE_HEADER_BYTES: usize = 8;
/// Bytes of a heap TID.
pub(crate) const TID_BYTES: usize = 6;
/// Where a tuple's size and flags are.
pub(crate) const TUPLE_INFO: usize = 6;
const TUPLE_SIZE_MASK: u16 = 0x1FFF;

/// A page that was initialized before, with a special area of this size.
pub(crate) fn open(page: &mut BlockBytes, special_bytes: usize) -> Result<PageItems<'_>> {
    let mut items = PageItems::open(page)?;
    let found = items.special().len();
    if found != special_bytes {
        let what = format!("{found} bytes, {special_bytes} expected");
        return Err(Error::corrupt("special area", 0, what));
    }
    Ok(items)
}

/// Says where the contents end of a page that has no line pointers (`pd_lower`), so that an image of it keeps them.
pub(crate) fn set_lower(page: &mut BlockBytes, lower: usize) -> Result<()> {
    let upper = usize::from(u16_at(page, UPPER)?);
    if lower > upper {
        let what = format!("contents up to {lower}, where tuples begin at {upper}");
        return Err(Error::corrupt("page header", LOWER, what));
    }
    put_u16(page, LOWER, lower as u16)
}

/// The number of 16 bits at this place.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| u16::from_le_bytes(*bytes)).ok_or_else(|| outside(at, bytes.len()))
}

/// The number of 32 bits at this place.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(|| outside(at, bytes.len()))
}

/// Writes bytes at this place.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Result<()> {
    let length = bytes.len();
    let to = bytes.get_mut(at..at.saturating_add(value.len()));
    to.ok_or_else(|| outside(at, length))?.copy_from_slice(value);
    Ok(())
}

/// Writes a number of 16 bits.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) -> Result<()> {
    put(bytes, at, &value.to_le_bytes())
}

/// Writes a number of 32 bits.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) -> Result<()> {
    put(bytes, at, &value.to_le_bytes())
}

/// The block number in a TID, whose upper half comes first.
pub(crate) fn tid_block(bytes: &[u8]) -> Result<BlockNumber> {
    let (high, low) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    Ok(BlockNumber(u32::from(high) << 16 | u32::from(low)))
}

/// A block number as it is stored in a TID.
pub(crate) fn tid_block_bytes(block: BlockNumber) -> [u8; 4] {
    block.0.rotate_left(16).to_le_bytes()
}

/// A TID as it is stored.
pub(crate) fn tid_bytes(block: BlockNumber, number: u16) -> [u8; TID_BYTES] {
    let ([a, b, c, d], [e, f]) = (tid_block_bytes(block), number.to_le_bytes());
    [a, b, c, d, e, f]
}

/// Bytes of an index tuple, as it says itself; at least its header.
pub(crate) fn tuple_size(tuple: &[u8]) -> Result<usize> {
    let size = usize::from(u16_at(tuple, TUPLE_INFO)? & TUPLE_SIZE_MASK);
    if size < TUPLE_HEADER_BYTES {
        let what = format!("a size of {size} bytes");
        return Err(Error::corrupt("index tuple", TUPLE_INFO, what));
    }
    Ok(size)
}

/// The next index tuple, without padding behind it.
pub(crate) fn next_tuple<'a>(data: &mut Reader<'a>) -> Result<&'a [u8]> {
    let size = tuple_size(data.clone().bytes(TUPLE_HEADER_BYTES)?)?;
    data.bytes(size)
}

/// The next index tuple with the padding to a multiple of 8 behind it.
pub(crate) fn next_aligned_tuple<'a>(data: &mut Reader<'a>) -> Result<&'a [u8]> {
    let size = tuple_size(data.clone().bytes(TUPLE_HEADER_BYTES)?)?;
    data.bytes(max_align(size))
}

/// So many numbers of 16 bits, as which line pointers are listed.
pub(crate) fn numbers(data: &mut Reader<'_>, count: usize) -> Result<Vec<u16>> {
    let bytes = data.bytes(count.saturating_mul(2))?;
    Ok(bytes.as_chunks().0.iter().map(|number| u16::from_le_bytes(*number)).collect())
}

/// All numbers of 16 bits that are left.
pub(crate) fn all_numbers(data: &mut Reader<'_>) -> Result<Vec<u16>> {
    numbers(data, data.remaining() / 2)
}

#[cold]
fn outside(at: usize, length: usize) -> Error {
    Error::corrupt("page", at, format!("a place outside of {length} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_number_in_a_tid_has_its_upper_half_first() {
        let bytes = tid_bytes(BlockNumber(0x0001_0002), 7);
        assert_eq!(bytes, [1, 0, 2, 0, 7, 0]);
        assert_eq!(tid_block(&bytes).unwrap(), BlockNumber(0x0001_0002));
    }

    #[test]
    fn a_tuple_that_says_less_than_its_header_is_an_error() {
        let mut data = Reader::new("test", &[0; 16]);
        assert!(next_tuple(&mut data).is_err());
        let tuple = [0, 0, 0, 0, 1, 0, 10, 0x20, 5, 5, 0, 0, 0, 0, 0, 0];
        assert_eq!(next_tuple(&mut Reader::new("test", &tuple)).unwrap().len(), 10);
        assert_eq!(next_aligned_tuple(&mut Reader::new("test", &tuple)).unwrap().len(), 16);
        assert!(next_aligned_tuple(&mut Reader::new("test", &tuple[..12])).is_err());
    }

    #[test]
    fn a_page_with_another_special_area_is_not_the_managers() {
        let mut page = [0; 8192];
        PageItems::init(&mut page, 16);
        assert!(open(&mut page, 16).is_ok());
        assert!(open(&mut page, 8).is_err());
        assert!(open(&mut [0; 8192], 16).is_err());
    }
}
