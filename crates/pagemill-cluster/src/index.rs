//! The indexes of a table: the rows of `pg_index`, and which access method is a B-tree.
//!
//! Invariant: what `indkey` says is taken as it lies; whether an index can give all rows of its
//! table is asked by [`IndexRow::is_complete`] and [`IndexRow::is_usable`], nowhere else.
//!
//! Source: `src/include/catalog/pg_index.h`, `src/include/catalog/pg_am.dat`, PostgreSQL 14 to 18.

use pagemill_format::varlena::Varlena;
use pagemill_format::{Error as FormatError, Oid};

use crate::database::{Database, catalog};
use crate::error::Result;
use crate::relation::ClassRow;
use crate::system_table::Row;

/// `bthandler` in `pg_proc`.
pub(crate) const BTREE_HANDLER: Oid = Oid(330);
/// `brinhandler`.
pub(crate) const BRIN_HANDLER: Oid = Oid(335);

/// Where the elements of an `int2vector` start: dimensions, null offset, type, length, lower bound.
const VECTOR_HEADER_BYTES: usize = 20;

const SOURCE: [&str; 8] = [
    "indexrelid",
    "indrelid",
    "indisvalid",
    "indisready",
    "indislive",
    "indkey",
    "indpred",
    "indnkeyatts",
];

/// A row of `pg_index`.
#[derive(Debug, Clone)]
pub struct IndexRow {
    /// `indexrelid`, the index.
    pub oid: Oid,
    /// `indrelid`, its table.
    pub table: Oid,
    /// `indkey`: for each of its columns the number of the table's column, or 0 for an expression.
    pub columns: Vec<i16>,
    /// `indnkeyatts`: how many of them are key columns; the others are INCLUDE columns.
    pub key_columns: i16,
    is_valid: bool,
    is_ready: bool,
    is_live: bool,
    has_predicate: bool,
}

impl IndexRow {
    fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            oid: row.oid(0)?,
            table: row.oid(1)?,
            is_valid: row.byte(2)? != 0,
            is_ready: row.byte(3)? != 0,
            is_live: row.byte(4)? != 0,
            columns: vector(row.raw(5))?,
            has_predicate: row.raw(6).is_some(),
            key_columns: row.i16(7)?,
        })
    }

    /// True when queries may use it: it was built to the end, and is not being dropped.
    pub fn is_usable(&self) -> bool {
        self.is_valid && self.is_ready && self.is_live
    }

    /// True when every row of the table has an entry: no predicate leaves any out.
    pub fn is_complete(&self) -> bool {
        !self.has_predicate
    }
}

/// An `int2vector`, which is never compressed nor short.
pub(crate) fn vector(raw: Option<&[u8]>) -> Result<Vec<i16>, FormatError> {
    let elements = match raw.map(Varlena::parse).transpose()? {
        Some(Varlena::Plain(bytes)) => bytes.get(VECTOR_HEADER_BYTES..),
        _ => None,
    };
    let Some(elements) = elements else {
        return Err(FormatError::corrupt("pg_index", 0, "indkey is no int2vector"));
    };
    Ok(elements.as_chunks::<2>().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect())
}

/// An `oidvector`, as [`vector`].
pub(crate) fn oid_vector(raw: Option<&[u8]>) -> Result<Vec<Oid>, FormatError> {
    let elements = match raw.map(Varlena::parse).transpose()? {
        Some(Varlena::Plain(bytes)) => bytes.get(VECTOR_HEADER_BYTES..),
        _ => None,
    };
    let Some(elements) = elements else {
        return Err(FormatError::corrupt("pg_index", 0, "a column that is no oidvector"));
    };
    Ok(elements.as_chunks::<4>().0.iter().map(|bytes| Oid(u32::from_le_bytes(*bytes))).collect())
}

impl Database {
    /// The indexes of a table, in the order of `pg_index`'s file.
    ///
    /// # Errors
    /// When `pg_index` cannot be read.
    pub fn indexes_of(&self, table: Oid) -> Result<Vec<IndexRow>> {
        let mut found = Vec::new();
        self.scan(catalog::PG_INDEX, &SOURCE, |row| {
            if row.oid(1)? == table {
                found.push(IndexRow::read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The row of `pg_index` of one index.
    ///
    /// # Errors
    /// When `pg_index` cannot be read.
    pub fn index(&self, oid: Oid) -> Result<Option<IndexRow>> {
        let mut found = None;
        self.scan(catalog::PG_INDEX, &SOURCE, |row| {
            if row.oid(0)? == oid {
                found = Some(IndexRow::read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// True when the index is a B-tree: of the access method `btree`, or of another name for its
    /// handler.
    ///
    /// # Errors
    /// When `pg_am` cannot be read.
    pub fn is_btree(&self, index: &ClassRow) -> Result<bool> {
        Ok(self.index_handler(index)? == Some(BTREE_HANDLER))
    }

    /// The function that handles an index.
    ///
    /// # Errors
    /// As [`Self::is_btree`].
    pub(crate) fn index_handler(&self, index: &ClassRow) -> Result<Option<Oid>> {
        let mut found = None;
        self.scan(catalog::PG_AM, &["oid", "amhandler"], |row| {
            if row.oid(0)? == index.access_method {
                found = Some(row.oid(1)?);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `int2vector` as `pg_index` has it: one dimension, from 0.
    fn stored(elements: &[i16]) -> Vec<u8> {
        let length = 24 + 2 * elements.len() as u32;
        let words = [length << 2, 1, 0, 21, elements.len() as u32, 0];
        let mut bytes = words.map(u32::to_le_bytes).concat();
        bytes.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_columns_of_an_index_are_numbers_and_an_expression_is_none() {
        assert_eq!(vector(Some(&stored(&[3, 0, 1]))).unwrap(), [3, 0, 1]);
        assert!(vector(Some(&stored(&[]))).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_vector_is_damage() {
        for raw in [None, Some(&[][..]), Some(&[16, 0, 0, 0]), Some(&[40, 0, 0, 0, 1, 0, 0, 0])] {
            assert!(vector(raw).is_err(), "{raw:?}");
        }
    }
}
