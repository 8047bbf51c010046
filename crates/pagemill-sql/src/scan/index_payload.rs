//! A constant of a condition as the payload that an index keeps of such a value.
//!
//! Invariant: the index orders payloads as the condition orders what carries them; where that is not certain there is no
//! payload, and the index is not searched.
//!
//! Source: `src/include/utils/numeric.h` and `struct NumericLong` in `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;

use super::relation_table::TableColumn;
use crate::catalog::Catalog;
use crate::functions::numeric::value::{Number, Value};
use crate::types::is_object_number;

/// How a condition looks at a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// As it is carried.
    Plain,
    /// Without blanks at its end.
    Unpadded,
    /// With one zero and one NaN.
    Float,
    /// As bytes that sort as numerics do.
    Numeric,
    /// As bytes that sort as TIDs do.
    Tid,
}

impl KeyForm {
    /// By the name of the kernel that makes the key.
    pub(super) fn of_kernel(name: &str) -> Option<Self> {
        match name {
            "rtrim1" => Some(Self::Unpadded),
            "float_key" => Some(Self::Float),
            "numeric_key" => Some(Self::Numeric),
            "tid_key" => Some(Self::Tid),
            _ => None,
        }
    }
}

/// A constant beside the values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constant {
    /// One of them, maybe.
    Value(Box<[u8]>),
    /// Less than all.
    Below,
    /// More than all.
    Above,
}

/// A constant that the values of a column, in this form, are held against.
pub(super) fn constant(
    catalog: &Catalog,
    column: &TableColumn,
    form: KeyForm,
    value: &ScalarValue,
) -> Option<Constant> {
    let (base, _) = catalog.base_type(column.ty.oid, -1);
    let found = match (base, form) {
        (oid::INT2, KeyForm::Plain) => return integer::<2>(value),
        (oid::INT4 | oid::DATE, KeyForm::Plain) => return integer::<4>(value),
        (
            oid::INT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::MONEY,
            KeyForm::Plain,
        ) => return integer::<8>(value),
        (oid::BPCHAR, KeyForm::Unpadded) => unpadded(value)?,
        (oid::FLOAT4 | oid::FLOAT8, KeyForm::Float) => float(base, value)?,
        (oid::NUMERIC, KeyForm::Numeric) => numeric_of_key(binary(value)?)?,
        (oid::NUMERIC, KeyForm::Plain) => decimal(value)?,
        (oid::TID, KeyForm::Tid) => {
            let [a, b, c, d, e, f] = *binary(value)?.first_chunk::<6>()?;
            vec![b, a, d, c, f, e]
        }
        (oid::TEXT | oid::VARCHAR | oid::NAME, KeyForm::Plain) => text(value)?.as_bytes().to_vec(),
        (oid::UUID, KeyForm::Plain) => Some(binary(value)?).filter(|b| b.len() == 16)?.to_vec(),
        (oid::BYTEA, KeyForm::Plain) => binary(value)?.to_vec(),
        (oid::BOOL, KeyForm::Plain) => match value {
            ScalarValue::Boolean(Some(value)) => vec![u8::from(*value)],
            _ => return None,
        },
        (other, KeyForm::Plain) if is_object_number(other) => match value {
            ScalarValue::UInt32(Some(value)) => value.to_le_bytes().to_vec(),
            _ => return None,
        },
        (other, KeyForm::Plain) if catalog.type_row(other).is_some_and(|row| row.kind == b'e') => {
            let ScalarValue::Int32(Some(place)) = value else { return None };
            catalog.enum_order(other).ok()?.label(*place).ok()?.0.to_le_bytes().to_vec()
        }
        _ => return None,
    };
    Some(Constant::Value(found.into()))
}

/// True where an index keeps the values of a column in the order in which this form of them sorts.
pub(super) fn is_in_stored_order(catalog: &Catalog, column: &TableColumn, form: KeyForm) -> bool {
    let (base, _) = catalog.base_type(column.ty.oid, -1);
    match (base, form) {
        (oid::BPCHAR, KeyForm::Unpadded)
        | (oid::FLOAT4 | oid::FLOAT8, KeyForm::Float)
        | (oid::NUMERIC, KeyForm::Numeric) => true,
        (oid::NUMERIC, KeyForm::Plain) => matches!(column.carrier, DataType::Decimal128(..)),
        (oid::TEXT | oid::VARCHAR | oid::NAME, KeyForm::Plain) => column.carrier == DataType::Utf8,
        (oid::UUID | oid::BYTEA, KeyForm::Plain) => column.carrier == DataType::Binary,
        (oid::BOOL, KeyForm::Plain) => column.carrier == DataType::Boolean,
        (
            oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::MONEY,
            KeyForm::Plain,
        ) => column.carrier.is_signed_integer(),
        (other, KeyForm::Plain) if is_object_number(other) => column.carrier == DataType::UInt32,
        (other, KeyForm::Plain) if catalog.type_row(other).is_some_and(|row| row.kind == b'e') => {
            column.carrier == DataType::Int32
        }
        _ => false,
    }
}

/// An integer of so many bytes, however long the constant's own type is.
fn integer<const N: usize>(value: &ScalarValue) -> Option<Constant> {
    let wide = match value {
        ScalarValue::Int16(Some(value)) => i64::from(*value),
        ScalarValue::Int32(Some(value)) => i64::from(*value),
        ScalarValue::Int64(Some(value)) => *value,
        _ => return None,
    };
    let bytes = wide.to_le_bytes();
    let sign = 64 - 8 * N as u32;
    Some(match (wide << sign) >> sign == wide {
        true => Constant::Value(bytes[..N].into()),
        false if wide < 0 => Constant::Below,
        false => Constant::Above,
    })
}

fn text(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(Some(text)) => Some(text),
        _ => None,
    }
}

fn binary(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::Binary(Some(bytes)) => Some(bytes),
        _ => None,
    }
}

/// A text that ends in blanks is no key of a `character(n)`, and sorts elsewhere than the index has it.
fn unpadded(value: &ScalarValue) -> Option<Vec<u8>> {
    let text = text(value)?;
    (!text.ends_with(' ')).then(|| text.as_bytes().to_vec())
}

fn float(base: pagemill_format::Oid, value: &ScalarValue) -> Option<Vec<u8>> {
    match (base, value) {
        (oid::FLOAT4, ScalarValue::Float32(Some(value))) => Some(value.to_le_bytes().to_vec()),
        (oid::FLOAT8, ScalarValue::Float64(Some(value))) => Some(value.to_le_bytes().to_vec()),
        _ => None,
    }
}

fn decimal(value: &ScalarValue) -> Option<Vec<u8>> {
    match value {
        ScalarValue::Decimal128(Some(value), _, scale) => {
            let scale = u32::try_from(*scale).ok()?;
            Value::from(Number::new(*value, scale)).payload().ok()
        }
        _ => None,
    }
}

/// The number that a key of a numeric stands for (`functions/numeric/keys.rs`).
fn numeric_of_key(key: &[u8]) -> Option<Vec<u8>> {
    let (class, rest) = key.split_first()?;
    let header: u16 = match class {
        0 => return Some(0xF000_u16.to_le_bytes().to_vec()),
        4 => return Some(0xD000_u16.to_le_bytes().to_vec()),
        5 => return Some(0xC000_u16.to_le_bytes().to_vec()),
        1 => 0x4000,
        _ => 0,
    };
    let invert = if *class == 1 { 0xFF } else { 0 };
    let rest: Vec<u8> = rest.iter().map(|byte| byte ^ invert).collect();
    let (weight, digits) = match rest.split_first_chunk::<3>() {
        Some(([a, b, c], digits)) => {
            let weight = i32::from_be_bytes([0, *a, *b, *c]) - (1 << 23);
            (i16::try_from(weight).ok()?, digits)
        }
        None => (0, &[][..]),
    };
    let mut payload = header.to_le_bytes().to_vec();
    payload.extend(weight.to_le_bytes());
    let digits = digits.as_chunks::<2>().0.iter().map(|digit| u16::from_be_bytes(*digit));
    for digit in digits.take_while(|digit| *digit > 0) {
        payload.extend((digit - 1).to_le_bytes());
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::numeric::keys::put_key;

    #[test]
    fn a_key_of_a_numeric_leads_back_to_it() {
        for (value, scale) in
            [(0_i128, 0), (1, 0), (-1, 0), (10_000, 0), (12_345_678, 3), (-12_345_678, 5), (5, 9)]
        {
            let payload = Value::from(Number::new(value, scale)).payload().unwrap();
            let (mut key, mut again) = (Vec::new(), Vec::new());
            put_key(&payload, &mut key).unwrap();
            put_key(&numeric_of_key(&key).unwrap(), &mut again).unwrap();
            assert_eq!(key, again, "{value} of scale {scale}");
        }
    }

    #[test]
    fn an_integer_keeps_its_value_or_is_beyond_all() {
        let of = |value| integer::<2>(&ScalarValue::Int64(Some(value)));
        assert_eq!(of(-2), Some(Constant::Value([0xFE, 0xFF].into())));
        assert_eq!(of(32_767), Some(Constant::Value([0xFF, 0x7F].into())));
        assert_eq!(of(32_768), Some(Constant::Above));
        assert_eq!(of(-32_769), Some(Constant::Below));
        assert_eq!(integer::<4>(&ScalarValue::Float64(Some(1.0))), None);
    }
}
