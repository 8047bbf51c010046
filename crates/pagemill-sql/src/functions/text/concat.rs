//! Texts of values of any type: `concat`, `concat_ws`, `||` with something that is no text, `quote_literal`, `quote_ident`.
//!
//! Source: `text_concat`, `text_concat_ws` in `src/backend/utils/adt/varlena.c`, `textanycat` and `anytextcat` in
//! `src/include/catalog/pg_proc.dat`, PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef};

use super::super::rows::{Made, Outcome, one};
use super::super::text_form::{Printer, printer_of};
use super::super::{Implementation, KernelCall};
use crate::error::StatementError;
use crate::types::PgType;
use pagemill_cluster::names::quote_identifier;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "text_concat" => |call, a| joined(call, a, false),
        "quote_ident" => quoted_names,
        "text_concat_ws" => |call, a| joined(call, a, true),
        "textanycat(text,anynonarray)" | "anytextcat(anynonarray,text)" => strictly_joined,
        _ => return None,
    }))
}

/// Names with quotes where one of the cluster's version needs them.
fn quoted_names(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let version = call.catalog.database().cluster().version();
    one(arguments, |name: &str| {
        let mut quoted = Vec::new();
        quote_identifier(name.as_bytes(), version, &mut quoted);
        Ok(text_of(quoted))
    })
}

/// Printers of the arguments.
fn printers(call: &KernelCall) -> Outcome<Vec<Printer>> {
    call.arguments.iter().map(|ty| printer_of(&call.catalog, *ty)).collect()
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// All that are not NULL, with the first argument between the others if it says what stands there.
fn joined(call: &KernelCall, arguments: &[ArrayRef], has_separator: bool) -> Outcome<ArrayRef> {
    let mut printers = printers(call)?;
    let rows = arguments.first().map_or(1, |first| first.len());
    let mut texts: Vec<Option<String>> = Vec::with_capacity(rows);
    let skipped = usize::from(has_separator);
    for row in 0..rows {
        if has_separator && arguments[0].is_null(row) {
            texts.push(None);
            continue;
        }
        let (mut text, mut separator) = (Vec::new(), Vec::new());
        if has_separator {
            printers[0].print(&arguments[0], row, &mut separator)?;
        }
        let mut is_first = true;
        for (printer, argument) in printers.iter_mut().zip(arguments).skip(skipped) {
            if argument.is_null(row) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                text.extend_from_slice(&separator);
            }
            printer.print(argument, row, &mut text)?;
        }
        texts.push(Some(text_of(text)));
    }
    Made::column(texts)
}

/// Both, one of which is cast to a text; NULL if one is.
fn strictly_joined(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    require_own_text(call)?;
    let mut printers = printers(call)?;
    let mut texts: Vec<Option<String>> = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            texts.push(None);
            continue;
        }
        let mut text = Vec::new();
        for (number, (printer, argument)) in printers.iter_mut().zip(arguments).enumerate() {
            let start = text.len();
            printer.print(argument, row, &mut text)?;
            cast_to_text(call, number, &mut text, start);
        }
        texts.push(Some(text_of(text)));
    }
    Made::column(texts)
}

/// What a cast to a text has otherwise than the output function: words for truth values, and no padding.
fn cast_to_text(call: &KernelCall, number: usize, text: &mut Vec<u8>, start: usize) {
    match call.catalog.base_type(call.arguments[number].oid, -1).0 {
        oid::BOOL => {
            let word: &[u8] = if text.get(start) == Some(&b't') { b"true" } else { b"false" };
            text.truncate(start);
            text.extend_from_slice(word);
        }
        oid::BPCHAR => {
            while text.len() > start && text.last() == Some(&b' ') {
                text.pop();
            }
        }
        _ => {}
    }
}

/// Addresses are cast with their mask, which their output function leaves out.
fn require_own_text(call: &KernelCall) -> Outcome<()> {
    const ADDRESSES: [Oid; 2] = [Oid(650), Oid(869)];
    let is_address = |ty: &PgType| ADDRESSES.contains(&call.catalog.base_type(ty.oid, -1).0);
    match call.arguments.iter().any(is_address) {
        true => Err(StatementError::unsupported("|| of a text and a network address")),
        false => Ok(()),
    }
}
