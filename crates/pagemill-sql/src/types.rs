//! PostgreSQL's types as the statement has them, and what carries their values while a query runs.
//!
//! Values keep PostgreSQL's own inner form, so that nothing is lost or changed on the way: a date is the number of days
//! from 2000-01-01 with both infinities, a timestamp the number of microseconds from then, a time of day microseconds from
//! midnight. Numbers, texts and booleans are Arrow's own. `numeric(p,s)` of up to 38 digits is a decimal; any other
//! numeric, and every type not named here, is carried as the bytes that a tuple holds without their length word (the
//! *payload*), and printed by PostgreSQL's own rules. An enum's label is carried by its place in the order of the type.
//!
//! Invariant: two values of a type are equal for the query engine only if they are so for PostgreSQL, or the comparison goes
//! through a key ([`crate::functions::keys`]).

use arrow::datatypes::DataType;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

/// The type of a literal whose type follows from where it stands.
pub const UNKNOWN: Oid = Oid(705);
/// `"any"`.
pub const ANY: Oid = Oid(2276);
/// `record`.
pub const RECORD: Oid = Oid(2249);

/// `record[]`, whose elements are carried as their texts: an array of them is one of texts to whatever shows it.
pub(crate) const RECORDS: Oid = Oid(2287);

/// Stands for a type that only another database has, or a file. No column of it gets into an expression.
pub(crate) const OF_ANOTHER_DATABASE: Oid = Oid(u32::MAX);
/// Stands for a deterministic collation that another database has for itself, and nobody orders by.
pub(crate) const COLLATION_OF_ANOTHER_DATABASE: Oid = Oid(u32::MAX);

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PgType {
    /// The OID in `pg_type`.
    pub oid: Oid,
    /// The modifier, -1 for none.
    pub modifier: i32,
    /// The collation, 0 where there is none.
    pub collation: Oid,
}

impl PgType {
    /// A built-in type without a modifier; texts have the database's collation, and names that of C. What other types have is in the
    /// catalogs ([`crate::coerce::collated`]).
    pub fn new(oid: Oid) -> Self {
        let collation = match oid {
            oid::TEXT | oid::VARCHAR | oid::BPCHAR => DEFAULT_COLLATION,
            TEXTS | PADDED_TEXTS | VARYING_TEXTS => DEFAULT_COLLATION,
            oid::NAME | NAMES => C_COLLATION,
            _ => Oid(0),
        };
        Self { oid, modifier: -1, collation }
    }

    /// The same with a modifier.
    pub fn with_modifier(self, modifier: i32) -> Self {
        Self { modifier, ..self }
    }
}

/// `default`, the collation of the database; `C` and `POSIX`.
///
/// Source: `src/include/catalog/pg_collation.dat`, PostgreSQL 18.
pub const DEFAULT_COLLATION: Oid = Oid(100);
/// `C`.
pub const C_COLLATION: Oid = Oid(950);
/// `POSIX`.
pub const POSIX_COLLATION: Oid = Oid(951);

/// `name[]`, `text[]`, `character[]`, `character varying[]`.
///
/// Source: `src/include/catalog/pg_type.dat`, PostgreSQL 14 to 18.
const NAMES: Oid = Oid(1003);
const TEXTS: Oid = Oid(1009);
const PADDED_TEXTS: Oid = Oid(1014);
const VARYING_TEXTS: Oid = Oid(1015);

/// Digits and places of a declared numeric that a decimal carries.
pub fn declared_decimal(modifier: i32) -> Option<(u8, i8)> {
    match carrier(oid::NUMERIC, modifier) {
        DataType::Decimal128(precision, scale) => Some((precision, scale)),
        _ => None,
    }
}

/// The modifier of `numeric(precision, scale)`.
pub fn numeric_modifier(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7FF)) + 4
}

/// What carries values of a base type that is no enum.
pub fn carrier(base: Oid, modifier: i32) -> DataType {
    pagemill_arrow::stored_type(base, modifier)
}

/// True for the types whose values are the numbers of objects or transactions.
pub fn is_object_number(type_oid: Oid) -> bool {
    carrier(type_oid, -1) == DataType::UInt32
}
