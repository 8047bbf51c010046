//! The files that tell of a data directory how it was copied: label, tablespace map, manifest, signals.
//!
//! They are small but for the manifest, and all of them can be missing.

use std::path::{Path, PathBuf};

use pagemill_format::backup::{BackupLabel, BackupManifest, TablespaceMap};
use pagemill_io::Storage;

use crate::error::{Error, Result};

/// A manifest has a line for each file, and clusters have millions.
const MAX_MANIFEST_BYTES: u64 = 4 << 30;
const MAX_SMALL_BYTES: u64 = 16 << 20;

/// What a copy brought along, and what was laid beside it to restore it.
#[derive(Debug, Clone, Default)]
pub struct CopyFiles {
    /// `backup_label`.
    pub label: Option<BackupLabel>,
    /// `tablespace_map`, which counts beside a label only.
    pub tablespace_map: Option<TablespaceMap>,
    /// `backup_manifest`. It stays where it is when the copy is started, and so may be of times long gone.
    pub manifest: Option<BackupManifest>,
    /// `recovery.signal` or `standby.signal`: a server would go on from an archive or another server.
    pub has_signal: bool,
    /// The files that every server leaves where it runs are missing, as the tools for backups leave them out:
    /// `postmaster.opts`, and all of `pg_subtrans`.
    pub lacks_files_of_servers: bool,
}

impl CopyFiles {
    /// Reads what there is in a data directory.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of its kind.
    pub fn read(storage: &Storage, directory: &Path) -> Result<Self> {
        let label = directory.join("backup_label");
        let label = parsed(storage, label, MAX_SMALL_BYTES, BackupLabel::parse)?;
        let tablespace_map = match label {
            Some(_) => read_tablespace_map(storage, directory)?,
            None => None,
        };
        let manifest = directory.join("backup_manifest");
        Ok(Self {
            label,
            tablespace_map,
            manifest: parsed(storage, manifest, MAX_MANIFEST_BYTES, BackupManifest::parse)?,
            has_signal: storage.exists(&directory.join("recovery.signal"))?
                || storage.exists(&directory.join("standby.signal"))?,
            lacks_files_of_servers: lacks_files_of_servers(storage, directory)?,
        })
    }
}

/// A server writes `postmaster.opts` when it starts and never removes it; `pg_subtrans` has a file from `initdb` on.
///
/// Sources: `excludeFiles` and `excludeDirContents` in `src/backend/backup/basebackup.c` (14: `src/backend/replication`),
/// `CreateOptsFile` in `postmaster.c`, `BootStrapSUBTRANS` in `subtrans.c`, PostgreSQL 14 to 18.
fn lacks_files_of_servers(storage: &Storage, directory: &Path) -> Result<bool> {
    for file in ["postmaster.opts", "postmaster.pid"] {
        if storage.exists(&directory.join(file))? {
            return Ok(false);
        }
    }
    match storage.read_dir(&directory.join("pg_subtrans")) {
        Ok(entries) => Ok(entries.is_empty()),
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Where the tablespaces of a backup were, if it tells.
///
/// # Errors
/// A file that cannot be read, or is none of its kind.
pub(crate) fn read_tablespace_map(
    storage: &Storage,
    directory: &Path,
) -> Result<Option<TablespaceMap>> {
    parsed(storage, directory.join("tablespace_map"), MAX_SMALL_BYTES, TablespaceMap::parse)
}

fn parsed<T>(
    storage: &Storage,
    path: PathBuf,
    limit: u64,
    parse: impl Fn(&[u8]) -> pagemill_format::Result<T>,
) -> Result<Option<T>> {
    let bytes = match storage.read_file(&path, limit) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    parse(&bytes).map(Some).map_err(|error| Error::file_damage(path, &error))
}
