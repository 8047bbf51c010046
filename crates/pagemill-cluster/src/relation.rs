//! Relations: the rows of `pg_class`, and where their files are.
//!
//! Source: `src/include/catalog/pg_class.h`, `GetRelationPath` in `src/common/relpath.c`,
//! PostgreSQL 14 to 18.

use std::path::PathBuf;

use pagemill_format::tuple::TupleLayout;
use pagemill_format::{Error as FormatError, Oid};

use crate::column::Column;
use crate::system_table::Row;

/// What a relation is (`relkind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelationKind {
    /// An ordinary table, catalogs among them.
    Table,
    /// A table that has partitions and no storage of its own.
    PartitionedTable,
    /// A materialized view.
    MaterializedView,
    /// A sequence.
    Sequence,
    /// Where a table's large values are kept.
    Toast,
    /// An index.
    Index,
    /// An index that has partitions and no storage of its own.
    PartitionedIndex,
    /// A view.
    View,
    /// A foreign table.
    ForeignTable,
    /// A composite type.
    CompositeType,
    /// A kind no supported version has.
    Unknown(u8),
}

impl RelationKind {
    fn from_byte(byte: u8) -> Self {
        match byte {
            b'r' => Self::Table,
            b'p' => Self::PartitionedTable,
            b'm' => Self::MaterializedView,
            b'S' => Self::Sequence,
            b't' => Self::Toast,
            b'i' => Self::Index,
            b'I' => Self::PartitionedIndex,
            b'v' => Self::View,
            b'f' => Self::ForeignTable,
            b'c' => Self::CompositeType,
            other => Self::Unknown(other),
        }
    }

    /// The name PostgreSQL's own listings use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::PartitionedTable => "partitioned table",
            Self::MaterializedView => "materialized view",
            Self::Sequence => "sequence",
            Self::Toast => "TOAST table",
            Self::Index => "index",
            Self::PartitionedIndex => "partitioned index",
            Self::View => "view",
            Self::ForeignTable => "foreign table",
            Self::CompositeType => "composite type",
            Self::Unknown(_) => "relation of unknown kind",
        }
    }

    /// True for relations that have files.
    pub fn has_files(self) -> bool {
        self.has_rows() || self == Self::Index
    }

    /// True for relations whose rows lie in files of their own.
    pub fn has_rows(self) -> bool {
        matches!(self, Self::Table | Self::MaterializedView | Self::Sequence | Self::Toast)
    }
}

/// How long a relation's contents last (`relpersistence`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Logged, kept over a crash.
    Permanent,
    /// Not logged, emptied after a crash.
    Unlogged,
    /// Of one session only; what is found was left over.
    Temporary,
}

/// A row of `pg_class`.
#[derive(Debug, Clone)]
pub struct ClassRow {
    /// The relation's OID.
    pub oid: Oid,
    /// `relname`.
    pub name: Box<[u8]>,
    /// `relnamespace`.
    pub namespace: Oid,
    /// `relam`, the access method; 0 where there is none.
    pub access_method: Oid,
    /// `relfilenode`; 0 for mapped relations.
    pub filenode: u32,
    /// `reltablespace`; 0 for the database's own.
    pub tablespace: Oid,
    /// `relpages`, the size in blocks at the last vacuum or analyze.
    pub pages: u32,
    /// `reltuples`, the estimated rows then; negative when never counted.
    pub tuples: f32,
    /// `reltoastrelid`; 0 without one.
    pub toast: Oid,
    /// `relisshared`: lies in the global tablespace.
    pub shared: bool,
    /// `relpersistence`.
    pub persistence: Persistence,
    /// `relkind`.
    pub kind: RelationKind,
    /// `relispartition`.
    pub is_partition: bool,
    /// `relnatts`, how many columns it has, dropped ones included.
    pub column_count: i16,
    /// `relispopulated`: false for a materialized view that was never filled.
    pub is_populated: bool,
}

impl ClassRow {
    pub(crate) const SOURCE: [&'static str; 15] = [
        "oid",
        "relname",
        "relnamespace",
        "relam",
        "relfilenode",
        "reltablespace",
        "relpages",
        "reltuples",
        "reltoastrelid",
        "relisshared",
        "relpersistence",
        "relkind",
        "relispartition",
        "relnatts",
        "relispopulated",
    ];

    pub(crate) fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            oid: row.oid(0)?,
            name: row.name(1)?,
            namespace: row.oid(2)?,
            access_method: row.oid(3)?,
            filenode: row.oid(4)?.0,
            tablespace: row.oid(5)?,
            pages: row.oid(6)?.0,
            tuples: row.f32(7)?,
            toast: row.oid(8)?,
            shared: row.byte(9)? != 0,
            persistence: match row.byte(10)? {
                b'u' => Persistence::Unlogged,
                b't' => Persistence::Temporary,
                _ => Persistence::Permanent,
            },
            kind: RelationKind::from_byte(row.byte(11)?),
            is_partition: row.byte(12)? != 0,
            column_count: row.i16(13)?,
            is_populated: row.byte(14)? != 0,
        })
    }
}

/// A relation whose rows can be read.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    /// The name of its schema.
    pub schema: Box<[u8]>,
    /// Its files, without fork and segment.
    pub base: PathBuf,
    /// Its columns, dropped ones included.
    pub columns: Vec<Column>,
    /// The shape of its tuples.
    pub layout: TupleLayout,
}

impl Relation {
    /// `schema.name`, for messages.
    pub fn display_name(&self) -> String {
        display_name(&self.schema, &self.class.name)
    }
}

/// `schema.name`, for messages: on one line, whatever characters it has.
pub fn display_name(schema: &[u8], name: &[u8]) -> String {
    format!("{}.{}", printable(schema), printable(name))
}

/// A name for messages, with its control characters escaped: it cannot break a line or move the cursor.
pub fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let escaped = name.chars().map(|ch| match ch.is_control() {
        true => ch.escape_default().to_string(),
        false => ch.to_string(),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(display_name(b"a\nb", "größe\x1b".as_bytes()), "a\\nb.größe\\u{1b}");
    }
}
