//! What the cluster's catalogs say of configurations of text search, and the functions that follow them: `to_tsvector`,
//! `to_tsquery` and its kin, `ts_parse`.
//!
//! A dictionary is known here if it is made of the template `simple` without options. What any other does follows from files
//! that are not among a cluster's.
//!
//! Invariant: what is no ASCII is answered only where the C locale says what letters are, to the server's parser and to its
//! dictionary.
//!
//! Source: `src/include/catalog/pg_ts_config.h`, `pg_ts_config_map.h`, `pg_ts_dict.h`, `src/backend/tsearch/to_tsany.c`,
//! `wparser.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::UInt32Type;
use pagemill_format::Oid;
use pagemill_types::input::tsquery::read_tsquery;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::sets::{Series, SetCall, made};
use super::super::text::cases::{Letters, has_other_i, letters};
use super::super::{Kernel, KernelCall};
use super::documents::{Configuration, KINDS, Treatment, vector};
use super::parser::tokens;
use super::phrases::Reading;
use super::query::Kind;
use super::{UTF8, web};
use crate::catalog::Catalog;
use crate::error::{Error, SqlState, StatementError};
use crate::system_rows::for_each_row;
use crate::types::DEFAULT_COLLATION;

/// `pg_catalog.default`, the one parser that there is without extensions.
const DEFAULT_PARSER: Oid = Oid(3722);
/// The template `simple`.
const SIMPLE: Oid = Oid(3727);

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "to_tsvector_byid" => |call, a| each(call, a, vector),
        "to_tsquery_byid" => |call, a| {
            each(call, a, |text, configuration| {
                let mut read = Vec::new();
                let inputs = call.catalog.inputs().map_err(|error| error.report())?;
                read_tsquery(text.as_bytes(), inputs.context(), &mut read)
                    .map_err(|error| unreadable(error.message))?;
                reading(configuration, Kind::Phrase).query(&read, text)
            })
        },
        "plainto_tsquery_byid" => {
            |call, a| each(call, a, |text, known| reading(known, Kind::And).plain(text))
        }
        "phraseto_tsquery_byid" => {
            |call, a| each(call, a, |text, known| reading(known, Kind::Phrase).plain(text))
        }
        "websearch_to_tsquery_byid" => {
            |call, a| each(call, a, |text, known| web::query(text, &reading(known, Kind::Phrase)))
        }
        _ => return None,
    })
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

/// A function of a configuration and a text.
fn each(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: impl Fn(&str, &Configuration) -> Outcome<Vec<u8>>,
) -> Outcome<ArrayRef> {
    let (numbers, texts) = (arguments[0].as_primitive::<UInt32Type>(), strings(&arguments[1]));
    let mut known: HashMap<u32, Configuration> = HashMap::new();
    let one = |row: usize| {
        if numbers.is_null(row) || texts.is_null(row) {
            return Ok(None);
        }
        let (number, text) = (numbers.value(row), texts.value(row));
        check_letters(&call.catalog, text)?;
        let configuration = match known.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(configuration(&call.catalog, Oid(number))?),
        };
        of(text, configuration).map(Some)
    };
    Made::column((0..texts.len()).map(one).collect::<Outcome<Vec<_>>>()?)
}

/// Refuses texts with letters that are not known to be the server's.
fn check_letters(catalog: &Catalog, text: &str) -> Outcome<()> {
    let known = letters(catalog, &[]).map_err(|error: Error| error.report())?;
    let Some(default) = catalog.collation(DEFAULT_COLLATION) else {
        return Err(StatementError::unsupported("a text in a database of an unknown locale"));
    };
    let is_c = matches!(default.letters.as_str(), "C" | "POSIX");
    let is_known = match text.is_ascii() {
        true => !has_other_i(&default.letters),
        false => {
            let encoding = catalog.database().row().encoding;
            is_c && known == Letters::Ascii && encoding == UTF8
        }
    };
    match is_known {
        true => Ok(()),
        false => Err(StatementError::unsupported(format!(
            "text search of what is no ASCII in locale \"{}\"",
            default.letters
        ))),
    }
}

/// What becomes of tokens, as the catalogs have it.
fn configuration(catalog: &Catalog, wanted: Oid) -> Outcome<Configuration> {
    read_configuration(catalog, wanted).map_err(|error| error.report())
}

fn read_configuration(catalog: &Catalog, wanted: Oid) -> Result<Configuration, Error> {
    let mut parser = None;
    for_each_row(catalog.values(), "pg_ts_config", &["oid", "cfgparser"], |row| {
        if row.oid(0) == wanted {
            parser = Some(row.oid(1));
        }
        Ok(())
    })?;
    match parser {
        Some(DEFAULT_PARSER) => {}
        Some(_) => {
            return Err(StatementError::unsupported("a text search parser of an extension").into());
        }
        None => {
            let message = format!("cache lookup failed for text search configuration {}", wanted.0);
            return Err(StatementError::new(SqlState("XX000"), message).into());
        }
    }
    // Of each kind of tokens the first dictionary, which leaves nothing to those behind it if it is known.
    let mut first: HashMap<i32, (i32, Oid)> = HashMap::new();
    let columns = ["mapcfg", "maptokentype", "mapseqno", "mapdict"];
    for_each_row(catalog.values(), "pg_ts_config_map", &columns, |row| {
        if row.oid(0) == wanted {
            let found = (row.int4(2), row.oid(3));
            first
                .entry(row.int4(1))
                .and_modify(|known| *known = (*known).min(found))
                .or_insert(found);
        }
        Ok(())
    })?;
    let dictionaries = dictionaries(catalog)?;
    let treatment = |kind: i32| match first.get(&kind).map(|(_, dictionary)| dictionary) {
        None => Treatment::Skipped,
        Some(dictionary) => match dictionaries.get(dictionary) {
            Some(known) => known.clone(),
            None => Treatment::Unknown(dictionary.0.to_string()),
        },
    };
    let mut configuration = [const { Treatment::Skipped }; KINDS];
    (0..).zip(&mut configuration).for_each(|(kind, place)| *place = treatment(kind));
    Ok(configuration)
}

fn dictionaries(catalog: &Catalog) -> Result<HashMap<Oid, Treatment>, Error> {
    let mut found = HashMap::new();
    let columns = ["oid", "dictname", "dicttemplate", "dictinitoption"];
    for_each_row(catalog.values(), "pg_ts_dict", &columns, |row| {
        let treatment = match row.oid(2) == SIMPLE && row.is_null(3) {
            true => Treatment::Simple,
            false => Treatment::Unknown(row.name(1)),
        };
        found.insert(row.oid(0), treatment);
        Ok(())
    })?;
    Ok(found)
}

/// `ts_parse`: the tokens of a text.
pub(crate) fn parsed(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let is_default = match &*call.key {
        "ts_parse_byid" => arguments[0].as_primitive::<UInt32Type>().value(row) == DEFAULT_PARSER.0,
        _ => is_default_name(strings(&arguments[0]).value(row)),
    };
    if !is_default {
        return Err(StatementError::unsupported("another text search parser than the default one"));
    }
    let text = strings(&arguments[1]).value(row);
    check_letters(&call.catalog, text)?;
    let rows = tokens(text)?.into_iter().map(|token| (token.kind as i32, token.text.to_owned()));
    Ok(made(rows.collect(), |(kind, text): (i32, String), out| {
        out[0].int4(kind);
        out[1].text(&text)
    }))
}

/// True for the names by which the default parser is called.
pub(crate) fn is_default_name(name: &str) -> bool {
    matches!(name, "default" | "pg_catalog.default")
}
