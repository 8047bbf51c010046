//! What `JSON_OBJECT(…)` and `JSON_ARRAY(…)` make where NULLs are left out or names must be there once; elsewhere it is what
//! `json_build_object` and `json_build_array` make.
//!
//! Invariant: of a jsonb object that leaves out NULLs, nulls of documents are left out too, as the server does; of arrays they are
//! kept.
//!
//! Source: `json_build_object_worker` in `src/backend/utils/adt/json.c`, `jsonb_build_object_worker` in `jsonb.c`,
//! `uniqueifyJsonbObject` in `jsonb_util.c`, PostgreSQL 16 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;

use super::super::rows::Outcome;
use super::super::{Kernel, KernelCall, call_kernel, implementation};
use super::json_made::{JsonWriter, MemberNames, finished, no_name};
use crate::catalog::Catalog;
use crate::coerce::{carrier_of, constant};
use crate::error::{Result, unsupported};
use crate::functions::Implementation;
use crate::typed::Typed;
use crate::types::PgType;

/// What is made: an object of names and values by turns, or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Constructor {
    pub(crate) is_object: bool,
    pub(crate) leaves_out_nulls: bool,
    /// A name that comes twice, with a value that is left out included, is an error.
    pub(crate) is_unique: bool,
    /// A json or a jsonb.
    pub(crate) result: PgType,
}

impl Constructor {
    /// The document.
    ///
    /// # Errors
    /// For values that are not made documents here.
    pub(crate) fn of(self, catalog: &Arc<Catalog>, arguments: &[Typed]) -> Result<Typed> {
        let carrier = carrier_of(catalog, self.result);
        let prefix = if carrier == DataType::Utf8 { "json" } else { "jsonb" };
        if arguments.is_empty() {
            return constant(catalog, self.result, if self.is_object { "{}" } else { "[]" });
        }
        let shape = if self.is_object { "object" } else { "array" };
        let key = format!("{prefix}_build_{shape}");
        if self.leaves_out_nulls || self.is_unique {
            let kernel = if self.is_object { object as Kernel } else { array as Kernel };
            let absent = if self.leaves_out_nulls { ABSENT } else { "" };
            let key = format!("{key}{absent}{}", if self.is_unique { UNIQUE } else { "" });
            return Ok(call_kernel(catalog, (&key, kernel), arguments, self.result, carrier));
        }
        match implementation(&key) {
            Some(Implementation::Kernel(kernel)) => {
                Ok(call_kernel(catalog, (&key, kernel), arguments, self.result, carrier))
            }
            _ => unsupported(format!("function {key}")),
        }
    }
}

/// What keys of such kernels end with.
const ABSENT: &str = " absent";
const UNIQUE: &str = " unique";

fn object(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writers = call.arguments.iter().map(|ty| JsonWriter::new(&call.catalog, *ty));
    let mut writers = writers.collect::<Outcome<Vec<_>>>()?;
    let mut texts = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        texts.push(Some(object_of_row(call, &mut writers, (arguments, row))?));
    }
    finished(call, texts)
}

fn object_of_row(
    call: &KernelCall,
    writers: &mut [JsonWriter<'_>],
    (arguments, row): (&[ArrayRef], usize),
) -> Outcome<Vec<u8>> {
    let is_jsonb = call.carrier != DataType::Utf8;
    let (leaves_out, is_unique) = (call.key.contains(ABSENT), call.key.contains(UNIQUE));
    let mut names = MemberNames::new(is_unique);
    let mut text = b"{".to_vec();
    for name in (0..arguments.len()).step_by(2) {
        let is_left_out = leaves_out && arguments[name + 1].is_null(row);
        if arguments[name].is_null(row) && (is_jsonb || is_unique || !is_left_out) {
            return Err(no_name(call, name + 1));
        }
        if is_left_out && !is_unique {
            continue;
        }
        let before = text.len();
        if text.len() > 1 {
            text.extend_from_slice(b", ");
        }
        let begin = text.len();
        writers[name].write_name(&arguments[name], row, &mut text)?;
        names.note(call, &text[begin..])?;
        if is_left_out {
            text.truncate(before);
            continue;
        }
        text.extend_from_slice(b" : ");
        let begin = text.len();
        writers[name + 1].write(&arguments[name + 1], row, &mut text)?;
        if is_jsonb && leaves_out && text[begin..].trim_ascii() == b"null" {
            text.truncate(before);
        }
    }
    text.push(b'}');
    names.told()?;
    Ok(text)
}

fn array(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writers = call.arguments.iter().map(|ty| JsonWriter::new(&call.catalog, *ty));
    let mut writers = writers.collect::<Outcome<Vec<_>>>()?;
    let mut texts = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        let mut text = b"[".to_vec();
        for (writer, column) in writers.iter_mut().zip(arguments) {
            if column.is_null(row) {
                continue;
            }
            if text.len() > 1 {
                text.extend_from_slice(b", ");
            }
            writer.write(column, row, &mut text)?;
        }
        text.push(b']');
        texts.push(Some(text));
    }
    finished(call, texts)
}
