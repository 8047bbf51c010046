//! What made-up machines are advised.
//!
//! The machines are in `tests/machines.rs`; each test names the settings that have to come out, and all others must stay.
//! That no results, however strange, break anything is in `tests/arbitrary.rs`.

use std::collections::BTreeSet;

use super::*;
use crate::results::{Experiment, Sample, Warning};
use machines::{Machine, disturbed};

mod arbitrary;
mod machines;

fn advised(results: &Results, version: &str) -> Advice {
    advise(results, version.parse().unwrap())
}

/// The settings to be changed, as `name=value`.
fn changes(advice: &Advice) -> Vec<String> {
    let change = |setting: &Setting| Some(format!("{}={}", setting.name, setting.value.as_ref()?));
    advice.settings.iter().filter_map(change).collect()
}

fn setting<'a>(advice: &'a Advice, name: &str) -> &'a Setting {
    advice.settings.iter().find(|setting| setting.name == name).unwrap()
}

fn changed(machine: &Machine, version: &str) -> Vec<String> {
    changes(&advised(&machine.results(), version))
}

#[test]
fn a_fast_drive_wants_depth_large_reads_and_cheap_random_pages() {
    let expected = [
        "io_workers=32",
        "effective_io_concurrency=64",
        "maintenance_io_concurrency=64",
        "random_page_cost=2",
        "read_ahead_kb=512",
    ];
    assert_eq!(changed(&machines::nvme(), "18"), expected);
    let expected = [
        "effective_io_concurrency=64",
        "maintenance_io_concurrency=64",
        "random_page_cost=2",
        "read_ahead_kb=512",
    ];
    for version in ["14", "15", "16", "17"] {
        assert_eq!(changed(&machines::nvme(), version), expected, "{version}");
    }
    let advice = advised(&machines::nvme().results(), "18");
    let depth = setting(&advice, "effective_io_concurrency");
    assert_eq!((&*depth.default, depth.takes_effect), ("16", TakesEffect::Reload));
    let best = &depth.evidence[0];
    assert_eq!((&*best.group, &*best.cell), ("device/random-read", "io_uring 8 kB depth 64"));
    assert_eq!(best.against.as_deref(), Some("io_uring 8 kB depth 16"));
    assert!(
        best.figure.low > 2.5 && best.figure.high < 3.5 && best.figure.coverage > 0.95,
        "{best:?}"
    );
    assert!(depth.cautions.iter().any(|caution| caution.contains("most that was tried")));
}

#[test]
fn large_reads_are_combined_where_the_page_cache_gains_from_them_too() {
    let machine = Machine { latency: 320e-6, ..machines::nvme() };
    let mut results = machine.results();
    let kept = advised(&results, "18");
    assert_eq!(setting(&kept, "io_combine_limit").decision, Decision::LeaveDefault);
    assert!(setting(&kept, "io_combine_limit").why.contains("through it, as servers read"));
    for group in results.experiments.iter_mut().flat_map(|each| &mut each.groups) {
        if group.name == "sequential-read-cold" {
            group.cells.retain(|cell| cell.name != "pread 1 MB");
        }
    }
    let advice = advised(&results, "18");
    assert_eq!(setting(&advice, "io_combine_limit").value.as_deref(), Some("1MB"));
    // Where the kernel reads as far ahead, it makes small reads large.
    let mut far = results.clone();
    far.environment.iter_mut().for_each(|fact| fact.value = fact.value.replace("128", "1024"));
    assert_eq!(setting(&advised(&far, "18"), "io_combine_limit").decision, Decision::LeaveDefault);
    let limit = setting(&advice, "io_max_combine_limit");
    assert_eq!((limit.value.as_deref(), limit.takes_effect), (Some("1MB"), TakesEffect::Restart));
    assert_eq!(
        setting(&advised(&results, "17"), "io_combine_limit").value.as_deref(),
        Some("256kB")
    );
}

#[test]
fn a_throttled_disk_wants_fewer_reads_at_a_time() {
    let expected =
        ["effective_io_concurrency=4", "maintenance_io_concurrency=4", "random_page_cost=2"];
    assert_eq!(changed(&machines::slow(), "18"), expected);
    let expected = ["maintenance_io_concurrency=2", "random_page_cost=2"];
    assert_eq!(changed(&machines::slow(), "17"), expected);
    let advice = advised(&machines::slow().results(), "18");
    let depth = setting(&advice, "effective_io_concurrency");
    assert!(depth.evidence.iter().all(|each| each.figure.high < 1.1), "{depth:?}");
    assert!(depth.why.contains("limited to 2,0") && depth.why.contains(" reads/s"), "{depth:?}");
}

/// Two runs said 4 and 16 beside a table in which depth 64 was 1.31 times (1.20 to 1.46) as fast as depth 4.
#[test]
fn nothing_below_a_default_is_advised_while_a_deeper_level_may_be_better() {
    let growing = [1.0, 1.02, 1.05, 1.1, 1.16, 1.24, 1.31];
    for noise in [0.001, 0.02, 0.05, 0.1] {
        for seed in 0..40 {
            let machine = Machine { noise, seed, ..machines::slow() };
            let mut results = machine.results();
            for (depth, factor) in [1_u64, 2, 4, 8, 16, 32, 64].into_iter().zip(growing) {
                quicken(&mut results, "io_uring", depth, factor);
            }
            let advice = advised(&results, "18");
            for name in ["effective_io_concurrency", "maintenance_io_concurrency"] {
                let found = setting(&advice, name);
                let value: u64 = found.value.as_deref().unwrap_or("16").parse().unwrap();
                assert!(value >= 16, "{noise} {seed}: {found:?}");
            }
        }
    }
}

/// Makes a cell of random reads so many times as fast.
fn quicken(results: &mut Results, method: &str, depth: u64, factor: f64) {
    let groups = results.experiments.iter_mut().flat_map(|each| &mut each.groups);
    let cells =
        groups.filter(|group| group.name == "random-read").flat_map(|group| &mut group.cells);
    let is_it = |cell: &&mut crate::results::Cell| {
        cell.parameters["method"] == method && cell.parameters["depth"] == depth.to_string()
    };
    for sample in cells.filter(is_it).flat_map(|cell| &mut cell.samples) {
        sample.elapsed_s /= factor;
    }
}

/// Two quick runs in a row advised different values of six settings.
#[test]
fn five_runs_of_one_machine_are_advised_the_same() {
    let machines =
        [machines::nvme(), machines::slow(), machines::cloud(), machines::copy_on_write()];
    for machine in machines {
        for (quick, turns, most) in [(true, 6, 0.05), (false, 16, 0.03)] {
            for noise in [0.005, 0.01, 0.03, most] {
                let run = |seed| {
                    let machine = Machine { quick, turns, noise, seed, ..machine.clone() };
                    changed(&machine, "18")
                };
                let first = run(100);
                for seed in 101..105 {
                    assert_eq!(run(seed), first, "{machine:?}, quick {quick}, noise {noise}");
                }
            }
        }
    }
}

/// With a tenth of noise a quick run may leave a default that another one changes, but no two advise different values.
#[test]
fn noise_leads_to_the_default_and_to_no_other_value() {
    let machines =
        [machines::nvme(), machines::slow(), machines::cloud(), machines::copy_on_write()];
    for machine in machines {
        let run = |seed| {
            let machine = Machine { quick: true, turns: 6, noise: 0.1, seed, ..machine.clone() };
            changed(&machine, "18")
        };
        let all: BTreeSet<String> = (100..120).flat_map(run).collect();
        let settings: BTreeSet<_> = all.iter().map(|change| change.split('=').next()).collect();
        assert_eq!(settings.len(), all.len(), "{machine:?}: {all:?}");
    }
}

/// Of five quick runs on one disk one advised more workers, and two advised written zeros.
#[test]
fn a_gain_of_a_third_changes_nothing_in_a_quick_run() {
    for seed in 0..40 {
        let calm = Machine { growth: [0.075, 0.10], ..machines::slow() };
        let machine = Machine { quick: true, turns: 6, noise: 0.1, seed, ..calm };
        let mut results = machine.results();
        quicken(&mut results, "worker", 16, 1.33);
        let changes = changes(&advised(&results, "18.4"));
        let unstable = |change: &&String| {
            change.starts_with("io_workers") || change.starts_with("file_extend_method")
        };
        assert_eq!(changes.iter().find(unstable), None, "{seed}: {changes:?}");
    }
}

#[test]
fn what_only_one_pass_shows_changes_nothing() {
    let machine = Machine { turns: 6, ..machines::nvme() };
    let mut results = machine.results();
    assert_eq!(
        setting(&advised(&results, "18"), "effective_io_concurrency").value.as_deref(),
        Some("64")
    );
    for group in results.experiments.iter_mut().flat_map(|each| &mut each.groups) {
        group.passes = vec![3, 3];
        let deep = group.cells.iter_mut().filter(|cell| cell.name.ends_with("depth 64"));
        for sample in deep.flat_map(|cell| cell.samples.iter_mut().skip(3)) {
            sample.elapsed_s *= 4.0;
        }
    }
    let value = setting(&advised(&results, "18"), "effective_io_concurrency").value.clone();
    assert_ne!(value.as_deref(), Some("64"));
}

/// `io_workers` followed from what the ring did.
#[test]
fn workers_follow_from_workers() {
    let mut results = machines::nvme().results();
    for workers in [8_u64, 16, 32] {
        // As fast as four.
        quicken(&mut results, "worker", workers, 4.0 / workers as f64);
    }
    let advice = advised(&results, "18");
    assert_eq!(setting(&advice, "io_workers").decision, Decision::LeaveDefault);
    assert_eq!(setting(&advice, "effective_io_concurrency").value.as_deref(), Some("64"));
    for group in results.experiments.iter_mut().flat_map(|each| &mut each.groups) {
        group.cells.iter_mut().for_each(|cell| drop(cell.parameters.remove("workers")));
    }
    assert_eq!(setting(&advised(&results, "18"), "io_workers").decision, Decision::NotMeasured);
}

#[test]
fn a_volume_behind_a_network_wants_as_many_reads_as_it_takes() {
    let expected = ["io_workers=16", "random_page_cost=2", "read_ahead_kb=512"];
    assert_eq!(changed(&machines::cloud(), "18"), expected);
    let expected = [
        "effective_io_concurrency=16",
        "maintenance_io_concurrency=16",
        "random_page_cost=2",
        "read_ahead_kb=512",
    ];
    assert_eq!(changed(&machines::cloud(), "17"), expected);
}

#[test]
fn a_disk_that_turns_keeps_the_default_cost_of_random_pages() {
    let machine = Machine {
        latency: 1.0 / 150.0,
        limit: 200.0,
        bandwidth: 180e6,
        read_ahead_kb: 4096,
        ..machines::slow()
    };
    let mut results = machine.results();
    // The drive reads ahead itself, so that reads in order do not wait.
    for sample in samples_of(&mut results, "sequential-read-cold") {
        sample.elapsed_s = sample.bytes.unwrap() as f64 / 180e6;
    }
    let advice = advised(&results, "16");
    let cost = setting(&advice, "random_page_cost");
    assert_eq!(cost.decision, Decision::LeaveDefault);
    assert!(cost.cautions[0].contains("little of the data is cached"), "{cost:?}");
}

fn samples_of<'r>(
    results: &'r mut Results,
    group: &'r str,
) -> impl Iterator<Item = &'r mut Sample> {
    let groups = results.experiments.iter_mut().flat_map(|each| &mut each.groups);
    let cells = groups.filter(move |each| each.name == group).flat_map(|group| &mut group.cells);
    cells.flat_map(|cell| &mut cell.samples)
}

#[test]
fn a_file_system_that_copies_on_write_wants_no_zeros_in_wal() {
    let advice = advised(&machines::copy_on_write().results(), "17");
    for (name, value) in [("wal_init_zero", "off"), ("wal_recycle", "off")] {
        assert_eq!(setting(&advice, name).value.as_deref(), Some(value), "{advice:?}");
    }
    let overwriting = Machine { mount_options: "rw,nodatacow", ..machines::copy_on_write() };
    let elsewhere = Machine { file_system: "xfs", ..machines::copy_on_write() };
    for machine in [overwriting, elsewhere] {
        let advice = advised(&machine.results(), "17");
        for name in ["wal_init_zero", "wal_recycle"] {
            let kept = setting(&advice, name);
            assert_eq!((kept.decision, kept.evidence.is_empty()), (Decision::LeaveDefault, false));
        }
    }
}

#[test]
fn a_setting_that_came_with_a_minor_version_says_so() {
    let machine = Machine { mount_options: "rw,compress=zstd:1", ..machines::copy_on_write() };
    let results = machine.results();
    for (version, since) in [("16", "16.12"), ("17", "17.8"), ("18", "18.2")] {
        let advice = advised(&results, version);
        let found = setting(&advice, "file_extend_method");
        assert_eq!(found.value.as_deref(), Some("write_zeros"));
        assert!(found.only_where.as_ref().unwrap().contains(since), "{found:?}");
        assert!(conf(&advice).contains("\n#file_extend_method = write_zeros"));
        assert!(sql(&advice).contains("\n-- ALTER SYSTEM SET file_extend_method = 'write_zeros';"));
    }
    let advice = advised(&results, "18.4");
    assert_eq!(setting(&advice, "file_extend_method").only_where, None);
    assert!(conf(&advice).contains("\nfile_extend_method = write_zeros"));
    assert!(changed(&machine, "17.7").iter().all(|change| !change.starts_with("file_extend")));
}

#[test]
fn zeros_are_written_where_that_is_faster_and_no_slower_by_four() {
    let machine = Machine { growth: [0.05, 0.08], ..machines::nvme() };
    assert!(changed(&machine, "18.4").contains(&"file_extend_method=write_zeros".into()));
    let mut results = machine.results();
    let four = results.experiments[1]
        .groups
        .iter_mut()
        .find(|group| group.name == "extend-four-writers")
        .unwrap();
    four.cells.reverse();
    let (zeros, fallocate) = (four.cells[1].samples.clone(), four.cells[0].samples.clone());
    (four.cells[1].samples, four.cells[0].samples) = (fallocate, zeros);
    assert_eq!(setting(&advised(&results, "18.4"), "file_extend_method").value, None);
}

#[test]
fn a_sync_method_is_changed_for_a_clear_gain_only() {
    let clear = Machine { syncs: [9_000.0, 5_000.0, 4_000.0, 4_500.0], ..machines::nvme() };
    let advice = advised(&clear.results(), "17");
    let found = setting(&advice, "wal_sync_method");
    assert_eq!(
        (found.value.as_deref(), found.takes_effect),
        (Some("open_datasync"), TakesEffect::Reload)
    );
    assert_eq!(found.evidence[0].cell, "open_datasync buffered");
    assert!(found.cautions.iter().any(|caution| caution.contains("page cache")), "{found:?}");
    // What was written past the page cache says nothing of servers.
    let mut direct = clear.results();
    for cell in direct
        .experiments
        .iter_mut()
        .flat_map(|each| &mut each.groups)
        .flat_map(|group| &mut group.cells)
    {
        cell.name = cell.name.replace(" buffered", "");
    }
    let kept = advised(&direct, "17");
    assert_eq!(setting(&kept, "wal_sync_method").decision, Decision::LeaveDefault);
    let within_noise = Machine { syncs: [5_300.0, 5_000.0, 4_000.0, 4_500.0], ..clear };
    let kept = advised(&within_noise.results(), "17");
    assert_eq!(setting(&kept, "wal_sync_method").decision, Decision::LeaveDefault);
    assert!(!setting(&kept, "wal_sync_method").evidence.is_empty());
}

#[test]
fn the_ring_is_advised_where_it_is_faster_and_only_where_servers_have_it() {
    let machine = Machine { ring: 1.4, ..machines::slow() };
    let advice = advised(&machine.results(), "18");
    let found = setting(&advice, "io_method");
    assert_eq!(
        (found.value.as_deref(), found.takes_effect),
        (Some("io_uring"), TakesEffect::Restart)
    );
    assert!(found.only_where.as_ref().unwrap().contains("liburing"));
    assert!(conf(&advice).contains("\n#io_method = io_uring"));
    assert!(
        changed(&Machine { ring: 0.7, ..machine }, "18")
            .iter()
            .all(|change| !change.starts_with("io_method"))
    );
}

#[test]
fn a_disturbed_run_needs_more_to_say_the_same() {
    let machine = Machine { ring: 1.18, ..machines::nvme() };
    let groups = ["device/sequential-read", "device/random-read"];
    let (quiet, busy) = (machine.results(), disturbed(machine.results(), &groups));
    assert_eq!(setting(&advised(&quiet, "18"), "io_method").decision, Decision::Change);
    let advice = advised(&busy, "18");
    assert_eq!(setting(&advice, "io_method").decision, Decision::LeaveDefault);
    let depth = setting(&advice, "effective_io_concurrency");
    assert_eq!(depth.value.as_deref(), Some("64"));
    assert!(
        depth.cautions.iter().any(|caution| caution.contains("random-read was disturbed: others")),
        "{depth:?}"
    );
}

#[test]
fn noise_alone_changes_nothing() {
    let machine = Machine { noise: 0.6, ..machines::slow() };
    // A random page is cheap beyond all noise.
    let others = changed(&machine, "17")
        .into_iter()
        .filter(|change| !change.starts_with("random_page_cost"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn what_was_not_measured_is_left() {
    for version in ["14", "15", "16", "17", "18"] {
        let advice = advised(&Results::default(), version);
        assert_eq!(changes(&advice), Vec::<String>::new());
        let measured = advice.settings.iter().filter(|each| each.decision != Decision::NotMeasured);
        assert_eq!(measured.map(|each| each.name).collect::<Vec<_>>(), ["seq_page_cost"]);
        assert!(text(&advice).contains("leave the default: not measured"));
        assert!(conf(&advice).lines().all(|line| line.is_empty() || line.starts_with("# ")));
        assert!(!sql(&advice).contains("\nSELECT"));
    }
}

#[test]
fn files_in_memory_and_a_cache_that_was_not_cold_say_nothing() {
    let memory = Machine { file_system: "tmpfs", ..machines::nvme() };
    assert_eq!(changed(&memory, "18"), Vec::<String>::new());
    let mut results = machines::nvme().results();
    results.warnings.push(Warning {
        kind: WarningKind::CacheState,
        group: Some("device/sequential-read-cold".into()),
        message: String::new(),
        remedy: String::new(),
    });
    let advice = advised(&results, "18");
    for name in ["random_page_cost", "read_ahead_kb"] {
        let found = setting(&advice, name);
        assert!(
            found.decision == Decision::NotMeasured && found.why.contains("page cache"),
            "{found:?}"
        );
    }
}

#[test]
fn three_turns_are_too_few() {
    let mut results = machines::nvme().results();
    for cell in results
        .experiments
        .iter_mut()
        .flat_map(|each| &mut each.groups)
        .flat_map(|group| &mut group.cells)
    {
        cell.samples.truncate(3);
    }
    assert_eq!(changes(&advised(&results, "18")), Vec::<String>::new());
}

#[test]
fn copies_by_the_kernel_are_advised_where_they_were_seen_to_be_faster() {
    let mut results = machines::nvme().results();
    let mut copies = results.experiments[1].groups[0].clone();
    copies.name = "files-cold".into();
    for (cell, (method, factor)) in
        copies.cells.iter_mut().zip([("copy_file_range", 0.5), ("read_write", 1.0)])
    {
        method.clone_into(&mut cell.name);
        cell.parameters.insert("method".into(), method.into());
        cell.samples.iter_mut().for_each(|sample| sample.elapsed_s *= factor);
    }
    results.experiments.push(Experiment {
        name: "copy".into(),
        groups: vec![copies],
        ..Experiment::default()
    });
    let advice = advised(&results, "18");
    assert_eq!(setting(&advice, "file_copy_method").value.as_deref(), Some("clone"));
    let found = setting(&advice, "file_copy_method");
    assert_eq!(found.evidence[0].group, "copy/files-cold");
    assert!(found.cautions.iter().any(|caution| caution.contains("raises an error")), "{found:?}");
}

#[test]
fn what_is_written_is_sent_early_where_that_shortens_the_wait_of_others() {
    let machine =
        Machine { beside: [[0.030, 0.020, 0.010], [0.030, 0.020, 0.029]], ..machines::nvme() };
    for version in ["14", "15", "16", "17", "18"] {
        let changed = changed(&machine, version);
        for change in ["checkpoint_flush_after=1MB", "backend_flush_after=256kB"] {
            assert!(changed.contains(&change.into()), "{version}: {changed:?}");
        }
    }
    let advice = advised(&machine.results(), "16");
    let best = &setting(&advice, "checkpoint_flush_after").evidence[0];
    assert_eq!((&*best.cell, best.against.as_deref()), ("every 1024 kB", Some("every 256 kB")));
    assert!(best.figure.low > 1.9 && best.figure.high < 2.1, "{best:?}");
    let off = Machine { beside: [[0.010, 0.020, 0.020], [0.020; 3]], ..machine };
    let advice = advised(&off.results(), "17");
    assert_eq!(setting(&advice, "checkpoint_flush_after").value.as_deref(), Some("0"));
    let kept = setting(&advice, "backend_flush_after");
    assert_eq!((kept.decision, kept.evidence.len()), (Decision::LeaveDefault, 1));
}

#[test]
fn writing_that_takes_longer_is_no_way_to_a_shorter_wait() {
    let machine = Machine { beside: [[0.020; 3], [0.030, 0.020, 0.010]], ..machines::nvme() };
    let mut results = machine.results();
    let groups = results.experiments.iter_mut().flat_map(|each| &mut each.groups);
    let cells = groups.filter(|group| group.name == "backend-flush-after");
    for cell in cells.flat_map(|group| &mut group.cells).filter(|cell| cell.name.contains("1024")) {
        cell.samples.iter_mut().for_each(|sample| sample.elapsed_s *= 2.0);
    }
    let advice = advised(&results, "18");
    assert_eq!(setting(&advice, "backend_flush_after").value.as_deref(), Some("256kB"));
}

#[test]
fn every_form_names_every_setting_of_each_version() {
    for results in [machines::nvme().results(), Results::default()] {
        for version in ["14", "15", "16", "17", "18"] {
            let advice = advised(&results, version);
            let names: Vec<_> = advice.settings.iter().map(|setting| setting.name).collect();
            for form in [text(&advice), conf(&advice), sql(&advice), json(&advice).unwrap()] {
                for name in &names {
                    assert!(form.contains(name), "{version}: {name}: {form}");
                }
            }
        }
    }
}

#[test]
fn the_outputs_say_the_same() {
    let machine = Machine { quick: true, turns: 6, bandwidth: 6.4e9, ..machines::nvme() };
    let advice = advised(&machine.results(), "18");
    assert!(conf(&advice).contains("\neffective_io_concurrency = 64  # default 16, reload\n"));
    assert!(conf(&advice).contains(
        "\n# read_ahead_kb, not a setting of the server: blockdev --setra 1024 /dev/DEVICE\n"
    ));
    let sql = sql(&advice);
    assert!(sql.contains("\nALTER SYSTEM SET effective_io_concurrency = '64';\n"));
    assert!(sql.contains("\nSELECT pg_reload_conf();\n"));
    let text = text(&advice);
    assert!(text.contains("effective_io_concurrency    16               64"), "{text}");
    assert!(text.contains("only") || text.contains("Caution: a quick run"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json(&advice).unwrap()).unwrap();
    assert_eq!(
        (&json["pg_version"], &json["settings"][2]["name"]),
        (&"18".into(), &"effective_io_concurrency".into())
    );
    assert_eq!(json["settings"][2]["decision"], "change");
    assert_eq!(json["settings"][2]["evidence"][0]["measure"], "factor");
    assert_eq!(json["settings"][2]["takes_effect"], "reload");
}
