//! The schemas of a database, ready to qualify names with: their quoted names and the search path.
//!
//! Source: `get_namespace_name` in `src/backend/utils/cache/lsyscache.c`, `regnamespaceout` in
//! `src/backend/utils/adt/regproc.c`, PostgreSQL 14 to 18.

use super::path::SearchPath;
use super::quote::quote_identifier;
use super::rows::GlobalRow;
use super::texts::Texts;
use pagemill_format::{Oid, PgVersion};

/// Quoted schema names by OID, and the search path.
#[derive(Debug)]
pub(super) struct Schemas {
    version: PgVersion,
    quoted: Texts,
    path: SearchPath,
}

impl Schemas {
    pub(super) fn new(version: PgVersion, rows: &[GlobalRow], path: SearchPath) -> Self {
        let mut quoted = Texts::with_capacity(rows.len());
        for row in rows {
            quoted.insert(row.oid, |out| quote_identifier(&row.name, version, out));
        }
        Self { version, quoted, path }
    }

    pub(super) fn version(&self) -> PgVersion {
        self.version
    }

    pub(super) fn path(&self) -> &SearchPath {
        &self.path
    }

    /// The quoted names, for `regnamespace`.
    pub(super) fn quoted(&self) -> &Texts {
        &self.quoted
    }

    /// Appends `name`, quoted, after its schema unless it is `visible`.
    pub(super) fn write_qualified(
        &self,
        namespace: Oid,
        name: &[u8],
        visible: bool,
        out: &mut Vec<u8>,
    ) {
        self.write_schema(namespace, visible, out);
        quote_identifier(name, self.version, out);
    }

    /// Appends the schema and a dot, unless the object is `visible`. A schema that is not there
    /// is left out, as PostgreSQL leaves it out.
    pub(super) fn write_schema(&self, namespace: Oid, visible: bool, out: &mut Vec<u8>) {
        if visible {
            return;
        }
        if let Some(schema) = self.quoted.get(namespace) {
            out.extend_from_slice(schema);
            out.push(b'.');
        }
    }
}
