//! [`Barman`]: what Barman has of one server, on a disk, and what barman-cloud and CloudNativePG make of it in a bucket.
//!
//! ```text
//! SERVER/meta/ID-backup.info or SERVER/base/ID/backup.info      what there is, and how far it came
//! SERVER/base/ID/data/, ID/OID/                                 rsync, pg_basebackup: a directory, and one for each tablespace
//!               /data/base.tar.gz, OID.tar.gz                   pg_basebackup with backup_compression
//!               /data.tar, data_0001.tar, OID.tar               barman-cloud-backup, CloudNativePG, compressed or not
//! SERVER/wals/0000000100000000/000000010000000000000003         WAL, compressed or not under the same name
//! ```
//!
//! Invariants: what Barman would not restore is not opened, and told why; a tablespace that the backup is said to have is there.
//!
//! Source: `barman/infofile.py`, `backup_executor.py` and `cloud.py`, Barman 3.4 to 3.17.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::barman::BackupInfo;
use pagemill_format::{Oid, PgVersion};
use pagemill_io::{Redirect, RedirectedFiles, Storage, TarFiles};

use super::archive_reach::{ArchiveReach, Archived};
use super::{
    BackupName, BackupOwner, ListedBackup, ListedOwner, OpenBackup, major_version, moment, names,
};
use crate::backup_chain::chained;
use crate::backup_storage::{add_archive, has_archives, of_archives, stored_name};
use crate::directory_state::{SMALL_FILE_LIMIT, is_no_directory};
use crate::error::{Error, Result};
use crate::refusal::{Refusal, RepositoryCause};
use crate::unpacked_archive::UnpackNotice;

const BACKUPS: &str = "base";
const ARCHIVE: &str = "wals";
const INFO: &str = "backup.info";
/// Where Barman 3.13.2 and later has what it knows of backups, `ID-backup.info`.
const META: &str = "meta";
const META_SUFFIX: &str = "-backup.info";
const DATA: &str = "data";
/// Parts of an archive that barman-cloud makes at most: their numbers have four digits.
const MOST_PARTS: u32 = 9999;

/// Ways of compression that barman-cloud knows and that are not read, by the ends of names.
const UNREAD: [(&str, &str); 2] = [(".snappy", "snappy"), (".xz", "xz")];

/// The directory of one server.
#[derive(Debug, Clone)]
pub struct Barman {
    storage: Storage,
    root: PathBuf,
}

/// A backup, by its ID.
#[derive(Debug)]
struct Entry {
    id: String,
    info: BackupInfo,
}

impl Barman {
    pub(super) fn new(storage: &Storage, root: &Path) -> Self {
        Self { storage: storage.clone(), root: root.to_owned() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn owner(&self) -> BackupOwner {
        let name = self.root.file_name().unwrap_or(self.root.as_os_str());
        BackupOwner::Server(name.to_string_lossy().into_owned())
    }

    /// Backups by their IDs, which begin with the time.
    fn entries(&self) -> Result<Vec<Entry>> {
        let in_meta = match names(&self.storage, &self.root.join(META)) {
            Err(error) if error.is_not_found() => HashSet::new(),
            names => names?,
        };
        let of_meta = |name: &OsString| Some(name.to_str()?.strip_suffix(META_SUFFIX)?.to_owned());
        let mut ids: BTreeSet<String> = in_meta.iter().filter_map(of_meta).collect();
        let in_base = names(&self.storage, &self.root.join(BACKUPS))?;
        ids.extend(in_base.into_iter().filter_map(|name| name.into_string().ok()));
        let entries = ids.into_iter().map(|id| {
            let name = format!("{id}{META_SUFFIX}");
            let path = match in_meta.contains(OsStr::new(&name)) {
                true => self.root.join(META).join(name),
                false => self.directory(&id).join(INFO),
            };
            let bytes = match self.storage.read_file(&path, SMALL_FILE_LIMIT) {
                Err(error) if error.is_not_found() || is_no_directory(&error) => return Ok(None),
                bytes => bytes?,
            };
            let info = BackupInfo::parse(&bytes);
            let info = info.map_err(|error| Error::file_damage(&path, &error))?;
            Ok(Some(Entry { id, info }))
        });
        entries.filter_map(Result::transpose).collect()
    }

    fn directory(&self, id: &str) -> PathBuf {
        self.root.join(BACKUPS).join(id)
    }

    fn refused(&self, cause: RepositoryCause) -> Error {
        Error::refused(Refusal::Repository { path: self.root.clone(), cause })
    }

    /// What there is.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged.
    pub(super) fn listed(&self) -> Result<ListedOwner> {
        let entries = self.entries()?;
        let last = entries.iter().rev().map(|entry| &entry.info);
        let cluster = last.clone().find_map(|info| Some((info.version?, info.system_identifier?)));
        let archived = Archived {
            path: self.root.join(ARCHIVE),
            version: cluster.and_then(|(number, _)| PgVersion::from_major(major_version(number))),
            system_identifier: cluster.map(|(_, identifier)| identifier),
            segment_size: last.clone().next().map(|info| info.segment_size),
        };
        let reach = ArchiveReach::of(&self.storage, ARCHIVE.to_owned(), &archived)?;
        let backups = entries.iter().map(listed).collect();
        Ok(ListedOwner { owner: self.owner(), backups, archives: vec![reach] })
    }

    /// Shows a backup as the data directory that it was made of.
    ///
    /// # Errors
    /// Refused: there is no such backup, or it is one that is not read. Archives that are damaged or missing.
    pub(super) fn open(&self, name: &BackupName, notice: &UnpackNotice) -> Result<OpenBackup> {
        let entries = self.entries()?;
        let found = match name {
            BackupName::Latest => entries.iter().rev().find(|entry| entry.info.status.is_copied()),
            BackupName::Label(label) => entries
                .iter()
                .find(|entry| entry.id == *label)
                .or_else(|| entries.iter().rfind(|entry| entry.info.name.as_ref() == Some(label))),
        };
        let Some(newest) = found else {
            let there = entries.into_iter().map(|entry| entry.id).collect();
            return Err(self.refused(RepositoryCause::no_backup(self.owner(), name, there)));
        };
        let (mut storage, directory) = self.files(newest, notice)?;
        let mut bases = Vec::new();
        let mut last = newest;
        while let Some(parent) = &last.info.parent {
            // Each is older than the one before, so that no chain is longer than the list.
            let older = |entry: &&Entry| entry.id == *parent && entry.id < last.id;
            last = entries.iter().find(older).ok_or_else(|| {
                let (label, parent) = (last.id.clone(), parent.clone());
                self.refused(RepositoryCause::NoParent { label, parent })
            })?;
            bases.push(self.files(last, notice)?);
        }
        if !bases.is_empty() {
            storage = chained(&storage, &directory, bases)?;
        }
        Ok(OpenBackup { storage, directory, archives: vec![self.root.join(ARCHIVE)] })
    }

    /// The files of one backup as a data directory, whatever it builds on.
    fn files(&self, entry: &Entry, notice: &UnpackNotice) -> Result<(Storage, PathBuf)> {
        if let Some(cause) = hindrance(entry) {
            return Err(self.refused(cause));
        }
        let directory = self.directory(&entry.id);
        let there = match names(&self.storage, &directory) {
            Err(error) if error.is_not_found() => HashSet::new(),
            there => there?,
        };
        let data = directory.join(DATA);
        if there.contains(OsStr::new(DATA)) {
            let inside = names(&self.storage, &data)?;
            let storage = match has_archives(&inside) && !inside.contains(OsStr::new("PG_VERSION"))
            {
                true => of_archives(&self.storage, &data, notice)?,
                false => self.with_tablespaces(entry, &there)?,
            };
            return Ok((storage, data));
        }
        let mut files = TarFiles::new(&self.storage, &directory)?;
        if !self.add_parts(&mut files, &there, (DATA, ""), (&directory, notice))? {
            return Err(self.refused(RepositoryCause::NoFiles { label: entry.id.clone() }));
        }
        for oid in &entry.info.tablespaces {
            let (name, at) = (oid.to_string(), format!("pg_tblspc/{oid}"));
            if !self.add_parts(&mut files, &there, (&name, &at), (&directory, notice))? {
                return Err(self.no_tablespace(entry, *oid));
            }
        }
        Ok((self.storage.over(|_| Arc::new(files)), directory))
    }

    /// Adds an archive of barman-cloud, and those that it is continued in; false where there is none.
    fn add_parts(
        &self,
        files: &mut TarFiles,
        there: &HashSet<OsString>,
        (name, at): (&str, &str),
        (directory, notice): (&Path, &UnpackNotice),
    ) -> Result<bool> {
        let rest = (1..=MOST_PARTS).map(|number| format!("{name}_{number:04}.tar"));
        let mut has_any = false;
        for archive in std::iter::once(format!("{name}.tar")).chain(rest) {
            let Some(stored) = stored_name(there, &archive) else {
                self.check_unread(there, &archive)?;
                break;
            };
            add_archive(files, &self.storage, (&directory.join(stored), Path::new(at)), notice)?;
            has_any = true;
        }
        Ok(has_any)
    }

    /// Refuses an archive that is there, but stored in a way that is not read.
    fn check_unread(&self, there: &HashSet<OsString>, archive: &str) -> Result<()> {
        let names = UNREAD.iter().map(|(suffix, by)| (format!("{archive}{suffix}"), *by));
        match { names }.find(|(name, _)| there.contains(OsStr::new(name))) {
            None => Ok(()),
            Some((file, by)) => Err(self.refused(RepositoryCause::Compression { file, by })),
        }
    }

    /// The directory of a backup, whose tablespaces lie beside it.
    fn with_tablespaces(&self, entry: &Entry, there: &HashSet<OsString>) -> Result<Storage> {
        let directory = self.directory(&entry.id);
        let redirects = entry.info.tablespaces.iter().map(|oid| {
            let name = oid.to_string();
            match there.contains(OsStr::new(&name)) {
                true => Ok(Redirect {
                    path: directory.join(DATA).join("pg_tblspc").join(&name),
                    target: directory.join(&name),
                }),
                false => Err(self.no_tablespace(entry, *oid)),
            }
        });
        let redirects: Vec<_> = redirects.collect::<Result<_>>()?;
        Ok(self.storage.over(|below| Arc::new(RedirectedFiles::new(below, redirects))))
    }

    fn no_tablespace(&self, entry: &Entry, tablespace: Oid) -> Error {
        let label = entry.id.clone();
        self.refused(RepositoryCause::NoTablespace { label, tablespace })
    }
}

/// Why a backup is not read.
fn hindrance(entry: &Entry) -> Option<RepositoryCause> {
    let (label, info) = (entry.id.clone(), &entry.info);
    if !info.status.is_copied() {
        let (status, error) = (info.status.name(), info.error.clone());
        return Some(RepositoryCause::NotWhole { label, status, error });
    }
    if let Some(by) = info.encryption.clone() {
        return Some(RepositoryCause::Encrypted { label, by });
    }
    info.has_snapshots.then_some(RepositoryCause::Snapshots { label })
}

fn listed(entry: &Entry) -> ListedBackup {
    let info = &entry.info;
    ListedBackup {
        name: info.name.clone(),
        kind: Some(if info.parent.is_some() { "incr" } else { "full" }),
        prior: info.parent.clone(),
        times: (moment(info.times.0.as_ref()), moment(info.times.1.as_ref())),
        lsns: info.lsns,
        segments: info.segments.clone(),
        bytes: info.bytes,
        stored_bytes: info.stored_bytes,
        version: info.version.map(|number| major_version(number).to_string()),
        is_compressed: Some(info.compression.is_some()),
        hindrance: hindrance(entry).map(|cause| cause.short()),
        ..ListedBackup::named(entry.id.clone())
    }
}

#[cfg(test)]
mod tests;
