//! Names of types, with their modifiers.
//!
//! Source: `typenameTypeMod` in `src/backend/parser/parse_type.c`, `gram.y`, PostgreSQL 18.

use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::interval_fields;
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, Ident, IntervalFields,
    ObjectName, TimezoneInfo,
};

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::Binder;
use super::scope::folded;
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::types::{PgType, numeric_modifier};

/// Bytes before the length in a modifier.
const HEADER: i32 = 4;

impl Binder<'_> {
    pub(super) fn type_named(&self, name: &DataType) -> Result<PgType> {
        let found = TypeNames { catalog: &self.catalog }.find(name)?;
        if let DataType::Custom(name, _) = name
            && let [_, _] = &name.0[..]
            && let Some(row) = self.catalog.type_row(found.oid)
        {
            self.check_schema(row.namespace)?;
        }
        Ok(found)
    }
}

/// The type of this name in a text; `None` where there is none.
///
/// # Errors
/// When the text is no name of a type, or of one that is not known here.
pub(crate) fn type_of_text(catalog: &Catalog, text: &str) -> Result<Option<PgType>> {
    let syntax = |_| StatementError::unsupported(format!("the name of a type \"{text}\""));
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).map_err(syntax)?;
    let name = parser.parse_data_type().map_err(syntax)?;
    if parser.peek_token().token != Token::EOF {
        return unsupported(format!("the name of a type \"{text}\""));
    }
    match (TypeNames { catalog }).find(&name) {
        Err(Error::Statement(error)) if error.state == SqlState::UNDEFINED_OBJECT => Ok(None),
        found => found.map(Some),
    }
}

/// Looks up names of types.
struct TypeNames<'c> {
    catalog: &'c Catalog,
}

impl TypeNames<'_> {
    fn find(&self, name: &DataType) -> Result<PgType> {
        let plain = |oid| Ok(PgType::new(oid));
        match name {
            DataType::Boolean | DataType::Bool => plain(oid::BOOL),
            DataType::SmallInt(None) | DataType::Int2(None) => plain(oid::INT2),
            DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => {
                plain(oid::INT4)
            }
            DataType::BigInt(None) | DataType::Int8(None) => plain(oid::INT8),
            DataType::Real | DataType::Float4 => plain(oid::FLOAT4),
            DataType::DoublePrecision | DataType::Float8 => plain(oid::FLOAT8),
            DataType::Float(ExactNumberInfo::None) => plain(oid::FLOAT8),
            DataType::Float(ExactNumberInfo::Precision(bits)) => match bits {
                1..=24 => plain(oid::FLOAT4),
                25..=53 => plain(oid::FLOAT8),
                _ => fail(
                    SqlState::INVALID_PARAMETER,
                    "precision for type float must be 1 to 53 bits",
                ),
            },
            DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
                numeric(info)
            }
            DataType::Varchar(length)
            | DataType::CharacterVarying(length)
            | DataType::CharVarying(length) => text(oid::VARCHAR, length.as_ref(), None),
            DataType::Char(length) | DataType::Character(length) => {
                text(oid::BPCHAR, length.as_ref(), Some(1))
            }
            DataType::VarBit(None) | DataType::BitVarying(None) => plain(oid::VARBIT),
            DataType::VarBit(Some(length)) | DataType::BitVarying(Some(length)) => {
                bits(oid::VARBIT, "varbit", *length)
            }
            DataType::Bit(length) => bits(oid::BIT, "bit", length.unwrap_or(1)),
            DataType::Text => plain(oid::TEXT),
            DataType::Bytea => plain(oid::BYTEA),
            DataType::Date => plain(oid::DATE),
            DataType::Time(precision, zone) => {
                let of = if with_zone(zone) { oid::TIMETZ } else { oid::TIME };
                timed(of, *precision)
            }
            DataType::Timestamp(precision, zone) => {
                let of = if with_zone(zone) { oid::TIMESTAMPTZ } else { oid::TIMESTAMP };
                timed(of, *precision)
            }
            DataType::Interval { fields, precision } => interval(fields.as_ref(), *precision),
            DataType::Uuid => plain(oid::UUID),
            DataType::JSON => plain(oid::JSON),
            DataType::JSONB => plain(oid::JSONB),
            DataType::Regclass => plain(Oid(2205)),
            DataType::TsVector => plain(oid::TSVECTOR),
            DataType::TsQuery => plain(oid::TSQUERY),
            // How many dimensions arrays have is not of their type.
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, _))
                if matches!(**element, DataType::Array(_)) =>
            {
                self.find(element)
            }
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
                let element = self.find(element)?;
                // What is written between braces is read by no field.
                if element.oid == oid::INTERVAL && element.modifier >= 0 {
                    return unsupported(format!("the type {name}"));
                }
                let row = self.catalog.type_row(element.oid).filter(|row| row.array.0 != 0);
                match row {
                    Some(row) => Ok(PgType::new(row.array).with_modifier(element.modifier)),
                    None => unsupported(format!("the type {name}")),
                }
            }
            DataType::Custom(name, modifiers) => self.custom(name, modifiers),
            DataType::GeometricType(kind) => {
                self.custom(&ObjectName::from(vec![Ident::new(kind.to_string())]), &[])
            }
            other => unsupported(format!("the type {other}")),
        }
    }

    fn custom(&self, name: &ObjectName, modifiers: &[String]) -> Result<PgType> {
        let parts = super::from::name_parts(name)?;
        let last = parts.last().expect("a name has a part"); // infallible: of the parser
        let wanted = folded(last);
        let schema = match &parts[..] {
            [schema, _] => Some(folded(schema)),
            _ => None,
        };
        let namespaces = self.catalog.database().namespaces()?;
        let in_schema = |oid: &&Oid| {
            let Some(row) = self.catalog.type_row(**oid) else { return false };
            match &schema {
                None => self.catalog.search_path().contains(&row.namespace),
                Some(schema) => {
                    namespaces.get(&row.namespace).is_some_and(|name| **name == *schema.as_bytes())
                }
            }
        };
        let found = self.catalog.types_named(&wanted).iter().filter(in_schema);
        let rank = |oid: &&Oid| {
            let namespace = self.catalog.type_row(**oid).map(|row| row.namespace);
            self.catalog.search_path().iter().position(|each| Some(*each) == namespace)
        };
        let Some(found) = found.min_by_key(rank) else {
            let message = format!("type \"{wanted}\" does not exist");
            return Err(super::scope::at(
                StatementError::new(SqlState::UNDEFINED_OBJECT, message),
                last,
            ));
        };
        match (*found, modifiers) {
            (found, []) => Ok(PgType::new(found)),
            (oid::NUMERIC, _) | (oid::VARCHAR, _) | (oid::BPCHAR, _) => {
                let numbers: Vec<u64> = modifiers.iter().filter_map(|m| m.parse().ok()).collect();
                match (*found, &numbers[..]) {
                    (oid::NUMERIC, [p]) => numeric(&ExactNumberInfo::Precision(*p)),
                    (found, [n]) => {
                        let length = CharacterLength::IntegerLength { length: *n, unit: None };
                        text(found, Some(&length), None)
                    }
                    _ => unsupported(format!("the type {name}")),
                }
            }
            _ => unsupported(format!("a modifier of type {wanted}")),
        }
    }
}

fn numeric(info: &ExactNumberInfo) -> Result<PgType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(PgType::new(oid::NUMERIC)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=1000).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and 1000");
        return fail(SqlState::INVALID_PARAMETER, message);
    }
    if !(-1000..=1000).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between -1000 and 1000");
        return fail(SqlState::INVALID_PARAMETER, message);
    }
    Ok(PgType::new(oid::NUMERIC).with_modifier(numeric_modifier(precision as i32, scale as i32)))
}

fn text(oid: Oid, length: Option<&CharacterLength>, default: Option<u64>) -> Result<PgType> {
    let length = match length {
        Some(CharacterLength::IntegerLength { length, unit: None }) => Some(*length),
        Some(_) => return unsupported("a length in octets, or MAX"),
        None => default,
    };
    match length {
        None => Ok(PgType::new(oid)),
        Some(0) => fail(SqlState::INVALID_PARAMETER, "length for type must be at least 1"),
        Some(length) if length <= 10_485_760 => {
            Ok(PgType::new(oid).with_modifier(length as i32 + HEADER))
        }
        Some(_) => fail(SqlState::INVALID_PARAMETER, "length for type cannot exceed 10485760"),
    }
}

/// Bits of a length, which is the modifier.
///
/// Source: `anybit_typmodin` in `src/backend/utils/adt/varbit.c`, PostgreSQL 18.
fn bits(type_oid: Oid, name: &str, length: u64) -> Result<PgType> {
    const MOST: u64 = 10_485_760 * 8;
    match length {
        0 => {
            fail(SqlState::INVALID_PARAMETER, format!("length for type {name} must be at least 1"))
        }
        1..=MOST => Ok(PgType::new(type_oid).with_modifier(length as i32)),
        _ => {
            let message = format!("length for type {name} cannot exceed {MOST}");
            fail(SqlState::INVALID_PARAMETER, message)
        }
    }
}

fn with_zone(zone: &TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz)
}

fn timed(oid: Oid, precision: Option<u64>) -> Result<PgType> {
    match precision {
        None => Ok(PgType::new(oid)),
        Some(places @ 0..=6) => Ok(PgType::new(oid).with_modifier(places as i32)),
        // The server warns, and takes 6.
        Some(_) => Ok(PgType::new(oid).with_modifier(6)),
    }
}

/// An interval of some fields, or of places of a second.
///
/// Source: `intervaltypmodin` in `src/backend/utils/adt/timestamp.c`, `opt_interval` of `gram.y`, PostgreSQL 14 to 18.
fn interval(fields: Option<&IntervalFields>, precision: Option<u64>) -> Result<PgType> {
    use IntervalFields as Fields;
    use interval_fields::{DAY, FULL_PRECISION, FULL_RANGE, HOUR, MINUTE, MONTH, SECOND, YEAR};
    let plain = PgType::new(oid::INTERVAL);
    let range = match fields {
        None if precision.is_none() => return Ok(plain),
        None => FULL_RANGE,
        Some(Fields::Year) => YEAR,
        Some(Fields::Month) => MONTH,
        Some(Fields::Day) => DAY,
        Some(Fields::Hour) => HOUR,
        Some(Fields::Minute) => MINUTE,
        Some(Fields::Second) => SECOND,
        Some(Fields::YearToMonth) => YEAR | MONTH,
        Some(Fields::DayToHour) => DAY | HOUR,
        Some(Fields::DayToMinute) => DAY | HOUR | MINUTE,
        Some(Fields::DayToSecond) => DAY | HOUR | MINUTE | SECOND,
        Some(Fields::HourToMinute) => HOUR | MINUTE,
        Some(Fields::HourToSecond) => HOUR | MINUTE | SECOND,
        Some(Fields::MinuteToSecond) => MINUTE | SECOND,
    };
    let places = match precision {
        None => FULL_PRECISION,
        Some(places @ 0..=6) if range & SECOND != 0 => places as i32,
        Some(_) => return unsupported("this precision of INTERVAL"),
    };
    Ok(plain.with_modifier((range << 16) | places))
}

/// The name that a cast gives a column.
pub(super) fn shown_name(name: &DataType) -> String {
    match name {
        DataType::Boolean | DataType::Bool => "bool".to_owned(),
        DataType::SmallInt(_) | DataType::Int2(_) => "int2".to_owned(),
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4".to_owned(),
        DataType::BigInt(_) | DataType::Int8(_) => "int8".to_owned(),
        DataType::Real | DataType::Float4 => "float4".to_owned(),
        DataType::Float(ExactNumberInfo::Precision(1..=24)) => "float4".to_owned(),
        DataType::DoublePrecision | DataType::Float8 | DataType::Float(_) => "float8".to_owned(),
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric".to_owned(),
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => {
            "varchar".to_owned()
        }
        DataType::Char(_) | DataType::Character(_) => "bpchar".to_owned(),
        DataType::VarBit(_) | DataType::BitVarying(_) => "varbit".to_owned(),
        DataType::Bit(_) => "bit".to_owned(),
        DataType::Time(_, zone) if with_zone(zone) => "timetz".to_owned(),
        DataType::Time(..) => "time".to_owned(),
        DataType::Timestamp(_, zone) if with_zone(zone) => "timestamptz".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        DataType::Interval { .. } => "interval".to_owned(),
        DataType::TsVector => "tsvector".to_owned(),
        DataType::TsQuery => "tsquery".to_owned(),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => shown_name(element),
        DataType::Custom(name, _) => super::columns::last_name(name),
        other => other.to_string().to_ascii_lowercase(),
    }
}
