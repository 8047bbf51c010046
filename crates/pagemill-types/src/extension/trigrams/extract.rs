//! The trigrams of a text: each word in lower case, with two spaces before it and one behind, every three characters in a row.
//!
//! A trigram takes three bytes. Three characters of one byte each are kept as they are; of others the lower three bytes of a checksum are
//! kept, PostgreSQL's "legacy" CRC-32 (the table of the reflected polynomial, walked as if it were not reflected).
//!
//! Invariant: trigrams are those of a database in UTF-8 on a little-endian server. Their order shows only in `show_trgm`: bytes are
//! compared as the server's `char`, signed on x86; since PostgreSQL 18 the control file says which.
//! Source: `generate_trgm_only`, `compact_trigram` and `show_trgm` in `contrib/pg_trgm/trgm_op.c`, `src/include/utils/pg_crc.h`,
//! PostgreSQL 14 to 18.

use crate::extension::call::Letters;

/// Three characters, or what is kept of them.
pub type Trigram = [u8; 3];

/// A trigram where it stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which one stands here.
    pub trigram: Trigram,
    /// True where a word begins with it.
    pub is_first: bool,
    /// True where a word ends with it.
    pub is_last: bool,
}

/// How a server's `char` compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharSign {
    /// As on x86.
    Signed,
    /// As on ARM.
    Unsigned,
}

impl CharSign {
    /// Sorts as the server sorts.
    pub fn sort(self, trigrams: &mut [Trigram]) {
        match self {
            Self::Signed => trigrams.sort_unstable_by_key(|one| one.map(|byte| byte as i8)),
            Self::Unsigned => trigrams.sort_unstable(),
        }
    }
}

/// All trigrams of a text in their order there.
pub fn places(letters: &dyn Letters, text: &str) -> Vec<Place> {
    let mut found = Vec::new();
    let words = text.split(|character| !letters.is_alphanumeric(character));
    for word in words.filter(|word| !word.is_empty()) {
        let first = found.len();
        let padded = format!("  {} ", letters.lower(word));
        let place = |trigram| Place { trigram, is_first: false, is_last: false };
        if padded.is_ascii() {
            let threes = padded.as_bytes().windows(3);
            found.extend(threes.filter_map(|three| three.try_into().ok()).map(place));
        } else {
            found.extend(of_characters(&padded).map(place));
        }
        if let Some(place) = found.get_mut(first) {
            place.is_first = true;
        }
        if let Some(place) = found.last_mut() {
            place.is_last = true;
        }
    }
    found
}

/// The trigrams of a word with characters of several bytes.
fn of_characters(padded: &str) -> impl Iterator<Item = Trigram> + '_ {
    let starts = padded.char_indices().map(|(at, _)| at);
    let ends = padded.char_indices().skip(3).map(|(at, _)| at).chain([padded.len()]);
    starts
        .zip(ends)
        .map(|(start, end)| compact(padded.as_bytes().get(start..end).unwrap_or_default()))
}

/// The trigrams of a text, each once, sorted as unsigned bytes.
pub fn distinct(letters: &dyn Letters, text: &str) -> Vec<Trigram> {
    let mut found: Vec<_> = places(letters, text).into_iter().map(|place| place.trigram).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The text that `show_trgm` has for a trigram in a database with characters of several bytes.
pub fn shown(trigram: &Trigram) -> Vec<u8> {
    if trigram.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ') {
        return trigram.to_vec();
    }
    let [a, b, c] = trigram;
    format!("0x{a:02x}{b:02x}{c:02x}").into_bytes()
}

/// What is kept of three characters.
fn compact(characters: &[u8]) -> Trigram {
    characters.try_into().unwrap_or_else(|_| {
        let [a, b, c, _] = legacy_crc32(characters).to_le_bytes();
        [a, b, c]
    })
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut entry = at as u32;
        let mut bit = 0;
        while bit < 8 {
            entry = if entry & 1 == 1 { entry >> 1 ^ 0xEDB8_8320 } else { entry >> 1 };
            bit += 1;
        }
        table[at] = entry;
        at += 1;
    }
    table
}

/// PostgreSQL's checksum of before 9.5.
fn legacy_crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        let [.., high] = sum.to_le_bytes();
        TABLE[usize::from(high ^ byte)] ^ sum << 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::extension_tests::UnicodeLetters;

    #[test]
    fn words_have_spaces_around_them() {
        let found = places(&UnicodeLetters, "-Ab, c");
        let trigrams: Vec<_> = found.iter().map(|place| place.trigram).collect();
        assert_eq!(trigrams, [*b"  a", *b" ab", *b"ab ", *b"  c", *b" c "]);
        let firsts: Vec<_> = found.iter().map(|place| place.is_first).collect();
        assert_eq!(firsts, [true, false, false, true, false]);
        let lasts: Vec<_> = found.iter().map(|place| place.is_last).collect();
        assert_eq!(lasts, [false, false, true, false, true]);
    }

    #[test]
    fn the_order_of_bytes_has_a_sign() {
        let mut trigrams = [*b"abc", [0xE5, 1, 1], *b"  a"];
        CharSign::Signed.sort(&mut trigrams);
        assert_eq!(trigrams, [[0xE5, 1, 1], *b"  a", *b"abc"]);
        CharSign::Unsigned.sort(&mut trigrams);
        assert_eq!(trigrams, [*b"  a", *b"abc", [0xE5, 1, 1]]);
    }
}
