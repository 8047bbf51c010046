//! The table of built-in types: how each is named, how its values lie in a tuple, how they are printed, decoded, read,
//! ordered and hashed. No other place asks for a type's OID, but to make an exception of one ([`oid`]).
//!
//! Invariants: sorted by OID, so that a type is found by bisection; a column's type is looked up once, not for each
//! value. Where versions differ, the table has what PostgreSQL 18 does, and [`BuiltinType::print_in`] and
//! [`BuiltinType::sql_name`] what the others do.
//!
//! Source: `src/include/catalog/pg_type.dat` and, for the spellings of SQL, `format_type_extended` in
//! `src/backend/utils/adt/format_type.c`, PostgreSQL 14 to 18.

use pagemill_format::ids::{Oid, PgVersion};

use super::decode::Decode;
use super::input::datetime::DateTimeReader;
use super::input::tree::{DocumentReader, TypeInput};
use super::input::{self, Characters, ScalarReader, characters};
use super::order::{self, ScalarOrder};
use super::output::NameKind;
use super::value_hash::ValueHash;
use super::{
    ScalarWriter, bits, brin, bytea, datetime, float, geometry, identifier, integer, interval,
    jsonb, jsonpath, network, numeric, statistics, text, tsquery, tsvector, xml,
};

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
    input: Input,
    pub(crate) order: Order,
    /// How its values are hashed, where that is known here.
    pub(crate) hash: Option<ValueHash>,
}

/// How texts become values of a built-in type.
#[derive(Debug, Clone, Copy)]
enum Input {
    /// Nobody can write such a value.
    Never,
    /// In the same way everywhere.
    Scalar(ScalarReader),
    /// Depending on the server's version.
    ByVersion(fn(PgVersion) -> ScalarReader),
    /// Depending on the characters of the database's encoding.
    ByEncoding(fn(Characters) -> ScalarReader),
    /// Asking for version or encoding while it reads.
    Document(DocumentReader),
    /// Asking for the session's settings of dates and times.
    DateTime(DateTimeReader),
    /// As the name of an object.
    Name(NameKind),
    /// As an amount in the currency of a locale.
    Money,
    /// As an access privilege, with the names of roles.
    AclItem,
}

/// The order of a built-in type's default operator class for B-trees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// There is none, or none that is known here; that of jsonb needs a collation that is not its own.
    Unknown,
    /// By the payloads alone.
    Scalar(&'static ScalarOrder),
    /// That of texts in a collation.
    Text,
    /// That of texts without the blanks at their end.
    PaddedText,
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
        BUILTIN_TYPES
    }

    /// How this version reads it from a text, in an encoding with these characters. `None` for what cannot be written
    /// as a text, and for `money`, whose reader needs a locale.
    pub fn input_in(&self, version: PgVersion, characters: Characters) -> Option<TypeInput> {
        Some(match self.input {
            Input::Never | Input::Money => return None,
            Input::Scalar(read) => TypeInput::Scalar(read),
            Input::ByVersion(reader) => TypeInput::Scalar(reader(version)),
            Input::ByEncoding(reader) => TypeInput::Scalar(reader(characters)),
            Input::Document(read) => TypeInput::Document(read),
            Input::DateTime(read) => TypeInput::DateTime(read),
            Input::Name(kind) => TypeInput::Name(kind),
            Input::AclItem => TypeInput::AclItem,
        })
    }

    /// True for a type whose values are ordered by a collation.
    pub fn is_collated(&self) -> bool {
        matches!(self.order, Order::Text | Order::PaddedText)
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

/// A reader that newer versions have, and the one before them.
macro_rules! since {
    ($version:ident, $new:ident :: $read:ident, $old:ident :: $read_before:ident) => {
        Input::ByVersion(|version| {
            if version >= PgVersion::$version {
                input::$new::$read
            } else {
                input::$old::$read_before
            }
        })
    };
}

/// A reader that counts characters, or names them in messages.
macro_rules! by_encoding {
    ($module:ident :: $read:ident) => {
        Input::ByEncoding(|characters| match characters {
            Characters::Single => input::$module::$read::<characters::Single>,
            Characters::Utf8 => input::$module::$read::<characters::Utf8>,
            Characters::Euc => input::$module::$read::<characters::Euc>,
            Characters::EucTw => input::$module::$read::<characters::EucTw>,
            Characters::Mule => input::$module::$read::<characters::Mule>,
        })
    };
}

fn oidvector_reader(version: PgVersion) -> ScalarReader {
    match version {
        PgVersion::V14 => input::vector::read_oidvector_14,
        PgVersion::V15 => input::vector::read_oidvector_15,
        _ => input::vector::read_oidvector,
    }
}

macro_rules! builtin_types {
    ($($constant:ident = $oid:literal $name:literal $len:literal $align:literal: $print:expr, $decode:expr,
        $input:expr, $order:expr, $hash:expr;)*) => {
        /// The OIDs of types by their names, for whoever makes an exception of one.
        pub mod oid {
            use pagemill_format::Oid;

            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Oid = Oid($oid);
            )*
            /// `record`: any composite type.
            pub const RECORD: Oid = Oid(2249);
            /// `anyenum`, which the operator classes of all enums are for; those below are its kin.
            pub const ANYENUM: Oid = Oid(3500);
            /// `anyrange`
            pub const ANYRANGE: Oid = Oid(3831);
            /// `anymultirange`
            pub const ANYMULTIRANGE: Oid = Oid(4537);
        }

        static BUILTIN_TYPES: &[BuiltinType] = &[$(BuiltinType {
            oid: oid::$constant,
            name: $name,
            len: $len,
            align: $align,
            print: $print,
            decode: $decode,
            input: $input,
            order: $order,
            hash: $hash,
        }),*];
    };
}

// OID, name, length, alignment, how values are printed and decoded; how they are read, ordered and hashed.
#[rustfmt::skip]
builtin_types! {
    BOOL = 16 "bool" 1 b'c': plain(integer::write_bool), Decode::Bool,
        Input::Scalar(input::integer::read_bool), Order::Scalar(&order::UNSIGNED), Some(ValueHash::Signed);
    BYTEA = 17 "bytea" -1 b'i': escaped(bytea::write_bytea), Decode::Bytes,
        by_encoding!(bytea::read_bytea), Order::Scalar(&order::BYTES), Some(ValueHash::Bytes);
    CHAR = 18 "char" 1 b'c': escaped(text::write_char), Decode::Char,
        since!(V15, text::read_char, text::read_char_14), Order::Scalar(&order::UNSIGNED), Some(ValueHash::Signed);
    NAME = 19 "name" 64 b'c': escaped(text::write_name), Decode::Name,
        by_encoding!(text::read_name), Order::Text, Some(ValueHash::Name);
    INT8 = 20 "int8" 8 b'd': plain(integer::write_int8), Decode::Int8,
        since!(V16, integer::read_int8, integer::read_int8_before_16), Order::Scalar(&order::SIGNED), Some(ValueHash::Wide);
    INT2 = 21 "int2" 2 b's': plain(integer::write_int2), Decode::Int2,
        since!(V16, integer::read_int2, integer::read_int2_before_16), Order::Scalar(&order::SIGNED), Some(ValueHash::Signed);
    INT2VECTOR = 22 "int2vector" -1 b'i': escaped(identifier::write_int2vector), Decode::Vector,
        since!(V15, vector::read_int2vector, vector::read_int2vector_14), Order::Unknown, None;
    INT4 = 23 "int4" 4 b'i': plain(integer::write_int4), Decode::Int4,
        since!(V16, integer::read_int4, integer::read_int4_before_16), Order::Scalar(&order::SIGNED), Some(ValueHash::Signed);
    REGPROC = 24 "regproc" 4 b'i': Print::Name(NameKind::Proc), Decode::Oid,
        Input::Name(NameKind::Proc), Order::Scalar(&order::UNSIGNED), None;
    TEXT = 25 "text" -1 b'i': Print::Verbatim, Decode::Text,
        Input::Scalar(input::text::read_text), Order::Text, Some(ValueHash::Bytes);
    OID = 26 "oid" 4 b'i': plain(identifier::write_oid), Decode::Oid,
        since!(V16, identifier::read_oid, identifier::read_oid_before_16), Order::Scalar(&order::UNSIGNED), Some(ValueHash::Unsigned);
    TID = 27 "tid" 6 b's': escaped(identifier::write_tid), Decode::Tid,
        since!(V15, identifier::read_tid, identifier::read_tid_14), Order::Scalar(&order::TID), Some(ValueHash::Bytes);
    XID = 28 "xid" 4 b'i': plain(identifier::write_xid), Decode::Oid,
        since!(V16, identifier::read_xid, identifier::read_xid_before_16), Order::Unknown, None;
    CID = 29 "cid" 4 b'i': plain(identifier::write_cid), Decode::Oid,
        since!(V16, identifier::read_cid, identifier::read_xid_before_16), Order::Unknown, None;
    OIDVECTOR = 30 "oidvector" -1 b'i': escaped(identifier::write_oidvector), Decode::Vector,
        Input::ByVersion(oidvector_reader), Order::Scalar(&order::OID_VECTOR), None;
    JSON = 114 "json" -1 b'i': Print::Verbatim, Decode::Text,
        Input::Document(input::json::read_json), Order::Unknown, None;
    XML = 142 "xml" -1 b'i': escaped(xml::write_xml), Decode::Text,
        Input::Document(input::xml::read_xml), Order::Unknown, None;
    PG_NODE_TREE = 194 "pg_node_tree" -1 b'i': Print::Verbatim, Decode::Text,
        Input::Never, Order::Unknown, None;
    POINT = 600 "point" 16 b'd': escaped(geometry::write_point), Decode::Point,
        Input::Scalar(input::geometry::read_point), Order::Unknown, None;
    LSEG = 601 "lseg" 32 b'd': escaped(geometry::write_lseg), Decode::Other,
        Input::Scalar(input::geometry::read_lseg), Order::Unknown, None;
    PATH = 602 "path" -1 b'd': escaped(geometry::write_path), Decode::Other,
        Input::Scalar(input::geometry::read_path), Order::Unknown, None;
    BOX = 603 "box" 32 b'd': escaped(geometry::write_box), Decode::Other,
        Input::Scalar(input::geometry::read_box), Order::Unknown, None;
    POLYGON = 604 "polygon" -1 b'd': escaped(geometry::write_polygon), Decode::Other,
        Input::Scalar(input::geometry::read_polygon), Order::Unknown, None;
    LINE = 628 "line" 24 b'd': escaped(geometry::write_line), Decode::Other,
        Input::Scalar(input::geometry::read_line), Order::Unknown, None;
    CIDR = 650 "cidr" -1 b'i': plain(network::write_cidr), Decode::Inet,
        Input::Scalar(input::network::read_cidr), Order::Scalar(&order::INET), Some(ValueHash::Bytes);
    FLOAT4 = 700 "float4" 4 b'i': plain(float::write_float4), Decode::Float4,
        since!(V16, float::read_float4, float::read_float4_before_16), Order::Scalar(&order::FLOAT), Some(ValueHash::Float);
    FLOAT8 = 701 "float8" 8 b'd': plain(float::write_float8), Decode::Float8,
        Input::Scalar(input::float::read_float8), Order::Scalar(&order::FLOAT), Some(ValueHash::Float);
    UNKNOWN = 705 "unknown" -2 b'c': escaped(text::write_cstring), Decode::CString,
        Input::Never, Order::Unknown, None;
    CIRCLE = 718 "circle" 24 b'd': escaped(geometry::write_circle), Decode::Other,
        Input::Scalar(input::geometry::read_circle), Order::Unknown, None;
    MACADDR8 = 774 "macaddr8" 8 b'i': plain(bytea::write_macaddr8), Decode::MacAddr8,
        Input::Scalar(input::hardware_address::read_macaddr8), Order::Scalar(&order::BYTES), Some(ValueHash::Bytes);
    MONEY = 790 "money" 8 b'd': Print::Money, Decode::Money,
        Input::Money, Order::Scalar(&order::SIGNED), None;
    MACADDR = 829 "macaddr" 6 b'i': plain(bytea::write_macaddr), Decode::MacAddr,
        Input::Scalar(input::hardware_address::read_macaddr), Order::Scalar(&order::BYTES), Some(ValueHash::Bytes);
    INET = 869 "inet" -1 b'i': plain(network::write_inet), Decode::Inet,
        Input::Scalar(input::network::read_inet), Order::Scalar(&order::INET), Some(ValueHash::Bytes);
    ACLITEM = 1033 "aclitem" 12 b'i': Print::AclItem, Decode::Other,
        Input::AclItem, Order::Unknown, None;
    BPCHAR = 1042 "bpchar" -1 b'i': Print::Verbatim, Decode::Text,
        by_encoding!(text::read_bpchar), Order::PaddedText, Some(ValueHash::Padded);
    VARCHAR = 1043 "varchar" -1 b'i': Print::Verbatim, Decode::Text,
        by_encoding!(text::read_varchar), Order::Text, Some(ValueHash::Bytes);
    DATE = 1082 "date" 4 b'i': plain(datetime::write_date), Decode::Date,
        Input::DateTime(input::datetime::read_date), Order::Scalar(&order::SIGNED), Some(ValueHash::Signed);
    TIME = 1083 "time" 8 b'd': plain(datetime::write_time), Decode::Time,
        Input::DateTime(input::datetime::read_time), Order::Scalar(&order::SIGNED), Some(ValueHash::Wide);
    TIMESTAMP = 1114 "timestamp" 8 b'd': plain(datetime::write_timestamp), Decode::Timestamp,
        Input::DateTime(input::datetime::read_timestamp), Order::Scalar(&order::SIGNED), Some(ValueHash::Wide);
    TIMESTAMPTZ = 1184 "timestamptz" 8 b'd': plain(datetime::write_timestamptz), Decode::Timestamp,
        Input::DateTime(input::datetime::read_timestamptz), Order::Scalar(&order::SIGNED), Some(ValueHash::Wide);
    INTERVAL = 1186 "interval" 16 b'd': plain(interval::write_interval), Decode::Interval,
        Input::DateTime(input::datetime::read_interval), Order::Scalar(&order::INTERVAL), Some(ValueHash::Interval);
    TIMETZ = 1266 "timetz" 12 b'd': plain(datetime::write_timetz), Decode::TimeTz,
        Input::DateTime(input::datetime::read_timetz), Order::Scalar(&order::TIME_WITH_ZONE), Some(ValueHash::TimeWithZone);
    BIT = 1560 "bit" -1 b'i': escaped(bits::write_varbit), Decode::Bits,
        by_encoding!(bits::read_bit), Order::Scalar(&order::BITS), None;
    VARBIT = 1562 "varbit" -1 b'i': escaped(bits::write_varbit), Decode::Bits,
        by_encoding!(bits::read_varbit), Order::Scalar(&order::BITS), None;
    NUMERIC = 1700 "numeric" -1 b'i': plain(numeric::write_numeric), Decode::Numeric,
        since!(V16, numeric::read_numeric, numeric::read_numeric_before_16), Order::Scalar(&order::NUMERIC), Some(ValueHash::Numeric);
    REFCURSOR = 1790 "refcursor" -1 b'i': Print::Verbatim, Decode::Text,
        Input::Scalar(input::text::read_text), Order::Unknown, None;
    REGPROCEDURE = 2202 "regprocedure" 4 b'i': Print::Name(NameKind::Procedure), Decode::Oid,
        Input::Name(NameKind::Procedure), Order::Scalar(&order::UNSIGNED), None;
    REGOPER = 2203 "regoper" 4 b'i': Print::Name(NameKind::Oper), Decode::Oid,
        Input::Name(NameKind::Oper), Order::Scalar(&order::UNSIGNED), None;
    REGOPERATOR = 2204 "regoperator" 4 b'i': Print::Name(NameKind::Operator), Decode::Oid,
        Input::Name(NameKind::Operator), Order::Scalar(&order::UNSIGNED), None;
    REGCLASS = 2205 "regclass" 4 b'i': Print::Name(NameKind::Class), Decode::Oid,
        Input::Name(NameKind::Class), Order::Scalar(&order::UNSIGNED), None;
    REGTYPE = 2206 "regtype" 4 b'i': Print::Name(NameKind::Type), Decode::Oid,
        Input::Name(NameKind::Type), Order::Scalar(&order::UNSIGNED), None;
    CSTRING = 2275 "cstring" -2 b'c': escaped(text::write_cstring), Decode::CString,
        Input::Never, Order::Unknown, None;
    ANYARRAY = 2277 "anyarray" -1 b'd': Print::AnyArray, Decode::Other,
        Input::Never, Order::Unknown, None;
    VOID = 2278 "void" 4 b'i': escaped(text::write_void), Decode::Other,
        Input::Never, Order::Unknown, None;
    UUID = 2950 "uuid" 16 b'c': plain(bytea::write_uuid), Decode::Uuid,
        Input::Scalar(input::uuid::read_uuid), Order::Scalar(&order::BYTES), Some(ValueHash::Bytes);
    TXID_SNAPSHOT = 2970 "txid_snapshot" -1 b'd': escaped(identifier::write_pg_snapshot), Decode::Other,
        Input::Scalar(input::identifier::read_pg_snapshot), Order::Unknown, None;
    PG_LSN = 3220 "pg_lsn" 8 b'd': plain(identifier::write_pg_lsn), Decode::Unsigned8,
        Input::Scalar(input::identifier::read_pg_lsn), Order::Scalar(&order::UNSIGNED), Some(ValueHash::Wide);
    PG_NDISTINCT = 3361 "pg_ndistinct" -1 b'i': escaped(statistics::write_pg_ndistinct), Decode::Other,
        Input::Never, Order::Unknown, None;
    PG_DEPENDENCIES = 3402 "pg_dependencies" -1 b'i': escaped(statistics::write_pg_dependencies), Decode::Other,
        Input::Never, Order::Unknown, None;
    TSVECTOR = 3614 "tsvector" -1 b'i': escaped(tsvector::write_tsvector), Decode::Other,
        Input::Document(input::tsvector::read_tsvector), Order::Scalar(&order::TS_VECTOR), None;
    TSQUERY = 3615 "tsquery" -1 b'i': escaped(tsquery::write_tsquery), Decode::Other,
        Input::Document(input::tsquery::read_tsquery), Order::Scalar(&order::TS_QUERY), None;
    GTSVECTOR = 3642 "gtsvector" -1 b'i': escaped(tsvector::write_gtsvector), Decode::Other,
        Input::Never, Order::Unknown, None;
    REGCONFIG = 3734 "regconfig" 4 b'i': Print::Name(NameKind::Config), Decode::Oid,
        Input::Name(NameKind::Config), Order::Scalar(&order::UNSIGNED), None;
    REGDICTIONARY = 3769 "regdictionary" 4 b'i': Print::Name(NameKind::Dictionary), Decode::Oid,
        Input::Name(NameKind::Dictionary), Order::Scalar(&order::UNSIGNED), None;
    JSONB = 3802 "jsonb" -1 b'i': escaped(jsonb::write_jsonb), Decode::Jsonb,
        Input::Document(input::jsonb::read_jsonb), Order::Unknown, None;
    JSONPATH = 4072 "jsonpath" -1 b'i': escaped(jsonpath::write_jsonpath), Decode::Other,
        Input::Document(input::jsonpath::read_jsonpath), Order::Unknown, None;
    REGNAMESPACE = 4089 "regnamespace" 4 b'i': Print::Name(NameKind::Namespace), Decode::Oid,
        Input::Name(NameKind::Namespace), Order::Scalar(&order::UNSIGNED), None;
    REGROLE = 4096 "regrole" 4 b'i': Print::Name(NameKind::Role), Decode::Oid,
        Input::Name(NameKind::Role), Order::Scalar(&order::UNSIGNED), None;
    REGCOLLATION = 4191 "regcollation" 4 b'i': Print::Name(NameKind::Collation), Decode::Oid,
        Input::Name(NameKind::Collation), Order::Scalar(&order::UNSIGNED), None;
    PG_BRIN_BLOOM_SUMMARY = 4600 "pg_brin_bloom_summary" -1 b'i': escaped(brin::write_pg_brin_bloom_summary), Decode::Other,
        Input::Never, Order::Unknown, None;
    PG_BRIN_MINMAX_MULTI_SUMMARY = 4601 "pg_brin_minmax_multi_summary" -1 b'i': Print::MinMaxSummary, Decode::Other,
        Input::Never, Order::Unknown, None;
    PG_MCV_LIST = 5017 "pg_mcv_list" -1 b'i': escaped(statistics::write_pg_mcv_list), Decode::Other,
        Input::Never, Order::Unknown, None;
    PG_SNAPSHOT = 5038 "pg_snapshot" -1 b'd': escaped(identifier::write_pg_snapshot), Decode::Other,
        Input::Scalar(input::identifier::read_pg_snapshot), Order::Unknown, None;
    XID8 = 5069 "xid8" 8 b'd': plain(identifier::write_xid8), Decode::Unsigned8,
        since!(V16, identifier::read_xid8, identifier::read_xid8_before_16), Order::Scalar(&order::UNSIGNED), None;
}

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
        for one in BUILTIN_TYPES {
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
