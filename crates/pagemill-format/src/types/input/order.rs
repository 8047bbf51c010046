//! The order of the types that a range may have as its bounds: the default B-tree order, on payloads.
//!
//! Source: the comparison functions named in `src/include/catalog/pg_amproc.dat`, in
//! `src/backend/utils/adt` (`int.c`, `int8.c`, `float.c`, `numeric.c`, `date.c`, `timestamp.c`,
//! `uuid.c`, `varlena.c`, `network.c`), PostgreSQL 14 to 18.

use std::cmp::Ordering;

use crate::ids::Oid;

/// How two payloads of a type compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Signed integers: int2, int4, int8, money, date, time, timestamp, timestamptz.
    Signed,
    /// Unsigned integers: oid, xid8, pg_lsn, bool, char.
    Unsigned,
    /// float4 and float8; NaN is the largest.
    Float,
    /// numeric; NaN is the largest.
    Numeric,
    /// interval, as its length with months of 30 days and days of 24 hours.
    Interval,
    /// Time of day with zone: the moment first, then the zone.
    TimeTz,
    /// Byte by byte, a shorter one first: bytea, uuid, macaddr8, text of collation C.
    Bytes,
}

impl Order {
    /// The order of a built-in type, where it is one of these. Those of texts (text, varchar, bpchar)
    /// are so ordered in collation C only, which is for the caller to know.
    pub fn of(oid: Oid) -> Option<Self> {
        Some(match oid.0 {
            20 | 21 | 23 | 790 | 1082 | 1083 | 1114 | 1184 => Self::Signed,
            16 | 18 | 26 | 3220 | 5069 => Self::Unsigned,
            700 | 701 => Self::Float,
            1700 => Self::Numeric,
            1186 => Self::Interval,
            1266 => Self::TimeTz,
            17 | 25 | 829 | 774 | 1043 | 2950 => Self::Bytes,
            _ => return None,
        })
    }

    /// Compares two payloads. Damaged ones compare somehow.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Signed => signed(a).cmp(&signed(b)),
            Self::Unsigned => unsigned(a).cmp(&unsigned(b)),
            Self::Float => compare_floats(float(a), float(b)),
            Self::Numeric => compare_numerics(a, b),
            Self::Interval => span(a).cmp(&span(b)),
            Self::TimeTz => moment(a).cmp(&moment(b)),
            Self::Bytes => a.cmp(b),
        }
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    (unsigned(bytes) << unused) as i64 >> unused
}

fn float(bytes: &[u8]) -> f64 {
    match bytes.len() {
        4 => f32::from_bits(unsigned(bytes) as u32).into(),
        _ => f64::from_bits(unsigned(bytes)),
    }
}

fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn part(bytes: &[u8], from: usize, len: usize) -> &[u8] {
    bytes.get(from..from + len).unwrap_or_default()
}

/// An interval's length in microseconds.
fn span(bytes: &[u8]) -> i128 {
    const DAY: i128 = 86_400_000_000;
    let (time, days) = (signed(part(bytes, 0, 8)), signed(part(bytes, 8, 4)));
    let months = signed(part(bytes, 12, 4));
    i128::from(time) + (i128::from(days) + 30 * i128::from(months)) * DAY
}

/// A timetz's moment in UTC, in microseconds, then its zone.
fn moment(bytes: &[u8]) -> (i64, i64) {
    let (time, zone) = (signed(part(bytes, 0, 8)), signed(part(bytes, 8, 4)));
    (time.saturating_add(zone.saturating_mul(1_000_000)), zone)
}

/// A numeric taken apart.
enum Number<'a> {
    NegativeInfinity,
    Finite { negative: bool, weight: i32, digits: &'a [u8] },
    Infinity,
    NaN,
}

impl<'a> Number<'a> {
    fn of(payload: &'a [u8]) -> Self {
        let header = unsigned(part(payload, 0, 2)) as u16;
        let (negative, weight, digits) = match header >> 14 {
            0b11 if header == 0xD000 => return Self::Infinity,
            0b11 if header == 0xF000 => return Self::NegativeInfinity,
            0b11 => return Self::NaN,
            // The weight's sign is bit 6 of a short header.
            0b10 => (header & 0x2000 != 0, i32::from((header << 9) as i16 >> 9), payload.get(2..)),
            _ => (header & 0x4000 != 0, signed(part(payload, 2, 2)) as i32, payload.get(4..)),
        };
        Self::Finite { negative, weight, digits: digits.unwrap_or_default() }
    }

    /// Where it lies among kinds of numbers: NaN is above infinity.
    fn rank(&self) -> u8 {
        match self {
            Self::NegativeInfinity => 0,
            Self::Finite { .. } => 1,
            Self::Infinity => 2,
            Self::NaN => 3,
        }
    }
}

fn compare_numerics(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (Number::of(a), Number::of(b));
    let (
        Number::Finite { negative: a_negative, weight: a_weight, digits: a_digits },
        Number::Finite { negative: b_negative, weight: b_weight, digits: b_digits },
    ) = (&a, &b)
    else {
        return a.rank().cmp(&b.rank());
    };
    // Zero has no digits and no sign.
    let sign = |negative: bool, digits: &[u8]| match (digits.is_empty(), negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let (a_sign, b_sign) = (sign(*a_negative, a_digits), sign(*b_negative, b_digits));
    let size = || a_weight.cmp(b_weight).then_with(|| compare_digits(a_digits, b_digits));
    match a_sign.cmp(&b_sign) {
        Ordering::Equal if a_sign > 0 => size(),
        Ordering::Equal if a_sign < 0 => size().reverse(),
        other => other,
    }
}

/// Compares digits of the same weight; none are stored behind the last that is not 0.
fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let digits = |bytes: &'_ [u8]| -> Vec<u64> { bytes.chunks(2).map(unsigned).collect() };
    digits(a).cmp(&digits(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numeric(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn numerics_go_from_minus_infinity_to_nan() {
        let ascending = [
            numeric(&[0xF000]),
            numeric(&[0xA001, 1, 2345]),
            numeric(&[0xA000, 2]),
            numeric(&[0xA0FF, 5000]),
            numeric(&[0x8000]),
            numeric(&[0x80FF, 5000]),
            numeric(&[0x8000, 1, 2000]),
            numeric(&[0x8000, 1, 2000, 1]),
            numeric(&[0x8001, 1]),
            numeric(&[0x0000, 2, 12]),
            numeric(&[0xD000]),
            numeric(&[0xC000]),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(Order::Numeric.compare(a, b), i.cmp(&j), "{i} {j}");
            }
        }
        let zeros = (numeric(&[0x8000]), numeric(&[0x8100]));
        assert_eq!(Order::Numeric.compare(&zeros.0, &zeros.1), Ordering::Equal);
    }

    #[test]
    fn a_day_is_24_hours_and_a_month_30_days() {
        let interval = |time: i64, days: i32, months: i32| {
            [&time.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat()
        };
        let compare = |a: &[u8], b: &[u8]| Order::Interval.compare(a, b);
        assert_eq!(compare(&interval(0, 30, 0), &interval(0, 0, 1)), Ordering::Equal);
        assert_eq!(compare(&interval(86_400_000_001, 0, 0), &interval(0, 1, 0)), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn numbers_compare_as_numbers(a: i32, b: i32, c: f64, d: f64) {
            let signed = Order::Signed.compare(&a.to_le_bytes(), &b.to_le_bytes());
            prop_assert_eq!(signed, a.cmp(&b));
            let unsigned = Order::Unsigned.compare(&a.to_le_bytes(), &b.to_le_bytes());
            prop_assert_eq!(unsigned, (a as u32).cmp(&(b as u32)));
            let floats = Order::Float.compare(&c.to_le_bytes(), &d.to_le_bytes());
            prop_assert_eq!(Some(floats), c.partial_cmp(&d));
        }

        #[test]
        fn damaged_payloads_never_panic(a: Vec<u8>, b: Vec<u8>) {
            for order in [
                Order::Signed, Order::Unsigned, Order::Float, Order::Numeric, Order::Interval,
                Order::TimeTz, Order::Bytes,
            ] {
                prop_assert_eq!(order.compare(&a, &a), Ordering::Equal);
                prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
            }
        }
    }
}
