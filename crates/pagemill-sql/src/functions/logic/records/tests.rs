//! Rows filled from documents as real servers fill them.
//!
//! `server_answers.tsv` has what servers of PostgreSQL 14 to 18 gave, all the same, for the types that [`types`] makes as they were
//! made there; here a value is its text.
//!
//! Source: servers of PostgreSQL 14 to 18.

use pagemill_types::composite::quote_field;
use pagemill_types::input::integer::read_int4;

use super::super::super::rows::Outcome;
use super::super::documents::{Kind, elements, require_characters};
use super::fill::{Filler, Makes, Parts, Target, Value, wrong};
use crate::error::{SqlState, StatementError};

/// Lines of: json or jsonb; row or rows; the row that was given, its fields parted by `|`; the document; the answer.
const ANSWERS: &str = include_str!("server_answers.tsv");

const INT4: u32 = 23;
const TEXT: u32 = 25;
const JSON: u32 = 114;
const POSITIVE: u32 = 1;
const PAIR: u32 = 2;

/// `create domain positive as int check (value > 0); create type pair as (x int, y text);`
/// `create type filled as (i int, ia int[], t text, ta text[], js json, p positive, pa positive[], r pair, ra pair[])`
fn types() -> Vec<(String, Target)> {
    let plain = |oid, parts| Target { oid, modifier: -1, parts };
    let array = |of: &Target| plain(0, Parts::Elements(Box::new(of.clone())));
    let (int, text) = (plain(INT4, Parts::None), plain(TEXT, Parts::None));
    let positive = plain(POSITIVE, Parts::Domain(Box::new(int.clone())));
    let fields = vec![("x".to_owned(), int.clone()), ("y".to_owned(), text.clone())];
    let pair = plain(PAIR, Parts::Fields(fields));
    let fields = [
        ("i", int.clone()),
        ("ia", array(&int)),
        ("t", text.clone()),
        ("ta", array(&text)),
        ("js", plain(JSON, Parts::Document)),
        ("p", positive.clone()),
        ("pa", array(&positive)),
        ("r", pair.clone()),
        ("ra", array(&pair)),
    ];
    fields.into_iter().map(|(name, target)| (name.to_owned(), target)).collect()
}

/// Makes values of these types that are their texts.
struct Texts;

fn bytes(text: String) -> Vec<u8> {
    text.into_bytes()
}

impl Makes for Texts {
    fn read(&mut self, target: &Target, text: &str) -> Outcome<Vec<u8>> {
        if target.oid != INT4 {
            return Ok(bytes(text.to_owned()));
        }
        let mut payload = Vec::new();
        read_int4(text.as_bytes(), -1, &mut payload)
            .map_err(|error| StatementError::new(SqlState::INVALID_TEXT, error.message))?;
        let number = payload.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
        Ok(bytes(number.unwrap_or_default().to_string()))
    }

    fn array(&mut self, _: &Target, lengths: &[usize], elements: Vec<Value>) -> Outcome<Vec<u8>> {
        let quoted = |element: Value| match element {
            None => "NULL".to_owned(),
            Some(bytes) => {
                let text = String::from_utf8(bytes).unwrap_or_default();
                let special = |c: char| "{}\",\\".contains(c) || c.is_ascii_whitespace();
                let is_plain = !text.is_empty() && !text.contains(special);
                match is_plain && !text.eq_ignore_ascii_case("null") {
                    true => text,
                    false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
                }
            }
        };
        if elements.is_empty() {
            return Ok(b"{}".to_vec());
        }
        let mut texts: Vec<String> = elements.into_iter().map(quoted).collect();
        for length in lengths.iter().rev() {
            texts = texts.chunks(*length).map(|part| format!("{{{}}}", part.join(","))).collect();
        }
        Ok(bytes(texts.concat()))
    }

    fn row(&mut self, _: &Target, fields: Vec<Value>) -> Outcome<Vec<u8>> {
        Ok(bytes(shown(&fields)))
    }

    fn fields(&mut self, _: &Target, row: &[u8]) -> Outcome<Vec<Value>> {
        let text = String::from_utf8_lossy(row).into_owned();
        let text = text.trim_start_matches('(').trim_end_matches(')');
        Ok(text.split(',').map(given).collect())
    }

    fn accept(&mut self, _: &Target, value: Option<&[u8]>) -> Outcome<()> {
        if value.is_none_or(|value| !value.starts_with(b"-") && value != b"0") {
            return Ok(());
        }
        let message = "value for domain positive violates check constraint \"positive_check\"";
        Err(StatementError::new(SqlState("23514"), message))
    }
}

fn given(field: &str) -> Value {
    (!field.is_empty()).then(|| bytes(field.to_owned()))
}

fn shown(fields: &[Value]) -> String {
    let mut out = b"(".to_vec();
    for (number, field) in fields.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        if let Some(field) = field {
            let start = out.len();
            out.extend_from_slice(field);
            quote_field(&mut out, start);
        }
    }
    out.push(b')');
    String::from_utf8(out).unwrap_or_default()
}

fn answered(is_binary: bool, is_set: bool, before: &str, document: &str) -> Outcome<String> {
    let (fields, mut makes) = (types(), Texts);
    let before: Option<Vec<Value>> =
        (!before.is_empty()).then(|| before.split('|').map(given).collect());
    let mut filler = Filler::new(&mut makes);
    let check = |part: &str| if is_binary { Ok(()) } else { require_characters(part) };
    if !is_set {
        if Kind::of(document) != Kind::Array {
            check(document)?;
        }
        return filler.row(&fields, document, before).map(|row| shown(&row));
    }
    let checked = |part: &str| match Kind::of(part) {
        Kind::Object => check(part),
        _ => Err(wrong("argument must be an array of objects".to_owned())),
    };
    let rows = filler.rows((&fields, before.as_deref()), &elements(document), checked)?;
    Ok(rows.iter().map(|row| shown(row)).collect::<Vec<_>>().join(";"))
}

#[test]
fn rows_are_filled_as_servers_fill_them() {
    let mut wrong = Vec::new();
    for line in ANSWERS.lines() {
        let [kind, set, before, document, wanted] =
            line.split('\t').collect::<Vec<_>>()[..].try_into().unwrap();
        let found = match answered(kind == "jsonb", set == "rows", before, document) {
            Ok(found) => found,
            Err(error) => format!("! {}", error.message),
        };
        if found != wanted {
            wrong.push(format!("{line}\n  here: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_too_deep_is_refused() {
    let deep = format!("{{\"ia\": {}{}}}", "[".repeat(2000), "]".repeat(2000));
    let error = answered(true, false, "", &deep).unwrap_err();
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    let seven = r#"{"ia": [[[[[[[1]]]]]]]}"#;
    assert_eq!(answered(false, false, "", seven).unwrap_err().state, SqlState("54000"));
}
