//! Double Metaphone: what a word sounds like, once as most would say it and once as it may sound where the name is from. Both codes
//! have at most four characters.
//!
//! The letters C and G are in `c_and_g.rs`, the others that need more than a line in `others.rs`. Every rule gives the sounds for
//! both codes, and how many bytes it takes.
//!
//! Invariant: bytes before and behind the word are 0, but for five spaces right behind it; every rule takes at least a byte. The
//! bytes C7 and D1 are Ç and Ñ whatever the encoding is, as for the server. Source: `contrib/fuzzystrmatch/dmetaphone.c`, PostgreSQL 14 to 18.

mod c_and_g;
mod others;

/// Characters of a code.
const CODE_LENGTH: usize = 4;
/// Spaces behind a word.
const PADDING: [u8; 5] = [b' '; 5];
/// How names from German and Dutch begin.
const VAN_AND_VON: &[&str] = &["VAN ", "VON "];

/// The sounds for the first and the second code, and the bytes that they stand for.
type Sound = (&'static str, &'static str, usize);

/// The first and the second code of a text.
pub(super) fn codes(text: &str) -> (String, String) {
    let bytes = [&text.as_bytes().to_ascii_uppercase()[..], &PADDING].concat();
    let mut word = Word { bytes, length: text.len(), at: 0 };
    let mut codes = (String::new(), String::new());
    if word.starts(&["GN", "KN", "PN", "WR", "PS"]) {
        word.at = 1;
    } else if word.starts(&["X"]) {
        codes = ("S".into(), "S".into());
        word.at = 1;
    }
    while word.at < word.length && (codes.0.len() < CODE_LENGTH || codes.1.len() < CODE_LENGTH) {
        let (first, second, taken) = word.sound();
        codes.0.push_str(first);
        codes.1.push_str(second);
        word.at += taken;
    }
    codes.0.truncate(CODE_LENGTH);
    codes.1.truncate(CODE_LENGTH);
    codes
}

/// A word in upper case, and the byte that is looked at.
struct Word {
    /// With spaces behind it.
    bytes: Vec<u8>,
    /// Without them.
    length: usize,
    at: usize,
}

impl Word {
    fn letter(&self, offset: isize) -> u8 {
        let byte = self.at.checked_add_signed(offset).and_then(|at| self.bytes.get(at));
        byte.copied().unwrap_or_default()
    }

    fn is_vowel(&self, offset: isize) -> bool {
        matches!(self.letter(offset), b'A' | b'E' | b'I' | b'O' | b'U' | b'Y')
    }

    /// True where one of the texts stands, so far behind this byte.
    fn is_near(&self, offset: isize, texts: &[&str]) -> bool {
        let rest = self.at.checked_add_signed(offset).and_then(|at| self.bytes.get(at..));
        rest.is_some_and(|rest| texts.iter().any(|text| rest.starts_with(text.as_bytes())))
    }

    fn starts(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.bytes.starts_with(text.as_bytes()))
    }

    fn is_first(&self) -> bool {
        self.at == 0
    }

    fn is_last(&self) -> bool {
        self.at + 1 == self.length
    }

    fn is_slavic_or_germanic(&self) -> bool {
        self.bytes.iter().any(|byte| matches!(byte, b'W' | b'K'))
            || self.bytes.windows(2).any(|pair| pair == b"CZ")
    }

    /// A sound for both codes, of a letter that may be doubled.
    fn doubled(&self, sound: &'static str) -> Sound {
        (sound, sound, if self.letter(1) == self.letter(0) { 2 } else { 1 })
    }

    fn sound(&self) -> Sound {
        match self.letter(0) {
            b'A' | b'E' | b'I' | b'O' | b'U' | b'Y' if self.is_first() => ("A", "A", 1),
            b'B' => self.doubled("P"),
            b'C' => self.c(),
            b'D' => self.d(),
            b'F' | b'V' => self.doubled("F"),
            b'G' => self.g(),
            b'H' => self.h(),
            b'J' => self.j(),
            b'K' | b'Q' => self.doubled("K"),
            b'L' => self.l(),
            b'M' => self.m(),
            b'N' => self.doubled("N"),
            b'P' => self.p(),
            b'R' => self.r(),
            b'S' => self.s(),
            b'T' => self.t(),
            b'W' => self.w(),
            b'X' => self.x(),
            b'Z' => self.z(),
            0xC7 => ("S", "S", 1),
            0xD1 => ("N", "N", 1),
            _ => ("", "", 1),
        }
    }
}
