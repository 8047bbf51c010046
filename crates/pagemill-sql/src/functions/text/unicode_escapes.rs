//! `unistr`: a text with escapes for code points made one with the characters.
//!
//! Source: `unistr` in `src/backend/utils/adt/varlena.c`, `src/include/mb/pg_wchar.h`, PostgreSQL 14 to 18.

use crate::error::{SqlState, StatementError};

type Outcome<T> = Result<T, StatementError>;

/// The forms of an escape: what is behind the backslash, and how many digits follow.
const FORMS: [(&str, usize); 4] = [("", 4), ("u", 4), ("+", 6), ("U", 8)];

/// The first of two halves of a code point that are still to come together, if one is open.
#[derive(Default)]
struct Made {
    text: String,
    half: Option<u32>,
}

pub(super) fn unescaped(text: &str) -> Outcome<String> {
    let mut made = Made { text: String::with_capacity(text.len()), half: None };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        if first != '\\' {
            made.plain(first)?;
            rest = behind;
            continue;
        }
        if let Some(after) = behind.strip_prefix('\\') {
            made.plain('\\')?;
            rest = after;
            continue;
        }
        let (code, after) =
            FORMS.iter().find_map(|form| escape(behind, *form)).ok_or_else(|| {
                let forms = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.";
                StatementError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
                    .with_hint(forms)
            })?;
        made.code(code)?;
        rest = after;
    }
    match made.half {
        Some(_) => Err(invalid_pair()),
        None => Ok(made.text),
    }
}

/// The code point of an escape of this form, and what is behind it.
fn escape<'t>(text: &'t str, (letter, digits): (&str, usize)) -> Option<(u32, &'t str)> {
    let rest = text.strip_prefix(letter)?;
    let (number, behind) = rest.split_at_checked(digits)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((u32::from_str_radix(number, 16).ok().filter(|_| is_number)?, behind))
}

#[cold]
fn invalid_pair() -> StatementError {
    StatementError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

impl Made {
    fn plain(&mut self, character: char) -> Outcome<()> {
        if self.half.is_some() {
            return Err(invalid_pair());
        }
        self.text.push(character);
        Ok(())
    }

    /// A code point, or half of one.
    fn code(&mut self, code: u32) -> Outcome<()> {
        if !(1..=0x10_FFFF).contains(&code) {
            let message = format!("invalid Unicode code point: {code:04X}");
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        let code = match (self.half.take(), code) {
            (Some(first), 0xDC00..=0xDFFF) => ((first & 0x3FF) << 10) + 0x1_0000 + (code & 0x3FF),
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(invalid_pair()),
            (None, 0xD800..=0xDBFF) => {
                self.half = Some(code);
                return Ok(());
            }
            (None, _) => code,
        };
        self.text.push(char::from_u32(code).ok_or_else(invalid_pair)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As servers of PostgreSQL 14 to 18 answer.
    #[test]
    fn escapes_are_code_points() {
        for (text, wanted) in [
            (r"\0064at\+0000610", "data0"),
            (r"d\u0061t\U000000610", "data0"),
            (r"a\\b", r"a\b"),
            (r"\d83d\de04\+00d83d\u\u", ""),
            (r"\D83D\uDE04", "\u{1F604}"),
            ("ü", "ü"),
        ] {
            match wanted {
                "" => assert!(unescaped(text).is_err(), "{text}"),
                _ => assert_eq!(unescaped(text).unwrap(), wanted, "{text}"),
            }
        }
    }

    #[test]
    fn what_is_no_code_point_is_an_error() {
        for (text, message, state) in [
            (r"wrong: \db99", "invalid Unicode surrogate pair", "42601"),
            (r"wrong: \db99\0061", "invalid Unicode surrogate pair", "42601"),
            (r"wrong: \db99\\", "invalid Unicode surrogate pair", "42601"),
            (r"wrong: \dc00", "invalid Unicode surrogate pair", "42601"),
            (r"wrong: \+2FFFFF", "invalid Unicode code point: 2FFFFF", "22023"),
            (r"\0000", "invalid Unicode code point: 0000", "22023"),
            (r"\UFFFFFFFF", "invalid Unicode code point: FFFFFFFF", "22023"),
            (r"wrong: \xyz", "invalid Unicode escape", "42601"),
            (r"\12é4", "invalid Unicode escape", "42601"),
            (r"\", "invalid Unicode escape", "42601"),
        ] {
            let error = unescaped(text).unwrap_err();
            assert_eq!((&*error.message, error.state.0), (message, state), "{text}");
        }
    }
}
