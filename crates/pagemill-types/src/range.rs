//! Ranges and multiranges: `[1,5)`, `empty`, `{[1,2),[3,4)}`.
//!
//! ```text
//! range payload:      type OID | lower | upper | flags (last byte)
//! multirange payload: type OID | count | count-1 offsets or lengths | count flags | bounds…
//! ```
//!
//! Invariant: the ranges of a multirange follow each other, so every bound is printed at most once.
//!
//! Alignment counts from the length word that precedes the payload, 4 bytes earlier.
//! Source: `src/include/utils/rangetypes.h`, `range_out` in `src/backend/utils/adt/rangetypes.c`,
//! `multirange_get_range` in `src/backend/utils/adt/multirangetypes.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;
use pagemill_format::varlena::VARLENA_HEADER_BYTES;

use super::output::{ValueType, ValueWriter, is_space, quote_tail};

const RANGE: &str = "range";
const MULTIRANGE: &str = "multirange";

pub(super) const EMPTY: u8 = 0x01;
pub(super) const LOWER_INCLUSIVE: u8 = 0x02;
pub(super) const UPPER_INCLUSIVE: u8 = 0x04;
pub(super) const LOWER_INFINITE: u8 = 0x08;
pub(super) const UPPER_INFINITE: u8 = 0x10;
pub(super) const LOWER_NULL: u8 = 0x20;
pub(super) const UPPER_NULL: u8 = 0x40;

/// The top bit of a multirange item says that it is an offset from the first range's bounds;
/// without it, it is the length of the range before.
const ITEM_IS_OFFSET: u32 = 0x8000_0000;

/// A bound of a range: the bytes of its value as they lie there, and whether the range holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound<'v> {
    /// The value.
    pub value: &'v [u8],
    /// True for a bound that belongs to the range.
    pub inclusive: bool,
}

/// A range as it lies in its payload.
#[derive(Debug, Clone, Copy)]
pub struct RangeValue<'v> {
    /// The type of the bounds.
    pub subtype: &'v Arc<ValueType>,
    /// True when nothing is in it; it has no bounds then.
    pub is_empty: bool,
    /// The lower bound; `None` when there is none.
    pub lower: Option<Bound<'v>>,
    /// The upper bound; `None` when there is none.
    pub upper: Option<Bound<'v>>,
    flags: u8,
}

impl<'v> RangeValue<'v> {
    /// # Errors
    /// When the payload is too short, or a bound runs past its end.
    pub(super) fn parse(payload: &'v [u8], subtype: &'v Arc<ValueType>) -> Result<Self> {
        let Some((&flags, bounds)) = payload.get(4..).and_then(|rest| rest.split_last()) else {
            return Err(Error::corrupt(RANGE, 0, format!("{} bytes", payload.len())));
        };
        Ok(Self::of_bounds(subtype, flags, bounds)?.0)
    }

    /// The range of these flags whose bounds lie at the beginning of `bounds`, and how many bytes they take.
    fn of_bounds(
        subtype: &'v Arc<ValueType>,
        flags: u8,
        bounds: &'v [u8],
    ) -> Result<(Self, usize)> {
        let is_empty = flags & EMPTY != 0;
        let mut range = Self { subtype, is_empty, lower: None, upper: None, flags };
        let mut at = 0;
        let mut next = |infinite: u8, inclusive: u8| {
            if is_empty || flags & infinite != 0 {
                return Ok(None);
            }
            let (start, end) = subtype.layout.locate(bounds, at)?;
            at = end;
            Ok(Some(Bound { value: &bounds[start..end], inclusive: flags & inclusive != 0 }))
        };
        range.lower = next(LOWER_INFINITE | LOWER_NULL, LOWER_INCLUSIVE)?;
        range.upper = next(UPPER_INFINITE | UPPER_NULL, UPPER_INCLUSIVE)?;
        Ok((range, at))
    }

    /// What its last byte says of it: `RANGE_EMPTY` and its kin.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    fn write(&self, writer: &mut ValueWriter<'_>, out: &mut Vec<u8>) -> Result<()> {
        if self.is_empty {
            out.extend_from_slice(b"empty");
            return Ok(());
        }
        out.push(if self.flags & LOWER_INCLUSIVE != 0 { b'[' } else { b'(' });
        write_bound(writer, self.subtype, self.lower, out)?;
        out.push(b',');
        write_bound(writer, self.subtype, self.upper, out)?;
        out.push(if self.flags & UPPER_INCLUSIVE != 0 { b']' } else { b')' });
        Ok(())
    }
}

/// Appends a range over `element`.
pub(super) fn write_range(
    writer: &mut ValueWriter<'_>,
    element: &Arc<ValueType>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    RangeValue::parse(payload, element)?.write(writer, out)
}

fn write_bound(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    bound: Option<Bound<'_>>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some(Bound { value, .. }) = bound else { return Ok(()) };
    let text = out.len();
    writer.write(&element.output, element.layout.len, value, out)?;
    quote(out, text);
    Ok(())
}

fn quote(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let special =
        |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',') || is_space(*b);
    if text.is_empty() || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b));
    }
}

/// A multirange as it lies in its payload.
#[derive(Debug, Clone)]
pub struct MultirangeValue<'v> {
    subtype: &'v Arc<ValueType>,
    items: &'v [u8],
    flags: &'v [u8],
    bounds: &'v [u8],
}

impl<'v> MultirangeValue<'v> {
    /// # Errors
    /// When the payload is too short for its count.
    pub(super) fn parse(payload: &'v [u8], subtype: &'v Arc<ValueType>) -> Result<Self> {
        let mut r = Reader::new(MULTIRANGE, payload);
        r.u32()?;
        let count = r.u32()? as usize;
        if count == 0 {
            return Ok(Self { subtype, items: &[], flags: &[], bounds: &[] });
        }
        let items = r.bytes((count - 1).saturating_mul(4))?;
        let flags = r.bytes(count)?;
        let start = subtype.layout.align_up(r.pos() + VARLENA_HEADER_BYTES) - VARLENA_HEADER_BYTES;
        Ok(Self { subtype, items, flags, bounds: payload.get(start..).unwrap_or_default() })
    }

    /// How many ranges it has.
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// Its ranges in order. An error ends them.
    pub fn ranges(&self) -> impl Iterator<Item = Result<RangeValue<'v>>> + use<'v> {
        let Self { subtype, items, flags, bounds } = self.clone();
        let (mut offset, mut end) = (0usize, Some(0usize));
        flags.iter().enumerate().map_while(move |(i, &flags)| {
            let before = end.take()?;
            if i > 0 {
                offset = next_offset(offset, &items[(i - 1) * 4..]);
            }
            let Some(rest) = bounds.get(offset..).filter(|_| offset >= before) else {
                let inside = format!("{before}..{}", bounds.len());
                let what = format!("range {i} starts at {offset}, outside of {inside}");
                return Some(Err(Error::corrupt(MULTIRANGE, 8, what)));
            };
            Some(RangeValue::of_bounds(subtype, flags, rest).map(|(range, taken)| {
                end = Some(offset + taken);
                range
            }))
        })
    }
}

/// Appends a multirange over `element`.
pub(super) fn write_multirange(
    writer: &mut ValueWriter<'_>,
    element: &Arc<ValueType>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (i, range) in MultirangeValue::parse(payload, element)?.ranges().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        range?.write(writer, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Where the bounds of the range behind this one begin, among those of all.
pub(super) fn next_offset(offset: usize, item: &[u8]) -> usize {
    let item = item.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
    let value = (item & !ITEM_IS_OFFSET) as usize;
    if item & ITEM_IS_OFFSET != 0 { value } else { offset.saturating_add(value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::known_value_tests::{mutation, mutations, payload};
    use super::super::output::samples::text;

    /// Payloads and texts of a PostgreSQL 15 server; each begins with its type's OID.
    const RANGES: &[(&str, &str)] = &[
        ("400f0000010000000500000002", "[1,5)"),
        ("420f00000f8080010088130b0080020004", "(1.5,2]"),
        ("3b400000096120620b632c226402", r#"["a b","c,""d")"#),
        ("440f00000060c286073e0200ffffffffffffff7f02", r#"["2020-01-01 00:00:00",infinity)"#),
        ("400f000001", "empty"),
        ("420f000018", "(,)"),
        ("3b4000000308", r#"(,"")"#),
        ("440f00000060c286073e02000c", r#"(,"2020-01-01 00:00:00"]"#),
    ];

    /// As above; every fourth range is found by its offset, the others by the lengths before them.
    const MULTIRANGES: &[(&str, &str)] = &[
        ("6311000000000000", "{}"),
        (
            "\
             b411000007000000080000000c0000000c0000002c0000800c0000000c00000008060002040010000f\
             00810100c409000b008002000b0080030000000b008004000b0080050000000f8080060088130b0080\
             07000b008008000b0080090000000b00800a000b00800b0000000b00800c00000000",
            "{(,1.25),[2,3],(4,5),[6.5,7),(8,9],(10,11),(12,)}",
        ),
        (
            "\
             b5110000020000001000000002120000000000000060c286073e020000c099a41b3e020000a0ad30ca\
             5a0200",
            r#"{["2020-01-01 00:00:00","2020-01-02 00:00:00"),["2021-01-01 00:00:00",)}"#,
        ),
        (
            "\
             63110000070000000400000008000000080000001c0000800800000008000000080202020202120001\
             000000030000000400000005000000060000000700000008000000090000000a0000000b0000000c00\
             00000d000000",
            "{(,1),[3,4),[5,6),[7,8),[9,10),[11,12),[13,)}",
        ),
        ("b411000001000000060000000b008001000b008002000000", "{[1,2]}"),
        ("b51100000100000018000000", "{(,)}"),
        (
            "\
             631100000a000000080000000800000008000000200000800800000008000000080000004000008008\
             000000020202020202020202020000030000000400000005000000060000000700000008000000090000\
             000a0000000b0000000c0000000d0000000f0000001100000012000000140000001500000017000000\
             180000001a0000001b000000",
            "{[3,4),[5,6),[7,8),[9,10),[11,12),[13,15),[17,18),[20,21),[23,24),[26,27)}",
        ),
    ];

    /// The text of a payload, as that of the type it names.
    fn print(value: &str) -> String {
        let value = payload(value);
        let oid = u32::from_le_bytes(*value.first_chunk().unwrap());
        text(oid, &value).unwrap()
    }

    #[test]
    fn ranges_of_a_real_server_print_as_it_prints_them() {
        for (value, expected) in RANGES.iter().chain(MULTIRANGES) {
            assert_eq!(print(value), *expected);
        }
    }

    #[test]
    fn a_bound_that_is_cut_off_is_damage() {
        for value in ["400f0000010000000500000002", "420f00000f8080010088130b0080020004"] {
            let value = payload(value);
            let oid = u32::from_le_bytes(*value.first_chunk().unwrap());
            let mut cut = value[..value.len() - 3].to_vec();
            cut.push(2);
            assert!(text(oid, &cut).is_err());
            assert!(text(oid, &value[..4]).is_err());
        }
    }

    /// Offsets that led back made each range print the same bytes again: 30 of them a kilobyte
    /// each out of a value of one, and a compressed page of them more than a server's memory.
    #[test]
    fn ranges_that_share_their_bytes_are_damage() {
        let apart = "63110000020000000800000002020000\
                     01000000020000000300000004000000";
        assert_eq!(print(apart), "{[1,2),[3,4)}");
        for item in ["00000080", "00000000", "04000000", "04000080"] {
            let shared = payload(&apart.replacen("08000000", item, 1));
            let error = text(4451, &shared).unwrap_err().to_string();
            assert!(error.contains("range 1 starts at"), "{error}");
        }
    }

    #[test]
    fn a_count_of_ranges_past_the_value_is_damage() {
        for count in [3_u32, 1 << 20, u32::MAX] {
            let mut value = payload(MULTIRANGES[4].0);
            value[4..8].copy_from_slice(&count.to_le_bytes());
            assert!(text(4532, &value).is_err(), "{count}");
        }
    }

    proptest! {
        #[test]
        fn damaged_ranges_never_panic(change in mutation(RANGES.len())) {
            for value in mutations(RANGES, &change) {
                for oid in [3904, 3906, 3908] {
                    let _ = text(oid, &value);
                }
            }
        }

        #[test]
        fn damaged_multiranges_print_no_byte_twice(change in mutation(MULTIRANGES.len())) {
            for value in mutations(MULTIRANGES, &change) {
                let _ = (text(4451, &value), text(4532, &value));
                if let Ok(text) = text(4533, &value) {
                    prop_assert!(text.len() <= 100 * value.len() + 100);
                }
            }
        }
    }
}
