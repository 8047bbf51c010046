//! Documents made of values: `to_json`, `json_build_array`, `json_build_object`, and their kin of jsonb.
//!
//! Source: `datum_to_json` and `json_build_object_worker` in `src/backend/utils/adt/json.c`, `to_jsonb` in `jsonb.c`,
//! PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use pagemill_cluster::ValueLookups;
use pagemill_types::builtin::oid;
use pagemill_types::json::JsonForm;
use pagemill_types::output::{TypeOutput, ValueType, ValueWriter};

use super::super::rows::{Made, Outcome};
use super::super::text_form::payload_of;
use super::super::{Implementation, KernelCall};
use super::json_rows::RowsWriter;
use super::members::jsonb_payload;
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::types::{PgType, RECORDS};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        // A row is its document by now.
        "row_to_json" | "row_to_json_pretty" => |_, a| Ok(a[0].clone()),
        "to_json" | "to_jsonb" => |call, a| made(call, a, Shape::Value),
        "json_build_array" | "jsonb_build_array" => |call, a| made(call, a, Shape::Array),
        "json_build_object" | "jsonb_build_object" => |call, a| made(call, a, Shape::Object),
        _ => return None,
    }))
}

/// `ERRCODE_NULL_VALUE_NOT_ALLOWED`.
pub(super) const NULL_NAME: SqlState = SqlState("22004");
/// `ERRCODE_DUPLICATE_JSON_OBJECT_KEY_VALUE`.
const SAME_NAME: SqlState = SqlState("22030");

/// What a document is made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JsonShape {
    /// An array of one column's values.
    Array,
    /// The same of rows, which are objects by now, each but the first on a line of its own.
    Rows,
    /// An object of names and values.
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One value; NULL stays NULL.
    Value,
    Array,
    /// Names and values by turns.
    Object,
}

/// Writes values of one type as JSON.
pub(crate) struct JsonWriter<'c> {
    catalog: &'c Catalog,
    ty: PgType,
    value_type: Arc<ValueType>,
    lookups: ValueLookups,
    rows: Option<RowsWriter<'c>>,
}

impl<'c> JsonWriter<'c> {
    pub(crate) fn new(catalog: &'c Catalog, ty: PgType) -> Outcome<Self> {
        let value_type = catalog.values().value_type(ty.oid).map_err(damaged)?;
        let form = JsonForm::of(&value_type);
        let has_lines = match &value_type.output {
            TypeOutput::Array(element) => element.base == oid::JSON,
            _ => false,
        };
        let has_lines = has_lines || ty.oid == RECORDS;
        let rows = if has_lines { None } else { RowsWriter::new(catalog, ty, &value_type)? };
        if has_lines || rows.is_none() && matches!(form, JsonForm::Row) {
            let name = catalog.type_name(ty.oid);
            return Err(StatementError::unsupported(format!("type {name} as JSON")));
        }
        Ok(Self { catalog, ty, value_type, lookups: catalog.values().lookups(), rows })
    }

    pub(crate) fn write(
        &mut self,
        column: &ArrayRef,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let is_there = column.is_valid(row);
        let payload = is_there.then(|| payload_of(self.catalog, self.ty, column, row));
        self.write_value(payload.transpose()?, out)
    }

    /// A value by its payload.
    pub(super) fn write_value(
        &mut self,
        payload: Option<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let Some(mut payload) = payload else {
            out.extend_from_slice(b"null");
            return Ok(());
        };
        if let Some(rows) = &mut self.rows {
            return rows.write(&payload, out);
        }
        // A document is what it is, line breaks and all.
        if self.value_type.base == oid::JSON {
            out.append(&mut payload);
            return Ok(());
        }
        let length = self.value_type.layout.len;
        let mut raw = Vec::with_capacity(payload.len() + 4);
        if length == -1 {
            raw.extend((((payload.len() + 4) as u32) << 2).to_le_bytes());
        }
        raw.append(&mut payload);
        if let Ok(length) = usize::try_from(length) {
            raw.resize(length, 0);
        }
        let form = JsonForm::of(&self.value_type);
        let mut writer = ValueWriter::new(&mut self.lookups);
        writer.write_json(&self.value_type, form, &raw, out).map_err(damaged)
    }

    /// A name, always a string.
    pub(super) fn write_name(
        &mut self,
        column: &ArrayRef,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        if matches!(
            JsonForm::of(&self.value_type),
            JsonForm::Json | JsonForm::Array | JsonForm::Vector | JsonForm::Row
        ) {
            let message = "key value must be scalar, not array, composite, or json";
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        let begin = out.len();
        self.write(column, row, out)?;
        if out.get(begin) != Some(&b'"') {
            out.insert(begin, b'"');
            out.push(b'"');
        }
        Ok(())
    }
}

/// A member without a name. `place` is that of the argument, from 1.
#[cold]
pub(super) fn no_name(call: &KernelCall, place: usize) -> StatementError {
    let is_before_16 = call.catalog.database().cluster().version().major() < 16;
    let parameter = |message: String| StatementError::new(SqlState::INVALID_PARAMETER, message);
    match &*call.key {
        key if key.starts_with("jsonb_build_object") => {
            parameter(format!("argument {place}: key must not be null"))
        }
        "json_build_object" if is_before_16 => {
            let error = parameter(format!("argument {place} cannot be null"));
            error.with_hint("Object keys should be text.")
        }
        key if key.starts_with("jsonb_object_agg") || is_before_16 => {
            parameter("field name must not be null".to_owned())
        }
        _ => StatementError::new(NULL_NAME, "null value not allowed for object key"),
    }
}

#[cold]
pub(super) fn damaged(error: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

/// Each value as a document of its own.
pub(super) fn made_values(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    made(call, arguments, Shape::Value)
}

fn made(call: &KernelCall, arguments: &[ArrayRef], shape: Shape) -> Outcome<ArrayRef> {
    if shape == Shape::Object && !arguments.len().is_multiple_of(2) {
        let name = &call.key;
        let message = "argument list must have even number of elements";
        let hint =
            format!("The arguments of {name}() must consist of alternating keys and values.");
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message).with_hint(hint));
    }
    let writers = call.arguments.iter().map(|ty| JsonWriter::new(&call.catalog, *ty));
    let mut writers = writers.collect::<Outcome<Vec<_>>>()?;
    let mut texts: Vec<Option<Vec<u8>>> = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        if shape == Shape::Value && arguments[0].is_null(row) {
            texts.push(None);
            continue;
        }
        let mut text = Vec::new();
        if shape == Shape::Object {
            let is_null = |at: &usize| arguments[*at].is_null(row);
            if let Some(at) = (0..arguments.len()).step_by(2).find(is_null) {
                return Err(no_name(call, at + 1));
            }
        }
        write_document(&mut writers, (arguments, row), shape, &mut text)?;
        texts.push(Some(text));
    }
    finished(call, texts)
}

fn write_document(
    writers: &mut [JsonWriter<'_>],
    (arguments, row): (&[ArrayRef], usize),
    shape: Shape,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    out.extend_from_slice(match shape {
        Shape::Value => b"",
        Shape::Array => b"[",
        Shape::Object => b"{",
    });
    for (number, (writer, column)) in writers.iter_mut().zip(arguments).enumerate() {
        let is_name = shape == Shape::Object && number % 2 == 0;
        if number > 0 {
            out.extend_from_slice(if shape == Shape::Object && !is_name { b" : " } else { b", " });
        }
        match is_name {
            true => writer.write_name(column, row, out)?,
            false => writer.write(column, row, out)?,
        }
    }
    out.extend_from_slice(match shape {
        Shape::Value => b"",
        Shape::Array => b"]",
        Shape::Object => b"}",
    });
    Ok(())
}

/// One document of all rows.
pub(crate) fn collected_json(
    call: &KernelCall,
    columns: &[ArrayRef],
    shape: JsonShape,
) -> Outcome<ArrayRef> {
    let writers = call.arguments.iter().map(|ty| JsonWriter::new(&call.catalog, *ty));
    let mut writers = writers.collect::<Outcome<Vec<_>>>()?;
    let (opened, closed) = match shape {
        JsonShape::Array | JsonShape::Rows => ("[", "]"),
        JsonShape::Object => ("{ ", " }"),
    };
    let (leaves_out, is_unique) = (call.key.contains("_strict"), call.key.contains("_unique"));
    let mut text = opened.as_bytes().to_vec();
    let mut names = MemberNames::new(is_unique);
    for row in 0..columns[0].len() {
        let is_left_out = leaves_out && columns[columns.len() - 1].is_null(row);
        if is_left_out && !(is_unique && shape == JsonShape::Object) {
            if shape == JsonShape::Object && columns[0].is_null(row) {
                return Err(no_name(call, 1));
            }
            continue;
        }
        let is_first = text.len() == opened.len();
        let before = text.len();
        if !is_first {
            text.extend_from_slice(b", ");
        }
        match shape {
            JsonShape::Object => {
                if columns[0].is_null(row) {
                    return Err(no_name(call, 1));
                }
                let begin = text.len();
                writers[0].write_name(&columns[0], row, &mut text)?;
                names.note(call, &text[begin..])?;
                if is_left_out {
                    text.truncate(before);
                    continue;
                }
                text.extend_from_slice(b" : ");
                let value = text.len();
                writers[1].write(&columns[1], row, &mut text)?;
                // Among the members of a jsonb its own null is none either.
                if leaves_out && call.key.starts_with("jsonb") && text[value..] == *b"null" {
                    text.truncate(before);
                }
            }
            JsonShape::Array | JsonShape::Rows => {
                let has_lines = shape == JsonShape::Rows
                    || matches!(JsonForm::of(&writers[0].value_type), JsonForm::Array);
                if has_lines && !is_first && columns[0].is_valid(row) {
                    text.extend_from_slice(b"\n ");
                }
                writers[0].write(&columns[0], row, &mut text)?;
            }
        }
    }
    names.told()?;
    text.extend_from_slice(closed.as_bytes());
    finished(call, vec![Some(text)])
}

/// The names of an object's members, where each may stand once.
pub(super) struct MemberNames {
    is_unique: bool,
    known: HashSet<Vec<u8>>,
    same: Option<StatementError>,
}

impl MemberNames {
    pub(super) fn new(is_unique: bool) -> Self {
        Self { is_unique, known: HashSet::new(), same: None }
    }

    /// Takes note of a name. Of a jsonb the server looks when it has all, and does not say which.
    ///
    /// # Errors
    /// When it stands there already.
    pub(super) fn note(&mut self, call: &KernelCall, name: &[u8]) -> Outcome<()> {
        if !self.is_unique || self.known.insert(name.to_vec()) {
            return Ok(());
        }
        let message = "duplicate JSON object key value";
        let waits = call.key.starts_with("jsonb");
        let message = match waits {
            true => message.to_owned(),
            false => format!("{message}: {}", String::from_utf8_lossy(name)),
        };
        let error = StatementError::new(SAME_NAME, message);
        match waits {
            true => self.same = Some(error),
            false => return Err(error),
        }
        Ok(())
    }

    /// What was found and not told yet.
    ///
    /// # Errors
    /// That.
    pub(super) fn told(self) -> Outcome<()> {
        self.same.map_or(Ok(()), Err)
    }
}

pub(super) fn finished(call: &KernelCall, texts: Vec<Option<Vec<u8>>>) -> Outcome<ArrayRef> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let texts = texts.into_iter().map(|bytes| bytes.map(text));
    if call.carrier == DataType::Utf8 {
        return Made::column(texts.collect::<Vec<Option<String>>>());
    }
    let payload = |text: Option<String>| text.map(|text| jsonb_payload(call, &text)).transpose();
    Made::column(texts.map(payload).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}
