//! The records of databases: made by copying directories, made empty to be filled by page images, dropped; and the
//! relation map of one.
//!
//! | record | 14 | 15 to 18 |
//! | --- | --- | --- |
//! | directory copied | `CREATE`, 0x00 | `CREATE_FILE_COPY`, 0x00 |
//! | directory made | — | `CREATE_WAL_LOG`, 0x10 |
//! | directories removed | `DROP`, 0x10 | `DROP`, 0x20 |
//!
//! Sources: `src/include/commands/dbcommands_xlog.h`, `src/include/utils/relmapper.h`, PostgreSQL 14 to 18.

use super::commit::read_list;
use super::{Record, RecordBuilder, ResourceManager};
use crate::error::Result;
use crate::ids::{Oid, PgVersion, TransactionId};
use crate::reader::Reader;

const COPIED: u8 = 0x00;
const MADE: u8 = 0x10;
const DROPPED_IN_14: u8 = 0x10;
const DROPPED: u8 = 0x20;
const MAP_UPDATE: u8 = 0x00;

/// A directory of a database, in one tablespace, that is a copy of another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedDatabase {
    /// The new database.
    pub database: Oid,
    /// The tablespace of the copy.
    pub tablespace: Oid,
    /// The database that is copied.
    pub source_database: Oid,
    /// The tablespace of what is copied.
    pub source_tablespace: Oid,
}

impl CopiedDatabase {
    /// The record: whoever replays it copies the directory as it finds it.
    pub fn record(&self, xid: TransactionId) -> RecordBuilder<'static> {
        let oids = [self.database, self.tablespace, self.source_database, self.source_tablespace];
        of_databases(COPIED, xid, &oids)
    }
}

/// What a record does to a database's directory in one tablespace or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseChange {
    /// A directory is copied.
    Copied(CopiedDatabase),
    /// A directory is made, empty; records that follow fill it.
    Made {
        /// The database.
        database: Oid,
        /// Its tablespace.
        tablespace: Oid,
    },
    /// Directories are removed.
    Dropped {
        /// The database.
        database: Oid,
        /// The tablespaces that lose its directory.
        tablespaces: Vec<Oid>,
    },
}

impl DatabaseChange {
    /// Reads a record of the resource manager [`ResourceManager::DATABASE`]; `None` for one that is not known.
    ///
    /// # Errors
    /// Corrupt: too short.
    pub fn parse(record: &Record<'_>, version: PgVersion) -> Result<Option<Self>> {
        let mut r = Reader::new("database record", record.main_data);
        let mut oid = || r.u32().map(Oid);
        let is_14 = version == PgVersion::V14;
        Ok(Some(match record.header.kind() {
            COPIED => Self::Copied(CopiedDatabase {
                database: oid()?,
                tablespace: oid()?,
                source_database: oid()?,
                source_tablespace: oid()?,
            }),
            MADE if !is_14 => Self::Made { database: oid()?, tablespace: oid()? },
            DROPPED_IN_14 | DROPPED if is_14 == (record.header.kind() == DROPPED_IN_14) => {
                let database = oid()?;
                let tablespaces = read_list(&mut r, 4, |r| Ok(Oid(r.u32()?)))?;
                Self::Dropped { database, tablespaces }
            }
            _ => return Ok(None),
        }))
    }
}

/// A new relation map (`XLOG_RELMAP_UPDATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelationMapUpdate<'a> {
    /// The database; 0 for the map of shared catalogs.
    pub database: Oid,
    /// The database's tablespace.
    pub tablespace: Oid,
    /// The whole file.
    pub map: &'a [u8],
}

impl<'a> RelationMapUpdate<'a> {
    /// Reads the main data.
    ///
    /// # Errors
    /// Corrupt: shorter than it says.
    pub fn parse(main_data: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new("relation map record", main_data);
        let (database, tablespace, len) = (Oid(r.u32()?), Oid(r.u32()?), r.u32()?);
        Ok(Self { database, tablespace, map: r.bytes(len as usize)? })
    }
}

fn of_databases(kind: u8, xid: TransactionId, fields: &[Oid]) -> RecordBuilder<'static> {
    let data = fields.iter().flat_map(|field| field.0.to_le_bytes()).collect();
    let info = kind | ResourceManager::SPECIAL_REL_UPDATE;
    RecordBuilder::new(ResourceManager::DATABASE, info, xid).main_data(data)
}

impl RecordBuilder<'static> {
    /// The directory of a database was made, with its `PG_VERSION`; from 15 on.
    pub fn database_made(database: Oid, tablespace: Oid, xid: TransactionId) -> Self {
        of_databases(MADE, xid, &[database, tablespace])
    }

    /// The directories of a database in these tablespaces were removed.
    pub fn database_dropped(
        database: Oid,
        tablespaces: &[Oid],
        xid: TransactionId,
        version: PgVersion,
    ) -> Self {
        let kind = if version == PgVersion::V14 { DROPPED_IN_14 } else { DROPPED };
        let count = Oid(tablespaces.len() as u32);
        let fields: Vec<_> = [database, count].iter().chain(tablespaces).copied().collect();
        of_databases(kind, xid, &fields)
    }

    /// A database's relation map is now `map`, the whole file (`XLOG_RELMAP_UPDATE`).
    pub fn relation_map(database: Oid, tablespace: Oid, map: &[u8], xid: TransactionId) -> Self {
        let fields = [database.0, tablespace.0, map.len() as u32];
        let mut data: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        data.extend_from_slice(map);
        Self::new(ResourceManager::RELMAP, MAP_UPDATE, xid).main_data(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Lsn;

    fn change(record: &RecordBuilder<'_>, version: PgVersion) -> Option<DatabaseChange> {
        let bytes = record.encode(Lsn(0), version).unwrap().to_vec();
        DatabaseChange::parse(&Record::parse(&bytes, version).unwrap(), version).unwrap()
    }

    #[test]
    fn what_becomes_of_a_database_is_read_as_it_is_written_in_each_version() {
        let xid = TransactionId(800);
        let copied = CopiedDatabase {
            database: Oid(16384),
            tablespace: Oid(1663),
            source_database: Oid(1),
            source_tablespace: Oid(1664),
        };
        let spaces = [Oid(1663), Oid(17000)];
        for version in PgVersion::ALL {
            let dropped = RecordBuilder::database_dropped(Oid(16384), &spaces, xid, version);
            let tablespaces = spaces.to_vec();
            let expected = DatabaseChange::Dropped { database: Oid(16384), tablespaces };
            assert_eq!(change(&dropped, version), Some(expected));
            assert_eq!(change(&copied.record(xid), version), Some(DatabaseChange::Copied(copied)));
        }
        let made = RecordBuilder::database_made(Oid(16384), Oid(1663), xid);
        assert_eq!(
            change(&made, PgVersion::V15),
            Some(DatabaseChange::Made { database: Oid(16384), tablespace: Oid(1663) })
        );
    }
}
