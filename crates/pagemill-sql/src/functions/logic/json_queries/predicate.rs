//! `IS JSON`: whether a text is a document, of which kind, and whether names in its objects are there once.
//!
//! Invariants: NULL for NULL; names are compared without their escapes, wherever the object stands.
//!
//! Source: `ExecEvalJsonIsPredicate` in `src/backend/executor/execExprInterp.c`, `json_validate` in
//! `src/backend/utils/adt/json.c`, PostgreSQL 16 to 18.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use pagemill_types::builtin::oid;

use super::super::super::rows::Outcome;
use super::super::super::text::has_no_encoding;
use super::super::super::text_form::payload_of_text;
use super::super::super::{KernelCall, call_kernel};
use super::super::documents::{Kind, elements, members, require_characters};
use super::super::members::document;
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::typed::Typed;
use crate::types::PgType;

/// The test as an expression. `said` is what stands behind JSON: a kind, UNIQUE, or both.
pub(crate) fn is_json(catalog: &Arc<Catalog>, typed: &Typed, said: &[String]) -> Typed {
    let key = format!("is json {}", said.join(" "));
    let arguments = std::slice::from_ref(typed);
    call_kernel(catalog, (&key, test), arguments, PgType::new(oid::BOOL), DataType::Boolean)
}

fn test(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let column = &arguments[0];
    let one = |row: usize| match column.is_null(row) {
        true => Ok(None),
        false => is_document(call, column, row).map(Some),
    };
    let truths = (0..column.len()).map(one).collect::<Outcome<BooleanArray>>()?;
    Ok(Arc::new(truths))
}

fn is_document(call: &KernelCall, column: &ArrayRef, row: usize) -> Outcome<bool> {
    let is_said = |word: &str| call.key.split(' ').any(|said| said == word);
    let (text, is_binary) = document(column, row)?;
    let is_text = !is_binary && call.arguments[0].oid != oid::JSON;
    let json = PgType::new(oid::JSON);
    if is_text && payload_of_text(&call.catalog, json, &text).is_err() {
        return Ok(false);
    }
    let kind = Kind::of(&text);
    let is_kind = match () {
        () if is_said("OBJECT") => kind == Kind::Object,
        () if is_said("ARRAY") => kind == Kind::Array,
        () if is_said("SCALAR") => !matches!(kind, Kind::Object | Kind::Array),
        () => true,
    };
    if !is_kind || is_binary || !is_said("UNIQUE") {
        return Ok(is_kind);
    }
    if has_no_encoding(call) && text.contains("\\u") {
        return Err(StatementError::unsupported("an escape of Unicode in SQL_ASCII"));
    }
    // The server reads all strings then, and what it cannot read is no document.
    Ok(require_characters(&text).is_ok() && has_unique_names(&text)?)
}

/// A text as a json whose objects have each name once.
pub(crate) fn unique_json(catalog: &Arc<Catalog>, text: &Typed) -> Typed {
    let arguments = std::slice::from_ref(text);
    let json = PgType::new(oid::JSON);
    call_kernel(catalog, ("json with unique keys", unique), arguments, json, DataType::Utf8)
}

fn unique(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let column = &arguments[0];
    for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
        let (text, _) = document(column, row)?;
        payload_of_text(&call.catalog, PgType::new(oid::JSON), &text)?;
        if has_no_encoding(call) && text.contains("\\u") {
            return Err(StatementError::unsupported("an escape of Unicode in SQL_ASCII"));
        }
        require_characters(&text)?;
        if !has_unique_names(&text)? {
            let message = "duplicate JSON object key value";
            return Err(StatementError::new(SqlState("22030"), message));
        }
    }
    Ok(column.clone())
}

fn has_unique_names(text: &str) -> Outcome<bool> {
    let mut open = vec![text];
    while let Some(text) = open.pop() {
        match Kind::of(text) {
            Kind::Array => open.extend(elements(text)),
            Kind::Object => {
                let mut names = HashSet::new();
                for (name, value) in members(text)? {
                    if !names.insert(name) {
                        return Ok(false);
                    }
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    Ok(true)
}
