//! `pagemill advise`: what it refuses, and its advice set in real servers.
//!
//! The results are made up so that every setting that can change does. The judge is each installed server: it must start
//! with the lines, take the statements, and show the values; its own defaults and contexts must be those that are told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use assert_cmd::Command;
use pagemill_lab::report;
use pagemill_lab::results::{Cell, Experiment, FORMAT, Fact, Figure, Group, Results, Sample};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};
use tempfile::TempDir;

/// Settings that are told of, in whatever version.
const SETTINGS: [&str; 15] = [
    "io_method",
    "io_workers",
    "effective_io_concurrency",
    "maintenance_io_concurrency",
    "io_combine_limit",
    "io_max_combine_limit",
    "random_page_cost",
    "seq_page_cost",
    "wal_sync_method",
    "wal_init_zero",
    "wal_recycle",
    "file_extend_method",
    "file_copy_method",
    "checkpoint_flush_after",
    "backend_flush_after",
];

fn pagemill(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-lab"));
    command.arg("advise").args(words);
    command
}

fn advice(words: &[&str]) -> String {
    let output = pagemill(words).assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is said on standard error: one line.
fn complaint(words: &[&str], status: i32) -> String {
    let output = pagemill(words).assert().code(status).get_output().clone();
    assert!(output.stdout.is_empty(), "{words:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("pagemill: ") && said.lines().count() == 1, "{words:?}: {said:?}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A cell of equal turns: so many operations of so many bytes in a second.
fn cell(parameters: &[(&str, u64)], method: &str, name: &str, rate: f64) -> Cell {
    let block =
        parameters.iter().find(|(name, _)| *name == "block_size").map_or(8192, |(_, size)| *size);
    let sample =
        Sample { elapsed_s: 1.0 / rate, operations: 1, bytes: Some(block), ..Sample::default() };
    let mut all: BTreeMap<String, String> =
        parameters.iter().map(|(name, value)| ((*name).into(), value.to_string())).collect();
    all.insert("method".into(), method.into());
    Cell { name: name.into(), parameters: all, samples: vec![sample; 7], ..Cell::default() }
}

fn read(method: &str, block: u64, depth: u64, rate: f64) -> Cell {
    cell(
        &[("block_size", block), ("depth", depth)],
        method,
        &format!("{method} {block} {depth}"),
        rate,
    )
}

fn workers(count: u64, rate: f64) -> Cell {
    let mut cell = read("worker", 8 << 10, count, rate);
    cell.parameters.insert("workers".into(), count.to_string());
    cell
}

fn named(name: &str, rate: f64) -> Cell {
    cell(&[], name, name, rate)
}

fn group(name: &str, figure: Figure, cells: Vec<Cell>) -> Group {
    Group { name: name.into(), figure, cells, ..Group::default() }
}

/// A machine on which everything pays: a file system that copies on write, on a drive that likes depth and large reads.
fn everything_pays() -> Results {
    const KB: u64 = 1 << 10;
    let syncs = || {
        ["open_datasync buffered", "fdatasync", "fsync", "open_sync buffered"]
            .into_iter()
            .zip([900.0, 500.0, 400.0, 800.0])
    };
    let syncs = || syncs().map(|(name, rate)| named(name, rate)).collect::<Vec<_>>();
    let growth = || {
        let way = |method, rate| cell(&[("blocks", 64)], method, method, rate);
        vec![way("write_zeros", 30.0), way("posix_fallocate", 20.0)]
    };
    // Transactions that take the shorter, the more is sent at a time.
    let beside = |sizes: &[u64]| {
        let cell = |size: &u64| {
            let rate = 100.0 + *size as f64;
            cell(
                &[("flush_after", *size << 10)],
                "sync_file_range",
                &format!("every {size} kB"),
                rate,
            )
        };
        sizes.iter().map(cell).collect::<Vec<_>>()
    };
    let device = vec![
        group(
            "random-read",
            Figure::Rate,
            vec![
                read("pread", 8 * KB, 1, 10e3),
                workers(4, 30e3),
                workers(16, 90e3),
                read("io_uring", 8 * KB, 1, 11e3),
                read("io_uring", 8 * KB, 4, 40e3),
                read("io_uring", 8 * KB, 16, 150e3),
                read("io_uring", 8 * KB, 64, 400e3),
            ],
        ),
        group(
            "sequential-read",
            Figure::Throughput,
            vec![
                read("pread", 8 * KB, 1, 12e3),
                read("pread", 128 * KB, 1, 8e3),
                read("pread", 256 * KB, 1, 6e3),
                read("pread", 1024 * KB, 1, 2e3),
            ],
        ),
        group(
            "sequential-read-cold",
            Figure::Throughput,
            vec![
                read("pread", 128 * KB, 1, 8e3),
                read("worker", 128 * KB, 16, 12e3),
                read("io_uring", 128 * KB, 16, 16e3),
            ],
        ),
        group("sync-one-write", Figure::Rate, syncs()),
        group("sync-two-writes", Figure::Rate, syncs()),
        group("checkpoint-flush-after", Figure::Latency, beside(&[0, 256, 2048])),
        group("backend-flush-after", Figure::Latency, beside(&[0, 512])),
    ];
    let extend = vec![
        group(
            "wal-segment",
            Figure::Elapsed,
            vec![named("write_zeros 8 kB", 20.0), named("last byte", 500.0)],
        ),
        group(
            "wal-first-writes",
            Figure::Rate,
            vec![
                named("over zeros", 500.0),
                named("over a hole", 510.0),
                named("over a recycled segment", 400.0),
            ],
        ),
        group("extend-and-fill", Figure::Elapsed, growth()),
        group("extend-four-writers", Figure::Elapsed, growth()),
    ];
    let copy = vec![group(
        "files",
        Figure::Elapsed,
        vec![named("64 kB", 2.0), named("read_write", 60.0), named("copy_file_range", 50.0)],
    )];
    let experiment =
        |name: &str, groups| Experiment { name: name.into(), groups, ..Experiment::default() };
    let fact = |name: &str, value: &str| Fact { name: name.into(), value: value.into() };
    Results {
        format: FORMAT,
        pagemill: "0.1.0".into(),
        started: "2026-01-02T03:04:05Z".into(),
        environment: vec![
            fact("file_system", "btrfs"),
            fact("mount_options", "rw"),
            fact("read_ahead_kb", "128"),
        ],
        experiments: vec![
            experiment("device", device),
            experiment("extend", extend),
            experiment("copy", copy),
        ],
        ..Results::default()
    }
}

/// The results in a file.
fn kept(results: &Results) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.json");
    let mut bytes = Vec::new();
    report::json(results, &mut bytes).unwrap();
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn what_is_no_file_of_results_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    for (content, reason) in [
        ("nonsense", "not JSON"),
        ("{\"rows\": 3}", "not results of the lab"),
        ("{\"format\": 9}", "format 9"),
        ("{\"format\": 1}", "damaged results"),
    ] {
        std::fs::write(&path, content).unwrap();
        let said = complaint(&["--from", text(&path)], 1);
        assert!(said.contains(reason) && said.contains(text(&path)), "{said}");
    }
    assert!(complaint(&["--from", "/nowhere/at/all"], 1).contains("/nowhere/at/all"));
}

#[test]
fn a_command_line_that_cannot_be_followed_is_wrong_usage() {
    let (_dir, path) = kept(&Results { format: FORMAT, ..Results::default() });
    for version in ["13", "19", "9.6", "17.", "new"] {
        let said = complaint(&["--from", text(&path), "--pg-version", version], 2);
        assert!(said.contains(version) && said.contains("14 to 18"), "{said}");
    }
    assert!(complaint(&[".", "--from", text(&path)], 2).contains("--from"));
    assert!(complaint(&["--from", text(&path), "--format", "xml"], 2).contains("xml"));
    assert!(complaint(&["/nowhere/at/all"], 2).contains("not a directory"));
}

#[test]
fn results_without_figures_leave_everything_as_it_is() {
    let (_dir, path) = kept(&Results { format: FORMAT, ..Results::default() });
    let told = advice(&["--from", text(&path)]);
    assert!(
        told.contains("PostgreSQL 18") && told.contains("leave the default: not measured"),
        "{told}"
    );
    for format in ["conf", "sql"] {
        let told = advice(&["--from", text(&path), "--format", format]);
        assert!(told.lines().all(|line| line.is_empty() || line.starts_with(['#', '-'])), "{told}");
    }
}

/// The version of a server, as `17.7`.
fn version(install: &PgInstall) -> String {
    let output = Process::new(install.program("postgres")).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.split(' ').find(|word| word.starts_with(|ch: char| ch.is_ascii_digit()));
    number.unwrap().trim().to_owned()
}

/// What is advised, setting by setting.
fn told(path: &Path, version: &str) -> Vec<serde_json::Value> {
    let json = advice(&["--from", text(path), "--pg-version", version, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    json["settings"].as_array().unwrap().clone()
}

/// Name and value of those that every server of the version takes.
fn values(settings: &[serde_json::Value]) -> Vec<(String, String)> {
    let value = |setting: &serde_json::Value| {
        let is_set = setting["scope"] == "server" && setting["only_where"].is_null();
        let value = setting["value"].as_str().filter(|_| is_set)?;
        Some((setting["name"].as_str()?.to_owned(), value.to_owned()))
    };
    settings.iter().filter_map(value).collect()
}

fn shown(cluster: &TestCluster, name: &str) -> String {
    cluster.psql("postgres", &format!("SHOW {name}")).unwrap()
}

fn every_server(check: impl Fn(&PgInstall)) {
    let installed = PgInstall::all();
    assert!(!installed.is_empty(), "no PostgreSQL is installed");
    installed.iter().for_each(check);
}

#[test]
fn servers_start_with_the_lines_and_show_the_values() {
    let (_dir, path) = kept(&everything_pays());
    every_server(|install| {
        let exact = version(install);
        for version in [exact.as_str(), &install.major.to_string()] {
            let mut cluster = empty_cluster(install).unwrap();
            let conf = cluster.data_dir().join("postgresql.conf");
            let lines =
                advice(&["--from", text(&path), "--pg-version", version, "--format", "conf"]);
            let all = std::fs::read_to_string(&conf).unwrap() + &lines;
            std::fs::write(&conf, all).unwrap();
            cluster.start().unwrap_or_else(|error| panic!("{version}: {error:#}\n{lines}"));
            let values = values(&told(&path, version));
            assert!(values.len() >= 6, "{version}: {values:?}");
            for (name, value) in values {
                assert_eq!(shown(&cluster, &name), value, "{version}: {name}");
            }
        }
    });
}

#[test]
fn servers_take_the_statements_and_show_the_values() {
    let (dir, path) = kept(&everything_pays());
    every_server(|install| {
        let version = version(install);
        let mut cluster = empty_cluster(install).unwrap();
        cluster.start().unwrap();
        let statements =
            advice(&["--from", text(&path), "--pg-version", &version, "--format", "sql"]);
        let file = dir.path().join("advice.sql");
        std::fs::write(&file, &statements).unwrap();
        cluster
            .psql_file("postgres", &file, &[])
            .unwrap_or_else(|error| panic!("{version}: {error:#}\n{statements}"));
        // What waits for a restart is told in these words.
        let errors =
            "SELECT count(*) FROM pg_file_settings WHERE error <> 'setting could not be applied'";
        assert_eq!(cluster.psql("postgres", errors).unwrap(), "0", "{version}");
        cluster.stop().unwrap();
        cluster.start().unwrap();
        for (name, value) in values(&told(&path, &version)) {
            assert_eq!(shown(&cluster, &name), value, "{version}: {name}");
        }
    });
}

#[test]
fn versions_defaults_and_contexts_are_those_of_the_servers() {
    let (_dir, path) = kept(&Results { format: FORMAT, ..Results::default() });
    every_server(|install| {
        let version = version(install);
        let mut cluster = empty_cluster(install).unwrap();
        cluster.start().unwrap();
        let told = told(&path, &version);
        for name in SETTINGS {
            let found = format!(
                "SELECT context FROM pg_settings WHERE name = '{name}' AND source = 'default'"
            );
            let context = cluster.psql("postgres", &found).unwrap();
            let setting = told.iter().find(|setting| setting["name"] == name);
            let Some(setting) = setting else {
                assert_eq!(context, "", "{version} has {name}, and nothing is told of it");
                continue;
            };
            assert_ne!(context, "", "{version} has no {name}");
            assert_eq!(
                setting["default"].as_str().unwrap(),
                shown(&cluster, name),
                "{version}: {name}"
            );
            assert_eq!(
                setting["takes_effect"] == "restart",
                context == "postmaster",
                "{version}: {name}"
            );
            check_values(&cluster, setting, &version);
        }
    });
}

/// The values that are told to be taken are those that the server tells.
fn check_values(cluster: &TestCluster, setting: &serde_json::Value, version: &str) {
    let name = setting["name"].as_str().unwrap();
    let of_server = |column: &str| {
        let query = format!("SELECT {column} FROM pg_settings WHERE name = '{name}'");
        cluster.psql("postgres", &query).unwrap()
    };
    let kind = of_server("vartype");
    let range = of_server("concat(min_val, ' ', max_val, ' ', unit)");
    let takes = &setting["takes"];
    let told = match kind.as_str() {
        "bool" => takes == "bool",
        "real" => takes == "real" && range.starts_with("0 "),
        "integer" => {
            let (of, unit) =
                if takes["blocks"].is_null() { ("integer", "") } else { ("blocks", "8kB") };
            range == format!("{} {} {unit}", takes[of][0], takes[of][1])
        }
        _ => {
            let mut words: Vec<_> = takes["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            words.sort_unstable();
            let query =
                "(SELECT string_agg(word, ' ' ORDER BY word) FROM unnest(enumvals) AS word)";
            let found = of_server(query);
            // Servers without liburing do not have it.
            found == words.join(" ") || found == words.join(" ").replace("io_uring ", "")
        }
    };
    assert!(told, "{version}: {name}: {takes}, and the server has {kind} {range}");
}

/// An interrupted run printed a table in which nothing was measured as if it had been.
#[test]
fn an_interrupted_run_advises_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pagemill-lab"));
    let run = command.args(["advise", text(dir.path())]);
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let run = run.spawn().unwrap();
    let has_files = || {
        let mut entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        entries.any(|entry| entry.path().join("device/segment").exists())
    };
    let begin = std::time::Instant::now();
    while !has_files() {
        assert!(begin.elapsed().as_secs() < 60, "it does not begin");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("no advice"), "{said}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn without_results_it_measures_first() {
    let dir = tempfile::tempdir().unwrap();
    let output = pagemill(&[text(dir.path()), "--size", "1MB", "--format", "json"])
        .assert()
        .success()
        .get_output()
        .clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("pagemill: measuring device") && said.contains("extend"), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["quick"], &told["pg_version"]), (&true.into(), &"18".into()));
    let settings = told["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 16);
    // Of files in memory nothing is said but that.
    let in_memory = told["cautions"].to_string().contains("in memory");
    let has_evidence = settings.iter().any(|setting| setting["evidence"] != serde_json::json!([]));
    assert!(has_evidence || in_memory, "{told:#}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
