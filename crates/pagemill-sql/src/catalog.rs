//! The cluster's own types, casts, operators and functions, as a statement's meaning is looked up in them.
//!
//! Nothing of it is a list in this program: an operator that an extension brought is found here as on the server, and
//! refused by its name where no code of ours computes it.
//!
//! Source: `src/include/catalog/pg_type.h`, `pg_cast.h`, `pg_operator.h`, `pg_proc.h`, `pg_collation.h`, PostgreSQL 14 to 18.

mod reading;
mod rows;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_cli::cluster_arguments::TextOrderChoice;
use pagemill_cluster::{Database, InputCatalog, Relation, UnknownTypes, ValueCatalog};
use pagemill_format::{Oid, PgVersion};
use pagemill_types::input::datetime::DateTimeContext;
use pagemill_types::time_zone::Zone;
use pagemill_types::value_styles::ValueStyles;

use crate::definitions::Dictionary;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::locale_order::LocaleOrder;
use crate::rights::{Granted, concerns_rights};
use crate::scan::{AllStatistics, IndexPool, TableIndexes, read_statistics};
use crate::sql_functions::{SqlFunction, SqlFunctions, sql_functions};
use crate::types::DEFAULT_COLLATION;

pub use rows::{CastContext, CastRow, CollationRow, FunctionRow, OperatorRow, RangeRow, TypeRow};

/// `sql`, whose functions are statements.
///
/// Source: `src/include/catalog/pg_language.dat`, PostgreSQL 18.
pub(crate) const SQL_LANGUAGE: Oid = Oid(14);

/// The labels of an enum type in its order.
#[derive(Debug)]
pub struct EnumOrder {
    labels: Vec<Oid>,
    places: HashMap<Oid, i32>,
}

impl EnumOrder {
    /// The place of a label, from 0.
    ///
    /// # Errors
    /// When the type has no such label.
    pub fn place(&self, label: Oid) -> Result<i32, StatementError> {
        self.places.get(&label).copied().ok_or_else(|| no_label(label.0))
    }

    /// The label at a place.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn label(&self, place: i32) -> Result<Oid, StatementError> {
        let at = usize::try_from(place).ok();
        at.and_then(|at| self.labels.get(at)).copied().ok_or_else(|| no_label(place as u32))
    }
}

#[cold]
fn no_label(number: u32) -> StatementError {
    StatementError::new(
        SqlState::DATA_CORRUPTED,
        format!("invalid internal value for enum: {number}"),
    )
}

/// What the order of texts is taken to be where the cluster does not tell it for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextOrder {
    /// Nothing: such a statement is refused.
    #[default]
    Recorded,
    /// What the C library of this machine has, whatever its version.
    Here,
    /// That of the texts' bytes.
    Bytes,
}

impl From<TextOrderChoice> for TextOrder {
    fn from(choice: TextOrderChoice) -> Self {
        match choice {
            TextOrderChoice::Recorded => Self::Recorded,
            TextOrderChoice::Here => Self::Here,
            TextOrderChoice::Bytes => Self::Bytes,
        }
    }
}

/// What was taken for granted.
#[derive(Debug, Default)]
struct Assumptions {
    all: Vec<String>,
    /// So many of them were told.
    told: usize,
}

/// What names in a statement can mean in one database.
pub struct Catalog {
    values: ValueCatalog,
    /// Read when something is first written by it.
    plain_values: OnceLock<ValueCatalog>,
    search_path: Vec<Oid>,
    types: HashMap<Oid, TypeRow>,
    type_names: HashMap<String, Vec<Oid>>,
    casts: HashMap<(Oid, Oid), CastRow>,
    /// By the range type, and by that of its multiranges.
    ranges: HashMap<Oid, RangeRow>,
    operators: HashMap<String, Vec<OperatorRow>>,
    functions: HashMap<Oid, FunctionRow>,
    function_names: HashMap<String, Vec<Oid>>,
    collations: HashMap<Oid, CollationRow>,
    inputs: OnceLock<InputCatalog>,
    statistics: OnceLock<AllStatistics>,
    enums: Mutex<HashMap<Oid, Arc<EnumOrder>>>,
    locales: Mutex<HashMap<String, Arc<LocaleOrder>>>,
    text_order: TextOrder,
    assumptions: Mutex<Assumptions>,
    /// Collations of columns that have another than their type's.
    column_collations: HashMap<(Oid, Box<[u8]>), Oid>,
    /// By the table.
    search_indexes: Mutex<HashMap<Oid, Arc<TableIndexes>>>,
    open_indexes: IndexPool,
    /// Read when a definition is first written.
    dictionary: OnceLock<Arc<Dictionary>>,
    /// Whose rights the session has; `None` for all.
    role: Option<Oid>,
    /// Read when it is first asked for.
    granted: Granted,
    /// Read when one is first called.
    sql_functions: OnceLock<SqlFunctions>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("database", self.database().row()).finish_non_exhaustive()
    }
}

impl Catalog {
    /// Reads the catalogs of a database.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(database: &Database) -> Result<Self> {
        let values = ValueCatalog::new(database, UnknownTypes::Hex)?;
        let mut read = Self {
            search_path: database.search_path()?.namespaces().to_vec(),
            values,
            plain_values: OnceLock::new(),
            types: HashMap::new(),
            type_names: HashMap::new(),
            casts: HashMap::new(),
            ranges: HashMap::new(),
            operators: HashMap::new(),
            functions: HashMap::new(),
            function_names: HashMap::new(),
            collations: HashMap::new(),
            inputs: OnceLock::new(),
            statistics: OnceLock::new(),
            enums: Mutex::default(),
            locales: Mutex::default(),
            text_order: TextOrder::default(),
            assumptions: Mutex::default(),
            column_collations: HashMap::new(),
            search_indexes: Mutex::default(),
            open_indexes: IndexPool::default(),
            dictionary: OnceLock::new(),
            role: None,
            granted: Granted::default(),
            sql_functions: OnceLock::new(),
        };
        read.read_types()?;
        read.read_casts()?;
        read.read_ranges()?;
        read.read_functions()?;
        read.mark_texts();
        read.read_operators()?;
        read.read_collations()?;
        read.read_default_collation()?;
        read.read_column_collations()?;
        Ok(read)
    }

    /// The same, with what the order of texts is taken to be.
    #[must_use]
    pub fn with_text_order(self, text_order: TextOrder) -> Self {
        Self { text_order, ..self }
    }

    /// What the order of texts is taken to be where it is not certain.
    pub(crate) fn text_order(&self) -> TextOrder {
        self.text_order
    }

    /// Notes what is taken for granted.
    pub(crate) fn assume(&self, what: String) {
        let mut known = self.assumptions.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.all.contains(&what) {
            known.all.push(what);
        }
    }

    /// What was taken for granted since this was last asked.
    pub(crate) fn new_assumptions(&self) -> Vec<String> {
        let mut known = self.assumptions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = known.all[known.told..].to_vec();
        known.told = known.all.len();
        new
    }

    /// The indexes that are open for searches.
    pub(crate) fn open_indexes(&self) -> &IndexPool {
        &self.open_indexes
    }

    /// The indexes of a table by which it can be searched, and why not by others.
    pub(crate) fn search_indexes(&self, table: &Relation) -> Result<Arc<TableIndexes>> {
        let mut known = self.search_indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&table.class.oid) {
            return Ok(found.clone());
        }
        let found = self.database().search_indexes(table)?;
        let found = Arc::new(TableIndexes::new(table.class.oid, found));
        known.insert(table.class.oid, found.clone());
        Ok(found)
    }

    /// The collation of a column of texts.
    pub fn column_collation(&self, relation: Oid, column: &[u8]) -> Oid {
        let known = self.column_collations.get(&(relation, column.into()));
        known.copied().unwrap_or(DEFAULT_COLLATION)
    }

    /// The same for a session that has the rights of this role only: schemas that it may not use are not searched, and functions that
    /// would tell of rights that are not followed here are not known.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn restrict(&mut self, role: Oid) -> Result<()> {
        self.role = Some(role);
        let mut path = Vec::new();
        for schema in &self.search_path {
            path.extend(self.uses(*schema)?.then_some(*schema));
        }
        self.search_path = path;
        let concerned = self.functions.values_mut().filter(|function| concerns_rights(function));
        concerned.for_each(|function| function.key.clear());
        Ok(())
    }

    /// Whose rights the session has; `None` for all.
    pub(crate) fn role(&self) -> Option<Oid> {
        self.role
    }

    pub(crate) fn granted(&self) -> &Granted {
        &self.granted
    }

    /// The database.
    pub fn database(&self) -> &Database {
        self.values.database()
    }

    /// How its values are decoded and printed.
    pub fn values(&self) -> &ValueCatalog {
        &self.values
    }

    /// The same as by default: what is written so reads the same in any session, whatever it set.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub(crate) fn plain_values(&self) -> Result<&ValueCatalog> {
        if *self.database().session_styles() == ValueStyles::default() {
            return Ok(&self.values);
        }
        if let Some(known) = self.plain_values.get() {
            return Ok(known);
        }
        let read = ValueCatalog::new(&self.database().in_plain_styles(), UnknownTypes::Hex)?;
        Ok(self.plain_values.get_or_init(|| read))
    }

    /// The session's zone, where it is not UTC.
    pub(crate) fn time_zone(&self) -> Option<&Arc<Zone>> {
        self.database().session_time_zone()
    }

    /// How texts become values: dates and times as the session's settings say, in its time zone.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn inputs(&self) -> Result<&InputCatalog> {
        if let Some(inputs) = self.inputs.get() {
            return Ok(inputs);
        }
        let inputs = InputCatalog::new(self.database())?;
        let styles = self.database().session_styles();
        let session = DateTimeContext {
            date_order: styles.dates.order,
            interval_style: styles.intervals,
            session_zone: self.time_zone().cloned().unwrap_or_else(|| Arc::new(Zone::gmt())),
            ..inputs.context().date_time.clone()
        };
        let inputs = inputs.with_date_time(session);
        Ok(self.inputs.get_or_init(|| inputs))
    }

    /// The names that definitions are written with.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn dictionary(&self) -> Result<Arc<Dictionary>> {
        match self.dictionary.get() {
            Some(read) => Ok(read.clone()),
            None => {
                let read = Arc::new(Dictionary::read(self)?);
                Ok(self.dictionary.get_or_init(|| read).clone())
            }
        }
    }

    /// A function that is written in SQL.
    ///
    /// # Errors
    /// When the catalog cannot be read, or has no such function.
    pub(crate) fn sql_function(&self, oid: Oid) -> Result<Arc<SqlFunction>> {
        let read = match self.sql_functions.get() {
            Some(read) => read,
            None => {
                let read = sql_functions(self)?;
                self.sql_functions.get_or_init(|| read)
            }
        };
        let missing = || {
            let message = format!("the function {} has no body", oid.0);
            StatementError::new(SqlState::DATA_CORRUPTED, message).into()
        };
        read.get(&oid).cloned().ok_or_else(missing)
    }

    /// What ANALYZE found out of columns; nothing, where that cannot be read, as no answer depends on it.
    pub(crate) fn statistics(&self) -> &AllStatistics {
        self.statistics.get_or_init(|| read_statistics(self).unwrap_or_default())
    }

    /// The order of an enum type, or of a domain over one.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub fn enum_order(&self, of: Oid) -> Result<Arc<EnumOrder>, StatementError> {
        let of = self.base_type(of, -1).0;
        let known = || self.enums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&of) {
            return Ok(found.clone());
        }
        let labels = self
            .database()
            .enum_labels_in_order(of)
            .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        let places = labels.iter().zip(0..).map(|(label, place)| (*label, place)).collect();
        let found = Arc::new(EnumOrder { labels, places });
        known().insert(of, found.clone());
        Ok(found)
    }

    /// Where names without a schema are looked up.
    pub fn search_path(&self) -> &[Oid] {
        &self.search_path
    }

    /// A type by its OID.
    pub fn type_row(&self, oid: Oid) -> Option<&TypeRow> {
        self.types.get(&oid)
    }

    /// Types of this name, in any schema.
    pub fn types_named(&self, name: &str) -> &[Oid] {
        self.type_names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The type under all domains, with the modifier that they give it, or that it had.
    pub fn base_type(&self, oid: Oid, modifier: i32) -> (Oid, i32) {
        let (mut oid, mut modifier) = (oid, modifier);
        while let Some(row) = self.types.get(&oid).filter(|row| row.kind == b'd') {
            if modifier < 0 {
                modifier = row.base_modifier;
            }
            oid = row.base;
        }
        (oid, modifier)
    }

    /// The cast from one type to another.
    pub fn cast(&self, source: Oid, target: Oid) -> Option<&CastRow> {
        self.casts.get(&(source, target))
    }

    /// What is known of a range type, or of a type of multiranges by the ranges in them.
    pub fn range_row(&self, oid: Oid) -> Option<&RangeRow> {
        self.ranges.get(&oid)
    }

    /// Operators of this name.
    pub fn operators(&self, name: &str) -> &[OperatorRow] {
        self.operators.get(name).map_or(&[], Vec::as_slice)
    }

    /// A function by its OID.
    pub fn function(&self, oid: Oid) -> Option<&FunctionRow> {
        self.functions.get(&oid)
    }

    /// Functions of this name.
    pub fn functions_named(&self, name: &str) -> impl Iterator<Item = &FunctionRow> {
        let oids = self.function_names.get(name).map_or(&[][..], Vec::as_slice);
        oids.iter().filter_map(|oid| self.functions.get(oid))
    }

    /// All names of functions, for near ones.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.function_names.keys().map(String::as_str)
    }

    /// A collation by its OID.
    pub fn collation(&self, oid: Oid) -> Option<&CollationRow> {
        self.collations.get(&oid)
    }

    /// All collations.
    pub(crate) fn collations(&self) -> impl Iterator<Item = &CollationRow> {
        self.collations.values()
    }

    /// The collation of a name: that of the database's encoding, else one of any encoding.
    pub fn collation_named(&self, name: &str) -> Option<&CollationRow> {
        let of = |encoding: i32| {
            self.collations.values().find(|row| row.name == name && row.encoding == encoding)
        };
        of(self.database().row().encoding).or_else(|| of(-1))
    }

    /// The order of a locale of the C library.
    ///
    /// # Errors
    /// When the system does not have it.
    pub(crate) fn locale_order(&self, locale: &str) -> std::io::Result<Arc<LocaleOrder>> {
        let known = || self.locales.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(locale) {
            return Ok(found.clone());
        }
        let found = Arc::new(LocaleOrder::new(locale)?);
        known().insert(locale.to_owned(), found.clone());
        Ok(found)
    }

    /// The type's name as messages have it: `format_type`.
    pub fn type_name(&self, oid: Oid) -> String {
        match oid {
            crate::types::UNKNOWN => "unknown".to_owned(),
            _ => self.values.type_name(oid).unwrap_or_else(|_| oid.0.to_string()),
        }
    }
}

/// A name as a statement has to write it: in quotes where it is a key word of any version, or has other characters.
pub(crate) fn quote_identifier(name: &str) -> String {
    let mut quoted = Vec::new();
    pagemill_cluster::names::quote_identifier(name.as_bytes(), PgVersion::V18, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}
