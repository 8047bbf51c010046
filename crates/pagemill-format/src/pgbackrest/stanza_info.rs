//! `backup.info` and `archive.info`: the backups of a stanza, and the clusters that it has been of.
//!
//! A stanza outlives its cluster: after `pg_upgrade` the next one has another number in the history. The archive of each has a
//! directory of its own, `VERSION-NUMBER`, by a history of its own: a backup's is found by system identifier and version.
//!
//! Invariant: backups are in the order of their labels, in which that of a later one is behind those of its own full backup.
//!
//! Source: `src/info/infoBackup.c`, `infoArchive.c` and `infoPg.c`, pgBackRest 2.45 to 2.59.

use serde::Deserialize;

use super::cipher::Passphrase;
use super::info_file::{Entry, InfoFile};
use crate::error::Result;
use crate::ids::Lsn;

const HISTORY: &str = "db:history";
const CURRENT: &str = "backup:current";

/// `backup.info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupInfo {
    /// The clusters of the stanza, the oldest first.
    pub clusters: Vec<ClusterEntry>,
    /// The backups that there are.
    pub backups: Vec<BackupEntry>,
    /// What manifests are encrypted by.
    pub passphrase: Option<Passphrase>,
}

/// `archive.info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// The clusters of the stanza, the oldest first.
    pub clusters: Vec<ClusterEntry>,
    /// What WAL is encrypted by.
    pub passphrase: Option<Passphrase>,
}

/// A cluster that a stanza is or was of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEntry {
    /// Its number in this file.
    pub number: u32,
    /// Its system identifier.
    pub system_identifier: u64,
    /// Its version, as pgBackRest writes it: `15`.
    pub version: String,
}

/// What a backup has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackupKind {
    /// All files.
    Full,
    /// What changed since the full backup before.
    Diff,
    /// What changed since the backup before.
    Incr,
}

impl BackupKind {
    /// The name that pgBackRest has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Diff => "diff",
            Self::Incr => "incr",
        }
    }
}

/// A backup, as `backup.info` tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupEntry {
    /// Its name, and that of its directory.
    pub label: String,
    /// What it has of its own.
    pub kind: BackupKind,
    /// The backup before, which it builds on.
    pub prior: Option<String>,
    /// When it began and ended: seconds since 1970.
    pub seconds: (u64, u64),
    /// Where the WAL begins that it needs, and where that ends; `None` of one that was taken while no server ran.
    pub lsns: (Option<Lsn>, Option<Lsn>),
    /// The segments with these places.
    pub segments: (Option<String>, Option<String>),
    /// Bytes of the cluster.
    pub bytes: u64,
    /// Bytes that it added to the repository.
    pub stored_bytes: u64,
    /// The number of its cluster in this file.
    pub cluster: u32,
    /// Pages with wrong checksums were found while it was taken; `None` where nobody looked.
    pub has_errors: Option<bool>,
    /// Its files are compressed, in whichever way.
    pub is_compressed: bool,
    /// The pgBackRest that took it.
    pub tool_version: String,
}

impl BackupInfo {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt or unsupported, as any file of a repository can be.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = InfoFile::parse("backup.info", bytes)?;
        let history = file.entries().filter(|entry| entry.section == HISTORY);
        let clusters = history.map(|entry| {
            let BackupHistory { system_identifier, version } = entry.value()?;
            cluster(entry, system_identifier, version)
        });
        let current = file.entries().filter(|entry| entry.section == CURRENT);
        let mut backups: Vec<_> = current.map(BackupEntry::read).collect::<Result<_>>()?;
        backups.sort_by(|one, other| one.label.cmp(&other.label));
        Ok(Self { clusters: in_order(clusters)?, backups, passphrase: file.passphrase()? })
    }

    /// The cluster of a backup.
    pub fn cluster_of(&self, backup: &BackupEntry) -> Option<&ClusterEntry> {
        self.clusters.iter().find(|cluster| cluster.number == backup.cluster)
    }
}

impl ArchiveInfo {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt or unsupported, as any file of a repository can be.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = InfoFile::parse("archive.info", bytes)?;
        let history = file.entries().filter(|entry| entry.section == HISTORY);
        let clusters = history.map(|entry| {
            let ArchiveHistory { system_identifier, version } = entry.value()?;
            cluster(entry, system_identifier, version)
        });
        Ok(Self { clusters: in_order(clusters)?, passphrase: file.passphrase()? })
    }

    /// The names of the directories with the WAL of a cluster, the newest first.
    pub fn directories(&self, of: &ClusterEntry) -> Vec<String> {
        let is_same = |cluster: &&ClusterEntry| {
            cluster.system_identifier == of.system_identifier && cluster.version == of.version
        };
        let found = self.clusters.iter().rev().filter(is_same);
        found.map(|cluster| format!("{}-{}", cluster.version, cluster.number)).collect()
    }
}

/// A line of the history in `backup.info`.
#[derive(Deserialize)]
struct BackupHistory {
    #[serde(rename = "db-system-id")]
    system_identifier: u64,
    #[serde(rename = "db-version")]
    version: String,
}

/// A line of the history in `archive.info`, where the system identifier has the name that the number has elsewhere.
#[derive(Deserialize)]
struct ArchiveHistory {
    #[serde(rename = "db-id")]
    system_identifier: u64,
    #[serde(rename = "db-version")]
    version: String,
}

fn cluster(entry: &Entry<'_>, system_identifier: u64, version: String) -> Result<ClusterEntry> {
    let number = entry.key.parse();
    let number = number.map_err(|_| entry.wrong(format!("{:?} is no number", entry.key)))?;
    Ok(ClusterEntry { number, system_identifier, version })
}

fn in_order(clusters: impl Iterator<Item = Result<ClusterEntry>>) -> Result<Vec<ClusterEntry>> {
    let mut clusters: Vec<ClusterEntry> = clusters.collect::<Result<_>>()?;
    clusters.sort_by_key(|cluster| cluster.number);
    Ok(clusters)
}

/// A line of the current backups.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CurrentBackup {
    backrest_version: String,
    backup_archive_start: Option<String>,
    backup_archive_stop: Option<String>,
    backup_error: Option<bool>,
    backup_info_repo_size_delta: u64,
    backup_info_size: u64,
    backup_lsn_start: Option<String>,
    backup_lsn_stop: Option<String>,
    backup_prior: Option<String>,
    backup_timestamp_start: u64,
    backup_timestamp_stop: u64,
    backup_type: BackupKind,
    db_id: u32,
    #[serde(default)]
    option_compress: bool,
}

impl BackupEntry {
    fn read(entry: &Entry<'_>) -> Result<Self> {
        let found: CurrentBackup = entry.value()?;
        let lsn = |text: Option<String>| {
            let parsed = text.map(|text| text.parse::<Lsn>());
            parsed.transpose().map_err(|_| entry.wrong("no LSN".to_owned()))
        };
        Ok(Self {
            label: label(entry, entry.key)?.to_owned(),
            kind: found.backup_type,
            prior: found.backup_prior,
            seconds: (found.backup_timestamp_start, found.backup_timestamp_stop),
            lsns: (lsn(found.backup_lsn_start)?, lsn(found.backup_lsn_stop)?),
            segments: (found.backup_archive_start, found.backup_archive_stop),
            bytes: found.backup_info_size,
            stored_bytes: found.backup_info_repo_size_delta,
            cluster: found.db_id,
            has_errors: found.backup_error,
            is_compressed: found.option_compress,
            tool_version: found.backrest_version,
        })
    }
}

/// A label becomes the name of a directory, and may lead nowhere else.
pub(super) fn label<'a>(entry: &Entry<'_>, text: &'a str) -> Result<&'a str> {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !text.is_empty() && text.bytes().all(is_one) {
        true => Ok(text),
        false => Err(entry.wrong(format!("{text:?} is no label of a backup"))),
    }
}
