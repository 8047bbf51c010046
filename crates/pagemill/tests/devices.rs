//! Tables on other ground than one plain file system: mirrored, compressed, sparse, on XFS, in little memory.
//!
//! Whatever the files lie on and however they are read, counts and exports are those that a server printed from a
//! copy of them. Each check runs over every I/O method; one that this build does not know is said to be skipped, and
//! so is every test on a machine that cannot make the devices.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use pagemill_testkit::devices::or_skip;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::page_cache::drop_files;
use pagemill_testkit::prepared::scratch_dir;
use pagemill_testkit::{
    ClusterOptions, ControlGroup, FileSystem, PgInstall, TestCluster, Unavailable, Volume,
};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 8192;

/// Of each device: the cluster, its write-ahead log, and room to spare.
const DEVICE_BYTES: u64 = 640 * MIB;

/// Every way of reading, as flags of the command.
const METHODS: [&[&str]; 13] = [
    &[],
    &["--io-method", "auto"],
    &["--io-method", "seek"],
    &["--io-method", "pread"],
    &["--io-method", "preadv"],
    &["--io-method", "mmap"],
    &["--io-method", "worker"],
    &["--io-method", "io_uring"],
    &["--direct"],
    &["--direct", "--io-method", "pread"],
    &["--direct", "--io-method", "worker"],
    &["--direct", "--io-method", "io_uring"],
    &["--io-combine-limit", "128"],
];

/// One of about 96 MiB, frozen; one with long, compressed, deleted and updated values; one with holes in its file.
const TABLES: [(&str, &[&str]); 3] = [
    (
        "wide",
        &[
            "CREATE TABLE wide AS SELECT repeat('a', 100) || i || repeat('b', 500) AS filler \
             FROM generate_series(1, 150000) i",
            "VACUUM (FREEZE) wide",
        ],
    ),
    (
        "mixed",
        &[
            "CREATE TABLE mixed AS SELECT i, repeat(md5(i::text), i % 400) AS value \
             FROM generate_series(1, 2000) i",
            "UPDATE mixed SET value = value || 'x' WHERE i % 7 = 0",
            "DELETE FROM mixed WHERE i % 11 = 0",
        ],
    ),
    (
        "holes",
        &["CREATE TABLE holes AS SELECT i, md5(i::text) AS value FROM generate_series(1, 20000) i"],
    ),
];

/// What a server printed for one table.
struct Answer {
    table: &'static str,
    count: String,
    text: Vec<u8>,
}

/// A stopped cluster with the tables, and the answers of a server started on a copy.
struct Fixture {
    cluster: TestCluster,
    wide: PathBuf,
    holes: PathBuf,
    answers: Vec<Answer>,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(Fixture::build)
}

impl Fixture {
    fn build() -> Fixture {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        let root = scratch().join(format!("fixture-{}", std::process::id()));
        let options = ClusterOptions {
            data_checksums: Some(true),
            initdb_flags: vec!["--wal-segsize=1".into()],
            root: Some(root.clone()),
            ..ClusterOptions::default()
        };
        let mut cluster = TestCluster::create(&install, &options).unwrap();
        for statement in TABLES.iter().flat_map(|(_, statements)| *statements) {
            cluster.psql("postgres", statement).unwrap();
        }
        let file = |table: &str| {
            let query = format!("SELECT pg_relation_filepath('{table}')");
            PathBuf::from(cluster.psql("postgres", &query).unwrap())
        };
        let (wide, holes) = (file("wide"), file("holes"));
        cluster.stop().unwrap();
        make_holes(&cluster.data_dir().join(&holes));
        let answers = answers(&cluster, &root.with_extension("oracle"));
        Fixture { cluster, wide, holes, answers }
    }

    /// A copy on this volume, nothing of it in the page cache.
    fn copy_to(&self, volume: &Volume) -> TestCluster {
        let copy = self.cluster.copy_to(&volume.path().join("cluster")).unwrap();
        drop_files(&[copy.data_dir().join(&self.wide)]).unwrap();
        copy
    }
}

/// A cluster in a static value is never dropped: the directory is removed by whoever comes next.
///
/// Not beside the build: that may lie in a home that the server's account cannot enter.
fn scratch() -> PathBuf {
    let scratch = scratch_dir().unwrap().join("devices");
    fs::create_dir_all(&scratch).unwrap();
    for entry in fs::read_dir(&scratch).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.trim_start_matches("fixture-").split('.').next().map(str::to_owned);
        if name.starts_with("fixture-") && !Path::new("/proc").join(owner.unwrap()).exists() {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    scratch
}

/// Blocks 3 to 10 become a hole, and 64 blocks without storage follow the last: all of them pages of
/// zeros, which to PostgreSQL are new and empty (`PageIsNew`, bufpage.h).
fn make_holes(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    OpenOptions::new().write(true).open(file).unwrap().set_len(length + 64 * BLOCK).unwrap();
    let mut fallocate = Command::new("fallocate");
    let range = ["--offset".to_owned(), (3 * BLOCK).to_string(), "--length".to_owned()];
    fallocate.arg("--punch-hole").args(range).arg((8 * BLOCK).to_string()).arg(file);
    assert!(fallocate.status().unwrap().success(), "fallocate (util-linux)");
    let allocated = fs::metadata(file).unwrap().blocks() * 512;
    assert!(allocated <= length - 8 * BLOCK, "no hole in {}", file.display());
}

fn answers(cluster: &TestCluster, root: &Path) -> Vec<Answer> {
    let mut oracle = cluster.copy_to(root).unwrap();
    oracle.start().unwrap();
    let answer = |(table, _): &(&'static str, &[&str])| Answer {
        table,
        count: oracle.psql("postgres", &format!("SELECT count(*) FROM {table}")).unwrap(),
        text: oracle.copy_out("postgres", &format!("COPY {table} TO STDOUT")).unwrap(),
    };
    TABLES.iter().map(answer).collect()
}

/// Counts and exports every table by every method, the commands made by `command`.
fn check(data_dir: &Path, command: impl Fn() -> Command) {
    let run = |verb: &str, table: &str, flags: &[&str]| -> Output {
        let mut command = command();
        command.args([verb, "-d", "postgres", "-t", table, "-D"]).arg(data_dir).args(flags);
        command.env_remove("PGDATA").output().unwrap()
    };
    let mut known = 0;
    for flags in METHODS {
        for answer in &fixture().answers {
            let counted = run("count", answer.table, flags);
            if is_unknown(&counted) {
                said_skipped(flags);
                break;
            }
            let what = format!("{} by {flags:?}", answer.table);
            assert_eq!(printed(&counted, &what).trim_ascii(), answer.count.as_bytes(), "{what}");
            let exported = run("export", answer.table, flags);
            assert!(printed(&exported, &what) == answer.text, "the export of {what} differs");
            known += 1;
        }
    }
    assert!(known >= fixture().answers.len(), "no method is known");
}

/// Whether the command line was refused for a flag or a value that this build does not have.
fn is_unknown(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.code() == Some(2)
        && ["unexpected argument", "invalid value"].iter().any(|refusal| said.contains(refusal))
}

fn said_skipped(flags: &[&str]) {
    // Past the test runner, which keeps what a passing test prints to itself; in one piece.
    let line = format!("\nSKIPPED: {}: not in this build\n", flags.join(" "));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn printed<'a>(output: &'a Output, what: &str) -> &'a [u8] {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what} ended with {}: {said}", output.status);
    &output.stdout
}

fn pagemill() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// Runs every method on a copy that lies on a volume of this kind.
fn check_on(kind: FileSystem, more: impl Fn(&TestCluster)) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let volume = or_skip(kind.name(), Volume::create(kind, dir, DEVICE_BYTES)).unwrap();
    let Some(volume) = volume else { return };
    let copy = fixture().copy_to(&volume);
    more(&copy);
    check(&copy.data_dir(), pagemill);
}

#[test]
fn mirrored_disks_give_the_rows_the_server_saw() {
    check_on(FileSystem::BtrfsRaid1, |_| {});
}

#[test]
fn compressed_files_give_the_rows_the_server_saw() {
    check_on(FileSystem::BtrfsCompressed, |_| {});
}

#[test]
fn xfs_and_holes_that_survived_the_copy_give_the_rows_the_server_saw() {
    check_on(FileSystem::Xfs, |copy| {
        let file = fs::metadata(copy.data_dir().join(&fixture().holes)).unwrap();
        assert!(file.blocks() * 512 < file.len(), "the copy filled the holes");
    });
}

/// Needs no device: the temporary directory's file system has holes too.
#[test]
fn a_file_with_holes_has_empty_pages_there() {
    check(&fixture().cluster.data_dir(), pagemill);
}

#[test]
fn a_table_four_times_as_large_as_memory_is_read_whole() {
    // A copy of its own: a test beside it would keep the pages of a shared file cached.
    let root = scratch().join(format!("fixture-{}.memory", std::process::id()));
    let copy = fixture().cluster.copy_to(&root).unwrap();
    let file = copy.data_dir().join(&fixture().wide);
    let quarter = fs::metadata(&file).unwrap().len() / 4;
    let group = || -> Result<ControlGroup, Unavailable> {
        let mut group = ControlGroup::create()?;
        group.limit_memory(quarter)?;
        Ok(group)
    };
    let Some(group) = or_skip("a limit on memory", group()).unwrap() else { return };
    check(&copy.data_dir(), || {
        drop_files(&[&file]).unwrap();
        group.command(env!("CARGO_BIN_EXE_pagemill"))
    });
}
