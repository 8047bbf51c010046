//! [`WalG`]: what WAL-G has of a cluster.
//!
//! ```text
//! basebackups_005/NAME_backup_stop_sentinel.json                 a backup that is whole
//!                 NAME/files_metadata.json                        what is as in the backup before (DeltaFiles)
//!                 NAME/tar_partitions/part_001.tar.lz4 …          its files
//! wal_005/000000010000000000000003.lz4                            WAL
//! ```
//!
//! Archives that are compressed are unpacked when a backup is opened, all of its chain, as names alone do not tell sizes.
//!
//! Invariant: an archive whose name says how it is compressed is compressed so, or refused as encrypted.
//!
//! Source: `internal/databases/postgres` of WAL-G 3.0; `utility/utility.go` for names.

mod delta_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::walg::{FileList, Sentinel};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::{Error as IoError, Storage, TarFiles};
use pagemill_wal::Compression;

use super::archive_reach::{self, ArchiveReach, Archived};
use super::{
    BackupName, BackupOwner, ListedBackup, ListedOwner, OpenBackup, major_version, moment, names,
};
use crate::backup_storage::add_archive;
use crate::error::{Error, Result};
use crate::refusal::{Refusal, RepositoryCause};
use crate::unpacked_archive::UnpackNotice;
use delta_files::{ChainLink, delta_files};

const BACKUPS: &str = "basebackups_005";
const ARCHIVE: &str = "wal_005";
const SENTINEL_SUFFIX: &str = "_backup_stop_sentinel.json";
const FILES: &str = "files_metadata.json";
const PARTITIONS: &str = "tar_partitions";
/// Begins the name of a backup, before that of its first segment.
const PREFIX: &str = "base_";
/// Sentinels of old hold the list of files, too.
const MAX_LIST_BYTES: u64 = 4 << 30;
/// Digits of a segment's name.
const SEGMENT_DIGITS: usize = 24;

/// Ways of compression that WAL-G knows, by the ends of names; `Err` are those that are not read.
const SUFFIXES: [(&str, Result<Compression, &str>); 6] = [
    (".lz4", Ok(Compression::Lz4)),
    (".zst", Ok(Compression::Zstd)),
    (".gz", Ok(Compression::Gzip)),
    (".br", Err("brotli")),
    (".lzma", Err("LZMA")),
    (".lzo", Err("LZO")),
];

/// All that WAL-G has in one place.
#[derive(Debug, Clone)]
pub struct WalG {
    storage: Storage,
    root: PathBuf,
}

/// A backup, by its name.
#[derive(Debug)]
struct Entry {
    name: String,
    path: PathBuf,
    sentinel: Sentinel,
}

impl WalG {
    pub(super) fn new(storage: &Storage, root: &Path) -> Self {
        Self { storage: storage.clone(), root: root.to_owned() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn refused(&self, cause: RepositoryCause) -> Error {
        Error::refused(Refusal::Repository { path: self.root.clone(), cause })
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.root.join(BACKUPS).join(name)
    }

    /// Backups in the order of where they began, then of their names.
    fn entries(&self) -> Result<Vec<Entry>> {
        let directory = self.root.join(BACKUPS);
        let there: BTreeSet<String> = names(&self.storage, &directory)?
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect();
        let entries = there.iter().filter_map(|file| {
            let name = file.strip_suffix(SENTINEL_SUFFIX)?;
            Some(self.entry(name, directory.join(file)))
        });
        let mut entries: Vec<Entry> = entries.collect::<Result<_>>()?;
        entries.sort_by_key(|entry| entry.sentinel.lsns().0);
        Ok(entries)
    }

    fn entry(&self, name: &str, path: PathBuf) -> Result<Entry> {
        let bytes = self.storage.read_file(&path, MAX_LIST_BYTES)?;
        let sentinel = Sentinel::parse(&bytes);
        let sentinel = sentinel.map_err(|error| Error::file_damage(&path, &error))?;
        Ok(Entry { name: name.to_owned(), path, sentinel })
    }

    /// What there is.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged.
    pub(super) fn listed(&self) -> Result<ListedOwner> {
        let entries = self.entries()?;
        let last = entries.last().map(|entry| &entry.sentinel);
        let told: Vec<(Lsn, &str)> = entries.iter().filter_map(Entry::began).collect();
        let archived = Archived {
            path: self.root.join(ARCHIVE),
            version: last.and_then(|last| PgVersion::from_major(major_version(last.version))),
            system_identifier: last.and_then(|last| last.system_identifier),
            segment_size: archive_reach::segment_size(&told),
        };
        let reach = ArchiveReach::of(&self.storage, ARCHIVE.to_owned(), &archived)?;
        let backups = entries.iter().map(listed).collect();
        Ok(ListedOwner { owner: BackupOwner::Folder, backups, archives: vec![reach] })
    }

    /// Shows a backup as the data directory that it was made of.
    ///
    /// # Errors
    /// Refused: there is no such backup, or it is one that is not read. Archives that are damaged or missing.
    pub(super) fn open(&self, name: &BackupName, notice: &UnpackNotice) -> Result<OpenBackup> {
        let entries = self.entries()?;
        let found = match name {
            BackupName::Latest => entries.last(),
            BackupName::Label(label) => entries.iter().find(|entry| entry.name == *label),
        };
        let Some(newest) = found else {
            let there = entries.into_iter().map(|entry| entry.name).collect();
            return Err(self.refused(RepositoryCause::no_backup(BackupOwner::Folder, name, there)));
        };
        let mut chain = vec![self.link(newest, notice)?];
        let mut last = newest;
        while let Some(parent) = &last.sentinel.parent {
            // Each began before the one that builds on it, so that no chain is longer than the list.
            let (label, began) = (&last.name, last.sentinel.lsns().0);
            let older = |entry: &&Entry| entry.name == *parent && entry.sentinel.lsns().0 < began;
            last = entries.iter().find(older).ok_or_else(|| {
                let (label, parent) = (label.clone(), parent.clone());
                self.refused(RepositoryCause::NoParent { label, parent })
            })?;
            chain.push(self.link(last, notice)?);
        }
        let archives = vec![self.root.join(ARCHIVE)];
        let ChainLink { storage, directory, .. } = &chain[0];
        let directory = directory.clone();
        let storage = match chain.len() {
            1 => storage.clone(),
            _ => {
                let files = delta_files(&self.storage, &newest.path, chain)?;
                self.storage.over(|_| Arc::new(files))
            }
        };
        Ok(OpenBackup { storage, directory, archives })
    }

    /// The files of one backup, and how it has those that the backup before has, too.
    fn link(&self, entry: &Entry, notice: &UnpackNotice) -> Result<ChainLink> {
        let directory = self.directory(&entry.name).join(PARTITIONS);
        let there = match names(&self.storage, &directory) {
            Err(error) if error.is_not_found() => {
                return Err(self.refused(RepositoryCause::NoFiles { label: entry.name.clone() }));
            }
            there => there?,
        };
        let archives: BTreeSet<&str> = there
            .iter()
            .filter_map(|name| name.to_str().filter(|name| name.contains(".tar")))
            .collect();
        let mut files = TarFiles::new(&self.storage, &directory)?;
        for archive in archives {
            let path = directory.join(archive);
            self.check_stored(archive, &path)?;
            add_archive(&mut files, &self.storage, (&path, Path::new("")), notice)?;
        }
        let list = match entry.sentinel.parent {
            Some(_) => self.list(entry)?,
            None => FileList::default(),
        };
        let storage = self.storage.over(|_| Arc::new(files));
        Ok(ChainLink { storage, directory, list })
    }

    /// What a delta backup has of its own.
    fn list(&self, entry: &Entry) -> Result<FileList> {
        let path = self.directory(&entry.name).join(FILES);
        let none = || self.refused(RepositoryCause::NoFileList { label: entry.name.clone() });
        if entry.sentinel.has_no_list {
            return Err(none());
        }
        let bytes = match self.storage.read_file(&path, MAX_LIST_BYTES) {
            Err(error) if error.is_not_found() => return Err(none()),
            bytes => bytes?,
        };
        FileList::parse(&bytes).map_err(|error| Error::file_damage(&path, &error))
    }

    /// Refuses an archive that is stored in a way that is not read.
    fn check_stored(&self, archive: &str, path: &Path) -> Result<()> {
        let refused =
            |cause| Err(Error::refused(Refusal::Repository { path: path.to_owned(), cause }));
        let file = archive.to_owned();
        let Some((_, known)) = SUFFIXES.iter().find(|(suffix, _)| archive.ends_with(suffix)) else {
            return Ok(());
        };
        let compression = match known {
            Ok(compression) => *compression,
            Err(by) => return refused(RepositoryCause::Compression { file, by }),
        };
        let mut head = [0; 8];
        let packed = self.storage.open(path)?;
        let got = self.storage.read_fully_at(packed.as_ref(), &mut head, 0);
        let got = got.map_err(|error| IoError::new(error, path))?;
        match Compression::of(&head[..got]) == Some(compression) {
            true => Ok(()),
            false => refused(RepositoryCause::NotAsNamed { file }),
        }
    }
}

impl Entry {
    /// Where it began, and the segment with that place, of which it is named.
    fn began(&self) -> Option<(Lsn, &str)> {
        let segment = self.name.strip_prefix(PREFIX)?.get(..SEGMENT_DIGITS)?;
        Some((self.sentinel.lsns().0?, segment))
    }
}

fn listed(entry: &Entry) -> ListedBackup {
    let sentinel = &entry.sentinel;
    let segment = entry.began().map(|(_, segment)| segment.to_owned());
    ListedBackup {
        kind: Some(if sentinel.parent.is_some() { "delta" } else { "full" }),
        prior: sentinel.parent.clone(),
        times: (moment(sentinel.start_time.as_ref()), moment(sentinel.finish_time.as_ref())),
        lsns: sentinel.lsns(),
        segments: (segment, None),
        bytes: Some(sentinel.bytes),
        stored_bytes: Some(sentinel.stored_bytes),
        version: Some(major_version(sentinel.version).to_string()),
        ..ListedBackup::named(entry.name.clone())
    }
}

#[cfg(test)]
mod tests;
