//! Invalidation messages: what a committing transaction tells other sessions, and those of standbys, to
//! forget of what they cached of the catalogs.
//!
//! Each takes 16 bytes; what a kind has no use for is zero.
//!
//! Source: `src/include/storage/sinval.h`, PostgreSQL 14 to 18.

use super::RelFileLocator;
use crate::error::Result;
use crate::ids::Oid;
use crate::reader::Reader;

/// Bytes of a message.
pub(super) const MESSAGE_BYTES: usize = 16;
const CATALOG: i8 = -1;
const RELATION: i8 = -2;
const STORAGE: i8 = -3;
const RELATION_MAP: i8 = -4;
const SNAPSHOT: i8 = -5;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalidation {
    /// Entries of a system cache with this hash.
    CatalogCache {
        /// The number of the cache, which is another in each version.
        cache: i8,
        /// The database; 0 for a shared catalog.
        database: Oid,
        /// The hash of the key.
        hash: u32,
    },
    /// All that is cached of a catalog.
    Catalog {
        /// The database; 0 for a shared catalog.
        database: Oid,
        /// The catalog.
        catalog: Oid,
    },
    /// What is known of a relation: its row in `pg_class`, columns, indexes.
    Relation {
        /// The database; 0 for a shared relation.
        database: Oid,
        /// The relation; 0 for all of them.
        relation: Oid,
    },
    /// Open files of a relation.
    Storage {
        /// The relation's files.
        locator: RelFileLocator,
    },
    /// The relation map.
    RelationMap {
        /// The database; 0 for the shared one.
        database: Oid,
    },
    /// Snapshots of a catalog.
    Snapshot {
        /// The database; 0 for a shared catalog.
        database: Oid,
        /// The catalog.
        relation: Oid,
    },
    /// A kind that no version from 14 to 18 has.
    Unrecognized(i8),
}

impl Invalidation {
    /// Reads the next message.
    ///
    /// # Errors
    /// Corrupt: too few bytes are left.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        let mut r = Reader::new("invalidation message", r.bytes(MESSAGE_BYTES)?);
        let id = r.i8()?;
        r.align(4);
        let (first, second, third) = (Oid(r.u32()?), Oid(r.u32()?), Oid(r.u32()?));
        Ok(match id {
            0.. => Self::CatalogCache { cache: id, database: first, hash: second.0 },
            CATALOG => Self::Catalog { database: first, catalog: second },
            RELATION => Self::Relation { database: first, relation: second },
            STORAGE => Self::Storage {
                locator: RelFileLocator { tablespace: first, database: second, number: third },
            },
            RELATION_MAP => Self::RelationMap { database: first },
            SNAPSHOT => Self::Snapshot { database: first, relation: second },
            _ => Self::Unrecognized(id),
        })
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        // The two bytes behind the kind are a session's number: none, but for temporary relations.
        let no_session = if matches!(self, Self::Storage { .. }) { [0xFF; 3] } else { [0; 3] };
        let (id, fields) = match self {
            Self::CatalogCache { cache, database, hash } => (cache, [database.0, hash, 0]),
            Self::Catalog { database, catalog } => (CATALOG, [database.0, catalog.0, 0]),
            Self::Relation { database, relation } => (RELATION, [database.0, relation.0, 0]),
            Self::Storage { locator: l } => (STORAGE, [l.tablespace.0, l.database.0, l.number.0]),
            Self::RelationMap { database } => (RELATION_MAP, [database.0, 0, 0]),
            Self::Snapshot { database, relation } => (SNAPSHOT, [database.0, relation.0, 0]),
            Self::Unrecognized(id) => (id, [0; 3]),
        };
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&no_session);
        fields.iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
    }
}
