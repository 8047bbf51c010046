//! What each column becomes: the one table from PostgreSQL's types to Arrow's, and the schema made with it.
//!
//! | PostgreSQL | Arrow |
//! | --- | --- |
//! | boolean, smallint, integer, bigint, real, double precision | Boolean, Int16, Int32, Int64, Float32, Float64 |
//! | oid, xid, cid; xid8 | UInt32; UInt64 |
//! | numeric | Decimal128, Float64 or Utf8 ([`NumericChoice`]) |
//! | money | Decimal128 of 19 digits, with the places of the locale |
//! | date, time, timestamp, timestamptz | Date32, Time64, Timestamp, Timestamp in UTC, all in microseconds but the first |
//! | uuid | FixedSizeBinary(16), `arrow.uuid` |
//! | bytea, and what is not known | Binary |
//! | json, jsonb | Utf8, `arrow.json` |
//! | array ([`ArrayChoice`]); row | List, or Utf8, `arrow.json`; Struct |
//! | hstore | Map of Utf8 to Utf8 |
//! | pgvector's vector(n); vector | FixedSizeList(n) of Float32; List |
//! | PostGIS's geometry and geography | Binary, `geoarrow.wkb`: well-known binary |
//! | text, enums and all others, as COPY prints them | Utf8 |
//!
//! Invariant: every field may be NULL: constraints are not evaluated here, and may be not valid yet.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use pagemill_cluster::{Column, Relation, ValueCatalog};
use pagemill_engine::column_positions;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::{BuiltinType, Print, oid};
use pagemill_types::decode::Decode;
use pagemill_types::encoding::readable_name;
use pagemill_types::json::JsonForm;
use pagemill_types::output::{TypeOutput, ValueType};

use crate::answer_file::AnswerColumn;
use crate::error::{Error, Result};
use crate::options::{ArrayChoice, ArrowOptions, FileFormat, MOST_DIGITS, NumericChoice};

/// Digits of the largest amount of money, an `i64`.
const MONEY_DIGITS: u8 = 19;

/// How values of a type get into an array.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Bool,
    Int16,
    Int32,
    Int64,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Date,
    Time,
    Timestamp,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Money,
    NumericAsDouble,
    Uuid,
    /// The payload is the text.
    Text,
    /// Printed as COPY prints it.
    Printed,
    /// Printed as JSON.
    Json,
    Bytes,
    Hstore,
    /// So many numbers, where the column's type says it.
    Vector(Option<i32>),
    /// The SRID that all values have, where the column's type says it; else each says its own.
    Wkb(Option<i32>),
    List(Box<ColumnPlan>),
    Struct(Vec<ColumnPlan>),
}

/// What a column becomes, or an element, or an attribute.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    pub(crate) name: String,
    pub(crate) value_type: Arc<ValueType>,
    pub(crate) kind: Kind,
    pub(crate) field: Arc<Field>,
}

/// Digits before and behind the point, of the columns at these positions that were measured; `None` where no decimal
/// holds them.
pub(crate) type Measured = HashMap<usize, Option<(u8, u8)>>;

/// What the columns of a table become. Partitions have the plan of their parent.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The names of the columns as stored, by which parts are asked for them.
    names: Vec<Box<[u8]>>,
    pub(crate) columns: Arc<[ColumnPlan]>,
    /// How many of the columns, the last ones, are in the names of directories, and not in files.
    partition_columns: usize,
    schema: SchemaRef,
    pub(crate) encoding: i32,
}

impl Plan {
    /// The plan for the columns that the options name, with what was measured of them.
    ///
    /// # Errors
    /// When a column does not exist, or its type is not known.
    pub(crate) fn new(
        catalog: &ValueCatalog,
        relation: &Relation,
        options: &ArrowOptions,
        measured: &Measured,
    ) -> Result<Self> {
        let (mut positions, keys) = positions(catalog, relation, options)?;
        let encoding = catalog.database().row().encoding;
        let planner = Planner { catalog, encoding, options };
        let column = |position: &usize| {
            planner.column(&relation.columns[*position], measured.get(position).copied())
        };
        let mut columns: Vec<ColumnPlan> = positions.iter().map(column).collect::<Result<_>>()?;
        let partition_columns = keys.len();
        for position in keys {
            columns.push(planner.partition_column(&relation.columns[position])?);
            positions.push(position);
        }
        let fields: Vec<Arc<Field>> = columns.iter().map(|column| column.field.clone()).collect();
        let names = positions.iter().map(|position| relation.columns[*position].name.clone());
        let schema = Arc::new(Schema::new(fields));
        Ok(Self {
            names: names.collect(),
            columns: columns.into(),
            partition_columns,
            schema,
            encoding,
        })
    }

    /// The plan for columns as PostgreSQL itself computes with them, for query engines: numbers, booleans and texts as in
    /// files of Arrow; dates as days and times as microseconds in PostgreSQL's own count, infinities included; labels of
    /// enums, and what is the number of an object, as OIDs; `numeric(p,s)` of up to 38 digits as decimals; types of extensions that
    /// are kept and printed as text is as texts; every other value as the bytes of its tuple without their length word.
    ///
    /// # Errors
    /// When a column does not exist, or its type is not known.
    pub fn stored(
        catalog: &ValueCatalog,
        relation: &Relation,
        names: &[Box<[u8]>],
    ) -> Result<Self> {
        let positions = column_positions(catalog, relation, Some(names))?;
        let encoding = catalog.database().row().encoding;
        let mut columns = Vec::with_capacity(positions.len());
        for position in positions {
            let column = &relation.columns[position];
            let value_type = catalog.value_type(column.type_oid)?;
            let modifier = modifier(&value_type, column.type_modifier);
            let (kind, data_type) = match value_type.output {
                TypeOutput::Enum(_) => (Kind::UInt32, DataType::UInt32),
                _ => {
                    let kind = stored_kind_of(&value_type, modifier);
                    let data_type = stored(&kind);
                    (kind, data_type)
                }
            };
            let name = readable_name(encoding, &column.name);
            let field = Arc::new(Field::new(&name, data_type, true));
            columns.push(ColumnPlan { name, value_type, kind, field });
        }
        let fields: Vec<Arc<Field>> = columns.iter().map(|column| column.field.clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        let partition_columns = 0;
        Ok(Self {
            names: names.to_vec(),
            columns: columns.into(),
            schema,
            encoding,
            partition_columns,
        })
    }

    /// The plan for columns that no table has, as those of a statement's answer.
    ///
    /// # Errors
    /// When a type is not known.
    pub(crate) fn of_answer(
        catalog: &ValueCatalog,
        columns: &[AnswerColumn],
        options: &ArrowOptions,
        measured: &Measured,
    ) -> Result<Self> {
        let encoding = catalog.database().row().encoding;
        let planner = Planner { catalog, encoding, options };
        let column = |(at, column): (usize, &AnswerColumn)| {
            let value_type = catalog.value_type(column.type_oid)?;
            let measured = measured.get(&at).copied();
            planner.plan(column.name.clone(), value_type, column.modifier, measured)
        };
        let planned: Vec<ColumnPlan> =
            columns.iter().enumerate().map(column).collect::<Result<_>>()?;
        let fields: Vec<Arc<Field>> = planned.iter().map(|column| column.field.clone()).collect();
        let names = columns.iter().map(|column| column.name.as_bytes().into());
        Ok(Self {
            names: names.collect(),
            columns: planned.into(),
            partition_columns: 0,
            schema: Arc::new(Schema::new(fields)),
            encoding,
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns that are in the names of directories; in batches they are the last ones, and text.
    pub(crate) fn partition_columns(&self) -> &[ColumnPlan] {
        &self.columns[self.file_columns()..]
    }

    /// How many columns a file has.
    pub(crate) fn file_columns(&self) -> usize {
        self.columns.len() - self.partition_columns
    }

    /// The fields of a file.
    pub(crate) fn file_fields(&self) -> Fields {
        self.schema.fields()[..self.file_columns()].into()
    }

    /// Refuses what readers cannot have: Parquet without a column, and files that have none beside those in names.
    ///
    /// # Errors
    /// When that is so.
    pub(crate) fn refuse_no_columns(&self, options: &ArrowOptions) -> Result<()> {
        match self.file_columns() {
            0 if self.partition_columns > 0 => {
                let reason = "no column is left for the files: partition by fewer columns";
                Err(Error::Usage(reason.to_owned()))
            }
            0 if options.format == FileFormat::Parquet => {
                Err(Error::Encoding("a Parquet file has a column at least".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Where a relation, the named one or a part of it, has the columns.
    ///
    /// # Errors
    /// When it has not.
    pub fn positions(&self, catalog: &ValueCatalog, relation: &Relation) -> Result<Vec<usize>> {
        Ok(column_positions(catalog, relation, Some(&self.names))?)
    }
}

/// The positions of the columns in files, and of those in names of directories.
fn positions(
    catalog: &ValueCatalog,
    relation: &Relation,
    options: &ArrowOptions,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let mut columns = column_positions(catalog, relation, options.columns.as_deref())?;
    let keys = column_positions(catalog, relation, Some(&options.partition_by))?;
    if let Some(again) = (1..keys.len()).find(|at| keys[..*at].contains(&keys[*at])) {
        let name = relation.columns[keys[again]].display_name();
        return Err(Error::Usage(format!("column {name} is there twice to partition by")));
    }
    columns.retain(|position| !keys.contains(position));
    Ok((columns, keys))
}

/// The positions of the columns whose numerics are to be measured before they are planned.
pub(crate) fn to_measure(
    catalog: &ValueCatalog,
    relation: &Relation,
    options: &ArrowOptions,
) -> Result<Vec<usize>> {
    if options.numeric != NumericChoice::Auto {
        return Ok(Vec::new());
    }
    let mut wanted = Vec::new();
    for position in positions(catalog, relation, options)?.0 {
        let column = &relation.columns[position];
        if is_open_numeric(catalog, column.type_oid, column.type_modifier)? {
            wanted.push(position);
        }
    }
    Ok(wanted)
}

/// The columns of a relation that a pass over all of it would have to measure before any row can be written, by their names.
///
/// # Errors
/// When a column does not exist, or a type is not known.
pub fn columns_to_measure(
    catalog: &ValueCatalog,
    relation: &Relation,
    options: &ArrowOptions,
) -> Result<Vec<Box<[u8]>>> {
    let found = to_measure(catalog, relation, options)?.into_iter();
    Ok(found.map(|at| relation.columns[at].name.clone()).collect())
}

/// True for a numeric whose type does not say which decimal holds its values.
pub(crate) fn is_open_numeric(catalog: &ValueCatalog, type_oid: Oid, own: i32) -> Result<bool> {
    let value_type = catalog.value_type(type_oid)?;
    let is_numeric = is_scalar(&value_type) && value_type.decode == Decode::Numeric;
    Ok(is_numeric && declared(modifier(&value_type, own)).is_none())
}

fn is_scalar(value_type: &ValueType) -> bool {
    use TypeOutput::{Scalar, Styled, TimestampTz, Verbatim};
    matches!(value_type.output, Verbatim | Scalar { .. } | TimestampTz(_) | Styled(_))
}

/// The modifier of a column's values, which a domain may give.
fn modifier(value_type: &ValueType, own: i32) -> i32 {
    if own >= 0 { own } else { value_type.base_modifier }
}

/// Digits and places of the decimal that holds every value of `numeric(p,s)`. A negative scale has zeros before the
/// point, one above the precision zeros behind it. `None` when there is no modifier, or no decimal is so long.
///
/// Source: `numeric_typmod_precision` and `numeric_typmod_scale` in `src/backend/utils/adt/numeric.c`, PostgreSQL 15 to 18.
pub(crate) fn declared(modifier: i32) -> Option<(u8, u8)> {
    let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
    let precision = (packed >> 16) & 0xFFFF;
    let scale = ((packed & 0x7FF) ^ 1024) - 1024;
    let digits = if scale < 0 { precision - scale } else { precision.max(scale) };
    let digits = u8::try_from(digits).ok().filter(|digits| *digits <= MOST_DIGITS)?;
    Some((digits, u8::try_from(scale.max(0)).ok()?))
}

struct Planner<'a> {
    catalog: &'a ValueCatalog,
    encoding: i32,
    options: &'a ArrowOptions,
}

impl Planner<'_> {
    fn column(&self, column: &Column, measured: Option<Option<(u8, u8)>>) -> Result<ColumnPlan> {
        let value_type = self.catalog.value_type(column.type_oid)?;
        let name = readable_name(self.encoding, &column.name);
        self.plan(name, value_type, column.type_modifier, measured)
    }

    /// A column whose values are to be names: its texts.
    fn partition_column(&self, column: &Column) -> Result<ColumnPlan> {
        let mut plan = self.column(column, None)?;
        plan.kind = match plan.kind {
            Kind::Text => Kind::Text,
            Kind::Bytes
            | Kind::Json
            | Kind::Hstore
            | Kind::Vector(_)
            | Kind::Wkb(_)
            | Kind::List(_)
            | Kind::Struct(_) => {
                let spelled = self.catalog.type_name(column.type_oid)?;
                let reason = format!(
                    "column {} cannot be partitioned by: values of {spelled} are no names of directories",
                    column.display_name()
                );
                return Err(Error::Usage(reason));
            }
            _ => Kind::Printed,
        };
        let value_type = plan.value_type.clone();
        plan.field =
            Arc::new(self.field(&plan.name, &value_type, &plan.kind, column.type_modifier)?);
        Ok(plan)
    }

    fn plan(
        &self,
        name: String,
        value_type: Arc<ValueType>,
        own_modifier: i32,
        measured: Option<Option<(u8, u8)>>,
    ) -> Result<ColumnPlan> {
        let modifier = modifier(&value_type, own_modifier);
        let is_array = matches!(JsonForm::of(&value_type), JsonForm::Array | JsonForm::Vector);
        let kind = match (&value_type.output, value_type.decode) {
            _ if is_array && self.options.arrays == ArrayChoice::Json => Kind::Json,
            (TypeOutput::Array(element), _) if self.options.arrays == ArrayChoice::List => {
                let element =
                    self.plan("element".to_owned(), element.clone(), own_modifier, None)?;
                Kind::List(Box::new(element))
            }
            (TypeOutput::Composite(_), _) => self.row(&value_type)?,
            (TypeOutput::Money(_), _) => Kind::Money,
            (TypeOutput::Hex, _) => Kind::Bytes,
            (_, Decode::Numeric) if is_scalar(&value_type) => self.numeric(modifier, measured),
            (_, decode) if is_scalar(&value_type) => scalar(decode, value_type.base, modifier),
            _ => Kind::Printed,
        };
        let field = self.field(&name, &value_type, &kind, own_modifier)?;
        Ok(ColumnPlan { name, value_type, kind, field: Arc::new(field) })
    }

    /// A row of no attributes is text, as files of some formats cannot have it.
    fn row(&self, value_type: &ValueType) -> Result<Kind> {
        let TypeOutput::Composite(attributes) = &value_type.output else {
            return Ok(Kind::Printed);
        };
        let mut columns = Vec::new();
        for attribute in attributes.iter() {
            if let Some(value_type) = &attribute.value_type {
                let name = readable_name(self.encoding, &attribute.name);
                columns.push(self.plan(name, value_type.clone(), attribute.type_modifier, None)?);
            }
        }
        Ok(if columns.is_empty() { Kind::Printed } else { Kind::Struct(columns) })
    }

    fn numeric(&self, modifier: i32, measured: Option<Option<(u8, u8)>>) -> Kind {
        let decimal = |(precision, scale)| Kind::Decimal { precision, scale };
        match (self.options.numeric, declared(modifier)) {
            (NumericChoice::Text, _) => Kind::Printed,
            (_, Some(shape)) => decimal(shape),
            (NumericChoice::Double, None) => Kind::NumericAsDouble,
            (NumericChoice::Decimal(precision, scale), None) => decimal((precision, scale)),
            (NumericChoice::Auto, None) => measured.flatten().map_or(Kind::Printed, decimal),
        }
    }

    fn field(
        &self,
        name: &str,
        value_type: &ValueType,
        kind: &Kind,
        modifier: i32,
    ) -> Result<Field> {
        let spelled = self.catalog.type_name(value_type.oid)?;
        let mut metadata = HashMap::from([
            ("pg.type".to_owned(), spelled),
            ("pg.oid".to_owned(), value_type.oid.to_string()),
            ("pg.typmod".to_owned(), modifier.to_string()),
        ]);
        if let Some(extension) = extension_name(kind, value_type.base) {
            metadata.insert("ARROW:extension:name".to_owned(), extension.to_owned());
            metadata.insert("ARROW:extension:metadata".to_owned(), String::new());
        }
        Ok(Field::new(name, data_type(kind, value_type), true).with_metadata(metadata))
    }
}

/// How values of a built-in type that is no numeric get into an array.
fn scalar(decode: Decode, base: Oid, modifier: i32) -> Kind {
    match decode {
        Decode::Hstore => Kind::Hstore,
        Decode::Vector32 => Kind::Vector((modifier > 0).then_some(modifier)),
        Decode::Geometry => Kind::Wkb(declared_srid(modifier)),
        Decode::Bool => Kind::Bool,
        Decode::Int2 => Kind::Int16,
        Decode::Int4 => Kind::Int32,
        Decode::Int8 => Kind::Int64,
        Decode::Oid => Kind::UInt32,
        Decode::Unsigned8 if base == oid::XID8 => Kind::UInt64,
        Decode::Float4 => Kind::Float32,
        Decode::Float8 => Kind::Float64,
        Decode::Date => Kind::Date,
        Decode::Time => Kind::Time,
        Decode::Timestamp => Kind::Timestamp,
        Decode::Uuid => Kind::Uuid,
        Decode::Bytes => Kind::Bytes,
        // xml prints without the declaration that it is stored with.
        Decode::Text if base != oid::XML => Kind::Text,
        _ => Kind::Printed,
    }
}

/// As [`stored_kind`], and an extension's texts (citext) as texts.
fn stored_kind_of(value_type: &ValueType, modifier: i32) -> Kind {
    let is_text = value_type.decode == Decode::Text
        && matches!(value_type.output, TypeOutput::Verbatim)
        && BuiltinType::by_oid(value_type.base).is_none();
    match is_text {
        true => Kind::Text,
        false => stored_kind(value_type.base, modifier),
    }
}

/// How values are handed to who computes with them as PostgreSQL does. By the type itself: one that is only stored or printed
/// like another, as an extension's may be, is known to nobody but its own functions.
fn stored_kind(base: Oid, modifier: i32) -> Kind {
    match base {
        oid::BOOL => Kind::Bool,
        oid::INT2 => Kind::Int16,
        oid::INT4 | oid::DATE => Kind::Int32,
        oid::INT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::MONEY => Kind::Int64,
        oid::FLOAT4 => Kind::Float32,
        oid::FLOAT8 => Kind::Float64,
        oid::XID8 => Kind::UInt64,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::JSON => Kind::Text,
        // Without the zero bytes behind it.
        oid::NAME => Kind::Printed,
        oid::NUMERIC => match declared(modifier) {
            // Places that a decimal has as they were declared.
            Some((precision, scale)) if is_plain_scale(modifier) => {
                Kind::Decimal { precision, scale }
            }
            _ => Kind::Bytes,
        },
        oid::OID | oid::XID | oid::CID => Kind::UInt32,
        other => match BuiltinType::by_oid(other).map(|found| found.print_in(PgVersion::V18)) {
            Some(Print::Name(_)) => Kind::UInt32,
            _ => Kind::Bytes,
        },
    }
}

/// The Arrow type of the values of a base type that is no enum and no extension's, in the batches of a plan made by
/// [`Plan::stored`].
pub fn stored_type(base: Oid, modifier: i32) -> DataType {
    stored(&stored_kind(base, modifier))
}

fn stored(kind: &Kind) -> DataType {
    match *kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int16 => DataType::Int16,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::UInt32 => DataType::UInt32,
        Kind::UInt64 => DataType::UInt64,
        Kind::Float32 => DataType::Float32,
        Kind::Float64 => DataType::Float64,
        Kind::Text | Kind::Printed => DataType::Utf8,
        Kind::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        _ => DataType::Binary,
    }
}

/// True for a scale from 0 to the precision.
fn is_plain_scale(modifier: i32) -> bool {
    let packed = modifier - 4;
    let scale = ((packed & 0x7FF) ^ 1024) - 1024;
    (0..=(packed >> 16) & 0xFFFF).contains(&scale)
}

/// The SRID that a modifier of geometry or geography names.
///
/// Source: `TYPMOD_GET_SRID` in `liblwgeom/liblwgeom.h.in` of PostGIS 3.
fn declared_srid(modifier: i32) -> Option<i32> {
    let srid = ((modifier & 0x0FFF_FF00) - (modifier & 0x1000_0000)) >> 8;
    (modifier >= 0 && srid != 0).then_some(srid)
}

/// What a map's entries are.
pub(crate) fn entry_fields() -> Fields {
    vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)].into()
}

fn data_type(kind: &Kind, value_type: &ValueType) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int16 => DataType::Int16,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::UInt32 => DataType::UInt32,
        Kind::UInt64 => DataType::UInt64,
        Kind::Float32 => DataType::Float32,
        Kind::Float64 | Kind::NumericAsDouble => DataType::Float64,
        Kind::Date => DataType::Date32,
        Kind::Time => DataType::Time64(TimeUnit::Microsecond),
        Kind::Timestamp => {
            let zone = (value_type.base == oid::TIMESTAMPTZ).then(|| "UTC".into());
            DataType::Timestamp(TimeUnit::Microsecond, zone)
        }
        Kind::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale as i8),
        Kind::Money => DataType::Decimal128(MONEY_DIGITS, money_places(value_type) as i8),
        Kind::Uuid => DataType::FixedSizeBinary(16),
        Kind::Text | Kind::Printed | Kind::Json => DataType::Utf8,
        Kind::Bytes | Kind::Wkb(_) => DataType::Binary,
        Kind::Hstore => {
            let entries = Field::new("entries", DataType::Struct(entry_fields()), false);
            DataType::Map(Arc::new(entries), false)
        }
        Kind::Vector(width) => {
            let number = Arc::new(Field::new("element", DataType::Float32, false));
            match width {
                Some(width) => DataType::FixedSizeList(number, *width),
                None => DataType::List(number),
            }
        }
        Kind::List(element) => DataType::List(element.field.clone()),
        Kind::Struct(columns) => {
            DataType::Struct(columns.iter().map(|c| c.field.clone()).collect::<Fields>())
        }
    }
}

fn money_places(value_type: &ValueType) -> u8 {
    match &value_type.output {
        TypeOutput::Money(format) => format.fraction_digits,
        _ => 0,
    }
}

fn extension_name(kind: &Kind, base: Oid) -> Option<&'static str> {
    match kind {
        Kind::Uuid => Some("arrow.uuid"),
        Kind::Wkb(Some(_)) => Some("geoarrow.wkb"),
        Kind::Json => Some("arrow.json"),
        Kind::Text | Kind::Printed if base == oid::JSON || base == oid::JSONB => Some("arrow.json"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numerictypmodin` of PostgreSQL.
    fn packed(precision: i32, scale: i32) -> i32 {
        ((precision << 16) | (scale & 0x7FF)) + 4
    }

    #[test]
    fn a_declared_numeric_has_the_decimal_that_holds_all_its_values() {
        assert_eq!(declared(packed(10, 2)), Some((10, 2)));
        assert_eq!(declared(packed(38, 38)), Some((38, 38)));
        assert_eq!(declared(packed(3, -5)), Some((8, 0)), "zeros before the point");
        assert_eq!(declared(packed(2, 7)), Some((7, 7)), "zeros behind the point");
        for none in [-1, packed(39, 0), packed(38, -1), packed(5, 39), packed(1000, 1000)] {
            assert_eq!(declared(none), None);
        }
    }
}
