//! `current_setting` of names that are computed: what the session's client set, what the files say, or what a server begins with.
//!
//! Invariant: the last argument has what the client set, the same for all rows.
//!
//! Source: `show_config_by_name` and `show_config_by_name_missing_ok` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15),
//! PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};

use super::super::KernelCall;
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::statement_error;
use crate::error::{SqlState, StatementError};
use crate::server_settings::{ServerSettings, decoded};
use crate::session::SettingValues;

/// The values of settings, by name, with whether there may be none, if that is an argument.
pub(crate) fn current_setting(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let names = strings(&arguments[0]);
    let may_miss = (arguments.len() == 3).then(|| arguments[1].as_boolean());
    let client = client_of(&arguments[arguments.len() - 1]);
    let settings = ServerSettings::new(&call.catalog, &client);
    let one = |row: usize| {
        if names.is_null(row) || may_miss.is_some_and(|may| may.is_null(row)) {
            return Ok(None);
        }
        match settings.shown(names.value(row)).map_err(statement_error)? {
            Some((_, value)) => Ok(Some(value)),
            None if may_miss.is_some_and(|may| may.value(row)) => Ok(None),
            None => Err(unrecognized(names.value(row))),
        }
    };
    Made::column((0..names.len()).map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}

/// What the client set.
fn client_of(argument: &ArrayRef) -> SettingValues {
    let texts = strings(argument);
    match texts.is_empty() {
        true => SettingValues::new(),
        false => decoded(texts.value(0)),
    }
}

fn unrecognized(name: &str) -> StatementError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    StatementError::new(SqlState::UNDEFINED_OBJECT, message)
}
