//! Metaphone: an English word as the sounds it is made of, `Knight` as `NFT`.
//!
//! What stands around a letter says how it sounds; a byte that is no letter only separates. Letters are compared in upper case.
//!
//! Invariant: what lies outside of the word is 0, which is no letter, so that looking around never fails. Source: `_metaphone` in
//! `contrib/fuzzystrmatch/fuzzystrmatch.c`, PostgreSQL 14 to 18.

use super::super::call::CallError;

const MAX_BYTES: usize = 255;

/// The sounds of a text, at most so many.
///
/// # Errors
/// When the text is too long, or no such number of sounds can be asked for. An empty text is fine with any.
pub(super) fn metaphone(text: &str, most: i32) -> Result<String, CallError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let too_long = |what: &str| {
        let message = format!("{what} exceeds the maximum length of {MAX_BYTES} bytes");
        Err(CallError::new("22023", message))
    };
    if text.len() > MAX_BYTES {
        return too_long("argument");
    }
    match usize::try_from(most) {
        Ok(0) | Err(_) => Err(CallError::new("2200F", "output cannot be empty string")),
        Ok(most) if most > MAX_BYTES => too_long("output"),
        Ok(most) => Ok(Word { bytes: text.as_bytes(), at: 0 }.sounds(most)),
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'A' | b'E' | b'I' | b'O' | b'U')
}

/// Makes a C or a G before it soft.
fn is_soft(letter: u8) -> bool {
    matches!(letter, b'E' | b'I' | b'Y')
}

/// A word and the letter that is looked at.
struct Word<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Word<'_> {
    /// The letter so far behind this one, in upper case.
    fn letter(&self, offset: isize) -> u8 {
        let byte = self.at.checked_add_signed(offset).and_then(|at| self.bytes.get(at));
        byte.copied().unwrap_or_default().to_ascii_uppercase()
    }

    fn sounds(mut self, most: usize) -> String {
        while self.letter(0) != 0 && !self.letter(0).is_ascii_alphabetic() {
            self.at += 1;
        }
        let (first, letters) = self.first_sound();
        self.at += letters;
        let mut sounds = String::from(first);
        while self.letter(0) != 0 && sounds.len() < most {
            let letter = self.letter(0);
            let is_repeated = letter == self.letter(-1) && letter != b'C';
            if letter.is_ascii_alphabetic() && !is_repeated {
                let (more, skipped) = self.sound();
                sounds.push_str(more.get(..most - sounds.len()).unwrap_or(more));
                self.at += skipped;
            }
            self.at += 1;
        }
        sounds
    }

    /// What a word begins with where that sounds otherwise than inside of one, and the letters that it takes.
    fn first_sound(&self) -> (&'static str, usize) {
        match (self.letter(0), self.letter(1)) {
            (b'A', b'E') => ("E", 2),
            (b'A', _) => ("A", 1),
            (b'G' | b'K' | b'P', b'N') => ("N", 2),
            (b'W', b'H') => ("H", 2),
            (b'W', b'R') => ("R", 2),
            (b'W', next) if is_vowel(next) => ("W", 2),
            (b'X', _) => ("S", 1),
            (b'E', _) => ("E", 1),
            (b'I', _) => ("I", 1),
            (b'O', _) => ("O", 1),
            (b'U', _) => ("U", 1),
            _ => ("", 0),
        }
    }

    /// The sound of this letter, and how many letters behind it belong to that.
    fn sound(&self) -> (&'static str, usize) {
        let (before, next) = (self.letter(-1), self.letter(1));
        match self.letter(0) {
            b'B' if before != b'M' => ("B", 0),
            b'C' => self.c(),
            b'D' if next == b'G' && is_soft(self.letter(2)) => ("J", 1),
            b'D' => ("T", 0),
            b'F' | b'V' => ("F", 0),
            b'G' => self.g(),
            b'H' if is_vowel(next) && !matches!(before, b'C' | b'G' | b'P' | b'S' | b'T') => {
                ("H", 0)
            }
            b'J' => ("J", 0),
            b'K' if before != b'C' => ("K", 0),
            b'L' => ("L", 0),
            b'M' => ("M", 0),
            b'N' => ("N", 0),
            b'P' if next == b'H' => ("F", 0),
            b'P' => ("P", 0),
            b'Q' => ("K", 0),
            b'R' => ("R", 0),
            b'S' => self.s(),
            b'T' if self.is_before_ia_or_io() => ("X", 0),
            b'T' if next == b'H' => ("0", 1),
            b'T' => ("T", 0),
            b'W' if is_vowel(next) => ("W", 0),
            b'X' => ("KS", 0),
            b'Y' if is_vowel(next) => ("Y", 0),
            b'Z' => ("S", 0),
            _ => ("", 0),
        }
    }

    fn is_before_ia_or_io(&self) -> bool {
        self.letter(1) == b'I' && matches!(self.letter(2), b'A' | b'O')
    }

    fn c(&self) -> (&'static str, usize) {
        let (before, next) = (self.letter(-1), self.letter(1));
        match next {
            b'I' if self.letter(2) == b'A' => ("X", 0),
            b'E' | b'I' | b'Y' if before == b'S' => ("", 0),
            b'E' | b'I' | b'Y' => ("S", 0),
            b'H' if self.letter(2) == b'R' || before == b'S' => ("K", 1),
            b'H' => ("X", 1),
            _ => ("K", 0),
        }
    }

    fn g(&self) -> (&'static str, usize) {
        let after = self.letter(2);
        match self.letter(1) {
            b'H' if matches!(self.letter(-3), b'B' | b'D' | b'H') => ("", 0),
            b'H' if self.letter(-4) == b'H' => ("", 0),
            b'H' => ("F", 1),
            b'N' if !after.is_ascii_alphabetic() => ("", 0),
            b'N' if after == b'E' && self.letter(3) == b'D' => ("", 0),
            next if is_soft(next) && self.letter(-1) != b'G' => ("J", 0),
            _ => ("K", 0),
        }
    }

    fn s(&self) -> (&'static str, usize) {
        match self.letter(1) {
            _ if self.is_before_ia_or_io() => ("X", 0),
            b'H' => ("X", 1),
            b'C' if self.letter(2) == b'H' && self.letter(3) == b'W' => ("X", 2),
            _ => ("S", 0),
        }
    }
}
