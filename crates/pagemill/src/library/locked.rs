//! A cluster that this process alone may change: rows loaded into its tables, its databases cloned and dropped.
//!
//! Invariants: no server starts on the cluster while a [`LockedCluster`] lives; a change takes place as a whole or not at
//! all, also across crashes; a cluster that was opened before a change does not show it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_cluster::change::{ClusterLock, NewDatabase, drop_database, make_ready};
use pagemill_cluster::{Cluster as OpenCluster, OpenOptions, Relation};
use pagemill_engine::clone::database::{
    CloneOptions, ClonePlan, CloneRequest, CloneSummary, clone_database,
};
use pagemill_engine::copy::from::{CopyFromOptions, InputSource};
use pagemill_engine::select::find_one;
use pagemill_engine::{Format, LoadOptions, LoadRequest, LoadSummary, Result, load};
use pagemill_io::{InputStream, Storage};

use super::Cluster;
use super::copy_text::CopyText;

/// `datconnlimit` of a database that any number of sessions may connect to.
const NO_LIMIT: i32 = -1;

/// What `COPY … FROM` reads: a text, and how its rows are written.
#[derive(Debug, Clone, Default)]
pub struct CopyFrom<R> {
    /// Where the text comes from.
    pub input: R,
    /// Its format.
    pub options: CopyFromOptions,
}

/// A data directory of a stopped server, and the right to change it.
///
/// ```no_run
/// # fn main() -> pagemill::Result<()> {
/// use pagemill::{CopyFrom, CopyFromOptions, LoadOptions, LockedCluster};
///
/// let cluster = LockedCluster::open("/var/lib/postgresql/15/main")?;
/// cluster.clone_database("shop", "shop_before")?;
/// let input = &b"1\tpaid\n2\topen\n"[..];
/// let text = CopyFrom { input, options: CopyFromOptions::default() };
/// let loaded = cluster.load("shop", "public.orders", text, LoadOptions::default())?;
/// println!("{} rows", loaded.rows);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockedCluster {
    storage: Storage,
    path: PathBuf,
    lock: Arc<ClusterLock>,
}

impl LockedCluster {
    /// Takes the right to change the data directory of a server that was shut down, and removes what a change that a crash
    /// cut short left of itself. Dropping it gives the right back.
    ///
    /// # Errors
    /// When a server runs on it or was not shut down, another process changes it, or it cannot be written to.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(Storage::real(), path)
    }

    /// The same behind a storage of your own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(storage: Storage, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let lock = Arc::new(ClusterLock::take(&storage, &path)?);
        let own = Self { storage, path, lock };
        make_ready(&own.as_it_is()?)?;
        Ok(own)
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cluster as it is now, to be read. Open it again to see what a later change made of it.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn cluster(&self) -> Result<Cluster> {
        Ok(Cluster { inner: self.as_it_is()?, redone: None })
    }

    /// Loads rows into a table, `[SCHEMA.]NAME`, as `COPY … FROM` would read them; all of them or none. Returns how many
    /// there are, and what was written.
    ///
    /// # Errors
    /// When the table cannot be loaded without a server, a row is wrong, or the input or the system fails: nothing has changed
    /// then. `pagemill_cluster`'s errors `Unfinished` and `Undecided` alone say otherwise.
    pub fn load(
        &self,
        database: &str,
        table: &str,
        text: CopyFrom<impl Read + Send + 'static>,
        options: LoadOptions,
    ) -> Result<LoadSummary> {
        let database = self.as_it_is()?.database(database)?;
        let relation: Relation = database.relation(&find_one(&database, table)?.class)?;
        let input = InputStream::reader(&self.storage, text.input, "the reader");
        let request = LoadRequest {
            relation,
            sources: vec![InputSource::Stream(input)],
            copy: &text.options,
            options,
            compression: database.wal_compression()?,
            rejects: None,
        };
        load(self.lock.clone(), &database, request)
    }

    /// Loads rows from an iterator: each has the texts of the table's columns, or of those that the options name, as
    /// PostgreSQL's input functions read them; `None` is NULL. All rows are loaded or none.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_rows<R, F>(
        &self,
        database: &str,
        table: &str,
        rows: R,
        options: LoadOptions,
    ) -> Result<LoadSummary>
    where
        R: IntoIterator,
        R::IntoIter: Send + 'static,
        R::Item: IntoIterator<Item = Option<F>>,
        F: AsRef<str>,
    {
        let encoding = Some("UTF8".to_owned());
        let format = CopyFromOptions { format: Format::Text, encoding, ..Default::default() };
        let text = CopyFrom { input: CopyText::new(rows.into_iter()), options: format };
        self.load(database, table, text, options)
    }

    /// Makes a database as a copy of another one, owned by the first superuser, in the way that writes the least.
    ///
    /// # Errors
    /// When there is none of the one name or one of the other, a page is damaged, or the system fails: nothing has changed
    /// then. `pagemill_cluster`'s errors `Unfinished` and `Undecided` alone say otherwise.
    pub fn clone_database(&self, template: &str, name: &str) -> Result<CloneSummary> {
        let template = self.as_it_is()?.database(template)?;
        let new = NewDatabase {
            name: name.as_bytes().into(),
            owner: template.cluster().first_superuser()?,
            tablespace: None,
            is_template: false,
            allow_connections: true,
            connection_limit: NO_LIMIT,
        };
        let plan = ClonePlan::new(&template, None, None)?;
        let options = CloneOptions::for_template(&template)?;
        let request = CloneRequest { new, plan: &plan, options: &options };
        clone_database(self.lock.clone(), &template, request)
    }

    /// Removes a database and its files.
    ///
    /// # Errors
    /// When there is none of this name, something on the cluster still uses it, or the system fails.
    pub fn drop_database(&self, name: &str) -> Result<()> {
        Ok(drop_database(self.lock.clone(), &self.as_it_is()?, name.as_bytes())?)
    }

    fn as_it_is(&self) -> Result<OpenCluster> {
        let options = OpenOptions::default();
        Ok(OpenCluster::open_locked(self.storage.clone(), &self.lock, options)?)
    }
}
