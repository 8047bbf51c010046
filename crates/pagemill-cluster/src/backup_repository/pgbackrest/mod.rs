//! [`PgBackRest`]: a repository of pgBackRest, read where it lies: its stanzas, their backups, and each backup as the data directory that
//! it was made of.
//!
//! ```text
//! REPOSITORY/backup/STANZA/backup.info ─► Stanza ─► BackupEntry      REPOSITORY/archive/STANZA/15-1/ ─► WAL for redo
//!                          LABEL/backup.manifest ─► names, sizes ─► ListedFiles at LABEL/pg_data
//!                                                                   └ a file: window, unpacked stream or blocks (StoredBackup)
//! ```
//!
//! All that is read goes through the storage handed in, so a repository may lie on any file system of the seam. Of each file the
//! manifest tells size and place, so none is asked for; one that nobody reads is never opened.
//!
//! What is encrypted is decrypted as it is read: by the passphrase given what tells of others, and by theirs the rest.
//!
//! Invariants: of two copies of a file that tells of others (`.copy`), the first whose checksum is right counts; what a manifest names
//! lies within its stanza.
//!
//! Source: `src/command/restore/` of pgBackRest 2.59, the layout of `archive` and `backup` in `src/storage/helper.c`.

mod block_file;
mod decrypted;
mod decrypted_archive;
mod fault;
mod packed_file;
mod stored_backup;
mod unpacked_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::pgbackrest::{
    ArchiveInfo, BackupEntry, BackupInfo, Manifest, Passphrase, is_encrypted,
};
use pagemill_format::{PgVersion, Result as FormatResult};
use pagemill_io::{ListedFiles, Storage};

use super::archive_reach::{self, ArchiveReach, Archived};
use super::{BackupName, BackupOwner, ListedBackup, ListedOwner, OpenBackup};
use crate::error::{Error, Result};
use crate::recovery::plan::Moment;
use crate::refusal::{Refusal, RepositoryCause};
use crate::unpacked_archive::UnpackNotice;
use decrypted_archive::DecryptedArchive;
use stored_backup::StoredBackup;

const BACKUPS: &str = "backup";
const ARCHIVES: &str = "archive";
const BACKUP_INFO: &str = "backup.info";
const ARCHIVE_INFO: &str = "archive.info";
const MANIFEST: &str = "backup.manifest";
/// The directory of a backup that its data directory is shown as; tablespaces are shown in place of their links.
const DATA: &str = "pg_data";
/// Tells a manifest's line for each of millions of files.
const MAX_INFO_BYTES: u64 = 4 << 30;

/// A repository.
#[derive(Debug, Clone)]
pub struct PgBackRest {
    storage: Storage,
    root: PathBuf,
    /// What the files that tell of others are encrypted by.
    passphrase: Option<Passphrase>,
}

/// What a repository has of one server.
#[derive(Debug, Clone)]
pub(super) struct Stanza {
    name: String,
    info: BackupInfo,
    storage: Storage,
    /// The directory of its backups, and that of its WAL.
    directories: [PathBuf; 2],
    archive: Option<ArchiveInfo>,
}

impl PgBackRest {
    pub(super) fn new(storage: &Storage, root: &Path) -> Self {
        Self { storage: storage.clone(), root: root.to_owned(), passphrase: None }
    }

    /// With what it is encrypted by, if it is.
    pub(super) fn with_passphrase(self, passphrase: Option<Passphrase>) -> Self {
        Self { passphrase, ..self }
    }

    /// What there is of its stanzas, or of the one of this name.
    ///
    /// # Errors
    /// As [`stanza`](Self::stanza).
    pub(super) fn list(&self, named: Option<&str>) -> Result<Vec<ListedOwner>> {
        let stanzas = match named {
            Some(_) => vec![self.stanza(named)?],
            None => self.stanzas()?,
        };
        stanzas.iter().map(Stanza::summary).collect()
    }

    /// Its stanzas with a `backup.info`, by name.
    ///
    /// # Errors
    /// A file of one that cannot be read or is damaged.
    fn stanzas(&self) -> Result<Vec<Stanza>> {
        let stanzas = self.names()?.into_iter().map(|name| self.read(name));
        stanzas.filter_map(Result::transpose).collect()
    }

    /// The stanza of this name, or the only one.
    ///
    /// # Errors
    /// Refused: there is no such stanza, or there are several. What cannot be read or is damaged.
    pub(super) fn stanza(&self, name: Option<&str>) -> Result<Stanza> {
        let refused =
            |cause| Error::refused(Refusal::Repository { path: self.root.clone(), cause });
        if let Some(name) = name {
            let is_one = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
            let found = if is_one { self.read(name.to_owned())? } else { None };
            let missing =
                || self.names().map(|there| RepositoryCause::NoStanza { name: name.into(), there });
            return found.map_or_else(|| Err(refused(missing()?)), Ok);
        }
        let mut stanzas = self.stanzas()?;
        match (stanzas.pop(), stanzas.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(refused(RepositoryCause::NoStanzas)),
            (Some(last), false) => {
                let others = stanzas.into_iter().map(|stanza| stanza.name);
                Err(refused(RepositoryCause::Stanzas(others.chain([last.name]).collect())))
            }
        }
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = self.storage.read_dir(&self.root.join(BACKUPS))?;
        let mut names: Vec<_> =
            entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        Ok(names)
    }

    /// Reads what a stanza has, if it has a `backup.info`.
    fn read(&self, name: String) -> Result<Option<Stanza>> {
        let directories = [BACKUPS, ARCHIVES].map(|kind| self.root.join(kind).join(&name));
        let files = InfoFiles { storage: &self.storage, passphrase: self.passphrase.as_ref() };
        let info = files.read_either(&directories[0].join(BACKUP_INFO), BackupInfo::parse)?;
        let Some(info) = info else { return Ok(None) };
        let archive = files.read_either(&directories[1].join(ARCHIVE_INFO), ArchiveInfo::parse)?;
        let storage = match archive.as_ref().and_then(|archive| archive.passphrase.as_ref()) {
            None => self.storage.clone(),
            Some(passphrase) => self
                .storage
                .over(|below| Arc::new(DecryptedArchive::new(below, &directories[1], passphrase))),
        };
        Ok(Some(Stanza { name, info, storage, directories, archive }))
    }
}

impl Stanza {
    /// The backup of this name.
    ///
    /// # Errors
    /// Refused: there is none.
    pub(super) fn backup(&self, name: &BackupName) -> Result<&BackupEntry> {
        let found = match name {
            BackupName::Latest => self.info.backups.last(),
            BackupName::Label(label) => {
                self.info.backups.iter().find(|backup| backup.label == *label)
            }
        };
        found.ok_or_else(|| {
            let labels = self.info.backups.iter().map(|backup| backup.label.clone());
            let cause = RepositoryCause::no_backup(self.owner(), name, labels.collect());
            Error::refused(Refusal::Repository { path: self.directories[0].clone(), cause })
        })
    }

    fn owner(&self) -> BackupOwner {
        BackupOwner::Stanza(self.name.clone())
    }

    fn summary(&self) -> Result<ListedOwner> {
        let backups = self.info.backups.iter().map(|backup| self.listed_backup(backup)).collect();
        Ok(ListedOwner { owner: self.owner(), backups, archives: self.reach()? })
    }

    fn listed_backup(&self, backup: &BackupEntry) -> ListedBackup {
        let version = self.info.cluster_of(backup).map(|cluster| cluster.version.clone());
        ListedBackup {
            kind: Some(backup.kind.name()),
            prior: backup.prior.clone(),
            times: (Some(moment(backup.seconds.0)), Some(moment(backup.seconds.1))),
            lsns: backup.lsns,
            segments: backup.segments.clone(),
            bytes: Some(backup.bytes),
            stored_bytes: Some(backup.stored_bytes),
            version,
            is_compressed: Some(backup.is_compressed),
            has_errors: backup.has_errors,
            tool_version: Some(backup.tool_version.clone()),
            ..ListedBackup::named(backup.label.clone())
        }
    }

    /// The directories with the WAL of a backup's cluster.
    ///
    /// # Errors
    /// When they cannot be looked at.
    fn archives(&self, backup: &BackupEntry) -> Result<Vec<PathBuf>> {
        let cluster = self.info.cluster_of(backup);
        let names = self.archive.as_ref().zip(cluster).map(|(info, of)| info.directories(of));
        let paths = names.into_iter().flatten().map(|name| self.directories[1].join(name));
        let exists = |path: PathBuf| Ok(self.storage.exists(&path)?.then_some(path));
        paths.map(exists).filter_map(Result::transpose).collect()
    }

    /// What WAL there is of each cluster.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    fn reach(&self) -> Result<Vec<ArchiveReach>> {
        let clusters = self.archive.as_ref().map_or(&[][..], |archive| &archive.clusters);
        let ends = self.info.backups.iter().flat_map(|backup| {
            [(backup.lsns.0, &backup.segments.0), (backup.lsns.1, &backup.segments.1)]
        });
        let told: Vec<_> = ends.filter_map(|(lsn, name)| Some((lsn?, name.as_deref()?))).collect();
        let reach = clusters.iter().map(|cluster| {
            let directory = format!("{}-{}", cluster.version, cluster.number);
            let archived = Archived {
                path: self.directories[1].join(&directory),
                version: cluster.version.parse().ok().and_then(PgVersion::from_major),
                system_identifier: Some(cluster.system_identifier),
                segment_size: archive_reach::segment_size(&told),
            };
            ArchiveReach::of(&self.storage, directory, &archived)
        });
        reach.collect()
    }

    /// Shows a backup as the data directory that it was made of.
    ///
    /// # Errors
    /// A manifest that cannot be read, is damaged or of another backup.
    pub(super) fn open(&self, backup: &BackupEntry, notice: &UnpackNotice) -> Result<OpenBackup> {
        let directory = self.directories[0].join(&backup.label);
        let path = directory.join(MANIFEST);
        let passphrase = self.info.passphrase.as_ref();
        let files = InfoFiles { storage: &self.storage, passphrase };
        let manifest = files.read_either(&path, Manifest::parse)?;
        let Some(manifest) = manifest.filter(|manifest| manifest.label == backup.label) else {
            let cause = RepositoryCause::NoManifest { label: backup.label.clone() };
            return Err(Error::refused(Refusal::Repository { path, cause }));
        };
        let archives = self.archives(backup)?;
        let data = directory.join(DATA);
        let files = self.listed(manifest, [&data, &path], notice);
        let storage = self.storage.over(|_| Arc::new(files));
        Ok(OpenBackup { storage, directory: data, archives })
    }

    /// The files of a manifest as those of the directory `data`.
    fn listed(
        &self,
        mut manifest: Manifest,
        [data, path]: [&Path; 2],
        notice: &UnpackNotice,
    ) -> ListedFiles {
        let mut listed = ListedFiles::new(&self.storage, data, path);
        let (files, directories) =
            (std::mem::take(&mut manifest.files), std::mem::take(&mut manifest.directories));
        let stored = StoredBackup::new(&self.storage, &self.directories[0], manifest, notice);
        let stored = Arc::new(stored);
        for directory in &directories {
            listed.add_directory(within(directory));
        }
        for (number, file) in files.into_iter().enumerate() {
            let name = file.name.clone();
            listed.add_file(within(&name), stored.file(number, file));
        }
        listed
    }
}

/// Seconds since 1970 as a moment.
fn moment(seconds: u64) -> Moment {
    /// Seconds from 1970 to 2000.
    const EPOCH: i64 = 946_684_800;
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Moment(seconds.saturating_sub(EPOCH).saturating_mul(1_000_000))
}

/// The path below the data directory of what has this name in a manifest: a tablespace is shown where its link is.
fn within(name: &str) -> &Path {
    let data = name.strip_prefix(DATA).map(|rest| rest.trim_start_matches('/'));
    Path::new(data.unwrap_or(name))
}

/// Files that tell of others, and what they are encrypted by.
#[derive(Clone, Copy)]
struct InfoFiles<'a> {
    storage: &'a Storage,
    passphrase: Option<&'a Passphrase>,
}

impl InfoFiles<'_> {
    /// Reads a file, or the second copy of it where the first is not there or damaged; `None` where neither is there.
    fn read_either<T>(
        self,
        path: &Path,
        parse: impl Fn(&[u8]) -> FormatResult<T>,
    ) -> Result<Option<T>> {
        let read = |path: &Path| match self.storage.read_file(path, MAX_INFO_BYTES) {
            Ok(bytes) => {
                let bytes = self.decrypted(path, bytes)?;
                parse(&bytes).map(Some).map_err(|error| Error::file_damage(path, &error))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        };
        let first = read(path);
        if let Ok(Some(_)) = first {
            return first;
        }
        let mut copy = path.as_os_str().to_owned();
        copy.push(".copy");
        match read(Path::new(&copy)) {
            Ok(Some(found)) => Ok(Some(found)),
            _ => first,
        }
    }

    fn decrypted(self, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
        if !is_encrypted(&bytes) {
            return Ok(bytes);
        }
        let refused = |cause| Error::refused(Refusal::Repository { path: path.to_owned(), cause });
        let Some(passphrase) = self.passphrase else {
            return Err(refused(RepositoryCause::NoPassphrase));
        };
        // The first line is the name of a section.
        let found = passphrase.decrypt(&bytes).ok().filter(|text| text.starts_with(b"["));
        found.ok_or_else(|| refused(RepositoryCause::WrongPassphrase))
    }
}

#[cfg(test)]
mod tests;
