//! What printing values asks of a database: names, types and TOAST values.
//!
//! One per thread; the catalogs behind it are shared. Errors of the catalogs pass through the
//! format crate's [`pagemill_format::ErrorKind::Lookup`] and come out again as they were.

use std::sync::Arc;

use pagemill_format::varlena::ToastPointer;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::output::{Lookups, NameKind, ValueType};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::name_rows::{DatabaseNames, DatabaseSettings};
use crate::settings::SettingProblem;
use crate::toast::ToastReader;
use crate::value_types::{TypeChoices, UnknownTypes};

/// Names and types as one reader of a database wants them printed; shared by its threads.
#[derive(Debug, Clone)]
pub struct ValueCatalog {
    database: Database,
    names: Arc<DatabaseNames>,
    choices: Arc<TypeChoices>,
    problems: Arc<[SettingProblem]>,
}

impl ValueCatalog {
    /// A catalog for a database, with its settings for names and money.
    ///
    /// # Errors
    /// When the settings of `pg_db_role_setting` cannot be read.
    pub fn new(database: &Database, unknown: UnknownTypes) -> Result<Self> {
        let settings = DatabaseSettings::read(database)?;
        let choices = TypeChoices::new(unknown, settings.lc_monetary);
        let names = Arc::new(DatabaseNames::new_for(database.clone(), settings.names));
        Ok(Self {
            database: database.clone(),
            names,
            choices: Arc::new(choices),
            problems: settings.problems.into(),
        })
    }

    /// Prints money as this locale does, whatever the settings say.
    #[must_use]
    pub fn with_lc_monetary(mut self, locale: &str) -> Self {
        self.choices = Arc::new(self.choices.with_lc_monetary(locale.to_owned()));
        self
    }

    /// What a server would refuse in its configuration files; it was passed over.
    pub fn setting_problems(&self) -> &[SettingProblem] {
        &self.problems
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The type with this OID.
    ///
    /// # Errors
    /// When there is none, or it cannot be printed.
    pub fn value_type(&self, oid: Oid) -> Result<Arc<ValueType>> {
        self.database.types()?.value_type(&self.database, oid, &self.choices)
    }

    /// The name of a type as SQL spells it.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn type_name(&self, oid: Oid) -> Result<String> {
        let mut name = Vec::new();
        self.names.write_regtype(oid, &mut name)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// What one thread prints values with.
    pub fn lookups(&self) -> ValueLookups {
        ValueLookups { catalog: self.clone(), toast: ToastReader::new(self.database.clone()) }
    }
}

/// The lookups of one thread.
pub struct ValueLookups {
    catalog: ValueCatalog,
    toast: ToastReader,
}

impl ValueLookups {
    /// Pages of TOAST tables and indexes that were found in the cache, and those that were read.
    pub fn cache_counts(&self) -> (u64, u64) {
        self.toast.cache_counts()
    }

    /// Values that were fetched from TOAST tables.
    pub fn toast_fetches(&self) -> u64 {
        self.toast.fetched()
    }
}

fn passed(error: Error) -> FormatError {
    FormatError::lookup(error)
}

impl Lookups for ValueLookups {
    fn write_name(
        &mut self,
        kind: NameKind,
        oid: Oid,
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        let names = &self.catalog.names;
        match kind {
            NameKind::Class => names.write_regclass(oid, out),
            NameKind::Collation => names.write_regcollation(oid, out),
            NameKind::Config => names.write_regconfig(oid, out),
            NameKind::Dictionary => names.write_regdictionary(oid, out),
            NameKind::Namespace => names.write_regnamespace(oid, out),
            NameKind::Oper => names.write_regoper(oid, out),
            NameKind::Operator => names.write_regoperator(oid, out),
            NameKind::Proc => names.write_regproc(oid, out),
            NameKind::Procedure => names.write_regprocedure(oid, out),
            NameKind::Role => names.write_regrole(oid, out),
            NameKind::Type => names.write_regtype(oid, out),
        }
        .map_err(passed)
    }

    fn write_role(&mut self, oid: Oid, out: &mut Vec<u8>) -> pagemill_format::Result<bool> {
        let name = self.catalog.names.role_name(oid).map_err(passed)?;
        if let Some(name) = name {
            out.extend_from_slice(name);
        }
        Ok(name.is_some())
    }

    fn value_type(&mut self, oid: Oid) -> pagemill_format::Result<Arc<ValueType>> {
        self.catalog.value_type(oid).map_err(passed)
    }

    fn fetch_toast(
        &mut self,
        pointer: &ToastPointer,
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        self.toast.fetch(pointer, out).map_err(passed)
    }
}
