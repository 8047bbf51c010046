//! Why something that exists cannot be done: the cause as a value, with the names that it concerns.
//!
//! A caller can match on the cause; its text is what a person reads. Remedies that a server or the system offers are part of
//! the text. What to type instead is not: that is the caller's to add, who alone knows how it was asked.
//!
//! Here is the one enum that all of them are in; the causes are in rooms by what they are about.

mod changes;
mod databases;
mod loading;
mod recovery;
mod repository;
mod values;

use std::io;
use std::path::PathBuf;

use pagemill_format::{Lsn, Oid};

use crate::recovery::plan::RecoveryProblem;

pub use changes::{CatalogRowCause, LockCause, StateCause};
pub use databases::{DatabaseCause, MappingCause, NewDatabaseCause};
pub use loading::{IndexCause, LoadObstacle};
pub use recovery::RecoveryCause;
pub use repository::RepositoryCause;
pub use values::{ExpressionCause, MoneyCause, OrderCause, OutputCause, TypeCause};

/// Why something cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A directory, or what lies in it, that a recovery cannot be planned by.
    #[error("{path}: {cause}", path = path.display())]
    RecoveryPlan {
        /// The directory.
        path: PathBuf,
        /// Why not.
        cause: Box<RecoveryCause>,
    },
    /// A backup in tar format lacks the archive of a tablespace.
    #[error(
        "{path}: no such file: it is the archive of tablespace {tablespace}, which was at {was}: lay it beside base.tar",
        path = path.display(),
        was = was.display()
    )]
    MissingArchive {
        /// The archive.
        path: PathBuf,
        /// The tablespace.
        tablespace: Oid,
        /// Where the server had it.
        was: PathBuf,
    },
    /// An archive of a backup that is compressed in a way that is not read.
    #[error("{path}: neither gzip, lz4, zstd nor bzip2: unpack it first", path = path.display())]
    ArchiveCompression {
        /// The archive.
        path: PathBuf,
    },
    /// An archive of a backup that cannot be decompressed.
    #[error("{path}: cannot be decompressed: {cause}", path = path.display())]
    ArchiveDamage {
        /// The archive.
        path: PathBuf,
        /// What the decoder says.
        cause: io::Error,
    },
    /// A compressed archive for which there is no space.
    #[error(
        "{path}: compressed, and {needed} bytes or more when unpacked, but {directory} has only {left} bytes left: free some, or \
         name another directory in TMPDIR",
        path = path.display(),
        directory = directory.display()
    )]
    NoSpaceToUnpack {
        /// The archive.
        path: PathBuf,
        /// Bytes that come out of it, at least.
        needed: u64,
        /// Bytes there are.
        left: u64,
        /// Where the temporary file would be.
        directory: PathBuf,
    },
    /// A repository does not have what is asked for.
    #[error("{path}: {cause}", path = path.display())]
    Repository {
        /// The repository, or the part of it that is looked at.
        path: PathBuf,
        /// What it lacks.
        cause: RepositoryCause,
    },
    /// A backup that has only what changed since another one.
    #[error(
        "{path}: this is an incremental backup, which has only what changed since {from}: make a \
         whole one of it and those before it with pg_combinebackup",
        path = path.display()
    )]
    Incremental {
        /// The backup.
        path: PathBuf,
        /// Where the backup before it began.
        from: Lsn,
    },
    /// A backup that another builds on is missing.
    #[error(
        "{path}: it builds on a backup that began at {from}{on}, which is missing: name that one too",
        path = path.display(),
        on = timeline.map(|number| format!(" on timeline {number}")).unwrap_or_default()
    )]
    MissingBase {
        /// The backup that builds on it.
        path: PathBuf,
        /// Where the missing one began.
        from: Lsn,
        /// On which timeline, if the label says so.
        timeline: Option<u32>,
    },
    /// A backup that none of the others builds on.
    #[error("{path}: none of the other backups builds on this one, which began at {start}: leave it out", path = path.display())]
    NotInChain {
        /// The backup.
        path: PathBuf,
        /// Where it began.
        start: Lsn,
    },
    /// A backup of a chain without its label.
    #[error("{path}: no such file: without it, what the backup builds on is unknown", path = path.display())]
    NoLabel {
        /// The label.
        path: PathBuf,
    },
    /// A backup of another cluster.
    #[error("{path}: it is of the cluster with system identifier {found}, not {expected}", path = path.display())]
    OtherCluster {
        /// The backup, or its manifest.
        path: PathBuf,
        /// Its system identifier.
        found: u64,
        /// That of what it belongs to.
        expected: u64,
    },
    /// The server ended while a backup was being taken.
    #[error(
        "the server was shut down at {0}, before the backup ended: it cannot be made consistent"
    )]
    BackupCanceled(Lsn),
    /// WAL from an archive that does not hold all changes.
    #[error(
        "from {0} on WAL was written with wal_level=minimal, which lacks changes: recover to a place before it, or take \
         a new backup"
    )]
    MinimalWal(Lsn),
    /// WAL of a timeline that replay does not come along.
    #[error(
        "the record at {lsn} goes from timeline {from} to {to}, but replay has come along {along}"
    )]
    StrayTimeline {
        /// Where the record begins.
        lsn: Lsn,
        /// The timeline it leaves.
        from: u32,
        /// The timeline it begins.
        to: u32,
        /// The timeline so far.
        along: u32,
    },
    /// Recovery does not come to where it should.
    #[error("{0}")]
    Recovery(RecoveryProblem),
    /// A catalog does not have the row of something that others refer to.
    #[error("{catalog} has no row for {what} with OID {oid}")]
    MissingRow {
        /// The catalog.
        catalog: &'static str,
        /// What kind of thing it is.
        what: String,
        /// Its number.
        oid: Oid,
    },
    /// A relation has no file to be read or changed.
    #[error("relation {0} has no files")]
    NoFiles(Oid),
    /// A TOAST table has no index to find chunks by.
    #[error("TOAST table {0} has no valid index: REINDEX it in PostgreSQL")]
    NoToastIndex(Oid),
    /// A number that no encoding has.
    #[error("the database's encoding has the unknown number {0}")]
    UnknownEncoding(i32),
    /// The setting `TimeZone` names a zone that the system's files do not have.
    #[error("the setting TimeZone is \"{0}\", which is not known here")]
    UnknownTimeZone(String),
    /// Values of `money` cannot be printed as the setting `lc_monetary` asks.
    #[error("lc_monetary is {locale:?}, {cause}")]
    Money {
        /// The locale.
        locale: String,
        /// What is wrong with it.
        cause: MoneyCause,
    },
    /// The system's C library has no such locale.
    #[error("this system does not have the locale {locale} ({error})")]
    MissingLocale {
        /// The locale.
        locale: String,
        /// The system's words.
        error: io::Error,
    },
    /// Values of a type cannot be printed, read or ordered.
    #[error("type {name} {cause}")]
    Type {
        /// The type.
        name: String,
        /// What is in the way.
        cause: TypeCause,
    },
    /// Values of a column cannot be read.
    #[error("column \"{column}\": {cause}")]
    Column {
        /// The column.
        column: String,
        /// Why not.
        cause: Box<Refusal>,
    },
    /// An expression that is stored in a catalog cannot be evaluated.
    #[error(transparent)]
    Expression(#[from] ExpressionCause),
    /// An operator class or a collation whose order is not known.
    #[error(transparent)]
    Order(#[from] OrderCause),
    /// Rows cannot be loaded into a table.
    #[error("{relation} cannot be loaded: {obstacle}: {}", .obstacle.remedy())]
    NotLoadable {
        /// `schema.table`.
        relation: String,
        /// What is in the way.
        obstacle: LoadObstacle,
    },
    /// A database cannot be opened, made or removed.
    #[error("database \"{name}\" {cause}")]
    Database {
        /// Its name.
        name: String,
        /// What is in the way.
        cause: DatabaseCause,
    },
    /// A new database cannot have what its template or its caller asks for.
    #[error(transparent)]
    NewDatabase(#[from] NewDatabaseCause),
    /// A row of a catalog cannot be changed as it has to be.
    #[error(transparent)]
    CatalogRow(#[from] CatalogRowCause),
    /// The mapping of a tablespace cannot be followed.
    #[error(transparent)]
    Mapping(#[from] MappingCause),
    /// A link of a copy leads to files of the server that was copied.
    #[error(
        "{}: it leads to {}, which the running server on {} (process {pid}) uses: its files are of another moment than this \
         copy's", link.display(), directory.display(), server.display()
    )]
    LiveTablespace {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        directory: PathBuf,
        /// The data directory of the server.
        server: PathBuf,
        /// Its process.
        pid: i32,
    },
    /// The cluster is in no state to be changed.
    #[error("{path}: {cause}")]
    State {
        /// The data directory.
        path: PathBuf,
        /// What state it is in.
        cause: StateCause,
    },
    /// The right to change the cluster cannot be taken.
    #[error("{path}: {cause}")]
    Lock {
        /// The lock file, or the data directory.
        path: PathBuf,
        /// Why not.
        cause: LockCause,
    },
}

impl Refusal {
    /// A row that a catalog does not have.
    pub fn missing_row(catalog: &'static str, what: impl Into<String>, oid: Oid) -> Self {
        Self::MissingRow { catalog, what: what.into(), oid }
    }

    /// Something about a database.
    pub fn database(name: &[u8], cause: DatabaseCause) -> Self {
        Self::Database { name: String::from_utf8_lossy(name).into_owned(), cause }
    }
}
