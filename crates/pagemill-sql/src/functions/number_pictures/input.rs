//! `to_number`: texts read by pictures, as numerics.
//!
//! Points, groups and the sign of a currency are those of the locale C; where the session's are other ones they are refused.
//!
//! Source: `numeric_to_number` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use pagemill_types::input::numeric::read_numeric_before_16;

use super::super::KernelCall;
use super::super::keys::strings;
use super::super::numeric::arithmetic::multiply;
use super::super::numeric::column::build;
use super::super::numeric::powers::power;
use super::super::numeric::value::{Number, Value};
use super::super::rows::Outcome;
use super::is_english;
use super::picture::{Layout, Picture};
use super::reading::{Read, read};
use crate::error::{SqlState, StatementError};

/// `VARHDRSZ`, by which modifiers are greater than what they say.
const MODIFIER_OFFSET: i32 = 4;

/// Numbers of texts by pictures; NULL by an empty one.
pub(super) fn numbers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (texts, pictures) = (strings(&arguments[0]), strings(&arguments[1]));
    let major = call.catalog.database().cluster().version().major();
    let mut last: Option<(String, Picture)> = None;
    build(texts.len(), |row| {
        if texts.is_null(row) || pictures.is_null(row) || pictures.value(row).is_empty() {
            return Ok(None);
        }
        let text = pictures.value(row);
        let known = last.take().filter(|(known, _)| known == text);
        let (_, picture) = match known {
            Some(known) => last.insert(known),
            None => {
                let picture = Picture::parse(text, major)?;
                refuse_locale_of_input(call, &picture.layout)?;
                last.insert((text.to_owned(), picture))
            }
        };
        number_of(&read(picture, texts.value(row), major)?, major).map(Some)
    })
}

/// Refuses signs, points, groups and currencies that are not known here.
fn refuse_locale_of_input(call: &KernelCall, layout: &Layout) -> Outcome<()> {
    let refused = |what: &str| Err(StatementError::unsupported(format!("to_number with {what}")));
    if layout.has_currency && !is_english(call, "lc_monetary")? {
        return refused("the sign of a currency");
    }
    let needs_locale = layout.needs_locale || layout.has_locale_point;
    if needs_locale && !is_english(call, "lc_numeric")? {
        return refused("points and groups of its locale");
    }
    Ok(())
}

/// What was read as a numeric.
fn number_of(found: &Read, major: u32) -> Outcome<Value> {
    let (Ok(precision @ ..=1000), Ok(scale)) =
        (i32::try_from(found.precision), i32::try_from(found.scale))
    else {
        return Err(StatementError::unsupported("to_number with more than 1000 digits"));
    };
    let modifier = ((precision << 16) | scale) + MODIFIER_OFFSET;
    let mut payload = Vec::new();
    read_numeric_before_16(&found.text, modifier, &mut payload).map_err(|error| {
        let is_syntax = error.message.starts_with("invalid input syntax");
        let state = if is_syntax { SqlState::INVALID_TEXT } else { SqlState::NUMERIC_OUT_OF_RANGE };
        StatementError::new(state, error.message)
    })?;
    let number = Value::parse(&payload)?;
    let Some(shift) = found.shift else { return Ok(number) };
    let (ten, exponent) = (Number::new(10i64, 0), Number::new(-(shift as i64), 0));
    multiply(&number, &power(&ten.into(), &exponent.into(), major)?)
}

#[cfg(test)]
mod tests {
    use super::super::text_of;
    use super::*;

    /// Major version, text, picture, answer: the number, or `E` with SQLSTATE and message.
    const ANSWERS: &str = include_str!("server_answers.tsv");

    fn number(text: &str, picture: &str, major: u32) -> Outcome<String> {
        let picture = Picture::parse(picture, major)?;
        text_of(&number_of(&read(&picture, text, major)?, major)?)
    }

    #[test]
    fn texts_are_the_numbers_that_servers_read_in_them() {
        let mut wrong = Vec::new();
        for line in ANSWERS.lines() {
            let line = line.replace("\\\\", "\\");
            let fields: Vec<&str> = line.split('\t').collect();
            let &[major, text, picture, expected] = &fields[..] else {
                panic!("no line of four fields: {line}");
            };
            if picture.is_empty() {
                continue;
            }
            let found = number(text, picture, major.parse().unwrap());
            let found =
                found.unwrap_or_else(|error| format!("E {} {}", error.state.0, error.message));
            if found != expected {
                wrong.push(format!("{line}\n   found {found}"));
            }
        }
        assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
    }
}
