//! Literals: numbers, texts, intervals.
//!
//! Source: `make_const` in `src/backend/parser/parse_node.c`, `interval_transpose` of `gram.y`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::lit;
use pagemill_types::builtin::oid;
use pagemill_types::interval_fields;
use sqlparser::ast::{Interval, Value};

use super::Binder;
use crate::coerce::{carrier_of, constant};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::numbers::{self, Read};
use crate::typed::Typed;
use crate::types::{PgType, numeric_modifier};

impl Binder<'_> {
    pub(super) fn literal(&mut self, value: &Value) -> Result<Typed> {
        match value {
            Value::Number(digits, false) => self.number(digits),
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text) => Ok(Typed::unknown(Some(text.clone()))),
            Value::DollarQuotedString(text) => Ok(Typed::unknown(Some(text.value.clone()))),
            Value::Boolean(truth) => {
                Ok(Typed::new(lit(*truth), PgType::new(oid::BOOL), DataType::Boolean))
            }
            Value::SingleQuotedByteStringLiteral(bits) => {
                constant(&self.catalog, PgType::new(oid::BIT), &format!("b{bits}"))
            }
            Value::HexStringLiteral(digits) => {
                constant(&self.catalog, PgType::new(oid::BIT), &format!("x{digits}"))
            }
            Value::Null => Ok(Typed::unknown(None)),
            Value::Placeholder(name) => match &self.body {
                Some(_) => self.numbered_argument(name),
                None => self.parameters.get(&self.catalog, name),
            },
            _ => unsupported(format!("the literal {value}")),
        }
    }

    /// The first type that the number fits: integer, bigint, numeric.
    pub(super) fn number(&mut self, digits: &str) -> Result<Typed> {
        let plain = self.plain_number(digits)?;
        if let Ok(number) = plain.parse::<i32>() {
            return Ok(Typed::new(lit(number), PgType::new(oid::INT4), DataType::Int32));
        }
        if let Ok(number) = plain.parse::<i64>() {
            return Ok(Typed::new(lit(number), PgType::new(oid::INT8), DataType::Int64));
        }
        // A decimal where 38 digits are enough: it is as exact, and many times as fast.
        let modifier = match decimal_places(&plain) {
            Some((precision, scale)) => numeric_modifier(precision, scale),
            None => -1,
        };
        let typed =
            constant(&self.catalog, PgType::new(oid::NUMERIC).with_modifier(modifier), &plain)?;
        Ok(Typed { ty: PgType::new(oid::NUMERIC), ..typed })
    }

    /// A number, perhaps behind a minus sign, in base ten and without underscores.
    fn plain_number(&self, text: &str) -> Result<String> {
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => ("-", unsigned),
            None => ("", text),
        };
        let major = self.catalog.database().cluster().version().major();
        match numbers::read(unsigned, major) {
            Read::Number(plain) => Ok(format!("{sign}{plain}")),
            Read::Invalid(message) => fail(SqlState::SYNTAX_ERROR, message),
            Read::Unknown => unsupported(format!("the number {unsigned}")),
        }
    }

    pub(super) fn interval(&mut self, interval: &Interval) -> Result<Typed> {
        if interval.leading_field.is_some()
            || interval.last_field.is_some()
            || interval.leading_precision.is_some()
            || interval.fractional_seconds_precision.is_some()
        {
            let text = match &*interval.value {
                sqlparser::ast::Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => text.clone(),
                    _ => return fail(SqlState::SYNTAX_ERROR, "syntax error in INTERVAL"),
                },
                _ => return fail(SqlState::SYNTAX_ERROR, "syntax error in INTERVAL"),
            };
            let modifier = interval_modifier(interval)?;
            let ty = PgType::new(oid::INTERVAL).with_modifier(modifier);
            let typed = constant(&self.catalog, ty, &text)?;
            return Ok(Typed { ty: PgType::new(oid::INTERVAL), ..typed });
        }
        match &*interval.value {
            sqlparser::ast::Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => {
                    let ty = PgType::new(oid::INTERVAL);
                    let carrier = carrier_of(&self.catalog, ty);
                    let typed = constant(&self.catalog, ty, text)?;
                    assert_eq!(typed.carrier, carrier, "an interval is carried as its type says");
                    Ok(typed)
                }
                _ => fail(SqlState::SYNTAX_ERROR, "syntax error in INTERVAL"),
            },
            _ => fail(SqlState::SYNTAX_ERROR, "syntax error in INTERVAL"),
        }
    }
}

/// Digits and places of a number that a decimal carries as it is written.
fn decimal_places(text: &str) -> Option<(i32, i32)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.chars().chain(part.chars()).all(|c| c.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(part.len()).ok()?;
    let whole = whole.trim_start_matches('0').len();
    let precision = i32::try_from(whole).ok()? + scale;
    (precision <= 38).then_some((precision.max(1), scale))
}

/// `INTERVAL '…' YEAR TO MONTH`: the fields as bits of the modifier.
///
/// Source: `opt_interval` of `gram.y`, PostgreSQL 18.
fn interval_modifier(interval: &Interval) -> Result<i32> {
    use interval_fields::{DAY, FULL_PRECISION, HOUR, MINUTE, MONTH, SECOND, YEAR};
    use sqlparser::ast::DateTimeField::{Day, Hour, Minute, Month, Second, Year};
    // From the longest to the shortest.
    const ORDER: [i32; 6] = [YEAR, MONTH, DAY, HOUR, MINUTE, SECOND];
    let place = |field: &sqlparser::ast::DateTimeField| match field {
        Year => Some(0),
        Month => Some(1),
        Day => Some(2),
        Hour => Some(3),
        Minute => Some(4),
        Second => Some(5),
        _ => None,
    };
    let first = interval.leading_field.as_ref().and_then(place);
    let last = match &interval.last_field {
        Some(field) => place(field),
        None => first,
    };
    let (Some(first), Some(last)) = (first, last) else {
        return unsupported("these fields of INTERVAL");
    };
    // `SECOND(2)` has its places behind the first field.
    let is_second = first + 1 == ORDER.len() && interval.last_field.is_none();
    let has_both =
        interval.leading_precision.is_some() && interval.fractional_seconds_precision.is_some();
    if first > last || has_both || interval.leading_precision.is_some() && !is_second {
        return unsupported("these fields of INTERVAL");
    }
    let range = ORDER[first..=last].iter().fold(0, |bits, field| bits | field);
    let precision = interval.fractional_seconds_precision.or(interval.leading_precision);
    if precision.is_some_and(|places| places > 6) {
        return unsupported("this precision of INTERVAL");
    }
    let precision = precision.and_then(|p| i32::try_from(p).ok()).unwrap_or(FULL_PRECISION);
    Ok((range << 16) | precision)
}
