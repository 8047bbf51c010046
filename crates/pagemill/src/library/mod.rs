//! The library: the few types that a program needs to read tables, over the crates that do the work.
//!
//! Invariants: a type here owns what it needs and can be moved to another thread; names are UTF-8, whatever the encoding
//! of the database.

mod copy_text;
mod locked;
mod rows;
mod table;

use std::path::Path;

use pagemill_cluster::{OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::refusal::Misuse;
use pagemill_engine::{PatternTexts, Patterns, Result, Selected};
use pagemill_format::PgVersion;
use pagemill_io::Storage;

pub use locked::LockedCluster;
pub use rows::{Row, Rows};
pub use table::{Column, Table};

/// An open data directory.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: pagemill_cluster::Cluster,
}

impl Cluster {
    /// Opens the data directory of a server that was shut down.
    ///
    /// # Errors
    /// When it is none, of an unknown version, or a server runs on it or was not shut down.
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
        let inner = pagemill_cluster::Cluster::open(storage, path.as_ref(), options)?;
        Ok(Self { inner })
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
