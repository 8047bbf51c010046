//! Characters taken from the ends or put there, or put in the place of others: `trim`, `lpad`, `rpad`, `translate`.
//!
//! Source: `dotrim`, `lpad`, `rpad`, `translate` in `src/backend/utils/adt/oracle_compat.c`, PostgreSQL 14 to 18.

use super::super::rows::{Outcome, Plain, one, three, two};
use super::{LENGTH_WORD, MOST_BYTES, length, offset, too_large};

/// Bytes that the server keeps room for, for each character.
const MOST_CHARACTER_BYTES: usize = 4;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "btrim1" => |a| one(a, |text: &str| Ok(text.trim_matches(' ').to_owned())),
        "ltrim1" => |a| one(a, |text: &str| Ok(text.trim_start_matches(' ').to_owned())),
        "btrim" => {
            |a| two(a, |t: &str, set: &str| Ok(t.trim_matches(|c| set.contains(c)).to_owned()))
        }
        "ltrim" => |a| two(a, |t: &str, set: &str| Ok(trim_start(t, set).to_owned())),
        "rtrim" => |a| two(a, |t: &str, set: &str| Ok(trim_end(t, set).to_owned())),
        "lpad" => |a| three(a, |t: &str, n: i32, fill: &str| pad(t, n, fill).map(|(t, f)| f + t)),
        "rpad" => |a| {
            three(a, |t: &str, n: i32, fill: &str| pad(t, n, fill).map(|(t, f)| t.to_owned() + &f))
        },
        "lpad(text,int4)" => |a| two(a, |t: &str, n: i32| pad(t, n, " ").map(|(t, f)| f + t)),
        "rpad(text,int4)" => {
            |a| two(a, |t: &str, n: i32| pad(t, n, " ").map(|(t, f)| t.to_owned() + &f))
        }
        "translate" => |a| three(a, translate),
        _ => return None,
    })
}

fn trim_start<'t>(text: &'t str, set: &str) -> &'t str {
    text.trim_start_matches(|character| set.contains(character))
}

fn trim_end<'t>(text: &'t str, set: &str) -> &'t str {
    text.trim_end_matches(|character| set.contains(character))
}

/// What is kept of the text, and what fills it up to the length.
fn pad<'t>(text: &'t str, wanted: i32, fill: &str) -> Outcome<(&'t str, String)> {
    let wanted = wanted.max(0);
    let kept = length(text).min(wanted);
    let wanted = if fill.is_empty() { kept } else { wanted };
    if wanted as usize * MOST_CHARACTER_BYTES > MOST_BYTES - LENGTH_WORD {
        return Err(too_large());
    }
    let filling = fill.chars().cycle().take((wanted - kept) as usize).collect();
    Ok((&text[..offset(text, kept as usize)], filling))
}

fn translate(text: &str, from: &str, to: &str) -> Outcome<String> {
    if text.len() * MOST_CHARACTER_BYTES > MOST_BYTES - LENGTH_WORD {
        return Err(too_large());
    }
    let to: Vec<char> = to.chars().collect();
    let one = |character: char| match from.chars().position(|other| other == character) {
        Some(place) => to.get(place).copied(),
        None => Some(character),
    };
    Ok(text.chars().filter_map(one).collect())
}
