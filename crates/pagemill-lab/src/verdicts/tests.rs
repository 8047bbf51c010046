//! Verdicts on results that were made up for them.
//!
//! Each outcome a claim can have is reached at least once.

use super::*;
use crate::results::{
    Absence, CacheState, Cell, ClaimStatus, Experiment, Figure, Group, Sample, Skipped,
};

/// A cell whose turns took these seconds, and made so many reads.
fn cell(name: &str, seconds: &[f64], reads: u64) -> Cell {
    let sample = |elapsed: &f64| Sample {
        elapsed_s: *elapsed,
        system_s: *elapsed / 2.0,
        operations: 1,
        counted: Some(*elapsed),
        calls: [("pread".to_owned(), reads)].into(),
        parts: [("extend".to_owned(), *elapsed), ("fdatasync".to_owned(), *elapsed)].into(),
        ..Sample::default()
    };
    Cell { name: name.into(), samples: seconds.iter().map(sample).collect(), ..Cell::default() }
}

fn group(name: &str, figure: Figure, cells: Vec<Cell>) -> Group {
    Group {
        name: name.into(),
        cache: CacheState::Cached,
        bytes: 1,
        figure,
        cells,
        ..Group::default()
    }
}

fn run_of(experiment: &str, groups: Vec<Group>) -> Results {
    let experiment = Experiment { name: experiment.into(), groups, ..Experiment::default() };
    Results { experiments: vec![experiment], ..Results::default() }
}

fn verdict(results: &Results, id: &str) -> Verdict {
    verdicts(results).into_iter().find(|verdict| verdict.id == id).unwrap()
}

const STEADY: [f64; 6] = [1.0, 1.01, 0.99, 1.0, 1.02, 1.0];

fn times(factor: f64) -> Vec<f64> {
    STEADY.iter().map(|seconds| seconds * factor).collect()
}

/// `copy` with a stream that takes so many times as long and makes so many calls, against one and 1600.
fn copy(factor: f64, reads: u64) -> Results {
    let cells = vec![
        cell("block by block, single records", &STEADY, 1600),
        cell("read stream, single records", &times(factor), reads),
    ];
    run_of("copy", vec![group("wal-cached", Figure::Elapsed, cells)])
}

#[test]
fn a_claim_of_no_difference_holds_fails_or_is_not_seen() {
    let of = |results: &Results| verdict(results, "stream-no-time").outcome;
    assert_eq!(of(&copy(1.0, 100)), ClaimStatus::Holds);
    assert_eq!(of(&copy(0.6, 100)), ClaimStatus::DoesNotHold);
    let noisy = [0.5, 2.0, 0.6, 1.9, 1.0, 1.1];
    let cells = vec![
        cell("block by block, single records", &STEADY, 1600),
        cell("read stream, single records", &noisy, 100),
    ];
    let results = run_of("copy", vec![group("wal-cached", Figure::Elapsed, cells)]);
    assert_eq!(of(&results), ClaimStatus::NotSeen);
}

#[test]
fn a_verdict_names_what_it_rests_on_and_what_was_left_out() {
    let found = verdict(&copy(0.6, 100), "stream-no-time");
    assert_eq!(found.evidence, ["copy/wal-cached"]);
    assert!(found.measured.contains("in wal-cached: 1.67 times as good"), "{}", found.measured);
    assert!(found.measured.contains("cached"), "{}", found.measured);
    assert!(
        found.why.contains("Not measured") && found.why.contains("copy/wal-cold"),
        "{}",
        found.why
    );
}

#[test]
fn calls_are_held_against_the_claimed_share() {
    let of = |reads| verdict(&copy(1.0, reads), "stream-sixteenth-of-calls").outcome;
    assert_eq!(of(100), ClaimStatus::Holds);
    assert_eq!(of(400), ClaimStatus::HoldsInPart);
    assert_eq!(of(1600), ClaimStatus::DoesNotHold);
}

/// `extend` where posix_fallocate is so many times as fast as writing zeros.
fn extend(factor: f64) -> Results {
    let cells = vec![
        cell("write_zeros 64", &STEADY, 0),
        cell("posix_fallocate 64", &times(1.0 / factor), 0),
    ];
    run_of("extend", vec![group("extend", Figure::Elapsed, cells)])
}

#[test]
fn a_claimed_factor_holds_when_it_is_about_reached() {
    let of = |factor| verdict(&extend(factor), "fallocate-ten-times").outcome;
    assert_eq!(of(12.0), ClaimStatus::Holds);
    assert_eq!(of(9.0), ClaimStatus::Holds);
    assert_eq!(of(3.0), ClaimStatus::HoldsInPart);
    assert_eq!(of(1.0), ClaimStatus::DoesNotHold);
    assert_eq!(of(0.5), ClaimStatus::DoesNotHold);
}

#[test]
fn what_was_refused_or_left_out_is_not_measured() {
    let refused = Cell {
        name: "posix_fallocate 64".into(),
        absent: Some(Absence::Refused("the file system has no such call".into())),
        ..Cell::default()
    };
    let cells = vec![cell("write_zeros 64", &STEADY, 0), refused];
    let found = verdict(
        &run_of("extend", vec![group("extend", Figure::Elapsed, cells)]),
        "fallocate-ten-times",
    );
    assert_eq!(found.outcome, ClaimStatus::NotMeasured);
    assert!(found.why.contains("the file system has no such call"), "{}", found.why);
    assert!(found.evidence.is_empty() && found.measured.is_empty());

    let mut results = run_of("readahead", vec![]);
    let why = "needs root".into();
    let what = "mirrored disks (mirrored-several-readers-cold)".into();
    results.experiments[0].skipped.push(Skipped { what, why });
    let other = Skipped { what: "compressed files".into(), why: "no btrfs".into() };
    results.experiments[0].skipped.push(other);
    let found = verdict(&results, "readahead-several-readers");
    assert_eq!(found.outcome, ClaimStatus::NotMeasured);
    assert!(found.why.contains("-cold): needs root"), "{}", found.why);
    assert!(!found.why.contains("btrfs"), "{}", found.why);
}

#[test]
fn bytes_that_ftruncate_alone_lost_speak_against_it() {
    let of = |zeros: f64| {
        let cells = vec![
            cell("write_zeros", &[zeros; 5], 0),
            cell("posix_fallocate", &[0.0; 5], 0),
            cell("ftruncate", &[9.0; 5], 0),
        ];
        let results = run_of("extend", vec![group("full-device", Figure::Count, cells)]);
        verdict(&results, "ftruncate-holes").outcome
    };
    assert_eq!((of(0.0), of(1.0)), (ClaimStatus::Holds, ClaimStatus::DoesNotHold));
}

#[test]
fn more_pieces_speak_for_the_other_way() {
    let of = |hole: f64| {
        let cells = vec![cell("zeros, mmap", &[2.0; 6], 0), cell("hole, mmap", &[hole; 6], 0)];
        let results = run_of("mmap", vec![group("pieces-one-writer", Figure::Count, cells)]);
        verdict(&results, "mmap-hole-pieces").outcome
    };
    assert_eq!((of(90.0), of(2.0)), (ClaimStatus::Holds, ClaimStatus::DoesNotHold));
}

#[test]
fn only_experiments_of_the_run_are_judged_and_no_claim_twice() {
    assert!(verdicts(&Results::default()).is_empty());
    let experiments = ["pread", "readahead", "mmap", "readiness", "copy", "extend"];
    let mut results = Results::default();
    for name in experiments {
        results.experiments.extend(run_of(name, vec![]).experiments);
    }
    let all = verdicts(&results);
    assert!(all.iter().all(|verdict| verdict.outcome == ClaimStatus::NotMeasured));
    let ids: std::collections::BTreeSet<_> = all.iter().map(|verdict| &verdict.id).collect();
    assert_eq!(ids.len(), all.len());
    let documents: std::collections::BTreeSet<_> = all.iter().map(|each| &each.document).collect();
    assert_eq!(documents.len(), 5);
    assert!(verdicts(&run_of("copy", vec![])).iter().all(|each| each.document.contains("2024")));
}

fn readahead(group: &str, factor: f64) -> Vec<Verdict> {
    let cells = vec![cell("0 none", &STEADY, 0), cell("2 window", &times(1.0 / factor), 0)];
    verdicts(&run_of("readahead", vec![group_of(group, cells)]))
}

fn group_of(name: &str, cells: Vec<Cell>) -> Group {
    group(name, Figure::Elapsed, cells)
}

/// Claims about mirrored disks stood under "holds" of a storage that has no mirror: a model had been measured.
#[test]
fn what_a_model_shows_is_a_verdict_of_its_own() {
    let all = readahead("simulated-mirror", 1.6);
    let of = |id: &str| all.iter().find(|each| each.id == id).unwrap();
    let here = of("readahead-strategy-2");
    assert_eq!((here.outcome, &here.model), (ClaimStatus::NotMeasured, &None));
    let model = of("readahead-strategy-2-model");
    assert_eq!(model.outcome, ClaimStatus::Holds);
    assert_eq!(model.model.as_deref(), Some("two disks of 2009"));
    assert_eq!(model.evidence, ["readahead/simulated-mirror"]);
    let of_model = |each: &&Verdict| each.evidence.iter().any(|group| group.contains("simulated"));
    assert!(all.iter().filter(of_model).all(|each| each.model.is_some()));
    assert!(all.iter().all(|each| each.id != "readahead-mirror-idle"), "there is no real one");
}

/// "Does not hold" was said where pread saves more than was claimed, as where it saves nothing.
#[test]
fn a_claim_that_does_not_hold_says_which_way_it_differs() {
    let of = |factor: f64| {
        let found = verdict(&copy(1.0 / factor, 100), "stream-no-time");
        (found.outcome, found.differs)
    };
    let (stream, blocks) = ("read stream, single records", "block by block, single records");
    let more = format!("{stream} gains more over {blocks} than claimed");
    assert_eq!(of(1.6), (ClaimStatus::DoesNotHold, more));
    assert_eq!(of(0.6), (ClaimStatus::DoesNotHold, format!("{stream} is worse than {blocks}")));
    assert_eq!(of(1.0), (ClaimStatus::Holds, String::new()));
    let less = "posix_fallocate 64 gains less over write_zeros 64 than claimed";
    assert_eq!(verdict(&extend(3.0), "fallocate-ten-times").differs, less);
}

/// 98 s and 60 s were taken for lseek and pread; both are either's time, on a table that misses the cache and one in it.
#[test]
fn every_claim_names_its_message_and_the_archive_where_that_has_it() {
    let results = run_of("pread", vec![]);
    let noise = verdict(&results, "pread-within-noise");
    assert!(noise.claim.contains("98 s where half of the reads miss the page cache"));
    for document in DOCUMENTS {
        assert!(document.name.starts_with('"') && document.name.contains("\", pgsql-"));
        let archive = "https://www.postgresql.org/message-id/";
        assert!(document.link.is_none_or(|link| link.starts_with(archive)));
    }
}
