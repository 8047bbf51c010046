//! Members of json and jsonb: `->`, `->>`, `#>`, `#>>`, `?`, lengths and types.
//!
//! jsonb is read by way of its text, whose parts are the texts of its parts.
//!
//! Source: `src/backend/utils/adt/jsonfuncs.c`, `jsonb_op.c`, `json_typeof` in `json.c`, PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::array::element_payloads;
use pagemill_types::input::jsonb::read_jsonb;
use pagemill_types::input::tree::InputContext;
use pagemill_types::jsonb::write_jsonb;

use super::super::integers::numbers;
use super::super::keys::{payloads, strings};
use super::super::rows::{Made, Outcome};
use super::super::text::has_no_encoding;
use super::super::{Implementation, KernelCall};
use super::documents::{
    Kind, as_text, element, elements, is_space, member, members, require_characters, trimmed,
    unescaped,
};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    let name = key.strip_prefix("jsonb_").or_else(|| key.strip_prefix("json_"))?;
    let is_known = matches!(
        name,
        "object_field"
            | "object_field_text"
            | "array_element"
            | "array_element_text"
            | "extract_path"
            | "extract_path_text"
            | "array_length"
            | "typeof"
    );
    let is_existence = matches!(key, "jsonb_exists" | "jsonb_exists_any" | "jsonb_exists_all");
    (is_known || is_existence).then_some(Implementation::Kernel(kernel))
}

/// What comes of one document.
enum Answer {
    Null,
    Truth(bool),
    Number(i32),
    Text(String),
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut answers = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            answers.push(Answer::Null);
            continue;
        }
        answers.push(match document(&arguments[0], row)? {
            (text, true) => answer(call, &text, true, arguments, row)?,
            (text, false) if has_no_encoding(call) && text.contains("\\u") => {
                let what = "an escape of Unicode in SQL_ASCII";
                return Err(StatementError::unsupported(what));
            }
            (text, false) => {
                // For these it does not read them.
                if !matches!(&*call.key, "json_typeof" | "json_array_length") {
                    require_characters(&text)?;
                }
                answer(call, &text, false, arguments, row)?
            }
        });
    }
    column(call, answers)
}

/// The text of a document, and whether it is a jsonb.
pub(super) fn document(argument: &ArrayRef, row: usize) -> Outcome<(String, bool)> {
    if let DataType::Utf8 = argument.data_type() {
        return Ok((strings(argument).value(row).to_owned(), false));
    }
    let mut text = Vec::new();
    write_jsonb(payloads(argument).value(row), &mut text)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    Ok((String::from_utf8_lossy(&text).into_owned(), true))
}

fn answer(
    call: &KernelCall,
    text: &str,
    is_binary: bool,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Answer> {
    let prefix = if is_binary { "jsonb_" } else { "json_" };
    let name = call.key.strip_prefix(prefix).unwrap_or(&call.key);
    let found = match name {
        "typeof" => return Ok(Answer::Text(Kind::of(text).name().to_owned())),
        "array_length" => return array_length(text),
        "exists" => return Ok(Answer::Truth(exists(text, strings(&arguments[1]).value(row))?)),
        "exists_any" | "exists_all" => {
            // NULL is no name.
            let names = texts_of(payloads(&arguments[1]).value(row))?.into_iter().flatten();
            let found = names.map(|name| exists(text, &name)).collect::<Outcome<Vec<bool>>>()?;
            let truth =
                if name == "exists_any" { found.contains(&true) } else { !found.contains(&false) };
            return Ok(Answer::Truth(truth));
        }
        "object_field" | "object_field_text" => match Kind::of(text) {
            Kind::Object => member(text, strings(&arguments[1]).value(row))?,
            _ => None,
        },
        "array_element" | "array_element_text" => {
            let number = numbers::<arrow::datatypes::Int32Type>(&arguments[1]).value(row);
            nth(text, number, is_binary)
        }
        _ => match path(&arguments[1..], row)? {
            Some(path) => at_path(text, &path)?,
            None => None,
        },
    };
    let Some(found) = found else { return Ok(Answer::Null) };
    match name.ends_with("_text") {
        true => Ok(as_text(found)?.map_or(Answer::Null, Answer::Text)),
        false => Ok(Answer::Text(found.to_owned())),
    }
}

/// A scalar jsonb is kept as an array of one element.
fn nth(text: &str, number: i32, is_binary: bool) -> Option<&str> {
    match Kind::of(text) {
        Kind::Array => element(text, number),
        Kind::Object => None,
        _ => Some(trimmed(text)).filter(|_| is_binary && matches!(number, 0 | -1)),
    }
}

fn array_length(text: &str) -> Outcome<Answer> {
    let what = match Kind::of(text) {
        Kind::Array => return Ok(Answer::Number(elements(text).len() as i32)),
        Kind::Object => "a non-array",
        _ => "a scalar",
    };
    let message = format!("cannot get array length of {what}");
    Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
}

/// Whether a text is a name of the object, or a string of the array.
fn exists(text: &str, name: &str) -> Outcome<bool> {
    let is_it =
        |value: &&str| Kind::of(value) == Kind::String && unescaped(value).is_ok_and(|s| s == name);
    Ok(match Kind::of(text) {
        Kind::Object => members(text)?.iter().any(|(other, _)| other == name),
        Kind::Array => elements(text).iter().any(&is_it),
        _ => is_it(&text),
    })
}

/// The steps of a path, from an array or as many texts; nothing if one is NULL.
fn path(arguments: &[ArrayRef], row: usize) -> Outcome<Option<Vec<String>>> {
    let text = |array: &ArrayRef| {
        let column: Option<&StringArray> = array.as_any().downcast_ref();
        column.map(|column| column.value(row).to_owned())
    };
    let [only] = arguments else { return Ok(arguments.iter().map(text).collect()) };
    if let Some(step) = text(only) {
        return Ok(Some(vec![step]));
    }
    Ok(texts_of(payloads(only).value(row))?.into_iter().collect())
}

/// The texts of an array, of any shape.
pub(super) fn texts_of(payload: &[u8]) -> Outcome<Vec<Option<String>>> {
    let damaged = |error: String| StatementError::new(SqlState::DATA_CORRUPTED, error);
    let layout = AttributeLayout::new(-1, b'i').map_err(|error| damaged(error.to_string()))?;
    let steps = element_payloads(payload, layout).map_err(|error| damaged(error.to_string()))?;
    let text = |step: Vec<u8>| String::from_utf8_lossy(&step).into_owned();
    Ok(steps.into_iter().map(|step| step.map(text)).collect())
}

pub(super) fn at_path<'t>(text: &'t str, path: &[String]) -> Outcome<Option<&'t str>> {
    if path.is_empty() && !matches!(Kind::of(text), Kind::Object | Kind::Array) {
        // A scalar keeps the blanks before it.
        return Ok(Some(text.trim_end_matches(is_space)));
    }
    let mut found = trimmed(text);
    for step in path {
        let next = match Kind::of(found) {
            Kind::Object => member(found, step)?,
            Kind::Array => index(step).and_then(|number| element(found, number)),
            _ => None,
        };
        let Some(next) = next else { return Ok(None) };
        found = next;
    }
    Ok(Some(found))
}

/// A step as the number of an element.
pub(super) fn index(step: &str) -> Option<i32> {
    // What C's `strtol` takes: blanks before it, and either sign.
    let step = step.trim_start_matches([' ', '\t', '\n', '\u{B}', '\u{C}', '\r']);
    let digits = step.strip_prefix(['-', '+']).unwrap_or(step);
    match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => step.strip_prefix('+').unwrap_or(step).parse().ok(),
        false => None,
    }
}

fn column(call: &KernelCall, answers: Vec<Answer>) -> Outcome<ArrayRef> {
    match call.carrier {
        DataType::Boolean => Made::column(given(answers, |answer| match answer {
            Answer::Truth(truth) => Some(truth),
            _ => None,
        })),
        DataType::Int32 => Made::column(given(answers, |answer| match answer {
            Answer::Number(number) => Some(number),
            _ => None,
        })),
        DataType::Utf8 => Made::column(given(answers, |answer| match answer {
            Answer::Text(text) => Some(text),
            _ => None,
        })),
        _ => binary(call, answers),
    }
}

fn given<T>(answers: Vec<Answer>, of: fn(Answer) -> Option<T>) -> Vec<Option<T>> {
    answers.into_iter().map(of).collect()
}

fn binary(call: &KernelCall, answers: Vec<Answer>) -> Outcome<ArrayRef> {
    let inputs = call
        .catalog
        .inputs()
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    let of = |answer: Answer| match answer {
        Answer::Text(text) => payload(&text, inputs.context()).map(Some),
        _ => Ok(None),
    };
    Made::column(answers.into_iter().map(of).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// A jsonb by its text.
pub(super) fn payload_of(catalog: &Catalog, text: &str) -> Outcome<Vec<u8>> {
    let inputs = catalog
        .inputs()
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    payload(text, inputs.context())
}

/// A jsonb of its text.
pub(super) fn jsonb_payload(call: &KernelCall, text: &str) -> Outcome<Vec<u8>> {
    let inputs = call
        .catalog
        .inputs()
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    payload(text, inputs.context())
}

fn payload(text: &str, context: &InputContext) -> Outcome<Vec<u8>> {
    let mut payload = Vec::new();
    read_jsonb(text.as_bytes(), context, &mut payload)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.message))?;
    Ok(payload)
}
