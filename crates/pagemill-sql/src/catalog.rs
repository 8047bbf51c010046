//! The cluster's own types, casts, operators and functions, as a statement's meaning is looked up in them.
//!
//! Nothing of it is a list in this program: an operator that an extension brought is found here as on the server, and
//! refused by its name where no code of ours computes it.
//!
//! Source: `src/include/catalog/pg_type.h`, `pg_cast.h`, `pg_operator.h`, `pg_proc.h`, `pg_collation.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_cluster::{Database, InputCatalog, Relation, UnknownTypes, ValueCatalog};
use pagemill_format::{Oid, PgVersion};
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle};
use pagemill_types::time_zone::Zone;

use crate::definitions::Dictionary;
use crate::error::{Result, SqlState, StatementError};
use crate::functions::locale_order::LocaleOrder;
use crate::rights::Rights;
use crate::scan::{AllStatistics, TableIndexes, read_statistics};
use crate::sql_functions::{SqlFunction, SqlFunctions, sql_functions};
use crate::system_rows::{PG_CATALOG, for_each_row};
use crate::types::DEFAULT_COLLATION;

/// `internal`, the language of the server's own functions, whose source is the name of a C function.
const INTERNAL: Oid = Oid(12);

/// `sql`, whose functions are statements.
///
/// Source: `src/include/catalog/pg_language.dat`, PostgreSQL 18.
pub(crate) const SQL_LANGUAGE: Oid = Oid(14);

/// A row of `pg_type`.
#[derive(Debug, Clone)]
pub struct TypeRow {
    /// `oid`.
    pub oid: Oid,
    /// `typname`.
    pub name: String,
    /// `typnamespace`.
    pub namespace: Oid,
    /// `typtype`: b, c, d, e, m, p, r.
    pub kind: u8,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub is_preferred: bool,
    /// `typbasetype` of a domain, else 0.
    pub base: Oid,
    /// `typtypmod` of a domain.
    pub base_modifier: i32,
    /// `typelem`.
    pub element: Oid,
    /// `typarray`.
    pub array: Oid,
    /// `typlen`.
    pub length: i16,
    /// `typcollation`, 0 for none.
    pub collation: Oid,
}

impl TypeRow {
    /// True for a true array type: one that subscripts its elements.
    pub fn is_array(&self) -> bool {
        self.element != Oid(0) && self.length == -1 && self.category == b'A'
    }
}

/// How a cast comes about, `pg_cast.castcontext`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastContext {
    /// Anywhere.
    Implicit,
    /// Where a value is assigned.
    Assignment,
    /// Where it is asked for.
    Explicit,
}

/// A row of `pg_cast`.
#[derive(Debug, Clone, Copy)]
pub struct CastRow {
    /// `castfunc`, 0 for none.
    pub function: Oid,
    /// `castcontext`.
    pub context: CastContext,
    /// `castmethod`: f, i, b.
    pub method: u8,
}

/// A row of `pg_operator` with two operands, or one on the right.
#[derive(Debug, Clone)]
pub struct OperatorRow {
    /// `oprname`.
    pub name: String,
    /// `oprnamespace`.
    pub namespace: Oid,
    /// `oprleft`, 0 for a prefix operator.
    pub left: Oid,
    /// `oprright`.
    pub right: Oid,
    /// `oprcode`.
    pub function: Oid,
}

/// A row of `pg_proc`.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// `oid`.
    pub oid: Oid,
    /// `proname`.
    pub name: String,
    /// `pronamespace`.
    pub namespace: Oid,
    /// `prokind`: f, p, a, w.
    pub kind: u8,
    /// `proretset`.
    pub returns_set: bool,
    /// `proisstrict`.
    pub is_strict: bool,
    /// `provariadic`, 0 for none.
    pub variadic: Oid,
    /// `pronargdefaults`.
    pub defaults: usize,
    /// `prorettype`.
    pub result: Oid,
    /// `proargtypes`.
    pub arguments: Vec<Oid>,
    /// `prolang`.
    pub language: Oid,
    /// By what our own code is found: the name of the server's C function; of all others, name and types of arguments.
    pub key: String,
}

/// A row of `pg_collation`, as far as an order follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollationRow {
    /// `oid`.
    pub oid: Oid,
    /// `collname`.
    pub name: String,
    /// `collprovider`: b, c, d, i.
    pub provider: u8,
    /// `collisdeterministic`.
    pub is_deterministic: bool,
    /// `collcollate`, or the locale of a provider that has one.
    pub locale: String,
    /// `collctype`: what letters are, for the provider libc.
    pub letters: String,
    /// `collencoding`, -1 for any.
    pub encoding: i32,
    /// `collversion`: that of the library, as it was when the collation was made.
    pub version: Option<String>,
}

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

/// What names in a statement can mean in one database.
pub struct Catalog {
    values: ValueCatalog,
    search_path: Vec<Oid>,
    types: HashMap<Oid, TypeRow>,
    type_names: HashMap<String, Vec<Oid>>,
    casts: HashMap<(Oid, Oid), CastRow>,
    operators: HashMap<String, Vec<OperatorRow>>,
    functions: HashMap<Oid, FunctionRow>,
    function_names: HashMap<String, Vec<Oid>>,
    collations: HashMap<Oid, CollationRow>,
    inputs: OnceLock<InputCatalog>,
    statistics: OnceLock<AllStatistics>,
    enums: Mutex<HashMap<Oid, Arc<EnumOrder>>>,
    locales: Mutex<HashMap<String, Arc<LocaleOrder>>>,
    /// Collations of columns that have another than their type's.
    column_collations: HashMap<(Oid, Box<[u8]>), Oid>,
    /// By the table.
    search_indexes: Mutex<HashMap<Oid, Arc<TableIndexes>>>,
    /// Read when a definition is first written.
    dictionary: OnceLock<Arc<Dictionary>>,
    /// What the session may read; `None` for all.
    rights: Option<Rights>,
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
            types: HashMap::new(),
            type_names: HashMap::new(),
            casts: HashMap::new(),
            operators: HashMap::new(),
            functions: HashMap::new(),
            function_names: HashMap::new(),
            collations: HashMap::new(),
            inputs: OnceLock::new(),
            statistics: OnceLock::new(),
            enums: Mutex::default(),
            locales: Mutex::default(),
            column_collations: HashMap::new(),
            search_indexes: Mutex::default(),
            dictionary: OnceLock::new(),
            rights: None,
            sql_functions: OnceLock::new(),
        };
        read.read_types()?;
        read.read_casts()?;
        read.read_functions()?;
        read.read_operators()?;
        read.read_collations()?;
        read.read_default_collation()?;
        read.read_column_collations()?;
        Ok(read)
    }

    /// The indexes of a table by which it can be searched, and why not by others.
    pub(crate) fn search_indexes(&self, table: &Relation) -> Result<Arc<TableIndexes>> {
        let mut known = self.search_indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&table.class.oid) {
            return Ok(found.clone());
        }
        let found = self.database().search_indexes(table)?;
        let shared = found.into_iter().map(|(name, index)| (name, index.map(Arc::new)));
        let found: Arc<TableIndexes> = Arc::new(shared.collect());
        known.insert(table.class.oid, found.clone());
        Ok(found)
    }

    fn read_types(&mut self) -> Result<()> {
        let columns = [
            "oid",
            "typname",
            "typnamespace",
            "typtype",
            "typcategory",
            "typispreferred",
            "typbasetype",
            "typtypmod",
            "typelem",
            "typarray",
            "typlen",
            "typcollation",
        ];
        let (types, names) = (&mut self.types, &mut self.type_names);
        for_each_row(&self.values, "pg_type", &columns, |row| {
            let found = TypeRow {
                oid: row.oid(0),
                name: row.name(1),
                namespace: row.oid(2),
                kind: row.byte(3),
                category: row.byte(4),
                is_preferred: row.bool(5),
                base: row.oid(6),
                base_modifier: row.int4(7),
                element: row.oid(8),
                array: row.oid(9),
                length: row.int2(10),
                collation: row.oid(11),
            };
            names.entry(found.name.clone()).or_default().push(found.oid);
            types.insert(found.oid, found);
            Ok(())
        })
    }

    fn read_casts(&mut self) -> Result<()> {
        let columns = ["castsource", "casttarget", "castfunc", "castcontext", "castmethod"];
        let casts = &mut self.casts;
        for_each_row(&self.values, "pg_cast", &columns, |row| {
            let context = match row.byte(3) {
                b'i' => CastContext::Implicit,
                b'a' => CastContext::Assignment,
                _ => CastContext::Explicit,
            };
            let found = CastRow { function: row.oid(2), context, method: row.byte(4) };
            casts.insert((row.oid(0), row.oid(1)), found);
            Ok(())
        })
    }

    fn read_functions(&mut self) -> Result<()> {
        let columns = [
            "oid",
            "proname",
            "pronamespace",
            "prokind",
            "proretset",
            "proisstrict",
            "provariadic",
            "pronargdefaults",
            "prorettype",
            "proargtypes",
            "prolang",
            "prosrc",
        ];
        let Self { types, functions, function_names, values, .. } = self;
        for_each_row(values, "pg_proc", &columns, |row| {
            let (name, arguments, kind) = (row.name(1), row.oids(9)?, row.byte(3));
            let key = match row.oid(10) == INTERNAL && kind != b'a' {
                true => row.text(11)?.unwrap_or_default(),
                false => {
                    let name_of = |oid: &Oid| types.get(oid).map_or("?", |t| t.name.as_str());
                    let list: Vec<&str> = arguments.iter().map(name_of).collect();
                    // Another schema's function of the same name is another function.
                    let schema = match row.oid(2) {
                        PG_CATALOG => String::new(),
                        other => format!("{}.", other.0),
                    };
                    format!("{schema}{name}({})", list.join(","))
                }
            };
            let found = FunctionRow {
                oid: row.oid(0),
                namespace: row.oid(2),
                kind,
                returns_set: row.bool(4),
                is_strict: row.bool(5),
                variadic: row.oid(6),
                defaults: usize::try_from(row.int2(7)).unwrap_or(0),
                result: row.oid(8),
                language: row.oid(10),
                name,
                arguments,
                key,
            };
            function_names.entry(found.name.clone()).or_default().push(found.oid);
            functions.insert(found.oid, found);
            Ok(())
        })
    }

    fn read_operators(&mut self) -> Result<()> {
        let columns = ["oprname", "oprnamespace", "oprleft", "oprright", "oprcode"];
        let operators = &mut self.operators;
        for_each_row(&self.values, "pg_operator", &columns, |row| {
            let found = OperatorRow {
                name: row.name(0),
                namespace: row.oid(1),
                left: row.oid(2),
                right: row.oid(3),
                function: row.oid(4),
            };
            operators.entry(found.name.clone()).or_default().push(found);
            Ok(())
        })
    }

    fn read_collations(&mut self) -> Result<()> {
        let version = self.database().cluster().version();
        let locale = match version.major() {
            14 => None,
            15 | 16 => Some("colliculocale"),
            _ => Some("colllocale"),
        };
        let mut columns = vec![
            "oid",
            "collname",
            "collprovider",
            "collisdeterministic",
            "collcollate",
            "collencoding",
            "collversion",
            "collctype",
        ];
        columns.extend(locale);
        let collations = &mut self.collations;
        for_each_row(&self.values, "pg_collation", &columns, |row| {
            // A name until 14, a text since.
            let mut name = |column| match version.major() {
                14 => Ok(Some(row.name(column))),
                _ => row.text(column),
            };
            let (libc, letters) = (name(4)?, name(7)?.unwrap_or_default());
            let own = if locale.is_some() { row.text(8)? } else { None };
            let found = CollationRow {
                oid: row.oid(0),
                name: row.name(1),
                provider: row.byte(2),
                is_deterministic: row.bool(3),
                locale: libc.or(own).unwrap_or_default(),
                letters,
                encoding: row.int4(5),
                version: row.text(6)?,
            };
            collations.insert(found.oid, found);
            Ok(())
        })
    }

    fn read_column_collations(&mut self) -> Result<()> {
        let found = &mut self.column_collations;
        for_each_row(
            &self.values,
            "pg_attribute",
            &["attrelid", "attname", "attcollation"],
            |row| {
                let collation = row.oid(2);
                if !matches!(collation, Oid(0) | DEFAULT_COLLATION) {
                    found.insert((row.oid(0), row.name(1).into_bytes().into()), collation);
                }
                Ok(())
            },
        )
    }

    /// The collation of a column of texts.
    pub fn column_collation(&self, relation: Oid, column: &[u8]) -> Oid {
        let known = self.column_collations.get(&(relation, column.into()));
        known.copied().unwrap_or(DEFAULT_COLLATION)
    }

    /// `default` stands for what the database was created with.
    fn read_default_collation(&mut self) -> Result<()> {
        let major = self.database().cluster().version().major();
        let columns: &[&str] = match major {
            14 => &["oid", "datcollate", "datctype"],
            15 | 16 => &[
                "oid",
                "datcollate",
                "datctype",
                "datlocprovider",
                "daticulocale",
                "datcollversion",
            ],
            _ => {
                &["oid", "datcollate", "datctype", "datlocprovider", "datlocale", "datcollversion"]
            }
        };
        let own = self.database().row().oid;
        let mut found = None;
        for_each_row(&self.values, "pg_database", columns, |row| {
            if row.oid(0) != own {
                return Ok(());
            }
            let mut name = |column| match major {
                14 => Ok(Some(row.name(column))),
                _ => row.text(column),
            };
            let (libc, letters) = (name(1)?, name(2)?.unwrap_or_default());
            let provider = if major == 14 { b'c' } else { row.byte(3) };
            let of_provider = if major == 14 { None } else { row.text(4)? };
            let locale = of_provider.or(libc).unwrap_or_default();
            let name = "default".to_owned();
            let version = if major == 14 { None } else { row.text(5)? };
            found = Some(CollationRow {
                oid: DEFAULT_COLLATION,
                name,
                provider,
                is_deterministic: true,
                locale,
                letters,
                encoding: -1,
                version,
            });
            Ok(())
        })?;
        self.collations.extend(found.map(|row| (DEFAULT_COLLATION, row)));
        Ok(())
    }

    /// The same for a session that has these rights only: schemas that it may not use are not searched, and functions that would tell of
    /// rights are not known.
    pub(crate) fn restrict(&mut self, rights: Rights) {
        self.search_path.retain(|schema| rights.uses(*schema));
        let concerned = self.functions.values_mut().filter(|function| Rights::concerns(function));
        concerned.for_each(|function| function.key.clear());
        self.rights = Some(rights);
    }

    /// What the session may read; `None` for all.
    pub(crate) fn rights(&self) -> Option<&Rights> {
        self.rights.as_ref()
    }

    /// The database.
    pub fn database(&self) -> &Database {
        self.values.database()
    }

    /// How its values are decoded and printed.
    pub fn values(&self) -> &ValueCatalog {
        &self.values
    }

    /// How texts become values: dates and times as in a session with TimeZone UTC and DateStyle ISO, MDY.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn inputs(&self) -> Result<&InputCatalog> {
        if let Some(inputs) = self.inputs.get() {
            return Ok(inputs);
        }
        let inputs = InputCatalog::new(self.database())?;
        let session = DateTimeContext {
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            session_zone: Arc::new(Zone::gmt()),
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
