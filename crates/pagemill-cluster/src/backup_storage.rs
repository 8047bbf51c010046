//! A backup as a data directory, however it is kept: [`backup_storage`].
//!
//! An incremental backup is laid over those it builds on (`backup_chain`), each of which may be kept in either format.
//!
//! A directory may be a repository of a tool (`backup_repository`), of which one backup is chosen.
//!
//! A directory with `base.tar` in it holds a backup in tar format: all of the data directory but tablespaces, each of which
//! has an archive of its own, `OID.tar`, and WAL, if that was streamed: `pg_wal.tar`. They are read where they lie. Those that are
//! compressed (`base.tar.gz`) are unpacked into temporary files first.
//!
//! Invariant: a directory with `PG_VERSION` in it is a data directory, whatever else it holds.
//!
//! Sources: `perform_base_backup` in `src/backend/backup/basebackup.c` (14: `src/backend/replication/basebackup.c`),
//! `src/bin/pg_basebackup/pg_basebackup.c`, `tar_open_for_write` in `walmethods.c`, PostgreSQL 14 to 18.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::backup::TablespaceMap;
use pagemill_io::{Storage, TarFiles};

use crate::backup_chain::chained;
use crate::backup_repository::{BackupName, OpenBackup, Passphrase, Repository};
use crate::directory_state::SMALL_FILE_LIMIT;
use crate::error::{Error, Result};
use crate::refusal::{Refusal, RepositoryCause};
use crate::unpacked_archive::{UnpackNotice, unpacked_archive};

/// The archive of the data directory itself.
const BASE_ARCHIVE: &str = "base.tar";
/// The archive of WAL.
const WAL_ARCHIVE: &str = "pg_wal.tar";

/// What follows the name of an archive that is compressed, or nothing.
const SUFFIXES: [&str; 5] = ["", ".gz", ".lz4", ".zst", ".bz2"];

/// What is to be read of a directory.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupChoice<'a> {
    /// The backups that the one in the directory builds on, if it is an incremental one of PostgreSQL's own.
    pub bases: &'a [PathBuf],
    /// The stanza of a repository; nothing for its only one.
    pub stanza: Option<&'a str>,
    /// The backup of a repository.
    pub backup: Option<&'a BackupName>,
    /// What a repository of pgBackRest is encrypted by, if it is.
    pub passphrase: Option<&'a Passphrase>,
}

/// The data directory to read, and what to read it through: the storage given, or over it one that shows a backup as the data
/// directory that it was made of: the archives in the directory, with the backups that it builds on below it, or a backup of the
/// repository in the directory. What is compressed is unpacked into temporary files, each of which is told before.
///
/// # Errors
/// Archives that are damaged, cut short or missing; no space to unpack one; backups that do not make a chain; a backup that a
/// repository does not have, or whose manifest is damaged. What is no backup is left to whoever opens it, as is a repository of
/// which none is chosen.
pub fn backup_storage(
    storage: &Storage,
    directory: &Path,
    choice: BackupChoice<'_>,
    notice: &UnpackNotice,
) -> Result<OpenBackup> {
    if choice.backup.is_some() || choice.stanza.is_some() {
        let Some(repository) = Repository::find(storage, directory)? else {
            let (path, cause) = (directory.to_owned(), RepositoryCause::NoRepository);
            return Err(Error::refused(Refusal::Repository { path, cause }));
        };
        let repository = repository.with_passphrase(choice.passphrase.cloned());
        if let Some(name) = choice.backup {
            return repository.open(choice.stanza, name, notice);
        }
    }
    let mut storage_of_newest = of_archives(storage, directory, notice)?;
    if !choice.bases.is_empty() {
        let base = |base: &PathBuf| Ok((of_archives(storage, base, notice)?, base.clone()));
        let bases = choice.bases.iter().map(base).collect::<Result<_>>()?;
        storage_of_newest = chained(&storage_of_newest, directory, bases)?;
    }
    let directory = directory.to_owned();
    Ok(OpenBackup { storage: storage_of_newest, directory, archives: Vec::new() })
}

/// The storage that shows a backup in tar format as a data directory, and any other directory as it lies.
pub(crate) fn of_archives(
    storage: &Storage,
    directory: &Path,
    notice: &UnpackNotice,
) -> Result<Storage> {
    // Whoever opens what cannot be listed says why.
    let Ok(entries) = storage.read_dir(directory) else { return Ok(storage.clone()) };
    let names: HashSet<OsString> = entries.into_iter().map(|entry| entry.name).collect();
    if names.contains(OsStr::new("PG_VERSION")) || !has_archives(&names) {
        return Ok(storage.clone());
    }
    let mut files = TarFiles::new(storage, directory)?;
    let mut add = |archive: &str, at: &Path| -> Result<()> {
        let Some(name) = stored_name(&names, archive) else { return Ok(()) };
        add_archive(&mut files, storage, (&directory.join(name), at), notice)
    };
    add(BASE_ARCHIVE, Path::new(""))?;
    let tablespaces: BTreeSet<Oid> = names.iter().filter_map(tablespace_of).collect();
    for oid in &tablespaces {
        add(&archive_of(*oid), &Path::new("pg_tblspc").join(oid.to_string()))?;
    }
    add(WAL_ARCHIVE, Path::new("pg_wal"))?;
    let has_map = files.has_file(Path::new("tablespace_map"));
    let over = storage.over(|_| Arc::new(files));
    if has_map {
        check_tablespaces(&over, directory, &tablespaces)?;
    }
    Ok(over)
}

/// Adds an archive to what is shown at this path below the root; one that is compressed, as its name says, is unpacked first.
pub(crate) fn add_archive(
    files: &mut TarFiles,
    storage: &Storage,
    (path, at): (&Path, &Path),
    notice: &UnpackNotice,
) -> Result<()> {
    if path.extension() == Some(OsStr::new("tar")) {
        return Ok(files.add(storage, path, at)?);
    }
    let file = unpacked_archive(storage, path, notice)?;
    Ok(files.add_file(storage, path, file, at)?)
}

/// True when the names in a directory are those of a backup in tar format.
pub(crate) fn has_archives(names: &HashSet<OsString>) -> bool {
    stored_name(names, BASE_ARCHIVE).is_some()
}

/// The name that an archive is stored by: its own, or that with the suffix of a compression.
pub(crate) fn stored_name(names: &HashSet<OsString>, archive: &str) -> Option<String> {
    let mut possible = SUFFIXES.iter().map(|suffix| format!("{archive}{suffix}"));
    possible.find(|name| names.contains(OsStr::new(name)))
}

fn archive_of(tablespace: Oid) -> String {
    format!("{tablespace}.tar")
}

/// The tablespace that an archive is of.
fn tablespace_of(name: &OsString) -> Option<Oid> {
    let (oid, suffix) = name.to_str()?.split_once(".tar")?;
    let oid = oid.parse().ok().map(Oid)?;
    // Not one with a sign or zeros in front.
    let is_name = name.to_str()?.starts_with(&archive_of(oid)) && SUFFIXES.contains(&suffix);
    is_name.then_some(oid)
}

/// Each tablespace that the backup had has its archive.
fn check_tablespaces(storage: &Storage, directory: &Path, found: &BTreeSet<Oid>) -> Result<()> {
    let path = directory.join("tablespace_map");
    let bytes = storage.read_file(&path, SMALL_FILE_LIMIT)?;
    let map = TablespaceMap::parse(&bytes).map_err(|error| Error::file_damage(&path, &error))?;
    match map.entries.into_iter().find(|(oid, _)| !found.contains(oid)) {
        None => Ok(()),
        Some((oid, was)) => {
            let (path, was) =
                (directory.join(archive_of(oid)), String::from_utf8_lossy(&was).into_owned());
            Err(Error::refused(Refusal::MissingArchive {
                path,
                tablespace: oid,
                was: PathBuf::from(was),
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_tablespaces_are_told_by_their_names() {
        let of = |name: &str| tablespace_of(&name.into());
        for name in ["16400.tar", "16400.tar.gz", "16400.tar.zst"] {
            assert_eq!(of(name), Some(Oid(16400)), "{name}");
        }
        for other in ["base.tar", "pg_wal.tar", "016400.tar", "+1.tar", "16400.tar.sha256", "16400"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_without_archives_is_read_as_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::real();
        let open = |path: &Path| {
            backup_storage(&storage, path, BackupChoice::default(), &UnpackNotice::nobody())
        };
        let plain = |path: &Path| {
            let found = open(path).unwrap().storage;
            found.read_file(&dir.path().join("base.tar"), 100).is_ok()
        };
        assert!(!plain(&dir.path().join("absent")) && !plain(dir.path()));
        std::fs::write(dir.path().join("base.tar"), "no archive").unwrap();
        let error = open(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("base.tar: offset 0: the archive ends behind the beginning"),
            "{error}"
        );
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        assert!(plain(dir.path()));
    }
}
