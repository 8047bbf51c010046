//! Posting lists: entries of a leaf page with several heap TIDs.
//!
//! Sources: `_bt_form_posting`, `_bt_update_posting` and `_bt_swap_posting` in
//! `src/backend/access/nbtree/nbtdedup.c`, PostgreSQL 14 to 18.

use pagemill_format::btree::IndexTuple;
use pagemill_format::page_builder::max_align;
use pagemill_format::{BlockNumber, Error, Result};

use crate::index_page::{TID_BYTES, TUPLE_INFO, put, put_u16, tid_bytes, u16_at};

const SIZE_MASK: u16 = 0x1FFF;
/// The TID of the header says where the list is, and how long.
const ALTERNATIVE_TID: u16 = 0x2000;
/// In the line pointer number of that TID, above the count: it is a list.
const IS_POSTING: u16 = 0x2000;
const MAX_TIDS: usize = 0x0FFF;

/// An entry taken apart: its key with the header, and its heap TIDs as they are stored.
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    pub(super) tids: &'a [u8],
}

impl<'a> Entry<'a> {
    /// An entry that fills these bytes.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let tuple = IndexTuple::of_bytes(bytes)?;
        if tuple.is_marked_pivot() {
            return Err(damaged("a pivot tuple among the entries of a leaf"));
        }
        let (key, list) = bytes.split_at_checked(tuple.key_end()).unwrap_or((bytes, &[]));
        let tids = if tuple.is_posting() {
            list.get(..tuple.heap_tids().len() * TID_BYTES)
        } else {
            bytes.get(..TID_BYTES)
        };
        let tids = tids.ok_or_else(|| damaged("its TIDs end behind it"))?;
        Ok(Self { key, tids })
    }

    /// An entry that has to be a posting list.
    fn posting(bytes: &'a [u8]) -> Result<Self> {
        let entry = Self::parse(bytes)?;
        if entry.key.len() == bytes.len() {
            return Err(damaged("no posting list, where one is changed"));
        }
        Ok(entry)
    }
}

/// Makes an entry of a key and its TIDs: a posting list, or, of one TID, a plain entry.
pub(super) fn form(key: &[u8], tids: &[u8]) -> Result<Vec<u8>> {
    let count = tids.len() / TID_BYTES;
    let is_list = count > 1;
    let size = if is_list { max_align(key.len() + tids.len()) } else { key.len() };
    if count == 0 || count > MAX_TIDS || size > usize::from(SIZE_MASK) {
        return Err(damaged(format!("{count} TIDs behind a key of {} bytes", key.len())));
    }
    let mut made = Vec::with_capacity(size);
    made.extend_from_slice(key);
    let flags = u16_at(key, TUPLE_INFO)? & !(SIZE_MASK | ALTERNATIVE_TID);
    if is_list {
        made.extend_from_slice(tids);
        made.resize(size, 0);
        let place = tid_bytes(BlockNumber(key.len() as u32), count as u16 | IS_POSTING);
        put(&mut made, 0, &place)?;
        put_u16(&mut made, TUPLE_INFO, flags | ALTERNATIVE_TID | size as u16)?;
    } else {
        put(&mut made, 0, tids)?;
        put_u16(&mut made, TUPLE_INFO, flags | size as u16)?;
    }
    Ok(made)
}

/// The entry without the TIDs at these places of its list, which ascend; at least one is left.
pub(super) fn without(bytes: &[u8], places: &[u16]) -> Result<Vec<u8>> {
    let entry = Entry::posting(bytes)?;
    let mut places = places.iter().map(|place| usize::from(*place)).peekable();
    let mut kept = Vec::with_capacity(entry.tids.len());
    for (place, tid) in entry.tids.chunks_exact(TID_BYTES).enumerate() {
        if places.next_if_eq(&place).is_none() {
            kept.extend_from_slice(tid);
        }
    }
    match places.next() {
        None => form(entry.key, &kept),
        Some(place) => Err(damaged(format!("its TID {place} is to go, which it does not have"))),
    }
}

/// Puts the TID of an entry into a list, at a place within it, and gives the list's last TID to the entry. The
/// list has as many as before.
pub(super) fn swap(entry: &mut [u8], list: &mut [u8], place: u16) -> Result<()> {
    let parsed = Entry::posting(list)?;
    let (start, bytes) = (parsed.key.len(), parsed.tids.len());
    let at = usize::from(place) * TID_BYTES;
    if at == 0 || at >= bytes {
        let count = bytes / TID_BYTES;
        return Err(damaged(format!("a list of {count} TIDs cannot be split at {place}")));
    }
    let new = entry.first_chunk_mut::<TID_BYTES>().ok_or_else(|| damaged("no room for a TID"))?;
    let tids = list.get_mut(start..start + bytes).unwrap_or_default();
    let last: [u8; TID_BYTES] = tids.last_chunk().copied().unwrap_or_default();
    tids.copy_within(at..bytes - TID_BYTES, at + TID_BYTES);
    put(tids, at, new)?;
    *new = last;
    Ok(())
}

#[cold]
fn damaged(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::corrupt("B-tree entry", 0, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of 8 bytes with its header; the TID of the header is that of an entry.
    fn key() -> Vec<u8> {
        let mut key = tid_bytes(BlockNumber(9), 9).to_vec();
        key.extend_from_slice(&16_u16.to_le_bytes());
        key.extend_from_slice(b"keykeyke");
        key
    }

    fn tids(numbers: &[u16]) -> Vec<u8> {
        numbers.iter().flat_map(|number| tid_bytes(BlockNumber(1), *number)).collect()
    }

    #[test]
    fn a_list_of_one_is_a_plain_entry() {
        let list = form(&key(), &tids(&[3, 5, 8])).unwrap();
        assert_eq!(list.len(), 16 + 24);
        let entry = Entry::parse(&list).unwrap();
        assert_eq!((entry.key.len(), entry.tids), (16, &tids(&[3, 5, 8])[..]));
        let one = without(&list, &[0, 2]).unwrap();
        assert_eq!(one.len(), 16);
        assert_eq!(Entry::parse(&one).unwrap().tids, tids(&[5]));
        assert_eq!(one[6..], key()[6..]);
    }

    #[test]
    fn a_tid_within_a_list_pushes_the_last_one_out() {
        let mut list = form(&key(), &tids(&[3, 5, 8])).unwrap();
        let mut entry = form(&key(), &tids(&[4])).unwrap();
        swap(&mut entry, &mut list, 1).unwrap();
        assert_eq!(Entry::parse(&list).unwrap().tids, tids(&[3, 4, 5]));
        assert_eq!(Entry::parse(&entry).unwrap().tids, tids(&[8]));
        for place in [0, 3, 4, u16::MAX] {
            assert!(swap(&mut entry, &mut list, place).is_err(), "{place}");
        }
    }

    #[test]
    fn all_tids_or_tids_that_are_not_there_cannot_go() {
        let list = form(&key(), &tids(&[3, 5, 8])).unwrap();
        assert!(without(&list, &[0, 1, 2]).is_err());
        assert!(without(&list, &[3]).is_err());
        assert!(without(&list, &[1, 0]).is_err());
        assert!(without(&key(), &[0]).is_err());
    }
}
