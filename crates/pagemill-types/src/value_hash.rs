//! The hash functions of types: those of the operator classes for hash indexes, which partitions by hash and filters of BRIN indexes have too.
//!
//! With the seed 0 the lower half of an extended hash is the hash of 32 bits, for every type here.
//!
//! Invariants: equal values hash alike however they are stored, as -0 and 0, 1.0 and 1.00, 1 day and 24 hours; bytes that are missing count as
//! zero. Texts hash as their bytes, which is so of deterministic collations only.
//!
//! Sources: `src/backend/access/hash/hashfunc.c`, `jsonb_hash_extended` in `src/backend/utils/adt/jsonb_op.c`, `hash_aclitem` in `acl.c`,
//! `hash_numeric` in `numeric.c`, `interval_hash` in `timestamp.c`, `timetz_hash` in `date.c`, `src/include/catalog/pg_amproc.dat`,
//! PostgreSQL 14 to 18.

use pagemill_format::ids::Oid;

use crate::builtin::{BuiltinType, oid};
use crate::jenkins_hash::hash_bytes;
use crate::order;

/// Bytes of an array's header without the length word, of one dimension.
const VECTOR_HEADER: usize = 20;

/// How payloads of a type are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueHash {
    /// Four bytes or fewer, taken as a signed number: int2, int4, date, bool, "char".
    Signed,
    /// Four bytes: oid, enums.
    Unsigned,
    /// Eight bytes, so that equal numbers of both widths agree: int8, timestamps, time, pg_lsn.
    Wide,
    /// All bytes: text, bytea, uuid, tid, addresses.
    Bytes,
    /// A text without the blanks at its end.
    Padded,
    /// The text of a name, without the zeros behind it.
    Name,
    /// Both widths as the wider one, with one zero and one NaN.
    Float,
    /// The digits and their weight, whatever sign and scale.
    Numeric,
    /// The time an interval is taken for, of 128 bits the lower 64.
    Interval,
    /// A time and its zone.
    TimeWithZone,
    /// Strings, numbers, booleans and NULLs of a `jsonb` one after the other, and the beginnings of its containers.
    Document,
    /// The numbers of an `oidvector`, without the array's header.
    Vector,
    /// An `aclitem`: its roles and its bits summed up.
    Grant,
}

impl ValueHash {
    /// How values of an operator class's input type are hashed, where it is known here.
    pub fn of_type(of: Oid) -> Option<Self> {
        if of == oid::ANYENUM {
            return Some(Self::Unsigned);
        }
        BuiltinType::by_oid(of)?.hash
    }

    /// The extended hash.
    pub fn hash(self, payload: &[u8], seed: u64) -> u64 {
        match self {
            Self::Signed => hash_bytes(&(signed(payload) as i32).to_le_bytes(), seed),
            Self::Unsigned | Self::Bytes => hash_bytes(payload, seed),
            Self::Wide => wide(signed(payload), seed),
            Self::Padded => hash_bytes(order::unpadded(payload), seed),
            Self::Name => hash_bytes(order::text(payload), seed),
            Self::Float => float(payload, seed),
            Self::Numeric => match order::numeric::significant(payload) {
                None => seed,
                Some((_, [])) => seed.wrapping_sub(1),
                Some((weight, digits)) => {
                    hash_bytes(digits.as_flattened(), seed) ^ i64::from(weight) as u64
                }
            },
            Self::Interval => wide(order::time::span(payload) as i64, seed),
            Self::TimeWithZone => {
                let (time, zone) = payload.split_at_checked(8).unwrap_or((payload, &[]));
                wide(signed(time), seed) ^ hash_bytes(&(signed(zone) as i32).to_le_bytes(), seed)
            }
            Self::Document => order::jsonb::hash(payload, seed),
            Self::Vector => hash_bytes(payload.get(VECTOR_HEADER..).unwrap_or_default(), seed),
            Self::Grant => match (grant(payload), seed) {
                (sum, 0) => u64::from(sum),
                (sum, seed) => hash_word(sum, seed),
            },
        }
    }

    /// The hash of 32 bits.
    pub fn short_hash(self, payload: &[u8]) -> u32 {
        self.hash(payload, 0) as u32
    }
}

/// The hash of a number of 32 bits, as those of arrays and ranges are combined with.
pub fn hash_word(word: u32, seed: u64) -> u64 {
    hash_bytes(&word.to_le_bytes(), seed)
}

/// Both halves moved to the left by a bit, each around itself.
pub fn rotated(hash: u64) -> u64 {
    let half = |half: u64| u64::from((half as u32).rotate_left(1));
    half(hash >> 32) << 32 | half(hash)
}

/// The sum of both roles and of the bits, of which there were 32 until version 15.
fn grant(payload: &[u8]) -> u32 {
    let words = payload.as_chunks::<4>().0.iter().take(3);
    words.fold(0, |sum, word| sum.wrapping_add(u32::from_le_bytes(*word)))
}

fn wide(value: i64, seed: u64) -> u64 {
    let high = (value >> 32) as u32;
    let folded = value as u32 ^ if value >= 0 { high } else { !high };
    hash_bytes(&folded.to_le_bytes(), seed)
}

fn float(payload: &[u8], seed: u64) -> u64 {
    let value = match (payload.first_chunk(), payload.first_chunk()) {
        (Some(wide), _) => f64::from_le_bytes(*wide),
        (None, Some(narrow)) => f64::from(f32::from_le_bytes(*narrow)),
        (None, None) => 0.0,
    };
    match value {
        0.0 => seed,
        // The bits that the C library has for it.
        value if value.is_nan() => hash_bytes(&0x7FF8_0000_0000_0000_u64.to_le_bytes(), seed),
        value => hash_bytes(&value.to_le_bytes(), seed),
    }
}

/// A number of up to eight bytes, with its sign.
fn signed(payload: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    let fill = if payload.last().is_some_and(|last| last & 0x80 != 0) { 0xFF } else { 0 };
    bytes.fill(fill);
    for (to, from) in bytes.iter_mut().zip(payload) {
        *to = *from;
    }
    i64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builtin::BuiltinType;
    use crate::known_value_tests::payload;

    /// Payloads and what the hash functions of version 18 have for them.
    #[rustfmt::skip]
    const KNOWN: &[(Oid, &str, u32)] = &[
        (oid::INT2, "9a00", 535567285),
        (oid::INT2, "ff7f", 1289782602),
        (oid::INT2, "0080", 193646934),
        (oid::INT2, "0000", 4022255791),
        (oid::INT4, "ee1c0600", 1778219103),
        (oid::INT4, "ffffff7f", 4198209043),
        (oid::INT4, "fbffffff", 1412886042),
        (oid::INT4, "00000000", 4022255791),
        (oid::INT8, "46cb8b7953e8ffff", 3215535480),
        (oid::INT8, "ffffffffffffff7f", 2770616247),
        (oid::INT8, "0000000000000080", 4198209043),
        (oid::INT8, "0000000000000000", 4022255791),
        (oid::OID, "4e6d9010", 2642712580),
        (oid::OID, "fc03c5c6", 1736252028),
        (oid::OID, "ffffffff", 385747274),
        (oid::OID, "00000000", 4022255791),
        (oid::TID, "0000a7041700", 1885868141),
        (oid::TID, "0000d437b500", 3344659071),
        (oid::TID, "ffffffff0100", 731201911),
        (oid::TID, "000000000000", 874415716),
        (oid::FLOAT4, "b7edb8c3", 1945095024),
        (oid::FLOAT4, "25494c43", 1093863761),
        (oid::FLOAT4, "00007c43", 760524871),
        (oid::FLOAT4, "0000c07f", 3019202456),
        (oid::FLOAT4, "00000000", 0),
        (oid::FLOAT4, "00000080", 0),
        (oid::FLOAT4, "0000807f", 2161740994),
        (oid::FLOAT4, "000080ff", 2917286640),
        (oid::FLOAT8, "dbb66ddbb61d77c0", 500666806),
        (oid::FLOAT8, "9224499224896940", 947196546),
        (oid::FLOAT8, "0000000000806f40", 760524871),
        (oid::FLOAT8, "000000000000f87f", 3019202456),
        (oid::FLOAT8, "0000000000000000", 0),
        (oid::FLOAT8, "0000000000000080", 0),
        (oid::FLOAT8, "000000000000f07f", 2161740994),
        (oid::FLOAT8, "9c7500883ce4377e", 318710814),
        (oid::NUMERIC, "00a171019821", 2793135426),
        (oid::NUMERIC, "00c0", 0),
        (oid::NUMERIC, "0080", 4294967295),
        (oid::NUMERIC, "0081", 4294967295),
        (oid::NUMERIC, "0a800100", 1324868418),
        (oid::NUMERIC, "7baa0100", 2970098867),
        (oid::NUMERIC, "80806400", 1186574835),
        (oid::NUMERIC, "00806400", 1186574835),
        (oid::DATE, "a3010000", 3502428429),
        (oid::DATE, "40110000", 4116168980),
        (oid::DATE, "ba120000", 655137114),
        (oid::DATE, "0fffffff", 1348555524),
        (oid::TIME, "c04dee3401000000", 288640199),
        (oid::TIME, "000734700e000000", 308939730),
        (oid::TIME, "0060d71d14000000", 2240986636),
        (oid::TIME, "0000000000000000", 4022255791),
        (oid::TIMETZ, "c04dee3401000000e0e3ffff", 169660557),
        (oid::TIMETZ, "000734700e000000e0e3ffff", 155359128),
        (oid::TIMETZ, "0060d71d1400000000000000", 1781300899),
        (oid::TIMETZ, "00b0eb0e0a000000e0e3ffff", 3936216884),
        (oid::TIMESTAMP, "001237700f1e0000", 2409754918),
        (oid::TIMESTAMP, "c05938d05b2c0000", 2774490848),
        (oid::TIMESTAMP, "ffffffffffffff7f", 2770616247),
        (oid::TIMESTAMP, "0000000000000080", 4198209043),
        (oid::TIMESTAMPTZ, "001237700f1e0000", 2409754918),
        (oid::TIMESTAMPTZ, "c05938d05b2c0000", 2774490848),
        (oid::TIMESTAMPTZ, "ffffffffffffff7f", 2770616247),
        (oid::TIMESTAMPTZ, "00d3deee5d1f0000", 3002422411),
        (oid::INTERVAL, "0054f5c24c0100000000000000000000", 1278940691),
        (oid::INTERVAL, "00000000000000000000000001000000", 1574789525),
        (oid::INTERVAL, "00403d7f5b0200000000000000000000", 1574789525),
        (oid::INTERVAL, "0000000000000000ffffffff00000000", 3202265686),
        (oid::INET, "0380fe80000000000000000000000000018d", 392842237),
        (oid::INET, "038000000000000000000000000000000001", 1984372031),
        (oid::INET, "02080a000000", 853331015),
        (oid::INET, "0220c0a80105", 685513216),
        (oid::MACADDR, "08002b000146", 1381095485),
        (oid::MACADDR, "08002b001189", 3186583271),
        (oid::MACADDR, "08002b0012c4", 2957974419),
        (oid::MACADDR, "ffffffffffff", 2844849121),
        (oid::MACADDR8, "08002b0000000146", 2223208309),
        (oid::MACADDR8, "08002b0000001189", 2689691186),
        (oid::MACADDR8, "08002b00000012c4", 2202147946),
        (oid::MACADDR8, "ffffffffffffffff", 68015284),
        (oid::UUID, "0000018d32ad89a89a71ccd8d7d3e368", 874691375),
        (oid::UUID, "0000110f9db52bfb2e693684d984fd3a", 1646443841),
        (oid::UUID, "0000129cc90c2bd8dceca21ff95d3dfc", 375831612),
        (oid::UUID, "ffffffffffffffffffffffffffffffff", 3612584041),
        (oid::PG_LSN, "aebfa91700000000", 941101498),
        (oid::PG_LSN, "7ce0f41b01000000", 3775078909),
        (oid::PG_LSN, "ffffffffffffffff", 385747274),
        (oid::PG_LSN, "0000000000000000", 4022255791),
        (oid::TEXT, "763339377878", 2435039309),
        (oid::TEXT, "", 2817148525),
        (oid::TEXT, "76", 1958739540),
        (oid::TEXT, "7a7a", 3823458899),
        (oid::BPCHAR, "7633393720202020202020202020202020202020", 1386098633),
        (oid::BPCHAR, "7631372020", 3182992414),
        (oid::BPCHAR, "763137", 3182992414),
        (oid::BPCHAR, "763138", 3890201204),
        (oid::BYTEA, "", 2817148525),
        (oid::BYTEA, "00", 3232439397),
        (oid::CHAR, "42", 626080936),
        (oid::CHAR, "50", 1697083914),
        (oid::CHAR, "61", 463612535),
        (oid::CHAR, "5a", 1737842378),
        (oid::NAME, "6e6d333937797979797979797979797979797979797979797979790000", 105633968),
        (oid::NAME, "6e6d343736347979797979797979797979797979797979797979797979797979797979790000", 2879439036),
        (oid::NAME, "0000", 2817148525),
        (oid::NAME, "6e6d310000", 2326390341),
    ];

    #[test]
    fn values_hash_as_the_server_hashes_them() {
        for (of, value, known) in KNOWN {
            let hash = ValueHash::of_type(*of).unwrap();
            assert_eq!(hash.short_hash(&payload(value)), *known, "{value} of type {}", of.0);
        }
    }

    /// Payloads, a seed, and what the hash functions of version 18 have for them without and with it.
    #[rustfmt::skip]
    const WITH_SEEDS: &[(ValueHash, &str, i64, i32, i64)] = &[
        (ValueHash::Document, "01000050100000904000000000a82000050d050d050d050d", -97, -2041532038, -154337837221758111),
        (ValueHash::Document, "010000501000009040000000008843000a1a0a1a0a1a0b1a", 203, -1656340591, 96150680425952372),
        (ValueHash::Document, "01000050200000806532633062653234353630643738633565353939633261396339643062626432", 203, 892913706, -1560317579183112038),
        (ValueHash::Vector, "01000000000000001a0000000300000000000000010000000200000003000000", 5, 1738594973, 3838597495460434142),
        (ValueHash::Grant, "000000000a0000000200000000000000", 7, 12, -1866268924130885444),
    ];

    #[test]
    fn values_hash_as_the_server_hashes_them_with_a_seed() {
        for (hash, value, seed, short, long) in WITH_SEEDS {
            let value = payload(value);
            assert_eq!(hash.short_hash(&value) as i32, *short, "{hash:?}");
            assert_eq!(hash.hash(&value, *seed as u64) as i64, *long, "{hash:?}");
        }
    }

    #[test]
    fn equal_values_hash_alike_however_they_are_stored() {
        let hash = |hash: ValueHash, value: &str| hash.hash(&payload(value), 7);
        let float = |value| hash(ValueHash::Float, value);
        assert_eq!(float("0000803f"), float("000000000000f03f"));
        assert_eq!(float("00000080"), float("0000000000000000"));
        assert_eq!(float("0000c07f"), float("000000000000f8ff"));
        let numeric = |value| hash(ValueHash::Numeric, value);
        // 1 and 1.00, with the short and the long header.
        assert_eq!(numeric("00800100"), numeric("008101000000"));
        assert_eq!(numeric("00800100"), numeric("000000000100"));
        let interval = |value| hash(ValueHash::Interval, value);
        assert_eq!(
            interval("00000000000000001e00000000000000"),
            interval("00000000000000000000000001000000"),
        );
    }

    proptest! {
        #[test]
        fn any_bytes_have_some_hash(value: Vec<u8>, seed: u64) {
            for hash in BuiltinType::all().iter().filter_map(|found| found.hash) {
                hash.hash(&value, seed);
            }
        }
    }
}
