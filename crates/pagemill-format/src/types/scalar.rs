//! The table of scalar types: OID, name and writer.
//!
//! Invariant: sorted by OID, so that a type is found by bisection; a column's writer is looked up
//! once, not for each value. `money` is not here, as its writer needs a locale
//! ([`super::money::write_money`]); neither are types that need the catalogs.
//! Source of the OIDs: `src/include/catalog/pg_type.dat`, PostgreSQL 14 to 18.

use super::ScalarWriter;
use super::{bits, bytea, datetime, float, geometry, identifier, integer, interval};
use super::{network, numeric, text, xml};
use crate::ids::{Oid, PgVersion};

/// A built-in type whose values print without the help of any catalog.
#[derive(Debug)]
pub struct Scalar {
    /// The type's OID in `pg_type`.
    pub oid: Oid,
    /// The type's name in `pg_type`.
    pub name: &'static str,
    /// Appends a value's text.
    pub write: ScalarWriter,
    /// True when no value's text is empty, holds a byte that COPY's text format escapes (control
    /// characters, backslash), or one that CSV quotes (comma, quote, line break). So with the
    /// usual delimiters, tab and comma, it can be copied as it is.
    pub plain: bool,
}

/// The scalar type of this OID, as PostgreSQL 18 prints it.
pub fn scalar_by_oid(oid: Oid) -> Option<&'static Scalar> {
    let at = SCALARS.binary_search_by_key(&oid, |scalar| scalar.oid).ok()?;
    SCALARS.get(at)
}

/// The scalar type of this OID, as `version` prints it.
pub fn scalar_in(version: PgVersion, oid: Oid) -> Option<&'static Scalar> {
    let scalar = scalar_by_oid(oid)?;
    Some(match scalar.name {
        "char" if version < PgVersion::V15 => &CHAR_14,
        "interval" if version < PgVersion::V17 => &INTERVAL_BEFORE_17,
        _ => scalar,
    })
}

/// A type whose text needs no escaping and is never empty.
const fn plain(oid: u32, name: &'static str, write: ScalarWriter) -> Scalar {
    Scalar { oid: Oid(oid), name, write, plain: true }
}

/// A type whose text may need escaping, or be empty.
const fn escaped(oid: u32, name: &'static str, write: ScalarWriter) -> Scalar {
    Scalar { oid: Oid(oid), name, write, plain: false }
}

static CHAR_14: Scalar = escaped(18, "char", text::write_char_14);
static INTERVAL_BEFORE_17: Scalar = plain(1186, "interval", interval::write_interval_before_17);

static SCALARS: [Scalar; 50] = [
    plain(16, "bool", integer::write_bool),
    escaped(17, "bytea", bytea::write_bytea),
    escaped(18, "char", text::write_char),
    escaped(19, "name", text::write_name),
    plain(20, "int8", integer::write_int8),
    plain(21, "int2", integer::write_int2),
    escaped(22, "int2vector", identifier::write_int2vector),
    plain(23, "int4", integer::write_int4),
    escaped(25, "text", text::write_text),
    plain(26, "oid", identifier::write_oid),
    escaped(27, "tid", identifier::write_tid),
    plain(28, "xid", identifier::write_xid),
    plain(29, "cid", identifier::write_cid),
    escaped(30, "oidvector", identifier::write_oidvector),
    escaped(114, "json", text::write_text),
    escaped(142, "xml", xml::write_xml),
    escaped(194, "pg_node_tree", text::write_text),
    escaped(600, "point", geometry::write_point),
    escaped(601, "lseg", geometry::write_lseg),
    escaped(602, "path", geometry::write_path),
    escaped(603, "box", geometry::write_box),
    escaped(604, "polygon", geometry::write_polygon),
    escaped(628, "line", geometry::write_line),
    plain(650, "cidr", network::write_cidr),
    plain(700, "float4", float::write_float4),
    plain(701, "float8", float::write_float8),
    escaped(705, "unknown", text::write_cstring),
    escaped(718, "circle", geometry::write_circle),
    plain(774, "macaddr8", bytea::write_macaddr8),
    plain(829, "macaddr", bytea::write_macaddr),
    plain(869, "inet", network::write_inet),
    escaped(1042, "bpchar", text::write_text),
    escaped(1043, "varchar", text::write_text),
    plain(1082, "date", datetime::write_date),
    plain(1083, "time", datetime::write_time),
    plain(1114, "timestamp", datetime::write_timestamp),
    plain(1184, "timestamptz", datetime::write_timestamptz),
    plain(1186, "interval", interval::write_interval),
    plain(1266, "timetz", datetime::write_timetz),
    escaped(1560, "bit", bits::write_varbit),
    escaped(1562, "varbit", bits::write_varbit),
    plain(1700, "numeric", numeric::write_numeric),
    escaped(1790, "refcursor", text::write_text),
    escaped(2275, "cstring", text::write_cstring),
    escaped(2278, "void", text::write_void),
    plain(2950, "uuid", bytea::write_uuid),
    escaped(2970, "txid_snapshot", identifier::write_pg_snapshot),
    plain(3220, "pg_lsn", identifier::write_pg_lsn),
    escaped(5038, "pg_snapshot", identifier::write_pg_snapshot),
    plain(5069, "xid8", identifier::write_xid8),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_is_sorted_and_finds_every_type() {
        assert!(SCALARS.is_sorted_by(|a, b| a.oid < b.oid));
        for scalar in &SCALARS {
            assert_eq!(scalar_by_oid(scalar.oid).unwrap().name, scalar.name);
        }
        assert!(scalar_by_oid(Oid::INVALID).is_none());
        assert!(scalar_by_oid(super::super::money::MONEY_OID).is_none());
    }

    #[test]
    fn older_versions_print_two_types_differently() {
        let text = |version, oid, value: &[u8]| {
            let mut out = Vec::new();
            (scalar_in(version, Oid(oid)).unwrap().write)(value, &mut out).unwrap();
            out
        };
        assert_eq!(text(PgVersion::V14, 18, b"\xFF"), b"\xFF");
        assert_eq!(text(PgVersion::V15, 18, b"\xFF"), b"\\377");
        let forever = [[0xFF; 7].as_slice(), &[0x7F], &[0xFF; 3], &[0x7F], &[0xFF; 3], &[0x7F]];
        assert_eq!(text(PgVersion::V17, 1186, &forever.concat()), b"infinity");
        assert!(text(PgVersion::V16, 1186, &forever.concat()).starts_with(b"178956970 years"));
    }

    fn needs_care(byte: u8) -> bool {
        byte < b' ' || matches!(byte, b'\\' | b',' | b'"' | 0x7F..)
    }

    proptest! {
        /// Also the promise of `plain`: whatever a writer accepts, it prints plainly.
        #[test]
        fn arbitrary_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..80)) {
            for scalar in SCALARS.iter().chain([&CHAR_14, &INTERVAL_BEFORE_17]) {
                // Every length that may be the right one, and what is left after each.
                for length in [1, 2, 4, 6, 8, 12, 16, 18, 24, 32, 64, value.len()] {
                    let mut out = Vec::new();
                    let sound = (scalar.write)(&value[..length.min(value.len())], &mut out).is_ok();
                    if sound && scalar.plain {
                        prop_assert!(!out.is_empty() && !out.iter().any(|&b| needs_care(b)));
                    }
                }
            }
        }

        /// Small numbers in the first bytes get past the checks of headers and counts.
        #[test]
        fn plausible_bytes_never_panic(
            header in prop::collection::vec(0u8..4, 1..24),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let value = [header, rest].concat();
            for scalar in &SCALARS {
                let _ = (scalar.write)(&value, &mut Vec::new());
            }
        }
    }
}
