//! The order of jsonb, as bytes that sort so.
//!
//! ```text
//! null        0
//! a string    1, its bytes, 0
//! a number    2, the key of the numeric
//! a boolean   3, 0 or 1
//! an array    16, how many elements there are, 0 for a scalar by itself and else 1, the elements
//! an object   17, how many members there are, each with its name as a string and its value
//! ```
//!
//! A scalar by itself is kept as an array of one element, which comes before other arrays of one: so an empty array comes before it.
//!
//! In a database whose texts sort by a locale, the bytes of a string are those of its key there.
//!
//! Invariant: no key begins with another one, so that what follows a part does not come into its order.
//!
//! Source: `compareJsonbContainers` and `compareJsonbScalarValue` in `src/backend/utils/adt/jsonb_util.c`, PostgreSQL 14 to 18.

use std::collections::{BTreeSet, HashMap};

use arrow::array::ArrayRef;
use pagemill_types::input::numeric::read_numeric;

use super::super::numeric::keys::put_key;
use super::super::rows::{Made, Outcome};
use super::super::{KernelCall, collations};
use super::documents::{Kind, elements, members, trimmed, unescaped};
use super::json_changes::each;
use super::members::document;
use crate::error::{SqlState, StatementError};
use crate::types::DEFAULT_COLLATION;

/// How deep a document may be.
const MOST_LEVELS: usize = 1000;

const NULL: u8 = 0;
const STRING: u8 = 1;
const NUMBER: u8 = 2;
const BOOLEAN: u8 = 3;
const ARRAY: u8 = 16;
const OBJECT: u8 = 17;

/// The bytes of a string that sort as it does.
type Strings<'s> = dyn FnMut(&str, &mut Vec<u8>) + 's;

pub(in super::super) fn order_key(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    Made::column(each(arguments, |text, _| key_of(text, &mut by_bytes))?)
}

fn by_bytes(text: &str, key: &mut Vec<u8>) {
    key.extend_from_slice(text.as_bytes());
}

/// The same where texts sort by the locale of the database, of which all strings are asked at once.
pub(in super::super) fn locale_order_key(
    call: &KernelCall,
    arguments: &[ArrayRef],
) -> Outcome<ArrayRef> {
    let locale = collations::locale(&call.catalog, DEFAULT_COLLATION);
    let locale = locale.map_err(|why| StatementError::unsupported(unknown_order(&why)))?;
    let mut strings = BTreeSet::new();
    for row in (0..arguments[0].len()).filter(|row| !arguments[0].is_null(*row)) {
        let mut noted = |text: &str, _: &mut Vec<u8>| _ = strings.insert(text.to_owned());
        key_of(&document(&arguments[0], row)?.0, &mut noted)?;
    }
    let texts: Vec<Option<&str>> = strings.iter().map(|text| Some(text.as_str())).collect();
    let keys = locale.keys(&texts)?;
    let keys: HashMap<&str, Vec<u8>> =
        texts.iter().zip(keys).filter_map(|(text, key)| (*text).zip(key)).collect();
    Made::column(each(arguments, |text, _| {
        key_of(text, &mut |text, key| key.extend_from_slice(&keys[text]))
    })?)
}

/// That the order of documents is not known, for a reason.
pub(in super::super) fn unknown_order(why: &str) -> String {
    format!("the order of type jsonb, whose texts sort by a locale ({why}),")
}

/// The key of a jsonb by its text.
fn key_of(text: &str, strings: &mut Strings<'_>) -> Outcome<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len() + 8);
    if !matches!(Kind::of(text), Kind::Array | Kind::Object) {
        key.push(ARRAY);
        put_count(1, &mut key);
        key.push(0);
    }
    put_value((text, 0), &mut key, strings)?;
    Ok(key)
}

fn put_count(count: usize, key: &mut Vec<u8>) {
    key.extend((count as u64).to_be_bytes());
}

/// A value, and how deep it lies.
fn put_value(
    (text, level): (&str, usize),
    key: &mut Vec<u8>,
    strings: &mut Strings<'_>,
) -> Outcome<()> {
    if level > MOST_LEVELS {
        return Err(StatementError::unsupported("the order of documents so deep"));
    }
    match Kind::of(text) {
        Kind::Null => key.push(NULL),
        Kind::String => put_string(&unescaped(text)?, key, strings),
        Kind::Number => {
            key.push(NUMBER);
            put_number(trimmed(text), key)?;
        }
        Kind::Boolean => key.extend([BOOLEAN, u8::from(trimmed(text) == "true")]),
        Kind::Array => {
            let parts = elements(text);
            key.push(ARRAY);
            put_count(parts.len(), key);
            key.push(1);
            for part in parts {
                put_value((part, level + 1), key, strings)?;
            }
        }
        Kind::Object => {
            let parts = members(text)?;
            key.push(OBJECT);
            put_count(parts.len(), key);
            for (name, value) in parts {
                put_string(&name, key, strings);
                put_value((value, level + 1), key, strings)?;
            }
        }
    }
    Ok(())
}

/// No string has a zero in it.
fn put_string(text: &str, key: &mut Vec<u8>, strings: &mut Strings<'_>) {
    key.push(STRING);
    strings(text, key);
    key.push(0);
}

fn put_number(digits: &str, key: &mut Vec<u8>) -> Outcome<()> {
    let mut payload = Vec::new();
    read_numeric(digits.as_bytes(), -1, &mut payload)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.message))?;
    put_key(&payload, key)
}

#[cfg(test)]
mod tests {
    use super::{by_bytes, key_of};

    fn key(text: &str) -> Vec<u8> {
        key_of(text, &mut by_bytes).unwrap()
    }

    /// As a server of PostgreSQL 18 has them in order.
    const SORTED: &[&str] = &[
        "[]",
        "null",
        r#""""#,
        r#""a""#,
        r#""a b""#,
        r#""aa""#,
        r#""b""#,
        "-1000000",
        "-1.5",
        "-1",
        "0",
        "0.001",
        "1",
        "1.01",
        "20",
        "false",
        "true",
        "[null]",
        r#"["a"]"#,
        "[1]",
        "[[]]",
        "[[1]]",
        "[{}]",
        "[1, 2]",
        "[true, 1]",
        "{}",
        r#"{"a": null}"#,
        r#"{"a": "x"}"#,
        r#"{"b": null}"#,
        r#"{"a": 1, "b": 2}"#,
    ];

    #[test]
    fn documents_sort_as_servers_sort_them() {
        let keys: Vec<Vec<u8>> = SORTED.iter().map(|text| key(text)).collect();
        for (pair, texts) in keys.windows(2).zip(SORTED.windows(2)) {
            assert!(pair[0] < pair[1], "{texts:?}");
        }
    }

    #[test]
    fn zeros_at_the_end_do_not_count() {
        assert_eq!(key("[1.0, 20]"), key("[1.00, 20.0]"));
    }
}
