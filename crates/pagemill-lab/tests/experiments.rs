//! The experiments on files that are as small as they get: what comes out, and what stays behind. No figure is looked at.
//!
//! Why: an experiment that cannot run in this sandbox has to say so in a row, and to leave nothing behind.

use std::time::Duration;

use pagemill_lab::experiments::LEAST_SIZE;
use pagemill_lab::results::{CacheState, Figure, Results};
use pagemill_lab::{Cancel, LabOptions, Nobody, Scale, run};

fn run_of(experiment: &str) -> Results {
    let directory = tempfile::tempdir().unwrap();
    let options = LabOptions {
        directory: directory.path().into(),
        experiments: vec![experiment.into()],
        scale: Scale { time: Duration::from_millis(100), ..Scale::new(true, Some(LEAST_SIZE)) },
        seed: 7,
        flame_graphs: false,
        jobs: 2,
        mirrored: true,
        with_postgres: None,
    };
    let results = run(&options, &Cancel::default(), &Nobody).unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(results.interrupted, None);
    let told = serde_json::to_string(&results).unwrap();
    assert!(!told.contains("pagemill-lab."), "a directory is named: {told}");
    for group in results.experiments.iter().flat_map(|experiment| &experiment.groups) {
        check_group(group);
    }
    results
}

/// Every cell has its turns, or says why there are none; the baseline is one of them.
fn check_group(group: &pagemill_lab::results::Group) {
    for cell in &group.cells {
        assert_eq!(cell.samples.is_empty(), cell.absent.is_some(), "{}/{}", group.name, cell.name);
        let (count, name) = (cell.samples.len(), (&group.name, &cell.name));
        assert!(cell.absent.is_some() || count >= 6, "{count} {name:?}");
        assert!(group.figures(cell).iter().all(|figure| figure.is_finite()), "{name:?}");
    }
    let baseline = group.baseline.as_deref();
    assert!(baseline.is_none_or(|name| group.cell(name).is_some()), "{}", group.name);
}

/// The parts that were left out; an error of an experiment stands there too.
fn skipped(results: &Results) -> Vec<&str> {
    let experiments = results.experiments.iter();
    experiments.flat_map(|each| &each.skipped).map(|part| part.what.as_str()).collect()
}

#[test]
fn mmap_has_each_way_cached_and_cold_and_counts_pieces() {
    let results = run_of("mmap");
    assert_eq!(skipped(&results), [""; 0]);
    let cell =
        |group: &str, cell: &str| results.group("mmap", group).unwrap().cell(cell).unwrap().clone();
    for group in ["small-file-to-null", "small-file", "tree-cached"] {
        for name in ["read whole", "read 64 kB", "mmap each time random", "mmap once populate"] {
            cell(group, name);
        }
    }
    assert_eq!(results.group("mmap", "tree-cold").unwrap().cache, CacheState::Cold);
    assert_eq!(results.group("mmap", "pieces-four-writers").unwrap().figure, Figure::Count);
    assert!(cell("load-cached", "mmap").samples[0].calls.contains_key("mmap"));
    assert!(!cell("load-cached", "read").samples[0].calls.contains_key("mmap"));
    assert!(cell("overwrite", "mmap, msync").samples[0].calls["msync"] == 1);
    assert!(results.verdicts.iter().any(|verdict| verdict.id == "mmap-each-time"));
}

#[test]
fn readiness_goes_up_to_ten_thousand_and_says_that_there_is_no_kqueue() {
    let results = run_of("readiness");
    assert_eq!(skipped(&results), [""; 0]);
    for group in ["2-few-ready", "100-many-ready", "10000-few-ready", "2-one-wait"] {
        let group = results.group("readiness", group).unwrap();
        let names: Vec<_> = group.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names, ["select", "poll", "epoll", "io_uring", "kqueue"]);
        assert!(group.cell("kqueue").unwrap().absent.is_some());
    }
    let few = results.group("readiness", "2-few-ready").unwrap();
    for sample in &few.cell("poll").unwrap().samples {
        assert_eq!(sample.calls["poll"], sample.operations);
    }
}

#[test]
fn copy_makes_the_calls_of_each_way_with_wal_and_without() {
    let results = run_of("copy");
    assert_eq!(skipped(&results), ["files-cold"]);
    let calls = |group: &str, cell: &str| {
        let cell = results.group("copy", group).unwrap().cell(cell).unwrap();
        cell.samples[0].calls.clone()
    };
    let (blocks, plain) = (LEAST_SIZE / 4 / 8192, calls("files-cached", "block by block"));
    assert_eq!((plain["pread"], plain["pwrite"]), (blocks, blocks));
    let logged = calls("wal-cold", "block by block, single records");
    assert!(logged["pwrite"] > blocks, "{logged:?}");
    assert!(calls("files-cached", "read stream")["pread"] < blocks);
    assert!(calls("files-cached", "copy_file_range").contains_key("copy_file_range"));
    assert_eq!(results.verdicts.len(), 3);
}

#[test]
fn readahead_has_every_strategy_on_each_kind_of_file_and_says_what_it_left_out() {
    let results = run_of("readahead");
    let skipped = skipped(&results);
    assert!(!skipped.iter().any(|what| what.contains("rest of the experiment")), "{skipped:?}");
    let of = |name: &str| results.group("readahead", name);
    for name in ["forward-cold", "backward-cold", "several-readers-cold", "sparse-cold"] {
        assert_eq!(of(name).unwrap().cells.len(), 6, "{name}");
    }
    let simulated = of("simulated-mirror").unwrap();
    assert!(simulated.title.starts_with("Simulated"), "{}", simulated.title);
    for cell in &simulated.cells {
        let first = &cell.samples[0];
        assert!(cell.samples.iter().all(|sample| sample.elapsed_s == first.elapsed_s));
        assert!(cell.note.as_deref().is_some_and(|note| note.contains("model")));
    }
    match of("mirrored-forward-cold") {
        Some(group) => {
            let note = group.cell("0 none").unwrap().note.as_deref().unwrap();
            assert!(note.contains("the disks read"), "{note}");
        }
        None => {
            let why = &results.experiments[0].skipped;
            let mirrored = why.iter().find(|part| part.what.starts_with("mirrored")).unwrap();
            eprintln!("SKIPPED: {}: {}", mirrored.what, mirrored.why);
        }
    }
}
