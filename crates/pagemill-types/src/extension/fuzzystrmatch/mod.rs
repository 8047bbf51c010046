//! fuzzystrmatch: how far texts are from each other, and what words sound like: Levenshtein's distance (`levenshtein.rs`), Soundex
//! (here), that of Daitch and Mokotoff (`daitch_mokotoff/mod.rs`), Metaphone (`metaphone.rs`) and Double Metaphone
//! (`double_metaphone/mod.rs`).
//!
//! Letters are those of ASCII, as C's `isalpha` and `toupper` have them for single bytes in every locale of UTF-8; all but the
//! distance go by bytes. In databases of single-byte encodings the server knows more letters.
//!
//! Invariant: codes are ASCII, so that they are texts. Source: `contrib/fuzzystrmatch/fuzzystrmatch.c`, PostgreSQL 14 to 18.

mod daitch_mokotoff;
mod double_metaphone;
mod levenshtein;
mod metaphone;

use super::arguments::{integer, text};
use super::arrays::Array;
use super::call::{CallError, ExtensionFunction, Value, strict};
use levenshtein::{Costs, distance, distance_up_to};

/// Characters of a Soundex code.
const SOUNDEX_LENGTH: usize = 4;
const EVEN: Costs = Costs { insertion: 1, deletion: 1, substitution: 1 };

/// The functions of the library `fuzzystrmatch`. All are strict.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("levenshtein", |_, a| distance(text(a, 0)?, text(a, 1)?, EVEN).map(Value::Int4)),
    strict("levenshtein_with_costs", |_, a| {
        distance(text(a, 0)?, text(a, 1)?, costs(a)?).map(Value::Int4)
    }),
    strict("levenshtein_less_equal", |_, a| {
        distance_up_to(integer(a, 2)?, text(a, 0)?, text(a, 1)?, EVEN).map(Value::Int4)
    }),
    strict("levenshtein_less_equal_with_costs", |_, a| {
        distance_up_to(integer(a, 5)?, text(a, 0)?, text(a, 1)?, costs(a)?).map(Value::Int4)
    }),
    strict("soundex", |_, a| Ok(Value::Text(soundex(text(a, 0)?)))),
    strict("difference", |_, a| Ok(Value::Int4(difference(text(a, 0)?, text(a, 1)?)))),
    strict("daitch_mokotoff", |_, a| {
        let codes = daitch_mokotoff::codes(text(a, 0)?);
        let array = |codes: Vec<_>| Array::of_one_dimension(codes.into_iter().map(Some).collect());
        Ok(codes.map_or(Value::Null, |codes| Value::Payload(array(codes).texts_payload())))
    }),
    strict("metaphone", |_, a| metaphone::metaphone(text(a, 0)?, integer(a, 1)?).map(Value::Text)),
    strict("dmetaphone", |_, a| Ok(Value::Text(double_metaphone::codes(text(a, 0)?).0))),
    strict("dmetaphone_alt", |_, a| Ok(Value::Text(double_metaphone::codes(text(a, 0)?).1))),
];

fn costs(arguments: &[super::call::Argument<'_>]) -> Result<Costs, CallError> {
    Ok(Costs {
        insertion: integer(arguments, 2)?.into(),
        deletion: integer(arguments, 3)?.into(),
        substitution: integer(arguments, 4)?.into(),
    })
}

/// The group of a letter; every other byte is its own.
fn soundex_group(byte: u8) -> u8 {
    match byte.to_ascii_uppercase() {
        b'A' | b'E' | b'H' | b'I' | b'O' | b'U' | b'W' | b'Y' => b'0',
        b'B' | b'F' | b'P' | b'V' => b'1',
        b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
        b'D' | b'T' => b'3',
        b'L' => b'4',
        b'M' | b'N' => b'5',
        b'R' => b'6',
        other => other,
    }
}

/// The first letter and the groups of those behind it, four characters; nothing where there is no letter.
fn soundex(text: &str) -> String {
    let bytes = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).as_bytes();
    let Some(first) = bytes.first() else { return String::new() };
    let groups = bytes.iter().zip(bytes.iter().skip(1)).filter_map(|(before, byte)| {
        let group = soundex_group(*byte);
        let is_new = byte.is_ascii_alphabetic() && group != soundex_group(*before);
        (is_new && group != b'0').then_some(group)
    });
    let code = std::iter::once(first.to_ascii_uppercase()).chain(groups);
    let filled = code.chain(std::iter::repeat(b'0')).take(SOUNDEX_LENGTH);
    filled.map(char::from).collect()
}

/// In how many places the Soundex codes agree; two that are empty agree in all.
fn difference(left: &str, right: &str) -> i32 {
    let (left, right) = (soundex(left), soundex(right));
    if left.is_empty() && right.is_empty() {
        return SOUNDEX_LENGTH as i32;
    }
    left.bytes().zip(right.bytes()).filter(|(left, right)| left == right).count() as i32
}

#[cfg(test)]
mod tests;
