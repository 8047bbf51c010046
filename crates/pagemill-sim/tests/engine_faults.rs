//! The real engine on a simulated disk: a small cluster made by PostgreSQL, loaded into it, and its table
//! counted with a fault at every single call, from the opening of the cluster on.
//!
//! Whatever happens, the count is right or there is an error that says what failed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::{DamageLog, OnDamage, Progress, RowSource, ScanOptions, select};
use pagemill_io::{IoMethod, ReadSettings, Storage};
use pagemill_sim::seed::{replay_command, seed_or};
use pagemill_sim::{
    Contents, DriveSheet, Fault, Faults, KernelSettings, NvmeSheet, SimulatedDisk, VolumeModel,
};
use pagemill_testkit::prepared::empty_cluster_in;
use pagemill_testkit::{Medium, PgInstall};

const DATA: &str = "/simulated/data";

/// What repeats the runs that have no seed.
const REPEAT: &str = "cargo test -p pagemill-sim --test engine_faults a_fault_at_any_call";

const METHODS: [Option<IoMethod>; 6] = [
    Some(IoMethod::Seek),
    Some(IoMethod::Pread),
    Some(IoMethod::Preadv),
    Some(IoMethod::Worker),
    Some(IoMethod::IoUring),
    None,
];

/// A stopped cluster with one table, as bytes.
struct Loaded {
    files: Vec<(PathBuf, Contents)>,
    /// Where the table is.
    table: PathBuf,
    rows: u64,
    blocks: u32,
}

fn loaded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    LOADED.get_or_init(|| {
        let install = PgInstall::find(15).expect("PostgreSQL 15 is needed");
        // On disk: it is kept for the life of this process, and left there.
        let mut cluster = empty_cluster_in(&install, Medium::Disk).unwrap();
        cluster.start().unwrap();
        let made = "CREATE TABLE t AS SELECT g, repeat('x', 1200) AS filler FROM generate_series(1, 1600) g;
                    DELETE FROM t WHERE g % 3 = 0; CHECKPOINT;";
        cluster.psql("postgres", made).unwrap();
        let ask = |sql: &str| cluster.psql("postgres", sql).unwrap().trim().to_owned();
        let rows = ask("SELECT count(*) FROM t").parse().unwrap();
        let path = ask("SELECT pg_relation_filepath('t')");
        let blocks = ask("SELECT pg_relation_size('t') / 8192").parse().unwrap();
        cluster.stop().unwrap();
        let mut files = Vec::new();
        load(&cluster.data_dir(), Path::new(DATA), &mut files);
        Loaded { files, table: Path::new(DATA).join(path), rows, blocks }
    })
}

fn load(from: &Path, to: &Path, files: &mut Vec<(PathBuf, Contents)>) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() != "pg_wal" => load(&path, &place, files),
            kind if kind.is_file() => {
                files.push((place, Contents::Bytes(Arc::new(fs::read(&path).unwrap()))));
            }
            _ => {}
        }
    }
}

fn new_disk() -> SimulatedDisk {
    let nvme = DriveSheet::Nvme(NvmeSheet::common());
    let disk = SimulatedDisk::new(VolumeModel::One(nvme), KernelSettings::linux_6());
    for (path, contents) in &loaded().files {
        disk.add_file(path, contents.clone());
    }
    disk
}

/// Opens the cluster and counts the rows of the table.
fn count(disk: &SimulatedDisk, method: Option<IoMethod>) -> pagemill_engine::Result<u64> {
    let settings = ReadSettings { io_method: method, may_map: false, ..ReadSettings::default() };
    let storage = Storage::with_settings(Arc::new(disk.clone()), settings);
    let cluster = Cluster::open(storage, Path::new(DATA), OpenOptions::default())?;
    let database = cluster.database("postgres")?;
    let selected = select::find_one(&database, "t")?;
    let sources = RowSource::all(&database, &[selected])?;
    let mut damage = DamageLog::new(OnDamage::Stop);
    sources[0].count(ScanOptions::default(), &Progress::default(), &mut damage)
}

#[test]
fn the_engine_counts_the_same_on_the_simulated_disk() {
    let loaded = loaded();
    assert!(loaded.blocks > 256, "enough for `auto` to choose");
    for method in METHODS {
        let disk = new_disk();
        assert_eq!(count(&disk, method).unwrap(), loaded.rows, "{method:?}");
    }
}

#[test]
fn a_fault_at_any_call_never_gives_a_wrong_count() {
    let rows = loaded().rows;
    let faults = [
        Fault::Short(1),
        Fault::Interrupted,
        Fault::Failed,
        Fault::Slow(Duration::from_millis(50)),
    ];
    for method in METHODS {
        let whole = new_disk();
        count(&whole, method).unwrap();
        let calls = whole.calls();
        println!("{method:?}: {calls} calls");
        for (fault, call) in faults.iter().flat_map(|fault| (1..=calls).map(move |n| (*fault, n))) {
            let disk = new_disk();
            disk.set_faults(Faults::at(call, fault));
            let what = || format!("{method:?}, {fault:?} at call {call}\nrepeat: {REPEAT}\n");
            match count(&disk, method) {
                Ok(found) => assert_eq!(found, rows, "{}", what()),
                Err(error) if fault == Fault::Failed => {
                    let message = error.to_string();
                    assert!(message.contains("Input/output error"), "{}: {message}", what());
                }
                Err(error) => panic!("{}: {error}", what()),
            }
        }
    }
}

#[test]
fn a_block_that_cannot_be_read_is_named() {
    let loaded = loaded();
    for method in METHODS {
        let disk = new_disk();
        let at = 137 * 8192;
        disk.set_faults(Faults::none().and_unreadable(&loaded.table, at..at + 1));
        let message = count(&disk, method).unwrap_err().to_string();
        let file = loaded.table.to_str().unwrap();
        assert!(message.contains(file) && message.contains("block 137"), "{message}");
    }
}

#[test]
fn faults_by_chance_do_not_change_the_count() {
    let first = seed_or(100);
    for seed in first..first + 20 {
        for method in METHODS {
            let disk = new_disk();
            disk.set_faults(Faults::by_chance(seed, 150));
            let replay = replay_command("pagemill-sim", "faults_by_chance_do_not", seed);
            match count(&disk, method) {
                Ok(found) => assert_eq!(found, loaded().rows, "{method:?}; repeat: {replay}"),
                Err(error) => panic!("{method:?}: {error}; repeat: {replay}"),
            }
        }
    }
}
