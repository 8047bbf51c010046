//! Documents that are given in bytes, as texts, and those that are to be bytes.
//!
//! Invariant: only in databases of UTF8, whose texts are the bytes themselves; elsewhere it is refused.
//!
//! Source: `makeJsonByteaToTextConversion` in `src/backend/parser/parse_expr.c`, PostgreSQL 16 to 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray};
use arrow::datatypes::DataType;
use pagemill_types::builtin::oid;
use pagemill_types::encoding::encoding_name;

use super::super::super::encodings::text_of_utf8;
use super::super::super::keys::{payloads, strings};
use super::super::super::rows::Outcome;
use super::super::super::{KernelCall, call_kernel};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::StatementError;
use crate::typed::Typed;
use crate::types::PgType;

/// Bytes in UTF8 as a text.
pub(crate) fn text_of_bytes(catalog: &Arc<Catalog>, bytes: &Typed) -> Typed {
    let arguments = std::slice::from_ref(bytes);
    let text = PgType::new(oid::TEXT);
    call_kernel(catalog, ("text of bytes", texts), arguments, text, DataType::Utf8)
}

/// A text as bytes in UTF8.
pub(crate) fn bytes_of_text(catalog: &Arc<Catalog>, text: &Typed) -> Typed {
    let arguments = std::slice::from_ref(text);
    let bytea = PgType::new(oid::BYTEA);
    call_kernel(catalog, ("bytes of text", bytes), arguments, bytea, carrier_of(catalog, bytea))
}

fn bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    require_utf8(call)?;
    let texts = strings(&arguments[0]);
    Ok(Arc::new(texts.iter().map(|text| text.map(str::as_bytes)).collect::<BinaryArray>()))
}

fn require_utf8(call: &KernelCall) -> Outcome<()> {
    match encoding_name(call.catalog.database().row().encoding) {
        Some("UTF8") => Ok(()),
        _ => Err(StatementError::unsupported("a document in bytes but in UTF8")),
    }
}

fn texts(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    require_utf8(call)?;
    let found = payloads(&arguments[0]).iter().map(|bytes| bytes.map(text_of_utf8).transpose());
    Ok(Arc::new(found.collect::<Outcome<StringArray>>()?))
}
