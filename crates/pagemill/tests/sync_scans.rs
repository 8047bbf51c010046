//! Several scans at once in one process: of the same table, which go on together, and of different
//! ones, none of which holds up the others.
//!
//! Nothing here depends on time. Two scans of one table take turns at a gate in the file system, which
//! also plays a page cache far smaller than the table and counts what it has not got. Scans of
//! several tables are paced by whoever reads what they write.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use anyhow::{Context, Result, ensure};
use pagemill_cluster::{Cluster, Database, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, Export, ExportOptions, OnDamage, Progress, ScanOptions, ScanOrder, Table, count,
};
use pagemill_format::{BLOCK_SIZE, BlockNumber};
use pagemill_io::{
    Caching, DirEntry, File, FileSystem, IoMethod, IoQueue, Metadata, Output, QueueKind,
    ReadSettings, RealFileSystem, Storage,
};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, every_version};

/// Reads of the first scan before the second one begins, and blocks of a read.
const AHEAD: u64 = 10;
const READ_BLOCKS: u64 = 16;
/// Blocks that the cache holds: fewer than the first scan is ahead.
const CACHED: usize = 64;

thread_local! {
    /// Which of the two scans this thread makes.
    static PARTY: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Lets the first scan make [`AHEAD`] reads of one file, then both read in turn.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    file: PathBuf,
    reads: [u64; 2],
    misses: [u64; 2],
    arrived: [bool; 2],
    finished: [bool; 2],
    cached: VecDeque<u64>,
}

impl State {
    fn may_read(&self, party: usize) -> bool {
        let ahead = self.reads[0].saturating_sub(AHEAD);
        match party {
            0 if self.reads[0] < AHEAD => true,
            0 => self.finished[1] || self.arrived[1] && ahead <= self.reads[1],
            _ => self.finished[0] || self.reads[1] < ahead,
        }
    }

    fn touch(&mut self, party: usize, block: u64) {
        match self.cached.iter().position(|cached| *cached == block) {
            Some(at) => drop(self.cached.remove(at)),
            None => self.misses[party] += 1,
        }
        self.cached.push_back(block);
        if self.cached.len() > CACHED {
            self.cached.pop_front();
        }
    }
}

impl Gate {
    fn before_read(&self, path: &Path, blocks: std::ops::Range<u64>) {
        let Some(party) = PARTY.get() else { return };
        let mut state = self.state.lock().unwrap();
        if state.file != path {
            return;
        }
        if state.reads[party] == if party == 0 { AHEAD } else { 0 } {
            state.arrived[party] = true;
            self.changed.notify_all();
        }
        state = self.changed.wait_while(state, |state| !state.may_read(party)).unwrap();
        state.reads[party] += 1;
        blocks.for_each(|block| state.touch(party, block));
        self.changed.notify_all();
    }

    fn wait_for(&self, party: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.arrived[party]).unwrap());
    }

    /// Does the work of one party.
    fn run<T>(&self, party: usize, work: impl FnOnce() -> T) -> T {
        PARTY.set(Some(party));
        let done = work();
        self.state.lock().unwrap().finished[party] = true;
        self.changed.notify_all();
        done
    }
}

#[derive(Debug, Default)]
struct GatedFileSystem {
    real: RealFileSystem,
    gate: Arc<Gate>,
}

impl FileSystem for GatedFileSystem {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        let file = self.real.open(path, caching)?;
        Ok(Box::new(GatedFile { file, path: path.into(), gate: self.gate.clone() }))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.real.read_dir(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.real.metadata(path)
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.real.open_queue(kind, depth)
    }
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn File>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (first, count) = (offset / BLOCK_SIZE as u64, (buf.len() / BLOCK_SIZE) as u64);
        self.gate.before_read(&self.path, first..first + count);
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

fn open(storage: &Storage, directory: &Path, database: &str) -> Result<Database> {
    // The tables are larger than a quarter of this.
    let shared_buffers = NonZeroUsize::new(4000).context("not zero")?;
    let options = OpenOptions { shared_buffers, ..OpenOptions::default() };
    let cluster = Cluster::open(storage.clone(), directory, options)?;
    Ok(cluster.database(database)?)
}

fn table(database: &Database, name: &str) -> Result<Table> {
    let class = database.classes().iter().find(|class| *class.name == *name.as_bytes());
    let relation = database.relation(class.context("no such table")?)?;
    Ok(Table::open(database, relation, &mut DamageLog::new(OnDamage::Stop))?)
}

fn export(
    database: &Database,
    table: &Table,
    scan: ScanOptions,
    output: &mut Output,
    progress: &Progress,
) -> Result<u64> {
    let catalog = ValueCatalog::new(database, UnknownTypes::Refuse)?;
    let options = ExportOptions { scan, ..ExportOptions::default() };
    let export = Export::prepare(&catalog, table, &options)?;
    let mut damage = DamageLog::new(OnDamage::Stop);
    Ok(export.write_rows(output, progress, &mut damage)?.rows)
}

/// The rows as they come.
fn rows(database: &Database, table: &Table, scan: ScanOptions) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("rows");
    let mut output = Output::file(database.cluster().storage(), &path)?;
    export(database, table, scan, &mut output, &Progress::default())?;
    output.finish()?;
    Ok(std::fs::read_to_string(&path)?)
}

fn sorted(rows: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = rows.lines().collect();
    lines.sort_unstable();
    lines
}

/// What two scans of a table make of it, the second begun when the first was [`AHEAD`] reads ahead: their
/// rows, and how many blocks each had to fetch.
fn two_scans(directory: &Path, synchronize: bool) -> Result<([String; 2], [u64; 2], u64)> {
    let files = GatedFileSystem::default();
    let gate = files.gate.clone();
    let settings = ReadSettings { io_method: Some(IoMethod::Pread), ..ReadSettings::default() };
    let storage = Storage::with_settings(Arc::new(files), settings);
    let database = open(&storage, directory, "ddl")?;
    let table = table(&database, "many_blocks")?;
    let path = table.files().context("no files")?.path().to_path_buf();
    gate.state.lock().unwrap().file = path;
    let scan = ScanOptions { synchronize, ..ScanOptions::default() };
    let found = std::thread::scope(|scope| {
        let work = |party| gate.run(party, || rows(&database, &table, scan));
        let first = scope.spawn(move || work(0));
        gate.wait_for(0);
        let second = scope.spawn(move || work(1));
        [first.join().unwrap(), second.join().unwrap()]
    });
    let [first, second] = found;
    let misses = gate.state.lock().unwrap().misses;
    Ok(([first?, second?], misses, table.blocks().into()))
}

#[test]
fn a_second_scan_of_a_table_joins_the_first_and_fetches_only_what_it_missed() {
    every_version(|prepared| {
        let ([first, second], misses, blocks) = two_scans(&prepared.data_dir(), true)?;
        let missed = AHEAD * READ_BLOCKS;
        ensure!(misses == [blocks, missed], "{misses:?} of {blocks} blocks");
        ensure!(first != second, "the second scan began where the first did");
        ensure!(sorted(&first) == sorted(&second), "some rows are missing, or twice");
        let ([first, second], misses, blocks) = two_scans(&prepared.data_dir(), false)?;
        ensure!(misses == [blocks, blocks], "{misses:?} of {blocks} blocks");
        ensure!(first == second);
        Ok(())
    });
}

#[test]
fn several_jobs_join_as_one_scan_does() {
    every_version(|prepared| {
        let database = open(&Storage::real(), &prepared.data_dir(), "ddl")?;
        let table = table(&database, "many_blocks")?;
        let files = table.files().context("no files")?;
        let scans = database.cluster().sync_scans();
        let order = ScanOrder::from_block(BlockNumber(1600));
        let expected = rows(&database, &table, ScanOptions { order, ..ScanOptions::default() })?;
        for jobs in [1, 3] {
            let scan = ScanOptions { synchronize: true, jobs, ..ScanOptions::default() };
            scans.join(files.path(), table.blocks()).context("too small")?.report(0..1607);
            ensure!(rows(&database, &table, scan)? == expected, "{jobs} jobs");
            let mut damage = DamageLog::new(OnDamage::Stop);
            let counted =
                count(database.cluster(), &table, scan, &Progress::default(), &mut damage);
            ensure!(counted? == expected.lines().count() as u64, "{jobs} jobs");
        }
        // An order that was asked for stays what it is.
        let order = ScanOrder { backward: true, start: None };
        let scan = ScanOptions { order, ..ScanOptions::default() };
        let backward = rows(&database, &table, scan)?;
        let position = scans.join(files.path(), table.blocks()).context("too small")?.start();
        ensure!(rows(&database, &table, ScanOptions { synchronize: true, ..scan })? == backward);
        let after = scans.join(files.path(), table.blocks()).context("too small")?.start();
        ensure!(position == after, "a backward scan reported where it was");
        Ok(())
    });
}

const TABLES: usize = 4;
const PACE: usize = 64 << 10;
/// How far one scan may be ahead of another whose output was read as far, in pages: what lies in its
/// buffer, in that of the socket, and in the run at hand.
const MOST_AHEAD: u64 = 160;

/// Four scans write to sockets that are read in turn. Each is as far as its reader lets it be, and one
/// whose reader stops stops nobody else.
#[test]
fn scans_of_different_tables_at_once_do_not_hold_up_each_other() -> Result<()> {
    let install = PgInstall::find(REQUIRED_MAJOR).context("PostgreSQL is needed")?;
    let mut cluster = empty_cluster(&install)?;
    cluster.start()?;
    for number in 0..TABLES {
        let sql = format!(
            "CREATE TABLE t{number} AS SELECT n, repeat('x', 1000) FROM generate_series(1, 8400) n"
        );
        cluster.psql("postgres", &sql)?;
    }
    cluster.stop()?;
    for method in [IoMethod::Worker, IoMethod::IoUring] {
        let settings = ReadSettings { io_method: Some(method), ..ReadSettings::default() };
        let storage = Storage::with_settings(Arc::new(RealFileSystem), settings);
        if let Err(error) = storage.check_method(method) {
            println!("SKIPPED {method}: {error}");
            continue;
        }
        let database = open(&storage, &cluster.data_dir(), "postgres")?;
        scan_together(&database).with_context(|| method.to_string())?;
    }
    Ok(())
}

fn scan_together(database: &Database) -> Result<()> {
    let progress: [Progress; TABLES] = Default::default();
    std::thread::scope(|scope| {
        let (mut readers, mut threads) = (Vec::new(), Vec::new());
        for (number, progress) in progress.iter().enumerate() {
            let (reader, writer) = UnixStream::pair()?;
            readers.push(reader);
            threads.push(scope.spawn(move || -> Result<u64> {
                let table = table(database, &format!("t{number}"))?;
                let storage = database.cluster().storage();
                let mut output = Output::stream(storage, &writer, "a socket")?;
                export(database, &table, ScanOptions::default(), &mut output, progress)
            }));
        }
        let mut buffer = vec![0; PACE];
        for round in 0..60 {
            for reader in &mut readers {
                reader.read_exact(&mut buffer)?;
            }
            let pages = || progress.iter().map(Progress::pages);
            let (least, most) = (pages().min().unwrap_or(0), pages().max().unwrap_or(0));
            ensure!(most - least <= MOST_AHEAD, "round {round}: {least} to {most} pages");
        }
        let mut stalled = readers.remove(1);
        for mut reader in readers {
            io::copy(&mut reader, &mut io::sink())?;
        }
        ensure!(!threads[1].is_finished(), "its output was not read");
        io::copy(&mut stalled, &mut io::sink())?;
        for thread in threads {
            ensure!(thread.join().unwrap()? == 8400, "rows are missing");
        }
        Ok(())
    })
}
