//! What a collation compares texts by, as the catalogs have it.
//!
//! An order by bytes is the same everywhere. That of a locale of the C library may change with the library's version, so
//! that an index which a server built is in the order of this program's only where the cluster recorded this version.
//!
//! Invariant: an order that is given out as certain is the one of the server.
//!
//! Source: `src/include/catalog/pg_collation.h`, `pg_database.h`, `pg_newlocale_from_collation` in
//! `src/backend/utils/adt/pg_locale.c`, PostgreSQL 14 to 18.

use pagemill_format::varlena::Varlena;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_sys::libc_version;

use crate::database::{Database, catalog};
use crate::error::{Error, Result};
use crate::refusal::OrderCause;

/// `default` in `pg_collation`.
pub(crate) const DEFAULT_COLLATION: Oid = Oid(100);
/// `C` and `POSIX`.
const COLLATIONS_BY_BYTES: [Oid; 2] = [Oid(950), Oid(951)];
/// `UTF8` in `src/include/mb/pg_wchar.h`.
const UTF8: i32 = 6;

/// How texts are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collation {
    /// Byte by byte: `C`, `POSIX`, and `ucs_basic`.
    Bytes,
    /// As the C library does under this locale.
    Libc(String),
}

struct CollationOrder {
    provider: u8,
    deterministic: bool,
    locale: Box<[u8]>,
    /// That of the library when the collation was made; 14 does not record the database's.
    version: Option<Box<[u8]>>,
}

/// Why an order cannot be followed: something about it, or a failure on the way.
pub(crate) enum OrderFailure {
    Unknown(OrderCause),
    Error(Error),
}

impl From<Error> for OrderFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Database {
    /// How a collation compares.
    ///
    /// # Errors
    /// [`Error::Refused`] for one that cannot be followed here.
    pub fn collation_of(&self, oid: Oid) -> Result<Collation> {
        self.collation(oid).map_err(|failure| match failure {
            OrderFailure::Unknown(cause) => Error::refused(cause),
            OrderFailure::Error(error) => error,
        })
    }

    pub(crate) fn collation(&self, oid: Oid) -> Result<Collation, OrderFailure> {
        if COLLATIONS_BY_BYTES.contains(&oid) {
            return Ok(Collation::Bytes);
        }
        let Some(row) = self.collation_order(oid)? else {
            return Err(OrderFailure::Unknown(OrderCause::MissingCollation(oid)));
        };
        match row.provider {
            b'c' if matches!(&*row.locale, b"C" | b"POSIX") => Ok(Collation::Bytes),
            // `C` of the provider that is built in sorts by code points, which UTF-8 keeps.
            b'b' if row.deterministic => Ok(Collation::Bytes),
            b'c' if row.deterministic => {
                Ok(Collation::Libc(String::from_utf8_lossy(&row.locale).into_owned()))
            }
            b'c' => Err(OrderFailure::Unknown(OrderCause::NotDeterministic)),
            _ => Err(OrderFailure::Unknown(OrderCause::Icu)),
        }
    }

    /// True for a collation that holds only the same bytes for equal.
    pub(crate) fn is_deterministic(&self, collation: Oid) -> Result<bool> {
        if COLLATIONS_BY_BYTES.contains(&collation) {
            return Ok(true);
        }
        Ok(self.collation_order(collation)?.is_some_and(|row| row.deterministic))
    }

    /// True for a collation of the C library which had the version of this program's, with the same texts.
    fn has_version_of_library(&self, collation: Oid) -> Result<bool> {
        let recorded = self.collation_order(collation)?.and_then(|row| row.version);
        let here = libc_version().map(|version| version.into_bytes().into_boxed_slice());
        Ok(recorded.is_some() && recorded == here && self.row().encoding == UTF8)
    }

    fn collation_order(&self, oid: Oid) -> Result<Option<CollationOrder>> {
        match oid {
            DEFAULT_COLLATION => self.default_collation(),
            _ => self.collation_row(oid),
        }
    }

    fn collation_row(&self, oid: Oid) -> Result<Option<CollationOrder>> {
        let mut found = None;
        let wanted = ["oid", "collprovider", "collisdeterministic", "collcollate", "collversion"];
        self.scan(catalog::PG_COLLATION, &wanted, |row| {
            if row.oid(0)? == oid {
                found = Some(CollationOrder {
                    provider: row.byte(1)?,
                    deterministic: row.byte(2)? != 0,
                    locale: locale_text(row.raw(3))?,
                    version: row.raw(4).map(|raw| locale_text(Some(raw))).transpose()?,
                });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The order of the database itself.
    fn default_collation(&self) -> Result<Option<CollationOrder>> {
        let has_provider = self.cluster().version() >= pagemill_format::PgVersion::V15;
        let (provider, version) = match has_provider {
            true => ("datlocprovider", "datcollversion"),
            false => ("datistemplate", "datistemplate"),
        };
        let mut found = None;
        self.cluster().scan_shared(
            catalog::PG_DATABASE,
            &["oid", provider, "datcollate", version],
            |row| {
                if row.oid(0)? == self.row().oid {
                    let provider = if has_provider { row.byte(1)? } else { b'c' };
                    let locale = locale_text(row.raw(2))?;
                    let version = row.raw(3).filter(|_| has_provider);
                    let version = version.map(|raw| locale_text(Some(raw))).transpose()?;
                    found = Some(CollationOrder { provider, deterministic: true, locale, version });
                }
                Ok(())
            },
        )?;
        Ok(found)
    }

    /// The order of a collation, if it is certain to be the one of the server that built an index.
    ///
    /// `C.UTF-8` of the C library is by code points, which UTF-8 keeps, in every version.
    pub(crate) fn certain_order(&self, collation: Oid) -> Result<Option<Collation>> {
        match self.collation(collation) {
            Ok(Collation::Bytes) => Ok(Some(Collation::Bytes)),
            Ok(Collation::Libc(locale)) if matches!(&*locale, "C.UTF-8" | "C.utf8") => {
                Ok(Some(Collation::Bytes))
            }
            Ok(libc) => Ok(self.has_version_of_library(collation)?.then_some(libc)),
            Err(OrderFailure::Unknown(_)) => Ok(None),
            Err(OrderFailure::Error(error)) => Err(error),
        }
    }
}

/// `collcollate` and `datcollate`: a `name` in 14, a text from 15 on, null for other providers.
fn locale_text(raw: Option<&[u8]>) -> Result<Box<[u8]>, FormatError> {
    let Some(raw) = raw else { return Ok(Box::default()) };
    if raw.len() == 64 && raw.last() == Some(&0) && raw.contains(&0) {
        let end = raw.iter().position(|&byte| byte == 0).unwrap_or(raw.len());
        return Ok(raw[..end].into());
    }
    match Varlena::parse(raw)? {
        Varlena::Plain(text) => Ok(text.into()),
        _ => Err(FormatError::corrupt("catalog row", 0, "a locale that is compressed")),
    }
}
