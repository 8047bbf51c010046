//! Copies of a whole cluster that fail at any call, or are cut by a power failure at any call.
//!
//! What must hold: a copy that fails leaves nothing behind and its source as it was; after a power cut either there is no
//! `global/pg_control` in the copy, or the copy is whole, but for its marks; after a kill the next copy to the same place
//! removes what is there and is whole, or what is there is whole. The source is small, a few files of every kind, as each of some
//! hundred calls gets its own run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::clone::cluster::{TablespaceMapping, UnfinishedCopy};
use pagemill_engine::{ClusterCopy, CopyClusterOptions, CopyStrategy, Progress};
use pagemill_io::Storage;
use pagemill_sim::{Loss, PowerCutFileSystem, WriteFault};
use pagemill_testkit::PgInstall;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_torture::scratch;
use tempfile::TempDir;

/// A room with the source and nothing else.
struct Fixture {
    room: TempDir,
    original: PathBuf,
}

/// What is in a directory: files with their bytes, links with their targets, directories.
type Tree = BTreeMap<PathBuf, String>;

impl Fixture {
    /// A stopped cluster of which little is left.
    fn new() -> Fixture {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        let mut cluster = empty_cluster(&install).unwrap();
        cluster.start().unwrap();
        let space = cluster.tablespace_dir("space").unwrap();
        let sql = format!(
            "CREATE TABLESPACE space LOCATION '{}'; CREATE TABLE t TABLESPACE space AS SELECT 1 AS a; \
             CREATE UNLOGGED TABLE u (a int PRIMARY KEY)",
            space.display()
        );
        for statement in sql.split("; ") {
            cluster.psql("postgres", statement).unwrap();
        }
        cluster.stop().unwrap();
        let room = scratch::new("pagemill-copies").unwrap();
        let original = room.path().join("original");
        fs::create_dir(&original).unwrap();
        copy_tree(&cluster.data_dir(), &original.join("source"));
        copy_tree(&space, &original.join("space"));
        thin_out(&original);
        Fixture { room, original }
    }

    /// The ground as it is before a copy, recorded from now on.
    fn begin(&self, number: usize) -> Attempt {
        let root = self.room.path().join(format!("attempt{number}"));
        copy_tree(&self.original, &root);
        let link =
            fs::read_dir(root.join("source/pg_tblspc")).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(root.join("space"), link).unwrap();
        let snapshot = self.room.path().join(format!("before{number}"));
        let files = PowerCutFileSystem::record(&root, &snapshot).unwrap();
        Attempt { root, snapshot, files }
    }
}

/// Leaves what every copy needs, and of each kind of files some: each call gets a run of its own.
fn thin_out(original: &Path) {
    let source = original.join("source");
    let databases: Vec<_> = paths(&source.join("base"));
    // The one with the tables has the highest number.
    for database in databases.iter().filter(|path| number(path) != 5) {
        fs::remove_dir_all(database).unwrap();
    }
    for directory in [source.join("base/5"), source.join("global")] {
        let system = |path: &PathBuf| (1..16384).contains(&number(path)) && number(path) != 1260;
        paths(&directory)
            .iter()
            .filter(|path| system(path))
            .for_each(|path| fs::remove_file(path).unwrap());
    }
    fs::write(source.join("base/5/t3_16384"), b"temporary").unwrap();
}

fn paths(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The number that a file's name begins with, or 0.
fn number(path: &Path) -> u32 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split(['_', '.']).next().unwrap_or_default().parse().unwrap_or(0)
}

struct Attempt {
    root: PathBuf,
    snapshot: PathBuf,
    files: PowerCutFileSystem,
}

impl Attempt {
    fn copy(&self) -> Result<(), String> {
        self.copy_by(Storage::new(Arc::new(self.files.clone())))
    }

    fn copy_by(&self, storage: Storage) -> Result<(), String> {
        let options = CopyClusterOptions {
            destination: self.root.join("copy"),
            mappings: vec![TablespaceMapping {
                old: self.root.join("space"),
                new: self.root.join("copied_space"),
            }],
            strategy: CopyStrategy::FileCopy,
            verify: true,
            jobs: 1,
            progress: Progress::default(),
            interrupted: || false,
        };
        let cluster = Cluster::open(storage, &self.root.join("source"), OpenOptions::default());
        let copy =
            ClusterCopy::plan(cluster.unwrap(), options).map_err(|error| error.to_string())?;
        copy.run().map(|_| ()).map_err(|error| error.to_string())
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        add(&self.root, Path::new(""), &mut tree);
        tree
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        for path in [&self.root, &self.snapshot] {
            fs::remove_dir_all(path).unwrap();
        }
    }
}

fn add(root: &Path, within: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(root.join(within)).unwrap() {
        let entry = entry.unwrap();
        let path = within.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        let what = if kind.is_dir() {
            add(root, &path, tree);
            "directory".to_owned()
        } else if kind.is_symlink() {
            "link".to_owned()
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            format!(
                "{} bytes, {:x}",
                bytes.len(),
                bytes.iter().fold(0u64, |sum, byte| {
                    sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
                })
            )
        };
        tree.insert(path, what);
    }
}

fn copy_tree(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

fn below<'t>(tree: &'t Tree, top: &str) -> Vec<(&'t Path, &'t str)> {
    let there = |(path, what): (&'t PathBuf, &'t String)| {
        path.strip_prefix(top).ok().map(|path| (path, what.as_str()))
    };
    tree.iter().filter_map(there).collect()
}

/// True when both directories of the copy are what they are after a copy that went well. Marks are in nobody's way.
fn is_whole(tree: &Tree, good: &Tree) -> bool {
    let mut unmarked = tree.clone();
    unmarked.retain(|path, _| path.file_name().is_none_or(|name| name != "pagemill.copy"));
    ["copy", "copied_space"].into_iter().all(|top| below(&unmarked, top) == below(good, top))
}

/// What a kill before that call leaves is removed by the next copy, or is whole; true when it was whole.
fn is_recovered_after_a_kill(whole: &Attempt, call: usize, aside: &Path, good: &Tree) -> bool {
    // Marks name the directories, so what the kill left lies where the copy was made.
    fs::rename(&whole.root, aside).unwrap();
    whole.files.image(call, Loss::None, &whole.root).unwrap();
    let (storage, told) = (Storage::real(), || whole.files.describe(call));
    let destination = whole.root.join("copy");
    let found = UnfinishedCopy::find(&storage, &destination).unwrap();
    let was_whole = found.as_ref().is_some_and(UnfinishedCopy::is_whole);
    found.into_iter().for_each(|found| found.remove(&storage).unwrap());
    if !destination.join("global/pg_control").exists() {
        let again = whole.copy_by(storage);
        again.unwrap_or_else(|error| panic!("{}: {error}", told()));
    }
    let tree = whole.tree();
    assert!(is_whole(&tree, good), "{}", told());
    assert!(
        !tree.keys().any(|path| path.to_string_lossy().contains("pagemill.copy")),
        "{}",
        told()
    );
    fs::remove_dir_all(&whole.root).unwrap();
    fs::rename(aside, &whole.root).unwrap();
    was_whole
}

#[test]
fn a_copy_that_fails_at_any_call_leaves_nothing_and_one_that_is_cut_has_no_control_file() {
    let fixture = Fixture::new();
    let whole = fixture.begin(0);
    let before = whole.tree();
    whole.copy().unwrap();
    let (good, calls) = (whole.tree(), whole.files.calls());
    let of_source = |path: &str| path.replace("source/", "copy/");
    assert_eq!(
        good[Path::new("source/PG_VERSION")],
        good[Path::new(&of_source("source/PG_VERSION"))]
    );
    assert!(!good.contains_key(Path::new("copy/base/5/t3_16384")));
    assert!((100..1000).contains(&calls), "{calls} calls");
    let unlogged = good
        .keys()
        .filter(|path| path.starts_with("copy") && path.to_string_lossy().ends_with("_init"));
    assert!(unlogged.count() > 1);

    let mut failed = 0;
    for call in 0..calls {
        let other = [WriteFault::NoSpace, WriteFault::ReadOnlyFromHere][call % 2];
        for fault in [WriteFault::Failed, other] {
            let attempt = fixture.begin(1);
            attempt.files.fail(call, fault);
            let ended = attempt.copy();
            let told = || format!("{fault:?} at {}: {ended:?}", attempt.files.describe(call));
            match &ended {
                Ok(()) => assert!(is_whole(&attempt.tree(), &good), "{}", told()),
                Err(error) if attempt.tree() != before => {
                    assert_eq!(fault, WriteFault::ReadOnlyFromHere, "{}", told());
                    assert!(error.contains("still there in part"), "{}", told());
                }
                Err(_) => {}
            }
            failed += usize::from(ended.is_err());
        }
    }
    assert!(failed > calls, "{failed} of {calls} calls");

    let (mut cut, mut survived) = (0, 0);
    for call in 0..=calls {
        let (torn, ordered) = (Loss::Torn(call as u64), Loss::Ordered(call as u64));
        for loss in if call % 2 == 0 { [Loss::All, torn] } else { [Loss::None, ordered] } {
            let image = fixture.room.path().join("image");
            whole.files.image(call, loss, &image).unwrap();
            let mut tree = Tree::new();
            add(&image, Path::new(""), &mut tree);
            if tree.contains_key(Path::new("copy/global/pg_control")) {
                survived += 1;
                assert!(is_whole(&tree, &good), "{loss:?} at {}", whole.files.describe(call));
            } else {
                cut += 1;
            }
            assert_eq!(below(&tree, "source"), below(&before, "source"));
            fs::remove_dir_all(image).unwrap();
        }
    }
    assert!(cut > calls && survived > 0, "{cut} cut, {survived} whole");

    let aside = fixture.room.path().join("aside");
    let marked =
        (0..=calls).filter(|call| is_recovered_after_a_kill(&whole, *call, &aside, &good)).count();
    assert!(marked > 0, "no kill was between the control file and the end of the marks");
}
