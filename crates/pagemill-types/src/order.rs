//! The order that B-tree indexes keep values in: that of each type's default operator class.
//!
//! A [`ValueOrder`] compares payloads, and gives each payload an *abbreviation*, 64 bits that can be
//! compared instead as long as they differ: a lower abbreviation means a lower value, equal ones mean
//! that the payloads have to be asked. Sorting by abbreviations first touches the values rarely.
//!
//! Invariants: `compare` is a total order, and `abbreviate(a) < abbreviate(b)` implies `a < b`,
//! whatever the bytes; bytes that are missing count as zero, so damaged values have some order too.
//!
//! Sources: `src/backend/access/nbtree/nbtcompare.c` and the `…_cmp` functions in
//! `src/backend/utils/adt/`, `src/include/catalog/pg_amproc.dat`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pagemill_format::ids::Oid;
use pagemill_format::varlena::{self, Varlena};

use crate::builtin::{BuiltinType, Order};

mod binary;
mod inet;
pub(crate) mod jsonb;
mod nested;
pub(crate) mod numeric;
mod text_search;
pub(crate) mod time;

pub use nested::{InnerOrder, RecordOrder};

/// The order of texts in a collation that is not C: the caller's, as it comes from the system.
pub trait Collation: Send + Sync {
    /// The order of two texts without zero bytes in the database's encoding. Equal is what the collation
    /// holds for equal; bytes decide then.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// The collation of a column.
#[derive(Clone, Default)]
pub enum TextCollation {
    /// C or POSIX: by bytes.
    #[default]
    C,
    /// A deterministic one of the system.
    Other(Arc<dyn Collation>),
}

impl fmt::Debug for TextCollation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Other(_) => "Other",
        })
    }
}

impl TextCollation {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::C => a.cmp(b),
            Self::Other(_) if a == b => Ordering::Equal,
            Self::Other(collation) => collation.compare(text(a), text(b)).then_with(|| a.cmp(b)),
        }
    }

    fn abbreviate(&self, text: &[u8]) -> u64 {
        match self {
            Self::C => first_bytes(text),
            Self::Other(_) => 0,
        }
    }
}

/// The order of one operator class, with the collation where there is one.
#[derive(Debug, Clone)]
pub enum ValueOrder {
    /// A type that needs nothing else.
    Scalar(&'static ScalarOrder),
    /// text, varchar, name.
    Text(TextCollation),
    /// character(n): blanks at the end do not count.
    PaddedText(TextCollation),
    /// An enum type.
    Enum(Arc<EnumOrder>),
    /// Arrays of such elements.
    Array(Arc<InnerOrder>),
    /// Ranges between such bounds.
    Range(Arc<InnerOrder>),
    /// Multiranges between such bounds.
    Multirange(Arc<InnerOrder>),
    /// Rows.
    Record(Arc<RecordOrder>),
    /// jsonb, whose strings are in the order of the database.
    Jsonb(TextCollation),
}

/// How values of a type are compared.
#[derive(Debug)]
pub struct ScalarOrder {
    compare: fn(&[u8], &[u8]) -> Ordering,
    abbreviate: fn(&[u8]) -> u64,
    has_equal_image: bool,
    is_decided_by_abbreviation: bool,
}

/// The labels of an enum type by their place in its order.
#[derive(Debug, Default)]
pub struct EnumOrder {
    ranks: HashMap<u32, u32>,
}

impl EnumOrder {
    /// From the OIDs of the labels (`pg_enum.oid`) in the order of `enumsortorder`.
    pub fn new(labels: impl IntoIterator<Item = Oid>) -> Self {
        Self { ranks: labels.into_iter().map(|label| label.0).zip(0..).collect() }
    }

    /// Labels nobody told of come last.
    fn rank(&self, value: &[u8]) -> (u32, u32) {
        let label = binary::unsigned(value) as u32;
        (self.ranks.get(&label).copied().unwrap_or(u32::MAX), label)
    }
}

impl ValueOrder {
    /// The default order of a type, or of the input type of its operator class (`opcintype`); none for
    /// types whose order is not implemented, and for enums, which [`ValueOrder::Enum`] is for.
    pub fn of_type(oid: Oid, collation: &TextCollation) -> Option<Self> {
        match BuiltinType::by_oid(oid)?.order {
            Order::Unknown => None,
            Order::Scalar(order) => Some(Self::Scalar(order)),
            Order::Text => Some(Self::Text(collation.clone())),
            Order::PaddedText => Some(Self::PaddedText(collation.clone())),
        }
    }

    /// The order of two payloads.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Scalar(order) => (order.compare)(a, b),
            Self::Text(collation) => collation.compare(a, b),
            Self::PaddedText(collation) => collation.compare(unpadded(a), unpadded(b)),
            Self::Enum(order) => order.rank(a).cmp(&order.rank(b)),
            Self::Array(element) => nested::compare_arrays(element, a, b),
            Self::Range(bound) => nested::compare_ranges(bound, a, b),
            Self::Multirange(bound) => nested::compare_multiranges(bound, a, b),
            Self::Record(record) => record.compare(a, b),
            Self::Jsonb(strings) => jsonb::compare(strings, a, b),
        }
    }

    /// A number lower than that of another payload only if the payload is lower too.
    #[inline]
    pub fn abbreviate(&self, payload: &[u8]) -> u64 {
        match self {
            Self::Scalar(order) => (order.abbreviate)(payload),
            Self::Text(collation) => collation.abbreviate(payload),
            Self::PaddedText(collation) => collation.abbreviate(unpadded(payload)),
            Self::Enum(order) => {
                let (rank, label) = order.rank(payload);
                u64::from(rank) << 32 | u64::from(label)
            }
            Self::Array(_) | Self::Range(_) | Self::Multirange(_) => 0,
            Self::Record(_) | Self::Jsonb(_) => 0,
        }
    }

    /// True when values with the same abbreviation are equal.
    pub fn is_decided_by_abbreviation(&self) -> bool {
        match self {
            Self::Scalar(order) => order.is_decided_by_abbreviation,
            Self::Enum(_) => true,
            Self::Text(_) | Self::PaddedText(_) | Self::Array(_) | Self::Range(_) => false,
            Self::Multirange(_) | Self::Record(_) | Self::Jsonb(_) => false,
        }
    }

    /// True when equal values are equal byte for byte, so that an index may keep one of them for all
    /// (support function 4, `equalimage`).
    pub fn has_equal_image(&self) -> bool {
        match self {
            Self::Scalar(order) => order.has_equal_image,
            // Texts that differ in blanks at their end are equal. Servers before 15.20 and its
            // contemporaries overlooked that; not to rely on it is sound for all.
            Self::PaddedText(_) => false,
            Self::Text(_) | Self::Enum(_) => true,
            // The operator classes of these have no such function.
            Self::Array(_) | Self::Range(_) | Self::Multirange(_) => false,
            Self::Record(_) | Self::Jsonb(_) => false,
        }
    }
}

/// The payload of a value of a type of this `typlen`, as it lies in a tuple or in another value. What cannot be read
/// counts as empty.
#[inline]
pub(crate) fn stored_payload(len: i16, stored: &[u8]) -> Cow<'_, [u8]> {
    match len {
        -1 => match stored {
            [header, payload @ ..] if header & 1 == 1 && *header != 1 => Cow::Borrowed(payload),
            _ => varlena_payload(stored),
        },
        -2 => Cow::Borrowed(stored.split_last().map_or(stored, |(_, text)| text)),
        _ => Cow::Borrowed(stored),
    }
}

fn varlena_payload(stored: &[u8]) -> Cow<'_, [u8]> {
    match Varlena::parse(stored) {
        Ok(Varlena::Plain(payload)) => Cow::Borrowed(payload),
        Ok(Varlena::Compressed { raw_bytes, method, data }) => {
            let mut payload = Vec::new();
            // On damage nothing is appended.
            let _ = varlena::decompress(method, data, raw_bytes, &mut payload);
            Cow::Owned(payload)
        }
        _ => Cow::Borrowed(&[]),
    }
}

macro_rules! orders {
    ($($name:ident = $module:ident :: $compare:ident, $abbreviate:ident, $image:expr, $decided:expr;)*) => {
        $(
            pub(crate) static $name: ScalarOrder = ScalarOrder {
                compare: $module::$compare,
                abbreviate: $module::$abbreviate,
                has_equal_image: $image,
                is_decided_by_abbreviation: $decided,
            };
        )*
    };
}

// The order, the abbreviation, whether equal values are equal bytes, whether the abbreviation decides.
// Equal numbers and intervals can be stored in more than one way, as -0 and 0, 1.0 and 1.00, 1 day and 24 hours.
orders! {
    SIGNED = binary::compare_signed, abbreviate_signed, true, true;
    UNSIGNED = binary::compare_unsigned, unsigned, true, true;
    BYTES = binary::compare_bytes, abbreviate_bytes, true, false;
    FLOAT = binary::compare_floats, abbreviate_float, false, true;
    TID = binary::compare_tids, abbreviate_tid, true, true;
    OID_VECTOR = binary::compare_oid_vectors, abbreviate_oid_vector, true, false;
    BITS = binary::compare_bits, abbreviate_bits, true, false;
    INET = inet::compare, abbreviate, true, false;
    NUMERIC = numeric::compare, abbreviate, false, false;
    INTERVAL = time::compare_intervals, abbreviate_interval, false, false;
    TS_VECTOR = text_search::compare_vectors, no_abbreviation, false, false;
    TS_QUERY = text_search::compare_queries, no_abbreviation, false, false;
    TIME_WITH_ZONE = time::compare_times_with_zone, abbreviate_time_with_zone, true, false;
}

/// A text up to its first zero: only a `name` has any, behind its text.
pub(crate) fn text(payload: &[u8]) -> &[u8] {
    match payload.iter().position(|byte| *byte == 0) {
        Some(end) => payload.get(..end).unwrap_or_default(),
        None => payload,
    }
}

/// A text without the blanks at its end.
pub(crate) fn unpadded(payload: &[u8]) -> &[u8] {
    let end = payload.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    payload.get(..end).unwrap_or_default()
}

/// The first eight bytes as a number that is as ordered as they are, missing ones zero.
#[inline]
fn first_bytes(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests;
