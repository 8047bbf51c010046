//! Why an operation cannot be done, and which requests cannot be meant: the cause as a value, with the names that it
//! concerns.
//!
//! A caller can match on the cause; its text is what a person reads. Remedies that a server or the system offers are part of
//! the text. What to type instead is not: that is the caller's to add, who alone knows how it was asked.

use std::io;
use std::path::PathBuf;

pub use pagemill_cluster::refusal::MappingCause;
use pagemill_cluster::{Refusal as ClusterRefusal, RelationKind};
use pagemill_format::{BlockNumber, Error as FormatError, Oid};
use pagemill_io::NotShared;

/// Why an operation cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A relation has no rows to be read.
    #[error("{relation} {cause}")]
    Unreadable {
        /// `schema.name`.
        relation: String,
        /// What it is.
        cause: UnreadableCause,
    },
    /// Columns have values that cannot be printed.
    #[error("{relation}: {}", listed_columns(.columns))]
    Unprintable {
        /// `schema.name`.
        relation: String,
        /// All such columns, by name, each with the reason.
        columns: Vec<(String, ClusterRefusal)>,
    },
    /// A column has no values in the files.
    #[error(
        "column {column} of {relation} is computed when it is read; no values of it are stored"
    )]
    VirtualColumn {
        /// The column.
        column: String,
        /// `schema.name`.
        relation: String,
    },
    /// Rows cannot be read in the order that is asked for.
    #[error(transparent)]
    Order(#[from] OrderRefusal),
    /// Rows cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadRefusal),
    /// A database cannot be cloned as asked.
    #[error(transparent)]
    Clone(#[from] CloneRefusal),
    /// A cluster cannot be copied as asked.
    #[error(transparent)]
    Copy(#[from] CopyRefusal),
}

/// Why a relation cannot be read. The texts say it of the relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableCause {
    /// A kind that has no rows.
    #[error("is {} {}: {}", article(.0.name()), .0.name(), where_rows_are(*.0))]
    Kind(RelationKind),
    /// A materialized view that was never filled.
    #[error("is a {} that has not been populated: run REFRESH MATERIALIZED VIEW on it", .0.name())]
    NotPopulated(RelationKind),
    /// Its rows were in the memory of a session.
    #[error("is a temporary table of a session that is gone")]
    Temporary,
    /// Not `heap`.
    #[error("uses table access method {0}, only heap can be read")]
    AccessMethod(Oid),
}

/// Why rows cannot be read in the order of an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {choices}")]
pub struct OrderRefusal {
    /// What is wrong with what was asked for.
    pub cause: OrderCause,
    /// What could be asked for.
    pub choices: OrderChoices,
}

/// What is wrong with an index that rows should be read by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderCause {
    /// There is none of this name.
    #[error("index {index} of {table} does not exist")]
    Missing {
        /// As it was asked for.
        index: String,
        /// The table.
        table: String,
    },
    /// Something else has this name.
    #[error("{name} is a {} and no index", .kind.name())]
    NotAnIndex {
        /// Its name.
        name: String,
        /// What it is.
        kind: RelationKind,
    },
    /// A catalog does not know it as an index.
    #[error("pg_index has no row for {0}")]
    NoRow(String),
    /// It belongs to another table.
    #[error("{name} is an index of {other}, not of {table}")]
    OfAnotherTable {
        /// The index.
        name: String,
        /// Its table.
        other: String,
        /// The table that was asked for.
        table: String,
    },
    /// Another access method.
    #[error("{0} is not a B-tree and has no order")]
    NotABtree(String),
    /// It may lack entries.
    #[error(
        "{0} is an invalid index, left by a CREATE INDEX CONCURRENTLY or a DROP INDEX CONCURRENTLY that did not end, and \
         may lack entries: run REINDEX on it"
    )]
    Invalid(String),
    /// It has not all rows.
    #[error("{0} is a partial index, the rows that its WHERE leaves out would be missing")]
    Partial(String),
    /// The table is partitioned.
    #[error("{0} is partitioned, and an index of it is only a name for those of its partitions")]
    Partitioned(String),
}

/// What rows could be read in the order of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderChoices {
    /// Names like the one that was asked for.
    #[error("did you mean {}?", .0.join(" or "))]
    Near(Vec<String>),
    /// Indexes of a table.
    #[error("the indexes {table} can be ordered by: {}", listed(indexes))]
    Indexes {
        /// The table.
        table: String,
        /// Its indexes.
        indexes: Vec<String>,
    },
    /// There are none.
    #[error("{0} has no B-tree index that has all its rows")]
    NoIndex(String),
    /// Partitions, each with an index of its own.
    #[error("order one partition by its own index, as {}", partitions_with_indexes(.0))]
    Partitions(Vec<(String, String)>),
    /// There are none.
    #[error("no partition has a B-tree index")]
    NoPartition,
}

/// Why rows cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadRefusal {
    /// A table has at most 2³² - 1 blocks.
    #[error("the table would have more blocks than a table can have")]
    TooManyBlocks,
    /// Rows are to be frozen behind others.
    #[error("{table} has {blocks} blocks, and rows can only be frozen in a table that was empty")]
    FreezeBehindRows {
        /// The table.
        table: String,
        /// How many blocks it has.
        blocks: u32,
    },
    /// An unlogged table has nothing to become after a crash.
    #[error("{base} has no init fork, though {name} is unlogged: rebuild it")]
    NoInitFork {
        /// The relation's files.
        base: PathBuf,
        /// Its name.
        name: String,
    },
    /// A column was named twice.
    #[error("column \"{0}\" is named twice")]
    ColumnTwice(String),
    /// A column without values in the input cannot be filled.
    #[error("column {column} of {table} {cause}")]
    LeftOut {
        /// The column.
        column: String,
        /// Its table.
        table: String,
        /// Why it cannot be filled.
        cause: LeftOutCause,
    },
    /// An index in an order that is not known here.
    #[error(
        "the index {index}, whose operator class {operator_class} orders values in a way{} that is not known here: drop \
         it and create it again after the load, or use COPY",
        in_brackets(cause.as_deref())
    )]
    IndexOrder {
        /// The index.
        index: String,
        /// Its operator class.
        operator_class: String,
        /// What is not known of it.
        cause: Option<Box<ClusterRefusal>>,
    },
    /// An index in the order of a locale that the C library does not have.
    #[error(
        "the index {index} is in the order of the locale {locale}, which is not available here ({error}): {}, or drop the \
         index and create it again after the load",
        locale_remedy(error)
    )]
    IndexLocale {
        /// The index.
        index: String,
        /// The locale.
        locale: String,
        /// The system's words.
        error: io::Error,
    },
    /// A partition key that cannot be followed.
    #[error(
        "{table} cannot be loaded: its partition key {cause}: load its partitions one by one, or use COPY"
    )]
    PartitionKey {
        /// The table.
        table: String,
        /// What is not known of it.
        cause: PartitionKeyCause,
    },
    /// Partitions in the order of a locale that the C library does not have.
    #[error(
        "rows are given to partitions in the order of the locale {locale}, which this system does not have ({error}): \
         install it (locale-gen), or use COPY"
    )]
    PartitionLocale {
        /// The locale.
        locale: String,
        /// The system's words.
        error: io::Error,
    },
    /// A bound of a partition that is not as PostgreSQL writes it.
    #[error("{table} has a partition whose bound cannot be read: {error}: use COPY")]
    PartitionBound {
        /// The table.
        table: String,
        /// What is wrong with it.
        error: FormatError,
    },
}

/// Why a column that the input does not have cannot be filled. The texts say it of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOutCause {
    /// Its type has a default.
    #[error("has the default of its type, which only a server can evaluate")]
    TypeDefault,
    /// It has a default that is neither a constant, nor the present moment, nor of a sequence.
    #[error("has a default, which only a server can evaluate")]
    Default,
    /// It has none, and may not be null.
    #[error("may not be null")]
    NotNull,
}

/// Why a partition key cannot be followed. The texts say it of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionKeyCause {
    /// Its catalog row does not fit the table's.
    #[error("has a column that the table does not have")]
    NotInTable,
    /// A partition has a column that the table at the top does not have.
    #[error("has a column that the target does not have")]
    NotInTarget,
    /// An operator class whose hash is not known here.
    #[error("is hashed by {0}, which is not known here")]
    Hash(String),
    /// An operator class whose order is not known here.
    #[error("is ordered by {0}, which is not known here")]
    Order(String),
}

/// Why a database cannot be cloned as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloneRefusal {
    /// The copy would not fit.
    #[error("{}: the copy needs {needed} bytes in this file system, which has {free}: make room", path.display())]
    NoSpace {
        /// A directory on the file system.
        path: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
        /// True where half of them are for WAL that another strategy does not write.
        is_logged: bool,
    },
    /// PostgreSQL 14 has no records for it.
    #[error("PostgreSQL 14 cannot replay a database that is logged page by page")]
    NotLoggedByPages,
    /// Files cannot share blocks.
    #[error("reflink is not supported on this file system: {0}")]
    NoReflink(NotShared),
}

/// Why a cluster cannot be copied as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyRefusal {
    /// The caller asked for the end.
    #[error("interrupted: what was copied so far is removed")]
    Interrupted,
    /// It failed, and some of what was made could not be removed.
    #[error("{failure}; what was made is still there in part ({left}): remove {}", destination.display())]
    NotRemoved {
        /// Why it failed.
        failure: Box<crate::Error>,
        /// What is left, and why.
        left: String,
        /// Where to.
        destination: PathBuf,
    },
    /// A server was started on the source.
    #[error(
        "{}: was changed meanwhile: a server was started on the source: stop it, and run this again", .0.display()
    )]
    SourceChanged(PathBuf),
    /// Files cannot share blocks.
    #[error("{}: cannot share blocks with {}: {cause}", to.display(), from.display())]
    NoReflink {
        /// The directory of the source.
        from: PathBuf,
        /// That of the copy.
        to: PathBuf,
        /// Why not.
        cause: NotShared,
    },
    /// Another process is making it.
    #[error("{}: another pagemill is making this copy: wait until it is done", .0.display())]
    BeingMade(PathBuf),
    /// A directory of the copy cannot be where it was named.
    #[error("{}: {cause}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        cause: DirectoryCause,
    },
    /// The copy would not fit.
    #[error(
        "{}: the copy takes {needed} bytes, and {free} bytes are free: free some, or copy to another file system",
        path.display()
    )]
    NoSpace {
        /// A directory on the file system.
        path: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    /// The source has not the WAL that a server would begin with.
    #[error(
        "{}: there is no {segment}, which has the last checkpoint, and no server could start without it: restore it",
        directory.display()
    )]
    MissingWal {
        /// The directory of the WAL.
        directory: PathBuf,
        /// The segment.
        segment: String,
    },
    /// The link of a tablespace leads to a directory without one.
    #[error(
        "{}: leads to {}, where there is no {version}: mount or restore it, or correct the link",
        link.display(), directory.display()
    )]
    EmptyTablespace {
        /// The link.
        link: PathBuf,
        /// Where it leads to.
        directory: PathBuf,
        /// The directory of this version that is missing there.
        version: String,
    },
    /// A tablespace without a directory for its copy.
    #[error("tablespace {}(OID {oid}) lies in {}", quoted(name.as_deref()), directory.display())]
    NotMapped {
        /// Its name, if that can be found out.
        name: Option<String>,
        /// Its number.
        oid: Oid,
        /// Where it lies.
        directory: PathBuf,
    },
    /// A mapping that cannot be followed.
    #[error(transparent)]
    Mapping(#[from] MappingCause),
}

/// Why a directory cannot be one of a copy. The texts say it of the directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryCause {
    /// The one above it is missing.
    #[error("{} is not there: make it first", .0.display())]
    NoParent(PathBuf),
    /// It lies in the source, or in another one of the copy.
    #[error("lies in {}: name a directory outside of it", .0.display())]
    Within(PathBuf),
    /// It is a file.
    #[error("it is a file: name a directory")]
    File,
    /// It has files in it that look like a copy that was cut short.
    #[error(
        "not empty: it looks like a copy that was not finished, as there is no global/pg_control in it: remove it, and \
         run this again"
    )]
    Unfinished,
    /// It has files in it.
    #[error("not empty: name a directory that is, or one that is not there")]
    NotEmpty,
}

/// What was asked for cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The patterns choose nothing.
    #[error("no matching tables were found")]
    NoTables,
    /// A pattern chooses nothing.
    #[error("no table matches {0:?}")]
    NoTableMatches(String),
    /// A pattern for schemas chooses nothing.
    #[error("no schema matches {0:?}")]
    NoSchemaMatches(String),
    /// A pattern where one relation has to be named.
    #[error("{0:?} is a pattern: name one relation here")]
    NotOneRelation(String),
    /// A pattern where one index has to be named.
    #[error("{0:?} is a pattern: name one index to order by")]
    NotOneIndex(String),
    /// A scan that begins behind the last block.
    #[error("a scan of {relation} cannot begin with block {start}: {}", last_block(*blocks))]
    StartPastEnd {
        /// What is scanned.
        relation: String,
        /// Where it should begin.
        start: BlockNumber,
        /// How many blocks there are.
        blocks: u32,
    },
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with('i') { "an" } else { "a" }
}

fn where_rows_are(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::PartitionedTable => "its rows are in its partitions",
        RelationKind::ForeignTable => "its rows are on another server",
        _ => "it has no rows of its own in the files",
    }
}

fn listed_columns(columns: &[(String, ClusterRefusal)]) -> String {
    let column = |(name, why): &(String, ClusterRefusal)| format!("column {name}: {why}");
    columns.iter().map(column).collect::<Vec<_>>().join("; ")
}

fn listed(names: &[String]) -> String {
    /// So many fit into a message.
    const MOST: usize = 8;
    let mut text = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text += &format!(" and {} more", names.len() - MOST);
    }
    text
}

fn partitions_with_indexes(partitions: &[(String, String)]) -> String {
    let one = |(partition, index): &(String, String)| format!("{partition} by {index}");
    partitions.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn in_brackets(cause: Option<&ClusterRefusal>) -> String {
    cause.map_or_else(String::new, |cause| format!(" ({cause})"))
}

fn locale_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::Unsupported => "use the build of pagemill for glibc",
        _ => "install it (locale-gen)",
    }
}

fn quoted(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("\"{name}\" "))
}

fn last_block(blocks: u32) -> String {
    match blocks.checked_sub(1) {
        Some(last) => format!("its last block is {last}"),
        None => "it has no blocks".to_owned(),
    }
}
