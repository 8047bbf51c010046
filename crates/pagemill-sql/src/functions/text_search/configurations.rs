//! What the cluster's catalogs say of configurations of text search and their dictionaries; `ts_parse`.
//!
//! `calls.rs` has the functions that follow them, `dictionaries.rs` what a dictionary does.
//!
//! Source: `src/include/catalog/pg_ts_config.h`, `pg_ts_config_map.h`, `pg_ts_dict.h`, `getTSCurrentConfig` in
//! `src/backend/utils/cache/ts_cache.c`, `src/backend/tsearch/wparser.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, UInt32Type};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::keys::strings;
use super::super::rows::Outcome;
use super::super::sets::{Series, SetCall, made};
use super::super::text_form;
use super::UTF8;
use super::dictionaries::{Dictionary, Server, Template};
use super::documents::{Configuration, KINDS, Treatment};
use super::letters::Letters;
use super::parser::tokens;
use crate::catalog::Catalog;
use crate::error::{Error, SqlState, StatementError};
use crate::system_rows::for_each_row;
use crate::types::PgType;

/// `pg_catalog.default`, the one parser that there is without extensions.
const DEFAULT_PARSER: Oid = Oid(3722);
/// The template `simple`.
const SIMPLE: Oid = Oid(3727);
/// The schema `pg_catalog`.
const PG_CATALOG: Oid = Oid(11);
/// The role that a cluster is made with.
const FIRST_SUPERUSER: Oid = Oid(10);

/// The setting that says which configuration is meant where none is named.
const SETTING: &str = "default_text_search_config";

/// What becomes of tokens, as the catalogs have it.
pub(super) fn configuration(catalog: &Catalog, wanted: Oid) -> Outcome<Configuration> {
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
    // The dictionaries of each kind of tokens, by their numbers.
    let mut mapped: Vec<(i32, i32, Oid)> = Vec::new();
    let columns = ["mapcfg", "maptokentype", "mapseqno", "mapdict"];
    for_each_row(catalog.values(), "pg_ts_config_map", &columns, |row| {
        if row.oid(0) == wanted {
            mapped.push((row.int4(1), row.int4(2), row.oid(3)));
        }
        Ok(())
    })?;
    mapped.sort_unstable();
    let wanted: Vec<Oid> = mapped.iter().map(|(_, _, dictionary)| *dictionary).collect();
    let dictionaries = dictionaries(catalog, &wanted)?;
    let mut treatments = [const { Treatment::new() }; KINDS];
    for (kind, _, number) in mapped {
        let place = usize::try_from(kind).ok().and_then(|kind| treatments.get_mut(kind));
        let dictionary = dictionaries.get(&number).cloned();
        let unknown = || Arc::new(Dictionary::Unknown(number.0.to_string()));
        if let Some(place) = place {
            place.push(dictionary.unwrap_or_else(unknown));
        }
    }
    Ok(Configuration { treatments, letters: Letters::of(catalog)? })
}

/// The dictionaries of these numbers.
pub(super) fn dictionaries(
    catalog: &Catalog,
    wanted: &[Oid],
) -> Result<HashMap<Oid, Arc<Dictionary>>, Error> {
    let database = catalog.database();
    let server = Server {
        major: database.cluster().version().major(),
        is_utf8: database.row().encoding == UTF8,
    };
    let snowball = snowball_template(catalog)?;
    let mut found = HashMap::new();
    let columns = ["oid", "dictname", "dicttemplate", "dictinitoption"];
    for_each_row(catalog.values(), "pg_ts_dict", &columns, |row| {
        let (number, template) = (row.oid(0), row.oid(2));
        if !wanted.contains(&number) {
            return Ok(());
        }
        let name = row.name(1);
        let options = if row.is_null(3) { None } else { row.text(3)? };
        let options = options.unwrap_or_default();
        let template = match template {
            SIMPLE => Some(Template::Simple),
            other => (Some(other) == snowball).then_some(Template::Snowball),
        };
        let known = template.and_then(|of| Dictionary::new(of, &options, server));
        found.insert(number, Arc::new(known.unwrap_or(Dictionary::Unknown(name))));
        Ok(())
    })?;
    Ok(found)
}

/// The template of Snowball's dictionaries, which has no fixed number.
fn snowball_template(catalog: &Catalog) -> Result<Option<Oid>, Error> {
    let mut found = None;
    let columns = ["oid", "tmplname", "tmplnamespace"];
    for_each_row(catalog.values(), "pg_ts_template", &columns, |row| {
        if row.oid(2) == PG_CATALOG && row.name(1) == "snowball" {
            found = Some(row.oid(0));
        }
        Ok(())
    })?;
    Ok(found)
}

/// The configuration that the session's settings say, by its name.
///
/// # Errors
/// When they do not say it, or cannot be read.
pub(super) fn default_name(catalog: &Catalog) -> Result<String, Error> {
    let database = catalog.database();
    let user = catalog.members()?.named(&database.session_user()?);
    let settings = database.settings_of_role(user.unwrap_or(FIRST_SUPERUSER))?;
    let found = settings.into_iter().find(|(name, _)| name == SETTING).map(|(_, value)| value);
    found.filter(|name| !name.is_empty()).ok_or_else(|| {
        let what = format!("text search without a configuration, which no file says ({SETTING})");
        StatementError::unsupported(what).into()
    })
}

/// The number of that configuration.
pub(super) fn default_configuration(catalog: &Catalog) -> Outcome<Oid> {
    let name = default_name(catalog).map_err(|error| error.report())?;
    let (of, carrier) = (PgType::new(oid::REGCONFIG), DataType::UInt32);
    match text_form::read(catalog, of, &carrier, &name).map_err(|error| error.report())? {
        ScalarValue::UInt32(Some(number)) => Ok(Oid(number)),
        _ => Err(StatementError::unsupported("a text search configuration of no number")),
    }
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
    let letters = Letters::of(&call.catalog)?;
    letters.check(text)?;
    let rows =
        tokens(text, &letters)?.into_iter().map(|token| (token.kind as i32, token.text.to_owned()));
    Ok(made(rows.collect(), |(kind, text): (i32, String), out| {
        out[0].int4(kind);
        out[1].text(&text)
    }))
}

/// True for the names by which the default parser is called.
pub(crate) fn is_default_name(name: &str) -> bool {
    matches!(name, "default" | "pg_catalog.default")
}
