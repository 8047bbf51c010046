//! [`Repository`]: where a tool keeps backups, read where it lies: what backups there are, up to where their WAL goes, and each backup
//! as the data directory that it was made of.
//!
//! ```text
//! backup, archive            pgBackRest
//! base, wals                 Barman, barman-cloud, CloudNativePG     ─► ListedOwner (ls)
//! basebackups_005            WAL-G                                   ─► OpenBackup: storage, data directory, archives of WAL
//! ```
//!
//! Invariants: all that is read goes through the storage handed in, so a repository may lie on any file system of the seam; a data
//! directory is none, whatever else lies in it.

mod archive_reach;
mod barman;
mod pgbackrest;
#[cfg(test)]
mod tests;
mod walg;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pagemill_format::Lsn;
pub use pagemill_format::pgbackrest::Passphrase;
use pagemill_io::Storage;
use pagemill_types::input::datetime::iso_timestamptz;

use crate::error::{Error, Result};
use crate::recovery::plan::Moment;
use crate::refusal::{Refusal, RepositoryCause};
use crate::unpacked_archive::UnpackNotice;
pub use archive_reach::ArchiveReach;
pub use barman::Barman;
pub use pgbackrest::PgBackRest;
pub use walg::WalG;

/// Which backup is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupName {
    /// The last one that is whole.
    Latest,
    /// The one with this label, or with this name that somebody gave it.
    Label(String),
}

/// `latest`, or a label.
impl FromStr for BackupName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "latest" => Self::Latest,
            label => Self::Label(label.to_owned()),
        })
    }
}

/// A repository of one of the tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Repository {
    /// Of pgBackRest, with stanzas.
    PgBackRest(PgBackRest),
    /// Of Barman, or of barman-cloud: the directory of one server.
    Barman(Barman),
    /// Of WAL-G.
    WalG(WalG),
}

/// Whose backups they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOwner {
    /// A stanza of pgBackRest.
    Stanza(String),
    /// A server of Barman.
    Server(String),
    /// All that WAL-G has in one place.
    Folder,
}

impl fmt::Display for BackupOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stanza(name) => write!(f, "stanza \"{name}\""),
            Self::Server(name) => write!(f, "server \"{name}\""),
            Self::Folder => f.write_str("this folder of WAL-G"),
        }
    }
}

/// What a repository has of one owner.
#[derive(Debug, Clone)]
pub struct ListedOwner {
    /// Whose it is.
    pub owner: BackupOwner,
    /// The backups, in order.
    pub backups: Vec<ListedBackup>,
    /// The WAL of each cluster that there was.
    pub archives: Vec<ArchiveReach>,
}

/// A backup, as its tool tells of it; what a tool does not say of its backups is `None`.
#[derive(Debug, Clone, Default)]
pub struct ListedBackup {
    /// Its label.
    pub label: String,
    /// The name that somebody gave it.
    pub name: Option<String>,
    /// What it has of its own: `full`, `diff`, `incr`, `delta`.
    pub kind: Option<&'static str>,
    /// The backup that it builds on.
    pub prior: Option<String>,
    /// When it began and ended.
    pub times: (Option<Moment>, Option<Moment>),
    /// Where the WAL begins that it needs, and where that ends.
    pub lsns: (Option<Lsn>, Option<Lsn>),
    /// The segments with these places.
    pub segments: (Option<String>, Option<String>),
    /// Bytes of the cluster.
    pub bytes: Option<u64>,
    /// Bytes that it added to the repository.
    pub stored_bytes: Option<u64>,
    /// The major version of PostgreSQL.
    pub version: Option<String>,
    /// Its files are compressed.
    pub is_compressed: Option<bool>,
    /// Pages with wrong checksums were found while it was taken; `None` where nobody looked.
    pub has_errors: Option<bool>,
    /// The version of the tool.
    pub tool_version: Option<String>,
    /// Why it cannot be read.
    pub hindrance: Option<String>,
}

impl ListedBackup {
    fn named(label: String) -> Self {
        Self { label, ..Self::default() }
    }
}

/// A backup, shown as a data directory.
#[derive(Debug, Clone)]
pub struct OpenBackup {
    /// What to read it through.
    pub storage: Storage,
    /// The data directory.
    pub directory: PathBuf,
    /// Where its WAL is.
    pub archives: Vec<PathBuf>,
}

/// The tools whose repositories are known.
#[derive(Debug, Clone, Copy)]
enum Tool {
    PgBackRest,
    Barman,
    WalG,
}

impl Tool {
    /// The tool whose names these are.
    fn of(names: &HashSet<OsString>) -> Option<Self> {
        let contains = |name: &str| names.contains(OsStr::new(name));
        match () {
            () if contains("PG_VERSION") => None,
            () if contains("backup") && contains("archive") => Some(Self::PgBackRest),
            () if contains("base") && contains("wals") => Some(Self::Barman),
            () if contains("basebackups_005") => Some(Self::WalG),
            () => None,
        }
    }
}

/// True when the names in a directory are those of a repository.
pub(crate) fn is_repository(names: &HashSet<OsString>) -> bool {
    Tool::of(names).is_some()
}

impl Repository {
    /// The repository in a directory, if it is one.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn find(storage: &Storage, directory: &Path) -> Result<Option<Self>> {
        let names = names(storage, directory)?;
        Ok(Tool::of(&names).map(|tool| match tool {
            Tool::PgBackRest => Self::PgBackRest(PgBackRest::new(storage, directory)),
            Tool::Barman => Self::Barman(Barman::new(storage, directory)),
            Tool::WalG => Self::WalG(WalG::new(storage, directory)),
        }))
    }

    /// With what a repository of pgBackRest is encrypted by, if it is.
    #[must_use]
    pub fn with_passphrase(self, passphrase: Option<Passphrase>) -> Self {
        match self {
            Self::PgBackRest(found) => Self::PgBackRest(found.with_passphrase(passphrase)),
            others => others,
        }
    }

    /// What there is of each owner, or of the stanza of this name.
    ///
    /// # Errors
    /// Refused: there is no such stanza. What cannot be read or is damaged.
    pub fn list(&self, stanza: Option<&str>) -> Result<Vec<ListedOwner>> {
        match self {
            Self::PgBackRest(repository) => repository.list(stanza),
            Self::Barman(server) => Ok(vec![server.listed()?]),
            Self::WalG(folder) => Ok(vec![folder.listed()?]),
        }
    }

    /// Shows a backup as the data directory that it was made of; nothing is named where there is one stanza only, or none.
    ///
    /// # Errors
    /// Refused: there is no such backup, or it cannot be read. What is damaged.
    pub fn open(
        &self,
        stanza: Option<&str>,
        name: &BackupName,
        notice: &UnpackNotice,
    ) -> Result<OpenBackup> {
        let path = match self {
            Self::PgBackRest(repository) => {
                let stanza = repository.stanza(stanza)?;
                return stanza.open(stanza.backup(name)?, notice);
            }
            Self::Barman(server) if stanza.is_none() => return server.open(name, notice),
            Self::WalG(folder) if stanza.is_none() => return folder.open(name, notice),
            Self::Barman(server) => server.root(),
            Self::WalG(folder) => folder.root(),
        };
        let (path, cause) = (path.to_owned(), RepositoryCause::NoStanzasHere);
        Err(Error::refused(Refusal::Repository { path, cause }))
    }
}

/// What lies in a directory.
fn names(storage: &Storage, directory: &Path) -> pagemill_io::Result<HashSet<OsString>> {
    Ok(storage.read_dir(directory)?.into_iter().map(|entry| entry.name).collect())
}

/// The moment that a tool wrote down; `None` where that is not to be read.
fn moment(text: Option<&String>) -> Option<Moment> {
    text.and_then(|text| iso_timestamptz(text)).map(Moment)
}

/// The major version of a number like 150004.
fn major_version(number: u32) -> u32 {
    number / 10_000
}
