//! Types by their names as SQL spells them: `integer`, `character varying(5)[]`, `s."My type"`.
//!
//! Type modifiers are numbers, and passed over but for those that no type can have. What is no type name at all is refused
//! with fewer words than the server has, whose grammar says at which word it stopped.
//!
//! Source: `Typename` in `src/backend/parser/gram.y`, `parseTypeString` in `parse_type.c`, `anychar_typmodin` in
//! `src/backend/utils/adt/varchar.c`, `anybit_typmodin` in `varbit.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_types::input::InputError;

use super::identifiers::{Names, identifier, skip_space, trim_space, truncate};
use super::{NameResult, NameSearch, absent, ready};
use crate::names::PG_CATALOG;

/// Spellings of several words, or of one that is no name of the type, and the names; the longer
/// ones first.
const SPELLINGS: [(&str, &str); 35] = [
    ("national character varying", "varchar"),
    ("national char varying", "varchar"),
    ("timestamp without time zone", "timestamp"),
    ("timestamp with time zone", "timestamptz"),
    ("time without time zone", "time"),
    ("time with time zone", "timetz"),
    ("character varying", "varchar"),
    ("national character", "bpchar"),
    ("double precision", "float8"),
    ("national char", "bpchar"),
    ("nchar varying", "varchar"),
    ("char varying", "varchar"),
    ("bit varying", "varbit"),
    ("interval day to hour", "interval"),
    ("interval day to minute", "interval"),
    ("interval day to second", "interval"),
    ("interval hour to minute", "interval"),
    ("interval hour to second", "interval"),
    ("interval minute to second", "interval"),
    ("interval year to month", "interval"),
    ("character", "bpchar"),
    ("timestamp", "timestamp"),
    ("smallint", "int2"),
    ("interval", "interval"),
    ("integer", "int4"),
    ("decimal", "numeric"),
    ("boolean", "bool"),
    ("bigint", "int8"),
    ("float", "float8"),
    ("nchar", "bpchar"),
    ("real", "float4"),
    ("char", "bpchar"),
    ("int", "int4"),
    ("dec", "numeric"),
    ("bit", "bit"),
];

/// `MaxAttrSize` in src/include/access/htup_details.h.
const MOST_CHARACTERS: i32 = 10 * 1024 * 1024;
/// `MaxAttrSize * BITS_PER_BYTE`.
const MOST_BITS: i32 = MOST_CHARACTERS * 8;

impl NameSearch {
    pub(super) fn find_type(&self, text: &[u8]) -> NameResult {
        let invalid =
            || InputError::new(format!("invalid type name \"{}\"", String::from_utf8_lossy(text)));
        let trimmed = trim_space(text);
        let (element, is_array) = without_bounds(trimmed);
        let words = Words::of(element).ok_or_else(invalid)?;
        words.check_modifier(invalid)?;
        let found = match words.builtin() {
            Some(name) => self.first_type(Some(PG_CATALOG), name.as_bytes())?,
            None => self.named_type(words, is_array).transpose().ok_or_else(invalid)??,
        };
        let shown = || String::from_utf8_lossy(element).into_owned();
        if !is_array {
            return found.ok_or_else(|| absent("type", shown().as_bytes()));
        }
        let array = found.and_then(|found| self.array_of(found));
        array.ok_or_else(|| absent("type", format!("{}[]", shown()).as_bytes()))
    }

    fn array_of(&self, element: Oid) -> Option<Oid> {
        self.types().ok()?.arrays.get(&element).copied()
    }

    fn first_type(&self, schema: Option<Oid>, name: &[u8]) -> Result<Option<Oid>, InputError> {
        self.first(&ready(self.types())?.by_name, schema, name)
    }

    /// A type under its own name; `None` where that is no name.
    fn named_type(&self, words: Words, is_array: bool) -> Result<Option<Option<Oid>>, InputError> {
        let mut parts = Vec::new();
        let mut rest = words.text.as_slice();
        loop {
            let Some((mut part, after)) = identifier(rest, |byte| matches!(byte, b'.' | b'('))
            else {
                return Ok(None);
            };
            let is_quoted = rest.starts_with(b"\"");
            if part.is_empty() || !is_quoted && !is_bare_name(&part) {
                return Ok(None);
            }
            truncate(&mut part, self.settings.encoding);
            parts.push(part);
            match skip_space(after).strip_prefix(b".") {
                Some(after) => rest = skip_space(after),
                None if after.is_empty() => break,
                None => return Ok(None),
            }
        }
        let names = Names::of(parts);
        match self.find_named(&ready(self.types())?.by_name, &names)? {
            Some(found) => Ok(Some(Some(found))),
            None => {
                let brackets = if is_array { "[]" } else { "" };
                Err(absent("type", format!("{}{brackets}", names.joined()).as_bytes()))
            }
        }
    }
}

/// True for what needs no quotes: letters, digits that are not the first, `_` and `$`, and whatever is not ASCII (`identifier` in
/// src/backend/parser/scan.l).
fn is_bare_name(name: &[u8]) -> bool {
    let starts = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
    let goes_on = |byte: &u8| starts(*byte) || byte.is_ascii_digit() || *byte == b'$';
    name.first().is_some_and(|first| starts(*first)) && name.iter().all(goes_on)
}

/// A type's name without the array bounds behind it, and whether there were any.
fn without_bounds(text: &[u8]) -> (&[u8], bool) {
    let mut element = text;
    let mut is_array = false;
    while let Some(open) = element.strip_suffix(b"]") {
        let digits = |byte: &&u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
        let inside = open.iter().rev().take_while(digits).count();
        match open.get(..open.len() - inside).and_then(|rest| rest.strip_suffix(b"[")) {
            Some(rest) => element = trim_space(rest),
            None => break,
        }
        is_array = true;
    }
    if let Some(rest) = strip_word(element, b"array") {
        return (rest, true);
    }
    (element, is_array)
}

fn strip_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (rest, last) = text.split_at_checked(text.len().checked_sub(word.len())?)?;
    let apart = rest.last().is_some_and(u8::is_ascii_whitespace);
    (apart && last.eq_ignore_ascii_case(word)).then(|| trim_space(rest))
}

/// A type's name with one space between its words, and without a modifier.
struct Words {
    text: Vec<u8>,
    /// The modifier's text, if there was one.
    modifier: Option<Vec<u8>>,
}

impl Words {
    fn of(text: &[u8]) -> Option<Self> {
        let (mut words, mut quoted, mut depth) = (Vec::new(), false, 0_usize);
        let mut modifier = None;
        for &byte in text {
            quoted ^= byte == b'"' && depth == 0;
            match byte {
                b'(' if !quoted => {
                    depth += 1;
                    modifier.get_or_insert_with(Vec::new);
                }
                b')' if !quoted => depth = depth.checked_sub(1)?,
                _ if depth > 0 => modifier.get_or_insert_with(Vec::new).push(byte),
                _ if !quoted && byte.is_ascii_whitespace() => {
                    if words.last() != Some(&b' ') {
                        words.push(b' ');
                    }
                }
                _ => words.push(byte),
            }
        }
        let text = trim_space(&words).to_vec();
        (depth == 0 && !quoted && !text.is_empty()).then_some(Self { text, modifier })
    }

    /// The name of the built-in type that the words spell.
    fn builtin(&self) -> Option<&'static str> {
        let spelled =
            |(spelling, _): &&(&str, &str)| self.text.eq_ignore_ascii_case(spelling.as_bytes());
        let (spelling, name) = SPELLINGS.iter().find(spelled)?;
        match (*spelling, self.numbers().as_deref()) {
            ("float", Some([1..=24])) => Some("float4"),
            _ => Some(name),
        }
    }

    /// The numbers of the modifier; none where something else is among them.
    fn numbers(&self) -> Option<Vec<i32>> {
        let text = std::str::from_utf8(self.modifier.as_deref()?).ok()?;
        text.split(',').map(|number| number.trim().parse().ok()).collect()
    }

    /// Refuses modifiers that are no numbers, and those that the built-in types of one number refuse.
    fn check_modifier(&self, invalid: impl Fn() -> InputError) -> Result<(), InputError> {
        if self.modifier.is_none() {
            return Ok(());
        }
        let numbers = self.numbers().ok_or_else(invalid)?;
        let &[number] = numbers.as_slice() else { return Ok(()) };
        let why = match self.text.eq_ignore_ascii_case(b"float") {
            true => wrong_precision(number),
            false => {
                let own = || std::str::from_utf8(&self.text).ok();
                self.builtin().or_else(own).and_then(|name| wrong_length(name, number))
            }
        };
        why.map_or(Ok(()), |why| Err(InputError::new(why)))
    }
}

/// Why `float` has no such precision.
fn wrong_precision(bits: i32) -> Option<String> {
    match bits {
        ..1 => Some("precision for type float must be at least 1 bit".into()),
        54.. => Some("precision for type float must be less than 54 bits".into()),
        _ => None,
    }
}

/// Why a built-in type has no such length.
fn wrong_length(name: &str, length: i32) -> Option<String> {
    let (shown, most) = match name {
        "varchar" => ("varchar", MOST_CHARACTERS),
        "bpchar" => ("char", MOST_CHARACTERS),
        "bit" => ("bit", MOST_BITS),
        "varbit" => ("varbit", MOST_BITS),
        _ => return None,
    };
    match length {
        ..1 => Some(format!("length for type {shown} must be at least 1")),
        length if length > most => Some(format!("length for type {shown} cannot exceed {most}")),
        _ => None,
    }
}
