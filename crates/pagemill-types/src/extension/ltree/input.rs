//! `ltree` of a text, and the readers of the extension's three types.
//!
//! Readers know neither the version nor the locale: they follow versions 16 and 17 and Unicode. Whoever knows more, or wants the
//! SQLSTATE and the detail of an error, calls [`ltree_input`] and its kin.
//!
//! Invariant: padding is zeros, so that equal texts make equal bytes.
//!
//! Source: `parse_ltree` in `contrib/ltree/ltree_io.c`, PostgreSQL 14 to 18.

use crate::extension::call::CallError;
use crate::input::InputError;

use super::characters::Characters;
use super::labels::{LabelRules, Labels, MAX_LEVELS, UnicodeLetters, with_detail};
use super::path::{HEADER, push_label};
use super::query_input::lquery_input;
use super::text_query_input::ltxtquery_input;

const SYNTAX: &str = "42601";

/// The payload of the `ltree` that a text says.
///
/// # Errors
/// The server's, with their details.
pub fn ltree_input(text: &[u8], labels: Labels<'_>) -> Result<Vec<u8>, CallError> {
    let mut characters = Characters::new(text);
    let most = characters.count('.') + 1;
    if most > MAX_LEVELS.into() {
        let what =
            format!("number of ltree labels ({most}) exceeds the maximum allowed ({MAX_LEVELS})");
        return Err(CallError::new("54000", what));
    }
    let mut payload = HEADER.to_vec();
    let mut count = 0u16;
    while let Some(label) = next_label(&mut characters, labels, count > 0)? {
        push_label(label, &mut payload);
        count = count.saturating_add(1);
    }
    for (to, from) in payload.iter_mut().zip(count.to_le_bytes()) {
        *to = from;
    }
    Ok(payload)
}

/// The label that comes next, a dot before it unless it is the first.
fn next_label<'a>(
    characters: &mut Characters<'a>,
    labels: Labels<'_>,
    has_dot: bool,
) -> Result<Option<&'a [u8]>, CallError> {
    if characters.peek().is_none() {
        return Ok(None);
    }
    if has_dot {
        // A label ends only before a dot or at the end.
        characters.advance();
    }
    let Some(first) = characters.peek() else {
        return Err(with_detail(SYNTAX, "ltree syntax error", "Unexpected end of input."));
    };
    if !labels.allow(first) {
        return Err(unexpected(characters));
    }
    take_label(characters, labels).map(Some)
}

/// The label that begins here, up to a dot or the end.
fn take_label<'a>(
    characters: &mut Characters<'a>,
    labels: Labels<'_>,
) -> Result<&'a [u8], CallError> {
    let (start, first) = (characters.byte(), characters.position());
    loop {
        match characters.peek() {
            None | Some('.') => break,
            Some(one) if labels.allow(one) => characters.advance(),
            Some(_) => return Err(unexpected(characters)),
        }
    }
    let end = characters.position();
    labels.check_length(end - first, end)?;
    Ok(characters.slice(start, characters.byte()))
}

#[cold]
fn unexpected(characters: &Characters<'_>) -> CallError {
    CallError::new(SYNTAX, format!("ltree syntax error at character {}", characters.position()))
}

/// Reads with Unicode's letters and the newest rules.
fn read<const MAJOR: u32>(
    input: fn(&[u8], Labels<'_>) -> Result<Vec<u8>, CallError>,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let labels = Labels { letters: &UnicodeLetters, rules: LabelRules::of_major(MAJOR) };
    let payload = input(text, labels)?;
    out.extend_from_slice(&payload);
    Ok(())
}

/// `ltree`: `Top.Science.Astronomy`.
///
/// # Errors
/// The server's of this major version.
pub fn read_ltree<const MAJOR: u32>(
    text: &[u8],
    _: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    read::<MAJOR>(ltree_input, text, out)
}

/// `lquery`: `Top.*{1,2}.astro*@`.
///
/// # Errors
/// The server's of this major version.
pub fn read_lquery<const MAJOR: u32>(
    text: &[u8],
    _: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    read::<MAJOR>(lquery_input, text, out)
}

/// `ltxtquery`: `Europe & !(Russia@ | Trans*)`.
///
/// # Errors
/// The server's of this major version.
pub fn read_ltxtquery<const MAJOR: u32>(
    text: &[u8],
    _: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    read::<MAJOR>(ltxtquery_input, text, out)
}
