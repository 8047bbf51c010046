//! The functions that make vectors and queries of texts by a configuration: `to_tsvector`, `to_tsquery` and its kin, those of
//! JSON documents, and `ts_lexize`.
//!
//! Where no configuration is named, it is the one that the session's settings say.
//!
//! Invariant: a configuration is read from the catalogs once for a batch of rows.
//!
//! Source: `src/backend/tsearch/to_tsany.c`, `dict.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::UInt32Type;
use pagemill_format::Oid;
use pagemill_types::input::tsquery::read_tsquery;
use pagemill_types::jsonb::write_jsonb;

use super::super::keys::{payloads, strings};
use super::super::logic::arrays::texts_payload;
use super::super::rows::{Made, Outcome};
use super::super::{Build, Kernel, KernelCall};
use super::configurations::{configuration, default_configuration, default_name, dictionaries};
use super::dictionaries::Made as MadeOfWord;
use super::documents::{Configuration, Document, vector};
use super::json_texts::{Wanted, texts};
use super::letters::Letters;
use super::phrases::Reading;
use super::query::{Kind, Query};
use super::searches::matches;
use super::vector::Vector;
use super::{headlines, web};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "to_tsvector_byid" | "to_tsvector" => |call, a| each(call, a, vector),
        "to_tsquery_byid" | "to_tsquery" => |call, a| {
            each(call, a, |text, configuration| {
                let mut read = Vec::new();
                let inputs = call.catalog.inputs().map_err(|error| error.report())?;
                read_tsquery(text.as_bytes(), inputs.context(), &mut read)
                    .map_err(|error| unreadable(error.message))?;
                reading(configuration, Kind::Phrase).query(&read, text)
            })
        },
        "plainto_tsquery_byid" | "plainto_tsquery" => {
            |call, a| each(call, a, |text, known| reading(known, Kind::And).plain(text))
        }
        "phraseto_tsquery_byid" | "phraseto_tsquery" => {
            |call, a| each(call, a, |text, known| reading(known, Kind::Phrase).plain(text))
        }
        "websearch_to_tsquery_byid" | "websearch_to_tsquery" => {
            |call, a| each(call, a, |text, known| web::query(text, &reading(known, Kind::Phrase)))
        }
        "ts_lexize" => ts_lexize,
        "ts_match_tt" | "ts_match_tq" => text_matches,
        _ => return of_documents(key).or_else(|| headlines::find(key)),
    })
}

fn of_documents(key: &str) -> Option<Kernel> {
    Some(match key {
        "json_string_to_tsvector_byid" => |call, a| of_document(call, (Some(&a[0]), &a[1], None)),
        "json_string_to_tsvector" => |call, a| of_document(call, (None, &a[0], None)),
        "json_to_tsvector_byid" => |call, a| of_document(call, (Some(&a[0]), &a[1], Some(&a[2]))),
        "json_to_tsvector" => |call, a| of_document(call, (None, &a[0], Some(&a[1]))),
        "jsonb_string_to_tsvector_byid" => |call, a| {
            let printed = printed(&a[1])?;
            of_document(call, (Some(&a[0]), &printed, None))
        },
        "jsonb_string_to_tsvector" => |call, a| {
            let printed = printed(&a[0])?;
            of_document(call, (None, &printed, None))
        },
        "jsonb_to_tsvector_byid" => |call, a| {
            let printed = printed(&a[1])?;
            of_document(call, (Some(&a[0]), &printed, Some(&a[2])))
        },
        "jsonb_to_tsvector" => |call, a| {
            let printed = printed(&a[0])?;
            of_document(call, (None, &printed, Some(&a[1])))
        },
        _ => return None,
    })
}

/// `get_current_ts_config`.
pub(super) fn current(build: &Build<'_>) -> Result<Typed> {
    let name = default_name(build.catalog)?;
    crate::coerce::constant(build.catalog, build.result, &name)
}

fn reading(configuration: &Configuration, between: Kind) -> Reading<'_> {
    Reading { configuration, between }
}

/// Words that are too long by themselves may be many short ones to a configuration.
#[cold]
fn unreadable(message: String) -> StatementError {
    if message.contains("too long") || message.contains("too big") {
        return StatementError::unsupported("a query of so long words");
    }
    let state = match () {
        () if message.starts_with("distance") => SqlState::INVALID_PARAMETER,
        () if message.contains("stack") => SqlState("XX000"),
        () => SqlState::SYNTAX_ERROR,
    };
    StatementError::new(state, message)
}

/// Configurations that were looked up.
pub(super) struct Configurations<'c> {
    call: &'c KernelCall,
    default: Option<u32>,
    known: HashMap<u32, Configuration>,
}

impl<'c> Configurations<'c> {
    pub(super) fn new(call: &'c KernelCall) -> Self {
        Self { call, default: None, known: HashMap::new() }
    }

    /// The configuration of a row: of those that a column names, or the session's. None where it is NULL.
    pub(super) fn of(
        &mut self,
        named: Option<&ArrayRef>,
        row: usize,
    ) -> Outcome<Option<&Configuration>> {
        let number = match (named, self.default) {
            (Some(numbers), _) => {
                let numbers = numbers.as_primitive::<UInt32Type>();
                if numbers.is_null(row) {
                    return Ok(None);
                }
                numbers.value(row)
            }
            (None, Some(known)) => known,
            (None, None) => {
                let found = default_configuration(&self.call.catalog)?.0;
                self.default = Some(found);
                found
            }
        };
        if !self.known.contains_key(&number) {
            let read = configuration(&self.call.catalog, Oid(number))?;
            self.known.insert(number, read);
        }
        Ok(self.known.get(&number))
    }
}

/// A function of a text and a configuration, if one is named.
fn each(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(&str, &Configuration) -> Outcome<Vec<u8>>,
) -> Outcome<ArrayRef> {
    let (named, texts) = match arguments {
        [named, texts] => (Some(named), strings(texts)),
        _ => (None, strings(&arguments[0])),
    };
    let mut configurations = Configurations::new(call);
    let one = |row: usize| {
        if texts.is_null(row) || named.is_some_and(|named| named.is_null(row)) {
            return Ok(None);
        }
        let text = texts.value(row);
        let known = configurations.of(named, row)?;
        known.map(|known| of(text, known)).transpose()
    };
    Made::column((0..texts.len()).map(one).collect::<Outcome<Vec<_>>>()?)
}

/// A column of `jsonb` as texts.
fn printed(documents: &ArrayRef) -> Outcome<ArrayRef> {
    let one = |payload: Option<&[u8]>| payload.map(text_of_jsonb).transpose();
    Made::column(payloads(documents).iter().map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}

pub(super) fn text_of_jsonb(payload: &[u8]) -> Outcome<String> {
    let damaged = |message: String| StatementError::new(SqlState::DATA_CORRUPTED, message);
    let mut text = Vec::new();
    write_jsonb(payload, &mut text).map_err(|error| damaged(error.to_string()))?;
    String::from_utf8(text).map_err(|_| damaged("corrupt jsonb".to_owned()))
}

/// The vectors of documents: which configuration, which document, and which parts of it.
fn of_document(
    call: &KernelCall,
    (named, documents, flags): (Option<&ArrayRef>, &ArrayRef, Option<&ArrayRef>),
) -> Outcome<ArrayRef> {
    let documents = strings(documents);
    let mut configurations = Configurations::new(call);
    let one = |row: usize| {
        let has_no_flags = flags.is_some_and(|flags| flags.is_null(row));
        if documents.is_null(row) || has_no_flags {
            return Ok(None);
        }
        let wanted = match flags {
            Some(flags) => Wanted::read(&text_of_jsonb(payloads(flags).value(row))?)?,
            None => Wanted::STRINGS,
        };
        let Some(known) = configurations.of(named, row)? else {
            return Ok(None);
        };
        let mut document = Document::default();
        for text in texts(documents.value(row), wanted)? {
            document.add_apart(&text, known)?;
        }
        document.vector().map(Some)
    };
    Made::column((0..documents.len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// A text held against a query, or a text as one.
fn text_matches(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let texts = strings(&arguments[0]);
    let mut configurations = Configurations::new(call);
    let one = |row: usize| {
        if texts.is_null(row) || arguments[1].is_null(row) {
            return Ok(None);
        }
        let Some(known) = configurations.of(None, row)? else {
            return Ok(None);
        };
        let made = vector(texts.value(row), known)?;
        let query = match &*call.key {
            "ts_match_tt" => {
                let asked = strings(&arguments[1]).value(row);
                reading(known, Kind::And).plain(asked)?
            }
            _ => payloads(&arguments[1]).value(row).to_vec(),
        };
        matches(Vector::read(&made)?, &Query::read(&query)?).map(Some)
    };
    Made::column((0..texts.len()).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}

/// `ts_lexize`: what a dictionary makes of a word.
fn ts_lexize(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let words = strings(&arguments[1]);
    let wanted: Vec<Oid> = numbers.iter().flatten().map(Oid).collect();
    let known = dictionaries(&call.catalog, &wanted).map_err(|error| error.report())?;
    let letters = Letters::of(&call.catalog)?;
    let one = |(number, word): (Option<u32>, Option<&str>)| {
        let Some((number, word)) = number.zip(word) else {
            return Ok(None);
        };
        letters.check(word)?;
        let missing = || {
            let message = format!("cache lookup failed for text search dictionary {number}");
            StatementError::new(SqlState("XX000"), message)
        };
        let dictionary = known.get(&Oid(number)).ok_or_else(missing)?;
        Ok(match dictionary.made(word, &letters)? {
            MadeOfWord::Nothing => None,
            MadeOfWord::LeftOut => Some(texts_payload(&[])),
            MadeOfWord::Lexeme(lexeme) => Some(texts_payload(&[Some(lexeme)])),
        })
    };
    let made = numbers.iter().zip(words.iter()).map(one);
    Made::column(made.collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}
