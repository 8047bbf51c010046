//! Why something that exists cannot be done: the cause as a value, with the names that it concerns.
//!
//! A caller can match on the cause; its text is what a person reads. Remedies that a server or the system offers are part of
//! the text. What to type instead is not: that is the caller's to add, who alone knows how it was asked.

use std::io;
use std::path::PathBuf;

use pagemill_format::{Error as FormatError, Lsn, Oid};

use crate::recovery::plan::RecoveryProblem;
use crate::relation::RelationKind;

/// Why something cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A file that says how a directory is to be recovered cannot be followed.
    #[error("{path}: {reason}", path = path.display())]
    RecoveryFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
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
    #[error("{path}: no such file: without it nobody knows what the backup builds on", path = path.display())]
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

/// Why `money` cannot be printed in a locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyCause {
    /// It is in no table.
    #[error("whose way to print money is not known")]
    UnknownLocale,
    /// Its sign for the currency cannot be encoded.
    #[error("whose currency the encoding of the database does not have")]
    NotInEncoding,
}

/// What is in the way of a type's values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeCause {
    /// It contains itself, or is nested deeper than any type can be.
    #[error("contains itself")]
    ContainsItself,
    /// `typlen` or `typalign` have values that they cannot have.
    #[error("cannot be read: {0}")]
    Layout(FormatError),
    /// It is a range or multirange without its row.
    #[error("is not in pg_range")]
    NotInPgRange,
    /// Its output function is not known.
    #[error("cannot be printed: {0}")]
    Output(OutputCause),
    /// Its input function is not known.
    #[error("cannot be read: its input function is not built in, and only a server can run it")]
    Input,
    /// It has no input function, or one that only refuses.
    #[error("has no values that could be read from a text")]
    NoInput,
    /// It is a pseudo-type.
    #[error("is a pseudo-type, which no column can have")]
    Pseudo,
    /// It is a domain with a constraint that is not evaluated here.
    #[error("is a domain whose CHECK constraint {constraint} only a server can check ({cause})")]
    DomainCheck {
        /// The constraint.
        constraint: String,
        /// Why not.
        cause: Box<Refusal>,
    },
    /// It is a range with a canonical function that is not built in.
    #[error("is a range with a canonical function of its own, which only a server can call")]
    CanonicalFunction,
    /// It is a range over something that cannot be ordered here.
    #[error("is a range over a type whose order only a server knows ({0})")]
    RangeOrder(Box<Refusal>),
    /// It is a multirange, and what it is over is not a range.
    #[error("is a multirange over a type that is no range")]
    MultirangeOverNoRange,
    /// Its default operator class is not the built-in one.
    #[error("has an operator class of its own")]
    OwnOperatorClass,
    /// Its values have an order in a collation only, and none is given.
    #[error("is in no collation")]
    NoCollation,
    /// It is a range, and its values are ordered by another operator class than by default.
    #[error("is ordered by the operator class {0}")]
    OperatorClass(String),
    /// Its order is not known here.
    #[error("orders its values in a way that is not known here")]
    UnknownOrder,
}

/// Why a type's output function is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputCause {
    /// It is in a shared library of an extension.
    #[error("its output function {function} is code of the library {library}")]
    Library {
        /// The function.
        function: String,
        /// The library, as `pg_proc` names it.
        library: String,
    },
    /// It is in no library, and not one of PostgreSQL's own.
    #[error("its output function {0} is not built in")]
    NotBuiltIn(String),
    /// There is none.
    #[error("its output function {0} is missing in pg_proc")]
    Missing(Oid),
}

/// Why an expression cannot be evaluated. The texts say it of the expression: "it …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionCause {
    /// Its text is in a TOAST table.
    #[error("it is stored out of line")]
    OutOfLine,
    /// Its text, or a constant in it, is not as PostgreSQL writes it.
    #[error("{0}")]
    Unreadable(String),
    /// Its text is something else.
    #[error("it is no expression")]
    NotAnExpression,
    /// A node of a kind that is not evaluated here.
    #[error("it has a node {0}")]
    Node(String),
    /// A node with fields that it should not have.
    #[error("it has a node {0} that is not understood")]
    OddNode(String),
    /// A reference to something else than a column.
    #[error("it refers to a whole row or to a column of the system")]
    NotAColumn,
    /// A pattern that differs by row.
    #[error("it matches a pattern that is no constant")]
    VariablePattern,
    /// A pattern whose meaning depends on what is not known here.
    #[error("it matches the pattern {0:?}")]
    Pattern(String),
    /// A cast of an array that calls a function per element.
    #[error("it casts the elements of an array")]
    ElementCast,
    /// A list that differs by row.
    #[error("it has a list that is no constant")]
    VariableList,
    /// `IS NULL` of a row.
    #[error("it asks whether a row is null")]
    RowIsNull,
    /// `CASE value WHEN …`.
    #[error("it has a CASE with a value")]
    CaseWithValue,
    /// A function whose meaning is not known here.
    #[error("it calls the function {0}")]
    Function(String),
    /// An operator of an extension or of a user.
    #[error("it uses an operator that is not built in")]
    OperatorNotBuiltIn,
    /// A built-in operator whose meaning is not known here.
    #[error("it uses the operator {name} of types {left} and {right}")]
    Operator {
        /// The operator.
        name: String,
        /// The type on its left.
        left: Oid,
        /// The type on its right.
        right: Oid,
    },
}

/// Why the order of an index or a partition key is not known. The texts say it of the index or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderCause {
    /// Its row in `pg_index` does not fit together.
    #[error("has more columns than operator classes")]
    TooFewOperatorClasses,
    /// An operator class of an extension or of a user.
    #[error("uses the operator class {0}, which is not built in")]
    OperatorClass(String),
    /// An operator class without its row.
    #[error("uses operator class {0}, which is missing")]
    MissingOperatorClass(Oid),
    /// A collation without its row.
    #[error("uses collation {0}, which is missing")]
    MissingCollation(Oid),
    /// A collation in which different texts can be equal.
    #[error("uses a collation that is not deterministic")]
    NotDeterministic,
    /// A collation of ICU.
    #[error("uses a collation of ICU, whose order is not followed here")]
    Icu,
}

/// What is in the way of loading rows into a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadObstacle {
    /// It has no rows of its own, or not in files.
    #[error("it is {} {}", article(.0.name()), .0.name())]
    Kind(RelationKind),
    /// It is a catalog.
    #[error("it is a table of the system")]
    SystemTable,
    /// It is a temporary table.
    #[error("it is temporary, left over from a session")]
    Temporary,
    /// Its access method is not `heap`.
    #[error("its access method is not heap")]
    AccessMethod,
    /// Row security is enabled for it.
    #[error("row security is enabled for it")]
    RowSecurity,
    /// The catalogs do not have its TOAST table or the index of that.
    #[error("its TOAST table or the index of that is missing")]
    MissingToast,
    /// A column that is computed from others.
    #[error("its column {0} is generated, and only a server can fill it")]
    GeneratedColumn(String),
    /// It is to be truncated, and another table refers to its rows.
    #[error("the foreign key {0} of another table refers to it")]
    ReferringKey(String),
    /// A check constraint that is not evaluated here.
    #[error("the check constraint {name} of it cannot be checked without a server ({cause})")]
    Check {
        /// The constraint.
        name: String,
        /// Why not.
        cause: Box<Refusal>,
    },
    /// A constraint of a kind that is not checked here.
    #[error("the {kind} {name} of it cannot be checked without a server")]
    Constraint {
        /// Its kind, as PostgreSQL calls it.
        kind: &'static str,
        /// The constraint.
        name: String,
    },
    /// A trigger that would fire.
    #[error("its trigger {0} would have to run")]
    Trigger(String),
    /// An index without its row in `pg_class`.
    #[error("its index {0} has no row in pg_class")]
    MissingIndex(Oid),
    /// An index that cannot be built.
    #[error("its index {name} {cause}")]
    Index {
        /// The index.
        name: String,
        /// What is in the way.
        cause: IndexCause,
    },
    /// A partition key with an expression.
    #[error("its partition key has an expression, which only a server can evaluate")]
    PartitionExpression,
    /// A partition key whose order is not known.
    #[error("its partition key {0}")]
    PartitionKey(OrderCause),
}

impl LoadObstacle {
    /// What can be done about it, on the server or in SQL.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Kind(_) | Self::AccessMethod => "use COPY on a running server",
            Self::SystemTable => "load your own tables only",
            Self::Temporary => "create a table",
            Self::RowSecurity => "use COPY",
            Self::MissingToast => "restore it",
            Self::GeneratedColumn(_) => "drop that property for the load, or use COPY",
            Self::ReferringKey(_) => "drop that first",
            Self::Check { .. } | Self::Constraint { .. } => {
                "drop it and add it again after the load, or use COPY"
            }
            Self::Trigger(_) => "disable it (ALTER TABLE … DISABLE TRIGGER), or use COPY",
            Self::MissingIndex(_) => "REINDEX the catalogs",
            Self::Index { .. } => "drop it and create it again after the load, or use COPY",
            Self::PartitionExpression | Self::PartitionKey(_) => {
                "load its partitions one by one, or use COPY"
            }
        }
    }
}

/// Why an index cannot be built. The texts say it of the index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexCause {
    /// Another access method.
    #[error("is no B-tree")]
    NotABtree,
    /// What a failed `CREATE INDEX CONCURRENTLY` leaves.
    #[error("is not valid")]
    Invalid,
    /// A partial index.
    #[error("has a WHERE clause, which only a server can evaluate")]
    Predicate,
    /// An index over expressions.
    #[error("is over an expression, which only a server can evaluate")]
    Expression,
    /// Its order is not known.
    #[error(transparent)]
    Order(#[from] OrderCause),
}

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

/// Why a row of a catalog cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogRowCause {
    /// The page does not have it any more.
    #[error("a row of a catalog lost its line pointer")]
    LostLinePointer,
    /// It is longer than a page.
    #[error("a row of a catalog finds no room on an empty page")]
    NoRoom,
    /// A value of it lies in a TOAST table.
    #[error("a row of a catalog that has to be copied has a value in a TOAST table")]
    ToastedValue,
}

/// Why a cluster is in no state to be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateCause {
    /// It was not shut down.
    #[error(
        "the cluster's state is \"{0}\", not \"shut down\": start PostgreSQL on it and stop it"
    )]
    NotShutDown(String),
    /// A server would begin with a recovery.
    #[error("there is a {0}: start PostgreSQL on it first, and stop it")]
    RecoveryFile(&'static str),
    /// Transactions were prepared and wait for their end.
    #[error(
        "{0} prepared transactions are waiting, which may hold locks: COMMIT or ROLLBACK PREPARED them first"
    )]
    PreparedTransactions(usize),
    /// Too few transaction numbers are left before the wraparound.
    #[error("transaction numbers are running out: VACUUM the databases first")]
    Wraparound,
}

/// Why the right to change a cluster cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockCause {
    /// Something makes the lock file again and again.
    #[error("it comes back each time it is removed: a server may be starting, try again")]
    ComesBack,
    /// A starting server would take this process for one that is gone.
    #[error(
        "a server that starts would not see that this process is at work, as it is of another account than the \
         directory ({0}): run it as the owner of the directory"
    )]
    NotSeen(io::Error),
    /// Children of a server that was killed are at work.
    #[error(
        "process {pid} is gone, but others of its server still use shared memory segment {segment}: stop them first"
    )]
    SharedMemory {
        /// The server that is gone.
        pid: i32,
        /// The segment's number.
        segment: u32,
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

fn article(noun: &str) -> &'static str {
    if noun.starts_with('i') { "an" } else { "a" }
}

fn listed_tablespaces(there: &[PathBuf]) -> String {
    if there.is_empty() {
        return "which has none outside of its data directory".to_owned();
    }
    let there: Vec<_> = there.iter().map(|path| path.display().to_string()).collect();
    format!("which has {}", there.join(", "))
}
