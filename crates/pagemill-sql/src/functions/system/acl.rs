//! The privileges that an object has as long as nobody granted or revoked any.
//!
//! Source: `acldefault` in `src/backend/utils/adt/acl.c`, `src/include/utils/acl.h`, `src/include/nodes/parsenodes.h`, PostgreSQL
//! 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::UInt32Type;

use super::super::arrays::value::{ArrayParts, ElementType};
use super::super::rows::Outcome;
use super::super::text_form::payload_of;
use super::super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};
use crate::rights::{bits, default_rights};

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "acldefault_sql").then_some(Implementation::Kernel(defaults))
}

/// What everybody may do with a kind of object, and what its owner may, by the letters that grants are printed with.
///
/// # Errors
/// For a letter that is no kind's.
fn rights(kind: u8, major: u32) -> Outcome<(&'static str, &'static str)> {
    default_rights(kind, major).ok_or_else(|| {
        let message = format!("unrecognized object type abbreviation: {}", char::from(kind));
        StatementError::new(SqlState("XX000"), message)
    })
}

/// An `aclitem`: 16 bytes from 16 on, 12 before.
fn item(grantee: u32, grantor: u32, letters: &str, major: u32) -> Vec<u8> {
    let mut out = [grantee.to_le_bytes(), grantor.to_le_bytes()].concat();
    match major >= 16 {
        true => out.extend(u64::from(bits(letters)).to_le_bytes()),
        false => out.extend(bits(letters).to_le_bytes()),
    }
    out
}

fn defaults(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    const EVERYBODY: u32 = 0;
    let major = call.catalog.database().cluster().version().major();
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let (kinds, owners) = (&arguments[0], arguments[1].as_primitive::<UInt32Type>());
    let row = |row: usize| {
        if kinds.is_null(row) || owners.is_null(row) {
            return Ok(None);
        }
        let kind = payload_of(&call.catalog, call.arguments[0], kinds, row)?;
        let kind = kind.first().copied().unwrap_or_default();
        let ((everybody, own), owner) = (rights(kind, major)?, owners.value(row));
        let items = [(EVERYBODY, everybody), (owner, own)];
        let items = items.into_iter().filter(|(_, letters)| !letters.is_empty());
        let items = items.map(|(grantee, letters)| Some(item(grantee, owner, letters, major)));
        ArrayParts::of(items.collect()).payload(&elements).map(Some)
    };
    let payloads = (0..kinds.len()).map(row).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?;
    Ok(std::sync::Arc::new(payloads.iter().map(Option::as_deref).collect::<BinaryArray>()))
}
