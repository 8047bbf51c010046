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

use super::{RecordBuilder, ResourceManager};
use crate::ids::{Oid, PgVersion, TransactionId};

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
    use crate::wal::Record;

    fn told(record: &RecordBuilder<'_>, version: PgVersion) -> String {
        let bytes = record.encode(Lsn(0), version).unwrap().to_vec();
        let record = Record::parse(&bytes, version).unwrap();
        let kind = record.header.resource_manager.record_name(record.header.info, version);
        format!("{} {}", kind.unwrap_or_default(), record.description(version).unwrap())
    }

    #[test]
    fn each_version_has_its_numbers_for_what_becomes_of_a_database() {
        let xid = TransactionId(800);
        let copied = CopiedDatabase {
            database: Oid(16384),
            tablespace: Oid(1663),
            source_database: Oid(1),
            source_tablespace: Oid(1664),
        };
        let spaces = [Oid(1663), Oid(17000)];
        let dropped = |version| {
            told(&RecordBuilder::database_dropped(Oid(16384), &spaces, xid, version), version)
        };
        assert_eq!(
            told(&copied.record(xid), PgVersion::V14),
            "CREATE copy dir 1664/1 to 1663/16384"
        );
        assert_eq!(
            told(&copied.record(xid), PgVersion::V18),
            "CREATE_FILE_COPY copy dir 1664/1 to 1663/16384"
        );
        let made = RecordBuilder::database_made(Oid(16384), Oid(1663), xid);
        assert_eq!(told(&made, PgVersion::V15), "CREATE_WAL_LOG create dir 1663/16384");
        assert_eq!(dropped(PgVersion::V14), "DROP dir 1663/16384 17000/16384");
        assert_eq!(dropped(PgVersion::V15), "DROP dir 1663/16384 17000/16384");
        let map = RecordBuilder::relation_map(Oid(16384), Oid(1663), &[7; 512], xid);
        assert_eq!(told(&map, PgVersion::V15), "UPDATE database 16384 tablespace 1663 size 512");
    }
}
