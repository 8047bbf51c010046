//! From a row of `pg_type` to the output of its values.
//!
//! A type is told by its own OID if it is built in, by its kind (domain, enum, composite, range),
//! by its output function being `array_out`, or by sharing its output function with a built-in
//! type, directly or through a function of language `internal` (as citext does). What remains
//! belongs to an extension and cannot be printed: it is refused, or shown as hex when asked for.
//!
//! Source: `src/include/catalog/pg_type.dat`, `pg_type.h`, `pg_range.h`, `pg_enum.h`,
//! PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::types::document::document_by_oid;
use pagemill_format::types::money::MoneyFormat;
use pagemill_format::types::output::{
    CompositeAttribute, MAX_DEPTH, NameKind, TypeOutput, ValueType,
};
use pagemill_format::types::scalar::scalar_in;
use pagemill_format::{Error as FormatError, Oid};

use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Error, Result};
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

/// `array_out`.
const ARRAY_OUT: Oid = Oid(751);
/// The language `internal`.
const INTERNAL_LANGUAGE: Oid = Oid(12);

/// Types whose payload is their text: json, text, pg_node_tree, bpchar, varchar, refcursor.
const VERBATIM: [Oid; 6] = [Oid(114), Oid(25), Oid(194), Oid(1042), Oid(1043), Oid(1790)];

/// Types printed with the help of the catalogs or of settings.
fn special_output(oid: Oid, money: &Arc<MoneyFormat>) -> Option<TypeOutput> {
    let name = |kind| Some(TypeOutput::Name(kind));
    match oid.0 {
        24 => name(NameKind::Proc),
        2202 => name(NameKind::Procedure),
        2203 => name(NameKind::Oper),
        2204 => name(NameKind::Operator),
        2205 => name(NameKind::Class),
        2206 => name(NameKind::Type),
        3734 => name(NameKind::Config),
        3769 => name(NameKind::Dictionary),
        4089 => name(NameKind::Namespace),
        4096 => name(NameKind::Role),
        4191 => name(NameKind::Collation),
        790 => Some(TypeOutput::Money(money.clone())),
        1033 => Some(TypeOutput::AclItem),
        2277 => Some(TypeOutput::AnyArray),
        4601 => Some(TypeOutput::MinMaxSummary),
        _ => None,
    }
}

/// A row of `pg_type`.
#[derive(Debug, Clone)]
pub(crate) struct TypeRow {
    pub(crate) oid: Oid,
    pub(crate) name: Box<[u8]>,
    pub(crate) namespace: Oid,
    pub(crate) element: Oid,
    pub(crate) subscript: Oid,
    pub(crate) storage: u8,
    len: i16,
    align: u8,
    kind: u8,
    delimiter: u8,
    relation: Oid,
    base: Oid,
    output: Oid,
}

impl TypeRow {
    const SOURCE: [&'static str; 13] = [
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
        })
    }
}

type EnumLabels = Arc<HashMap<Oid, Box<[u8]>>>;

/// The types of one database, built when first asked for.
#[derive(Debug)]
pub(crate) struct TypeTable {
    rows: HashMap<Oid, TypeRow>,
    enums: OnceLock<HashMap<Oid, EnumLabels>>,
    /// The subtype of each range and multirange type.
    ranges: OnceLock<HashMap<Oid, Oid>>,
    /// By OID, and by whether unknown types were to be printed as hex.
    built: Mutex<HashMap<(Oid, bool), Arc<ValueType>>>,
}

/// What building a type depends on beside the catalogs.
#[derive(Debug, Clone)]
pub(crate) struct TypeChoices {
    pub(crate) unknown: UnknownTypes,
    pub(crate) money: Arc<MoneyFormat>,
}

impl TypeTable {
    pub(crate) fn read(database: &Database) -> Result<Self> {
        let mut rows = HashMap::new();
        database.scan(catalog::PG_TYPE, &TypeRow::SOURCE, |row| {
            let found = TypeRow::read(row)?;
            rows.insert(found.oid, found);
            Ok(())
        })?;
        Ok(Self { rows, enums: OnceLock::new(), ranges: OnceLock::new(), built: Mutex::default() })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &TypeRow> {
        self.rows.values()
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
        let key = (oid, builder.choices.unknown == UnknownTypes::Hex);
        let built = || self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = built().get(&key) {
            return Ok(found.clone());
        }
        let made = Arc::new(builder.build(oid, depth)?);
        built().insert(key, made.clone());
        Ok(made)
    }

    fn enum_labels(&self, database: &Database, oid: Oid) -> Result<EnumLabels> {
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
            return Err(Error::refused(format!("type {} contains itself", self.name(row))));
        }
        let layout = AttributeLayout::new(row.len, row.align)
            .map_err(|error| Error::refused(format!("type {}: {error}", self.name(row))))?;
        let output = self.output(row, depth)?;
        Ok(ValueType { oid, layout, delimiter: row.delimiter, output })
    }

    fn row(&self, oid: Oid) -> Result<&TypeRow> {
        self.types.rows.get(&oid).ok_or_else(|| {
            Error::refused(format!("there is no type with the OID {oid} in pg_type"))
        })
    }

    fn name(&self, row: &TypeRow) -> String {
        let namespaces = self.database.namespaces().ok();
        let schema = namespaces.and_then(|all| all.get(&row.namespace));
        match schema {
            Some(schema) => crate::relation::display_name(schema, &row.name),
            None => String::from_utf8_lossy(&row.name).into_owned(),
        }
    }

    fn output(&self, row: &TypeRow, depth: usize) -> Result<TypeOutput> {
        if let Some(output) = self.builtin(row.oid) {
            return Ok(output);
        }
        let below = |oid| self.types.build(self, oid, depth + 1);
        match row.kind {
            b'd' => Ok(below(row.base)?.output.clone()),
            b'e' => Ok(TypeOutput::Enum(self.types.enum_labels(self.database, row.oid)?)),
            b'c' => self.composite(row, depth),
            b'r' | b'm' => match self.types.range_subtype(self.database, row.oid)? {
                Some(subtype) if row.kind == b'r' => Ok(TypeOutput::Range(below(subtype)?)),
                Some(subtype) => Ok(TypeOutput::Multirange(below(subtype)?)),
                None => Err(Error::refused(format!("{} is not in pg_range", self.name(row)))),
            },
            _ if row.output == ARRAY_OUT && row.element.is_valid() => {
                Ok(TypeOutput::Array(below(row.element)?))
            }
            _ => self.borrowed(row),
        }
    }

    fn builtin(&self, oid: Oid) -> Option<TypeOutput> {
        if VERBATIM.contains(&oid) {
            return Some(TypeOutput::Verbatim);
        }
        let scalar = |s: &'static pagemill_format::types::scalar::Scalar| TypeOutput::Scalar {
            write: s.write,
            plain: s.plain,
        };
        let version = self.database.cluster().version();
        special_output(oid, &self.choices.money)
            .or_else(|| scalar_in(version, oid).map(scalar))
            .or_else(|| {
                let document = document_by_oid(oid, version);
                document.map(|write| TypeOutput::Scalar { write, plain: false })
            })
    }

    fn composite(&self, row: &TypeRow, depth: usize) -> Result<TypeOutput> {
        let mut columns = self.database.columns_of(&[row.relation])?;
        let columns = columns.remove(&row.relation).unwrap_or_default();
        let attribute = |column: &crate::column::Column| {
            let output = match column.dropped {
                true => None,
                false => Some(self.types.build(self, column.type_oid, depth + 1)?.output.clone()),
            };
            Ok(CompositeAttribute { layout: column.layout, output })
        };
        Ok(TypeOutput::Composite(columns.iter().map(attribute).collect::<Result<_>>()?))
    }

    /// The output of the built-in type that has the same output function.
    fn borrowed(&self, row: &TypeRow) -> Result<TypeOutput> {
        let function = match row.output {
            builtin if builtin < FIRST_NORMAL_OID => Some(builtin),
            own => self.internal_function(own)?,
        };
        let lender = function.and_then(|function| {
            let mut rows = self.types.rows();
            rows.find(|r| r.output == function && r.oid < FIRST_NORMAL_OID && r.kind == b'b')
        });
        match (lender.and_then(|r| self.builtin(r.oid)), self.choices.unknown) {
            (Some(output), _) => Ok(output),
            (None, UnknownTypes::Hex) => Ok(TypeOutput::Hex),
            (None, UnknownTypes::Refuse) => Err(Error::refused(format!(
                "type {} cannot be printed: its output function is part of an extension; \
                 leave the column out with --columns, or print its bytes with --unknown-types hex",
                self.name(row)
            ))),
        }
    }

    /// The built-in function that a function of language `internal` stands for.
    fn internal_function(&self, function: Oid) -> Result<Option<Oid>> {
        let mut source = None;
        let wanted = ["oid", "prolang", "prosrc"];
        self.database.scan(catalog::PG_PROC, &wanted, |row| {
            if row.oid(0)? == function && row.oid(1)? == INTERNAL_LANGUAGE {
                source = row.payload(2)?;
            }
            Ok(())
        })?;
        let Some(source) = source else { return Ok(None) };
        let mut found = None;
        self.database.scan(catalog::PG_PROC, &["oid", "proname"], |row| {
            let oid = row.oid(0)?;
            if oid < FIRST_NORMAL_OID && *row.name(1)? == *source {
                found = Some(oid);
            }
            Ok(())
        })?;
        Ok(found)
    }
}
