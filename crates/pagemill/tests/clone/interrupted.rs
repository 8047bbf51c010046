//! Ctrl-C in the middle, and kills: what is left is cleared away by the next run, and the database is there whole or not
//! at all.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_testkit::prepared::empty_cluster_in;
use pagemill_testkit::{Medium, TestCluster};
use pagemill_torture::database_fixture::DatabaseFixture;
use pagemill_torture::database_judge::DatabaseJudge;
use pagemill_torture::database_kind::DATABASE_KINDS;
use pagemill_torture::kills::Killer;

use crate::fixture::{check_checksums, done, pagemill, required, script};

const KILLS: usize = 4;

fn directories(cluster: &TestCluster) -> usize {
    std::fs::read_dir(cluster.data_dir().join("base")).unwrap().count()
}

#[test]
fn what_an_interrupted_copy_leaves_is_removed_by_the_next_one() {
    let mut cluster = empty_cluster_in(&required(), Medium::Disk).unwrap();
    cluster.start().unwrap();
    cluster.psql("postgres", "CREATE DATABASE source").unwrap();
    let sql =
        "CREATE TABLE large AS SELECT i, repeat(md5(i::text), 60) FROM generate_series(1, 30000) i";
    script(&cluster, "source", sql).unwrap();
    cluster.stop().unwrap();
    let before = directories(&cluster);
    for strategy in ["wal_log", "file_copy"] {
        let arguments = ["clone", "--strategy", strategy, "source", "new"];
        let mut command = pagemill().command(&cluster.data_dir(), &arguments);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        while directories(&cluster) == before {
            assert!(child.try_wait().unwrap().is_none(), "it ended without a directory");
            std::thread::yield_now();
        }
        let interrupt = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status();
        assert!(interrupt.unwrap().success());
        assert!(!child.wait().unwrap().success(), "it was done before it could be interrupted");
        // Nothing of it stands in anybody's way, and a server does not see it.
        cluster.start().unwrap();
        let count = "SELECT count(*) FROM pg_database WHERE datname = 'new'";
        assert_eq!(cluster.psql("postgres", count).unwrap(), "0");
        cluster.psql("postgres", "CREATE DATABASE meanwhile").unwrap();
        cluster.stop().unwrap();
        done(&cluster, &["drop", "meanwhile"]).unwrap();
        assert_eq!(directories(&cluster), before, "{strategy}: a directory is left");
        assert!(!cluster.data_dir().join("pagemill.pending").exists());
        assert!(!cluster.data_dir().join("postmaster.pid").exists());
        check_checksums(&cluster).unwrap();
    }
    done(&cluster, &["clone", "source", "new"]).unwrap();
    cluster.start().unwrap();
    assert_eq!(cluster.psql("new", "SELECT count(*) FROM large").unwrap(), "30000");
}

#[test]
fn a_run_that_is_killed_leaves_a_whole_database_or_none_and_the_next_one_works() {
    let fixture = DatabaseFixture::new(&required()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Other moments in every run: what is met depends on the machine anyway.
    let program = Path::new(env!("CARGO_BIN_EXE_pagemill"));
    let trials = DATABASE_KINDS.map(|kind| DatabaseJudge::new(&fixture, kind)).into();
    let mut killer = Killer::new(trials, program, now.as_micros() as u64);
    for _ in 0..KILLS {
        killer.kill().unwrap_or_else(|error| panic!("{error:#}"));
    }
}
