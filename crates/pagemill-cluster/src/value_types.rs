//! From a row of `pg_type` to the output of its values.
//!
//! A type is told by its own OID if it is built in, by its kind (domain, enum, composite, range),
//! by its output function being `array_out`, or by sharing its output function with a built-in
//! type, directly or through a function of language `internal` (as citext does). What remains
//! belongs to an extension and cannot be printed: it is refused, or shown as hex when asked for.
//!
//! Source: `src/include/catalog/pg_type.dat`, `pg_type.h`, `pg_range.h`, `pg_enum.h`,
//! PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::builtin::oid::TIMESTAMPTZ;
use pagemill_types::builtin::{BuiltinType, Print};
use pagemill_types::decode::Decode;
use pagemill_types::encoding::stored_text;
use pagemill_types::extension::ExtensionType;
use pagemill_types::money::MoneyFormat;
use pagemill_types::output::{CompositeAttribute, MAX_DEPTH, TypeOutput, ValueType};
use pagemill_types::styled::Styled;

use crate::column::Column;
use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Error, Result};
use crate::refusal::{MoneyCause, OutputCause, Refusal, TypeCause};
use crate::relation::{RelationKind, printable};
use crate::system_table::Row;

/// What to do with a type that cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownTypes {
    /// Refuse the table.
    #[default]
    Refuse,
    /// Print the value's bytes in hex.
    Hex,
}

impl Database {
    /// The labels of an enum type, by their OIDs, in its order.
    ///
    /// # Errors
    /// When `pg_enum` cannot be read.
    pub fn enum_labels_in_order(&self, of: Oid) -> Result<Vec<Oid>> {
        let of = self.types()?.without_domains(of);
        let mut labels = Vec::new();
        self.scan(catalog::PG_ENUM, &["oid", "enumtypid", "enumsortorder"], |row| {
            if row.oid(1)? == of {
                labels.push((row.f32(2)?, row.oid(0)?));
            }
            Ok(())
        })?;
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(labels.into_iter().map(|(_, label)| label).collect())
    }
}

/// Composite types whose columns are read in one pass over `pg_attribute`: many, as a pass may be
/// long, but not those of any number of tables.
const COMPOSITES_AT_ONCE: usize = 2048;

/// `array_out`.
const ARRAY_OUT: Oid = Oid(751);
/// The language `internal`.
const INTERNAL_LANGUAGE: Oid = Oid(12);

/// A row of `pg_type`.
#[derive(Debug, Clone)]
pub(crate) struct TypeRow {
    pub(crate) oid: Oid,
    pub(crate) name: Box<[u8]>,
    pub(crate) namespace: Oid,
    pub(crate) element: Oid,
    pub(crate) subscript: Oid,
    pub(crate) storage: u8,
    pub(crate) len: i16,
    pub(crate) align: u8,
    pub(crate) kind: u8,
    pub(crate) delimiter: u8,
    pub(crate) relation: Oid,
    pub(crate) base: Oid,
    output: Oid,
    pub(crate) base_typmod: i32,
    pub(crate) not_null: bool,
    pub(crate) input: Oid,
}

impl TypeRow {
    const SOURCE: [&'static str; 16] = [
        "oid",
        "typname",
        "typnamespace",
        "typelem",
        "typsubscript",
        "typstorage",
        "typlen",
        "typalign",
        "typtype",
        "typdelim",
        "typrelid",
        "typbasetype",
        "typoutput",
        "typtypmod",
        "typnotnull",
        "typinput",
    ];

    fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            oid: row.oid(0)?,
            name: row.name(1)?,
            namespace: row.oid(2)?,
            element: row.oid(3)?,
            subscript: row.oid(4)?,
            storage: row.byte(5)?,
            len: row.i16(6)?,
            align: row.byte(7)?,
            kind: row.byte(8)?,
            delimiter: row.byte(9)?,
            relation: row.oid(10)?,
            base: row.oid(11)?,
            output: row.oid(12)?,
            base_typmod: row.i32(13)?,
            not_null: row.byte(14)? != 0,
            input: row.oid(15)?,
        })
    }
}

pub(crate) type EnumLabels = Arc<HashMap<Oid, Box<[u8]>>>;

/// The columns of composite types, by their relations.
type CompositeColumns = HashMap<Oid, Arc<[Column]>>;

/// The types of one database. What else is needed to build them is read when first asked for.
#[derive(Debug)]
pub(crate) struct TypeTable {
    rows: HashMap<Oid, TypeRow>,
    enums: OnceLock<HashMap<Oid, EnumLabels>>,
    /// The subtype of each range and multirange type.
    ranges: OnceLock<HashMap<Oid, Oid>>,
    composites: Mutex<CompositeColumns>,
    /// The built-in output function that another one of language `internal` stands for.
    internal_outputs: OnceLock<HashMap<Oid, Oid>>,
}

/// What building a type depends on beside the catalogs, and the types built so.
#[derive(Debug)]
pub(crate) struct TypeChoices {
    unknown: UnknownTypes,
    lc_monetary: Option<String>,
    built: Mutex<HashMap<Oid, Arc<ValueType>>>,
}

impl TypeChoices {
    pub(crate) fn new(unknown: UnknownTypes, lc_monetary: Option<String>) -> Self {
        Self { unknown, lc_monetary, built: Mutex::default() }
    }

    pub(crate) fn with_lc_monetary(&self, locale: String) -> Self {
        Self::new(self.unknown, Some(locale))
    }

    /// How money is printed in a database of this encoding. A server that was never told prints
    /// as its environment says: the C locale's way is the one all agree on.
    pub(crate) fn money(&self, encoding: i32) -> Result<MoneyFormat> {
        let locale = self.lc_monetary.as_deref().unwrap_or("C");
        let refused = |cause| Error::refused(Refusal::Money { locale: locale.to_owned(), cause });
        let format =
            MoneyFormat::for_locale(locale).ok_or_else(|| refused(MoneyCause::UnknownLocale))?;
        format
            .converted(|text| stored_text(encoding, text))
            .ok_or_else(|| refused(MoneyCause::NotInEncoding))
    }
}

impl TypeTable {
    pub(crate) fn read(database: &Database) -> Result<Self> {
        let mut rows = HashMap::new();
        database.scan(catalog::PG_TYPE, &TypeRow::SOURCE, |row| {
            let found = TypeRow::read(row)?;
            rows.insert(found.oid, found);
            Ok(())
        })?;
        Ok(Self {
            rows,
            enums: OnceLock::new(),
            ranges: OnceLock::new(),
            composites: Mutex::default(),
            internal_outputs: OnceLock::new(),
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &TypeRow> {
        self.rows.values()
    }

    /// The type that a domain, or a domain over one, is over; another type itself.
    pub(crate) fn without_domains(&self, oid: Oid) -> Oid {
        let over =
            |oid: &Oid| self.row(*oid).map(|row| row.base).filter(|&base| base != Oid::INVALID);
        std::iter::successors(Some(oid), over).take(self.rows.len() + 1).last().unwrap_or(oid)
    }

    /// The same with the modifier that the innermost domain gives it, -1 for none.
    fn under_domains(&self, row: &TypeRow) -> (Oid, i32) {
        let mut found = (row.oid, -1);
        let mut next = Some(row);
        for _ in 0..=self.rows.len() {
            let Some(row) = next.filter(|row| row.kind == b'd') else { break };
            found = (row.base, row.base_typmod);
            next = self.row(row.base);
        }
        found
    }

    pub(crate) fn row(&self, oid: Oid) -> Option<&TypeRow> {
        self.rows.get(&oid)
    }

    /// The type with this OID, with its output.
    ///
    /// # Errors
    /// When there is none, or it cannot be printed.
    pub(crate) fn value_type(
        &self,
        database: &Database,
        oid: Oid,
        choices: &TypeChoices,
    ) -> Result<Arc<ValueType>> {
        self.build(&Builder { types: self, database, choices }, oid, 0)
    }

    fn build(&self, builder: &Builder<'_>, oid: Oid, depth: usize) -> Result<Arc<ValueType>> {
        let built = || builder.choices.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = built().get(&oid) {
            return Ok(found.clone());
        }
        let made = Arc::new(builder.build(oid, depth)?);
        built().insert(oid, made.clone());
        Ok(made)
    }

    pub(crate) fn enum_labels(&self, database: &Database, oid: Oid) -> Result<EnumLabels> {
        if self.enums.get().is_none() {
            let mut found: HashMap<Oid, HashMap<Oid, Box<[u8]>>> = HashMap::new();
            database.scan(catalog::PG_ENUM, &["enumtypid", "oid", "enumlabel"], |row| {
                found.entry(row.oid(0)?).or_default().insert(row.oid(1)?, row.name(2)?);
                Ok(())
            })?;
            let _ = self.enums.set(found.into_iter().map(|(k, v)| (k, Arc::new(v))).collect());
        }
        Ok(self.enums.get().and_then(|all| all.get(&oid)).cloned().unwrap_or_default())
    }

    fn range_subtype(&self, database: &Database, oid: Oid) -> Result<Option<Oid>> {
        if self.ranges.get().is_none() {
            let mut found = HashMap::new();
            let wanted = ["rngtypid", "rngmultitypid", "rngsubtype"];
            database.scan(catalog::PG_RANGE, &wanted, |row| {
                found.insert(row.oid(0)?, row.oid(2)?);
                found.insert(row.oid(1)?, row.oid(2)?);
                Ok(())
            })?;
            let _ = self.ranges.set(found);
        }
        Ok(self.ranges.get().and_then(|all| all.get(&oid)).copied())
    }

    /// The columns of a composite type's relation; with them those of others are read, as a type
    /// often has attributes of composite types.
    fn composite_columns(&self, database: &Database, relation: Oid) -> Result<Arc<[Column]>> {
        let known = || self.composites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&relation) {
            return Ok(found.clone());
        }
        let mut wanted = self.unread_composites(database, relation, &known());
        let mut columns = match database.columns_of(&wanted) {
            Ok(columns) => columns,
            Err(_) => {
                // Damage to the columns of others is none of this type's business.
                wanted.truncate(1);
                database.columns_of(&wanted)?
            }
        };
        let found = |oid| (oid, Arc::from(columns.remove(&oid).unwrap_or_default()));
        known().extend(wanted.into_iter().map(found));
        Ok(known().get(&relation).cloned().unwrap_or_default())
    }

    /// A relation and others that types may be made of: those of no table first.
    fn unread_composites(
        &self,
        database: &Database,
        relation: Oid,
        known: &CompositeColumns,
    ) -> Vec<Oid> {
        let is_unread = |oid: &Oid| oid.is_valid() && *oid != relation && !known.contains_key(oid);
        let mut others: Vec<Oid> =
            self.rows().map(|row| row.relation).filter(|oid| is_unread(oid)).collect();
        let is_of_table = |oid: Oid| {
            database.class(oid).is_none_or(|class| class.kind != RelationKind::CompositeType)
        };
        others.sort_unstable_by_key(|oid| (is_of_table(*oid), *oid));
        std::iter::once(relation).chain(others).take(COMPOSITES_AT_ONCE).collect()
    }

    /// The built-in function that the output function of a type stands for.
    fn internal_output(&self, database: &Database, function: Oid) -> Result<Option<Oid>> {
        if self.internal_outputs.get().is_none() {
            let outputs = self.rows().map(|row| row.output).collect();
            let _ = self.internal_outputs.set(internal_functions(database, &outputs)?);
        }
        Ok(self.internal_outputs.get().and_then(|all| all.get(&function)).copied())
    }
}

/// The built-in functions that those of these functions stand for which are of language `internal` and no built-in
/// ones themselves.
pub(crate) fn internal_functions(
    database: &Database,
    functions: &HashSet<Oid>,
) -> Result<HashMap<Oid, Oid>> {
    let (mut builtin, mut own) = (HashMap::new(), Vec::new());
    let wanted = ["oid", "prolang", "proname", "prosrc"];
    database.scan(catalog::PG_PROC, &wanted, |row| {
        let oid = row.oid(0)?;
        if !functions.contains(&oid) || row.oid(1)? != INTERNAL_LANGUAGE {
            return Ok(());
        }
        if oid < FIRST_NORMAL_OID {
            builtin.insert(row.name(2)?, oid);
        } else {
            own.push((oid, row.payload(3)?.unwrap_or_default()));
        }
        Ok(())
    })?;
    let stands_for = |(oid, source): (Oid, Vec<u8>)| Some((oid, *builtin.get(&*source)?));
    Ok(own.into_iter().filter_map(stands_for).collect())
}

/// What is known of an input or output function that is not built in: the library whose code it is.
pub(crate) fn function_code(database: &Database, function: Oid) -> Result<OutputCause> {
    let mut found = None;
    database.scan(catalog::PG_PROC, &["oid", "proname", "probin"], |row| {
        if row.oid(0)? == function {
            found = Some((row.name(1)?, row.payload(2)?));
        }
        Ok(())
    })?;
    Ok(match found {
        Some((name, Some(library))) => OutputCause::Library {
            function: printable(&name).to_string(),
            library: printable(&library).to_string(),
        },
        Some((name, None)) => OutputCause::NotBuiltIn(printable(&name).to_string()),
        None => OutputCause::Missing(function),
    })
}

struct Builder<'a> {
    types: &'a TypeTable,
    database: &'a Database,
    choices: &'a TypeChoices,
}

impl Builder<'_> {
    fn build(&self, oid: Oid, depth: usize) -> Result<ValueType> {
        let row = self.row(oid)?;
        if depth > MAX_DEPTH {
            return Err(self.refused(row, TypeCause::ContainsItself));
        }
        let layout = AttributeLayout::new(row.len, row.align)
            .map_err(|error| self.refused(row, TypeCause::Layout(error)))?;
        let (output, decode) = self.output(row, depth)?;
        let (base, base_modifier) = self.types.under_domains(row);
        let delimiter = row.delimiter;
        Ok(ValueType { oid, base, base_modifier, layout, delimiter, output, decode })
    }

    fn row(&self, oid: Oid) -> Result<&TypeRow> {
        let missing = || Error::refused(Refusal::missing_row("pg_type", "the type", oid));
        self.types.rows.get(&oid).ok_or_else(missing)
    }

    fn refused(&self, row: &TypeRow, cause: TypeCause) -> Error {
        Error::refused(Refusal::Type { name: self.name(row), cause })
    }

    fn name(&self, row: &TypeRow) -> String {
        let namespaces = self.database.namespaces().ok();
        let schema = namespaces.and_then(|all| all.get(&row.namespace));
        match schema {
            Some(schema) => crate::relation::display_name(schema, &row.name),
            None => String::from_utf8_lossy(&row.name).into_owned(),
        }
    }

    /// How values of a type are printed, and what they are.
    fn output(&self, row: &TypeRow, depth: usize) -> Result<(TypeOutput, Decode)> {
        if let Some(found) = self.builtin(row.oid)? {
            return Ok(found);
        }
        let below = |oid| self.types.build(self, oid, depth + 1);
        let output = match row.kind {
            b'd' => {
                let base = below(row.base)?;
                return Ok((base.output.clone(), base.decode));
            }
            b'e' => TypeOutput::Enum(self.types.enum_labels(self.database, row.oid)?),
            b'c' => self.composite(row, depth)?,
            b'r' | b'm' => match self.types.range_subtype(self.database, row.oid)? {
                Some(subtype) if row.kind == b'r' => TypeOutput::Range(below(subtype)?),
                Some(subtype) => TypeOutput::Multirange(below(subtype)?),
                None => {
                    return Err(self.refused(row, TypeCause::NotInPgRange));
                }
            },
            _ if row.output == ARRAY_OUT && row.element.is_valid() => {
                TypeOutput::Array(below(row.element)?)
            }
            _ => return self.borrowed(row),
        };
        Ok((output, Decode::Other))
    }

    fn builtin(&self, oid: Oid) -> Result<Option<(TypeOutput, Decode)>> {
        let Some(found) = BuiltinType::by_oid(oid) else { return Ok(None) };
        let output = match found.print_in(self.database.cluster().version()) {
            Print::Verbatim => TypeOutput::Verbatim,
            Print::Scalar { write, plain } => {
                let session = self.database.session();
                let (version, zone) = (self.database.cluster().version(), &session.time_zone);
                match (Styled::of(oid, version, &session.styles, zone.as_ref()), zone) {
                    (Some(styled), _) => TypeOutput::Styled(Arc::new(styled)),
                    (None, Some(zone)) if oid == TIMESTAMPTZ => {
                        TypeOutput::TimestampTz(zone.clone())
                    }
                    _ => TypeOutput::Scalar { write, plain },
                }
            }
            Print::Name(kind) => TypeOutput::Name(kind),
            Print::Money => {
                let format = self.choices.money(self.database.row().encoding)?;
                TypeOutput::Money(Arc::new(format))
            }
            Print::AclItem => TypeOutput::AclItem,
            Print::AnyArray => TypeOutput::AnyArray,
            Print::MinMaxSummary => TypeOutput::MinMaxSummary,
        };
        Ok(Some((output, found.decode)))
    }

    fn composite(&self, row: &TypeRow, depth: usize) -> Result<TypeOutput> {
        let columns = self.types.composite_columns(self.database, row.relation)?;
        let attribute = |column: &Column| {
            let value_type = match column.dropped {
                true => None,
                false => Some(self.types.build(self, column.type_oid, depth + 1)?),
            };
            Ok(CompositeAttribute {
                name: column.name.clone(),
                type_modifier: column.type_modifier,
                layout: column.layout,
                value_type,
            })
        };
        Ok(TypeOutput::Composite(columns.iter().map(attribute).collect::<Result<_>>()?))
    }

    /// The output of the built-in type that has the same output function, or that of a known type of an extension.
    fn borrowed(&self, row: &TypeRow) -> Result<(TypeOutput, Decode)> {
        let function = match row.output {
            builtin if builtin < FIRST_NORMAL_OID => Some(builtin),
            own => self.types.internal_output(self.database, own)?,
        };
        let lender = function.and_then(|function| {
            let mut rows = self.types.rows();
            rows.find(|r| r.output == function && r.oid < FIRST_NORMAL_OID && r.kind == b'b')
        });
        if let Some(output) = lender.map(|r| self.builtin(r.oid)).transpose()?.flatten() {
            return Ok(output);
        }
        let code = function_code(self.database, row.output)?;
        if let OutputCause::Library { library, .. } = &code
            && let Some(known) = ExtensionType::find(library.as_bytes(), &row.name)
        {
            return Ok((TypeOutput::Scalar { write: known.write, plain: false }, known.decode));
        }
        match self.choices.unknown {
            UnknownTypes::Hex => Ok((TypeOutput::Hex, Decode::Other)),
            UnknownTypes::Refuse => Err(self.refused(row, TypeCause::Output(code))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: i32 = 6;

    fn choices(locale: Option<&str>) -> TypeChoices {
        TypeChoices::new(UnknownTypes::Refuse, locale.map(str::to_owned))
    }

    #[test]
    fn money_without_a_locale_is_printed_as_in_c() {
        let format = choices(None).money(UTF8).unwrap();
        assert_eq!(Some(format), MoneyFormat::for_locale("C"));
    }

    #[test]
    fn money_of_an_unknown_locale_is_refused_with_its_name() {
        let unknown = choices(Some("xx_XX"));
        let error = unknown.money(UTF8).unwrap_err().to_string();
        assert!(error.contains("\"xx_XX\"") && error.starts_with("lc_monetary is"), "{error}");
        assert!(unknown.with_lc_monetary("de_DE".into()).money(UTF8).is_ok());
    }

    #[test]
    fn money_is_converted_to_the_encoding_of_the_database() {
        let euros = choices(Some("de_DE.UTF-8"));
        assert!(euros.money(UTF8).is_ok());
        let error = euros.money(8).unwrap_err().to_string();
        assert!(error.contains("currency") && error.starts_with("lc_monetary is"), "{error}");
    }
}
