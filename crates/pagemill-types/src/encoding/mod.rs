//! Server encodings, and conversion of exported text between them.
//!
//! Text lies in the pages in the database's encoding (`pg_database.encoding`, a number). A
//! [`Transcoder`] turns it into what the user asked for, as the server does for a client with
//! another `client_encoding`: a character without equivalent is an error that shows its bytes, never
//! a replacement character. Numbers and names from `src/include/mb/pg_wchar.h` and
//! `src/common/encnames.c`, rules from `pg_server_to_any` in `src/backend/utils/mb/mbutils.c`
//! (PostgreSQL 15; the same from 14 to 18).
//!
//! Converted are all single-byte encodings, EUC_JP, EUC_CN and EUC_KR into UTF8, and UTF8 into all
//! single-byte encodings. SQL_ASCII as the source means bytes nobody vouched for: they are checked
//! against the target encoding and copied; as the target it means no conversion.
//!
//! Invariants: every target is ASCII-safe, so a whole row can be converted after COPY escaped it
//! as long as delimiter, quote and NULL string are ASCII; a failed conversion leaves the output as it was.

mod euc;
mod names;
mod tables;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use memchr::memchr;
use pagemill_format::byte_scan::{ByteScan, ByteTest};
use thiserror::Error;

use euc::EucPlanes;
use tables::UpperHalf;

pub use names::ENCODING_NAMES;

/// Longest byte sequence an error shows.
const MOST_BYTES_SHOWN: usize = 8;
/// The highest number of an encoding a database can have; those behind it are for clients only.
const LAST_SERVER_ENCODING: usize = 34;
const SQL_ASCII: usize = 0;
/// Bytes of a single-byte encoding decoded into a buffer of fixed size.
const DECODE_BLOCK: usize = 32;
/// ASCII bytes copied one by one before a wide scan is worth its start.
const SHORT_ASCII: usize = 4;

/// Other spellings PostgreSQL accepts, without punctuation and in lower case. `windows…` and
/// `iso8859…` are taken care of by [`encoding_id`].
const ALIASES: &[(&str, &str)] = &[
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
];

/// Why text cannot be converted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodingError {
    /// The database's encoding number is none that a database can have.
    #[error("{id} is not the number of a server encoding; the database's catalog entry is damaged")]
    UnknownNumber {
        /// The number.
        id: i32,
    },
    /// No encoding has this name.
    #[error("there is no encoding {name:?}; UTF8, LATIN1 and WIN1252 are some that exist")]
    UnknownName {
        /// The name asked for.
        name: String,
    },
    /// Both encodings exist, but there is no conversion here.
    #[error(
        "converting from {from} to {to} is not supported; export in {from} and convert the result \
         with another tool"
    )]
    Unsupported {
        /// The database's encoding.
        from: &'static str,
        /// The encoding asked for.
        to: &'static str,
    },
    /// As [`EncodingError::Unsupported`], for text that is to be loaded.
    #[error(
        "converting from {from} to {to} is not supported; convert the input to {to} with another \
         tool, such as iconv"
    )]
    UnsupportedInput {
        /// The encoding of the input.
        from: &'static str,
        /// The database's encoding.
        to: &'static str,
    },
    /// Bytes that are no character in the encoding they are said to be in.
    #[error("invalid byte sequence for encoding {encoding}: {bytes}")]
    InvalidSequence {
        /// The encoding.
        encoding: &'static str,
        /// The bytes, in hexadecimal.
        bytes: String,
    },
    /// A character that the target encoding does not have.
    #[error("the character {bytes} of encoding {from} does not exist in encoding {to}")]
    NoEquivalent {
        /// The encoding of the text.
        from: &'static str,
        /// The encoding asked for.
        to: &'static str,
        /// The character's bytes, in hexadecimal.
        bytes: String,
    },
}

impl EncodingError {
    /// True when what was asked for is wrong, and not the text.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownName { .. } | Self::Unsupported { .. } | Self::UnsupportedInput { .. }
        )
    }
}

/// An object's name, stored in the encoding with this number, in UTF-8, as people type it and as
/// files are named. What cannot be converted stays as it is stored.
#[must_use]
pub fn utf8_name(id: i32, name: &[u8]) -> Cow<'_, [u8]> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    let mut text = Vec::new();
    match Transcoder::new(id, "UTF8") {
        Ok(Some(transcoder)) if transcoder.convert(name, &mut text).is_ok() => Cow::Owned(text),
        _ => Cow::Borrowed(name),
    }
}

/// As [`utf8_name`], with replacement characters for what is no UTF-8.
#[must_use]
pub fn readable_name(id: i32, name: &[u8]) -> String {
    String::from_utf8_lossy(&utf8_name(id, name)).into_owned()
}

/// A text that was typed, in UTF-8, as a database of the encoding with this number stores it;
/// `None` when it cannot. The opposite of [`utf8_name`].
#[must_use]
pub fn stored_text(id: i32, text: &[u8]) -> Option<Vec<u8>> {
    if text.is_ascii() {
        return Some(text.to_vec());
    }
    let name = encoding_name(id)?;
    if let Some(planes) = EucPlanes::of(name) {
        return planes.encoded(std::str::from_utf8(text).ok()?);
    }
    let mut stored = Vec::new();
    match Transcoder::new(encoding_id("UTF8")?, name).ok()? {
        Some(transcoder) => transcoder.convert(text, &mut stored).ok()?,
        None => stored.extend_from_slice(text),
    }
    Some(stored)
}

/// A character as a database of the encoding with this number stores it.
///
/// # Errors
/// [`EncodingError::NoEquivalent`] when the encoding does not have it, [`EncodingError::Unsupported`] when nothing is
/// known here of the characters of that encoding.
pub fn stored_character(id: i32, character: char) -> Result<Vec<u8>, EncodingError> {
    static STORED: [OnceLock<Option<StoredCharacters>>; LAST_SERVER_ENCODING + 1] =
        [const { OnceLock::new() }; LAST_SERVER_ENCODING + 1];
    let utf8 = || character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
    let to = encoding_name(id).ok_or(EncodingError::UnknownNumber { id })?;
    if character.is_ascii() || to == "UTF8" {
        return Ok(utf8());
    }
    let number = usize::try_from(id).ok().and_then(|number| STORED.get(number));
    let table = number.and_then(|table| table.get_or_init(|| stored_characters(to)).as_ref());
    let table = table.ok_or(EncodingError::Unsupported { from: "UTF8", to })?;
    table.get(&u32::from(character)).cloned().ok_or_else(|| EncodingError::NoEquivalent {
        from: "UTF8",
        to,
        bytes: hexadecimal(&utf8()),
    })
}

/// The bytes of each character beyond ASCII, by its number.
type StoredCharacters = HashMap<u32, Vec<u8>>;

fn stored_characters(name: &str) -> Option<StoredCharacters> {
    if let Some(planes) = EucPlanes::of(name) {
        return Some(planes.all().map(|(unit, bytes)| (unit.into(), bytes)).collect());
    }
    let upper = tables::upper_half(name)?;
    let units = upper.iter().zip(0x80..=u8::MAX).filter(|&(&unit, _)| unit != 0);
    Some(units.map(|(&unit, byte)| (unit.into(), vec![byte])).collect())
}

/// The name of the encoding with this number, client-only ones included.
#[must_use]
pub fn encoding_name(id: i32) -> Option<&'static str> {
    usize::try_from(id).ok().and_then(|index| ENCODING_NAMES.get(index)).copied()
}

/// The number of the encoding with this name, spelled as PostgreSQL allows: case and punctuation
/// do not matter, aliases count.
#[must_use]
pub fn encoding_id(name: &str) -> Option<i32> {
    index_of(name).and_then(|index| i32::try_from(index).ok())
}

fn index_of(name: &str) -> Option<usize> {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|ch| ch.to_ascii_lowercase()).collect()
    };
    let mut key = plain(name);
    if let Some(page) = key.strip_prefix("windows").filter(|page| !page.is_empty()) {
        key = format!("win{page}");
    }
    let key = match ALIASES.iter().find(|(alias, _)| *alias == key) {
        Some((_, name)) => plain(name),
        None => key,
    };
    ENCODING_NAMES.iter().position(|name| plain(name) == key)
}

/// Everything from 0x01 to 0x7f is copied; a zero byte is never text.
#[derive(Clone, Copy, Debug)]
struct NotAsciiText;

impl ByteTest for NotAsciiText {
    #[inline(always)]
    fn is_special(self, byte: u8) -> bool {
        byte.wrapping_sub(1) >= 0x7f
    }
}

#[derive(Clone, Debug)]
enum Conversion {
    /// A single-byte encoding into UTF8.
    FromSingleByte(Box<[Utf8Char; 256]>),
    /// An EUC encoding into UTF8.
    FromEuc(EucPlanes),
    /// UTF8 into a single-byte encoding: the byte of each UTF-16 unit, 0 for none.
    ToSingleByte(Box<[u8]>),
    /// SQL_ASCII into UTF8: only checked.
    CheckUtf8,
    /// SQL_ASCII into an encoding in which every byte but zero is valid.
    CheckNoZero,
}

/// A character as UTF8; none if the length is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Utf8Char {
    bytes: [u8; 3],
    length: u8,
}

/// Converts text from a database's encoding to another.
#[derive(Clone, Debug)]
pub struct Transcoder {
    from: &'static str,
    to: &'static str,
    conversion: Conversion,
    ascii: ByteScan<NotAsciiText>,
}

impl Transcoder {
    /// The conversion from a database's encoding number to a named encoding, or none if the bytes
    /// can stay as they are.
    ///
    /// # Errors
    /// When one of the encodings does not exist or there is no conversion between them.
    pub fn new(from: i32, to: &str) -> Result<Option<Transcoder>, EncodingError> {
        let source = usize::try_from(from).ok().filter(|&id| id <= LAST_SERVER_ENCODING);
        let source = source.ok_or(EncodingError::UnknownNumber { id: from })?;
        let target =
            index_of(to).ok_or_else(|| EncodingError::UnknownName { name: to.to_owned() })?;
        if source == target || target == SQL_ASCII {
            return Ok(None);
        }
        let (Some(from), Some(to)) =
            (ENCODING_NAMES.get(source).copied(), ENCODING_NAMES.get(target).copied())
        else {
            return Ok(None);
        };
        let conversion = conversion(from, to).ok_or(EncodingError::Unsupported { from, to })?;
        Ok(Some(Transcoder { from, to, conversion, ascii: ByteScan::new(NotAsciiText) }))
    }

    /// Appends the converted text.
    ///
    /// # Errors
    /// When the text is not valid in its encoding or a character does not exist in the other; then
    /// nothing is appended.
    pub fn convert(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodingError> {
        let ascii = self.ascii.clean_prefix(bytes);
        if ascii == bytes.len() {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let start = out.len();
        out.reserve(bytes.len() + bytes.len() / 2);
        let result = match &self.conversion {
            Conversion::FromSingleByte(table) => self.decode_single_byte(table, bytes, out),
            Conversion::FromEuc(planes) => self.decode_euc(planes, bytes, out),
            Conversion::ToSingleByte(table) => self.encode_single_byte(table, bytes, out),
            Conversion::CheckUtf8 => self.checked_utf8(bytes, self.to, out),
            Conversion::CheckNoZero => self.checked_no_zero(bytes, out),
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn decode_single_byte(
        &self,
        table: &[Utf8Char; 256],
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodingError> {
        for block in bytes.chunks(DECODE_BLOCK) {
            if self.ascii.is_clean(block) {
                out.extend_from_slice(block);
                continue;
            }
            let mut text = [0; DECODE_BLOCK * 3];
            let mut length = 0;
            for &byte in block {
                let ch = table[usize::from(byte)];
                if ch.length == 0 {
                    return Err(self.undecodable(byte));
                }
                // All three bytes are stored; the next character overwrites those that do not count.
                if let Some(place) = text.get_mut(length..length + 3) {
                    place.copy_from_slice(&ch.bytes);
                }
                length += usize::from(ch.length);
            }
            out.extend_from_slice(text.get(..length).unwrap_or_default());
        }
        Ok(())
    }

    fn undecodable(&self, byte: u8) -> EncodingError {
        if byte == 0 { self.invalid(&[byte]) } else { self.no_equivalent(&[byte]) }
    }

    fn decode_euc(
        &self,
        planes: &EucPlanes,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodingError> {
        let mut rest = bytes;
        loop {
            rest = self.copy_ascii(rest, out);
            if rest.is_empty() {
                return Ok(());
            }
            let length = planes.length(rest);
            let sequence = rest.get(..length).unwrap_or(rest);
            match planes.character(sequence) {
                None => return Err(self.invalid(sequence)),
                Some(0) => return Err(self.no_equivalent(sequence)),
                Some(unit) => push_utf8(unit, out),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    fn encode_single_byte(
        &self,
        table: &[u8],
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodingError> {
        let text = self.valid_utf8(bytes, self.from)?;
        let mut rest = text;
        loop {
            let tail = self.copy_ascii(rest.as_bytes(), out);
            rest = rest.get(rest.len() - tail.len()..).unwrap_or_default();
            let Some(ch) = rest.chars().next() else { return Ok(()) };
            let byte = usize::try_from(u32::from(ch)).ok().and_then(|unit| table.get(unit));
            let Some(&byte @ 1..) = byte else {
                return Err(self.no_equivalent(ch.encode_utf8(&mut [0; 4]).as_bytes()));
            };
            out.push(byte);
            rest = rest.get(ch.len_utf8()..).unwrap_or_default();
        }
    }

    fn checked_utf8(
        &self,
        bytes: &[u8],
        encoding: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodingError> {
        self.valid_utf8(bytes, encoding)?;
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn checked_no_zero(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodingError> {
        if memchr(0, bytes).is_some() {
            return Err(invalid(self.to, &[0]));
        }
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn valid_utf8<'a>(
        &self,
        bytes: &'a [u8],
        encoding: &'static str,
    ) -> Result<&'a str, EncodingError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let rest = bytes.get(error.valid_up_to()..).unwrap_or_default();
            let length = rest.first().map_or(0, |&first| utf8_length(first));
            invalid(encoding, rest.get(..length).unwrap_or(rest))
        })?;
        if memchr(0, bytes).is_some() {
            return Err(invalid(encoding, &[0]));
        }
        Ok(text)
    }

    /// Copies what is ASCII at the beginning and gives back the rest.
    #[inline]
    fn copy_ascii<'a>(&self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        // Words of other scripts have a blank or two between them: no reason to start a wide scan.
        let mut rest = bytes;
        for _ in 0..SHORT_ASCII {
            match rest.split_first() {
                Some((&byte, tail)) if !NotAsciiText.is_special(byte) => {
                    out.push(byte);
                    rest = tail;
                }
                _ => return rest,
            }
        }
        let (ascii, rest) =
            rest.split_at_checked(self.ascii.clean_prefix(rest)).unwrap_or_default();
        out.extend_from_slice(ascii);
        rest
    }

    fn invalid(&self, bytes: &[u8]) -> EncodingError {
        invalid(self.from, bytes)
    }

    fn no_equivalent(&self, bytes: &[u8]) -> EncodingError {
        EncodingError::NoEquivalent { from: self.from, to: self.to, bytes: hexadecimal(bytes) }
    }
}

fn conversion(from: &str, to: &str) -> Option<Conversion> {
    match (from, to) {
        ("SQL_ASCII", "UTF8") => Some(Conversion::CheckUtf8),
        ("SQL_ASCII", _) => tables::upper_half(to).map(|_| Conversion::CheckNoZero),
        ("UTF8", _) => {
            let table = tables::upper_half(to)?;
            Some(Conversion::ToSingleByte(inverted(&table)))
        }
        (_, "UTF8") => from_other(from),
        _ => None,
    }
}

fn from_other(from: &str) -> Option<Conversion> {
    EucPlanes::of(from).map(Conversion::FromEuc).or_else(|| {
        let table = tables::upper_half(from)?;
        Some(Conversion::FromSingleByte(utf8_chars(&table)))
    })
}

fn utf8_chars(upper: &UpperHalf) -> Box<[Utf8Char; 256]> {
    let mut table = Box::new([Utf8Char::default(); 256]);
    let units = (0..0x80).chain(upper.iter().copied());
    let mut text = Vec::with_capacity(3);
    for (slot, unit) in table.iter_mut().zip(units).filter(|&(_, unit)| unit != 0) {
        text.clear();
        push_utf8(unit, &mut text);
        for (place, byte) in slot.bytes.iter_mut().zip(&text) {
            *place = *byte;
            slot.length += 1;
        }
    }
    table
}

fn inverted(upper: &UpperHalf) -> Box<[u8]> {
    let mut table = vec![0; 1 << 16].into_boxed_slice();
    for (&unit, byte) in upper.iter().zip(0x80..=u8::MAX).filter(|&(&unit, _)| unit != 0) {
        if let Some(slot) = table.get_mut(usize::from(unit)) {
            *slot = byte;
        }
    }
    table
}

/// Appends a character of the tables, which hold no surrogates.
#[inline]
fn push_utf8(unit: u16, out: &mut Vec<u8>) {
    let [high, low] = unit.to_be_bytes();
    let last = 0x80 | (low & 0x3f);
    // Arrays of a fixed length are stored at once, where a slice would be a call to copy it.
    match unit {
        0..0x80 => out.push(low),
        0x80..0x800 => out.extend_from_slice(&[0xc0 | (high << 2) | (low >> 6), last]),
        _ => {
            let middle = 0x80 | ((high & 0x0f) << 2) | (low >> 6);
            out.extend_from_slice(&[0xe0 | (high >> 4), middle, last]);
        }
    }
}

/// How long a character starting with this byte would be, as error messages count it.
fn utf8_length(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

fn invalid(encoding: &'static str, bytes: &[u8]) -> EncodingError {
    EncodingError::InvalidSequence { encoding, bytes: hexadecimal(bytes) }
}

/// Bytes as an error message of PostgreSQL shows them.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (place, byte) in bytes.iter().take(MOST_BYTES_SHOWN).enumerate() {
        let space = if place == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}0x{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
