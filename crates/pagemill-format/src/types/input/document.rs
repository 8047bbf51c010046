//! The input functions of the document, geometric, text-search, and date and time types, by type
//! OID.
//!
//! Source of the OIDs: `src/include/catalog/pg_type.dat`, PostgreSQL 14 to 18.

use super::ScalarReader;
use super::datetime::{self, DateTimeReader};
use super::tree::{DocumentReader, TypeInput};
use super::{geometry, json, jsonb, jsonpath, tsquery, tsvector, xml};
use crate::ids::Oid;

/// The input of the built-in type `oid`, if it is one of these.
pub fn document_input(oid: Oid) -> Option<TypeInput> {
    let document = |read: DocumentReader| Some(TypeInput::Document(read));
    let scalar = |read: ScalarReader| Some(TypeInput::Scalar(read));
    let date_time = |read: DateTimeReader| Some(TypeInput::DateTime(read));
    match oid.0 {
        114 => document(json::read_json),
        142 => document(xml::read_xml),
        3802 => document(jsonb::read_jsonb),
        4072 => document(jsonpath::read_jsonpath),
        3614 => document(tsvector::read_tsvector),
        3615 => document(tsquery::read_tsquery),
        1082 => date_time(datetime::read_date),
        1083 => date_time(datetime::read_time),
        1114 => date_time(datetime::read_timestamp),
        1184 => date_time(datetime::read_timestamptz),
        1186 => date_time(datetime::read_interval),
        1266 => date_time(datetime::read_timetz),
        600 => scalar(geometry::read_point),
        601 => scalar(geometry::read_lseg),
        602 => scalar(geometry::read_path),
        603 => scalar(geometry::read_box),
        604 => scalar(geometry::read_polygon),
        628 => scalar(geometry::read_line),
        718 => scalar(geometry::read_circle),
        _ => None,
    }
}
