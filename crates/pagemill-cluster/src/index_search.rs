//! The indexes of a table that can be searched by value, and why others cannot.
//!
//! An index can be searched by its leading key columns, up to the first whose order is not known here: an operator class that is
//! no type's default, a type without an order, or a collation whose order a library decides that may have been another one when
//! the index was built: the C library of another version than the recorded one, or ICU. What an expression among them is, and
//! which rows a partial index has, is for whoever evaluates expressions: the trees are told as they are stored.
//!
//! Invariant: an index that is given out has an entry for every row that a server's newest snapshot sees and its predicate holds
//! for, in the order told.
//!
//! Source: `src/include/catalog/pg_index.h`, `pg_opclass.h`, `match_index_to_operand` in
//! `src/backend/optimizer/path/indxpath.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::fmt;

use pagemill_format::Oid;
use pagemill_types::builtin::{BuiltinType, oid};
use pagemill_types::index_key_order::{KeyColumn, KeyOrder};
use pagemill_types::order::ValueOrder;

use crate::collations::Collation;
use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Error, Result};
use crate::insert_rules::{BuildRow, DESCENDING, NULLS_FIRST, position};
use crate::range_index::RangeIndex;
use crate::relation::{ClassRow, Relation};

/// An index that can be searched.
#[derive(Debug, Clone)]
pub struct SearchIndex {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// Its own columns and files.
    pub relation: Relation,
    /// The positions in the table of its columns, included ones at the end; `None` for an expression.
    pub positions: Vec<Option<usize>>,
    /// The leading key columns by which it can be.
    pub keys: Vec<SearchKey>,
    /// Their order.
    pub order: KeyOrder,
    /// True where they are all of its key columns, and no two rows are equal in them but for NULLs.
    pub is_unique: bool,
    /// The expressions among its columns, a stored list.
    pub expressions: Option<Vec<u8>>,
    /// The condition on the rows it has, as stored; `None` where it has all.
    pub predicate: Option<Vec<u8>>,
}

/// The name of an index, and how it can be searched or why it cannot.
pub type NamedIndex = (Box<[u8]>, Result<SearchIndex, NotSearched>);

/// The indexes of a table.
#[derive(Debug, Default)]
pub struct SearchIndexes {
    /// All of them that are not among the others.
    pub trees: Vec<NamedIndex>,
    /// Those that tell of ranges of blocks which values they have.
    pub ranges: Vec<RangeIndex>,
}

/// A key column.
#[derive(Debug, Clone, Copy)]
pub struct SearchKey {
    /// What its values are.
    pub source: KeySource,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
    /// The collation that its texts are in the order of; `None` where that is the order of their bytes, and for all else.
    pub collation: Option<Oid>,
}

/// What the values of a key column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The table's column at this position, from 0.
    Column(usize),
    /// This one of the index's expressions, from 0.
    Expression(usize),
}

/// Why an index is not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSearched {
    /// Of another access method, or a BRIN index that tells nothing that is understood here.
    AccessMethod,
    /// Not built to the end, or being dropped.
    Invalid,
    /// It has a predicate, kept out of line.
    Partial,
    /// Its first column is none of the table's, nor an expression that is stored in place.
    Expression,
    /// Its first column is in an order of an operator class that is not its type's default.
    OperatorClass,
    /// Its first column is in the order of a collation that may be another one here.
    Collation,
    /// The type of its first column has no order here.
    Type,
}

impl fmt::Display for NotSearched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AccessMethod => "of an access method that is not searched",
            Self::Invalid => "invalid",
            Self::Partial => "partial by a long predicate",
            Self::Expression => "over a long expression",
            Self::OperatorClass => "of an operator class that is not the default",
            Self::Collation => "in a collation that may sort otherwise here",
            Self::Type => "over a type whose order is not known",
        })
    }
}

/// A row of `pg_opclass`.
pub(crate) struct OperatorClass {
    pub(crate) name: Box<[u8]>,
    pub(crate) input: Oid,
    is_default: bool,
}

/// Operator classes by their OIDs.
pub(crate) type OperatorClasses = HashMap<Oid, OperatorClass>;

impl Database {
    /// The indexes of a table, each with the columns it can be searched by, or why it cannot.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn search_indexes(&self, table: &Relation) -> Result<SearchIndexes> {
        let mut rows = self.index_build_rows(table.class.oid)?;
        let mut found = SearchIndexes::default();
        if rows.is_empty() {
            return Ok(found);
        }
        rows.sort_by_key(|row| row.oid);
        let classes = self.operator_classes()?;
        for row in &rows {
            let Some(class) = self.class(row.oid) else { continue };
            match self.range_index(table, row, class, &classes)? {
                Some(index) => found.ranges.push(index),
                None => {
                    let index = self.search_index(table, row, class, &classes)?;
                    found.trees.push((class.name.clone(), index));
                }
            }
        }
        Ok(found)
    }

    fn search_index(
        &self,
        table: &Relation,
        row: &BuildRow,
        class: &ClassRow,
        classes: &OperatorClasses,
    ) -> Result<Result<SearchIndex, NotSearched>> {
        match () {
            () if !self.is_btree(class)? => return Ok(Err(NotSearched::AccessMethod)),
            () if !row.is_valid => return Ok(Err(NotSearched::Invalid)),
            () if row.has_predicate && row.predicate.is_none() => {
                return Ok(Err(NotSearched::Partial));
            }
            () => {}
        }
        let relation = self.relation(class)?;
        let (mut keys, mut columns) = (Vec::new(), Vec::new());
        for at in 0..row.key_count {
            let Some(own) = relation.columns.get(at) else { break };
            let source = key_source(table, row, (at, own.type_oid));
            match self.search_key(row, (at, source), classes)? {
                Err(cause) if at == 0 => return Ok(Err(cause)),
                Err(_) => break,
                Ok((key, order)) => {
                    let SearchKey { descending, nulls_first, .. } = key;
                    columns.push(KeyColumn { layout: own.layout, order, descending, nulls_first });
                    keys.push(key);
                }
            }
        }
        let is_unique = row.is_unique && keys.len() == row.key_count;
        let (class, order) = (class.clone(), KeyOrder::new(columns));
        let place = |number: &i16| (*number > 0).then(|| position(*number));
        let positions = row.columns.iter().map(place).collect();
        let (expressions, predicate) = (row.expressions.clone(), row.predicate.clone());
        Ok(Ok(SearchIndex {
            class,
            relation,
            positions,
            keys,
            order,
            is_unique,
            expressions,
            predicate,
        }))
    }

    fn search_key(
        &self,
        row: &BuildRow,
        (at, source): (usize, Option<(KeySource, Oid)>),
        classes: &OperatorClasses,
    ) -> Result<Result<(SearchKey, ValueOrder), NotSearched>> {
        let Some((source, type_oid)) = source else { return Ok(Err(NotSearched::Expression)) };
        let class = row.operator_classes.get(at).copied().filter(|oid| *oid < FIRST_NORMAL_OID);
        let Some(class) = class.and_then(|oid| classes.get(&oid)) else {
            return Ok(Err(NotSearched::OperatorClass));
        };
        let by_bytes = class.name.ends_with(b"_pattern_ops");
        if !class.is_default && !by_bytes {
            return Ok(Err(NotSearched::OperatorClass));
        }
        let collation = row.collations.get(at).copied().unwrap_or(Oid::INVALID);
        let collation = (!by_bytes).then_some(collation);
        let (order, collation) = match self.key_order(class, type_oid, collation)? {
            Ok(found) => found,
            Err(cause) => return Ok(Err(cause)),
        };
        let options = row.options.get(at).copied().unwrap_or(0);
        let key = SearchKey {
            source,
            descending: options & DESCENDING != 0,
            nulls_first: options & NULLS_FIRST != 0,
            collation,
        };
        Ok(Ok((key, order)))
    }

    /// The order of an operator class for a column of this type, and the collation that texts have it by if not their bytes decide.
    /// `collation` is that of texts which the class does not compare as bytes.
    pub(crate) fn key_order(
        &self,
        class: &OperatorClass,
        column: Oid,
        collation: Option<Oid>,
    ) -> Result<Result<(ValueOrder, Option<Oid>), NotSearched>> {
        let is_text = BuiltinType::by_oid(class.input).is_some_and(BuiltinType::is_collated);
        let texts = match collation.filter(|_| is_text) {
            Some(collation) => self.certain_order(collation)?,
            None => Some(Collation::Bytes),
        };
        let Some(texts) = texts else { return Ok(Err(NotSearched::Collation)) };
        let by = collation.filter(|_| texts != Collation::Bytes);
        let of = if class.input == oid::ANYENUM { column } else { class.input };
        match self.value_order(of, Some(&texts)) {
            Ok(order) => Ok(Ok((order, by))),
            // A locale that is not installed here.
            Err(Error::Refused(_)) if by.is_some() => Ok(Err(NotSearched::Collation)),
            Err(Error::Refused(_)) => Ok(Err(NotSearched::Type)),
            Err(other) => Err(other),
        }
    }

    fn operator_classes(&self) -> Result<OperatorClasses> {
        let mut found = HashMap::new();
        let wanted = ["oid", "opcname", "opcintype", "opcdefault"];
        self.scan_any(catalog::PG_OPCLASS, &wanted, |row| {
            let (name, input, is_default) = (row.name(1)?, row.oid(2)?, row.byte(3)? != 0);
            found.insert(row.oid(0)?, OperatorClass { name, input, is_default });
            Ok(())
        })?;
        Ok(found)
    }
}

/// What a key column of an index has the values of, and their type; `own` is the type of the index's column.
fn key_source(
    table: &Relation,
    row: &BuildRow,
    (at, own): (usize, Oid),
) -> Option<(KeySource, Oid)> {
    let number = *row.columns.get(at)?;
    if number == 0 {
        let before = row.columns.iter().take(at).filter(|number| **number == 0).count();
        return row.expressions.as_ref().map(|_| (KeySource::Expression(before), own));
    }
    let column = table.columns.get(position(number)).filter(|_| number > 0)?;
    Some((KeySource::Column(position(number)), column.type_oid))
}
