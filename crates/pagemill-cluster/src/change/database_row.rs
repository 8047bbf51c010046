//! The row of `pg_database` for a new database: its template's, with what CREATE DATABASE changes.
//!
//! | column | 14 | 15 | 16 | 17, 18 |
//! | --- | --- | --- | --- | --- |
//! | `oid`, `datname`, `datdba`, `dattablespace` | new | new | new | new |
//! | `datistemplate`, `datallowconn`, `datconnlimit` | as asked | as asked | as asked | as asked |
//! | `datcollversion` | — | the template's, else of the system | same | same |
//! | `datacl` | null | null | null | null |
//! | all others: `encoding`, locales and their provider, `datfrozenxid`, `datminmxid`, … | as they are | | | |
//!
//! Source: `createdb` in `src/backend/commands/dbcommands.c`, `get_collation_actual_version` in
//! `src/backend/utils/adt/pg_locale.c`, `src/include/catalog/pg_database.h`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_sys::libc_version;

use super::catalog_table::{CatalogTable, Payloads, unpadded};
use crate::error::{Error, Result};
use crate::refusal::{DatabaseCause, NewDatabaseCause, Refusal};

/// NAMEDATALEN.
const NAME_BYTES: usize = 64;

/// What a new database is to be.
#[derive(Debug, Clone)]
pub struct NewDatabase {
    /// `datname`, in the encoding of the template, without padding.
    pub name: Box<[u8]>,
    /// `datdba`, the owner.
    pub owner: Oid,
    /// `dattablespace`; the template's when `None`.
    pub tablespace: Option<Oid>,
    /// `datistemplate`.
    pub is_template: bool,
    /// `datallowconn`.
    pub allow_connections: bool,
    /// `datconnlimit`, -1 for none.
    pub connection_limit: i32,
}

impl NewDatabase {
    /// The values of its row, made of those of its template.
    ///
    /// # Errors
    /// When the catalog lacks a column, or the template has a collation version that is not the system's.
    pub(super) fn row(
        &self,
        databases: &CatalogTable,
        mut row: Payloads,
        oid: Oid,
        tablespace: Oid,
    ) -> Result<Payloads> {
        let mut name = self.name.to_vec();
        name.resize(NAME_BYTES, 0);
        let version = collation_version(databases, &row)?;
        let changes = [
            ("oid", Some(oid.0.to_le_bytes().to_vec())),
            ("datname", Some(name)),
            ("datdba", Some(self.owner.0.to_le_bytes().to_vec())),
            ("dattablespace", Some(tablespace.0.to_le_bytes().to_vec())),
            ("datistemplate", Some(vec![u8::from(self.is_template)])),
            ("datallowconn", Some(vec![u8::from(self.allow_connections)])),
            ("datconnlimit", Some(self.connection_limit.to_le_bytes().to_vec())),
            ("datacl", None),
        ];
        for (column, value) in changes {
            row[databases.required(column)?] = value;
        }
        // 14 has no such column.
        if let Some(at) = databases.position("datcollversion") {
            row[at] = version;
        }
        Ok(row)
    }
}

/// The version that the new database's collation has: the template's, which has to be that of the system; for one that
/// does not say it, as `template0`, that of the system.
fn collation_version(databases: &CatalogTable, row: &Payloads) -> Result<Option<Vec<u8>>> {
    let value = |column| databases.position(column).and_then(|at| row.get(at)?.as_deref());
    let provider = value("datlocprovider").and_then(|byte| byte.first().copied());
    // Never null (BKI_FORCE_NOT_NULL), so where it is, the row is not what a server wrote.
    let collate = row[databases.required("datcollate")?].as_deref();
    let collate = collate.ok_or_else(|| databases.damage("datcollate is null".to_owned()))?;
    let actual = actual_version(provider, collate, libc_version());
    match (value("datcollversion"), actual) {
        (Some(known), Some(actual)) if known != actual.as_bytes() => {
            let name = unpadded(value("datname").unwrap_or(b"?"));
            let known = String::from_utf8_lossy(known).into_owned();
            let cause = DatabaseCause::CollationVersion { known, actual };
            Err(Error::refused(Refusal::database(name, cause)))
        }
        (Some(known), _) => Ok(Some(known.to_vec())),
        (None, None) if has_version(provider, collate) && libc_version().is_none() => {
            let collate = String::from_utf8_lossy(collate).into_owned();
            Err(Error::refused(NewDatabaseCause::UnknownLibrary(collate)))
        }
        (None, actual) => Ok(actual.map(String::into_bytes)),
    }
}

/// True for a collation of the C library whose order can change with the library's version.
fn has_version(provider: Option<u8>, collate: &[u8]) -> bool {
    let name = collate.to_ascii_lowercase();
    provider == Some(b'c') && name != b"c" && name != b"posix" && !name.starts_with(b"c.")
}

/// The version of a collation here; `None` where it has none, for ICU's, which only a server can tell, and for one of
/// the C library where `libc` is `None`.
fn actual_version(provider: Option<u8>, collate: &[u8], libc: Option<String>) -> Option<String> {
    match provider {
        Some(b'b') => Some("1".into()),
        _ if has_version(provider, collate) => libc,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_collations_that_can_change_have_a_version() {
        let actual = |provider, collate| actual_version(provider, collate, Some("2.36".into()));
        assert_eq!(actual(Some(b'c'), b"en_US.UTF-8").as_deref(), Some("2.36"));
        assert_eq!(actual_version(Some(b'c'), b"en_US.UTF-8", None), None);
        for plain in [&b"C"[..], b"POSIX", b"C.UTF-8", b"c.utf8"] {
            assert_eq!(actual(Some(b'c'), plain), None);
        }
        assert_eq!(actual(Some(b'b'), b"C.UTF-8").as_deref(), Some("1"));
        assert_eq!(actual(Some(b'i'), b"en_US.UTF-8"), None);
        assert_eq!(actual(None, b"en_US.UTF-8"), None);
    }
}
