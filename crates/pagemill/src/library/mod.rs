//! The library: the few types that a program needs to read tables, over the crates that do the work.
//!
//! Invariants: a type here owns what it needs and can be moved to another thread; names are UTF-8, whatever the encoding
//! of the database.

mod copy_text;
mod locked;
mod recovery;
mod rows;
mod table;

use std::path::Path;
use std::sync::Arc;

use pagemill_cluster::{
    DirectoryState, OpenBackup, OpenOptions, Recovery, RedoneWal, UnknownTypes, UnpackNotice,
    ValueCatalog, backup_storage,
};
use pagemill_engine::refusal::Misuse;
use pagemill_engine::{PatternTexts, Patterns, Result, Selected};
use pagemill_format::PgVersion;
use pagemill_io::Storage;

pub use locked::{CopyFrom, LockedCluster};
pub use recovery::RecoveryOptions;
pub use rows::{Row, Rows};
pub use table::{Column, Table};

/// An open data directory.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: pagemill_cluster::Cluster,
    redone: Option<Arc<RedoneWal>>,
}

impl Cluster {
    /// Opens a data directory. That of a server that crashed, a snapshot of a running one's, and a base backup are read as
    /// the server's own recovery would make them: their WAL is redone in front of the files, and nothing is written.
    ///
    /// # Errors
    /// When it is none, of an unknown version, a server runs on it, or its WAL does not make it whole.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(Storage::real(), path, OpenOptions::default())
    }

    /// Opens a data directory behind a storage of your own (settings, other file systems), as the options say.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for what the options allow.
    pub fn open_with(
        storage: Storage,
        path: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<Self> {
        Self::recover(storage, path, options, &RecoveryOptions::default())
    }

    /// The same with WAL from archives, up to some moment, or with tablespaces that lie elsewhere. Files that the options
    /// want as they lie are not recovered.
    ///
    /// # Errors
    /// As [`open`](Self::open); also when the moment is not in reach.
    pub fn recover(
        storage: Storage,
        path: impl AsRef<Path>,
        options: OpenOptions,
        recovery: &RecoveryOptions,
    ) -> Result<Self> {
        let choice = recovery.choice();
        let opened = backup_storage(&storage, path.as_ref(), choice, &UnpackNotice::nobody())?;
        let OpenBackup { storage, directory, archives } = opened;
        let state = match options.live {
            true => DirectoryState::read_live(&storage, &directory)?,
            false => DirectoryState::read(&storage, &directory)?,
        };
        let state = state.with_tablespaces(&recovery.tablespaces, &options)?;
        let (recovered, redone) =
            Recovery::for_reading(&state, &options, &recovery.plan_with(archives))?;
        let inner = pagemill_cluster::Cluster::open_recovered(state, recovered, options);
        Ok(Self { inner, redone: redone.map(Arc::new) })
    }

    /// From where to where WAL was redone, and what is to be known of that; `None` when there was nothing to redo.
    pub fn redone(&self) -> Option<&RedoneWal> {
        self.redone.as_deref()
    }

    /// What is wrong with it and was allowed by `allow_inconsistent`, and what somebody ought to know of it, so far: more may
    /// be found while it is read.
    pub fn warnings(&self) -> Vec<String> {
        let redone = self.redone().into_iter().flat_map(|redone| redone.warnings.clone());
        let newer = self.inner.newer_page().map(ToString::to_string);
        self.inner.state().warnings().iter().cloned().chain(redone).chain(newer).collect()
    }

    /// The version of PostgreSQL that wrote it.
    pub fn version(&self) -> PgVersion {
        self.inner.version()
    }

    /// The names of its databases, in order. One whose name is not UTF-8 shows replacement characters.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn database_names(&self) -> Result<Vec<String>> {
        let rows = self.inner.databases()?;
        Ok(rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect())
    }

    /// Opens a database.
    ///
    /// # Errors
    /// When there is none of this name, or its catalogs cannot be read.
    pub fn database(&self, name: &str) -> Result<Database> {
        let inner = self.inner.database(name)?;
        let catalog = ValueCatalog::new(&inner, UnknownTypes::Refuse)?;
        Ok(Database { inner, catalog })
    }
}

/// An open database.
#[derive(Debug, Clone)]
pub struct Database {
    inner: pagemill_cluster::Database,
    catalog: ValueCatalog,
}

impl Database {
    /// The table, materialized view or sequence of this name: `[SCHEMA.]NAME`, quoted as in SQL. A partitioned table has
    /// the rows of its partitions.
    ///
    /// # Errors
    /// When there is none, or it has no rows of its own.
    pub fn table(&self, name: &str) -> Result<Table> {
        let tables = [name.to_owned()];
        let patterns =
            Patterns::parse(PatternTexts { tables: &tables, ..PatternTexts::default() })?;
        let mut selected = patterns.select(&self.inner)?;
        match selected.pop() {
            Some(only) if selected.is_empty() && patterns.name_one() => Table::open(self, only),
            _ => Err(Misuse::NotOneRelation(name.to_owned()).into()),
        }
    }

    /// All tables outside the system's schemas, by schema and name; partitions by themselves.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn tables(&self) -> Result<Vec<Table>> {
        let schemas = ["*".to_owned()];
        let excluded = ["pg_*".to_owned(), "information_schema".to_owned()];
        let texts = PatternTexts {
            schemas: &schemas,
            excluded_schemas: &excluded,
            ..PatternTexts::default()
        };
        let selected: Vec<Selected> = Patterns::parse(texts)?.select(&self.inner)?;
        selected.into_iter().map(|one| Table::open(self, one)).collect()
    }
}
