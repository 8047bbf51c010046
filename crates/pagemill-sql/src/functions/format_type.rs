//! A type's name with what its modifier says.
//!
//! Invariant: a modifier that only an extension's own function understands has no text here.
//!
//! Source: `format_type_extended` in `src/backend/utils/adt/format_type.c`, PostgreSQL 14 to 18.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, UInt32Type};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::interval_fields;

use super::keys::payloads;
use super::rows::{Made, Outcome};
use super::{Implementation, KernelCall};
use crate::catalog::Catalog;
use crate::error::StatementError;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "format_type" => format_types,
        "oidvectortypes" => types_of_vectors,
        _ => return None,
    }))
}

fn format_types(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let types = arguments[0].as_primitive::<UInt32Type>();
    let modifiers = arguments[1].as_primitive::<Int32Type>();
    let one = |(number, modifier): (Option<u32>, Option<i32>)| {
        let Some(number) = number else { return Ok(None) };
        let known = match (number, call.catalog.type_row(Oid(number)), modifier) {
            (0, ..) => Some("-".to_owned()),
            (_, None, _) => Some("???".to_owned()),
            (_, Some(_), None) => Some(call.catalog.type_name(Oid(number))),
            (_, Some(_), Some(modifier)) => formatted_type(&call.catalog, Oid(number), modifier),
        };
        let name = || call.catalog.type_name(Oid(number));
        let refused = || StatementError::unsupported(format!("a modifier of type {}", name()));
        known.ok_or_else(refused).map(Some)
    };
    assert_eq!(types.len(), modifiers.len(), "arguments of a call have as many rows");
    let texts = types.iter().zip(modifiers.iter()).map(one);
    Made::column(texts.collect::<Outcome<Vec<Option<String>>>>()?)
}

/// The types of a vector of numbers, as functions have it of their arguments.
fn types_of_vectors(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let vectors = payloads(&arguments[0]);
    let named = |vector: &[u8]| {
        // Behind the header of an array of one dimension.
        let numbers = vector.get(20..).unwrap_or_default().as_chunks::<4>().0; // default: there are none
        let oids = numbers.iter().map(|number| Oid(u32::from_le_bytes(*number)));
        oids.map(|oid| call.catalog.type_name(oid)).collect::<Vec<String>>().join(", ")
    };
    Made::column(vectors.iter().map(|vector| vector.map(named)).collect::<Vec<Option<String>>>())
}

/// `format_type(type, modifier)`, where a modifier was given.
pub(crate) fn formatted_type(catalog: &Catalog, type_oid: Oid, modifier: i32) -> Option<String> {
    let row = catalog.type_row(type_oid);
    // Vectors of numbers have names of their own.
    let is_vector = matches!(type_oid, oid::INT2VECTOR | oid::OIDVECTOR);
    if let Some(row) = row.filter(|row| row.is_array() && !is_vector) {
        return Some(format!("{}[]", formatted_type(catalog, row.element, modifier)?));
    }
    let plain = catalog.type_name(type_oid);
    Some(match (type_oid, modifier) {
        // Without a length these are not what the words of the standard would mean.
        (oid::BPCHAR, ..=-1) => "bpchar".to_owned(),
        (oid::BIT, ..=-1) => "\"bit\"".to_owned(),
        (_, ..=-1) => plain,
        (oid::BPCHAR | oid::VARCHAR, length) => format!("{plain}({})", length - 4),
        (oid::BIT | oid::VARBIT, length) => format!("{plain}({length})"),
        (oid::NUMERIC, packed) => {
            let packed = packed - 4;
            let scale = ((packed & 0x7ff) ^ 1024) - 1024;
            format!("{plain}({},{scale})", (packed >> 16) & 0xffff)
        }
        (oid::INTERVAL, packed) => format!("{plain}{}", interval_modifier(packed)),
        (oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ, digits) => {
            match plain.split_once(' ') {
                Some((first, rest)) => format!("{first}({digits}) {rest}"),
                None => plain,
            }
        }
        _ => return None,
    })
}

/// Source: `intervaltypmodout` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 15.
fn interval_modifier(packed: i32) -> String {
    use interval_fields::{DAY, FULL_PRECISION, FULL_RANGE, HOUR, MINUTE, MONTH, SECOND, YEAR};
    let fields = [
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
    ];
    let wanted = (packed >> 16) & FULL_RANGE;
    let words = fields.iter().find(|(field, _)| *field == wanted).map_or("", |(_, words)| words);
    match packed & FULL_PRECISION {
        FULL_PRECISION => words.to_owned(),
        digits => format!("{words}({digits})"),
    }
}
