//! The input functions of the document, geometric and text-search types, by type OID.
//!
//! Source of the OIDs: `src/include/catalog/pg_type.dat`, PostgreSQL 14 to 18.

use super::tree::DocumentReader;
use crate::ids::{Oid, PgVersion};

/// The input function of the built-in type `oid` in `version`, if it is one of these.
pub fn document_reader(oid: Oid, _version: PgVersion) -> Option<DocumentReader> {
    Some(match oid.0 {
        _ => return None,
    })
}
