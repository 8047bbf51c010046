//! `tsvector` from its text: `'fat':2A,3 cat`. Lexemes are sorted and each is there once, with all
//! the positions it was given. See [`crate::tsvector`] for the layout.
//!
//! Source: `tsvectorin`, `uniqueentry` and `uniquePos` in `src/backend/utils/adt/tsvector.c`,
//! PostgreSQL 14 to 18.

use super::InputError;
use super::lexeme::{Language, MAX_LEXEME, MAX_PLACE, NextWord, Words};
use super::tree::InputContext;

/// Most positions of a lexeme (`MAXNUMPOS`).
const MAX_POSITIONS: usize = 256;
const POSITION: u16 = 0x3FFF;

/// A word and its positions.
type Entry = (Vec<u8>, Vec<u16>);

/// Appends the payload of a `tsvector`.
///
/// # Errors
/// When the text is none, or has too much in it.
pub fn read_tsvector(
    text: &[u8],
    context: &InputContext,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let entries = joined(entries(text, context)?);
    let mut data = Vec::new();
    let mut words = Vec::with_capacity(4 * entries.len());
    for (word, positions) in &entries {
        let place = data.len();
        data.extend_from_slice(word);
        if !positions.is_empty() {
            data.resize(data.len().next_multiple_of(2), 0);
            data.extend_from_slice(&(positions.len() as u16).to_le_bytes());
            data.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
        }
        let word =
            u32::from(!positions.is_empty()) | (word.len() as u32) << 1 | (place as u32) << 12;
        words.extend_from_slice(&word.to_le_bytes());
    }
    if data.len() > MAX_PLACE {
        return Err(too_long(data.len()));
    }
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    out.extend_from_slice(&words);
    out.extend_from_slice(&data);
    Ok(())
}

#[cold]
fn too_long(bytes: usize) -> InputError {
    let what = format!("string is too long for tsvector ({bytes} bytes, max {MAX_PLACE} bytes)");
    InputError::new(what)
}

fn entries(text: &[u8], context: &InputContext) -> Result<Vec<Entry>, InputError> {
    let mut words = Words::new(text, context, Language::Vector);
    let (mut entries, mut word, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let NextWord::Word(positions) = words.next(&mut word)? {
        if word.len() >= MAX_LEXEME {
            let (found, most) = (word.len(), MAX_LEXEME - 1);
            let what = format!("word is too long ({found} bytes, max {most} bytes)");
            return Err(InputError::new(what));
        }
        if bytes > MAX_PLACE {
            return Err(too_long(bytes));
        }
        bytes += word.len();
        entries.push((word.clone(), positions));
    }
    Ok(entries)
}

/// The entries in order, those of the same word made one.
fn joined(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1.append(&mut later.1);
        }
        same
    });
    for (_, positions) in &mut entries {
        settle(positions);
    }
    entries
}

/// Sorts positions, keeps the first ones, each once and with the highest of its weights.
fn settle(positions: &mut Vec<u16>) {
    positions.sort_by_key(|position| position & POSITION);
    positions.dedup_by(|later, earlier| {
        let same = (*later ^ *earlier) & POSITION == 0;
        if same {
            *earlier = (*earlier).max(*later);
        }
        same
    });
    positions.truncate(MAX_POSITIONS);
}
