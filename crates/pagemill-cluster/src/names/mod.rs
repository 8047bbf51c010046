//! Object names as PostgreSQL prints them: the output of `regclass`, `regtype`, `regproc` and
//! the other types that hold an OID and show a name.
//!
//! The rules need whole catalogs (is another function of this name earlier in the search path?),
//! so the text of every object of a kind is made ready when the first OID of that kind is
//! printed; each one after that costs a hash probe and a copy. Catalogs that no value refers to
//! are never read.
//!
//! Invariants: nothing here does I/O, the rows come through [`NameRows`]; an OID without a row
//! prints as its number, never as an error. Where PostgreSQL itself would fail (a function whose
//! argument type was deleted behind its back) the text has `???`, as `format_type` prints it.
//!
//! No version up to 18 has `regdatabase`.
//!
//! Source: `src/backend/utils/adt/regproc.c`, PostgreSQL 14 to 18.

mod keywords;
mod near;
mod objects;
mod path;
mod quote;
mod rows;
mod schemas;
mod texts;
mod types;

pub use keywords::is_quoted_keyword;
pub use near::nearest;
pub use path::{PG_CATALOG, SearchPath};
pub use quote::quote_identifier;
pub use rows::{CollationRow, GlobalRow, NameRows, NamedRow, OperatorRow, ProcRow, TypeRow};

pub(crate) use types::is_true_array;

use objects::OverloadedTexts;
use pagemill_format::{Oid, PgVersion};
use schemas::Schemas;
use std::sync::OnceLock;
use texts::Texts;

/// What names depend on beside the catalogs.
#[derive(Debug, Clone)]
pub struct NameSettings {
    /// The version that wrote the catalogs: it decides which words are quoted.
    pub version: PgVersion,
    /// The number of the database's encoding (`pg_database.encoding`).
    pub encoding: i32,
    /// The entries of `search_path`, as [`crate::settings::parse_search_path`] splits it.
    pub search_path: Vec<Box<[u8]>>,
    /// The role whose name `$user` stands for, taken for a superuser.
    pub user: Box<[u8]>,
}

impl NameSettings {
    /// The settings of a plain `psql` session of the role `postgres`: `"$user", public`.
    pub fn new(version: PgVersion, encoding: i32) -> Self {
        let search_path = vec![b"$user".as_slice().into(), b"public".as_slice().into()];
        Self { version, encoding, search_path, user: b"postgres".as_slice().into() }
    }
}

/// The printed names of all objects of one database, made ready kind by kind.
#[derive(Debug)]
pub struct NameCatalog<R> {
    rows: R,
    settings: NameSettings,
    schemas: OnceLock<Schemas>,
    roles: OnceLock<Texts>,
    classes: OnceLock<Texts>,
    types: OnceLock<Texts>,
    procs: OnceLock<OverloadedTexts>,
    operators: OnceLock<OverloadedTexts>,
    collations: OnceLock<Texts>,
    ts_configs: OnceLock<Texts>,
    ts_dicts: OnceLock<Texts>,
}

impl<R: NameRows> NameCatalog<R> {
    /// A catalog that has read nothing yet.
    pub fn new(rows: R, settings: NameSettings) -> Self {
        Self {
            rows,
            settings,
            schemas: OnceLock::new(),
            roles: OnceLock::new(),
            classes: OnceLock::new(),
            types: OnceLock::new(),
            procs: OnceLock::new(),
            operators: OnceLock::new(),
            collations: OnceLock::new(),
            ts_configs: OnceLock::new(),
            ts_dicts: OnceLock::new(),
        }
    }

    /// The name of a role, unquoted.
    ///
    /// # Errors
    /// When `pg_authid` cannot be read.
    pub fn role_name(&self, oid: Oid) -> Result<Option<&[u8]>, R::Error> {
        Ok(self.roles()?.get(oid))
    }

    /// Appends what the SQL function `format_type(oid, NULL)` returns: as `regtype`, but `???`
    /// for a type that is not there.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn write_format_type(&self, oid: Oid, out: &mut Vec<u8>) -> Result<(), R::Error> {
        types::write_format_type(self.types()?, oid, out);
        Ok(())
    }

    /// Appends a `regrole`.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn write_regrole(&self, oid: Oid, out: &mut Vec<u8>) -> Result<(), R::Error> {
        match self.roles()?.get(oid) {
            Some(name) if oid.is_valid() => quote_identifier(name, self.settings.version, out),
            _ => Texts::default().write(oid, b"-", out),
        }
        Ok(())
    }

    fn schemas(&self) -> Result<&Schemas, R::Error> {
        kept(&self.schemas, || {
            let rows = self.rows.namespaces()?;
            let NameSettings { version, search_path, user, .. } = &self.settings;
            Ok(Schemas::new(*version, &rows, SearchPath::resolve(search_path, user, &rows)))
        })
    }

    fn roles(&self) -> Result<&Texts, R::Error> {
        kept(&self.roles, || {
            let rows = self.rows.roles()?;
            let mut texts = Texts::with_capacity(rows.len());
            for row in rows {
                texts.insert(row.oid, |out| out.extend_from_slice(&row.name));
            }
            Ok(texts)
        })
    }

    fn classes(&self) -> Result<&Texts, R::Error> {
        kept(&self.classes, || Ok(objects::named_texts(&self.rows.classes()?, self.schemas()?)))
    }

    fn types(&self) -> Result<&Texts, R::Error> {
        kept(&self.types, || Ok(types::type_texts(&self.rows.types()?, self.schemas()?)))
    }

    fn procs(&self) -> Result<&OverloadedTexts, R::Error> {
        kept(&self.procs, || {
            Ok(objects::proc_texts(&self.rows.procs()?, self.schemas()?, self.types()?))
        })
    }

    fn operators(&self) -> Result<&OverloadedTexts, R::Error> {
        kept(&self.operators, || {
            Ok(objects::operator_texts(&self.rows.operators()?, self.schemas()?, self.types()?))
        })
    }

    fn collations(&self) -> Result<&Texts, R::Error> {
        kept(&self.collations, || {
            let rows = self.rows.collations()?;
            Ok(objects::collation_texts(&rows, self.settings.encoding, self.schemas()?))
        })
    }

    fn ts_configs(&self) -> Result<&Texts, R::Error> {
        kept(&self.ts_configs, || {
            Ok(objects::named_texts(&self.rows.ts_configs()?, self.schemas()?))
        })
    }

    fn ts_dicts(&self) -> Result<&Texts, R::Error> {
        kept(&self.ts_dicts, || Ok(objects::named_texts(&self.rows.ts_dicts()?, self.schemas()?)))
    }
}

macro_rules! reg_output {
    ($($name:ident: $ty:literal, $zero:literal, $texts:expr;)*) => {
        impl<R: NameRows> NameCatalog<R> {
            $(
                #[doc = concat!("Appends a `", $ty, "`: `", $zero, "` for 0.")]
                ///
                /// # Errors
                /// When the rows cannot be read.
                pub fn $name(&self, oid: Oid, out: &mut Vec<u8>) -> Result<(), R::Error> {
                    let texts: fn(&Self) -> Result<&Texts, R::Error> = $texts;
                    texts(self)?.write(oid, $zero.as_bytes(), out);
                    Ok(())
                }
            )*
        }
    };
}

reg_output! {
    write_regclass: "regclass", "-", |names| names.classes();
    write_regtype: "regtype", "-", |names| names.types();
    write_regproc: "regproc", "-", |names| Ok(&names.procs()?.by_name);
    write_regprocedure: "regprocedure", "-", |names| Ok(&names.procs()?.with_args);
    write_regoper: "regoper", "0", |names| Ok(&names.operators()?.by_name);
    write_regoperator: "regoperator", "0", |names| Ok(&names.operators()?.with_args);
    write_regnamespace: "regnamespace", "-", |names| Ok(names.schemas()?.quoted());
    write_regcollation: "regcollation", "-", |names| names.collations();
    write_regconfig: "regconfig", "-", |names| names.ts_configs();
    write_regdictionary: "regdictionary", "-", |names| names.ts_dicts();
}

/// What `cell` keeps, made on first use. Of two threads that make it at once, the first to
/// finish wins, and both get the same.
fn kept<T, E>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}
