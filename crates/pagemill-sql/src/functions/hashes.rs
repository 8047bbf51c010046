//! The functions that hash values, of 32 bits and with a seed of 64: `hashtext`, `hash_numeric`, `hash_array`, `hash_range` and their kin.
//!
//! How values of a type are hashed by themselves is the affair of [`ValueHash`]; here it is found out by the function's name, or by
//! the type of what an array or a range is made of, and combined.
//!
//! Invariant: the lower half of the hash with the seed 0 is the hash of 32 bits. Texts are hashed as their bytes, so that a collation
//! that is not deterministic is refused.
//!
//! Source: `src/backend/access/hash/hashfunc.c`, `hash_array` in `src/backend/utils/adt/arrayfuncs.c`, `hash_range` in `rangetypes.c`,
//! `hash_multirange` in `multirangetypes.c`, `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int64Type};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::input::range::Bounds;
use pagemill_types::value_hash::{ValueHash, hash_word, rotated};

use super::arrays::value::{ArrayParts, ElementType};
use super::ranges::kind::RangeKind;
use super::rows::{Made, Outcome};
use super::system::statement_error;
use super::text_form::payload_of;
use super::{Implementation, KernelCall};
use crate::catalog::{Catalog, TypeRow};
use crate::error::{SqlState, StatementError};
use crate::system_rows::for_each_row;
use crate::types::{DEFAULT_COLLATION, PgType};

/// Types in types that are followed; a server has no more than a few.
const MOST_LEVELS: usize = 16;
/// The access method `hash`.
///
/// Source: `src/include/catalog/pg_am.dat`, PostgreSQL 14 to 18.
const HASH_METHOD: Oid = Oid(405);

/// The bits of a range's flags.
///
/// Source: `src/include/utils/rangetypes.h`, PostgreSQL 14 to 18.
mod flags {
    pub(super) const EMPTY: u32 = 0x01;
    pub(super) const LOWER_INCLUSIVE: u32 = 0x02;
    pub(super) const UPPER_INCLUSIVE: u32 = 0x04;
    pub(super) const LOWER_INFINITE: u32 = 0x08;
    pub(super) const UPPER_INFINITE: u32 = 0x10;
}

pub(super) fn find(key: &str) -> Option<Implementation> {
    let name = plain_name(key);
    let is_of_parts = matches!(name, "hash_array" | "hash_range" | "hash_multirange");
    (is_of_parts || by_name(name).is_some()).then_some(Implementation::Kernel(hashed))
}

/// The name of the function without a seed.
fn plain_name(key: &str) -> &str {
    key.strip_suffix("_extended").or_else(|| key.strip_suffix("extended")).unwrap_or(key) // default: it has none
}

fn by_name(name: &str) -> Option<ValueHash> {
    Some(match name {
        "hashchar" | "hashbool" | "hashint2" | "hashint4" | "hashdate" => ValueHash::Signed,
        "hashint8" | "time_hash" | "timestamp_hash" | "timestamptz_hash" | "pg_lsn_hash"
        | "hashxid8" => ValueHash::Wide,
        "hashoid" | "hashenum" | "hashxid" | "hashcid" => ValueHash::Unsigned,
        "hashtext" | "hashbytea" | "hashinet" | "hashmacaddr" | "hashmacaddr8" | "uuid_hash"
        | "hashtid" => ValueHash::Bytes,
        "hashbpchar" => ValueHash::Padded,
        "hashname" => ValueHash::Name,
        "hashfloat4" | "hashfloat8" => ValueHash::Float,
        "hash_numeric" => ValueHash::Numeric,
        "interval_hash" => ValueHash::Interval,
        "timetz_hash" => ValueHash::TimeWithZone,
        "jsonb_hash" => ValueHash::Document,
        "hashoidvector" => ValueHash::Vector,
        "hash_aclitem" => ValueHash::Grant,
        _ => return None,
    })
}

/// What hashes payloads of a type.
enum Hasher<'c> {
    Plain(ValueHash),
    Array(ElementType<'c>, Box<Hasher<'c>>),
    Ranges(Box<RangeKind<'c>>, Box<Hasher<'c>>),
}

impl<'c> Hasher<'c> {
    /// Of the type's own operator class; `kind` is what the error calls such a function.
    fn of_type(catalog: &'c Catalog, ty: PgType, kind: &str, levels: usize) -> Outcome<Self> {
        let base = catalog.base_type(ty.oid, -1).0;
        let refused =
            || StatementError::unsupported(format!("the hash of type {}", catalog.type_name(base)));
        if let Some(plain) = of_base(catalog, base) {
            return Ok(Self::Plain(plain));
        }
        let levels = levels.checked_sub(1).ok_or_else(refused)?;
        if catalog.type_row(base).is_some_and(TypeRow::is_array) {
            let elements = ElementType::of_array(catalog, PgType::new(base))?;
            let hasher = Self::of_type(catalog, elements.ty, kind, levels)?;
            return Ok(Self::Array(elements, Box::new(hasher)));
        }
        if let Some(row) = catalog.range_row(base) {
            check_collation(catalog, row.collation)?;
            let hasher = Self::of_type(catalog, PgType::new(row.subtype), kind, levels)?;
            let ranges = RangeKind::new(catalog, PgType::new(base))?;
            return Ok(Self::Ranges(Box::new(ranges), Box::new(hasher)));
        }
        match catalog.type_row(base).is_none_or(|row| row.kind != b'b') || has_class(catalog, base)?
        {
            true => Err(refused()),
            false => {
                let name = catalog.type_name(base);
                let message = format!("could not identify {kind} for type {name}");
                Err(StatementError::new(SqlState::UNDEFINED_FUNCTION, message))
            }
        }
    }

    fn hash(&mut self, payload: &[u8], seed: u64) -> Outcome<u64> {
        match self {
            Self::Plain(hash) => Ok(hash.hash(payload, seed)),
            Self::Array(elements, hasher) => {
                let parts = ArrayParts::read(elements, payload)?.elements;
                let mut hash = |element: &Option<Vec<u8>>| match element {
                    None => Ok(0),
                    Some(element) => hasher.hash(element, seed),
                };
                parts.iter().try_fold(1, |all, element| Ok(combined(all, hash(element)?)))
            }
            Self::Ranges(kind, hasher) => {
                let ranges = kind.read(payload)?;
                if !kind.is_multirange() {
                    return range_hash(ranges.first(), hasher, seed);
                }
                ranges.iter().try_fold(1, |all: u64, range| {
                    Ok(combined(all, range_hash(Some(range), hasher, seed)?))
                })
            }
        }
    }
}

fn combined(all: u64, hash: u64) -> u64 {
    (all << 5).wrapping_sub(all).wrapping_add(hash)
}

fn range_hash(range: Option<&Bounds>, hasher: &mut Hasher<'_>, seed: u64) -> Outcome<u64> {
    let Some(range) = range else {
        return Ok(rotated(hash_word(flags::EMPTY, seed)));
    };
    let when = |holds: bool, flag: u32| if holds { flag } else { 0 };
    let (lower, upper) = (&range.lower, &range.upper);
    let all = when(lower.inclusive && lower.value.is_some(), flags::LOWER_INCLUSIVE)
        | when(upper.inclusive && upper.value.is_some(), flags::UPPER_INCLUSIVE)
        | when(lower.value.is_none(), flags::LOWER_INFINITE)
        | when(upper.value.is_none(), flags::UPPER_INFINITE);
    let mut bound = |value: &Option<Vec<u8>>| match value {
        None => Ok(0),
        Some(value) => hasher.hash(value, seed),
    };
    let lower = bound(&lower.value)?;
    Ok(rotated(hash_word(all, seed) ^ lower) ^ bound(&upper.value)?)
}

/// How values of a type that is no array and no range are hashed by its default operator class.
fn of_base(catalog: &Catalog, base: Oid) -> Option<ValueHash> {
    match base {
        oid::JSONB => Some(ValueHash::Document),
        oid::OIDVECTOR => Some(ValueHash::Vector),
        oid::ACLITEM => Some(ValueHash::Grant),
        oid::XID8 => Some(ValueHash::Wide),
        _ if catalog.type_row(base).is_some_and(|row| row.kind == b'e') => {
            Some(ValueHash::Unsigned)
        }
        // OIDs under other names, and the numbers of transactions and commands.
        _ if crate::types::is_object_number(base) => Some(ValueHash::Unsigned),
        other => ValueHash::of_type(other),
    }
}

/// Whether the type has a hash operator class.
fn has_class(catalog: &Catalog, base: Oid) -> Outcome<bool> {
    let mut found = false;
    for_each_row(catalog.values(), "pg_opclass", &["opcmethod", "opcintype"], |row| {
        found |= row.oid(0) == HASH_METHOD && row.oid(1) == base;
        Ok(())
    })
    .map_err(statement_error)?;
    Ok(found)
}

fn check_collation(catalog: &Catalog, collation: Oid) -> Outcome<()> {
    let collation = if collation == Oid(0) { DEFAULT_COLLATION } else { collation };
    match catalog.collation(collation).is_none_or(|row| row.is_deterministic) {
        true => Ok(()),
        false => Err(StatementError::unsupported("a hash in a nondeterministic collation")),
    }
}

fn hasher<'c>(call: &'c KernelCall, is_extended: bool) -> Outcome<Hasher<'c>> {
    let ty = call.arguments[0];
    check_collation(&call.catalog, ty.collation)?;
    match by_name(plain_name(&call.key)) {
        Some(hash) => Ok(Hasher::Plain(hash)),
        None => {
            let kind = if is_extended { "an extended hash function" } else { "a hash function" };
            Hasher::of_type(&call.catalog, ty, kind, MOST_LEVELS)
        }
    }
}

fn hashed(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let seeds = arguments.get(1).map(|seeds| seeds.as_primitive::<Int64Type>());
    let mut hasher = Lazy { call, is_extended: seeds.is_some(), made: None };
    let mut hash = |row: usize| -> Outcome<Option<u64>> {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let seed = seeds.map_or(0, |seeds| seeds.value(row) as u64);
        let payload = payload_of(&call.catalog, call.arguments[0], &arguments[0], row)?;
        hasher.get()?.hash(&payload, seed).map(Some)
    };
    let found = (0..arguments[0].len()).map(&mut hash).collect::<Outcome<Vec<Option<u64>>>>()?;
    match call.carrier {
        DataType::Int64 => Made::column(found.iter().map(|hash| hash.map(|h| h as i64)).collect()),
        _ => Made::column(found.iter().map(|hash| hash.map(|h| h as u32 as i32)).collect()),
    }
}

/// Made for the first value: NULL is NULL even of a type that has no hash.
struct Lazy<'c> {
    call: &'c KernelCall,
    is_extended: bool,
    made: Option<Hasher<'c>>,
}

impl<'c> Lazy<'c> {
    fn get(&mut self) -> Outcome<&mut Hasher<'c>> {
        let made = match self.made.take() {
            Some(made) => made,
            None => hasher(self.call, self.is_extended)?,
        };
        Ok(self.made.insert(made))
    }
}
