//! The kinds of tokens that a text is cut into.
//!
//! Source: `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;

use super::super::keys::strings;
use super::super::rows::Outcome;
use super::super::text_search::configurations::is_default_name;
use super::{Series, SetCall, made};
use crate::error::StatementError;

/// `pg_catalog.default`, the one parser that there is without extensions.
const DEFAULT_PARSER: u32 = 3722;

/// Numbered from 1.
const TOKENS: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

pub(super) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let is_default = match &*call.key {
        "ts_token_type_byid" => {
            arguments[0].as_primitive::<UInt32Type>().value(row) == DEFAULT_PARSER
        }
        _ => is_default_name(strings(&arguments[0]).value(row)),
    };
    if !is_default {
        return Err(StatementError::unsupported("a text search parser of an extension"));
    }
    Ok(made((1..).zip(TOKENS).collect(), |(number, (alias, description)), out| {
        out[0].int4(number);
        out[1].text(alias)?;
        out[2].text(description)
    }))
}
