//! What Pagemill itself does with a data directory: loads a kind's rows, prints a table, lists its files.
//!
//! All of it goes through a [`Storage`] that the caller made, so that calls are recorded, fail or are real.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pagemill_cluster::{
    Cluster, ClusterLock, Database, Error as ClusterError, OpenOptions, UnknownTypes, ValueCatalog,
};
use pagemill_engine::copy::from::{CopyFromOptions, InputSource};
use pagemill_engine::{
    DamageLog, ExportOptions, LoadRequest, LoadSummary, OnDamage, Progress, RowSource, load, select,
};
use pagemill_format::wal::ImageCompression;
use pagemill_io::{Output, Storage};

use crate::kind::Kind;
use crate::load_fixture::DATABASE;

/// How often a lock is tried again, and after how long.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Loads a file into the table of a kind, as the command line does it.
///
/// # Errors
/// Those of the load.
pub fn load_rows(
    storage: &Storage,
    data: &Path,
    kind: &Kind,
    file: &Path,
) -> pagemill_engine::Result<LoadSummary> {
    let lock = take_lock(storage, data)?;
    let cluster = Cluster::open_locked(storage.clone(), &lock, OpenOptions::default())?;
    let database = cluster.database(DATABASE)?;
    let selected = select::find_one(&database, kind.name)?;
    let relation = database.relation(&selected.class)?;
    let request = LoadRequest {
        relation,
        sources: vec![InputSource::File(file.to_owned())],
        copy: &CopyFromOptions::default(),
        options: kind.options(),
        compression: ImageCompression::Off,
        rejects: None,
    };
    load(lock, &database, request)
}

/// Takes the lock, again if need be: a process that another thread is just starting has for a moment the open files of
/// this one, and with them its locks.
pub(crate) fn take_lock(storage: &Storage, data: &Path) -> Result<ClusterLock, ClusterError> {
    for _ in 0..TRIES {
        match ClusterLock::take(storage, data) {
            Err(ClusterError::BeingChanged { .. }) => std::thread::sleep(PAUSE),
            taken => return taken,
        }
    }
    ClusterLock::take(storage, data)
}

/// What `pg_control` says of the state, in the words of `pg_controldata`.
///
/// # Errors
/// When it cannot be read.
pub fn state(data: &Path) -> Result<String> {
    let control = pagemill_cluster::directory_state::read_control(&Storage::real(), data, None)?;
    Ok(control.state.to_string())
}

/// The rows of a table of any database of a cluster that was shut down, as COPY prints them.
///
/// # Errors
/// When they cannot be read.
pub fn rows_of(data: &Path, database: &str, table: &str) -> Result<Vec<u8>> {
    let cluster = Cluster::open(Storage::real(), data, OpenOptions::default())?;
    Reader { database: cluster.database(database)? }.rows_of(table)
}

/// A cluster that was shut down, as Pagemill's reader sees it.
#[derive(Debug)]
pub struct Reader {
    database: Database,
}

impl Reader {
    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be read, or was not shut down.
    pub fn open(data: &Path) -> Result<Self> {
        let cluster = Cluster::open(Storage::real(), data, OpenOptions::default())?;
        Ok(Self { database: cluster.database(DATABASE)? })
    }

    /// The rows of a kind's table, as COPY prints them.
    ///
    /// # Errors
    /// On damage.
    pub fn rows(&self, kind: &Kind) -> Result<Vec<u8>> {
        self.rows_of(kind.name)
    }

    fn rows_of(&self, table: &str) -> Result<Vec<u8>> {
        let selected = select::find_one(&self.database, table)?;
        let sources = RowSource::all(&self.database, &[selected])?;
        let source = sources.first().context("no such table")?;
        let catalog = ValueCatalog::new(&self.database, UnknownTypes::Refuse)?;
        let printed = tempfile::NamedTempFile::new()?;
        let mut output = Output::stream(&Storage::real(), printed.as_file(), "rows")?;
        let mut damage = DamageLog::new(OnDamage::Stop);
        let options = ExportOptions::default();
        source.export(&catalog, &options).write(&mut output, &Progress::default(), &mut damage)?;
        output.finish()?;
        Ok(fs::read(printed.path())?)
    }

    /// Fails when there is a relation file that no row of `pg_class` has, or one that marks an unfinished change.
    ///
    /// # Errors
    /// Names the file.
    pub fn check_no_leftovers(&self) -> Result<()> {
        let cluster = self.database.cluster();
        for name in
            ["pagemill.pending", "pagemill.pending.new", "postmaster.pid", "postmaster.pid.new"]
        {
            ensure!(!cluster.path().join(name).exists(), "{name} is left");
        }
        let row = self.database.row();
        let mut numbers = BTreeSet::new();
        for class in self.database.classes() {
            let base = self.database.base_path(class)?;
            numbers.extend(base.file_name().and_then(|name| name.to_str()).map(str::to_owned));
        }
        let directory = cluster.tablespace_path(row.tablespace, row.oid);
        for entry in fs::read_dir(&directory)?.chain(fs::read_dir(cluster.path())?) {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let number = name.split(['_', '.']).next().unwrap_or_default();
            let is_relation = number.parse::<u32>().is_ok();
            ensure!(!is_relation || numbers.contains(number), "{name} belongs to no relation");
            ensure!(!name.starts_with("pagemill_tmp"), "{name} is left");
        }
        Ok(())
    }
}
