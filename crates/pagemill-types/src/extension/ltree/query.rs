//! `lquery`: a pattern over the labels of a path, in order.
//!
//! ```text
//! items u16 | first simple ones u16 | flags u16 | pad | { bytes u16 | flags u16 | variants u16 | least u16 | most u16 | pad |
//!     { checksum u32 | length u16 | flags u8 | text, in a field of 8 bytes and the text's length } … } …
//! ```
//!
//! Offsets are multiples of 8 from the length word, 4 bytes before the payload. A variant's text begins at its 8th byte, not at its 9th.
//!
//! Invariants: an item's variants lie within its bytes; an item without variants is a star. Items with variants repeat once unless they
//! say otherwise, whatever their numbers are: queries of versions before 13 have zeros there.
//!
//! Source: `contrib/ltree/ltree.h`, `lquery_out` in `contrib/ltree/ltree_io.c`, PostgreSQL 14 to 18.

use std::fmt::Write;

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

use super::labels::MAX_LEVELS;

const LQUERY: &str = "lquery";
/// Bytes before the first item.
pub(super) const HEADER_BYTES: usize = 12;
/// Bytes of an item before its variants.
pub(super) const ITEM_BYTES: usize = 16;
/// Bytes of a variant beside its text, padded.
pub(super) const VARIANT_BYTES: usize = 8;

/// A label's end is open.
pub(super) const PREFIX: u8 = 0x01;
/// Case does not count.
pub(super) const ANY_CASE: u8 = 0x02;
/// Words between underscores are compared.
pub(super) const WORDS: u8 = 0x04;
/// The item is negated.
pub(super) const NOT: u16 = 0x10;
/// The item has variants and says how often they are repeated.
pub(super) const COUNT: u16 = 0x20;

/// What a label is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variant<'a> {
    pub(super) text: &'a [u8],
    pub(super) flags: u8,
}

impl Variant<'_> {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends the text and its flags.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text);
        for (flag, sign) in [(WORDS, b'%'), (ANY_CASE, b'@'), (PREFIX, b'*')] {
            if self.has(flag) {
                out.push(sign);
            }
        }
    }
}

/// An item between dots.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    flags: u16,
    low: u16,
    high: u16,
    pub(super) variants: Vec<Variant<'a>>,
}

impl Item<'_> {
    pub(super) fn is_negated(&self) -> bool {
        self.flags & NOT != 0
    }

    fn says_how_often(&self) -> bool {
        self.variants.is_empty() || self.flags & COUNT != 0
    }

    /// How many labels it takes, at least and at most.
    pub(super) fn repetitions(&self) -> (u16, u16) {
        if self.says_how_often() { (self.low, self.high) } else { (1, 1) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.variants.is_empty() {
            out.push(b'*');
        } else if self.is_negated() {
            out.push(b'!');
        }
        for (number, variant) in self.variants.iter().enumerate() {
            if number > 0 {
                out.push(b'|');
            }
            variant.write(out);
        }
        if self.says_how_often() {
            out.extend_from_slice(self.printed_repetitions().as_bytes());
        }
    }

    fn printed_repetitions(&self) -> String {
        match (self.low, self.high) {
            (low, high) if low == high => format!("{{{low}}}"),
            (0, MAX_LEVELS) if self.variants.is_empty() => String::new(),
            (low, high) => {
                let mut text = String::from("{");
                if low > 0 {
                    let _ = write!(text, "{low}"); // default: a String takes all
                }
                text.push(',');
                if high < MAX_LEVELS {
                    let _ = write!(text, "{high}"); // default: a String takes all
                }
                text + "}"
            }
        }
    }
}

/// The items of a query, one after the other. An error ends them.
pub(super) struct Items<'a> {
    reader: Reader<'a>,
    left: u16,
}

impl<'a> Items<'a> {
    /// # Errors
    /// When the payload is cut off.
    pub(super) fn open(payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(LQUERY, payload);
        let left = reader.u16()?;
        reader.seek(HEADER_BYTES)?;
        Ok(Self { reader, left })
    }

    fn item(&mut self) -> Result<Item<'a>> {
        let bytes = usize::from(self.reader.u16()?);
        let (flags, count) = (self.reader.u16()?, self.reader.u16()?);
        let (low, high) = (self.reader.u16()?, self.reader.u16()?);
        self.reader.bytes(6)?;
        let Some(rest) = bytes.checked_sub(ITEM_BYTES) else {
            return Err(self.reader.corrupt("an item shorter than its header"));
        };
        let variants = variants(self.reader.bytes(rest.next_multiple_of(8))?, count)?;
        Ok(Item { flags, low, high, variants })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = self.item();
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// The variants in an item's bytes.
fn variants(bytes: &[u8], count: u16) -> Result<Vec<Variant<'_>>> {
    let mut reader = Reader::new(LQUERY, bytes);
    let mut found = Vec::new();
    for _ in 0..count {
        let start = reader.pos();
        reader.u32()?;
        let (length, flags) = (usize::from(reader.u16()?), reader.u8()?);
        found.push(Variant { text: reader.bytes(length)?, flags });
        reader.seek(start + VARIANT_BYTES + length.next_multiple_of(8))?;
    }
    Ok(found)
}

/// `lquery`: `Top.*{1,2}.astro*@`.
///
/// # Errors
/// When the payload is cut off.
pub fn write_lquery(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for (number, item) in Items::open(payload)?.enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        item?.write(out);
    }
    Ok(())
}
