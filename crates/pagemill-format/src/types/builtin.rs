//! The table of built-in types: how each is named, how its values lie in a tuple, how they are printed and decoded.
//!
//! Invariants: sorted by OID, so that a type is found by bisection; a column's type is looked up once, not for each
//! value. Where versions differ, the table has what PostgreSQL 18 does, and [`BuiltinType::print_in`] and
//! [`BuiltinType::sql_name`] what the others do.
//!
//! Source: `src/include/catalog/pg_type.dat` and, for the spellings of SQL, `format_type_extended` in
//! `src/backend/utils/adt/format_type.c`, PostgreSQL 14 to 18.

use super::decode::Decode;
use super::output::NameKind;
use super::{ScalarWriter, brin, jsonb, jsonpath, statistics, tsquery, tsvector};
use super::{bits, bytea, datetime, float, geometry, identifier, integer, interval};
use super::{network, numeric, text, xml};
use crate::ids::{Oid, PgVersion};

/// A built-in type with values of its own; not an array, range or composite type, which are made of others.
#[derive(Debug)]
pub struct BuiltinType {
    /// The type's OID in `pg_type`.
    pub oid: Oid,
    /// `typname`.
    pub name: &'static str,
    /// `typlen`: bytes of a value, -1 for a varlena, -2 for a string that ends with a zero.
    pub len: i16,
    /// `typalign`: `c`, `s`, `i` or `d`.
    pub align: u8,
    print: Print,
    /// What a value is, apart from its text.
    pub decode: Decode,
}

/// How values of a built-in type are printed.
#[derive(Debug, Clone, Copy)]
pub enum Print {
    /// The payload is the text.
    Verbatim,
    /// By a function of the payload alone.
    Scalar {
        /// Appends a value's text.
        write: ScalarWriter,
        /// True when no value's text is empty, holds a byte that COPY's text format escapes (control
        /// characters, backslash), or one that CSV quotes (comma, quote, line break). So with the
        /// usual delimiters, tab and comma, it can be copied as it is.
        plain: bool,
    },
    /// As the name of the object with this OID.
    Name(NameKind),
    /// As an amount in the currency of a locale.
    Money,
    /// As an access privilege, with the names of roles.
    AclItem,
    /// As an array that names its element type itself.
    AnyArray,
    /// As a BRIN summary whose bounds are values of a type it names.
    MinMaxSummary,
}

impl Print {
    /// The function that prints a payload, where nothing else is needed.
    pub fn writer(self) -> Option<ScalarWriter> {
        match self {
            Self::Verbatim => Some(text::write_text),
            Self::Scalar { write, .. } => Some(write),
            _ => None,
        }
    }
}

impl BuiltinType {
    /// The built-in type of this OID.
    pub fn by_oid(oid: Oid) -> Option<&'static Self> {
        let at = BUILTIN_TYPES.binary_search_by_key(&oid, |found| found.oid).ok()?;
        BUILTIN_TYPES.get(at)
    }

    /// All of them, by ascending OID.
    pub fn all() -> &'static [Self] {
        &BUILTIN_TYPES
    }

    /// How this version prints it.
    pub fn print_in(&self, version: PgVersion) -> Print {
        match self.name {
            "char" if version < PgVersion::V15 => escaped(text::write_char_14),
            "interval" if version < PgVersion::V17 => plain(interval::write_interval_before_17),
            "gtsvector" if version < PgVersion::V17 => escaped(tsvector::write_gtsvector_before_17),
            "jsonpath" if version < PgVersion::V15 => escaped(jsonpath::write_jsonpath_before_15),
            _ => self.print,
        }
    }

    /// The spelling that the grammar of SQL reserves for the type, which is never qualified. `None` for a type
    /// that goes by its name in `pg_type`.
    pub fn sql_name(&self, version: PgVersion) -> Option<&'static str> {
        Some(match self.name {
            "bool" => "boolean",
            "int8" => "bigint",
            "int2" => "smallint",
            "int4" => "integer",
            // From 17 on `json` is a key word, and the type's name one that the grammar reserves.
            "json" if version >= PgVersion::V17 => "json",
            "float4" => "real",
            "float8" => "double precision",
            "bpchar" => "character",
            "varchar" => "character varying",
            "time" => "time without time zone",
            "timestamp" => "timestamp without time zone",
            "timestamptz" => "timestamp with time zone",
            "interval" => "interval",
            "timetz" => "time with time zone",
            "bit" => "bit",
            "varbit" => "bit varying",
            "numeric" => "numeric",
            _ => return None,
        })
    }
}

/// Text that needs no escaping and is never empty.
const fn plain(write: ScalarWriter) -> Print {
    Print::Scalar { write, plain: true }
}

/// Text that may need escaping, or be empty.
const fn escaped(write: ScalarWriter) -> Print {
    Print::Scalar { write, plain: false }
}

const fn row(
    oid: u32,
    name: &'static str,
    len: i16,
    align: u8,
    print: Print,
    decode: Decode,
) -> BuiltinType {
    BuiltinType { oid: Oid(oid), name, len, align, print, decode }
}

#[rustfmt::skip]
static BUILTIN_TYPES: [BuiltinType; 74] = [
    row(16, "bool", 1, b'c', plain(integer::write_bool), Decode::Bool),
    row(17, "bytea", -1, b'i', escaped(bytea::write_bytea), Decode::Bytes),
    row(18, "char", 1, b'c', escaped(text::write_char), Decode::Char),
    row(19, "name", 64, b'c', escaped(text::write_name), Decode::Name),
    row(20, "int8", 8, b'd', plain(integer::write_int8), Decode::Int8),
    row(21, "int2", 2, b's', plain(integer::write_int2), Decode::Int2),
    row(22, "int2vector", -1, b'i', escaped(identifier::write_int2vector), Decode::Vector),
    row(23, "int4", 4, b'i', plain(integer::write_int4), Decode::Int4),
    row(24, "regproc", 4, b'i', Print::Name(NameKind::Proc), Decode::Oid),
    row(25, "text", -1, b'i', Print::Verbatim, Decode::Text),
    row(26, "oid", 4, b'i', plain(identifier::write_oid), Decode::Oid),
    row(27, "tid", 6, b's', escaped(identifier::write_tid), Decode::Tid),
    row(28, "xid", 4, b'i', plain(identifier::write_xid), Decode::Oid),
    row(29, "cid", 4, b'i', plain(identifier::write_cid), Decode::Oid),
    row(30, "oidvector", -1, b'i', escaped(identifier::write_oidvector), Decode::Vector),
    row(114, "json", -1, b'i', Print::Verbatim, Decode::Text),
    row(142, "xml", -1, b'i', escaped(xml::write_xml), Decode::Text),
    row(194, "pg_node_tree", -1, b'i', Print::Verbatim, Decode::Text),
    row(600, "point", 16, b'd', escaped(geometry::write_point), Decode::Point),
    row(601, "lseg", 32, b'd', escaped(geometry::write_lseg), Decode::Other),
    row(602, "path", -1, b'd', escaped(geometry::write_path), Decode::Other),
    row(603, "box", 32, b'd', escaped(geometry::write_box), Decode::Other),
    row(604, "polygon", -1, b'd', escaped(geometry::write_polygon), Decode::Other),
    row(628, "line", 24, b'd', escaped(geometry::write_line), Decode::Other),
    row(650, "cidr", -1, b'i', plain(network::write_cidr), Decode::Inet),
    row(700, "float4", 4, b'i', plain(float::write_float4), Decode::Float4),
    row(701, "float8", 8, b'd', plain(float::write_float8), Decode::Float8),
    row(705, "unknown", -2, b'c', escaped(text::write_cstring), Decode::CString),
    row(718, "circle", 24, b'd', escaped(geometry::write_circle), Decode::Other),
    row(774, "macaddr8", 8, b'i', plain(bytea::write_macaddr8), Decode::MacAddr8),
    row(790, "money", 8, b'd', Print::Money, Decode::Money),
    row(829, "macaddr", 6, b'i', plain(bytea::write_macaddr), Decode::MacAddr),
    row(869, "inet", -1, b'i', plain(network::write_inet), Decode::Inet),
    row(1033, "aclitem", 12, b'i', Print::AclItem, Decode::Other),
    row(1042, "bpchar", -1, b'i', Print::Verbatim, Decode::Text),
    row(1043, "varchar", -1, b'i', Print::Verbatim, Decode::Text),
    row(1082, "date", 4, b'i', plain(datetime::write_date), Decode::Date),
    row(1083, "time", 8, b'd', plain(datetime::write_time), Decode::Time),
    row(1114, "timestamp", 8, b'd', plain(datetime::write_timestamp), Decode::Timestamp),
    row(1184, "timestamptz", 8, b'd', plain(datetime::write_timestamptz), Decode::Timestamp),
    row(1186, "interval", 16, b'd', plain(interval::write_interval), Decode::Interval),
    row(1266, "timetz", 12, b'd', plain(datetime::write_timetz), Decode::TimeTz),
    row(1560, "bit", -1, b'i', escaped(bits::write_varbit), Decode::Bits),
    row(1562, "varbit", -1, b'i', escaped(bits::write_varbit), Decode::Bits),
    row(1700, "numeric", -1, b'i', plain(numeric::write_numeric), Decode::Numeric),
    row(1790, "refcursor", -1, b'i', Print::Verbatim, Decode::Text),
    row(2202, "regprocedure", 4, b'i', Print::Name(NameKind::Procedure), Decode::Oid),
    row(2203, "regoper", 4, b'i', Print::Name(NameKind::Oper), Decode::Oid),
    row(2204, "regoperator", 4, b'i', Print::Name(NameKind::Operator), Decode::Oid),
    row(2205, "regclass", 4, b'i', Print::Name(NameKind::Class), Decode::Oid),
    row(2206, "regtype", 4, b'i', Print::Name(NameKind::Type), Decode::Oid),
    row(2275, "cstring", -2, b'c', escaped(text::write_cstring), Decode::CString),
    row(2277, "anyarray", -1, b'd', Print::AnyArray, Decode::Other),
    row(2278, "void", 4, b'i', escaped(text::write_void), Decode::Other),
    row(2950, "uuid", 16, b'c', plain(bytea::write_uuid), Decode::Uuid),
    row(2970, "txid_snapshot", -1, b'd', escaped(identifier::write_pg_snapshot), Decode::Other),
    row(3220, "pg_lsn", 8, b'd', plain(identifier::write_pg_lsn), Decode::Unsigned8),
    row(3361, "pg_ndistinct", -1, b'i', escaped(statistics::write_pg_ndistinct), Decode::Other),
    row(3402, "pg_dependencies", -1, b'i', escaped(statistics::write_pg_dependencies), Decode::Other),
    row(3614, "tsvector", -1, b'i', escaped(tsvector::write_tsvector), Decode::Other),
    row(3615, "tsquery", -1, b'i', escaped(tsquery::write_tsquery), Decode::Other),
    row(3642, "gtsvector", -1, b'i', escaped(tsvector::write_gtsvector), Decode::Other),
    row(3734, "regconfig", 4, b'i', Print::Name(NameKind::Config), Decode::Oid),
    row(3769, "regdictionary", 4, b'i', Print::Name(NameKind::Dictionary), Decode::Oid),
    row(3802, "jsonb", -1, b'i', escaped(jsonb::write_jsonb), Decode::Jsonb),
    row(4072, "jsonpath", -1, b'i', escaped(jsonpath::write_jsonpath), Decode::Other),
    row(4089, "regnamespace", 4, b'i', Print::Name(NameKind::Namespace), Decode::Oid),
    row(4096, "regrole", 4, b'i', Print::Name(NameKind::Role), Decode::Oid),
    row(4191, "regcollation", 4, b'i', Print::Name(NameKind::Collation), Decode::Oid),
    row(4600, "pg_brin_bloom_summary", -1, b'i', escaped(brin::write_pg_brin_bloom_summary), Decode::Other),
    row(4601, "pg_brin_minmax_multi_summary", -1, b'i', Print::MinMaxSummary, Decode::Other),
    row(5017, "pg_mcv_list", -1, b'i', escaped(statistics::write_pg_mcv_list), Decode::Other),
    row(5038, "pg_snapshot", -1, b'd', escaped(identifier::write_pg_snapshot), Decode::Other),
    row(5069, "xid8", 8, b'd', plain(identifier::write_xid8), Decode::Unsigned8),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn writers() -> impl Iterator<Item = Print> {
        let versions = [PgVersion::V14, PgVersion::V16, PgVersion::V18];
        BUILTIN_TYPES.iter().flat_map(move |one| versions.map(|version| one.print_in(version)))
    }

    #[test]
    fn the_table_is_sorted_and_finds_every_type() {
        assert!(BUILTIN_TYPES.is_sorted_by(|a, b| a.oid < b.oid));
        for one in &BUILTIN_TYPES {
            assert_eq!(BuiltinType::by_oid(one.oid).unwrap().name, one.name);
        }
        assert!(BuiltinType::by_oid(Oid::INVALID).is_none());
    }

    #[test]
    fn older_versions_print_some_types_differently() {
        let text = |version, oid, value: &[u8]| {
            let mut out = Vec::new();
            let print = BuiltinType::by_oid(Oid(oid)).unwrap().print_in(version);
            print.writer().unwrap()(value, &mut out).unwrap();
            out
        };
        assert_eq!(text(PgVersion::V14, 18, b"\xFF"), b"\xFF");
        assert_eq!(text(PgVersion::V15, 18, b"\xFF"), b"\\377");
        let forever = [[0xFF; 7].as_slice(), &[0x7F], &[0xFF; 3], &[0x7F], &[0xFF; 3], &[0x7F]];
        assert_eq!(text(PgVersion::V17, 1186, &forever.concat()), b"infinity");
        assert!(text(PgVersion::V16, 1186, &forever.concat()).starts_with(b"178956970 years"));
        assert_eq!(text(PgVersion::V16, 3642, &[6, 0, 0, 0]), b"0 true bits, 0 false bits");
        assert_eq!(text(PgVersion::V17, 3642, &[6, 0, 0, 0]), b"all true bits");
    }

    fn needs_care(byte: u8) -> bool {
        byte < b' ' || matches!(byte, b'\\' | b',' | b'"' | 0x7F..)
    }

    proptest! {
        /// Also the promise of `plain`: whatever a writer accepts, it prints plainly.
        #[test]
        fn arbitrary_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..80)) {
            for print in writers() {
                let Print::Scalar { write, plain } = print else { continue };
                // Every length that may be the right one, and what is left after each.
                for length in [1, 2, 4, 6, 8, 12, 16, 18, 24, 32, 64, value.len()] {
                    let mut out = Vec::new();
                    let sound = write(&value[..length.min(value.len())], &mut out).is_ok();
                    if sound && plain {
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
            for write in writers().filter_map(Print::writer) {
                let _ = write(&value, &mut Vec::new());
            }
        }
    }
}
