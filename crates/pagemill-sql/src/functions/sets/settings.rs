//! Rows of `pg_settings`: all settings of the cluster's version, with their values.
//!
//! Invariant: the one argument has what the session's client set. What a setting is for is told of few, in words that every
//! version has.
//!
//! Source: `show_all_settings` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;

use super::super::keys::strings;
use super::super::rows::Outcome;
use super::super::system::statement_error;
use super::super::text_form::read;
use super::{Cells, Series, SetCall, made};
use crate::server_settings::{Fact, ServerSettings, SettingValue, decoded};

/// What a row has.
pub(super) const COLUMNS: [&str; 17] = [
    "name",
    "setting",
    "unit",
    "category",
    "short_desc",
    "extra_desc",
    "context",
    "vartype",
    "source",
    "min_val",
    "max_val",
    "enumvals",
    "boot_val",
    "reset_val",
    "sourcefile",
    "sourceline",
    "pending_restart",
];

/// The places of columns that are no texts.
const ENUMVALS: usize = 11;
const PENDING_RESTART: usize = 16;

/// What settings are for, of those that drivers show.
const ABOUT: [(&str, &str); 6] = [
    ("block_size", "Shows the size of a disk block."),
    ("integer_datetimes", "Shows whether datetimes are integer based."),
    ("max_function_args", "Shows the maximum number of function arguments."),
    ("max_identifier_length", "Shows the maximum identifier length."),
    ("max_index_keys", "Shows the maximum number of index keys."),
    ("standard_conforming_strings", "Causes '...' strings to treat backslashes literally."),
];

/// A setting with its value, and what lists show of that.
struct Row {
    fact: &'static Fact,
    value: SettingValue,
    setting: String,
    words: Option<ScalarValue>,
}

pub(super) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let client = decoded(strings(&arguments[0]).value(row));
    let settings = ServerSettings::new(&call.catalog, &client);
    let array = &call.columns[ENUMVALS];
    let mut rows = Vec::new();
    for (fact, value) in settings.all().map_err(statement_error)? {
        let setting = settings.in_list(fact, &value).map_err(statement_error)?;
        let words = fact.words.map(|words| read(&call.catalog, array.ty, &array.carrier, words));
        let words = words.transpose().map_err(statement_error)?;
        rows.push(Row { fact, value, setting, words });
    }
    Ok(made(rows, put))
}

/// By the places of [`COLUMNS`].
fn put(row: Row, out: &mut [Cells]) -> Outcome<()> {
    let Row { fact, value, setting, words } = row;
    let about = ABOUT.iter().find(|(name, _)| *name == fact.name).map(|(_, about)| *about);
    let texts = [
        Some(fact.name),
        Some(&*setting),
        fact.unit,
        fact.category,
        about,
        None,
        Some(fact.context),
        Some(fact.kind.name()),
        Some(value.source),
        fact.least,
        fact.most,
        None,
        fact.boot,
        value.reset.as_deref(),
        None,
        None,
    ];
    for (place, text) in texts.into_iter().enumerate() {
        match (text, &words) {
            (_, Some(words)) if place == ENUMVALS => out[place].scalar(words.clone())?,
            (Some(text), _) => out[place].text(text)?,
            (None, _) => out[place].null()?,
        }
    }
    out[PENDING_RESTART].scalar(ScalarValue::Boolean(Some(false)))
}
