//! Regular expressions as functions: `~`, `regexp_replace`, `regexp_match`, `substring`, `SIMILAR TO` and their kin.
//!
//! Source: `src/backend/utils/adt/regexp.c`, `replace_text_regexp` in `varlena.c`, PostgreSQL 14 to 18.

use std::ops::{Range, RangeInclusive};

use arrow::array::{ArrayRef, Int32Array, StringArray};

use super::super::super::logic::arrays::texts_payload;
use super::super::super::rows::{Made, Outcome, one, two};
use super::super::super::{Build, Implementation, Kernel, KernelCall};
use super::super::cases::{Letters, letters};
use super::alphabet::Alphabet;
use super::options::Options;
use super::search::{Pattern, Places};
use super::separated::Separated;
use super::similar::to_regular;
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

pub(in super::super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "similar_to_escape_1" => {
            Implementation::Kernel(|_, a| one(a, |pattern: &str| to_regular(pattern, "\\")))
        }
        "similar_to_escape_2" => Implementation::Kernel(|_, a| two(a, to_regular)),
        _ => {
            work(key)?;
            Implementation::Build(call)
        }
    })
}

/// What is done with a pattern, and the argument with its flags.
type Work = (fn(&mut Search<'_, '_>) -> Outcome<Answer>, Option<usize>);

/// What comes of a search.
enum Answer {
    Null,
    Truth(bool),
    Number(i32),
    Text(String),
    Texts(Vec<Option<String>>),
    /// Of several matches.
    Several(Vec<Vec<Option<String>>>),
}

fn work(key: &str) -> Option<Work> {
    Some(match key {
        "textregexeq" | "nameregexeq" | "texticregexeq" | "nameicregexeq" => (matches, None),
        "textregexne" | "nameregexne" | "texticregexne" | "nameicregexne" => (differs, None),
        "regexp_like_no_flags" => (matches, None),
        "regexp_like" => (matches, Some(2)),
        "textregexsubstr" => (substring, None),
        "textregexreplace_noopt" => (replace, None),
        "textregexreplace" => (replace, Some(3)),
        "textregexreplace_extended_no_n" | "textregexreplace_extended_no_flags" => {
            (replace_nth, None)
        }
        "textregexreplace_extended" => (replace_nth, Some(5)),
        "regexp_match_no_flags" => (groups, None),
        "regexp_match" => (groups, Some(2)),
        "regexp_count_no_start" | "regexp_count_no_flags" => (count, None),
        "regexp_count" => (count, Some(3)),
        "regexp_substr_no_start" | "regexp_substr_no_n" | "regexp_substr_no_flags" => (nth, None),
        "regexp_substr_no_subexpr" | "regexp_substr" => (nth, Some(4)),
        "regexp_instr_no_start"
        | "regexp_instr_no_n"
        | "regexp_instr_no_endoption"
        | "regexp_instr_no_flags" => (place_of_nth, None),
        "regexp_instr_no_subexpr" | "regexp_instr" => (place_of_nth, Some(5)),
        "regexp_matches_no_flags" => (all_groups, None),
        "regexp_matches" => (all_groups, Some(2)),
        "regexp_split_to_array_no_flags" => (split, None),
        "regexp_split_to_table_no_flags" => (split, None),
        "regexp_split_to_array" | "regexp_split_to_table" => (split, Some(2)),
        _ => return None,
    })
}

fn call(build: &Build<'_>) -> Result<Typed> {
    let kernel: Kernel = match letters(build.catalog, build.arguments)? {
        Letters::Ascii => |call, a| searched(call, a, Letters::Ascii),
        Letters::More { is_icu: true } => {
            |call, a| searched(call, a, Letters::More { is_icu: true })
        }
        Letters::More { .. } => |call, a| searched(call, a, Letters::More { is_icu: false }),
    };
    let carrier = crate::coerce::carrier_of(build.catalog, build.result);
    Ok(build.kernel(kernel, build.arguments, carrier))
}

/// One row's search.
struct Search<'s, 'c> {
    pattern: &'s mut Pattern<'c>,
    text: &'s str,
    arguments: &'s [ArrayRef],
    row: usize,
    is_global: bool,
}

impl Search<'_, '_> {
    fn text_argument(&self, number: usize) -> &str {
        let column: &StringArray =
            self.arguments[number].as_any().downcast_ref().expect("a text is carried as UTF-8"); // infallible: types were settled
        column.value(self.row)
    }

    /// An integer that must be positive; 1 where there is no such argument.
    fn number(&self, number: usize, name: &str) -> Outcome<usize> {
        Ok(self.number_within(number, name, 1..=i32::MAX)?.unwrap_or(1))
    }

    /// An integer that must be within bounds, where there is such an argument.
    fn number_within(
        &self,
        number: usize,
        name: &str,
        bounds: RangeInclusive<i32>,
    ) -> Outcome<Option<usize>> {
        let Some(argument) = self.arguments.get(number) else { return Ok(None) };
        let column: &Int32Array = argument.as_any().downcast_ref().expect("an integer"); // infallible: types were settled
        let value = column.value(self.row);
        match usize::try_from(value) {
            Ok(found) if bounds.contains(&value) => Ok(Some(found)),
            _ => {
                let message = format!("invalid value for parameter \"{name}\": {value}");
                Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
            }
        }
    }

    /// The byte of the character that a search begins at; nothing beyond the end.
    fn start(&self, number: usize) -> Outcome<Option<usize>> {
        let skipped = self.number(number, "start")? - 1;
        let mut characters = self.text.char_indices();
        Ok(match characters.nth(skipped) {
            Some((at, _)) => Some(at),
            None => (self.text.chars().count() == skipped).then_some(self.text.len()),
        })
    }

    /// Where the next search begins; nothing behind the end.
    fn behind(&self, start: usize, end: usize) -> Option<usize> {
        if end > start {
            return Some(end);
        }
        self.text[end..].chars().next().map(|next| end + next.len_utf8())
    }
}

fn searched(call: &KernelCall, arguments: &[ArrayRef], letters: Letters) -> Outcome<ArrayRef> {
    super::super::require_known(call, arguments)?;
    let (work, flags) = work(&call.key).expect("a kernel is found by its name"); // infallible: it was when the call was made
    let ignores_case = call.key.contains("icregex");
    let alphabet = Alphabet::of_call(call, letters);
    let mut made: Option<(String, Options, Pattern<'_>)> = None;
    let mut answers = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            answers.push(Answer::Null);
            continue;
        }
        let text = |number: usize| -> &str {
            let column: &StringArray =
                arguments[number].as_any().downcast_ref().expect("a text is carried as UTF-8"); // infallible: types were settled
            column.value(row)
        };
        let mut asked = Flags::default();
        asked.options.ignores_case = ignores_case;
        if let Some(flags) = flags {
            asked.read(text(flags), &call.key)?;
        }
        let Flags { options, is_global } = asked;
        let pattern = text(1);
        let is_made = |(known, meant, _): &(String, Options, Pattern<'_>)| {
            known == pattern && *meant == options
        };
        if !made.as_ref().is_some_and(is_made) {
            let new = Pattern::with(pattern, options, alphabet)?;
            made = Some((pattern.to_owned(), options, new));
        }
        let (_, _, pattern) = made.as_mut().expect("made above"); // infallible: made above
        answers.push(work(&mut Search { pattern, text: text(0), arguments, row, is_global })?);
    }
    column(call, answers)
}

/// What the letters of the flags say.
#[derive(Default)]
struct Flags {
    options: Options,
    is_global: bool,
}

impl Flags {
    fn read(&mut self, flags: &str, key: &str) -> Outcome<()> {
        for flag in flags.chars() {
            match flag {
                'g' if key.starts_with("textregexreplace") || key == "regexp_matches" => {
                    self.is_global = true
                }
                'g' => return Err(no_global(key)),
                'b' | 'e' | 'q' => {
                    let what = format!("the regular expression option \"{flag}\"");
                    return Err(StatementError::unsupported(what));
                }
                other => self.options.read(other).ok_or_else(|| {
                    let message = format!("invalid regular expression option: \"{other}\"");
                    StatementError::new(SqlState::INVALID_PARAMETER, message)
                })?,
            }
        }
        Ok(())
    }
}

#[cold]
fn no_global(key: &str) -> StatementError {
    let name = key.trim_end_matches("_no_subexpr");
    let message = format!("{name}() does not support the \"global\" option");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

fn column(call: &KernelCall, answers: Vec<Answer>) -> Outcome<ArrayRef> {
    use arrow::datatypes::DataType;
    match call.carrier {
        DataType::Boolean => Made::column(made(answers, |answer| match answer {
            Answer::Truth(truth) => Some(truth),
            _ => None,
        })),
        DataType::Int32 => Made::column(made(answers, |answer| match answer {
            Answer::Number(number) => Some(number),
            _ => None,
        })),
        DataType::Utf8 => Made::column(made(answers, |answer| match answer {
            Answer::Text(text) => Some(text),
            _ => None,
        })),
        _ => Made::column(made(answers, |answer| match answer {
            Answer::Texts(texts) => Some(texts_payload(&texts)),
            Answer::Several(matches) => Some(framed(&matches)),
            _ => None,
        })),
    }
}

/// Arrays one behind the other, each with its length in front.
fn framed(matches: &[Vec<Option<String>>]) -> Vec<u8> {
    let mut out = Vec::new();
    for texts in matches {
        let payload = texts_payload(texts);
        out.extend((payload.len() as u32).to_le_bytes());
        out.extend(payload);
    }
    out
}

fn made<T>(answers: Vec<Answer>, of: fn(Answer) -> Option<T>) -> Vec<Option<T>> {
    answers.into_iter().map(of).collect()
}

fn matches(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    Ok(Answer::Truth(search.pattern.is_match(search.text)?))
}

fn differs(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    Ok(Answer::Truth(!search.pattern.is_match(search.text)?))
}

/// The first group, or the whole where there is none.
fn substring(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (pattern, alphabet) = search.pattern.given();
    if let Some(mut parts) = Separated::read(pattern, alphabet)? {
        let place = parts.find(search.text)?;
        return Ok(place.map_or(Answer::Null, |place| Answer::Text(search.text[place].to_owned())));
    }
    let Some(places) = search.pattern.find_groups(search.text, 0)? else { return Ok(Answer::Null) };
    let group = places.get(usize::from(search.pattern.groups() > 0)).cloned().flatten();
    Ok(group.map_or(Answer::Null, |place| Answer::Text(search.text[place].to_owned())))
}

fn groups(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let Some(places) = search.pattern.find_groups(search.text, 0)? else { return Ok(Answer::Null) };
    Ok(Answer::Texts(texts_of_groups(search, &places)))
}

/// The groups of one match, or all of it where there are none.
fn texts_of_groups(search: &Search<'_, '_>, places: &Places) -> Vec<Option<String>> {
    let of =
        |place: &Option<Range<usize>>| place.clone().map(|place| search.text[place].to_owned());
    let skipped = usize::from(search.pattern.groups() > 0);
    places[skipped..].iter().map(of).collect()
}

/// Of the first match, or with `g` of all.
fn all_groups(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (mut found, mut from) = (Vec::new(), Some(0));
    while let Some(start) = from {
        let Some(places) = search.pattern.find_groups(search.text, start)? else { break };
        found.push(texts_of_groups(search, &places));
        let Some(whole) = places[0].clone().filter(|_| search.is_global) else { break };
        from = search.behind(whole.start, whole.end);
    }
    Ok(Answer::Several(found))
}

fn replace(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let wanted = usize::from(!search.is_global);
    replaced(search, Some(0), wanted)
}

/// From a character on, and of a match by its number; of all for 0.
fn replace_nth(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let from = search.start(3)?;
    let wanted = search.number_within(4, "n", 0..=i32::MAX)?.unwrap_or(1); // default: without a number, the first
    replaced(search, from, wanted)
}

fn replaced(search: &mut Search<'_, '_>, begin: Option<usize>, wanted: usize) -> Outcome<Answer> {
    let replacement = search.text_argument(2).to_owned();
    let has_groups = replacement
        .as_bytes()
        .windows(2)
        .any(|two| two[0] == b'\\' && (b'1'..=b'9').contains(&two[1]));
    let (mut made, mut copied, mut from, mut met) = (String::new(), 0, begin, 0);
    while let Some(start) = from {
        let places = match has_groups {
            true => search.pattern.find_groups(search.text, start)?,
            false => search.pattern.find(search.text, start)?.map(|place| vec![Some(place)]),
        };
        let Some(places) = places else { break };
        let Some(whole) = places[0].clone() else { break };
        met += 1;
        if wanted == 0 || met == wanted {
            made.push_str(&search.text[copied..whole.start]);
            put(&mut made, &replacement, search.text, &places);
            copied = whole.end;
        }
        from = if met == wanted { None } else { search.behind(whole.start, whole.end) };
    }
    made.push_str(&search.text[copied..]);
    Ok(Answer::Text(made))
}

/// The replacement, with what `\1` to `\9` and `\&` stand for.
fn put(out: &mut String, replacement: &str, text: &str, places: &Places) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let group = match rest.bytes().next() {
            Some(digit @ b'1'..=b'9') => usize::from(digit - b'0'),
            Some(b'&') => 0,
            other => {
                out.push('\\');
                // A doubled one is one.
                rest = if other == Some(b'\\') { &rest[1..] } else { rest };
                continue;
            }
        };
        rest = &rest[1..];
        if let Some(Some(place)) = places.get(group) {
            out.push_str(&text[place.clone()]);
        }
    }
    out.push_str(rest);
}

fn count(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (mut from, mut found) = (search.start(2)?, 0);
    while let Some(start) = from {
        let Some(place) = search.pattern.find(search.text, start)? else { break };
        found += 1;
        from = search.behind(place.start, place.end);
    }
    Ok(Answer::Number(found))
}

fn nth(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (from, wanted) = (search.start(2)?, search.number(3, "n")?);
    let group = search.number_within(5, "subexpr", 0..=i32::MAX)?.unwrap_or(0); // default: all of the match
    let place = place_of(search, (from, wanted), group)?;
    Ok(place.map_or(Answer::Null, |place| Answer::Text(search.text[place].to_owned())))
}

/// The number of the character that a match begins with, or of the one behind it.
fn place_of_nth(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (from, wanted) = (search.start(2)?, search.number(3, "n")?);
    let is_end = search.number_within(4, "endoption", 0..=1)? == Some(1);
    let group = search.number_within(6, "subexpr", 0..=i32::MAX)?.unwrap_or(0); // default: all of the match
    let Some(place) = place_of(search, (from, wanted), group)? else {
        return Ok(Answer::Number(0));
    };
    let at = if is_end { place.end } else { place.start };
    let before = search.text[..at].chars().count();
    // A text has fewer bytes than numbers go.
    Ok(Answer::Number(i32::try_from(before).map_or(0, |before| before + 1)))
}

/// Where a match by its number is, or a group of it. Where there are no groups, all of a match is the first.
fn place_of(
    search: &mut Search<'_, '_>,
    (mut from, wanted): (Option<usize>, usize),
    group: usize,
) -> Outcome<Option<Range<usize>>> {
    let is_group = group > 0 && search.pattern.groups() > 0;
    let mut met = 0;
    while let Some(start) = from {
        let places = match is_group {
            true => search.pattern.find_groups(search.text, start)?,
            false => search.pattern.find(search.text, start)?.map(|place| vec![Some(place)]),
        };
        let Some(places) = places else { break };
        let Some(whole) = places[0].clone() else { break };
        met += 1;
        if met == wanted {
            return Ok(match (is_group, group) {
                (true, group) => places.get(group).cloned().flatten(),
                (false, 0 | 1) => Some(whole),
                (false, _) => None,
            });
        }
        from = search.behind(whole.start, whole.end);
    }
    Ok(None)
}

/// What lies between matches; empty ones at the ends and right behind another count for none.
fn split(search: &mut Search<'_, '_>) -> Outcome<Answer> {
    let (mut parts, mut from, mut copied, mut last_end) = (Vec::new(), Some(0), 0, 0);
    while let Some(start) = from {
        let Some(place) = search.pattern.find(search.text, start)? else { break };
        if place.start < search.text.len() && place.end > last_end {
            parts.push(Some(search.text[copied..place.start].to_owned()));
            copied = place.end;
        }
        last_end = place.end;
        from = search.behind(place.start, place.end);
    }
    parts.push(Some(search.text[copied..].to_owned()));
    Ok(Answer::Texts(parts))
}

#[cfg(test)]
mod tests;
