//! `pg_input_error_info`: one row with what a server says of a text that is no value of a type.
//!
//! Invariant: the row is NULL throughout where the text is a value, or an argument is NULL.
//!
//! Source: `pg_input_error_info` in `src/backend/utils/adt/misc.c`, PostgreSQL 16 to 18.

use arrow::array::{Array as _, ArrayRef};

use super::super::error_details::Told;
use super::super::keys::strings;
use super::super::rows::Outcome;
use super::super::valid_texts::failure;
use super::{Cells, Series, SetCall, made};

pub(super) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let (texts, names) = (strings(&arguments[0]), strings(&arguments[1]));
    let failed = match texts.is_null(row) || names.is_null(row) {
        true => None,
        false => failure(&call.catalog, names.value(row), texts.value(row))?,
    };
    Ok(made(vec![failed], put))
}

fn put(failed: Option<(String, Told)>, out: &mut [Cells]) -> Outcome<()> {
    let Some((message, told)) = failed else {
        return out[..4].iter_mut().try_for_each(Cells::null);
    };
    out[0].text(&message)?;
    match told.detail {
        Some(detail) => out[1].text(&detail)?,
        None => out[1].null()?,
    }
    // No message is known here that has a hint.
    out[2].null()?;
    out[3].text(told.state.0)
}
