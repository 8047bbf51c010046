//! The bytes of an `hstore`.
//!
//! ```text
//! count | flag 1<<31, u32 | ends of key, value, key, value …, u32 each | the texts, one after the other
//! ```
//!
//! An end counts from the first text; 1<<30 in that of a value says NULL, 1<<31 marks the first of all. Before PostgreSQL 9.0 there was
//! no flag, and a pair had the lengths of its key and value in 16 bits each, then the place of its key and whether its value is NULL
//! (the lowest bit). Values that were never written again since are still so; those with neither flag nor that layout are of a
//! prerelease of 9.0, which had the new layout without the flag.
//!
//! Invariant: any bytes are pairs or an error; what [`payload_of`] makes is what the server makes of the same pairs.
//! Source: `contrib/hstore/hstore.h`, `hstoreUpgrade` in `contrib/hstore/hstore_compat.c`, `hstorePairs` and `hstoreUniquePairs` in
//! `contrib/hstore/hstore_io.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::cmp::Ordering;

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use crate::extension::call::CallError;
use crate::extension::server_sort;

const HSTORE: &str = "hstore";
const NEW_VERSION: u32 = 1 << 31;
const COUNT: u32 = 0x0FFF_FFFF;
const IS_FIRST: u32 = 1 << 31;
const IS_NULL: u32 = 1 << 30;
const END: u32 = IS_NULL - 1;
/// Longer values than this have been examined for the old layout before they count as new.
const SURELY_NEW_BYTES: usize = 32768 - 4;
/// The most that the server allocates for a value.
const MAX_BYTES: usize = 0x3FFF_FFFF;

/// A key, and its value unless that is NULL.
pub type Pair<'v> = (&'v [u8], Option<&'v [u8]>);

/// The order of keys: shorter ones first, then by their bytes.
pub(super) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A value, its layout made out.
pub(super) struct Hstore<'v> {
    entries: Cow<'v, [[u8; 4]]>,
    texts: &'v [u8],
}

impl<'v> Hstore<'v> {
    /// Makes out the layout of a payload.
    pub(super) fn open(payload: &'v [u8]) -> Result<Self> {
        if payload.is_empty() {
            return Ok(Self { entries: Cow::Borrowed(&[]), texts: &[] });
        }
        let (head, hstore) = Self::unconverted(payload)?;
        if is_flagged(payload) || head == 0 {
            return Ok(hstore);
        }
        if payload.len() < SURELY_NEW_BYTES && hstore.word(0) & IS_FIRST != 0 {
            return Ok(hstore);
        }
        match (old_fit(payload), new_fit(payload)) {
            (0, 0) => Err(Error::corrupt(HSTORE, 0, "invalid hstore value found")),
            (0, _) => Ok(hstore),
            _ => Ok(hstore.converted()),
        }
    }

    /// The first word, and the value as if it were in the new layout.
    fn unconverted(payload: &'v [u8]) -> Result<(u32, Self)> {
        let mut reader = Reader::new(HSTORE, payload);
        let head = reader.u32()?;
        let entries = reader.bytes(((head & COUNT) as usize).saturating_mul(8))?.as_chunks().0;
        Ok((head, Self { entries: Cow::Borrowed(entries), texts: reader.rest() }))
    }

    /// Pairs of the old layout: lengths of key and value, the place of the key, whether the value is NULL.
    fn old_pairs(&self) -> impl Iterator<Item = (usize, usize, usize, bool)> {
        self.entries.as_chunks().0.iter().map(|[[a, b, c, d], last]| {
            let place = u32::from_le_bytes(*last);
            let is_null = place & 1 != 0;
            let value_len = if is_null { 0 } else { u16::from_le_bytes([*c, *d]) };
            let key_len = u16::from_le_bytes([*a, *b]);
            (key_len.into(), value_len.into(), (place >> 1) as usize, is_null)
        })
    }

    /// The same value, its entries brought from the old layout into the new one.
    fn converted(self) -> Self {
        let new = |(key_len, value_len, at, is_null): (usize, usize, usize, bool)| {
            let key_end = (at + key_len) as u32 & END;
            let value_end = (at + key_len + value_len) as u32 & END;
            let null = if is_null { IS_NULL } else { 0 };
            [key_end.to_le_bytes(), (value_end | null).to_le_bytes()]
        };
        let entries: Vec<[u8; 4]> = self.old_pairs().flat_map(new).collect();
        Self { entries: Cow::Owned(entries), texts: self.texts }
    }

    /// How many pairs it has.
    pub(super) fn len(&self) -> usize {
        self.entries.len() / 2
    }

    fn word(&self, entry: usize) -> u32 {
        self.entries.get(entry).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn end(&self, entry: usize) -> usize {
        (self.word(entry) & END) as usize
    }

    fn is_null(&self, entry: usize) -> bool {
        self.word(entry) & IS_NULL != 0
    }

    /// Ends and whether they are those of NULL, of each key and each value.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u32, bool)> {
        (0..self.entries.len()).map(|entry| (self.word(entry) & END, self.is_null(entry)))
    }

    /// All texts, one after the other.
    pub(super) fn texts(&self) -> Result<&'v [u8]> {
        let end = self.entries.len().checked_sub(1).map_or(0, |last| self.end(last));
        self.texts.get(..end).ok_or_else(|| damage(end))
    }

    fn text(&self, entry: usize) -> Result<&'v [u8]> {
        let start = entry.checked_sub(1).map_or(0, |before| self.end(before));
        self.texts.get(start..self.end(entry)).ok_or_else(|| damage(start))
    }

    /// The pair of this number, counted from 0.
    pub(super) fn pair(&self, number: usize) -> Result<Pair<'v>> {
        let entry = 2 * number;
        let (key, value) = (self.text(entry)?, self.text(entry + 1)?);
        Ok((key, (!self.is_null(entry + 1)).then_some(value)))
    }

    /// All pairs.
    pub(super) fn pairs(&self) -> Result<Vec<Pair<'v>>> {
        (0..self.len()).map(|number| self.pair(number)).collect()
    }

    /// The number of the pair with this key.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match compare_keys(self.text(2 * middle)?, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

fn damage(at: usize) -> Error {
    Error::corrupt(HSTORE, at, "a text ends out of bounds")
}

/// True for a value that PostgreSQL 9.0 or later wrote.
pub(super) fn is_flagged(payload: &[u8]) -> bool {
    payload.get(3).is_some_and(|byte| byte & 0x80 != 0)
}

/// How well a payload fits the new layout: 0 not at all, 1 with bytes left over, 2 exactly. One with the flag is not examined.
pub(super) fn new_fit(payload: &[u8]) -> u8 {
    if is_flagged(payload) {
        return 2;
    }
    let Ok((_, hstore)) = Hstore::unconverted(payload) else { return 0 };
    let words = || (0..hstore.entries.len()).map(|entry| hstore.word(entry));
    let key_lengths = (0..hstore.len()).map(|number| {
        let before = (2 * number).checked_sub(1).map_or(0, |entry| hstore.end(entry));
        hstore.end(2 * number).saturating_sub(before)
    });
    let is_sound = words().map(|word| word & END).is_sorted()
        && words().enumerate().all(|(entry, word)| (word & IS_FIRST != 0) == (entry == 0))
        && (1..hstore.len()).all(|number| !hstore.is_null(2 * number))
        && key_lengths.is_sorted();
    let Ok(texts) = hstore.texts() else { return 0 };
    match is_sound {
        _ if hstore.len() == 0 => 2,
        false => 0,
        true => 1 + u8::from(texts.len() == hstore.texts.len()),
    }
}

/// The same for the layout of before PostgreSQL 9.0.
pub(super) fn old_fit(payload: &[u8]) -> u8 {
    let Ok((head, hstore)) = Hstore::unconverted(payload) else { return 0 };
    if head == 0 {
        return 2;
    }
    if head > COUNT || !hstore.old_pairs().map(|(key_len, ..)| key_len).is_sorted() {
        return 0;
    }
    let mut end = 0usize;
    for (key_len, value_len, at, _) in hstore.old_pairs() {
        if at != end {
            return 0;
        }
        end += key_len + value_len;
    }
    match end.cmp(&hstore.texts.len()) {
        Ordering::Less => 1,
        Ordering::Equal => 2,
        Ordering::Greater => 0,
    }
}

/// The pairs in their order, each key once: of the same key the one that the server's sort puts first.
pub(super) fn unique(mut pairs: Vec<Pair<'_>>) -> Vec<Pair<'_>> {
    server_sort::sort(&mut pairs, &|a, b| compare_keys(a.0, b.0));
    pairs.dedup_by(|later, earlier| later.0 == earlier.0);
    pairs
}

/// The payload of these pairs, which are in order, each key once.
///
/// # Errors
/// When the value is larger than the server allocates.
pub fn payload_of(pairs: &[Pair<'_>]) -> std::result::Result<Vec<u8>, CallError> {
    let texts: usize =
        pairs.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len)).sum();
    let size = 8 + 8 * pairs.len() + texts;
    if size > MAX_BYTES {
        let message = format!("invalid memory alloc request size {size}");
        return Err(CallError::new("XX000", message));
    }
    let mut out = Vec::with_capacity(size - 4);
    out.extend_from_slice(&(pairs.len() as u32 | NEW_VERSION).to_le_bytes());
    let (mut end, mut first) = (0u32, IS_FIRST);
    for (key, value) in pairs {
        end += key.len() as u32;
        out.extend_from_slice(&(end | std::mem::take(&mut first)).to_le_bytes());
        end += value.map_or(0, <[u8]>::len) as u32;
        let null = if value.is_none() { IS_NULL } else { 0 };
        out.extend_from_slice(&(end | null).to_le_bytes());
    }
    for (key, value) in pairs {
        out.extend_from_slice(key);
        out.extend_from_slice(value.unwrap_or_default());
    }
    Ok(out)
}
