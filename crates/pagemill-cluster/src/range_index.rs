//! BRIN indexes that keep the lowest and the highest value of each range of blocks, and so tell which ranges have no row with a value.
//!
//! ```text
//! a summary:  lowest, highest of column 1 | lowest, highest of column 2 | ...
//! ```
//!
//! Values lie one behind the other, so that a column is found only where all before it are kept in that way. One whose order is not known
//! here is stepped over.
//!
//! Invariant: an index that is given out was built to the end, over all rows of its table.
//!
//! Source: `brin_minmax_opcinfo` in `src/backend/access/brin/brin_minmax.c`, `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::index_key_order::KeyColumn;

use crate::database::{Database, FIRST_NORMAL_OID};
use crate::error::Result;
use crate::index::BRIN_HANDLER;
use crate::index_search::OperatorClasses;
use crate::insert_rules::{BuildRow, position};
use crate::relation::{ClassRow, Relation};

/// How the names end of the operator classes that keep the lowest and the highest value.
const CLASS_NAMES: &[u8] = b"_minmax_ops";

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
    /// How its values are stored.
    pub layout: AttributeLayout,
    /// The column's position in the table, from 0, and its order, where both are known.
    pub key: Option<(usize, KeyColumn)>,
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

    /// `None` for one that is not kept by its lowest and highest value.
    fn range_column(
        &self,
        table: &Relation,
        row: &BuildRow,
        (at, layout): (usize, AttributeLayout),
        classes: &OperatorClasses,
    ) -> Result<Option<RangeColumn>> {
        let class = row.operator_classes.get(at).copied().filter(|oid| *oid < FIRST_NORMAL_OID);
        let class = class.and_then(|oid| classes.get(&oid));
        let Some(class) = class.filter(|class| class.name.ends_with(CLASS_NAMES)) else {
            return Ok(None);
        };
        let number = row.columns.get(at).copied().unwrap_or(0);
        let Some(column) = table.columns.get(position(number)).filter(|_| number > 0) else {
            return Ok(Some(RangeColumn { layout, key: None }));
        };
        let collation = row.collations.get(at).copied().unwrap_or(Oid::INVALID);
        // A name is kept in all its 64 bytes, zeros included, which constants and their order do not have.
        if layout.len == NAME_BYTES {
            return Ok(Some(RangeColumn { layout, key: None }));
        }
        let order = self.key_order(class, column.type_oid, Some(collation))?.ok();
        let key = |order| KeyColumn { layout, order, descending: false, nulls_first: false };
        Ok(Some(RangeColumn { layout, key: order.map(|order| (position(number), key(order))) }))
    }
}
