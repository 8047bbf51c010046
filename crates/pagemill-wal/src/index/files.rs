//! [`Files`]: what became of relations' files, of databases' directories and of relation maps.
//!
//! | record | here |
//! | --- | --- |
//! | `SMGR_CREATE` | the fork is there, what lies in its file is kept |
//! | `SMGR_TRUNCATE` | the forks are cut |
//! | commit or abort with dropped files | all forks of each are gone |
//! | database `CREATE_WAL_LOG` | an empty directory, which records fill |
//! | database `CREATE_FILE_COPY` | a directory like another one as that is by then, with all that was done to its files; what was done to it before is gone |
//! | database `DROP` | its directories are gone, with all forks in them |
//! | `RELMAP_UPDATE` | the map's file |
//! | tablespace `CREATE` | a tablespace whose directory may not be there yet |
//!
//! Sources: `smgr_redo` in `src/backend/catalog/storage.c`, `dbase_redo` in `src/backend/commands/dbcommands.c`,
//! `relmap_redo` in `src/backend/utils/cache/relmapper.c`, `xl_tblspc_create_rec` in `src/include/commands/tablespace.h`,
//! PostgreSQL 14 to 18.

use std::collections::{BTreeMap, BTreeSet};

use pagemill_format::wal::{
    CopiedDatabase, DatabaseChange, Record, RelFileLocator, RelationMapUpdate, ResourceManager,
    StorageFile, Truncation,
};
use pagemill_format::{Fork, Lsn, Oid, Result};

use super::entry::ForkKey;
use super::{WalIndexBuilder, directory_of};

/// The directory of a database in one tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseDirectory {
    /// The tablespace.
    pub tablespace: Oid,
    /// The database; 0 for the directory of shared relations.
    pub database: Oid,
}

/// What became of a database's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryLife {
    /// It was made, empty.
    Made,
    /// It was made by copying another one's files.
    Copied {
        /// That one.
        source: DatabaseDirectory,
    },
    /// It was removed.
    Dropped,
}

/// What became of directories and maps.
#[derive(Debug, Clone, Default)]
pub struct Files {
    directories: BTreeMap<DatabaseDirectory, DirectoryLife>,
    maps: BTreeMap<DatabaseDirectory, Vec<u8>>,
    /// Made in the range.
    tablespaces: BTreeSet<Oid>,
    /// Databases that began empty, or as copies of such.
    made_databases: BTreeSet<Oid>,
    /// Of a directory that was copied: from which one, and of that the same if it was copied before.
    copies: BTreeMap<DatabaseDirectory, Vec<DirectoryCopy>>,
    /// Bytes of maps and of lists of copies.
    list_bytes: usize,
}

/// A directory's files were copied.
#[derive(Debug, Clone, Copy)]
struct DirectoryCopy {
    from: DatabaseDirectory,
    /// Where the record begins.
    at: Lsn,
}

/// A tablespace's directory is made, and linked.
const TABLESPACE_MADE: u8 = 0x00;

impl Files {
    /// What became of a database's directory; `None` when nothing did.
    pub fn directory(&self, directory: DatabaseDirectory) -> Option<DirectoryLife> {
        self.directories.get(&directory).copied()
    }

    /// The directories that something was done to.
    pub fn directories(&self) -> impl Iterator<Item = (DatabaseDirectory, DirectoryLife)> + '_ {
        self.directories.iter().map(|(directory, life)| (*directory, *life))
    }

    /// The relation map that was written last for a directory: the whole file.
    pub fn relation_map(&self, directory: DatabaseDirectory) -> Option<&[u8]> {
        self.maps.get(&directory).map(Vec::as_slice)
    }

    /// The directory that a record at `lsn` names for what now lies in `directory`: before it was copied, that which was.
    pub fn origin(&self, directory: DatabaseDirectory, lsn: Lsn) -> DatabaseDirectory {
        let copies = self.copies.get(&directory).into_iter().flatten();
        copies.take_while(|copy| lsn < copy.at).last().map_or(directory, |copy| copy.from)
    }

    /// The directory whose files lay there when the WAL begins: that which was copied first.
    pub fn first_origin(&self, directory: DatabaseDirectory) -> DatabaseDirectory {
        self.origin(directory, Lsn(0))
    }

    /// True for a tablespace that the WAL makes: what is not in its files was written after.
    pub fn makes_tablespace(&self, tablespace: Oid) -> bool {
        self.tablespaces.contains(&tablespace)
    }

    /// True for a database all of whose files the WAL makes: it began empty, or as a copy of one that did.
    pub fn has_all_of(&self, database: Oid) -> bool {
        self.made_databases.contains(&database)
    }

    /// What is kept in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        const DIRECTORY_BYTES: usize = 256;
        let (maps, databases) = (self.maps.len(), self.made_databases.len());
        let directories = self.directories.len() + maps + self.tablespaces.len() + databases;
        self.list_bytes + directories * DIRECTORY_BYTES
    }

    fn count_lists(&mut self) {
        let maps: usize = self.maps.values().map(Vec::len).sum();
        let copies: usize = self.copies.values().map(Vec::len).sum();
        self.list_bytes = maps + copies * size_of::<DirectoryCopy>();
    }

    pub(super) fn tablespace(&mut self, record: &Record<'_>) {
        let oid = record.main_data.first_chunk().map(|bytes| Oid(u32::from_le_bytes(*bytes)));
        if record.header.kind() == TABLESPACE_MADE {
            self.tablespaces.extend(oid);
        }
    }

    pub(super) fn map_update(&mut self, record: &Record<'_>) -> Result<()> {
        let RelationMapUpdate { database, tablespace, map } =
            RelationMapUpdate::parse(record.main_data)?;
        self.maps.insert(DatabaseDirectory { tablespace, database }, map.to_vec());
        self.count_lists();
        Ok(())
    }

    fn begin(&mut self, directory: DatabaseDirectory, life: DirectoryLife) {
        self.maps.remove(&directory);
        self.copies.remove(&directory);
        self.directories.insert(directory, life);
    }

    fn copy(&mut self, from: DatabaseDirectory, to: DatabaseDirectory, at: Lsn) {
        // Its directories in other tablespaces come with no record of their own: what is true of one is true of all.
        match self.made_databases.contains(&from.database) {
            true => self.made_databases.insert(to.database),
            false => self.made_databases.remove(&to.database),
        };
        let before = self.copies.get(&from).cloned().unwrap_or_default();
        self.begin(to, DirectoryLife::Copied { source: from });
        self.copies.insert(to, std::iter::once(DirectoryCopy { from, at }).chain(before).collect());
        if let Some(map) = self.maps.get(&from).cloned() {
            self.maps.insert(to, map);
        }
        self.count_lists();
    }
}

impl WalIndexBuilder {
    pub(super) fn add_storage(&mut self, record: &Record<'_>) -> Result<()> {
        match record.header.kind() {
            ResourceManager::SMGR_CREATE => {
                let StorageFile { locator, fork } = StorageFile::parse(record.main_data)?;
                self.forks.entry(ForkKey { locator, fork }).or_default().create();
            }
            ResourceManager::SMGR_TRUNCATE => {
                let cut = Truncation::parse(record.main_data)?;
                let next_run = self.spill.next_run();
                if cut.forks & Truncation::MAIN_FORK != 0 {
                    let key = ForkKey { locator: cut.locator, fork: Fork::Main };
                    self.forks.entry(key).or_default().truncate(cut.blocks.0, next_run);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn drop_relation(&mut self, locator: RelFileLocator) {
        let next_run = self.spill.next_run();
        for fork in Fork::ALL {
            self.forks.entry(ForkKey { locator, fork }).or_default().drop_file(next_run);
        }
    }

    pub(super) fn add_database(&mut self, lsn: Lsn, change: DatabaseChange) -> crate::Result<()> {
        match change {
            DatabaseChange::Made { database, tablespace } => {
                let made = DatabaseDirectory { tablespace, database };
                self.files.begin(made, DirectoryLife::Made);
                self.files.made_databases.insert(database);
            }
            DatabaseChange::Copied(copied) => {
                let CopiedDatabase { database, tablespace, .. } = copied;
                let target = DatabaseDirectory { tablespace, database };
                let source = DatabaseDirectory {
                    tablespace: copied.source_tablespace,
                    database: copied.source_database,
                };
                self.copy_forks(source, target)?;
                self.files.copy(source, target, lsn);
            }
            DatabaseChange::Dropped { database, tablespaces } => {
                for tablespace in tablespaces {
                    let dropped = DatabaseDirectory { tablespace, database };
                    self.forget_forks_of(dropped);
                    self.files.begin(dropped, DirectoryLife::Dropped);
                }
            }
        }
        Ok(())
    }

    /// What was done to the files of one directory was done to those of its copy, and nothing else.
    fn copy_forks(&mut self, from: DatabaseDirectory, to: DatabaseDirectory) -> crate::Result<()> {
        let of_source = self.forks.iter().filter(|(key, _)| directory_of(key.locator) == from);
        let bytes: usize = of_source.map(|(_, fork)| fork.entry_bytes()).sum();
        // Twice as many entries may be too many.
        let is_spilled = self.spill.next_run() > 0
            || self.entry_bytes + bytes > self.limits.entries(self.fixed_bytes());
        if is_spilled {
            self.spill.write(&mut self.forks)?;
            self.count_entries();
        }
        self.forget_forks_of(to);
        let of_source = self.forks.iter().filter(|(key, _)| directory_of(key.locator) == from);
        let copies: Vec<_> = of_source.map(|(key, history)| (*key, history.copy())).collect();
        for (ForkKey { locator, fork }, history) in copies {
            let DatabaseDirectory { tablespace, database } = to;
            let locator = RelFileLocator { tablespace, database, number: locator.number };
            self.entry_bytes += history.entry_bytes();
            self.forks.insert(ForkKey { locator, fork }, history);
        }
        if is_spilled { self.spill.copy(&self.forks, from, to) } else { Ok(()) }
    }

    /// What was done to files of a directory matters no more: they were all removed, or replaced.
    fn forget_forks_of(&mut self, directory: DatabaseDirectory) {
        self.forks.retain(|key, _| directory_of(key.locator) != directory);
        self.spill.forget(directory);
    }
}
