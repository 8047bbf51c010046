//! The record oracle on samples: WAL of servers that are not on this machine, 17.11 and 18.6 among them, whose records name
//! the pages of the visibility map whose bits they clear.
//!
//! The walk is that of `record_oracle`. Before and after it lie the server's own files, the latter as its recovery left
//! them, so that each bit of the map is compared, too.

#[path = "record_oracle/final_pages.rs"]
mod final_pages;
#[path = "record_oracle/pages.rs"]
mod pages;
#[path = "record_oracle/walk.rs"]
mod walk;

use anyhow::{Result, ensure};
use pagemill_testkit::samples::Sample;

/// Records with references that only these servers write: 1 of the map, and of an update 2 and 3. Among the updates are
/// those within a page; between pages that were both, or of which only the old one was, all-visible; and between pages
/// far from each other, whose bits lie on two pages of the map.
///
/// Rows that are locked with what they were updated to (`LOCK_UPDATED`) have none: a page is not frozen while the update of
/// a row on it goes on.
const MAPS_NAMED: [(&str, &[u8]); 10] = [
    ("Heap INSERT", &[0, 1]),
    ("Heap2 MULTI_INSERT", &[0, 1]),
    ("Heap DELETE", &[0, 1]),
    ("Heap LOCK", &[0, 1]),
    ("Heap HOT_UPDATE", &[0, 3]),
    ("Heap UPDATE", &[0, 3]),
    ("Heap UPDATE", &[0, 1, 2]),
    ("Heap UPDATE", &[0, 1, 3]),
    ("Heap UPDATE", &[0, 1, 2, 3]),
    ("Heap UPDATE+INIT", &[0, 1, 3]),
];

/// Records that name no page of the map, or set bits there.
const OTHERS: [(&str, &[u8]); 6] = [
    ("Heap LOCK", &[0]),
    ("Heap INPLACE", &[0]),
    ("Heap2 VISIBLE", &[0, 1]),
    ("Heap2 PRUNE_ON_ACCESS", &[0]),
    ("Heap2 PRUNE_VACUUM_SCAN", &[0]),
    ("Heap2 PRUNE_VACUUM_CLEANUP", &[0]),
];

/// Versions that there have to be samples of.
const WANTED: [&str; 2] = ["17.11", "18.6"];

fn check(sample: &Sample) -> Result<()> {
    let report = walk::walk(&sample.before(), &sample.after())?;
    eprintln!("PostgreSQL {}: {report}", sample.version);
    ensure!(report.faults.is_empty() && report.not_redone.is_empty(), "{report}");
    for (name, references) in MAPS_NAMED.iter().chain(&OTHERS) {
        let form = ((*name).to_owned(), references.to_vec());
        ensure!(report.forms.contains(&form), "no {form:?} was compared: {:?}", report.forms);
    }
    Ok(())
}

#[test]
fn records_that_name_pages_of_the_visibility_map_clear_the_bits_that_the_server_cleared() {
    let samples = Sample::all().unwrap();
    for version in WANTED {
        assert!(samples.iter().any(|sample| sample.version == version), "no sample of {version}");
    }
    for sample in samples {
        if let Err(error) = check(&sample) {
            panic!("PostgreSQL {}: {error:#}", sample.version);
        }
    }
}
