//! A constant of a condition as the payload that an index keeps of such a value.
//!
//! Invariant: the index orders payloads as the condition orders what carries them; where that is not certain there is no
//! payload, and the index is not searched.
//!
//! Source: `src/include/utils/numeric.h` and `struct NumericLong` in `src/backend/utils/adt/numeric.c`, `src/include/utils/inet.h`,
//! `interval_cmp_value` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::relation_table::TableColumn;
use crate::catalog::Catalog;
use crate::functions::call::argument_types;
use crate::functions::collations::LOCALE_KEY;
use crate::functions::numeric::value::{Number, Value};
use crate::types::is_object_number;

/// Bytes of an address of either family: the family, the length of the mask, the address.
const ADDRESS_BYTES: [usize; 2] = [6, 18];

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
    /// As bytes that sort as addresses do.
    Address,
    /// As bytes that sort as positions in the write-ahead log do.
    Position,
    /// As bytes that sort as times with zones do.
    ZonedTime,
    /// As bytes that sort as intervals do.
    Interval,
    /// As bytes that sort as texts do in a collation.
    Collated(Oid),
}

impl KeyForm {
    /// By the kernel that makes the key.
    pub(super) fn of_kernel(kernel: &ScalarUDF) -> Option<Self> {
        match kernel.name() {
            "rtrim1" => Some(Self::Unpadded),
            "float_key" => Some(Self::Float),
            "numeric_key" => Some(Self::Numeric),
            "tid_key" => Some(Self::Tid),
            "inet_key" => Some(Self::Address),
            "lsn_key" => Some(Self::Position),
            "timetz_key" => Some(Self::ZonedTime),
            "interval_key" => Some(Self::Interval),
            LOCALE_KEY => Some(Self::Collated(argument_types(kernel)?.first()?.collation)),
            _ => None,
        }
    }

    /// The collation whose order the form has: of texts that their bytes do not sort.
    pub(super) fn collation(self) -> Option<Oid> {
        match self {
            Self::Collated(collation) => Some(collation),
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
        (oid::CHAR, KeyForm::Plain) => of_bytes(value, &[1])?.to_vec(),
        (oid::MACADDR, KeyForm::Plain) => of_bytes(value, &[6])?.to_vec(),
        (oid::MACADDR8 | oid::PG_LSN, KeyForm::Plain) => of_bytes(value, &[8])?.to_vec(),
        (oid::TIMETZ, KeyForm::Plain) => of_bytes(value, &[12])?.to_vec(),
        (oid::INET | oid::CIDR, KeyForm::Plain) => of_bytes(value, &ADDRESS_BYTES)?.to_vec(),
        (oid::INET | oid::CIDR, KeyForm::Address) => address_of_key(binary(value)?)?,
        (oid::PG_LSN, KeyForm::Position) => {
            binary(value)?.first_chunk::<8>()?.iter().rev().copied().collect()
        }
        (oid::TIMETZ, KeyForm::ZonedTime) => zoned_time_of_key(binary(value)?)?,
        (oid::INTERVAL, KeyForm::Interval) => interval_of_key(binary(value)?)?,
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

/// True where this form of values tells equal ones only: an index, and the server, have them in another order.
pub(super) fn is_for_equality(catalog: &Catalog, column: &TableColumn, form: KeyForm) -> bool {
    let (base, _) = catalog.base_type(column.ty.oid, -1);
    let has_own_order = matches!(base, oid::INET | oid::CIDR | oid::PG_LSN | oid::TIMETZ);
    has_own_order && form == KeyForm::Plain
}

/// True where an index keeps the values of a column in the order in which this form of them sorts: of texts that are collated, one
/// of the same collation.
pub(super) fn is_in_stored_order(catalog: &Catalog, column: &TableColumn, form: KeyForm) -> bool {
    let (base, _) = catalog.base_type(column.ty.oid, -1);
    match (base, form) {
        (oid::BPCHAR, KeyForm::Unpadded)
        | (oid::FLOAT4 | oid::FLOAT8, KeyForm::Float)
        | (oid::NUMERIC, KeyForm::Numeric) => true,
        (oid::NUMERIC, KeyForm::Plain) => matches!(column.carrier, DataType::Decimal128(..)),
        (oid::TEXT | oid::VARCHAR | oid::NAME, KeyForm::Plain) => column.carrier == DataType::Utf8,
        (oid::TEXT | oid::VARCHAR | oid::BPCHAR, KeyForm::Collated(_)) => true,
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

/// Bytes, of which there are so many.
fn of_bytes<'v>(value: &'v ScalarValue, lengths: &[usize]) -> Option<&'v [u8]> {
    binary(value).filter(|bytes| lengths.contains(&bytes.len()))
}

/// The address that a key stands for (`functions/addresses/network.rs`): the family, the network, the length of its mask, the address.
fn address_of_key(key: &[u8]) -> Option<Vec<u8>> {
    let (family, rest) = key.split_first()?;
    let (_, rest) = rest.split_at_checked(rest.len() / 2)?;
    Some([&[*family], rest].concat()).filter(|payload| ADDRESS_BYTES.contains(&payload.len()))
}

/// The time that a key stands for (`functions/datetime/zoned_times.rs`): what it is in Greenwich, and its zone.
fn zoned_time_of_key(key: &[u8]) -> Option<Vec<u8>> {
    let (time, zone) = key.split_first_chunk::<16>()?;
    let time = (u128::from_be_bytes(*time) ^ (1 << 127)) as i128;
    let west = (u32::from_be_bytes(*zone.first_chunk()?) ^ (1 << 31)) as i32;
    let micros = i64::try_from(time.checked_sub(i128::from(west) * 1_000_000)?).ok()?;
    Some([&micros.to_le_bytes()[..], &west.to_le_bytes()].concat())
}

/// An interval of the length that a key stands for (`functions/keys.rs`), which is equal to all others of it.
fn interval_of_key(key: &[u8]) -> Option<Vec<u8>> {
    const DAY: i128 = 86_400_000_000;
    let length = (u128::from_be_bytes(*key.first_chunk()?) ^ (1 << 127)) as i128;
    let (days, micros) = (length.div_euclid(DAY), length.rem_euclid(DAY));
    let months = i32::try_from(days.div_euclid(30)).ok()?;
    let (days, micros) = (days.rem_euclid(30) as i32, micros as i64);
    Some([&micros.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat())
}

/// A text that ends in blanks is no key of a `character(n)`, and sorts elsewhere than the index has it.
fn unpadded(value: &ScalarValue) -> Option<Vec<u8>> {
    let text = text(value)?;
    (!text.ends_with(' ')).then(|| text.as_bytes().to_vec())
}

fn float(base: Oid, value: &ScalarValue) -> Option<Vec<u8>> {
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
    fn keys_of_addresses_and_times_lead_back_to_them() {
        let address = [2, 12, 10, 31, 200, 7];
        let key = crate::functions::addresses::order_key(&address).unwrap();
        assert_eq!(address_of_key(&key).unwrap(), address);
        assert_eq!(address_of_key(&key[1..]), None);
        // 03:00 two hours east of Greenwich.
        let utc = (3_600_000_000_i128 as u128) ^ (1 << 127);
        let key =
            [&utc.to_be_bytes()[..], &((-7200_i32).cast_unsigned() ^ (1 << 31)).to_be_bytes()];
        let known = [&10_800_000_000_i64.to_le_bytes()[..], &(-7200_i32).to_le_bytes()].concat();
        assert_eq!(zoned_time_of_key(&key.concat()), Some(known));
    }

    #[test]
    fn a_key_of_an_interval_leads_to_one_of_its_length() {
        let of = |length: i128| interval_of_key(&((length as u128) ^ (1 << 127)).to_be_bytes());
        let payload = |micros: i64, days: i32, months: i32| {
            let micros = micros.to_le_bytes();
            Some([&micros[..], &days.to_le_bytes(), &months.to_le_bytes()].concat())
        };
        assert_eq!(of(31 * 86_400_000_000 + 5), payload(5, 1, 1));
        assert_eq!(of(-1), payload(86_399_999_999, 29, -1));
        assert_eq!(of(i128::MAX), None);
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
