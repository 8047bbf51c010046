//! The columns that every table has without being told: where a row stands, who made and who deleted it, which table it is of.
//!
//! ```text
//! TID, header of the tuple, relation of the scan ──► ctid xmin cmin xmax cmax tableoid
//! ```
//!
//! They stand behind a table's own columns in its scan, out of the sight of `*`. Behind them, and out of everybody's sight, there is one
//! more for each column of variable length: how its values are stored, for `pg_column_size` and its kin.
//!
//! Invariant: each is told as it is stored, as the server tells it: `cmin` and `cmax` are one field, and so may be the number of a pair.
//!
//! Source: `heap_getsysattr` in `src/backend/access/common/heaptuple.c`, `SysAtt` in `src/backend/catalog/heap.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, UInt32Array};
use pagemill_arrow::{BatchBuilder, RowHeader};
use pagemill_format::{Oid, Tid};
use pagemill_types::builtin::oid;

/// One of these columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemColumn {
    Ctid,
    Xmin,
    Cmin,
    Xmax,
    Cmax,
    Tableoid,
    /// How a value of another column is stored.
    StoredForm,
}

/// All that have names of them, in the order of their numbers.
pub(super) const SYSTEM_COLUMNS: [SystemColumn; 6] = [
    SystemColumn::Ctid,
    SystemColumn::Xmin,
    SystemColumn::Cmin,
    SystemColumn::Xmax,
    SystemColumn::Cmax,
    SystemColumn::Tableoid,
];

impl SystemColumn {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ctid => "ctid",
            Self::Xmin => "xmin",
            Self::Cmin => "cmin",
            Self::Xmax => "xmax",
            Self::Cmax => "cmax",
            Self::Tableoid => "tableoid",
            Self::StoredForm => "stored form",
        }
    }

    pub(super) fn number(self) -> i16 {
        match self {
            Self::Ctid => -1,
            Self::Xmin => -2,
            Self::Cmin => -3,
            Self::Xmax => -4,
            Self::Cmax => -5,
            Self::Tableoid => -6,
            Self::StoredForm => 0,
        }
    }

    pub(super) fn type_oid(self) -> Oid {
        match self {
            Self::Ctid => oid::TID,
            Self::Xmin | Self::Xmax => oid::XID,
            Self::Cmin | Self::Cmax => oid::CID,
            Self::Tableoid => oid::OID,
            Self::StoredForm => oid::BYTEA,
        }
    }

    /// True for what the header of a tuple has.
    pub(super) fn is_of_header(self) -> bool {
        !matches!(self, Self::Ctid | Self::Tableoid | Self::StoredForm)
    }

    /// Its values for the rows of a batch in the making, of this table; of stored forms those of the column at a place.
    pub(super) fn values(self, rows: &BatchBuilder, table: Oid, place: usize) -> ArrayRef {
        let of_header = |value: fn(&RowHeader) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(rows.headers().iter().map(value)))
        };
        match self {
            Self::Ctid => tids(rows.tids()),
            Self::Xmin => of_header(|header| header.xmin),
            Self::Xmax => of_header(|header| header.xmax),
            Self::Cmin | Self::Cmax => of_header(|header| header.cid),
            Self::StoredForm => Arc::new(rows.stored_forms(place)),
            Self::Tableoid => Arc::new(UInt32Array::from_value(table.0, rows.len())),
        }
    }
}

/// The payloads of TIDs: the block in two halves, the high one first, and the line pointer.
fn tids(tids: &[Tid]) -> ArrayRef {
    let mut payloads = BinaryBuilder::with_capacity(tids.len(), tids.len() * 6);
    for tid in tids {
        let block = tid.block.0;
        let halves = [(block >> 16) as u16, block as u16, tid.line_pointer];
        let [a, b, c] = halves.map(u16::to_le_bytes);
        payloads.append_value([a[0], a[1], b[0], b[1], c[0], c[1]]);
    }
    Arc::new(payloads.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray as _;
    use pagemill_format::BlockNumber;

    use super::*;

    #[test]
    fn the_payload_of_a_tid_has_the_high_half_of_the_block_first() {
        let made = tids(&[Tid { block: BlockNumber(65_538), line_pointer: 7 }]);
        assert_eq!(made.as_binary::<i32>().value(0), [1, 0, 2, 0, 7, 0]);
    }
}
