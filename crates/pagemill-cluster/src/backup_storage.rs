//! A backup as a data directory, however it is kept: [`backup_storage`].
//!
//! An incremental backup is laid over those it builds on (`backup_chain`), each of which may be kept in either format.
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
use crate::directory_state::SMALL_FILE_LIMIT;
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use crate::unpacked_archive::{ArchiveToUnpack, unpacked_archive};

/// The archive of the data directory itself.
const BASE_ARCHIVE: &str = "base.tar";
/// The archive of WAL.
const WAL_ARCHIVE: &str = "pg_wal.tar";

/// What follows the name of an archive that is compressed, or nothing.
const SUFFIXES: [&str; 5] = ["", ".gz", ".lz4", ".zst", ".bz2"];

/// The storage to read a directory through: the one given, or over it one that shows the archives in the directory as the
/// data directory that they were made of, with the backups in `bases` below it if it is an incremental one. Archives that are
/// compressed are unpacked into temporary files, each of which is told before.
///
/// # Errors
/// Archives that are damaged, cut short or missing; no space to unpack one; backups that do not make a chain. What is no backup
/// is left to whoever opens it.
pub fn backup_storage(
    storage: &Storage,
    directory: &Path,
    bases: &[PathBuf],
    tell: &dyn Fn(&ArchiveToUnpack),
) -> Result<Storage> {
    let newest = of_archives(storage, directory, tell)?;
    if bases.is_empty() {
        return Ok(newest);
    }
    let base = |base: &PathBuf| Ok((of_archives(storage, base, tell)?, base.clone()));
    let bases = bases.iter().map(base).collect::<Result<_>>()?;
    chained(&newest, directory, bases)
}

/// The storage that shows a backup as a data directory.
fn of_archives(
    storage: &Storage,
    directory: &Path,
    tell: &dyn Fn(&ArchiveToUnpack),
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
        let path = directory.join(&name);
        if name == archive {
            return Ok(files.add(storage, &path, at)?);
        }
        let file = unpacked_archive(storage, &path, tell)?;
        Ok(files.add_file(storage, &path, file, at)?)
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

/// True when the names in a directory are those of a backup in tar format.
pub(crate) fn has_archives(names: &HashSet<OsString>) -> bool {
    stored_name(names, BASE_ARCHIVE).is_some()
}

/// The name that an archive is stored by: its own, or that with the suffix of a compression.
fn stored_name(names: &HashSet<OsString>, archive: &str) -> Option<String> {
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
        let plain = |path: &Path| {
            let found = backup_storage(&storage, path, &[], &|_| ()).unwrap();
            found.read_file(&dir.path().join("base.tar"), 100).is_ok()
        };
        assert!(!plain(&dir.path().join("absent")) && !plain(dir.path()));
        std::fs::write(dir.path().join("base.tar"), "no archive").unwrap();
        let error = backup_storage(&storage, dir.path(), &[], &|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("base.tar: offset 0: the archive ends behind the beginning"),
            "{error}"
        );
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        assert!(plain(dir.path()));
    }
}
