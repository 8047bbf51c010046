//! Compressed lists of heap TIDs.
//!
//! A list has its first TID, the number of bytes that follow, and the distances from one TID to the next, each in
//! as many bytes of 7 bits as it needs, the lowest first; a TID counts as a number with its line pointer in the
//! lowest 11 bits. A list fills an even number of bytes.
//!
//! Source: `src/backend/access/gin/ginpostinglist.c`, PostgreSQL 14 to 18.

use pagemill_format::{BLOCK_SIZE, BlockNumber, Error, Result};

use crate::index_page::{TID_BYTES, put, put_u16, tid_block, tid_bytes, u16_at};

/// Bytes before the distances: the first TID, and how many bytes they are.
const HEADER_BYTES: usize = TID_BYTES + 2;
/// Bits of a line pointer's number.
const LINE_POINTER_BITS: u32 = 11;
/// A distance has at most so many bytes.
const MAX_DISTANCE_BYTES: u32 = 7;

/// The list that these bytes begin with, the padding included.
pub(super) fn first_list(bytes: &[u8]) -> Result<&[u8]> {
    let distances = usize::from(u16_at(bytes, TID_BYTES)?);
    let length = HEADER_BYTES + distances.next_multiple_of(2);
    bytes.get(..length).ok_or_else(|| damaged(format!("its {length} bytes are not all there")))
}

/// TIDs as numbers, from the way they are stored without compression.
pub(super) fn tids(bytes: &[u8]) -> Result<Vec<u64>> {
    bytes.chunks_exact(TID_BYTES).map(tid_number).collect()
}

fn tid_number(tid: &[u8]) -> Result<u64> {
    let (block, line_pointer) = (tid_block(tid)?, u16_at(tid, 4)?);
    Ok(u64::from(block.0) << LINE_POINTER_BITS | u64::from(line_pointer))
}

fn stored(number: u64) -> [u8; TID_BYTES] {
    let line_pointer = number & ((1 << LINE_POINTER_BITS) - 1);
    tid_bytes(BlockNumber((number >> LINE_POINTER_BITS) as u32), line_pointer as u16)
}

/// The TIDs of a list.
pub(super) fn decode(list: &[u8]) -> Result<Vec<u64>> {
    let mut last = tid_number(list.get(..TID_BYTES).unwrap_or_default())?;
    let mut found = vec![last];
    let distances = usize::from(u16_at(list, TID_BYTES)?);
    let bytes = list.get(HEADER_BYTES..HEADER_BYTES + distances);
    let mut bytes = bytes.ok_or_else(|| damaged("it ends too early"))?.iter();
    while !bytes.as_slice().is_empty() {
        last = last.wrapping_add(distance(&mut bytes)?);
        found.push(last);
    }
    Ok(found)
}

fn distance(bytes: &mut std::slice::Iter<'_, u8>) -> Result<u64> {
    let mut value = 0;
    for place in 0..MAX_DISTANCE_BYTES {
        let byte = bytes.next().ok_or_else(|| damaged("it ends within a distance"))?;
        value |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(damaged("a distance of more than 7 bytes"))
}

/// Makes a list of TIDs, which ascend.
pub(super) fn encode(tids: &[u64]) -> Result<Vec<u8>> {
    let Some((first, rest)) = tids.split_first() else { return Ok(Vec::new()) };
    let mut list = vec![0; HEADER_BYTES];
    let mut last = *first;
    for tid in rest {
        let distance = tid.checked_sub(last).filter(|distance| *distance > 0);
        push_distance(&mut list, distance.ok_or_else(|| damaged("its TIDs do not ascend"))?);
        last = *tid;
    }
    let distances = list.len() - HEADER_BYTES;
    if list.len() > BLOCK_SIZE {
        return Err(damaged("it is longer than a page"));
    }
    put(&mut list, 0, &stored(*first))?;
    put_u16(&mut list, TID_BYTES, distances as u16)?;
    list.resize(HEADER_BYTES + distances.next_multiple_of(2), 0);
    Ok(list)
}

fn push_distance(list: &mut Vec<u8>, mut distance: u64) {
    while distance > 0x7F {
        list.push(0x80 | (distance & 0x7F) as u8);
        distance >>= 7;
    }
    list.push(distance as u8);
}

/// Both lists of TIDs in one, those in both once.
pub(super) fn merge(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut merged = [a, b].concat();
    merged.sort_unstable();
    merged.dedup();
    merged
}

#[cold]
fn damaged(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::corrupt("posting list", 0, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_take_as_many_bytes_as_they_need() {
        let tid = |block: u64, line_pointer: u64| block << 11 | line_pointer;
        let tids = [tid(1, 1), tid(1, 2), tid(1, 130), tid(70_000, 3)];
        let list = encode(&tids).unwrap();
        assert_eq!(list[..8], [0, 0, 1, 0, 1, 0, 7, 0]);
        assert_eq!(list[8..11], [1, 0x80, 1]);
        assert_eq!(list.len(), 16);
        assert_eq!(first_list(&list).unwrap().len(), 16);
        assert_eq!(decode(&list).unwrap(), tids);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(mut tids in prop::collection::vec(0_u64..1 << 43, 1..500)) {
            tids.sort_unstable();
            tids.dedup();
            let list = encode(&tids).unwrap();
            prop_assert_eq!(list.len() % 2, 0);
            prop_assert_eq!(decode(first_list(&list).unwrap()).unwrap(), tids);
        }

        #[test]
        fn any_bytes_are_a_list_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(list) = first_list(&bytes) {
                let _ = decode(list).map(|tids| encode(&tids));
            }
        }
    }
}
