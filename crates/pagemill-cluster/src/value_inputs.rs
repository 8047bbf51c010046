//! From the columns of a relation to the inputs of their values: what COPY FROM looks up once
//! before it reads the first row.
//!
//! A type is told as for output ([`crate::value_types`]): by its own OID, by its kind, by its input
//! function being `array_in`, or by sharing its input function with a built-in type. What the types
//! themselves refuse is refused here, before any row is read, naming column and type: types of
//! extensions, domains with CHECK constraints that cannot be evaluated here, ranges whose order is not known,
//! pseudo-types.
//!
//! Source: `BeginCopyFrom` in `src/backend/commands/copyfrom.c`, `src/include/catalog/pg_type.dat`,
//! `pg_range.h`, `pg_constraint.h`, `pg_attribute.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::BuiltinType;
use pagemill_types::builtin::oid::MONEY;
use pagemill_types::expression::Check;
use pagemill_types::extension::ExtensionType;
use pagemill_types::input::Characters;
use pagemill_types::input::datetime::DateTimeContext;
use pagemill_types::input::tree::{
    Canonical, CompositeInput, DomainInput, EnumInput, InputAttribute, InputContext, InputType,
    MultirangeInput, RangeInput, TypeInput,
};
use pagemill_types::output::{MAX_DEPTH, NameKind};

use crate::check_expressions::{Subject, compile};
use crate::database::{Database, FIRST_NORMAL_OID, catalog, load_once};
use crate::date_settings::date_time_context;
use crate::error::{Error, Result};
use crate::input_rows::{
    AttributeRow, CheckRow, RangeRow, read_attributes, read_domain_checks, read_internal_inputs,
    read_ranges,
};
use crate::name_rows::{DatabaseNames, DatabaseRows, DatabaseSettings};
use crate::name_search::NameSearch;
use crate::refusal::{OutputCause, Refusal, TypeCause};
use crate::relation::RelationKind;
use crate::value_types::{TypeChoices, TypeRow, UnknownTypes, function_code};

pub use crate::name_search::InputNames;

/// The number of UTF-8 among encodings.
const UTF8: i32 = 6;
/// `array_in`.
const ARRAY_IN: Oid = Oid(750);
/// `TYPSTORAGE_PLAIN`.
const STORAGE_PLAIN: u8 = b'p';
/// A column as rows are written to it.
#[derive(Debug, Clone)]
pub struct InputColumn {
    /// `attname`.
    pub name: Box<[u8]>,
    /// `atttypmod`, -1 for none.
    pub typmod: i32,
    /// `attnotnull`.
    pub not_null: bool,
    /// `attstorage`.
    pub storage: u8,
    /// `attlen` and `attalign`.
    pub layout: AttributeLayout,
    /// The column's type, or `None` once it is dropped.
    pub value_type: Option<Arc<InputType>>,
}

/// The rows of all attributes of some relations, in the order of their numbers.
type Attributes = HashMap<Oid, Arc<[AttributeRow]>>;

/// The inputs of one database's types; shared by all that read values.
pub struct InputCatalog {
    database: Database,
    context: InputContext,
    characters: Characters,
    choices: TypeChoices,
    names: DatabaseNames,
    search: Arc<NameSearch>,
    built: Mutex<HashMap<Oid, Arc<InputType>>>,
    attributes: Mutex<Attributes>,
    ranges: OnceLock<Vec<RangeRow>>,
    domain_checks: OnceLock<HashMap<Oid, Vec<CheckRow>>>,
    internal_inputs: OnceLock<HashMap<Oid, Oid>>,
}

impl InputCatalog {
    /// A catalog that has built nothing yet.
    ///
    /// # Errors
    /// When the settings of `pg_db_role_setting` cannot be read, or name an unknown time zone.
    pub fn new(database: &Database) -> Result<Self> {
        let DatabaseSettings { names: settings, lc_monetary, .. } =
            DatabaseSettings::read(database)?;
        let rows = DatabaseRows::new(database.clone());
        let encoding = database.row().encoding;
        let characters = Characters::of_encoding(encoding)
            .ok_or_else(|| Error::refused(Refusal::UnknownEncoding(encoding)))?;
        Ok(Self {
            characters,
            choices: TypeChoices::new(UnknownTypes::Refuse, lc_monetary),
            context: InputContext {
                version: database.cluster().version(),
                encoding,
                unicode_spaces: knows_unicode(database)?,
                date_time: date_time_context(database)?,
            },
            search: Arc::new(NameSearch::new(rows, database.row().name.clone(), settings.clone())),
            names: DatabaseNames::new_for(database.clone(), settings),
            database: database.clone(),
            built: Mutex::default(),
            attributes: Mutex::default(),
            ranges: OnceLock::new(),
            domain_checks: OnceLock::new(),
            internal_inputs: OnceLock::new(),
        })
    }

    /// Reads money as this locale writes it, whatever the settings say.
    #[must_use]
    pub fn with_lc_monetary(mut self, locale: &str) -> Self {
        self.choices = self.choices.with_lc_monetary(locale.to_owned());
        self
    }

    /// Reads dates and times as this session would, whatever the settings say.
    #[must_use]
    pub fn with_date_time(mut self, context: DateTimeContext) -> Self {
        self.context.date_time = context;
        self
    }

    /// What readers of this database's values depend on.
    pub fn context(&self) -> &InputContext {
        &self.context
    }

    /// What one thread looks names up with.
    pub fn lookups(&self) -> InputNames {
        InputNames::new(self.search.clone())
    }

    /// The columns of a relation, dropped ones included, in the order of their numbers.
    ///
    /// # Errors
    /// When the catalogs cannot be read, or values of a column cannot; `wanted` says of which columns
    /// that matters.
    pub fn columns(
        &self,
        relation: Oid,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<InputColumn>> {
        let rows = self.attributes(relation)?;
        let column = |row: &AttributeRow| {
            let build = !row.dropped && wanted(&row.name);
            let value_type = build.then(|| self.value_type(row.type_oid)).transpose();
            let value_type = value_type.map_err(|error| named(error, &row.name))?;
            Ok(InputColumn {
                name: row.name.clone(),
                typmod: row.typmod,
                not_null: row.not_null,
                storage: row.storage,
                layout: row.layout,
                value_type,
            })
        };
        rows.iter().map(column).collect()
    }

    /// The type with this OID.
    ///
    /// # Errors
    /// When there is none, or values of it cannot be read.
    pub fn value_type(&self, oid: Oid) -> Result<Arc<InputType>> {
        self.build(oid, 0)
    }

    fn build(&self, oid: Oid, depth: usize) -> Result<Arc<InputType>> {
        let built = || self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = built().get(&oid) {
            return Ok(found.clone());
        }
        let row = self.row(oid)?;
        if depth > MAX_DEPTH {
            return Err(self.refused(row, TypeCause::ContainsItself));
        }
        let layout = AttributeLayout::new(row.len, row.align)
            .map_err(|error| self.refused(row, TypeCause::Layout(error)))?;
        let made = Arc::new(InputType {
            oid,
            layout,
            delimiter: row.delimiter,
            packable: row.storage != STORAGE_PLAIN,
            input: self.input(row, depth)?,
        });
        built().insert(oid, made.clone());
        Ok(made)
    }

    fn row(&self, oid: Oid) -> Result<&TypeRow> {
        let missing = || Error::refused(Refusal::missing_row("pg_type", "the type", oid));
        self.database.types()?.row(oid).ok_or_else(missing)
    }

    fn refused(&self, row: &TypeRow, cause: TypeCause) -> Error {
        let name =
            self.type_name(row.oid).unwrap_or_else(|_| String::from_utf8_lossy(&row.name).into());
        Error::refused(Refusal::Type { name, cause })
    }

    /// The type's name as `format_type` prints it.
    fn type_name(&self, oid: Oid) -> Result<String> {
        let mut name = Vec::new();
        self.names.write_format_type(oid, &mut name)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    fn input(&self, row: &TypeRow, depth: usize) -> Result<TypeInput> {
        if let Some(input) = self.builtin(row.oid)? {
            self.make_ready(&input)?;
            return Ok(input);
        }
        match row.kind {
            b'd' => self.domain(row, depth),
            b'e' => self.enumeration(row),
            b'c' => self.composite(row, depth),
            b'r' => Ok(TypeInput::Range(Arc::new(self.range(row, depth)?))),
            b'm' => self.multirange(row, depth),
            b'b' if row.input == ARRAY_IN && row.element.is_valid() => {
                Ok(TypeInput::Array(self.build(row.element, depth + 1)?))
            }
            b'b' => self.borrowed(row),
            _ => Err(self.refused(row, TypeCause::Pseudo)),
        }
    }

    /// Reads the catalogs that names of a kind are looked up in, so that no row has to.
    fn make_ready(&self, input: &TypeInput) -> Result<()> {
        match input {
            TypeInput::Name(kind) => self.search.make_ready(*kind),
            TypeInput::AclItem => self.search.make_ready(NameKind::Role),
            _ => Ok(()),
        }
    }

    fn builtin(&self, oid: Oid) -> Result<Option<TypeInput>> {
        if oid == MONEY {
            let format = self.choices.money(self.context.encoding)?;
            return Ok(Some(TypeInput::Money(Arc::new(format))));
        }
        let found = BuiltinType::by_oid(oid);
        Ok(found.and_then(|one| one.input_in(self.context.version, self.characters)))
    }

    fn domain(&self, row: &TypeRow, depth: usize) -> Result<TypeInput> {
        let base = self.build(row.base, depth + 1)?;
        let mut domain = DomainInput {
            name: self.type_name(row.oid)?,
            base: base.input.clone(),
            typmod: row.base_typmod,
            not_null: row.not_null,
            checks: Vec::new(),
        };
        // A domain over a domain has its modifier from the one below, and all that any forbids.
        if let TypeInput::Domain(below) = &base.input {
            domain.not_null |= below.not_null;
            domain.typmod = below.typmod;
            domain.base = below.base.clone();
            domain.checks = below.checks.clone();
        }
        let checks = load_once(&self.domain_checks, || read_domain_checks(&self.database))?;
        for check in checks.get(&row.oid).into_iter().flatten() {
            domain.checks.push(self.check(row, check)?);
        }
        Ok(TypeInput::Domain(Arc::new(domain)))
    }

    fn check(&self, row: &TypeRow, check: &CheckRow) -> Result<Check> {
        let name = String::from_utf8_lossy(&check.name).into_owned();
        match compile(&self.database, check.tree.as_deref(), Subject::Domain) {
            Ok(expression) => Ok(Check { name, expression }),
            Err(Error::Refused(cause)) => {
                Err(self.refused(row, TypeCause::DomainCheck { constraint: name, cause }))
            }
            Err(other) => Err(other),
        }
    }

    fn enumeration(&self, row: &TypeRow) -> Result<TypeInput> {
        let labels = self.database.types()?.enum_labels(&self.database, row.oid)?;
        let labels = labels.iter().map(|(oid, label)| (label.clone(), *oid)).collect();
        Ok(TypeInput::Enum(Arc::new(EnumInput { name: self.type_name(row.oid)?, labels })))
    }

    fn composite(&self, row: &TypeRow, depth: usize) -> Result<TypeInput> {
        let attribute = |of: &AttributeRow| {
            let input = (!of.dropped).then(|| self.build(of.type_oid, depth + 1)).transpose()?;
            Ok(InputAttribute {
                layout: of.layout,
                typmod: of.typmod,
                packable: of.storage != STORAGE_PLAIN,
                input: input.map(|found| found.input.clone()),
            })
        };
        let rows = self.attributes(row.relation)?;
        let attributes = rows.iter().map(attribute).collect::<Result<_>>()?;
        let version = rows.iter().filter_map(|of| of.version).max();
        Ok(TypeInput::Composite(Arc::new(CompositeInput { oid: row.oid, version, attributes })))
    }

    fn range(&self, row: &TypeRow, depth: usize) -> Result<RangeInput> {
        let of = self.range_row(row, |of| of.range)?;
        let canonical = match of.canonical.0 {
            0 => Canonical::None,
            3914 => Canonical::Int4,
            3928 => Canonical::Int8,
            3915 => Canonical::Date,
            _ => return Err(self.refused(row, TypeCause::CanonicalFunction)),
        };
        let order = self.database.bound_order(&of).map_err(|error| match error {
            Error::Refused(cause) => self.refused(row, TypeCause::RangeOrder(cause)),
            other => other,
        })?;
        Ok(RangeInput {
            oid: row.oid,
            subtype: self.build(of.subtype, depth + 1)?,
            order,
            canonical,
        })
    }

    fn multirange(&self, row: &TypeRow, depth: usize) -> Result<TypeInput> {
        let of = self.range_row(row, |of| of.multirange)?;
        match &self.build(of.range, depth + 1)?.input {
            TypeInput::Range(range) => {
                let multirange = MultirangeInput { oid: row.oid, range: range.clone() };
                Ok(TypeInput::Multirange(Arc::new(multirange)))
            }
            _ => Err(self.refused(row, TypeCause::MultirangeOverNoRange)),
        }
    }

    fn range_row(&self, row: &TypeRow, key: fn(&RangeRow) -> Oid) -> Result<RangeRow> {
        let found = self.ranges()?.iter().find(|of| key(of) == row.oid);
        found.copied().ok_or_else(|| self.refused(row, TypeCause::NotInPgRange))
    }

    fn ranges(&self) -> Result<&Vec<RangeRow>> {
        load_once(&self.ranges, || read_ranges(&self.database))
    }

    /// The input of the built-in type that has the same input function.
    fn borrowed(&self, row: &TypeRow) -> Result<TypeInput> {
        let function = match row.input {
            builtin if builtin < FIRST_NORMAL_OID => Some(builtin),
            own => self.internal_inputs()?.get(&own).copied(),
        };
        let lender = function.and_then(|function| {
            let rows = self.database.types().ok()?.rows();
            let lends = |r: &&TypeRow| r.input == function && r.oid < FIRST_NORMAL_OID;
            rows.filter(lends).map(|r| r.oid).min()
        });
        let lent = lender.map(|lender| self.builtin(lender)).transpose()?;
        match lent.flatten() {
            Some(input) => {
                self.make_ready(&input)?;
                Ok(input)
            }
            None if row.oid < FIRST_NORMAL_OID => Err(self.refused(row, TypeCause::NoInput)),
            None => self.of_extension(row),
        }
    }

    /// The input of an extension's type that is known.
    fn of_extension(&self, row: &TypeRow) -> Result<TypeInput> {
        let known = match function_code(&self.database, row.input)? {
            OutputCause::Library { library, .. } => {
                ExtensionType::find(library.as_bytes(), &row.name)
            }
            _ => None,
        };
        match known.and_then(|known| known.read_in(self.context.version)) {
            Some(read) => Ok(TypeInput::Scalar(read)),
            None => Err(self.refused(row, TypeCause::Input)),
        }
    }

    fn internal_inputs(&self) -> Result<&HashMap<Oid, Oid>> {
        load_once(&self.internal_inputs, || read_internal_inputs(&self.database))
    }

    /// The attributes of a relation. The first time, those of all composite types are read too.
    fn attributes(&self, relation: Oid) -> Result<Arc<[AttributeRow]>> {
        let known = || self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&relation) {
            return Ok(found.clone());
        }
        let first = known().is_empty();
        let is_composite = |oid: Oid| {
            let class = self.database.class(oid);
            first && class.is_some_and(|class| class.kind == RelationKind::CompositeType)
        };
        let mut found =
            read_attributes(&self.database, |oid| oid == relation || is_composite(oid))?;
        let own = found.remove(&relation).unwrap_or_default();
        let numbers: Vec<i16> = own.iter().map(|row| row.number).collect();
        self.database.check_numbers(relation, &numbers)?;
        let own: Arc<[AttributeRow]> = own.into();
        // Damage to the attributes of others is none of this relation's business.
        let sound = |(oid, rows): (Oid, Vec<AttributeRow>)| {
            let numbers: Vec<i16> = rows.iter().map(|row| row.number).collect();
            let checked = self.database.check_numbers(oid, &numbers);
            checked.is_ok().then(|| (oid, Arc::from(rows)))
        };
        known().extend(found.into_iter().filter_map(sound));
        known().insert(relation, own.clone());
        Ok(own)
    }
}

/// A refusal with the name of the column it is about.
fn named(error: Error, column: &[u8]) -> Error {
    match error {
        Error::Refused(cause) => {
            let column = String::from_utf8_lossy(column).into_owned();
            Error::refused(Refusal::Column { column, cause })
        }
        other => other,
    }
}

/// True when the database's classification of characters goes beyond ASCII, and text search asks it.
fn knows_unicode(database: &Database) -> Result<bool> {
    let mut ctype = Vec::new();
    let is_name = database.cluster().version() < PgVersion::V15;
    database.cluster().scan_shared(catalog::PG_DATABASE, &["oid", "datctype"], |row| {
        if row.oid(0)? == database.row().oid {
            ctype = match is_name {
                true => row.name(1)?.to_vec(),
                false => row.payload(1)?.unwrap_or_default(),
            };
        }
        Ok(())
    })?;
    let is_c = ctype == b"C" || ctype == b"POSIX";
    // From 18 on, text search takes only spaces of ASCII for spaces.
    let asks = database.cluster().version() < PgVersion::V18;
    Ok(asks && database.row().encoding == UTF8 && !is_c)
}
