//! jsonb with something set, inserted or deleted at the end of a path, without several names, and without nulls: `jsonb_set`,
//! `jsonb_set_lax`, `jsonb_insert`, `#-`, `-` with an array, `jsonb_strip_nulls`, `json_strip_nulls`.
//!
//! Source: `setPath`, `setPathObject`, `setPathArray`, `jsonb_delete_array`, `jsonb_strip_nulls`, `json_strip_nulls` in
//! `src/backend/utils/adt/jsonfuncs.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};

use super::super::keys::{payloads, strings};
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::documents::{Kind, elements, members, trimmed, unescaped};
use super::json_changes::{changed, each, no_container, quoted};
use super::members::{document, index, jsonb_payload, texts_of};
use crate::error::{SqlState, StatementError};

const NULL_VALUE: SqlState = SqlState("22004");
const ARRAY_SUBSCRIPT: SqlState = SqlState("2202E");

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "jsonb_set" => |call, a| changed(call, a, |text, row| set(text, a, row)),
        "jsonb_set_lax" => set_lax,
        "jsonb_insert" => |call, a| changed(call, a, |text, row| inserted(text, a, row)),
        "jsonb_delete_path" => |call, a| changed(call, a, |text, row| deleted(text, a, row)),
        "jsonb_delete_array" => |call, a| match a {
            [_, names] if names.as_binary_opt::<i32>().is_some() => {
                changed(call, a, |text, row| {
                    without_names(
                        text,
                        &steps(names, row)?.into_iter().flatten().collect::<Vec<_>>(),
                    )
                })
            }
            // The names one by one, of which a NULL is none.
            [_, names @ ..] => changed(call, &a[..1], |text, row| {
                let given = names.iter().filter(|name| !name.is_null(row));
                without_names(
                    text,
                    &given.map(|name| strings(name).value(row).to_owned()).collect::<Vec<_>>(),
                )
            }),
            [] => changed(call, a, |text, _| Ok(text.to_owned())),
        },
        "jsonb_strip_nulls" => {
            |call, a| changed(call, a, |text, row| stripped(text, strips_arrays(a, row)))
        }
        "json_strip_nulls" => {
            |_, a| Made::column(each(a, |text, row| stripped(text, strips_arrays(a, row)))?)
        }
        _ => return None,
    }))
}

/// What is done where a path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change<'v> {
    /// Set, also where nothing is yet.
    Create(&'v str),
    /// Set where something is.
    Replace(&'v str),
    /// Put before an element, or in an object under a name that is not there.
    Before(&'v str),
    After(&'v str),
    Delete,
}

impl<'v> Change<'v> {
    /// What appears where nothing is yet.
    fn created(self) -> Option<&'v str> {
        match self {
            Self::Create(new) | Self::Before(new) | Self::After(new) => Some(new),
            Self::Replace(_) | Self::Delete => None,
        }
    }

    fn inserts(self) -> bool {
        matches!(self, Self::Before(_) | Self::After(_))
    }

    /// What stands in the place of a value.
    fn of<'t>(self, old: &'t str) -> Vec<&'t str>
    where
        'v: 't,
    {
        match self {
            Self::Create(new) | Self::Replace(new) => vec![new],
            Self::Before(new) => vec![new, old],
            Self::After(new) => vec![old, new],
            Self::Delete => Vec::new(),
        }
    }
}

/// The texts of an array of one dimension.
fn steps(argument: &ArrayRef, row: usize) -> Outcome<Vec<Option<String>>> {
    let payload = payloads(argument).value(row);
    let is_deep = payload.first_chunk().is_some_and(|bytes| i32::from_le_bytes(*bytes) > 1);
    if is_deep {
        return Err(StatementError::new(ARRAY_SUBSCRIPT, "wrong number of array subscripts"));
    }
    texts_of(payload)
}

fn truth(argument: &ArrayRef, row: usize) -> bool {
    argument.as_boolean().value(row)
}

fn set(text: &str, arguments: &[ArrayRef], row: usize) -> Outcome<String> {
    let new = document(&arguments[2], row)?.0;
    set_to(text, arguments, row, &new)
}

fn set_to(text: &str, arguments: &[ArrayRef], row: usize, new: &str) -> Outcome<String> {
    let change = match truth(&arguments[3], row) {
        true => Change::Create(new),
        false => Change::Replace(new),
    };
    at(text, &steps(&arguments[1], row)?, change, "cannot set path in scalar")
}

fn inserted(text: &str, arguments: &[ArrayRef], row: usize) -> Outcome<String> {
    let new = document(&arguments[2], row)?.0;
    let change = match truth(&arguments[3], row) {
        true => Change::After(&new),
        false => Change::Before(&new),
    };
    at(text, &steps(&arguments[1], row)?, change, "cannot set path in scalar")
}

fn deleted(text: &str, arguments: &[ArrayRef], row: usize) -> Outcome<String> {
    at(text, &steps(&arguments[1], row)?, Change::Delete, "cannot delete path in scalar")
}

/// A new value that is NULL is what the last argument says.
fn set_lax(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        if [0, 1, 3].iter().any(|at| arguments[*at].is_null(row)) {
            return Ok(None);
        }
        let text = document(&arguments[0], row)?.0;
        let treatment = (!arguments[4].is_null(row)).then(|| strings(&arguments[4]).value(row));
        let changed = match treatment {
            Some(_) if !arguments[2].is_null(row) => set(&text, arguments, row)?,
            Some("raise_exception") => {
                let error = StatementError::new(NULL_VALUE, "JSON value must not be null");
                return Err(error.with_hint(
                    "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
                ));
            }
            Some("use_json_null") => set_to(&text, arguments, row, "null")?,
            Some("delete_key") => deleted(&text, arguments, row)?,
            Some("return_target") => text,
            _ => {
                return Err(no_container(
                    "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
                ));
            }
        };
        jsonb_payload(call, &changed).map(Some)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<_>>>()?)
}

fn at(
    text: &str,
    steps: &[Option<String>],
    change: Change<'_>,
    of_scalar: &'static str,
) -> Outcome<String> {
    if !matches!(Kind::of(text), Kind::Object | Kind::Array) {
        return Err(no_container(of_scalar));
    }
    match steps.is_empty() || change.created().is_none() && is_empty(text)? {
        true => Ok(text.to_owned()),
        false => changed_at(text, steps, 0, change),
    }
}

fn is_empty(text: &str) -> Outcome<bool> {
    Ok(match Kind::of(text) {
        Kind::Object => members(text)?.is_empty(),
        _ => elements(text).is_empty(),
    })
}

/// The value with the change below it; a path that ends at nothing leaves it as it is.
fn changed_at(
    text: &str,
    steps: &[Option<String>],
    level: usize,
    change: Change<'_>,
) -> Outcome<String> {
    let Some(step) = &steps[level] else {
        let message = format!("path element at position {} is null", level + 1);
        return Err(StatementError::new(NULL_VALUE, message));
    };
    match Kind::of(text) {
        Kind::Object => in_object(text, (steps, step.as_str()), level, change),
        Kind::Array => in_array(text, (steps, step.as_str()), level, change),
        _ => Ok(text.to_owned()),
    }
}

fn in_object(
    text: &str,
    (steps, step): (&[Option<String>], &str),
    level: usize,
    change: Change<'_>,
) -> Outcome<String> {
    let is_last = level + 1 == steps.len();
    let (mut written, mut is_found) = (Vec::new(), false);
    for (name, value) in members(text)? {
        if name != step {
            written.push(format!("{}:{value}", quoted(&name)));
            continue;
        }
        is_found = true;
        if !is_last {
            let value = changed_at(value, steps, level + 1, change)?;
            written.push(format!("{}:{value}", quoted(&name)));
            continue;
        }
        if change.inserts() {
            return Err(no_container("cannot replace existing key")
                .with_hint("Try using the function jsonb_set to replace key value."));
        }
        written.extend(change.of(value).iter().map(|value| format!("{}:{value}", quoted(&name))));
    }
    if let (false, true, Some(new)) = (is_found, is_last, change.created()) {
        written.push(format!("{}:{new}", quoted(step)));
    }
    Ok(format!("{{{}}}", written.join(",")))
}

fn in_array(
    text: &str,
    (steps, step): (&[Option<String>], &str),
    level: usize,
    change: Change<'_>,
) -> Outcome<String> {
    let is_last = level + 1 == steps.len();
    let found = elements(text);
    let place = index(step).ok_or_else(|| {
        let message =
            format!("path element at position {} is not an integer: \"{step}\"", level + 1);
        StatementError::new(SqlState::INVALID_TEXT, message)
    })?;
    let place = match usize::try_from(place) {
        Ok(place) => Some(place.min(found.len())),
        // Before the first element.
        Err(_) => found.len().checked_sub(place.unsigned_abs() as usize),
    };
    let created = change.created().filter(|_| is_last);
    let mut written: Vec<String> = Vec::with_capacity(found.len() + 1);
    if place.is_none() {
        written.extend(created.map(str::to_owned));
    }
    for (at, element) in found.iter().enumerate() {
        match Some(at) == place {
            true if is_last => written.extend(change.of(element).into_iter().map(str::to_owned)),
            true => written.push(changed_at(element, steps, level + 1, change)?),
            false => written.push((*element).to_owned()),
        }
    }
    if place == Some(found.len()) {
        written.extend(created.map(str::to_owned));
    }
    Ok(format!("[{}]", written.join(",")))
}

fn without_names(text: &str, names: &[String]) -> Outcome<String> {
    match Kind::of(text) {
        Kind::Object => {
            let kept = members(text)?.into_iter().filter(|(name, _)| !names.contains(name));
            let kept = kept.map(|(name, value)| format!("{}:{value}", quoted(&name)));
            Ok(format!("{{{}}}", kept.collect::<Vec<_>>().join(",")))
        }
        Kind::Array => {
            let mut kept = Vec::new();
            for element in elements(text) {
                let is_named =
                    Kind::of(element) == Kind::String && names.contains(&unescaped(element)?);
                if !is_named {
                    kept.push(element);
                }
            }
            Ok(format!("[{}]", kept.join(",")))
        }
        _ => Err(no_container("cannot delete from scalar")),
    }
}

/// From 18 on elements may go, too.
fn strips_arrays(arguments: &[ArrayRef], row: usize) -> bool {
    arguments.get(1).is_some_and(|argument| truth(argument, row))
}

fn stripped(text: &str, in_arrays: bool) -> Outcome<String> {
    match Kind::of(text) {
        Kind::Object => {
            let mut kept = Vec::new();
            for (name, value) in members(text)? {
                if trimmed(value) != "null" {
                    kept.push(format!("{}:{}", quoted(&name), stripped(value, in_arrays)?));
                }
            }
            Ok(format!("{{{}}}", kept.join(",")))
        }
        Kind::Array => {
            let kept = elements(text).into_iter();
            let kept = kept.filter(|element| !in_arrays || trimmed(element) != "null");
            let kept = kept.map(|element| stripped(element, in_arrays));
            Ok(format!("[{}]", kept.collect::<Outcome<Vec<_>>>()?.join(",")))
        }
        Kind::String => Ok(quoted(&unescaped(text)?)),
        _ => Ok(trimmed(text).to_owned()),
    }
}
