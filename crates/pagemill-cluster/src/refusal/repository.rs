//! Why a backup of a repository cannot be opened: there is none of that name, it is not said which one is meant, or it is of a kind that
//! is not read.
//!
//! What there is instead is told, as far as it fits on a line.

use pagemill_format::Oid;

use crate::backup_repository::{BackupName, BackupOwner};

/// What a repository of backups lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryCause {
    /// The directory is none.
    #[error(
        "no repository of backups: it has neither backup and archive, as pgBackRest's have, nor base and wals of a server of Barman, \
         nor basebackups_005 of WAL-G in it"
    )]
    NoRepository,
    /// No stanza has a `backup.info`.
    #[error("no stanza in this pgBackRest repository has a backup.info")]
    NoStanzas,
    /// Several stanzas, of which one has to be named.
    #[error("this pgBackRest repository has several stanzas: name one of {}", list(.0))]
    Stanzas(Vec<String>),
    /// A stanza is named of what has none.
    #[error("this is no pgBackRest repository, and only those have stanzas")]
    NoStanzasHere,
    /// An encrypted repository, and nothing to decrypt it by.
    #[error("this pgBackRest repository is encrypted, and there is no passphrase for it")]
    NoPassphrase,
    /// What the passphrase does not decrypt.
    #[error(
        "the passphrase for this pgBackRest repository is not the one that this file was encrypted by, or the file is damaged"
    )]
    WrongPassphrase,
    /// No stanza of this name.
    #[error("no stanza \"{name}\" with a backup.info in this pgBackRest repository: it has {}", list(.there))]
    NoStanza {
        /// The name.
        name: String,
        /// Those there are.
        there: Vec<String>,
    },
    /// There are no backups, or none that is whole.
    #[error("{owner} has no backup that is whole")]
    NoBackups {
        /// Whose they would be.
        owner: BackupOwner,
    },
    /// No backup with this label.
    #[error("{owner} has no backup \"{label}\": it has {}", list(.there))]
    NoBackup {
        /// Whose it would be.
        owner: BackupOwner,
        /// The label.
        label: String,
        /// Those there are.
        there: Vec<String>,
    },
    /// The manifest of a backup is not there, or that of another one.
    #[error("no manifest of the backup {label}: it was expired, or is not all here")]
    NoManifest {
        /// The label of the backup.
        label: String,
    },
    /// A backup that failed, or was not finished.
    #[error(
        "the backup {label} is not whole: its status is {status}{}",
        error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default()
    )]
    NotWhole {
        /// The label of the backup.
        label: String,
        /// What the tool says it is.
        status: &'static str,
        /// What the tool says why.
        error: Option<String>,
    },
    /// An encrypted backup.
    #[error("the backup {label} is encrypted by {by}; encrypted backups are not read")]
    Encrypted {
        /// The label of the backup.
        label: String,
        /// By what.
        by: String,
    },
    /// A file that is compressed in a way that is not read, as its name says.
    #[error("{file} is compressed by {by}, which is not read")]
    Compression {
        /// The file.
        file: String,
        /// By what.
        by: &'static str,
    },
    /// A file that is not compressed in the way that its name says.
    #[error(
        "{file} is not what its name says: it is damaged, or WAL-G encrypted it (by libsodium, PGP or a service of keys); encrypted \
         backups are not read"
    )]
    NotAsNamed {
        /// The file.
        file: String,
    },
    /// A backup whose files are not in the repository.
    #[error(
        "the backup {label} is made of snapshots of volumes: mount those, and read the data directory on them"
    )]
    Snapshots {
        /// The label of the backup.
        label: String,
    },
    /// Nothing of the files is there.
    #[error("the backup {label} has no files here: it was deleted, or is not all here")]
    NoFiles {
        /// The label of the backup.
        label: String,
    },
    /// The files of a tablespace are not there.
    #[error("the backup {label} lacks its tablespace {tablespace}: it is not all here")]
    NoTablespace {
        /// The label of the backup.
        label: String,
        /// The tablespace.
        tablespace: Oid,
    },
    /// A backup that another builds on is not there.
    #[error("the backup {label} builds on {parent}, which is not here")]
    NoParent {
        /// The label of the backup.
        label: String,
        /// That of the one before.
        parent: String,
    },
    /// A delta backup of which nobody wrote down what it has.
    #[error(
        "the backup {label} is a delta backup without a list of its files (files_metadata.json), which tells what is as in the backup \
         before"
    )]
    NoFileList {
        /// The label of the backup.
        label: String,
    },
}

impl RepositoryCause {
    /// That this backup is not there.
    pub(crate) fn no_backup(owner: BackupOwner, name: &BackupName, there: Vec<String>) -> Self {
        match name {
            BackupName::Latest => Self::NoBackups { owner },
            BackupName::Label(label) => Self::NoBackup { owner, label: label.clone(), there },
        }
    }

    /// In few words, beside the backup's label.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::NotWhole { status, error: None, .. } => format!("not whole: {status}"),
            Self::NotWhole { status, error: Some(error), .. } => {
                format!("not whole: {status} ({error})")
            }
            Self::Encrypted { by, .. } => format!("encrypted by {by}"),
            Self::Snapshots { .. } => "snapshots of volumes".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Names that are told at most.
const MOST_TOLD: usize = 8;

/// The last names of a list.
fn list(names: &[String]) -> String {
    let told = &names[names.len().saturating_sub(MOST_TOLD)..];
    match (names.len() - told.len(), told) {
        (_, []) => "none".to_owned(),
        (0, told) => told.join(", "),
        (others, told) => format!("{others} others and {}", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_as_far_as_they_fit() {
        let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect();
        let said = |count| RepositoryCause::Stanzas(names(count)).to_string();
        assert!(said(0).ends_with("one of none") && said(2).ends_with("one of n0, n1"));
        assert!(said(9).ends_with("1 others and n1, n2, n3, n4, n5, n6, n7, n8"));
    }
}
