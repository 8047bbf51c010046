//! Why a database cannot be opened, made or dropped, and what is wrong with a mapping of tablespaces.
//!
//! Invariant: names of databases and directories are said as they are, so that they can be looked for.

use std::path::PathBuf;

/// Why the mapping of a tablespace cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MappingCause {
    /// A tablespace with two directories for its copy.
    #[error("{} is mapped twice", .0.display())]
    Twice(PathBuf),
    /// Two tablespaces with one directory for their copies.
    #[error("{} is named for two tablespaces: each needs a directory of its own", .0.display())]
    SharedTarget(PathBuf),
    /// A directory that is none of a tablespace.
    #[error("{} is no tablespace of this cluster, {}", old.display(), listed_tablespaces(there))]
    NoTablespace {
        /// The directory.
        old: PathBuf,
        /// Those of its tablespaces.
        there: Vec<PathBuf>,
    },
    /// A directory that has nothing of this cluster.
    #[error("{} has no {version} in it, so it is no tablespace of this cluster", .new.display())]
    EmptyTarget {
        /// The directory.
        new: PathBuf,
        /// The directory that a tablespace of this cluster has in it.
        version: String,
    },
}

/// Why a database cannot be opened, made or removed. The texts say it of the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseCause {
    /// A `DROP DATABASE` did not end.
    #[error(
        "is invalid: a DROP DATABASE of it was interrupted, and some of its files may be gone: nothing in it can be \
         relied on, finish with DROP DATABASE"
    )]
    Invalid,
    /// A backup lacks what the database was copied from.
    #[error(
        "was made by copying files after the backup began, and the files that were copied are not in it: read a backup \
         that was begun later"
    )]
    LostSource,
    /// There is one of that name.
    #[error("exists already: choose another name, or drop it first")]
    Exists,
    /// It is the template, and the system's C library has changed since it was made.
    #[error(
        "was made with version {known} of its collation, and this system has {actual}: rebuild what depends on it and \
         run ALTER DATABASE … REFRESH COLLATION VERSION first"
    )]
    CollationVersion {
        /// The version it was made with.
        known: String,
        /// The system's.
        actual: String,
    },
    /// It is the template, and tables of it lie in what would be the new database's own tablespace.
    #[error(
        "has tables in the tablespace that its copy is to have as its own: move those tables first"
    )]
    TablesInTarget,
    /// It is a template.
    #[error(
        "is a template, which no server drops either: run ALTER DATABASE … IS_TEMPLATE false first"
    )]
    IsTemplate,
    /// It is the only one.
    #[error("is the only database of the cluster: make another one first")]
    IsOnlyOne,
    /// Subscriptions use it.
    #[error("is used by {0} subscriptions: run DROP SUBSCRIPTION on a server first")]
    Subscriptions(u32),
    /// A logical replication slot decodes its changes.
    #[error("has the logical replication slot \"{0}\": drop it on a server first")]
    Slot(String),
}

/// Why a new database cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NewDatabaseCause {
    /// No role could own it.
    #[error("there is no superuser to own it: name another owner")]
    NoOwner,
    /// PostgreSQL 14 has no records for it.
    #[error(
        "PostgreSQL 14 has no WAL records for a database that is logged by its pages: copy its files"
    )]
    NotLoggedByPages,
    /// `pg_global` holds shared catalogs only.
    #[error("pg_global cannot be the tablespace of a database: name another")]
    GlobalTablespace,
    /// The build cannot ask the system for the version of its C library.
    #[error(
        "the new database's collation {0} needs the version of the system's glibc, which this build of pagemill (musl, \
         without locales) cannot tell: use the build for glibc, or a template that has the version"
    )]
    UnknownLibrary(String),
}

fn listed_tablespaces(there: &[PathBuf]) -> String {
    if there.is_empty() {
        return "which has none outside of its data directory".to_owned();
    }
    let there: Vec<_> = there.iter().map(|path| path.display().to_string()).collect();
    format!("which has {}", there.join(", "))
}
