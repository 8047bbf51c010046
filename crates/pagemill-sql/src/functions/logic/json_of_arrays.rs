//! Documents of arrays: `json_object` of names and values, `array_to_json`; and those of nothing, `json_build_array()`.
//!
//! Source: `json_object`, `json_object_two_arg`, `array_to_json_internal`, `json_build_array_noargs` in
//! `src/backend/utils/adt/json.c`, `jsonb_object`, `jsonb_object_two_arg` in `jsonb.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::DataType;

use super::super::arrays::array_at;
use super::super::arrays::value::{ArrayParts, ElementType};
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Build, Implementation, KernelCall};
use super::documents::elements;
use super::json_changes::quoted;
use super::json_made::{NULL_NAME, made_values};
use super::members::jsonb_payload;
use crate::coerce::constant;
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

const ARRAY_SUBSCRIPT: SqlState = SqlState("2202E");

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "json_object" | "jsonb_object" => {
            Implementation::Kernel(|call, a| objects(call, a, |arrays| pairs_of_one(&arrays[0])))
        }
        "json_object_two_arg" | "jsonb_object_two_arg" => Implementation::Kernel(|call, a| {
            objects(call, a, |arrays| pairs_of_two(&arrays[0], &arrays[1]))
        }),
        "array_to_json" => Implementation::Kernel(made_values),
        "array_to_json_pretty" => Implementation::Kernel(over_lines),
        "json_build_array_noargs" | "jsonb_build_array_noargs" => Implementation::Build(nothing),
        "json_build_object_noargs" | "jsonb_build_object_noargs" => Implementation::Build(nothing),
        _ => return None,
    })
}

fn nothing(build: &Build<'_>) -> Result<Typed> {
    let text = if build.key.contains("object") { "{}" } else { "[]" };
    constant(build.catalog, build.result, text)
}

/// A name and a value, as they lie in arrays of texts.
type Pair<'a> = (&'a Option<Vec<u8>>, &'a Option<Vec<u8>>);

fn objects(
    call: &KernelCall,
    arguments: &[ArrayRef],
    pairs: fn(&[ArrayParts]) -> Outcome<Vec<Pair<'_>>>,
) -> Outcome<ArrayRef> {
    let types = call.arguments.iter().map(|ty| ElementType::of_array(&call.catalog, *ty));
    let types = types.collect::<Outcome<Vec<_>>>()?;
    let one = |row: usize| -> Outcome<Option<String>> {
        let arrays = types.iter().zip(arguments).map(|(ty, column)| array_at(ty, column, row));
        let arrays: Option<Vec<ArrayParts>> =
            arrays.collect::<Outcome<Vec<_>>>()?.into_iter().collect();
        arrays.map(|arrays| written(&pairs(&arrays)?)).transpose()
    };
    let texts = (0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<String>>>>()?;
    if call.carrier == DataType::Utf8 {
        return Made::column(texts);
    }
    let payload = |text: Option<String>| text.map(|text| jsonb_payload(call, &text)).transpose();
    Made::column(texts.into_iter().map(payload).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

fn written(pairs: &[Pair<'_>]) -> Outcome<String> {
    let text = |bytes: &Vec<u8>| quoted(&String::from_utf8_lossy(bytes));
    let mut members = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let Some(name) = name else {
            let message = "null value not allowed for object key";
            return Err(StatementError::new(NULL_NAME, message));
        };
        let value = match value {
            Some(value) => text(value),
            None => "null".to_owned(),
        };
        members.push(format!("{} : {value}", text(name)));
    }
    Ok(format!("{{{}}}", members.join(", ")))
}

#[cold]
fn wrong_shape(message: &'static str) -> StatementError {
    StatementError::new(ARRAY_SUBSCRIPT, message)
}

/// Names and values by turns, or each pair an array of its own.
fn pairs_of_one(array: &ArrayParts) -> Outcome<Vec<Pair<'_>>> {
    match &array.bounds[..] {
        [only] if only.count % 2 != 0 => {
            return Err(wrong_shape("array must have even number of elements"));
        }
        [_, inner] if inner.count != 2 => {
            return Err(wrong_shape("array must have two columns"));
        }
        [] | [_] | [_, _] => {}
        _ => return Err(wrong_shape("wrong number of array subscripts")),
    }
    Ok(array.elements.as_chunks::<2>().0.iter().map(|[name, value]| (name, value)).collect())
}

fn pairs_of_two<'a>(names: &'a ArrayParts, values: &'a ArrayParts) -> Outcome<Vec<Pair<'a>>> {
    if names.bounds.len() > 1 || names.bounds.len() != values.bounds.len() {
        return Err(wrong_shape("wrong number of array subscripts"));
    }
    if names.elements.len() != values.elements.len() {
        return Err(wrong_shape("mismatched array dimensions"));
    }
    Ok(names.elements.iter().zip(&values.elements).collect())
}

/// `array_to_json` with each element of the outermost dimension on a line of its own, where that is asked for.
fn over_lines(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let array = KernelCall { arguments: call.arguments[..1].into(), ..call.clone() };
    let plain = made_values(&array, &arguments[..1])?;
    let wanted = arguments[1].as_boolean();
    let one = |row: usize| match plain.is_null(row) || wanted.is_null(row) {
        true => None,
        false => {
            let text = strings(&plain).value(row);
            Some(match wanted.value(row) {
                true => format!("[{}]", elements(text).join(",\n ")),
                false => text.to_owned(),
            })
        }
    };
    Made::column((0..plain.len()).map(one).collect::<Vec<Option<String>>>())
}
