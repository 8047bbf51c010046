//! jsonb searched by a jsonpath: `jsonb_path_exists`, `jsonb_path_match`, `jsonb_path_query` and their kin, `@?` and `@@`.
//!
//! A path that is the same in all rows is made ready once.
//!
//! Source: `jsonb_path_exists_internal` and its kin in `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use pagemill_types::time_zone::Zone;

use super::super::keys::payloads;
use super::super::rows::{Made, Outcome};
use super::super::sets::{Series, SetCall, made};
use super::super::text::cases::letters;
use super::super::text::regular::{Alphabet, Options, Pattern};
use super::super::{Implementation, KernelCall};
use super::jsonpath::{LikeRegex, Path, PatternFlags, Query, Settings, quoted};
use crate::catalog::Catalog;
use crate::error::{Error, StatementError};

/// `pg_enc` of UTF-8, and of a database without an encoding.
const UTF8: i32 = 6;
const SQL_ASCII: i32 = 0;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match name_of(key) {
        "jsonb_path_exists" => |call, a| column(call, a, |query| query.finds_any()),
        "jsonb_path_match" => |call, a| column(call, a, |query| query.matches()),
        "jsonb_path_query_array" => |call, a| column(call, a, |query| query.array().map(Some)),
        "jsonb_path_query_first" => |call, a| column(call, a, |query| query.first()),
        _ => return None,
    }))
}

/// What it does, without what it takes.
fn name_of(key: &str) -> &str {
    key.strip_suffix("_tz").or_else(|| key.strip_suffix("_opr")).unwrap_or(key)
}

/// `jsonb_path_query`.
pub(crate) fn items(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let mut paths = Paths::default();
    let found = in_session(&call.catalog, call.key.ends_with("_tz"), |settings| {
        searched((settings, &call.key), (arguments, row), &mut paths, |query| query.all())
    })?;
    Ok(made(found, |item: Vec<u8>, out| out[0].bytes(&item)))
}

fn column<T>(
    call: &KernelCall,
    arguments: &[ArrayRef],
    of: fn(&Query<'_>) -> Outcome<Option<T>>,
) -> Outcome<ArrayRef>
where
    T: Made,
{
    let mut paths = Paths::default();
    // One for all rows, so that a pattern is made ready once.
    in_session(&call.catalog, call.key.ends_with("_tz"), |settings| {
        let one = |row: usize| match arguments.iter().any(|argument| argument.is_null(row)) {
            true => Ok(None),
            false => searched((settings, &call.key), (arguments, row), &mut paths, of),
        };
        T::column((0..arguments[0].len()).map(one).collect::<Outcome<_>>()?)
    })
}

/// The path that was met last.
#[derive(Default)]
pub(super) struct Paths(Option<(Vec<u8>, Path)>);

impl Paths {
    pub(super) fn ready(&mut self, payload: &[u8]) -> Outcome<&Path> {
        if self.0.as_ref().is_none_or(|(known, _)| known != payload) {
            self.0 = Some((payload.to_vec(), Path::new(payload)?));
        }
        match &self.0 {
            Some((_, path)) => Ok(path),
            None => unreachable!("it was put there"), // infallible: just above
        }
    }
}

fn searched<T>(
    (settings, key): (&Settings<'_>, &str),
    (arguments, row): (&[ArrayRef], usize),
    paths: &mut Paths,
    of: fn(&Query<'_>) -> Outcome<T>,
) -> Outcome<T> {
    let is_operator = key.ends_with("_opr");
    let query = Query {
        path: paths.ready(payloads(&arguments[1]).value(row))?,
        document: payloads(&arguments[0]).value(row),
        variables: (!is_operator).then(|| payloads(&arguments[2]).value(row)),
        passed: None,
        is_silent: is_operator || arguments[3].as_boolean().value(row),
        settings,
    };
    of(&query)
}

/// What is done with paths in this session.
///
/// # Errors
/// Those of `of`; in databases whose encoding paths are not followed in.
pub(super) fn in_session<T>(
    catalog: &Catalog,
    uses_zone: bool,
    of: impl FnOnce(&Settings<'_>) -> Outcome<T>,
) -> Outcome<T> {
    let encoding = catalog.database().row().encoding;
    if !matches!(encoding, UTF8 | SQL_ASCII) {
        let what = "a jsonpath in a database whose encoding is not UTF8";
        return Err(StatementError::unsupported(what));
    }
    let gmt = Zone::gmt();
    let patterns = Patterns { catalog, has_encoding: encoding == UTF8, known: RefCell::default() };
    let settings = Settings {
        major: catalog.database().cluster().version().major(),
        uses_zone,
        zone: catalog.time_zone().map_or(&gmt, |zone| zone),
        regex: &patterns,
    };
    of(&settings)
}

/// Patterns of `like_regex`, each of which is made ready once.
struct Patterns<'c> {
    catalog: &'c Catalog,
    has_encoding: bool,
    known: RefCell<HashMap<(String, PatternFlags), Pattern<'c>>>,
}

impl<'c> Patterns<'c> {
    fn made(&self, pattern: &str, flags: PatternFlags) -> Outcome<Pattern<'c>> {
        let options = Options {
            ignores_case: flags.ignores_case,
            stops_at_lines: flags.stops_at_lines,
            anchors_at_lines: flags.anchors_at_lines,
            is_expanded: false,
        };
        let letters = letters(self.catalog, &[]).map_err(|error: Error| error.report())?;
        let alphabet = Alphabet::of_database(self.catalog, letters);
        match flags.is_quoted {
            true => Pattern::with(&quoted(pattern), options, alphabet),
            false => Pattern::with(pattern, options, alphabet),
        }
    }
}

impl LikeRegex for Patterns<'_> {
    fn is_match(&self, pattern: &str, flags: PatternFlags, text: &str) -> Outcome<bool> {
        let is_known = self.has_encoding || (pattern.is_ascii() && text.is_ascii());
        if !is_known {
            let what = "a function of a text beyond ASCII in SQL_ASCII";
            return Err(StatementError::unsupported(what));
        }
        match self.known.borrow_mut().entry((pattern.to_owned(), flags)) {
            Entry::Occupied(mut known) => known.get_mut().is_match(text),
            Entry::Vacant(place) => place.insert(self.made(pattern, flags)?).is_match(text),
        }
    }
}
