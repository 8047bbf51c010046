//! BRIN indexes, which tell of each range of blocks what values it can have, and so which ranges have no row with a value.
//!
//! ```text
//! a summary:  what is kept of column 1 | what is kept of column 2 | ...
//! minmax: lowest, highest      minmax_multi: a list of such      bloom: a filter      inclusion: what has all in it, two booleans
//! ```
//!
//! The values lie one behind the other, so that a column is found only where it is known how all before it are kept. One whose order, or whose
//! hash function, is not known here is stepped over, and so is one of an inclusion class, but of addresses.
//!
//! Invariant: an index that is given out was built to the end, over all rows of its table.
//!
//! Source: `brin_minmax_opcinfo`, `brin_minmax_multi_opcinfo`, `brin_bloom_opcinfo` and `brin_inclusion_opcinfo` in
//! `src/backend/access/brin/`, `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::builtin::{BuiltinType, oid};
use pagemill_types::index_key_order::KeyColumn;
use pagemill_types::value_hash::ValueHash;

use crate::database::{Database, FIRST_NORMAL_OID};
use crate::error::Result;
use crate::index::BRIN_HANDLER;
use crate::index_search::{OperatorClass, OperatorClasses};
use crate::insert_rules::{BuildRow, position};
use crate::relation::{ClassRow, Relation};

/// How the names of operator classes end, and what they keep.
const CLASS_NAMES: [(&[u8], SummaryKind); 4] = [
    (b"_minmax_ops", SummaryKind::Extent),
    (b"_minmax_multi_ops", SummaryKind::Extents),
    (b"_bloom_ops", SummaryKind::Filter),
    (b"_inclusion_ops", SummaryKind::Inclusion),
];

/// The bytes of a `name`.
const NAME_BYTES: i16 = 64;

/// Such an index.
#[derive(Debug, Clone)]
pub struct RangeIndex {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// Its own columns and files.
    pub relation: Relation,
    /// Its leading columns, as far as their values can be found.
    pub columns: Vec<RangeColumn>,
    /// How many columns it has.
    pub column_count: usize,
}

/// A column of it.
#[derive(Debug, Clone)]
pub struct RangeColumn {
    /// How the values of the column are stored.
    pub layout: AttributeLayout,
    /// What is kept of them.
    pub kind: SummaryKind,
    /// The column's position in the table, from 0, and what a summary is asked by, where both are known.
    pub key: Option<(usize, SummaryKey)>,
    /// The collation that its texts are in the order of; `None` where that is the order of their bytes, and for all else.
    pub collation: Option<Oid>,
}

/// What is kept of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// The lowest and the highest.
    Extent,
    /// Several such, and single values.
    Extents,
    /// A filter of their hashes.
    Filter,
    /// A value that has all of them in it.
    Inclusion,
}

/// What a summary is asked by.
#[derive(Debug, Clone)]
pub enum SummaryKey {
    /// The order of values.
    Order(KeyColumn),
    /// Their hash.
    Hash(ValueHash),
    /// The network they are in.
    Network,
}

impl RangeColumn {
    /// What is stored of it, one value behind the other.
    pub fn stored(&self) -> impl Iterator<Item = AttributeLayout> {
        const SUMMARY: AttributeLayout = AttributeLayout { len: -1, align: 4 };
        const BOOLEAN: AttributeLayout = AttributeLayout { len: 1, align: 1 };
        let (own, boolean) = (Some(self.layout), Some(BOOLEAN));
        let stored = match self.kind {
            SummaryKind::Extent => [own, own, None],
            SummaryKind::Extents | SummaryKind::Filter => [Some(SUMMARY), None, None],
            SummaryKind::Inclusion => [own, boolean, boolean],
        };
        stored.into_iter().flatten()
    }

    /// Whether it tells of bounds, and not of single values only.
    pub fn has_order(&self) -> bool {
        matches!(self.key, Some((_, SummaryKey::Order(_))))
    }
}

impl Database {
    /// An index as one that tells of ranges, if it is.
    pub(crate) fn range_index(
        &self,
        table: &Relation,
        row: &BuildRow,
        class: &ClassRow,
        classes: &OperatorClasses,
    ) -> Result<Option<RangeIndex>> {
        let is_whole = row.is_valid && !row.has_predicate;
        if !is_whole || self.index_handler(class)? != Some(BRIN_HANDLER) {
            return Ok(None);
        }
        let relation = self.relation(class)?;
        let mut columns = Vec::new();
        for (at, own) in relation.columns.iter().enumerate() {
            match self.range_column(table, row, (at, own.layout), classes)? {
                Some(column) => columns.push(column),
                None => break,
            }
        }
        let column_count = relation.columns.len();
        let is_known = columns.iter().any(|column| column.key.is_some());
        Ok(is_known.then(|| RangeIndex { class: class.clone(), relation, columns, column_count }))
    }

    /// `None` for one of which it is not known what is kept.
    fn range_column(
        &self,
        table: &Relation,
        row: &BuildRow,
        (at, layout): (usize, AttributeLayout),
        classes: &OperatorClasses,
    ) -> Result<Option<RangeColumn>> {
        let class = row.operator_classes.get(at).copied().filter(|oid| *oid < FIRST_NORMAL_OID);
        let Some(class) = class.and_then(|oid| classes.get(&oid)) else { return Ok(None) };
        let named = CLASS_NAMES.iter().find(|(end, _)| class.name.ends_with(end));
        let Some((_, kind)) = named.copied() else { return Ok(None) };
        let mut found = RangeColumn { layout, kind, key: None, collation: None };
        let number = row.columns.get(at).copied().unwrap_or(0);
        let Some(column) = table.columns.get(position(number)).filter(|_| number > 0) else {
            return Ok(Some(found));
        };
        let collation = row.collations.get(at).copied().unwrap_or(Oid::INVALID);
        let key = match kind {
            SummaryKind::Extent | SummaryKind::Extents => {
                // A name is kept in all its 64 bytes, zeros included, which constants and their order do not have.
                if layout.len == NAME_BYTES {
                    return Ok(Some(found));
                }
                let order = self.key_order(class, column.type_oid, Some(collation))?.ok();
                order.map(|(order, by)| {
                    found.collation = by;
                    let (descending, nulls_first) = (false, false);
                    SummaryKey::Order(KeyColumn { layout, order, descending, nulls_first })
                })
            }
            SummaryKind::Filter => self.key_hash(class, collation)?.map(SummaryKey::Hash),
            SummaryKind::Inclusion => (class.input == oid::INET).then_some(SummaryKey::Network),
        };
        found.key = key.map(|key| (position(number), key));
        Ok(Some(found))
    }

    /// The hash function of an operator class; `None` where it is not known here, or does not hash the bytes of texts.
    fn key_hash(&self, class: &OperatorClass, collation: Oid) -> Result<Option<ValueHash>> {
        let is_text = BuiltinType::by_oid(class.input).is_some_and(BuiltinType::is_collated);
        if is_text && !self.is_deterministic(collation)? {
            return Ok(None);
        }
        Ok(ValueHash::of_type(class.input))
    }
}
