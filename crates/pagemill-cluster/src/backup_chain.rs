//! An incremental backup and those it builds on, as one data directory, with nothing put together on disk.
//!
//! ```text
//! newest backup ── its label: INCREMENTAL FROM LSN ─► the backup whose label starts there ─► … ─► a full one
//! ```
//!
//! Invariants: each backup but the last, a full one, starts from the next, as their labels say; all are of one cluster. What
//! redo has to do then is what the newest one's label says.
//!
//! Sources: `check_backup_label_files` and `check_control_files` in `src/bin/pg_combinebackup/pg_combinebackup.c`, PostgreSQL
//! 17 and 18.

mod chained_file;
mod chained_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::backup::{BackupLabel, BackupManifest};
use pagemill_io::{FileSystem, Storage};

use crate::directory_state::read_control;
use crate::error::{Error, Result};
use crate::recovery::plan::CopyFiles;
use crate::refusal::Refusal;
use chained_files::{ChainedFiles, Link};

/// Lays an incremental backup over those it builds on, which come in any order, each with the storage to read it through.
///
/// # Errors
/// A backup that is missing, or is none of this chain; one of another cluster; label, manifest or control file that cannot be
/// read.
pub(crate) fn chained(
    storage: &Storage,
    directory: &Path,
    bases: Vec<(Storage, PathBuf)>,
) -> Result<Storage> {
    let newest = Backup::read(storage.clone(), directory.to_owned())?;
    let read = |(storage, directory)| Backup::read(storage, directory);
    let mut waiting: Vec<Backup> = bases.into_iter().map(read).collect::<Result<_>>()?;
    let mut chain = vec![newest];
    while let Some(last) = chain.last()
        && let Some((from, timeline)) = last.label.incremental_from
    {
        let is_next = |base: &Backup| {
            base.label.redo == from && timeline.is_none_or(|number| base.label.timeline == number)
        };
        let Some(at) = waiting.iter().position(is_next) else {
            let path = last.directory.clone();
            return Err(Error::refused(Refusal::MissingBase { path, from, timeline }));
        };
        let next = waiting.swap_remove(at);
        next.check_cluster(last)?;
        chain.push(next);
    }
    match waiting.into_iter().next() {
        Some(Backup { directory: path, label, .. }) => {
            Err(Error::refused(Refusal::NotInChain { path, start: label.redo }))
        }
        None => Ok(laid(storage, &chain)),
    }
}

fn laid(storage: &Storage, chain: &[Backup]) -> Storage {
    let links = chain.iter().map(Backup::link).collect();
    let label = chain.first().map(|newest| newest.label_of_whole.clone()).unwrap_or_default();
    storage
        .over(|below| -> Arc<dyn FileSystem> { Arc::new(ChainedFiles::new(below, links, label)) })
}

/// One backup of a chain.
struct Backup {
    storage: Storage,
    directory: PathBuf,
    label: BackupLabel,
    /// The label of the data directory that the chain makes.
    label_of_whole: Vec<u8>,
    system_identifier: u64,
}

impl Backup {
    fn read(storage: Storage, directory: PathBuf) -> Result<Self> {
        let system_identifier = read_control(&storage, &directory, None)?.system_identifier;
        let CopyFiles { label, manifest, .. } = CopyFiles::read(&storage, &directory)?;
        let path = directory.join("backup_label");
        let Some(label) = label else {
            return Err(Error::refused(Refusal::NoLabel { path }));
        };
        let said =
            manifest.as_ref().and_then(|manifest: &BackupManifest| manifest.system_identifier);
        if let Some(other) = said.filter(|said| *said != system_identifier) {
            let path = directory.join("backup_manifest");
            return Err(Error::refused(Refusal::OtherCluster {
                path,
                found: other,
                expected: system_identifier,
            }));
        }
        let bytes = storage.read_file(&path, crate::directory_state::SMALL_FILE_LIMIT)?;
        let label_of_whole = without_increment(&bytes);
        Ok(Self { storage, directory, label, label_of_whole, system_identifier })
    }

    fn check_cluster(&self, newer: &Self) -> Result<()> {
        match newer.system_identifier {
            expected if expected == self.system_identifier => Ok(()),
            expected => {
                let (path, found) = (self.directory.clone(), self.system_identifier);
                Err(Error::refused(Refusal::OtherCluster { path, found, expected }))
            }
        }
    }

    fn link(&self) -> Link {
        Link { files: self.storage.file_system().clone(), directory: self.directory.clone() }
    }
}

/// The lines of a label but those that say that it is of an incremental backup.
fn without_increment(label: &[u8]) -> Vec<u8> {
    let lines = label.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| !line.starts_with(b"INCREMENTAL FROM ")).flatten().copied().collect()
}
