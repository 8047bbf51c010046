//! The record oracle: a server writes, for nearly every record, what redo needs and also the page as it was
//! afterwards (`wal_consistency_checking`, without `full_page_writes`); every such record is redone, and what
//! comes out is compared with the server's page.
//!
//! The server blanks in its images what may differ (`page_mask` in the test kit); what of that must not, is compared with its files
//! at the end (`final_pages`). Command ids and hints are not.

#[path = "record_oracle/final_pages.rs"]
mod final_pages;
#[path = "record_oracle/pages.rs"]
mod pages;
#[path = "record_oracle/walk.rs"]
mod walk;
#[path = "record_oracle/workload.rs"]
mod workload;

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use pagemill_testkit::PgInstall;
use pagemill_testkit::TestCluster;
use workload::{Setup, Worked, work_on_indexes, work_on_tables};

/// Records that the work has to bring, in every version.
const WANTED: [&str; 13] = [
    "Heap INSERT",
    "Heap INSERT+INIT",
    "Heap DELETE",
    "Heap UPDATE",
    "Heap UPDATE+INIT",
    "Heap HOT_UPDATE",
    "Heap HEAP_CONFIRM",
    "Heap LOCK",
    "Heap INPLACE",
    "Heap2 MULTI_INSERT",
    "Heap2 MULTI_INSERT+INIT",
    "Heap2 LOCK_UPDATED",
    "Sequence LOG",
];
const WANTED_BEFORE_17: [&str; 4] =
    ["Heap2 PRUNE", "Heap2 VACUUM", "Heap2 FREEZE_PAGE", "Heap2 VISIBLE"];
const WANTED_FROM_17: [&str; 4] = [
    "Heap2 PRUNE_ON_ACCESS",
    "Heap2 PRUNE_VACUUM_SCAN",
    "Heap2 PRUNE_VACUUM_CLEANUP",
    "Heap2 VISIBLE",
];

/// Records of indexes, and their block references, that the work has to bring, in every version. Of splits of GIN
/// pages, of splits of buckets and of the cleanup of GIN's keys there is nothing but images.
const WANTED_OF_INDEXES: [(&str, &[u8]); 54] = [
    ("Btree INSERT_LEAF", &[0]),
    ("Btree INSERT_UPPER", &[0, 1]),
    ("Btree INSERT_META", &[0, 1, 2]),
    ("Btree SPLIT_L", &[0, 1, 2, 3]),
    ("Btree SPLIT_R", &[0, 1, 2, 3]),
    ("Btree INSERT_POST", &[0]),
    ("Btree DEDUP", &[0]),
    ("Btree DELETE", &[0]),
    ("Btree UNLINK_PAGE", &[0, 1, 2, 3]),
    ("Btree UNLINK_PAGE_META", &[0, 2, 4]),
    ("Btree NEWROOT", &[0, 1, 2]),
    ("Btree MARK_PAGE_HALFDEAD", &[0, 1]),
    ("Btree VACUUM", &[0]),
    ("Btree META_CLEANUP", &[0]),
    ("Hash INIT_META_PAGE", &[0]),
    ("Hash INIT_BITMAP_PAGE", &[0, 1]),
    ("Hash INSERT", &[0, 1]),
    ("Hash ADD_OVFL_PAGE", &[0, 1, 2, 4]),
    ("Hash SPLIT_ALLOCATE_PAGE", &[0, 1, 2]),
    ("Hash SPLIT_COMPLETE", &[0, 1]),
    ("Hash MOVE_PAGE_CONTENTS", &[1, 2]),
    ("Hash SQUEEZE_PAGE", &[1, 2, 3, 5, 6]),
    ("Hash DELETE", &[1]),
    ("Hash SPLIT_CLEANUP", &[0]),
    ("Hash UPDATE_META_PAGE", &[0]),
    ("Hash VACUUM_ONE_PAGE", &[0, 1]),
    ("Gin CREATE_PTREE", &[0]),
    ("Gin INSERT", &[0, 1]),
    ("Gin VACUUM_DATA_LEAF_PAGE", &[0]),
    ("Gin DELETE_PAGE", &[0, 1, 2]),
    ("Gin UPDATE_META_PAGE", &[0, 1]),
    ("Gin INSERT_LISTPAGE", &[0]),
    ("Gin DELETE_LISTPAGE", &[0, 1, 2]),
    ("Gist PAGE_UPDATE", &[0, 1]),
    ("Gist DELETE", &[0]),
    ("Gist PAGE_SPLIT", &[0, 1, 2, 3]),
    ("Gist PAGE_DELETE", &[0, 1]),
    ("SPGist ADD_LEAF", &[0, 1]),
    ("SPGist MOVE_LEAFS", &[0, 1, 2]),
    ("SPGist ADD_NODE", &[0, 1, 2]),
    ("SPGist SPLIT_TUPLE", &[0, 1]),
    ("SPGist PICKSPLIT", &[0, 1, 2, 3]),
    ("SPGist VACUUM_LEAF", &[0]),
    ("SPGist VACUUM_ROOT", &[0]),
    ("SPGist VACUUM_REDIRECT", &[0]),
    ("BRIN CREATE_INDEX", &[0]),
    ("BRIN INSERT", &[0, 1]),
    ("BRIN INSERT+INIT", &[0, 1]),
    ("BRIN UPDATE", &[0, 1, 2]),
    ("BRIN UPDATE+INIT", &[0, 1, 2]),
    ("BRIN SAMEPAGE_UPDATE", &[0]),
    ("BRIN REVMAP_EXTEND", &[0, 1]),
    ("BRIN DESUMMARIZE", &[0, 1]),
    ("Generic Generic", &[0]),
];

type Work = fn(&TestCluster) -> Result<()>;

/// Has a server do the work, and redoes every record of it.
fn redone(install: &PgInstall, setup: Setup, work: Work) -> Result<walk::Report> {
    let worked = Worked::new(install, setup, work)?;
    let report = walk::walk(&worked.before.data_dir(), &worked.after.data_dir())?;
    eprintln!("PostgreSQL {}, {setup:?}: {report}", install.major);
    ensure!(report.faults.is_empty() && report.not_redone.is_empty(), "{setup:?}: {report}");
    if std::env::var_os("ORACLE_KEEP").is_some() {
        let (before, after) = (worked.before.keep()?, worked.after.keep()?);
        println!("ORACLE_BEFORE={}/data ORACLE_AFTER={}/data", before.display(), after.display());
    }
    Ok(report)
}

/// One at a time: its WAL, in memory, is nearly two gigabytes.
static INDEXES: Mutex<()> = Mutex::new(());

fn check_indexes(install: &PgInstall) -> Result<()> {
    let _alone = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
    let report = redone(install, index_setup_of(install.major), work_on_indexes)?;
    for (name, references) in WANTED_OF_INDEXES {
        for reference in references {
            let is_there = report.references.contains(&(name.to_owned(), *reference));
            ensure!(is_there, "no {name}, reference {reference}, was compared: {report}");
        }
    }
    Ok(())
}

fn check(install: &PgInstall, setup: Setup) -> Result<()> {
    let report = redone(install, setup, work_on_tables)?;
    let more = if install.major >= 17 { WANTED_FROM_17 } else { WANTED_BEFORE_17 };
    for name in WANTED.iter().chain(&more) {
        ensure!(report.compared.contains_key(*name), "no {name} was compared: {report}");
    }
    Ok(())
}

/// A setup for each version, so that each setting is met with old and new formats.
fn setup_of(major: u32) -> Setup {
    let (wal_level, wal_compression, data_checksums) = match major {
        14 => ("logical", "on", false),
        15 => ("replica", "pglz", true),
        16 => ("logical", "off", true),
        17 => ("replica", "off", false),
        _ => ("logical", "pglz", true),
    };
    Setup { wal_level, wal_compression, data_checksums }
}

/// Images are not compressed: there are so many of them that servers did hardly anything else, and those of tables are.
fn index_setup_of(major: u32) -> Setup {
    let (wal_level, data_checksums) =
        if major.is_multiple_of(2) { ("replica", true) } else { ("logical", false) };
    Setup { wal_level, wal_compression: "off", data_checksums }
}

#[test]
fn every_record_of_an_index_makes_of_a_page_what_the_server_made_of_it() {
    pagemill_testkit::each_of(&PgInstall::all(), check_indexes);
}

#[test]
fn every_record_makes_of_a_page_what_the_server_made_of_it() {
    pagemill_testkit::each_of(&PgInstall::all(), |install| check(install, setup_of(install.major)));
}

#[test]
fn settings_that_change_what_records_hold_change_nothing_of_what_they_make() {
    let Some(install) = PgInstall::find(15) else { panic!("PostgreSQL 15 is needed") };
    let setup = Setup { wal_level: "logical", wal_compression: "lz4", data_checksums: false };
    if let Err(error) = check(&install, setup) {
        panic!("{error:#}");
    }
}

/// For work that no test should do: PostgreSQL's own regression suite, a server built from source; and for the same work again,
/// which the tests above leave if `ORACLE_KEEP` is set.
#[test]
#[ignore = "walks from one stopped cluster to another: ORACLE_BEFORE and ORACLE_AFTER name their directories"]
fn records_of_any_work_make_of_pages_what_the_server_made_of_them() {
    let directory = |name| std::path::PathBuf::from(std::env::var_os(name).expect(name));
    let report = walk::walk(&directory("ORACLE_BEFORE"), &directory("ORACLE_AFTER"));
    let report = report.expect("two stopped clusters");
    eprintln!("{report}");
    assert!(report.faults.is_empty(), "{report}");
}
