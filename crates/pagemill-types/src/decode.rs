//! From a payload to a [`Value`]: the counterpart of printing.
//!
//! What a type's values are is found once per column ([`Decode`], [`TypeOutput`]); decoding a value is then one match.
//! Invariant: any bytes give a value or an error; a value of fixed length that has another length is an error.

use std::net::IpAddr;

use pagemill_format::error::{Error, Result};
use pagemill_format::ids::{BlockNumber, Oid, Tid};
use pagemill_format::tuple::{TupleData, TupleLayout};
use pagemill_format::varlena::Varlena;

use super::array::ArrayValue;
use super::numeric::Numeric;
use super::output::{Lookups, TypeOutput, ValueType, detoast};
use super::payload::fixed;
use super::range::{MultirangeValue, RangeValue};
use super::value::{CompositeValue, Date, Interval, Timestamp, Value};
use super::{bits, network};

/// What the values of a built-in type are. Of a type made of others its [`TypeOutput`] says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named as the variant of Value it gives")]
pub enum Decode {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Money,
    Oid,
    Unsigned8,
    Tid,
    Char,
    /// 64 bytes, of which those before the first zero count.
    Name,
    Text,
    /// A string that ends with a zero.
    CString,
    Bytes,
    Date,
    Time,
    TimeTz,
    Timestamp,
    Interval,
    Uuid,
    Inet,
    MacAddr,
    MacAddr8,
    Bits,
    Point,
    Jsonb,
    /// int2vector and oidvector: arrays without NULLs.
    Vector,
    /// hstore, whose pairs [`extension::hstore`](super::extension::hstore) tells.
    Hstore,
    /// pgvector's vector, of [`extension::vector`](super::extension::vector).
    Vector32,
    /// PostGIS's geometry and geography, of [`extension::geometry`](super::extension::geometry).
    Geometry,
    /// Printed only.
    Other,
}

/// The payload of a value given as it lies in a tuple: its bytes without varlena header or terminating zero. What is
/// compressed or stored in a TOAST table is put into `buffer`, which is overwritten.
///
/// # Errors
/// When the value is damaged, or its chunks are not all there.
pub fn payload<'v>(
    lookups: &mut dyn Lookups,
    len: i16,
    raw: &'v [u8],
    buffer: &'v mut Vec<u8>,
) -> Result<&'v [u8]> {
    match len {
        -1 => match Varlena::parse(raw)? {
            Varlena::Plain(payload) => Ok(payload),
            _ => {
                buffer.clear();
                detoast(lookups, raw, buffer)?;
                Ok(buffer)
            }
        },
        -2 => Ok(raw.strip_suffix(&[0]).unwrap_or(raw)),
        _ => Ok(raw),
    }
}

/// The value that a payload of this type is.
///
/// # Errors
/// When the payload cannot be one of the type.
#[inline]
pub fn decode<'v>(value_type: &'v ValueType, payload: &'v [u8]) -> Result<Value<'v>> {
    match &value_type.output {
        TypeOutput::Enum(labels) => {
            let oid = Oid(u32::from_le_bytes(fixed("enum", payload)?));
            let label = labels.get(&oid).ok_or_else(|| {
                Error::corrupt("enum", 0, format!("no label has the OID {oid} in pg_enum"))
            })?;
            Ok(Value::Text(label))
        }
        TypeOutput::Array(element) => Ok(Value::Array(ArrayValue::parse(payload, Some(element))?)),
        TypeOutput::AnyArray => Ok(Value::Array(ArrayValue::parse(payload, None)?)),
        TypeOutput::Range(subtype) => Ok(Value::Range(RangeValue::parse(payload, subtype)?)),
        TypeOutput::Multirange(subtype) => {
            Ok(Value::Multirange(MultirangeValue::parse(payload, subtype)?))
        }
        TypeOutput::Composite(attributes) => {
            let (_, _, tuple) = TupleData::parse_composite(payload)?;
            let layout = TupleLayout::new(attributes.iter().map(|a| a.layout).collect());
            let mut spans = Vec::new();
            layout.spans(&tuple, attributes.len(), &mut spans)?;
            Ok(Value::Composite(CompositeValue { attributes, data: tuple.data, spans }))
        }
        _ => scalar(value_type.decode, payload),
    }
}

/// The value that a payload of a built-in type is.
///
/// # Errors
/// When the payload cannot be one of the type.
#[inline]
pub fn scalar(decode: Decode, payload: &[u8]) -> Result<Value<'_>> {
    Ok(match decode {
        Decode::Bool => Value::Bool(fixed::<1>("bool", payload)? != [0]),
        Decode::Int2 => Value::Int2(i16::from_le_bytes(fixed("int2", payload)?)),
        Decode::Int4 => Value::Int4(i32::from_le_bytes(fixed("int4", payload)?)),
        Decode::Int8 => Value::Int8(i64::from_le_bytes(fixed("int8", payload)?)),
        Decode::Float4 => Value::Float4(f32::from_le_bytes(fixed("float4", payload)?)),
        Decode::Float8 => Value::Float8(f64::from_le_bytes(fixed("float8", payload)?)),
        Decode::Numeric => Value::Numeric(Numeric::parse(payload)?),
        Decode::Text => Value::Text(payload),
        Decode::Bytes => Value::Bytes(payload),
        Decode::Jsonb => Value::Jsonb(payload),
        Decode::Other => Value::Other(payload),
        Decode::Date => Value::Date(Date(i32::from_le_bytes(fixed("date", payload)?))),
        Decode::Timestamp => {
            Value::Timestamp(Timestamp(i64::from_le_bytes(fixed("timestamp", payload)?)))
        }
        rarer => return rarer_scalar(rarer, payload),
    })
}

fn rarer_scalar(decode: Decode, payload: &[u8]) -> Result<Value<'_>> {
    Ok(match decode {
        Decode::Money => Value::Money(i64::from_le_bytes(fixed("money", payload)?)),
        Decode::Oid => Value::Oid(Oid(u32::from_le_bytes(fixed("oid", payload)?))),
        Decode::Unsigned8 => Value::Unsigned8(u64::from_le_bytes(fixed("xid8", payload)?)),
        Decode::Tid => Value::Tid(tid(payload)?),
        Decode::Char => Value::Char(fixed::<1>("char", payload)?[0]),
        Decode::Name => {
            fixed::<64>("name", payload)?;
            Value::Text(before_zero(payload))
        }
        Decode::CString => Value::Text(before_zero(payload)),
        Decode::Time => Value::Time(i64::from_le_bytes(fixed("time", payload)?)),
        Decode::TimeTz => {
            let [t @ .., a, b, c, d] = fixed::<12>("timetz", payload)?;
            Value::TimeTz { micros: i64::from_le_bytes(t), zone: i32::from_le_bytes([a, b, c, d]) }
        }
        Decode::Interval => Value::Interval(interval(payload)?),
        Decode::Uuid => Value::Uuid(fixed("uuid", payload)?),
        Decode::Inet => {
            let (address, bits): (IpAddr, u8) = network::parse(payload)?;
            Value::Inet { address, bits }
        }
        Decode::MacAddr => Value::MacAddr(fixed("macaddr", payload)?),
        Decode::MacAddr8 => Value::MacAddr8(fixed("macaddr8", payload)?),
        Decode::Bits => {
            let (count, bytes) = bits::parse(payload)?;
            Value::Bits { count, bytes }
        }
        Decode::Point => {
            let [x @ .., a, b, c, d, e, f, g, h] = fixed::<16>("point", payload)?;
            let y = [a, b, c, d, e, f, g, h];
            Value::Point { x: f64::from_le_bytes(x), y: f64::from_le_bytes(y) }
        }
        Decode::Vector => Value::Array(ArrayValue::parse(payload, None)?),
        _ => Value::Other(payload),
    })
}

fn before_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn tid(payload: &[u8]) -> Result<Tid> {
    let [a, b, c, d, e, f] = fixed::<6>("tid", payload)?;
    let (high, low) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let block = BlockNumber(u32::from(high) << 16 | u32::from(low));
    Ok(Tid { block, line_pointer: u16::from_le_bytes([e, f]) })
}

fn interval(payload: &[u8]) -> Result<Interval> {
    let [micros @ .., a, b, c, d, e, f, g, h] = fixed::<16>("interval", payload)?;
    Ok(Interval {
        micros: i64::from_le_bytes(micros),
        days: i32::from_le_bytes([a, b, c, d]),
        months: i32::from_le_bytes([e, f, g, h]),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::builtin::BuiltinType;
    use super::super::known_value_tests::payload as hex;
    use super::super::output::samples;
    use super::*;

    fn int4_elements(array: &ArrayValue<'_>) -> Vec<Option<i32>> {
        let element = samples::find(23).unwrap();
        let number = |raw: &[u8]| i32::from_le_bytes(raw.try_into().unwrap());
        array.elements(element.layout).map(|one| one.unwrap().map(number)).collect()
    }

    #[test]
    fn values_of_a_real_server_are_numbers_and_slices() {
        let numeric = |bytes: &str| match scalar(Decode::Numeric, &hex(bytes)).unwrap() {
            Value::Numeric(found) => (found.scaled(0), found.scaled(2)),
            other => panic!("{other:?}"),
        };
        // 1.5, 2, 1.25 and 5000.
        assert_eq!(numeric("80800100 8813".replace(' ', "").as_str()), (None, Some(150)));
        assert_eq!(numeric("00800200"), (Some(2), Some(200)));
        assert_eq!(numeric("00810100c409"), (None, Some(125)));
        assert_eq!(numeric("00808813"), (Some(5000), Some(500_000)));
        let interval = [7i64.to_le_bytes().to_vec(), [2i32, 1].map(i32::to_le_bytes).concat()];
        let Value::Interval(found) = scalar(Decode::Interval, &interval.concat()).unwrap() else {
            panic!("no interval")
        };
        assert_eq!(found, Interval { months: 1, days: 2, micros: 7 });
        assert_eq!(Date(0).unix_days(), Some(10_957));
        assert_eq!(Date::INFINITY.unix_days(), None);
        assert_eq!(Timestamp(0).unix_micros(), Some(946_684_800_000_000));
    }

    #[test]
    fn arrays_rows_and_ranges_are_taken_apart() {
        let int4s = samples::find(1007).unwrap();
        let bytes = hex("0100000020000000170000000300000001000000050000000000000001000000fdffffff");
        let Value::Array(array) = decode(&int4s, &bytes).unwrap() else { panic!("no array") };
        assert_eq!(int4_elements(&array), [Some(1), None, Some(-3)]);
        assert_eq!((array.len(), array.dimensions()[0].lower), (3, 1));
        let ranges = samples::find(3904).unwrap();
        let bytes = hex("400f0000010000000500000002");
        let Value::Range(range) = decode(&ranges, &bytes).unwrap() else { panic!("no range") };
        let (lower, upper) = (range.lower.unwrap(), range.upper.unwrap());
        assert_eq!((lower.value, lower.inclusive), (1i32.to_le_bytes().as_slice(), true));
        assert_eq!((upper.value, upper.inclusive), (5i32.to_le_bytes().as_slice(), false));
        let pair = samples::find(samples::PAIR).unwrap();
        let bytes = hex("005557012d40000000000000fcff0400030c1806080000000000000003");
        let Value::Composite(row) = decode(&pair, &bytes).unwrap() else { panic!("no row") };
        let values: Vec<_> = row.attributes().map(|(_, value)| value).collect();
        assert_eq!(values, [None, Some([3].as_slice()), None, None]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_value_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..100), small in prop::collection::vec(0u8..4, 0..40),
        ) {
            for payload in [&bytes, &[small, bytes.clone()].concat()] {
                for one in BuiltinType::all() {
                    for length in [1, 2, 4, 6, 8, 12, 16, 64, payload.len()] {
                        let _ = scalar(one.decode, &payload[..length.min(payload.len())]);
                    }
                }
                for found in samples::ALL.into_iter().filter_map(samples::find) {
                    match decode(&found, payload) {
                        Ok(Value::Array(array)) => {
                            let element = array.element_type().map_or(found.layout, |e| e.layout);
                            array.elements(element).take(1000).for_each(drop);
                        }
                        Ok(Value::Multirange(ranges)) => ranges.ranges().for_each(drop),
                        Ok(Value::Composite(row)) => row.attributes().for_each(drop),
                        _ => {}
                    }
                }
            }
        }

        #[test]
        fn a_numeric_scaled_is_the_number_that_is_printed(whole in any::<i32>(), cents in 0u8..100) {
            let text = format!("{whole}.{cents:02}");
            let mut payload = Vec::new();
            super::super::input::numeric::read_numeric(text.as_bytes(), -1, &mut payload).unwrap();
            let sign = if whole < 0 { -1 } else { 1 };
            let expected = i128::from(whole) * 100 + i128::from(sign * i32::from(cents));
            prop_assert_eq!(Numeric::parse(&payload).unwrap().scaled(2), Some(expected));
        }

        #[test]
        fn a_numeric_scaled_is_its_text_without_the_point(
            whole in "[1-9][0-9]{0,27}", places in "[0-9]{0,10}", scale in 0usize..12,
        ) {
            let mut payload = Vec::new();
            let text = format!("{whole}.{places}");
            super::super::input::numeric::read_numeric(text.as_bytes(), -1, &mut payload).unwrap();
            let kept = places.trim_end_matches('0');
            let expected = (kept.len() <= scale)
                .then(|| format!("{whole}{kept:0<scale$}").parse::<i128>().ok())
                .flatten();
            prop_assert_eq!(Numeric::parse(&payload).unwrap().scaled(scale as u32), expected);
        }
    }
}
