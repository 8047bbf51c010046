//! Columns: the rows of `pg_attribute`, as far as reading tuples needs them.
//!
//! Source: `src/include/catalog/pg_attribute.h`, PostgreSQL 14 to 18.

use std::fmt;

use pagemill_format::tuple::{AttributeLayout, TupleLayout};
use pagemill_format::varlena::{self, Varlena};
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::array;

use crate::system_table::Row;

/// Whether a column's values are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    /// An ordinary column.
    No,
    /// Computed when written, and stored.
    Stored,
    /// Computed when read; nothing is stored (18 on).
    Virtual,
}

/// A column of a table, dropped ones included.
#[derive(Debug, Clone)]
pub struct Column {
    /// `attname`, in the database's encoding.
    pub name: Box<[u8]>,
    /// `atttypid`, 0 once dropped.
    pub type_oid: Oid,
    /// `attlen` and `attalign`.
    pub layout: AttributeLayout,
    /// `attisdropped`: its bytes are still in old tuples.
    pub dropped: bool,
    /// `attgenerated`.
    pub generated: Generated,
    /// `atttypmod`, -1 for none.
    pub type_modifier: i32,
    /// `attstorage`: `p`lain, `e`xternal, `x` extended, `m`ain.
    pub storage: u8,
    /// `attcompression`: `p` pglz, `l` lz4, 0 for the setting `default_toast_compression`.
    pub compression: u8,
    /// `attnotnull`.
    pub not_null: bool,
    /// `atthasdef`: it has a default, or is generated.
    pub has_default: bool,
    /// `attidentity`: it is filled from a sequence.
    pub is_identity: bool,
    /// What tuples older than the column have in it, as it would lie in a tuple; `None` for NULL.
    pub missing: Option<Box<[u8]>>,
}

impl Column {
    /// The columns of `pg_attribute` a [`Column`] is made of, in the order of [`Column::read`].
    pub(crate) const SOURCE: [&'static str; 16] = [
        "attrelid",
        "attnum",
        "attname",
        "atttypid",
        "attlen",
        "attalign",
        "attisdropped",
        "attgenerated",
        "atthasmissing",
        "attmissingval",
        "atttypmod",
        "attstorage",
        "attcompression",
        "attnotnull",
        "atthasdef",
        "attidentity",
    ];

    /// Reads a row of `pg_attribute`: relation, attribute number, column.
    pub(crate) fn read(row: &Row<'_>) -> Result<(Oid, i16, Self), FormatError> {
        let layout = AttributeLayout::new(row.i16(4)?, row.byte(5)?)?;
        let generated = match row.byte(7)? {
            b's' => Generated::Stored,
            b'v' => Generated::Virtual,
            _ => Generated::No,
        };
        let missing = match row.raw(9).filter(|_| row.byte(8).is_ok_and(|has| has != 0)) {
            Some(raw) => Some(missing_value(raw, layout)?),
            None => None,
        };
        let column = Self {
            name: row.name(2)?,
            type_oid: row.oid(3)?,
            layout,
            dropped: row.byte(6)? != 0,
            generated,
            type_modifier: row.i32(10)?,
            storage: row.byte(11)?,
            compression: row.byte(12)?,
            not_null: row.byte(13)? != 0,
            has_default: row.byte(14)? != 0,
            is_identity: row.byte(15)? != 0,
            missing,
        };
        Ok((row.oid(0)?, row.i16(1)?, column))
    }

    /// The name for messages.
    pub fn display_name(&self) -> String {
        crate::relation::printable(&self.name)
    }
}

/// `attmissingval` is an array of one element, the value.
fn missing_value(raw: &[u8], layout: AttributeLayout) -> Result<Box<[u8]>, FormatError> {
    let mut payload = Vec::new();
    match Varlena::parse(raw)? {
        Varlena::Plain(bytes) => payload.extend_from_slice(bytes),
        Varlena::Compressed { raw_bytes, method, data } => {
            varlena::decompress(method, data, raw_bytes, &mut payload)?;
        }
        Varlena::External(_) => {
            return Err(FormatError::corrupt("attmissingval", 0, "a TOAST pointer"));
        }
    }
    Ok(array::single_element(&payload, layout)?.into())
}

/// The layout of tuples with these columns.
pub fn tuple_layout(columns: &[Column]) -> TupleLayout {
    TupleLayout::new(columns.iter().map(|c| c.layout).collect())
}

/// Puts columns in the order of their numbers; system columns (numbers below 1) are left out.
/// From here on a column's place is its number, so a gap would shift all that follow.
///
/// # Errors
/// The first number, from 1 on, that is missing or there twice.
pub(crate) fn in_order(mut numbered: Vec<(i16, Column)>) -> Result<Vec<Column>, NumberFault> {
    numbered.retain(|(number, _)| *number > 0);
    numbered.sort_by_key(|(number, _)| *number);
    for (&(number, _), expected) in numbered.iter().zip(1..) {
        if number > expected {
            return Err(NumberFault::Missing(expected));
        }
        if number < expected {
            return Err(NumberFault::Doubled(number));
        }
    }
    Ok(numbered.into_iter().map(|(_, column)| column).collect())
}

/// What is wrong with the numbers of a relation's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// No row of `pg_attribute` has this number, and one has a higher number.
    Missing(i16),
    /// Several visible rows of `pg_attribute` have this number.
    Doubled(i16),
}

impl fmt::Display for NumberFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(number) => write!(f, "no row for column {number}"),
            Self::Doubled(number) => write!(f, "more than one row for column {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(numbers: &[i16]) -> Vec<(i16, Column)> {
        let column = |&number: &i16| {
            let column = Column {
                name: number.to_string().into_bytes().into(),
                type_oid: Oid(23),
                layout: AttributeLayout { len: 4, align: 4 },
                dropped: false,
                generated: Generated::No,
                type_modifier: -1,
                storage: b'p',
                compression: 0,
                not_null: false,
                has_default: false,
                is_identity: false,
                missing: None,
            };
            (number, column)
        };
        numbers.iter().map(column).collect()
    }

    fn ordered(numbers: &[i16]) -> Result<Vec<String>, NumberFault> {
        Ok(in_order(numbered(numbers))?.iter().map(Column::display_name).collect())
    }

    #[test]
    fn columns_go_by_their_numbers_and_system_columns_are_none() {
        assert_eq!(ordered(&[3, -1, 1, -6, 2]).unwrap(), ["1", "2", "3"]);
        assert!(ordered(&[-1, -6]).unwrap().is_empty());
    }

    #[test]
    fn a_gap_or_a_number_that_is_there_twice_is_found() {
        assert_eq!(ordered(&[1, 3]), Err(NumberFault::Missing(2)));
        assert_eq!(ordered(&[2, 3]), Err(NumberFault::Missing(1)));
        assert_eq!(ordered(&[1, 2, 2, 3]), Err(NumberFault::Doubled(2)));
    }
}
